/* SPDX-License-Identifier: MIT */
/*
 * err.c - an error that carries its context outward
 *
 * Runs in:   every process
 * Trusts:    its caller; the texts may hold any bytes, and whoever prints them
 *            makes them safe for a terminal
 */
#include "err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *e, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return -1;
	memset(e, 0, sizeof(*e));
	va_start(ap, fmt);
	vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	return -1;
}

/* Put ": text" behind the message. */
static void append(struct err *e, const char *text)
{
	size_t n = strlen(e->msg);

	snprintf(e->msg + n, sizeof(e->msg) - n, ": %s", text);
}

int err_errno(struct err *e, const char *fmt, ...)
{
	int code = errno;
	va_list ap;

	if (!e)
		return -1;
	memset(e, 0, sizeof(*e));
	e->code = code;
	va_start(ap, fmt);
	vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	append(e, strerror(code));
	errno = code;
	return -1;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
	char inner[sizeof(e->msg)];
	va_list ap;

	if (!e)
		return -1;
	memcpy(inner, e->msg, sizeof(inner));
	va_start(ap, fmt);
	vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	append(e, inner);
	return -1;
}

int err_hint(struct err *e, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return -1;
	va_start(ap, fmt);
	vsnprintf(e->hint, sizeof(e->hint), fmt, ap);
	va_end(ap);
	return -1;
}

int err_kind_set(struct err *e, enum err_kind kind)
{
	if (e)
		e->kind = kind;
	return -1;
}
