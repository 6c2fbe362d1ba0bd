/* SPDX-License-Identifier: MIT */
/*
 * wire.h - messages between front end, warden, init and guest
 *
 * Every link is an AF_UNIX SEQPACKET socket pair: one message is one read.
 *
 * The guest speaks ASCII, one line a message, because it is Python and because
 * a line is easy to check. A payload follows the line's newline in the same
 * message. Numbers are decimal, at most 18 digits, without sign:
 *
 *   warden -> guest
 *     CELL no bytes crc32 mark kind
 *                                read that many bytes from the line, run them
 *                                (with a pipe) and report pictures there;
 *                                kind: silent prompt image
 *     PARK no                    (with a socket) leave a checkpoint behind
 *     TRIAL no                   (with a socket) leave a copy behind that will
 *                                answer a question; PARKED, ASLEEP and RESUME
 *                                are as for PARK
 *     ASK id kind bytes [alone] LF text
 *                                answer a question (enum jail_question); alone:
 *                                no copy can, so without what WANTS one
 *     RESUME                     (to a checkpoint, on its own socket) continue
 *     START bits at bytes        (SPEC_CELL, with a file, and what is not the
 *                                tty of 0, 1 and 2) run the program -e with
 *                                the arguments in the file; where bytes is not
 *                                0 (and with a pipe for the report) the
 *                                request that lies there
 *     LEASE memory cpus recursion LF NAME=VALUE NUL ...
 *                                before the first cell: it is somebody's now
 *
 *   guest -> warden
 *     READY pid version          no code of the user's has run yet
 *     TOOK no                    the source has arrived whole
 *     BAD no reason              it has not, and nothing was run
 *     DONE no how names threads status marked
 *                                how: ok raised syntax interrupted exit
 *                                leave: exit, and the cell was exit or
 *                                quit alone
 *     PARKED no ok|same|reason   (live guest) the copy was made, or not; same:
 *                                no variable has changed since the last one
 *     ASLEEP pid names threads   (checkpoint) it may be stopped from now on
 *     AWAKE pid names            (checkpoint, after RESUME) it is live now
 *     ANSWER id bytes LF text
 *     WANTS id bytes LF text     only a copy may answer that: code of the
 *                                user's would run, of this expression
 *
 * The guest is hostile: wire_guest_decode() accepts exactly these messages,
 * bounded. Any other is an error, and the guest is killed for it.
 *
 * The messages between warden and init, and between front end and warden, are
 * fixed structures. They are checked all the same.
 */
#ifndef JAIL_WIRE_WIRE_H
#define JAIL_WIRE_WIRE_H

#include "jail/base/err.h"
#include "jail/jail.h"

#include <stddef.h>
#include <stdint.h>

/* The last message of a program's warden, when the front end wants no more:
 * nothing of the program runs, and its places are free. As long as no event. */
#define WIRE_LEFT_BYTES 1

/* ---- guest ---- */

#define WIRE_GUEST_MAX (64 * 1024) /* longest message either way */
#define WIRE_ANSWER_MAX (60 * 1024)

enum wire_guest_type {
	GUEST_READY,
	GUEST_TOOK,
	GUEST_BAD,
	GUEST_DONE,
	GUEST_PARKED,
	GUEST_ASLEEP,
	GUEST_AWAKE,
	GUEST_ANSWER,
	GUEST_WANTS,
};

struct wire_guest {
	enum wire_guest_type type;
	uint32_t no;	  /* cell, checkpoint or question number */
	int32_t pid;	  /* READY, ASLEEP, AWAKE: in the jail's pids */
	uint32_t names;	  /* of the user, as the guest claims */
	uint32_t threads; /* beside the main one, as the guest claims */
	enum jail_how how;
	int leaves;	    /* HOW_EXIT: "leave" */
	int status;	    /* HOW_EXIT: 0..255 */
	int marked;	    /* DONE: the guest wrote the end mark */
	int ok, same;	    /* PARKED */
	char text[64];	    /* version, reason: printable ASCII */
	const char *answer; /* ANSWER, WANTS: points into the message */
	uint32_t answer_n;
};

/* Decode one message. 0, or -1. m->answer points into `buf`. */
int wire_guest_decode(struct wire_guest *m, const char *buf, size_t n);

/* Encode; each returns the length. `buf` must hold WIRE_GUEST_MAX bytes. */
size_t wire_cell_encode(char *buf, uint32_t no, size_t bytes, uint32_t crc,
	const char *mark, enum jail_cell kind);
size_t wire_park_encode(char *buf, uint32_t no, int trial);
size_t wire_ask_encode(char *buf, uint32_t id, enum jail_question q, int alone,
	const char *text, size_t n);
size_t wire_resume_encode(char *buf);
size_t wire_start_encode(char *buf, unsigned tty_bits, size_t at, size_t bytes);
/* `env`: variables, each with its NUL. */
size_t wire_lease_encode(
	char *buf, const struct limits *l, const char *env, size_t n);

/* CRC-32 as zlib and binascii compute it. */
uint32_t wire_crc32(const void *buf, size_t n);

/* ---- init ---- */

#define WIRE_PIDS_MAX 20
/* Most arguments of a program. */
#define WIRE_ARGS_MAX 4096
/* On this signal the driver writes the stack of every thread into its stack
 * file, from C, whatever Python is doing. A guest whose link is gone kills
 * itself with this signal. */
#define WIRE_STACK_SIGNAL 64

enum wire_init_type {
	/* warden -> init; in STOP, CONTINUE and CHECKPOINTS `pids` are the
	 * checkpoints that exist now: init reports their deaths */
	INIT_SPAWN, /* start Python; fds: enum in init.h */
	INIT_STOP,
	INIT_CONTINUE,
	INIT_PAUSE, /* the same for a moment; no process is killed for it */
	INIT_UNPAUSE,
	INIT_KILL,   /* stop, then kill all but `pids` */
	INIT_RESUME, /* continue pids[0] and make it the foreground group */
	INIT_CHECKPOINTS,
	INIT_DISCARD,	  /* kill `pids`: checkpoints given up */
	INIT_KILL_FORK,	  /* kill a copy that hangs, made since_ms or later */
	INIT_FOREGROUND,  /* make the live guest the foreground group again */
	INIT_WRITE_STACK, /* send pids[0] the stack signal */
	INIT_LEASE,	  /* fds: a sealed struct spec_lease */
	INIT_HOLD,	  /* start Python ahead for the next SPAWN (held.c) */
	INIT_CONFINE,	  /* pids[0], a copy that is asleep (trial.c) */
	/* init -> warden */
	INIT_BUILT,   /* fds: tty master, tty slave, line master, /tmp,
		       * /dev/shm, /proc */
	INIT_ERROR,   /* building or starting failed: `err` */
	INIT_SPAWNED, /* pids[0] */
	INIT_DIED,    /* pids[0] was reaped with `status` */
	INIT_STOPPED,
	INIT_KILLED,
	INIT_DISCARDED,
	INIT_LEASED,
	INIT_HELD,     /* or not, where that cannot be: `err` */
	INIT_CONFINED, /* or dead: `err` */
};

struct wire_init {
	enum wire_init_type type;
	int32_t npids;
	int32_t pids[WIRE_PIDS_MAX];
	int32_t status;		 /* as from waitpid() */
	int32_t seen;		 /* STOPPED: processes */
	int32_t killed;		 /* STOPPED, KILLED: processes */
	int32_t unseen;		 /* STOPPED: not all could be looked at */
	int32_t all_gone;	 /* KILLED; DIED: init is alone */
	int32_t no_proc;	 /* BUILT: the jail has no /proc */
	int32_t shared;		 /* BUILT: it shares inodes with the host */
	int32_t deaf;		 /* BUILT: guests cannot ask init */
	uint32_t seq;		 /* of a request, repeated in its answer */
	int64_t since_ms;	 /* KILL_FORK: as now_ms() */
	uint64_t ns_dev, ns_ino; /* BUILT: the jail's pid namespace */
	struct err err;
};

/* Check a message of `n` bytes from the other side. 0, or -1. */
int wire_init_check(const struct wire_init *m, size_t n);

/* ---- front end ---- */

enum wire_front_type {
	FRONT_RUN,	 /* a = cell, b = enum jail_cell, c = its time limit in
			  * ms, or 0; fds: sealed memfd with the source; a pipe
			  * for the report, or none */
	FRONT_INTERRUPT, /* a = seq of the request that it is for; b: it has to
			  * end, after cell.grace by a kill */
	FRONT_KILL,	 /* a: the same */
	FRONT_RESIZE,	 /* a = rows, b = columns */
	FRONT_TOUCH,
	FRONT_KEYS,
	FRONT_WAITS,
	FRONT_ASK, /* a = question; fd: sealed memfd with the text */
	FRONT_RESET,
	FRONT_UNDO,  /* a = how many */
	FRONT_LOWER, /* a = session.memory, b = home.size */
	FRONT_USAGE,
	FRONT_TELL_USAGE, /* JAIL_USAGE says it */
	FRONT_HOME_LIST,
	FRONT_HOME_OPEN,   /* a = how many */
	FRONT_HOME_CREATE, /* the same; b = permissions */
	FRONT_HOME_COMMIT, /* a = how many of `ends` */
	FRONT_HOME_MKDIR,  /* the same, and the paths that they are for */
	FRONT_HOME_ABORT,  /* a = token */
	FRONT_HOME_REMOVE,
	FRONT_START, /* a = milliseconds, b = merged; fd: see below */
	FRONT_SIDE,  /* a = number, which JAIL_SIDE repeats; b: with Python */
	FRONT_READY, /* nothing but a reply */
};

/* A request about several files is served in their order, up to the first that
 * fails. The reply has the descriptors of those before: a = how many they are,
 * and why there are not more. */
struct wire_front {
	enum wire_front_type type;
	uint32_t seq; /* counts requests; its answer repeats it */
	int64_t a, b, c;
	struct jail_end ends[JAIL_MANY_MAX];
	char path[JAIL_PATH_MAX]; /* NUL-terminated; several behind each other
				   */
};

int wire_front_check(const struct wire_front *m, size_t n);

/* The paths of a request about several files. How many there are, m->a or fewer
 * when the message has no more. */
int wire_front_paths(
	const struct wire_front *m, const char *paths[static JAIL_MANY_MAX]);

/* How many of `ends` a request has. */
int wire_front_ends(const struct wire_front *m);

/* How a program starts: arguments and variables, which INIT_SPAWN hands on to
 * init, or a source, which goes to the driver that waits for it. FRONT_START
 * brings it in a sealed memfd. */
struct wire_start {
	char *bytes;	   /* owned: all of the memfd */
	const char **argv; /* owned; each of the two ends with NULL */
	const char **env;
};

/* A sealed memfd for `s`, or -1 with e. */
int wire_start_seal(const struct jail_start *s, struct err *e);

/* Check that the descriptor is a memfd of bounded size that no process can
 * change any more. 0, or -1. */
int wire_start_check(int fd, struct err *e);

/* Where the source is in it; *n is 0 where it brings arguments. 0, or -1 with
 * e. */
int wire_start_find(int fd, size_t *at, size_t *n, struct err *e);

/* True if the first argument is -e: the driver runs the second. */
int wire_start_is_cell(int fd);

/* Read and check arguments and variables. 0, or -1 with e. wire_start_fini()
 * either way; all zero is nothing. */
int wire_start_read(struct wire_start *s, int fd, struct err *e);
void wire_start_fini(struct wire_start *s);

struct wire_reply {
	uint32_t seq;
	int ok;
	int64_t a, b;
	struct err err; /* also of the file that is not among `a` */
	struct jail_usage usage;
	struct jail_undone undone;
};

/*
 * Descriptors travel beside it. `nbytes` follow, in messages of at most so many
 * of them, each with a NUL behind (so that none has WIRE_LEFT_BYTES): what a
 * front end gets of its warden it must read. In a file it could keep that,
 * and ask for more, in memory that nobody counts as the front end's.
 */
#define WIRE_PIECE (32 * 1024)
#define WIRE_BYTES_MAX (16 << 20)
/* Of an event that answers nothing: keys, or stacks. The others have none. */
#define WIRE_SAID_MAX (4 * WIRE_PIECE)

struct wire_event {
	struct jail_event event;
	struct wire_reply reply;
};

int wire_event_check(const struct wire_event *m, size_t n, struct err *e);

#endif
