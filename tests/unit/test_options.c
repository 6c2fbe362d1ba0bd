/* SPDX-License-Identifier: MIT */
/*
 * test_options.c - the command line means what python3's would
 */
#include "repl/config/options.h"

#include "jail/base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct err err;

static int parse(struct options *o, bool terminal, char *const *argv)
{
	int argc = 0;

	while (argv[argc])
		argc++;
	memset(&err, 0, sizeof(err));
	return options_parse(o, argc, argv, terminal, &err);
}

#define ARGV(...) ((char *[]){"cellblock", __VA_ARGS__ __VA_OPT__(, ) NULL})
#define PARSE_OK(o, ...) assert_int_equal(parse(o, true, ARGV(__VA_ARGS__)), 0)

static void without_arguments_a_terminal_gets_a_session(void **state)
{
	struct options o;

	(void)state;
	PARSE_OK(&o);
	assert_int_equal(o.mode, OPTIONS_SESSION);
	options_fini(&o);
	assert_int_equal(parse(&o, false, ARGV()), 0);
	assert_int_equal(o.mode, OPTIONS_STDIN);
	options_fini(&o);
	PARSE_OK(&o, "-", "a", "-b");
	assert_int_equal(o.mode, OPTIONS_STDIN);
	assert_int_equal(o.nargs, 2);
	assert_string_equal(o.args[1], "-b");
	assert_null(o.args[2]);
	options_fini(&o);
}

static void options_end_at_the_program(void **state)
{
	static const struct {
		char *argv[8];
		enum options_mode mode;
		const char *text;
	} cases[] = {
		{{"cellblock", "-q", "x.py", "--flag", "-v"}, OPTIONS_FILE,
			"x.py"},
		{{"cellblock", "-q", "-c", "1+1", "--flag", "-v"}, OPTIONS_CODE,
			"1+1"},
		{{"cellblock", "-qc1+1", "--flag", "-v"}, OPTIONS_CODE, "1+1"},
		{{"cellblock", "-q", "-m", "mod", "--flag", "-v"},
			OPTIONS_MODULE, "mod"},
		{{"cellblock", "-q", "--", "-x.py", "--flag", "-v"},
			OPTIONS_FILE, "-x.py"},
		{{"cellblock", "-q", "-c", "--help", "--flag", "-v"},
			OPTIONS_CODE, "--help"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct options o;

		assert_int_equal(parse(&o, true, cases[i].argv), 0);
		assert_int_equal(o.mode, cases[i].mode);
		assert_string_equal(o.text, cases[i].text);
		assert_true(o.quiet);
		assert_false(o.verbose);
		assert_int_equal(o.nargs, 2);
		assert_string_equal(o.args[0], "--flag");
		assert_string_equal(o.args[1], "-v");
		assert_null(o.args[2]);
		options_fini(&o);
	}
}

static void short_options_become_sets_in_order(void **state)
{
	struct options o;

	(void)state;
	PARSE_OK(&o, "-t", "5s", "--set=home.size=1M", "-M1G", "--timeout",
		"6s", "-f", "x.conf", "-p", "python3.12");
	assert_int_equal(o.nsets, 4);
	assert_string_equal(o.sets[0], "-t cell.timeout=5s");
	assert_string_equal(o.sets[1], "home.size=1M");
	assert_string_equal(o.sets[2], "-M session.memory=1G");
	assert_string_equal(o.sets[3], "-t cell.timeout=6s");
	assert_string_equal(o.config_file, "x.conf");
	assert_string_equal(o.python, "python3.12");
	options_fini(&o);
}

static void transfers_split_at_the_last_colon(void **state)
{
	struct options o;

	(void)state;
	PARSE_OK(&o, "-u", "a", "-u", "b:c", "-u", "d:e:f", "-u", "g:h:", "-d",
		"out/*.png:dir", "-d", "*");
	assert_int_equal(o.nuploads, 4);
	assert_string_equal(o.uploads[0].from, "a");
	assert_null(o.uploads[0].to);
	assert_string_equal(o.uploads[1].to, "c");
	assert_string_equal(o.uploads[2].from, "d:e");
	assert_string_equal(o.uploads[2].to, "f");
	assert_string_equal(o.uploads[3].from, "g:h");
	assert_null(o.uploads[3].to);
	assert_int_equal(o.ndownloads, 2);
	assert_string_equal(o.downloads[0].from, "out/*.png");
	assert_string_equal(o.downloads[0].to, "dir");
	assert_null(o.downloads[1].to);
	options_fini(&o);
}

static void each_mode_has_its_option(void **state)
{
	struct options o;

	(void)state;
	PARSE_OK(&o, "-e", "2**100", "-q");
	assert_int_equal(o.mode, OPTIONS_CELL);
	assert_string_equal(o.text, "2**100");
	options_fini(&o);
	PARSE_OK(&o, "--check", "--json", "-v");
	assert_int_equal(o.mode, OPTIONS_CHECK);
	assert_true(o.json);
	assert_true(o.verbose);
	options_fini(&o);
	PARSE_OK(&o, "--check-config", "x.conf");
	assert_int_equal(o.mode, OPTIONS_CHECK_CONFIG);
	assert_string_equal(o.config_file, "x.conf");
	options_fini(&o);
	PARSE_OK(&o, "--check-config");
	assert_null(o.config_file);
	options_fini(&o);
	PARSE_OK(&o, "-v", "-h", "--nonsense");
	assert_int_equal(o.mode, OPTIONS_HELP);
	options_fini(&o);
	PARSE_OK(&o, "--check", "-V");
	assert_int_equal(o.mode, OPTIONS_VERSION);
	options_fini(&o);
}

static const struct {
	char *argv[6];
	const char *message;
} mistakes[] = {
	{{"cellblock", "-z"}, "unknown option '-z'"},
	{{"cellblock", "-qz"}, "unknown option '-z'"},
	{{"cellblock", "--zap"}, "unknown or ambiguous option '--zap'"},
	{{"cellblock", "--ver"}, "unknown or ambiguous option '--ver'"},
	{{"cellblock", "-t"}, "-t wants an argument"},
	{{"cellblock", "--timeout"}, "--timeout wants an argument"},
	{{"cellblock", "--quiet=1"}, "--quiet takes no argument"},
	{{"cellblock", "-s", "x"}, "--set wants SECTION.KEY=VALUE, not 'x'"},
	{{"cellblock", "--check", "x"},
		"nothing may follow --check, but there is 'x'"},
	{{"cellblock", "--evil"}, "unknown or ambiguous option '--evil'"},
	{{"cellblock", "-e", "1", "x"},
		"nothing may follow -e CELL, but there is 'x'"},
	{{"cellblock", "--check-config", "a", "b"},
		"nothing may follow --check-config FILE, but there is "
		"'b'"},
	{{"cellblock", "-f", "a", "--check-config", "b"},
		"only one configuration file can be named"},
	{{"cellblock", "--check", "-c", "1"},
		"only one of -c, -m, -e, --eval, --grade, --serve, "
		"--maker, "
		"--mcp, --sessions, --attach, --end, --message, "
		"--watch, --collect, --report, --check and "
		"--check-config makes sense"},
	{{"cellblock", "--collect"},
		"--collect wants COURSE/EXERCISE, or a directory, [-a] "
		"[-o ARCHIVE]"},
	{{"cellblock", "--collect", "a/1", "-o"},
		"--collect wants COURSE/EXERCISE, or a directory, [-a] "
		"[-o ARCHIVE]"},
	{{"cellblock", "--collect", "a/1", "a/2"},
		"--collect wants COURSE/EXERCISE, or a directory, [-a] "
		"[-o ARCHIVE]"},
	{{"cellblock", "--json"},
		"--json goes with --check, --sessions, --report, "
		"--collect and --grade alone"},
	{{"cellblock", "--csv", "--sessions"},
		"--csv goes with --report alone"},
	{{"cellblock", "--since", "1h"}, "--since goes with --report alone"},
	{{"cellblock", "--report", "--csv", "--json"},
		"--csv and --json contradict each other"},
	{{"cellblock", "--report", "x"},
		"nothing may follow --report, but there is 'x'"},
	{{"cellblock", "--end"}, "--end wants the ID of a session"},
	{{"cellblock", "--end", "7", "-m"},
		"--end wants ID... or all, [-m TEXT] [--save DIR]"},
	{{"cellblock", "--message", "7"}, "--message wants ID and TEXT"},
	{{"cellblock", "--watch"}, "--watch wants the ID of a session"},
	{{"cellblock", "--watch", "7", "8"},
		"nothing may follow --watch ID, but there is '8'"},
	{{"cellblock", "--new", "--check"}, "--new goes with a session alone"},
	{{"cellblock", "--attach", "7", "8"},
		"nothing may follow --attach ID, but there is '8'"},
	{{"cellblock", "--maker", "/a", "/b"},
		"nothing may follow --maker PATH, but there is '/b'"},
	{{"cellblock", "--maker", "-u", "x"}, "-u does not go with --maker"},
	{{"cellblock", "--check", "-u", "x"}, "-u does not go with a check"},
	{{"cellblock", "-q", "-v"}, "-q and -v contradict each other"},
	{{"cellblock", "-u", ":x"}, "expected the name of a file before ':'"},
	{{"cellblock", "--login", "-c", "x"},
		"--login stands alone: a login takes its options from "
		"the system's configuration"},
};

static void each_mistake_has_its_message(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		struct options o;

		assert_int_equal(parse(&o, true, mistakes[i].argv), -1);
		assert_string_equal(err.msg, mistakes[i].message);
		assert_string_equal(err.hint, "try 'cellblock -h'");
		assert_int_equal(err.kind, ERR_USAGE);
		options_fini(&o);
	}
}

static void what_was_handed_in_is_collected_by_words(void **state)
{
	struct options o;

	(void)state;
	PARSE_OK(&o, "--collect", "a/1", "-o", "x.tar", "-a", "--json");
	assert_int_equal(o.mode, OPTIONS_COLLECT);
	assert_string_equal(o.text, "a/1");
	assert_string_equal(o.archive, "x.tar");
	assert_true(o.all && o.json);
	options_fini(&o);
	PARSE_OK(&o, "--json", "--collect", "a/1");
	assert_null(o.archive);
	assert_true(o.json && !o.all);
	options_fini(&o);
}

static void a_command_line_without_argv_0_is_survived(void **state)
{
	struct options o;
	char *argv[] = {NULL};

	(void)state;
	assert_int_equal(options_parse(&o, 0, argv, true, &err), -1);
	options_fini(&o);
}

static void help_fits_a_screen_and_names_every_option(void **state)
{
	char *text, shown[40], letter;
	const char *name;
	size_t size, lines = 0;
	FILE *f = open_memstream(&text, &size);

	(void)state;
	options_print_help(f, 0);
	fclose(f);
	for (char *p = text; *p; p += strcspn(p, "\n") + 1, lines++)
		assert_true(strcspn(p, "\n") < 80);
	assert_true(lines < 24);
	for (size_t i = 0; (name = options_name(i, &letter)); i++) {
		if (!strcmp(name, "login"))
			continue; /* sshd_config's */
		if (!name[0])
			snprintf(shown, sizeof(shown), " -%c ", letter);
		else if (letter)
			snprintf(shown, sizeof(shown), "  -%c, --%s", letter,
				name);
		else
			snprintf(shown, sizeof(shown), "--%s", name);
		if (!strstr(text, shown))
			fail_msg("the help does not have '%s'", shown);
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_arguments_a_terminal_gets_a_session),
		cmocka_unit_test(options_end_at_the_program),
		cmocka_unit_test(short_options_become_sets_in_order),
		cmocka_unit_test(transfers_split_at_the_last_colon),
		cmocka_unit_test(each_mode_has_its_option),
		cmocka_unit_test(each_mistake_has_its_message),
		cmocka_unit_test(what_was_handed_in_is_collected_by_words),
		cmocka_unit_test(a_command_line_without_argv_0_is_survived),
		cmocka_unit_test(help_fits_a_screen_and_names_every_option),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
