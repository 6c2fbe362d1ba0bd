/* SPDX-License-Identifier: MIT */
/*
 * lab.h - files that the people of a course hand in
 *
 *	asked.c		what a client may ask for
 *	hand.c		hands files in: the front end's side
 *	handin.c	takes them: a child of root's service
 *	place.c		the directory that keeps them, and the records there
 *	past.c		the moments that root's service has seen pass
 *	collect.c	a table and an archive of what was handed in
 *
 * On the disk, in the directory that lab.submit names:
 *
 *	EXERCISE/PERSON/N/FILE	of version N, which has the files of version
 *				N-1 (hard links), and new ones
 *	EXERCISE/PERSON/.N	the record of version N, as JSON
 *	EXERCISE/PERSON/.lock	locked during a hand-in
 *
 * Other names that begin with a dot are versions that were not finished. All of
 * it is root's, and nobody else can read it.
 */
#ifndef REPL_LAB_LAB_H
#define REPL_LAB_LAB_H

#include "jail/base/err.h"
#include "repl/config/config.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct strbuf;

/* ---- messages of one size each, over packet sockets ---- */

/* Add 1 when a message changes (tests/layers). No version of an order is as
 * large. */
#define HANDIN_VERSION 0x68616e01 /* wire b17e1225 */

enum handin_kind { HANDIN_FILES, HANDIN_LIST };

/* To the maker, which answers with a socket for the rest. */
struct handin_ask {
	uint32_t version;
	uint32_t kind;
};

/* Most files of one request, and most bytes of a message behind a head. */
#define HANDIN_FILES_MAX 32
#define HANDIN_PIECE ((size_t)64 << 10)

/* The head of a file, whose bytes follow. A head without a name: hand in what
 * has come. */
struct handin_head {
	int64_t bytes;
	char name[NAME_MAX + 1];
};

/* The answers: refused (`ok` is 0), or a file; at the end one without a name,
 * with the newest version and its time. Each has the exercise and the deadline,
 * which may be others than at the start of the session. */
struct handin_row {
	int32_t ok;
	uint32_t version;
	int64_t bytes, when_s, due_s;
	char receipt[12];
	char name[NAME_MAX + 1];
	char course[65], exercise[65];
	struct err err;
};

/* ---- asked.c ---- */

/* True if a first message to the maker asks for this. */
bool asked_is_ours(const struct handin_ask *ask, size_t n);

/* Check a message of `n` bytes as the next head, of which `count` have come. 1:
 * a file; 0: the last head; -1 with e. */
int asked_head(
	const struct handin_head *head, size_t n, size_t count, struct err *e);

/* True if a file of that name may be handed in. */
bool asked_may_be_name(const char *name);

/* ---- place.c ---- */

/* Most files of a version, and most digits of its number. */
#define PLACE_FILES 64
#define PLACE_DIGITS 9
#define PLACE_SHA256 65

/* A file of a version, with the version that brought it. */
struct place_file {
	char name[NAME_MAX + 1];
	char sha256[PLACE_SHA256];
	char receipt[12];
	uint32_t version;
	int64_t bytes, when_s;
};

/* Version 0: nothing was handed in yet. */
struct place_record {
	uint32_t version;
	int64_t when_s;
	int64_t kept; /* bytes that all versions so far take, at most */
	size_t n;
	struct place_file files[PLACE_FILES];
};

/* A new version. Caller's storage. */
struct place_draft {
	int dir;  /* of the person; -1: none */
	int lock; /* of it; -1: none */
	int temp; /* of the version; -1: none */
	/* CONFIG_NAME of these has at most 64 bytes. */
	char course[65], exercise[65], person[NAME_MAX + 1];
	struct place_record record; /* of the newest version */
	bool came[PLACE_FILES];	    /* which of its files come now */
	bool fresh[PLACE_FILES];    /* which of those are kept */
	int64_t quota;
};

/* The file that comes. */
struct place_incoming {
	struct place_file file;
	int fd;
	int64_t left;
	int64_t room; /* of it, in place_record.kept */
	void *hash;
};

/* Write the directory of a course: lab.submit, with {course} replaced. 0, or -1
 * with e. */
int place_name(const struct config_lab *lab, const char *course,
	char path[static PATH_MAX], struct err *e);

/* Open a directory for which only root decides, without following a link. With
 * `from`, what stands from there on in the path is made if it is missing; NULL
 * makes nothing. Descriptor, or -1 with e. */
int place_walk(const char *path, const char *from, struct err *e);

/* The newest version in a person's directory, or 0. -1 with errno. */
int64_t place_newest(int dir);

/* Read the record of a version. 0, or -1 with e. */
int place_read(
	int dir, uint32_t version, struct place_record *record, struct err *e);

/* Open the directory of the person's course, and make it: descriptor, or -1. */
int place_course(const struct config_lab *lab);

/* Open and lock the directory of a person, and read the newest record; another
 * hand-in of the person's is waited for so long. place_close() must follow
 * either way. 0, or -1 with e. */
#define PLACE_LOCK_MS 10000
int place_open(struct place_draft *p, const struct config *cfg,
	const char *person, int lock_ms, struct err *e);
void place_close(struct place_draft *p);

/* Begin a file of `bytes` bytes, in the version that begins with the first one;
 * add bytes to it; end it. place_drop() must follow. 0, or -1 with e. */
int place_begin(struct place_draft *p, struct place_incoming *in,
	const char *name, int64_t bytes, struct err *e);
int place_add(
	struct place_incoming *in, const void *buf, size_t n, struct err *e);
int place_end(struct place_draft *p, struct place_incoming *in, struct err *e);
void place_drop(struct place_incoming *in);

/* True if the newest version has a file of this name with the bytes of `fd`
 * (borrowed, read from its beginning), which then need not come again. */
bool place_has(struct place_draft *p, const char *name, int fd);

/* Take a file that place_begin() has begun out of the version again. */
void place_withdraw(struct place_draft *p, struct place_incoming *in);

/* Make the version whole, of the moment `when_s`: then p->record has it. 0, or
 * -1 with e: nothing was handed in. */
int place_commit(struct place_draft *p, int64_t when_s, struct err *e);

/* ---- past.c ---- */

enum past { PAST_NOT, PAST_NOW, PAST_BEFORE };

/* True if the moment has passed: by the host's clock, which is then noted in
 * `dir` (-1: nowhere), or by a note of before, though the clock says otherwise:
 * syslog has that, with `what` the moment is of. Root only. */
enum past past_look(int dir, int64_t moment_s, const char *what);

/* ---- handin.c ---- */

/* Log that a file was handed in, `how`: " at the end", or "". */
void handin_log(const struct place_draft *p, const struct place_file *f,
	const char *how);

/* Serve the request over `sock`. Root only. */
void handin_serve(int sock, const struct handin_ask *ask,
	const struct config *cfg, const char *person);

/* ---- hand.c ---- */

/* A request of the front end. The caller fills in the last two. */
struct hand {
	int fd;
	bool (*cancelled)(void *arg); /* the person wants to wait no more */
	void *arg;
};

/* Ask the courier for a connection; end it. 0, or -1 with e. */
int hand_open(
	struct hand *h, int courier, enum handin_kind kind, struct err *e);
void hand_close(struct hand *h);

/* Send a file from its beginning (`in` is borrowed); all files are sent. 0, or
 * -1 with e, also when the file changes meanwhile. */
int hand_file(struct hand *h, const char *name, int in, struct err *e);
int hand_commit(struct hand *h, struct err *e);

/* Take the next answer: 1, a file; 0, the last; -1 with e. */
int hand_next(struct hand *h, struct handin_row *row, struct err *e);

/* Append "course python1: exercise 4 due Friday 18:00", or less. A course or an
 * exercise that is NULL or "" is not known. */
void hand_due(struct strbuf *b, const char *course, const char *exercise,
	int64_t due_s);

/* ---- collect.c ---- */

struct collect {
	const struct config_lab *lab;
	const char *what;    /* COURSE/EXERCISE, or a directory */
	const char *archive; /* to write; or NULL */
	bool all;	     /* every version */
	bool json;
	int width; /* of the terminal */
};

/* Print what was handed in, and write the archive. 0, or -1 with e. */
int collect_run(const struct collect *c, FILE *f, struct err *e);

#endif
