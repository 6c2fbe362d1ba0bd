/* SPDX-License-Identifier: MIT */
/*
 * files.c - :upload :download, -u -d and the skeleton; :files :show :rm :wipe
 *
 * Runs in:   front end, between cells
 * Trusts:    nothing about the names and contents of files in the home; the
 *            person about host files, but in a locked session hostfs.c opens
 *            only those in the configured directories
 */
#include "command.h"

#include "jail/base/path.h"
#include "repl/config/options.h"
#include "repl/session/session.h"
#include "repl/term/term.h"

#include <errno.h>
#include <sys/stat.h>

#define SHOW_MAX (8u << 20)

/* jail_home_list() lists at most 10 000 entries, so :rm and :wipe remove a list
 * at a time, and at most so many lists. */
#define REMOVED_LISTS_MAX 100

/* ---- copies between host and home ---- */

static void say_lines(void *arg, const char *lines)
{
	session_print(arg, lines, strlen(lines));
}

static void refuse_file(void *arg, const struct err *e)
{
	session_refuse(arg, e);
}

static bool ask_person(void *arg, const char *question)
{
	return question_confirm(arg, question);
}

bool files_overwrite(void *arg, const char *name)
{
	char safe[300], question[400];

	text_safe(safe, sizeof(safe), name, strlen(name));
	snprintf(question, sizeof(question), "%s is there already. Overwrite?",
		safe);
	return question_confirm(arg, question);
}

/* True if there is a person who can answer a question. */
static bool can_ask(const struct session *s)
{
	return s->term->in_tty && !s->over;
}

static struct transfer make_transfer(struct session *s)
{
	s->signals->interrupt = false;
	return (struct transfer){
		.jail = s->jail,
		.host = s->host,
		.limits = &s->cfg->limits,
		.ledger = &s->ledger,
		.term = s->term,
		.signals = s->signals,
		.say = say_lines,
		.refuse = refuse_file,
		.ask = can_ask(s) ? ask_person : NULL,
		.force = "--overwrite",
		.overwrite = s->opt->overwrite,
		.arg = s,
	};
}

static void report_cancelled(
	struct session *s, const struct transfer *t, const char *what)
{
	char done[64];

	if (t->cancelled)
		session_frame(s, "interrupted · %s %s, nothing is half there",
			text_count(done, sizeof(done), (uint64_t)t->done,
				"file", NULL),
			what);
}

/* Drop the first word if it is `flag`. True if it was. */
static bool take_flag(struct command_line *line, const char *flag)
{
	if (!line->n || strcmp(line->words[0].s, flag) != 0)
		return false;
	line->words++;
	line->n--;
	return true;
}

/* Drop a first word -f, and note in *force whether it was there. 0, or -1 with
 * e: no word is left. */
static int take_force(struct command_line *line, const char *command,
	bool *force, struct err *e)
{
	*force = take_flag(line, "-f");
	if (line->n)
		return 0;
	return err_set(
		e, ":%s -f: of what? ./-f is a file of that name", command);
}

/* Find out whether the last of several words is the directory of the home to
 * copy to: then *to is that word, else NULL. 0, or -1 with e when the word
 * names a directory of the home and one of the host. */
static int find_home_target(struct session *s, const struct command_line *line,
	const char **to, struct err *e)
{
	const struct lexer_word *last = &line->words[line->n - 1];
	const char *name = last->s;
	struct jail_files files = {0};
	auto_free char *path = NULL;
	bool by_form, home;
	struct stat st;
	int fd;

	*to = NULL;
	if (line->n < 2 || last->is_pattern || !name[0])
		return 0;
	by_form = name[strlen(name) - 1] == '/' ||
		  (name[0] == '/' && transfer_home_name(name) != name);
	if (!by_form && jail_home_list(s->jail, &files, e) < 0)
		return -1;
	home = by_form || transfer_has_dir(&files, name);
	jail_files_free(&files);
	path = home ? hostfs_expand(s->host, name) : NULL;
	/* If the host has a file of that name, it is one more file to copy. */
	fd = path ? hostfs_open_file(s->host, path, &st, NULL) : -1;
	if (fd >= 0)
		close(fd);
	if (!home || fd >= 0)
		return 0;
	if (!by_form && path && hostfs_is_dir(s->host, HOSTFS_READ, path)) {
		err_set(e, "%s is a directory of the home, and one of the host",
			name);
		return err_hint(e, "/home/%s is the home's, ./%s the host's",
			name, name);
	}
	*to = name;
	return 0;
}

int files_upload(
	struct session *s, const struct command_line *line, struct err *e)
{
	struct transfer t = make_transfer(s);
	struct command_line rest = *line;
	const char *to;
	int r;

	if (take_force(&rest, "upload", &t.overwrite, e) < 0 ||
		find_home_target(s, &rest, &to, e) < 0)
		return -1;
	t.force = ":upload -f";
	r = upload_run(&t, rest.words, rest.n - (to != NULL), to, e);
	report_cancelled(s, &t, "uploaded");
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
	struct transfer t = make_transfer(s);
	struct command_line rest = *line;
	const struct lexer_word *last;
	const char *to = NULL;
	int r;

	if (take_force(&rest, "download", &t.overwrite, e) < 0)
		return -1;
	last = &rest.words[rest.n - 1];
	if (rest.n > 1 && !last->is_pattern && files_is_target(s, last->s))
		to = last->s;
	t.force = ":download -f";
	r = download_run(&t, rest.words, rest.n - (to != NULL), to, e);
	if (r == 0 && t.done)
		s->saved = s->cell_no;
	report_cancelled(s, &t, "downloaded");
	return r;
}

/* ---- before the first prompt, after the last ---- */

void files_start(struct session *s)
{
	const struct options *o = s->opt;
	struct transfer t = make_transfer(s);

	upload_skeleton(&t, s->cfg->skeleton);
	s->given = s->ledger.n;
	for (size_t i = 0; i < o->nuploads && !s->over; i++)
		upload_pair(&t, o->uploads[i].from, o->uploads[i].to);
}

int files_ready(struct session *s, struct err *e)
{
	return download_check(s->host, s->opt, e);
}

/* May be called twice: the person stays after a warning, and later a signal
 * ends the session. A signal does not stop this last download. */
int files_finish(struct session *s)
{
	struct transfer t = make_transfer(s);

	t.skip_saved = true;
	if (s->signals->end)
		t.signals = NULL;
	return download_all(&t, s->opt);
}

/* ---- in the home ---- */

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
	if (status == LEDGER_NEW || status == LEDGER_CHANGED)
		return status == LEDGER_NEW ? "new" : "changed";
	snprintf(buf, size, "%s %s",
		status == LEDGER_UPLOADED    ? "uploaded"
		: status == LEDGER_SUBMITTED ? "submitted"
					     : "downloaded",
		clock);
	return buf;
}

static bool word_matches(const struct lexer_word *w, const char *path)
{
	return !strcmp(transfer_home_name(w->s), path) ||
	       transfer_matches(transfer_home_name(w->pattern), path);
}

static bool entry_is_wanted(
	const struct command_line *line, const struct jail_file *f)
{
	const struct lexer_word *w = line->words;
	const char *beneath;

	if (!line->n)
		return f->type != 'd';
	if (word_matches(w, f->path))
		return true;
	beneath = path_beneath(f->path, transfer_home_name(w->s));
	return f->type != 'd' && !w->is_pattern && beneath && *beneath;
}

/* "12 files, 3 directories"; `files` counts everything but directories. */
static const char *count_words(
	char *buf, size_t size, size_t files, size_t dirs)
{
	size_t n = 0;

	if (files || !dirs) {
		text_count(buf, size, files, "file", NULL);
		n = strlen(buf);
	}
	if (n && dirs)
		n += (size_t)snprintf(buf + n, size - n, ", ");
	if (dirs)
		text_count(buf + n, size - n, dirs, "directory", "directories");
	return buf;
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
	struct command_line rest = *line;
	bool all = take_flag(&rest, "-a") || rest.n;
	char count[64], size[TEXT_HUMAN];
	struct jail_files files = {0};
	size_t hidden = 0;
	int64_t bytes = 0;

	if (rest.n > 1)
		return err_set(e, "usage: :files [-a] [PATTERN]");
	if (jail_home_list(s->jail, &files, e) < 0)
		return -1;
	for (size_t i = 0; i < files.n; i++) {
		const struct jail_file *f = &files.v[i];

		if (!entry_is_wanted(&rest, f))
			continue;
		/* Programs keep many hidden files: count those unless the
		 * person asks for them. */
		if (all || !ledger_is_hidden(f->path)) {
			add_file(s, &t, f);
			continue;
		}
		hidden++;
		bytes += f->blocks_bytes;
	}
	if (t.n)
		info_table(s, &t);
	else if (!hidden)
		session_frame(s, rest.n ? "nothing in the home matches"
					: "the home is empty");
	if (hidden)
		session_frame(s, "%s, %s · :files -a lists %s",
			text_count(count, sizeof(count), hidden, "hidden file",
				NULL),
			text_size(size, (uint64_t)bytes),
			hidden == 1 ? "it" : "them");
	if (files.truncated)
		session_frame(s, "there are more files than are listed");
	jail_files_free(&files);
	return 0;
}

/* True if `buf` begins like an image of a format that Pillow reads. */
static bool is_image(const char *buf, size_t n)
{
	static const struct {
		const char *bytes;
		size_t n;
	} begins[] = {
		/* '.' is any byte */
		{"\x89PNG\r\n\x1a\n", 8},
		{"\xff\xd8\xff", 3},
		{"GIF8", 4},
		{"RIFF....WEBP", 12},
		{"BM....\0\0\0\0", 10},
		{"II*\0", 4},
		{"MM\0*", 4},
	};

	for (size_t i = 0; i < COUNT(begins); i++) {
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

int files_show(
	struct session *s, const struct command_line *line, struct err *e)
{
	const char *name = transfer_home_name(line->words[0].s);
	auto_close int fd = jail_home_open(s->jail, name, e);
	auto_free char *buf = NULL;
	char safe[256];
	size_t n;

	if (fd < 0)
		return -1;
	if (io_read_some(fd, SHOW_MAX, &buf, &n) < 0)
		return err_errno(e, "read %s", name);
	if (is_image(buf, n)) {
		/* Only a process in the jail decodes the image. */
		fd_drop(&fd);
		text_safe(safe, sizeof(safe), name, strlen(name));
		return cell_show_image(s, name, safe, e);
	}
	page_show(s, buf, n);
	if (n == SHOW_MAX)
		session_frame(s, "only the beginning is shown");
	return 0;
}

/* Remove an entry. 1; 0: there is no entry of this name; -1 with e. */
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

/* Remove the listed entries that the word matches; without a word, all of them.
 * Returns the number of removed entries, or -1 with e. */
static int remove_listed(struct session *s, const struct jail_files *files,
	const struct lexer_word *w, struct err *e)
{
	int n = 0;

	for (size_t i = 0; i < files->n; i++) {
		const char *path = files->v[i].path;
		int r;

		if (w ? !word_matches(w, path) : strchr(path, '/') != NULL)
			continue;
		r = remove_entry(s, path, e); /* 0: its directory is removed */
		if (r < 0)
			return -1;
		n += r;
	}
	return n;
}

/* Remove the entries that the word matches, or all. Entries that do not fit in
 * one list come up in the next one. *more: there are entries that were never
 * listed, or a process in the jail makes files as fast as we remove them.
 * Returns the number of removed entries, or -1 with e. */
static int remove_matching(
	struct session *s, const struct lexer_word *w, int *more, struct err *e)
{
	int n = 0, total = 0;

	for (int i = 0; i < REMOVED_LISTS_MAX; i++) {
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

/* How many entries a command would remove. */
struct removal_count {
	size_t files, dirs;
	int64_t bytes;
	bool asks; /* ask first: not only files, each named in full */
	bool more; /* there are entries that are not listed */
};

/* True if the directory that holds `path` is marked. The list has a directory
 * before its entries. */
static bool parent_is_marked(
	const struct jail_files *files, const bool *marks, const char *path)
{
	const struct jail_file *f;
	auto_free char *dir = strdup(path);
	char *slash = dir ? strrchr(dir, '/') : NULL;

	if (!slash)
		return false;
	*slash = '\0';
	f = transfer_find(files, dir);
	return f && marks[f - files->v];
}

static int refuse_missing(const struct lexer_word *w, struct err *e)
{
	return err_set(e, "%s: there is no such file in the home", w->s);
}

/* Count the entries that the words match; without words, all. 0, or -1 with e:
 * a word matches none. */
static int count_removal(struct removal_count *h,
	const struct jail_files *files, const struct lexer_word *words, int n,
	struct err *e)
{
	auto_free bool *marks = calloc(files->n + 1, sizeof(*marks));
	bool found[LEXER_WORDS_MAX] = {0};

	if (!marks)
		return err_errno(e, "look at the home");
	h->more = files->truncated;
	for (size_t i = 0; i < files->n; i++) {
		const struct jail_file *f = &files->v[i];

		marks[i] = !n || parent_is_marked(files, marks, f->path);
		for (int k = 0; k < n; k++)
			if (word_matches(&words[k], f->path))
				found[k] = marks[i] = true;
		if (!marks[i])
			continue;
		h->files += f->type != 'd';
		h->dirs += f->type == 'd';
		h->bytes += f->type == 'd' ? 0 : f->blocks_bytes;
	}
	h->asks = h->dirs || !n;
	for (int k = 0; k < n; k++) {
		h->asks |= words[k].is_pattern;
		/* If the list is not complete, an entry that is not in it may
		 * have exactly this name. */
		if (!found[k] && !h->more)
			return refuse_missing(&words[k], e);
		if (!found[k] && words[k].is_pattern)
			return err_set(e,
				"%s: none of the listed files, and there are "
				"more files than are listed",
				words[k].s);
	}
	return 0;
}

/* Ask the person. 1: yes; 0: no; -1 with e: there is nobody to ask. */
static int ask_consent(struct session *s, const struct removal_count *h,
	const char *command, struct err *e)
{
	char count[80], size[TEXT_HUMAN], question[300];

	snprintf(question, sizeof(question), "Remove %s%s (%s) from the home?",
		h->more ? "more than " : "",
		count_words(count, sizeof(count), h->files, h->dirs),
		text_size(size, (uint64_t)h->bytes));
	if (!can_ask(s)) {
		err_set(e, "%s, and nobody can be asked", question);
		return err_hint(e, ":%s -f does not ask", command);
	}
	if (question_confirm(s, question))
		return 1;
	session_frame(s, "nothing was removed");
	return 0;
}

/* Remove the entries that the words match; without words, all. Returns the
 * number of removed entries, without those in removed directories, or -1 with
 * e. */
static int remove_words(struct session *s, const struct lexer_word *words,
	int n, int *more, struct err *e)
{
	int total = 0;

	if (!n)
		return remove_matching(s, NULL, more, e);
	for (int i = 0; i < n; i++) {
		int left, gone = remove_matching(s, &words[i], &left, e);

		if (gone == 0 && !words[i].is_pattern) {
			gone = remove_entry(
				s, transfer_home_name(words[i].s), e);
			if (gone == 0)
				return refuse_missing(&words[i], e);
		}
		if (gone < 0)
			return -1;
		*more |= left && words[i].is_pattern;
		total += gone;
	}
	return total;
}

static int remove_all(struct session *s, const struct command_line *line,
	const char *command, bool force, struct err *e)
{
	struct jail_files files = {0};
	struct removal_count h = {0};
	char count[80];
	int more = 0, r;

	if (jail_home_list(s->jail, &files, e) < 0)
		return -1;
	r = count_removal(&h, &files, line->words, line->n, e);
	jail_files_free(&files);
	if (r == 0 && (h.files || h.dirs) && h.asks && !force)
		r = ask_consent(s, &h, command, e);
	else if (r == 0)
		r = 1;
	if (r <= 0)
		return r;
	r = remove_words(s, line->words, line->n, &more, e);
	if (r < 0)
		return -1;
	if (line->n)
		session_frame(s, "%s removed",
			h.more ? text_count(count, sizeof(count), (uint64_t)r,
					 "entry", "entries")
			       : count_words(count, sizeof(count), h.files,
					 h.dirs));
	else if (!more)
		session_frame(s, "the home is empty");
	if (more)
		session_frame(s, "there are more files than could be removed");
	return 0;
}

int files_rm(struct session *s, const struct command_line *line, struct err *e)
{
	struct command_line rest = *line;
	bool force;

	if (take_force(&rest, "rm", &force, e) < 0)
		return -1;
	return remove_all(s, &rest, "rm", force, e);
}

int files_wipe(
	struct session *s, const struct command_line *line, struct err *e)
{
	struct command_line rest = *line;
	bool force = take_flag(&rest, "-f");

	if (rest.n)
		return err_set(e, "usage: :wipe [-f]");
	return remove_all(s, &rest, "wipe", force, e);
}
