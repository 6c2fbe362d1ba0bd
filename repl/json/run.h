/* SPDX-License-Identifier: MIT */
/*
 * run.h - one request in one jail
 */
#ifndef REPL_JSON_RUN_H
#define REPL_JSON_RUN_H

#include "capture.h"
#include "jail/base/err.h"
#include "jail/jail.h"

#include <poll.h>
#include <stdbool.h>
#include <time.h>

struct config;
struct request;

/* 0 is no success: what nobody has set says that it failed. */
enum run_how {
	RUN_FAILED,  /* the jail failed: `err` */
	RUN_NOTHING, /* nothing was run: `message` */
	RUN_CUT,     /* ended for its output (snekbox) */
	RUN_ENDED,   /* `program` */
};

/* A file that was put into the home. */
struct run_file {
	const char *path; /* borrowed from the request */
	struct timespec mtime;
};

/* Caller's storage; run_fini(). */
struct run {
	struct jail *jail; /* borrowed, as the next two */
	const struct request *request;
	const struct config *cfg;
	enum run_how how;
	struct jail_program program;
	struct capture out, err_out, report;
	struct run_file *files;
	size_t nfiles, put; /* of the request's files */
	char message[1200];
	struct err err;
	uint64_t max, report_max; /* bytes kept */
	bool gone;		  /* the program is over */
	bool built, asked, up;	  /* the jail; the request was handed over */
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

/* Whether its jail failed before it had the request: in another the request
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

/* The step before it: the files of the skeleton. */
void run_put_skeleton(struct jail *j, const struct config *cfg);

/* The next step: those of the request, some at a time, so that others have
 * their turn. */
enum run_put {
	RUN_PUT_MORE, /* call it again */
	RUN_PUT_ALL,
	RUN_PUT_FAILED, /* r->how and r->message say why */
};
__attribute__((warn_unused_result)) enum run_put run_put_files(
	struct run *r, struct jail *j, const struct request *q);

/* The same until all are put: 0, or -1 with e. */
int run_put_all_files(struct jail *j, const struct request *q, struct err *e);

#endif
