/* SPDX-License-Identifier: MIT */
/*
 * person.c - the directory of a person, which has one share of the cores
 *
 * Runs in:   warden, before it makes the session's cgroup; root's maker, when a
 *            session made ahead becomes somebody's
 * Holds:     root: the mark is an attribute that only root writes and reads
 * Trusts:    the names and marks that root left there
 * Leaves:    a mark, which goes with the directory; cgroup.c removes that when
 *            its last session has ended
 *
 * The kernel divides the cores among the directories beside each other by their
 * weights, which are all what a new one has. So sessions of one person share
 * what one person gets. A session made ahead lies in a directory of nobody's;
 * it is handed only to somebody who has none (jail/broker/spare.c).
 */
#include "impl.h"

#include "jail/base/io.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define BY_NUMBER "person-"
#define BY_SPARE "spare-"
/* The owner of the directory, and since when: one that was the person's before
 * may still hold processes that are dying. */
#define PERSON_MARK "trusted.cellblock.person"

static int begins_with(const char *name, const char *with)
{
	return !strncmp(name, with, strlen(with));
}

int cgroup_person_is_one(const char *name)
{
	return begins_with(name, BY_NUMBER) || begins_with(name, BY_SPARE);
}

/* Since when a directory is the person's; -1: it is not. */
static long long marked_ms(const char *path, uid_t person)
{
	char mark[48] = "";
	long long ms;
	unsigned whose;

	return getxattr(path, PERSON_MARK, mark, sizeof(mark) - 1) > 0 &&
			       sscanf(mark, "%u %lld", &whose, &ms) == 2 &&
			       whose == person
		       ? ms
		       : -1;
}

/* The directory that the person has got with a session made ahead: 1, or 0. */
static int find_marked(struct cgroup_caps *caps, uid_t person)
{
	const char *top = caps->dir[CGROUP_CPU];
	DIR *d = opendir(top);
	struct dirent *de;
	long long last = -1, ms;

	while (d && (de = readdir(d))) {
		char path[CGROUP_PATH_MAX];
		size_t n = strlen(de->d_name);

		if (!begins_with(de->d_name, BY_SPARE) ||
			n >= sizeof(caps->in) ||
			snprintf(path, sizeof(path), "%s/%s", top,
				de->d_name) >= CGROUP_PATH_MAX)
			continue;
		ms = marked_ms(path, person);
		if (ms <= last)
			continue;
		memcpy(caps->in, de->d_name, n + 1);
		last = ms;
	}
	if (d)
		closedir(d);
	return last >= 0;
}

/* A delegated cgroup is one person's, and has that person's share. */
static int can_share(const struct cgroup_caps *caps)
{
	return caps->kind != CGROUP_NONE && !caps->shared &&
	       caps->usable & 1u << CGROUP_CPU;
}

void cgroup_person_choose(struct cgroup_caps *caps, uid_t person)
{
	if (!can_share(caps))
		return;
	caps->person = person;
	if (!find_marked(caps, person))
		snprintf(caps->in, sizeof(caps->in), BY_NUMBER "%u", person);
}

/* The name is used once: a session of somebody else's may still be in the
 * directory of a spare whose host id is free again. */
void cgroup_person_choose_new(struct cgroup_caps *caps)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (can_share(caps))
		snprintf(caps->in, sizeof(caps->in), BY_SPARE "%d-%llx.%lx",
			(int)getpid(), (unsigned long long)now.tv_sec,
			(unsigned long)now.tv_nsec);
}

int cgroup_person_mark(const struct cgroup *cg, uid_t person, struct err *e)
{
	int i = cg->at[CGROUP_CPU];
	char path[CGROUP_PATH_MAX], mark[48];

	if (i < 0 || cg->above[i] < 2)
		return 0;
	cgroup_dir_parent(path, cg->dirs[i]);
	snprintf(mark, sizeof(mark), "%u %lld", person, (long long)now_ms());
	if (setxattr(path, PERSON_MARK, mark, strlen(mark), 0) < 0)
		return err_errno(e, "cgroup: mark %s", path);
	return 0;
}

int cgroup_person_has_shares(const struct cgroup *cg)
{
	int i = cg->at[CGROUP_CPU];

	return i >= 0 && cg->above[i] == 2;
}
