/* SPDX-License-Identifier: MIT */
/*
 * check.c - what this host enforces, and what to do about the rest
 *
 * Runs in:   front end, instead of a session; nothing is confined
 * Trusts:    the warden of the jail that we try
 *
 * We try every row, and assume nothing: we build a jail as for any session,
 * with its cgroup and namespaces and everything that the configuration shows in
 * it, and end it before Python starts.
 */
#include "run.h"

#include "jail/base/err.h"
#include "jail/enforce.h"
#include "jail/jail.h"
#include "jail/spec.h"
#include "repl/attach/attach.h"
#include "repl/maker/maker.h"
#include "repl/term/term.h"
#include "repl/text/text.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The limits, and the kernel. */
#define ROWS_MAX (ENFORCE_LIMITS + 1)

struct row {
	struct enforce is;
	char by[100]; /* storage for is.by, if we make that text */
};

struct check {
	const struct jail_spec *spec;
	struct fetch *fetch;
	struct enforce_facts facts;
	struct err unmet; /* why jail.require is not met */
	bool can_build, is_met;
	/* why no jail was built */
	char why[sizeof(((struct err *)0)->hint) + 220];
	const char *logout;   /* how a logout ends a left session; or NULL */
	const char *forwards; /* for whom sshd forwards ports; or NULL */
	struct row rows[ROWS_MAX];
	size_t n;
};

/* True if the kernel has everything for which we have no fallback: Linux 5.10
 * or newer. A version that we cannot read passes. */
static bool kernel_is_new(const struct enforce_facts *f)
{
	return f->kernel_major == 0 || f->kernel_major > 5 ||
	       (f->kernel_major == 5 && f->kernel_minor >= 10);
}

/* ---- a jail to try ---- */

/* Build a jail and end it. We check jail.require afterwards: a refusal here
 * would hide all later rows. */
static int try_jail(struct check *c, struct err *e)
{
	struct jail_spec spec = *c->spec;
	struct jail_event ev;
	struct jail *jail = NULL;
	int r;

	spec.mode = SPEC_PROGRAM;
	spec.asks_systemd = 1; /* as a session does */
	spec.require = NULL;
	if (fetch_begin(&jail, &spec, c->fetch, e) < 0 ||
		fetch_await(&jail, &spec, c->fetch, e) < 0)
		return -1;
	while ((r = jail_wait(jail, &ev, -1, e)) == 1) {
		jail_event_close(&ev);
		if (ev.type == JAIL_BUILT || ev.type == JAIL_FAILED)
			break;
	}
	if (jail_close(jail, r < 0 ? NULL : e) < 0 || r < 0)
		return -1;
	if (!ev.facts.known) {
		*e = ev.err;
		return -1;
	}
	c->facts = ev.facts;
	c->facts.jail = ev.type == JAIL_BUILT;
	if (!c->facts.jail)
		snprintf(c->why, sizeof(c->why), "%.200s%s%s", ev.err.msg,
			ev.err.hint[0] ? ": " : "", ev.err.hint);
	return 0;
}

/* ---- rows ---- */

static void add_kernel(struct check *c)
{
	struct row *r = &c->rows[c->n++];
	bool new = kernel_is_new(&c->facts);

	snprintf(r->by, sizeof(r->by), "Linux %d.%d", c->facts.kernel_major,
		c->facts.kernel_minor);
	r->is = (struct enforce){.what = "kernel",
		.by = r->by,
		.strength = new ? ENFORCE_STRONG : ENFORCE_NONE,
		.remedy = new ? NULL : "Linux 5.10 or newer is needed"};
}

/* Add the row of a limit. Some rows say more than the table does. */
static void add_limit(struct check *c, enum enforce_limit limit)
{
	struct row *r = &c->rows[c->n++];

	r->is = enforce_look(limit, &c->facts, NULL);
	if (limit == ENFORCE_JAIL && c->why[0])
		r->is.remedy = c->why;
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

/* ---- printing ---- */

/* Add the remedy of row `i`: in full where it comes first, and else the name of
 * that row. */
static void add_remedy(struct text_table *t, const struct check *c, size_t i)
{
	const char *remedy = c->rows[i].is.remedy;
	char as[60];

	for (size_t j = 0; remedy && j < i; j++) {
		const struct enforce *first = &c->rows[j].is;

		if (!first->remedy || strcmp(first->remedy, remedy) != 0)
			continue;
		snprintf(as, sizeof(as), "as for %s", first->what);
		text_table_note(t, as);
		return;
	}
	text_table_note(t, remedy);
}

static int print_people(const struct check *c, struct err *e)
{
	static const char *const heads[] = {
		"what", "enforced by", "strength", "jail.require"};
	struct text_table t = {
		.columns = 4, .width = terminal_columns(STDOUT_FILENO)};
	struct strbuf b = {0};
	int r;

	text_table_add(&t, heads);
	for (size_t i = 0; i < c->n; i++) {
		const struct enforce *row = &c->rows[i].is;

		text_table_add(&t, (const char *[]){row->what, row->by,
					   enforce_strength_name(row->strength),
					   row->word});
		add_remedy(&t, c, i);
	}
	text_table_write(&t, &b);
	strbuf_puts(&b, c->can_build ? "A jail can be built here.\n"
				     : "No jail can be built here.\n");
	if (!c->is_met)
		strbuf_printf(&b, "No session starts here: %s\n", c->unmet.msg);
	if (c->logout)
		strbuf_printf(&b,
			"A session that goes on without its terminal: %s\n",
			c->logout);
	if (c->forwards)
		strbuf_printf(&b, "Not shut: %s\n", c->forwards);
	r = b.failed ? err_set(e, "out of memory") : 0;
	if (r == 0)
		fputs(b.s, stdout);
	strbuf_free(&b);
	return r;
}

static int print_json(const struct check *c, struct err *e)
{
	json_t *rows = json_array();
	json_t *top = json_pack("{s:s, s:s, s:b, s:b, s:s?, s:s?, s:s?, s:o}",
		"version", CELLBLOCK_VERSION, "python", c->spec->python, "jail",
		c->can_build, "require_met", c->is_met, "unmet",
		c->is_met ? NULL : c->unmet.msg, "logout", c->logout,
		"forwards", c->forwards, "checks", rows);
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

static int find_and_print(
	struct check *c, bool json, bool verbose, struct err *e)
{
	if (try_jail(c, e) < 0)
		return err_kind_set(e, ERR_JAIL);
	c->can_build =
		c->facts.jail && c->facts.seccomp && kernel_is_new(&c->facts);
	c->is_met = enforce_require(
			    c->spec->require, &c->facts, -1, &c->unmet) == 0;
	add_kernel(c);
	for (int i = 0; i < ENFORCE_LIMITS; i++)
		add_limit(c, (enum enforce_limit)i);
	if (json ? print_json(c, e) < 0 : print_people(c, e) < 0)
		return -1;
	if (verbose && !json) {
		putchar('\n');
		if (jail_print_plan(c->spec, &c->facts, stdout, e) < 0)
			return -1;
	}
	return c->can_build && c->is_met ? 0 : 125;
}

int check_run(const struct check_what *what, struct err *e)
{
	struct check c = {.spec = what->spec, .fetch = what->fetch};
	struct logout l;
	char forwards[400];

	c.forwards = sshd_tell(forwards, sizeof(forwards));
	if (what->lingers) {
		logout_ask(&l, what->person, getpid(), false);
		c.logout = logout_tell(&l);
	}
	return find_and_print(&c, what->json, what->verbose, e);
}
