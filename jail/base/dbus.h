/* SPDX-License-Identifier: MIT */
/*
 * dbus.h - a few questions to a service that speaks D-Bus
 *
 * The specification is at dbus.freedesktop.org. A library for it would take
 * longer to load than a question takes. Nothing here waits but dbus_await().
 */
#ifndef JAIL_BASE_DBUS_H
#define JAIL_BASE_DBUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

/* ---- a question ---- */

/* A message is built here. What does not fit is a mistake of ours: `n` is
 * greater than the room then, and dbus_ask() fails. */
struct dbus_message {
	unsigned char b[1024];
	size_t n;
	size_t body; /* where it begins */
};

struct dbus_method {
	const char *to, *path, *interface, *member;
	const char *signature; /* of the arguments */
};

/* Begin a call, which answers name by its serial number, 1 or more; put its
 * arguments, each as D-Bus aligns it; and end the message. */
void dbus_begin(struct dbus_message *m, uint32_t serial,
	const struct dbus_method *method);
void dbus_align(struct dbus_message *m, size_t to);
void dbus_put_u32(struct dbus_message *m, size_t v);
void dbus_put_string(struct dbus_message *m, const char *s);
void dbus_put_signature(struct dbus_message *m, const char *s);
/* An array: its length, and once all is put dbus_end_array() with what
 * dbus_begin_array() returned. Elements are aligned to `to`. */
size_t dbus_begin_array(struct dbus_message *m, size_t to);
void dbus_end_array(struct dbus_message *m, size_t array, size_t to);
void dbus_end(struct dbus_message *m);

/* ---- a connection ---- */

#define DBUS_MAX 16384

struct dbus {
	int fd;		 /* -1: not connected */
	bool is_in;	 /* the other side has accepted us */
	size_t n, taken; /* what came; of that, what was taken already */
	unsigned char b[DBUS_MAX];
};

/* Connect to a socket and say who we are, which the socket proves. -1 with
 * errno. */
int dbus_open(struct dbus *d, const char *path);
void dbus_close(struct dbus *d);

/* Send a question; the answer is not waited for. -1 with e. */
int dbus_ask(struct dbus *d, const struct dbus_message *m, struct err *e);

/* ---- what comes ---- */

enum dbus_type { DBUS_RETURN = 2, DBUS_ERROR = 3, DBUS_SIGNAL = 4 };

/* A message that came whole, until the next is taken. */
struct dbus_answer {
	unsigned type; /* enum dbus_type, or another */
	uint32_t to;   /* the serial number of the question; or 0 */
	const unsigned char *b;
	size_t n, body, at; /* length; where the body begins; what was read */
};

/* Read what has come. -1 with errno: the connection ended, or broke. */
int dbus_read(struct dbus *d);

/* Take the next message: 1; 0: none has come whole; -1 with errno: we are not
 * accepted (EACCES), or this is not D-Bus (EPROTO). */
int dbus_take(struct dbus *d, struct dbus_answer *a);

/* Wait for the next message until `until` (now_ms()). 0; -1 with errno. */
int dbus_await(struct dbus *d, struct dbus_answer *a, int64_t until);

/* Read the body from its beginning. false: there is no such thing. Strings are
 * borrowed from the message and end with a NUL. */
bool dbus_get_u32(struct dbus_answer *a, uint32_t *v);
bool dbus_get_string(struct dbus_answer *a, const char **s);
bool dbus_get_signature(struct dbus_answer *a, const char *is);

#endif
