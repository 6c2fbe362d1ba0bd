/* SPDX-License-Identifier: MIT */
/*
 * limits.c - :limits
 *
 * Runs in:   front end, between cells
 * Trusts:    the warden for what is used and what enforces it
 */
#include "impl.h"

#include "jail/base/err.h"
#include "jail/enforce.h"
#include "jail/jail.h"
#include "repl/config/config.h"
#include "repl/config/value.h"
#include "repl/session/session.h"
#include "repl/text/table.h"
#include "repl/text/text.h"

#include <stdio.h>
#include <string.h>

/* Who sees to it where no host is asked; beside enum enforce_limit. */
enum { BY_THE_FRONT_END = -1 };

struct row {
	const char *what;
	const char *key;
	int by; /* enum enforce_limit, or BY_ above */
	/* What is used of it; NULL: nothing to say. */
	const char *(*used)(
		const struct jail_usage *u, char buf[static TEXT_HUMAN]);
};

static const char *used_memory(
	const struct jail_usage *u, char buf[static TEXT_HUMAN])
{
	return text_size(buf, (uint64_t)u->memory_bytes);
}

static const char *used_processes(
	const struct jail_usage *u, char buf[static TEXT_HUMAN])
{
	snprintf(buf, TEXT_HUMAN, "%d", u->processes);
	return buf;
}

static const char *used_home(
	const struct jail_usage *u, char buf[static TEXT_HUMAN])
{
	return text_size(buf, (uint64_t)u->home_bytes);
}

static const char *used_home_files(
	const struct jail_usage *u, char buf[static TEXT_HUMAN])
{
	snprintf(buf, TEXT_HUMAN, "%d", u->home_files);
	return buf;
}

static const char *used_lifetime(
	const struct jail_usage *u, char buf[static TEXT_HUMAN])
{
	return text_time(buf, u->up_ms / 1000 * 1000);
}

static const struct row rows[] = {
	{"cell time", "cell.timeout", ENFORCE_TIME, NULL},
	{"cell CPU", "cell.cpu", ENFORCE_CPU, NULL},
	{"cell output", "cell.output", BY_THE_FRONT_END, NULL},
	{"cell length", "cell.source", ENFORCE_TIME, NULL},
	{"memory", "session.memory", ENFORCE_MEMORY, used_memory},
	{"processes", "session.processes", ENFORCE_PROCESSES, used_processes},
	{"cores", "session.cpus", ENFORCE_CPUS, NULL},
	{"home", "home.size", ENFORCE_HOME, used_home},
	{"home files", "home.files", ENFORCE_HOME, used_home_files},
	{"transfer, a file", "files.max_file", BY_THE_FRONT_END, NULL},
	{"transfer, files", "files.max_count", BY_THE_FRONT_END, NULL},
	{"idle", "session.idle", ENFORCE_TIME, NULL},
	{"lifetime", "session.lifetime", ENFORCE_TIME, used_lifetime},
	{"network", "jail.network", ENFORCE_NETWORK, NULL},
};

static const char *by_name(int by, const struct jail_usage *u)
{
	if (by == BY_THE_FRONT_END)
		return "front end";
	return enforce_by((enum enforce_limit)by, u->by[by]);
}

/* The value for people: "512 MiB", not "512M". */
static const char *limit_words(const struct config *cfg,
	const struct config_key *key, char *buf, size_t size)
{
	int64_t n = config_value_number(cfg, key);
	char human[TEXT_HUMAN];

	if (key->type == CONFIG_SIZE)
		snprintf(buf, size, "%s", text_size(human, (uint64_t)n));
	else if (key->type == CONFIG_TIME)
		snprintf(buf, size, "%s", text_time(human, n));
	else
		config_value_format(cfg, key, buf, size);
	return buf;
}

COMMAND_FUNCTION(limits)
{
	static const char *const heads[] = {
		"what", "limit", "used", "enforced by", "set in"};
	struct table t = {.columns = 5};
	struct jail_usage u;

	(void)line;
	if (jail_usage(s->jail, &u, e) < 0)
		return -1;
	table_add(&t, heads);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];
		const struct config_key *key = config_keys_find_full(r->key);
		const char *source = config_source(s->cfg, r->key);
		char limit[64], used[TEXT_HUMAN], set_in[512];

		text_safe(set_in, sizeof(set_in), source, strlen(source));
		table_add(&t,
			(const char *[]){r->what,
				limit_words(s->cfg, key, limit, sizeof(limit)),
				r->used ? r->used(&u, used) : NULL,
				by_name(r->by, &u), set_in});
	}
	command_print_table(s, &t);
	return 0;
}
