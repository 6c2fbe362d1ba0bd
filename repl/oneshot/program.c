/* SPDX-License-Identifier: MIT */
/*
 * program.c - one program in a jail of its own
 *
 * Runs in:   front end, confined
 * Holds:     our ends of the program's pipes, and the master of its tty
 * Trusts:    the warden about how the program ended; no byte, and no mode of
 *            the tty, that comes from the program
 * Leaves:    the caller's descriptors as they were: the program never has them
 *
 * Standard output and standard error belong to the program: we write nothing to
 * the first, and to the second only lines that begin "cellblock: ".
 */
#include "program.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/base/path.h"
#include "jail/jail.h"
#include "repl/config/config.h"
#include "repl/config/options.h"
#include "repl/drive/drive.h"
#include "repl/files/files.h"
#include "repl/session/session.h"
#include "repl/term/term.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

/* ---- one direction of the program's input or output ----
 *
 * A channel changes no byte, and copies none if the kernel can splice. The
 * caller's descriptors may be blocking. Other processes share that flag, so we
 * do not change it: one write is never larger than the room that poll(2)
 * promises. */

#define CHANNEL_BYTES 65536
#define CHANNEL_POLLS 2

struct channel {
	int from, to; /* -1: that end is closed */
	bool own_from, own_to;
	bool copies; /* splice(2) does not work here */
	bool to_socket, to_terminal;
	int to_error; /* why we cannot write any more; EPIPE: the reader has
		       * gone */
	size_t at, n; /* bytes of buf that wait */
	uint64_t read;
	struct log *log; /* what goes through is written down; NULL: is not */
	void (*log_as)(struct log *l, const void *buf, size_t n);
	char buf[CHANNEL_BYTES];
};

/* Begin. The channel closes the descriptors that it owns. At least one end is a
 * pipe of ours, which we make non-blocking. */
static void channel_init(
	struct channel *c, int from, bool own_from, int to, bool own_to)
{
	struct stat st;

	c->from = from;
	c->to = to;
	c->own_from = own_from;
	c->own_to = own_to;
	c->to_error = 0;
	c->at = c->n = 0;
	c->read = 0;
	c->to_socket = to >= 0 && fstat(to, &st) == 0 && S_ISSOCK(st.st_mode);
	c->to_terminal = to >= 0 && isatty(to);
	/* splice(2) to a blocking socket or terminal may block. */
	c->copies = c->to_socket || c->to_terminal || c->log;
	if (own_from && from >= 0)
		io_set_nonblock(from, 1);
	if (own_to && to >= 0)
		io_set_nonblock(to, 1);
}

static void close_from(struct channel *c)
{
	if (c->own_from)
		fd_drop(&c->from);
	c->from = -1;
}

static void close_to(struct channel *c)
{
	if (c->own_to)
		fd_drop(&c->to);
	c->to = -1;
}

static void channel_close(struct channel *c)
{
	close_from(c);
	close_to(c);
}

static bool channel_is_over(const struct channel *c)
{
	return c->to < 0 || (c->from < 0 && !c->n);
}

/* Fill in what to poll; unused entries have fd -1. */
static void channel_poll(const struct channel *c, struct pollfd p[static 2])
{
	bool over = channel_is_over(c);

	p[0] = (struct pollfd){
		.fd = over || c->n ? -1 : c->from, .events = POLLIN};
	/* Even without events poll(2) reports a reader that went away. */
	p[1] = (struct pollfd){
		.fd = over ? -1 : c->to, .events = (short)(c->n ? POLLOUT : 0)};
}

/* Close the channel, because we cannot write any more. */
static void break_channel(struct channel *c, int error)
{
	c->to_error = error;
	c->n = 0;
	channel_close(c);
}

static ssize_t write_chunk(struct channel *c)
{
	const char *p = c->buf + c->at;

	if (c->to_socket)
		return send(c->to, p, c->n, MSG_DONTWAIT | MSG_NOSIGNAL);
	/* A writable pipe has room for PIPE_BUF bytes, a writable terminal only
	 * for 256. */
	if (c->to_terminal && c->n > 256)
		return write(c->to, p, 256);
	return write(c->to, p, c->n < PIPE_BUF ? c->n : PIPE_BUF);
}

static void write_buffer(struct channel *c)
{
	ssize_t w = write_chunk(c);

	if (w < 0 && errno != EAGAIN && errno != EINTR) {
		break_channel(c, errno);
		return;
	}
	if (w > 0) {
		c->at += (size_t)w;
		c->n -= (size_t)w;
	}
	if (!c->n) {
		c->at = 0;
		if (c->from < 0)
			close_to(c);
	}
}

static void end_input(struct channel *c)
{
	close_from(c);
	if (!c->n)
		close_to(c);
}

/* Move bytes by splice(2). 1: done; 0: the caller must copy. */
static int splice_input(struct channel *c)
{
	ssize_t n;

	if (c->copies)
		return 0;
	n = splice(c->from, NULL, c->to, NULL, CHANNEL_BYTES,
		SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
	if (n > 0) {
		c->read += (uint64_t)n;
		return 1;
	}
	if (n == 0) {
		end_input(c);
		return 1;
	}
	if (errno == EPIPE) {
		break_channel(c, EPIPE);
		return 1;
	}
	/* EAGAIN may come from either end; a copy finds out which. After other
	 * errors, such as EINVAL, splice(2) cannot join these two. */
	if (errno != EAGAIN && errno != EINTR)
		c->copies = true;
	return 0;
}

static void move_input(struct channel *c)
{
	ssize_t n;

	if (splice_input(c))
		return;
	n = read(c->from, c->buf, sizeof(c->buf));
	if (n > 0) {
		c->at = 0;
		c->n = (size_t)n;
		c->read += (uint64_t)n;
		if (c->log)
			c->log_as(c->log, c->buf, c->n);
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		end_input(c);
	}
}

/* Move what poll(2) found ready. */
static void channel_move(struct channel *c, const struct pollfd p[static 2])
{
	if (p[1].fd >= 0 && (p[1].revents & (POLLERR | POLLNVAL))) {
		break_channel(c, EPIPE);
		return;
	}
	if (p[1].fd >= 0 && c->n && (p[1].revents & POLLOUT))
		write_buffer(c);
	if (p[0].fd >= 0 && !c->n && p[0].revents)
		move_input(c);
}

/* ---- a terminal that another program may read, too ----
 *
 * In "cellblock prog.py | less", less draws on the terminal and reads its keys.
 * So while standard output goes elsewhere, we leave the terminal its modes and
 * read it line by line. We put it into raw mode only while the program wants
 * single keys, or no echo, and leave it alone after another program has changed
 * its modes. */

/* Most bytes of a line. */
#define LINES_READ 1024

/* All zero: off. */
struct lines {
	struct terminal *term; /* borrowed, as below; NULL: off */
	struct relay *relay;
	char echo[2 * LINES_READ]; /* what the jail's tty will echo */
	size_t echo_n;
};

static bool lines_are_wanted(const struct terminal *t)
{
	return t->in_tty && t->saved && !t->out_tty;
}

static bool has_modes(int fd, tcflag_t flags)
{
	struct termios now;

	return tcgetattr(fd, &now) == 0 && (now.c_lflag & flags) == flags;
}

/* True if no other program reads keys from the terminal. */
static bool terminal_is_free(const struct terminal *t)
{
	return job_is_in_front(t->in) && has_modes(t->in, ICANON);
}

/* Put the terminal into raw mode while the program wants keys, not lines. */
static void follow_modes(struct lines *l)
{
	bool lines = has_modes(l->relay->tty, ICANON | ECHO);

	if (l->relay->tty < 0)
		return;
	if (lines && l->term->raw)
		terminal_restore(l->term);
	else if (!lines && !l->term->raw && terminal_is_free(l->term))
		terminal_raw(l->term);
	l->relay->keys = l->term->raw;
}

static void lines_begin(
	struct lines *l, struct terminal *t, struct relay *relay)
{
	*l = (struct lines){.term = t, .relay = relay};
	follow_modes(l);
}

/* Fill in what to poll; fd -1: do not read the terminal. */
static void lines_poll(const struct lines *l, struct pollfd *p)
{
	bool reads = l->term && !l->term->raw && l->relay->tty >= 0 &&
		     !l->relay->keys_ended && terminal_is_free(l->term);

	*p = (struct pollfd){.fd = reads ? l->term->in : -1, .events = POLLIN};
}

/* Note the echo that the jail's tty will write: the terminal has shown the same
 * already. */
static void note_echo(struct lines *l, const char *s, size_t n)
{
	l->echo_n = 0;
	if (!has_modes(l->relay->tty, ICANON | ECHO))
		return;
	for (size_t i = 0; i < n; i++) {
		bool control = (unsigned char)s[i] < 0x20 || s[i] == 0x7f;

		if (s[i] == '\n')
			l->echo[l->echo_n++] = '\r';
		else if (control && s[i] != '\t')
			l->echo[l->echo_n++] = '^';
		l->echo[l->echo_n++] = control && s[i] != '\n' && s[i] != '\t'
					       ? (char)(s[i] ^ 0x40)
					       : s[i];
	}
}

/* Read the line that poll(2) found. */
static void lines_move(struct lines *l, const struct pollfd *p)
{
	char line[LINES_READ];
	ssize_t n;

	if (p->fd < 0 || !p->revents || !terminal_is_free(l->term))
		return;
	n = read(l->term->in, line, sizeof(line));
	if (n < 0 || (n == 0 && p->revents & POLLHUP)) {
		l->relay->keys_ended = true;
		return;
	}
	if (n == 0)
		line[n++] = KEYS_CTRL('D');
	else
		note_echo(l, line, (size_t)n);
	relay_type(l->relay, line, (size_t)n);
}

/* Before we show bytes of the tty: follow its modes, and find in `buf` the *n
 * bytes of echo that the terminal has shown already; NULL: none. */
static const char *find_shown_echo(
	struct lines *l, const char *buf, size_t size, size_t *n)
{
	const char *echo = NULL;

	if (!l->term)
		return NULL;
	follow_modes(l);
	if (l->echo_n)
		echo = memmem(buf, size, l->echo, l->echo_n);
	*n = l->echo_n;
	if (echo)
		l->echo_n = 0;
	return echo;
}

/* ---- the program ---- */

enum { CH_IN, CH_OUT, CH_ERR, CHANNELS };
enum {
	POLL_CHANNELS = RELAY_POLLS,
	POLL_LINES = POLL_CHANNELS + CHANNELS * CHANNEL_POLLS,
	POLLS
};

struct program {
	const struct program_start *start;
	struct drive drive;
	struct channel ch[CHANNELS];
	struct relay relay;
	struct lines lines; /* for a terminal that another program may read */
	bool whole; /* the program had the whole screen when we stopped */
	struct output output;
	struct ledger ledger;
	uint64_t tty_bytes; /* that were read */
	bool wrote_too_much;
	int tty;	       /* owned */
	struct strbuf notices; /* printed when the terminal is free again */
	bool cancelled;	       /* by a signal, before it was started */
	struct err why;	       /* why it could not be run */
};

/* Python's argv[0] for each mode: "" stands for the file's own name, NULL for
 * a mode that runs no program. */
static const char *const sources[] = {
	[OPTIONS_FILE] = "",
	[OPTIONS_CODE] = "-c",
	[OPTIONS_MODULE] = "-m",
	[OPTIONS_CELL] = "-e",
	[OPTIONS_STDIN] = "-",
	[OPTIONS_EVAL] = NULL,
	[OPTIONS_SERVE] = NULL,
	[OPTIONS_MCP] = NULL,
	[OPTIONS_VERSION] = NULL, /* the last mode */
};

bool program_is_wanted(const struct options *opt)
{
	return sources[opt->mode] != NULL;
}

const char **program_argv(
	const struct options *opt, const struct limits *limits, struct err *e)
{
	const char **argv = calloc((size_t)opt->nargs + 3, sizeof(*argv));
	int n = 0;

	if (opt->mode == OPTIONS_CELL &&
		strlen(opt->text) > (size_t)limits->source_bytes) {
		err_set(e, "the cell is longer than cell.source");
		err_kind_set(e, ERR_USAGE);
		free(argv);
		return NULL;
	}
	if (!argv) {
		err_errno(e, "prepare the arguments");
		return NULL;
	}
	if (opt->mode == OPTIONS_FILE) {
		argv[n++] = path_last(opt->text);
	} else {
		argv[n++] = sources[opt->mode];
		if (opt->text)
			argv[n++] = opt->text;
	}
	for (int i = 0; i < opt->nargs; i++)
		argv[n++] = opt->args[i];
	return argv;
}

int program_exit_status(int status)
{
	if (WIFSIGNALED(status))
		return 128 + WTERMSIG(status);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* ---- files, before and after ---- */

static void say_nothing(void *arg, const char *line)
{
	(void)arg;
	(void)line;
}

/* An error before the program starts ends the run; main.c prints it. */
static void refuse_start(void *arg, const struct err *e)
{
	struct program *p = arg;

	p->why = *e;
}

static void refuse_file(void *arg, const struct err *e)
{
	(void)arg;
	terminal_refuse(e);
}

/* A file of the skeleton may fail, but not the session. */
static void refuse_of_skeleton(void *arg, const struct err *e)
{
	(e->kind == ERR_JAIL ? refuse_start : refuse_file)(arg, e);
}

static struct transfer make_transfer(struct program *p)
{
	const struct program_start *start = p->start;

	return (struct transfer){
		.jail = start->jail,
		.host = start->host,
		.limits = &start->cfg->limits,
		.ledger = &p->ledger,
		.term = start->term,
		.signals = start->signals,
		.say = say_nothing,
		.refuse = refuse_file,
		.force = "--overwrite",
		.overwrite = start->opt->overwrite,
		.arg = p,
	};
}

static int upload_all(struct program *p, struct err *e)
{
	const struct options *o = p->start->opt;
	struct transfer t = make_transfer(p);
	int r;

	t.refuse = refuse_of_skeleton;
	upload_skeleton(&t, p->start->cfg->skeleton);
	r = p->why.msg[0] ? -1 : 0;
	t.refuse = refuse_start;
	t.one_file = true;
	if (o->mode == OPTIONS_FILE && r == 0)
		r = upload_pair(&t, o->text, NULL);
	t.one_file = false;
	if (p->why.code == EISDIR || p->why.code == ESPIPE)
		err_hint(&p->why, "a program is one file, or standard input: "
				  "cellblock - < FILE");
	if (r < 0 && p->why.msg[0])
		err_wrap(&p->why, "run a program");
	for (size_t i = 0; i < o->nuploads && r == 0; i++)
		r = upload_pair(&t, o->uploads[i].from, o->uploads[i].to);
	if (r == 0)
		return 0;
	p->cancelled = !p->why.msg[0]; /* every other failure has a message */
	*e = p->why;
	return err_kind_set(e, ERR_USAGE); /* the exit status of python3 */
}

/* Check before the program runs that we can write its results. */
static int check_targets(struct program *p, struct err *e)
{
	const struct options *o = p->start->opt;

	for (size_t i = 0; i < o->ndownloads; i++)
		if (download_check(p->start->host, o->downloads[i].to, e) < 0)
			return err_wrap(e, "run a program");
	return 0;
}

/* Download the files of -d. 0, or -1 when something was refused. */
static int download_all(struct program *p)
{
	const struct options *o = p->start->opt;
	struct transfer t = make_transfer(p);
	int r = 0;

	for (size_t i = 0; i < o->ndownloads; i++)
		r |= download_pair(
			&t, o->downloads[i].from, o->downloads[i].to);
	return r;
}

/* ---- the jail's tty, in place of a terminal ---- */

static void sink_output(void *arg, const void *buf, size_t n)
{
	struct program *p = arg;

	relay_put(&p->relay, buf, n);
}

static void take_tty_bytes(void *arg, const char *buf, size_t n)
{
	struct program *p = arg;
	size_t echo_n;
	const char *echo;

	p->tty_bytes += n;
	log_answer(p->start->log, buf, n);
	echo = find_shown_echo(&p->lines, buf, n, &echo_n);

	if (echo) {
		output_feed(&p->output, buf, (size_t)(echo - buf));
		n -= (size_t)(echo - buf) + echo_n;
		buf = echo + echo_n;
	}
	output_feed(&p->output, buf, n);
}

static int open_tty_output(struct program *p, struct err *e)
{
	const struct config *cfg = p->start->cfg;
	struct output_opts opts = {
		.mode = cfg->escapes == ESCAPES_SAFE	? VT_SAFE
			: cfg->escapes == ESCAPES_PLAIN ? VT_PLAIN
							: VT_RAW,
		.colour = true,
		.alone = true,
		.columns = p->start->term->cols,
		.lf_returns = !p->start->term->saved,
		.head_bytes = UINT64_MAX / 2,
		.sink = sink_output,
		.arg = p,
	};

	if (output_open(&p->output, 0, e) < 0)
		return -1;
	output_begin(&p->output, &opts);
	return 0;
}

/* ---- running ---- */

/* Take keys and the terminal's modes only while we are in the foreground:
 * touching them from the background would suspend us. */
static void take_keys(struct program *p)
{
	struct terminal *t = p->start->term;

	terminal_forget_modes(t);
	if (lines_are_wanted(t)) {
		lines_begin(&p->lines, t, &p->relay);
		return;
	}
	p->relay.keys = t->in_tty && job_is_in_front(t->in);
	p->relay.stops = job_has_shell();
	if (p->relay.keys) {
		relay_return(&p->relay, p->whole);
		p->whole = false;
	}
}

/* Block SIGTSTP while a program may have changed the terminal's modes:
 * suspend_program() undoes them before it stops us. */
static void hold_suspend(bool hold)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	sigprocmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

static void take_up(void *arg, struct jail_event *ev)
{
	struct program *p = arg;
	struct terminal *t = p->start->term;

	p->tty = fd_take(&ev->fds[0]);
	if (p->tty >= 0) {
		relay_set_tty(&p->relay, p->tty);
		jail_resize(p->start->jail, t->rows, t->cols);
		hold_suspend(true);
		take_keys(p);
	}
	for (int i = 0; i < CHANNELS && p->start->log->transcript >= 0; i++) {
		p->ch[i].log = p->start->log;
		p->ch[i].log_as = i == CH_IN ? log_input : log_answer;
	}
	if (ev->fds[1] >= 0)
		channel_init(
			&p->ch[CH_IN], STDIN_FILENO, false, ev->fds[1], true);
	channel_init(&p->ch[CH_OUT], ev->fds[2], true, STDOUT_FILENO, false);
	channel_init(&p->ch[CH_ERR], ev->fds[3], true, STDERR_FILENO, false);
	ev->fds[1] = ev->fds[2] = ev->fds[3] = -1;
	if (p->start->opt->verbose && ev->limited[0])
		terminal_complain("on this host", ev->limited);
}

static void take_notice(void *arg, struct jail_event *ev)
{
	struct program *p = arg;

	if (p->tty < 0)
		terminal_complain(NULL, ev->text);
	else
		strbuf_printf(&p->notices, "%s\n", ev->text);
}

static drive_handler *const handlers[DRIVE_HANDLERS] = {
	[JAIL_UP] = take_up,
	[JAIL_NOTICE] = take_notice,
};

/* Stop, so that a shell takes the terminal until SIGCONT. The program goes on.
 */
static void suspend_program(struct program *p)
{
	if (!job_has_shell())
		return;
	p->whole |= relay_leave(&p->relay);
	job_stop();
	take_keys(p);
}

static void take_events(void *arg)
{
	struct program *p = arg;
	struct signals *sig = p->start->signals;

	if (sig->suspend)
		suspend_program(p);
	sig->suspend = false;
	if (sig->continued && p->tty >= 0)
		take_keys(p);
	sig->continued = false;
	drive_take(&p->drive);
}

/* True if the program has ended, by itself or with its session. */
static bool has_ended(const struct program *p)
{
	return p->drive.ended || p->drive.limit != LIMIT_NONE;
}

/* True if Ctrl-C came after the program's end, while we wait for a reader. */
static bool is_interrupted(const struct program *p)
{
	return p->drive.ended &&
	       p->relay.pressed_ms[RELAY_KILL_PRESSES - 1] > p->drive.ended_ms;
}

static bool is_given_up(const struct program *p)
{
	return p->drive.over || p->start->signals->end ||
	       p->ch[CH_OUT].to_error || p->relay.broken || is_interrupted(p);
}

/* True if we have given up, or have delivered all that the program wrote,
 * however slow the reader is. The pipes end by themselves: the jail is gone
 * when JAIL_EXITED comes. */
static bool is_over(const struct program *p)
{
	if (is_given_up(p))
		return true;
	return p->drive.ended && channel_is_over(&p->ch[CH_OUT]) &&
	       channel_is_over(&p->ch[CH_ERR]) && p->relay.tty < 0;
}

/* End a program that has written more than it may. What was read goes out. */
static void check_output(struct program *p)
{
	uint64_t n = p->ch[CH_OUT].read + p->ch[CH_ERR].read + p->tty_bytes;

	if (!p->start->bound || p->wrote_too_much ||
		n <= (uint64_t)p->start->cfg->limits.output_bytes)
		return;
	p->wrote_too_much = true;
	jail_kill(p->start->jail, NULL);
	for (int i = CH_OUT; i <= CH_ERR; i++)
		end_input(&p->ch[i]);
}

static void poll_once(struct program *p)
{
	struct pollfd polls[POLLS];
	bool listens = p->drive.ended && p->relay.tty >= 0 &&
		       relay_has_room(&p->relay);
	int n;

	for (int i = 0; i < CHANNELS; i++)
		channel_poll(
			&p->ch[i], polls + POLL_CHANNELS + i * CHANNEL_POLLS);
	lines_poll(&p->lines, polls + POLL_LINES);
	/* The tty has no end of file while the warden holds it. Once the
	 * program is gone, we take silence for the end. */
	n = relay_turn(&p->relay, polls, POLLS,
		listens ? output_silence_ms(true) : -1);
	if (n < 0)
		return;
	if (n == 0)
		relay_set_tty(&p->relay, -1);
	for (int i = 0; i < CHANNELS; i++)
		channel_move(
			&p->ch[i], polls + POLL_CHANNELS + i * CHANNEL_POLLS);
	lines_move(&p->lines, polls + POLL_LINES);
	check_output(p);
}

static void finish_tty_output(struct program *p)
{
	struct output_report r;

	if (!p->output.tail)
		return;
	output_end(&p->output, &r);
	while (!relay_is_flushed(&p->relay) && !is_given_up(p))
		poll_once(p);
	relay_flush(&p->relay);
	output_close(&p->output);
}

static int start_program(const struct program_start *start, struct err *e)
{
	const struct jail_start how = {.argv = start->argv};

	return jail_start_program(start->jail, &how, e);
}

bool program_start_early(const struct program_start *start)
{
	const struct options *o = start->opt;

	return o->mode != OPTIONS_FILE && !o->nuploads && !o->ndownloads &&
	       !start->cfg->skeleton && start_program(start, NULL) == 0;
}

/* Have the warden start the program as soon as the jail is built. If both fail,
 * report the error of the building, which says more. */
static int begin_program(struct program *p, struct err *e)
{
	const struct program_start *start = p->start;
	struct err why = {0};
	int r = start->early ? 0 : upload_all(p, &why);

	if (r == 0 && !start->early)
		r = start_program(start, &why);
	if (drive_wait_built(&p->drive, -1, e) < 0)
		return -1;
	if (r == 0 || p->cancelled)
		return 0;
	*e = why;
	return -1;
}

static int run_program(struct program *p, struct err *e)
{
	const struct program_start *start = p->start;

	terminal_use_any(start->term);
	relay_init(&p->relay, &(struct relay_opts){
				      .term = start->term,
				      .jail = start->jail,
				      .signals = start->signals,
				      .output = &p->output,
				      .bytes = take_tty_bytes,
				      .events = take_events,
				      .arg = p,
			      });
	if (open_tty_output(p, e) < 0 || check_targets(p, e) < 0 ||
		begin_program(p, e) < 0)
		return -1;
	if (p->cancelled)
		return 0;
	while (!is_over(p))
		poll_once(p);
	finish_tty_output(p);
	terminal_restore(start->term);
	hold_suspend(false);
	if (p->notices.n && !p->notices.failed)
		terminal_complain(NULL, p->notices.s);
	if (!p->drive.over || has_ended(p))
		return 0;
	*e = p->drive.err;
	if (p->drive.gone && start->gone)
		err_set(e, "%s", start->gone);
	return e->msg[0] ? -1 : err_set(e, "the jail ended unexpectedly");
}

static int find_exit_status(struct program *p)
{
	const struct program_start *start = p->start;
	const char *source = NULL;
	char text[VERDICT_MAX], set[600] = "";
	int out_error = p->ch[CH_OUT].to_error;
	enum jail_limit limit =
		p->drive.ended ? p->drive.program.limit : p->drive.limit;

	if (p->wrote_too_much)
		limit = LIMIT_OUTPUT;
	if (start->signals->end)
		return 128 + start->signals->end;
	if (is_interrupted(p) || p->cancelled)
		return 128 + SIGINT;
	if (out_error && out_error != EPIPE) {
		terminal_complain("write standard output", strerror(out_error));
		return 1;
	}
	if (!has_ended(p))
		return 128 + SIGPIPE; /* the reader went away */
	if (limit == LIMIT_NONE || limit == LIMIT_PROCESSES)
		return program_exit_status(p->drive.program.status);
	if (limit == LIMIT_MEMORY || limit == LIMIT_WALL ||
		limit == LIMIT_OUTPUT)
		source = config_set_in(start->cfg, verdict_limit_key(limit));
	if (source)
		snprintf(set, sizeof(set), " (set in %s)", source);
	log_limit(start->log, limit);
	verdict_limit(text, limit, &start->cfg->limits);
	strncat(text, set, sizeof(text) - strlen(text) - 1);
	terminal_complain("the program was ended", text);
	log_cell_end(start->log, text, NULL);
	return 128 + SIGKILL;
}

int program_run(const struct program_start *start, struct err *e)
{
	struct program *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return err_errno(e, "run a program");
	p->start = start;
	drive_open(&p->drive, start->jail, start->cfg, start->log, handlers, p);
	if (start->opt->mode == OPTIONS_CELL && start->log->transcript >= 0)
		log_cell(start->log, 1, start->opt->text,
			strlen(start->opt->text));
	p->tty = -1;
	for (int i = 0; i < CHANNELS; i++)
		p->ch[i].from = p->ch[i].to = -1;
	r = run_program(p, e);
	if (r == 0) {
		r = find_exit_status(p);
		if (has_ended(p) && download_all(p) < 0 && r == 0)
			r = 1;
	}
	for (int i = 0; i < CHANNELS; i++)
		channel_close(&p->ch[i]);
	fd_drop(&p->tty);
	output_close(&p->output);
	relay_free(&p->relay);
	strbuf_free(&p->notices);
	ledger_free(&p->ledger);
	free(p);
	return r;
}
