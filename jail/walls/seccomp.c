/* SPDX-License-Identifier: MIT */
/*
 * seccomp.c - which system calls a process may make
 *
 * Runs in:   init; each guest, before Python; the front end, before input
 * Trusts:    the filters, made at build time from seccomp_rules.h
 * Leaves:    a process that cannot remove its filter
 */
#include "jail/walls/walls.h"

#include "jail/base/array.h"
#include "seccomp_bpf.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CODE(a) a, (unsigned short)(sizeof(a) / sizeof((a)[0]))

static const struct {
	const char *name;
	const struct sock_filter *code;
	unsigned short n;
} entries[SECCOMP_PROFILES] = {
#ifndef SECCOMP_BPF_NONE
	[SECCOMP_GUEST] = {"guest", CODE(seccomp_bpf_guest)},
	[SECCOMP_GUEST_NOMEM] = {"guest without a memory cgroup",
		CODE(seccomp_bpf_guest_nomem)},
	[SECCOMP_INIT] = {"init", CODE(seccomp_bpf_init)},
	[SECCOMP_FRONT] = {"front end", CODE(seccomp_bpf_front)},
	[SECCOMP_INIT_SHARED] = {"init", CODE(seccomp_bpf_init_shared)},
	[SECCOMP_SERVER] = {"server", CODE(seccomp_bpf_server)},
	[SECCOMP_CONTROL] = {"front end", CODE(seccomp_bpf_control)},
	[SECCOMP_TRIAL] = {"trial", CODE(seccomp_bpf_trial)},
#endif
};

int seccomp_size(enum seccomp_profile profile)
{
	return entries[profile].n;
}

const struct sock_filter *seccomp_code(enum seccomp_profile profile)
{
	return entries[profile].code;
}

/* unshare(0) asks for nothing, so only a filter refuses it. */
static int seccomp_verify(const char *name, struct err *e)
{
	if (unshare(0) == 0)
		return err_set(e, "seccomp: the %s filter has no effect", name);
	if (errno != EPERM)
		return err_errno(e, "seccomp: try the %s filter", name);
	if (prctl(PR_GET_SECCOMP) != SECCOMP_MODE_FILTER)
		return err_set(e, "seccomp: no filter is in force");
	return 0;
}

int seccomp_load(enum seccomp_profile profile, struct err *e)
{
	const char *name = entries[profile].name;
	/* The kernel only reads the code; its structure is not const. */
	struct sock_fprog prog = {.len = entries[profile].n,
		.filter = (struct sock_filter *)entries[profile].code};
	long r;

	if (!prog.filter) {
		err_set(e, "seccomp: no filters for this processor");
		return err_hint(e, "x86-64 and arm64 are supported");
	}
	if ((profile == SECCOMP_FRONT || profile == SECCOMP_SERVER ||
		    profile == SECCOMP_CONTROL) &&
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_errno(e, "seccomp: set no_new_privs");
	r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		SECCOMP_FILTER_FLAG_TSYNC, &prog);
	if (r > 0)
		return err_set(
			e, "seccomp: thread %ld has a filter of its own", r);
	if (r < 0) {
		err_errno(e, "seccomp: load the %s filter", name);
		if (errno == EINVAL || errno == ENOSYS)
			err_hint(e, "the kernel needs CONFIG_SECCOMP_FILTER");
		return -1;
	}
	return seccomp_verify(name, e);
}

/* ---- what pid 1 is asked for ---- */

#define READ(field)                                                            \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define JUMP(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no)
#define ANSWER(value) BPF_STMT(BPF_RET | BPF_K, value)

/* The other filter allows everything else. Locks of a description (OFD) may
 * travel with a descriptor that no process has, where nobody counts them. */
static int load_hear(
	unsigned flags, unsigned whole, unsigned part, unsigned map)
{
	const unsigned shared = MAP_SHARED | MAP_ANONYMOUS;
	/* The kernel reads the lower half of the command and of the flags. */
	struct sock_filter code[] = {
		READ(nr),
		JUMP(SYS_flock, 0, 3),
		READ(args[1]),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~(unsigned)LOCK_NB),
		JUMP(LOCK_UN, 10, 13),
		JUMP(SYS_fcntl, 0, 5),
		READ(args[1]),
		JUMP(F_SETLK, 9, 0),
		JUMP(F_SETLKW, 8, 0),
		JUMP(F_OFD_SETLK, 6, 0),
		JUMP(F_OFD_SETLKW, 5, 4),
		JUMP(SYS_mmap, 0, 3),
		READ(args[3]),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, shared),
		JUMP(shared, 4, 0),
		ANSWER(SECCOMP_RET_ALLOW),
		ANSWER(SECCOMP_RET_ERRNO | EINVAL),
		ANSWER(part),
		ANSWER(whole),
		ANSWER(map),
	};
	struct sock_fprog prog = {.len = COUNT(code), .filter = code};

	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog);
}

/* The other filter allows everything else. A datagram socket could send to one
 * that has a name, also where it is one of a pair. */
int seccomp_pairs_only(struct err *e)
{
	struct sock_filter code[] = {
		READ(nr),
		JUMP(SYS_socket, 4, 0),
		JUMP(SYS_socketpair, 0, 4),
		READ(args[1]),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xf),
		JUMP(SOCK_STREAM, 1, 0),
		ANSWER(SECCOMP_RET_ERRNO | EPERM),
		ANSWER(SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {.len = COUNT(code), .filter = code};

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0)
		return err_errno(e, "seccomp: refuse sockets");
	if (socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0 ||
		errno != EPERM)
		return err_set(e, "seccomp: sockets are not refused");
	return 0;
}

int seccomp_hear(int *fd, int maps, struct err *e)
{
	const unsigned ask = SECCOMP_RET_USER_NOTIF, ok = SECCOMP_RET_ALLOW;

	*fd = load_hear(
		SECCOMP_FILTER_FLAG_NEW_LISTENER, ask, ask, maps ? ask : ok);
	if (*fd < 0 && load_hear(0, SECCOMP_RET_ERRNO | ENOSYS,
			       SECCOMP_RET_ERRNO | ENOLCK,
			       maps ? SECCOMP_RET_ERRNO | EPERM : ok) < 0)
		return err_errno(e, "seccomp: watch over locks");
	/* The asking and the answering process take turns on one core, which
	 * is faster (Linux 6.6). */
	ioctl(*fd, _IOW('!', 4, unsigned long), 1ul);
	return 0;
}
