/* SPDX-License-Identifier: MIT */
/*
 * setup.c - the jail's specification, from the configuration; the count of
 * sessions
 *
 * Runs in:   front end, before and just after the warden is forked
 * Trusts:    the merged configuration; of the environment only NO_COLOR, and a
 *            TERM that looks like the name of a terminal; the person's state
 *            directory for the count of sessions: a person who can write there
 *            without Cellblock can evade the count
 */
#include "repl/session/session.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/base/slots.h"
#include "jail/jail.h"
#include "repl/config/config.h"
#include "repl/config/options.h"
#include "repl/term/term.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A terminal's name: no slash, no blank, nothing that terminfo would take
 * for a path. */
void setup_term(char *buf, size_t size, const char *term)
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

/* True if Python should not colour its output: the session shows no colours, or
 * the person has set NO_COLOR. */
static bool is_plain(bool shows)
{
	const char *wish = getenv("NO_COLOR");

	return !shows || (wish && *wish);
}

const char *const *setup_env(const char *to[static SETUP_LIST + 2],
	const struct strlist *l, bool plain)
{
	if (!plain)
		return setup_list(to, l);
	to[0] = "NO_COLOR=1";
	setup_list(to + 1, l);
	return to;
}

int setup_check_python(const char *path, struct err *e)
{
	struct stat st;

	if (stat(path, &st) < 0)
		err_errno(e, "python: %s", path);
	else if (!S_ISREG(st.st_mode) || access(path, X_OK) < 0)
		err_set(e, "python: %s: not a program", path);
	else
		return 0;
	return err_kind_set(e, ERR_CONFIG);
}

int setup_spec(struct jail_spec *spec, struct setup *s,
	const struct config *cfg, const struct options *opt,
	const struct terminal *t, enum spec_mode mode, struct err *e)
{
	if (config_choose_python(
		    cfg, opt->python, s->python, sizeof(s->python), e) < 0)
		return -1;
	/* An option is checked before anything begins. */
	if (opt->python && setup_check_python(s->python, e) < 0)
		return err_kind_set(e, ERR_USAGE);
	setup_term(s->term, sizeof(s->term), getenv("TERM"));
	*spec = (struct jail_spec){
		.limits = cfg->limits,
		.mode = mode,
		/* A program ends too soon to be worth the wait. */
		.asks_systemd = mode == SPEC_SESSION || cfg->require.n > 0,
		.python = s->python,
		.packages = setup_list(s->packages, &cfg->packages),
		.expose = setup_list(s->expose, &cfg->expose),
		.env = setup_env(s->env, &cfg->env,
			is_plain(mode != SPEC_SESSION ||
				 (t->colour && cfg->escapes != ESCAPES_PLAIN))),
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

int setup_open_slots(const char *dir, struct err *e)
{
	auto_close int fd = -1;
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/sessions", dir);
	fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK,
		0600);
	if (fd < 0)
		return err_errno(e, "count the sessions in %s", path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(e, "count the sessions in %s: not a file", path);
	return fd_take(&fd);
}

int setup_claim_slot(const struct setup_slots *s, struct err *e)
{
	struct err why = s->why;
	int r = s->fd < 0 ? -1 : slots_claim(s->fd, 0, s->most, &why);

	if (r == 0)
		return slots_all_taken(s->most, e);
	if (r > 0 || !s->must)
		return 0;
	*e = why;
	return err_kind_set(e, ERR_CONFIG);
}

void setup_leave_slot(const struct setup_slots *s)
{
	struct flock all = {.l_type = F_UNLCK, .l_whence = SEEK_SET};

	if (s->fd >= 0)
		fcntl(s->fd, F_OFD_SETLK, &all);
}
