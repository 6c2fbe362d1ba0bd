/* SPDX-License-Identifier: MIT */
/*
 * merge.c - sources laid one over the other, a KEY = VALUE at a time
 *
 * Runs in:   front end, before the warden is forked
 * Trusts:    its caller to close the lock before the first stranger speaks
 * Leaves:    each line applied, or an error and nothing changed by it
 */
#include "merge.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "value.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A full home leaves this much memory: twice what Python needs to start. */
#define HOME_LEAVES (32LL << 20)

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"

void config_merge_start(struct config_merge *m, bool again)
{
	memset(m->seen, 0, sizeof(m->seen));
	config_list_fini(&m->seen_env);
	m->again = again;
}

int config_merge_oom(struct config_merge *m, const char *place)
{
	return config_errors_add(m->errors, place, "out of memory");
}

void config_merge_fini(struct config_merge *m)
{
	config_list_fini(&m->seen_env);
	config_fini(&m->base);
}

/* ---- one line ---- */

static bool is_variable_name(const char *s)
{
	return *s && strchr(LETTERS, *s) && strlen(s) < 100 &&
	       !s[strspn(s, LETTERS "0123456789")];
}

/* Whether a variable may be set here and now. Adds the reason if not. */
static bool may_set_variable(struct config_merge *m,
	const struct config_line *line, const char *name, size_t at, size_t max)
{
	if (!is_variable_name(name))
		config_errors_add(m->errors, line->place,
			"python.env.NAME: expected a name of letters, digits "
			"and _, not \"%.*s\"",
			CONFIG_SHOWN_MAX, name);
	else if (!m->again && config_list_has(&m->seen_env, name))
		config_errors_add(m->errors, line->place,
			"python.env.%s: expected only once in a file", name);
	else if (m->locked)
		config_errors_add(m->errors, line->place,
			"python.env.%s: the configuration is locked (%s); the "
			"environment of Python may not be changed",
			name, config_source(&m->base, "policy.locked"));
	else if (at >= max)
		config_errors_add(m->errors, line->place,
			"python.env.%s: expected at most %zu variables", name,
			max);
	else
		return true;
	return false;
}

/* python.env.NAME: each name is a key. */
static void apply_variable(struct config_merge *m, const struct config_key *key,
	const struct config_line *line, const char *value)
{
	const char *name = line->name + strlen("env.");
	size_t at = config_variable(m->cfg, name);
	auto_free char *text = NULL;

	if (!may_set_variable(m, line, name, at, (size_t)key->max))
		return;
	if (asprintf(&text, "%s=%s", name, value) < 0)
		text = NULL;
	if (!text || config_list_add(&m->seen_env, name) < 0 ||
		config_list_put(&m->cfg->env, at, text) < 0 ||
		config_list_put(&m->cfg->env_sources, at, line->place) < 0)
		config_merge_oom(m, line->place);
}

static void refuse_unknown(
	struct config_merge *m, const struct config_line *line)
{
	const struct config_key *near =
		config_keys_nearest(line->section, line->name);

	config_errors_add(m->errors, line->place, "no key %.*s.%.*s%s%s%s%s%s",
		CONFIG_SHOWN_MAX, line->section, CONFIG_SHOWN_MAX, line->name,
		near ? "; did you mean " : "", near ? near->section : "",
		near ? "." : "", near ? near->name : "", near ? "?" : "");
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
	const char *source = m->base.sources[config_keys_index(key)];
	char locked[256];

	config_value_format(&m->base, key, locked, sizeof(locked));
	config_errors_add(m->errors, line->place,
		"%s.%s: \"%.*s\" is looser than the locked \"%s\" (%s); %s",
		key->section, key->name, CONFIG_SHOWN_MAX, line->value, locked,
		source ? source : CONFIG_BUILT_IN, direction(key->tighten));
}

/* Put the value where it belongs, with its source. */
static void keep(struct config_merge *m, const struct config_key *key,
	const struct config_line *line, union config_value *v)
{
	size_t i = config_keys_index(key);
	bool add = config_value_is_list(key) &&
		   (m->seen[i] || (m->locked && key->tighten == TIGHTEN_UNION));
	char *source = strdup(line->place);

	if (!source || (add && config_value_append(m->cfg, key, v) < 0)) {
		if (source && errno == E2BIG)
			config_errors_add(m->errors, line->place,
				"%s.%s: expected at most %lld items",
				key->section, key->name, (long long)key->max);
		else
			config_merge_oom(m, line->place);
		free(source);
		return;
	}
	if (!add)
		config_value_store(m->cfg, key, v);
	free(m->cfg->sources[i]);
	m->cfg->sources[i] = source;
	m->seen[i] = line->line;
}

static void apply_value(struct config_merge *m, const struct config_key *key,
	const struct config_line *line, union config_value *v)
{
	int seen = m->seen[config_keys_index(key)];

	if (seen && !m->again && !config_value_is_list(key))
		config_errors_add(m->errors, line->place,
			"%s.%s: expected only once in a file; line %d has it",
			key->section, key->name, seen);
	else if (m->locked && !config_value_tightens(&m->base, key, v))
		refuse_loosening(m, key, line);
	else
		keep(m, key, line, v);
}

/* True of text that goes on after a ; that the person did not mean as a
 * comment, more often than not. */
static bool is_cut(const struct config_key *key, const struct config_line *line)
{
	return line->commented && line->value[0] && line->value[0] != '"' &&
	       (key->type == CONFIG_STRING || key->type == CONFIG_VARIABLE);
}

void config_merge_apply(void *ctx, const struct config_line *line)
{
	struct config_merge *m = ctx;
	const struct config_key *key =
		config_keys_find(line->section, line->name);
	union config_value v;
	struct err e;
	int r;

	if (!key) {
		refuse_unknown(m, line);
		return;
	}
	if (is_cut(key, line)) {
		config_errors_add(m->errors, line->place,
			"%s.%s: expected the text in double quotes, because a "
			"; after a blank begins a comment",
			key->section, line->name);
		return;
	}
	r = config_value_parse(&v, key, line->value, m->home, &e);
	if (r < 0)
		config_errors_add(m->errors, line->place,
			"%s.%s: %s, not \"%.*s\"", key->section, line->name,
			e.msg, CONFIG_SHOWN_MAX, line->value);
	else if (key->type == CONFIG_VARIABLE)
		apply_variable(m, key, line, v.list.items[0]);
	else
		apply_value(m, key, line, &v);
	config_value_fini(&v, key);
}

/* ---- all lines ---- */

/* Whoever gives a cell more time wants it used: CPU time that nobody set
 * follows the timeout. */
static bool cpu_follows(struct config *cfg)
{
	const struct config_key *cpu = config_keys_find("cell", "cpu");

	if (cfg->limits.cell_cpu_ms >= cfg->limits.cell_wall_ms ||
		cfg->sources[config_keys_index(cpu)])
		return false;
	cfg->limits.cell_cpu_ms = cfg->limits.cell_wall_ms;
	return true;
}

void config_merge_lock(struct config_merge *m)
{
	if (m->locked || !m->cfg->locked)
		return;
	m->locked = true;
	if (config_copy(&m->base, m->cfg) < 0)
		config_merge_oom(m, "policy.locked");
	cpu_follows(&m->base);
}

/* Name `from` as the source of a key whose value follows that of `from`. */
static void set_followed(
	struct config_merge *m, const struct config_key *key, const char *from)
{
	const char *source = config_source(m->cfg, from);
	char **place = &m->cfg->sources[config_keys_index(key)], *text;

	if (asprintf(&text, "%s (%s)", source, from) < 0) {
		config_merge_oom(m, source);
		return;
	}
	free(*place);
	*place = text;
}

/* The most that a home may hold: it is memory of the session that outlives
 * Python, and a full home must leave room to start Python again. */
static int64_t home_most(int64_t memory)
{
	return memory - (memory / 2 < HOME_LEAVES ? memory / 2 : HOME_LEAVES);
}

/* True if whoever set the home's size knew the memory: both come from the
 * command line or from the same file, or nobody set the memory. */
static bool is_meant(const char *home, const char *memory)
{
	size_t n = strcspn(home, ":");

	return !strcmp(home, "--set") || !strcmp(memory, CONFIG_BUILT_IN) ||
	       (n == strcspn(memory, ":") && !strncmp(home, memory, n));
}

/* The home lies within the session's memory. A size that nobody set follows
 * the memory, and so does one that was set for more memory. */
static void fit_home(struct config_merge *m)
{
	const struct config_key *home = config_keys_find("home", "size");
	const struct config_key *memory = config_keys_find("session", "memory");
	struct limits *l = &m->cfg->limits;
	int64_t most = home_most(l->memory_bytes);
	const char *from = config_source(m->cfg, "session.memory");
	const char *source = m->cfg->sources[config_keys_index(home)];
	char size[32], total[32];

	if (l->home_bytes <= most)
		return;
	if (!source || !is_meant(source, from)) {
		l->home_bytes = most;
		set_followed(m, home, "session.memory");
		return;
	}
	config_errors_add(m->errors, source,
		"home.size: expected at most %s, because session.memory is %s "
		"(%s) and Python needs the rest",
		config_value_format_number(home, most, size, sizeof(size)),
		config_value_format_number(
			memory, l->memory_bytes, total, sizeof(total)),
		from);
}

/* A misspelt name would forbid the command that it should allow. */
static void check_commands(struct config_merge *m)
{
	const struct config_list *l = &m->cfg->commands;
	bool (*is_command)(const char *name) = m->where->is_command;

	for (size_t i = 0; is_command && i < l->n; i++)
		if (strcmp(l->items[i], "all") != 0 && !is_command(l->items[i]))
			config_errors_add(m->errors,
				config_source(m->cfg, "policy.commands"),
				"policy.commands: expected all, or names of "
				"commands, not \"%.*s\"",
				CONFIG_SHOWN_MAX, l->items[i]);
}

void config_merge_check(struct config_merge *m)
{
	const struct config *cfg = m->cfg;
	const char *undo = config_source(cfg, "cell.undo");

	if (cfg->limits.checkpoint == CHECKPOINT_NEVER && cfg->limits.undo &&
		strcmp(undo, CONFIG_BUILT_IN) != 0)
		config_errors_add(m->errors, undo,
			"cell.undo: expected 0, because checkpoints are never "
			"taken (%s)",
			config_source(cfg, "cell.checkpoint"));
	fit_home(m);
	if (cpu_follows(m->cfg))
		set_followed(
			m, config_keys_find("cell", "cpu"), "cell.timeout");
	check_commands(m);
}
