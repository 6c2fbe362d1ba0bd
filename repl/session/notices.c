/* SPDX-License-Identifier: MIT */
/*
 * notices.c - what a person has been told on this host
 *
 * Runs in:   front end
 * Trusts:    nothing in the file: it decides only whether we repeat a notice
 * Leaves:    in the person's file `told`, a line for each host and text
 */
#include "repl/session/session.h"

#include "jail/base/io.h"
#include "repl/text/text.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* When the file has so many bytes, we empty it. */
#define BYTES_MAX (16u << 10)

int notices_open(int dir)
{
	auto_close int fd = openat(dir, "told",
		O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK |
			O_CLOEXEC,
		0600);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
		st.st_nlink != 1 || st.st_uid != geteuid())
		return -1;
	return fd_take(&fd);
}

bool notices_were_shown(int fd, const char *text)
{
	char host[256] = "", file[BYTES_MAX + 1];
	struct strbuf line = {0};
	bool before = true;
	ssize_t n;

	if (fd < 0)
		return false;
	gethostname(host, sizeof(host) - 1);
	strbuf_printf(&line, "%s: %s\n", host, text);
	n = pread(fd, file, BYTES_MAX, 0);
	if (n == (ssize_t)BYTES_MAX && ftruncate(fd, 0) == 0)
		n = 0;
	if (n < 0 || line.failed || !memmem(file, (size_t)n, line.s, line.n))
		before = false;
	if (!before && !line.failed)
		io_write_full(fd, line.s, line.n);
	strbuf_free(&line);
	return before;
}
