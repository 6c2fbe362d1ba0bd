/* SPDX-License-Identifier: MIT */
/*
 * info.c - :limits :usage :who :diff :watch :unwatch :doc; tables
 *
 * Runs in:   front end, between cells
 * Trusts:    the warden about usage, and about what enforces a limit. A guest's
 *            answer is hostile text: it is split, and made safe before it is
 *            counted and shown
 */
#include "command.h"

#include "jail/enforce.h"
#include "repl/edit/editor.h"
#include "repl/session/session.h"

#include <ctype.h>

/* ---- tables ---- */

void info_table(struct session *s, struct text_table *t)
{
	struct strbuf b = {0};
	int rows;

	editor_size(s->editor, &rows, &t->width);
	text_table_write(t, &b);
	if (!b.failed)
		session_print(s, b.s, b.n);
	strbuf_free(&b);
}

int info_usage(
	struct session *s, const struct command_line *line, struct err *e)
{
	struct text_table t = {.columns = 2};
	struct jail_usage u;
	char one[TEXT_HUMAN], two[TEXT_HUMAN] = "unknown", text[160];

	(void)line;
	if (jail_usage(s->jail, &u, e) < 0)
		return -1;
	if (u.memory_peak_bytes)
		text_size(two, (uint64_t)u.memory_peak_bytes);
	snprintf(text, sizeof(text), "%s, peak %s",
		text_size(one, (uint64_t)u.memory_bytes), two);
	text_table_add(&t, (const char *[]){"memory", text});
	snprintf(text, sizeof(text), "%d", u.processes);
	text_table_add(&t, (const char *[]){"processes", text});
	text_table_add(&t, (const char *[]){"CPU", text_time(one, u.cpu_ms)});
	snprintf(text, sizeof(text), "%s in %s",
		text_size(one, (uint64_t)u.home_bytes),
		text_count(two, sizeof(two), (uint64_t)u.home_files, "file",
			NULL));
	text_table_add(&t, (const char *[]){"home", text});
	snprintf(text, sizeof(text), "%d, checkpoints %d", u.cells,
		u.checkpoints);
	text_table_add(&t, (const char *[]){"cells", text});
	text_time(one, u.up_ms / 1000 * 1000);
	text_table_add(&t, (const char *[]){"session", one});
	info_table(s, &t);
	return 0;
}

/* One row of the answer: name TAB type TAB size TAB value. */
static void add_variable(struct text_table *t, const char *row, size_t n)
{
	char safe[4][400];

	for (int i = 0; i < 4; i++) {
		const char *tab = memchr(row, '\t', n);
		size_t len = tab ? (size_t)(tab - row) : n;

		text_safe(safe[i], sizeof(safe[i]), row, len);
		row += tab ? len + 1 : len;
		n -= tab ? len + 1 : len;
	}
	text_table_add(t, (const char *[]){safe[0], safe[1], safe[2], safe[3]});
}

/* Print the rows of an answer. Returns how many there are. */
static size_t show_rows(
	struct session *s, const char *answer, size_t n, unsigned right)
{
	struct text_table t = {.columns = 4, .right = right, .cut = true};
	size_t count = 0;

	for (const char *p = answer, *end = answer + n; p < end;) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t len = nl ? (size_t)(nl - p) : (size_t)(end - p);

		if (len)
			add_variable(&t, p, len);
		count += len > 0;
		p += len + 1;
	}
	if (count)
		info_table(s, &t);
	return count;
}

int info_who(struct session *s, const struct command_line *line, struct err *e)
{
	auto_free char *answer = NULL;
	size_t n;

	if (jail_ask(s->jail, ASK_WHO, line->rest, line->rest_n, &answer, &n,
		    e) < 0)
		return -1;
	if (!show_rows(s, answer, n, 1 << 2))
		session_frame(s, line->rest_n ? "no variable is of that type"
					      : "there are no variables yet");
	return 0;
}

int info_diff(struct session *s, const struct command_line *line, struct err *e)
{
	auto_free char *answer = NULL;
	size_t n, first;
	char no[16];

	(void)line;
	if (jail_ask(s->jail, ASK_DIFF, "", 0, &answer, &n, e) < 0)
		return -1;
	if (!n) {
		session_frame(s, "no cell has run yet in this Python");
		return 0;
	}
	first = strcspn(answer, "\n");
	text_safe(no, sizeof(no), answer, first);
	if (cell_done(s) && cell_done(s)->after != AFTER_KEPT)
		session_frame(s,
			"the last cell was taken back: this is cell "
			"%s",
			no);
	if (first >= n || !show_rows(s, answer + first, n - first, 0))
		session_frame(s, "cell %s changed no variable and no file", no);
	return 0;
}

int info_watch(
	struct session *s, const struct command_line *line, struct err *e)
{
	if (line->rest_n)
		return expressions_add(s, line->rest, line->rest_n, e);
	expressions_list(s);
	return 0;
}

int info_unwatch(
	struct session *s, const struct command_line *line, struct err *e)
{
	return expressions_remove(s, line->rest, line->rest_n, e);
}

/* True if a question may be about this text, and Python cannot mean it: names,
 * dots and stars; before a last question mark anything but comments and strings
 * that are open. */
static bool is_expression(const char *p, const char *end, bool last)
{
	size_t quotes[2] = {0};

	if (p == end || isdigit((unsigned char)*p))
		return false;
	for (; p < end; p++) {
		quotes[0] += *p == '\'';
		quotes[1] += *p == '"';
		if (!isalnum((unsigned char)*p) && !strchr("_.*", *p) &&
			(unsigned char)*p < 0x80 &&
			(!last || !strchr("()[]{}'\" ,:=+-/", *p)))
			return false;
	}
	return quotes[0] % 2 == 0 && quotes[1] % 2 == 0;
}

bool info_is_question(const char **name, size_t *n, bool *source)
{
	const char *p = *name, *end = p + *n;
	size_t before = 0, behind = 0;

	while (p < end && isspace((unsigned char)end[-1]))
		end--;
	for (; p < end && *p == '?'; p++)
		before++;
	for (; p < end && end[-1] == '?'; end--)
		behind++;
	if ((before && behind) || before + behind < 1 || before + behind > 2 ||
		!is_expression(p, end, behind))
		return false;
	*source = before + behind == 2;
	*name = p;
	*n = (size_t)(end - p);
	return true;
}

int info_question(struct session *s, bool source, const char *name, size_t n,
	struct err *e)
{
	auto_free char *answer = NULL;
	char safe[80];
	size_t answer_n;

	if (!config_allows_command(s->cfg, "doc"))
		return err_set(e, "there is no command :doc");
	if (jail_ask(s->jail, source ? ASK_SOURCE : ASK_DOC, name, n, &answer,
		    &answer_n, e) < 0)
		return -1;
	if (!answer_n) {
		text_safe(safe, sizeof(safe), name, n);
		return err_set(e, "nothing is known about %s", safe);
	}
	page_show(s, answer, answer_n);
	return 0;
}

int info_doc(struct session *s, const struct command_line *line, struct err *e)
{
	const char *name = line->rest;
	size_t n = line->rest_n;
	bool source = false;

	info_is_question(&name, &n, &source);
	return info_question(s, source, name, n, e);
}

/* ---- :limits ---- */

/* In place of an enum enforce_limit: the front end enforces it on every host.
 */
enum { BY_THE_FRONT_END = -1 };

/* The usage that :limits shows beside a limit. */
enum used {
	USED_NOTHING,
	USED_MEMORY,
	USED_PROCESSES,
	USED_HOME,
	USED_HOME_FILES,
	USED_LIFETIME,
};

static const struct {
	const char *what;
	const char *key;
	int by; /* enum enforce_limit, or BY_THE_FRONT_END */
	enum used used;
} rows[] = {
	{"cell time", "cell.timeout", ENFORCE_TIME, USED_NOTHING},
	{"cell CPU", "cell.cpu", ENFORCE_CPU, USED_NOTHING},
	{"cell output", "cell.output", BY_THE_FRONT_END, USED_NOTHING},
	{"cell length", "cell.source", ENFORCE_TIME, USED_NOTHING},
	{"memory", "session.memory", ENFORCE_MEMORY, USED_MEMORY},
	{"processes", "session.processes", ENFORCE_PROCESSES, USED_PROCESSES},
	{"cores", "session.cpus", ENFORCE_CPUS, USED_NOTHING},
	{"home", "home.size", ENFORCE_HOME, USED_HOME},
	{"home files", "home.files", ENFORCE_HOME, USED_HOME_FILES},
	{"transfer, a file", "files.max_file", BY_THE_FRONT_END, USED_NOTHING},
	{"transfer, files", "files.max_count", BY_THE_FRONT_END, USED_NOTHING},
	{"idle", "session.idle", ENFORCE_TIME, USED_NOTHING},
	{"lifetime", "session.lifetime", ENFORCE_TIME, USED_LIFETIME},
	{"until", "session.until", ENFORCE_TIME, USED_NOTHING},
	{"exam", "exam.end", ENFORCE_TIME, USED_NOTHING},
	{"network", "jail.network", ENFORCE_NETWORK, USED_NOTHING},
};

/* Write a number of the key's type for people: "512 MiB", not "512M". False: a
 * type that has no such form. */
static bool format_number(
	enum config_type type, int64_t n, char buf[static TEXT_HUMAN])
{
	if (type == CONFIG_SIZE)
		text_size(buf, (uint64_t)n);
	else if (type == CONFIG_TIME)
		text_time(buf, n);
	else if (type == CONFIG_INT)
		snprintf(buf, TEXT_HUMAN, "%lld", (long long)n);
	else
		return false;
	return true;
}

/* The key that sets the limit: home.files in place of a files.max_count that no
 * source of the configuration sets. */
static const char *find_setting_key(const struct config *cfg, const char *key)
{
	bool follows = !strcmp(key, "files.max_count") &&
		       !config_counts_transfers(cfg);

	return follows ? "home.files" : key;
}

int info_limits(
	struct session *s, const struct command_line *line, struct err *e)
{
	static const char *const heads[] = {
		"what", "limit", "used", "enforced by", "set in"};
	struct text_table t = {.columns = 5};
	struct jail_usage u = {0};
	int r = jail_usage(s->jail, &u, e);
	const int64_t uses[] = {
		[USED_MEMORY] = u.memory_bytes,
		[USED_PROCESSES] = u.processes,
		[USED_HOME] = u.home_bytes,
		[USED_HOME_FILES] = u.home_files,
		[USED_LIFETIME] = u.up_ms / 1000 * 1000,
	};

	(void)line;
	if (r < 0)
		return -1;
	text_table_add(&t, heads);
	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *name = find_setting_key(s->cfg, rows[i].key);
		const struct config_key *key = config_keys_find_full(name);
		const char *source = config_source(s->cfg, name);
		const char *by = "front end";
		char limit[TEXT_HUMAN], used[TEXT_HUMAN] = "", set_in[512];

		if (!format_number(
			    key->type, config_value_number(s->cfg, key), limit))
			config_value_format(s->cfg, key, limit, sizeof(limit));
		if (!*limit) /* there is no such end */
			continue;
		if (rows[i].used != USED_NOTHING)
			format_number(key->type, uses[rows[i].used], used);
		if (rows[i].by != BY_THE_FRONT_END)
			by = enforce_by((enum enforce_limit)rows[i].by,
				u.by[rows[i].by]);
		text_safe(set_in, sizeof(set_in), source, strlen(source));
		text_table_add(&t, (const char *[]){rows[i].what, limit, used,
					   by, set_in});
	}
	info_table(s, &t);
	return 0;
}
