/* SPDX-License-Identifier: MIT */
/*
 * requests.c - what a session is asked for
 *
 * Runs in:   front end
 * Trusts:    the warden for shape only: a reply is checked, texts that came
 *            from a guest are passed on as bytes
 */
#include "client.h"

#include "jail/walls/walls.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A front end may have many sessions that others made: none of them keeps it
 * from the rest for longer than this. */
#define ANSWER_MS 5000
/* The kernel frees the descriptors that a dead guest had sent, and nobody had
 * received, a moment after its end. */
#define IN_FLIGHT_MS 1000

/* ---- sending, and the reply ---- */

void jail_watch_interrupt(
	struct jail *j, int fd, int (*cb)(void *arg), void *arg)
{
	j->asked.interrupt_fd = fd;
	j->asked.interrupt_cb = cb;
	j->asked.interrupt_arg = arg;
}

/* Wait for the warden's answer, and tell it when the person interrupts. 0, or
 * -1 with e when the time is up. */
static int wait_reply(struct jail *j, int64_t since_ms, struct err *e)
{
	struct pollfd p[2] = {{.fd = j->sock, .events = POLLIN},
		{.fd = j->asked.interrupt_cb ? j->asked.interrupt_fd : -1,
			.events = POLLIN}};
	int64_t left = since_ms + ANSWER_MS - now_ms();
	int ms = j->patient ? -1 : left > 0 ? (int)left : 0;
	int r = poll(p, 2, ms);

	if (r > 0 && p[1].revents &&
		j->asked.interrupt_cb(j->asked.interrupt_arg))
		jail_interrupt(j);
	if (r != 0)
		return 0;
	err_set(e, "the session does not answer");
	return err_kind_set(e, ERR_JAIL);
}

/* Send a request, with descriptors (borrowed; the first that is -1 ends them).
 */
static int tell_fds(struct jail *j, struct wire_front m, const int *fds,
	int nfds, struct err *e)
{
	int64_t end = now_ms() + IN_FLIGHT_MS;
	int n = 0, r;

	while (n < nfds && fds[n] >= 0)
		n++;
	m.seq = ++j->asked.seq;
	while ((r = io_send_fds(j->sock, &m, sizeof(m), fds, n, 0)) < 0 &&
		errno == ETOOMANYREFS && now_ms() < end)
		poll(NULL, 0, 10);
	if (r == 0)
		return 0;
	if (errno == ETOOMANYREFS)
		return err_errno(e, "hand it over to the session");
	return jail_say_gone(j, e);
}

static int tell_warden(struct jail *j, enum wire_front_type type, int64_t a,
	int64_t b, struct err *e)
{
	const struct wire_front m = {.type = type, .a = a, .b = b};

	return tell_fds(j, m, NULL, 0, e);
}

/* Send what an interrupt is meant for from now on. */
static int tell_last(struct jail *j, struct wire_front m, int fd, struct err *e)
{
	j->asked.last = j->asked.seq + 1;
	return tell_fds(j, m, &fd, 1, e);
}

/* Wait for the reply to what was sent last; other events are kept. */
static int await_reply(struct jail *j, struct wire_event *reply, struct err *e)
{
	const uint32_t seq = j->asked.seq;
	int64_t now = now_ms();
	int r = 0;

	while (r >= 0) {
		r = jail_take_message(j, reply, e);
		if (r == 0)
			r = wait_reply(j, now, e);
		else if (r > 0 && (reply->event.type != JAIL_REPLY ||
					  reply->reply.seq == j->asked.sent))
			r = jail_keep(j, &reply->event, e);
		else if (r > 0 && reply->reply.seq == seq)
			break;
		else if (r > 0)
			jail_event_close(&reply->event);
	}
	if (r > 0 && reply->reply.ok)
		return 0;
	if (r > 0 && e)
		*e = reply->reply.err;
	if (r > 0)
		jail_event_close(&reply->event);
	return -1;
}

static int call_with(struct jail *j, struct wire_front m,
	struct wire_event *reply, struct err *e)
{
	return tell_last(j, m, -1, e) < 0 ? -1 : await_reply(j, reply, e);
}

static int call_warden(struct jail *j, enum wire_front_type type, int64_t a,
	struct wire_event *reply, struct err *e)
{
	const struct wire_front m = {.type = type, .a = a};

	return call_with(j, m, reply, e);
}

static int front_path(struct wire_front *m, enum wire_front_type type,
	const char *path, struct err *e)
{
	*m = (struct wire_front){.type = type};
	if (strlen(path) >= sizeof(m->path))
		return err_set(e, "%.60s…: name too long", path);
	memcpy(m->path, path, strlen(path) + 1);
	return 0;
}

/* Send a call whose reply comes as an event. */
static int tell_later(struct jail *j, struct wire_front m, struct err *e)
{
	int r = tell_last(j, m, -1, e);

	if (r == 0)
		j->asked.sent = j->asked.seq;
	return r;
}

int jail_send(struct jail *j, enum jail_call call, int n, const char *path,
	struct err *e)
{
	static const enum wire_front_type types[] = {
		[CALL_READY] = FRONT_READY,
		[CALL_RESET] = FRONT_RESET,
		[CALL_UNDO] = FRONT_UNDO,
		[CALL_REMOVE] = FRONT_HOME_REMOVE,
		[CALL_LIST] = FRONT_HOME_LIST,
		[CALL_OPEN] = FRONT_HOME_OPEN,
	};
	struct wire_front m;
	int r = front_path(&m, types[call], path ? path : "", e);

	m.a = n;
	return r == 0 ? tell_later(j, m, e) : r;
}

int jail_lower(struct jail *j, const struct limits *l, struct err *e)
{
	const struct wire_front m = {
		.type = FRONT_LOWER, .a = l->memory_bytes, .b = l->home_bytes};

	return tell_later(j, m, e);
}

int jail_run(struct jail *j, const struct jail_run *run, struct err *e)
{
	const struct wire_front m = {.type = FRONT_RUN,
		.a = run->cell,
		.b = run->kind,
		.c = run->wall_ms};
	auto_close int fd = io_sealed_memfd("cellblock-cell", run->src, run->n);
	const int fds[] = {fd, run->report};

	if (fd < 0)
		return err_errno(e, "hold the cell");
	j->asked.last = j->asked.seq + 1;
	return tell_fds(j, m, fds, 2, e);
}

int jail_interrupt(struct jail *j)
{
	return tell_warden(j, FRONT_INTERRUPT, j->asked.last, 0, NULL);
}

int jail_stop(struct jail *j)
{
	return tell_warden(j, FRONT_INTERRUPT, j->asked.last, 1, NULL);
}

int jail_kill(struct jail *j)
{
	return tell_warden(j, FRONT_KILL, j->asked.last, 0, NULL);
}

int jail_resize(struct jail *j, unsigned short rows, unsigned short cols)
{
	return tell_warden(j, FRONT_RESIZE, rows, cols, NULL);
}

int jail_tell_waits(struct jail *j)
{
	return tell_warden(j, FRONT_WAITS, 0, 0, NULL);
}

int jail_tell_usage(struct jail *j)
{
	return tell_warden(j, FRONT_TELL_USAGE, 0, 0, NULL);
}

int jail_touch(struct jail *j)
{
	return tell_warden(j, FRONT_TOUCH, 0, 0, NULL);
}

int jail_start_program(
	struct jail *j, const struct jail_start *start, struct err *e)
{
	const struct wire_front m = {
		.type = FRONT_START, .a = start->wall_ms, .b = start->merged};
	auto_close int fd = wire_start_seal(start, e);

	return fd < 0 ? err_kind_set(e, ERR_JAIL) : tell_last(j, m, fd, e);
}

int jail_start_side(struct jail *j, uint32_t number, int python, struct err *e)
{
	return tell_warden(j, FRONT_SIDE, number, python, e);
}

/* The bytes of an event, NUL-terminated. 0, or -1 with e. */
static int text_take(
	struct jail_event *ev, char **text, size_t *n, struct err *e)
{
	*text = ev->bytes ? ev->bytes : calloc(1, 1);
	*n = ev->nbytes;
	ev->bytes = NULL;
	return *text ? 0 : err_errno(e, "hold an answer");
}

static int tell_question(struct jail *j, enum jail_question q, const char *text,
	size_t n, struct err *e)
{
	const struct wire_front m = {.type = FRONT_ASK, .a = q};
	auto_close int fd = io_sealed_memfd("cellblock-ask", text, n);

	return fd < 0 ? err_errno(e, "hold the question")
		      : tell_last(j, m, fd, e);
}

int jail_ask(struct jail *j, enum jail_question q, const char *text, size_t n,
	char **answer, size_t *answer_n, struct err *e)
{
	struct wire_event reply;

	if (tell_question(j, q, text, n, e) < 0 ||
		await_reply(j, &reply, e) < 0)
		return -1;
	return text_take(&reply.event, answer, answer_n, e);
}

int jail_ask_later(struct jail *j, enum jail_question q, const char *text,
	size_t n, struct err *e)
{
	int r = tell_question(j, q, text, n, e);

	j->asked.sent = r < 0 ? 0 : j->asked.seq;
	return r;
}

int jail_return_keys(struct jail *j)
{
	struct wire_event reply;

	return call_warden(j, FRONT_KEYS, 0, &reply, NULL);
}

int jail_reset(struct jail *j, int *kept, struct err *e)
{
	struct wire_event reply;

	if (call_warden(j, FRONT_RESET, 0, &reply, e) < 0)
		return -1;
	*kept = reply.reply.a != 0;
	return 0;
}

int jail_undo(struct jail *j, int n, struct jail_undone *u, struct err *e)
{
	struct wire_event reply;

	if (call_warden(j, FRONT_UNDO, n, &reply, e) < 0)
		return -1;
	*u = reply.reply.undone;
	return 0;
}

int jail_usage(struct jail *j, struct jail_usage *u, struct err *e)
{
	struct wire_event reply;

	if (call_warden(j, FRONT_USAGE, 0, &reply, e) < 0)
		return -1;
	*u = reply.reply.usage;
	return 0;
}

/* ---- the home ---- */

/* Put as many paths into the request as it has room for: m->a. 0, or -1 with e
 * when not even one fits. */
static int front_paths(
	struct wire_front *m, const char *const *paths, int n, struct err *e)
{
	size_t at = 0;

	for (m->a = 0; m->a < n && m->a < JAIL_MANY_MAX; m->a++) {
		size_t len = strlen(paths[m->a]) + 1;

		if (len > sizeof(m->path) - at)
			break;
		memcpy(m->path + at, paths[m->a], len);
		at += len;
	}
	return m->a || !n ? 0 : err_set(e, "%.60s…: name too long", paths[0]);
}

/* Send a request about several files, of which m->a says how many: how many
 * were served. */
static int call_some(struct jail *j, const struct wire_front *m,
	struct wire_event *reply, struct err *e)
{
	int n;

	if (call_with(j, *m, reply, e) < 0)
		return 0;
	n = reply->reply.a < 0	    ? 0
	    : reply->reply.a > m->a ? (int)m->a
				    : (int)reply->reply.a;
	if (n < m->a && e)
		*e = reply->reply.err;
	return n;
}

/* The n descriptors of a reply; those that are missing are -1. */
static void take_fds(struct jail *j, struct wire_event *reply, int *fds, int n)
{
	for (int i = 0; i < n; i++)
		fds[i] = i ? fd_take(&j->fds[i]) : fd_take(&reply->event.fd);
}

static int open_some(struct jail *j, struct wire_front *m,
	const char *const *paths, int n, int *fds, uint32_t *tokens,
	struct err *e)
{
	struct wire_event reply;
	int done = 0;

	while (done < n) {
		int some;

		if (front_paths(m, paths + done, n - done, e) < 0)
			break;
		some = call_some(j, m, &reply, e);
		take_fds(j, &reply, fds + done, some);
		for (int i = 0; tokens && i < some; i++)
			tokens[done + i] =
				(uint32_t)reply.reply.b + (uint32_t)i;
		done += some;
		if (some < m->a)
			break;
	}
	return done;
}

int jail_home_open_many(struct jail *j, const char *const *paths, int n,
	int *fds, struct err *e)
{
	struct wire_front m = {.type = FRONT_HOME_OPEN};

	return open_some(j, &m, paths, n, fds, NULL, e);
}

int jail_home_open(struct jail *j, const char *path, struct err *e)
{
	int fd;

	return jail_home_open_many(j, &path, 1, &fd, e) == 1 ? fd : -1;
}

int jail_home_create_many(struct jail *j, const char *const *paths, int n,
	int mode, int *fds, uint32_t *tokens, struct err *e)
{
	struct wire_front m = {.type = FRONT_HOME_CREATE, .b = mode};

	return open_some(j, &m, paths, n, fds, tokens, e);
}

int jail_home_commit_many(
	struct jail *j, const struct jail_end *ends, int n, struct err *e)
{
	struct wire_front m = {.type = FRONT_HOME_COMMIT, .a = n};
	struct wire_event reply;

	memcpy(m.ends, ends, (size_t)n * sizeof(*ends));
	return call_some(j, &m, &reply, e);
}

int jail_home_mkdir_many(struct jail *j, const char *const *paths,
	const struct jail_end *ends, int n, struct err *e)
{
	struct wire_front m = {.type = FRONT_HOME_MKDIR};
	struct wire_event reply;
	int done = 0, some = 0;

	while (done < n && front_paths(&m, paths + done, n - done, e) == 0) {
		memcpy(m.ends, ends + done, (size_t)m.a * sizeof(*ends));
		some = call_some(j, &m, &reply, e);
		done += some;
		if (some < m.a)
			break;
	}
	return done;
}

int jail_home_abort(struct jail *j, uint32_t token)
{
	struct wire_event reply;

	return call_warden(j, FRONT_HOME_ABORT, token, &reply, NULL);
}

int jail_home_remove(struct jail *j, const char *path, struct err *e)
{
	struct wire_event reply;
	struct wire_front m;

	if (front_path(&m, FRONT_HOME_REMOVE, path, e) < 0)
		return -1;
	return call_with(j, m, &reply, e);
}

/* One record of a listing; its path points into the text. */
static int file_parse(struct jail_file *f, char *rec)
{
	long long bytes, blocks, mtime;
	unsigned mode;
	int at = 0;

	/* One blank, then the name: which may begin with more of them. */
	if (sscanf(rec, "%c %o %lld %lld %lld %u%n", &f->type, &mode, &bytes,
		    &blocks, &mtime, &f->nlink, &at) != 6 ||
		rec[at] != ' ')
		return -1;
	f->bytes = bytes;
	f->blocks_bytes = blocks;
	f->mtime_ns = mtime;
	f->mode = (int)mode;
	f->path = strdup(rec + at + 1);
	return f->path ? 0 : -1;
}

static int file_order(const void *a, const void *b)
{
	const struct jail_file *x = a, *y = b;

	return strcmp(x->path, y->path);
}

/* Parse the records of a list, whose text is changed. */
static int files_parse(
	struct jail_files *out, char *text, size_t n, struct err *e)
{
	size_t room = 0;

	for (size_t at = 0; at < n; at++)
		room += text[at] == '\0';
	out->v = calloc(room + 1, sizeof(*out->v));
	if (!out->v)
		return err_errno(e, "list the home");
	for (char *rec = text; rec < text + n; rec += strlen(rec) + 1)
		if (file_parse(&out->v[out->n], rec) == 0)
			out->n++;
	if (out->n)
		qsort(out->v, out->n, sizeof(*out->v), file_order);
	return 0;
}

int jail_take_files(
	struct jail_event *ev, struct jail_files *out, struct err *e)
{
	auto_free char *text = NULL;
	size_t n = 0;

	*out = (struct jail_files){.truncated = ev->truncated};
	return text_take(ev, &text, &n, e) < 0 ? -1
					       : files_parse(out, text, n, e);
}

int jail_left_list(int home, struct jail_files *out, struct err *e)
{
	struct home h = {.root = home};
	auto_free char *text = NULL;
	int truncated;
	size_t n;

	*out = (struct jail_files){0};
	text = home_list(&h, &n, &truncated, e);
	out->truncated = truncated;
	return text ? files_parse(out, text, n, e) : -1;
}

int jail_left_open(int home, const char *path, struct err *e)
{
	struct home h = {.root = home};

	return home_open(&h, path, e);
}

int jail_home_list(struct jail *j, struct jail_files *out, struct err *e)
{
	struct wire_event reply;

	*out = (struct jail_files){0};
	if (call_warden(j, FRONT_HOME_LIST, 0, &reply, e) < 0 ||
		jail_take_files(&reply.event, out, e) < 0)
		return -1;
	out->used_bytes = reply.reply.usage.home_bytes;
	out->used_files = reply.reply.usage.home_files;
	return 0;
}

void jail_files_free(struct jail_files *f)
{
	for (size_t i = 0; i < f->n; i++)
		free(f->v[i].path);
	free(f->v);
	*f = (struct jail_files){0};
}
