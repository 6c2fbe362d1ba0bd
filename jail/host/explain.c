/* SPDX-License-Identifier: MIT */
/*
 * explain.c - why this host refuses namespaces, and what to do about it
 *
 * Runs in:   any process whose call has failed
 * Trusts:    the kernel's own files
 * Leaves:    a hint in the error
 */
#include "host.h"

#include "jail/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* The number a file under /proc/sys holds, or `missing`. */
static long read_number(const char *path, long missing)
{
	char buf[32];
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof(buf) - 1);

	if (n <= 0)
		return missing;
	buf[n] = '\0';
	return strtol(buf, NULL, 10);
}

/* Whether this process has a seccomp filter, as in most containers. */
static int is_filtered(void)
{
	auto_free char *text = NULL;
	const char *at;
	size_t n;

	if (io_read_file(AT_FDCWD, "/proc/self/status", 64 * 1024, &text, &n) <
		0)
		return 0;
	at = strstr(text, "\nSeccomp:");
	return at && strtol(at + 9, NULL, 10) == 2;
}

/* ---- AppArmor ---- */

static const char restriction[] =
	"/proc/sys/kernel/apparmor_restrict_unprivileged_userns";

/* The programs that the profile etc/apparmor.d/cellblock is for. */
static const char *const profiled[] = {
	"/usr/bin/cellblock", "/usr/local/bin/cellblock"};

/* The AppArmor profile of this process: "unconfined" or "NAME (mode)"; empty
 * without AppArmor. */
static void read_label(char *buf, size_t size)
{
	auto_close int fd =
		open("/proc/self/attr/apparmor/current", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);

	buf[n < 0 ? 0 : n] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
}

/* Whether the profile is for this program. */
static int is_profiled(void)
{
	char path[64];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	path[n < 0 ? 0 : n] = '\0';
	for (size_t i = 0; i < COUNT(profiled); i++)
		if (!strcmp(path, profiled[i]))
			return 1;
	return 0;
}

/*
 * Under the restriction, a process without a profile gets no user namespace.
 * On a host with the profile unprivileged_userns (Ubuntu) it gets one, but is
 * under that profile there, which allows nothing.
 */
static int explain_apparmor(struct err *e)
{
	char label[128];
	int bound;

	read_label(label, sizeof(label));
	bound = !strncmp(label, "unprivileged_userns", 19);
	if (e->code != EACCES && !(bound && e->code == EPERM))
		return 0;
	if (label[0] && !bound && strcmp(label, "unconfined")) {
		err_hint(e, "this process is under an AppArmor profile, %s",
			label);
		return 1;
	}
	if (read_number(restriction, 0) == 0)
		return 0;
	err_hint(e,
		"AppArmor refuses them to programs without a profile here "
		"(kernel.apparmor_restrict_unprivileged_userns = 1)\n"
		"%s      see cellblock(1), HOSTS",
		is_profiled() ? "install cellblock's:  sudo make "
				"install-apparmor"
			      : "install cellblock, and its profile:  sudo "
				"make install install-apparmor");
	return 1;
}

/* ---- explanations ---- */

static const struct {
	const char *path;
	long bad;
	const char *hint;
} switches[] = {
	{"/proc/sys/kernel/unprivileged_userns_clone", 0,
		"this host switches them off "
		"(kernel.unprivileged_userns_clone = 0)\n"
		"allow them:  sudo sysctl -w "
		"kernel.unprivileged_userns_clone=1"},
	{"/proc/sys/user/max_user_namespaces", 0,
		"this host allows none (user.max_user_namespaces = 0)\n"
		"allow them:  sudo sysctl -w user.max_user_namespaces=15000"},
};

static const char container_hint[] =
	"a container's seccomp filter is in the way: start it with  "
	"--security-opt seccomp=unconfined";

int host_explain_userns(struct err *e)
{
	if (!e)
		return -1;
	for (size_t i = 0; i < COUNT(switches); i++)
		if (read_number(switches[i].path, -1) == switches[i].bad)
			return err_hint(e, "%s", switches[i].hint);
	if (explain_apparmor(e))
		return -1;
	if (e->code == ENOSPC)
		return err_hint(e,
			"too many of them are in use (user.max_*_namespaces)");
	if (e->code == EINVAL || e->code == ENOSYS)
		return err_hint(e,
			"this kernel was built without user namespaces "
			"(CONFIG_USER_NS)");
	if (is_filtered())
		return err_hint(e, "%s", container_hint);
	if (e->code == EPERM)
		return err_hint(e, "a process in a chroot, or in a sandbox, "
				   "may not make user namespaces");
	return -1;
}

int host_explain_call(struct err *e)
{
	if (!e || e->hint[0])
		return -1;
	if (e->code == ENOSYS)
		return err_hint(e, "Linux 5.10 has all that is needed, unless "
				   "a container's seccomp filter hides it");
	if (e->code == EPERM && is_filtered())
		return err_hint(e, "%s", container_hint);
	return -1;
}
