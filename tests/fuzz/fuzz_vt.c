/* SPDX-License-Identifier: MIT */
/* fuzz-sources: repl/term/vt/vt.c repl/term/vt/pen.c repl/term/vt/sequence.c */
/*
 * fuzz_vt.c - the terminal gets only allowed sequences from any output
 *
 * The first byte chooses the mode, whether the output is late, the terminal and
 * the split. Then the output is checked:
 *
 *	- a small checker that shares no code with the parser finds only text
 *	  and sequences of the kinds that may pass, and no bar;
 *	- on a small terminal, with a frame line above the cursor, that line and
 *	  the rows above it are not written on, erased or moved but by scrolling
 *	  them away. The terminal may have another width than the filter knows,
 *	  and gets another height before the filter hears of that;
 *	- filtering it again changes nothing and drops nothing;
 *	- what the filter says is in the cursor's row is text and SGR that fit
 *	  into one row and end in the cursor's column;
 *	- the place of the split makes no difference;
 *	- a second undo is empty.
 */
#include "must.h"

#include <locale.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "repl/term/vt/vt.h"
#include "repl/text/text.h"

struct bytes {
	uint8_t *p;
	size_t n, size;
};

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void bytes_add(void *arg, const void *buf, size_t n)
{
	struct bytes *b = arg;

	if (b->n + n > b->size) {
		b->size = 2 * (b->n + n);
		b->p = realloc(b->p, b->size);
		must(b->p != NULL);
	}
	if (n)
		memcpy(b->p + b->n, buf, n);
	b->n += n;
}

static uint64_t dropped(const struct vt *v)
{
	uint64_t n = 0;

	for (int i = 0; i < VT_DROP_KINDS; i++)
		n += v->dropped[i];
	return n;
}

/* The choices of the first byte. */
struct chosen {
	enum vt_mode mode;
	bool late, free;
};

enum { ROWS = 6, COLUMNS = 20 };

static void filter_begin(struct vt *v, struct bytes *out, struct chosen c)
{
	vt_init(v, c.mode, bytes_add, out);
	v->late = c.late;
	v->free = c.free;
	v->rows = ROWS;
	v->columns = COLUMNS;
}

static void filter(struct vt *v, struct bytes *out, struct chosen c,
	const uint8_t *in, size_t n, size_t step)
{
	filter_begin(v, out, c);
	for (size_t i = 0; i < n; i += step)
		vt_feed(v, in + i, n - i < step ? n - i : step);
	vt_finish(v, false);
}

/* The length of an allowed sequence at `p`. */
static size_t check_sequence(const uint8_t *p, size_t n, bool late)
{
	size_t i = 2;

	must(n >= 2 && (!late || p[1] == '['));
	if (strchr("78M=>", p[1]))
		return 2;
	if (p[1] == '(' || p[1] == ')') {
		must(n >= 3 && (p[2] == 'B' || p[2] == '0'));
		return 3;
	}
	must(p[1] == '[');
	while (i < n && ((p[i] >= '0' && p[i] <= ';') || p[i] == '?'))
		i++;
	must(i < n && p[i] != '\0');
	if (p[2] == '?')
		must(p[i] == 'h' || p[i] == 'l');
	else
		must(strchr("mABCDHIZfdJKLM@PXSTbrhl", p[i]) != NULL);
	must(!late || p[i] == 'm');
	return i + 1;
}

static void check_output(const uint8_t *p, size_t n, struct chosen c)
{
	const char *controls = c.late		   ? "\n\t\r\a"
			       : c.mode == VT_SAFE ? "\n\t\r\b\a\x0e\x0f"
						   : "\n\t\r\b";
	size_t i = 0;

	while (i < n) {
		uint32_t cp;
		int len = utf8_get(p + i, n - i, &cp);

		must(len > 0);
		must(cp < 0x7f || cp > 0x9f);
		must(!utf8_is_bar(cp));
		if (cp == 0x1b) {
			must(c.mode == VT_SAFE);
			i += check_sequence(p + i, n - i, c.late);
		} else {
			must(cp >= 0x20 || (cp && strchr(controls, (int)cp)));
			i += (size_t)len;
		}
	}
}

/*
 * A terminal. The rows up to `frame` hold what is not the guest's; less than 0:
 * they were scrolled away so far. Terminals differ where they can: `narrow`
 * shows what is not Latin in no column, `keeps` keeps the next character from
 * wrapping after any sequence, and `single` has no alternate screen. All go up
 * from the left edge, know no REP, have a saved cursor of the alternate
 * screen's own, and save with the cursor whether text wraps. When they get
 * higher, rows come back that were scrolled away, but the saved cursor stays.
 * When they get lower, rows below the cursor go first.
 */
struct terminal {
	int rows, columns;
	int x, y, frame, top, bottom, saved_x, saved_y, main_x, main_y;
	bool narrow, keeps, single, pending, nowrap, alternate;
	bool saved_nowrap, main_nowrap;
};

static void scroll(struct terminal *t)
{
	bool whole = t->top == 0 && t->bottom == t->rows - 1;

	if (t->alternate)
		return;
	must(t->frame < 0 || whole);
	t->frame -= whole;
}

static void line_feed(struct terminal *t)
{
	if (t->y == t->bottom)
		scroll(t);
	else if (t->y < t->rows - 1)
		t->y++;
}

static void resize(struct terminal *t, int rows)
{
	int *y = t->alternate ? &t->main_y : &t->y;
	int by = rows - t->rows;

	if (by < 0)
		by = *y < rows ? 0 : rows - 1 - *y;
	*y += by;
	t->frame += by;
	if (t->y >= rows)
		t->y = rows - 1;
	t->rows = rows;
	t->top = 0;
	t->bottom = rows - 1;
}

/* Rows from `y` on are changed. */
static void change(const struct terminal *t, int y)
{
	must(t->alternate || y > t->frame);
}

static void show(struct terminal *t, uint32_t cp)
{
	int width = cp < 0x300 ? 1 : wcwidth((wchar_t)cp);

	if (width <= 0 || (t->narrow && cp >= 0x300))
		width = 0;
	if (t->pending || t->x + width > t->columns) {
		t->x = t->nowrap ? t->columns - 1 : 0;
		if (!t->nowrap)
			line_feed(t);
	}
	t->pending = false;
	change(t, t->y);
	t->x += width;
	if (t->x >= t->columns) {
		t->x = t->columns - 1;
		t->pending = !t->nowrap;
	}
}

static void place(struct terminal *t, int y, int x)
{
	t->y = y < 0 ? 0 : y >= t->rows ? t->rows - 1 : y;
	t->x = x < 0 ? 0 : x >= t->columns ? t->columns - 1 : x;
}

static void left(struct terminal *t, int n)
{
	if (n > t->x && !t->nowrap)
		place(t, t->y - 1, t->x - n + t->columns);
	else
		place(t, t->y, t->x - n);
}

static void alternate(struct terminal *t, bool on)
{
	must(on != t->alternate);
	if (on) {
		t->main_x = t->x;
		t->main_y = t->y;
		t->main_nowrap = t->nowrap;
	} else {
		place(t, t->main_y, t->main_x);
		t->nowrap = t->main_nowrap;
	}
	t->alternate = on;
}

static void save(struct terminal *t, bool store)
{
	if (!store) {
		place(t, t->saved_y, t->saved_x);
		t->nowrap = t->saved_nowrap;
	} else if (t->alternate) {
		t->saved_x = t->saved_y = 0;
	} else {
		t->saved_x = t->x;
		t->saved_y = t->y;
		t->saved_nowrap = t->nowrap;
	}
}

static void set_mode(struct terminal *t, int n, bool on)
{
	must(n != 47 && n != 1047 && n != 1048);
	if (n == 7)
		t->nowrap = !on;
	else if (n == 1049 && !t->single)
		alternate(t, on);
}

static void obey_esc(struct terminal *t, char c)
{
	if (c == '7' || c == '8') {
		save(t, c == '7');
	} else if (c == 'M') {
		if (t->y == t->top)
			change(t, 0);
		else if (t->y > 0)
			t->y--;
	}
}

static void obey_csi(struct terminal *t, const int *p, int n, char c)
{
	int by = p[0] ? p[0] : 1, to = n > 1 && p[1] ? p[1] : 1;

	if (c == 'A')
		place(t, t->y - by, t->x);
	else if (c == 'B')
		place(t, t->y + by, t->x);
	else if (c == 'C')
		place(t, t->y, t->x + by);
	else if (c == 'D')
		left(t, by);
	else if (strchr("Hf", c))
		place(t, by - 1, to - 1);
	else if (c == 'd')
		place(t, by - 1, t->x);
	else if (c == 'J')
		change(t, p[0] ? 0 : t->y);
	else if (strchr("K@PXLM", c))
		change(t, t->y);
	else if (strchr("ST", c))
		change(t, 0);
	else if (c == 'r') {
		bool whole = n < 2 || by >= to || to > t->rows;

		t->top = whole ? 0 : by - 1;
		t->bottom = whole ? t->rows - 1 : to - 1;
		place(t, 0, 0);
	}
}

static size_t obey(struct terminal *t, const uint8_t *s)
{
	int p[VT_PARAMS + 1] = {0}, n = 1;
	size_t i = 2;

	if (s[1] != '[') {
		t->pending &= t->keeps;
		obey_esc(t, (char)s[1]);
		return s[1] == '(' || s[1] == ')' ? 3 : 2;
	}
	for (; s[i] < 0x40; i++)
		if (s[i] == ';' || s[i] == ':')
			n++;
		else if (s[i] != '?')
			p[n - 1] = p[n - 1] * 10 + (s[i] - '0');
	if (s[i] != 'm')
		t->pending &= t->keeps;
	if (s[2] != '?')
		obey_csi(t, p, n, (char)s[i]);
	for (int k = 0; s[2] == '?' && k < n; k++)
		set_mode(t, p[k], s[i] == 'h');
	return i + 1;
}

/* The heights that a window has one after the other, without a word. */
static const int heights[4][2] = {{ROWS, ROWS}, {9 * ROWS, ROWS - 2},
	{ROWS - 3, 9 * ROWS}, {4 * ROWS, 9 * ROWS}};

/* The frame line stands above, however the terminal behaves. It gets another
 * height after a third and after two thirds of the bytes before `told`. Returns
 * how it is left. */
static struct terminal check_frame(
	const uint8_t *p, size_t n, unsigned kind, size_t told)
{
	static const int widths[4] = {
		COLUMNS, 2 * COLUMNS, COLUMNS / 2, COLUMNS};
	const int *height = heights[kind >> 4 & 3];
	struct terminal t = {.rows = ROWS,
		.columns = widths[kind >> 2 & 3],
		.y = 3,
		.frame = 2,
		.bottom = ROWS - 1,
		.narrow = kind & 1,
		.keeps = kind & 2,
		.single = (kind >> 2 & 3) == 3};
	size_t i = 0;

	while (i < n) {
		uint32_t cp;
		int len = utf8_get(p + i, n - i, &cp);

		if (i >= told / 3)
			resize(&t, height[i >= told / 3 * 2]);
		if (cp == 0x1b) {
			i += obey(&t, p + i);
			continue;
		}
		i += (size_t)len;
		if (cp >= 0x20)
			show(&t, cp);
		else if (cp == '\n')
			line_feed(&t);
		else if (cp == '\t')
			place(&t, t.y, (t.x | 7) + 1);
		else if (cp == '\b')
			left(&t, 1);
		else if (cp == '\r')
			t.x = 0;
		if (cp < 0x20 && !strchr("\a\x0e\x0f", (int)cp))
			t.pending = false;
	}
	return t;
}

/* The same where the filter hears of the last size in the middle. The next
 * frame line begins a row below the first one. */
static void check_resized(
	struct chosen c, const uint8_t *in, size_t n, unsigned kind)
{
	static struct vt v;
	struct bytes out = {NULL, 0, 0};
	struct terminal t;
	size_t told;

	filter_begin(&v, &out, c);
	vt_feed(&v, in, n / 2);
	vt_pen_flush(&v);
	told = out.n;
	vt_resize(&v, heights[kind >> 4 & 3][1], COLUMNS);
	vt_feed(&v, in + n / 2, n - n / 2);
	vt_finish(&v, false);
	vt_begin_row(&v);
	t = check_frame(out.p, out.n, kind, told);
	must(t.x == 0 && t.y > t.frame && !t.alternate && !t.nowrap);
	free(out.p);
}

/* A second parser reads output and undo: no mode may stay on. */
static void check_undo(struct vt *v, struct bytes *out, struct chosen c)
{
	static struct vt again;
	struct bytes none = {NULL, 0, 0};

	if (out->n)
		vt_undo(v);
	c.late = false;
	filter(&again, &none, c, out->p, out->n, out->n + 1);
	none.n = 0;
	vt_undo(&again);
	must(none.n == 0);
	free(none.p);
}

static void check_row(const struct vt *v)
{
	static struct vt again;
	struct chosen c = {.mode = VT_SAFE, .late = true};
	struct bytes out = {NULL, 0, 0};
	size_t n;
	const char *row = vt_pen_row(v, &n);

	if (!row)
		return;
	filter(&again, &out, c, (const uint8_t *)row, n, n + 1);
	must(out.n == n && (!n || !memcmp(out.p, row, n)));
	must(dropped(&again) == 0 && again.pen.below == 0);
	must(again.row_n == n && !again.row_wrapped && !again.pen.style);
	must(again.pen.column == v->pen.column);
	must(!n || !memchr(row, '\a', n));
	free(out.p);
}

static void fuzz_raw(const uint8_t *in, size_t n, size_t step)
{
	static struct vt v;
	struct bytes out = {NULL, 0, 0};

	filter(&v, &out, (struct chosen){.mode = VT_RAW}, in, n, step);
	must(out.n == n || out.n == n + 3);
	must(n == 0 || memcmp(out.p, in, n) == 0);
	must(dropped(&v) == 0);
	vt_undo(&v);
	free(out.p);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	setlocale(LC_CTYPE, "C.UTF-8");
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct vt v, whole, again;
	struct bytes out = {NULL, 0, 0}, one = {NULL, 0, 0}, two = {NULL, 0, 0};
	struct chosen chosen;
	unsigned kind;
	size_t step;

	if (!size)
		return 0;
	chosen =
		(struct chosen){.mode = (data[0] & 3) == 1 ? VT_PLAIN : VT_SAFE,
			.late = (data[0] & 3) == 2};
	kind = data[0] >> 2;
	step = (size_t)(data[0] >> 4) + 1;
	data++;
	size--;
	fuzz_raw(data, size, step);

	filter(&v, &out, chosen, data, size, step);
	check_output(out.p, out.n, chosen);
	check_frame(out.p, out.n, kind, out.n);
	check_resized(chosen, data, size, kind);

	filter(&whole, &one, chosen, data, size, size + 1);
	must(out.n == one.n && (!one.n || !memcmp(out.p, one.p, one.n)));
	must(!memcmp(v.dropped, whole.dropped, sizeof(v.dropped)));

	chosen.free = true;
	filter(&again, &two, chosen, out.p, out.n, out.n + 1);
	must(two.n == out.n && (!out.n || !memcmp(out.p, two.p, out.n)));
	must(dropped(&again) == 0);
	must(again.pen.column == v.pen.column);

	check_row(&v);
	check_undo(&v, &out, chosen);
	free(out.p);
	free(one.p);
	free(two.p);
	return 0;
}
