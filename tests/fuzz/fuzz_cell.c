/* fuzz-sources: jail/wire/wire.c jail/base/err.c jail/base/io.c */
/* SPDX-License-Identifier: MIT */
/*
 * fuzz_cell.c - a running cell, and whatever its guest sends meanwhile
 *
 * The input is cut into messages, each behind two bytes of length, and played
 * into the control socket of a cell that runs; some carry descriptors. It is
 * the real loop's own function that takes them. What must hold: the cell ends
 * at the first message that is out of turn, never by its own word as one that
 * was killed or crashed, and no descriptor stays.
 */
#include "jail/warden/cell.c"

#include "jail/base/io.h"

#include <fcntl.h>

#define CELL 7
#define MESSAGES_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- what a cell leans on, as small as it can be ---- */

int warden_init_take(struct warden *w, struct wire_init *m)
{
	memset(m, 0, sizeof(*m));
	w->live = 0;
	w->live_status = WIRE_STACK_SIGNAL;
	return 1;
}

int procs_stat(const struct procs_source *s, pid_t pid, struct procstat *st)
{
	(void)s, (void)pid, (void)st;
	return -1; /* gone, as init says next */
}

int warden_init_send(struct warden *w, enum wire_init_type type,
	const int32_t *pids, int npids, const int *fds, int nfds)
{
	(void)w, (void)type, (void)pids, (void)npids, (void)fds, (void)nfds;
	return 0;
}

void warden_event(
	struct warden *w, struct jail_event *ev, const int *fds, int nfds)
{
	(void)w, (void)ev, (void)fds, (void)nfds;
}

_Noreturn void warden_end(struct warden *w)
{
	(void)w;
	abort(); /* nothing that a guest says ends the session */
}

void warden_measure(struct warden *w, unsigned flags, struct measure *m)
{
	(void)w, (void)flags;
	memset(m, 0, sizeof(*m));
}

const struct measure *warden_baseline(struct warden *w)
{
	return &w->baseline;
}

int64_t warden_clock(struct warden *w, enum jail_limit limit, int64_t *due_ms)
{
	(void)w, (void)limit;
	return *due_ms = 1000;
}

void warden_touch(struct warden *w)
{
	(void)w;
}

void warden_continue(struct warden *w)
{
	(void)w;
}

void warden_rest(struct warden *w, int32_t *killed)
{
	(void)w, (void)killed;
}

void warden_weigh(struct warden *w, const struct measure *m, int64_t ran_ms)
{
	(void)w, (void)m, (void)ran_ms;
}

void run_return_keys(struct warden *w)
{
	(void)w;
}

void run_finish(struct warden *w, struct run *r)
{
	(void)w, (void)r;
}

void cgroup_usage(const struct cgroup *c, struct cgroup_usage *u)
{
	(void)c;
	memset(u, 0, sizeof(*u));
}

int warden_poll(struct pollfd *p, nfds_t n, int timeout_ms)
{
	return poll(p, n, timeout_ms);
}

int warden_waits_for_person(struct warden *w)
{
	(void)w;
	return 0;
}

int64_t warden_next_look(int64_t now, int period_ms)
{
	return now + period_ms;
}

int pty_signal_fg(int master, int sig, struct err *e)
{
	(void)master, (void)sig, (void)e;
	return 0;
}

int pty_set_size(
	int fd, unsigned short rows, unsigned short cols, struct err *e)
{
	(void)fd, (void)rows, (void)cols, (void)e;
	return 0;
}

int pty_set_cooked(int fd, struct err *e)
{
	(void)fd, (void)e;
	return 0;
}

int pty_set_raw(int fd, struct err *e)
{
	(void)fd, (void)e;
	return 0;
}

/* ---- the play ---- */

/* The next message: its length, and whether it brings descriptors. */
static size_t next(const uint8_t **data, size_t *size, int *fds)
{
	size_t n;

	if (*size < 2)
		return SIZE_MAX;
	n = ((size_t)(*data)[0] & 0x7f) << 8 | (*data)[1];
	*fds = (*data)[0] & 0x80 ? 1 : 0;
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

static void check(const struct run *r)
{
	if (r->d.how == HOW_KILLED || r->d.how == HOW_CRASHED ||
		r->d.after != AFTER_KEPT || r->d.limit != LIMIT_NONE ||
		r->d.cell != CELL || r->d.status < 0 || r->d.status > 255 ||
		!memchr(r->d.text, '\0', sizeof(r->d.text)))
		abort();
	if (r->over && r->d.how != HOW_LOST && r->d.how != HOW_REFUSED &&
		!r->took)
		abort(); /* it claims an end without a beginning */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int pair[2], fds[IO_FDS_MAX] = {0, 0, 0, 0}, with, before;
	struct warden w = {.live = 2, .init_sock = -1, .front = -1};
	struct run r = {.d = {.cell = CELL}};
	size_t n;

	/* Its death is always about to be told. */
	w.init_sock = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return 0;
	w.ctl = pair[0];
	before = lowest_free();
	for (int i = 0; i < MESSAGES_MAX && !r.over; i++) {
		n = next(&data, &size, &with);
		if (n == SIZE_MAX)
			break;
		if (io_send_fds(pair[1], data, n, fds, with ? 4 : 0, 0) < 0)
			break;
		run_guest(&w, &r);
		check(&r);
		data += n;
		size -= n;
	}
	if (lowest_free() != before)
		abort();
	close(pair[0]);
	close(pair[1]);
	close(w.init_sock);
	return 0;
}
