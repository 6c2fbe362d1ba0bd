/* SPDX-License-Identifier: MIT */
/*
 * outcome.c - what a request of a session is answered
 *
 * Runs in:   front end, confined
 * Trusts:    cells.c for what became of the request; no name in the home, and
 *            nothing that a cell showed
 */
#include "repl/json/json.h"

#include "jail/base/err.h"
#include "repl/config/config.h"

#include <string.h>

/* Names of a home, as JSON. */
#define NAMES_BYTES (4 << 20)

static const char *const hows[] = {
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

static const char *const afters[] = {
	[AFTER_KEPT] = "kept",
	[AFTER_ROLLED_BACK] = "rolled back",
	[AFTER_RESTARTED] = "restarted",
	[AFTER_ENDED] = "ended",
};

static void add_key(struct strbuf *b, const char *key, const char *text)
{
	strbuf_printf(b, "\"%s\": ", key);
	json_text_add(b, text, strlen(text));
	strbuf_puts(b, ", ");
}

/* Notices since the last answer; the last key of each answer. */
static void add_notices(struct cells *c, struct strbuf *b)
{
	strbuf_puts(b, "\"notices\": [");
	cells_take_notices(c, b);
	strbuf_puts(b, "]}");
}

static void add_pictures(const struct cells *c, struct strbuf *b)
{
	struct report r;

	cells_report(c, &r);
	answer_add_pictures(b, &r);
}

static void add_done(struct cells *c, struct strbuf *b, bool pictures)
{
	const struct request *q = cells_request(c);
	const struct jail_done *d = cells_done(c);
	bool exits = d->how == HOW_EXIT || d->how == HOW_EXITED;
	const char *text;
	size_t n;

	strbuf_printf(b, "{\"cell\": %u, ", cells_count(c));
	if (!q->streams) {
		text = cells_output(c, &n);
		strbuf_puts(b, "\"output\": ");
		json_text_add(b, text, n);
		strbuf_puts(b, ", ");
	}
	if (pictures)
		add_pictures(c, b);
	add_key(b, "how", hows[d->how]);
	add_key(b, "verdict", cells_verdict(c));
	answer_add_limit(b, q, d->limit, cells_config(c));
	if (exits)
		strbuf_printf(b, "\"exit_code\": %d, ", d->status);
	else
		strbuf_puts(b, "\"exit_code\": null, ");
	add_key(b, "after", afters[d->after]);
	strbuf_printf(b,
		"\"names\": %u, \"duration_ms\": %lld, \"cpu_ms\": %lld, ",
		d->names, (long long)d->wall_ms, (long long)d->cpu_ms);
	if (d->peak_bytes > 0)
		strbuf_printf(b, "\"memory_peak_bytes\": %lld, ",
			(long long)d->peak_bytes);
	else
		strbuf_puts(b, "\"memory_peak_bytes\": null, ");
	add_notices(c, b);
}

static void add_session(struct cells *c, struct strbuf *b)
{
	strbuf_puts(b, "{\"session\": true, ");
	add_key(b, "python", cells_python(c));
	add_notices(c, b);
}

static void add_undo(struct cells *c, struct strbuf *b)
{
	const struct jail_undone *d = cells_undone(c);

	strbuf_printf(b,
		"{\"undo\": %d, \"back_to\": %u, \"reset\": %s, \"names\": "
		"%u, ",
		cells_request(c)->undo, d->back_to, d->reset ? "true" : "false",
		d->names);
	add_notices(c, b);
}

/* The last file that was written, which is the only one. */
static void add_written(struct cells *c, struct strbuf *b)
{
	const struct request *q = cells_request(c);
	const struct request_file *f = &q->files[q->nfiles - 1];

	strbuf_puts(b, "{\"path\": ");
	json_text_add(b, f->clean, strlen(f->clean));
	strbuf_printf(b, ", \"size\": %zu, ", f->n);
	add_notices(c, b);
}

static void add_reset(struct cells *c, struct strbuf *b)
{
	strbuf_puts(b, "{\"reset\": true, ");
	add_notices(c, b);
}

/* The files of the home that match. NULL, or why there are none. */
static const char *add_files(struct cells *c, struct strbuf *b)
{
	const struct attach_rules rules = {.limits = &cells_config(c)->limits,
		.pattern = cells_request(c)->pattern};
	size_t before = b->n;
	const char *why;

	strbuf_puts(b, "{\"files\": [");
	why = attach_files(b, cells_jail(c), cells_files(c), &rules, true);
	if (why) {
		b->n = before;
		return why;
	}
	strbuf_puts(b, "], ");
	add_notices(c, b);
	return NULL;
}

static const char *kind_of(char type)
{
	return type == 'f'   ? "file"
	       : type == 'd' ? "directory"
	       : type == 'l' ? "link"
			     : "other";
}

/* The names of all that is in the home. */
static void add_names(struct cells *c, struct strbuf *b)
{
	const struct jail_files *files = cells_files(c);
	size_t i = 0;

	strbuf_puts(b, "{\"files\": [");
	for (; i < files->n && b->n < NAMES_BYTES; i++) {
		const struct jail_file *f = &files->v[i];

		strbuf_puts(b, i ? ", {\"path\": " : "{\"path\": ");
		json_text_add(b, f->path, strlen(f->path));
		strbuf_printf(b, ", \"kind\": \"%s\", \"size\": %lld}",
			kind_of(f->type), (long long)f->bytes);
	}
	strbuf_printf(b, "], \"truncated\": %s, ",
		i < files->n || files->truncated ? "true" : "false");
	add_notices(c, b);
}

static void add_outcome(struct cells *c, struct strbuf *b, bool pictures)
{
	const char *why;

	switch (cells_request(c)->form) {
	case REQUEST_CELL:
		add_done(c, b, pictures);
		break;
	case REQUEST_SESSION:
		add_session(c, b);
		break;
	case REQUEST_UNDO:
		add_undo(c, b);
		break;
	case REQUEST_RESET:
		add_reset(c, b);
		break;
	case REQUEST_LIST:
		add_names(c, b);
		break;
	case REQUEST_READ:
		why = add_files(c, b);
		if (why)
			cells_refuse_files(c, why);
		break;
	case REQUEST_WRITE:
		add_written(c, b);
		break;
	case REQUEST_OPEN:
	case REQUEST_REMOVE:
		strbuf_puts(b, "{");
		add_notices(c, b);
		break;
	case REQUEST_SNEKBOX:
	case REQUEST_OURS:
		break; /* no requests of a session */
	}
}

enum answer_kind outcome_add(
	struct strbuf *b, struct cells *c, bool pictures, struct err *e)
{
	const char *title, *words = cells_refusal(c, NULL);

	if (!words && !cells_has_outcome(c)) {
		*e = *cells_error(c);
		return ANSWER_FAILED;
	}
	if (!words)
		add_outcome(c, b, pictures);
	words = cells_refusal(c, &title);
	if (!words)
		return ANSWER_RAN;
	answer_add_refusal(b, title, words, strlen(words));
	return ANSWER_REFUSED;
}
