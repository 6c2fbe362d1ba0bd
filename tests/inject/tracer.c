/* SPDX-License-Identifier: MIT */
/*
 * tracer.c - run cellblock, and make one system call of its set-up fail, or
 * kill the process that makes the call
 *
 *	tracer REPORT survey COMMAND [ARG]...
 *	tracer REPORT ROLE CALL NTH ERRNO COMMAND [ARG]...
 *	tracer REPORT ROLE CALL NTH kill COMMAND [ARG]...
 *	tracer REPORT steps COMMAND [ARG]...
 *	tracer REPORT step CHILD CALL SITE NTH COMMAND [ARG]...
 *
 * The first form writes a "ROLE CALL NTH ARG0" line into REPORT for every call
 * from the fork of the warden until Python starts. The second form skips the
 * nth CALL of the role's process and returns ERRNO from it. The third form
 * kills the process that is about to make the call. After that the tracer
 * detaches, and everything runs at full speed.
 *
 * The last two forms are for a command that goes on and has children, such as
 * the maker of sessions. They look at the command (CHILD 0) and at its own
 * children, which are numbered as they come, and not at theirs. "steps" writes
 * a "CHILD CALL SITE NTH" line for each call. SITE is the place in the program's
 * own code that the call comes from: calls of one site are one step of the
 * program's text. "step" kills the child that is about to make the nth CALL at
 * SITE, and writes "killed" at once. Both begin with a "command PID" line.
 *
 * Roles: front, warden, janitor, init, guest (the child before exec).
 *
 * The tracer adopts every orphan. It waits until no process of the command is
 * left, or names the remaining processes in REPORT. Exit status: that of the
 * command, 128 + n for a signal, 99 when the tracer itself failed.
 */
#include <elf.h>
#include <errno.h>
#include <seccomp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TASKS_MAX 256
#define CALLS_MAX 512
/* The time that other processes have to end after the command has ended. */
#define LEFT_SECONDS 10
/* How far up the stack the program's own code is looked for. */
#define SITE_WORDS 512

enum role { FRONT, WARDEN, JANITOR, INIT, GUEST, OTHER };
static const char *const role_names[] = {
	"front", "warden", "janitor", "init", "guest", "other"};

struct task {
	pid_t pid;
	enum role role;
	int counts[CALLS_MAX];
	int skipping; /* the current call is skipped */
	int child;    /* its number in the last two forms; -1: it has none */
};

struct tracer {
	FILE *report;
	struct task tasks[TASKS_MAX];
	int n;
	int armed;   /* the warden exists: the set-up has begun */
	int settled; /* the janitor waits for the end of the session */
	pid_t held;  /* the guest, stopped until the janitor settles */
	int over;    /* nothing more to trace */
	int survey;
	enum role role;
	int call, nth, error;
	int kill; /* instead of an error */
	int injected;
	/* the last two forms */
	int steps;
	int children, child;
	unsigned long site, text, text_end;
};

static _Noreturn void fail(const char *what)
{
	perror(what);
	exit(99);
}

/* One field of /proc/PID/status, or an empty string. */
static void status_field(pid_t pid, const char *key, char *value, size_t size)
{
	char path[64], line[256];
	FILE *f;

	*value = '\0';
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)) &&
			line[strlen(key)] == ':')
			snprintf(value, size, "%s", line + strlen(key) + 1);
	if (f)
		fclose(f);
}

static struct task *find(struct tracer *t, pid_t pid)
{
	for (int i = 0; i < t->n; i++)
		if (t->tasks[i].pid == pid)
			return &t->tasks[i];
	return NULL;
}

/* The role of a process follows from the role of its parent. */
static enum role role_of(struct tracer *t, pid_t pid)
{
	char text[128];
	const struct task *parent;

	status_field(pid, "PPid", text, sizeof(text));
	parent = find(t, (pid_t)atoi(text));
	if (!parent)
		return t->n ? OTHER : FRONT;
	switch (parent->role) {
	case FRONT:
		return WARDEN;
	case WARDEN:
		status_field(pid, "NSpid", text, sizeof(text));
		return strchr(text + 1, '\t') ? INIT : JANITOR;
	case INIT:
		return GUEST;
	case JANITOR:
	case GUEST:
	case OTHER:
		break;
	}
	return OTHER;
}

static struct task *meet(struct tracer *t, pid_t pid)
{
	struct task *task = find(t, pid);

	if (task)
		return task;
	if (t->n == TASKS_MAX)
		fail("too many processes");
	task = &t->tasks[t->n];
	memset(task, 0, sizeof(*task));
	task->role = role_of(t, pid);
	task->pid = pid;
	task->child = task->role == WARDEN  ? ++t->children
		      : task->role == FRONT ? 0
					    : -1;
	t->n++;
	t->armed |= task->role == WARDEN;
	return task;
}

static void regs_move(int request, pid_t pid, int set, void *regs, size_t size)
{
	struct iovec iov = {regs, size};

	if (ptrace(request, pid, (void *)(long)set, &iov) < 0)
		fail("registers");
}

/* Skip the call, at its entry. */
static void call_skip(pid_t pid)
{
#if defined(__x86_64__)
	struct user_regs_struct regs;

	regs_move(PTRACE_GETREGSET, pid, NT_PRSTATUS, &regs, sizeof(regs));
	regs.orig_rax = (unsigned long long)-1;
	regs_move(PTRACE_SETREGSET, pid, NT_PRSTATUS, &regs, sizeof(regs));
#elif defined(__aarch64__)
	int none = -1;

	regs_move(
		PTRACE_SETREGSET, pid, NT_ARM_SYSTEM_CALL, &none, sizeof(none));
#else
#error "only x86-64 and arm64 are supported"
#endif
}

/* Set the return value of the call, at its exit. */
static void call_return(pid_t pid, int value)
{
	struct user_regs_struct regs;

	regs_move(PTRACE_GETREGSET, pid, NT_PRSTATUS, &regs, sizeof(regs));
#if defined(__x86_64__)
	regs.rax = (unsigned long long)value;
#elif defined(__aarch64__)
	regs.regs[0] = (unsigned long long)value;
#endif
	regs_move(PTRACE_SETREGSET, pid, NT_PRSTATUS, &regs, sizeof(regs));
}

/* These calls never fail: without them a process cannot even end. */
static int is_spared(long nr)
{
	return nr == SCMP_SYS(exit) || nr == SCMP_SYS(exit_group) ||
	       nr == SCMP_SYS(rt_sigreturn) || nr == SCMP_SYS(restart_syscall);
}

/* ---- steps ---- */

/* Where the program's own code lies; its children do not move it. */
static void find_text(struct tracer *t, pid_t pid)
{
	char path[64], exe[256] = "", line[512];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	(void)!readlink(path, exe, sizeof(exe) - 1);
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	while (f && !t->text_end && fgets(line, sizeof(line), f))
		if (strstr(line, " r-xp ") && strstr(line, exe))
			sscanf(line, "%lx-%lx", &t->text, &t->text_end);
	if (f)
		fclose(f);
}

/* Where in the program a call comes from: the first return address on the stack
 * that is not a library's. */
static unsigned long find_site(
	const struct tracer *t, pid_t pid, unsigned long sp)
{
	unsigned long words[SITE_WORDS];
	struct iovec to = {words, sizeof(words)},
		     from = {(void *)sp, sizeof(words)};
	ssize_t n;

	/* The memory above the stack cannot be read. */
	do
		n = process_vm_readv(pid, &to, 1, &from, 1, 0);
	while (n < 0 && (from.iov_len /= 2) >= sizeof(*words));
	for (ssize_t i = 0; i < n / (ssize_t)sizeof(*words); i++)
		if (words[i] >= t->text && words[i] < t->text_end)
			return words[i] - t->text;
	return 0;
}

static int count_site(int child, long nr, unsigned long site)
{
	static struct {
		int child, n;
		long nr;
		unsigned long site;
	} seen[4096];
	static int n;
	int i = 0;

	while (i < n && (seen[i].child != child || seen[i].nr != nr ||
				seen[i].site != site))
		i++;
	if (i == n) {
		if (n == 4096)
			fail("too many sites");
		seen[n].child = child;
		seen[n].nr = nr;
		seen[n++].site = site;
	}
	return ++seen[i].n;
}

static void on_step(struct tracer *t, struct task *task, long nr, long sp)
{
	unsigned long site;
	int nth;

	if (!t->text_end || nr < 0 || nr >= CALLS_MAX)
		return;
	site = find_site(t, task->pid, (unsigned long)sp);
	nth = count_site(task->child, nr, site);
	if (t->survey) {
		char *name = seccomp_syscall_resolve_num_arch(
			SCMP_ARCH_NATIVE, (int)nr);

		fprintf(t->report, "%d %s %lx %d\n", task->child,
			name ? name : "?", site, nth);
		fflush(t->report);
		free(name);
	} else if (task->child == t->child && nr == t->call &&
		   site == t->site && nth == t->nth) {
		kill(task->pid, SIGKILL);
		fprintf(t->report, "killed\n");
		fflush(t->report);
		t->injected = t->over = 1;
	}
}

static void on_entry(struct tracer *t, struct task *task, long nr, long arg0)
{
	t->settled |= task->role == JANITOR && nr == SCMP_SYS(read);
	if (!t->armed || nr < 0 || nr >= CALLS_MAX || is_spared(nr))
		return;
	task->counts[nr]++;
	if (t->survey) {
		char *name = seccomp_syscall_resolve_num_arch(
			SCMP_ARCH_NATIVE, (int)nr);

		fprintf(t->report, "%s %s %d %ld\n", role_names[task->role],
			name ? name : "?", task->counts[nr], arg0);
		free(name);
		return;
	}
	if (task->role != t->role || nr != t->call ||
		task->counts[nr] != t->nth)
		return;
	if (t->kill) {
		kill(task->pid, SIGKILL);
		t->injected = 1;
		t->over = 1;
		return;
	}
	/* A close that fails still closes the descriptor. */
	if (nr != SCMP_SYS(close))
		call_skip(task->pid);
	task->skipping = 1;
}

static void on_exit_of_call(struct tracer *t, struct task *task)
{
	if (!task->skipping)
		return;
	task->skipping = 0;
	call_return(task->pid, -t->error);
	t->injected = 1;
	t->over = 1;
}

static void on_syscall(struct tracer *t, struct task *task)
{
	struct __ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, task->pid, sizeof(info), &info) < 0)
		return;
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY && t->steps)
		on_step(t, task, (long)info.entry.nr, (long)info.stack_pointer);
	else if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
		on_entry(
			t, task, (long)info.entry.nr, (long)info.entry.args[0]);
	else if (info.op == PTRACE_SYSCALL_INFO_EXIT)
		on_exit_of_call(t, task);
}

static int janitor_settles(const struct tracer *t)
{
	for (int i = 0; i < t->n; i++)
		if (t->tasks[i].role == JANITOR)
			return !t->settled;
	return 0;
}

/* A new child is registered at once, because its own first stop may come late.
 * The set-up is over when Python starts and the janitor is ready. No process
 * waits for the janitor, so the tracer does. */
static void on_event(struct tracer *t, struct task *task, int event)
{
	unsigned long child;

	if (event == PTRACE_EVENT_EXEC && t->steps) {
		if (task->role == FRONT)
			find_text(t, task->pid);
	} else if (event == PTRACE_EVENT_EXEC && task->role == GUEST) {
		t->held = task->pid;
	} else if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK ||
		   event == PTRACE_EVENT_CLONE) {
		if (ptrace(PTRACE_GETEVENTMSG, task->pid, NULL, &child) == 0)
			meet(t, (pid_t)child);
	}
}

static void on_stop(struct tracer *t, pid_t pid, int status)
{
	struct task *task = meet(t, pid);
	int sig = WSTOPSIG(status), event = status >> 16;

	if (sig == (SIGTRAP | 0x80)) {
		on_syscall(t, task);
		sig = 0;
	} else if (event) {
		on_event(t, task, event);
		sig = 0;
	}
	if (t->held && (t->over || !janitor_settles(t))) {
		t->over = 1;
		if (t->held != pid)
			ptrace(PTRACE_DETACH, t->held, NULL, NULL);
		t->held = 0;
	}
	if (t->held == pid)
		return;
	if ((t->over && !task->skipping) || (t->steps && task->child < 0))
		ptrace(PTRACE_DETACH, pid, NULL, (void *)(long)sig);
	else
		ptrace(PTRACE_SYSCALL, pid, NULL, (void *)(long)sig);
}

static pid_t start(char **argv)
{
	const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK |
			     PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
			     PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
	int gate[2];
	char go = 0;
	pid_t pid;

	if (pipe(gate) < 0)
		fail("pipe");
	pid = fork();
	if (pid < 0)
		fail("fork");
	if (pid == 0) {
		close(gate[1]);
		if (read(gate[0], &go, 1) != 1)
			_exit(99);
		close(gate[0]);
		execvp(argv[0], argv);
		perror(argv[0]);
		_exit(99);
	}
	close(gate[0]);
	if (ptrace(PTRACE_SEIZE, pid, NULL, (void *)options) < 0)
		fail("seize");
	if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) < 0)
		fail("interrupt");
	if (write(gate[1], &go, 1) != 1)
		fail("write");
	close(gate[1]);
	return pid;
}

/* Name the remaining processes in the report, and kill them. */
static void name_left(struct tracer *t)
{
	char name[64], path[64];

	for (;;) {
		FILE *f;
		int pid = 0, n = 0;

		snprintf(path, sizeof(path), "/proc/self/task/%d/children",
			(int)getpid());
		f = fopen(path, "re");
		while (f && fscanf(f, "%d", &pid) == 1) {
			status_field(pid, "Name", name, sizeof(name));
			fprintf(t->report, "left %d %s\n", pid,
				strtok(name, "\t\n"));
			kill(pid, SIGKILL);
			n++;
		}
		if (f)
			fclose(f);
		if (n == 0)
			return;
		while (waitpid(-1, NULL, __WALL) < 0 && errno == EINTR)
			;
	}
}

static void on_alarm(int sig)
{
	(void)sig;
}

static int follow(struct tracer *t, pid_t front)
{
	int status, result = -1;

	for (;;) {
		pid_t pid = waitpid(-1, &status, __WALL);

		if (pid < 0 && errno == EINTR) {
			name_left(t);
			return result < 0 ? 99 : result;
		}
		if (pid < 0)
			return result < 0 ? 99 : result;
		if (WIFSTOPPED(status)) {
			on_stop(t, pid, status);
			continue;
		}
		if (pid == front) {
			result = WIFEXITED(status) ? WEXITSTATUS(status)
						   : 128 + WTERMSIG(status);
			alarm(LEFT_SECONDS);
		}
	}
}

static enum role parse_role(const char *name)
{
	for (int i = FRONT; i < OTHER; i++)
		if (!strcmp(role_names[i], name))
			return (enum role)i;
	fprintf(stderr, "tracer: no role %s\n", name);
	exit(99);
}

int main(int argc, char **argv)
{
	static struct tracer t;
	struct sigaction sa = {.sa_handler = on_alarm};
	char **command = argv + 3;
	pid_t front;
	int result;

	if (argc < 4)
		return 99;
	t.report = fopen(argv[1], "we");
	if (!t.report)
		fail(argv[1]);
	t.steps = !strncmp(argv[2], "step", 4);
	t.survey = !strcmp(argv[2], "survey") || !strcmp(argv[2], "steps");
	if (!t.survey && argc < (t.steps ? 8 : 7))
		return 99;
	if (t.steps && !t.survey) {
		t.child = atoi(argv[3]);
		t.call = seccomp_syscall_resolve_name(argv[4]);
		t.site = strtoul(argv[5], NULL, 16);
		t.nth = atoi(argv[6]);
		command = argv + 7;
	} else if (!t.survey) {
		t.role = parse_role(argv[2]);
		t.call = seccomp_syscall_resolve_name(argv[3]);
		t.nth = atoi(argv[4]);
		t.kill = !strcmp(argv[5], "kill");
		t.error = atoi(argv[5]);
		command = argv + 6;
	}
	sigaction(SIGALRM, &sa, NULL);
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	front = start(command);
	if (t.steps) {
		fprintf(t.report, "command %d\n", (int)front);
		fflush(t.report);
	}
	result = follow(&t, front);
	fprintf(t.report, "%s\n", t.injected ? "injected" : "not reached");
	fclose(t.report);
	return result;
}
