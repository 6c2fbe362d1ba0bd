/* SPDX-License-Identifier: MIT */
/*
 * mode.c - what a guest turned on, so that it can be turned off
 *
 * Runs in:   the front end
 * Trusts:    nothing in the parameters
 * Leaves:    the terminal as it was before the cell, after vt_undo()
 */
#include <string.h>

#include "sequence.h"

char *vt_put_number(char *p, int n)
{
	char digits[8];
	int i = 0;

	do
		digits[i++] = (char)('0' + n % 10);
	while (n /= 10);
	while (i)
		*p++ = digits[--i];
	return p;
}

enum verdict vt_mode_save(struct vt *v, char final)
{
	(void) final;
	v->saved = v->pen;
	v->has_saved = true;
	return PASS;
}

enum verdict vt_mode_restore(struct vt *v, char final)
{
	/* Nothing saved by this cell: whatever an earlier one left there. */
	static const struct vt_pen unknown = {-1, true, true, true, true};

	(void) final;
	v->pen = v->has_saved ? v->saved : unknown;
	return PASS;
}

/* Whether a guest may set a mode, and reset it; in raw it may do both. */
enum allow { ALLOW_BOTH, ALLOW_RESET, ALLOW_IGNORE };

struct mode {
	int16_t number;
	bool initial;
	bool alternate; /* the other screen, by one of its three names */
	enum allow allow;
	enum vt_drop drop;
};

static const struct mode modes[] = {
	{1, false, false, ALLOW_BOTH, VT_DROP_MODE},  /* cursor keys */
	{5, false, false, ALLOW_BOTH, VT_DROP_MODE},  /* reverse screen */
	{7, true, false, ALLOW_BOTH, VT_DROP_MODE},   /* wrap */
	{25, true, false, ALLOW_BOTH, VT_DROP_MODE},  /* cursor seen */
	{47, false, true, ALLOW_BOTH, VT_DROP_MODE},  /* other screen */
	{66, false, false, ALLOW_BOTH, VT_DROP_MODE}, /* keypad */
	{1047, false, true, ALLOW_BOTH, VT_DROP_MODE},
	{1049, false, true, ALLOW_BOTH, VT_DROP_MODE},
	/* A paste in brackets goes to who asked for it: readline in a cell
	 * does, at each input(). */
	{2004, false, false, ALLOW_BOTH, VT_DROP_MODE},
	/* Blinking is the person's own choice; curses sends it with 25. */
	{12, false, false, ALLOW_IGNORE, VT_DROP_MODE},
	{9, false, false, ALLOW_RESET, VT_DROP_MOUSE},
	{1000, false, false, ALLOW_RESET, VT_DROP_MOUSE},
	{1001, false, false, ALLOW_RESET, VT_DROP_MOUSE},
	{1002, false, false, ALLOW_RESET, VT_DROP_MOUSE},
	{1003, false, false, ALLOW_RESET, VT_DROP_MOUSE},
	{1004, false, false, ALLOW_RESET, VT_DROP_MOUSE}, /* focus */
	{1005, false, false, ALLOW_RESET, VT_DROP_MOUSE},
	{1006, false, false, ALLOW_RESET, VT_DROP_MOUSE},
	{1015, false, false, ALLOW_RESET, VT_DROP_MOUSE},
	{1016, false, false, ALLOW_RESET, VT_DROP_MOUSE},
};
enum { MODES = sizeof(modes) / sizeof(*modes), MODE_WRAP_ROW = 2 };
_Static_assert(MODES <= 32, "struct vt has a bit for each mode");

bool vt_wraps(const struct vt *v)
{
	return !(v->modes & UINT32_C(1) << MODE_WRAP_ROW);
}

static void vt_mode_record(struct vt *v, int row, bool on)
{
	const struct mode *m = &modes[row];

	if (m->alternate && on && m->number == 1049) {
		v->alternate_column = v->pen.column;
		vt_mode_save(v, 0);
	}
	if (m->alternate && !on) {
		/* Any of the three leaves it; only 1049 moves the cursor. */
		if (v->modes & UINT32_C(1) << row && m->number == 1049)
			v->pen.column = v->alternate_column;
		else if (m->number == 1049)
			v->pen.column = -1;
		for (int i = 0; i < MODES; i++)
			if (modes[i].alternate)
				v->modes &= ~(UINT32_C(1) << i);
	}
	if (on != m->initial)
		v->modes |= UINT32_C(1) << row;
	else
		v->modes &= ~(UINT32_C(1) << row);
}

/* Find out what becomes of one mode; true keeps it in the sequence. */
static bool vt_mode_set(struct vt *v, int number, bool on, bool *counted)
{
	enum vt_drop drop = VT_DROP_MODE;

	for (int i = 0; i < MODES; i++) {
		if (modes[i].number != number)
			continue;
		if (v->mode == VT_RAW || modes[i].allow == ALLOW_BOTH ||
			(modes[i].allow == ALLOW_RESET && !on)) {
			vt_mode_record(v, i, on);
			return true;
		}
		if (modes[i].allow == ALLOW_IGNORE)
			return false;
		drop = modes[i].drop;
	}
	if (!*counted)
		vt_count(v, drop);
	*counted = true;
	return false;
}

/* ?1048: what ESC 7 and ESC 8 do, under another name. */
static bool vt_mode_cursor(struct vt *v, bool on)
{
	(on ? vt_mode_save : vt_mode_restore)(v, 0);
	return true;
}

enum verdict vt_mode_change(struct vt *v, char final)
{
	bool on = final == 'h', counted = false;
	int kept = 0;

	if (v->colons)
		return REFUSE;
	for (int i = 0; i < v->n_params; i++) {
		int16_t n = v->params[i];

		if (n == 1048 ? vt_mode_cursor(v, on)
			      : vt_mode_set(v, n, on, &counted))
			v->params[kept++] = n;
	}
	v->n_params = kept;
	return kept ? PASS : SWALLOW;
}

static void vt_undo_modes(struct vt *v, bool alternate)
{
	char s[16] = "\x1b[?", *p;

	for (int i = 0; i < MODES; i++) {
		if (!(v->modes & UINT32_C(1) << i) ||
			modes[i].alternate != alternate)
			continue;
		p = vt_put_number(s + 3, modes[i].number);
		*p++ = modes[i].initial ? 'h' : 'l';
		vt_put_always(v, s, (size_t)(p - s));
		vt_mode_record(v, i, modes[i].initial);
	}
}

void vt_undo(struct vt *v)
{
	const struct {
		bool on;
		const char *off;
	} undo[] = {
		/* Setting the region moves the cursor. */
		{v->region, "\x1b"
			    "7\x1b[r\x1b"
			    "8"},
		{v->pen.style, "\x1b[m"},
		{v->pen.g0, "\x1b(B"},
		{v->pen.g1, "\x1b)B"},
		{v->pen.so, "\x0f"},
		{v->insert, "\x1b[4l"},
		{v->keypad, "\x1b>"},
		/* Only in raw: a soft reset, keys and cursor as they were. */
		{v->exotic, "\x1b[!p\x1b[>4m\x1b[<8u\x1b[0 q"},
	};

	/* First, because it brings back the cursor's place. */
	vt_undo_modes(v, true);
	vt_undo_modes(v, false);
	for (size_t i = 0; i < sizeof(undo) / sizeof(*undo); i++)
		if (undo[i].on)
			vt_put_always(v, undo[i].off, strlen(undo[i].off));
	v->region = v->insert = v->keypad = v->exotic = false;
	v->pen.style = v->pen.g0 = v->pen.g1 = v->pen.so = false;
	vt_flush(v);
}
