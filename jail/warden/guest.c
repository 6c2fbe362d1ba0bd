/* SPDX-License-Identifier: MIT */
/*
 * guest.c - the live guest: the process that runs the cells
 *
 * Runs in:   warden
 * Trusts:    the guest for nothing: its messages are decoded with bounds, and
 *            it is waited for until a deadline
 */
#include "jail/warden/parts.h"

#include "jail/base/io.h"
#include "jail/init/init.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

/* Python starts, and says READY. */
#define BOOT_MS 30000
/* A fair wait, which a busy host lengthens: the time between two looks at the
 * jail; at how many looks in a row the jail may rest, and how long that is; the
 * CPU time that it may use; how much longer the wait may be than another; and
 * how long it is once the person has interrupted it. */
#define FAIR_LOOK_MS 50
#define FAIR_RESTS 4
#define FAIR_REST_MS ((FAIR_RESTS - 1) * FAIR_LOOK_MS)
#define FAIR_CPU_MS 300
#define FAIR_MS 10000
#define FAIR_LEAST_MS 400
/* How long a stuck guest may take to write down its stacks, and each line of
 * them. */
#define STACK_MS 1000
#define STACK_SILENT_MS 250

void guest_init(struct guest *g, struct link *l, struct warden_jail *j)
{
	*g = (struct guest){.link = l, .jail = j, .ctl = -1, .stack = -1};
}

/* ---- life ---- */

/* `second` is the second descriptor (borrowed), a program's arguments; or -1:
 * the driver's library. It takes the place of a driver that is not there. */
static int ask_to_spawn(
	struct guest *g, int second, const int *fds, int nfds, struct err *e)
{
	int has_driver = g->jail->site->spec->mode != SPEC_PROGRAM ||
			 wire_start_is_cell(second);
	int pass[SPAWN_FDS], own[2] = {-1, -1}, r;

	if (has_driver && spawn_open_driver(own, second < 0, e) < 0)
		return -1;
	pass[SPAWN_PARTS] = own[SPAWN_PARTS] < 0 ? second : own[SPAWN_PARTS];
	pass[SPAWN_LIBRARY] = second < 0 ? own[SPAWN_LIBRARY] : second;
	for (int i = 0; i < nfds; i++)
		pass[SPAWN_CTL + i] = fds[i];
	r = link_ask(g->link, INIT_SPAWN, NULL, pass, SPAWN_CTL + nfds);
	/* An init that is gone has said why: guest_spawn_await() hears it. */
	if (r < 0 && errno == EPIPE)
		r = 0;
	if (r < 0)
		err_errno(e, "start Python");
	fd_drop(&own[SPAWN_PARTS]);
	fd_drop(&own[SPAWN_LIBRARY]);
	return r;
}

int guest_spawn(struct guest *g, const int *fds, int nfds, struct err *e)
{
	return ask_to_spawn(g, fds[0], fds + 1, nfds - 1, e);
}

int guest_spawn_await(struct guest *g, struct err *e)
{
	int64_t deadline = now_ms() + BOOT_MS;
	struct wire_init m = {0};
	int r = link_await(g->link, INIT_SPAWNED, &m, deadline);

	if (r == 0)
		g->pid = m.pids[0];
	else if (r == -1 && m.type == INIT_ERROR)
		*e = m.err;
	else
		err_set(e, "start Python: no answer");
	return r;
}

/* Where the guest writes its stacks: a file of fixed size, because what is
 * written to it is memory that no process shows. */
static int stack_file(struct err *e)
{
	auto_close int fd = memfd_create(
		"cellblock-stack", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, GUEST_STACK_MAX) < 0 ||
		fcntl(fd, F_ADD_SEALS,
			F_SEAL_SEAL | F_SEAL_GROW | F_SEAL_SHRINK) < 0)
		return err_errno(e, "create the stack file");
	return fd_take(&fd);
}

/* The control socket: *theirs is for the guest. */
static int open_ctl(struct guest *g, int *theirs, struct err *e)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(e, "create a socket pair");
	fd_drop(&g->ctl);
	g->ctl = pair[0];
	io_refuse_fds(g->ctl);
	*theirs = pair[1];
	warden_jail_note_ctl(g->jail, io_inode(pair[1]));
	return 0;
}

int guest_start(struct guest *g, struct err *e)
{
	auto_close int ctl = -1;

	if (open_ctl(g, &ctl, e) < 0)
		return -1;
	/* Copies of an older one write to the same. */
	if (g->stack < 0)
		g->stack = stack_file(e);
	return g->stack < 0 ? -1
			    : ask_to_spawn(g, -1, (const int[]){ctl, g->stack},
				      2, e);
}

int guest_start_cell(struct guest *g, struct err *e)
{
	auto_close int ctl = -1;

	return open_ctl(g, &ctl, e) < 0 ? -1 : ask_to_spawn(g, ctl, NULL, 0, e);
}

int guest_give_cell(struct guest *g, const struct guest_cell *c, struct err *e)
{
	int fds[1 + PIPES] = {c->file}, n = 1;
	char buf[64];
	size_t len = wire_start_encode(buf, c->tty_bits, c->at, c->bytes);

	for (int i = 0; i < PIPES; i++)
		if (c->pipes[i] >= 0 && !(c->tty_bits & 1u << i))
			fds[n++] = c->pipes[i];
	return io_send_fds(g->ctl, buf, len, fds, n, MSG_DONTWAIT) < 0
		       ? err_errno(e, "hand over the cell")
		       : 0;
}

int guest_took_cell(struct guest *g)
{
	char c;

	/* unix(7): the other end was closed with something unread. */
	return recv(g->ctl, &c, 1, MSG_DONTWAIT) >= 0 || errno != ECONNRESET;
}

int guest_start_await(struct guest *g, struct guest_message *m, struct err *e)
{
	const char *python = g->jail->site->spec->python;
	int r = guest_spawn_await(g, e);

	if (r < 0)
		return r;
	r = guest_await(g, g->ctl, m, now_ms() + BOOT_MS);
	if (r == SESSION_OVER)
		return r;
	if (r != 1 || m->wire.type != GUEST_READY) {
		err_set(e, "start %s: it %s", python,
			r == 0 ? "did not answer" : "ended at once");
		return err_hint(e,
			"is it Python 3.9 or newer? try:  %s -I -S -c "
			"'import sys; print(sys.version)'",
			python);
	}
	g->names = g->threads = 0;
	return 0;
}

void guest_end(struct guest *g)
{
	fd_drop(&g->ctl);
	fd_drop(&g->stack);
	g->pid = g->alone = 0;
}

int guest_is_alive(struct guest *g)
{
	struct link_death d;

	if (g->pid && link_death_take(g->link, g->pid, &d)) {
		g->pid = 0;
		g->status = d.status;
		g->alone = d.alone;
	}
	return g->pid != 0;
}

void guest_become(struct guest *g, pid_t pid)
{
	g->pid = pid;
	g->late = 0;
}

void guest_become_awake(struct guest *g, int ctl, uint32_t names)
{
	fd_drop(&g->ctl);
	g->ctl = ctl;
	g->names = names;
	g->threads = 0;
}

/* ---- messages ---- */

int guest_send(struct guest *g, const char *buf, size_t n, int fd)
{
	return io_send_fds(g->ctl, buf, n, &fd, fd >= 0, MSG_DONTWAIT);
}

int guest_receive(int sock, struct guest_message *m)
{
	ssize_t n = io_recv_fds(
		sock, m->bytes, sizeof(m->bytes), NULL, 0, MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n <= 0 || wire_guest_decode(&m->wire, m->bytes, (size_t)n) < 0)
		return -1;
	return 1;
}

int guest_await(
	struct guest *g, int sock, struct guest_message *m, int64_t deadline_ms)
{
	return guest_await_hurried(g, sock, m, deadline_ms, deadline_ms);
}

int guest_await_hurried(struct guest *g, int sock, struct guest_message *m,
	int64_t deadline_ms, int64_t least_ms)
{
	struct wire_init im;

	for (;;) {
		int init_ready = 0, r;
		int64_t due, now, paused_ms = g->jail->paused_ms;

		if (warden_jail_is_over(g->jail, &due))
			return -1;
		now = now_ms();
		/* It could not answer while it was stopped to be weighed: that
		 * time does not count. */
		paused_ms = g->jail->paused_ms - paused_ms;
		least_ms += paused_ms;
		deadline_ms += paused_ms;
		due = due < deadline_ms - now ? now + due : deadline_ms;
		r = link_wait(g->link, sock, due, &init_ready);
		if (r == SESSION_OVER)
			return r;
		if (least_ms < deadline_ms && link_interrupt_take(g->link))
			deadline_ms = least_ms;
		if (init_ready && link_take(g->link, &im, NULL, 0) < 0)
			return -1;
		if (r && guest_receive(sock, m) != 1)
			return -1;
		if (r && !guest_is_late_answer(g, &m->wire))
			return 1;
		/* A child of a dead guest may hold the other end open. */
		if (!guest_is_alive(g))
			return -1;
		if (!init_ready && link_ms_until(deadline_ms) == 0)
			return 0;
	}
}

/* The activity of the jail while its answer is waited for. */
struct patience {
	int64_t cpu_ms; /* at the first looks: what is told may be old */
	int looks;
	int rests; /* looks in a row at which it rested */
};

/* True if the jail itself is why no answer comes: it has had CPU time enough
 * for one, or it rests. It does not rest while the host keeps something in it
 * waiting. */
static int is_its_own_doing(struct guest *g, struct patience *w)
{
	int waiting = warden_jail_waiting(g->jail);
	struct warden_jail_usage u;

	/* A jail that cannot be looked into is held back by its own processes.
	 */
	if (waiting < 0)
		return 1;
	/* A process that has no CPU may hold a lock that the helper waits for.
	 */
	warden_jail_look(g->jail, 0, FAIR_LOOK_MS);
	warden_jail_show(g->jail, &u);
	if (w->looks++ < 2)
		w->cpu_ms = u.cpu_ms;
	w->rests = waiting > 0 ? 0 : w->rests + 1;
	return w->rests >= FAIR_RESTS || u.cpu_ms - w->cpu_ms >= FAIR_CPU_MS;
}

int guest_await_fair(
	struct guest *g, int sock, struct guest_message *m, int64_t deadline_ms)
{
	const int64_t end = deadline_ms + FAIR_MS;
	int64_t least = now_ms() + FAIR_LEAST_MS - FAIR_REST_MS;
	struct patience w = {0};
	int own = 0, late = 0, r;

	/* One that rests has done so until the deadline. The answer may have
	 * come while the jail was looked at. */
	deadline_ms -= FAIR_REST_MS;
	while ((r = guest_await_hurried(g, sock, m, deadline_ms, least)) == 0 &&
		!own && !late) {
		own = is_its_own_doing(g, &w);
		late = now_ms() >= end;
		deadline_ms = now_ms() + (own || late ? 0 : FAIR_LOOK_MS);
	}
	return r == 0 && !own ? GUEST_LATE : r;
}

void guest_note_late(struct guest *g, uint32_t no)
{
	g->late = no;
}

int guest_is_late_answer(struct guest *g, const struct wire_guest *m)
{
	if (!g->late || m->type != GUEST_PARKED || m->no != g->late)
		return 0;
	g->late = 0;
	return 1;
}

void guest_note_done(struct guest *g, const struct wire_guest *m)
{
	g->names = m->names;
	g->threads = m->threads;
}

/* ---- where it is ---- */

/* True if the driver's own frame is written: those of the cell stand above. */
static int stack_is_whole(const char *text)
{
	static const char driver[] = "  File \"<string>\", line ";
	static const char end[] = " in session\n";

	while ((text = strstr(text, driver)) != NULL) {
		text += sizeof(driver) - 1;
		text += strspn(text, "0123456789");
		if (strncmp(text, end, sizeof(end) - 1) == 0)
			return 1;
	}
	return 0;
}

void guest_clear_stack(struct guest *g)
{
	static const char empty[GUEST_STACK_MAX];

	if (pwrite(g->stack, empty, sizeof(empty), 0) < 0 ||
		lseek(g->stack, 0, SEEK_SET) < 0)
		fd_drop(&g->stack);
}

/* The driver's handler writes every stack, from C, into the stack file. */
size_t guest_read_stack(struct guest *g, char *text)
{
	int64_t now = now_ms(), end = now + STACK_MS, grown = now;
	size_t n = 0;

	memset(text, 0, GUEST_STACK_MAX + 1);
	if (g->stack < 0 || link_ask_pid(g->link, INIT_WRITE_STACK, g->pid) < 0)
		return 0;
	/* A busy machine may delay the next line. */
	while (!stack_is_whole(text) && now < end &&
		now < grown + STACK_SILENT_MS) {
		link_poll(NULL, 0, 2);
		now = now_ms();
		if (pread(g->stack, text, GUEST_STACK_MAX, 0) !=
			GUEST_STACK_MAX)
			return 0;
		if (strlen(text) > n) {
			n = strlen(text);
			grown = now;
		}
	}
	return n;
}
