/* SPDX-License-Identifier: MIT */
/*
 * cell.c - a cell from hand-over to verdict
 *
 * Runs in:   front end
 * Holds:     the terminal in raw mode, while the cell runs and until somebody
 *            wants it otherwise: what is typed between cells stays bytes
 * Trusts:    the warden for when it ended and how. The guest's end mark only
 *            says where its output ends, and is waited for no longer than
 *            the tty says something
 * Leaves:    the screen's modes as they were, however the cell ended
 */
#include "session.h"

#include "jail/base/array.h"
#include "jail/base/io.h"
#include "log.h"
#include "repl/config/config.h"
#include "repl/edit/editor.h"
#include "repl/text/text.h"
#include "verdict.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Without a mark: this long without a byte ends a cell's output, and whatever
 * still comes, this long after its end is background. */
#define SILENCE_MS 50
/* The same when every writer is known to be dead: only what is still on its
 * way through the kernel can come. */
#define DEAD_SILENCE_MS 10
#define OUTPUT_END_MS 2000
/* A terminal that takes nothing for so long is not waited for; nor so long
 * when we are to end. */
#define FLUSH_MS 10000
#define FLUSH_END_MS 500

static int silence_ms(const struct session *s)
{
	return s->done.after == AFTER_KEPT ? SILENCE_MS : DEAD_SILENCE_MS;
}

static bool output_is_over(const struct session *s, int64_t now)
{
	if (!s->ended)
		return false;
	if (s->relay.tty < 0 || !s->running || output_is_marked(&s->output))
		return true;
	return now - s->quiet_since_ms >= silence_ms(s) ||
	       now - s->ended_ms >= OUTPUT_END_MS;
}

static void poll_once(struct session *s, int timeout)
{
	struct pollfd p[RELAY_POLLS];

	if (relay_turn(&s->relay, p, RELAY_POLLS, timeout) < 0)
		return;
	/* A tty that is not read, because the terminal does not drain, is not
	 * silent. */
	if (s->relay.moved || (s->relay.tty >= 0 && p[RELAY_POLL_TTY].fd < 0))
		s->quiet_since_ms = now_ms();
	if (s->relay.keys_ended || s->relay.broken)
		session_end_by(s, SIGHUP);
}

static void wait_for_end(struct session *s)
{
	while (!s->over && !output_is_over(s, now_ms()))
		poll_once(s, s->ended ? silence_ms(s) : -1);
	while (!s->over && !relay_is_flushed(&s->relay))
		poll_once(s, -1);
}

static void frame(void *arg, const char *text)
{
	session_frame(arg, "%s", text);
}

static void show_verdict(struct session *s)
{
	const char *source = config_source(s->cfg, "session.memory");
	struct verdict_about about = {.limits = &s->cfg->limits};
	char text[VERDICT_MAX];
	struct err e = {0};

	if (source && strcmp(source, CONFIG_BUILT_IN) != 0)
		about.memory_source = source;
	verdict_line(text, &s->done, &about);
	log_limit(s->log, s->done.limit);
	if (text[0])
		session_frame(s, "%s", text);
	if (log_cell_end(s->log, text, &e) < 0)
		session_frame(s, "%s", e.msg);
	if (s->stack.n)
		session_print_foreign(s, s->stack.s, s->stack.n);
	s->stack.n = 0;
}

static void finish_output(struct session *s)
{
	struct output_report r;

	if (!s->running)
		return;
	output_end(&s->output, &r);
	s->running = false;
	output_summary(&r, frame, s);
	session_tell_background(s);
}

static int remember(struct session *s, const char *src, size_t n)
{
	struct session_cell *c;

	if (array_grow(&s->cells, s->n_cells, sizeof(*s->cells)) < 0)
		return -1;
	c = &s->cells[s->n_cells];
	*c = (struct session_cell){.no = s->cell, .n = n};
	c->src = malloc(n + 1);
	if (!c->src)
		return -1;
	memcpy(c->src, src, n);
	c->src[n] = '\0';
	c->ok = s->done.how == HOW_OK;
	s->n_cells++;
	return 0;
}

static void begin(struct session *s)
{
	char keys[RELAY_IN];

	s->in_cell = true;
	s->running = s->ended = false;
	s->stack.n = s->late.n = 0;
	memset(&s->done, 0, sizeof(s->done));
	signals_read(s->signals);
	s->signals->interrupt = false;
	relay_follow_window(&s->relay); /* changed since the cell was sent */
	relay_begin(&s->relay);
	s->relay.keys = s->term->in_tty;
	terminal_raw(s->term);
	relay_type(&s->relay, keys,
		editor_take_input(s->editor, keys, sizeof(keys)));
}

/* Give the editor what the cell did not read: first what was on its way to the
 * tty when the warden last looked, then what never left. */
static void give_back(struct session *s)
{
	char keys[RELAY_IN];
	size_t fresh = s->relay.fresh, n;

	if (s->relay.typed && !s->over && jail_return_keys(s->jail) == 0)
		session_take_events(s);
	strbuf_add(&s->ahead, keys, relay_untype(&s->relay, keys));
	n = s->ahead.n < fresh ? s->ahead.n : fresh;
	if (n && !s->ahead.failed)
		editor_prefill(s->editor, s->ahead.s + s->ahead.n - n, n);
	strbuf_free(&s->ahead);
}

static void end(struct session *s)
{
	finish_output(s);
	if (s->ended)
		show_verdict(s);
	relay_flush(&s->relay, FLUSH_MS, FLUSH_END_MS);
	s->in_cell = false;
	session_tell_limited(s);
	if (s->next_tty >= 0)
		session_set_tty(s, fd_take(&s->next_tty));
	give_back(s);
}

/* Cell s->cell, from hand-over to verdict. */
static int run(struct session *s, const char *src, size_t n, struct err *e)
{
	if (jail_run(s->jail, s->cell, src, n, e) < 0)
		return -1;
	log_cell(s->log, s->cell, src, n);
	begin(s);
	wait_for_end(s);
	end(s);
	if (s->done.after == AFTER_RESTARTED)
		session_restarted(s);
	if (s->done.how != HOW_EXIT)
		s->warned = false;
	if (s->done.after == AFTER_ENDED) {
		s->over = true;
		s->status = s->done.how == HOW_EXIT ? s->done.status : 1;
	} else if (s->done.how == HOW_EXIT) {
		session_leave(s, s->done.status);
	}
	return 0;
}

void session_restarted(struct session *s)
{
	s->startup_due = s->restarting = true;
}

/* A startup that costs Python its life is not tried again. */
void session_startup(struct session *s)
{
	const char *src = s->cfg->startup;
	struct err e = {0};
	int r;

	if (!s->startup_due)
		return;
	s->startup_due = false;
	if (!src || !*src)
		return;
	/* A fresh session's first cell is 1 with and without it. */
	s->cell += s->n_cells > 0 || s->cell > 0;
	r = run(s, src, strlen(src), &e);
	s->startup_due = false;
	if (r == 0 && s->done.how == HOW_OK)
		return;
	session_frame(s, "python.startup did not end well: it is set in %s",
		config_source(s->cfg, "python.startup"));
}

int session_cell(struct session *s, const char *src, size_t n, struct err *e)
{
	session_startup(s);
	if (s->over)
		return 0;
	/* First the window: the cell may ask at once how large it is. */
	relay_follow_window(&s->relay);
	s->cell++;
	if (run(s, src, n, e) < 0) {
		s->cell--;
		return -1;
	}
	if (s->done.how == HOW_REFUSED)
		s->cell--;
	else
		remember(s, src, n);
	return 0;
}
