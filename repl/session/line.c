/* SPDX-License-Identifier: MIT */
/*
 * line.c - the editor of the lines that a cell reads
 *
 * Runs in:   front end, while a cell waits for the person
 * Holds:     the terminal's keys; the line, until Enter; the lines before
 * Trusts:    the warden that the cell waits. If the warden is wrong, we edit a
 *            line that the cell reads later or never, as a tty would. No byte
 *            of the question, which the cell wrote
 * Leaves:    the terminal as the filter of the output knows it: the row of the
 *            question, with the cursor behind it
 *
 * The editor does nothing else while it reads: an event ends the read, the
 * relay handles it, and the next read goes on with the same line. So output
 * appears above the line. On Enter the line goes to the tty as a whole, and the
 * tty echoes it in the cell's output: logs and watchers have it from there.
 */
#include "repl/session/session.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/jail.h"
#include "repl/config/config.h"
#include "repl/edit/editor.h"
#include "repl/term/term.h"
#include "repl/text/text.h"

#include <stdlib.h>
#include <unistd.h>

/* Half of what we keep of the keys that a cell may not have read. */
#define LINE_BYTES ((size_t)32 << 10)
/* Output without a pause: after so many reads of it the tty edits the line. */
#define CROWDED_MAX 8

struct line_editor {
	struct editor *editor; /* NULL: no cell has waited yet */
	struct history *history;
	int crowded; /* reads of output since the last read of keys */
	bool moved;  /* another terminal is here than the editor knows */
	bool (*lost)(void *session); /* of line_open() */
};

int line_open(struct session *s, bool (*lost)(void *session), struct err *e)
{
	s->line = calloc(1, sizeof(*s->line));
	if (!s->line)
		return err_errno(e, "open a session");
	s->line->lost = lost;
	return 0;
}

void line_close(struct session *s)
{
	if (!s->line)
		return;
	editor_close(s->line->editor);
	history_free(s->line->history);
	free(s->line);
	s->line = NULL;
}

static void note_key(void *arg)
{
	detached_keyed(arg);
}

static int open_editor(struct session *s)
{
	struct line_editor *l = s->line;
	struct editor_opts opts = {
		.prompt = "",
		.prompt2 = "",
		.line = true,
		.vi = s->cfg->keys == KEYS_VI,
		.max_bytes = LINE_BYTES,
		.in = STDIN_FILENO,
		.out = STDOUT_FILENO,
		.keyed = note_key,
		.lost = l->lost,
		.ctx = s,
	};
	struct err e;

	if (l->editor && !l->moved)
		return 0;
	if (!l->history)
		l->history = history_new();
	opts.history = l->history;
	if (l->editor ? editor_move(l->editor, false, &e) < 0
		      : editor_open(&l->editor, &opts, &e) < 0)
		return -1;
	l->moved = false;
	/* libedit has set modes of its own. */
	terminal_forget_modes(s->term);
	terminal_raw(s->term);
	return 0;
}

void line_allow(struct session *s)
{
	const struct terminal *t = s->term;

	s->relay->edits = t->in_tty && t->out_tty && !t->dumb && !s->aside;
}

void line_take_terminal(struct session *s)
{
	if (s->line)
		s->line->moved = true;
	if (s->relay)
		line_allow(s);
}

bool line_begin(struct session *s)
{
	struct strbuf old = {0};

	if (!s->relay->edits || open_editor(s) < 0 || !relay_edit(s->relay))
		return false;
	s->line->crowded = 0;
	editor_take_kept(s->line->editor, &old);
	editor_take_input(s->line->editor, &old);
	strbuf_free(&old);
	return true;
}

/* Take back all that was typed since the last Enter. */
static void take_back(struct session *s, struct strbuf *keys)
{
	editor_take_kept(s->line->editor, keys);
	editor_take_input(s->line->editor, keys);
	relay_take_keys(s->relay, keys);
}

/* Let the tty edit the line, until something has changed. */
static void leave_line(struct session *s)
{
	struct strbuf keys = {0};

	s->relay->unasked = true;
	take_back(s, &keys);
	relay_send(s->relay, keys.s, keys.n);
	strbuf_free(&keys);
}

void line_end(struct session *s)
{
	struct strbuf keys = {0};

	if (!s->relay->editing)
		return;
	take_back(s, &keys);
	relay_type_ahead(s->relay, keys.s, keys.n);
	strbuf_free(&keys);
}

/* ---- a read ---- */

static int stop_reading(void *arg)
{
	(void)arg;
	return 1;
}

/* It may be a new size of the window, which has moved the rows of the line, or
 * another job may have the terminal. */
static int follow_signal(void *arg)
{
	struct session *s = arg;

	s->line->lost(s);
	editor_resized(s->line->editor);
	return 1;
}

static enum editor_result read_line(
	struct session *s, char **text, size_t *n, struct err *e)
{
	struct editor *ed = s->line->editor;
	const int fds[] = {jail_fd(s->jail), s->relay->tty, pictures_fd(s)};
	enum editor_result r;

	editor_watch_fd(ed, s->signals->fd, follow_signal, s);
	for (size_t i = 0; i < COUNT(fds); i++)
		editor_watch_fd(ed, fds[i], stop_reading, s);
	r = editor_read(ed, text, n, e);
	editor_unwatch_fd(ed, s->signals->fd);
	for (size_t i = 0; i < COUNT(fds); i++)
		editor_unwatch_fd(ed, fds[i]);
	return r;
}

static void send_line(struct session *s, const char *text, size_t n)
{
	if (s->line->history)
		history_add(s->line->history, text, n, NULL);
	relay_send_line(s->relay, text, n);
}

/* Do what ended the read. The keys behind it wait for the next line. */
static void end_read(
	struct session *s, enum editor_result r, const char *text, size_t n)
{
	char interrupt = KEYS_CTRL('C'), end = KEYS_CTRL('D');
	char stop = KEYS_CTRL('Z');
	struct strbuf rest = {0};

	switch (r) {
	case EDITOR_GO_ON:
	case EDITOR_EVENT:
	case EDITOR_HELP:
	case EDITOR_HISTORY:
	case EDITOR_PROGRAM:
		return;
	case EDITOR_SUSPEND:
		relay_type_ahead(s->relay, &stop, 1);
		return;
	case EDITOR_HUP:
		s->relay->keys_ended = true;
		return;
	case EDITOR_ERROR:
		s->relay->edits = false;
		leave_line(s);
		return;
	case EDITOR_CELL:
		send_line(s, text, n);
		break;
	case EDITOR_INTERRUPT:
		relay_type_ahead(s->relay, &interrupt, 1);
		break;
	case EDITOR_EOF:
		relay_send(s->relay, &end, 1);
		break;
	}
	editor_take_input(s->line->editor, &rest);
	relay_type_ahead(s->relay, rest.s, rest.n);
	strbuf_free(&rest);
}

/* The editor begins in the row of the question. Write the question once more
 * over what the editor has left of the row. */
static void edit_row(struct session *s, const char *row, size_t row_n)
{
	struct strbuf keys = {0};
	auto_free char *text = NULL;
	enum editor_result r;
	struct err e = {0};
	size_t n;

	relay_take_keys(s->relay, &keys);
	ask_give_back(pictures_ask(s), &keys);
	editor_type(s->line->editor, keys.s, keys.n);
	strbuf_free(&keys);
	r = read_line(s, &text, &n, &e);
	if (!detached_is_gone(s)) {
		relay_put(s->relay, "\r", 1);
		relay_put(s->relay, row, row_n);
	}
	end_read(s, r, text, n);
}

bool line_edit(struct session *s)
{
	struct relay *r = s->relay;
	struct line_editor *l = s->line;
	const char *row;
	size_t n;

	if (!r->editing || r->state != RELAY_OPEN || r->tty < 0 ||
		!s->term->in_tty || !relay_is_flushed(r))
		return false;
	if (io_is_readable(s->relay->tty) && ++l->crowded < CROWDED_MAX)
		return false;
	row = s->output ? output_row(s->output, &n) : NULL;
	if (!row || l->crowded >= CROWDED_MAX || !r->edits ||
		!relay_reads_lines(r) || open_editor(s) < 0 ||
		editor_is_plain(l->editor) ||
		editor_set_lead(l->editor, row, n) < 0) {
		leave_line(s);
		return false;
	}
	/* The tty's output will be what erases the echo. */
	if (r->begun) {
		if (!relay_take_begun(r, row, n))
			leave_line(s);
		return false;
	}
	l->crowded = 0;
	edit_row(s, row, n);
	return true;
}
