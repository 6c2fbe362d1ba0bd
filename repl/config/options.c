/* SPDX-License-Identifier: MIT */
/*
 * options.c - the command line
 *
 * Runs in:   front end, first thing
 * Trusts:    the person who typed it; a login shell never comes here
 * Leaves:    what to do, with options and program apart
 *
 * As with python3, options end at FILE, -c CODE or -m MODULE, and everything
 * after that belongs to the program.
 */
#include "options.h"

#include "jail/base/array.h"
#include "jail/base/err.h"
#include "repl/term/terminal.h"
#include "repl/text/strbuf.h"
#include "repl/text/table.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

/* One option. `take` is told its argument; `ends` those after which the rest
 * is the program's. Those that are a whole form of the command are explained
 * as such, and not one by one. */
struct rule {
	const char *name; /* --name, or NULL */
	char letter;	  /* -x, or '\0' */
	const char *arg;  /* what its argument is called; NULL: it has none */
	bool ends;
	enum options_mode mode; /* for take_mode */
	int (*take)(struct options *o, const struct rule *r, const char *arg,
		struct err *e);
	const char *help;
};

static int usage(struct err *e)
{
	err_hint(e, "try 'cellblock -h'");
	return err_kind_set(e, ERR_USAGE);
}

static int out_of_memory(struct err *e)
{
	return err_errno(e, "read the command line");
}

static int take_mode(
	struct options *o, const struct rule *r, const char *arg, struct err *e)
{
	if (o->mode != OPTIONS_SESSION) {
		err_set(e, "only one of -c, -m, -e, --check and "
			   "--check-config makes sense");
		return usage(e);
	}
	o->mode = r->mode;
	o->text = arg;
	return 0;
}

/* These say what to do whatever else was said. */
static int take_info(
	struct options *o, const struct rule *r, const char *arg, struct err *e)
{
	(void)arg;
	(void)e;
	o->mode = r->mode;
	return 0;
}

static int take_config(
	struct options *o, const struct rule *r, const char *arg, struct err *e)
{
	(void)r;
	if (o->config_file) {
		err_set(e, "only one configuration file can be named");
		return usage(e);
	}
	o->config_file = arg;
	return 0;
}

static int add_set(
	struct options *o, const char *key, const char *arg, struct err *e)
{
	if (array_grow(&o->sets, o->nsets, sizeof(*o->sets)) < 0 ||
		asprintf(&o->sets[o->nsets], "%s%s", key, arg) < 0)
		return out_of_memory(e);
	o->nsets++;
	return 0;
}

static int take_set(
	struct options *o, const struct rule *r, const char *arg, struct err *e)
{
	(void)r;
	if (!strchr(arg, '.') || !strchr(arg, '=')) {
		err_set(e, "--set wants SECTION.KEY=VALUE, not '%s'", arg);
		return usage(e);
	}
	return add_set(o, "", arg, e);
}

static int take_timeout(
	struct options *o, const struct rule *r, const char *arg, struct err *e)
{
	(void)r;
	return add_set(o, "cell.timeout=", arg, e);
}

static int take_memory(
	struct options *o, const struct rule *r, const char *arg, struct err *e)
{
	(void)r;
	return add_set(o, "session.memory=", arg, e);
}

/* Split at the last colon; a name with one in it is written with one more at
 * its end. */
static int add_pair(
	struct options_pair **list, size_t *n, const char *arg, struct err *e)
{
	const char *colon = strrchr(arg, ':');
	size_t len = colon ? (size_t)(colon - arg) : strlen(arg);
	struct options_pair *p;

	if (!len) {
		err_set(e, "expected the name of a file before ':'");
		return usage(e);
	}
	if (array_grow(list, *n, sizeof(**list)) < 0)
		return out_of_memory(e);
	p = &(*list)[*n];
	*p = (struct options_pair){.from = strndup(arg, len)};
	if (!p->from)
		return out_of_memory(e);
	++*n;
	if (colon && colon[1] && !(p->to = strdup(colon + 1)))
		return out_of_memory(e);
	return 0;
}

static int take_upload(
	struct options *o, const struct rule *r, const char *arg, struct err *e)
{
	(void)r;
	return add_pair(&o->uploads, &o->nuploads, arg, e);
}

static int take_download(
	struct options *o, const struct rule *r, const char *arg, struct err *e)
{
	(void)r;
	return add_pair(&o->downloads, &o->ndownloads, arg, e);
}

static int take_python(
	struct options *o, const struct rule *r, const char *arg, struct err *e)
{
	(void)r;
	if (!*arg) {
		err_set(e, "--python wants the path of an interpreter");
		return usage(e);
	}
	o->python = arg;
	return 0;
}

static int take_flag(
	struct options *o, const struct rule *r, const char *arg, struct err *e)
{
	(void)arg;
	(void)e;
	if (r->letter == 'q')
		o->quiet = true;
	else if (r->letter == 'v')
		o->verbose = true;
	else
		o->json = true;
	return 0;
}

static int refuse_login(
	struct options *o, const struct rule *r, const char *arg, struct err *e)
{
	(void)o;
	(void)r;
	(void)arg;
	err_set(e, "--login stands alone: a login takes its options from the "
		   "system's configuration");
	return usage(e);
}

/* clang-format off */
static const struct rule rules[] = {
	{"timeout", 't', "TIME", false, 0, take_timeout,
		"time for each cell or program, such as 10s, 5m"},
	{"memory", 'M', "SIZE", false, 0, take_memory,
		"memory for all of it, such as 512M, 2G"},
	{"upload", 'u', "SRC[:DST]", false, 0, take_upload,
		"copy a file into the jail before the start"},
	{"download", 'd', "PATTERN[:DIR]", false, 0, take_download,
		"copy files out after the end"},
	{"python", 'p', "PATH", false, 0, take_python,
		"another interpreter"},
	{"config", 'f', "FILE", false, 0, take_config,
		"this configuration instead of the usual files"},
	{"set", 's', "SECTION.KEY=VALUE", false, 0, take_set,
		"one key of it; see cellblock.conf(5)"},
	{"quiet", 'q', NULL, false, 0, take_flag, "no banner, nothing about the host"},
	{"verbose", 'v', NULL, false, 0, take_flag, "say more"},
	{"help", 'h', NULL, true, OPTIONS_HELP, take_info, "this text"},
	{"version", 'V', NULL, true, OPTIONS_VERSION, take_info,
		"the version"},
	/* as python3 has them */
	{NULL, 'c', "CODE", true, OPTIONS_CODE, take_mode, NULL},
	{NULL, 'm', "MODULE", true, OPTIONS_MODULE, take_mode, NULL},
	{NULL, 'e', "CELL", false, OPTIONS_CELL, take_mode, NULL},
	{"check", '\0', NULL, false, OPTIONS_CHECK, take_mode, NULL},
	{"json", '\0', NULL, false, 0, take_flag, NULL},
	{"check-config", '\0', NULL, false, OPTIONS_CHECK_CONFIG, take_mode,
		NULL},
	/* sshd's, and never beside another */
	{"login", '\0', NULL, false, 0, refuse_login, NULL},
};
/* clang-format on */

enum { NRULES = sizeof(rules) / sizeof(rules[0]) };

/* Past every letter, so that one number tells the two apart. */
enum { LONG_BASE = 1000 };

const char *options_name(size_t n, char *letter)
{
	if (n >= NRULES)
		return NULL;
	*letter = rules[n].letter;
	return rules[n].name ? rules[n].name : "";
}

/* The table, as getopt wants it: + stops at the first word that is no option,
 * : tells a missing argument from an unknown option. */
static void make_getopt(char *letters, struct option *longs)
{
	*letters++ = '+';
	*letters++ = ':';
	for (int i = 0; i < NRULES; i++) {
		const struct rule *r = &rules[i];

		if (r->name)
			*longs++ = (struct option){
				.name = r->name,
				.has_arg = r->arg ? required_argument
						  : no_argument,
				.val = LONG_BASE + i,
			};
		if (!r->letter)
			continue;
		*letters++ = r->letter;
		if (r->arg)
			*letters++ = ':';
	}
	*letters = '\0';
	*longs = (struct option){0};
}

static const struct rule *rule_of(int c)
{
	if (c >= LONG_BASE)
		return &rules[c - LONG_BASE];
	for (int i = 0; i < NRULES; i++)
		if (c && rules[i].letter == c)
			return &rules[i];
	return NULL;
}

/* An option by what getopt calls it. */
static const char *option_shown(int c, char *buf, size_t size)
{
	if (c >= LONG_BASE)
		snprintf(buf, size, "--%s", rule_of(c)->name);
	else
		snprintf(buf, size, "-%c", c);
	return buf;
}

/* getopt returned '?' or ':'. */
static int bad_option(int c, char *const *argv, struct err *e)
{
	char shown[32];

	if (!optopt)
		err_set(e, "unknown or ambiguous option '%s'",
			argv[optind - 1]);
	else if (c == ':')
		err_set(e, "%s wants an argument",
			option_shown(optopt, shown, sizeof(shown)));
	else if (optopt >= LONG_BASE)
		err_set(e, "%s takes no argument",
			option_shown(optopt, shown, sizeof(shown)));
	else
		err_set(e, "unknown option '-%c'", optopt);
	return usage(e);
}

/* Options up to the program. Leaves optind at the first word after them. */
static int parse_options(
	struct options *o, int argc, char *const *argv, struct err *e)
{
	struct option longs[NRULES + 1];
	char letters[2 * NRULES + 3];
	const struct rule *r;
	int c;

	make_getopt(letters, longs);
	opterr = 0;
	optind = 0; /* glibc: start afresh */
	while ((c = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		if (c == '?' || c == ':')
			return bad_option(c, argv, e);
		r = rule_of(c);
		if (r->take(o, r, optarg, e) < 0)
			return -1;
		if (r->ends)
			break;
	}
	return 0;
}

static int refuse_word(const char *word, const char *after, struct err *e)
{
	err_set(e, "nothing may follow %s, but there is '%s'", after, word);
	return usage(e);
}

/* What the words after the options are, given the mode so far. */
static int parse_words(struct options *o, bool terminal, struct err *e)
{
	const char *first = o->nargs ? o->args[0] : NULL;

	switch (o->mode) {
	case OPTIONS_SESSION:
		if (!first) {
			o->mode = terminal ? OPTIONS_SESSION : OPTIONS_STDIN;
			return 0;
		}
		o->mode = strcmp(first, "-") ? OPTIONS_FILE : OPTIONS_STDIN;
		o->text = o->mode == OPTIONS_FILE ? first : NULL;
		o->args++;
		o->nargs--;
		return 0;
	case OPTIONS_CELL:
		return first ? refuse_word(first, "-e CELL", e) : 0;
	case OPTIONS_CHECK:
		return first ? refuse_word(first, "--check", e) : 0;
	case OPTIONS_CHECK_CONFIG:
		if (!first)
			return 0;
		if (o->nargs > 1)
			return refuse_word(
				o->args[1], "--check-config FILE", e);
		return take_config(o, NULL, first, e);
	case OPTIONS_FILE:
	case OPTIONS_CODE:
	case OPTIONS_MODULE:
	case OPTIONS_STDIN:
	case OPTIONS_HELP:
	case OPTIONS_VERSION:
		return 0;
	}
	return 0;
}

static bool runs_nothing(enum options_mode mode)
{
	return mode == OPTIONS_CHECK || mode == OPTIONS_CHECK_CONFIG;
}

/* Options that would be ignored are refused instead. */
static int check_together(const struct options *o, struct err *e)
{
	if (o->mode == OPTIONS_HELP || o->mode == OPTIONS_VERSION)
		return 0;
	if (o->json && o->mode != OPTIONS_CHECK)
		err_set(e, "--json goes with --check alone");
	else if (o->nuploads && runs_nothing(o->mode))
		err_set(e, "-u does not go with a check");
	else if (o->ndownloads && runs_nothing(o->mode))
		err_set(e, "-d does not go with a check");
	else if (o->quiet && o->verbose)
		err_set(e, "-q and -v contradict each other");
	else
		return 0;
	return usage(e);
}

int options_parse(struct options *o, int argc, char *const *argv, bool terminal,
	struct err *e)
{
	*o = (struct options){.mode = OPTIONS_SESSION};
	if (argc < 1) {
		err_set(e, "started without a name");
		return usage(e);
	}
	if (parse_options(o, argc, argv, e) < 0)
		return -1;
	o->args = argv + optind;
	o->nargs = argc - optind;
	if (parse_words(o, terminal, e) < 0)
		return -1;
	return check_together(o, e);
}

static void pairs_fini(struct options_pair *pairs, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(pairs[i].from);
		free(pairs[i].to);
	}
	free(pairs);
}

void options_fini(struct options *o)
{
	for (size_t i = 0; i < o->nsets; i++)
		free(o->sets[i]);
	free(o->sets);
	pairs_fini(o->uploads, o->nuploads);
	pairs_fini(o->downloads, o->ndownloads);
	*o = (struct options){0};
}

/* The forms that the command has. */
static const char *const forms[][2] = {
	{"cellblock [OPTIONS]", "a Python session in a jail"},
	{"cellblock [OPTIONS] FILE [ARG...]", "a program in a fresh jail"},
	{"cellblock [OPTIONS] -c CODE [ARG...]",
		"a program from the command line"},
	{"cellblock [OPTIONS] -m MODULE [ARG...]", "a module as a program"},
	{"cellblock [OPTIONS] -e CELL", "one cell; a last expression is shown"},
	{"cellblock [OPTIONS] [-] < FILE", "a program from standard input"},
	{"cellblock --check [-v] [--json]", "what this host enforces"},
	{"cellblock --check-config [FILE]",
		"the configuration, and who set what"},
};

void options_print_help(FILE *f)
{
	static const char last[] = "In a session, :help explains its commands. "
				   "See also cellblock(1).";
	struct table t = {.columns = 2, .width = terminal_columns(fileno(f))};
	struct strbuf b = {0};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		table_add(&t, forms[i]);
	table_write(&t, &b);
	strbuf_puts(&b, "\n");
	for (int i = 0; i < NRULES; i++) {
		const struct rule *r = &rules[i];
		char option[80];

		if (!r->help)
			continue;
		snprintf(option, sizeof(option), "  -%c, --%s%s%s", r->letter,
			r->name, r->arg ? " " : "", r->arg ? r->arg : "");
		table_add(&t, (const char *[]){option, r->help});
	}
	t.below = 6;
	table_write(&t, &b);
	strbuf_puts(&b, "\n");
	table_wrap(&b, last, 0, t.width);
	if (!b.failed)
		fputs(b.s, f);
	strbuf_free(&b);
}
