/* SPDX-License-Identifier: MIT */
/*
 * traffic.c - figures of the requests to each path, for Prometheus
 *
 * Runs in:   front end, confined
 * Trusts:    the table of paths: a client cannot make a new label
 * Leaves:    text in the format of Prometheus, version 0.0.4
 *
 * A path has figures from its first request on. Requests without a place in the
 * table of paths are counted together, as path="other".
 */
#include "repl/serve/parts.h"

#include <string.h>

static const double bounds[TRAFFIC_BOUNDS] = {
	.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60};

/* The row of the place; the table of paths has each method and path once. */
static struct traffic_row *find_row(
	struct traffic *t, const char *method, const char *path)
{
	size_t i = 0;

	while (i < t->n &&
		(t->rows[i].method != method || t->rows[i].path != path))
		i++;
	if (i == TRAFFIC_ROWS)
		return &t->rows[0];
	if (i == t->n)
		t->rows[t->n++] =
			(struct traffic_row){.method = method, .path = path};
	return &t->rows[i];
}

void traffic_count(struct traffic *t, const struct span *r)
{
	static const char other[] = "other";
	bool known = r->place_path;
	struct traffic_row *row = find_row(t, known ? r->place_method : other,
		known ? r->place_path : other);
	double s = (double)r->took_ns / 1e9;
	int i = 0;

	while (i < TRAFFIC_BOUNDS && s > bounds[i])
		i++;
	row->took[i]++;
	row->seconds += s;
	row->outcomes[span_outcome(r)]++;
	row->cpu_ms += r->cpu_ms > 0 ? (uint64_t)r->cpu_ms : 0;
	row->in += r->in;
	row->out += r->out;
}

static void print_name(
	struct strbuf *b, const char *name, const struct traffic_row *row)
{
	strbuf_printf(b, "cellblock_%s{method=\"%s\",path=\"%s\"", name,
		row->method, row->path);
}

static void print_outcomes(struct strbuf *b, const struct traffic *t)
{
	static const char name[] = "requests_total";

	metrics_print_head(b, "cellblock_requests_total", "counter",
		"Requests, by path and by how they ended.");
	for (size_t i = 0; i < t->n; i++)
		for (int k = 0; k < SPAN_OUTCOMES; k++) {
			print_name(b, name, &t->rows[i]);
			strbuf_printf(b, ",outcome=\"%s\"} %llu\n",
				span_outcome_name((enum span_outcome)k),
				(unsigned long long)t->rows[i].outcomes[k]);
		}
}

static void print_row_times(struct strbuf *b, const struct traffic_row *row)
{
	static const char bucket[] = "http_seconds_bucket";
	unsigned long long n = 0;

	for (int k = 0; k < TRAFFIC_BOUNDS; k++) {
		n += row->took[k];
		print_name(b, bucket, row);
		strbuf_printf(b, ",le=\"%g\"} %llu\n", bounds[k], n);
	}
	n += row->took[TRAFFIC_BOUNDS];
	print_name(b, bucket, row);
	strbuf_printf(b, ",le=\"+Inf\"} %llu\n", n);
	print_name(b, "http_seconds_sum", row);
	strbuf_printf(b, "} %.9g\n", row->seconds);
	print_name(b, "http_seconds_count", row);
	strbuf_printf(b, "} %llu\n", n);
}

static void print_times(struct strbuf *b, const struct traffic *t)
{
	metrics_print_head(b, "cellblock_http_seconds", "histogram",
		"Time from the first byte of a request to the last of its "
		"answer.");
	for (size_t i = 0; i < t->n; i++)
		print_row_times(b, &t->rows[i]);
}

static void print_sums(struct strbuf *b, const struct traffic *t)
{
	metrics_print_head(b, "cellblock_jail_cpu_seconds_total", "counter",
		"CPU time of programs and cells.");
	for (size_t i = 0; i < t->n; i++) {
		print_name(b, "jail_cpu_seconds_total", &t->rows[i]);
		strbuf_printf(b, "} %.9g\n", (double)t->rows[i].cpu_ms / 1e3);
	}
	metrics_print_head(b, "cellblock_received_bytes_total", "counter",
		"Bytes of the bodies of requests.");
	for (size_t i = 0; i < t->n; i++) {
		print_name(b, "received_bytes_total", &t->rows[i]);
		strbuf_printf(b, "} %llu\n", (unsigned long long)t->rows[i].in);
	}
	metrics_print_head(b, "cellblock_sent_bytes_total", "counter",
		"Bytes of the bodies of answers.");
	for (size_t i = 0; i < t->n; i++) {
		print_name(b, "sent_bytes_total", &t->rows[i]);
		strbuf_printf(
			b, "} %llu\n", (unsigned long long)t->rows[i].out);
	}
}

void traffic_print(struct strbuf *b, const struct traffic *t)
{
	print_outcomes(b, t);
	print_times(b, t);
	print_sums(b, t);
}
