/* SPDX-License-Identifier: MIT */
/*
 * options.c - the command line
 *
 * Runs in:   front end, first thing
 * Trusts:    the person who typed it; a login shell does not call this
 * Leaves:    the mode, and the options apart from the program's words
 *
 * As with python3, options end at FILE, -c CODE or -m MODULE, and every later
 * word belongs to the program.
 */
#include "options.h"

#include "jail/base/err.h"
#include "repl/text/text.h"

#include <getopt.h>

#define GRADE_SHARES_MAX 10000

enum take {
	TAKE_MODE,	/* set the mode; only one option may */
	TAKE_INFO,	/* set the mode, over all other options */
	TAKE_FLAG,	/* set a bool of struct options */
	TAKE_TEXT,	/* set a text of struct options */
	TAKE_CONFIG,	/* name the configuration */
	TAKE_PYTHON,	/* name the interpreter */
	TAKE_SET,	/* add SECTION.KEY=VALUE */
	TAKE_VALUE,	/* add VALUE for the key of the rule */
	TAKE_UPLOAD,	/* add SRC[:DST] */
	TAKE_DOWNLOAD,	/* add PATTERN[:DIR] */
	TAKE_NOT_AT_ALL /* refuse: login.c takes --login when it is alone */
};

/* One option. */
struct option_rule {
	const char *name; /* --name, or NULL */
	char letter;	  /* -x, or '\0' */
	const char *arg;  /* name of its argument in the help, or NULL */
	enum take take;
	enum options_mode mode; /* of TAKE_MODE and TAKE_INFO */
	size_t flag;		/* of TAKE_FLAG, TAKE_TEXT: offset in struct
				 * options */
	const char *key;	/* of TAKE_VALUE, with an = */
	bool ends;		/* every later word is the program's */
	const char *help;	/* NULL: `forms` explains it */
};

#define FLAG(member) .take = TAKE_FLAG, .flag = offsetof(struct options, member)
#define MODE(m) .take = TAKE_MODE, .mode = OPTIONS_##m
#define INFO(m) .take = TAKE_INFO, .mode = OPTIONS_##m, .ends = true

/* clang-format off */
static const struct option_rule rules[] = {
	{"timeout", 't', "TIME", TAKE_VALUE, .key = "-t cell.timeout=",
		.help = "time for each cell or program, such as 10s, 5m"},
	{"memory", 'M', "SIZE", TAKE_VALUE, .key = "-M session.memory=",
		.help = "memory for all of it, such as 512M, 2G"},
	{"upload", 'u', "SRC[:DST]", TAKE_UPLOAD,
		.help = "copy a file into the jail before the start"},
	{"download", 'd', "PATTERN[:DIR]", TAKE_DOWNLOAD,
		.help = "copy files out at the end; --overwrite replaces"},
	{"overwrite", 0, NULL, FLAG(overwrite)},
	{"python", 'p', "PATH", TAKE_PYTHON, .help = "another interpreter"},
	{"config", 'f', "FILE", TAKE_CONFIG,
		.help = "this configuration instead of the usual files"},
	{"set", 's', "SECTION.KEY=VALUE", TAKE_SET,
		.help = "one key of it; see cellblock.conf(5)"},
	{"quiet", 'q', NULL, FLAG(quiet), .help = "no banner, nothing about the host"},
	{"verbose", 'v', NULL, FLAG(verbose), .help = "say more"},
	{"help", 'h', NULL, INFO(HELP), .help = "this text"},
	{"version", 'V', NULL, INFO(VERSION), .help = "the version"},
	/* as in python3 */
	{NULL, 'c', "CODE", MODE(CODE), .ends = true},
	{NULL, 'm', "MODULE", MODE(MODULE), .ends = true},
	{NULL, 'e', "CELL", MODE(CELL)},
	{"eval", '\0', NULL, MODE(EVAL)},
	{"grade", '\0', NULL, MODE(GRADE)},
	{"serve", '\0', NULL, MODE(SERVE)},
	{"maker", '\0', NULL, MODE(MAKER)},
	{"mcp", '\0', NULL, MODE(MCP)},
	{"sessions", '\0', NULL, MODE(SESSIONS)},
	{"attach", '\0', NULL, MODE(ATTACH)},
	{"new", '\0', NULL, FLAG(fresh)},
	{"end", '\0', NULL, MODE(END)},
	{"message", '\0', NULL, MODE(MESSAGE)},
	{"watch", '\0', NULL, MODE(WATCH)},
	{"collect", '\0', NULL, MODE(COLLECT)},
	{"report", '\0', NULL, MODE(REPORT)},
	{"since", '\0', "TIME", .take = TAKE_TEXT,
		.flag = offsetof(struct options, since)},
	{"csv", '\0', NULL, FLAG(csv)},
	{"check", '\0', NULL, MODE(CHECK)},
	{"json", '\0', NULL, FLAG(json)},
	{"check-config", '\0', NULL, MODE(CHECK_CONFIG)},
	{"login", '\0', NULL, .take = TAKE_NOT_AT_ALL},
};
/* clang-format on */

enum { NRULES = COUNT(rules) };

/* A long option's number is LONG_BASE and its index, above every letter. */
enum { LONG_BASE = 1000 };

const char *options_name(size_t n, char *letter)
{
	if (n >= NRULES)
		return NULL;
	*letter = rules[n].letter;
	return rules[n].name ? rules[n].name : "";
}

/* ---- what an option does ---- */

/* Record an error of usage. Returns -1. */
#define usage(e, ...)                                                          \
	(err_set(e, __VA_ARGS__), err_hint(e, "try 'cellblock -h'"),           \
		err_kind_set(e, ERR_USAGE))

static int out_of_memory(struct err *e)
{
	return err_errno(e, "read the command line");
}

static int set_config(struct options *o, const char *file, struct err *e)
{
	if (o->config_file)
		return usage(e, "only one configuration file can be named");
	o->config_file = file;
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

/* Split at the last colon. The person writes a name that has a colon with one
 * more at its end. */
static int add_pair(
	struct options_pair **list, size_t *n, const char *arg, struct err *e)
{
	const char *colon = strrchr(arg, ':');
	size_t len = colon ? (size_t)(colon - arg) : strlen(arg);
	struct options_pair *p;

	if (!len)
		return usage(e, "expected the name of a file before ':'");
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

static int take_option(struct options *o, const struct option_rule *r,
	const char *arg, struct err *e)
{
	switch (r->take) {
	case TAKE_MODE:
		if (o->mode != OPTIONS_SESSION)
			return usage(e,
				"only one of -c, -m, -e, --eval, "
				"--grade, --serve, --maker, --mcp, --sessions, "
				"--attach, --end, --message, --watch, "
				"--collect, --report, --check and "
				"--check-config makes sense");
		o->text = arg;
		o->mode = r->mode;
		return 0;
	case TAKE_INFO:
		o->mode = r->mode;
		return 0;
	case TAKE_FLAG:
		*(bool *)((char *)o + r->flag) = true;
		return 0;
	case TAKE_TEXT:
		*(const char **)((char *)o + r->flag) = arg;
		return 0;
	case TAKE_CONFIG:
		return set_config(o, arg, e);
	case TAKE_PYTHON:
		if (!*arg)
			return usage(e, "--python wants the path of an "
					"interpreter");
		o->python = arg;
		return 0;
	case TAKE_SET:
		if (!strchr(arg, '.') || !strchr(arg, '='))
			return usage(e,
				"--set wants SECTION.KEY=VALUE, not "
				"'%s'",
				arg);
		return add_set(o, "", arg, e);
	case TAKE_VALUE:
		return add_set(o, r->key, arg, e);
	case TAKE_UPLOAD:
		return add_pair(&o->uploads, &o->nuploads, arg, e);
	case TAKE_DOWNLOAD:
		return add_pair(&o->downloads, &o->ndownloads, arg, e);
	case TAKE_NOT_AT_ALL:
		break;
	}
	return usage(e,
		"--login stands alone: a login takes its options from the "
		"system's configuration");
}

/* ---- the options, then the words ---- */

/* Write the table as getopt wants it. With + getopt stops at the first word
 * that is no option; with : it tells a missing argument from an unknown option.
 */
static void make_getopt(char *letters, struct option *longs)
{
	*letters++ = '+';
	*letters++ = ':';
	for (int i = 0; i < NRULES; i++) {
		const struct option_rule *r = &rules[i];

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

static const struct option_rule *find_rule(int c)
{
	if (c >= LONG_BASE)
		return &rules[c - LONG_BASE];
	for (int i = 0; i < NRULES; i++)
		if (c && rules[i].letter == c)
			return &rules[i];
	return NULL;
}

/* Refuse the option for which getopt returned `c`, '?' or ':'. */
static int refuse_option(int c, char *const *argv, struct err *e)
{
	char shown[32];

	if (!optopt)
		return usage(e, "unknown or ambiguous option '%s'",
			argv[optind - 1]);
	if (optopt >= LONG_BASE)
		snprintf(shown, sizeof(shown), "--%s", find_rule(optopt)->name);
	else
		snprintf(shown, sizeof(shown), "-%c", optopt);
	if (c == ':')
		return usage(e, "%s wants an argument", shown);
	if (optopt >= LONG_BASE)
		return usage(e, "%s takes no argument", shown);
	return usage(e, "unknown option '%s'", shown);
}

/* Take the options. Leaves optind at the first word after them. */
static int parse_options(
	struct options *o, int argc, char *const *argv, struct err *e)
{
	struct option longs[NRULES + 1];
	char letters[2 * NRULES + 3];
	const struct option_rule *r;
	int c;

	make_getopt(letters, longs);
	opterr = 0;
	optind = 0; /* glibc: start afresh */
	while ((c = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		if (c == '?' || c == ':')
			return refuse_option(c, argv, e);
		r = find_rule(c);
		if (take_option(o, r, optarg, e) < 0)
			return -1;
		if (r->ends)
			break;
	}
	return 0;
}

/* Take a pair of words from the end, if the first of them is `name`. */
static bool take_last_pair(struct options *o, const char *name, const char **to)
{
	if (o->nargs <= 2 || strcmp(o->args[o->nargs - 2], name) != 0)
		return false;
	*to = o->args[o->nargs - 1];
	o->nargs -= 2;
	return true;
}

/* Take the words ID, ID TEXT, or ID... [-m TEXT] [--save DIR]. */
static int take_session_words(struct options *o, struct err *e)
{
	bool end = o->mode == OPTIONS_END, message = o->mode == OPTIONS_MESSAGE;

	if ((end || o->mode == OPTIONS_WATCH) && o->nargs == 0)
		return usage(e, "%s wants the ID of a session",
			end ? "--end" : "--watch");
	if (message && o->nargs != 2)
		return usage(e, "--message wants ID and TEXT");
	while (end && (take_last_pair(o, "-m", &o->message) ||
			      take_last_pair(o, "--save", &o->save)))
		;
	for (int i = 0; end && i < o->nargs; i++)
		if (*o->args[i] == '-')
			return usage(e, "--end wants ID... or all, [-m TEXT] "
					"[--save DIR]");
	if (message)
		o->message = o->args[1];
	o->session = o->nargs ? o->args[0] : NULL;
	return 0;
}

static int take_count(const char *text, int most, int *to)
{
	char *end;
	long n = strtol(text, &end, 10);

	*to = (int)n;
	return end > text && !*end && n >= 1 && n <= most ? 0 : -1;
}

/* Take K/N. */
static int take_share(const char *text, struct options_grade *g)
{
	char *end;
	long n = strtol(text, &end, 10);

	g->share = (int)n;
	return end > text && *end == '/' && n >= 0 && n <= GRADE_SHARES_MAX
		       ? take_count(end + 1, GRADE_SHARES_MAX, &g->shares)
		       : -1;
}

/* Take the words PLAN DIR, and the options of a run around them. */
static int take_grade_words(struct options *o, struct err *e)
{
	struct options_grade *g = &o->grade;

	for (int i = 0; i < o->nargs; i++) {
		const char *word = o->args[i], *value = o->args[i + 1];
		bool option = word[0] == '-' && word[1];

		if (!strcmp(word, "--json")) {
			o->json = true;
			continue;
		}
		if (option && !value)
			return usage(e, "%s wants a value", word);
		if (!strcmp(word, "-j") && take_count(value, 64, &g->jobs) < 0)
			return usage(e, "-j wants a number from 1 to 64");
		if (!strcmp(word, "--share") && take_share(value, g) < 0)
			return usage(e, "--share wants K/N, such as 0/4");
		if (!strcmp(word, "-o"))
			g->results = value;
		else if (!strcmp(word, "--junit"))
			g->junit = value;
		else if (option && strcmp(word, "-j") != 0 &&
			 strcmp(word, "--share") != 0)
			return usage(e, "--grade has no option %s", word);
		else if (!option && g->submissions)
			return usage(e, "--grade wants PLAN and DIR, and no %s",
				word);
		else if (!option)
			*(g->plan ? &g->submissions : &g->plan) = word;
		i += option;
	}
	return g->submissions ? 0
			      : usage(e, "--grade wants PLAN and DIR, and may "
					 "have -j N, -o RESULTS, --junit FILE, "
					 "--share K/N");
}

/* Take the words WHAT [-a] [-o ARCHIVE]. */
static int take_collect_words(struct options *o, struct err *e)
{
	bool wrong = false;

	o->text = NULL;
	for (int i = 0; i < o->nargs; i++) {
		const char *word = o->args[i];

		if (!strcmp(word, "-a"))
			o->all = true;
		else if (!strcmp(word, "--json"))
			o->json = true;
		else if (!strcmp(word, "-o") && i + 1 < o->nargs)
			o->archive = o->args[++i];
		else if (*word == '-' || o->text)
			wrong = true;
		else
			o->text = word;
	}
	if (!wrong && o->text)
		return 0;
	return usage(e, "--collect wants COURSE/EXERCISE, or a directory, "
			"[-a] [-o ARCHIVE]");
}

/* Take the words after the options. */
static int parse_words(struct options *o, bool terminal, struct err *e)
{
	static const struct {
		const char *after; /* NULL: any number may come */
		int most;
	} words[OPTIONS_VERSION + 1] = {
		[OPTIONS_CELL] = {"-e CELL", 0},
		[OPTIONS_EVAL] = {"--eval", 0},
		[OPTIONS_SERVE] = {"--serve ADDRESS", 1},
		[OPTIONS_MAKER] = {"--maker PATH", 1},
		[OPTIONS_MCP] = {"--mcp", 0},
		[OPTIONS_SESSIONS] = {"--sessions", 0},
		[OPTIONS_ATTACH] = {"--attach ID", 1},
		[OPTIONS_MESSAGE] = {"--message ID TEXT", 2},
		[OPTIONS_WATCH] = {"--watch ID", 1},
		[OPTIONS_REPORT] = {"--report", 0},
		[OPTIONS_CHECK] = {"--check", 0},
		[OPTIONS_CHECK_CONFIG] = {"--check-config FILE", 1},
	};
	const char *first = o->nargs ? o->args[0] : NULL;
	const char *after = words[o->mode].after;
	int most = words[o->mode].most;

	if (after && o->nargs > most)
		return usage(e, "nothing may follow %s, but there is '%s'",
			after, o->args[most]);
	if (first && o->mode == OPTIONS_CHECK_CONFIG)
		return set_config(o, first, e);
	if (first && (o->mode == OPTIONS_SERVE || o->mode == OPTIONS_MAKER))
		o->text = first;
	if (o->mode == OPTIONS_ATTACH || o->mode == OPTIONS_END ||
		o->mode == OPTIONS_MESSAGE || o->mode == OPTIONS_WATCH)
		return take_session_words(o, e);
	if (o->mode == OPTIONS_GRADE)
		return take_grade_words(o, e);
	if (o->mode == OPTIONS_COLLECT)
		return take_collect_words(o, e);
	if (o->mode != OPTIONS_SESSION)
		return 0;
	if (!first) {
		o->mode = terminal ? OPTIONS_SESSION : OPTIONS_STDIN;
		return 0;
	}
	o->mode = strcmp(first, "-") ? OPTIONS_FILE : OPTIONS_STDIN;
	o->text = o->mode == OPTIONS_FILE ? first : NULL;
	o->args++;
	o->nargs--;
	return 0;
}

/* Refuse options that would have no effect. */
static int check_together(const struct options *o, struct err *e)
{
	static const char *const no_files[OPTIONS_VERSION + 1] = {
		[OPTIONS_EVAL] = "--eval",
		[OPTIONS_GRADE] = "--grade",
		[OPTIONS_MCP] = "--mcp",
		[OPTIONS_SERVE] = "--serve",
		[OPTIONS_MAKER] = "--maker",
		[OPTIONS_COLLECT] = "--collect",
		[OPTIONS_REPORT] = "--report",
		[OPTIONS_CHECK] = "a check",
		[OPTIONS_CHECK_CONFIG] = "a check",
	};

	if (o->mode == OPTIONS_HELP || o->mode == OPTIONS_VERSION)
		return 0;
	if (o->json && o->mode != OPTIONS_CHECK &&
		o->mode != OPTIONS_SESSIONS && o->mode != OPTIONS_GRADE &&
		o->mode != OPTIONS_COLLECT && o->mode != OPTIONS_REPORT)
		return usage(e, "--json goes with --check, --sessions, "
				"--report, --collect and --grade alone");
	if ((o->csv || o->since) && o->mode != OPTIONS_REPORT)
		return usage(e, "--%s goes with --report alone",
			o->csv ? "csv" : "since");
	if (o->csv && o->json)
		return usage(e, "--csv and --json contradict each other");
	if (o->fresh && o->mode != OPTIONS_SESSION)
		return usage(e, "--new goes with a session alone");
	if (no_files[o->mode] && (o->nuploads || o->ndownloads))
		return usage(e, "-%c does not go with %s",
			o->nuploads ? 'u' : 'd', no_files[o->mode]);
	if (o->quiet && o->verbose)
		return usage(e, "-q and -v contradict each other");
	return 0;
}

int options_parse(struct options *o, int argc, char *const *argv, bool terminal,
	struct err *e)
{
	*o = (struct options){.mode = OPTIONS_SESSION};
	if (argc < 1)
		return usage(e, "started without a name");
	if (parse_options(o, argc, argv, e) < 0)
		return -1;
	o->args = argv + optind;
	o->nargs = argc - optind;
	if (parse_words(o, terminal, e) < 0)
		return -1;
	return check_together(o, e);
}

static void free_pairs(struct options_pair *pairs, size_t n)
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
	free_pairs(o->uploads, o->nuploads);
	free_pairs(o->downloads, o->ndownloads);
	*o = (struct options){0};
}

/* ---- the help ---- */

/* The forms of the command. */
static const char *const forms[][2] = {
	{"cellblock [OPTIONS]", "a Python session in a jail"},
	{"cellblock [OPTIONS] FILE [ARG...]", "a program in a fresh jail"},
	{"cellblock [OPTIONS] -c CODE | -m MODULE",
		"a program or module, with its ARG..."},
	{"cellblock [OPTIONS] -e CELL", "one cell; a last expression is shown"},
	{"cellblock [OPTIONS] [-] < FILE", "a program from standard input"},
	{"cellblock --eval|--serve|--mcp|--maker",
		"requests of programs, agents, people"},
	{"cellblock --grade PLAN DIR [-j N]",
		"homework; with -o, --junit, --share"},
	{"cellblock --sessions|--attach|--watch",
		"sessions; --new, --end, --message"},
	{"cellblock --check|--collect [--json]",
		"what is enforced; what was handed in"},
	{"cellblock --report|--check-config",
		"who had sessions, --csv, --since; keys"},
};

void options_print_help(FILE *f, int width)
{
	static const char last[] = "In a session, :help explains its commands. "
				   "See also cellblock(1).";
	struct text_table t = {.columns = 2, .width = width};
	struct strbuf b = {0};

	for (size_t i = 0; i < COUNT(forms); i++)
		text_table_add(&t, forms[i]);
	text_table_write(&t, &b);
	strbuf_puts(&b, "\n");
	for (int i = 0; i < NRULES; i++) {
		const struct option_rule *r = &rules[i];
		char option[80];

		if (!r->help)
			continue;
		snprintf(option, sizeof(option), "  -%c, --%s%s%s", r->letter,
			r->name, r->arg ? " " : "", r->arg ? r->arg : "");
		text_table_add(&t, (const char *[]){option, r->help});
	}
	t.below = 6;
	text_table_write(&t, &b);
	text_wrap(&b, last, 0, width);
	if (!b.failed)
		fputs(b.s, f);
	strbuf_free(&b);
}
