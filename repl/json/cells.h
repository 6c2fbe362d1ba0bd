/* SPDX-License-Identifier: MIT */
/*
 * cells.h - a session for requests: cells, undo, reset, files
 *
 * One request at a time: cells_begin(), then cells_turn() whenever a descriptor
 * of cells_polls() is ready or its time has come, until cells_is_done(); then
 * its answer is added (outcome.h). None of them waits for a cell, for Python,
 * or for what the warden does meanwhile.
 */
#ifndef REPL_JSON_CELLS_H
#define REPL_JSON_CELLS_H

#include "jail/jail.h"
#include "repl/text/strbuf.h"
#include "report.h"

#include <poll.h>
#include <stdbool.h>

struct cells;
struct config;
struct err;
struct log;
struct request;

/* Begin with a session (borrowed, as all else). Its Python may still start: the
 * skeleton goes into its home then. With `stays`, exit() ends a cell and not
 * the session. 0, or -1 with e. */
int cells_open(struct cells **out, struct jail *j, const struct config *cfg,
	struct log *log, bool stays, struct err *e);
void cells_close(struct cells *c);

/* Whether Python answers: only then may a request begin other than
 * REQUEST_SESSION, which waits for that. */
bool cells_is_up(const struct cells *c);

/* Whether the session has ended. Every request is refused then. And why, if it
 * failed: an empty message otherwise. */
bool cells_is_over(const struct cells *c);
const struct err *cells_error(const struct cells *c);

/* Why, if it has. */
const char *cells_why_over(struct cells *c);

/* Begin to serve a request of a session (borrowed until it is done). */
void cells_begin(struct cells *c, const struct request *q);

/* The same for a client's own request: policy.commands may forbid it. */
void cells_ask(struct cells *c, const struct request *q);
bool cells_is_forbidden(const struct cells *c);

/* What to poll, also between requests; and in how many milliseconds
 * cells_turn() is due at the latest, or -1. */
#define CELLS_POLLS 3
int cells_polls(const struct cells *c, struct pollfd *p);
void cells_turn(struct cells *c, const struct pollfd *p);
bool cells_is_done(const struct cells *c);

/* The three for who has nothing else to wait for. */
void cells_wait(struct cells *c);

/* Interrupt the cell that runs. It is killed when it does not end within
 * cell.grace, or at the second time. Other requests are hurried. */
void cells_interrupt(struct cells *c);

/* What the cell has shown so far; plain text. Borrowed until the next turn. */
const char *cells_output(const struct cells *c, size_t *n);

/* Whether it runs: before, there can still be a refusal. */
bool cells_has_begun(const struct cells *c);

/* REQUEST_LIST, REQUEST_READ that is done: the files of the home. */
struct jail_files *cells_files(struct cells *c);

/* REQUEST_OPEN that is done: the file, for the caller; -1: none. */
int cells_take_file(struct cells *c);

/* Why the request that is done was refused; NULL: it was not. *title (which may
 * be NULL): the same in short. And refuse one that is about files. */
const char *cells_refusal(const struct cells *c, const char **title);
void cells_refuse_files(struct cells *c, const char *why);

/* How many cells have run, and what runs them: "3.11.2". */
unsigned cells_count(const struct cells *c);
const char *cells_python(const struct cells *c);

/* The cell that is done: how it ended; the verdict; its pictures, which are
 * only what the guest says. */
const struct jail_done *cells_done(const struct cells *c);
const struct jail_undone *cells_undone(const struct cells *c);
const char *cells_verdict(const struct cells *c);
void cells_report(const struct cells *c, struct report *r);

/* What the answer is about: the request; whether it was served, or the session
 * broke before. Notices since the last answer, as elements of a list, are told
 * once. */
const struct request *cells_request(const struct cells *c);
const struct config *cells_config(const struct cells *c);
struct jail *cells_jail(struct cells *c);
bool cells_has_outcome(const struct cells *c);
void cells_take_notices(struct cells *c, struct strbuf *b);

/* Forget what the request that is done showed, where that is much: nobody will
 * ask any more. */
void cells_rest(struct cells *c);

/* Have the next answer say so, beside what the warden notices. */
void cells_note(struct cells *c, const char *text);

#endif
