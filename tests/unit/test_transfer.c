/* SPDX-License-Identifier: MIT */
/*
 * test_transfer.c - copies between host and home arrive whole, or not at all
 */
#include "transfer_play.h"

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

	s->limits.transfer_count = 2;
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
	/* One of them lies on the mount of the root itself. */
	fd = hostfs_open_file(&s->hostfs, "/etc/passwd", &st, NULL);
	if (fd < 0)
		fd = hostfs_open_file(
			&s->hostfs, "/usr/lib/os-release", &st, NULL);
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
		SCENE(a_file_that_grows_is_not_there_at_all),
		SCENE(a_full_home_is_known_before_it_is_full),
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
