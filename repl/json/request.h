/* SPDX-License-Identifier: MIT */
/*
 * request.h - one JSON request: two forms, checked in every field
 *
 * docs/JSON.md has every field. Nothing of a request is acted on before all of
 * it was found in order.
 */
#ifndef REPL_JSON_REQUEST_H
#define REPL_JSON_REQUEST_H

#include "repl/text/strbuf.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct limits;

/* Deepest nesting of a request, and most values in it. */
#define REQUEST_DEPTH_MAX 200
#define REQUEST_VALUES_MAX 1000000
#define REQUEST_KEYS_MAX 250000

enum request_form {
	REQUEST_SNEKBOX, /* `input`, `args` */
	REQUEST_OURS,	 /* `code` */
	REQUEST_SESSION, /* `session`: true */
	/* in a session */
	REQUEST_CELL,	/* `code` */
	REQUEST_UNDO,	/* `undo` */
	REQUEST_RESET,	/* `reset` */
	REQUEST_READ,	/* `read` */
	REQUEST_LIST,	/* names of files */
	REQUEST_OPEN,	/* the file `path` */
	REQUEST_WRITE,	/* `files` */
	REQUEST_REMOVE, /* the file or directory `path` */
};

struct request_file {
	const char *path; /* as it was sent; borrowed */
	char *clean;	  /* in the home, without "..": owned */
	char *content;	  /* owned */
	int fd;		  /* instead of it; borrowed; -1: none */
	size_t n;
};

struct request {
	enum request_form form;
	json_t *root; /* owned; the rest borrows from it */
	struct request_file *files;
	size_t nfiles;
	/* REQUEST_SNEKBOX */
	const char **args; /* ends with NULL; owned */
	bool has_nul;	   /* an argument holds a NUL: it cannot be passed */
	size_t python;	   /* index of the interpreter */
	/* REQUEST_OURS */
	struct strbuf source; /* for request.py */
	const char *input;    /* standard input */
	size_t input_n;
	int64_t timeout_ms;
	/* REQUEST_CELL, with the three above */
	const char *code;
	size_t code_n;
	bool streams; /* its output is told meanwhile, not in the answer */
	/* REQUEST_UNDO */
	int undo;
	/* REQUEST_READ */
	const char *pattern;
	/* REQUEST_OPEN, REQUEST_REMOVE */
	const char *path;
};

/* What a request is held against. Borrowed. */
struct request_rules {
	const struct limits *limits;
	int64_t most_ms;	     /* timeout_ms of /v1/execute at most */
	const char *const *pythons;  /* as configured */
	const char *const *resolved; /* the same without links */
	size_t npythons;
	bool locked;  /* nothing else of the host may be found out */
	bool session; /* the stream has a session */
};

/* Why a request is refused: words for {"title", "description"}. */
struct request_refusal {
	const char *title; /* static */
	struct strbuf description;
};

/* Whether a text is nested deeper, or has more values or keys, than a request
 * may. To read a key takes several times as long as to read a number. */
bool request_is_deep(const char *text, size_t n);

/* Parse and check `n` bytes. 0, or -1 with *why. The caller ends with
 * request_fini() and frees the description either way. */
int request_parse(struct request *r, const char *text, size_t n,
	const struct request_rules *rules, struct request_refusal *why);

/* The same for a request that was parsed already (`root` is taken); outside of
 * a session one with `code`, whose files come with request_add_file(). */
int request_take(struct request *r, json_t *root,
	const struct request_rules *rules, struct request_refusal *why);

/* Add a file of `n` bytes; `path` and `fd` are borrowed. */
int request_add_file(struct request *r, const char *path, int fd, size_t n,
	const struct request_rules *rules, struct request_refusal *why);

/* The same with these bytes, copied, as the path is; and as r->path. */
int request_add_content(struct request *r, const char *path, const char *p,
	size_t n, const struct request_rules *rules,
	struct request_refusal *why);

void request_fini(struct request *r);

/* Refuse: record why. Returns -1. */
int request_refuse(struct request_refusal *why, const char *title,
	const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
