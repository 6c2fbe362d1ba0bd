/* SPDX-License-Identifier: MIT */
/*
 * host_userns.c - may an ordinary user make namespaces here, and if not, why
 *
 * Runs in:   whoever failed to make one; front end for --check
 * Trusts:    the kernel's own files
 * Leaves:    words
 */
#include "host.h"

#include "io.h"
#include "sys.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
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

/* Whether a seccomp filter is on us, as in most containers. */
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

static const struct {
	const char *path;
	long bad;
	const char *hint;
} switches[] = {
	{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 1,
		"this host restricts them "
		"(kernel.apparmor_restrict_unprivileged_userns = 1)\n"
		"install the profile:  sudo make install-apparmor      "
		"see cellblock(1), HOSTS"},
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

/* ---- trials ---- */

/* Exit statuses of the trial. */
enum { TRIAL_OK, TRIAL_NO_PROC, TRIAL_FAILED };

/* A fresh /proc, made by the first process of a new pid namespace. */
static int trial_proc(void)
{
	auto_close int fs = sys_fsopen("proc");
	auto_close int fd = -1;

	if (fs < 0 || sys_fsconfig_string(fs, "subset", "pid") < 0 ||
		sys_fsconfig_create(fs) < 0)
		return TRIAL_NO_PROC;
	fd = sys_fsmount(
		fs, SYS_ATTR_NOSUID | SYS_ATTR_NODEV | SYS_ATTR_NOEXEC);
	if (fd < 0)
		fd = sys_fsmount(fs, SYS_ATTR_NOSUID | SYS_ATTR_NODEV |
					     SYS_ATTR_NOEXEC | SYS_ATTR_RDONLY);
	return fd < 0 ? TRIAL_NO_PROC : TRIAL_OK;
}

/* Both ways that a session makes them: the warden by unshare(), init by
 * clone(). */
static _Noreturn void trial(int report)
{
	const unsigned long flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID |
				    CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
	int status = 0, code = 0;
	pid_t pid = (pid_t)syscall(
		SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL);

	if (pid == 0)
		_exit(trial_proc());
	if (pid < 0)
		code = errno;
	else if (waitpid(pid, &status, 0) != pid)
		code = EIO;
	if (code == 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		code = errno;
	(void)!write(report, &code, sizeof(code));
	_exit(!code && WIFEXITED(status) ? WEXITSTATUS(status) : TRIAL_FAILED);
}

void host_probe_all(struct host *h)
{
	int report[2], status = 0, code = EIO;
	pid_t pid;

	h->userns = 0;
	if (pipe2(report, O_CLOEXEC) < 0) {
		err_errno(&h->why, "try user namespaces");
		return;
	}
	pid = fork();
	if (pid == 0)
		trial(report[1]);
	close(report[1]);
	if (pid > 0) {
		if (io_read_full(report[0], &code, sizeof(code)) !=
			sizeof(code))
			code = EIO;
		waitpid(pid, &status, 0);
	}
	close(report[0]);
	if (code == 0) {
		h->userns = 1;
		h->no_proc = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
		return;
	}
	errno = code;
	err_errno(&h->why, "cannot create a user namespace");
	host_explain_userns(&h->why);
}
