/* SPDX-License-Identifier: MIT */
/*
 * cgroup_world.h - a cgroup for a test, and processes to put into it
 *
 * A real cgroup where this host has one (root, v1 or v2 with controllers), in
 * directories of the test's own.
 */
#ifndef TESTS_CGROUP_WORLD_H
#define TESTS_CGROUP_WORLD_H

#include "forked.h"
#include "tests/lib/defaults.h"

#include "jail/base/io.h"
#include "jail/walls/cgroup/cgroup.h"
#include "jail/walls/cgroup/impl.h"
#include "jail/walls/walls.h"

#include <fcntl.h>

#define MIB (1024 * 1024)
/* A generous deadline; it measures nothing. */
#define SOON_MS 10000

struct world {
	struct cgroup_caps caps;
	struct limits limits;
	struct cgroup cg;
	/* No other run of the tests has this name, and the next session clears
	 * the remains of a run that was killed. */
	char name[32];
};

static inline int world_make(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	snprintf(w->name, sizeof(w->name), "pid-%d", (int)getpid());
	cgroup_probe(&w->caps, 0, 0, NULL);
	w->limits = default_limits();
	w->limits.memory_bytes = 64 * MIB;
	w->limits.processes = 10;
	w->limits.cpus_milli = 500;
	*state = w;
	return 0;
}

static inline int world_end(void **state)
{
	struct world *w = *state;

	if (w->cg.kind != CGROUP_NONE) {
		cgroup_close(&w->cg);
		cgroup_remove(&w->cg, SOON_MS, NULL);
	}
	free(w);
	return 0;
}

#define NEED(w, ...)                                                           \
	do {                                                                   \
		const enum cgroup_controller need[] = {__VA_ARGS__};           \
		for (size_t i_ = 0; i_ < sizeof(need) / sizeof(need[0]); i_++) \
			if (!((w)->caps.usable & 1u << need[i_]))              \
				SKIP("no %s cgroup may be made here (%s)",     \
					cgroup_controllers[need[i_]],          \
					(w)->caps.why);                        \
	} while (0)

static inline int open_named(
	struct world *w, struct cgroup *cg, const char *name, struct err *e)
{
	if (cgroup_place(cg, &w->caps, name, e) < 0)
		return -1;
	return cgroup_open(cg, &w->caps, &w->limits, e);
}

static inline void open_ok(struct world *w)
{
	struct err e;

	if (open_named(w, &w->cg, w->name, &e) < 0)
		fail_msg("%s", e.msg);
}

/* A child that waits for a byte, then runs fn and reports its result. */
struct child {
	pid_t pid;
	int go, out;
};

static inline struct child child_start(int (*fn)(void))
{
	int go[2], out[2];
	struct child c;

	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	c.pid = fork();
	if (c.pid == 0) {
		const int keep[] = {0, 1, 2, go[0], out[1]};
		char r;

		forked_signals();
		/* An inherited descriptor would hold the cgroup. */
		if (ident_close_fds(keep, 5, NULL) < 0)
			_exit(97);
		if (read(go[0], &r, 1) != 1)
			_exit(99);
		r = (char)fn();
		if (write(out[1], &r, 1) != 1)
			_exit(98);
		for (;;)
			pause();
	}
	close(go[0]);
	close(out[1]);
	c.go = go[1];
	c.out = out[0];
	return c;
}

static inline void child_go(const struct child *c)
{
	assert_int_equal(write(c->go, "x", 1), 1);
}

/* The report of the child, or -1 if it died before. */
static inline int child_result(const struct child *c)
{
	unsigned char r;

	return read(c->out, &r, 1) == 1 ? r : -1;
}

/* Kill the child unless it has ended: its wait status. */
static inline int child_end(const struct child *c)
{
	int status;

	close(c->go);
	close(c->out);
	kill(c->pid, SIGKILL);
	waitpid(c->pid, &status, 0);
	return status;
}

static inline void move_in(const struct cgroup *cg, pid_t pid)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", (int)pid);
	for (int i = 0; i < CGROUP_CONTROLLERS; i++)
		if (cg->enter[i] >= 0)
			assert_int_equal(
				cgroup_dir_rewrite(cg->enter[i], text), 0);
}

static inline void start_inside(
	struct world *w, struct child *c, int (*fn)(void))
{
	*c = child_start(fn);
	move_in(&w->cg, c->pid);
	child_go(c);
}

/* The count of its tasks; to be opened before privilege is dropped. */
static inline int pids_open(const struct cgroup *cg)
{
	return openat(cg->held[cg->at[CGROUP_PIDS]],
		CGROUP_JAIL "/pids.current", O_RDONLY | O_CLOEXEC);
}

static inline int pids_read(int fd)
{
	char text[32];

	return cgroup_dir_reread(fd, text, sizeof(text)) > 0 ? atoi(text) : -1;
}

static inline int do_nothing(void)
{
	return 1;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_make, world_end)

#endif
