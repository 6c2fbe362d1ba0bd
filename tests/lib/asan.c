/* SPDX-License-Identifier: MIT */
/*
 * asan.c - what AddressSanitizer is told, where no environment arrives
 *
 * A login scrubs its environment, ASAN_OPTIONS with it. What is freed is kept
 * for a while, but not so much of it that bounds on memory could not be tested.
 */

const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "detect_leaks=0:quarantine_size_mb=4";
}
