/* SPDX-License-Identifier: MIT */
/*
 * pythons.h - the interpreters that a request may name
 */
#ifndef REPL_JSON_PYTHONS_H
#define REPL_JSON_PYTHONS_H

#include <stddef.h>

struct config;
struct err;
struct jail_spec;

/* Most interpreters of a configuration. */
#define PYTHONS_MAX 64

/* Caller's storage; pythons_free(). */
struct pythons {
	const char *v[PYTHONS_MAX];	   /* to start; borrowed */
	const char *resolved[PYTHONS_MAX]; /* without links; owned */
	size_t n;
};

/* The one of `spec`, then those configured. 0, or -1 with e. */
int pythons_find(struct pythons *p, const struct jail_spec *spec,
	const struct config *cfg, struct err *e);

void pythons_free(struct pythons *p);

#endif
