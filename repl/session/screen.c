/* SPDX-License-Identifier: MIT */
/*
 * screen.c - the terminal, between the editor and the jail's tty
 *
 * Runs in:   front end
 * Holds:     the master of the tty; the terminal in raw mode while a cell runs,
 *            and until somebody wants it otherwise: what is typed between
 *            cells stays bytes
 * Trusts:    nothing that comes from the tty. The guest's end mark only says
 *            where its output ends
 * Leaves:    the screen's modes as they were, however the cell ended
 */
#include "repl/session/session.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/jail.h"
#include "repl/attach/attach.h"
#include "repl/config/config.h"
#include "repl/edit/editor.h"
#include "repl/term/term.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <termios.h>
#include <unistd.h>

#define LATE_MAX (256u << 10)
/* Most rows until the next cell for output that stopped processes had still
 * written: the lines above it stay in a terminal's scrollback. */
#define BEHIND_ROWS 500
/* Pause between two reads of background output. */
#define REST_NS (20 * 1000 * 1000)

/* The holder of the terminal. */
enum holder {
	EDITOR,	 /* no cell was sent */
	SESSION, /* a cell was sent, but does not write yet or any more */
	CELL,	 /* a cell writes */
};

struct screen {
	enum holder holder;
	int fd, next_fd; /* owned; the next one waits for the cell's end */
	int timer;	 /* owned; the end of a rest */
	struct relay relay;
	struct output output;
	int64_t heard_ms;
	struct strbuf above; /* background output that is not printed yet */
	struct strbuf late;  /* what came behind the end mark */
	struct strbuf left;  /* what the tty still held of the keys */
	struct output_report behind; /* background output not summed up yet */
	int room; /* rows that it may take below the line that announces it */
	int rows; /* rows that it may take until the next cell begins */
	bool line_ended; /* its last line, by us */
};

/* ---- output ---- */

/* Take output that the filter lets through. */
static void sink_filtered(void *arg, const void *buf, size_t n)
{
	struct screen *sc = ((struct session *)arg)->screen;

	if (sc->holder == CELL)
		relay_put(&sc->relay, buf, n);
	else
		strbuf_add(&sc->above, buf, n);
}

/* A cell's own bytes. */
static void tap_output(void *arg, const void *buf, size_t n)
{
	struct session *s = arg;

	log_output(s->log, buf, n);
	record_add_output(s->record, buf, n);
}

/* Each watcher has its own filter. */
static void copy_to_watchers(
	void *arg, enum output_copied what, const void *buf, size_t n)
{
	static const enum watcher_kind kinds[] = {
		[OUTPUT_BYTES] = WATCHER_OUTPUT,
		[OUTPUT_LINE] = WATCHER_LINE,
		[OUTPUT_BREAK] = WATCHER_BREAK,
	};
	struct session *s = arg;

	watchers_add(s, kinds[what],
		s->screen->output.vt.steers ? WATCHER_STEERS : 0, buf, n);
}

static enum vt_mode filter_mode(const struct config *cfg)
{
	switch (cfg->escapes) {
	case ESCAPES_SAFE:
		return VT_SAFE;
	case ESCAPES_PLAIN:
		return VT_PLAIN;
	case ESCAPES_RAW:
		return VT_RAW;
	}
	return VT_SAFE;
}

/* Without a mark: output of no cell. */
static void begin_output(struct session *s, const char *mark)
{
	struct output_opts opts = {
		.mode = filter_mode(s->cfg),
		.colour = s->term->colour,
		.rows = s->term->rows,
		.columns = s->term->cols,
		.head_bytes = (uint64_t)s->cfg->limits.output_bytes,
		.mark = mark,
		.cell = mark ? s->cell_no : 0,
		.sink = sink_filtered,
		.tap = mark ? tap_output : NULL,
		.copy = mark ? copy_to_watchers : NULL,
		.arg = s,
	};

	s->screen->line_ended = false;
	s->screen->rows = s->cfg->limits.background == BACKGROUND_RUN
				  ? INT_MAX
				  : BEHIND_ROWS;
	output_begin(&s->screen->output, &opts);
}

/* Bytes that take at most *room rows of the terminal, less those rows. */
static size_t take_rows(
	const struct terminal *t, const char *buf, size_t n, int *room)
{
	int columns = t->cols ? t->cols : 80, column = 0;
	size_t i = 0;

	while (i<n && * room> 0) {
		bool one = buf[i] >= ' ' && buf[i] < 0x7f;

		/* As much as it may become. */
		column += one ? 1 : buf[i] == '\t' ? 8 : 4;
		if (buf[i++] == '\n' || column >= columns) {
			column = 0;
			--*room;
		}
	}
	*room -= column > 0;
	return i;
}

/* Length of the line's end that a piece of output begins with. */
static size_t line_end(const char *buf, size_t n)
{
	if (n > 1 && buf[0] == '\r' && buf[1] == '\n')
		return 2;
	return n > 0 && buf[0] == '\n';
}

static void print_frame(void *arg, const char *text)
{
	session_frame(arg, "%s", text);
}

/* Show background output. A piece that does not end its line gets an end from
 * us, because the prompt stands below it; the line's own end is then left
 * out. */
static void show_piece(struct session *s, const char *buf, size_t n)
{
	struct screen *sc = s->screen;
	size_t shown = sc->line_ended ? line_end(buf, n) : 0;
	struct output_report r;

	output_background(&sc->output, buf + shown, n - shown, &r);
	output_background_add(&sc->behind, &r);
	if (r.head)
		watchers_add(
			s, WATCHER_BACKGROUND, 0, buf + shown, (size_t)r.head);
	sc->line_ended = r.newline_added;
	if (sc->above.n)
		session_print(s, sc->above.s, sc->above.n);
	sc->above.n = 0;
}

/* Say what follows, and for how many rows. False when it may take no more. */
static bool announce_background(struct session *s)
{
	struct screen *sc = s->screen;
	int rows = s->term->rows ? s->term->rows : 24;

	rows = rows > 5 ? rows - 4 : 1;
	sc->room = rows < sc->rows ? rows : sc->rows;
	sc->rows -= sc->room;
	if (sc->room > 0)
		print_frame(s, "background output follows");
	return sc->room > 0;
}

/* Every screenful has the line that says what it is. Past a limit nothing is
 * shown, and so nothing is said. */
static void show_behind(struct session *s, const char *buf, size_t n)
{
	struct screen *sc = s->screen;

	while (n && !output_background_is_over(&sc->output)) {
		size_t part;

		if (sc->room <= 0 && !announce_background(s)) {
			sc->behind.cut += n;
			return;
		}
		part = take_rows(s->term, buf, n, &sc->room);
		show_piece(s, buf, part);
		buf += part;
		n -= part;
	}
	if (n)
		show_piece(s, buf, n);
}

void screen_tell_background(struct session *s)
{
	struct screen *sc = s->screen;

	if (sc->late.n)
		show_behind(s, sc->late.s, sc->late.n);
	sc->late.n = 0;
	output_background_summary(&sc->behind, print_frame, s);
	sc->behind = (struct output_report){0};
	sc->room = 0;
}

/* True if the guest reads keys one by one, as readline does: then it draws
 * their effect itself. */
static bool reads_keys(int tty)
{
	struct termios t;

	return tcgetattr(tty, &t) == 0 && !(t.c_lflag & ICANON);
}

static void take_bytes(void *arg, const char *buf, size_t n)
{
	struct session *s = arg;
	struct screen *sc = s->screen;
	size_t own = 0;

	if (sc->holder != CELL) {
		show_behind(s, buf, n);
		return;
	}
	if (reads_keys(sc->fd))
		output_steer(&sc->output);
	own = output_feed(&sc->output, buf, n);
	while (output_is_marked(&sc->output) && pictures_draw(s)) {
		output_unmark(&sc->output);
		own += output_feed(&sc->output, buf + own, n - own);
	}
	/* Keys from now on are for the next prompt. */
	if (output_is_marked(&sc->output))
		relay_hold(&sc->relay);
	if (own == n)
		return;
	if (sc->late.n < LATE_MAX)
		strbuf_add(&sc->late, buf + own, n - own);
	else
		sc->behind.cut += n - own;
}

/* ---- the master ---- */

static void set_fd(struct session *s, int fd);
static int take_at_prompt(void *arg);

static int end_rest(void *arg)
{
	struct session *s = arg;
	struct screen *sc = s->screen;

	editor_unwatch_fd(s->editor, sc->timer);
	editor_unwatch_fd(s->editor, sc->fd);
	if (sc->fd >= 0)
		editor_watch_fd(s->editor, sc->fd, take_at_prompt, s);
	return 0;
}

/* Between cells no clock runs. We read the tty only now and then, which
 * bounds what is read and drawn. */
static void begin_rest(struct session *s)
{
	const struct itimerspec t = {.it_value = {.tv_nsec = REST_NS}};
	struct screen *sc = s->screen;

	if (timerfd_settime(sc->timer, 0, &t, NULL) < 0)
		return;
	editor_unwatch_fd(s->editor, sc->fd);
	editor_watch_fd(s->editor, sc->timer, end_rest, s);
}

/* Background output while the person edits. */
static int take_at_prompt(void *arg)
{
	struct session *s = arg;
	char buf[RELAY_READ];
	size_t taken = 0;
	ssize_t n = 1;

	for (; n > 0 && taken < sizeof(buf); taken += (size_t)n) {
		n = read(s->screen->fd, buf, sizeof(buf));
		if (n > 0)
			show_behind(s, buf, (size_t)n);
	}
	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		begin_rest(s);
	else
		set_fd(s, -1);
	return 0;
}

static void set_fd(struct session *s, int fd)
{
	struct screen *sc = s->screen;

	if (sc->fd >= 0)
		editor_unwatch_fd(s->editor, sc->fd);
	fd_drop(&sc->fd);
	sc->fd = fd;
	relay_set_tty(&sc->relay, fd);
	if (fd >= 0)
		editor_watch_fd(s->editor, fd, take_at_prompt, s);
}

void screen_replace(struct session *s, int fd)
{
	struct screen *sc = s->screen;

	if (sc->holder == CELL && sc->fd >= 0) {
		fd_drop(&sc->next_fd);
		sc->next_fd = fd;
	} else {
		set_fd(s, fd);
	}
}

int screen_open(struct session *s, void (*events)(void *session), struct err *e)
{
	struct screen *sc = calloc(1, sizeof(*sc));
	struct relay_opts opts = {.term = s->term,
		.jail = s->jail,
		.signals = s->signals,
		.bytes = take_bytes,
		.events = events,
		.arg = s};

	if (!sc)
		return err_errno(e, "open a session");
	s->screen = sc;
	sc->fd = sc->next_fd = -1;
	sc->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	opts.output = &sc->output;
	opts.ask = pictures_ask(s);
	relay_init(&sc->relay, &opts);
	if (output_open(&sc->output, (size_t)s->cfg->limits.tail_bytes, e) < 0)
		return -1;
	begin_output(s, NULL);
	return 0;
}

void screen_close(struct session *s)
{
	struct screen *sc = s->screen;

	if (!sc)
		return;
	fd_drop(&sc->fd);
	fd_drop(&sc->next_fd);
	fd_drop(&sc->timer);
	output_close(&sc->output);
	relay_free(&sc->relay);
	strbuf_free(&sc->above);
	strbuf_free(&sc->late);
	strbuf_free(&sc->left);
	free(sc);
	s->screen = NULL;
}

/* ---- a cell ---- */

void screen_follow_window(struct session *s)
{
	relay_follow_window(&s->screen->relay);
}

/* Ctrl-C since Enter is for the cell, though the cell has not begun. */
static void take_interrupt(struct session *s)
{
	if (!s->signals->interrupt)
		return;
	s->signals->interrupt = false;
	jail_interrupt(s->jail, NULL);
	relay_interrupted(&s->screen->relay);
}

void screen_begin(struct session *s)
{
	struct screen *sc = s->screen;
	struct strbuf keys = {0};

	sc->holder = SESSION;
	s->relay = &sc->relay;
	sc->late.n = 0;
	terminal_signals_read(s->signals);
	screen_follow_window(s); /* changed since the cell was sent */
	relay_begin(&sc->relay);
	take_interrupt(s);
	sc->relay.keys = s->term->in_tty;
	terminal_raw(s->term);
	editor_take_input(s->editor, &keys);
	relay_type_ahead(&sc->relay, keys.s, keys.n);
	strbuf_free(&keys);
}

void screen_run(struct session *s, const char *mark)
{
	record_begin_output(s->record, s->cell_no);
	begin_output(s, mark);
	s->screen->holder = CELL;
	s->output = &s->screen->output;
	relay_hand_over(&s->screen->relay);
}

void screen_turn(struct session *s, int timeout_ms)
{
	struct relay *r = &s->screen->relay;
	struct pollfd p[RELAY_POLLS + 1];

	p[RELAY_POLLS] =
		(struct pollfd){.fd = pictures_fd(s), .events = POLLIN};
	if (relay_turn(r, p, RELAY_POLLS + 1, timeout_ms) < 0)
		return;
	if (p[RELAY_POLL_KEYS].fd >= 0 && p[RELAY_POLL_KEYS].revents == POLLIN)
		detached_keyed(s);
	if (p[RELAY_POLLS].fd >= 0 && p[RELAY_POLLS].revents)
		pictures_read(s);
	/* A tty that is not read, because the terminal does not drain, is not
	 * silent. */
	if (r->moved || (r->tty >= 0 && p[RELAY_POLL_TTY].fd < 0))
		s->screen->heard_ms = now_ms();
	if (s->over || (!r->keys_ended && !r->broken))
		return;
	terminal_signals_take(s->signals, SIGHUP);
	r->with.events(s);
}

bool screen_swap(struct session *s)
{
	return s->output && output_move(s->output);
}

void screen_take_terminal(struct session *s, bool whole)
{
	struct screen *sc = s->screen;
	const struct terminal *t = s->term;

	relay_changed_terminal(&sc->relay);
	pictures_take_terminal(s);
	output_resize(&sc->output, t->rows, t->cols);
	sc->output.opts.colour = t->colour;
	if (!t->in_tty)
		return;
	if (whole)
		output_take_screen(&sc->output);
	jail_resize(
		s->jail, whole && t->rows > 1 ? t->rows - 1 : t->rows, t->cols);
}

void screen_draw_anew(struct session *s)
{
	jail_resize(s->jail, s->term->rows, s->term->cols);
}

bool screen_is_over(const struct session *s)
{
	const struct screen *sc = s->screen;

	return sc->relay.tty < 0 || sc->holder != CELL ||
	       drive_has_shown(&s->drive, &sc->output, sc->heard_ms);
}

bool screen_is_flushed(const struct session *s)
{
	return relay_is_flushed(&s->screen->relay);
}

void screen_end_output(struct session *s)
{
	struct output_report r;

	pictures_end(s);
	if (s->screen->holder != CELL)
		return;
	output_end(&s->screen->output, &r);
	watchers_add(s, WATCHER_END, 0, "", 0);
	s->screen->holder = SESSION;
	s->output = NULL;
	output_summary(&r, print_frame, s);
	screen_tell_background(s);
}

/* Give the editor the keys that the cell did not read. */
static void give_back(struct session *s)
{
	struct screen *sc = s->screen;
	struct typed *t = &sc->relay.typed;
	struct strbuf begun = {0};
	const char *keys, *why;
	size_t n;

	/* Some may have been on their way when the warden last looked. */
	if (t->sent && !s->over && jail_return_keys(s->jail) == 0)
		sc->relay.with.events(s);
	why = sc->left.failed
		      ? "out of memory"
		      : typed_unread(t, sc->left.s, sc->left.n, &keys, &n);
	if (why)
		session_frame(s, "what was typed ahead is dropped: %s", why);
	else
		editor_type(s->editor, keys, n);
	/* The editor sees the end of it, and drops all of it. */
	ask_give_back(pictures_ask(s), &begun);
	editor_type(s->editor, begun.s, begun.n);
	strbuf_free(&begun);
	typed_forget(&sc->relay.typed);
	strbuf_free(&sc->left);
}

void screen_end(struct session *s)
{
	struct screen *sc = s->screen;

	relay_flush(&sc->relay);
	sc->holder = EDITOR;
	s->relay = NULL;
	if (sc->next_fd >= 0)
		set_fd(s, fd_take(&sc->next_fd));
	give_back(s);
}

/* ---- at any time ---- */

void screen_take_keys(struct session *s, const char *keys, size_t n)
{
	strbuf_add(&s->screen->left, keys, n);
}
