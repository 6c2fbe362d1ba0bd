/* SPDX-License-Identifier: MIT */
/*
 * spec.h - everything a session is made from
 *
 * The front end fills it from the merged configuration and the command line.
 * The warden and init inherit it by fork. Where a jail was made ahead a lease
 * changes the copy of each (spec_take_lease()), before any code of a person's
 * runs; nothing else changes it. Strings are borrowed and must outlive the
 * session's start; lists end with NULL and may be NULL themselves.
 */
#ifndef JAIL_SPEC_H
#define JAIL_SPEC_H

#include <stdint.h>
#include <sys/types.h>

enum limits_background { BACKGROUND_STOP, BACKGROUND_KILL, BACKGROUND_RUN };
enum limits_checkpoint { CHECKPOINT_AUTO, CHECKPOINT_ALWAYS, CHECKPOINT_NEVER };
enum limits_network { NETWORK_NONE, NETWORK_LOOPBACK };

/* The limits of one session: a plain value without pointers. Times are
 * milliseconds, sizes bytes, CPU shares thousandths of a core. */
struct limits {
	/* [cell] */
	int64_t cell_wall_ms;  /* timeout */
	int64_t cell_grace_ms; /* grace: interrupt to kill */
	int64_t cell_cpu_ms;   /* cpu: all processes of the cell */
	int64_t output_bytes;  /* output: head shown, per cell */
	int64_t tail_bytes;    /* tail: shown after the cut */
	int64_t source_bytes;  /* source: longest cell */
	enum limits_background background;
	int undo; /* checkpoints kept */
	enum limits_checkpoint checkpoint;
	/* [session] */
	int64_t memory_bytes;
	int processes;
	int cpus_milli;
	int64_t idle_ms;
	int64_t lifetime_ms;
	int64_t until_s; /* the end, by the clock of the host; 0: none */
	int until_daily; /* that is session.until; 0: it is exam.end */
	int per_user;
	/* [home] */
	int64_t home_bytes;
	int home_files;
	/* [files] */
	int64_t max_file_bytes;
	int max_count;
	int transfer_count; /* the same for what a person transfers */
	int64_t files_ms;   /* timeout: to put files into an answer */
	/* [python] */
	int recursion;
	/* [jail] */
	enum limits_network network;
};

enum spec_mode {
	SPEC_SESSION, /* the driver, cells over a pty, checkpoints */
	SPEC_PROGRAM, /* one program, its own stdin, stdout and stderr */
	SPEC_CELL,    /* the driver, up before it knows its one cell and its
		       * stdio: a request, or, made ahead, a program `-e` */
};

/* A prewarmed jail is made before its user, or its program, is known. */
enum spec_prewarm {
	SPEC_WANTED, /* not prewarmed: somebody waits for it */
	SPEC_SOON,  /* prewarmed, and wanted in a moment: what may be done later
		     * is done later */
	SPEC_AHEAD, /* prewarmed: all that can be done before is done */
};

struct jail_spec;

/* Limits that are counted for spec_end. */
#define SPEC_STRUCK 16

/* The use of a session, counted when nothing of it was left. */
struct spec_end {
	uid_t id;		      /* its host id */
	int64_t cpu_ms;		      /* of all its processes; -1 unknown */
	int64_t peak_bytes;	      /* of memory; 0 unknown */
	uint32_t struck[SPEC_STRUCK]; /* how often each limit (jail.h) ended
				       * something, as the warden counted */
};

/* The settings that are still open when a jail is made ahead. Limits are no
 * looser than those that it was made with. */
struct spec_lease {
	struct limits limits;
	unsigned tty_bits; /* (below) */
	unsigned short rows, cols;
	char term[64]; /* already checked */
	pid_t front;   /* (below) */
};

/* Root makes the session for somebody else, and counts it. */
struct spec_made {
	int ahead; /* made for nobody yet: the socket over which it is leased,
		    * once (jail/prewarm.h); 0: it is for `person` */
	uid_t person;
	int most_of_person; /* sessions at a time; 0: this one is not counted */
	int any_of_person;  /* with the programs that are not counted */
	int most;	    /* of all persons together */
	int64_t memory_bytes; /* of all root's sessions together; 0: as the host
			       * has it */
	int64_t reserve_bytes; /* none while less of the host's is available */
	const char *below; /* (v2) the cgroup that sessions lie in, below the
			    * mount; NULL: one of our own */
	/* Called as root when the session has its host id. */
	void (*tell)(const struct jail_spec *spec, uid_t id);
	/* Called as root, in the janitor, when the session has ended, whatever
	 * ended it; not for one made ahead that was never leased. NULL: nobody
	 * wants to know. */
	void (*ended)(const struct jail_spec *spec, const struct spec_end *end);
	const char *accounting; /* where ended() writes; or NULL */
	/* Called as root, in the janitor, when no process of the session is
	 * left, with the directory that its home was (borrowed). Not for one
	 * made ahead. It must end: the janitor waits for it, and has no clock.
	 * NULL: nobody wants the home. */
	void (*left)(const struct jail_spec *spec, int home);
	const void *arg; /* for tell(), ended() and left() */
};

struct jail_spec {
	struct limits limits;
	enum spec_mode mode;
	enum spec_prewarm prewarm; /* the life of one begins with the first
				    * request */
	int64_t asked_wall_ms; /* SPEC_CELL: jail_start_program() may ask for so
				* much; 0: for no more than cell_wall_ms */
	int unbuffered;	       /* SPEC_CELL: Python's -u */
	int side; /* SPEC_PROGRAM: on the home of a session that goes on */
	int asks_systemd; /* for a cgroup, where none is delegated yet */

	const char *python;	     /* interpreter, absolute host path */
	const char *const *packages; /* read-only directories, or NULL */
	const char *const *expose;   /* host paths shown read-only */
	const char *const *env;	     /* NAME=VALUE for Python, beside our own */
	const char *const *require;  /* [jail] require, words */
	const char *term;	     /* TERM inside, already checked */
	uid_t uid_lo, uid_hi;	     /* outside ids when started by root */
	unsigned short rows, cols;   /* the terminal at the start; 0 unknown */

	/* SPEC_PROGRAM, SPEC_CELL: bits 0, 1, 2 for each of stdin, stdout,
	 * stderr that is a terminal. */
	unsigned tty_bits;

	pid_t front;  /* the front end, where it is not the warden's parent and
		       * has a pid here; or 0 */
	pid_t parent; /* the warden's parent then, even when it is dead; or 0 */
	const struct spec_made *made; /* or NULL: for whoever started us */
	int shared; /* the front end serves several sessions at a time: what it
		     * works is not charged to any of them */
};

/* Change a spec as a lease says, which it borrows. */
static inline void spec_take_lease(
	struct jail_spec *spec, const struct spec_lease *c)
{
	spec->prewarm = SPEC_WANTED;
	spec->limits = c->limits;
	spec->tty_bits = c->tty_bits;
	spec->rows = c->rows;
	spec->cols = c->cols;
	spec->term = c->term;
	spec->front = c->front;
}

/* A session that a front end had made ahead may be lowered, once, before any
 * code of a person's runs in it (jail_lower()). */
static inline int spec_may_lower(const struct jail_spec *spec)
{
	return spec->mode == SPEC_SESSION && spec->prewarm != SPEC_WANTED &&
	       !spec->made;
}

#endif
