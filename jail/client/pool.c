/* SPDX-License-Identifier: MIT */
/*
 * pool.c - sessions made ahead, for a front end that serves many requests
 *
 * Runs in:   front end, confined but for pool_open()
 * Holds:     the socket to the maker; sessions ahead; those that are ending
 * Trusts:    the maker
 * Leaves:    nothing: pool_close() waits for every session
 *
 * A session takes a while to go: its namespaces are taken down. The next
 * request does not wait for that; but sessions that are on their way out count,
 * so that no more is begun than can be ended.
 */
#include "jail/pool.h"

#include "jail/base/array.h"
#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/jail.h"
#include "jail/maker/maker.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long a session has the host to itself after it was taken: most are over
 * by then. After the end of one its answer goes first. */
#define REST_MS 20
#define REST_END_MS 1
/* How long a failure keeps us from trying again. */
#define FAILURE_MS 1000
/* Most events that a session may send before it is taken. */
#define SAID_MAX 16

struct kind {
	unsigned python;
	enum spec_mode mode;
	int waited, ahead; /* wanted */
};

/* A session ahead. Until the maker answers it has no jail. */
struct ahead {
	struct kind kind;
	struct jail *jail;
	struct jail_event *said; /* for who takes it */
	size_t nsaid;
	int64_t built_ms;  /* when it was ready; 0: it is not yet */
	int64_t failed_ms; /* since when it is of no use; 0: it is */
};

struct pool {
	int maker;
	pid_t pid; /* of the maker */
	int most, taken, cores;
	int64_t rest_ms; /* nothing is made ahead before */
	struct kind *kinds;
	size_t nkinds;
	struct ahead *ahead; /* those without a jail in the order of asking */
	size_t nahead;
	struct pollfd *polls; /* pool_await()'s: one for each, and the maker */
	struct jail **ending; /* the oldest first */
	size_t nending;
	struct err refusal; /* the maker's last, */
	int64_t refused_ms; /* and when; 0: none since the last session */
	struct err left;    /* something may be left */
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
	p->most = offer->most;
	p->cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
	p->polls = calloc((size_t)p->most + 1, sizeof(*p->polls));
	p->pid = p->polls ? maker_start(&o, &p->maker, e)
			  : err_errno(e, "start the maker");
	if (p->pid < 0) {
		free(p->polls);
		free(p);
		return -1;
	}
	*out = p;
	return 0;
}

static bool is_kind(const struct kind *k, unsigned python, enum spec_mode mode)
{
	return k->python == python && k->mode == mode;
}

/* ---- those that end ---- */

/* Wait for one that is on its way out. */
static void close_ending(struct pool *p, size_t i)
{
	jail_close(p->ending[i], p->left.msg[0] ? NULL : &p->left);
	memmove(p->ending + i, p->ending + i + 1,
		(--p->nending - i) * sizeof(*p->ending));
}

static void reap_ended(struct pool *p)
{
	for (size_t i = 0; i < p->nending;)
		if (jail_is_over(p->ending[i]))
			close_ending(p, i);
		else
			i++;
}

static void begin_end(struct pool *p, struct jail *j)
{
	jail_end(j);
	reap_ended(p);
	if (array_grow(&p->ending, p->nending, sizeof(*p->ending)) < 0)
		jail_close(j, &p->left);
	else
		p->ending[p->nending++] = j;
}

void pool_end(struct pool *p, struct jail *j)
{
	if (!j)
		return;
	p->taken--;
	p->rest_ms = now_ms() + REST_END_MS;
	begin_end(p, j);
}

/* ---- those ahead ---- */

static struct ahead ahead_remove(struct pool *p, size_t i)
{
	struct ahead a = p->ahead[i];

	memmove(p->ahead + i, p->ahead + i + 1,
		(--p->nahead - i) * sizeof(*p->ahead));
	return a;
}

static void ask_maker(struct pool *p, const struct kind *k, int hurried)
{
	const struct maker_question q = {
		.python = k->python, .mode = k->mode, .hurried = hurried};

	if (array_grow(&p->ahead, p->nahead, sizeof(*p->ahead)) < 0 ||
		maker_ask(p->maker, &q, &p->refusal) < 0) {
		p->refused_ms = now_ms();
		return;
	}
	p->ahead[p->nahead++] = (struct ahead){.kind = *k};
}

static void end_ahead(struct pool *p, size_t i)
{
	struct ahead a = ahead_remove(p, i);

	for (size_t n = 0; n < a.nsaid; n++)
		jail_event_close(&a.said[n]);
	free(a.said);
	begin_end(p, a.jail);
}

/* One too many: those that are only asked for come anyway. */
static bool drop_surplus(struct pool *p, const struct kind *k)
{
	for (size_t i = p->nahead; i-- > 0;) {
		struct ahead *a = &p->ahead[i];

		if (a->jail && is_kind(&a->kind, k->python, k->mode)) {
			end_ahead(p, i);
			return true;
		}
	}
	return false;
}

/* How many are in the making, of all kinds. */
static int count_in_making(const struct pool *p)
{
	int n = 0;

	for (size_t i = 0; i < p->nahead; i++)
		n += !p->ahead[i].built_ms && !p->ahead[i].failed_ms;
	return n;
}

/* True if one more session may be made now. More than there are cores would
 * only be ready later. */
static bool may_make(const struct pool *p, bool waited)
{
	int64_t now = now_ms();

	if (p->nahead + p->nending + (size_t)p->taken >= (size_t)p->most ||
		(p->refused_ms && now - p->refused_ms < FAILURE_MS))
		return false;
	return waited ? count_in_making(p) < p->cores
		      : count_in_making(p) == 0 && now >= p->rest_ms;
}

/* It has died since it was ready, and is of no use to anybody. */
static bool is_lost(const struct ahead *a)
{
	return a->built_ms && a->failed_ms;
}

static int count_kind(const struct pool *p, const struct kind *k, bool lost)
{
	int n = 0;

	for (size_t i = 0; i < p->nahead; i++)
		n += is_kind(&p->ahead[i].kind, k->python, k->mode) &&
		     (lost || !is_lost(&p->ahead[i]));
	return n;
}

/* Ask for what is missing, as far as there may be more: first for what somebody
 * waits for. Those ahead that do not last are not replaced without end. */
static void ask_for_missing(struct pool *p)
{
	for (size_t i = 0; i < p->nkinds; i++) {
		const struct kind *k = &p->kinds[i];

		while (count_kind(p, k, false) > k->waited + k->ahead &&
			drop_surplus(p, k))
			;
		for (int n = count_kind(p, k, false);
			n < k->waited && may_make(p, true); n++)
			ask_maker(p, k, 1);
	}
	for (size_t i = 0; i < p->nkinds; i++) {
		const struct kind *k = &p->kinds[i];

		if (count_kind(p, k, true) < k->waited + k->ahead &&
			may_make(p, false))
			ask_maker(p, k, 0);
	}
}

void pool_want(struct pool *p, unsigned python, enum spec_mode mode, int waited,
	int ahead)
{
	size_t i = 0;

	while (i < p->nkinds && !is_kind(&p->kinds[i], python, mode))
		i++;
	if (i == p->nkinds) {
		if (array_grow(&p->kinds, i, sizeof(*p->kinds)) < 0)
			return;
		p->nkinds++;
	}
	p->kinds[i] = (struct kind){python, mode, waited, ahead};
	ask_for_missing(p);
}

/* The maker's answer to the oldest question. */
static void take_answer(struct pool *p)
{
	size_t i = 0;
	int sock;

	while (i < p->nahead && p->ahead[i].jail)
		i++;
	sock = maker_answer(p->maker, &p->refusal);
	if (i == p->nahead)
		p->refused_ms = now_ms();
	else if (sock < 0 ||
		 jail_adopt(&p->ahead[i].jail, sock, &p->refusal) < 0) {
		ahead_remove(p, i);
		p->refused_ms = now_ms();
	} else {
		p->refused_ms = 0;
	}
}

/* True if this event makes the session ready. A second time, and it has broken
 * meanwhile. */
static bool is_ready_by(const struct ahead *a, const struct jail_event *ev)
{
	return !a->built_ms &&
	       ev->type ==
		       (a->kind.mode == SPEC_SESSION ? JAIL_UP : JAIL_BUILT);
}

/* True if a session may send this event while all is well. */
static bool is_well(const struct ahead *a, const struct jail_event *ev)
{
	return a->kind.mode == SPEC_SESSION && a->nsaid < SAID_MAX &&
	       (ev->type == JAIL_BUILT || ev->type == JAIL_PARKED ||
		       ev->type == JAIL_NOTICE);
}

/* Take one event of a session ahead; it is kept for who takes that. True if
 * there may be another event. */
static bool hear_one(struct ahead *a)
{
	struct jail_event ev;
	int r = jail_next(a->jail, &ev, NULL);

	if (r == 0)
		return false;
	if (r > 0 && is_ready_by(a, &ev))
		a->built_ms = now_ms();
	else if (r < 0 || !is_well(a, &ev))
		a->failed_ms = a->built_ms ? a->built_ms : now_ms();
	if (r < 0)
		return false;
	if (array_grow(&a->said, a->nsaid, sizeof(*a->said)) == 0) {
		a->said[a->nsaid++] = ev;
	} else {
		jail_event_close(&ev);
		a->failed_ms = now_ms();
	}
	return !a->failed_ms;
}

/* All that it has said: its death comes last. */
static void hear_all(struct ahead *a)
{
	while (hear_one(a))
		;
}

static bool is_asked(const struct pool *p)
{
	for (size_t i = 0; i < p->nahead; i++)
		if (!p->ahead[i].jail)
			return true;
	return false;
}

static bool has_answer(const struct pool *p)
{
	struct pollfd v = {.fd = p->maker, .events = POLLIN};

	return is_asked(p) && poll(&v, 1, 0) > 0;
}

void pool_turn(struct pool *p)
{
	int64_t now = now_ms();

	while (has_answer(p))
		take_answer(p);
	for (size_t i = 0; i < p->nahead;) {
		struct ahead *a = &p->ahead[i];

		if (a->jail && !a->failed_ms)
			hear_all(a);
		if (a->failed_ms && now - a->failed_ms > FAILURE_MS)
			end_ahead(p, i);
		else
			i++;
	}
	reap_ended(p);
	ask_for_missing(p);
}

static void add_poll(struct pollfd *v, size_t max, size_t *n, int fd)
{
	if (*n < max)
		v[(*n)++] = (struct pollfd){.fd = fd, .events = POLLIN};
}

int pool_timeout_ms(const struct pool *p)
{
	int64_t left = p->rest_ms - now_ms();

	return left > 0 ? (int)left : -1;
}

size_t pool_polls(const struct pool *p, struct pollfd *v, size_t max)
{
	size_t n = 0;

	if (is_asked(p))
		add_poll(v, max, &n, p->maker);
	for (size_t i = 0; i < p->nahead; i++)
		if (p->ahead[i].jail && !p->ahead[i].failed_ms)
			add_poll(v, max, &n, jail_fd(p->ahead[i].jail));
	for (size_t i = 0; i < p->nending; i++)
		add_poll(v, max, &n, jail_fd(p->ending[i]));
	return n;
}

/* ---- taking ---- */

/* The best: one that is built, then one that is building, then one that could
 * not be built and says why. */
static int ahead_rank(const struct ahead *a)
{
	if (!a->jail || is_lost(a))
		return 0;
	if (a->failed_ms)
		return 1;
	return a->built_ms ? 3 : 2;
}

int pool_take(struct pool *p, unsigned python, enum spec_mode mode,
	struct jail **out, struct err *e)
{
	struct ahead a;
	size_t best = 0;
	int most = 0;

	/* One that has died is not handed out. */
	for (size_t i = 0; i < p->nahead; i++)
		if (p->ahead[i].jail && !p->ahead[i].failed_ms)
			hear_all(&p->ahead[i]);
	for (size_t i = 0; i < p->nahead; i++)
		if (is_kind(&p->ahead[i].kind, python, mode) &&
			ahead_rank(&p->ahead[i]) > most) {
			best = i;
			most = ahead_rank(&p->ahead[i]);
		}
	if (most > 0) {
		a = ahead_remove(p, best);
		*out = a.jail;
		for (size_t i = 0; i < a.nsaid; i++)
			jail_keep(a.jail, &a.said[i], NULL);
		free(a.said);
		if (mode == SPEC_SESSION)
			jail_touch(a.jail); /* its life begins */
		p->taken++;
		p->rest_ms = now_ms() + REST_MS;
		return 1;
	}
	if (!p->refused_ms || now_ms() - p->refused_ms > FAILURE_MS)
		return 0;
	if (e)
		*e = p->refusal;
	return -1;
}

int pool_await(struct pool *p, unsigned python, enum spec_mode mode,
	struct jail **out, struct err *e)
{
	int r;

	while ((r = pool_take(p, python, mode, out, e)) == 0) {
		pool_want(p, python, mode, 1, 0);
		/* A place that a failure keeps is free after a while. */
		poll(p->polls, pool_polls(p, p->polls, (size_t)p->most + 1),
			FAILURE_MS);
		pool_turn(p);
	}
	pool_want(p, python, mode, 0, 0);
	return r < 0 ? -1 : 0;
}

void pool_count(const struct pool *p, struct pool_count *c)
{
	*c = (struct pool_count){.taken = p->taken, .ending = (int)p->nending};
	for (size_t i = 0; i < p->nahead; i++)
		*(p->ahead[i].built_ms && !p->ahead[i].failed_ms
				? &c->ready
				: &c->making) += 1;
}

bool pool_is_lost(const struct pool *p)
{
	siginfo_t si = {0};

	return waitid(P_PID, (id_t)p->pid, &si, WEXITED | WNOHANG | WNOWAIT) <
		       0 ||
	       si.si_pid != 0;
}

int pool_close(struct pool *p, struct err *e)
{
	int r;

	if (!p)
		return 0;
	/* The session that was asked for comes, or the maker is gone. */
	while (is_asked(p))
		take_answer(p);
	while (p->nahead > 0)
		end_ahead(p, 0);
	while (p->nending > 0)
		close_ending(p, 0);
	close(p->maker);
	while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
		;
	r = p->left.msg[0] ? -1 : 0;
	if (r < 0 && e)
		*e = p->left;
	free(p->kinds);
	free(p->ahead);
	free(p->ending);
	free(p->polls);
	free(p);
	return r;
}
