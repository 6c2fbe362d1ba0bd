/* SPDX-License-Identifier: MIT */
/*
 * confine.c - what the front end may still reach once a session runs
 *
 * Runs in:   front end, once, after the warden was forked
 * Trusts:    the configuration
 * Leaves:    a process in its cage (jail/cage.h)
 *
 * An ordinary session may download wherever the person may write, so there
 * Landlock takes away only executing and device nodes. Root may write
 * everywhere: root keeps the working directory, the home directory, /tmp, and
 * the targets of -d.
 */
#include "confine.h"

#include "jail/base/err.h"
#include "jail/cage.h"
#include "repl/config/config.h"
#include "repl/config/options.h"

#include <time.h>
#include <unistd.h>

static void allow_list(
	struct cage *cage, const struct strlist *dirs, enum cage_access access)
{
	for (size_t i = 0; i < dirs->n; i++)
		cage_allow(cage, dirs->items[i], access);
}

static void allow_ordinary(struct cage *cage, const struct confine *c)
{
	if (geteuid() != 0) {
		cage_allow(cage, "/", CAGE_WRITE);
		return;
	}
	cage_allow(cage, "/", CAGE_READ);
	cage_allow(cage, ".", CAGE_WRITE);
	cage_allow(cage, c->home, CAGE_WRITE);
	cage_allow(cage, "/tmp", CAGE_WRITE);
	for (size_t i = 0; i < c->opt->ndownloads; i++)
		cage_allow(cage, c->opt->downloads[i].to, CAGE_WRITE);
}

static void allow_locked(struct cage *cage, const struct confine *c)
{
	allow_list(cage, &c->cfg->upload_from, CAGE_READ);
	allow_list(cage, &c->cfg->download_to, CAGE_WRITE);
	cage_allow(cage, c->cfg->skeleton, CAGE_READ);
	/* The C library may still look these up. */
	cage_allow(cage, "/etc/localtime", CAGE_READ);
	cage_allow(cage, "/usr/share/zoneinfo", CAGE_READ);
	cage_allow(cage, "/usr/lib/locale", CAGE_READ);
	cage_allow(cage, "/usr/share/locale", CAGE_READ);
}

int confine_front(const struct confine *c, struct err *e)
{
	struct cage cage = {.n = 0};

	tzset();
	if (c->cfg->locked)
		allow_locked(&cage, c);
	else
		allow_ordinary(&cage, c);
	cage_allow(&cage, c->state_dir, CAGE_WRITE);
	cage_allow(&cage, "/dev/null", CAGE_DEVICE);
	return cage_close(&cage, e);
}
