/* SPDX-License-Identifier: MIT */
/*
 * session.h - the person's view of a session, and what programs that have no
 * person share of it
 *
 *	prompt.c	the whole from banner to end
 *	session.c	printing, asking, leaving
 *	cell.c		a cell from hand-over to verdict; what the warden says
 *	screen.c	what comes from the jail's tty, and goes to it
 *	pictures.c	what a cell shows as pictures
 *	record.c	what ran, and what it wrote
 *	stack.c		where a killed cell was
 *	detached.c	without a terminal
 *	terminals.c	terminals that come and go
 *	side.c		programs beside the session
 *	watchers.c	who watches the session
 *
 *	setup.c		from the configuration to a jail that stands
 *	notices.c	what a person has been told on this host
 *
 * The warden is the session. A view has the terminal, the editor, and what was
 * typed and shown.
 */
#ifndef REPL_SESSION_SESSION_H
#define REPL_SESSION_SESSION_H

#include "jail/base/err.h"
#include "jail/jail.h"
#include "jail/spec.h"
#include "repl/drive/drive.h"
#include "repl/files/files.h"
#include "repl/text/text.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ask;
struct detached;
struct complete_list;
struct control;
struct control_request;
struct editor;
struct history;
struct jail;
struct key;
struct keys;
struct options;
struct output;
struct pictures;
struct record;
struct record_cell;
struct relay;
struct screen;
struct session;
struct signals;
struct terminal;
struct view_cell;
struct watchers;

/* ---- session.c ---- */

/* Figures in the home that frame lines have named, as far as is remembered. */
#define SESSION_FIGURES 64

/* Calls to the layer above: the commands, and what the command line asks for
 * around a session. The void pointers are the session. */
struct session_calls {
	/* Run a line that is a command. 0, or -1 with e; 1: it is a cell. */
	int (*line)(
		struct session *s, const char *src, size_t n, struct err *e);
	/* For the editor: editor_opts. */
	bool (*takes_cell)(void *session, const char *name, size_t n);
	int (*complete)(void *session, const char *text, size_t n,
		size_t cursor, struct complete_list *out);
	void (*signature)(void *session, const char *name, size_t n);
	/* Before the first prompt: whether the session can end as it should
	 * (0, or -1 with e), then what comes before the first cell. */
	int (*ready)(struct session *s, struct err *e);
	void (*start)(struct session *s);
	/* After the last cell. 0, or -1 when something was refused. */
	int (*finish)(struct session *s);
};

/* An unseen session answers by then, and waits so long for its program, even
 * where session.linger is shorter. */
#define SESSION_UNSEEN_MS 30000

/* Clients that wait for a program beside the session, or have one. */
#define SIDES_MAX 8

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
	const char *no_history;	 /* why none is kept; "": it is */
	int notices_fd;		 /* notices.c; -1: none */
	const char *python;	 /* the interpreter's path on the host */
	struct control *control; /* NULL: the session has one terminal */
	const char *no_control;	 /* why nobody can come back to it */
	const char *user;	 /* who the person is; or NULL */
	bool unseen; /* begun for a program beside it, without a terminal */

	/* Each is the business of the file of its name, which also writes
	 * what stands behind it. */
	struct drive drive;
	struct view_cell *cell;
	uint32_t cell_no; /* the last number given */
	/* The line that is being run as it was typed, which watchers have seen.
	 * NULL: what runs was not typed. */
	const char *typed;
	size_t typed_n;
	struct record *record;
	struct screen *screen;
	struct pictures *pictures;
	struct relay *relay;   /* has the terminal; NULL: the editor has it */
	struct output *output; /* a cell writes to it; NULL: none does */
	struct editor *editor;
	struct ledger ledger;
	struct detached *detached;
	struct watchers *watchers; /* NULL: there was none yet */
	struct side_program {
		uint32_t number; /* 0: a free place */
		int fd;		 /* of the connection */
	} sides[SIDES_MAX];
	uint32_t nsides; /* there have been so many */

	/* session.c writes these, others may read `over`. */
	bool over;
	int status;	/* exit status */
	struct err why; /* why it is over; msg empty: nothing to say */
	bool warned;	/* leaving was tried with files not downloaded */
	bool leaves;	/* a cell has ended it, and nobody has seen that */
	bool finished;	/* calls->finish() was called for the last time */
	unsigned figures[SESSION_FIGURES]; /* numbers of files, a ring */
	size_t nfigures;
	char limited[256]; /* what this host cannot enforce */
	bool told_limited;
};

/* A session, in a jail that was opened. The first prompt may come a moment
 * before the jail stands. Returns the exit status, or -1 with e. */
int prompt_run(struct session *s, struct err *e);

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

/* Wait for keys, at most KEYS_OUT_MAX. Returns how many; 0: the window has
 * another size; -1: no key will come: SIGINT, or the session is over. The
 * terminal is raw. */
int session_wait_keys(struct session *s, struct keys *keys, struct key *out);

/* Wait for a key: its code, or the character of a text key in ASCII; -1 for any
 * other key; 0 when no key will come. The terminal is raw. */
int session_wait_key(struct session *s);

/* Ask the person something that is answered with y or n; no is the default. */
bool session_confirm(struct session *s, const char *question);

/* Tell each person once what this host cannot enforce, and never within the
 * output of a cell. */
void session_set_limited(struct session *s, const char *limited);
void session_tell_limited(struct session *s);

/* ---- leaving ---- */

/* A frame line names figure-N.png in the home: the person knows of it, and
 * leaving does not warn of it. */
void session_name_figure(struct session *s, unsigned number);

/* Download what -d asks for, and leave with `status`; after one warning when
 * other files were not downloaded. Without a terminal `leaves` is set, and
 * the session waits for the person. session_stay(): warn again next time. */
void session_leave(struct session *s, int status);
void session_stay(struct session *s);

/* Download what -d asks for, the terminal in its own modes. */
void session_finish(struct session *s);

/* It is over: with an exit status, by a signal (the terminal's end is SIGHUP),
 * or because something failed. */
void session_end(struct session *s, int status);
void session_end_by(struct session *s, int sig);
void session_fail(struct session *s, const struct err *e);

/* ---- cell.c: a cell from hand-over to verdict ---- */

/* Make s->drive and s->cell, for a Python that has not run python.startup yet.
 * 0, or -1 with e. */
int cell_open(struct session *s, struct err *e);
void cell_close(struct session *s);

/* Run a cell and wait for its end. 0, or -1 with e: it was not handed over. */
int cell_run(struct session *s, const char *src, size_t n, struct err *e);

/* Have a cell show an image file of the home: `path` in the home, whose name
 * is safe for a terminal as `name`. 0, or -1 with e, as for any cell. */
int cell_show_image(
	struct session *s, const char *path, const char *name, struct err *e);

/* The cell that runs, as it was typed, where it was; `src` is NULL: none. */
struct record_cell cell_running(const struct session *s);

/* The end of the last cell; NULL: not known. */
const struct jail_done *cell_done(const struct session *s);

/* Run python.startup where it is due. */
void cell_run_startup(struct session *s);
bool cell_startup_is_due(const struct session *s);

/* Python is being replaced by a fresh one, which JAIL_UP will confirm. */
void cell_restarted(struct session *s);

/* Take every event there is. A warden that is gone ends the session. */
void cell_take_events(struct session *s);

/* ---- screen.c: the terminal, between the editor and the jail's tty ---- */

/* Make s->screen, without a tty yet. `events` takes what the warden says. 0, or
 * -1 with e. */
int screen_open(
	struct session *s, void (*events)(void *session), struct err *e);
void screen_close(struct session *s);

/* Another master (owned from now on), or -1. While a cell writes, the end of
 * its output is read from the old one first. */
void screen_replace(struct session *s, int fd);

/* For a cell, in this order. */

/* A cell was sent: the terminal is raw, and keys wait for the cell. */
void screen_begin(struct session *s);

/* The cell runs: what comes is its output, up to `mark` (hexadecimal). */
void screen_run(struct session *s, const char *mark);

/* Wait at most `timeout_ms` (-1: without end), then take signals, events and
 * bytes. */
void screen_turn(struct session *s, int timeout_ms);

/* True if the output of the cell that has ended, if it had any, is over. */
bool screen_is_over(const struct session *s);

/* True if the terminal has taken everything. */
bool screen_is_flushed(const struct session *s);

/* The output is over: undo its modes and say what was left out. */
void screen_end_output(struct session *s);

/* The cell is over: let everything out. Then the editor has the terminal, and
 * the keys that the cell did not read. */
void screen_end(struct session *s);

/* Take keys that the warden found unread in the tty. */
void screen_take_keys(struct session *s, const char *keys, size_t n);

/* The window may be larger or smaller. */
void screen_follow_window(struct session *s);

/* Say what of the background output was left out, if anything. Further
 * background output stands below a line of ours that announces it. */
void screen_tell_background(struct session *s);

/* Another terminal has taken the place of the one that there was, or none.
 * While a cell writes, screen_swap() comes first: whether it has the whole
 * screen. */
bool screen_swap(struct session *s);
void screen_take_terminal(struct session *s, bool whole);

/* A program that has the whole screen draws it anew when the size changes, so
 * screen_take_terminal() gives it one row less. A moment later: all of them. */
void screen_draw_anew(struct session *s);

/* ---- detached.c: a session without a terminal, and how it is ---- */

/* Make s->detached. 0, or -1 with e. */
int detached_open(struct session *s, struct err *e);
void detached_close(struct session *s);

/* A key was pressed; a cell begins, or has ended: the person may be reading. */
void detached_keyed(struct session *s);
void detached_cell(struct session *s, bool runs);
bool detached_runs(const struct session *s);

/* Where the person sits, or sat; hostile text. */
const char *detached_from(const struct session *s);

/* There is no terminal from now on: the file that takes its place (borrowed),
 * or -1. */
int detached_begin(struct session *s);

/* Let the file have no more than is kept. */
void detached_trim(struct session *s);

/* There is a terminal again, at `from`. Returns the output of the meantime, for
 * the caller to free, or NULL; *cut: how many lines of it are gone. */
char *detached_end(
	struct session *s, const char *from, size_t *n, uint64_t *cut);

uint64_t detached_count_lines(const char *s, size_t n);

/* True if there is no terminal. */
bool detached_is_gone(const struct session *s);

/* True if nobody has pressed a key since the last cell has ended: what it wrote
 * may have gone to a terminal that was dead already. */
bool detached_is_unseen(const struct session *s);

/* Answer who asks how the session is. With `may_ask` the warden, which answers
 * at once, is asked what is used; else the last figures are told. */
void detached_answer(struct session *s, bool may_ask);

/* True if something came for terminals_turn(). */
bool detached_is_due(const struct session *s);

/* ---- terminals.c: terminals that come and go ---- */

/* Take what came through the control socket, between two reads of the editor or
 * of the relay. `may_ask` is detached_answer()'s. */
void terminals_turn(struct session *s, bool may_ask);

/* Say which watchers have gone, and send the others what waits. */
void terminals_watched(struct session *s);

/* The terminal is lost: go on without one, or end the session. */
void terminals_lose(struct session *s);

/* Let the terminal go. 0, or -1 with e: the session would end. */
int terminals_detach(struct session *s, struct err *e);

/* ---- watchers.c: who watches the session ---- */

struct watchers_who {
	bool root;     /* and not the person */
	char from[64]; /* where that is; text of the watcher's */
};

/* Answer who wants to watch (taken), and show the cell that runs, if any: who
 * that is (borrowed until the next call), or NULL: refused. */
const struct watchers_who *watchers_begin(struct session *s,
	struct control_request *v, const struct record_cell *runs);

/* Everybody who watches; *i begins with 0. NULL at the end. */
const struct watchers_who *watchers_next(const struct session *s, int *i);

/* True if one has gone since this was asked last: who. */
bool watchers_gone(struct session *s, struct watchers_who *who);

/* They see this (attach.h has kinds and flags); a line of ours. Never waits. */
void watchers_add(
	struct session *s, int kind, int flags, const void *buf, size_t n);
void watchers_say(struct session *s, const char *text);

/* Send what could not be sent at once. */
void watchers_send(struct session *s);

/* The session is over. */
void watchers_close(struct session *s);

/* ---- side.c: programs beside the session ---- */

/* Have one started for a client (taken); the warden answers. */
void session_side_begin(struct session *s, struct control_request *v);
void session_side_take(struct session *s, struct jail_event *ev);

/* True if one may run still; drop all. */
bool session_side_is_on(const struct session *s);
void session_side_close(struct session *s);

/* ---- pictures.c: what a cell shows as pictures ---- */

/* Make s->pictures. 0, or -1 with e. */
int pictures_open(struct session *s, struct err *e);
void pictures_close(struct session *s);

/* The terminal's answers. A new terminal has not been asked yet. */
struct ask *pictures_ask(const struct session *s);
void pictures_take_terminal(struct session *s);

/* For a cell: the end of a pipe that is to be handed over, and then closed; -1
 * without. `file` (borrowed until pictures_end()) is the safe name of the image
 * that the cell shows; NULL: it shows what it makes. */
int pictures_begin(struct session *s, const char *file);

/* The descriptor to poll for pictures (POLLIN); -1: there is nothing to take.
 */
int pictures_fd(const struct session *s);
void pictures_read(struct session *s);

/* At a mark in the cell's output: draw the picture that waits for it. False:
 * there is none. */
bool pictures_draw(struct session *s);

/* The cell's output is over: draw what waits, and take no more. */
void pictures_end(struct session *s);

/* ---- record.c: the cells that ran, and what the last of them wrote ---- */

/* Cells whose full output is kept for :out; and how much is kept of the cells,
 * with what each takes beside its source. The oldest go first, but the last
 * cell stays. */
#define RECORD_OUTPUTS 4
#define RECORD_BYTES (16 << 20)

/* A cell that ran; `src` ends with a NUL. */
struct record_cell {
	uint32_t no;
	char *src;
	size_t n;
	bool ok; /* it ran to its end, and was not undone */
};

/* The output of a cell, unfiltered. */
struct record_output {
	uint32_t no;
	struct strbuf bytes;
	uint64_t total; /* more than bytes.n when it was too much */
};

/* NULL without memory. */
struct record *record_new(void);
void record_free(struct record *r);

/* Add a cell that ran. 0, or -1 (no memory). */
int record_add(
	struct record *r, uint32_t no, const char *src, size_t n, bool ok);

/* The number of the last cell that is not kept any more; 0: all are. */
uint32_t record_gone(const struct record *r);

/* All cells that are kept, the oldest first. */
const struct record_cell *record_cells(const struct record *r, size_t *n);

/* Cell `no`, 0 for the last one; NULL when there is none, or it is gone. */
const struct record_cell *record_find(const struct record *r, uint32_t no);

/* The cells from `back_to` on were undone. */
void record_undo(struct record *r, uint32_t back_to);

/* Cell `no` begins to write; more of what it wrote. */
void record_begin_output(struct record *r, uint32_t no);
void record_add_output(struct record *r, const void *buf, size_t n);

/* The output of cell `no`; NULL when it is not kept. */
const struct record_output *record_find_output(
	const struct record *r, uint32_t no);

/* ---- stack.c: where a cell was when it was killed ---- */

/* Append a line for each place in the guest's stacks that lies in a cell, and
 * the source that stands there. The text may hold anything. */
void stack_add(struct strbuf *b, const char *text, size_t n,
	const struct record *record, const struct record_cell *running);

/* ---- setup.c ---- */

/* Longest list a configuration can have. */
#define SETUP_LIST 64

/* Caller's storage for what a spec borrows. */
struct setup {
	char python[PATH_MAX];
	char term[64];
	const char *expose[SETUP_LIST + 1];
	const char *env[SETUP_LIST + 2];
	const char *require[SETUP_LIST + 1];
};

/* A list that ends with NULL, in `to`; or NULL for an empty one. */
const char *const *setup_list(
	const char *to[static SETUP_LIST + 1], const struct strlist *l);

/* Variables for Python; before them, so that they may change it, NO_COLOR if it
 * is `plain`. */
const char *const *setup_env(const char *to[static SETUP_LIST + 2],
	const struct strlist *l, bool plain);

/* `term`, or "dumb" for what is no terminal's name. */
void setup_term(char *buf, size_t size, const char *term);

/* Fill a spec. Borrows `cfg` and `s`. 0, or -1 with e (ERR_CONFIG). */
int setup_spec(struct jail_spec *spec, struct setup *s,
	const struct config *cfg, const struct options *opt,
	const struct terminal *t, enum spec_mode mode, struct err *e);

/* Where a person's sessions are counted. */
struct setup_slots {
	int fd;		/* the file; it holds the place. -1: there is none */
	int most;	/* places */
	bool must;	/* who cannot be counted does not start */
	struct err why; /* there is no file */
};

/* Open the file `sessions` of a directory. A descriptor, or -1 with e. */
int setup_open_slots(const char *dir, struct err *e);

/* Take a place, until the process ends. 0, also where nothing can be counted
 * and need not be; -1 with e when the session must not start: there are too
 * many (ERR_BUSY), or they cannot be counted (ERR_CONFIG). */
int setup_claim_slot(const struct setup_slots *s, struct err *e);

/* Give the place back before the process ends: somebody may see that the
 * session is over before they see the end of the process. */
void setup_leave_slot(const struct setup_slots *s);

/* ---- notices.c ---- */

/* Open the file in the person's directory `dir`, before the front end is
 * confined. A descriptor, or -1: then everything is said each time. */
int notices_open(int dir);

/* True if this person was told `text` here before; from now on they were. */
bool notices_were_shown(int fd, const char *text);

#endif
