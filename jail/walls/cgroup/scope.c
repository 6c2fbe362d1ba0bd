/* SPDX-License-Identifier: MIT */
/*
 * scope.c - a cgroup from the person's own systemd, delegated to them
 *
 * Runs in:   warden of a session that a person started, before anything else
 *            exists that it could move
 * Holds:     for the time of one question, a connection to the person's
 *            service manager; no later process has it
 * Trusts:    nothing the manager says: what counts is the cgroup in which the
 *            kernel shows this process afterwards
 * Leaves:    this process in a scope of its own, which ends with its last
 *            process
 *
 * The manager speaks D-Bus (the specification is at dbus.freedesktop.org) on a
 * socket of its own, without a bus between. One call is made there, the one of
 * `systemd-run --user --scope -p Delegate=yes`. A library for it would take
 * longer to load than the call takes.
 *
 * Delegate=yes also keeps the manager from ending the scope when the kernel
 * kills a process in it for memory.
 */
#include "cgroup.h"

#include "impl.h"
#include "jail/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* A manager that does not answer by then is not waited for. */
#define ANSWER_MS 2000
/* The answer, and what the manager tells about the unit: each is smaller. */
#define MESSAGE_MAX 16384

enum { METHOD_CALL = 1, ERROR_REPLY = 3, SIGNAL = 4 };
enum { PATH = 1, INTERFACE = 2, MEMBER = 3, DESTINATION = 6, SIGNATURE = 8 };
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define BYTE_ORDER_MARK 'l'
#else
#define BYTE_ORDER_MARK 'B'
#endif
/* Byte order, type, flags, version; length of the body; serial; length of the
 * fields of the header. */
#define HEADER 16
#define AT_TYPE 1
#define AT_BODY 4
#define AT_FIELDS 12

/* ---- the question ---- */

/* A message is built here; what does not fit is a mistake of ours. */
struct message {
	unsigned char b[1024];
	size_t n;
};

static void put(struct message *m, const void *data, size_t n)
{
	if (n <= sizeof(m->b) - m->n)
		memcpy(m->b + m->n, data, n);
	m->n += n;
}

static void align(struct message *m, size_t to)
{
	while (m->n % to)
		put(m, "", 1);
}

static void put_u32(struct message *m, size_t v)
{
	uint32_t is = (uint32_t)v;

	align(m, 4);
	put(m, &is, sizeof(is));
}

static void put_string(struct message *m, const char *s)
{
	put_u32(m, strlen(s));
	put(m, s, strlen(s) + 1);
}

static void put_signature(struct message *m, const char *s)
{
	unsigned char n = (unsigned char)strlen(s);

	put(m, &n, 1);
	put(m, s, n + 1u);
}

/* Write the bytes since `from` into the length before them. */
static void set_length(struct message *m, size_t at, size_t from)
{
	uint32_t n = (uint32_t)(m->n - from);

	memcpy(m->b + at, &n, sizeof(n));
}

static void put_field(
	struct message *m, unsigned char code, const char *type, const char *s)
{
	align(m, 8);
	put(m, &code, 1);
	put_signature(m, type);
	if (*type == 'g')
		put_signature(m, s);
	else
		put_string(m, s);
}

static void begin_property(
	struct message *m, const char *name, const char *type)
{
	align(m, 8);
	put_string(m, name);
	put_signature(m, type);
}

static void put_properties(struct message *m)
{
	size_t length, from;

	put_u32(m, 0);
	length = m->n - 4;
	align(m, 8);
	from = m->n;
	begin_property(m, "Description", "s");
	put_string(m, "a session of cellblock");
	begin_property(m, "Delegate", "b");
	put_u32(m, 1);
	begin_property(m, "CollectMode", "s");
	put_string(m, "inactive-or-failed");
	begin_property(m, "PIDs", "au");
	put_u32(m, sizeof(uint32_t));
	put_u32(m, (size_t)getpid());
	set_length(m, length, from);
}

/* StartTransientUnit(name, mode, properties, auxiliary units) */
static int make_question(struct message *m, const char *name)
{
	static const unsigned char start[] = {
		BYTE_ORDER_MARK, METHOD_CALL, 0, 1};
	size_t body;

	m->n = 0;
	put(m, start, sizeof(start));
	put_u32(m, 0);
	put_u32(m, 1);
	put_u32(m, 0);
	put_field(m, PATH, "o", "/org/freedesktop/systemd1");
	put_field(m, DESTINATION, "s", "org.freedesktop.systemd1");
	put_field(m, INTERFACE, "s", "org.freedesktop.systemd1.Manager");
	put_field(m, MEMBER, "s", "StartTransientUnit");
	put_field(m, SIGNATURE, "g", "ssa(sv)a(sa(sv))");
	set_length(m, AT_FIELDS, HEADER);
	align(m, 8);
	body = m->n;
	put_string(m, name);
	put_string(m, "fail");
	put_properties(m);
	put_u32(m, 0);
	align(m, 8);
	set_length(m, AT_BODY, body);
	return m->n <= sizeof(m->b) ? 0 : -1;
}

/* ---- the answer ---- */

/* Read exactly `n` bytes. -1 with errno. */
static int receive(int fd, void *to, size_t n, int64_t until)
{
	char *p = to;

	while (n > 0) {
		int64_t ms = until - now_ms();
		struct pollfd pfd = {.fd = fd, .events = POLLIN};
		ssize_t r = -1;

		errno = ETIMEDOUT;
		if (ms > 0 && poll(&pfd, 1, (int)ms) > 0)
			r = recv(fd, p, n, MSG_DONTWAIT);
		if (r == 0)
			errno = ECONNRESET;
		if (r == 0 || (r < 0 && errno != EINTR && errno != EAGAIN))
			return -1;
		if (r > 0) {
			p += r;
			n -= (size_t)r;
		}
	}
	return 0;
}

/* The line with which the manager accepts the name, or does not. */
static int be_let_in(int fd, int64_t until, struct err *e)
{
	char line[128];
	size_t n = 0;

	while (n < sizeof(line) - 1) {
		if (receive(fd, line + n, 1, until) < 0)
			return err_errno(e, "wait to be let in");
		if (line[n++] == '\n')
			break;
	}
	line[n] = '\0';
	return !strncmp(line, "OK ", 3) ? 0 : err_set(e, "not let in");
}

static uint32_t u32_at(const unsigned char *m, size_t at)
{
	uint32_t v;

	memcpy(&v, m + at, sizeof(v));
	return v;
}

/* The next message: its length, and where its body begins. -1 with errno. */
static ssize_t next_message(
	int fd, unsigned char m[MESSAGE_MAX], size_t *body, int64_t until)
{
	size_t n;

	if (receive(fd, m, HEADER, until) < 0)
		return -1;
	errno = EPROTO;
	if (m[0] != BYTE_ORDER_MARK || u32_at(m, AT_BODY) > MESSAGE_MAX ||
		u32_at(m, AT_FIELDS) > MESSAGE_MAX)
		return -1;
	*body = HEADER + (((size_t)u32_at(m, AT_FIELDS) + 7) & ~(size_t)7);
	n = *body + u32_at(m, AT_BODY);
	if (n > MESSAGE_MAX || receive(fd, m + HEADER, n - HEADER, until) < 0)
		return -1;
	return (ssize_t)n;
}

/* What it says is shown to a person. */
static int refused(const unsigned char *m, size_t n, size_t body, struct err *e)
{
	char why[160];
	size_t i = 0, at = body + sizeof(uint32_t);

	while (at + i < n && i < sizeof(why) - 1 && m[at + i] >= ' ' &&
		m[at + i] < 0x7f) {
		why[i] = (char)m[at + i];
		i++;
	}
	why[i] = '\0';
	return err_set(e, "%s", i ? why : "no reason given");
}

/* ---- the scope ---- */

static int is_in(const char *name)
{
	char own[8192], end[96];

	snprintf(end, sizeof(end), "/%s\n", name);
	return cgroup_dir_read(
		       AT_FDCWD, "/proc/self/cgroup", own, sizeof(own)) > 0 &&
	       strstr(own, end);
}

/* Whether the manager says that its work on the unit is over. */
static int is_end(const unsigned char *m, size_t n, const char *name)
{
	return m[AT_TYPE] == SIGNAL &&
	       memmem(m, n, "JobRemoved", strlen("JobRemoved")) &&
	       memmem(m, n, name, strlen(name));
}

/* Each message that comes is a reason to look where we are. */
static int await_move(int fd, const char *name, int64_t until, struct err *e)
{
	unsigned char m[MESSAGE_MAX];
	size_t body = 0;
	ssize_t n;
	int over = 0;

	while (!is_in(name)) {
		if (over)
			return err_set(e, "this process was not moved");
		n = next_message(fd, m, &body, until);
		if (n < 0)
			return err_errno(e, "wait for the answer");
		if (m[AT_TYPE] == ERROR_REPLY)
			return refused(m, (size_t)n, body, e);
		over = is_end(m, (size_t)n, name);
	}
	return 0;
}

static int ask(int fd, const char *name, struct err *e)
{
	int64_t until = now_ms() + ANSWER_MS;
	struct message m;
	char hello[64], uid[16];
	int n;

	/* The name is the number of the user, in hexadecimal digits of its
	 * text; the socket proves it. */
	snprintf(uid, sizeof(uid), "%u", (unsigned)geteuid());
	n = snprintf(hello, sizeof(hello), "%cAUTH EXTERNAL ", '\0');
	for (const char *p = uid; *p; p++)
		n += snprintf(hello + n, sizeof(hello) - (size_t)n, "%02x",
			(unsigned)*p);
	n += snprintf(hello + n, sizeof(hello) - (size_t)n, "\r\nBEGIN\r\n");
	if (make_question(&m, name) < 0)
		return err_set(e, "the question is too long");
	if (send(fd, hello, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) != n ||
		send(fd, m.b, m.n, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)m.n)
		return err_errno(e, "ask");
	return be_let_in(fd, until, e) < 0 ? -1
					   : await_move(fd, name, until, e);
}

int cgroup_scope_enter(const char *runtime, struct err *e)
{
	auto_close int fd =
		socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	char name[64];

	snprintf(to.sun_path, sizeof(to.sun_path), "%s/systemd/private",
		runtime);
	/* A pid may be another session's in another container. */
	snprintf(name, sizeof(name), "cellblock-%d-%llx.scope", (int)getpid(),
		(unsigned long long)now_ns());
	if (fd < 0)
		return err_errno(e, "create a socket");
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0) {
		if (ask(fd, name, e) == 0)
			return 0;
	} else if (errno == ENOENT || errno == ECONNREFUSED) {
		return 1;
	} else {
		err_errno(e, "connect to %s", to.sun_path);
	}
	return err_wrap(e, "your systemd gave no cgroup");
}
