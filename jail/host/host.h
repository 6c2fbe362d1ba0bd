/* SPDX-License-Identifier: MIT */
/*
 * host.h - what this kernel and this host can do
 *
 * A value that a plan is made from, filled with cheap looks only. What only a
 * jail shows, the session's start finds out.
 */
#ifndef JAIL_HOST_HOST_H
#define JAIL_HOST_HOST_H

#include "jail/base/err.h"

#include <sys/types.h>

struct jail_spec;

#define HOST_LIST_MAX 16
/* Paths that are to be shown and lead through a link. */
#define HOST_REALS_MAX 80

/* What one top directory (bin, lib64, ...) is here. */
enum host_root_kind { HOST_ABSENT, HOST_DIR, HOST_LINK };

struct host_root {
	const char *path; /* "/lib64" */
	enum host_root_kind kind;
	char *link; /* HOST_LINK: its text, "usr/lib64" */
};

/* The top directories a Python may need, in the order they are looked at. */
#define HOST_ROOTS 7

/* A symbolic link on the way to something that is shown; or a path that leads
 * through one, and where it really is. */
struct host_link {
	char *path, *text;
};

/* An interpreter: what must be seen of the host for it to start. */
struct host_python {
	char *path;		       /* as it was asked for, and is exec'd */
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
	int nproc_own;	   /* RLIMIT_NPROC counts this session alone */
	int nproc_others;  /* else: what it counts beside, now */
	int no_proc;	   /* a fresh /proc is known to be refused */

	/* Filled by whoever made the cgroup: it keeps this limit. */
	int cgroup_memory;

	struct host_root roots[HOST_ROOTS];
	char *etc[HOST_LIST_MAX]; /* paths in /etc that are there */
	int netc;
	const char *attach[HOST_LIST_MAX]; /* directories to build over */
	int nattach;
	struct host_python python;
	struct host_link reals[HOST_REALS_MAX];
	int nreals;
};

/* Look at what the start needs to know. -1 with e when the interpreter is
 * missing or cannot be shown. Free with host_fini(). */
int host_probe(struct host *h, const char *python, struct err *e);

/* Find out where that really is which the spec wants to be shown. What cannot
 * be found stays as it was named: mounting it will say why. */
void host_resolve(struct host *h, const struct jail_spec *spec);

/* Where `path` really is, as far as it was looked up: itself, or borrowed. */
const char *host_real(const struct host *h, const char *path);

void host_fini(struct host *h);

/* Whether there is swap, or no way to tell. */
int host_has_swap(void);

/* Find out what must be shown for `path` to start. */
int host_python_resolve(struct host_python *p, const char *path, struct err *e);
void host_python_fini(struct host_python *p);

/* Add to a failed clone or unshare (errno in e->code) what on this host stands
 * in the way, and what to do about it. Returns -1. */
int host_explain_userns(struct err *e);

/* The same for any other call of the set-up, if there is something to say and
 * nothing has been said. Returns -1. */
int host_explain_call(struct err *e);

#endif
