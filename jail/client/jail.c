/* SPDX-License-Identifier: MIT */
/*
 * jail.c - a session in a jail, as the front end sees it: its begin, what it
 * says, its end
 *
 * Runs in:   front end
 * Trusts:    the warden for shape only: messages are checked, texts that came
 *            from a guest are passed on as bytes
 * Leaves:    no child: jail_close() waits for the warden, which waits for the
 *            jail; should it wait in vain, it says so. jail_leave() leaves the
 *            warden behind, with nothing left to run but its own end
 */
#include "client.h"

#include "jail/base/array.h"
#include "jail/broker/broker.h"
#include "jail/host/host.h"
#include "jail/plan/plan.h"
#include "jail/walls/walls.h"
#include "jail/warden/look/look.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* How long the warden may take to end a session before it is killed; and then,
 * or where it may not be killed, until its own alarm must have ended it. */
#define CLOSE_MS 3000
#define CLOSE_KILLED_MS (LINK_WORK_MS + 2000)
/* How long a maker's warden has to give its place back after our end. */
#define LEFT_MS 2000
/* A death becomes known a moment after the socket's end. */
#define DEATH_MS 200
/* Most messages that are read and forgotten while the end is waited for: more
 * than a list of the home has. */
#define FORGOTTEN_MAX 10000
/* Most events kept while a call waits for its reply. A warden that is itself
 * sends a few. */
#define KEPT_MAX 1000

int jail_open(struct jail **out, const struct jail_spec *spec, struct err *e)
{
	struct jail *j = NULL;
	pid_t warden;
	int sock;

	warden = start_warden(spec, &sock, e);
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
	for (int i = 0; i < IO_FDS_MAX; i++)
		j->fds[i] = -1;
	*out = j;
	return 0;
}

int jail_receive(int asked, int timeout_ms, struct err *e)
{
	struct pollfd p = {.fd = asked, .events = POLLIN};
	int r;

	do
		r = poll(&p, 1, timeout_ms);
	while (r < 0 && errno == EINTR);
	if (r <= 0)
		return err_set(e, "the maker does not answer");
	return start_receive(asked, e);
}

int jail_adopt_made(struct jail **out, int sock, struct err *e)
{
	if (jail_adopt(out, sock, e) < 0)
		return -1;
	(*out)->patient = 1;
	return 0;
}

_Noreturn void jail_become(int asked, const struct jail_spec *spec)
{
	start_become(asked, spec);
}

int jail_hand_over(int asked, int sock)
{
	return start_hand_over(asked, sock);
}

void jail_refuse(int asked, const struct err *e)
{
	start_refuse(asked, e);
}

int jail_stand_apart(const int *keep, size_t n, const char *name, struct err *e)
{
	return start_apart(keep, n, name, e);
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
	fds_drop(ev->fds, JAIL_UP_FDS);
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

/* ---- receiving ---- */

/* ECONNRESET is kept: the warden had not read all that it was sent. */
int jail_say_gone(struct jail *j, struct err *e)
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

/* Take more of it. As jail_take_message(). */
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
			return jail_say_gone(j, e);
		if ((size_t)n != piece)
			return err_set(e, "malformed answer");
		j->come += (uint32_t)piece - 1;
	}
	ev->bytes[ev->nbytes] = '\0';
	*m = j->begun;
	ev->bytes = NULL;
	return 1;
}

/* Take an event, but for the bytes behind it. As jail_take_message(). */
static int receive_event(struct jail *j, struct wire_event *m, struct err *e)
{
	int *fds = j->fds, r;
	ssize_t n;

	/* Those of the last message that nobody took. */
	fds_drop(fds, IO_FDS_MAX);
	n = io_recv_fds(j->sock, m, sizeof(*m), fds, IO_FDS_MAX, MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n < 0 && errno == EMFILE)
		return err_errno(e, "take descriptors from the jail");
	if (n <= 0)
		return jail_say_gone(j, e);
	r = wire_event_check(m, (size_t)n, e);
	if (r == 0) {
		m->event.bytes = NULL;
		j->exited |= m->event.type == JAIL_EXITED;
		for (int i = 0; i < JAIL_UP_FDS; i++)
			m->event.fds[i] = slot_take(m->event.fds[i], fds);
		m->event.fd = slot_take(m->event.fd, fds);
	}
	if (r == 0 && m->event.type == JAIL_REPLY) {
		m->event.cell = m->reply.seq;
		m->event.ok = m->reply.ok;
		m->event.err = m->reply.err;
		m->event.undone = m->reply.undone;
		m->event.truncated = m->reply.a != 0;
	}
	if (r < 0 || m->event.type != JAIL_REPLY)
		fds_drop(j->fds, IO_FDS_MAX);
	return r < 0 ? -1 : 1;
}

int jail_take_message(struct jail *j, struct wire_event *m, struct err *e)
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

/* A kept event, or else a new one. As jail_take_message(). */
static int take_event(struct jail *j, struct jail_event *ev, struct err *e)
{
	struct wire_event m;
	int r;

	if (j->n > 0) {
		*ev = j->queue[0];
		memmove(j->queue, j->queue + 1, --j->n * sizeof(*j->queue));
		return 1;
	}
	r = jail_take_message(j, &m, e);
	if (r == 1)
		*ev = m.event;
	return r;
}

int jail_next(struct jail *j, struct jail_event *ev, struct err *e)
{
	int r;

	/* A reply that nobody waits for is dropped. */
	while ((r = take_event(j, ev, e)) == 1 && ev->type == JAIL_REPLY &&
		ev->cell != j->asked.sent)
		jail_event_close(ev);
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

/* ---- the end ---- */

/* Read and forget until a message comes that is no longer than this, or the
 * end: 1, or 0 after so long. */
static int await_short(struct jail *j, ssize_t bytes, int timeout_ms)
{
	int64_t left, deadline = now_ms() + timeout_ms;
	ssize_t n;
	char byte;

	for (int i = 0; i < FORGOTTEN_MAX; i++) {
		n = recv(j->sock, &byte, 1, MSG_TRUNC | MSG_DONTWAIT);
		if (n <= bytes && (n >= 0 || errno != EAGAIN))
			return 1;
		left = deadline - now_ms();
		if (n < 0 && (left <= 0 || wait_readable(j, left) == 0))
			return 0;
	}
	return 0;
}

void jail_end(struct jail *j)
{
	/* The warden ends at our end of file. The warden, and its janitor if
	 * there is one, hold the other end until nothing is left. */
	shutdown(j->sock, SHUT_WR);
}

int jail_is_over(struct jail *j)
{
	return await_short(j, 0, 0);
}

static void reap_warden(pid_t warden, int ended)
{
	while (waitpid(warden, NULL, ended ? 0 : WNOHANG) < 0 && errno == EINTR)
		;
}

static void free_jail(struct jail *j)
{
	fds_drop(j->fds, IO_FDS_MAX);
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
	ended = await_short(j, 0, CLOSE_MS);
	if (!ended) {
		/* One that is not ours ends by its alarm. */
		if (j->warden)
			kill(j->warden, SIGKILL);
		ended = await_short(j, 0, CLOSE_KILLED_MS);
	}
	if (!ended)
		err_set(e,
			"the session does not end: process %d, and what it "
			"started, may still run",
			(int)j->warden);
	if (j->warden)
		reap_warden(j->warden, ended);
	close(j->sock);
	free_jail(j);
	return ended ? 0 : -1;
}

/*
 * To take the namespaces and the cgroup apart needs milliseconds of the kernel,
 * and cores that our own end needs too. So it begins when this process has
 * ended, which closes the socket. The process that adopts orphans reaps the
 * warden; the pid 1 of a container may reap no process, and its end is the end
 * of all others.
 */
int jail_leave(struct jail *j, struct err *e)
{
	if (!j || !j->exited || getppid() <= 1)
		return jail_close(j, e);
	/* A maker counts its sessions: a person who sees our end may begin
	 * one. */
	if (!j->warden) {
		jail_end(j);
		await_short(j, WIRE_LEFT_BYTES, LEFT_MS);
	}
	free_jail(j);
	return 0;
}

/* ---- the confinement of the front end ---- */

static const enum landlock_class classes[] = {
	[JAIL_SANDBOX_READ] = LANDLOCK_READ,
	[JAIL_SANDBOX_WRITE] = LANDLOCK_WRITE,
	[JAIL_SANDBOX_DEVICE] = LANDLOCK_DEVICE,
	[JAIL_SANDBOX_REMOVE] = LANDLOCK_REMOVE,
};

static const enum seccomp_profile profiles[] = {
	[JAIL_SANDBOX_NOTHING] = SECCOMP_FRONT,
	[JAIL_SANDBOX_CLIENTS] = SECCOMP_SERVER,
	[JAIL_SANDBOX_TERMINALS] = SECCOMP_CONTROL,
};

/* Afterwards the front end cannot start a process or create a socket. */
int jail_sandbox_enter(const struct jail_sandbox *c, struct err *e)
{
	struct landlock_rule rules[JAIL_SANDBOX_PATHS];

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
