/* SPDX-License-Identifier: MIT */
/*
 * store.h - files that clients keep with us for a while
 */
#ifndef REPL_SERVE_STORE_H
#define REPL_SERVE_STORE_H

#include "gate.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config_serve;
struct err;
struct store;

#define STORE_ID_LEN 36

/* Only store.c writes it. */
struct store_file {
	struct gate_peer owner;
	char id[STORE_ID_LEN + 1]; /* a UUID; "" while it is being written */
	char *name;
	int fd;
	int64_t size;
	double time; /* since the epoch */
	int64_t born_ms;
	int holders;
	bool used;
};

/* Why a write is refused. */
enum store_problem {
	STORE_FINE,
	STORE_FILE_FULL, /* serve.upload */
	STORE_FULL,	 /* serve.storage, serve.files, a client's share of
			  * them, or the disk */
};

/* Open all that will be needed, as files without a name. 0, or -1 with e. */
int store_open(
	struct store **out, const struct config_serve *rules, struct err *e);
void store_close(struct store *s);

/* Begin a client's file, which the caller holds until store_finish(); to let go
 * of it before is to forget it. NULL: there are too many. */
struct store_file *store_begin(struct store *s, struct gate_peer owner);

enum store_problem store_write(
	struct store *s, struct store_file *f, const void *p, size_t n);

/* Give it an id: it can be found from now on. -1: out of memory. */
int store_finish(struct store *s, struct store_file *f, const char *name);

/* Forget a file, once nobody holds it. */
void store_drop(struct store *s, struct store_file *f);

/* Hold a file, so that it stays as it is; and let go of it. */
void store_hold(struct store_file *f);
void store_release(struct store *s, struct store_file *f);

/* NULL: there is none with that id. */
struct store_file *store_find(struct store *s, const char *id);

/* The next file that can be found, after `f` or from the first (NULL). */
struct store_file *store_next(struct store *s, struct store_file *f);

/* Forget those that are too old. */
void store_sweep(struct store *s);

#endif
