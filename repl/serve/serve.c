/* SPDX-License-Identifier: MIT */
/*
 * serve.c - cellblock --serve
 *
 * Runs in:   front end; confined before it accepts the first client: it can
 *            open no file, and starts only sessions, through the supplier
 * Trusts:    no client, no program
 * Leaves:    an answer for each request that was accepted, and no session
 *
 * One loop polls clients, programs, and jails that start or end. No function of
 * it waits for one of them.
 */

#include "jail/base/array.h"
#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/prewarm.h"
#include "repl/config/config.h"
#include "repl/json/json.h"
#include "repl/serve/route.h"
#include "repl/term/term.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* The longest timeout that Onyx's own service allows. */
#define ASKED_MS 60000
/* Most bytes of a form beside its file. */
#define FORM_MORE (1 << 20)
/* Most bytes of an answer beside the files of a home. Those have no more bytes
 * than two homes in base64. */
#define ANSWER_MORE (8 << 20)
/* Descriptors of the server itself; of a request; of a session with its
 * request; of a spare jail of each kind. In each but the first is a jail that
 * ends. */
#define OWN_FDS 32
#define REQUEST_FDS (JOBS_FDS + 2)
#define SESSION_FDS 8
#define SPARE_FDS 8
/* How long a client may take to read its answer when the server ends. */
#define DRAIN_MS 10000
/* How long requests are still served when no further client is accepted: one
 * that has connected before may only be about to ask. */
#define LATE_MS 1000
/* Longest wait of the loop. */
#define TURN_MS 1000

struct serve {
	struct config cfg; /* borrows its texts and lists */
	struct pythons pythons;
	struct request_rules rules;
	struct listener listen;
	struct access *log;
	struct pool *pool;
	struct store *store;
	struct repeats *repeats;
	struct jobs *jobs;
	struct sessions *sessions;
	struct http *http;
	struct http_calls calls;
	struct tenants *tenants;
	struct reload *reload;
	struct traffic traffic;
	struct process process;
	struct route route;
	int notify, clients;
	int terminal;	 /* a descriptor of it, or -1 */
	int descriptors; /* most of them */
	struct operator operator;
	struct pollfd *polls;
	size_t room;
	int64_t swept_ms;
	int64_t ending_ms, closed_ms, drained_ms; /* see check_end() */
	bool closed;
	bool lost;    /* the supplier is gone */
	bool reloads; /* SIGHUP came */
};

/* Onyx's client asks for half of this maximum by default. Without a configured
 * cell.timeout we allow it more than ours. */
int64_t serve_most_ms(const struct config *cfg)
{
	return config_set_in(cfg, "cell.timeout") ? cfg->limits.cell_wall_ms
						  : ASKED_MS;
}

/* ---- ready ---- */

/* We need a descriptor for each client, and some for each jail. With too few of
 * them we accept fewer clients. */
static int share_descriptors(struct serve *s, struct err *e)
{
	const struct config_serve *c = &s->cfg.serve;
	const int64_t others = OWN_FDS + SPARE_FDS * c->spare +
			       (int64_t)c->concurrent * REQUEST_FDS +
			       (int64_t)c->sessions * SESSION_FDS;
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0)
		return err_errno(e, "read RLIMIT_NOFILE");
	s->clients = c->clients;
	if (r.rlim_max != RLIM_INFINITY &&
		(int64_t)r.rlim_max < others + c->clients)
		s->clients = (int)((int64_t)r.rlim_max - others);
	s->descriptors = (int)others + s->clients;
	if (s->clients > 0)
		return 0;
	err_set(e,
		"%lld descriptors are too few: %lld, and one for each client",
		(long long)r.rlim_max, (long long)others);
	return err_hint(e, "ulimit -n, or lower serve.concurrent or "
			   "serve.sessions");
}

/* Take the tokens in this text (taken). */
static int set_tokens(struct serve *s, char *text, size_t n, struct err *e)
{
	struct tokens tokens;
	int r;

	if (tokens_parse(&tokens, text, n, e) < 0)
		return -1;
	r = tenants_set(s->tenants, &tokens);
	tokens_free(&tokens);
	return r < 0 ? err_errno(e, "keep the tokens") : 0;
}

static int open_tenants(struct serve *s, const char *path, struct err *e)
{
	char *text;
	size_t n;

	s->tenants = tenants_open();
	if (!s->tenants)
		return err_errno(e, "serve");
	if (!path)
		return 0;
	return tokens_read(path, &text, &n, e) < 0 ? -1
						   : set_tokens(s, text, n, e);
}

static int open_pool(
	struct serve *s, const struct jail_spec *spec, struct err *e)
{
	const struct config_serve *c = &s->cfg.serve;
	struct pool_offer offer = {.spec = spec,
		/* as many jails may be ending as run */
		.most = 2 * (c->concurrent + c->sessions) + 3 * c->spare + 4,
		.gone = listen_remove,
		.arg = &s->listen};

	if (pythons_find(&s->pythons, spec, &s->cfg, e) < 0)
		return -1;
	offer.pythons = s->pythons.v;
	offer.npythons = s->pythons.n;
	return pool_open(&s->pool, &offer, e);
}

static int open_http(struct serve *s, struct err *e)
{
	const struct config_serve *c = &s->cfg.serve;
	const struct jobs_rules jobs = {.cfg = &s->cfg,
		.pool = s->pool,
		.store = s->store,
		.tenants = s->tenants,
		.npythons = s->pythons.n};
	const struct sessions_rules sessions = {
		.cfg = &s->cfg, .pool = s->pool, .tenants = s->tenants};
	const struct http_rules http = {.fds = s->listen.fds,
		.nfds = s->listen.n,
		.clients = s->clients,
		.body = (size_t)c->request,
		.form = (uint64_t)c->upload + FORM_MORE,
		.answers = (size_t)c->concurrent *
			   (2 * (size_t)s->cfg.limits.home_bytes + ANSWER_MORE),
		.limits = c,
		.store = s->store,
		.repeats = s->repeats,
		.calls = &s->calls};

	s->calls = (struct http_calls){.head = route_head,
		.whole = route_whole,
		.more = route_more,
		.over = route_over,
		.words = refusal_words,
		.done = route_done,
		.arg = &s->route};
	s->rules = (struct request_rules){.limits = &s->cfg.limits,
		.most_ms = serve_most_ms(&s->cfg),
		.pythons = s->pythons.v,
		.resolved = s->pythons.resolved,
		.npythons = s->pythons.n,
		.locked = s->cfg.locked};
	if (jobs_open(&s->jobs, &jobs) < 0)
		return err_errno(e, "serve");
	if (sessions_open(&s->sessions, &sessions, e) < 0 ||
		http_open(&s->http, &http, e) < 0)
		return -1;
	s->route = (struct route){.http = s->http,
		.jobs = s->jobs,
		.sessions = s->sessions,
		.store = s->store,
		.repeats = s->repeats,
		.pool = s->pool,
		.tenants = s->tenants,
		.traffic = &s->traffic,
		.process = &s->process,
		.log = s->log,
		.rules = &s->rules,
		.limits = c,
		.local = s->listen.local && !tenants_ask(s->tenants)};
	jobs_start(s->jobs); /* spares */
	sessions_start(s->sessions);
	return 0;
}

int serve_open(struct serve **out, const struct config *cfg,
	const struct jail_spec *spec, const struct reload_source *source,
	const char *where, struct err *e)
{
	struct serve *s = calloc(1, sizeof(*s));

	if (!s)
		return err_errno(e, "serve");
	s->cfg = *cfg;
	s->notify = s->process.memory = -1;
	*out = s;
	if (share_descriptors(s, e) < 0 ||
		reload_open(&s->reload, cfg, source, e) < 0)
		return -1;
	/* Listen first: open_pool() forks the supplier, which closes all
	 * sockets, and removes ours from the file system when we are gone. It
	 * must inherit no more. */
	if (listen_open(&s->listen, where, e) < 0)
		return -1;
	listen_raise(&s->listen, s->descriptors - LISTEN_MAX);
	if (open_pool(s, spec, e) < 0)
		return -1;
	process_open(&s->process);
	if (open_tenants(s, cfg->serve.token_file, e) < 0)
		return err_kind_set(e, ERR_CONFIG);
	if (access_open(&s->log, &s->cfg.serve, e) < 0 ||
		notify_open(&s->notify, e) < 0 ||
		store_open(&s->store, &s->cfg.serve, e) < 0)
		return -1;
	if (repeats_open(&s->repeats, &s->cfg.serve) < 0)
		return err_errno(e, "serve");
	return open_http(s, e);
}

const char *serve_address(const struct serve *s)
{
	return s->listen.shown;
}

void serve_set_control(struct serve *s, struct control *d)
{
	s->operator=(struct operator){.control = d, .address = s->listen.shown};
}

int serve_is_open(const struct serve *s)
{
	return !s->listen.local && !tenants_ask(s->tenants);
}

int serve_close(struct serve *s, struct err *e)
{
	int r;

	http_close(s->http);
	listen_close(&s->listen);
	jobs_close(s->jobs);
	sessions_close(s->sessions);
	store_close(s->store);
	repeats_close(s->repeats);
	r = pool_close(s->pool, e);
	pythons_free(&s->pythons);
	tenants_close(s->tenants);
	reload_close(s->reload);
	access_close(s->log);
	process_close(&s->process);
	fd_drop(&s->notify);
	free(s->polls);
	free(s);
	return r;
}

/* ---- the loop ---- */

/* Where each part's entries begin in the list to poll, in this order. */
struct places {
	size_t jobs, sessions, pool, n;
	int timeout_ms;
};

static int fill_polls(struct serve *s, int signals, struct places *at)
{
	int pool_ms = pool_timeout_ms(s->pool);
	struct pool_count c;
	size_t most;

	pool_count(s->pool, &c);
	most = 5 + RUN_POLLS * jobs_running(s->jobs) +
	       sessions_most_polls(s->sessions) +
	       (size_t)(c.ready + c.making + c.ending);
	if (array_reserve(&s->polls, &s->room, most, sizeof(*s->polls)) < 0)
		return -1;
	s->polls[0] = (struct pollfd){.fd = signals, .events = POLLIN};
	s->polls[1] = (struct pollfd){.fd = http_fd(s->http), .events = POLLIN};
	s->polls[2] =
		(struct pollfd){.fd = reload_fd(s->reload), .events = POLLIN};
	at->jobs = 3;
	at->timeout_ms = TURN_MS;
	at->sessions = at->jobs + jobs_polls(s->jobs, s->polls + at->jobs,
					  most - at->jobs, &at->timeout_ms);
	at->pool = at->sessions + sessions_polls(s->sessions,
					  s->polls + at->sessions,
					  most - at->sessions, &at->timeout_ms);
	at->n = at->pool +
		pool_polls(s->pool, s->polls + at->pool, most - at->pool);
	if (pool_ms >= 0 && pool_ms < at->timeout_ms)
		at->timeout_ms = pool_ms;
	return 0;
}

static void turn_parts(struct serve *s, const struct places *at)
{
	bool pool = false;

	for (size_t i = at->pool; i < at->n; i++)
		pool |= s->polls[i].revents != 0;
	jobs_turn(s->jobs, s->polls + at->jobs, at->sessions - at->jobs);
	sessions_turn(
		s->sessions, s->polls + at->sessions, at->pool - at->sessions);
	if (pool)
		pool_turn(s->pool);
	http_turn(s->http);
	jobs_start(s->jobs);
	sessions_start(s->sessions);
	access_flush(s->log);
	if (now_ms() - s->swept_ms < 1000)
		return;
	s->swept_ms = now_ms();
	pool_turn(s->pool);
	store_sweep(s->store, s->tenants);
	sessions_sweep(s->sessions);
	repeats_sweep(s->repeats);
	s->lost |= pool_is_lost(s->pool);
}

/* ---- SIGHUP ---- */

static void begin_reload(struct serve *s)
{
	char words[80];

	s->reloads = false;
	snprintf(words, sizeof(words), "RELOADING=1\nMONOTONIC_USEC=%lld",
		(long long)(now_ns() / 1000));
	notify_say(s->notify, words);
	reload_ask(s->reload);
}

/* Take the new tokens, then the new limits. */
static int take_answer(
	struct serve *s, const struct reload_answer *a, struct err *e)
{
	struct config_serve fresh = a->serve, *now = &s->cfg.serve;
	char *text;

	if (a->failed)
		return err_set(e, "there is a mistake");
	if (a->ntokens > 0) {
		text = calloc(1, a->ntokens + 1);
		if (!text)
			return err_errno(e, "keep the tokens");
		memcpy(text, a->tokens, a->ntokens);
		if (set_tokens(s, text, a->ntokens, e) < 0)
			return -1;
	}
	fresh.directory = now->directory;
	fresh.token_file = now->token_file;
	fresh.name = now->name;
	*now = fresh;
	return 0;
}

static void end_reload(struct serve *s)
{
	const struct reload_answer *a;
	struct err e = {0};
	int r = reload_take(s->reload, &a);

	if (r == 0)
		return;
	if (r < 0)
		err_set(&e, "the process that reads it is gone");
	else
		access_say(s->log, true, a->words);
	if (r > 0 && take_answer(s, a, &e) == 0) {
		access_say(s->log, false, "the configuration was read again");
		/* Files and sessions of tenants that are gone go at once. */
		s->swept_ms = 0;
	} else {
		err_wrap(&e, "the configuration was not read again, and "
			     "nothing changes");
		access_say(s->log, true, e.msg);
	}
	if (!s->route.ending)
		notify_say(s->notify, "READY=1");
}

/* The kernel sends SIGHUP, too, when the terminal goes in which a person has
 * started us. */
static bool has_lost_terminal(const struct serve *s)
{
	return s->terminal >= 0 && !isatty(s->terminal);
}

static void check_hangup(struct serve *s, struct signals *signals)
{
	if (terminal_signals_lost(signals) && !s->route.ending) {
		if (has_lost_terminal(s))
			signals->end = SIGHUP;
		else
			s->reloads = true;
	}
	if (reload_is_busy(s->reload))
		end_reload(s);
	else if (s->reloads && !s->route.ending)
		begin_reload(s);
}

/* ---- the end ---- */

static void begin_end(struct serve *s)
{
	s->route.ending = true;
	s->ending_ms = now_ms();
	http_end_connections(s->http);
	notify_say(s->notify, "STOPPING=1");
	if (s->lost)
		access_say(
			s->log, true, "the process that makes jails is gone");
	access_say(s->log, false, "ending: accepted requests are answered");
}

static void stop_listening(struct serve *s)
{
	http_drain(s->http);
	listen_close(&s->listen);
	s->closed = true;
	s->closed_ms = s->drained_ms = now_ms();
}

/* True when every client has its answer or took too long to read it. */
static bool is_drained(struct serve *s)
{
	int64_t now = now_ms();

	if (jobs_running(s->jobs) + jobs_waiting(s->jobs) +
			sessions_busy(s->sessions) >
		0)
		s->drained_ms = now;
	return http_is_idle(s->http) || now - s->drained_ms > DRAIN_MS;
}

/* A server ends in three steps: a signal begins the end, which /health tells a
 * proxy; after serve.drain we stop listening; LATE_MS later we refuse what
 * still comes. Without the supplier the first two come at once: the program
 * that started us can start another server. True when all is answered, or a
 * second signal came. */
static bool check_end(struct serve *s, struct signals *signals)
{
	terminal_signals_read(signals);
	check_hangup(s, signals);
	if (terminal_signals_cancelled(signals)) {
		signals->end = 0;
		if (s->route.ending)
			return true;
		begin_end(s);
	}
	if (s->lost && !s->route.ending)
		begin_end(s);
	if (!s->route.ending)
		return false;
	if (!s->closed &&
		(s->lost || now_ms() - s->ending_ms >= s->cfg.serve.drain_ms))
		stop_listening(s);
	s->route.draining =
		s->lost || (s->closed && now_ms() - s->closed_ms >= LATE_MS);
	return s->closed && is_drained(s);
}

/* Say in the log that RLIMIT_NOFILE allows fewer clients than serve.clients. */
static void say_clients(const struct serve *s)
{
	char words[100];

	snprintf(words, sizeof(words),
		"to %d clients at a time instead of serve.clients (ulimit -n)",
		s->clients);
	if (s->clients < s->cfg.serve.clients)
		access_say(s->log, true, words);
}

int serve_run(struct serve *s, struct signals *signals, const struct log *log,
	struct err *e)
{
	struct places at;
	int due;

	jobs_set_log(s->jobs, log);
	sessions_set_log(s->sessions, log);
	terminal_signals_outlive(signals, true);
	s->terminal = isatty(0) ? 0 : isatty(2) ? 2 : -1;
	say_clients(s);
	notify_say(s->notify, "READY=1");
	while (!check_end(s, signals)) {
		due = operator_turn(&s->operator, s->sessions, log);
		if (fill_polls(s, signals->fd, &at) < 0)
			return err_errno(e, "serve");
		if (due >= 0 && due < at.timeout_ms)
			at.timeout_ms = due;
		if (poll(s->polls, at.n, at.timeout_ms) < 0 && errno != EINTR)
			return err_errno(e, "wait for clients");
		turn_parts(s, &at);
	}
	if (s->lost)
		return err_set(e, "the process that makes jails is gone");
	return 0;
}
