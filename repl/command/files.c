/* SPDX-License-Identifier: MIT */
/*
 * files.c - :upload :download :load :save, and what is copied unasked
 *
 * Runs in:   front end, between cells
 * Trusts:    the person in an ordinary session; in a locked one hostfs.c
 *            keeps them to the configured directories
 */
#include "impl.h"

#include "coding.h"
#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/base/newfile.h"
#include "repl/config/config.h"
#include "repl/config/options.h"
#include "repl/edit/editor.h"
#include "repl/files/transfer.h"
#include "repl/session/session.h"
#include "repl/text/lexer.h"
#include "repl/text/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void say(void *arg, const char *line)
{
	session_printf(arg, "%s\n", line);
}

static void refuse(void *arg, const struct err *e)
{
	session_frame(arg, "%s%s%s", e->msg, e->hint[0] ? " · " : "", e->hint);
}

static bool overwrite(void *arg, const char *name)
{
	char safe[300], question[400];

	text_safe(safe, sizeof(safe), name, strlen(name));
	snprintf(question, sizeof(question), "%s is there already. Overwrite?",
		safe);
	return session_confirm(arg, question);
}

static struct transfer transfer_for(struct session *s)
{
	s->signals->interrupt = false;
	return (struct transfer){
		.jail = s->jail,
		.host = s->host,
		.limits = &s->cfg->limits,
		.ledger = &s->ledger,
		.term = s->term,
		.signals = s->signals,
		.say = say,
		.refuse = refuse,
		.overwrite = overwrite,
		.arg = s,
	};
}

static void sum_up(
	struct session *s, const struct transfer *t, const char *what)
{
	char done[64];

	if (t->cancelled)
		session_frame(s, "interrupted · %s %s, nothing is half there",
			text_count(done, sizeof(done), (uint64_t)t->done,
				"file", NULL),
			what);
}

/* Whether it can only be meant for a place in the home. */
static bool is_of_the_home(struct session *s, const char *name)
{
	return name[strlen(name) - 1] == '/' ||
	       (name[0] == '/' && transfer_home_name(name) != name) ||
	       transfer_home_has_dir(s->jail, name);
}

/* With more than one word, the last may say where to. */
static const char *upload_target(
	struct session *s, const struct command_line *line, int *n)
{
	const struct lexer_word *last = &line->words[line->n - 1];
	auto_free char *path = NULL;
	struct stat st;
	int fd;

	*n = line->n;
	if (line->n < 2 || last->is_pattern || !last->s[0] ||
		!is_of_the_home(s, last->s))
		return NULL;
	/* A file of the host by that name is meant as one more file. */
	path = hostfs_expand(s->host, last->s);
	fd = path ? hostfs_open_file(s->host, path, &st, NULL) : -1;
	if (fd >= 0) {
		close(fd);
		return NULL;
	}
	*n = line->n - 1;
	return last->s;
}

COMMAND_FUNCTION(upload)
{
	struct transfer t = transfer_for(s);
	int n, r;
	const char *to = upload_target(s, line, &n);

	r = transfer_upload(&t, line->words, n, to, e);
	sum_up(s, &t, "uploaded");
	return r;
}

/* A place that is certainly the host's, whether there is something or not. */
static bool is_of_the_host(const char *s)
{
	return s[0] == '~' || !strncmp(s, "../", 3) ||
	       (s[0] == '/' && strncmp(s, "/home/", 6) != 0);
}

COMMAND_FUNCTION(download)
{
	struct transfer t = transfer_for(s);
	const struct lexer_word *last = &line->words[line->n - 1];
	const char *to = NULL;
	auto_free char *path = NULL;
	int n = line->n, r;

	if (n > 1 && !last->is_pattern) {
		path = hostfs_expand(s->host, last->s);
		if (is_of_the_host(last->s) ||
			(path && hostfs_is_dir(s->host, HOSTFS_WRITE, path))) {
			to = last->s;
			n--;
		}
	}
	r = transfer_download(&t, line->words, n, to, e);
	sum_up(s, &t, "downloaded");
	return r;
}

/* ---- scripts ---- */

#define CELL_MARK "# %%"

/* Where the next cell of a script begins: behind the next line "# %%". */
static const char *next_cell(const char *p, const char *end)
{
	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));

		if (!nl)
			return end;
		p = nl + 1;
		if (end - p >= 4 && !memcmp(p, CELL_MARK, 4))
			return p;
	}
	return end;
}

/* The whole script, *n bytes of UTF-8; caller frees. NULL with e. */
static char *read_script(
	struct session *s, const char *name, size_t *n, struct err *e)
{
	size_t max = (size_t)s->cfg->limits.max_file_bytes;
	auto_free char *path = hostfs_expand(s->host, name);
	auto_close int fd = -1;
	struct stat st;
	ssize_t r;
	char *buf;

	fd = path ? hostfs_open_file(s->host, path, &st, e)
		  : err_errno(e, "load %s", name);
	if (fd < 0)
		return NULL;
	if ((size_t)st.st_size > max) {
		err_set(e, "%s is larger than files.max_file", path);
		return NULL;
	}
	buf = malloc((size_t)st.st_size + 1);
	r = buf ? io_read_full(fd, buf, (size_t)st.st_size) : -1;
	if (r < 0)
		err_errno(e, "read %s", path);
	else if (coding_check(buf, (size_t)r, path, e) < 0)
		r = -1;
	if (r < 0) {
		free(buf);
		return NULL;
	}
	*n = (size_t)r;
	return buf;
}

/* Some editors begin a file with a mark that is no Python. */
static const char *behind_mark(const char *script, size_t n)
{
	return n >= 3 && !memcmp(script, "\xef\xbb\xbf", 3) ? script + 3
							    : script;
}

COMMAND_FUNCTION(load)
{
	size_t max = (size_t)s->cfg->limits.source_bytes, n = 0;
	auto_free char *script = read_script(s, line->words[0].s, &n, e);
	const char *p, *end;
	int cells = 0;

	if (!script)
		return -1;
	p = behind_mark(script, n);
	for (end = script + n; p < end && !s->over;) {
		const char *next = next_cell(p, end);

		if ((size_t)(next - p) > max)
			return err_set(e,
				"cell %d of the script is longer than "
				"cell.source",
				cells + 1);
		if (session_cell(s, p, (size_t)(next - p), e) < 0)
			return -1;
		cells++;
		if (s->done.how != HOW_OK && next < end) {
			session_frame(
				s, "stopped at cell %d of the script", cells);
			break;
		}
		p = next;
	}
	return 0;
}

static void add_cells(const struct session *s, struct strbuf *b)
{
	for (size_t i = 0; i < s->n_cells; i++) {
		const struct session_cell *c = &s->cells[i];

		if (!c->ok)
			continue;
		strbuf_puts(b, CELL_MARK "\n");
		strbuf_add(b, c->src, c->n);
		strbuf_puts(b, "\n\n");
	}
}

/* Write `b` to the host under `path`, whole or not at all. */
static int write_script(struct session *s, const struct strbuf *b,
	const char *path, struct err *e)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	auto_free char *dir = NULL;
	auto_close int fd = -1;
	struct newfile f;
	int r;

	if (!*name)
		return err_set(e, "%s is not the name of a file", path);
	dir = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path))
		    : strdup(".");
	if (!dir)
		return err_errno(e, "save %s", path);
	fd = hostfs_open_dir(s->host, HOSTFS_WRITE, dir, e);
	if (fd < 0)
		return -1;
	if (hostfs_has(fd, name) && !overwrite(s, path))
		return err_set(
			e, "%s is there already and was left alone", path);
	if (hostfs_create(&f, fd, name, e) < 0)
		return err_wrap(e, "%s", path);
	r = io_write_full(f.fd, b->s, b->n) < 0
		    ? err_errno(e, "write %s", path)
		    : hostfs_commit(&f, name, true, e);
	newfile_abort(&f);
	return r;
}

COMMAND_FUNCTION(save)
{
	auto_free char *path = hostfs_expand(s->host, line->words[0].s);
	struct strbuf b = {0};
	char size[TEXT_HUMAN], safe[300];
	int r;

	add_cells(s, &b);
	if (!b.n)
		return err_set(e, "no cell has run yet that could be saved");
	r = path && !b.failed ? write_script(s, &b, path, e)
			      : err_set(e, "save: out of memory");
	if (r == 0) {
		text_safe(safe, sizeof(safe), path, strlen(path));
		session_printf(
			s, "cells   %s   → %s\n", text_size(size, b.n), safe);
	}
	strbuf_free(&b);
	return r;
}

/* ---- before the first prompt, after the last ---- */

void command_start(struct session *s)
{
	const struct options *o = s->opt;
	struct transfer t = transfer_for(s);

	transfer_skeleton(&t, s->cfg->skeleton);
	for (size_t i = 0; i < o->nuploads && !s->over; i++)
		transfer_upload_pair(&t, o->uploads[i].from, o->uploads[i].to);
}

int command_ready(struct session *s, struct err *e)
{
	const struct options *o = s->opt;

	for (size_t i = 0; i < o->ndownloads; i++)
		if (transfer_check_target(s->host, o->downloads[i].to, e) < 0)
			return -1;
	return 0;
}

/* It may be asked for more than once: by a person who stays after a warning,
 * and then by a signal, which is no reason to leave a result behind. */
int command_finish(struct session *s)
{
	const struct options *o = s->opt;
	struct transfer t = transfer_for(s);
	int r = 0;

	t.skip_saved = true;
	if (s->over)
		t.overwrite = NULL;
	if (s->signals->end)
		t.signals = NULL;
	for (size_t i = 0; i < o->ndownloads; i++)
		r |= transfer_download_pair(
			&t, o->downloads[i].from, o->downloads[i].to);
	return r;
}
