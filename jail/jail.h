/* SPDX-License-Identifier: MIT */
/*
 * jail.h - a session in a jail, as the front end sees it
 *
 * jail_open() forks the warden. From then on the warden owns the session: home,
 * limits, clocks, checkpoints. The front end sends requests, polls jail_fd(),
 * takes events, and relays bytes between the terminal and the tty it is given.
 * A call that sends blocks only while the socket to the warden is full; calls
 * that wait for an answer say so.
 *
 * The warden measured or decided everything in an event. A text that came from
 * the guest is marked below: it is hostile, render it safely.
 */
#ifndef JAIL_JAIL_H
#define JAIL_JAIL_H

#include "enforce.h"
#include "jail/base/err.h"
#include "spec.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* Hex digits of an end mark. */
#define JAIL_MARK_LEN 32
/* Longest path in the home, with its NUL. */
#define JAIL_PATH_MAX 4096

struct jail;

/* The limit, or the person, that ended something. */
enum jail_limit {
	LIMIT_NONE,
	LIMIT_WALL,	 /* cell.timeout */
	LIMIT_CPU,	 /* cell.cpu */
	LIMIT_MEMORY,	 /* session.memory */
	LIMIT_PROCESSES, /* session.processes: reached, not fatal by itself */
	LIMIT_PERSON,	 /* Ctrl-C three times */
	LIMIT_IDLE,	 /* session.idle */
	LIMIT_LIFETIME,	 /* session.lifetime */
	LIMIT_ALL,	 /* maker.memory, or what memory the host has */
	LIMIT_EXAM,	 /* exam.end */
	LIMIT_UNTIL,	 /* session.until */
	LIMIT_OUTPUT,	 /* a program's stdout or stderr */
};

/* How a cell ended. */
enum jail_how {
	HOW_OK,		 /* ran to its end */
	HOW_RAISED,	 /* an exception, whose traceback was shown */
	HOW_SYNTAX,	 /* did not compile, error shown */
	HOW_INTERRUPTED, /* KeyboardInterrupt reached the top */
	HOW_EXIT,	 /* SystemExit reached the top */
	HOW_KILLED,	 /* by the warden, for `limit` */
	HOW_CRASHED,	 /* the live guest died of `signal` */
	HOW_EXITED,	 /* the live guest called os._exit(`status`) */
	HOW_LOST,	 /* the guest closed or abused its link */
	HOW_REFUSED,	 /* never ran: `text` says why */
};

/* The state that the session goes on with. */
enum jail_after {
	AFTER_KEPT,	   /* the same live guest */
	AFTER_ROLLED_BACK, /* the checkpoint taken before cell `back_to` */
	AFTER_RESTARTED,   /* a fresh Python: variables lost, home kept */
	AFTER_ENDED,	   /* nothing: the session has ended */
};

/* Why there was no checkpoint to roll back to. */
enum jail_no_checkpoint {
	NO_CHECKPOINT_NONE,   /* there was one */
	NO_CHECKPOINT_OFF,    /* [cell] checkpoint = never */
	NO_CHECKPOINT_COST,   /* auto: the copying cost too much */
	NO_CHECKPOINT_MEMORY, /* given up for memory */
	NO_CHECKPOINT_FAILED, /* it could not be taken */
	NO_CHECKPOINT_KILLED, /* the cell killed it */
	NO_CHECKPOINT_SILENT, /* it did not answer when it was continued */
};

/* All about a cell that ended. */
struct jail_done {
	uint32_t cell;
	enum jail_how how;
	enum jail_limit limit; /* that struck, also HOW_INTERRUPTED */
	enum jail_after after;
	enum jail_no_checkpoint no_checkpoint;
	int signal;		   /* HOW_CRASHED */
	int status;		   /* HOW_EXIT, HOW_EXITED */
	int leaves;		   /* HOW_EXIT: the cell was exit or quit alone
				    * (says the guest) */
	uint32_t back_to;	   /* AFTER_ROLLED_BACK: the cell it precedes */
	uint32_t names;		   /* user names now (says the guest) */
	uint32_t home_files;	   /* files in the home */
	int64_t home_bytes;	   /* that they take */
	uint32_t threads_gone;	   /* threads lost by a roll back */
	uint32_t threads;	   /* more than before it (says the guest) */
	uint32_t leftovers;	   /* processes the cell left behind */
	uint32_t leftovers_ended;  /* of those, ended by the warden */
	uint32_t background_ended; /* ended: could not be stopped */
	int process_limit_hit;	   /* fork failed for session.processes */
	int has_mark;		   /* the guest wrote the mark before DONE */
	int64_t wall_ms, cpu_ms;   /* wall_ms without waiting for input */
	int64_t peak_bytes;	   /* memory peak of the jail, 0 unknown */
	int peak_is_its;	   /* the cell's own; else its own is no more */
	char text[256];		   /* HOW_REFUSED: why (the warden's) */
};

/* The cells that were undone: those from `back_to` on. */
struct jail_undone {
	uint32_t back_to;
	uint32_t names; /* as in jail_done */
	int reset;	/* a jail_reset(), with the cells after it */
	uint32_t next;	/* what another undo would take back; 0: nothing */
	int next_reset;
};

enum jail_event_type {
	JAIL_BUILT,   /* the jail stands, Python is being started (SPEC_CELL:
		       * waits for its cell): `facts` */
	JAIL_FAILED,  /* the jail could not be built: `err`, and `facts` as far
		       * as they are known; the session is over */
	JAIL_UP,      /* the guest answers; fds: see below */
	JAIL_RUNNING, /* a cell was handed over; `mark` ends its output */
	JAIL_TOOK,    /* the cell begins: keys and interrupts reach it */
	JAIL_DONE,    /* a cell ended: `done` */
	JAIL_WAITS,   /* the cell waits for the person to type */
	JAIL_TYPEAHEAD, /* keys the cell did not read: `bytes` */
	JAIL_STACK,	/* stacks of a stuck cell: `bytes` are text (guest's) */
	JAIL_PARKED,	/* a checkpoint was taken, everything is stopped */
	JAIL_NOTICE,	/* the person should know: `text` (the warden's) */
	JAIL_LIMIT,	/* `limit`, idle or lifetime, ends the session */
	JAIL_EXITED,	/* SPEC_PROGRAM, SPEC_CELL: the program ended, and
			 * nothing else runs in the jail: `program` */
	JAIL_SIDE,	/* to jail_start_side(): `cell` is its number, `fd` the
			 * socket for jail_adopt(), or -1 and `err` */
	JAIL_USAGE,	/* to jail_tell_usage(): `usage` */
	JAIL_REPLY,	/* to jail_send(): `ok`, or else `err`; of CALL_UNDO
			 * `undone`, of CALL_RESET `kept` (see jail_reset()).
			 * To jail_ask_later(): `bytes` are the answer; of
			 * CALL_LIST the files, `truncated`. `cell` is the
			 * number of the request */
};

/* How the program ended. Its times begin with jail_start_program(). */
struct jail_program {
	int status;	       /* waitpid() status of the program */
	enum jail_limit limit; /* what killed it, or LIMIT_NONE */
	int64_t wall_ms, cpu_ms, peak_bytes;
	int home_files; /* entries of the home; 0: there is nothing in it */
};

/*
 * JAIL_UP carries descriptors, which the caller owns (-1: none):
 *   SPEC_SESSION  fds[0] master of the tty (a new one after each restart)
 *   SPEC_PROGRAM  fds[0] master of the tty, if any of stdio is a terminal;
 *                 fds[1..3] our ends of the stdin, stdout, stderr pipes
 *                 (merged: no stderr)
 *   SPEC_CELL     fds[1..3] as these; fds[4] what the driver reports
 * SPEC_SESSION: `text` is the interpreter's version ("3.11.2", checked).
 * `restarted`: this Python replaces an earlier one. `limited` says in words
 * what this host cannot enforce (the warden's words; empty if nothing).
 */
#define JAIL_UP_FDS 5

/* The resources that the session uses now, and the enforcer of each limit. */
struct jail_usage {
	int64_t memory_bytes, memory_peak_bytes;
	int64_t cpu_ms;	 /* of the whole session */
	int64_t up_ms;	 /* age of the session */
	int64_t idle_ms; /* since the person last did anything */
	int64_t home_bytes;
	int home_files;
	int processes;
	int checkpoints;
	int cells;
	int by[ENFORCE_LIMITS]; /* enforce_by() has the words */
};

struct jail_event {
	enum jail_event_type type;
	uint32_t cell;
	char mark[JAIL_MARK_LEN + 1];
	enum jail_limit limit;
	int restarted, ok;
	union {
		int truncated, kept;
	};
	int fds[JAIL_UP_FDS];
	int fd;
	char *bytes; /* NUL-terminated beyond `nbytes`; NULL where it has none
		      */
	uint32_t nbytes;
	char text[256];
	char limited[256];
	struct jail_done done;
	struct jail_undone undone;
	struct jail_program program;
	union {
		struct enforce_facts facts; /* JAIL_BUILT, JAIL_FAILED */
		struct jail_usage usage;    /* JAIL_USAGE */
	};
	struct err err;
};

/* Fork the warden and return at once; the outcome arrives as an event. Borrows
 * the spec until then. Nothing of the spec may lie in argv: pid 1 of the jail
 * overwrites its command line. Call with one thread, and before
 * jail_sandbox_enter(). -1 with e when the fork fails. */
int jail_open(struct jail **out, const struct jail_spec *spec, struct err *e);

/* The same for a session whose warden another process has forked: `sock` is
 * its socket (taken). */
int jail_adopt(struct jail **out, int sock, struct err *e);

/* Wait, at most so long, for the socket that was asked for over the connection
 * `asked` (borrowed). -1 with e, also when it was refused. */
int jail_receive(int asked, int timeout_ms, struct err *e);

/* Do what jail_adopt() does with the socket of a session that was asked for. */
int jail_adopt_made(struct jail **out, int sock, struct err *e);

/* The other end of the connection: become the warden of that session, with the
 * alarm that the caller has set until then; hand over another socket (borrowed;
 * 0; -1 with errno; or 1: an error was handed over instead); or answer that
 * there will be none. */
_Noreturn void jail_become(int asked, const struct jail_spec *spec);
int jail_hand_over(int asked, int sock);
void jail_refuse(int asked, const struct err *e);

/* Go on beside our parent, in a child of it: with `n` of its descriptors, and
 * without the others and its terminal. 0, or -1 with e. */
int jail_stand_apart(
	const int *keep, size_t n, const char *name, struct err *e);

/* The descriptor to poll for events (POLLIN). */
int jail_fd(const struct jail *j);

/* Take the next event: 1 event, 0 nothing now, -1 the warden is gone (code
 * ECONNRESET: and had not read the last request). The
 * caller owns the event's descriptors and bytes: jail_event_close(). */
int jail_next(struct jail *j, struct jail_event *ev, struct err *e);

/* The same, but wait: up to `timeout_ms` (-1 for ever). 0 on timeout. */
int jail_wait(
	struct jail *j, struct jail_event *ev, int timeout_ms, struct err *e);

/* Ask for a place beside the session, in the middle of a cell too: JAIL_SIDE
 * says with the same number what came of it. It is a SPEC_PROGRAM on the home
 * of the session, with a jail and clocks of its own, which runs /bin/sh, or
 * with `python` the session's Python, with the limits of a cell; the arguments
 * follow that. It ends with the session. */
int jail_start_side(struct jail *j, uint32_t number, int python, struct err *e);

/* Have jail_next() return the event again, before all that come from now on.
 * Takes what the event holds; -1 with e when it is lost. */
int jail_keep(struct jail *j, struct jail_event *ev, struct err *e);

/* Close the descriptors and free the bytes that the event still holds. */
void jail_event_close(struct jail_event *ev);

/* Begin to end the session: everything in the jail is killed. Nothing may be
 * asked any more; jail_close() follows. */
void jail_end(struct jail *j);

/* After jail_end(): whether jail_close() would return at once. */
int jail_is_over(struct jail *j);

/* End the session: kill everything in the jail, wait until the jail is gone (a
 * few milliseconds), free j. A warden that does not end within seconds is
 * killed; -1 with e when something may still be left then. */
int jail_close(struct jail *j, struct err *e);

/* The same for a program's session in a process that is about to end: when
 * JAIL_EXITED has come, the warden waits for that end, and removes the rest.
 * The place of a session that somebody else made is free afterwards. */
int jail_leave(struct jail *j, struct err *e);

/* The kind of a cell, and the output of it that the driver reports. */
enum jail_cell {
	CELL_SILENT, /* Python, for nobody who could type: its clock never
		      * rests; the figures that are open at its end, as PNG */
	CELL_BUNDLE, /* as CELL_SILENT, and its value in all the forms that it
		      * offers (jail/guest/bundle.py) */
	CELL_PROMPT, /* Python; each picture that it shows, as pixels */
	CELL_IMAGE,  /* the path of an image file, which is shown like that */
	CELL_HABIT,  /* as CELL_PROMPT, for text that is no Python, but what
		      * other prompts take: "!ls", "%run f.py", "ls -l" */
	CELL_EDIT, /* a line with the editor that the person wants, or an empty
		    * line, and a text that is edited in it */
};

/* Pixels come behind a head of JAIL_PICTURE_HEAD bytes, blanks and a line end
 * at its end (jail/guest/pictures.py); after each picture the end mark stands
 * where it belongs in the output. */
#define JAIL_PICTURE_HEAD 64

/* Behind a head "text N" the edited text of a CELL_EDIT comes, N bytes, and no
 * mark (jail/guest/edit.py). */

/* Behind a head "hint WORD" so many bytes come in place of pixels, and no mark
 * (jail/guest/hints.py). */
#define JAIL_HINT_PATH 256

/* A cell to run. All is borrowed until jail_run() returns. */
struct jail_run {
	uint32_t cell; /* the caller numbers cells from 1 */
	const char *src;
	size_t n;
	enum jail_cell kind;
	/* Its time limit, where cell.timeout is longer; 0: that. */
	int64_t wall_ms;
	/* A pipe for what the driver reports of the cell before its JAIL_DONE,
	 * or -1. The bytes are the guest's. */
	int report;
};

/* Run a cell. A cell that comes while the warden takes a checkpoint waits; a
 * cell that comes during another, or is too long, is refused in its JAIL_DONE.
 * -1: the warden is gone. */
int jail_run(struct jail *j, const struct jail_run *run, struct err *e);

/* Interrupt the last cell or program that was sent (SIGINT to the foreground
 * group), and nothing after it. A cell that has not begun never runs: its
 * JAIL_DONE says HOW_REFUSED. */
int jail_interrupt(struct jail *j);

/* The same for a cell, which is killed where it goes on after cell.grace. */
int jail_stop(struct jail *j);

/* Kill it now, without waiting for its limit. */
int jail_kill(struct jail *j);

/* The window has this size now; the foreground group gets SIGWINCH. */
int jail_resize(struct jail *j, unsigned short rows, unsigned short cols);

/* Say once, with JAIL_WAITS, when the cell that runs waits for the person and
 * its tty is empty. */
int jail_tell_waits(struct jail *j);

/* The person pressed a key at the prompt: restart the idle clock. Call at most
 * once a second. */
int jail_touch(struct jail *j);

/*
 * The calls below block until the warden answers, which it does under a clock
 * of its own. Events that arrive meanwhile are kept for jail_next(). Call them
 * between cells.
 */

/* While a call waits, watch `fd` too: `cb` takes its input and returns whether
 * the person does not want to wait. The warden then refuses what it has not
 * begun, and hurries what it has. */
void jail_watch_interrupt(
	struct jail *j, int fd, int (*cb)(void *arg), void *arg);

/* Ask for the keys that the tty still holds, as JAIL_TYPEAHEAD: they were on
 * their way when the cell ended. */
int jail_return_keys(struct jail *j);

/* Questions to the guest. The answer is hostile text. */
enum jail_question {
	ASK_COMPLETE,  /* text = source up to the cursor; answer: first line
			* the number of bytes to replace before the cursor,
			* then one candidate a line */
	ASK_DOC,       /* text = expression; answer: signature, docstring */
	ASK_SOURCE,    /* text = expression; answer: its source */
	ASK_WHO,       /* answer: name TAB type TAB size TAB short value */
	ASK_DIFF,      /* answer: the number of the last cell, then a line for
			* what it changed: what TAB name TAB type TAB value */
	ASK_EXPLAIN,   /* answer: the last error in plain words; or empty */
	ASK_WATCH,     /* text = expression; answer: "=" and its value, ":" and
			* an exception, "?" where it is none, "-" where Python
			* cannot be copied to evaluate it; then a line that
			* another value would not have */
	ASK_SIGNATURE, /* text = dotted name; answer: its parameters in
			* parentheses. Nothing of the user's runs for it, so
			* a guest that has threads is not asked */
};

/* Ask under a short clock. *answer is new, NUL-terminated, at most 256 KiB,
 * caller frees. -1 with e when no answer comes in time; the guest was then
 * interrupted or rolled back, which a JAIL_NOTICE reports. */
int jail_ask(struct jail *j, enum jail_question q, const char *text, size_t n,
	char **answer, size_t *answer_n, struct err *e);

/* The same without waiting: JAIL_REPLY has the answer, unless another question
 * is asked later before it. */
int jail_ask_later(struct jail *j, enum jail_question q, const char *text,
	size_t n, struct err *e);

/* A fresh Python on the same home. JAIL_UP follows. *kept: jail_undo() brings
 * the state before it back, unless a JAIL_NOTICE says that it is lost. */
int jail_reset(struct jail *j, int *kept, struct err *e);

/* Back to the state before the last n cells that changed a variable. */
int jail_undo(struct jail *j, int n, struct jail_undone *u, struct err *e);

/* For a caller that has other things to do than to wait: the same, and
 * JAIL_REPLY says when it is done. No other call before that. */
enum jail_call {
	CALL_READY, /* all that was asked before is done: no call waits for it
		     */
	CALL_RESET,
	CALL_UNDO,   /* `n` cells */
	CALL_REMOVE, /* `path`; as jail_home_remove() */
	CALL_LIST,   /* as jail_home_list(): jail_take_files() */
	CALL_LOWER,  /* jail_lower() */
	CALL_OPEN,   /* `path`; as jail_home_open(): `fd`, or -1 and `err`. `n`
		      * is 1 */
};

int jail_send(struct jail *j, enum jail_call call, int n, const char *path,
	struct err *e);

/* The same for a session of a pool, once, before anything else is asked of it:
 * lower session.memory and home.size to those of `l`. CALL_LOWER. */
int jail_lower(struct jail *j, const struct limits *l, struct err *e);

/* Ask for it, and wait. */
int jail_usage(struct jail *j, struct jail_usage *u, struct err *e);

/* Ask for it, at any moment, and do not wait: JAIL_USAGE. */
int jail_tell_usage(struct jail *j);

/* One entry of the home. Names are hostile bytes (never '/' at the start). */
struct jail_file {
	char *path; /* relative to the home */
	int64_t bytes;
	int64_t blocks_bytes; /* allocated: less for a sparse file */
	int64_t mtime_ns;     /* since the epoch */
	int mode;	      /* permissions */
	char type;	      /* 'f' file, 'd' directory, 'l' link, 'o' other */
	unsigned nlink;
};

struct jail_files {
	struct jail_file *v;
	size_t n;
	int truncated;	    /* there were more than the warden would list */
	int64_t used_bytes; /* of home.size */
	int used_files;	    /* of home.files */
};

/* Every entry of the home, recursively, sorted by path, at most
 * 10 000. Free with jail_files_free(). */
int jail_home_list(struct jail *j, struct jail_files *out, struct err *e);

/* The same out of the JAIL_REPLY to CALL_LIST. */
int jail_take_files(
	struct jail_event *ev, struct jail_files *out, struct err *e);
void jail_files_free(struct jail_files *f);

/* The same of a home whose session has ended (spec_made.left), by its directory
 * (borrowed): list it, or open a file of it. */
int jail_left_list(int home, struct jail_files *out, struct err *e);
int jail_left_open(int home, const char *path, struct err *e);

/* Open a regular file of the home for reading: descriptor, or -1 with e. A
 * link that leaves the home, a FIFO, a device and a directory are refused. */
int jail_home_open(struct jail *j, const char *path, struct err *e);

/* Most files of one call. */
#define JAIL_MANY_MAX 32

/* The same for several files, in one or a few questions to the warden: how many
 * were opened. With fewer than `n`, e says why the next one was not. */
int jail_home_open_many(struct jail *j, const char *const *paths, int n,
	int *fds, struct err *e);

/* Begin files with these permissions: descriptors to temporary files, which the
 * tokens name. Missing directories are made. How many, as above. */
int jail_home_create_many(struct jail *j, const char *const *paths, int n,
	int mode, int *fds, uint32_t *tokens, struct err *e);

/* How a file or directory is when it is whole. */
struct jail_end {
	uint32_t token; /* of a file */
	int replace;	/* a file of that name; or refuse to overwrite it */
	int mode; /* permissions; -1: those that it was begun with, or 0755, and
		   * the time of the last change */
	int64_t mtime_ns;
};

/* Rename files into place. How many, as above; `ends` has at most
 * JAIL_MANY_MAX. A file that cannot be committed is gone. */
int jail_home_commit_many(
	struct jail *j, const struct jail_end *ends, int n, struct err *e);

/* Remove a file that was begun. */
int jail_home_abort(struct jail *j, uint32_t token);

/* Make directories that are missing, and give each its mode and time. How many,
 * as above. */
int jail_home_mkdir_many(struct jail *j, const char *const *paths,
	const struct jail_end *ends, int n, struct err *e);

/* Remove a file, a link, or a whole directory of the home. */
int jail_home_remove(struct jail *j, const char *path, struct err *e);

/* How a program starts. All borrowed for the call. */
struct jail_start {
	const char *const *argv; /* after the interpreter; ends with NULL */
	const char *const *env;	 /* NAME=VALUE unless python.env sets NAME; ends
				  * with NULL, or is NULL */
	/* SPEC_CELL, in which the two above are NULL: what the driver runs and
	 * reports on, as request.py reads it. */
	const void *source;
	size_t source_n;
	int merged;	 /* stdout and stderr are one pipe, fds[2] */
	int64_t wall_ms; /* stricter than cell.timeout, or asked_wall_ms of
			  * the spec; 0: as configured */
};

/* SPEC_PROGRAM, SPEC_CELL: start the program now (after uploads), once. */
int jail_start_program(
	struct jail *j, const struct jail_start *start, struct err *e);

/* Print the plan of a jail for `spec` on this host, which offers `facts`: one
 * line an operation. -1 with e when the spec asks for what no jail can have. */
int jail_print_plan(const struct jail_spec *spec,
	const struct enforce_facts *facts, FILE *f, struct err *e);

/* ---- the confinement of the front end ---- */

#define JAIL_SANDBOX_PATHS 256

enum jail_sandbox_access {
	JAIL_SANDBOX_READ,   /* read files, list directories */
	JAIL_SANDBOX_WRITE,  /* also create, remove, rename; no device nodes */
	JAIL_SANDBOX_DEVICE, /* read, write and ioctl on device files */
	JAIL_SANDBOX_REMOVE, /* remove files that are no directories */
};

/* The paths that stay reachable, each with everything beneath it. All zero is
 * nothing; a path that does not exist is skipped. */
struct jail_sandbox {
	struct {
		const char *path; /* borrowed */
		enum jail_sandbox_access access;
	} v[JAIL_SANDBOX_PATHS];
	size_t n;
	/* The rights that are left besides: */
	enum jail_sandbox_left {
		JAIL_SANDBOX_NOTHING,
		JAIL_SANDBOX_CLIENTS, /* accepting clients, and pairs of sockets
				       */
		JAIL_SANDBOX_TERMINALS, /* accepting clients, and setsid(2) */
	} left;
};

/* Give up, for good: every capability, exec, fork, sockets, and, where the
 * kernel has Landlock, every path that was not allowed. Call after jail_open()
 * and with one thread. On -1 with e the process must end. */
int jail_sandbox_enter(const struct jail_sandbox *c, struct err *e);

#endif
