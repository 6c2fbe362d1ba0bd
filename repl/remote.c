/* SPDX-License-Identifier: MIT */
/*
 * remote.c - scp, sftp and rsync into the home of a session
 *
 * Runs in:   front end of an ssh connection, before it confines itself
 * Trusts:    of the client's command no word: a shell in the jail reads it
 * Leaves:    a place beside the session that was used last
 *
 * Each of the three starts a program at the far end. That program runs beside
 * the session (jail_beside()), on pipes. It is the host's own, as a jail shows
 * it.
 */
#include "main.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "repl/attach/attach.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATHS 5

/* Where the program of a service may be. Only sftp-server is called by its
 * path: a subsystem may have any name. */
static const struct {
	const char *service, *program;
	const char *paths[PATHS];
	bool by_path;
} services[] = {
	{"scp", "scp", {"/usr/local/bin/scp", "/usr/bin/scp", "/bin/scp"},
		false},
	{"sftp", "sftp-server",
		{"/usr/lib/openssh/sftp-server",
			"/usr/libexec/openssh/sftp-server",
			"/usr/lib/ssh/sftp-server", "/usr/libexec/sftp-server",
			"/usr/lib/misc/sftp-server"},
		true},
	{"rsync", "rsync",
		{"/usr/local/bin/rsync", "/usr/bin/rsync", "/bin/rsync"},
		false},
};

#define SERVICES (sizeof(services) / sizeof(services[0]))

bool remote_serves(const char *service)
{
	for (size_t i = 0; i < SERVICES; i++)
		if (!strcmp(service, services[i].service))
			return true;
	return false;
}

static const char *find_program(const char *const paths[PATHS])
{
	for (int i = 0; i < PATHS && paths[i]; i++)
		if (access(paths[i], X_OK) == 0)
			return paths[i];
	return NULL;
}

/* A file that grows too large is an error, and not the program's end. */
char *remote_script(const char *service, const char *command, struct err *e)
{
	char *script = NULL;
	const char *path;
	size_t i = 0;

	while (strcmp(service, services[i].service) != 0)
		i++;
	path = find_program(services[i].paths);
	if (!path) {
		err_set(e, "%s is not installed on this host",
			services[i].program);
		return NULL;
	}
	if (asprintf(&script, "trap '' XFSZ; %s%s",
		    services[i].by_path ? "exec " : "",
		    services[i].by_path ? path : command) < 0) {
		err_errno(e, "run %s", services[i].program);
		return NULL;
	}
	return script;
}

/* Where a key came last. */
const struct roster_entry *remote_choose(const struct roster *r, size_t *n)
{
	const struct roster_entry *last = NULL;

	*n = 0;
	for (size_t i = 0; i < r->n; i++) {
		const struct roster_entry *v = &r->v[i];

		if (!v->answered)
			continue;
		++*n;
		if (!last || v->keyed_ms > last->keyed_ms)
			last = v;
	}
	return last;
}
