/* SPDX-License-Identifier: MIT */
/*
 * dbus.c - a few questions to a service that speaks D-Bus
 *
 * Runs in:   warden, before anything else exists; client of a session; --check
 * Trusts:    nothing that comes, for more than what its reader makes of it
 * Leaves:    a connection, which its owner closes
 */
#include "dbus.h"

#include "err.h"
#include "io.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define BYTE_ORDER_MARK 'l'
#else
#define BYTE_ORDER_MARK 'B'
#endif
#define METHOD_CALL 1
/* Byte order, type, flags, version; length of the body; serial; length of the
 * fields of the header. */
#define HEADER 16
#define AT_TYPE 1
#define AT_BODY 4
#define AT_FIELDS 12
enum {
	PATH = 1,
	INTERFACE,
	MEMBER,
	REPLY_SERIAL = 5,
	DESTINATION,
	SIGNATURE = 8
};

/* ---- a question ---- */

static void put(struct dbus_message *m, const void *data, size_t n)
{
	if (m->n <= sizeof(m->b) && n <= sizeof(m->b) - m->n)
		memcpy(m->b + m->n, data, n);
	m->n += n;
}

void dbus_align(struct dbus_message *m, size_t to)
{
	while (m->n % to)
		put(m, "", 1);
}

void dbus_put_u32(struct dbus_message *m, size_t v)
{
	uint32_t is = (uint32_t)v;

	dbus_align(m, 4);
	put(m, &is, sizeof(is));
}

void dbus_put_string(struct dbus_message *m, const char *s)
{
	dbus_put_u32(m, strlen(s));
	put(m, s, strlen(s) + 1);
}

void dbus_put_signature(struct dbus_message *m, const char *s)
{
	unsigned char n = (unsigned char)strlen(s);

	put(m, &n, 1);
	put(m, s, n + 1u);
}

/* Write the number of bytes since `from` where its room was left. */
static void set_length(struct dbus_message *m, size_t at, size_t from)
{
	uint32_t n = (uint32_t)(m->n - from);

	if (m->n <= sizeof(m->b))
		memcpy(m->b + at, &n, sizeof(n));
}

size_t dbus_begin_array(struct dbus_message *m, size_t to)
{
	size_t at;

	dbus_put_u32(m, 0);
	at = m->n - sizeof(uint32_t);
	dbus_align(m, to);
	return at;
}

/* The gap before the first element does not count. */
void dbus_end_array(struct dbus_message *m, size_t array, size_t to)
{
	size_t from = array + sizeof(uint32_t);

	set_length(m, array, (from + to - 1) / to * to);
}

static void put_field(struct dbus_message *m, unsigned char code,
	const char *type, const char *s)
{
	if (!s)
		return;
	dbus_align(m, 8);
	put(m, &code, 1);
	dbus_put_signature(m, type);
	if (*type == 'g')
		dbus_put_signature(m, s);
	else
		dbus_put_string(m, s);
}

void dbus_begin(struct dbus_message *m, uint32_t serial,
	const struct dbus_method *method)
{
	static const unsigned char start[] = {
		BYTE_ORDER_MARK, METHOD_CALL, 0, 1};

	m->n = 0;
	put(m, start, sizeof(start));
	dbus_put_u32(m, 0);
	dbus_put_u32(m, serial);
	dbus_put_u32(m, 0);
	put_field(m, PATH, "o", method->path);
	put_field(m, DESTINATION, "s", method->to);
	put_field(m, INTERFACE, "s", method->interface);
	put_field(m, MEMBER, "s", method->member);
	put_field(m, SIGNATURE, "g", method->signature);
	set_length(m, AT_FIELDS, HEADER);
	dbus_align(m, 8);
	m->body = m->n;
}

void dbus_end(struct dbus_message *m)
{
	set_length(m, AT_BODY, m->body);
}

/* ---- a connection ---- */

/* Who we are is the number of the user, in hexadecimal digits of its text. */
static int introduce(int fd)
{
	char hello[64], uid[16];
	int n;

	snprintf(uid, sizeof(uid), "%u", (unsigned)geteuid());
	n = snprintf(hello, sizeof(hello), "%cAUTH EXTERNAL ", '\0');
	for (const char *p = uid; *p; p++)
		n += snprintf(hello + n, sizeof(hello) - (size_t)n, "%02x",
			(unsigned)*p);
	n += snprintf(hello + n, sizeof(hello) - (size_t)n, "\r\nBEGIN\r\n");
	return send(fd, hello, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) == n
		       ? 0
		       : -1;
}

int dbus_open(struct dbus *d, const char *path)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int code;

	d->is_in = false;
	d->n = d->taken = 0;
	d->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (d->fd < 0)
		return -1;
	snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
	if (connect(d->fd, (struct sockaddr *)&to, sizeof(to)) == 0 &&
		introduce(d->fd) == 0)
		return 0;
	code = errno;
	dbus_close(d);
	errno = code;
	return -1;
}

void dbus_close(struct dbus *d)
{
	fd_drop(&d->fd);
}

int dbus_ask(struct dbus *d, const struct dbus_message *m, struct err *e)
{
	if (m->n > sizeof(m->b))
		return err_set(e, "the question is too long");
	if (send(d->fd, m->b, m->n, MSG_NOSIGNAL | MSG_DONTWAIT) !=
		(ssize_t)m->n)
		return err_errno(e, "ask");
	return 0;
}

/* ---- what comes ---- */

int dbus_read(struct dbus *d)
{
	ssize_t r = recv(d->fd, d->b + d->n, sizeof(d->b) - d->n, MSG_DONTWAIT);

	if (r > 0)
		d->n += (size_t)r;
	else if (r == 0)
		errno = d->n == sizeof(d->b) ? EPROTO : ECONNRESET;
	return r > 0 || (r < 0 && (errno == EAGAIN || errno == EINTR)) ? 0 : -1;
}

static void drop_taken(struct dbus *d)
{
	d->n -= d->taken;
	memmove(d->b, d->b + d->taken, d->n);
	d->taken = 0;
}

/* The line with which we are accepted, or are not: 1, 0, -1. */
static int take_line(struct dbus *d)
{
	const unsigned char *end = memchr(d->b, '\n', d->n);

	errno = EACCES;
	if (!end)
		return d->n < 256 ? 0 : -1;
	if (d->n < 3 || memcmp(d->b, "OK ", 3) != 0)
		return -1;
	d->taken = (size_t)(end + 1 - d->b);
	drop_taken(d);
	d->is_in = true;
	return 1;
}

static uint32_t u32_at(const unsigned char *b, size_t at)
{
	uint32_t v;

	memcpy(&v, b + at, sizeof(v));
	return v;
}

static size_t align8(size_t n)
{
	return (n + 7) & ~(size_t)7;
}

/* The number of the question that a message answers. Its fields are numbers
 * and texts; a field of another kind ends the search. */
static uint32_t find_question(const unsigned char *b, size_t end)
{
	for (size_t at = HEADER; at + 8 <= end; at = align8(at)) {
		unsigned char code = b[at], type = b[at + 2];
		uint32_t v = u32_at(b, at + 4);

		if (b[at + 1] != 1)
			return 0;
		if (code == REPLY_SERIAL && type == 'u')
			return v;
		if (type == 'u')
			at += 8;
		else if (type == 'g')
			at += 4 + b[at + 4] + 2u;
		else if ((type == 's' || type == 'o') && v < DBUS_MAX)
			at += 8 + v + 1;
		else
			return 0;
	}
	return 0;
}

int dbus_take(struct dbus *d, struct dbus_answer *a)
{
	size_t fields, n;
	int r;

	drop_taken(d);
	r = d->is_in ? 1 : take_line(d);
	if (r <= 0 || d->n < HEADER)
		return r < 0 ? -1 : 0;
	errno = EPROTO;
	fields = u32_at(d->b, AT_FIELDS);
	n = u32_at(d->b, AT_BODY);
	if (d->b[0] != BYTE_ORDER_MARK || n > DBUS_MAX || fields > DBUS_MAX)
		return -1;
	a->body = a->at = HEADER + align8(fields);
	n += a->body;
	if (n > DBUS_MAX)
		return -1;
	if (d->n < n)
		return 0;
	a->type = d->b[AT_TYPE];
	a->to = find_question(d->b, HEADER + fields);
	a->b = d->b;
	a->n = d->taken = n;
	return 1;
}

int dbus_await(struct dbus *d, struct dbus_answer *a, int64_t until)
{
	for (;;) {
		int64_t ms = until - now_ms();
		struct pollfd p = {.fd = d->fd, .events = POLLIN};
		int r = dbus_take(d, a);

		if (r != 0)
			return r < 0 ? -1 : 0;
		errno = ETIMEDOUT;
		if (ms <= 0 || poll(&p, 1, (int)ms) == 0)
			return -1;
		if (dbus_read(d) < 0)
			return -1;
	}
}

static bool get(struct dbus_answer *a, size_t to, size_t n, size_t *at)
{
	*at = (a->at + to - 1) / to * to;
	if (*at > a->n || n > a->n - *at)
		return false;
	a->at = *at + n;
	return true;
}

bool dbus_get_u32(struct dbus_answer *a, uint32_t *v)
{
	size_t at;

	if (!get(a, 4, sizeof(*v), &at))
		return false;
	*v = u32_at(a->b, at);
	return true;
}

bool dbus_get_string(struct dbus_answer *a, const char **s)
{
	uint32_t n;
	size_t at;

	if (!dbus_get_u32(a, &n) || !get(a, 1, (size_t)n + 1, &at) ||
		a->b[at + n])
		return false;
	*s = (const char *)a->b + at;
	return true;
}

bool dbus_get_signature(struct dbus_answer *a, const char *is)
{
	size_t at, n = strlen(is);

	return get(a, 1, n + 2, &at) && a->b[at] == n &&
	       !memcmp(a->b + at + 1, is, n + 1);
}
