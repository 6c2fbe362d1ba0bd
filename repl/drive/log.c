/* SPDX-License-Identifier: MIT */
/*
 * log.c - syslog and the transcript, where the administrator wants them
 *
 * Runs in:   front end; opened before it confines itself, because a confined
 *            front end can open neither a socket nor that directory
 * Holds:     the connection to syslog; one file open for appending, or a socket
 *            to root's service, which keeps the file (repl/maker/scribe.c)
 * Trusts:    the configuration. The output of a cell has no control character
 *            in the transcript, so that a terminal may show it, and cannot
 *            imitate our lines, which begin with a random mark. No flood of
 *            output hides what is typed after it, or what is shown at its end
 */
#include "repl/drive/drive.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "repl/config/config.h"
#include "repl/text/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

/* How long a write to root's service may take. */
#define SOCKET_S 10

int log_create(const char *dir, const char *user, pid_t front, struct err *e)
{
	char name[160], when[32] = "";
	time_t now = time(NULL);
	struct tm tm;
	int file = -1;
	auto_close int fd =
		open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (localtime_r(&now, &tm))
		strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &tm);
	snprintf(name, sizeof(name), "%.64s-%s-%d.log", user, when, (int)front);
	if (fd >= 0 && !strchr(name, '/'))
		file = openat(fd, name,
			O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW |
				O_CLOEXEC,
			0600);
	if (file >= 0)
		return file;
	err_errno(e, "write a transcript to %s", dir);
	err_hint(e, "log.transcript asks for it; the person must be able to "
		    "make files there");
	return err_kind_set(e, ERR_CONFIG);
}

/* A socket takes our bytes even when its reader is killed a moment later; one
 * that is stuck must not hold the session up for ever. */
static void know_socket(struct log *l)
{
	const struct timeval most = {.tv_sec = SOCKET_S};

	l->is_kept = setsockopt(l->transcript, SOL_SOCKET, SO_SNDTIMEO, &most,
			     sizeof(most)) == 0;
}

/* Draw the mark of our own lines, and room for the last bytes of a cell. */
static int begin_transcript(struct log *l, struct err *e)
{
	uint64_t mark;

	if (getrandom(&mark, sizeof(mark), 0) != (ssize_t)sizeof(mark))
		return err_errno(e, "begin a transcript");
	snprintf(l->mark, sizeof(l->mark), "%016" PRIx64, mark);
	if (l->last_size)
		l->last = malloc(l->last_size);
	return l->last || !l->last_size ? 0
					: err_errno(e, "begin a transcript");
}

int log_open(struct log *l, const struct config *cfg, const char *user,
	bool wanted, int kept, struct err *e)
{
	*l = (struct log){.transcript = kept,
		.user = user ? user : "unknown",
		.cell_max = (uint64_t)cfg->limits.output_bytes,
		.last_size = (size_t)cfg->limits.tail_bytes};
	if (kept >= 0) {
		know_socket(l);
	} else if (cfg->transcript && wanted) {
		l->transcript =
			log_create(cfg->transcript, l->user, getpid(), e);
		if (l->transcript < 0)
			return -1;
	}
	if (l->transcript >= 0 && begin_transcript(l, e) < 0)
		return -1;
	l->to_syslog = cfg->syslog;
	if (l->to_syslog)
		openlog("cellblock", LOG_NDELAY | LOG_PID, LOG_AUTHPRIV);
	return 0;
}

void log_usage(struct log *l, int64_t cpu_ms, int64_t peak_bytes)
{
	if (!l)
		return;
	l->cpu_ms += cpu_ms;
	if (peak_bytes > l->peak_bytes)
		l->peak_bytes = peak_bytes;
}

void log_end(const struct log *l, const char *who, const char *why)
{
	char safe[1024];

	text_safe(safe, sizeof(safe), why, strlen(why));
	if (l->to_syslog)
		syslog(LOG_INFO, "%s: ended by %s%s%s", l->user, who,
			*safe ? ": " : "", safe);
}

void log_limit(const struct log *l, enum jail_limit limit)
{
	const char *key =
		limit == LIMIT_PERSON ? "interrupt" : verdict_limit_key(limit);

	if (l->to_syslog && key)
		syslog(LOG_NOTICE, "%s: limit struck: %s%s", l->user, key,
			limit == LIMIT_ALL ? ", or the memory of the host"
					   : "");
}

void log_attach(const struct log *l, const char *what, const char *from)
{
	char safe[160];

	text_safe(safe, sizeof(safe), from, strlen(from));
	if (l->to_syslog)
		syslog(LOG_INFO, "%s: %s (%s)", l->user, what, safe);
}

/* How a byte of a cell is written down; NULL: as it is. A terminal that shows a
 * transcript gets no escape sequence, and no carriage return. */
static const char *spell(unsigned char c, char buf[static 8])
{
	if (c >= 0x20 ? c != 0x7f : c == '\n' || c == '\t')
		return NULL;
	if (c == '\r')
		return "";
	snprintf(buf, 8, "\\x%02x", c);
	return buf;
}

/* A failed write does not end the transcript: a disk may be full for a while.
 * log_cell_end() reports the gap. Only where root's service no longer takes it,
 * log_is_lost(). */
static void note_failure(struct log *l)
{
	l->error = errno;
	l->lost |= l->is_kept && (errno == EPIPE || errno == ECONNRESET);
}

static void write_transcript(struct log *l, const void *buf, size_t n)
{
	if (l->transcript >= 0 && io_write_full(l->transcript, buf, n) < 0)
		note_failure(l);
}

int log_spell(int fd, const char *s, size_t n)
{
	char out[4096], buf[8];
	size_t used = 0;
	int r = 0;

	for (size_t i = 0; i < n; i++) {
		const char *word = spell((unsigned char)s[i], buf);
		size_t len = word ? strlen(word) : 1;

		if (used + len > sizeof(out)) {
			r |= io_write_full(fd, out, used);
			used = 0;
		}
		memcpy(out + used, word ? word : s + i, len);
		used += len;
	}
	return r | io_write_full(fd, out, used);
}

static void write_spelt(struct log *l, const char *s, size_t n)
{
	if (l->transcript >= 0 && log_spell(l->transcript, s, n) < 0)
		note_failure(l);
}

static void transcribe_head(struct log *l)
{
	char head[32];
	int n = snprintf(head, sizeof(head), "\n# %s ", l->mark);

	write_transcript(l, head, (size_t)n);
}

static void transcribe_line(struct log *l, const char *text)
{
	transcribe_head(l);
	write_transcript(l, text, strlen(text));
	write_transcript(l, "\n", 1);
}

/* Keep the last bytes of a cell that wrote too much. They are shown when it
 * ends. */
static void keep_last(struct log *l, const char *s, size_t n)
{
	size_t skip = n > l->last_size ? n - l->last_size : 0, first;

	s += skip;
	n -= skip;
	first = l->last_size - l->last_at;
	if (first > n)
		first = n;
	memcpy(l->last + l->last_at, s, first);
	memcpy(l->last, s + first, n - first);
	l->last_at += n;
	if (l->last_at >= l->last_size)
		l->last_at -= l->last_size;
}

/* Write the last bytes of such a cell, and how many are left out before them.
 */
static void write_last(struct log *l)
{
	uint64_t more =
		l->cell_seen > l->cell_max ? l->cell_seen - l->cell_max : 0;
	char line[96];

	l->cell_seen = 0;
	if (!more || l->transcript < 0)
		return;
	if (more > l->last_size) {
		snprintf(line, sizeof(line),
			"%" PRIu64 " more bytes are not written down",
			more - l->last_size);
		transcribe_line(l, line);
		write_spelt(l, l->last + l->last_at, l->last_size - l->last_at);
		more = l->last_at;
	}
	if (l->last_size)
		write_spelt(l, l->last, (size_t)more);
}

void log_begin(struct log *l, const char *what, int number, const char *from)
{
	char safe[160], text[64] = "", line[512];

	text_safe(safe, sizeof(safe), from, strlen(from));
	if (number)
		snprintf(text, sizeof(text), " %d", number);
	snprintf(line, sizeof(line),
		"%s%s of %.100s%s%s, %lld, cellblock " CELLBLOCK_VERSION, what,
		text, l->user, *safe ? " from " : "", safe,
		(long long)time(NULL));
	if (l->transcript >= 0)
		transcribe_line(l, line);
	if (l->to_syslog)
		syslog(LOG_INFO, "%s: %s%s started%s%s", l->user, what, text,
			*safe ? " from " : "", safe);
}

void log_close(struct log *l, int status)
{
	char cpu[TEXT_HUMAN], peak[TEXT_HUMAN];

	char line[64];

	write_last(l);
	snprintf(line, sizeof(line), "ended with status %d, %lld", status,
		(long long)time(NULL));
	if (l->transcript >= 0)
		transcribe_line(l, line);
	if (l->to_syslog) {
		syslog(LOG_INFO,
			"%s: ended with status %d, CPU time %s, memory at "
			"most %s",
			l->user, status, text_time(cpu, l->cpu_ms),
			l->peak_bytes ? text_size(peak, (uint64_t)l->peak_bytes)
				      : "unknown");
		closelog();
	}
	l->to_syslog = false;
	free(l->last);
	l->last = NULL;
	fd_drop(&l->transcript);
}

void log_cell(struct log *l, uint32_t cell, const char *src, size_t n)
{
	char head[64];

	write_last(l);
	l->in_input = false;
	snprintf(head, sizeof(head), "cell %" PRIu32 ", %lld", cell,
		(long long)time(NULL));
	transcribe_line(l, head);
	write_spelt(l, src, n);
	transcribe_line(l, "output");
}

size_t log_output(struct log *l, const void *buf, size_t n)
{
	uint64_t seen = l->cell_seen;
	uint64_t room = seen < l->cell_max ? l->cell_max - seen : 0;
	size_t now = n < room ? n : (size_t)room;

	if (l->transcript < 0)
		return n;
	l->cell_seen += n;
	if (l->in_input)
		transcribe_line(l, "output");
	l->in_input = false;
	write_spelt(l, buf, now);
	if (l->last_size)
		keep_last(l, (const char *)buf + now, n - now);
	return now;
}

void log_input(struct log *l, const void *buf, size_t n)
{
	if (l->transcript < 0)
		return;
	if (!l->in_input)
		transcribe_line(l, "input");
	l->in_input = true;
	write_spelt(l, buf, n);
}

int log_is_lost(const struct log *l, struct err *e)
{
	if (!l || !l->lost)
		return 0;
	return err_set(e, "the transcript of this session is too long, or "
			  "cannot be kept: there is no session without it");
}

void log_command(struct log *l, const char *line, size_t n)
{
	transcribe_head(l);
	write_spelt(l, line, n);
	write_transcript(l, "\n", 1);
}

int log_cell_end(struct log *l, const char *verdict, struct err *e)
{
	int error;

	write_last(l);
	l->in_input = false;
	if (verdict[0])
		transcribe_line(l, verdict);
	if (l->is_kept && recv(l->transcript, &error, sizeof(error),
				  MSG_DONTWAIT) == (ssize_t)sizeof(error))
		l->error = error;
	if (!l->error || l->told)
		return 0;
	l->told = true;
	errno = l->error;
	return err_errno(e, "the transcript of this session has a gap");
}
