/* SPDX-License-Identifier: MIT */
/*
 * habits.c - what people type out of habit: %time, !ls, cd, pip
 *
 * Runs in:   front end, between cells
 * Trusts:    the person. A habit becomes a cell or a `:` command, and allows
 *            no more than that does
 *
 * A habit is a line that is not Python: it begins with % or !, or with one of a
 * few bare words that Python has not as names in this session.
 */
#include "command.h"

#include "repl/session/session.h"
#include "repl/term/term.h"

#include <ctype.h>

#define NO_PIP                                                                 \
	"packages come from the host · python.packages in the configuration " \
	"adds some · help('modules') lists what is there"
#define NOT_NEEDED "that is not needed here"
#define PASTE "paste as it is: nothing of it runs before Enter"

/* A word that begins a line, and one of: the `:` command that does the same,
 * advice to print, or a cell of that kind to run. */
static const struct habit {
	const char *word, *command;
	const char *before; /* of the command's arguments */
	const char *say;
	bool runs; /* jail/guest/habits.py runs it */
} habits[] = {
	{"!", .runs = true},
	{"%%bash", .runs = true},
	{"%%file", .runs = true},
	{"%%sh", .runs = true},
	{"%%time", "time"},
	{"%%prun", .runs = true},
	{"%%timeit", "timeit", .runs = true},
	{"%%writefile", .runs = true},
	{"%alias", .say = "a function does it: def NAME(x): !COMMAND {x}"},
	{"%automagic", .say = NOT_NEEDED},
	{"%autoreload", .say = "edit the file, then importlib.reload(module)"},
	{"%bookmark", .say = "cd - goes back"},
	{"%cat", .runs = true},
	{"%cd", .runs = true},
	{"%clear", "clear"},
	{"%cls", "clear"},
	{"%colors", .say = NOT_NEEDED},
	{"%conda", .say = NO_PIP},
	{"%config", .say = NOT_NEEDED},
	{"%cp", .runs = true},
	{"%cpaste", .say = PASTE},
	{"%debug", .runs = true},
	{"%dhist", .say = "cd - goes back"},
	{"%doctest_mode", .say = NOT_NEEDED},
	{"%edit", "edit"},
	{"%env", .runs = true},
	{"%hist", "history"},
	{"%history", "history"},
	{"%less", "show"},
	{"%ll", .runs = true},
	{"%load", "load"},
	{"%load_ext",
		.say = "there are no extensions · :help lists the commands"},
	{"%logstart", .say = ":save FILE writes the cells that ran"},
	{"%ls", .runs = true},
	{"%lsmagic", "help", .before = "%"},
	{"%macro", .say = "a function does it · :edit N brings cell N back"},
	{"%magic", "help", .before = "%"},
	{"%matplotlib", .say = NOT_NEEDED},
	{"%mkdir", .runs = true},
	{"%more", "show"},
	{"%mv", .runs = true},
	{"%paste", .say = PASTE},
	{"%pdb", .say = "%debug after an error"},
	{"%pdef", "doc"},
	{"%pdoc", "doc"},
	{"%pinfo", "doc"},
	{"%pinfo2", "doc", .before = "??"},
	{"%pip", .say = NO_PIP},
	{"%popd", .say = "cd - goes back"},
	{"%pprint", .say = NOT_NEEDED},
	{"%precision", .say = "f'{x:.3f}', or numpy.set_printoptions()"},
	{"%prun", .runs = true},
	{"%psearch", "doc"},
	{"%psource", "doc", .before = "??"},
	{"%pushd", .say = "cd - goes back"},
	{"%pwd", .runs = true},
	{"%pycat", "show"},
	{"%pylab", .say = "import matplotlib.pyplot as plt, numpy as np"},
	{"%quickref", "help"},
	{"%recall", "edit"},
	{"%rep", "edit"},
	{"%rerun", "edit"},
	{"%reset", "reset"},
	{"%reset_selective", .say = "del NAME"},
	{"%rm", .runs = true},
	{"%rmdir", .runs = true},
	{"%run", .runs = true},
	{"%save", "save"},
	{"%set_env", .runs = true},
	{"%store", .say = ":detach keeps the session and its variables · "
			  "pickle keeps a value in a file"},
	{"%sx", .runs = true},
	{"%system", .runs = true},
	{"%tb", .runs = true},
	{"%time", "time"},
	{"%timeit", "timeit"},
	{"%who", "who"},
	{"%who_ls", "who"},
	{"%whos", "who"},
	{"%xmode", .say = ":explain says an error in plain words · %debug "
			  "looks around where it was"},
	{"cat", .runs = true},
	{"cd", .runs = true},
	{"clear", "clear"},
	{"conda", .say = NO_PIP},
	{"cp", .runs = true},
	{"env", .runs = true},
	{"history", "history"},
	{"ls", .runs = true},
	{"mkdir", .runs = true},
	{"mv", .runs = true},
	{"pip", .say = NO_PIP},
	{"pip3", .say = NO_PIP},
	{"pwd", .runs = true},
	{"rm", .runs = true},
	{"run", .runs = true},
	{"time", "time"},
	{"timeit", "timeit"},
	{"who", "who"},
	{"whos", "who"},
};

/* True of a character that a name in Python can have. */
static bool is_name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' ||
	       (unsigned char)c >= 0x80;
}

/* True if `rest` begins with a word that stands between two values in Python,
 * as in `time in x`. */
static bool begins_with_operator(const char *rest, size_t n)
{
	static const char *const words[] = {
		"and", "else", "for", "if", "in", "is", "not", "or"};
	size_t len = 0;

	while (len < n && is_name_char(rest[len]))
		len++;
	for (size_t i = 0; i < COUNT(words); i++)
		if (strlen(words[i]) == len && !memcmp(words[i], rest, len))
			return true;
	return false;
}

/* True if a line that begins with a bare word is Python: Python has the name
 * `word`, or the rest looks like no argument, as in `ls = 1`. */
static bool line_is_python(
	struct session *s, const char *word, const char *rest, size_t n)
{
	auto_free char *answer = NULL;
	size_t len = strlen(word), answer_n;
	const char *p;

	if (n && ((!strchr("-./~*\"'$_{", *rest) && !is_name_char(*rest)) ||
			 begins_with_operator(rest, n)))
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
	for (size_t i = 0; i < COUNT(habits); i++)
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

/* Run the command that a habit stands for. */
static int run_command(struct session *s, const struct habit *h,
	const char *rest, size_t n, struct err *e)
{
	struct strbuf b = {0};
	int r;

	strbuf_puts(&b, h->before ? h->before : "");
	strbuf_add(&b, rest, n);
	/* Ctrl-C sends a signal, as it does for a `:` command. */
	terminal_lines(s->term);
	r = b.failed ? err_set(e, "out of memory")
		     : named_run(s, h->command, strbuf_text(&b), b.n, e);
	strbuf_free(&b);
	return r;
}

/* True if a text of several lines is a cell with a habit in its first line, and
 * not one habit: %%bash, or a %time before an indented line. */
static bool is_cell_of_lines(const char *src, size_t n)
{
	const char *nl = memchr(src, '\n', n);

	return nl && !(n > 1 && src[0] == '%' && src[1] == '%') &&
	       !(nl + 1 < src + n && text_is_blank(nl[1]));
}

/* True of %NAME? alone. */
static bool is_question(const char *src, size_t n)
{
	if (n < 3 || *src != '%' || src[n - 1] != '?')
		return false;
	for (size_t i = 0; i < n; i++)
		if (text_is_blank(src[i]))
			return false;
	return true;
}

int habits_line(struct session *s, const char *src, size_t n, struct err *e)
{
	static const struct habit help = {"?", "help"};
	const struct habit *h;
	const char *rest;
	size_t rest_n;
	char safe[64];

	for (; n && text_is_blank(*src); n--)
		src++;
	for (; n && text_is_blank(src[n - 1]); n--)
		;
	if (is_cell_of_lines(src, n))
		return 1;
	if (is_question(src, n)) {
		log_command(s->log, src, n);
		return run_command(s, &help, src, n - 1, e);
	}
	h = find_habit(src, n, &rest, &rest_n);
	if (h && *h->word == '!')
		h = find_install(h, rest, rest_n);
	if (h && !ispunct((unsigned char)*h->word) &&
		line_is_python(s, h->word, rest, rest_n))
		return 1;
	if (!h && (!n || *src != '%'))
		return 1;
	if (h && h->runs)
		return cell_run_habit(s, src, n, e);
	/* No cell, which would be written down where it runs. */
	log_command(s->log, src, n);
	if (!h) {
		for (n = 0; n < (size_t)(rest - src) && !text_is_blank(src[n]);)
			n++;
		text_safe(safe, sizeof(safe), src, n);
		err_set(e, "there is no %s here", safe);
		return err_hint(e, ":help %% says which there are");
	}
	if (h->say) {
		session_frame(s, "%s", h->say);
		return 0;
	}
	return run_command(s, h, rest, rest_n, e);
}
