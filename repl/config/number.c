/* SPDX-License-Identifier: MIT */
/*
 * number.c - numbers, times, sizes, switches and words
 *
 * Runs in:   front end, before the warden is forked
 * Trusts:    nobody; the text may be a stranger's
 * Leaves:    a number in the range of its key; no sum or product overflows
 */
#include "value.h"

#include "jail/base/err.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* A suffix and what it multiplies by. */
struct unit {
	const char *name;
	int64_t factor;
};

static const struct unit time_units[] = {
	{"ms", 1},
	{"s", 1000},
	{"m", 60 * 1000},
	{"h", 3600 * 1000},
	{NULL, 0},
};

static const struct unit size_units[] = {
	{"", 1},
	{"k", 1LL << 10},
	{"m", 1LL << 20},
	{"g", 1LL << 30},
	{NULL, 0},
};

int config_take_digits(const char **p, int64_t *n)
{
	const char *s = *p;
	int64_t r = 0;

	if (!isdigit((unsigned char)*s))
		return -1;
	for (; isdigit((unsigned char)*s); s++)
		if (__builtin_mul_overflow(r, 10, &r) ||
			__builtin_add_overflow(r, *s - '0', &r))
			return -1;
	*p = s;
	*n = r;
	return 0;
}

static int parse_with_unit(
	const char *text, const struct unit *units, int64_t *n)
{
	if (config_take_digits(&text, n) < 0)
		return -1;
	for (; units->name; units++)
		if (!strcasecmp(text, units->name))
			return __builtin_mul_overflow(*n, units->factor, n) ? -1
									    : 0;
	return -1;
}

static int parse_int(const struct config_key *key, const char *text, int64_t *n)
{
	(void)key;
	return config_take_digits(&text, n) < 0 || *text ? -1 : 0;
}

static int parse_size(
	const struct config_key *key, const char *text, int64_t *n)
{
	(void)key;
	return parse_with_unit(text, size_units, n);
}

static int parse_time(
	const struct config_key *key, const char *text, int64_t *n)
{
	(void)key;
	return parse_with_unit(text, time_units, n);
}

/* Cores, with at most three decimals. */
static int parse_share(
	const struct config_key *key, const char *text, int64_t *n)
{
	int scale = 1000;

	(void)key;
	if (config_take_digits(&text, n) < 0 ||
		__builtin_mul_overflow(*n, 1000, n))
		return -1;
	if (*text == '.') {
		for (text++; isdigit((unsigned char)*text) && scale > 1; text++)
			*n += (*text - '0') * (scale /= 10);
		if (scale == 1000)
			return -1;
	}
	return *text ? -1 : 0;
}

static int parse_bool(
	const struct config_key *key, const char *text, int64_t *n)
{
	static const struct config_word words[] = {
		{"yes", 1, 0},
		{"no", 0, 0},
		{"true", 1, 0},
		{"false", 0, 0},
		{"on", 1, 0},
		{"off", 0, 0},
	};

	(void)key;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcasecmp(text, words[i].name)) {
			*n = words[i].value;
			return 0;
		}
	return -1;
}

static int parse_word(
	const struct config_key *key, const char *text, int64_t *n)
{
	for (const struct config_word *w = key->words; w->name; w++)
		if (!strcmp(text, w->name)) {
			*n = w->value;
			return 0;
		}
	return -1;
}

const struct config_word *config_word_find(
	const struct config_key *key, int64_t value)
{
	const struct config_word *w = key->words;

	while (w[1].name && w->value != value)
		w++;
	return w;
}

/* "one, two or three" */
static void join_words(const struct config_key *key, char *buf, size_t size)
{
	size_t n = 0;

	buf[0] = '\0';
	for (const struct config_word *w = key->words; w->name; w++) {
		const char *sep = w[1].name ? ", " : " or ";

		n += (size_t)snprintf(buf + n, size - n, "%s%s",
			w == key->words ? "" : sep, w->name);
		if (n >= size)
			return;
	}
}

static int expected_word(const struct config_key *key, struct err *e)
{
	char words[128];

	join_words(key, words, sizeof(words));
	return err_set(e, "expected %s", words);
}

/* How each type is read, and the sentence for text that is none. */
static const struct {
	int (*parse)(
		const struct config_key *key, const char *text, int64_t *n);
	const char *expected; /* NULL: the words of the key */
} scanners[] = {
	[CONFIG_INT] = {parse_int, "a whole number"},
	[CONFIG_SIZE] = {parse_size, "a size such as 512K, 64M or 2G"},
	[CONFIG_TIME] = {parse_time, "a time such as 500ms, 10s, 5m or 1h"},
	[CONFIG_SHARE] = {parse_share, "a number of cores such as 2 or 0.5"},
	[CONFIG_BOOL] = {parse_bool, "yes or no"},
	[CONFIG_WORD] = {parse_word, NULL},
};

static int number_scan(const struct config_key *key, const char *text,
	int64_t *n, struct err *e)
{
	const char *expected = scanners[key->type].expected;

	if (scanners[key->type].parse(key, text, n) == 0)
		return 0;
	return expected ? err_set(e, "expected %s", expected)
			: expected_word(key, e);
}

static int number_has_range(enum config_type type)
{
	return type == CONFIG_INT || type == CONFIG_SIZE ||
	       type == CONFIG_TIME || type == CONFIG_SHARE;
}

const char *config_number_format(
	const struct config_key *key, int64_t n, char *buf, size_t size)
{
	const struct unit *best = NULL;
	const struct unit *u = key->type == CONFIG_TIME	  ? time_units
			       : key->type == CONFIG_SIZE ? size_units
							  : NULL;

	if (key->type == CONFIG_BOOL)
		return n ? "yes" : "no";
	if (key->type == CONFIG_WORD)
		return config_word_find(key, n)->name;
	if (key->type == CONFIG_SHARE) {
		snprintf(buf, size, "%g", (double)n / 1000);
		return buf;
	}
	for (; u && u->name; u++)
		if (n % u->factor == 0 && (n || !best))
			best = u;
	snprintf(buf, size, "%lld%s", (long long)(best ? n / best->factor : n),
		best ? best->name : "");
	for (char *p = buf; *p && key->type == CONFIG_SIZE; p++)
		*p = (char)toupper((unsigned char)*p);
	return buf;
}

int config_number_parse(struct config_value *v, const struct config_key *key,
	const char *text, struct err *e)
{
	char lo[32], hi[32];

	if (number_scan(key, text, &v->num, e) < 0)
		return -1;
	if (number_has_range(key->type) &&
		(v->num < key->min || v->num > key->max))
		return err_set(e, "expected %s to %s",
			config_number_format(key, key->min, lo, sizeof(lo)),
			config_number_format(key, key->max, hi, sizeof(hi)));
	return 0;
}
