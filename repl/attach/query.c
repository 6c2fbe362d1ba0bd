/* SPDX-License-Identifier: MIT */
/*
 * query.c - a client's request to a session
 *
 * Runs in:   a client
 * Trusts:    nobody: a planted process may answer. We limit the answer's size
 *            and end its strings; the caller makes its text safe. We take no
 *            descriptor, but for query_side() and query_list(); a child of that
 *            closes it, and we do not wait for the child
 */
#include "attach.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/jail.h"
#include "repl/text/text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* A session that does not answer for so long is busy, or stopped. */
#define ANSWER_MS 1000
/* A command that the session runs may delay these answers. */
#define SIDE_MS 10000
#define WATCH_MS 15000
/* The list of a server's sessions: how long it takes at most, and how often we
 * look. */
#define LIST_MS 2000
#define LOOK_MS 2
/* Most sessions of a server that we list. */
#define ENTRIES_MAX 100000

int query_namespace(struct err *e)
{
	int fd = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);

	return fd >= 0 ? fd : err_errno(e, "open /proc/self/ns/user");
}

void query_begin(
	struct attach_request *r, enum attach_kind kind, const char *text)
{
	*r = (struct attach_request){.magic = ATTACH_MAGIC,
		.version = ATTACH_VERSION,
		.kind = (uint16_t)kind};
	if (text)
		snprintf(r->text, sizeof(r->text), "%s", text);
}

static void end_status(struct attach_status *s)
{
	s->who[sizeof(s->who) - 1] = '\0';
	s->from[sizeof(s->from) - 1] = '\0';
	s->build[sizeof(s->build) - 1] = '\0';
}

/* A session of another build may answer with more or less than we know. */
static int read_answer(
	int sock, struct attach_answer *a, int *fd, struct err *e)
{
	char buf[2 * sizeof(*a)];
	ssize_t n = fd ? io_recv_fds(sock, buf, sizeof(buf), fd, 1, 0)
		       : io_recv_strange(sock, buf, sizeof(buf), 0);

	if (n < 0)
		return err_errno(e, "read the session's answer");
	if ((size_t)n < offsetof(struct attach_answer, status))
		return err_set(e, "the session did not answer");
	*a = (struct attach_answer){0};
	memcpy(a, buf, (size_t)n < sizeof(*a) ? (size_t)n : sizeof(*a));
	a->text[sizeof(a->text) - 1] = '\0';
	end_status(&a->status);
	if (a->magic != ATTACH_MAGIC)
		return err_set(e, "what answers there is no session");
	return a->word == ATTACH_NO ? err_set(e, "%s", a->text) : 0;
}

/* *fd (unless NULL) is the descriptor that comes with the answer, or -1. */
static int ask_session(int sock, const struct attach_request *r, int ms,
	struct attach_answer *a, int *fd, struct err *e)
{
	auto_close int ns = query_namespace(e);

	if (ns < 0)
		return -1;
	if (fd)
		io_allow_fds(sock);
	if (io_send_fds(sock, r, sizeof(*r), &ns, 1, MSG_DONTWAIT) < 0)
		return err_errno(e, "ask the session");
	if (!io_await(sock, ms))
		return err_set(e, "the session does not answer");
	return read_answer(sock, a, fd, e);
}

int query_ask(int sock, enum attach_kind kind, const char *text,
	struct attach_answer *a, struct err *e)
{
	struct attach_request r;

	query_begin(&r, kind, text);
	return ask_session(sock, &r, ANSWER_MS, a, NULL, e);
}

int query_end(int sock, int number, const char *text, struct err *e)
{
	struct attach_request r;
	struct attach_answer a;

	query_begin(&r, ATTACH_END, text);
	r.number = number;
	return ask_session(sock, &r, ANSWER_MS, &a, NULL, e);
}

/* In a child: ask for the list, and write its bytes to the pipe. A planted
 * process may answer with any file: io_sealed_size() knows those that hold
 * nobody up until they are closed. */
static _Noreturn void copy_list(int sock, int to)
{
	const int keep[] = {sock, to};
	struct attach_request r;
	struct attach_answer a;
	struct err e;
	char buf[16 << 10];
	off_t size = -1, at = 0;
	ssize_t n = 1;
	int fd = -1;

	query_begin(&r, ATTACH_LIST, NULL);
	if (jail_stand_apart(keep, 2, "cellblock-list", &e) == 0 &&
		ask_session(sock, &r, ANSWER_MS, &a, &fd, &e) == 0)
		size = io_sealed_size(fd);
	for (; at < size && n > 0; at += n) {
		n = pread(fd, buf, sizeof(buf), at);
		if (n > 0 && io_write_full(to, buf, (size_t)n) < 0)
			n = -1;
	}
	_exit(at != size);
}

/* Read what the child writes, until `until_ms`. 0, or -1: not all. */
static int take_list(int from, int64_t until_ms, struct strbuf *b)
{
	char buf[16 << 10];
	ssize_t n;

	while (b->n <= ENTRIES_MAX * sizeof(struct attach_entry)) {
		int64_t left = until_ms - now_ms();

		if (left <= 0 || !io_await(from, (int)left))
			return -1;
		n = read(from, buf, sizeof(buf));
		if (n <= 0)
			return (int)n;
		strbuf_add(b, buf, (size_t)n);
	}
	return -1;
}

/* The entries in the bytes that came. 0, or -1: it is malformed. */
static int unpack_list(
	const struct strbuf *b, struct attach_entry **v, size_t *n)
{
	if (b->failed || b->n % sizeof(**v))
		return -1;
	*n = b->n / sizeof(**v);
	*v = calloc(*n + 1, sizeof(**v));
	if (!*v)
		return -1;
	if (b->n)
		memcpy(*v, b->s, b->n);
	for (size_t i = 0; i < *n; i++)
		end_status(&(*v)[i].status);
	return 0;
}

pid_t query_fork(int *sock)
{
	int go[2];
	char c;
	pid_t pid;

	if (pipe2(go, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		while (read(go[0], &c, 1) < 0 && errno == EINTR)
			;
		close(go[0]);
		return 0;
	}
	fd_drop(sock);
	close(go[0]);
	close(go[1]);
	return pid;
}

int query_list(int *sock, struct attach_entry **v, size_t *n)
{
	int64_t until_ms = now_ms() + LIST_MS;
	struct strbuf b = {0};
	int pair[2], status = 0, r;
	pid_t pid;

	*v = NULL;
	*n = 0;
	if (pipe2(pair, O_CLOEXEC) < 0)
		return -1;
	pid = query_fork(sock);
	if (pid == 0)
		copy_list(*sock, pair[1]);
	close(pair[1]);
	r = pid < 0 ? -1 : take_list(pair[0], until_ms, &b);
	close(pair[0]);
	while (r == 0 && waitpid(pid, &status, WNOHANG) == 0)
		if (now_ms() >= until_ms)
			r = -1;
		else
			poll(NULL, 0, LOOK_MS);
	if (r < 0 && pid > 0)
		kill(pid, SIGKILL);
	if (r == 0)
		r = status ? -1 : unpack_list(&b, v, n);
	strbuf_free(&b);
	return r;
}

int query_side(int sock, enum attach_side what, struct err *e)
{
	struct attach_request r;
	struct attach_answer a;
	int fd = -1;

	query_begin(&r, ATTACH_SIDE, NULL);
	r.number = (int32_t)what;
	if (ask_session(sock, &r, SIDE_MS, &a, &fd, e) < 0) {
		fd_drop(&fd);
		return -1;
	}
	return fd >= 0 ? fd : err_set(e, "the session did not answer");
}

int query_watch(int sock, const char *from, struct err *e)
{
	struct attach_request r;
	struct attach_answer a;

	query_begin(&r, ATTACH_WATCH, NULL);
	snprintf(r.from, sizeof(r.from), "%s", from);
	if (ask_session(sock, &r, WATCH_MS, &a, NULL, e) < 0)
		return -1;
	if (a.number == WATCHER_STREAM)
		return 0;
	return err_set(e, "this session was begun by another build of "
			  "cellblock, and cannot be watched by this one");
}

bool query_packet(const void *packet, size_t n, struct watcher_head *h)
{
	if (n < sizeof(*h) || n > sizeof(*h) + WATCHER_DATA)
		return false;
	memcpy(h, packet, sizeof(*h));
	return h->magic == ATTACH_MAGIC && h->kind >= WATCHER_SOURCE &&
	       h->kind <= WATCHER_OVER && h->number >= 0;
}
