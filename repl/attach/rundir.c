/* SPDX-License-Identifier: MIT */
/*
 * rundir.c - the directory of a person's sockets
 *
 * Runs in:   front end before it confines itself; clients
 * Trusts:    a directory of the person or of root that no other user may write
 *            to. We use it through its descriptor, so that nobody can exchange
 *            its path; the files in it may be anything
 * Leaves:    one socket for each session, until the session ends. The next
 *            process that finds a socket without a listener removes it
 */
#include "attach.h"

#include "jail/base/array.h"
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
/* Other processes hold the lock of a directory for microseconds. Its person may
 * hold it for ever: who only sweeps waits less, and once for a directory. */
#define LOCK_MS 1000
#define SWEEP_LOCK_MS 40

/* The directories, in the order in which a person's first session tries them.
 * Later sessions use the same one, even if a better directory has appeared: so
 * every shell finds all sessions. We ignore XDG_RUNTIME_DIR, because shells of
 * su, sudo and cron have none. */
static const struct {
	const char *fixed; /* the uid follows; NULL: the state directory */
	const char *last;  /* we make it; NULL: only root makes the directory */
} places[] = {
	{"/run/cellblock/s", NULL},
	{"/run/user", "/cellblock"},
	{NULL, "/live"},
};

/* Open a directory that only the person and root may change. A descriptor, or
 * -1 with e. */
static int open_private(const char *path, uid_t uid, struct err *e)
{
	auto_close int fd =
		open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(e, "open directory %s", path);
	if (st.st_uid != uid && st.st_uid != 0)
		return err_set(
			e, "%s belongs to uid %u", path, (unsigned)st.st_uid);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set(e, "others may write to %s", path);
	return fd_take(&fd);
}

/* Open directory `i` of the table; with `make`, make its last part. */
static int open_place(const struct rundir_of *of, size_t i, bool make,
	char path[static PATH_MAX], struct err *e)
{
	const char *last = places[i].last;
	auto_close int first = -1;
	int n;

	if (places[i].fixed)
		n = snprintf(path, PATH_MAX, "%s/%u", places[i].fixed,
			(unsigned)of->uid);
	else
		n = snprintf(path, PATH_MAX, "%s",
			of->state_dir ? of->state_dir : "");
	if (path[0] != '/' || (size_t)n + sizeof("/cellblock") > PATH_MAX)
		return err_set(e, "there is no directory for a socket");
	if (!last)
		return open_private(path, of->uid, e);
	if (places[i].fixed && (first = open_private(path, of->uid, e)) < 0)
		return -1;
	snprintf(path + n, PATH_MAX - (size_t)n, "%s", last);
	if (make && mkdir(path, 0700) < 0 && errno != EEXIST)
		return err_errno(e, "make directory %s", path);
	return open_private(path, of->uid, e);
}

/* A path through the descriptor is short, and leads nowhere else. */
static void name_socket(struct sockaddr_un *a, int dir, int id)
{
	*a = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(a->sun_path, sizeof(a->sun_path), "/proc/self/fd/%d/%d", dir,
		id);
}

void rundir_remove(int dir, int id)
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

/* Connect through the file's descriptor: we follow no symbolic link. */
static int try_connect(int dir, int id)
{
	auto_close int file = -1, sock = new_socket();
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	char name[16];

	snprintf(name, sizeof(name), "%d", id);
	file = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d", file);
	if (sock >= 0)
		io_refuse_fds(sock);
	if (sock < 0 || file < 0 ||
		connect(sock, (struct sockaddr *)&a, sizeof(a)) < 0)
		return -1;
	return fd_take(&sock);
}

/* True if `uid` listens: a link in the path may lead to another person. */
static bool is_persons(int sock, uid_t uid)
{
	struct ucred who = {0};
	socklen_t n = sizeof(who);

	return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 &&
	       who.uid == uid;
}

/* Remove a socket without a listener, and no other kind of file. The caller has
 * the lock: a new session may be about to listen. */
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

/* As rundir_connect(), and leave the socket there. */
static int connect_to_persons(int dir, int id, uid_t uid)
{
	auto_close int sock = try_connect(dir, id);

	if (sock >= 0 && is_persons(sock, uid))
		return fd_take(&sock);
	if (sock >= 0)
		errno = EPERM;
	return -1;
}

int rundir_connect(int dir, int id, uid_t uid)
{
	int sock = connect_to_persons(dir, id, uid);

	if (sock >= 0 || errno != ECONNREFUSED)
		return sock;
	if (io_lock(dir, SWEEP_LOCK_MS) == 0) {
		sweep(dir, id);
		flock(dir, LOCK_UN);
	}
	errno = ECONNREFUSED;
	return -1;
}

void rundir_look(int dir, int id, int sock, pid_t *pid, int64_t *began)
{
	struct ucred who = {0};
	socklen_t n = sizeof(who);
	char name[16];
	struct stat st;

	snprintf(name, sizeof(name), "%d", id);
	*pid = 0;
	*began = 0;
	if (sock >= 0 &&
		getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0)
		*pid = who.pid;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		*began = st.st_mtime;
}

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* The id that `name` is, in the form that we write; 0: it is none. */
static int number_of(const char *name)
{
	char again[16];
	int n = atoi(name);

	snprintf(again, sizeof(again), "%d", n);
	return n > 0 && n <= RUNDIR_IDS && !strcmp(again, name) ? n : 0;
}

size_t rundir_list(int dir, int ids[static RUNDIR_IDS])
{
	DIR *d = io_list(dir);
	const struct dirent *de;
	size_t n = 0;

	if (!d)
		return 0;
	while (n < RUNDIR_IDS && (de = readdir(d)))
		if (number_of(de->d_name))
			ids[n++] = number_of(de->d_name);
	closedir(d);
	qsort(ids, n, sizeof(*ids), by_number);
	return n;
}

/* A stopped session counts: its queue is full (EAGAIN). Where there is none,
 * the sockets without a listener are removed. */
static bool has_session(int dir, uid_t uid)
{
	int ids[RUNDIR_IDS];
	size_t n = rundir_list(dir, ids), dead = 0;

	for (size_t i = 0; i < n; i++) {
		auto_close int sock = connect_to_persons(dir, ids[i], uid);

		if (sock >= 0 || errno == EAGAIN)
			return true;
		if (errno == ECONNREFUSED)
			ids[dead++] = ids[i];
	}
	if (!dead || io_lock(dir, SWEEP_LOCK_MS) < 0)
		return false;
	for (size_t i = 0; i < dead; i++)
		sweep(dir, ids[i]);
	flock(dir, LOCK_UN);
	return false;
}

int rundir_open(const struct rundir_of *of, char path[static PATH_MAX])
{
	for (size_t i = 0; i < COUNT(places); i++) {
		auto_close int dir = open_place(of, i, false, path, NULL);

		if (dir >= 0 && has_session(dir, of->uid))
			return fd_take(&dir);
	}
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

static int bind_lowest(int sock, int dir, int *id)
{
	int last = *id + RUNDIR_SESSIONS - 1;

	for (; *id <= last; ++*id) {
		if (bind_one(sock, dir, *id) == 0)
			return 0;
		if (errno != EADDRINUSE)
			return -1;
		sweep(dir, *id);
		if (bind_one(sock, dir, *id) == 0)
			return 0;
	}
	errno = EADDRINUSE;
	return -1;
}

/* Listen in a directory. A socket, or -1 with e. */
static int listen_in(int dir, int *id, struct err *e)
{
	auto_close int sock = new_socket();
	bool done;

	if (sock < 0)
		return err_errno(e, "open a socket");
	if (io_lock(dir, LOCK_MS) < 0)
		return err_errno(e, "lock the directory of the sockets");
	done = bind_lowest(sock, dir, id) == 0;
	if (done && listen(sock, BACKLOG) < 0) {
		rundir_remove(dir, *id);
		done = false;
	}
	if (!done)
		err_errno(e, "bind a socket");
	flock(dir, LOCK_UN);
	return done ? fd_take(&sock) : -1;
}

int rundir_bind(const struct rundir_of *of, int *dir,
	char path[static PATH_MAX], int *id, struct err *e)
{
	int sock = -1, first = *id;

	*dir = rundir_open(of, path);
	if (*dir >= 0) {
		sock = listen_in(*dir, id, e);
		if (sock < 0)
			fd_drop(dir);
		return sock;
	}
	for (size_t i = 0; i < COUNT(places) && sock < 0; i++) {
		*id = first;
		*dir = open_place(of, i, true, path, e);
		if (*dir >= 0 && (sock = listen_in(*dir, id, e)) < 0)
			fd_drop(dir);
	}
	return sock;
}
