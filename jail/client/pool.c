/* SPDX-License-Identifier: MIT */
/*
 * pool.c - sessions made ahead, for a front end that serves many requests
 *
 * Runs in:   front end, confined but for pool_open()
 * Holds:     the socket to the maker; one session ahead; those that are ending
 * Trusts:    the maker
 * Leaves:    nothing: pool_close() waits for every session
 *
 * A session takes a while to go: its namespaces are taken down. Nobody waits
 * for that before the next request, only when several are on their way out.
 */
#include "jail/pool.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/jail.h"
#include "jail/maker/maker.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>

/* Most sessions on their way out. */
#define ENDING_MAX 4

struct pool {
	int maker;
	pid_t pid; /* of the maker */
	int asked; /* one has been asked for, with this interpreter: */
	unsigned python;
	struct jail *ending[ENDING_MAX]; /* the oldest first */
	int nending;
	struct err left; /* something may be left */
};

int pool_open(struct pool **out, const struct pool_offer *offer, struct err *e)
{
	const struct maker_offer o = {.spec = offer->spec,
		.pythons = offer->pythons,
		.npythons = offer->npythons,
		.most = offer->most};
	struct pool *p = calloc(1, sizeof(*p));

	if (!p)
		return err_errno(e, "start the maker");
	p->pid = maker_start(&o, &p->maker, e);
	if (p->pid < 0) {
		free(p);
		return -1;
	}
	*out = p;
	return 0;
}

void pool_prepare(struct pool *p, unsigned python)
{
	if (p->asked || maker_ask(p->maker, python, SPEC_PROGRAM, NULL) < 0)
		return;
	p->asked = 1;
	p->python = python;
}

/* The answer to what was asked. */
static int answer(struct pool *p, struct jail **out, struct err *e)
{
	int sock = maker_answer(p->maker, e);

	p->asked = 0;
	return sock < 0 ? -1 : jail_adopt(out, sock, e);
}

/* Wait for the oldest that is on its way out. */
static void end_oldest(struct pool *p)
{
	jail_close(p->ending[0], p->left.msg[0] ? NULL : &p->left);
	memmove(p->ending, p->ending + 1,
		(size_t)--p->nending * sizeof(*p->ending));
}

void pool_end(struct pool *p, struct jail *j)
{
	if (!j)
		return;
	jail_end(j);
	if (p->nending == ENDING_MAX)
		end_oldest(p);
	p->ending[p->nending++] = j;
}

/* End the session that was made ahead, which nobody can use. */
static void drop_ahead(struct pool *p)
{
	struct jail *j = NULL;

	if (p->asked && answer(p, &j, NULL) == 0)
		pool_end(p, j);
}

int pool_take(struct pool *p, unsigned python, enum spec_mode mode,
	struct jail **out, struct err *e)
{
	if (p->asked && (p->python != python || mode != SPEC_PROGRAM))
		drop_ahead(p);
	if (!p->asked && maker_ask(p->maker, python, mode, e) < 0)
		return -1;
	return answer(p, out, e);
}

int pool_close(struct pool *p, struct err *e)
{
	int r;

	if (!p)
		return 0;
	drop_ahead(p);
	while (p->nending > 0)
		end_oldest(p);
	close(p->maker);
	while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
		;
	r = p->left.msg[0] ? -1 : 0;
	if (r < 0 && e)
		*e = p->left;
	free(p);
	return r;
}
