/* SPDX-License-Identifier: MIT */
/*
 * print.c - the merged configuration as a file, with the sources
 *
 * Runs in:   front end
 * Trusts:    values that config_value_parse made
 * Leaves:    text that the parser reads back to the same values
 */
#include "config.h"

#include "repl/text/strbuf.h"
#include "value.h"

#include <string.h>

/* Print one line. `value` is emptied. */
static void print_line(FILE *f, const char *prefix, const char *name, int len,
	struct strbuf *value, const char *source)
{
	int n = fprintf(f, "%s%.*s =%s%s", prefix, len, name,
		value->n ? " " : "", value->n ? value->s : "");

	fprintf(f, "%*s ; %s\n", n < 40 ? 40 - n : 0, "", source);
	strbuf_free(value);
}

static void print_variables(FILE *f, const struct config *cfg)
{
	for (size_t i = 0; i < cfg->env.n; i++) {
		const char *var = cfg->env.items[i];
		size_t len = strcspn(var, "=");
		struct strbuf b = {0};

		config_value_quote(&b, var + len + 1, QUOTES_COMMENTED);
		print_line(f, "env.", var, (int)len, &b,
			cfg->env_sources.items[i]);
	}
}

/* A list prints an item a line: a line of a file may not be long. */
static void print_key(
	FILE *f, const struct config *cfg, const struct config_key *k)
{
	const void *at = (const char *)cfg + k->offset;
	const struct strlist *l = config_value_is_list(k) ? at : NULL;
	const char *source = cfg->sources[config_keys_index(k)];
	struct strbuf b = {0};
	size_t i = 0;

	source = source ? source : CONFIG_BUILT_IN;
	do {
		if (l && l->n)
			config_value_quote(&b, l->items[i], QUOTES_ITEM);
		else if (k->type == CONFIG_STRING && *(char *const *)at)
			config_value_quote(
				&b, *(char *const *)at, QUOTES_COMMENTED);
		else
			config_value_write(cfg, k, &b);
		print_line(f, "", k->name, (int)strlen(k->name), &b, source);
	} while (l && ++i < l->n);
}

void config_print_merged(FILE *f, const struct config *cfg)
{
	const char *section = "";

	for (size_t i = 0; i < CONFIG_NKEYS; i++) {
		const struct config_key *k = &config_keys[i];

		if (strcmp(section, k->section) != 0) {
			fprintf(f, "%s[%s]\n", i ? "\n" : "", k->section);
			section = k->section;
		}
		if (k->type == CONFIG_VARIABLE)
			print_variables(f, cfg);
		else
			print_key(f, cfg, k);
	}
}
