/* SPDX-License-Identifier: MIT */
/*
 * test_pty.c - the terminal a cell starts with
 *
 * Every test has a devpts of its own, like a jail.
 */
#include "jail/walls/walls.h"

#include "jail/base/io.h"

#include "own_ns.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <termios.h>

#define WAIT_MS 10000

struct pair {
	int pts, master, slave;
};

static struct pair pair_open(void)
{
	struct mount_root r = {.path = "/tmp"};
	struct err e = {0};
	struct pair p;

	own_ns_enter(0);
	r.fd = mount_tmpfs_over("/tmp", "", 0, &e);
	CHILD_CHECK(r.fd >= 0, "%s", e.msg);
	CHILD_CHECK(mount_fs(&r, "devpts", "/pts",
			    "newinstance,ptmxmode=0666,mode=0600,max=4", 0,
			    &e) == 0,
		"%s", e.msg);
	p.pts = mount_open_dir(&r, "/pts", &e);
	CHILD_CHECK(p.pts >= 0, "%s", e.msg);
	CHILD_CHECK(pty_open_pair(p.pts, &p.master, &p.slave, &e) == 0, "%s",
		e.msg);
	return p;
}

/* Read until the bytes end with `want`, or the deadline passes. */
static int comes(int fd, const char *want)
{
	char got[256];
	size_t n = 0, len = strlen(want);
	int64_t end = now_ms() + WAIT_MS;

	while (n < sizeof(got) - 1 && now_ms() < end) {
		struct pollfd pf = {.fd = fd, .events = POLLIN};

		if (poll(&pf, 1, 100) <= 0)
			continue;
		if (read(fd, got + n, 1) != 1)
			break;
		n++;
		if (n >= len && !memcmp(got + n - len, want, len))
			return 1;
	}
	got[n] = '\0';
	fprintf(stderr, "wanted \"%s\", got \"%s\"\n", want, got);
	return 0;
}

static int is_silent(int fd)
{
	struct pollfd pf = {.fd = fd, .events = POLLIN};

	return poll(&pf, 1, 0) == 0;
}

/* Change every setting that a guest can change. */
static void spoil(int slave)
{
	struct termios t;

	CHILD_CHECK(tcgetattr(slave, &t) == 0, "%m");
	memset(t.c_cc, 'x', sizeof(t.c_cc));
	t.c_iflag = ISTRIP | IXON | IXOFF | INLCR | IGNCR | IUCLC;
	t.c_oflag = OLCUC;
	t.c_lflag = TOSTOP | FLUSHO;
	CHILD_CHECK(tcsetattr(slave, TCSANOW, &t) == 0, "%m");
	CHILD_CHECK(tcflow(slave, TCOOFF) == 0, "%m");
}

static int child_cooked(void *arg)
{
	struct pair p = pair_open();
	struct err e = {0};

	(void)arg;
	spoil(p.slave);
	CHILD_CHECK(pty_set_cooked(p.slave, &e) == 0, "%s", e.msg);
	CHILD_CHECK(write(p.master, "ab\177c\r", 5) == 5, "%m");
	CHILD_CHECK(comes(p.slave, "ac\n"), "input by the line");
	CHILD_CHECK(comes(p.master, "ab\b \bc\r\n"), "echo");
	CHILD_CHECK(write(p.slave, "out\n", 4) == 4, "%m");
	CHILD_CHECK(comes(p.master, "out\r\n"), "output");
	/* No flow control, no suspend: ordinary keys. */
	CHILD_CHECK(write(p.master, "\023\021\032\n", 4) == 4, "%m");
	CHILD_CHECK(comes(p.slave, "\023\021\032\n"), "keys");
	return 0;
}

static void a_cell_starts_with_an_ordinary_terminal(void **state)
{
	(void)state;
	own_ns_run(child_cooked, NULL);
}

static volatile sig_atomic_t got_signal;

static void on_signal(int sig)
{
	got_signal = sig;
}

/* Lead the pty's session, so that its signals come here. */
static void lead(const struct pair *p)
{
	CHILD_CHECK(setsid() >= 0, "%m");
	CHILD_CHECK(ioctl(p->slave, TIOCSCTTY, 0) == 0, "%m");
	signal(SIGINT, on_signal);
	signal(SIGQUIT, on_signal);
	signal(SIGTSTP, on_signal);
	signal(SIGHUP, SIG_IGN);
}

static int child_signals(void *arg)
{
	struct pair p = pair_open();
	struct err e = {0};

	(void)arg;
	lead(&p);
	CHILD_CHECK(pty_set_cooked(p.slave, &e) == 0, "%s", e.msg);
	CHILD_CHECK(pty_interrupt(p.master) == 0, "%m");
	CHILD_CHECK(got_signal == SIGINT, "%d", got_signal);
	got_signal = 0;
	/* Ctrl-C discards no pending output. */
	CHILD_CHECK(write(p.slave, "kept", 4) == 4, "%m");
	CHILD_CHECK(write(p.master, "typed\003\n", 7) == 7, "%m");
	CHILD_CHECK(comes(p.master, "kepttyped^C\r\n"), "output was flushed");
	CHILD_CHECK(comes(p.slave, "typed\n"), "input was flushed");
	CHILD_CHECK(got_signal == SIGINT, "%d", got_signal);
	got_signal = 0;
	CHILD_CHECK(write(p.master, "\032x\n", 3) == 3, "%m");
	CHILD_CHECK(comes(p.slave, "\032x\n"), "Ctrl-Z is a key");
	CHILD_CHECK(got_signal == 0, "%d", got_signal);
	return 0;
}

static void ctrl_c_interrupts_and_ctrl_z_does_not_stop(void **state)
{
	(void)state;
	own_ns_run(child_signals, NULL);
}

static int child_raw(void *arg)
{
	struct pair p = pair_open();
	struct err e = {0};
	char all[256], back[256];

	(void)arg;
	spoil(p.slave);
	CHILD_CHECK(tcflow(p.slave, TCOON) == 0, "%m");
	CHILD_CHECK(pty_set_raw(p.slave, &e) == 0, "%s", e.msg);
	for (int i = 0; i < 256; i++)
		all[i] = (char)i;
	CHILD_CHECK(write(p.master, all, 256) == 256, "%m");
	CHILD_CHECK(io_read_full(p.slave, back, 256) == 256, "%m");
	CHILD_CHECK(!memcmp(all, back, 256), "changed on the way in");
	CHILD_CHECK(is_silent(p.master), "echo");
	CHILD_CHECK(write(p.slave, all, 256) == 256, "%m");
	CHILD_CHECK(io_read_full(p.master, back, 256) == 256, "%m");
	CHILD_CHECK(!memcmp(all, back, 256), "changed on the way out");
	return 0;
}

static void a_raw_tty_carries_every_byte(void **state)
{
	(void)state;
	own_ns_run(child_raw, NULL);
}

static int child_keys(void *arg)
{
	struct pair p = pair_open();
	struct err e = {0};

	(void)arg;
	spoil(p.slave);
	CHILD_CHECK(tcflow(p.slave, TCOON) == 0, "%m");
	CHILD_CHECK(pty_set_keys(p.slave, &e) == 0, "%s", e.msg);
	CHILD_CHECK(write(p.master, "a\r\003", 3) == 3, "%m");
	CHILD_CHECK(comes(p.slave, "a\r\003"), "a key was changed");
	CHILD_CHECK(is_silent(p.master), "echo");
	CHILD_CHECK(write(p.slave, "1\n2\n", 4) == 4, "%m");
	CHILD_CHECK(comes(p.master, "1\r\n2\r\n"), "output is not a cell's");
	return 0;
}

static void keys_are_taken_as_they_are_and_output_stays_a_cells(void **state)
{
	(void)state;
	own_ns_run(child_keys, NULL);
}

static int child_open(void *arg)
{
	struct pair p = pair_open();
	struct err e = {0};
	struct winsize w;
	int m, s, extra = 0;

	(void)arg;
	CHILD_CHECK(fcntl(p.master, F_GETFD) & FD_CLOEXEC, "master");
	CHILD_CHECK(fcntl(p.slave, F_GETFD) & FD_CLOEXEC, "slave");
	CHILD_CHECK(setsid() >= 0, "%m");
	CHILD_CHECK(pty_open_pair(p.pts, &m, &s, &e) == 0, "%s", e.msg);
	CHILD_CHECK(open("/dev/tty", O_RDWR) < 0, "it is the controlling one");
	CHILD_CHECK(pty_set_size(m, 33, 77, &e) == 0, "%s", e.msg);
	CHILD_CHECK(ioctl(s, TIOCGWINSZ, &w) == 0 && w.ws_row == 33 &&
			    w.ws_col == 77,
		"%d %d", w.ws_row, w.ws_col);
	while (extra < 8 && pty_open_pair(p.pts, &m, &s, &e) == 0)
		extra++;
	CHILD_CHECK(extra == 2, "max=4 is not kept: %d more", extra);
	CHILD_CHECK(strstr(e.msg, "ptmx"), "%s", e.msg);
	return 0;
}

static void a_pty_is_private_sized_and_bounded(void **state)
{
	(void)state;
	own_ns_run(child_open, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cell_starts_with_an_ordinary_terminal),
		cmocka_unit_test(ctrl_c_interrupts_and_ctrl_z_does_not_stop),
		cmocka_unit_test(a_raw_tty_carries_every_byte),
		cmocka_unit_test(
			keys_are_taken_as_they_are_and_output_stays_a_cells),
		cmocka_unit_test(a_pty_is_private_sized_and_bounded),
	};

	return cmocka_run_group_tests_name("pty", tests, NULL, NULL);
}
