/* SPDX-License-Identifier: MIT */
/* fuzz-sources: repl/maker/order.c repl/session/setup.c repl/config/config.c
 * repl/config/errors.c repl/config/exam.c repl/config/file.c
 * repl/config/keys.c repl/config/value.c jail/enforce.c */
/* fuzz-libs: -linih */
/*
 * fuzz_order.c - any bytes as a request for a session
 *
 * They change an order that is in order. An order that is accepted is no looser
 * than the configuration in any key, and names only paths of the configuration.
 */
#include "must.h"

#include "jail/base/err.h"
#include "jail/jail.h"
#include "repl/config/config.h"
#include "repl/maker/maker.h"
#include "repl/session/session.h"

#include <stdlib.h>
#include <string.h>

/* setup.c is linked for its lists; it waits for no jail here. */
int jail_wait(
	struct jail *j, struct jail_event *ev, int timeout_ms, struct err *e)
{
	(void)j;
	(void)ev;
	(void)timeout_ms;
	(void)e;
	abort();
}

void jail_event_close(struct jail_event *ev)
{
	(void)ev;
	abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void load(struct config *cfg)
{
	must(config_init(cfg) == 0);
	must(strlist_add(&cfg->executable, "/usr/bin/python3.12") == 0);
	must(strlist_add(&cfg->expose, "/srv/a") == 0);
	must(strlist_add(&cfg->expose, "/srv/b") == 0);
	must(strlist_add(&cfg->require, "memory") == 0);
	must(strlist_add(&cfg->env, "A=b") == 0);
}

static size_t make(
	char *message, const struct config *cfg, const uint8_t *data, size_t n)
{
	struct setup s = {.term = "xterm"};
	struct jail_spec spec = {.limits = cfg->limits,
		.mode = SPEC_PROGRAM,
		.python = cfg->executable.items[0],
		.term = s.term,
		.env = setup_env(s.env, &cfg->env, true)};
	struct order o;
	size_t size = sizeof(o);

	must(order_fill(&o, &spec, cfg, cfg, NULL) == 0);
	memcpy(message, &o, size);
	for (size_t i = 0; i < n && i < size; i++)
		message[i] ^= (char)data[i];
	/* One byte more, and the size is another one. */
	return n > size ? n - size - 1 : size;
}

static void check_spec(const struct order *o, const struct config *cfg)
{
	struct setup s;
	struct jail_spec spec;
	struct config taken = {0};

	order_spec(o, cfg, &s, &spec);
	must(strlist_has(&cfg->executable, spec.python));
	for (size_t i = 0; spec.expose && spec.expose[i]; i++)
		must(strlist_has(&cfg->expose, spec.expose[i]));
	must(spec.require && !strcmp(spec.require[0], "memory"));
	must(spec.tty_bits <= 7 && strlen(spec.term) < sizeof(s.term));
	must(spec.mode == SPEC_SESSION || spec.mode == SPEC_PROGRAM ||
		spec.mode == SPEC_CELL);
	must(spec.uid_lo == cfg->uids.lo && spec.uid_hi == cfg->uids.hi);
	taken.limits = spec.limits;
	for (size_t i = 0; i < CONFIG_NKEYS; i++) {
		const struct config_key *k = &config_keys[i];
		union config_value v = {.n = 0};

		if (k->offset >= sizeof(struct limits))
			continue;
		v.n = config_value_number(&taken, k);
		must(config_value_may_be(k, v.n) &&
			config_value_tightens(cfg, k, &v));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char message[sizeof(struct order)];
	struct config cfg;
	struct order o;
	struct err e = {0};
	size_t size;

	load(&cfg);
	size = make(message, &cfg, data, n);
	memcpy(&o, message, sizeof(o));
	if (order_check(&o, size, &cfg, &e) == 0) {
		must(size == sizeof(o));
		check_spec(&o, &cfg);
	} else {
		must(e.msg[0]);
	}
	config_fini(&cfg);
	return 0;
}
