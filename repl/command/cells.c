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

	(void)line;
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

static bool history_matches(
	struct session *s, size_t i, const struct command_line *line)
{
	size_t n;
	const char *src = history_get(s->history, i, &n);

	return memmem(src, n, line->rest, line->rest_n) != NULL;
}

int cells_history(
	struct session *s, const struct command_line *line, struct err *e)
{
	size_t n, count = history_count(s->history), found = 0, first;
	const char *last = history_get(s->history, count - 1, &n);
	size_t skipped = history_skipped(s->history);
	char lines[TEXT_HUMAN];

	(void)e;
	/* Leave out the last entry if it is this :history. */
	count -= last && lexer_is_command(last, n);
	first = count;
	for (size_t i = count; i-- > 0;) {
		found += history_matches(s, i, line);
		first = found <= HISTORY_SHOWN ? i : first;
	}
	if (!found)
		session_frame(s, "nothing in the history matches");
	if (found > HISTORY_SHOWN)
		session_frame(s, "the last %d of %zu", HISTORY_SHOWN, found);
	for (size_t i = first; i < count; i++) {
		const char *src = history_get(s->history, i, &n);

		if (history_matches(s, i, line))
			session_print_foreign(s, src, n);
	}
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
		session_frame(
			s, "the value of cell %" PRIu32
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

static void add_literal(struct strbuf *b, const char *s, size_t n)
{
	strbuf_puts(b, "\"");
	for (size_t i = 0; i < n; i++)
		if (s[i] == '"' || s[i] == '\\' || (unsigned char)s[i] < ' ')
			strbuf_printf(b, "\\x%02x", (unsigned char)s[i]);
		else
			strbuf_add(b, &s[i], 1);
	strbuf_puts(b, "\"");
}

int cells_run_apart(struct session *s, const char *python, const char *it,
	size_t n, struct err *e)
{
	struct strbuf b = {0};
	int r = -1;

	strbuf_puts(&b, "exec(");
	add_literal(&b, python, strlen(python));
	strbuf_puts(&b, ", {\"names\": globals(), \"it\": ");
	add_literal(&b, it, n);
	strbuf_puts(&b, "})");
	if (b.failed)
		err_set(e, "out of memory");
	else
		r = cell_run(s, b.s, b.n, e);
	strbuf_free(&b);
	return r;
}

/* Do what python -m timeit does, with as many loops as take 0.2 s. -n and -r
 * mean what they mean there. */
int cells_timeit(
	struct session *s, const struct command_line *line, struct err *e)
{
	static const char python[] =
		"import re, timeit\n"
		"options, code = re.match(r'((?:-[nr] *\\d+\\s+)*)(.*)', it, "
		"re.S).groups()\n"
		"options = {k: int(v) for k, v in "
		"re.findall(r'-([nr]) *(\\d+)', options)}\n"
		"timer = timeit.Timer(code, globals=names)\n"
		"n, took = options.get('n'), 0\n"
		"if not n: n, took = timer.autorange()\n"
		"runs = timer.repeat(options.get('r', 7 if took < .5 else 3), "
		"n)\n"
		"each = [x / n for x in runs]\n"
		"mean = sum(each) / len(each)\n"
		"off = (sum((x - mean) ** 2 for x in each) / len(each)) ** .5\n"
		"unit, factor = next(((u, f) for u, f in (('s', 1), "
		"('ms', 1e3), ('µs', 1e6)) if mean * f >= .9995), ('ns', "
		"1e9))\n"
		"off *= factor\n"
		"off = f'{off:.{0 if off >= 10 else 1}f} {unit}'\n"
		"print(f'{mean * factor:.3g} {unit} ± {off} a loop '\n"
		"      f'({len(runs)} runs of {n})')\n";

	return cells_run_apart(s, python, line->rest, line->rest_n, e);
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
