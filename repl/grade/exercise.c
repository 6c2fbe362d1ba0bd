/* SPDX-License-Identifier: MIT */
/*
 * exercise.c - the plan: what is run, with what, and what must come out
 *
 * Runs in:   front end, before it is confined
 * Trusts:    the person who names the plan
 * Leaves:    the whole plan in memory, with every file that it names; or all
 *            errors, each with its line
 *
 * A plan is a file like the configuration, and may have its sections: limits
 * are set as everywhere. Besides there is [grade], and a [test NAME] for each
 * test. Names of files are relative to the plan.
 *
 * Contents lie in memory that is empty in every process that we fork: a jail's
 * first process has a copy of our memory, and no expected output in it.
 */
#include "repl/grade/grade.h"

#include "jail/base/io.h"
#include "jail/base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* Longest name of a test: inih cuts sections that are longer than this and the
 * word before it. */
#define NAME_MAX_BYTES 40
#define TESTS_MAX 1000
#define POINTS_MAX 1000000
/* Most bytes of a file that a plan names. */
#define FILE_BYTES_MAX (64 << 20)

static const char test_prefix[] = "test ";

/* A plan while it is read. */
struct reading {
	struct exercise *plan;
	int dir; /* of the plan */
	const struct config_line *line;
	int seen[EXERCISE_KEYS]; /* in which line of [grade] */
	struct config_errors *errors;
};

uint64_t exercise_digest(uint64_t digest, const void *p, size_t n)
{
	const unsigned char *s = p;

	for (size_t i = 0; i < n; i++)
		digest = (digest ^ s[i]) * UINT64_C(0x100000001b3);
	/* Where one text ends counts, too. */
	return (digest ^ n) * UINT64_C(0x100000001b3);
}

static void note(struct reading *r, const char *text)
{
	r->plan->digest = exercise_digest(r->plan->digest, text, strlen(text));
}

#define refuse(r, ...)                                                         \
	config_errors_add((r)->errors, (r)->line->place, __VA_ARGS__)

/* ---- values ---- */

static int read_words(struct reading *r, const char *text, struct strlist *to)
{
	struct lexer_words words;
	struct err e = {0};
	int n = lexer_split(text, strlen(text), &words, &e);

	if (n < 0)
		refuse(r, "%s", e.msg);
	for (size_t i = 0; n == 0 && i < (size_t)words.n; i++)
		if (strlist_add(to, words.v[i].s) < 0)
			n = refuse(r, "out of memory");
	lexer_words_free(&words);
	return n;
}

static int read_number(
	struct reading *r, const char *text, int least, int most, int *to)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (end == text || *end || n < least || n > most)
		return refuse(r, "expected a number from %d to %d, not '%s'",
			least, most, text);
	*to = (int)n;
	return 0;
}

/* Make room for a content. 0, or -1. */
static int hold_content(struct exercise_file *f, size_t room)
{
	f->content = mmap(NULL, room, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (f->content == MAP_FAILED) {
		f->content = NULL;
		return -1;
	}
	f->room = room;
	return madvise(f->content, room, MADV_WIPEONFORK);
}

/* Clean the name of a file in the home, in place: relative, without "." and
 * "..". */
static int clean_name(struct reading *r, char **name)
{
	auto_free char *path = NULL;

	if (asprintf(&path, "/%s", *name) < 0) {
		path = NULL;
		return refuse(r, "out of memory");
	}
	if (**name == '/' || path_clean(path, false) < 0 || !path[1])
		return refuse(r,
			"expected the name of a file in the home, "
			"not '%s'",
			*name);
	/* Python would take it for an option, or for its standard input. */
	if (path[1] == '-')
		return refuse(
			r, "expected a name without '-' at its beginning");
	strcpy(*name, path + 1);
	return 0;
}

/* A file of the plan's directory, or beneath it, or anywhere: the person says
 * so. `name` is what it is called in the home. */
static int read_file(struct reading *r, const char *path, const char *name,
	struct exercise_file *to)
{
	auto_close int fd = openat(
		r->dir, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	ssize_t got;

	if (to->name)
		return refuse(r, "there is a text for that already");
	if (fd < 0 || fstat(fd, &st) < 0)
		return refuse(r, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return refuse(r, "%s: expected a regular file", path);
	if (st.st_size > FILE_BYTES_MAX)
		return refuse(r, "%s: expected at most %d MiB", path,
			FILE_BYTES_MAX >> 20);
	to->name = strdup(name);
	to->place = strdup(r->line->place);
	if (!to->name || !to->place ||
		hold_content(to, (size_t)st.st_size + 1) < 0)
		return refuse(r, "out of memory");
	got = io_read_full(fd, to->content, (size_t)st.st_size);
	if (got < 0)
		return refuse(r, "%s: %s", path, strerror(errno));
	to->n = (size_t)got;
	r->plan->digest = exercise_digest(r->plan->digest, to->content, to->n);
	return 0;
}

/* A line of text, as the value has it. */
static int read_text(
	struct reading *r, const char *text, struct exercise_file *to)
{
	size_t n = strlen(text);

	if (to->name)
		return refuse(r, "there is a file for that already");
	to->name = strdup("text");
	to->place = strdup(r->line->place);
	if (!to->name || !to->place || hold_content(to, n + 1) < 0)
		return refuse(r, "out of memory");
	memcpy(to->content, text, n);
	to->content[n] = '\n';
	to->n = n + 1;
	return 0;
}

/* The next of names that commas part, without blanks around it; NULL: none. */
static char *next_name(char **rest)
{
	char *s;
	size_t n;

	do {
		s = strsep(rest, ",");
		if (!s)
			return NULL;
		s += strspn(s, " \t");
		for (n = strlen(s); n && strchr(" \t", s[n - 1]);)
			s[--n] = '\0';
	} while (!*s);
	return s;
}

static int read_names(struct reading *r, const char *text, struct strlist *to)
{
	auto_free char *copy = strdup(text);
	char *rest = copy, *name;

	while ((name = next_name(&rest)) != NULL)
		if (clean_name(r, &name) < 0)
			return -1;
		else if (strlist_add(to, name) < 0)
			return refuse(r, "out of memory");
	return copy ? 0 : refuse(r, "out of memory");
}

/* SRC[:DST], ...: with `reverse` DST:SRC, both of which must be there. */
static int read_pairs(struct reading *r, const char *text,
	struct exercise_files *to, bool reverse)
{
	auto_free char *copy = strdup(text);
	char *rest = copy, *from;

	while ((from = next_name(&rest)) != NULL) {
		char *name = strchr(from, ':'), *slash = strrchr(from, '/');

		if (name)
			*name++ = '\0';
		else if (reverse)
			return refuse(
				r, "expected NAME:EXPECTED, not '%s'", from);
		else
			name = slash ? slash + 1 : from;
		if (!*name || !*from)
			return refuse(
				r, "expected a name on both sides of ':'");
		if (array_grow(&to->v, to->n, sizeof(*to->v)) < 0)
			return refuse(r, "out of memory");
		to->v[to->n++] = (struct exercise_file){0};
		if (clean_name(r, reverse ? &from : &name) < 0 ||
			read_file(r, reverse ? name : from,
				reverse ? from : name, &to->v[to->n - 1]) < 0)
			return -1;
	}
	return copy ? 0 : refuse(r, "out of memory");
}

/* ---- keys ---- */

static int read_compare(
	struct reading *r, const char *text, enum exercise_compare *to)
{
	static const char *const words[] = {[COMPARE_LINES] = "lines",
		[COMPARE_EXACT] = "exact",
		[COMPARE_WORDS] = "words"};

	for (size_t i = 0; i < COUNT(words); i++)
		if (!strcmp(text, words[i])) {
			*to = (enum exercise_compare)i;
			return 0;
		}
	return refuse(r, "expected lines, exact or words, not '%s'", text);
}

/* The values that a key takes, and the type of the member that holds them. */
enum exercise_value {
	VALUE_TEXT,    /* char * */
	VALUE_NAME,    /* char *: a file of the home */
	VALUE_NAMES,   /* struct strlist */
	VALUE_WORDS,   /* struct strlist */
	VALUE_FILE,    /* struct exercise_file: the content of a file */
	VALUE_LINE,    /* struct exercise_file: the value itself */
	VALUE_GIVEN,   /* struct exercise_files */
	VALUE_MADE,    /* struct exercise_files */
	VALUE_COMPARE, /* enum exercise_compare */
	VALUE_STATUS,  /* int */
	VALUE_POINTS,  /* int */
};

#define OF_ALL(member) false, offsetof(struct exercise, member)
#define OF_TEST(member) true, offsetof(struct exercise_test, member)

static const struct exercise_key {
	const char *name;
	bool of_test;
	size_t at; /* in struct exercise, or struct exercise_test */
	enum exercise_value value;
	bool list; /* may stand there again, and adds to it then */
} keys[EXERCISE_KEYS] = {
	{"title", OF_ALL(title), VALUE_TEXT, false},
	{"program", OF_ALL(program), VALUE_NAME, false},
	{"files", OF_ALL(files), VALUE_NAMES, true},
	{"args", OF_TEST(args), VALUE_WORDS, true},
	{"stdin", OF_TEST(input), VALUE_FILE, false},
	{"input", OF_TEST(input), VALUE_LINE, false},
	{"stdout", OF_TEST(output), VALUE_FILE, false},
	{"output", OF_TEST(output), VALUE_LINE, false},
	{"give", OF_TEST(give), VALUE_GIVEN, true},
	{"makes", OF_TEST(makes), VALUE_MADE, true},
	{"compare", OF_TEST(compare), VALUE_COMPARE, false},
	{"exit", OF_TEST(status), VALUE_STATUS, false},
	{"points", OF_TEST(points), VALUE_POINTS, false},
};

static int take_value(struct reading *r, enum exercise_value value, void *to)
{
	const char *text = r->line->value;
	char **s = to;

	switch (value) {
	case VALUE_TEXT:
	case VALUE_NAME:
		*s = strdup(text);
		if (!*s)
			return refuse(r, "out of memory");
		return value == VALUE_NAME ? clean_name(r, s) : 0;
	case VALUE_NAMES:
		return read_names(r, text, to);
	case VALUE_WORDS:
		return read_words(r, text, to);
	case VALUE_FILE:
		return read_file(r, text, text, to);
	case VALUE_LINE:
		return read_text(r, text, to);
	case VALUE_GIVEN:
		return read_pairs(r, text, to, false);
	case VALUE_MADE:
		return read_pairs(r, text, to, true);
	case VALUE_COMPARE:
		return read_compare(r, text, to);
	case VALUE_STATUS:
		return read_number(r, text, 0, 255, to);
	case VALUE_POINTS:
		return read_number(r, text, 0, POINTS_MAX, to);
	}
	return -1;
}

static void take_key(struct reading *r, struct exercise_test *t)
{
	int *seen = t ? t->seen : r->seen;

	for (size_t i = 0; i < EXERCISE_KEYS; i++) {
		const struct exercise_key *k = &keys[i];

		if (k->of_test != !!t || strcmp(k->name, r->line->name) != 0)
			continue;
		if (seen[i] && !k->list)
			refuse(r, "expected only once; line %d has it",
				seen[i]);
		else
			take_value(r, k->value,
				(t ? (char *)t : (char *)r->plan) + k->at);
		seen[i] = r->line->line;
		return;
	}
	refuse(r, "no key %s in [%s]", r->line->name, r->line->section);
}

/* ---- lines ---- */

/* The test of a section, which is added if it is new. */
static struct exercise_test *find_test(struct reading *r, const char *name)
{
	struct exercise *p = r->plan;

	for (size_t i = 0; i < p->ntests; i++)
		if (!strcmp(p->tests[i].name, name))
			return &p->tests[i];
	if (p->ntests == TESTS_MAX) {
		refuse(r, "expected at most %d tests", TESTS_MAX);
		return NULL;
	}
	if (strlen(name) > NAME_MAX_BYTES) {
		refuse(r, "expected a name of at most %d bytes",
			NAME_MAX_BYTES);
		return NULL;
	}
	if (array_grow(&p->tests, p->ntests, sizeof(*p->tests)) < 0) {
		refuse(r, "out of memory");
		return NULL;
	}
	p->tests[p->ntests] =
		(struct exercise_test){.name = strdup(name), .points = 1};
	if (!p->tests[p->ntests].name) {
		refuse(r, "out of memory");
		return NULL;
	}
	return &p->tests[p->ntests++];
}

/* Keep a line of the configuration. */
static void keep_line(struct reading *r)
{
	struct exercise *p = r->plan;
	const struct config_line *l = r->line;

	if (array_grow(&p->lines, p->nlines, sizeof(*p->lines)) < 0) {
		refuse(r, "out of memory");
		return;
	}
	p->lines[p->nlines++] = (struct config_line){strdup(l->place),
		strdup(l->section), strdup(l->name), strdup(l->value), l->line,
		l->commented};
}

static void take_line(void *ctx, const struct config_line *line)
{
	struct reading *r = ctx;
	const size_t n = sizeof(test_prefix) - 1;
	struct exercise_test *t;

	r->line = line;
	note(r, line->section);
	note(r, line->name);
	note(r, line->value);
	if (!strcmp(line->section, "grade")) {
		take_key(r, NULL);
	} else if (!strncmp(line->section, test_prefix, n)) {
		t = find_test(r, line->section + n);
		if (t)
			take_key(r, t);
	} else {
		keep_line(r);
	}
}

static bool knows_section(const char *section)
{
	return !strcmp(section, "grade") ||
	       (!strncmp(section, test_prefix, sizeof(test_prefix) - 1) &&
		       section[sizeof(test_prefix) - 1]) ||
	       config_keys_find(section, NULL);
}

static int check_whole(
	struct exercise *p, const char *path, struct config_errors *errors)
{
	size_t before = errors->list.n;

	if (!p->program)
		config_errors_add(errors, path,
			"expected program = FILE in [grade]: what is run");
	if (!p->ntests)
		config_errors_add(
			errors, path, "expected a [test NAME] with a key");
	for (size_t i = 0; i < p->ntests; i++)
		p->points += p->tests[i].points;
	if (p->program && !strlist_has(&p->files, p->program) &&
		strlist_add(&p->files, p->program) < 0)
		config_errors_add(errors, path, "out of memory");
	return errors->list.n > before ? -1 : 0;
}

int exercise_check(const struct exercise *p, const struct limits *l,
	struct config_errors *errors)
{
	char size[TEXT_HUMAN], most[TEXT_HUMAN];
	int r = 0;

	for (size_t i = 0; i < p->ntests; i++) {
		const struct exercise_file *f = &p->tests[i].output;

		if ((int64_t)f->n > l->output_bytes)
			r = config_errors_add(errors, f->place,
				"expected %s of output, of which cell.output "
				"allows %s",
				text_size(size, f->n),
				text_size(most, (uint64_t)l->output_bytes));
	}
	return r;
}

int exercise_read(
	struct exercise *p, const char *path, struct config_errors *errors)
{
	const char *slash = strrchr(path, '/');
	struct config_file file = {.dirfd = AT_FDCWD,
		.name = path,
		.shown = path,
		.asked = path,
		.trust = CONFIG_TRUST_NAMED,
		.knows = knows_section};
	struct reading r = {.plan = p, .errors = errors};
	auto_free char *dir =
		slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	auto_close int fd =
		dir ? open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

	*p = (struct exercise){.digest = EXERCISE_DIGEST};
	if (fd < 0)
		return config_errors_add(
			errors, path, "open: %s", strerror(errno));
	r.dir = fd;
	config_file_read(&file, take_line, &r, errors);
	if (errors->list.n)
		return -1;
	return check_whole(p, path, errors);
}

static void free_file(struct exercise_file *f)
{
	free(f->name);
	free(f->place);
	if (f->content)
		munmap(f->content, f->room);
}

static void free_files(struct exercise_files *f)
{
	for (size_t i = 0; i < f->n; i++)
		free_file(&f->v[i]);
	free(f->v);
	*f = (struct exercise_files){0};
}

void exercise_fini(struct exercise *p)
{
	for (size_t i = 0; i < p->ntests; i++) {
		struct exercise_test *t = &p->tests[i];

		free(t->name);
		strlist_fini(&t->args);
		free_file(&t->input);
		free_file(&t->output);
		free_files(&t->give);
		free_files(&t->makes);
	}
	for (size_t i = 0; i < p->nlines; i++) {
		free((char *)p->lines[i].place);
		free((char *)p->lines[i].section);
		free((char *)p->lines[i].name);
		free((char *)p->lines[i].value);
	}
	free(p->tests);
	free(p->lines);
	free(p->title);
	free(p->program);
	strlist_fini(&p->files);
	*p = (struct exercise){0};
}
