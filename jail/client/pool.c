/* SPDX-License-Identifier: MIT */
/*
 * pool.c - sessions made ahead, for a front end that serves many requests
 *
 * Runs in:   front end, confined but for pool_open()
 * Holds:     the socket to the supplier; sessions ahead; those that are ending;
 *            /proc/loadavg
 * Trusts:    the supplier
 * Leaves:    nothing: pool_close() waits for every session
 *
 * A session takes a while to go: its namespaces are taken down. The next
 * request does not wait for that; but sessions that are on their way out count,
 * so that no more is begun than can be ended.
 */
#include "jail/prewarm.h"

#include "jail/base/array.h"
#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/broker/broker.h"
#include "jail/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
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
};

/* A session ahead. Until the supplier answers it has no jail. */
struct ahead {
	int kind; /* its index */
	struct jail *jail;
	struct jail_event *said; /* for who takes it */
	size_t nsaid;
	int64_t built_ms;  /* when it was ready; 0: it is not yet */
	int64_t failed_ms; /* since when it is of no use; 0: it is */
};

struct pool {
	int supplier;
	pid_t pid; /* of the supplier */
	int load;  /* /proc/loadavg, or -1 */
	int most, taken;
	struct stock stock;
	struct kind *kinds;  /* of the stock */
	struct ahead *ahead; /* those without a jail in the order of asking */
	size_t nahead;
	struct pollfd
		*polls; /* pool_await()'s: one for each, and the supplier */
	struct jail **ending; /* the oldest first */
	size_t nending;
	struct err refusal; /* the supplier's last, */
	int64_t refused_ms; /* and when; 0: none since the last session */
	struct err left;    /* something may be left */
};

int pool_open(struct pool **out, const struct pool_offer *offer, struct err *e)
{
	const struct supplier_offer o = {.spec = offer->spec,
		.pythons = offer->pythons,
		.npythons = offer->npythons,
		.most = offer->most,
		.gone = offer->gone,
		.arg = offer->arg};
	struct pool *p = calloc(1, sizeof(*p));

	if (!p)
		return err_errno(e, "make jails ahead");
	p->most = offer->most;
	p->stock.at_once = (int)sysconf(_SC_NPROCESSORS_ONLN);
	p->polls = calloc((size_t)p->most + 1, sizeof(*p->polls));
	p->load = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
	p->pid = p->polls ? supplier_start(&o, &p->supplier, e)
			  : err_errno(e, "make jails ahead");
	if (p->pid < 0) {
		fd_drop(&p->load);
		free(p->polls);
		free(p);
		return -1;
	}
	*out = p;
	return 0;
}

/* Its index, or -1. */
static int find_kind(const struct pool *p, unsigned python, enum spec_mode mode)
{
	for (int i = 0; i < p->stock.n; i++)
		if (p->kinds[i].python == python && p->kinds[i].mode == mode)
			return i;
	return -1;
}

/* ---- those that end ---- */

/* Wait for one that is on its way out. */
static void close_ending(struct pool *p, size_t i)
{
	jail_close(p->ending[i], p->left.msg[0] ? NULL : &p->left);
	ARRAY_REMOVE(p->ending, p->nending, i);
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
	p->stock.rest_ms = now_ms() + REST_END_MS;
	begin_end(p, j);
}

/* ---- those ahead ---- */

static struct ahead ahead_remove(struct pool *p, size_t i)
{
	struct ahead a = p->ahead[i];

	ARRAY_REMOVE(p->ahead, p->nahead, i);
	return a;
}

static void end_ahead(struct pool *p, size_t i)
{
	struct ahead a = ahead_remove(p, i);

	for (size_t n = 0; n < a.nsaid; n++)
		jail_event_close(&a.said[n]);
	free(a.said);
	begin_end(p, a.jail);
}

/* End one of that kind; those that are only asked for come anyway. */
static bool drop_surplus(struct pool *p, int kind)
{
	for (size_t i = p->nahead; i-- > 0;)
		if (p->ahead[i].jail && p->ahead[i].kind == kind) {
			end_ahead(p, i);
			return true;
		}
	return false;
}

/* It has died since it was ready, and is of no use to anybody. */
static bool is_lost(const struct ahead *a)
{
	return a->built_ms && a->failed_ms;
}

/* Cores on which nothing runs now. The kernel counts us, too. */
static int count_idle(const struct pool *p)
{
	char text[64] = "";
	int running;

	if (p->load < 0 || pread(p->load, text, sizeof(text) - 1, 0) <= 0 ||
		sscanf(text, "%*s %*s %*s %d/", &running) != 1 ||
		running > p->stock.at_once)
		return 0;
	return p->stock.at_once + 1 - running;
}

/* Fill in what there is of each kind. */
static void count_stock(struct pool *p)
{
	struct stock *s = &p->stock;

	s->room = p->most - p->taken - (int)(p->nahead + p->nending);
	for (int i = 0; i < s->n; i++) {
		struct stock_kind *k = &s->kinds[i];

		k->have = k->making = k->lost = 0;
		k->again_ms = p->refused_ms ? p->refused_ms + FAILURE_MS : 0;
	}
	for (size_t i = 0; i < p->nahead; i++) {
		const struct ahead *a = &p->ahead[i];
		struct stock_kind *k = &s->kinds[a->kind];

		k->have += !is_lost(a);
		k->lost += is_lost(a);
		k->making += !a->built_ms && !a->failed_ms;
	}
	s->idle = 0;
	for (int i = 0; i < s->n && s->idle == 0; i++)
		if (s->kinds[i].have < s->kinds[i].waited + s->kinds[i].ahead)
			s->idle = count_idle(p);
}

static int ask_supplier(struct pool *p, const struct stock_next *next)
{
	const struct kind *k = &p->kinds[next->kind];
	const struct supplier_question q = {
		.python = k->python, .mode = k->mode};

	if (array_grow(&p->ahead, p->nahead, sizeof(*p->ahead)) < 0 ||
		supplier_ask(p->supplier, &q, &p->refusal) < 0) {
		p->refused_ms = now_ms();
		return -1;
	}
	p->ahead[p->nahead++] = (struct ahead){.kind = next->kind};
	stock_note_begun(&p->stock, next->kind);
	return 0;
}

/* End what is too much, and ask for what is missing. */
static void ask_for_missing(struct pool *p)
{
	struct stock *s = &p->stock;
	struct stock_next next;

	count_stock(p);
	for (int i = 0; i < s->n; i++) {
		struct stock_kind *k = &s->kinds[i];

		while (k->have > k->waited + k->ahead && drop_surplus(p, i))
			count_stock(p);
	}
	do
		next = stock_next(s);
	while (next.kind >= 0 && next.when_ms <= now_ms() &&
		ask_supplier(p, &next) == 0);
}

void pool_want(struct pool *p, unsigned python, enum spec_mode mode, int waited,
	int ahead)
{
	struct stock *s = &p->stock;
	int i = find_kind(p, python, mode);

	if (i < 0) {
		i = s->n;
		if (array_grow(&p->kinds, (size_t)i, sizeof(*p->kinds)) < 0 ||
			array_grow(&s->kinds, (size_t)i, sizeof(*s->kinds)) < 0)
			return;
		p->kinds[i] = (struct kind){python, mode};
		s->kinds[i] = (struct stock_kind){0};
		s->n++;
	}
	s->kinds[i].waited = waited;
	s->kinds[i].ahead = ahead;
	ask_for_missing(p);
}

/* The supplier's answer to the oldest question. */
static void take_answer(struct pool *p)
{
	size_t i = 0;
	int sock;

	while (i < p->nahead && p->ahead[i].jail)
		i++;
	sock = start_receive(p->supplier, &p->refusal);
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
static bool is_ready_by(
	enum spec_mode mode, const struct ahead *a, const struct jail_event *ev)
{
	return !a->built_ms &&
	       ev->type == (mode == SPEC_SESSION ? JAIL_UP : JAIL_BUILT);
}

/* True if a session may send this event while all is well. */
static bool is_well(
	enum spec_mode mode, const struct ahead *a, const struct jail_event *ev)
{
	return mode == SPEC_SESSION && a->nsaid < SAID_MAX &&
	       (ev->type == JAIL_BUILT || ev->type == JAIL_PARKED ||
		       ev->type == JAIL_NOTICE);
}

/* Take one event of a session ahead; it is kept for its later user. True if
 * there may be another event. */
static bool hear_one(enum spec_mode mode, struct ahead *a)
{
	struct jail_event ev;
	int r = jail_next(a->jail, &ev, NULL);

	if (r == 0)
		return false;
	if (r > 0 && is_ready_by(mode, a, &ev))
		a->built_ms = now_ms();
	else if (r < 0 || !is_well(mode, a, &ev))
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
static void hear_all(const struct pool *p, struct ahead *a)
{
	if (!a->jail || a->failed_ms)
		return;
	while (hear_one(p->kinds[a->kind].mode, a))
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
	return is_asked(p) && io_is_readable(p->supplier);
}

void pool_turn(struct pool *p)
{
	int64_t now = now_ms();

	while (has_answer(p))
		take_answer(p);
	for (size_t i = 0; i < p->nahead;) {
		struct ahead *a = &p->ahead[i];

		hear_all(p, a);
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

int pool_timeout_ms(struct pool *p)
{
	struct stock_next next;
	int64_t left;

	count_stock(p);
	next = stock_next(&p->stock);
	left = next.when_ms - now_ms();
	if (next.kind < 0)
		return -1;
	/* A core that has become idle since the last turn may not stay so. */
	return left > 0 ? (int)left : p->stock.idle > 0;
}

size_t pool_polls(const struct pool *p, struct pollfd *v, size_t max)
{
	size_t n = 0;

	if (is_asked(p))
		add_poll(v, max, &n, p->supplier);
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
	int kind = find_kind(p, python, mode), most = 0;
	struct ahead a;
	size_t best = 0;

	/* One that has died is not handed out. */
	for (size_t i = 0; i < p->nahead; i++)
		hear_all(p, &p->ahead[i]);
	for (size_t i = 0; i < p->nahead; i++)
		if (p->ahead[i].kind == kind &&
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
		p->stock.rest_ms = now_ms() + REST_MS;
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
	close(p->supplier);
	fd_drop(&p->load);
	while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
		;
	r = p->left.msg[0] ? -1 : 0;
	if (r < 0 && e)
		*e = p->left;
	free(p->kinds);
	free(p->stock.kinds);
	free(p->ahead);
	free(p->ending);
	free(p->polls);
	free(p);
	return r;
}
