/* SPDX-License-Identifier: MIT */
/*
 * err.h - an error that carries its context outward
 *
 * A value of fixed size, without allocation: it works between clone and exec
 * and crosses a pipe whole. The code that fails sets it, and each caller that
 * knows more wraps it, so that it reads from the outside in:
 *
 *	home: mount tmpfs on /home: Cannot allocate memory
 *
 * Every setter returns -1, so that one line reports and returns:
 *
 *	return err_errno(e, "open %s", path);
 *
 * A NULL `e` is allowed and records nothing.
 */
#ifndef JAIL_BASE_ERR_H
#define JAIL_BASE_ERR_H

/* The kind of failure. main.c turns it into the exit status. */
enum err_kind {
	ERR_FAILED, /* an ordinary operation failed: exit 1 */
	ERR_USAGE,  /* the command line: exit 2 */
	ERR_CONFIG, /* the configuration: exit 78 */
	ERR_BUSY,   /* there are too many of them now: exit 75 */
	ERR_JAIL,   /* the jail could not be built: exit 125 */
};

struct err {
	enum err_kind kind;
	int code;	/* errno, or 0 */
	char msg[512];	/* what, on what, why; no full stop */
	char hint[512]; /* what to do about it, or empty */
};

/* Record a message. */
int err_set(struct err *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Record a message followed by ": strerror(errno)". Leaves errno alone. With
 * ETOOMANYREFS (io.h: io_raise_descriptors()) there is a hint, too. */
int err_errno(struct err *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Put "context: " before the message. */
int err_wrap(struct err *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Record what to do about it. */
int err_hint(struct err *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Set the kind. */
int err_kind_set(struct err *e, enum err_kind kind);

#endif
