/* SPDX-License-Identifier: MIT */
/*
 * test_plain.c - a cell with habits of other prompts becomes a script
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "repl/command/command.h"
#include "repl/text/text.h"

#include <string.h>

#define RUN "import subprocess; "
#define LINES                                                                  \
	", shell=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()"

static void expect(const char *cell, bool habit, const char *wanted)
{
	struct strbuf b = {0};

	plain_add(&b, cell, strlen(cell), habit);
	assert_false(b.failed);
	strbuf_add(&b, "", 1);
	assert_string_equal(b.s, wanted);
	strbuf_free(&b);
}

static void python_stays_as_it_is(void **state)
{
	static const char *const cells[] = {"x = 1\nprint(f'{x!r} %d' % x)\n",
		"'''\n!ls\n%run\n'''", "x = (7\n%5)", "x = 7 \\\n%5", "x != 1",
		"if x != 1: pass", "x %= 3", "# x = !ls", "f(a=1,\nb=\n2)",
		"s = '= !ls'", "é = 'ü'\n\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(cells) / sizeof(*cells); i++)
		expect(cells[i], false, cells[i]);
}

static void a_line_of_the_shell_becomes_a_call(void **state)
{
	(void)state;
	expect("!ls -l", true, RUN "subprocess.run(\"ls -l\", shell=True);");
	expect("x = !ls *.csv\nlen(x)", false,
		RUN "x = subprocess.run(\"ls *.csv\"" LINES "\nlen(x)");
	expect("for f in x:\n    !echo \"{f}\" | awk '{print $1}'\nx", false,
		"for f in x:\n    " RUN
		"subprocess.run(f\"echo \\x22{f}\\x22 | "
		"awk '{{print $1}}'\", shell=True);\nx");
	expect("!!ls", false, RUN "subprocess.run(\"ls\"" LINES);
	expect("!a \\\n b\n1", false,
		RUN "subprocess.run(\"a \\x5c\\x0a b\", shell=True);\n1");
}

static void any_other_habit_becomes_a_comment(void **state)
{
	(void)state;
	expect("%run p.py", true, "# %run p.py");
	expect("ls -l", true, "# ls -l");
	expect("%%bash\nls\n!x", true, "# %%bash\n# ls\n# !x");
	expect("%%bash\nls", false, "# %%bash\n# ls");
	expect("x = 1\n%matplotlib inline\nx", false,
		"x = 1\n# %matplotlib inline\nx");
	expect("%matplotlib inline\nx = 1", false,
		"# %matplotlib inline\nx = 1");
	expect("%run a\rimport os", true, "# %run a\r# import os");
	expect("if x:\n    %cd y\n", false, "if x:\n    pass  # %cd y\n");
	expect("d = %pwd", false, "# d = %pwd");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(python_stays_as_it_is),
		cmocka_unit_test(a_line_of_the_shell_becomes_a_call),
		cmocka_unit_test(any_other_habit_becomes_a_comment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
