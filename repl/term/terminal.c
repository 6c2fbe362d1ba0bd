/* SPDX-License-Identifier: MIT */
/*
 * terminal.c - the person's own terminal
 *
 * Runs in:   front end; opened before it confines itself
 * Trusts:    of the environment only NO_COLOR, and TERM where it names a
 *            terminal without escape sequences
 * Leaves:    the modes as they were found, after every cell and at the end
 *
 * The terminal is opened again for output, because that must be non-blocking:
 * on the inherited descriptor the shell that started us would share O_NONBLOCK
 * and keep it after our end.
 */
#include "terminal.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "repl/text/strbuf.h"
#include "repl/text/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

bool terminal_is_dumb(void)
{
	static const char *const dumb[] = {"", "dumb", "emacs", "unknown"};
	const char *term = getenv("TERM");

	for (size_t i = 0; term && i < sizeof(dumb) / sizeof(*dumb); i++)
		if (!strcmp(term, dumb[i]))
			return true;
	return !term;
}

static bool colour_wanted(enum config_colour colour, bool out_tty)
{
	const char *none = getenv("NO_COLOR");

	switch (colour) {
	case COLOUR_ALWAYS:
		return true;
	case COLOUR_NEVER:
		return false;
	case COLOUR_AUTO:
		break;
	}
	return out_tty && !(none && *none) && !terminal_is_dumb();
}

/* Open the terminal behind `fd` again; -1 when that is not allowed, as after
 * su(1). */
static int reopen(int fd)
{
	char name[PATH_MAX];
	struct stat a, b;
	auto_close int again = -1;

	if (ttyname_r(fd, name, sizeof(name)) != 0)
		return -1;
	again = open(name, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (again < 0 || fstat(fd, &a) < 0 || fstat(again, &b) < 0)
		return -1;
	if (a.st_rdev != b.st_rdev || !isatty(again))
		return -1;
	return fd_take(&again);
}

static void use_for_output(struct terminal *t, int fd)
{
	int again = reopen(fd);

	t->own = again >= 0;
	t->out = t->own ? again : fd;
}

void terminal_use_any(struct terminal *t)
{
	if (t->out_tty)
		return;
	if (t->err_tty)
		use_for_output(t, STDERR_FILENO);
	else if (t->in_tty)
		use_for_output(t, STDIN_FILENO);
}

void terminal_open(struct terminal *t, enum config_colour colour)
{
	*t = (struct terminal){
		.in = STDIN_FILENO, .out = STDOUT_FILENO, .modes_fd = -1};
	t->in_tty = isatty(STDIN_FILENO);
	t->out_tty = isatty(STDOUT_FILENO);
	t->err_tty = isatty(STDERR_FILENO);
	t->colour = colour_wanted(colour, t->out_tty);
	t->dumb = terminal_is_dumb();
	if (t->in_tty)
		t->modes_fd = STDIN_FILENO;
	if (t->modes_fd >= 0)
		t->saved = tcgetattr(t->modes_fd, &t->modes) == 0;
	if (t->out_tty)
		use_for_output(t, STDOUT_FILENO);
	terminal_measure(t);
}

void terminal_close(struct terminal *t)
{
	terminal_restore(t);
	if (t->own)
		fd_drop(&t->out);
	t->own = false;
}

void terminal_raw(struct terminal *t)
{
	struct termios raw = t->modes;

	if (!t->saved || t->raw)
		return;
	cfmakeraw(&raw);
	t->raw = tcsetattr(t->modes_fd, TCSADRAIN, &raw) == 0;
}

/* A terminal that is not our controlling terminal has no jobs. */
bool terminal_is_in_front(const struct terminal *t)
{
	pid_t front = tcgetpgrp(t->in);

	return front < 0 || front == getpgrp();
}

void terminal_restore(struct terminal *t)
{
	if (!t->saved || !t->raw)
		return;
	while (tcsetattr(t->modes_fd, TCSADRAIN, &t->modes) < 0 &&
		errno == EINTR)
		;
	t->raw = false;
}

bool terminal_measure(struct terminal *t)
{
	struct winsize ws = {0};
	unsigned short rows = t->rows, cols = t->cols;
	int fd = t->out_tty || t->own ? t->out : t->in;

	if (ioctl(fd, TIOCGWINSZ, &ws) < 0)
		return false;
	t->rows = ws.ws_row;
	t->cols = ws.ws_col;
	return rows != t->rows || cols != t->cols;
}

int terminal_columns(int fd)
{
	struct winsize ws = {0};

	return ioctl(fd, TIOCGWINSZ, &ws) < 0 ? 0 : ws.ws_col;
}

#define HANG 2

void terminal_print_line(FILE *f, const char *line)
{
	size_t hang = strnlen(line, HANG);
	struct strbuf b = {0};

	strbuf_add(&b, line, hang);
	text_wrap(&b, line + hang, (int)hang, terminal_columns(fileno(f)));
	if (!b.failed)
		fputs(b.s, f);
	strbuf_free(&b);
}

void terminal_complain(const char *what, const char *text)
{
	while (*text) {
		size_t n = strcspn(text, "\n");
		char safe[1024], line[1200];

		text_safe(safe, sizeof(safe), text, n);
		snprintf(line, sizeof(line), "cellblock: %s%s%s",
			what ? what : "", what ? ": " : "", safe);
		terminal_print_line(stderr, line);
		text += n + (text[n] == '\n');
	}
}

void terminal_refuse(const struct err *e)
{
	terminal_complain(NULL, e->msg);
	for (const char *p = e->hint; *p;) {
		size_t n = strcspn(p, "\n");
		char safe[1200];

		text_safe(safe, sizeof(safe), p, n);
		fprintf(stderr, "  %s\n", safe);
		p += n + (p[n] == '\n');
	}
}

/* To a blocking descriptor no more is written than poll(2) promises: a terminal
 * is writable while it has room for a few hundred bytes. */
static size_t piece(const struct terminal *t, size_t n)
{
	return t->own || n < 256 ? n : 256;
}

int terminal_write(struct terminal *t, const char *s, size_t n, int timeout_ms)
{
	while (n) {
		struct pollfd p = {.fd = t->out, .events = POLLOUT};
		int r = poll(&p, 1, timeout_ms);
		ssize_t w;

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0 || (p.revents & (POLLERR | POLLNVAL)))
			return -1;
		w = write(t->out, s, piece(t, n));
		if (w < 0 && errno != EAGAIN && errno != EINTR)
			return -1;
		if (w > 0) {
			s += w;
			n -= (size_t)w;
		}
	}
	return 0;
}

void terminal_puts(struct terminal *t, const char *s)
{
	terminal_write(t, s, strlen(s), 2000);
}
