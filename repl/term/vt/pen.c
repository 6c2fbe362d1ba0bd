/* SPDX-License-Identifier: MIT */
/*
 * pen.c - writes to the terminal, and tracks the cursor
 *
 * Runs in:   the front end
 * Trusts:    nothing in the text: a guest wrote it
 */
#include "vt.h"

#include <string.h>

/* We count columns up to this: a line may have any length. */
#define COLUMN_MAX (1 << 30)
#define ROW_MAX (1 << 30)

/* ---- the screen ---- */

bool vt_pen_wraps(const struct vt *v)
{
	return !(v->modes & UINT32_C(1) << VT_MODE_WRAP);
}

/* In raw mode a guest may use any of the three modes. */
bool vt_pen_is_alternate(const struct vt *v)
{
	return v->modes & VT_ALTERNATE;
}

bool vt_pen_is_bounded(const struct vt *v)
{
	return !v->free && !vt_pen_is_alternate(v);
}

/* ---- output ---- */

void vt_pen_flush(struct vt *v)
{
	if (v->out_n)
		v->emit(v->arg, v->out, v->out_n);
	v->out_n = 0;
}

void vt_pen_put_always(struct vt *v, const char *s, size_t n)
{
	if (n > sizeof(v->out) - v->out_n)
		vt_pen_flush(v);
	if (n > sizeof(v->out)) {
		v->emit(v->arg, s, n);
		return;
	}
	memcpy(v->out + v->out_n, s, n);
	v->out_n += n;
}

void vt_pen_put(struct vt *v, const char *s, size_t n)
{
	v->put = true;
	if (v->mode != VT_RAW)
		vt_pen_put_always(v, s, n);
}

void vt_pen_drop(struct vt *v, enum vt_drop kind)
{
	if (v->mode != VT_RAW)
		v->dropped[kind]++;
	else if (kind == VT_DROP_MODE)
		v->exotic = true;
}

/* ---- the cursor's row ---- */

static void begin_row(struct vt *v, bool wrapped)
{
	v->row_n = v->row_behind = 0;
	v->row_wrapped = wrapped;
	v->row_lost = v->pen.style || v->moved || (wrapped && v->guessed);
}

void vt_pen_add_row(struct vt *v, const char *s, size_t n, size_t columns)
{
	if (v->row_lost || n > sizeof(v->row) - v->row_n) {
		v->row_lost = true;
		return;
	}
	memcpy(v->row + v->row_n, s, n);
	v->row_n += n;
	v->row_behind -= columns < v->row_behind ? columns : v->row_behind;
}

/* The bytes of the row's last column: text that every terminal shows in one
 * column, and no part of a sequence. 0: the row does not end with such. */
static size_t last_column(const struct vt *v)
{
	const char *esc = memrchr(v->row, '\x1b', v->row_n);
	const char *end = v->row + v->row_n, *m = NULL;

	if (esc)
		m = memchr(esc, 'm', (size_t)(end - esc));
	if (v->row_n > 0 && end[-1] >= ' ' && end[-1] <= '~' && m != end - 1)
		return 1;
	/* U+00C0 to U+02FF */
	return v->row_n > 1 && (end[-1] & 0xc0) == 0x80 &&
			       (uint8_t)end[-2] >= 0xc3 &&
			       (uint8_t)end[-2] <= 0xcb
		       ? 2
		       : 0;
}

/* A tty erases a key as \b, a blank and \b. */
void vt_pen_leave_row(struct vt *v)
{
	size_t n = last_column(v);

	if (!n) {
		v->row_lost = true;
		return;
	}
	v->row_n -= n;
	if (v->row[v->row_n] != ' ' || v->row_behind)
		v->row_behind++;
}

const char *vt_pen_row(const struct vt *v, size_t *n)
{
	const struct vt_pen *pen = &v->pen;
	bool changed = v->modes || v->insert || v->keypad || v->region ||
		       v->exotic || v->wrap_unsure || pen->style || pen->g0 ||
		       pen->g1 || pen->so;
	bool inside = v->state != VT_GROUND || v->u_n;

	*n = v->row_n;
	if (v->mode == VT_RAW || v->late || v->row_lost || v->row_behind ||
		v->moved || changed || inside || pen->column < 0 ||
		(v->columns && pen->column >= v->columns))
		return NULL;
	return v->row;
}

/* ---- the cursor ---- */

void vt_pen_note_edge(struct vt *v)
{
	v->guessed |= v->columns && v->pen.column >= v->columns;
}

void vt_pen_feed_line(struct vt *v)
{
	vt_pen_note_edge(v);
	v->dirty = false;
	if (!vt_pen_is_alternate(v)) {
		v->pen.below += v->pen.below < ROW_MAX;
		if (v->pen.below > v->deepest)
			v->deepest = v->pen.below;
	}
	vt_pen_put(v, "\n", 1);
	if (v->lf_returns) {
		v->pen.column = 0;
		v->guessed = false;
	}
	begin_row(v, false);
	v->row_lost |= v->pen.column != 0;
}

void vt_pen_return(struct vt *v)
{
	v->pen.column = 0;
	v->guessed = false;
	v->row_lost |= v->row_n > 0;
	vt_pen_put(v, "\r", 1);
}

void vt_pen_advance(struct vt *v, size_t n)
{
	struct vt_pen *pen = &v->pen;
	size_t width = (size_t)v->columns;

	v->dirty = true;
	if (pen->column < 0 || !n)
		return;
	n += (size_t)pen->column;
	if (width && n > width) {
		v->guessed |= v->wrap_unsure;
		n = vt_pen_wraps(v) ? (n - 1) % width + 1 : width;
		begin_row(v, true);
	}
	pen->column = n < COLUMN_MAX ? (int)n : COLUMN_MAX;
}
