/* SPDX-License-Identifier: MIT */
/*
 * collect.c - a table and an archive of what was handed in
 *
 * Runs in:   root: --collect
 * Trusts:    the directories that root's service made (place.c). The files in
 *            them hold a stranger's bytes: tar(1) copies them
 * Leaves:    an archive that is whole, or none
 */
#include "repl/lab/lab.h"

#include "jail/base/io.h"
#include "jail/base/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct collect_out {
	const struct collect *c;
	struct text_table table;
	json_t *list;
	struct strbuf paths; /* for tar: each ends with a NUL */
	size_t people, files;
	time_t now;
	bool failed;
	struct err broken; /* the first person whose records are not whole */
};

/* ---- where ---- */

/* Open what the person named: a descriptor, and its path. */
static int open_place(
	const struct collect *c, char path[static PATH_MAX], struct err *e)
{
	const char *slash = strchr(c->what, '/');
	auto_free char *course = NULL;
	char base[PATH_MAX];
	int n, fd;

	if (geteuid() != 0) {
		err_set(e, "--collect reads what only root can");
		return err_kind_set(e, ERR_USAGE);
	}
	if (c->what[0] == '/') {
		n = snprintf(path, PATH_MAX, "%s", c->what);
	} else {
		if (!slash || !path_is_name(slash + 1)) {
			err_set(e,
				"--collect wants COURSE/EXERCISE, or a "
				"directory, not '%s'",
				c->what);
			return err_kind_set(e, ERR_USAGE);
		}
		course = strndup(c->what, (size_t)(slash - c->what));
		if (!course)
			return err_errno(e, "collect %s", c->what);
		if (!path_is_name(course))
			return err_set(e, "'%s' is no course", course);
		if (place_name(c->lab, course, base, e) < 0)
			return err_hint(e, "name the directory itself, as in "
					   "/srv/submissions/python1/4");
		n = snprintf(path, PATH_MAX, "%s%s", base, slash);
	}
	if (n >= PATH_MAX)
		return err_set(e, "the path is too long");
	fd = place_walk(path, NULL, e);
	if (fd < 0 && access(path, F_OK) < 0 && errno == ENOENT)
		err_hint(e, "nothing was handed in there yet, or it has "
			    "another name");
	return fd;
}

/* ---- what is there ---- */

static const char *iso(char buf[static TEXT_HUMAN], int64_t when_s)
{
	time_t t = (time_t)when_s;
	struct tm tm;

	*buf = '\0';
	if (localtime_r(&t, &tm))
		strftime(buf, TEXT_HUMAN, "%Y-%m-%dT%H:%M:%S%z", &tm);
	return buf;
}

static void add_json(
	struct collect_out *out, const char *person, const struct place_file *f)
{
	char when[TEXT_HUMAN], safe[4 * NAME_MAX + 1];
	bool is_text = utf8_is_visible_text(person, strlen(person));
	json_t *o;

	/* A name service may have accounts whose names are no text. */
	text_safe(safe, sizeof(safe), person, strlen(person));
	o = json_pack("{s:s, s:s, s:I, s:s, s:I, s:s, s:s}", "student",
		is_text ? person : safe, "file", f->name, "version",
		(json_int_t)f->version, "when", iso(when, f->when_s), "bytes",
		(json_int_t)f->bytes, "sha256", f->sha256, "receipt",
		f->receipt);

	out->failed |= json_array_append_new(out->list, o) < 0;
}

static void add_row(
	struct collect_out *out, const char *person, const struct place_file *f)
{
	char who[256], name[300], version[16], when[TEXT_HUMAN],
		size[TEXT_HUMAN];

	text_safe(who, sizeof(who), person, strlen(person));
	text_safe(name, sizeof(name), f->name, strlen(f->name));
	snprintf(version, sizeof(version), "%" PRIu32, f->version);
	text_table_add(&out->table,
		(const char *[]){who, name, version,
			text_moment(when, f->when_s, out->now, true),
			text_size(size, (uint64_t)f->bytes), f->receipt});
}

static int by_name(const void *a, const void *b)
{
	const struct place_file *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* Add the files of a version: all of them, or those that it brought. */
static int add_version(struct collect_out *out, int dir, const char *person,
	uint32_t version, struct err *e)
{
	auto_free struct place_record *r = malloc(sizeof(*r));

	if (!r)
		return err_errno(e, "collect");
	if (place_read(dir, version, r, e) < 0)
		return -1;
	qsort(r->files, r->n, sizeof(r->files[0]), by_name);
	for (size_t i = 0; i < r->n; i++) {
		const struct place_file *f = &r->files[i];

		strbuf_printf(&out->paths, "%s/%" PRIu32 "/%s", person, version,
			f->name);
		strbuf_add(&out->paths, "", 1);
		if (out->c->all && f->version != version)
			continue;
		add_json(out, person, f);
		add_row(out, person, f);
		out->files++;
	}
	return 0;
}

static int add_person(
	struct collect_out *out, int place, const char *person, struct err *e)
{
	const struct path_walk how = {.flags = 0};
	auto_close int dir = path_enter(place, person, &how);
	int64_t newest = dir < 0 ? -1 : place_newest(dir);
	int r = 0;

	if (newest < 0 && errno == ENOTDIR)
		return 0;
	if (newest < 0)
		return err_errno(e, "%s", person);
	out->people += newest > 0;
	for (int64_t v = out->c->all ? 1 : newest; v && v <= newest && r == 0;
		v++)
		r = add_version(out, dir, person, (uint32_t)v, e);
	return r < 0 ? err_wrap(e, "%s", person) : 0;
}

static int in_order(const void *a, const void *b)
{
	return strcoll(*(char *const *)a, *(char *const *)b);
}

static int list_people(struct strlist *names, int place)
{
	DIR *d = io_list(place);
	const struct dirent *entry;
	int r = d ? 0 : -1;

	while (r == 0 && (entry = readdir(d)))
		if (entry->d_name[0] != '.')
			r = strlist_add(names, entry->d_name);
	if (d)
		closedir(d);
	if (names->n)
		qsort(names->items, names->n, sizeof(*names->items), in_order);
	return r;
}

/* Add all people, by name. */
static int add_people(struct collect_out *out, int place, struct err *e)
{
	struct strlist names = {0};
	int r = list_people(&names, place);

	if (r < 0)
		err_errno(e, "list what was handed in");
	for (size_t i = 0; r == 0 && i < names.n; i++) {
		struct err why = {0};

		/* The others are collected all the same. */
		if (add_person(out, place, names.items[i], &why) < 0 &&
			!out->broken.msg[0])
			out->broken = why;
	}
	strlist_fini(&names);
	return r;
}

/* ---- the archive ---- */

/* How tar(1) packs an archive of that name; NULL: we do not know. */
static const char *packing(const char *archive)
{
	static const char *const ends[][2] = {{".tar", "--no-auto-compress"},
		{".tar.gz", "--gzip"}, {".tgz", "--gzip"}, {".tar.xz", "--xz"},
		{".tar.zst", "--zstd"}};
	size_t n = strlen(archive);

	for (size_t i = 0; i < COUNT(ends); i++) {
		size_t len = strlen(ends[i][0]);

		if (n > len && !strcmp(archive + n - len, ends[i][0]))
			return ends[i][1];
	}
	return NULL;
}

/* Have tar(1) read the names at `in`, and write the archive to `to`. */
static int run_tar(const char *dir, const char *how, bool all, int in, int to,
	struct err *e)
{
	/* Without its number, a version has the student's name alone. */
	const char *const argv[] = {"tar", "--create", "--file=-", how,
		"--format=posix", "--pax-option=delete=atime,delete=ctime",
		"--hard-dereference", "--no-recursion", "--owner=root:0",
		"--group=root:0", "--directory", dir, "--null",
		"--verbatim-files-from", "--files-from=-",
		all ? NULL : "--transform=flags=r;s,^\\([^/]*\\)/[0-9]*/,\\1/,",
		NULL};
	posix_spawn_file_actions_t acts;
	int status = 0, r;
	pid_t pid;

	if (posix_spawn_file_actions_init(&acts) != 0)
		return err_set(e, "run tar: no memory");
	posix_spawn_file_actions_adddup2(&acts, in, 0);
	posix_spawn_file_actions_adddup2(&acts, to, 1);
	r = posix_spawnp(
		&pid, "tar", &acts, NULL, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&acts);
	errno = r;
	if (r)
		return err_errno(e, "run tar");
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return err_set(e, "tar failed: the archive was not written");
}

static int write_archive(
	struct collect_out *out, const char *dir, struct err *e)
{
	const char *archive = out->c->archive, *base = path_last(archive);
	auto_free char *above = strndup(archive, (size_t)(base - archive));
	const char *how = packing(archive);
	auto_close int in = -1, to = -1;
	struct io_newfile f;
	int r;

	if (!how)
		return err_set(e,
			"%s: expected a name that ends in .tar, "
			".tar.gz, .tar.xz or .tar.zst",
			archive);
	if (faccessat(AT_FDCWD, archive, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
		err_set(e, "%s is there already, and stays as it is", archive);
		return err_hint(e, "remove it, or name another archive");
	}
	in = io_sealed_memfd("names", strbuf_text(&out->paths), out->paths.n);
	to = above ? open(*above ? above : ".",
			     O_RDONLY | O_DIRECTORY | O_CLOEXEC)
		   : -1;
	if (in < 0 || to < 0 || io_newfile_create(&f, to, 0600) < 0)
		return err_errno(e, "write %s", archive);
	r = run_tar(dir, how, out->c->all, in, f.fd, e);
	if (r == 0 &&
		(fsync(f.fd) < 0 || io_newfile_commit(&f, base, false) < 0))
		r = err_errno(e, "write %s", archive);
	io_newfile_abort(&f);
	return r;
}

/* ---- both ---- */

static int print(struct collect_out *out, FILE *f, struct err *e)
{
	struct strbuf b = {0};
	bool bad = out->failed;

	text_table_write(&out->table, &b);
	bad |= b.failed;
	if (!bad && out->c->json)
		bad = json_dumpf(out->list, f, JSON_INDENT(2)) < 0 ||
		      fputc('\n', f) == EOF;
	else if (!bad)
		fputs(b.s, f);
	strbuf_free(&b);
	return bad ? err_set(e, "collect: no memory") : 0;
}

int collect_run(const struct collect *c, FILE *f, struct err *e)
{
	struct collect_out out = {.c = c,
		.table = {.columns = 6, .width = c->width, .right = 1 << 4},
		.list = json_array(),
		.now = time(NULL)};
	char path[PATH_MAX], files[64], people[64];
	auto_close int place = open_place(c, path, e);
	int r = place < 0 ? -1 : 0;

	text_table_add(
		&out.table, (const char *[]){"STUDENT", "FILE", "VERSION",
				    "WHEN", "SIZE", "RECEIPT"});
	out.failed |= !out.list;
	if (r == 0)
		r = add_people(&out, place, e);
	out.failed |= out.paths.failed || out.table.failed;
	if (r == 0)
		r = print(&out, f, e);
	if (r == 0 && c->archive)
		r = write_archive(&out, path, e);
	if (r == 0 && c->archive && !c->json)
		fprintf(f, "%s has %s of %s\n", c->archive,
			text_count(
				files, sizeof(files), out.files, "file", NULL),
			text_count(people, sizeof(people), out.people, "person",
				"people"));
	text_table_write(&out.table, &out.paths); /* frees the cells */
	json_decref(out.list);
	strbuf_free(&out.paths);
	if (r == 0 && out.broken.msg[0]) {
		*e = out.broken;
		r = -1;
	}
	return r;
}
