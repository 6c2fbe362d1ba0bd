/* SPDX-License-Identifier: MIT */
/*
 * landlock.h - a second wall around files, behind the mounts
 */
#ifndef JAIL_WALLS_LANDLOCK_H
#define JAIL_WALLS_LANDLOCK_H

#include "jail/base/err.h"

#include <stddef.h>

enum landlock_class {
	LANDLOCK_READ,	     /* read files, list directories */
	LANDLOCK_READ_EXEC,  /* and execute */
	LANDLOCK_WRITE,	     /* read, write, truncate, create, remove, rename;
			      * never device nodes */
	LANDLOCK_WRITE_EXEC, /* and execute: the jail's /home and /tmp */
	LANDLOCK_DEVICE,     /* read, write and ioctl on device files */
	LANDLOCK_REMOVE,     /* remove files that are no directories */
};

/* Everything beneath a directory, or one file. */
struct landlock_rule {
	const char *path; /* opened here; NULL: use fd */
	int fd;		  /* borrowed (O_PATH will do); only if path is NULL */
	enum landlock_class cls;
	int optional; /* a path that does not exist is no error */
};

enum landlock_flags {
	LANDLOCK_NEED_REFER = 1, /* renames between directories must work:
				  * do nothing on ABI 1 */
	LANDLOCK_NO_TCP = 2,	 /* deny TCP bind and connect (ABI 4) */
	LANDLOCK_SCOPE = 4,	 /* no signals to, no abstract sockets of,
				  * processes outside (ABI 6) */
};

/* Deny everything that no rule allows, for good; sets no_new_privs. `abi_max`
 * switches later features off (for tests); otherwise LANDLOCK_ABI_ANY.
 * Returns the ABI in force; 0 when Landlock cannot be used (it is absent, or
 * see LANDLOCK_NEED_REFER); -1 with e when a rule failed. */
#define LANDLOCK_ABI_ANY 99
int landlock_confine(const struct landlock_rule *rules, size_t n,
	unsigned flags, int abi_max, struct err *e);

#endif
