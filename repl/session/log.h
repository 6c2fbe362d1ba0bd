/* SPDX-License-Identifier: MIT */
/*
 * log.h - syslog and the transcript, where the administrator wants them
 *
 *	log.syslog	who, when, which limit struck
 *	log.transcript	a file for each session: its cells, their output, and
 *			their verdicts
 */
#ifndef REPL_SESSION_LOG_H
#define REPL_SESSION_LOG_H

#include "jail/jail.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config;
struct err;

/* Caller's storage. All zero but the descriptor, which is -1: nothing is
 * logged. */
struct log {
	bool to_syslog;
	int transcript;
	char mark[20];	   /* of our lines in it; nobody in the jail knows it */
	const char *user;  /* borrowed */
	uint64_t cell_max; /* bytes of a cell's output that are written down */
	uint64_t cell_seen; /* bytes that the cell wrote */
	int error;	    /* why the transcript has a gap */
	bool told;	    /* the gap was reported */
};

/* Begin, before the front end confines itself. Only a session has a
 * transcript. 0; -1 with e (ERR_CONFIG) where there must be a transcript and
 * none can be written. */
int log_open(struct log *l, const struct config *cfg, const char *user,
	bool session, struct err *e);

/* End, with the exit status. */
void log_close(struct log *l, int status);

/* A limit struck. */
void log_limit(const struct log *l, enum jail_limit limit);

/* A terminal came or went, or somebody ended the session: from where. */
void log_attach(const struct log *l, const char *what, const char *from);

/* For the transcript: a cell's number and source; its output, unfiltered, at
 * most cell.output and cell.tail together; how many bytes there were beyond
 * that, and the verdict ("": none). -1 with e, once, when the transcript has a
 * gap. */
void log_cell(struct log *l, uint32_t cell, const char *src, size_t n);
void log_output(struct log *l, const void *buf, size_t n);
int log_cell_end(struct log *l, const char *verdict, struct err *e);

#endif
