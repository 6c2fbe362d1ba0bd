/* SPDX-License-Identifier: MIT */
/*
 * parts.h - what the files of --serve share
 *
 *	access.c	the log of requests
 *	store.c		files that clients keep with us for a while
 *	execute.c	the body of POST /v1/execute
 *	http.c		requests over HTTP, and their answers
 *	events.c	what a cell shows, as a stream of events
 *	metrics.c	figures for Prometheus
 *	process.c	figures of the server's own process
 *	traffic.c	figures of the requests to each path
 *	jobs.c		requests that wait for a jail, or run in one
 *	operator.c	--sessions and --end, for sessions of the server
 *	repeats.c	answers to requests that clients may send again
 *	response.c	what a session answers its client
 *	sessions.c	sessions that outlive a request
 *	span.c		a request from its first byte to its end
 *	terms.c		what a client asks of a session that begins
 *	tenants.c	clients that have tokens with names
 */
#ifndef REPL_SERVE_PARTS_H
#define REPL_SERVE_PARTS_H

#include "jail/jail.h"
#include "repl/attach/attach.h"
#include "repl/config/config.h"
#include "repl/json/json.h"
#include "repl/serve/edge/edge.h"
#include "repl/serve/reload/reload.h"
#include "repl/serve/serve.h"
#include "repl/text/text.h"

#include <dirent.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct exchange;
struct http;
struct http_session;
struct jobs;
struct log;
struct pool;
struct pool_count;
struct repeat;
struct repeats;
struct sessions;
struct store;
struct strbuf;
struct tenants;
struct terms;

/* ---- store.c ---- */

#define STORE_ID_LEN 36

/* Only store.c writes it. */
struct store_file {
	struct connections_peer owner;
	char id[STORE_ID_LEN + 1]; /* a UUID; "" while it is being written */
	char *name;
	int64_t size;
	double time; /* since the epoch */
	int64_t born_ms;
	int holders;
	bool used, is_result;
};

/* Why a write is refused. */
enum store_problem {
	STORE_FINE,
	STORE_FILE_FULL, /* serve.upload */
	STORE_FULL,	 /* serve.storage, serve.files, a client's share of
			  * them, or the disk */
};

/* Write a new UUID. */
void store_make_id(char id[static STORE_ID_LEN + 1]);

/* The share of `all` that one client can have: a quarter is left to others. */
static inline int64_t store_share_of_client(int64_t all)
{
	return all - all / 4;
}

/* Open the file that holds all of them, without a name. 0, or -1 with e. */
int store_open(
	struct store **out, const struct config_serve *rules, struct err *e);
void store_close(struct store *s);

/* Begin an upload of a client, or a result of its code of that size. The caller
 * holds it until store_finish(), and discards it by store_release() before
 * that. Where there is no room, the oldest results go that nobody holds. NULL:
 * there is no room all the same. */
struct store_file *store_begin(struct store *s, struct connections_peer owner);
struct store_file *store_begin_result(
	struct store *s, struct connections_peer owner, int64_t size);

enum store_problem store_write(
	struct store *s, struct store_file *f, const void *p, size_t n);

/* Give the file an id, so that store_find() finds it, and let go of it. No
 * count has names: it gets NAME_MAX bytes of this one. -1: out of memory. */
int store_finish(struct store *s, struct store_file *f, const char *name);

/* Take the file's id away. The file is emptied when its last holder lets go. */
void store_drop(struct store *s, struct store_file *f);

/* Hold a file, so that its content stays; let go of it. */
void store_hold(struct store_file *f);
void store_release(struct store *s, struct store_file *f);

/* Read at most `n` bytes of a file, from byte `at` on: as pread(2). */
ssize_t store_read(const struct store *s, const struct store_file *f, void *p,
	size_t n, int64_t at);

/* The descriptor (borrowed) that has the file's bytes, from *at on. */
int store_locate(const struct store *s, const struct store_file *f, off_t *at);

/* NULL: no file that this client may have has that id. */
struct store_file *store_find(
	struct store *s, const char *id, struct connections_peer who);

/* The next file with an id that this client may have: after `f`, or the first
 * (NULL). */
struct store_file *store_next(
	struct store *s, struct store_file *f, struct connections_peer who);

/* Drop the files that are older than serve.keep, and those of tenants that are
 * gone. */
void store_sweep(struct store *s, const struct tenants *tenants);

struct store_count {
	unsigned long files; /* also those that are being written */
	int64_t bytes;
	uint64_t dropped; /* results that went to make room */
};

void store_count(const struct store *s, struct store_count *c);

/* ---- execute.c ---- */

/* Files of the store that a request holds. Caller's storage. */
struct execute_files {
	struct store *store;
	struct connections_peer who; /* asks for them */
	struct store_file **v;
	size_t n;
};

/* Parse and check a body. 0; or the status of the answer, and its body in
 * *words. The caller calls request_fini() and execute_release() either way. */
int execute_parse(struct request *q, struct execute_files *files,
	const struct strbuf *body, const struct request_rules *rules,
	struct strbuf *words);

void execute_release(struct execute_files *files);

/* Append {"detail": words}. */
void execute_add_detail(struct strbuf *b, const char *words, size_t n);

/* Append the detail for a body that is no JSON, by its type. */
void execute_add_no_object(struct strbuf *b);

/* Append the detail for a body in which the file is missing. */
void execute_add_no_file(struct strbuf *b);

/* ---- span.c ---- */

/* Most characters of the id of a request. */
#define SPAN_ID_MAX 128

/* A finished request, for the log and the figures. Zero at first; only span.c
 * writes it, but for what is marked. */
struct span {
	char id[SPAN_ID_MAX + 1]; /* (caller) */
	const char *client;
	struct connections_peer peer; /* (caller) */
	const char *method;	      /* as it was sent; NULL: unknown */
	/* Method and path in the table of paths; NULL: there is no such. */
	const char *place_method, *place_path;
	int status;	       /* (caller) of the answer; 0: there was none */
	bool gone;	       /* the client went before it had all of it */
	enum jail_limit limit; /* that ended the program or the cell */
	int64_t took_ns;       /* from its first byte to the answer's last */
	int64_t cpu_ms;	       /* of the program or the cell; -1: none ran */
	uint64_t in, out;      /* (caller) bytes of the body, of the answer's */
	char *error;	       /* why the jail failed, or NULL; owned */
	const struct strbuf *body; /* (caller) what http_take_body() kept */
	/* once the client is gone: its name, owned; when it asked */
	char *left;
	int64_t asked_ns;
};

/* A request has come; its client goes, and it goes on (-1: out of memory); it
 * is over, with its client or (NULL) without. span_fini() follows. */
void span_begin(struct span *r, const struct connections_client *c);
int span_leave(struct span *r, const struct connections_client *c);
void span_end(struct span *r, const struct connections_client *c);
void span_fini(struct span *r);

/* Its place in the table of paths (both borrowed for ever); the limit that
 * ended the program or the cell, and the CPU time of that; why the jail failed.
 */
void span_note_path(struct span *r, const char *method, const char *path);
void span_note_run(struct span *r, enum jail_limit limit, int64_t cpu_ms);
void span_note_failure(struct span *r, const char *why);

/* How a request ended. */
enum span_outcome {
	SPAN_OK,
	SPAN_LIMIT,   /* a limit ended the program or the cell */
	SPAN_REFUSED, /* the client's fault */
	SPAN_BUSY,    /* there was no room for it: 429, 503, 507 */
	SPAN_FAILED,  /* the jail failed, or we did */
	SPAN_GONE,    /* the client went before it had its answer */
	SPAN_OUTCOMES,
};

enum span_outcome span_outcome(const struct span *r);
const char *span_outcome_name(enum span_outcome how);

/* ---- http.c ---- */

/*
 * An exchange is one request and its answer. http.c calls head(), whole() and
 * over(). The caller answers once, in head(), in whole() or later, as a whole
 * or as a stream.
 */

struct http_calls {
	/* A head has come. The handler calls http_take_body() or
	 * http_take_file(), or neither: then the body is dropped. */
	void (*head)(void *arg, struct exchange *x);
	/* The whole request has come, or its file does not fit; head() did not
	 * answer. */
	void (*whole)(void *arg, struct exchange *x);
	/* Write the next bytes of a stream, at most `max`, and return how many.
	 * 0: none yet, the caller will call http_go_on(). -1: the stream ends.
	 */
	ssize_t (*more)(void *arg, struct exchange *x, char *p, size_t max);
	/* The client is gone, or has its answer. */
	void (*over)(void *arg, struct exchange *x);
	/* Append the body of a refusal in the form that clients of `path`
	 * expect ("": the path is unknown). */
	void (*words)(void *arg, const char *path, int status,
		const char *words, struct strbuf *b);
	/* A request is over, also one that was malformed. */
	void (*done)(void *arg, const struct span *r);
	void *arg;
};

/* Borrowed. */
struct http_rules {
	const int *fds; /* listening; if none, http_add_client() adds the
			 * clients */
	int nfds;
	int clients;
	size_t body;	/* longest */
	uint64_t form;	/* longest, with everything around its file */
	size_t answers; /* bytes of all unread answers together */
	const struct config_serve *limits;
	struct store *store;
	struct repeats *repeats;
	const struct http_calls *calls;
};

/* 0, or -1 with e. */
int http_open(struct http **out, const struct http_rules *rules, struct err *e);
void http_close(struct http *h);

/* Add a connected client (fd is taken). 0, or -1. */
int http_add_client(struct http *h, int fd);

/* End each connection behind its answer. */
void http_end_connections(struct http *h);

/* Accept no further clients. */
void http_drain(struct http *h);

/* True if no client waits for an answer. */
bool http_is_idle(const struct http *h);
size_t http_clients(const struct http *h);

/* Readable when http_turn() has something to do. Call that once a second
 * anyway.
 */
int http_fd(const struct http *h);

/* Serve all clients that are ready. */
void http_turn(struct http *h);

/* ---- one exchange ---- */

const char *http_method(const struct exchange *x);
const char *http_path(const struct exchange *x); /* without a query */

/* A field of the request's head; NULL: it has none. */
const char *http_field(const struct exchange *x, enum framing_field field);

bool http_has_body(const struct exchange *x);

/* In head(): keep the body; keep the file of a form's field `file`. */
void http_take_body(struct exchange *x);
void http_take_file(struct exchange *x);

/* The body that http_take_body() kept. For whole(). */
const struct strbuf *http_body(const struct exchange *x);

/* The file of the form (*file; NULL: none). On STORE_FINE the caller holds it
 * from now on; the name is borrowed. */
enum store_problem http_file(
	struct exchange *x, struct store_file **file, const char **name);

/* False: the file does not fit, and the request is not read to its end. */
bool http_is_whole(const struct exchange *x);

/* In whole(): the hash of the request, which has an Idempotency-Key. */
uint64_t http_hash(struct exchange *x);

/* Keep the answer. The exchange goes on without its client for serve.away. */
void http_set_repeat(struct exchange *x, struct repeat *e);

/* True if the answer is kept. The answer of a stream is kept if the stream can
 * be resumed. */
bool http_is_kept(const struct exchange *x);
void http_keep_place(struct exchange *x, const char *place);

/* How many whole requests of the same client are not over, this one included.
 */
size_t http_of_client(const struct exchange *x);
/* The client that sent the request, and, once it is known, its tenant. */
struct connections_peer http_peer(const struct exchange *x);
void http_set_peer(struct exchange *x, struct connections_peer peer);

/* The address or the user that sent the request, in words. */
const char *http_client(const struct exchange *x);

/* The caller's own pointer for an exchange. */
void http_set_own(struct exchange *x, void *own);
void *http_own(const struct exchange *x);

#define HTTP_JSON "application/json"

/* Answer with a body of that type (taken), or with a file (held meanwhile).
 * Headers are added before the answer; their names are borrowed. */
void http_add_header(struct exchange *x, const char *name, const char *value);
void http_answer(
	struct exchange *x, int status, const char *type, struct strbuf *body);
void http_answer_file(struct exchange *x, struct store_file *f);

/* Answer with a stream of `size` bytes, or of unknown length (-1). http_go_on()
 * says that more() has bytes now. */
void http_answer_stream(struct exchange *x, const char *type, int64_t size);
void http_go_on(struct exchange *x);

/* The span of the request. */
struct span *http_span(struct exchange *x);

/* The status of the answer, or 0 before; the reason phrase of a status. */
int http_status(const struct exchange *x);
const char *http_reason(int status);

/* ---- access.c ---- */

struct access;

/* Open the log that serve.log_to wants. Call before the process confines
 * itself. The rules are borrowed; serve.log may change. 0, or -1 with e
 * (ERR_CONFIG). */
int access_open(
	struct access **out, const struct config_serve *rules, struct err *e);

/* Write what waits, if that takes less than a second, and close the log. */
void access_close(struct access *a);

/* Log a request of a tenant (or NULL) that is over, if serve.log says so. */
void access_write(struct access *a, const struct span *r, const char *tenant);

/* Log what the server itself has to say, line by line. */
void access_say(struct access *a, bool bad, const char *words);

/* Write lines that wait, as many as can be written at once. Call it once a
 * second anyway. */
void access_flush(struct access *a);

/* How many lines were lost because the log could not take them. */
uint64_t access_lost(const struct access *a);

/* ---- metrics.c ---- */

#define METRICS_BOUNDS 12

/* Caller's storage, zero at first but for `all`; otherwise only metrics.c
 * writes it. */
struct metrics {
	struct metrics *all;  /* what is counted here counts there, too; or NULL
			       */
	uint64_t statuses[6]; /* 0xx to 5xx */
	uint64_t limits[LIMIT_OUTPUT + 1];
	uint64_t runs, failed, gone;
	uint64_t sessions, cells;
	uint64_t took[METRICS_BOUNDS + 1]; /* from request to answer */
	double seconds;
};

/* Figures of this moment. */
struct metrics_now {
	const struct pool_count *jails;
	struct store_count store;
	int64_t answers, answers_bytes; /* repeats_count() */
	unsigned long clients, running, waiting;
	unsigned long sessions, busy; /* serve a request */
	unsigned long long log_lost;
};

void metrics_answered(struct metrics *m, int status);
void metrics_ran(
	struct metrics *m, enum jail_limit limit, int failed, int64_t took_ns);
void metrics_gone(struct metrics *m);
void metrics_session(struct metrics *m);
void metrics_cell(struct metrics *m, enum jail_limit limit);

void metrics_print(struct strbuf *b, const struct tenants *t,
	const struct metrics_now *now);

/* Begin a figure: its full name, its type, and a sentence. */
void metrics_print_head(
	struct strbuf *b, const char *name, const char *type, const char *help);

/* ---- process.c ---- */

/* Caller's storage; only process.c writes it. */
struct process {
	int memory; /* -1: there is no /proc */
	DIR *descriptors;
	double start;
};

/* Open what process_print() reads. Call before the process confines itself. */
void process_open(struct process *p);
void process_close(struct process *p);
void process_print(struct strbuf *b, const struct process *p);

/* ---- traffic.c ---- */

#define TRAFFIC_BOUNDS 13
/* More than the table of paths has entries. */
#define TRAFFIC_ROWS 64

struct traffic_row {
	const char *method, *path; /* borrowed, compared by their addresses */
	uint64_t outcomes[SPAN_OUTCOMES];
	uint64_t took[TRAFFIC_BOUNDS + 1];
	double seconds;
	uint64_t cpu_ms, in, out;
};

/* Caller's storage, zero at first; only traffic.c writes it. */
struct traffic {
	struct traffic_row rows[TRAFFIC_ROWS];
	size_t n;
};

void traffic_count(struct traffic *t, const struct span *r);
void traffic_print(struct strbuf *b, const struct traffic *t);

/* ---- jobs.c ---- */

/* Most descriptors of a request that runs. */
#define JOBS_FDS 8

/* Borrowed. */
struct jobs_rules {
	const struct config *cfg;
	struct pool *pool;
	struct store *store;
	struct tenants *tenants;
	size_t npythons;
};

int jobs_open(struct jobs **out, const struct jobs_rules *rules);
void jobs_close(struct jobs *s);

/* Record limits that strike in this log (borrowed). */
void jobs_set_log(struct jobs *s, const struct log *log);

/* True if one more request may wait. */
bool jobs_have_room(const struct jobs *s);

/* Queue a request (taken, like its files; `stores`: of /v1/execute). jobs.c
 * answers the exchange when the request has run. -1: out of memory, nothing was
 * taken. */
int jobs_add(struct jobs *s, struct exchange *x, struct request *q,
	struct execute_files *files, bool stores);

/* Drop the job of a client that is gone. */
void jobs_cancel(struct jobs *s, struct exchange *x);

size_t jobs_running(const struct jobs *s);
size_t jobs_waiting(const struct jobs *s);

/* Fill in at most `max` entries to poll, and return how many; lower *timeout_ms
 * if a job is due before. jobs_turn() wants the same entries after poll(2). */
size_t jobs_polls(
	const struct jobs *s, struct pollfd *p, size_t max, int *timeout_ms);
void jobs_turn(struct jobs *s, const struct pollfd *p, size_t n);

/* Start the waiting requests for which there is a jail. */
void jobs_start(struct jobs *s);

/* ---- repeats.c ---- */

/* Longest Idempotency-Key. */
#define REPEATS_KEY_MAX 255

/* Caller's storage. Only repeats.c writes it. */
struct repeats_hash {
	uint64_t v[4], word, n;
};

enum repeats_found {
	REPEATS_NEW,	  /* the request may run */
	REPEATS_RUNS,	  /* the first one runs */
	REPEATS_ANSWERED, /* the first one has this answer */
	REPEATS_OTHER,	  /* the key is of another request */
	REPEATS_NO_MEMORY,
};

/* -1: out of memory. */
int repeats_open(struct repeats **out, const struct config_serve *rules);
void repeats_close(struct repeats *s);

/* Hash a request, piece by piece. */
void repeats_hash_begin(struct repeats_hash *h, const struct repeats *s);
void repeats_hash_add(struct repeats_hash *h, const void *buf, size_t n);
uint64_t repeats_hash_end(struct repeats_hash *h);

/* Find the request of this client with this key. Where there is none, note one
 * that runs: the caller calls repeats_answer() or repeats_forget() in the
 * end. */
enum repeats_found repeats_begin(struct repeats *s,
	struct connections_peer owner, const char *key, uint64_t hash,
	struct repeat **out);

/* Forget the request: nothing has run. */
void repeats_forget(struct repeat *e);

/* True if an answer of so many bytes is not too long to be kept. */
bool repeats_fits(const struct repeat *e, size_t n);

/* Keep a copy of the answer (`type` is borrowed for ever). */
void repeats_answer(struct repeat *e, int status, const char *type,
	const struct strbuf *body);

/* Keep where the answer is. */
void repeats_answer_elsewhere(struct repeat *e, const char *place);

/* The answer, or where it is (NULL: here); borrowed until the next call. */
const char *repeats_place(const struct repeat *e);
int repeats_status(const struct repeat *e, const char **type);
const struct strbuf *repeats_body(const struct repeat *e);

/* How many answers are kept, and how many bytes they are together. */
void repeats_count(const struct repeats *s, int64_t *n, int64_t *bytes);

/* Forget the answers that are older than serve.answers_keep. */
void repeats_sweep(struct repeats *s);

/* ---- operator.c ---- */

/* The server's control socket. Zero at first but for what is marked; otherwise
 * only operator.c writes it. */
struct operator
{
	struct control *control; /* (caller) or NULL */
	const char *address;	 /* (caller) the server's name */
	/* a request for the list, which waits for what sessions use */
	struct control_request asked;
	int64_t asked_ms; /* 0: there is none */
};

/* Serve the requests that have come. In how many milliseconds the next turn is
 * due at the latest; -1: when there is something new. */
int operator_turn(
	struct operator* o, struct sessions *s, const struct log *log);

/* ---- terms.c ---- */

/* Caller's storage; terms_fini(). */
struct terms {
	struct limits limits;
	char *metadata; /* JSON; NULL: none */
};

/* Parse and check a body, which may be empty. 0, or -1 with *why. The caller
 * calls terms_fini() and frees the description either way. */
int terms_parse(struct terms *t, const struct strbuf *body,
	const struct limits *most, struct request_refusal *why);

/* The same for the body that extends a session by *ms from now. */
int terms_parse_extension(
	int64_t *ms, const struct strbuf *body, struct request_refusal *why);
void terms_fini(struct terms *t);

/* Append the terms as keys of an object. */
void terms_add(struct strbuf *b, const struct terms *t);

/* ---- events.c ---- */

/* The stream of a cell. Zero at first; only events.c writes it. */
struct events {
	struct strbuf event;   /* the one that is given */
	size_t event_at, sent; /* bytes given of it, and of the output */
	size_t pictures;       /* pictures given */
	struct strbuf last;    /* the last event, once the cell is done */
	bool told;	       /* `last` was given */
	int64_t told_ms;       /* now_ms() of the last event */
	unsigned cell;	       /* is in the ids of events; 0: they have none */
};

/* Begin the stream of another cell. */
void events_begin(struct events *v, unsigned cell);
/* The client is gone: drop the event that was given in part. */
void events_pause(struct events *v);
/* Keep nothing of the last cell. */
void events_forget(struct events *v);

/* Add the last event, with this JSON. With `cut` no more output and no pictures
 * come before it. */
void events_end(
	struct events *v, const char *name, bool cut, const struct strbuf *b);

/* Copy at most `max` bytes more to `p`. `cells` (NULL: the session is over) has
 * the output. 0: not yet; -1: there are no more. */
ssize_t events_more(
	struct events *v, const struct cells *cells, char *p, size_t max);

/* True if there is output to give, or the client has heard nothing for long. */
bool events_are_due(const struct events *v, const struct cells *cells);

/* A place in the stream: so much of the output, and so many pictures, were
 * given. */
struct events_place {
	size_t sent, pictures;
};

/* Find the place behind the event with this id (NULL: the beginning). 1; 0:
 * that was the last one; -1: it is no id of this cell. */
int events_find(const struct events *v, const struct cells *cells,
	const char *id, struct events_place *place);

/* Go on from there. */
void events_go_on(struct events *v, const struct events_place *place);

/* ---- response.c ---- */

/* The answer of a session to the client that it serves. response_open(),
 * response_close(); only response.c writes it. */
struct response {
	struct exchange *exchange; /* NULL: the client is gone, or answered */
	bool begun;		   /* the stream has begun */
	bool resumable;		   /* another request may go on with it */
	struct events events;
	int file; /* or the bytes of this; -1: none */
	off_t file_at, file_size;
};

void response_open(struct response *p);
/* Keep nothing of the last one. */
void response_close(struct response *p);

/* A request has come; with `streams` its answer is a stream of events. */
void response_begin(struct response *p, struct exchange *x, bool streams);

/* Answer at once (body taken). */
void response_send(
	struct response *p, int status, const char *type, struct strbuf *b);

/* Refuse the request, if its client still waits, with {"detail": "WHAT:
 * WORDS"}, or only the words if `what` is "". 503: the client may ask again. */
void response_refuse(
	struct response *p, int status, const char *what, const char *words);

/* Begin the stream of the events of a cell of that session. */
void response_stream(struct response *p, const char *session, unsigned cell);

/* Give the stream its last event (taken): "done", or, with `cut`, "error" in
 * place of all others. */
void response_end(
	struct response *p, const char *name, bool cut, struct strbuf *b);

/* Answer with the bytes of a file (taken), unless it has more than `max`. */
void response_file(struct response *p, int fd, int64_t max);

/* For struct http_calls: write more of the stream. */
ssize_t response_more(
	struct response *p, const struct cells *cells, char *to, size_t max);

/* The client is gone; nobody will come back for the events. */
void response_lose(struct response *p);
void response_give_up(struct response *p);

/* True if there are events of a cell, which may still run. */
bool response_is_kept(const struct response *p, bool runs);

/* Answer the exchange with the events behind the one with this id (NULL: with
 * all). 1: it has taken the stream over; 0: it is answered; -1: the id is
 * wrong. */
int response_resume(struct response *p, const struct cells *cells,
	struct exchange *x, const char *id);

/* ---- sessions.c ---- */

/* Borrowed. */
struct sessions_rules {
	const struct config *cfg;
	struct pool *pool;
	struct tenants *tenants;
};

/* Call before the process confines itself. 0, or -1 with e. */
int sessions_open(struct sessions **out, const struct sessions_rules *rules,
	struct err *e);
void sessions_close(struct sessions *s);

/* Record limits that strike in this log (borrowed). */
void sessions_set_log(struct sessions *s, const struct log *log);

/* True if one more session may begin; how many the client has begun that are
 * not over. */
bool sessions_have_room(const struct sessions *s);
size_t sessions_of_client(
	const struct sessions *s, struct connections_peer who);

/* In how many milliseconds the first session is over at the earliest, of all or
 * of the client (NULL: of all): by session.idle or session.lifetime. */
int64_t sessions_wait_ms(
	const struct sessions *s, const struct connections_peer *who);

/* Append the states of the client's sessions that are not over, as a list. */
void sessions_add_list(struct strbuf *b, const struct sessions *s,
	struct connections_peer who);

/* Begin a session on these terms (taken), and answer the exchange with its id.
 * -1: out of memory, nothing was taken. */
int sessions_begin(struct sessions *s, struct exchange *x, struct terms *t);

/* The limits of a session. Let it live for so many milliseconds from now, if
 * that is longer; -1: the configured lifetime is over before. */
const struct limits *sessions_limits(const struct http_session *se);
int sessions_extend(
	const struct sessions *s, struct http_session *se, int64_t ms);

/* The session that this path names behind /v1/sessions/; NULL: this client may
 * have none of that id. */
struct http_session *sessions_find(const struct sessions *s, const char *path,
	struct connections_peer who);

/* Why the session is over, or NULL; true if it serves a request. */
const char *sessions_why_over(const struct http_session *se);
bool sessions_is_busy(const struct http_session *se);

/* Append the session's state as JSON. */
void sessions_add_state(struct strbuf *b, const struct http_session *se);

/* Serve this request (taken) in a session that is neither over nor busy, and
 * answer the exchange. */
void sessions_serve(struct sessions *s, struct http_session *se,
	struct exchange *x, struct request *q);

/* Interrupt the request that the session serves. The answer to that request
 * says so. */
void sessions_interrupt(struct http_session *se);

/* End a session; `why` is for the client that waits. Clients cannot find it
 * from now on. */
void sessions_end(struct sessions *s, struct http_session *se, const char *why);

/* End the sessions of tenants that are gone. */
void sessions_sweep(struct sessions *s);

/* Answer the exchange with the events of a cell behind the one with this id
 * (NULL: with all of them). -1: the id is wrong; 0: the session does not keep
 * the events of that cell. */
int sessions_resume(struct http_session *se, struct exchange *x, unsigned cell,
	const char *id);

/* End the session of this number, and tell its client why from now on. False:
 * there is none. */
bool sessions_stop(struct sessions *s, int number, const char *why);

/* The next session that is not over and has a jail: after `se`, or the first
 * (NULL). */
const struct http_session *sessions_next(
	const struct sessions *s, const struct http_session *se);

/* A session, as `cellblock --sessions` shows it. */
struct sessions_told {
	int number;		     /* from 1 on, and never used again */
	const char *client;	     /* who began it, in words; borrowed */
	int64_t born_ms, touched_ms; /* now_ms() */
	uint32_t cells;
	bool runs;		 /* a cell */
	struct jail_usage usage; /* as it was last told */
};

void sessions_tell(const struct http_session *se, struct sessions_told *t);

/* Ask every session what it uses; true while one has not told. */
void sessions_ask_usage(struct sessions *s);
bool sessions_usage_is_due(const struct sessions *s);

/* For struct http_calls: write more of a stream; forget an exchange that is
 * over (true: a session served it). */
ssize_t sessions_more(struct exchange *x, char *p, size_t max);
bool sessions_cancel(struct sessions *s, struct exchange *x);

/* How many sessions are not over; how many serve a request. */
size_t sessions_count(const struct sessions *s);
size_t sessions_busy(const struct sessions *s);

/* As jobs_polls() and jobs_turn(). sessions_most_polls() is a `max` that is
 * enough for all sessions. */
size_t sessions_most_polls(const struct sessions *s);
size_t sessions_polls(const struct sessions *s, struct pollfd *p, size_t max,
	int *timeout_ms);
void sessions_turn(struct sessions *s, const struct pollfd *p, size_t n);

/* Start the waiting requests for which there is a jail. */
void sessions_start(struct sessions *s);

/* ---- tenants.c ---- */

/* NULL: out of memory. Until tenants_set() requests need no token. */
struct tenants *tenants_open(void);
void tenants_close(struct tenants *t);

/* Take tokens (taken) in place of the earlier. A name that has a token before
 * and after stays the same tenant. -1: out of memory, nothing changes. */
int tenants_set(struct tenants *t, struct tokens *tokens);

/* True if clients need a token. */
bool tenants_ask(const struct tenants *t);

/* True if a request with this Authorization (or NULL) is allowed. *who becomes
 * the tenant, if the token has a name. */
bool tenants_admit(const struct tenants *t, const char *authorization,
	struct connections_peer *who);

/* True if the token of this client is for reading the figures alone. */
bool tenants_is_reader(const struct tenants *t, struct connections_peer who);

/* True if nobody can ask for the files and sessions of this client any more. */
bool tenants_is_gone(const struct tenants *t, struct connections_peer who);

/* The name of the tenant that the client is; or NULL. */
const char *tenants_name(const struct tenants *t, struct connections_peer who);

/* The figures of a client: its tenant's, or those of all. */
struct metrics *tenants_metrics(struct tenants *t, struct connections_peer who);
const struct metrics *tenants_all(const struct tenants *t);

/* The figures and the name of the i-th tenant; NULL: there are fewer. */
const struct metrics *tenants_each(
	const struct tenants *t, size_t i, const char **name);

#endif
