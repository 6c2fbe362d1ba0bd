/* SPDX-License-Identifier: MIT */
/*
 * serve.h - cellblock --serve
 */
#ifndef REPL_SERVE_SERVE_H
#define REPL_SERVE_SERVE_H

#include <stdint.h>

struct config;
struct err;
struct jail_spec;
struct log;
struct serve;
struct signals;

/* How long code of a request may be asked to run: jail_spec.asked_wall_ms. */
int64_t serve_most_ms(const struct config *cfg);

/* Get ready, before the cage closes: fork the maker, listen at `where` (NULL:
 * the default), open what files are kept in. All is borrowed until
 * serve_close(). 0, or -1 with e. */
int serve_open(struct serve **out, const struct config *cfg,
	const struct jail_spec *spec, const char *where, struct err *e);

/* Where it listens; and whether anybody from another host may come. */
const char *serve_address(const struct serve *s);
int serve_is_open(const struct serve *s);

/* How many clients there may be at a time, if RLIMIT_NOFILE allows fewer than
 * serve.clients; or 0. */
int serve_clients(const struct serve *s);

/* Serve until a signal, and then those that were accepted. 0, or -1 with e. */
int serve_run(struct serve *s, struct signals *signals, const struct log *log,
	struct err *e);

/* End every session, and wait until it is gone. -1 with e when something may
 * be left. */
int serve_close(struct serve *s, struct err *e);

#endif
