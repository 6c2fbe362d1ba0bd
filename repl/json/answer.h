/* SPDX-License-Identifier: MIT */
/*
 * answer.h - what became of a request, in JSON
 */
#ifndef REPL_JSON_ANSWER_H
#define REPL_JSON_ANSWER_H

#include "jail/jail.h"
#include "repl/text/strbuf.h"

#include <stdbool.h>
#include <stddef.h>

struct attach;
struct attach_store;
struct config;
struct report;
struct request;
struct run;

/* How an answer came about. */
enum answer_kind {
	ANSWER_RAN,	/* the program ran */
	ANSWER_REFUSED, /* the request was not in order, nothing ran */
	ANSWER_FAILED,	/* the jail failed */
};

/* Append the answer to a request that was run, a JSON object without a line
 * end. With `store` (and `code`), files are stored instead of contained. */
enum answer_kind answer_add(struct strbuf *b, const struct run *r,
	const struct attach_store *store);

/* The same bit by bit, for who has others to serve: it is there when
 * answer_turn() says true. All that is given is borrowed until then. */
struct answer {
	struct strbuf *b;
	const struct run *run;
	size_t before;
	struct attach *files; /* NULL: done */
};

enum answer_kind answer_begin(struct answer *a, struct strbuf *b,
	const struct run *r, const struct attach_store *store);
bool answer_turn(struct answer *a);

/* As long as it is not: in how many milliseconds the next turn is due; when
 * *fd (-1: none) can be read, it is due at once. */
int answer_timeout_ms(const struct answer *a, int *fd);
void answer_fini(struct answer *a);

/* Append "limit", with a comma behind it: which limit struck (LIMIT_NONE:
 * null), in words, and who set it. */
void answer_add_limit(struct strbuf *b, const struct request *q,
	enum jail_limit limit, const struct config *cfg);

/* Append "images", with a comma behind it: the pictures of a report. */
void answer_add_pictures(struct strbuf *b, const struct report *r);

/* Append {"title", "description"}. */
void answer_add_refusal(
	struct strbuf *b, const char *title, const char *description, size_t n);

/* A program's output as snekbox has it: every line ends with one line feed. The
 * new length. It may come in pieces: *last, 0 at first, leads from one to the
 * next. */
size_t answer_unify_lines(char *s, size_t n, char *last);

#endif
