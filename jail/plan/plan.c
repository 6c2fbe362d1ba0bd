/* SPDX-License-Identifier: MIT */
/*
 * plan.c - limits and host in, an ordered list of operations out
 *
 * Runs in:   warden, before its namespaces; front end for --check
 * Trusts:    the spec's numbers; not the paths it names
 * Leaves:    a struct plan
 *
 * The order is the argument for safety: everything is shown read-only before
 * the root is switched, the host's root is let go of before capabilities are,
 * and the system call filter comes last.
 */
#include "plan.h"

#include "jail/base/path.h"
#include "jail/base/sys.h"
#include "jail/host/host.h"
#include "jail/spec.h"
#include "show.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define KIB 1024ll
#define MIB (1024 * KIB)

#define TMPFS_ATTRS (SYS_ATTR_NOSUID | SYS_ATTR_NODEV)
#define SHOW_ATTRS (SYS_ATTR_RDONLY | SYS_ATTR_NOSUID | SYS_ATTR_NODEV)
#define NODE_ATTRS (SYS_ATTR_NOSUID | SYS_ATTR_NOEXEC)

/* Most directories right below /home that something is shown in. */
#define HOME_PARTS_MAX 8

/* A plan in the making; `failed` is sticky, so that a list of additions needs
 * one check at its end. */
struct maker {
	struct plan *p;
	const struct jail_spec *spec;
	const struct host *h;
	struct plan_show show;
	const char *parts[HOME_PARTS_MAX]; /* see gather_parts() */
	int nparts;
	enum plan_stage stage;
	int failed;
};

/* ---- adding ---- */

static struct plan_op *add(struct maker *m, enum plan_op_type type)
{
	struct plan *p = m->p;
	struct plan_op *op;

	if (p->n == PLAN_OPS_MAX) {
		m->failed = 1;
		p->n--;
	}
	op = &p->ops[p->n++];
	*op = (struct plan_op){.type = type, .stage = m->stage};
	return op;
}

__attribute__((format(printf, 2, 3))) static const char *text(
	struct maker *m, const char *fmt, ...)
{
	struct plan *p = m->p;
	char *s = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (p->ntexts == PLAN_TEXTS_MAX || vasprintf(&s, fmt, ap) < 0) {
		m->failed = 1;
		s = NULL;
	}
	va_end(ap);
	if (s)
		p->texts[p->ntexts++] = s;
	return s ? s : "";
}

static void add_number(struct maker *m, enum plan_op_type type, int64_t number)
{
	add(m, type)->number = number;
}

static void add_target(
	struct maker *m, enum plan_op_type type, const char *target)
{
	add(m, type)->target = target;
}

static void add_link(struct maker *m, const char *source, const char *target)
{
	struct plan_op *op = add(m, PLAN_LINK);

	op->source = source;
	op->target = target;
}

/* At the path it has outside. */
static struct plan_op *add_shown(struct maker *m, enum plan_op_type type,
	const char *path, unsigned attrs)
{
	struct plan_op *op = add(m, type);

	op->source = op->target = path;
	op->attrs = attrs;
	return op;
}

static struct plan_op *add_mount(struct maker *m, enum plan_op_type type,
	const char *target, const char *options, unsigned attrs)
{
	struct plan_op *op = add(m, type);

	op->target = target;
	op->options = options;
	op->attrs = attrs;
	return op;
}

static struct plan_op *add_tmpfs(
	struct maker *m, const char *target, int64_t bytes, int files, int mode)
{
	return add_mount(m, PLAN_TMPFS, target,
		text(m, "size=%lld,nr_inodes=%d,mode=%04o", (long long)bytes,
			files, mode),
		TMPFS_ATTRS);
}

/* ---- what is shown of the host ---- */

static int is_root_path(const struct maker *m, const char *path)
{
	for (int i = 0; i < HOST_ROOTS; i++)
		if (m->h->roots[i].path && !strcmp(m->h->roots[i].path, path))
			return 1;
	return 0;
}

static int show_add(struct maker *m, const char *path, enum plan_show_from from,
	struct err *e)
{
	return plan_show_add(&m->show, path, host_real(m->h, path), from, e);
}

static int gather(struct maker *m, struct err *e)
{
	const struct host *h = m->h;
	const char *const *expose = m->spec->expose;

	for (int i = 0; i < HOST_ROOTS; i++)
		if (h->roots[i].kind == HOST_DIR &&
			show_add(m, h->roots[i].path, SHOW_PYTHON, e) < 0)
			return -1;
	for (int i = 0; i < h->netc; i++)
		if (show_add(m, h->etc[i], SHOW_PYTHON, e) < 0)
			return -1;
	for (int i = 0; i < h->python.nprefixes; i++)
		if (show_add(m, h->python.prefixes[i], SHOW_PYTHON, e) < 0)
			return -1;
	if (m->spec->packages &&
		show_add(m, m->spec->packages, SHOW_PACKAGES, e) < 0)
		return -1;
	for (; expose && *expose; expose++)
		if (show_add(m, *expose, SHOW_EXPOSED, e) < 0)
			return -1;
	plan_show_settle(&m->show);
	return 0;
}

/* The first directory that can be built over without hiding a source. */
static int choose_over(struct maker *m, struct err *e)
{
	for (int i = 0; i < m->h->nattach; i++) {
		const char *dir = m->h->attach[i];
		int hides = 0;

		for (int k = 0; k < m->show.n && !hides; k++)
			hides = path_is_beneath(m->show.v[k].real, dir);
		if (!hides) {
			m->p->over = dir;
			return 0;
		}
	}
	err_set(e, "no directory to build over: each one there is holds "
		   "something that is to be shown");
	err_hint(e, "an empty directory /mnt would do");
	return err_kind_set(e, ERR_JAIL);
}

/* Links on the interpreter's way that nothing shown contains. */
static int link_is_needed(const struct maker *m, const char *path)
{
	return !is_root_path(m, path) && !plan_show_has(&m->show, path);
}

/* Why a link of the host cannot be made in the jail, or NULL. */
static const char *link_is_bad(const struct maker *m, const char *path)
{
	static const char *const own[] = {
		"/home", "/tmp", "/etc", "/dev", "/dev/shm", "/proc", "/sys"};

	for (size_t i = 0; i < COUNT(own); i++)
		if (!strcmp(path, own[i]))
			return "something else in the jail";
	if (link_is_needed(m, path) && path_is_beneath(path, "/home") &&
		!strchr(path + 6, '/'))
		return "in the session's home, and could be replaced there";
	return NULL;
}

static int check_links(const struct maker *m, struct err *e)
{
	const struct host_python *py = &m->h->python;

	for (int i = 0; i < py->nlinks; i++) {
		const char *path = py->links[i].path;
		const char *why = link_is_bad(m, path);

		if (!why)
			continue;
		err_set(e, "python: %s leads through %s, a link that is %s",
			py->path, path, why);
		err_kind_set(e, ERR_CONFIG);
		return err_hint(e, "name the interpreter by its real path");
	}
	return 0;
}

static void part_add(struct maker *m, const char *path)
{
	size_t n;

	if (!path_is_beneath(path, "/home"))
		return;
	n = 6 + strcspn(path + 6, "/");
	for (int i = 0; i < m->nparts; i++)
		if (!strncmp(m->parts[i], path, n) && !m->parts[i][n])
			return;
	if (m->nparts == HOME_PARTS_MAX)
		m->failed = 1;
	else
		m->parts[m->nparts++] = text(m, "%.*s", (int)n, path);
}

/*
 * What is to be seen below /home gets a place there that is a mount of its own,
 * in the jail and, for as long as there is a home, in the warden's namespace: a
 * mount point cannot be renamed or removed by those who see the mount. So
 * nothing that a guest leaves in the home, or that is removed from it on its
 * person's behalf, is ever in the way of the next jail.
 */
static void gather_parts(struct maker *m)
{
	const struct host_python *py = &m->h->python;

	for (int i = 0; i < m->show.n; i++)
		part_add(m, m->show.v[i].path);
	for (int i = 0; i < py->nlinks; i++)
		if (link_is_needed(m, py->links[i].path))
			part_add(m, py->links[i].path);
}

/* In the jail: a small file system for what lies deeper, if the part is not
 * itself what is shown. */
static void show_parts(struct maker *m)
{
	for (int i = 0; i < m->nparts; i++)
		if (!plan_show_has(&m->show, m->parts[i]))
			add_tmpfs(m, m->parts[i], 64 * KIB, 256, 0755);
}

static void close_parts(struct maker *m)
{
	for (int i = 0; i < m->nparts; i++)
		if (!plan_show_has(&m->show, m->parts[i]))
			add_mount(m, PLAN_RESTRICT, m->parts[i], NULL,
				SYS_ATTR_RDONLY);
}

/* In the home itself: what is shown, which may be a file, or nothing at all. */
static void keep_parts(struct maker *m)
{
	for (int i = 0; i < m->nparts; i++) {
		struct plan_op *op = add(m, PLAN_HOME_KEEP);

		op->target = m->parts[i];
		op->attrs = SHOW_ATTRS;
		if (plan_show_has(&m->show, op->target))
			op->source = host_real(m->h, op->target);
		else
			op->options = "size=4096,nr_inodes=1,mode=0755";
	}
}

static void show_host(struct maker *m)
{
	const struct host_python *py = &m->h->python;

	for (int i = 0; i < m->show.n; i++) {
		const struct plan_shown *s = &m->show.v[i];
		struct plan_op *op =
			add_shown(m, PLAN_SHOW, s->path, SHOW_ATTRS);

		op->source = s->real;
		if (s->from != SHOW_PYTHON)
			op->flags |= PLAN_F_EXPOSED;
	}
	for (int i = 0; i < HOST_ROOTS; i++)
		if (m->h->roots[i].kind == HOST_LINK)
			add_link(m, m->h->roots[i].link, m->h->roots[i].path);
	for (int i = 0; i < py->nlinks; i++)
		if (link_is_needed(m, py->links[i].path))
			add_link(m, py->links[i].text, py->links[i].path);
}

/* ---- the stages ---- */

static void plan_warden(struct maker *m)
{
	const struct limits *l = &m->spec->limits;
	struct plan_op *op;

	m->stage = PLAN_WARDEN;
	add_number(m, PLAN_IDENTITY, PLAN_ID);
	add(m, PLAN_PRIVATE);
	op = add(m, PLAN_HOME_MAKE);
	op->source = m->p->over;
	op->options = text(m, "size=%lld,nr_inodes=%d,mode=0700",
		(long long)l->home_bytes, l->home_files + 1 + m->nparts);
	op->attrs = TMPFS_ATTRS;
	keep_parts(m);
}

static const struct {
	const char *path, *content;
} own_files[] = {
	{"/etc/passwd", "root:x:0:0:root:/:/usr/sbin/nologin\n"
			"user:x:1000:1000:user:/home:/bin/sh\n"
			"nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"},
	{"/etc/group", "root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n"},
	{"/etc/hosts", "127.0.0.1 localhost cellblock\n::1 localhost\n"},
	{"/etc/host.conf", "multi on\n"},
	{"/etc/nsswitch.conf",
		"passwd: files\ngroup: files\nhosts: files dns\n"},
	{"/etc/resolv.conf", ""},
};

#define ZERO "/dev/zero"

static const char *const nodes[] = {"/dev/null", ZERO, "/dev/full",
	"/dev/random", "/dev/urandom", "/dev/tty"};

static const struct {
	const char *text, *path;
} dev_links[] = {
	{"pts/ptmx", "/dev/ptmx"},
	{"/proc/self/fd", "/dev/fd"},
	{"/proc/self/fd/0", "/dev/stdin"},
	{"/proc/self/fd/1", "/dev/stdout"},
	{"/proc/self/fd/2", "/dev/stderr"},
};

static void plan_dev(struct maker *m)
{
	for (size_t i = 0; i < COUNT(nodes); i++) {
		struct plan_op *op =
			add_shown(m, PLAN_BIND, nodes[i], NODE_ATTRS);

		/* Mapped and shared, /dev/zero keeps pages that nobody counts.
		 * /dev/full reads the same and cannot be mapped. */
		if (!m->h->cgroup_memory && !strcmp(nodes[i], ZERO))
			op->source = "/dev/full";
	}
	/* Ptys are taken from a pool of the whole host. */
	add_mount(m, PLAN_DEVPTS, "/dev/pts",
		"newinstance,ptmxmode=0666,mode=0600,max=16",
		SYS_ATTR_NOSUID | SYS_ATTR_NOEXEC);
	for (size_t i = 0; i < COUNT(dev_links); i++)
		add_link(m, dev_links[i].text, dev_links[i].path);
	add_tmpfs(m, "/dev/shm", m->p->tmp_bytes, 4096, 01777)->flags |=
		PLAN_F_COUNTED;
}

static int requires(const struct jail_spec *spec, const char *word)
{
	const char *const *r = spec->require;

	for (; r && *r; r++)
		if (!strcmp(*r, word))
			return 1;
	return 0;
}

static void plan_root(struct maker *m)
{
	struct plan_op *op = add(m, PLAN_HOME_COPY);

	op->source = m->p->over; /* before the root covers it */
	op = add(m, PLAN_ROOT);
	op->source = m->p->over;
	op->options = "size=4194304,nr_inodes=1024,mode=0755";
	op->attrs = TMPFS_ATTRS;
	for (size_t i = 0; i < COUNT(own_files); i++) {
		op = add(m, PLAN_FILE);
		op->source = own_files[i].content;
		op->target = own_files[i].path;
	}
	add_tmpfs(m, "/tmp", m->p->tmp_bytes, 4096, 01777)->flags |=
		PLAN_F_COUNTED;
	plan_dev(m);
	if (!m->h->no_proc || requires(m->spec, "proc")) {
		op = add_mount(m, PLAN_PROC, "/proc", "subset=pid",
			SYS_ATTR_NOSUID | SYS_ATTR_NODEV | SYS_ATTR_NOEXEC);
		op->number = requires(m->spec, "proc");
	}
	add_target(m, PLAN_HOME_SHOW, "/home");
	show_parts(m);
	show_host(m);
	close_parts(m);
	add_mount(m, PLAN_RESTRICT, "/", NULL, SYS_ATTR_RDONLY);
	add(m, PLAN_PIVOT);
}

static void add_rlimit(struct maker *m, int which, int64_t number)
{
	struct plan_op *op = add(m, PLAN_RLIMIT);

	op->which = which;
	op->number = number;
}

static void plan_allow(struct maker *m, const char *path, int cls)
{
	struct plan_op *op = add(m, PLAN_ALLOW);

	op->target = path;
	op->which = cls;
}

/* Before ABI 2 a rename across directories is refused whatever the rules say,
 * which breaks ordinary programs. */
static void plan_landlock(struct maker *m)
{
	if (m->h->landlock_abi < 2)
		return;
	plan_allow(m, "/", PLAN_USE_READ_EXEC);
	plan_allow(m, "/dev", PLAN_USE_WRITE);
	plan_allow(m, "/dev/shm", PLAN_USE_WRITE_EXEC);
	plan_allow(m, "/home", PLAN_USE_WRITE_EXEC);
	plan_allow(m, "/proc", PLAN_USE_WRITE);
	plan_allow(m, "/tmp", PLAN_USE_WRITE_EXEC);
	add_number(m, PLAN_LANDLOCK, m->h->landlock_abi);
}

static void plan_jail(struct maker *m)
{
	m->stage = PLAN_JAIL;
	add_number(m, PLAN_IDENTITY, PLAN_ID);
	add_target(m, PLAN_HOSTNAME, "cellblock");
	if (m->spec->limits.network == NETWORK_LOOPBACK)
		add(m, PLAN_LOOPBACK);
	plan_root(m);
	add_number(m, PLAN_OOM, 500);
	/* Counted for this user namespace from now on: set any earlier it
	 * would count every process of the user on the host. Older kernels
	 * count those all the same, so what there is beside is added. */
	add_rlimit(m, RLIMIT_NPROC, m->p->processes_hard + m->h->nproc_others);
	add(m, PLAN_DROP);
	plan_landlock(m);
	add(m, PLAN_UNDUMPABLE);
	add(m, PLAN_SECCOMP)->which = PLAN_FILTER_INIT;
}

static void plan_rlimits(struct maker *m)
{
	const struct limits *l = &m->spec->limits;
	int64_t file = l->home_bytes > m->p->tmp_bytes ? l->home_bytes
						       : m->p->tmp_bytes;

	/* None; with 0 the kernel would still start, as root and on the host,
	 * the program that core dumps are piped to, if they are (core(5)). */
	add_rlimit(m, RLIMIT_CORE, 1);
	add_rlimit(m, RLIMIT_FSIZE, file);
	add_rlimit(m, RLIMIT_NOFILE, 1024);
	add_rlimit(m, RLIMIT_STACK, 8 * MIB);
	add_rlimit(m, RLIMIT_MEMLOCK, 64 * KIB);
	add_rlimit(m, RLIMIT_MSGQUEUE, 0);
	add_rlimit(m, RLIMIT_RTPRIO, 0);
	/* Each process by itself: a brake on bursts, no wall. */
	if (!m->h->cgroup_memory)
		add_rlimit(m, RLIMIT_DATA, l->memory_bytes);
}

static void plan_guest(struct maker *m)
{
	m->stage = PLAN_GUEST;
	add_number(m, PLAN_NICE, 5);
	add_number(m, PLAN_UMASK, 022);
	add_target(m, PLAN_CHDIR, "/home");
	plan_rlimits(m);
	add(m, PLAN_SECCOMP)->which =
		m->h->cgroup_memory ? PLAN_FILTER_GUEST : PLAN_FILTER_NOMEM;
}

int plan_spare_processes(const struct limits *l)
{
	return l->undo + 3;
}

int plan_make(struct plan *p, const struct jail_spec *spec,
	const struct host *h, struct err *e)
{
	struct maker m = {.p = p, .spec = spec, .h = h};

	*p = (struct plan){.tmp_bytes = spec->limits.memory_bytes / 4,
		.processes_hard = spec->limits.processes +
				  plan_spare_processes(&spec->limits)};
	p->ops = calloc(PLAN_OPS_MAX, sizeof(*p->ops));
	if (!p->ops)
		return err_errno(e, "plan the jail");
	if (gather(&m, e) < 0 || check_links(&m, e) < 0 ||
		choose_over(&m, e) < 0) {
		plan_fini(p);
		return -1;
	}
	gather_parts(&m);
	plan_warden(&m);
	plan_jail(&m);
	plan_guest(&m);
	for (size_t i = 0; !h->mount_setattr && i < p->n; i++)
		p->ops[i].flags |= PLAN_F_REMOUNT;
	if (m.failed) {
		plan_fini(p);
		return err_set(e, "plan the jail: it is too large");
	}
	return 0;
}

void plan_fini(struct plan *p)
{
	free(p->ops);
	for (int i = 0; i < p->ntexts; i++)
		free(p->texts[i]);
	memset(p, 0, sizeof(*p));
}
