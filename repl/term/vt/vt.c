/* SPDX-License-Identifier: MIT */
/*
 * vt.c - filters a guest's output: finds where sequences begin and end
 *
 * Runs in:   the front end
 * Trusts:    no byte: a guest wrote them
 * Leaves:    whole characters and whole sequences for the terminal, and a
 *            count of the dropped ones
 *
 * The states are those of the DEC parser (vt100.net/emu/dec_ansi_parser),
 * except the states that only matter to a terminal that obeys sequences.
 * Where terminals differ, as on controls inside a sequence, the filter drops
 * the sequence, so that no terminal interprets it.
 */
#include "vt.h"

#include <ctype.h>

#include "repl/text/text.h"

enum { CAN = 0x18, SUB = 0x1a, ESC = 0x1b, DEL = 0x7f };

/* Every terminal shows a character below this one in one column, except the
 * soft hyphen. */
#define WIDTH_SURE_MAX 0x300
#define SOFT_HYPHEN 0xad

void vt_init(struct vt *v, enum vt_mode mode, vt_emit *emit, void *arg)
{
	/* We do not clear the buffer: that would be most of the work. */
	memset(v, 0, offsetof(struct vt, out));
	v->mode = mode;
	v->emit = emit;
	v->arg = arg;
}

void vt_resize(struct vt *v, int rows, int columns)
{
	v->rows = rows;
	v->columns = columns;
	v->pen.below = v->main_pen.below = v->deepest = 0;
	v->has_saved = false;
	v->guessed = true;
	v->row_lost |= v->row_wrapped;
	if (!v->alone)
		vt_sequence_resize(v);
}

const char *vt_drop_name(enum vt_drop kind)
{
#define NAME(_, name) name,
	static const char *const names[] = {VT_DROPS(NAME)};

	return names[kind];
}

/* ---- text in rows ---- */

/*
 * Returns how many of `n` columns of text fit behind the cursor, at least 1.
 * Rows into which the terminal wraps text do not count, since in a wider window
 * they are one row. So if the guest moves the cursor, we break its long lines
 * by a line feed of ours. If a guest only prints, its lines stay whole.
 */
static size_t fit_columns(struct vt *v, size_t n)
{
	size_t room;

	if (!v->steers || v->guessed || !v->columns || v->pen.column < 0 ||
		!vt_pen_is_bounded(v) || !vt_pen_wraps(v))
		return n;
	if (v->pen.column >= v->columns) {
		vt_pen_return(v);
		vt_pen_feed_line(v);
	}
	room = (size_t)(v->columns - v->pen.column);
	return n < room ? n : room;
}

/* Remember `n` columns of text, or what of them has wrapped into this row. */
static void add_columns(struct vt *v, const char *s, size_t n)
{
	size_t column = v->pen.column > 0 ? (size_t)v->pen.column : 0;
	size_t here = v->row_wrapped && column < n ? column : n;

	vt_pen_add_row(v, s + n - here, here, here);
}

static void put_columns(struct vt *v, const void *s, size_t n)
{
	const char *p = s;

	while (n) {
		size_t some = fit_columns(v, n);

		vt_pen_put(v, p, some);
		vt_pen_advance(v, some);
		add_columns(v, p, some);
		p += some;
		n -= some;
	}
}

/* A character of two columns does not fit in the last one. */
static void put_char(struct vt *v, uint32_t cp, const void *s, size_t n)
{
	int width = wcwidth((wchar_t)cp);

	v->guessed |= cp >= WIDTH_SURE_MAX || cp == SOFT_HYPHEN;
	fit_columns(v, 1);
	vt_pen_put(v, s, n);
	if (width < 0)
		width = 1;
	if (width == 2 && v->columns && v->pen.column == v->columns - 1 &&
		vt_pen_wraps(v)) {
		v->pen.column = 0;
		v->row_lost = true;
	}
	vt_pen_advance(v, (size_t)width);
	vt_pen_add_row(v, s, n, (size_t)width);
}

static void show_byte(struct vt *v, uint8_t c)
{
	static const char hex[] = "0123456789abcdef";

	put_columns(v, (char[4]){'\\', 'x', hex[c >> 4], hex[c & 15]}, 4);
}

static void show_control(struct vt *v, uint8_t c)
{
	put_columns(v, (char[2]){'^', (char)(c ^ 0x40)}, 2);
}

/* ---- text and controls ---- */

/* Show each of the held bytes, which do not become a character. */
static void show_broken(struct vt *v)
{
	if (v->u_n && v->u[0] < 0xa0)
		vt_pen_drop(v, VT_DROP_C1);
	for (int i = 0; i < v->u_n; i++)
		show_byte(v, v->u[i]);
	v->u_n = 0;
}

static void take_character(struct vt *v, uint8_t c)
{
	uint32_t cp;
	int len;

	v->u[v->u_n++] = c;
	len = utf8_get(v->u, v->u_n, &cp);
	if (len == 0)
		return;
	if (len < 0) {
		show_broken(v);
		return;
	}
	v->u_n = 0;
	if (cp < 0xa0) {
		vt_pen_drop(v, VT_DROP_C1);
		show_byte(v, (uint8_t)cp);
	} else if (!v->alone && utf8_is_bar(cp)) {
		put_columns(v, ":", 1);
	} else {
		put_char(v, cp, v->u, (size_t)len);
	}
}

static void put_tab(struct vt *v)
{
	v->guessed = true;
	if (v->pen.column < 0)
		return;
	v->pen.column = (v->pen.column | 7) + 1;
	if (v->columns && v->pen.column >= v->columns)
		v->pen.column = v->columns - 1;
}

static void put_bell(struct vt *v)
{
	if (v->mode == VT_SAFE && v->bells < VT_BELLS) {
		v->bells++;
		vt_pen_put(v, "\a", 1);
	} else {
		vt_pen_drop(v, VT_DROP_BELL);
	}
}

/* SO (0x0e) selects G1, which may be line drawing; SI (0x0f) G0 again. */
static void shift_charset(struct vt *v, uint8_t c)
{
	if (v->mode == VT_PLAIN || v->late) {
		vt_pen_drop(v, VT_DROP_CHARSET);
		return;
	}
	v->pen.so = c == 0x0e;
	v->row_lost = true;
	vt_pen_put(v, (const char *)&c, 1);
}

/* At the left edge, some terminals go up into the row above. */
static void go_back(struct vt *v)
{
	bool known;

	vt_pen_note_edge(v);
	known = !v->row_lost && !v->guessed && v->pen.column > 0;
	if (v->late || (v->mode == VT_PLAIN && v->guessed)) {
		show_control(v, '\b');
		return;
	}
	vt_sequence_left(v, 1);
	v->row_lost = !known;
	if (known)
		vt_pen_leave_row(v);
}

static void take_control(struct vt *v, uint8_t c)
{
	switch (c) {
	case '\n':
		vt_pen_feed_line(v);
		return;
	case '\r':
		vt_pen_return(v);
		return;
	case '\b':
		go_back(v);
		return;
	case '\t':
		put_tab(v);
		vt_pen_put(v, "\t", 1);
		vt_pen_add_row(v, "\t", 1, 0);
		return;
	case '\a':
		put_bell(v);
		return;
	case 0x0e:
	case 0x0f:
		shift_charset(v, c);
		return;
	case 0x00:
		vt_pen_drop(v, VT_DROP_CONTROL);
		return;
	case 0x05:
		vt_pen_drop(v, VT_DROP_QUERY);
		return;
	default:
		show_control(v, c);
	}
}

/* ---- states ---- */

/*
 * A step returns true when it took the byte. Otherwise it changed the state,
 * and step_byte() passes the byte to the step of the new state.
 */

/* Drop the sequence that `c` breaks, and `c` too if it is CAN or SUB. */
static bool abandon_sequence(struct vt *v, enum vt_drop kind, uint8_t c)
{
	vt_pen_drop(v, kind);
	v->state = VT_GROUND;
	return c == CAN || c == SUB;
}

static void begin_esc(struct vt *v)
{
	v->state = VT_ESC;
	v->inter = 0;
	v->malformed = false;
	v->length = 0;
}

static bool step_ground(struct vt *v, uint8_t c)
{
	if (v->u_n && !utf8_continues((char)c))
		show_broken(v);
	if (c == ESC)
		begin_esc(v);
	else if (c < 0x20 || c == DEL)
		take_control(v, c);
	else if (c < 0x80)
		put_columns(v, &c, 1);
	else
		take_character(v, c);
	return true;
}

/* Begin a string, if `c` behind ESC begins one. */
static bool begin_string(struct vt *v, uint8_t c)
{
	static const struct {
		char letter;
		enum vt_drop kind;
	} strings[] = {
		{']', VT_DROP_OSC}, {'P', VT_DROP_DCS}, {'_', VT_DROP_APC},
		{'^', VT_DROP_PM}, {'X', VT_DROP_SOS},
		{'k', VT_DROP_TITLE}, /* screen's */
	};

	for (size_t i = 0; i < COUNT(strings); i++) {
		if (strings[i].letter != c)
			continue;
		v->state = VT_STRING;
		v->string = strings[i].kind;
		v->osc = c == ']' ? 0 : -1;
		return true;
	}
	return false;
}

/* Act on the sequence that `c` ends, or count it as unknown. */
static void end_sequence(struct vt *v, uint8_t c, void (*act)(struct vt *))
{
	v->state = VT_GROUND;
	v->final = (char)c;
	if (v->malformed)
		vt_pen_drop(v, VT_DROP_UNKNOWN);
	else
		act(v);
}

static void param_digit(struct vt *v, uint8_t c)
{
	int16_t *p;
	int n;

	if (!v->n_params)
		v->params[v->n_params++] = -1;
	p = &v->params[v->n_params - 1];
	n = (*p < 0 ? 0 : *p) * 10 + (c - '0');
	/* Larger numbers have made terminals overflow; no screen needs them. */
	*p = (int16_t)(n > 9999 ? 9999 : n);
}

static void param_next(struct vt *v, uint8_t c)
{
	if (!v->n_params)
		v->params[v->n_params++] = -1;
	if (v->n_params == VT_PARAMS) {
		v->malformed = true;
		return;
	}
	if (c == ':')
		v->colons |= UINT32_C(1) << v->n_params;
	v->params[v->n_params++] = -1;
}

/* Take a byte of the parameters, or the final letter. */
static void csi_byte(struct vt *v, uint8_t c)
{
	bool first = v->length == 2; /* right behind the bracket */

	if (c < 0x40) {
		v->malformed |= v->inter != 0;
		if (isdigit(c))
			param_digit(v, c);
		else if (c == ';' || c == ':')
			param_next(v, c);
		else if (first)
			v->prefix = (char)c;
		else
			v->malformed = true;
		return;
	}
	end_sequence(v, c, vt_sequence_csi);
}

static bool step_sequence(struct vt *v, uint8_t c)
{
	if (c == ESC) {
		vt_pen_drop(v, VT_DROP_UNKNOWN);
		begin_esc(v);
		return true;
	}
	if (c < 0x20 || c >= DEL || ++v->length > VT_SEQUENCE_MAX)
		return abandon_sequence(v, VT_DROP_UNKNOWN, c);
	if (c < 0x30) {
		v->malformed |= v->inter != 0;
		v->inter = (char)c;
	} else if (v->state == VT_ESC && !v->inter && c == '[') {
		v->state = VT_CSI;
		v->prefix = 0;
		v->n_params = 0;
		v->colons = 0;
	} else if (v->state == VT_ESC) {
		if (v->inter || !begin_string(v, c))
			end_sequence(v, c, vt_sequence_esc);
	} else {
		csi_byte(v, c);
	}
	return true;
}

/* Set the kind of an OSC from the number that it begins with. */
static void name_osc(struct vt *v, uint8_t end)
{
	static const struct {
		int number;
		enum vt_drop kind;
	} known[] = {
		{0, VT_DROP_TITLE},
		{1, VT_DROP_TITLE},
		{2, VT_DROP_TITLE},
		{8, VT_DROP_HYPERLINK},
		{52, VT_DROP_CLIPBOARD},
	};

	for (size_t i = 0; i < COUNT(known); i++)
		if (known[i].number == v->osc && (end == ';' || end < 0x20))
			v->string = known[i].kind;
	v->osc = -1;
}

static bool step_string(struct vt *v, uint8_t c)
{
	bool osc = v->osc >= 0;
	bool bel = c == '\a' && v->string <= VT_DROP_OSC;
	bool line = (c == '\n' || c == '\r') && v->string != VT_DROP_DCS;

	if (osc && isdigit(c) && v->osc < 9999)
		v->osc = v->osc * 10 + (c - '0');
	else if (osc)
		name_osc(v, c);
	if (c == ESC) {
		v->state = VT_STRING_ESC;
		return true;
	}
	if (bel || line || c == CAN || c == SUB ||
		++v->length > VT_SEQUENCE_MAX)
		return abandon_sequence(v, v->string, c) || bel;
	return true;
}

static bool step_string_esc(struct vt *v, uint8_t c)
{
	vt_pen_drop(v, v->string);
	v->state = VT_GROUND;
	if (c == '\\')
		return true;
	begin_esc(v);
	return false;
}

static void step_byte(struct vt *v, uint8_t c)
{
	static bool (*const steps[])(struct vt *, uint8_t) = {
		[VT_GROUND] = step_ground,
		[VT_ESC] = step_sequence,
		[VT_CSI] = step_sequence,
		[VT_STRING] = step_string,
		[VT_STRING_ESC] = step_string_esc,
	};

	while (!steps[v->state](v, c))
		;
}

void vt_feed(struct vt *v, const void *buf, size_t n)
{
	const uint8_t *p = buf, *end = p + n;

	if (v->mode == VT_RAW)
		vt_pen_put_always(v, buf, n);
	while (p < end) {
		const uint8_t *text = p;

		/* Most output is plain ASCII. */
		if (v->state == VT_GROUND && !v->u_n)
			while (p < end && *p >= 0x20 && *p < DEL)
				p++;
		if (p > text)
			put_columns(v, text, (size_t)(p - text));
		else
			step_byte(v, *p++);
	}
}

void vt_finish(struct vt *v, bool cut)
{
	bool inside = v->state != VT_GROUND;

	if (v->mode == VT_RAW && (inside || v->u_n))
		vt_pen_put_always(v, "\x18\x1b\\", 3);
	if (inside && !cut)
		vt_pen_drop(v, VT_DROP_UNFINISHED);
	if (!cut)
		show_broken(v);
	v->u_n = 0;
	v->state = VT_GROUND;
	vt_pen_flush(v);
}

void vt_undo(struct vt *v)
{
	vt_sequence_undo(v);
	vt_pen_flush(v);
}

bool vt_begin_row(struct vt *v)
{
	bool newline;

	vt_sequence_undo(v);
	newline = v->pen.column != 0 || v->dirty;
	vt_pen_put_always(v, "\r\n", newline ? 2 : v->moved || v->guessed);
	if (v->moved)
		vt_pen_put_always(v, "\x1b[J", 3);
	vt_pen_flush(v);
	v->pen.column = v->pen.below = v->deepest = 0;
	v->guessed = v->dirty = v->moved = v->has_saved = v->free = false;
	v->saved_nowrap = v->steers = v->row_lost = v->row_wrapped = false;
	v->row_n = v->row_behind = 0;
	return newline;
}
