/* SPDX-License-Identifier: MIT */
/*
 * session.h - the person's view of a session; setup.c and notices.c serve every
 * kind of run
 *
 *	prompt.c	a session from banner to end
 *	session.c	printing, leaving
 *	question.c	keys for a command
 *	cell.c		a cell from hand-over to verdict; the warden's events
 *	screen.c	the terminal and the jail's tty
 *	line.c		the editor of the lines that a cell reads
 *	pictures.c	pictures that a cell shows
 *	record.c	the cells that ran, and their output
 *	hints.c		a line at a wall of the jail
 *	stack.c		where a killed cell was
 *	detached.c	a session without a terminal
 *	terminals.c	terminals that come and go
 *	side.c		programs beside the session
 *	watchers.c	clients that watch the session
 *	expressions.c	expressions that the person watches
 *
 *	setup.c		the jail's specification; the count of sessions
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
struct expressions;
struct history;
struct jail;
struct key;
struct keys;
struct line_editor;
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

/* Most figures named by frame lines that we remember. */
#define SESSION_FIGURES 64

/* Calls to the layer above: the commands, and what the command line asks for
 * around a session. The void pointers are the session. */
struct session_calls {
	/* Run a line that is a command. 0, or -1 with e; 1: it is a cell. */
	int (*line)(
		struct session *s, const char *src, size_t n, struct err *e);
	/* The editor calls these: struct editor_opts. */
	bool (*takes_cell)(void *session, const char *name, size_t n);
	int (*complete)(void *session, const char *text, size_t n,
		size_t cursor, struct complete_list *out);
	void (*signature)(void *session, const char *name, size_t n);
	/* Before the first prompt: check that finish() can do its work (0, or
	 * -1 with e), then do what comes before the first cell. */
	int (*ready)(struct session *s, struct err *e);
	void (*start)(struct session *s);
	/* After the last cell. 0, or -1 when something was refused. */
	int (*finish)(struct session *s);
};

/* How long we wait until an unseen session answers, and how long that session
 * waits for its program, even where session.linger is shorter. */
#define SESSION_UNSEEN_MS 30000

/* Most clients that wait for a program beside the session, or have one. */
#define SIDES_MAX 8

/* Caller's storage: fill in the first part and call prompt_run(). */
struct session {
	/* Borrowed; they do not change. */
	const struct session_calls *calls;
	const struct config *cfg;
	const struct options *opt;
	struct jail *jail;
	struct terminal *term;
	struct signals *signals;
	const struct hostfs *host;
	struct log *log;
	struct history *history;
	const char *no_history;	 /* why no history is kept; "": it is */
	int notices_fd;		 /* notices.c; -1: none */
	const char *python;	 /* the interpreter's path on the host */
	struct control *control; /* NULL: the session has one terminal */
	const char *no_control;	 /* why the person cannot come back to it */
	const char *user;	 /* the person's account; or NULL */
	int courier;		 /* to it (repl/lab/hand.c); -1: none */
	bool unseen; /* begun for a program beside it, without a terminal */
	bool login;  /* sshd started us */

	/* Each belongs to the file of its name. That file also writes the
	 * struct behind the pointer. */
	struct drive drive;
	struct view_cell *cell;
	uint32_t cell_no; /* the number of the last cell */
	uint32_t saved;	  /* cell_no when the person last saved something */
	/* The line that runs, as the person typed it; watchers have seen it.
	 * NULL: the person has not typed what runs. */
	const char *typed;
	size_t typed_n;
	struct record *record;
	char hint[640]; /* hints.c: about the error of the cell; or empty */
	struct strbuf *edited; /* takes the text of CELL_EDIT; or NULL */
	struct strbuf *aside;  /* takes what a cell writes; NULL: it is shown */
	struct screen *screen;
	struct line_editor *line;
	struct pictures *pictures;
	struct relay *relay;   /* has the terminal; NULL: the editor has it */
	struct output *output; /* a cell writes to it; NULL: none does */
	struct editor *editor;
	struct ledger ledger;
	size_t given;		   /* entries of it that the skeleton made */
	struct detached *detached; /* NULL: the session has no client */
	bool stopped; /* terminals.c: its client is a stopped job */
	struct watchers *watchers;	 /* NULL: no watcher has come yet */
	struct expressions *expressions; /* NULL: none was watched yet */
	struct side_program {
		uint32_t number; /* 0: a free place */
		int fd;		 /* of the connection */
	} sides[SIDES_MAX];
	uint32_t nsides; /* programs beside the session so far */

	/* session.c writes these; other files may read `over`. */
	bool over;
	int status;	/* exit status */
	struct err why; /* why it is over; msg empty: nothing to say */
	bool warned;	/* leaving was tried, and would lose something */
	bool leaves;	/* a cell has ended it while there was no terminal */
	bool finished;	/* calls->finish() was called for the last time */
	unsigned figures[SESSION_FIGURES]; /* a ring of their numbers */
	size_t nfigures;
	char limited[256]; /* what this host cannot enforce */
	bool told_limited;
};

/* Run a session in a jail that was opened. The first prompt may come a moment
 * before the jail is built. Returns the exit status, or -1 with e. */
int prompt_run(struct session *s, struct err *e);

/* ---- printing ---- */

/* Print a frame line, above the prompt if there is one. */
void session_frame(struct session *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Print an error with its hint as a frame line. */
void session_refuse(struct session *s, const struct err *e);

/* Print text that is safe for a terminal; lines end with "\n". */
void session_print(struct session *s, const char *text, size_t n);

/* Print foreign text of many lines, each made safe. */
void session_print_foreign(struct session *s, const char *text, size_t n);

/* How many variables the person has, modules left out; with `name`, of that
 * name. 0 also if Python does not answer. */
size_t session_variables(struct session *s, const char *name);

/* Note what this host cannot enforce, and tell the person. Each person is told
 * once on each host, and not while a cell runs: then session_tell_limited()
 * must follow. */
void session_set_limited(struct session *s, const char *limited);
void session_tell_limited(struct session *s);

/* ---- leaving ---- */

/* Note that a frame line has named figure-N.png of the home. The person knows
 * of that file, so session_leave() does not warn of it. */
void session_name_figure(struct session *s, unsigned number);

/* Download the files of -d, and end the session with `status`. If other files
 * were not downloaded, or variables would be lost and `by` is Ctrl-D, the first
 * call warns the person, names `by` as what leaves, and the session goes on.
 * Without a terminal the call only sets `leaves`, and the session waits for the
 * person. session_stay(): warn again next time. */
#define SESSION_CTRL_D "Ctrl-D"
void session_leave(struct session *s, int status, const char *by);
void session_stay(struct session *s);

/* True if the session can go on without a terminal, and the person come back.
 */
bool session_goes_on_alone(const struct session *s);

/* Put the terminal into its own modes, and download the files of -d. */
void session_finish(struct session *s);

/* End the session: with an exit status, by a signal (SIGHUP if the terminal is
 * gone), or with an error. */
void session_end(struct session *s, int status);
void session_end_by(struct session *s, int sig);
void session_fail(struct session *s, const struct err *e);

/* ---- cell.c: a cell from hand-over to verdict ---- */

/* Make s->drive and s->cell, for a Python that has not run python.startup yet.
 * 0, or -1 with e. */
int cell_open(struct session *s, struct err *e);
void cell_close(struct session *s);

/* Run a cell and wait for its end. 0, or -1 with e: the cell was not sent. */
int cell_run(struct session *s, const char *src, size_t n, struct err *e);

/* The same for text that is a habit of other prompts, and no Python. */
int cell_run_habit(
	struct session *s, const char *text, size_t n, struct err *e);

/* Run a cell that shows the image file `path` of the home; `name` is its name,
 * made safe for a terminal. 0, or -1 with e: the cell was not sent. */
int cell_show_image(
	struct session *s, const char *path, const char *name, struct err *e);

/* Run a cell that writes the value of cell `no` whole, and append what it
 * writes to `b`, up to RECORD_OUTPUT_BYTES, instead of showing it. The cell has
 * no number. 1; 0: that value is not there any more; -1 with e. */
int cell_take_value(
	struct session *s, uint32_t no, struct strbuf *b, struct err *e);

/* Run a cell in which the person edits `text` with a program of the jail, and
 * append the text that the program leaves, and a line end, to `b`: hostile
 * bytes. The cell has no number. 1; 0: the program has left no text; -1 with e.
 */
int cell_edit(struct session *s, const char *text, size_t n, struct strbuf *b,
	struct err *e);

/* The cell that runs, with the line of the person if the person typed it.
 * `src` is NULL: no cell runs. */
struct record_cell cell_running(const struct session *s);

/* How the last cell ended; NULL: not known. */
const struct jail_done *cell_done(const struct session *s);

/* Run python.startup if it is due. */
void cell_run_startup(struct session *s);
bool cell_startup_is_due(const struct session *s);

/* Note that a fresh Python replaces the old one. JAIL_UP will follow. */
void cell_restarted(struct session *s);

/* Take all events that the warden has sent. End the session if the warden is
 * gone. */
void cell_take_events(struct session *s);

/* ---- screen.c: the terminal, between the editor and the jail's tty ---- */

/* Make s->screen, without a tty yet. `events` takes the warden's events. 0, or
 * -1 with e. */
int screen_open(
	struct session *s, void (*events)(void *session), struct err *e);
void screen_close(struct session *s);

/* Use another master of the tty (owned from now on), or none (-1). While a cell
 * writes, we keep the old master until the cell's end. */
void screen_replace(struct session *s, int fd);

/* Called for each cell, in this order. */

/* A cell was sent: make the terminal raw, and hold keys for the cell. */
void screen_begin(struct session *s);

/* The cell runs: bytes from the tty are its output, up to `mark` (in
 * hexadecimal). */
void screen_run(struct session *s, const char *mark);

/* Wait at most `timeout_ms` (-1: without end), then take signals, events and
 * bytes. */
void screen_turn(struct session *s, int timeout_ms);

/* True if no more output of the cell that has ended will come. */
bool screen_is_over(const struct session *s);

/* True if the terminal has taken everything. */
bool screen_is_flushed(const struct session *s);

/* End the cell's output: undo its modes, and say what was left out. */
void screen_end_output(struct session *s);

/* End the cell: write everything that waits for the terminal. Then the editor
 * has the terminal, and the keys that the cell did not read. */
void screen_end(struct session *s);

/* Take keys that the warden found unread in the tty. */
void screen_take_keys(struct session *s, const char *keys, size_t n);

/* Measure the window, and tell the jail if it has another size. */
void screen_follow_window(struct session *s);

/* Show background output that waits, and say what was left out, if anything. A
 * new frame line will announce further background output. */
void screen_tell_background(struct session *s);

/* For another terminal in place of the old one. screen_swap() comes before the
 * change: true if a cell writes and has the whole screen. Then, or when no
 * terminal is left, screen_take_terminal() follows the change. */
bool screen_swap(struct session *s);
void screen_take_terminal(struct session *s, bool whole);

/* A program that has the whole screen draws it anew when the size changes, so
 * screen_take_terminal() gives the program one row less. A moment later, this
 * function gives it all rows. */
void screen_draw_anew(struct session *s);

/* ---- line.c: the editor of the lines that a cell reads ---- */

/* Make s->line. lost(s) lets the terminal go if another job has it. 0, or -1
 * with e. */
int line_open(struct session *s, bool (*lost)(void *session), struct err *e);
void line_close(struct session *s);

/* A cell begins: find out whether its lines can be edited. */
void line_allow(struct session *s);
/* Another terminal is here, or the same once more. */
void line_take_terminal(struct session *s);

/* The cell waits for the person. True if we edit a line for it. */
bool line_begin(struct session *s);

/* Before each turn of the relay: read keys until the line is entered or there
 * is work for the relay. False: we do not edit now. */
bool line_edit(struct session *s);

/* The cell is over: keep the keys of a line that was not entered. */
void line_end(struct session *s);

/* ---- detached.c: a session without a terminal, and its status ---- */

/* Make s->detached. 0, or -1 with e. */
int detached_open(struct session *s, struct err *e);
void detached_close(struct session *s);

/* Note that the person has pressed a key; that a cell begins (`runs`) or has
 * ended. The end counts as a key: the person may be reading. */
void detached_keyed(struct session *s);
void detached_cell(struct session *s, bool runs);
bool detached_runs(const struct session *s);

/* Where the last client with a terminal came from; hostile text. */
const char *detached_from(const struct session *s);

/* Go on without a terminal. Returns the file that takes its place (borrowed),
 * or -1. */
int detached_begin(struct session *s);

/* If the file is too long, keep only its end. */
void detached_trim(struct session *s);

/* Go on with a terminal, at `from`. Returns the *n bytes of output that the
 * file still has (caller frees), or NULL. *cut: how many lines we had cut off
 * before those. */
char *detached_end(
	struct session *s, const char *from, size_t *n, uint64_t *cut);

uint64_t detached_count_lines(const char *s, size_t n);

/* Note the text of a frame line: the last one before the end of a session whose
 * client is stopped is shown when that client goes on. */
void detached_say(struct session *s, const char *text);

/* True if there is no terminal. */
bool detached_is_gone(const struct session *s);

/* True if no key has come since the last cell ended: its output may have gone
 * to a terminal that was dead already. */
bool detached_is_unseen(const struct session *s);

/* Answer clients that ask for the session's status, or for a program beside it.
 * `may_ask`: the warden would answer at once, so we ask it for the usage.
 * Without it we tell the last usage that we know. */
void detached_answer(struct session *s, bool may_ask);

/* True if there is work for terminals_turn(). */
bool detached_is_due(const struct session *s);

/* ---- terminals.c: terminals that come and go ---- */

/* Serve the clients of the control socket, between two reads of the editor or
 * of the relay. `may_ask` is for detached_answer(). */
void terminals_turn(struct session *s, bool may_ask);

/* Say which watchers have gone, and send the others what waits. */
void terminals_watched(struct session *s);

/* Let the terminal go if it is not lost, but another job has it: the client was
 * stopped by SIGSTOP, and the session was not, or not yet again. True: it is
 * let go. */
bool terminals_fall_behind(struct session *s);

/* The terminal is lost: go on without one, or end the session, also if it was
 * never used. */
void terminals_lose(struct session *s);

/* Let the terminal go. 0, or -1 with e: without it the session would end. */
int terminals_detach(struct session *s, struct err *e);

/* Stop as a job, or say that no shell waits for us. A session that has a client
 * goes on without a terminal, and the client stops; any other stops here, and
 * has the terminal again when this returns. */
void terminals_stop(struct session *s);

/* We were continued. A session without a client takes the terminal back; with
 * one, the client brings the terminal, unless another job has it. */
void terminals_continue(struct session *s);

/* ---- question.c: keys for a command ---- */

/* Put the terminal into raw mode, and wait for keys, at most KEYS_OUT_MAX.
 * Returns how many; 0: the window has another size; -1: stop waiting, because
 * of SIGINT, the session's end, or work for terminals_turn(). At Ctrl-Z the
 * caller calls question_stop(). */
int question_keys(struct session *s, struct keys *keys, struct key *out);

/* Stop as a job, until the session has a terminal again. False: the session is
 * over. */
bool question_stop(struct session *s);

/* Ask the person a question to answer with y or n. True only for y. */
bool question_confirm(struct session *s, const char *question);

/* ---- watchers.c: clients that watch the session ---- */

struct watchers_who {
	bool root;     /* and not the person */
	char from[64]; /* the watcher's place, in the watcher's words */
};

/* Answer a client that wants to watch (`v` is taken), and send it the cell that
 * runs, if any. Returns the watcher (borrowed until the next call), or NULL:
 * refused. */
const struct watchers_who *watchers_begin(struct session *s,
	struct control_request *v, const struct record_cell *runs);

/* The next watcher; *i is 0 for the first. NULL at the end. */
const struct watchers_who *watchers_next(const struct session *s, int *i);

/* True if a watcher has gone since the last call: *who. */
bool watchers_gone(struct session *s, struct watchers_who *who);

/* Send all watchers a message (attach.h has kinds and flags), or the text of a
 * frame line. Never waits. */
void watchers_add(
	struct session *s, int kind, int flags, const void *buf, size_t n);
void watchers_say(struct session *s, const char *text);

/* Send messages that could not be sent at once. */
void watchers_send(struct session *s);

/* Tell the watchers that the session is over, and free them. */
void watchers_close(struct session *s);

/* ---- expressions.c: expressions that the person watches ---- */

/* Most expressions, and most characters of one. */
#define EXPRESSIONS_MAX 8
#define EXPRESSION_CHARS 200

/* Watch an expression, and show its value. 0, or -1 with e. */
int expressions_add(
	struct session *s, const char *text, size_t n, struct err *e);

/* Watch one no more: its number, from 1 on, or its text; no text: all of them.
 * 0, or -1 with e. */
int expressions_remove(
	struct session *s, const char *text, size_t n, struct err *e);

/* Evaluate all of them, and show them with their numbers. */
void expressions_list(struct session *s);

/* Note that values may have changed. Before the next prompt,
 * expressions_show() shows those that have. */
void expressions_expire(struct session *s);
void expressions_show(struct session *s);
void expressions_close(struct session *s);

/* ---- side.c: programs beside the session ---- */

/* Have the warden start a program for a client (`v` is taken); hand the
 * warden's answer to that client. */
void session_side_begin(struct session *s, struct control_request *v);
void session_side_take(struct session *s, struct jail_event *ev);

/* True if a program may still run; close the connections of all clients. */
bool session_side_is_on(const struct session *s);
void session_side_close(struct session *s);

/* ---- pictures.c: pictures that a cell shows ---- */

/* Make s->pictures. 0, or -1 with e. */
int pictures_open(struct session *s, struct err *e);
void pictures_close(struct session *s);

/* The answers of the terminal. pictures_take_terminal() forgets them: we
 * have not asked a new terminal yet. */
struct ask *pictures_ask(const struct session *s);
void pictures_take_terminal(struct session *s);

/* Begin a cell: returns the end of a pipe that the caller hands to the cell and
 * closes, or -1. `file` (borrowed until pictures_end()) is the safe name of the
 * image file that the cell shows; NULL: the cell makes its pictures. */
int pictures_begin(struct session *s, const char *file);

/* The descriptor to poll for pictures (POLLIN); -1: do not read now. */
int pictures_fd(const struct session *s);
void pictures_read(struct session *s);

/* At a mark in the cell's output: draw the picture that waits for it. False:
 * there is none. */
bool pictures_draw(struct session *s);

/* End the cell's output: draw the pictures that wait, and read no more. */
void pictures_end(struct session *s);

/* ---- hints.c: one line at a wall of the jail ---- */

/* Note in s->hint what to say about an error. The guest wrote both: `head` is a
 * word and blanks, `path` may be anything. */
void hints_note(struct session *s, const char *head, const char *path);

/* ---- record.c: the cells that ran, and the output of the last ones ---- */

/* How many cells' output we keep for :out, and how many bytes of cells: their
 * sources, and a record_cell for each. We drop the oldest cells first, and
 * never the last one. */
#define RECORD_OUTPUTS 4
#define RECORD_BYTES (16 << 20)
/* Most bytes of a cell's output that we keep. */
#define RECORD_OUTPUT_BYTES ((size_t)8 << 20)

/* A cell that ran; `src` ends with a NUL. */
struct record_cell {
	uint32_t no;
	char *src;
	size_t n;
	bool ok;    /* it ran to its end, and was not undone */
	bool habit; /* cell_run_habit() ran it */
};

/* The output of a cell, unfiltered. */
struct record_output {
	uint32_t no;
	struct strbuf bytes;
	uint64_t total; /* bytes written: more than bytes.n if too many */
	bool cut;	/* its last value is not whole, and begins there: */
	size_t cut_at;
};

/* NULL without memory. */
struct record *record_new(void);
void record_free(struct record *r);

/* Add a cell that ran, whose source is copied. 0, or -1 (no memory). */
int record_add(struct record *r, const struct record_cell *cell);

/* The number of the last cell that is not kept any more; 0: all are. */
uint32_t record_gone(const struct record *r);

/* All cells that are kept, the oldest first. */
const struct record_cell *record_cells(const struct record *r, size_t *n);

/* Cell `no`, 0 for the last one; NULL when there is none, or it is gone. */
const struct record_cell *record_find(const struct record *r, uint32_t no);

/* Note that :undo undid the cells from `back_to` on. */
void record_undo(struct record *r, uint32_t back_to);

/* Begin the output of cell `no`; add bytes to it. */
void record_begin_output(struct record *r, uint32_t no);
void record_add_output(
	struct record *r, const void *buf, size_t n, size_t keep);
/* Note that the value that follows in the output is not whole. */
void record_cut(struct record *r);

/* The output of cell `no`; NULL when it is not kept. */
const struct record_output *record_find_output(
	const struct record *r, uint32_t no);

/* ---- stack.c: where a cell was when it was killed ---- */

/* Append a line for each place in the main thread's stack that lies in a cell,
 * and the source line of that place. `text` is the guest's, and may hold
 * anything. */
void stack_add(struct strbuf *b, const char *text, size_t n,
	const struct record *record, const struct record_cell *running);

/* ---- setup.c ---- */

/* Longest list a configuration can have. */
#define SETUP_LIST 64

/* Caller's storage for what a spec borrows. */
struct setup {
	char python[PATH_MAX];
	char term[64];
	const char *packages[SETUP_LIST + 1];
	const char *expose[SETUP_LIST + 1];
	const char *env[SETUP_LIST + 2];
	const char *require[SETUP_LIST + 1];
};

/* Copy a list into `to`, with a NULL at its end. Returns `to`, or NULL for an
 * empty list. */
const char *const *setup_list(
	const char *to[static SETUP_LIST + 1], const struct strlist *l);

/* Copy a list of variables for Python, as setup_list() does. With `plain`
 * NO_COLOR comes first, so that the list may change it. */
const char *const *setup_env(const char *to[static SETUP_LIST + 2],
	const struct strlist *l, bool plain);

/* Copy `term`, or "dumb" if that cannot be the name of a terminal. */
void setup_term(char *buf, size_t size, const char *term);

/* Check that an interpreter is there, and a program. 0, or -1 with e of kind
 * ERR_CONFIG. */
int setup_check_python(const char *path, struct err *e);

/* Fill a spec. Borrows `cfg` and `s`. 0, or -1 with e (ERR_CONFIG). */
int setup_spec(struct jail_spec *spec, struct setup *s,
	const struct config *cfg, const struct options *opt,
	const struct terminal *t, enum spec_mode mode, struct err *e);

/* Where a person's sessions are counted. */
struct setup_slots {
	int fd;		/* the file, whose lock is our place; or -1 */
	int most;	/* places */
	bool must;	/* a session that cannot be counted must not start */
	struct err why; /* why there is no file */
};

/* Open the file `sessions` of a directory. A descriptor, or -1 with e. */
int setup_open_slots(const char *dir, struct err *e);

/* Take a place, until the process ends. 0, also if sessions cannot be counted
 * and need not be; -1 with e if the session must not start: there are too many
 * (ERR_BUSY), or they cannot be counted (ERR_CONFIG). */
int setup_claim_slot(const struct setup_slots *s, struct err *e);

/* Give the place back before the process ends: a person may see that the
 * session is over while the process still exits. */
void setup_leave_slot(const struct setup_slots *s);

/* ---- notices.c ---- */

/* Open the file in the person's directory `dir`, before the front end is
 * confined. A descriptor, or -1: then we repeat every notice. */
int notices_open(int dir);

/* True if this person was told `text` on this host before. If not, note that
 * they are told now. */
bool notices_were_shown(int fd, const char *text);

#endif
