/* SPDX-License-Identifier: MIT */
/*
 * spawn.c - start Python in the jail
 *
 * Runs in:   init, and its child up to exec
 * Trusts:    the spec and the plan
 * Leaves:    a guest that holds exactly its stdio and, under the driver, the
 *            high descriptors that boot.py lists
 *
 * After vfork there is no recovery: the child reports what failed and exits.
 */
#include "jail/init/init.h"

#include "guest.h"
#include "jail/apply/apply.h"
#include "jail/base/array.h"
#include "jail/base/io.h"
#include "jail/plan/plan.h"
#include "jail/spec.h"
#include "jail/walls/cgroup/cgroup.h"
#include "jail/wire/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* Where the driver's own descriptors begin, away from code that closes or
 * expects small numbers; lower where RLIMIT_NOFILE is. */
#define HIGH_FD 500

static const char *const env_fixed[] = {
	"PATH=/usr/local/bin:/usr/bin:/bin",
	"HOME=/home",
	"USER=user",
	"LOGNAME=user",
	"SHELL=/bin/sh",
	"LANG=C.UTF-8",
	"LC_ALL=C.UTF-8",
	"TMPDIR=/tmp",
	"XDG_CACHE_HOME=/tmp/cache",
	"LESS=FR", /* less ends by itself where the text fits on the screen */
	"LESSHISTFILE=-",
	"MPLBACKEND=Agg",
	"MPLCONFIGDIR=/tmp/matplotlib",
	"PYTHONDONTWRITEBYTECODE=1",
};

/* Each is told how many cores the session has. */
static const char *const thread_pools[] = {
	"OMP_NUM_THREADS",
	"OPENBLAS_NUM_THREADS",
	"MKL_NUM_THREADS",
	"NUMEXPR_NUM_THREADS",
};

/* Where the variable of NAME=VALUE is, or the place behind all. */
static int env_place(const struct spawn *s, const char *text)
{
	size_t len = strcspn(text, "=") + 1;
	int at = 0;

	while (s->env[at] && strncmp(s->env[at], text, len) != 0)
		at++;
	return at;
}

/* Set a variable, NAME=VALUE (borrowed), in place of one of the same name. */
static int env_set(struct spawn *s, const char *text, struct err *e)
{
	int at = env_place(s, text);

	if (at >= SPAWN_ENV_MAX - 1)
		return err_set(e, "python.env: too many variables");
	s->env[at] = text;
	return 0;
}

/* The configuration has checked that they fit. */
static void write_packages(char *buf, size_t size, const char *const *packages)
{
	size_t n = (size_t)snprintf(buf, size, "PYTHONPATH=");

	for (; packages && *packages && n < size; packages++)
		n += (size_t)snprintf(buf + n, size - n, "%s%s", *packages,
			packages[1] ? ":" : "");
}

static int env_prepare(struct spawn *s, struct err *e)
{
	const struct jail_spec *spec = s->spec;
	int cores = (spec->limits.cpus_milli + 999) / 1000;

	for (size_t i = 0; i < COUNT(env_fixed); i++)
		env_set(s, env_fixed[i], NULL);
	for (size_t i = 0; i < COUNT(thread_pools); i++) {
		snprintf(s->threads[i], sizeof(s->threads[i]), "%s=%d",
			thread_pools[i], cores > 0 ? cores : 1);
		env_set(s, s->threads[i], NULL);
	}
	snprintf(s->term, sizeof(s->term), "TERM=%.50s",
		spec->term ? spec->term : "dumb");
	env_set(s, s->term, NULL);
	write_packages(s->packages, sizeof(s->packages), spec->packages);
	if (spec->packages)
		env_set(s, s->packages, NULL);
	for (int i = 0; spec->env && spec->env[i]; i++)
		if (env_set(s, spec->env[i], e) < 0)
			return -1;
	return 0;
}

static int oom_read(struct spawn *s, struct err *e)
{
	char text[16] = "";

	if (s->oom_fd >= 0 && pread(s->oom_fd, text, sizeof(text) - 1, 0) <= 0)
		return err_errno(e, "read oom_score_adj");
	s->oom_own = atoi(text);
	return 0;
}

/* A child inherits the score of its parent. A score that was raised may be
 * lowered again to where it was. */
static int oom_write(const struct spawn *s, int score, struct err *e)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%d", score);

	if (s->oom_fd >= 0 && pwrite(s->oom_fd, text, (size_t)n, 0) != n)
		return err_errno(e, "write oom_score_adj");
	return 0;
}

int spawn_prepare(struct spawn *s, const struct jail_spec *spec,
	const struct plan *plan, const struct apply_ctx *built,
	const struct cgroup *cgroup, struct err *e)
{
	*s = (struct spawn){.spec = spec,
		.plan = plan,
		.cgroup = cgroup,
		.null = -1,
		.oom_fd = built->oom_fd,
		.oom_guest = built->guest_oom};
	if (env_prepare(s, e) < 0 || oom_read(s, e) < 0)
		return -1;
	s->null = open("/dev/null", O_RDWR | O_CLOEXEC | O_NOCTTY);
	if (s->null < 0)
		return err_errno(e, "open the jail's /dev/null");
	return 0;
}

/* Lower the limits of a process that was started under the old plan: 0, or -1.
 * *same: nothing else differs. */
static int lower_rlimits(
	const struct spawn *s, pid_t pid, const struct plan *plan, int *same)
{
	const struct plan *was = s->plan;

	*same = plan->n == was->n;
	for (size_t i = 0; *same && i < plan->n; i++)
		*same = plan->ops[i].type == was->ops[i].type;
	for (size_t i = 0; i < plan->n && i < was->n; i++) {
		const struct plan_op *op = &plan->ops[i];
		const struct rlimit r = {
			(rlim_t)op->number, (rlim_t)op->number};

		if (op->number == was->ops[i].number)
			continue;
		if (op->type != PLAN_RLIMIT)
			*same = 0;
		else if (prlimit(pid, op->which, &r, NULL) < 0)
			return -1;
	}
	return 0;
}

int spawn_lease(struct spawn *s, const struct jail_spec *spec,
	const struct plan *plan, pid_t live, struct err *e)
{
	int same = 0;

	if (s->held.t.pid &&
		(lower_rlimits(s, s->held.t.pid, plan, &same) < 0 || !same))
		held_drop(&s->held);
	if (spec->mode != SPEC_PROGRAM && live > 0 &&
		lower_rlimits(s, live, plan, &same) < 0)
		return err_errno(e, "lower the limits of Python");
	s->spec = spec;
	s->plan = plan;
	memset(s->env, 0, sizeof(s->env));
	return env_prepare(s, e);
}

size_t spawn_lease_env(const struct jail_spec *spec, char env[SPAWN_LEASE_MAX])
{
	struct spawn s = {.spec = spec};
	const char *const changed[] = {
		s.threads[0], s.threads[1], s.threads[2], s.threads[3], s.term};
	size_t n = 0;

	_Static_assert(sizeof(s.threads) + sizeof(s.term) <= SPAWN_LEASE_MAX,
		"all of them fit");
	env_prepare(&s, NULL);
	for (size_t i = 0; i < COUNT(changed); i++) {
		size_t len = strlen(changed[i]) + 1;

		if (s.env[env_place(&s, changed[i])] != changed[i])
			continue;
		memcpy(env + n, changed[i], len);
		n += len;
	}
	return n;
}

/* A jail that runs one cell has a quarter of the driver: each page that is
 * copied into one is allocated, counted and freed again. */
int spawn_open_driver(int *fds, int session, struct err *e)
{
	fds[SPAWN_LIBRARY] = -1;
	fds[SPAWN_PARTS] = io_sealed_memfd("cellblock-driver",
		session ? guest_parts : guest_cell,
		session ? guest_parts_len : guest_cell_len);
	if (fds[SPAWN_PARTS] >= 0 && session)
		fds[SPAWN_LIBRARY] = io_sealed_memfd(
			"cellblock-library", guest_copy_so, guest_copy_so_len);
	if (fds[SPAWN_PARTS] >= 0 && (fds[SPAWN_LIBRARY] >= 0 || !session))
		return 0;
	err_errno(e, "hold the driver in memory");
	if (e && e->code == EFBIG)
		err_hint(e, "allow larger files:  ulimit -f unlimited");
	fd_drop(&fds[SPAWN_PARTS]);
	return -1;
}

struct argv {
	const char *v[WIRE_ARGS_MAX + 16];
	char numbers[9][24];
	int n, nnumbers;
	int driver; /* Python runs under it */
};

static void argv_number(struct argv *a, int64_t value)
{
	char *text = a->numbers[a->nnumbers++];

	snprintf(text, sizeof(a->numbers[0]), "%" PRId64, value);
	a->v[a->n++] = text;
}

/* Pass a descriptor to the driver: a duplicate at a high number. */
static int argv_fd(struct argv *a, int fd, struct err *e)
{
	struct rlimit r = {.rlim_cur = 2 * HIGH_FD};
	int high;

	getrlimit(RLIMIT_NOFILE, &r);
	high = fcntl(fd, F_DUPFD,
		r.rlim_cur < 2 * HIGH_FD ? (int)r.rlim_cur / 2 : HIGH_FD);
	if (high < 0)
		return err_errno(e, "duplicate a descriptor for Python");
	argv_number(a, high);
	return 0;
}

/* Python under the driver, which boot.py tells apart by what follows. */
static int argv_driver(
	const struct spawn *s, struct argv *a, int parts, struct err *e)
{
	a->driver = 1;
	a->v[a->n++] = "-I";
	a->v[a->n++] = "-S";
	a->v[a->n++] = "-c";
	a->v[a->n++] = (const char *)guest_load;
	if (argv_fd(a, parts, e) < 0)
		return -1;
	argv_number(a, s->spec->limits.memory_bytes);
	argv_number(a, s->spec->limits.cpus_milli);
	return 0;
}

static int stdio_set(const int *fds, struct err *e)
{
	for (int i = 0; i < 3; i++)
		if (dup2(fds[i], i) < 0)
			return err_errno(e, "set up stdio");
	return 0;
}

static int child_session(const struct spawn *s, int tty, int line,
	const int *fds, struct argv *a, struct err *e)
{
	const int own[] = {fds[SPAWN_CTL], line, tty, fds[SPAWN_LIBRARY],
		fds[SPAWN_STACK]};

	if (argv_driver(s, a, fds[SPAWN_PARTS], e) < 0)
		return -1;
	for (size_t i = 0; i < COUNT(own); i++)
		if (argv_fd(a, own[i], e) < 0)
			return -1;
	argv_number(a, s->spec->limits.recursion);
	return stdio_set((const int[]){tty, tty, tty}, e);
}

/* Its stdio comes with what it runs. Until then it has a pipe: Python finds out
 * whether it can seek there, once, and will have a pipe or the terminal. */
static int child_cell(const struct spawn *s, int tty, const int *fds,
	struct argv *a, struct err *e)
{
	int p[2];

	if (s->spec->unbuffered)
		a->v[a->n++] = "-u";
	if (argv_driver(s, a, fds[SPAWN_PARTS], e) < 0)
		return -1;
	a->v[a->n++] = "-w";
	if (argv_fd(a, fds[SPAWN_ARGS], e) < 0 || argv_fd(a, tty, e) < 0)
		return -1;
	if (pipe2(p, O_CLOEXEC) < 0)
		return err_errno(e, "create a pipe");
	return stdio_set((const int[]){p[0], p[1], p[1]}, e);
}

/* Find descriptors 0 to 2 of a program. */
static void program_stdio(
	const struct spawn *s, int tty, const int *fds, int stdio[3])
{
	for (int i = 0; i < 3; i++) {
		int from = s->spec->tty_bits & (1u << i) ? tty
							 : fds[SPAWN_STDIO + i];

		stdio[i] = from < 0 ? s->null : from;
	}
}

static int child_program(const struct spawn *s, int tty, const int *fds,
	const struct wire_start *start, struct argv *a, struct err *e)
{
	const char **args = start->argv;
	int stdio[3];

	program_stdio(s, tty, fds, stdio);
	if (args[0] && !strcmp(args[0], "-e"))
		if (argv_driver(s, a, fds[SPAWN_PARTS], e) < 0)
			return -1;
	for (int i = 0; args[i]; i++)
		a->v[a->n++] = args[i];
	return stdio_set(stdio, e);
}

/* A program expects the default actions. The warden has reset what its caller
 * ignored; these three are ignored by the warden and init. A session ignores
 * SIGINT: the driver must not be interrupted before it is set up. Where the
 * driver runs one cell, the keys that end it wait until the cell begins. */
static void signals_reset(int session, int cell)
{
	sigset_t mask;

	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	signal(SIGTTOU, SIG_DFL);
	if (session)
		signal(SIGINT, SIG_IGN);
	sigemptyset(&mask);
	if (cell) {
		sigaddset(&mask, SIGINT);
		sigaddset(&mask, SIGQUIT);
	}
	sigprocmask(SIG_SETMASK, &mask, NULL);
}

static int child_argv(const struct spawn *s, int tty, int line, const int *fds,
	const struct wire_start *program, struct argv *a, struct err *e)
{
	switch (s->spec->mode) {
	case SPEC_SESSION:
		return child_session(s, tty, line, fds, a, e);
	case SPEC_PROGRAM:
		return child_program(s, tty, fds, program, a, e);
	case SPEC_CELL:
		return child_cell(s, tty, fds, a, e);
	}
	return -1;
}

/* The inputs of a child that is started. */
struct start {
	int tty, line;
	const int *fds;
	const struct wire_start *program;
	int hold; /* a socket for held_begin(), or -1 */
};

static int child_exec(
	const struct spawn *s, const struct start *st, struct err *e)
{
	struct apply_ctx ctx = {.home_fd = -1, .pts_fd = -1, .proc_fd = -1};
	struct argv a = {.v = {s->spec->python}, .n = 1};

	if (cgroup_enter(s->cgroup, 1, e) < 0)
		return -1;
	setpgid(0, 0);
	if (signal(SIGTTOU, SIG_IGN) == SIG_ERR)
		return err_errno(e, "ignore SIGTTOU");
	if (tcsetpgrp(st->tty, getpid()) < 0)
		return err_errno(e, "become the foreground group of the tty");
	if ((st->hold >= 0 ? held_begin(st->hold, e)
			   : child_argv(s, st->tty, st->line, st->fds,
				     st->program, &a, e)) < 0)
		return -1;
	a.v[a.n] = NULL;
	signals_reset(s->spec->mode == SPEC_SESSION,
		a.driver && s->spec->mode != SPEC_SESSION);
	if (apply_stage(s->plan, PLAN_GUEST, &ctx, e) < 0)
		return -1;
	execve(s->spec->python, (char *const *)a.v, (char *const *)s->env);
	return err_errno(e, "start %s", s->spec->python);
}

/*
 * After vfork the child runs in init's memory, and init waits, until it execs.
 * That is quick, and the child's error arrives in `e`.
 */
static pid_t start_child(
	const struct spawn *s, const struct start *st, struct err *e)
{
	volatile int failed = 0;
	pid_t pid = vfork();

	if (pid == 0) {
		child_exec(s, st, e);
		failed = 1;
		_exit(127);
	}
	if (pid < 0)
		return err_errno(e, "start Python");
	if (!failed)
		return pid;
	waitpid(pid, NULL, 0);
	return -1;
}

/* Add the variables that come with the arguments and are not set already.
 * *before: how many there were. */
static int env_add(
	struct spawn *s, const struct wire_start *w, int *before, struct err *e)
{
	*before = env_place(s, "");
	for (int i = 0; w->env[i]; i++)
		if (!s->env[env_place(s, w->env[i])] &&
			env_set(s, w->env[i], e) < 0)
			return -1;
	return 0;
}

static pid_t start_guest(struct spawn *s, const struct start *st, struct err *e)
{
	pid_t pid;

	if (oom_write(s, s->oom_guest, e) < 0)
		return -1;
	pid = start_child(s, st, e);
	if (oom_write(s, s->oom_own, pid < 0 ? NULL : e) == 0 || pid < 0)
		return pid;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return -1;
}

int spawn_hold(struct spawn *s, int tty, int proc_fd, struct err *e)
{
	struct start st = {.tty = tty};
	int pair[2];
	pid_t pid;

	if (s->held.t.pid || s->spec->mode != SPEC_PROGRAM)
		return err_set(e, "hold Python: malformed request");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(e, "hold Python");
	st.hold = pair[1];
	pid = start_guest(s, &st, e);
	close(pair[1]);
	if (pid < 0)
		close(pair[0]);
	return pid < 0 ? -1 : held_take(&s->held, pid, proc_fd, pair[0], e);
}

/* Let the one go that is held, if it can be what is asked for: its linker has
 * not seen variables of the start's. */
static pid_t release_held(struct spawn *s, const struct start *st)
{
	struct argv a = {.v = {s->spec->python}, .n = 1};
	int stdio[3];

	if (!s->held.t.pid)
		return -1;
	if (st->program->env[0]) {
		held_drop(&s->held);
		return -1;
	}
	program_stdio(s, st->tty, st->fds, stdio);
	for (int i = 0; st->program->argv[i]; i++)
		a.v[a.n++] = st->program->argv[i];
	return held_release(&s->held, a.v, s->env, stdio);
}

pid_t spawn_start(
	struct spawn *s, int tty, int line, const int *fds, struct err *e)
{
	struct wire_start program = {0};
	const struct start st = {tty, line, fds, &program, -1};
	int before = SPAWN_ENV_MAX - 1;
	pid_t pid = -1;

	if (s->spec->mode != SPEC_PROGRAM)
		return start_guest(s, &st, e);
	if (wire_start_read(&program, fds[SPAWN_ARGS], e) == 0 &&
		env_add(s, &program, &before, e) == 0) {
		pid = release_held(s, &st);
		if (pid < 0)
			pid = start_guest(s, &st, e);
	}
	s->env[before] = NULL;
	wire_start_fini(&program);
	return pid;
}
