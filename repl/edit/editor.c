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
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "impl.h"
#include "jail/base/err.h"
#include "repl/term/terminal.h"

#define MAX_BYTES ((size_t)1 << 20)
#define CTRL_D 0x04

int editor_set_prompts(
	struct editor *ed, const char *prompt, const char *prompt2)
{
	ed->prompt.n = ed->prompt2.n = 0;
	if (wide_add_utf8(&ed->prompt, prompt, strlen(prompt)) < 0)
		return -1;
	return wide_add_utf8(&ed->prompt2, prompt2, strlen(prompt2));
}

int editor_open(
	struct editor **out, const struct editor_opts *opts, struct err *e)
{
	struct editor *ed = calloc(1, sizeof(*ed));

	if (!ed)
		return err_errno(e, "editor");
	ed->in = opts->in;
	ed->out = opts->out;
	ed->colour = opts->colour;
	ed->max_bytes = opts->max_bytes ? opts->max_bytes : MAX_BYTES;
	ed->history = opts->history;
	ed->takes_cell = opts->takes_cell;
	ed->takes_cell_ctx = opts->takes_cell_ctx;
	ed->out_is_tty = isatty(ed->out);
	/* Where the cursor cannot be addressed, lines are read plainly. */
	ed->plain = !ed->out_is_tty || !isatty(ed->in) || terminal_is_dumb();
	keys_init(&ed->keys);
	for (int i = 0; i < EDITOR_WATCH_MAX; i++)
		ed->watch[i].fd = -1;
	if (editor_set_prompts(ed, opts->prompt, opts->prompt2) < 0) {
		editor_close(ed);
		return err_errno(e, "editor");
	}
	if (!ed->plain && engine_open(ed, e) < 0) {
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
	engine_close(ed);
	view_free(ed);
	undo_free(&ed->undo);
	wide_free(&ed->prompt);
	wide_free(&ed->prompt2);
	wide_free(&ed->paste);
	wide_free(&ed->kill);
	wide_free(&ed->draft);
	wide_free(&ed->search.pattern);
	wide_free(&ed->search.old);
	wide_free(&ed->kept);
	strbuf_free(&ed->ahead);
	free(ed);
}

static int cell_out(
	struct editor *ed, const wchar_t *s, size_t n, char **cell, size_t *len)
{
	*cell = wide_to_utf8(s, enter_trim(s, n), len);
	if (*cell)
		return 0;
	ed->result = EDITOR_ERROR;
	return err_set(ed->err, "editor: out of memory");
}

/* The engine has stopped; show how it ended, take what it read. */
static void drawn_end(struct editor *ed, char **cell, size_t *n)
{
	struct span t = engine_text(ed);

	switch (ed->result) {
	case EDITOR_CELL:
		view_finish(ed, "");
		cell_out(ed, t.s, t.n, cell, n);
		break;
	case EDITOR_INTERRUPT:
		view_finish(ed, "^C");
		break;
	case EDITOR_EOF:
		view_finish(ed, "");
		break;
	case EDITOR_EVENT:
		view_erase(ed);
		wide_set(&ed->kept, t.s, t.n);
		ed->kept_cursor = t.cursor;
		break;
	case EDITOR_HUP:
	case EDITOR_ERROR:
		break;
	}
}

static void drawn_read(struct editor *ed, char **cell, size_t *n)
{
	static const char paste_on[] = "\033[?2004h";
	static const char paste_off[] = "\033[?2004l";
	struct termios before;

	if (tcgetattr(ed->in, &before) < 0) {
		ed->result = errno == EIO ? EDITOR_HUP : EDITOR_ERROR;
		err_errno(ed->err, "modes of the terminal");
		return;
	}
	ed->result = EDITOR_ERROR;
	ed->last_code = 0;
	ed->status[0] = 0;
	recall_reset(ed);
	undo_free(&ed->undo);
	view_size(ed);
	view_write(ed, paste_on, sizeof(paste_on) - 1);
	if (engine_run(ed) < 0)
		err_set(ed->err, "modes of the terminal");
	else
		drawn_end(ed, cell, n);
	view_write(ed, paste_off, sizeof(paste_off) - 1);
	tcsetattr(ed->in, TCSADRAIN, &before);
}

static void plainly_read(struct editor *ed, char **cell, size_t *n)
{
	struct wide text = {0};

	ed->result = plain_read(ed, &text);
	if (ed->result == EDITOR_CELL)
		cell_out(ed, text.s, text.n, cell, n);
	wide_free(&text);
}

/* One key of text that was typed where nobody read it. */
static void ahead_key(struct wide *text, const struct key *k)
{
	wchar_t c = k->c;

	if (k->code == 0x7F || k->code == '\b') {
		if (text->n)
			text->s[--text->n] = 0;
		return;
	}
	if (k->code == '\r' || k->code == '\n' || k->code == KEY_ALT_ENTER)
		c = '\n';
	else if (k->code == '\t')
		c = '\t';
	if (c)
		wide_add(text, &c, 1);
}

/* Put what was typed ahead into the text to begin with. It came in pieces, and
 * a key may lie in two of them. */
static void take_ahead(struct editor *ed)
{
	struct wide text = {0}, old = ed->kept;
	size_t at = old.n ? ed->kept_cursor : 0;
	struct key out[KEYS_OUT_MAX];
	struct keys keys;

	if (ed->ahead.n == 0)
		return;
	keys_init(&keys);
	for (size_t i = 0; i < ed->ahead.n && text.n < ed->max_bytes; i++) {
		int count =
			keys_feed(&keys, (unsigned char)ed->ahead.s[i], out);

		for (int j = 0; j < count; j++) {
			if (out[j].code == CTRL_D && !text.n && !old.n)
				ed->kept_eof = true;
			ahead_key(&text, &out[j]);
		}
	}
	strbuf_free(&ed->ahead);
	ed->kept = (struct wide){0};
	ed->kept_cursor = at + text.n;
	wide_add(&ed->kept, old.s, at);
	wide_add(&ed->kept, text.s, text.n);
	if (old.n > at)
		wide_add(&ed->kept, old.s + at, old.n - at);
	wide_free(&text);
	wide_free(&old);
}

enum editor_result editor_read(
	struct editor *ed, char **cell, size_t *n, struct err *e)
{
	bool plain = ed->plain;

	*cell = NULL;
	*n = 0;
	take_ahead(ed);
	if (ed->kept_eof) {
		ed->kept_eof = false;
		return EDITOR_EOF;
	}
	ed->err = e;
	ed->plain = editor_is_plain(ed);
	ed->reading = true;
	if (ed->plain)
		plainly_read(ed, cell, n);
	else
		drawn_read(ed, cell, n);
	ed->reading = false;
	ed->plain = plain;
	ed->err = NULL;
	return ed->result;
}

size_t editor_take_input(struct editor *ed, char *buf, size_t max)
{
	size_t n = ed->queue_end - ed->queue_at;

	n = n < max ? n : max;
	memcpy(buf, ed->queue + ed->queue_at, n);
	ed->queue_at += n;
	return n;
}

int editor_prefill(struct editor *ed, const char *s, size_t n)
{
	strbuf_add(&ed->ahead, s, n);
	return ed->ahead.failed ? -1 : 0;
}

int editor_watch_fd(struct editor *ed, int fd, int (*cb)(void *ctx), void *ctx)
{
	for (int i = 0; i < EDITOR_WATCH_MAX; i++) {
		if (ed->watch[i].fd >= 0)
			continue;
		ed->watch[i] =
			(struct editor_watch){.fd = fd, .cb = cb, .ctx = ctx};
		return 0;
	}
	return -1;
}

void editor_unwatch_fd(struct editor *ed, int fd)
{
	for (int i = 0; i < EDITOR_WATCH_MAX; i++)
		if (ed->watch[i].fd == fd)
			ed->watch[i].fd = -1;
}

void editor_set_complete_cb(struct editor *ed,
	int (*cb)(void *ctx, const char *text, size_t n, size_t cursor,
		struct completions *out),
	void *ctx)
{
	ed->complete = cb;
	ed->complete_ctx = ctx;
}

void editor_resized(struct editor *ed)
{
	if (ed->reading && !ed->plain)
		view_resized(ed);
}

void editor_interrupt(struct editor *ed)
{
	if (ed->reading && !ed->plain)
		engine_move(ed, engine_text(ed).n);
	ed->interrupted = ed->reading;
}

bool editor_is_plain(struct editor *ed)
{
	view_size(ed);
	return ed->plain || !engine_can(ed->view.rows, ed->view.cols);
}

/* Whether a line feed must be told to return, too. */
static bool out_is_raw(const struct editor *ed)
{
	struct termios modes;

	return ed->out_is_tty && tcgetattr(ed->out, &modes) == 0 &&
	       !(modes.c_oflag & OPOST);
}

void editor_print_above(struct editor *ed, const char *s, size_t n)
{
	const char *end = out_is_raw(ed) ? "\r\n" : "\n";
	struct strbuf b = {0};

	if (n == 0)
		return;
	if (ed->reading && !ed->plain)
		view_erase(ed);
	else if (ed->reading && ed->out_is_tty)
		strbuf_puts(&b, end);
	while (n) {
		const char *nl = memchr(s, '\n', n);
		size_t line = nl ? (size_t)(nl - s) : n;

		strbuf_add(&b, s, line);
		strbuf_puts(&b, end);
		s += nl ? line + 1 : line;
		n -= nl ? line + 1 : line;
	}
	view_write(ed, b.s, b.n);
	strbuf_free(&b);
	ed->unasked = ed->reading;
}
