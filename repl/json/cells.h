/* SPDX-License-Identifier: MIT */
/*
 * cells.h - a session for a stream of requests: cells, undo, files
 */
#ifndef REPL_JSON_CELLS_H
#define REPL_JSON_CELLS_H

#include "answer.h"
#include "repl/text/strbuf.h"

#include <stdbool.h>

struct cells;
struct config;
struct err;
struct jail;
struct request;

/* Wait until Python answers in a session (borrowed), and put the skeleton into
 * its home; append the answer to the request for it. 0, or -1 with e
 * (ERR_JAIL). */
int cells_open(struct cells **out, struct jail *j, const struct config *cfg,
	struct strbuf *b, struct err *e);
void cells_close(struct cells *c);

/* Serve a request in it, and append the answer. ANSWER_FAILED with e: the
 * session broke, and there is no answer. */
enum answer_kind cells_serve(struct cells *c, const struct request *q,
	struct strbuf *b, struct err *e);

#endif
