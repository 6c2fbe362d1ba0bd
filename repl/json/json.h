/* SPDX-License-Identifier: MIT */
/*
 * json.h - programs that speak JSON: requests, answers, the cells between
 *
 *	answer.c	what became of a request, in JSON
 *	attach.c	files of the home that go into an answer
 *	capture.c	what a program writes, as far as an answer has it
 *	report.c	what the driver reports of a request: request.py
 *	cells.c		a session for requests: cells, undo, reset, files
 *	put.c		files of a request into the home
 *	pythons.c	the interpreters that a request may name
 *	eval.c		cellblock --eval: requests from standard input, answers
 *			to standard output
 *	emit.c		JSON, as everything here writes it
 *	fields.c	the fields of requests, in tables
 *	outcome.c	what a request of a session is answered
 *	python.c	JSON values as Python has them
 *	request.c	one JSON request: two forms, checked in every field
 *	run.c		one request in one jail
 *	stream.c	requests, one after the other, from a descriptor
 */
#ifndef REPL_JSON_JSON_H
#define REPL_JSON_JSON_H

#include "jail/base/err.h"
#include "jail/jail.h"
#include "jail/spec.h"
#include "repl/drive/drive.h"
#include "repl/session/session.h"
#include "repl/text/text.h"

#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct attach;
struct attach_store;
struct cells;
struct jail;
struct pool;
struct report;
struct request;
struct run;

/* ---- answer.c ---- */

/* How an answer came about. */
enum answer_kind {
	ANSWER_RAN,	/* the program ran */
	ANSWER_REFUSED, /* the request was not in order, nothing ran */
	ANSWER_FAILED,	/* the jail failed */
};

/* Append the answer to a request that was run, a JSON object without a line
 * end. With `store` (and `code`), files are stored instead of contained. */
enum answer_kind answer_add(
	struct strbuf *b, struct run *r, const struct attach_store *store);

/* The same bit by bit, for who has others to serve: it is there when
 * answer_turn() says true. All that is given is borrowed until then. */
struct answer {
	struct strbuf *b;
	struct run *run;
	size_t before;
	struct attach *files; /* NULL: done */
};

enum answer_kind answer_begin(struct answer *a, struct strbuf *b, struct run *r,
	const struct attach_store *store);
bool answer_turn(struct answer *a);

/* As long as it is not: in how many milliseconds the next turn is due; when
 * *fd (-1: none) can be read, it is due at once. */
int answer_timeout_ms(const struct answer *a, int *fd);
void answer_fini(struct answer *a);

/* Append "limit", with a comma behind it: which limit struck (LIMIT_NONE:
 * null), in words, and who set it. */
void answer_add_limit(struct strbuf *b, const struct request *q,
	enum jail_limit limit, const struct config *cfg);

/* Append "images", with a comma behind it: the pictures of a report. */
void answer_add_pictures(struct strbuf *b, const struct report *r);

/* Append {"title", "description"}. */
void answer_add_refusal(
	struct strbuf *b, const char *title, const char *description, size_t n);

/* A program's output as snekbox has it: every line ends with one line feed. The
 * new length. It may come in pieces: *last, 0 at first, leads from one to the
 * next. */
size_t answer_unify_lines(char *s, size_t n, char *last);

/* ---- attach.c ---- */

/* A store for files. put() appends a file's id (JSON), or says why not: then
 * forget() is called, and what was put before is in no answer. */
struct attach_store {
	const char *(*put)(void *arg, struct strbuf *b, const char *path,
		int fd, int64_t size);
	void (*forget)(void *arg);
	void *arg;
};

/* Which files. Borrowed. */
struct attach_rules {
	const struct limits *limits;
	const char *pattern;	     /* files.pattern, for transfer_matches() */
	const struct put_file *sent; /* left out unless they changed */
	size_t nsent;
	const struct attach_store *store; /* or NULL */
	bool empty;			  /* there is nothing in the home */
};

/* Append `{"path", "size", "content"}`, or with a store `{"path", "size",
 * "file_id"}`, of each file, with commas between; `kind` adds "kind". NULL; or
 * why there are none, in snekbox's words. */
const char *attach_files(struct strbuf *b, struct drive *d,
	const struct attach_rules *rules, bool kind);

/* The same bit by bit, for who has others to serve: true when it is done, and
 * *why as above. attach_begin() may return NULL: there is no memory. The home
 * is listed for it; for attach_files() it has been (d->files, which are taken).
 */
struct attach *attach_begin(struct strbuf *b, struct drive *d,
	const struct attach_rules *rules, bool kind);
bool attach_turn(struct attach *a, const char **why);

/* In how many milliseconds the next turn is due; when *fd (-1: none) can be
 * read, it is due at once. */
int attach_timeout_ms(const struct attach *a, int *fd);
void attach_close(struct attach *a);

/* ---- capture.c ---- */

/* Caller's storage; only capture.c writes it. */
struct capture {
	int fd; /* owned; -1: closed */
	struct strbuf text;
	uint64_t max; /* bytes kept; as snekbox counts them with `counts` */
	bool counts;
	bool cut;	       /* there was more */
	uint64_t chunks;       /* what snekbox counts for earlier chunks */
	unsigned chars, width; /* of the chunk that is not full yet */
};

/* Begin with a pipe (taken), of which `max` bytes are kept. */
void capture_open(struct capture *c, int fd, uint64_t max, bool counts);
void capture_close(struct capture *c);

/* poll(2) found it ready: take what is there; closes it at its end. */
void capture_read(struct capture *c);

/* The last writer is gone: take the rest, and close it. */
void capture_finish(struct capture *c);

/* ---- report.c ---- */

/* Most pictures of an answer, and most bytes of a text: parsed, JSON takes
 * fifty times its bytes. */
#define REPORT_PICTURES 20
#define REPORT_TEXT_MAX 1000000

/* Bytes within the report. */
struct report_piece {
	const char *p; /* NULL: there is none */
	size_t n;
};

struct report {
	struct report_piece type, json, repr;
	struct report_piece png[REPORT_PICTURES];
	size_t npng;
};

/* Parse a report, up to the first byte that cannot be part of one. */
void report_parse(struct report *r, const char *s, size_t n);

/* ---- cells.c ---- */

/*
 * One request at a time: cells_begin(), then cells_turn() whenever a descriptor
 * of cells_polls() is ready or its time has come, until cells_is_done(); then
 * its answer is added (outcome.c). None of them waits for a cell, for Python,
 * or for what the warden does meanwhile.
 */

/* Begin with a session (borrowed, as all else). Its Python may still start: the
 * skeleton goes into its home then. With `stays`, exit() ends a cell and not
 * the session. 0, or -1 with e. */
int cells_open(struct cells **out, struct jail *j, const struct config *cfg,
	struct log *log, bool stays, struct err *e);
void cells_close(struct cells *c);

/* True if Python answers: only then may a request begin other than
 * REQUEST_SESSION, which waits for that. */
bool cells_is_up(const struct cells *c);

/* True if the session has ended. Every request is refused then. And why, if it
 * failed: an empty message otherwise. */
bool cells_is_over(const struct cells *c);
const struct err *cells_error(const struct cells *c);

/* Why, if it has. */
const char *cells_why_over(struct cells *c);

/* Begin to serve a request of a session (borrowed until it is done). */
void cells_begin(struct cells *c, const struct request *q);

/* The same for a client's own request: policy.commands may forbid it. */
void cells_ask(struct cells *c, const struct request *q);
bool cells_is_forbidden(const struct cells *c);

/* Fill in descriptors to poll, also between requests. In how many milliseconds
 * cells_turn() is due at the latest, or -1. */
#define CELLS_POLLS 3
int cells_polls(const struct cells *c, struct pollfd *p);
void cells_turn(struct cells *c, const struct pollfd *p);
bool cells_is_done(const struct cells *c);

/* The three for who has nothing else to wait for. */
void cells_wait(struct cells *c);

/* Interrupt the cell that runs. It is killed when it does not end within
 * cell.grace, or at the second time. Other requests are hurried. */
void cells_interrupt(struct cells *c);

/* Output of the cell so far, as plain text. Borrowed until the next turn. */
const char *cells_output(const struct cells *c, size_t *n);

/* True if it runs: before, there can still be a refusal. */
bool cells_has_begun(const struct cells *c);

/* REQUEST_LIST, REQUEST_READ that is done: the files of the home. */
const struct jail_files *cells_files(const struct cells *c);

/* REQUEST_OPEN that is done: the file, for the caller; -1: none. */
int cells_take_file(struct cells *c);

/* Why the request that is done was refused; NULL: it was not. *title (which may
 * be NULL): the same in short. And refuse one that is about files. */
const char *cells_refusal(const struct cells *c, const char **title);
void cells_refuse_files(struct cells *c, const char *why);

/* How many cells have run, and what runs them: "3.11.2". */
unsigned cells_count(const struct cells *c);
const char *cells_python(const struct cells *c);

/* The cell that is done: how it ended; the verdict; its pictures, which are
 * only what the guest says. */
const struct jail_done *cells_done(const struct cells *c);
const struct jail_undone *cells_undone(const struct cells *c);
const char *cells_verdict(const struct cells *c);
void cells_report(const struct cells *c, struct report *r);

/* The request that the answer is about; true if it was served, and the session
 * did not break before. Notices since the last answer are told once;
 * cells_told() has those of the last answer. Borrowed until the next. */
const struct request *cells_request(const struct cells *c);
const struct config *cells_config(const struct cells *c);
struct drive *cells_drive(struct cells *c);
bool cells_has_outcome(const struct cells *c);
const struct strlist *cells_tell_notices(struct cells *c);
const struct strlist *cells_told(const struct cells *c);

/* Forget what the request that is done showed, where that is much: nobody will
 * ask any more. */
void cells_rest(struct cells *c);

/* Have the next answer say so, beside what the warden notices. */
void cells_note(struct cells *c, const char *text);

/* ---- pythons.c ---- */

/* Most interpreters of a configuration. */
#define PYTHONS_MAX 64

/* Caller's storage; pythons_free(). */
struct pythons {
	const char *v[PYTHONS_MAX];	   /* to start; borrowed */
	const char *resolved[PYTHONS_MAX]; /* without links; owned */
	size_t n;
};

/* The one of `spec`, then those configured. 0, or -1 with e. */
int pythons_find(struct pythons *p, const struct jail_spec *spec,
	const struct config *cfg, struct err *e);

void pythons_free(struct pythons *p);

/* ---- eval.c ---- */

/* State of --eval. Caller's storage. */
struct eval {
	const struct config *cfg; /* borrowed */
	struct pool *pool;
	struct log *log;	  /* borrowed */
	struct setup_slots slots; /* where a session is counted */
	struct pythons pythons;
	enum spec_mode mode; /* what the last request ran in */
};

/* Get ready, before it is confined: fork the maker. `spec` is that of the
 * default interpreter. 0, or -1 with e. */
int eval_open(struct eval *ev, const struct config *cfg,
	const struct jail_spec *spec, struct err *e);

/* Serve all requests. The exit status: 0; 2 when one was not in order; or -1
 * with e, when no session could be made or no answer written. */
int eval_run(struct eval *ev, struct err *e);

/* End every session, and wait until it is gone. -1 with e when something may
 * be left. */
int eval_close(struct eval *ev, struct err *e);

/* ---- emit.c ---- */

/*
 * Append a member of an object or, with `key` NULL, an item of a list, behind a
 * comma where something stands before it. Keys are static and need no escapes.
 * All text is ASCII and can be shown on a terminal; bytes that are no character
 * become U+FFFD.
 */
void emit_key(struct strbuf *b, const char *key); /* a value must follow */
void emit_open(struct strbuf *b, const char *key, char bracket);
void emit_close(struct strbuf *b, char bracket);
void emit_bytes(struct strbuf *b, const char *key, const char *s, size_t n);
void emit_text(struct strbuf *b, const char *key, const char *s); /* or NULL */
void emit_texts(struct strbuf *b, const char *key, const struct strlist *l);
void emit_word(struct strbuf *b, const char *key, const char *word);
void emit_bool(struct strbuf *b, const char *key, bool v);
void emit_int(struct strbuf *b, const char *key, int64_t v);
void emit_int_or_null(struct strbuf *b, const char *key, bool known, int64_t v);
void emit_base64(
	struct strbuf *b, const char *key, const void *bytes, size_t n);
void emit_value(struct strbuf *b, const char *key, const json_t *v);

/* True if these bytes are characters. */
bool emit_is_text(const char *s, size_t n);

/* ---- fields.c ---- */

/* A field of a request. tools/fields makes the tables from fields.txt. */
struct request_field {
	const char *name; /* NULL: the end of the table */
	const char *type; /* in words: "integer" */
	unsigned types;	  /* 1 << json_type, each that it may have */
	bool required;
	int64_t least, most; /* of an integer */
	int64_t fallback;    /* where it is missing; 0: nothing is told */
};

extern const struct request_field fields_snekbox_request[],
	fields_code_request[], fields_cell_request[], fields_execute_request[],
	fields_undo_request[], fields_stored_file[];

/* The field of that name, or NULL. */
const struct request_field *fields_find(
	const struct request_field *table, const char *name);

/* True if the value has one of the field's types. */
bool fields_takes(const struct request_field *f, const json_t *v);

/* ---- outcome.c ---- */

/* Begin the object of an entry of the home, of a type as in struct jail_file.
 * emit_close() ends it. */
void outcome_begin_file(
	struct strbuf *b, const char *path, char type, int64_t size);

/* Append the members of the answer to the request that is done; pictures are
 * left out unless `pictures`. Nothing, unless it is ANSWER_RAN: cells_refusal()
 * says why. ANSWER_FAILED with e: the session broke. */
enum answer_kind outcome_add(
	struct strbuf *b, struct cells *c, bool pictures, struct err *e);

/* ---- put.c ---- */

/* A file that was put into the home. */
struct put_file {
	const char *path; /* borrowed from the request */
	struct timespec mtime;
};

/* Caller's storage, zeroed at first; put_fini(). */
struct put {
	struct put_file *files; /* owned */
	size_t n;		/* of them */
	size_t at;		/* of the request's files */
	char message[1200];	/* PUT_REFUSED, as snekbox has it */
	struct err err;		/* PUT_LOST */
};

/* 0 is no success. */
enum put_turn {
	PUT_LOST,    /* the jail failed */
	PUT_REFUSED, /* a file cannot be there */
	PUT_MORE,    /* call it again */
	PUT_ALL,
};

/* Put the files of the request, some at a time, so that others have their turn:
 * one at least. */
__attribute__((warn_unused_result)) enum put_turn put_files(
	struct put *p, struct jail *j, const struct request *q);
void put_fini(struct put *p);

/* Before that: the files of the skeleton. */
void put_skeleton(struct jail *j, const struct config *cfg);

/* ---- python.c ---- */

/* Append what Python's repr() says of the value. It may end anywhere once there
 * is more text than this. */
#define PYTHON_REPR_MAX 65536
void python_repr(struct strbuf *b, const json_t *v);
void python_repr_text(struct strbuf *b, const char *s, size_t n);

/* Append the value as marshal.loads() reads it, in every Python 3. */
void python_marshal(struct strbuf *b, const json_t *v);

/* Append the head of a tuple of `n` values, which follow; and bytes. */
void python_marshal_tuple(struct strbuf *b, int n);
void python_marshal_bytes(struct strbuf *b, const void *p, size_t n);

/* ---- request.c ---- */

/*
 * docs/JSON.md has every field. We check a whole request before we act on any
 * part of it.
 */

/* Deepest nesting of a request, and most values in it. */
#define REQUEST_DEPTH_MAX 200
#define REQUEST_VALUES_MAX 1000000
#define REQUEST_KEYS_MAX 250000

enum request_form {
	REQUEST_SNEKBOX, /* `input`, `args` */
	REQUEST_OURS,	 /* `code` */
	REQUEST_SESSION, /* `session`: true */
	/* in a session */
	REQUEST_CELL,	/* `code` */
	REQUEST_UNDO,	/* `undo` */
	REQUEST_RESET,	/* `reset` */
	REQUEST_READ,	/* `read` */
	REQUEST_LIST,	/* names of files */
	REQUEST_OPEN,	/* the file `path` */
	REQUEST_WRITE,	/* `files` */
	REQUEST_REMOVE, /* the file or directory `path` */
};

struct request_file {
	const char *path; /* as it was sent; borrowed */
	char *clean;	  /* in the home, without "..": owned */
	char *content;	  /* owned */
	int fd;		  /* instead of it; borrowed; -1: none */
	size_t n;
};

struct request {
	enum request_form form;
	json_t *root; /* owned; the rest borrows from it */
	struct request_file *files;
	size_t nfiles;
	/* REQUEST_SNEKBOX */
	const char **args; /* ends with NULL; owned */
	bool has_nul;	   /* an argument holds a NUL: it cannot be passed */
	size_t python;	   /* index of the interpreter */
	/* REQUEST_OURS */
	struct strbuf source; /* for request.py */
	const char *input;    /* standard input */
	size_t input_n;
	int64_t timeout_ms;
	/* REQUEST_CELL, with the three above */
	const char *code;
	size_t code_n;
	bool streams; /* its output is told meanwhile, not in the answer */
	/* REQUEST_UNDO */
	int undo;
	/* REQUEST_READ */
	const char *pattern;
	/* REQUEST_OPEN, REQUEST_REMOVE */
	const char *path;
};

/* Rules for checking a request. Borrowed. */
struct request_rules {
	const struct limits *limits;
	int64_t most_ms;	     /* timeout_ms of /v1/execute at most */
	const char *const *pythons;  /* as configured */
	const char *const *resolved; /* the same without links */
	size_t npythons;
	bool locked;  /* nothing else of the host may be found out */
	bool session; /* the stream has a session */
};

/* Why a request is refused: words for {"title", "description"}. */
struct request_refusal {
	const char *title; /* static */
	struct strbuf description;
};

/* True if a text is nested deeper, or has more values or keys, than a request
 * may. To read a key takes several times as long as to read a number. */
bool request_is_deep(const char *text, size_t n);

/* Parse and check `n` bytes. 0, or -1 with *why. The caller ends with
 * request_fini() and frees the description either way. */
int request_parse(struct request *r, const char *text, size_t n,
	const struct request_rules *rules, struct request_refusal *why);

/* The same for a request that was parsed already (`root` is taken); outside of
 * a session one with `code`, whose files come with request_add_file(). */
int request_take(struct request *r, json_t *root,
	const struct request_rules *rules, struct request_refusal *why);

/* Add a file of `n` bytes; `path` and `fd` are borrowed. */
int request_add_file(struct request *r, const char *path, int fd, size_t n,
	const struct request_rules *rules, struct request_refusal *why);

/* The same with these bytes, copied, as the path is; and as r->path. */
int request_add_content(struct request *r, const char *path, const char *p,
	size_t n, const struct request_rules *rules,
	struct request_refusal *why);

void request_fini(struct request *r);

/* Refuse: record why. Returns -1. */
int request_refuse(struct request_refusal *why, const char *title,
	const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* ---- run.c ---- */

/* 0 is no success: what nobody has set says that it failed. */
enum run_how {
	RUN_FAILED,  /* the jail failed: `err` */
	RUN_NOTHING, /* nothing was run: `message` */
	RUN_CUT,     /* ended for its output (snekbox) */
	RUN_ENDED,   /* `program` */
};

/* Caller's storage, which stays where it is; run_fini(). */
struct run {
	struct drive drive;
	const struct request *request; /* borrowed */
	enum run_how how;
	struct capture out, err_out, report;
	struct put put;
	const char *message; /* RUN_NOTHING */
	struct err err;
	uint64_t max, report_max; /* bytes kept */
	bool gone;		  /* the program is over */
	bool asked;		  /* the request was handed over */
	bool puts;		  /* its files are being put */
	int64_t due_ms;		  /* the warden must have spoken */
	bool lost;		  /* run_is_lost() */
	int turns;		  /* how often its pipes were served, */
	int64_t rest_ms;	  /* and when they are served again */
	int in;			  /* the program's standard input; -1: closed */
	size_t in_at;
};

/* Most bytes kept of each stream. */
#define RUN_OUTPUT_MAX 1000000

/* Begin to run the request. `j` is a session of run_mode(), which may still be
 * building, and whose home can be read afterwards unless r->how is
 * RUN_FAILED. All is borrowed until run_fini(), which may come at any time. */
void run_begin(struct run *r, struct jail *j, const struct request *q,
	const struct config *cfg);

/* The same when there is no jail to run it in. */
void run_fail(struct run *r, const struct request *q, const struct err *e);

bool run_is_over(const struct run *r);

/* The kind of session that a request wants. */
enum spec_mode run_mode(const struct request *q);

/* True if its jail failed before it had the request: in another the request
 * does not run twice. So many are tried. */
#define RUN_TRIES 8
bool run_is_lost(const struct run *r);

/* Until then: poll these RUN_POLLS, so long at most, and hand them over. */
#define RUN_POLLS 5
void run_polls(const struct run *r, struct pollfd *p);
int run_timeout_ms(const struct run *r);
void run_turn(struct run *r, const struct pollfd *p);

/* The same for who has nothing else to wait for. */
void run_wait(struct run *r);

void run_fini(struct run *r);

/* ---- stream.c ---- */

/*
 * A request ends with the line on which its brackets close. A line without a
 * bracket is a request of its own.
 */

/* Caller's storage; only stream.c writes it. */
struct stream {
	int fd;		 /* borrowed */
	size_t max;	 /* longest request that is kept */
	int depth_max;	 /* deepest nesting */
	int values_max;	 /* most values */
	bool lines;	 /* a request is a line, whatever it holds */
	char *buf;	 /* owned */
	size_t n, room;	 /* bytes that were read */
	size_t at, used; /* up to here looked at; taken by earlier requests */
	int depth, values;
	int found;	    /* values of the last request */
	bool text, escaped; /* within a string, after a backslash */
	bool something;	    /* a character that is no blank */
	bool long_;	    /* what is wrong with it */
	bool too_deep;
	bool ended;
};

enum stream_next {
	STREAM_END,	/* no more */
	STREAM_REQUEST, /* *text, *n: borrowed until the next call */
	STREAM_LONG,	/* one that is too long was passed over */
	STREAM_DEEP,	/* one that is nested too deep */
	STREAM_MANY,	/* one with too many values */
	STREAM_MORE,	/* (stream_try) none yet: stream_read() first */
	STREAM_FAILED,	/* errno */
};

void stream_open(
	struct stream *s, int fd, size_t max, int depth_max, int values_max);
void stream_close(struct stream *s);

/* True if stream_next() would have to read first. */
bool stream_is_empty(const struct stream *s);

/* True if another request may come, as far as can be said without waiting. This
 * ends the validity of the text that stream_next() gave. */
bool stream_may_go_on(struct stream *s);

/* Read what is there, or wait until something is. 0, or -1 with errno. */
int stream_read(struct stream *s);

/* The next request of what was read. */
enum stream_next stream_try(struct stream *s, const char **text, size_t *n);

/* The next request; blocks until there is one. */
enum stream_next stream_next(struct stream *s, const char **text, size_t *n);

#endif
