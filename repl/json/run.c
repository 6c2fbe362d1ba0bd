/* SPDX-License-Identifier: MIT */
/*
 * run.c - one request in one jail
 *
 * Runs in:   front end, confined
 * Holds:     our ends of the program's pipes
 * Trusts:    the warden for how the program ended; no byte of the program
 * Leaves:    the jail with its home, and without processes
 */
#include "repl/json/json.h"

#include "jail/base/io.h"
#include "repl/config/config.h"

#include <errno.h>
#include <string.h>

/* How long the warden may take to build a jail, and to report a program's end
 * after its time limit: longer than the warden's own clocks allow. */
#define SILENCE_MS 30000

/* Variables of snekbox's programs; python.env overrides them. Its answers show
 * output and errors in order. */
static const char *const env_snekbox[] = {"PYTHONUNBUFFERED=1",
	"PYTHONIOENCODING=utf-8:strict", "PYTHON_COLORS=1", NULL};

/* Fail the run. Another jail may be tried if this one was built and did not
 * have the request: when one cannot be built, the next cannot be built either.
 */
static void fail_run(struct run *r, const struct err *e)
{
	r->lost = r->drive.built && !r->asked;
	r->how = RUN_FAILED;
	r->gone = true;
	r->err = *e;
}

/* ---- the program ---- */

static void handle_up(void *arg, struct jail_event *ev)
{
	struct run *r = arg;
	bool merged = r->request->form == REQUEST_SNEKBOX;

	r->in = fd_take(&ev->fds[1]);
	if (r->in >= 0)
		io_set_nonblock(r->in, 1);
	capture_open(&r->out, fd_take(&ev->fds[2]), r->max, merged);
	capture_open(&r->err_out, fd_take(&ev->fds[3]), r->max, false);
	capture_open(&r->report, fd_take(&ev->fds[4]), REPORT_BYTES, false);
}

static int start_program(struct jail *j, const struct request *q, struct err *e)
{
	const struct jail_start snekbox = {
		.argv = q->args, .env = env_snekbox, .merged = 1};
	const struct jail_start program = {.argv = q->args};
	const struct jail_start ours = {.source = q->source.s,
		.source_n = q->source.n,
		.wall_ms = q->timeout_ms};

	return jail_start_program(j,
		q->form == REQUEST_SNEKBOX   ? &snekbox
		: q->form == REQUEST_PROGRAM ? &program
					     : &ours,
		e);
}

/* When the program must be over: the warden ends it at its time limit. */
static int64_t find_end_ms(const struct run *r)
{
	int64_t asked_ms = r->request->timeout_ms;

	return now_ms() + SILENCE_MS +
	       (asked_ms > 0 ? asked_ms : r->drive.cfg->limits.cell_wall_ms);
}

/* End without running anything. */
static void end_without_run(struct run *r, const char *why)
{
	r->how = RUN_NOTHING;
	r->gone = true;
	r->message = why;
}

/* Put the files into the home of a jail that is built, then start the program.
 */
static void begin_program(struct run *r)
{
	const struct request *q = r->request;
	struct err e = {0};

	switch (put_files(&r->put, r->drive.jail, q)) {
	case PUT_MORE:
		r->puts = true;
		return;
	case PUT_LOST:
		fail_run(r, &r->put.err);
		break;
	case PUT_REFUSED:
		end_without_run(r, r->put.message);
		break;
	case PUT_ALL:
		if (q->has_nul) {
			end_without_run(r, "ValueError: embedded null byte");
		} else if (start_program(r->drive.jail, q, &e) < 0) {
			fail_run(r, &e);
		} else {
			r->asked = true;
			r->due_ms = find_end_ms(r);
		}
	}
	r->puts = false;
}

/* True if the program wrote more than it may: it is of no use any more. */
static bool is_cut(const struct run *r)
{
	return r->out.cut && r->request->form != REQUEST_OURS;
}

/* Read the last output, then note the end. */
static void handle_exited(void *arg, struct jail_event *ev)
{
	struct run *r = arg;
	struct err e = {0};

	(void)ev;
	capture_finish(&r->out);
	capture_finish(&r->err_out);
	capture_finish(&r->report);
	fd_drop(&r->in);
	if (r->out.text.failed || r->err_out.text.failed ||
		r->report.text.failed) {
		err_set(&e, "hold the output: out of memory");
		fail_run(r, &e);
		return;
	}
	r->how = is_cut(r) ? RUN_CUT : RUN_ENDED;
	r->gone = true;
}

static void handle_built(void *arg, struct jail_event *ev)
{
	struct run *r = arg;

	(void)ev;
	put_skeleton(r->drive.jail, r->drive.cfg);
	begin_program(r);
}

static void handle_failure(void *arg, struct jail_event *ev)
{
	struct run *r = arg;

	(void)ev;
	if (r->gone)
		return;
	/* A driver that waits for its cell died before it had the cell. */
	r->asked &= run_mode(r->request) != SPEC_CELL;
	fail_run(r, &r->drive.err);
}

static drive_handler *const handlers[DRIVE_HANDLERS] = {
	[JAIL_BUILT] = handle_built,
	[JAIL_UP] = handle_up,
	[JAIL_FAILED] = handle_failure,
	[JAIL_EXITED] = handle_exited,
};

static void take_events(struct run *r)
{
	drive_take(&r->drive);
	if (r->gone || !r->drive.gone)
		return;
	/* The warden died before it read the request. */
	r->asked &= r->drive.up || r->drive.err.code != ECONNRESET;
	fail_run(r, &r->drive.err);
}

/* Write standard input, as much as the pipe takes. */
static void write_input(struct run *r, const struct request *q)
{
	ssize_t n = 0;

	if (r->in_at < q->input_n)
		n = write(r->in, q->input + r->in_at, q->input_n - r->in_at);
	if (n > 0)
		r->in_at += (size_t)n;
	if (r->in_at == q->input_n ||
		(n < 0 && errno != EAGAIN && errno != EINTR))
		fd_drop(&r->in);
}

/* We serve a program's pipes so often at once. Afterwards we pause after each
 * read or write: a program that writes byte by byte, or without end, takes no
 * time from others. We still see its end at once. */
#define TURNS 100
#define REST_MS 2

enum { WAIT_JAIL, WAIT_OUT, WAIT_ERR, WAIT_REPORT, WAIT_IN };

int run_polls(const struct run *r, struct pollfd *p)
{
	const struct capture *c[] = {&r->out, &r->err_out, &r->report};
	int64_t now = now_ms(), left;
	bool rests = r->rest_ms > now;

	for (int i = 0; i < RUN_POLLS; i++)
		p[i] = (struct pollfd){.fd = -1, .events = POLLIN};
	p[WAIT_JAIL].fd = r->gone ? -1 : jail_fd(r->drive.jail);
	for (int i = 0; i < 3; i++)
		p[WAIT_OUT + i].fd = rests ? -1 : c[i]->fd;
	p[WAIT_IN] =
		(struct pollfd){.fd = rests ? -1 : r->in, .events = POLLOUT};
	left = (rests ? r->rest_ms : r->due_ms) - now;
	return r->puts || left < 0 ? 0 : left < 3600000 ? (int)left : 3600000;
}

static void serve_pipes(struct run *r, const struct pollfd *p)
{
	struct capture *c[] = {&r->out, &r->err_out, &r->report};
	bool served = p[WAIT_IN].revents != 0;

	for (int i = 0; i < 3; i++)
		if (p[WAIT_OUT + i].revents) {
			capture_read(c[i]);
			served = true;
		}
	if (p[WAIT_IN].revents)
		write_input(r, r->request);
	if (served && ++r->turns > TURNS)
		r->rest_ms = now_ms() + REST_MS;
}

/* Give the warden up, unless its answer has come after all. */
static void give_warden_up(struct run *r)
{
	take_events(r);
	if (r->gone)
		return;
	drive_give_up(&r->drive);
	fail_run(r, &r->drive.err);
}

void run_turn(struct run *r, const struct pollfd *p)
{
	bool was_cut = is_cut(r);

	serve_pipes(r, p);
	if (is_cut(r) && !was_cut)
		jail_kill(r->drive.jail);
	if (p[WAIT_JAIL].revents)
		take_events(r);
	/* due_ms does not count while files are put: each call has a clock of
	 * its own. */
	if (r->puts && !r->gone)
		begin_program(r);
	else if (!r->gone && now_ms() > r->due_ms)
		give_warden_up(r);
}

void run_wait(struct run *r)
{
	struct pollfd p[RUN_POLLS];
	int timeout_ms = run_polls(r, p);

	if (poll(p, RUN_POLLS, timeout_ms) >= 0)
		run_turn(r, p);
}

bool run_is_over(const struct run *r)
{
	return r->gone;
}

bool run_has_begun(const struct run *r)
{
	return r->asked;
}

bool run_is_up(const struct run *r)
{
	return r->drive.up;
}

enum spec_mode run_mode(const struct request *q)
{
	return q->form == REQUEST_OURS ? SPEC_CELL : SPEC_PROGRAM;
}

bool run_is_lost(const struct run *r)
{
	return r->how == RUN_FAILED && r->lost;
}

void run_begin(struct run *r, struct jail *j, const struct request *q,
	const struct config *cfg, const struct err *e)
{
	*r = (struct run){.in = -1,
		.request = q,
		.max = (uint64_t)cfg->limits.output_bytes,
		.due_ms = now_ms() + SILENCE_MS,
		.drive = {.file = -1},
		.out = {.fd = -1},
		.err_out = {.fd = -1},
		.report = {.fd = -1}};
	if (!j) {
		r->how = RUN_FAILED;
		r->gone = true;
		r->err = *e;
		return;
	}
	if (r->max > RUN_OUTPUT_MAX && q->form != REQUEST_PROGRAM)
		r->max = RUN_OUTPUT_MAX;
	drive_open(&r->drive, j, cfg, NULL, handlers, r);
	/* The jail may be built already. */
	take_events(r);
}

void run_fini(struct run *r)
{
	capture_close(&r->out);
	capture_close(&r->err_out);
	capture_close(&r->report);
	fd_drop(&r->in);
	put_fini(&r->put);
	drive_forget(&r->drive);
}
