/* SPDX-License-Identifier: MIT */
/*
 * command_home.c - :files :show :rm :wipe
 *
 * Runs in:   front end, between cells
 * Trusts:    nothing about the names and contents of files
 */
#include "repl/command_impl.h"

#include "jail/err.h"
#include "jail/io.h"
#include "jail/jail.h"
#include "repl/lexer.h"
#include "repl/session.h"
#include "repl/table.h"
#include "repl/text.h"
#include "repl/transfer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SHOW_MAX (8u << 20)

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
	case LEDGER_IS_NEW:
		return "new";
	case LEDGER_IS_CHANGED:
		return "changed";
	case LEDGER_IS_UPLOADED:
		snprintf(buf, size, "uploaded %s", clock);
		return buf;
	case LEDGER_IS_DOWNLOADED:
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

static int remove_matches(
	struct session *s, const struct lexer_word *w, struct err *e)
{
	struct jail_files files = {0};
	int n = 0;

	if (jail_home_list(s->jail, &files, e) < 0)
		return -1;
	for (size_t i = 0; n >= 0 && i < files.n; i++) {
		const char *path = files.v[i].path;
		struct err why = {0};

		if (!is_meant(w, path))
			continue;
		if (jail_home_remove(s->jail, path, &why) == 0) {
			n++;
		} else if (why.code != ENOENT) { /* gone with its directory */
			*e = why;
			n = -1;
		}
	}
	jail_files_free(&files);
	return n;
}

COMMAND_FUNCTION(rm)
{
	char count[64];
	int total = 0;

	for (int i = 0; i < line->n; i++) {
		int n = remove_matches(s, &line->words[i], e);

		if (n < 0)
			return -1;
		if (n == 0)
			session_frame(s,
				"%s: there is no such file in the home",
				line->words[i].s);
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
	int r = 0;

	(void)line;
	if (jail_home_list(s->jail, &files, e) < 0)
		return -1;
	snprintf(question, sizeof(question), "Remove %s from the home?",
		text_count(count, sizeof(count), files.n, "entry", "entries"));
	if (files.n && session_confirm(s, question)) {
		for (size_t i = 0; r == 0 && i < files.n; i++)
			if (!strchr(files.v[i].path, '/'))
				r = jail_home_remove(
					s->jail, files.v[i].path, e);
		if (r == 0)
			session_frame(s, "the home is empty");
	} else {
		session_frame(s,
			files.n ? "nothing was removed" : "the home is empty");
	}
	jail_files_free(&files);
	return r;
}
