/* SPDX-License-Identifier: MIT */
/*
 * confine.c - what the front end may still reach once a session runs
 *
 * Runs in:   front end, once, after the warden was forked
 * Trusts:    the configuration
 * Leaves:    a process in its sandbox (jail_sandbox_enter())
 *
 * An ordinary session may download wherever the person may write, so there
 * Landlock takes away only executing and device nodes. Root could write
 * everywhere, so a session of root may write only in the working directory, the
 * home directory, /tmp, and the targets of -d.
 */
#include "run.h"

#include "jail/base/err.h"
#include "jail/jail.h"
#include "repl/attach/attach.h"
#include "repl/config/config.h"
#include "repl/config/options.h"

#include <time.h>
#include <unistd.h>

/* Add a path. NULL and "" add nothing. A path for which there is no room stays
 * out of reach. */
static void allow_path(struct jail_sandbox *c, const char *path,
	enum jail_sandbox_access access)
{
	if (!path || !path[0] || c->n == JAIL_SANDBOX_PATHS)
		return;
	c->v[c->n].path = path;
	c->v[c->n++].access = access;
}

static void allow_list(struct jail_sandbox *sandbox, const struct strlist *dirs,
	enum jail_sandbox_access access)
{
	for (size_t i = 0; i < dirs->n; i++)
		allow_path(sandbox, dirs->items[i], access);
}

static void allow_ordinary(
	struct jail_sandbox *sandbox, const struct confine *c)
{
	if (geteuid() != 0) {
		allow_path(sandbox, "/", JAIL_SANDBOX_WRITE);
		return;
	}
	allow_path(sandbox, "/", JAIL_SANDBOX_READ);
	allow_path(sandbox, ".", JAIL_SANDBOX_WRITE);
	allow_path(sandbox, c->home, JAIL_SANDBOX_WRITE);
	allow_path(sandbox, "/tmp", JAIL_SANDBOX_WRITE);
	for (size_t i = 0; i < c->opt->ndownloads; i++)
		allow_path(
			sandbox, c->opt->downloads[i].to, JAIL_SANDBOX_WRITE);
}

static void allow_locked(struct jail_sandbox *sandbox, const struct confine *c)
{
	allow_list(sandbox, &c->cfg->upload_from, JAIL_SANDBOX_READ);
	allow_list(sandbox, &c->cfg->download_to, JAIL_SANDBOX_WRITE);
	allow_path(sandbox, c->cfg->skeleton, JAIL_SANDBOX_READ);
	/* The C library may still look these up. */
	allow_path(sandbox, "/etc/localtime", JAIL_SANDBOX_READ);
	allow_path(sandbox, "/usr/share/zoneinfo", JAIL_SANDBOX_READ);
	allow_path(sandbox, "/usr/lib/locale", JAIL_SANDBOX_READ);
	allow_path(sandbox, "/usr/share/locale", JAIL_SANDBOX_READ);
}

/* Allow what a session with a socket does: it removes the socket at its end,
 * and takes other terminals. */
static void allow_control(
	struct jail_sandbox *sandbox, const struct control *control)
{
	if (!control_is_open(control))
		return;
	allow_path(sandbox, control_place(control), JAIL_SANDBOX_REMOVE);
	sandbox->left = JAIL_SANDBOX_TERMINALS;
}

int confine_front(const struct confine *c, struct err *e)
{
	struct jail_sandbox sandbox = {.n = 0};

	tzset();
	if (c->cfg->locked)
		allow_locked(&sandbox, c);
	else
		allow_ordinary(&sandbox, c);
	allow_path(&sandbox, c->state_dir, JAIL_SANDBOX_WRITE);
	allow_path(&sandbox, "/dev/null", JAIL_SANDBOX_DEVICE);
	allow_control(&sandbox, c->control);
	return jail_sandbox_enter(&sandbox, e);
}
