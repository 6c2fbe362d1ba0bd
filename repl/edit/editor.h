/* SPDX-License-Identifier: MIT */
/*
 * editor.h - the line editor and its history
 *
 *	editor.c	a cell of Python, or a command, from the person
 *	history.c	the cells of this session and of earlier ones
 */
#ifndef REPL_EDIT_EDITOR_H
#define REPL_EDIT_EDITOR_H

#include <stdbool.h>
#include <stddef.h>

struct complete_list;
struct editor;
struct err;
struct history;
struct strbuf;

/* ---- editor.c ---- */

/*
 * The editor draws a whole cell where the terminal can address its cursor, and
 * reads plain lines elsewhere. The same rules end a cell.
 *
 * The editor handles no signals. The caller blocks or ignores SIGINT, SIGQUIT
 * and SIGTSTP at all times, because their keys are keys only while a cell is
 * drawn, and passes SIGINT and SIGWINCH on.
 */

enum editor_result {
	EDITOR_GO_ON,	  /* the read is not over; never returned */
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
	bool vi;	  /* Escape begins a command mode, as in vi */
	bool suggest;	  /* show how the text went on in an earlier cell, and
			   * the parameters of what is called */
	size_t max_bytes; /* longest cell; 0: 1 MiB */
	struct history *history; /* borrowed; NULL: none */
	int in, out;		 /* borrowed */

	/* True of a command that takes a cell, which ends as any cell does. Or
	 * NULL, as the next three. */
	bool (*takes_cell)(void *ctx, const char *name, size_t n);
	/* Finds candidates for Tab behind a word: `text` is the whole cell,
	 * `cursor` an offset in bytes. May call editor_print_above(). Returns
	 * 0, or anything else where there are none. */
	int (*complete)(void *ctx, const char *text, size_t n, size_t cursor,
		struct complete_list *out);
	/* Asks for the parameters of the callable of this dotted name;
	 * editor_signature() may bring them later. */
	void (*signature)(void *ctx, const char *name, size_t n);
	void (*keyed)(void *ctx); /* a key was pressed */
	void *ctx;		  /* of all four */
};

/* Open an editor, which opens no file later. LC_CTYPE is a UTF-8 locale: widths
 * come from wcwidth(3). 0, or -1. */
int editor_open(
	struct editor **ed, const struct editor_opts *opts, struct err *e);
/* NULL is allowed. */
void editor_close(struct editor *ed);

/* Read one cell. With EDITOR_CELL, *cell is its UTF-8 text (caller frees)
 * without the blank lines at its end, and *n its length; otherwise *cell is
 * NULL. The terminal's modes are the same before and after; where they were
 * raw, no key between two reads is lost or echoed. The caller adds the cell
 * to the history. */
enum editor_result editor_read(
	struct editor *ed, char **cell, size_t *n, struct err *e);

/* Move the input behind the cell's last Enter to `keys`. */
void editor_take_input(struct editor *ed, struct strbuf *keys);
/* Have the next cell begin as this text. 0, or -1 (no memory). */
int editor_prefill(struct editor *ed, const char *s, size_t n);
/* Type these `n` bytes of keys before the terminal is read again. */
void editor_type(struct editor *ed, const char *s, size_t n);

/* Poll `fd` too while waiting for keys. On input or a hangup cb(ctx) consumes
 * it; cb may call editor_print_above() and editor_unwatch_fd(), and returns 0,
 * or 1 to make editor_read() return EDITOR_EVENT. 0, or -1: no room. */
#define EDITOR_WATCH_MAX 4
int editor_watch_fd(struct editor *ed, int fd, int (*cb)(void *ctx), void *ctx);
void editor_unwatch_fd(struct editor *ed, int fd);

/* Without a terminal: wait for the watched descriptors alone. */
void editor_wait(struct editor *ed);
/* Between reads: use another terminal, and keep the typed text. 0, or -1 with
 * e, and the editor is as before. */
int editor_move(struct editor *ed, bool colour, struct err *e);

/* For a watcher, while a cell is read: the terminal has another size; SIGINT
 * has come, which gives up the text as Ctrl-C does. */
void editor_resized(struct editor *ed);
void editor_interrupt(struct editor *ed);

/* The guest's answer with the parameters last asked for: "(a, b=1)". It is
 * shown below the cell if it is safe and the cursor is in that call still. */
void editor_signature(struct editor *ed, const char *s, size_t n);

/* Print lines, safe for a terminal, above the cell being edited if there is
 * one. */
void editor_print_above(struct editor *ed, const char *s, size_t n);
/* True if the next cell is read as plain lines, from a cooked terminal. */
bool editor_is_plain(struct editor *ed);
/* Another prompt, from the next read on. 0, or -1 (no memory). */
int editor_set_prompt(struct editor *ed, const char *prompt);
/* The size of the terminal, 24 by 80 where it is not known. */
void editor_size(const struct editor *ed, int *rows, int *cols);

#define COMPLETE_MAX 2000

/* Candidates for the text between `start` and the cursor. */
struct complete_list {
	size_t start;	/* byte offset; preset to the cursor */
	size_t python;	/* byte offset at which Python begins */
	bool is_python; /* or words of a command */
	bool whole;	/* a beginning that candidates share is not put in */
	char **items;
	size_t count;
	size_t dropped; /* candidates not taken: unsafe, or too many */
};

/* Add a candidate (copied). One that is not valid UTF-8, or holds controls or
 * invisible characters, is counted and dropped. 0, or -1. */
int complete_add(struct complete_list *c, const char *s, size_t n);
/* Add the candidates of a guest's answer, for Python that begins at c->python
 * and is typed up to c->start: a line with the number of typed bytes of each
 * candidate, then one candidate a line. 0, or -1 (no such answer). */
int complete_answer(struct complete_list *c, const char *answer, size_t n);
/* Drop the candidates that do more than continue the word between c->start and
 * the cursor. The editor does so with every list it gets. */
void complete_check(struct complete_list *c, const char *text, size_t cursor);
void complete_free(struct complete_list *c);

/* ---- history.c ---- */

/*
 * In memory always; in a file once one is attached: one escaped record a
 * line, appended under a lock, so that sessions side by side lose nothing.
 */

#define HISTORY_ENTRY_MAX ((size_t)64 << 10) /* bytes of one cell */
#define HISTORY_FILE_MAX ((size_t)1 << 20)   /* compacted to half of it */

/* An empty history without a file; NULL when there is no memory. */
struct history *history_new(void);
/* Close the file and free everything; NULL is allowed. */
void history_free(struct history *h);

/* Open the directory `path`, and make the missing ones on the way with mode
 * 0700. Descriptor, or -1: it is not ours, or others may write there. */
int history_open_dir(const char *path, struct err *e);
/* Keep the history in the file `name` of the directory `dirfd` (a duplicate
 * is kept; nothing outside it is ever opened). The file need not exist, and is
 * read when it is first needed. 0, or -1 and the history stays in memory: the
 * file is a link, not regular, another user's, hard-linked, or too large. */
int history_attach(
	struct history *h, int dirfd, const char *name, struct err *e);
/* Attach the file at `path`, and make missing directories. */
int history_attach_path(struct history *h, const char *path, struct err *e);

/* Remember a cell of `n` bytes, unless it is empty or the same as the last.
 * 0, or -1: it could not be written (it is remembered all the same). */
int history_add(struct history *h, const char *s, size_t n, struct err *e);
/* The number of entries. The first call reads the file. */
size_t history_count(struct history *h);
/* Entry `i`, 0 the oldest, NUL-terminated (borrowed until the next add), and
 * its length. NULL past the end. */
const char *history_get(struct history *h, size_t i, size_t *n);
/* The index of the newest entry before `before` that contains `s`, or
 * (size_t)-1. */
size_t history_find(struct history *h, size_t before, const char *s, size_t n);
/* Lines of the file that are no entries. */
size_t history_skipped(const struct history *h);

#endif
