/* SPDX-License-Identifier: MIT */
/*
 * order.h - what somebody asks the maker for
 *
 * One message of one size. No text of a configuration and no path is in it: of
 * what the system's configuration has for the person, numbers say which, and
 * limits are no looser.
 */
#ifndef REPL_MAKER_ORDER_H
#define REPL_MAKER_ORDER_H

#include "jail/spec.h"

#include <stddef.h>
#include <stdint.h>

struct config;
struct err;
struct setup;

/* Grows when the message changes. */
#define ORDER_VERSION 3

struct order {
	uint32_t version;
	uint32_t mode; /* SPEC_SESSION, SPEC_PROGRAM; SPEC_EVAL: that, which is
			* `-e` */
	struct limits limits;
	uint64_t expose;   /* bits: which of jail.expose */
	uint64_t require;  /* bits: jail.require, as enforce.h numbers limits */
	uint32_t python;   /* which of python.executable */
	uint32_t plain;	   /* programs draw no colours */
	uint32_t tty_bits; /* (spec.h) */
	uint16_t rows, cols;
	char term[64];
	/* The files that whoever asks sees: their mount namespace (0: any), and
	 * their root directory. */
	uint64_t mounts, root_dev, root_ino;
};

/* What of `spec`, which was made from `mine`, the system's own configuration
 * allows. 0, or -1 with e: the first thing that it does not have or that is
 * looser. */
int order_fill(struct order *o, const struct jail_spec *spec,
	const struct config *mine, const struct config *system, struct err *e);

/* All that the system's configuration allows, for nobody in particular. */
void order_fill_all(
	struct order *o, enum spec_mode mode, const struct config *system);

/* Hold a message of `n` bytes against the system's configuration. 0, or -1 with
 * e. */
int order_check(const struct order *o, size_t n, const struct config *system,
	struct err *e);

/* Ask only for a jail that shows the files which this process sees. 0, or -1:
 * it cannot be said which they are. */
int order_want_files(struct order *o);

/* Whether this process sees the files that are asked for. 0, or -1 with e. */
int order_check_files(const struct order *o, struct err *e);

/* The spec of an order that is in order. Borrows all three. */
void order_spec(const struct order *o, const struct config *system,
	struct setup *s, struct jail_spec *spec);

#endif
