/* SPDX-License-Identifier: MIT */
/*
 * cells.c - a session for requests: the steps of each
 *
 * Runs in:   front end, confined
 * Holds:     the master of the session's tty; a pipe for what cells report
 * Trusts:    the warden for when a cell ended and how; nothing that comes from
 *            the tty or the pipe. The end mark only says where a cell's output
 *            ends
 * Leaves:    the session as at a person's prompt after each request
 *
 * A cell has a terminal, as at the prompt. What it shows there is answered as
 * plain text. Nobody sits there: once what was sent as its standard input is
 * typed, every further read finds an end of file.
 *
 * Who serves many sessions must not wait for one. So a request has steps, and
 * between them the warden or the cell has its time. Calls that wait for the
 * warden are made only when it has nothing else to do.
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

/* How much later than the warden we look at the same limit. */
#define AFTER_MS 500
/* Ends of file that are typed: as many reads as find one. */
#define ENDS 32
#define NOTICES_MAX 4096
/* After so many reads of so few bytes there is a rest before the next: a cell
 * that writes byte by byte, or without end, does not keep us busy. */
#define SMALL_READS 1000
#define SMALL_BYTES 512
#define REST_MS 2
/* Reads that empty the largest pipe there is. */
#define PIPE_READS 16
/* Pictures of a cell, together. */
#define REPORT_BYTES (16 << 20)
/* A buffer that was larger is not kept for the next cell. */
#define TEXT_KEPT (64 << 10)

/* How long the warden may take for what it is asked, and for the end of a cell
 * that was killed: longer than its own clocks let it. */
#define ANSWER_MS 60000

static const char forbidden[] = "Request is not allowed";

/* What a request waits for. */
enum cells_step {
	STEP_DONE,  /* nothing */
	STEP_UP,    /* Python */
	STEP_REPLY, /* the warden */
	STEP_PUT,   /* its files are put, some at a time */
	STEP_CELL,  /* the end of a cell, and of its output */
};

struct cells {
	struct jail *jail; /* borrowed */
	const struct config *cfg;
	struct log *log;
	int tty; /* owned; -1: none */
	char python[64];
	struct output output;
	uint32_t no; /* of the last cell */
	bool stays;  /* exit() ends a cell, not the session */
	bool up, furnishes, furnished, over;
	struct err err;		      /* why it is over */
	enum jail_limit limit;	      /* or what ended it */
	char why[VERDICT_MAX];	      /* the same in words */
	struct strlist notices, told; /* since the last answer; in it */
	size_t notices_n;	      /* bytes of them */
	/* the request */
	const struct request *q;
	const char *refused; /* the title, where it is not in order */
	char words[1200];
	enum cells_step step;
	bool replied, hurried;
	struct jail_event reply; /* to jail_send() */
	int file;		 /* that was opened; owned */
	struct jail_files files; /* that were listed */
	struct run put;		 /* files of the request, on their way */
	/* the cell */
	struct strbuf text, typed;
	struct capture report; /* of pictures */
	int report_in;	       /* the guest's end of its pipe; owned */
	size_t typed_at;
	char last; /* character of its output */
	bool running, took, ended;
	bool late, cancelled, killed;
	int small;		 /* reads of few bytes */
	int64_t due_ms, rest_ms; /* nothing is read before */
	struct jail_done done;
	char verdict[VERDICT_MAX];
	int64_t ended_ms, heard_ms;
};

/* ---- its output ---- */

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

static void begin_output(struct cells *c, const char *mark)
{
	const struct output_opts opts = {
		.mode = VT_PLAIN,
		.alone = true,
		.head_bytes = (uint64_t)c->cfg->limits.output_bytes,
		.mark = mark,
		.sink = sink_text,
		.line = add_frame_line,
		.arg = c,
	};

	output_begin(&c->output, &opts);
	c->running = true;
}

static void note_read(struct cells *c, ssize_t n)
{
	if (n < SMALL_BYTES && ++c->small > SMALL_READS)
		c->rest_ms = now_ms() + REST_MS;
}

/* What comes before a cell, or behind its mark, is no cell's output. */
static void read_output(struct cells *c)
{
	char buf[64 << 10];
	ssize_t n = read(c->tty, buf, sizeof(buf));

	if (n > 0 && c->running) {
		log_output(c->log, buf, (size_t)n);
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
		c->typed_at += (size_t)n;
	else if (errno != EAGAIN && errno != EINTR)
		c->typed_at = c->typed.n;
}

/* ---- what the warden says ---- */

static void take_tty(struct cells *c, struct jail_event *ev)
{
	fd_drop(&c->tty);
	c->tty = fd_take(&ev->fds[0]);
	io_set_nonblock(c->tty, 1);
	snprintf(c->python, sizeof(c->python), "%.60s", ev->text);
	c->up = true;
}

void cells_note(struct cells *c, const char *text)
{
	if (c->notices_n > NOTICES_MAX)
		return;
	c->notices_n += strlen(text);
	strlist_add(&c->notices, text);
}

static bool is_listing(const struct cells *c)
{
	return c->step == STEP_REPLY &&
	       (c->q->form == REQUEST_LIST || c->q->form == REQUEST_READ);
}

static bool is_opening(const struct cells *c)
{
	return c->step == STEP_REPLY && c->q->form == REQUEST_OPEN;
}

static void take_opened(struct cells *c, struct jail_event *ev)
{
	fd_drop(&c->file);
	c->file = fd_take(&ev->fd);
	c->reply.ok = c->file >= 0;
}

static void take_files(struct cells *c, struct jail_event *ev)
{
	jail_files_free(&c->files);
	c->reply.ok = jail_take_files(ev, &c->files, &c->reply.err) == 0;
}

static void take_event(struct cells *c, struct jail_event *ev)
{
	switch (ev->type) {
	case JAIL_UP:
		take_tty(c, ev);
		break;
	case JAIL_RUNNING:
		begin_output(c, ev->mark);
		break;
	case JAIL_DONE:
		c->done = ev->done;
		c->ended = true;
		c->ended_ms = now_ms();
		break;
	case JAIL_NOTICE:
		cells_note(c, ev->text);
		break;
	case JAIL_FAILED:
		c->err = ev->err;
		c->over = true;
		break;
	case JAIL_LIMIT:
		c->limit = ev->limit;
		c->over = true;
		break;
	case JAIL_TOOK:
		c->took = true;
		break;
	case JAIL_REPLY:
		c->replied = true;
		c->reply = *ev;
		/* The next Python says when it is up. */
		c->up &= !(ev->ok && c->step == STEP_REPLY &&
			   c->q->form == REQUEST_RESET);
		if (ev->ok && is_listing(c))
			take_files(c, ev);
		else if (ev->ok && is_opening(c))
			take_opened(c, ev);
		break;
	case JAIL_BUILT:
	case JAIL_WAITS:
	case JAIL_TYPEAHEAD:
	case JAIL_STACK:
	case JAIL_PARKED:
	case JAIL_EXITED:
	case JAIL_BESIDE:
		break;
	}
	jail_event_close(ev);
}

static void take_events(struct cells *c)
{
	struct jail_event ev;
	int r = 0;

	while (!c->over && (r = jail_next(c->jail, &ev, &c->err)) > 0)
		take_event(c, &ev);
	c->over |= r < 0;
}

static void ask_warden(
	struct cells *c, enum jail_call call, int n, const char *path)
{
	c->replied = false;
	if (jail_send(c->jail, call, n, path, &c->reply.err) == 0)
		return;
	c->replied = true;
	c->reply.ok = false;
	if (c->reply.err.kind != ERR_JAIL)
		return;
	c->over = true;
	c->err = c->reply.err;
}

/* Take all that has come. The first Python finds the skeleton in its home. */
static void take_all(struct cells *c)
{
	take_events(c);
	if (!c->up || c->furnished || c->over)
		return;
	if (c->cfg->skeleton && !c->furnishes) {
		c->furnishes = true;
		ask_warden(c, CALL_READY, 0, NULL);
		return;
	}
	if (c->furnishes && !c->replied)
		return;
	c->furnished = true;
	run_put_skeleton(c->jail, c->cfg);
	take_events(c);
}

/* ---- one cell ---- */

static bool writers_are_dead(const struct cells *c)
{
	return c->done.after != AFTER_KEPT;
}

static bool has_shown_all(const struct cells *c)
{
	return !c->running || c->tty < 0 ||
	       output_is_over(&c->output, c->ended_ms, c->heard_ms,
		       writers_are_dead(c));
}

static void prepare_cell(struct cells *c, const struct request *q)
{
	if (c->text.cap > TEXT_KEPT)
		strbuf_free(&c->text);
	c->text.n = c->typed.n = c->typed_at = 0;
	c->last = 0;
	c->running = c->took = c->ended = false;
	c->late = c->cancelled = c->killed = false;
	c->small = 0;
	c->rest_ms = 0;
	c->done = (struct jail_done){0};
	c->verdict[0] = '\0';
	strbuf_add(&c->typed, q->input, q->input_n);
	/* A terminal has no other lines than those that are ended. */
	if (q->input_n && q->input[q->input_n - 1] != '\n')
		strbuf_puts(&c->typed, "\n");
	for (int i = 0; i < ENDS; i++)
		strbuf_puts(&c->typed, "\x04");
}

/* All of the report was written before the cell's end was told: as much as a
 * pipe can hold may still be in it. */
static void drain_report(struct cells *c)
{
	struct pollfd p = {.fd = c->report.fd, .events = POLLIN};

	for (int i = 0; i < PIPE_READS; i++) {
		if (p.fd < 0 || poll(&p, 1, 0) <= 0)
			return;
		capture_read(&c->report);
	}
}

/* Forget what came before: an earlier cell may have kept the pipe. */
static void report_begin(struct cells *c)
{
	drain_report(c);
	if (c->report.text.cap > TEXT_KEPT)
		strbuf_free(&c->report.text);
	c->report.text.n = 0;
	c->report.cut = false;
}

/* At `timeout_ms` it is interrupted, and killed after the grace. The warden
 * does the same at cell.timeout, but its clock rests while a cell waits for a
 * person, and here is none. */
static void start_cell(struct cells *c, const struct request *q)
{
	bool stricter = q->timeout_ms < c->cfg->limits.cell_wall_ms;

	prepare_cell(c, q);
	c->step = STEP_CELL;
	report_begin(c);
	log_cell(c->log, ++c->no, q->code, q->code_n);
	if (jail_run(c->jail, c->no, q->code, q->code_n, CELL_SILENT,
		    c->report_in, &c->err) < 0)
		c->over = true;
	c->due_ms = now_ms() + q->timeout_ms + (stricter ? 0 : AFTER_MS);
}

/* Interrupt it; the second time, kill it. There is no third: the warden may not
 * be able to listen, and we do not wait for it. */
static void interrupt_or_kill(struct cells *c)
{
	if (c->killed)
		return;
	c->killed = c->late || c->cancelled;
	if (c->killed)
		jail_kill(c->jail, NULL);
	else
		jail_interrupt(c->jail, NULL);
	c->due_ms = now_ms() +
		    (c->killed ? ANSWER_MS : c->cfg->limits.cell_grace_ms);
}

/* The warden does not run. What has come is taken first: it may be we who did
 * not. */
static void give_up(struct cells *c)
{
	take_events(c);
	if (c->over || (c->step == STEP_CELL && c->ended) ||
		(c->step == STEP_REPLY && c->replied) ||
		(c->step == STEP_UP && c->up && c->furnished))
		return;
	err_set(&c->err, "the session does not answer");
	err_kind_set(&c->err, ERR_JAIL);
	c->over = true;
}

void cells_interrupt(struct cells *c)
{
	if (c->step == STEP_CELL && !c->ended) {
		interrupt_or_kill(c);
		c->cancelled = !c->late;
	} else if (c->step == STEP_REPLY && !c->hurried) {
		jail_interrupt(c->jail, NULL);
		c->hurried = true;
	} else if (c->step == STEP_PUT) {
		c->hurried = true;
	}
}

/* The filter has added a line end where the last line had none. */
static void end_output(struct cells *c)
{
	struct output_report r;

	if (!c->running)
		return;
	output_end(&c->output, &r);
	c->running = false;
	if (r.newline_added && c->text.n)
		c->text.n--;
}

static void write_verdict(struct cells *c)
{
	struct limits limits = c->cfg->limits;
	const struct verdict_about about = {.limits = &limits,
		.memory_source = config_set_in(c->cfg, "session.memory")};
	struct jail_done *d = &c->done;

	/* It was we who interrupted it, for the request's own limit or because
	 * we were told to: nobody pressed a key. */
	if ((c->late || c->cancelled) &&
		(d->how == HOW_INTERRUPTED || d->how == HOW_KILLED) &&
		(d->limit == LIMIT_NONE || d->limit == LIMIT_PERSON)) {
		d->limit = c->late ? LIMIT_WALL : LIMIT_NONE;
		limits.cell_wall_ms = c->q->timeout_ms;
	}
	verdict_line(c->verdict, d, &about);
}

/* The cell has ended, and so has its output. */
static void finish_cell(struct cells *c)
{
	struct err e = {0};

	end_output(c);
	drain_report(c);
	if ((unsigned)c->done.how > HOW_REFUSED ||
		(unsigned)c->done.after > AFTER_ENDED) {
		err_set(&c->err, "the warden said what cannot be");
		c->over = true;
		c->ended = false;
		return;
	}
	if (c->report.cut)
		cells_note(c, "pictures left out: more than 16 MiB");
	write_verdict(c);
	log_limit(c->log, c->done.limit);
	if (log_cell_end(c->log, c->verdict, &e) < 0)
		cells_note(c, e.msg);
	c->no -= c->done.how == HOW_REFUSED;
	if (c->done.after == AFTER_ENDED)
		c->limit = c->done.limit;
	c->over |= c->done.after == AFTER_ENDED ||
		   (c->done.how == HOW_EXIT && !c->stays);
}

/* ---- requests ---- */

static void refuse_request(struct cells *c, const char *title, const char *text)
{
	c->refused = title;
	snprintf(c->words, sizeof(c->words), "%s", text);
}

void cells_refuse_files(struct cells *c, const char *why)
{
	refuse_request(c, "The files cannot be read", why);
}

const char *cells_why_over(struct cells *c)
{
	if (c->limit != LIMIT_NONE)
		return verdict_session_end(c->why, c->limit, &c->cfg->limits);
	return c->err.msg[0] ? c->err.msg : "a cell left it";
}

/* Put some files; the cell that they are for begins behind the last. Who is
 * interrupted before does not want it any more. */
static void put_files(struct cells *c)
{
	enum run_put put = c->hurried ? RUN_PUT_ALL
				      : run_put_files(&c->put, c->jail, c->q);

	if (put == RUN_PUT_MORE)
		return;
	c->step = STEP_DONE;
	if (c->hurried)
		refuse_request(c, "The request was interrupted",
			"interrupted before it began");
	else if (put == RUN_PUT_FAILED)
		refuse_request(c,
			c->put.how == RUN_FAILED ? "The jail failed"
						 : "Request file is invalid",
			c->put.message);
	else if (c->q->form == REQUEST_CELL)
		start_cell(c, c->q);
	free(c->put.files);
	c->put.files = NULL;
}

static void begin_files(struct cells *c)
{
	free(c->put.files);
	c->put = (struct run){.in = -1};
	c->step = STEP_PUT;
}

/* The warden has done what it was asked to, or has time for us. */
static void take_reply(struct cells *c)
{
	enum request_form form = c->q->form;

	c->step = form == REQUEST_RESET && c->reply.ok ? STEP_UP : STEP_DONE;
	if (!c->reply.ok)
		refuse_request(c,
			form == REQUEST_UNDO	 ? "Nothing was undone"
			: form == REQUEST_REMOVE ? "The file cannot be removed"
			: form == REQUEST_LIST || form == REQUEST_READ ||
					form == REQUEST_OPEN
				? "The files cannot be read"
				: "The request was interrupted",
			c->reply.err.msg);
	else if (form == REQUEST_CELL || form == REQUEST_WRITE)
		begin_files(c);
}

static void wait_for_cell(struct cells *c)
{
	if (!c->ended && now_ms() >= c->due_ms && c->killed) {
		give_up(c);
	} else if (!c->ended && now_ms() >= c->due_ms) {
		interrupt_or_kill(c);
		c->late = !c->cancelled;
	}
	if (!c->over && !(c->ended && has_shown_all(c)))
		return;
	c->step = STEP_DONE;
	if (c->ended)
		finish_cell(c);
}

static void go_on(struct cells *c)
{
	if ((c->step == STEP_UP || c->step == STEP_REPLY) && !c->over &&
		now_ms() >= c->due_ms)
		give_up(c);
	if (c->step == STEP_REPLY && c->replied && !c->over)
		take_reply(c);
	if (c->step == STEP_PUT && !c->over)
		put_files(c);
	if (c->step == STEP_CELL)
		wait_for_cell(c);
	else if (c->over || (c->step == STEP_UP && cells_is_up(c)))
		c->step = STEP_DONE;
}

void cells_begin(struct cells *c, const struct request *q)
{
	c->q = q;
	c->refused = NULL;
	c->hurried = false;
	c->step = q->form == REQUEST_SESSION ? STEP_UP : STEP_REPLY;
	c->due_ms = now_ms() + ANSWER_MS;
	take_all(c);
	if (c->over && q->form != REQUEST_SESSION)
		refuse_request(c, "The session is over", cells_why_over(c));
	else if (q->form == REQUEST_CELL && q->nfiles == 0)
		start_cell(c, q);
	else if (q->form == REQUEST_UNDO)
		ask_warden(c, CALL_UNDO, q->undo, NULL);
	else if (q->form == REQUEST_REMOVE)
		ask_warden(c, CALL_REMOVE, 0, q->path);
	else if (q->form == REQUEST_LIST || q->form == REQUEST_READ)
		ask_warden(c, CALL_LIST, 0, NULL);
	else if (q->form == REQUEST_OPEN)
		ask_warden(c, CALL_OPEN, 1, q->path);
	else if (q->form != REQUEST_SESSION)
		ask_warden(c,
			q->form == REQUEST_RESET ? CALL_RESET : CALL_READY, 0,
			NULL);
	go_on(c);
}

/* The command that does the same at the prompt, or NULL. */
static const char *command_of(const struct request *q)
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
	case REQUEST_OURS:
	case REQUEST_SESSION:
		break;
	}
	return NULL;
}

void cells_ask(struct cells *c, const struct request *q)
{
	struct err e = {0};

	if (config_check_command(c->cfg, command_of(q), &e) == 0) {
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
	return c->up && c->furnished;
}

bool cells_is_over(const struct cells *c)
{
	return c->over;
}

const struct err *cells_error(const struct cells *c)
{
	return &c->err;
}

bool cells_is_done(const struct cells *c)
{
	return c->refused || c->step == STEP_DONE;
}

int cells_polls(const struct cells *c, struct pollfd *p)
{
	bool runs = c->step == STEP_CELL;
	bool types = c->took && c->typed_at < c->typed.n;
	int64_t now = now_ms(), left = c->due_ms - now;
	bool rests = runs && !c->ended && now < c->rest_ms;

	/* What is shown between cells is nobody's. */
	p[0] = (struct pollfd){
		.fd = c->over ? -1 : jail_fd(c->jail), .events = POLLIN};
	p[1] = (struct pollfd){.fd = runs && !rests ? c->tty : -1,
		.events = (short)(POLLIN | (types ? POLLOUT : 0))};
	p[2] = (struct pollfd){
		.fd = runs && !rests ? c->report.fd : -1, .events = POLLIN};
	if (c->over || c->step == STEP_DONE)
		return -1;
	if (c->step == STEP_PUT)
		return 0;
	if (runs && c->ended)
		left = output_silence_ms(writers_are_dead(c));
	else if (rests && c->rest_ms - now < left)
		left = c->rest_ms - now;
	return left < 0 ? 0 : left < 3600000 ? (int)left : 3600000;
}

void cells_turn(struct cells *c, const struct pollfd *p)
{
	size_t before;

	/* The warden says that a cell runs before the cell can write. */
	if (p[0].revents || !c->running)
		take_all(c);
	if (p[1].fd == c->tty && p[1].revents & (POLLIN | POLLHUP | POLLERR))
		read_output(c);
	if (p[1].fd == c->tty && p[1].revents & POLLOUT)
		write_input(c);
	if (p[2].revents && p[2].fd == c->report.fd) {
		before = c->report.text.n;
		capture_read(&c->report);
		note_read(c, (ssize_t)(c->report.text.n - before));
	}
	go_on(c);
}

void cells_wait(struct cells *c)
{
	struct pollfd p[CELLS_POLLS];
	int timeout_ms = cells_polls(c, p);

	if (poll(p, CELLS_POLLS, timeout_ms) >= 0)
		cells_turn(c, p);
}

/* ---- what a cell showed ---- */

const char *cells_output(const struct cells *c, size_t *n)
{
	*n = c->text.n;
	return c->text.n ? c->text.s : "";
}

bool cells_has_begun(const struct cells *c)
{
	return c->step == STEP_CELL && c->took;
}

struct jail_files *cells_files(struct cells *c)
{
	return &c->files;
}

int cells_take_file(struct cells *c)
{
	return fd_take(&c->file);
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
	return &c->done;
}

const struct jail_undone *cells_undone(const struct cells *c)
{
	return &c->reply.undone;
}

const char *cells_verdict(const struct cells *c)
{
	return c->verdict;
}

void cells_report(const struct cells *c, struct report *r)
{
	report_parse(
		r, c->report.text.n ? c->report.text.s : "", c->report.text.n);
}

/* ---- for the answer ---- */

const struct request *cells_request(const struct cells *c)
{
	return c->q;
}

const struct config *cells_config(const struct cells *c)
{
	return c->cfg;
}

struct jail *cells_jail(struct cells *c)
{
	return c->jail;
}

bool cells_has_outcome(const struct cells *c)
{
	return c->q->form == REQUEST_CELL ? c->ended : !c->over;
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
	fd_drop(&c->file);
	jail_files_free(&c->files);
	if (c->report.text.cap > TEXT_KEPT)
		strbuf_free(&c->report.text);
	if (c->text.cap > TEXT_KEPT)
		strbuf_free(&c->text);
}

/* ---- its life ---- */

int cells_open(struct cells **out, struct jail *j, const struct config *cfg,
	struct log *log, bool stays, struct err *e)
{
	struct cells *c = calloc(1, sizeof(*c));
	int fds[2];

	if (!c)
		return err_errno(e, "open a session");
	*out = c;
	c->jail = j;
	c->cfg = cfg;
	c->log = log;
	c->stays = stays;
	c->tty = -1;
	c->report.fd = c->report_in = c->file = -1;
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
	fd_drop(&c->file);
	jail_files_free(&c->files);
	free(c->put.files);
	free(c);
}
