/* SPDX-License-Identifier: MIT */
/*
 * merge.c - one KEY = VALUE, laid over what came before it
 *
 * Runs in:   front end, before the warden is forked
 * Trusts:    its caller, to have set the lock before the first stranger speaks
 * Leaves:    the configuration changed, or an error and nothing changed
 */
#include "merge.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Most variables that python.env may hold. */
#define VARIABLES_MAX 64

size_t config_env_find(const struct config *cfg, const char *name, size_t len)
{
	size_t i = 0;

	while (i < cfg->env.n && (strncmp(cfg->env.items[i], name, len) != 0 ||
					 cfg->env.items[i][len] != '='))
		i++;
	return i;
}

/* Replace or add one string of a list. 0, or -1 with errno. */
static int list_put(struct config_list *l, size_t i, const char *s)
{
	char *copy;

	if (i == l->n)
		return config_list_add(l, s, strlen(s));
	copy = strdup(s);
	if (!copy)
		return -1;
	free(l->items[i]);
	l->items[i] = copy;
	return 0;
}

static bool is_variable_name(const char *s)
{
	static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "abcdefghijklmnopqrstuvwxyz_";

	return *s && strchr(first, *s) && strlen(s) < 100 &&
	       !s[strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
			    "abcdefghijklmnopqrstuvwxyz_0123456789")];
}

int config_merge_oom(struct config_merge *m, const char *place)
{
	config_errors_add(m->errors, place, "out of memory");
	return -1;
}

/* Whether a variable may be set here and now; says why not. */
static bool variable_is_welcome(struct config_merge *m,
	const struct config_line *line, const char *name, size_t at)
{
	if (!is_variable_name(name))
		config_errors_add(m->errors, line->place,
			"python.env.NAME: expected a name of letters, digits "
			"and _, not \"%.*s\"",
			CONFIG_SHOWN_MAX, name);
	else if (!m->again && config_list_has(&m->seen_env, name))
		config_errors_add(m->errors, line->place,
			"python.env.%s: expected only once in a file", name);
	else if (m->base)
		config_errors_add(m->errors, line->place,
			"python.env.%s: the configuration is locked (%s); the "
			"environment of Python may not be changed",
			name, config_source(m->base, "policy.locked"));
	else if (at >= VARIABLES_MAX)
		config_errors_add(m->errors, line->place,
			"python.env.%s: expected at most %d variables", name,
			VARIABLES_MAX);
	else
		return true;
	return false;
}

/* python.env.NAME: a key of its own for each name. */
static int apply_variable(struct config_merge *m,
	const struct config_line *line, const struct config_value *v)
{
	const char *name = line->name + strlen("env.");
	size_t at = config_env_find(m->cfg, name, strlen(name));
	auto_free char *text = NULL;

	if (!variable_is_welcome(m, line, name, at))
		return -1;
	if (asprintf(&text, "%s=%s", name, v->str) < 0) {
		text = NULL;
		return config_merge_oom(m, line->place);
	}
	if (config_list_add(&m->seen_env, name, strlen(name)) < 0 ||
		list_put(&m->cfg->env, at, text) < 0 ||
		list_put(&m->cfg->env_sources, at, line->place) < 0)
		return config_merge_oom(m, line->place);
	return 0;
}

static void unknown_key(struct config_merge *m, const struct config_line *line)
{
	const struct config_key *near =
		config_key_nearest(line->section, line->name);

	if (near)
		config_errors_add(m->errors, line->place,
			"no key %.*s.%.*s; did you mean %s.%s?",
			CONFIG_SHOWN_MAX, line->section, CONFIG_SHOWN_MAX,
			line->name, near->section, near->name);
	else
		config_errors_add(m->errors, line->place, "no key %.*s.%.*s",
			CONFIG_SHOWN_MAX, line->section, CONFIG_SHOWN_MAX,
			line->name);
}

static const char *direction(enum config_tighten tighten)
{
	switch (tighten) {
	case TIGHTEN_ANY:
	case TIGHTEN_UNION:
		return "it may be changed";
	case TIGHTEN_LOWER:
		return "it may only be lowered";
	case TIGHTEN_HIGHER:
		return "it may only be switched on";
	case TIGHTEN_RANK:
		return "it may only be stricter";
	case TIGHTEN_SUBSET:
		return "it may only name fewer";
	case TIGHTEN_NEVER:
		return "it may not be changed";
	}
	return "";
}

static void refuse_loosening(struct config_merge *m,
	const struct config_key *key, const struct config_line *line)
{
	const char *source = m->base->sources[config_key_index(key)];
	char locked[256];

	config_value_format(m->base, key, locked, sizeof(locked));
	config_errors_add(m->errors, line->place,
		"%s.%s: \"%.*s\" is looser than the locked \"%s\" (%s); %s",
		key->section, key->name, CONFIG_SHOWN_MAX, line->value, locked,
		source ? source : CONFIG_BUILT_IN, direction(key->tighten));
}

static int list_failed(
	struct config_merge *m, const struct config_key *key, const char *place)
{
	if (errno != E2BIG)
		return config_merge_oom(m, place);
	config_errors_add(m->errors, place,
		"%s.%s: expected at most %lld items", key->section, key->name,
		(long long)key->max);
	return -1;
}

/* Put the value where it belongs, with its source. */
static int keep(struct config_merge *m, const struct config_key *key,
	const struct config_line *line, struct config_value *v)
{
	size_t i = config_key_index(key);
	bool add = config_shape_of(key->type) == SHAPE_LIST &&
		   (m->seen[i] || (m->base && key->tighten == TIGHTEN_UNION));

	if (!add)
		config_value_store(m->cfg, key, v);
	else if (config_value_append(m->cfg, key, v) < 0)
		return list_failed(m, key, line->place);
	free(m->cfg->sources[i]);
	m->cfg->sources[i] = strdup(line->place);
	if (!m->cfg->sources[i])
		return config_merge_oom(m, line->place);
	m->seen[i] = line->line;
	return 0;
}

static int apply_value(struct config_merge *m, const struct config_key *key,
	const struct config_line *line, struct config_value *v)
{
	int seen = m->seen[config_key_index(key)];

	if (key->type == CONFIG_VARIABLE)
		return apply_variable(m, line, v);
	if (seen && !m->again && config_shape_of(key->type) != SHAPE_LIST) {
		config_errors_add(m->errors, line->place,
			"%s.%s: expected only once in a file; line %d has it",
			key->section, key->name, seen);
		return -1;
	}
	if (m->base && !config_value_tightens(m->base, key, v)) {
		refuse_loosening(m, key, line);
		return -1;
	}
	return keep(m, key, line, v);
}

/* Text that goes on behind a ; was meant to, more often than not. */
static bool is_cut(const struct config_key *key, const struct config_line *line)
{
	return line->commented && line->value[0] && line->value[0] != '"' &&
	       (key->type == CONFIG_STRING || key->type == CONFIG_VARIABLE);
}

/* One KEY = VALUE, from a file or the command line. */
void config_merge_apply(void *ctx, const struct config_line *line)
{
	struct config_merge *m = ctx;
	const struct config_key *key =
		config_key_find(line->section, line->name);
	struct config_value v;
	struct err e;

	if (!key) {
		unknown_key(m, line);
		return;
	}
	if (is_cut(key, line)) {
		config_errors_add(m->errors, line->place,
			"%s.%s: expected the text in double quotes, because a "
			"; after a blank begins a comment",
			key->section, line->name);
		return;
	}
	if (config_value_parse(&v, key, line->value, m->home, &e) < 0)
		config_errors_add(m->errors, line->place,
			"%s.%s: %s, not \"%.*s\"", key->section, line->name,
			e.msg, CONFIG_SHOWN_MAX, line->value);
	else
		apply_value(m, key, line, &v);
	config_value_fini(&v);
}

void config_merge_start(struct config_merge *m, bool again)
{
	memset(m->seen, 0, sizeof(m->seen));
	config_list_fini(&m->seen_env);
	m->again = again;
}
