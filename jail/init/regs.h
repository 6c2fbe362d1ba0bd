/* SPDX-License-Identifier: MIT */
/*
 * regs.h - the registers of a process that is traced, by processor
 *
 * Of each processor: the instructions of a system call and the stop behind it,
 * and of a stop alone, as the bits of a word that they take; how far behind a
 * stop the program counter is; the names of registers; and where a call has its
 * arguments.
 */
#ifndef JAIL_INIT_REGS_H
#define JAIL_INIT_REGS_H

#include <elf.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/user.h>

struct regs {
	struct user_regs_struct r;
};

#if defined(__x86_64__)
/* syscall; int3 */
#define REGS_CALL_TEXT 0xcc050fL
#define REGS_CALL_BITS 0xffffffL
#define REGS_STOP_TEXT 0xccL
#define REGS_STOP_BITS 0xffL
#define REGS_AFTER_STOP 1 /* the counter is behind it */
#define REGS_PC rip
#define REGS_SP rsp
#define REGS_RESULT rax

static inline void regs_call(struct regs *g, long nr, const unsigned long a[4])
{
	g->r.rax = (unsigned long)nr;
	g->r.orig_rax = (unsigned long)-1;
	g->r.rdi = a[0];
	g->r.rsi = a[1];
	g->r.rdx = a[2];
	g->r.r10 = a[3];
	g->r.r8 = 0;
}
#elif defined(__aarch64__)
/* svc #0; brk #0 */
#define REGS_CALL_TEXT ((long)0xd4200000d4000001UL)
#define REGS_CALL_BITS (-1L)
#define REGS_STOP_TEXT 0xd4200000L
#define REGS_STOP_BITS 0xffffffffL
#define REGS_AFTER_STOP 0
#define REGS_PC pc
#define REGS_SP sp
#define REGS_RESULT regs[0]

static inline void regs_call(struct regs *g, long nr, const unsigned long a[4])
{
	g->r.regs[8] = (unsigned long)nr;
	for (int i = 0; i < 4; i++)
		g->r.regs[i] = a[i];
	g->r.regs[4] = 0;
	/* The jump to the entry has set BTYPE, and an svc is no valid target of
	 * a jump. */
	g->r.pstate &= ~(3UL << 10);
}
#else
#error "regs.h: say how a system call is made on this processor"
#endif

static inline uintptr_t regs_pc(const struct regs *g)
{
	return g->r.REGS_PC;
}

static inline uintptr_t regs_sp(const struct regs *g)
{
	return g->r.REGS_SP;
}

static inline void regs_go(struct regs *g, uintptr_t pc, uintptr_t sp)
{
	g->r.REGS_PC = pc;
	g->r.REGS_SP = sp;
}

static inline long regs_result(const struct regs *g)
{
	return (long)g->r.REGS_RESULT;
}

static inline int regs_get(pid_t pid, struct regs *g)
{
	struct iovec v = {g, sizeof(*g)};

	/* Fewer are those of a 32-bit process. */
	return ptrace(PTRACE_GETREGSET, pid, (void *)NT_PRSTATUS, &v) < 0 ||
			       v.iov_len != sizeof(*g)
		       ? -1
		       : 0;
}

static inline int regs_set(pid_t pid, const struct regs *g)
{
	struct iovec v = {(void *)g, sizeof(*g)};

	return ptrace(PTRACE_SETREGSET, pid, (void *)NT_PRSTATUS, &v) < 0 ? -1
									  : 0;
}

#endif
