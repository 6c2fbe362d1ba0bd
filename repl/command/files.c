/* SPDX-License-Identifier: MIT */
/*
 * files.c - :upload :download, -u -d and the skeleton; :files :show :rm :wipe
 *
 * Runs in:   front end, between cells
 * Trusts:    nothing about the names and contents of files in the home; the
 *            person about host files, whom hostfs.c keeps to the configured
 *            directories in a locked session
 */
#include "command.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/jail.h"
#include "repl/config/config.h"
#include "repl/config/options.h"
#include "repl/files/hostfs.h"
#include "repl/files/transfer.h"
#include "repl/session/session.h"
#include "repl/term/terminal.h"
#include "repl/text/lexer.h"
#include "repl/text/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define SHOW_MAX (8u << 20)

/* Files are removed a list at a time: 10 000 of them. */
#define LISTS_MAX 100

/* ---- between host and home ---- */

static void say(void *arg, const char *line)
{
	session_printf(arg, "%s\n", line);
}

static void refuse(void *arg, const struct err *e)
{
	session_refuse(arg, e);
}

bool files_overwrite(void *arg, const char *name)
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
		.overwrite = files_overwrite,
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

/* Whether the name can only mean a place in the home. */
static bool is_of_the_home(struct session *s, const char *name)
{
	return name[strlen(name) - 1] == '/' ||
	       (name[0] == '/' && transfer_home_name(name) != name) ||
	       transfer_home_has_dir(s->jail, name);
}

/* Of several words the last may be the target in the home. */
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
	/* If the host has a file of that name, it is one more file to copy. */
	path = hostfs_expand(s->host, last->s);
	fd = path ? hostfs_open_file(s->host, path, &st, NULL) : -1;
	if (fd >= 0) {
		close(fd);
		return NULL;
	}
	*n = line->n - 1;
	return last->s;
}

int files_upload(
	struct session *s, const struct command_line *line, struct err *e)
{
	struct transfer t = transfer_for(s);
	int n, r;
	const char *to = upload_target(s, line, &n);

	r = transfer_upload(&t, line->words, n, to, e);
	sum_up(s, &t, "uploaded");
	return r;
}

bool files_is_target(struct session *s, const char *name)
{
	auto_free char *path = NULL;

	if (name[0] == '~' || !strncmp(name, "../", 3) ||
		(name[0] == '/' && strncmp(name, "/home/", 6) != 0))
		return true;
	path = hostfs_expand(s->host, name);
	return path && hostfs_is_dir(s->host, HOSTFS_WRITE, path);
}

int files_download(
	struct session *s, const struct command_line *line, struct err *e)
{
	struct transfer t = transfer_for(s);
	const struct lexer_word *last = &line->words[line->n - 1];
	const char *to = NULL;
	int n = line->n, r;

	if (n > 1 && !last->is_pattern && files_is_target(s, last->s)) {
		to = last->s;
		n--;
	}
	r = transfer_download(&t, line->words, n, to, e);
	sum_up(s, &t, "downloaded");
	return r;
}

/* ---- before the first prompt, after the last ---- */

void files_start(struct session *s)
{
	const struct options *o = s->opt;
	struct transfer t = transfer_for(s);

	transfer_skeleton(&t, s->cfg->skeleton);
	for (size_t i = 0; i < o->nuploads && !s->over; i++)
		transfer_upload_pair(&t, o->uploads[i].from, o->uploads[i].to);
}

int files_ready(struct session *s, struct err *e)
{
	const struct options *o = s->opt;

	for (size_t i = 0; i < o->ndownloads; i++)
		if (transfer_check_target(s->host, o->downloads[i].to, e) < 0)
			return -1;
	return 0;
}

/* May be called more than once: the person stays after a warning, and then a
 * signal ends the session. Even then the results are downloaded. */
int files_finish(struct session *s)
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

/* ---- in the home ---- */

static const char *status_words(const struct session *s,
	const struct jail_file *f, char *buf, size_t size)
{
	char clock[16] = "";
	struct tm tm;
	time_t when;
	enum transfer_ledger_status status =
		transfer_ledger_status(&s->ledger, f, &when);

	if (f->type == 'l')
		return "link";
	if (f->type == 'd')
		return "directory";
	if (f->type != 'f')
		return "special";
	if (when && localtime_r(&when, &tm))
		strftime(clock, sizeof(clock), "%H:%M", &tm);
	if (status == TRANSFER_NEW || status == TRANSFER_CHANGED)
		return status == TRANSFER_NEW ? "new" : "changed";
	snprintf(buf, size, "%s %s",
		status == TRANSFER_UPLOADED ? "uploaded" : "downloaded", clock);
	return buf;
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

static void add_file(const struct session *s, struct text_table *t,
	const struct jail_file *f)
{
	char name[256], size[TEXT_HUMAN] = "", buf[64], status[80];
	bool sparse = f->type == 'f' && f->blocks_bytes + 4096 < f->bytes;

	text_safe(name, sizeof(name), f->path, strlen(f->path));
	if (f->type == 'f')
		text_size(size, (uint64_t)f->bytes);
	snprintf(status, sizeof(status), "%s%s",
		status_words(s, f, buf, sizeof(buf)), sparse ? ", sparse" : "");
	text_table_add(t, (const char *[]){name, size, status});
}

int files_list(
	struct session *s, const struct command_line *line, struct err *e)
{
	struct text_table t = {.columns = 3, .right = 1 << 1};
	struct jail_files files = {0};

	if (jail_home_list(s->jail, &files, e) < 0)
		return -1;
	for (size_t i = 0; i < files.n; i++)
		if (wanted(line, &files.v[i]))
			add_file(s, &t, &files.v[i]);
	if (t.n)
		info_table(s, &t);
	else
		session_frame(s, line->n ? "nothing in the home matches"
					 : "the home is empty");
	if (files.truncated)
		session_frame(s, "there are more files than are listed");
	jail_files_free(&files);
	return 0;
}

/* How the images begin that Pillow knows; '.' is any byte. */
static bool is_image(const char *buf, size_t n)
{
	static const struct {
		const char *bytes;
		size_t n;
	} begins[] = {
		{"\x89PNG\r\n\x1a\n", 8},
		{"\xff\xd8\xff", 3},
		{"GIF8", 4},
		{"RIFF....WEBP", 12},
		{"BM....\0\0\0\0", 10},
		{"II*\0", 4},
		{"MM\0*", 4},
	};

	for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++) {
		size_t at = 0;

		while (at < begins[i].n && at < n &&
			(begins[i].bytes[at] == '.' ||
				begins[i].bytes[at] == buf[at]))
			at++;
		if (at == begins[i].n)
			return true;
	}
	return false;
}

/* What is inside an image is for the jail to find out. */
static int show_image(struct session *s, const char *name, struct err *e)
{
	char safe[256];

	text_safe(safe, sizeof(safe), name, strlen(name));
	return cell_show_image(s, name, safe, e);
}

int files_show(
	struct session *s, const struct command_line *line, struct err *e)
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
	if (is_image(buf, (size_t)n)) {
		fd_drop(&fd);
		return show_image(s, name, e);
	}
	info_page(s, buf, (size_t)n);
	if (n == SHOW_MAX)
		session_frame(s, "only the beginning is shown");
	return 0;
}

/* Remove an entry: 1; 0 when there is none of this name; -1. */
static int remove_entry(struct session *s, const char *path, struct err *e)
{
	struct err why = {0};

	if (jail_home_remove(s->jail, path, &why) == 0)
		return 1;
	if (why.code == ENOENT)
		return 0;
	*e = why;
	return -1;
}

/* Remove the listed entries that the word means; without a word, all of them.
 * How many entries are gone, or -1. */
static int remove_listed(struct session *s, const struct jail_files *files,
	const struct lexer_word *w, struct err *e)
{
	int n = 0;

	for (size_t i = 0; i < files->n; i++) {
		const char *path = files->v[i].path;
		int r;

		if (w ? !is_meant(w, path) : strchr(path, '/') != NULL)
			continue;
		r = remove_entry(s, path, e); /* 0: went with its directory */
		if (r < 0)
			return -1;
		n += r;
	}
	return n;
}

/* Entries that do not fit in one list come up in the next one. *more: there
 * are entries that were never listed, or a process in the jail makes files as
 * fast as they are removed. */
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

int files_rm(struct session *s, const struct command_line *line, struct err *e)
{
	char count[64];
	int total = 0;

	for (int i = 0; i < line->n; i++) {
		const struct lexer_word *w = &line->words[i];
		int more, n = remove_meant(s, w, &more, e);

		/* It may have an entry of exactly this name, not listed. */
		if (n == 0 && more && !w->is_pattern) {
			n = remove_entry(s, transfer_home_name(w->s), e);
			more = 0;
		}
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

int files_wipe(
	struct session *s, const struct command_line *line, struct err *e)
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
