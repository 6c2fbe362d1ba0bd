/* SPDX-License-Identifier: MIT */
/*
 * janitor.c - the process that cleans up after a session, whatever ended it
 *
 * Runs in:   a process of its own, forked by the warden before there is
 *            anything to clean up
 * Holds:     the uid that owns the cgroup; as root CAP_KILL and
 *            CAP_DAC_OVERRIDE
 * Trusts:    nobody: it reads an end of file, numbers that it counts, a home that
 *            it hands on, and names in a directory that only root, or the
 * person who owns the session, can write to
 * Leaves:    no cgroup and no process in it; then the lock is released. Also
 *            nothing of earlier sessions whose janitors were killed
 */
#include "apply.h"

#include "jail/base/array.h"
#include "jail/base/io.h"
#include "jail/walls/walls.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* A process can take long to die: a core dump, a dead NFS server. After this
 * time the cgroup is left to the janitors of later sessions. */
#define REMOVE_MS 30000
/* For the last close of the front end's socket. */
#define CLOSE_S 5
/* The byte that comes with the home. No limit has this number. */
#define HOME_COMES 0xff

/* As root keep two capabilities: to kill, and to remove the directory above the
 * session's, whose parent is the root of a hierarchy and has mode 0555. */
static int drop_all_but_two(void)
{
	const cap_value_t want[] = {CAP_KILL, CAP_DAC_OVERRIDE};
	cap_t set = cap_init();
	int r = -1;

	if (set && geteuid() == 0 &&
		(cap_set_flag(set, CAP_PERMITTED, 2, want, CAP_SET) < 0 ||
			cap_set_flag(set, CAP_EFFECTIVE, 2, want, CAP_SET) < 0))
		r = -1;
	else if (set)
		r = cap_set_proc(set);
	cap_free(set);
	return r < 0 ? -1 : prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

/* The janitor must outlive what ends the others: the terminal's hangup, the
 * first SIGTERM of a shutdown, Ctrl-C. */
static int detach_from_session(void)
{
	static const int ignored[] = {
		SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGPIPE};
	sigset_t none;

	setsid();
	for (size_t i = 0; i < COUNT(ignored); i++)
		signal(ignored[i], SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGALRM, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
	prctl(PR_SET_NAME, "cellblock-janit");
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	return chdir("/");
}

static int is_dead(const char *name, void *lock_fd)
{
	return ident_allocation_is_free(*(int *)lock_fd, name);
}

/* Only a directory of the session's own is its home: of what its host id has,
 * nothing is on a file system of the host. */
static void take_home(int fd, uid_t id, int *home)
{
	struct stat st;

	if (*home >= 0 || fd < 0 || fstat(fd, &st) < 0 || st.st_uid != id ||
		!S_ISDIR(st.st_mode))
		fd_drop(&fd);
	else
		*home = fd;
}

/* A pipe brings no descriptor; a janitor that wants the home has a socket. */
static bool wants_home(const struct janitor_of *of)
{
	return of->spec && of->spec->made && of->spec->made->left;
}

static ssize_t read_byte(
	const struct janitor_of *of, int end, unsigned char *c, int *fd)
{
	ssize_t r;

	*fd = -1;
	if (wants_home(of))
		return io_recv_fds(end, c, 1, fd, 1, 0);
	do
		r = read(end, c, 1);
	while (r < 0 && errno == EINTR);
	return r;
}

/* Wait for the end of the file. Each byte is a limit that struck, 0 says that
 * the session is somebody's, and one comes with its home: true if it is
 * somebody's in the end. */
static bool await_end(int end, const struct janitor_of *of,
	uint32_t struck[SPEC_STRUCK], int *home)
{
	const struct spec_made *made = of->spec ? of->spec->made : NULL;
	bool begun = made && !made->ahead;
	unsigned char c;
	int fd;

	for (;;) {
		ssize_t r = read_byte(of, end, &c, &fd);

		if (r <= 0)
			return begun;
		if (c == LIMIT_NONE)
			begun = made;
		else if (c < SPEC_STRUCK)
			struck[c]++;
		take_home(fd, of->id, home);
	}
}

static void tell_end(const struct janitor_of *of, struct spec_end *end)
{
	struct cgroup_usage u;

	cgroup_usage_by_path(of->cgroup, &u);
	end->id = of->id;
	end->cpu_ms = u.cpu_ns < 0 ? -1 : u.cpu_ns / 1000000;
	end->peak_bytes = u.peak_bytes;
	of->spec->made->ended(of->spec, end);
}

static _Noreturn void janitor_run(
	const struct janitor_of *of, pid_t warden, int end)
{
	int lock_fd = of->lock_fd, done_fd = of->done_fd;
	int keep[] = {end, lock_fd, done_fd};
	const struct spec_made *made = of->spec ? of->spec->made : NULL;
	struct spec_end used = {0};
	int left, home = -1;
	bool begun;

	/* There is no session without a janitor. By now there may be a cgroup,
	 * so this janitor still removes it. */
	if ((detach_from_session() < 0 || ident_close_fds(keep, 3, NULL) < 0 ||
		    drop_all_but_two() < 0) &&
		getppid() == warden)
		kill(warden, SIGKILL);
	begun = await_end(end, of, used.struck, &home);
	if (begun && made->ended)
		tell_end(of, &used);
	left = cgroup_remove(of->cgroup, REMOVE_MS, NULL) < 0;
	if (begun && home >= 0)
		made->left(of->spec, home);
	fd_drop(&home);
	/* A process that does not die counts for its person, as long as it has
	 * the lock, too. */
	if (!left)
		ident_allocation_release(lock_fd);
	/* Descriptors that the caller never read may be a stranger's, whose
	 * closing takes as long as the stranger likes: the alarm ends that. */
	alarm(CLOSE_S);
	fd_drop(&done_fd);
	alarm(0);
	cgroup_clear_dead(of->cgroup, lock_fd < 0 ? NULL : is_dead, &lock_fd);
	_exit(left);
}

void janitor_count(int hold_fd, enum jail_limit limit)
{
	unsigned char c = (unsigned char)limit;

	/* It is full: the janitor was stopped. */
	(void)!write(hold_fd, &c, 1);
}

int janitor_give_home(int hold_fd, int home, struct err *e)
{
	const unsigned char c = HOME_COMES;

	return io_send_fds(hold_fd, &c, 1, &home, 1, 0) < 0
		       ? err_errno(e, "janitor: give it the home")
		       : 0;
}

pid_t janitor_start(const struct janitor_of *of, int *hold_fd, struct err *e)
{
	sigset_t all, before;
	int p[2], made;
	pid_t pid, warden = getpid();

	if (wants_home(of))
		made = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p);
	else
		made = pipe2(p, O_CLOEXEC);
	if (made < 0 || fcntl(p[1], F_SETFL, O_NONBLOCK) < 0) {
		err_errno(e, "janitor: make a pipe");
		return -1;
	}
	/* Block the signals that the janitor ignores in a moment. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid = fork();
	if (pid == 0) {
		close(p[1]);
		janitor_run(of, warden, p[0]);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (pid < 0) {
		err_errno(e, "janitor: fork");
		close(p[0]);
		close(p[1]);
		return -1;
	}
	close(p[0]);
	*hold_fd = p[1];
	return pid;
}
