/* SPDX-License-Identifier: MIT */
/*
 * execute.h - the body of POST /v1/execute
 */
#ifndef REPL_SERVE_EXECUTE_H
#define REPL_SERVE_EXECUTE_H

#include "repl/json/request.h"
#include "store.h"

/* Files of the store that a request holds. Caller's storage. */
struct execute_files {
	struct store *store;
	struct store_file **v;
	size_t n;
};

/* Parse and check. 0; or the status to answer with the object in *words. The
 * caller ends with request_fini() and execute_release() either way. */
int execute_parse(struct request *q, struct execute_files *files,
	const struct strbuf *body, const struct request_rules *rules,
	struct strbuf *words);

void execute_release(struct execute_files *files);

/* Append {"detail": words}. */
void execute_add_detail(struct strbuf *b, const char *words, size_t n);

/* The same for a field that is missing in the body. */
void execute_add_missing(struct strbuf *b, const char *field);

#endif
