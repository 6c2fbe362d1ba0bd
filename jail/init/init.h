/* SPDX-License-Identifier: MIT */
/*
 * init.h - pid 1 of the jail
 */
#ifndef JAIL_INIT_INIT_H
#define JAIL_INIT_INIT_H

#include <sys/types.h>

struct cgroup;
struct err;
struct jail_spec;
struct plan;

struct init {
	int sock;		      /* to the warden; init takes it */
	const struct plan *plan;      /* borrowed */
	const struct jail_spec *spec; /* borrowed */
	const struct cgroup *cgroup;  /* borrowed; init enters it */
	int home_fd;		      /* root of the home, from the warden */
};

/*
 * Clone pid 1 into its own namespaces. It enters the cgroup, builds the jail,
 * drops everything, says INIT_BUILT, and serves INIT_* messages on its socket
 * (some of which may wait there already) until that ends. Returns its pid in
 * the caller's view, or -1 with e; never returns in the child.
 */
pid_t init_start(const struct init *in, struct err *e);

#endif
