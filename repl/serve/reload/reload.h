/* SPDX-License-Identifier: MIT */
/*
 * reload.h - the files that a server reads again while it serves
 *
 *	reload.c	the configuration and the tokens, read again
 *	tokens.c	the file of tokens
 */
#ifndef REPL_SERVE_RELOAD_RELOAD_H
#define REPL_SERVE_RELOAD_RELOAD_H

#include "repl/config/config.h"

#include <stdbool.h>
#include <stddef.h>

struct config_errors;
struct err;
struct reload;

/* ---- tokens.c ---- */

#define TOKENS_FILE_MAX (64 << 10)
#define TOKENS_MAX 2000
#define TOKENS_OF_NAME 2
#define TOKENS_NAME_MAX 64
#define TOKENS_NAME_LETTERS                                                    \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
#define TOKENS_WORD_MAX 4095

struct token {
	const char *name; /* NULL: it is the only one, and has none */
	const char *word;
};

/* Zero at first; only tokens.c writes it. */
struct tokens {
	char *text; /* the others are parts of it */
	struct token *v;
	size_t n;
};

/* Read a file that is nobody else's secret (*text: caller frees), with a NUL
 * behind its *n bytes. 0, or -1 with e. */
int tokens_read(const char *path, char **text, size_t *n, struct err *e);

/* Parse the text of such a file (taken). 0, or -1 with e, which repeats no
 * token. */
int tokens_parse(struct tokens *t, char *text, size_t n, struct err *e);
void tokens_free(struct tokens *t);

/* The token that is this word; or NULL. */
const struct token *tokens_find(const struct tokens *t, const char *word);

/* ---- reload.c ---- */

/* Reads the configuration as it was read at the start. */
struct reload_source {
	/* Fill in *cfg. 0, or -1 with errors. config_fini() follows either way.
	 */
	int (*load)(
		void *arg, struct config *cfg, struct config_errors *errors);
	void *arg;
};

/* Only the process that reads the files writes it. */
struct reload_answer {
	bool failed; /* nothing is to change */
	/* The limits that the server has from now on. No text of it is valid.
	 */
	struct config_serve serve;
	size_t ntokens; /* bytes; 0: the server asks for no token */
	char tokens[TOKENS_FILE_MAX];
	char words[16384]; /* lines: mistakes, or the keys that stay */
};

/* Fork the process that reads the files again. `cfg` is the configuration as it
 * was read first. 0, or -1 with e. */
int reload_open(struct reload **out, const struct config *cfg,
	const struct reload_source *source, struct err *e);
void reload_close(struct reload *r);

/* Have the files read again. True while an answer is due. */
void reload_ask(struct reload *r);
bool reload_is_busy(const struct reload *r);

/* Readable when reload_take() has an answer; -1 while none is due. That returns
 * 1 with *out, valid until reload_ask(); 0: none yet; -1: the process is gone.
 */
int reload_fd(const struct reload *r);
int reload_take(struct reload *r, const struct reload_answer **out);

#endif
