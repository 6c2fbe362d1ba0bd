/* SPDX-License-Identifier: MIT */
/*
 * notify.c - tell a service manager that we are ready, or are stopping
 *
 * Runs in:   front end; notify_open() before it is confined
 * Trusts:    the environment
 * Leaves:    a connected socket; we wait for no answer
 *
 * The protocol of sd_notify(3): one datagram for each piece of news.
 */
#include "repl/serve/parts.h"

#include "jail/base/err.h"
#include "jail/base/io.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

int notify_connect(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	auto_close int sock = -1;
	size_t n = strlen(path);

	if (n >= sizeof(a.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(a.sun_path, path, n);
	/* An abstract name begins with a zero byte, and needs none at its end.
	 */
	if (*path == '@')
		a.sun_path[0] = '\0';
	sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sock < 0 ||
		connect(sock, (void *)&a,
			(socklen_t)(offsetof(struct sockaddr_un, sun_path) +
				    n)) < 0)
		return -1;
	return fd_take(&sock);
}

int notify_open(int *fd, struct err *e)
{
	const char *path = getenv("NOTIFY_SOCKET");
	const size_t most = sizeof(((struct sockaddr_un *)0)->sun_path) - 1;
	size_t n = path ? strlen(path) : 0;

	*fd = -1;
	if (n == 0)
		return 0;
	if ((*path != '/' && *path != '@') || n > most)
		return err_set(e,
			"NOTIFY_SOCKET: expected a path or @NAME of up to %zu "
			"bytes, not '%.120s'",
			most, path);
	*fd = notify_connect(path);
	if (*fd < 0)
		return err_errno(e, "NOTIFY_SOCKET: connect to %s", path);
	return 0;
}

void notify_say(int fd, const char *what)
{
	if (fd >= 0)
		(void)!send(fd, what, strlen(what), MSG_NOSIGNAL);
}
