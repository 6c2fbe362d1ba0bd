/* SPDX-License-Identifier: MIT */
/*
 * editor.c - open, close, and read keys, lines and watched descriptors
 *
 * Runs in:   the front end
 * Holds:     the terminal's modes, while it reads; bytes that are not keys yet
 * Trusts:    its caller about the descriptors and prompts; no byte from the
 *            terminal
 * Leaves:    the terminal's modes and the signals as they were
 */

#include <errno.h>

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "parts.h"

#define MAX_BYTES ((size_t)1 << 20)
/* Most bytes of keys typed ahead; the terminal keeps further ones. */
#define AHEAD_MAX (64u << 10)

/* ---- keys and lines ---- */

/* Show the prompt, or draw the cell, before the editor waits. */
static void draw_cell(struct editor *ed)
{
	struct engine_text t;

	if (ed->lines) {
		view_ask_again(&ed->view);
		return;
	}
	edit_look(ed);
	t = engine_text(ed->engine);
	view_draw(&ed->view, &t);
	call_ask(ed);
}

/* Drop a key that is incomplete. */
static void restart_keys(struct input *in)
{
	bool escape_alone = in->keys.escape_alone;

	keys_init(&in->keys);
	in->keys.escape_alone = escape_alone;
}

static enum editor_result take_interrupt(struct input *in)
{
	bool interrupted = in->interrupted;

	in->interrupted = false;
	return interrupted ? EDITOR_INTERRUPT : EDITOR_GO_ON;
}

/* Call the watchers whose descriptors have events. */
static enum editor_result call_watchers(
	struct input *in, const struct pollfd *p)
{
	enum editor_result r;
	bool stop = false;

	for (int i = 0; i < EDITOR_WATCH_MAX; i++) {
		struct input_watch *w = &in->watch[i];

		/* An earlier callback may have removed this watcher. */
		if (p[i].revents && w->fd >= 0 && w->fd == p[i].fd)
			stop |= w->cb(w->ctx) != 0;
	}
	r = take_interrupt(in);
	return stop ? EDITOR_EVENT : r;
}

static enum editor_result read_bytes(struct editor *ed)
{
	struct input *in = &ed->input;
	struct termios t;
	ssize_t n;

	if (!io_is_readable(ed->opts.in))
		return EDITOR_GO_ON;
	n = read(ed->opts.in, in->queue, sizeof(in->queue));
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return EDITOR_GO_ON;
	if (n < 0 && errno != EIO) {
		err_errno(ed->err, "read the terminal");
		return EDITOR_ERROR;
	}
	if (n < 0 && ed->opts.lost && ed->opts.lost(ed->opts.ctx))
		return EDITOR_EVENT;
	/* read(2) of a terminal that has hung up returns 0, as for a file. */
	if (n <= 0)
		return ed->lines && (tcgetattr(ed->opts.in, &t) == 0 ||
					    errno != EIO)
			       ? EDITOR_EOF
			       : EDITOR_HUP;
	in->queue_at = 0;
	in->queue_end = (size_t)n;
	in->echoed = ed->lines;
	return EDITOR_GO_ON;
}

/* Queue a line of the keys typed ahead, before those of the terminal.
 * fill_queue() polls the watchers between two lines. */
static void take_ahead(struct editor *ed)
{
	struct input *in = &ed->input;
	const char *s = in->ahead.s;
	size_t n = in->ahead.n, line = 0;

	if (n > sizeof(in->queue))
		n = sizeof(in->queue);
	while (line < n && s[line] != '\r' && s[line] != '\n')
		line++;
	in->queue_at = 0;
	in->queue_end = line + (line < n);
	memcpy(in->queue, s, in->queue_end);
	in->echoed = false;
	strbuf_cut(&in->ahead, in->queue_end);
}

/* Drop the keys typed ahead before the last Ctrl-C among them. A Ctrl-C in a
 * paste is text. */
static void drop_interrupted(struct input *in)
{
	const char *s = in->ahead.s;
	size_t n = in->ahead.n, last = n;
	struct key out[KEYS_OUT_MAX];
	struct keys keys = in->keys;

	for (size_t i = 0; i < n; i++) {
		int made = keys_feed(&keys, (unsigned char)s[i], out);

		for (int k = 0; k < made; k++)
			if (out[k].code == KEYS_CTRL('C'))
				last = i;
	}
	if (last == n)
		return;
	strbuf_cut(&in->ahead, last);
	restart_keys(in);
}

/* Read the terminal, and append its keys to those typed ahead. */
static enum editor_result read_behind(struct editor *ed)
{
	struct input *in = &ed->input;
	enum editor_result r = read_bytes(ed);

	if (r != EDITOR_GO_ON || in->queue_at == in->queue_end)
		return r;
	strbuf_add(&in->ahead, in->queue, in->queue_end);
	in->queue_at = in->queue_end;
	drop_interrupted(in);
	return r;
}

/* Poll the watched descriptors and `fd` (-1: none). */
static int poll_all(
	const struct input *in, int fd, struct pollfd *p, int timeout_ms)
{
	for (int i = 0; i < EDITOR_WATCH_MAX; i++)
		p[i] = (struct pollfd){.fd = in->watch[i].fd, .events = POLLIN};
	p[EDITOR_WATCH_MAX] = (struct pollfd){.fd = fd, .events = POLLIN};
	return poll(p, EDITOR_WATCH_MAX + 1, timeout_ms);
}

/* Wait until the queue has bytes, or the time is up. While there are keys typed
 * ahead, we leave later keys to a cooked terminal, which makes Ctrl-C a signal,
 * and those beyond AHEAD_MAX to any. */
static enum editor_result fill_queue(struct editor *ed, int timeout_ms)
{
	int64_t end = now_ms() + timeout_ms;
	struct input *in = &ed->input;
	struct pollfd p[EDITOR_WATCH_MAX + 1];
	enum editor_result r = EDITOR_GO_ON;
	int n;

	while (r == EDITOR_GO_ON && in->queue_at == in->queue_end) {
		size_t ahead = in->ahead.n;
		bool reads = !ahead || (!ed->lines && ahead < AHEAD_MAX);
		int64_t left = timeout_ms < 0 ? -1 : end - now_ms();

		/* editor_interrupt() was called while a key was handled. */
		if (in->interrupted)
			return take_interrupt(in);
		if (!ahead && (ed->lines || !in->keys.paste))
			draw_cell(ed);
		left = timeout_ms >= 0 && left < 0 ? 0 : left;
		n = poll_all(
			in, reads ? ed->opts.in : -1, p, ahead ? 0 : (int)left);
		if (n < 0 && errno != EINTR) {
			err_errno(ed->err, "wait for the terminal");
			return EDITOR_ERROR;
		}
		if (n > 0)
			r = call_watchers(in, p);
		/* A hangup is no key. */
		if (n > 0 && p[EDITOR_WATCH_MAX].revents == POLLIN &&
			ed->opts.keyed)
			ed->opts.keyed(ed->opts.ctx);
		if (n > 0 && r == EDITOR_GO_ON && p[EDITOR_WATCH_MAX].revents)
			r = ahead ? read_behind(ed) : read_bytes(ed);
		if (r == EDITOR_GO_ON && in->ahead.n)
			take_ahead(ed);
		else if (n == 0)
			break;
	}
	return r;
}

/* Get the next key: EDITOR_GO_ON; any other result ends the read. */
static enum editor_result next_key(struct editor *ed, struct key *key)
{
	struct input *in = &ed->input;
	enum editor_result r;

	for (;;) {
		if (in->ready_at == in->ready_end) {
			r = fill_queue(ed, keys_wait_ms(&in->keys));
			if (r != EDITOR_GO_ON)
				return r;
			in->ready_at = 0;
			in->ready_end =
				in->queue_at < in->queue_end
					? keys_feed(&in->keys,
						  in->queue[in->queue_at++],
						  in->ready)
					: keys_timeout(&in->keys, in->ready);
			continue;
		}
		*key = in->ready[in->ready_at++];
		if (key->code == KEY_PASTE_TEXT) {
			if (in->paste.n >= ed->opts.max_bytes ||
				utf8_wide_add(&in->paste, &key->c, 1) < 0)
				in->paste_cut = true;
		} else if (key->code == KEY_PASTE_BEGIN) {
			utf8_wide_free(&in->paste);
			in->paste_cut = false;
		} else {
			return EDITOR_GO_ON;
		}
	}
}

/* Show a character that the terminal has not echoed. */
static void echo_character(struct editor *ed, wchar_t c)
{
	struct layout_glyph g = {.s = "\n", .n = 1};

	if (c != '\n')
		layout_glyph(c, 0, 80, &g);
	if (!ed->input.echoed && ed->view.out_is_tty)
		view_write(&ed->view, g.s, (size_t)g.n);
}

/* Append a line and its end to `cell`: EDITOR_GO_ON; any other result ends the
 * read. *fits becomes false when the cell is too long. */
static enum editor_result next_line(
	struct editor *ed, struct utf8_wide *cell, bool *fits)
{
	struct input *in = &ed->input;
	enum editor_result r;

	for (;;) {
		while (in->ready_at < in->ready_end) {
			wchar_t c = in->ready[in->ready_at++].c;

			if (c)
				echo_character(ed, c);
			if (cell->n >= ed->opts.max_bytes)
				*fits = false;
			if (c && *fits && utf8_wide_add(cell, &c, 1) < 0) {
				err_set(ed->err, "out of memory");
				return EDITOR_ERROR;
			}
			if (c == '\n')
				return EDITOR_GO_ON;
		}
		r = fill_queue(ed, -1);
		if (r != EDITOR_GO_ON)
			return r;
		if (!in->echoed && in->queue[in->queue_at] == KEYS_CTRL('D') &&
			!cell->n) {
			in->queue_at++;
			return EDITOR_EOF;
		}
		/* In paste mode keys_feed() makes only text, with one line
		 * end. */
		in->keys.paste = true;
		in->ready_at = 0;
		in->ready_end = keys_feed(
			&in->keys, in->queue[in->queue_at++], in->ready);
	}
}

/* The engine calls this once a read: handle all keys. */
static void handle_keys(void *ctx)
{
	struct editor *ed = ctx;
	struct key key;

	for (;;) {
		ed->result = next_key(ed, &key);
		if (ed->result != EDITOR_GO_ON)
			return;
		if (edit_begin_key(ed, &key)) {
			if (!vi_key(ed, &key))
				edit_do(ed, edit_command(key.code));
			edit_end_key(ed);
		}
		ed->result = ed->edit.result;
		if (ed->result != EDITOR_GO_ON)
			return;
	}
}

/* ---- open and close ---- */

/* Set up the parts that depend on the terminal. 0, or -1 with e. */
static int take_terminal(struct editor *ed, bool colour, struct err *e)
{
	struct engine *engine = NULL;
	int out = ed->view.out;
	bool tty = isatty(out);
	/* Read lines if the cursor cannot be addressed. */
	bool plain = !tty || !isatty(ed->opts.in) || terminal_is_dumb();

	if (!plain && engine_open(&engine, ed->opts.in, out, ed->opts.max_bytes,
			      handle_keys, ed, e) < 0) {
		engine_close(engine);
		return -1;
	}
	engine_close(ed->engine);
	ed->engine = engine;
	ed->plain = plain;
	ed->view.out_is_tty = tty;
	ed->view.colour = colour;
	ed->view.notes = ed->opts.suggest && colour;
	return 0;
}

int editor_open(
	struct editor **out, const struct editor_opts *opts, struct err *e)
{
	struct editor *ed = calloc(1, sizeof(*ed));

	if (!ed)
		return err_errno(e, "editor");
	ed->opts = *opts;
	if (!opts->max_bytes)
		ed->opts.max_bytes = MAX_BYTES;
	ed->view.out = opts->out;
	keys_init(&ed->input.keys);
	ed->input.keys.escape_alone = opts->vi;
	for (int i = 0; i < EDITOR_WATCH_MAX; i++)
		ed->input.watch[i].fd = -1;
	if (view_set_prompt(&ed->view.prompt, opts->prompt) < 0 ||
		view_set_prompt(&ed->view.prompt2, opts->prompt2) < 0 ||
		view_set_prompt(&ed->view.paste_prompt, "(paste) ") < 0) {
		editor_close(ed);
		return err_errno(e, "editor");
	}
	if (take_terminal(ed, opts->colour, e) < 0) {
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
	edit_free(ed);
	view_free(&ed->view);
	utf8_wide_free(&ed->input.paste);
	strbuf_free(&ed->input.ahead);
	utf8_wide_free(&ed->kept);
	free(ed);
}

/* ---- reading ---- */

static enum editor_result cell_out(
	struct editor *ed, const wchar_t *s, size_t n, char **cell, size_t *len)
{
	*cell = utf8_from_wide(s, n, len);
	if (*cell)
		return EDITOR_CELL;
	err_set(ed->err, "editor: out of memory");
	return EDITOR_ERROR;
}

static void end_view(
	struct editor *ed, const struct engine_text *t, const char *tail)
{
	if (ed->opts.line)
		view_erase(&ed->view);
	else
		view_finish(&ed->view, t, tail);
}

static void keep_text(struct editor *ed, const struct engine_text *t)
{
	utf8_wide_set(&ed->kept, t->s, t->n);
	ed->kept_cursor = t->cursor;
}

/* After the engine has stopped: show how the read ended, take the text. */
static enum editor_result end_drawn(struct editor *ed, char **cell, size_t *n)
{
	struct engine_text t = engine_text(ed->engine);

	switch (ed->result) {
	case EDITOR_CELL:
		edit_end(ed);
		end_view(ed, &t, "");
		return cell_out(ed, t.s,
			ed->opts.line ? t.n : edit_trim(t.s, t.n), cell, n);
	case EDITOR_INTERRUPT:
		edit_end(ed);
		end_view(ed, &t, "^C");
		break;
	case EDITOR_EOF:
		edit_end(ed);
		end_view(ed, &t, "");
		break;
	case EDITOR_SUSPEND:
		end_view(ed, &t, "^Z");
		keep_text(ed, &t);
		break;
	case EDITOR_PROGRAM:
		if (cell_out(ed, t.s, t.n, cell, n) == EDITOR_ERROR)
			return EDITOR_ERROR;
		/* fall through */
	case EDITOR_HELP:
	case EDITOR_HISTORY:
	case EDITOR_EVENT:
	case EDITOR_HUP:
		view_erase(&ed->view);
		keep_text(ed, &t);
		break;
	case EDITOR_GO_ON:
	case EDITOR_ERROR:
		break;
	}
	return ed->result;
}

static enum editor_result read_drawn(struct editor *ed, char **cell, size_t *n)
{
	static const char paste_on[] = "\033[?2004h";
	static const char paste_off[] = "\033[?2004l";
	enum editor_result r = EDITOR_ERROR;
	struct utf8_wide kept = ed->kept;
	struct engine_text start = {kept.s, kept.n, ed->kept_cursor};
	struct termios before;
	int ran;

	if (tcgetattr(ed->opts.in, &before) < 0) {
		r = errno == EIO ? EDITOR_HUP : EDITOR_ERROR;
		err_errno(ed->err, "modes of the terminal");
		return r;
	}
	ed->kept = (struct utf8_wide){0};
	/* The result if libedit asks for no key: it has lost the terminal. */
	ed->result = EDITOR_ERROR;
	edit_begin(ed, &start);
	ed->vi = (struct vi){0};
	/* Each line of a paste into a line is a line of its own. */
	if (!ed->opts.line)
		view_write(&ed->view, paste_on, sizeof(paste_on) - 1);
	ran = engine_run(ed->engine, start);
	utf8_wide_free(&kept);
	if (ran < 0)
		err_set(ed->err, "modes of the terminal");
	else
		r = end_drawn(ed, cell, n);
	if (!ed->opts.line)
		view_write(&ed->view, paste_off, sizeof(paste_off) - 1);
	tcsetattr(ed->opts.in, TCSANOW, &before);
	return r;
}

static void say_too_long(struct editor *ed)
{
	struct output_look look = {ed->view.colour, ed->view.cols, "\n"};
	struct strbuf b = {0};
	char text[80];

	snprintf(text, sizeof(text), "a cell has at most %zu bytes: not run",
		ed->opts.max_bytes);
	output_frame(&b, text, &look);
	view_write(&ed->view, b.s, b.n);
	strbuf_free(&b);
}

/* Append lines to `cell`, up to the cell's end. */
static enum editor_result read_lines(struct editor *ed, struct utf8_wide *cell)
{
	struct strbuf *ahead = &ed->input.ahead;
	enum editor_result r;
	bool fits = true;

	/* A cooked terminal would have applied Backspace and the like. */
	if (ahead->n)
		ahead->n = typed_edit(ahead->s, ahead->n);
	view_ask(&ed->view, &ed->view.prompt, cell);
	for (;;) {
		r = next_line(ed, cell, &fits);
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

	ed->kept = (struct utf8_wide){0};
	r = read_lines(ed, &text);
	if (r == EDITOR_CELL) {
		r = cell_out(ed, text.s, edit_trim(text.s, text.n), cell, n);
	} else if (r == EDITOR_EVENT || r == EDITOR_HUP) {
		ed->kept = text;
		ed->kept_cursor = text.n;
		return r;
	} else if (r == EDITOR_INTERRUPT) {
		ed->input.queue_at = ed->input.queue_end;
		view_write(&ed->view, "\n", 1);
	} else if (r == EDITOR_EOF && ed->view.out_is_tty) {
		view_write(&ed->view, "\n", 1);
	}
	utf8_wide_free(&text);
	return r;
}

enum editor_result editor_read(
	struct editor *ed, char **cell, size_t *n, struct err *e)
{
	bool plain = editor_is_plain(ed);

	*cell = NULL;
	*n = 0;
	if (plain != ed->lines)
		restart_keys(&ed->input);
	ed->lines = plain;
	ed->err = e;
	ed->input.interrupted = false;
	return plain ? read_plain(ed, cell, n) : read_drawn(ed, cell, n);
}

/* ---- for the caller, mostly between reads ---- */

void editor_take_input(struct editor *ed, struct strbuf *keys)
{
	struct input *in = &ed->input;

	strbuf_add(
		keys, in->queue + in->queue_at, in->queue_end - in->queue_at);
	strbuf_add(keys, in->ahead.s, in->ahead.n);
	in->queue_at = in->queue_end;
	strbuf_free(&in->ahead);
}

void editor_take_kept(struct editor *ed, struct strbuf *text)
{
	size_t n;
	auto_free char *s = utf8_from_wide(ed->kept.s, ed->kept.n, &n);

	if (s)
		strbuf_add(text, s, n);
	utf8_wide_free(&ed->kept);
}

int editor_prefill(struct editor *ed, const char *s, size_t n)
{
	utf8_wide_free(&ed->kept);
	if (utf8_wide_decode(&ed->kept, s, n) < 0)
		return -1;
	ed->kept_cursor = ed->kept.n;
	return 0;
}

int editor_change(struct editor *ed, const char *s, size_t n)
{
	struct key out[KEYS_OUT_MAX];
	struct utf8_wide text = {0};
	struct keys keys;
	int r = 0;

	keys_init(&keys);
	for (size_t i = 0; i < n && r == 0; i++) {
		/* In paste mode keys_feed() makes only text. */
		keys.paste = true;
		for (int k = 0,
			 made = keys_feed(&keys, (unsigned char)s[i], out);
			k < made; k++)
			if (out[k].c)
				r |= utf8_wide_add(&text, &out[k].c, 1);
	}
	text.n -= text.n && text.s[text.n - 1] == '\n';
	if (r < 0 || utf8_size(text.s, text.n) > ed->opts.max_bytes ||
		undo_note(&ed->edit.undo, text.s, text.n, text.n, false) < 0) {
		utf8_wide_free(&text);
		return -1;
	}
	utf8_wide_free(&ed->kept);
	ed->kept = text;
	ed->kept_cursor = text.n;
	return 0;
}

void editor_type(struct editor *ed, const char *s, size_t n)
{
	if (n)
		strbuf_add(&ed->input.ahead, s, n);
}

int editor_watch_fd(struct editor *ed, int fd, int (*cb)(void *ctx), void *ctx)
{
	for (int i = 0; i < EDITOR_WATCH_MAX; i++) {
		struct input_watch *w = &ed->input.watch[i];

		if (w->fd >= 0)
			continue;
		*w = (struct input_watch){.fd = fd, .cb = cb, .ctx = ctx};
		return 0;
	}
	return -1;
}

void editor_unwatch_fd(struct editor *ed, int fd)
{
	for (int i = 0; i < EDITOR_WATCH_MAX; i++)
		if (ed->input.watch[i].fd == fd)
			ed->input.watch[i].fd = -1;
}

void editor_wait(struct editor *ed)
{
	struct pollfd p[EDITOR_WATCH_MAX + 1];

	if (poll_all(&ed->input, -1, p, -1) > 0)
		call_watchers(&ed->input, p);
}

int editor_move(struct editor *ed, bool colour, struct err *e)
{
	if (take_terminal(ed, colour, e) < 0)
		return -1;
	restart_keys(&ed->input);
	ed->input.echoed = false;
	return 0;
}

void editor_resized(struct editor *ed)
{
	view_resized(&ed->view);
}

void editor_overdrawn(struct editor *ed)
{
	view_forget(&ed->view);
}

void editor_interrupt(struct editor *ed)
{
	ed->input.interrupted = true;
	/* Ctrl-C discards the keys typed before it, as on any tty. */
	ed->input.queue_at = ed->input.queue_end;
	strbuf_free(&ed->input.ahead);
}

void editor_signature(struct editor *ed, const char *s, size_t n)
{
	call_answer(ed, s, n);
}

bool editor_is_plain(struct editor *ed)
{
	view_size(&ed->view, &ed->view.rows, &ed->view.cols);
	return ed->plain || !engine_can(ed->view.rows, ed->view.cols);
}

void editor_print_above(struct editor *ed, const char *s, size_t n)
{
	view_print(&ed->view, s, n);
}

int editor_set_prompt(struct editor *ed, const char *prompt)
{
	return view_set_prompt(&ed->view.prompt, prompt);
}

int editor_set_lead(struct editor *ed, const char *s, size_t n)
{
	return view_set_lead(&ed->view, s, n);
}

void editor_size(const struct editor *ed, int *rows, int *cols)
{
	view_size(&ed->view, rows, cols);
}
