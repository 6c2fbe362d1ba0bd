/* SPDX-License-Identifier: MIT */
/*
 * warden_play.h - a warden whose init, guests and front end the test plays
 *
 * One thread, no jail, no namespaces, and a clock of its own. Whenever the
 * warden polls, the play takes what was sent to its parts and answers by their
 * scripts; when nothing is left to answer, time passes at once.
 *
 * A script is a list of messages with '|' between them. In a message %u is the
 * number that it answers and %p the pid of the guest. A message that begins
 * with '!' is an event:
 *
 *	!wait N    the remaining script runs N milliseconds later
 *	!died N    init reports the speaker's death, with this status
 *	!orphan N  the same, while a child of it holds its link open
 *	!close     the speaker's link breaks
 *	!dying     the same, and it has no memory any more
 *	!fd        its next message brings a descriptor
 *	!front N   the front end sends request N (an enum wire_front_type)
 *	!late      the front end interrupts and kills the request before the
 *	           last
 *	!gone      the front end goes
 *	!jail      init's link breaks
 *	!busy N    the process has used N milliseconds of CPU
 *	!drawn N   the front end has used N milliseconds of CPU
 *	!grown N   it has N MiB
 *	!copied N  it has copied N MiB that it shared with its checkpoint
 *	!added N   it has added N MiB, and copied nothing
 *	!holds N   it has N MiB; nothing is known of how it got them
 *	!left N    so many processes run beside the guests
 *	!oom N     the kernel has killed N processes of the cgroup for memory
 *	!killed    the process has SIGKILL, and no CPU to die with yet
 */
#ifndef TESTS_WARDEN_PLAY_H
#define TESTS_WARDEN_PLAY_H

/* The fortified poll() is an inline function, which no test can replace. */
#undef _FORTIFY_SOURCE

#include "forked.h"

#include "jail/base/io.h"
#include "jail/init/init.h"
#include "jail/walls/cgroup/cgroup.h"
#include "jail/warden/parts.h"
#include "jail/warden/warden.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#define GUESTS_MAX 64
#define LATER_MAX 16

struct actor {
	int pid;
	int sock; /* its end of a link to the warden, -1: dead or closed */
};

struct later {
	int64_t at_ms;
	int who; /* index of the guest */
	unsigned no;
	char text[512];
};

static struct play {
	struct warden w;
	struct jail_spec spec;
	int64_t now_ms;
	/* Somebody sets the clock of the host: when, and by how much. */
	int64_t set_at_ms, set_by_ms;
	int64_t drawn_ms; /* CPU time of the front end */
	int resting;	  /* the helper has worked too much to be asked */

	/* scripts, NULL for silence */
	const char *build; /* "ok", "error", "odd", "die" */
	const char *spawn; /* of init: "ok", "error", "die" */
	const char *boot;  /* of a guest from here on */
	const char *cell;
	const char *park;
	const char *copy; /* of the copy that PARK asked for */
	const char *wake;
	const char *ask;
	const char *stop; /* of init: "ok", "unseen", "die" */
	/* of init: "ok", "some"; at the second time: "late", "silent" */
	const char *kill;
	const char *discard;

	int front; /* our end of the front end's socket */
	int init;  /* our end of init's; -1: no jail */
	int slave; /* of the tty */
	int line;  /* its slave */
	char proc[64];
	int nguests, live;
	struct actor guest[GUESTS_MAX];
	int nlater;
	struct later later[LATER_MAX];
	struct work_place place; /* of the helper */
	struct work work;	 /* its last */

	/* what was asked for */
	int jails;
	int alarmed; /* waits for a death that an alarm would have cut short */
	int count[INIT_HELD + 1];
	struct link_pids pids; /* named by the last request */
	int interrupts;
	int took;	    /* events that say that a cell begins */
	uint32_t seq, last; /* requests; the last that can be interrupted */
} P;

/* ---- the clock and the waiting calls of the warden ---- */

static void play_step(void);

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	/* The clock of another process has a negative number. */
	int64_t ms = clock < 0 ? P.drawn_ms : P.now_ms;

	if (clock == CLOCK_REALTIME && P.now_ms >= P.set_at_ms)
		ms += P.set_by_ms;

	*ts = (struct timespec){ms / 1000, ms % 1000 * 1000000};
	return 0;
}

static int poll_now(struct pollfd *p, nfds_t n, int ms)
{
	struct timespec wait = {ms / 1000, ms % 1000 * 1000000L};

	return (int)syscall(SYS_ppoll, p, n, &wait, NULL, (size_t)8);
}

static int later_soonest(void)
{
	int first = -1;

	for (int i = 0; i < P.nlater; i++)
		if (first < 0 || P.later[i].at_ms < P.later[first].at_ms)
			first = i;
	return first;
}

static void script(int who, unsigned no, const char *text);

static void later_run(int i)
{
	struct later l = P.later[i];

	P.later[i] = P.later[--P.nlater];
	if (l.at_ms > P.now_ms)
		P.now_ms = l.at_ms;
	script(l.who, l.no, l.text);
}

int poll(struct pollfd *p, nfds_t n, int ms)
{
	int64_t end = P.now_ms + ms;

	for (;;) {
		int first, r;

		play_step();
		r = poll_now(p, n, 0);
		first = later_soonest();
		if (r != 0 || ms == 0)
			return r;
		if (first >= 0 && (ms < 0 || P.later[first].at_ms <= end)) {
			later_run(first);
			continue;
		}
		if (ms < 0) {
			/* No event is left: the front end goes. */
			shutdown(P.front, SHUT_RDWR);
			continue;
		}
		P.now_ms = end;
		return 0;
	}
}

int __poll_chk(struct pollfd *p, nfds_t n, int ms, size_t size);
int __poll_chk(struct pollfd *p, nfds_t n, int ms, size_t size)
{
	(void)size;
	return poll(p, n, ms);
}

pid_t waitpid(pid_t pid, int *status, int options)
{
	struct itimerval t = {0};

	getitimer(ITIMER_REAL, &t);
	P.alarmed += !options && t.it_value.tv_sec > 0;
	return wait4(pid, status, options, NULL);
}

#ifdef __GLIBC__
int ioctl(int fd, unsigned long request, ...)
#else
int ioctl(int fd, int request, ...)
#endif
{
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if ((unsigned long)request == TIOCSIG)
		P.interrupts++;
	return (int)syscall(SYS_ioctl, fd, request, arg);
}

#include "warden_play_jail.h"

/* ---- messages of the parts ---- */

static void front_sends(struct wire_front m)
{
	m.seq = ++P.seq;
	if (m.type == FRONT_INTERRUPT || m.type == FRONT_KILL)
		m.a = P.last;
	else
		P.last = m.seq;
	io_send_fds(P.front, &m, sizeof(m), NULL, 0, MSG_DONTWAIT);
}

static void kernel_has_killed(int n)
{
	struct cgroup *c = &P.w.site.cgroup;
	int *counts = &c->file[CGROUP_F_OOM];

	c->kind = CGROUP_V2;
	fd_drop(counts);
	*counts = memfd_create("counts", MFD_CLOEXEC);
	dprintf(*counts, "oom_kill %d\n", n);
}

static void front_runs(void)
{
	const struct wire_front m = {.type = FRONT_RUN, .seq = ++P.seq, .a = 1};
	int fd = io_sealed_memfd("cell", "1", 1);

	P.last = m.seq;
	io_send_fds(P.front, &m, sizeof(m), &fd, 1, MSG_DONTWAIT);
	close(fd);
}

/* Run an event. Returns 1 if the remaining script runs later. */
static int script_event(
	int who, unsigned no, const char *word, const char *rest)
{
	int n = 0, pid = P.guest[who].pid;
	char name[16] = "";

	sscanf(word, "!%15s %d", name, &n);
	if (!strcmp(name, "wait")) {
		struct later *l = &P.later[P.nlater++];

		assert_true(P.nlater <= LATER_MAX);
		*l = (struct later){
			.at_ms = P.now_ms + n, .who = who, .no = no};
		snprintf(l->text, sizeof(l->text), "%s", rest);
		return 1;
	}
	if (!strcmp(name, "died"))
		guest_dies(who, n);
	else if (!strcmp(name, "orphan"))
		guest_orphans(who, n);
	else if (!strcmp(name, "close"))
		fd_drop(&P.guest[who].sock);
	else if (!strcmp(name, "dying")) {
		proc_gone(pid);
		fd_drop(&P.guest[who].sock);
	} else if (!strcmp(name, "front"))
		front_sends((struct wire_front){.type = n});
	else if (!strcmp(name, "run"))
		front_runs();
	else if (!strcmp(name, "late")) {
		P.last--;
		front_sends((struct wire_front){.type = FRONT_INTERRUPT});
		front_sends((struct wire_front){.type = FRONT_KILL});
		P.last++;
	} else if (!strcmp(name, "gone"))
		shutdown(P.front, SHUT_RDWR);
	else if (!strcmp(name, "jail"))
		jail_dies();
	else if (!strcmp(name, "busy"))
		proc_is(pid, n, 0);
	else if (!strcmp(name, "drawn"))
		P.drawn_ms = n;
	else if (!strcmp(name, "grown"))
		proc_shows(pid, 'S', n);
	else if (!strcmp(name, "copied")) {
		proc_is(pid, 0, n * 256);
		proc_write(pid, "smaps_rollup",
			"00-ff ---p 00 00:00 0 [rollup]\n"
			"Private_Dirty: %d kB\n",
			n * 1024);
	} else if (!strcmp(name, "added")) {
		proc_added(pid, n);
	} else if (!strcmp(name, "holds")) {
		proc_holds(pid, n);
	} else if (!strcmp(name, "leaving"))
		proc_write(n, "status",
			"Name:\tpython3\nState:\tD\n"
			"Threads:\t1\n");
	else if (!strcmp(name, "oom"))
		kernel_has_killed(n);
	else if (!strcmp(name, "killed"))
		proc_write(pid, "status",
			"Name:\tpython3\nState:\tR\nThreads:\t1\n"
			"ShdPnd:\t0000000000000100\nVmSize:\t1 kB\n");
	else if (!strcmp(name, "left"))
		for (int i = 0; i < n; i++)
			proc_is(900 + i, 0, 0);
	else
		fail_msg("no such event: %s", word);
	return 0;
}

static void script(int who, unsigned no, const char *text)
{
	int with = 0;

	while (text && *text) {
		size_t n = strcspn(text, "|"), k = 0;
		const char *rest = text + n + (text[n] == '|');
		char out[512], word[512];

		snprintf(word, sizeof(word), "%.*s", (int)n, text);
		text = rest;
		if (!strcmp(word, "!fd")) {
			with = 1;
			continue;
		}
		if (word[0] == '!') {
			if (script_event(who, no, word, rest))
				return;
			continue;
		}
		for (size_t i = 0; i < n; i++) {
			if (word[i] == '%' && word[i + 1] == 'u')
				k += (size_t)sprintf(out + k, "%u", no), i++;
			else if (word[i] == '%' && word[i + 1] == 'p')
				k += (size_t)sprintf(
					out + k, "%d", P.guest[who].pid),
					i++;
			else
				out[k++] = word[i];
		}
		/* Linux 6.16 refuses to pass a descriptor to the warden. */
		if (P.guest[who].sock >= 0 &&
			io_send_fds(P.guest[who].sock, out, k, (int[]){P.slave},
				with, MSG_DONTWAIT) < 0 &&
			with)
			fd_drop(&P.guest[who].sock);
		with = 0;
	}
}

/* The source, as a guest reads it; its bytes are on their way. */
static void read_source(size_t bytes)
{
	char buf[4096];

	while (bytes > 0) {
		struct pollfd p = {.fd = P.line, .events = POLLIN};
		ssize_t n;

		if (poll_now(&p, 1, 5000) <= 0)
			return;
		n = read(
			P.line, buf, bytes < sizeof(buf) ? bytes : sizeof(buf));
		if (n <= 0)
			return;
		bytes -= (size_t)n;
	}
}

static void guest_hears(int who, char *buf, ssize_t n, const int *fds)
{
	unsigned no = 0;
	size_t bytes = 0;

	buf[n] = '\0';
	if (sscanf(buf, "CELL %u %zu", &no, &bytes) == 2) {
		read_source(bytes);
		script(who, no, P.cell);
	} else if (sscanf(buf, "PARK %u", &no) == 1) {
		int copy = guest_new(dup(fds[0]));

		script(who, no, P.park);
		script(copy, no, P.copy);
	} else if (sscanf(buf, "ASK %u", &no) == 1) {
		script(who, no, P.ask);
	} else if (!strcmp(buf, "RESUME")) {
		script(who, 0, P.wake);
	} else {
		fail_msg("the guest hears: %s", buf);
	}
}

static int is_named(const struct wire_init *m, int pid)
{
	for (int i = 0; i < m->npids; i++)
		if (m->pids[i] == pid)
			return 1;
	return 0;
}

static void init_kills(const struct wire_init *m, int but)
{
	struct wire_init r = {
		.type = INIT_KILLED, .seq = m->seq, .all_gone = 1};

	for (int i = 0; i < P.nguests; i++) {
		if (is_named(m, P.guest[i].pid) == but || P.guest[i].sock < 0)
			continue;
		r.killed++;
		if (i == P.live || !but) {
			guest_dies(i, SIGKILL);
		} else {
			fd_drop(&P.guest[i].sock);
			proc_gone(P.guest[i].pid);
		}
	}
	for (int pid = 900; pid < 999; pid++)
		r.killed += proc_gone(pid);
	if (!but)
		return;
	if (!P.kill || (!strcmp(P.kill, "silent") && P.count[INIT_KILL] == 1))
		return;
	r.all_gone = strcmp(P.kill, "some") != 0 &&
		     (strcmp(P.kill, "late") != 0 || P.count[INIT_KILL] > 1);
	init_says(&r, NULL, 0);
}

static void init_spawns(const struct wire_init *m, int *fds)
{
	struct wire_init r = {.type = INIT_SPAWNED, .seq = m->seq, .npids = 1};

	if (!P.spawn || !P.build || strcmp(P.build, "ok") != 0)
		return;
	if (!strcmp(P.spawn, "die")) {
		jail_dies();
		return;
	}
	P.live = guest_new(fd_take(&fds[SPAWN_CTL]));
	r.pids[0] = P.guest[P.live].pid;
	if (!strcmp(P.spawn, "error")) {
		r.type = INIT_ERROR;
		err_set(&r.err, "execute python3: no");
	}
	init_says(&r, NULL, 0);
	script(P.live, 0, P.boot);
}

static void init_hears(const struct wire_init *m, int *fds)
{
	struct wire_init r = {.seq = m->seq};

	P.count[m->type]++;
	if (m->npids || m->type == INIT_STOP || m->type == INIT_KILL)
		P.pids.n = m->npids;
	memcpy(P.pids.v, m->pids, sizeof(m->pids));
	switch ((int)m->type) {
	case INIT_SPAWN:
		init_spawns(m, fds);
		break;
	case INIT_STOP:
	case INIT_PAUSE:
		r.type = INIT_STOPPED;
		r.unseen = P.stop && !strcmp(P.stop, "unseen");
		if (P.stop && !strcmp(P.stop, "die"))
			jail_dies();
		else if (P.stop)
			init_says(&r, NULL, 0);
		break;
	case INIT_KILL:
		init_kills(m, 1);
		break;
	case INIT_RESUME:
		for (int i = 0; i < P.nguests; i++)
			if (P.guest[i].pid == m->pids[0])
				P.live = i;
		break;
	case INIT_DISCARD:
		for (int i = 0; i < P.nguests; i++)
			if (P.guest[i].pid == m->pids[0]) {
				fd_drop(&P.guest[i].sock);
				proc_gone(P.guest[i].pid);
			}
		r.type = INIT_DISCARDED;
		if (P.discard)
			init_says(&r, NULL, 0);
		break;
	}
}

/* Take all that was sent, and answer. */
static void play_step(void)
{
	static char buf[WIRE_GUEST_MAX + 1];
	int fds[IO_FDS_MAX], again = 1;
	struct wire_init m;
	ssize_t n;

	while (again) {
		again = 0;
		while (P.init >= 0 &&
			(n = io_recv_fds(P.init, &m, sizeof(m), fds, IO_FDS_MAX,
				 MSG_DONTWAIT)) > 0) {
			again = 1;
			init_hears(&m, fds);
			for (int i = 0; i < IO_FDS_MAX; i++)
				fd_drop(&fds[i]);
		}
		for (int i = 0; i < P.nguests; i++) {
			if (P.guest[i].sock < 0)
				continue;
			n = io_recv_fds(P.guest[i].sock, buf, WIRE_GUEST_MAX,
				fds, IO_FDS_MAX, MSG_DONTWAIT);
			if (n <= 0)
				continue;
			again = 1;
			guest_hears(i, buf, n, fds);
			for (int k = 0; k < IO_FDS_MAX; k++)
				fd_drop(&fds[k]);
		}
	}
}

/* ---- the stage ---- */

#define W (&P.w)
#define RESTARTED "Python restarted, variables lost · home kept"
#define ASLEEP "ASLEEP %p 3 1"
#define DONE_OK "TOOK %u|DONE %u ok 3 0 0 1"

/* A session in which every part answers as it should. */
static int play_open(void **state)
{
	struct cgroup_caps none = {.kind = CGROUP_NONE};
	int pair[2];

	(void)state;
	memset(&P, 0, sizeof(P));
	P.now_ms = 1000000;
	P.init = P.slave = P.line = P.live = -1;
	P.build = P.spawn = P.stop = P.kill = P.discard = "ok";
	P.boot = "READY %p 3.11.2";
	P.cell = DONE_OK;
	P.park = "PARKED %u ok";
	P.copy = ASLEEP;
	P.wake = "AWAKE %p 2";
	P.ask = "ANSWER %u 2\nok";
	strcpy(P.proc, "/tmp/cellblock-play-XXXXXX");
	assert_non_null(mkdtemp(P.proc));
	P.spec.python = "/usr/bin/python3";
	P.spec.limits = (struct limits){.cell_wall_ms = 10000,
		.cell_grace_ms = 1000,
		.cell_cpu_ms = 10000,
		.source_bytes = 1000,
		.undo = 1,
		.memory_bytes = 512 << 20,
		.processes = 64,
		.idle_ms = 1800000,
		.lifetime_ms = 43200000};
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	P.front = pair[0];
	P.w.site.spec = &P.spec;
	P.w.site.home.root = -1;
	cgroup_place(&P.w.site.cgroup, &none, NULL, NULL);
	warden_init(&P.w, &P.spec, pair[1]);
	return 0;
}

static int play_close(void **state)
{
	(void)state;
	warden_end_jail(&P.w);
	jail_dies();
	fd_drop(&P.w.site.cgroup.file[CGROUP_F_OOM]);
	fd_drop(&P.w.link.front);
	fd_drop(&P.front);
	fd_drop(&P.slave);
	fd_drop(&P.line);
	for (int pid = 900; pid < 999; pid++)
		proc_gone(pid);
	assert_int_equal(rmdir(P.proc), 0);
	return 0;
}

/* The next event for the front end, JAIL_TOOK only counted; 0 when there is
 * none. */
/* The bytes behind an event. */
static void read_behind(size_t n)
{
	char piece[WIRE_PIECE + 1];
	ssize_t r;

	for (; n > 0; n -= (size_t)r - 1) {
		r = recv(P.front, piece, sizeof(piece), MSG_DONTWAIT);
		assert_in_range(r, 2, n + 1);
	}
}

static int next_event(struct wire_event *m)
{
	int fds[IO_FDS_MAX];
	ssize_t n = io_recv_fds(
		P.front, m, sizeof(*m), fds, IO_FDS_MAX, MSG_DONTWAIT);

	for (int i = 0; i < IO_FDS_MAX; i++)
		fd_drop(&fds[i]);
	if (n == sizeof(*m) && m->event.nbytes)
		read_behind(m->event.nbytes);
	if (n != sizeof(*m) || m->event.type != JAIL_TOOK)
		return n == sizeof(*m);
	P.took++;
	return next_event(m);
}

static void expect_event(enum jail_event_type type, struct wire_event *m)
{
	assert_true(next_event(m));
	if (m->event.type != type)
		fail_msg("event %d, not %d: %s%s", m->event.type, type,
			m->event.text, m->event.err.msg);
}

static inline void expect_notice(const char *text)
{
	struct wire_event m;

	expect_event(JAIL_NOTICE, &m);
	assert_string_equal(m.event.text, text);
}

static void expect_nothing(void)
{
	struct wire_event m;

	if (next_event(&m))
		fail_msg("event %d: %s", m.event.type, m.event.text);
}

static inline void expect_up(int restarted)
{
	struct wire_event m;

	expect_event(JAIL_UP, &m);
	assert_int_equal(m.event.restarted, restarted);
	assert_string_equal(m.event.text, "3.11.2");
}

static inline void expect_parked(enum jail_no_checkpoint none)
{
	struct wire_event m;

	expect_event(JAIL_PARKED, &m);
	assert_int_equal(m.event.done.no_checkpoint, none);
	assert_true(W->jail.swept);
}

/* The jail is built, Python starts and is parked before cell 1. */
static void play_start(void)
{
	struct err e = {0};

	assert_int_equal(warden_build_begin(W, &e), 0);
	assert_int_equal(warden_build_await(W, &e), 0);
	assert_int_equal(warden_await_python(W, 0, &e), 0);
	assert_int_equal(warden_park(W), 0);
}

/* A session that is up and parked before cell 1; its events are read. */
static inline int play_up(void **state)
{
	struct wire_event m;

	play_open(state);
	play_start();
	expect_event(JAIL_UP, &m);
	expect_event(JAIL_PARKED, &m);
	expect_nothing();
	return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, play_open, play_close)
#define TEST_UP(f) cmocka_unit_test_setup_teardown(f, play_up, play_close)

#endif
