/* SPDX-License-Identifier: MIT */
/*
 * cell.h - a cell from hand-over to verdict
 */
#ifndef REPL_SESSION_CELL_H
#define REPL_SESSION_CELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct jail_done;
struct session;

/* Make s->cell, for a Python that has not run python.startup yet. 0, or -1
 * with e. */
int cell_open(struct session *s, struct err *e);
void cell_close(struct session *s);

/* Run a cell and wait for its end. 0, or -1 with e: it was not handed over. */
int cell_run(struct session *s, const char *src, size_t n, struct err *e);

/* What became of the last cell; NULL where that is not known. */
const struct jail_done *cell_done(const struct session *s);

/* Run python.startup where it is due. */
void cell_run_startup(struct session *s);
bool cell_startup_is_due(const struct session *s);

/* Python is being replaced by a fresh one, which JAIL_UP will confirm. */
void cell_restarted(struct session *s);

/* ---- what the warden says: event.c ---- */

/* JAIL_UP; `restarted`: this Python replaces an earlier one. */
void cell_take_up(struct session *s, bool restarted);

/* JAIL_DONE. */
void cell_take_done(struct session *s, const struct jail_done *done);

/* JAIL_STACK: shown below the verdict of the cell under way. */
void cell_take_stack(struct session *s, const char *text, size_t n);

#endif
