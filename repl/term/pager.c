/* SPDX-License-Identifier: MIT */
/*
 * pager.c - shows a long text, a screenful at a time
 *
 * Runs in:   the front end
 * Holds:     eight bytes for each row found so far
 * Trusts:    its caller to pass a text that is safe for a terminal; a line of
 *            the text, or a run of combining marks, may have any length
 *
 * We find rows only when we need them, so that a long text opens at once.
 */
#include "repl/term/term.h"

#include <wctype.h>

#define NOWHERE ((size_t)-1)

/* Most characters of a search. */
#define SOUGHT_MAX 200

/* Most bytes of a row for each column: combining marks have no width, so the
 * columns alone do not bound a row. */
#define COLUMN_BYTES 16

/* ---- rows of the text ---- */

static size_t page_rows(const struct pager *p)
{
	return p->rows > 1 ? (size_t)p->rows - 1 : 1;
}

/* The end of the row that begins at `at`, without a newline. */
static size_t row_end(const struct pager *p, size_t at)
{
	const char *start = p->text + at, *end = p->text + p->n, *s = start;
	const ptrdiff_t bytes = (ptrdiff_t)p->columns * COLUMN_BYTES;
	struct layout_glyph g;
	int col = 0;

	for (const char *next = s; s < end && *s != '\n'; s = next) {
		uint32_t c;

		utf8_next(&next, end, &c);
		layout_glyph((wchar_t)c, col, p->columns, &g);
		col += g.width;
		if (s > start && (col > p->columns || next - start > bytes))
			break;
	}
	return (size_t)(s - p->text);
}

/* Find one more row. False: the text ends, or memory ran out. */
static bool find_row(struct pager *p)
{
	size_t at = 0;

	if (p->whole)
		return false;
	if (p->nstarts) {
		at = row_end(p, p->starts[p->nstarts - 1]);
		at += at < p->n && p->text[at] == '\n';
	}
	p->whole = at == p->n;
	if (p->whole)
		return false;
	if (array_grow(&p->starts, p->nstarts, sizeof(*p->starts)) < 0) {
		p->whole = true;
		p->note = "no memory for what follows";
		return false;
	}
	p->starts[p->nstarts++] = at;
	return true;
}

static bool has_row(struct pager *p, size_t row)
{
	while (row >= p->nstarts)
		if (!find_row(p))
			return false;
	return true;
}

/* The row with the byte at `at`. */
static size_t row_of(struct pager *p, size_t at)
{
	size_t low = 0, high;

	while (!p->nstarts || p->starts[p->nstarts - 1] <= at)
		if (!find_row(p))
			break;
	high = p->nstarts;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (p->starts[middle] <= at)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Show the page that begins with `row`, or the last page. */
static void go_to(struct pager *p, size_t row)
{
	const size_t page = page_rows(p);

	if (row > NOWHERE - page)
		row = NOWHERE - page;
	if (!has_row(p, row + page - 1))
		row = p->nstarts > page ? p->nstarts - page : 0;
	p->top = row;
}

/* The text's offsets at which the screen begins and ends. */
static size_t screen_start(struct pager *p)
{
	return has_row(p, p->top) ? p->starts[p->top] : p->n;
}

static size_t screen_end(struct pager *p)
{
	const size_t row = p->top + page_rows(p);

	return has_row(p, row) ? p->starts[row] : p->n;
}

/* ---- search ---- */

static wint_t fold_case(const struct pager *p, wint_t c)
{
	return p->exact ? c : towlower(c);
}

/* The end of the match that begins at `at`; 0: none does. */
static size_t match_end(const struct pager *p, size_t at)
{
	const char *s = p->text + at, *end = p->text + p->n;
	size_t i = 0;

	for (; i < p->sought.n && s < end; i++) {
		uint32_t c;

		utf8_next(&s, end, &c);
		if (fold_case(p, c) != fold_case(p, (wint_t)p->sought.s[i]))
			return 0;
	}
	return i && i == p->sought.n ? (size_t)(s - p->text) : 0;
}

/* Where the character behind the one at `at` begins. */
static size_t next_start(const struct pager *p, size_t at)
{
	const char *s = p->text + at;
	uint32_t c;

	utf8_next(&s, p->text + p->n, &c);
	return (size_t)(s - p->text);
}

/* The first match at `at` or behind it; find_up(): the last one before it. */
static size_t find_down(const struct pager *p, size_t at)
{
	for (; at < p->n; at = next_start(p, at))
		if (match_end(p, at))
			return at;
	return NOWHERE;
}

static size_t find_up(const struct pager *p, size_t at)
{
	while (at > 0) {
		at = utf8_start(p->text, at - 1);
		if (match_end(p, at))
			return at;
	}
	return NOWHERE;
}

/* Go to the next match: from the last one, if that is on the screen; else from
 * the top of the screen. */
static void search_again(struct pager *p, bool up)
{
	size_t from = screen_start(p), at;

	if (!p->sought.n) {
		p->note = "nothing was searched for: / and words, then Enter";
		return;
	}
	if (p->found != NOWHERE && p->found >= from && p->found < screen_end(p))
		from = up ? p->found : next_start(p, p->found);
	at = up ? find_up(p, from) : find_down(p, from);
	if (at == NOWHERE) {
		p->note = up ? "not found above" : "not found below";
		return;
	}
	p->found = at;
	go_to(p, row_of(p, at));
	p->drawn = false;
}

/* ---- keys ---- */

static void take_typed(struct pager *p)
{
	if (p->typed.n) {
		utf8_wide_set(&p->sought, p->typed.s, p->typed.n);
		p->exact = false;
		for (size_t i = 0; i < p->sought.n; i++)
			p->exact |= iswupper((wint_t)p->sought.s[i]) != 0;
		p->found = NOWHERE;
		p->drawn = false;
	}
	p->upwards = p->asked == '?';
	p->asked = 0;
	search_again(p, p->upwards);
}

/* Take a key while the person types a search. */
static void edit_typed(struct pager *p, const struct key *key)
{
	switch (key->code) {
	case KEY_TEXT:
	case KEY_PASTE_TEXT:
		if (p->typed.n < SOUGHT_MAX &&
			utf8_is_visible((uint32_t)key->c))
			utf8_wide_add(&p->typed, &key->c, 1);
		break;
	case KEYS_CTRL('H'):
	case 0x7F:
		if (!p->typed.n)
			p->asked = 0;
		else
			p->typed.n--;
		break;
	case KEYS_CTRL('U'):
	case KEYS_CTRL('W'):
		p->typed.n = 0;
		break;
	case '\r':
	case '\n':
		take_typed(p);
		break;
	case KEYS_CTRL('C'):
	case KEYS_CTRL('G'):
	case KEY_ESCAPE:
		p->asked = 0;
		break;
	}
}

enum pager_step { ROW, HALF, PAGE, ALL };

static const struct {
	int key;
	enum pager_step step;
	bool back;
} moves[] = {
	{' ', PAGE, false},
	{'f', PAGE, false},
	{KEYS_CTRL('F'), PAGE, false},
	{KEYS_CTRL('V'), PAGE, false},
	{KEY_PAGE_DOWN, PAGE, false},
	{'d', HALF, false},
	{KEYS_CTRL('D'), HALF, false},
	{'j', ROW, false},
	{'\r', ROW, false},
	{'\n', ROW, false},
	{KEYS_CTRL('N'), ROW, false},
	{KEY_DOWN, ROW, false},
	{'G', ALL, false},
	{'>', ALL, false},
	{KEY_END, ALL, false},
	{KEY_BOTTOM, ALL, false},
	{'b', PAGE, true},
	{KEYS_CTRL('B'), PAGE, true},
	{KEY_PAGE_UP, PAGE, true},
	{'u', HALF, true},
	{KEYS_CTRL('U'), HALF, true},
	{'k', ROW, true},
	{KEYS_CTRL('P'), ROW, true},
	{KEY_UP, ROW, true},
	{'g', ALL, true},
	{'<', ALL, true},
	{KEY_HOME, ALL, true},
	{KEY_TOP, ALL, true},
};

static void move_page(struct pager *p, int key)
{
	const size_t page = page_rows(p);
	const size_t steps[] = {
		[ROW] = 1,
		[HALF] = (page + 1) / 2,
		[PAGE] = page,
		[ALL] = NOWHERE,
	};

	for (size_t i = 0; i < COUNT(moves); i++) {
		const size_t rows = steps[moves[i].step];

		if (moves[i].key != key)
			continue;
		if (moves[i].back)
			go_to(p, p->top > rows ? p->top - rows : 0);
		else
			go_to(p, rows == NOWHERE ? rows : p->top + rows);
	}
}

bool pager_press(struct pager *p, const struct key *key)
{
	int code = key->code;

	p->note = NULL;
	if (p->asked) {
		edit_typed(p, key);
		return true;
	}
	if (code == KEY_TEXT) /* from 0x80 on are the codes of keys */
		code = key->c < 0x80 ? (int)key->c : -1;
	switch (code) {
	case 'q':
	case 'Q':
	case KEYS_CTRL('C'):
	case KEY_ESCAPE:
		return false;
	case '/':
	case '?':
		p->asked = (char)code;
		p->typed.n = 0;
		break;
	case 'n':
	case 'N':
		search_again(p, p->upwards != (code == 'N'));
		break;
	case KEYS_CTRL('L'):
		p->drawn = false;
		break;
	default:
		move_page(p, code);
	}
	return true;
}

/* ---- drawing ---- */

void pager_add_row(struct pager *p, int i, struct strbuf *b)
{
	const size_t row = p->top + (size_t)i;
	const char *const plain = "", *now = plain;
	size_t start, end, first, until = 0, shown = 0;

	if (!has_row(p, row))
		return;
	start = p->starts[row];
	end = row_end(p, start);
	if (!p->sought.n) {
		strbuf_add(b, p->text + start, end - start);
		return;
	}
	/* A match may begin above the row and reach into it. */
	first = start;
	for (size_t k = 1; k < p->sought.n && first; k++)
		first = utf8_start(p->text, first - 1);
	for (size_t at = first, next; at < end; at = next) {
		const char *want = plain;
		size_t match = match_end(p, at);

		next = next_start(p, at);
		until = match > until ? match : until;
		if (at == p->found)
			shown = match;
		if (at < start)
			continue;
		if (at < until)
			want = at < shown ? "\x1b[1;4;7m" : "\x1b[7m";
		if (want != now && now != plain)
			strbuf_puts(b, "\x1b[m");
		if (want != now)
			strbuf_puts(b, want);
		now = want;
		strbuf_add(b, p->text + at, next - at);
	}
	if (now != plain)
		strbuf_puts(b, "\x1b[m");
}

/* Append the end of the search being typed, as much as fits. */
static void add_typed(const struct pager *p, struct strbuf *b)
{
	size_t first = p->typed.n;
	struct layout_glyph g;
	int room = p->columns - 2;

	while (first > 0) {
		layout_glyph(p->typed.s[first - 1], 0, p->columns, &g);
		room -= g.width;
		if (room < 0)
			break;
		first--;
	}
	strbuf_add(b, &p->asked, 1);
	for (; first < p->typed.n; first++) {
		layout_glyph(p->typed.s[first], 0, p->columns, &g);
		strbuf_add(b, g.s, (size_t)g.n);
	}
}

void pager_add_status(struct pager *p, struct strbuf *b)
{
	const size_t end = screen_end(p);
	char line[128], where[16] = "end";

	if (p->asked) {
		add_typed(p, b);
		return;
	}
	if (end < p->n)
		snprintf(where, sizeof(where), "%d%%",
			(int)((double)end * 100 / (double)p->n));
	if (p->note)
		snprintf(line, sizeof(line), "-- %s --", p->note);
	else
		snprintf(line, sizeof(line),
			"-- %s · q leaves · Space, b · / searches --", where);
	/* Some terminals scroll when the last row is full to its end. */
	strbuf_puts(b, "\x1b[7m");
	strbuf_add(b, line, layout_fit(line, strlen(line), p->columns - 1));
	strbuf_puts(b, "\x1b[m");
}

static void add_place(struct strbuf *b, size_t row)
{
	strbuf_printf(b, "\x1b[%zu;1H", row + 1);
}

/* Scroll the rows that stay, and draw the new ones; else draw all rows. */
static void draw_rows(struct pager *p, struct strbuf *b)
{
	const size_t page = page_rows(p);
	const size_t down = p->top - p->drawn_top, up = p->drawn_top - p->top;

	if (p->drawn && p->top > p->drawn_top && down < page) {
		add_place(b, page);
		strbuf_puts(b, "\x1b[K");
		for (size_t i = page - down; i < page; i++) {
			pager_add_row(p, (int)i, b);
			strbuf_puts(b, "\r\n");
		}
	} else if (p->drawn && p->top < p->drawn_top && up < page) {
		for (size_t i = up; i-- > 0;) {
			strbuf_puts(b, "\x1b[H\x1bM");
			pager_add_row(p, (int)i, b);
		}
	} else if (!p->drawn || p->top != p->drawn_top) {
		for (size_t i = 0; i < page; i++) {
			add_place(b, i);
			strbuf_puts(b, "\x1b[K");
			pager_add_row(p, (int)i, b);
		}
	}
}

void pager_draw(struct pager *p, struct strbuf *b)
{
	draw_rows(p, b);
	add_place(b, page_rows(p));
	strbuf_puts(b, "\x1b[K");
	pager_add_status(p, b);
	p->drawn = true;
	p->drawn_top = p->top;
}

/* ---- the whole ---- */

void pager_open(
	struct pager *p, const char *text, size_t n, int rows, int columns)
{
	*p = (struct pager){.text = text,
		.n = n,
		.rows = rows,
		.columns = columns,
		.found = NOWHERE};
}

void pager_close(struct pager *p)
{
	free(p->starts);
	utf8_wide_free(&p->sought);
	utf8_wide_free(&p->typed);
}

bool pager_fits(struct pager *p)
{
	return !has_row(p, page_rows(p));
}

void pager_resize(struct pager *p, int rows, int columns)
{
	const size_t start = screen_start(p);

	p->rows = rows;
	if (columns != p->columns) {
		p->columns = columns;
		free(p->starts);
		p->starts = NULL;
		p->nstarts = 0;
		p->whole = false;
	}
	go_to(p, row_of(p, start));
	p->drawn = false;
}
