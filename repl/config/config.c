/* SPDX-License-Identifier: MIT */
/*
 * config.c - the merged configuration, and where each value came from
 *
 * Runs in:   front end, before the warden is forked
 * Trusts:    files that root alone can write; under a lock, of all later
 *            sources only the stricter values
 * Leaves:    a whole configuration, or every reason why there is none; printed
 *            as a file, text that the parser reads back to the same values
 *
 * A later source wins: built in, cellblock.conf, conf.d in the order of names,
 * groups in the order of names, the system's file for the user, the
 * person's own file, --set. A later list replaces an earlier one; within one
 * file, a list key that comes again adds to the list.
 */
#include "config.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/base/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

/* Most files in conf.d. */
#define FRAGMENTS_MAX 256
/* A full home leaves this much memory: twice what Python needs to start. */
#define HOME_LEAVES (32LL << 20)
/* A home whose size was set may leave less, as in snekbox: more than Python
 * needs to start. */
#define HOME_LEAVES_LEAST (20LL << 20)

/* ---- one configuration ---- */

/* A transfer may have as many files as the home, unless a source sets a number
 * for transfers. */
static void fit_transfers(struct config *cfg)
{
	struct limits *l = &cfg->limits;

	l->transfer_count =
		config_counts_transfers(cfg) ? l->max_count : l->home_files;
}

int config_init(struct config *cfg)
{
	*cfg = (struct config){0};
	for (size_t i = 0; i < CONFIG_NKEYS; i++) {
		const struct config_key *k = &config_keys[i];
		union config_value v;

		if (k->type == CONFIG_VARIABLE)
			continue;
		if (config_value_parse(&v, k, k->def, NULL, NULL) < 0) {
			config_value_fini(&v, k);
			errno = ENOMEM;
			return -1;
		}
		config_value_store(cfg, k, &v);
	}
	fit_transfers(cfg);
	return 0;
}

void config_fini(struct config *cfg)
{
	for (size_t i = 0; i < CONFIG_NKEYS; i++) {
		union config_value nothing = {.list = {0}};

		config_value_store(cfg, &config_keys[i], &nothing);
		free(cfg->sources[i]);
	}
	strlist_fini(&cfg->env_sources);
	*cfg = (struct config){0};
}

/* The index of python.env.NAME in cfg->env; cfg->env.n when it is not set. */
static size_t find_variable(const struct config *cfg, const char *name)
{
	size_t i = 0, n = strlen(name);

	while (i < cfg->env.n && (strncmp(cfg->env.items[i], name, n) != 0 ||
					 cfg->env.items[i][n] != '='))
		i++;
	return i;
}

const char *config_source(const struct config *cfg, const char *name)
{
	const struct config_key *key = config_keys_find_full(name);
	const char *source = NULL;
	size_t i;

	if (!key)
		return NULL;
	if (key->type == CONFIG_VARIABLE) {
		i = find_variable(cfg, name + strlen("python.env."));
		if (i < cfg->env.n)
			source = cfg->env_sources.items[i];
	} else {
		source = cfg->sources[config_keys_index(key)];
	}
	return source ? source : CONFIG_BUILT_IN;
}

const char *config_set_in(const struct config *cfg, const char *name)
{
	const char *source = config_source(cfg, name);

	return source && strcmp(source, CONFIG_BUILT_IN) != 0 ? source : NULL;
}

bool config_is_bound(const struct config *cfg)
{
	const char *source = config_source(cfg, "policy.locked");

	return cfg->locked && !strncmp(source, CONFIG_SYSTEM_DIR "/",
				      sizeof(CONFIG_SYSTEM_DIR));
}

bool config_counts_transfers(const struct config *cfg)
{
	return config_set_in(cfg, "files.max_count") != NULL;
}

bool config_allows_command(const struct config *cfg, const char *name)
{
	return strlist_has(&cfg->commands, "all") ||
	       strlist_has(&cfg->commands, name);
}

int config_check_command(
	const struct config *cfg, const char *name, struct err *e)
{
	if (!name || config_allows_command(cfg, name))
		return 0;
	return err_set(e, "policy.commands leaves out %s: it is set in %s",
		name, config_source(cfg, "policy.commands"));
}

int config_choose_python(const struct config *cfg, const char *wanted,
	char *path, size_t size, struct err *e)
{
	const struct config_key *key = config_keys_find("python", "executable");
	const struct strlist *l = &cfg->executable;
	const char *known = wanted ? NULL : l->items[0];
	char dir[PATH_MAX] = "", list[400];
	int n;

	for (size_t i = 0; !known && i < l->n; i++)
		if (!strcmp(l->items[i], wanted) ||
			!strcmp(path_last(l->items[i]), wanted))
			known = l->items[i];
	if (!known && (cfg->locked || !strchr(wanted, '/'))) {
		config_value_format(cfg, key, list, sizeof(list));
		err_set(e, "%s is not one of python.executable", wanted);
		err_hint(e, "configured are: %s", list);
		return err_kind_set(e, ERR_USAGE);
	}
	if (!known && wanted[0] != '/' && !getcwd(dir, sizeof(dir)))
		return err_errno(e, "find the current directory");
	n = snprintf(path, size, "%s%s%s", dir, dir[0] ? "/" : "",
		known ? known : wanted);
	if (n >= 0 && (size_t)n < size)
		return 0;
	err_set(e, "the path of the interpreter is too long");
	return err_kind_set(e, ERR_USAGE);
}

/* Write the path of `name` in the directory `xdg`, or else in `sub` of the
 * home. 0, or -1. */
static int write_own_path(const char *xdg, const char *home, const char *sub,
	const char *name, char *path, size_t size)
{
	bool own = xdg && xdg[0] == '/';
	const char *top = own ? xdg : home;
	int n;

	if (!top || top[0] != '/')
		return -1;
	n = snprintf(path, size, "%s%s/%s", top, own ? "" : sub, name);
	return n < 0 || (size_t)n >= size ? -1 : 0;
}

int config_user_file(const char *xdg, const char *home, char *path, size_t size)
{
	return write_own_path(
		xdg, home, "/.config", "cellblock/cellblock.conf", path, size);
}

int config_state_dir(const char *xdg, const char *home, char *path, size_t size)
{
	return write_own_path(
		xdg, home, "/.local/state", "cellblock", path, size);
}

/* ---- one KEY = VALUE ---- */

/* Bytes of a name or value that an error repeats. */
#define SHOWN_MAX 60

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"

/* The merge of all sources, one after the other. The pointers are borrowed. */
struct merge {
	struct config *cfg;
	const struct config_where *where;
	const char *home; /* what ~ stands for in this source */
	struct config_errors *errors;
	bool locked;	    /* values may only be stricter than base */
	struct config base; /* the values when the lock closed */
	bool again;	    /* a key may come twice: --set */
	/* for each key, then for each of cfg->env: its line in this file; 0:
	 * none */
	int seen[CONFIG_NKEYS + CONFIG_VARIABLES_MAX + 1];
};

/* Add "SECTION.KEY: message" for a line. */
#define refuse(m, line, fmt, ...)                                              \
	config_errors_add((m)->errors, (line)->place, "%s.%s: " fmt,           \
		(line)->section, (line)->name, ##__VA_ARGS__)

static int out_of_memory(struct merge *m, const char *place)
{
	return config_errors_add(m->errors, place, "out of memory");
}

static bool is_variable_name(const char *s)
{
	return *s && strchr(LETTERS, *s) && strlen(s) < 100 &&
	       !s[strspn(s, LETTERS "0123456789")];
}

/* Put a copy in the place of item `i`, or at the end if there is none. */
static int put_item(struct strlist *l, size_t i, const char *s)
{
	if (strlist_add(l, s) < 0)
		return -1;
	if (i + 1 < l->n) {
		free(l->items[i]);
		l->items[i] = l->items[--l->n];
	}
	return 0;
}

/* Set python.env.NAME; each NAME counts as a key. */
static void apply_variable(
	struct merge *m, const struct config_line *line, const char *value)
{
	const char *name = line->name + strlen("env.");
	size_t at = find_variable(m->cfg, name);
	int *seen = &m->seen[CONFIG_NKEYS + at];
	auto_free char *text = NULL;

	if (!is_variable_name(name))
		config_errors_add(m->errors, line->place,
			"python.env.NAME: expected a name of letters, digits "
			"and _, not \"%.*s\"",
			SHOWN_MAX, name);
	else if (!m->again && *seen)
		refuse(m, line, "expected only once in a file");
	else if (m->locked)
		refuse(m, line,
			"the configuration is locked (%s); the environment of "
			"Python may not be changed",
			config_source(&m->base, "policy.locked"));
	else if (at == CONFIG_VARIABLES_MAX)
		refuse(m, line, "expected at most %d variables",
			CONFIG_VARIABLES_MAX);
	else if (asprintf(&text, "%s=%s", name, value) < 0 ||
		 put_item(&m->cfg->env_sources, at, line->place) < 0 ||
		 put_item(&m->cfg->env, at, text) < 0)
		out_of_memory(m, line->place);
	else
		*seen = line->line;
}

/* In which direction a locked key may change. */
static const char *direction_of(const struct config_key *key)
{
	static const char *const directions[] = {
		[TIGHTEN_LOWER] = "it may only be lowered",
		[TIGHTEN_HIGHER] = "it may only be switched on",
		[TIGHTEN_RANK] = "it may only be stricter",
		[TIGHTEN_SUBSET] = "it may only name fewer",
		[TIGHTEN_NEVER] = "it may not be changed",
	};

	if (key->tighten == TIGHTEN_LOWER && key->type == CONFIG_BOOL)
		return "it may only be switched off";
	return directions[key->tighten];
}

static void refuse_loosening(struct merge *m, const struct config_key *key,
	const struct config_line *line)
{
	const char *source = m->base.sources[config_keys_index(key)];
	char locked[256];

	config_value_format(&m->base, key, locked, sizeof(locked));
	refuse(m, line, "\"%.*s\" is looser than the locked \"%s\" (%s); %s",
		SHOWN_MAX, line->value, locked,
		source ? source : CONFIG_BUILT_IN, direction_of(key));
}

/* Store the value, or append it to a list, and note its source. */
static void keep_value(struct merge *m, const struct config_key *key,
	const struct config_line *line, union config_value *v)
{
	size_t i = config_keys_index(key);
	bool add = config_value_is_list(key) &&
		   (m->seen[i] || (m->locked && key->tighten == TIGHTEN_UNION));
	char *source = strdup(line->place);

	if (!source || (add && config_value_append(m->cfg, key, v) < 0)) {
		if (source && errno == E2BIG)
			refuse(m, line, "expected at most %lld items",
				(long long)key->max);
		else
			out_of_memory(m, line->place);
		free(source);
		return;
	}
	if (!add)
		config_value_store(m->cfg, key, v);
	free(m->cfg->sources[i]);
	m->cfg->sources[i] = source;
	m->seen[i] = line->line;
}

static void apply_value(struct merge *m, const struct config_key *key,
	const struct config_line *line, union config_value *v)
{
	int seen = m->seen[config_keys_index(key)];

	if (seen && !m->again && !config_value_is_list(key))
		refuse(m, line, "expected only once in a file; line %d has it",
			seen);
	else if (m->locked && !config_value_tightens(&m->base, key, v))
		refuse_loosening(m, key, line);
	else
		keep_value(m, key, line, v);
}

/* Apply one line of a file; `ctx` is a struct merge. */
static void apply_line(void *ctx, const struct config_line *line)
{
	struct merge *m = ctx;
	const struct config_key *key =
		config_keys_find(line->section, line->name);
	const struct config_key *near;
	union config_value v;
	struct err e;
	int r;

	if (!key) {
		near = config_keys_nearest(line->section, line->name);
		config_errors_add(m->errors, line->place,
			"no key %.*s.%.*s%s%s%s%s%s", SHOWN_MAX, line->section,
			SHOWN_MAX, line->name, near ? "; did you mean " : "",
			near ? near->section : "", near ? "." : "",
			near ? near->name : "", near ? "?" : "");
		return;
	}
	/* The person rarely means the text behind the ; as a comment. */
	if (line->commented && line->value[0] && line->value[0] != '"' &&
		(key->type == CONFIG_STRING || key->type == CONFIG_VARIABLE)) {
		refuse(m, line,
			"expected the text in double quotes, because a ; after "
			"a blank begins a comment");
		return;
	}
	r = config_value_parse(&v, key, line->value, m->home, &e);
	if (r < 0)
		refuse(m, line, "%s, not \"%.*s\"", e.msg, SHOWN_MAX,
			line->value);
	else if (key->type == CONFIG_VARIABLE)
		apply_variable(m, line, v.list.items[0]);
	else
		apply_value(m, key, line, &v);
	config_value_fini(&v, key);
}

/* ---- values that depend on others ---- */

/* Raise CPU time that no source sets to the cell's timeout, so that the cell
 * can use a longer timeout. True if it was raised. */
static bool raise_cpu_time(struct config *cfg)
{
	const struct config_key *cpu = config_keys_find("cell", "cpu");

	if (cfg->limits.cell_cpu_ms >= cfg->limits.cell_wall_ms ||
		cfg->sources[config_keys_index(cpu)])
		return false;
	cfg->limits.cell_cpu_ms = cfg->limits.cell_wall_ms;
	return true;
}

/* Without a source of its own, one client of --serve has three quarters of its
 * sessions. True if that is not the built-in number. */
static bool follow_sessions(struct config *cfg)
{
	const struct config_key *k =
		config_keys_find("serve", "sessions_per_client");
	int n = cfg->serve.sessions - cfg->serve.sessions / 4;

	if (n == cfg->serve.sessions_per_client ||
		cfg->sources[config_keys_index(k)])
		return false;
	cfg->serve.sessions_per_client = n;
	return true;
}

/* Let only stricter values pass from here on, if policy.locked is set. */
static void lock_values(struct merge *m)
{
	if (m->locked || !m->cfg->locked)
		return;
	m->locked = true;
	for (size_t i = 0; i < CONFIG_NKEYS; i++) {
		const char *source = m->cfg->sources[i];

		if (source)
			m->base.sources[i] = strdup(source);
		if ((source && !m->base.sources[i]) ||
			config_value_copy(&m->base, m->cfg, &config_keys[i]) <
				0)
			out_of_memory(m, "policy.locked");
	}
	raise_cpu_time(&m->base);
	follow_sessions(&m->base);
}

/* Name `from` as the source of a key whose value follows that of `from`. */
static void set_followed(
	struct merge *m, const struct config_key *key, const char *from)
{
	const char *source = config_source(m->cfg, from);
	char **place = &m->cfg->sources[config_keys_index(key)], *text;

	if (asprintf(&text, "%s (%s)", source, from) < 0) {
		out_of_memory(m, source);
		return;
	}
	free(*place);
	*place = text;
}

/* True if the home's size was set with the memory in mind: on the command line,
 * in the same file, or with the built-in memory. Both arguments are sources. */
static bool was_sized_for(const char *home, const char *memory)
{
	size_t n = strcspn(home, ":");

	return !strcmp(home, "--set") || !strcmp(memory, CONFIG_BUILT_IN) ||
	       (n == strcspn(memory, ":") && !strncmp(home, memory, n));
}

/* The largest home that leaves `leaves` of the memory, or half of it. */
static int64_t most_beside(int64_t memory, int64_t leaves)
{
	return memory - (memory / 2 < leaves ? memory / 2 : leaves);
}

int64_t config_home_beside(int64_t memory)
{
	return most_beside(memory, HOME_LEAVES);
}

/* Fit the home into the session's memory: the home is memory that outlives
 * Python, and a full home must leave room to start Python again. A size that no
 * source set follows the memory, and so does one that was set for more memory.
 * Any other size that does not fit is an error. */
static void fit_home(struct merge *m)
{
	const struct config_key *home = config_keys_find("home", "size");
	const struct config_key *memory = config_keys_find("session", "memory");
	struct limits *l = &m->cfg->limits;
	int64_t most = config_home_beside(l->memory_bytes);
	const char *from = config_source(m->cfg, "session.memory");
	const char *source = m->cfg->sources[config_keys_index(home)];
	char size[32], total[32];

	if (l->home_bytes <= most)
		return;
	if (!source || !was_sized_for(source, from)) {
		l->home_bytes = most;
		set_followed(m, home, "session.memory");
		return;
	}
	most = most_beside(l->memory_bytes, HOME_LEAVES_LEAST);
	if (l->home_bytes <= most)
		return;
	l->home_bytes = most;
	config_errors_add(m->errors, source,
		"home.size: expected at most %s, because session.memory is %s "
		"(%s) and Python needs the rest",
		config_value_format_number(home, most, size, sizeof(size)),
		config_value_format_number(
			memory, l->memory_bytes, total, sizeof(total)),
		from);
}

/* A misspelt name would forbid the command that it should allow. */
static void check_commands(struct merge *m)
{
	const struct strlist *l = &m->cfg->commands;
	bool (*is_command)(const char *name) = m->where->is_command;

	for (size_t i = 0; is_command && i < l->n; i++)
		if (strcmp(l->items[i], "all") != 0 && !is_command(l->items[i]))
			config_errors_add(m->errors,
				config_source(m->cfg, "policy.commands"),
				"policy.commands: expected all, or names of "
				"commands, not \"%.*s\"",
				SHOWN_MAX, l->items[i]);
}

/* Python has them as one text, in which a colon divides them. */
static void check_packages(struct merge *m)
{
	const struct strlist *l = &m->cfg->packages;
	const char *source = config_source(m->cfg, "python.packages");
	size_t bytes = 0;

	for (size_t i = 0; i < l->n; i++) {
		bytes += strlen(l->items[i]) + 1;
		if (strchr(l->items[i], ':'))
			config_errors_add(m->errors, source,
				"python.packages: expected no colon in "
				"\"%.*s\", because Python takes it for the "
				"end of a path",
				SHOWN_MAX, l->items[i]);
	}
	if (bytes > CONFIG_VALUE_MAX)
		config_errors_add(m->errors, source,
			"python.packages: expected at most %d bytes together",
			CONFIG_VALUE_MAX);
}

static void refuse_exam(struct merge *m, const char *key, const char *why)
{
	config_errors_add(m->errors, config_source(m->cfg, key),
		"%s: expected %s", key, why);
}

/* An exam has two times, and no cells of other days are shown in it. */
static void fit_exam(struct merge *m)
{
	const struct config_key *history =
		config_keys_find("terminal", "history");
	struct config *cfg = m->cfg;

	if (!cfg->exam_begin_s && !cfg->exam_end_s)
		return;
	if (!cfg->exam_begin_s) {
		refuse_exam(m, "exam.end", "exam.begin, too");
	} else if (!cfg->exam_end_s) {
		refuse_exam(m, "exam.begin", "exam.end, too");
	} else if (cfg->exam_end_s <= cfg->exam_begin_s) {
		refuse_exam(m, "exam.end", "a time behind exam.begin");
	} else if (!cfg->locked) {
		refuse_exam(m, "exam.begin",
			"policy.locked = yes, or the person could change it");
	}
	cfg->limits.until_s = cfg->exam_end_s;
	if (!cfg->history)
		return;
	cfg->history = false;
	set_followed(m, history, "exam.begin");
}

/* After all sources: fit the values that follow others, and refuse values that
 * contradict each other. */
static void check_together(struct merge *m)
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
	if (raise_cpu_time(m->cfg))
		set_followed(
			m, config_keys_find("cell", "cpu"), "cell.timeout");
	if (follow_sessions(m->cfg))
		set_followed(m,
			config_keys_find("serve", "sessions_per_client"),
			"serve.sessions");
	fit_transfers(m->cfg);
	fit_exam(m);
	check_packages(m);
	check_commands(m);
}

/* ---- the sources ---- */

/* Load the file `name` of the directory `dir`, which `dirfd` holds. For a path,
 * they are "" and AT_FDCWD. */
static void load_file(struct merge *m, int dirfd, const char *dir,
	const char *name, enum config_trust trust)
{
	char asked[PATH_MAX + NAME_MAX + 32];
	const char *option = trust != CONFIG_TRUST_NAMED ? ""
			     : m->where->checking	 ? "--check-config "
							 : "-f ";
	struct config_file file = {dirfd, name, asked + strlen(option), asked,
		trust, m->where->system_uid};

	snprintf(asked, sizeof(asked), "%s%s%s%s", option, dir, *dir ? "/" : "",
		name);
	memset(m->seen, 0, sizeof(m->seen));
	config_file_read(&file, apply_line, m, m->errors);
}

/* Add the name of a group or user, once. Skip a name that no file can have. */
static void add_name(struct merge *m, struct strlist *names, const char *name)
{
	if (name[0] == '.' || !path_is_name(name) ||
		strlen(name) + strlen(".conf") > NAME_MAX ||
		strlist_has(names, name))
		return;
	if (strlist_add(names, name) < 0)
		out_of_memory(m, name);
}

static bool is_fragment(const char *name)
{
	size_t n = strlen(name);

	return name[0] != '.' && n > 5 && !strcmp(name + n - 5, ".conf");
}

/* List the names of the fragments, in any order. 0, or -1 with errno. */
static int list_fragments(int fd, struct strlist *found)
{
	DIR *d = io_list(fd);
	struct dirent *de;
	int r = 0;

	if (!d)
		return -1;
	while (r == 0 && (errno = 0, de = readdir(d)))
		if (is_fragment(de->d_name))
			r = strlist_add(found, de->d_name);
	r = errno ? -1 : r;
	closedir(d);
	return r;
}

/* Load all fragments of the directory that `fd` holds. */
static void load_fragments(struct merge *m, int fd, const char *dir)
{
	struct strlist found = {0};

	if (list_fragments(fd, &found) < 0)
		config_errors_add(m->errors, dir, "list: %s", strerror(errno));
	else if (found.n > FRAGMENTS_MAX)
		config_errors_add(m->errors, dir, "expected at most %d files",
			FRAGMENTS_MAX);
	strlist_sort(&found);
	for (size_t i = 0; i < found.n && found.n <= FRAGMENTS_MAX; i++)
		load_file(m, fd, dir, found.items[i], CONFIG_TRUST_SYSTEM);
	strlist_fini(&found);
}

/* Load NAME.conf for each of `people` from the directory `sub`; `people` NULL:
 * all its fragments. We load them in the order of their names, by bytes in any
 * locale: groups have no other order that a person knows. */
static void load_dir(
	struct merge *m, int top, const char *sub, struct strlist *people)
{
	char dir[PATH_MAX], file[NAME_MAX + 1];
	auto_close int fd = -1;

	snprintf(dir, sizeof(dir), "%s/%s", m->where->system_dir, sub);
	if (config_file_open_dir(
		    top, sub, dir, m->where->system_uid, &fd, m->errors) <= 0)
		return;
	if (!people) {
		load_fragments(m, fd, dir);
		return;
	}
	strlist_sort(people);
	for (size_t i = 0; i < people->n; i++) {
		snprintf(file, sizeof(file), "%s.conf", people->items[i]);
		load_file(m, fd, dir, file, CONFIG_TRUST_SYSTEM);
	}
}

static void load_system(struct merge *m)
{
	const struct config_where *where = m->where;
	struct strlist groups = {0}, users = {0};
	auto_close int top = -1;

	if (!where->system_dir ||
		config_file_open_dir(AT_FDCWD, where->system_dir,
			where->system_dir, where->system_uid, &top,
			m->errors) <= 0)
		return;
	for (size_t i = 0; i < where->ngroups; i++)
		add_name(m, &groups, where->groups[i]);
	if (where->user)
		add_name(m, &users, where->user);
	load_file(m, top, where->system_dir, "cellblock.conf",
		CONFIG_TRUST_SYSTEM);
	load_dir(m, top, "conf.d", NULL);
	load_dir(m, top, "groups", &groups);
	load_dir(m, top, "users", &users);
	strlist_fini(&groups);
	strlist_fini(&users);
}

/* The option that the setting came from: -t and -M stand before the key, --set
 * does not. Steps *set to the key. */
static const char *split_option(const char **set)
{
	static const char *const options[] = {"-t", "-M"};

	for (size_t i = 0; i < COUNT(options); i++)
		if (!strncmp(*set, options[i], 2) && (*set)[2] == ' ') {
			*set += 3;
			return options[i];
		}
	return "--set";
}

/* Apply one SECTION.KEY=VALUE of the command line. */
static void load_set(struct merge *m, const char *set)
{
	const char *option = split_option(&set), *eq = strchr(set, '=');
	const char *dot = eq ? memchr(set, '.', (size_t)(eq - set)) : NULL;
	char section[64], name[192], place[80];
	const struct config_key *near;
	struct config_line line = {
		option, section, name, eq ? eq + 1 : "", 1, false};

	snprintf(place, sizeof(place), "--set %.*s", SHOWN_MAX, set);
	if (!dot || dot - set >= (int)sizeof(section) ||
		eq - dot > (int)sizeof(name)) {
		config_errors_add(m->errors, place,
			"expected SECTION.KEY=VALUE, such as cell.timeout=5s");
		return;
	}
	snprintf(section, sizeof(section), "%.*s", (int)(dot - set), set);
	snprintf(name, sizeof(name), "%.*s", (int)(eq - dot - 1), dot + 1);
	if (config_keys_find(section, NULL)) {
		apply_line(m, &line);
		return;
	}
	near = config_keys_nearest(section, NULL);
	config_errors_add(m->errors, place, "no section %s%s%s%s", section,
		near ? "; did you mean " : "", near ? near->section : "",
		near ? "?" : "");
}

/* Load the person's sources: a file and --set. */
static void load_persons(struct merge *m)
{
	const struct config_where *where = m->where;

	m->home = where->own_home ? where->own_home : where->home;
	lock_values(m);
	/* --config FILE replaces every other file, except locked ones. */
	if (where->explicit_file && !m->locked) {
		config_fini(m->cfg);
		if (config_init(m->cfg) < 0)
			out_of_memory(m, where->explicit_file);
	}
	if (where->explicit_file)
		load_file(m, AT_FDCWD, "", where->explicit_file,
			CONFIG_TRUST_NAMED);
	else if (where->user_file)
		load_file(m, AT_FDCWD, "", where->user_file, CONFIG_TRUST_OWN);
	lock_values(m);
	memset(m->seen, 0, sizeof(m->seen));
	for (size_t i = 0; i < where->nlines; i++)
		apply_line(m, &where->lines[i]);
	memset(m->seen, 0, sizeof(m->seen));
	m->again = true;
	for (size_t i = 0; i < where->nsets; i++)
		load_set(m, where->sets[i]);
}

int config_load(struct config *cfg, const struct config_where *where,
	struct config_errors *errors)
{
	struct merge m = {.cfg = cfg,
		.where = where,
		.home = where->home,
		.errors = errors};
	size_t before = errors->list.n + errors->dropped;

	if (config_init(cfg) < 0)
		return out_of_memory(&m, CONFIG_BUILT_IN);
	if (!where->checking || !where->explicit_file)
		load_system(&m);
	if (!where->login)
		load_persons(&m);
	check_together(&m);
	config_fini(&m.base);
	return errors->list.n + errors->dropped == before ? 0 : -1;
}

/* ---- printing ---- */

/* Print one line, and empty `value`. */
static void print_line(FILE *f, const char *prefix, const char *name, int len,
	struct strbuf *value, const char *source)
{
	int n = fprintf(f, "%s%.*s =%s%s", prefix, len, name,
		value->n ? " " : "", strbuf_text(value));

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

/* Print a key; for a list a line for each item, because the lines of a file
 * have a limit. */
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
