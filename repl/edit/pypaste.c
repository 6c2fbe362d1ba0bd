/* SPDX-License-Identifier: MIT */
/*
 * pypaste.c - the code in pasted Python
 *
 * Runs in:   the front end
 * Holds:     nothing
 * Trusts:    no character of the text; every loop advances
 * Leaves:    in *out only characters of the text
 */
#include "repl/edit/python.h"

#include "repl/text/text.h"

static bool is_blank(wchar_t c)
{
	return c == ' ' || c == '\t';
}

static size_t count_blanks(const wchar_t *s, size_t n)
{
	size_t i = 0;

	while (i < n && is_blank(s[i]))
		i++;
	return i;
}

/* ---- transcripts ---- */

/* The length of `word` and one blank, or of `word` at the line's end. 0: the
 * line begins otherwise. */
static size_t prefix_length(const wchar_t *s, size_t n, const wchar_t *word)
{
	size_t len = wcslen(word);

	if (n < len || wmemcmp(s, word, len) != 0)
		return 0;
	if (n == len || s[len] == '\n')
		return len;
	return s[len] == ' ' ? len + 1 : 0;
}

/* The length of >>> or In [12]: with its blank; 0: no prompt. */
static size_t prompt_length(const wchar_t *s, size_t n)
{
	static const wchar_t in[] = L"In [";
	size_t i = wcslen(in), digits = i, more;

	if (n < i || wmemcmp(s, in, i) != 0)
		return prefix_length(s, n, L">>>");
	while (i < n && s[i] >= '0' && s[i] <= '9')
		i++;
	more = i > digits ? prefix_length(s + i, n - i, L"]:") : 0;
	return more ? i + more : 0;
}

/* The length of the prompt ... (`ipython`: of blanks and ...:); 0: none. */
static size_t continuation_length(const wchar_t *s, size_t n, bool ipython)
{
	size_t i = ipython ? count_blanks(s, n) : 0;
	size_t more = prefix_length(s + i, n - i, ipython ? L"...:" : L"...");

	return more ? i + more : 0;
}

static size_t end_of_line(const wchar_t *s, size_t n, size_t at)
{
	while (at < n && s[at] != '\n')
		at++;
	return at < n ? at + 1 : n;
}

static bool read_transcript(const wchar_t *s, size_t n, struct utf8_wide *out)
{
	size_t indent = count_blanks(s, n), end, skip;
	bool ipython = indent < n && s[indent] == 'I', code = false;

	if (!prompt_length(s + indent, n - indent))
		return false;
	for (size_t at = 0; at < n; at = end) {
		end = end_of_line(s, n, at);
		skip = count_blanks(s + at, end - at);
		at += skip < indent ? skip : indent;
		skip = prompt_length(s + at, end - at);
		if (!skip && code)
			skip = continuation_length(s + at, end - at, ipython);
		code = skip > 0;
		if (code && utf8_wide_add(out, s + at + skip, end - at - skip))
			return false;
	}
	return out->n > 0;
}

/* ---- indentation ---- */

/* True if the line that `t` begins has code. */
static bool begins_line(
	const wchar_t *s, size_t n, const struct pyscan_token *t)
{
	struct pyscan_token next = *t;

	if (next.kind == PYSCAN_SPACE)
		next = pyscan_next(s, n, t->end);
	return next.kind != PYSCAN_NEWLINE && next.kind != PYSCAN_COMMENT &&
	       next.kind != PYSCAN_END;
}

static bool read_indented(const wchar_t *s, size_t n, struct utf8_wide *out)
{
	size_t indent = count_blanks(s, n);
	struct pyscan_token t = {0};
	bool joined = false;
	int depth = 0;

	while ((t = pyscan_next(s, n, t.end)).kind != PYSCAN_END) {
		bool first = !t.start || s[t.start - 1] == '\n';
		size_t own =
			first ? count_blanks(s + t.start, t.end - t.start) : 0;

		if (first && !depth && !joined && begins_line(s, n, &t) &&
			(own < indent || wmemcmp(s + t.start, s, indent) != 0))
			return false;
		own = own < indent ? own : indent;
		if (utf8_wide_add(
			    out, s + t.start + own, t.end - t.start - own))
			return false;
		joined = t.kind == PYSCAN_JOIN;
		depth += t.kind == PYSCAN_OPEN;
		depth -= t.kind == PYSCAN_CLOSE && depth;
	}
	return indent > 0;
}

enum pypaste pypaste_read(const wchar_t *s, size_t n, struct utf8_wide *out)
{
	size_t from = 0, end;

	/* Skip blank lines at the beginning. */
	while (from < n) {
		end = from + count_blanks(s + from, n - from);
		if (end == n || s[end] != '\n')
			break;
		from = end + 1;
	}
	s += from;
	n -= from;
	if (read_transcript(s, n, out))
		return PYPASTE_TRANSCRIPT;
	out->n = 0;
	if (read_indented(s, n, out))
		return PYPASTE_INDENTED;
	out->n = 0;
	return PYPASTE_PLAIN;
}
