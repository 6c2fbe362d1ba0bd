/* SPDX-License-Identifier: MIT */
/*
 * io.h - descriptors: ownership, whole reads and writes, passing; the clock
 *
 * Every descriptor made here is close-on-exec.
 */
#ifndef JAIL_BASE_IO_H
#define JAIL_BASE_IO_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* The time of a clock; -1 when it is gone, as a process's is. */
static inline int64_t io_clock_ns(clockid_t clock)
{
	struct timespec t;

	if (clock_gettime(clock, &t) < 0)
		return -1;
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline int64_t now_ns(void)
{
	return io_clock_ns(CLOCK_MONOTONIC);
}

static inline int64_t now_ms(void)
{
	return now_ns() / 1000000;
}

/* A time of a file as one number, and back. A cell can give a file any time:
 * what has no number gets the nearest. */
int64_t io_time_to_ns(const struct timespec *t);
struct timespec io_time_from_ns(int64_t ns);

/* CPU time of this process so far. */
static inline int64_t io_cpu_ns(void)
{
	return io_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* Most descriptors of a message. */
#define IO_FDS_MAX 32

static inline void io_close_auto(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void io_free_auto(void *p)
{
	free(*(void **)p);
}

/* A descriptor or an allocation that is released at the end of its scope. */
#define auto_close __attribute__((cleanup(io_close_auto)))
#define auto_free __attribute__((cleanup(io_free_auto)))

/* Take the descriptor out of `*fd`, which becomes -1. */
static inline int fd_take(int *fd)
{
	int r = *fd;

	*fd = -1;
	return r;
}

/* Close `*fd` if it is open, and set it to -1. */
static inline void fd_drop(int *fd)
{
	io_close_auto(fd);
	*fd = -1;
}

/* Close those of `n` descriptors that are open, and make each -1. */
static inline void fds_drop(int *fds, int n)
{
	for (int i = 0; i < n; i++)
		fd_drop(&fds[i]);
}

/* Read until `n` bytes or end of file. Returns the bytes read, or -1 with
 * errno. Restarts on EINTR, and waits where the descriptor is non-blocking. */
ssize_t io_read_full(int fd, void *buf, size_t n);

/* Write all `n` bytes: 0, or -1 with errno. Restarts and waits likewise. */
int io_write_full(int fd, const void *buf, size_t n);

/* Read at most `max` bytes, or to the end of file, into *buf, with a NUL behind
 * its *n bytes (caller frees). 0, or -1 with errno. */
int io_read_some(int fd, size_t max, char **buf, size_t *n);

/* The same of a whole file. EFBIG for one that is larger. */
int io_read_file(
	int dirfd, const char *path, size_t max, char **buf, size_t *n);

/* Read a small file, of a longer one the beginning: its length, or -1 with
 * errno. `buf` always ends with a NUL. */
ssize_t io_read_small(int dirfd, const char *path, char *buf, size_t size);

/* Send one message of `n` bytes with `nfds` descriptors (borrowed). 0, or -1
 * with errno, never SIGPIPE. Pass MSG_DONTWAIT where the peer may not read: a
 * full queue is EAGAIN then. */
int io_send_fds(int sock, const void *buf, size_t n, const int *fds, int nfds,
	int flags);

/* Raise RLIMIT_NOFILE as far as it goes. The kernel counts the descriptors on
 * their way through sockets for each user, and refuses more than that limit of
 * the sender. A guest, with a limit of its own, can keep as many on their way:
 * ours must not be refused for it. main() does it, for all that it forks. */
void io_raise_descriptors(void);

/* The inode that a descriptor is open on, or 0. */
ino_t io_inode(int fd);

/* Refuse descriptors on this socket, where the kernel can (Linux 6.16): to send
 * one fails with EPERM. To close a received descriptor could block. */
void io_refuse_fds(int sock);

/* Take them again. */
void io_allow_fds(int sock);

/* The first thing that waits at a packet socket of the caller's. It is not
 * taken, and no descriptor in it is closed: that can take as long as a stranger
 * likes. */
enum io_first { IO_FIRST_NOTHING, IO_FIRST_BYTES, IO_FIRST_FDS };
enum io_first io_look_at_first(int sock);

/* Receive one message. Returns its length, 0 at end of file (errno ECONNRESET:
 * with something of ours unread there; or 0), -1 with errno.
 * Received descriptors are close-on-exec and the caller's; unused slots of
 * `fds` are -1. A truncated message or more than `maxfds` descriptors is
 * EMSGSIZE, descriptors for which this process had no room EMFILE, and every
 * received descriptor is closed. */
ssize_t io_recv_fds(
	int sock, void *buf, size_t n, int *fds, int maxfds, int flags);

/* The same from a stranger, who may send no descriptor: a message that holds
 * one is EPROTO, and stays in the socket, of which a copy stays open. To close
 * it could take as long as the stranger likes; an exit does not wait. */
ssize_t io_recv_strange(int sock, void *buf, size_t n, int flags);

/* The same, where sealed memory files and pipes are wanted alone, and nobody
 * may be kept waiting. A message with any other descriptor, with too many, or
 * too long is EBADMSG; its descriptors stay open, for nobody knows how long it
 * takes to close them: the caller ends what matters, and then exits. */
ssize_t io_recv_tame(
	int sock, void *buf, size_t n, int *fds, int maxfds, int flags);

/* As fork(), with a pair of packet sockets between the two: *sock is the end of
 * the process that returns. -1 with errno, and *sock is -1. */
pid_t io_fork(int *sock);

/* Lock a whole file or directory (flock(2)) for this open file alone, within so
 * long; longer on a busy host. 0, or -1 with errno: EWOULDBLOCK, somebody else
 * keeps it. */
int io_lock(int fd, int within_ms);

/* True if read(2) would not wait. A process that is stopped behind poll(2)
 * looks once more: another may have read the bytes meanwhile. */
int io_is_readable(int fd);

/* Wait until there is something to read, or the end of file: at most so many
 * milliseconds; -1: without a limit. False after that, and after a signal. */
int io_await(int fd, int ms);

/* The entries of a directory, for the caller to closedir(). NULL with errno.
 * io_list_taken() takes `fd`, which may be -1; io_list() leaves `dir` open, and
 * that may be opened with O_PATH. */
DIR *io_list_taken(int fd);
DIR *io_list(int dir);

/* Set or clear O_NONBLOCK. 0, or -1 with errno. */
int io_set_nonblock(int fd, int on);

/* A memory file that holds `buf`, sealed against any change, at offset 0.
 * Descriptor, or -1 with errno. */
int io_sealed_memfd(const char *name, const void *buf, size_t n);

/* Seal a memory file like that. 0, or -1 with errno. */
int io_seal(int fd);

/* The size of such a file of any process; -1: it is no such file. No other
 * process can change it or make its reader wait, as a file on FUSE can. */
off_t io_sealed_size(int fd);

/* A file that gets its name when it is whole. */
struct io_newfile {
	int dir, fd; /* the directory, and the file, open for writing */
	char temp[40];
};

/* Begin a file in `dir`, of which a duplicate is kept, under a temporary name
 * that nobody can guess. 0, or -1 with errno. */
int io_newfile_create(struct io_newfile *f, int dir, mode_t mode);

/* Give the file its name. Without `replace`, a file of that name stays:
 * -1 with EEXIST. 0, and `f` is closed; or -1 with errno. */
int io_newfile_commit(struct io_newfile *f, const char *name, bool replace);

/* Remove the file, if it has no name yet, and close it. */
void io_newfile_abort(struct io_newfile *f);

#endif
