/* SPDX-License-Identifier: MIT */
/*
 * test_seccomp_use.c - the filters in use: the front end is confined, Python
 * works, and no way leads around a filter
 */
#include "seccomp_trial.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

static int load_then_exec(void *arg)
{
	char *argv[] = {"true", NULL};

	enter(*(int *)arg);
	execv("/bin/true", argv);
	return errno;
}

static void the_front_end_cannot_exec_and_others_can(void **state)
{
	int profile;

	(void)state;
	for (profile = NO_FILTER; profile < SECCOMP_PROFILES; profile++)
		assert_int_equal(forked(load_then_exec, &profile),
			profile == SECCOMP_FRONT || profile == SECCOMP_SERVER ||
					profile == SECCOMP_CONTROL ||
					profile == SECCOMP_TRIAL
				? EPERM
				: 0);
}

static void the_front_end_filter_refuses_dangerous_calls(void **state)
{
	static const int profiles[] = {
		NO_FILTER, SECCOMP_FRONT, SECCOMP_SERVER, SECCOMP_CONTROL};
	char dir[] = "/tmp/cellblock-seccomp-XXXXXX", file[64];
	struct timespec now[2] = {
		{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_NOW}};
	const struct timespec none = {0};
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(file, sizeof(file), "%s/f", dir);
	fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	for (size_t i = 0; i < sizeof(profiles) / sizeof(profiles[0]); i++) {
		const int profile = profiles[i];
		const int no = profile == NO_FILTER ? 0 : EPERM;
		const long at = AT_FDCWD, f = (long)file;
		const struct trial trials[] = {
			{"truncate", profile, SYS_truncate, {f, 0}, no},
			{"fchmodat", profile, SYS_fchmodat, {at, f, 0600}, no},
			{"fchmod", profile, SYS_fchmod, {fd, 0600}, no},
			{"fchownat", profile, SYS_fchownat, {at, f, -1, -1, 0},
				no},
			{"utimensat by name", profile, SYS_utimensat,
				{at, f, (long)now, 0}, no},
			{"utimensat by descriptor", profile, SYS_utimensat,
				{fd, 0, (long)now, 0}, 0},
			{"socket", profile, SYS_socket, {AF_UNIX, SOCK_STREAM},
				no},
			{"socketpair", profile, SYS_socketpair,
				{AF_UNIX, SOCK_STREAM, 0, (long)now}, no},
			{"fork", profile, SYS_clone, {SIGCHLD}, no},
			{"new code", profile, SYS_mmap,
				{0, 4096, PROT_READ | PROT_EXEC,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0},
				no},
			{"memory", profile, SYS_mmap,
				{0, 4096, PROT_READ,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0},
				0},
			{"open", profile, SYS_openat, {at, f, O_RDWR}, 0},
			{"ftruncate", profile, SYS_ftruncate, {fd, 0}, 0},
			{"renameat2", profile, SYS_renameat2, {at, f, at, f, 0},
				0},
			{"poll", profile, SYS_ppoll, {0, 0, (long)&none, 0, 0},
				0},
		};

		RUN(trials);
	}
	close(fd);
	unlink(file);
	rmdir(dir);
}

#if defined(__x86_64__)
static int call_i386(void *arg)
{
	long r;

	enter(*(int *)arg);
	__asm__ volatile("int $0x80"
			 : "=a"(r)
			 : "a"(20 /* getpid */)
			 : "memory", "r8", "r9", "r10", "r11");
	return r > 0 ? 0 : (int)-r;
}

static void system_calls_of_a_foreign_abi_kill_the_process(void **state)
{
	int none = NO_FILTER;
	struct trial x32 = {"x32 getpid", SECCOMP_GUEST,
		0x40000000L | SYS_getpid, {0}, FORKED_SIGNAL + SIGSYS};
	int control = forked(call_i386, &none);

	(void)state;
	for (int profile = 0; profile < SECCOMP_PROFILES; profile++) {
		x32.profile = profile;
		run_trials(&x32, 1);
		/* without 32-bit emulation the kernel sends SIGSEGV, which is
		 * fine too */
		assert_true(forked(call_i386, &profile) ==
			    FORKED_SIGNAL + (control ? SIGSEGV : SIGSYS));
	}
}
#else
static void system_calls_of_a_foreign_abi_kill_the_process(void **state)
{
	(void)state;
	SKIP("only x86-64 has foreign system call ABIs");
}
#endif

static int shared_map_errno(void)
{
	void *p =
		mmap(NULL, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return errno_of(p == MAP_FAILED ? -1 : 0);
}

/* The second to listen gets nothing, and without an answer there is no lock and
 * no shared memory. */
static int lock_when_somebody_listens(void *arg)
{
	struct flock l = {.l_type = F_WRLCK};
	int outer = *(int *)arg, first = -1, fd = -1;
	struct err e;

	CHILD_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "nnp");
	CHILD_CHECK(!outer || (seccomp_hear(&first, 1, &e) == 0 && first > 0),
		"%s", e.msg);
	CHILD_CHECK(seccomp_hear(&fd, 1, &e) == 0, "%s", e.msg);
	CHILD_CHECK((fd >= 0) == !outer, "listens: %d", fd);
	CHILD_CHECK(fcntl(0, F_GETFD) >= 0, "other commands");
	CHILD_CHECK(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0) != MAP_FAILED,
		"a private map");
	CHILD_CHECK(!outer || shared_map_errno() == EPERM, "a shared map");
	return outer ? errno_of(fcntl(0, F_SETLK, &l)) : 0;
}

static void without_a_listener_record_locks_are_refused(void **state)
{
	int outer = 0;

	(void)state;
	assert_int_equal(forked(lock_when_somebody_listens, &outer), 0);
	outer = 1;
	assert_int_equal(forked(lock_when_somebody_listens, &outer), ENOLCK);
}

/* Ordinary code of a cell. */
static const char *const python_script =
	"import asyncio, ctypes, multiprocessing as mp, os, pty, select\n"
	"import signal, socket, sqlite3, ssl, subprocess, tempfile, threading\n"
	"t = threading.Thread(target=print, args=('thread',)); t.start()\n"
	"t.join()\n"
	"with mp.get_context('fork').Pool(2) as p:\n"
	"    assert p.map(abs, [-1, 2]) == [1, 2]\n"
	"assert mp.Value('i', 3).value == 3\n"
	"assert subprocess.check_output(['/bin/echo', 'x']) == b'x\\n'\n"
	"assert os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)[1] == "
	"0\n"
	"async def main():\n"
	"    p = await asyncio.create_subprocess_exec('/bin/true')\n"
	"    assert await p.wait() == 0\n"
	"    await asyncio.to_thread(os.getpid)\n"
	"asyncio.run(main())\n"
	"assert ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 5)() == 5\n"
	"with tempfile.TemporaryDirectory() as d:\n"
	"    c = sqlite3.connect(d + '/db')\n"
	"    c.execute('create table t (a)')\n"
	"    c.commit()\n"
	"    os.mkfifo(d + '/fifo')\n"
	"pid, fd = pty.fork()\n"
	"if pid == 0:\n"
	"    os.execv('/bin/stty', ['stty', 'size'])\n"
	"assert os.read(fd, 9) and os.waitpid(pid, 0)[1] == 0\n"
	"socket.socketpair(); os.nice(1); os.sched_getaffinity(0)\n"
	"signal.setitimer(signal.ITIMER_REAL, 0)\n";

static int run_python(void *arg)
{
	char *argv[] = {"python3", "-I", "-c", (char *)python_script, NULL};

	if (!freopen("/dev/null", "w", stdout))
		return 254;
	enter(SECCOMP_INIT);
	enter(*(int *)arg);
	execv("/usr/bin/python3", argv);
	return 255;
}

static void ordinary_python_code_works_under_the_filter(void **state)
{
	(void)state;
	if (access("/usr/bin/python3", X_OK) < 0)
		SKIP("there is no /usr/bin/python3");
	for (int profile = SECCOMP_GUEST; profile <= SECCOMP_GUEST_NOMEM;
		profile++)
		assert_int_equal(forked(run_python, &profile), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_front_end_cannot_exec_and_others_can),
		cmocka_unit_test(the_front_end_filter_refuses_dangerous_calls),
		cmocka_unit_test(
			system_calls_of_a_foreign_abi_kill_the_process),
		cmocka_unit_test(without_a_listener_record_locks_are_refused),
		cmocka_unit_test(ordinary_python_code_works_under_the_filter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
