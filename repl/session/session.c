/* SPDX-License-Identifier: MIT */
/*
 * session.c - printing, leaving
 *
 * Runs in:   front end, confined
 * Holds:     the terminal
 * Trusts:    the person, as far as the configuration lets them; the warden
 * Leaves:    the terminal as it was
 */
#include "repl/session/session.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/jail.h"
#include "repl/attach/attach.h"
#include "repl/config/config.h"
#include "repl/config/options.h"
#include "repl/edit/editor.h"
#include "repl/term/term.h"
#include "repl/text/text.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- printing ---- */

/* Append text for a terminal in raw mode: lines end with "\r\n". */
static void add_raw_text(struct strbuf *b, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (text[i] == '\n')
			strbuf_puts(b, "\r\n");
		else
			strbuf_add(b, &text[i], 1);
}

void session_print(struct session *s, const char *text, size_t n)
{
	struct strbuf b = {0};

	if (!s->relay) {
		editor_print_above(s->editor, text, n);
		return;
	}
	if (s->term->out_tty)
		add_raw_text(&b, text, n);
	else
		strbuf_add(&b, text, n);
	if (b.n && !b.failed)
		relay_put(s->relay, b.s, b.n);
	strbuf_free(&b);
}

/* If output does not go to a terminal, frame lines go to standard error. */
void session_frame(struct session *s, const char *fmt, ...)
{
	struct output_look look = {.end = "\n"};
	struct strbuf b = {0};
	char text[2048];
	va_list ap;
	int rows;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	detached_say(s, text);
	/* :out keeps the output of its cell from the screen, and no line of
	 * ours. */
	if (s->output && !s->aside && s->term->out_tty) {
		output_say(s->output, text);
		return;
	}
	watchers_say(s, text);
	if (s->term->out_tty) {
		look.colour = s->term->colour;
		editor_size(s->editor, &rows, &look.columns);
	} else if (s->term->raw) {
		look.end = "\r\n";
	}
	output_frame(&b, text, &look);
	if (b.failed)
		;
	else if (s->term->out_tty)
		session_print(s, b.s, b.n);
	else
		io_write_full(STDERR_FILENO, b.s, b.n);
	strbuf_free(&b);
}

void session_refuse(struct session *s, const struct err *e)
{
	session_frame(s, "%s%s%s", e->msg, e->hint[0] ? " · " : "", e->hint);
}

void session_print_foreign(struct session *s, const char *text, size_t n)
{
	struct strbuf b = {0};

	text_lines(&b, text, n);
	if (b.s && !b.failed)
		session_print(s, b.s, b.n);
	strbuf_free(&b);
}

/* Each row of the answer is: name TAB type TAB size TAB value. */
size_t session_variables(struct session *s, const char *name)
{
	static const char module[] = "\tmodule\t";
	size_t n, found = 0, len = name ? strlen(name) : 0;
	auto_free char *answer = NULL;

	if (jail_ask(s->jail, ASK_WHO, "", 0, &answer, &n, NULL) < 0)
		return 0;
	for (const char *p = answer, *tab, *end; n; p = end) {
		end = memchr(p, '\n', n);
		end = end ? end + 1 : p + n;
		n -= (size_t)(end - p);
		tab = memchr(p, '\t', (size_t)(end - p));
		if (!tab || (size_t)(end - tab) < sizeof(module))
			continue;
		if (name ? (size_t)(tab - p) == len && !memcmp(p, name, len)
			 : memcmp(tab, module, sizeof(module) - 1) != 0)
			found++;
	}
	return found;
}

/* ---- what the host lacks ---- */

void session_tell_limited(struct session *s)
{
	if (!s->limited[0] || s->told_limited || s->relay || s->opt->quiet)
		return;
	s->told_limited = true;
	if (notices_were_shown(s->notices_fd, s->limited))
		return;
	session_frame(s, "here %s · :limits", s->limited);
}

void session_set_limited(struct session *s, const char *limited)
{
	snprintf(s->limited, sizeof(s->limited), "%s", limited);
	session_tell_limited(s);
}

/* ---- leaving ---- */

void session_name_figure(struct session *s, unsigned number)
{
	s->figures[s->nfigures++ % SESSION_FIGURES] = number;
}

/* True if a frame line named this file. */
static bool is_figure(const struct session *s, const char *path)
{
	char name[32];

	for (size_t i = 0; i < s->nfigures && i < SESSION_FIGURES; i++) {
		snprintf(name, sizeof(name), "figure-%u.png", s->figures[i]);
		if (!strcmp(name, path))
			return true;
	}
	return false;
}

bool session_goes_on_alone(const struct session *s)
{
	return s->signals->outlives && control_is_named(s->control);
}

/* True if root's service hands it in when the session ends. */
static bool is_handed_in(const struct session *s, const char *path)
{
	return s->courier >= 0 && exam_hands_in(s->cfg) &&
	       !exam_is_late(s->cfg, time(NULL)) &&
	       transfer_matches(s->cfg->exam_hand_in, path);
}

/* Write the files that would be lost, as in "2 files never downloaded: a, b";
 * "" if there are none. -1 if the person stops the search. */
static int name_files(struct session *s, char *buf, size_t size)
{
	struct jail_files files = {0};
	size_t which[3], n;
	char names[600] = "", safe[160], count[TEXT_HUMAN];

	buf[0] = '\0';
	if (jail_home_list(s->jail, &files, NULL) < 0)
		return s->signals->interrupt ? -1 : 0;
	for (size_t i = 0; i < files.n; i++)
		if (is_figure(s, files.v[i].path) ||
			is_handed_in(s, files.v[i].path))
			files.v[i].type = 'o';
	n = ledger_unsaved(&s->ledger, &files, which, 3);
	for (size_t i = 0; i < n && i < 3; i++) {
		const char *path = files.v[which[i]].path;

		text_safe(safe, sizeof(safe), path, strlen(path));
		strcat(names, i ? ", " : "");
		strcat(names, safe);
	}
	jail_files_free(&files);
	if (n)
		snprintf(buf, size, "%s never downloaded: %s%s",
			text_count(count, sizeof(count), n, "file", NULL),
			names, n > 3 ? ", …" : "");
	return 0;
}

/* Warn the person of what would be lost. True if there is anything. Variables
 * alone stop only Ctrl-D, which a finger may press by accident. */
static bool warn_unsaved(struct session *s, const char *by)
{
	bool asks = s->cfg->confirm && !strcmp(by, SESSION_CTRL_D);
	bool alone = session_goes_on_alone(s);
	char files[800], count[TEXT_HUMAN] = "", number[32] = "the session";
	size_t n = 0;

	if (!s->cell_no)
		return false;
	if (name_files(s, files, sizeof(files)) < 0)
		return true;
	if ((files[0] || asks) && s->cell_no > s->saved)
		n = session_variables(s, NULL);
	if (!files[0] && !(asks && n))
		return s->signals->interrupt;
	if (n)
		text_count(count, sizeof(count), n, "variable", NULL);
	if (alone)
		snprintf(number, sizeof(number), "session %d",
			control_id(s->control));
	session_frame(s, "%s has %s%s%s · %s again to leave%s", number, count,
		n && files[0] ? " and " : "", files, by,
		alone && config_allows_command(s->cfg, "detach")
			? ", :detach to keep it"
			: "");
	return true;
}

void session_end(struct session *s, int status)
{
	s->over = true;
	s->status = status;
}

void session_end_by(struct session *s, int sig)
{
	session_end(s, 128 + sig);
}

void session_fail(struct session *s, const struct err *e)
{
	s->over = true;
	s->why = *e;
}

void session_finish(struct session *s)
{
	terminal_lines(s->term);
	if (s->calls->finish(s) < 0 && !s->status)
		s->status = 1;
}

void session_leave(struct session *s, int status, const char *by)
{
	s->status = status;
	s->leaves = detached_is_gone(s);
	if (s->leaves)
		return;
	session_finish(s);
	if (s->over)
		return;
	if (!s->warned && warn_unsaved(s, by)) {
		s->warned = !s->signals->interrupt;
		s->status = 0;
		return;
	}
	s->over = s->finished = true;
}

void session_stay(struct session *s)
{
	s->warned = false;
}
