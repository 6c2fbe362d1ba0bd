/* SPDX-License-Identifier: MIT */
/*
 * subids.h - which ids belong to one user together: subuid(5)
 */
#ifndef REPL_SERVE_SUBIDS_H
#define REPL_SERVE_SUBIDS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SUBIDS_PATH "/etc/subuid"

struct subids {
	struct {
		uint32_t first, n;
	} * v;
	size_t n;
};

/* Read such a file. Where there is none, or for want of memory, no ids belong
 * together. */
void subids_load(struct subids *s, const char *path);
void subids_free(struct subids *s);

/* A number for whoever has this id: the id; or one that no id has, and which is
 * the same for all ids of a user's range. */
uint64_t subids_key(const struct subids *s, uid_t uid);

#endif
