/* SPDX-License-Identifier: MIT */
/*
 * test_lexer.c - command words, and the scanner of Python cells
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "jail/base/err.h"
#include "repl/edit/python.h"
#include "repl/text/text.h"

/* The words of `line`, as "a|b|c". */
static void expect_words(const char *line, const char *want)
{
	struct lexer_words w;
	struct err e = {0};
	char got[512] = "";

	if (lexer_split(line, strlen(line), &w, &e) < 0)
		fail_msg("%s: %s", line, e.msg);
	for (int i = 0; i < w.n; i++) {
		strcat(got, i ? "|" : "");
		strcat(got, w.v[i].s);
	}
	lexer_words_free(&w);
	assert_string_equal(got, want);
}

static void words_are_split_at_blanks(void **state)
{
	(void)state;
	expect_words(":upload  a.csv\tb.csv ", ":upload|a.csv|b.csv");
	expect_words("", "");
	expect_words(" \n ", "");
	expect_words("日本 é", "日本|é");
}

static void quotes_keep_blanks_and_are_removed(void **state)
{
	(void)state;
	expect_words("'a b' \"c d\"", "a b|c d");
	expect_words("a' 'b", "a b");
	expect_words("'a\\b' \"a\\\"b\\\\\" a\\ b", "a\\b|a\"b\\|a b");
	expect_words("\"a\\nb\\tc\\x\"", "a\nb\tc\\x");
	expect_words("'' x \"\"", "|x|");
}

static void an_unclosed_quote_is_refused_but_its_word_is_returned(void **state)
{
	static const struct {
		const char *line;
		char open;
	} cases[] = {{":up 'a b", '\''}, {":up \"a b", '"'}, {":up a\\", '\\'}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct lexer_words w;
		struct err e = {0};

		assert_int_equal(lexer_split(cases[i].line,
					 strlen(cases[i].line), &w, &e),
			-1);
		assert_int_equal(w.open, cases[i].open);
		assert_int_equal(w.n, 2);
		assert_int_equal(w.v[1].start, 4);
		assert_true(e.msg[0]);
		lexer_words_free(&w);
	}
}

static void controls_and_floods_are_refused(void **state)
{
	static const char *const bad[] = {"a\033b", "a\177", "a\rb"};
	struct lexer_words w;
	struct err e;
	char flood[2 * (LEXER_WORDS_MAX + 1)];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(
			lexer_split(bad[i], strlen(bad[i]), &w, &e), -1);
		lexer_words_free(&w);
	}
	assert_int_equal(lexer_split("a\0b", 3, &w, &e), -1);
	lexer_words_free(&w);
	for (size_t i = 0; i < sizeof(flood); i++)
		flood[i] = i % 2 ? ' ' : 'x';
	assert_int_equal(lexer_split(flood, sizeof(flood), &w, &e), -1);
	lexer_words_free(&w);
	assert_int_equal(lexer_split(flood, sizeof(flood) - 2, &w, &e), 0);
	assert_int_equal(w.n, LEXER_WORDS_MAX);
	lexer_words_free(&w);
}

static void quoted_stars_are_not_patterns(void **state)
{
	static const char line[] = "*.py '*.py' \\*.py a[b";
	struct lexer_words w;

	(void)state;
	assert_int_equal(lexer_split(line, strlen(line), &w, NULL), 0);
	assert_true(w.v[0].is_pattern);
	assert_string_equal(w.v[0].pattern, "*.py");
	assert_false(w.v[1].is_pattern);
	assert_string_equal(w.v[1].pattern, "\\*.py");
	assert_string_equal(w.v[1].s, "*.py");
	assert_false(w.v[2].is_pattern);
	assert_true(w.v[3].is_pattern);
	lexer_words_free(&w);
}

static void a_quoted_word_round_trips(void **state)
{
	static const char *const words[] = {"a", "a b", "it's", "\"q\" 'q'",
		"*", "", "back\\slash", "new\nline", ":x", "日本", "a'\t\"\\"};
	static const char opens[] = {0, '\'', '"'};

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		for (size_t j = 0; j < sizeof(opens); j++) {
			char *q = lexer_quote(words[i], opens[j]);
			struct lexer_words w;

			assert_non_null(q);
			assert_int_equal(
				lexer_split(q, strlen(q), &w, NULL), 0);
			assert_int_equal(w.n, 1);
			assert_string_equal(w.v[0].s, words[i]);
			assert_false(w.v[0].is_pattern);
			lexer_words_free(&w);
			free(q);
		}
	assert_null(lexer_quote("\033[2J", 0));
}

static void a_colon_makes_a_command(void **state)
{
	(void)state;
	assert_true(lexer_is_command(":help", 5));
	assert_true(lexer_is_command("  :help", 7));
	assert_false(lexer_is_command("x[:1]", 5));
	assert_false(lexer_is_command("", 0));
}

static const char *state_name(enum pyblock_state s)
{
	switch (s) {
	case PYBLOCK_EMPTY:
		return "empty";
	case PYBLOCK_COMPLETE:
		return "complete";
	case PYBLOCK_BLOCK:
		return "block";
	case PYBLOCK_HEADER:
		return "header";
	case PYBLOCK_INSIDE:
		return "inside";
	}
	return "?";
}

static const struct {
	const wchar_t *cell;
	const char *want;
} cells[] = {
	{L"", "empty"},
	{L"  \n ", "empty"},
	{L"# only a comment", "empty"},
	{L"1 + 1", "complete"},
	{L"x = [1, 2", "inside"},
	{L"x = [1,\n2]", "complete"},
	{L"f(')', \"(\") # (", "complete"},
	{L"'''abc", "inside"},
	{L"'''abc\n\n", "inside"},
	{L"'''a''' + \"\"\"b", "inside"},
	{L"'''a\\'''", "inside"},
	{L"'''a'''", "complete"},
	{L"''", "complete"},
	{L"''''''", "complete"},
	{L"r'\\'", "complete"}, /* unclosed: Python reports the error */
	{L"rb'''x", "inside"},
	{L"f'{x}' f\"\"\"{", "inside"},
	{L"'abc", "complete"}, /* unclosed: Python reports the error */
	{L"'abc\\", "inside"},
	{L"'abc\\\ndef'", "complete"},
	{L"x = 1 + \\", "inside"},
	{L"x = 1 + \\\n2", "complete"},
	{L"x = 1 + \\\n", "complete"},
	{L")", "complete"}, /* Python reports the error */
	{L"(]", "complete"},
	{L"def f():", "header"},
	{L"def f(): # why", "header"},
	{L"def f(\n  a,\n):", "header"},
	{L"def f():\n    return 1", "block"},
	{L"def f():\n    return 1\n", "block"},
	{L"def f():\n    x = [1,\n2]", "block"},
	{L"def f():\n    '''doc\n'''", "block"},
	{L"def f():\n    return 1\nf()", "complete"},
	{L"async def f():", "header"},
	{L"async def f():\n    await g()", "block"},
	{L"class A:", "header"},
	{L"class A: pass", "complete"},
	{L"@property", "header"},
	{L"@a(1)\n@b", "header"},
	{L"@a\ndef f(): return 1", "complete"},
	{L"x @ y", "complete"},
	{L"while True: pass", "complete"},
	{L"import os\nwhile True: os.fork()", "complete"},
	{L"if x: y", "block"},
	{L"if x:\n    y\nelse:", "header"},
	{L"if x:\n    y\nelse: z", "block"},
	{L"try:\n    x\nexcept E: y", "block"},
	{L"match x:\n    case 1: y", "block"},
	{L"d = {1: 2}", "complete"},
	{L"x[1:]", "complete"},
	{L"f = lambda: 0", "complete"},
	{L"x: int = 1", "complete"},
	{L"if x else y", "complete"},
	{L"def f(:", "complete"}, /* as Python reports from here on */
	{L"f(,", "complete"},
	{L"f(1,\n  ,", "complete"},
	{L"{:", "complete"},
	{L"x = (=", "complete"},
	{L"print(a\nreturn 1", "complete"},
	{L"print(a\ndef f():", "complete"},
	{L"[1,\nimport os", "complete"},
	{L"if x = 3:", "complete"},
	{L"while (x) = 3:", "complete"},
	{L"def f:", "complete"},
	/* All of these may become valid. */
	{L"x[:", "inside"},
	{L"f(...", "inside"},
	{L"f(*", "inside"},
	{L"f(x,", "inside"},
	{L"f(lambda: 0,", "inside"},
	{L"f(lambda x, : 0,", "inside"},
	{L"def f(x:", "inside"},
	{L"def f(x: int = 3,\n  *, y=4", "inside"},
	{L"f(x == 1,\n  y = 2", "inside"},
	{L"(yield from x if y else z", "inside"},
	{L"[x async for x in y if not z", "inside"},
	{L"print('def', # return\n", "inside"},
	{L"f(x.imported, definition, trying", "inside"},
	{L"if x: y = 3", "block"},
	{L"def f():\n    while True: n += 1", "block"},
	{L"if x == 3:", "header"},
	{L"if x >= 3 != y:", "header"},
	{L"if (x := 3):", "header"},
	{L"if f(a=1):", "header"},
	{L"if lambda x=1: x:", "header"},
	{L"def f() -> int:", "header"},
	{L"def f[T](x):", "header"},
	{L"area?", "complete"},
	{L"f(area??", "complete"},
	{L"'''area?", "inside"},
	{L"    x = 1", "complete"},
	{L"日本 = '本'", "complete"},
	{L"x = 1;", "complete"},
};

static void complete_cells_are_recognised(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cells) / sizeof(*cells); i++) {
		struct pyblock s =
			pyblock_cell(cells[i].cell, wcslen(cells[i].cell));

		if (strcmp(state_name(s.state), cells[i].want) != 0)
			fail_msg("%ls: wanted %s, got %s", cells[i].cell,
				cells[i].want, state_name(s.state));
	}
}

static void a_blank_last_line_is_seen(void **state)
{
	(void)state;
	assert_true(pyblock_cell(L"x:\n  y\n", 7).last_blank);
	assert_true(pyblock_cell(L"x:\n  y\n   ", 10).last_blank);
	assert_false(pyblock_cell(L"x:\n  y", 6).last_blank);
	assert_false(pyblock_cell(L"", 0).last_blank);
	assert_false(pyblock_cell(L"   ", 3).last_blank);
}

static void a_new_line_is_indented_as_python_requires(void **state)
{
	static const struct {
		const wchar_t *before;
		int want; /* columns, a level being 4 */
	} cases[] = {
		{L"x = 1", 0},
		{L"def f():", 4},
		{L"def f(): # why", 4},
		{L"    if x:", 8},
		{L"    y = 1", 4},
		{L"    return 1", 0},
		{L"    returned = 1", 4},
		{L"        pass", 4},
		{L"return", 0},
		{L"x = '''a:", 0},
		{L"# comment:", 0},
		{L"    # comment", 4},
		{L"x = foo(", 4},
		{L"x = foo(1,", 4},
		{L"    x = foo(1,", 8},
		{L"x = foo(1,\n        2,", 8},
		{L"x = foo([1,\n         2],", 9},
		{L"x = foo(\n    bar(1,", 8},
		{L"x = foo(\n    1,\n    bar(2,\n        3),", 8},
		{L"x = foo(\n    1,", 4},
		{L"x = foo(\n    1)", 0},
		{L"def f(\n        a,\n        b):", 4},
		{L"x = 1 + \\", 4},
		{L"    ", 4},
		{L"d = {1:", 4},
		{L"lambda: 1", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct pyblock_indent in = pyblock_indent(
			cases[i].before, wcslen(cases[i].before));
		int got = (int)in.n + 4 * in.change;

		if ((got < 0 ? 0 : got) != cases[i].want)
			fail_msg("%ls: wanted %d, got %d", cases[i].before,
				cases[i].want, got);
	}
}

static void a_clause_goes_back_to_its_block(void **state)
{
	static const struct {
		const wchar_t *text;
		int want; /* columns; -1: it stays */
	} cases[] = {
		{L"if x:\n    y\n    else:", 0},
		{L"if x:\n    y\n    elif z:", 0},
		{L"if x:\n    y\nelse:", -1},
		{L"if x:\n    y\nelse:\n    z\n    else:", -1},
		{L"else:", -1},
		{L"    if x:\n        y\n        else:", 4},
		{L"for x in y:\n    if x:\n        z\n        else:", 4},
		{L"for x in y:\n    if x:\n        z\n    else:", -1},
		{L"for x in y:\n    z\n    else:", 0},
		{L"for x in y:\n    z\n    elif x:", -1},
		{L"try:\n    x\n    except A as b:", 0},
		{L"try:\n    x\nexcept A:\n    y\n    except B:", 0},
		{L"try:\n    x\nexcept A:\n    y\n    else:", 0},
		{L"try:\n    x\nexcept A:\n    y\nelse:\n    z\n    finally:",
			0},
		{L"try:\n    x\nfinally:\n    y\n    finally:", -1},
		{L"try:\n    if a:\n        b\n    else:\n        c\n"
		 L"        finally:",
			0},
		{L"match x:\n    case 1:", -1},
		{L"match x:\n    case 1:\n        y\n        case 2:", 4},
		{L"if x:\n\ty\n\telse:", 0},
		{L"if x:\n    y\n    elsewhere:", -1},
		{L"if x:\n    y = '''\n    else:", -1},
		{L"if x:\n    y = {\n    else:", -1},
		{L"if x:\n    else = 1", -1},
		{L"f(\n    )", 0},
		{L"    f(\n        a,\n        )", 4},
		{L"f(\n    a)", -1},
		{L"f(\n    ]", -1},
		{L"f(\n)", -1},
		{L"    )", -1},
		{L"x = '''(\n    )", -1},
		{L"", -1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct pyblock_indent in = {0};
		bool moves = pyblock_dedent(
			cases[i].text, wcslen(cases[i].text), &in);
		int got = moves ? (int)in.n : -1;

		if (got != cases[i].want)
			fail_msg("%ls: wanted %d, got %d", cases[i].text,
				cases[i].want, got);
	}
}

static void a_bracket_finds_its_other_half(void **state)
{
	static const wchar_t s[] = L"f([')'], {1: (2)}) ) (]";
	static const int halves[][2] = {{1, 17}, {2, 6}, {9, 16}, {13, 15},
		{4, -1}, {19, -1}, {21, -1}};
	size_t pair[2];

	(void)state;
	for (size_t i = 0; i < sizeof(halves) / sizeof(*halves); i++) {
		bool found =
			pyblock_match(s, wcslen(s), (size_t)halves[i][0], pair);

		assert_int_equal(found, halves[i][1] >= 0);
		if (!found)
			continue;
		assert_int_equal(pair[0], halves[i][0]);
		assert_int_equal(pair[1], halves[i][1]);
		assert_true(pyblock_match(s, wcslen(s), pair[1], pair));
		assert_int_equal(pair[0], halves[i][0]);
	}
}

static void the_call_around_the_cursor_is_found(void **state)
{
	static const struct {
		const wchar_t *text, *want; /* NULL: none */
	} cases[] = {
		{L"f(", L"f"},
		{L"x = a.b.c(1, [2, {3", L"a.b.c"},
		{L"f(g(1), (2, '(", L"f"},
		{L"f(g(1", L"g"},
		{L"f(1)", NULL},
		{L"f()(1", L"f()"},
		{L"f(g()(1", L"g()"},
		{L"x().f(1", L"x().f"},
		{L"y = a[0, (1)].f(1", L"a[0, (1)].f"},
		{L"g(b'a'.f(1", L"b'a'.f"},
		{L"(a + b).f(1", L"(a + b).f"},
		{L"f(a[0", L"f"},
		{L"print (x).f (1", NULL},
		{L"a.1(", NULL},
		{L"def f(", NULL},
		{L"class  A(", NULL},
		{L"define(1", L"define"},
		{L"[f (1", NULL},
		{L"# f(", NULL},
		{L"f(\n  1,\n  ", L"f"},
		{L"(((", NULL},
		{L"", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const wchar_t *text = cases[i].text, *want = cases[i].want;
		size_t from = 0, to = 0;
		bool found = pyblock_call(text, wcslen(text), &from, &to);

		if (found != (want != NULL) ||
			(found &&
				(to - from != wcslen(want) ||
					wmemcmp(text + from, want, to - from))))
			fail_msg("case %zu: %zu to %zu", i, from, to);
	}
}

static void a_completion_closes_its_quote_and_bracket(void **state)
{
	static const struct {
		const wchar_t *text;
		const char *want;
	} cases[] = {
		{L"open('data/a.csv", "'"},
		{L"open('data/", ""},
		{L"open(r\"a.csv", "\""},
		{L"x = '''a.csv", "'''"},
		{L"d['key", "']"},
		{L"a.b[\"key", "\"]"},
		{L"d['a/", "']"},
		{L"d['''key", "''']"},
		{L"d['key'", "]"},
		{L"d[10", "]"},
		{L"x = ['a.csv", "'"},
		{L"d[b'key", "']"},
		{L"d[name", ""},
		{L"name", ""},
		{L"10", ""},
		{L"'f{a.csv", "'"},
		{L"f'{d[\"key", "\"]"},
		{L"rf'{x} a.csv", "'"},
		{L"f'{name", ""},
		{L"# 'comment", ""},
		{L"'", "'"},
		{L"f\"\"\"{f'{d[\"k", "\"]"},
		{L"", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char got[PYSCAN_CLOSER];

		pyscan_closer(cases[i].text, wcslen(cases[i].text), got);
		if (strcmp(got, cases[i].want) != 0)
			fail_msg("%ls: wanted %s, got %s", cases[i].text,
				cases[i].want, got);
	}
}

static void colours_follow_the_tokens(void **state)
{
	static const struct {
		const wchar_t *s;
		const char *want;
	} cases[] = {
		{L"if x1 == 'a#b': return 2.5e-3 # é",
			"kk.......sssss..kkkkkk.nnnnnn.ccc"},
		/* builtins, which attributes are not */
		{L"len(x.len, lens)", "bbb............."},
		{L"print = max", "bbbbb...bbb"},
		/* words that are keywords in their place only */
		{L"match x:", "kkkkk..."},
		{L"match x", "kkkkk.."},
		{L"match = 1", "........n"},
		{L"match(x)", "........"},
		{L"match(x):", "kkkkk...."},
		{L"match[1:2]", "......n.n."},
		{L"match.x", "......."},
		{L"match in x", "......kk.."},
		{L"x = match", "........."},
		{L"case _ if _: _", "kkkk.k.kk....."},
		{L"case (_, a._)", "............."},
		{L"case (_, a._): 1", "kkkk..k........n"},
		{L"match {'a'}:\n case -1: x", "kkkkk..sss....kkkk..n..."},
		{L"_ = case", "........"},
		{L"type X = int", "kkkk.....bbb"},
		{L"type(x)", "bbbb..."},
		{L"(\ntype X", "..bbbb.."},
		/* fields */
		{L"f'a{x}b'", "sss...ss"},
		{L"f'{{x}}'", "ssssssss"},
		{L"f'{x!r:>{w}}'", "ss..ssss....s"},
		{L"f'{len(1):2}' 'a{b}'", "ss.bbb.n.ss.s.ssssss"},
		{L"rF'{x != 1}'", "sss......n.s"},
		{L"f'{d[\"k\"]}'", "ss...sss..s"},
		{L"f'{x", "ss.."},
		{L"'{x}' b'{x}'", "sssss.ssssss"},
	};
	static const char letters[] = ".kscnC?b";
	unsigned char attr[64];

	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
		const wchar_t *s = cases[c].s;
		char got[64] = "";

		pycolour_fill(s, wcslen(s), attr);
		for (size_t i = 0; i < wcslen(s); i++)
			got[i] = letters[attr[i]];
		if (strcmp(got, cases[c].want))
			fail_msg("%ls: %s, wanted %s", s, got, cases[c].want);
	}
	pycolour_fill(L":up if", 6, attr);
	assert_int_equal(attr[0], PYCOLOUR_COMMAND);
	assert_int_equal(attr[4], PYCOLOUR_NONE);
}

static void a_paste_runs_as_what_it_means(void **state)
{
	static const struct {
		const wchar_t *text, *want;
		enum pypaste what;
	} cases[] = {
		{L">>> x = 1\n>>> x + 1\n2\n", L"x = 1\nx + 1\n",
			PYPASTE_TRANSCRIPT},
		{L"\n  >>> if x:\n  ...     y()\n  ...\n  1\n  ... \n  >>> z",
			L"if x:\n    y()\n\nz", PYPASTE_TRANSCRIPT},
		{L">>> s = '''a\n... >>> b'''\n>>> s\n'a\\n>>> b'\n",
			L"s = '''a\n>>> b'''\ns\n", PYPASTE_TRANSCRIPT},
		{L">>> 1\n1\n... not code\n", L"1\n", PYPASTE_TRANSCRIPT},
		{L"In [7]: for i in x:\n   ...:     i\n   ...: \n\n0\n"
		 L"Out[7]: 3\nIn [12]: y",
			L"for i in x:\n    i\n\ny", PYPASTE_TRANSCRIPT},
		{L"In [7]: x\nIn []: y\n   ...: z", L"x\n", PYPASTE_TRANSCRIPT},
		{L"  if x:\n    y\n\n  z\n", L"if x:\n  y\n\nz\n",
			PYPASTE_INDENTED},
		{L"\tx\n# a\n\ty", L"x\n# a\ny", PYPASTE_INDENTED},
		{L"  x = [\n1,\n    2]\n  y = '''\n  a'''\n",
			L"x = [\n1,\n  2]\ny = '''\n  a'''\n",
			PYPASTE_INDENTED},
		/* neither */
		{L"x = '''\n>>> y\n'''\n", L"", PYPASTE_PLAIN},
		{L"x\n>>> y\n", L"", PYPASTE_PLAIN},
		{L">>>x\n>>>y", L"", PYPASTE_PLAIN},
		{L">> x\n", L"", PYPASTE_PLAIN},
		{L"In [x]: y\n", L"", PYPASTE_PLAIN},
		{L"... x\n", L"", PYPASTE_PLAIN},
		{L"    x\n  y\n", L"", PYPASTE_PLAIN},
		{L"\tx\n    y\n", L"", PYPASTE_PLAIN},
		{L"x\n    y\n", L"", PYPASTE_PLAIN},
		{L"", L"", PYPASTE_PLAIN},
		{L" \n\n", L"", PYPASTE_PLAIN},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const wchar_t *text = cases[i].text;
		struct utf8_wide got = {0};
		enum pypaste what = pypaste_read(text, wcslen(text), &got);

		if (what != cases[i].what || got.n != wcslen(cases[i].want) ||
			(got.n && wmemcmp(got.s, cases[i].want, got.n) != 0))
			fail_msg("case %zu: %d, %ls", i, (int)what,
				got.n ? got.s : L"");
		utf8_wide_free(&got);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_split_at_blanks),
		cmocka_unit_test(quotes_keep_blanks_and_are_removed),
		cmocka_unit_test(
			an_unclosed_quote_is_refused_but_its_word_is_returned),
		cmocka_unit_test(controls_and_floods_are_refused),
		cmocka_unit_test(quoted_stars_are_not_patterns),
		cmocka_unit_test(a_quoted_word_round_trips),
		cmocka_unit_test(a_colon_makes_a_command),
		cmocka_unit_test(complete_cells_are_recognised),
		cmocka_unit_test(a_blank_last_line_is_seen),
		cmocka_unit_test(a_new_line_is_indented_as_python_requires),
		cmocka_unit_test(a_clause_goes_back_to_its_block),
		cmocka_unit_test(a_bracket_finds_its_other_half),
		cmocka_unit_test(the_call_around_the_cursor_is_found),
		cmocka_unit_test(a_completion_closes_its_quote_and_bracket),
		cmocka_unit_test(colours_follow_the_tokens),
		cmocka_unit_test(a_paste_runs_as_what_it_means),
	};

	return cmocka_run_group_tests_name("lexer", tests, NULL, NULL);
}
