/* SPDX-License-Identifier: MIT */
/*
 * held.h - Python, started before it is known what it runs
 */
#ifndef JAIL_INIT_HELD_H
#define JAIL_INIT_HELD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/types.h>

struct err;

/* Pairs in an auxiliary vector: more than any kernel has. */
#define HELD_AUXV_MAX 64

/* A process that is stopped where its program begins. All zero: none. */
struct held {
	pid_t pid;
	int mem;	      /* its memory; owned */
	int sock;	      /* its descriptors come through it; owned */
	uintptr_t entry, top; /* where it stops; its stack there */
	uintptr_t env;	      /* its list of variables */
	size_t nenv;
	uintptr_t auxv[2 * HELD_AUXV_MAX];
	size_t nauxv;		 /* words */
	long text;		 /* what belongs at `entry` */
	struct prctl_mm_map map; /* as the kernel has it */
};

/* In the child that is about to exec, with `sock` (borrowed) as the only
 * descriptor that it keeps. Its arguments must be one, its name. 0, or -1 with
 * e. */
int held_begin(int sock, struct err *e);

/*
 * Hold a child that has begun so and exec'd, where the dynamic linker has done
 * its work and the program's first instruction comes next. `proc_fd` is the top
 * of /proc, `sock` the other end (taken). 0, or -1 with e: the child is dead.
 */
int held_take(
	struct held *h, pid_t child, int proc_fd, int sock, struct err *e);

/*
 * Let it go, as if it had been exec'd with these: arguments, of which the first
 * is as it was; as many variables as it had; descriptors 0, 1 and 2. Returns
 * its pid, or -1: it is dead.
 */
pid_t held_release(struct held *h, const char *const *argv,
	const char *const *env, const int stdio[3]);

/* End it, if there is one; or only what we keep of it: it is dead. */
void held_drop(struct held *h);
void held_forget(struct held *h);

#endif
