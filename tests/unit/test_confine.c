/* SPDX-License-Identifier: MIT */
/*
 * test_confine.c - the front end's own sandbox, from inside it
 *
 * A child confines itself and tries to escape, as root where root runs the
 * test, and as an ordinary user. The same attempts by an unconfined child are
 * the control.
 */
#include "repl/run.h"

#include "forked.h"
#include "jail/base/err.h"
#include "jail/base/sys.h"
#include "jail/jail.h"
#include "repl/config/config.h"
#include "repl/config/options.h"
#include "tests/lib/tree.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/xattr.h>

#define SOMEBODY 54321

struct world {
	char top[64];
	int user;   /* not root */
	int locked; /* a locked session, which may use in/ and out/ */
	int free;   /* control: no sandbox */
	int serves; /* reads HTTP: in the sandbox of --serve */
};

/* ---- the attempts; each returns the result of its call ---- */

static const char *at(const struct world *w, const char *name)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", w->top, name);
	return path;
}

static long opened(const struct world *w, const char *name, int flags)
{
	return open(at(w, name), flags | O_CLOEXEC, 0600);
}

static long try_exec(const struct world *w)
{
	char *const none[] = {NULL};

	(void)w;
	return execve("/nonexistent", none, none);
}

static long try_execveat(const struct world *w)
{
	char *const none[] = {NULL};

	(void)w;
	return syscall(SYS_execveat, -1, "", none, none, AT_EMPTY_PATH);
}

static long try_fork(const struct world *w)
{
	long pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	(void)w;
	if (pid == 0)
		_exit(0);
	return pid;
}

static long try_inet(const struct world *w)
{
	(void)w;
	return socket(AF_INET, SOCK_STREAM, 0);
}

static long try_unix(const struct world *w)
{
	(void)w;
	return socket(AF_UNIX, SOCK_DGRAM, 0);
}

static long try_pair(const struct world *w)
{
	int fds[2];

	(void)w;
	return socketpair(AF_UNIX, SOCK_STREAM, 0, fds);
}

static long try_truncate(const struct world *w)
{
	return truncate(at(w, "out/file"), 0);
}

static long try_chmod(const struct world *w)
{
	return chmod(at(w, "out/file"), 0777);
}

static long try_chown(const struct world *w)
{
	return chown(at(w, "out/file"), geteuid(), getegid());
}

static long try_link(const struct world *w)
{
	char from[PATH_MAX];

	snprintf(from, sizeof(from), "%s", at(w, "out/file"));
	return link(from, at(w, "out/link"));
}

static long try_symlink(const struct world *w)
{
	return symlink("/etc", at(w, "out/symlink"));
}

static long try_utimes(const struct world *w)
{
	return utimensat(AT_FDCWD, at(w, "out/file"), NULL, 0);
}

static long try_setxattr(const struct world *w)
{
	return setxattr(at(w, "out/file"), "user.x", "x", 1, 0);
}

static long try_mknod(const struct world *w)
{
	return mknod(at(w, "out/fifo"), S_IFIFO | 0600, 0);
}

static long try_chroot(const struct world *w)
{
	return chroot(w->top);
}

static long try_mount(const struct world *w)
{
	return mount("none", w->top, "tmpfs", 0, NULL);
}

static long try_unshare(const struct world *w)
{
	(void)w;
	return unshare(CLONE_NEWUSER);
}

static long try_ptrace(const struct world *w)
{
	(void)w;
	return ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}

static long try_new_code(const struct world *w)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)w;
	return p == MAP_FAILED ? -1 : 0;
}

static long try_kill(const struct world *w)
{
	(void)w;
	return kill(-1, 0);
}

static long try_setuid(const struct world *w)
{
	return setresuid(w->user ? 0 : SOMEBODY, w->user ? 0 : SOMEBODY,
		w->user ? 0 : SOMEBODY);
}

/* Refused to every user in every configuration. */
static const struct {
	const char *what;
	long (*call)(const struct world *);
} refused[] = {
	{"exec", try_exec},
	{"execveat", try_execveat},
	{"fork", try_fork},
	{"internet socket", try_inet},
	{"local socket", try_unix},
	{"socket pair", try_pair},
	{"truncate", try_truncate},
	{"chmod", try_chmod},
	{"chown", try_chown},
	{"link", try_link},
	{"symlink", try_symlink},
	{"utimensat", try_utimes},
	{"setxattr", try_setxattr},
	{"mknod", try_mknod},
	{"chroot", try_chroot},
	{"mount", try_mount},
	{"unshare", try_unshare},
	{"ptrace", try_ptrace},
	{"new code", try_new_code},
	{"kill everyone", try_kill},
	{"setuid", try_setuid},
};

/* ---- the world ---- */

static void world_make(struct world *w)
{
	static const char *const dirs[] = {"in", "out", "other", "home"};
	static const char *const files[] = {
		"in/file", "out/file", "other/file", "home/file"};

	strcpy(w->top, "/var/tmp/cellblock-confine-XXXXXX");
	assert_non_null(mkdtemp(w->top));
	assert_int_equal(chmod(w->top, 0755), 0);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(mkdir(at(w, dirs[i]), 0755), 0);
		close((int)opened(w, files[i], O_WRONLY | O_CREAT));
	}
	for (int i = 0; w->user && getuid() == 0 && i < 4; i++) {
		assert_int_equal(chown(at(w, dirs[i]), SOMEBODY, SOMEBODY), 0);
		assert_int_equal(chown(at(w, files[i]), SOMEBODY, SOMEBODY), 0);
	}
}

static void world_remove(struct world *w)
{
	assert_int_equal(tree_remove(w->top), 0);
}

/* In the child: take the identity, enter the working directory out/ and
 * confine the process. */
static void enter(const struct world *w)
{
	static char *in[1], *out[1];
	struct options opt = {.ndownloads = 0};
	static char home[PATH_MAX];
	struct config cfg;
	struct confine c = {.cfg = &cfg, .opt = &opt, .home = home};
	const struct jail_sandbox server = {.left = JAIL_SANDBOX_CLIENTS};
	struct err e = {0};

	if (w->user && getuid() == 0)
		CHILD_CHECK(
			setresgid(SOMEBODY, SOMEBODY, SOMEBODY) == 0 &&
				setresuid(SOMEBODY, SOMEBODY, SOMEBODY) == 0,
			"become somebody");
	CHILD_CHECK(chdir(at(w, "out")) == 0, "enter out/");
	CHILD_CHECK(config_init(&cfg) == 0, "configuration");
	snprintf(home, sizeof(home), "%s", at(w, "home"));
	if (w->locked) {
		cfg.locked = true;
		in[0] = strdup(at(w, "in"));
		out[0] = strdup(at(w, "out"));
		cfg.upload_from = (struct strlist){in, 1};
		cfg.download_to = (struct strlist){out, 1};
	}
	if (w->serves)
		CHILD_CHECK(jail_sandbox_enter(&server, &e) == 0, "%s", e.msg);
	else if (!w->free)
		CHILD_CHECK(confine_front(&c, &e) == 0, "%s", e.msg);
}

/* Whether an errno means a refusal; other errors mean an impossible call. */
static int is_refusal(int code)
{
	return code == EPERM || code == EACCES || code == ENOSYS;
}

static int all_are_refused(void *arg)
{
	const struct world *w = arg;

	enter(w);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		if (w->serves && refused[i].call == try_pair)
			continue;
		int code = errno_of(refused[i].call(w));

		CHILD_CHECK(is_refusal(code), "%s: %s", refused[i].what,
			strerror(code));
	}
	return 0;
}

/* How many of the attempts of an ordinary user work without confinement. */
static int some_work_in_the_free(void *arg)
{
	const struct world *w = arg;
	int n = 0;

	enter(w);
	n += try_exec(w) < 0 && errno == ENOENT;
	n += try_fork(w) >= 0;
	n += try_unix(w) >= 0;
	n += try_pair(w) == 0;
	n += try_truncate(w) == 0;
	n += try_chmod(w) == 0;
	n += try_chown(w) == 0;
	n += try_link(w) == 0;
	n += try_symlink(w) == 0;
	n += try_utimes(w) == 0;
	n += try_mknod(w) == 0;
	n += try_new_code(w) == 0;
	return n;
}

static void on(struct world *w, int (*fn)(void *), int want)
{
	if (w->user == 0 && getuid() != 0)
		return;
	world_make(w);
	assert_int_equal(forked(fn, w), want);
	world_remove(w);
}

static void every_escape_is_refused_to_the_front_end(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		struct world w = {.user = i & 1, .locked = i >> 1};

		on(&w, all_are_refused, 0);
		w.free = 1;
		on(&w, some_work_in_the_free, 12);
	}
}

/* ---- files ---- */

static int can(const struct world *w, const char *name, int flags)
{
	long fd = opened(w, name, flags);

	if (fd >= 0)
		close((int)fd);
	return fd >= 0;
}

static int an_open_session_works_where_the_person_is(void *arg)
{
	const struct world *w = arg;

	enter(w);
	CHILD_CHECK(can(w, "out/new", O_WRONLY | O_CREAT), "working directory");
	CHILD_CHECK(can(w, "home/new", O_WRONLY | O_CREAT), "home");
	CHILD_CHECK(can(w, "other/file", O_RDONLY), "reading anywhere");
	CHILD_CHECK(rename(at(w, "out/new"), "renamed") == 0, "rename");
	return 0;
}

/* Root could write everywhere; only Landlock prevents it. */
static int root_writes_only_where_it_is(void *arg)
{
	const struct world *w = arg;

	enter(w);
	CHILD_CHECK(!can(w, "other/file", O_WRONLY), "write elsewhere");
	CHILD_CHECK(!can(w, "other/new", O_WRONLY | O_CREAT), "make elsewhere");
	CHILD_CHECK(unlink(at(w, "other/file")) < 0, "remove elsewhere");
	CHILD_CHECK(open("/etc/passwd", O_RDWR) < 0, "/etc/passwd");
	CHILD_CHECK(open("/proc/sys/kernel/core_pattern", O_WRONLY) < 0,
		"core pattern");
	return 0;
}

static int a_locked_session_keeps_to_its_directories(void *arg)
{
	const struct world *w = arg;

	enter(w);
	CHILD_CHECK(can(w, "in/file", O_RDONLY), "read in/");
	CHILD_CHECK(can(w, "out/new", O_WRONLY | O_CREAT), "write out/");
	CHILD_CHECK(!can(w, "in/file", O_WRONLY), "write in/");
	CHILD_CHECK(!can(w, "in/new", O_WRONLY | O_CREAT), "make in in/");
	CHILD_CHECK(!can(w, "other/file", O_RDONLY), "read other/");
	CHILD_CHECK(!can(w, "home/file", O_RDONLY), "read home/");
	CHILD_CHECK(!can(w, "out/../other/file", O_RDONLY), "by ..");
	CHILD_CHECK(open("/etc/passwd", O_RDONLY) < 0, "/etc/passwd");
	CHILD_CHECK(open("/proc/self/mem", O_RDONLY) < 0, "/proc");
	return 0;
}

static void the_front_end_reaches_only_the_allowed_files(void **state)
{
	struct world root = {.user = 0}, user = {.user = 1};
	struct world locked = {.user = 1, .locked = 1};
	struct world locked_root = {.locked = 1};

	(void)state;
	on(&root, an_open_session_works_where_the_person_is, 0);
	on(&user, an_open_session_works_where_the_person_is, 0);
	if (sys_landlock_abi() < 1)
		SKIP("no Landlock here: files are kept by permissions alone");
	on(&root, root_writes_only_where_it_is, 0);
	on(&locked, a_locked_session_keeps_to_its_directories, 0);
	on(&locked_root, a_locked_session_keeps_to_its_directories, 0);
}

/* ---- the reader of HTTP ---- */

struct listener {
	struct world world;
	int fd;
	struct sockaddr_un address;
	socklen_t n;
};

static void listener_open(struct listener *l)
{
	l->address = (struct sockaddr_un){.sun_family = AF_UNIX};
	l->n = sizeof(l->address);
	l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	/* A name without a path, which the kernel chooses. */
	assert_int_equal(
		bind(l->fd, (void *)&l->address, sizeof(sa_family_t)), 0);
	assert_int_equal(listen(l->fd, 4), 0);
	assert_int_equal(getsockname(l->fd, (void *)&l->address, &l->n), 0);
}

/* It may take clients in and speak to them, and no more. */
static int it_accepts_and_nothing_else(void *arg)
{
	struct listener *l = arg;
	int client = socket(AF_UNIX, SOCK_STREAM, 0), fd, pair[2];
	int spare = socket(AF_UNIX, SOCK_STREAM, 0);

	CHILD_CHECK(connect(client, (void *)&l->address, l->n) == 0, "connect");
	if (all_are_refused(&l->world) != 0)
		return 1;
	fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC);
	CHILD_CHECK(fd >= 0 && send(fd, "x", 1, 0) == 1, "accept4");
	CHILD_CHECK(
		socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0 && errno == EPERM,
		"a pair");
	CHILD_CHECK(
		connect(spare, (void *)&l->address, l->n) < 0 && errno == EPERM,
		"connect elsewhere");
	CHILD_CHECK(listen(spare, 1) < 0 && errno == EPERM, "listen");
	CHILD_CHECK(bind(spare, (void *)&l->address, sizeof(sa_family_t)) < 0 &&
			    errno == EPERM,
		"bind");
	if (sys_landlock_abi() < 1)
		return 0;
	CHILD_CHECK(open("/etc/passwd", O_RDONLY) < 0, "/etc/passwd");
	CHILD_CHECK(open("/dev/null", O_RDONLY) < 0, "/dev/null");
	CHILD_CHECK(open("/proc/self/mem", O_RDWR) < 0, "/proc/self/mem");
	CHILD_CHECK(!can(&l->world, "out/file", O_RDONLY), "read");
	CHILD_CHECK(!can(&l->world, "out/new", O_WRONLY | O_CREAT), "make");
	CHILD_CHECK(unlink(at(&l->world, "out/file")) < 0, "remove");
	CHILD_CHECK(rename(at(&l->world, "out/file"), "renamed") < 0, "rename");
	return 0;
}

static void the_reader_of_http_accepts_and_nothing_else(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct listener l = {.world = {.user = i, .serves = 1}};

		if (i == 0 && getuid() != 0)
			continue;
		listener_open(&l);
		world_make(&l.world);
		assert_int_equal(forked(it_accepts_and_nothing_else, &l), 0);
		world_remove(&l.world);
		close(l.fd);
	}
}

/* ---- identity ---- */

static int no_capability_is_left(void *arg)
{
	const struct world *w = arg;
	char line[256];
	FILE *f;
	int n = 0, lines = 0;

	enter(w);
	f = fopen("/proc/self/status", "re");
	CHILD_CHECK(f, "/proc/self/status");
	while (fgets(line, sizeof(line), f)) {
		unsigned long long set;
		int bound = !strncmp(line, "CapBnd:", 7);

		if (sscanf(line, "Cap%*3s: %llx", &set) != 1)
			continue;
		lines++;
		/* Without capabilities it cannot be emptied, nor be used. */
		n += set != 0 && !(bound && w->user);
	}
	fclose(f);
	CHILD_CHECK(lines == 5, "%d sets", lines);
	CHILD_CHECK(w->free || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1,
		"no_new_privs");
	return n;
}

static void the_front_end_keeps_no_capability(void **state)
{
	struct world root = {.user = 0}, user = {.user = 1};

	(void)state;
	on(&root, no_capability_is_left, 0);
	on(&user, no_capability_is_left, 0);
	root.free = 1;
	if (getuid() == 0)
		on(&root, no_capability_is_left, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_escape_is_refused_to_the_front_end),
		cmocka_unit_test(the_front_end_reaches_only_the_allowed_files),
		cmocka_unit_test(the_reader_of_http_accepts_and_nothing_else),
		cmocka_unit_test(the_front_end_keeps_no_capability),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
