/* SPDX-License-Identifier: MIT */
/*
 * submission.c - the submissions of a directory
 *
 * Runs in:   front end, confined to reading beneath the directory
 * Trusts:    no name, no link, no file: students wrote them
 * Leaves:    contents in memory, at most as much as a home may hold
 *
 * Each entry of the directory is a submission: a directory with files, or one
 * file, which stands for the program. A directory whose entries are all
 * directories with numbers for names has versions, of which the highest counts.
 * Links, devices and FIFOs are left out, and the result names them. An entry
 * whose name begins with a dot is no submission, and no file of one. The kernel
 * keeps each open beneath the directory, and follows no link.
 */
#include "repl/grade/grade.h"

#include "jail/base/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENTRIES_MAX 100000
/* Deepest directory of a submission. */
#define DEPTH_MAX 16
#define VERSION_MAX 1000000
/* Most things that are named as left out. */
#define LEFT_MAX 20

static int open_entry(int dir, const char *name, int flags)
{
	return openat(dir, name,
		flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static int open_dir(int dir, const char *name)
{
	return open_entry(dir, name, O_RDONLY | O_DIRECTORY);
}

/* The next entry that does not begin with a dot; NULL with errno, which is 0 at
 * the end. */
static const char *next_entry(DIR *d)
{
	struct dirent *e;

	do {
		errno = 0;
		e = readdir(d);
	} while (e && e->d_name[0] == '.');
	return e ? e->d_name : NULL;
}

/* The names in a directory, sorted. 0, or -1 with errno. */
static int list_names(int fd, struct strlist *names)
{
	DIR *d = io_list(fd);
	const char *name;
	int code;

	if (!d)
		return -1;
	while ((name = next_entry(d)) != NULL) {
		errno = names->n == ENTRIES_MAX ? E2BIG : ENOMEM;
		if (names->n == ENTRIES_MAX || strlist_add(names, name) < 0)
			break;
	}
	code = errno;
	closedir(d);
	strlist_sort(names);
	errno = code;
	return code ? -1 : 0;
}

/* ---- the directory ---- */

static bool is_directory(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISDIR(st.st_mode);
}

/* The name of an entry, so that it is text which can be shown anywhere, and no
 * other entry has it. */
static char *make_name(const char *entry)
{
	char doubled[2 * NAME_MAX + 1], shown[sizeof(doubled) * 8];
	size_t n = 0;

	for (; *entry && n + 2 < sizeof(doubled); entry++) {
		if (*entry == '\\')
			doubled[n++] = '\\';
		doubled[n++] = *entry;
	}
	text_safe(shown, sizeof(shown), doubled, n);
	return strdup(shown);
}

static int add_submission(struct submissions *s, const char *entry)
{
	struct submission *u;

	if (array_grow(&s->v, s->n, sizeof(*s->v)) < 0)
		return -1;
	u = &s->v[s->n++];
	*u = (struct submission){.entry = strdup(entry),
		.name = make_name(entry),
		.is_file = !is_directory(s->dir, entry)};
	return u->entry && u->name ? 0 : -1;
}

int submission_list(struct submissions *s, const char *path, struct err *e)
{
	struct strlist names = {0};
	int r = 0;

	*s = (struct submissions){
		.dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
	if (s->dir < 0 || list_names(s->dir, &names) < 0)
		r = err_errno(e, "read the submissions in %s", path);
	for (size_t i = 0; r == 0 && i < names.n; i++)
		if (add_submission(s, names.items[i]) < 0)
			r = err_errno(e, "list the submissions");
	strlist_fini(&names);
	if (r == 0 && !s->n)
		r = err_set(e, "%s has no submissions: it is empty", path);
	return r;
}

void submission_keep(struct submissions *s, size_t n)
{
	while (s->n > n) {
		struct submission *u = &s->v[--s->n];

		submission_drop(u);
		free(u->name);
		free(u->entry);
	}
}

void submission_close(struct submissions *s)
{
	submission_keep(s, 0);
	free(s->v);
	fd_drop(&s->dir);
	*s = (struct submissions){.dir = -1};
}

/* ---- one submission ---- */

/* A submission while it is read. */
struct loading {
	struct submission *u;
	const struct limits *limits;
	int64_t bytes, entries;
	struct err *e;
};

static int leave_out(struct loading *l, const char *path, const char *why)
{
	auto_free char *text = NULL;

	if (l->u->left.n >= LEFT_MAX)
		return 0;
	if (asprintf(&text, "%s: %s", path, why) < 0 ||
		strlist_add(&l->u->left, text) < 0)
		return err_errno(l->e, "hold the submission");
	return 0;
}

static int read_content(struct loading *l, int fd, struct exercise_file *f)
{
	struct stat st;
	ssize_t got;

	if (fstat(fd, &st) < 0)
		return err_errno(l->e, "read %s", f->name);
	if (st.st_size > l->limits->max_file_bytes)
		return err_set(
			l->e, "%.200s is larger than files.max_file", f->name);
	l->bytes += st.st_size;
	if (l->bytes > l->limits->home_bytes)
		return err_set(l->e, "it is larger than home.size");
	f->content = malloc((size_t)st.st_size + 1);
	if (!f->content)
		return err_errno(l->e, "hold %.200s", f->name);
	got = io_read_full(fd, f->content, (size_t)st.st_size);
	if (got < 0)
		return err_errno(l->e, "read %.200s", f->name);
	f->n = (size_t)got;
	l->u->digest = exercise_digest(l->u->digest, f->name, strlen(f->name));
	l->u->digest = exercise_digest(l->u->digest, f->content, f->n);
	return 0;
}

/* Take the open file (not owned) as `path` of the home. */
static int take_file(struct loading *l, int fd, const char *path)
{
	struct exercise_files *files = &l->u->files;
	struct exercise_file *f;

	if (files->n >= (size_t)l->limits->max_count)
		return err_set(l->e, "it has more files than files.max_count");
	if (array_grow(&files->v, files->n, sizeof(*files->v)) < 0)
		return err_errno(l->e, "hold the submission");
	f = &files->v[files->n++];
	*f = (struct exercise_file){.name = strdup(path)};
	return f->name ? read_content(l, fd, f)
		       : err_errno(l->e, "hold the submission");
}

static int load_dir(struct loading *l, int dir, const char *at, int depth);

static int load_entry(
	struct loading *l, int dir, const char *name, const char *at, int depth)
{
	auto_close int fd = -1;
	auto_free char *path = NULL;
	struct stat st;

	if (++l->entries > 4 * (int64_t)l->limits->max_count)
		return err_set(l->e, "it has too many entries");
	if (asprintf(&path, "%s%s%s", at, *at ? "/" : "", name) < 0) {
		path = NULL;
		return err_errno(l->e, "hold the submission");
	}
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_errno(l->e, "read %.200s", path);
	if (S_ISLNK(st.st_mode))
		return leave_out(l, path, "a link");
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return leave_out(l, path, "neither file nor directory");
	fd = open_entry(dir, name, O_RDONLY);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(l->e, "read %.200s", path);
	if (S_ISREG(st.st_mode))
		return take_file(l, fd, path);
	if (!S_ISDIR(st.st_mode))
		return leave_out(l, path, "neither file nor directory");
	if (depth == DEPTH_MAX)
		return leave_out(l, path, "too deep");
	return load_dir(l, fd, path, depth + 1);
}

static int load_dir(struct loading *l, int dir, const char *at, int depth)
{
	struct strlist names = {0};
	int r = list_names(dir, &names) < 0
			? err_errno(l->e, "read %.200s", *at ? at : "it")
			: 0;

	for (size_t i = 0; r == 0 && i < names.n; i++)
		r = load_entry(l, dir, names.items[i], at, depth);
	strlist_fini(&names);
	return r;
}

static int read_version(const char *name)
{
	char *end;
	long n = strtol(name, &end, 10);

	return *name >= '1' && *name <= '9' && !*end && n <= VERSION_MAX
		       ? (int)n
		       : 0;
}

/* The highest version that a directory has; 0: it has no versions. */
static int find_version(int dir)
{
	struct strlist names = {0};
	bool all = list_names(dir, &names) == 0;
	int highest = 0;

	for (size_t i = 0; all && i < names.n; i++) {
		int n = read_version(names.items[i]);

		all = n && is_directory(dir, names.items[i]);
		if (n > highest)
			highest = n;
	}
	strlist_fini(&names);
	return all ? highest : 0;
}

/* 0, or -1 with e: a file that must be there is not. */
static int check_complete(
	const struct submission *u, const struct exercise *p, struct err *e)
{
	for (size_t i = 0; i < p->files.n; i++) {
		size_t k = 0;

		while (k < u->files.n &&
			strcmp(u->files.v[k].name, p->files.items[i]) != 0)
			k++;
		if (k == u->files.n)
			return err_set(e, "%s is missing%s%s",
				p->files.items[i],
				u->left.n ? " · left out: " : "",
				u->left.n ? u->left.items[0] : "");
	}
	return 0;
}

/* Open the directory of the newest version (or of the submission), or the one
 * file. Descriptor, or -1 with e. */
static int open_newest(
	const struct submissions *s, struct submission *u, struct err *e)
{
	auto_close int fd = u->is_file ? open_entry(s->dir, u->entry, O_RDONLY)
				       : open_dir(s->dir, u->entry);
	char number[16];
	struct stat st;
	int below;

	if (fd < 0 && errno == ELOOP)
		return err_set(e, "it is a link");
	if (fd < 0 && errno != ENXIO)
		return err_errno(e, "read it");
	if (fd < 0 || fstat(fd, &st) < 0 ||
		(!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
		return err_set(e, "it is neither a file nor a directory");
	u->version = u->is_file ? 0 : find_version(fd);
	if (!u->version)
		return fd_take(&fd);
	snprintf(number, sizeof(number), "%d", u->version);
	below = open_dir(fd, number);
	return below < 0 ? err_errno(e, "read version %d", u->version) : below;
}

int submission_load(const struct submissions *s, struct submission *u,
	const struct exercise *p, const struct limits *limits, struct err *e)
{
	struct loading l = {.u = u, .limits = limits, .e = e};
	auto_close int fd = -1;
	int r;

	u->digest = EXERCISE_DIGEST;
	fd = open_newest(s, u, e);
	u->digest = exercise_digest(u->digest, &u->version, sizeof(u->version));
	if (fd < 0)
		return -1;
	r = u->is_file ? take_file(&l, fd, p->program)
		       : load_dir(&l, fd, "", 0);
	return r < 0 ? -1 : check_complete(u, p, e);
}

void submission_drop(struct submission *u)
{
	for (size_t i = 0; i < u->files.n; i++) {
		free(u->files.v[i].name);
		free(u->files.v[i].content);
	}
	free(u->files.v);
	u->files = (struct exercise_files){0};
	strlist_fini(&u->left);
}
