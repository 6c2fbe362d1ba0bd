/* SPDX-License-Identifier: MIT */
/*
 * impl.h - what cgroup.c and the two kinds share; for them alone
 */
#ifndef JAIL_WALLS_CGROUP_IMPL_H
#define JAIL_WALLS_CGROUP_IMPL_H

#include "cgroup.h"

#include <stddef.h>

/* The period of a CPU share, microseconds. */
#define CGROUP_CPU_PERIOD 100000
/* (v2) The leaf for the guests, in the session's. */
#define CGROUP_GUESTS "guests"
/* What our names in a delegated cgroup begin with, and then those of sessions
 * that have nothing better to be called by. */
#define CGROUP_PREFIX "cellblock-"
#define CGROUP_BY_PID "pid-"
/* How long the remains of a dead session may take to go on a busy machine, and
 * whoever removes them to be through, milliseconds. */
#define CGROUP_CLEAR_MS 2000
/* Longest wait between two looks at something without notification. */
#define CGROUP_NAP_NS 200000

struct cgroup_names {
	const char *name[CGROUP_CONTROLLERS];
};

extern const struct cgroup_names cgroup_names;

/* A line of /proc/self/mountinfo that matters here. */
struct cgroup_mount {
	char point[CGROUP_PATH_MAX];
	char options[256]; /* of the super block: names the v1 controllers */
	int v2;
};

/* Look for usable controllers; set kind, usable, dir. 0 if there are none. */
int cgroup_v1_probe(
	struct cgroup_caps *caps, const struct cgroup_mount *m, int n);
int cgroup_v2_probe(
	struct cgroup_caps *caps, const struct cgroup_mount *m, int n);

/* Make the directories and open the files (limits come after). */
int cgroup_v1_make(struct cgroup *cg, const struct cgroup_caps *caps,
	const struct limits *l, struct err *e);
int cgroup_v2_make(struct cgroup *cg, const struct cgroup_caps *caps,
	const struct limits *l, struct err *e);

int cgroup_v1_freeze(
	const struct cgroup *cg, int on, int timeout_ms, struct err *e);
int cgroup_v2_freeze(
	const struct cgroup *cg, int on, int timeout_ms, struct err *e);

/* Helpers of cgroup.c. */

/* Whether this process may make directories there. */
int cgroup_dir_writable(const char *path);

/* The directory above. `parent` has room for CGROUP_PATH_MAX. */
void cgroup_parent_of(char *parent, const char *dir);

/* Make cg->dirs[i], clearing what is there, and its parent too if it is
 * missing; and hold it in cg->held. */
int cgroup_dir_make(struct cgroup *cg, int i, struct err *e);

/* Helpers of cgroup_end.c. */

/* Hold a session's directory, so that it is seen to live: an O_DIRECTORY
 * descriptor, the lock goes with its last copy. Waits at most timeout_ms for
 * who else holds it. -1 with errno: ENOENT, or EBUSY if it is held. */
int cgroup_dir_hold(const char *path, int timeout_ms);

/* Kill all in a directory that the caller holds, and remove it. -1 with errno
 * if something would not die in time. */
int cgroup_dir_clear(const char *path, int timeout_ms);

/* Write text to dirfd/file, or to a descriptor. 0, or -1 with errno. */
int cgroup_write(int dirfd, const char *file, const char *text);
int cgroup_write_fd(int fd, const char *text);

/* Read a small file from its start. Length, or -1 with errno. */
ssize_t cgroup_read_fd(int fd, char *buf, size_t size);
ssize_t cgroup_read(int dirfd, const char *file, char *buf, size_t size);

/* Set a number and read it back: 1 if what the kernel kept is at most that
 * (it rounds to pages) and not nothing, else 0 and `word` joins cg->refused. */
int cgroup_set_limit(struct cgroup *cg, int dirfd, const char *file,
	int64_t value, const char *word);
void cgroup_refuse(struct cgroup *cg, const char *word);

/* The number after `key` in a file of "key value" lines; -1 if not there. */
int64_t cgroup_key(const char *text, const char *key);

void cgroup_nap(void);

#endif
