/* SPDX-License-Identifier: MIT */
/*
 * capture.c - a program's output, as much as an answer has of it
 *
 * Runs in:   front end, confined
 * Trusts:    nobody: any bytes, any number of them
 * Leaves:    the beginning of the output, and whether there was more
 *
 * snekbox reads chunks of 10,000 characters and adds up the memory that Python
 * needs for each: about 50 bytes, and 1, 2 or 4 bytes a character, as many as
 * the widest character needs. It stops after the chunk that exceeds the limit.
 */
#include "repl/json/json.h"

#include "jail/base/io.h"
#include "repl/text/text.h"

#include <errno.h>
#include <sys/ioctl.h>

#define CHUNK_CHARS 10000
#define CHUNK_BYTES 50

void capture_open(struct capture *c, int fd, uint64_t max, bool counts)
{
	*c = (struct capture){
		.fd = fd, .max = max, .counts = counts, .width = 1};
	if (fd >= 0)
		io_set_nonblock(fd, 1);
}

void capture_close(struct capture *c)
{
	fd_drop(&c->fd);
	strbuf_free(&c->text);
}

static unsigned find_width(unsigned char lead)
{
	return lead < 0xc4 ? 1 : lead < 0xf0 ? 2 : 4;
}

/* How many of these bytes are in chunks that snekbox would read. */
static size_t count_bytes_within(struct capture *c, const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (utf8_continues(p[i]))
			continue;
		if (c->chars == CHUNK_CHARS) {
			c->chunks += CHUNK_BYTES + CHUNK_CHARS * c->width;
			c->chars = 0;
			c->width = 1;
			if (c->chunks > c->max)
				return i;
		}
		c->chars++;
		if (find_width((unsigned char)p[i]) > c->width)
			c->width = find_width((unsigned char)p[i]);
	}
	return n;
}

static void keep_bytes(struct capture *c, const char *p, size_t n)
{
	/* A character has at most four bytes. Bytes that are no character may
	 * not be counted: we keep as many as characters could have. */
	uint64_t max = c->counts ? 4 * (c->max + CHUNK_CHARS) : c->max;
	uint64_t room = max - c->text.n;
	size_t kept = c->counts ? count_bytes_within(c, p, n) : n;

	kept = kept < room ? kept : (size_t)room;
	strbuf_add(&c->text, p, kept);
	c->cut = kept < n;
}

void capture_read(struct capture *c)
{
	char buf[64 << 10];
	ssize_t n = read(c->fd, buf, sizeof(buf));

	if (n > 0 && !c->cut)
		keep_bytes(c, buf, (size_t)n);
	else if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		fd_drop(&c->fd);
}

void capture_finish(struct capture *c)
{
	int left = 0;

	/* Do not wait for the end of file: a write end may lie in a message to
	 * a socket that the kernel has yet to free. */
	while (c->fd >= 0 && ioctl(c->fd, FIONREAD, &left) == 0 && left > 0)
		capture_read(c);
	fd_drop(&c->fd);
}
