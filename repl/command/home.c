/* SPDX-License-Identifier: MIT */
/*
 * home.c - :files :show :rm :wipe
 *
 * Runs in:   front end, between cells
 * Trusts:    nothing about the names and contents of files
 */
#include "impl.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/jail.h"
#include "repl/files/transfer.h"
#include "repl/session/session.h"
#include "repl/text/lexer.h"
#include "repl/text/table.h"
#include "repl/text/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SHOW_MAX (8u << 20)

/* Files are removed a list at a time: 10 000 of them. */
#define LISTS_MAX 100

static const char *status_words(const struct session *s,
	const struct jail_file *f, char *buf, size_t size)
{
	char clock[16] = "";
	struct tm tm;
	time_t when;
	enum ledger_status status = ledger_status(&s->ledger, f, &when);

	if (f->type == 'l')
		return "link";
	if (f->type == 'd')
		return "directory";
	if (f->type != 'f')
		return "special";
	if (when && localtime_r(&when, &tm))
		strftime(clock, sizeof(clock), "%H:%M", &tm);
	switch (status) {
	case LEDGER_NEW:
		return "new";
	case LEDGER_CHANGED:
		return "changed";
	case LEDGER_UPLOADED:
		snprintf(buf, size, "uploaded %s", clock);
		return buf;
	case LEDGER_DOWNLOADED:
		snprintf(buf, size, "downloaded %s", clock);
		return buf;
	}
	return "";
}

static bool is_meant(const struct lexer_word *w, const char *path)
{
	return !strcmp(transfer_home_name(w->s), path) ||
	       transfer_matches(transfer_home_name(w->pattern), path);
}

static bool wanted(const struct command_line *line, const struct jail_file *f)
{
	return line->n ? is_meant(&line->words[0], f->path) : f->type != 'd';
}

static void add_file(
	const struct session *s, struct table *t, const struct jail_file *f)
{
	char name[256], size[TEXT_HUMAN] = "", buf[64], status[80];
	bool sparse = f->type == 'f' && f->blocks_bytes + 4096 < f->bytes;

	text_safe(name, sizeof(name), f->path, strlen(f->path));
	if (f->type == 'f')
		text_size(size, (uint64_t)f->bytes);
	snprintf(status, sizeof(status), "%s%s",
		status_words(s, f, buf, sizeof(buf)), sparse ? ", sparse" : "");
	table_add(t, (const char *[]){name, size, status});
}

COMMAND_FUNCTION(files)
{
	struct table t = {.columns = 3, .right = 1 << 1};
	struct jail_files files = {0};

	if (jail_home_list(s->jail, &files, e) < 0)
		return -1;
	for (size_t i = 0; i < files.n; i++)
		if (wanted(line, &files.v[i]))
			add_file(s, &t, &files.v[i]);
	if (t.n)
		command_print_table(s, &t);
	else
		session_frame(s, line->n ? "nothing in the home matches"
					 : "the home is empty");
	if (files.truncated)
		session_frame(s, "there are more files than are listed");
	jail_files_free(&files);
	return 0;
}

COMMAND_FUNCTION(show)
{
	const char *name = transfer_home_name(line->words[0].s);
	auto_close int fd = jail_home_open(s->jail, name, e);
	auto_free char *buf = NULL;
	ssize_t n;

	if (fd < 0)
		return -1;
	buf = malloc(SHOW_MAX);
	n = buf ? io_read_full(fd, buf, SHOW_MAX) : -1;
	if (n < 0)
		return err_errno(e, "read %s", name);
	command_page(s, buf, (size_t)n);
	if (n == SHOW_MAX)
		session_frame(s, "only the beginning is shown");
	return 0;
}

/* Remove what is listed and meant; without a word all of it. How many entries
 * are gone, or -1. */
static int remove_listed(struct session *s, const struct jail_files *files,
	const struct lexer_word *w, struct err *e)
{
	int n = 0;

	for (size_t i = 0; i < files->n; i++) {
		const char *path = files->v[i].path;
		struct err why = {0};

		if (w ? !is_meant(w, path) : strchr(path, '/') != NULL)
			continue;
		if (jail_home_remove(s->jail, path, &why) == 0) {
			n++;
		} else if (why.code != ENOENT) { /* gone with its directory */
			*e = why;
			return -1;
		}
	}
	return n;
}

/* What there is more of than is listed comes up in the next list. *more: the
 * last was not of all, or what runs on makes files as fast as they go. */
static int remove_meant(
	struct session *s, const struct lexer_word *w, int *more, struct err *e)
{
	int n = 0, total = 0;

	for (int i = 0; i < LISTS_MAX; i++) {
		struct jail_files files = {0};

		if (jail_home_list(s->jail, &files, e) < 0)
			return -1;
		n = remove_listed(s, &files, w, e);
		*more = files.truncated;
		jail_files_free(&files);
		if (n < 0)
			return -1;
		total += n;
		if (n == 0 || !*more)
			break;
	}
	return total;
}

/* Remove what has this very name and was not listed. As above. */
static int remove_named(
	struct session *s, const struct lexer_word *w, int *more, struct err *e)
{
	struct err why = {0};

	*more = 0;
	if (jail_home_remove(s->jail, transfer_home_name(w->s), &why) == 0)
		return 1;
	if (why.code == ENOENT)
		return 0;
	*e = why;
	return -1;
}

COMMAND_FUNCTION(rm)
{
	char count[64];
	int total = 0;

	for (int i = 0; i < line->n; i++) {
		const struct lexer_word *w = &line->words[i];
		int more, n = remove_meant(s, w, &more, e);

		if (n == 0 && more && !w->is_pattern)
			n = remove_named(s, w, &more, e);
		if (n < 0)
			return -1;
		if (more)
			session_frame(
				s, "there are more files than are listed");
		if (n == 0)
			session_frame(s,
				more ? "%s: none of the listed files"
				     : "%s: there is no such file in the home",
				w->s);
		total += n;
	}
	if (total)
		session_frame(s, "%s removed",
			text_count(count, sizeof(count), (uint64_t)total,
				"entry", "entries"));
	return 0;
}

COMMAND_FUNCTION(wipe)
{
	struct jail_files files = {0};
	char count[64], question[128];
	int more = 0;
	size_t n;

	(void)line;
	if (jail_home_list(s->jail, &files, e) < 0)
		return -1;
	snprintf(question, sizeof(question), "Remove %s%s from the home?",
		files.truncated ? "more than " : "",
		text_count(count, sizeof(count), files.n, "entry", "entries"));
	n = files.n;
	jail_files_free(&files);
	if (n && !session_confirm(s, question)) {
		session_frame(s, "nothing was removed");
		return 0;
	}
	if (n && remove_meant(s, NULL, &more, e) < 0)
		return -1;
	session_frame(s, more ? "there are more files than could be removed"
			      : "the home is empty");
	return 0;
}
