/* SPDX-License-Identifier: MIT */
/*
 * test_wire.c - valid messages of a guest are decoded, all others are refused
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "jail/wire/wire.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int decode(struct wire_guest *m, const char *text)
{
	return wire_guest_decode(m, text, strlen(text));
}

static void every_message_of_the_guest_is_decoded(void **state)
{
	struct wire_guest m;

	(void)state;
	assert_int_equal(decode(&m, "READY 2 3.11.2"), 0);
	assert_int_equal(m.type, GUEST_READY);
	assert_int_equal(m.pid, 2);
	assert_string_equal(m.text, "3.11.2");
	assert_int_equal(decode(&m, "TOOK 7"), 0);
	assert_int_equal(m.no, 7);
	assert_int_equal(decode(&m, "BAD 7 crc mismatch"), 0);
	assert_string_equal(m.text, "crc mismatch");
	assert_int_equal(decode(&m, "DONE 7 exit 23 1 3 0"), 0);
	assert_int_equal(m.how, HOW_EXIT);
	assert_int_equal(m.leaves, 0);
	assert_int_equal(m.names, 23);
	assert_int_equal(m.threads, 1);
	assert_int_equal(m.status, 3);
	assert_int_equal(m.marked, 0);
	assert_int_equal(decode(&m, "DONE 7 leave 23 1 3 0"), 0);
	assert_int_equal(m.how, HOW_EXIT);
	assert_int_equal(m.leaves, 1);
	assert_int_equal(m.status, 3);
	assert_int_equal(decode(&m, "PARKED 8 ok"), 0);
	assert_int_equal(m.ok, 1);
	assert_int_equal(decode(&m, "PARKED 8 EAGAIN"), 0);
	assert_int_equal(m.ok, 0);
	assert_int_equal(decode(&m, "ASLEEP 12 23 0"), 0);
	assert_int_equal(m.pid, 12);
	assert_int_equal(decode(&m, "AWAKE 12 23"), 0);
	assert_int_equal(decode(&m, "ANSWER 4 5\na\nb\nc"), 0);
	assert_int_equal(m.answer_n, 5);
	assert_memory_equal(m.answer, "a\nb\nc", 5);
	assert_int_equal(decode(&m, "ANSWER 4 0\n"), 0);
	assert_int_equal(m.answer_n, 0);
}

static const char *const lies[] = {
	"",
	" ",
	"\n",
	"DONE",
	"DONE ",
	"DONE 7",
	"DONE 7 ok",
	"DONE 7 ok 1 0 0",
	"DONE 7 ok 1 0 0 2",
	"DONE 7 ok 1 0 256 1",
	"DONE 7 fine 1 0 0 1",
	"DONE 7 ok 1 0 0 1 ",
	"DONE 7 ok 1 0 0 1\n",
	"DONE 7 ok 1 0 0 1\nmore",
	"DONE -7 ok 1 0 0 1",
	"DONE 4294967296 ok 1 0 0 1",
	"DONE 99999999999999999999999 ok 1 0 0 1",
	"DONE  7 ok 1 0 0 1",
	"done 7 ok 1 0 0 1",
	"READY 2",
	"READY 2147483648 3.11.2",
	"READY 2 3.11\x1b[31m",
	"ASLEEP 12 23",
	"ANSWER 4 5\nabcd",
	"ANSWER 4 5\nabcdef",
	"ANSWER 4 5",
	"ANSWER 4 61441\n",
	"PARKED 8 \x01",
	"HELLO 1",
};

static void every_other_message_is_refused(void **state)
{
	struct wire_guest m;

	(void)state;
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++)
		if (decode(&m, lies[i]) == 0)
			fail_msg("accepted: \"%s\"", lies[i]);
}

static void a_message_cut_anywhere_is_refused(void **state)
{
	static const char whole[] = "DONE 7 exit 23 1 3 0";
	struct wire_guest m;

	(void)state;
	for (size_t n = 0; n < sizeof(whole) - 1; n++)
		assert_int_equal(wire_guest_decode(&m, whole, n), -1);
}

static void an_oversize_message_is_refused(void **state)
{
	static char big[WIRE_GUEST_MAX + 1];
	struct wire_guest m;

	(void)state;
	memset(big, 'A', sizeof(big));
	assert_int_equal(wire_guest_decode(&m, big, sizeof(big)), -1);
}

static void the_checksum_equals_zlibs(void **state)
{
	(void)state;
	assert_int_equal(wire_crc32("123456789", 9), 0xcbf43926);
	assert_int_equal(wire_crc32("", 0), 0);
}

static void messages_of_trusted_processes_have_a_checked_shape(void **state)
{
	struct wire_front f = {.type = FRONT_RUN};
	struct wire_init i = {.type = INIT_DIED, .npids = 1};
	static struct wire_event ev;

	(void)state;
	assert_int_equal(wire_front_check(&f, sizeof(f)), 0);
	assert_int_equal(wire_front_check(&f, sizeof(f) - 1), -1);
	memset(f.path, 'x', sizeof(f.path));
	assert_int_equal(wire_front_check(&f, sizeof(f)), -1);
	assert_int_equal(wire_init_check(&i, sizeof(i)), 0);
	i.npids = WIRE_PIDS_MAX + 1;
	assert_int_equal(wire_init_check(&i, sizeof(i)), -1);
	i.npids = 0;
	i.type = (enum wire_init_type)99;
	assert_int_equal(wire_init_check(&i, sizeof(i)), -1);
	assert_int_equal(wire_event_check(&ev, sizeof(ev), NULL), 0);
	memset(ev.event.text, 'x', sizeof(ev.event.text));
	assert_int_equal(wire_event_check(&ev, sizeof(ev), NULL), -1);
}

static void a_request_has_no_more_paths_than_it_holds(void **state)
{
	static struct wire_front f = {.path = "a\0b/c\0"};
	const char *paths[JAIL_MANY_MAX];

	(void)state;
	f.a = 2;
	assert_int_equal(wire_front_paths(&f, paths), 2);
	assert_string_equal(paths[1], "b/c");
	f.a = INT64_MAX;
	assert_int_equal(wire_front_paths(&f, paths), JAIL_MANY_MAX);
	assert_int_equal(wire_front_ends(&f), JAIL_MANY_MAX);
	f.a = INT64_MIN;
	assert_int_equal(wire_front_paths(&f, paths), 0);
	assert_int_equal(wire_front_ends(&f), 0);
	f.a = 3;
	memset(f.path + 2, 'x', sizeof(f.path) - 2);
	assert_int_equal(wire_front_paths(&f, paths), 1);
}

static int start_fd(const char *bytes, size_t n, int seals)
{
	int fd = memfd_create("start", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(write(fd, bytes, n), n);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void a_start_arrives_as_it_was_sent(void **state)
{
	const char *const argv[] = {"-c", "", "pass", NULL};
	const char *const env[] = {"A=1", NULL};
	const struct jail_start out = {.argv = argv, .env = env};
	struct wire_start in;
	size_t at, n;
	int fd = wire_start_seal(&out, NULL);

	(void)state;
	assert_int_equal(wire_start_read(&in, fd, NULL), 0);
	for (int i = 0; i < 3; i++)
		assert_string_equal(in.argv[i], argv[i]);
	assert_null(in.argv[3]);
	assert_string_equal(in.env[0], "A=1");
	assert_null(in.env[1]);
	assert_int_equal(wire_start_find(fd, &at, &n, NULL), 0);
	assert_int_equal(n, 0);
	wire_start_fini(&in);
	close(fd);
}

static void a_source_arrives_as_it_was_sent(void **state)
{
	const struct jail_start out = {.source = "a\0b", .source_n = 3};
	int fd = wire_start_seal(&out, NULL);
	struct wire_start in;
	char bytes[3];
	size_t at, n;

	(void)state;
	assert_int_equal(wire_start_find(fd, &at, &n, NULL), 0);
	assert_int_equal(n, 3);
	assert_int_equal(pread(fd, bytes, n, (off_t)at), 3);
	assert_memory_equal(bytes, "a\0b", 3);
	assert_int_equal(wire_start_read(&in, fd, NULL), -1);
	wire_start_fini(&in);
	close(fd);
}

static void a_malformed_start_is_refused(void **state)
{
	enum { ALL = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };
	static const struct {
		uint32_t head[3];
		const char *rest;
		size_t n;
		int seals, r, source;
	} t[] = {
		{{1, 0, 0}, "a", 2, ALL, 0, 0},
		{{0, 0, 2}, "a", 2, ALL, -1, 0},
		{{1, 0, 0}, "a", 2, F_SEAL_WRITE, -1, -1}, /* may still grow */
		{{0, 0, 2}, "a", 2, F_SEAL_WRITE, -1, -1},
		{{1, 0, 0}, "a", 1, ALL, -1, 0}, /* no NUL */
		{{2, 0, 0}, "a", 2, ALL, -1, 0},
		{{0, 0, 0}, "a", 1, ALL, -1, 0},  /* more than it says */
		{{0, 0, 9}, "a", 1, ALL, -1, -1}, /* less */
		{{1, 0, 1}, "a", 2, ALL, -1, -1}, /* one of the two */
		{{0, 1, 1}, "a", 1, ALL, -1, -1},
		{{WIRE_ARGS_MAX + 1, 0, 0}, "a", 2, ALL, -1, 0},
		{{0, 99, 0}, "a", 2, ALL, -1, 0},
		{{0xffffffff, 0xffffffff, 0xffffffff}, "a", 2, ALL, -1, -1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		char bytes[32];
		struct wire_start s;
		size_t at, n;
		int fd;

		memcpy(bytes, t[i].head, 12);
		memcpy(bytes + 12, t[i].rest, t[i].n);
		fd = start_fd(bytes, 12 + t[i].n, t[i].seals);
		assert_int_equal(wire_start_read(&s, fd, NULL), t[i].r);
		assert_int_equal(
			wire_start_find(fd, &at, &n, NULL), t[i].source);
		wire_start_fini(&s);
		close(fd);
	}
	assert_int_equal(wire_start_check(-1, NULL), -1);
	assert_int_equal(wire_start_check(0, NULL), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_start_arrives_as_it_was_sent),
		cmocka_unit_test(a_source_arrives_as_it_was_sent),
		cmocka_unit_test(a_malformed_start_is_refused),
		cmocka_unit_test(every_message_of_the_guest_is_decoded),
		cmocka_unit_test(every_other_message_is_refused),
		cmocka_unit_test(a_message_cut_anywhere_is_refused),
		cmocka_unit_test(an_oversize_message_is_refused),
		cmocka_unit_test(the_checksum_equals_zlibs),
		cmocka_unit_test(
			messages_of_trusted_processes_have_a_checked_shape),
		cmocka_unit_test(a_request_has_no_more_paths_than_it_holds),
	};

	return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
