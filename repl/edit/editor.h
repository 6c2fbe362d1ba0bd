/* SPDX-License-Identifier: MIT */
/*
 * editor.h - a cell of Python, or a command, from the person
 *
 * A whole cell is one editable thing. On a terminal that can address its
 * cursor it is drawn by the editor; anywhere else lines are read plainly, with
 * the same rules for when a cell is complete.
 *
 * The editor handles no signals. The caller blocks or ignores SIGINT, SIGQUIT
 * and SIGTSTP at all times: their keys arrive as keys while a cell is drawn,
 * but not around it. What it learns of SIGINT and SIGWINCH, it passes on.
 */
#ifndef REPL_EDIT_EDITOR_H
#define REPL_EDIT_EDITOR_H

#include <stdbool.h>
#include <stddef.h>

struct editor;
struct err;
struct history;

enum editor_result {
	EDITOR_CELL,	  /* a cell to run; may be empty */
	EDITOR_INTERRUPT, /* Ctrl-C: the text was given up */
	EDITOR_EOF,	  /* Ctrl-D on an empty cell, or the end of the input */
	EDITOR_EVENT,	  /* a watcher asked for it; the text is kept */
	EDITOR_HUP,	  /* the terminal is gone */
	EDITOR_ERROR,	  /* see the error */
};

struct editor_opts {
	const char *prompt, *prompt2; /* UTF-8, no escapes */
	bool colour;
	size_t max_bytes;	 /* longest cell; 0: 1 MiB */
	struct history *history; /* borrowed; NULL: none */
	int in, out;		 /* borrowed */

	/* Whether the command of this name takes a cell, which is judged as
	 * any other. NULL: none does. */
	bool (*takes_cell)(void *ctx, const char *name, size_t n);
	void *takes_cell_ctx;
};

/* Open an editor. Widths come from wcwidth(3): the caller has set LC_CTYPE to
 * a UTF-8 locale. Everything it opens, it opens here. 0, or -1. */
int editor_open(
	struct editor **ed, const struct editor_opts *opts, struct err *e);

/* Close it; NULL is allowed. */
void editor_close(struct editor *ed);

/* Read one cell. With EDITOR_CELL, *cell is its UTF-8 text (caller frees), *n
 * its length, blank lines at its end taken off; otherwise *cell is NULL. The
 * terminal's modes are the same before and after; where they were raw, no key
 * between two reads is lost or echoed. The caller adds the cell to the
 * history. */
enum editor_result editor_read(
	struct editor *ed, char **cell, size_t *n, struct err *e);

/* Input that arrived behind the cell's last Enter: at most `max` bytes of it
 * are moved to `buf`, to be given to the running cell as if typed then.
 * What is not taken is read by the next editor_read(). Returns how many. */
size_t editor_take_input(struct editor *ed, char *buf, size_t max);

/* Put `n` bytes of text into the next cell, as if typed but never run. A Ctrl-D
 * with no text before it ends the next read, as it would have. */
int editor_prefill(struct editor *ed, const char *s, size_t n);

/* Change the prompts. 0, or -1 (no memory). */
int editor_set_prompts(
	struct editor *ed, const char *prompt, const char *prompt2);

/* Poll `fd` for input while waiting for keys; cb(ctx) is called when there is
 * some (or the other side hung up) and must consume it. It may call
 * editor_print_above(), and editor_unwatch_fd(). It returns 0, or 1 to make
 * editor_read() return EDITOR_EVENT. 0, or -1: no room (EDITOR_WATCH_MAX). */
#define EDITOR_WATCH_MAX 4
int editor_watch_fd(struct editor *ed, int fd, int (*cb)(void *ctx), void *ctx);
void editor_unwatch_fd(struct editor *ed, int fd);

/* For a watcher. The terminal has another size; SIGINT has come, which gives
 * the text up as Ctrl-C does. */
void editor_resized(struct editor *ed);
void editor_interrupt(struct editor *ed);

/* Print above the cell that is being edited, or simply print when none is.
 * The text must be safe for a terminal; "\n" ends its lines. */
void editor_print_above(struct editor *ed, const char *s, size_t n);

/* Whether the next cell is read plainly: then the terminal must be cooked. */
bool editor_is_plain(struct editor *ed);

/* The size of the terminal, 24 by 80 where it is not known. */
void editor_size(const struct editor *ed, int *rows, int *cols);

#define COMPLETIONS_MAX 2000

/* Candidates for what stands between `start` and the cursor. */
struct completions {
	size_t start; /* byte offset; preset to the cursor */
	char **items;
	size_t count;
	size_t dropped; /* candidates not taken: unsafe, or too many */
	char close[8];	/* goes behind the only candidate, if nothing of it
			 * stands there already */
};

/* Add a candidate (copied). One that is not valid UTF-8, or holds controls or
 * invisible characters, is counted and dropped. 0, or -1 (no memory). */
int completions_add(struct completions *c, const char *s, size_t n);

/* Free the candidates. */
void completions_free(struct completions *c);

/* Ask cb for candidates when Tab is pressed behind something: `text` is the
 * whole cell, `cursor` an offset in it, in bytes. It may call
 * editor_print_above(). A return other than 0 means none. */
void editor_set_complete_cb(struct editor *ed,
	int (*cb)(void *ctx, const char *text, size_t n, size_t cursor,
		struct completions *out),
	void *ctx);

#endif
