/* SPDX-License-Identifier: MIT */
/*
 * jail.c - a session in a jail, as the front end sees it
 *
 * Runs in:   front end
 * Trusts:    the warden for shape only: messages are checked, texts that came
 *            from a guest are passed on as bytes
 * Leaves:    no child: jail_close() waits for the warden, which waits for the
 *            jail; should it wait in vain, it says so. jail_leave() leaves the
 *            warden behind, with nothing left to run but its own end
 */
#include "jail/jail.h"

#include "jail/base/array.h"
#include "jail/base/io.h"
#include "jail/host/host.h"
#include "jail/maker/maker.h"
#include "jail/plan/plan.h"
#include "jail/walls/ident.h"
#include "jail/walls/landlock.h"
#include "jail/walls/seccomp.h"
#include "jail/warden/link.h"
#include "jail/wire/wire.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* What the warden may take to end a session before it is killed, and then, or
 * where it may not be killed, until its own alarm must have ended it. */
#define CLOSE_MS 3000
#define CLOSE_KILLED_MS (LINK_WORK_MS + 2000)
/* How long a maker's warden has to give its place back after our end. */
#define LEFT_MS 2000
/* A death becomes known a moment after the socket's end. */
#define DEATH_MS 200
/* A front end may have many sessions that others made: none of them keeps it
 * from the rest for longer than this. */
#define ANSWER_MS 5000
/* The kernel frees the descriptors that a dead guest had sent, and nobody had
 * received, a moment after its end. */
#define IN_FLIGHT_MS 1000

/* Most events kept while a call waits for its reply. A warden that is itself
 * sends a few. */
#define KEPT_MAX 1000

struct jail {
	int sock;
	pid_t warden;	     /* 0: not our child */
	int patient;	     /* there is no other: calls wait until it ends */
	uint32_t seq, last;  /* requests; `last` can be interrupted */
	uint32_t sent;	     /* by jail_send() */
	int fds[IO_FDS_MAX]; /* what else came with the last message */
	struct wire_event begun; /* its bytes have not all come yet, or 0 */
	uint32_t come;		 /* of them */
	int exited;		 /* JAIL_EXITED has come */
	int interrupt_fd;	 /* watched while a call waits; -1: none */
	int (*interrupt_cb)(void *arg);
	void *interrupt_arg;
	/* Events that came while a call waited for its reply. */
	struct jail_event *queue;
	size_t n;
};

int jail_open(struct jail **out, const struct jail_spec *spec, struct err *e)
{
	struct jail *j = NULL;
	pid_t warden;
	int sock;

	warden = maker_make(spec, &sock, e);
	if (warden < 0 || jail_adopt(&j, sock, e) < 0)
		return -1;
	j->warden = warden;
	j->patient = 1;
	*out = j;
	return 0;
}

int jail_adopt(struct jail **out, int sock, struct err *e)
{
	struct jail *j = calloc(1, sizeof(*j));

	if (!j) {
		close(sock);
		return err_errno(e, "start a session");
	}
	j->sock = sock;
	j->interrupt_fd = -1;
	for (int i = 0; i < IO_FDS_MAX; i++)
		j->fds[i] = -1;
	*out = j;
	return 0;
}

int jail_receive(struct jail **out, int asked, int timeout_ms, struct err *e)
{
	struct pollfd p = {.fd = asked, .events = POLLIN};
	int r, sock;

	do
		r = poll(&p, 1, timeout_ms);
	while (r < 0 && errno == EINTR);
	if (r <= 0)
		return err_set(e, "make a session: the maker does not answer");
	sock = maker_answer(asked, e);
	if (sock < 0 || jail_adopt(out, sock, e) < 0)
		return -1;
	(*out)->patient = 1;
	return 0;
}

_Noreturn void jail_become(int asked, const struct jail_spec *spec)
{
	maker_become(asked, spec);
}

void jail_refuse(int asked, const struct err *e)
{
	maker_refuse(asked, e);
}

int jail_print_plan(const struct jail_spec *spec,
	const struct enforce_facts *facts, FILE *f, struct err *e)
{
	struct host host;
	struct plan plan;
	int r;

	if (host_probe(&host, spec->python, e) < 0)
		return -1;
	host_resolve(&host, spec);
	host.no_proc = !facts->proc;
	host.cgroup_memory = facts->memory;
	host.own_nodes = facts->own_nodes;
	r = plan_make(&plan, spec, &host, e);
	if (r == 0) {
		plan_print(&plan, f);
		plan_fini(&plan);
	}
	host_fini(&host);
	return r;
}

int jail_fd(const struct jail *j)
{
	return j->sock;
}

void jail_event_close(struct jail_event *ev)
{
	for (int i = 0; i < JAIL_UP_FDS; i++)
		fd_drop(&ev->fds[i]);
	fd_drop(&ev->fd);
	free(ev->bytes);
	ev->bytes = NULL;
}

static int wait_readable(struct jail *j, int64_t timeout_ms)
{
	struct pollfd p = {.fd = j->sock, .events = POLLIN};
	int r;

	do
		r = poll(&p, 1, (int)timeout_ms);
	while (r < 0 && errno == EINTR);
	return r;
}

void jail_watch_interrupt(
	struct jail *j, int fd, int (*cb)(void *arg), void *arg)
{
	j->interrupt_fd = fd;
	j->interrupt_cb = cb;
	j->interrupt_arg = arg;
}

/* Wait for the warden's answer, and tell it when the person interrupts. 0, or
 * -1 with e when the time is up. */
static int wait_reply(struct jail *j, int64_t since_ms, struct err *e)
{
	struct pollfd p[2] = {{.fd = j->sock, .events = POLLIN},
		{.fd = j->interrupt_fd, .events = POLLIN}};
	int64_t left = since_ms + ANSWER_MS - now_ms();
	int ms = j->patient ? -1 : left > 0 ? (int)left : 0;
	int r = poll(p, 2, ms);

	if (r > 0 && p[1].revents && j->interrupt_cb(j->interrupt_arg))
		jail_interrupt(j, NULL);
	if (r != 0)
		return 0;
	err_set(e, "the session does not answer");
	return err_kind_set(e, ERR_JAIL);
}

/* Read and forget until the other end is closed: 1, or 0 after so long. */
static int await_end(struct jail *j, int timeout_ms)
{
	int64_t left, deadline = now_ms() + timeout_ms;
	ssize_t n = 1;
	char byte;

	while (n > 0) {
		left = deadline - now_ms();
		if (left <= 0 || wait_readable(j, left) == 0)
			return 0;
		n = recv(j->sock, &byte, 1, MSG_TRUNC | MSG_DONTWAIT);
	}
	return 1;
}

/* Read and forget until the warden has left what it held. One that does not
 * run keeps nobody for long. */
static void await_left(struct jail *j)
{
	int64_t left, deadline = now_ms() + LEFT_MS;
	ssize_t n = WIRE_LEFT_BYTES + 1;
	char byte;

	while (n > WIRE_LEFT_BYTES) {
		left = deadline - now_ms();
		if (left <= 0 || wait_readable(j, left) == 0)
			return;
		n = recv(j->sock, &byte, 1, MSG_TRUNC | MSG_DONTWAIT);
	}
}

void jail_end(struct jail *j)
{
	/* The warden ends at our end of file. The warden, and its janitor if
	 * there is one, hold the other end until nothing is left. */
	shutdown(j->sock, SHUT_WR);
}

int jail_is_over(struct jail *j)
{
	ssize_t n;
	char byte;

	do
		n = recv(j->sock, &byte, 1, MSG_TRUNC | MSG_DONTWAIT);
	while (n > 0);
	return n == 0 || errno != EAGAIN;
}

static void reap(pid_t warden, int ended)
{
	while (waitpid(warden, NULL, ended ? 0 : WNOHANG) < 0 && errno == EINTR)
		;
}

/* Close the descriptors of the last message that nobody took. */
static void fds_close(struct jail *j)
{
	for (int i = 0; i < IO_FDS_MAX; i++)
		fd_drop(&j->fds[i]);
}

static void release(struct jail *j)
{
	fds_close(j);
	if (j->begun.event.bytes)
		jail_event_close(&j->begun.event);
	for (size_t i = 0; i < j->n; i++)
		jail_event_close(&j->queue[i]);
	free(j->queue);
	free(j);
}

int jail_close(struct jail *j, struct err *e)
{
	int ended;

	if (!j)
		return 0;
	jail_end(j);
	ended = await_end(j, CLOSE_MS);
	if (!ended) {
		/* One that is not ours ends by its alarm. */
		if (j->warden)
			kill(j->warden, SIGKILL);
		ended = await_end(j, CLOSE_KILLED_MS);
	}
	if (!ended)
		err_set(e,
			"the session does not end: process %d, and what it "
			"started, may still run",
			(int)j->warden);
	if (j->warden)
		reap(j->warden, ended);
	close(j->sock);
	release(j);
	return ended ? 0 : -1;
}

/*
 * To take the namespaces and the cgroup apart needs milliseconds of the kernel,
 * and cores that our own end needs too. So it begins when this process has
 * ended, which closes the socket. Whoever adopts orphans reaps the warden; the
 * pid 1 of a container may do so for nobody, and its end is the end of all
 * others.
 */
int jail_leave(struct jail *j, struct err *e)
{
	if (!j || !j->exited || getppid() <= 1)
		return jail_close(j, e);
	/* A maker counts its sessions: whoever sees our end may begin one. */
	if (!j->warden) {
		jail_end(j);
		await_left(j);
	}
	release(j);
	return 0;
}

/* ---- receiving ---- */

/* Without its warden there is no jail: not an ordinary failure. ECONNRESET is
 * kept: the warden had not read all that it was sent. */
static int gone(struct jail *j, struct err *e)
{
	int64_t end = now_ms() + DEATH_MS;
	int why = errno, hung;
	siginfo_t si = {0};

	while (waitid(P_PID, (id_t)j->warden, &si,
		       WEXITED | WNOHANG | WNOWAIT) == 0 &&
		si.si_pid == 0 && now_ms() < end)
		poll(NULL, 0, 1);
	hung = si.si_code == CLD_KILLED && si.si_status == SIGALRM;
	err_set(e, hung ? "the session hung, and was ended"
			: "the session's warden is gone");
	if (!hung)
		err_hint(e, "the kernel kills a warden that takes too much "
			    "memory, and its log says so:  dmesg");
	if (e && why == ECONNRESET)
		e->code = why;
	return err_kind_set(e, ERR_JAIL);
}

/* A slot names a descriptor of the message by index; give it that one. */
static int slot_take(int slot, int *fds)
{
	return slot < 0 || slot >= IO_FDS_MAX ? -1 : fd_take(&fds[slot]);
}

/* Begin to take what comes behind an event. 0, or -1 with e. */
static int begin_bytes(struct jail *j, struct wire_event *m, struct err *e)
{
	m->event.bytes = malloc(m->event.nbytes + 1);
	if (!m->event.bytes)
		return err_errno(e, "hold an answer");
	j->begun = *m;
	j->come = 0;
	return 0;
}

/* Take more of it. As receive(). */
static int receive_bytes(struct jail *j, struct wire_event *m, struct err *e)
{
	struct jail_event *ev = &j->begun.event;

	while (j->come < ev->nbytes) {
		uint32_t left = ev->nbytes - j->come;
		size_t piece = (left < WIRE_PIECE ? left : WIRE_PIECE) + 1;
		ssize_t n = recv(j->sock, ev->bytes + j->come, piece,
			MSG_TRUNC | MSG_DONTWAIT);

		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n <= 0)
			return gone(j, e);
		if ((size_t)n != piece)
			return err_set(e, "malformed answer");
		j->come += (uint32_t)piece - 1;
	}
	ev->bytes[ev->nbytes] = '\0';
	*m = j->begun;
	ev->bytes = NULL;
	return 1;
}

/* Take an event, but for the bytes behind it. As receive(). */
static int receive_event(struct jail *j, struct wire_event *m, struct err *e)
{
	int *fds = j->fds, r;
	ssize_t n;

	fds_close(j);
	n = io_recv_fds(j->sock, m, sizeof(*m), fds, IO_FDS_MAX, MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n <= 0)
		return gone(j, e);
	r = wire_event_check(m, (size_t)n, e);
	if (r == 0) {
		m->event.bytes = NULL;
		j->exited |= m->event.type == JAIL_EXITED;
		for (int i = 0; i < JAIL_UP_FDS; i++)
			m->event.fds[i] = slot_take(m->event.fds[i], fds);
		m->event.fd = slot_take(m->event.fd, fds);
	}
	if (r == 0 && m->event.type == JAIL_REPLY) {
		m->event.ok = m->reply.ok;
		m->event.err = m->reply.err;
		m->event.undone = m->reply.undone;
		m->event.truncated = m->reply.a != 0;
	}
	if (r < 0 || m->event.type != JAIL_REPLY)
		fds_close(j);
	return r < 0 ? -1 : 1;
}

/* 1 taken, 0 nothing there (or not all of it yet), -1 the warden is gone. */
static int receive(struct jail *j, struct wire_event *m, struct err *e)
{
	if (!j->begun.event.bytes) {
		int r = receive_event(j, m, e);

		if (r <= 0 || !m->event.nbytes)
			return r;
		if (begin_bytes(j, m, e) < 0)
			return -1;
	}
	return receive_bytes(j, m, e);
}

int jail_next(struct jail *j, struct jail_event *ev, struct err *e)
{
	struct wire_event m;
	int r;

	if (j->n > 0) {
		*ev = j->queue[0];
		memmove(j->queue, j->queue + 1, --j->n * sizeof(*j->queue));
		return 1;
	}
	/* A reply that nobody waits for is dropped. */
	while ((r = receive(j, &m, e)) == 1 && m.event.type == JAIL_REPLY &&
		m.reply.seq != j->sent)
		jail_event_close(&m.event);
	if (r == 1)
		*ev = m.event;
	return r;
}

int jail_wait(
	struct jail *j, struct jail_event *ev, int timeout_ms, struct err *e)
{
	int64_t end = now_ms() + timeout_ms;
	int r;

	while ((r = jail_next(j, ev, e)) == 0) {
		int64_t left = timeout_ms < 0 ? -1 : end - now_ms();

		if (timeout_ms >= 0 && left <= 0)
			return 0;
		wait_readable(j, left);
	}
	return r;
}

/* ---- sending ---- */

/* Send a request, with descriptors (borrowed; the first that is -1 ends them).
 */
static int tell_fds(struct jail *j, struct wire_front m, const int *fds,
	int nfds, struct err *e)
{
	int64_t end = now_ms() + IN_FLIGHT_MS;
	int n = 0, r;

	while (n < nfds && fds[n] >= 0)
		n++;
	m.seq = ++j->seq;
	while ((r = io_send_fds(j->sock, &m, sizeof(m), fds, n, 0)) < 0 &&
		errno == ETOOMANYREFS && now_ms() < end)
		poll(NULL, 0, 10);
	if (r == 0)
		return 0;
	if (errno == ETOOMANYREFS)
		return err_errno(e, "hand it over to the session");
	return gone(j, e);
}

static int tell(struct jail *j, struct wire_front m, int fd, struct err *e)
{
	return tell_fds(j, m, &fd, 1, e);
}

/* The same, for what an interrupt is meant for from now on. */
static int tell_last(struct jail *j, struct wire_front m, int fd, struct err *e)
{
	j->last = j->seq + 1;
	return tell(j, m, fd, e);
}

int jail_keep(struct jail *j, struct jail_event *ev, struct err *e)
{
	if (j->n >= KEPT_MAX) {
		jail_event_close(ev);
		err_set(e, "the session says more than can be kept");
		return err_kind_set(e, ERR_JAIL);
	}
	if (array_grow(&j->queue, j->n, sizeof(*j->queue)) < 0) {
		jail_event_close(ev);
		return err_errno(e, "keep an event");
	}
	j->queue[j->n++] = *ev;
	return 0;
}

/* Send a request and wait for its reply; other events are kept. */
static int call_with(struct jail *j, struct wire_front m, int fd,
	struct wire_event *reply, struct err *e)
{
	int r = tell_last(j, m, fd, e);
	const uint32_t seq = j->seq;
	int64_t now = now_ms();

	while (r >= 0) {
		r = receive(j, reply, e);
		if (r == 0)
			r = wait_reply(j, now, e);
		else if (r > 0 && (reply->event.type != JAIL_REPLY ||
					  reply->reply.seq == j->sent))
			r = jail_keep(j, &reply->event, e);
		else if (r > 0 && reply->reply.seq == seq)
			break;
		else if (r > 0)
			jail_event_close(&reply->event);
	}
	if (r > 0 && reply->reply.ok)
		return 0;
	if (r > 0 && e)
		*e = reply->reply.err;
	if (r > 0)
		jail_event_close(&reply->event);
	return -1;
}

static int call(struct jail *j, enum wire_front_type type, int64_t a, int64_t b,
	struct wire_event *reply, struct err *e)
{
	const struct wire_front m = {.type = type, .a = a, .b = b};

	return call_with(j, m, -1, reply, e);
}

static int front_path(struct wire_front *m, enum wire_front_type type,
	const char *path, struct err *e)
{
	*m = (struct wire_front){.type = type};
	if (strlen(path) >= sizeof(m->path))
		return err_set(e, "%.60s…: name too long", path);
	memcpy(m->path, path, strlen(path) + 1);
	return 0;
}

int jail_send(struct jail *j, enum jail_call call, int n, const char *path,
	struct err *e)
{
	static const enum wire_front_type types[] = {
		[CALL_READY] = FRONT_READY,
		[CALL_RESET] = FRONT_RESET,
		[CALL_UNDO] = FRONT_UNDO,
		[CALL_REMOVE] = FRONT_HOME_REMOVE,
		[CALL_LIST] = FRONT_HOME_LIST,
	};
	struct wire_front m;
	int r = front_path(&m, types[call], path ? path : "", e);

	m.a = n;
	if (r == 0)
		r = tell_last(j, m, -1, e);
	if (r == 0)
		j->sent = j->seq;
	return r;
}

int jail_run(struct jail *j, uint32_t cell, const char *src, size_t n,
	enum jail_cell kind, int report, struct err *e)
{
	const struct wire_front m = {.type = FRONT_RUN, .a = cell, .b = kind};
	auto_close int fd = io_sealed_memfd("cellblock-cell", src, n);
	const int fds[] = {fd, report};

	if (fd < 0)
		return err_errno(e, "hold the cell");
	j->last = j->seq + 1;
	return tell_fds(j, m, fds, 2, e);
}

int jail_interrupt(struct jail *j, struct err *e)
{
	const struct wire_front m = {.type = FRONT_INTERRUPT, .a = j->last};

	return tell(j, m, -1, e);
}

int jail_kill(struct jail *j, struct err *e)
{
	const struct wire_front m = {.type = FRONT_KILL, .a = j->last};

	return tell(j, m, -1, e);
}

int jail_resize(struct jail *j, unsigned short rows, unsigned short cols)
{
	const struct wire_front m = {
		.type = FRONT_RESIZE, .a = rows, .b = cols};

	return tell(j, m, -1, NULL);
}

int jail_tell_waits(struct jail *j)
{
	return tell(j, (struct wire_front){.type = FRONT_WAITS}, -1, NULL);
}

int jail_touch(struct jail *j)
{
	return tell(j, (struct wire_front){.type = FRONT_TOUCH}, -1, NULL);
}

int jail_start_program(
	struct jail *j, const struct jail_start *start, struct err *e)
{
	const struct wire_front m = {
		.type = FRONT_START, .a = start->wall_ms, .b = start->merged};
	auto_close int fd = wire_start_seal(start, e);

	return fd < 0 ? err_kind_set(e, ERR_JAIL) : tell_last(j, m, fd, e);
}

int jail_beside(struct jail *j, uint32_t number, struct err *e)
{
	return tell(j, (struct wire_front){.type = FRONT_BESIDE, .a = number},
		-1, e);
}

/* The bytes of an event, NUL-terminated. 0, or -1 with e. */
static int text_take(
	struct jail_event *ev, char **text, size_t *n, struct err *e)
{
	*text = ev->bytes ? ev->bytes : calloc(1, 1);
	*n = ev->nbytes;
	ev->bytes = NULL;
	return *text ? 0 : err_errno(e, "hold an answer");
}

int jail_ask(struct jail *j, enum jail_question q, const char *text, size_t n,
	char **answer, size_t *answer_n, struct err *e)
{
	const struct wire_front m = {.type = FRONT_ASK, .a = q};
	auto_close int fd = io_sealed_memfd("cellblock-ask", text, n);
	struct wire_event reply;

	if (fd < 0)
		return err_errno(e, "hold the question");
	if (call_with(j, m, fd, &reply, e) < 0)
		return -1;
	return text_take(&reply.event, answer, answer_n, e);
}

int jail_ask_later(struct jail *j, enum jail_question q, const char *text,
	size_t n, struct err *e)
{
	const struct wire_front m = {.type = FRONT_ASK, .a = q};
	auto_close int fd = io_sealed_memfd("cellblock-ask", text, n);

	if (fd < 0)
		return err_errno(e, "hold the question");
	if (tell_last(j, m, fd, e) < 0)
		return -1;
	j->sent = j->seq;
	return 0;
}

int jail_return_keys(struct jail *j)
{
	struct wire_event reply;

	return call(j, FRONT_KEYS, 0, 0, &reply, NULL);
}

int jail_reset(struct jail *j, int *kept, struct err *e)
{
	struct wire_event reply;

	if (call(j, FRONT_RESET, 0, 0, &reply, e) < 0)
		return -1;
	*kept = reply.reply.a != 0;
	return 0;
}

int jail_undo(struct jail *j, int n, struct jail_undone *u, struct err *e)
{
	struct wire_event reply;

	if (call(j, FRONT_UNDO, n, 0, &reply, e) < 0)
		return -1;
	*u = reply.reply.undone;
	return 0;
}

int jail_usage(struct jail *j, struct jail_usage *u, struct err *e)
{
	struct wire_event reply;

	if (call(j, FRONT_USAGE, 0, 0, &reply, e) < 0)
		return -1;
	*u = reply.reply.usage;
	return 0;
}

/* ---- the home ---- */

/* Put as many paths into the request as it has room for: m->a. 0, or -1 with e
 * when not even one fits. */
static int front_paths(
	struct wire_front *m, const char *const *paths, int n, struct err *e)
{
	size_t at = 0;

	for (m->a = 0; m->a < n && m->a < JAIL_MANY_MAX; m->a++) {
		size_t len = strlen(paths[m->a]) + 1;

		if (len > sizeof(m->path) - at)
			break;
		memcpy(m->path + at, paths[m->a], len);
		at += len;
	}
	return m->a || !n ? 0 : err_set(e, "%.60s…: name too long", paths[0]);
}

/* Send a request about several files, of which m->a says how many: how many
 * were served. */
static int call_some(struct jail *j, const struct wire_front *m,
	struct wire_event *reply, struct err *e)
{
	int n;

	if (call_with(j, *m, -1, reply, e) < 0)
		return 0;
	n = reply->reply.a < 0	    ? 0
	    : reply->reply.a > m->a ? (int)m->a
				    : (int)reply->reply.a;
	if (n < m->a && e)
		*e = reply->reply.err;
	return n;
}

/* The n descriptors of a reply; those that are missing are -1. */
static void take_fds(struct jail *j, struct wire_event *reply, int *fds, int n)
{
	for (int i = 0; i < n; i++)
		fds[i] = i ? fd_take(&j->fds[i]) : fd_take(&reply->event.fd);
}

static int open_some(struct jail *j, struct wire_front *m,
	const char *const *paths, int n, int *fds, uint32_t *tokens,
	struct err *e)
{
	struct wire_event reply;
	int done = 0;

	while (done < n) {
		int some;

		if (front_paths(m, paths + done, n - done, e) < 0)
			break;
		some = call_some(j, m, &reply, e);
		take_fds(j, &reply, fds + done, some);
		for (int i = 0; tokens && i < some; i++)
			tokens[done + i] =
				(uint32_t)reply.reply.b + (uint32_t)i;
		done += some;
		if (some < m->a)
			break;
	}
	return done;
}

int jail_home_open_many(struct jail *j, const char *const *paths, int n,
	int *fds, struct err *e)
{
	struct wire_front m = {.type = FRONT_HOME_OPEN};

	return open_some(j, &m, paths, n, fds, NULL, e);
}

int jail_home_open(struct jail *j, const char *path, struct err *e)
{
	int fd;

	return jail_home_open_many(j, &path, 1, &fd, e) == 1 ? fd : -1;
}

int jail_home_create_many(struct jail *j, const char *const *paths, int n,
	int mode, int *fds, uint32_t *tokens, struct err *e)
{
	struct wire_front m = {.type = FRONT_HOME_CREATE, .b = mode};

	return open_some(j, &m, paths, n, fds, tokens, e);
}

int jail_home_create(struct jail *j, const char *path, int mode,
	uint32_t *token, struct err *e)
{
	int fd;

	return jail_home_create_many(j, &path, 1, mode, &fd, token, e) == 1
		       ? fd
		       : -1;
}

int jail_home_commit_many(
	struct jail *j, const struct jail_end *ends, int n, struct err *e)
{
	struct wire_front m = {.type = FRONT_HOME_COMMIT, .a = n};
	struct wire_event reply;

	memcpy(m.ends, ends, (size_t)n * sizeof(*ends));
	return call_some(j, &m, &reply, e);
}

int jail_home_commit(struct jail *j, uint32_t token, int replace, struct err *e)
{
	const struct jail_end end = {
		.token = token, .replace = replace, .mode = -1};

	return jail_home_commit_many(j, &end, 1, e) == 1 ? 0 : -1;
}

int jail_home_mkdir_many(struct jail *j, const char *const *paths,
	const struct jail_end *ends, int n, struct err *e)
{
	struct wire_front m = {.type = FRONT_HOME_MKDIR};
	struct wire_event reply;
	int done = 0, some = 0;

	while (done < n && front_paths(&m, paths + done, n - done, e) == 0) {
		memcpy(m.ends, ends + done, (size_t)m.a * sizeof(*ends));
		some = call_some(j, &m, &reply, e);
		done += some;
		if (some < m.a)
			break;
	}
	return done;
}

int jail_home_abort(struct jail *j, uint32_t token, struct err *e)
{
	struct wire_event reply;

	return call(j, FRONT_HOME_ABORT, token, 0, &reply, e);
}

int jail_home_remove(struct jail *j, const char *path, struct err *e)
{
	struct wire_event reply;
	struct wire_front m;

	if (front_path(&m, FRONT_HOME_REMOVE, path, e) < 0)
		return -1;
	return call_with(j, m, -1, &reply, e);
}

/* One record of a listing; its path points into the text. */
static int file_parse(struct jail_file *f, char *rec)
{
	long long bytes, blocks, mtime;
	unsigned mode;
	int at = 0;

	/* One blank, then the name: which may begin with more of them. */
	if (sscanf(rec, "%c %o %lld %lld %lld %u%n", &f->type, &mode, &bytes,
		    &blocks, &mtime, &f->nlink, &at) != 6 ||
		rec[at] != ' ')
		return -1;
	f->bytes = bytes;
	f->blocks_bytes = blocks;
	f->mtime_ns = mtime;
	f->mode = (int)mode;
	f->path = strdup(rec + at + 1);
	return f->path ? 0 : -1;
}

static int file_order(const void *a, const void *b)
{
	const struct jail_file *x = a, *y = b;

	return strcmp(x->path, y->path);
}

int jail_take_files(
	struct jail_event *ev, struct jail_files *out, struct err *e)
{
	auto_free char *text = NULL;
	size_t n = 0, room = 0;

	*out = (struct jail_files){.truncated = ev->truncated};
	if (text_take(ev, &text, &n, e) < 0)
		return -1;
	for (size_t at = 0; at < n; at++)
		room += text[at] == '\0';
	out->v = calloc(room + 1, sizeof(*out->v));
	if (!out->v)
		return err_errno(e, "list the home");
	for (char *rec = text; rec < text + n; rec += strlen(rec) + 1)
		if (file_parse(&out->v[out->n], rec) == 0)
			out->n++;
	if (out->n)
		qsort(out->v, out->n, sizeof(*out->v), file_order);
	return 0;
}

int jail_home_list(struct jail *j, struct jail_files *out, struct err *e)
{
	struct wire_event reply;

	*out = (struct jail_files){0};
	if (call(j, FRONT_HOME_LIST, 0, 0, &reply, e) < 0 ||
		jail_take_files(&reply.event, out, e) < 0)
		return -1;
	out->used_bytes = reply.reply.usage.home_bytes;
	out->used_files = reply.reply.usage.home_files;
	return 0;
}

void jail_files_free(struct jail_files *f)
{
	for (size_t i = 0; i < f->n; i++)
		free(f->v[i].path);
	free(f->v);
	*f = (struct jail_files){0};
}

/* ---- the confinement of the front end ---- */

static const enum landlock_class classes[] = {
	[JAIL_CAGE_READ] = LANDLOCK_READ,
	[JAIL_CAGE_WRITE] = LANDLOCK_WRITE,
	[JAIL_CAGE_DEVICE] = LANDLOCK_DEVICE,
	[JAIL_CAGE_REMOVE] = LANDLOCK_REMOVE,
};

static const enum seccomp_profile profiles[] = {
	[JAIL_CAGE_NOTHING] = SECCOMP_FRONT,
	[JAIL_CAGE_CLIENTS] = SECCOMP_SERVER,
	[JAIL_CAGE_TERMINALS] = SECCOMP_DOOR,
};

/* Afterwards the process cannot start another or open a socket
 * (invariant 7). */
int jail_cage_close(const struct jail_cage *c, struct err *e)
{
	struct landlock_rule rules[JAIL_CAGE_PATHS];

	for (size_t i = 0; i < c->n; i++)
		rules[i] = (struct landlock_rule){.path = c->v[i].path,
			.fd = -1,
			.cls = classes[c->v[i].access],
			.optional = 1};
	if (ident_drop_front(e) < 0 ||
		landlock_confine(rules, c->n, LANDLOCK_NO_TCP, LANDLOCK_ABI_ANY,
			e) < 0 ||
		seccomp_load(profiles[c->left], e) < 0)
		return err_wrap(e, "confine the front end");
	return 0;
}
