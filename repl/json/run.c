/* SPDX-License-Identifier: MIT */
/*
 * run.c - one request in one jail
 *
 * Runs in:   front end, confined
 * Holds:     our ends of the program's pipes
 * Trusts:    the warden for how the program ended; no byte that comes from it
 * Leaves:    the jail without processes, and its home
 */
#include "repl/json/json.h"

#include "jail/base/io.h"
#include "repl/config/config.h"
#include "repl/files/files.h"
#include "repl/term/term.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* How long the warden may take to build a jail, and to tell of a program's end
 * once its time is up: longer than its own clocks let it. */
#define SILENCE_MS 30000
/* How long files are put before others have their turn, but for the last. */
#define PUT_MS 3

/* What snekbox's programs are given, unless python.env says otherwise: the
 * order of output and errors shows in its answers. */
static const char *const env_snekbox[] = {"PYTHONUNBUFFERED=1",
	"PYTHONIOENCODING=utf-8:strict", "PYTHON_COLORS=1", NULL};

/* A jail that could not be built: the next could not be either. */
static void fail_run(struct run *r, const struct err *e)
{
	r->lost = r->built && !r->asked;
	r->how = RUN_FAILED;
	r->gone = true;
	r->err = *e;
}

/* ---- files into the home ---- */

/* Python's name of an error of the system. */
static const char *class_of(int code)
{
	static const struct {
		int code;
		const char *name;
	} names[] = {
		{EISDIR, "IsADirectoryError"},
		{ENOTDIR, "NotADirectoryError"},
		{EEXIST, "FileExistsError"},
		{ENOENT, "FileNotFoundError"},
		{EACCES, "PermissionError"},
		{EPERM, "PermissionError"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].code == code)
			return names[i].name;
	return "OSError";
}

/* A piece at a time from a file of ours, or what the request held. */
static int write_file(int to, const struct request_file *f)
{
	char piece[64 << 10];

	if (f->fd < 0)
		return io_write_full(to, f->content, f->n);
	for (size_t at = 0; at < f->n;) {
		ssize_t n = pread(f->fd, piece, sizeof(piece), (off_t)at);

		if (n == 0)
			errno = EIO;
		if (n <= 0 || io_write_full(to, piece, (size_t)n) < 0)
			return -1;
		at += (size_t)n;
	}
	return 0;
}

static int put_file(struct run *r, struct jail *j, const struct request_file *f,
	struct err *e)
{
	auto_close int fd = -1;
	struct stat st;
	uint32_t token;

	if (!strcmp(f->clean, ".")) {
		e->code = EISDIR;
		return -1;
	}
	fd = jail_home_create(j, f->clean, 0777, &token, e);
	if (fd < 0)
		return -1;
	if (write_file(fd, f) < 0 || fstat(fd, &st) < 0) {
		err_errno(e, "write");
		jail_home_abort(j, token, NULL);
		return -1;
	}
	if (jail_home_commit(j, token, 1, e) < 0)
		return -1;
	r->files[r->nfiles++] = (struct run_file){f->clean, st.st_mtim};
	return 0;
}

static void refuse_skeleton(void *arg, const struct err *e)
{
	(void)arg;
	terminal_refuse(e);
}

void run_put_skeleton(struct jail *j, const struct config *cfg)
{
	struct ledger ledger = {0};
	const struct transfer t = {.jail = j,
		.limits = &cfg->limits,
		.ledger = &ledger,
		.refuse = refuse_skeleton};

	if (cfg->skeleton)
		upload_skeleton(&t, cfg->skeleton);
	ledger_free(&ledger);
}

static enum run_put fail_to_put(
	struct run *r, const struct request_file *f, const struct err *e)
{
	if (e->kind == ERR_JAIL) {
		snprintf(r->message, sizeof(r->message), "%s", e->msg);
		fail_run(r, e);
		return RUN_PUT_FAILED;
	}
	r->how = RUN_NOTHING;
	snprintf(r->message, sizeof(r->message),
		"%s: Failed to create file '%.1000s'.", class_of(e->code),
		f->path);
	return RUN_PUT_FAILED;
}

/* Where the list of what is put begins. */
static int begin_to_put(struct run *r, const struct request *q)
{
	struct err e = {0};

	if (!r->files)
		r->files = calloc(q->nfiles + 1, sizeof(*r->files));
	if (r->files)
		return 0;
	err_errno(&e, "hold the list of files");
	snprintf(r->message, sizeof(r->message), "%s", e.msg);
	fail_run(r, &e);
	return -1;
}

/* At least one at a time, however slowly we run. */
enum run_put run_put_files(
	struct run *r, struct jail *j, const struct request *q)
{
	int64_t begun = now_ms();

	if (begin_to_put(r, q) < 0)
		return RUN_PUT_FAILED;
	while (r->put < q->nfiles) {
		const struct request_file *f = &q->files[r->put++];
		struct err e = {0};

		if (put_file(r, j, f, &e) < 0)
			return fail_to_put(r, f, &e);
		if (now_ms() - begun >= PUT_MS)
			break;
	}
	return r->put < q->nfiles ? RUN_PUT_MORE : RUN_PUT_ALL;
}

/* ---- the program ---- */

static void take_up(
	struct run *r, struct jail_event *ev, const struct request *q)
{
	bool merged = q->form == REQUEST_SNEKBOX;

	r->up = true;
	r->in = fd_take(&ev->fds[1]);
	if (r->in >= 0)
		io_set_nonblock(r->in, 1);
	capture_open(&r->out, fd_take(&ev->fds[2]), r->max, merged);
	capture_open(&r->err_out, fd_take(&ev->fds[3]), r->max, false);
	capture_open(&r->report, fd_take(&ev->fds[4]), r->report_max, false);
}

static int start_program(struct jail *j, const struct request *q, struct err *e)
{
	const struct jail_start snekbox = {
		.argv = q->args, .env = env_snekbox, .merged = 1};
	const struct jail_start ours = {.source = q->source.s,
		.source_n = q->source.n,
		.wall_ms = q->timeout_ms};

	return jail_start_program(
		j, q->form == REQUEST_SNEKBOX ? &snekbox : &ours, e);
}

/* When it must be over: the warden ends it at its time limit. */
static int64_t end_ms(const struct run *r)
{
	int64_t asked_ms = r->request->timeout_ms;

	return now_ms() + SILENCE_MS +
	       (asked_ms > 0 ? asked_ms : r->cfg->limits.cell_wall_ms);
}

/* The jail stands: its home gets its files, and the program begins. */
static void begin_program(struct run *r)
{
	const struct request *q = r->request;
	enum run_put put = run_put_files(r, r->jail, q);
	struct err e = {0};

	r->puts = put == RUN_PUT_MORE;
	if (put == RUN_PUT_MORE)
		return;
	if (put == RUN_PUT_FAILED) {
		r->gone = true;
	} else if (q->has_nul) {
		r->how = RUN_NOTHING;
		r->gone = true;
		snprintf(r->message, sizeof(r->message),
			"ValueError: embedded null byte");
	} else if (start_program(r->jail, q, &e) < 0) {
		fail_run(r, &e);
	} else {
		r->asked = true;
		r->due_ms = end_ms(r);
	}
}

/* What it wrote last comes before its end. */
static void end_program(struct run *r, const struct jail_program *program)
{
	struct err e = {0};

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
	r->program = *program;
	r->how = r->out.cut && r->out.counts ? RUN_CUT : RUN_ENDED;
	r->gone = true;
}

static void take_event(struct run *r, struct jail_event *ev)
{
	if (ev->type == JAIL_BUILT) {
		r->built = true;
		run_put_skeleton(r->jail, r->cfg);
		begin_program(r);
	} else if (ev->type == JAIL_UP) {
		take_up(r, ev, r->request);
	} else if (ev->type == JAIL_FAILED) {
		/* A driver that waited, and died before it had its cell. */
		r->asked &= run_mode(r->request) != SPEC_CELL;
		fail_run(r, &ev->err);
	} else if (ev->type == JAIL_EXITED) {
		end_program(r, &ev->program);
	}
	jail_event_close(ev);
}

/* Take what the warden tells, while there is something. */
static void take_events(struct run *r)
{
	struct jail_event ev;
	struct err e = {0};
	int got = 0;

	while (!r->gone && (got = jail_next(r->jail, &ev, &e)) > 0)
		take_event(r, &ev);
	if (got < 0) {
		/* Its warden died before it read that. */
		r->asked &= r->up || e.code != ECONNRESET;
		fail_run(r, &e);
	}
}

/* Write what the program reads, as far as it takes it. */
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

/* So often a program's pipes are served at once. Afterwards each look is
 * followed by a rest: a program that writes byte by byte, or without end, takes
 * nothing from the others. Its end is seen at once. */
#define TURNS 100
#define REST_MS 2

enum { WAIT_JAIL, WAIT_OUT, WAIT_ERR, WAIT_REPORT, WAIT_IN };

static bool is_resting(const struct run *r)
{
	return r->rest_ms > now_ms();
}

int run_timeout_ms(const struct run *r)
{
	int64_t left = (is_resting(r) ? r->rest_ms : r->due_ms) - now_ms();

	return r->puts || left < 0 ? 0 : left < 3600000 ? (int)left : 3600000;
}

void run_polls(const struct run *r, struct pollfd *p)
{
	const struct capture *c[] = {&r->out, &r->err_out, &r->report};
	bool rests = is_resting(r);

	for (int i = 0; i < RUN_POLLS; i++)
		p[i] = (struct pollfd){.fd = -1, .events = POLLIN};
	p[WAIT_JAIL].fd = r->gone ? -1 : jail_fd(r->jail);
	for (int i = 0; i < 3; i++)
		p[WAIT_OUT + i].fd = rests ? -1 : c[i]->fd;
	p[WAIT_IN] =
		(struct pollfd){.fd = rests ? -1 : r->in, .events = POLLOUT};
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

/* Its warden does not run. */
static void give_up(struct run *r)
{
	struct err e = {0};

	take_events(r);
	if (r->gone)
		return;
	err_set(&e, "the session does not answer");
	err_kind_set(&e, ERR_JAIL);
	fail_run(r, &e);
}

void run_turn(struct run *r, const struct pollfd *p)
{
	bool was_cut = r->out.cut;

	serve_pipes(r, p);
	if (r->out.cut && !was_cut && r->out.counts)
		jail_kill(r->jail, NULL);
	if (p[WAIT_JAIL].revents)
		take_events(r);
	/* Each call that puts a file has a clock of its own. */
	if (r->puts && !r->gone)
		begin_program(r);
	else if (!r->gone && now_ms() > r->due_ms)
		give_up(r);
}

void run_wait(struct run *r)
{
	struct pollfd p[RUN_POLLS];

	run_polls(r, p);
	if (poll(p, RUN_POLLS, run_timeout_ms(r)) >= 0)
		run_turn(r, p);
}

bool run_is_over(const struct run *r)
{
	return r->gone;
}

enum spec_mode run_mode(const struct request *q)
{
	return q->form == REQUEST_SNEKBOX ? SPEC_PROGRAM : SPEC_CELL;
}

bool run_is_lost(const struct run *r)
{
	return r->how == RUN_FAILED && r->lost;
}

void run_begin(struct run *r, struct jail *j, const struct request *q,
	const struct config *cfg)
{
	*r = (struct run){.in = -1,
		.jail = j,
		.request = q,
		.cfg = cfg,
		.max = (uint64_t)cfg->limits.output_bytes,
		.report_max = (uint64_t)cfg->limits.home_bytes,
		.due_ms = now_ms() + SILENCE_MS,
		.out = {.fd = -1},
		.err_out = {.fd = -1},
		.report = {.fd = -1}};
	if (r->max > RUN_OUTPUT_MAX)
		r->max = RUN_OUTPUT_MAX;
	/* It may stand already. */
	take_events(r);
}

void run_fail(struct run *r, const struct request *q, const struct err *e)
{
	*r = (struct run){.how = RUN_FAILED,
		.gone = true,
		.request = q,
		.err = *e,
		.in = -1,
		.out = {.fd = -1},
		.err_out = {.fd = -1},
		.report = {.fd = -1}};
}

void run_fini(struct run *r)
{
	capture_close(&r->out);
	capture_close(&r->err_out);
	capture_close(&r->report);
	fd_drop(&r->in);
	free(r->files);
}
