/* SPDX-License-Identifier: MIT */
/*
 * test_transfer.c - copies between host and home arrive whole, or not at all
 *
 * The home is a directory of the test's own, and what the warden does with a
 * home is done to that.
 */
#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/jail.h"
#include "jail/walls/home.h"
#include "repl/files/download.h"
#include "repl/files/hostfs.h"
#include "repl/files/ledger.h"
#include "repl/files/manifest.h"
#include "repl/files/transfer.h"
#include "repl/files/upload.h"
#include "repl/text/lexer.h"
#include "tests/lib/defaults.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- a home that is a directory ---- */

struct scene;

struct jail {
	struct home home;
	int opened, created; /* how many questions there were */
	int64_t used_bytes;
	int used_files;
	void (*meanwhile)(struct scene *); /* before files are opened */
	struct scene *scene;
};

/* As jail/client/jail.c takes it apart, sorted. */
static int by_path(const void *a, const void *b)
{
	const struct jail_file *x = a, *y = b;

	return strcmp(x->path, y->path);
}

int jail_home_list(struct jail *j, struct jail_files *out, struct err *e)
{
	auto_close int fd = home_list(&j->home, &out->truncated, e);
	auto_free char *text = NULL;
	size_t n = 0;

	assert_true(fd >= 0);
	*out = (struct jail_files){.v = calloc(10000, sizeof(*out->v))};
	text = calloc(1, 1 << 20);
	n = (size_t)io_read_full(fd, text, 1 << 20);
	for (char *p = text; p < text + n; p += strlen(p) + 1) {
		struct jail_file *f = &out->v[out->n++];
		long long bytes, blocks, mtime;
		unsigned mode;
		int at = 0;

		assert_int_equal(
			sscanf(p, "%c %o %lld %lld %lld %u%n", &f->type, &mode,
				&bytes, &blocks, &mtime, &f->nlink, &at),
			6);
		f->mode = (int)mode;
		f->bytes = bytes;
		f->blocks_bytes = blocks;
		f->mtime_ns = mtime;
		f->path = strdup(p + at + 1);
	}
	qsort(out->v, out->n, sizeof(*out->v), by_path);
	out->used_bytes = j->used_bytes;
	out->used_files = j->used_files;
	return 0;
}

void jail_files_free(struct jail_files *f)
{
	for (size_t i = 0; i < f->n; i++)
		free(f->v[i].path);
	free(f->v);
	*f = (struct jail_files){0};
}

int jail_home_open_many(struct jail *j, const char *const *paths, int n,
	int *fds, struct err *e)
{
	int i = 0;

	j->opened++;
	if (j->meanwhile)
		j->meanwhile(j->scene);
	while (i < n && (fds[i] = home_open(&j->home, paths[i], e)) >= 0)
		i++;
	return i;
}

int jail_home_create_many(struct jail *j, const char *const *paths, int n,
	int mode, int *fds, uint32_t *tokens, struct err *e)
{
	int i = 0;

	j->created++;
	for (; i < n; i++) {
		fds[i] = home_create(
			&j->home, paths[i], (mode_t)mode, &tokens[i], e);
		if (fds[i] < 0)
			break;
		fds[i] = dup(fds[i]); /* the front end has one of its own */
	}
	return i;
}

int jail_home_commit_many(
	struct jail *j, const struct jail_end *ends, int n, struct err *e)
{
	int i = 0;

	while (i < n && home_commit(&j->home, &ends[i], e) == 0)
		i++;
	return i;
}

int jail_home_mkdir_many(struct jail *j, const char *const *paths,
	const struct jail_end *ends, int n, struct err *e)
{
	int i = 0;

	while (i < n && home_mkdir(&j->home, paths[i], &ends[i], e) == 0)
		i++;
	return i;
}

int jail_home_abort(struct jail *j, uint32_t token, struct err *e)
{
	return home_abort(&j->home, token, e);
}

/* ---- the scene ---- */

struct scene {
	char top[64], host[96], out[96], home[96];
	struct jail jail;
	struct hostfs hostfs;
	struct limits limits;
	struct ledger ledger;
	struct transfer t;
	char said[4096], refused[4096], asked[400];
	struct err e; /* of the last transfer */
	bool may_overwrite;
};

static void say(void *arg, const char *lines)
{
	struct scene *s = arg;

	strcat(s->said, lines);
}

static void refuse(void *arg, const struct err *e)
{
	struct scene *s = arg;

	strcat(strcat(s->refused, e->msg), "\n");
}

static bool answer(void *arg, const char *question)
{
	struct scene *s = arg;

	snprintf(s->asked, sizeof(s->asked), "%s", question);
	return s->may_overwrite;
}

static int set_up(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));

	strcpy(s->top, "/tmp/test_transfer.XXXXXX");
	assert_non_null(mkdtemp(s->top));
	snprintf(s->host, sizeof(s->host), "%s/host", s->top);
	snprintf(s->out, sizeof(s->out), "%s/out", s->top);
	snprintf(s->home, sizeof(s->home), "%s/home", s->top);
	assert_int_equal(mkdir(s->host, 0700), 0);
	assert_int_equal(mkdir(s->out, 0700), 0);
	assert_int_equal(mkdir(s->home, 0700), 0);
	home_init(&s->jail.home,
		open(s->home, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	s->jail.scene = s;
	s->limits = default_limits();
	s->t = (struct transfer){.jail = &s->jail,
		.host = &s->hostfs,
		.limits = &s->limits,
		.ledger = &s->ledger,
		.say = say,
		.refuse = refuse,
		.ask = answer,
		.arg = s};
	*state = s;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *s = *state;
	char command[128];

	home_fini(&s->jail.home);
	ledger_free(&s->ledger);
	hostfs_close(&s->hostfs);
	snprintf(command, sizeof(command), "rm -rf '%s'", s->top);
	assert_int_equal(system(command), 0);
	free(s);
	return 0;
}

static void put(const char *dir, const char *name, const char *text)
{
	char path[400];
	auto_close int fd = -1;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(io_write_full(fd, text, strlen(text)), 0);
}

static void expect(const char *dir, const char *name, const char *text)
{
	char path[400], buf[4096] = "";
	auto_close int fd = -1;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_true(io_read_full(fd, buf, sizeof(buf) - 1) >= 0);
	assert_string_equal(buf, text);
}

static int entries(const char *dir)
{
	DIR *d = opendir(dir);
	const struct dirent *entry;
	int n = 0;

	while ((entry = readdir(d)))
		n += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
	closedir(d);
	return n;
}

static int upload(struct scene *s, const char *name, const char *to)
{
	char path[400];
	struct lexer_word w = {.s = path, .pattern = path};

	snprintf(path, sizeof(path), "%s/%s", s->host, name);
	w.is_pattern = strpbrk(name, "*?[") != NULL;
	s->t.done = s->t.failed = s->t.left = 0;
	return upload_run(&s->t, &w, 1, to, &s->e);
}

static int download(struct scene *s, const char *pattern)
{
	char text[400];
	struct lexer_word w = {.s = text, .pattern = text};

	snprintf(text, sizeof(text), "%s", pattern);
	w.is_pattern = strpbrk(pattern, "*?[") != NULL;
	s->t.done = s->t.failed = s->t.left = 0;
	return download_run(&s->t, &w, 1, s->out, &s->e);
}

/* ---- uploads ---- */

static void an_upload_arrives_whole(void **state)
{
	struct scene *s = *state;

	put(s->host, "grades.csv", "a,b\n");
	assert_int_equal(upload(s, "grades.csv", NULL), 0);
	expect(s->home, "grades.csv", "a,b\n");
	assert_string_equal(s->said, "grades.csv  4 B  → /home/grades.csv\n");
	assert_string_equal(s->refused, "");
}

static void a_fifo_that_matches_is_named_and_the_rest_arrives(void **state)
{
	struct scene *s = *state;
	char path[128];

	put(s->host, "a.txt", "a");
	put(s->host, "z.txt", "z");
	snprintf(path, sizeof(path), "%s/fifo", s->host);
	assert_int_equal(mkfifo(path, 0600), 0);
	snprintf(path, sizeof(path), "%s/dir", s->host);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(upload(s, "*", NULL), 0);
	assert_int_equal(s->t.done, 2);
	assert_int_equal(s->t.failed, 1);
	assert_non_null(strstr(s->refused, "fifo is a FIFO"));
	assert_int_equal(entries(s->home), 3);
	expect(s->home, "a.txt", "a");
	expect(s->home, "z.txt", "z");
}

static void a_device_is_refused_without_reading_it(void **state)
{
	struct scene *s = *state;
	char path[] = "/dev/zero";
	struct lexer_word w = {.s = path, .pattern = path};

	assert_int_equal(upload_run(&s->t, &w, 1, NULL, &s->e), -1);
	assert_string_equal(
		s->e.msg, "/dev/zero is a device, not a regular file");
}

static void a_file_over_the_limit_leaves_nothing(void **state)
{
	struct scene *s = *state;

	s->limits.max_file_bytes = 3;
	put(s->host, "big", "four");
	put(s->host, "fits", "abc");
	assert_int_equal(upload(s, "*", NULL), -1);
	assert_non_null(strstr(s->e.msg, "big is 4 B"));
	assert_int_equal(entries(s->home), 0);
	assert_int_equal(upload(s, "f*", NULL), 0);
	expect(s->home, "fits", "abc");
}

/* The size is that of the bytes that came, not what was promised: files of
 * /proc are 0 bytes long. */
static void a_copy_stops_at_its_limit(void **state)
{
	char name[] = "/proc/version";
	struct lexer_word w = {.s = name, .pattern = name};
	struct scene *s = *state;

	assert_int_equal(upload_run(&s->t, &w, 1, "all", &s->e), 0);
	assert_int_equal(s->t.done, 1);
	s->limits.max_file_bytes = 4;
	assert_int_equal(upload_run(&s->t, &w, 1, "cut", &s->e), 0);
	assert_string_equal(s->refused, "/proc/version: larger than 4 B\n");
	assert_int_equal(s->t.done, 1);
	assert_int_equal(entries(s->home), 1);
}

static void more_files_than_allowed_are_refused(void **state)
{
	struct scene *s = *state;

	s->limits.max_count = 2;
	put(s->host, "a", "1");
	put(s->host, "b", "2");
	put(s->host, "c", "3");
	assert_int_equal(upload(s, "*", NULL), -1);
	assert_non_null(strstr(s->e.msg, "no more than 2"));
	assert_int_equal(entries(s->home), 0);
	/* Results that would be lost otherwise: as many as may be. */
	s->t.partial = true;
	put(s->home, "d", "4");
	put(s->home, "e", "5");
	put(s->home, "f", "6");
	assert_int_equal(download(s, "*"), 0);
	assert_int_equal(entries(s->out), 2);
	assert_non_null(
		strstr(s->refused, "1 file was left out: no more than 2"));
}

/* ---- downloads ---- */

static void a_download_arrives_whole(void **state)
{
	struct scene *s = *state;

	put(s->home, "plot.png", "png");
	assert_int_equal(download(s, "plot.png"), 0);
	expect(s->out, "plot.png", "png");
	assert_int_equal(entries(s->out), 1);
}

static void nothing_is_overwritten_without_a_request(void **state)
{
	struct scene *s = *state;

	put(s->home, "a", "new");
	put(s->out, "a", "old");
	assert_int_equal(download(s, "a"), -1);
	expect(s->out, "a", "old");
	assert_int_equal(entries(s->out), 1);
	assert_non_null(strstr(s->asked, "a is there already. Overwrite?"));
	assert_non_null(strstr(s->e.msg, "is there already"));
	s->may_overwrite = true;
	assert_int_equal(download(s, "a"), 0);
	expect(s->out, "a", "new");
	assert_int_equal(entries(s->out), 1);
}

/* A link of that name counts as an existing file and is never followed. */
static void a_link_at_the_target_is_not_followed(void **state)
{
	struct scene *s = *state;
	char link[128];

	put(s->home, "a", "new");
	put(s->host, "victim", "precious");
	snprintf(link, sizeof(link), "%s/a", s->out);
	assert_int_equal(symlink("../host/victim", link), 0);
	assert_int_equal(download(s, "a"), -1);
	expect(s->host, "victim", "precious");
	s->may_overwrite = true;
	assert_int_equal(download(s, "a"), 0);
	expect(s->host, "victim", "precious");
	expect(s->out, "a", "new");
}

static void hostile_names_become_harmless(void **state)
{
	struct scene *s = *state;

	put(s->home, "red\x1b[31m\n.txt", "x");
	put(s->home, "bad\xff.txt", "y");
	assert_int_equal(download(s, "*"), 0);
	assert_int_equal(s->t.done, 2);
	expect(s->out, "red_[31m_.txt", "x");
	expect(s->out, "bad_.txt", "y");
	assert_null(strchr(s->said, '\x1b'));
}

static void special_files_of_the_home_are_refused(void **state)
{
	struct scene *s = *state;

	put(s->home, "a", "1");
	assert_int_equal(mkfifoat(s->jail.home.root, "fifo", 0600), 0);
	assert_int_equal(
		symlinkat("/etc/passwd", s->jail.home.root, "link"), 0);
	assert_int_equal(download(s, "*"), 0);
	assert_int_equal(s->t.done, 1);
	assert_int_equal(s->t.failed, 2);
	assert_int_equal(entries(s->out), 1);
}

static void a_missing_file_is_reported(void **state)
{
	struct scene *s = *state;

	assert_int_equal(download(s, "nothing*"), -1);
	assert_string_equal(
		s->e.msg, "nothing*: there is no such file in the home");
}

/* ---- trees ---- */

static void make(const char *dir, const char *name)
{
	char path[400];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(mkdir(path, 0700), 0);
}

/* Give it a mode and a time that nothing gets by itself. */
static void mark(const char *dir, const char *name, mode_t mode, time_t time)
{
	const struct timespec t[2] = {{.tv_sec = 1}, {time, 123456789}};
	char path[400];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(chmod(path, mode), 0);
	assert_int_equal(utimensat(AT_FDCWD, path, t, 0), 0);
}

static void expect_marked(
	const char *dir, const char *name, mode_t mode, time_t time)
{
	char path[400];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, mode);
	assert_int_equal(st.st_mtim.tv_sec, time);
	assert_int_equal(st.st_mtim.tv_nsec, 123456789);
}

static void link_to(const char *dir, const char *name, const char *target)
{
	char path[400];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(symlink(target, path), 0);
}

static void make_tree(const char *dir)
{
	make(dir, "t");
	make(dir, "t/sub");
	make(dir, "t/empty");
	put(dir, "t/sub/run", "#!");
	put(dir, "t/.hidden", "h");
	mark(dir, "t/sub/run", 0751, 1000000007);
	mark(dir, "t/sub", 0750, 1000000005);
	mark(dir, "t/empty", 0711, 1000000006);
	mark(dir, "t", 0755, 1000000004);
}

static void expect_tree(const char *dir)
{
	expect(dir, "t/sub/run", "#!");
	expect(dir, "t/.hidden", "h");
	expect_marked(dir, "t/sub/run", 0751, 1000000007);
	expect_marked(dir, "t/sub", 0750, 1000000005);
	expect_marked(dir, "t/empty", 0711, 1000000006);
	expect_marked(dir, "t", 0755, 1000000004);
}

static void a_tree_goes_up_and_comes_down_as_it_is(void **state)
{
	struct scene *s = *state;

	make_tree(s->host);
	assert_int_equal(upload(s, "t", NULL), 0);
	assert_string_equal(s->refused, "");
	expect_tree(s->home);
	assert_int_equal(download(s, "t"), 0);
	assert_string_equal(s->refused, "");
	expect_tree(s->out);
}

static void a_tree_gets_another_name_where_there_is_none(void **state)
{
	struct scene *s = *state;

	make_tree(s->host);
	assert_int_equal(upload(s, "t", "new"), 0);
	expect(s->home, "new/sub/run", "#!");
	assert_int_equal(upload(s, "t", "new"), 0);
	expect(s->home, "new/t/sub/run", "#!");
}

static void a_pattern_keeps_the_directories_it_does_not_name(void **state)
{
	struct scene *s = *state;

	make(s->host, "p");
	make(s->host, "p/1");
	make(s->host, "p/2");
	put(s->host, "p/1/x", "one");
	put(s->host, "p/2/x", "two");
	assert_int_equal(upload(s, "p/*/x", NULL), 0);
	expect(s->home, "1/x", "one");
	expect(s->home, "2/x", "two");
	assert_int_equal(upload(s, "p/**/*", "deep/"), 0);
	expect(s->home, "deep/2/x", "two");
	assert_int_equal(download(s, "deep/*"), 0);
	expect(s->out, "1/x", "one");
	expect(s->out, "2/x", "two");
}

static int upload_two(struct scene *s, const char *a, const char *b)
{
	char one[400], two[400];
	struct lexer_word w[2] = {
		{.s = one, .pattern = one}, {.s = two, .pattern = two}};

	snprintf(one, sizeof(one), "%s/%s", s->host, a);
	snprintf(two, sizeof(two), "%s/%s", s->host, b);
	return upload_run(&s->t, w, 2, NULL, &s->e);
}

static void two_things_do_not_become_one(void **state)
{
	struct scene *s = *state;

	make(s->host, "1");
	make(s->host, "2");
	put(s->host, "1/x", "one");
	put(s->host, "2/x", "two");
	assert_int_equal(upload_two(s, "1/x", "2/x"), -1);
	assert_non_null(strstr(s->e.msg, "would both become x"));
	assert_int_equal(entries(s->home), 0);
	/* control: the same thing, said twice */
	assert_int_equal(upload_two(s, "1/x", "1/x"), 0);
	expect(s->home, "x", "one");
	/* names that are made harmless */
	put(s->home, "a\1", "one");
	put(s->home, "a\2", "two");
	assert_int_equal(download(s, "a*"), -1);
	assert_int_equal(entries(s->out), 0);
	s->t.partial = true;
	assert_int_equal(download(s, "a*"), 0);
	expect(s->out, "a_", "one");
	assert_int_equal(s->t.failed, 1);
}

static void nothing_arrives_when_a_source_is_missing(void **state)
{
	struct scene *s = *state;

	put(s->host, "a", "1");
	assert_int_equal(upload_two(s, "a", "b"), -1);
	assert_non_null(strstr(s->e.msg, "/b: No such file"));
	assert_int_equal(entries(s->home), 0);
}

static void what_is_in_the_way_stays(void **state)
{
	struct scene *s = *state;

	make_tree(s->host);
	put(s->home, "t", "a file");
	s->t.overwrite = true;
	assert_int_equal(upload(s, "t", NULL), -1);
	assert_non_null(strstr(s->e.msg, "in the way: not a directory"));
	expect(s->home, "t", "a file");
	make(s->home, "d");
	put(s->host, "d", "a file");
	assert_int_equal(upload(s, "d", NULL), -1);
	assert_non_null(strstr(s->e.msg, "in the way: a directory"));
	assert_int_equal(upload(s, "d", "d"), 0);
	expect(s->home, "d/d", "a file");
	make(s->out, "t");
	assert_int_equal(download(s, "t"), -1);
	assert_non_null(strstr(s->e.msg, "in the way: a directory"));
}

static void links_are_read_within_the_tree_and_not_out_of_it(void **state)
{
	static const char *const left[] = {"out is a link that",
		"far is a link that", "abs is a link", "dir is a link to a dir",
		"loop is a link", "gone"};
	struct scene *s = *state;

	put(s->top, "secret", "s");
	make(s->host, "t");
	make(s->host, "t/d");
	put(s->host, "t/d/f", "f");
	link_to(s->host, "t/in", "d/f");
	link_to(s->host, "t/out", "../../secret");
	link_to(s->host, "t/far", "../t/d/f");
	link_to(s->host, "t/abs", "/etc/passwd");
	link_to(s->host, "t/dir", "d");
	link_to(s->host, "t/loop", "loop");
	link_to(s->host, "t/gone", "nothing");
	assert_int_equal(upload(s, "t", NULL), 0);
	expect(s->home, "t/in", "f");
	for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++)
		if (!strstr(s->refused, left[i]))
			fail_msg("%s: %s", left[i], s->refused);
	assert_int_equal(s->t.done, 2);
	/* control: one that is named */
	assert_int_equal(upload(s, "t/out", NULL), 0);
	expect(s->home, "out", "s");
}

static void links_of_the_home_do_not_become_links(void **state)
{
	struct scene *s = *state;
	char path[400];
	struct stat st;

	put(s->top, "secret", "s");
	make(s->home, "t");
	put(s->home, "t/f", "f");
	link_to(s->home, "t/in", "f");
	link_to(s->home, "t/out", "../../secret");
	link_to(s->home, "t/abs", "/etc/passwd");
	link_to(s->home, "t/dir", ".");
	assert_int_equal(download(s, "t"), 0);
	assert_int_equal(s->t.done, 2);
	assert_int_equal(s->t.failed, 3);
	expect(s->out, "t/in", "f");
	snprintf(path, sizeof(path), "%s/t", s->out);
	assert_int_equal(entries(path), 2);
	snprintf(path, sizeof(path), "%s/t/in", s->out);
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISREG(st.st_mode));
}

/* The jail, or a neighbour on the host, puts a link where the copy goes on. */
static void swap(struct scene *s)
{
	char path[400], away[400];

	if (s->jail.opened != 2)
		return;
	snprintf(path, sizeof(path), "%s/t", s->out);
	snprintf(away, sizeof(away), "%s/away", s->out);
	assert_int_equal(rename(path, away), 0);
	link_to(s->out, "t", s->host);
}

static void no_link_is_followed_that_comes_meanwhile(void **state)
{
	struct scene *s = *state;
	char name[128];

	make(s->home, "t");
	make(s->home, "t/d");
	for (int i = 0; i < 80; i++) {
		snprintf(
			name, sizeof(name), "t/%sf%02d", i > 40 ? "d/" : "", i);
		put(s->home, name, "x");
	}
	s->jail.meanwhile = swap;
	assert_int_equal(download(s, "t"), -1);
	assert_int_equal(s->jail.opened, 2);
	assert_int_equal(entries(s->host), 0);
	/* control */
	s->jail.meanwhile = NULL;
	snprintf(name, sizeof(name), "%s/t", s->out);
	assert_int_equal(unlink(name), 0);
	assert_int_equal(download(s, "t"), 0);
	assert_int_equal(s->t.done, 80);
}

static void a_file_that_grows_is_not_there_at_all(void **state)
{
	struct scene *s = *state;
	char name[] = "/proc/version";
	struct lexer_word w = {.s = name, .pattern = name};

	s->limits.max_file_bytes = 4;
	put(s->home, "old", "good");
	s->t.overwrite = true;
	assert_int_equal(upload_run(&s->t, &w, 1, "old", &s->e), 0);
	assert_string_equal(s->refused, "/proc/version: larger than 4 B\n");
	expect(s->home, "old", "good");
	assert_int_equal(entries(s->home), 1);
}

static void a_full_home_is_known_before_it_is_full(void **state)
{
	struct scene *s = *state;

	s->limits.home_bytes = 1 << 20;
	s->limits.home_files = 10;
	s->jail.used_bytes = (1 << 20) - 4096;
	put(s->host, "a", "1");
	put(s->host, "b", "2");
	assert_int_equal(upload(s, "*", NULL), -1);
	assert_non_null(strstr(s->e.msg, "8 KiB are needed"));
	assert_non_null(
		strstr(s->e.msg, "of 1 MiB (home.size) 4 KiB are free"));
	assert_int_equal(entries(s->home), 0);
	s->jail.used_bytes = 0;
	s->jail.used_files = 9;
	assert_int_equal(upload(s, "*", NULL), -1);
	assert_non_null(strstr(s->e.msg, "of 10 (home.files) 1 are free"));
	assert_int_equal(upload(s, "a", NULL), 0);
}

static void many_files_are_few_questions_and_one_line(void **state)
{
	struct scene *s = *state;
	char name[32];

	make(s->host, "t");
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "t/f%02d", i);
		put(s->host, name, "xy");
	}
	assert_int_equal(upload(s, "t", NULL), 0);
	assert_string_equal(
		s->said, "100 files, 1 directory  200 B  → /home/t\n");
	assert_int_equal(s->jail.created, 4);
	assert_int_equal(download(s, "t"), 0);
	assert_int_equal(s->jail.opened, 4);
	expect(s->out, "t/f99", "xy");
	assert_string_equal(s->refused, "");
}

static void nobody_who_can_be_asked_is_told_of_the_flag(void **state)
{
	struct scene *s = *state;

	put(s->home, "a", "new");
	put(s->home, "b", "new");
	put(s->out, "a", "old");
	s->t.ask = NULL;
	s->t.force = "--overwrite";
	assert_int_equal(download(s, "*"), -1);
	assert_string_equal(s->e.hint, "--overwrite overwrites");
	assert_int_equal(entries(s->out), 1);
	/* Results that would be lost otherwise. */
	s->t.partial = true;
	assert_int_equal(download(s, "*"), 0);
	assert_int_equal(s->t.failed, 1);
	expect(s->out, "a", "old");
	expect(s->out, "b", "new");
	s->t.overwrite = true;
	assert_int_equal(download(s, "*"), 0);
	expect(s->out, "a", "new");
}

/* ---- the ledger ---- */

static void a_skeleton_whose_path_is_too_long_is_refused(void **state)
{
	struct scene *s = *state;
	char dir[2 * PATH_MAX];

	put(s->host, "a", "1");
	memset(dir, '/', sizeof(dir));
	strcpy(dir + sizeof(dir) - 1 - strlen(s->host), s->host);
	assert_int_equal(upload_skeleton(&s->t, dir), -1);
	assert_non_null(strstr(s->refused, "File name too long"));
	assert_int_equal(entries(s->home), 0);
	/* The longest path that fits. */
	strcpy(dir + PATH_MAX - 1 - strlen(s->host), s->host);
	assert_int_equal(strlen(dir), PATH_MAX - 1);
	assert_int_equal(upload_skeleton(&s->t, dir), 0);
	expect(s->home, "a", "1");
}

static void the_ledger_lists_files_that_were_never_downloaded(void **state)
{
	struct scene *s = *state;
	struct jail_files files;
	size_t which[4];
	char cache[400];

	put(s->host, "given", "1");
	upload(s, "given", NULL);
	put(s->home, "kept", "2");
	put(s->home, "lost", "3");
	put(s->home, ".viminfo", "4");
	snprintf(cache, sizeof(cache), "%s/__pycache__", s->home);
	assert_int_equal(mkdir(cache, 0700), 0);
	put(cache, "lost.cpython-311.pyc", "5");
	download(s, "kept");
	assert_int_equal(jail_home_list(&s->jail, &files, NULL), 0);
	assert_int_equal(ledger_unsaved(&s->ledger, &files, which, 4), 1);
	assert_string_equal(files.v[which[0]].path, "lost");
	jail_files_free(&files);
}

/* ---- a locked session ---- */

static void lock(struct scene *s, struct config *cfg)
{
	static char *up[1], *down[1];

	up[0] = s->host;
	down[0] = s->out;
	*cfg = (struct config){.locked = true,
		.upload_from = {.items = up, .n = 1},
		.download_to = {.items = down, .n = 1}};
	assert_int_equal(hostfs_open(&s->hostfs, cfg, "/root", NULL), 0);
}

static void a_locked_session_stays_in_its_directories(void **state)
{
	static const char *const outside[] = {
		"../secret", "./../secret", "link", "dir/../../secret"};
	struct scene *s = *state;
	struct config cfg;
	struct stat st;
	char path[400];
	int fd;

	put(s->top, "secret", "s");
	put(s->host, "mine", "m");
	snprintf(path, sizeof(path), "%s/link", s->host);
	assert_int_equal(symlink("../secret", path), 0);
	lock(s, &cfg);
	for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", s->host, outside[i]);
		assert_int_equal(
			hostfs_open_file(&s->hostfs, path, &st, NULL), -1);
	}
	assert_int_equal(
		hostfs_open_file(&s->hostfs, "/etc/passwd", &st, NULL), -1);
	assert_int_equal(
		hostfs_open_dir(&s->hostfs, HOSTFS_WRITE, s->host, NULL), -1);
	/* control: allowed files work, by path and by name alone */
	fd = hostfs_open_file(&s->hostfs, "mine", &st, NULL);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(upload(s, "mine", NULL), 0);
	expect(s->home, "mine", "m");
}

static void a_locked_session_prints_the_full_path(void **state)
{
	struct lexer_word w = {.s = "a", .pattern = "a"};
	struct scene *s = *state;
	struct config cfg;
	char said[400];

	put(s->home, "a", "12345");
	lock(s, &cfg);
	assert_int_equal(download_run(&s->t, &w, 1, NULL, &s->e), 0);
	snprintf(said, sizeof(said), "a  5 B  → %s/a\n", s->out);
	assert_string_equal(s->said, said);
}

static void the_root_is_a_directory_like_any_other(void **state)
{
	static char *root[1] = {"/"};
	struct config cfg = {
		.locked = true, .upload_from = {.items = root, .n = 1}};
	struct scene *s = *state;
	struct stat st;
	int fd;

	assert_int_equal(hostfs_open(&s->hostfs, &cfg, "/root", NULL), 0);
	fd = hostfs_open_file(&s->hostfs, "/etc/passwd", &st, NULL);
	assert_true(fd >= 0);
	close(fd);
}

/* ---- pure parts ---- */

static void patterns_match_like_a_shell(void **state)
{
	(void)state;
	assert_true(transfer_matches("*.png", "a.png"));
	assert_false(transfer_matches("*.png", "out/a.png"));
	assert_false(transfer_matches("*", ".hidden"));
	assert_true(transfer_matches("out/*.png", "out/a.png"));
	assert_true(transfer_matches("**", "a"));
	assert_true(transfer_matches("**", "a/b/c"));
	assert_true(transfer_matches("**/c", "c"));
	assert_true(transfer_matches("**/c", "a/b/c"));
	assert_false(transfer_matches("**/c", ".git/c"));
	assert_true(transfer_matches("a/**/c", "a/c"));
	assert_false(transfer_matches("a/**/c", "b/c"));
	assert_true(transfer_matches("\\*", "*"));
	assert_false(transfer_matches("\\*", "x"));
	assert_false(transfer_matches("a", "a/b"));
}

/* Many "**" against a long path must end in bounded time. */
static void a_pattern_has_bounded_time(void **state)
{
	char pattern[400] = "", path[400] = "";

	(void)state;
	for (int i = 0; i < 40; i++) {
		strcat(pattern, "**/");
		strcat(path, "a/");
	}
	strcat(pattern, "b");
	strcat(path, "c");
	assert_false(transfer_matches(pattern, path));
}

static void the_fixed_part_of_a_pattern_is_left_out(void **state)
{
	(void)state;
	assert_int_equal(transfer_prefix("*.png"), 0);
	assert_int_equal(transfer_prefix("out/*.png"), 4);
	assert_int_equal(transfer_prefix("a/b*/c"), 2);
	assert_int_equal(transfer_prefix("a\\*b/*.png"), 4);
	assert_int_equal(transfer_prefix("a//b/*"), 4);
}

static void an_invalid_name_is_refused(void **state)
{
	char out[NAME_MAX + 1], longest[NAME_MAX + 2];

	(void)state;
	assert_int_equal(hostfs_safe_name("", out), -1);
	assert_int_equal(hostfs_safe_name(".", out), -1);
	assert_int_equal(hostfs_safe_name("..", out), -1);
	assert_int_equal(hostfs_safe_name("a/b", out), -1);
	memset(longest, 'a', sizeof(longest) - 1);
	longest[NAME_MAX + 1] = '\0';
	assert_int_equal(hostfs_safe_name(longest, out), -1);
	assert_int_equal(hostfs_safe_name("-rf été", out), 0);
	assert_string_equal(out, "-rf été");
}

#define SCENE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE(an_upload_arrives_whole),
		SCENE(a_fifo_that_matches_is_named_and_the_rest_arrives),
		SCENE(a_device_is_refused_without_reading_it),
		SCENE(a_file_over_the_limit_leaves_nothing),
		SCENE(a_copy_stops_at_its_limit),
		SCENE(more_files_than_allowed_are_refused),
		SCENE(a_download_arrives_whole),
		SCENE(nothing_is_overwritten_without_a_request),
		SCENE(a_link_at_the_target_is_not_followed),
		SCENE(hostile_names_become_harmless),
		SCENE(special_files_of_the_home_are_refused),
		SCENE(a_missing_file_is_reported),
		SCENE(a_tree_goes_up_and_comes_down_as_it_is),
		SCENE(a_tree_gets_another_name_where_there_is_none),
		SCENE(a_pattern_keeps_the_directories_it_does_not_name),
		SCENE(two_things_do_not_become_one),
		SCENE(nothing_arrives_when_a_source_is_missing),
		SCENE(what_is_in_the_way_stays),
		SCENE(links_are_read_within_the_tree_and_not_out_of_it),
		SCENE(links_of_the_home_do_not_become_links),
		SCENE(no_link_is_followed_that_comes_meanwhile),
		SCENE(a_file_that_grows_is_not_there_at_all),
		SCENE(a_full_home_is_known_before_it_is_full),
		SCENE(many_files_are_few_questions_and_one_line),
		SCENE(nobody_who_can_be_asked_is_told_of_the_flag),
		SCENE(a_skeleton_whose_path_is_too_long_is_refused),
		SCENE(the_ledger_lists_files_that_were_never_downloaded),
		SCENE(a_locked_session_stays_in_its_directories),
		SCENE(a_locked_session_prints_the_full_path),
		SCENE(the_root_is_a_directory_like_any_other),
		cmocka_unit_test(patterns_match_like_a_shell),
		cmocka_unit_test(a_pattern_has_bounded_time),
		cmocka_unit_test(the_fixed_part_of_a_pattern_is_left_out),
		cmocka_unit_test(an_invalid_name_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
