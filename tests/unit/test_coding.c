/* SPDX-License-Identifier: MIT */
/*
 * test_coding.c - a script is refused where Python would read other text
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "jail/base/err.h"
#include "repl/command/command.h"

/* The copy has no byte behind the script, so that AddressSanitizer sees a read
 * past the end. */
static int check(const char *script, struct err *e)
{
	size_t n = strlen(script);
	char *s = malloc(n ? n : 1);
	int r;

	memcpy(s, script, n);
	*e = (struct err){0};
	r = coding_check(s, n, "x.py", e);
	free(s);
	return r;
}

static void a_utf8_script_is_accepted(void **state)
{
	static const char *const scripts[] = {
		"",
		"\n",
		"#",
		"x = 'é'",
		"# coding: utf-8\nx = 'é'\n",
		"#!/usr/bin/python3\r\n# -*- coding: UTF8 -*-\r\nx = 'é'\r\n",
		"# vim: set fileencoding=utf-8-sig :\n'é'",
		"# coding:",
		"# encoding = latin-1\n'é'",	 /* no blank before "=" */
		"x = 1\n# coding: latin-1\n'é'", /* below code */
		"x = 1 # coding: latin-1\n'é'",
		"'''\n# coding: latin-1\n''' + 'é'",
		"# one\n# two\n# coding: latin-1\n'é'",
		"# coding: \n# coding: utf-8\n'é'",
	};
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(scripts) / sizeof(*scripts); i++)
		if (check(scripts[i], &e) < 0)
			fail_msg("%s: %s", scripts[i], e.msg);
}

static void a_pure_ascii_script_may_name_another_encoding(void **state)
{
	struct err e;

	(void)state;
	assert_int_equal(check("# coding: latin-1\nx = 1\n", &e), 0);
	assert_int_equal(check("#coding=cp1252\nx = 1\n", &e), 0);
	assert_int_equal(check("# coding: utf-7\nx = '+AOk-'\n", &e), -1);
}

static void other_encodings_are_refused_by_name(void **state)
{
	static const char *const heads[] = {
		"# coding: latin-1\n",
		"# -*- coding: latin-1 -*-\n",
		"#!/usr/bin/python3\n\t# vim: set fileencoding=latin-1 :\n",
		"\f\n# coding:latin-1\r\n",
		"# coding: é coding: latin-1\n",
	};
	char script[256];
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
		snprintf(script, sizeof(script), "%s'\xe9'\n", heads[i]);
		assert_int_equal(check(script, &e), -1);
		assert_string_equal(e.msg, "x.py: expected UTF-8, but it is "
					   "declared to be latin-1");
		/* UTF-8 text under another declaration is refused too */
		snprintf(script, sizeof(script), "%s'é'\n", heads[i]);
		assert_int_equal(check(script, &e), -1);
	}
}

static void bytes_that_are_not_utf8_are_refused_with_their_line(void **state)
{
	struct err e;

	(void)state;
	assert_int_equal(check("x = 1\n'é'\n'\xe9'\n'\xe9'", &e), -1);
	assert_string_equal(e.msg, "x.py:3: expected UTF-8");
	assert_int_equal(check("# coding: utf-8\n'\xc3", &e), -1);
	assert_string_equal(e.msg, "x.py:2: expected UTF-8");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_utf8_script_is_accepted),
		cmocka_unit_test(a_pure_ascii_script_may_name_another_encoding),
		cmocka_unit_test(other_encodings_are_refused_by_name),
		cmocka_unit_test(
			bytes_that_are_not_utf8_are_refused_with_their_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
