/* SPDX-License-Identifier: MIT */
/*
 * setup.c - from the configuration to a jail that stands
 *
 * Runs in:   front end, before and just after the warden is forked
 * Trusts:    the merged configuration; of the environment only TERM, and that
 *            only when it looks like the name of a terminal
 */
#include "setup.h"

#include "jail/base/err.h"
#include "jail/jail.h"
#include "repl/config/config.h"
#include "repl/config/options.h"
#include "repl/term/terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A terminal's name: no slash, no blank, nothing that terminfo would take
 * for a path. */
static void copy_term(char *buf, size_t size, const char *term)
{
	static const char ok[] = "abcdefghijklmnopqrstuvwxyz"
				 "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_+.";

	if (!term || !*term || *term == '.' || strlen(term) >= 48 ||
		strspn(term, ok) != strlen(term))
		term = "dumb";
	snprintf(buf, size, "%s", term);
}

const char *const *setup_list(
	const char *to[static SETUP_LIST + 1], const struct strlist *l)
{
	size_t n = l->n < SETUP_LIST ? l->n : SETUP_LIST;

	for (size_t i = 0; i < n; i++)
		to[i] = l->items[i];
	to[n] = NULL;
	return n ? to : NULL;
}

int setup_spec(struct jail_spec *spec, struct setup *s,
	const struct config *cfg, const struct options *opt,
	const struct terminal *t, enum spec_mode mode, struct err *e)
{
	if (config_choose_python(
		    cfg, opt->python, s->python, sizeof(s->python), e) < 0)
		return -1;
	copy_term(s->term, sizeof(s->term), getenv("TERM"));
	*spec = (struct jail_spec){
		.limits = cfg->limits,
		.mode = mode,
		.python = s->python,
		.packages = cfg->packages,
		.expose = setup_list(s->expose, &cfg->expose),
		.env = setup_list(s->env, &cfg->env),
		.require = setup_list(s->require, &cfg->require),
		.term = s->term,
		.uid_lo = cfg->uids.lo,
		.uid_hi = cfg->uids.hi,
		.rows = t->rows,
		.cols = t->cols,
		.tty_bits = (unsigned)(t->in_tty | t->out_tty << 1 |
				       t->err_tty << 2),
	};
	return 0;
}

int setup_failed(struct err *e, const struct err *why)
{
	if (why)
		*e = *why;
	else
		err_set(e, "the jail could not be built");
	return e->kind == ERR_CONFIG ? -1 : err_kind_set(e, ERR_JAIL);
}

int setup_wait_built(struct jail *j, int timeout_ms, char *limited, size_t size,
	struct err *e)
{
	struct jail_event ev;
	int r = jail_wait(j, &ev, timeout_ms, e);

	if (r < 0) {
		err_wrap(e, "the jail could not be built");
		return err_kind_set(e, ERR_JAIL);
	}
	if (r == 0)
		return 0;
	if (ev.type == JAIL_BUILT) {
		if (limited)
			snprintf(limited, size, "%s", ev.limited);
		r = 0;
	} else {
		r = setup_failed(e, ev.type == JAIL_FAILED ? &ev.err : NULL);
	}
	jail_event_close(&ev);
	return r;
}
