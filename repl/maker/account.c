/* SPDX-License-Identifier: MIT */
/*
 * account.c - the file of sessions: their persons, times and use
 *
 * Runs in:   root, in the child of the maker that makes or leases a session
 *            (its begin), and in the session's janitor (its end)
 * Holds:     no descriptor: the file is opened by name for each line, so that
 *            it may be moved away at any time
 * Trusts:    the configuration. Names of people may be hostile: a line is ASCII
 *            without control characters
 * Leaves:    one JSON object in each line: a begin, and an end that has the
 *            same host id. A session whose janitor was killed has no end
 */
#include "repl/maker/maker.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/base/procstat.h"
#include "repl/config/config.h"
#include "repl/drive/drive.h"
#include "repl/text/text.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

static const char *const whats[] = {[SPEC_SESSION] = "session",
	[SPEC_PROGRAM] = "program",
	[SPEC_CELL] = "cell"};

static int64_t clock_ms(clockid_t clock)
{
	return io_clock_ns(clock) / 1000000;
}

static int open_file(const char *path)
{
	const int flags = O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC |
			  O_NONBLOCK | O_NOCTTY;
	int fd = open(path, flags, 0600);
	char dir[PATH_MAX];

	if (fd >= 0 || errno != ENOENT)
		return fd;
	snprintf(dir, sizeof(dir), "%s", path);
	if (mkdir(dirname(dir), 0700) < 0 && errno != EEXIST)
		return -1;
	return open(path, flags, 0600);
}

/* Where the disk was full a line may have no end. */
static bool ends_in_line(int fd, off_t size)
{
	char last = '\n';

	return !size || pread(fd, &last, 1, size - 1) != 1 || last == '\n';
}

/* One write(2), so that lines of several processes do not mix. */
static int append(const char *path, const char *text)
{
	auto_close int fd = open_file(path);
	struct stat st;
	char line[2048];
	int n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	if (!S_ISREG(st.st_mode)) {
		errno = EINVAL;
		return -1;
	}
	/* In a directory where all may make files, somebody else may have made
	 * it, who would read and change it. */
	if (st.st_uid != geteuid()) {
		errno = EPERM;
		return -1;
	}
	n = snprintf(line, sizeof(line), "%s%s\n",
		ends_in_line(fd, st.st_size) ? "" : "\n", text);
	if (n >= (int)sizeof(line)) {
		errno = EMSGSIZE;
		return -1;
	}
	return io_write_full(fd, line, (size_t)n);
}

/* Takes the record. The session goes on without: a disk may be full. */
static void write_record(const char *path, json_t *record)
{
	char *text =
		record ? json_dumps(record, JSON_COMPACT | JSON_ENSURE_ASCII)
		       : NULL;

	if (!text)
		errno = ENOMEM;
	if (!text || append(path, text) < 0)
		syslog(LOG_ERR, "log.accounting: write to %s: %m", path);
	free(text);
	json_decref(record);
}

void account_begin(const struct config *cfg, const struct account_begin *b)
{
	char name[256], from[128], stat[64];
	struct procstat st = {0};

	if (!cfg->accounting)
		return;
	text_safe(name, sizeof(name), b->name, strlen(b->name));
	text_safe(from, sizeof(from), b->from, strlen(b->from));
	snprintf(stat, sizeof(stat), "/proc/%d/stat", (int)b->front);
	if (b->front <= 0 || procstat_read(AT_FDCWD, stat, &st) < 0)
		st.start_ticks = 0;
	write_record(cfg->accounting,
		json_pack("{s:I, s:I, s:I, s:s, s:I, s:s, s:I, s:I, s:I, s:s}",
			"begin", (json_int_t)b->id, "at_ms",
			(json_int_t)clock_ms(CLOCK_REALTIME), "up_ms",
			(json_int_t)clock_ms(CLOCK_BOOTTIME), "user", name,
			"uid", (json_int_t)b->uid, "what", whats[b->mode],
			"pid", (json_int_t)b->front, "pid_start",
			(json_int_t)st.start_ticks, "session",
			(json_int_t)b->number, "from", from));
}

void account_end(const struct config *cfg, const struct spec_end *end)
{
	json_t *struck = json_object();

	if (!cfg->accounting) {
		json_decref(struck);
		return;
	}
	for (int i = 0; struck && i < SPEC_STRUCK; i++) {
		enum jail_limit limit = (enum jail_limit)i;
		const char *key = limit == LIMIT_PERSON
					  ? "interrupt"
					  : verdict_limit_key(limit);

		if (key && end->struck[i])
			json_object_set_new(
				struck, key, json_integer(end->struck[i]));
	}
	write_record(cfg->accounting,
		json_pack("{s:I, s:I, s:I, s:I, s:I, s:o}", "end",
			(json_int_t)end->id, "at_ms",
			(json_int_t)clock_ms(CLOCK_REALTIME), "up_ms",
			(json_int_t)clock_ms(CLOCK_BOOTTIME), "cpu_ms",
			(json_int_t)end->cpu_ms, "peak_bytes",
			(json_int_t)end->peak_bytes, "struck", struck));
}
