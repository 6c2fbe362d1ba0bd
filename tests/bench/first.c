/* SPDX-License-Identifier: MIT */
/*
 * first.c - the time until a session answers, until a bare Python has its
 * prompt and has ended, and until a session that is there answers on another
 * terminal
 *
 * Usage: first CELLBLOCK PYTHON. The programs take turns, each in a new
 * terminal, so that other load on the host slows all. Prints
 * "WHAT MEDIAN BEST 95%" lines, tab separated, in milliseconds from exec.
 */
#include "table.h"

#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 60
/* The pause after each session, in which its processes end. */
#define PAUSE_US 60000

struct screen {
	int fd;
	pid_t pid;
	char text[1 << 16];
	size_t n;
};

static void start(struct screen *s, char *const argv[])
{
	struct winsize size = {.ws_row = 24, .ws_col = 80};

	s->n = 0;
	s->pid = forkpty(&s->fd, NULL, NULL, &size);
	if (s->pid == 0) {
		execv(argv[0], argv);
		_exit(127);
	}
	if (s->pid < 0) {
		perror("forkpty");
		exit(1);
	}
}

/* A session outlives its terminal, and would be offered to the next one. */
static void stop(struct screen *s)
{
	kill(s->pid, SIGTERM);
	waitpid(s->pid, NULL, 0);
	close(s->fd);
	usleep(PAUSE_US);
}

static void end(struct screen *s)
{
	close(s->fd);
	waitpid(s->pid, NULL, 0);
	usleep(PAUSE_US);
}

/* Read until `text` has come. Returns the time of that moment. */
static double seen(struct screen *s, const char *text)
{
	size_t from = s->n;
	ssize_t n;

	s->text[s->n] = '\0';
	while (!strstr(s->text + from, text)) {
		n = read(s->fd, s->text + s->n, sizeof(s->text) - 1 - s->n);
		if (n <= 0) {
			fprintf(stderr, "first: no %s in: %s\n", text, s->text);
			exit(1);
		}
		s->n += (size_t)n;
		s->text[s->n] = '\0';
	}
	return now();
}

/* The time until the session is at the prompt of a new terminal, which takes
 * the place of the old one. */
static double move(struct screen *old, struct screen *to, char *cellblock)
{
	double begun = now(), taken;

	start(to, (char *const[]){cellblock, "--attach", NULL});
	taken = seen(to, ">>> ") - begun;
	end(old);
	return taken;
}

int main(int argc, char **argv)
{
	static double prompt[ROUNDS], answer[ROUNDS], own[ROUNDS],
		python[ROUNDS], moved[ROUNDS];
	static struct screen s, home[2];

	if (argc != 3)
		return 2;
	setenv("TERM", "xterm-256color", 1);
	start(&home[1], (char *const[]){argv[1], "-q", NULL});
	seen(&home[1], ">>> ");
	for (int i = 0; i < ROUNDS; i++) {
		double begun = now();

		start(&s, (char *const[]){argv[1], "-q", "--new", NULL});
		prompt[i] = seen(&s, ">>> ") - begun;
		if (write(s.fd, "1+1\r", 4) != 4)
			return 1;
		answer[i] = seen(&s, "2\r\n") - begun;
		stop(&s);

		begun = now();
		start(&s, (char *const[]){argv[2], "-q", NULL});
		own[i] = seen(&s, ">>> ") - begun;
		stop(&s);

		begun = now();
		start(&s, (char *const[]){argv[2], "-c", "pass", NULL});
		waitpid(s.pid, NULL, 0);
		python[i] = now() - begun;
		end(&s);

		moved[i] = move(&home[!(i % 2)], &home[i % 2], argv[1]);
	}
	stop(&home[(ROUNDS - 1) % 2]);
	print("first prompt, from exec", prompt, ROUNDS);
	print("first 1+1 answered, from exec", answer, ROUNDS);
	print("--attach: prompt on another terminal, from exec", moved, ROUNDS);
	print("in turns with it: python3's own prompt", own, ROUNDS);
	print("in turns with it: python3 -c pass", python, ROUNDS);
	return 0;
}
