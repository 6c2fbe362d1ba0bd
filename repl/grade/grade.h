/* SPDX-License-Identifier: MIT */
/*
 * grade.h - one program against many submissions
 *
 *	exercise.c	the plan: what is run, with what, and what must come out
 *	submission.c	the submissions of a directory
 *	judge.c		what a program did, held against the plan
 *	results.c	results in a file, from which a later run goes on
 *	report.c	results as a table, JSON and JUnit's XML
 *	grade.c		the jails that run, and the next submissions
 *
 * No expected output, and nothing of another submission, is ever in a jail:
 * outputs are compared out here.
 */
#ifndef REPL_GRADE_GRADE_H
#define REPL_GRADE_GRADE_H

#include "jail/base/err.h"
#include "jail/jail.h"
#include "repl/config/config.h"
#include "repl/term/term.h"
#include "repl/text/text.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct run;

/* ---- exercise.c ---- */

/* A file of a plan: its name in the home, and its content. Owned. */
struct exercise_file {
	char *name;
	char *content;
	size_t n;
	/* Of a file of the plan: */
	size_t room; /* mapped at `content` */
	char *place; /* where the plan names it */
};

struct exercise_files {
	struct exercise_file *v;
	size_t n;
};

enum exercise_compare {
	COMPARE_LINES, /* blanks at the end of a line, and empty lines at the
			* end, do not count */
	COMPARE_EXACT, /* every byte */
	COMPARE_WORDS, /* words alone, however they are spaced */
};

#define EXERCISE_KEYS 13

/* A section [test NAME]. */
struct exercise_test {
	char *name;
	struct strlist args;
	struct exercise_file input;  /* `name` NULL: nothing */
	struct exercise_file output; /* expected; `name` NULL: any */
	struct exercise_files give;  /* put into the home */
	struct exercise_files makes; /* files that must be there afterwards */
	enum exercise_compare compare;
	int status; /* expected */
	int points;
	int seen[EXERCISE_KEYS]; /* in which line each key is */
};

struct exercise {
	char *title;
	char *program;	      /* the submission's file that is run */
	struct strlist files; /* that a submission must have */
	struct exercise_test *tests;
	size_t ntests;
	int points;	 /* of all tests */
	uint64_t digest; /* of all of it, with the files that it names */
	/* Keys of the configuration in it, for config_where.lines. */
	struct config_line *lines;
	size_t nlines;
};

/* Read a plan, and all files that it names. 0, or -1 with an error added.
 * exercise_fini() either way. */
int exercise_read(
	struct exercise *p, const char *path, struct config_errors *errors);
void exercise_fini(struct exercise *p);

/* Check what the limits must allow. 0, or -1 with an error added. */
int exercise_check(const struct exercise *p, const struct limits *l,
	struct config_errors *errors);

/* Carry on a digest (EXERCISE_DIGEST at first): a change is seen, no forgery.
 */
#define EXERCISE_DIGEST UINT64_C(0xcbf29ce484222325)
uint64_t exercise_digest(uint64_t digest, const void *p, size_t n);

/* ---- submission.c ---- */

struct submission {
	char *name;   /* that of its entry in the directory, as text: `\xff`
		       * stands for a byte that is none */
	char *entry;  /* in the directory */
	bool is_file; /* it is one file, which becomes the program */
	/* submission_load(): */
	int version; /* of those that it has; 0: it has no versions */
	struct exercise_files files;
	struct strlist left; /* why something was left out: "a: a link" */
	uint64_t digest;
};

struct submissions {
	int dir; /* owned */
	struct submission *v;
	size_t n;
};

/* List the submissions of a directory, in the order of their names. 0, or -1
 * with e. submission_close() either way. */
int submission_list(struct submissions *s, const char *path, struct err *e);
void submission_close(struct submissions *s);

/* Keep the first `n`. */
void submission_keep(struct submissions *s, size_t n);

/* Read the files of a submission, of its newest version if it has versions:
 * entries with a number as name, all of them directories. 0, or -1 with e: it
 * cannot be read, or is larger than a home. submission_drop() either way. */
int submission_load(const struct submissions *s, struct submission *u,
	const struct exercise *p, const struct limits *l, struct err *e);
void submission_drop(struct submission *u);

/* ---- judge.c ---- */

/* The outcome of one test. */
struct judgement {
	bool passed;
	enum jail_limit limit; /* that struck, or LIMIT_NONE */
	int status;	       /* as a shell has it; -1: nothing was run */
	int64_t wall_ms, cpu_ms, peak_bytes;
	char *why; /* owned; NULL: it passed */
};

/* Judge a run that is over. Its jail is there still. 0, or -1 with e: the jail
 * failed, so that nothing can be said. */
int judge_run(struct judgement *v, const struct exercise_test *t, struct run *r,
	struct err *e);

/* ---- results.c ---- */

/* The result of a submission, as JSON (results.c has its members). */
struct results {
	const struct exercise *plan; /* borrowed */
	int fd;			     /* owned; -1: none is kept */
	json_t *by_name;	     /* owned: of submissions */
};

/* Open the file, and read what an earlier run has left. A last line without an
 * end is dropped. 0, or -1 with e: it is no file of results, and stays as it
 * is, or another run writes to it. */
int results_open(struct results *r, const struct exercise *p, const char *path,
	struct err *e);
void results_close(struct results *r);

/* The result that there is already for this content of a submission, or NULL.
 */
const json_t *results_find(const struct results *r, const struct submission *u);

/* True if there is a result for a submission of that name, whatever was in it.
 */
bool results_have(const struct results *r, const struct submission *u);

/* Add a result, and write it down. 0, or -1 with e. `why` is NULL where all
 * tests ran; else why none did. */
int results_add(struct results *r, const struct submission *u,
	const struct judgement *v, const char *why, struct err *e);

/* ---- report.c ---- */

/* Print the results of these submissions as a table, or as JSON lines. */
void report_table(const struct results *r, const struct submissions *s,
	int width, FILE *f);
void report_json(const struct results *r, const struct submissions *s, FILE *f);

/* Write JUnit's XML. 0, or -1 with e. */
int report_junit(const struct results *r, const struct submissions *s, int fd,
	struct err *e);

/* ---- grade.c ---- */

struct grade_with {
	const struct exercise *plan;
	const struct config *cfg;
	const struct jail_spec *spec;
	int jobs; /* at a time */
	struct submissions *submissions;
	struct results *results;
	struct terminal *term;	 /* for the progress; NULL: none */
	struct signals *signals; /* opened after grade_open() */
};

struct grade;

/* Prepare before the process confines itself. 0, or -1 with e. */
int grade_open(
	struct grade **out, const struct grade_with *with, struct err *e);

/* Grade what has no result yet. 0; 1 where it was interrupted; -1 with e:
 * a jail failed, or results could not be written. Where no jail can be made
 * nothing more is tried; a submission that broke its jail has no result, and
 * the others have theirs. */
int grade_run(struct grade *g, struct err *e);

/* End every jail. -1 with e when something may be left. */
int grade_close(struct grade *g, struct err *e);

#endif
