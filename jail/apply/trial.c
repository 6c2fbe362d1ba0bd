/* SPDX-License-Identifier: MIT */
/*
 * trial.c - what only trying tells of a host
 *
 * Runs in:   front end for --check; a child of it, which ends with a report
 * Holds:     there, what the warden of a session holds
 * Trusts:    the kernel's answers
 * Leaves:    a verdict, and why
 *
 * Being allowed to make a user namespace is not enough: some hosts let one make
 * it and then do nothing in it. And root's sessions are not root's.
 */
#include "trial.h"

#include "jail/base/io.h"
#include "jail/base/sys.h"
#include "jail/host/host.h"
#include "jail/plan/plan.h"
#include "jail/walls/claim.h"
#include "jail/walls/ident.h"
#include "jail/walls/mount.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct report {
	int failed, no_proc;
	struct err why;
};

/* A fresh /proc, made by the first process of a new pid namespace. */
static int make_proc(void)
{
	const unsigned attrs =
		SYS_ATTR_NOSUID | SYS_ATTR_NODEV | SYS_ATTR_NOEXEC;
	auto_close int fs = sys_fsopen("proc");
	auto_close int fd = -1;

	if (fs < 0 || sys_fsconfig_string(fs, "subset", "pid") < 0 ||
		sys_fsconfig_create(fs) < 0)
		return -1;
	fd = sys_fsmount(fs, attrs);
	if (fd < 0)
		fd = sys_fsmount(fs, attrs | SYS_ATTR_RDONLY);
	return fd < 0 ? -1 : 0;
}

/* Where the warden starts init. */
static int make_jail(struct report *r)
{
	const unsigned long flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID |
				    CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
	int status = 0;
	pid_t pid = (pid_t)syscall(
		SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL);

	if (pid == 0)
		_exit(make_proc() < 0);
	if (pid < 0) {
		err_errno(&r->why, "create the jail's namespaces");
		return host_explain_userns(&r->why);
	}
	if (waitpid(pid, &status, 0) != pid)
		return err_errno(&r->why, "wait for the first process");
	r->no_proc = status != 0;
	return 0;
}

static int make_all(struct report *r, uid_t lo, uid_t hi)
{
	int lock = -1;
	uid_t uid;
	gid_t gid;

	/* The lock is ours as long as the process lives. */
	if (ident_is_root() &&
		(claim_uid(CLAIM_DIR, lo, hi, &uid, &lock, &r->why) < 0 ||
			ident_become(uid, uid, &r->why) < 0))
		return -1;
	uid = geteuid();
	gid = getegid();
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0) {
		err_errno(&r->why, "create a user namespace");
		return host_explain_userns(&r->why);
	}
	if (ident_map_self(PLAN_ID, uid, PLAN_ID, gid, &r->why) < 0)
		return -1;
	if (mount_private_all(&r->why) < 0)
		return host_explain_userns(&r->why);
	return make_jail(r);
}

void trial_run(struct host *h, uid_t lo, uid_t hi)
{
	struct report r = {.failed = 1};
	int pipe_fds[2];
	pid_t pid;

	h->userns = 0;
	if (pipe2(pipe_fds, O_CLOEXEC) < 0) {
		err_errno(&h->why, "try user namespaces");
		return;
	}
	pid = fork();
	if (pid == 0) {
		r.failed = make_all(&r, lo, hi) < 0;
		_exit(io_write_full(pipe_fds[1], &r, sizeof(r)) < 0);
	}
	close(pipe_fds[1]);
	if (pid < 0 || io_read_full(pipe_fds[0], &r, sizeof(r)) != sizeof(r))
		err_set(&r.why, "the trial of user namespaces was ended");
	if (pid > 0)
		waitpid(pid, NULL, 0);
	close(pipe_fds[0]);
	h->userns = !r.failed;
	h->no_proc = r.no_proc;
	h->why = r.why;
}
