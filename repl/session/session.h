/* SPDX-License-Identifier: MIT */
/*
 * session.h - the person's view of a session
 *
 *	session.c	printing, asking, leaving
 *	prompt.c	the whole from banner to end
 *	cell.c		a cell from hand-over to verdict
 *	screen.c	what comes from the jail's tty, and goes to it
 *	event.c		what the warden says
 *	record.c	what ran, and what it wrote
 *
 * The warden is the session. A view has the terminal, the editor, and what was
 * typed and shown.
 */
#ifndef REPL_SESSION_SESSION_H
#define REPL_SESSION_SESSION_H

#include "jail/base/err.h"
#include "repl/files/transfer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cell;
struct complete_list;
struct config;
struct editor;
struct history;
struct hostfs;
struct jail;
struct log;
struct options;
struct record;
struct relay;
struct screen;
struct session;
struct signals;
struct terminal;

/* What the layer above does for a session: the commands, and what the command
 * line asks for around it. The void pointers are the session. */
struct session_calls {
	/* Run a line that is a command. 0, or -1 with e; 1: it is a cell. */
	int (*line)(
		struct session *s, const char *src, size_t n, struct err *e);
	/* What the editor asks: editor_opts. */
	bool (*takes_cell)(void *session, const char *name, size_t n);
	int (*complete)(void *session, const char *text, size_t n,
		size_t cursor, struct complete_list *out);
	/* Before the first prompt: whether the session can end as it should
	 * (0, or -1 with e), then what comes before the first cell. */
	int (*ready)(struct session *s, struct err *e);
	void (*start)(struct session *s);
	/* After the last cell. 0, or -1 when something was refused. */
	int (*finish)(struct session *s);
};

/* Caller's storage: fill in the first part and call prompt_run(). */
struct session {
	/* Borrowed, and the same throughout. */
	const struct session_calls *calls;
	const struct config *cfg;
	const struct options *opt;
	struct jail *jail;
	struct terminal *term;
	struct signals *signals;
	const struct hostfs *host;
	struct log *log;
	struct history *history;
	const char *no_history; /* why none is kept; "": it is */
	const char *python;	/* the interpreter's path on the host */

	/* Each is the business of the file of its name, which also writes
	 * what stands behind it. */
	struct cell *cell;
	uint32_t cell_no; /* the last number given */
	struct record *record;
	struct screen *screen;
	struct relay *relay; /* has the terminal; NULL: the editor has it */
	struct editor *editor;
	struct transfer_ledger ledger;

	/* session.c writes these, others may read `over`. */
	bool over;
	int status;	   /* exit status */
	struct err why;	   /* why it is over; msg empty: nothing to say */
	bool warned;	   /* leaving was tried with files not downloaded */
	bool finished;	   /* calls->finish() was called for the last time */
	char limited[256]; /* what this host cannot enforce */
	bool told_limited;
};

/* ---- printing ---- */

/* Print a line of ours in brackets, above the prompt when there is one. */
void session_frame(struct session *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* The same for an error, with its hint. */
void session_refuse(struct session *s, const struct err *e);

/* Print text that is safe for a terminal; lines end with "\n". */
void session_print(struct session *s, const char *text, size_t n);
void session_printf(struct session *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Print foreign text of many lines, each made safe. */
void session_print_foreign(struct session *s, const char *text, size_t n);

/* Wait for a key: its code, or the character of a text key in ASCII; -1 for any
 * other key; 0 when no key will come: SIGINT, or the session is over. The
 * terminal is raw. */
int session_wait_key(struct session *s);

/* Ask the person something that is answered with y or n; no is the default. */
bool session_confirm(struct session *s, const char *question);

/* What this host cannot enforce is said once, and never into the output of a
 * cell. */
void session_set_limited(struct session *s, const char *limited);
void session_tell_limited(struct session *s);

/* ---- leaving ---- */

/* Download what -d asks for, and leave with `status`; after one warning when
 * other files were not downloaded. session_stay(): warn again next time. */
void session_leave(struct session *s, int status);
void session_stay(struct session *s);

/* Download what -d asks for, the terminal in its own modes. */
void session_finish(struct session *s);

/* It is over: with an exit status, by a signal (the terminal's end is SIGHUP),
 * or because something failed. */
void session_end(struct session *s, int status);
void session_end_by(struct session *s, int sig);
void session_fail(struct session *s, const struct err *e);

#endif
