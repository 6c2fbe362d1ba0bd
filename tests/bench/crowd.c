/* SPDX-License-Identifier: MIT */
/*
 * crowd.c - many people who begin a session at the same moment
 *
 * Usage: crowd CELLBLOCK N UID HOMES. N sessions in terminals of their own, of
 * the uids from UID on (0: all our own), with HOMES/uid as home. Prints
 * "WHAT MEDIAN BEST LAST" lines, tab separated, in milliseconds from the moment
 * that all may start. Afterwards the sessions stay until standard input ends.
 */
#include "table.h"

#include "jail/base/sys.h"

#include <grp.h>
#include <linux/close_range.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct person {
	int fd;
	pid_t pid;
	char text[8192];
	size_t n, from;
	double prompt, answer;
};

static int begin[2];

/* It has a process already, as a person who has logged in. */
static _Noreturn void await(char *cellblock, unsigned uid, const char *homes)
{
	char home[256], c;

	/* The terminals of others are not its own. */
	close(begin[1]);
	sys_close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
	snprintf(home, sizeof(home), "%s/%u", homes, uid);
	if (uid &&
		(setgroups(0, NULL) < 0 || setgid(uid) < 0 || setuid(uid) < 0 ||
			setenv("HOME", home, 1) < 0 || chdir("/") < 0))
		_exit(126);
	(void)!read(begin[0], &c, 1);
	close(begin[0]);
	execl(cellblock, cellblock, "-q", "--new", (char *)NULL);
	_exit(127);
}

static void start(
	struct person *p, char *cellblock, unsigned uid, const char *homes)
{
	struct winsize size = {.ws_row = 24, .ws_col = 80};

	p->pid = forkpty(&p->fd, NULL, NULL, &size);
	if (p->pid == 0)
		await(cellblock, uid, homes);
	if (p->pid < 0) {
		perror("crowd: forkpty");
		exit(1);
	}
}

static int has(struct person *p, const char *text)
{
	const char *at = strstr(p->text + p->from, text);

	if (at)
		p->from = (size_t)(at - p->text) + strlen(text);
	return !!at;
}

/* 1: it has its answer. */
static int take(struct person *p, double t0)
{
	ssize_t n = read(p->fd, p->text + p->n, sizeof(p->text) - 1 - p->n);

	if (n <= 0) {
		fprintf(stderr, "crowd: no answer in: %s\n", p->text);
		exit(1);
	}
	p->n += (size_t)n;
	p->text[p->n] = '\0';
	if (!p->prompt && has(p, ">>> ")) {
		p->prompt = now() - t0;
		if (write(p->fd, "40+2\r", 5) != 5)
			exit(1);
	}
	if (!p->prompt || !has(p, "42\r\n"))
		return 0;
	p->answer = now() - t0;
	return 1;
}

static void collect(struct person *people, int n, double t0)
{
	struct pollfd *p = calloc((size_t)n, sizeof(*p));
	int left = p ? n : 0;

	for (int i = 0; p && i < n; i++)
		p[i] = (struct pollfd){.fd = people[i].fd, .events = POLLIN};
	while (left > 0) {
		poll(p, (nfds_t)n, -1);
		for (int i = 0; i < n; i++)
			if (p[i].revents && take(&people[i], t0)) {
				p[i].fd = -1;
				left--;
			}
	}
	free(p);
}

static void print_last(const char *what, double *v, int n)
{
	qsort(v, (size_t)n, sizeof(*v), compare);
	printf("%s\t%.2f\t%.2f\t%.2f\n", what, v[n / 2], v[0], v[n - 1]);
}

int main(int argc, char **argv)
{
	int n = argc == 5 ? atoi(argv[2]) : 0;
	struct person *people = calloc((size_t)n + 1, sizeof(*people));
	double *v = calloc((size_t)n + 1, sizeof(*v)), t0;
	unsigned uid = argc == 5 ? (unsigned)atoi(argv[3]) : 0;
	char c;

	if (n < 1 || !people || !v || pipe(begin) < 0)
		return 2;
	setenv("TERM", "xterm-256color", 1);
	for (int i = 0; i < n; i++)
		start(&people[i], argv[1], uid ? uid + (unsigned)i : 0,
			argv[4]);
	usleep(300000);
	t0 = now();
	close(begin[1]);
	collect(people, n, t0);
	for (int i = 0; i < n; i++)
		v[i] = people[i].prompt;
	print_last("first prompt, all at the same moment", v, n);
	for (int i = 0; i < n; i++)
		v[i] = people[i].answer;
	print_last("first answer, the same", v, n);
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	for (int i = 0; i < n; i++)
		kill(people[i].pid, SIGTERM);
	for (int i = 0; i < n; i++)
		waitpid(people[i].pid, NULL, 0);
	return 0;
}
