/* SPDX-License-Identifier: MIT */
/*
 * side.c - programs beside the session: other jails on the same home
 *
 * Runs in:   the session's warden, and a child of it for each program
 * Holds:     as the warden: the home, the right to enter the cgroup
 * Trusts:    nothing that a program does
 * Leaves:    no child behind: the kernel kills it with the session's warden
 *
 * Files are copied into the home while a cell runs, and while all processes of
 * the session are stopped. So who copies is in no jail of the session's: no
 * freeze, no kill and no clock of a cell reaches a program beside it, and such
 * a program sees no process of the session.
 */
#include "jail/warden/jails/jails.h"

#include "jail/base/err.h"
#include "jail/base/io.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* A copy needs a shell and one or two processes. */
#define PROCESSES 16
/* A warden that was killed is dead by then. */
#define END_MS 2000

void side_init(struct side_programs *b, side_run *run, void *arg)
{
	*b = (struct side_programs){.at = SIDE_SESSION, .run = run, .arg = arg};
}

void side_become(
	struct side_programs *b, const struct side_programs *of, int at)
{
	*b = (struct side_programs){.board = of->board, .at = at};
}

/* Forget those that have ended. */
static void reap_ended(struct side_programs *b)
{
	for (int i = 0; i < SIDE_MAX; i++) {
		if (!b->pids[i] || waitpid(b->pids[i], NULL, WNOHANG) == 0)
			continue;
		b->pids[i] = 0;
		b->gone_ms += b->board->cpu_ms[i];
		b->board->cpu_ms[i] = b->board->bytes[i] = 0;
	}
}

int side_count(struct side_programs *b)
{
	int n = 0;

	reap_ended(b);
	for (int i = 0; i < SIDE_MAX; i++)
		n += b->pids[i] != 0;
	return n;
}

static int share_board(struct side_programs *b, struct err *e)
{
	void *page = b->board;

	if (page)
		return 0;
	page = mmap(NULL, sizeof(*b->board), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return err_errno(e, "share memory with it");
	b->board = page;
	return 0;
}

static _Noreturn void serve_program(const struct side_programs *b, int front,
	int at, int python, pid_t warden)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ||
		getppid() != warden)
		_exit(1);
	prctl(PR_SET_NAME, "cellblock-side", 0, 0, 0);
	b->run(b->arg, front, at, python);
	_exit(0);
}

int side_start(struct side_programs *b, int python, struct err *e)
{
	pid_t warden = getpid();
	int at = 0, pair[2];

	if (!b->run)
		return err_set(e, "this is not a session");
	reap_ended(b);
	while (at < SIDE_MAX && b->pids[at])
		at++;
	if (at == SIDE_MAX)
		return err_set(
			e, "%d programs run beside it already", SIDE_MAX);
	if (share_board(b, e) < 0)
		return -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(e, "create a socket pair");
	b->pids[at] = fork();
	if (b->pids[at] == 0)
		serve_program(b, pair[1], at, python, warden);
	close(pair[1]);
	if (b->pids[at] > 0)
		return pair[0];
	b->pids[at] = 0;
	close(pair[0]);
	return err_errno(e, "start a process");
}

/* The kill reaches pid 1 of each jail before its warden can be reaped. A warden
 * that was handed a descriptor may hang in its exit. */
void side_end(struct side_programs *b)
{
	for (int i = 0; i < SIDE_MAX; i++)
		if (b->pids[i])
			kill(b->pids[i], SIGKILL);
	for (int i = 0; i < SIDE_MAX; i++)
		if (b->pids[i])
			link_reap_within(b->pids[i], END_MS);
	memset(b->pids, 0, sizeof(b->pids));
}

void side_note(struct side_programs *b, int64_t bytes, int64_t cpu_ms)
{
	if (!b->board)
		return;
	b->board->bytes[b->at] = bytes;
	b->board->cpu_ms[b->at] = cpu_ms;
}

int64_t side_bytes(const struct side_programs *b)
{
	int64_t sum = 0;

	for (int i = 0; b->board && i <= SIDE_SESSION; i++)
		if (i != b->at)
			sum += b->board->bytes[i];
	return sum;
}

int64_t side_cpu_ms(const struct side_programs *b)
{
	int64_t sum = b->gone_ms;

	for (int i = 0; b->board && i < SIDE_MAX; i++)
		if (i != b->at)
			sum += b->board->cpu_ms[i];
	return sum;
}

/* The clock of a copy is the session's: it takes as long as the line is slow.
 * Its computing is limited as a cell's is, and it ends when it does nothing for
 * as long as a session may. The session was counted, and leased if it was made
 * ahead: its programs are not. */
void side_make_spec(struct jail_spec *spec, int python)
{
	spec->made = NULL;
	spec->prewarm = SPEC_WANTED;
	spec->mode = SPEC_PROGRAM;
	spec->side = 1;
	spec->tty_bits = 0;
	spec->term = "dumb";
	spec->front = 0;
	spec->limits.undo = 0;
	/* A program as any other, but for the home. */
	if (python)
		return;
	spec->python = "/bin/sh";
	spec->packages = NULL;
	spec->env = NULL;
	spec->limits.cell_wall_ms = spec->limits.lifetime_ms;
	if (spec->limits.processes > PROCESSES)
		spec->limits.processes = PROCESSES;
}
