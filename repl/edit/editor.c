/* SPDX-License-Identifier: MIT */
/*
 * editor.c - opening, reading, closing
 *
 * Runs in:   the front end
 * Holds:     the terminal's modes, while it reads
 * Trusts:    its caller about the descriptors and prompts
 * Leaves:    the terminal's modes and the signals as they were
 */
#include "editor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include "jail/base/err.h"
#include "parts.h"
#include "repl/term/output.h"
#include "repl/term/terminal.h"

#define MAX_BYTES ((size_t)1 << 20)

/* ---- what the parts call back ---- */

static void draw(void *ctx)
{
	struct editor *ed = ctx;
	struct engine_text t;

	if (ed->input.plain) {
		view_ask_again(&ed->view);
		return;
	}
	t = engine_text(ed->engine);
	view_draw(&ed->view, &t);
}

static void handle_keys(void *ctx)
{
	struct editor *ed = ctx;
	struct key key;

	do {
		ed->result = input_key(&ed->input, &key);
		if (ed->result == EDITOR_GO_ON)
			ed->result = edit_key(ed, &key);
	} while (ed->result == EDITOR_GO_ON);
}

/* ---- open and close ---- */

int editor_open(
	struct editor **out, const struct editor_opts *opts, struct err *e)
{
	struct editor *ed = calloc(1, sizeof(*ed));

	if (!ed)
		return err_errno(e, "editor");
	ed->max_bytes = opts->max_bytes ? opts->max_bytes : MAX_BYTES;
	ed->takes_cell = opts->takes_cell;
	ed->complete = opts->complete;
	ed->ctx = opts->ctx;
	ed->recall.history = opts->history;
	ed->view.out = opts->out;
	ed->view.out_is_tty = isatty(opts->out);
	ed->view.colour = opts->colour;
	input_init(&ed->input, opts->in, ed->max_bytes, draw, ed);
	/* Where the cursor cannot be addressed, lines are read. */
	ed->plain =
		!ed->view.out_is_tty || !isatty(opts->in) || terminal_is_dumb();
	if (view_set_prompts(&ed->view, opts->prompt, opts->prompt2) < 0) {
		editor_close(ed);
		return err_errno(e, "editor");
	}
	if (!ed->plain && engine_open(&ed->engine, opts->in, opts->out,
				  ed->max_bytes, handle_keys, ed, e) < 0) {
		editor_close(ed);
		return -1;
	}
	*out = ed;
	return 0;
}

void editor_close(struct editor *ed)
{
	if (!ed)
		return;
	engine_close(ed->engine);
	view_free(&ed->view);
	input_free(&ed->input);
	edit_free(&ed->edit);
	recall_free(&ed->recall);
	utf8_wide_free(&ed->kept);
	free(ed);
}

/* ---- reading ---- */

static enum editor_result cell_out(
	struct editor *ed, const wchar_t *s, size_t n, char **cell, size_t *len)
{
	*cell = utf8_from_wide(s, edit_trim(s, n), len);
	if (*cell)
		return EDITOR_CELL;
	err_set(ed->input.err, "editor: out of memory");
	return EDITOR_ERROR;
}

/* The engine has stopped: show how the read ended, take the text. */
static enum editor_result end_drawn(struct editor *ed, char **cell, size_t *n)
{
	struct engine_text t = engine_text(ed->engine);

	switch (ed->result) {
	case EDITOR_CELL:
		view_finish(&ed->view, &t, "");
		return cell_out(ed, t.s, t.n, cell, n);
	case EDITOR_INTERRUPT:
		view_finish(&ed->view, &t, "^C");
		break;
	case EDITOR_EOF:
		view_finish(&ed->view, &t, "");
		break;
	case EDITOR_EVENT:
		view_erase(&ed->view);
		utf8_wide_set(&ed->kept, t.s, t.n);
		ed->kept_cursor = t.cursor;
		break;
	case EDITOR_GO_ON:
	case EDITOR_HUP:
	case EDITOR_ERROR:
		break;
	}
	return ed->result;
}

static enum editor_result read_drawn(
	struct editor *ed, char **cell, size_t *n, struct err *e)
{
	static const char paste_on[] = "\033[?2004h";
	static const char paste_off[] = "\033[?2004l";
	enum editor_result r = EDITOR_ERROR;
	struct utf8_wide start = ed->kept;
	struct termios before;
	int ran;

	if (tcgetattr(ed->input.fd, &before) < 0) {
		r = errno == EIO ? EDITOR_HUP : EDITOR_ERROR;
		err_errno(e, "modes of the terminal");
		return r;
	}
	ed->kept = (struct utf8_wide){0};
	/* Without a terminal libedit asks for no key. */
	ed->result = EDITOR_ERROR;
	edit_begin(ed);
	recall_begin(ed);
	view_write(&ed->view, paste_on, sizeof(paste_on) - 1);
	ran = engine_run(ed->engine, start.s, start.n, ed->kept_cursor);
	utf8_wide_free(&start);
	if (ran < 0)
		err_set(e, "modes of the terminal");
	else
		r = end_drawn(ed, cell, n);
	view_write(&ed->view, paste_off, sizeof(paste_off) - 1);
	tcsetattr(ed->input.fd, TCSADRAIN, &before);
	return r;
}

static void say_too_long(struct editor *ed)
{
	struct output_look look = {ed->view.colour, ed->view.cols, "\n"};
	struct strbuf b = {0};
	char text[80];

	snprintf(text, sizeof(text), "a cell has at most %zu bytes: not run",
		ed->max_bytes);
	output_frame(&b, text, &look);
	view_write(&ed->view, b.s, b.n);
	strbuf_free(&b);
}

/* Lines up to the end of a cell, after those in `cell`. */
static enum editor_result read_lines(struct editor *ed, struct utf8_wide *cell)
{
	enum editor_result r;
	bool fits = true;

	view_ask(&ed->view, &ed->view.prompt, cell);
	for (;;) {
		r = input_line(&ed->input, cell, &fits);
		if (r == EDITOR_EOF && cell->n > 0)
			r = EDITOR_CELL; /* its last line has no end */
		if (r == EDITOR_GO_ON &&
			(!fits || edit_runs(ed, cell->s, cell->n - 1)))
			r = EDITOR_CELL;
		if (r != EDITOR_GO_ON)
			break;
		view_ask(&ed->view, &ed->view.prompt2, NULL);
	}
	view_asked(&ed->view);
	if (r == EDITOR_CELL && !fits) {
		say_too_long(ed);
		cell->n = 0;
	}
	return r;
}

static enum editor_result read_plain(struct editor *ed, char **cell, size_t *n)
{
	struct utf8_wide text = ed->kept;
	enum editor_result r;
	char rest[INPUT_QUEUE];

	ed->kept = (struct utf8_wide){0};
	r = read_lines(ed, &text);
	if (r == EDITOR_CELL) {
		r = cell_out(ed, text.s, text.n, cell, n);
	} else if (r == EDITOR_EVENT) {
		ed->kept = text;
		ed->kept_cursor = text.n;
		return r;
	} else if (r == EDITOR_INTERRUPT) {
		input_take(&ed->input, rest, sizeof(rest));
		view_write(&ed->view, "\n", 1);
	} else if (r == EDITOR_EOF && ed->view.out_is_tty) {
		view_write(&ed->view, "\n", 1);
	}
	utf8_wide_free(&text);
	return r;
}

/* Put the text typed ahead at the cursor of the text kept. True if Ctrl-D
 * came before any text. */
static bool take_ahead(struct editor *ed)
{
	struct utf8_wide text = {0}, old = ed->kept;
	size_t at = old.n ? ed->kept_cursor : 0;
	bool end = input_take_ahead(&ed->input, &text) && !old.n;

	if (text.n) {
		ed->kept = (struct utf8_wide){0};
		ed->kept_cursor = at + text.n;
		utf8_wide_add(&ed->kept, old.s, at);
		utf8_wide_add(&ed->kept, text.s, text.n);
		if (old.n > at)
			utf8_wide_add(&ed->kept, old.s + at, old.n - at);
		utf8_wide_free(&old);
	}
	utf8_wide_free(&text);
	return end;
}

enum editor_result editor_read(
	struct editor *ed, char **cell, size_t *n, struct err *e)
{
	bool plain = editor_is_plain(ed);

	*cell = NULL;
	*n = 0;
	if (take_ahead(ed))
		return EDITOR_EOF;
	input_begin(&ed->input, plain, e);
	return plain ? read_plain(ed, cell, n) : read_drawn(ed, cell, n, e);
}

/* ---- for the caller, mostly between reads ---- */

size_t editor_take_input(struct editor *ed, char *buf, size_t max)
{
	return input_take(&ed->input, buf, max);
}

int editor_prefill(struct editor *ed, const char *s, size_t n)
{
	return input_add_ahead(&ed->input, s, n);
}

int editor_watch_fd(struct editor *ed, int fd, int (*cb)(void *ctx), void *ctx)
{
	return input_watch(&ed->input, fd, cb, ctx);
}

void editor_unwatch_fd(struct editor *ed, int fd)
{
	input_unwatch(&ed->input, fd);
}

void editor_resized(struct editor *ed)
{
	view_resized(&ed->view);
}

void editor_interrupt(struct editor *ed)
{
	input_interrupt(&ed->input);
}

bool editor_is_plain(struct editor *ed)
{
	view_measure(&ed->view);
	return ed->plain || !engine_can(ed->view.rows, ed->view.cols);
}

void editor_print_above(struct editor *ed, const char *s, size_t n)
{
	view_print(&ed->view, s, n);
}

void editor_size(const struct editor *ed, int *rows, int *cols)
{
	view_size(&ed->view, rows, cols);
}
