/* SPDX-License-Identifier: MIT */
/*
 * impl.h - one directory of a cgroup file system, and how the versions differ
 *
 * For the files of this folder alone. cgroup.c chooses a version.
 */
#ifndef JAIL_WALLS_CGROUP_IMPL_H
#define JAIL_WALLS_CGROUP_IMPL_H

#include "jail/walls/cgroup/cgroup.h"

#include <mntent.h>
#include <stddef.h>

/* In a delegated cgroup our names begin with this. */
#define CGROUP_PREFIX "cellblock-"
/* In the session's directory: the jail, the warden with all that works for it,
 * and, where guests are frozen, the guests. */
#define CGROUP_JAIL "jail"
#define CGROUP_WARDEN "warden"
#define CGROUP_GUESTS CGROUP_JAIL "/guests"
/* How long the remains of a dead session may take to die on a busy machine,
 * and another process may take to remove them, milliseconds. */
#define CGROUP_CLEAR_MS 2000

/* ---- the versions: versions.c ---- */

struct cgroup_ops {
	const char *fstype;
	/* Look for usable controllers in one mount; set kind, usable, dir and
	 * shared, or why there are none. Makes nothing. 1: it has them all. */
	int (*probe)(struct cgroup_caps *caps, const struct mntent *m);
	/* Make the directories that were placed, and open `enter`. */
	int (*make)(struct cgroup *cg, const struct cgroup_caps *caps,
		const struct limits *l, struct err *e);
	/* Move into a leaf beside the sessions, where they are in `below`. */
	int (*move_below)(const struct cgroup_caps *caps, struct err *e);
	/* The file of the memory limit, and that through which a process with
	 * one thread enters. */
	const char *memory_max, *enter;
	/* The text that stands for no limit there. */
	const char *no_max;
	/* Set the limits: the CGROUP_LIMIT_* that the kernel keeps. */
	unsigned (*limit)(const struct cgroup *cg, const struct limits *l);
	/* The files that the warden keeps open; no name: there is none. */
	struct {
		enum cgroup_controller in;
		const char *name;
	} files[CGROUP_FILES];
	int sockets_den; /* CGROUP_F_MOST_SOCKETS: a part of the limit */
	/* The texts to write into CGROUP_F_FREEZE: [0] to thaw, [1] to freeze;
	 * and the lines of CGROUP_F_EVENTS when all have followed. */
	const char *freeze[2], *frozen[2];
	/* The key in CGROUP_F_HITS. */
	const char *hits_key;
	/* The key of the CPU time, NULL where that stands alone; its unit. */
	const char *cpu_key;
	int cpu_unit_ns;
	/* The keys in memory.stat for the page cache of files, of the cgroups
	 * below too. */
	const char *cache[2];
};

extern const struct cgroup_ops cgroup_v1, cgroup_v2;

/* The kernel's names of the controllers. */
extern const char *const cgroup_controllers[CGROUP_ABOVE + 1];

/* The descriptor of a controller's directory, -1 where there is none. */
static inline int cgroup_fd_of(
	const struct cgroup *cg, enum cgroup_controller c)
{
	return cg->at[c] < 0 ? -1 : cg->held[cg->at[c]];
}

/* ---- a person's directory: person.c ---- */

/* True if a directory beside the sessions has the name of a person's. */
int cgroup_person_is_one(const char *name);

/* ---- files: dir.c ---- */

/* Write `text` to a file of a directory, or to an open file: 0, or -1 with
 * errno. */
int cgroup_dir_write(int dir, const char *file, const char *text);
int cgroup_dir_rewrite(int fd, const char *text);

/* As io_read_small(), of a file that is open. */
ssize_t cgroup_dir_reread(int fd, char *buf, size_t size);

/* Write a number and read it back, because some hosts accept a limit and
 * ignore it. 1 if the kernel keeps at most `value` (it rounds to pages) and
 * more than half of it, else 0. */
int cgroup_dir_set_number(int dir, const char *file, int64_t value);

/* The same for a file that is open for both. */
int cgroup_dir_reset_number(int fd, int64_t value);

/* The same for a text, which must read back as it was written. */
int cgroup_dir_set_text(int dir, const char *file, const char *text);

/* The number after `key` in "key value" lines; -1 if there is none. */
int64_t cgroup_dir_key(const char *text, const char *key);

/* ---- a directory: dir.c ---- */

/* The directory above `path`; the topmost of ours above dirs[i]. */
void cgroup_dir_parent(char parent[CGROUP_PATH_MAX], const char *path);
void cgroup_dir_top(char top[CGROUP_PATH_MAX], const struct cgroup *cg, int i);

/* Open a directory by path: descriptor, or -1 with errno. */
int cgroup_dir_open(const char *path);

/* Hold a session's directory, which marks the session as alive: an O_DIRECTORY
 * descriptor with a lock that goes with its last copy. Waits at most timeout_ms
 * for another holder. -1 with errno: ENOENT, or EBUSY if it is held. */
int cgroup_dir_hold(const char *path, int timeout_ms);

/* Make a directory and hold it, after removing the remains of a dead session
 * there; what is missing above it, two at most, is made too. Descriptor, or -1
 * with e. */
int cgroup_dir_make(const char *path, struct err *e);

/* Kill all in a directory that the caller holds, and remove it. -1 with errno
 * if something would not die in time. */
int cgroup_dir_clear(const char *path, int timeout_ms);

/* True if a directory holds processes that cannot be seen from here: a
 * container's, which shares our cgroups but not our locks. */
int cgroup_dir_is_foreign(const char *path);

/* Sleep a little between two looks at something without a notification. */
void cgroup_dir_nap(void);

#endif
