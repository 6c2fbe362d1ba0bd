/* SPDX-License-Identifier: MIT */
/*
 * beside.h - programs beside the session: other jails on the same home
 *
 * Each has a warden of its own, a child of the session's, and so a pid
 * namespace and clocks of its own. Memory and processes are the session's.
 */
#ifndef JAIL_WARDEN_BESIDE_H
#define JAIL_WARDEN_BESIDE_H

#include "jail/spec.h"

#include <stdint.h>
#include <sys/types.h>

struct err;

/* Most programs beside a session at a time. */
#define BESIDE_MAX 4

/* What each jail of the session uses, as its own warden has measured it. The
 * page is shared by all of them; each writes its own place. */
struct beside_board {
	int64_t bytes[BESIDE_MAX + 1]; /* without the home, where no cgroup
					* counts; the last is the session's */
	int64_t cpu_ms[BESIDE_MAX + 1];
};
#define BESIDE_SESSION BESIDE_MAX

/* Serve a program on the socket `front` (taken), from the place `at`. */
typedef void beside_run(void *arg, int front, int at);

/* Only beside.c writes it. */
struct besides {
	pid_t pids[BESIDE_MAX];	    /* 0: the place is free */
	int64_t gone_ms;	    /* CPU time of those that ended */
	struct beside_board *board; /* NULL: there has been none yet */
	int at;			    /* our place on it */
	beside_run *run;
	void *arg;
};

/* The session's: children `run`. */
void beside_init(struct besides *b, beside_run *run, void *arg);

/* In such a child: from now on its place alone is ours. */
void beside_become(struct besides *b, const struct besides *of, int at);

/* Fork a child that serves one program. The socket to it, or -1 with e. */
int beside_start(struct besides *b, struct err *e);

/* How many there are now. */
int beside_count(struct besides *b);

/* End them all. */
void beside_end(struct besides *b);

/* What our own jail uses. */
void beside_note(struct besides *b, int64_t bytes, int64_t cpu_ms);

/* What all others use; the CPU time counts those that ended. */
int64_t beside_bytes(const struct besides *b);
int64_t beside_cpu_ms(const struct besides *b);

/* Make the spec of such a program of the session's. */
void beside_make_spec(struct jail_spec *spec);

#endif
