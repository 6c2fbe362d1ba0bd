/* SPDX-License-Identifier: MIT */
/*
 * drive.h - a jail in use, for every front end
 *
 *	drive.c		the events of the warden; cells, programs and calls
 *	verdict.c	how a cell ended, in one line
 *	log.c		syslog and the transcript, where the administrator wants
 *			them
 *
 * The prompt, programs, --eval, --serve and --mcp differ in who sends requests,
 * and where output goes. This folder keeps the state of a jail for all of them,
 * and stops cells.
 */
#ifndef REPL_DRIVE_DRIVE_H
#define REPL_DRIVE_DRIVE_H

#include "jail/base/err.h"
#include "jail/jail.h"
#include "jail/spec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config;
struct log;
struct output;

/* ---- verdict.c ---- */

/*
 * Pure: words for the person about what the warden measured.
 */

/* Enough for any verdict. */
#define VERDICT_MAX 1024

/* The configuration that the words of a verdict name. Borrowed. */
struct verdict_about {
	const struct limits *limits;
	const char *memory_source; /* the source of session.memory; NULL: built
				    * in */
	bool error_is_other; /* its error is not for lack of room in the home */
};

/* Write the words that go between the brackets, such as "time limit: 10 s ·
 * interrupted · variables kept". Empty when there is nothing to say: the cell
 * ran to its end, or its own traceback said it all. Returns `buf`. */
const char *verdict_line(char buf[static VERDICT_MAX],
	const struct jail_done *d, const struct verdict_about *about);

/* The key that sets a limit; NULL: no key does. */
const char *verdict_limit_key(enum jail_limit limit);

/* Write the limit for which a program was killed: "memory limit: 512 MiB".
 * Empty when no limit struck. Returns `buf`. */
const char *verdict_limit(char buf[static VERDICT_MAX], enum jail_limit limit,
	const struct limits *limits);

/* Write the message for a session that the idle or lifetime limit ended. */
const char *verdict_session_end(char buf[static VERDICT_MAX],
	enum jail_limit limit, const struct limits *limits);

/* Write what :undo has undone, and what it would undo next. `source` is the
 * first cell that it has undone, or NULL. */
const char *verdict_undo(char buf[static VERDICT_MAX],
	const struct jail_undone *u, const char *source, size_t n);

/* ---- log.c ---- */

/*
 * 	log.syslog	who, when, which limit struck
 * 	log.transcript	a file for each session: its cells, their output, and
 * 			their verdicts
 */

/* Caller's storage. All zero but the descriptor, which is -1: nothing is
 * logged. */
struct log {
	bool to_syslog;
	int transcript; /* a file, or (is_kept) a socket */
	bool is_kept;
	char mark[20];	   /* begins our lines in it; the jail cannot know it */
	const char *user;  /* borrowed */
	uint64_t cell_max; /* most first bytes of a cell's output */
	uint64_t cell_seen; /* bytes that the cell wrote */
	char *last; /* those that it wrote last, of more than cell_max */
	size_t last_size, last_at;
	int error; /* why the transcript has a gap */
	bool told; /* the gap was reported */
	bool lost; /* root's service takes no more */
	int64_t cpu_ms, peak_bytes;
	bool in_input; /* what was written last is of log_input() */
};

/* Create a transcript, USER-20261121-101500-4711.log for process 4711: a
 * descriptor, or -1 with e (ERR_CONFIG). A user's name that is a path is
 * refused. */
int log_create(const char *dir, const char *user, pid_t front, struct err *e);

/* Write bytes without control characters: an escape is "\x1b". 0, or -1 with
 * errno. */
int log_spell(int fd, const char *s, size_t n);

/* Begin, before the front end confines itself; `wanted`: with a transcript, if
 * log.transcript asks for one; `kept`: a socket that takes it (taken), or -1.
 * 0; -1 with e (ERR_CONFIG) if there must be a transcript and we cannot write
 * one.
 */
int log_open(struct log *l, const struct config *cfg, const char *user,
	bool wanted, int kept, struct err *e);

/* Log what began: "session 3 from 198.51.100.2". `number` 0: none; `from` may
 * be empty. */
void log_begin(struct log *l, const char *what, int number, const char *from);

/* Note what a cell, or the program, has used. `l` may be NULL. */
void log_usage(struct log *l, int64_t cpu_ms, int64_t peak_bytes);

/* Log who ended a session, and the reason, which may be empty. */
void log_end(const struct log *l, const char *who, const char *why);

/* End, with the exit status. */
void log_close(struct log *l, int status);

/* Log that a limit struck. */
void log_limit(const struct log *l, enum jail_limit limit);

/* Log `what` a client at `from` did: it came, went, or ended the session. */
void log_attach(const struct log *l, const char *what, const char *from);

/* Write into the transcript, in this order: a cell's number and source; its
 * output, without control characters, the first cell.output bytes, and the last
 * cell.tail; how many bytes between them we left out, and the verdict ("":
 * none). log_output() returns how many of the bytes are among the first.
 * log_cell_end(): -1 with e, once, when the transcript has a gap. */
void log_cell(struct log *l, uint32_t cell, const char *src, size_t n);
size_t log_output(struct log *l, const void *buf, size_t n);

/* Write into the transcript what a cell or a program was given, all of it; and
 * a `:` command. */
void log_input(struct log *l, const void *buf, size_t n);
void log_command(struct log *l, const char *line, size_t n);

/* -1 with e: root's service keeps the transcript no longer. A cell that would
 * not be written down must not run. `l` may be NULL. */
int log_is_lost(const struct log *l, struct err *e);

/* The end of a cell or a program. */
int log_cell_end(struct log *l, const char *verdict, struct err *e);

/* ---- drive.c ---- */

/* A front end's handler for an event, after drive.c has noted it. drive.c
 * closes the descriptors and frees the bytes that the handler does not take. */
typedef void drive_handler(void *arg, struct jail_event *ev);

/* One for each type of event. */
#define DRIVE_HANDLERS (JAIL_REPLY + 1)

/* Caller's storage; drive_forget() at the end. Only drive.c writes it. */
struct drive {
	struct jail *jail; /* borrowed, as the next four */
	const struct config *cfg;
	struct limits limits;	  /* of this jail: its own, or of `cfg` */
	struct log *log;	  /* not NULL where cells run */
	drive_handler *const *on; /* by type of event; NULL: no handler */
	void *arg;

	/* the jail */
	bool built;	       /* the jail is built */
	bool up;	       /* Python answers */
	bool gone;	       /* the warden has ended */
	bool over;	       /* the session is over */
	struct err err;	       /* why it is over; empty: see `limit` */
	enum jail_limit limit; /* the limit that ended it */

	/* the last cell or program */
	int64_t wall_ms;     /* time limit of its own; 0: cell.timeout */
	bool error_is_other; /* of verdict_about; its user sets it */
	bool running;	     /* JAIL_RUNNING has come */
	bool took;	     /* JAIL_TOOK has come */
	unsigned stops;	     /* how often drive_stop() was called */
	bool ended;
	int64_t ended_ms;	     /* now_ms() at its end */
	struct jail_done done;	     /* of a cell */
	struct jail_program program; /* of a program */

	struct jail_usage usage; /* when it was last told */
	bool usage_due;		 /* drive_ask_usage() was called since */

	/* the last call */
	enum jail_call call;
	bool asked, replied;	   /* it waits for its reply; it has it */
	bool ok;		   /* the warden has done it */
	struct err why;		   /* why not */
	struct jail_undone undone; /* CALL_UNDO */
	bool kept;		   /* CALL_RESET: it can be undone */
	struct jail_files files;   /* CALL_LIST; the taker zeroes this */
	int file;		   /* CALL_OPEN; fd_take(); -1: none */
};

/* `on` has DRIVE_HANDLERS rows. The jail may still be building. */
void drive_open(struct drive *d, struct jail *j, const struct config *cfg,
	struct log *log, drive_handler *const *on, void *arg);

/* Forget the files of the last call. */
void drive_forget(struct drive *d);

/* Take all events that have come. */
void drive_take(struct drive *d);

/* Wait until the jail is built, at most timeout_ms (-1: as long as it takes).
 * 0, also when the time is up, or -1 with e. */
int drive_wait_built(struct drive *d, int timeout_ms, struct err *e);

/* End the session, because the warden has not answered in time, and
 * drive_take() has found nothing. */
void drive_give_up(struct drive *d);

/* Run a cell, and log it. 0, or -1 with e. */
int drive_run(struct drive *d, const struct jail_run *run, struct err *e);

/* Stop the cell because a program asks for it. The first call has the warden
 * interrupt the cell, and kill it after cell.grace; the second has it killed at
 * once. Further calls do nothing: a warden that does not listen must not hold
 * us up. */
void drive_stop(struct drive *d);

/* True if no more output of the cell, which has ended, will come:
 * output_is_over() of `o`, whose tty last had bytes at heard_ms. If not, ask
 * again after drive_silence_ms(). */
bool drive_has_shown(
	const struct drive *d, const struct output *o, int64_t heard_ms);
int drive_silence_ms(const struct drive *d);

/* After the cell's end and its output: log the end, and write the verdict for
 * the person, or "". -1 with e if the transcript has a gap. */
int drive_end_cell(
	struct drive *d, char verdict[static VERDICT_MAX], struct err *e);

/* Have the warden tell what the session uses: `d->usage`, soon. */
void drive_ask_usage(struct drive *d);

/* Lower session.memory and home.size of a jail of a pool, before anything else
 * is asked of it: a call. */
void drive_lower(struct drive *d, const struct limits *l);

/* True if its memory is less than what is configured. */
bool drive_is_lowered(const struct drive *d);

/* Send a call by jail_send(). If that fails, the reply comes at once: an error.
 */
void drive_call(struct drive *d, enum jail_call call, int n, const char *path);

#endif
