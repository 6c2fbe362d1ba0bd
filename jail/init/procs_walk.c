/* SPDX-License-Identifier: MIT */
/*
 * procs_walk.c - the jail's processes, one after the other
 *
 * Runs in:   warden
 * Trusts:    the kernel's numbers; processes come and go meanwhile
 * Leaves:    nothing
 */
#include "procs_walk.h"

#include "jail/base/io.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

ssize_t procs_read(int dirfd, const char *path, char *buf, size_t size)
{
	auto_close int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
	ssize_t r = fd < 0 ? -1 : io_read_full(fd, buf, size - 1);

	buf[r < 0 ? 0 : r] = '\0';
	return r;
}

void procs_source_jail(struct procs_source *s, int proc_fd)
{
	*s = (struct procs_source){.proc_fd = proc_fd, .self = 1};
}

void procs_source_host(struct procs_source *s, int proc_fd, pid_t init_pid,
	dev_t ns_dev, ino_t ns_ino)
{
	*s = (struct procs_source){.proc_fd = proc_fd,
		.foreign = 1,
		.self = init_pid,
		.ns_dev = ns_dev,
		.ns_ino = ns_ino};
}

int procs_is_number(const char *name)
{
	if (!isdigit((unsigned char)*name))
		return 0;
	return name[strspn(name, "0123456789")] == '\0';
}

/* A process of the jail, found in `s`; `pid` as the jail numbers it. */
static pid_t jail_pid(const struct procs_source *s, int dirfd, pid_t pid)
{
	char buf[4096];
	const char *p;
	struct stat ns;
	pid_t inside = -1;

	if (!s->foreign)
		return pid;
	if (fstatat(dirfd, "ns/pid", &ns, 0) < 0 || ns.st_dev != s->ns_dev ||
		ns.st_ino != s->ns_ino)
		return -1;
	/* The last of NSpid is its number in its own, that is our, namespace.
	 * Name comes before it, with newlines escaped by the kernel. */
	if (procs_read(dirfd, "status", buf, sizeof(buf)) <= 0)
		return -1;
	p = strstr(buf, "\nNSpid:");
	if (!p)
		return -1;
	for (p += strlen("\nNSpid:"); *p && *p != '\n';) {
		char *end;
		long v = strtol(p, &end, 10);

		if (end == p)
			break;
		inside = (pid_t)v;
		p = end;
	}
	return inside;
}

int procs_walk_begin(struct procs_walk *w, const struct procs_source *s)
{
	/* Of its own, because directory positions are shared by dup(). */
	int fd = openat(s->proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	*w = (struct procs_walk){.s = s, .fd = -1};
	if (fd < 0)
		return -1;
	w->dir = fdopendir(fd);
	if (!w->dir)
		close(fd);
	return w->dir ? 0 : -1;
}

void procs_walk_end(struct procs_walk *w)
{
	int saved = errno;

	fd_drop(&w->fd);
	if (w->dir)
		closedir(w->dir);
	errno = saved;
}

/* Whether what cannot be opened may be there all the same. */
static int is_out_of_means(void)
{
	return errno == EMFILE || errno == ENFILE || errno == ENOMEM;
}

int procs_walk_next(struct procs_walk *w)
{
	struct dirent *de;

	fd_drop(&w->fd);
	while (w->seen < PROCS_MAX && (errno = 0, de = readdir(w->dir))) {
		pid_t pid;

		if (!procs_is_number(de->d_name))
			continue;
		pid = (pid_t)strtol(de->d_name, NULL, 10);
		if (pid == w->s->self)
			continue;
		w->fd = openat(dirfd(w->dir), de->d_name,
			O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (w->fd < 0 && is_out_of_means())
			return -1;
		if (w->fd < 0)
			continue; /* gone */
		w->pid = jail_pid(w->s, w->fd, pid);
		if (w->pid > 0) {
			w->seen++;
			return 1;
		}
		fd_drop(&w->fd);
	}
	if (w->seen == PROCS_MAX)
		errno = E2BIG;
	return errno ? -1 : 0;
}
