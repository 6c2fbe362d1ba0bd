/* SPDX-License-Identifier: MIT */
/*
 * plan.c - limits and host in, an ordered list of operations out
 *
 * Runs in:   warden, before its namespaces; front end for --check -v
 * Trusts:    the spec's numbers; not the paths it names
 * Leaves:    a struct plan, or its text
 *
 * The order is the argument for safety: everything is shown read-only before
 * the root is switched, the host's root is unmounted before capabilities are
 * dropped, and the system call filter comes last.
 */
#include "plan.h"

#include "jail/base/array.h"
#include "jail/base/path.h"
#include "jail/base/sys.h"
#include "jail/host/host.h"
#include "jail/spec.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define KIB 1024ll
#define MIB (1024 * KIB)

#define TMPFS_ATTRS (SYS_ATTR_NOSUID | SYS_ATTR_NODEV)
#define SHOW_ATTRS (SYS_ATTR_RDONLY | SYS_ATTR_NOSUID | SYS_ATTR_NODEV)
/* Read-only: a node can be written to, and its times and mode stay. */
#define NODE_ATTRS (SYS_ATTR_RDONLY | SYS_ATTR_NOSUID | SYS_ATTR_NOEXEC)

/* Why a directory is shown. */
enum show_from {
	SHOW_PYTHON,   /* the interpreter needs it */
	SHOW_PACKAGES, /* python.packages */
	SHOW_EXPOSED,  /* jail.expose */
};

/* One directory or file, and its path without links. */
struct shown {
	const char *path, *real;
	enum show_from from;
};
#define SHOW_MAX 64

/* Most directories right below /home that something is shown in. */
#define HOME_PARTS_MAX 8

/* A plan in the making. `failed` is sticky, so a list of additions needs one
 * check at its end. */
struct plan_maker {
	struct plan *p;
	const struct jail_spec *spec;
	const struct host *h;
	struct shown shown[SHOW_MAX]; /* see show_settle() */
	int nshown;
	const char *parts[HOME_PARTS_MAX]; /* see gather_parts() */
	int nparts;
	enum plan_stage stage;
	int failed;
};

/* ---- adding ---- */

static struct plan_op *add_op(struct plan_maker *m, struct plan_op op)
{
	struct plan *p = m->p;

	if (p->n == PLAN_OPS_MAX) {
		m->failed = 1;
		p->n--;
	}
	op.stage = m->stage;
	p->ops[p->n] = op;
	return &p->ops[p->n++];
}

/* add(m, PLAN_CHDIR, .target = "/home") */
#define add(m, op, ...) add_op(m, (struct plan_op){.type = (op), __VA_ARGS__})

__attribute__((format(printf, 2, 3))) static const char *text(
	struct plan_maker *m, const char *fmt, ...)
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

static struct plan_op *add_tmpfs(struct plan_maker *m, const char *target,
	int64_t bytes, int files, int mode)
{
	return add(m, PLAN_TMPFS, .target = target,
		.options = text(m, "size=%" PRId64 ",nr_inodes=%d,mode=%04o",
			bytes, files, mode),
		.attrs = TMPFS_ATTRS);
}

/* ---- what is shown of the host ---- */

/* No jail shows this path; with `below`, nothing under it either. */
static const struct {
	const char *path;
	int below;
	const char *why;
} forbidden[] = {
	{"/", 0, "it is the whole host"},
	{"/proc", 1, "it would hide the jail's own"},
	{"/dev", 1, "it would hide the jail's own"},
	{"/sys", 1, "limits can be lifted from there"},
	{"/run", 1, "services of the host listen there"},
	{"/var/run", 1, "services of the host listen there"},
	{"/home", 0, "it would hide the session's home"},
	{"/tmp", 0, "it would hide the jail's own"},
	{"/etc", 0, "it would hide the jail's own; name the files you need"},
	{"/etc/passwd", 1, "it would hide the jail's own"},
	{"/etc/group", 1, "it would hide the jail's own"},
	{"/etc/hosts", 1, "it would hide the jail's own"},
	{"/etc/host.conf", 1, "it would hide the jail's own"},
	{"/etc/nsswitch.conf", 1, "it would hide the jail's own"},
	{"/etc/resolv.conf", 1, "it would hide the jail's own"},
	{"/var", 0, "it is too much of the host; name the directories"},
};

/* True if path_clean() leaves the path as it is. */
static bool is_plain(const char *path)
{
	char clean[PATH_MAX];

	if (strlen(path) >= sizeof(clean))
		return false;
	strcpy(clean, path);
	return path_clean(clean, false) == 0 && !strcmp(clean, path);
}

/* Check that the host's `path` may be shown in a jail: an absolute path,
 * without "..", that hides nothing of the jail's own. */
static int check_path(const char *path, struct err *e)
{
	if (path[0] != '/')
		return err_set(e, "%s cannot be shown: not an absolute path",
			path[0] ? path : "''");
	if (!is_plain(path))
		return err_set(e,
			"%s cannot be shown: write it without //, . and ..",
			path);
	for (size_t i = 0; i < COUNT(forbidden); i++)
		if (forbidden[i].below
				? path_is_beneath(path, forbidden[i].path)
				: !strcmp(path, forbidden[i].path))
			return err_set(e, "%s cannot be shown: %s", path,
				forbidden[i].why);
	return 0;
}

/* Directories that hold a person's own things. An interpreter installed right
 * in one (prefix = $HOME) would show all of it. */
static int is_personal(const char *path)
{
	return !strcmp(path, "/root") ||
	       (path_is_beneath(path, "/home") && !strchr(path + 6, '/'));
}

/* A path of the configuration must not be forbidden under any of its names. The
 * files of /etc that Python needs may lie anywhere on the host. */
static int check_show(
	const char *path, const char *real, enum show_from from, struct err *e)
{
	if (check_path(path, e) < 0)
		return -1;
	if (from != SHOW_PYTHON && check_path(real, e) < 0)
		return strcmp(real, path)
			       ? err_wrap(e, "%s leads elsewhere", path)
			       : -1;
	if (from == SHOW_PYTHON && is_personal(path)) {
		err_set(e, "%s cannot be shown: it is somebody's home", path);
		return err_hint(e, "install Python, or make the virtual "
				   "environment, in a directory of its own");
	}
	return 0;
}

static int show_add(struct plan_maker *m, const char *path, enum show_from from,
	struct err *e)
{
	static const char *const named[] = {
		[SHOW_PYTHON] = "python",
		[SHOW_PACKAGES] = "python.packages",
		[SHOW_EXPOSED] = "jail.expose",
	};
	const char *real = host_real(m->h, path);

	if (check_show(path, real, from, e) < 0) {
		err_kind_set(e, ERR_CONFIG);
		return err_wrap(e, "%s", named[from]);
	}
	if (m->nshown == SHOW_MAX) {
		err_set(e, "%s: more than %d directories to show", named[from],
			SHOW_MAX);
		return err_kind_set(e, ERR_CONFIG);
	}
	m->shown[m->nshown++] = (struct shown){path, real, from};
	return 0;
}

static int by_path(const void *a, const void *b)
{
	const struct shown *x = a, *y = b;
	int order = strcmp(x->path, y->path);

	return order ? order : (int)x->from - (int)y->from;
}

/* True if one of the paths shows `path`. */
static int is_shown(const struct plan_maker *m, const char *path)
{
	for (int i = 0; i < m->nshown; i++)
		if (path_is_beneath(path, m->shown[i].path))
			return 1;
	return 0;
}

/* Sort, and drop each path that another path already shows. */
static void show_settle(struct plan_maker *m)
{
	int n = m->nshown;

	qsort(m->shown, (size_t)n, sizeof(m->shown[0]), by_path);
	m->nshown = 0; /* those that stay */
	for (int i = 0; i < n; i++)
		if (!is_shown(m, m->shown[i].path))
			m->shown[m->nshown++] = m->shown[i];
}

static int gather_shown(struct plan_maker *m, struct err *e)
{
	const struct host *h = m->h;
	const char *const *packages = m->spec->packages;
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
	for (; packages && *packages; packages++)
		if (show_add(m, *packages, SHOW_PACKAGES, e) < 0)
			return -1;
	for (; expose && *expose; expose++)
		if (show_add(m, *expose, SHOW_EXPOSED, e) < 0)
			return -1;
	show_settle(m);
	return 0;
}

/* The first directory of the host that can be mounted over without hiding
 * anything that is shown. */
static int choose_over(struct plan_maker *m, struct err *e)
{
	for (int i = 0; i < m->h->nattach; i++) {
		const char *dir = m->h->attach[i];
		int hides = 0;

		for (int k = 0; k < m->nshown && !hides; k++)
			hides = path_is_beneath(m->shown[k].real, dir);
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

static int is_root_path(const struct plan_maker *m, const char *path)
{
	for (int i = 0; i < HOST_ROOTS; i++)
		if (m->h->roots[i].path && !strcmp(m->h->roots[i].path, path))
			return 1;
	return 0;
}

/* Links on the interpreter's way that nothing shown contains. */
static int link_is_needed(const struct plan_maker *m, const char *path)
{
	return !is_root_path(m, path) && !is_shown(m, path);
}

/* Why a link of the host cannot be made in the jail, or NULL. */
static const char *link_is_bad(const struct plan_maker *m, const char *path)
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

static int check_links(const struct plan_maker *m, struct err *e)
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

static void part_add(struct plan_maker *m, const char *path)
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
 * Directories right below /home that something is shown in. Each is a mount of
 * its own, in the jail and in the warden's home: the kernel lets nobody who
 * sees a mount rename or remove its mount point. So nothing that a guest leaves
 * in the home, and nothing that is removed from it for the person, blocks the
 * next jail.
 */
static void gather_parts(struct plan_maker *m)
{
	const struct host_python *py = &m->h->python;

	for (int i = 0; i < m->nshown; i++)
		part_add(m, m->shown[i].path);
	for (int i = 0; i < py->nlinks; i++)
		if (link_is_needed(m, py->links[i].path))
			part_add(m, py->links[i].path);
}

/* In the jail: a small file system for what lies deeper, unless the part itself
 * is shown. */
static void show_parts(struct plan_maker *m)
{
	for (int i = 0; i < m->nparts; i++)
		if (!is_shown(m, m->parts[i]))
			add_tmpfs(m, m->parts[i], 64 * KIB, 256, 0755);
}

static void close_parts(struct plan_maker *m)
{
	for (int i = 0; i < m->nparts; i++)
		if (!is_shown(m, m->parts[i]))
			add(m, PLAN_RESTRICT, .target = m->parts[i],
				.attrs = SYS_ATTR_RDONLY);
}

/* In the home itself: the part that is shown, which may be a file, or an empty
 * file system. */
static void keep_parts(struct plan_maker *m)
{
	for (int i = 0; i < m->nparts; i++) {
		struct plan_op *op = add(m, PLAN_HOME_KEEP,
			.target = m->parts[i], .attrs = SHOW_ATTRS);

		if (is_shown(m, op->target))
			op->source = host_real(m->h, op->target);
		else
			op->options = "size=4096,nr_inodes=1,mode=0755";
	}
}

static void show_host(struct plan_maker *m)
{
	const struct host_python *py = &m->h->python;

	for (int i = 0; i < m->nshown; i++) {
		const struct shown *s = &m->shown[i];

		add(m, PLAN_SHOW, .target = s->path, .source = s->real,
			.attrs = SHOW_ATTRS,
			.flags = s->from != SHOW_PYTHON ? PLAN_F_EXPOSED : 0);
	}
	for (int i = 0; i < HOST_ROOTS; i++)
		if (m->h->roots[i].kind == HOST_LINK)
			add(m, PLAN_LINK, .target = m->h->roots[i].path,
				.source = m->h->roots[i].link);
	for (int i = 0; i < py->nlinks; i++)
		if (link_is_needed(m, py->links[i].path))
			add(m, PLAN_LINK, .target = py->links[i].path,
				.source = py->links[i].text);
}

/* Code that was written for Onyx's interpreter names its home: /workspace. It
 * is a mount and no link, so that getcwd(2) can say it. A directory of the host
 * that is shown there comes first. */
static void show_workspace(struct plan_maker *m)
{
	static const char path[] = "/workspace";
	const struct host_python *py = &m->h->python;

	for (int i = 0; i < m->nshown; i++)
		if (path_is_beneath(m->shown[i].path, path))
			return;
	for (int i = 0; i < py->nlinks; i++)
		if (path_is_beneath(py->links[i].path, path))
			return;
	add(m, PLAN_HOME_SHOW, .target = path, .source = "/home",
		.attrs = TMPFS_ATTRS);
}

/* ---- the stages ---- */

static void plan_warden(struct plan_maker *m)
{
	const struct limits *l = &m->spec->limits;

	m->stage = PLAN_WARDEN;
	add(m, PLAN_IDENTITY, .number = PLAN_ID);
	add(m, PLAN_PRIVATE);
	add(m, PLAN_HOME_MAKE, .source = m->p->over,
		.options = text(m, "size=%" PRId64 ",nr_inodes=%d,mode=0700",
			l->home_bytes, l->home_files + 1 + m->nparts),
		.attrs = TMPFS_ATTRS);
	keep_parts(m);
	if (m->h->own_nodes)
		add(m, PLAN_NODES, .target = "/dev");
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

const char *const plan_nodes[PLAN_NODES_MAX] = {"/dev/null", ZERO, "/dev/full",
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

static void plan_dev(struct plan_maker *m)
{
	for (size_t i = 0; i < COUNT(plan_nodes); i++) {
		struct plan_op *op = add(m, PLAN_BIND, .source = plan_nodes[i],
			.target = plan_nodes[i], .attrs = NODE_ATTRS);

		/* A shared mapping of /dev/zero holds pages that nothing
		 * counts. /dev/full reads the same and cannot be mapped. */
		if (!m->h->cgroup_memory && !strcmp(plan_nodes[i], ZERO))
			op->source = "/dev/full";
	}
	/* Ptys come from a pool of the whole host: hence max=. */
	add(m, PLAN_DEVPTS, .target = "/dev/pts",
		.options = "newinstance,ptmxmode=0666,mode=0600,max=16",
		.attrs = SYS_ATTR_NOSUID | SYS_ATTR_NOEXEC);
	for (size_t i = 0; i < COUNT(dev_links); i++)
		add(m, PLAN_LINK, .target = dev_links[i].path,
			.source = dev_links[i].text);
	add_tmpfs(m, "/dev/shm", m->p->tmp_bytes, 4096, 01777)->flags =
		PLAN_F_COUNTED;
}

static int spec_requires(const struct jail_spec *spec, const char *word)
{
	for (const char *const *r = spec->require; r && *r; r++)
		if (!strcmp(*r, word))
			return 1;
	return 0;
}

static void plan_root(struct plan_maker *m)
{
	int needs_proc = spec_requires(m->spec, "proc");

	/* The copy comes first: the root covers the home. */
	add(m, PLAN_HOME_COPY, .source = m->p->over);
	add(m, PLAN_ROOT, .source = m->p->over,
		.options = "size=4194304,nr_inodes=1024,mode=0755",
		.attrs = TMPFS_ATTRS);
	for (size_t i = 0; i < COUNT(own_files); i++)
		add(m, PLAN_FILE, .target = own_files[i].path,
			.source = own_files[i].content);
	add_tmpfs(m, "/tmp", m->p->tmp_bytes, 4096, 01777)->flags =
		PLAN_F_COUNTED;
	plan_dev(m);
	if (!m->h->no_proc || needs_proc)
		add(m, PLAN_PROC, .target = "/proc", .options = "subset=pid",
			.attrs = SHOW_ATTRS | SYS_ATTR_NOEXEC,
			.number = needs_proc);
	add(m, PLAN_HOME_SHOW, .target = "/home");
	show_parts(m);
	show_host(m);
	close_parts(m);
	if (m->spec->mode == SPEC_CELL)
		show_workspace(m);
	/* A file that is copied there would be gone with the program. */
	if (m->spec->side)
		add(m, PLAN_RESTRICT, .target = "/tmp",
			.attrs = SYS_ATTR_RDONLY);
	add(m, PLAN_RESTRICT, .target = "/", .attrs = SYS_ATTR_RDONLY);
	add(m, PLAN_PIVOT);
	/* The table names the host id of the session: here that of a person,
	 * otherwise of nobody. */
	if (m->h->euid != 0)
		add(m, PLAN_HIDE);
}

static const struct {
	const char *path;
	enum plan_use use;
} allowed[] = {
	{"/", PLAN_USE_READ_EXEC},
	{"/dev", PLAN_USE_WRITE},
	{"/dev/shm", PLAN_USE_WRITE_EXEC},
	{"/home", PLAN_USE_WRITE_EXEC},
	{"/proc", PLAN_USE_WRITE},
	{"/tmp", PLAN_USE_WRITE_EXEC},
};

/* Below ABI 2 Landlock refuses each rename between directories, whatever the
 * rules say, which breaks ordinary programs. */
static void plan_landlock(struct plan_maker *m)
{
	if (m->h->landlock_abi < 2)
		return;
	for (size_t i = 0; i < COUNT(allowed); i++)
		add(m, PLAN_ALLOW, .target = allowed[i].path,
			.which = allowed[i].use);
	add(m, PLAN_LANDLOCK, .number = m->h->landlock_abi);
}

static void add_rlimit(struct plan_maker *m, int which, int64_t number)
{
	add(m, PLAN_RLIMIT, .which = which, .number = number);
}

static void plan_jail(struct plan_maker *m)
{
	m->stage = PLAN_JAIL;
	add(m, PLAN_IDENTITY, .number = PLAN_ID);
	add(m, PLAN_HOSTNAME, .target = "cellblock");
	if (m->spec->limits.network == NETWORK_LOOPBACK)
		/* A TCP socket would grow to megabytes. */
		add(m, PLAN_LOOPBACK,
			.options = m->h->cgroup_memory ? NULL
						       : "4096 65536 131072");
	plan_root(m);
	/* Beside a session: before anything of the session's. */
	add(m, PLAN_OOM, .number = m->spec->side ? 1000 : 600);
	/* From here on the limit counts processes of this user namespace. Set
	 * earlier, it would count every process of the user on the host. Older
	 * kernels always do, so the others are added to the limit. */
	add_rlimit(m, RLIMIT_NPROC, m->p->processes_hard + m->h->nproc_others);
	add(m, PLAN_DROP);
	plan_landlock(m);
	add(m, PLAN_UNDUMPABLE);
	/* The part of a huge page that nobody maps is in no process's count. */
	if (!m->h->cgroup_memory)
		add(m, PLAN_NO_HUGE);
	add(m, PLAN_ASK, .number = !m->h->cgroup_memory,
		.target = m->h->cgroup_memory ? "locks" : "locks,memory");
	add(m, PLAN_SECCOMP, .which = PLAN_FILTER_INIT);
}

static void plan_guest(struct plan_maker *m)
{
	const struct limits *l = &m->spec->limits;
	int64_t file = l->home_bytes > m->p->tmp_bytes ? l->home_bytes
						       : m->p->tmp_bytes;

	if (m->spec->side && file > l->max_file_bytes)
		file = l->max_file_bytes;
	m->stage = PLAN_GUEST;
	add(m, PLAN_NICE, .number = 5);
	add(m, PLAN_UMASK, .number = 022);
	add(m, PLAN_CHDIR, .target = "/home");
	/* No core dumps: 1 byte. With 0 the kernel would still start, as root
	 * and on the host, a program that core dumps are piped to (core(5)). */
	add_rlimit(m, RLIMIT_CORE, 1);
	add_rlimit(m, RLIMIT_FSIZE, file);
	add_rlimit(m, RLIMIT_NOFILE, 1024);
	/* Beside them is pid 1. Beside a session's are checkpoints, too, which
	 * come and go: pid 1 sets that limit again and again (init.c). */
	if (m->spec->mode != SPEC_SESSION)
		add_rlimit(
			m, RLIMIT_NPROC, l->processes + 1 + m->h->nproc_others);
	add_rlimit(m, RLIMIT_STACK, 8 * MIB);
	add_rlimit(m, RLIMIT_MEMLOCK, 64 * KIB);
	add_rlimit(m, RLIMIT_MSGQUEUE, 0);
	add_rlimit(m, RLIMIT_RTPRIO, 0);
	/* The kernel counts pending signals for all processes of a user, also
	 * of the person's outside. */
	add_rlimit(m, RLIMIT_SIGPENDING, 512);
	/* For each process by itself: this slows a burst, it is no wall. A cell
	 * that meets it goes on with a MemoryError, and keeps what it has: room
	 * is left for its checkpoints. */
	if (!m->h->cgroup_memory)
		add_rlimit(m, RLIMIT_DATA,
			l->memory_bytes - l->memory_bytes / 32 - 4 * MIB);
	/* A descriptor that it passed to a cell, through a socket in the home,
	 * would keep its file systems, ptys and namespaces when it has ended:
	 * as often as somebody copies, and nobody would count them. */
	if (m->spec->side)
		add(m, PLAN_SECCOMP, .which = PLAN_FILTER_SIDE);
	add(m, PLAN_SECCOMP,
		.which = m->h->cgroup_memory ? PLAN_FILTER_GUEST
					     : PLAN_FILTER_NOMEM);
}

int plan_spare_processes(const struct limits *l)
{
	return l->undo + 3;
}

int plan_make(struct plan *p, const struct jail_spec *spec,
	const struct host *h, struct err *e)
{
	struct plan_maker m = {.p = p, .spec = spec, .h = h};

	*p = (struct plan){.remount = !h->mount_setattr,
		.own_nodes = h->own_nodes,
		.tmp_bytes = spec->limits.memory_bytes / 4,
		.processes_hard = spec->limits.processes +
				  plan_spare_processes(&spec->limits)};
	p->ops = calloc(PLAN_OPS_MAX, sizeof(*p->ops));
	if (!p->ops)
		return err_errno(e, "plan the jail");
	if (gather_shown(&m, e) < 0 || check_links(&m, e) < 0 ||
		choose_over(&m, e) < 0) {
		plan_fini(p);
		return -1;
	}
	gather_parts(&m);
	plan_warden(&m);
	plan_jail(&m);
	plan_guest(&m);
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

/* ---- a plan as text ---- */

static const char *const stage_names[PLAN_STAGES] = {
	[PLAN_WARDEN] = "warden",
	[PLAN_JAIL] = "jail",
	[PLAN_GUEST] = "guest",
};

static const char *const filter_names[PLAN_FILTERS] = {
	[PLAN_FILTER_INIT] = "init",
	[PLAN_FILTER_GUEST] = "guest",
	[PLAN_FILTER_NOMEM] = "guest, no memory that hides",
	[PLAN_FILTER_SIDE] = "no sockets",
};

static const char *const use_names[PLAN_USES] = {
	[PLAN_USE_READ_EXEC] = "read, execute",
	[PLAN_USE_WRITE_EXEC] = "read, write, execute",
	[PLAN_USE_WRITE] = "read, write",
};

static const char *const rlimit_names[RLIM_NLIMITS] = {
	[RLIMIT_CORE] = "core",
	[RLIMIT_DATA] = "data",
	[RLIMIT_FSIZE] = "fsize",
	[RLIMIT_MEMLOCK] = "memlock",
	[RLIMIT_MSGQUEUE] = "msgqueue",
	[RLIMIT_NOFILE] = "nofile",
	[RLIMIT_NPROC] = "nproc",
	[RLIMIT_RTPRIO] = "rtprio",
	[RLIMIT_SIGPENDING] = "sigpending",
	[RLIMIT_STACK] = "stack",
};

/* How each operation is written. %t target, %s source, %a attributes, %n
 * number; %h the source if it is not the target, %o the options, %1 that mounts
 * are restricted one by one; %m number in octal; %p what happens without /proc;
 * %l, %u, %f `which` as a limit, a use, a filter. */
static const char *const forms[] = {
	[PLAN_IDENTITY] = "identity   %n",
	[PLAN_PRIVATE] = "private",
	[PLAN_NODES] = "nodes      %t",
	[PLAN_HOME_MAKE] = "home       %s%o%a",
	[PLAN_HOME_KEEP] = "keep       %t%h%o%a%1",
	[PLAN_HOSTNAME] = "hostname   %t",
	[PLAN_LOOPBACK] = "loopback%o",
	[PLAN_HOME_COPY] = "home       copy of %s",
	[PLAN_ROOT] = "root       %s%o%a",
	[PLAN_LINK] = "link       %t  %s",
	[PLAN_FILE] = "file       %t  %s",
	[PLAN_BIND] = "bind       %t%h%a%1",
	[PLAN_SHOW] = "show       %t%h%a%1",
	[PLAN_TMPFS] = "tmpfs      %t%o%a",
	[PLAN_DEVPTS] = "devpts     %t%o%a",
	[PLAN_PROC] = "proc       %t%o%a%p",
	[PLAN_HOME_SHOW] = "home       %t%h",
	[PLAN_RESTRICT] = "restrict   %t%a%1",
	[PLAN_PIVOT] = "pivot",
	[PLAN_HIDE] = "hide",
	[PLAN_RLIMIT] = "rlimit     %l  %n",
	[PLAN_DROP] = "drop",
	[PLAN_UNDUMPABLE] = "undumpable",
	[PLAN_NO_HUGE] = "small pages",
	[PLAN_OOM] = "oom        %n",
	[PLAN_NICE] = "nice       %n",
	[PLAN_UMASK] = "umask      %m",
	[PLAN_CHDIR] = "chdir      %t",
	[PLAN_ALLOW] = "allow      %t  %u",
	[PLAN_LANDLOCK] = "landlock   ABI %n",
	[PLAN_ASK] = "ask        %t",
	[PLAN_SECCOMP] = "seccomp    %f",
};

/* Control characters and backslashes as escapes: a line stays a line. */
static void print_text(FILE *f, const char *s)
{
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '\n')
			fputs("\\n", f);
		else if (c < 0x20 || c == 0x7f || c == '\\')
			fprintf(f, "\\x%02x", c);
		else
			fputc(c, f);
	}
}

static void print_attrs(FILE *f, unsigned attrs)
{
	static const struct {
		unsigned attr;
		const char *name;
	} names[] = {
		{SYS_ATTR_RDONLY, "ro"},
		{SYS_ATTR_NOSUID, "nosuid"},
		{SYS_ATTR_NODEV, "nodev"},
		{SYS_ATTR_NOEXEC, "noexec"},
	};
	const char *sep = "  ";

	for (size_t i = 0; i < COUNT(names); i++) {
		if (!(attrs & names[i].attr))
			continue;
		fprintf(f, "%s%s", sep, names[i].name);
		sep = ",";
	}
}

static void print_field(
	FILE *f, char field, const struct plan *p, const struct plan_op *op)
{
	switch (field) {
	case 'h':
		if (!op->source || !strcmp(op->source, op->target))
			break;
		fputs("  from ", f);
		/* fall through */
	case 's':
	case 't':
		print_text(f, field == 't' ? op->target : op->source);
		break;
	case 'o':
		if (op->options)
			fprintf(f, "  %s", op->options);
		break;
	case 'a':
		print_attrs(f, op->attrs);
		break;
	case '1':
		if (p->remount && !op->options)
			fputs(", one by one", f);
		break;
	case 'n':
		fprintf(f, "%" PRId64, op->number);
		break;
	case 'm':
		fprintf(f, "%04" PRIo64, (uint64_t)op->number);
		break;
	case 'p':
		fputs(op->number ? "; or fail" : "; or without", f);
		break;
	case 'l':
		fputs(rlimit_names[op->which], f);
		break;
	case 'u':
		fputs(use_names[op->which], f);
		break;
	case 'f':
		fputs(filter_names[op->which], f);
		break;
	}
}

void plan_print(const struct plan *p, FILE *f)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct plan_op *op = &p->ops[i];

		fprintf(f, "%-8s", stage_names[op->stage]);
		for (const char *c = forms[op->type]; *c; c++)
			if (*c == '%')
				print_field(f, *++c, p, op);
			else
				fputc(*c, f);
		fputc('\n', f);
	}
}
