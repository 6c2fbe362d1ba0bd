/* SPDX-License-Identifier: MIT */
/*
 * test_login.c - a login is recognised, and its client can pass no option
 */
#include "repl/run.h"

#include "jail/base/err.h"
#include "repl/config/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void a_login_is_recognised_from_its_arguments(void **state)
{
	static const struct {
		char *argv[5];
		const char *original;
		bool shell_is_us;
		enum login_kind kind;
		const char *command;
	} cases[] = {
		/* typed at another shell, even over ssh */
		{{"cellblock"}, NULL, false, LOGIN_NOT, NULL},
		{{"cellblock"}, "", false, LOGIN_NOT, NULL},
		{{"cellblock", "-c", "x"}, NULL, false, LOGIN_NOT, NULL},
		{{"cellblock", "-c", "x"}, "y", false, LOGIN_NOT, NULL},
		{{"cellblock", "x.py"}, "y", false, LOGIN_NOT, NULL},
		/* sshd and login, the account's shell */
		{{"-cellblock"}, NULL, true, LOGIN_SHELL, NULL},
		{{"-cellblock"}, NULL, false, LOGIN_SHELL, NULL},
		{{"cellblock", "-c", "2**100"}, NULL, true, LOGIN_COMMAND,
			"2**100"},
		{{"-cellblock", "-c", "2**100"}, NULL, false, LOGIN_COMMAND,
			"2**100"},
		/* options in the command stay text */
		{{"cellblock", "-c", "--help"}, NULL, true, LOGIN_COMMAND,
			"--help"},
		{{"cellblock", "-c", "-f /tmp/x"}, NULL, true, LOGIN_COMMAND,
			"-f /tmp/x"},
		{{"cellblock", "-c", ""}, NULL, true, LOGIN_COMMAND, ""},
		{{"cellblock", "-c", "a\nb 'c"}, NULL, true, LOGIN_COMMAND,
			"a\nb 'c"},
		/* ForceCommand, through another shell */
		{{"cellblock"}, "1+1", false, LOGIN_FORCED, "1+1"},
		{{"cellblock", "--login"}, "-s a.b=c", false, LOGIN_FORCED,
			"-s a.b=c"},
		{{"cellblock", "--login"}, NULL, false, LOGIN_FORCED, NULL},
		{{"cellblock", "--login"}, "", false, LOGIN_FORCED, NULL},
		/* ForceCommand, through ourselves */
		{{"cellblock", "-c", "/usr/bin/cellblock --login"}, "1+1", true,
			LOGIN_COMMAND, "1+1"},
		{{"cellblock", "-c", "cellblock"}, NULL, true, LOGIN_COMMAND,
			NULL},
		{{"cellblock", "-c", "cellblock --loginx"}, "1", true,
			LOGIN_COMMAND, "cellblock --loginx"},
		{{"cellblock", "-c", "print('forced')"}, "1+1", true,
			LOGIN_COMMAND, "print('forced')"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct login_start start = {
			.argv = cases[i].argv,
			.original = cases[i].original,
			.shell_is_us = cases[i].shell_is_us,
		};
		struct login login;
		struct err e;

		while (start.argv[start.argc])
			start.argc++;
		assert_int_equal(login_decide(&start, &login, &e), 0);
		if (login.kind != cases[i].kind)
			fail_msg("case %zu: kind %d, not %d", i, login.kind,
				cases[i].kind);
		if (!cases[i].command)
			assert_null(login.command);
		else
			assert_string_equal(login.command, cases[i].command);
	}
}

static void an_agent_is_told_from_a_cell(void **state)
{
	static const struct {
		const char *command;
		enum options_mode mode;
	} cases[] = {
		{"cellblock-mcp", OPTIONS_MCP},
		{"/usr/bin/cellblock --mcp", OPTIONS_MCP},
		{" cellblock\t--mcp \n", OPTIONS_MCP},
		{"cellblock-mcp --mcp", OPTIONS_CELL},
		{"cellblock --mcp -s a.b=c", OPTIONS_CELL},
		{"cellblock -q --mcp", OPTIONS_CELL},
		{"cellblock --eval", OPTIONS_CELL},
		{"xcellblock-mcp", OPTIONS_CELL},
		{"--mcp", OPTIONS_CELL},
		{"", OPTIONS_CELL},
		{"scp -t x", OPTIONS_REMOTE},
		{"internal-sftp", OPTIONS_REMOTE},
		{"rsync --server . x", OPTIONS_REMOTE},
		{"git-upload-pack x", OPTIONS_REMOTE},
		{"scp - t", OPTIONS_CELL},
		{"rsync = 1", OPTIONS_CELL},
		{"sessions", OPTIONS_SESSIONS},
		{"sessions 1", OPTIONS_CELL},
		{"sessions = 1", OPTIONS_CELL},
		{"attach", OPTIONS_ATTACH},
		{" attach\t2 ", OPTIONS_ATTACH},
		{"attach 1 2", OPTIONS_CELL},
		{"attach root/1", OPTIONS_CELL},
		{"end", OPTIONS_CELL},
		{"end 1 s1.2", OPTIONS_END},
		{"end all", OPTIONS_END},
		{"end -1", OPTIONS_CELL},
		{"end 1; id", OPTIONS_CELL},
		{"end 1 -m text", OPTIONS_CELL},
		{"python", OPTIONS_STDIN},
		{"python3", OPTIONS_STDIN},
		{"python4", OPTIONS_STDIN},
		{"python = 3", OPTIONS_CELL},
		{"pythons", OPTIONS_CELL},
		{"python3.12.real", OPTIONS_CELL},
		{"python /opt/evil", OPTIONS_CELL},
		{"python3.12/../../evil", OPTIONS_CELL},
		{"python -c 3", OPTIONS_CELL},
		{"python 3.12 x.py", OPTIONS_CELL},
		{"python3.12 = 1", OPTIONS_CELL},
		{"python3.12x", OPTIONS_CELL},
		{"python3.12", OPTIONS_STDIN},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct login login = {LOGIN_FORCED, cases[i].command};
		struct options o;

		login_options(&login, false, &o);
		if (o.mode != cases[i].mode)
			fail_msg("case %zu: mode %d", i, o.mode);
	}
}

static void a_login_chooses_a_python_by_its_name(void **state)
{
	static const char *const cases[][2] = {
		{"python3.12", "python3.12"},
		{" python 3.12\n", "python3.12"},
		{"python 3", "python3"},
		{"python3", "python3"},
		{"python", NULL},
		{"python3.13t", "python3.13t"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (int terminal = 0; terminal < 2; terminal++) {
			struct login login = {LOGIN_COMMAND, cases[i][0]};
			struct options o;

			login_options(&login, terminal, &o);
			assert_int_equal(o.mode,
				terminal ? OPTIONS_SESSION : OPTIONS_STDIN);
			if (cases[i][1])
				assert_string_equal(o.python, cases[i][1]);
			else
				assert_null(o.python);
			assert_null(o.text);
			assert_int_equal(o.nargs, 0);
		}
	}
}

static void a_login_with_options_is_refused(void **state)
{
	static char *const cases[][6] = {
		{"-cellblock", "-f", "/tmp/x"},
		{"-cellblock", "--help"},
		{"-cellblock", "-c", "x", "y"},
		{"-cellblock", "x.py"},
		{"cellblock", "--login", "-s", "cell.timeout=1h"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct login_start start = {.argv = cases[i]};
		struct login login;
		struct err e;

		while (start.argv[start.argc])
			start.argc++;
		assert_int_equal(login_decide(&start, &login, &e), -1);
		assert_int_equal(e.kind, ERR_USAGE);
		assert_string_equal(e.msg, "a login takes no options");
	}
}

static void a_login_without_argv_0_is_survived(void **state)
{
	struct login_start start = {.argv = (char *[]){NULL}};
	struct login login;

	(void)state;
	assert_int_equal(login_decide(&start, &login, NULL), 0);
	assert_int_equal(login.kind, LOGIN_NOT);
}

static void sftp_scp_rsync_and_git_are_recognised(void **state)
{
	static const struct {
		const char *command;
		const char *service;
	} cases[] = {
		{"internal-sftp", "sftp"},
		{"/usr/lib/openssh/sftp-server", "sftp"},
		{"/usr/lib/openssh/sftp-server -l INFO", "sftp"},
		{"scp -t .", "scp"},
		{"scp -r -p -f -- /etc/passwd", "scp"},
		{"/usr/bin/scp -vt dir", "scp"},
		{"rsync --server -vlogDtpre.iLsfxC . x", "rsync"},
		{"git-upload-pack 'x.git'", "git"},
		{"git receive-pack 'x.git'", "git"},
		{"git-upload-archive x", "git"},
		/* cells */
		{"2**100", NULL},
		{"scp = 1", NULL},
		{"scp + tf", NULL},
		{"rsync - server", NULL},
		{"git", NULL},
		{"gitlog", NULL},
		{"print('scp -t x')", NULL},
		{"sftp = 'internal-sftp'", NULL},
		{"scp -t\nprint(1)", NULL},
		{"", NULL},
		{NULL, NULL},
	};
	char text[512];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *got = login_service(cases[i].command);

		if (!cases[i].service) {
			assert_null(got);
			continue;
		}
		assert_non_null(got);
		assert_string_equal(got, cases[i].service);
		login_refusal(got, text, sizeof(text));
		assert_ptr_equal(strstr(text, "cellblock: "), text);
		assert_non_null(strstr(text, got));
		assert_int_equal(text[strlen(text) - 1], '\n');
	}
}

static const char *value_of(char **env, const char *name)
{
	size_t n = strlen(name);

	for (; *env; env++)
		if (!strncmp(*env, name, n) && (*env)[n] == '=')
			return *env + n + 1;
	return NULL;
}

static void the_environment_is_an_allowlist(void **state)
{
	static const char *const gone[] = {"LD_PRELOAD", "GCONV_PATH",
		"LOCPATH", "NLSPATH", "TERMINFO", "TERMINFO_DIRS", "TERMCAP",
		"PYTHONPATH", "EDITOR", "PAGER", "LESSOPEN", "XDG_CONFIG_HOME",
		"BASH_ENV", "BASH_FUNC_ls%%", "SSH_ORIGINAL_COMMAND", "TZ",
		"LC_MESSAGES", "LINES", "LC_EVIL", "EDITRC"};
	char *envp[] = {"LD_PRELOAD=/x", "GCONV_PATH=/x", "LOCPATH=/x",
		"NLSPATH=/x", "TERMINFO=/x", "TERMINFO_DIRS=/x", "TERMCAP=x",
		"PYTHONPATH=/x", "EDITOR=x", "PAGER=x", "LESSOPEN=|x",
		"XDG_CONFIG_HOME=/x", "BASH_ENV=/x", "BASH_FUNC_ls%%=() { x; }",
		"SSH_ORIGINAL_COMMAND=x", "TZ=:/etc/shadow", "HOME=/evil",
		"USER=root", "LOGNAME=root", "PATH=/evil",
		"TERM=xterm-256color", "TERM=/evil", "LANG=C.UTF-8",
		"LC_ALL=de_DE.utf8@euro", "LC_MESSAGES=../../x", "LC_EVIL=x",
		"COLUMNS=80", "LINES=12345678", "NO_COLOR=1", "EDITRC=/x",
		"SSH_CONNECTION=10.0.0.1 22 fe80::1%eth0 22", NULL};
	char **env = login_scrub_env(envp, "/home/kim", "kim");

	(void)state;
	assert_non_null(env);
	assert_string_equal(value_of(env, "TERM"), "xterm-256color");
	assert_string_equal(value_of(env, "LANG"), "C.UTF-8");
	assert_string_equal(value_of(env, "LC_ALL"), "de_DE.utf8@euro");
	assert_string_equal(value_of(env, "COLUMNS"), "80");
	assert_string_equal(value_of(env, "NO_COLOR"), "1");
	assert_string_equal(value_of(env, "HOME"), "/home/kim");
	assert_string_equal(value_of(env, "USER"), "kim");
	assert_string_equal(value_of(env, "LOGNAME"), "kim");
	assert_string_equal(value_of(env, "PATH"), "/usr/bin:/bin");
	assert_non_null(value_of(env, "SSH_CONNECTION"));
	for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++)
		assert_null(value_of(env, gone[i]));
	login_env_free(env);
}

static void a_terminal_type_is_a_name(void **state)
{
	static char *const bad[] = {"TERM=../x", "TERM=/tmp/x",
		"TERM=", "TERM=.hidden", "TERM=a\033[c",
		"TERM="
		"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
		"xxxxxxx"};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char *envp[] = {bad[i], NULL};
		char **env = login_scrub_env(envp, "not/absolute", NULL);

		assert_non_null(env);
		assert_string_equal(value_of(env, "TERM"), "dumb");
		assert_string_equal(value_of(env, "HOME"), "/");
		login_env_free(env);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_login_is_recognised_from_its_arguments),
		cmocka_unit_test(an_agent_is_told_from_a_cell),
		cmocka_unit_test(a_login_chooses_a_python_by_its_name),
		cmocka_unit_test(a_login_with_options_is_refused),
		cmocka_unit_test(a_login_without_argv_0_is_survived),
		cmocka_unit_test(sftp_scp_rsync_and_git_are_recognised),
		cmocka_unit_test(the_environment_is_an_allowlist),
		cmocka_unit_test(a_terminal_type_is_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
