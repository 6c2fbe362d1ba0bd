/* SPDX-License-Identifier: MIT */
/*
 * listen.c - the listening sockets
 *
 * Runs in:   front end, before it is confined
 * Trusts:    the command line; the environment for what a service manager
 *            passed
 * Leaves:    sockets that listen; one in the file system until listen_remove(),
 *            or until the next server of the same user at its path
 */
#include "repl/serve/parts.h"

#include "jail/base/err.h"
#include "jail/base/io.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define BACKLOG 1024
/* How long the children of a dead server may take to die, and how often we
 * look: each look takes a place in the queue of those who connect. */
#define DEAD_MS 30000
#define LOOK_MS 500

static int refuse_address(const char *where, struct err *e)
{
	err_set(e, "--serve wants ADDRESS:PORT or unix:PATH, not '%.100s'",
		where);
	err_hint(e, "such as %s or [::1]:8060", LISTEN_DEFAULT);
	return err_kind_set(e, ERR_USAGE);
}

/* Why open_unix() cannot bind: what is at its path. */
static const char *find_occupant(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return "what is there is no socket, and stays";
	return st.st_uid == geteuid() ? "another server answers there"
				      : "the socket there is another user's, "
					"and stays";
}

enum server {
	SERVER_NONE,   /* nothing has the socket open */
	SERVER_DEAD,   /* its children have */
	SERVER_LISTENS /* or that is not known */
};

static enum server find_server(const struct sockaddr_un *a, int type)
{
	auto_close int fd =
		socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct ucred server = {0};
	socklen_t n = sizeof(server);

	if (fd < 0)
		return SERVER_LISTENS;
	if (connect(fd, (const void *)a, sizeof(*a)) < 0)
		return errno == ECONNREFUSED ? SERVER_NONE : SERVER_LISTENS;
	/* The process that called listen(); 0 in another pid namespace. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &server, &n) < 0 ||
		server.pid <= 0 || kill(server.pid, 0) == 0 || errno != ESRCH)
		return SERVER_LISTENS;
	return SERVER_DEAD;
}

/* Remove a socket of our user that no process has open. The children of a
 * server that was killed are given time to die. Other servers, as ssh-agent, go
 * on in a child: their socket stays. */
static void remove_left_behind(const struct sockaddr_un *a, int type)
{
	int64_t end = now_ms() + DEAD_MS;
	enum server server;
	struct stat st;

	if (lstat(a->sun_path, &st) < 0 || !S_ISSOCK(st.st_mode) ||
		st.st_uid != geteuid())
		return;
	server = find_server(a, type);
	if (server == SERVER_DEAD)
		fprintf(stderr,
			"cellblock: listen at unix:%s: the server there is "
			"dead; waiting for the end of its children\n",
			a->sun_path);
	while (server == SERVER_DEAD && now_ms() < end) {
		poll(NULL, 0, LOOK_MS);
		server = find_server(a, type);
	}
	if (server == SERVER_NONE)
		unlink(a->sun_path);
}

/* Fail, with a hint for what errno says. */
static int fail_to_listen(const char *where, const char *in_use, struct err *e)
{
	int why = errno;

	err_errno(e, "listen at %s", where);
	if (why == EADDRINUSE)
		return err_hint(e, "%s", in_use);
	if (why == EADDRNOTAVAIL)
		return err_hint(e, "this host has no such address; those that "
				   "it has: ip address");
	if (why == EACCES && strncmp(where, "unix:", 5) != 0)
		return err_hint(e, "ports below 1024 are root's; 8060 is not");
	return -1;
}

/* Listen at unix:PATH. `mask` is the umask for the socket. */
static int open_unix(struct listener *l, const char *where, int type,
	mode_t mask, struct err *e)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	const char *path = where + strlen("unix:");
	int r;

	if (!*path || strlen(path) >= sizeof(a.sun_path)) {
		err_set(e,
			"listen at '%.120s': expected a path of 1 to %zu bytes",
			path, sizeof(a.sun_path) - 1);
		return err_kind_set(e, ERR_USAGE);
	}
	strcpy(a.sun_path, path);
	l->fds[l->n] = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fds[l->n] < 0)
		return err_errno(e, "listen at %s", where);
	remove_left_behind(&a, type);
	mask = umask(mask);
	r = bind(l->fds[l->n++], (void *)&a, sizeof(a));
	umask(mask);
	if (r < 0 || listen(l->fds[0], BACKLOG) < 0)
		return fail_to_listen(where, find_occupant(path), e);
	return 0;
}

/* getaddrinfo(3) takes any number, and uses its low 16 bits. */
static bool is_port(const char *s)
{
	size_t n = strlen(s);

	return n > 0 && n <= 5 && strspn(s, "0123456789") == n &&
	       atoi(s) <= UINT16_MAX;
}

/* Split "ADDRESS:PORT" or "[ADDRESS]:PORT". */
static int split_address(
	const char *where, char *host, size_t size, const char **port)
{
	const char *colon = strrchr(where, ':');
	size_t n = colon ? (size_t)(colon - where) : 0;

	if (n > 2 && where[0] == '[' && where[n - 1] == ']') {
		where++;
		n -= 2;
	} else if (colon && memchr(where, ':', n)) {
		return -1;
	}
	if (!colon || n == 0 || n >= size || !is_port(colon + 1))
		return -1;
	memcpy(host, where, n);
	host[n] = '\0';
	*port = colon + 1;
	return 0;
}

static bool is_local(const struct sockaddr_storage *a)
{
	const struct sockaddr_in *v4 = (const void *)a;
	const struct sockaddr_in6 *v6 = (const void *)a;

	if (a->ss_family == AF_UNIX)
		return true;
	return a->ss_family == AF_INET
		       ? ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET
		       : IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

/* Append an address to `shown`, as --serve takes it. */
static void show_address(struct listener *l, const struct sockaddr_storage *a)
{
	const struct sockaddr_in *v4 = (const void *)a;
	const struct sockaddr_in6 *v6 = (const void *)a;
	const struct sockaddr_un *un = (const void *)a;
	char text[INET6_ADDRSTRLEN];
	size_t at = strlen(l->shown), room = sizeof(l->shown) - at;
	char *p = l->shown + at;

	if (at > 0) {
		snprintf(p, room, " and ");
		at = strlen(l->shown);
		p = l->shown + at;
		room = sizeof(l->shown) - at;
	}
	if (a->ss_family == AF_INET) {
		inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text));
		snprintf(p, room, "%s:%d", text, ntohs(v4->sin_port));
	} else if (a->ss_family == AF_INET6) {
		inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
		snprintf(p, room, "[%s]:%d", text, ntohs(v6->sin6_port));
	} else {
		snprintf(p, room, "unix:%s%.*s", un->sun_path[0] ? "" : "@",
			(int)sizeof(un->sun_path) - 1,
			un->sun_path + !un->sun_path[0]);
	}
}

static int open_tcp(struct listener *l, const struct addrinfo *a,
	const char *where, struct err *e)
{
	int on = 1;
	int fd = socket(
		a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return err_errno(e, "listen at %s", where);
	l->fds[l->n++] = fd;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
		bind(fd, a->ai_addr, a->ai_addrlen) < 0 ||
		listen(fd, BACKLOG) < 0)
		return fail_to_listen(where,
			"another program listens there (ss -ltnp names it); "
			"port 0 is any that is free",
			e);
	return 0;
}

/* ---- sockets that a service manager passes ---- */

/* Read a number from the environment, and remove the variable: nothing else
 * needs it. -1: no number. */
static long take_env_number(const char *name)
{
	const char *s = getenv(name);
	char *end;
	long n = s && *s ? strtol(s, &end, 10) : -1;

	if (s && *s && *end)
		n = -1;
	unsetenv(name);
	return n;
}

static int get_option(int fd, int what)
{
	int v = -1;
	socklen_t n = sizeof(v);

	return getsockopt(fd, SOL_SOCKET, what, &v, &n) < 0 ? -1 : v;
}

static bool is_listening(int fd, int type)
{
	int family = get_option(fd, SO_DOMAIN);

	return get_option(fd, SO_ACCEPTCONN) == 1 &&
	       get_option(fd, SO_TYPE) == type &&
	       (family == AF_UNIX || family == AF_INET || family == AF_INET6);
}

/* sd_listen_fds(3): the sockets are the descriptors from 3 on, if LISTEN_PID is
 * ours. */
static int take_passed(struct listener *l, int type, struct err *e)
{
	long pid = take_env_number("LISTEN_PID"),
	     n = take_env_number("LISTEN_FDS");

	unsetenv("LISTEN_FDNAMES");
	if (pid != getpid() || n <= 0)
		return 0;
	if (n > LISTEN_MAX)
		return err_set(e, "LISTEN_FDS: %ld sockets, and %d may be", n,
			LISTEN_MAX);
	for (int fd = 3; fd < 3 + n; fd++) {
		if (!is_listening(fd, type)) {
			err_set(e, "LISTEN_FDS: descriptor %d does not listen",
				fd);
			return err_hint(e, "Accept=no, %s=",
				type == SOCK_STREAM ? "ListenStream"
						    : "ListenSequentialPacket");
		}
		l->fds[l->n++] = fd;
		if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 ||
			io_set_nonblock(fd, 1) < 0)
			return err_errno(e, "LISTEN_FDS: descriptor %d", fd);
	}
	return 0;
}

/* ---- open, close ---- */

static int open_where(struct listener *l, const char *where, struct err *e)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};
	struct addrinfo *a = NULL;
	const char *port;
	char host[64];
	int r;

	if (!strncmp(where, "unix:", 5)) {
		/* Our user and our group may connect. */
		if (open_unix(l, where, SOCK_STREAM, 0117, e) < 0)
			return -1;
		l->path = where + 5;
		return 0;
	}
	if (split_address(where, host, sizeof(host), &port) < 0 ||
		getaddrinfo(host, port, &hints, &a) != 0)
		return refuse_address(where, e);
	r = open_tcp(l, a, where, e);
	freeaddrinfo(a);
	return r;
}

/* Complete `l`. Accepted sockets inherit SO_KEEPALIVE, which ends connections
 * to clients that have vanished. */
static int finish_listen(struct listener *l, struct err *e)
{
	int on = 1;

	l->local = true;
	for (int i = 0; i < l->n; i++) {
		struct sockaddr_storage a = {0};
		socklen_t n = sizeof(a);

		if (getsockname(l->fds[i], (void *)&a, &n) < 0 ||
			setsockopt(l->fds[i], SOL_SOCKET, SO_KEEPALIVE, &on,
				sizeof(on)) < 0)
			return err_errno(e, "listen");
		l->local &= is_local(&a);
		show_address(l, &a);
	}
	return 0;
}

static int refuse_both(
	const char *option_name, const char *where, struct err *e)
{
	err_set(e, "%s %.100s: a service manager passed sockets", option_name,
		where);
	return err_hint(e, "leave out the address, or the .socket unit");
}

int listen_open_packets(struct listener *l, const char *path,
	const char *otherwise, struct err *e)
{
	char where[128];

	*l = (struct listener){0};
	if (take_passed(l, SOCK_SEQPACKET, e) < 0)
		return -1;
	if (l->n > 0 && path)
		return refuse_both("--maker", path, e);
	if (l->n > 0)
		return finish_listen(l, e) < 0 ? -1 : 1;
	snprintf(where, sizeof(where), "unix:%s", path ? path : otherwise);
	return open_unix(l, where, SOCK_SEQPACKET, 0111, e) < 0
		       ? -1
		       : finish_listen(l, e);
}

int listen_open(struct listener *l, const char *where, struct err *e)
{
	*l = (struct listener){0};
	if (take_passed(l, SOCK_STREAM, e) < 0)
		return -1;
	if (l->n > 0 && where)
		return refuse_both("--serve", where, e);
	if (l->n == 0 && open_where(l, where ? where : LISTEN_DEFAULT, e) < 0)
		return -1;
	return finish_listen(l, e);
}

/* Any other name is refused: its owner can have it stand for another host now,
 * and for this host a moment later. */
bool listen_is_local_name(const char *host)
{
	bool v6 = *host == '[';
	const char *at = host + v6;
	size_t n = strcspn(at, v6 ? "]" : ":");
	const char *rest = at + n + (v6 && at[n]);
	char name[INET6_ADDRSTRLEN];
	struct in6_addr a6;
	struct in_addr a4;

	if ((v6 && !at[n]) || (*rest && *rest != ':') || n >= sizeof(name))
		return false;
	memcpy(name, at, n);
	name[n] = '\0';
	if (v6)
		return inet_pton(AF_INET6, name, &a6) == 1 &&
		       IN6_IS_ADDR_LOOPBACK(&a6);
	return !strcasecmp(name, "localhost") ||
	       (inet_pton(AF_INET, name, &a4) == 1 &&
		       ntohl(a4.s_addr) >> 24 == IN_LOOPBACKNET);
}

/* The kernel closes what a killed process leaves from the highest descriptor
 * down. Where the listening sockets go last, a proxy connects once more for
 * each connection that ends, and sends requests that never run. */
void listen_raise(struct listener *l, int lowest)
{
	for (int i = 0; i < l->n; i++) {
		int fd = fcntl(l->fds[i], F_DUPFD_CLOEXEC, lowest);

		if (fd < 0)
			continue;
		close(l->fds[i]);
		l->fds[i] = fd;
	}
}

void listen_close(struct listener *l)
{
	while (l->n > 0)
		close(l->fds[--l->n]);
}

void listen_remove(void *arg)
{
	const struct listener *l = arg;
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	if (!l->path)
		return;
	strcpy(a.sun_path, l->path);
	remove_left_behind(&a, SOCK_STREAM);
}
