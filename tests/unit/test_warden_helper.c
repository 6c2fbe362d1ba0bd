/* SPDX-License-Identifier: MIT */
/*
 * test_warden_helper.c - the warden's helper: one question at a time, its share
 * of a core, and its end where something holds it
 */
#include "jail/warden/look/look.h"

#include "jail/base/io.h"
#include "jail/base/procstat.h"
#include "jail/walls/walls.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#define LONG_MS 20000

struct scene {
	struct work_place place;
	struct helper helper;
	struct work_result a;
};

static int begin(void **state)
{
	struct scene *sc = calloc(1, sizeof(*sc));
	struct err e = {0};
	int m = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (!sc || m < 0 || unlockpt(m) < 0)
		return -1;
	sc->place.tty_master = m;
	sc->place.tty_slave = pty_open_slave(m, O_NONBLOCK, &e);
	sc->place.line = -1;
	sc->place.procs.proc_fd = open("/proc", O_PATH | O_CLOEXEC);
	helper_init(&sc->helper);
	*state = sc;
	return sc->place.tty_slave < 0 || sc->place.procs.proc_fd < 0 ? -1 : 0;
}

static int end(void **state)
{
	struct scene *sc = *state;

	helper_end(&sc->helper);
	close(sc->place.tty_master);
	close(sc->place.tty_slave);
	close(sc->place.procs.proc_fd);
	free(sc);
	return 0;
}

static int ask_size(struct scene *sc, unsigned short rows)
{
	const struct work q = {.what = WORK_SIZE, .rows = rows, .cols = 7};

	return helper_ask(&sc->helper, &sc->place, &q);
}

static int take(struct scene *sc, int stopped)
{
	return helper_take(&sc->helper, LONG_MS, stopped, &sc->a);
}

static unsigned rows_of(const struct scene *sc)
{
	struct winsize w = {0};

	assert_int_equal(ioctl(sc->place.tty_slave, TIOCGWINSZ, &w), 0);
	return w.ws_row;
}

static void await_state(pid_t pid, char state)
{
	int64_t until = now_ms() + LONG_MS;
	struct procstat st = {0};
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	while (st.state != state) {
		assert_int_equal(procstat_read(AT_FDCWD, path, &st), 0);
		assert_true(now_ms() < until);
		usleep(1000);
	}
}

static void it_answers_one_question_at_a_time(void **state)
{
	struct scene *sc = *state;

	assert_int_equal(helper_take(&sc->helper, 0, 0, &sc->a), 0);
	assert_int_equal(ask_size(sc, 5), 0);
	assert_true(helper_is_asked(&sc->helper));
	assert_false(helper_is_free(&sc->helper, HELPER_STOPPED));
	assert_int_equal(ask_size(sc, 6), -1);
	assert_int_equal(take(sc, 1), 1);
	assert_false(helper_is_asked(&sc->helper));
	assert_int_equal(rows_of(sc), 5);
	assert_int_equal(ask_size(sc, 6), 0);
	assert_int_equal(take(sc, 1), 1);
	assert_int_equal(rows_of(sc), 6);
}

static void it_hands_back_keys_and_leaves_output_a_cells(void **state)
{
	const struct work q = {.what = WORK_KEYS};
	struct scene *sc = *state;
	char shown[16];

	/* Without echo. */
	assert_int_equal(pty_set_raw(sc->place.tty_slave, NULL), 0);
	assert_int_equal(write(sc->place.tty_master, "ab", 2), 2);
	assert_int_equal(helper_ask(&sc->helper, &sc->place, &q), 0);
	assert_int_equal(take(sc, 1), 1);
	assert_int_equal(sc->a.nkeys, 2);
	assert_memory_equal(sc->a.keys, "ab", 2);
	/* A process that a cell has left prints. */
	assert_int_equal(write(sc->place.tty_slave, "1\n2\n", 4), 4);
	assert_int_equal(io_read_full(sc->place.tty_master, shown, 6), 6);
	assert_memory_equal(shown, "1\r\n2\r\n", 6);
}

static void it_that_is_held_is_ended_and_another_starts(void **state)
{
	struct scene *sc = *state;
	pid_t first;
	int r;

	assert_int_equal(ask_size(sc, 5), 0);
	assert_int_equal(take(sc, 0), 1);
	first = sc->helper.pid;
	assert_int_equal(kill(first, SIGSTOP), 0);
	await_state(first, 'T');
	assert_int_equal(ask_size(sc, 6), 0);
	/* The processes of a stopped jail hold no helper, so that the warden
	 * waits longer for a busy host. */
	usleep(400 * 1000);
	assert_int_equal(helper_take(&sc->helper, 0, 1, &sc->a), 0);
	while ((r = helper_take(&sc->helper, 10, 0, &sc->a)) == 0)
		;
	assert_int_equal(r, -1);
	assert_false(helper_is_asked(&sc->helper));
	assert_int_equal(rows_of(sc), 5);
	for (int64_t until = now_ms() + LONG_MS; ask_size(sc, 7) < 0;)
		assert_true(now_ms() < until);
	assert_int_equal(take(sc, 0), 1);
	assert_int_not_equal(sc->helper.pid, first);
	assert_int_equal(rows_of(sc), 7);
}

static void its_work_is_a_share_of_a_core(void **state)
{
	struct scene *sc = *state;
	int64_t paid;
	int n = 0;

	while (helper_is_free(&sc->helper, HELPER_CALM)) {
		assert_true(n++ < 100000);
		assert_int_equal(ask_size(sc, 5), 0);
		assert_int_equal(take(sc, 0), 1);
	}
	assert_true(helper_is_free(&sc->helper, HELPER_URGENT));
	/* Of a jail that is stopped for it the cell pays. */
	paid = sc->helper.paid_ms;
	assert_int_equal(sc->helper.cells_ns, 0);
	for (n = 0; n < 100; n++) {
		assert_true(helper_is_free(&sc->helper, HELPER_STOPPED));
		assert_int_equal(ask_size(sc, 5), 0);
		assert_int_equal(take(sc, 1), 1);
	}
	assert_true(sc->helper.cells_ns > 0);
	assert_true(sc->helper.paid_ms == paid);
}

static void without_a_process_nothing_is_asked(void **state)
{
	struct scene *sc = *state;
	struct rlimit all, none;
	int r;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
	none = all;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	r = ask_size(sc, 5);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
	assert_int_equal(r, -1);
	assert_false(helper_is_asked(&sc->helper));
	assert_int_equal(ask_size(sc, 6), 0);
	assert_int_equal(take(sc, 0), 1);
	assert_int_equal(rows_of(sc), 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)
		T(it_answers_one_question_at_a_time),
		T(it_hands_back_keys_and_leaves_output_a_cells),
		T(it_that_is_held_is_ended_and_another_starts),
		T(its_work_is_a_share_of_a_core),
		T(without_a_process_nothing_is_asked),
	};

	return cmocka_run_group_tests_name("warden_helper", tests, NULL, NULL);
}
