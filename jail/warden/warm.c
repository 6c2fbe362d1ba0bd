/* SPDX-License-Identifier: MIT */
/*
 * warm.c - Python has run once in a jail that was made ahead for a program
 *
 * Runs in:   warden, when the jail stands, before its claim
 * Trusts:    that Python for nothing: files that end in .pth run code in it
 * Leaves:    a jail in which nobody runs, and nothing has changed but what the
 *            kernel remembers: the names and inodes that Python looks up. In a
 *            new overlay each of them is a first look, 1 ms in all
 *
 * While it runs, no file system of the jail takes a write, not even of a time
 * stamp. What it leaves running is killed, the ttys are set anew, and the
 * counters begin behind it.
 */
#include "warm.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/walls/mount.h"
#include "warden.h"

#include <termios.h>

/* Python starts and ends. What takes longer is killed: it has looked up enough.
 */
#define RUN_MS 5000

static int protect(struct warden *w, int protect, struct err *e)
{
	static const char *const on[APPLY_TMPFS] = {"/tmp", "/dev/shm"};
	int r = mount_protect(w->site.home.root, protect, "/home", e);

	for (int i = 0; i < APPLY_TMPFS && r == 0; i++)
		if (w->jail.tmp[i] >= 0)
			r = mount_protect(w->jail.tmp[i], protect, on[i], e);
	return r;
}

static int await_end(struct warden *w, struct err *e)
{
	int64_t deadline = now_ms() + RUN_MS;
	struct wire_init m;
	int ready;

	while (guest_is_alive(&w->guest) && link_ms_until(deadline) > 0) {
		if (link_wait(&w->link, -1, deadline, &ready) == SESSION_OVER)
			return SESSION_OVER;
		if (ready && link_take(&w->link, &m, NULL, 0) < 0)
			return err_set(e, "the jail died");
	}
	return 0;
}

static int run_python(struct warden *w, struct err *e)
{
	static const char *const argv[] = {"-c", "pass", NULL};
	const struct jail_start start = {.argv = argv};
	auto_close int args = wire_start_seal(&start, e);
	int r = args < 0 ? -1 : guest_spawn(&w->guest, &args, 1, e);

	if (r == 0)
		r = guest_spawn_await(&w->guest, e);
	return r == 0 ? await_end(w, e) : r;
}

static int clear(struct warden *w, struct err *e)
{
	const struct link_pids nobody = {0};
	int32_t killed;
	int r = warden_jail_kill(&w->jail, &nobody, &killed);

	if (r == SESSION_OVER)
		return r;
	guest_end(&w->guest);
	link_deaths_forget(&w->link);
	tcflush(w->jail.tty_slave, TCIOFLUSH);
	tcflush(w->jail.tty_master, TCIOFLUSH);
	if (r != 0 || warden_jail_set_ttys(&w->jail) < 0)
		return err_set(e, "what it left cannot be ended");
	warden_jail_continue(&w->jail, &nobody);
	return protect(w, 0, e);
}

int warm_python(struct warden *w, struct err *e)
{
	int r;

	/* Where that cannot be, nothing runs ahead. */
	if (protect(w, 1, NULL) < 0)
		return protect(w, 0, e);
	r = run_python(w, e);
	if (r == 0)
		r = clear(w, e);
	if (r == 0)
		early_note_rest(&w->early);
	return r < 0 && r != SESSION_OVER ? err_wrap(e, "warm Python up") : r;
}
