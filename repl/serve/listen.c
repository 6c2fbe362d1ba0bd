/* SPDX-License-Identifier: MIT */
/*
 * listen.c - the socket to which clients come
 *
 * Runs in:   front end, before its cage closes
 * Trusts:    the command line
 * Leaves:    a socket that listens; one in the file system is left behind, and
 *            taken over by the next that is to listen there
 */
#include "listen.h"

#include "jail/base/err.h"
#include "jail/base/io.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define BACKLOG 1024

static int malformed(const char *where, struct err *e)
{
	err_set(e, "--serve wants ADDRESS:PORT or unix:PATH, not '%.100s'",
		where);
	err_hint(e, "such as %s or [::1]:8060", LISTEN_DEFAULT);
	return err_kind_set(e, ERR_USAGE);
}

/* Nobody answers on a socket that a server left behind. */
static bool is_left_behind(const struct sockaddr_un *a)
{
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct stat st;

	return lstat(a->sun_path, &st) == 0 && S_ISSOCK(st.st_mode) &&
	       fd >= 0 && connect(fd, (const void *)a, sizeof(*a)) < 0 &&
	       errno == ECONNREFUSED;
}

static int open_unix(struct listen *l, const char *path, struct err *e)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	if (!*path || strlen(path) >= sizeof(a.sun_path))
		return err_set(e,
			"listen at '%.120s': expected a path of 1 to %zu bytes",
			path, sizeof(a.sun_path) - 1);
	strcpy(a.sun_path, path);
	l->local = true;
	l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (is_left_behind(&a))
		unlink(path);
	if (l->fd < 0 || bind(l->fd, (void *)&a, sizeof(a)) < 0 ||
		listen(l->fd, BACKLOG) < 0)
		return err_errno(e, "listen at %s", path);
	snprintf(l->shown, sizeof(l->shown), "unix:%s", path);
	return 0;
}

/* "ADDRESS:PORT" or "[ADDRESS]:PORT", taken apart. */
static int split(const char *where, char *host, size_t size, const char **port)
{
	const char *colon = strrchr(where, ':');
	size_t n = colon ? (size_t)(colon - where) : 0;

	if (n > 2 && where[0] == '[' && where[n - 1] == ']') {
		where++;
		n -= 2;
	} else if (colon && memchr(where, ':', n)) {
		return -1;
	}
	if (!colon || !colon[1] || n == 0 || n >= size)
		return -1;
	memcpy(host, where, n);
	host[n] = '\0';
	*port = colon + 1;
	return 0;
}

static bool is_loopback(const struct sockaddr *a)
{
	const struct sockaddr_in *v4 = (const void *)a;
	const struct sockaddr_in6 *v6 = (const void *)a;

	return a->sa_family == AF_INET
		       ? ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET
		       : IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

static void show(struct listen *l, const struct sockaddr_storage *a)
{
	const struct sockaddr_in *v4 = (const void *)a;
	const struct sockaddr_in6 *v6 = (const void *)a;
	char text[INET6_ADDRSTRLEN];

	if (a->ss_family == AF_INET) {
		inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text));
		snprintf(l->shown, sizeof(l->shown), "%s:%d", text,
			ntohs(v4->sin_port));
	} else {
		inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
		snprintf(l->shown, sizeof(l->shown), "[%s]:%d", text,
			ntohs(v6->sin6_port));
	}
}

/* A client that vanishes without a word is found out by its silence. */
static int open_tcp(struct listen *l, const struct addrinfo *a,
	const char *where, struct err *e)
{
	struct sockaddr_storage own = {0};
	socklen_t n = sizeof(own);
	int on = 1;

	l->fd = socket(
		a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0 ||
		setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) <
			0 ||
		setsockopt(l->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)) <
			0 ||
		bind(l->fd, a->ai_addr, a->ai_addrlen) < 0 ||
		listen(l->fd, BACKLOG) < 0 ||
		getsockname(l->fd, (void *)&own, &n) < 0)
		return err_errno(e, "listen at %s", where);
	l->local = is_loopback((void *)&own);
	show(l, &own);
	return 0;
}

int listen_open(struct listen *l, const char *where, struct err *e)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};
	struct addrinfo *a = NULL;
	const char *port;
	char host[64];
	int r;

	*l = (struct listen){.fd = -1};
	if (!where)
		where = LISTEN_DEFAULT;
	if (!strncmp(where, "unix:", 5))
		return open_unix(l, where + 5, e);
	if (split(where, host, sizeof(host), &port) < 0 ||
		getaddrinfo(host, port, &hints, &a) != 0)
		return malformed(where, e);
	r = open_tcp(l, a, where, e);
	freeaddrinfo(a);
	return r;
}
