/* SPDX-License-Identifier: MIT */
/*
 * defaults.h - the limits of a session that configures nothing
 */
#ifndef TESTS_LIB_DEFAULTS_H
#define TESTS_LIB_DEFAULTS_H

#include "repl/config/config.h"

#include <stdlib.h>

static inline struct limits default_limits(void)
{
	struct config cfg;
	struct limits limits;

	if (config_init(&cfg) < 0)
		abort();
	limits = cfg.limits;
	config_fini(&cfg);
	return limits;
}

#endif
