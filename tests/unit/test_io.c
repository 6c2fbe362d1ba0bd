/* SPDX-License-Identifier: MIT */
/*
 * test_io.c - messages between processes, and all that a pipe holds and more
 */
#include "jail/base/io.h"

#include "forked.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

/* A peer that sends a message and ends with unread data: that resets the
 * socket. */
static int peer_of_the_dead(void)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(io_send_fds(pair[0], "unread", 6, NULL, 0, 0), 0);
	assert_int_equal(io_send_fds(pair[1], "why", 3, NULL, 0, 0), 0);
	close(pair[1]);
	return pair[0];
}

static void a_message_before_a_reset_is_received(void **state)
{
	char buf[16];
	int sock;

	(void)state;
	/* control: recv() reports the reset first */
	sock = peer_of_the_dead();
	assert_int_equal(recv(sock, buf, sizeof(buf), 0), -1);
	assert_int_equal(errno, ECONNRESET);
	close(sock);

	sock = peer_of_the_dead();
	assert_int_equal(io_recv_fds(sock, buf, sizeof(buf), NULL, 0, 0), 3);
	assert_memory_equal(buf, "why", 3);
	assert_int_equal(io_recv_fds(sock, buf, sizeof(buf), NULL, 0, 0), 0);
	close(sock);
}

static void what_waits_first_is_looked_at_and_stays(void **state)
{
	char buf[16];
	int pair[2], kept[2], dead;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(pipe2(kept, O_NONBLOCK), 0);
	assert_int_equal(io_look_at_first(pair[0]), IO_FIRST_NOTHING);
	/* An empty message is none but in its length, and hides none. */
	assert_int_equal(send(pair[1], "", 0, 0), 0);
	assert_int_equal(
		io_send_fds(pair[1], "", 0, &kept[1], 1, MSG_DONTWAIT), 0);
	close(kept[1]);
	assert_int_equal(io_look_at_first(pair[0]), IO_FIRST_BYTES);
	assert_int_equal(io_look_at_first(pair[0]), IO_FIRST_BYTES);
	assert_int_equal(recv(pair[0], buf, sizeof(buf), 0), 0);
	assert_int_equal(io_look_at_first(pair[0]), IO_FIRST_FDS);
	assert_int_equal(read(kept[0], buf, 1), -1); /* it is not closed */
	assert_int_equal(errno, EAGAIN);

	dead = peer_of_the_dead();
	assert_int_equal(io_look_at_first(dead), IO_FIRST_BYTES);
	assert_int_equal(recv(dead, buf, sizeof(buf), 0), 3);
	assert_int_equal(io_look_at_first(dead), IO_FIRST_NOTHING);
	close(dead);
	close(kept[0]);
	close(pair[0]);
	close(pair[1]);
}

static void nothing_waits_and_nothing_comes_when_it_is_shut(void **state)
{
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(shutdown(pair[0], SHUT_RD), 0);
	assert_int_equal(io_look_at_first(pair[0]), IO_FIRST_NOTHING);
	assert_int_equal(io_send_fds(pair[1], "x", 1, &pair[1], 1, 0), -1);
	assert_int_equal(errno, EPIPE);
	/* The answer still goes the other way. */
	assert_int_equal(io_send_fds(pair[0], "x", 1, NULL, 0, 0), 0);
	close(pair[0]);
	close(pair[1]);
}

/* Bytes: more than a pipe holds. */
enum { MUCH = 1 << 20 };

/* Neither end blocks, so each waits for the other: the writer in a child. */
static void all_is_written_where_the_descriptor_does_not_block(void **state)
{
	static unsigned char sent[MUCH], got[MUCH];
	int fds[2], status;
	pid_t pid;

	(void)state;
	for (size_t i = 0; i < MUCH; i++)
		sent[i] = (unsigned char)(i % 251);
	assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
	assert_true(fcntl(fds[1], F_GETPIPE_SZ) < MUCH);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		forked_signals();
		_exit(io_write_full(fds[1], sent, MUCH) != 0);
	}
	close(fds[1]);
	assert_int_equal(io_read_full(fds[0], got, MUCH), MUCH);
	assert_memory_equal(got, sent, MUCH);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(fds[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_before_a_reset_is_received),
		cmocka_unit_test(what_waits_first_is_looked_at_and_stays),
		cmocka_unit_test(
			nothing_waits_and_nothing_comes_when_it_is_shut),
		cmocka_unit_test(
			all_is_written_where_the_descriptor_does_not_block),
	};

	return cmocka_run_group_tests_name("io", tests, NULL, NULL);
}
