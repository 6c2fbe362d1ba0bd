/* SPDX-License-Identifier: MIT */
/*
 * report.h - what the driver reports of a request: request.py
 */
#ifndef REPL_JSON_REPORT_H
#define REPL_JSON_REPORT_H

#include <stddef.h>

/* Most pictures of an answer, and most bytes of a text: parsed, JSON takes
 * fifty times its bytes. */
#define REPORT_PICTURES 20
#define REPORT_TEXT_MAX 1000000

/* Bytes within the report. */
struct report_piece {
	const char *p; /* NULL: there is none */
	size_t n;
};

struct report {
	struct report_piece type, json, repr;
	struct report_piece png[REPORT_PICTURES];
	size_t npng;
};

/* Take a report apart. What does not look like one ends it. */
void report_parse(struct report *r, const char *s, size_t n);

#endif
