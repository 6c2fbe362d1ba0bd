/* SPDX-License-Identifier: MIT */
/*
 * parts.h - the parts of the editor
 *
 *	editor.c    open, read, close; watched descriptors, keys typed ahead
 *	vi.c        vi's command mode
 *	edit.c      the command of each key; Enter, indentation
 *	recall.c    earlier cells
 *	call.c      the parameters of the call that the cursor is in
 *	complete.c  Tab behind a word
 *	kill.c      the texts that were cut
 *	change.c    changes to the text, word by word
 *	engine.c    libedit: the terminal's modes and the text
 *	view.c      the drawing
 *	undo.c      earlier texts
 *
 * Each part is a struct. One file writes its fields, and the others may read
 * them; editor.c also sets the fields that depend on options and terminal. A
 * file calls only files below it in this list; the engine calls editor.c back.
 */
#ifndef REPL_EDIT_PARTS_H
#define REPL_EDIT_PARTS_H

#include <stdbool.h>
#include <wctype.h>

#include "repl/edit/editor.h"
#include "repl/term/term.h"
#include "repl/text/text.h"

/* True of a mark that is drawn on the character before it. */
static inline bool edit_is_mark(wchar_t c)
{
	return c >= 0x300 && wcwidth(c) == 0;
}

static inline bool edit_is_word(wchar_t c)
{
	return iswalnum((wint_t)c) || c == '_' || edit_is_mark(c);
}

/* ---- undo.c: the differences between a text and its earlier versions ---- */

#define UNDO_MAX 200
#define UNDO_CHARS_MAX (4u << 20) /* characters kept, in all */

struct undo_edit {
	size_t at;
	/* The characters that are not in the text: those replaced, or while the
	 * edit is undone, those that had replaced them. */
	struct utf8_wide removed;
	size_t inserted; /* how many characters are in their place */
	size_t cursor;	 /* where the cursor was before */
	bool typed;	 /* one character; a word is undone at once */
};

/* All zero is an empty text without earlier versions. */
struct undo {
	struct undo_edit edits[UNDO_MAX];
	size_t n;
	size_t undone; /* edits behind those, which undo_redo() does again */
	size_t chars;
	struct utf8_wide now;
	size_t cursor;
};

/* A read begins with this text: it is no change. The earlier versions stay when
 * the text is the last one recorded. 0, or -1 (no memory). */
int undo_begin(struct undo *u, const wchar_t *s, size_t n, size_t cursor);

/* Record the text after a command. `typed`: a key that inserts its character,
 * which is undone with the word. 0, or -1: no memory, or too much removed. */
int undo_note(
	struct undo *u, const wchar_t *s, size_t n, size_t cursor, bool typed);

/* Take back the last change. True: the text is u->now, the cursor u->cursor.
 * False: there is no change, or no memory. */
bool undo_pop(struct undo *u);
/* Do the change again that was taken back last, unless undo_note() has recorded
 * another one since. As undo_pop(). */
bool undo_redo(struct undo *u);
/* Forget all versions and release the memory. */
void undo_free(struct undo *u);

/* The engine's text, borrowed until its next change. Units are characters. */
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
	struct utf8_wide prompt, prompt2, paste_prompt;
	bool pastes;	    /* paste_prompt stands before each line */
	struct strbuf lead; /* of the first row, in place of a prompt */
	int lead_width;
	char status[VIEW_STATUS_MAX]; /* our line below the cell */
	struct utf8_wide hint;	      /* faint, behind the text */
	struct utf8_wide note; /* faint, below the cell; a status hides it */
	bool notes;	       /* hints are shown; a row is kept for notes */
	size_t pair[2];	       /* offsets of a bracket and its match */
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
	struct strbuf frame; /* the last one drawn; an equal one is not */
	unsigned char *colours;
	size_t colours_cap;

	/* lines read plainly */
	const struct utf8_wide *asked; /* the last prompt written; NULL: none */
	bool covered; /* view_print() has written below that prompt */
};

/* 0, or -1 (no memory). */
int view_set_prompt(struct utf8_wide *prompt, const char *text);
/* Set the lead. 0, or -1: it does not fit on a row, or no memory. */
int view_set_lead(struct view *v, const char *s, size_t n);
void view_free(struct view *v);
/* Ask the terminal for its size; 24 by 80 if it does not know. */
void view_size(const struct view *v, int *rows, int *cols);
/* Set the line below the cell; an empty one is not shown. */
void view_status(struct view *v, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Show `s` faintly behind the text; "" ends it. Callers show a hint only in
 * colour: nothing else distinguishes it from the text. */
void view_hint(struct view *v, const char *s, size_t n);
/* Show `s` below the text while there is no status. view_draw() keeps a row for
 * it, so that it moves no other row. */
void view_note(struct view *v, const wchar_t *s, size_t n);
/* Mark the two characters at these offsets of the text; NULL: none. */
void view_pair(struct view *v, const size_t *pair);
/* Draw the cell, unless the screen shows it already. */
void view_draw(struct view *v, const struct engine_text *t);
/* Draw the whole cell a last time, with `tail`, and go to the row below. */
void view_finish(struct view *v, const struct engine_text *t, const char *tail);
/* Take the cell off the screen. */
void view_erase(struct view *v);
/* The cell is not on the screen any more: draw it where the cursor is. */
void view_forget(struct view *v);
/* Read the terminal's new size; erase the cell, whose rows are wrapped anew. */
void view_resized(struct view *v);
void view_clear_screen(struct view *v);
/* Print above the cell, or below a plain prompt. */
void view_print(struct view *v, const char *s, size_t n);
/* Write a plain prompt (borrowed until view_asked()), and a text or NULL. */
void view_ask(struct view *v, const struct utf8_wide *prompt,
	const struct utf8_wide *t);
/* Write the prompt again if view_print() has written below it. */
void view_ask_again(struct view *v);
/* Forget the plain prompt: the read is over. */
void view_asked(struct view *v);
void view_write(struct view *v, const char *s, size_t n);

/* ---- engine.c: the only file that uses libedit ---- */

struct engine;

/* Start libedit; `max_bytes` bounds the cell. edit(ctx) handles all keys of a
 * read. 0, or -1 with e; the caller closes *en after -1, too. */
int engine_open(struct engine **en, int in, int out, size_t max_bytes,
	void (*edit)(void *ctx), void *ctx, struct err *e);
void engine_close(struct engine *en);
/* True if libedit can serve a terminal of this size. */
bool engine_can(int rows, int cols);
/* Set the terminal's modes for editing, put `start` into the buffer and call
 * `edit`. 0, or -1: the modes cannot be set. */
int engine_run(struct engine *en, struct engine_text start);
struct engine_text engine_text(const struct engine *en);
size_t engine_line_start(const struct engine_text *t, size_t at);
size_t engine_line_end(const struct engine_text *t, size_t at);
void engine_move(struct engine *en, size_t to);
/* Replace the characters [from, to) by `n` others; the cursor goes behind them.
 * 0, or -1 (no memory). */
int engine_replace(
	struct engine *en, size_t from, size_t to, const wchar_t *s, size_t n);
/* Replace the whole text, and set the cursor. */
void engine_set(struct engine *en, const wchar_t *s, size_t n, size_t cursor);
/* True if the text with `n` characters in the place of [from, to) is at most
 * `max_bytes` of UTF-8. */
bool engine_fits(const struct engine *en, size_t from, size_t to,
	const wchar_t *s, size_t n);

/* ---- recall.c ---- */

struct recall {
	size_t entry;		/* shown; (size_t)-1: the person's own text */
	struct utf8_wide draft; /* the person's text, while an entry is shown */
	size_t draft_cursor;
	bool recalled; /* the text was taken from an entry */

	bool searching;
	struct utf8_wide pattern;
	struct utf8_wide old; /* the text before the search */
	size_t old_cursor;
	size_t found; /* the entry that matched; their count: none yet */

	size_t word_entry; /* the entry that recall_last_word() took a word of
			    */
	size_t word;	   /* the length of that word */

	struct strbuf rest; /* suggested: how an entry that begins so goes on */
};

/* ---- edit.c ---- */

struct edit {
	struct undo undo;
	struct key key;		   /* the key being handled */
	enum editor_result result; /* of this key */
	int last_code;		   /* code of the key before */
	bool pastes;	  /* F3: each key that types is text as it stands */
	size_t pasted_at; /* where that began */
	int goal;      /* column that Up and Down keep to; -1: the cursor's */
	size_t unseen; /* blanks we inserted before the cursor, not drawn yet */
};

/* ---- kill.c ---- */

#define KILLS_MAX 60
#define KILL_CHARS_MAX (1u << 20)

struct kills {
	/* The text cut last is the first, until Alt-Y turns the ring. */
	struct utf8_wide ring[KILLS_MAX];
	size_t n;
	size_t chars;  /* of all */
	size_t yanked; /* so many before the cursor were put back last */
};

/* ---- complete.c ---- */

/* The listed candidates; each Tab after that inserts the next one. */
struct walk {
	struct complete_list list;
	size_t start; /* offset of the word in characters */
	size_t at;    /* candidate in the text; list.count: none yet */
};

/* ---- call.c ---- */

struct call_hint {
	struct utf8_wide name; /* the callable's dotted name; empty: none */
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
	struct utf8_wide paste; /* the last paste */
	bool paste_cut;		/* it is too long, and edit.c refuses it */

	struct input_watch watch[EDITOR_WATCH_MAX];
	bool interrupted;
	struct strbuf ahead; /* keys typed between reads, behind the queue */
	bool echoed;	     /* the terminal has echoed the queue */
};

/* ---- vi.c: letters that are commands ---- */

struct vi {
	bool command; /* Escape was pressed: letters are commands */
	int op;	      /* d or c, waiting for a motion; or 0 */
};

struct editor {
	struct editor_opts opts; /* the view has prompts, output and colour */
	bool plain;		 /* the cursor cannot be addressed */
	bool lines;		 /* this read takes lines, not keys */
	struct err *err;	 /* of the read under way */
	struct view view;
	struct input input;
	struct engine *engine; /* NULL when plain */
	struct recall recall;
	struct edit edit;
	struct kills kills;
	struct vi vi;
	struct walk walk;
	struct call_hint call;

	enum editor_result result; /* of the drawn read under way */
	struct utf8_wide kept;	   /* text for the next read to begin with */
	size_t kept_cursor;
};

/* Do a key of vi's command mode. False: do the key's usual command. */
bool vi_key(struct editor *ed, const struct key *key);
/* EDIT_MOVE goes to to(), EDIT_CUT removes the text up to it, EDIT_KILL also
 * keeps that for Ctrl-Y. EDIT_RUN calls run(), if any. `ends` ends the read. */
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

/* Begin a drawn read with this text: forget the state of the read before. */
void edit_begin(struct editor *ed, const struct engine_text *start);
/* The cell is complete or discarded: the next one begins with typed keys. */
void edit_end(struct editor *ed);
void edit_free(struct editor *ed);
/* Begin to handle a key. False: the history search has used it. Otherwise the
 * caller does the key's command, then calls edit_end_key(). ed->edit.result is
 * the result of the read. */
bool edit_begin_key(struct editor *ed, const struct key *key);
void edit_end_key(struct editor *ed);
/* Find the brackets at the cursor, and hints, before the text is drawn. */
void edit_look(struct editor *ed);
/* True if Enter at the end of this text runs it. */
bool edit_runs(const struct editor *ed, const wchar_t *s, size_t n);
/* The length of the text without the blank lines at its end. Characters. */
size_t edit_trim(const wchar_t *s, size_t n);
/* A read begins. */
void recall_begin(struct editor *ed);
void recall_free(struct recall *re);
/* Show the nearest entry after the one shown (`back`: before it) that differs
 * from the text shown and begins with the person's own text up to its cursor
 * (`any`: each entry). Behind the last entry comes the person's own text. */
void recall_step(struct editor *ed, bool back, bool any);
/* The same with `any`. */
void recall_older(struct editor *ed);
void recall_newer(struct editor *ed);
/* Suggest how an earlier cell goes on: the view shows one line, and
 * recall_take_suggestion() inserts all. False: there is nothing to take. */
void recall_suggest(struct editor *ed);
bool recall_take_suggestion(struct editor *ed);
/* Put the last word of the newest entry in. `again`: right behind such a word,
 * which the last word of the entry before its own replaces. */
void recall_last_word(struct editor *ed, bool again);
void recall_begin_search(struct editor *ed);
/* Handle a key during a search. True: the search has used it. *result becomes
 * EDITOR_CELL if the entry found is to run. */
bool recall_search_key(
	struct editor *ed, const struct key *key, enum editor_result *result);

/* Keep cut characters: alone, or with the text cut last, of which they are the
 * beginning or the end. */
enum kill_where { KILL_ALONE, KILL_BEFORE, KILL_BEHIND };
void kill_keep(struct kills *k, const wchar_t *s, size_t n, enum kill_where to);
/* Put the first text of the ring in. */
void kill_yank(struct editor *ed);
/* Right behind kill_yank() or this function: put the text cut before it in the
 * place of that text. Behind the oldest comes the newest. */
void kill_yank_older(struct editor *ed);
void kill_free(struct kills *k);

/* Say that the text has its full length, and what is therefore not done. */
void change_say_full(struct editor *ed, const char *what);
/* Put `n` characters in the place of [from, to), if the cell may be so long;
 * else say so. The cursor goes behind them. True: the text has changed. */
bool change_replace(
	struct editor *ed, size_t from, size_t to, const wchar_t *s, size_t n);
/* The same at the cursor. */
bool change_insert(struct editor *ed, const wchar_t *s, size_t n);
/* The start of the word before the cursor; the end of the one behind it. */
size_t change_word_left(const struct engine_text *t);
size_t change_word_right(const struct engine_text *t);
/* Change the letters up to the end of the word behind the cursor. */
void change_to_upper(struct editor *ed);
void change_to_lower(struct editor *ed);
/* A capital, and small letters behind it. */
void change_to_title(struct editor *ed);
/* Make the letter at the cursor a capital, or a capital small. */
void change_swap_case(struct editor *ed);
/* Exchange the word that ends behind the cursor and the one before that; the
 * cursor goes behind both. At the end of the text, the last two. */
void change_swap_words(struct editor *ed);
/* Exchange the characters before and at the cursor; at the end of the line, the
 * last two. */
void change_swap_characters(struct editor *ed);

/* Find the call that the cursor is in; Python begins at offset `python`. */
void call_look(struct editor *ed, size_t python);
/* After drawing: ask the guest for the parameters, once for each call. */
void call_ask(struct editor *ed);
void call_answer(struct editor *ed, const char *s, size_t n);
void call_forget(struct editor *ed);
/* True if a guest's text is one line of visible characters without the bar that
 * begins frame lines. */
bool complete_is_safe(const char *s, size_t n);
/* Complete the word before the cursor, or list its candidates. */
void complete_key(struct editor *ed);
/* Insert the next (1) or the previous (-1) of the listed candidates. False:
 * none are listed. */
bool complete_walk(struct editor *ed, int step);

#endif
