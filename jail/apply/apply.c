/* SPDX-License-Identifier: MIT */
/*
 * apply.c - carry a plan out
 *
 * Runs in:   warden, init, and init's child before exec
 * Holds:     the capabilities that the stage needs (plan.h)
 * Trusts:    the plan
 * Leaves:    the stage done whole, or an error and a process that must end
 */
#include "apply.h"

#include "jail/base/io.h"
#include "jail/base/sys.h"
#include "jail/host/host.h"
#include "jail/walls/walls.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define RULES_MAX 16

static const enum landlock_class uses[PLAN_USES] = {
	[PLAN_USE_READ_EXEC] = LANDLOCK_READ_EXEC,
	[PLAN_USE_WRITE_EXEC] = LANDLOCK_WRITE_EXEC,
	[PLAN_USE_WRITE] = LANDLOCK_DEVICE,
};

static const enum seccomp_profile filters[PLAN_FILTERS] = {
	[PLAN_FILTER_INIT] = SECCOMP_INIT,
	[PLAN_FILTER_GUEST] = SECCOMP_GUEST,
	[PLAN_FILTER_NOMEM] = SECCOMP_GUEST_NOMEM,
};

/* One stage under way. */
struct apply {
	const struct plan *plan;
	struct apply_ctx *ctx;
	struct mount_root root;
	int home; /* a detached copy of its mount */
	struct landlock_rule rules[RULES_MAX];
	size_t nrules;
};

/* Verify the clone or unshare that the stage relies on, and the id maps: an
 * unmapped id reads as the overflow id. */
static int apply_identity(const struct plan_op *op, struct err *e)
{
	uid_t r, f, s;
	gid_t gr, gf, gs;

	if (getresuid(&r, &f, &s) < 0 || getresgid(&gr, &gf, &gs) < 0)
		return err_errno(e, "read own ids");
	if (r != (uid_t)op->number || f != r || s != r || gr != (gid_t)r ||
		gf != gr || gs != gr)
		return err_set(e, "not in a user namespace as %u:%u: %u:%u",
			(unsigned)op->number, (unsigned)op->number, (unsigned)f,
			(unsigned)gf);
	if (op->stage == PLAN_JAIL && getpid() != 1)
		return err_set(e, "not the first process of a pid namespace");
	return 0;
}

static int apply_private(struct err *e)
{
	if (mount_private_all(e) == 0)
		return 0;
	/* Some hosts allow a user namespace, and then nothing in it. */
	host_explain_userns(e);
	return -1;
}

static int apply_hostname(const struct plan_op *op, struct err *e)
{
	/* The NIS domain is copied from the host; this is what a new one is. */
	static const char none[] = "(none)";

	if (sethostname(op->target, strlen(op->target)) < 0 ||
		setdomainname(none, strlen(none)) < 0)
		return err_errno(e, "set the host name");
	return 0;
}

/* In our network namespace. A container may show /proc/sys read-only. */
static void tcp_set_sizes(const char *sizes)
{
	static const char *const files[] = {
		"/proc/sys/net/ipv4/tcp_rmem", "/proc/sys/net/ipv4/tcp_wmem"};

	for (int i = 0; i < 2; i++) {
		auto_close int fd = open(files[i], O_WRONLY | O_CLOEXEC);

		if (fd >= 0)
			(void)!write(fd, sizes, strlen(sizes));
	}
}

static int apply_loopback(const struct plan_op *op, struct err *e)
{
	auto_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq r = {.ifr_name = "lo"};

	if (op->options)
		tcp_set_sizes(op->options);
	if (fd >= 0 && ioctl(fd, SIOCGIFFLAGS, &r) == 0) {
		r.ifr_flags |= IFF_UP | IFF_RUNNING;
		if (ioctl(fd, SIOCSIFFLAGS, &r) == 0)
			return 0;
	}
	return err_errno(e, "bring up the loopback interface");
}

static int apply_nodes(struct apply *a, const struct plan_op *op, struct err *e)
{
	auto_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const struct mount_root host = {.fd = root, .path = "/"};
	int r = mount_attach(&host, a->ctx->nodes_fd, op->target, e);

	fd_drop(&a->ctx->nodes_fd);
	return r;
}

static int apply_home_make(
	struct apply *a, const struct plan_op *op, struct err *e)
{
	int fd = mount_tmpfs_over(op->source, op->options, op->attrs, e);

	if (fd < 0)
		return err_wrap(e, "home");
	a->ctx->home_fd = fd;
	return 0;
}

/* A source that the configuration names, or that the interpreter needs, cannot
 * be shown. The session may run as another user than its caller: a 0700
 * directory that root can read is closed to that user. */
static int explain_show(const struct plan_op *op, struct err *e)
{
	if (op->flags & PLAN_F_EXPOSED)
		err_hint(e, "jail.expose or python.packages names it");
	else if (e && e->code == EACCES)
		err_hint(e, "the user that the session runs as must be able "
			    "to read it");
	return -1;
}

/* op->target is a path of the jail; here it lies beneath the home's own mount.
 */
static int apply_home_keep(
	struct apply *a, const struct plan_op *op, struct err *e)
{
	const struct mount_root home = {.fd = a->ctx->home_fd,
		.path = a->plan->over,
		.no_setattr = a->plan->remount};
	const char *at = op->target + strlen("/home");

	if (!op->source)
		return mount_fs(&home, "tmpfs", at, op->options, op->attrs, e);
	if (mount_bind(&home, op->source, at, op->attrs, e) < 0)
		return explain_show(op, e);
	return 0;
}

static int apply_home_copy(
	struct apply *a, const struct plan_op *op, struct err *e)
{
	a->home = mount_copy(op->source, a->ctx->home_fd, e);
	/* The original mount is the warden's: its ".." is the host's root. */
	fd_drop(&a->ctx->home_fd);
	return a->home < 0 ? err_wrap(e, "home") : 0;
}

static int apply_home_show(
	struct apply *a, const struct plan_op *op, struct err *e)
{
	char path[PATH_MAX];
	int r;

	if (op->source) {
		snprintf(path, sizeof(path), "%s%s", a->root.path, op->source);
		return mount_bind(&a->root, path, op->target, op->attrs, e);
	}
	r = mount_attach(&a->root, a->home, op->target, e);
	fd_drop(&a->home);
	return r < 0 ? err_wrap(e, "home") : 0;
}

static int apply_root(struct apply *a, const struct plan_op *op, struct err *e)
{
	a->root.fd = mount_tmpfs_over(op->source, op->options, op->attrs, e);
	a->root.path = op->source;
	a->root.no_setattr = a->plan->remount;
	return a->root.fd < 0 ? err_wrap(e, "root") : 0;
}

static int apply_show(struct apply *a, const struct plan_op *op, struct err *e)
{
	int own = mount_show(&a->root, op->source, op->target, op->attrs, e);

	a->ctx->shared |= own == 0;
	return own < 0 ? explain_show(op, e) : 0;
}

static int apply_tmpfs(struct apply *a, const struct plan_op *op, struct err *e)
{
	int fd;

	if (mount_fs(&a->root, "tmpfs", op->target, op->options, op->attrs, e) <
		0)
		return -1;
	if (!(op->flags & PLAN_F_COUNTED) || a->ctx->ntmp == APPLY_TMPFS)
		return 0;
	fd = mount_open_dir(&a->root, op->target, e);
	if (fd < 0)
		return -1;
	a->ctx->tmp_fds[a->ctx->ntmp++] = fd;
	return 0;
}

static int apply_devpts(
	struct apply *a, const struct plan_op *op, struct err *e)
{
	if (mount_fs(&a->root, "devpts", op->target, op->options, op->attrs,
		    e) < 0)
		return -1;
	a->ctx->pts_fd = mount_open_dir(&a->root, op->target, e);
	return a->ctx->pts_fd < 0 ? -1 : 0;
}

/* Add a rule for Landlock. */
static int add_landlock_rule(
	struct apply *a, const struct landlock_rule *rule, struct err *e)
{
	if (a->nrules == RULES_MAX)
		return err_set(e, "more than %d Landlock rules", RULES_MAX);
	a->rules[a->nrules++] = *rule;
	return 0;
}

/*
 * Inside some containers parts of /proc are covered. There the kernel refuses a
 * fresh /proc (EPERM), or allows one only as restricted as the old one: hence
 * the second try, read-only. Without subset=pid (Linux 5.8) the jail gets no
 * /proc: a whole one shows much of the host.
 *
 * Guests get it read-only, because they could lower their oom_score_adj. Init
 * writes that for them, through a /proc of its own, which is mounted nowhere.
 * The warden looks through it too: the one in the jail has inodes whose locks a
 * guest can hold for long, when it lists a directory into memory that it keeps
 * from being mapped.
 */
static int apply_proc(struct apply *a, const struct plan_op *op, struct err *e)
{
	const unsigned attrs[] = {op->attrs & ~SYS_ATTR_RDONLY, op->attrs};
	struct landlock_rule rule = {.fd = -1, .cls = LANDLOCK_WRITE};

	if (mount_fs(&a->root, "proc", op->target, op->options, op->attrs, e) ==
		0) {
		for (int i = 0; i < 2 && rule.fd < 0; i++)
			rule.fd = mount_detached(
				"proc", op->options, attrs[i], op->target, e);
		a->ctx->proc_fd = rule.fd;
		return rule.fd < 0 ? -1 : add_landlock_rule(a, &rule, e);
	}
	if (op->number)
		return err_hint(e, "jail.require asks for proc; a container "
				   "that masks parts of its own /proc keeps "
				   "a jail from having one");
	return 0;
}

static int apply_pivot(struct apply *a, struct err *e)
{
	int r = mount_pivot(&a->root, e);

	fd_drop(&a->root.fd);
	return r < 0 ? err_wrap(e, "root") : 0;
}

/* Read the limit back: some hosts accept a limit and ignore it. */
static int apply_rlimit(const struct plan_op *op, struct err *e)
{
	const rlim_t want = (rlim_t)op->number;
	struct rlimit r;

	/* A lower limit of the caller stays: it cannot be raised. */
	if (getrlimit((unsigned)op->which, &r) < 0)
		return err_errno(e, "read resource limit %d", op->which);
	if (r.rlim_max > want)
		r.rlim_max = want;
	r.rlim_cur = r.rlim_max;
	if (setrlimit((unsigned)op->which, &r) < 0)
		return err_errno(e, "set resource limit %d", op->which);
	if (getrlimit((unsigned)op->which, &r) < 0 || r.rlim_cur > want ||
		r.rlim_max > want)
		return err_set(e,
			"set resource limit %d: the kernel keeps "
			"another value",
			op->which);
	return 0;
}

/*
 * Which process the kernel kills first when memory runs out. This is a
 * preference, so a jail without a writable /proc goes without. Init writes it
 * for each guest through this descriptor (spawn.c), which is opened before init
 * becomes undumpable: after that the file belongs to root.
 */
static int apply_oom(struct apply *a, const struct plan_op *op, struct err *e)
{
	a->ctx->guest_oom = (int)op->number;
	a->ctx->oom_fd = openat(
		a->ctx->proc_fd, "self/oom_score_adj", O_RDWR | O_CLOEXEC);
	if (a->ctx->oom_fd < 0 && a->ctx->proc_fd >= 0 && errno != EROFS)
		return err_errno(e, "open oom_score_adj");
	return 0;
}

static int apply_no_huge(struct err *e)
{
	if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) < 0)
		return err_errno(e, "turn huge pages off");
	if (prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) != 1)
		return err_set(e, "huge pages are not off");
	return 0;
}

static int apply_nice(const struct plan_op *op, struct err *e)
{
	int now = getpriority(PRIO_PROCESS, 0);

	if (now < (int)op->number &&
		setpriority(PRIO_PROCESS, 0, (int)op->number) < 0)
		return err_errno(e, "set niceness %d", (int)op->number);
	return 0;
}

static int apply_chdir(const struct plan_op *op, struct err *e)
{
	if (chdir(op->target) < 0)
		return err_errno(e, "enter %s", op->target);
	return 0;
}

static int apply_allow(struct apply *a, const struct plan_op *op, struct err *e)
{
	const struct landlock_rule rule = {.path = op->target,
		.fd = -1,
		.cls = uses[op->which],
		.optional = 1};

	return add_landlock_rule(a, &rule, e);
}

static int apply_landlock(
	struct apply *a, const struct plan_op *op, struct err *e)
{
	int abi = landlock_confine(a->rules, a->nrules,
		LANDLOCK_NEED_REFER | LANDLOCK_SCOPE, (int)op->number, e);

	if (abi < 0)
		return -1;
	if (abi == 0)
		return err_set(e, "Landlock was there and is gone");
	return 0;
}

static int apply_op(struct apply *a, const struct plan_op *op, struct err *e)
{
	switch (op->type) {
	case PLAN_IDENTITY:
		return apply_identity(op, e);
	case PLAN_PRIVATE:
		return apply_private(e);
	case PLAN_NODES:
		return apply_nodes(a, op, e);
	case PLAN_HOME_MAKE:
		return apply_home_make(a, op, e);
	case PLAN_HOME_KEEP:
		return apply_home_keep(a, op, e);
	case PLAN_HOSTNAME:
		return apply_hostname(op, e);
	case PLAN_LOOPBACK:
		return apply_loopback(op, e);
	case PLAN_ROOT:
		return apply_root(a, op, e);
	case PLAN_LINK:
		return mount_symlink(&a->root, op->source, op->target, e);
	case PLAN_FILE:
		return mount_file(&a->root, op->target, op->source, e);
	case PLAN_BIND:
		a->ctx->shared |= !a->plan->own_nodes;
		return mount_bind(
			&a->root, op->source, op->target, op->attrs, e);
	case PLAN_SHOW:
		return apply_show(a, op, e);
	case PLAN_TMPFS:
		return apply_tmpfs(a, op, e);
	case PLAN_DEVPTS:
		return apply_devpts(a, op, e);
	case PLAN_PROC:
		return apply_proc(a, op, e);
	case PLAN_HOME_COPY:
		return apply_home_copy(a, op, e);
	case PLAN_HOME_SHOW:
		return apply_home_show(a, op, e);
	case PLAN_RESTRICT:
		return mount_restrict(&a->root, op->target, op->attrs, e);
	case PLAN_PIVOT:
		return apply_pivot(a, e);
	case PLAN_HIDE:
		a->ctx->tree_fd = mount_hide(e);
		return a->ctx->tree_fd < 0 ? err_wrap(e, "root") : 0;
	case PLAN_RLIMIT:
		return apply_rlimit(op, e);
	case PLAN_DROP:
		return ident_drop(e);
	case PLAN_UNDUMPABLE:
		return ident_set_undumpable(e);
	case PLAN_NO_HUGE:
		return apply_no_huge(e);
	case PLAN_OOM:
		return apply_oom(a, op, e);
	case PLAN_NICE:
		return apply_nice(op, e);
	case PLAN_UMASK:
		umask((mode_t)op->number);
		return 0;
	case PLAN_CHDIR:
		return apply_chdir(op, e);
	case PLAN_ALLOW:
		return apply_allow(a, op, e);
	case PLAN_LANDLOCK:
		return apply_landlock(a, op, e);
	case PLAN_ASK:
		return seccomp_hear(&a->ctx->notify_fd, op->number != 0, e);
	case PLAN_SECCOMP:
		if (a->ctx->shared && op->which == PLAN_FILTER_INIT)
			return seccomp_load(SECCOMP_INIT_SHARED, e);
		if (op->which == PLAN_FILTER_SIDE)
			return seccomp_pairs_only(e);
		return seccomp_load(filters[op->which], e);
	}
	return err_set(e, "unknown operation %d", (int)op->type);
}

int apply_stage(const struct plan *p, enum plan_stage stage,
	struct apply_ctx *ctx, struct err *e)
{
	struct apply a = {
		.plan = p, .ctx = ctx, .root = {.fd = -1}, .home = -1};

	if (stage == PLAN_JAIL)
		ctx->tree_fd = ctx->pts_fd = ctx->proc_fd = ctx->oom_fd =
			ctx->notify_fd = -1;
	for (size_t i = 0; i < p->n; i++) {
		if (p->ops[i].stage != stage)
			continue;
		if (apply_op(&a, &p->ops[i], e) < 0) {
			fd_drop(&a.root.fd);
			fd_drop(&a.home);
			err_kind_set(e, ERR_JAIL);
			/* In a guest our own filter may be the cause. */
			if (stage != PLAN_GUEST)
				host_explain_call(e);
			return err_wrap(e, "build the jail");
		}
	}
	return 0;
}
