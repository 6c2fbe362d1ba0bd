/* SPDX-License-Identifier: MIT */
/*
 * metrics.c - figures for Prometheus
 *
 * Runs in:   front end, confined
 * Leaves:    text in the format of Prometheus, version 0.0.4
 */
#include "repl/serve/parts.h"

#include "jail/prewarm.h"
#include "repl/session/session.h"
#include "repl/text/text.h"

#include <stdio.h>

static const double bounds[METRICS_BOUNDS] = {
	.002, .003, .005, .01, .015, .025, .05, .1, .25, 1, 5, 30};

void metrics_answered(struct metrics *m, int status)
{
	for (; m; m = m->all)
		m->statuses[status / 100 % 6]++;
}

void metrics_ran(
	struct metrics *m, enum jail_limit limit, int failed, int64_t took_ns)
{
	double s = (double)took_ns / 1e9;
	int i = 0;

	while (i < METRICS_BOUNDS && s > bounds[i])
		i++;
	for (; m; m = m->all) {
		m->runs++;
		m->failed += (uint64_t)failed;
		m->limits[limit]++;
		m->seconds += s;
		m->took[i]++;
	}
}

void metrics_gone(struct metrics *m)
{
	for (; m; m = m->all)
		m->gone++;
}

void metrics_session(struct metrics *m)
{
	for (; m; m = m->all)
		m->sessions++;
}

void metrics_cell(struct metrics *m, enum jail_limit limit)
{
	for (; m; m = m->all) {
		m->cells++;
		m->limits[limit]++;
	}
}

void metrics_print_head(
	struct strbuf *b, const char *name, const char *type, const char *help)
{
	strbuf_printf(
		b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void print_head(
	struct strbuf *b, const char *name, const char *type, const char *help)
{
	char full[96];

	snprintf(full, sizeof(full), "cellblock_%s", name);
	metrics_print_head(b, full, type, help);
}

static void print_one(struct strbuf *b, const char *name, const char *type,
	const char *help, unsigned long long n)
{
	print_head(b, name, type, help);
	strbuf_printf(b, "cellblock_%s %llu\n", name, n);
}

static void print_time(struct strbuf *b, const struct metrics *m)
{
	static const char name[] = "request_seconds";
	unsigned long long n = 0;

	print_head(b, name, "histogram",
		"Time from a whole request to its answer, of those that ran.");
	for (int i = 0; i < METRICS_BOUNDS; i++) {
		n += m->took[i];
		strbuf_printf(b, "cellblock_%s_bucket{le=\"%g\"} %llu\n", name,
			bounds[i], n);
	}
	strbuf_printf(b,
		"cellblock_%s_bucket{le=\"+Inf\"} %llu\n"
		"cellblock_%s_sum %.9g\ncellblock_%s_count %llu\n",
		name, (unsigned long long)m->runs, name, m->seconds, name,
		(unsigned long long)m->runs);
}

/* The figures of each tenant, if there are any. */
static void print_tenants(struct strbuf *b, const struct tenants *t)
{
	static const struct {
		const char *name, *label, *help;
		size_t at;
	} counters[] = {
		{"answers_total", ",status=\"2xx\"",
			"Answers to a tenant, by status.",
			offsetof(struct metrics, statuses[2])},
		{"answers_total", ",status=\"4xx\"", NULL,
			offsetof(struct metrics, statuses[4])},
		{"answers_total", ",status=\"5xx\"", NULL,
			offsetof(struct metrics, statuses[5])},
		{"runs_total", "", "Programs of a tenant that ran.",
			offsetof(struct metrics, runs)},
		{"sessions_total", "", "Sessions that a tenant began.",
			offsetof(struct metrics, sessions)},
		{"cells_total", "", "Cells of a tenant that ended.",
			offsetof(struct metrics, cells)},
	};
	const struct metrics *m;
	const char *name;
	char full[64];

	if (!tenants_each(t, 0, &name))
		return;
	for (size_t i = 0; i < COUNT(counters); i++) {
		snprintf(full, sizeof(full), "tenant_%s", counters[i].name);
		if (counters[i].help)
			print_head(b, full, "counter", counters[i].help);
		for (size_t k = 0; (m = tenants_each(t, k, &name)); k++)
			strbuf_printf(b, "cellblock_%s{tenant=\"%s\"%s} %llu\n",
				full, name, counters[i].label,
				(unsigned long long)*(
					const uint64_t *)((const char *)m +
							  counters[i].at));
	}
}

void metrics_print(struct strbuf *b, const struct tenants *t,
	const struct metrics_now *now)
{
	const struct metrics *m = tenants_all(t);
	const struct pool_count *c = now->jails;

	print_head(b, "answers_total", "counter", "Answers, by status.");
	for (int i = 1; i < 6; i++)
		strbuf_printf(b,
			"cellblock_answers_total{status=\"%dxx\"} %llu\n", i,
			(unsigned long long)m->statuses[i]);
	print_head(b, "limits_total", "counter",
		"Programs and cells that a limit ended.");
	for (int i = 0; i <= LIMIT_OUTPUT; i++)
		if (verdict_limit_key((enum jail_limit)i))
			strbuf_printf(b,
				"cellblock_limits_total{limit=\"%s\"} %llu\n",
				verdict_limit_key((enum jail_limit)i),
				(unsigned long long)m->limits[i]);
	print_one(b, "jails_failed_total", "counter",
		"Requests whose jail could not be built.", m->failed);
	print_one(b, "clients_gone_total", "counter",
		"Requests whose client went away.", m->gone);
	print_one(b, "clients", "gauge", "Clients that are connected.",
		now->clients);
	print_one(b, "running", "gauge", "Requests that run.", now->running);
	print_one(b, "waiting", "gauge", "Requests that wait.", now->waiting);
	print_one(b, "sessions", "gauge", "Sessions.", now->sessions);
	print_one(b, "sessions_busy", "gauge", "Sessions that serve a request.",
		now->busy);
	print_one(b, "sessions_total", "counter", "Sessions that were begun.",
		m->sessions);
	print_one(b, "cells_total", "counter", "Cells of sessions that ended.",
		m->cells);
	print_one(b, "log_lost_total", "counter",
		"Lines that the log could not take.", now->log_lost);
	print_one(
		b, "files", "gauge", "Files that are kept.", now->store.files);
	print_one(b, "files_bytes", "gauge", "Their bytes.",
		(unsigned long long)now->store.bytes);
	print_one(b, "files_dropped_total", "counter",
		"Files of answers that went to make room for others.",
		(unsigned long long)now->store.dropped);
	print_one(b, "kept_answers", "gauge",
		"Answers that are kept for an Idempotency-Key.",
		(unsigned long long)now->answers);
	print_one(b, "kept_answers_bytes", "gauge", "Their bytes.",
		(unsigned long long)now->answers_bytes);
	print_head(b, "jails", "gauge", "Jails.");
	strbuf_printf(b,
		"cellblock_jails{state=\"spare\"} %d\n"
		"cellblock_jails{state=\"building\"} %d\n"
		"cellblock_jails{state=\"taken\"} %d\n"
		"cellblock_jails{state=\"ending\"} %d\n",
		c->ready, c->making, c->taken, c->ending);
	print_time(b, m);
	print_tenants(b, t);
}
