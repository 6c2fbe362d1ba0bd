/* SPDX-License-Identifier: MIT */
/*
 * test_held.c - a process that is started before it is known what it runs
 */
#include "jail/init/init.h"

#include "jail/base/err.h"
#include "jail/base/io.h"

#include "forked.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define SH "/bin/sh"

static const char *const env[] = {"A=old", "B=gone", NULL};

/* Hold `path`, which has a descriptor `taken` unless that is -1. 0, or -1 with
 * e. */
static int hold_with(struct held *h, const char *path, int taken, struct err *e)
{
	auto_close int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char *const argv[] = {(char *)path, NULL};
	int pair[2];
	pid_t pid;

	assert_int_equal(
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	pid = fork();
	if (pid == 0) {
		forked_signals();
		if (held_begin(pair[1], NULL) == 0 &&
			(taken < 0 || open("/", O_RDONLY) == taken))
			execve(path, argv, (char *const *)env);
		_exit(127);
	}
	close(pair[1]);
	return held_take(h, pid, proc, pair[0], e);
}

static int hold(struct held *h, const char *path, struct err *e)
{
	return hold_with(h, path, -1, e);
}

static int is_dead(pid_t pid)
{
	return waitpid(pid, NULL, 0) < 0 && errno == ECHILD;
}

/* Let it go with a pipe as its output, and read that. Its status. */
static int run(struct held *h, const char *const *argv, const char *const *vars,
	char *out, size_t size)
{
	auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	size_t n = 0;
	ssize_t got;
	int p[2], status;
	pid_t pid;

	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	pid = held_release(h, argv, vars, (const int[]){null, p[1], null});
	close(p[1]);
	assert_true(pid > 0);
	while ((got = read(p[0], out + n, size - 1 - n)) > 0)
		n += (size_t)got;
	close(p[0]);
	out[n] = '\0';
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void it_is_as_if_it_had_been_started_so(void **state)
{
	/* Its tools are started by exec, and inherit all that it has. */
	static const char script[] =
		"echo $# \"$1\" \"$2\" $A $B\n"
		"tr '\\0' '|' </proc/$$/cmdline | tail -c 12; echo\n"
		"tr '\\0' '|' </proc/$$/environ; echo\n"
		"grep TracerPid /proc/$$/status\n"
		"[ -h /proc/$$/fd/2 -a ! -h /proc/$$/fd/3 ] && echo all\n"
		"exit 7";
	static const char *const argv[] = {
		SH, "-c", script, "name", "one", "", "three", NULL};
	static const char *const vars[] = {"A=new", "B=x", NULL};
	struct held h;
	char out[4096];

	(void)state;
	assert_int_equal(hold(&h, SH, NULL), 0);
	assert_int_equal(run(&h, argv, vars, out, sizeof(out)), 7 << 8);
	assert_string_equal(out, "3 one  new x\n|one||three|\nA=new|B=x|\n"
				 "TracerPid:\t0\nall\n");
	assert_int_equal(h.t.pid, 0);
}

static void nothing_of_its_own_has_run_before(void **state)
{
	static const char *const argv[] = {SH, "-c", "exit 3", NULL};
	struct stat st;
	struct held h;
	char path[64], text[64] = "", out[16];
	int fd;

	(void)state;
	assert_int_equal(hold(&h, SH, NULL), 0);
	/* It is stopped, and holds but the socket. */
	snprintf(path, sizeof(path), "/proc/%d/fd/0", (int)h.t.pid);
	assert_int_equal(lstat(path, &st), -1);
	snprintf(path, sizeof(path), "/proc/%d/status", (int)h.t.pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (read(fd, text, sizeof(text) - 1) > 0 && !strstr(text, "State:"))
		;
	close(fd);
	assert_non_null(strstr(text, "State:\tt"));
	assert_int_equal(run(&h, argv, env, out, sizeof(out)), 3 << 8);
}

static void what_does_not_fit_ends_it(void **state)
{
	static char large[40000];
	static const char *const more[] = {"A=1", "B=2", "C=3", NULL};
	const int stdio[] = {0, 1, 2};
	const char *argv[] = {SH, "-c", large, NULL};
	struct held h;
	pid_t pid;

	(void)state;
	memset(large, ' ', sizeof(large) - 1);
	assert_int_equal(hold(&h, SH, NULL), 0);
	pid = h.t.pid;
	assert_int_equal(held_release(&h, argv, env, stdio), -1);
	assert_int_equal(h.t.pid, 0);
	assert_true(is_dead(pid));
	/* The control: half of it runs. */
	large[20000] = '\0';
	assert_int_equal(hold(&h, SH, NULL), 0);
	assert_int_equal(run(&h, argv, env, (char[16]){0}, 16), 0);
	assert_int_equal(hold(&h, SH, NULL), 0);
	assert_int_equal(held_release(&h, argv, more, stdio), -1);
}

static void what_has_a_descriptor_is_not_let_go(void **state)
{
	const int stdio[] = {0, 1, 2};
	const char *argv[] = {SH, "-c", "exit 0", NULL};
	struct held h;
	pid_t pid;

	(void)state;
	assert_int_equal(hold_with(&h, SH, 0, NULL), 0);
	pid = h.t.pid;
	assert_int_equal(held_release(&h, argv, env, stdio), -1);
	assert_true(is_dead(pid));
}

static void a_new_size_of_the_terminal_does_not_stop_it(void **state)
{
	static const char *const argv[] = {SH, "-c", "exit 5", NULL};
	struct held h;

	(void)state;
	assert_int_equal(hold(&h, SH, NULL), 0);
	kill(h.t.pid, SIGWINCH);
	assert_int_equal(run(&h, argv, env, (char[16]){0}, 16), 5 << 8);
}

static void a_script_is_not_held(void **state)
{
	char path[] = "/tmp/cbtest-held-XXXXXX";
	static const char text[] = "#!" SH "\nexit 0\n";
	int fd = mkstemp(path);
	struct err e = {0};
	struct held h;

	(void)state;
	assert_int_equal(
		write(fd, text, sizeof(text) - 1), (ssize_t)sizeof(text) - 1);
	assert_int_equal(fchmod(fd, 0755), 0);
	close(fd);
	assert_int_equal(hold(&h, path, &e), -1);
	assert_non_null(strstr(e.msg, "read its stack"));
	assert_int_equal(h.t.pid, 0);
	assert_int_equal(hold(&h, "/nowhere", &e), -1);
	assert_non_null(strstr(e.msg, "wait for its exec"));
	unlink(path);
}

static void one_that_died_meanwhile_is_noticed(void **state)
{
	static const char *const argv[] = {SH, NULL};
	const int stdio[] = {0, 1, 2};
	struct held h;

	(void)state;
	assert_int_equal(hold(&h, SH, NULL), 0);
	kill(h.t.pid, SIGKILL);
	assert_int_equal(held_release(&h, argv, env, stdio), -1);
	assert_int_equal(hold(&h, SH, NULL), 0);
	held_drop(&h);
	assert_int_equal(h.t.pid, 0);
	held_drop(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_as_if_it_had_been_started_so),
		cmocka_unit_test(nothing_of_its_own_has_run_before),
		cmocka_unit_test(what_does_not_fit_ends_it),
		cmocka_unit_test(what_has_a_descriptor_is_not_let_go),
		cmocka_unit_test(a_new_size_of_the_terminal_does_not_stop_it),
		cmocka_unit_test(a_script_is_not_held),
		cmocka_unit_test(one_that_died_meanwhile_is_noticed),
	};

	return cmocka_run_group_tests_name("held", tests, NULL, NULL);
}
