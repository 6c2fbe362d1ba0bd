/* SPDX-License-Identifier: MIT */
/*
 * tokens.c - the file of serve.token_file: one token, or tokens with names
 *
 * Runs in:   tokens_read(): front end before it is confined, and the process
 *            of reload.c; the rest also in the confined front end
 * Trusts:    root and our own user, to whom the file belongs
 * Leaves:    tokens that a client can send, each of one name
 */
#include "repl/serve/reload/reload.h"

#include "jail/base/array.h"
#include "jail/base/err.h"
#include "jail/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define BLANKS " \t"

/* ---- the file ---- */

static int check_file(const struct stat *st, const char *path, struct err *e)
{
	if (!S_ISREG(st->st_mode))
		return err_set(e, "%s is not a regular file", path);
	if ((st->st_uid == 0 || st->st_uid == geteuid()) &&
		!(st->st_mode & (S_IWGRP | S_IRWXO)))
		return 0;
	err_set(e, "%s is not a secret", path);
	return err_hint(e, "chown it to root or yourself; chmod 600");
}

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* Read all of the file: half of what an editor writes is no list of tokens. */
static int read_text(
	int fd, const char *path, char **text, size_t *n, struct err *e)
{
	struct stat before, after;

	if (fstat(fd, &before) < 0)
		return err_errno(e, "read %s", path);
	if (check_file(&before, path, e) < 0)
		return -1;
	if (io_read_some(fd, TOKENS_FILE_MAX + 1, text, n) < 0 ||
		fstat(fd, &after) < 0)
		return err_errno(e, "read %s", path);
	if (*n > TOKENS_FILE_MAX)
		return err_set(
			e, "%s is larger than %d bytes", path, TOKENS_FILE_MAX);
	if ((off_t)*n != before.st_size ||
		!is_same_time(&before.st_mtim, &after.st_mtim))
		return err_set(e, "%s changed while we read it", path);
	return 0;
}

int tokens_read(const char *path, char **text, size_t *n, struct err *e)
{
	/* Without O_NONBLOCK a FIFO would keep us waiting. */
	auto_close int fd =
		open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	int r;

	*text = NULL;
	r = fd < 0 ? err_errno(e, "open %s", path)
		   : read_text(fd, path, text, n, e);
	if (r == 0)
		return 0;
	free(*text);
	*text = NULL;
	return err_wrap(e, "serve.token_file");
}

/* ---- its lines ---- */

static int add_token(
	struct tokens *t, const char *name, const char *word, struct err *e)
{
	if (array_grow(&t->v, t->n, sizeof(*t->v)) < 0)
		return err_errno(e, "keep the tokens");
	t->v[t->n++] = (struct token){.name = name, .word = word};
	return 0;
}

/* The token behind the name of a line, which is cut there; or NULL. */
static char *split_line(char *line)
{
	char *colon = strchr(line, ':');

	if (!colon || !colon[1] || !strchr(BLANKS, colon[1]))
		return NULL;
	*colon = '\0';
	return colon + 1 + strspn(colon + 1, BLANKS);
}

/* True if a client can send it in a header. */
static bool is_word(const char *s)
{
	for (; *s > ' ' && *s < 0x7f; s++)
		;
	return !*s;
}

static bool is_name(const char *s)
{
	return *s && strlen(s) <= TOKENS_NAME_MAX &&
	       !s[strspn(s, TOKENS_NAME_LETTERS)];
}

/* No message repeats a token. */
static int check_token(const struct tokens *t, const char *name,
	const char *word, struct err *e)
{
	int same = 0;

	if (!is_name(name))
		return err_set(e,
			"a name has 1 to %d letters, digits, '.', '_' and '-'",
			TOKENS_NAME_MAX);
	if (!*word || strlen(word) > TOKENS_WORD_MAX || !is_word(word))
		return err_set(e,
			"a token has 1 to %d visible characters of ASCII",
			TOKENS_WORD_MAX);
	for (size_t i = 0; i < t->n; i++) {
		if (!strcmp(t->v[i].word, word))
			return err_set(e, "the token of '%s' comes again",
				t->v[i].name);
		same += !strcmp(t->v[i].name, name);
	}
	if (same >= TOKENS_OF_NAME)
		return err_set(e, "'%s' has %d tokens already", name, same);
	if (t->n >= TOKENS_MAX)
		return err_set(e, "there are more than %d tokens", TOKENS_MAX);
	return 0;
}

static int take_line(struct tokens *t, char *line, int number, struct err *e)
{
	char *word;

	if (!*line || *line == '#')
		return 0;
	word = split_line(line);
	if (!word)
		return err_set(e, "line %d: expected NAME: TOKEN", number);
	if (check_token(t, line, word, e) < 0)
		return err_wrap(e, "line %d", number);
	return add_token(t, line, word, e);
}

static void cut_blanks(char *s)
{
	size_t n = strlen(s);

	while (n > 0 && strchr(" \t\r\n", s[n - 1]))
		s[--n] = '\0';
}

static int take_lines(struct tokens *t, struct err *e)
{
	char *line = t->text, *next;

	for (int number = 1; line; number++, line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		cut_blanks(line);
		if (take_line(t, line + strspn(line, BLANKS), number, e) < 0)
			return -1;
	}
	return t->n > 0 ? 0 : err_set(e, "it holds no token");
}

/* True if the text, without blanks at its end, is one token without a name. A
 * comment is none: anybody may know the words of a template. */
static bool is_bare(const char *text)
{
	const char *colon = strchr(text, ':');
	bool comments = *text == '#' && (!text[1] || strchr(BLANKS, text[1]));

	return !comments && !strchr(text, '\n') &&
	       !(colon && colon[1] && strchr(BLANKS, colon[1]));
}

static int take_text(struct tokens *t, size_t n, struct err *e)
{
	if (strlen(t->text) != n)
		return err_set(e, "it holds a NUL byte");
	cut_blanks(t->text);
	if (!*t->text)
		return err_set(e, "it holds no word");
	if (!is_bare(t->text))
		return take_lines(t, e);
	if (strlen(t->text) > TOKENS_WORD_MAX)
		return err_set(
			e, "its word is longer than %d bytes", TOKENS_WORD_MAX);
	return add_token(t, NULL, t->text, e);
}

int tokens_parse(struct tokens *t, char *text, size_t n, struct err *e)
{
	*t = (struct tokens){.text = text};
	if (take_text(t, n, e) == 0)
		return 0;
	tokens_free(t);
	return err_wrap(e, "serve.token_file");
}

void tokens_free(struct tokens *t)
{
	free(t->v);
	free(t->text);
	*t = (struct tokens){0};
}

/* ---- what a client sends ---- */

/* Compare in a time that does not depend on where the two differ. */
static bool is_same_word(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);
	unsigned char differ = n != m;

	for (size_t i = 0; i < n; i++)
		differ |= (unsigned char)(a[i] ^ b[m ? i % m : 0]);
	return m && !differ;
}

const struct token *tokens_find(const struct tokens *t, const char *word)
{
	const struct token *found = NULL;

	/* Compare with all, so that the time does not tell which it is. */
	for (size_t i = 0; i < t->n; i++)
		if (is_same_word(t->v[i].word, word))
			found = &t->v[i];
	return found;
}
