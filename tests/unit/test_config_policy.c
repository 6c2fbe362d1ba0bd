/* SPDX-License-Identifier: MIT */
/*
 * test_config_policy.c - who may write a configuration, and what a lock keeps
 */
#include "config_world.h"

#include "jail/base/err.h"
#include "repl/config/config.h"
#include "repl/text/text.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/socket.h>
#include <sys/un.h>

#define LOCKED "[policy]\nlocked = yes\n"

static void a_file_that_others_can_write_is_refused(void **state)
{
	struct world *w = *state;

	put(w, "cellblock.conf", "[cell]\ntimeout = 2s\n");
	load_ok(w);
	chmod(path_of(w, "cellblock.conf"), 0664);
	LOAD_FAILS(w, "cellblock.conf: expected to be writable by its owner");
	chmod(path_of(w, "cellblock.conf"), 0646);
	LOAD_FAILS(w, "cellblock.conf: expected to be writable by its owner");
	chmod(path_of(w, "cellblock.conf"), 0600);
	load_ok(w);
}

static void a_directory_that_others_can_write_is_refused(void **state)
{
	struct world *w = *state;

	put(w, "conf.d/1.conf", "[cell]\ntimeout = 2s\n");
	put(w, "users/kim.conf", "[cell]\ntimeout = 3s\n");
	w->where.user = "kim";
	load_ok(w);
	chmod(path_of(w, "conf.d"), 0777);
	chmod(path_of(w, "users"), 0775);
	LOAD_FAILS(w, "/conf.d: expected to be writable by its owner",
		"/users: expected to be writable by its owner");
	chmod(w->dir, 0777);
	LOAD_FAILS(w, ": expected to be writable by its owner alone");
}

static void a_file_of_another_user_is_refused(void **state)
{
	struct world *w = *state;

	put(w, "cellblock.conf", "[cell]\ntimeout = 2s\n");
	w->where.system_uid = geteuid() + 1;
	LOAD_FAILS(w, "expected to belong to the administrator");
	if (geteuid() != 0)
		skip(); /* only root can give a file away */
	w->where.system_uid = 0;
	assert_int_equal(chown(path_of(w, "cellblock.conf"), 1234, 0), 0);
	LOAD_FAILS(w, "expected to belong to root, but belongs to user 1234");
	put_own(w, "[cell]\ntimeout = 3s\n");
	assert_int_equal(chown(path_of(w, "cellblock.conf"), 0, 0), 0);
	load_ok(w);
	assert_int_equal(chown(w->own, 1234, 0), 0);
	LOAD_FAILS(w, "expected to belong to you, but belongs to user 1234");
}

static void only_a_regular_file_is_read(void **state)
{
	struct world *w = *state;
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	put(w, "conf.d/real", "[cell]\ntimeout = 2s\n");
	assert_int_equal(mkfifo(path_of(w, "conf.d/1.conf"), 0600), 0);
	assert_int_equal(mkdir(path_of(w, "conf.d/2.conf"), 0700), 0);
	assert_int_equal(symlink("real", path_of(w, "conf.d/3.conf")), 0);
	assert_int_equal(symlink("4.conf", path_of(w, "conf.d/4.conf")), 0);
	strcpy(sun.sun_path, path_of(w, "conf.d/5.conf"));
	assert_int_equal(bind(sock, (struct sockaddr *)&sun, sizeof(sun)), 0);
	close(sock);
	LOAD_FAILS(w, "1.conf: expected a regular file, not a pipe",
		"2.conf: expected a regular file, not a directory",
		"3.conf: expected a file, not a symbolic link",
		"4.conf: expected a file, not a symbolic link",
		"5.conf: expected a regular file, not a device or socket");
}

static void a_directory_that_is_a_link_is_refused(void **state)
{
	struct world *w = *state;

	put(w, "real/1.conf", "[cell]\ntimeout = 2s\n");
	assert_int_equal(symlink("real", path_of(w, "conf.d")), 0);
	LOAD_FAILS(w, "/conf.d: expected a directory, and no symbolic link");
}

static void the_persons_file_may_be_a_link_but_not_a_fifo(void **state)
{
	struct world *w = *state;

	put_own(w, "[cell]\ntimeout = 2s\n");
	assert_int_equal(rename(w->own, path_of(w, "own/dotfiles.conf")), 0);
	assert_int_equal(symlink("dotfiles.conf", w->own), 0);
	load_ok(w);
	assert_value(w, "cell", "timeout", "2s");
	assert_int_equal(unlink(w->own), 0);
	load_ok(w); /* none at all */
	assert_value(w, "cell", "timeout", "10s");
	assert_int_equal(mkfifo(w->own, 0600), 0);
	LOAD_FAILS(w, "user.conf: expected a regular file, not a pipe");
}

static void hostile_bytes_are_refused(void **state)
{
	struct world *w = *state;
	char *big = malloc((1 << 20) + 1);

	put_bytes(w, "conf.d/1.conf", "[cell]\n\0\n", 9);
	put(w, "conf.d/2.conf", "[cell]\n\033]0;x\007 = 1\n");
	put(w, "conf.d/3.conf", "[cell]\ntimeout = \xff\n");
	put(w, "conf.d/4.conf", "[cell]\ntimeout = \xc2\x9b\n");
	memset(big, 'x', (1 << 20) + 1);
	put_bytes(w, "conf.d/5.conf", big, 1000);
	put_bytes(w, "conf.d/6.conf", big, (1 << 20) + 1);
	memset(big, '\n', (1 << 20) + 1);
	put_bytes(w, "conf.d/7.conf", big, 1 << 20);
	free(big);
	LOAD_FAILS(w, "1.conf:2: expected text, not a NUL byte",
		"2.conf:2: expected UTF-8 text without control",
		"3.conf:2: expected UTF-8 text without control",
		"4.conf:2: expected UTF-8 text without control",
		"5.conf:1: expected a line of at most 190 bytes",
		"6.conf: expected at most 1048576 bytes");
}

static void errors_beyond_the_list_are_counted(void **state)
{
	struct world *w = *state;
	char *text = malloc(2001);

	for (int i = 0; i < 1000; i++)
		memcpy(text + 2 * i, "x\n", 3);
	put(w, "cellblock.conf", text);
	free(text);
	assert_int_equal(load(w), -1);
	assert_int_equal(w->errors.list.n, CONFIG_ERRORS_MAX);
	assert_int_equal(w->errors.dropped, 1000 - CONFIG_ERRORS_MAX);
}

static void errors_are_safe_to_show(void **state)
{
	struct world *w = *state;

	add_set(w, "cell.\033[2J=1");
	add_set(w, "cell.timeout=\xc2\x9b"
		   "2J");
	assert_int_equal(load(w), -1);
	assert_int_equal(w->errors.list.n, 2);
	for (size_t i = 0; i < w->errors.list.n; i++)
		assert_true(utf8_is_text(w->errors.list.items[i],
			strlen(w->errors.list.items[i]), "\t"));
	assert_non_null(strstr(w->errors.list.items[0], "\\x1b[2J"));
}

static void contradictions_are_errors(void **state)
{
	struct world *w = *state;

	put(w, "cellblock.conf", "[cell]\ncheckpoint = never\n");
	load_ok(w);
	add_set(w, "cell.undo=2");
	LOAD_FAILS(w, "--set: cell.undo: expected 0, because checkpoints");
}

/* A value for each locked key: stricter passes, looser does not. */
static const struct {
	const char *system; /* the administrator's value */
	const char *stricter;
	const char *looser;
} directions[] = {
	{"cell.timeout=5s", "cell.timeout=4s", "cell.timeout=6s"},
	{"session.cpus=0.5", "session.cpus=0.5", "session.cpus=0.501"},
	{"cell.background=stop", "cell.background=kill", "cell.background=run"},
	{"terminal.escapes=safe", "terminal.escapes=plain",
		"terminal.escapes=raw"},
	{"jail.network=none", "jail.network=none", "jail.network=loopback"},
	{"jail.expose=/a /b", "jail.expose=/b", "jail.expose=/b /c"},
	{"jail.expose=/a", "jail.expose=", "jail.expose=/a/b"},
	{"files.upload_from=", "files.upload_from=", "files.upload_from=/"},
	{"python.executable=/a /b", "python.executable=/b",
		"python.executable=/c"},
	{"python.packages=/a", "python.packages=/a", "python.packages="},
	{"session.until=18:00", "session.until=18:00", "session.until=19:00"},
	{"python.packages=/a /b", "python.packages=/a /b",
		"python.packages=/b"},
	{"home.skeleton=", "home.skeleton=", "home.skeleton=/etc"},
	{"jail.uids=70000-80000", "jail.uids=70000-80000",
		"jail.uids=70000-80001"},
	{"log.syslog=yes", "log.syslog=yes", "log.syslog=no"},
	{"log.syslog=no", "log.syslog=yes", NULL},
	{"log.transcript=/a", "log.transcript=/a", "log.transcript="},
	{"policy.commands=all", "policy.commands=help quit", NULL},
	{"policy.commands=help quit", "policy.commands=help",
		"policy.commands=all"},
	{"python.env.A=1", NULL, "python.env.A=2"},
	{"cell.checkpoint=auto", "cell.checkpoint=always", NULL},
	{"terminal.prompt=x", "terminal.prompt=y", NULL},
	{"cell.timeout=5s", NULL, "policy.locked=no"},
};

/* SECTION.KEY=VALUE as the lines of a file. */
static void as_file(const char *set, char *buf, size_t size)
{
	size_t dot = strcspn(set, ".");

	snprintf(buf, size, "[%.*s]\n%s\n", (int)dot, set, set + dot + 1);
}

static void a_locked_key_accepts_only_stricter_values(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < sizeof(directions) / sizeof(directions[0]);
		i++) {
		char text[256], own[256];

		as_file(directions[i].system, text, sizeof(text));
		put(w, "cellblock.conf", text);
		put(w, "conf.d/lock.conf", LOCKED);
		w->where.nsets = 0;
		put_own(w, "");
		load_ok(w);
		if (directions[i].stricter) {
			as_file(directions[i].stricter, own, sizeof(own));
			put_own(w, own);
			add_set(w, directions[i].stricter);
			load_ok(w);
		}
		if (!directions[i].looser)
			continue;
		w->where.nsets = 0;
		as_file(directions[i].looser, own, sizeof(own));
		put_own(w, own);
		LOAD_FAILS(w, "user.conf:2: ");
		put_own(w, "");
		add_set(w, directions[i].looser);
		LOAD_FAILS(w, "--set: ");
		/* without a lock the same value is allowed */
		put(w, "conf.d/lock.conf", "");
		if (!strstr(directions[i].looser, "locked"))
			load_ok(w);
	}
}

static void a_refusal_names_the_locked_value_and_its_source(void **state)
{
	struct world *w = *state;

	put(w, "cellblock.conf", LOCKED "[cell]\ntimeout = 5s\n");
	put_own(w, "[cell]\ntimeout = 60s\ncpu = 20s\n");
	LOAD_FAILS(w,
		"cell.timeout: \"60s\" is looser than the locked \"5s\" (",
		"cell.cpu: \"20s\" is looser than the locked \"10s\" (built "
		"in); it may only be lowered");
	assert_non_null(strstr(w->errors.list.items[0], "/cellblock.conf:4)"));
	put(w, "cellblock.conf", LOCKED "[files]\nremote = no\n");
	put_own(w, "[files]\nremote = yes\n");
	LOAD_FAILS(w, "); it may only be switched off");
}

static void locked_cpu_time_is_at_most_the_locked_timeout(void **state)
{
	struct world *w = *state;

	put(w, "cellblock.conf", LOCKED "[cell]\ntimeout = 60s\n");
	add_set(w, "cell.cpu=30s");
	load_ok(w);
	assert_value(w, "cell", "cpu", "30s");
	add_set(w, "cell.cpu=61s");
	LOAD_FAILS(w, "--set: cell.cpu: \"61s\" is looser than the locked");
}

static void the_persons_stricter_value_is_not_a_lock(void **state)
{
	struct world *w = *state;

	put(w, "cellblock.conf", LOCKED "[cell]\ntimeout = 10s\n");
	put_own(w, "[cell]\ntimeout = 2s\n");
	add_set(w, "cell.timeout=8s");
	load_ok(w);
	assert_value(w, "cell", "timeout", "8s");
}

static void a_locked_require_accepts_additions(void **state)
{
	struct world *w = *state;

	put(w, "cellblock.conf", LOCKED "[jail]\nrequire = cgroup\n");
	put_own(w, "[jail]\nrequire = memory\n");
	load_ok(w);
	assert_value(w, "jail", "require", "cgroup memory");
	put_own(w, "[jail]\nrequire =\n");
	load_ok(w);
	assert_value(w, "jail", "require", "cgroup");
}

static void a_later_system_file_may_unlock(void **state)
{
	struct world *w = *state;

	put(w, "cellblock.conf", LOCKED);
	put(w, "users/teacher.conf", "[policy]\nlocked = no\n");
	w->where.user = "teacher";
	add_set(w, "cell.timeout=1h");
	load_ok(w);
	assert_value(w, "cell", "timeout", "1h");
}

static void a_named_file_replaces_all_other_files(void **state)
{
	struct world *w = *state;
	char named[128];

	put(w, "cellblock.conf", "[cell]\ntimeout = 2s\n");
	put(w, "named.conf", "[cell]\ncpu = 3s\n");
	put_own(w, "[cell]\ngrace = 2s\n");
	strcpy(named, path_of(w, "named.conf"));
	w->where.explicit_file = named;
	add_set(w, "cell.undo=2");
	load_ok(w);
	assert_value(w, "cell", "timeout", "10s");
	assert_value(w, "cell", "grace", "1s");
	assert_value(w, "cell", "cpu", "3s");
	assert_value(w, "cell", "undo", "2");
	w->where.explicit_file = "/nonexistent/file";
	LOAD_FAILS(w, "/nonexistent/file: open: No such file");
}

static void a_named_file_cannot_escape_a_lock(void **state)
{
	struct world *w = *state;
	char named[128];

	put(w, "cellblock.conf", LOCKED "[cell]\ntimeout = 2s\n");
	put(w, "named.conf", "[cell]\ntimeout = 3s\ncpu = 3s\n");
	strcpy(named, path_of(w, "named.conf"));
	w->where.explicit_file = named;
	LOAD_FAILS(w, "named.conf:2: cell.timeout: \"3s\" is looser");
	put(w, "named.conf", "[cell]\ncpu = 3s\n");
	load_ok(w);
	assert_value(w, "cell", "timeout", "2s");
	assert_value(w, "cell", "cpu", "3s");
	/* check a file before it is installed as the system's file */
	put(w, "named.conf", "[cell]\ntimeout = 3s\n");
	w->where.checking = true;
	load_ok(w);
	assert_value(w, "cell", "timeout", "3s");
}

static void a_login_reads_only_system_files(void **state)
{
	struct world *w = *state;

	put(w, "cellblock.conf", "[cell]\ntimeout = 2s\n");
	put_own(w, "[cell]\ntimeout = 1h\nnonsense\n");
	add_set(w, "cell.timeout=2h");
	w->where.explicit_file = w->own;
	w->where.login = true;
	load_ok(w);
	assert_value(w, "cell", "timeout", "2s");
}

static void a_locked_session_runs_only_a_configured_python(void **state)
{
	struct world *w = *state;
	char path[PATH_MAX];
	struct err e;

	put(w, "cellblock.conf",
		"[python]\nexecutable = /usr/bin/python3 /opt/p/python3.12\n");
	load_ok(w);
	assert_int_equal(
		config_choose_python(&w->cfg, NULL, path, sizeof(path), &e), 0);
	assert_string_equal(path, "/usr/bin/python3");
	assert_int_equal(config_choose_python(
				 &w->cfg, "python3.12", path, sizeof(path), &e),
		0);
	assert_string_equal(path, "/opt/p/python3.12");
	assert_int_equal(
		config_choose_python(&w->cfg, "/x/y", path, sizeof(path), &e),
		0);
	assert_string_equal(path, "/x/y");
	assert_int_equal(
		config_choose_python(&w->cfg, "./y", path, sizeof(path), &e),
		0);
	assert_int_equal(path[0], '/');
	assert_int_equal(
		config_choose_python(&w->cfg, "pypy", path, sizeof(path), &e),
		-1);
	assert_int_equal(e.kind, ERR_USAGE);
	put(w, "conf.d/lock.conf", LOCKED);
	load_ok(w);
	assert_int_equal(
		config_choose_python(&w->cfg, "/x/y", path, sizeof(path), &e),
		-1);
	assert_int_equal(e.kind, ERR_USAGE);
	assert_non_null(strstr(e.hint, "/opt/p/python3.12"));
	assert_int_equal(config_choose_python(&w->cfg, "/opt/p/python3.12",
				 path, sizeof(path), &e),
		0);
}

static void policy_allows_all_commands_or_the_named_ones(void **state)
{
	struct world *w = *state;

	load_ok(w);
	assert_true(config_allows_command(&w->cfg, "upload"));
	add_set(w, "policy.commands=help quit");
	load_ok(w);
	assert_true(config_allows_command(&w->cfg, "help"));
	assert_false(config_allows_command(&w->cfg, "upload"));
	add_set(w, "policy.commands=all help");
	LOAD_FAILS(w, "expected all, or names, but not both");
}

static bool is_help(const char *name)
{
	return !strcmp(name, "help");
}

static void an_unknown_command_in_policy_is_an_error(void **state)
{
	struct world *w = *state;

	w->where.is_command = is_help;
	load_ok(w);
	add_set(w, "policy.commands=help hlep");
	LOAD_FAILS(w, "--set: policy.commands: expected all, or names of "
		      "commands, not \"hlep\"");
}

static void the_persons_file_is_found_by_xdg(void **state)
{
	char path[64];

	(void)state;
	assert_int_equal(config_user_file("/x", "/h", path, sizeof(path)), 0);
	assert_string_equal(path, "/x/cellblock/cellblock.conf");
	assert_int_equal(config_user_file("x", "/h", path, sizeof(path)), 0);
	assert_string_equal(path, "/h/.config/cellblock/cellblock.conf");
	assert_int_equal(config_user_file(NULL, "h", path, sizeof(path)), -1);
	assert_int_equal(config_user_file(NULL, NULL, path, sizeof(path)), -1);
	assert_int_equal(config_user_file("/x", NULL, path, 8), -1);
	assert_int_equal(config_state_dir("/x", "/h", path, sizeof(path)), 0);
	assert_string_equal(path, "/x/cellblock");
	assert_int_equal(config_state_dir(NULL, "/h", path, sizeof(path)), 0);
	assert_string_equal(path, "/h/.local/state/cellblock");
	assert_int_equal(config_state_dir(NULL, NULL, path, sizeof(path)), -1);
}

static void the_environment_cannot_move_a_locked_home(void **state)
{
	struct world *w = *state;

	w->where.home = "/home/kim";
	w->where.own_home = "/etc";
	put(w, "cellblock.conf",
		"[policy]\nlocked = yes\n[files]\nupload_from = ~\n");
	load_ok(w);
	assert_string_equal(w->cfg.upload_from.items[0], "/home/kim");
	add_set(w, "files.upload_from=~");
	LOAD_FAILS(w, "files.upload_from");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(a_file_that_others_can_write_is_refused),
		TEST(a_directory_that_others_can_write_is_refused),
		TEST(a_file_of_another_user_is_refused),
		TEST(only_a_regular_file_is_read),
		TEST(a_directory_that_is_a_link_is_refused),
		TEST(the_persons_file_may_be_a_link_but_not_a_fifo),
		TEST(hostile_bytes_are_refused),
		TEST(errors_beyond_the_list_are_counted),
		TEST(errors_are_safe_to_show),
		TEST(contradictions_are_errors),
		TEST(a_locked_key_accepts_only_stricter_values),
		TEST(a_refusal_names_the_locked_value_and_its_source),
		TEST(locked_cpu_time_is_at_most_the_locked_timeout),
		TEST(the_persons_stricter_value_is_not_a_lock),
		TEST(a_locked_require_accepts_additions),
		TEST(a_later_system_file_may_unlock),
		TEST(a_named_file_replaces_all_other_files),
		TEST(a_named_file_cannot_escape_a_lock),
		TEST(a_login_reads_only_system_files),
		TEST(a_locked_session_runs_only_a_configured_python),
		TEST(policy_allows_all_commands_or_the_named_ones),
		TEST(an_unknown_command_in_policy_is_an_error),
		TEST(the_persons_file_is_found_by_xdg),
		TEST(the_environment_cannot_move_a_locked_home),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
