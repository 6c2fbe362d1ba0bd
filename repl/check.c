/* SPDX-License-Identifier: MIT */
/*
 * check.c - what this host enforces, and what to do about the rest
 *
 * Runs in:   front end, instead of a session; nothing is confined
 * Trusts:    the kernel's answers
 *
 * Every row is found out, not assumed: by looking where looking is enough, by
 * trying where it is not: namespaces in a child, and a cgroup with the limits
 * of a session.
 */
#include "check.h"

#include "jail/apply/enforce.h"
#include "jail/apply/trial.h"
#include "jail/base/err.h"
#include "jail/host/host.h"
#include "jail/plan/plan.h"
#include "jail/spec.h"
#include "jail/walls/cgroup/cgroup.h"
#include "repl/config/config.h"
#include "repl/session/setup.h"
#include "repl/term/terminal.h"
#include "repl/text/strbuf.h"
#include "repl/text/table.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Beside the limits: the kernel. */
#define ROWS_MAX (ENFORCE_LIMITS + 1)

struct row {
	struct enforce is;
	char by[100]; /* room for what is made here */
};

struct check {
	const struct config *cfg;
	struct host host;
	struct enforce_facts facts;
	struct err unmet; /* why jail.require is not met */
	bool can_build, is_met;
	char userns_remedy[sizeof(((struct err *)0)->hint) + 220];
	char cgroup_remedy[300];
	struct row rows[ROWS_MAX];
	size_t n;
};

/* Everything that no row can replace is there from 5.10 on. A version that
 * cannot be read is not held against the host. */
static bool kernel_is_new(const struct host *h)
{
	return h->kernel_major == 0 || h->kernel_major > 5 ||
	       (h->kernel_major == 5 && h->kernel_minor >= 10);
}

/* ---- finding out ---- */

/* Make a session's cgroup, see what the kernel kept of its limits, and remove
 * it: some hosts accept a limit and ignore it. */
static void try_cgroup(struct check *c, struct cgroup *cg)
{
	struct cgroup_caps caps = {.kind = CGROUP_NONE};
	struct err e = {0};
	sigset_t all, before;

	/* Nobody else would remove it before a session ends. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	cgroup_probe(&caps, 0);
	if (cgroup_place(cg, &caps, NULL, &e) < 0 ||
		cgroup_open(cg, &caps, &c->cfg->limits, &e) < 0) {
		snprintf(caps.why, sizeof(caps.why), "%.250s", e.msg);
		caps.kind = CGROUP_NONE;
	}
	enforce_facts(&c->facts, &c->host, cg, &caps);
	cgroup_close(cg);
	cgroup_remove(cg, 1000, NULL);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (c->facts.cgroup_remedy) {
		snprintf(c->cgroup_remedy, sizeof(c->cgroup_remedy), "%s",
			caps.why);
		c->facts.cgroup_remedy = c->cgroup_remedy;
	}
}

static void find_out(struct check *c)
{
	const char *const *words = NULL;
	const char *list[SETUP_LIST + 1];
	struct cgroup cg;

	trial_run(&c->host, c->cfg->uids.lo, c->cfg->uids.hi);
	try_cgroup(c, &cg);
	c->host.cgroup_memory = c->facts.memory;
	c->facts.userns = c->host.userns;
	snprintf(c->userns_remedy, sizeof(c->userns_remedy), "%.200s%s%s",
		c->host.why.msg, c->host.why.hint[0] ? ": " : "",
		c->host.why.hint);
	c->facts.userns_remedy = c->userns_remedy;
	c->can_build =
		c->facts.userns && c->facts.seccomp && kernel_is_new(&c->host);
	words = setup_list(list, &c->cfg->require);
	c->is_met = enforce_require(words, &c->facts, -1, &c->unmet) == 0;
}

/* ---- rows ---- */

static void add_kernel(struct check *c)
{
	struct row *r = &c->rows[c->n++];
	bool new = kernel_is_new(&c->host);

	snprintf(r->by, sizeof(r->by), "Linux %d.%d", c->host.kernel_major,
		c->host.kernel_minor);
	r->is = (struct enforce){.what = "kernel",
		.by = r->by,
		.strength = new ? ENFORCE_STRONG : ENFORCE_NONE,
		.remedy = new ? NULL : "Linux 5.10 or newer is needed"};
}

/* Some rows can say more than the table does. */
static void add_detail(
	const struct check *c, enum enforce_limit limit, struct row *r)
{
	if (limit == ENFORCE_CALLS && c->facts.seccomp)
		snprintf(r->by, sizeof(r->by), "seccomp, %d instructions",
			c->facts.seccomp);
	else if (limit == ENFORCE_LANDLOCK && r->is.strength == ENFORCE_STRONG)
		snprintf(r->by, sizeof(r->by), "Landlock ABI %d",
			c->facts.landlock_abi);
	else
		return;
	r->is.by = r->by;
}

static void add_limits(struct check *c)
{
	for (int i = 0; i < ENFORCE_LIMITS; i++) {
		enum enforce_limit limit = (enum enforce_limit)i;
		struct row *r = &c->rows[c->n++];

		r->is = enforce_look(limit, &c->facts, NULL);
		add_detail(c, limit, r);
	}
}

/* ---- telling ---- */

static int print_people(const struct check *c, struct err *e)
{
	static const char *const heads[] = {
		"what", "enforced by", "strength", "jail.require"};
	struct table t = {
		.columns = 4, .width = terminal_columns(STDOUT_FILENO)};
	struct strbuf b = {0};
	int r;

	table_add(&t, heads);
	for (size_t i = 0; i < c->n; i++) {
		const struct enforce *row = &c->rows[i].is;

		table_add(&t, (const char *[]){row->what, row->by,
				      enforce_strength_name(row->strength),
				      row->word});
		table_note(&t, row->remedy);
	}
	table_write(&t, &b);
	strbuf_puts(&b, c->can_build ? "A jail can be built here.\n"
				     : "No jail can be built here.\n");
	if (!c->is_met)
		strbuf_printf(&b, "No session starts here: %s\n", c->unmet.msg);
	r = b.failed ? err_set(e, "out of memory") : 0;
	if (r == 0)
		fputs(b.s, stdout);
	strbuf_free(&b);
	return r;
}

static int print_json(const struct check *c, struct err *e)
{
	json_t *rows = json_array();
	json_t *top = json_pack("{s:s, s:s, s:b, s:b, s:s?, s:o}", "version",
		CELLBLOCK_VERSION, "python", c->host.python.path, "jail",
		c->can_build, "require_met", c->is_met, "unmet",
		c->is_met ? NULL : c->unmet.msg, "checks", rows);
	int r = 0;

	for (size_t i = 0; top && i < c->n; i++) {
		const struct enforce *row = &c->rows[i].is;

		if (json_array_append_new(
			    rows, json_pack("{s:s, s:s?, s:s, s:s, s:s?}",
					  "what", row->what, "word", row->word,
					  "enforced_by", row->by, "strength",
					  enforce_strength_name(row->strength),
					  "remedy", row->remedy)) < 0)
			r = -1;
	}
	if (!top || r < 0 || json_dumpf(top, stdout, JSON_INDENT(2)) < 0)
		r = err_set(e, "write the answer as JSON");
	else
		putchar('\n');
	json_decref(top);
	return r;
}

/* What would be done, step by step. */
static int print_plan(struct check *c, const char *python, struct err *e)
{
	const char *expose[SETUP_LIST + 1], *require[SETUP_LIST + 1];
	struct jail_spec spec = {.limits = c->cfg->limits,
		.python = python,
		.packages = c->cfg->packages,
		.expose = setup_list(expose, &c->cfg->expose),
		.require = setup_list(require, &c->cfg->require),
		.uid_lo = c->cfg->uids.lo,
		.uid_hi = c->cfg->uids.hi};
	struct plan plan;

	host_resolve(&c->host, &spec);
	if (plan_make(&plan, &spec, &c->host, e) < 0)
		return -1;
	putchar('\n');
	plan_print(&plan, stdout);
	plan_fini(&plan);
	return 0;
}

int check_run(const struct config *cfg, const char *python, bool json,
	bool verbose, struct err *e)
{
	struct check c = {.cfg = cfg};
	int r = 0;

	if (host_probe(&c.host, python, e) < 0)
		return err_kind_set(e, ERR_JAIL);
	find_out(&c);
	add_kernel(&c);
	add_limits(&c);
	if (json)
		r = print_json(&c, e);
	else
		r = print_people(&c, e);
	if (r == 0 && verbose && !json)
		r = print_plan(&c, python, e);
	host_fini(&c.host);
	if (r < 0)
		return -1;
	return c.can_build && c.is_met ? 0 : 125;
}
