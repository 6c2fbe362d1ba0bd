/* SPDX-License-Identifier: MIT */
/*
 * scribe.c - keeps a transcript for a front end that could change its own
 *
 * Runs in:   the scribe, a process of root's for each transcript: a child of the
 *            service, without capabilities, confined
 * Holds:     the file, a socket from the front end, and a lock that counts it
 * Trusts:    nothing: it writes all bytes down as text, up to a limit
 * Leaves:    a file of root's, in which all is that came before the other end
 *            was closed, whatever closed it; the kernel keeps what a killed
 *            front end has sent
 *
 * The first line and the last are ours: a word begins them that no front end
 * knows.
 */
#include "repl/maker/maker.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/base/slots.h"
#include "jail/jail.h"
#include "repl/config/config.h"
#include "repl/drive/drive.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* One person has no more transcripts at a time. */
#define MOST_OF_ONE 256
/* No transcript is longer. */
#define LONGEST ((int64_t)256 << 20)
#define LOCKS SERVICE_DIR "/transcripts"

bool scribe_is_asked(const struct scribe_ask *ask, size_t n)
{
	return n == sizeof(*ask) && ask->version == SCRIBE_VERSION;
}

/* Count one more transcript of the person's: a descriptor that holds the lock,
 * or -1 with e. */
static int count_in(uid_t uid, struct err *e)
{
	auto_close int fd =
		open(LOCKS, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return err_errno(e, "open " LOCKS);
	r = slots_claim(fd, (off_t)uid * MOST_OF_ONE, MOST_OF_ONE, e);
	if (r > 0)
		return fd_take(&fd);
	if (r == 0) {
		err_set(e, "there are %d transcripts at a time already",
			MOST_OF_ONE);
		err_kind_set(e, ERR_BUSY);
	}
	return -1;
}

static void write_line(struct scribe *s, const char *text)
{
	char line[512];
	int n = snprintf(line, sizeof(line), "\n# %s %s, %lld\n", s->mark, text,
		(long long)time(NULL));

	(void)!io_write_full(s->file, line, (size_t)n);
}

int scribe_open(struct scribe *s, const struct config *cfg,
	const struct scribe_of *of, struct err *e)
{
	uint64_t mark;
	char text[256];

	*s = (struct scribe){.file = -1, .lock = -1};
	if (!cfg->transcript) {
		err_set(e, "log.transcript names no directory");
		return err_kind_set(e, ERR_CONFIG);
	}
	s->lock = count_in(of->uid, e);
	if (s->lock < 0)
		return -1;
	s->file = log_create(cfg->transcript, of->name, of->front, e);
	if (s->file < 0)
		return -1;
	if (getrandom(&mark, sizeof(mark), 0) != (ssize_t)sizeof(mark))
		return err_errno(e, "begin a transcript");
	snprintf(s->mark, sizeof(s->mark), "%016" PRIx64, mark);
	snprintf(text, sizeof(text),
		"transcript of %.100s (uid %u), process %d, kept by root",
		of->name, of->uid, (int)of->front);
	write_line(s, text);
	return 0;
}

/* Tell the front end that there is a gap. It reads that at its next cell. */
static void complain(int sock, int error)
{
	(void)!send(sock, &error, sizeof(error), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* False: it is too long. The front end then finds that nobody takes what it
 * writes, and ends (repl/drive/log.c). */
static bool write_all(struct scribe *s, int sock)
{
	char buf[32 << 10];
	int64_t left = LONGEST;
	bool failed = false;
	ssize_t n;

	while (left > 0 && ((n = read(sock, buf, sizeof(buf))) > 0 ||
				   (n < 0 && errno == EINTR))) {
		if (n < 0)
			continue;
		left -= n;
		if (log_spell(s->file, buf, (size_t)n) < 0) {
			if (!failed)
				complain(sock, errno);
			failed = true;
		}
	}
	return left > 0;
}

_Noreturn void scribe_run(struct scribe *s, int sock)
{
	static const int ignored[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
	const struct jail_sandbox nothing = {.n = 0};
	const int keep[] = {sock, s->file, s->lock};
	struct err e = {0};

	for (size_t i = 0; i < COUNT(ignored); i++)
		signal(ignored[i], SIG_IGN);
	if (jail_stand_apart(keep, 3, "cellblock-scrib", &e) < 0 ||
		jail_sandbox_enter(&nothing, &e) < 0) {
		write_line(s, e.msg);
		_exit(1);
	}
	write_line(s, write_all(s, sock)
			      ? "the front end has gone"
			      : "the transcript is too long, and ends here");
	_exit(0);
}
