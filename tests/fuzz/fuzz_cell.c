/* SPDX-License-Identifier: MIT */
/* fuzz-sources: jail/wire/wire.c jail/warden/look/link.c jail/warden/guest.c */
/*
 * fuzz_cell.c - a running cell, and any message of its guest
 *
 * The input is cut into messages, each behind two bytes of length, and played
 * into the control socket of a cell that runs; some carry descriptors. The
 * cell's own function takes them. These must hold: the cell ends at the first
 * message that is out of turn, never by its own word as one that was killed or
 * crashed, and no descriptor stays.
 */
#include "jail/init/init.h"
#include "jail/warden/cell.c"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#define CELL 7
#define LIVE 2
#define MESSAGES_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- stand-ins that taking a message calls ---- */

/* The guest is dead, as init reports next. */
bool warden_guest_lives(struct warden *w)
{
	struct wire_init m;

	if (link_take(&w->link, &m, NULL, 0) < 0)
		abort();
	return guest_is_alive(&w->guest);
}

void cgroup_usage(const struct cgroup *c, struct cgroup_usage *u)
{
	(void)c;
	memset(u, 0, sizeof(*u));
}

/* An interrupt reaches the cell from here on; nobody presses a key. */
void watch_ready(struct watch *wa, struct warden *w)
{
	(void)w;
	if (wa->ready)
		abort(); /* a cell begins once */
	wa->ready = 1;
}

/* The jail keeps within its memory. */
int warden_jail_is_over(struct warden_jail *j, int64_t *due_ms)
{
	(void)j;
	*due_ms = INT64_MAX;
	return 0;
}

/* ---- stand-ins that are linked and never called ---- */

#define NEVER(type, name, ...)                                                 \
	type name(__VA_ARGS__)                                                 \
	{                                                                      \
		abort();                                                       \
	}

#pragma GCC diagnostic ignored "-Wunused-parameter"
NEVER(int, warden_stop, struct warden *w, int32_t *killed)
NEVER(int, warden_hold, struct warden *w, int32_t *killed)
NEVER(void, warden_note_cell, struct warden *w, uint32_t cell)
NEVER(void, warden_note_refused, struct warden *w, uint32_t cell)
NEVER(void, warden_note_end, struct warden *w, int64_t left_ms)
NEVER(void, warden_continue, struct warden *w)
NEVER(int, warden_recover, struct warden *w, struct jail_done *d)
NEVER(int, warden_restart, struct warden *w)
NEVER(int, warden_park, struct warden *w)
NEVER(const struct warden_jail_usage *, warden_baseline, struct warden *w)
NEVER(void, warden_jail_note_oom, struct warden_jail *j, int64_t kills,
	int64_t hits)
NEVER(void, warden_tell_oom, struct warden *w, const char *whose)
NEVER(void, site_count, const struct site *s, enum jail_limit limit)
NEVER(enum jail_limit, warden_jail_oom_limit, const struct warden_jail *j)
NEVER(void, warden_jail_note_left, struct warden_jail *j, int n)
NEVER(void, warden_jail_note_ctl, struct warden_jail *j, ino_t ctl)
NEVER(void, warden_jail_measure, struct warden_jail *j,
	struct warden_jail_usage *u)
NEVER(void, warden_jail_show, struct warden_jail *j,
	struct warden_jail_usage *u)
NEVER(int, warden_jail_look, struct warden_jail *j, unsigned what,
	int timeout_ms)
NEVER(int, warden_jail_kill, struct warden_jail *j,
	const struct link_pids *kept, int32_t *killed)
NEVER(int, warden_jail_waiting, struct warden_jail *j)
NEVER(void, warden_jail_return_keys, struct warden_jail *j)
NEVER(int, warden_jail_set_ttys, struct warden_jail *j)
NEVER(struct link_pids, checkpoints_pids, const struct checkpoints *c)
NEVER(int, checkpoints_leaving, const struct checkpoints *c)
NEVER(void, checkpoints_note_deaths, struct checkpoints *c)
NEVER(void, watch_start, struct watch *wa, struct warden *w, int64_t cpu,
	int64_t grace)
NEVER(int, watch_wait, struct watch *wa)
NEVER(int, watch_init, struct watch *wa, struct warden *w)
NEVER(int, watch_serve, struct watch *wa, struct warden *w)
NEVER(int64_t, watch_left_ms, const struct watch *wa, const struct limits *l)
NEVER(int64_t, watch_wall_ms, const struct watch *wa)
NEVER(void, clocks_touch, struct clocks *c)
NEVER(void, home_usage, const struct home *h, int64_t *bytes, int *files)
NEVER(int, spawn_open_driver, int *fds, int library, struct err *e)
NEVER(int, procs_sample, const struct procs_source *s, unsigned flags,
	struct procs *out, struct err *e)

/* ---- the play ---- */

/* The next message: its length, and whether it brings descriptors. */
static size_t next(const uint8_t **data, size_t *size, int *with)
{
	size_t n;

	if (*size < 2)
		return SIZE_MAX;
	n = ((size_t)(*data)[0] & 0x7f) << 8 | (*data)[1];
	*with = (*data)[0] & 0x80 ? 1 : 0;
	*data += 2;
	*size -= 2;
	return n < *size ? n : *size;
}

static int lowest_free(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	close(fd);
	return fd;
}

static void check(const struct cell *c)
{
	const struct jail_done *d = &c->done;

	if (d->how == HOW_KILLED || d->how == HOW_CRASHED ||
		d->after != AFTER_KEPT || d->limit != LIMIT_NONE ||
		d->cell != CELL || d->status < 0 || d->status > 255 ||
		!memchr(d->text, '\0', sizeof(d->text)))
		abort();
	if (c->watch.ready != c->took)
		abort();
	if (c->watch.ended && d->how != HOW_LOST && d->how != HOW_REFUSED &&
		!c->took)
		abort(); /* it claims an end without a beginning */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Its death waits to be taken. */
	const struct wire_init death = {.type = INIT_DIED,
		.npids = 1,
		.pids = {LIVE},
		.status = WIRE_STACK_SIGNAL};
	int ctl[2], init[2], fds[IO_FDS_MAX] = {0}, with, before;
	static struct warden w;
	struct cell c = {.w = &w, .done = {.cell = CELL}};
	size_t n;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ctl) < 0 ||
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, init) <
			0 ||
		io_send_fds(init[1], &death, sizeof(death), NULL, 0, 0) < 0)
		abort();
	link_open(&w.link, -1);
	link_attach(&w.link, init[0]);
	guest_init(&w.guest, &w.link, &w.jail);
	guest_become(&w.guest, LIVE);
	guest_become_awake(&w.guest, ctl[0], 0);
	before = lowest_free();
	for (int i = 0; i < MESSAGES_MAX && !c.watch.ended; i++) {
		n = next(&data, &size, &with);
		if (n == SIZE_MAX ||
			io_send_fds(ctl[1], data, n, fds, with ? 4 : 0, 0) < 0)
			break;
		hear_guest(&c);
		check(&c);
		data += n;
		size -= n;
	}
	if (lowest_free() != before)
		abort();
	guest_end(&w.guest);
	link_detach(&w.link);
	close(ctl[1]);
	close(init[1]);
	return 0;
}
