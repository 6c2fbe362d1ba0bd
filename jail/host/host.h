/* SPDX-License-Identifier: MIT */
/*
 * host.h - what this kernel and this host can do
 *
 * The value that a plan is made from. Only cheap looks fill it; the start of a
 * session finds out what only a jail can show.
 */
#ifndef JAIL_HOST_HOST_H
#define JAIL_HOST_HOST_H

#include "jail/base/err.h"

#include <sys/types.h>

struct jail_spec;

#define HOST_LIST_MAX 16
/* Most shown paths that lead through a link. */
#define HOST_REALS_MAX 80

/* The kind of a top directory (/bin, /lib64 ...) on this host. */
enum host_root_kind { HOST_ABSENT, HOST_DIR, HOST_LINK };

struct host_root {
	const char *path; /* "/lib64" */
	enum host_root_kind kind;
	char *link; /* HOST_LINK: its text, "usr/lib64" */
};

/* The top directories that a Python may need. */
#define HOST_ROOTS 7

/* A symbolic link and its text; or a path that leads through a link, and its
 * real path. */
struct host_link {
	char *path, *text;
};

/* An interpreter, and what the jail must show for it to start. */
struct host_python {
	char *path; /* as named by the configuration; exec'd */
	char *prefixes[HOST_LIST_MAX]; /* real directories, "/usr" among them */
	int nprefixes;
	struct host_link links[HOST_LIST_MAX];
	int nlinks;
};

struct host {
	uid_t euid;
	int kernel_major, kernel_minor;

	int mount_setattr; /* Linux 5.12 */
	int landlock_abi;  /* 0: none */
	int nproc_own;	   /* RLIMIT_NPROC counts only this session */
	int nproc_others;  /* otherwise: other tasks it counts, now */
	int no_proc;	   /* a new /proc is known to be refused */
	int contained; /* this is a container of Podman, Docker, Kubernetes */

	/* The cgroup enforces the limit. Set by the code that makes the cgroup.
	 */
	int cgroup_memory;
	/* The session has device nodes of its own. Set by the code that makes
	 * them. */
	int own_nodes;

	struct host_root roots[HOST_ROOTS];
	char *etc[HOST_LIST_MAX]; /* paths in /etc that exist */
	int netc;
	const char *attach[HOST_LIST_MAX]; /* directories to build over */
	int nattach;
	struct host_python python;
	struct host_link reals[HOST_REALS_MAX];
	int nreals;
};

/* Look at the host. -1 with e when the interpreter is missing or cannot be
 * shown. Free with host_fini(). */
int host_probe(struct host *h, const char *python, struct err *e);

/* Look up the real paths of what the spec wants to show. A path that is not
 * found stays as it is: the mount of it fails and says why. */
void host_resolve(struct host *h, const struct jail_spec *spec);

/* The real path of `path` (borrowed), or `path` where none was looked up. */
const char *host_real(const struct host *h, const char *path);

void host_fini(struct host *h);

/* True if there is swap, or if that cannot be told. */
int host_has_swap(void);

/* How much memory programs could still have here; -1: the kernel does not say. */
int64_t host_available_bytes(void);

/* Find out what must be shown for `path` to start. */
int host_python_resolve(struct host_python *p, const char *path, struct err *e);
void host_python_fini(struct host_python *p);

/* Add to the error of a clone or unshare (errno in e->code) why this host
 * refuses namespaces, and what to do about it. Returns -1. */
int host_explain_userns(struct err *e);

/* The same for any other call of the set-up, unless the error has a hint.
 * Returns -1. */
int host_explain_call(struct err *e);

#endif
