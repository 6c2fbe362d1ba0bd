/* SPDX-License-Identifier: MIT */
/*
 * test_transfer_trees.c - directories, links and several sources at once arrive
 * as they are, or not at all
 */
#include "transfer_play.h"

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

/* A directory comes after what is in it, which changes its time. */
static const struct {
	const char *name;
	mode_t mode;
	time_t time;
} marks[] = {
	{"t/sub/run", 0751, 1000000007},
	{"t/sub", 0750, 1000000005},
	{"t/empty", 0711, 1000000006},
	{"t", 0755, 1000000004},
};

static void make_tree(const char *dir)
{
	make(dir, "t");
	make(dir, "t/sub");
	make(dir, "t/empty");
	put(dir, "t/sub/run", "#!");
	put(dir, "t/.hidden", "h");
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		mark(dir, marks[i].name, marks[i].mode, marks[i].time);
}

static void expect_tree(const char *dir)
{
	expect(dir, "t/sub/run", "#!");
	expect(dir, "t/.hidden", "h");
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		expect_marked(dir, marks[i].name, marks[i].mode, marks[i].time);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE(a_tree_goes_up_and_comes_down_as_it_is),
		SCENE(a_tree_gets_another_name_where_there_is_none),
		SCENE(a_pattern_keeps_the_directories_it_does_not_name),
		SCENE(two_things_do_not_become_one),
		SCENE(nothing_arrives_when_a_source_is_missing),
		SCENE(what_is_in_the_way_stays),
		SCENE(links_are_read_within_the_tree_and_not_out_of_it),
		SCENE(links_of_the_home_do_not_become_links),
		SCENE(no_link_is_followed_that_comes_meanwhile),
		SCENE(many_files_are_few_questions_and_one_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
