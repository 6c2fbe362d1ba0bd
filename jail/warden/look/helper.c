/* SPDX-License-Identifier: MIT */
/*
 * helper.c - a child of the warden that may be kept waiting in its place
 *
 * Runs in:   warden, and a child of it for each jail
 * Holds:     as the warden; the child keeps the jail's /proc and tty
 * Trusts:    the kernel's numbers. A guest can hold the locks that some files
 *            of /proc and calls on its tty wait for, as long as it likes
 * Leaves:    nothing: the child dies with the warden or with its jail
 *
 * The warden must not wait, because nobody else looks at the clocks. The
 * helper is killed when it has not answered in time, and then the warden goes
 * by what it sees itself: the clock runs on, and memory is in doubt. The
 * helper's work is limited to a share of a core, but while the jail is
 * stopped for it: then it is the cell's.
 */
#include "jail/warden/look/look.h"

#include "jail/base/io.h"
#include "jail/base/procstat.h"
#include "jail/walls/walls.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* It has answered by then, unless something holds it, or it has much to do, or
 * the machine has. Nothing holds it while its jail is stopped. */
#define ANSWER_MS 300
#define BUSY_MS 3000
#define STOPPED_MS 15000
/* Its work takes one part in so many of a core, and may be paid for so much
 * later. */
#define SHARE_DEN 32
#define CREDIT_MS 4000

/* ---- the child ---- */

static _Noreturn void serve_questions(
	const struct work_place *p, int sock, pid_t warden)
{
	const int keep[] = {
		sock, p->procs.proc_fd, p->tty_master, p->tty_slave, p->line};
	struct work q;
	struct work_result a;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ||
		getppid() != warden || ident_close_fds(keep, 5, NULL) < 0)
		_exit(1);
	prctl(PR_SET_NAME, "cellblock-help", 0, 0, 0);
	while (recv(sock, &q, sizeof(q), 0) == sizeof(q)) {
		work_do(p, &q, &a);
		if (send(sock, &a, sizeof(a) - sizeof(a.keys) + a.nkeys,
			    MSG_NOSIGNAL) < 0)
			break;
	}
	_exit(0);
}

/* ---- the warden ---- */

void helper_init(struct helper *s)
{
	*s = (struct helper){.sock = -1};
}

/* 0, or -1. */
static int start_child(struct helper *s, const struct work_place *p)
{
	pid_t warden = getpid();
	int sock;

	if (s->pid > 0 && waitpid(s->pid, NULL, WNOHANG) != s->pid)
		return -1; /* it was killed, and does not wake to that yet */
	s->pid = io_fork(&sock);
	if (s->pid == 0)
		serve_questions(p, sock, warden);
	if (s->pid > 0 && clock_getcpuclockid(s->pid, &s->cpu) == 0) {
		s->sock = sock;
		return 0;
	}
	fd_drop(&sock);
	return -1;
}

/* Begin to end it. */
static void begin_end(struct helper *s)
{
	if (s->sock >= 0)
		kill(s->pid, SIGKILL);
	fd_drop(&s->sock);
	s->asked_ms = 0;
}

static int64_t cpu_now_ns(const struct helper *s)
{
	int64_t ns = io_clock_ns(s->cpu);

	return ns < 0 ? s->cpu_ns : ns;
}

int helper_is_free(const struct helper *s, enum helper_haste haste)
{
	static const int64_t credit_ms[] = {[HELPER_CALM] = 0,
		[HELPER_LATE] = CREDIT_MS / 4,
		[HELPER_URGENT] = CREDIT_MS,
		[HELPER_STOPPED] = INT64_MAX / 2};

	return !s->asked_ms && s->paid_ms <= now_ms() + credit_ms[haste];
}

int helper_ask(
	struct helper *s, const struct work_place *p, const struct work *q)
{
	if (s->asked_ms || (s->sock < 0 && start_child(s, p) < 0))
		return -1;
	s->cpu_ns = cpu_now_ns(s);
	if (send(s->sock, q, sizeof(*q), MSG_DONTWAIT | MSG_NOSIGNAL) !=
		sizeof(*q)) {
		begin_end(s);
		return -1;
	}
	s->asked_ms = now_ms();
	return 0;
}

/* The question is over, one way or the other. */
static void settle_question(struct helper *s, int stopped)
{
	int64_t now = now_ms();
	int64_t work_ns = cpu_now_ns(s) - s->cpu_ns;

	s->asked_ms = 0;
	if (stopped) {
		s->cells_ns += work_ns;
		return;
	}
	s->paid_ms = s->paid_ms > now ? s->paid_ms : now;
	s->paid_ms += work_ns * SHARE_DEN / 1000000;
}

/* True if it waits for something, or has had all the time it may take. */
static int is_held(const struct helper *s, int stopped)
{
	int64_t took = now_ms() - s->asked_ms;
	struct procstat st;
	char path[32];

	if (stopped || took < ANSWER_MS)
		return took >= STOPPED_MS;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)s->pid);
	return took >= BUSY_MS || procstat_read(AT_FDCWD, path, &st) < 0 ||
	       st.state != 'R';
}

int helper_take(
	struct helper *s, int timeout_ms, int stopped, struct work_result *a)
{
	struct pollfd p = {.fd = s->sock, .events = POLLIN};
	ssize_t n;

	if (!s->asked_ms)
		return 0;
	if (timeout_ms > 0)
		link_poll(&p, 1, timeout_ms);
	n = recv(s->sock, a, sizeof(*a), MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN && !is_held(s, stopped))
		return 0;
	settle_question(s, stopped);
	if (n > 0)
		return 1;
	begin_end(s);
	return -1;
}

void helper_end(struct helper *s)
{
	begin_end(s);
	if (s->pid > 0)
		link_reap(s->pid);
	s->pid = 0;
}
