/* SPDX-License-Identifier: MIT */
/*
 * habits.c - what people type out of habit: %time, !ls, cd, pip
 *
 * Runs in:   front end, between cells
 * Trusts:    the person. A habit becomes a cell or a `:` command, and allows
 *            no more than that does
 *
 * A habit is a line that is not Python: it begins with % or !, or with one of a
 * few shell commands whose names Python does not have in this session.
 */
#include "command.h"

#include "repl/session/session.h"
#include "repl/term/term.h"

#include <ctype.h>

/* Python that habits run; `it` is the text behind the word. */
#define SHELL                                                                  \
	"import subprocess\n"                                                  \
	"try: n = subprocess.call(it, shell=True)\n"                           \
	"except KeyboardInterrupt: n = 0\n"                                    \
	"if n: print(*('signal', -n) if n < 0 else ('exit status', n))"
#define CD                                                                     \
	"import os; here = os.getcwd()\n"                                      \
	"os.chdir(os.environ.get('OLDPWD', here) if it == '-' else "           \
	"os.path.expanduser(it or '~'))\n"                                     \
	"os.environ['OLDPWD'] = here; print(os.getcwd())"
#define RUN                                                                    \
	"import runpy, shlex, sys; argv = sys.argv\n"                          \
	"sys.argv = shlex.split(it) or ['']\n"                                 \
	"try: names.update((k, v) for k, v in runpy.run_path(sys.argv[0], "    \
	"run_name='__main__').items() if k[:2] != '__')\n"                     \
	"finally: sys.argv = argv"
#define WRITE                                                                  \
	"name, _, text = it.partition('\\n'); "                                \
	"f = open(name.strip(), 'w'); f.write(text + '\\n'); f.close()"

#define NO_PIP                                                                 \
	"packages come from the host · python.packages in the configuration " \
	"adds some · help('modules') lists what is there"
#define NOT_NEEDED "that is not needed here"

/* A word that begins a line, and one of: the `:` command that does the same,
 * Python to run, advice to print. */
static const struct habit {
	const char *word, *command, *python, *say;
	bool whole; /* `it` begins with the word, less its % */
} habits[] = {
	{"!", .python = SHELL},
	{"%%bash", .python = SHELL},
	{"%%sh", .python = SHELL},
	{"%%time", "time"},
	{"%%timeit", "timeit"},
	{"%%writefile", .python = WRITE},
	{"%autoreload", .say = "edit the file, then importlib.reload(module)"},
	{"%cd", .python = CD},
	{"%conda", .say = NO_PIP},
	{"%cpaste", .say = "paste as it is: nothing of it runs before Enter"},
	{"%debug", .say = "import pdb; pdb.pm()"},
	{"%doctest_mode", .say = NOT_NEEDED},
	{"%edit", "edit"},
	{"%env", .say = "os.environ, of the jail alone"},
	{"%hist", "history"},
	{"%history", "history"},
	{"%load", "load"},
	{"%load_ext", .say = "there are no extensions · :help lists the "
			     "commands"},
	{"%ls", .python = SHELL, .whole = true},
	{"%lsmagic", "help"},
	{"%magic", "help"},
	{"%matplotlib", .say = NOT_NEEDED},
	{"%mkdir", .python = SHELL, .whole = true},
	{"%paste", .say = "paste as it is: nothing of it runs before Enter"},
	{"%pdb", .say = "import pdb; pdb.pm()"},
	{"%pip", .say = NO_PIP},
	{"%prun", .say = "import cProfile; cProfile.run('...')"},
	{"%pwd", .python = "import os; print(os.getcwd())"},
	{"%pylab", .say = "import matplotlib.pyplot as plt, numpy as np"},
	{"%quickref", "help"},
	{"%reset", "reset"},
	{"%run", .python = RUN},
	{"%save", "save"},
	{"%time", "time"},
	{"%timeit", "timeit"},
	{"%who", "who"},
	{"%whos", "who"},
	{"cat", .python = SHELL, .whole = true},
	{"cd", .python = CD},
	{"conda", .say = NO_PIP},
	{"ls", .python = SHELL, .whole = true},
	{"mkdir", .python = SHELL, .whole = true},
	{"pip", .say = NO_PIP},
	{"pip3", .say = NO_PIP},
	{"pwd", .python = SHELL, .whole = true},
};

/* True of a character that a name in Python can have. */
static bool is_name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' ||
	       (unsigned char)c >= 0x80;
}

/* True if a line that begins with a shell command is Python: Python has the
 * name `word`, or the rest looks like no argument, as in `ls = 1`. */
static bool line_is_python(
	struct session *s, const char *word, const char *rest, size_t n)
{
	auto_free char *answer = NULL;
	size_t len = strlen(word), answer_n;
	const char *p;

	if (n && !strchr("-./~*\"'$_", *rest) && !is_name_char(*rest))
		return true;
	if (jail_ask(s->jail, ASK_COMPLETE, word, len, &answer, &answer_n,
		    NULL) < 0)
		return false;
	for (p = memchr(answer, '\n', answer_n); p;
		p = memchr(p, '\n', answer_n - (size_t)(p - answer)))
		if (!strncmp(++p, word, len) &&
			(size_t)(p - answer) + len < answer_n &&
			!is_name_char(p[len]))
			return true;
	return false;
}

/* Find the habit whose word begins the line, or NULL. *rest is the text behind
 * the first word, either way. */
static const struct habit *find_habit(
	const char *src, size_t n, const char **rest, size_t *rest_n)
{
	size_t len = 0;

	if (n && *src == '!')
		len = 1;
	while (len < n && *src != '!' && !text_is_blank(src[len]))
		len++;
	*rest = src + len;
	for (*rest_n = n - len; *rest_n && text_is_blank(**rest); --*rest_n)
		++*rest;
	for (size_t i = 0; i < sizeof(habits) / sizeof(*habits); i++)
		if (strlen(habits[i].word) == len &&
			!memcmp(habits[i].word, src, len))
			return &habits[i];
	return NULL;
}

/* The shell's `pip install` is the habit `pip`, which says where packages come
 * from: the shell would wait for a network. */
static const struct habit *find_install(
	const struct habit *shell, const char *line, size_t n)
{
	static const char install[] = "install";
	const char *rest;
	size_t rest_n;
	const struct habit *h = find_habit(line, n, &rest, &rest_n);

	return h && h->say && rest_n >= sizeof(install) - 1 &&
			       !memcmp(rest, install, sizeof(install) - 1)
		       ? h
		       : shell;
}

bool habits_explain(
	const char *text, size_t n, const char **command, const char **say)
{
	const char *rest;
	size_t rest_n;
	const struct habit *h = find_habit(text, n, &rest, &rest_n);

	if (h && h->command)
		*command = h->command;
	if (h && h->say)
		*say = h->say;
	return h;
}

int habits_line(struct session *s, const char *src, size_t n, struct err *e)
{
	const struct habit *h;
	const char *rest;
	size_t rest_n;
	char safe[64];

	for (; n && text_is_blank(*src); n--)
		src++;
	for (; n && text_is_blank(src[n - 1]); n--)
		;
	h = find_habit(src, n, &rest, &rest_n);
	if (h && *h->word == '!')
		h = find_install(h, rest, rest_n);
	if (h && !ispunct((unsigned char)*h->word) &&
		line_is_python(s, h->word, rest, rest_n))
		return 1;
	if (!h && n && *src == '%') {
		while (rest > src && text_is_blank(rest[-1]))
			rest--;
		text_safe(safe, sizeof(safe), src, (size_t)(rest - src));
		err_set(e, "there is no %s here", safe);
		return err_hint(e, ":help lists the commands");
	}
	if (!h)
		return 1;
	if (h->say) {
		session_frame(s, "%s", h->say);
		return 0;
	}
	if (h->command) {
		/* Ctrl-C sends a signal, as it does for a `:` command. */
		terminal_restore(s->term);
		return named_run(s, h->command, rest, rest_n, e);
	}
	if (h->whole) {
		rest = src + (*src == '%');
		rest_n = n - (*src == '%');
	}
	return cells_run_apart(s, h->python, rest, rest_n, e);
}
