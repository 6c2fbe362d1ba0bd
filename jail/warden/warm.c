/* SPDX-License-Identifier: MIT */
/*
 * warm.c - a jail that waits for a program has what its Python needs
 *
 * Runs in:   warden, when the jail stands, before its lease
 * Trusts:    the interpreter and its standard library, which are root's; no
 *            packages, which could do something at each start
 * Leaves:    a jail in which nobody has run, as far as anybody can see, but for
 *            a process id that is used. The kernel remembers the names and
 *            inodes that Python looks up: in a new overlay each of them is a
 *            first look, half a millisecond in all. And the program's own
 *            Python, held before it begins (held.c)
 *
 * The counters begin behind it. Where variables for the dynamic linker are
 * configured, neither is done.
 */
#include "jail/warden/parts.h"

#include "jail/base/err.h"
#include "jail/base/io.h"

#include <string.h>

/* Python starts and ends. A run that takes longer is killed: it has looked up
 * enough. */
#define RUN_MS 5000

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
	/* Without packages, and without a file written. */
	static const char *const argv[] = {"-I", "-S", "-B", "-c", "", NULL};
	const struct jail_start start = {.argv = argv};
	auto_close int args = wire_start_seal(&start, e);
	int r = args < 0 ? -1 : guest_spawn(&w->guest, &args, 1, e);

	if (r == 0)
		r = guest_spawn_await(&w->guest, e);
	return r == 0 ? await_end(w, e) : r;
}

static int clear_jail(struct warden *w, struct err *e)
{
	const struct link_pids nobody = {0};
	int32_t killed;
	int r = warden_jail_kill(&w->jail, &nobody, &killed);

	if (r == SESSION_OVER)
		return r;
	guest_end(&w->guest);
	link_deaths_forget(&w->link);
	if (r != 0)
		return err_set(e, "what it left cannot be ended");
	warden_jail_continue(&w->jail, &nobody);
	return 0;
}

/* The next one starts, up to its first instruction. Where that cannot be, it
 * starts when it is asked for. */
static int hold_python(struct warden *w, struct err *e)
{
	struct wire_init m;
	int r;

	if (link_ask(&w->link, INIT_HOLD, NULL, NULL, 0) < 0)
		return err_errno(e, "ask init to hold Python");
	r = link_await(&w->link, INIT_HELD, &m, now_ms() + RUN_MS);
	return r < 0 ? err_set(e, "init does not hold Python") : r;
}

/* True if a variable can have the dynamic linker run other code than that of
 * the interpreter's libraries. */
static int is_for_linker(const char *const *env)
{
	for (; env && *env; env++)
		if (!strncmp(*env, "LD_", 3) ||
			!strncmp(*env, "GLIBC_TUNABLES=", 15))
			return 1;
	return 0;
}

int warm_python(struct warden *w, struct err *e)
{
	int soon = w->spec->prewarm == SPEC_SOON, r;

	if (is_for_linker(w->spec->env))
		return 0;
	r = soon ? 0 : run_python(w, e);
	if (r == 0 && !soon)
		r = clear_jail(w, e);
	if (r == 0)
		r = hold_python(w, e);
	if (r == 0)
		warden_note_rest(w);
	return r < 0 && r != SESSION_OVER ? err_wrap(e, "warm Python up") : r;
}
