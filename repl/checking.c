/* SPDX-License-Identifier: MIT */
/*
 * checking.c - --check-config: the configuration of who asks, and what is wrong
 *              with it; root asks for all
 *
 * Runs in:   front end, instead of a session; nothing is confined
 * Holds:     everything the person has
 * Trusts:    the system's files
 * Leaves:    an exit status
 */
#include "run.h"

#include "jail/base/err.h"
#include "repl/term/term.h"

#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the paths that it names ---- */

static int check_is_there(const char *path, struct err *e)
{
	/* Others may see what this person does not. */
	if (access(path, F_OK) == 0 || errno == EACCES)
		return 0;
	err_errno(e, "look for %s", path);
	return err_kind_set(e, ERR_CONFIG);
}

static int check_directory(const char *path, struct err *e)
{
	struct stat st;

	if (stat(path, &st) < 0)
		err_errno(e, "look for %s", path);
	else if (!S_ISDIR(st.st_mode))
		err_set(e, "%s is no directory", path);
	else
		return 0;
	return err_kind_set(e, ERR_CONFIG);
}

/* Each path of a list must exist. The exit status. */
static int check_each(const struct invocation *r, const struct strlist *list,
	const char *key, int (*check)(const char *path, struct err *e))
{
	int status = 0;

	for (size_t i = 0; i < list->n; i++) {
		struct err e = {0};

		if (check(list->items[i], &e) == 0)
			continue;
		err_hint(&e, "%s (%s)", key, config_source(&r->cfg, key));
		terminal_refuse(&e);
		status = run_exit_status(&e);
	}
	return status;
}

static int check_paths(const struct invocation *r)
{
	const struct strlist home = {
		.items = (char *[]){r->cfg.skeleton}, .n = !!r->cfg.skeleton};
	const struct {
		const char *key;
		const struct strlist *list;
		int (*check)(const char *path, struct err *e);
	} paths[] = {
		{"python.executable", &r->cfg.executable, setup_check_python},
		{"python.packages", &r->cfg.packages, check_directory},
		{"jail.expose", &r->cfg.expose, check_is_there},
		{"home.skeleton", &home, check_directory},
	};
	int status = 0;

	for (size_t i = 0; i < COUNT(paths); i++) {
		int one = check_each(
			r, paths[i].list, paths[i].key, paths[i].check);

		status = status ? status : one;
	}
	return status;
}

/* ---- the files of others ---- */

/* Tell root of an exam that ends after the deadline. It is no error, because a
 * session that ends before the deadline is handed in. */
static void say_late(const struct config *cfg, const char *path)
{
	char text[2 * PATH_MAX + NAME_MAX + 200];

	if (!exam_is_late(cfg, cfg->exam_end_s))
		return;
	snprintf(text, sizeof(text),
		"%s: lab.deadline (%s) is before exam.end: no file is handed "
		"in at the end of this exam",
		path, config_source(cfg, "lab.deadline"));
	terminal_complain(NULL, text);
}

/* Load what the files of one group, or of one person, make of the system's
 * configuration. */
static int check_one(
	struct invocation *r, bool group, const char *name, const char *path)
{
	struct config_errors errors = {0};
	struct config_where where;
	struct config cfg = {0};
	int status;

	run_find_where(r, &where);
	where.user = group ? NULL : name;
	where.groups = &name;
	where.ngroups = group;
	status = config_load(&cfg, &where, &errors) < 0 ? 78 : 0;
	config_errors_print(&errors, terminal_print_line);
	config_errors_fini(&errors);
	if (!status)
		say_late(&cfg, path);
	config_fini(&cfg);
	return status;
}

/* People read the system's files with their own rights; root's umask may have
 * kept them for root. The group of a file may read it instead of everybody. */
static int check_readable(const char *path, mode_t want)
{
	struct config_errors errors = {0};
	struct stat st;

	if (stat(path, &st) < 0 || (st.st_mode & want) == want ||
		(st.st_gid && (st.st_mode >> 3 & want) == want))
		return 0;
	config_errors_add(&errors, path,
		"expected to be readable by everybody (chmod a+r%s)",
		want & S_IXOTH ? "x" : "");
	config_errors_print(&errors, terminal_print_line);
	config_errors_fini(&errors);
	return 78;
}

/* A file for an account or group that does not exist is no error: the account
 * may be made later. But nobody would sit the exam of a misspelt group. */
static void say_whose(const char *path, bool group, const char *name)
{
	char text[PATH_MAX + 2 * NAME_MAX + 64];

	if (group ? !!getgrnam(name) : !!getpwnam(name))
		return;
	snprintf(text, sizeof(text), "%s: there is no %s %s yet", path,
		group ? "group" : "account", name);
	terminal_complain(NULL, text);
}

/* Check a directory of the system's files, and what each of them makes of the
 * configuration where that depends on the person. */
static int check_dir(struct invocation *r, const char *sub)
{
	char path[PATH_MAX + NAME_MAX + 2], name[NAME_MAX + 1];
	int top = snprintf(path, PATH_MAX, "%s/%s", CONFIG_SYSTEM_DIR, sub);
	int status = check_readable(path, S_IROTH | S_IXOTH);
	bool group = !strcmp(sub, "groups");
	DIR *d = opendir(path);
	const struct dirent *de;

	while (d && (de = readdir(d))) {
		size_t n = strlen(de->d_name);

		if (de->d_name[0] == '.' || n < sizeof(".conf") ||
			strcmp(de->d_name + n - 5, ".conf") != 0)
			continue;
		snprintf(path + top, NAME_MAX + 2, "/%s", de->d_name);
		status |= check_readable(path, S_IROTH);
		if (!strcmp(sub, "conf.d"))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)(n - 5), de->d_name);
		status |= check_one(r, group, name, path);
		say_whose(path, group, name);
	}
	if (d)
		closedir(d);
	return status;
}

/* Print the errors in the files of groups and of persons, each beside the
 * system's. The exit status. */
static int check_others(struct invocation *r)
{
	int status = 0;

	if (r->opt.config_file || getuid() != 0)
		return 0;
	status |= check_readable(CONFIG_SYSTEM_DIR, S_IROTH | S_IXOTH);
	status |= check_readable(CONFIG_SYSTEM_DIR "/cellblock.conf", S_IROTH);
	status |= check_dir(r, "conf.d");
	status |= check_dir(r, "groups");
	status |= check_dir(r, "users");
	return status;
}

int checking_run(struct invocation *r)
{
	int status;

	config_print_merged(stdout, &r->cfg);
	status = check_paths(r);
	return status ? status : check_others(r);
}
