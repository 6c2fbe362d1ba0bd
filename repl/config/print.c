/* SPDX-License-Identifier: MIT */
/*
 * print.c - values as a file would have them, and the merged result
 *
 * Runs in:   front end
 * Trusts:    values that config_value_parse made
 * Leaves:    text that the parser reads back to the same values
 */
#include "value.h"

#include <stdbool.h>
#include <string.h>

/* A buffer that is filled up to its end, and says so with dots. */
struct sink {
	char *buf;
	size_t size;
	size_t n;
};

static void sink_char(struct sink *s, char c)
{
	if (s->n + 1 < s->size) {
		s->buf[s->n++] = c;
		s->buf[s->n] = '\0';
	} else if (s->size > 4) {
		memcpy(s->buf + s->size - 4, "...", 4);
	}
}

static void sink_text(struct sink *s, const char *text)
{
	for (; *text; text++)
		sink_char(s, *text);
}

/* How a text is written: bare where that will do, as one item of a list, or
 * with a comment behind it. */
enum form { FORM_TEXT, FORM_ITEM, FORM_COMMENTED };

/*
 * Quotes are needed where the bare text would be cut: at the start or end by a
 * trim, at " ;" by a comment, at a blank between items, at a quote.
 */
static bool needs_quotes(const char *s, enum form form)
{
	size_t n = strlen(s);

	if (!n)
		return form == FORM_ITEM;
	if (form == FORM_COMMENTED || strpbrk(s, ";\""))
		return true;
	if (strchr(" \t", s[0]) || strchr(" \t", s[n - 1]))
		return true;
	return form == FORM_ITEM && strpbrk(s, " \t");
}

static void sink_string(struct sink *s, const char *text, enum form form)
{
	bool quotes = needs_quotes(text, form);

	if (quotes)
		sink_char(s, '"');
	for (; *text; text++) {
		if (quotes && (*text == '"' || *text == '\\'))
			sink_char(s, '\\');
		sink_char(s, *text);
	}
	if (quotes)
		sink_char(s, '"');
}

static void sink_list(struct sink *s, const struct config_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		if (i)
			sink_char(s, ' ');
		sink_string(s, l->items[i], FORM_ITEM);
	}
}

static void sink_range(struct sink *s, const struct config_range *r)
{
	char text[32];

	snprintf(text, sizeof(text), "%u-%u", r->lo, r->hi);
	sink_text(s, text);
}

const char *config_value_format(const struct config *cfg,
	const struct config_key *key, char *buf, size_t size)
{
	struct sink s = {buf, size, 0};
	const void *at = (const char *)cfg + key->offset;
	const char *str;
	char number[32];

	buf[0] = '\0';
	switch (config_shape_of(key->type)) {
	case SHAPE_NUMBER:
		sink_text(&s,
			config_number_format(key, config_number_of(cfg, key),
				number, sizeof(number)));
		break;
	case SHAPE_TEXT:
		str = *(char *const *)at;
		sink_string(&s, str ? str : "",
			key->type == CONFIG_DIR && str ? FORM_ITEM : FORM_TEXT);
		break;
	case SHAPE_LIST:
	case SHAPE_VARIABLES:
		sink_list(&s, at);
		break;
	case SHAPE_RANGE:
		sink_range(&s, at);
		break;
	}
	return buf;
}

static void print_line(
	FILE *f, const char *name, const char *value, const char *source)
{
	int n = fprintf(f, "%s =%s%s", name, value[0] ? " " : "", value);

	fprintf(f, "%*s ; %s\n", n < 40 ? 40 - n : 0, "", source);
}

static void print_variables(FILE *f, const struct config *cfg)
{
	for (size_t i = 0; i < cfg->env.n; i++) {
		const char *var = cfg->env.items[i];
		size_t len = strcspn(var, "=");
		char name[128], value[2 * CONFIG_VALUE_MAX];
		struct sink s = {value, sizeof(value), 0};

		value[0] = '\0';
		snprintf(name, sizeof(name), "env.%.*s", (int)len, var);
		sink_string(&s, var + len + 1, FORM_COMMENTED);
		print_line(f, name, value, cfg->env_sources.items[i]);
	}
}

/* The items of a list, one line each: a line of a file has an end. */
static void print_list(
	FILE *f, const struct config *cfg, const struct config_key *k)
{
	const struct config_list *l =
		(const void *)((const char *)cfg + k->offset);
	const char *source = cfg->sources[config_key_index(k)];

	for (size_t i = 0; i < l->n; i++) {
		char value[2 * CONFIG_VALUE_MAX];
		struct sink s = {value, sizeof(value), 0};

		value[0] = '\0';
		sink_string(&s, l->items[i], FORM_ITEM);
		print_line(
			f, k->name, value, source ? source : CONFIG_BUILT_IN);
	}
	if (!l->n)
		print_line(f, k->name, "", source ? source : CONFIG_BUILT_IN);
}

static void print_string(const struct config *cfg, const struct config_key *k,
	char *value, size_t size)
{
	const char *text = *(char *const *)((const char *)cfg + k->offset);
	struct sink s = {value, size, 0};

	value[0] = '\0';
	sink_string(&s, text ? text : "", FORM_COMMENTED);
}

static void print_key(
	FILE *f, const struct config *cfg, const struct config_key *k)
{
	const char *source = cfg->sources[config_key_index(k)];
	char value[2 * CONFIG_VALUE_MAX];

	if (k->type == CONFIG_VARIABLE) {
		print_variables(f, cfg);
		return;
	}
	if (config_shape_of(k->type) == SHAPE_LIST) {
		print_list(f, cfg, k);
		return;
	}
	if (k->type == CONFIG_STRING)
		print_string(cfg, k, value, sizeof(value));
	else
		config_value_format(cfg, k, value, sizeof(value));
	print_line(f, k->name, value, source ? source : CONFIG_BUILT_IN);
}

void config_check_print(FILE *f, const struct config *cfg)
{
	const char *section = "";

	for (size_t i = 0; i < CONFIG_NKEYS; i++) {
		const struct config_key *k = &config_keys[i];

		if (strcmp(section, k->section) != 0) {
			fprintf(f, "%s[%s]\n", i ? "\n" : "", k->section);
			section = k->section;
		}
		print_key(f, cfg, k);
	}
}
