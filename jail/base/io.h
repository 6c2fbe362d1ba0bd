/* SPDX-License-Identifier: MIT */
/*
 * io.h - descriptors: ownership, whole reads and writes, passing
 *
 * Every descriptor made here is close-on-exec.
 */
#ifndef JAIL_BASE_IO_H
#define JAIL_BASE_IO_H

#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

/* Most descriptors one message carries. */
#define IO_FDS_MAX 6

static inline void io_close_auto(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void io_free_auto(void *p)
{
	free(*(void **)p);
}

/* A descriptor, or allocation, that is released when it goes out of scope. */
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
void fd_drop(int *fd);

/* Nanoseconds and milliseconds of CLOCK_MONOTONIC. */
int64_t now_ns(void);
int64_t now_ms(void);

/* Read until `n` bytes or end of file; bytes read, or -1 with errno.
 * Restarts on EINTR; waits on a descriptor that is non-blocking. */
ssize_t io_read_full(int fd, void *buf, size_t n);

/* Write all `n` bytes; 0, or -1 with errno. Restarts, waits, as above. */
int io_write_full(int fd, const void *buf, size_t n);

/* Read a whole small file, at most `max` bytes, NUL-terminated, into a new
 * allocation (caller frees). *n is without the NUL. -1 with errno; EFBIG. */
int io_read_file(
	int dirfd, const char *path, size_t max, char **buf, size_t *n);

/* Send one message of `n` bytes with `nfds` descriptors (borrows them).
 * MSG_NOSIGNAL. 0, or -1 with errno. To whom it is not certain to read, with
 * MSG_DONTWAIT: a full queue is EAGAIN. */
int io_send_fds(int sock, const void *buf, size_t n, const int *fds, int nfds,
	int flags);

/* Take no descriptors on this socket, where the kernel has that (Linux 6.16):
 * whoever sends one gets EPERM. Closing what came can block. */
void io_refuse_fds(int sock);

/* Receive one message. Returns its length, 0 at end of file, -1 with errno.
 * Received descriptors are close-on-exec and the caller's; unused slots of
 * `fds` are -1. A truncated message, or more than `maxfds` descriptors, is
 * refused with EMSGSIZE and every descriptor that came is closed. */
ssize_t io_recv_fds(
	int sock, void *buf, size_t n, int *fds, int maxfds, int flags);

/* Set or clear O_NONBLOCK. 0, or -1 with errno. */
int io_set_nonblock(int fd, int on);

/* An anonymous memory file holding `n` bytes of `buf`, sealed against any
 * change, at offset 0. Descriptor, or -1 with errno. */
int io_sealed_memfd(const char *name, const void *buf, size_t n);

#endif
