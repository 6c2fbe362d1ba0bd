/* SPDX-License-Identifier: MIT */
/*
 * editor.h - the line editor and its history
 *
 *	editor.c	reads a cell of Python, or a command
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
 * The editor draws the whole cell if the terminal can address its cursor, else
 * it reads plain lines. The same rules end a cell in both modes.
 *
 * The editor handles no signals. The caller keeps SIGINT, SIGQUIT and SIGTSTP
 * blocked or ignored, because a cooked tty still makes signals of their keys,
 * and reports SIGINT and SIGWINCH to the editor.
 */

enum editor_result {
	EDITOR_GO_ON,	  /* the read is not over; never returned */
	EDITOR_CELL,	  /* a cell to run; may be empty */
	EDITOR_INTERRUPT, /* Ctrl-C; the text is discarded */
	EDITOR_EOF,	  /* Ctrl-D on an empty cell, or the end of the input */
	EDITOR_SUSPEND,	  /* Ctrl-Z; the text is kept, and still shown */
	EDITOR_EVENT,	  /* a watcher returned 1; the text is kept */
	EDITOR_HELP,	  /* F1: show the help; the text is kept */
	EDITOR_HISTORY,	  /* F2: show the history; the text is kept */
	EDITOR_PROGRAM,	  /* Ctrl-X Ctrl-E: have a program edit the text, which
			   * is kept, and given as with EDITOR_CELL */
	EDITOR_HUP,	  /* the terminal hung up; the text is kept */
	EDITOR_ERROR,	  /* see the error */
};

struct editor_opts {
	const char *prompt, *prompt2; /* UTF-8, no escapes */
	bool colour;
	bool line;		 /* read a line of any text, below */
	bool vi;		 /* Escape begins vi's command mode */
	bool suggest;		 /* show the rest of a matching earlier cell,
				  * and the callable's parameters */
	size_t max_bytes;	 /* longest cell; 0: 1 MiB */
	struct history *history; /* borrowed; NULL: none */
	int in, out;		 /* borrowed */

	/* True if the command `name` takes a cell of Python. NULL is allowed
	 * here and in the next four. */
	bool (*takes_cell)(void *ctx, const char *name, size_t n);
	/* Adds the candidates for Tab behind a word to `out`: `text` is the
	 * whole cell, `cursor` a byte offset. May call editor_print_above().
	 * Returns 0, or another value: there are none. */
	int (*complete)(void *ctx, const char *text, size_t n, size_t cursor,
		struct complete_list *out);
	/* Asks the guest for the parameters of the callable with this dotted
	 * name. The caller may pass an answer to editor_signature() later. */
	void (*signature)(void *ctx, const char *name, size_t n);
	void (*keyed)(void *ctx); /* a key was pressed */
	/* The terminal gives no keys. True: another job has it, and the caller
	 * has put a file in its place, because the end of the read sets modes
	 * (EDITOR_EVENT). False: it hung up (EDITOR_HUP). */
	bool (*lost)(void *ctx);
	void *ctx; /* of all five */
};

/*
 * With opts.line, Enter ends the read wherever the cursor is, Tab inserts a
 * tab, and nothing in the text is Python or a command. The editor erases the
 * line when the read ends, however it ends: the caller has the tty echo it.
 * Such an editor only draws: do not call editor_read() while editor_is_plain().
 */

/* Open an editor. To draw, it opens /dev/null, and libedit reads the system's
 * terminfo; editor_move() opens both again. LC_CTYPE is a UTF-8 locale: widths
 * come from wcwidth(3). 0, or -1 with e. */
int editor_open(
	struct editor **ed, const struct editor_opts *opts, struct err *e);
/* NULL is allowed. */
void editor_close(struct editor *ed);

/* Read one cell. With EDITOR_CELL, *cell is its UTF-8 text (caller frees)
 * without the blank lines at its end, *n its bytes; otherwise *cell is NULL.
 * The terminal has the same modes before and after; if they are raw, it loses
 * and echoes no key between two reads. The caller adds the cell to the
 * history. */
enum editor_result editor_read(
	struct editor *ed, char **cell, size_t *n, struct err *e);

/* Move the bytes read behind the cell's last Enter to the end of `keys`. */
void editor_take_input(struct editor *ed, struct strbuf *keys);
/* Move the text that the last read has kept to the end of `text`. */
void editor_take_kept(struct editor *ed, struct strbuf *text);
/* Begin the next cell with this text (copied). 0, or -1 (no memory). */
int editor_prefill(struct editor *ed, const char *s, size_t n);
/* After EDITOR_PROGRAM: put this text (copied), which may be anybody's, in the
 * place of the kept one, as a change that undo takes back. 0, or -1: no memory,
 * or it is too long. */
int editor_change(struct editor *ed, const char *s, size_t n);
/* Take these `n` bytes (copied) as keys before those of the terminal. */
void editor_type(struct editor *ed, const char *s, size_t n);

/* Poll `fd` too while waiting for keys. On input or a hangup cb(ctx) reads
 * `fd`. cb may call editor_print_above() and editor_unwatch_fd(), and returns
 * 0, or 1 to make editor_read() return EDITOR_EVENT. 0, or -1: no room. */
#define EDITOR_WATCH_MAX 4
int editor_watch_fd(struct editor *ed, int fd, int (*cb)(void *ctx), void *ctx);
void editor_unwatch_fd(struct editor *ed, int fd);

/* Without a terminal: poll the watched descriptors once, and call back. */
void editor_wait(struct editor *ed);
/* Between reads, after the caller put another terminal behind `in` and `out`:
 * set the editor up for it, and keep the typed text. 0, or -1 with e: the
 * editor is unchanged. */
int editor_move(struct editor *ed, bool colour, struct err *e);

/* A callback calls these while a cell is read: after SIGWINCH, and after
 * SIGINT, which discards the text as Ctrl-C does; and editor_overdrawn() when
 * another program has drawn on the terminal. */
void editor_resized(struct editor *ed);
void editor_overdrawn(struct editor *ed);
void editor_interrupt(struct editor *ed);

/* Take the guest's answer to opts.signature(): "(a, b=1)". The editor shows it
 * below the cell if it is safe and the cursor is in a call. */
void editor_signature(struct editor *ed, const char *s, size_t n);

/* Print lines above the cell, or at the cursor if no cell is drawn. The caller
 * has made them safe for a terminal. */
void editor_print_above(struct editor *ed, const char *s, size_t n);
/* True if the next read takes plain lines, from a cooked terminal. */
bool editor_is_plain(struct editor *ed);
/* Set the prompt of the next reads. 0, or -1 (no memory). */
int editor_set_prompt(struct editor *ed, const char *prompt);
/* Begin the next reads behind `n` bytes of text and SGR (copied) that the row
 * shows already, in place of a prompt. The filter has passed these bytes, but a
 * guest wrote them: we draw only what we can measure. 0, or -1: they may not
 * fit on a row, or no memory. */
int editor_set_lead(struct editor *ed, const char *s, size_t n);
/* The size of the terminal; 24 by 80 if the terminal does not know it. */
void editor_size(const struct editor *ed, int *rows, int *cols);

#define COMPLETE_MAX 2000

/* Candidates for the text between `start` and the cursor. */
struct complete_list {
	size_t start;	/* byte offset; preset to the cursor */
	size_t python;	/* byte offset at which Python begins */
	bool is_python; /* else words of a command */
	bool whole;	/* Tab inserts no prefix that candidates share */
	char **items;
	size_t count;
	size_t dropped; /* candidates refused: unsafe, or too many */
	char why[120];	/* there are none: what Tab says; safe text */
};

/* Add a candidate (copied). An empty, unsafe or overlong one, and each behind
 * COMPLETE_MAX, is only counted in c->dropped. 0, or -1 (no memory). */
int complete_add(struct complete_list *c, const char *s, size_t n);
/* Add the candidates of a guest's answer: a line with the number of bytes that
 * each of them replaces before c->start, which moves back by it; then one
 * candidate a line. 0, or -1: a malformed answer, or no memory. */
int complete_answer(struct complete_list *c, const char *answer, size_t n);
/* Drop the candidates that do more than continue the word between c->start and
 * the cursor. complete_key() does so with every list. */
void complete_check(struct complete_list *c, const char *text, size_t cursor);
void complete_free(struct complete_list *c);

/* ---- history.c ---- */

/*
 * The history is in memory and, once attached, in a file: one escaped record a
 * line, appended under a lock, so that no session loses another's records.
 */

#define HISTORY_ENTRY_MAX ((size_t)64 << 10) /* bytes of a cell in the file */
#define HISTORY_FILE_MAX ((size_t)1 << 20)   /* bytes; then cut to half */

/* An empty history without a file; NULL when there is no memory. */
struct history *history_new(void);
/* Close the file and free everything; NULL is allowed. */
void history_free(struct history *h);

/* Open the directory `path`, and make missing ones with mode 0700. Descriptor
 * (caller closes), or -1: another user owns it, or others may write there. */
int history_open_dir(const char *path, struct err *e);
/* Keep the history in the file `name` of the directory `dirfd` (duplicated;
 * nothing outside it is ever opened). The file need not exist; the first call
 * that needs entries reads it. 0, or -1 and the history stays in memory: the
 * file is a link, not regular, hard-linked, too large, or others own it or may
 * write to it. */
int history_attach(
	struct history *h, int dirfd, const char *name, struct err *e);
/* Attach the file at the full path `path`, and make missing directories. */
int history_attach_path(struct history *h, const char *path, struct err *e);

/* Add a cell of `n` bytes, unless it is empty, no text or equal to the last. 0,
 * or -1: the file lacks it; memory has it unless memory is out. */
int history_add(struct history *h, const char *s, size_t n, struct err *e);
/* The number of entries. The first call reads the file. */
size_t history_count(struct history *h);
/* Entry `i`, 0 the oldest, NUL-terminated, and its length in bytes. The string
 * is borrowed, and valid until history_free(). NULL past the end. */
const char *history_get(struct history *h, size_t i, size_t *n);
/* The index of the newest entry before `before` that contains `s`, or
 * (size_t)-1. */
size_t history_find(struct history *h, size_t before, const char *s, size_t n);
/* Lines of the file that are no valid records; 0 until the file is read. */
size_t history_skipped(const struct history *h);

#endif
