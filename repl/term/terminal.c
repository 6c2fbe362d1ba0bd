/* SPDX-License-Identifier: MIT */
/*
 * terminal.c - the person's terminal; signals by a descriptor
 *
 * Runs in:   front end; opened before the front end confines itself
 * Trusts:    of the environment only NO_COLOR, and TERM for what the terminal
 *            lacks; each signal, since the kernel checks the sender
 * Leaves:    the terminal's modes as terminal_open() found them
 *
 * Output must not block, so we open the terminal again. The inherited
 * descriptor is shared with the shell that started us: O_NONBLOCK on it would
 * last after our end.
 */
#include "repl/term/term.h"

#include "jail/base/err.h"
#include "jail/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

bool terminal_is_dumb(void)
{
	static const char *const dumb[] = {"", "dumb", "emacs", "unknown"};
	const char *term = getenv("TERM");

	for (size_t i = 0; term && i < COUNT(dumb); i++)
		if (!strcmp(term, dumb[i]))
			return true;
	return !term;
}

static bool colour_wanted(enum config_colour colour, bool out_tty)
{
	const char *none = getenv("NO_COLOR");

	if (colour != COLOUR_AUTO)
		return colour == COLOUR_ALWAYS;
	return out_tty && !(none && *none) && !terminal_is_dumb();
}

/* Open the terminal behind `fd` again; -1 when the kernel refuses, as after
 * su(1). */
static int reopen_terminal(int fd)
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
	int again = reopen_terminal(fd);

	t->own = again >= 0;
	t->out = t->own ? again : fd;
}

void terminal_use_any(struct terminal *t)
{
	if (!t->out_tty && (t->err_tty || t->in_tty))
		use_for_output(t, t->err_tty ? STDERR_FILENO : STDIN_FILENO);
}

void terminal_open(struct terminal *t, enum config_colour colour)
{
	*t = (struct terminal){
		.in = STDIN_FILENO,
		.out = STDOUT_FILENO,
		.in_tty = isatty(STDIN_FILENO),
		.out_tty = isatty(STDOUT_FILENO),
		.err_tty = isatty(STDERR_FILENO),
		.dumb = terminal_is_dumb(),
	};
	t->colour = colour_wanted(colour, t->out_tty);
	t->saved = t->in_tty && tcgetattr(t->in, &t->modes) == 0;
	if (t->out_tty)
		use_for_output(t, STDOUT_FILENO);
	terminal_measure(t);
}

/* Make the descriptor `fd` refer to the file of `with`. */
static void replace_descriptor(int fd, int with)
{
	int flags = fd > STDERR_FILENO ? O_CLOEXEC : 0;

	while (dup3(with, fd, flags) < 0 && (errno == EINTR || errno == EBUSY))
		;
}

void terminal_leave(struct terminal *t, int file)
{
	auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	replace_descriptor(STDIN_FILENO, null >= 0 ? null : file);
	replace_descriptor(STDOUT_FILENO, file);
	replace_descriptor(STDERR_FILENO, file);
	if (t->own)
		replace_descriptor(t->out, file);
	t->in_tty = t->saved = t->raw = t->lines = false;
	t->out_tty = t->err_tty = true;
}

void terminal_take(struct terminal *t, const int fds[4],
	enum config_colour colour, bool again)
{
	for (int i = 0; i < 3; i++)
		replace_descriptor(i, fds[i]);
	if (t->own)
		fd_drop(&t->out);
	t->in = STDIN_FILENO;
	t->in_tty = t->out_tty = t->err_tty = true;
	t->own = fds[3] >= 0;
	t->out = t->own ? fcntl(fds[3], F_DUPFD_CLOEXEC, 3) : STDOUT_FILENO;
	t->dumb = terminal_is_dumb();
	t->colour = colour_wanted(colour, true);
	t->raw = t->lines = false;
	t->saved = again || tcgetattr(t->in, &t->modes) == 0;
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
	t->raw = tcsetattr(t->in, TCSANOW, &raw) == 0;
}

void terminal_keys(struct terminal *t)
{
	struct termios keys = t->modes;

	if (!t->saved || t->raw)
		return;
	keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	keys.c_cc[VMIN] = 1;
	keys.c_cc[VTIME] = 0;
	t->raw = tcsetattr(t->in, TCSANOW, &keys) == 0;
}

void terminal_raw_interrupt(const struct terminal *t, bool on)
{
	struct termios m;

	if (!t->raw || tcgetattr(t->in, &m) < 0)
		return;
	m.c_lflag = on ? m.c_lflag | ISIG : m.c_lflag & ~(tcflag_t)ISIG;
	m.c_cc[VINTR] = 'C' & 0x1f;
	m.c_cc[VQUIT] = m.c_cc[VSUSP] = _POSIX_VDISABLE;
	tcsetattr(t->in, TCSANOW, &m);
}

static void leave_raw(struct terminal *t, const struct termios *modes)
{
	while (tcsetattr(t->in, TCSANOW, modes) < 0 && errno == EINTR)
		;
	t->raw = t->lines = false;
}

void terminal_lines(struct terminal *t)
{
	struct termios lines = t->modes;

	if (!t->saved || !t->raw)
		return;
	lines.c_cc[VEOF] = _POSIX_VDISABLE;
	leave_raw(t, &lines);
	t->lines = true;
}

void terminal_restore(struct terminal *t)
{
	if (t->saved && (t->raw || t->lines))
		leave_raw(t, &t->modes);
}

void terminal_forget_modes(struct terminal *t)
{
	t->raw = t->lines = false;
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
	t->cell_width = t->cols ? ws.ws_xpixel / t->cols : 0;
	t->cell_height = t->rows ? ws.ws_ypixel / t->rows : 0;
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

/* Cut the first line off *text and make it safe. False at the end. */
static bool next_line(const char **text, char *safe, size_t size)
{
	size_t n = strcspn(*text, "\n");

	if (!**text)
		return false;
	text_safe(safe, size, *text, n);
	*text += n + ((*text)[n] == '\n');
	return true;
}

void terminal_complain(const char *what, const char *text)
{
	char safe[1024], line[1200];

	while (next_line(&text, safe, sizeof(safe))) {
		snprintf(line, sizeof(line), "cellblock: %s%s%s",
			what ? what : "", what ? ": " : "", safe);
		terminal_print_line(stderr, line);
	}
}

void terminal_refuse(const struct err *e)
{
	const char *hint = e->hint;
	char safe[1200];

	terminal_complain(NULL, e->msg);
	while (next_line(&hint, safe, sizeof(safe)))
		fprintf(stderr, "  %s\n", safe);
}

ssize_t terminal_write_some(const struct terminal *t, const char *s, size_t n)
{
	return write(t->out, s, t->own || n < 256 ? n : 256);
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
		w = terminal_write_some(t, s, n);
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

/* ---- signals ---- */

int terminal_signals_open(struct signals *s, bool session, struct err *e)
{
	static const int ending[] = {SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction a;
	sigset_t set;

	*s = (struct signals){.fd = -1, .signal = -1};
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGWINCH);
	sigaddset(&set, SIGCONT);
	if (session)
		sigaddset(&set, SIGTSTP);
	/* nohup(1) has us ignore SIGHUP: leave ignored signals ignored. */
	for (size_t i = 0; i < 3; i++)
		if (sigaction(ending[i], NULL, &a) < 0 ||
			a.sa_handler != SIG_IGN)
			sigaddset(&set, ending[i]);
	sigprocmask(SIG_BLOCK, &set, &s->before);
	sigaddset(&set, SIGTSTP);
	signal(SIGINT, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	if (session) {
		signal(SIGTTIN, SIG_IGN);
		signal(SIGTTOU, SIG_IGN);
	}
	s->fd = s->signal = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->fd >= 0)
		return 0;
	err_errno(e, "open a descriptor for signals");
	sigprocmask(SIG_SETMASK, &s->before, NULL);
	return -1;
}

void terminal_signals_close(struct signals *s)
{
	if (s->signal < 0)
		return;
	fd_drop(&s->signal);
	s->fd = -1;
	sigprocmask(SIG_SETMASK, &s->before, NULL);
}

void terminal_signals_take(struct signals *s, int sig)
{
	if (sig == SIGINT)
		s->interrupt = true;
	else if (sig == SIGWINCH)
		s->resized = true;
	else if (sig == SIGTSTP)
		s->suspend = true;
	else if (sig == SIGTTOU)
		s->suspend = s->behind = true;
	else if (sig == SIGCONT)
		s->continued = true;
	else if (sig == SIGHUP && s->outlives)
		s->lost = true;
	else if (sig == SIGHUP || sig == SIGTERM || sig == SIGQUIT)
		s->end = sig;
}

void terminal_signals_read(struct signals *s)
{
	struct signalfd_siginfo si;

	while (read(s->signal, &si, sizeof(si)) == (ssize_t)sizeof(si))
		terminal_signals_take(s, (int)si.ssi_signo);
	if (s->more)
		s->more(s->arg, s);
}

void terminal_signals_through(struct signals *s, int fd,
	void (*more)(void *arg, struct signals *s), void *arg)
{
	s->fd = fd;
	s->more = more;
	s->arg = arg;
}

void terminal_signals_outlive(struct signals *s, bool on)
{
	s->outlives = on;
}

bool terminal_signals_lost(struct signals *s)
{
	bool lost = s->lost;

	s->lost = false;
	return lost;
}

bool terminal_signals_cancelled(struct signals *s)
{
	bool was;

	terminal_signals_read(s);
	was = s->interrupt || s->end;
	s->interrupt = false;
	return was;
}
