/* SPDX-License-Identifier: MIT */
/*
 * init.h - pid 1 of the jail
 */
#ifndef JAIL_INIT_INIT_H
#define JAIL_INIT_INIT_H

#include <sys/types.h>

struct asked_memory;
struct cgroup;
struct err;
struct host;
struct jail_spec;
struct plan;

struct init {
	int sock;		      /* to the warden; taken */
	const struct plan *plan;      /* borrowed */
	const struct jail_spec *spec; /* borrowed */
	const struct cgroup *cgroup;  /* borrowed; init enters it */
	const struct host *host;      /* borrowed; for a plan after a claim */
	int home_fd;		      /* root of the home */
	/* what guests are granted; NULL where a cgroup counts memory */
	struct asked_memory *memory; /* shared with the warden; borrowed */
};

/*
 * Clone pid 1 into its own namespaces. It builds the jail, drops every right,
 * sends INIT_BUILT, and serves INIT_* messages on its socket until the socket
 * ends. Messages may be sent before INIT_BUILT. Returns its pid in the caller's
 * view, or -1 with e; never returns in the child.
 */
pid_t init_start(const struct init *in, struct err *e);

#endif
