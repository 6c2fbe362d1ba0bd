/* SPDX-License-Identifier: MIT */
/*
 * io.c - descriptors: whole reads and writes, passing, files that appear whole
 *
 * Runs in:   every process
 * Trusts:    nothing that arrives: lengths, the number of descriptors and
 *            truncation are checked, and surplus descriptors are closed;
 *            nothing in a directory: a temporary name is new, and no link is
 *            followed
 */
#include "io.h"

#include "sys.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* How often a lock is tried that somebody else has. */
#define LOCK_LOOK_MS 4

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

int64_t io_time_to_ns(const struct timespec *t)
{
	int64_t ns;

	if (__builtin_mul_overflow((int64_t)t->tv_sec, 1000000000, &ns) ||
		__builtin_add_overflow(ns, t->tv_nsec, &ns))
		return t->tv_sec < 0 ? INT64_MIN : INT64_MAX;
	return ns;
}

struct timespec io_time_from_ns(int64_t ns)
{
	struct timespec t = {ns / 1000000000, ns % 1000000000};

	if (t.tv_nsec < 0) {
		t.tv_nsec += 1000000000;
		t.tv_sec--;
	}
	return t;
}

static void await_events(int fd, short events)
{
	struct pollfd p = {.fd = fd, .events = events};

	poll(&p, 1, -1);
}

ssize_t io_read_full(int fd, void *buf, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t r = read(fd, (char *)buf + done, n - done);

		if (r == 0)
			break;
		if (r > 0)
			done += (size_t)r;
		else if (errno == EAGAIN)
			await_events(fd, POLLIN);
		else if (errno != EINTR)
			return -1;
	}
	return (ssize_t)done;
}

int io_write_full(int fd, const void *buf, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t r = write(fd, (const char *)buf + done, n - done);

		if (r >= 0)
			done += (size_t)r;
		else if (errno == EAGAIN)
			await_events(fd, POLLOUT);
		else if (errno != EINTR)
			return -1;
	}
	return 0;
}

ssize_t io_read_small(int dirfd, const char *path, char *buf, size_t size)
{
	auto_close int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : io_read_full(fd, buf, size - 1);

	buf[n < 0 ? 0 : n] = '\0';
	return n;
}

int io_read_some(int fd, size_t max, char **buf, size_t *n)
{
	char *b = malloc(max + 1);
	ssize_t r = b ? io_read_full(fd, b, max) : -1;

	if (r < 0) {
		free(b);
		return -1;
	}
	b[r] = '\0';
	*buf = b;
	*n = (size_t)r;
	return 0;
}

int io_read_file(int dirfd, const char *path, size_t max, char **buf, size_t *n)
{
	auto_close int fd =
		openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	auto_free char *b = NULL;

	if (fd < 0 || io_read_some(fd, max + 1, &b, n) < 0)
		return -1;
	if (*n > max) {
		errno = EFBIG;
		return -1;
	}
	*buf = b;
	b = NULL;
	return 0;
}

union fd_space {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * (IO_FDS_MAX + 12))];
};

int io_send_fds(int sock, const void *buf, size_t n, const int *fds, int nfds,
	int flags)
{
	struct iovec iov = {.iov_base = (void *)buf, .iov_len = n};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	union fd_space space;

	if (nfds > IO_FDS_MAX) {
		errno = EINVAL;
		return -1;
	}
	if (nfds > 0) {
		struct cmsghdr *c;
		size_t len = sizeof(int) * (size_t)nfds;

		memset(&space, 0, sizeof(space));
		m.msg_control = space.bytes;
		m.msg_controllen = CMSG_SPACE(len);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(len);
		memcpy(CMSG_DATA(c), fds, len);
	}
	while (sendmsg(sock, &m, flags | MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return -1;
	return 0;
}

void io_raise_descriptors(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
		r.rlim_cur = r.rlim_max;
		setrlimit(RLIMIT_NOFILE, &r);
	}
}

static void pass_fds(int sock, int pass)
{
	setsockopt(sock, SOL_SOCKET, SO_PASSRIGHTS, &pass, sizeof(pass));
}

ino_t io_inode(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 ? st.st_ino : 0;
}

void io_refuse_fds(int sock)
{
	pass_fds(sock, 0);
}

void io_allow_fds(int sock)
{
	pass_fds(sock, 1);
}

/* Each message brings the sender's ids, which tell an empty one from none; of
 * descriptors, for which there is no room, the kernel says that they are there.
 */
enum io_first io_look_at_first(int sock)
{
	const int on = 1;
	char byte, ids[CMSG_SPACE(sizeof(struct ucred))];
	struct iovec iov = {.iov_base = &byte, .iov_len = 1};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t r;

	if (setsockopt(sock, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
		return IO_FIRST_FDS;
	do {
		m.msg_control = ids;
		m.msg_controllen = sizeof(ids);
		r = recvmsg(sock, &m, MSG_PEEK | MSG_DONTWAIT);
	} while (r < 0 && (errno == EINTR || errno == ECONNRESET));
	if (r < 0 && errno == EAGAIN)
		return IO_FIRST_NOTHING;
	if (r < 0 || m.msg_flags & MSG_CTRUNC)
		return IO_FIRST_FDS;
	return m.msg_controllen > 0 ? IO_FIRST_BYTES : IO_FIRST_NOTHING;
}

/* Keep the first `maxfds` descriptors in `fds`, and close the others; returns
 * how many came. */
static int fds_collect(struct msghdr *m, int *fds, int maxfds)
{
	int seen = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		size_t bytes;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		bytes = c->cmsg_len - CMSG_LEN(0);
		for (size_t at = 0; at + sizeof(int) <= bytes;
			at += sizeof(int)) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + at, sizeof(fd));
			if (seen < maxfds)
				fds[seen] = fd;
			else
				close(fd);
			seen++;
		}
	}
	return seen;
}

ssize_t io_recv_fds(
	int sock, void *buf, size_t n, int *fds, int maxfds, int flags)
{
	struct iovec iov = {.iov_base = buf, .iov_len = n};
	union fd_space space;
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = space.bytes};
	ssize_t r;
	int seen, unread = 0;

	/* Descriptors that nobody wants cost little, but must be closed. */
	m.msg_controllen = CMSG_SPACE(sizeof(int) * ((size_t)maxfds + 12));
	for (int i = 0; i < maxfds; i++)
		fds[i] = -1;
	/* A peer that ended without reading everything is reported first, as
	 * ECONNRESET and once. Its own last messages come after that. */
	do {
		r = recvmsg(sock, &m, flags | MSG_CMSG_CLOEXEC);
		unread |= r < 0 && errno == ECONNRESET;
	} while (r < 0 && (errno == EINTR || errno == ECONNRESET));
	if (r < 0)
		return -1;
	if (r == 0)
		errno = unread ? ECONNRESET : 0;
	seen = fds_collect(&m, fds, maxfds);
	if (seen <= maxfds && !(m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return r;
	fds_drop(fds, maxfds);
	/* The kernel drops descriptors for which we have no numbers. */
	errno = seen <= maxfds && !(m.msg_flags & MSG_TRUNC) ? EMFILE
							     : EMSGSIZE;
	return -1;
}

/* Neither blocks when it is closed. No file system is asked for either. */
static bool is_tame(int fd)
{
	return fcntl(fd, F_GET_SEALS) >= 0 || fcntl(fd, F_GETPIPE_SZ) >= 0;
}

/* For descriptors beyond `maxfds` there is no room, and the kernel drops them
 * without a close() of ours. */
ssize_t io_recv_tame(
	int sock, void *buf, size_t n, int *fds, int maxfds, int flags)
{
	struct iovec iov = {.iov_base = buf, .iov_len = n};
	union fd_space space;
	struct msghdr m = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = space.bytes,
		.msg_controllen = CMSG_LEN(sizeof(int) * (size_t)maxfds)};
	bool tame = true;
	ssize_t r;

	for (int i = 0; i < maxfds; i++)
		fds[i] = -1;
	do
		r = recvmsg(sock, &m, flags | MSG_CMSG_CLOEXEC);
	while (r < 0 && (errno == EINTR || errno == ECONNRESET));
	if (r < 0)
		return -1;
	fds_collect(&m, fds, maxfds);
	for (int i = 0; i < maxfds; i++)
		tame &= fds[i] < 0 || is_tame(fds[i]);
	if (tame && !(m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return r;
	for (int i = 0; i < maxfds; i++)
		fds[i] = -1;
	errno = EBADMSG;
	return -1;
}

ssize_t io_recv_strange(int sock, void *buf, size_t n, int flags)
{
	if (!(flags & MSG_DONTWAIT))
		io_await(sock, -1);
	if (io_look_at_first(sock) != IO_FIRST_FDS)
		return io_recv_fds(sock, buf, n, NULL, 0, flags);
	fcntl(sock, F_DUPFD_CLOEXEC, 3);
	errno = EPROTO;
	return -1;
}

pid_t io_fork(int *sock)
{
	int pair[2];
	pid_t pid;

	*sock = -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	pid = fork();
	close(pair[pid != 0]);
	if (pid < 0)
		close(pair[0]);
	else
		*sock = pair[pid == 0];
	return pid;
}

int io_lock(int fd, int within_ms)
{
	int tries = within_ms / LOCK_LOOK_MS;

	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if ((errno != EWOULDBLOCK && errno != EINTR) || tries-- <= 0)
			return -1;
		poll(NULL, 0, LOCK_LOOK_MS);
	}
	return 0;
}

int io_await(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, ms) > 0;
}

int io_is_readable(int fd)
{
	return io_await(fd, 0);
}

DIR *io_list_taken(int fd)
{
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d)
		fd_drop(&fd);
	return d;
}

DIR *io_list(int dir)
{
	return io_list_taken(
		openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

int io_set_nonblock(int fd, int on)
{
	int fl = fcntl(fd, F_GETFL);

	if (fl < 0)
		return -1;
	return fcntl(fd, F_SETFL, on ? fl | O_NONBLOCK : fl & ~O_NONBLOCK);
}

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

int io_sealed_memfd(const char *name, const void *buf, size_t n)
{
	auto_close int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || io_write_full(fd, buf, n) < 0)
		return -1;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -1;
	if (io_seal(fd) < 0)
		return -1;
	return fd_take(&fd);
}

int io_seal(int fd)
{
	return fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | SEALS);
}

off_t io_sealed_size(int fd)
{
	/* Before fstat(2), which a file on FUSE can keep waiting, too. */
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	return seals >= 0 && (seals & SEALS) == SEALS && fstat(fd, &st) == 0
		       ? st.st_size
		       : -1;
}

/* ---- a file that gets its name when it is whole ---- */

static int create_file(int dir, const char *name, mode_t mode)
{
	return openat(dir, name,
		O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
}

int io_newfile_create(struct io_newfile *f, int dir, mode_t mode)
{
	uint64_t r = 0;

	*f = (struct io_newfile){.dir = -1, .fd = -1};
	if (getrandom(&r, sizeof(r), 0) != (ssize_t)sizeof(r))
		return -1;
	snprintf(f->temp, sizeof(f->temp), ".cellblock-%016llx.part",
		(unsigned long long)r);
	f->dir = fcntl(dir, F_DUPFD_CLOEXEC, 3);
	f->fd = f->dir < 0 ? -1 : create_file(f->dir, f->temp, mode);
	if (f->fd >= 0)
		return 0;
	fd_drop(&f->dir);
	return -1;
}

/* Where the file system knows no rename that spares what is there: take the
 * name first, exclusively, then rename over the empty file. */
static int rename_reserving(const struct io_newfile *f, const char *name)
{
	auto_close int fd = create_file(f->dir, name, 0666);

	return fd < 0 ? -1 : renameat(f->dir, f->temp, f->dir, name);
}

int io_newfile_commit(struct io_newfile *f, const char *name, bool replace)
{
	int r;

	if (replace) {
		r = renameat(f->dir, f->temp, f->dir, name);
	} else {
		r = sys_rename_new(f->dir, f->temp, name);
		if (r < 0 && (errno == EINVAL || errno == ENOSYS))
			r = rename_reserving(f, name);
	}
	if (r < 0)
		return -1;
	fd_drop(&f->fd);
	fd_drop(&f->dir);
	return 0;
}

void io_newfile_abort(struct io_newfile *f)
{
	if (f->dir >= 0)
		unlinkat(f->dir, f->temp, 0);
	fd_drop(&f->fd);
	fd_drop(&f->dir);
}
