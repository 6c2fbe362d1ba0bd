/* SPDX-License-Identifier: MIT */
/*
 * enforce.c - what enforces each limit and each wall, and how strongly
 *
 * Runs in:   warden, before the jail is built; front end; pure
 * Trusts:    the facts
 */
#include "enforce.h"

#include "jail/base/err.h"

#include <stdio.h>
#include <string.h>

#define ENFORCERS_MAX 4

/* Below this ABI Landlock denies every rename between directories; a jail goes
 * without it. */
#define LANDLOCK_ABI_MIN 2

struct enforcer {
	const char *by;
	enum enforce_strength strength;
	size_t fact;  /* offset of the int it depends on ... */
	int at_least; /* ... and the least value, 0 for 1 */
	int cgroup;   /* only of this version, 0 for any */
};

/* Enforcers in order of preference. The last one needs nothing. */
struct limit {
	const char *what, *word;
	const char *said;   /* enforce_say(), when it is not strong */
	const char *remedy; /* NULL: a better cgroup */
	struct enforcer by[ENFORCERS_MAX];
};

#define STRONG ENFORCE_STRONG
#define WEAK ENFORCE_WEAK
#define FACT(field) offsetof(struct enforce_facts, field)
/* clang-format off */
#define CGROUPS(field)                                                         \
	{"cgroup v2", STRONG, FACT(field), .cgroup = 2},                       \
	{"cgroup v1", STRONG, FACT(field), .cgroup = 1}

static const struct limit limits[ENFORCE_LIMITS] = {
	[ENFORCE_JAIL] = {"jail",
		.remedy = "see cellblock(1), HOSTS",
		.by = {{"namespaces", STRONG, FACT(jail)},
			{"nothing: no session can start"}}},
	[ENFORCE_CGROUP] = {"cgroup", "cgroup",
		.by = {{"cgroup v2, from your systemd", STRONG, FACT(scope),
			       .cgroup = 2},
			CGROUPS(cgroup), {"none for a session"}}},
	[ENFORCE_MEMORY] = {"memory", "memory", "memory may be exceeded for a moment",
		.by = {CGROUPS(memory), {"watched, no huge pages", WEAK}}},
	[ENFORCE_SWAP] = {"swap", "noswap",
		.remedy = "swapoff -a, or boot with swapaccount=1 and start "
			  "sessions as root",
		.by = {{"cgroup", STRONG, FACT(swap)},
			{"none on this host", STRONG, FACT(no_host_swap)},
			{"nothing"}}},
	[ENFORCE_PROCESSES] = {"processes", "processes",
		"processes are counted for the whole host",
		"Linux 5.14 counts for each session by itself",
		{CGROUPS(pids), {"user namespace", STRONG, FACT(nproc_own)},
			{"rlimit, host-wide", WEAK}}},
	[ENFORCE_CPUS] = {"cores", "cpus", "all cores may be used",
		.by = {CGROUPS(cpus), {"niceness only", WEAK}}},
	[ENFORCE_CPU] = {"cell CPU", "cpu",
		.by = {CGROUPS(cpu), {"the warden adding up", WEAK}}},
	[ENFORCE_TIME] = {"cell time", .by = {{"warden", STRONG}}},
	[ENFORCE_HOME] = {"home", .by = {{"kernel (tmpfs)", STRONG}}},
	[ENFORCE_NETWORK] = {"network", .by = {{"network namespace", STRONG}}},
	[ENFORCE_CALLS] = {"system calls",
		.remedy = "there is no filter for this machine",
		.by = {{"seccomp", STRONG, FACT(seccomp)},
			{"nothing: no session can start"}}},
	[ENFORCE_LOCKS] = {"file locks",
		.remedy = "a manager of containers listens to system calls "
			  "itself: set security.syscalls.intercept.* to false "
			  "in LXD or Incus. Until then SQLite and other "
			  "databases cannot lock (ENOLCK, ENOSYS)",
		.by = {{"pid 1, which is asked", STRONG, FACT(asks)},
			{"refused altogether"}}},
	[ENFORCE_FILES] = {"files", .by = {{"mounts", STRONG}}},
	[ENFORCE_INODES] = {"inodes", "inodes",
		.remedy = "they cannot be watched or changed; files can be "
			  "locked. Made by root or root's maker, on Linux 5.11 "
			  "or later, a session has its own, unless other "
			  "mounts lie below a directory that is shown",
		.by = {{"overlays, own device nodes", STRONG, FACT(own_inodes)},
			{"none: shared with the host", WEAK}}},
	[ENFORCE_USER] = {"user's counts", "counts",
		.remedy = "cells and the person's programs share what the "
			  "kernel allows one user: descriptors in flight, "
			  "pages in pipes, epoll watches. A program that fails "
			  "with ETOOMANYREFS needs a higher ulimit -n. Made "
			  "by root or root's maker, a session has a user of "
			  "its own",
		.by = {{"a user of the session's own", STRONG, FACT(root)},
			{"none: the person's", WEAK}}},
	[ENFORCE_MOUNTS] = {"read-only mounts",
		.by = {{"mount_setattr", STRONG, FACT(mount_setattr)},
			{"one mount at a time", STRONG}}},
	[ENFORCE_LANDLOCK] = {"landlock", "landlock",
		.remedy = "the mounts hold alone; a second wall needs Linux "
			  "5.19, or 5.13 with backports, and landlock in the "
			  "kernel's lsm= list",
		.by = {{"Landlock, behind the mounts", STRONG,
				FACT(landlock_abi), LANDLOCK_ABI_MIN},
			{"nothing behind the mounts"}}},
	[ENFORCE_PROC] = {"/proc", "proc", "the jail has no /proc",
		"a container that masks parts of its /proc keeps a jail from "
		"having one: start it with  --security-opt "
		"systempaths=unconfined",
		{{"own processes only", STRONG, FACT(proc)},
			{"none in the jail"}}},
	[ENFORCE_STOPPING] = {"stopping", "freezer",
		.by = {CGROUPS(freezer), {"signals from pid 1", WEAK}}},
	[ENFORCE_SHARES] = {"equal shares", "shares",
		.by = {{"cgroup v2", STRONG, FACT(cpus), 2, .cgroup = 2},
			{"cgroup v1", STRONG, FACT(cpus), 2, .cgroup = 1},
			{"for processes, not persons", WEAK}}},
};
/* clang-format on */

static int enforcer_holds(
	const struct enforcer *by, const struct enforce_facts *f)
{
	int fact = *(const int *)((const char *)f + by->fact);

	return fact >= (by->at_least ? by->at_least : 1) &&
	       (!by->cgroup || by->cgroup == f->cgroup);
}

static const char root_remedy[] =
	"start it as root (sudo cellblock), or have root run a maker of "
	"sessions, see cellblock-maker(8): each session then has a cgroup of "
	"its own; or see cellblock(1), HOSTS";

static const char container_remedy[] =
	"a container has no cgroup for each session: limit the container, or "
	"run this on the host; see docs/CONTAINER.md";

/* ---- rows ---- */

static const char *remedy_of(
	enum enforce_limit limit, const struct enforce_facts *f)
{
	const char *why = f->cgroup_why[0] ? f->cgroup_why : NULL;

	if (limits[limit].remedy)
		return limits[limit].remedy;
	if (!f->root)
		return f->delegated && why ? why
		       : f->contained	   ? container_remedy
					   : root_remedy;
	if (!f->cgroup)
		return why ? why : "mount -t cgroup2 none /sys/fs/cgroup";
	return limit == ENFORCE_MEMORY
		       ? "boot with cgroup_enable=memory"
		       : "this kernel's cgroups lack a controller: cgroup v2 "
			 "has all";
}

struct enforce enforce_look(
	enum enforce_limit limit, const struct enforce_facts *f, int *number)
{
	const struct limit *l = &limits[limit];
	int i = 0;

	while (i + 1 < ENFORCERS_MAX && l->by[i + 1].by &&
		!enforcer_holds(&l->by[i], f))
		i++;
	if (number)
		*number = i;
	return (struct enforce){
		.what = l->what,
		.word = l->word,
		.by = l->by[i].by,
		.strength = l->by[i].strength,
		.remedy = l->by[i].strength == ENFORCE_STRONG
				  ? NULL
				  : remedy_of(limit, f),
	};
}

const char *enforce_by(enum enforce_limit limit, int number)
{
	if (number < 0 || number >= ENFORCERS_MAX ||
		!limits[limit].by[number].by)
		return "?";
	return limits[limit].by[number].by;
}

const char *enforce_strength_name(enum enforce_strength s)
{
	static const char *const names[] = {"none", "weak", "strong"};

	return names[s];
}

/* ---- jail.require ---- */

int enforce_word_find(const char *word)
{
	for (int i = 0; i < ENFORCE_LIMITS; i++)
		if (limits[i].word && !strcmp(limits[i].word, word))
			return i;
	return -1;
}

const char *enforce_word(enum enforce_limit limit)
{
	return limits[limit].word;
}

/* Add to a text that is cut rather than overrun. */
static void append_word(
	char *buf, size_t size, const char *between, const char *s)
{
	size_t n = strlen(buf);

	snprintf(buf + n, size - n, "%s%s", n ? between : "", s);
}

void enforce_words(char *buf, size_t size)
{
	buf[0] = '\0';
	for (int i = 0; i < ENFORCE_LIMITS; i++)
		if (limits[i].word)
			append_word(buf, size, " ", limits[i].word);
}

int enforce_require(const char *const *words, const struct enforce_facts *f,
	int skip, struct err *e)
{
	for (; words && *words; words++) {
		int limit = enforce_word_find(*words);
		struct enforce row;

		if (limit < 0) {
			err_set(e, "jail.require: %.60s is no known word",
				*words);
			return err_kind_set(e, ERR_CONFIG);
		}
		if (limit == skip)
			continue;
		row = enforce_look((enum enforce_limit)limit, f, NULL);
		if (row.strength == ENFORCE_STRONG)
			continue;
		err_set(e, "jail.require asks for %s; here it is %s: %s",
			*words, enforce_strength_name(row.strength), row.by);
		if (row.remedy)
			err_hint(e, "%s", row.remedy);
		return err_kind_set(e, ERR_JAIL);
	}
	return 0;
}

void enforce_say(const struct enforce_facts *f, char *buf, size_t size)
{
	buf[0] = '\0';
	for (int i = 0; i < ENFORCE_LIMITS; i++)
		if (limits[i].said &&
			enforce_look((enum enforce_limit)i, f, NULL).strength !=
				ENFORCE_STRONG)
			append_word(buf, size, ", ", limits[i].said);
}
