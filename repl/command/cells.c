/* SPDX-License-Identifier: MIT */
/*
 * cells.c - :undo :reset :history :out :edit :time :timeit :detach :quit
 *
 * Runs in:   front end, between cells
 * Trusts:    the warden; not the kept output of cells, which is made safe
 */
#include "command.h"

#include "repl/edit/editor.h"
#include "repl/session/session.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>

#define HISTORY_SHOWN 50

/* Read the only argument, a number from 1 on; without it the number is
 * `otherwise`. */
static int parse_number(const struct command_line *line, long otherwise,
	long *number, struct err *e)
{
	char *end;

	*number = otherwise;
	if (!line->n)
		return 0;
	errno = 0;
	*number = strtol(line->words[0].s, &end, 10);
	if (errno || *end || *number < 1 || *number > 1000000000)
		return err_set(
			e, "%s is not a number from 1 on", line->words[0].s);
	return 0;
}

int cells_undo(
	struct session *s, const struct command_line *line, struct err *e)
{
	const struct record_cell *c;
	struct jail_undone u;
	char text[VERDICT_MAX];
	long n;

	if (parse_number(line, 1, &n, e) < 0)
		return -1;
	if (jail_undo(s->jail, (int)n, &u, e) < 0)
		return -1;
	/* :save does not write the cells that were undone. */
	record_undo(s->record, u.back_to);
	c = record_find(s->record, u.back_to);
	session_frame(s, "%s",
		verdict_undo(text, &u, c ? c->src : NULL, c ? c->n : 0));
	return 0;
}

int cells_reset(
	struct session *s, const struct command_line *line, struct err *e)
{
	int kept;

	/* -f: IPython asks without it; :undo answers for us. */
	if (line->n && strcmp(line->words[0].s, "-f") != 0)
		return err_set(e, "usage: :reset [-f]");
	if (jail_reset(s->jail, &kept, e) < 0)
		return -1;
	cell_restarted(s);
	session_frame(s, "a fresh Python · files in the home are as they are%s",
		kept ? " · :undo brings the variables back" : "");
	return 0;
}

int cells_detach(
	struct session *s, const struct command_line *line, struct err *e)
{
	(void)line;
	return terminals_detach(s, e);
}

int cells_quit(
	struct session *s, const struct command_line *line, struct err *e)
{
	(void)line;
	(void)e;
	session_leave(s, 0, ":quit");
	return 0;
}

/* Of what :history shows an entry: a part, or a pattern with * and ?. */
static bool history_matches(
	const char *src, size_t n, const char *text, size_t text_n)
{
	auto_free char *whole = NULL, *pattern = NULL;

	if (!text_n || memmem(src, n, text, text_n))
		return true;
	if (!memchr(text, '*', text_n) && !memchr(text, '?', text_n))
		return false;
	whole = strndup(src, n);
	return whole && asprintf(&pattern, "*%.*s*", (int)text_n, text) >= 0 &&
	       fnmatch(pattern, whole, 0) == 0;
}

/* Read N, or N-M, into *first and *last. */
static bool read_range(const char *text, size_t n, long *first, long *last)
{
	char numbers[32], *end;

	if (!n || n >= sizeof(numbers) || !isdigit((unsigned char)*text))
		return false;
	memcpy(numbers, text, n);
	numbers[n] = '\0';
	*first = *last = strtol(numbers, &end, 10);
	if (*end == '-' && isdigit((unsigned char)end[1]))
		*last = strtol(end + 1, &end, 10);
	return *end == '\0';
}

/* Append the cells of this session that match, or have these numbers, with
 * their numbers. */
static void add_numbered(
	struct session *s, struct strbuf *b, const char *text, size_t text_n)
{
	long first, last;
	bool range = read_range(text, text_n, &first, &last);
	size_t n;
	const struct record_cell *c = record_cells(s->record, &n);

	for (; n-- > 0; c++) {
		if (range ? c->no < first || c->no > last
			  : !history_matches(c->src, c->n, text, text_n))
			continue;
		strbuf_printf(b, "%4" PRIu32 ": ", c->no);
		strbuf_add(b, c->src, c->n);
		strbuf_puts(b, "\n");
	}
}

/* Append the entries of the history that match: all, or the last of them. */
static void add_entries(struct session *s, struct strbuf *b, const char *text,
	size_t text_n, bool all)
{
	size_t n, count = history_count(s->history), found = 0, first;
	const char *src = history_get(s->history, count - 1, &n);

	/* Leave out the last entry if it is this :history. */
	count -=
		src && s->typed && n == s->typed_n && !memcmp(src, s->typed, n);
	first = count;
	for (size_t i = count; i-- > 0;) {
		src = history_get(s->history, i, &n);
		found += history_matches(src, n, text, text_n);
		first = all || found <= HISTORY_SHOWN ? i : first;
	}
	if (!all && found > HISTORY_SHOWN)
		session_frame(s, "the last %d of %zu", HISTORY_SHOWN, found);
	for (size_t i = first; i < count; i++) {
		src = history_get(s->history, i, &n);
		if (!history_matches(src, n, text, text_n))
			continue;
		strbuf_add(b, src, n);
		strbuf_puts(b, "\n");
	}
}

int cells_history(
	struct session *s, const struct command_line *line, struct err *e)
{
	size_t n = line->rest_n, skipped = history_skipped(s->history);
	const char *text = line->rest;
	bool numbered = false, all = false;
	char lines[TEXT_HUMAN];
	struct strbuf b = {0};

	(void)e;
	/* -g, all sessions, is what :history does anyway. */
	while (n > 1 && text[0] == '-' && memchr("agn", text[1], 3) &&
		(n == 2 || text_is_blank(text[2]))) {
		numbered |= text[1] == 'n';
		all |= text[1] == 'a';
		for (n -= 2, text += 2; n && text_is_blank(*text); n--)
			text++;
	}
	if (numbered)
		add_numbered(s, &b, text, n);
	else
		add_entries(s, &b, text, n, all);
	if (!b.n)
		session_frame(s, "nothing in the history matches");
	else if (!b.failed && all)
		page_show_end(s, b.s, b.n);
	else if (!b.failed)
		session_print_foreign(s, b.s, b.n);
	strbuf_free(&b);
	if (skipped)
		session_frame(s, "%s of the history file could not be read",
			text_count(
				lines, sizeof(lines), skipped, "line", NULL));
	return 0;
}

/* Append output without its colour sequences. page_show() would show them as
 * the text "\x1b[31m". */
static void add_uncoloured_output(struct strbuf *b, const char *s, size_t n)
{
	const char *end = s + n, *esc;

	while (n && (esc = memchr(s, 0x1b, (size_t)(end - s))) != NULL) {
		const char *p = esc + 1;

		if (p < end && *p == '[')
			for (p++; p < end && (isdigit((unsigned char)*p) ||
						     *p == ';' || *p == ':');)
				p++;
		strbuf_add(b, s, (size_t)(esc - s));
		s = esc;
		if (p < end && *p == 'm' && p > esc + 1)
			s = p + 1;
		else
			strbuf_add(b, s++, 1);
	}
	if (n)
		strbuf_add(b, s, (size_t)(end - s));
}

int cells_out(struct session *s, const struct command_line *line, struct err *e)
{
	const struct record_output *o;
	struct strbuf text = {0}, value = {0};
	char size[TEXT_HUMAN];
	size_t n;
	int r = 0;
	long no;

	if (parse_number(line, 0, &no, e) < 0)
		return -1;
	o = record_find_output(s->record, no ? (uint32_t)no : s->cell_no);
	if (!o) {
		err_set(e, "the output of that cell is not kept");
		return err_hint(
			e, "that of the last %d cells is", RECORD_OUTPUTS);
	}
	if (!o->bytes.n)
		session_frame(s, "cell %" PRIu32 " wrote nothing", o->no);
	if (o->cut)
		r = cell_take_value(s, o->no, &value, e);
	n = r > 0 ? o->cut_at : o->bytes.n;
	add_uncoloured_output(&text, o->bytes.s, n);
	if (r > 0)
		add_uncoloured_output(&text, value.s, value.n);
	if (!text.failed)
		page_show(s, text.s, text.n);
	if (o->cut && r == 0)
		session_frame(s,
			"the value of cell %" PRIu32
			" is not there any more: this was shown of it",
			o->no);
	if (o->total > o->bytes.n)
		session_frame(s, "%s more were not kept",
			text_size(size, o->total - o->bytes.n));
	if (value.n >= RECORD_OUTPUT_BYTES)
		session_frame(s, "this is the first %s of the value",
			text_size(size, value.n));
	strbuf_free(&text);
	strbuf_free(&value);
	return r < 0 ? -1 : 0;
}

int cells_edit(
	struct session *s, const struct command_line *line, struct err *e)
{
	const struct record_cell *c;
	long no;

	if (parse_number(line, 0, &no, e) < 0)
		return -1;
	c = record_find(s->record, (uint32_t)no);
	if (c)
		return editor_prefill(s->editor, c->src, c->n);
	if (no && no <= record_gone(s->record)) {
		err_set(e, "cell %ld is not kept any more", no);
		return err_hint(e, "the last 14 MiB of cells are");
	}
	return err_set(
		e, no ? "there is no cell %ld" : "no cell has run yet", no);
}

/* ---- commands that run a cell ---- */

int cells_timeit(
	struct session *s, const struct command_line *line, struct err *e)
{
	struct strbuf b = {0};
	int r = -1;

	strbuf_puts(&b, "%timeit ");
	strbuf_add(&b, line->rest, line->rest_n);
	if (b.failed)
		err_set(e, "out of memory");
	else
		r = cell_run_habit(s, b.s, b.n, e);
	strbuf_free(&b);
	return r;
}

int cells_time(
	struct session *s, const struct command_line *line, struct err *e)
{
	const struct jail_done *done;
	char wall[TEXT_HUMAN], cpu[TEXT_HUMAN], peak[TEXT_HUMAN];

	if (cell_run(s, line->rest, line->rest_n, e) < 0)
		return -1;
	done = cell_done(s);
	if (!done)
		return 0;
	text_time(wall, done->wall_ms);
	text_time(cpu, done->cpu_ms);
	if (done->peak_bytes > 0)
		session_frame(s, "%s · CPU %s · memory peak %s%s", wall, cpu,
			done->peak_is_its ? "" : "at most ",
			text_size(peak, (uint64_t)done->peak_bytes));
	else
		session_frame(s, "%s · CPU %s", wall, cpu);
	return 0;
}
