/* SPDX-License-Identifier: MIT */
/*
 * test_command.c - the table of commands keeps its promises
 */
#include "repl/command/command.h"

#include "jail/base/err.h"
#include "repl/config/config.h"
#include "repl/config/options.h"
#include "repl/edit/editor.h"
#include "repl/oneshot/program.h"
#include "repl/session/session.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct config cfg;

static const struct command *find(const char *name, struct err *e)
{
	return named_find(&cfg, name, strlen(name), e);
}

static void every_command_is_found_by_its_name(void **state)
{
	(void)state;
	for (const struct command *c = commands; c->name; c++) {
		assert_ptr_equal(find(c->name, NULL), c);
		assert_non_null(c->run);
		assert_true(strlen(c->help) > 0 && strlen(c->help) <= 64);
		assert_true(c->max < 0 || c->min <= c->max);
	}
}

static void a_unique_prefix_finds_its_command(void **state)
{
	(void)state;
	assert_string_equal(find("q", NULL)->name, "quit");
	assert_string_equal(find("upl", NULL)->name, "upload");
}

static void an_ambiguous_prefix_names_its_commands(void **state)
{
	struct err e = {0};

	(void)state;
	assert_null(find("u", &e));
	assert_string_equal(e.msg, ":u could be :upload :usage :unwatch :undo");
}

static void an_unknown_command_is_reported_with_escapes(void **state)
{
	struct err e = {0};

	(void)state;
	assert_null(find("\x1b[31m", &e));
	assert_string_equal(e.msg, "there is no command :\\x1b[31m");
	assert_null(find("", &e));
}

static void policy_disables_commands(void **state)
{
	static char files[] = "files";
	static char *items[] = {files};
	struct config locked = {.commands = {.items = items, .n = 1}};

	(void)state;
	assert_null(named_find(&locked, "upload", 6, NULL));
	assert_null(named_find(&locked, "u", 1, NULL));
	/* The control: an allowed command is found. */
	assert_string_equal(
		named_find(&locked, "files", 5, NULL)->name, "files");
}

/* A command that cannot run says how it is used, and touches nothing. */
static void arguments_are_counted_before_anything_runs(void **state)
{
	struct session s = {.cfg = &cfg};
	struct err e = {0};

	(void)state;
	assert_int_equal(named_run_line(&s, ":upload", 7, &e), -1);
	assert_string_equal(e.msg, "usage: :upload [-f] SRC… [DST]");
	assert_int_equal(named_run_line(&s, ":quit now", 9, &e), -1);
	assert_string_equal(e.msg, ":quit takes no arguments");
	assert_int_equal(named_run_line(&s, ":time  ", 7, &e), -1);
	assert_string_equal(e.msg, "usage: :time CELL");
	assert_int_equal(named_run_line(&s, ":show 'a", 8, &e), -1);
	assert_int_equal(named_run_line(&s, ":edit x", 7, &e), -1);
	assert_string_equal(e.msg, "x is not a number from 1 on");
}

/* ---- programs ---- */

static void a_program_gets_its_arguments(void **state)
{
	char a[] = "--flag", b[] = "-c";
	char *args[] = {a, b, NULL};
	struct limits limits = {.source_bytes = 1000};
	struct options o = {.mode = OPTIONS_FILE,
		.text = "/some/where/script.py",
		.args = args,
		.nargs = 2};
	const char **argv = program_argv(&o, &limits, NULL);

	(void)state;
	assert_string_equal(argv[0], "script.py");
	assert_string_equal(argv[1], "--flag");
	assert_string_equal(argv[2], "-c");
	assert_null(argv[3]);
	free(argv);
	o.mode = OPTIONS_CODE;
	o.text = "print(1)";
	argv = program_argv(&o, &limits, NULL);
	assert_string_equal(argv[0], "-c");
	assert_string_equal(argv[1], "print(1)");
	assert_string_equal(argv[2], "--flag");
	free(argv);
}

static void the_exit_status_is_that_of_the_program(void **state)
{
	(void)state;
	assert_int_equal(program_exit_status(0), 0);
	assert_int_equal(program_exit_status(3 << 8), 3);
	assert_int_equal(program_exit_status(SIGKILL), 137);
	assert_int_equal(program_exit_status(SIGINT), 130);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_command_is_found_by_its_name),
		cmocka_unit_test(a_unique_prefix_finds_its_command),
		cmocka_unit_test(an_ambiguous_prefix_names_its_commands),
		cmocka_unit_test(an_unknown_command_is_reported_with_escapes),
		cmocka_unit_test(policy_disables_commands),
		cmocka_unit_test(arguments_are_counted_before_anything_runs),
		cmocka_unit_test(a_program_gets_its_arguments),
		cmocka_unit_test(the_exit_status_is_that_of_the_program),
	};

	if (config_init(&cfg) < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
