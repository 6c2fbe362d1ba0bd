/* SPDX-License-Identifier: MIT */
/*
 * procstatus.c - what /proc/PID/status tells
 *
 * Runs in:   warden, init
 * Trusts:    the kernel's numbers; the name of a process is the guest's
 */
#include "procstatus.h"

#include "io.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* The text after "KEY:" at the start of a line, or NULL. Name is the first
 * line, and the kernel escapes newlines in it. */
static const char *value_after(const char *text, const char *key)
{
	size_t n = strlen(key);

	while ((text = strchr(text, '\n')) && *++text)
		if (!strncmp(text, key, n) && text[n] == ':')
			return text + n + 1;
	return NULL;
}

static int64_t number_after(const char *text, const char *key)
{
	const char *at = value_after(text, key);

	return at ? strtoll(at, NULL, 10) : 0;
}

/* The last of the numbers in a line. */
static pid_t last_number(const char *at)
{
	long n = 0;
	char *end;

	while (at && *at != '\n') {
		long v = strtol(at, &end, 10);

		if (end == at)
			break;
		n = v;
		at = end;
	}
	return (pid_t)n;
}

/* True if the set of signals of this name has SIGKILL. */
static int has_sigkill(const char *text, const char *key)
{
	const char *at = value_after(text, key);

	return at && strtoull(at, NULL, 16) & 1ull << (SIGKILL - 1);
}

int procstatus_parse(const char *text, struct procstatus *st)
{
	const char *state = value_after(text, "State");

	if (!state || *state != '\t' || !state[1])
		return -1;
	*st = (struct procstatus){.state = state[1],
		.threads = (int)number_after(text, "Threads"),
		.leader = (pid_t)number_after(text, "Tgid"),
		.inside = last_number(value_after(text, "NSpid")),
		.has_memory = value_after(text, "VmSize") != NULL,
		.is_killed = has_sigkill(text, "SigPnd") ||
			     has_sigkill(text, "ShdPnd"),
		.size_bytes = (number_after(text, "VmRSS") +
				      number_after(text, "VmSwap")) *
			      1024,
		.pages_bytes = (number_after(text, "RssAnon") +
				       number_after(text, "VmSwap")) *
			       1024,
		.tables_bytes = number_after(text, "VmPTE") * 1024,
		.switches = number_after(text, "voluntary_ctxt_switches") +
			    number_after(text, "nonvoluntary_ctxt_switches")};
	return 0;
}

int procstatus_read(int dirfd, const char *path, struct procstatus *st)
{
	char text[4096];
	ssize_t n = io_read_small(dirfd, path, text, sizeof(text));

	if (n < 0)
		return -1;
	if (procstatus_parse(text, st) == 0)
		return 0;
	errno = n == 0 ? ESRCH : EBADMSG;
	return -1;
}
