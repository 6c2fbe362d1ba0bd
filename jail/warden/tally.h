/* SPDX-License-Identifier: MIT */
/*
 * tally.h - what a jail uses, added up where no cgroup does it
 *
 * One tally serves all jails of a session, one after the other. Memory: the
 * caller adds what can be seen without waiting, and asks the stand-in for the
 * rest. CPU time: the caller adds sums over all processes.
 */
#ifndef JAIL_WARDEN_TALLY_H
#define JAIL_WARDEN_TALLY_H

#include "chore.h"

#include <stdint.h>

struct asked_memory;
struct home;

/* Where to look. Everything is borrowed. */
struct tally_place {
	const struct home *home;
	const struct procs_source *procs;
	const int *tmp;	  /* APPLY_TMPFS file systems of the jail, or -1 */
	const int *front; /* a socket of our own, made as guests make theirs */
};

/* Only tally.c writes it. */
struct tally {
	struct tally_place place;
	int64_t limit, others_bytes;
	struct asked_memory *memory; /* for init; NULL before tally_begin() */

	int64_t most_bytes;   /* what a fork shares counted for each */
	int64_t weight_bytes; /* by the stand-in's last answer; 0: not known */
	int64_t weight_most;  /* most_bytes then */
	int64_t peak_bytes;   /* of all jails */
	int64_t host_bytes;   /* of the whole host, as last measured */
	int64_t host_known;   /* that, when we last knew ours */
	/* of the host's kernel: as last measured; when the stand-in was asked;
	 * without what is ours; and what is ours by its last answer */
	int64_t kernel_bytes, kernel_asked, kernel_others, kernel_ours;
	/* anonymous shared memory that init has granted: when the stand-in was
	 * asked; before its last answer; and what was left of that */
	int64_t shared_asked, shared_seen, shared_left;
	/* shared memory of all kinds on the host, and without what is ours */
	int64_t shmem_bytes, shmem_others;
	int weighed; /* since last added: 1 answered, -1 in vain, 0 not */

	/* CPU time: of jails that ended; sums of the one that lives: the last
	 * two, and the middle one of the last three; and both */
	int64_t cpu_gone_ms, sums_ms[3], cpu_ms;
};

void tally_init(struct tally *t, const struct tally_place *place);

/* Before a jail whose memory no cgroup counts. 0, or -1 with errno. */
int tally_begin(struct tally *t, int64_t limit);

/* At the end of any jail: what the session has used of the CPU until now. */
void tally_end(struct tally *t, int64_t cpu_ms);

/* ---- memory ---- */

/* Add up what can be seen now; `p` has memory as in PROCS_MEMORY. 1 if it is
 * over the limit. `free`: the stand-in may be asked to weigh it first. */
int tally_add(struct tally *t, const struct procs *p, int free);

/* So much of the limit is used elsewhere. */
void tally_note_others(struct tally *t, int64_t bytes);

/* Processes were killed: how much there was is not known any more. */
void tally_forget(struct tally *t);

/* The stand-in is asked; it has answered CHORE_WEIGHT; it did not answer. */
void tally_asked(struct tally *t);
void tally_weigh(struct tally *t, const struct chore_result *a);
void tally_fail(struct tally *t);

/* What the files of the jail take: its home, /tmp and /dev/shm. */
int64_t tally_files_bytes(const struct tally *t);

/* Whether memory may have passed its limit since it was weighed. */
int tally_is_doubtful(const struct tally *t);

/* Memory as it was weighed, and what it has grown by since. */
int64_t tally_bytes(const struct tally *t);

/* ---- CPU time ---- */

/* A sum over the processes that live. */
void tally_add_cpu(struct tally *t, int64_t sum_ms);

#endif
