/* SPDX-License-Identifier: MIT */
/*
 * answer.h - what became of a request, in JSON
 */
#ifndef REPL_JSON_ANSWER_H
#define REPL_JSON_ANSWER_H

#include "jail/jail.h"
#include "repl/text/strbuf.h"

#include <stddef.h>

struct config;
struct request;
struct run;

/* How an answer came about. */
enum answer_kind {
	ANSWER_RAN,	/* the program ran */
	ANSWER_REFUSED, /* the request was not in order, nothing ran */
	ANSWER_FAILED,	/* the jail failed */
};

/* Append the answer to a request that was run in `j`, a JSON object without a
 * line end. */
enum answer_kind answer_add(struct strbuf *b, const struct request *q,
	const struct run *r, struct jail *j, const struct config *cfg);

/* Append "limit", with a comma behind it: which limit struck (LIMIT_NONE:
 * null), in words, and who set it. */
void answer_add_limit(struct strbuf *b, const struct request *q,
	enum jail_limit limit, const struct config *cfg);

/* Append {"title", "description"}. */
void answer_add_refusal(
	struct strbuf *b, const char *title, const char *description, size_t n);

/* A program's output as snekbox has it: every line ends with one line feed. The
 * new length. */
size_t answer_unify_lines(char *s, size_t n);

#endif
