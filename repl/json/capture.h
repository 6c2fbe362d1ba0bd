/* SPDX-License-Identifier: MIT */
/*
 * capture.h - what a program writes, as far as an answer has it
 */
#ifndef REPL_JSON_CAPTURE_H
#define REPL_JSON_CAPTURE_H

#include "repl/text/strbuf.h"

#include <stdbool.h>
#include <stdint.h>

/* Caller's storage; only capture.c writes it. */
struct capture {
	int fd; /* owned; -1: closed */
	struct strbuf text;
	uint64_t max; /* bytes kept; as snekbox counts them with `counts` */
	bool counts;
	bool cut;	       /* there was more */
	uint64_t chunks;       /* what snekbox counts for earlier chunks */
	unsigned chars, width; /* of the chunk that is not full yet */
};

/* Begin with a pipe (taken), of which `max` bytes are kept. */
void capture_open(struct capture *c, int fd, uint64_t max, bool counts);
void capture_close(struct capture *c);

/* poll(2) found it ready: take what is there; closes it at its end. */
void capture_read(struct capture *c);

/* Nobody writes any more: take the rest, and close it. */
void capture_finish(struct capture *c);

#endif
