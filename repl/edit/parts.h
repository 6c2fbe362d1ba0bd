/* SPDX-License-Identifier: MIT */
/*
 * parts.h - the parts of the editor
 *
 *	editor.c    open, read, close; watched descriptors, text typed ahead
 *	vi.c        letters that are commands
 *	edit.c      what each key does; Enter, the history and its search
 *	complete.c  Tab behind a word
 *	call.c      the parameters of the call that the cursor is in
 *	engine.c    libedit: the terminal's modes and the text
 *	view.c      the drawing
 *	undo.c      earlier texts
 *
 * Each part is a struct. Only one file writes its fields, but for what
 * editor_open() takes from its options; the other files may read them. Calls go
 * down this list, but for what editor.c hands the engine to call back.
 */
#ifndef REPL_EDIT_PARTS_H
#define REPL_EDIT_PARTS_H

#include <stdbool.h>
#include <wctype.h>

#include "repl/edit/editor.h"
#include "repl/term/term.h"
#include "repl/text/text.h"

static inline bool edit_is_word(wchar_t c)
{
	return iswalnum((wint_t)c) || c == '_';
}

/* ---- undo.c: the differences between a text and its earlier versions ---- */

#define UNDO_MAX 200
#define UNDO_CHARS_MAX (4u << 20) /* removed characters kept, in all */

struct undo_edit {
	size_t at;
	struct utf8_wide removed; /* the characters that were there */
	size_t inserted;	  /* how many characters replaced them */
	size_t cursor;		  /* where the cursor was before */
	bool typed;		  /* letters of one word are undone together */
};

/* All zero is an empty text without a past. */
struct undo {
	struct undo_edit edits[UNDO_MAX];
	size_t n;
	size_t chars;
	struct utf8_wide now;
	size_t cursor;
};

/* A read begins with this text: it is no change. The earlier versions stay when
 * the text is the last one noted. 0, or -1 (no memory). */
int undo_begin(struct undo *u, const wchar_t *s, size_t n, size_t cursor);

/* Take note of the text after a command. 0, or -1 (no memory). */
int undo_note(struct undo *u, const wchar_t *s, size_t n, size_t cursor);

/* Take back the last change: true, and the text is u->now, the cursor
 * u->cursor. False when there is no change (or no memory for it). */
bool undo_pop(struct undo *u);
/* Forget the past and release the memory. */
void undo_free(struct undo *u);

/* The text, as the engine lends it until the next change. */
struct engine_text {
	const wchar_t *s;
	size_t n;
	size_t cursor;
};

/* ---- view.c ---- */

#define VIEW_STATUS_MAX 1024

struct view {
	int out;
	bool out_is_tty, colour;
	struct utf8_wide prompt, prompt2;
	char status[VIEW_STATUS_MAX]; /* a line of ours below the cell */
	struct utf8_wide hint;	      /* faint, behind the text */
	struct utf8_wide note;	      /* faint, below it, without a status */
	bool notes;	/* hints are shown; a row is kept for notes */
	size_t pair[2]; /* two brackets of the text */
	bool paired;

	/* the cell on the screen */
	bool painted;
	int rows, cols; /* of the terminal */
	int cursor_row; /* counted from the first painted row */
	size_t top;	/* the layout's row that is shown first */
	size_t n;	/* painted rows */
	int *widths;	/* of each painted row, to follow a reflow */
	size_t widths_cap;
	struct layout layout;
	struct strbuf frame; /* the last one, so that it is not drawn twice */
	unsigned char *colours;
	size_t colours_cap;

	/* lines read plainly */
	const struct utf8_wide *asked; /* the last prompt written; NULL: none */
	bool covered; /* something was printed below it since */
};

/* 0, or -1 (no memory). */
int view_set_prompt(struct utf8_wide *prompt, const char *text);
void view_free(struct view *v);
/* Ask the terminal for its size; 24 by 80 where it does not know. */
void view_size(const struct view *v, int *rows, int *cols);
/* Set the line below the cell; an empty one is not shown. */
void view_status(struct view *v, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Show this behind the text, where there are colours: it can be told from the
 * text by nothing else. */
void view_hint(struct view *v, const char *s, size_t n);
/* Show this below the text while there is no status, in the row kept for it:
 * then it moves no other row. */
void view_note(struct view *v, const wchar_t *s, size_t n);
/* Mark these two characters of the text; NULL: none. */
void view_pair(struct view *v, const size_t *pair);
/* Draw the cell, unless the screen shows it already. */
void view_draw(struct view *v, const struct engine_text *t);
/* Draw it for the last time, with `tail` behind it, and go below. */
void view_finish(struct view *v, const struct engine_text *t, const char *tail);
/* Take the cell off the screen. */
void view_erase(struct view *v);
/* The terminal has another size. */
void view_resized(struct view *v);
void view_clear_screen(struct view *v);
/* Print above the cell, or below a plain prompt. */
void view_print(struct view *v, const char *s, size_t n);
/* Write a plain prompt, and the text that the cell begins with (or NULL). */
void view_ask(struct view *v, const struct utf8_wide *prompt,
	const struct utf8_wide *t);
/* Write the prompt again if something covers it. */
void view_ask_again(struct view *v);
/* No plain prompt is waiting for an answer. */
void view_asked(struct view *v);
void view_write(struct view *v, const char *s, size_t n);

/* ---- engine.c: the only file that knows libedit ---- */

struct engine;

/* `edit` handles keys until the read is over. 0, or -1. */
int engine_open(struct engine **en, int in, int out, size_t max_bytes,
	void (*edit)(void *ctx), void *ctx, struct err *e);
void engine_close(struct engine *en);
/* True if libedit can serve a terminal of this size. */
bool engine_can(int rows, int cols);
/* Call `edit` in the modes of an editor, with the text to begin with. 0, or -1
 * (the terminal's modes). */
int engine_run(struct engine *en, struct engine_text start);
struct engine_text engine_text(const struct engine *en);
size_t engine_line_start(const struct engine_text *t, size_t at);
size_t engine_line_end(const struct engine_text *t, size_t at);
void engine_move(struct engine *en, size_t to);
/* Replace [from, to) by `n` characters; the cursor goes behind them. 0, or -1
 * (no memory). */
int engine_replace(
	struct engine *en, size_t from, size_t to, const wchar_t *s, size_t n);
/* Replace the whole text. */
void engine_set(struct engine *en, const wchar_t *s, size_t n, size_t cursor);
/* True if `n` more characters keep the cell within its limit. */
bool engine_fits(const struct engine *en, const wchar_t *s, size_t n);

/* ---- edit.c ---- */

struct recall {
	size_t entry;		/* shown; its count: the person's own text */
	struct utf8_wide draft; /* that text, while an entry is shown */
	size_t draft_cursor;
	bool recalled; /* the text began as an entry */

	bool searching;
	struct utf8_wide pattern;
	struct utf8_wide old; /* the text before the search */
	size_t old_cursor;
	size_t found; /* the entry that matched */

	struct strbuf rest; /* of the entry that the text begins as */
};

struct edit {
	struct undo undo;
	struct utf8_wide killed;
	struct key key;		   /* the one being handled */
	enum editor_result result; /* of this key */
	int last_code;		   /* of the one before */
	int goal;      /* the column that Up and Down keep to; -1: this one */
	size_t unseen; /* blanks before the cursor, ours and not drawn yet */
};

/* ---- complete.c ---- */

/* The candidates that were listed, while Tab puts them in one after another. */
struct walk {
	struct complete_list list;
	size_t start; /* of the word, in characters */
	size_t at;    /* the one in the text; the list's count: none yet */
};

/* ---- call.c ---- */

struct call_hint {
	struct utf8_wide name; /* what is called; empty: nothing */
	bool asked;
};

/* ---- editor.c ---- */

#define INPUT_QUEUE 4096

struct input_watch {
	int fd; /* -1: free */
	int (*cb)(void *ctx);
	void *ctx;
};

struct input {
	unsigned char queue[INPUT_QUEUE];
	size_t queue_at, queue_end;
	struct keys keys;
	struct key ready[KEYS_OUT_MAX];
	int ready_at, ready_end;
	struct utf8_wide paste; /* the last one */
	bool paste_cut;		/* it was too long and is refused */

	struct input_watch watch[EDITOR_WATCH_MAX];
	bool interrupted;
	struct strbuf ahead; /* keys typed between reads, behind the queue */
	bool echoed;	     /* by the terminal: the queue */
};

/* ---- vi.c: letters that are commands ---- */

struct vi {
	bool command; /* Escape was pressed: letters are commands */
	int op;	      /* d or c, which wait for a place; or 0 */
};

struct editor {
	struct editor_opts opts; /* but for prompts, output and colour */
	bool plain;		 /* the cursor cannot be addressed */
	bool lines;		 /* lines are read now, not keys */
	struct err *err;	 /* of the read under way */
	struct view view;
	struct input input;
	struct engine *engine; /* NULL when plain */
	struct recall recall;
	struct edit edit;
	struct vi vi;
	struct walk walk;
	struct call_hint call;

	enum editor_result result; /* of the drawn read under way */
	struct utf8_wide kept;	   /* text for the next read to begin with */
	size_t kept_cursor;
};

/* Do a key that is a command of vi. False: it is none. */
bool vi_key(struct editor *ed, const struct key *key);
/* A key goes to a place, removes the text up to a place, does anything else, or
 * ends the read. */
enum edit_what { EDIT_RUN, EDIT_MOVE, EDIT_CUT, EDIT_KILL };

struct edit_command {
	enum edit_what what;
	size_t (*to)(const struct engine_text *t);
	void (*run)(struct editor *ed);
	enum editor_result ends;
};

size_t edit_line_start(const struct engine_text *t);
size_t edit_line_end(const struct engine_text *t);
size_t edit_text_end(const struct engine_text *t);
const struct edit_command *edit_command(int code);
void edit_do(struct editor *ed, const struct edit_command *c);

/* A drawn read begins with this text: forget the state of the read before. */
void edit_begin(struct editor *ed, const struct engine_text *start);
void edit_free(struct editor *ed);
/* A key was pressed: false when the search has used it. Otherwise the caller
 * does the key's command, then calls edit_end_key(). The result of the read is
 * in ed->edit.result. */
bool edit_begin_key(struct editor *ed, const struct key *key);
void edit_end_key(struct editor *ed);
/* Before the text is drawn: find the brackets at the cursor, and hints. */
void edit_look(struct editor *ed);
/* True if Enter at the end of this text runs it. */
bool edit_runs(const struct editor *ed, const wchar_t *s, size_t n);
/* The length of the text without the blank lines at its end. */
size_t edit_trim(const wchar_t *s, size_t n);
/* Find out which call the cursor is in; Python begins at `python`. */
void call_look(struct editor *ed, size_t python);
/* Once that is drawn: ask for the parameters. */
void call_ask(struct editor *ed);
void call_answer(struct editor *ed, const char *s, size_t n);
void call_forget(struct editor *ed);
/* True of a guest's text that is one line, looks like no frame line, and has no
 * invisible characters. */
bool complete_is_safe(const char *s, size_t n);
/* Offer what may stand before the cursor. */
void complete_key(struct editor *ed);
/* Put the next (1) or the previous (-1) of the candidates listed into the text.
 * False: none are listed. */
bool complete_walk(struct editor *ed, int step);

#endif
