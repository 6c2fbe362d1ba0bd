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

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define ENFORCERS_MAX 4

/* Below this Landlock denies every rename between directories; a jail goes
 * without it. */
#define LANDLOCK_ABI_MIN 2

struct enforcer {
	const char *by;
	enum enforce_strength strength;
	int (*holds)(const struct enforce_facts *);
};

struct limit {
	const char *what, *word;
	const char *said;   /* enforce_say(), when it is not strong */
	int by_cgroup;	    /* a better cgroup is the remedy */
	const char *remedy; /* where it is not */
	struct enforcer by[ENFORCERS_MAX];
};

static int always(const struct enforce_facts *f)
{
	(void)f;
	return 1;
}

static int jail(const struct enforce_facts *f)
{
	return f->jail;
}

static int v1(const struct enforce_facts *f)
{
	return f->cgroup == 1;
}

static int v2(const struct enforce_facts *f)
{
	return f->cgroup == 2;
}

/* A limit that either version of cgroups may keep. */
#define BY_CGROUP(field)                                                       \
	static int field##_v1(const struct enforce_facts *f)                   \
	{                                                                      \
		return v1(f) && f->field;                                      \
	}                                                                      \
	static int field##_v2(const struct enforce_facts *f)                   \
	{                                                                      \
		return v2(f) && f->field;                                      \
	}

BY_CGROUP(memory)
BY_CGROUP(pids)
BY_CGROUP(cpus)
BY_CGROUP(cpu)
BY_CGROUP(freezer)

static int swap(const struct enforce_facts *f)
{
	return f->cgroup && f->swap;
}

static int no_swap(const struct enforce_facts *f)
{
	return !f->host_swap;
}

static int nproc_own(const struct enforce_facts *f)
{
	return f->nproc_own;
}

static int mount_setattr(const struct enforce_facts *f)
{
	return f->mount_setattr;
}

static int landlock(const struct enforce_facts *f)
{
	return f->landlock_abi >= LANDLOCK_ABI_MIN;
}

static int proc(const struct enforce_facts *f)
{
	return f->proc;
}

static int seccomp(const struct enforce_facts *f)
{
	return f->seccomp > 0;
}

#define V1(field)                                                              \
	{                                                                      \
		"cgroup v1", ENFORCE_STRONG, field##_v1                        \
	}
#define V2(field)                                                              \
	{                                                                      \
		"cgroup v2", ENFORCE_STRONG, field##_v2                        \
	}

static const struct limit limits[ENFORCE_LIMITS] = {
	[ENFORCE_JAIL] = {"jail", NULL, NULL, 0, "see cellblock(1), HOSTS",
		{{"namespaces", ENFORCE_STRONG, jail},
			{"nothing: no session can start", ENFORCE_NONE,
				always}}},
	[ENFORCE_CGROUP] = {"cgroup", "cgroup", NULL, 1, NULL,
		{{"cgroup v2", ENFORCE_STRONG, v2},
			{"cgroup v1", ENFORCE_STRONG, v1},
			{"none for a session", ENFORCE_NONE, always}}},
	[ENFORCE_MEMORY] = {"memory", "memory", "memory is only watched", 1,
		NULL,
		{V2(memory), V1(memory),
			{"the warden watching", ENFORCE_WEAK, always}}},
	[ENFORCE_SWAP] = {"swap", "noswap", NULL, 0,
		"swapoff -a, or boot with swapaccount=1 and start sessions as "
		"root",
		{{"cgroup", ENFORCE_STRONG, swap},
			{"none on this host", ENFORCE_STRONG, no_swap},
			{"nothing", ENFORCE_NONE, always}}},
	[ENFORCE_PROCESSES] = {"processes", "processes",
		"processes are counted for the whole host", 0,
		"Linux 5.14 counts for each session by itself",
		{V2(pids), V1(pids),
			{"user namespace", ENFORCE_STRONG, nproc_own},
			{"rlimit, host-wide", ENFORCE_WEAK, always}}},
	[ENFORCE_CPUS] = {"cores", "cpus", "cores are not limited", 1, NULL,
		{V2(cpus), V1(cpus), {"niceness only", ENFORCE_WEAK, always}}},
	[ENFORCE_CPU] = {"cell CPU", "cpu", NULL, 1, NULL,
		{V2(cpu), V1(cpu),
			{"the warden adding up", ENFORCE_WEAK, always}}},
	[ENFORCE_TIME] = {"cell time", NULL, NULL, 0, NULL,
		{{"warden", ENFORCE_STRONG, always}}},
	[ENFORCE_HOME] = {"home", NULL, NULL, 0, NULL,
		{{"kernel (tmpfs)", ENFORCE_STRONG, always}}},
	[ENFORCE_NETWORK] = {"network", NULL, NULL, 0, NULL,
		{{"network namespace", ENFORCE_STRONG, always}}},
	[ENFORCE_CALLS] = {"system calls", NULL, NULL, 0,
		"there is no filter for this machine",
		{{"seccomp", ENFORCE_STRONG, seccomp},
			{"nothing: no session can start", ENFORCE_NONE,
				always}}},
	[ENFORCE_FILES] = {"files", NULL, NULL, 0, NULL,
		{{"mounts", ENFORCE_STRONG, always}}},
	[ENFORCE_MOUNTS] = {"read-only mounts", NULL, NULL, 0, NULL,
		{{"mount_setattr", ENFORCE_STRONG, mount_setattr},
			{"one mount at a time", ENFORCE_STRONG, always}}},
	[ENFORCE_LANDLOCK] = {"landlock", "landlock", NULL, 0,
		"the mounts hold alone; a second wall needs Linux 5.19, or "
		"5.13 with backports, and landlock in the kernel's lsm= list",
		{{"Landlock, behind the mounts", ENFORCE_STRONG, landlock},
			{"nothing behind the mounts", ENFORCE_NONE, always}}},
	[ENFORCE_PROC] = {"/proc", "proc", "the jail has no /proc", 0,
		"a container that masks parts of its /proc keeps a jail from "
		"having one: start it with  --security-opt "
		"systempaths=unconfined",
		{{"own processes only", ENFORCE_STRONG, proc},
			{"none in the jail", ENFORCE_NONE, always}}},
	[ENFORCE_STOPPING] = {"stopping", "freezer", NULL, 1, NULL,
		{V2(freezer), V1(freezer),
			{"signals from pid 1", ENFORCE_WEAK, always}}},
};

static const char root_remedy[] =
	"start it as root (sudo cellblock): each session then has a cgroup "
	"of its own; or see cellblock(1), HOSTS";

/* ---- rows ---- */

static const char *remedy_of(
	enum enforce_limit limit, const struct enforce_facts *f)
{
	const char *why = f->cgroup_why[0] ? f->cgroup_why : NULL;

	if (!limits[limit].by_cgroup)
		return limits[limit].remedy;
	if (!f->root)
		return f->delegated && why ? why : root_remedy;
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

	while (!l->by[i].holds(f))
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
	switch (s) {
	case ENFORCE_NONE:
		return "none";
	case ENFORCE_WEAK:
		return "weak";
	case ENFORCE_STRONG:
		return "strong";
	}
	return "?";
}

/* ---- jail.require ---- */

static int limit_of_word(const char *word)
{
	for (int i = 0; i < ENFORCE_LIMITS; i++)
		if (limits[i].word && !strcmp(limits[i].word, word))
			return i;
	return -1;
}

int enforce_word_is_known(const char *word)
{
	return limit_of_word(word) >= 0;
}

/* Add to a text that is cut rather than overrun. */
static void append(char *buf, size_t size, const char *between, const char *s)
{
	size_t n = strlen(buf);

	snprintf(buf + n, size - n, "%s%s", n ? between : "", s);
}

void enforce_words(char *buf, size_t size)
{
	buf[0] = '\0';
	for (int i = 0; i < ENFORCE_LIMITS; i++)
		if (limits[i].word)
			append(buf, size, " ", limits[i].word);
}

int enforce_require(const char *const *words, const struct enforce_facts *f,
	int skip, struct err *e)
{
	for (; words && *words; words++) {
		int limit = limit_of_word(*words);
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
			append(buf, size, ", ", limits[i].said);
}
