/* SPDX-License-Identifier: MIT */
/*
 * relay.c - the front end's poll loop while a cell or a program runs
 *
 * Runs in:   front end, while a cell or a program runs
 * Trusts:    no byte of the tty: all of them go to the owner's filter
 */
#include "repl/term/term.h"

#include "jail/base/io.h"
#include "jail/jail.h"

#include <errno.h>

#define KEYS_READ 4096
/* relay_flush() gives up a terminal that takes no byte for FLUSH_MS; after a
 * signal that ends us, for FLUSH_END_MS. */
#define FLUSH_MS 10000
#define FLUSH_END_MS 2000
/* A tty takes 4,095 bytes of a line. It gets a longer line in parts, each ended
 * by an end of file. No reader asks for exactly PART_MAX bytes: it would see
 * the end of the file. */
#define LINE_MAX_BYTES 4000
#define PART_MAX 1021

void relay_init(struct relay *r, const struct relay_opts *with)
{
	*r = (struct relay){.with = *with, .tty = -1};
}

void relay_free(struct relay *r)
{
	strbuf_free(&r->out);
	typed_forget(&r->typed);
}

void relay_set_tty(struct relay *r, int tty)
{
	r->tty = tty;
	if (tty >= 0)
		io_set_nonblock(tty, 1);
}

void relay_begin(struct relay *r)
{
	r->state = RELAY_BEGUN;
	r->moved = r->editing = r->unasked = false;
	r->due = r->begun = 0;
	typed_forget(&r->typed);
	memset(r->pressed_ms, 0, sizeof(r->pressed_ms));
}

/* The warden has just set the modes of the tty. */
void relay_hand_over(struct relay *r)
{
	if (r->state == RELAY_BEGUN)
		r->state = RELAY_HANDED;
	if (r->tty < 0 || tcgetattr(r->tty, &r->usual) < 0)
		r->usual = (struct termios){0};
}

/* True before relay_release(): the cell does not run yet, as far as we know. */
static bool is_early(const struct relay *r)
{
	return r->state == RELAY_BEGUN || r->state == RELAY_HANDED;
}

/* A person who sees a cell's output may press a key for the cell. So we read no
 * output until keys reach the cell. */
static bool output_waits(const struct relay *r)
{
	return r->state == RELAY_HANDED;
}

/* Bytes of keys that we may write to the tty, and have not written yet. */
static size_t owed_keys(const struct relay *r)
{
	return r->due > r->typed.sent ? r->due - r->typed.sent : 0;
}

static void fill_polls(
	const struct relay *r, struct pollfd p[static RELAY_POLLS])
{
	const struct terminal *term = r->with.term;
	bool keys = r->keys && !r->keys_ended;
	bool reads = relay_has_room(r) && !output_waits(r);
	bool writes = owed_keys(r) && r->state == RELAY_OPEN;
	short tty = (short)((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));

	p[RELAY_POLL_KEYS] =
		(struct pollfd){.fd = keys ? term->in : -1, .events = POLLIN};
	p[RELAY_POLL_TTY] =
		(struct pollfd){.fd = tty ? r->tty : -1, .events = tty};
	p[RELAY_POLL_OUT] = (struct pollfd){
		.fd = relay_is_flushed(r) ? -1 : term->out, .events = POLLOUT};
	p[RELAY_POLL_JAIL] =
		(struct pollfd){.fd = jail_fd(r->with.jail), .events = POLLIN};
	p[RELAY_POLL_SIGNALS] =
		(struct pollfd){.fd = r->with.signals->fd, .events = POLLIN};
}

void relay_interrupted(struct relay *r)
{
	int64_t now = now_ms(), *t = r->pressed_ms;

	memmove(t, t + 1, (RELAY_KILL_PRESSES - 1) * sizeof(*t));
	t[RELAY_KILL_PRESSES - 1] = now;
	if (t[0] && now - t[0] <= RELAY_KILL_MS) {
		memset(t, 0, sizeof(r->pressed_ms));
		jail_kill(r->with.jail);
	}
}

bool relay_reads_lines(const struct relay *r)
{
	struct termios t;

	return r->tty >= 0 && tcgetattr(r->tty, &t) == 0 &&
	       t.c_lflag & ICANON && t.c_lflag & ECHO &&
	       t.c_iflag == r->usual.c_iflag && t.c_oflag == r->usual.c_oflag &&
	       t.c_lflag == r->usual.c_lflag &&
	       !memcmp(t.c_cc, r->usual.c_cc, sizeof(t.c_cc));
}

/* True if keys wait until the cell waits for the person's input. */
static bool is_waited_for(const struct relay *r)
{
	return r->state == RELAY_OPEN && !owed_keys(r) &&
	       r->typed.sent < r->typed.keys.n;
}

static void ask_who_waits(struct relay *r)
{
	r->unasked = false;
	if (is_waited_for(r) || (r->edits && r->state == RELAY_OPEN))
		jail_tell_waits(r->with.jail);
}

/* True of the keys behind which the tty has no line that was begun. */
static bool ends_line(char c)
{
	return c && strchr("\r\n\3\4\25", c);
}

/* Count the bytes of the line that the tty has got the beginning of, after `n`
 * more. In another mode a tty keeps no line. */
static void count_begun(struct relay *r, const char *s, size_t n)
{
	size_t end = n;

	while (end > 0 && !ends_line(s[end - 1]))
		end--;
	r->begun = end ? n - end : r->begun + n;
	if (r->begun && !relay_reads_lines(r))
		r->begun = 0;
	if (!r->begun)
		ask_who_waits(r);
}

static void tty_write(struct relay *r)
{
	struct typed *t = &r->typed;
	ssize_t w;

	if (!owed_keys(r) || r->state != RELAY_OPEN || r->tty < 0)
		return;
	w = write(r->tty, t->keys.s + t->sent, owed_keys(r));
	if (w <= 0)
		return;
	if (r->with.sent)
		r->with.sent(r->with.arg, t->keys.s + t->sent, (size_t)w);
	t->sent += (size_t)w;
	if (r->edits)
		count_begun(r, t->keys.s + t->sent - w, (size_t)w);
}

void relay_release(struct relay *r)
{
	if (is_early(r))
		r->state = RELAY_OPEN;
	tty_write(r);
	ask_who_waits(r);
}

void relay_hold(struct relay *r)
{
	r->state = RELAY_OVER;
}

void relay_waits(struct relay *r)
{
	const struct strbuf *keys = &r->typed.keys;
	size_t at = r->typed.sent;

	if (!is_waited_for(r))
		return;
	while (at < keys->n && keys->s[at] != '\r' && keys->s[at] != '\n')
		at++;
	r->due = at + (at < keys->n);
	tty_write(r);
	ask_who_waits(r);
}

bool relay_edit(struct relay *r)
{
	if (!r->edits || r->state != RELAY_OPEN || owed_keys(r))
		return false;
	/* Not while the cell reads keys or a password. */
	r->unasked = !relay_reads_lines(r);
	r->editing = !r->unasked;
	return r->editing;
}

/* True if `row` ends with the echo of these keys. */
static bool is_echoed(const char *keys, size_t n, const char *row, size_t row_n)
{
	while (n > 0 && row_n > 0) {
		char c = keys[--n];
		bool control = (unsigned char)c < ' ' || c == 0x7f;

		if (row[--row_n] != (control ? c ^ 0x40 : c))
			return false;
		if (control && (!row_n || row[--row_n] != '^'))
			return false;
	}
	return n == 0;
}

/* Ctrl-U erases the line in the tty, and its echo. Behind Ctrl-V the tty would
 * take Ctrl-U literally. */
bool relay_take_begun(struct relay *r, const char *row, size_t n)
{
	static const char erase = KEYS_CTRL('U');
	struct typed *t = &r->typed;
	const char *keys = t->keys.s + t->sent - r->begun;

	if (r->begun > t->sent || memchr(keys, KEYS_CTRL('V'), r->begun) ||
		!is_echoed(keys, r->begun, row, n) ||
		write(r->tty, &erase, 1) != 1)
		return false;
	t->sent -= r->begun;
	r->due = t->sent;
	r->begun = 0;
	return true;
}

void relay_take_keys(struct relay *r, struct strbuf *keys)
{
	struct strbuf *typed = &r->typed.keys;
	size_t at = r->typed.sent > r->due ? r->typed.sent : r->due;

	if (at < typed->n) {
		strbuf_add(keys, typed->s + at, typed->n - at);
		typed->n = at;
	}
}

/* Handle Ctrl-C before the cell begins: no tty echoes it or makes it a signal,
 * so we do both. Drop the keys before the last Ctrl-C. Returns how many bytes
 * of `s` end there. */
static size_t interrupt_early(struct relay *r, const char *s, size_t n)
{
	while (n > 0 && s[n - 1] != KEYS_CTRL('C'))
		n--;
	if (n == 0)
		return 0;
	for (size_t i = 0; i < n; i++)
		if (s[i] == KEYS_CTRL('C')) {
			jail_interrupt(r->with.jail);
			relay_interrupted(r);
		}
	if (r->with.term->out_tty)
		relay_put(r, "^C\r\n", 4);
	typed_forget(&r->typed);
	return n;
}

/* Take Ctrl-Z out of the keys. Returns how many bytes are left. A tty that
 * makes no signals of keys leaves this one to the cell, too. */
static size_t take_stops(struct relay *r, char *s, size_t n)
{
	struct termios t;
	size_t left = 0;

	if (!r->stops || !memchr(s, KEYS_CTRL('Z'), n) ||
		(r->state == RELAY_OPEN && tcgetattr(r->tty, &t) == 0 &&
			!(t.c_lflag & ISIG)))
		return n;
	for (size_t i = 0; i < n; i++)
		if (s[i] != KEYS_CTRL('Z'))
			s[left++] = s[i];
	terminal_signals_take(r->with.signals, SIGTSTP);
	return left;
}

/* Pass on the keys up to the last Ctrl-C, and drop the keys that waited. The
 * tty gets Ctrl-C as a key; if the tty takes no keys, we have the warden
 * interrupt the cell. */
static void interrupt_cell(struct relay *r, const char *s, size_t n)
{
	bool stuck = r->state == RELAY_OVER || owed_keys(r);

	/* The tty has no key of the line, which ends here. */
	if (r->editing) {
		const char *first = memchr(s, KEYS_CTRL('C'), n);

		n -= (size_t)(first - s);
		s = first;
	}
	r->editing = false;
	if (r->typed.sent < r->typed.keys.n)
		typed_drop(&r->typed);
	stuck |= !typed_add(&r->typed, s, n);
	r->due = r->typed.keys.n;
	if (!stuck)
		tty_write(r);
	stuck |= owed_keys(r) > 0;
	if (stuck)
		typed_drop(&r->typed);
	r->due = r->typed.keys.n;
	for (size_t i = 0; i < n; i++) {
		if (s[i] != KEYS_CTRL('C'))
			continue;
		if (stuck)
			jail_interrupt(r->with.jail);
		relay_interrupted(r);
	}
}

static void add_keys(struct relay *r, const char *s, size_t n)
{
	size_t early = is_early(r) ? interrupt_early(r, s, n) : 0;
	const char *last;

	s += early;
	n -= early;
	last = n ? memrchr(s, KEYS_CTRL('C'), n) : NULL;
	if (last) {
		size_t up_to = (size_t)(last + 1 - s);

		interrupt_cell(r, s, up_to);
		s += up_to;
		n -= up_to;
	}
	typed_add(&r->typed, s, n);
}

void relay_type_ahead(struct relay *r, char *s, size_t n)
{
	add_keys(r, s, n ? take_stops(r, s, n) : 0);
}

void relay_type(struct relay *r, const char *s, size_t n)
{
	add_keys(r, s, n);
	if (r->editing)
		return;
	r->due = r->typed.keys.n;
	tty_write(r);
}

void relay_send(struct relay *r, const char *s, size_t n)
{
	r->editing = false;
	typed_add(&r->typed, s, n);
	r->due = r->typed.keys.n;
	tty_write(r);
}

void relay_send_line(struct relay *r, const char *s, size_t n)
{
	static const char end = KEYS_CTRL('D'), enter = '\r';

	for (; n > LINE_MAX_BYTES; s += PART_MAX, n -= PART_MAX) {
		typed_add(&r->typed, s, PART_MAX);
		typed_add(&r->typed, &end, 1);
	}
	typed_add(&r->typed, s, n);
	relay_send(r, &enter, 1);
}

static void keys_read(struct relay *r)
{
	char buf[KEYS_READ];
	struct strbuf keys = {0};
	ssize_t n;

	if (!io_is_readable(r->with.term->in))
		return;
	n = read(r->with.term->in, buf, sizeof(buf));
	if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
		r->keys_ended = true;
	if (n > 0)
		n = (ssize_t)take_stops(r, buf, (size_t)n);
	if (n > 0 && r->with.ask)
		ask_filter(r->with.ask, buf, (size_t)n, &keys);
	else if (n > 0)
		relay_type(r, buf, (size_t)n);
	if (keys.n)
		relay_type(r, keys.s, keys.n);
	strbuf_free(&keys);
}

static void tty_read(struct relay *r)
{
	char buf[RELAY_READ];
	ssize_t n = read(r->tty, buf, sizeof(buf));

	if (n > 0) {
		r->moved = true;
		r->with.bytes(r->with.arg, buf, (size_t)n);
	} else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
		r->tty = -1; /* EIO: the jail, or its tty, is gone */
	}
}

static void out_write(struct relay *r)
{
	ssize_t w = terminal_write_some(
		r->with.term, r->out.s + r->out_at, r->out.n - r->out_at);

	if (w < 0 && errno != EAGAIN && errno != EINTR)
		r->broken = true;
	if (w > 0)
		r->out_at += (size_t)w;
	if (r->out_at == r->out.n)
		r->out.n = r->out_at = 0;
}

static void move_bytes(
	struct relay *r, const struct pollfd p[static RELAY_POLLS])
{
	/* poll(2) may have looked at the old terminal's descriptors. */
	if (r->changed)
		return;
	if (p[RELAY_POLL_OUT].fd >= 0 && p[RELAY_POLL_OUT].revents)
		out_write(r);
	/* The event handlers may have set another tty, or called
	 * relay_hand_over(). Read the tty before the keys: the end mark in its
	 * output makes keys those of the next prompt. */
	if (r->tty >= 0 && p[RELAY_POLL_TTY].fd == r->tty) {
		if (p[RELAY_POLL_TTY].revents & (POLLIN | POLLHUP | POLLERR) &&
			!output_waits(r))
			tty_read(r);
		if (p[RELAY_POLL_TTY].revents & POLLOUT)
			tty_write(r);
	}
	if (r->keys && p[RELAY_POLL_KEYS].fd >= 0 && p[RELAY_POLL_KEYS].revents)
		keys_read(r);
}

void relay_follow_window(struct relay *r)
{
	struct terminal *t = r->with.term;

	if (!terminal_measure(t))
		return;
	jail_resize(r->with.jail, t->rows, t->cols);
	output_resize(r->with.output, t->rows, t->cols);
}

void relay_changed_terminal(struct relay *r)
{
	r->keys = r->with.term->in_tty;
	r->keys_ended = r->broken = false;
	r->changed = true;
}

static void take_signals(struct relay *r)
{
	struct signals *sig = r->with.signals;

	terminal_signals_read(sig);
	if (sig->interrupt) {
		jail_interrupt(r->with.jail);
		relay_interrupted(r);
	}
	if (sig->resized)
		relay_follow_window(r);
	sig->interrupt = sig->resized = false;
}

/* Take events before the tty's bytes: the warden announces a cell before the
 * cell writes anything. */
int relay_turn(struct relay *r, struct pollfd *p, nfds_t n, int timeout_ms)
{
	int ready;

	r->moved = r->changed = false;
	fill_polls(r, p);
	ready = poll(p, n, timeout_ms);
	if (ready < 0)
		return ready;
	if (p[RELAY_POLL_SIGNALS].revents)
		take_signals(r);
	r->with.events(r->with.arg);
	move_bytes(r, p);
	if (r->unasked && relay_reads_lines(r))
		ask_who_waits(r);
	if (r->with.signals->suspend)
		r->with.events(r->with.arg);
	return ready;
}

void relay_flush(struct relay *r)
{
	struct signals *sig = r->with.signals;
	int64_t took = now_ms();

	while (!relay_is_flushed(r)) {
		struct pollfd p[RELAY_POLLS];
		int64_t left = took - now_ms();

		r->changed = false;
		left += sig->end ? FLUSH_END_MS : FLUSH_MS;
		if (left <= 0)
			break;
		fill_polls(r, p);
		p[RELAY_POLL_KEYS].fd = p[RELAY_POLL_TTY].fd = -1;
		p[RELAY_POLL_JAIL].fd = -1;
		if (poll(p, RELAY_POLLS, (int)left) < 0)
			continue;
		if (p[RELAY_POLL_OUT].revents)
			took = now_ms();
		terminal_signals_read(sig);
		move_bytes(r, p);
	}
}

bool relay_leave(struct relay *r)
{
	bool whole = vt_pen_is_alternate(&r->with.output->vt);

	output_suspend(r->with.output);
	relay_flush(r);
	terminal_restore(r->with.term);
	return whole;
}

/* A program that has the whole screen draws it anew when the size changes. */
void relay_return(struct relay *r, bool whole)
{
	const struct terminal *t = r->with.term;

	terminal_raw(r->with.term);
	relay_follow_window(r);
	if (!whole)
		return;
	output_take_screen(r->with.output);
	jail_resize(r->with.jail, t->rows > 1 ? t->rows - 1 : t->rows, t->cols);
	poll(NULL, 0, RELAY_REDRAW_MS);
	jail_resize(r->with.jail, t->rows, t->cols);
}

void relay_put(struct relay *r, const void *buf, size_t n)
{
	if (r->broken)
		return;
	if (r->out_at > RELAY_BACKLOG) {
		strbuf_cut(&r->out, r->out_at);
		r->out_at = 0;
	}
	strbuf_add(&r->out, buf, n);
	if (r->out.failed) {
		/* Out of memory: drop the waiting output and go on. */
		strbuf_free(&r->out);
		r->out_at = 0;
	}
}

bool relay_has_room(const struct relay *r)
{
	return r->out.n - r->out_at < RELAY_BACKLOG;
}

bool relay_is_flushed(const struct relay *r)
{
	return r->broken || r->out_at == r->out.n;
}
