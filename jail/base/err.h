/* SPDX-License-Identifier: MIT */
/*
 * err.h - an error that carries its context outward
 *
 * A fixed-size value: no allocation, so it works between clone and exec and
 * crosses a pipe whole. Set where the call failed, wrapped by each level that
 * knows more, so that it reads from the outside in:
 *
 *	home: mount tmpfs on /home: Cannot allocate memory
 *
 * Every setter returns -1, so that `return err_errno(e, "open %s", path);`
 * is the whole idiom. A NULL `e` is allowed and records nothing.
 */
#ifndef JAIL_BASE_ERR_H
#define JAIL_BASE_ERR_H

/* What broke; main.c turns it into the exit status. */
enum err_kind {
	ERR_FAILED, /* an ordinary operation failed: exit 1 */
	ERR_USAGE,  /* the command line: exit 2 */
	ERR_CONFIG, /* the configuration: exit 78 */
	ERR_JAIL,   /* the jail could not be built: exit 125 */
};

struct err {
	enum err_kind kind;
	int code;	/* errno where there was one, else 0 */
	char msg[512];	/* what, on what, why; no full stop */
	char hint[512]; /* what to do; empty when there is nothing to say */
};

/* Record a message. Returns -1. */
int err_set(struct err *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Record a message followed by ": strerror(errno)". Returns -1. */
int err_errno(struct err *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Put "context: " before the message that is already there. Returns -1. */
int err_wrap(struct err *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Say what to do about it. Returns -1. */
int err_hint(struct err *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Set the kind. Returns -1. */
int err_kind_set(struct err *e, enum err_kind kind);

#endif
