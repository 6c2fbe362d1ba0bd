/* SPDX-License-Identifier: MIT */
/*
 * screen.c - the terminal, between the editor and the jail's tty
 *
 * Runs in:   front end
 * Holds:     the master of the tty; the terminal, in raw mode from the start of
 *            a cell until the next reader sets another mode: keys typed between
 *            cells stay bytes
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
/* Most rows, until the next cell, of output that processes wrote before they
 * were stopped: the lines above it stay in a terminal's scrollback. */
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
	int fd, next_fd; /* owned; next_fd replaces fd when the cell ends */
	int timer;	 /* owned; expires at the end of a rest */
	struct relay relay;
	struct output output;
	int64_t heard_ms;
	struct strbuf above; /* background output that is not printed yet */
	struct strbuf late;  /* output that came behind the end mark */
	struct strbuf left;  /* keys that the warden found unread in the tty */
	struct output_report behind; /* background output not summed up yet */
	int room;		     /* rows left of a screenful of it */
	bool announced;	 /* a line above this screenful says what it is */
	int rows;	 /* rows left until the next cell begins */
	bool line_ended; /* we have ended its last line */
	bool returned;	 /* a file has not got the last \r yet */
};

/* ---- output ---- */

/* Write to a file what the tty made lines of a terminal: \r\n becomes \n. */
static void put_plain(struct screen *sc, const char *s, size_t n)
{
	while (n) {
		const char *cr = memchr(s, '\r', n);
		size_t most = cr ? (size_t)(cr - s) : n;

		if (sc->returned && *s != '\n')
			relay_put(&sc->relay, "\r", 1);
		relay_put(&sc->relay, s, most);
		sc->returned = cr != NULL;
		s += most + sc->returned;
		n -= most + sc->returned;
	}
}

/* Take output that the filter lets through. */
static void sink_filtered(void *arg, const void *buf, size_t n)
{
	struct session *s = arg;
	struct screen *sc = s->screen;

	if (sc->holder != CELL)
		strbuf_add(&sc->above, buf, n);
	else if (!s->aside && s->term->out_tty)
		relay_put(&sc->relay, buf, n);
	else if (!s->aside)
		put_plain(sc, buf, n);
}

static void add_aside(struct strbuf *b, const void *buf, size_t n)
{
	size_t room = RECORD_OUTPUT_BYTES - b->n;

	strbuf_add(b, buf, n < room ? n : room);
}

/* Log and record the bytes that the cell wrote, unfiltered. Bytes that a
 * transcript leaves out cannot be shown again. */
static void tap_output(void *arg, const void *buf, size_t n)
{
	struct session *s = arg;

	size_t written = log_output(s->log, buf, n);

	if (s->aside)
		add_aside(s->aside, buf, n);
	else
		record_add_output(s->record, buf, n, written);
}

static void tap_input(void *arg, const char *buf, size_t n)
{
	const struct session *s = arg;

	log_input(s->log, buf, n);
}

/* Send watchers the unfiltered output: each watcher has its own filter. */
static void copy_to_watchers(
	void *arg, enum output_copied what, const void *buf, size_t n)
{
	static const enum watcher_kind kinds[] = {
		[OUTPUT_BYTES] = WATCHER_OUTPUT,
		[OUTPUT_LINE] = WATCHER_LINE,
		[OUTPUT_BREAK] = WATCHER_BREAK,
	};
	struct session *s = arg;

	if (s->aside)
		return;
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

/* Begin the output of a cell; `mark` NULL: background output. */
static void begin_output(struct session *s, const char *mark)
{
	struct output_opts opts = {
		.mode = filter_mode(s->cfg),
		.colour = s->term->colour,
		.rows = s->term->rows,
		.columns = s->term->cols,
		.head_bytes = (uint64_t)s->cfg->limits.output_bytes,
		.mark = mark,
		.cell = mark && s->cfg->limits.output_bytes <
						(int64_t)RECORD_OUTPUT_BYTES
				? s->cell_no
				: 0,
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

/* Count the bytes that take at most *room rows of the terminal, and subtract
 * the rows that they take. */
static size_t count_row_bytes(
	const struct terminal *t, const char *buf, size_t n, int *room)
{
	int columns = t->cols ? t->cols : 80, column = 0;
	size_t i = 0;

	while (i<n && * room> 0) {
		bool one = buf[i] >= ' ' && buf[i] < 0x7f;

		/* The most columns that the filter may make of the byte. */
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
static size_t measure_line_end(const char *buf, size_t n)
{
	if (n > 1 && buf[0] == '\r' && buf[1] == '\n')
		return 2;
	return n > 0 && buf[0] == '\n';
}

static void print_frame(void *arg, const char *text)
{
	session_frame(arg, "%s", text);
}

/* Show a piece of background output. If the piece does not end its line, we end
 * it, because the prompt stands below. Then we leave out the line's own end,
 * which may begin the next piece. */
static void show_piece(struct session *s, const char *buf, size_t n)
{
	struct screen *sc = s->screen;
	size_t end = sc->line_ended ? measure_line_end(buf, n) : 0;
	struct output_report r;

	buf += end;
	n -= end;
	output_background(&sc->output, buf, n, &r);
	output_background_add(&sc->behind, &r);
	sc->line_ended = r.drawn ? r.newline_added : sc->line_ended && !end;
	if (r.drawn) {
		if (!sc->announced)
			print_frame(s, "background output follows");
		sc->announced = true;
		watchers_add(s, WATCHER_BACKGROUND, 0, buf, (size_t)r.head);
		session_print(s, sc->above.s, sc->above.n);
	}
	sc->above.n = 0;
}

/* Let background output take the next screenful. False if it may take no more
 * rows. */
static bool begin_screenful(struct session *s)
{
	struct screen *sc = s->screen;
	int rows = s->term->rows ? s->term->rows : 24;

	rows = rows > 5 ? rows - 4 : 1;
	sc->room = rows < sc->rows ? rows : sc->rows;
	sc->rows -= sc->room;
	sc->announced = false;
	return sc->room > 0;
}

/* Show background output, each screenful below a line that announces it. Past a
 * limit we show no more output. */
static void show_background(struct session *s, const char *buf, size_t n)
{
	struct screen *sc = s->screen;

	while (n && !output_background_is_over(&sc->output)) {
		size_t part;

		if (sc->room <= 0 && !begin_screenful(s)) {
			sc->behind.cut += n;
			return;
		}
		part = count_row_bytes(s->term, buf, n, &sc->room);
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
		show_background(s, sc->late.s, sc->late.n);
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

static void take_tty_bytes(void *arg, const char *buf, size_t n)
{
	struct session *s = arg;
	struct screen *sc = s->screen;
	size_t own = 0;

	if (sc->holder != CELL) {
		show_background(s, buf, n);
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

static void set_master(struct session *s, int fd);
static int read_tty_at_prompt(void *arg);

static int end_rest(void *arg)
{
	struct session *s = arg;
	struct screen *sc = s->screen;

	editor_unwatch_fd(s->editor, sc->timer);
	editor_unwatch_fd(s->editor, sc->fd);
	if (sc->fd >= 0)
		editor_watch_fd(s->editor, sc->fd, read_tty_at_prompt, s);
	return 0;
}

/* Between cells no clock runs. We read the tty only now and then, which bounds
 * how much we read and draw. */
static void begin_rest(struct session *s)
{
	const struct itimerspec t = {.it_value = {.tv_nsec = REST_NS}};
	struct screen *sc = s->screen;

	if (timerfd_settime(sc->timer, 0, &t, NULL) < 0)
		return;
	editor_unwatch_fd(s->editor, sc->fd);
	editor_watch_fd(s->editor, sc->timer, end_rest, s);
}

/* Read and show background output while the person edits. */
static int read_tty_at_prompt(void *arg)
{
	struct session *s = arg;
	char buf[RELAY_READ];
	size_t taken = 0;
	ssize_t n = 1;

	for (; n > 0 && taken < sizeof(buf); taken += (size_t)n) {
		n = read(s->screen->fd, buf, sizeof(buf));
		if (n > 0)
			show_background(s, buf, (size_t)n);
	}
	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		begin_rest(s);
	else
		set_master(s, -1);
	return 0;
}

static void set_master(struct session *s, int fd)
{
	struct screen *sc = s->screen;

	if (sc->fd >= 0)
		editor_unwatch_fd(s->editor, sc->fd);
	fd_drop(&sc->fd);
	sc->fd = fd;
	relay_set_tty(&sc->relay, fd);
	if (fd >= 0)
		editor_watch_fd(s->editor, fd, read_tty_at_prompt, s);
}

void screen_replace(struct session *s, int fd)
{
	struct screen *sc = s->screen;

	if (sc->holder == CELL && sc->fd >= 0) {
		fd_drop(&sc->next_fd);
		sc->next_fd = fd;
	} else {
		set_master(s, fd);
	}
}

int screen_open(struct session *s, void (*events)(void *session), struct err *e)
{
	struct screen *sc = calloc(1, sizeof(*sc));
	struct relay_opts opts = {.term = s->term,
		.jail = s->jail,
		.signals = s->signals,
		.bytes = take_tty_bytes,
		.sent = tap_input,
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

/* Pass a Ctrl-C since Enter on to the cell, though the cell has not begun. */
static void pass_interrupt(struct session *s)
{
	if (!s->signals->interrupt)
		return;
	s->signals->interrupt = false;
	jail_interrupt(s->jail);
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
	screen_follow_window(s); /* it may have changed since run_next_cell() */
	relay_begin(&sc->relay);
	pass_interrupt(s);
	sc->relay.keys = sc->relay.stops = s->term->in_tty;
	terminal_raw(s->term);
	line_allow(s);
	editor_take_input(s->editor, &keys);
	relay_type_ahead(&sc->relay, keys.s, keys.n);
	strbuf_free(&keys);
}

void screen_run(struct session *s, const char *mark)
{
	if (!s->aside)
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

	if (line_edit(s))
		timeout_ms = 0;
	p[RELAY_POLLS] =
		(struct pollfd){.fd = pictures_fd(s), .events = POLLIN};
	if (relay_turn(r, p, RELAY_POLLS + 1, timeout_ms) < 0)
		return;
	if (p[RELAY_POLL_KEYS].fd >= 0 && p[RELAY_POLL_KEYS].revents == POLLIN)
		detached_keyed(s);
	if (p[RELAY_POLLS].fd >= 0 && p[RELAY_POLLS].revents)
		pictures_read(s);
	/* We do not read the tty while the terminal takes no bytes. Then the
	 * tty is not silent. */
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
	line_take_terminal(s);
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
	if (!s->aside) /* :out shows what the filter would drop */
		output_summary(&r, print_frame, s);
	screen_tell_background(s);
}

/* Give the editor the keys that the cell did not read. */
static void give_keys_back(struct session *s)
{
	struct screen *sc = s->screen;
	struct typed *t = &sc->relay.typed;
	struct strbuf begun = {0};
	const char *keys, *why;
	size_t n;

	/* Some keys may have been on their way when the warden last looked. */
	if (t->sent && !s->over && jail_return_keys(s->jail) == 0)
		sc->relay.with.events(s);
	why = sc->left.failed
		      ? "out of memory"
		      : typed_unread(t, sc->left.s, sc->left.n, &keys, &n);
	if (why)
		session_frame(s, "what was typed ahead is dropped: %s", why);
	else
		editor_type(s->editor, keys, n);
	/* The terminal may have begun an answer. The editor will read its end,
	 * and drops the whole answer. */
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
	line_end(s);
	sc->holder = EDITOR;
	s->relay = NULL;
	if (sc->next_fd >= 0)
		set_master(s, fd_take(&sc->next_fd));
	give_keys_back(s);
}

/* ---- keys from the warden ---- */

void screen_take_keys(struct session *s, const char *keys, size_t n)
{
	strbuf_add(&s->screen->left, keys, n);
}
