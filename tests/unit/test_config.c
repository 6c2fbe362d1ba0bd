/* SPDX-License-Identifier: MIT */
/*
 * test_config.c - values, their sources and their errors
 */
#include "config_world.h"
#include "repl/config/config.h"

#include <stdint.h>
#include <time.h>

static void an_empty_configuration_gives_the_defaults(void **state)
{
	struct world *w = *state;
	const struct limits *l = &w->cfg.limits;

	load_ok(w);
	for (size_t i = 0; i < CONFIG_NKEYS; i++) {
		const struct config_key *k = &config_keys[i];
		char full[64];

		assert_non_null(k->name);
		assert_non_null(k->help);
		snprintf(full, sizeof(full), "%s.%s", k->section, k->name);
		assert_string_equal(
			config_source(&w->cfg, full), CONFIG_BUILT_IN);
	}
	assert_int_equal(l->cell_wall_ms, 10 * 1000);
	assert_int_equal(l->cell_grace_ms, 1000);
	assert_int_equal(l->cell_cpu_ms, 10 * 1000);
	assert_int_equal(l->output_bytes, 1 << 20);
	assert_int_equal(l->tail_bytes, 8 << 10);
	assert_int_equal(l->source_bytes, 1 << 20);
	assert_int_equal(l->background, BACKGROUND_STOP);
	assert_int_equal(l->undo, 5);
	assert_int_equal(l->checkpoint, CHECKPOINT_AUTO);
	assert_int_equal(l->memory_bytes, 512 << 20);
	assert_int_equal(l->processes, 64);
	assert_int_equal(l->cpus_milli, 1000);
	assert_int_equal(l->idle_ms, 30 * 60 * 1000);
	assert_int_equal(l->lifetime_ms, 12 * 3600 * 1000);
	assert_int_equal(l->per_user, 4);
	assert_int_equal(l->home_bytes, 64 << 20);
	assert_int_equal(l->home_files, 4096);
	assert_int_equal(l->max_file_bytes, 16 << 20);
	assert_int_equal(l->max_count, 100);
	assert_int_equal(l->recursion, 1000);
	assert_int_equal(l->network, NETWORK_NONE);
	assert_string_equal(w->cfg.prompt, ">>> ");
	assert_string_equal(w->cfg.executable.items[0], "/usr/bin/python3");
	assert_null(w->cfg.skeleton);
	assert_int_equal(w->cfg.uids.lo, 2130706432);
	assert_int_equal(w->cfg.uids.hi, 2130771967);
}

static void every_default_prints_as_in_the_table(void **state)
{
	struct world *w = *state;

	load_ok(w);
	for (size_t i = 0; i < CONFIG_NKEYS; i++) {
		const struct config_key *k = &config_keys[i];
		char buf[256];

		config_value_format(&w->cfg, k, buf, sizeof(buf));
		/* only this value has two spellings */
		assert_string_equal(buf, strcmp(k->def, "1.0") ? k->def : "1");
	}
}

static void later_sources_override_earlier_ones(void **state)
{
	struct world *w = *state;
	const char *groups[] = {"zoo", "ant-eater", "ant", "zoo"};

	put(w, "cellblock.conf",
		"[cell]\ntimeout = 1s\ngrace = 1s\ncpu = 1s\noutput = 1K\n"
		"tail = 1K\nsource = 1K\nundo = 2\n");
	put(w, "conf.d/20.conf", "[cell]\ngrace = 3s\ncpu = 3s\n");
	put(w, "conf.d/10.conf",
		"[cell]\ngrace = 2s\ncpu = 2s\noutput = 2K\ntail = 2K\n"
		"source = 2K\nundo=3\n");
	put(w, "conf.d/ignored.txt", "nonsense");
	put(w, "groups/ant.conf", "[cell]\noutput = 9K\ntail = 3K\n");
	put(w, "groups/ant-eater.conf", "[cell]\noutput = 3K\n");
	put(w, "groups/zoo.conf", "[cell]\ntail = 4K\n");
	put(w, "users/kim.conf", "[cell]\nsource = 5K\nundo = 4\n");
	put(w, "users/other.conf", "[cell]\ntimeout = 9s\n");
	put_own(w, "[cell]\nundo = 5\nbackground = kill\n");
	add_set(w, "cell.background=run");
	w->where.user = "kim";
	w->where.groups = groups;
	w->where.ngroups = 4;
	load_ok(w);
	assert_value(w, "cell", "timeout", "1s");
	assert_value(w, "cell", "grace", "3s");
	assert_value(w, "cell", "cpu", "3s");
	assert_value(w, "cell", "output", "3K");
	assert_value(w, "cell", "tail", "4K");
	assert_value(w, "cell", "source", "5K");
	assert_value(w, "cell", "undo", "5");
	assert_value(w, "cell", "background", "run");
	assert_string_equal(config_source(&w->cfg, "cell.background"), "--set");
	assert_string_equal(config_source(&w->cfg, "cell.timeout"),
		path_of(w, "cellblock.conf:2"));
	assert_string_equal(config_source(&w->cfg, "cell.cpu"),
		path_of(w, "conf.d/20.conf:3"));
	assert_string_equal(config_source(&w->cfg, "cell.tail"),
		path_of(w, "groups/zoo.conf:2"));
	assert_string_equal(config_source(&w->cfg, "cell.source"),
		path_of(w, "users/kim.conf:2"));
	assert_null(config_source(&w->cfg, "cell.nonsense"));
}

static void a_user_name_with_a_slash_names_no_file(void **state)
{
	struct world *w = *state;

	put(w, "users/kim.conf", "[cell]\ntimeout = 2s\n");
	put(w, "evil.conf", "[cell]\ntimeout = 3s\n");
	w->where.user = "../evil";
	load_ok(w);
	assert_value(w, "cell", "timeout", "10s");
	w->where.user = "kim";
	load_ok(w);
	assert_value(w, "cell", "timeout", "2s");
}

static void every_error_is_reported_with_its_line(void **state)
{
	struct world *w = *state;

	put(w, "cellblock.conf",
		"stray = 1\n"
		"[cell]\n"
		"timeout = soon\n"
		"  grace = 1s\n"
		"timout = 3s\n"
		"\n"
		"[sesion]\n"
		"memory = 1G\n"
		"[session]\n"
		"just words\n"
		"processes = -1\n"
		"memory = 99999999999999999999G\n"
		"memory = 8589934592G\n"
		"cpus = 1.2345\n"
		"[home\n"
		"size = 1\n"
		"[terminal] # fine\n"
		"escapes = unsafe\n"
		"[log] syslog = no\n"
		"[policy]\n"
		"locked = maybe\n"
		"locked = no\n"
		"locked = no\n");
	put_own(w, "[cell]\ncpu = 0s\n= 4\n[python\nx\n");
	add_set(w, "cell.tail");
	add_set(w, "cel.tail=1");
	add_set(w, "home.sise=1");
	LOAD_FAILS(w, "cellblock.conf:1: expected a [section] before",
		"cellblock.conf:3: cell.timeout: expected a time such as 500ms",
		"cellblock.conf:5: no key cell.timout; did you mean "
		"cell.timeout?",
		"cellblock.conf:7: no section [sesion]; did you mean "
		"[session]?",
		"cellblock.conf:10: expected [section], or key = value",
		"cellblock.conf:11: session.processes: expected a whole number",
		"cellblock.conf:12: session.memory: expected a size",
		"cellblock.conf:13: session.memory: expected a size",
		"cellblock.conf:14: session.cpus: expected a number of cores",
		"cellblock.conf:15: expected [section] alone",
		"cellblock.conf:18: terminal.escapes: expected safe, plain or "
		"raw, not \"unsafe\"",
		"cellblock.conf:19: expected [section] alone",
		"cellblock.conf:21: policy.locked: expected yes or no",
		"cellblock.conf:23: policy.locked: expected only once in a "
		"file; line 22 has it",
		"user.conf:2: cell.cpu: expected 10ms to 24h",
		"user.conf:3: expected a key before the =",
		"user.conf:4: expected [section] alone",
		"user.conf:5: expected [section], or key = value",
		"--set cell.tail: expected SECTION.KEY=VALUE",
		"--set cel.tail=1: no section cel; did you mean cell?",
		"--set: no key home.sise; did you mean home.size?");
}

static void errors_name_the_allowed_range(void **state)
{
	struct world *w = *state;

	put(w, "cellblock.conf",
		"[cell]\ntimeout = 25h\noutput = 2G\nundo = 17\n"
		"[session]\nmemory = 1M\ncpus = 0\n");
	add_set(w, "session.cpus=9223372036854775.999");
	add_set(w, "session.cpus=9223372036854774.999");
	LOAD_FAILS(w, "cell.timeout: expected 10ms to 24h, not \"25h\"",
		"cell.output: expected 0 to 1G", "cell.undo: expected 0 to 16",
		"session.memory: expected 16M to 1024G",
		"session.cpus: expected 0.01 to 1024",
		"session.cpus: expected a number of cores",
		"session.cpus: expected 0.01 to 1024");
}

static void the_home_leaves_memory_for_python(void **state)
{
	struct world *w = *state;

	add_set(w, "session.memory=64M");
	load_ok(w);
	assert_value(w, "home", "size", "32M");
	assert_string_equal(
		config_source(&w->cfg, "home.size"), "--set (session.memory)");
	add_set(w, "session.memory=16M");
	load_ok(w);
	assert_value(w, "home", "size", "8M");
	add_set(w, "session.memory=96M");
	load_ok(w);
	assert_value(w, "home", "size", "64M");
	assert_string_equal(
		config_source(&w->cfg, "home.size"), CONFIG_BUILT_IN);
	put(w, "cellblock.conf", "[home]\nsize = 96M\n");
	load_ok(w); /* 96M suited the larger memory */
	assert_value(w, "home", "size", "64M");
	assert_string_equal(
		config_source(&w->cfg, "home.size"), "--set (session.memory)");
	add_set(w, "home.size=96M");
	LOAD_FAILS(w, "--set: home.size: expected at most 76M, "
		      "because session.memory is 96M (--set)");
	add_set(w, "session.memory=128M");
	load_ok(w);
	assert_value(w, "home", "size", "96M");
}

static void a_home_that_is_set_may_leave_less(void **state)
{
	struct world *w = *state;

	add_set(w, "session.memory=70M");
	load_ok(w);
	assert_value(w, "home", "size", "38M");
	add_set(w, "home.size=50M");
	load_ok(w);
	assert_value(w, "home", "size", "50M");
	add_set(w, "home.size=51M");
	LOAD_FAILS(w, "--set: home.size: expected at most 50M, "
		      "because session.memory is 70M (--set)");
}

static void sessions_of_a_client_follow_those_of_all(void **state)
{
	struct world *w = *state;

	load_ok(w);
	assert_value(w, "serve", "sessions_per_client", "12");
	add_set(w, "serve.sessions=100");
	load_ok(w);
	assert_value(w, "serve", "sessions_per_client", "75");
	add_set(w, "serve.sessions_per_client=100");
	load_ok(w);
	assert_value(w, "serve", "sessions_per_client", "100");
}

static void cpu_time_follows_the_clock_unless_it_is_set(void **state)
{
	struct world *w = *state;

	add_set(w, "cell.timeout=50s");
	load_ok(w);
	assert_value(w, "cell", "cpu", "50s");
	assert_string_equal(
		config_source(&w->cfg, "cell.cpu"), "--set (cell.timeout)");
	add_set(w, "cell.timeout=5s");
	load_ok(w);
	assert_value(w, "cell", "cpu", "10s");
	put(w, "cellblock.conf", "[cell]\ncpu = 20s\n");
	add_set(w, "cell.timeout=50s");
	load_ok(w);
	assert_value(w, "cell", "cpu", "20s");
}

static void units_are_converted(void **state)
{
	struct world *w = *state;

	add_set(w, "cell.timeout=1500ms");
	add_set(w, "cell.grace=2"); /* seconds */
	add_set(w, "cell.cpu=2M");  /* minutes: case does not matter */
	add_set(w, "session.idle=2h");
	add_set(w, "session.memory=1g");
	add_set(w, "cell.output=1234");
	add_set(w, "session.cpus=0.125");
	add_set(w, "terminal.banner=OFF");
	load_ok(w);
	assert_int_equal(w->cfg.limits.cell_wall_ms, 1500);
	assert_int_equal(w->cfg.limits.cell_grace_ms, 2000);
	assert_int_equal(w->cfg.limits.cell_cpu_ms, 120000);
	assert_int_equal(w->cfg.limits.idle_ms, 7200000);
	assert_int_equal(w->cfg.limits.memory_bytes, 1 << 30);
	assert_int_equal(w->cfg.limits.output_bytes, 1234);
	assert_int_equal(w->cfg.limits.cpus_milli, 125);
	assert_false(w->cfg.banner);
}

static void lists_add_up_in_a_file_and_later_files_replace_them(void **state)
{
	struct world *w = *state;

	w->where.home = "/home/kim";
	put(w, "cellblock.conf",
		"[jail]\nexpose = /a \"/b c\"\nexpose = /d//e/./\n"
		"[files]\nupload_from = ~ ~/x\ndownload_to = /x\n");
	put(w, "conf.d/1.conf", "[files]\ndownload_to =\n");
	load_ok(w);
	assert_value(w, "jail", "expose", "/a \"/b c\" /d/e");
	assert_value(w, "files", "upload_from", "/home/kim /home/kim/x");
	assert_value(w, "files", "download_to", "");
	put(w, "conf.d/2.conf", "[jail]\nexpose = /z\n");
	load_ok(w);
	assert_value(w, "jail", "expose", "/z");
}

static void paths_must_be_absolute_and_plain(void **state)
{
	struct world *w = *state;

	put(w, "cellblock.conf",
		"[jail]\nexpose = relative\nexpose = /a/../b\nexpose = /\n"
		"expose = /proc/1\nexpose = \"/open\nexpose = /a /a\n"
		"[home]\nskeleton = ~/x\n[python]\nexecutable =\n");
	LOAD_FAILS(w, "expected an absolute path",
		"expected a path without \"..",
		"expected something other than /,",
		"expected something other than /proc/1",
		"expected double quotes around the whole value",
		"expected each only once: /a", "there is no home directory",
		"python.executable: expected at least one path");
}

static void all_ends_at_the_next_time_of_that_hour(void **state)
{
	static const int minutes[] = {1, 18 * 60, 24 * 60 - 1, 24 * 60};
	int64_t now = time(NULL);

	(void)state;
	for (size_t i = 0; i < sizeof(minutes) / sizeof(minutes[0]); i++) {
		struct config cfg = {.until_min = minutes[i]};
		struct limits l = {0}, exam = {.until_s = 7};
		struct tm tm;
		time_t end;

		exam_end_day(&cfg, &l);
		end = (time_t)l.until_s;
		assert_non_null(localtime_r(&end, &tm));
		assert_int_equal(
			tm.tm_hour * 60 + tm.tm_min, minutes[i] % (24 * 60));
		assert_int_equal(tm.tm_sec, 0);
		assert_in_range(l.until_s, now + 1, now + 25 * 3600);
		assert_true(l.until_daily);
		exam_end_day(&cfg, &exam);
		assert_int_equal(exam.until_s, 7);
		assert_false(exam.until_daily);
	}
}

static void a_deadline_is_a_moment_of_this_host(void **state)
{
	struct world *w = *state;
	struct tm tm = {.tm_isdst = -1};

	put(w, "cellblock.conf",
		"[lab]\ncourse = python_1.a\nexercise = 4\n"
		"deadline = 2026-12-04 18:00 ; Friday\n");
	load_ok(w);
	assert_non_null(strptime("2026-12-04 18:00", "%Y-%m-%d %H:%M", &tm));
	assert_int_equal(w->cfg.lab.due_s, mktime(&tm));
	assert_value(w, "lab", "deadline", "2026-12-04 18:00");
	assert_string_equal(w->cfg.lab.course, "python_1.a");
	put(w, "cellblock.conf", "[lab]\ndeadline = 2026-12-04 18:00:07\n");
	load_ok(w);
	assert_value(w, "lab", "deadline", "2026-12-04 18:00:07");
	put(w, "conf.d/1.conf", "[lab]\ndeadline =\n");
	load_ok(w);
	assert_int_equal(w->cfg.lab.due_s, 0);
	assert_value(w, "lab", "deadline", "");
	put(w, "conf.d/1.conf",
		"[lab]\ndeadline = Friday\ndeadline = 2026-02-30 10:00\n"
		"deadline = 2026-12-04\ndeadline = 2026-12-04 25:00\n"
		"deadline = 2026-12-04 18:00 x\n");
#define NO_MOMENT "expected a local time such as 2026-12-04 18:00, not "
	LOAD_FAILS(w, NO_MOMENT "\"Friday", NO_MOMENT "\"2026-02-30",
		NO_MOMENT "\"2026-12-04\"", NO_MOMENT "\"2026-12-04 25",
		NO_MOMENT "\"2026-12-04 18:00 x");
	put(w, "conf.d/1.conf",
		"[lab]\ncourse = ../x\nexercise = .4\nexercise = a/b\n"
		"course = -x\n");
	LOAD_FAILS(w, "lab.course: expected a name of letters",
		"lab.exercise: expected a name of letters",
		"lab.exercise: expected a name of letters",
		"lab.course: expected a name of letters");
}

static void quoted_text_keeps_its_blanks(void **state)
{
	struct world *w = *state;

	put(w, "cellblock.conf",
		"\xef\xbb\xbf[terminal]\r\n"
		"prompt = \"in \\\"\\\\\\\" > \" ; comment\r\n"
		"[python]\r\nstartup = print(\"a;b\", 1)\r\n"
		"env.A = 1=2:3\r\nenv.EMPTY =\r\n"
		"env.B = \"a ; \\\" ; b\" ; comment\r\n");
	load_ok(w);
	assert_string_equal(w->cfg.prompt, "in \"\\\" > ");
	assert_string_equal(w->cfg.startup, "print(\"a;b\", 1)");
	assert_int_equal(w->cfg.env.n, 3);
	assert_string_equal(w->cfg.env.items[0], "A=1=2:3");
	assert_string_equal(w->cfg.env.items[1], "EMPTY=");
	assert_string_equal(w->cfg.env.items[2], "B=a ; \" ; b");
	assert_string_equal(config_source(&w->cfg, "python.env.A"),
		path_of(w, "cellblock.conf:5"));
	add_set(w, "python.env.A=3");
	load_ok(w);
	assert_string_equal(w->cfg.env.items[0], "A=3");
	assert_string_equal(config_source(&w->cfg, "python.env.A"), "--set");
}

static void a_comment_sign_never_cuts_a_value(void **state)
{
	struct world *w = *state;

	put(w, "cellblock.conf",
		"[python]\nstartup = import os; x = 1 ; y = 2\n"
		"env.A = a ; b\nenv.B = ; none\nenv.C = print(\"a ; b\")\n"
		"[cell]\ntimeout = 5s ; comment\n");
	LOAD_FAILS(w, ":2: python.startup: expected the text in double quotes",
		":3: python.env.A: expected the text in double quotes");
	assert_string_equal(w->cfg.env.items[0], "B=");
	assert_string_equal(w->cfg.env.items[1], "C=print(\"a ; b\")");
	assert_int_equal(w->cfg.limits.cell_wall_ms, 5000);
}

static void an_unclosed_quote_hides_no_comment(void **state)
{
	struct world *w = *state;

	put(w, "cellblock.conf",
		"[terminal]\nprompt = 5\" > ; an inch\n"
		"[python]\nenv.A = 5\" a;b \\\\\nstartup = \"x ; y\n"
		"[jail]\nexpose = /5\" ; \\\" an inch\n"
		"[files]\nupload_from = /a \"/b ; c\" ; d \" e\n");
	LOAD_FAILS(w, ":2: terminal.prompt: expected the text in double quotes",
		":5: python.startup: expected double quotes around the whole");
	assert_string_equal(w->cfg.env.items[0], "A=5\" a;b \\\\");
	assert_value(w, "jail", "expose", "\"/5\\\"\"");
	assert_value(w, "files", "upload_from", "/a \"/b ; c\"");
}

static void bad_variables_are_refused(void **state)
{
	struct world *w = *state;

	put(w, "cellblock.conf",
		"[python]\nenv. = 1\nenv.1A = 1\nenv.A B = 1\n"
		"env.C = 1\nenv.C = 2\n");
	LOAD_FAILS(w, ":2: python.env.NAME: expected a name",
		":3: python.env.NAME", ":4: python.env.NAME",
		":6: python.env.C: expected only once");
}

static void a_uid_range_excludes_nobody(void **state)
{
	struct world *w = *state;

	put(w, "cellblock.conf", "[jail]\nuids = 60000-70000\n");
	put(w, "conf.d/1.conf", "[jail]\nuids = 0-10\n");
	put(w, "conf.d/2.conf", "[jail]\nuids = 300-200\n");
	put(w, "conf.d/3.conf", "[jail]\nuids = 70000-4294967296\n");
	put(w, "conf.d/4.conf", "[jail]\nuids = 70000-70010\n");
	LOAD_FAILS(w, "without nobody", "expected ids from 1000",
		"expected a range of ids", "expected ids from 1000");
	assert_int_equal(w->cfg.uids.hi, 70010);
}

static void a_printed_configuration_reads_back_unchanged(void **state)
{
	struct world *w = *state;
	char *text, *again;
	size_t n;
	FILE *f;

	put(w, "cellblock.conf",
		"[cell]\ntimeout = 61s\n[terminal]\nprompt = \"\\\"x \"\n"
		"[jail]\nexpose = \"/b c\" /d /e\"\n[python]\nenv.A = \" x\"\n"
		"startup = \"x = 1 ; y = \\\"a\\\"\"\n[session]\ncpus = 0.125\n"
		"[policy]\ncommands =\n");
	load_ok(w);
	f = open_memstream(&text, &n);
	config_print_merged(f, &w->cfg);
	fclose(f);
	assert_non_null(strstr(text, "cellblock.conf:2\n"));
	assert_non_null(strstr(text, "; built in\n"));
	put(w, "cellblock.conf", text);
	load_ok(w);
	assert_string_equal(w->cfg.startup, "x = 1 ; y = \"a\"");
	/* now every source is a line of the file: compare without them */
	f = open_memstream(&again, &n);
	config_print_merged(f, &w->cfg);
	fclose(f);
	for (char *a = text, *b = again; *a || *b;) {
		size_t la = strcspn(a, ";\n"), lb = strcspn(b, ";\n");

		assert_int_equal(la, lb);
		assert_memory_equal(a, b, la);
		a += strcspn(a, "\n") + 1;
		b += strcspn(b, "\n") + 1;
		if (a > text + strlen(text) || b > again + strlen(again))
			break;
	}
	free(text);
	free(again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(an_empty_configuration_gives_the_defaults),
		TEST(every_default_prints_as_in_the_table),
		TEST(later_sources_override_earlier_ones),
		TEST(a_user_name_with_a_slash_names_no_file),
		TEST(every_error_is_reported_with_its_line),
		TEST(errors_name_the_allowed_range),
		TEST(the_home_leaves_memory_for_python),
		TEST(a_home_that_is_set_may_leave_less),
		TEST(sessions_of_a_client_follow_those_of_all),
		TEST(cpu_time_follows_the_clock_unless_it_is_set),
		TEST(units_are_converted),
		TEST(lists_add_up_in_a_file_and_later_files_replace_them),
		TEST(paths_must_be_absolute_and_plain),
		TEST(a_deadline_is_a_moment_of_this_host),
		TEST(all_ends_at_the_next_time_of_that_hour),
		TEST(quoted_text_keeps_its_blanks),
		TEST(a_comment_sign_never_cuts_a_value),
		TEST(an_unclosed_quote_hides_no_comment),
		TEST(bad_variables_are_refused),
		TEST(a_uid_range_excludes_nobody),
		TEST(a_printed_configuration_reads_back_unchanged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
