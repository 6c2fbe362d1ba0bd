/* SPDX-License-Identifier: MIT */
/*
 * link.c - the warden's links: front end, init, guest
 *
 * Runs in:   warden
 * Trusts:    its own init for shape, the guest for nothing
 *
 * Waiting is done here alone, and always to a deadline. What is done between
 * two waits is quick; should it not be, because somebody has found a way to
 * make the warden itself wait, an alarm ends the warden, and its death all
 * that is in the jail: nothing runs that has no clock.
 *
 * What waits for an answer of init's or the guest's notes the deaths that
 * init tells on the way, and ends the session when the front end goes.
 */
#include "state.h"

#include "jail/base/io.h"
#include "warden.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>

/* What is short of the CPU, or of the disk, at a deadline that is meant to be
 * fair has so much longer, and again, up to HELD_MS. */
#define HELD_LOOK_MS 200
#define HELD_MS 30000

static void alarm_set(int ms)
{
	const struct itimerval t = {.it_value = {ms / 1000, 0}};

	setitimer(ITIMER_REAL, &t, NULL);
}

int warden_poll(struct pollfd *p, nfds_t n, int timeout_ms)
{
	int r;

	/* Whoever freezes the whole session while it waits does no harm. */
	alarm_set(0);
	r = poll(p, n, timeout_ms);
	alarm_set(WARDEN_WORK_MS);
	return r;
}

void warden_event(
	struct warden *w, struct jail_event *ev, const int *fds, int nfds)
{
	struct wire_event m = {.event = *ev};
	int pass[IO_FDS_MAX], n = 0;

	/* A slot holds the index of its descriptor in the message. */
	for (int i = 0; i < 4; i++)
		m.event.fds[i] = -1;
	m.event.fd = -1;
	for (int i = 0; i < nfds; i++) {
		if (fds[i] < 0)
			continue;
		if (ev->type == JAIL_UP)
			m.event.fds[i] = n;
		else
			m.event.fd = n;
		pass[n++] = fds[i];
	}
	if (io_send_fds(w->front, &m, sizeof(m), pass, n, 0) == 0)
		return;
	/* Too many descriptors of this user are on their way (jail.c): what
	 * can be done without is no reason to end. */
	if (errno != ETOOMANYREFS ||
		(ev->type != JAIL_TYPEAHEAD && ev->type != JAIL_STACK))
		warden_end(w);
	if (ev->type == JAIL_TYPEAHEAD)
		warden_notice(w, "what was typed ahead is lost");
}

void warden_notice(struct warden *w, const char *fmt, ...)
{
	struct jail_event ev = {.type = JAIL_NOTICE};
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(ev.text, sizeof(ev.text), fmt, ap);
	va_end(ap);
	warden_event(w, &ev, NULL, 0);
}

/* ---- init ---- */

int warden_init_send(struct warden *w, enum wire_init_type type,
	const int32_t *pids, int npids, const int *fds, int nfds)
{
	struct wire_init m = {
		.type = type, .seq = ++w->init_seq, .npids = npids};

	w->measured = 0;
	for (int i = 0; i < npids; i++)
		m.pids[i] = pids[i];
	return io_send_fds(w->init_sock, &m, sizeof(m), fds, nfds, 0);
}

static void note_death(struct warden *w, const struct wire_init *m)
{
	if (m->npids != 1)
		return;
	w->measured = 0;
	if (m->pids[0] == w->live) {
		w->live = 0;
		w->live_status = m->status;
	} else {
		warden_checkpoint_died(w, m->pids[0]);
	}
}

int warden_init_take(struct warden *w, struct wire_init *m)
{
	ssize_t n =
		io_recv_fds(w->init_sock, m, sizeof(*m), NULL, 0, MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n <= 0 || wire_init_check(m, (size_t)n, NULL) < 0)
		return -1;
	if (m->type == INIT_DIED)
		note_death(w, m);
	if (m->type == INIT_DISCARDED && m->seq == w->ending)
		w->ending = 0;
	return 1;
}

static int remaining(int64_t deadline_ms)
{
	int64_t left = deadline_ms - now_ms();

	return left < 0 ? 0 : left > 1000000 ? 1000000 : (int)left;
}

int warden_wait(struct warden *w, int fd, int64_t deadline_ms, int *init_ready)
{
	struct pollfd p[3] = {{.fd = fd, .events = POLLIN},
		{.fd = w->front, .events = POLLRDHUP},
		{.fd = w->init_sock, .events = POLLIN}};
	int r;

	do
		r = warden_poll(p, 3, remaining(deadline_ms));
	while (r < 0 && errno == EINTR);
	if (p[1].revents & (POLLHUP | POLLERR | POLLRDHUP))
		warden_end(w);
	*init_ready = p[2].revents != 0;
	return r <= 0 ? 0 : p[0].revents != 0;
}

int warden_init_await(struct warden *w, enum wire_init_type type,
	struct wire_init *m, int64_t deadline_ms)
{
	int ready;

	for (;;) {
		int r = warden_init_take(w, m);

		if (r < 0)
			return -1;
		if (r > 0 && m->type == type && m->seq == w->init_seq)
			return 0;
		if (r > 0 && m->type == INIT_ERROR)
			return -1;
		if (r == 0 && remaining(deadline_ms) == 0)
			return -1;
		if (r == 0)
			warden_wait(w, -1, deadline_ms, &ready);
	}
}

/* ---- guest ---- */

static int guest_take(int sock, struct wire_guest *m, char *buf)
{
	ssize_t n =
		io_recv_fds(sock, buf, WIRE_GUEST_MAX, NULL, 0, MSG_DONTWAIT);

	if (n <= 0 || wire_guest_decode(m, buf, (size_t)n, NULL) < 0)
		return -1;
	return 1;
}

int warden_guest_await(struct warden *w, int sock, struct wire_guest *m,
	char *buf, int64_t deadline_ms)
{
	struct wire_init im;

	for (;;) {
		int init_ready = 0;
		int r = warden_wait(w, sock, deadline_ms, &init_ready);

		if (init_ready && warden_init_take(w, &im) < 0)
			return -1;
		if (r)
			return guest_take(sock, m, buf);
		/* A child of the dead may hold the other end open. */
		if (!w->live)
			return -1;
		if (!init_ready && remaining(deadline_ms) == 0)
			return 0;
	}
}

/* Whether the jail would go on, if only it could: something in it does not
 * sleep, and all of it has had less than half of a CPU since the last look;
 * *cpu_ms was -1 before the first. */
static int held_back(struct warden *w, int64_t *cpu_ms)
{
	int64_t was = *cpu_ms;
	struct procstat live;
	struct procs p;

	if (procs_sample(&w->procs, PROCS_READY, &p, NULL) < 0)
		return 0;
	/* The guest itself waits for what makes its copy, as after vfork(). */
	if (procs_stat(&w->procs, w->live, &live) == 0 && live.state == 'D')
		p.ready--;
	*cpu_ms = p.cpu_ms;
	return p.ready > 0 && (was < 0 || p.cpu_ms - was < HELD_LOOK_MS / 2);
}

int warden_guest_await_fair(struct warden *w, int sock, struct wire_guest *m,
	char *buf, int64_t deadline_ms)
{
	int64_t end = deadline_ms + HELD_MS, cpu_ms = -1;
	int r;

	while ((r = warden_guest_await(w, sock, m, buf, deadline_ms)) == 0 &&
		now_ms() < end && held_back(w, &cpu_ms))
		deadline_ms = now_ms() + HELD_LOOK_MS;
	return r;
}
