/* SPDX-License-Identifier: MIT */
/*
 * cells.c - requests in a session, step by step
 *
 * Runs in:   front end, confined
 * Holds:     the master of the session's tty; a pipe for what cells report
 * Trusts:    the warden for when a cell ended and how; nothing that comes from
 *            the tty or the pipe. The end mark only says where a cell's output
 *            ends
 * Leaves:    after each request a session as at a person's prompt
 *
 * A cell has a terminal, as at the prompt. The answer has its output as
 * plain text. No person types there: we type the request's standard input, and
 * every further read finds an end of file.
 *
 * A server of many sessions must not wait for one of them. So a request has
 * steps, and we return to the caller while the warden or the cell works. We
 * make calls that wait for the warden only when it has nothing else to do.
 */
#include "repl/json/json.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/jail.h"
#include "repl/config/config.h"
#include "repl/session/session.h"
#include "repl/term/term.h"
#include "repl/text/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* We type so many ends of file: so many reads find one. */
#define ENDS 32
#define NOTICES_MAX 4096
/* After so many reads of so few bytes we pause after each further one: a cell
 * that writes byte by byte must not keep us busy. */
#define SMALL_READS 1000
#define SMALL_BYTES 512
#define REST_MS 2
/* So many reads empty the largest pipe. */
#define PIPE_READS 16
/* We free a larger buffer before the next cell. */
#define TEXT_KEPT (64 << 10)

/* How long the warden may take to answer a call, and to end a cell at its
 * limit: longer than the warden's own clocks allow. */
#define ANSWER_MS 60000

static const char forbidden[] = "Request is not allowed";

/* A request waits for: */
enum cells_step {
	STEP_DONE,  /* nothing */
	STEP_UP,    /* Python */
	STEP_REPLY, /* the warden */
	STEP_PUT,   /* nothing: we put some files in each turn */
	STEP_CELL,  /* the end of a cell, and of its output */
};

struct cells {
	struct drive drive;
	int tty; /* owned; -1: none */
	char python[64];
	struct output output;
	uint32_t no;		      /* of the last cell */
	bool stays;		      /* exit() ends a cell, not the session */
	const struct limits *lower;   /* borrowed until it is furnished; or NULL
				       */
	bool furnishes, furnished;    /* lowered, and with its skeleton: it is
				       * to be; it is */
	bool left;		      /* a cell ended the session, or could not
				       * be run */
	enum jail_limit limit;	      /* that ended the session with a cell */
	struct err err;		      /* why no cell could be run */
	char why[VERDICT_MAX];	      /* why the session is over, in words */
	struct strlist notices, told; /* since the last answer; in that answer
				       */
	size_t notices_n;	      /* bytes of `notices` */
	/* the request */
	const struct request *q;
	const char *refused; /* the title of a refusal, or NULL */
	char words[1200];
	enum cells_step step;
	bool hurried;
	struct put put; /* files of the request */
	/* the cell */
	struct strbuf text, typed;
	struct capture report; /* of pictures */
	int report_in;	       /* the guest's end of its pipe; owned */
	size_t typed_at;
	char last;	 /* last character of the output */
	int small;	 /* reads of few bytes */
	int64_t rest_ms; /* we read nothing before */
	int64_t heard_ms;
	int64_t due_ms; /* the warden's answer is due */
	char verdict[VERDICT_MAX];
};

/* True if the session is over, however it ended. */
static bool is_over(const struct cells *c)
{
	return c->drive.over || c->left;
}

/* ---- the output of a cell ---- */

static void sink_text(void *arg, const void *buf, size_t n)
{
	struct cells *c = arg;
	size_t at = c->text.n;

	strbuf_add(&c->text, buf, n);
	if (c->text.n > at)
		c->text.n =
			at + answer_unify_lines(c->text.s + at, n, &c->last);
}

static void add_frame_line(void *arg, const char *text)
{
	struct cells *c = arg;

	strbuf_printf(&c->text, "[%s]\n", text);
	c->last = '\n';
}

static void handle_running(void *arg, struct jail_event *ev)
{
	struct cells *c = arg;
	const struct output_opts opts = {
		.mode = VT_PLAIN,
		.alone = true,
		.head_bytes = (uint64_t)c->drive.cfg->limits.output_bytes,
		.mark = ev->mark,
		.sink = sink_text,
		.line = add_frame_line,
		.arg = c,
	};

	output_begin(&c->output, &opts);
}

static void note_read(struct cells *c, ssize_t n)
{
	if (n < SMALL_BYTES && ++c->small > SMALL_READS)
		c->rest_ms = now_ms() + REST_MS;
}

/* Output before a cell, or behind its end mark, belongs to no cell. */
static void read_output(struct cells *c)
{
	char buf[64 << 10];
	ssize_t n = read(c->tty, buf, sizeof(buf));

	if (n > 0 && c->drive.running) {
		log_output(c->drive.log, buf, (size_t)n);
		output_feed(&c->output, buf, (size_t)n);
	}
	if (n > 0)
		c->heard_ms = now_ms();
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		fd_drop(&c->tty);
	note_read(c, n);
}

static void write_input(struct cells *c)
{
	ssize_t n = write(
		c->tty, c->typed.s + c->typed_at, c->typed.n - c->typed_at);

	if (n > 0)
		log_input(c->drive.log, c->typed.s + c->typed_at, (size_t)n);
	if (n > 0)
		c->typed_at += (size_t)n;
	else if (errno != EAGAIN && errno != EINTR)
		c->typed_at = c->typed.n;
}

/* ---- events of the warden ---- */

static void handle_up(void *arg, struct jail_event *ev)
{
	struct cells *c = arg;

	fd_drop(&c->tty);
	c->tty = fd_take(&ev->fds[0]);
	io_set_nonblock(c->tty, 1);
	snprintf(c->python, sizeof(c->python), "%.60s", ev->text);
}

void cells_note(struct cells *c, const char *text)
{
	if (c->notices_n > NOTICES_MAX)
		return;
	c->notices_n += strlen(text);
	strlist_add(&c->notices, text);
}

static void handle_notice(void *arg, struct jail_event *ev)
{
	cells_note(arg, ev->text);
}

static drive_handler *const handlers[DRIVE_HANDLERS] = {
	[JAIL_UP] = handle_up,
	[JAIL_RUNNING] = handle_running,
	[JAIL_NOTICE] = handle_notice,
};

static void refuse_request(struct cells *c, const char *title, const char *text)
{
	c->refused = title;
	snprintf(c->words, sizeof(c->words), "%s", text);
}

/* Take all events. When the first Python is up lower its limits, and put the
 * skeleton into the home. */
static void take_events(struct cells *c)
{
	struct drive *d = &c->drive;

	drive_take(d);
	if (!d->up || c->furnished || is_over(c))
		return;
	if ((d->cfg->skeleton || c->lower) && !c->furnishes) {
		c->furnishes = true;
		if (c->lower)
			drive_lower(d, c->lower);
		else
			drive_call(d, CALL_READY, 0, NULL);
	}
	if (c->furnishes && !d->replied)
		return;
	if (c->lower && !d->ok) {
		refuse_request(c, "The limits are refused", d->why.msg);
		return;
	}
	c->furnished = true;
	put_skeleton(d->jail, d->cfg);
	drive_take(d);
}

/* ---- one cell ---- */

static bool has_shown_all(const struct cells *c)
{
	return !c->drive.running || c->tty < 0 ||
	       drive_has_shown(&c->drive, &c->output, c->heard_ms);
}

static void prepare_cell(struct cells *c, const struct request *q)
{
	if (c->text.cap > TEXT_KEPT)
		strbuf_free(&c->text);
	c->text.n = c->typed.n = c->typed_at = 0;
	c->last = 0;
	c->small = 0;
	c->rest_ms = 0;
	c->verdict[0] = '\0';
	strbuf_add(&c->typed, q->input, q->input_n);
	/* A program can read a line from a terminal only when the line has
	 * ended. */
	if (q->input_n && q->input[q->input_n - 1] != '\n')
		strbuf_puts(&c->typed, "\n");
	for (int i = 0; i < ENDS; i++)
		strbuf_puts(&c->typed, "\x04");
}

/* Read the rest of the report. The cell wrote it before the warden reported the
 * cell's end, but a pipe's size of it may still be in the pipe. */
static void drain_report(struct cells *c)
{
	for (int i = 0; i < PIPE_READS && io_is_readable(c->report.fd); i++)
		capture_read(&c->report);
}

/* Drop bytes in the pipe: an earlier cell may have kept the write end. */
static void begin_report(struct cells *c)
{
	drain_report(c);
	if (c->report.text.cap > TEXT_KEPT)
		strbuf_free(&c->report.text);
	c->report.text.n = 0;
	c->report.cut = false;
}

/* How long the warden may take to end a cell that is to end now. */
static int64_t longest_end_ms(const struct cells *c)
{
	return c->drive.cfg->limits.cell_grace_ms + ANSWER_MS;
}

static void start_cell(struct cells *c, const struct request *q)
{
	const struct jail_run run = {.cell = ++c->no,
		.src = q->code,
		.n = q->code_n,
		.kind = q->bundles ? CELL_BUNDLE : CELL_SILENT,
		.wall_ms = q->timeout_ms,
		.report = c->report_in};

	prepare_cell(c, q);
	c->step = STEP_CELL;
	begin_report(c);
	c->left |= drive_run(&c->drive, &run, &c->err) < 0;
	c->due_ms = now_ms() + q->timeout_ms + longest_end_ms(c);
}

/* Give the warden up, unless its answer has come after all: perhaps it was we
 * that did not run. */
static void give_warden_up(struct cells *c)
{
	struct drive *d = &c->drive;

	take_events(c);
	if (is_over(c) || (c->step == STEP_CELL && d->ended) ||
		(c->step == STEP_REPLY && d->replied) ||
		(c->step == STEP_UP && cells_is_up(c)))
		return;
	drive_give_up(d);
}

void cells_interrupt(struct cells *c)
{
	int64_t due = now_ms() + longest_end_ms(c);

	if (c->step == STEP_CELL && !c->drive.ended) {
		drive_stop(&c->drive);
		c->due_ms = due < c->due_ms ? due : c->due_ms;
	} else if (c->step == STEP_REPLY && !c->hurried) {
		jail_interrupt(c->drive.jail);
		c->hurried = true;
	} else if (c->step == STEP_PUT) {
		c->hurried = true;
	}
}

/* End the filter. Take off the line end that it adds to a last line that has
 * none. */
static void end_output(struct cells *c)
{
	struct output_report r;

	if (!c->drive.running)
		return;
	output_end(&c->output, &r);
	if (r.newline_added && c->text.n)
		c->text.n--;
}

/* Finish the cell, after the end of its output. */
static void finish_cell(struct cells *c)
{
	const struct jail_done *done = &c->drive.done;
	struct err e = {0};

	end_output(c);
	drain_report(c);
	if (c->report.cut)
		cells_note(c, "pictures left out: more than 16 MiB");
	if (drive_end_cell(&c->drive, c->verdict, &e) < 0)
		cells_note(c, e.msg);
	c->no -= done->how == HOW_REFUSED;
	if (done->after == AFTER_ENDED)
		c->limit = done->limit;
	c->left |= done->after == AFTER_ENDED ||
		   (done->how == HOW_EXIT && !c->stays);
}

/* ---- requests ---- */

void cells_refuse_files(struct cells *c, const char *why)
{
	refuse_request(c, "The files cannot be read", why);
}

const char *cells_why_over(struct cells *c)
{
	enum jail_limit limit = c->drive.limit ? c->drive.limit : c->limit;
	const struct err *e = cells_error(c);

	if (limit != LIMIT_NONE)
		return verdict_session_end(
			c->why, limit, &c->drive.cfg->limits);
	return e->msg[0] ? e->msg : "a cell left it";
}

/* Put some files; the cell that they are for begins behind the last. An
 * interrupt before that cancels the cell. */
static void continue_files(struct cells *c)
{
	enum put_turn put =
		c->hurried ? PUT_ALL : put_files(&c->put, c->drive.jail, c->q);

	if (put == PUT_MORE)
		return;
	c->step = STEP_DONE;
	if (c->hurried)
		refuse_request(c, "The request was interrupted",
			"interrupted before it began");
	else if (put == PUT_LOST)
		refuse_request(c, "The jail failed", c->put.err.msg);
	else if (put == PUT_REFUSED)
		refuse_request(c, "Request file is invalid", c->put.message);
	else if (c->q->form == REQUEST_CELL)
		start_cell(c, c->q);
	put_fini(&c->put);
}

/* Handle the reply of the warden: it has done what we asked, or (CALL_READY)
 * has time for us. */
static void handle_reply(struct cells *c)
{
	enum request_form form = c->q->form;
	bool ok = c->drive.ok;

	c->step = form == REQUEST_RESET && ok ? STEP_UP : STEP_DONE;
	if (!ok)
		refuse_request(c,
			form == REQUEST_UNDO	 ? "Nothing was undone"
			: form == REQUEST_REMOVE ? "The file cannot be removed"
			: form == REQUEST_LIST || form == REQUEST_READ ||
					form == REQUEST_OPEN
				? "The files cannot be read"
				: "The request was interrupted",
			c->drive.why.msg);
	else if (form == REQUEST_CELL || form == REQUEST_WRITE)
		c->step = STEP_PUT;
}

static void check_cell_end(struct cells *c)
{
	if (!is_over(c) && !(c->drive.ended && has_shown_all(c)))
		return;
	c->step = STEP_DONE;
	if (c->drive.ended)
		finish_cell(c);
}

static void continue_request(struct cells *c)
{
	if ((c->step == STEP_UP || c->step == STEP_REPLY ||
		    (c->step == STEP_CELL && !c->drive.ended)) &&
		!is_over(c) && now_ms() >= c->due_ms)
		give_warden_up(c);
	if (c->step == STEP_REPLY && c->drive.replied && !is_over(c))
		handle_reply(c);
	if (c->step == STEP_PUT && !is_over(c))
		continue_files(c);
	if (c->step == STEP_CELL)
		check_cell_end(c);
	else if (is_over(c) || (c->step == STEP_UP && cells_is_up(c)))
		c->step = STEP_DONE;
}

void cells_lower(struct cells *c, const struct limits *l)
{
	if (l->memory_bytes < c->drive.cfg->limits.memory_bytes)
		c->lower = l;
}

void cells_begin(struct cells *c, const struct request *q)
{
	struct drive *d = &c->drive;

	c->q = q;
	c->refused = NULL;
	c->hurried = false;
	c->step = q->form == REQUEST_SESSION ? STEP_UP : STEP_REPLY;
	c->due_ms = now_ms() + ANSWER_MS;
	take_events(c);
	if (is_over(c) && q->form != REQUEST_SESSION)
		refuse_request(c, "The session is over", cells_why_over(c));
	else if (q->form == REQUEST_CELL && q->nfiles == 0)
		start_cell(c, q);
	else if (q->form == REQUEST_UNDO)
		drive_call(d, CALL_UNDO, q->undo, NULL);
	else if (q->form == REQUEST_REMOVE)
		drive_call(d, CALL_REMOVE, 0, q->path);
	else if (q->form == REQUEST_LIST || q->form == REQUEST_READ)
		drive_call(d, CALL_LIST, 0, NULL);
	else if (q->form == REQUEST_OPEN)
		drive_call(d, CALL_OPEN, 1, q->path);
	else if (q->form != REQUEST_SESSION)
		drive_call(d,
			q->form == REQUEST_RESET ? CALL_RESET : CALL_READY, 0,
			NULL);
	continue_request(c);
}

/* The command that does the same at the prompt, or NULL. */
static const char *find_command(const struct request *q)
{
	switch (q->form) {
	case REQUEST_CELL:
		return q->nfiles ? "upload" : NULL;
	case REQUEST_UNDO:
		return "undo";
	case REQUEST_RESET:
		return "reset";
	case REQUEST_LIST:
		return "files";
	case REQUEST_READ:
	case REQUEST_OPEN:
		return "download";
	case REQUEST_WRITE:
	case REQUEST_REMOVE:
		return "upload";
	case REQUEST_SNEKBOX:
	case REQUEST_PROGRAM:
	case REQUEST_OURS:
	case REQUEST_SESSION:
		break;
	}
	return NULL;
}

void cells_ask(struct cells *c, const struct request *q)
{
	struct err e = {0};

	if (config_check_command(c->drive.cfg, find_command(q), &e) == 0) {
		cells_begin(c, q);
		return;
	}
	c->q = q;
	c->step = STEP_DONE;
	refuse_request(c, forbidden, e.msg);
}

bool cells_is_forbidden(const struct cells *c)
{
	return c->refused == forbidden;
}

bool cells_is_up(const struct cells *c)
{
	return c->drive.up && c->furnished;
}

bool cells_is_over(const struct cells *c)
{
	return is_over(c);
}

const struct err *cells_error(const struct cells *c)
{
	return c->err.msg[0] ? &c->err : &c->drive.err;
}

bool cells_is_done(const struct cells *c)
{
	return c->refused || c->step == STEP_DONE;
}

int cells_polls(const struct cells *c, struct pollfd *p)
{
	bool runs = c->step == STEP_CELL;
	bool types = c->drive.took && c->typed_at < c->typed.n;
	int64_t now = now_ms(), left = c->due_ms - now;
	bool rests = runs && !c->drive.ended && now < c->rest_ms;

	/* Between cells we do not read the tty. */
	p[0] = (struct pollfd){.fd = is_over(c) ? -1 : jail_fd(c->drive.jail),
		.events = POLLIN};
	p[1] = (struct pollfd){.fd = runs && !rests ? c->tty : -1,
		.events = (short)(POLLIN | (types ? POLLOUT : 0))};
	p[2] = (struct pollfd){
		.fd = runs && !rests ? c->report.fd : -1, .events = POLLIN};
	if (is_over(c) || c->step == STEP_DONE)
		return -1;
	if (c->step == STEP_PUT)
		return 0;
	if (runs && c->drive.ended)
		left = drive_silence_ms(&c->drive);
	else if (rests && c->rest_ms - now < left)
		left = c->rest_ms - now;
	return left < 0 ? 0 : left < 3600000 ? (int)left : 3600000;
}

void cells_turn(struct cells *c, const struct pollfd *p)
{
	size_t before;

	/* The warden says that a cell runs before the cell can write. */
	if (p[0].revents || !c->drive.running)
		take_events(c);
	if (p[1].fd == c->tty && p[1].revents & (POLLIN | POLLHUP | POLLERR))
		read_output(c);
	if (p[1].fd == c->tty && p[1].revents & POLLOUT)
		write_input(c);
	if (p[2].revents && p[2].fd == c->report.fd) {
		before = c->report.text.n;
		capture_read(&c->report);
		note_read(c, (ssize_t)(c->report.text.n - before));
	}
	continue_request(c);
}

void cells_wait(struct cells *c)
{
	struct pollfd p[CELLS_POLLS];
	int timeout_ms = cells_polls(c, p);

	if (poll(p, CELLS_POLLS, timeout_ms) >= 0)
		cells_turn(c, p);
}

/* ---- results ---- */

const char *cells_output(const struct cells *c, size_t *n)
{
	*n = c->text.n;
	return strbuf_text(&c->text);
}

bool cells_has_begun(const struct cells *c)
{
	return c->step == STEP_CELL && c->drive.took;
}

const struct jail_files *cells_files(const struct cells *c)
{
	return &c->drive.files;
}

int cells_take_file(struct cells *c)
{
	return fd_take(&c->drive.file);
}

const char *cells_refusal(const struct cells *c, const char **title)
{
	if (title)
		*title = c->refused;
	return c->refused ? c->words : NULL;
}

unsigned cells_count(const struct cells *c)
{
	return c->no;
}

const char *cells_python(const struct cells *c)
{
	return c->python;
}

const struct jail_done *cells_done(const struct cells *c)
{
	return &c->drive.done;
}

bool cells_kept(const struct cells *c)
{
	return c->drive.kept;
}

const struct jail_undone *cells_undone(const struct cells *c)
{
	return &c->drive.undone;
}

const char *cells_verdict(const struct cells *c)
{
	return c->verdict;
}

void cells_report(const struct cells *c, struct report *r)
{
	report_parse(r, strbuf_text(&c->report.text), c->report.text.n);
}

/* ---- for the answer ---- */

const struct request *cells_request(const struct cells *c)
{
	return c->q;
}

const struct config *cells_config(const struct cells *c)
{
	return c->drive.cfg;
}

struct drive *cells_drive(struct cells *c)
{
	return &c->drive;
}

bool cells_has_outcome(const struct cells *c)
{
	return c->q->form == REQUEST_CELL ? c->drive.ended : !is_over(c);
}

const struct strlist *cells_tell_notices(struct cells *c)
{
	strlist_fini(&c->told);
	c->told = c->notices;
	c->notices = (struct strlist){0};
	c->notices_n = 0;
	return &c->told;
}

const struct strlist *cells_told(const struct cells *c)
{
	return &c->told;
}

void cells_rest(struct cells *c)
{
	if (c->step != STEP_DONE)
		return;
	drive_forget(&c->drive);
	if (c->report.text.cap > TEXT_KEPT)
		strbuf_free(&c->report.text);
	if (c->text.cap > TEXT_KEPT)
		strbuf_free(&c->text);
}

/* ---- open, close ---- */

int cells_open(struct cells **out, struct jail *j, const struct config *cfg,
	struct log *log, bool stays, struct err *e)
{
	struct cells *c = calloc(1, sizeof(*c));
	int fds[2];

	if (!c)
		return err_errno(e, "open a session");
	*out = c;
	drive_open(&c->drive, j, cfg, log, handlers, c);
	c->stays = stays;
	c->tty = -1;
	c->report.fd = c->report_in = -1;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_errno(e, "open a pipe for pictures");
	capture_open(&c->report, fds[0], REPORT_BYTES, false);
	c->report_in = fds[1];
	return output_open(&c->output, (size_t)cfg->limits.tail_bytes, e);
}

void cells_close(struct cells *c)
{
	if (!c)
		return;
	output_close(&c->output);
	capture_close(&c->report);
	fd_drop(&c->report_in);
	strbuf_free(&c->text);
	strbuf_free(&c->typed);
	strlist_fini(&c->notices);
	strlist_fini(&c->told);
	fd_drop(&c->tty);
	drive_forget(&c->drive);
	put_fini(&c->put);
	free(c);
}
