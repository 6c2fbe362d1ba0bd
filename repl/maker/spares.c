/* SPDX-License-Identifier: MIT */
/*
 * spares.c - the jails that the service makes ahead
 *
 * Runs in:   root's service (counts and begins spares); its children (each
 *            leases one)
 * Trusts:    the system's configuration
 * Leaves:    nothing: spares end with the shelf, however the service ends
 *
 * Each spare has a row in shared memory; its sockets are on the shelf. The
 * service makes spares one by one, while no client asks, and leaves the cores
 * to a program that has just begun.
 */
#include "repl/maker/maker.h"

#include "jail/base/err.h"
#include "jail/base/io.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ROWS (SPARES_KINDS * SPARES_MOST)
/* After a client asks we begin no spare for so long. */
#define REST_MS 20
/* After a program has its jail we begin no spare for PROGRAM_MS, or until
 * ENDED_MS after the program's end. */
#define PROGRAM_MS 50
#define ENDED_MS 2
/* When two clients get sessions within this time, more clients will come: we
 * then make programs' spares as SPEC_SOON. */
#define SOON_MS 100
/* The pause of a kind after a failure. */
#define FAILURE_MS 20000
/* A spare that does not fit stays for other clients until this age. An older
 * one may be from an old configuration. */
#define KEEP_MS 60000

enum row_state { ROW_FREE, ROW_MADE, ROW_SHELVED };

struct spares_row {
	_Atomic int state;
	enum spec_mode mode;
	pid_t pid;
	int64_t since_ms;
	struct spare_key key;
};

struct spares_shared {
	_Atomic pid_t program; /* the warden of the last one, or 0 */
	struct spares_row rows[ROWS];
};

int spares_open(
	struct spares *s, int most, spares_make *make, void *arg, struct err *e)
{
	void *shared = mmap(NULL, sizeof(*s->shared), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	*s = (struct spares){.stock = {.n = SPARES_KINDS, .at_once = 1},
		.making = {.front = -1, .lease = -1},
		.make = make,
		.arg = arg};
	memset(s->shelf, -1, sizeof(s->shelf));
	if (shared == MAP_FAILED)
		return err_errno(e, "make jails ahead");
	s->shared = shared;
	for (int i = 0; i < SPARES_KINDS; i++) {
		s->kinds[i].ahead = most;
		if (spare_shelf_open(s->shelf[i], e) < 0)
			return -1;
	}
	spares_rest(s, true);
	return 0;
}

void spares_close(struct spares *s)
{
	if (!s->shared) /* never opened */
		return;
	spare_close(&s->making);
	for (int i = 0; i < SPARES_KINDS; i++) {
		fd_drop(&s->shelf[i][0]);
		fd_drop(&s->shelf[i][1]);
	}
}

/* ---- the service ---- */

static bool is_making(const struct spares *s)
{
	return s->making.front >= 0;
}

/* The spare to begin next. */
static struct stock_next find_next(struct spares *s)
{
	s->stock.kinds = s->kinds;
	s->stock.room = ROWS;
	for (int i = 0; i < SPARES_KINDS; i++)
		s->kinds[i].have = s->kinds[i].making = 0;
	for (int i = 0; i < ROWS; i++) {
		const struct spares_row *row = &s->shared->rows[i];

		if (row->state == ROW_FREE)
			continue;
		s->kinds[row->mode].have++;
		s->stock.room--;
	}
	if (is_making(s))
		s->kinds[s->shared->rows[s->making.number].mode].making = 1;
	return stock_next(&s->stock);
}

static void fail(struct spares *s, enum spec_mode mode)
{
	s->kinds[mode].again_ms = now_ms() + FAILURE_MS;
}

static void begin(struct spares *s, enum spec_mode mode)
{
	struct spare its = {.front = -1, .lease = -1};
	struct spares_row *row = s->shared->rows;
	pid_t pid;

	while (row->state != ROW_FREE)
		row++;
	if (spare_open(&s->making, &its) < 0) {
		fail(s, mode);
		return;
	}
	s->making.number = (uint32_t)(row - s->shared->rows);
	row->mode = mode;
	row->state = ROW_MADE;
	pid = fork();
	if (pid == 0) {
		s->make(s->arg, mode, s->soon ? SPEC_SOON : SPEC_AHEAD, &its,
			&row->key);
		_exit(1);
	}
	row->pid = pid;
	spare_close(&its);
}

/* Shelve the spare in the making, which is ready or has failed. */
static void take(struct spares *s)
{
	struct spares_row *row = &s->shared->rows[s->making.number];
	int *shelf = s->shelf[row->mode];

	row->since_ms = now_ms();
	row->state = ROW_SHELVED;
	if (spare_is_alive(&s->making) && spare_put(shelf, &s->making) == 0)
		return;
	row->state = ROW_FREE;
	spare_close(&s->making);
	fail(s, row->mode);
}

int spares_count(const struct spares *s)
{
	int n = 0;

	for (int i = 0; i < ROWS; i++)
		n += s->shared->rows[i].state == ROW_SHELVED;
	return n;
}

struct pollfd spares_poll(const struct spares *s)
{
	return (struct pollfd){.fd = s->making.lease, .events = POLLIN};
}

int spares_timeout_ms(struct spares *s)
{
	const struct stock_next next = find_next(s);
	int64_t left = next.when_ms - now_ms();

	return next.kind < 0 ? -1 : left > 0 ? (int)left : 0;
}

void spares_turn(struct spares *s)
{
	struct pollfd p = spares_poll(s);
	struct stock_next next;

	if (is_making(s) && poll(&p, 1, 0) > 0)
		take(s);
	next = find_next(s);
	if (next.kind >= 0 && next.when_ms <= now_ms())
		begin(s, (enum spec_mode)next.kind);
}

void spares_rest(struct spares *s, bool made)
{
	int64_t now = now_ms(), next = now + REST_MS;

	if (made) {
		if (s->shared->program)
			next = now + PROGRAM_MS;
		s->soon = now - s->made_ms < SOON_MS;
		s->made_ms = now;
	}
	if (made || s->stock.rest_ms < next)
		s->stock.rest_ms = next;
}

/* Take the spare of the row off the shelf, if it is still there. */
static void remove_dead(struct spares *s, const struct spares_row *row)
{
	int *shelf = s->shelf[row->mode];
	struct spare one;

	for (int i = 0;
		i < s->kinds[row->mode].ahead && spare_take(shelf, &one); i++)
		if (&s->shared->rows[one.number] == row)
			spare_close(&one);
		else
			spare_put(shelf, &one);
}

void spares_reap(struct spares *s, pid_t pid)
{
	if (s->shared->program == pid) {
		s->shared->program = 0;
		s->stock.rest_ms = now_ms() + ENDED_MS;
	}
	for (struct spares_row *row = s->shared->rows;
		row < s->shared->rows + ROWS; row++)
		if (row->state == ROW_SHELVED && row->pid == pid) {
			remove_dead(s, row);
			row->state = ROW_FREE;
			spares_rest(s, false);
		}
}

/* ---- its children ---- */

void spares_leave(struct spares *s)
{
	spare_close(&s->making);
}

void spares_forget(struct spares *s)
{
	munmap(s->shared, sizeof(*s->shared));
}

/* Free the row of a spare that has left the shelf. */
static void used(struct spares *s, const struct spare *one)
{
	int shelved = ROW_SHELVED;

	atomic_compare_exchange_strong(
		&s->shared->rows[one->number].state, &shelved, ROW_FREE);
}

/* Take a spare that fits the spec off the shelf: 1, or 0. */
static int find(
	struct spares *s, const struct jail_spec *spec, struct spare *one)
{
	int *shelf = s->shelf[spec->mode];
	static struct spare_key key;

	if (!s->kinds[spec->mode].ahead || spare_key_fill(&key, spec) < 0)
		return 0;
	for (int i = 0;
		i < s->kinds[spec->mode].ahead && spare_take(shelf, one); i++) {
		const struct spares_row *row = &s->shared->rows[one->number];
		bool lives = spare_is_alive(one);

		if (lives && spare_key_fits(&row->key, &key))
			return 1;
		if (lives && now_ms() - row->since_ms < KEEP_MS) {
			spare_put(shelf, one);
			continue;
		}
		used(s, one);
		spare_close(one);
	}
	return 0;
}

int spares_lease(struct spares *s, const struct jail_spec *spec,
	struct spare *out, uid_t *id, struct err *e)
{
	bool program = spec->mode != SPEC_SESSION;
	int r;

	s->shared->program = program ? getpid() : 0;
	if (!find(s, spec, out))
		return 0;
	r = spare_lease(out, spec, id, e);
	if (r > 0) {
		if (program)
			s->shared->program = s->shared->rows[out->number].pid;
		used(s, out);
		return 1;
	}
	if (r == 0 || e->kind == ERR_BUSY) {
		spare_put(s->shelf[spec->mode], out);
		return r;
	}
	used(s, out);
	spare_close(out);
	return 0;
}
