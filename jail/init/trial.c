/* SPDX-License-Identifier: MIT */
/*
 * trial.c - confine a copy of the guest that is to answer a question
 *
 * Runs in:   init
 * Holds:     the copy as its tracer, for a moment
 * Trusts:    the kernel. The copy is asleep and has run nothing of the user's,
 *            but its memory is the guest's: our writes into it may be lost, and
 *            then the filter is not in force
 * Leaves:    a copy that reads and computes: no file, no process and no memory
 *            but its own changes by it (SECCOMP_TRIAL)
 *
 * The guests' filter lets only a process that is traced load another filter.
 * Loading it is the copy's own call, which init has it make.
 */
#include "jail/init/init.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/walls/walls.h"
#include "regs.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* Where the filter is written: so far below the stack that no function of the
 * copy keeps anything there. */
#define BELOW_STACK (16 * 1024)
/* Seconds of CPU time that the kernel ends the copy after, where the warden is
 * not there to do it. */
#define CPU_S 2
/* How long a copy may take to stop. */
#define STOP_MS 1000

struct trial {
	struct traced t;
	struct regs at; /* where it sleeps */
	int64_t bytes;	/* of its mappings */
};

/* Memory that others share becomes read-only. */
static int protect_mapping(
	unsigned long from, unsigned long to, const char *may, void *arg)
{
	struct trial *c = arg;
	unsigned long kept = may[2] == 'x' ? PROT_READ | PROT_EXEC : PROT_READ;

	c->bytes += (int64_t)(to - from);
	return may[1] == 'w' && may[3] == 's' &&
			       traced_call(&c->t, &c->at, SYS_mprotect, from,
				       to - from, kept, 0) != 0
		       ? -1
		       : 0;
}

/* No memory beyond what it has and `room`, no bytes in files. */
static int limit_copy(const struct trial *c, int64_t room)
{
	const rlim_t most = (rlim_t)(c->bytes + room);
	const struct rlimit memory = {most, most}, files = {0, 0},
			    cpu = {CPU_S, CPU_S};

	return prlimit(c->t.pid, RLIMIT_AS, &memory, NULL) < 0 ||
			       prlimit(c->t.pid, RLIMIT_FSIZE, &files, NULL) <
				       0 ||
			       prlimit(c->t.pid, RLIMIT_CPU, &cpu, NULL) < 0
		       ? -1
		       : 0;
}

static int load_filter(const struct trial *c)
{
	const int n = seccomp_size(SECCOMP_TRIAL);
	const size_t size = (size_t)n * sizeof(struct sock_filter);
	uintptr_t where = (regs_sp(&c->at) - BELOW_STACK - size) & ~15UL;
	const struct sock_fprog prog = {.len = (unsigned short)n,
		.filter = (void *)(where + sizeof(prog))};

	return n == 0 || traced_write(&c->t, where, &prog, sizeof(prog)) < 0 ||
			       traced_write(&c->t, where + sizeof(prog),
				       seccomp_code(SECCOMP_TRIAL), size) < 0 ||
			       traced_call(&c->t, &c->at, SYS_seccomp,
				       SECCOMP_SET_MODE_FILTER, 0, where,
				       0) != 0
		       ? -1
		       : 0;
}

/* Save the registers; have the copy protect its memory and load the filter; and
 * put them back. */
static int confine_stopped(
	struct trial *c, int proc_fd, int64_t room, const char **why)
{
	*why = "read its registers";
	if (regs_get(c->t.pid, &c->at) < 0 || traced_open(&c->t, proc_fd) < 0)
		return -1;
	c->t.entry = regs_pc(&c->at);
	if (traced_keep_text(&c->t) < 0 ||
		traced_put_text(&c->t, REGS_CALL_TEXT, REGS_CALL_BITS) < 0)
		return -1;
	*why = "protect what it shares";
	if (traced_visit_maps(&c->t, proc_fd, protect_mapping, c) < 0)
		return -1;
	*why = "limit it";
	if (limit_copy(c, room) < 0)
		return -1;
	*why = "load its filter";
	if (load_filter(c) < 0)
		return -1;
	*why = "let it go";
	return traced_put_text(&c->t, c->t.text, -1) < 0 ||
			       regs_set(c->t.pid, &c->at) < 0 ||
			       ptrace(PTRACE_DETACH, c->t.pid, NULL, NULL) < 0
		       ? -1
		       : 0;
}

int trial_confine(pid_t pid, int proc_fd, int64_t room, struct err *e)
{
	struct trial c = {.t = {.pid = pid, .mem = -1, .patience_ms = STOP_MS}};
	const char *why = "trace it";
	int status, r = -1;

	if (ptrace(PTRACE_SEIZE, pid, NULL,
		    (void *)(PTRACE_O_EXITKILL | PTRACE_O_TRACESECCOMP)) == 0 &&
		ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) == 0 &&
		traced_wait(&c.t, &status) == 0 && WIFSTOPPED(status))
		r = confine_stopped(&c, proc_fd, room, &why);
	if (r < 0) {
		err_errno(e, "confine a copy: %s", why);
		kill(pid, SIGKILL);
	}
	fd_drop(&c.t.mem);
	return r;
}
