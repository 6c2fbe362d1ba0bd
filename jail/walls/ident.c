/* SPDX-License-Identifier: MIT */
/*
 * ident.c - who a process is, and how it gives up what it is allowed to do
 *
 * Runs in:   warden (allocate, become, map), janitor (allocate), init and front
 *            end (drop), all (close)
 * Holds:     root, or CAP_SETPCAP in its user namespace, until it drops that
 * Trusts:    nothing: after every drop it tries to undo the drop; for
 *            allocations a directory that only root can write to
 * Leaves:    no capability, no way to one, no descriptor but those named; of an
 *            allocation, a lock on one byte of a file, at the offset of the
 *            uid, which the kernel drops when the last holder of the descriptor
 *            dies, so a crash leaks nothing
 */
#include "jail/walls/walls.h"

#include "jail/base/io.h"
#include "jail/base/slots.h"
#include "jail/base/sys.h"
#include "jail/host/host.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/keyctl.h>
#include <linux/securebits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* ---- a uid of its own for each session that root starts ---- */

/* The uid nobody: many services share it. */
#define UID_NOBODY 65534

static int run_dir_open(const char *dir, struct err *e)
{
	auto_close int fd = -1;
	struct stat st;

	if (mkdir(dir, 0711) < 0 && errno != EEXIST)
		return err_errno(e, "make %s", dir);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(e, "open %s", dir);
	if (st.st_uid != 0 || (st.st_mode & 022))
		return err_set(e, "%s must be root's, and nobody else's", dir);
	/* Others find the maker's socket in it (umask, or made by an earlier
	 * build). */
	if ((st.st_mode & 0111) != 0111 && fchmod(fd, 0711) < 0)
		return err_errno(e, "let others search %s", dir);
	return fd_take(&fd);
}

/* True if a process of this uid lives: one that a dead session left behind
 * could reach into the next session of the uid. 1, 0, or -1 with errno. */
static int uid_is_running(uid_t uid)
{
	errno = 0;
	getpriority(PRIO_USER, uid); /* -1 may be a priority: look at errno */
	return errno == ESRCH ? 0 : errno ? -1 : 1;
}

static int uid_is_allocatable(uid_t uid)
{
	return uid != 0 && uid != UID_NOBODY && uid != (uid_t)-1;
}

/* 0 it is ours, 1 it cannot be, -1 with errno. */
static int uid_try(int fd, uid_t uid)
{
	int running;

	if (!uid_is_allocatable(uid))
		return 1;
	if (slots_lock(fd, uid, F_WRLCK) < 0)
		return slots_is_taken() ? 1 : -1;
	running = uid_is_running(uid);
	if (running > 0 && slots_lock(fd, uid, F_UNLCK) < 0)
		return -1;
	return running;
}

int ident_allocate(const char *dir, uid_t lo, uid_t hi, uid_t *uid,
	int *lock_fd, struct err *e)
{
	auto_close int dfd = -1, fd = -1;
	uint64_t count = (uint64_t)hi - lo + 1;
	uint32_t at = 0;

	if (lo > hi)
		return err_set(e, "uids: the range %u to %u is empty", lo, hi);
	dfd = run_dir_open(dir, e);
	if (dfd < 0)
		return err_wrap(e, "uids");
	fd = openat(
		dfd, "uids", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_errno(e, "uids: open %s/uids", dir);
	/* Start at a random one, not at the first that is free: so the remains
	 * of the last owner of a uid (a key, a counter) have time to go. */
	if (getrandom(&at, sizeof(at), GRND_NONBLOCK) < 0)
		at = (uint32_t)getpid();
	for (uint64_t i = 0; i < count; i++) {
		uid_t u = lo + (uid_t)((at + i) % count);
		int r = uid_try(fd, u);

		if (r < 0)
			return err_errno(e, "uids: allocate %u in %s", u, dir);
		if (r > 0)
			continue;
		*uid = u;
		*lock_fd = fd_take(&fd);
		return 0;
	}
	err_set(e, "uids: all of %u to %u are in use", lo, hi);
	return err_hint(e, "widen [jail] uids");
}

/* Behind the bytes of all uids. */
static off_t first_place(uint64_t owner)
{
	return ((off_t)1 << 32) + (off_t)owner * (IDENT_PLACES_MAX + 1);
}

void ident_release_places(int lock_fd, uint64_t owner)
{
	struct flock all = {.l_type = F_UNLCK,
		.l_whence = SEEK_SET,
		.l_start = first_place(owner),
		.l_len = IDENT_PLACES_MAX};

	fcntl(lock_fd, F_OFD_SETLK, &all);
}

int ident_allocation_has_others(int lock_fd, uint64_t owner)
{
	struct flock any = {.l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = first_place(owner),
		.l_len = IDENT_PLACES_MAX};

	return fcntl(lock_fd, F_OFD_GETLK, &any) < 0 || any.l_type != F_UNLCK;
}

/* The byte behind the places of all owners. */
static int lock_person(int lock_fd, int op, uid_t person, short type)
{
	struct flock one = {.l_type = type,
		.l_whence = SEEK_SET,
		.l_start = first_place(2 * IDENT_PLACES_ANY) + (off_t)person,
		.l_len = 1};

	return fcntl(lock_fd, op, &one);
}

int ident_person_lock(int lock_fd, uid_t person, struct err *e)
{
	while (lock_person(lock_fd, F_OFD_SETLKW, person, F_WRLCK) < 0)
		if (errno != EINTR)
			return err_errno(e, "count the sessions");
	return 0;
}

void ident_person_unlock(int lock_fd, uid_t person)
{
	lock_person(lock_fd, F_OFD_SETLK, person, F_UNLCK);
}

void ident_release_all_places(int lock_fd)
{
	/* To the end of what can be locked. */
	struct flock all = {.l_type = F_UNLCK,
		.l_whence = SEEK_SET,
		.l_start = first_place(0)};

	fcntl(lock_fd, F_OFD_SETLK, &all);
}

int ident_allocation_place(int lock_fd, uint64_t owner, int most, struct err *e)
{
	off_t first = first_place(owner);

	if (most > IDENT_PLACES_MAX)
		most = IDENT_PLACES_MAX;
	return slots_claim(lock_fd, first, most, e);
}

void ident_allocation_release(int lock_fd)
{
	struct flock all = {.l_type = F_UNLCK, .l_whence = SEEK_SET};

	fcntl(lock_fd, F_OFD_SETLK, &all);
}

int ident_allocation_name(
	int lock_fd, uid_t uid, char name[IDENT_NAME_MAX], struct err *e)
{
	struct stat st;

	if (fstat(lock_fd, &st) < 0)
		return err_errno(e, "uids: look at the locks");
	snprintf(name, IDENT_NAME_MAX, "%u-%llx-%llx", uid,
		(unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
	return 0;
}

int ident_allocation_is_free(int lock_fd, const char *name)
{
	uid_t uid = (uid_t)strtoul(name, NULL, 10);
	char ours[IDENT_NAME_MAX];

	return uid_is_allocatable(uid) &&
	       ident_allocation_name(lock_fd, uid, ours, NULL) == 0 &&
	       !strcmp(name, ours) && slots_lock(lock_fd, uid, F_WRLCK) == 0;
}

/* ---- user namespace maps ---- */

static int self_write(const char *path, const char *text)
{
	auto_close int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -1 : io_write_full(fd, text, strlen(text));
}

static int map_id(
	const char *kind, unsigned inside, unsigned outside, struct err *e)
{
	char path[32], line[64];

	snprintf(path, sizeof(path), "/proc/self/%s_map", kind);
	snprintf(line, sizeof(line), "%u %u 1\n", inside, outside);
	if (self_write(path, line) < 0)
		return err_errno(e, "user namespace: map %s %u to %u", kind,
			inside, outside);
	return 0;
}

static int map_ids(uid_t inside_uid, uid_t outside_uid, gid_t inside_gid,
	gid_t outside_gid, struct err *e)
{
	/* Must come before gid_map, or the kernel refuses that
	 * (CVE-2014-8989). */
	if (self_write("/proc/self/setgroups", "deny") < 0)
		return err_errno(e, "user namespace: deny setgroups");
	if (map_id("uid", inside_uid, outside_uid, e) < 0)
		return -1;
	return map_id("gid", inside_gid, outside_gid, e);
}

int ident_map_self(uid_t inside_uid, uid_t outside_uid, gid_t inside_gid,
	gid_t outside_gid, struct err *e)
{
	if (map_ids(inside_uid, outside_uid, inside_gid, outside_gid, e) < 0)
		return host_explain_userns(e);
	if (getuid() != inside_uid || geteuid() != inside_uid ||
		getgid() != inside_gid || getegid() != inside_gid)
		return err_set(
			e, "user namespace: the maps did not take effect");
	return 0;
}

/* ---- root becomes someone ---- */

static int caps_are_empty(void)
{
	cap_t now = cap_get_proc();
	cap_t none = cap_init();
	int same = now && none && cap_compare(now, none) == 0;

	cap_free(now);
	cap_free(none);
	return same;
}

static int become_verify(uid_t uid, gid_t gid, struct err *e)
{
	uid_t r, f, s;
	gid_t rg, fg, sg;

	if (getresuid(&r, &f, &s) < 0 || getresgid(&rg, &fg, &sg) < 0)
		return err_errno(e, "identity: read back");
	if (r != uid || f != uid || s != uid || rg != gid || fg != gid ||
		sg != gid || getgroups(0, NULL) != 0)
		return err_set(e, "identity: did not become %u:%u", uid, gid);
	if (setresuid((uid_t)-1, 0, (uid_t)-1) == 0 ||
		setresgid((gid_t)-1, 0, (gid_t)-1) == 0)
		return err_set(e, "identity: root could be regained");
	if (setgroups(0, NULL) == 0)
		return err_set(e, "identity: groups could be changed again");
	if (!caps_are_empty())
		return err_set(e, "identity: capabilities outlived root");
	return 0;
}

int ident_is_root(void)
{
	unsigned long inside, outside, n, sum = 0;
	FILE *f = geteuid() == 0 ? fopen("/proc/self/uid_map", "re") : NULL;

	if (!f)
		return geteuid() == 0;
	while (fscanf(f, "%lu %lu %lu", &inside, &outside, &n) == 3)
		sum += n;
	fclose(f);
	return sum > 1;
}

/*
 * Join a new session keyring, so that no session possesses root's keys: user
 * namespaces do not separate keyrings. It counts for the new uid, which has no
 * other. A person's own session keeps the person's keyring: one for each
 * session would use up their quota. In both, the filter refuses every call that
 * names a key. In a container keyrings may be out of reach.
 */
static int leave_keyring(struct err *e)
{
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 &&
		errno != ENOSYS && errno != EPERM)
		return err_errno(e, "identity: leave the session keyring");
	return 0;
}

int ident_become(uid_t uid, gid_t gid, struct err *e)
{
	if (uid == 0 || gid == 0)
		return err_set(e, "identity: the jail is never root outside");
	/* With it set, the change of uid would keep every capability. */
	if (prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) < 0)
		return err_errno(e, "identity: keep no capabilities");
	if (setgroups(0, NULL) < 0)
		return err_errno(e, "identity: clear groups");
	if (setresgid(gid, gid, gid) < 0)
		return err_errno(e, "identity: become gid %u", gid);
	if (setresuid(uid, uid, uid) < 0)
		return err_errno(e, "identity: become uid %u", uid);
	if (become_verify(uid, gid, e) < 0 || leave_keyring(e) < 0)
		return -1;
	/* The change of uid cleared this; without it root owns /proc/self. */
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		return err_errno(e, "identity: become dumpable");
	return 0;
}

/* ---- capabilities ---- */

#define SECURE_ON                                                              \
	(SECBIT_NOROOT | SECBIT_NO_SETUID_FIXUP | SECBIT_NO_CAP_AMBIENT_RAISE)
#define SECURE_LOCKS                                                           \
	(SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP_LOCKED |                \
		SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)

/* The bounding and ambient sets and the securebits, which only CAP_SETPCAP can
 * change. */
static int drop_with_setpcap(struct err *e)
{
	for (cap_value_t c = 0; c < cap_max_bits(); c++)
		if (cap_drop_bound(c) < 0)
			return err_errno(e,
				"identity: drop capability %d from the "
				"bounding set",
				c);
	/* (libcap would ask for each capability first; verify_bounds() asks
	 * afterwards.) */
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return err_errno(e, "identity: clear ambient capabilities");
	if (prctl(PR_SET_SECUREBITS, SECURE_ON | SECURE_LOCKS, 0, 0, 0) < 0)
		return err_errno(e, "identity: lock securebits");
	return 0;
}

static int drop_caps(struct err *e)
{
	cap_t none = cap_init();
	int r = none ? cap_set_proc(none) : -1;

	if (r < 0)
		err_errno(e, "identity: drop capabilities");
	cap_free(none);
	return r;
}

/* True if the capabilities from lo to hi can be regained: in the permitted and
 * effective sets, or in the inheritable set. */
static int caps_regained(cap_value_t lo, cap_value_t hi)
{
	cap_t held = cap_init(), kept = cap_init();
	int got = 0;

	for (cap_value_t c = lo; held && kept && c <= hi; c++) {
		cap_set_flag(held, CAP_PERMITTED, 1, &c, CAP_SET);
		cap_set_flag(held, CAP_EFFECTIVE, 1, &c, CAP_SET);
		cap_set_flag(kept, CAP_INHERITABLE, 1, &c, CAP_SET);
	}
	got = !held || !kept || cap_set_proc(held) == 0 ||
	      cap_set_proc(kept) == 0;
	cap_free(held);
	cap_free(kept);
	return got;
}

/* Try to regain all at once, and each of the two that would give all others.
 * (Trying each capability would take longer than everything else here.) */
static int verify_caps(struct err *e)
{
	cap_value_t last = cap_max_bits() - 1;

	if (!caps_are_empty())
		return err_set(e, "identity: capabilities are left");
	if (caps_regained(0, last) || caps_regained(CAP_SETPCAP, CAP_SETPCAP) ||
		caps_regained(CAP_SYS_ADMIN, CAP_SYS_ADMIN))
		return err_set(e, "identity: capabilities could be regained");
	for (cap_value_t c = 0; c <= last; c++)
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, c, 0, 0) == 0)
			return err_set(e,
				"identity: capability %d could be raised", c);
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 ||
		prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0)
		return err_set(e, "identity: no_new_privs could be undone");
	return 0;
}

static int verify_bounds(struct err *e)
{
	for (cap_value_t c = 0; c < cap_max_bits(); c++)
		if (cap_get_bound(c) != 0 || cap_get_ambient(c) != 0)
			return err_set(e,
				"identity: capability %d is still within "
				"bounds",
				c);
	if (prctl(PR_GET_SECUREBITS) != (SECURE_ON | SECURE_LOCKS) ||
		prctl(PR_SET_SECUREBITS, 0, 0, 0, 0) == 0)
		return err_set(e, "identity: securebits could be unlocked");
	return 0;
}

/* Try to become root again. The front end of root is meant to be uid 0 without
 * a capability, and has nothing to regain. */
static int verify_ids(struct err *e)
{
	if (getuid() != 0 && setresuid(0, 0, 0) == 0)
		return err_set(e, "identity: became root again");
	if (getgid() != 0 && setresgid(0, 0, 0) == 0)
		return err_set(e, "identity: joined root's group again");
	if (setgroups(0, NULL) == 0)
		return err_set(e, "identity: groups could be changed");
	return 0;
}

static int drop_rest(struct err *e)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_errno(e, "identity: set no_new_privs");
	if (drop_caps(e) < 0 || verify_caps(e) < 0)
		return -1;
	return verify_ids(e);
}

int ident_drop(struct err *e)
{
	if (drop_with_setpcap(e) < 0 || drop_rest(e) < 0)
		return -1;
	return verify_bounds(e);
}

int ident_drop_front(struct err *e)
{
	int able = !caps_are_empty();

	if (able && drop_with_setpcap(e) < 0)
		return -1;
	if (drop_rest(e) < 0)
		return -1;
	return able ? verify_bounds(e) : 0;
}

int ident_set_undumpable(struct err *e)
{
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_errno(e, "identity: become undumpable");
	if (prctl(PR_GET_DUMPABLE) != 0)
		return err_set(e, "identity: still dumpable");
	return 0;
}

int ident_set_ordinary_scheduling(struct err *e)
{
	const struct sched_param none = {0};
	int policy = sched_getscheduler(0);

	if (policy < 0)
		return err_errno(e, "scheduling: read the policy");
	policy &= ~SCHED_RESET_ON_FORK;
	if (policy == SCHED_OTHER || policy == SCHED_BATCH ||
		policy == SCHED_IDLE)
		return 0;
	if (sched_setscheduler(0, SCHED_OTHER, &none) < 0)
		return err_errno(e, "scheduling: give up real time");
	if (sched_getscheduler(0) != SCHED_OTHER)
		return err_set(e, "scheduling: still real time");
	return 0;
}

/* ---- descriptors ---- */

/* Every kernel we run on has close_range(), but the filter of a container may
 * not know it. */
static int close_between_slowly(unsigned lo, unsigned hi)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *de;

	if (!d)
		return -1;
	while ((de = readdir(d))) {
		unsigned long fd = strtoul(de->d_name, NULL, 10);

		if (de->d_name[0] != '.' && fd >= lo && fd <= hi &&
			(int)fd != dirfd(d))
			close((int)fd);
	}
	closedir(d);
	return 0;
}

static int close_between(unsigned lo, unsigned hi)
{
	int r = sys_close_range(lo, hi, 0);

	return r < 0 && (errno == ENOSYS || errno == EPERM)
		       ? close_between_slowly(lo, hi)
		       : r;
}

int ident_close_fds(const int *keep, int n, struct err *e)
{
	unsigned lo = 0;

	do {
		unsigned next = UINT_MAX; /* the lowest to keep from lo on */

		for (int i = 0; i < n; i++)
			if (keep[i] >= 0 && (unsigned)keep[i] >= lo &&
				(unsigned)keep[i] < next)
				next = (unsigned)keep[i];
		if (next > lo && close_between(lo, next - 1) < 0)
			return err_errno(e, "descriptors: close");
		lo = next + 1; /* 0 when none was left to keep */
	} while (lo != 0);
	return 0;
}
