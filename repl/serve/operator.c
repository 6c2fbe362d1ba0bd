/* SPDX-License-Identifier: MIT */
/*
 * operator.c - cellblock --sessions and --end, for sessions of the server
 *
 * Runs in:   front end, confined
 * Trusts:    the control socket: its clients are the server's own user or root
 * Leaves:    an answer for each request
 */
#include "repl/serve/parts.h"

#include "jail/base/io.h"
#include "repl/attach/attach.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* How long the sessions have to tell what they use. */
#define USAGE_MS 300

static void fill_entry(struct attach_entry *to, const struct sessions_told *t,
	const char *address)
{
	int64_t now = now_ms();
	struct attach_status *s = &to->status;

	to->number = t->number;
	s->pid = (int32_t)getpid();
	s->cell = t->cells;
	s->state = t->runs ? ATTACH_RUNS : ATTACH_PROMPT;
	s->began = (int64_t)time(NULL) - (now - t->born_ms) / 1000;
	s->cell_ms = s->idle_ms = now - t->touched_ms;
	s->away_ms = -1;
	s->cpu_ms = t->usage.cpu_ms;
	s->memory_bytes = t->usage.memory_bytes;
	s->home_bytes = t->usage.home_bytes;
	s->home_files = t->usage.home_files;
	snprintf(s->who, sizeof(s->who), "%s", address);
	snprintf(s->build, sizeof(s->build), "%s", CELLBLOCK_VERSION);
	snprintf(s->from, sizeof(s->from), "%s", t->client);
}

/* A memory file with all sessions, or -1. */
static int make_list(const struct sessions *s, const char *address)
{
	struct attach_entry *v = calloc(sessions_count(s) + 1, sizeof(*v));
	const struct http_session *se = NULL;
	struct sessions_told told;
	size_t n = 0;
	int fd;

	while (v && (se = sessions_next(s, se))) {
		sessions_tell(se, &told);
		fill_entry(&v[n++], &told, address);
	}
	fd = v ? io_sealed_memfd("cellblock-sessions", v, n * sizeof(*v)) : -1;
	free(v);
	return fd;
}

static const char *end_session(struct sessions *s,
	const struct control_request *v, const struct log *log)
{
	static const char by[] = "the operator ended it";
	const char *text = v->request.text;
	char why[ATTACH_TEXT + sizeof(by) + 2];

	snprintf(why, sizeof(why), "%s%s%s", by, *text ? ": " : "", text);
	if (!sessions_stop(s, v->request.number, why))
		return "this server has no such session";
	log_end(log, v->uid == geteuid() ? "the server's user" : "root", text);
	return NULL;
}

static void serve_request(
	struct operator* o, struct sessions *s, const struct log *log)
{
	const char *why = "this is a server: its sessions are listed and ended";
	struct control_request *v = &o->asked;

	if (v->request.kind == ATTACH_LIST && control_is_same_build(v)) {
		sessions_ask_usage(s);
		o->asked_ms = now_ms();
		return;
	}
	if (v->request.kind == ATTACH_END && v->request.number)
		why = end_session(s, v, log);
	control_answer(v, why ? ATTACH_NO : ATTACH_OK, why, NULL);
}

static void answer_list(struct operator* o, const struct sessions *s)
{
	auto_close int fd = make_list(s, o->address);

	control_hand(o->asked.fd, fd, "the server has no memory");
	control_drop(&o->asked);
	o->asked_ms = 0;
}

int operator_turn(struct operator* o, struct sessions *s, const struct log *log)
{
	int64_t left;

	while (o->control) {
		left = o->asked_ms + USAGE_MS - now_ms();
		if (o->asked_ms && left > 0 && sessions_usage_is_due(s))
			return (int)left;
		if (o->asked_ms)
			answer_list(o, s);
		if (!control_take(o->control, 0, &o->asked))
			break;
		serve_request(o, s, log);
	}
	return -1;
}
