/* SPDX-License-Identifier: MIT */
/*
 * script.c - :load :save
 *
 * Runs in:   front end, between cells
 * Trusts:    no byte of a script; the person about its path, but in a locked
 *            session hostfs.c opens only files in the configured directories
 */
#include "command.h"

#include "repl/session/session.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>

#define CELL_MARK "# %%"

/* The whole script, *n bytes of UTF-8; caller frees. NULL with e. */
static char *read_script(
	struct session *s, const char *name, size_t *n, struct err *e)
{
	size_t max = (size_t)s->cfg->limits.max_file_bytes;
	auto_free char *path = hostfs_expand(s->host, name);
	auto_close int fd = -1;
	struct stat st;
	char *buf = NULL;

	fd = path ? hostfs_open_file(s->host, path, &st, e)
		  : err_errno(e, "load %s", name);
	if (fd < 0) {
		if (path && e->code == ENOENT)
			err_hint(e, "files of the host are loaded; %%run FILE "
				    "runs one of the home");
		return NULL;
	}
	if ((size_t)st.st_size > max) {
		err_set(e, "%s is larger than files.max_file", path);
		return NULL;
	}
	if (io_read_some(fd, (size_t)st.st_size, &buf, n) < 0) {
		err_errno(e, "read %s", path);
	} else if (coding_check(buf, *n, path, e) < 0) {
		free(buf);
		buf = NULL;
	}
	return buf;
}

int script_load(
	struct session *s, const struct command_line *line, struct err *e)
{
	size_t max = (size_t)s->cfg->limits.source_bytes, n = 0;
	auto_free char *script = read_script(s, line->words[0].s, &n, e);
	const struct jail_done *done;
	const char *p, *end, *next;
	int cells = 0;

	if (!script)
		return -1;
	/* Some editors begin a file with a byte order mark. */
	p = script + (n >= 3 && !memcmp(script, "\xef\xbb\xbf", 3) ? 3 : 0);
	s->typed = NULL; /* the person has not typed these cells */
	for (end = script + n; p < end && !s->over; p = next) {
		next = memmem(p, n - (size_t)(p - script), "\n" CELL_MARK, 5);
		next = next ? next + 1 : end;
		if ((size_t)(next - p) > max)
			return err_set(e,
				"cell %d of the script is longer than "
				"cell.source",
				cells + 1);
		if (cell_run(s, p, (size_t)(next - p), e) < 0)
			return -1;
		cells++;
		done = cell_done(s);
		if (done && done->how != HOW_OK && next < end) {
			session_frame(
				s, "stopped at cell %d of the script", cells);
			break;
		}
	}
	return 0;
}

static void add_cells(const struct session *s, struct strbuf *b)
{
	size_t n, len;
	const struct record_cell *c = record_cells(s->record, &n);

	for (; n > 0; n--, c++) {
		if (!c->ok)
			continue;
		/* A cell that :load ran may begin with the script's mark. */
		if (c->n < 4 || memcmp(c->src, CELL_MARK, 4) != 0)
			strbuf_puts(b, CELL_MARK "\n");
		len = c->n;
		while (len && isspace((unsigned char)c->src[len - 1]))
			len--;
		plain_add(b, c->src, len, c->habit);
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
	struct io_newfile f;
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
	if (hostfs_has(fd, name) && !files_overwrite(s, path))
		return err_set(
			e, "%s is there already and was left alone", path);
	if (hostfs_create(&f, fd, 0666, name, e) < 0)
		return err_wrap(e, "%s", path);
	r = io_write_full(f.fd, b->s, b->n) < 0
		    ? err_errno(e, "write %s", path)
		    : hostfs_commit(&f, name, true, e);
	io_newfile_abort(&f);
	return r;
}

int script_save(
	struct session *s, const struct command_line *line, struct err *e)
{
	auto_free char *path = hostfs_expand(s->host, line->words[0].s);
	struct strbuf b = {0};
	char size[TEXT_HUMAN], safe[300], saved[400];
	int r;

	add_cells(s, &b);
	if (!b.n)
		return err_set(e, "no cell has run yet that could be saved");
	r = path && !b.failed ? write_script(s, &b, path, e)
			      : err_set(e, "save: out of memory");
	if (r == 0) {
		s->saved = s->cell_no;
		text_safe(safe, sizeof(safe), path, strlen(path));
		snprintf(saved, sizeof(saved), "cells  %s  → %s\n",
			text_size(size, b.n), safe);
		session_print(s, saved, strlen(saved));
	}
	if (r == 0 && record_gone(s->record))
		session_frame(s,
			"without the cells up to %" PRIu32
			": the last 14 MiB of cells are kept",
			record_gone(s->record));
	strbuf_free(&b);
	return r;
}
