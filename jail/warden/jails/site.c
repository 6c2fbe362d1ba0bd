/* SPDX-License-Identifier: MIT */
/*
 * site.c - what every jail of the session is built on
 *
 * Runs in:   warden, before the first jail
 * Holds:     started by root: uid 0 until the cgroup exists and an outside id
 *            is allocated; then, as anyone, capabilities in its own user
 *            namespace only
 * Trusts:    the spec
 * Leaves:    a session, a user namespace and a mount namespace of the
 *            warden's own; the home ends with them, the cgroup with its
 *            janitor
 */
#include "jail/warden/jails/jails.h"

#include "jail/apply/apply.h"
#include "jail/base/array.h"
#include "jail/base/io.h"
#include "jail/base/slots.h"
#include "jail/base/systemd.h"
#include "jail/walls/walls.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The memory that a session takes to begin, with Python. */
#define START_BYTES (32LL << 20)
/* A manager that does not answer by then is not waited for. */
#define ANSWER_MS 2000

/* No descriptor of a front end's has so high a number: at an exit the lowest is
 * closed first. */
#define LAST_FD 900

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

/* A session of our own, and nothing of the caller's but the one socket, and
 * that over which a jail made ahead is leased. */
static int detach_from_caller(int front, int ahead, struct err *e)
{
	static const int for_groups[] = {
		SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU};
	sigset_t none;
	int null;

	if (setsid() < 0 && errno != EPERM)
		return err_errno(e, "start a session");
	if (ident_close_fds((const int[]){front, ahead}, 2, e) < 0 ||
		ident_set_ordinary_scheduling(e) < 0)
		return -1;
	null = open("/dev/null", O_RDWR);
	if (null < 0)
		return err_errno(e, "open /dev/null");
	for (int fd = 0; fd < 3; fd++)
		if (fd != null && dup2(null, fd) < 0)
			return err_errno(e, "use /dev/null");
	if (null > 2)
		close(null);
	/* Signals that reached us as one of the caller's group are pending.
	 * Ignoring a signal drops it. */
	for (size_t i = 0; i < COUNT(for_groups); i++)
		signal(for_groups[i], SIG_IGN);
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	/* A write that fails is an error, not the end of the session. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	return 0;
}

/* The janitor comes first, while there is nothing yet to clean up, and then
 * the kernel's limits: from here on our own work is the session's. */
static int limit_by_cgroup(struct site *s, int front, struct cgroup_caps *caps,
	const char *name, int lock, struct err *e)
{
	const struct janitor_of of = {.cgroup = &s->cgroup,
		.spec = s->spec,
		.id = s->id,
		.lock_fd = lock,
		.done_fd = front};

	if (cgroup_place(&s->cgroup, caps, name, e) < 0)
		return -1;
	caps->with[1] = janitor_start(&of, &s->janitor, e);
	if (caps->with[1] < 0)
		return -1;
	if (cgroup_open(&s->cgroup, caps, &s->spec->limits, e) < 0)
		return -1;
	if (spec_may_lower(s->spec))
		cgroup_hold_memory(&s->cgroup);
	return cgroup_enter_warden(&s->cgroup, e);
}

/* A maker that died has left us to somebody whose children are not ours. */
static void probe_cgroups(
	const struct jail_spec *spec, struct cgroup_caps *caps)
{
	cgroup_probe(caps, spec->parent ? spec->parent : getppid(), spec->front,
		spec->made ? spec->made->below : NULL);
}

static int count_in(const struct spec_made *made, int lock, struct err *e)
{
	int most = made->most_of_person;
	int r = most > 0 ? ident_allocation_place(lock, made->person, most, e)
			 : 1;

	if (r == 0)
		return slots_all_taken(most, e);
	if (r > 0)
		r = ident_allocation_place(lock,
			IDENT_PLACES_ANY + made->person, made->any_of_person,
			e);
	if (r == 0) {
		err_set(e, "there are %d sessions and programs already",
			made->any_of_person);
		err_hint(e,
			"end some of them; one person has no more, with "
			"maker.sessions = %d",
			made->most);
		return err_kind_set(e, ERR_BUSY);
	}
	if (r > 0)
		r = ident_allocation_place(
			lock, IDENT_PLACES_ALL, made->most, e);
	if (r == 0) {
		err_set(e, "this host has all the sessions that it may have");
		err_hint(e, "try again later; maker.sessions = %d", made->most);
		return err_kind_set(e, ERR_BUSY);
	}
	return r < 0 ? -1 : 0;
}

/* Check that one more session may be: the places go with the allocation. */
int site_count_in(const struct spec_made *made, int allocation, struct err *e)
{
	if (count_in(made, allocation, e) == 0)
		return 0;
	site_count_out(made, allocation);
	return -1;
}

int site_has_memory(
	const struct spec_made *made, const struct cgroup *cg, struct err *e)
{
	int64_t left = made->memory_bytes ? cgroup_left_of_all(cg) : INT64_MAX;
	int64_t free = made->reserve_bytes ? host_available_bytes() : -1;

	if (left < START_BYTES) {
		err_set(e, "the sessions of this host use all the memory that "
			   "they may have together");
		err_hint(e,
			"try again later, or end a session that is not "
			"needed; maker.memory = %lld MiB",
			(long long)(made->memory_bytes >> 20));
		return err_kind_set(e, ERR_BUSY);
	}
	if (free >= 0 && free < made->reserve_bytes) {
		err_set(e,
			"this host has too little memory for one more session: "
			"%lld MiB are left",
			(long long)(free >> 20));
		err_hint(e,
			"try again later, or end a session that is not "
			"needed; maker.reserve = %lld MiB",
			(long long)(made->reserve_bytes >> 20));
		return err_kind_set(e, ERR_BUSY);
	}
	return 0;
}

void site_count_out(const struct spec_made *made, int allocation)
{
	ident_release_places(allocation, made->person);
	ident_release_places(allocation, IDENT_PLACES_ANY + made->person);
	ident_release_places(allocation, IDENT_PLACES_ALL);
}

void site_count(const struct site *s, enum jail_limit limit)
{
	if (s->janitor >= 0)
		janitor_count(s->janitor, limit);
}

void site_leave_places(const struct site *s)
{
	if (s->allocation >= 0)
		ident_release_all_places(s->allocation);
}

/* Without these a lease could not lower what its person may use. */
static int has_kernels_limits(const struct cgroup *cg)
{
	const unsigned need = CGROUP_LIMIT_MEMORY | CGROUP_LIMIT_PIDS;

	return (cg->enforced & need) == need;
}

/* Choose the directory of the person of the session. Root's own sessions are
 * one person's. */
static int choose_person(const struct spec_made *made, int lock,
	struct cgroup_caps *caps, struct err *e)
{
	if (made && made->ahead)
		cgroup_person_choose_new(caps);
	else if (made && ident_person_lock(lock, made->person, e) < 0)
		return -1;
	else
		cgroup_person_choose(caps, made ? made->person : 0);
	return 0;
}

/* Started by root: the limits while we may still set them, and then an id that
 * nobody else has. */
static int leave_root(struct site *s, int front, struct cgroup_caps *caps,
	int *nodes, struct err *e)
{
	const struct jail_spec *spec = s->spec;
	const struct spec_made *made = spec->made;
	int lock = -1;
	char name[IDENT_NAME_MAX];
	uid_t uid;

	if (ident_allocate(IDENT_ALLOCATIONS, spec->uid_lo, spec->uid_hi, &uid,
		    &lock, e) < 0 ||
		ident_allocation_name(lock, uid, name, e) < 0)
		return -1;
	if (made && !made->ahead && site_count_in(made, lock, e) < 0)
		return -1;
	s->id = uid;
	probe_cgroups(spec, caps);
	if (cgroup_move_below(caps, e) < 0 ||
		choose_person(made, lock, caps, e) < 0 ||
		limit_by_cgroup(s, front, caps, name, lock, e) < 0)
		return -1;
	if (made && !made->ahead)
		ident_person_unlock(lock, made->person);
	if (made && cgroup_bound_all(&s->cgroup, made->memory_bytes, e) < 0)
		return -1;
	if (made && !made->ahead && site_has_memory(made, &s->cgroup, e) < 0)
		return -1;
	if (made && made->ahead && !has_kernels_limits(&s->cgroup))
		return err_set(e, "no cgroup keeps the limits of this host");
	if (made && !made->ahead)
		made->tell(spec, uid);
	s->allocation = lock;
	/* A container may allow no nodes: then the jail shows the host's. */
	*nodes = mount_make_nodes(plan_nodes, PLAN_NODES_MAX);
	/* The lock stays open here too. Should the janitor be killed, the uid
	 * is ours while we live; after that the next janitor cleans up. */
	return ident_become(uid, uid, e);
}

static void no_cgroup(struct cgroup *cg)
{
	struct cgroup_caps none = {.kind = CGROUP_NONE};

	cgroup_place(cg, &none, NULL, NULL);
}

/* A cgroup that was delegated to the person already, as by systemd-run --user
 * --scope -p Delegate=yes; or else one that their systemd gives. 0; -1 with e
 * where it could have been, or an empty e. */
static int find_delegated(
	struct site *s, struct cgroup_caps *caps, struct err *e)
{
	char runtime[32];
	int r;

	snprintf(runtime, sizeof(runtime), "/run/user/%u", (unsigned)geteuid());
	e->msg[0] = '\0';
	probe_cgroups(s->spec, caps);
	if (caps->kind != CGROUP_NONE)
		return 0;
	if (!s->spec->asks_systemd)
		return -1;
	r = systemd_enter_scope(
		runtime, getpid(), true, now_ms() + ANSWER_MS, e);
	if (r < 0)
		return err_wrap(e, "your systemd gave no cgroup");
	if (r > 0)
		return -1;
	s->facts.scope = 1;
	probe_cgroups(s->spec, caps);
	return caps->kind != CGROUP_NONE ? 0 : err_set(e, "%s", caps->why);
}

/* Started by anyone else than root. Where no cgroup can be used the session
 * starts without: the warden watches the memory, and says so. */
static void use_delegated(struct site *s, int front, struct cgroup_caps *caps)
{
	struct err why;

	if (find_delegated(s, caps, &why) == 0 &&
		limit_by_cgroup(s, front, caps, NULL, -1, &why) == 0)
		return;
	no_cgroup(&s->cgroup);
	caps->kind = CGROUP_NONE;
	if (!why.msg[0])
		return;
	caps->shared = 1; /* it could be, so why it is not is worth telling */
	snprintf(caps->why, sizeof(caps->why), "%.200s", why.msg);
}

static int own_namespaces(struct err *e)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0) {
		err_errno(e, "create a user namespace");
		host_explain_userns(e);
		return -1;
	}
	if (ident_map_self(PLAN_ID, uid, PLAN_ID, gid, e) < 0)
		return -1;
	/* Only for an inode of the session's own in /proc/self/ns, where a cell
	 * could lock the host's. Some kernels have no time namespaces; some
	 * services may not use them. Our children will be in it. */
	if (unshare(CLONE_NEWTIME) < 0 && errno != EINVAL && errno != EPERM)
		return err_errno(e, "create a time namespace");
	return 0;
}

/* Note what the host offers. Only building a jail shows that user namespaces
 * work and that the jail can have a /proc; until then both are assumed. */
static void know_host(struct enforce_facts *f, const struct host *h)
{
	*f = (struct enforce_facts){
		.known = 1,
		.kernel_major = h->kernel_major,
		.kernel_minor = h->kernel_minor,
		.jail = 1,
		.no_host_swap = !host_has_swap(),
		.nproc_own = h->nproc_own,
		.landlock_abi = h->landlock_abi,
		.mount_setattr = h->mount_setattr,
		.proc = !h->no_proc,
		.asks = 1,
		.seccomp = seccomp_size(SECCOMP_GUEST),
		.root = h->euid == 0,
		.contained = h->contained,
	};
}

/* Note the limits that the session's cgroup keeps, as they were read back. */
static void know_cgroup(struct enforce_facts *f, const struct cgroup *cg,
	const struct cgroup_caps *caps)
{
	static const int versions[] = {
		[CGROUP_NONE] = 0, [CGROUP_V1] = 1, [CGROUP_V2] = 2};

	f->cgroup = versions[cg->kind];
	f->memory = !!(cg->enforced & CGROUP_LIMIT_MEMORY);
	f->swap = !!(cg->enforced & CGROUP_LIMIT_SWAP);
	f->pids = !!(cg->enforced & CGROUP_LIMIT_PIDS);
	f->cpus = !!(cg->enforced & CGROUP_LIMIT_CPU);
	f->cpu = cg->file[CGROUP_F_CPU] >= 0;
	f->freezer = cgroup_can_freeze(cg);
	f->cpus += f->cpus && cgroup_person_has_shares(cg);
	f->delegated = caps->shared;
	snprintf(f->cgroup_why, sizeof(f->cgroup_why), "%s", caps->why);
}

int site_open(
	struct site *s, const struct jail_spec *spec, int front, struct err *e)
{
	struct apply_ctx ctx = {.home_fd = -1, .nodes_fd = -1};
	struct cgroup_caps caps = {.kind = CGROUP_NONE};

	*s = (struct site){.spec = spec,
		.janitor = -1,
		.allocation = -1,
		.home = {.root = -1}};
	no_cgroup(&s->cgroup);
	if (detach_from_caller(front, spec->made ? spec->made->ahead : -1, e) <
			0 ||
		host_probe(&s->host, spec->python, e) < 0)
		return -1;
	host_resolve(&s->host, spec);
	know_host(&s->facts, &s->host);
	if (!ident_is_root())
		use_delegated(s, front, &caps);
	else if (leave_root(s, front, &caps, &ctx.nodes_fd, e) < 0)
		return -1;
	s->host.own_nodes = s->facts.own_nodes = ctx.nodes_fd >= 0;
	s->facts.own_inodes = s->facts.own_nodes;
	/* Init finds out later if there can be a /proc. */
	know_cgroup(&s->facts, &s->cgroup, &caps);
	if (enforce_require(spec->require, &s->facts, ENFORCE_PROC, e) < 0)
		return -1;
	s->host.cgroup_memory = !!(s->cgroup.enforced & CGROUP_LIMIT_MEMORY);
	if (plan_make(&s->plan, spec, &s->host, e) < 0 ||
		own_namespaces(e) < 0 ||
		apply_stage(&s->plan, PLAN_WARDEN, &ctx, e) < 0 ||
		ident_set_undumpable(e) < 0)
		return -1;
	home_init(&s->home, ctx.home_fd);
	if (spec->made && spec->made->left && s->janitor >= 0)
		return janitor_give_home(s->janitor, ctx.home_fd, e);
	return 0;
}

int site_share(struct site *s, const struct site *of,
	const struct jail_spec *spec, int front, struct err *e)
{
	int keep[4 + 1 + CGROUP_ABOVE + 1 + CGROUP_FILES] = {
		0, 1, 2, front, of->home.root};
	int *files = keep + 5 + CGROUP_ABOVE + 1;

	*s = *of;
	s->spec = spec;
	s->janitor = s->allocation = -1;
	/* The leaf of the guests is frozen, and the counter of CPU time has all
	 * that the session uses: a site with neither stays beside pid 1, and
	 * its use is added up. */
	s->cgroup.enter[CGROUP_FREEZER] = -1;
	s->cgroup.file[CGROUP_F_FREEZE] = s->cgroup.file[CGROUP_F_EVENTS] = -1;
	s->cgroup.file[CGROUP_F_CPU] = -1;
	for (int i = CGROUP_F_MOST; i < CGROUP_FILES; i++)
		s->cgroup.file[i] = -1;
	for (int i = 0; i < CGROUP_CONTROLLERS; i++)
		s->cgroup.held[i] = -1;
	memcpy(keep + 5, s->cgroup.enter, sizeof(s->cgroup.enter));
	memcpy(files, s->cgroup.file, sizeof(s->cgroup.file));
	home_share(&s->home, &of->home);
	if (ident_close_fds(keep, COUNT(keep), e) < 0)
		return -1;
	return plan_make(&s->plan, spec, &s->host, e);
}

static int is_same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

/* The parts of an operation that a lease changes: sizes, in options, and
 * limits, in numbers. */
static int is_same_op(const struct plan_op *a, const struct plan_op *b)
{
	int sized = a->type == PLAN_HOME_MAKE || a->type == PLAN_TMPFS;

	return a->type == b->type && a->stage == b->stage &&
	       a->attrs == b->attrs && a->flags == b->flags &&
	       a->which == b->which &&
	       (a->number == b->number || a->type == PLAN_RLIMIT) &&
	       is_same_text(a->source, b->source) &&
	       is_same_text(a->target, b->target) &&
	       (sized || is_same_text(a->options, b->options));
}

int site_make_plan(struct site *s, struct plan *plan, struct err *e)
{
	size_t i = 0;

	if (plan_make(plan, s->spec, &s->host, e) < 0)
		return -1;
	while (i < plan->n && i < s->plan.n &&
		is_same_op(&plan->ops[i], &s->plan.ops[i]))
		i++;
	if (i == plan->n && i == s->plan.n)
		return 0;
	plan_fini(plan);
	return err_set(e, "the prewarmed jail does not match this request");
}

void site_take_plan(struct site *s, struct plan *plan)
{
	plan_fini(&s->plan);
	s->plan = *plan;
	*plan = (struct plan){0};
}

void site_note_jail(struct site *s, int has_proc, int own_inodes, int asks)
{
	s->facts.proc = has_proc;
	s->facts.own_inodes = own_inodes;
	s->facts.asks = asks;
	enforce_say(&s->facts, s->limited, sizeof(s->limited));
}

/* Our exit may hang in a descriptor that a front end has handed over: all that
 * others wait for is closed before. Then the session still counts for its
 * person, by a descriptor that is closed last. */
void site_close(struct site *s)
{
	home_fini(&s->home);
	if (s->allocation >= 0)
		fcntl(s->allocation, F_DUPFD_CLOEXEC, LAST_FD);
	fd_drop(&s->janitor);
	cgroup_close(&s->cgroup);
}
