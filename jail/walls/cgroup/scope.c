/* SPDX-License-Identifier: MIT */
/*
 * scope.c - a cgroup from the person's own systemd, delegated to them
 *
 * Runs in:   warden of a session that a person started, before anything else
 *            exists that it could move
 * Holds:     for the time of one question, a connection to the person's
 *            service manager; no later process has it
 * Trusts:    nothing the manager says: what counts is the cgroup in which the
 *            kernel shows this process afterwards
 * Leaves:    this process in a scope of its own, which ends with its last
 *            process
 */
#include "cgroup.h"

#include "impl.h"
#include "jail/base/dbus.h"
#include "jail/base/io.h"
#include "jail/base/systemd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A manager that does not answer by then is not waited for. */
#define ANSWER_MS 2000

/* What a refusal says is shown to a person. */
static int refused(const struct dbus_answer *a, struct err *e)
{
	char why[160];
	size_t i = 0, at = a->body + sizeof(uint32_t);

	while (at + i < a->n && i < sizeof(why) - 1 && a->b[at + i] >= ' ' &&
		a->b[at + i] < 0x7f) {
		why[i] = (char)a->b[at + i];
		i++;
	}
	why[i] = '\0';
	return err_set(e, "%s", i ? why : "no reason given");
}

static int is_in(const char *name)
{
	char own[8192], end[96];

	snprintf(end, sizeof(end), "/%s\n", name);
	return cgroup_dir_read(
		       AT_FDCWD, "/proc/self/cgroup", own, sizeof(own)) > 0 &&
	       strstr(own, end);
}

/* Whether the manager says that its work on the unit is over. */
static int is_end(const struct dbus_answer *a, const char *name)
{
	return a->type == DBUS_SIGNAL &&
	       memmem(a->b, a->n, "JobRemoved", strlen("JobRemoved")) &&
	       memmem(a->b, a->n, name, strlen(name));
}

/* Each message that comes is a reason to look where we are. */
static int await_move(struct dbus *d, const char *name, struct err *e)
{
	int64_t until = now_ms() + ANSWER_MS;
	struct dbus_answer a;
	int over = 0;

	while (!is_in(name)) {
		if (over)
			return err_set(e, "this process was not moved");
		if (dbus_await(d, &a, until) < 0)
			return errno == EACCES
				       ? err_set(e, "not let in")
				       : err_errno(e,
						 d->is_in
							 ? "wait for the answer"
							 : "wait to be let in");
		if (a.type == DBUS_ERROR)
			return refused(&a, e);
		over = is_end(&a, name);
	}
	return 0;
}

int cgroup_scope_enter(const char *runtime, struct err *e)
{
	char name[SYSTEMD_SCOPE_MAX];
	struct dbus d;
	int r = systemd_ask_scope(&d, runtime, getpid(), true, name, e);

	if (r == 0) {
		r = await_move(&d, name, e);
		dbus_close(&d);
	}
	return r < 0 ? err_wrap(e, "your systemd gave no cgroup") : r;
}
