/* SPDX-License-Identifier: MIT */
/*
 * spawn.h - start Python in the jail
 */
#ifndef JAIL_INIT_SPAWN_H
#define JAIL_INIT_SPAWN_H

#include "held.h"

#include <sys/types.h>

struct apply_ctx;
struct cgroup;
struct err;
struct jail_spec;
struct plan;

#define SPAWN_ENV_MAX 128

struct spawn {
	const struct jail_spec *spec; /* borrowed */
	const struct plan *plan;      /* borrowed */
	const struct cgroup *cgroup;  /* borrowed; guests enter its freezer */
	int null;		      /* /dev/null */
	int oom_fd;		/* borrowed; init's oom_score_adj, or -1 */
	int oom_own, oom_guest; /* of init, and of a guest */
	const char *env[SPAWN_ENV_MAX];
	struct held held;
	char threads[4][40]; /* NAME=VALUE of the thread pools' sizes */
	char term[64];
	char packages[4112]; /* PYTHONPATH=… */
};

/* Prepare what every start needs: the environment, the jail's /dev/null. */
int spawn_prepare(struct spawn *s, const struct jail_spec *spec,
	const struct plan *plan, const struct apply_ctx *built,
	const struct cgroup *cgroup, struct err *e);

/* The same again, with what a claim has changed. Borrows both. */
int spawn_claim(struct spawn *s, const struct jail_spec *spec,
	const struct plan *plan, struct err *e);

/* What a claim changes of the environment of a Python that is up: NAME=VALUE,
 * each with its NUL, but what python.env has in its place. The length. */
#define SPAWN_CLAIM_MAX 256
size_t spawn_claim_env(const struct jail_spec *spec, char env[SPAWN_CLAIM_MAX]);

/* Start Python for the next spawn_start(), which lets it go (held.h). `proc_fd`
 * is the top of the jail's /proc, `tty` the terminal that it leads. 0, or -1
 * with e: spawn_start() then starts it. */
int spawn_hold(struct spawn *s, int tty, int proc_fd, struct err *e);

/* The descriptors of a start. SPEC_SESSION: the library, control socket and
 * stack file. SPEC_PROGRAM: the arguments (wire.h); stdio, where tty_bits may
 * put the terminal in its place. SPEC_CELL: the control socket instead of the
 * arguments, and the pipe for the driver's report. SPEC_EVAL: the control
 * socket. */
enum {
	SPAWN_PARTS,
	SPAWN_LIBRARY,
	SPAWN_CTL,
	SPAWN_STACK,
	SPAWN_ARGS = SPAWN_LIBRARY,
	SPAWN_STDIO = SPAWN_CTL,
	SPAWN_REPORT = SPAWN_STDIO + 3,
	SPAWN_FDS,
};

/* Fill fds[SPAWN_PARTS] and, with `library`, fds[SPAWN_LIBRARY] (else -1): the
 * driver, in sealed memory files. The caller closes both. 0, or -1 with e and
 * neither open. */
int spawn_open_driver(int *fds, int library, struct err *e);

/*
 * Start Python as the foreground group of the tty, on SPAWN_FDS descriptors
 * (borrowed). Returns its pid once exec has succeeded, or -1 with e.
 */
pid_t spawn_start(
	struct spawn *s, int tty, int line, const int *fds, struct err *e);

#endif
