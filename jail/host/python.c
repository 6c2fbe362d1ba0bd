/* SPDX-License-Identifier: MIT */
/*
 * python.c - what must be shown of the host for a Python to start
 *
 * Runs in:   warden, before the plan; front end for --check
 * Trusts:    the host's files, as far as the person who named the path may
 *            read them
 * Leaves:    a struct host_python
 *
 * No program is run to find out. The path is walked as the kernel walks it, and
 * every link on the way is noted: the jail gets the same links. The directory
 * above the real "bin" has to be shown. A virtual environment adds its own
 * directory and the one of the interpreter that pyvenv.cfg names.
 */
#include "host.h"

#include "jail/base/io.h"
#include "jail/base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define LINKS_MAX 40 /* the kernel's own limit on one path */
#define CFG_MAX (64 * 1024)

/* Packages in a store use each other, so the whole store is shown. */
static const char *const stores[] = {"/nix/store", "/gnu/store"};

static int prefix_add(struct host_python *p, const char *dir, struct err *e)
{
	for (size_t i = 0; i < COUNT(stores); i++)
		if (path_is_beneath(dir, stores[i]))
			dir = stores[i];
	for (int i = 0; i < p->nprefixes; i++)
		if (!strcmp(p->prefixes[i], dir))
			return 0;
	if (p->nprefixes == HOST_LIST_MAX)
		return err_set(e, "%s: needs too many directories", p->path);
	p->prefixes[p->nprefixes] = strdup(dir);
	if (!p->prefixes[p->nprefixes])
		return err_errno(e, "%s", p->path);
	p->nprefixes++;
	return 0;
}

static int link_add(struct host_python *p, const char *path, const char *text,
	struct err *e)
{
	struct host_link *l = &p->links[p->nlinks];

	for (int i = 0; i < p->nlinks; i++)
		if (!strcmp(p->links[i].path, path))
			return 0;
	if (p->nlinks == HOST_LIST_MAX)
		return err_set(e, "%s: too many links on the way", p->path);
	l->path = strdup(path);
	l->text = strdup(text);
	p->nlinks++;
	if (!l->path || !l->text)
		return err_errno(e, "%s", p->path);
	return 0;
}

struct walk {
	char real[PATH_MAX]; /* the way so far; "" is the root */
	char rest[PATH_MAX]; /* the way that is left */
	int links;
	const char *path; /* the whole way */
};

static int too_long(const struct host_python *p, struct err *e)
{
	errno = ENAMETOOLONG;
	return err_errno(e, "%s", p->path);
}

/* Note the link `at`, and go on along its text. */
static int walk_link(struct host_python *p, struct walk *w, const char *at,
	const char *text, struct err *e)
{
	char rest[PATH_MAX];

	if (++w->links > LINKS_MAX) {
		errno = ELOOP;
		return err_errno(e, "%s", p->path);
	}
	if (link_add(p, at, text, e) < 0)
		return -1;
	if (text[0] == '/')
		w->real[0] = '\0';
	if (snprintf(rest, sizeof(rest), "%s/%s", text, w->rest) >=
		(int)sizeof(rest))
		return too_long(p, e);
	strcpy(w->rest, rest);
	return 0;
}

/* Walk along the first component of w->rest. */
static int walk_step(struct host_python *p, struct walk *w, struct err *e)
{
	char name[NAME_MAX + 1], at[PATH_MAX], text[PATH_MAX];
	const char *rest = w->rest;
	ssize_t got;

	if (path_next(&rest, name) < 0 ||
		strlen(w->real) + strlen(name) + 2 > sizeof(at))
		return too_long(p, e);
	memmove(w->rest, rest, strlen(rest) + 1);
	if (!name[0] || !strcmp(name, "."))
		return 0;
	if (!strcmp(name, "..")) {
		char *slash = strrchr(w->real, '/');

		if (slash)
			*slash = '\0';
		return 0;
	}
	snprintf(at, sizeof(at), "%s/%s", w->real, name);
	got = readlink(at, text, sizeof(text) - 1);
	if (got >= 0) {
		text[got] = '\0';
		return walk_link(p, w, at, text, e);
	}
	if (errno != EINVAL)
		return w->links ? err_errno(e, "%s leads to %s", w->path, at)
				: err_errno(e, "%s", w->path);
	strcpy(w->real, at);
	return 0;
}

/* Write the real path of `path` to `real`, and note the links on the way. */
static int walk(struct host_python *p, const char *path, char real[PATH_MAX],
	struct err *e)
{
	struct walk w = {.path = path};

	if (strlen(path) >= sizeof(w.rest))
		return too_long(p, e);
	strcpy(w.rest, path);
	while (w.rest[0])
		if (walk_step(p, &w, e) < 0)
			return -1;
	strcpy(real, w.real[0] ? w.real : "/");
	return 0;
}

/* Cut the last component off; "/" stays. */
static void up(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash)
		slash[slash == path] = '\0';
}

/* Show the directory of the program in `dir`; of a "bin" the one above. */
static int prefix_add_for(struct host_python *p, const char *dir, struct err *e)
{
	char prefix[PATH_MAX];
	const char *last = path_last(dir);

	strcpy(prefix, dir);
	if (!strcmp(last, "bin") || !strcmp(last, "sbin"))
		up(prefix);
	return strcmp(prefix, "/") ? prefix_add(p, prefix, e) : 0;
}

/* The value of "home = DIR" in pyvenv.cfg, NUL-terminated in place. */
static char *cfg_home(char *text)
{
	char *save = NULL;

	for (char *line = strtok_r(text, "\r\n", &save); line;
		line = strtok_r(NULL, "\r\n", &save)) {
		char *value = strchr(line, '=');
		size_t n = strcspn(line, " \t=");

		if (!value || n != 4 || strncmp(line, "home", 4))
			continue;
		value += 1 + strspn(value + 1, " \t");
		for (n = strlen(value); n && strchr(" \t", value[n - 1]); n--)
			value[n - 1] = '\0';
		return *value == '/' ? value : NULL;
	}
	return NULL;
}

/* If `dir` is a virtual environment, show it and its interpreter. */
static int venv_add(struct host_python *p, const char *dir, struct err *e)
{
	char path[PATH_MAX], real[PATH_MAX];
	auto_free char *text = NULL;
	char *home;
	size_t n;

	if (snprintf(path, sizeof(path), "%s/pyvenv.cfg", dir) >=
		(int)sizeof(path))
		return 0;
	if (io_read_file(AT_FDCWD, path, CFG_MAX, &text, &n) < 0)
		return errno == ENOENT || errno == ENOTDIR
			       ? 0
			       : err_errno(e, "%s", path);
	if (walk(p, dir, real, e) < 0 || prefix_add(p, real, e) < 0)
		return -1;
	home = cfg_home(text);
	if (!home)
		return 0;
	if (walk(p, home, real, e) < 0)
		return err_wrap(e, "%s: home", path);
	return prefix_add_for(p, real, e);
}

/* Refuse what the kernel cannot start by itself: a script (a shim of pyenv's)
 * needs everything that it calls. */
static int check_program(const char *path, struct err *e)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char magic[4];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(e, "%s", path);
	if (!S_ISREG(st.st_mode) || !(st.st_mode & 0111))
		return err_set(e, "%s: not a program", path);
	if (read(fd, magic, 4) == 4 && !memcmp(magic, "\177ELF", 4))
		return 0;
	err_set(e, "%s: not a program but a script", path);
	return err_hint(e,
		"name the interpreter itself: it is printed by  %s "
		"-c 'import sys; print(sys.executable)'",
		path);
}

static int explain_missing(struct err *e)
{
	if (e && (e->code == ENOENT || e->code == ENOTDIR))
		err_hint(e, "install it (apt install python3), or name "
			    "another with -p PATH");
	return -1;
}

static int resolve(struct host_python *p, struct err *e)
{
	char real[PATH_MAX], dir[PATH_MAX];

	if (walk(p, p->path, real, e) < 0)
		return explain_missing(e);
	if (check_program(real, e) < 0)
		return -1;
	strcpy(dir, p->path);
	up(dir);
	if (venv_add(p, dir, e) < 0)
		return -1;
	up(dir);
	if (strcmp(dir, "/") && venv_add(p, dir, e) < 0)
		return -1;
	up(real);
	return prefix_add_for(p, real, e);
}

static int start(struct host_python *p, const char *path, struct err *e)
{
	if (path[0] != '/')
		return err_set(e, "%.99s is not an absolute path", path);
	if (strlen(path) >= PATH_MAX)
		return err_set(e, "%.99s...: the path is too long", path);
	p->path = strdup(path);
	if (!p->path)
		return err_errno(e, "remember its path");
	return resolve(p, e);
}

int host_python_resolve(struct host_python *p, const char *path, struct err *e)
{
	*p = (struct host_python){.nprefixes = 0};
	if (start(p, path, e) == 0)
		return 0;
	host_python_fini(p);
	err_kind_set(e, ERR_JAIL);
	return err_wrap(e, "python");
}

void host_python_fini(struct host_python *p)
{
	free(p->path);
	for (int i = 0; i < p->nprefixes; i++)
		free(p->prefixes[i]);
	for (int i = 0; i < p->nlinks; i++) {
		free(p->links[i].path);
		free(p->links[i].text);
	}
	memset(p, 0, sizeof(*p));
}
