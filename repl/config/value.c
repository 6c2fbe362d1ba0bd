/* SPDX-License-Identifier: MIT */
/*
 * value.c - values: judged against a lock, stored, copied, shown
 *
 * Runs in:   front end, before the warden is forked
 * Trusts:    values that config_value_parse made
 *
 * Whatever the type, a value is reached through the key's offset, so that a
 * new key is a line in the table and nothing here.
 */
#include "value.h"

#include "jail/base/array.h"
#include "jail/base/err.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int config_list_add(struct config_list *l, const char *s, size_t n)
{
	char *copy = strndup(s, n);

	if (!copy)
		return -1;
	if (array_grow(&l->items, l->n, sizeof(*l->items)) < 0) {
		free(copy);
		return -1;
	}
	l->items[l->n++] = copy;
	return 0;
}

int config_list_has(const struct config_list *l, const char *s)
{
	for (size_t i = 0; i < l->n; i++)
		if (!strcmp(l->items[i], s))
			return 1;
	return 0;
}

int config_list_copy(struct config_list *to, const struct config_list *from)
{
	*to = (struct config_list){0};
	for (size_t i = 0; i < from->n; i++)
		if (config_list_add(
			    to, from->items[i], strlen(from->items[i])) < 0)
			return -1;
	return 0;
}

void config_list_fini(struct config_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->items[i]);
	free(l->items);
	*l = (struct config_list){0};
}

void config_value_fini(struct config_value *v)
{
	free(v->str);
	config_list_fini(&v->list);
	*v = (struct config_value){0};
}

static const struct {
	enum config_shape shape;
	size_t width; /* of a number */
} kinds[] = {
	[CONFIG_INT] = {SHAPE_NUMBER, sizeof(int)},
	[CONFIG_SIZE] = {SHAPE_NUMBER, sizeof(int64_t)},
	[CONFIG_TIME] = {SHAPE_NUMBER, sizeof(int64_t)},
	[CONFIG_SHARE] = {SHAPE_NUMBER, sizeof(int)},
	[CONFIG_BOOL] = {SHAPE_NUMBER, sizeof(bool)},
	[CONFIG_WORD] = {SHAPE_NUMBER, sizeof(int)},
	[CONFIG_STRING] = {SHAPE_TEXT, 0},
	[CONFIG_DIR] = {SHAPE_TEXT, 0},
	[CONFIG_DIRS] = {SHAPE_LIST, 0},
	[CONFIG_FILES] = {SHAPE_LIST, 0},
	[CONFIG_NAMES] = {SHAPE_LIST, 0},
	[CONFIG_DEMANDS] = {SHAPE_LIST, 0},
	[CONFIG_RANGE] = {SHAPE_RANGE, 0},
	[CONFIG_VARIABLE] = {SHAPE_VARIABLES, 0},
};

enum config_shape config_shape_of(enum config_type type)
{
	return kinds[type].shape;
}

static void *field(struct config *cfg, const struct config_key *key)
{
	return (char *)cfg + key->offset;
}

static const void *peek(const struct config *cfg, const struct config_key *key)
{
	return (const char *)cfg + key->offset;
}

int64_t config_number_of(const struct config *cfg, const struct config_key *key)
{
	const void *at = peek(cfg, key);

	switch (kinds[key->type].width) {
	case sizeof(int64_t):
		return *(const int64_t *)at;
	case sizeof(int):
		return *(const int *)at;
	case sizeof(bool):
		return *(const bool *)at;
	}
	return 0;
}

static void store_number(
	struct config *cfg, const struct config_key *key, int64_t number)
{
	void *at = field(cfg, key);

	switch (kinds[key->type].width) {
	case sizeof(int64_t):
		*(int64_t *)at = number;
		break;
	case sizeof(int):
		*(int *)at = (int)number;
		break;
	case sizeof(bool):
		*(bool *)at = number;
		break;
	}
}

static void replace_string(char **at, char **with)
{
	free(*at);
	*at = *with;
	*with = NULL;
}

static void replace_list(struct config_list *at, struct config_list *with)
{
	config_list_fini(at);
	*at = *with;
	*with = (struct config_list){0};
}

void config_value_store(struct config *cfg, const struct config_key *key,
	struct config_value *v)
{
	void *at = field(cfg, key);

	switch (config_shape_of(key->type)) {
	case SHAPE_NUMBER:
		store_number(cfg, key, v->num);
		break;
	case SHAPE_TEXT:
		replace_string(at, &v->str);
		break;
	case SHAPE_LIST:
		replace_list(at, &v->list);
		break;
	case SHAPE_RANGE:
		*(struct config_range *)at = v->range;
		break;
	case SHAPE_VARIABLES:
		break;
	}
}

int config_value_append(struct config *cfg, const struct config_key *key,
	const struct config_value *v)
{
	struct config_list *l = field(cfg, key);

	for (size_t i = 0; i < v->list.n; i++) {
		const char *s = v->list.items[i];

		if (config_list_has(l, s))
			continue;
		if (l->n >= (size_t)key->max) {
			errno = E2BIG;
			return -1;
		}
		if (config_list_add(l, s, strlen(s)) < 0)
			return -1;
	}
	return 0;
}

static bool list_within(
	const struct config_list *inner, const struct config_list *outer)
{
	for (size_t i = 0; i < inner->n; i++)
		if (!config_list_has(outer, inner->items[i]))
			return false;
	return true;
}

static bool string_same(const char *a, const char *b)
{
	return (!a && !b) || (a && b && !strcmp(a, b));
}

static bool value_same(const struct config *base, const struct config_key *key,
	const struct config_value *v)
{
	const void *at = peek(base, key);

	switch (config_shape_of(key->type)) {
	case SHAPE_NUMBER:
		return config_number_of(base, key) == v->num;
	case SHAPE_TEXT:
		return string_same(*(char *const *)at, v->str);
	case SHAPE_LIST:
		return list_within(&v->list, at) && list_within(at, &v->list);
	case SHAPE_RANGE:
		return !memcmp(at, &v->range, sizeof(v->range));
	case SHAPE_VARIABLES:
		break;
	}
	return false;
}

static int rank_of(const struct config_key *key, int64_t value)
{
	return config_word_find(key, value)->rank;
}

int config_value_tightens(const struct config *base,
	const struct config_key *key, const struct config_value *v)
{
	const struct config_list *l = peek(base, key);

	switch (key->tighten) {
	case TIGHTEN_ANY:
	case TIGHTEN_UNION:
		return 1;
	case TIGHTEN_LOWER:
		return v->num <= config_number_of(base, key);
	case TIGHTEN_HIGHER:
		return v->num >= config_number_of(base, key);
	case TIGHTEN_RANK:
		return rank_of(key, v->num) <=
		       rank_of(key, config_number_of(base, key));
	case TIGHTEN_SUBSET:
		return list_within(&v->list, l) ||
		       (key->type == CONFIG_NAMES && config_list_has(l, "all"));
	case TIGHTEN_NEVER:
		return value_same(base, key, v);
	}
	return 0;
}

static int copy_field(struct config *to, const struct config *from,
	const struct config_key *key)
{
	const void *at = peek(from, key);
	char **str = field(to, key);

	switch (config_shape_of(key->type)) {
	case SHAPE_NUMBER:
	case SHAPE_RANGE: /* plain values came with the structure */
		return 0;
	case SHAPE_TEXT:
		*str = *(char *const *)at ? strdup(*(char *const *)at) : NULL;
		return *str || !*(char *const *)at ? 0 : -1;
	case SHAPE_LIST:
	case SHAPE_VARIABLES:
		return config_list_copy(field(to, key), at);
	}
	return -1;
}

/* Forget what the plain copy shares with its original. */
static void unshare(struct config *cfg)
{
	for (size_t i = 0; i < CONFIG_NKEYS; i++) {
		const struct config_key *k = &config_keys[i];

		cfg->sources[i] = NULL;
		if (config_shape_of(k->type) == SHAPE_TEXT)
			*(char **)field(cfg, k) = NULL;
		if (config_shape_of(k->type) == SHAPE_LIST)
			*(struct config_list *)field(cfg, k) =
				(struct config_list){0};
	}
	cfg->env = (struct config_list){0};
	cfg->env_sources = (struct config_list){0};
}

int config_copy(struct config *to, const struct config *from)
{
	*to = *from;
	unshare(to);
	for (size_t i = 0; i < CONFIG_NKEYS; i++) {
		if (copy_field(to, from, &config_keys[i]) < 0)
			return -1;
		if (!from->sources[i])
			continue;
		to->sources[i] = strdup(from->sources[i]);
		if (!to->sources[i])
			return -1;
	}
	return config_list_copy(&to->env_sources, &from->env_sources);
}
