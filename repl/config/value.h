/* SPDX-License-Identifier: MIT */
/*
 * value.h - one value: parsed, judged, stored, shown
 */
#ifndef REPL_CONFIG_VALUE_H
#define REPL_CONFIG_VALUE_H

#include "config.h"

#include <stddef.h>

struct err;

/* Longest value: a line of a file holds less, the command line may not. */
#define CONFIG_VALUE_MAX 4095

/* What any type of key can hold. Only the member of the type is used. */
struct config_value {
	int64_t num; /* int, size, time, share, switch, word */
	char *str;   /* string, directory; NULL when absent */
	struct config_list list;
	struct config_range range;
};

/* How a value is kept, and so parsed, compared, copied and shown. */
enum config_shape {
	SHAPE_NUMBER, /* of whatever width; switches and words, too */
	SHAPE_TEXT,
	SHAPE_LIST,
	SHAPE_RANGE,	 /* struct config_range */
	SHAPE_VARIABLES, /* variables: config.c keeps those, one by one */
};

enum config_shape config_shape_of(enum config_type type);

/* Parse `text` for `key`; `home` is what ~ stands for, or NULL. 0, or -1 with
 * "expected …" in `e`. The caller ends with config_value_fini either way. */
int config_value_parse(struct config_value *v, const struct config_key *key,
	const char *text, const char *home, struct err *e);

void config_value_fini(struct config_value *v);

/* The part of config_value_parse that is for numbers, switches and words. */
int config_number_parse(struct config_value *v, const struct config_key *key,
	const char *text, struct err *e);

/* Write `n` the way the person would, such as 512M or 10s. Returns `buf`, or
 * a constant. */
const char *config_number_format(
	const struct config_key *key, int64_t n, char *buf, size_t size);

/* The number that `cfg` has for a key of that shape; 0 for the others. */
int64_t config_number_of(
	const struct config *cfg, const struct config_key *key);

/* Read decimal digits at *p and step over them. 0, or -1 when there is none
 * or the number is too large. */
int config_take_digits(const char **p, int64_t *n);

/* The word that stands for `value`. */
const struct config_word *config_word_find(
	const struct config_key *key, int64_t value);

/* Move `v` into `cfg`, freeing what was there. `v` is empty afterwards. */
void config_value_store(struct config *cfg, const struct config_key *key,
	struct config_value *v);

/* Append the items of `v` to the list in `cfg`. 0, or -1 with errno: E2BIG when
 * the list would be longer than its key allows. */
int config_value_append(struct config *cfg, const struct config_key *key,
	const struct config_value *v);

/* Whether `v` is no looser than what `base` has for `key`. */
int config_value_tightens(const struct config *base,
	const struct config_key *key, const struct config_value *v);

/* Write the value that `cfg` has for `key` as a file would have it. Always
 * terminated; what does not fit ends in "...". Returns `buf`. */
const char *config_value_format(const struct config *cfg,
	const struct config_key *key, char *buf, size_t size);

/* Deep copy of all values and sources into `to`, which is overwritten. 0, or
 * -1 with errno; `to` wants config_fini either way. */
int config_copy(struct config *to, const struct config *from);

int config_list_add(struct config_list *l, const char *s, size_t n);
int config_list_has(const struct config_list *l, const char *s);
int config_list_copy(struct config_list *to, const struct config_list *from);
void config_list_fini(struct config_list *l);

#endif
