/* SPDX-License-Identifier: MIT */
/*
 * impl.h - what the files of the editor share
 *
 *	editor.c          open, close, read
 *	editor_engine.c   libedit: modes, buffer, dispatch
 *	editor_input.c    waiting, bytes to keys, pastes
 *	editor_edit.c     commands that move and change
 *	editor_enter.c    Enter and Tab at a line's start: run, new line, indent
 *	editor_recall.c   history and the search in it
 *	editor_complete.c Tab
 *	editor_view.c     the drawing
 *	editor_plain.c    no terminal, or a dumb one
 */
#ifndef REPL_EDIT_IMPL_H
#define REPL_EDIT_IMPL_H

#include <stdbool.h>

#include "editor.h"
#include "repl/term/keys.h"
#include "repl/text/layout.h"
#include "repl/text/strbuf.h"
#include "repl/text/wide.h"
#include "undo.h"

#define EDITOR_INDENT 4

/* The text being edited; borrowed from the engine until the next change. */
struct span {
	const wchar_t *s;
	size_t n;
	size_t cursor;
};

/* What a command wants to happen next. */
enum editor_step { STEP_GO_ON, STEP_ACCEPT, STEP_END };

struct editor_watch {
	int fd; /* -1: free */
	int (*cb)(void *ctx);
	void *ctx;
};

/* What is on the screen of the cell being edited. */
struct view {
	bool painted;
	int rows, cols; /* of the terminal */
	int cursor_row; /* of the painted block, 0 its first */
	size_t top;	/* row of the layout that is shown first */
	size_t n;	/* rows painted */
	int *widths;	/* of each painted row, to see through a reflow */
	size_t widths_cap;
	struct layout layout;
	struct strbuf frame; /* the last one, not to draw it twice */
	unsigned char *attr;
	size_t attr_cap;
};

struct search {
	bool active, failed;
	struct wide pattern;
	struct wide old; /* the text before */
	size_t old_cursor;
	size_t at; /* the entry shown */
};

struct editor {
	int in, out;
	bool plain, out_is_tty, colour, reading;
	size_t max_bytes;
	struct wide prompt, prompt2;
	struct history *history;
	struct engine *engine;
	struct view view;

	/* input */
	struct keys keys;
	unsigned char queue[4096];
	size_t queue_at, queue_end;
	bool burst; /* one read brought more than a person types */
	struct key ready[KEYS_OUT_MAX];
	int ready_at, ready_end;
	struct key key; /* the one being handled */
	struct wide paste;
	bool paste_cut; /* it was too long and is refused */
	struct editor_watch watch[EDITOR_WATCH_MAX];
	bool interrupted;

	/* editing */
	struct undo undo;
	struct wide kill;
	int last_code;	 /* of the command before this one */
	int goal;	 /* column that Up and Down keep to */
	char status[80]; /* a line of ours below the cell, until the next key */
	size_t entry;	 /* of the history, its count: the person's own text */
	struct wide draft; /* that text, while an entry is shown */
	bool recalled;	   /* the text is an entry, unchanged */
	struct search search;

	/* completion */
	int (*complete)(void *ctx, const char *text, size_t n, size_t cursor,
		struct completions *out);
	void *complete_ctx;
	bool (*takes_cell)(void *ctx, const char *name, size_t n);
	void *takes_cell_ctx;

	/* the read under way */
	enum editor_result result;
	const struct wide *asked; /* plain: the prompt that was written last */
	bool unasked;		  /* something was printed below it since */
	struct strbuf ahead;	  /* bytes that were typed where nobody read */
	struct wide kept;	  /* text for the next read to begin with */
	size_t kept_cursor;
	bool kept_eof; /* Ctrl-D was typed ahead: it ends that read */
	struct err *err;
};

/* editor_engine.c: the only file that knows libedit. */
int engine_open(struct editor *ed, struct err *e);
void engine_close(struct editor *ed);
/* Whether it can serve a terminal of this size. */
bool engine_can(int rows, int cols);
/* Edit until a command ends it. 0, or -1 (modes of the terminal). */
int engine_run(struct editor *ed);
struct span engine_text(const struct editor *ed);
void engine_move(struct editor *ed, size_t to);
/* Replace [from, to) by `n` characters; the cursor is behind them then. */
int engine_replace(
	struct editor *ed, size_t from, size_t to, const wchar_t *s, size_t n);

/* editor_input.c */
/* The next key, drawing the cell and serving the watchers while waiting. With
 * KEY_STOP the result of the read has been set. */
struct key input_key(struct editor *ed);
/* Wait for bytes: 1 there are, 0 the time is up, -1 the result is set. */
int input_fill(struct editor *ed, int timeout_ms);
/* Whether bytes behind this key are waiting already. */
bool input_has_more(const struct editor *ed);

/* editor_edit.c */
/* Do what the key means. */
enum editor_step edit_key(struct editor *ed, struct key key);
/* Insert at the cursor, within the limit. */
void edit_insert(struct editor *ed, const wchar_t *s, size_t n);
/* Replace the whole text. */
void edit_set(struct editor *ed, const wchar_t *s, size_t n, size_t cursor);
size_t edit_line_start(const struct span *t, size_t at);
size_t edit_line_end(const struct span *t, size_t at);
void edit_status(struct editor *ed, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* editor_enter.c */
enum editor_step enter_key(struct editor *ed);
enum editor_step enter_newline(struct editor *ed);
enum editor_step enter_tab(struct editor *ed);
enum editor_step enter_back_tab(struct editor *ed);
/* Whether Enter at the end of this text runs it. */
bool enter_runs(const struct editor *ed, const wchar_t *s, size_t n);
/* The text without the blank lines at its end. */
size_t enter_trim(const wchar_t *s, size_t n);

/* editor_recall.c */
void recall_reset(struct editor *ed);
enum editor_step recall_older(struct editor *ed);
enum editor_step recall_newer(struct editor *ed);
enum editor_step recall_search(struct editor *ed);
/* A key during a search: true when it was one of the search's own. */
bool recall_search_key(struct editor *ed, struct key key);

/* editor_complete.c */
enum editor_step complete_key(struct editor *ed);

/* editor_view.c */
void view_size(struct editor *ed);
/* Draw the cell, if it looks otherwise than it does already. */
void view_draw(struct editor *ed);
/* Draw it for the last time, with `tail` behind it, and go below. */
void view_finish(struct editor *ed, const char *tail);
/* Take it off the screen. */
void view_erase(struct editor *ed);
/* The terminal has another size. */
void view_resized(struct editor *ed);
void view_clear_screen(struct editor *ed);
void view_free(struct editor *ed);
void view_write(struct editor *ed, const char *s, size_t n);

/* editor_plain.c */
enum editor_result plain_read(struct editor *ed, struct wide *cell);
/* Write the prompt again where something stands below it now. */
void plain_draw(struct editor *ed);

#endif
