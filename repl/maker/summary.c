/* SPDX-License-Identifier: MIT */
/*
 * summary.c - cellblock --report: sessions, their persons and their use
 *
 * Runs in:   front end, of root or of who else may read the file
 * Holds:     no more than the sessions that have no end yet, at most OPEN_MAX
 * Trusts:    nothing in the file: a line that is no record is counted, and
 *            names are made safe for a terminal and for a spreadsheet
 */
#include "repl/maker/maker.h"

#include "jail/base/array.h"
#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/base/procstat.h"
#include "repl/text/text.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define OPEN_MAX 65536
#define LINE_LONGEST 4096
/* Columns of a name in the table. */
#define NAME_COLUMNS 20

enum summary_state { STATE_ENDED, STATE_RUNS, STATE_LOST };

static const char *const states[] = {[STATE_ENDED] = "ended",
	[STATE_RUNS] = "runs",
	[STATE_LOST] = "no end"};

/* A session that has begun. */
struct summary_row {
	int64_t id, at_ms, up_ms, uid, pid, pid_start, number;
	char user[256], what[16], from[128];
};

struct summary {
	const struct summary_what *want;
	int locks; /* of host ids; -1: there are none, or we may not ask */
	int64_t since_ms;
	struct summary_row *open; /* by id */
	size_t n;
	uint64_t bad; /* lines that are no records */
	bool full;    /* no memory */
};

/* The part of a record that an end adds. */
struct summary_end {
	enum summary_state state;
	int64_t at_ms, lasted_ms, cpu_ms, peak_bytes; /* -1: unknown */
	const json_t *struck;			      /* or NULL */
};

/* ---- a line for each session ---- */

static void write_time(char *buf, size_t size, int64_t ms)
{
	time_t t = (time_t)(ms / 1000);
	struct tm tm;

	*buf = '\0';
	if (localtime_r(&t, &tm))
		strftime(buf, size, "%Y-%m-%d %H:%M:%S", &tm);
}

/* "cell.timeout 3, interrupt". Borrowed from `b`, which the caller frees. */
static const char *write_struck(struct strbuf *b, const json_t *struck)
{
	const char *key;
	json_t *times;
	char safe[64];

	json_object_foreach((json_t *)struck, key, times)
	{
		json_int_t n = json_integer_value(times);

		text_safe(safe, sizeof(safe), key, strlen(key));
		strbuf_printf(b, "%s%s", b->n ? ", " : "", safe);
		if (n > 1)
			strbuf_printf(b, " %lld", (long long)n);
	}
	return strbuf_text(b);
}

static void print_row(FILE *f, const struct summary_row *r,
	const struct summary_end *end, const char *struck)
{
	char began[32], lasted[TEXT_HUMAN] = "", cpu[TEXT_HUMAN] = "",
			peak[TEXT_HUMAN] = "";
	struct strbuf name = {0};

	write_time(began, sizeof(began), r->at_ms);
	if (end->cpu_ms >= 0)
		text_time(cpu, end->cpu_ms);
	if (end->peak_bytes > 0)
		text_size(peak, (uint64_t)end->peak_bytes);
	if (end->lasted_ms >= 0)
		text_time(lasted, end->lasted_ms);
	text_cut(&name, r->user, NAME_COLUMNS);
	fprintf(f, "%s%*s %-7s %-19s %-6s %9s %9s %10s  %s\n",
		strbuf_text(&name),
		NAME_COLUMNS - layout_columns(strbuf_text(&name), name.n), "",
		r->what, began, states[end->state], lasted, cpu, peak, struck);
	strbuf_free(&name);
}

/* As RFC 4180 has it. A text that a spreadsheet would take for a formula begins
 * with an apostrophe. */
static void print_field(FILE *f, const char *s)
{
	fputs(strchr("=+-@", *s) && *s ? "\"'" : "\"", f);
	for (; *s; s++) {
		if (*s == '"')
			fputc('"', f);
		fputc(*s, f);
	}
	fputs("\",", f);
}

static void print_number(FILE *f, int64_t n, const char *after)
{
	if (n >= 0)
		fprintf(f, "%lld", (long long)n);
	fputs(after, f);
}

static void print_csv(FILE *f, const struct summary_row *r,
	const struct summary_end *end, const char *struck)
{
	char began[32], ended[32] = "";

	write_time(began, sizeof(began), r->at_ms);
	if (end->at_ms >= 0)
		write_time(ended, sizeof(ended), end->at_ms);
	print_field(f, r->user);
	print_number(f, r->uid, ",");
	print_field(f, r->what);
	print_field(f, began);
	print_field(f, ended);
	print_field(f, states[end->state]);
	print_number(f, end->lasted_ms, ",");
	print_number(f, end->cpu_ms, ",");
	print_number(f, end->peak_bytes, ",");
	print_number(f, r->pid, ",");
	print_number(f, r->number > 0 ? r->number : -1, ",");
	print_field(f, r->from);
	fprintf(f, "\"%s\"\r\n", struck);
}

static json_t *number(int64_t n)
{
	return n >= 0 ? json_integer(n) : json_null();
}

static void print_json(
	FILE *f, const struct summary_row *r, const struct summary_end *end)
{
	json_t *o = json_pack(
		"{s:s, s:I, s:s, s:s, s:I, s:o, s:o, s:o, s:o, s:I, s:o, s:s, "
		"s:O?}",
		"user", r->user, "uid", (json_int_t)r->uid, "what", r->what,
		"state", states[end->state], "began_ms", (json_int_t)r->at_ms,
		"ended_ms", number(end->at_ms), "lasted_ms",
		number(end->lasted_ms), "cpu_ms", number(end->cpu_ms),
		"peak_bytes", number(end->peak_bytes), "pid",
		(json_int_t)r->pid, "session",
		number(r->number > 0 ? r->number : -1), "from", r->from,
		"struck", (json_t *)end->struck);

	json_dumpf(o, f, JSON_COMPACT | JSON_ENSURE_ASCII);
	fputc('\n', f);
	json_decref(o);
}

/* A session that was there at the time, or later. */
static bool is_wanted(const struct summary *s, const struct summary_row *r,
	const struct summary_end *end)
{
	if (end->state == STATE_RUNS)
		return true;
	return (end->at_ms >= 0 ? end->at_ms : r->at_ms) >= s->since_ms;
}

static void print_one(const struct summary *s, const struct summary_row *r,
	const struct summary_end *end)
{
	const struct summary_what *want = s->want;
	struct strbuf b = {0};

	if (!is_wanted(s, r, end))
		return;
	if (want->json)
		print_json(want->to, r, end);
	else if (want->csv)
		print_csv(want->to, r, end, write_struck(&b, end->struck));
	else
		print_row(want->to, r, end, write_struck(&b, end->struck));
	strbuf_free(&b);
}

static void print_heading(const struct summary_what *want)
{
	if (want->csv)
		fputs("user,uid,what,began,ended,state,lasted_ms,cpu_ms,"
		      "peak_bytes,pid,session,from,struck\r\n",
			want->to);
	else if (!want->json)
		fprintf(want->to, "%-*s %-7s %-19s %-6s %9s %9s %10s  %s\n",
			NAME_COLUMNS, "USER", "WHAT", "BEGAN", "STATE",
			"LASTED", "CPU", "MEMORY", "STRUCK");
}

/* ---- those without an end ---- */

/* Where the session of this host id is, or would be. */
static size_t find(const struct summary *s, int64_t id, bool *is_there)
{
	size_t lo = 0, hi = s->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (s->open[mid].id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	*is_there = lo < s->n && s->open[lo].id == id;
	return lo;
}

/* Its front end is there, or its janitor, which has the host id until it has
 * written the end. */
static bool runs(const struct summary *s, const struct summary_row *r)
{
	struct procstat st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)r->pid);
	if (r->pid > 0 && r->pid_start > 0 &&
		procstat_read(AT_FDCWD, path, &st) == 0 && st.state != 'Z' &&
		st.start_ticks == (uint64_t)r->pid_start)
		return true;
	return r->id > 0 && r->id < UINT32_MAX &&
	       hosts_is_held(s->locks, (uid_t)r->id);
}

static void lose(struct summary *s, size_t i, bool may_run)
{
	struct summary_end end = {.state = may_run && runs(s, &s->open[i])
						   ? STATE_RUNS
						   : STATE_LOST,
		.at_ms = -1,
		.lasted_ms = -1,
		.cpu_ms = -1,
		.peak_bytes = -1};

	print_one(s, &s->open[i], &end);
}

static void begin(struct summary *s, const struct summary_row *r)
{
	bool is_there;
	size_t i = find(s, r->id, &is_there);

	/* The host id is another session's by now. */
	if (is_there) {
		lose(s, i, false);
		s->open[i] = *r;
		return;
	}
	if (s->n >= OPEN_MAX) {
		lose(s, 0, true);
		ARRAY_REMOVE(s->open, s->n, 0);
		i -= i > 0;
	}
	if (array_grow(&s->open, s->n, sizeof(*s->open)) < 0) {
		s->full = true;
		return;
	}
	memmove(s->open + i + 1, s->open + i, (s->n - i) * sizeof(*s->open));
	s->open[i] = *r;
	s->n++;
}

static int compare_begins(const void *a, const void *b)
{
	const struct summary_row *x = a, *y = b;

	return (x->at_ms > y->at_ms) - (x->at_ms < y->at_ms);
}

/* ---- the lines of the file ---- */

static int64_t get(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	return json_is_integer(v) ? json_integer_value(v) : -1;
}

static void take_end(struct summary *s, const json_t *o)
{
	const json_t *struck = json_object_get(o, "struck");
	struct summary_end end = {.state = STATE_ENDED,
		.at_ms = get(o, "at_ms"),
		.cpu_ms = get(o, "cpu_ms"),
		.peak_bytes = get(o, "peak_bytes"),
		.struck = json_is_object(struck) ? struck : NULL};
	bool is_there;
	size_t i = find(s, get(o, "end"), &is_there);

	/* Its begin was in a file that is gone. */
	if (!is_there)
		return;
	/* Not by the clock that an administrator sets. */
	end.lasted_ms = get(o, "up_ms") - s->open[i].up_ms;
	print_one(s, &s->open[i], &end);
	ARRAY_REMOVE(s->open, s->n, i);
}

static bool take_begin(struct summary *s, const json_t *o)
{
	const char *user = json_string_value(json_object_get(o, "user"));
	const char *what = json_string_value(json_object_get(o, "what"));
	const char *from = json_string_value(json_object_get(o, "from"));
	struct summary_row r = {.id = get(o, "begin"),
		.at_ms = get(o, "at_ms"),
		.up_ms = get(o, "up_ms"),
		.uid = get(o, "uid"),
		.pid = get(o, "pid"),
		.pid_start = get(o, "pid_start"),
		.number = get(o, "session")};

	if (!user || !what)
		return false;
	text_safe(r.user, sizeof(r.user), user, strlen(user));
	text_safe(r.what, sizeof(r.what), what, strlen(what));
	/* An earlier build did not write it. */
	text_safe(r.from, sizeof(r.from), from ? from : "",
		from ? strlen(from) : 0);
	begin(s, &r);
	return true;
}

static void take_line(struct summary *s, const char *line, size_t n)
{
	json_t *o = json_loadb(line, n, JSON_REJECT_DUPLICATES, NULL);

	if (get(o, "end") >= 0)
		take_end(s, o);
	else if (get(o, "begin") < 0 || !take_begin(s, o))
		s->bad++;
	json_decref(o);
}

/* A line that is too long is one bad line. */
static void take_file(struct summary *s, FILE *f)
{
	char line[LINE_LONGEST];
	bool rest = false;

	while (!s->full && fgets(line, sizeof(line), f)) {
		size_t n = strlen(line);
		bool whole = n && line[n - 1] == '\n';

		if (!rest && whole && n > 1)
			take_line(s, line, n);
		else if (!rest && n > 1)
			s->bad++;
		rest = !whole;
	}
}

/* 0, or -1 with errno. */
static int take_path(struct summary *s, const char *path)
{
	FILE *f = fopen(path, "re");

	if (!f)
		return -1;
	take_file(s, f);
	fclose(f);
	return 0;
}

/* ---- since when ---- */

/* "90m", "12h", "7d": so long ago. */
static bool parse_ago(const char *text, time_t now, int64_t *ms)
{
	static const struct {
		char unit;
		int64_t s;
	} units[] = {{'m', 60}, {'h', 3600}, {'d', 86400}};
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	if (end == text || errno || n < 0 || n > 1000000 || !*end || end[1])
		return false;
	for (size_t i = 0; i < COUNT(units); i++)
		if (*end == units[i].unit) {
			*ms = ((int64_t)now - n * units[i].s) * 1000;
			return true;
		}
	return false;
}

static int parse_since(const char *text, int64_t *ms, struct err *e)
{
	static const char *const forms[] = {"%Y-%m-%d %H:%M:%S",
		"%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M",
		"%Y-%m-%d", "%H:%M"};
	time_t now = time(NULL);

	if (parse_ago(text, now, ms))
		return 0;
	for (size_t i = 0; i < COUNT(forms); i++) {
		struct tm tm = {0};
		const char *end;
		time_t t;

		/* A time of day is today's. */
		if (forms[i][1] == 'H')
			localtime_r(&now, &tm);
		tm.tm_sec = 0;
		end = strptime(text, forms[i], &tm);
		if (!end || *end)
			continue;
		tm.tm_isdst = -1;
		t = mktime(&tm);
		if (t == (time_t)-1)
			break;
		*ms = (int64_t)t * 1000;
		return 0;
	}
	err_set(e,
		"--since wants a time such as 2026-11-27, '2026-11-27 14:00', "
		"14:00, 90m, 12h or 7d");
	return err_kind_set(e, ERR_USAGE);
}

/* ---- all of it ---- */

static void print_rest(struct summary *s)
{
	if (s->n)
		qsort(s->open, s->n, sizeof(*s->open), compare_begins);
	for (size_t i = 0; i < s->n; i++)
		lose(s, i, true);
}

static int tell_trouble(const struct summary *s, struct err *e)
{
	const char *path = s->want->path;

	if (s->full) {
		errno = ENOMEM;
		return err_errno(e, "read %s", path);
	}
	if (!s->bad)
		return 0;
	return err_set(e,
		"read %s: %llu line%s no record of ours, and %s left "
		"out",
		path, (unsigned long long)s->bad, s->bad == 1 ? " is" : "s are",
		s->bad == 1 ? "is" : "are");
}

int summary_print(const struct summary_what *what, struct err *e)
{
	auto_close int locks =
		open(HOSTS_LOCKS, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct summary s = {
		.want = what, .locks = locks, .since_ms = INT64_MIN};
	char before[PATH_MAX];
	int r = 0;

	if (!what->path) {
		err_set(e, "--report: no file says who had sessions");
		err_hint(e, "log.accounting names it, for the maker of "
			    "sessions; see cellblock.conf(5)");
		return err_kind_set(e, ERR_CONFIG);
	}
	if (what->since && parse_since(what->since, &s.since_ms, e) < 0)
		return -1;
	snprintf(before, sizeof(before), "%s.1", what->path);
	if (access(what->path, R_OK) < 0 && errno != ENOENT) {
		err_errno(e, "read %s", what->path);
		err_hint(e, "as root, or as somebody who may read it");
		return err_kind_set(e, ERR_CONFIG);
	}
	print_heading(what);
	/* Sessions may have begun before the file was moved. */
	take_path(&s, before);
	if (take_path(&s, what->path) < 0 && errno != ENOENT)
		r = err_errno(e, "read %s", what->path);
	print_rest(&s);
	free(s.open);
	return r < 0 ? r : tell_trouble(&s, e);
}
