/* SPDX-License-Identifier: MIT */
/*
 * session.h - the person's view of a session
 *
 *	session.c        prompt, banner, what happens between cells
 *	session_cell.c   a cell from hand-over to verdict
 *	session_event.c  what the warden says
 *
 * The warden is the session; all that lives here is what a view needs: the
 * terminal, the editor, what was typed and shown.
 */
#ifndef REPL_SESSION_SESSION_H
#define REPL_SESSION_SESSION_H

#include "jail/base/err.h"
#include "jail/jail.h"
#include "repl/files/hostfs.h"
#include "repl/files/ledger.h"
#include "repl/term/output.h"
#include "repl/term/relay.h"
#include "repl/term/signals.h"
#include "repl/term/terminal.h"
#include "repl/text/strbuf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct complete_list;
struct config;
struct editor;
struct history;
struct log;
struct options;
struct session;

/* Cells whose full output is kept for :out, and how much of each. */
#define SESSION_OUTS 4
#define SESSION_OUT_MAX ((size_t)8 << 20)

/* A cell that was run: its number and its source. */
struct session_cell {
	uint32_t no;
	char *src;
	size_t n;
	bool ok; /* it ran to its end */
};

/* What a cell wrote, as it came. */
struct session_out {
	uint32_t no;
	struct strbuf bytes;
	uint64_t total; /* more than bytes.n when it was too much */
};

/* What the layer above does for a session: the commands, and what the command
 * line asks for around it. The void pointers are the session. */
struct session_calls {
	/* Run a line that is a command. 0, or -1 with e; 1: it is a cell. */
	int (*line)(
		struct session *s, const char *src, size_t n, struct err *e);
	/* What the editor asks: editor_opts and editor_set_complete_cb(). */
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

/* Caller's storage; fill the first part and call session_run(). */
struct session {
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

	struct editor *editor;
	struct ledger ledger;
	struct relay relay;
	struct output output;
	struct strbuf above; /* background output for above the prompt */
	struct strbuf late;  /* what came behind the end mark */
	struct strbuf ahead; /* keys that the cell did not read */
	struct strbuf stack; /* where a stuck cell was, until the verdict */
	int tty, next_tty;   /* owned */
	char version[64];    /* of Python, once it is known */

	/* the cell under way */
	uint32_t cell; /* the last number given */
	bool in_cell;  /* the terminal is raw and the relay has it */
	bool running;  /* it was handed over; its output is expected */
	bool ended;    /* JAIL_DONE has come */
	struct jail_done done;
	int64_t quiet_since_ms, ended_ms;
	uint64_t out_total;

	struct session_cell *cells;
	size_t n_cells;
	struct session_out outs[SESSION_OUTS];

	struct output_report behind; /* background output not summed up yet */
	bool line_ended;	     /* its last line, by us */

	char limited[256]; /* what this host cannot enforce; then empty */
	bool told_limits;
	bool warned;	  /* :quit was tried with files not downloaded */
	bool startup_due; /* a Python that has not run python.startup yet */
	bool restarting;  /* that Python was announced; JAIL_UP will follow */
	bool over;
	bool finished;	/* what -d asks for was downloaded */
	int status;	/* exit status */
	struct err why; /* why it is over; msg empty: nothing to say */
};

/* A session from banner to end. The jail was opened; there is no prompt before
 * it stands.
 * Returns the exit status, or -1 with e. */
int session_run(struct session *s, struct err *e);

/* ---- for the commands ---- */

/* Print a line of ours in brackets, above the prompt when there is one. */
void session_frame(struct session *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Print text that is safe for a terminal; lines end with "\n". */
void session_print(struct session *s, const char *text, size_t n);
void session_printf(struct session *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Print foreign text of many lines, each made safe. */
void session_print_foreign(struct session *s, const char *text, size_t n);

/* Run a cell and wait for its end; s->done has the verdict. 0, or -1. */
int session_cell(struct session *s, const char *src, size_t n, struct err *e);

/* Python is being replaced by a fresh one, which JAIL_UP will confirm. */
void session_restarted(struct session *s);

/* Run python.startup where it is due. */
void session_startup(struct session *s);

/* Download what -d asks for, and leave with `status`; after one warning when
 * other files were not downloaded. */
void session_leave(struct session *s, int status);

/* Sum up what came from the background, if anything of it was left out. */
void session_tell_background(struct session *s);

/* Take what the warden has to say. */
void session_take_events(struct session *s);

/* The kept output of cell `no`, 0 for the last one; NULL when there is none. */
const struct session_out *session_find_out(
	const struct session *s, uint32_t no);

/* Wait for a key: its code, or the character of a text key in ASCII; -1 for any
 * other key; 0 when no key will come: SIGINT, or the session is over. The
 * terminal is raw. */
int session_wait_key(struct session *s);

/* Ask the person something that is answered with y or n; no is the default. */
bool session_confirm(struct session *s, const char *question);

/* ---- between the files of the session ---- */

/* It is over, because of a signal or because the terminal is gone. */
void session_end_by(struct session *s, int sig);

void session_set_tty(struct session *s, int tty);
void session_sink(void *arg, const void *buf, size_t n);
void session_tell_limited(struct session *s);
void session_begin_output(struct session *s, const uint8_t *mark, bool cell);
void session_tty_bytes(void *arg, const char *buf, size_t n);

#endif
