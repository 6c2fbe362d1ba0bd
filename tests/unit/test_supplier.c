/* SPDX-License-Identifier: MIT */
/*
 * test_supplier.c - what a front end that was taken over can ask the supplier
 * for
 */
#include "jail/broker/broker.h"

#include "jail/base/err.h"
#include "jail/base/io.h"

#include "forked.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>

static const struct jail_spec spec = {.python = "/usr/bin/python3"};
static const char *const pythons[] = {"/usr/bin/python3"};

/* One that makes nothing: there are as many sessions as there may be. */
static pid_t start(int *sock)
{
	const struct supplier_offer offer = {
		.spec = &spec, .pythons = pythons, .npythons = 1};
	struct err e = {0};
	pid_t pid = supplier_start(&offer, sock, &e);

	assert_true(pid > 0);
	return pid;
}

static void end(pid_t pid, int sock)
{
	int status;

	close(sock);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void it_makes_no_more_than_it_may(void **state)
{
	struct err e = {0};
	int sock;
	pid_t pid = start(&sock);

	(void)state;
	assert_int_equal(
		supplier_ask(sock,
			&(struct supplier_question){.mode = SPEC_PROGRAM}, &e),
		0);
	assert_int_equal(start_receive(sock, &e), -1);
	assert_string_equal(e.msg, "there are 0 sessions already");
	end(pid, sock);
}

static void it_knows_only_what_it_was_offered(void **state)
{
	static const struct {
		uint32_t python;
		int mode;
	} t[] = {
		{1, SPEC_PROGRAM}, {UINT32_MAX, SPEC_PROGRAM}, {0, 7}, {0, -1}};
	int sock;
	pid_t pid = start(&sock);

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct err e = {0};

		assert_int_equal(
			supplier_ask(sock,
				&(struct supplier_question){t[i].python,
					(enum spec_mode)t[i].mode},
				&e),
			0);
		assert_int_equal(start_receive(sock, &e), -1);
		assert_string_equal(e.msg, "malformed request");
	}
	end(pid, sock);
}

static void a_message_of_another_size_ends_it(void **state)
{
	static const char bytes[64];

	(void)state;
	for (size_t n = 1; n <= sizeof(bytes); n += 21) {
		struct err e = {0};
		int sock;
		pid_t pid = start(&sock);

		assert_int_equal(send(sock, bytes, n, 0), n);
		assert_int_equal(start_receive(sock, &e), -1);
		assert_string_equal(e.msg, "the maker is gone");
		end(pid, sock);
	}
}

/* It keeps nothing open of its front end's, and takes no descriptor. */
static void it_holds_one_socket(void **state)
{
	int sock, null = open("/dev/null", O_RDONLY), left = 0;
	pid_t pid = start(&sock);
	struct err e = {0};
	char path[64];
	struct dirent *d;
	DIR *dir;

	(void)state;
	/* Its answer says that it is ready. */
	assert_int_equal(
		supplier_ask(sock,
			&(struct supplier_question){9, SPEC_PROGRAM}, &e),
		0);
	assert_int_equal(start_receive(sock, &e), -1);
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	/* Of one that is not dumpable, only root sees the descriptors. */
	assert_int_equal(!dir, geteuid() != 0);
	while (dir && (d = readdir(dir)))
		left += d->d_name[0] != '.';
	if (dir) {
		assert_int_equal(left, 5); /* stdio, the socket, deaths */
		closedir(dir);
	}
	assert_int_equal(io_send_fds(sock, "", 1, &null, 1, 0), 0);
	assert_int_equal(start_receive(sock, &e), -1);
	end(pid, sock);
	close(null);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_makes_no_more_than_it_may),
		cmocka_unit_test(it_knows_only_what_it_was_offered),
		cmocka_unit_test(a_message_of_another_size_ends_it),
		cmocka_unit_test(it_holds_one_socket),
	};

	return cmocka_run_group_tests_name("supplier", tests, NULL, NULL);
}
