/* SPDX-License-Identifier: MIT */
/*
 * test_landlock.c - access without a rule is denied on every ABI
 */
#include "forked.h"

#include "jail/base/sys.h"
#include "jail/walls/walls.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* A small tree: readable r/, writable w/ and w/sub/, unnamed x/. */
struct tree {
	char top[64];
	int abi_max;
};

static void path_of(const struct tree *t, const char *name, char *buf)
{
	snprintf(buf, 256, "%s/%s", t->top, name);
}

static void put(const struct tree *t, const char *name)
{
	char path[256];
	int fd;

	path_of(t, name, path);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(write(fd, "hello", 5), 5);
	close(fd);
}

static int tree_make(void **state)
{
	static const char *const dirs[] = {"r", "w", "w/sub", "x"};
	struct tree *t = calloc(1, sizeof(*t));

	strcpy(t->top, "/tmp/cellblock-landlock-XXXXXX");
	if (!mkdtemp(t->top))
		return -1;
	for (size_t i = 0; i < 4; i++) {
		char path[256];

		path_of(t, dirs[i], path);
		mkdir(path, 0755);
	}
	put(t, "r/f");
	put(t, "w/f");
	put(t, "x/f");
	t->abi_max = LANDLOCK_ABI_ANY;
	*state = t;
	return 0;
}

static int tree_remove(void **state)
{
	static const char *const names[] = {"r/f", "w/f", "w/g", "w/sub/f",
		"w/sub/g", "x/f", "r", "w/sub/d", "w/sub", "w", "x"};
	struct tree *t = *state;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[256];

		path_of(t, names[i], path);
		remove(path);
	}
	rmdir(t->top);
	free(t);
	return 0;
}

/* Confine to the tree's rules; returns the ABI in force. */
static int confine(const struct tree *t, unsigned flags)
{
	char r[256], w[256];
	struct landlock_rule rules[] = {
		{.path = r, .cls = LANDLOCK_READ},
		{.path = w, .cls = LANDLOCK_WRITE},
		{.path = "/no/such/directory", .optional = 1},
		{.path = "/bin", .cls = LANDLOCK_READ},
		{.path = "/dev/null", .cls = LANDLOCK_DEVICE},
	};
	struct err e;
	int abi;

	path_of(t, "r", r);
	path_of(t, "w", w);
	abi = landlock_confine(rules, 5, flags, t->abi_max, &e);
	CHILD_CHECK(abi >= 0, "%s", e.msg);
	return abi;
}

static int try_open(const struct tree *t, const char *name, int flags)
{
	char path[256];
	int fd;

	path_of(t, name, path);
	fd = open(path, flags | O_CLOEXEC, 0644);
	if (fd >= 0)
		close(fd);
	return errno_of(fd);
}

#define OPEN_IS(want, name, flags)                                             \
	do {                                                                   \
		int got = try_open(t, name, flags);                            \
		CHILD_CHECK(got == (want), "%s: %s", name, strerror(got));     \
	} while (0)

static int files(void *arg)
{
	struct tree *t = arg;
	char a[256], b[256];

	confine(t, 0);
	OPEN_IS(0, "r/f", O_RDONLY);
	OPEN_IS(0, "r", O_RDONLY | O_DIRECTORY);
	OPEN_IS(EACCES, "r/f", O_WRONLY);
	OPEN_IS(EACCES, "r/new", O_WRONLY | O_CREAT);
	OPEN_IS(0, "w/f", O_RDWR);
	OPEN_IS(0, "w/g", O_WRONLY | O_CREAT);
	OPEN_IS(EACCES, "x/f", O_RDONLY);
	OPEN_IS(EACCES, "x", O_RDONLY | O_DIRECTORY);
	OPEN_IS(EACCES, "r/../x/f", O_RDONLY);
	path_of(t, "w/g", a);
	CHILD_CHECK(unlink(a) == 0, "unlink: %s", strerror(errno));
	path_of(t, "r/f", a);
	CHILD_CHECK(unlink(a) < 0, "removed what may only be read");
	path_of(t, "w/sub/d", b);
	CHILD_CHECK(mkdir(b, 0755) == 0, "mkdir: %s", strerror(errno));
	path_of(t, "w/l", b);
	CHILD_CHECK(link(a, b) < 0, "linked a file out of r");
	CHILD_CHECK(open("/etc/passwd", O_RDONLY) < 0, "the host is read");
	/* control */
	CHILD_CHECK(open("/dev/null", O_RDWR) >= 0, "/dev/null");
	return 0;
}

static void a_path_without_a_rule_is_denied(void **state)
{
	if (sys_landlock_abi() < 1)
		SKIP("this kernel has no Landlock");
	assert_int_equal(forked(files, *state), 0);
}

static int rename_across(void *arg)
{
	struct tree *t = arg;
	char a[256], b[256];
	int abi = confine(t, 0);

	path_of(t, "w/f", a);
	path_of(t, "w/sub/f", b);
	if (abi < 2)
		CHILD_CHECK(rename(a, b) < 0 && errno == EXDEV, "ABI 1");
	else
		CHILD_CHECK(rename(a, b) == 0, "%s", strerror(errno));
	return abi;
}

static void renames_across_directories_need_the_second_abi(void **state)
{
	struct tree *t = *state;

	if (sys_landlock_abi() < 2)
		SKIP("this kernel's Landlock is older than ABI 2");
	t->abi_max = 1;
	assert_int_equal(forked(rename_across, t), 1);
	t->abi_max = 2;
	assert_int_equal(forked(rename_across, t), 2);
}

static int refer_or_nothing(void *arg)
{
	struct tree *t = arg;
	int abi = confine(t, LANDLOCK_NEED_REFER);

	if (abi == 0)
		OPEN_IS(0, "x/f", O_RDONLY);
	else
		OPEN_IS(EACCES, "x/f", O_RDONLY);
	return abi;
}

static void landlock_stays_off_where_renames_need_a_newer_abi(void **state)
{
	struct tree *t = *state;

	if (sys_landlock_abi() < 2)
		SKIP("this kernel's Landlock is older than ABI 2");
	t->abi_max = 1;
	assert_int_equal(forked(refer_or_nothing, t), 0);
	t->abi_max = 2;
	assert_int_equal(forked(refer_or_nothing, t), 2);
	t->abi_max = 0;
	assert_int_equal(forked(refer_or_nothing, t), 0);
}

static int truncates(void *arg)
{
	struct tree *t = arg;
	char path[256];
	int abi = confine(t, 0), r;

	path_of(t, "r/f", path);
	r = truncate(path, 0);
	CHILD_CHECK((r == 0) == (abi < 3), "ABI %d: %d", abi, r);
	path_of(t, "w/f", path);
	CHILD_CHECK(truncate(path, 0) == 0, "control: %s", strerror(errno));
	return 0;
}

static void truncation_is_denied_where_the_kernel_supports_it(void **state)
{
	struct tree *t = *state;

	if (sys_landlock_abi() < 3)
		SKIP("this kernel's Landlock is older than ABI 3");
	for (t->abi_max = 2; t->abi_max <= 3; t->abi_max++)
		assert_int_equal(forked(truncates, t), 0);
}

/* Errno of a TCP connect to a port nobody listens on. */
static int connects(void *arg)
{
	struct tree *t = arg;
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(1)};
	int s = socket(AF_INET, SOCK_STREAM, 0);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	confine(t, LANDLOCK_NO_TCP);
	return errno_of(connect(s, (struct sockaddr *)&to, sizeof(to)));
}

static void tcp_is_denied_on_request(void **state)
{
	struct tree *t = *state;
	int control;

	if (sys_landlock_abi() < 4)
		SKIP("this kernel's Landlock is older than ABI 4");
	t->abi_max = 3;
	control = forked(connects, t);
	assert_int_not_equal(control, EACCES);
	t->abi_max = LANDLOCK_ABI_ANY;
	assert_int_equal(forked(connects, t), EACCES);
}

static int signals_parent(void *arg)
{
	struct tree *t = arg;

	confine(t, LANDLOCK_SCOPE);
	CHILD_CHECK(kill(getpid(), 0) == 0, "control");
	return errno_of(kill(getppid(), 0));
}

static void signals_stay_inside_on_request(void **state)
{
	struct tree *t = *state;

	if (sys_landlock_abi() < 6)
		SKIP("this kernel's Landlock is older than ABI 6");
	t->abi_max = 5;
	assert_int_equal(forked(signals_parent, t), 0);
	t->abi_max = 6;
	assert_int_equal(forked(signals_parent, t), EPERM);
}

static int execs(void *arg)
{
	struct tree *t = arg;
	/* libraries may be executed; only the class of / differs */
	struct landlock_rule rules[] = {
		{.path = "/", .cls = LANDLOCK_READ},
		{.path = "/usr", .cls = LANDLOCK_READ_EXEC},
	};
	char *argv[] = {"true", NULL};
	struct err e;

	CHILD_CHECK(landlock_confine(rules, t->abi_max == 1 ? 1 : 2, 0,
			    LANDLOCK_ABI_ANY, &e) > 0,
		"%s", e.msg);
	execv("/usr/bin/true", argv);
	return errno;
}

static void execution_is_denied_without_an_exec_rule(void **state)
{
	struct tree *t = *state;

	if (sys_landlock_abi() < 1)
		SKIP("this kernel has no Landlock");
	assert_int_equal(forked(execs, t), 0);
	t->abi_max = 1;
	assert_int_equal(forked(execs, t), EACCES);
}

static int missing(void *arg)
{
	const struct landlock_rule rule = {.path = "/no/such/directory"};
	struct err e = {0};

	(void)arg;
	CHILD_CHECK(landlock_confine(&rule, 1, 0, LANDLOCK_ABI_ANY, &e) < 0,
		"confined to nothing");
	CHILD_CHECK(strstr(e.msg, "/no/such/directory"), "%s", e.msg);
	/* control: nothing was confined */
	CHILD_CHECK(open("/etc/passwd", O_RDONLY) >= 0, "confined");
	return 0;
}

static void a_required_rule_for_a_missing_path_is_an_error(void **state)
{
	(void)state;
	if (sys_landlock_abi() < 1)
		SKIP("this kernel has no Landlock");
	assert_int_equal(forked(missing, NULL), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, tree_make, tree_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_path_without_a_rule_is_denied),
		TEST(renames_across_directories_need_the_second_abi),
		TEST(landlock_stays_off_where_renames_need_a_newer_abi),
		TEST(truncation_is_denied_where_the_kernel_supports_it),
		TEST(tcp_is_denied_on_request),
		TEST(signals_stay_inside_on_request),
		TEST(execution_is_denied_without_an_exec_rule),
		TEST(a_required_rule_for_a_missing_path_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
