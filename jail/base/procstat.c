/* SPDX-License-Identifier: MIT */
/*
 * procstat.c - one line of /proc/PID/stat, and the numbers in a directory
 *
 * Runs in:   warden, init
 * Trusts:    the kernel's numbers; the name of a process is the guest's
 * Leaves:    nothing
 */
#include "procstat.h"

#include "err.h"
#include "io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

/* The fields that are read, by their number in proc_pid_stat(5). */
enum {
	PPID = 4,
	PGRP,
	SESSION,
	TTY,
	TPGID,
	MINFLT = 10,
	UTIME = 14,
	STIME,
	CUTIME,
	CSTIME,
	THREADS = 20,
	STARTTIME = 22,
	START_CODE = 26,
	END_CODE,
	START_STACK,
	START_DATA = 45,
	END_DATA,
	START_BRK,
	ARG_START,
	ARG_END,
	ENV_START,
	ENV_END,
	FIELDS,
};

/* The device number as the kernel packs it for user space. */
static dev_t tty_of(uint64_t packed)
{
	return makedev((unsigned)(packed >> 8 & 0xfff),
		(unsigned)((packed & 0xff) | (packed >> 12 & 0xfff00)));
}

int procstat_parse(const char *text, size_t n, struct procstat *st)
{
	/* The name stands in parentheses and may hold parentheses, blanks and
	 * newlines. No later field holds a parenthesis: the last one ends it.
	 */
	const char *at = memrchr(text, ')', n);
	uint64_t f[FIELDS] = {0};
	char *end;
	long pid = strtol(text, &end, 10);
	int last = PPID - 1;

	if (!at || end == text || strncmp(end, " (", 2) != 0 ||
		strncmp(at, ") ", 2) != 0 || !at[2])
		return -1;
	*st = (struct procstat){.pid = (pid_t)pid, .state = at[2]};
	for (at += 3; last + 1 < FIELDS; last++, at = end) {
		/* Negative numbers come out as they were cast. */
		f[last + 1] = strtoull(at, &end, 10);
		if (end == at)
			break;
	}
	if (last < STARTTIME)
		return -1;
	st->ppid = (pid_t)f[PPID];
	st->pgrp = (pid_t)f[PGRP];
	st->session = (pid_t)f[SESSION];
	st->tpgid = (pid_t)f[TPGID];
	st->tty = tty_of(f[TTY]);
	st->minor_faults = (int64_t)f[MINFLT];
	st->cpu_ticks = (int64_t)(f[UTIME] + f[STIME]);
	st->dead_ticks = (int64_t)(f[CUTIME] + f[CSTIME]);
	st->threads = (int)f[THREADS];
	st->start_ticks = f[STARTTIME];
	st->code = (uintptr_t)f[START_CODE];
	st->code_end = (uintptr_t)f[END_CODE];
	st->stack = (uintptr_t)f[START_STACK];
	st->data = (uintptr_t)f[START_DATA];
	st->data_end = (uintptr_t)f[END_DATA];
	st->brk = (uintptr_t)f[START_BRK];
	st->args = (uintptr_t)f[ARG_START];
	st->args_end = (uintptr_t)f[ARG_END];
	st->env = (uintptr_t)f[ENV_START];
	st->env_end = (uintptr_t)f[ENV_END];
	return 0;
}

int procstat_read(int dirfd, const char *path, struct procstat *st)
{
	auto_close int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
	/* The longest line the kernel writes is shorter: 64 bytes of name,
	 * 50 numbers. */
	char buf[1200];
	ssize_t n;

	if (fd < 0)
		return -1;
	n = read(fd, buf, sizeof(buf) - 1);
	if (n < 0)
		return -1;
	buf[n] = '\0';
	if (procstat_parse(buf, (size_t)n, st) == 0)
		return 0;
	errno = EBADMSG;
	return -1;
}

int procstat_each(int dirfd, const char *path, int least,
	int (*visit)(int, void *), void *arg)
{
	DIR *d = io_list_taken(
		openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *de;
	int r = d ? 0 : -1, saved;

	while (!r && (errno = 0, de = readdir(d))) {
		int number = atoi(de->d_name);

		if (de->d_name[0] != '.' && number >= least)
			r = visit(number, arg);
	}
	if (!r && errno)
		r = -1;
	saved = errno;
	if (d)
		closedir(d);
	errno = saved;
	return r;
}

int procstat_set_title(const char *name, struct err *e)
{
	struct procstat st;
	size_t n;

	if (procstat_read(AT_FDCWD, "/proc/self/stat", &st) < 0)
		return err_errno(e, "hide the command line");
	if (!st.args || st.args_end < st.args)
		return err_set(e, "hide the command line: it is not found");
	n = st.args_end - st.args;
	memset((char *)st.args, 0, n);
	if (n > strlen(name))
		memcpy((char *)st.args, name, strlen(name));
	return 0;
}
