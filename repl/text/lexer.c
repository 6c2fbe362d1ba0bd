/* SPDX-License-Identifier: MIT */
/*
 * lexer.c - the words of a command line
 *
 * Runs in:   the front end
 * Trusts:    nothing: a client of ssh may have sent the line
 * Leaves:    words; it looks at no file
 */
#include "repl/text/text.h"

#include "jail/base/err.h"

/* A word under construction: itself, and its pattern. */
struct lexer_part {
	struct strbuf s;
	struct strbuf pattern;
	bool is_pattern;
	char quote; /* ' or " while inside one */
};

static void part_add(struct lexer_part *p, char c, bool literal)
{
	bool meta = c && strchr("*?[\\", c);

	strbuf_add(&p->s, &c, 1);
	if (meta && literal)
		strbuf_puts(&p->pattern, "\\");
	else if (meta)
		p->is_pattern = true;
	strbuf_add(&p->pattern, &c, 1);
}

/* The character that \ and `c` mean inside "…"; 0: both stay as they are. */
static char escape_in_quotes(char c)
{
	static const char names[] = "\"\\nt", meant[] = "\"\\\n\t";
	const char *at = c ? strchr(names, c) : NULL;

	return at ? meant[at - names] : 0;
}

/* Take the character, or the escape of two, at s[i]. Returns the bytes
 * taken. */
static size_t part_take(struct lexer_part *p, const char *s, size_t n, size_t i)
{
	char c = s[i], known;

	if (p->quote ? c == p->quote : c == '\'' || c == '"') {
		p->quote = p->quote ? 0 : c;
		return 1;
	}
	if (c == '\\' && i + 1 < n && p->quote != '\'') {
		known = p->quote ? escape_in_quotes(s[i + 1]) : s[i + 1];
		if (known) {
			part_add(p, known, true);
			return 2;
		}
	}
	part_add(p, c, p->quote || c == '\\');
	return 1;
}

static int words_push(struct lexer_words *words, struct lexer_part *p,
	size_t start, size_t end, struct err *e)
{
	strbuf_add(&p->s, "", 0); /* '' is a word too */
	strbuf_add(&p->pattern, "", 0);
	if (array_grow(&words->v, (size_t)words->n, sizeof(*words->v)) < 0 ||
		p->s.failed || p->pattern.failed) {
		strbuf_free(&p->s);
		strbuf_free(&p->pattern);
		return err_set(e, "command: out of memory");
	}
	words->v[words->n++] = (struct lexer_word){.s = p->s.s,
		.pattern = p->pattern.s,
		.is_pattern = p->is_pattern,
		.start = start,
		.end = end};
	return 0;
}

/* Take the word at s[*i], which is not a blank. */
static int words_take(struct lexer_words *words, const char *s, size_t n,
	size_t *i, struct err *e)
{
	struct lexer_part p = {0};
	size_t start = *i;

	while (*i < n && (p.quote || !text_is_blank(s[*i]))) {
		if (s[*i] == '\\' && *i + 1 == n && p.quote != '\'')
			words->open = '\\';
		*i += part_take(&p, s, n, *i);
	}
	if (p.quote)
		words->open = p.quote;
	return words_push(words, &p, start, *i, e);
}

static int lexer_check(const char *s, size_t n, struct err *e)
{
	if (n > LEXER_BYTES_MAX)
		return err_set(
			e, "command: longer than %d bytes", LEXER_BYTES_MAX);
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];

		if ((c < 0x20 && !text_is_blank(s[i])) || c == 0x7F)
			return err_set(e,
				"command: control character \\x%02x at byte "
				"%zu",
				c, i + 1);
	}
	return 0;
}

int lexer_split(
	const char *s, size_t n, struct lexer_words *words, struct err *e)
{
	*words = (struct lexer_words){0};
	if (lexer_check(s, n, e) < 0)
		return -1;
	for (size_t i = 0; i < n;) {
		if (text_is_blank(s[i])) {
			i++;
			continue;
		}
		if (words->n == LEXER_WORDS_MAX)
			return err_set(e, "command: more than %d words",
				LEXER_WORDS_MAX);
		if (words_take(words, s, n, &i, e) < 0)
			return -1;
	}
	if (words->open == '\\')
		return err_set(e, "command: a backslash with nothing after it");
	if (words->open)
		return err_set(
			e, "command: the quote %c is not closed", words->open);
	return 0;
}

void lexer_words_free(struct lexer_words *words)
{
	for (int i = 0; i < words->n; i++) {
		free(words->v[i].s);
		free(words->v[i].pattern);
	}
	free(words->v);
	*words = (struct lexer_words){0};
}

/* The quote that the word needs, or 0. */
static char quote_for(const char *s, char open)
{
	bool plain = *s != 0, single = true;

	for (const char *p = s; *p; p++) {
		if (*p == '\'' || *p == '\n' || *p == '\t')
			single = false;
		if (strchr("'\"\\*?[ \t\n", *p))
			plain = false;
	}
	if (open == '"' || (open == '\'' && single))
		return open;
	if (plain && *s != ':')
		return 0;
	return single ? '\'' : '"';
}

char *lexer_quote(const char *s, char open)
{
	char q = quote_for(s, open);
	struct strbuf b = {0};

	if (q)
		strbuf_add(&b, &q, 1);
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7F) {
			strbuf_free(&b);
			return NULL;
		}
		if (q == '"' && (c == '\n' || c == '\t')) {
			strbuf_puts(&b, c == '\n' ? "\\n" : "\\t");
			continue;
		}
		if (q == '"' && (c == '"' || c == '\\'))
			strbuf_puts(&b, "\\");
		strbuf_add(&b, s, 1);
	}
	if (q)
		strbuf_add(&b, &q, 1);
	strbuf_add(&b, "", 0);
	if (b.failed) {
		strbuf_free(&b);
		return NULL;
	}
	return b.s;
}

bool lexer_is_command(const char *s, size_t n)
{
	size_t i = 0;

	while (i < n && (s[i] == ' ' || s[i] == '\t'))
		i++;
	return i < n && s[i] == ':';
}
