/* SPDX-License-Identifier: MIT */
/*
 * lab.c - :submit
 *
 * Runs in:   front end, between cells
 * Trusts:    root's service with the receipt; no name and no content of a file
 *            in the home
 * Leaves:    nothing
 */
#include "command.h"

#include "jail/base/path.h"
#include "repl/lab/lab.h"
#include "repl/session/session.h"
#include "repl/term/term.h"

#include <inttypes.h>

/* The files of a request: paths of the home. */
struct lab_choice {
	const struct jail_file *v[HANDIN_FILES_MAX];
	size_t n;
};

static bool is_cancelled(void *signals)
{
	struct signals *s = signals;

	terminal_signals_read(s);
	return s->interrupt;
}

/* ---- the files ---- */

/* Add a file, once. */
static int choose(
	struct lab_choice *c, const struct jail_file *f, struct err *e)
{
	const char *name = path_last(f->path);

	for (size_t i = 0; i < c->n; i++) {
		if (c->v[i] == f)
			return 0;
		if (!strcmp(path_last(c->v[i]->path), name))
			return err_set(e,
				"%s and %s: files that are handed in together "
				"have different names",
				c->v[i]->path, f->path);
	}
	if (!asked_may_be_name(name))
		return err_set(e,
			"%s: a file that is handed in has a name without a dot "
			"at its beginning and without control characters",
			f->path);
	if (c->n == HANDIN_FILES_MAX)
		return err_set(e, "at most %d files can be handed in at once",
			HANDIN_FILES_MAX);
	c->v[c->n++] = f;
	return 0;
}

static int choose_word(struct lab_choice *c, const struct jail_files *files,
	const struct lexer_word *w, struct err *e)
{
	const char *name = transfer_home_name(w->s);
	const struct jail_file *f = transfer_find(files, name);
	bool any = false;

	if (!name[0] || (f && f->type == 'd'))
		return err_set(e, "%s is a directory: name its files", w->s);
	if (f && f->type != 'f')
		return err_set(e, "%s is %s", w->s,
			f->type == 'l' ? "a link: name its file"
				       : "not a regular file");
	if (f)
		return choose(c, f, e);
	for (size_t i = 0; w->is_pattern && i < files->n; i++) {
		f = &files->v[i];
		if (f->type != 'f' ||
			!transfer_matches(
				transfer_home_name(w->pattern), f->path))
			continue;
		any = true;
		if (choose(c, f, e) < 0)
			return -1;
	}
	if (any)
		return 0;
	err_set(e, "%s: there is no such file in the home", w->s);
	return files->truncated ? err_hint(e, "the home has more files than "
					      "can be listed")
				: -1;
}

/* ---- the request ---- */

/* Write what became of a file: "submitted mean.py · 1.2 KiB · 2nd version". */
static void write_file(struct strbuf *b, const struct config *cfg,
	const struct handin_row *row, const char *done)
{
	char name[300], size[TEXT_HUMAN], nth[TEXT_HUMAN], moment[TEXT_HUMAN];
	char until[TEXT_HUMAN + 16] = "", receipt[64], other[96] = "";
	const char *exercise = cfg->lab.exercise;
	time_t now = time(NULL);

	text_safe(name, sizeof(name), row->name, strlen(row->name));
	text_safe(receipt, sizeof(receipt), row->receipt, strlen(row->receipt));
	if (!done[0])
		snprintf(until, sizeof(until), " · %s",
			text_moment(moment, row->when_s, now, false));
	else if (row->due_s)
		snprintf(until, sizeof(until), " · until %s",
			text_moment(moment, row->due_s, now, false));
	if (!exercise || strcmp(exercise, row->exercise) != 0)
		snprintf(other, sizeof(other), " · exercise %s", row->exercise);
	strbuf_printf(b, "%s%s%s · %s · %s version · receipt %s%s", done, name,
		other, text_size(size, (uint64_t)row->bytes),
		text_ordinal(nth, row->version), receipt, until);
}

static void say_file(
	struct session *s, const struct handin_row *row, const char *done)
{
	struct strbuf b = {0};

	write_file(&b, s->cfg, row, done);
	session_frame(s, "%s", strbuf_text(&b));
	strbuf_free(&b);
}

static int say_answer(struct session *s, struct hand *h, const char *done,
	struct handin_row *row, struct err *e)
{
	int r;

	while ((r = hand_next(h, row, e)) > 0)
		say_file(s, row, done);
	return r;
}

static int list_files(struct session *s, struct hand *h, struct err *e)
{
	struct handin_row row;
	struct strbuf b = {0};
	char count[64];

	if (hand_open(h, s->courier, HANDIN_LIST, e) < 0 ||
		say_answer(s, h, "", &row, e) < 0)
		return -1;
	hand_due(&b, row.course, row.exercise, row.due_s);
	session_frame(s, "%s · %s", b.n && !b.failed ? b.s : "exercise",
		row.version ? text_count(count, sizeof(count), row.version,
				      "version", NULL)
			    : "nothing was handed in yet");
	strbuf_free(&b);
	return 0;
}

static int send_files(struct session *s, struct hand *h,
	const struct lab_choice *c, struct err *e)
{
	struct handin_row row;

	if (hand_open(h, s->courier, HANDIN_FILES, e) < 0)
		return err_wrap(e, "nothing was handed in");
	for (size_t i = 0; i < c->n; i++) {
		const char *path = c->v[i]->path;
		auto_close int in = jail_home_open(s->jail, path, e);

		if (in < 0 || hand_file(h, path_last(path), in, e) < 0)
			return -1;
	}
	if (hand_commit(h, e) < 0)
		return -1;
	return say_answer(s, h, "submitted ", &row, e);
}

int lab_submit(
	struct session *s, const struct command_line *line, struct err *e)
{
	struct hand h = {
		.fd = -1, .cancelled = is_cancelled, .arg = s->signals};
	struct jail_files files = {0};
	struct lab_choice c = {.n = 0};
	int r = 0;

	if (!s->cfg->lab.submit) {
		err_set(e, "nothing is handed in from this session: "
			   "when it began, the administrator had set no "
			   "lab.submit");
		return err_hint(e, "a session that begins now can");
	}
	if (s->courier < 0)
		return err_set(e, "this session has no courier, because no "
				  "process could be started: a new session may "
				  "have one");
	s->signals->interrupt = false;
	if (!line->n) {
		r = list_files(s, &h, e);
		hand_close(&h);
		return r;
	}
	if (jail_home_list(s->jail, &files, e) < 0)
		return -1;
	for (int i = 0; r == 0 && i < line->n; i++)
		r = choose_word(&c, &files, &line->words[i], e);
	if (r == 0)
		r = send_files(s, &h, &c, e);
	if (r == 0)
		for (size_t i = 0; i < c.n; i++)
			ledger_note(&s->ledger, c.v[i]->path, c.v[i]->bytes,
				c.v[i]->mtime_ns, LEDGER_SUBMITTED);
	hand_close(&h);
	jail_files_free(&files);
	return r;
}

static bool is_never(void *arg)
{
	(void)arg;
	return false;
}

static void tell_late(const struct config *cfg)
{
	struct strbuf b = {0};

	strbuf_puts(&b, "nothing was handed in");
	hand_due(&b, NULL, cfg->lab.exercise, cfg->lab.due_s);
	terminal_print_line(stdout, strbuf_text(&b));
	strbuf_free(&b);
}

/* The janitor of the session has handed in before it let us go on. */
void lab_tell_end(const struct config *cfg, int courier, int64_t end_s)
{
	struct hand h = {.fd = -1, .cancelled = is_never};
	struct handin_row row;
	struct err e = {0};
	int r;

	if (exam_is_late(cfg, end_s)) {
		tell_late(cfg);
		return;
	}
	r = hand_open(&h, courier, HANDIN_LIST, &e);
	while (r == 0 && (r = hand_next(&h, &row, &e)) > 0) {
		struct strbuf b = {0};

		if (row.when_s >= end_s) {
			write_file(&b, cfg, &row, "handed in ");
			terminal_print_line(stdout, strbuf_text(&b));
		}
		strbuf_free(&b);
		r = 0;
	}
	if (r < 0) {
		err_wrap(&e, "show the receipts of what was handed in");
		err_hint(&e, "the files of the home are handed in without it");
		terminal_refuse(&e);
	}
	hand_close(&h);
}
