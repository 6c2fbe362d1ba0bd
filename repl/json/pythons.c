/* SPDX-License-Identifier: MIT */
/*
 * pythons.c - the interpreters that a request may name
 *
 * Runs in:   front end, before it is confined
 * Trusts:    the configuration
 * Leaves:    their paths, as configured and without links
 */
#include "repl/json/json.h"

#include "jail/base/err.h"
#include "repl/config/config.h"

#include <stdlib.h>
#include <string.h>

/* Add an interpreter, even if it does not exist: the error comes when its jail
 * is built. */
static int add_python(struct pythons *p, const char *path, struct err *e)
{
	char *real;

	if (p->n == PYTHONS_MAX)
		return 0;
	real = realpath(path, NULL);
	if (!real)
		real = strdup(path);
	if (!real)
		return err_errno(e, "find the interpreters");
	p->v[p->n] = path;
	p->resolved[p->n++] = real;
	return 0;
}

int pythons_find(struct pythons *p, const struct jail_spec *spec,
	const struct config *cfg, struct err *e)
{
	*p = (struct pythons){.n = 0};
	if (add_python(p, spec->python, e) < 0)
		return -1;
	for (size_t i = 0; i < cfg->executable.n; i++)
		if (add_python(p, cfg->executable.items[i], e) < 0)
			return -1;
	return 0;
}

void pythons_free(struct pythons *p)
{
	for (size_t i = 0; i < p->n; i++)
		free((char *)p->resolved[i]);
	p->n = 0;
}
