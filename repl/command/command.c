/* SPDX-License-Identifier: MIT */
/*
 * command.c - the table of `:` commands, and what Tab offers
 *
 * Runs in:   front end, between cells
 * Trusts:    the person with the commands that [policy] commands allows;
 *            no answer of a guest: complete_check() checks its candidates,
 *            which are text and never run
 * Leaves:    no name of a host file on the screen of a locked session
 */
#include "command.h"

#include "jail/base/io.h"
#include "jail/base/path.h"
#include "repl/edit/editor.h"
#include "repl/session/session.h"
#include "repl/term/term.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

/* clang-format off */
const struct command commands[] = {
	{"upload", "[-f] SRC… [DST]", ARG_HOST, 1, -1,
		"copy files of the host into the home",
		files_upload},
	{"download", "[-f] PATTERN… [DIR]", ARG_HOME, 1, -1,
		"copy files of the home to the host",
		files_download},
	{"submit", "[FILE…]", ARG_HOME, 0, -1,
		"hand files in, or list what was handed in",
		lab_submit},
	{"files", "[-a] [PATTERN]", ARG_HOME, 0, 2,
		"list the home", files_list},
	{"show", "FILE", ARG_HOME, 1, 1,
		"print a file of the home, or draw an image", files_show},
	{"rm", "[-f] PATTERN…", ARG_HOME, 1, -1,
		"remove files and directories of the home", files_rm},
	{"limits", "", ARG_NONE, 0, 0,
		"what you may do, and what enforces it", info_limits},
	{"usage", "", ARG_NONE, 0, 0,
		"what the session uses now", info_usage},
	{"who", "[TYPE…]", ARG_NONE, 0, COMMAND_VERBATIM,
		"your variables, or those of some types", info_who},
	{"diff", "", ARG_NONE, 0, 0,
		"what the last cell changed", info_diff},
	{"watch", "[EXPR]", ARG_PYTHON, 0, COMMAND_VERBATIM,
		"show a value after each cell that changes it", info_watch},
	{"unwatch", "[N|EXPR]", ARG_NONE, 0, COMMAND_VERBATIM,
		"stop watching a value; without an argument, all", info_unwatch},
	{"undo", "[N]", ARG_NONE, 0, 1,
		"back to before the last cell, or the last N",
		cells_undo},
	{"reset", "[-f]", ARG_NONE, 0, 1,
		"a fresh Python on the same home", cells_reset},
	{"wipe", "[-f]", ARG_NONE, 0, 1,
		"empty the home", files_wipe},
	{"load", "FILE", ARG_HOST, 1, 1,
		"run a script of the host, cell by cell", script_load},
	{"save", "FILE", ARG_HOST, 1, 1,
		"write the cells that ran as a script on the host",
		script_save},
	{"history", "[-a|-n] [TEXT]", ARG_NONE, 0, COMMAND_VERBATIM,
		"cells of this session and those before", cells_history},
	{"out", "[N]", ARG_NUMBER, 0, 1,
		"page through the full output of a cell", cells_out},
	{"edit", "[N]", ARG_NUMBER, 0, 1,
		"the last cell, or cell N, back in the editor", cells_edit},
	{"time", "CELL", ARG_CELL, 1, COMMAND_VERBATIM,
		"run a cell and say what it took", cells_time},
	{"timeit", "CELL", ARG_CELL, 1, COMMAND_VERBATIM,
		"run a cell many times and say what one run takes",
		cells_timeit},
	{"doc", "NAME", ARG_PYTHON, 1, COMMAND_VERBATIM,
		"signature and docs: NAME?; source: NAME??",
		info_doc},
	{"explain", "", ARG_NONE, 0, 0,
		"the last error in plain words", help_explain},
	{"clear", "", ARG_NONE, 0, 0,
		"clear the screen, as Ctrl-L does", page_clear},
	{"detach", "", ARG_NONE, 0, 0,
		"leave, and let the session go on",
		cells_detach},
	{"help", "[COMMAND]", ARG_COMMAND, 0, COMMAND_VERBATIM,
		"this list, or the page of a command", help_show},
	{"quit", "", ARG_NONE, 0, 0,
		"leave; so does Ctrl-D", cells_quit},
	{0},
};
/* clang-format on */

/* ---- completion ---- */

static int complete_python(struct session *s, const char *text, size_t cursor,
	size_t from, struct complete_list *out)
{
	auto_free char *answer = NULL;
	struct err e = {0};
	size_t n;

	if (jail_ask(s->jail, ASK_COMPLETE, text + from, cursor - from, &answer,
		    &n, &e) < 0) {
		text_safe(out->why, sizeof(out->why), e.msg, strlen(e.msg));
		return -1;
	}
	out->python = from;
	return complete_answer(out, answer, n);
}

/* Add the candidate `name`, in the quote `open` if the person has typed one. */
static void offer_name(struct complete_list *out, const char *name, char open)
{
	auto_free char *quoted = lexer_quote(name, open);

	if (quoted)
		complete_add(out, quoted, strlen(quoted));
	else
		out->dropped++;
}

static bool is_dir(int dir, const struct dirent *entry)
{
	struct stat st;

	if (entry->d_type == DT_DIR)
		return true;
	if (entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN)
		return false;
	return fstatat(dir, entry->d_name, &st, 0) == 0 && S_ISDIR(st.st_mode);
}

static void complete_host(struct session *s, const char *word, char open,
	bool only_dirs, struct complete_list *out)
{
	const char *base = path_last(word);
	size_t dir_n = (size_t)(base - word), base_n = strlen(base);
	auto_free char *dir = strndup(word, dir_n);
	auto_free char *path = dir ? hostfs_expand(s->host, dir) : NULL;
	const struct dirent *entry;
	DIR *d;
	int looks = 0;

	if (s->cfg->locked || !path)
		return;
	d = io_list_taken(hostfs_open_dir(
		s->host, HOSTFS_READ, path[0] ? path : ".", NULL));
	if (!d)
		return;
	while ((entry = readdir(d)) && looks++ < 100000) {
		auto_free char *full = NULL;
		bool dir_too;

		if (strncmp(entry->d_name, base, base_n) != 0 ||
			(entry->d_name[0] == '.' && base[0] != '.'))
			continue;
		if (path_is_dots(entry->d_name))
			continue;
		dir_too = is_dir(dirfd(d), entry);
		if ((dir_too || !only_dirs) &&
			asprintf(&full, "%s%s%s", dir, entry->d_name,
				dir_too ? "/" : "") >= 0)
			offer_name(out, full, open);
	}
	closedir(d);
	if (out->count)
		qsort(out->items, out->count, sizeof(*out->items),
			strlist_compare);
}

/* Add files of the home. `target`: the word follows a file of :download, so it
 * is one more file or the directory on the host that the files go to. Then we
 * leave out home files that :download would take for such a directory, and the
 * editor does not insert a beginning that candidates share, because that could
 * name such a directory, too. */
static void complete_home(struct session *s, const char *word, char open,
	bool target, struct complete_list *out)
{
	struct jail_files files = {0};
	size_t n = strlen(word);

	out->whole = target;
	if (target)
		complete_host(s, word, open, true, out);
	if (jail_home_list(s->jail, &files, NULL) < 0)
		return;
	for (size_t i = 0; i < files.n; i++)
		if (!strncmp(files.v[i].path, word, n) &&
			files.v[i].type != 'd' &&
			(!target || !files_is_target(s, files.v[i].path)))
			offer_name(out, files.v[i].path, open);
	jail_files_free(&files);
}

static void complete_numbers(struct session *s, const char *word,
	const struct command *c, struct complete_list *out)
{
	size_t n;
	const struct record_cell *cells = record_cells(s->record, &n);

	for (size_t i = 0; i < n; i++) {
		char no[16];
		int len = snprintf(no, sizeof(no), "%" PRIu32, cells[i].no);

		if (!strncmp(no, word, strlen(word)) &&
			(c->run != cells_out ||
				record_find_output(s->record, cells[i].no)))
			complete_add(out, no, (size_t)len);
	}
}

/* `blank`: put a blank behind a command that takes arguments. */
static void complete_commands(struct session *s, const char *word, bool blank,
	struct complete_list *out)
{
	size_t n = strlen(word);

	for (const struct command *c = commands; c->name; c++) {
		char name[32];
		int len = snprintf(name, sizeof(name), "%s%s", c->name,
			blank && c->args[0] ? " " : "");

		if (!strncmp(c->name, word, n) &&
			config_allows_command(s->cfg, c->name))
			complete_add(out, name, (size_t)len);
	}
}

static int complete_command(struct session *s, const char *text, size_t n,
	size_t cursor, struct complete_list *out)
{
	struct lexer_words w = {0};
	const struct command *c;
	const char *colon = memchr(text, ':', cursor);
	const char *word = "";
	size_t name_at, name_n = 0;
	bool typed;

	if (!colon)
		return -1;
	name_at = (size_t)(colon - text) + 1;
	while (name_at + name_n < cursor && text[name_at + name_n] != ' ')
		name_n++;
	if (name_at + name_n == cursor) {
		auto_free char *name = strndup(text + name_at, name_n);

		out->start = name_at;
		if (name)
			complete_commands(s, name, cursor == n, out);
		return 0;
	}
	c = named_find(s->cfg, text + name_at, name_n, NULL);
	if (!c)
		return -1;
	name_at += name_n + 1;
	if (c->arg == ARG_PYTHON || c->arg == ARG_CELL)
		return complete_python(s, text, cursor, name_at, out);
	lexer_split(text + name_at, cursor - name_at, &w, NULL);
	typed = w.n && w.v[w.n - 1].end == cursor - name_at;
	if (typed) {
		word = w.v[w.n - 1].s;
		out->start = name_at + w.v[w.n - 1].start;
	}
	if (c->arg == ARG_HOST)
		complete_host(s, word, w.open, false, out);
	else if (c->arg == ARG_HOME)
		complete_home(s, word, w.open,
			c->run == files_download && w.n > typed, out);
	else if (c->arg == ARG_NUMBER)
		complete_numbers(s, word, c, out);
	else if (c->arg == ARG_COMMAND)
		complete_commands(s, word, false, out);
	lexer_words_free(&w);
	return 0;
}

static int complete_cell(void *ctx, const char *text, size_t n, size_t cursor,
	struct complete_list *out)
{
	struct session *s = ctx;
	int r;

	jail_touch(s->jail);
	s->signals->interrupt = false;
	terminal_raw_interrupt(s->term, true);
	if (lexer_is_command(text, n))
		r = complete_command(s, text, n, cursor, out);
	else
		r = complete_python(s, text, cursor, 0, out);
	terminal_raw_interrupt(s->term, false);
	terminal_signals_read(s->signals);
	if (s->signals->interrupt)
		editor_interrupt(s->editor);
	s->signals->interrupt = false;
	/* jail_ask() has queued the events that came before the answer: the
	 * editor's poll of the descriptor would not see them. */
	cell_take_events(s);
	return r;
}

static void ask_signature(void *ctx, const char *name, size_t n)
{
	struct session *s = ctx;

	jail_ask_later(s->jail, ASK_SIGNATURE, name, n, NULL);
}

/* ---- the functions of session_calls ---- */

/* True if the line is `word` alone. */
static bool line_is(const char *src, size_t n, const char *word)
{
	size_t len = strlen(word);

	for (; n && text_is_blank(*src); n--)
		src++;
	for (; n && text_is_blank(src[n - 1]); n--)
		;
	return n == len && !memcmp(src, word, n);
}

static int run_line(struct session *s, const char *src, size_t n, struct err *e)
{
	bool command = lexer_is_command(src, n), source;
	const char *name = src;
	size_t name_n = n;

	bool help = line_is(src, n, "?") ||
		    (line_is(src, n, "help") && !session_variables(s, "help"));

	if (!help && !command && !info_is_question(&name, &name_n, &source))
		return habits_line(s, src, n, e);
	log_command(s->log, src, n);
	if (help)
		return named_run(s, "help", "", 0, e);
	terminal_lines(s->term);
	return command ? named_run_line(s, src, n, e)
		       : info_question(s, source, name, name_n, e);
}

static bool takes_cell(void *session, const char *name, size_t n)
{
	const struct session *s = session;
	const struct command *c = named_find(s->cfg, name, n, NULL);

	return c && c->arg == ARG_CELL;
}

const struct session_calls command_calls = {
	.line = run_line,
	.takes_cell = takes_cell,
	.complete = complete_cell,
	.signature = ask_signature,
	.ready = files_ready,
	.start = files_start,
	.finish = files_finish,
};
