/* SPDX-License-Identifier: MIT */
/*
 * judge.c - what a program did, held against the plan
 *
 * Runs in:   front end, confined
 * Trusts:    the warden for how the program ended, and which limit struck; the
 *            plan; no byte of the program or of its files
 * Leaves:    words that can be shown on any terminal
 */
#include "repl/grade/grade.h"

#include "jail/base/io.h"
#include "repl/drive/drive.h"
#include "repl/json/json.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* Characters of a line that are shown. */
#define LINE_SHOWN 60

/* Text that is read piece by piece. */
struct cursor {
	const char *p, *end;
	int line;
};

__attribute__((format(printf, 2, 3))) static int say(
	char **why, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(why, fmt, ap);
	va_end(ap);
	if (n < 0)
		*why = NULL;
	return n < 0 ? -1 : 0;
}

static bool is_space(char c)
{
	return c && strchr(" \t\r\n\f\v", c);
}

/* The next line, without its end; false: there is none. */
static bool next_line(struct cursor *c, const char **s, size_t *n)
{
	const char *nl;

	if (c->p >= c->end)
		return false;
	nl = memchr(c->p, '\n', (size_t)(c->end - c->p));
	*s = c->p;
	*n = (size_t)((nl ? nl : c->end) - c->p);
	c->p = nl ? nl + 1 : c->end;
	c->line++;
	return true;
}

/* The next line, without blanks at its end; empty lines at the end of all are
 * none. */
static bool next_trimmed(struct cursor *c, const char **s, size_t *n)
{
	while (c->end > c->p && is_space(c->end[-1]))
		c->end--;
	if (!next_line(c, s, n))
		return false;
	while (*n && is_space((*s)[*n - 1]))
		--*n;
	return true;
}

static bool next_word(struct cursor *c, const char **s, size_t *n)
{
	for (; c->p < c->end && is_space(*c->p); c->p++)
		c->line += *c->p == '\n';
	*s = c->p;
	while (c->p < c->end && !is_space(*c->p))
		c->p++;
	*n = (size_t)(c->p - *s);
	return *n > 0;
}

static bool (*const pieces[])(struct cursor *c, const char **s, size_t *n) = {
	[COMPARE_LINES] = next_trimmed,
	[COMPARE_EXACT] = next_line,
	[COMPARE_WORDS] = next_word,
};

/* A piece in words: 'text', or that there is none. */
static void show_piece(
	char *buf, size_t size, bool there, const char *s, size_t n)
{
	char text[LINE_SHOWN];

	if (!there) {
		snprintf(buf, size, "its end");
		return;
	}
	text_safe(text, sizeof(text), s, n);
	snprintf(buf, size, "'%s'", text);
}

/* Note where the texts differ, if they do. 0, or -1: there is no memory for
 * that. */
static int find_difference(char **why, const char *what,
	const struct exercise_file *want, const char *have, size_t n,
	enum exercise_compare how)
{
	struct cursor a = {want->content, want->content + want->n, 0},
		      b = {have, have + n, 0};
	char wanted[LINE_SHOWN + 8], found[LINE_SHOWN + 8];
	const char *s = "", *t = "";
	size_t sn = 0, tn = 0;
	bool more, has;

	if (how == COMPARE_EXACT && want->n == n &&
		!memcmp(want->content, have, n))
		return 0;
	do {
		more = pieces[how](&a, &s, &sn);
		has = pieces[how](&b, &t, &tn);
	} while (more && has && sn == tn && !memcmp(s, t, sn));
	if (!more && !has && how != COMPARE_EXACT)
		return 0;
	if (!more && !has)
		return say(why, "%s differs in its last line end", what);
	show_piece(wanted, sizeof(wanted), more, s, sn);
	show_piece(found, sizeof(found), has, t, tn);
	return say(why, "%s, line %d: expected %s, not %s", what,
		(a.line > b.line ? a.line : b.line) + (how == COMPARE_WORDS),
		wanted, found);
}

/* ---- files of the home ---- */

/* Compare a file that the program had to make. 0, or -1 with e. */
static int judge_file(struct judgement *v, const struct exercise_test *t,
	const struct exercise_file *want, struct jail *j, struct err *e)
{
	/* A longer text differs, however blanks count. */
	size_t most = 2 * want->n + 65536;
	struct err why = {0};
	auto_close int fd = jail_home_open(j, want->name, &why);
	auto_free char *text = NULL;
	char what[80], words[300];
	ssize_t got = 0;
	int r;

	if (fd < 0 && why.kind == ERR_JAIL) {
		*e = why;
		return -1;
	}
	text_safe(what, sizeof(what), want->name, strlen(want->name));
	text = malloc(most);
	if (!text)
		return err_errno(e, "judge a file");
	if (fd >= 0)
		got = io_read_full(fd, text, most);
	if (got < 0)
		return err_errno(e, "read a file of the home");
	text_safe(words, sizeof(words), why.msg, strlen(why.msg));
	if (fd < 0 && why.code == ENOENT)
		r = say(&v->why, "%s: not made", what);
	else if (fd < 0)
		r = say(&v->why, "%s", words);
	else if ((size_t)got == most)
		r = say(&v->why, "%s is far longer than expected", what);
	else
		r = find_difference(
			&v->why, what, want, text, (size_t)got, t->compare);
	return r < 0 ? err_errno(e, "judge a file") : 0;
}

/* ---- the program ---- */

static int find_status(const struct jail_program *p)
{
	return WIFSIGNALED(p->status) ? 128 + WTERMSIG(p->status)
				      : WEXITSTATUS(p->status);
}

/* The last line of the errors, such as "ValueError: no". */
static void add_last_line(struct strbuf *b, const struct capture *c)
{
	struct cursor at = {c->text.s, c->text.s + c->text.n, 0};
	const char *s = "", *last = NULL;
	size_t n = 0, last_n = 0;
	char shown[2 * LINE_SHOWN];

	while (c->text.n && next_trimmed(&at, &s, &n)) {
		last = s;
		last_n = n;
	}
	if (!last)
		return;
	text_safe(shown, sizeof(shown), last, last_n);
	strbuf_printf(b, " · %s", shown);
}

/* If the program failed, note why, without a look at its output. 0, or -1:
 * there is no memory for that. */
static int judge_end(
	struct judgement *v, const struct exercise_test *t, const struct run *r)
{
	char words[VERDICT_MAX];
	struct strbuf b = {0};

	if (r->how == RUN_NOTHING) {
		text_safe(words, sizeof(words), r->message, strlen(r->message));
		strbuf_printf(&b, "not run: %s", words);
	} else if (r->how == RUN_CUT) {
		strbuf_printf(&b, "it wrote more than cell.output allows, %s",
			text_size(words, (uint64_t)r->max));
	} else if (v->limit != LIMIT_NONE) {
		strbuf_puts(&b,
			verdict_limit(words, v->limit, &r->drive.cfg->limits));
	} else if (v->status != t->status) {
		strbuf_printf(&b, "exit status %d", v->status);
		if (t->status)
			strbuf_printf(&b, ", expected %d", t->status);
		add_last_line(&b, &r->err_out);
	}
	v->why = b.s;
	return b.failed ? -1 : 0;
}

int judge_run(struct judgement *v, const struct exercise_test *t, struct run *r,
	struct err *e)
{
	const struct jail_program *p = &r->drive.program;

	*v = (struct judgement){.status = -1};
	if (r->how == RUN_FAILED) {
		*e = r->err;
		return -1;
	}
	if (r->how == RUN_ENDED) {
		v->status = find_status(p);
		v->limit = p->limit;
		v->wall_ms = p->wall_ms;
		v->cpu_ms = p->cpu_ms;
		v->peak_bytes = p->peak_bytes;
	}
	if (judge_end(v, t, r) < 0)
		return err_set(e, "judge a run: out of memory");
	if (!v->why && t->output.name &&
		find_difference(&v->why, "output", &t->output,
			strbuf_text(&r->out.text), r->out.text.n,
			t->compare) < 0)
		return err_errno(e, "judge a run");
	for (size_t i = 0; i < t->makes.n && !v->why; i++)
		if (judge_file(v, t, &t->makes.v[i], r->drive.jail, e) < 0)
			return -1;
	v->passed = !v->why;
	return 0;
}
