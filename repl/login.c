/* SPDX-License-Identifier: MIT */
/*
 * login.c - what a login asks for
 *
 * Runs in:   front end, before we read the command line
 * Trusts:    argv[0] and the number of arguments, which sshd, login and su
 *            set; the password entry; never the text of a command
 * Leaves:    a command that is one string and never became options
 *
 * sshd starts the account's shell as "-name" for a session and as "name", "-c",
 * COMMAND for everything else, ForceCommand included: then COMMAND is what the
 * administrator wrote, and the person's request is in SSH_ORIGINAL_COMMAND.
 * Where ForceCommand names us and the account has another shell, that shell
 * starts us: without arguments, or with --login, which marks a login even when
 * the person asked for nothing.
 *
 * One command is no cell: cellblock-mcp, or what the administrator wrote for
 * the subsystem of that name, which sshd hands over as if it were the command.
 * We accept exactly these words, so that no option comes along.
 *
 * "-c CODE" typed at another shell looks the same as sshd's, so the password
 * entry decides: an account whose shell is this program has no other shell
 * where somebody could type it. SSH_CONNECTION would prove nothing, since it
 * stays set in everything started from an ssh session, and cron and su start
 * shells without it. A wrong guess makes a run stricter, never looser.
 */
#include "run.h"

#include "jail/base/err.h"
#include "repl/config/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r\n"

static const char *non_empty(const char *s)
{
	return s && *s ? s : NULL;
}

/* The length of the first word at `s`, and its part after the last slash. */
static size_t measure_first_word(
	const char *s, const char **base, size_t *base_len)
{
	size_t n = strcspn(s, BLANKS);

	*base = s;
	for (size_t i = 0; i < n; i++)
		if (s[i] == '/')
			*base = s + i + 1;
	*base_len = (size_t)(s + n - *base);
	return n;
}

static bool word_is(const char *s, size_t n, const char *word)
{
	return strlen(word) == n && !memcmp(s, word, n);
}

/* True if the command is this program, alone or with the one word. */
static bool is_program(const char *command, const char *name, const char *word)
{
	const char *base;
	size_t len, n;

	command += strspn(command, BLANKS);
	n = measure_first_word(command, &base, &len);
	if (!word_is(base, len, name))
		return false;
	command += n + strspn(command + n, BLANKS);
	n = strcspn(command, BLANKS);
	return (word ? word_is(command, n, word) : !n) &&
	       !command[n + strspn(command + n, BLANKS)];
}

/* True if ForceCommand names this program, which is the account's shell, too.
 */
static bool names_ourselves(const char *command)
{
	return is_program(command, "cellblock", NULL) ||
	       is_program(command, "cellblock", "--login");
}

static void set_command(
	struct login *login, const char *command, const char *original)
{
	login->kind = LOGIN_COMMAND;
	login->command =
		names_ourselves(command) ? non_empty(original) : command;
}

static int refuse_options(struct err *e)
{
	err_set(e, "a login takes no options");
	err_hint(e, "limits are set in /etc/cellblock; see cellblock.conf(5)");
	return err_kind_set(e, ERR_USAGE);
}

int login_decide(
	const struct login_start *start, struct login *login, struct err *e)
{
	int argc = start->argc;
	char *const *argv = start->argv;
	bool dash = argc > 0 && argv[0][0] == '-';
	bool command = argc == 3 && !strcmp(argv[1], "-c");

	*login = (struct login){.kind = LOGIN_NOT};
	if (dash && argc == 1)
		login->kind = LOGIN_SHELL;
	else if (command && (dash || start->shell_is_us))
		set_command(login, argv[2], start->original);
	else if (dash)
		return refuse_options(e);
	else if ((argc == 1 && non_empty(start->original)) ||
		 (argc == 2 && !strcmp(argv[1], "--login")))
		*login = (struct login){
			LOGIN_FORCED, non_empty(start->original)};
	else if (argc > 2 && !strcmp(argv[1], "--login"))
		return refuse_options(e);
	return 0;
}

static bool asks_for_mcp(const char *command)
{
	return is_program(command, "cellblock-mcp", NULL) ||
	       is_program(command, "cellblock", "--mcp");
}

/* True if one of the words after the first is an option of single letters
 * with one of `letters`, or `whole`. */
static bool has_option(const char *s, const char *letters, const char *whole)
{
	for (;;) {
		size_t n;

		s += strspn(s, BLANKS);
		n = strcspn(s, BLANKS);
		if (!n)
			return false;
		if (whole && word_is(s, n, whole))
			return true;
		if (letters && n > 1 && s[0] == '-' && s[1] != '-' &&
			strcspn(s + 1, letters) < n - 1)
			return true;
		s += n;
	}
}

/* A program that a client starts at the far end, and the option that tells the
 * program from a cell that happens to begin with its name. */
static const struct {
	const char *program;
	const char *letters;
	const char *whole;
	const char *service;
} far_ends[] = {
	{"internal-sftp", NULL, NULL, "sftp"},
	{"sftp-server", NULL, NULL, "sftp"},
	{"scp", "tf", NULL, "scp"},
	{"rsync", NULL, "--server", "rsync"},
	{"git-upload-pack", NULL, NULL, "git"},
	{"git-receive-pack", NULL, NULL, "git"},
	{"git-upload-archive", NULL, NULL, "git"},
	{"git", NULL, "upload-pack", "git"},
	{"git", NULL, "receive-pack", "git"},
	{"git", NULL, "upload-archive", "git"},
};

const char *login_service(const char *command)
{
	const char *base;
	size_t len, n;

	if (!command || strchr(command, '\n'))
		return NULL;
	command += strspn(command, BLANKS);
	n = measure_first_word(command, &base, &len);
	for (size_t i = 0; i < COUNT(far_ends); i++) {
		if (!word_is(base, len, far_ends[i].program))
			continue;
		if ((!far_ends[i].letters && !far_ends[i].whole) ||
			has_option(command + n, far_ends[i].letters,
				far_ends[i].whole))
			return far_ends[i].service;
	}
	return NULL;
}

/* Words that are about sessions. No cell is lost: in a fresh Python they are
 * names of nothing, and with a number behind them no Python. */
static const struct {
	const char *word;
	enum options_mode mode;
	int least, most;
} session_words[] = {
	{"sessions", OPTIONS_SESSIONS, 0, 0},
	{"attach", OPTIONS_ATTACH, 0, 1},
	{"end", OPTIONS_END, 1, LOGIN_WORDS},
};

/* The number of a session, or "all". */
static bool is_session(const char *s)
{
	return !strcmp(s, "all") || (*s && !s[strspn(s, "s.0123456789")]);
}

/* Split into words (login->words), without what a shell does. Their number; 0:
 * there are too many, or they are too long. */
static int split_words(struct login *login)
{
	char *at = login->text, *word;
	int n = 0;

	if (strlen(login->command) >= sizeof(login->text))
		return 0;
	strcpy(login->text, login->command);
	while ((word = strtok_r(n ? NULL : at, BLANKS, &at))) {
		if (n == LOGIN_WORDS)
			return 0;
		login->words[n++] = word;
	}
	login->words[n] = NULL;
	return n;
}

static bool asks_for_sessions(struct login *login, struct options *o)
{
	int n = split_words(login);

	for (int i = 1; i < n; i++)
		if (!is_session(login->words[i]))
			return false;
	for (size_t i = 0; n && i < COUNT(session_words); i++) {
		if (strcmp(login->words[0], session_words[i].word) != 0 ||
			n - 1 < session_words[i].least ||
			n - 1 > session_words[i].most)
			continue;
		o->mode = session_words[i].mode;
		o->args = login->words + 1;
		o->nargs = n - 1;
		o->session = login->words[1];
		return true;
	}
	return false;
}

/* A version such as 3, 3.12 or 3.13t. */
static bool is_version(const char *s)
{
	const char *end = s + strspn(s, ".0123456789");

	end += *end == 't';
	return *s >= '0' && *s <= '9' && !*end;
}

/* "python3.12" and "python 3.12" choose an interpreter, by its file's name, and
 * "python" is the first. As cells they would all fail. */
static bool asks_for_python(struct login *login, struct options *o)
{
	static const char name[] = "python";
	const size_t len = sizeof(name) - 1;
	int n = split_words(login);
	char *first = login->words[0];

	if (n == 2 && !strcmp(first, name) && is_version(login->words[1]))
		memmove(first + len, login->words[1],
			strlen(login->words[1]) + 1);
	else if (n != 1 || strncmp(first, name, len) != 0 ||
		 (first[len] && !is_version(first + len)))
		return false;
	o->python = first[len] ? first : NULL;
	o->text = NULL;
	return true;
}

void login_options(struct login *login, bool terminal, struct options *o)
{
	static char *no_args[] = {NULL};

	*o = (struct options){.args = no_args, .text = login->command};
	if (login->command && asks_for_sessions(login, o))
		return;
	if (login->command && asks_for_mcp(login->command))
		o->mode = OPTIONS_MCP;
	else if (login_service(login->command))
		o->mode = OPTIONS_REMOTE;
	else if (login->command && !asks_for_python(login, o))
		o->mode = OPTIONS_CELL;
	else
		o->mode = terminal ? OPTIONS_SESSION : OPTIONS_STDIN;
}

void login_refusal(const char *service, char *buf, size_t size)
{
	snprintf(buf, size,
		"cellblock: %s is not served here: this account is a Python "
		"session and nothing else\n"
		"  to run a program:    ssh HOST < program.py\n"
		"  to move files:       :upload and :download in a session\n",
		service);
}

/* Terminal types are names; anything else could be a path to a crafted
 * description. */
static bool is_term(const char *s)
{
	return *s && *s != '.' && strlen(s) < 64 &&
	       !s[strspn(s, "abcdefghijklmnopqrstuvwxyz"
			    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-._")];
}

/* A locale's name, never a path. */
static bool is_locale(const char *s)
{
	return *s != '.' && strlen(s) < 64 &&
	       !s[strspn(s, "abcdefghijklmnopqrstuvwxyz"
			    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._@=;")];
}

static bool is_size(const char *s)
{
	return *s && strlen(s) < 5 && !s[strspn(s, "0123456789")];
}

static bool is_address(const char *s)
{
	return strlen(s) < 160 &&
	       !s[strspn(s, "abcdefghijklmnopqrstuvwxyz"
			    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:%- ")];
}

/* no-color.org allows any value; this is the usual one. */
static bool is_one(const char *s)
{
	return !strcmp(s, "1");
}

static const struct {
	const char *name;
	bool (*ok)(const char *value);
} kept[] = {
	{"TERM", is_term},
	{"LANG", is_locale},
	{"LC_ALL", is_locale},
	{"LC_COLLATE", is_locale},
	{"LC_CTYPE", is_locale},
	{"LC_MESSAGES", is_locale},
	{"LC_NUMERIC", is_locale},
	{"LC_TIME", is_locale},
	{"COLUMNS", is_size},
	{"LINES", is_size},
	{"NO_COLOR", is_one},
	{"SSH_CONNECTION", is_address},
};

enum { NKEPT = COUNT(kept) };

static const char *find_variable(char *const *envp, const char *name)
{
	size_t n = strlen(name);

	for (; envp && *envp; envp++)
		if (!strncmp(*envp, name, n) && (*envp)[n] == '=')
			return *envp + n + 1;
	return NULL;
}

static int put_variable(
	char **env, size_t *n, const char *name, const char *value)
{
	if (asprintf(&env[*n], "%s=%s", name, value) < 0) {
		env[*n] = NULL;
		return -1;
	}
	++*n;
	return 0;
}

static int put_kept_variables(char **env, size_t *n, char *const *envp)
{
	for (size_t i = 0; i < NKEPT; i++) {
		const char *value = find_variable(envp, kept[i].name);
		bool term = !strcmp(kept[i].name, "TERM");

		if (value && !kept[i].ok(value))
			value = term ? "dumb" : NULL;
		if (value && put_variable(env, n, kept[i].name, value) < 0)
			return -1;
	}
	return 0;
}

char **login_scrub_env(char *const *envp, const char *home, const char *user)
{
	char **env = calloc(NKEPT + 5, sizeof(*env));
	size_t n = 0;

	if (!env)
		return NULL;
	if (put_variable(env, &n, "PATH", "/usr/bin:/bin") < 0 ||
		put_variable(env, &n, "HOME",
			home && *home == '/' ? home : "/") < 0 ||
		put_variable(env, &n, "USER", user ? user : "") < 0 ||
		put_variable(env, &n, "LOGNAME", user ? user : "") < 0 ||
		put_kept_variables(env, &n, envp) < 0) {
		login_env_free(env);
		return NULL;
	}
	return env;
}

void login_env_free(char **env)
{
	for (size_t i = 0; env && env[i]; i++)
		free(env[i]);
	free(env);
}
