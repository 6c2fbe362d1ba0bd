/* SPDX-License-Identifier: MIT */
/*
 * drive.c - the state of a jail in use; its cells, programs and calls
 *
 * Runs in:   front end, confined
 * Trusts:    the warden about the end of a cell, a program or a call; no byte
 *            of the guest that the warden passes on
 *
 * Only drive_wait_built() waits. The warden has the clocks of a cell.
 */
#include "repl/drive/drive.h"

#include "jail/base/io.h"
#include "repl/config/config.h"
#include "repl/term/term.h"

#include <string.h>

void drive_open(struct drive *d, struct jail *j, const struct config *cfg,
	struct log *log, drive_handler *const *on, void *arg)
{
	*d = (struct drive){.jail = j,
		.cfg = cfg,
		.limits = cfg->limits,
		.log = log,
		.on = on,
		.arg = arg,
		.file = -1};
}

void drive_forget(struct drive *d)
{
	fd_drop(&d->file);
	jail_files_free(&d->files);
}

/* ---- events ---- */

static void end_session(struct drive *d, const struct err *why)
{
	if (!d->over)
		d->err = *why;
	d->over = true;
}

static void fail_session(struct drive *d, const char *why)
{
	struct err e = {0};

	err_set(&e, "%s", why);
	err_kind_set(&e, ERR_JAIL);
	end_session(d, &e);
}

static void note_failure(struct drive *d, const struct err *why)
{
	struct err e = *why;

	if (e.kind != ERR_CONFIG && e.kind != ERR_BUSY)
		err_kind_set(&e, ERR_JAIL);
	end_session(d, &e);
}

static void note_end(struct drive *d)
{
	d->ended = true;
	d->ended_ms = now_ms();
}

static void note_done(struct drive *d, const struct jail_done *done)
{
	if ((unsigned)done->how > HOW_REFUSED ||
		(unsigned)done->after > AFTER_ENDED) {
		fail_session(d, "the warden said what cannot be");
		return;
	}
	d->done = *done;
	note_end(d);
}

static void note_reply(struct drive *d, struct jail_event *ev)
{
	if (!d->asked)
		return;
	d->asked = false;
	d->replied = true;
	d->ok = ev->ok;
	d->why = ev->err;
	if (!d->ok)
		return;
	switch (d->call) {
	case CALL_READY:
	case CALL_REMOVE:
	case CALL_LOWER:
		break;
	case CALL_RESET: /* JAIL_UP of the next Python will follow */
		d->up = false;
		d->kept = ev->kept;
		break;
	case CALL_UNDO:
		d->undone = ev->undone;
		break;
	case CALL_LIST:
		jail_files_free(&d->files);
		d->ok = jail_take_files(ev, &d->files, &d->why) == 0;
		break;
	case CALL_OPEN:
		fd_drop(&d->file);
		d->file = fd_take(&ev->fd);
		d->ok = d->file >= 0;
		break;
	}
}

static void note_event(struct drive *d, struct jail_event *ev)
{
	switch (ev->type) {
	case JAIL_BUILT:
		d->built = true;
		break;
	case JAIL_FAILED:
		note_failure(d, &ev->err);
		break;
	case JAIL_UP:
		d->up = true;
		break;
	case JAIL_RUNNING:
		d->running = true;
		break;
	case JAIL_TOOK:
		d->took = true;
		break;
	case JAIL_DONE:
		note_done(d, &ev->done);
		log_usage(d->log, ev->done.cpu_ms, ev->done.peak_bytes);
		break;
	case JAIL_EXITED:
		d->program = ev->program;
		log_usage(d->log, ev->program.cpu_ms, ev->program.peak_bytes);
		note_end(d);
		break;
	case JAIL_LIMIT:
		d->limit = ev->limit;
		d->over = true;
		break;
	case JAIL_USAGE:
		d->usage = ev->usage;
		d->usage_due = false;
		break;
	case JAIL_REPLY:
		note_reply(d, ev);
		break;
	case JAIL_WAITS:
	case JAIL_TYPEAHEAD:
	case JAIL_STACK:
	case JAIL_PARKED:
	case JAIL_NOTICE:
	case JAIL_SIDE:
		break;
	}
}

static void take_event(struct drive *d, struct jail_event *ev)
{
	note_event(d, ev);
	if (d->on[ev->type])
		d->on[ev->type](d->arg, ev);
	jail_event_close(ev);
}

static void lose_warden(struct drive *d, const struct err *why)
{
	d->gone = true;
	end_session(d, why);
}

void drive_take(struct drive *d)
{
	struct jail_event ev;
	struct err e = {0};
	int r = 0;

	while (!d->gone && (r = jail_next(d->jail, &ev, &e)) > 0)
		take_event(d, &ev);
	if (r < 0)
		lose_warden(d, &e);
	if (!d->over && log_is_lost(d->log, &e) < 0) {
		err_kind_set(&e, ERR_CONFIG);
		end_session(d, &e);
	}
}

int drive_wait_built(struct drive *d, int timeout_ms, struct err *e)
{
	static const char failed[] = "the jail could not be built";
	struct jail_event ev;
	struct err why = {0};
	int r = jail_wait(d->jail, &ev, timeout_ms, &why);

	if (r > 0) {
		take_event(d, &ev);
		if (!d->built && !d->over)
			fail_session(d, failed);
	} else if (r < 0) {
		err_wrap(&why, failed);
		err_kind_set(&why, ERR_JAIL);
		lose_warden(d, &why);
	}
	if (!d->over)
		return 0;
	*e = d->err;
	return -1;
}

void drive_give_up(struct drive *d)
{
	fail_session(d, "the session does not answer");
}

/* ---- a cell ---- */

int drive_run(struct drive *d, const struct jail_run *run, struct err *e)
{
	d->wall_ms = run->wall_ms;
	d->running = d->took = d->ended = false;
	d->stops = 0;
	d->done = (struct jail_done){0};
	if (jail_run(d->jail, run, e) < 0)
		return -1;
	log_cell(d->log, run->cell, run->src, run->n);
	return 0;
}

void drive_stop(struct drive *d)
{
	d->stops++;
	if (d->stops == 1)
		jail_stop(d->jail);
	else if (d->stops == 2)
		jail_kill(d->jail);
}

/* If true, only output on its way through the kernel can still come. */
static bool is_every_writer_dead(const struct drive *d)
{
	return d->done.after != AFTER_KEPT;
}

bool drive_has_shown(
	const struct drive *d, const struct output *o, int64_t heard_ms)
{
	return output_is_over(
		o, d->ended_ms, heard_ms, is_every_writer_dead(d));
}

int drive_silence_ms(const struct drive *d)
{
	return output_silence_ms(is_every_writer_dead(d));
}

bool drive_is_lowered(const struct drive *d)
{
	return d->limits.memory_bytes < d->cfg->limits.memory_bytes;
}

int drive_end_cell(
	struct drive *d, char verdict[static VERDICT_MAX], struct err *e)
{
	struct limits limits = d->limits;
	const struct verdict_about about = {.limits = &limits,
		.memory_source =
			drive_is_lowered(d)
				? "the request that began the session"
				: config_set_in(d->cfg, "session.memory"),
		.error_is_other = d->error_is_other};

	d->running = false;
	/* A program asked us to stop the cell; no person pressed a key. */
	if (d->stops && d->done.limit == LIMIT_PERSON)
		d->done.limit = LIMIT_NONE;
	if (d->wall_ms)
		limits.cell_wall_ms = d->wall_ms;
	verdict_line(verdict, &d->done, &about);
	log_limit(d->log, d->done.limit);
	return log_cell_end(d->log, verdict, e);
}

/* ---- calls ---- */

static void note_call(struct drive *d, enum jail_call call, int sent)
{
	d->call = call;
	d->replied = false;
	d->asked = sent == 0;
	if (d->asked)
		return;
	d->replied = true;
	d->ok = false;
	if (d->why.kind == ERR_JAIL)
		end_session(d, &d->why);
}

void drive_ask_usage(struct drive *d)
{
	if (d->over || d->usage_due)
		return;
	d->usage_due = jail_tell_usage(d->jail) == 0;
}

void drive_call(struct drive *d, enum jail_call call, int n, const char *path)
{
	note_call(d, call, jail_send(d->jail, call, n, path, &d->why));
}

void drive_lower(struct drive *d, const struct limits *l)
{
	d->limits.memory_bytes = l->memory_bytes;
	d->limits.home_bytes = l->home_bytes;
	note_call(d, CALL_LOWER, jail_lower(d->jail, l, &d->why));
}
