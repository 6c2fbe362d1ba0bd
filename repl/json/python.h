/* SPDX-License-Identifier: MIT */
/*
 * python.h - JSON values as Python has them
 */
#ifndef REPL_JSON_PYTHON_H
#define REPL_JSON_PYTHON_H

#include <jansson.h>
#include <stddef.h>

struct strbuf;

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

#endif
