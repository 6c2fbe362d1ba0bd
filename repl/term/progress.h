/* SPDX-License-Identifier: MIT */
/*
 * progress.h - a bar for transfers that take longer than half a second
 */
#ifndef REPL_TERM_PROGRESS_H
#define REPL_TERM_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct terminal;

/* Caller's storage. */
struct progress {
	struct terminal *term; /* borrowed; NULL: never drawn */
	char name[64];	       /* safe */
	int64_t start_ms, drawn_ms;
	uint64_t total; /* 0: not known */
	bool drawn;
};

/* Begin a transfer; nothing is drawn yet. `name` may hold any bytes. */
void progress_begin(struct progress *p, struct terminal *term, const char *name,
	uint64_t total);

/* `done` bytes are copied. Draws when it is time. */
void progress_update(struct progress *p, uint64_t done);

/* Erase the bar. */
void progress_end(struct progress *p);

/* The bar as text, without its carriage return. Returns `buf`. */
const char *progress_format(char *buf, size_t size, const struct progress *p,
	uint64_t done, int64_t elapsed_ms, int cols);

#endif
