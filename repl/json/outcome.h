/* SPDX-License-Identifier: MIT */
/*
 * outcome.h - what a request of a session is answered
 */
#ifndef REPL_JSON_OUTCOME_H
#define REPL_JSON_OUTCOME_H

#include "answer.h"

#include <stdbool.h>

struct cells;
struct err;
struct strbuf;

/* Append the answer to the request that is done; pictures are left out unless
 * `pictures`. ANSWER_FAILED with e: the session broke, and there is no answer.
 */
enum answer_kind outcome_add(
	struct strbuf *b, struct cells *c, bool pictures, struct err *e);

#endif
