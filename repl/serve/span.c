/* SPDX-License-Identifier: MIT */
/*
 * span.c - a request from its first byte to its end, for the log and the
 * figures
 *
 * Runs in:   front end, confined
 * Trusts:    nobody: an id, a method and a path are a client's
 * Leaves:    one span for each request, also of one that was malformed
 */
#include "repl/serve/parts.h"

#include "jail/base/io.h"

#include <string.h>

/* Take the id that the client gave the request, or make one. */
static void take_id(
	char id[static SPAN_ID_MAX + 1], const struct framing *asked)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-._~:+/=@";
	const char *sent = asked->values[FRAMING_REQUEST_ID];
	size_t n = sent ? strlen(sent) : 0;

	if (n > 0 && n <= SPAN_ID_MAX && strspn(sent, letters) == n)
		memcpy(id, sent, n + 1);
	else
		store_make_id(id);
}

void span_begin(struct span *r, const struct connections_client *c)
{
	r->cpu_ms = -1;
	take_id(r->id, connections_head(c));
}

int span_leave(struct span *r, const struct connections_client *c)
{
	r->left = strdup(connections_name(c));
	r->asked_ns = now_ns() - connections_took_ns(c);
	return r->left ? 0 : -1;
}

void span_end(struct span *r, const struct connections_client *c)
{
	if (c) {
		r->client = connections_name(c);
		r->method = connections_head(c)->method;
		r->gone = connections_is_gone(c);
		r->took_ns = connections_took_ns(c);
	} else {
		r->client = r->left;
		r->method = "POST"; /* no other request outlives its client */
		r->gone = true;
		r->took_ns = now_ns() - r->asked_ns;
	}
}

void span_fini(struct span *r)
{
	free(r->error);
	free(r->left);
}

void span_note_path(struct span *r, const char *method, const char *path)
{
	r->place_method = method;
	r->place_path = path;
}

void span_note_run(struct span *r, enum jail_limit limit, int64_t cpu_ms)
{
	r->limit = limit;
	/* Where no cgroup counts CPU time, two sums over processes may differ
	 * by one that has ended. */
	r->cpu_ms = cpu_ms > 0 ? cpu_ms : 0;
}

void span_note_failure(struct span *r, const char *why)
{
	free(r->error);
	r->error = strdup(why);
}

enum span_outcome span_outcome(const struct span *r)
{
	if (r->error || r->status == 500)
		return SPAN_FAILED;
	if (r->gone || r->status == 0)
		return SPAN_GONE;
	if (r->status == 429 || r->status == 503 || r->status == 507)
		return SPAN_BUSY;
	if (r->status >= 400)
		return SPAN_REFUSED;
	return r->limit == LIMIT_NONE ? SPAN_OK : SPAN_LIMIT;
}

const char *span_outcome_name(enum span_outcome how)
{
	static const char *const names[SPAN_OUTCOMES] = {
		"ok", "limit", "refused", "busy", "failed", "gone"};

	return names[how];
}
