/* SPDX-License-Identifier: MIT */
/*
 * detached.c - a session without a terminal, and its status
 *
 * Runs in:   front end, confined
 * Holds:     while there is no terminal, a file in memory in its place: the end
 *            of the output that the person misses
 * Trusts:    a client's text as nothing but a line in a list
 */
#include "repl/session/session.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/jail.h"
#include "repl/attach/attach.h"
#include "repl/term/term.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Bytes of missed output that we keep, and the size at which we cut it. */
#define MISSED_KEPT (64u << 10)
#define MISSED_MAX (512u << 10)
/* We do not ask for the usage so soon after the start: Python is starting. */
#define YOUNG_MS 2000
/* Shortest time between two such questions. */
#define ASK_MS 100

struct detached {
	int file; /* in place of a terminal; -1: there is a terminal */
	uint64_t cut_lines; /* lines that we cut off the file */
	int64_t since_ms, began_ms, keyed_ms, cell_ms, asked_ms;
	bool runs;   /* a cell runs */
	bool unseen; /* no key came since the last cell ended */
	time_t began;
	char from[64];		/* the client's place, in the client's words */
	char said[ATTACH_TEXT]; /* the last frame line without a terminal */
	struct jail_usage usage;
};

/* A clock that goes on while the machine sleeps. */
static int64_t clock_ms(void)
{
	return io_clock_ns(CLOCK_BOOTTIME) / 1000000;
}

int detached_open(struct session *s, struct err *e)
{
	struct detached *a;

	if (!s->control)
		return 0;
	a = s->detached = calloc(1, sizeof(*a));
	if (!a)
		return err_errno(e, "open a session");
	a->file = -1;
	a->began = time(NULL);
	a->began_ms = a->keyed_ms = a->cell_ms = clock_ms();
	client_from(a->from, sizeof(a->from));
	if (control_watch(s->control, s->signals, e) < 0)
		return -1;
	terminal_signals_outlive(s->signals, control_is_open(s->control));
	return 0;
}

void detached_close(struct session *s)
{
	if (!s->detached)
		return;
	if (s->stopped)
		control_leave(
			s->control, ATTACH_OVER, s->status, s->detached->said);
	fd_drop(&s->detached->file);
	free(s->detached);
	s->detached = NULL;
}

bool detached_is_gone(const struct session *s)
{
	return s->detached && s->detached->file >= 0;
}

void detached_keyed(struct session *s)
{
	if (!s->detached)
		return;
	s->detached->keyed_ms = clock_ms();
	s->detached->unseen = false;
}

void detached_cell(struct session *s, bool runs)
{
	if (!s->detached)
		return;
	s->detached->runs = runs;
	s->detached->unseen = !runs;
	s->detached->cell_ms = clock_ms();
	if (!runs)
		s->detached->keyed_ms = s->detached->cell_ms;
}

bool detached_is_unseen(const struct session *s)
{
	return s->detached->unseen;
}

bool detached_runs(const struct session *s)
{
	return s->detached && s->detached->runs;
}

const char *detached_from(const struct session *s)
{
	return s->detached->from;
}

void detached_say(struct session *s, const char *text)
{
	if (detached_is_gone(s))
		text_safe(s->detached->said, sizeof(s->detached->said), text,
			strlen(text));
}

/* ---- missed output ---- */

int detached_begin(struct session *s)
{
	struct detached *a = s->detached;

	a->file = memfd_create("cellblock-missed", MFD_CLOEXEC);
	a->cut_lines = 0;
	a->said[0] = '\0';
	a->since_ms = clock_ms();
	return a->file;
}

uint64_t detached_count_lines(const char *s, size_t n)
{
	uint64_t lines = 0;

	for (const char *p; (p = memchr(s, '\n', n)); s = p + 1) {
		n -= (size_t)(p + 1 - s);
		lines++;
	}
	return lines;
}

/* The whole file (caller frees); NULL: no memory. */
static char *read_missed(const struct detached *a, size_t *n)
{
	struct stat st;
	ssize_t got;
	char *buf;

	if (fstat(a->file, &st) < 0)
		return NULL;
	buf = malloc((size_t)st.st_size + 1);
	got = buf ? pread(a->file, buf, (size_t)st.st_size, 0) : -1;
	if (got < 0) {
		free(buf);
		return NULL;
	}
	*n = (size_t)got;
	return buf;
}

void detached_trim(struct session *s)
{
	struct detached *a = s->detached;
	auto_free char *buf = NULL;
	struct stat st;
	size_t n = 0, over;

	if (fstat(a->file, &st) < 0 || st.st_size <= MISSED_MAX)
		return;
	buf = read_missed(a, &n);
	over = buf && n > MISSED_KEPT ? n - MISSED_KEPT : 0;
	if (ftruncate(a->file, 0) < 0 || lseek(a->file, 0, SEEK_SET) < 0 ||
		!buf)
		return;
	a->cut_lines += detached_count_lines(buf, over);
	io_write_full(a->file, buf + over, n - over);
}

char *detached_end(
	struct session *s, const char *from, size_t *n, uint64_t *cut)
{
	struct detached *a = s->detached;
	char *missed = a->file >= 0 ? read_missed(a, n) : NULL;

	*cut = a->cut_lines;
	fd_drop(&a->file);
	snprintf(a->from, sizeof(a->from), "%s", from);
	detached_keyed(s);
	return missed;
}

/* ---- status ---- */

static void fill_status(
	struct session *s, bool may_ask, struct attach_status *st)
{
	struct detached *a = s->detached;
	int64_t now = clock_ms();

	if (may_ask && now - a->began_ms > YOUNG_MS &&
		now - a->asked_ms >= ASK_MS) {
		jail_usage(s->jail, &a->usage, NULL);
		a->asked_ms = now;
	}
	*st = (struct attach_status){.pid = getpid(),
		.cell = s->cell_no,
		.state = a->runs ? ATTACH_RUNS : ATTACH_PROMPT,
		.began = a->began,
		.cell_ms = s->cell_no ? now - a->cell_ms : -1,
		.idle_ms = now - a->keyed_ms,
		.away_ms = detached_is_gone(s) ? now - a->since_ms : -1,
		.cpu_ms = a->usage.cpu_ms,
		.memory_bytes = a->usage.memory_bytes,
		.home_bytes = a->usage.home_bytes,
		.home_files = a->usage.home_files,
		.build = CELLBLOCK_VERSION};
	snprintf(st->who, sizeof(st->who), "%s", s->user ? s->user : "");
	snprintf(st->from, sizeof(st->from), "%s", a->from);
}

void detached_answer(struct session *s, bool may_ask)
{
	struct attach_status st;
	struct control_request v;

	while (s->detached && control_take(s->control, ATTACH_STATUS, &v)) {
		fill_status(s, may_ask, &st);
		control_answer(&v, ATTACH_OK, NULL, &st);
	}
	while (s->detached && control_take(s->control, ATTACH_SIDE, &v)) {
		session_side_begin(s, &v);
		if (detached_is_gone(s) && !s->stopped)
			control_alarm(s->control, s->cfg->linger_ms);
	}
}

bool detached_is_due(const struct session *s)
{
	return s->detached &&
	       (s->signals->lost || control_is_called(s->control) ||
		       control_is_due(s->control));
}
