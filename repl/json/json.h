/* SPDX-License-Identifier: MIT */
/*
 * json.h - programs that speak JSON: requests, answers, the cells between
 *
 *	answer.c	the answer to a request, in JSON
 *	attach.c	files of the home that go into an answer
 *	bundle.c	a value in all the forms that it offers to Jupyter
 *	capture.c	a program's output, as much as an answer has of it
 *	report.c	the driver's report on a request: request.py
 *	cells.c		a session for requests: cells, undo, reset, files
 *	put.c		files of a request into the home
 *	pythons.c	the interpreters that a request may name
 *	eval.c		cellblock --eval: requests from standard input, answers
 *			to standard output
 *	emit.c		writing JSON
 *	fields.c	the fields of requests, in tables
 *	outcome.c	the answer to a request of a session
 *	python.c	JSON values as repr() and as marshal
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
	ANSWER_REFUSED, /* the request was invalid, nothing ran */
	ANSWER_FAILED,	/* the jail failed */
};

/* Append the answer to a request that was run, a JSON object without a line
 * end. With `store` (and `code`) the answer has the ids of files instead of
 * their content. */
enum answer_kind answer_add(
	struct strbuf *b, struct run *r, const struct attach_store *store);

/* The same in steps, for a caller that serves other requests, too. The answer
 * is whole when answer_turn() returns true. All arguments are borrowed until
 * then. */
struct answer {
	struct strbuf *b;
	struct run *run;
	size_t before;
	struct attach *files; /* NULL: done */
};

enum answer_kind answer_begin(struct answer *a, struct strbuf *b, struct run *r,
	const struct attach_store *store);
bool answer_turn(struct answer *a);

/* Before that: in how many milliseconds the next turn is due. If *fd (-1: none)
 * can be read, the turn is due at once. */
int answer_timeout_ms(const struct answer *a, int *fd);
void answer_fini(struct answer *a);

/* Append "limit": which limit struck (LIMIT_NONE: null), in words, and who set
 * it. */
void answer_add_limit(struct strbuf *b, const struct request *q,
	enum jail_limit limit, const struct drive *d);

/* Append "images": the pictures of a report. */
void answer_add_pictures(struct strbuf *b, const struct report *r);

/* Append {"title", "description"}. */
void answer_add_refusal(
	struct strbuf *b, const char *title, const char *description, size_t n);

/* Change every line end of a program's output to one line feed, in place, as
 * snekbox does. Returns the new length. The output may come in pieces: *last, 0
 * at first, carries over from one to the next. */
size_t answer_unify_lines(char *s, size_t n, char *last);

/* ---- attach.c ---- */

/* A store for files. put() appends a file's id (JSON) and returns NULL, or
 * returns why it cannot. attach.c calls forget() when no answer names the files
 * that were put. */
struct attach_store {
	const char *(*put)(void *arg, struct strbuf *b, const char *path,
		int fd, int64_t size);
	void (*forget)(void *arg);
	void *arg;
};

/* Rules for which files to attach. Borrowed. */
struct attach_rules {
	const struct limits *limits;
	const char *pattern;	     /* for transfer_matches(); NULL: all */
	const struct put_file *sent; /* left out unless they changed */
	size_t nsent;
	const struct attach_store *store; /* or NULL */
	bool empty;			  /* the home is empty */
};

/* Append `{"path", "size", "content", "kind"}`, or with a store "file_id" in
 * place of the content, of each file, with commas between. NULL; or why no
 * files are appended, in snekbox's words. The files of d->files are taken: the
 * home was listed before. */
const char *attach_files(
	struct strbuf *b, struct drive *d, const struct attach_rules *rules);

/* The same in steps, for a caller that serves other requests, too. Without
 * `kind` no file has the key "kind". attach_begin() returns NULL when out of
 * memory. attach_turn() has the home listed; it returns true at the end, with
 * *why as above. */
struct attach *attach_begin(struct strbuf *b, struct drive *d,
	const struct attach_rules *rules, bool kind);
bool attach_turn(struct attach *a, const char **why);

/* At the end: which files are left out, and why, as a text in `buf`; NULL:
 * none.
 */
const char *attach_left_out(const struct attach *a, char *buf, size_t size);

/* In how many milliseconds the next turn is due. If *fd (-1: none) can be read,
 * the turn is due at once. */
int attach_timeout_ms(const struct attach *a, int *fd);
void attach_close(struct attach *a);

/* ---- bundle.c ---- */

/* Append "bundle": {TYPE: content}, or null. */
void bundle_add(struct strbuf *b, const struct report *r);

/* Append to the list why forms were left out, as the guest says. */
void bundle_list_notes(struct strlist *l, const struct report *r);

/* ---- capture.c ---- */

/* Most bytes of a report: the value of a cell, and all its pictures. */
#define REPORT_BYTES (16 << 20)

/* Caller's storage; only capture.c writes it. */
struct capture {
	int fd; /* owned; -1: closed */
	struct strbuf text;
	uint64_t max; /* bytes kept; as snekbox counts them with `counts` */
	bool counts;
	bool cut;	       /* there was more */
	uint64_t chunks;       /* snekbox's count for earlier chunks */
	unsigned chars, width; /* of the chunk that is not full yet */
};

/* Begin with a pipe (taken), of which `max` bytes are kept. */
void capture_open(struct capture *c, int fd, uint64_t max, bool counts);
void capture_close(struct capture *c);

/* poll(2) found the pipe ready: read from it. Closes the pipe at its end. */
void capture_read(struct capture *c);

/* The last writer is gone: read the rest, and close the pipe. */
void capture_finish(struct capture *c);

/* ---- report.c ---- */

/* Most pictures of an answer, and most bytes of a text: parsed, JSON takes
 * fifty times its bytes. */
#define REPORT_PICTURES 20
#define REPORT_TEXT_MAX 1000000
/* Most forms of a value, bytes of all of them, and notes on such that failed.
 */
#define REPORT_FORMS 16
#define REPORT_FORMS_BYTES (4 << 20)
#define REPORT_NOTES 16

/* Bytes within the report. */
struct report_piece {
	const char *p; /* NULL: there is none */
	size_t n;
};

struct report {
	struct report_piece type, json, repr;
	struct report_piece png[REPORT_PICTURES];
	struct report_piece forms[REPORT_FORMS], notes[REPORT_NOTES];
	size_t npng, nforms, nnotes;
	size_t forms_bytes;
};

/* Parse a report, up to the first byte that cannot be part of one. */
void report_parse(struct report *r, const char *s, size_t n);

/* ---- cells.c ---- */

/*
 * One request at a time: cells_begin(), then cells_turn() whenever a descriptor
 * of cells_polls() is ready or the time is up, until cells_is_done(); then
 * outcome_add() makes the answer. None of these functions waits for a cell, for
 * Python, or for the warden.
 */

/* Begin with a session (borrowed, as all else). If its Python still starts, the
 * skeleton goes into the home when Python is up. With `stays`, exit() ends a
 * cell and not the session. 0, or -1 with e. */
int cells_open(struct cells **out, struct jail *j, const struct config *cfg,
	struct log *log, bool stays, struct err *e);
void cells_close(struct cells *c);

/* Lower session.memory and home.size of the session to these (borrowed), before
 * it begins its REQUEST_SESSION, which is refused where they are too small for
 * the Python that is up. */
void cells_lower(struct cells *c, const struct limits *l);

/* True if Python is up. Before that only REQUEST_SESSION may begin, which waits
 * for Python. */
bool cells_is_up(const struct cells *c);

/* True if the session has ended: every request is refused from then on. The
 * error that ended it; its message is empty if none did. */
bool cells_is_over(const struct cells *c);
const struct err *cells_error(const struct cells *c);

/* Why the session has ended, in words. */
const char *cells_why_over(struct cells *c);

/* Begin to serve a request of a session (borrowed until it is done). */
void cells_begin(struct cells *c, const struct request *q);

/* The same for a client's own request. policy.commands may forbid that: the
 * request is refused. */
void cells_ask(struct cells *c, const struct request *q);
bool cells_is_forbidden(const struct cells *c);

/* Fill in CELLS_POLLS entries to poll, also between requests. Returns in how
 * many milliseconds cells_turn() is due at the latest, or -1. */
#define CELLS_POLLS 3
int cells_polls(const struct cells *c, struct pollfd *p);
void cells_turn(struct cells *c, const struct pollfd *p);
bool cells_is_done(const struct cells *c);

/* Poll once and turn, for a caller that has nothing else to wait for. */
void cells_wait(struct cells *c);

/* Interrupt the cell that runs. The warden kills a cell that does not end
 * within cell.grace; a second call kills it at once. Other requests end early.
 */
void cells_interrupt(struct cells *c);

/* Output of the cell so far, as plain text. Borrowed until the next turn. */
const char *cells_output(const struct cells *c, size_t *n);

/* True if the cell runs. Before that the request can still be refused. */
bool cells_has_begun(const struct cells *c);

/* After REQUEST_LIST and REQUEST_READ: the files of the home. */
const struct jail_files *cells_files(const struct cells *c);

/* After REQUEST_OPEN: the file, which the caller closes; -1: none. */
int cells_take_file(struct cells *c);

/* Why the finished request was refused, or NULL; *title (`title` may be NULL):
 * the same in short. cells_refuse_files() refuses a request about files. */
const char *cells_refusal(const struct cells *c, const char **title);
void cells_refuse_files(struct cells *c, const char *why);

/* How many cells have run; the version of their Python: "3.11.2". */
unsigned cells_count(const struct cells *c);
const char *cells_python(const struct cells *c);

/* After a cell: how it ended; after REQUEST_UNDO: what was undone; the cell's
 * verdict; its pictures, as the guest reports them. */
const struct jail_done *cells_done(const struct cells *c);
const struct jail_undone *cells_undone(const struct cells *c);
bool cells_kept(const struct cells *c); /* the reset can be undone */
const char *cells_verdict(const struct cells *c);
void cells_report(const struct cells *c, struct report *r);

/* For outcome.c: the request; true if it was served and the session did not
 * break before. cells_tell_notices() has the notices since the last answer, and
 * tells each once; cells_told() has those of the last answer. Borrowed until
 * the next answer. */
const struct request *cells_request(const struct cells *c);
const struct config *cells_config(const struct cells *c);
struct drive *cells_drive(struct cells *c);
bool cells_has_outcome(const struct cells *c);
const struct strlist *cells_tell_notices(struct cells *c);
const struct strlist *cells_told(const struct cells *c);

/* Free large buffers of the finished request: its answer was read. */
void cells_rest(struct cells *c);

/* Add a notice to the next answer, beside those of the warden. */
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

/* Find the interpreter of `spec`, then the configured ones. 0, or -1 with e. */
int pythons_find(struct pythons *p, const struct jail_spec *spec,
	const struct config *cfg, struct err *e);

void pythons_free(struct pythons *p);

/* ---- eval.c ---- */

/* State of --eval. Caller's storage. */
struct eval {
	const struct config *cfg; /* borrowed */
	struct pool *pool;
	struct log *log;	  /* borrowed */
	struct setup_slots slots; /* to count a session in */
	struct pythons pythons;
	enum spec_mode mode; /* of the last request's session */
};

/* Prepare before the process confines itself: fork the supplier. `spec` is that
 * of the default interpreter. 0, or -1 with e. */
int eval_open(struct eval *ev, const struct config *cfg,
	const struct jail_spec *spec, struct err *e);

/* Serve all requests. The exit status: 0; 2 when a request was invalid; or -1
 * with e, when no session could be made or no answer written. */
int eval_run(struct eval *ev, struct err *e);

/* End every session, and wait until all are gone. -1 with e when something may
 * be left. */
int eval_close(struct eval *ev, struct err *e);

/* ---- emit.c ---- */

/*
 * Append a member of an object or, with `key` NULL, an item of a list. A comma
 * goes before it unless it is the first. Keys are static and need no escapes.
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

/* Append text that is JSON itself, in its own digits. False: it is none, has a
 * second line, or is so deep that a client's parser may give up on it. */
bool emit_json(struct strbuf *b, const char *key, const char *s, size_t n);

/* True if the bytes are UTF-8. */
bool emit_is_text(const char *s, size_t n);

/* ---- fields.c ---- */

/* A field of a request. tools/fields makes the tables from fields.txt. */
struct request_field {
	const char *name; /* NULL: the end of the table */
	const char *type; /* in words: "integer" */
	unsigned types;	  /* 1 << json_type, of each type it may have */
	bool required;
	int64_t least, most; /* of an integer */
	int64_t fallback;    /* default; 0: none */
};

extern const struct request_field fields_snekbox_request[],
	fields_code_request[], fields_cell_request[], fields_execute_request[],
	fields_undo_request[], fields_stored_file[], fields_session_request[],
	fields_limits_request[], fields_extend_request[];

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

/* Append the members of the answer to the finished request; pictures only if
 * `pictures`. ANSWER_REFUSED: nothing is appended, cells_refusal() says why.
 * ANSWER_FAILED with e: the same, the session broke. */
enum answer_kind outcome_add(
	struct strbuf *b, struct cells *c, bool pictures, struct err *e);

/* ---- put.c ---- */

/* A file that was put into the home. */
struct put_file {
	const struct request_file *from; /* borrowed from the request */
	struct timespec mtime;
};

/* Caller's storage, zeroed at first; put_fini(). */
struct put {
	struct put_file *files; /* owned */
	size_t n;		/* of them */
	size_t at;		/* of the request's files */
	char message[1200];	/* PUT_REFUSED, in snekbox's words */
	struct err err;		/* PUT_LOST */
};

/* 0 is a failure: a result that was not set is no success. */
enum put_turn {
	PUT_LOST,    /* the jail failed */
	PUT_REFUSED, /* a file cannot be written */
	PUT_MORE,    /* call put_files() again */
	PUT_ALL,
};

/* Put some files of the request into the home, at least one. Between the calls
 * other requests have their turn. */
__attribute__((warn_unused_result)) enum put_turn put_files(
	struct put *p, struct jail *j, const struct request *q);
void put_fini(struct put *p);

/* Put the files of the skeleton, before those of a request. */
void put_skeleton(struct jail *j, const struct config *cfg);

/* ---- python.c ---- */

/* Append Python's repr() of the value. It may end anywhere once `b` has more
 * bytes than PYTHON_REPR_MAX. */
#define PYTHON_REPR_MAX 65536
void python_repr(struct strbuf *b, const json_t *v);
void python_repr_text(struct strbuf *b, const char *s, size_t n);

/* Append the value for marshal.loads() of any Python 3. */
void python_marshal(struct strbuf *b, const json_t *v);

/* Append the head of a tuple, which its `n` values must follow; append bytes.
 */
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
	REQUEST_PROGRAM, /* `args` and `input`: of no client */
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
	int fd;		  /* instead of `content`; borrowed; -1: none */
	off_t from;	  /* where the file begins in `fd` */
	size_t n;
};

struct request {
	enum request_form form;
	json_t *root; /* owned; the rest borrows from it */
	struct request_file *files;
	size_t nfiles;
	/* REQUEST_SNEKBOX, REQUEST_PROGRAM */
	const char **args; /* ends with NULL; owned */
	bool has_nul;	   /* an argument holds a NUL: it cannot be passed */
	size_t python;	   /* index of the interpreter */
	/* REQUEST_OURS */
	struct strbuf source; /* for request.py */
	const char *input;    /* standard input; REQUEST_PROGRAM, too */
	size_t input_n;
	int64_t timeout_ms;
	/* REQUEST_CELL, with the three above */
	const char *code;
	size_t code_n;
	bool bundles; /* REQUEST_OURS, too: the value in all its forms */
	bool works;   /* REQUEST_OURS: in the workspace */
	bool streams; /* the output is streamed, and not in the answer */
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
	bool works;   /* the request is one of /v1/execute */
	bool locked;  /* refusals say nothing about files of the host */
	bool session; /* the stream has a session */
};

/* Why a request is refused: words for {"title", "description"}. */
struct request_refusal {
	const char *title; /* static */
	struct strbuf description;
};

/* True if a text is nested deeper, or has more values or keys, than a request
 * may have. Parsing a key takes several times as long as a number. */
bool request_is_deep(const char *text, size_t n);

/* Parse and check `n` bytes. 0, or -1 with *why. The caller ends with
 * request_fini() and frees the description either way. */
int request_parse(struct request *r, const char *text, size_t n,
	const struct request_rules *rules, struct request_refusal *why);

/* The same for parsed JSON (`root` is taken). Outside of a session it must have
 * `code`; request_add_file() adds its files. */
int request_take(struct request *r, json_t *root,
	const struct request_rules *rules, struct request_refusal *why);

/* Add a file: `n` bytes of `fd`, from `from` on. `path` and `fd` are borrowed.
 */
int request_add_file(struct request *r, const char *path, int fd, off_t from,
	size_t n, const struct request_rules *rules,
	struct request_refusal *why);

/* Add a file with a copy of these bytes and of the path, which becomes r->path,
 * too. */
int request_add_content(struct request *r, const char *path, const char *p,
	size_t n, const struct request_rules *rules,
	struct request_refusal *why);

/* With code that asks for __file__, add the code as the last file, which
 * request.py names there. */
int request_add_main(struct request *r, const struct request_rules *rules,
	struct request_refusal *why);

void request_fini(struct request *r);

/* Refuse: record why. Returns -1. */
int request_refuse(struct request_refusal *why, const char *title,
	const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* ---- run.c ---- */

/* 0 is a failure: a result that was not set is no success. */
enum run_how {
	RUN_FAILED,  /* the jail failed: `err` */
	RUN_NOTHING, /* nothing was run: `message` */
	RUN_CUT,     /* killed for its output (a program) */
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
	uint64_t max;	 /* bytes kept of each output */
	bool gone;	 /* the program is over */
	bool asked;	 /* the request was sent to the warden */
	bool puts;	 /* put_files() has more to put */
	int64_t due_ms;	 /* the warden's answer is due */
	bool lost;	 /* run_is_lost() */
	int turns;	 /* how often its pipes were served, */
	int64_t rest_ms; /* and when they are served again */
	int in;		 /* the program's standard input; -1: closed */
	size_t in_at;
};

/* Most bytes kept of each stream, but of a REQUEST_PROGRAM. */
#define RUN_OUTPUT_MAX 1000000

/* Begin to run a request in `j`, a session of run_mode(), which may still be
 * building. NULL: there is none because of `e`, and the run has failed. Its
 * home can be read after the run unless r->how is RUN_FAILED. All but `e` is
 * borrowed until run_fini(), which the caller may call at any time. */
void run_begin(struct run *r, struct jail *j, const struct request *q,
	const struct config *cfg, const struct err *e);

bool run_is_over(const struct run *r);

/* True if the warden was asked to run the request: it may have run. True if we
 * have the program's pipes. */
bool run_has_begun(const struct run *r);
bool run_is_up(const struct run *r);

/* The kind of session that a request needs. */
enum spec_mode run_mode(const struct request *q);

/* True if the jail failed before it had the request. Another jail can run the
 * request, which then still runs once. Callers try so many jails at most. */
#define RUN_TRIES 8
bool run_is_lost(const struct run *r);

/* Until run_is_over(): poll these RUN_POLLS entries, for as many ms as it
 * returns at most, then call run_turn() with them. */
#define RUN_POLLS 5
int run_polls(const struct run *r, struct pollfd *p);
void run_turn(struct run *r, const struct pollfd *p);

/* Poll once and turn, for a caller that has nothing else to wait for. */
void run_wait(struct run *r);

void run_fini(struct run *r);

/* ---- stream.c ---- */

/*
 * A request ends with the line on which its brackets close, or before a line
 * that begins with a bracket where JSON allows none. A line without a bracket
 * is a request of its own.
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
	size_t at, used; /* scanned up to here; of earlier requests */
	int depth, values;
	int found;	    /* values of the last request */
	bool text, escaped; /* within a string, after a backslash */
	bool something;	    /* a character that is no blank */
	bool first;	    /* the next character is the first of a line */
	char last;	    /* of those that are no blanks */
	bool long_;	    /* it is too long, and skipped */
	bool too_deep;
	bool ended;
};

enum stream_next {
	STREAM_END,	/* no more */
	STREAM_REQUEST, /* *text, *n: borrowed until the next call */
	STREAM_LONG,	/* a request was too long, and skipped */
	STREAM_DEEP,	/* a request was nested too deep */
	STREAM_MANY,	/* a request had too many values */
	STREAM_MORE,	/* (stream_try) none yet: stream_read() first */
	STREAM_FAILED,	/* errno */
};

void stream_open(
	struct stream *s, int fd, size_t max, int depth_max, int values_max);
void stream_close(struct stream *s);

/* True if stream_next() would have to read first. */
bool stream_is_empty(const struct stream *s);

/* True if another request may come, as far as we know without waiting. The text
 * that stream_next() gave is invalid afterwards. */
bool stream_may_go_on(struct stream *s);

/* Read some bytes; wait if there are none yet. 0, or -1 with errno. */
int stream_read(struct stream *s);

/* Find the next request in the bytes that were read. */
enum stream_next stream_try(struct stream *s, const char **text, size_t *n);

/* Find the next request; wait until there is one. */
enum stream_next stream_next(struct stream *s, const char **text, size_t *n);

#endif
