/* SPDX-License-Identifier: MIT */
/*
 * order.c - what a client asks the maker for
 *
 * Runs in:   front end (fills it in); a child of the maker, as root (checks)
 * Trusts:    the system's configuration. An order is hostile: any bytes
 */
#include "repl/maker/maker.h"

#include "jail/base/err.h"
#include "jail/enforce.h"
#include "repl/attach/attach.h"
#include "repl/config/config.h"
#include "repl/session/session.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

_Static_assert(SETUP_LIST <= 64 && ENFORCE_LIMITS <= 64,
	"a bit for each item of a list");

_Static_assert(offsetof(struct config, limits) == 0, "limits come first");

static bool is_limit(const struct config_key *key)
{
	return key->offset < sizeof(struct limits);
}

/* ---- filled in ---- */

static int is_not_the_systems(const char *key, struct err *e)
{
	err_set(e, "%s is not as the system's configuration has it", key);
	return err_kind_set(e, ERR_CONFIG);
}

/* The index of an item; -1: none. */
static int place_of(const struct strlist *l, const char *item)
{
	for (size_t i = 0; i < l->n; i++)
		if (!strcmp(l->items[i], item))
			return (int)i;
	return -1;
}

static bool is_same_list(const struct strlist *a, const struct strlist *b)
{
	for (size_t i = 0; i < a->n && i < b->n; i++)
		if (strcmp(a->items[i], b->items[i]) != 0)
			return false;
	return a->n == b->n;
}

static int fill_lists(struct order *o, const struct config *mine,
	const struct config *system, struct err *e)
{
	for (size_t i = 0; i < mine->expose.n; i++) {
		int at = place_of(&system->expose, mine->expose.items[i]);

		if (at < 0)
			return is_not_the_systems("jail.expose", e);
		o->expose |= UINT64_C(1) << at;
	}
	for (size_t i = 0; i < mine->require.n; i++) {
		int at = enforce_word_find(mine->require.items[i]);

		if (at >= 0)
			o->require |= UINT64_C(1) << at;
	}
	if (mine->until_min != system->until_min)
		return is_not_the_systems("session.until", e);
	if (!is_same_list(&mine->packages, &system->packages))
		return is_not_the_systems("python.packages", e);
	return is_same_list(&mine->env, &system->env)
		       ? 0
		       : is_not_the_systems("python.env", e);
}

int order_fill(struct order *o, const struct jail_spec *spec,
	const struct config *mine, const struct config *system, struct err *e)
{
	int python = place_of(&system->executable, spec->python);
	size_t env = 0;

	/* We send the order as it is in memory, with the padding. */
	memset(o, 0, sizeof(*o));
	o->version = ORDER_VERSION;
	o->mode = spec->mode;
	o->limits = spec->limits;
	o->tty_bits = spec->tty_bits;
	o->rows = spec->rows;
	o->cols = spec->cols;
	snprintf(o->term, sizeof(o->term), "%s", spec->term);
	while (spec->env && spec->env[env])
		env++;
	o->plain = env > mine->env.n;
	if (python < 0)
		return is_not_the_systems("the interpreter", e);
	o->python = (uint32_t)python;
	if (fill_lists(o, mine, system, e) < 0)
		return -1;
	return order_check(o, sizeof(*o), system, e);
}

void order_fill_all(
	struct order *o, enum spec_mode mode, const struct config *system)
{
	*o = (struct order){.version = ORDER_VERSION,
		.mode = mode,
		.limits = system->limits,
		.term = "xterm-256color",
		.rows = 24,
		.cols = 80};
	for (size_t i = 0; i < system->expose.n && i < SETUP_LIST; i++)
		o->expose |= UINT64_C(1) << i;
}

/* ---- checked ---- */

static int malformed(struct err *e)
{
	err_set(e, "malformed request for a session");
	return err_kind_set(e, ERR_CONFIG);
}

static int check_limit(const struct config_key *key, const struct config *asked,
	const struct config *system, struct err *e)
{
	union config_value v = {.n = config_value_number(asked, key)};
	char theirs[32], ours[64];

	if (!config_value_may_be(key, v.n))
		return malformed(e);
	if (config_value_tightens(system, key, &v))
		return 0;
	err_set(e,
		"%s.%s: %s is looser than the %s of the system's "
		"configuration",
		key->section, key->name,
		config_value_format_number(key, v.n, theirs, sizeof(theirs)),
		config_value_format(system, key, ours, sizeof(ours)));
	return err_kind_set(e, ERR_CONFIG);
}

static int check_shape(const struct order *o, size_t n, struct err *e)
{
	if (n >= sizeof(o->version) && o->version != ORDER_VERSION) {
		err_set(e,
			"cellblock-maker is cellblock %s, and this is another "
			"build",
			CELLBLOCK_VERSION);
		err_hint(e, "restart it: systemctl restart "
			    "cellblock-maker.service");
		return err_kind_set(e, ERR_CONFIG);
	}
	if (n != sizeof(*o) || o->mode > SPEC_CELL || o->plain > 1 ||
		o->tty_bits > 7 || !memchr(o->term, '\0', sizeof(o->term)) ||
		!memchr(o->from, '\0', sizeof(o->from)) ||
		o->number > RUNDIR_SESSIONS || o->require >> ENFORCE_LIMITS)
		return malformed(e);
	return 0;
}

int order_check(const struct order *o, size_t n, const struct config *system,
	struct err *e)
{
	struct config asked = {0};

	if (check_shape(o, n, e) < 0)
		return -1;
	if (o->python >= system->executable.n ||
		(system->expose.n < 64 && o->expose >> system->expose.n))
		return malformed(e);
	asked.limits = o->limits;
	for (int i = 0; i < ENFORCE_LIMITS; i++)
		if (o->require >> i & 1 && !enforce_word((enum enforce_limit)i))
			return malformed(e);
	for (size_t i = 0; i < CONFIG_NKEYS; i++)
		if (is_limit(&config_keys[i]) &&
			check_limit(&config_keys[i], &asked, system, e) < 0)
			return -1;
	return 0;
}

/* ---- the files that are shown ---- */

int order_want_files(struct order *o)
{
	struct stat mounts, root;

	if (stat("/proc/self/ns/mnt", &mounts) < 0 || stat("/", &root) < 0)
		return -1;
	o->mounts = mounts.st_ino;
	o->root_dev = root.st_dev;
	o->root_ino = root.st_ino;
	return 0;
}

int order_check_files(const struct order *o, struct err *e)
{
	struct order ours;

	if (!o->mounts)
		return 0;
	if (order_want_files(&ours) == 0 && o->mounts == ours.mounts &&
		o->root_dev == ours.root_dev && o->root_ino == ours.root_ino)
		return 0;
	err_set(e, "cellblock-maker sees other files: its root directory or "
		   "mount namespace is another one");
	return err_kind_set(e, ERR_CONFIG);
}

/* ---- made into a spec ---- */

/* The system's words, and those that the person adds. */
static const char *const *requirements(
	const struct order *o, const struct strlist *system, struct setup *s)
{
	size_t n = 0;

	setup_list(s->require, system);
	while (s->require[n])
		n++;
	for (int i = 0; i < ENFORCE_LIMITS && n < SETUP_LIST; i++) {
		const char *word = enforce_word((enum enforce_limit)i);

		if (o->require >> i & 1 && place_of(system, word) < 0)
			s->require[n++] = word;
	}
	s->require[n] = NULL;
	return n ? s->require : NULL;
}

static const char *const *exposed(
	const struct order *o, const struct strlist *system, struct setup *s)
{
	size_t n = 0;

	for (size_t i = 0; i < system->n && i < SETUP_LIST; i++)
		if (o->expose >> i & 1)
			s->expose[n++] = system->items[i];
	s->expose[n] = NULL;
	return n ? s->expose : NULL;
}

/* A limit without a key comes from the system's configuration. */
static struct limits limits_of(
	const struct order *o, const struct config *system)
{
	const struct config asked = {.limits = o->limits};
	struct config taken = {.limits = system->limits};

	for (size_t i = 0; i < CONFIG_NKEYS; i++)
		if (is_limit(&config_keys[i]))
			config_value_copy(&taken, &asked, &config_keys[i]);
	return taken.limits;
}

void order_spec(const struct order *o, const struct config *system,
	struct setup *s, struct jail_spec *spec)
{
	setup_term(s->term, sizeof(s->term), o->term);
	*spec = (struct jail_spec){
		.limits = limits_of(o, system),
		.mode = (enum spec_mode)o->mode,
		.python = system->executable.items[o->python],
		.packages = setup_list(s->packages, &system->packages),
		.expose = exposed(o, &system->expose, s),
		.env = setup_env(s->env, &system->env, o->plain),
		.require = requirements(o, &system->require, s),
		.term = s->term,
		.uid_lo = system->uids.lo,
		.uid_hi = system->uids.hi,
		.rows = o->rows,
		.cols = o->cols,
		.tty_bits = o->tty_bits,
	};
	exam_end_day(system, &spec->limits);
}
