/* SPDX-License-Identifier: MIT */
/*
 * test_history.c - the history's store
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "repl/edit/editor.h"

/* Each test works in a directory of its own. */
struct place {
	char dir[64];
	char path[128];
	int fd;
};

static int place_make(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	strcpy(p->dir, "/tmp/test_history.XXXXXX");
	if (!mkdtemp(p->dir))
		return -1;
	snprintf(p->path, sizeof(p->path), "%s/history", p->dir);
	p->fd = open(p->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = p;
	return p->fd < 0 ? -1 : 0;
}

static int place_remove(void **state)
{
	struct place *p = *state;

	unlinkat(p->fd, "history", 0);
	unlinkat(p->fd, "other", 0);
	unlinkat(p->fd, "a/b/history", 0);
	unlinkat(p->fd, "a/b", AT_REMOVEDIR);
	unlinkat(p->fd, "a", AT_REMOVEDIR);
	close(p->fd);
	rmdir(p->dir);
	free(p);
	return 0;
}

static struct history *attached(const struct place *p)
{
	struct history *h = history_new();
	struct err e = {0};

	assert_non_null(h);
	if (history_attach(h, p->fd, "history", &e) < 0)
		fail_msg("%s", e.msg);
	return h;
}

static void add(struct history *h, const char *s)
{
	struct err e = {0};

	if (history_add(h, s, strlen(s), &e) < 0)
		fail_msg("%s", e.msg);
}

static void expect(struct history *h, size_t i, const char *want)
{
	size_t n;
	const char *s = history_get(h, i, &n);

	assert_non_null(s);
	assert_string_equal(s, want);
	assert_int_equal(n, strlen(want));
}

static void put(const struct place *p, const char *name, const char *s)
{
	auto_close int fd = openat(
		p->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(io_write_full(fd, s, strlen(s)), 0);
}

static void cells_are_there_in_the_next_session(void **state)
{
	static const char *const cells[] = {"1 + 1", "def f():\n\treturn '\\n'",
		"日本 = 1", "back\\slash\\\n\\", " leading and trailing "};
	struct history *h = attached(*state);

	for (size_t i = 0; i < 5; i++)
		add(h, cells[i]);
	history_free(h);
	h = attached(*state);
	assert_int_equal(history_count(h), 5);
	for (size_t i = 0; i < 5; i++)
		expect(h, i, cells[i]);
	size_t n;

	assert_null(history_get(h, 5, &n));
	assert_int_equal(history_skipped(h), 0);
	history_free(h);
}

static void only_the_person_may_read_the_file(void **state)
{
	struct place *p = *state;
	struct history *h = attached(p);
	struct stat st;
	mode_t mask = umask(0);

	add(h, "x");
	umask(mask);
	assert_int_equal(stat(p->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	history_free(h);
}

static void missing_directories_are_made_private(void **state)
{
	struct place *p = *state;
	struct history *h = history_new();
	char path[192];
	struct stat st;
	struct err e = {0};
	mode_t mask = umask(0);

	snprintf(path, sizeof(path), "%s/a/b/history", p->dir);
	if (history_attach_path(h, path, &e) < 0)
		fail_msg("%s", e.msg);
	umask(mask);
	assert_int_equal(fstatat(p->fd, "a/b", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	add(h, "x");
	assert_int_equal(faccessat(p->fd, "a/b/history", F_OK, 0), 0);
	history_free(h);
}

static void an_empty_name_is_no_directory(void **state)
{
	struct err e = {0};

	(void)state;
	assert_int_equal(history_open_dir("", &e), -1);
	assert_string_equal(e.msg, "the name of the directory is empty");
}

static void repeated_and_empty_cells_are_not_kept(void **state)
{
	struct history *h = attached(*state);

	add(h, "x");
	add(h, "x");
	add(h, "");
	add(h, "y");
	add(h, "x");
	assert_int_equal(history_count(h), 3);
	history_free(h);
}

static void the_newest_match_is_found(void **state)
{
	struct history *h = attached(*state);

	add(h, "import os");
	add(h, "x = 1");
	add(h, "import\nsys");
	assert_int_equal(history_find(h, history_count(h), "import", 6), 2);
	assert_int_equal(history_find(h, 2, "import", 6), 0);
	assert_int_equal(history_find(h, 0, "import", 6), (size_t)-1);
	assert_int_equal(history_find(h, 99, "1", 1), 1);
	history_free(h);
}

/* Every kind of file that must not be touched; the session goes on. */
static void expect_refused(struct place *p, const char *why)
{
	struct history *h = history_new();
	struct err e = {0};

	assert_int_equal(history_attach(h, p->fd, "history", &e), -1);
	if (!strstr(e.msg, why))
		fail_msg("wanted \"%s\" in: %s", why, e.msg);
	add(h, "still remembered");
	expect(h, 0, "still remembered");
	history_free(h);
	unlinkat(p->fd, "history", 0);
}

static void hostile_files_are_refused_and_left_alone(void **state)
{
	struct place *p = *state;
	char *text;
	size_t n;

	put(p, "other", "precious\n");
	assert_int_equal(symlinkat("other", p->fd, "history"), 0);
	expect_refused(p, "symbolic link");
	assert_int_equal(linkat(p->fd, "other", p->fd, "history", 0), 0);
	expect_refused(p, "hard links");
	assert_int_equal(mkfifoat(p->fd, "history", 0600), 0);
	expect_refused(p, "not a regular file");
	put(p, "history", "x\n");
	assert_int_equal(fchmodat(p->fd, "history", 0666, 0), 0);
	expect_refused(p, "others may write");
	put(p, "history", "");
	assert_int_equal(truncate(p->path, 1 << 30), 0);
	expect_refused(p, "too large");
	if (geteuid() == 0) {
		put(p, "history", "x\n");
		assert_int_equal(chown(p->path, 12345, 0), 0);
		expect_refused(p, "belongs to uid 12345");
	}
	assert_int_equal(io_read_file(p->fd, "other", 100, &text, &n), 0);
	assert_string_equal(text, "precious\n");
	free(text);
	put(p, "history", "control\n");
	history_free(attached(p));
}

/* A link put there between the check and the write. */
static void a_link_planted_later_is_not_followed(void **state)
{
	struct place *p = *state;
	struct history *h = attached(p);
	struct err e = {0};
	char *text;
	size_t n;

	put(p, "other", "precious\n");
	assert_int_equal(symlinkat("other", p->fd, "history"), 0);
	assert_int_equal(history_add(h, "x", 1, &e), -1);
	expect(h, 0, "x");
	assert_int_equal(io_read_file(p->fd, "other", 100, &text, &n), 0);
	assert_string_equal(text, "precious\n");
	free(text);
	history_free(h);
}

static void bad_records_are_skipped_and_counted(void **state)
{
	struct place *p = *state;
	struct history *h;

	put(p, "history",
		"good\nesc\033[2J\nbad\\q\n\xFF\xFE\nend\\\nc1\xC2\x9B\n"
		"good too\ncut off");
	h = attached(p);
	assert_int_equal(history_count(h), 2);
	expect(h, 0, "good");
	expect(h, 1, "good too");
	assert_int_equal(history_skipped(h), 6);
	/* The truncated record does not swallow the next one. */
	add(h, "new");
	history_free(h);
	h = attached(p);
	expect(h, history_count(h) - 1, "new");
	history_free(h);
}

static void the_file_stays_small_and_keeps_the_newest_cells(void **state)
{
	struct place *p = *state;
	struct history *h = attached(p);
	struct stat st;
	char cell[10000];
	size_t n;

	for (int i = 0; i < 250; i++) {
		memset(cell, 'a' + i % 26, sizeof(cell));
		snprintf(cell, 16, "%d", i);
		cell[strlen(cell)] = ' ';
		cell[sizeof(cell) - 1] = 0;
		add(h, cell);
		assert_int_equal(stat(p->path, &st), 0);
		assert_true((size_t)st.st_size <= HISTORY_FILE_MAX);
	}
	history_free(h);
	h = attached(p);
	n = history_count(h);
	assert_true(n >= 50 && n <= 110);
	expect(h, n - 1, cell);
	assert_int_equal(history_skipped(h), 0);
	history_free(h);
}

static void a_huge_cell_is_kept_in_memory_only_and_reported(void **state)
{
	struct history *h = attached(*state);
	char *cell = malloc(HISTORY_ENTRY_MAX + 2);
	struct err e = {0};

	memset(cell, 'x', HISTORY_ENTRY_MAX + 1);
	cell[HISTORY_ENTRY_MAX + 1] = 0;
	assert_int_equal(history_add(h, cell, HISTORY_ENTRY_MAX + 1, &e), -1);
	assert_non_null(strstr(e.msg, "this session only"));
	expect(h, 0, cell);
	free(cell);
	history_free(h);
}

#define WRITERS 4
#define CELLS_EACH 60

/* Add cells of `size` bytes that name their writer and number. */
static void writer(struct place *p, int who, size_t size)
{
	struct history *h = history_new();
	char cell[16000];

	if (history_attach(h, p->fd, "history", NULL) < 0)
		_exit(1);
	for (int i = 0; i < CELLS_EACH; i++) {
		int n = snprintf(cell, sizeof(cell), "w%d c%d\n", who, i);

		memset(cell + n, 'a' + who, size - (size_t)n);
		if (history_add(h, cell, size, NULL) < 0)
			_exit(2);
	}
	_exit(0);
}

static struct history *after_writers(struct place *p, size_t size)
{
	int status;

	for (int w = 0; w < WRITERS; w++)
		if (fork() == 0)
			writer(p, w, size);
	for (int w = 0; w < WRITERS; w++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	return attached(p);
}

/* The kept cells of each writer are in order and without a gap, up to the last.
 * Returns the count of cells. */
static size_t expect_no_gaps(struct history *h)
{
	int next[WRITERS] = {-1, -1, -1, -1};

	for (size_t i = 0; i < history_count(h); i++) {
		size_t n;
		const char *s = history_get(h, i, &n);
		int w, c;

		assert_int_equal(sscanf(s, "w%d c%d", &w, &c), 2);
		assert_true(w >= 0 && w < WRITERS);
		if (next[w] >= 0)
			assert_int_equal(c, next[w]);
		next[w] = c + 1;
	}
	for (int w = 0; w < WRITERS; w++)
		assert_true(next[w] < 0 || next[w] == CELLS_EACH);
	assert_int_equal(history_skipped(h), 0);
	return history_count(h);
}

static void parallel_sessions_lose_no_cell(void **state)
{
	struct history *h = after_writers(*state, 1000);

	assert_int_equal(expect_no_gaps(h), WRITERS * CELLS_EACH);
	history_free(h);
}

static void parallel_sessions_survive_compaction(void **state)
{
	struct history *h = after_writers(*state, 15000);
	size_t n = expect_no_gaps(h);

	assert_true(n >= HISTORY_FILE_MAX / 2 / 15000 - 1);
	assert_true(n < WRITERS * CELLS_EACH);
	history_free(h);
}

/* Whether descriptor `fd` of `pid` is open for appending. */
static bool appends(pid_t pid, int fd)
{
	char path[64], line[64];
	unsigned flags = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", (int)pid, fd);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "flags: %o", &flags);
	if (f)
		fclose(f);
	return flags & O_APPEND;
}

/* Wait until process `pid` has opened the file to append, or has ended. */
static void wait_for_open(pid_t pid, const struct place *p)
{
	char link[64], to[192];

	for (;;) {
		siginfo_t info = {0};

		for (int fd = 3; fd < 64; fd++) {
			ssize_t n;

			snprintf(link, sizeof(link), "/proc/%d/fd/%d", (int)pid,
				fd);
			n = readlink(link, to, sizeof(to) - 1);
			to[n > 0 ? n : 0] = 0;
			if (!strcmp(to, p->path) && appends(pid, fd))
				return;
		}
		waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT);
		if (info.si_pid == pid)
			return;
	}
}

/* Another session compacts the file while this one waits for the lock: the
 * cell must land in the new file. True when the writer was in time. */
static bool append_during_rename(struct place *p)
{
	int fd, status;
	pid_t pid;

	put(p, "history", "old\n");
	fd = open(p->path, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	pid = fork();
	if (pid == 0) {
		struct history *h = history_new();

		close(fd);
		if (history_attach(h, p->fd, "history", NULL) < 0)
			_exit(2);
		_exit(history_add(h, "late", 4, NULL) < 0);
	}
	wait_for_open(pid, p);
	put(p, "other", "new\n");
	assert_int_equal(renameat(p->fd, "other", p->fd, "history"), 0);
	close(fd);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
	return status == 0;
}

static void a_cell_is_not_written_to_a_replaced_file(void **state)
{
	struct place *p = *state;
	struct history *h;

	/* The writer gives up when this process releases the lock too late.
	 * Then try again. */
	for (int i = 0; !append_during_rename(p); i++)
		assert_true(i < 100);
	h = attached(p);
	assert_int_equal(history_count(h), 2);
	expect(h, 0, "new");
	expect(h, 1, "late");
	history_free(h);
}

/* A session that was stopped while it held the lock. */
static void a_lock_that_is_never_released_is_reported(void **state)
{
	struct place *p = *state;
	struct history *h = attached(p);
	struct err e = {0};
	int fd;

	add(h, "first");
	fd = open(p->path, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(history_add(h, "second", 6, &e), -1);
	assert_non_null(strstr(e.msg, "lock"));
	expect(h, 1, "second");
	close(fd);
	add(h, "third");
	history_free(h);
}

#define test(f) cmocka_unit_test_setup_teardown(f, place_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(cells_are_there_in_the_next_session),
		test(only_the_person_may_read_the_file),
		test(missing_directories_are_made_private),
		test(an_empty_name_is_no_directory),
		test(repeated_and_empty_cells_are_not_kept),
		test(the_newest_match_is_found),
		test(hostile_files_are_refused_and_left_alone),
		test(a_link_planted_later_is_not_followed),
		test(bad_records_are_skipped_and_counted),
		test(the_file_stays_small_and_keeps_the_newest_cells),
		test(a_huge_cell_is_kept_in_memory_only_and_reported),
		test(parallel_sessions_lose_no_cell),
		test(parallel_sessions_survive_compaction),
		test(a_cell_is_not_written_to_a_replaced_file),
		test(a_lock_that_is_never_released_is_reported),
	};

	return cmocka_run_group_tests_name("history", tests, NULL, NULL);
}
