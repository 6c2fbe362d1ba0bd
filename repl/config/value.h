/* SPDX-License-Identifier: MIT */
/*
 * value.h - one value: parsed, stored, compared, shown
 */
#ifndef REPL_CONFIG_VALUE_H
#define REPL_CONFIG_VALUE_H

#include "config.h"

#include <stddef.h>

struct err;
struct strbuf;

/* Longest value. A line of a file is shorter; --set may be longer. */
#define CONFIG_VALUE_MAX 4095

/* A value, laid out as the member of struct config that its key names. */
union config_value {
	bool on;
	int small;
	int64_t large;
	char *text; /* NULL when absent */
	struct strlist list;
	struct config_range range;
};

/* Parse `text` for `key`; `home` is what ~ stands for, or NULL. 0, or -1 with
 * "expected …" in `e`. The text of a variable is a list of one item. The caller
 * ends with config_value_fini() either way. */
int config_value_parse(union config_value *v, const struct config_key *key,
	const char *text, const char *home, struct err *e);

void config_value_fini(union config_value *v, const struct config_key *key);

/* True if a key that comes again adds to its value. */
bool config_value_is_list(const struct config_key *key);

/* Move `v` into `cfg` and free the value there. `v` is empty afterwards. */
void config_value_store(struct config *cfg, const struct config_key *key,
	union config_value *v);

/* Append the items of `v` to the list in `cfg`. 0, or -1 with errno: E2BIG when
 * the list would be longer than its key allows. */
int config_value_append(struct config *cfg, const struct config_key *key,
	const union config_value *v);

/* Copy the value of `key`; that of `to` is overwritten, not freed. 0, or -1
 * with errno. */
int config_value_copy(struct config *to, const struct config *from,
	const struct config_key *key);

/* True if `v` is no looser than the value in `base`. */
bool config_value_tightens(const struct config *base,
	const struct config_key *key, const union config_value *v);

/* The number that `cfg` has for `key`: also of a switch or a word, 0 for a key
 * of another type. */
int64_t config_value_number(
	const struct config *cfg, const struct config_key *key);

/* Write `n` as a file would have it, such as 512M or 10s. Returns `buf`, or a
 * constant. */
const char *config_value_format_number(
	const struct config_key *key, int64_t n, char *buf, size_t size);

/* Write the value that `cfg` has for `key` as a file would have it. A value
 * that does not fit ends in "...". Returns `buf`. */
const char *config_value_format(const struct config *cfg,
	const struct config_key *key, char *buf, size_t size);

/* The same, appended to `b`. */
void config_value_write(const struct config *cfg, const struct config_key *key,
	struct strbuf *b);

/* When a text needs quotes: to be a value, to be one item of a list, or to have
 * a comment behind it. */
enum config_value_quotes { QUOTES_VALUE, QUOTES_ITEM, QUOTES_COMMENTED };

/* Append `text` as a file would have it. */
void config_value_quote(
	struct strbuf *b, const char *text, enum config_value_quotes when);

#endif
