/* SPDX-License-Identifier: MIT */
/*
 * test_scope.c - a cgroup from the person's systemd, where the manager is not
 * there, hangs, refuses, lies or sends rubbish; tests/systemd asks a real one
 */
#include "jail/base/io.h"
#include "jail/walls/cgroup/cgroup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

struct manager {
	char runtime[64], at[96];
	int listening;
	pid_t pid;
};

/* What a manager says to a caller; then it stays silent, or hangs up. */
struct says {
	const char *text;
	size_t n;
	int stays;
};

#define OK_LINE "OK 0123456789abcdef0123456789abcdef\r\n"

static void path_of(const struct manager *m, char *path, const char *name)
{
	snprintf(path, 96, "%s/%s", m->runtime, name);
}

static int setup(void **state)
{
	struct manager *m = calloc(1, sizeof(*m));
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	char dir[96];

	assert_non_null(m);
	strcpy(m->runtime, "/tmp/cbtest-scope-XXXXXX");
	assert_non_null(mkdtemp(m->runtime));
	path_of(m, dir, "systemd");
	assert_int_equal(mkdir(dir, 0700), 0);
	path_of(m, m->at, "systemd/private");
	strcpy(a.sun_path, m->at);
	m->listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(
		bind(m->listening, (struct sockaddr *)&a, sizeof(a)), 0);
	*state = m;
	return 0;
}

static int teardown(void **state)
{
	struct manager *m = *state;
	char dir[96];

	if (m->pid > 0) {
		kill(m->pid, SIGKILL);
		waitpid(m->pid, NULL, 0);
	}
	close(m->listening);
	unlink(m->at);
	path_of(m, dir, "systemd");
	rmdir(dir);
	rmdir(m->runtime);
	free(m);
	return 0;
}

static void be_manager(struct manager *m, const struct says *s)
{
	assert_int_equal(listen(m->listening, 1), 0);
	m->pid = fork();
	if (m->pid == 0) {
		int fd = accept(m->listening, NULL, NULL);
		char heard[4096];

		/* It has come when it asks. */
		if (fd < 0 || read(fd, heard, sizeof(heard)) <= 0)
			_exit(1);
		io_write_full(fd, s->text, s->n);
		while (s->stays)
			pause();
		_exit(0);
	}
	assert_true(m->pid > 0);
}

/* A message without fields in its header. */
static size_t make_message(char *m, char type, const char *body, size_t n)
{
	uint32_t length = (uint32_t)n, serial = 1, fields = 0;

	m[0] = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 'l' : 'B';
	m[1] = type;
	m[2] = 0;
	m[3] = 1;
	memcpy(m + 4, &length, 4);
	memcpy(m + 8, &serial, 4);
	memcpy(m + 12, &fields, 4);
	memcpy(m + 16, body, n);
	return 16 + n;
}

static void fails(struct manager *m, const struct says *s, const char *why)
{
	struct err e = {0};

	be_manager(m, s);
	assert_int_equal(cgroup_scope_enter(m->runtime, &e), -1);
	if (!strstr(e.msg, why))
		fail_msg("\"%s\" is not in: %s", why, e.msg);
	assert_non_null(strstr(e.msg, "your systemd gave no cgroup"));
}

static void without_a_manager_there_is_nothing_to_say(void **state)
{
	struct manager *m = *state;
	struct err e = {0};

	assert_int_equal(cgroup_scope_enter("/tmp/cbtest-no-such", &e), 1);
	/* Nobody listens on its socket any more. */
	assert_int_equal(cgroup_scope_enter(m->runtime, &e), 1);
	assert_string_equal(e.msg, "");
}

static void a_manager_that_hangs_is_left(void **state)
{
	fails(*state, &(struct says){"", 0, 1}, "timed out");
}

static void a_manager_that_hangs_after_a_greeting_is_left(void **state)
{
	fails(*state, &(struct says){OK_LINE, strlen(OK_LINE), 1}, "timed out");
}

static void a_manager_that_hangs_up_is_told(void **state)
{
	fails(*state, &(struct says){OK_LINE, strlen(OK_LINE), 0}, "reset");
}

static void a_manager_that_knows_nobody_is_told(void **state)
{
	static const char no[] = "REJECTED EXTERNAL\r\n";

	fails(*state, &(struct says){no, sizeof(no) - 1, 1}, "not let in");
}

static void says_message(struct manager *m, char type, const char *body,
	size_t n, const char *why)
{
	char text[1024] = OK_LINE;
	size_t at = strlen(OK_LINE);

	at += make_message(text + at, type, body, n);
	fails(m, &(struct says){text, at, 1}, why);
}

static void a_refusal_is_told_in_its_words(void **state)
{
	static const char body[] = "\x0e\0\0\0Access denied.\x1b[2Jx";

	says_message(*state, 3, body, sizeof(body), "Access denied.");
	teardown(state);
	setup(state);
	says_message(*state, 3, "", 0, "no reason given");
}

static void a_refusal_shows_no_control_characters(void **state)
{
	static const char body[] = "\x05\0\0\0no\x1b[2J";
	struct manager *m = *state;
	char text[256] = OK_LINE;
	size_t at = strlen(OK_LINE);
	struct err e = {0};

	at += make_message(text + at, 3, body, sizeof(body));
	be_manager(m, &(struct says){text, at, 1});
	assert_int_equal(cgroup_scope_enter(m->runtime, &e), -1);
	assert_null(strchr(e.msg, '\x1b'));
}

/* It names whatever unit it was asked for. */
static void be_liar(struct manager *m)
{
	assert_int_equal(listen(m->listening, 1), 0);
	m->pid = fork();
	if (m->pid == 0) {
		int fd = accept(m->listening, NULL, NULL);
		char heard[4096], body[256] = "JobRemoved ",
				  text[512] = OK_LINE;
		size_t at = strlen(OK_LINE), n = 0;
		char *unit = NULL;

		while (!unit || !memmem(unit, n - (size_t)(unit - heard),
					".scope", 6)) {
			ssize_t r = read(fd, heard + n, sizeof(heard) - n);

			if (r <= 0)
				_exit(1);
			n += (size_t)r;
			unit = memmem(heard, n, "cellblock-", 10);
		}
		strncat(body, unit, 200);
		at += make_message(text + at, 4, body, strlen(body));
		io_write_full(fd, text, at);
		for (;;)
			pause();
	}
}

static void a_manager_that_only_says_so_is_not_believed(void **state)
{
	struct manager *m = *state;
	struct err e = {0};

	be_liar(m);
	assert_int_equal(cgroup_scope_enter(m->runtime, &e), -1);
	if (!strstr(e.msg, "was not moved"))
		fail_msg("%s", e.msg);
}

static void rubbish_is_no_message(void **state)
{
	char text[512] = OK_LINE;
	size_t at = strlen(OK_LINE);

	memset(text + at, 0xff, sizeof(text) - at);
	fails(*state, &(struct says){text, sizeof(text), 1}, "Protocol");
}

static void a_message_of_4_gigabytes_is_not_read(void **state)
{
	char text[512] = OK_LINE;
	size_t at = strlen(OK_LINE), n = make_message(text + at, 2, "", 0);

	memset(text + at + 4, 0xff, 4);
	fails(*state, &(struct says){text, at + n, 1}, "Protocol");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_a_manager_there_is_nothing_to_say),
		TEST(a_manager_that_hangs_is_left),
		TEST(a_manager_that_hangs_after_a_greeting_is_left),
		TEST(a_manager_that_hangs_up_is_told),
		TEST(a_manager_that_knows_nobody_is_told),
		TEST(a_refusal_is_told_in_its_words),
		TEST(a_refusal_shows_no_control_characters),
		TEST(a_manager_that_only_says_so_is_not_believed),
		TEST(rubbish_is_no_message),
		TEST(a_message_of_4_gigabytes_is_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
