/* SPDX-License-Identifier: MIT */
/*
 * asan.c - the options of AddressSanitizer, compiled in
 *
 * A login scrubs its environment, and ASAN_OPTIONS with it. The quarantine of
 * freed memory is kept small, or else tests of memory limits could not pass.
 */

const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "detect_leaks=0:quarantine_size_mb=4";
}
