/* SPDX-License-Identifier: MIT */
/*
 * stock.h - how many jails are made ahead, and when the next is begun
 *
 * The one policy of a pool (pool.h) and of root's spares. It makes nothing: the
 * caller counts what there is, asks for the next jail, and makes it.
 */
#ifndef JAIL_STOCK_H
#define JAIL_STOCK_H

#include <stdbool.h>
#include <stdint.h>

/* One kind of jail. */
struct stock_kind {
	int waited;	  /* wanted: somebody waits for so many, */
	int ahead;	  /* and so many are to be ready beside them */
	int have;	  /* there are, ready or in the making */
	int making;	  /* of them in the making */
	int lost;	  /* made ahead, and of no use any more */
	int64_t again_ms; /* begin none before: the last one failed */
};

struct stock {
	struct stock_kind *kinds; /* borrowed */
	int n;
	int room;	 /* so many more jails may there be */
	int at_once;	 /* so many are in the making at a time for those who
			  * wait: more than cores would only be ready later */
	int64_t rest_ms; /* make none ahead before: leave the host to a jail
			  * that was just taken */
};

struct stock_next {
	int kind;	 /* its index; -1: none is wanted, or may be */
	bool waited;	 /* somebody waits for it */
	int64_t when_ms; /* not before */
};

/* The jail to begin next. First what somebody waits for; jails ahead one by
 * one, while no other is in the making. Jails that do not last are not replaced
 * without end: a lost one counts until the caller drops it. */
struct stock_next stock_next(const struct stock *s);

/* Note a jail of that kind in the making. */
void stock_note_begun(struct stock *s, int kind);

#endif
