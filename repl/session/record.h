/* SPDX-License-Identifier: MIT */
/*
 * record.h - the cells that ran, and what the last of them wrote
 *
 * Knows neither the terminal nor the jail.
 */
#ifndef REPL_SESSION_RECORD_H
#define REPL_SESSION_RECORD_H

#include "repl/text/strbuf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Cells whose full output is kept for :out. */
#define RECORD_OUTPUTS 4

/* A cell that ran; `src` ends with a NUL. */
struct record_cell {
	uint32_t no;
	char *src;
	size_t n;
	bool ok; /* it ran to its end, and was not undone */
};

/* What a cell wrote, unfiltered. */
struct record_output {
	uint32_t no;
	struct strbuf bytes;
	uint64_t total; /* more than bytes.n when it was too much */
};

struct record;

/* NULL without memory. */
struct record *record_new(void);
void record_free(struct record *r);

/* Add a cell that ran. 0, or -1 (no memory). */
int record_add(
	struct record *r, uint32_t no, const char *src, size_t n, bool ok);

/* All cells, the oldest first. */
const struct record_cell *record_cells(const struct record *r, size_t *n);

/* Cell `no`, 0 for the last one; NULL when there is none. */
const struct record_cell *record_find(const struct record *r, uint32_t no);

/* The cells from `back_to` on were undone. */
void record_undo(struct record *r, uint32_t back_to);

/* Cell `no` begins to write; more of what it wrote. */
void record_begin_output(struct record *r, uint32_t no);
void record_add_output(struct record *r, const void *buf, size_t n);

/* The output of cell `no`; NULL when it is not kept. */
const struct record_output *record_find_output(
	const struct record *r, uint32_t no);

#endif
