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
	if (!v->lf_returns)
		return;
	v->pen.column = 0;
	v->guessed = false;
}

void vt_pen_return(struct vt *v)
{
	v->pen.column = 0;
	v->guessed = false;
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
	}
	pen->column = n < COLUMN_MAX ? (int)n : COLUMN_MAX;
}
