/* SPDX-License-Identifier: MIT */
/*
 * config.c - the merged configuration, and where each value came from
 *
 * Runs in:   front end, before the warden is forked
 * Trusts:    files that root alone can write; of everything later, under a
 *            lock, only what is stricter
 * Leaves:    a whole configuration, or every reason why there is none
 *
 * Later wins: built in, cellblock.conf, conf.d in the order of its names,
 * groups in the order of theirs, the user's file of the system, the person's
 * own file, --set. A list is replaced as a whole; within one file, a list key
 * that comes again adds to it.
 */
#include "config.h"

#include "file.h"
#include "jail/base/err.h"
#include "jail/base/io.h"
#include "merge.h"
#include "value.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Most files in conf.d. */
#define FRAGMENTS_MAX 256
/* What a full home leaves of the memory: twice what Python needs to start. */
#define HOME_LEAVES (32LL << 20)

int config_init(struct config *cfg)
{
	struct config_value v;

	*cfg = (struct config){0};
	for (size_t i = 0; i < CONFIG_NKEYS; i++) {
		const struct config_key *k = &config_keys[i];

		if (k->type == CONFIG_VARIABLE)
			continue;
		if (config_value_parse(&v, k, k->def, NULL, NULL) < 0) {
			config_value_fini(&v);
			errno = ENOMEM;
			return -1;
		}
		config_value_store(cfg, k, &v);
		config_value_fini(&v);
	}
	return 0;
}

void config_fini(struct config *cfg)
{
	struct config_value nothing = {0};

	for (size_t i = 0; i < CONFIG_NKEYS; i++) {
		config_value_store(cfg, &config_keys[i], &nothing);
		free(cfg->sources[i]);
	}
	config_list_fini(&cfg->env);
	config_list_fini(&cfg->env_sources);
	*cfg = (struct config){0};
}

const char *config_source(const struct config *cfg, const char *name)
{
	const struct config_key *key = config_key_find_full(name);
	const char *source;
	size_t i;

	if (!key)
		return NULL;
	if (key->type == CONFIG_VARIABLE) {
		name += strlen("python.env.");
		i = config_env_find(cfg, name, strlen(name));
		return i < cfg->env.n ? cfg->env_sources.items[i]
				      : CONFIG_BUILT_IN;
	}
	source = cfg->sources[config_key_index(key)];
	return source ? source : CONFIG_BUILT_IN;
}

bool config_is_bound(const struct config *cfg)
{
	const char *source = config_source(cfg, "policy.locked");

	return cfg->locked && !strncmp(source, CONFIG_SYSTEM_DIR "/",
				      sizeof(CONFIG_SYSTEM_DIR));
}

bool config_allows_command(const struct config *cfg, const char *name)
{
	return config_list_has(&cfg->commands, "all") ||
	       config_list_has(&cfg->commands, name);
}

/* Read one file, if it is there. */
static void load_file(struct config_merge *m, const struct config_file *file)
{
	auto_free char *text = NULL;
	size_t n;

	if (config_file_read(file, &text, &n, m->errors) <= 0)
		return;
	config_merge_start(m, false);
	config_file_parse(
		file->shown, text, n, config_merge_apply, m, m->errors);
}

static void load_system_file(
	struct config_merge *m, int dirfd, const char *dir, const char *name)
{
	char shown[PATH_MAX];
	struct config_file file = {
		.dirfd = dirfd,
		.name = name,
		.shown = shown,
		.trust = CONFIG_TRUST_SYSTEM,
		.uid = m->where->system_uid,
	};

	snprintf(shown, sizeof(shown), "%s/%s", dir, name);
	load_file(m, &file);
}

static bool is_fragment(const char *name)
{
	size_t n = strlen(name);

	return name[0] != '.' && n > 5 && !strcmp(name + n - 5, ".conf");
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names of the fragments, by bytes whatever the locale (scandirat is not
 * in every C library). Returns how many there are, at most FRAGMENTS_MAX + 1;
 * the caller frees each. -1 with errno. */
static int list_fragments(int dirfd, char *names[FRAGMENTS_MAX + 1])
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), n = 0;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *de;

	if (!d) {
		fd_drop(&fd);
		return -1;
	}
	while (n <= FRAGMENTS_MAX && (de = readdir(d)))
		if (is_fragment(de->d_name) && (names[n] = strdup(de->d_name)))
			n++;
	closedir(d);
	qsort(names, (size_t)n, sizeof(names[0]), compare_names);
	return n;
}

static void load_fragments(struct config_merge *m, int dirfd, const char *dir)
{
	char *found[FRAGMENTS_MAX + 1];
	int n = list_fragments(dirfd, found);

	if (n < 0) {
		config_errors_add(m->errors, dir, "list: %s", strerror(errno));
		return;
	}
	if (n > FRAGMENTS_MAX)
		config_errors_add(m->errors, dir, "expected at most %d files",
			FRAGMENTS_MAX);
	for (int i = 0; i < n; i++) {
		if (n <= FRAGMENTS_MAX)
			load_system_file(m, dirfd, dir, found[i]);
		free(found[i]);
	}
}

/* NAME.conf in groups/ or users/. A name that can be no file's has none. */
static void load_named(
	struct config_merge *m, int dirfd, const char *dir, const char *name)
{
	char file[NAME_MAX + 1];
	int n = snprintf(file, sizeof(file), "%s.conf", name);

	if (!name[0] || name[0] == '.' || strchr(name, '/') || n > NAME_MAX)
		return;
	load_system_file(m, dirfd, dir, file);
}

/* Groups have no order of their own that a person would know; names do. */
static void load_groups(struct config_merge *m, int dirfd, const char *dir)
{
	size_t n = m->where->ngroups;
	auto_free const char **names = calloc(n + 1, sizeof(*names));

	if (!names) {
		config_merge_oom(m, dir);
		return;
	}
	for (size_t i = 0; i < n; i++)
		names[i] = m->where->groups[i];
	qsort(names, n, sizeof(*names), compare_names);
	for (size_t i = 0; i < n; i++)
		if (!i || strcmp(names[i], names[i - 1]) != 0)
			load_named(m, dirfd, dir, names[i]);
}

static void load_user(struct config_merge *m, int dirfd, const char *dir)
{
	if (m->where->user)
		load_named(m, dirfd, dir, m->where->user);
}

/* The directories below the system's, in their order. */
static const struct {
	const char *name;
	void (*load)(struct config_merge *m, int dirfd, const char *dir);
} system_dirs[] = {
	{"conf.d", load_fragments},
	{"groups", load_groups},
	{"users", load_user},
};

static void load_system(struct config_merge *m)
{
	const char *dir = m->where->system_dir;
	uid_t uid = m->where->system_uid;
	auto_close int top = -1;

	if (!dir ||
		config_dir_open(AT_FDCWD, dir, dir, uid, &top, m->errors) <= 0)
		return;
	load_system_file(m, top, dir, "cellblock.conf");
	for (size_t i = 0; i < sizeof(system_dirs) / sizeof(system_dirs[0]);
		i++) {
		const char *name = system_dirs[i].name;
		auto_close int sub = -1;
		char shown[PATH_MAX];

		snprintf(shown, sizeof(shown), "%s/%s", dir, name);
		if (config_dir_open(top, name, shown, uid, &sub, m->errors) > 0)
			system_dirs[i].load(m, sub, shown);
	}
}

/* One SECTION.KEY=VALUE of the command line. */
static void load_set(struct config_merge *m, const char *set)
{
	const char *eq = strchr(set, '=');
	const char *dot = eq ? memchr(set, '.', (size_t)(eq - set)) : NULL;
	char section[64], name[192], place[80];
	const char *near;
	struct config_line line = {
		"--set", section, name, eq ? eq + 1 : "", 1, false};

	snprintf(place, sizeof(place), "--set %.*s", CONFIG_SHOWN_MAX, set);
	if (!dot || dot - set >= (int)sizeof(section) ||
		eq - dot > (int)sizeof(name)) {
		config_errors_add(m->errors, place,
			"expected SECTION.KEY=VALUE, such as cell.timeout=5s");
		return;
	}
	snprintf(section, sizeof(section), "%.*s", (int)(dot - set), set);
	snprintf(name, sizeof(name), "%.*s", (int)(eq - dot - 1), dot + 1);
	if (config_section_exists(section)) {
		config_merge_apply(m, &line);
		return;
	}
	near = config_section_nearest(section);
	config_errors_add(m->errors, place, "no section %s%s%s%s", section,
		near ? "; did you mean " : "", near ? near : "",
		near ? "?" : "");
}

static void load_sets(struct config_merge *m)
{
	config_merge_start(m, true);
	for (size_t i = 0; i < m->where->nsets; i++)
		load_set(m, m->where->sets[i]);
}

/* Who gives a cell more time means it to be used: CPU time nobody set follows.
 */
static bool cpu_follows(struct config *cfg)
{
	const struct config_key *cpu = config_key_find("cell", "cpu");

	if (cfg->limits.cell_cpu_ms >= cfg->limits.cell_wall_ms ||
		cfg->sources[config_key_index(cpu)])
		return false;
	cfg->limits.cell_cpu_ms = cfg->limits.cell_wall_ms;
	return true;
}

/* From here on only stricter values pass, if that is what was set. */
static void lock(struct config_merge *m, struct config *base)
{
	if (m->base || !m->cfg->locked)
		return;
	if (config_copy(base, m->cfg) < 0)
		config_merge_oom(m, "policy.locked");
	cpu_follows(base);
	m->base = base;
}

/* --config FILE stands in for every other file, but not for a locked one. */
static void load_explicit(struct config_merge *m)
{
	struct config_file file = {
		.dirfd = AT_FDCWD,
		.name = m->where->explicit_file,
		.shown = m->where->explicit_file,
		.trust = CONFIG_TRUST_NAMED,
	};

	if (!m->base) {
		config_fini(m->cfg);
		if (config_init(m->cfg) < 0)
			config_merge_oom(m, file.shown);
	}
	load_file(m, &file);
}

static void load_own(struct config_merge *m)
{
	struct config_file file = {
		.dirfd = AT_FDCWD,
		.name = m->where->user_file,
		.shown = m->where->user_file,
		.trust = CONFIG_TRUST_OWN,
	};

	load_file(m, &file);
}

/* What a home may be given: it is memory of the session, it outlives Python,
 * and full it must leave Python room to be started in again. */
static int64_t home_most(int64_t memory)
{
	return memory - (memory / 2 < HOME_LEAVES ? memory / 2 : HOME_LEAVES);
}

/* A key that nobody set has followed `key`. */
static void followed(
	struct config_merge *m, const struct config_key *it, const char *key)
{
	const char *from = config_source(m->cfg, key);
	char **source = &m->cfg->sources[config_key_index(it)];

	if (asprintf(source, "%s (%s)", from, key) < 0) {
		*source = NULL;
		config_merge_oom(m, from);
	}
}

static void fit_cpu(struct config_merge *m)
{
	if (cpu_follows(m->cfg))
		followed(m, config_key_find("cell", "cpu"), "cell.timeout");
}

/* Whether who set the home's size knew of the memory: on the command line, in
 * the same file, or where nobody set it. */
static bool is_meant(const char *home, const char *memory)
{
	size_t n = strcspn(home, ":");

	return !strcmp(home, "--set") || !strcmp(memory, CONFIG_BUILT_IN) ||
	       (n == strcspn(memory, ":") && !strncmp(home, memory, n));
}

/* The home is within the session's memory: a size that nobody set follows it,
 * and so does one that was set for more memory. */
static void fit_home(struct config_merge *m)
{
	const struct config_key *home = config_key_find("home", "size");
	const struct config_key *memory = config_key_find("session", "memory");
	struct limits *l = &m->cfg->limits;
	int64_t most = home_most(l->memory_bytes);
	const char *from = config_source(m->cfg, "session.memory");
	char **source = &m->cfg->sources[config_key_index(home)];
	char size[32], total[32];

	if (l->home_bytes <= most)
		return;
	if (!*source || !is_meant(*source, from)) {
		free(*source);
		l->home_bytes = most;
		followed(m, home, "session.memory");
		return;
	}
	config_number_format(home, most, size, sizeof(size));
	config_number_format(memory, l->memory_bytes, total, sizeof(total));
	config_errors_add(m->errors, *source,
		"home.size: expected at most %s, because session.memory is %s "
		"(%s) and Python needs the rest",
		size, total, from);
}

/* A name with an error in it would forbid what it was to allow. */
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

/* Keys that cannot both be meant. */
static void check_together(struct config_merge *m)
{
	const struct config *cfg = m->cfg;
	const char *undo = config_source(cfg, "cell.undo");
	const char *checkpoint = config_source(cfg, "cell.checkpoint");

	if (cfg->limits.checkpoint == CHECKPOINT_NEVER && cfg->limits.undo &&
		strcmp(undo, CONFIG_BUILT_IN) != 0)
		config_errors_add(m->errors, undo,
			"cell.undo: expected 0, because checkpoints are never "
			"taken (%s)",
			checkpoint);
	fit_home(m);
	fit_cpu(m);
	check_commands(m);
}

int config_load(struct config *cfg, const struct config_where *where,
	struct config_errors *errors)
{
	struct config base = {0};
	struct config_merge m = {.cfg = cfg,
		.where = where,
		.home = where->home,
		.errors = errors};
	size_t before = errors->n + errors->dropped;

	if (config_init(cfg) < 0) {
		config_errors_add(errors, CONFIG_BUILT_IN, "out of memory");
		return -1;
	}
	if (!where->checking || !where->explicit_file)
		load_system(&m);
	if (!where->login) {
		m.home = where->own_home ? where->own_home : where->home;
		lock(&m, &base);
		if (where->explicit_file)
			load_explicit(&m);
		else if (where->user_file)
			load_own(&m);
		lock(&m, &base);
		load_sets(&m);
	}
	check_together(&m);
	config_list_fini(&m.seen_env);
	config_fini(&base);
	return errors->n + errors->dropped == before ? 0 : -1;
}
