/* SPDX-License-Identifier: MIT */
/*
 * outcome.c - the answer to a request of a session
 *
 * Runs in:   front end, confined
 * Trusts:    cells.c for how the request ended; no name in the home, and no
 *            output of a cell
 */
#include "repl/json/json.h"

#include "jail/base/err.h"
#include "repl/config/config.h"

#include <string.h>

/* Most bytes of the names of a home, as JSON. */
#define NAMES_BYTES (4 << 20)

static const char *const how_names[] = {
	[HOW_OK] = "ok",
	[HOW_RAISED] = "raised",
	[HOW_SYNTAX] = "syntax",
	[HOW_INTERRUPTED] = "interrupted",
	[HOW_EXIT] = "exit",
	[HOW_KILLED] = "killed",
	[HOW_CRASHED] = "crashed",
	[HOW_EXITED] = "exited",
	[HOW_LOST] = "lost",
	[HOW_REFUSED] = "refused",
};

static const char *const after_names[] = {
	[AFTER_KEPT] = "kept",
	[AFTER_ROLLED_BACK] = "rolled back",
	[AFTER_RESTARTED] = "restarted",
	[AFTER_ENDED] = "ended",
};

static void add_pictures(const struct cells *c, struct strbuf *b)
{
	struct report r;

	cells_report(c, &r);
	answer_add_pictures(b, &r);
}

/* Append the value in all its forms, and note which were left out. */
static void add_bundle(struct cells *c, struct strbuf *b)
{
	struct strlist notes = {0};
	struct report r;

	cells_report(c, &r);
	bundle_add(b, &r);
	bundle_list_notes(&notes, &r);
	for (size_t i = 0; i < notes.n; i++)
		cells_note(c, notes.items[i]);
	strlist_fini(&notes);
}

static void add_cell(struct cells *c, struct strbuf *b, bool pictures)
{
	const struct request *q = cells_request(c);
	const struct jail_done *d = cells_done(c);
	const char *text;
	size_t n;

	emit_int(b, "cell", cells_count(c));
	if (!q->streams) {
		text = cells_output(c, &n);
		emit_bytes(b, "output", text, n);
	}
	if (pictures)
		add_pictures(c, b);
	if (q->bundles)
		add_bundle(c, b);
	emit_text(b, "how", how_names[d->how]);
	emit_text(b, "verdict", cells_verdict(c));
	answer_add_limit(b, q, d->limit, cells_drive(c));
	emit_int_or_null(b, "exit_code",
		d->how == HOW_EXIT || d->how == HOW_EXITED, d->status);
	/* The warden tells how Python is. exit() ends the session here. */
	emit_text(b, "after",
		after_names[cells_is_over(c) ? AFTER_ENDED : d->after]);
	emit_int(b, "names", d->names);
	emit_int(b, "duration_ms", d->wall_ms);
	emit_int(b, "cpu_ms", d->cpu_ms);
	emit_int_or_null(
		b, "memory_peak_bytes", d->peak_bytes > 0, d->peak_bytes);
}

static void add_undo(struct cells *c, struct strbuf *b)
{
	const struct jail_undone *d = cells_undone(c);

	emit_int(b, "undo", cells_request(c)->undo);
	emit_int(b, "back_to", d->back_to);
	emit_bool(b, "reset", d->reset);
	emit_int(b, "names", d->names);
}

/* Append the file that was written: the last one of the request, and the only
 * one. */
static void add_written_file(struct cells *c, struct strbuf *b)
{
	const struct request *q = cells_request(c);
	const struct request_file *f = &q->files[q->nfiles - 1];

	emit_text(b, "path", f->clean);
	emit_int(b, "size", (int64_t)f->n);
}

/* Append the files of the home that match. NULL, or why none are appended. */
static const char *add_files(struct cells *c, struct strbuf *b)
{
	const struct attach_rules rules = {.limits = &cells_config(c)->limits,
		.pattern = cells_request(c)->pattern};
	const char *why;

	emit_open(b, "files", '[');
	why = attach_files(b, cells_drive(c), &rules);
	emit_close(b, ']');
	return why;
}

void outcome_begin_file(
	struct strbuf *b, const char *path, char type, int64_t size)
{
	emit_open(b, NULL, '{');
	emit_text(b, "path", path);
	emit_text(b, "kind",
		type == 'f'   ? "file"
		: type == 'd' ? "directory"
		: type == 'l' ? "link"
			      : "other");
	emit_int(b, "size", size);
}

/* Append the names of all entries of the home. */
static void add_names(struct cells *c, struct strbuf *b)
{
	const struct jail_files *files = cells_files(c);
	size_t i = 0;

	emit_open(b, "files", '[');
	for (; i < files->n && b->n < NAMES_BYTES; i++) {
		const struct jail_file *f = &files->v[i];

		outcome_begin_file(b, f->path, f->type, f->bytes);
		emit_close(b, '}');
	}
	emit_close(b, ']');
	emit_bool(b, "truncated", i < files->n || files->truncated);
}

/* Append the outcome of the request. NULL, or why there is none. */
static const char *add_outcome(struct cells *c, struct strbuf *b, bool pictures)
{
	switch (cells_request(c)->form) {
	case REQUEST_CELL:
		add_cell(c, b, pictures);
		break;
	case REQUEST_SESSION:
		emit_bool(b, "session", true);
		emit_text(b, "python", cells_python(c));
		break;
	case REQUEST_UNDO:
		add_undo(c, b);
		break;
	case REQUEST_RESET:
		emit_bool(b, "reset", true);
		emit_bool(b, "kept", cells_kept(c));
		break;
	case REQUEST_LIST:
		add_names(c, b);
		break;
	case REQUEST_READ:
		return add_files(c, b);
	case REQUEST_WRITE:
		add_written_file(c, b);
		break;
	case REQUEST_OPEN:
	case REQUEST_REMOVE:
	case REQUEST_SNEKBOX: /* the last are no requests of a session */
	case REQUEST_PROGRAM:
	case REQUEST_OURS:
		break;
	}
	return NULL;
}

enum answer_kind outcome_add(
	struct strbuf *b, struct cells *c, bool pictures, struct err *e)
{
	const char *words = cells_refusal(c, NULL);
	size_t before = b->n;

	if (words)
		return ANSWER_REFUSED;
	if (!cells_has_outcome(c)) {
		*e = *cells_error(c);
		return ANSWER_FAILED;
	}
	words = add_outcome(c, b, pictures);
	if (words) {
		b->n = before;
		cells_refuse_files(c, words);
		return ANSWER_REFUSED;
	}
	emit_texts(b, "notices", cells_tell_notices(c));
	return ANSWER_RAN;
}
