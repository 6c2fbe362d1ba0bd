/* SPDX-License-Identifier: MIT */
/*
 * client.c - the process that a shell waits for
 *
 * Runs in:   the client: the front end's parent, or a process that attached
 * Holds:     the terminal's descriptors and its modes; the link
 * Trusts:    the front end, for what it says on the link
 * Leaves:    the terminal's modes as the client found them, even if the front
 *            end died
 *
 * A front end that we forked is in our process group and gets the terminal's
 * signals itself: we pass on only signals that a process sent to us. A front
 * end that we attached to has another terminal, or none: we pass on all.
 */
#include "attach.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/jail.h"
#include "repl/term/term.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

/* The front end may have died before it switched these off. */
#define CALM "\033[0m\033[?25h\033[?2004l"
#define MAIN_SCREEN "\033[?1049l"

#define SANDBOX_MS 200
/* A session that is busy with another terminal, or whose host is busy, may take
 * a while to answer. We say so after SAY_MS, and give up after ANSWER_MS. */
#define SAY_MS 3000
#define ANSWER_MS 30000
#define OUTPUT_MS 2000

struct client {
	int link, signals;
	pid_t child; /* -1: the front end is no child of ours */
	struct attach_request request; /* to attach this terminal */
	int fds[ATTACH_FDS];
	bool saved;
	struct termios modes;
	struct logout logout;
};

static const int passed[] = {
	SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT};

static int open_signals(struct client *c, sigset_t *set, struct err *e)
{
	sigemptyset(set);
	for (size_t i = 0; i < COUNT(passed); i++)
		sigaddset(set, passed[i]);
	c->signals = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
	return c->signals < 0 ? err_errno(e, "wait for signals") : 0;
}

/* From here on signals come only through the descriptor. */
static void hold_signals(const sigset_t *set)
{
	sigprocmask(SIG_BLOCK, set, NULL);
	signal(SIGTTIN, SIG_IGN);
	signal(SIGTTOU, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
}

static void pass_signal(const struct client *c, int sig)
{
	struct attach_request r;

	query_begin(&r, ATTACH_SIGNAL, NULL);
	r.number = sig;
	io_send_fds(c->link, &r, sizeof(r), NULL, 0, MSG_DONTWAIT);
}

/* True if the terminal is ours, and has not hung up. */
static bool has_terminal(void)
{
	return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

/* We were continued, and have the terminal: hand it to the session, which may
 * have it still. `stops`: we can stop once more. */
static void come_back(struct client *c, bool stops)
{
	int n = ATTACH_FDS - 1 - (c->fds[ATTACH_FDS - 1] < 0);
	struct err e = {0};

	c->request.number = stops;
	pass_signal(c, SIGCONT);
	if (io_send_fds(c->link, &c->request, sizeof(c->request), c->fds + 1, n,
		    0) == 0 ||
		errno != ETOOMANYREFS)
		return;
	/* The session is detached, and stays so. */
	err_errno(&e, "hand the terminal to the session");
	terminal_refuse(&e);
	_exit(1);
}

/* The next signal that has come; 0: none. */
static int next_signal(const struct client *c, struct signalfd_siginfo *si)
{
	return read(c->signals, si, sizeof(*si)) == (ssize_t)sizeof(*si)
		       ? (int)si->ssi_signo
		       : 0;
}

/* A SIGCONT that we read here follows a SIGSTOP, or a hangup. In the background
 * the session lets the terminal go, and has us stop as other jobs do. */
static void pass_signals(struct client *c)
{
	struct signalfd_siginfo si;
	int sig;

	while ((sig = next_signal(c, &si)) != 0) {
		if (sig == SIGCONT && has_terminal())
			come_back(c, job_has_shell());
		else if (sig == SIGCONT && !job_is_in_front(STDIN_FILENO))
			pass_signal(c, SIGTTOU);
		else if (sig == SIGCONT)
			continue;
		else if (c->child < 0 || si.ssi_code != SI_KERNEL)
			pass_signal(c, sig);
	}
}

/* Read the next answer on the link; false at its end. */
static bool read_word(const struct client *c, struct attach_answer *a)
{
	int none[1];
	ssize_t n;

	do
		n = io_recv_fds(c->link, a, sizeof(*a), none, 0, 0);
	while (n < 0 && errno == EINTR);
	a->text[sizeof(a->text) - 1] = '\0';
	return n == (ssize_t)sizeof(*a) && a->magic == ATTACH_MAGIC;
}

static bool wait_word(struct client *c, struct attach_answer *a)
{
	struct pollfd p[2] = {{.fd = c->link, .events = POLLIN},
		{.fd = c->signals, .events = POLLIN}};

	for (;;) {
		if (poll(p, 2, -1) < 0)
			continue;
		if (p[1].revents)
			pass_signals(c);
		if (p[0].revents)
			return read_word(c, a);
	}
}

/* The front end may have left the terminal's modes as it used them. */
static void restore(const struct client *c, const char *text, bool alternate)
{
	if (!c->saved)
		return;
	tcsetattr(STDIN_FILENO, TCSANOW, &c->modes);
	if (isatty(STDOUT_FILENO))
		dprintf(STDOUT_FILENO, "%s%s\r\n%s%s",
			alternate ? MAIN_SCREEN : "", CALM, text,
			text[0] ? "\n" : "");
}

/* Stop as a job, until we have the terminal again or there is something else to
 * do. The session keeps what it writes meanwhile. */
static void stop(struct client *c, bool alternate)
{
	bool stopped;

	if (job_is_in_front(STDIN_FILENO)) {
		tcsetattr(STDIN_FILENO, TCSANOW, &c->modes);
		dprintf(STDOUT_FILENO, "%s%s", alternate ? MAIN_SCREEN : "",
			CALM);
	}
	stopped = job_stop();
	if (stopped)
		job_await_front(STDIN_FILENO, c->link);
	if (has_terminal())
		come_back(c, stopped);
}

/* The session is detached now: tell the person if a logout may end it. */
static void tell_left(const struct client *c)
{
	const char *text = logout_tell(&c->logout);

	if (text && isatty(STDOUT_FILENO))
		dprintf(STDOUT_FILENO, "[%s]\n", text);
}

/* The exit status of the child, as a shell numbers it. */
static int wait_child(const struct client *c)
{
	int status;

	while (waitpid(c->child, &status, 0) < 0)
		if (errno != EINTR)
			return 1;
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	restore(c, "", false);
	return 128 + WTERMSIG(status);
}

/* Wait until the front end lets us go, or ends. The exit status. */
static int wait_end(struct client *c)
{
	struct attach_answer a;

	while (wait_word(c, &a)) {
		if (a.word == ATTACH_STOP)
			stop(c, a.number);
		if (a.word == ATTACH_NO) { /* our terminal came back */
			fprintf(stderr, "cellblock: %s\n", a.text);
			return 1;
		}
		if (a.word == ATTACH_OVER && a.text[0])
			dprintf(STDOUT_FILENO, "[%s]\n", a.text);
		if (a.word == ATTACH_LEFT || a.word == ATTACH_TAKEN) {
			restore(c, a.text, a.number);
			if (a.word == ATTACH_LEFT)
				tell_left(c);
			return 0;
		}
		if (a.word == ATTACH_OVER && c->child < 0)
			return a.number;
	}
	if (c->child > 0)
		return wait_child(c);
	restore(c, "", false);
	fprintf(stderr, "cellblock: the session has ended unexpectedly\n");
	return 1;
}

static void save_modes(struct client *c)
{
	c->saved =
		isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &c->modes) == 0;
}

/* We close the sandbox late: the front end's start has the processors first,
 * and the question to the login manager needs a socket. We read nothing from
 * the front end before that. */
static _Noreturn void be_client(struct client *c, const char *person)
{
	const struct jail_sandbox sandbox = {0};
	struct pollfd p[2] = {{.fd = c->link, .events = POLLIN},
		{.fd = c->signals, .events = POLLIN}};
	struct err e = {0};

	poll(p, 2, SANDBOX_MS);
	logout_ask(&c->logout, person, c->child, true);
	if (jail_sandbox_enter(&sandbox, &e) < 0) {
		terminal_refuse(&e);
		_exit(1);
	}
	_exit(wait_end(c));
}

/* Open the terminal again, for output that must not block. */
static int open_again(void)
{
	char name[PATH_MAX];

	if (ttyname_r(STDOUT_FILENO, name, sizeof(name)) != 0)
		return -1;
	return open(name, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
}

static void put_env(char *to, size_t size, const char *name)
{
	const char *v = getenv(name);

	snprintf(to, size, "%s", v && strlen(v) < size ? v : "");
}

/* Prepare what hands our terminal to a session; fds[0] is the caller's. */
static void fill_request(struct client *c, const char *from)
{
	struct attach_request *r = &c->request;

	query_begin(r, ATTACH_ATTACH, NULL);
	r->number = job_has_shell();
	put_env(r->term, sizeof(r->term), "TERM");
	put_env(r->colorterm, sizeof(r->colorterm), "COLORTERM");
	put_env(r->no_color, sizeof(r->no_color), "NO_COLOR");
	snprintf(r->from, sizeof(r->from), "%s", from);
	for (int i = 0; i < 3; i++)
		c->fds[i + 1] = i;
	c->fds[ATTACH_FDS - 1] = open_again();
}

int client_begin(const char *person, struct err *e)
{
	struct client c = {.child = -1};
	char from[sizeof(c.request.from)];
	sigset_t set, stop_key;
	int ends[2];

	/* Every call that can fail comes before the fork: the child would go on
	 * without us. */
	if (open_signals(&c, &set, e) < 0)
		return -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
		close(c.signals);
		return err_errno(e, "open a socket");
	}
	save_modes(&c);
	/* The front end must not stop alone: it takes the signal later. */
	sigemptyset(&stop_key);
	sigaddset(&stop_key, SIGTSTP);
	sigprocmask(SIG_BLOCK, &stop_key, NULL);
	c.child = fork();
	if (c.child > 0) {
		close(ends[1]);
		client_from(from, sizeof(from));
		fill_request(&c, from);
		c.link = ends[0];
		hold_signals(&set);
		be_client(&c, person);
	}
	if (c.child < 0) {
		err_errno(e, "start the front end");
		close(ends[1]);
	} else {
		io_set_nonblock(ends[1], 1);
	}
	close(ends[0]);
	close(c.signals);
	return c.child < 0 ? -1 : ends[1];
}

/* A terminal that takes no output would block the session for every client. */
static int check_output(struct err *e)
{
	struct pollfd p = {.fd = STDOUT_FILENO, .events = POLLOUT};

	if (poll(&p, 1, OUTPUT_MS) > 0)
		return 0;
	err_set(e, "this terminal takes no output: it is stopped, or another "
		   "program writes to it");
	err_hint(e, "the session is as it was");
	return -1;
}

void client_from(char *from, size_t size)
{
	const char *ssh = getenv("SSH_CONNECTION"), *tty;

	if (ssh && *ssh) {
		snprintf(from, size, "%.*s", (int)strcspn(ssh, " "), ssh);
		return;
	}
	tty = ttyname(STDIN_FILENO);
	snprintf(from, size, "%s",
		tty && !strncmp(tty, "/dev/", 5) ? tty + 5 : "");
}

/* The pid of the front end, which listens on the session's socket. */
static pid_t find_front(int sock)
{
	struct ucred cred = {0};
	socklen_t n = sizeof(cred);

	getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &n);
	return cred.pid;
}

/* True if a signal ends the wait for a session. The size of the window is asked
 * for when it has the terminal, and there is no job to stop yet. */
static bool gives_up(const struct client *c)
{
	struct signalfd_siginfo si;
	int sig;

	while ((sig = next_signal(c, &si)) != 0)
		if (sig != SIGWINCH && sig != SIGTSTP && sig != SIGCONT)
			return true;
	return false;
}

/* Wait until then for the first answer of a session. 1: it came; 0: not yet; -1
 * with e. */
static int await_until(const struct client *c, int64_t end_ms,
	struct attach_answer *a, struct err *e)
{
	struct pollfd p[2] = {{.fd = c->link, .events = POLLIN},
		{.fd = c->signals, .events = POLLIN}};
	int64_t left;

	while ((left = end_ms - now_ms()) > 0) {
		if (poll(p, 2, (int)left) <= 0)
			continue;
		if (p[0].revents)
			return read_word(c, a)
				       ? 1
				       : err_set(e, "the session did not "
						    "answer");
		if (gives_up(c))
			return err_set(e, "interrupted: the session goes on "
					  "without you");
	}
	return 0;
}

static int await_answer(
	const struct client *c, struct attach_answer *a, struct err *e)
{
	int64_t now = now_ms();
	int r = await_until(c, now + SAY_MS, a, e);

	if (r == 0) {
		fprintf(stderr, "cellblock: the session is busy, and has not "
				"answered yet; Ctrl-C gives up\n");
		r = await_until(c, now + ANSWER_MS, a, e);
	}
	return r == 0 ? err_set(e, "the session did not answer") : r;
}

int client_attach(int sock, const char *person, const char *from, struct err *e)
{
	struct client c = {.link = sock, .child = -1};
	auto_close int ns = query_namespace(e);
	struct attach_answer a;
	sigset_t set;

	if (ns < 0 || check_output(e) < 0 || open_signals(&c, &set, e) < 0)
		return -1;
	hold_signals(&set);
	save_modes(&c);
	fill_request(&c, from);
	c.fds[0] = ns;
	io_set_nonblock(sock, 0);
	if (io_send_fds(sock, &c.request, sizeof(c.request), c.fds,
		    ATTACH_FDS - (c.fds[ATTACH_FDS - 1] < 0), 0) < 0)
		return err_errno(e, "ask the session");
	if (await_answer(&c, &a, e) < 0)
		return -1;
	if (a.word == ATTACH_NO)
		return err_set(e, "%s", a.text);
	logout_ask(&c.logout, person, find_front(sock), true);
	return wait_end(&c);
}
