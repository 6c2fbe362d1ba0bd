/* SPDX-License-Identifier: MIT */
/*
 * value.c - one value: parsed, stored, compared, shown
 *
 * Runs in:   front end, before the warden is forked
 * Trusts:    no text: it may be a stranger's
 * Leaves:    a value in range, its text free of control characters, its paths
 *            absolute, without "." or ".." and without a slash at the end
 *
 * We reach a value through the offset in its key, so a new key needs a row of
 * the table in keys.c, and no code here.
 */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <strings.h>
#include <time.h>

#include "jail/base/err.h"
#include "jail/base/path.h"
#include "jail/enforce.h"
#include "repl/text/text.h"

/* A suffix and its factor. */
struct unit {
	const char *name;
	int64_t factor;
};

static const struct unit no_units[] = {{"", 1}, {NULL, 0}};
static const struct unit time_units[] = {{"ms", 1}, {"", 1000}, {"s", 1000},
	{"m", 60 * 1000}, {"h", 3600 * 1000}, {NULL, 0}};
static const struct unit size_units[] = {{"", 1}, {"K", 1LL << 10},
	{"M", 1LL << 20}, {"G", 1LL << 30}, {NULL, 0}};

/* We show the first word of each value. */
static const struct config_word switch_words[] = {{"yes", 1, 0}, {"no", 0, 0},
	{"true", 1, 0}, {"false", 0, 0}, {"on", 1, 0}, {"off", 0, 0},
	{NULL, 0, 0}};

/* We parse, copy, compare and show values of one shape alike. */
enum shape { NUMBER, TEXT, LIST, RANGE };

static const struct kind {
	enum shape shape;
	size_t bytes; /* of the member of struct config */
	const struct unit *units;
	const char *expected; /* of a number */
} kinds[] = {
	[CONFIG_INT] = {NUMBER, sizeof(int), no_units, "a whole number"},
	[CONFIG_SIZE] = {NUMBER, sizeof(int64_t), size_units,
		"a size such as 512K, 64M or 2G"},
	[CONFIG_TIME] = {NUMBER, sizeof(int64_t), time_units,
		"a time such as 500ms, 10s, 5m or 1h"},
	[CONFIG_SHARE] = {NUMBER, sizeof(int), NULL,
		"a number of cores such as 2 or 0.5"},
	[CONFIG_BOOL] = {NUMBER, sizeof(bool), NULL, "yes or no"},
	[CONFIG_WORD] = {NUMBER, sizeof(int), NULL, NULL},
	[CONFIG_MOMENT] = {NUMBER, sizeof(int64_t), NULL,
		"a local time such as 2026-12-04 18:00"},
	[CONFIG_HOUR] = {NUMBER, sizeof(int), NULL,
		"a time of day such as 18:00"},
	[CONFIG_NAME] = {TEXT, sizeof(char *), NULL, NULL},
	[CONFIG_STRING] = {TEXT, sizeof(char *), NULL, NULL},
	[CONFIG_DIR] = {TEXT, sizeof(char *), NULL, NULL},
	[CONFIG_DIRS] = {LIST, sizeof(struct strlist), NULL, NULL},
	[CONFIG_NAMES] = {LIST, sizeof(struct strlist), NULL, NULL},
	[CONFIG_DEMANDS] = {LIST, sizeof(struct strlist), NULL, NULL},
	[CONFIG_RANGE] = {RANGE, sizeof(struct config_range), NULL, NULL},
	[CONFIG_VARIABLE] = {LIST, sizeof(struct strlist), NULL, NULL},
};

_Static_assert(CONFIG_VALUE_MAX < PATH_MAX, "a path has room for any value");

/* The value in `cfg`; its text and items stay there. */
static union config_value peek_value(
	const struct config *cfg, const struct config_key *key)
{
	const void *at = (const char *)cfg + key->offset;
	size_t bytes = kinds[key->type].bytes;
	union config_value v = {.list = {0}};

	if (kinds[key->type].shape != NUMBER)
		memcpy(&v, at, bytes);
	else if (bytes == sizeof(int64_t))
		v.n = *(const int64_t *)at;
	else
		v.n = bytes == sizeof(int) ? *(const int *)at
					   : *(const bool *)at;
	return v;
}

/* Overwrite the value in `cfg`. */
static void poke_value(struct config *cfg, const struct config_key *key,
	const union config_value *v)
{
	void *at = (char *)cfg + key->offset;
	size_t bytes = kinds[key->type].bytes;

	if (kinds[key->type].shape != NUMBER)
		memcpy(at, v, bytes);
	else if (bytes == sizeof(int64_t))
		*(int64_t *)at = v->n;
	else if (bytes == sizeof(int))
		*(int *)at = (int)v->n;
	else
		*(bool *)at = v->n;
}

/* ---- numbers, times, sizes, switches and words ---- */

/* Read decimal digits at *p and step over them. 0, or -1: none, or too many. */
static int take_digits(const char **p, int64_t *n)
{
	char *end;

	if (!isdigit((unsigned char)**p))
		return -1;
	errno = 0;
	*n = strtoll(*p, &end, 10);
	*p = end;
	return errno ? -1 : 0;
}

static int scan_units(const char *text, const struct unit *units, int64_t *n)
{
	if (take_digits(&text, n) < 0)
		return -1;
	while (units->name && strcasecmp(text, units->name) != 0)
		units++;
	if (!units->name || __builtin_mul_overflow(*n, units->factor, n))
		return -1;
	return 0;
}

/* Read a number of cores, with at most three decimals, as thousandths. */
static int scan_share(const char *text, int64_t *n)
{
	int scale = 1000;

	if (take_digits(&text, n) < 0 || *n >= INT64_MAX / 1000)
		return -1;
	*n *= 1000;
	if (*text == '.') {
		for (text++; isdigit((unsigned char)*text) && scale > 1; text++)
			*n += (*text - '0') * (scale /= 10);
		if (scale == 1000)
			return -1;
	}
	return *text ? -1 : 0;
}

/* Read a local time, as the seconds since the epoch. "" is none. */
static int scan_moment(const char *text, int64_t *n)
{
	struct tm tm = {.tm_isdst = -1}, asked;
	const char *end;

	*n = 0;
	if (!*text)
		return 0;
	end = strptime(text, "%Y-%m-%d %H:%M", &tm);
	if (end && *end == ':')
		end = strptime(end, ":%S", &tm);
	asked = tm;
	*n = (int64_t)mktime(&tm);
	/* mktime() takes the 31st of February for a day in March. */
	return end && !*end && *n > 0 && tm.tm_mday == asked.tm_mday &&
			       tm.tm_mon == asked.tm_mon
		       ? 0
		       : -1;
}

/* Read a time of day, as minutes. Midnight is the end of a day. "" is none. */
static int scan_hour(const char *text, int64_t *n)
{
	struct tm tm = {0};
	const char *end;

	*n = 0;
	if (!*text)
		return 0;
	end = strptime(text, "%H:%M", &tm);
	*n = tm.tm_hour * 60 + tm.tm_min;
	if (!*n)
		*n = 24 * 60;
	return end && !*end ? 0 : -1;
}

static const struct config_word *list_words(const struct config_key *key)
{
	return key->type == CONFIG_BOOL ? switch_words : key->words;
}

static int scan_word(const struct config_key *key, const char *text, int64_t *n)
{
	bool any_case = key->type == CONFIG_BOOL;

	for (const struct config_word *w = list_words(key); w->name; w++)
		if (!(any_case ? strcasecmp : strcmp)(text, w->name)) {
			*n = w->value;
			return 0;
		}
	return -1;
}

static const struct config_word *find_word(
	const struct config_key *key, int64_t value)
{
	const struct config_word *w = list_words(key);

	while (w[1].name && w->value != value)
		w++;
	return w;
}

/* Refuse a word: "expected one, two or three". Returns -1. */
static int refuse_word(const struct config_key *key, struct err *e)
{
	char words[128];
	size_t n = 0;

	for (const struct config_word *w = key->words; w->name; w++)
		n += (size_t)snprintf(words + n, sizeof(words) - n, "%s%s",
			w == key->words ? ""
			: w[1].name	? ", "
					: " or ",
			w->name);
	return err_set(e, "expected %s", words);
}

static int parse_number(const struct config_key *key, const char *text,
	int64_t *n, struct err *e)
{
	const struct kind *kind = &kinds[key->type];
	char lo[32], hi[32];
	int r = kind->units		     ? scan_units(text, kind->units, n)
		: key->type == CONFIG_SHARE  ? scan_share(text, n)
		: key->type == CONFIG_MOMENT ? scan_moment(text, n)
		: key->type == CONFIG_HOUR   ? scan_hour(text, n)
					     : scan_word(key, text, n);

	if (r < 0 && !kind->expected)
		return refuse_word(key, e);
	if (r < 0)
		return err_set(e, "expected %s", kind->expected);
	if (list_words(key) || (*n >= key->min && *n <= key->max))
		return 0;
	return err_set(e, "expected %s to %s",
		config_value_format_number(key, key->min, lo, sizeof(lo)),
		config_value_format_number(key, key->max, hi, sizeof(hi)));
}

const char *config_value_format_number(
	const struct config_key *key, int64_t n, char *buf, size_t size)
{
	const struct unit *best = kinds[key->type].units;
	char moment[TEXT_HUMAN];

	if (list_words(key))
		return find_word(key, n)->name;
	if (key->type == CONFIG_MOMENT) {
		snprintf(buf, size, "%s", n ? text_minute(moment, n) : "");
		return buf;
	}
	if (key->type == CONFIG_HOUR) {
		*buf = '\0';
		if (n)
			snprintf(buf, size, "%02d:%02d", (int)n / 60 % 24,
				(int)n % 60);
		return buf;
	}
	if (!best) {
		snprintf(buf, size, "%g", (double)n / 1000);
		return buf;
	}
	for (const struct unit *u = best; n && u->name; u++)
		if (n % u->factor == 0)
			best = u;
	snprintf(buf, size, "%lld%s", (long long)(n / best->factor),
		n ? best->name : "");
	return buf;
}

int64_t config_value_number(
	const struct config *cfg, const struct config_key *key)
{
	return peek_value(cfg, key).n;
}

/* ---- text, paths and lists ---- */

/*
 * Take one item, or with `whole` the rest of the line, into `out`: bare up to
 * the next blank, or between double quotes, where \" and \\ stand for
 * themselves. 1 when there was one, 0 at the end, -1 on an open quote.
 */
static int take_item(const char **p, bool whole, char *out)
{
	const char *s = *p + strspn(*p, " \t");

	if (!*s)
		return 0;
	if (*s != '"') {
		while (*s && (whole || (*s != ' ' && *s != '\t')))
			*out++ = *s++;
		*out = '\0';
		*p = s;
		return 1;
	}
	for (s++; *s && *s != '"'; s++) {
		if (*s == '\\' && (s[1] == '"' || s[1] == '\\'))
			s++;
		*out++ = *s;
	}
	*out = '\0';
	if (*s != '"' || (s[1] && s[1] != ' ' && s[1] != '\t'))
		return -1;
	*p = s + 1;
	return 1;
}

static int refuse_quotes(struct err *e)
{
	return err_set(
		e, "expected double quotes around the whole value, or none");
}

/* Take the whole value, "" when there is none. */
static int take_whole(const char *text, char *out, struct err *e)
{
	int got = take_item(&text, true, out);

	if (got < 0 || text[strspn(text, " \t")])
		return refuse_quotes(e);
	if (!got)
		*out = '\0';
	return 0;
}

/* Make `item`, which has room for PATH_MAX bytes, an absolute path: replace ~
 * and clean it. */
static int parse_path(char *item, const char *home, struct err *e)
{
	bool tilde = item[0] == '~' && (!item[1] || item[1] == '/');
	char path[PATH_MAX];
	int n;

	if (tilde && (!home || home[0] != '/'))
		return err_set(e, "expected a path without ~: there is no "
				  "home directory here");
	n = snprintf(path, sizeof(path), "%s%s", tilde ? home : "",
		tilde ? item + 1 : item);
	if (path[0] != '/')
		return err_set(e, "expected an absolute path");
	if (n >= PATH_MAX)
		return err_set(e, "expected a shorter path");
	if (path_clean(path, false) < 0)
		return err_set(e, "expected a path without \"..\"");
	strcpy(item, path);
	return 0;
}

int config_value_prompt(struct strbuf *b, const char *format, uint32_t n,
	const char *left, struct err *e)
{
	for (const char *p = format; *p; p++) {
		if (!strncmp(p, "{n}", 3)) {
			strbuf_printf(b, "%" PRIu32, n);
			p += 2;
			continue;
		}
		if (!strncmp(p, "{left}", 6)) {
			strbuf_puts(b, left);
			p += 5;
			continue;
		}
		if (*p == '{' && p[1] != '{')
			return err_set(e,
				"expected {n}, the number of the cell, {left}, "
				"the time left of an exam, or {{ for a brace");
		strbuf_add(b, p, 1);
		p += (*p == '{' || *p == '}') && p[1] == *p;
	}
	return b->failed ? err_errno(e, "write the prompt") : 0;
}

/* Check a name of which we make a directory's. */
static int check_name(const char *item, struct err *e)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "abcdefghijklmnopqrstuvwxyz"
				      "0123456789._-";

	if (*item != '.' && *item != '-' && !item[strspn(item, letters)])
		return 0;
	return err_set(e, "expected a name of letters, digits and . _ -");
}

/* Parse a string or a directory. An empty text is no value, unless the key's
 * default is some text. */
static int parse_text(const struct config_key *key, const char *text,
	const char *home, char **value, struct err *e)
{
	struct strbuf prompt = {0};
	char item[PATH_MAX];
	int r = 0;

	if (take_whole(text, item, e) < 0)
		return -1;
	if (!item[0] && !key->def[0])
		return 0;
	if (key->type == CONFIG_DIR && parse_path(item, home, e) < 0)
		return -1;
	if (key->type == CONFIG_NAME && check_name(item, e) < 0)
		return -1;
	if (key->type != CONFIG_DIR && (int64_t)strlen(item) > key->max)
		return err_set(
			e, "expected at most %lld bytes", (long long)key->max);
	if (key->offset == offsetof(struct config, prompt))
		r = config_value_prompt(&prompt, item, 1, "", e);
	strbuf_free(&prompt);
	if (r < 0)
		return -1;
	*value = strdup(item);
	return *value ? 0 : err_errno(e, "remember a value");
}

/* Check one item of a list, and clean a path in place. `item` has room for
 * PATH_MAX bytes. */
static int parse_item(const struct config_key *key, char *item,
	const char *home, struct err *e)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
	char words[256];

	if (key->type == CONFIG_NAMES)
		return *item && !item[strspn(item, letters)]
			       ? 0
			       : err_set(e, "expected all, or names of "
					    "commands without their colon");
	if (key->type == CONFIG_DEMANDS) {
		if (enforce_word_find(item) >= 0)
			return 0;
		enforce_words(words, sizeof(words));
		return err_set(e, "expected words among %s", words);
	}
	if (parse_path(item, home, e) < 0)
		return -1;
	/* These directories show the host itself; no jail can want them. */
	if (key->offset == offsetof(struct config, expose) &&
		(!strcmp(item, "/") || path_is_beneath(item, "/proc") ||
			path_is_beneath(item, "/sys") ||
			path_is_beneath(item, "/dev")))
		return err_set(e, "expected something other than %s", item);
	return 0;
}

/* Parse a list. For a variable, the whole text is the only item. */
static int parse_list(const struct config_key *key, const char *text,
	const char *home, struct strlist *l, struct err *e)
{
	char item[PATH_MAX];
	int got;

	if (key->type == CONFIG_VARIABLE) {
		if (take_whole(text, item, e) < 0)
			return -1;
		return strlist_add(l, item) < 0
			       ? err_errno(e, "remember a value")
			       : 0;
	}
	while ((got = take_item(&text, false, item)) > 0) {
		if (parse_item(key, item, home, e) < 0)
			return -1;
		if (strlist_has(l, item))
			return err_set(e, "expected each only once: %s", item);
		if (strlist_add(l, item) < 0)
			return err_errno(e, "remember a value");
	}
	if (got < 0)
		return refuse_quotes(e);
	if (l->n < (size_t)key->min)
		return err_set(e, "expected at least one path");
	if (l->n > (size_t)key->max)
		return err_set(
			e, "expected at most %lld items", (long long)key->max);
	if (l->n > 1 && strlist_has(l, "all"))
		return err_set(e, "expected all, or names, but not both");
	return 0;
}

static int parse_range(const struct config_key *key, const char *text,
	struct config_range *range, struct err *e)
{
	int64_t lo = 0, hi = 0;
	bool shaped = take_digits(&text, &lo) == 0 && *text++ == '-' &&
		      take_digits(&text, &hi) == 0 && !*text;

	if (!shaped || lo > hi)
		return err_set(e, "expected a range of ids such as "
				  "2130706432-2130771967");
	if (lo < key->min || hi > key->max)
		return err_set(e, "expected ids from %lld to %lld",
			(long long)key->min, (long long)key->max);
	/* 65534 is nobody, which other software uses, too; 65535 is no id in
	 * 16 bits. */
	if (lo <= 65535 && hi >= 65534)
		return err_set(e, "expected a range without nobody (65534) "
				  "and 65535");
	*range = (struct config_range){(uint32_t)lo, (uint32_t)hi};
	return 0;
}

int config_value_parse(union config_value *v, const struct config_key *key,
	const char *text, const char *home, struct err *e)
{
	*v = (union config_value){.list = {0}};
	if (strlen(text) > CONFIG_VALUE_MAX)
		return err_set(
			e, "expected at most %d bytes", CONFIG_VALUE_MAX);
	if (!utf8_is_text(text, strlen(text), "\t"))
		return err_set(e, "expected UTF-8 text without control "
				  "characters");
	switch (kinds[key->type].shape) {
	case NUMBER:
		return parse_number(key, text, &v->n, e);
	case TEXT:
		return parse_text(key, text, home, &v->text, e);
	case LIST:
		return parse_list(key, text, home, &v->list, e);
	case RANGE:
		return parse_range(key, text, &v->range, e);
	}
	return -1;
}

bool config_value_may_be(const struct config_key *key, int64_t n)
{
	const struct config_word *w = key->words;

	if (key->type != CONFIG_WORD)
		return n >= key->min && n <= key->max;
	while (w->name && w->value != n)
		w++;
	return w->name;
}

/* ---- storing ---- */

void config_value_fini(union config_value *v, const struct config_key *key)
{
	if (kinds[key->type].shape == TEXT)
		free(v->text);
	if (kinds[key->type].shape == LIST)
		strlist_fini(&v->list);
	memset(v, 0, sizeof(*v));
}

bool config_value_is_list(const struct config_key *key)
{
	return kinds[key->type].shape == LIST;
}

void config_value_store(
	struct config *cfg, const struct config_key *key, union config_value *v)
{
	union config_value old = peek_value(cfg, key);

	config_value_fini(&old, key);
	poke_value(cfg, key, v);
	memset(v, 0, sizeof(*v));
}

int config_value_append(struct config *cfg, const struct config_key *key,
	const union config_value *v)
{
	struct strlist *l = (void *)((char *)cfg + key->offset);

	for (size_t i = 0; i < v->list.n; i++) {
		const char *s = v->list.items[i];

		if (strlist_has(l, s))
			continue;
		if (l->n >= (size_t)key->max) {
			errno = E2BIG;
			return -1;
		}
		if (strlist_add(l, s) < 0)
			return -1;
	}
	return 0;
}

int config_value_copy(struct config *to, const struct config *from,
	const struct config_key *key)
{
	enum shape shape = kinds[key->type].shape;
	const union config_value v = peek_value(from, key);
	union config_value copy = v;

	if (shape == LIST)
		copy.list = (struct strlist){0};
	if (shape == TEXT && v.text)
		copy.text = strdup(v.text);
	poke_value(to, key, &copy);
	if (shape == LIST)
		return config_value_append(to, key, &v);
	return shape == TEXT && v.text && !copy.text ? -1 : 0;
}

/* ---- comparing ---- */

/* True if `outer` has every item of `l`. */
static bool is_within(const struct strlist *l, const struct strlist *outer)
{
	for (size_t i = 0; i < l->n; i++)
		if (!strlist_has(outer, l->items[i]))
			return false;
	return true;
}

static bool is_same(const struct config_key *key, const union config_value *a,
	const union config_value *b)
{
	switch (kinds[key->type].shape) {
	case NUMBER:
		return a->n == b->n;
	case RANGE:
		return !memcmp(&a->range, &b->range, sizeof(a->range));
	case TEXT:
		return a->text && b->text ? !strcmp(a->text, b->text)
					  : a->text == b->text;
	case LIST:
		return is_within(&a->list, &b->list) &&
		       is_within(&b->list, &a->list);
	}
	return false;
}

bool config_value_tightens(const struct config *base,
	const struct config_key *key, const union config_value *v)
{
	const union config_value locked = peek_value(base, key);

	switch (key->tighten) {
	case TIGHTEN_ANY:
	case TIGHTEN_UNION:
		return true;
	case TIGHTEN_LOWER:
		return v->n <= locked.n;
	case TIGHTEN_HIGHER:
		return v->n >= locked.n;
	case TIGHTEN_RANK:
		return find_word(key, v->n)->rank <=
		       find_word(key, locked.n)->rank;
	case TIGHTEN_SUBSET:
		return is_within(&v->list, &locked.list) ||
		       (key->type == CONFIG_NAMES &&
			       strlist_has(&locked.list, "all"));
	case TIGHTEN_NEVER:
		return is_same(key, &locked, v);
	}
	return false;
}

/* ---- showing ---- */

/* True if the parser would change `s` without quotes: it would drop blanks at
 * the ends, cut the text at " ;" or at a quote, and split an item at its
 * blanks. */
static bool needs_quotes(const char *s, enum config_value_quotes when)
{
	size_t n = strlen(s);

	if (!n)
		return when == QUOTES_ITEM;
	if (when == QUOTES_COMMENTED || strpbrk(s, ";\""))
		return true;
	if (strchr(" \t", s[0]) || strchr(" \t", s[n - 1]))
		return true;
	return when == QUOTES_ITEM && strpbrk(s, " \t");
}

void config_value_quote(
	struct strbuf *b, const char *text, enum config_value_quotes when)
{
	const char *quote = needs_quotes(text, when) ? "\"" : "";

	strbuf_puts(b, quote);
	for (; *text; text++) {
		if (*quote && (*text == '"' || *text == '\\'))
			strbuf_puts(b, "\\");
		strbuf_add(b, text, 1);
	}
	strbuf_puts(b, quote);
}

void config_value_write(const struct config *cfg, const struct config_key *key,
	struct strbuf *b)
{
	const union config_value v = peek_value(cfg, key);
	char number[32];

	switch (kinds[key->type].shape) {
	case NUMBER:
		strbuf_puts(b, config_value_format_number(
				       key, v.n, number, sizeof(number)));
		break;
	case TEXT:
		if (v.text)
			config_value_quote(b, v.text,
				key->type == CONFIG_DIR ? QUOTES_ITEM
							: QUOTES_VALUE);
		break;
	case LIST:
		for (size_t i = 0; i < v.list.n; i++) {
			strbuf_puts(b, i ? " " : "");
			config_value_quote(b, v.list.items[i], QUOTES_ITEM);
		}
		break;
	case RANGE:
		strbuf_printf(b, "%u-%u", v.range.lo, v.range.hi);
		break;
	}
}

const char *config_value_format(const struct config *cfg,
	const struct config_key *key, char *buf, size_t size)
{
	struct strbuf b = {0};

	config_value_write(cfg, key, &b);
	snprintf(buf, size, "%s", strbuf_text(&b));
	if (b.n >= size && size > 4)
		strcpy(buf + size - 4, "...");
	strbuf_free(&b);
	return buf;
}
