/* SPDX-License-Identifier: MIT */
/*
 * sftp.c - a refusal that scp and sftp can show
 *
 * Runs in:   front end of an ssh connection, before it confines itself; it
 *            opens nothing, and starts nothing
 * Trusts:    no byte of the client's: we read lengths, kinds and numbers, and
 *            pass over the rest
 * Leaves:    a client that knows that permission is denied
 *
 * sshd throws the standard error of a subsystem away, and scp then says only
 * that the connection was closed. So we speak SFTP (version 3) for as long as
 * the client asks: every file may be there, and none may be opened.
 */
#include "run.h"

#include "jail/base/io.h"

#include <arpa/inet.h>
#include <string.h>
#include <unistd.h>

/* A packet: a length, that of the rest; a kind; the number of the request. */
#define HEAD_BYTES 9
/* Longest packet of any client. */
#define PACKET_MAX (256 * 1024)

enum {
	SFTP_INIT = 1,
	SFTP_VERSION = 2,
	SFTP_LSTAT = 7,
	SFTP_REALPATH = 16,
	SFTP_STAT = 17,
	SFTP_STATUS = 101,
	SFTP_NAME = 104,
	SFTP_ATTRS = 105,
	SFTP_DENIED = 3, /* of a status */
};

struct packet {
	char s[256];
	size_t n;
};

static void put_number(struct packet *p, uint32_t number)
{
	number = htonl(number);
	memcpy(p->s + p->n, &number, sizeof(number));
	p->n += sizeof(number);
}

static void put_text(struct packet *p, const char *text)
{
	size_t n = strlen(text);

	put_number(p, (uint32_t)n);
	memcpy(p->s + p->n, text, n);
	p->n += n;
}

/* Read the head of a packet, and pass over the rest. 0: the client is gone, or
 * speaks something else. */
static int read_packet(unsigned char *kind, uint32_t *number)
{
	unsigned char head[HEAD_BYTES];
	char rest[4096];
	uint32_t n, left;

	if (io_read_full(STDIN_FILENO, head, sizeof(head)) != sizeof(head))
		return 0;
	memcpy(&n, head, sizeof(n));
	memcpy(number, head + 5, sizeof(*number));
	n = ntohl(n);
	*kind = head[4];
	*number = ntohl(*number);
	if (n < HEAD_BYTES - 4 || n > PACKET_MAX)
		return 0;
	for (left = n - (HEAD_BYTES - 4); left;) {
		size_t piece = left < sizeof(rest) ? left : sizeof(rest);

		if (io_read_full(STDIN_FILENO, rest, piece) != (ssize_t)piece)
			return 0;
		left -= (uint32_t)piece;
	}
	return 1;
}

static int answer(unsigned char kind, uint32_t number, const char *why)
{
	static const unsigned char kinds[UINT8_MAX + 1] = {
		[SFTP_INIT] = SFTP_VERSION,
		[SFTP_LSTAT] = SFTP_ATTRS,
		[SFTP_STAT] = SFTP_ATTRS,
		[SFTP_REALPATH] = SFTP_NAME,
	};
	unsigned char is = kinds[kind] ? kinds[kind] : SFTP_STATUS;
	struct packet p = {.n = 5};
	uint32_t n;

	/* In the first packet of either side the version has the place of the
	 * number. */
	put_number(&p, kind == SFTP_INIT ? 3 : number);
	if (is == SFTP_ATTRS) {
		put_number(&p, 0); /* nothing is known of it */
	} else if (is == SFTP_NAME) {
		put_number(&p, 1);
		put_text(&p, "/");
		put_text(&p, "/");
		put_number(&p, 0);
	} else if (is == SFTP_STATUS) {
		put_number(&p, SFTP_DENIED);
		put_text(&p, why);
		put_text(&p, "");
	}
	n = htonl((uint32_t)p.n - 4);
	memcpy(p.s, &n, sizeof(n));
	p.s[4] = (char)is;
	return io_write_full(STDOUT_FILENO, p.s, p.n) == 0;
}

void sftp_refuse(const char *why)
{
	uint32_t number;
	unsigned char kind;

	while (read_packet(&kind, &number) && answer(kind, number, why))
		;
}
