/* SPDX-License-Identifier: MIT */
/*
 * confine.c - what the front end may still reach once a session runs
 *
 * Runs in:   front end, once, after the warden was forked
 * Trusts:    the configuration
 * Leaves:    a process in its cage (jail_cage_close())
 *
 * An ordinary session may download wherever the person may write, so there
 * Landlock takes away only executing and device nodes. Root may write
 * everywhere: root keeps the working directory, the home directory, /tmp, and
 * the targets of -d.
 */
#include "run.h"

#include "jail/base/err.h"
#include "jail/jail.h"
#include "repl/attach/attach.h"
#include "repl/config/config.h"
#include "repl/config/options.h"

#include <time.h>
#include <unistd.h>

/* Add a path. NULL and "" are nothing. What does not fit stays out of reach. */
static void allow(
	struct jail_cage *c, const char *path, enum jail_cage_access access)
{
	if (!path || !path[0] || c->n == JAIL_CAGE_PATHS)
		return;
	c->v[c->n].path = path;
	c->v[c->n++].access = access;
}

static void allow_list(struct jail_cage *cage, const struct strlist *dirs,
	enum jail_cage_access access)
{
	for (size_t i = 0; i < dirs->n; i++)
		allow(cage, dirs->items[i], access);
}

static void allow_ordinary(struct jail_cage *cage, const struct confine *c)
{
	if (geteuid() != 0) {
		allow(cage, "/", JAIL_CAGE_WRITE);
		return;
	}
	allow(cage, "/", JAIL_CAGE_READ);
	allow(cage, ".", JAIL_CAGE_WRITE);
	allow(cage, c->home, JAIL_CAGE_WRITE);
	allow(cage, "/tmp", JAIL_CAGE_WRITE);
	for (size_t i = 0; i < c->opt->ndownloads; i++)
		allow(cage, c->opt->downloads[i].to, JAIL_CAGE_WRITE);
}

static void allow_locked(struct jail_cage *cage, const struct confine *c)
{
	allow_list(cage, &c->cfg->upload_from, JAIL_CAGE_READ);
	allow_list(cage, &c->cfg->download_to, JAIL_CAGE_WRITE);
	allow(cage, c->cfg->skeleton, JAIL_CAGE_READ);
	/* The C library may still look these up. */
	allow(cage, "/etc/localtime", JAIL_CAGE_READ);
	allow(cage, "/usr/share/zoneinfo", JAIL_CAGE_READ);
	allow(cage, "/usr/lib/locale", JAIL_CAGE_READ);
	allow(cage, "/usr/share/locale", JAIL_CAGE_READ);
}

/* A session's own socket is removed at its end. */
static void allow_door(struct jail_cage *cage, const struct door *door)
{
	if (!door_is_open(door))
		return;
	allow(cage, door_place(door), JAIL_CAGE_REMOVE);
	cage->left = JAIL_CAGE_TERMINALS;
}

int confine_front(const struct confine *c, struct err *e)
{
	struct jail_cage cage = {.n = 0};

	tzset();
	if (c->cfg->locked)
		allow_locked(&cage, c);
	else
		allow_ordinary(&cage, c);
	allow(&cage, c->state_dir, JAIL_CAGE_WRITE);
	allow(&cage, "/dev/null", JAIL_CAGE_DEVICE);
	allow_door(&cage, c->door);
	return jail_cage_close(&cage, e);
}
