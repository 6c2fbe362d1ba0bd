/* SPDX-License-Identifier: MIT */
/*
 * link.c - the warden's links to the front end and to init, and its waits
 *
 * Runs in:   warden
 * Trusts:    its own init for shape
 *
 * The warden waits only here, and always until a deadline. Between two waits
 * it is quick. Should a guest find a way to make the warden itself hang, an
 * alarm ends the warden, and the jail dies with it: nothing runs without a
 * clock.
 */
#include "jail/warden/look/look.h"

#include "jail/base/array.h"
#include "jail/base/io.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>

/* Between two looks for a death. */
#define REAP_LOOK_MS 2

void link_open(struct link *l, int front)
{
	struct ucred peer;
	socklen_t n = sizeof(peer);

	*l = (struct link){.front = front, .init = -1};
	if (getsockopt(front, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0)
		peer.pid = 0;
	link_charge(l, peer.pid);
}

void link_serve_aside(struct link *l, link_aside *aside, void *arg)
{
	l->aside = aside;
	l->aside_arg = arg;
}

int link_serve_now(struct link *l, const struct wire_front *m)
{
	return l->aside && l->aside(l->aside_arg, m);
}

void link_attach(struct link *l, int init)
{
	link_detach(l);
	l->init = init;
}

void link_detach(struct link *l)
{
	fd_drop(&l->init);
	l->answered = 0;
	l->ndeaths = 0;
}

/* ---- waits ---- */

static void alarm_set(int ms)
{
	const struct itimerval t = {.it_value = {ms / 1000, 0}};

	setitimer(ITIMER_REAL, &t, NULL);
}

int link_poll(struct pollfd *p, nfds_t n, int timeout_ms)
{
	int r;

	/* No alarm here: a session that is frozen as a whole while it waits
	 * does no harm. */
	alarm_set(0);
	r = poll(p, n, timeout_ms);
	alarm_set(LINK_WORK_MS);
	if (r >= 0 || errno != EINTR)
		return r;
	for (nfds_t i = 0; i < n; i++)
		p[i].revents = 0;
	return 0;
}

void link_reap(pid_t pid)
{
	alarm_set(0);
	waitpid(pid, NULL, 0);
	alarm_set(LINK_WORK_MS);
}

int link_reap_within(pid_t pid, int ms)
{
	int64_t end = now_ms() + ms;
	pid_t r;

	while ((r = waitpid(pid, NULL, WNOHANG)) == 0 && now_ms() < end)
		link_poll(NULL, 0, REAP_LOOK_MS);
	return r == 0 ? -1 : 0;
}

int link_ms_until(int64_t deadline_ms)
{
	int64_t left = deadline_ms - now_ms();

	return left < 0 ? 0 : left > 1000000 ? 1000000 : (int)left;
}

static int listen_once(struct link *l);

int link_wait(struct link *l, int fd, int64_t deadline_ms, int *init_ready)
{
	short listens = l->nwaiting < LINK_REQUESTS ? POLLIN : 0;
	struct pollfd p[3] = {{.fd = fd, .events = POLLIN},
		{.fd = l->front, .events = (short)(POLLRDHUP | listens)},
		{.fd = l->init, .events = POLLIN}};

	if (l->over || link_poll(p, 3, link_ms_until(deadline_ms)) < 0 ||
		p[1].revents & (POLLHUP | POLLERR | POLLRDHUP)) {
		l->over = 1;
		return SESSION_OVER;
	}
	if (p[1].revents && listen_once(l) == SESSION_OVER)
		return SESSION_OVER;
	*init_ready = p[2].revents != 0;
	return p[0].revents != 0;
}

/* ---- front end ---- */

void link_say_left(struct link *l)
{
	const char left[WIRE_LEFT_BYTES] = {0};

	if (l->front >= 0)
		io_send_fds(
			l->front, left, sizeof(left), NULL, 0, MSG_DONTWAIT);
}

/* Send what comes behind an event. It takes as long as the front end does: one
 * that does not read ends its session (LINK_WORK_MS). 0, or -1. */
static int send_bytes(struct link *l, const char *bytes, size_t n)
{
	struct iovec v[2] = {{0}, {.iov_base = "", .iov_len = 1}};
	const struct msghdr m = {.msg_iov = v, .msg_iovlen = 2};

	for (size_t at = 0; at < n; at += v[0].iov_len) {
		v[0].iov_base = (char *)bytes + at;
		v[0].iov_len = n - at < WIRE_PIECE ? n - at : WIRE_PIECE;
		if (sendmsg(l->front, &m, MSG_NOSIGNAL) < 0)
			return -1;
	}
	return 0;
}

void link_event(
	struct link *l, const struct jail_event *ev, const int *fds, int nfds)
{
	struct wire_event m = {.event = *ev};
	int pass[IO_FDS_MAX], n = 0;

	/* A slot holds the index of its descriptor in the message. */
	for (int i = 0; i < JAIL_UP_FDS; i++)
		m.event.fds[i] = -1;
	m.event.fd = -1;
	m.event.bytes = NULL;
	for (int i = 0; i < nfds; i++) {
		if (fds[i] < 0)
			continue;
		if (ev->type == JAIL_UP)
			m.event.fds[i] = n;
		else
			m.event.fd = n;
		pass[n++] = fds[i];
	}
	if (!l->over && l->front >= 0 &&
		(io_send_fds(l->front, &m, sizeof(m), pass, n, 0) < 0 ||
			send_bytes(l, ev->bytes, ev->nbytes) < 0))
		l->over = 1;
}

void link_notice(struct link *l, const char *fmt, ...)
{
	struct jail_event ev = {.type = JAIL_NOTICE};
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(ev.text, sizeof(ev.text), fmt, ap);
	va_end(ap);
	link_event(l, &ev, NULL, 0);
}

static void reply_begin(struct link *l, struct wire_event *m, uint32_t seq,
	const struct wire_reply *reply)
{
	*m = (struct wire_event){
		.event = {.type = JAIL_REPLY, .fd = -1}, .reply = *reply};
	for (int i = 0; i < JAIL_UP_FDS; i++)
		m->event.fds[i] = -1;
	m->reply.seq = seq;
	if (seq == l->serving)
		link_served(l);
}

int link_reply_bytes(struct link *l, uint32_t seq,
	const struct wire_reply *reply, const char *bytes, size_t n)
{
	struct wire_event m;

	reply_begin(l, &m, seq, reply);
	m.event.nbytes = (uint32_t)n;
	if (l->over || (io_send_fds(l->front, &m, sizeof(m), NULL, 0, 0) == 0 &&
			       send_bytes(l, bytes, n) == 0))
		return 0;
	l->over = 1;
	return -1;
}

int link_reply(struct link *l, uint32_t seq, const struct wire_reply *reply,
	const int *fds, int n)
{
	struct wire_event m;

	reply_begin(l, &m, seq, reply);
	m.event.fd = n ? 0 : -1;
	/* ETOOMANYREFS: a guest keeps too many descriptors of this user on
	 * their way. */
	if (l->over || io_send_fds(l->front, &m, sizeof(m), fds, n, 0) == 0)
		return 0;
	if (errno == ETOOMANYREFS && n) {
		err_errno(&m.reply.err, "hand over the answer");
		m.reply.ok = 0;
		m.event.fd = -1;
		if (io_send_fds(l->front, &m, sizeof(m), NULL, 0, 0) == 0)
			return -1;
	}
	l->over = 1;
	return -1;
}

void link_charge(struct link *l, pid_t front)
{
	if (front <= 0 || clock_getcpuclockid(front, &l->front_cpu) != 0)
		l->front_cpu = -1;
}

int64_t link_front_cpu_ms(const struct link *l)
{
	int64_t ns = io_clock_ns(l->front_cpu);

	return ns < 0 ? 0 : ns / 1000000;
}

/* Take what has come from the front end. A descriptor whose closing blocks, as
 * of a file on FUSE, would hold us for good, with the clocks of a jail that
 * goes on, and no alarm ends that: it stays open, and the session ends. */
static int receive_request(struct link *l, struct wire_front *m, int *fds)
{
	ssize_t n = io_recv_tame(l->front, m, sizeof(*m), fds, IO_FDS_MAX, 0);

	if (n > 0 && wire_front_check(m, (size_t)n) == 0)
		return 0;
	fds_drop(fds, IO_FDS_MAX);
	l->over = 1;
	return SESSION_OVER;
}

/* Tell the front end that a request was not begun, and never will be. A program
 * ends as if the interrupt had come right after its start. */
static void refuse_waiting(struct link *l, int i, const char *why)
{
	const struct wire_front *m = &l->waiting[i].m;
	struct jail_event ev = {.type = JAIL_DONE, .cell = (uint32_t)m->a};
	struct wire_reply reply = {0};

	ev.done = (struct jail_done){.cell = ev.cell, .how = HOW_REFUSED};
	snprintf(ev.done.text, sizeof(ev.done.text), "%s", why);
	err_set(&reply.err, "%s", why);
	if (m->type == FRONT_START)
		ev = (struct jail_event){
			.type = JAIL_EXITED, .program.status = SIGINT};
	if (m->type == FRONT_RUN || m->type == FRONT_START)
		link_event(l, &ev, NULL, 0);
	else
		link_reply(l, m->seq, &reply, NULL, 0);
	fds_drop(l->waiting[i].fds, IO_FDS_MAX);
	ARRAY_REMOVE(l->waiting, l->nwaiting, i);
}

void link_refuse(struct link *l, enum wire_front_type type, const char *why)
{
	for (int i = l->nwaiting - 1; i >= 0; i--)
		if (l->waiting[i].m.type == type)
			refuse_waiting(l, i, why);
}

/* Give up the request that the person waits for, or hurry the guest that it
 * waits for. */
static void interrupt_served(struct link *l, const struct wire_front *m)
{
	l->interrupted |= link_is_served(l, m);
	for (int i = l->nwaiting - 1; i >= 0; i--)
		if (l->waiting[i].m.seq == (uint32_t)m->a) {
			l->interrupted = 1;
			refuse_waiting(l, i, "interrupted before it began");
		}
}

/* An interrupt counts at once, also while other requests wait, and only for the
 * request that it was meant for. */
static int listen_once(struct link *l)
{
	struct link_request *q = &l->waiting[l->nwaiting];

	if (receive_request(l, &q->m, q->fds) == SESSION_OVER)
		return SESSION_OVER;
	if (q->m.type == FRONT_INTERRUPT || q->m.type == FRONT_KILL)
		interrupt_served(l, &q->m);
	else if (!link_serve_now(l, &q->m))
		l->nwaiting++;
	else
		fds_drop(q->fds, IO_FDS_MAX);
	/* A request that a reset ends is not waited for. */
	l->interrupted |= q->m.type == FRONT_RESET;
	return 0;
}

int link_request(struct link *l, struct wire_front *m, int *fds)
{
	struct pollfd p = {.fd = l->front, .events = POLLIN};
	int r = 0;

	for (int i = 0; i < IO_FDS_MAX; i++)
		fds[i] = -1;
	if (!l->over && l->nwaiting > 0) {
		*m = l->waiting[0].m;
		memcpy(fds, l->waiting[0].fds, sizeof(l->waiting[0].fds));
		ARRAY_REMOVE(l->waiting, l->nwaiting, 0);
		return 0;
	}
	while (!l->over && r == 0)
		r = link_poll(&p, 1, -1);
	if (r > 0)
		return receive_request(l, m, fds);
	l->over = 1;
	return SESSION_OVER;
}

int link_request_peek(struct link *l)
{
	struct pollfd p = {.fd = l->front, .events = POLLIN};

	while (!l->over && l->nwaiting == 0 && link_poll(&p, 1, 0) > 0)
		if (listen_once(l) == SESSION_OVER)
			break;
	return !l->over && l->nwaiting ? (int)l->waiting[0].m.type : -1;
}

int link_patience_ms(const struct link *l, int ms)
{
	return l->nwaiting ? 0 : ms;
}

void link_serve(struct link *l, const struct wire_front *m)
{
	l->serving = m->seq;
	l->interrupted = 0;
}

void link_served(struct link *l)
{
	l->serving = 0;
}

int link_is_served(const struct link *l, const struct wire_front *interrupt)
{
	return l->serving && (uint32_t)interrupt->a == l->serving;
}

int link_interrupt_take(struct link *l)
{
	int was = l->interrupted;

	l->interrupted = 0;
	return was;
}

/* ---- init ---- */

static int send_init(
	struct link *l, struct wire_init *m, const int *fds, int nfds)
{
	m->seq = ++l->seq;
	l->traffic++;
	return io_send_fds(l->init, m, sizeof(*m), fds, nfds, 0);
}

int link_ask(struct link *l, enum wire_init_type type,
	const struct link_pids *pids, const int *fds, int nfds)
{
	struct wire_init m = {.type = type};

	if (pids) {
		m.npids = pids->n;
		memcpy(m.pids, pids->v, sizeof(pids->v));
	}
	return send_init(l, &m, fds, nfds);
}

int link_ask_pid(struct link *l, enum wire_init_type type, int32_t pid)
{
	struct wire_init m = {.type = type, .npids = 1, .pids = {pid}};

	return send_init(l, &m, NULL, 0);
}

void link_ask_unhang(struct link *l, int64_t since_ms)
{
	struct wire_init m = {.type = INIT_KILL_FORK, .since_ms = since_ms};

	send_init(l, &m, NULL, 0);
}

/* Init reports only deaths of processes that it was told of, and there is room
 * for as many; with more, the oldest concerned nobody. */
static void death_keep(struct link *l, const struct wire_init *m)
{
	if (m->npids != 1)
		return;
	if (l->ndeaths == WIRE_PIDS_MAX)
		ARRAY_REMOVE(l->deaths, l->ndeaths, 0);
	l->deaths[l->ndeaths++] =
		(struct link_death){m->pids[0], m->status, m->all_gone};
}

int link_take(struct link *l, struct wire_init *m, int *fds, int nfds)
{
	ssize_t n =
		io_recv_fds(l->init, m, sizeof(*m), fds, nfds, MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n <= 0 || wire_init_check(m, (size_t)n) < 0)
		return -1;
	l->traffic++;
	if (m->type == INIT_DIED)
		death_keep(l, m);
	else if (m->seq)
		l->answered = m->seq;
	return 1;
}

int link_await(struct link *l, enum wire_init_type type, struct wire_init *m,
	int64_t deadline_ms)
{
	int ready;

	for (;;) {
		int r = link_take(l, m, NULL, 0);

		if (r < 0)
			return -1;
		if (r > 0 && m->type == type && m->seq == l->seq)
			return 0;
		if (r > 0 && m->type == INIT_ERROR)
			return -1;
		if (r > 0)
			continue;
		if (link_ms_until(deadline_ms) == 0)
			return -1;
		if (link_wait(l, -1, deadline_ms, &ready) == SESSION_OVER)
			return SESSION_OVER;
	}
}

int link_death_take(struct link *l, int32_t pid, struct link_death *d)
{
	for (int i = 0; i < l->ndeaths; i++) {
		if (l->deaths[i].pid != pid)
			continue;
		*d = l->deaths[i];
		ARRAY_REMOVE(l->deaths, l->ndeaths, i);
		return 1;
	}
	return 0;
}

void link_deaths_forget(struct link *l)
{
	l->ndeaths = 0;
}
