/* SPDX-License-Identifier: MIT */
/*
 * warden_play_jail.h - the jail of warden_play.h: processes that are files, and
 * numbers of the kernel as the play sets them
 */
#ifndef WARDEN_PLAY_JAIL_H
#define WARDEN_PLAY_JAIL_H

/* Processes are files in a directory, as in /proc. */
static void proc_write(int pid, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void proc_write(int pid, const char *name, const char *fmt, ...)
{
	char path[128];
	va_list ap;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%d", P.proc, pid);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/%d/%s", P.proc, pid, name);
	f = fopen(path, "w");
	assert_non_null(f);
	va_start(ap, fmt);
	vfprintf(f, fmt, ap);
	va_end(ap);
	fclose(f);
}

static void proc_shows(int pid, char state, int mib)
{
	proc_write(pid, "status",
		"Name:\tpython3\nState:\t%c\nThreads:\t1\nVmSize:\t1 kB\n"
		"VmPTE:\t%d kB\n",
		state, mib * 1024);
}

static void proc_is(int pid, int busy_ms, int faults)
{
	proc_write(pid, "stat",
		"%d (python3) S 1 %d 1 0 -1 0 %d 0 0 0 %d 0 0 0 20 0 1 0 5 0 "
		"100 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
		pid, pid, faults, (int)(busy_ms * sysconf(_SC_CLK_TCK) / 1000));
	proc_shows(pid, 'S', 0);
}

static void proc_added(int pid, int mib)
{
	proc_write(pid, "stat",
		"%d (python3) S 1 %d 1 0 -1 0 %d 0 0 0 0 0 0 0 20 0 1 0 5 0 "
		"%ld 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
		pid, pid, mib * 256, (mib << 20) / sysconf(_SC_PAGESIZE));
	proc_write(pid, "status",
		"Name:\tpython3\nState:\tS\nThreads:\t1\nVmSize:\t1 kB\n"
		"VmRSS:\t%d kB\nRssAnon:\t%d kB\n",
		mib * 1024, mib * 1024);
	proc_write(pid, "smaps_rollup",
		"00-ff ---p 00 00:00 0 [rollup]\nRss: %d kB\n"
		"Private_Dirty: %d kB\n",
		mib * 1024, mib * 1024);
}

static void proc_holds(int pid, int mib)
{
	proc_write(pid, "status",
		"Name:\tpython3\nState:\tS\nThreads:\t1\nVmSize:\t1 kB\n"
		"RssAnon:\t%d kB\n",
		mib * 1024);
}

/* Returns 1 if the process existed. */
static int proc_gone(int pid)
{
	int r = -1;
	char path[128];
	static const char *const names[] = {
		"/stat", "/status", "/smaps_rollup", "/wchan", ""};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%d%s", P.proc, pid, names[i]);
		r = remove(path);
	}
	return r == 0;
}

static int guest_new(int sock)
{
	int i = P.nguests++;

	assert_true(P.nguests <= GUESTS_MAX);
	P.guest[i] = (struct actor){.pid = 40 + i, .sock = sock};
	proc_is(P.guest[i].pid, 0, 0);
	return i;
}

static void init_says(const struct wire_init *m, const int *fds, int nfds)
{
	if (P.init >= 0)
		io_send_fds(P.init, m, sizeof(*m), fds, nfds, MSG_DONTWAIT);
}

static void guest_orphans(int who, int status)
{
	struct wire_init m = {.type = INIT_DIED,
		.npids = 1,
		.pids = {P.guest[who].pid},
		.status = status};

	proc_gone(P.guest[who].pid);
	init_says(&m, NULL, 0);
}

static void guest_dies(int who, int status)
{
	fd_drop(&P.guest[who].sock);
	guest_orphans(who, status);
}

static void jail_dies(void)
{
	fd_drop(&P.init);
	for (int i = 0; i < P.nguests; i++) {
		fd_drop(&P.guest[i].sock);
		proc_gone(P.guest[i].pid);
	}
	P.live = -1;
}

/* The real one clones into namespaces. */
pid_t init_start(const struct init *in, struct err *e)
{
	struct wire_init m = {.type = INIT_BUILT};
	int fds[6], proc, line, closed[2];
	pid_t pid;
	char c;

	(void)e;
	jail_dies();
	P.jails++;
	P.init = dup(in->sock);
	assert_int_equal(pipe(closed), 0);
	pid = fork();
	if (pid == 0) {
		/* The warden only waits for its death. */
		syscall(SYS_close_range, 0u, ~0u, 0u);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	close(closed[1]);
	assert_int_equal(read(closed[0], &c, 1), 0); /* it holds nothing */
	close(closed[0]);
	fd_drop(&P.slave);
	fd_drop(&P.line);
	assert_int_equal(openpty(&fds[0], &P.slave, NULL, NULL, NULL), 0);
	assert_int_equal(openpty(&line, &P.line, NULL, NULL, NULL), 0);
	fds[1] = dup(P.slave);
	fcntl(fds[1], F_SETFL, O_NONBLOCK);
	fds[2] = line;
	/* Empty file systems in memory. */
	fds[3] = open("/proc", O_RDONLY | O_DIRECTORY);
	fds[4] = open("/proc", O_RDONLY | O_DIRECTORY);
	proc = fds[5] = open(P.proc, O_RDONLY | O_DIRECTORY);
	assert_true(proc >= 0);
	if (P.build && !strcmp(P.build, "error")) {
		m.type = INIT_ERROR;
		err_set(&m.err, "mount the root: no");
	}
	if (P.build && !strcmp(P.build, "odd"))
		m.type = INIT_KILLED;
	if (P.build && !strcmp(P.build, "die"))
		fd_drop(&P.init);
	else if (P.build)
		init_says(&m, fds, m.type == INIT_ERROR ? 0 : 6);
	for (int i = 0; i < 6; i++)
		close(fds[i]);
	return pid;
}

/* The real one measures this host. */
int64_t copycost_page_ns(void)
{
	return 6000;
}

/* The real one is a process, for which the time of the play does not pass. */
void helper_init(struct helper *s)
{
	*s = (struct helper){.sock = -1};
}

int helper_is_free(const struct helper *s, enum helper_haste haste)
{
	(void)haste;
	return !s->asked_ms && !P.resting;
}

int helper_ask(
	struct helper *s, const struct work_place *p, const struct work *q)
{
	s->asked_ms = P.now_ms;
	P.place = *p;
	P.work = *q;
	return 0;
}

int helper_take(
	struct helper *s, int timeout_ms, int stopped, struct work_result *r)
{
	(void)timeout_ms;
	(void)stopped;
	if (!s->asked_ms)
		return 0;
	s->asked_ms = 0;
	work_do(&P.place, &P.work, r);
	return 1;
}

void helper_end(struct helper *s)
{
	s->asked_ms = 0;
}

#endif
