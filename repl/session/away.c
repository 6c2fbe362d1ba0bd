/* SPDX-License-Identifier: MIT */
/*
 * away.c - a session without a terminal, and how it is
 *
 * Runs in:   front end, confined
 * Holds:     while there is no terminal, a file in memory that takes its place:
 *            what the person misses, of which the end is kept
 * Trusts:    a visitor's words for nothing but a line in a list
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

/* What is kept of what was missed, and when it is cut down to that. */
#define MISSED_KEPT (64u << 10)
#define MISSED_MAX (512u << 10)
/* A Python that is being started is not asked how it is. */
#define YOUNG_MS 2000
/* It is asked no more often than that. */
#define ASK_MS 100

struct away {
	int file; /* in place of a terminal; -1: there is a terminal */
	uint64_t cut_lines; /* that the file no longer has */
	int64_t since_ms, began_ms, keyed_ms, cell_ms, asked_ms;
	bool runs;   /* a cell */
	bool unseen; /* no key came since one has ended */
	time_t began;
	char from[64]; /* where the person sits; text of a visitor's */
	struct jail_usage usage;
};

/* A clock that goes on while the machine sleeps. */
static int64_t clock_ms(void)
{
	return io_clock_ns(CLOCK_BOOTTIME) / 1000000;
}

int away_open(struct session *s, struct err *e)
{
	struct away *a;

	if (!s->door)
		return 0;
	a = s->away = calloc(1, sizeof(*a));
	if (!a)
		return err_errno(e, "open a session");
	a->file = -1;
	a->began = time(NULL);
	a->began_ms = a->keyed_ms = a->cell_ms = clock_ms();
	client_from(a->from, sizeof(a->from));
	if (door_watch(s->door, s->signals, e) < 0)
		return -1;
	terminal_signals_outlive(s->signals, door_is_open(s->door));
	return 0;
}

void away_close(struct session *s)
{
	if (!s->away)
		return;
	fd_drop(&s->away->file);
	free(s->away);
	s->away = NULL;
}

bool away_is_gone(const struct session *s)
{
	return s->away && s->away->file >= 0;
}

void away_keyed(struct session *s)
{
	if (!s->away)
		return;
	s->away->keyed_ms = clock_ms();
	s->away->unseen = false;
}

void away_cell(struct session *s, bool runs)
{
	if (!s->away)
		return;
	s->away->runs = runs;
	s->away->unseen = !runs;
	s->away->cell_ms = clock_ms();
	if (!runs)
		s->away->keyed_ms = s->away->cell_ms;
}

bool away_is_unseen(const struct session *s)
{
	return s->away->unseen;
}

bool away_runs(const struct session *s)
{
	return s->away && s->away->runs;
}

const char *away_from(const struct session *s)
{
	return s->away->from;
}

/* ---- what is missed ---- */

int away_begin(struct session *s)
{
	struct away *a = s->away;

	a->file = memfd_create("away", MFD_CLOEXEC);
	a->cut_lines = 0;
	a->since_ms = clock_ms();
	return a->file;
}

uint64_t away_count_lines(const char *s, size_t n)
{
	uint64_t lines = 0;

	for (const char *p; (p = memchr(s, '\n', n)); s = p + 1) {
		n -= (size_t)(p + 1 - s);
		lines++;
	}
	return lines;
}

/* All that the file has; NULL without memory. */
static char *read_missed(const struct away *a, size_t *n)
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

/* Nobody reads the file for now: keep its end. */
void away_trim(struct session *s)
{
	struct away *a = s->away;
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
	a->cut_lines += away_count_lines(buf, over);
	io_write_full(a->file, buf + over, n - over);
}

char *away_end(struct session *s, const char *from, size_t *n, uint64_t *cut)
{
	struct away *a = s->away;
	char *missed = a->file >= 0 ? read_missed(a, n) : NULL;

	*cut = a->cut_lines;
	fd_drop(&a->file);
	snprintf(a->from, sizeof(a->from), "%s", from);
	away_keyed(s);
	return missed;
}

/* ---- how it is ---- */

static void fill_status(
	struct session *s, bool may_ask, struct attach_status *st)
{
	struct away *a = s->away;
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
		.away_ms = away_is_gone(s) ? now - a->since_ms : -1,
		.cpu_ms = a->usage.cpu_ms,
		.memory_bytes = a->usage.memory_bytes,
		.home_bytes = a->usage.home_bytes,
		.home_files = a->usage.home_files,
		.build = CELLBLOCK_VERSION};
	snprintf(st->who, sizeof(st->who), "%s", s->user ? s->user : "");
	snprintf(st->from, sizeof(st->from), "%s", a->from);
}

void away_answer(struct session *s, bool may_ask)
{
	struct attach_status st;
	struct door_visit v;

	while (s->away && door_take(s->door, ATTACH_STATUS, &v)) {
		fill_status(s, may_ask, &st);
		door_answer(&v, ATTACH_OK, NULL, &st);
	}
	while (s->away && door_take(s->door, ATTACH_BESIDE, &v)) {
		visit_begin(s, &v);
		if (away_is_gone(s))
			door_alarm(s->door, s->cfg->linger_ms);
	}
}

bool away_is_due(const struct session *s)
{
	return s->away && (s->signals->lost || door_is_called(s->door) ||
				  door_is_due(s->door));
}
