/* SPDX-License-Identifier: MIT */
/*
 * seccomp_rules.h - what each process may ask of the kernel, and why
 *
 * Data only: tools/seccomp_gen.c reads it at build time, the product never.
 * For each profile a call is in at most one group or check (the generator
 * insists on that). A call in none of them gets ENOSYS, as from an older
 * kernel, so that every libc falls back to something else.
 */
#ifndef JAIL_WALLS_SECCOMP_RULES_H
#define JAIL_WALLS_SECCOMP_RULES_H

#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/fs.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* Profiles, in the order of enum seccomp_profile. */
enum {
	GUEST = 1,
	NOMEM = 2,
	OWN = 4,
	PERSONS = 8,
	SHARED = 16,
	SERVER = 32,
	CONTROL = 64,
	TRIAL = 128,
	FRONT = PERSONS | SERVER | CONTROL,
	INIT = OWN | SHARED,
	JAIL = GUEST | NOMEM | INIT,
	ALL = JAIL | FRONT,
};

/* The outcome of a call: ALLOW, an errno that it fails with, or PRETEND: it
 * does nothing and succeeds; or ASK: a tracer decides, and without one it fails
 * with ENOSYS. */
#define ALLOW 0
#define REFUSE EPERM
#define PRETEND (-1)
#define ASK (-2)

struct rules_group {
	unsigned profiles;
	int action;
	const char *why;
	const char *calls; /* names, blank separated */
};

static const struct rules_group rules_groups[] = {
	/* ---- allowed ---- */
	{ALL, ALLOW, "descriptors and their bytes",
		"read write readv writev pread64 pwrite64 preadv pwritev "
		"preadv2 pwritev2 lseek close dup dup2 dup3 "
		"pipe pipe2 ftruncate fallocate flock copy_file_range"},
	{FRONT, ALLOW, "a program's input and output", "splice close_range"},
	{FRONT, ALLOW, "opening the person's files", "open openat openat2"},
	{JAIL, ENOSYS, "the flags are in memory (see openat)", "openat2"},
	{FRONT, ALLOW, "writing out the person's files",
		"fsync fdatasync msync fadvise64"},
	{JAIL, PRETEND,
		"all that the jail can change is in memory. On a file of the "
		"host these would keep the host's disk busy",
		"fsync fdatasync sync_file_range"},
	{ALL, ALLOW, "reading files; the mounts and Landlock decide which",
		"creat access faccessat faccessat2 stat "
		"lstat fstat newfstatat statx statfs fstatfs readlink "
		"readlinkat getdents getdents64 getcwd chdir fchdir umask"},
	{ALL, ALLOW,
		"making, renaming and removing names; the mounts and Landlock "
		"decide where",
		"mkdir mkdirat rmdir rename renameat renameat2 unlink "
		"unlinkat"},
	{JAIL, ALLOW, "changing files, all on tmpfs of the jail's own",
		"truncate chmod fchmod fchmodat fchmodat2 chown fchown "
		"lchown fchownat link linkat symlink symlinkat utime utimes "
		"utimensat futimesat readahead"},
	{JAIL, ALLOW, "extended attributes, of which no file has any",
		"getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr "
		"removexattr lremovexattr fremovexattr"},
	{ALL, ALLOW, "waiting for descriptors",
		"poll ppoll select pselect6 epoll_create epoll_create1 "
		"epoll_ctl epoll_wait epoll_pwait epoll_pwait2 eventfd "
		"eventfd2 timerfd_create timerfd_settime timerfd_gettime "
		"signalfd signalfd4"},
	{GUEST | OWN, ALLOW,
		"watching files; the kernel counts watches per user namespace, "
		"and only a cgroup counts the events that nobody has read. "
		"Where a jail shares inodes with the host, pid 1 and with it "
		"every guest gets ENOSYS: a watch shows what the host does, "
		"and slows it down",
		"inotify_init inotify_init1 inotify_add_watch "
		"inotify_rm_watch"},
	{ALL, ALLOW, "memory", "brk munmap mremap mincore membarrier"},
	{GUEST | INIT, ALLOW, "kinds of memory that only a cgroup counts",
		"shmget msgget"},
	{JAIL, ALLOW, "memory: protection, and locking within RLIMIT_MEMLOCK",
		"mprotect pkey_alloc pkey_free pkey_mprotect mlock mlock2 "
		"munlock mlockall munlockall mseal map_shadow_stack "
		"get_mempolicy"},
	{FRONT, ALLOW, "the source of a cell is passed on in a memfd",
		"memfd_create"},
	{JAIL, ALLOW,
		"System V and POSIX IPC, in an IPC namespace of the jail's own",
		"shmat shmdt shmctl msgsnd "
		"msgrcv msgctl mq_open mq_unlink mq_timedsend "
		"mq_timedreceive mq_getsetattr"},
	{JAIL, ALLOW, "starting and ending processes",
		"fork vfork execve execveat"},
	{ALL, ALLOW, "ending a process, waiting for children",
		"exit exit_group wait4 waitid pidfd_open"},
	{ALL, ALLOW, "threads and locks",
		"futex futex_waitv futex_wake futex_wait futex_requeue "
		"set_robust_list rseq set_tid_address gettid restart_syscall"},
	{ALL, ALLOW, "reading one's own identity",
		"getpid getppid getuid geteuid getgid getegid getresuid "
		"getresgid getgroups getpgrp getpgid getsid capget uname "
		"sysinfo getcpu"},
	{JAIL, ALLOW,
		"changing identity; without capabilities and with one id the "
		"kernel permits only what changes nothing",
		"setuid setgid setreuid setregid setresuid setresgid setfsuid "
		"setfsgid capset"},
	{ALL, ALLOW, "process groups", "setpgid"},
	{JAIL, ALLOW, "new sessions, for ptys and daemons", "setsid"},
	{ALL, ALLOW, "signals",
		"tkill tgkill pidfd_send_signal rt_sigaction rt_sigprocmask "
		"rt_sigpending rt_sigtimedwait rt_sigsuspend rt_sigreturn "
		"sigaltstack pause"},
	{JAIL, ALLOW, "signals that carry a value",
		"rt_sigqueueinfo rt_tgsigqueueinfo"},
	{INIT, ALLOW, "pid 1 stops and kills all with kill(-1)", "kill"},
	{ALL, ALLOW, "reading clocks and sleeping; clocks cannot be set",
		"clock_gettime clock_getres clock_nanosleep nanosleep "
		"gettimeofday time alarm getitimer setitimer times"},
	{ALL, ALLOW, "reading limits and priorities",
		"getrlimit getrusage getpriority ioprio_get "
		"sched_yield sched_getaffinity sched_getscheduler "
		"sched_getparam sched_getattr sched_get_priority_max "
		"sched_get_priority_min sched_rr_get_interval"},
	{INIT | FRONT, ALLOW, "setting limits of one's own", "setrlimit"},
	{INIT, ALLOW, "pid 1 sets limits of its guests (held.c, init.c)",
		"prlimit64"},
	{INIT, ALLOW, "pid 1 prepares its guests", "prctl"},
	{ALL, ALLOW, "random numbers", "getrandom"},
	{ALL, ALLOW, "using sockets that are open already",
		"sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg shutdown "
		"getsockname getpeername getsockopt"},
	{JAIL, ALLOW, "connections in the jail's own network namespace",
		"connect bind listen accept accept4"},
	{JAIL, ALLOW, "processor state of a thread (x86)", "arch_prctl"},
	{INIT, ALLOW, "pid 1 loads the filter of the guests", "seccomp"},

	/* ---- refused ---- */
	{NOMEM, REFUSE,
		"memory that is in no process's map: without a cgroup the "
		"warden adds up maps, and would not see it",
		"memfd_create shmget msgget"},
	{JAIL, ENOSYS,
		"System V semaphores, which no cgroup counts before Linux "
		"5.15: "
		"2 MiB in each of 32,000 sets. POSIX semaphores are files",
		"semget semop semtimedop semctl"},
	{JAIL, EOPNOTSUPP,
		"a list of access rights takes up to 64 KiB of memory that no "
		"cgroup counts. Programs that copy files go on without it",
		"setxattr lsetxattr fsetxattr"},
	{JAIL, EINVAL,
		"pages that a pipe or a socket refers to stay in memory after "
		"their file is gone, or as long as it is the host's, and no "
		"limit counts them. With this errno programs copy instead",
		"splice tee vmsplice sendfile"},
	{FRONT, REFUSE, "only our own code loads filters", "seccomp"},
	{ALL, REFUSE, "mounts, by the old and the new interface",
		"mount umount2 pivot_root chroot fsopen fsconfig fsmount "
		"fspick open_tree open_tree_attr move_mount mount_setattr "
		"statmount listmount"},
	{ALL | TRIAL, REFUSE, "namespaces", "unshare setns"},
	{ALL, REFUSE, "reaching into other processes",
		"process_vm_readv process_vm_writev process_madvise "
		"process_mrelease kcmp get_robust_list "
		"migrate_pages move_pages"},
	{INIT, ALLOW, "pid 1 starts Python ahead, and holds it (held.c)",
		"ptrace"},
	{GUEST | NOMEM | FRONT, REFUSE, "reaching into other processes",
		"ptrace"},
	{INIT, ALLOW, "pid 1 locks files for guests (locker.c)", "pidfd_getfd"},
	{GUEST | NOMEM | FRONT, REFUSE, "reaching into other processes",
		"pidfd_getfd"},
	{ALL, REFUSE, "large parts of the kernel that Python hardly needs",
		"bpf perf_event_open userfaultfd io_uring_setup "
		"io_uring_enter io_uring_register fanotify_init fanotify_mark "
		"memfd_secret modify_ldt remap_file_pages set_mempolicy "
		"set_mempolicy_home_node mbind"},
	{ALL, REFUSE, "asynchronous I/O uses up a pool of the whole host",
		"io_setup io_submit io_cancel io_destroy io_getevents "
		"io_pgetevents"},
	{ALL, REFUSE, "keyrings belong to no namespace",
		"add_key request_key keyctl"},
	{ALL, REFUSE, "a file handle opens files past every mount",
		"open_by_handle_at name_to_handle_at"},
	{ALL, REFUSE, "settings and services of the whole host",
		"init_module finit_module delete_module kexec_load "
		"kexec_file_load reboot swapon swapoff acct quotactl "
		"quotactl_fd syslog vhangup iopl ioperm nfsservctl "
		"lookup_dcookie sethostname setdomainname clock_settime "
		"settimeofday adjtimex clock_adjtime"},
	{ALL, REFUSE, "they would write out the disks of the host",
		"sync syncfs"},
	{ALL, REFUSE, "the user namespace denies it anyway", "setgroups"},
	{ALL, ENOSYS,
		"a timer can send SIGCONT later, and so continue a process "
		"that was stopped. With this errno timeout(1) takes an alarm",
		"timer_create timer_settime timer_gettime timer_getoverrun "
		"timer_delete"},
	{ALL, REFUSE, "a notification can send SIGCONT, too", "mq_notify"},
	{FRONT, REFUSE, "the front end starts nothing",
		"execve execveat fork vfork clone"},
	{FRONT, REFUSE, "the front end already has the only socket it needs",
		"socket connect bind listen accept"},
	{FRONT, REFUSE, "the same", "socketpair"},
	{PERSONS, REFUSE, "the same", "accept4"},
	{SERVER | CONTROL, ALLOW,
		"clients come to the socket that already listens", "accept4"},
	{CONTROL, ALLOW, "leaving the session of a terminal that is gone",
		"setsid"},
	{FRONT, REFUSE, "changes to files that Landlock does not check",
		"truncate chmod fchmod fchmodat fchmodat2 chown fchown lchown "
		"fchownat utime utimes futimesat setxattr lsetxattr fsetxattr "
		"removexattr lremovexattr fremovexattr link linkat symlink "
		"symlinkat"},
	{ALL, ENOSYS,
		"a filter cannot read its arguments, which are in memory; libc "
		"falls back to clone",
		"clone3"},

	/* ---- a copy of Python that answers a question (trial.c) ---- */
	{TRIAL, ALLOW, "it reads files, which may import a module",
		"read readv pread64 preadv preadv2 lseek close stat lstat "
		"fstat newfstatat statx statfs fstatfs access faccessat "
		"faccessat2 readlink readlinkat getdents getdents64 getcwd"},
	{TRIAL, ALLOW, "it computes, in memory of its own",
		"brk munmap mremap mincore madvise membarrier futex "
		"futex_waitv futex_wake futex_wait futex_requeue "
		"set_robust_list rseq restart_syscall sched_yield getrandom"},
	{TRIAL, ALLOW, "it looks at itself and at clocks",
		"getpid getppid gettid getuid geteuid getgid getegid "
		"getresuid getresgid getgroups getpgrp getpgid getsid uname "
		"sysinfo getcpu clock_gettime clock_getres clock_nanosleep "
		"nanosleep gettimeofday time times getrlimit getrusage "
		"getpriority sched_getaffinity"},
	{TRIAL, ALLOW, "its own handlers of signals, and its end",
		"rt_sigaction rt_sigprocmask rt_sigpending rt_sigreturn "
		"sigaltstack exit exit_group"},
	{TRIAL, ALLOW,
		"it is asked, and answers, on a socket; any other that Python "
		"had is a dead one in the copy (park.py)",
		"sendto recvfrom recvmsg poll ppoll select pselect6"},
	{TRIAL, REFUSE, "it starts and signals nothing",
		"clone clone3 fork vfork execve execveat kill tkill tgkill "
		"rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal"},
	{TRIAL, REFUSE, "it changes no file",
		"creat truncate ftruncate fallocate rename renameat renameat2 "
		"unlink unlinkat mkdir mkdirat rmdir link linkat symlink "
		"symlinkat mknod mknodat chmod fchmod fchmodat fchmodat2 "
		"chown fchown lchown fchownat utime utimes utimensat "
		"futimesat pwrite64 pwritev pwritev2 flock"},
};

/*
 * Checks on arguments. Cases are tried in order, and the first that matches
 * decides. An int argument is compared as the kernel reads it, in its lower
 * 32 bits. Otherwise a request with high bits set would get through
 * (CVE-2019-10063).
 */
enum rules_op {
	OP_END,	   /* no (further) test */
	OP_EQ,	   /* lower half == value */
	OP_ONE_OF, /* lower half is one of the values in `list` */
	OP_ANY,	   /* any bit of value is set in the lower half */
	OP_BITS,   /* lower half & mask == value */
	OP_NULL,   /* both halves are zero: a pointer */
	OP_DIRECT, /* OP_ANY of O_DIRECT, whose bit depends on the processor */
};

struct rules_test {
	enum rules_op op;
	int arg;
	uint32_t value, mask;
	const uint32_t *list;
	size_t length;
};

struct rules_case {
	int action;
	struct rules_test test[2]; /* both must hold */
};

#define RULES_CASES 16

struct rules_check {
	unsigned profiles;
	int otherwise;
	const char *why;
	const char *calls;
	struct rules_case cases[RULES_CASES]; /* ends with an empty one */
};

/* clang-format off */
/* A case: one test, or two that must both hold. */
#define IF(action, ...) {action, {__VA_ARGS__}}
#define EQ(n, v) {.op = OP_EQ, .arg = n, .value = (uint32_t)(v)}
#define ONE_OF(n, ...) \
	{.op = OP_ONE_OF, .arg = n, .list = (const uint32_t[]){__VA_ARGS__}, \
	 .length = sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)}
#define ANY(n, bits) {.op = OP_ANY, .arg = n, .value = (uint32_t)(bits)}
#define BITS(n, m, v) {.op = OP_BITS, .arg = n, .value = (uint32_t)(v), .mask = (uint32_t)(m)}
#define IS_NULL(n) {.op = OP_NULL, .arg = n}
#define IS_DIRECT(n) {.op = OP_DIRECT, .arg = n}

#define FILTER_OR_LINGER(action) \
	IF(action, EQ(1, SOL_SOCKET), ONE_OF(2, SO_LINGER, SO_ATTACH_FILTER, SO_ATTACH_BPF, \
		RULES_SO_ATTACH_REUSEPORT_CBPF, RULES_SO_ATTACH_REUSEPORT_EBPF))

#define NOT_A_DEVICE(n) \
	IF(ALLOW, BITS(n, S_IFMT, S_IFIFO)), IF(ALLOW, BITS(n, S_IFMT, S_IFREG)), \
	IF(ALLOW, BITS(n, S_IFMT, S_IFSOCK)), IF(ALLOW, BITS(n, S_IFMT, 0))

/* Options of sockets that guests may set: numbers that the kernel keeps in the
 * socket itself. For others it takes memory that no limit counts: filters,
 * groups, lists of addresses, headers to send (IPV6_RTHDR), keys; flow labels,
 * of which the whole host has a small number; and with SO_ZEROCOPY, pages. With
 * SO_REUSEPORT each port takes 2 KiB. Some servers set it in any case, and need
 * it only for a second one on the same port. */
#define IN_THE_SOCKET \
	IF(PRETEND, EQ(1, SOL_SOCKET), EQ(2, SO_REUSEPORT)), \
	IF(ALLOW, EQ(1, SOL_SOCKET), ONE_OF(2, SO_DEBUG, SO_REUSEADDR, SO_DONTROUTE, \
		SO_BROADCAST, SO_KEEPALIVE, SO_OOBINLINE, SO_NO_CHECK, \
		SO_PRIORITY, SO_PASSCRED, SO_PASSSEC, SO_RCVLOWAT, SO_SNDLOWAT, \
		RULES_SO_RCVTIMEO_OLD, RULES_SO_SNDTIMEO_OLD, RULES_SO_RCVTIMEO_NEW, \
		RULES_SO_SNDTIMEO_NEW, SO_BINDTODEVICE, RULES_SO_TIMESTAMP_OLD, \
		RULES_SO_TIMESTAMP_NEW, RULES_SO_TIMESTAMPNS_OLD, \
		RULES_SO_TIMESTAMPNS_NEW, SO_RXQ_OVFL, SO_PEEK_OFF, SO_INCOMING_CPU, \
		RULES_SO_PASSPIDFD)), \
	IF(ALLOW, EQ(1, IPPROTO_IP), ONE_OF(2, IP_TOS, IP_TTL, IP_RECVOPTS, IP_RETOPTS, \
		IP_PKTINFO, IP_MTU_DISCOVER, IP_RECVERR, IP_RECVTTL, IP_RECVTOS, \
		IP_FREEBIND, IP_RECVORIGDSTADDR, IP_MINTTL, IP_BIND_ADDRESS_NO_PORT, \
		IP_RECVFRAGSIZE, RULES_IP_RECVERR_RFC4884, IP_MULTICAST_IF, \
		IP_MULTICAST_TTL, IP_MULTICAST_LOOP, IP_MULTICAST_ALL, IP_UNICAST_IF, \
		IP_DROP_MEMBERSHIP, RULES_IP_LOCAL_PORT_RANGE)), \
	IF(ALLOW, EQ(1, IPPROTO_IPV6), ONE_OF(2, IPV6_V6ONLY, IPV6_UNICAST_HOPS, \
		IPV6_MULTICAST_IF, IPV6_MULTICAST_HOPS, IPV6_MULTICAST_LOOP, \
		IPV6_LEAVE_GROUP, RULES_IPV6_MULTICAST_ALL, IPV6_MTU_DISCOVER, IPV6_MTU, \
		IPV6_RECVERR, RULES_IPV6_RECVERR_RFC4884, IPV6_RECVPKTINFO, \
		IPV6_RECVHOPLIMIT, IPV6_RECVTCLASS, IPV6_TCLASS, IPV6_DONTFRAG, \
		IPV6_AUTOFLOWLABEL, IPV6_ADDR_PREFERENCES, IPV6_MINHOPCOUNT, \
		RULES_IPV6_RECVORIGDSTADDR, IPV6_UNICAST_IF, IPV6_RECVFRAGSIZE, \
		IPV6_FREEBIND)), \
	IF(ALLOW, EQ(1, IPPROTO_TCP), ONE_OF(2, TCP_NODELAY, TCP_MAXSEG, TCP_CORK, \
		TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT, TCP_SYNCNT, TCP_LINGER2, \
		TCP_DEFER_ACCEPT, TCP_WINDOW_CLAMP, TCP_QUICKACK, TCP_CONGESTION, \
		TCP_THIN_LINEAR_TIMEOUTS, TCP_THIN_DUPACK, TCP_USER_TIMEOUT, \
		TCP_FASTOPEN, TCP_FASTOPEN_CONNECT, TCP_FASTOPEN_NO_COOKIE, \
		TCP_NOTSENT_LOWAT, TCP_INQ)), \
	IF(ALLOW, EQ(1, IPPROTO_UDP), ONE_OF(2, RULES_UDP_SEGMENT, RULES_UDP_GRO))

/* prctl() of guests. */
#define OF_THE_CALLER \
	IF(ALLOW, ONE_OF(0, PR_SET_NAME, PR_GET_NAME, PR_GET_PDEATHSIG)), \
	IF(ALLOW, EQ(0, PR_SET_PDEATHSIG), ONE_OF(1, 0, SIGHUP, SIGINT, SIGTERM, SIGKILL)), \
	IF(ALLOW, ONE_OF(0, PR_GET_DUMPABLE, PR_GET_KEEPCAPS, PR_GET_SECCOMP, \
		PR_CAPBSET_READ, PR_GET_SECUREBITS, PR_GET_TIMERSLACK, \
		PR_SET_TIMERSLACK, PR_GET_CHILD_SUBREAPER, PR_GET_NO_NEW_PRIVS, \
		PR_SET_NO_NEW_PRIVS, PR_GET_TID_ADDRESS, PR_GET_THP_DISABLE)), \
	IF(ALLOW, EQ(0, PR_CAP_AMBIENT), EQ(1, PR_CAP_AMBIENT_IS_SET)), \
	IF(ALLOW, ONE_OF(0, PR_SVE_SET_VL, PR_SVE_GET_VL, RULES_PR_GET_SPECULATION_CTRL, \
		RULES_PR_PAC_RESET_KEYS, RULES_PR_SET_TAGGED_ADDR_CTRL, \
		RULES_PR_GET_TAGGED_ADDR_CTRL, RULES_PR_GET_AUXV)), \
	IF(PRETEND, EQ(0, PR_SET_DUMPABLE), EQ(1, 0)), \
	IF(ASK, EQ(0, PR_SET_MM), EQ(1, PR_SET_MM_MAP)), \
	IF(EINVAL, EQ(0, RULES_PR_SET_VMA))
/* clang-format on */

#define NAMESPACES                                                             \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |         \
		CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)

/* Values that older headers do not have. */
#define RULES_TIOCGPTPEER 0x5441
#define RULES_SO_RCVTIMEO_OLD 20
#define RULES_SO_SNDTIMEO_OLD 21
#define RULES_SO_TIMESTAMP_OLD 29
#define RULES_SO_TIMESTAMPNS_OLD 35
#define RULES_SO_TIMESTAMP_NEW 63
#define RULES_SO_TIMESTAMPNS_NEW 64
#define RULES_SO_RCVTIMEO_NEW 66
#define RULES_SO_SNDTIMEO_NEW 67
#define RULES_SO_PASSPIDFD 76
#define RULES_IP_RECVERR_RFC4884 26
#define RULES_IP_LOCAL_PORT_RANGE 51
#define RULES_IPV6_MULTICAST_ALL 29
#define RULES_IPV6_RECVERR_RFC4884 31
#define RULES_IPV6_RECVORIGDSTADDR 74
#define RULES_UDP_SEGMENT 103
#define RULES_UDP_GRO 104
#define RULES_SO_ATTACH_REUSEPORT_CBPF 51
#define RULES_SO_ATTACH_REUSEPORT_EBPF 52
#define RULES_PR_GET_SPECULATION_CTRL 52
#define RULES_PR_PAC_RESET_KEYS 54
#define RULES_PR_SET_TAGGED_ADDR_CTRL 55
#define RULES_PR_GET_TAGGED_ADDR_CTRL 56
#define RULES_PR_SET_VMA 0x53564d41
#define RULES_PR_GET_AUXV 0x41555856
#define RULES_IOPRIO_WHO_PROCESS 1
#define RULES_F_SETDELEG 1040
#define RULES_MADV_COLLAPSE 25

#define ADVICE_FOR_THE_HOST MADV_COLD, MADV_PAGEOUT, MADV_MERGEABLE
#define SET_DIRECT IF(EINVAL, EQ(1, F_SETFL), IS_DIRECT(2))
#define WATCHES F_SETSIG, F_NOTIFY, F_SETLEASE, RULES_F_SETDELEG

/* clang-format off */
static const struct rules_check rules_checks[] = {
	{JAIL, REFUSE,
	 "no new namespaces; when the child dies its parent gets SIGCHLD or no "
	 "signal, never SIGCONT. The threads of a process share a table of "
	 "descriptors with each other and with no other process: init counts "
	 "locks by it, and looks at what is to be locked (notify.c)",
	 "clone", {
		IF(REFUSE, ANY(0, NAMESPACES)),
		IF(REFUSE, BITS(0, CLONE_THREAD | CLONE_FILES, CLONE_THREAD)),
		IF(REFUSE, BITS(0, CLONE_THREAD | CLONE_FILES, CLONE_FILES)),
		IF(ALLOW, BITS(0, CSIGNAL, SIGCHLD)),
		IF(ALLOW, BITS(0, CSIGNAL, 0))}},

	{ALL, ENOTTY,
	 "terminal settings, sizes, interfaces. Nothing that types for the person "
	 "(CVE-2017-5226, CVE-2023-28100), and nothing that takes the terminal "
	 "from other processes",
	 "ioctl", {
		IF(REFUSE, ONE_OF(1, TIOCSTI, TIOCLINUX, TIOCSETD, TIOCCONS, TIOCEXCL)),
		/* any descriptor */
		IF(ALLOW, ONE_OF(1, FIOCLEX, FIONCLEX, FIONBIO, FIOASYNC, FIONREAD, FIOQSIZE)),
		/* terminals: modes (the last four are TCGETS2 and TCSETS*2) */
		IF(ALLOW, ONE_OF(1, TCGETS, TCSETS, TCSETSW, TCSETSF, TCGETA, TCSETA, TCSETAW,
			TCSETAF, 0x802c542a, 0x402c542b, 0x402c542c, 0x402c542d)),
		/* terminals: size, flow, job control */
		IF(ALLOW, ONE_OF(1, TIOCGWINSZ, TIOCSWINSZ, TIOCOUTQ, TCSBRK, TCSBRKP, TCXONC,
			TCFLSH, TIOCGPGRP, TIOCSPGRP, TIOCGSID, TIOCSCTTY, TIOCNOTTY, TIOCGETD)),
		/* ptys; TIOCSIG sends INT, QUIT or TSTP, to one's own pty only */
		IF(ALLOW, ONE_OF(1, TIOCGPTN, TIOCSPTLCK, TIOCGPTLCK, RULES_TIOCGPTPEER,
			TIOCPKT, TIOCGPKT, TIOCSIG)),
		/* init answers on a descriptor that only init has (notify.c) */
		IF(ALLOW, ONE_OF(1, SECCOMP_IOCTL_NOTIF_RECV, SECCOMP_IOCTL_NOTIF_SEND,
			SECCOMP_IOCTL_NOTIF_ID_VALID)),
		/* files */
		IF(ALLOW, ONE_OF(1, FIGETBSZ, FICLONE, FICLONERANGE, FS_IOC_GETFLAGS,
			RNDGETENTCNT)),
		/* sockets: reading about interfaces */
		IF(ALLOW, ONE_OF(1, SIOCATMARK, SIOCGIFNAME, SIOCGIFINDEX, SIOCGIFCONF,
			SIOCGIFFLAGS, SIOCGIFADDR, SIOCGIFBRDADDR, SIOCGIFNETMASK, SIOCGIFMTU,
			SIOCGIFHWADDR))}},

	{JAIL, ALLOW,
	 "threads share one table of descriptors (see clone)",
	 "close_range", {
		IF(REFUSE, ANY(2, CLOSE_RANGE_UNSHARE))}},

	{JAIL, ALLOW,
	 "O_DIRECT reads past the cache, as often as a process likes: the disk of "
	 "the host would have no rest. Not every file system knows the flag",
	 "open", {
		IF(EINVAL, IS_DIRECT(1))}},

	{JAIL, ALLOW, "as open", "openat", {
		IF(EINVAL, IS_DIRECT(2))}},

	{GUEST | INIT | FRONT, ALLOW,
	 "F_SETSIG could turn SIGIO into SIGCONT. The others watch a file, or make "
	 "those wait who open it",
	 "fcntl", {
		IF(REFUSE, ONE_OF(1, WATCHES)), SET_DIRECT}},

	{NOMEM, ALLOW,
	 "as above; and no cgroup counts larger pipes",
	 "fcntl", {
		IF(REFUSE, ONE_OF(1, WATCHES, F_SETPIPE_SZ)), SET_DIRECT}},

	{JAIL, ALLOW,
	 "as fsync: a shared mapping writes out the file of the host even through "
	 "an overlay",
	 "msync", {
		IF(PRETEND, ANY(2, MS_SYNC))}},

	{JAIL, ALLOW,
	 "dropping a file of the host from the cache would make the host read it "
	 "again; advice may be ignored",
	 "fadvise64", {
		IF(PRETEND, EQ(3, POSIX_FADV_DONTNEED))}},

	{GUEST | INIT | FRONT, ALLOW,
	 "nor may it be read again, or written to a swap, because a process drops "
	 "its pages. Nor does the host look for equal pages in the jail",
	 "madvise", {
		IF(EINVAL, ONE_OF(2, ADVICE_FOR_THE_HOST))}},

	{NOMEM, ALLOW,
	 "the same; and no huge pages. When all but a part of one is unmapped, the "
	 "whole stays, and only a cgroup counts it. pid 1 has turned them off; this "
	 "advice would have them all the same, or be kept until they are on again",
	 "madvise", {
		IF(EINVAL, ONE_OF(2, ADVICE_FOR_THE_HOST, MADV_HUGEPAGE,
			RULES_MADV_COLLAPSE))}},

	{JAIL, ALLOW,
	 "huge pages come from a pool of the host, and no limit counts them. Where "
	 "no cgroup counts memory, pid 1 grants anonymous shared memory (notify.c)",
	 "mmap", {
		IF(REFUSE, ANY(3, MAP_HUGETLB))}},

	{GUEST | INIT, ALLOW,
	 "huge pages come from a pool of the host, and no limit counts them",
	 "memfd_create", {
		IF(REFUSE, ANY(1, MFD_HUGETLB))}},

	{FRONT, ALLOW,
	 "no new code after the start",
	 "mmap mprotect", {
		IF(REFUSE, ANY(2, PROT_EXEC))}},

	{JAIL, REFUSE,
	 "only these families, and no internet protocol that loads a module: "
	 "the kernel looks for a module when a type and a protocol (6 is TCP, "
	 "17 UDP) do not belong together. Not netlink: answers that nobody has "
	 "read, up to rmem_max a socket, are counted nowhere",
	 "socket", {
		IF(ALLOW, EQ(0, AF_UNIX)),
		/* the type is in the lowest four bits: only STREAM and DGRAM */
		IF(REFUSE, ANY(1, 0xc)),
		IF(REFUSE, BITS(1, 3, 0)),
		IF(REFUSE, BITS(1, 3, SOCK_RAW)),
		IF(REFUSE, BITS(1, 3, SOCK_STREAM), EQ(2, 17)),
		IF(REFUSE, BITS(1, 3, SOCK_DGRAM), EQ(2, 6)),
		IF(ALLOW, EQ(0, AF_INET), ONE_OF(2, 0, 6, 17)),
		IF(ALLOW, EQ(0, AF_INET6), ONE_OF(2, 0, 6, 17))}},

	{JAIL, REFUSE,
	 "only this family has pairs that a guest needs",
	 "socketpair", {
		IF(ALLOW, EQ(0, AF_UNIX))}},

	{INIT | FRONT, ALLOW,
	 "no packet filters, which are programs in the kernel; no SO_LINGER, which "
	 "would make whoever closes the socket wait",
	 "setsockopt", {
		FILTER_OR_LINGER(REFUSE)}},

	{GUEST, REFUSE,
	 "only options that make the kernel keep no more memory. No SO_LINGER",
	 "setsockopt", {
		IN_THE_SOCKET,
		IF(ALLOW, EQ(1, SOL_SOCKET), ONE_OF(2, SO_SNDBUF, SO_RCVBUF))}},

	{NOMEM, REFUSE,
	 "the same; no larger buffers either: without a cgroup nothing counts them",
	 "setsockopt", {
		IN_THE_SOCKET}},

	{GUEST | NOMEM | FRONT, ALLOW,
	 "-1 means every process: it could kill the checkpoints, or send SIGCONT "
	 "to all",
	 "kill", {
		IF(REFUSE, EQ(0, -1))}},

	{GUEST, REFUSE,
	 "reading, and settings that concern only the caller. SIGCONT cannot "
	 "become a death signal; no guest can take init's place as reaper, or hide "
	 "from the warden by making itself undumpable. sftp-server gives up where it "
	 "cannot, so it is told that it is. Where its arguments are is set while pid "
	 "1 holds it (held.c)",
	 "prctl", {
		IF(ALLOW, EQ(0, PR_SET_THP_DISABLE)),
		OF_THE_CALLER}},

	{NOMEM, REFUSE,
	 "the same, but huge pages stay off: who turns them off finds them so",
	 "prctl", {
		IF(PRETEND, EQ(0, PR_SET_THP_DISABLE), EQ(1, 1)),
		OF_THE_CALLER}},

	{FRONT, REFUSE,
	 "reading, and names of threads and mappings",
	 "prctl", {
		IF(ALLOW, ONE_OF(0, PR_SET_NAME, PR_GET_NAME, PR_GET_DUMPABLE,
			PR_GET_NO_NEW_PRIVS, PR_GET_SECCOMP, PR_CAPBSET_READ,
			RULES_PR_SET_VMA))}},

	{ALL, REFUSE,
	 "for the caller only: otherwise a guest could starve init",
	 "sched_setaffinity sched_setscheduler sched_setparam sched_setattr", {
		IF(ALLOW, EQ(0, 0))}},

	{FRONT, REFUSE,
	 "for the caller only",
	 "prlimit64", {
		IF(ALLOW, EQ(0, 0))}},

	{GUEST | NOMEM, REFUSE,
	 "for the caller only. The limit on core dumps stays as it is, because "
	 "with 0 they would be piped to a program of the host (plan.c). The call "
	 "only seems to succeed: programs with secrets ask for 0, and would give "
	 "up without it",
	 "prlimit64", {
		IF(ALLOW, EQ(0, 0), IS_NULL(2)),
		IF(PRETEND, EQ(0, 0), EQ(1, RLIMIT_CORE)),
		IF(ALLOW, EQ(0, 0))}},

	{GUEST | NOMEM, ALLOW,
	 "the limit on core dumps stays as it is (see prlimit64)",
	 "setrlimit", {
		IF(PRETEND, EQ(0, RLIMIT_CORE))}},

	{ALL, REFUSE,
	 "for the caller only: a change by user would reach init and the warden",
	 "setpriority", {
		IF(ALLOW, EQ(0, PRIO_PROCESS), EQ(1, 0))}},

	{ALL, REFUSE,
	 "for the caller only: a change by user would reach init and the warden",
	 "ioprio_set", {
		IF(ALLOW, EQ(0, RULES_IOPRIO_WHO_PROCESS), EQ(1, 0))}},

	{JAIL, REFUSE,
	 "reading it, and plain Linux; other values weaken ASLR",
	 "personality", {
		IF(ALLOW, ONE_OF(0, 0xffffffff, 0))}},

	{JAIL, REFUSE,
	 "no device nodes",
	 "mknod", {
		NOT_A_DEVICE(1)}},

	{JAIL, REFUSE,
	 "no device nodes",
	 "mknodat", {
		NOT_A_DEVICE(2)}},

	{FRONT, REFUSE,
	 "only the times of an open file",
	 "utimensat", {
		IF(ALLOW, IS_NULL(1))}},

	{GUEST | NOMEM, REFUSE,
	 "only our own code loads filters: pid 1, into a copy of Python that it "
	 "traces (trial.c)",
	 "seccomp", {
		IF(ASK, EQ(0, SECCOMP_SET_MODE_FILTER), EQ(1, 0))}},

	/* A copy of Python that answers a question. */

	{TRIAL, REFUSE,
	 "its standard output is /dev/null, and it writes to nothing else",
	 "write writev", {
		IF(ALLOW, ONE_OF(0, 0, 1, 2))}},

	{TRIAL, ALLOW, "only for reading", "open", {
		IF(REFUSE, ANY(1, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC))}},

	{TRIAL, ALLOW, "only for reading", "openat", {
		IF(REFUSE, ANY(2, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC))}},

	{TRIAL, ALLOW, "no memory that it shares is written to", "mmap", {
		IF(REFUSE, ANY(3, MAP_SHARED), ANY(2, PROT_WRITE))}},

	{TRIAL, ALLOW,
	 "pid 1 has made what it shares read-only, and so it stays",
	 "mprotect", {
		IF(REFUSE, ANY(2, PROT_WRITE))}},

	{TRIAL, ENOTTY, "it has no terminal", "ioctl", {
		IF(REFUSE, ONE_OF(1, TIOCSTI, TIOCLINUX, TIOCSETD, TIOCCONS, TIOCEXCL))}},

	{TRIAL, REFUSE, "reading flags of a descriptor", "fcntl", {
		IF(ALLOW, ONE_OF(1, F_GETFD, F_SETFD, F_GETFL))}},

	{TRIAL, REFUSE, "reading its own limits", "prlimit64", {
		IF(ALLOW, EQ(0, 0), IS_NULL(2))}},

	{TRIAL, REFUSE, "reading, and names of mappings", "prctl", {
		IF(ALLOW, ONE_OF(0, PR_GET_NAME, PR_GET_SECCOMP, PR_GET_NO_NEW_PRIVS,
			RULES_PR_SET_VMA))}},
};
/* clang-format on */

/* Calls that the installed libseccomp may not know yet, with a number that is
 * the same on every architecture. */
struct rules_number {
	const char *call;
	int nr;
};

static const struct rules_number rules_numbers[] = {
	{"fchmodat2", 452},
	{"map_shadow_stack", 453},
	{"futex_wake", 454},
	{"futex_wait", 455},
	{"futex_requeue", 456},
	{"statmount", 457},
	{"listmount", 458},
	{"mseal", 462},
	{"open_tree_attr", 467},
};

#endif
