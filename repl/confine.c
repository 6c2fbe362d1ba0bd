/* SPDX-License-Identifier: MIT */
/*
 * confine.c - the front end's own cage
 *
 * Runs in:   front end, once, after the warden was forked
 * Holds:     before: whatever the person has; after: their files, nothing else
 * Trusts:    the configuration
 * Leaves:    a process that cannot start another, open a socket, or (locked)
 *            reach any file but the history and the configured directories
 *            (invariant 7)
 *
 * An ordinary session may download wherever the person may write, so there
 * Landlock only takes away executing and device nodes. For root, who may write
 * everywhere, that would be nothing: root gets the working directory, the home
 * directory, /tmp, and what -d names.
 */
#include "confine.h"

#include "jail/base/err.h"
#include "jail/walls/ident.h"
#include "jail/walls/landlock.h"
#include "jail/walls/seccomp.h"
#include "repl/config/config.h"
#include "repl/config/options.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define RULES_MAX 256

struct rules {
	struct landlock_rule v[RULES_MAX];
	size_t n;
};

static void allow(struct rules *r, const char *path, enum landlock_class cls)
{
	if (path && path[0] && r->n < RULES_MAX)
		r->v[r->n++] = (struct landlock_rule){
			.path = path, .fd = -1, .cls = cls, .optional = 1};
}

static void allow_list(struct rules *r, const struct config_list *dirs,
	enum landlock_class cls)
{
	for (size_t i = 0; i < dirs->n; i++)
		allow(r, dirs->items[i], cls);
}

/* Where the downloads that were asked for on the command line go. */
static void allow_downloads(struct rules *r, const struct options *opt)
{
	for (size_t i = 0; i < opt->ndownloads; i++)
		allow(r, opt->downloads[i].to, LANDLOCK_WRITE);
}

static void allow_ordinary(struct rules *r, const struct confine *c)
{
	if (geteuid() != 0) {
		allow(r, "/", LANDLOCK_WRITE);
		return;
	}
	allow(r, "/", LANDLOCK_READ);
	allow(r, ".", LANDLOCK_WRITE);
	allow(r, c->home, LANDLOCK_WRITE);
	allow(r, "/tmp", LANDLOCK_WRITE);
	allow_downloads(r, c->opt);
}

static void allow_locked(struct rules *r, const struct confine *c)
{
	allow_list(r, &c->cfg->upload_from, LANDLOCK_READ);
	allow_list(r, &c->cfg->download_to, LANDLOCK_WRITE);
	allow(r, c->cfg->skeleton, LANDLOCK_READ);
	/* What the C library may still look up. */
	allow(r, "/etc/localtime", LANDLOCK_READ);
	allow(r, "/usr/share/zoneinfo", LANDLOCK_READ);
	allow(r, "/usr/lib/locale", LANDLOCK_READ);
	allow(r, "/usr/share/locale", LANDLOCK_READ);
}

int confine_front(const struct confine *c, struct err *e)
{
	struct rules r = {.n = 0};

	tzset();
	if (c->cfg->locked)
		allow_locked(&r, c);
	else
		allow_ordinary(&r, c);
	allow(&r, c->state_dir, LANDLOCK_WRITE);
	allow(&r, "/dev/null", LANDLOCK_DEVICE);
	if (ident_drop_front(e) < 0)
		return err_wrap(e, "confine the front end");
	if (landlock_confine(r.v, r.n, LANDLOCK_NO_TCP, LANDLOCK_ABI_ANY, e) <
		0)
		return err_wrap(e, "confine the front end");
	if (seccomp_load(SECCOMP_FRONT, e) < 0)
		return err_wrap(e, "confine the front end");
	return 0;
}
