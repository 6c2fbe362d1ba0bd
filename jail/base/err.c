/* SPDX-License-Identifier: MIT */
/*
 * err.c - an error that carries its context outward
 *
 * Runs in:   every process
 * Trusts:    its caller; the texts may hold any bytes, and the code that prints
 *            them makes them safe for a terminal
 */
#include "err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Format the arguments behind `fmt` into the array `buf`. */
#define FORMAT(buf, fmt)                                                       \
	do {                                                                   \
		va_list ap_;                                                   \
                                                                               \
		va_start(ap_, fmt);                                            \
		vsnprintf(buf, sizeof(buf), fmt, ap_);                         \
		va_end(ap_);                                                   \
	} while (0)

/* Put ": text" behind the message. */
static void append_text(struct err *e, const char *text)
{
	size_t n = strlen(e->msg);

	snprintf(e->msg + n, sizeof(e->msg) - n, ": %s", text);
}

int err_set(struct err *e, const char *fmt, ...)
{
	if (!e)
		return -1;
	memset(e, 0, sizeof(*e));
	FORMAT(e->msg, fmt);
	return -1;
}

int err_errno(struct err *e, const char *fmt, ...)
{
	int code = errno;

	if (!e)
		return -1;
	memset(e, 0, sizeof(*e));
	e->code = code;
	FORMAT(e->msg, fmt);
	append_text(e, strerror(code));
	if (code == ETOOMANYREFS)
		err_hint(e, "a cell holds descriptors on their way: raise "
			    "ulimit -n");
	errno = code;
	return -1;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
	char inner[sizeof(e->msg)];

	if (!e)
		return -1;
	memcpy(inner, e->msg, sizeof(inner));
	FORMAT(e->msg, fmt);
	append_text(e, inner);
	return -1;
}

int err_hint(struct err *e, const char *fmt, ...)
{
	if (e)
		FORMAT(e->hint, fmt);
	return -1;
}

int err_kind_set(struct err *e, enum err_kind kind)
{
	if (e)
		e->kind = kind;
	return -1;
}
