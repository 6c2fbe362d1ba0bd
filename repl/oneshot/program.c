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
#include "repl/oneshot/streams.h"
#include "repl/session/session.h"
#include "repl/term/term.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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
	log_output(p->start->log, buf, n);
	echo = lines_find_echo(&p->lines, buf, n, &echo_n);

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
		p->ch[i].is_input = i == CH_IN;
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
	jail_kill(p->start->jail);
	for (int i = CH_OUT; i <= CH_ERR; i++)
		channel_end_input(&p->ch[i]);
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

static void log_keys(void *arg, const char *buf, size_t n)
{
	const struct program *p = arg;

	log_input(p->start->log, buf, n);
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
				      .sent = log_keys,
				      .events = take_events,
				      .arg = p,
			      });
	if (open_tty_output(p, e) < 0)
		return -1;
	if (download_check(start->host, start->opt, e) < 0)
		return err_wrap(e, "run a program");
	if (begin_program(p, e) < 0)
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

/* Say which signal ended the program, where a shell would if it had started the
 * program itself: for all but SIGINT and SIGPIPE. */
static void tell_signal(int status)
{
	int sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	const char *name = sig ? strsignal(sig) : NULL;

	if (name && sig != SIGINT && sig != SIGPIPE)
		terminal_complain("the program was ended by a signal", name);
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
	if (limit == LIMIT_NONE || limit == LIMIT_PROCESSES) {
		tell_signal(p->drive.program.status);
		return program_exit_status(p->drive.program.status);
	}
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
		const struct transfer t = make_transfer(p);

		r = find_exit_status(p);
		if (has_ended(p) && download_all(&t, start->opt) < 0 && r == 0)
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
