/* SPDX-License-Identifier: MIT */
/*
 * places.c - the directories where sessions have their sockets
 *
 * Runs in:   front end before it confines itself; clients
 * Trusts:    a directory that is the person's own or root's, and that nobody
 *            else may write to. It is used through its descriptor, so that its
 *            path cannot be exchanged; what lies in it may be anything
 * Leaves:    one socket for each session, until the session ends. A socket on
 *            which nobody listens is removed by whoever meets it
 */
#include "attach.h"

#include "jail/base/err.h"
#include "jail/base/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 8
/* Somebody else holds a directory's lock for microseconds. */
#define LOCK_TRIES 100
#define LOCK_WAIT_US 10000

/* The table: a directory, its last part, and whether that part is ours to
 * make. The first part is followed by the uid, or is one of struct places_of.
 *
 * A shell of su, sudo or cron may have no XDG_RUNTIME_DIR, while that of a
 * login has one. So the usual one is looked at there, and nothing is bound in
 * it: it goes with the login. */
static const struct {
	const char *fixed;
	size_t field; /* offset in struct places_of where `fixed` is NULL */
	const char *last;
	bool made;
	bool looked_at; /* only that, and only without a runtime_dir */
} places[] = {
	{"/run/cellblock/s", 0, "", false, false},
	{NULL, offsetof(struct places_of, runtime_dir), "/cellblock", true,
		false},
	{"/run/user", 0, "/cellblock", false, true},
	{NULL, offsetof(struct places_of, state_dir), "/live", true, false},
};

#define PLACES (sizeof(places) / sizeof(places[0]))

const size_t places_count = PLACES;

static int name_place(
	const struct places_of *of, size_t i, char *path, size_t size)
{
	const char *field;
	int n;

	errno = ENOENT;
	if (places[i].looked_at && of->runtime_dir)
		return -1;
	if (places[i].fixed) {
		n = snprintf(path, size, "%s/%u%s", places[i].fixed,
			(unsigned)of->uid, places[i].last);
	} else {
		field = *(const char *const *)((const char *)of +
					       places[i].field);
		if (!field || field[0] != '/')
			return -1;
		n = snprintf(path, size, "%s%s", field, places[i].last);
	}
	errno = ENAMETOOLONG;
	return n > 0 && (size_t)n < size ? 0 : -1;
}

int places_open(const struct places_of *of, size_t i, bool make, char *path,
	size_t size, struct err *e)
{
	auto_close int fd = -1;
	struct stat st;

	if (name_place(of, i, path, size) < 0)
		return err_errno(e, "find a directory for sockets");
	if (make && places[i].made && mkdir(path, 0700) < 0 && errno != EEXIST)
		return err_errno(e, "make directory %s", path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(e, "open directory %s", path);
	if (st.st_uid != of->uid && st.st_uid != 0)
		return err_set(
			e, "%s belongs to uid %u", path, (unsigned)st.st_uid);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set(e, "others may write to %s", path);
	return fd_take(&fd);
}

/* Through the descriptor a path is short enough, and leads nowhere else. */
static void name_socket(struct sockaddr_un *a, int dir, int id)
{
	*a = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(a->sun_path, sizeof(a->sun_path), "/proc/self/fd/%d/%d", dir,
		id);
}

void places_remove(int dir, int id)
{
	char name[16];

	snprintf(name, sizeof(name), "%d", id);
	unlinkat(dir, name, 0);
}

static int new_socket(void)
{
	return socket(
		AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* Through its own descriptor: a link would lead to somebody else's socket. */
static int try_connect(int dir, int id)
{
	auto_close int file = -1, sock = new_socket();
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	char name[16];

	snprintf(name, sizeof(name), "%d", id);
	file = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d", file);
	if (sock < 0 || file < 0 ||
		connect(sock, (struct sockaddr *)&a, sizeof(a)) < 0)
		return -1;
	return fd_take(&sock);
}

/* A person's directory may be a link to another's, and so may its parents. */
static bool is_persons(int sock, uid_t uid)
{
	struct ucred who = {0};
	socklen_t n = sizeof(who);

	return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 &&
	       who.uid == uid;
}

/* Nobody binds in between. 0, or -1 with errno. */
static int lock_dir(int dir)
{
	for (int i = 0; i < LOCK_TRIES; i++) {
		if (flock(dir, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -1;
		usleep(LOCK_WAIT_US);
	}
	return -1;
}

/* Remove a socket that nobody listens on. Only a socket is removed, and only
 * under the lock: a new session may just be about to listen. */
static void sweep(int dir, int id)
{
	char name[16];
	struct stat st;
	int sock;

	snprintf(name, sizeof(name), "%d", id);
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		!S_ISSOCK(st.st_mode))
		return;
	sock = try_connect(dir, id);
	if (sock >= 0)
		close(sock);
	else if (errno == ECONNREFUSED)
		unlinkat(dir, name, 0);
}

int places_connect(int dir, int id, uid_t uid)
{
	auto_close int sock = try_connect(dir, id);

	if (sock >= 0 && is_persons(sock, uid))
		return fd_take(&sock);
	if (sock >= 0)
		errno = EPERM;
	if (errno != ECONNREFUSED)
		return -1;
	if (lock_dir(dir) == 0) {
		sweep(dir, id);
		flock(dir, LOCK_UN);
	}
	errno = ECONNREFUSED;
	return -1;
}

static int bind_one(int sock, int dir, int id)
{
	mode_t before = umask(0177);
	struct sockaddr_un a;
	int r;

	name_socket(&a, dir, id);
	r = bind(sock, (struct sockaddr *)&a, sizeof(a));
	umask(before);
	return r;
}

/* Whether a session has that number in another place. */
static bool is_taken(const int dirs[PLACES], size_t at, int id)
{
	char name[16];
	struct stat st;

	snprintf(name, sizeof(name), "%d", id);
	for (size_t i = 0; i < PLACES; i++) {
		if (i == at || dirs[i] < 0)
			continue;
		sweep(dirs[i], id);
		if (fstatat(dirs[i], name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISSOCK(st.st_mode))
			return true;
	}
	return false;
}

static int bind_lowest(int sock, const int dirs[PLACES], size_t at, int *id)
{
	for (*id = 1; *id <= PLACES_IDS; ++*id) {
		if (is_taken(dirs, at, *id))
			continue;
		if (bind_one(sock, dirs[at], *id) == 0)
			return 0;
		if (errno != EADDRINUSE)
			return -1;
		sweep(dirs[at], *id);
		if (bind_one(sock, dirs[at], *id) == 0)
			return 0;
	}
	errno = EADDRINUSE;
	return -1;
}

/* Always in the order of the table. 0, or -1 with errno. */
static int lock_all(const int dirs[PLACES])
{
	for (size_t i = 0; i < PLACES; i++)
		if (dirs[i] >= 0 && lock_dir(dirs[i]) < 0)
			return -1;
	return 0;
}

static void unlock_all(const int dirs[PLACES])
{
	for (size_t i = 0; i < PLACES; i++)
		if (dirs[i] >= 0)
			flock(dirs[i], LOCK_UN);
}

/* Listen in place `at`. A socket, or -1 with e. */
static int listen_at(const int dirs[PLACES], size_t at, int *id, struct err *e)
{
	auto_close int sock = new_socket();
	bool done;

	if (sock < 0)
		return err_errno(e, "open a socket");
	if (lock_all(dirs) < 0) {
		err_errno(e, "lock the directories of the sockets");
		unlock_all(dirs);
		return -1;
	}
	done = bind_lowest(sock, dirs, at, id) == 0;
	if (done && listen(sock, BACKLOG) < 0) {
		places_remove(dirs[at], *id);
		done = false;
	}
	if (!done)
		err_errno(e, "bind a socket");
	unlock_all(dirs);
	return done ? fd_take(&sock) : -1;
}

int places_bind(const struct places_of *of, int *dir, char *path, size_t size,
	int *id, struct err *e)
{
	int dirs[PLACES], sock = -1;
	struct err last = {0};

	for (size_t i = 0; i < PLACES; i++)
		dirs[i] = places_open(of, i, false, path, size, NULL);
	err_set(e, "there is no directory for a socket");
	for (size_t i = 0; i < PLACES && sock < 0; i++) {
		if (places[i].looked_at)
			continue;
		fd_drop(&dirs[i]);
		dirs[i] = places_open(of, i, true, path, size, &last);
		if (dirs[i] < 0)
			continue;
		sock = listen_at(dirs, i, id, e);
		if (sock >= 0)
			*dir = fd_take(&dirs[i]);
	}
	for (size_t i = 0; i < PLACES; i++)
		fd_drop(&dirs[i]);
	if (sock < 0 && last.msg[0] && !e->code)
		*e = last;
	return sock;
}

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* A number as we would write it; 0: it is none. */
static int number_of(const char *name)
{
	char again[16];
	int n = atoi(name);

	snprintf(again, sizeof(again), "%d", n);
	return n > 0 && n <= PLACES_IDS && !strcmp(again, name) ? n : 0;
}

size_t places_list(int dir, int *ids, size_t max)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *de;
	size_t n = 0;

	if (!d) {
		fd_drop(&fd);
		return 0;
	}
	while (n < max && (de = readdir(d)))
		if (number_of(de->d_name))
			ids[n++] = number_of(de->d_name);
	closedir(d);
	qsort(ids, n, sizeof(*ids), by_number);
	return n;
}
