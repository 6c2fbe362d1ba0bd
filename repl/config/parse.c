/* SPDX-License-Identifier: MIT */
/*
 * parse.c - from the text of a value to the value
 *
 * Runs in:   front end, before the warden is forked
 * Trusts:    nobody; the text may be a stranger's
 * Leaves:    a value in range, its text free of control characters, its paths
 *            absolute, without "." or ".." and without a slash at the end
 */
#include "value.h"

#include "jail/base/err.h"
#include "jail/base/path.h"
#include "jail/enforce.h"
#include "repl/text/utf8.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/*
 * Take one item, or with `whole` the rest of the line, into `out`: bare up to
 * the next blank, or between double quotes, where \" and \\ stand for
 * themselves. 1 when there was one, 0 at the end, -1 on a quote that is open.
 */
static int take_item(const char **p, bool whole, char *out)
{
	const char *s = *p;

	while (*s == ' ' || *s == '\t')
		s++;
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

static int quote_error(struct err *e)
{
	return err_set(e, "expected double quotes around the whole value, "
			  "or none");
}

static int parse_string(struct config_value *v, const struct config_key *key,
	const char *text, struct err *e)
{
	char item[CONFIG_VALUE_MAX + 1];
	char rest[CONFIG_VALUE_MAX + 1];
	int64_t max =
		key->type == CONFIG_VARIABLE ? CONFIG_VALUE_MAX : key->max;
	int got = take_item(&text, true, item);

	if (got < 0 || (got && take_item(&text, true, rest)))
		return quote_error(e);
	if (!got)
		item[0] = '\0';
	if ((int64_t)strlen(item) < key->min)
		return err_set(e, "expected some text");
	if ((int64_t)strlen(item) > max)
		return err_set(
			e, "expected at most %lld bytes", (long long)max);
	/* Where nothing is the default, no text means no value. */
	if (!item[0] && key->type == CONFIG_STRING && !key->def[0])
		return 0;
	v->str = strdup(item);
	return v->str ? 0 : err_errno(e, "remember a value");
}

/* An absolute path out of `item`, with ~ replaced, into `out[PATH_MAX]`. */
static int parse_path(
	const char *item, const char *home, char *out, struct err *e)
{
	char full[2 * CONFIG_VALUE_MAX];
	bool tilde = item[0] == '~' && (!item[1] || item[1] == '/');
	int n;

	if (tilde && (!home || home[0] != '/'))
		return err_set(e, "expected a path without ~: there is no "
				  "home directory here");
	n = snprintf(full, sizeof(full), "%s%s", tilde ? home : "",
		tilde ? item + 1 : item);
	if (full[0] != '/')
		return err_set(e, "expected an absolute path");
	if (n >= PATH_MAX)
		return err_set(e, "expected a shorter path");
	if (path_clean(full, false) < 0)
		return err_set(e, "expected a path without \"..\"");
	strcpy(out, full);
	return 0;
}

static int parse_dir(struct config_value *v, const char *text, const char *home,
	struct err *e)
{
	char item[CONFIG_VALUE_MAX + 1], rest[CONFIG_VALUE_MAX + 1];
	char path[PATH_MAX];
	int got = take_item(&text, true, item);

	if (got < 0 || (got && take_item(&text, true, rest)))
		return quote_error(e);
	if (!got || !item[0])
		return 0;
	if (parse_path(item, home, path, e) < 0)
		return -1;
	v->str = strdup(path);
	return v->str ? 0 : err_errno(e, "remember a value");
}

static int is_name(const char *s)
{
	return *s && !s[strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_-")];
}

/* Directories that show the host itself; no jail can want them. */
static bool is_host_surface(const char *path)
{
	return !strcmp(path, "/") || path_is_beneath(path, "/proc") ||
	       path_is_beneath(path, "/sys") || path_is_beneath(path, "/dev");
}

/* Judge one item of a list, and write it as it is kept to `out[PATH_MAX]`. */
static int parse_item(const struct config_key *key, const char *item,
	const char *home, char *out, struct err *e)
{
	bool names = key->type == CONFIG_NAMES;
	char words[256];

	if (key->type == CONFIG_DIRS || key->type == CONFIG_FILES) {
		if (parse_path(item, home, out, e) < 0)
			return -1;
		if (key->offset == offsetof(struct config, expose) &&
			is_host_surface(out))
			return err_set(
				e, "expected something other than %s", out);
		return 0;
	}
	if (names && !is_name(item))
		return err_set(e, "expected all, or names of commands without "
				  "their colon");
	if (!names && !enforce_word_is_known(item)) {
		enforce_words(words, sizeof(words));
		return err_set(e, "expected words among %s", words);
	}
	snprintf(out, PATH_MAX, "%s", item);
	return 0;
}

static int parse_list(struct config_value *v, const struct config_key *key,
	const char *text, const char *home, struct err *e)
{
	char item[CONFIG_VALUE_MAX + 1], kept[PATH_MAX];
	int got;

	while ((got = take_item(&text, false, item)) > 0) {
		if (parse_item(key, item, home, kept, e) < 0)
			return -1;
		if (config_list_has(&v->list, kept))
			return err_set(e, "expected each only once: %s", kept);
		if (config_list_add(&v->list, kept, strlen(kept)) < 0)
			return err_errno(e, "remember a value");
	}
	if (got < 0)
		return quote_error(e);
	if (v->list.n < (size_t)key->min)
		return err_set(e, "expected at least one path");
	if (v->list.n > (size_t)key->max)
		return err_set(
			e, "expected at most %lld items", (long long)key->max);
	if (v->list.n > 1 && config_list_has(&v->list, "all"))
		return err_set(e, "expected all, or names, but not both");
	return 0;
}

static int parse_range(struct config_value *v, const struct config_key *key,
	const char *text, struct err *e)
{
	int64_t lo = 0, hi = 0;
	bool shaped = config_take_digits(&text, &lo) == 0 && *text++ == '-' &&
		      config_take_digits(&text, &hi) == 0 && !*text;

	if (!shaped || lo > hi)
		return err_set(e, "expected a range of ids such as "
				  "2130706432-2130771967");
	if (lo < key->min || hi > key->max)
		return err_set(e, "expected ids from %lld to %lld",
			(long long)key->min, (long long)key->max);
	/* 65534 is nobody, whom others share; 65535 is no id in 16 bits. */
	if (lo <= 65535 && hi >= 65534)
		return err_set(e, "expected a range without nobody (65534) "
				  "and 65535");
	v->range = (struct config_range){(uint32_t)lo, (uint32_t)hi};
	return 0;
}

int config_value_parse(struct config_value *v, const struct config_key *key,
	const char *text, const char *home, struct err *e)
{
	*v = (struct config_value){0};
	if (strlen(text) > CONFIG_VALUE_MAX)
		return err_set(
			e, "expected at most %d bytes", CONFIG_VALUE_MAX);
	if (!utf8_is_text(text, strlen(text), "\t"))
		return err_set(e, "expected UTF-8 text without control "
				  "characters");
	switch (config_shape_of(key->type)) {
	case SHAPE_NUMBER:
		return config_number_parse(v, key, text, e);
	case SHAPE_TEXT:
		return key->type == CONFIG_DIR ? parse_dir(v, text, home, e)
					       : parse_string(v, key, text, e);
	case SHAPE_LIST:
		return parse_list(v, key, text, home, e);
	case SHAPE_RANGE:
		return parse_range(v, key, text, e);
	case SHAPE_VARIABLES: /* each on its own */
		return parse_string(v, key, text, e);
	}
	return err_set(e, "expected a known kind of key");
}
