/* SPDX-License-Identifier: MIT */
/*
 * terminals.c - terminals that come to a session and leave it
 *
 * Runs in:   front end, confined
 * Holds:     the terminal
 * Trusts:    a client that the control socket let in, if its descriptors are
 *            terminals; no text of a client: it is checked or made safe
 * Leaves:    a session that goes on the same at any terminal
 */
#include "repl/session/session.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "repl/attach/attach.h"
#include "repl/config/config.h"
#include "repl/edit/editor.h"
#include "repl/term/term.h"
#include "repl/term/vt/vt.h"
#include "repl/text/text.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Most lines of missed output that we show. */
#define MISSED_LINES 20

/* By `root` of struct watchers_who. */
static const char *const is_watching[] = {
	"you are watching", "root is watching"};
static const char *const has_stopped[] = {
	"you have stopped watching", "root has stopped watching"};

/* Let a file take the place of the terminal, which we do not touch any more. 0,
 * or -1: there is no file. */
static int leave_terminal(struct session *s)
{
	int file = detached_begin(s);

	if (file < 0)
		return -1;
	terminal_leave(s->term, file);
	screen_take_terminal(s, false);
	return 0;
}

/* ---- stopping as a job ---- */

/* True if a program in the cell has the whole screen. */
static bool is_whole(const struct session *s)
{
	return s->output && vt_pen_is_alternate(&s->output->vt);
}

static void tell_no_shell(struct session *s)
{
	char time[TEXT_HUMAN];

	if (session_goes_on_alone(s) && config_allows_command(s->cfg, "detach"))
		session_frame(s,
			"Ctrl-Z: no shell waits for cellblock here · :detach "
			"leaves the session, which goes on for %s",
			text_time(time, s->cfg->linger_ms));
	else
		session_frame(s,
			"Ctrl-Z: no shell waits for cellblock here, and nobody "
			"could come back to this session");
}

/* Go on without the terminal until the client brings it back. With `behind`
 * another job has the terminal already. 0, or -1: we cannot. */
static int let_go(struct session *s, bool behind)
{
	if (!behind) {
		/* The client leaves the alternate screen: the program in the
		 * cell stays there. */
		if (s->output && !is_whole(s))
			output_suspend(s->output);
		if (s->relay)
			relay_flush(s->relay);
		terminal_restore(s->term);
	}
	if (leave_terminal(s) < 0)
		return -1;
	s->stopped = true;
	control_alarm(s->control, 0);
	return 0;
}

static void stop_client(struct session *s, bool behind)
{
	bool whole = is_whole(s);

	if (let_go(s, behind) < 0)
		session_frame(s, "Ctrl-Z: no memory to keep what cells write");
	else
		control_stop(s->control, whole);
}

/* The terminal is ours again: another program may have changed all of it. If
 * the terminal is not ours yet, a signal ends the session. */
static void take_back(struct session *s, bool whole)
{
	terminal_forget_modes(s->term);
	if (!job_is_in_front(s->term->in)) {
		terminal_signals_read(s->signals);
		if (s->signals->end)
			session_end_by(s, s->signals->end);
		return;
	}
	terminal_measure(s->term);
	screen_take_terminal(s, false);
	if (s->relay)
		relay_return(s->relay, whole);
}

static void stop_ourselves(struct session *s)
{
	bool whole = s->output && relay_leave(s->relay);

	terminal_restore(s->term);
	job_stop();
	job_await_front(s->term->in, -1);
	take_back(s, whole);
}

bool terminals_fall_behind(struct session *s)
{
	return s->detached && !detached_is_gone(s) &&
	       control_stops(s->control) && !job_is_in_front(s->term->in) &&
	       let_go(s, true) == 0;
}

void terminals_continue(struct session *s)
{
	struct signals *sig = s->signals;

	sig->continued = false;
	if (!s->detached) {
		bool whole = screen_swap(s);

		job_await_front(s->term->in, -1);
		take_back(s, whole);
	} else {
		terminals_fall_behind(s);
	}
}

void terminals_stop(struct session *s)
{
	bool behind = s->signals->behind;

	s->signals->suspend = s->signals->behind = false;
	/* We knew before the client that another job has the terminal. */
	if (s->stopped && behind)
		control_stop(s->control, false);
	if (detached_is_gone(s))
		return;
	if (s->detached ? !control_stops(s->control) : !job_has_shell())
		tell_no_shell(s);
	else if (s->detached)
		stop_client(s, behind);
	else
		stop_ourselves(s);
}

/* ---- without a terminal ---- */

/* Write how to come back, for the person who leaves. */
static void write_way_back(const struct session *s, char *text, size_t size)
{
	char time[TEXT_HUMAN], command[48], begin[80];
	int id = control_id(s->control), n;

	snprintf(command, sizeof(command),
		s->login ? "ssh -t HOST attach %d" : "cellblock --attach %d",
		id);
	n = snprintf(begin, sizeof(begin),
		"[session %d goes on for %s · come back with:", id,
		text_time(time, s->cfg->linger_ms));
	/* A command that is to be copied is not wrapped. The dot has two
	 * bytes, and a blank and a bracket come. */
	snprintf(text, size, "%s%s%s]", begin,
		n + 1 + (int)strlen(command) > s->term->cols && s->term->cols
			? "\r\n "
			: " ",
		command);
}

/* How long the session goes on without a terminal. */
static int64_t linger_ms(const struct session *s)
{
	int64_t ms = s->cfg->linger_ms;

	return s->unseen && !s->nsides && ms < SESSION_UNSEEN_MS
		       ? SESSION_UNSEEN_MS
		       : ms;
}

/* Go on without a terminal, until somebody comes back or session.linger is
 * over. */
static void detach_terminal(struct session *s)
{
	char text[ATTACH_TEXT];

	/* A client that was killed has restored nothing. */
	if (!detached_is_gone(s) && job_is_in_front(s->term->in))
		terminal_restore(s->term);
	if (!detached_is_gone(s) && leave_terminal(s) < 0) {
		session_end_by(s, SIGHUP);
		return;
	}
	s->stopped = false;
	setsid(); /* fails if we called it before */
	write_way_back(s, text, sizeof(text));
	control_leave(s->control, ATTACH_LEFT, 0, text);
	control_alarm(s->control, linger_ms(s));
	log_attach(s->log, "detached", detached_from(s));
}

/* True if the session has nothing to come back to: no cell ran, and only the
 * skeleton put files. */
static bool is_unused(const struct session *s)
{
	return !s->cell_no && s->ledger.n <= s->given && !s->nsides &&
	       !s->unseen;
}

void terminals_lose(struct session *s)
{
	if (terminals_fall_behind(s))
		return;
	if (detached_is_gone(s) && !s->stopped)
		return;
	if (!session_goes_on_alone(s) || is_unused(s))
		session_end_by(s, SIGHUP);
	else
		detach_terminal(s);
}

int terminals_detach(struct session *s, struct err *e)
{
	if (!s->signals->outlives) {
		err_set(e, "nobody could come back to this session: %s",
			s->no_control ? s->no_control : "it has no socket");
		return -1;
	}
	if (!control_is_named(s->control))
		return err_set(e, "nobody could come back to this session: "
				  "its socket was removed");
	terminal_measure(s->term);
	detach_terminal(s);
	return 0;
}

/* ---- what was missed ---- */

static void append_bytes(void *arg, const void *buf, size_t n)
{
	strbuf_add(arg, buf, n);
}

/* Filter the end of an output for this terminal. With `bars` its frame lines
 * are ours, and pass; otherwise the guest may have written them. */
static void filter_missed(const struct session *s, const char *buf, size_t n,
	bool bars, struct strbuf *out)
{
	auto_free struct vt *v = malloc(sizeof(*v));

	if (!v)
		return;
	vt_init(v, s->term->colour ? VT_SAFE : VT_PLAIN, append_bytes, out);
	v->late = v->lf_returns = true;
	v->alone = bars;
	for (size_t i = 0; i < n; i++)
		if (buf[i] != '\r')
			vt_feed(v, buf + i, 1);
	vt_finish(v, true);
	vt_undo(v);
	if (out->n && out->s[out->n - 1] != '\n')
		strbuf_puts(out, "\n");
}

static size_t find_last_lines(const char *buf, size_t n, int lines)
{
	size_t at = n;

	while (at > 0) {
		if (buf[at - 1] == '\n' && at < n && lines-- == 1)
			break;
		at--;
	}
	return at;
}

/* Show the end of a text, at most MISSED_LINES lines. */
static void show_end(struct session *s, const char *buf, size_t n, bool bars)
{
	size_t at = find_last_lines(buf, n, MISSED_LINES);
	struct strbuf b = {0};

	filter_missed(s, buf + at, n - at, bars, &b);
	if (b.n && !b.failed)
		session_print(s, b.s, b.n);
	strbuf_free(&b);
}

/* We notice a dead connection late. Output written before that is lost, so we
 * point to :out. */
static void show_again(struct session *s, bool unseen)
{
	const struct record_output *o =
		unseen ? record_find_output(s->record, s->cell_no) : NULL;

	if (!o || !o->bytes.n) {
		session_frame(s, "session %d again", control_id(s->control));
		return;
	}
	session_frame(s,
		"session %d again · what cell %u wrote last may not have come "
		"· :out %u",
		control_id(s->control), (unsigned)s->cell_no,
		(unsigned)s->cell_no);
	if (o->total == o->bytes.n)
		show_end(s, o->bytes.s, o->bytes.n, false);
}

/* What has no end counts as a line if it has any text: the editor ends its read
 * with sequences alone. */
static uint64_t count_missed(const struct session *s, const char *buf, size_t n)
{
	size_t last = find_last_lines(buf, n, 1);
	struct strbuf b = {0};
	uint64_t lines = detached_count_lines(buf, n);

	if (n && buf[n - 1] != '\n')
		filter_missed(s, buf + last, n - last, true, &b);
	lines += b.n > 0;
	strbuf_free(&b);
	return lines;
}

/* Several cells, processes in the background and we may have written what was
 * missed. :out has the output of one cell. */
static void show_missed(struct session *s, const char *buf, size_t n,
	uint64_t lines, bool unseen)
{
	const struct record_output *o =
		record_find_output(s->record, s->cell_no);
	char follow[64] = "", out[64] = "", count[64];

	if (!lines) {
		show_again(s, unseen);
		return;
	}
	if (lines > MISSED_LINES)
		snprintf(follow, sizeof(follow), ", the last %d follow",
			MISSED_LINES);
	if ((unseen || lines > MISSED_LINES) && o && o->bytes.n)
		snprintf(out, sizeof(out), " · :out %u for cell %u",
			(unsigned)s->cell_no, (unsigned)s->cell_no);
	session_frame(s, "missed while away: %s%s%s",
		text_count(count, sizeof(count), lines, "line", NULL), follow,
		out);
	show_end(s, buf, n, true);
}

static void put_env(const char *name, const char *value)
{
	if (value[0])
		setenv(name, value, 1);
	else
		unsetenv(name);
}

static bool is_terminal(int fd)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) &&
	       isatty(fd);
}

/* True if `fd` is the terminal `out`, opened so that writing to it never waits.
 */
static bool is_same_terminal(int fd, int out)
{
	struct stat a, b;
	int flags;

	if (!is_terminal(fd) || fstat(fd, &a) < 0 || fstat(out, &b) < 0 ||
		a.st_rdev != b.st_rdev)
		return false;
	flags = fcntl(fd, F_GETFL);
	return flags >= 0 && (flags & O_NONBLOCK) &&
	       (flags & O_ACCMODE) == O_RDWR;
}

static const char *find_attach_fault(const struct control_request *v)
{
	if (!control_is_same_build(v))
		return "this session was begun by cellblock " CELLBLOCK_VERSION
		       " of another build: attach with that build, or end the "
		       "session with --end";
	for (int i = 1; i <= 3; i++)
		if (!is_terminal(v->fds[i]))
			return "standard input, output and errors must be a "
			       "terminal";
	return NULL;
}

/* Tell the client that has the session that another one takes it. The terminal
 * of the first client is free again. */
static void tell_taken(struct session *s, const char *from, bool whole)
{
	char text[ATTACH_TEXT], safe[128];

	text_safe(safe, sizeof(safe), from, strlen(from));
	snprintf(text, sizeof(text),
		"[taken over from %s · session %d goes on]",
		safe[0] ? safe : "another terminal", control_id(s->control));
	/* Before that client knows: its end may hang its terminal up, and we
	 * must not take the signal for the loss of the new terminal. */
	setsid();
	control_leave(s->control, ATTACH_TAKEN, whole, text);
}

static void use_terminal(
	struct session *s, struct control_request *v, bool whole)
{
	const struct attach_request *r = &v->request;
	char name[sizeof(r->term)];
	struct err e = {0};
	int fds[4] = {v->fds[1], v->fds[2], v->fds[3], v->fds[4]};

	if (!is_same_terminal(fds[3], fds[1]))
		fds[3] = -1;
	setup_term(name, sizeof(name), r->term);
	put_env("TERM", name);
	put_env("COLORTERM", r->colorterm);
	put_env("NO_COLOR", r->no_color);
	terminal_take(s->term, fds, s->cfg->colour, v->linked);
	control_link(s->control, v);
	/* libedit would drop the keys that were typed since. */
	if (!v->linked && editor_move(s->editor, s->term->colour, &e) < 0)
		session_fail(s, &e);
	/* The editor sets modes of its own when it moves. */
	if (s->relay)
		terminal_raw(s->term);
	screen_take_terminal(s, whole);
}

/* ---- watchers ---- */

static void tell_watcher(struct session *s, const struct watchers_who *w,
	const char *const does[2])
{
	char safe[4 * sizeof(w->from)];

	text_safe(safe, sizeof(safe), w->from, strlen(w->from));
	session_frame(
		s, "%s%s%s", does[w->root], safe[0] ? ", from " : "", safe);
}

/* Name all watchers: the person may have been away when they came. */
static void tell_watchers(struct session *s)
{
	const struct watchers_who *w;
	int i = 0;

	while ((w = watchers_next(s, &i)))
		tell_watcher(s, w, is_watching);
}

/* Let a client watch, and tell the person in the same turn. */
static void begin_watching(struct session *s, struct control_request *v)
{
	const struct record_cell runs = cell_running(s);
	const struct watchers_who *w;

	w = watchers_begin(s, v, &runs);
	if (w)
		tell_watcher(s, w, is_watching);
}

void terminals_watched(struct session *s)
{
	struct watchers_who who;

	watchers_send(s);
	while (watchers_gone(s, &who))
		tell_watcher(s, &who, has_stopped);
}

static void attach_terminal(struct session *s, struct control_request *v)
{
	bool gone = detached_is_gone(s), unseen = detached_is_unseen(s), whole;
	bool back = v->linked; /* from the client that has the session */
	bool stopped = s->stopped;
	const char *why = find_attach_fault(v);
	auto_free char *file = NULL;
	const char *missed;
	uint64_t cut, lines;
	size_t n = 0;

	if (why) {
		control_answer(v, ATTACH_NO, why, NULL);
		return;
	}
	if (!control_has(v->fd)) {
		control_drop(v);
		return;
	}
	whole = screen_swap(s);
	if (!back && (!gone || s->stopped))
		tell_taken(s, v->request.from, whole && !gone);
	s->stopped = false;
	file = detached_end(s, v->request.from, &n, &cut);
	missed = file ? file : "";
	control_alarm(s->control, whole ? RELAY_REDRAW_MS : 0);
	if (!back)
		log_attach(s->log, "attached", detached_from(s));
	use_terminal(s, v, whole);
	lines = cut + count_missed(s, missed, n);
	if (!whole && !s->over && (lines || !back))
		show_missed(s, missed, n, lines, unseen && !back);
	if (!back)
		tell_watchers(s);
	else if (stopped && !control_stops(s->control))
		tell_no_shell(s);
}

/* ---- clients ---- */

/* Show a client's text, and whether the client is root, as the kernel says. */
static void show_message(
	struct session *s, const struct control_request *v, const char *what)
{
	char safe[2 * ATTACH_TEXT];

	text_safe(safe, sizeof(safe), v->request.text, strlen(v->request.text));
	session_frame(s, "%s %s%s%s", what,
		v->uid == geteuid() ? "you, elsewhere" : "root",
		safe[0] ? ": " : "", safe);
}

static void serve_client(struct session *s, struct control_request *v)
{
	const char *why = "this session cannot do that";
	struct err e = {0};

	switch ((enum attach_kind)v->request.kind) {
	case ATTACH_ATTACH:
		attach_terminal(s, v);
		return;
	case ATTACH_WATCH:
		begin_watching(s, v);
		return;
	case ATTACH_MESSAGE:
		show_message(s, v, "message from");
		why = NULL;
		break;
	case ATTACH_END:
		show_message(s, v, "ended by");
		log_end(s->log, v->uid == geteuid() ? "the person" : "root",
			v->request.text);
		session_end_by(s, SIGTERM);
		why = NULL;
		break;
	case ATTACH_DETACH:
		if (detached_is_gone(s) || terminals_detach(s, &e) == 0)
			why = NULL;
		else
			why = e.msg;
		break;
	case ATTACH_STATUS:
	case ATTACH_SIDE:
	case ATTACH_LIST:
	case ATTACH_SIGNAL:
		break;
	}
	control_answer(v, why ? ATTACH_NO : ATTACH_OK, why, NULL);
}

void terminals_turn(struct session *s, bool may_ask)
{
	struct control_request v;

	if (s->signals->continued)
		terminals_continue(s);
	if (s->signals->suspend)
		terminals_stop(s);
	if (!s->detached)
		return;
	if (terminal_signals_lost(s->signals))
		terminals_lose(s);
	detached_answer(s, may_ask);
	while (!s->over && control_take(s->control, 0, &v))
		serve_client(s, &v);
	terminals_watched(s);
	if (s->over)
		return;
	if (!detached_is_gone(s)) {
		if (control_is_due(s->control)) {
			control_alarm(s->control, 0);
			screen_draw_anew(s);
		}
		return;
	}
	detached_trim(s);
	if (control_is_due(s->control) && session_side_is_on(s))
		control_alarm(s->control, s->cfg->linger_ms);
	if (!detached_runs(s) && control_is_due(s->control)) {
		log_attach(s->log, "ended by session.linger", detached_from(s));
		session_end(s, s->status);
	}
}
