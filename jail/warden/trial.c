/* SPDX-License-Identifier: MIT */
/*
 * trial.c - a question for whose answer code of the user's runs
 *
 * Runs in:   warden, between cells
 * Trusts:    the kernel's clocks and init; nothing that the copy says
 * Leaves:    the live guest as it was, and no copy
 *
 * The live guest answers what it can without running anything of the user's.
 * For the rest it leaves a copy of itself, as for a checkpoint. Init confines
 * the copy while it is asleep (init's trial.c). Then the copy wakes, is asked
 * the same again, and is killed after any answer.
 */
#include "jail/warden/parts.h"

#include "jail/base/io.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The CPU time that the copy may have; how often the warden looks at it; and
 * how long it waits for a copy that gets none, or rests. */
#define TRIAL_CPU_MS 150
#define TRIAL_LOOK_MS 10
#define TRIAL_MS 1000
/* The part of the memory that must be free for a copy: as much again as it may
 * have (init.c). */
#define TRIAL_FREE_DEN 4
/* Bytes of the expression that are said. */
#define EXPRESSION_MAX 48

static int64_t cpu_ms(const struct warden *w, pid_t pid)
{
	struct procstat st;

	return procs_stat(&w->jail.place.procs, pid, &st) < 0
		       ? 0
		       : st.cpu_ticks * 1000 / sysconf(_SC_CLK_TCK);
}

static int await_answer(
	struct warden *w, int sock, pid_t pid, struct guest_message *m)
{
	const int64_t end = now_ms() + TRIAL_MS;
	int r;

	do
		r = guest_await(&w->guest, sock, m, now_ms() + TRIAL_LOOK_MS);
	while (r == 0 && now_ms() < end && cpu_ms(w, pid) < TRIAL_CPU_MS);
	return r;
}

/* 0, -1 where it cannot be confined, or SESSION_OVER. */
static int confine_trial(struct warden *w, pid_t pid)
{
	struct wire_init m;
	int r = link_ask_pid(&w->link, INIT_CONFINE, pid) < 0
			? -1
			: link_await(&w->link, INIT_CONFINED, &m,
				  now_ms() + TRIAL_MS);

	return r == 0 && m.err.msg[0] ? -1 : r;
}

/* Wake the copy, and ask it. 1 answered; 0 it takes too long; -1 it has ended;
 * SESSION_OVER. */
static int ask_copy(struct warden *w, int sock, pid_t pid,
	const struct trial_question *q, struct guest_message *m)
{
	size_t n = wire_resume_encode(m->bytes);
	int r;

	if (io_send_fds(sock, m->bytes, n, NULL, 0, MSG_DONTWAIT) < 0)
		return -1;
	r = await_answer(w, sock, pid, m);
	if (r != 1 || m->wire.type != GUEST_AWAKE)
		return r == 1 ? -1 : r;
	n = wire_ask_encode(m->bytes, q->no, q->kind, 0, q->text, q->n);
	if (io_send_fds(sock, m->bytes, n, NULL, 0, MSG_DONTWAIT) < 0)
		return -1;
	r = await_answer(w, sock, pid, m);
	return r == 1 && (m->wire.type != GUEST_ANSWER || m->wire.no != q->no)
		       ? -1
		       : r;
}

/* The expression, as the guest names it, at most so much of it. */
static void read_expression(
	const struct wire_guest *m, char out[EXPRESSION_MAX + 4])
{
	size_t n = m->answer_n;

	if (n > EXPRESSION_MAX) {
		for (n = EXPRESSION_MAX; n && (m->answer[n] & 0xc0) == 0x80;)
			n--;
		strcpy(out + n, "...");
	} else {
		out[n] = '\0';
	}
	memcpy(out, m->answer, n);
}

int trial_ask(struct warden *w, const struct trial_question *q,
	struct guest_message *m, struct err *e)
{
	struct checkpoints *c = &w->checkpoints;
	const int64_t most = w->spec->limits.memory_bytes;
	char what[EXPRESSION_MAX + 4];
	auto_close int sock = -1;
	pid_t pid;
	int r;

	read_expression(&m->wire, what);
	if (most - warden_jail_bytes(&w->jail) < most / TRIAL_FREE_DEN)
		return TRIAL_NO_COPY;
	r = checkpoints_copy(
		c, CHECKPOINTS_TRIAL, now_ms() + TRIAL_MS, &sock, m);
	if (r != 1)
		return r == 0 ? TRIAL_NO_COPY : r;
	pid = m->wire.pid;
	r = confine_trial(w, pid);
	if (r == 0)
		r = ask_copy(w, sock, pid, q, m);
	else if (r == -1)
		r = TRIAL_NO_COPY;
	if (r == 0)
		err_set(e, "%s takes longer than %d ms", what, TRIAL_CPU_MS);
	else if (r == -1)
		err_set(e, "%s is the end of Python", what);
	checkpoints_end_copy(c, pid);
	if (r == SESSION_OVER || checkpoints_await_ended(c) == SESSION_OVER)
		return SESSION_OVER;
	if (!guest_is_alive(&w->guest))
		return -1;
	return r == 0 || r == -1 ? TRIAL_FAILED : r;
}
