/* SPDX-License-Identifier: MIT */
/*
 * plan.h - the operations that build a jail, as a value
 *
 * A pure function makes the plan from a spec and a host, so it can be printed,
 * compared with a golden file and tested without any privilege. apply.c
 * carries it out, in order, one stage at a time.
 */
#ifndef JAIL_PLAN_PLAN_H
#define JAIL_PLAN_PLAN_H

#include "jail/base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct host;
struct jail_spec;
struct limits;

/* Room for operations, and for the strings made for them. */
#define PLAN_OPS_MAX 384
#define PLAN_TEXTS_MAX 96

/* The one id that processes of the jail have inside. */
#define PLAN_ID 1000

enum plan_stage {
	PLAN_WARDEN, /* warden, in its own user and mount namespace, once */
	PLAN_JAIL,   /* init, in the jail's namespaces; begins with every
		      * capability there and ends with none */
	PLAN_GUEST,  /* a child of init, between fork and exec */
};
#define PLAN_STAGES 3

enum plan_op_type {
	PLAN_IDENTITY,	 /* be uid and gid `number`; in JAIL also pid 1 */
	PLAN_PRIVATE,	 /* every mount private */
	PLAN_NODES,	 /* mount the session's own device nodes on target */
	PLAN_HOME_MAKE,	 /* mount the home over source; options, attrs */
	PLAN_HOME_KEEP,	 /* mount source, or else an empty tmpfs, on target in
			  * the home; options, attrs */
	PLAN_HOSTNAME,	 /* set the host name target */
	PLAN_LOOPBACK,	 /* bring lo up; options: the sizes of TCP's buffers,
			  * where /proc/sys can be written */
	PLAN_HOME_COPY,	 /* copy the home's mount, at source, and the mounts
			  * of HOME_KEEP in it */
	PLAN_ROOT,	 /* mount the new root over source; options, attrs */
	PLAN_LINK,	 /* make link target with text source */
	PLAN_FILE,	 /* write file target with content source */
	PLAN_BIND,	 /* bind source to target, recursively, with attrs */
	PLAN_SHOW,	 /* show source at target with attrs, as a locked mount
			  * of the jail's own where the kernel has that, else
			  * as a bind */
	PLAN_TMPFS,	 /* mount tmpfs on target; options, attrs */
	PLAN_DEVPTS,	 /* mount devpts on target; options, attrs */
	PLAN_PROC,	 /* mount proc on target, if the kernel allows it,
			  * with attrs for all but init; `number` 1: or fail */
	PLAN_HOME_SHOW,	 /* attach the copy of HOME_COPY at target; or what is
			  * attached at source, once more */
	PLAN_RESTRICT,	 /* add attrs to the one mount at target */
	PLAN_PIVOT,	 /* make the new root the root, unmount the host's */
	PLAN_HIDE,	 /* show no table of mounts from here on */
	PLAN_RLIMIT,	 /* set limit `which` (RLIMIT_*) to `number` */
	PLAN_DROP,	 /* give up every capability for good */
	PLAN_UNDUMPABLE, /* no ptrace, no core */
	PLAN_NO_HUGE,	 /* no huge pages, in this process and all that it
			  * starts */
	PLAN_OOM,	 /* guests get the oom_score_adj `number`, if the jail
			  * has a /proc */
	PLAN_NICE,	 /* niceness `number` */
	PLAN_UMASK,	 /* umask `number` */
	PLAN_CHDIR,	 /* enter target */
	PLAN_ALLOW,	 /* Landlock: target may be used for `which` (enum
			  * plan_use) */
	PLAN_LANDLOCK,	 /* nothing else may be used; by the ABI `number` */
	PLAN_ASK,	 /* guests ask pid 1 before each lock of a file, and if
			  * `number`, before they map anonymous shared memory */
	PLAN_SECCOMP,	 /* load filter `which` (enum plan_filter); INIT has
			  * no inotify if an inode of the host is shown */
};

/* The uses that Landlock allows beneath a directory. USE_WRITE writes to
 * existing files (devices, /proc); WRITE_EXEC also creates and removes. */
enum plan_use { PLAN_USE_READ_EXEC, PLAN_USE_WRITE_EXEC, PLAN_USE_WRITE };
#define PLAN_USES 3

enum plan_filter {
	PLAN_FILTER_INIT,
	PLAN_FILTER_GUEST,
	PLAN_FILTER_NOMEM,
	PLAN_FILTER_SIDE, /* on top of the other: no sockets */
};
#define PLAN_FILTERS 4

/* The device nodes of a jail. */
#define PLAN_NODES_MAX 6
extern const char *const plan_nodes[PLAN_NODES_MAX];

struct plan_op {
	enum plan_op_type type;
	enum plan_stage stage;
	const char *source, *target, *options; /* NULL where unused */
	unsigned attrs;			       /* SYS_ATTR_* */
	unsigned flags;			       /* PLAN_F_* */
	int which;
	int64_t number;
};

/* The configuration names the source: say so if the operation fails. */
#define PLAN_F_EXPOSED 1u
/* Guests write to the file system: its content counts as memory. */
#define PLAN_F_COUNTED 2u

struct plan {
	struct plan_op *ops;
	size_t n;
	char *texts[PLAN_TEXTS_MAX]; /* strings made for the plan, owned */
	int ntexts;
	int remount;	   /* no mount_setattr: restrict mounts one by one */
	int own_nodes;	   /* what BIND shows is the session's own */
	const char *over;  /* the host directory everything is built over */
	int64_t tmp_bytes; /* size of /tmp, and of /dev/shm */
	int64_t processes_hard; /* the value of RLIMIT_NPROC or the cgroup's */
};

/* Make the plan. Borrows the strings of spec and host. -1 with e when the spec
 * asks for something that would break the jail. Free with plan_fini(). */
int plan_make(struct plan *p, const struct jail_spec *spec,
	const struct host *h, struct err *e);
void plan_fini(struct plan *p);

/* One line an operation, the same for the same input. */
void plan_print(const struct plan *p, FILE *f);

/* Tasks beyond limits.processes: pid 1, the middle process of a parking, the
 * checkpoints and the one being taken. Guests that are awake have none of
 * these: plan.c, and init.c for sessions. */
int plan_spare_processes(const struct limits *l);

#endif
