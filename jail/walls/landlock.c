/* SPDX-License-Identifier: MIT */
/*
 * landlock.c - a second wall around files, behind the mounts
 *
 * Runs in:   init, over the finished root; the front end, over the host
 * Trusts:    nothing: an access that no rule allows is denied
 * Leaves:    a domain that descendants inherit and nobody can leave
 *
 * The constants are our own, because installed headers do not know every ABI.
 * landlock(7) says which ABI brought what.
 */
#include "jail/walls/walls.h"

#include "jail/base/io.h"
#include "jail/base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* System call numbers, the same on every architecture. */
#define NR_CREATE_RULESET 444
#define NR_ADD_RULE 445
#define NR_RESTRICT_SELF 446

#define RULE_PATH_BENEATH 1

#define FS_EXECUTE (1ULL << 0)
#define FS_WRITE_FILE (1ULL << 1)
#define FS_READ_FILE (1ULL << 2)
#define FS_READ_DIR (1ULL << 3)
#define FS_REMOVE_DIR (1ULL << 4)
#define FS_REMOVE_FILE (1ULL << 5)
#define FS_MAKE_CHAR (1ULL << 6)
#define FS_MAKE_DIR (1ULL << 7)
#define FS_MAKE_REG (1ULL << 8)
#define FS_MAKE_SOCK (1ULL << 9)
#define FS_MAKE_FIFO (1ULL << 10)
#define FS_MAKE_BLOCK (1ULL << 11)
#define FS_MAKE_SYM (1ULL << 12)
#define FS_REFER (1ULL << 13)	  /* ABI 2, Linux 5.19 */
#define FS_TRUNCATE (1ULL << 14)  /* ABI 3, Linux 6.2 */
#define FS_IOCTL_DEV (1ULL << 15) /* ABI 5, Linux 6.10 */

#define NET_BIND_TCP (1ULL << 0) /* ABI 4, Linux 6.7 */
#define NET_CONNECT_TCP (1ULL << 1)

#define SCOPE_ABSTRACT_UNIX_SOCKET (1ULL << 0) /* ABI 6, Linux 6.12 */
#define SCOPE_SIGNAL (1ULL << 1)

struct ruleset_attr {
	uint64_t fs, net, scoped;
};

struct path_beneath_attr {
	uint64_t allowed;
	int32_t fd;
} __attribute__((packed));

#define READ (FS_READ_FILE | FS_READ_DIR)
#define WRITE                                                                  \
	(READ | FS_WRITE_FILE | FS_TRUNCATE | FS_REFER | FS_REMOVE_DIR |       \
		FS_REMOVE_FILE | FS_MAKE_DIR | FS_MAKE_REG | FS_MAKE_SOCK |    \
		FS_MAKE_FIFO | FS_MAKE_SYM)
/* Rights that the kernel takes for a file that is not a directory. */
#define ON_FILE                                                                \
	(FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV)

static const uint64_t class_rights[] = {
	[LANDLOCK_READ] = READ,
	[LANDLOCK_READ_EXEC] = READ | FS_EXECUTE,
	[LANDLOCK_WRITE] = WRITE,
	[LANDLOCK_WRITE_EXEC] = WRITE | FS_EXECUTE,
	[LANDLOCK_REMOVE] = FS_REMOVE_FILE,
	[LANDLOCK_DEVICE] = READ | FS_WRITE_FILE | FS_TRUNCATE | FS_IOCTL_DEV,
};

/* Rights that this ABI knows, and so can deny. */
static uint64_t abi_rights(int abi)
{
	return ((FS_MAKE_SYM << 1) - 1) | (abi >= 2 ? FS_REFER : 0) |
	       (abi >= 3 ? FS_TRUNCATE : 0) | (abi >= 5 ? FS_IOCTL_DEV : 0);
}

/* The attribute grew with the ABI. */
static size_t abi_attr_size(int abi)
{
	if (abi >= 6)
		return sizeof(struct ruleset_attr);
	if (abi >= 4)
		return offsetof(struct ruleset_attr, scoped);
	return offsetof(struct ruleset_attr, net);
}

static int rule_add(int ruleset, const struct landlock_rule *r, uint64_t known,
	struct err *e)
{
	auto_close int opened = -1;
	struct path_beneath_attr attr = {
		.allowed = class_rights[r->cls] & known, .fd = r->fd};
	const char *name = r->path ? r->path : "a descriptor";
	struct stat st;

	if (r->path) {
		opened = open(r->path, O_PATH | O_CLOEXEC);
		if (opened < 0 && errno == ENOENT && r->optional)
			return 0;
		if (opened < 0)
			return err_errno(e, "landlock: open %s", name);
		attr.fd = opened;
	}
	if (fstat(attr.fd, &st) < 0)
		return err_errno(e, "landlock: look at %s", name);
	if (!S_ISDIR(st.st_mode))
		attr.allowed &= ON_FILE;
	if (syscall(NR_ADD_RULE, ruleset, RULE_PATH_BENEATH, &attr, 0) < 0)
		return err_errno(e, "landlock: allow %s", name);
	return 0;
}

static int ruleset_create(int abi, unsigned flags, struct err *e)
{
	struct ruleset_attr attr = {.fs = abi_rights(abi)};
	long fd;

	if (abi >= 4 && (flags & LANDLOCK_NO_TCP))
		attr.net = NET_BIND_TCP | NET_CONNECT_TCP;
	if (abi >= 6 && (flags & LANDLOCK_SCOPE))
		attr.scoped = SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL;
	fd = syscall(NR_CREATE_RULESET, &attr, abi_attr_size(abi), 0);
	if (fd < 0)
		return err_errno(e, "landlock: create a ruleset");
	return (int)fd; /* always close-on-exec */
}

int landlock_confine(const struct landlock_rule *rules, size_t n,
	unsigned flags, int abi_max, struct err *e)
{
	auto_close int ruleset = -1;
	int abi = sys_landlock_abi();

	if (abi > abi_max)
		abi = abi_max;
	/* ABI 1 denies every rename between directories; no rule can allow
	 * one. */
	if (abi < 1 || (abi < 2 && (flags & LANDLOCK_NEED_REFER)))
		return 0;
	ruleset = ruleset_create(abi, flags, e);
	if (ruleset < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (rule_add(ruleset, &rules[i], abi_rights(abi), e) < 0)
			return -1;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_errno(e, "landlock: set no_new_privs");
	if (syscall(NR_RESTRICT_SELF, ruleset, 0) < 0)
		return err_errno(e, "landlock: restrict");
	return abi;
}
