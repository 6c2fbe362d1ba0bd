/* SPDX-License-Identifier: MIT */
/*
 * hand.c - hands files in
 *
 * Runs in:   front end, confined: between cells
 * Holds:     the socket that the courier (repl/maker/courier.c) got
 * Trusts:    root's service; no file: a program of the jail may change it
 * Leaves:    what was handed in whole
 */
#include "repl/lab/lab.h"

#include "jail/base/io.h"
#include "jail/jail.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

/* Longer than the courier waits for the service. */
#define COURIER_MS 15000
/* How long the service may take for a step: it writes to a disk. */
#define ANSWER_MS 60000
#define LOOK_MS 100

int hand_open(struct hand *h, int courier, enum handin_kind kind, struct err *e)
{
	const struct handin_ask ask = {.version = HANDIN_VERSION, .kind = kind};

	h->fd = -1;
	if (io_send_fds(courier, &ask, sizeof(ask), NULL, 0, 0) < 0)
		return err_errno(e, "reach the courier of this session");
	h->fd = jail_receive(courier, COURIER_MS, e);
	return h->fd < 0 ? -1 : io_set_nonblock(h->fd, 1);
}

void hand_close(struct hand *h)
{
	fd_drop(&h->fd);
}

static int await(const struct hand *h, short events, struct err *e)
{
	int64_t until = now_ms() + ANSWER_MS;
	struct pollfd p = {.fd = h->fd, .events = events};

	while (poll(&p, 1, LOOK_MS) <= 0) {
		if (h->cancelled && h->cancelled(h->arg)) {
			err_set(e, "interrupted");
			return e->code = EINTR, -1;
		}
		if (now_ms() > until)
			return err_set(e, "the maker does not answer");
	}
	return 0;
}

/* Send one message. If the service has refused meanwhile, e says why. */
static int send_one(struct hand *h, const void *buf, size_t n, struct err *e)
{
	struct handin_row row;

	for (;;) {
		if (io_send_fds(h->fd, buf, n, NULL, 0, MSG_DONTWAIT) == 0)
			return 0;
		if (errno != EAGAIN)
			break;
		if (await(h, POLLOUT, e) < 0)
			return -1;
	}
	return hand_next(h, &row, e) < 0
		       ? -1
		       : err_set(e, "the maker answers in another way");
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size &&
	       io_time_to_ns(&a->st_mtim) == io_time_to_ns(&b->st_mtim) &&
	       io_time_to_ns(&a->st_ctim) == io_time_to_ns(&b->st_ctim);
}

int hand_file(struct hand *h, const char *name, int in, struct err *e)
{
	struct handin_head head = {.bytes = 0};
	struct stat before, after;
	char piece[16 << 10];
	int64_t left;

	if (fstat(in, &before) < 0)
		return err_errno(e, "read %s", name);
	left = head.bytes = before.st_size;
	snprintf(head.name, sizeof(head.name), "%s", name);
	if (send_one(h, &head, sizeof(head), e) < 0)
		return -1;
	while (left > 0) {
		size_t most = left < (int64_t)sizeof(piece) ? (size_t)left
							    : sizeof(piece);
		ssize_t n = io_read_full(in, piece, most);

		if (n < 0)
			return err_errno(e, "read %s", name);
		if (n == 0)
			break;
		if (send_one(h, piece, (size_t)n, e) < 0)
			return -1;
		left -= n;
	}
	if (left || fstat(in, &after) < 0 || !is_same(&before, &after)) {
		err_set(e, "%s changed while it was copied", name);
		return err_hint(e, "nothing was handed in: try again");
	}
	return 0;
}

int hand_commit(struct hand *h, struct err *e)
{
	const struct handin_head end = {.bytes = 0};

	return send_one(h, &end, sizeof(end), e);
}

int hand_next(struct hand *h, struct handin_row *row, struct err *e)
{
	ssize_t n = -1;

	/* One that refuses without reading resets the connection; the answer
	 * is behind that. */
	for (int i = 0; i < 2 && n < 0; i++) {
		if (await(h, POLLIN, e) < 0)
			return -1;
		n = io_recv_fds(h->fd, row, sizeof(*row), NULL, 0, 0);
	}
	if (n != (ssize_t)sizeof(*row)) {
		err_set(e, "the maker was cut off");
		return err_hint(e, ":submit lists what was handed in");
	}
	row->name[sizeof(row->name) - 1] = '\0';
	row->receipt[sizeof(row->receipt) - 1] = '\0';
	row->course[sizeof(row->course) - 1] = '\0';
	row->exercise[sizeof(row->exercise) - 1] = '\0';
	if (row->ok)
		return row->name[0] != '\0';
	row->err.msg[sizeof(row->err.msg) - 1] = '\0';
	row->err.hint[sizeof(row->err.hint) - 1] = '\0';
	*e = row->err;
	return -1;
}

void hand_due(struct strbuf *b, const char *course, const char *exercise,
	int64_t due_s)
{
	time_t now = time(NULL);
	char due[TEXT_HUMAN];

	if (course && *course)
		strbuf_printf(b, "course %s", course);
	if (!exercise || !*exercise)
		return;
	strbuf_printf(b, "%sexercise %s", b->n ? ": " : "", exercise);
	if (due_s)
		strbuf_printf(b, " %s %s", now < due_s ? "due" : "was due",
			text_moment(due, due_s, now, false));
}
