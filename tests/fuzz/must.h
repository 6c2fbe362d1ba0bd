/* SPDX-License-Identifier: MIT */
/*
 * must.h - a claim that holds for any bytes, or libFuzzer has a finding
 */
#ifndef TESTS_FUZZ_MUST_H
#define TESTS_FUZZ_MUST_H

#include <stdlib.h>

static inline void must(int claim)
{
	if (!claim)
		abort();
}

#endif
