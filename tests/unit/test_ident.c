/* SPDX-License-Identifier: MIT */
/*
 * test_ident.c - a process cannot regain what it gave up
 */
#include "forked.h"

#include "jail/base/io.h"
#include "jail/walls/walls.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <sys/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Below the range of uids for sessions. */
#define SOME_UID 2130600001

/* A user namespace in which this process is 1000 and can do everything. */
static void enter_namespace(void)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	struct err e;

	if (unshare(CLONE_NEWUSER) < 0)
		_exit(254);
	CHILD_CHECK(ident_map_self(1000, uid, 1000, gid, &e) == 0, "%s", e.msg);
}

#define IN_NAMESPACE(fn)                                                       \
	do {                                                                   \
		int got = forked(fn, NULL);                                    \
		if (got == 254)                                                \
			SKIP("no user namespaces here");                       \
		assert_int_equal(got, 0);                                      \
	} while (0)

/* The value of a line of /proc/self/status. */
static const char *status_of(const char *key, char *buf, size_t size)
{
	FILE *f = fopen("/proc/self/status", "r");
	size_t n = strlen(key);

	while (f && fgets(buf, (int)size, f))
		if (!strncmp(buf, key, n) && buf[n] == ':') {
			fclose(f);
			buf[strcspn(buf, "\n")] = '\0';
			return buf + n + 2;
		}
	CHILD_CHECK(0, "no %s in status", key);
	return NULL;
}

/* ---- maps ---- */

static int map_and_look(void *arg)
{
	(void)arg;
	enter_namespace();
	CHILD_CHECK(getuid() == 1000 && getgid() == 1000, "not 1000");
	CHILD_CHECK(setgroups(0, NULL) < 0, "setgroups is possible");
	CHILD_CHECK(setuid(0) < 0, "there is a root inside");
	/* control: without capabilities inside, the later checks prove nothing
	 */
	CHILD_CHECK(unshare(CLONE_NEWNS) == 0, "no capabilities inside");
	return 0;
}

static void a_namespace_maps_one_id(void **state)
{
	(void)state;
	IN_NAMESPACE(map_and_look);
}

static int map_another(void *arg)
{
	struct err e = {0};

	(void)arg;
	forked_as_user();
	if (unshare(CLONE_NEWUSER) < 0)
		_exit(254);
	CHILD_CHECK(ident_map_self(1000, 0, 1000, 0, &e) < 0,
		"mapped someone else's id");
	CHILD_CHECK(strstr(e.msg, "map uid 1000 to 0"), "message: %s", e.msg);
	return 0;
}

static void mapping_another_id_is_refused(void **state)
{
	(void)state;
	IN_NAMESPACE(map_another);
}

/* ---- drop ---- */

static int drop_all(void *arg)
{
	const cap_value_t cap = CAP_CHOWN;
	char buf[256];
	struct err e;

	(void)arg;
	enter_namespace();
	CHILD_CHECK(ident_drop(&e) == 0, "%s", e.msg);
	for (const char *const *k = (const char *const[]){"CapInh", "CapPrm",
		     "CapEff", "CapBnd", "CapAmb", NULL};
		*k; k++)
		CHILD_CHECK(!strcmp(status_of(*k, buf, sizeof(buf)),
				    "0000000000000000"),
			"%s", buf);
	CHILD_CHECK(!strcmp(status_of("NoNewPrivs", buf, sizeof(buf)), "1"),
		"%s", buf);
	CHILD_CHECK(unshare(CLONE_NEWNS) < 0, "still powerful");
	CHILD_CHECK(cap_drop_bound(cap) < 0, "still CAP_SETPCAP");
	CHILD_CHECK(prctl(PR_SET_SECUREBITS, 0) < 0, "securebits are open");
	CHILD_CHECK(prctl(PR_SET_KEEPCAPS, 1) < 0, "keepcaps is open");
	return 0;
}

static void a_drop_leaves_no_capability_and_is_final(void **state)
{
	(void)state;
	IN_NAMESPACE(drop_all);
}

static int drop_without_right(void *arg)
{
	struct err e = {0};

	(void)arg;
	enter_namespace();
	CHILD_CHECK(ident_drop(&e) == 0, "%s", e.msg);
	/* a second drop fails for want of CAP_SETPCAP */
	CHILD_CHECK(ident_drop(&e) < 0, "allocated to have dropped again");
	CHILD_CHECK(strstr(e.msg, "bounding set"), "message: %s", e.msg);
	return 0;
}

static void a_failed_drop_is_an_error(void **state)
{
	(void)state;
	IN_NAMESPACE(drop_without_right);
}

static int drop_front(void *arg)
{
	char buf[256];
	struct err e;

	(void)arg;
	CHILD_CHECK(ident_drop_front(&e) == 0, "%s", e.msg);
	CHILD_CHECK(!strcmp(status_of("CapPrm", buf, sizeof(buf)),
			    "0000000000000000"),
		"%s", buf);
	CHILD_CHECK(!strcmp(status_of("NoNewPrivs", buf, sizeof(buf)), "1"),
		"%s", buf);
	CHILD_CHECK(setgroups(0, NULL) < 0, "groups can be changed");
	if (geteuid() == 0)
		CHILD_CHECK(chroot("/") < 0, "root's power is left");
	return 0;
}

static void the_front_end_drops_privilege_for_every_user(void **state)
{
	(void)state;
	assert_int_equal(forked(drop_front, NULL), 0);
}

/* ---- root becomes someone ---- */

static long key_found(void)
{
	return syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING,
		"user", "cellblock-test", 0);
}

static int key_is_possessed(void *arg)
{
	long key;
	struct err e;

	(void)arg;
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0)
		_exit(254);
	key = syscall(SYS_add_key, "user", "cellblock-test", "x", 1,
		KEY_SPEC_SESSION_KEYRING);
	if (key < 0)
		_exit(254);
	CHILD_CHECK(key_found() == key, "control: the key is not found before");
	CHILD_CHECK(ident_become(SOME_UID, SOME_UID, &e) == 0, "%s", e.msg);
	CHILD_CHECK(key_found() < 0, "the key is still found");
	return 0;
}

static void the_keyring_of_root_is_left_behind(void **state)
{
	int got;

	(void)state;
	if (geteuid() != 0)
		SKIP("only root can become another user");
	got = forked(key_is_possessed, NULL);
	if (got == 254)
		SKIP("there are no keyrings here");
	assert_int_equal(got, 0);
}

static int become(void *arg)
{
	uid_t r, f, s;
	struct err e;

	(void)arg;
	CHILD_CHECK(chroot("/") == 0, "control: root is not powerful");
	CHILD_CHECK(ident_become(SOME_UID, SOME_UID, &e) == 0, "%s", e.msg);
	getresuid(&r, &f, &s);
	CHILD_CHECK(r == SOME_UID && f == SOME_UID && s == SOME_UID, "uid");
	CHILD_CHECK(getgroups(0, NULL) == 0, "groups are left");
	CHILD_CHECK(
		setuid(0) < 0 && seteuid(0) < 0 && setgid(0) < 0, "root again");
	CHILD_CHECK(chroot("/") < 0, "capabilities are left");
	CHILD_CHECK(open("/etc/shadow", O_RDONLY) < 0, "root's files are read");
	/* the next step of the warden */
	CHILD_CHECK(unshare(CLONE_NEWUSER) == 0, "no user namespace");
	CHILD_CHECK(ident_map_self(1000, SOME_UID, 1000, SOME_UID, &e) == 0,
		"%s", e.msg);
	CHILD_CHECK(ident_set_undumpable(&e) == 0, "%s", e.msg);
	CHILD_CHECK(prctl(PR_GET_DUMPABLE) == 0, "dumpable");
	return 0;
}

static void root_becomes_another_user_for_good(void **state)
{
	(void)state;
	if (geteuid() != 0)
		SKIP("only root can become someone else");
	assert_int_equal(forked(become, NULL), 0);
}

static int become_root(void *arg)
{
	struct err e = {0};

	(void)arg;
	CHILD_CHECK(ident_become(0, 0, &e) < 0, "the jail is root outside");
	CHILD_CHECK(strstr(e.msg, "never root"), "message: %s", e.msg);
	CHILD_CHECK(ident_become(SOME_UID, 0, &e) < 0, "group root");
	return 0;
}

static void becoming_root_is_refused(void **state)
{
	(void)state;
	assert_int_equal(forked(become_root, NULL), 0);
}

static int undumpable(void *arg)
{
	struct stat st;
	struct err e;

	(void)arg;
	CHILD_CHECK(!stat("/proc/self/mem", &st) && st.st_uid == geteuid(),
		"control: /proc/self is not our own before");
	CHILD_CHECK(ident_set_undumpable(&e) == 0, "%s", e.msg);
	CHILD_CHECK(!stat("/proc/self/mem", &st) && st.st_uid == 0,
		"/proc/self is still our own");
	return 0;
}

static void undumpable_hides_proc_self(void **state)
{
	(void)state;
	assert_int_equal(forked(undumpable, NULL), 0);
}

/* ---- descriptors ---- */

static int close_all_but(void *arg)
{
	int keep[4] = {-1, 40, 2, 7};
	struct err e;

	(void)arg;
	for (int fd = 3; fd < 60; fd++)
		CHILD_CHECK(dup2(2, fd) == fd, "dup2");
	CHILD_CHECK(ident_close_fds(keep, 4, &e) == 0, "%s", e.msg);
	for (int fd = 0; fd < 1024; fd++) {
		int open_now = fcntl(fd, F_GETFD) >= 0;
		int want = fd == 2 || fd == 7 || fd == 40;

		CHILD_CHECK(open_now == want, "descriptor %d", fd);
	}
	return 0;
}

static void every_other_descriptor_is_closed(void **state)
{
	(void)state;
	assert_int_equal(forked(close_all_but, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_namespace_maps_one_id),
		cmocka_unit_test(mapping_another_id_is_refused),
		cmocka_unit_test(a_drop_leaves_no_capability_and_is_final),
		cmocka_unit_test(a_failed_drop_is_an_error),
		cmocka_unit_test(the_keyring_of_root_is_left_behind),
		cmocka_unit_test(the_front_end_drops_privilege_for_every_user),
		cmocka_unit_test(root_becomes_another_user_for_good),
		cmocka_unit_test(becoming_root_is_refused),
		cmocka_unit_test(undumpable_hides_proc_self),
		cmocka_unit_test(every_other_descriptor_is_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
