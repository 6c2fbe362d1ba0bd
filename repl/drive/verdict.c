/* SPDX-License-Identifier: MIT */
/*
 * verdict.c - how a cell ended, in one line
 *
 * Runs in:   front end, after every cell
 * Trusts:    the warden, which measured everything but the number of names: the
 *            guest sends that, and it is only a number
 *
 * Dots join the parts of the line: which limit struck, what the warden did,
 * which state the session has now, what was lost, and which processes the cell
 * left behind.
 */
#include "repl/drive/drive.h"

#include "jail/spec.h"
#include "repl/config/config.h"
#include "repl/text/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* How many bytes of a cell's first line we show. */
#define SOURCE_SHOWN 48

/* A line under construction; we cut words that do not fit. */
struct verdict_line {
	char *s;
	size_t size, n;
};

static void add_words(struct verdict_line *l, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void add_words(struct verdict_line *l, const char *fmt, ...)
{
	size_t room = l->size - l->n;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(l->s + l->n, room, fmt, ap);
	va_end(ap);
	if (n > 0)
		l->n += (size_t)n < room ? (size_t)n : room - 1;
}

static void add_part(struct verdict_line *l, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Add the next part, behind a dot. */
static void add_part(struct verdict_line *l, const char *fmt, ...)
{
	char words[VERDICT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(words, sizeof(words), fmt, ap);
	va_end(ap);
	add_words(l, "%s%s", l->n ? " · " : "", words);
}

static struct verdict_line begin_line(char *buf)
{
	buf[0] = '\0';
	return (struct verdict_line){.s = buf, .size = VERDICT_MAX};
}

static void add_limit(
	struct verdict_line *l, enum jail_limit limit, const struct limits *lim)
{
	char h[TEXT_HUMAN];

	switch (limit) {
	case LIMIT_NONE:
		return;
	case LIMIT_WALL:
		add_part(l, "time limit: %s", text_time(h, lim->cell_wall_ms));
		return;
	case LIMIT_CPU:
		add_part(l, "CPU limit: %s", text_time(h, lim->cell_cpu_ms));
		return;
	case LIMIT_MEMORY:
		add_part(l, "memory limit: %s",
			text_size(h, (uint64_t)lim->memory_bytes));
		return;
	case LIMIT_PROCESSES:
		add_part(l, "process limit: %d", lim->processes);
		return;
	case LIMIT_PERSON:
		add_part(l, "Ctrl-C three times");
		return;
	case LIMIT_IDLE:
		add_part(l, "idle limit: %s", text_time(h, lim->idle_ms));
		return;
	case LIMIT_LIFETIME:
		add_part(l, "lifetime limit: %s",
			text_time(h, lim->lifetime_ms));
		return;
	case LIMIT_ALL:
		add_part(l, "no memory is left for all sessions together");
		return;
	case LIMIT_EXAM:
		add_part(l, "the exam has ended");
		return;
	case LIMIT_UNTIL:
		add_part(l, "all sessions end at this time of day");
		return;
	case LIMIT_OUTPUT:
		add_part(l, "output limit: %s",
			text_size(h, (uint64_t)lim->output_bytes));
		return;
	}
}

/* Add the limit that struck, and what the warden did about it. */
static void add_cause(struct verdict_line *l, const struct jail_done *d,
	const struct verdict_about *about)
{
	const char *name;

	switch (d->how) {
	case HOW_CRASHED:
		name = strsignal(d->signal);
		add_part(l, "crashed: %s", name ? name : "unknown signal");
		return;
	case HOW_EXITED:
		add_part(l, "Python exited with status %d", d->status);
		return;
	case HOW_LOST:
		add_part(l, "Python's link to the session broke · killed");
		return;
	case HOW_REFUSED:
		add_part(l, "not run: %s", d->text);
		return;
	case HOW_KILLED:
		add_limit(l, d->limit, about->limits);
		add_part(l, "killed");
		return;
	case HOW_OK:
	case HOW_RAISED:
	case HOW_SYNTAX:
	case HOW_INTERRUPTED:
	case HOW_EXIT:
		if (d->limit == LIMIT_NONE || d->limit == LIMIT_PROCESSES)
			return;
		add_limit(l, d->limit, about->limits);
		add_part(l, "interrupted");
		return;
	}
}

static const char *why_restarted(enum jail_no_checkpoint why)
{
	switch (why) {
	case NO_CHECKPOINT_NONE:
		return "";
	case NO_CHECKPOINT_OFF:
		return ": checkpoints are off";
	case NO_CHECKPOINT_COST:
		return ": checkpoints had been given up, copying cost too much";
	case NO_CHECKPOINT_MEMORY:
		return ": the checkpoint had been given up for memory";
	case NO_CHECKPOINT_FAILED:
		return ": no checkpoint could be taken";
	case NO_CHECKPOINT_KILLED:
		return ": the cell killed its own checkpoint";
	case NO_CHECKPOINT_SILENT:
		return ": the checkpoint did not answer";
	}
	return "";
}

static void add_state(struct verdict_line *l, uint32_t back_to, uint32_t names)
{
	char count[TEXT_HUMAN];

	add_part(l, "back to the state before cell %" PRIu32 " (%s)", back_to,
		text_count(count, sizeof(count), names, "name", NULL));
}

static bool is_killed_but_not_for_memory(const struct jail_done *d)
{
	return d->how == HOW_KILLED && d->limit != LIMIT_MEMORY &&
	       d->limit != LIMIT_ALL;
}

/* Add which state the session has now. */
static void add_after(struct verdict_line *l, const struct jail_done *d)
{
	char count[TEXT_HUMAN];

	switch (d->after) {
	case AFTER_KEPT:
		if (!l->n || d->how == HOW_REFUSED)
			return;
		add_part(l, "variables kept");
		return;
	case AFTER_ROLLED_BACK:
		add_state(l, d->back_to, d->names);
		if (!is_killed_but_not_for_memory(d))
			return;
		add_part(l, "home kept");
		return;
	case AFTER_RESTARTED:
		add_part(l, "Python restarted, variables lost%s",
			why_restarted(d->no_checkpoint));
		add_part(l, "home kept (%s)",
			text_count(count, sizeof(count), d->home_files, "file",
				NULL));
		return;
	case AFTER_ENDED:
		add_part(l, "the session is over");
		return;
	}
}

/* Add the number of threads that went with the old state. */
static void add_lost(struct verdict_line *l, const struct jail_done *d)
{
	char count[TEXT_HUMAN];

	if (!d->threads_gone)
		return;
	add_part(l, "%s %s gone",
		text_count(
			count, sizeof(count), d->threads_gone, "thread", NULL),
		d->threads_gone == 1 ? "is" : "are");
}

static void add_memory(struct verdict_line *l, const struct jail_done *d,
	const struct verdict_about *about)
{
	char h[TEXT_HUMAN];

	if (d->limit != LIMIT_MEMORY && d->limit != LIMIT_ALL)
		return;
	if (d->peak_bytes > 0)
		add_part(l, "peak %s", text_size(h, (uint64_t)d->peak_bytes));
	if (about->memory_source && d->limit == LIMIT_MEMORY)
		add_part(l, "limit set in %s", about->memory_source);
}

static const char *const left_doing[] = {
	[BACKGROUND_STOP] = "stopped until the next cell",
	[BACKGROUND_RUN] = "running on",
	[BACKGROUND_KILL] = "being ended",
};

/* Add the processes that the cell left behind. */
static void add_leftovers(struct verdict_line *l, const struct jail_done *d,
	const struct verdict_about *about)
{
	uint32_t left = d->leftovers, ended = d->leftovers_ended;

	if (left && ended >= left) {
		add_part(l,
			left == 1 ? "the cell's %" PRIu32
				    " leftover process was ended"
				  : "the cell's %" PRIu32
				    " leftover processes were ended",
			left);
	} else if (left) {
		add_part(l, "%" PRIu32 " %s left behind, %s", left - ended,
			left - ended == 1 ? "process" : "processes",
			left_doing[about->limits->background]);
		if (ended)
			add_part(l, "%" PRIu32 " ended", ended);
	}
	if (d->background_ended)
		add_part(l, "%" PRIu32 " background %s ended",
			d->background_ended,
			d->background_ended == 1
				? "process could not be stopped and was"
				: "processes could not be stopped and were");
}

/* Add the threads that the cell left: they stand still with their process. */
static void add_threads(struct verdict_line *l, const struct jail_done *d,
	const struct verdict_about *about)
{
	char count[TEXT_HUMAN];

	if (!d->threads || d->after != AFTER_KEPT ||
		about->limits->background == BACKGROUND_RUN)
		return;
	add_part(l, "%s %s stopped until the next cell",
		text_count(count, sizeof(count), d->threads, "thread", NULL),
		d->threads == 1 ? "is" : "are");
}

/* With less than this a home counts as full. */
#define HOME_LEFT (64 << 10)

/* Say that the home is full: a traceback says that there is no room, but not
 * where, or how much room there can be. */
static void add_home(struct verdict_line *l, const struct jail_done *d,
	const struct verdict_about *about)
{
	const struct limits *limits = about->limits;
	int64_t left = limits->home_bytes - d->home_bytes;
	char all[TEXT_HUMAN], free[TEXT_HUMAN];

	if (d->how != HOW_RAISED || about->error_is_other)
		return;
	if (left < HOME_LEFT)
		add_part(l, "the home is full: of %s (home.size) %s are free",
			text_size(all, (uint64_t)limits->home_bytes),
			text_size(free, left > 0 ? (uint64_t)left : 0));
	else if (d->home_files >= (uint32_t)limits->home_files)
		add_part(l, "the home is full: it has %d files (home.files)",
			limits->home_files);
}

const char *verdict_line(char buf[static VERDICT_MAX],
	const struct jail_done *d, const struct verdict_about *about)
{
	struct verdict_line l = begin_line(buf);

	add_cause(&l, d, about);
	add_after(&l, d);
	add_lost(&l, d);
	add_memory(&l, d, about);
	if (d->process_limit_hit)
		add_limit(&l, LIMIT_PROCESSES, about->limits);
	add_leftovers(&l, d, about);
	add_threads(&l, d, about);
	add_home(&l, d, about);
	return buf;
}

const char *verdict_limit_key(enum jail_limit limit)
{
	static const char *const keys[] = {
		[LIMIT_WALL] = "cell.timeout",
		[LIMIT_CPU] = "cell.cpu",
		[LIMIT_MEMORY] = "session.memory",
		[LIMIT_PROCESSES] = "session.processes",
		[LIMIT_IDLE] = "session.idle",
		[LIMIT_LIFETIME] = "session.lifetime",
		[LIMIT_ALL] = "maker.memory",
		[LIMIT_EXAM] = "exam.end",
		[LIMIT_UNTIL] = "session.until",
		[LIMIT_OUTPUT] = "cell.output",
	};

	return limit < COUNT(keys) ? keys[limit] : NULL;
}

const char *verdict_limit(char buf[static VERDICT_MAX], enum jail_limit limit,
	const struct limits *limits)
{
	struct verdict_line l = begin_line(buf);

	add_limit(&l, limit, limits);
	return buf;
}

const char *verdict_session_end(char buf[static VERDICT_MAX],
	enum jail_limit limit, const struct limits *limits)
{
	struct verdict_line l = begin_line(buf);

	add_limit(&l, limit, limits);
	add_part(&l, "the session is over");
	return buf;
}

/* Add the first line of a cell, shortened. */
static void add_source(struct verdict_line *l, const char *source, size_t n)
{
	char safe[SOURCE_SHOWN];
	const char *end;

	for (; n && isspace((unsigned char)*source); n--)
		source++;
	end = memchr(source, '\n', n);
	text_safe(safe, sizeof(safe), source, end ? (size_t)(end - source) : n);
	add_words(l, ": %s%s", safe, end ? " …" : "");
}

const char *verdict_undo(char buf[static VERDICT_MAX],
	const struct jail_undone *u, const char *source, size_t n)
{
	struct verdict_line l = begin_line(buf);
	char count[TEXT_HUMAN];

	if (u->reset)
		add_part(&l, "back to the state before :reset (%s)",
			text_count(
				count, sizeof(count), u->names, "name", NULL));
	else
		add_state(&l, u->back_to, u->names);
	if (source && !u->reset)
		add_source(&l, source, n);
	add_part(&l, "files in the home are as they are");
	if (u->next_reset && u->next)
		add_part(&l, ":undo again: :reset");
	else if (u->next)
		add_part(&l, ":undo again: cell %" PRIu32, u->next);
	else
		add_part(&l, "nothing older is kept");
	return buf;
}
