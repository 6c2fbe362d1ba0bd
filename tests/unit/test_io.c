/* SPDX-License-Identifier: MIT */
/*
 * test_io.c - messages between processes
 */
#include "jail/base/io.h"

#include "forked.h"

#include <errno.h>
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_before_a_reset_is_received),
	};

	return cmocka_run_group_tests_name("io", tests, NULL, NULL);
}
