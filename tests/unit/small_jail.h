/* SPDX-License-Identifier: MIT */
/*
 * small_jail.h - a jail with one guest, and both sources of its processes
 *
 * A user namespace for the warden, another with a pid namespace and its own
 * /proc below it, and a real pty.
 */
#ifndef TESTS_SMALL_JAIL_H
#define TESTS_SMALL_JAIL_H

#include "forked.h"

#include "jail/base/io.h"
#include "jail/init/init.h"
#include "jail/walls/walls.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* A generous deadline; it measures nothing. */
#define SOON_MS 10000

/* The guest writes a byte to `ready`, then runs this. */
struct guest {
	void (*run)(struct guest *g);
	int ready;
	const char *tty; /* name of the slave, NULL for no terminal */
};

struct jail {
	pid_t init; /* as seen from the warden */
	int proc;   /* its /proc, -1 if it may not have one */
	int master;
	dev_t tty;
	int alive; /* closing it ends the jail */
};

static inline void guest_start(struct guest *g)
{
	pid_t pid = fork();

	if (pid != 0)
		return;
	if (g->tty) {
		int fd;

		setsid();
		fd = open(g->tty, O_RDWR);
		if (fd < 0 || ioctl(fd, TIOCSCTTY, 0) < 0 || dup2(fd, 0) < 0)
			_exit(1);
	}
	g->run(g);
	_exit(0);
}

/* Pid 1: its own /proc, handed to the warden; then the guest; then reap until
 * the warden is gone. */
static inline void init_run(struct guest *g, int sock, int alive)
{
	struct pollfd p = {.fd = alive};
	int fd = -1;

	/* the mount namespace already belongs to this user namespace */
	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		    NULL) == 0)
		fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (io_send_fds(sock, "x", 1, &fd, fd >= 0, 0) < 0)
		_exit(1);
	guest_start(g);
	while (!(p.revents & (POLLHUP | POLLERR))) {
		poll(&p, 1, 100);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
	_exit(0);
}

/* Make the warden's namespace (once, in this process) and the jail in it. */
static inline void jail_make(struct jail *j, struct guest *g)
{
	int sock[2], alive[2], ready[2], number[2], slave;
	uid_t uid = geteuid();
	gid_t gid = getegid();
	char name[64], c;
	struct stat st;
	struct err e;
	pid_t outer;

	CHILD_CHECK(openpty(&j->master, &slave, name, NULL, NULL) == 0, "pty");
	CHILD_CHECK(fstat(slave, &st) == 0, "stat");
	j->tty = st.st_rdev;
	if (g->tty)
		g->tty = name;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		_exit(254);
	CHILD_CHECK(ident_map_self(1000, uid, 1000, gid, &e) == 0, "%s", e.msg);
	CHILD_CHECK(!pipe2(alive, O_CLOEXEC) && !pipe2(ready, O_CLOEXEC) &&
			    !pipe2(number, O_CLOEXEC) &&
			    !socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC,
				    0, sock),
		"pipes");
	g->ready = ready[1];
	outer = fork();
	if (outer == 0) {
		pid_t init;

		close(alive[1]);
		CHILD_CHECK(unshare(CLONE_NEWUSER | CLONE_NEWNS |
				    CLONE_NEWPID) == 0,
			"namespaces");
		CHILD_CHECK(ident_map_self(1000, 1000, 1000, 1000, &e) == 0,
			"%s", e.msg);
		init = fork();
		if (init == 0)
			init_run(g, sock[1], alive[0]);
		CHILD_CHECK(write(number[1], &init, sizeof(init)) > 0, "write");
		waitpid(init, NULL, 0);
		_exit(0);
	}
	j->alive = alive[1];
	CHILD_CHECK(io_recv_fds(sock[0], &c, 1, &j->proc, 1, 0) == 1, "init");
	CHILD_CHECK(io_read_full(number[0], &j->init, sizeof(j->init)) ==
			    sizeof(j->init),
		"init's pid");
	close(ready[1]);
	CHILD_CHECK(read(ready[0], &c, 1) == 1, "the guest did not start");
}

static inline void say_ready(const struct guest *g)
{
	if (write(g->ready, "x", 1) != 1)
		_exit(1);
}

/* Both sources: the jail's own /proc, and the warden's. */
static inline int sources(const struct jail *j, struct procs_source *s)
{
	int n = 0, host = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char path[32];
	struct stat ns;

	if (j->proc >= 0)
		procs_source_jail(&s[n++], j->proc);
	snprintf(path, sizeof(path), "%d/ns/pid", (int)j->init);
	CHILD_CHECK(fstatat(host, path, &ns, 0) == 0, "%s", path);
	procs_source_host(&s[n++], host, j->init, ns.st_dev, ns.st_ino);
	return n;
}

static inline void run_in_jail(int (*fn)(void *), void *arg)
{
	int got = forked(fn, arg);

	if (got == 254)
		SKIP("no user namespaces here");
	if (got == 253)
		SKIP("this kernel does not report the wait of a process");
	assert_int_equal(got, 0);
}

#endif
