/* SPDX-License-Identifier: MIT */
/*
 * hints.c - one line at a wall of the jail that an error comes from
 *
 * Runs in:   front end
 * Trusts:    nothing: a guest says which wall it is, and names a path. We say
 *            only what always holds in this jail, and quote the path as a word
 *            of a command
 */
#include "repl/session/session.h"

#include "repl/config/config.h"
#include "repl/files/files.h"
#include "repl/text/text.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* True if the host may have the file, for :upload. A path below /home is the
 * jail's, unless the person's own directory is there. We look for other names
 * only in the working directory, and follow no link. */
static bool may_be_on_host(const struct hostfs *host, const char *path)
{
	size_t n = host->home ? strlen(host->home) : 0;

	if (host->locked && !host->n_roots[HOSTFS_READ])
		return false;
	if (!strncmp(path, "/home/", 6))
		return n && !strncmp(path, host->home, n) && path[n] == '/';
	if (path[0] == '~' || path[0] == '/')
		return true;
	return !host->locked && path[0] && !strchr(path, '/') &&
	       hostfs_has(AT_FDCWD, path);
}

static void note_memory(struct session *s, const char *path)
{
	char h[TEXT_HUMAN];

	(void)path;
	snprintf(s->hint, sizeof(s->hint), "memory limit: %s · variables kept",
		text_size(h, (uint64_t)s->cfg->limits.memory_bytes));
}

static void note_network(struct session *s, const char *path)
{
	(void)path;
	snprintf(s->hint, sizeof(s->hint), "there is no network in the jail%s",
		s->cfg->limits.network == NETWORK_LOOPBACK
			? ", only its own loopback"
			: "");
}

/* The verdict says how much room there is. */
static void note_space(struct session *s, const char *path)
{
	(void)path;
	s->drive.error_is_other = false;
}

static void note_file(struct session *s, const char *path)
{
	auto_free char *word = NULL;

	if (!strncmp(path, "/home/", 6) && !strchr(path + 6, '/'))
		path += 6; /* the name alone may have been made absolute */
	if (!may_be_on_host(s->host, path))
		return;
	word = lexer_quote(path, '\0');
	if (word)
		snprintf(s->hint, sizeof(s->hint),
			"the jail has no host files · :upload %s", word);
}

void hints_note(struct session *s, const char *head, const char *path)
{
	static const struct {
		const char *word;
		void (*note)(struct session *s, const char *path);
	} walls[] = {
		{"memory ", note_memory},
		{"network ", note_network},
		{"file ", note_file},
		{"space ", note_space},
	};

	for (size_t i = 0; i < COUNT(walls); i++)
		if (!strncmp(head, walls[i].word, strlen(walls[i].word)))
			walls[i].note(s, path);
}
