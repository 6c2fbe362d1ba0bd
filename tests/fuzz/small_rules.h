/* SPDX-License-Identifier: MIT */
/*
 * small_rules.h - limits that a fuzzer's requests reach
 */
#ifndef TESTS_FUZZ_SMALL_RULES_H
#define TESTS_FUZZ_SMALL_RULES_H

#include "jail/spec.h"
#include "repl/json/json.h"

static const struct limits limits = {.cell_wall_ms = 1000,
	.source_bytes = 1000,
	.home_bytes = 1000,
	.max_file_bytes = 1000,
	.max_count = 3};
static const char *const pythons[] = {"/usr/bin/env"};
static const struct request_rules rules = {.limits = &limits,
	.most_ms = 10000,
	.pythons = pythons,
	.resolved = pythons,
	.npythons = 1};

#endif
