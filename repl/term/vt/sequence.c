/* SPDX-License-Identifier: MIT */
/*
 * sequence.c - carries out a guest's terminal sequences, and undoes their modes
 *
 * Runs in:   the front end
 * Trusts:    no parameter: a guest wrote them
 * Leaves:    sequences that we composed; after the undo, the terminal's modes
 *            as before the cell
 *
 * Two tables list the sequences that we know, one table the modes. We drop a
 * sequence that no table lists, and count it as unknown.
 */
#include "vt.h"

#include "jail/base/array.h"

#include <string.h>

/* Rows by which the window may have grown before we read its new size. The
 * window's height if that is unknown. */
#define ROWS_MORE 100

enum sequence_verdict {
	PASS,	 /* emit the sequence with the parameters as they are now */
	SWALLOW, /* emit nothing more, and count nothing */
	REFUSE,	 /* drop, and count as the rule's kind */
};

/* The rule for the sequences that end with one of `finals`. */
struct sequence_rule {
	char prefix, inter; /* 0: none */
	const char *finals;
	uint8_t most; /* parameters */
	enum vt_drop drop;
	enum sequence_verdict (*act)(struct vt *v); /* NULL: refuse */
};

/* ---- parameters ---- */

/* Write the decimal digits of `n` >= 0 to `p`. Returns their end. */
static char *put_number(char *p, int n)
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

/* The `i`th parameter; `otherwise` if it is absent, empty or 0. */
static int param_or(const struct vt *v, int i, int otherwise)
{
	return i < v->n_params && v->params[i] > 0 ? v->params[i] : otherwise;
}

static void emit_csi(struct vt *v)
{
	char s[8 + VT_PARAMS * 6], *p = s;

	*p++ = '\x1b';
	*p++ = '[';
	if (v->prefix)
		*p++ = v->prefix;
	for (int i = 0; i < v->n_params; i++) {
		if (i)
			*p++ = v->colons >> i & 1 ? ':' : ';';
		if (v->params[i] >= 0)
			p = put_number(p, v->params[i]);
	}
	if (v->inter)
		*p++ = v->inter;
	*p++ = v->final;
	vt_pen_put(v, s, (size_t)(p - s));
	vt_pen_add_row(v, s, (size_t)(p - s), 0);
}

/* ---- the cursor ----
 *
 * The rows above the output are not the guest's. The filter counts how many
 * rows the cursor is below the output's first row, at least: a movement about
 * which terminals may disagree counts as 0. If several sequences make the same
 * movement, the filter emits the one that every terminal knows: a terminal may
 * ignore the others, and then the count would be wrong.
 *
 * The window may have another size by the time the terminal draws the output.
 * So the filter counts a row down only for a line feed. While rows on the
 * screen may not be the guest's, it emits no absolute position. To make them
 * the guest's, it scrolls away more rows than a growing window can bring back.
 */

/* Go to the top of an empty screen. */
static void scroll_away(struct vt *v)
{
	int rows = v->rows + ROWS_MORE;

	if (v->region)
		vt_pen_put(v, "\x1b[r", 3);
	v->region = false;
	vt_pen_put(v, "\x1b[9999;1H", 9);
	while (rows--)
		vt_pen_put(v, "\n", 1);
	vt_pen_put(v, "\x1b[H", 3);
	v->pen.column = 0;
}

/* Make every row on the screen the guest's: scroll away all that it shows. */
static void claim_screen(struct vt *v)
{
	v->moved = true;
	if (!vt_pen_is_bounded(v))
		return;
	v->free = true;
	scroll_away(v);
	if (v->has_saved) {
		v->saved = v->pen;
		v->saved_nowrap |= !vt_pen_wraps(v);
		vt_pen_put(v, "\0337", 2);
	}
}

/* Track a move up by `n` rows, at most to the top of the screen. Returns how
 * many rows the caller may go up without leaving the guest's rows. */
static int go_up(struct vt *v, int n)
{
	int above = v->deepest - (v->rows ? v->rows : ROWS_MORE) + 1;
	int room = v->pen.below - (above > 0 ? above : 0);

	v->moved = v->dirty = true;
	if (!vt_pen_is_bounded(v))
		return n;
	n = n < room ? n : room;
	v->pen.below -= n;
	return n;
}

/* The terminal has restored a cursor. Some terminals save the wrap mode with
 * it, so the mode is unsure, unless wrapping was on all the time. */
static void doubt_wrap(struct vt *v)
{
	v->wrap_unsure |= v->saved_nowrap || !vt_pen_wraps(v);
}

/* A terminal saves an absolute position. While rows on the screen may not be
 * the guest's, the filter saves the cursor itself. */
static enum sequence_verdict act_save(struct vt *v)
{
	v->saved = v->pen;
	v->has_saved = !vt_pen_is_alternate(v);
	if (vt_pen_is_bounded(v))
		return SWALLOW;
	v->saved_nowrap |= !vt_pen_wraps(v);
	vt_pen_put(v, "\0337", 2);
	return SWALLOW;
}

static void move_to(struct vt *v, int column)
{
	if (column < 0)
		column = 0;
	if (v->columns && column >= v->columns)
		column = v->columns - 1;
	v->pen.column = column;
}

static enum sequence_verdict act_pass(struct vt *v)
{
	(void)v;
	return PASS;
}

static enum sequence_verdict act_swallow(struct vt *v)
{
	(void)v;
	return SWALLOW;
}

/* Emit a movement by `n` with this final letter; nothing if `n` is 0. */
static void put_move(struct vt *v, char final, int n)
{
	char s[16] = "\x1b[", *p = s + 2;

	if (!n)
		return;
	if (n > 1)
		p = put_number(p, n);
	*p++ = final;
	vt_pen_put(v, s, (size_t)(p - s));
}

/* Go right by `n` columns, at most to the edge. */
static void go_right(struct vt *v, int n)
{
	if (v->pen.column >= 0)
		move_to(v, v->pen.column + n);
	put_move(v, 'C', n);
}

/* At the left edge some terminals go on in the row above, but only while text
 * wraps. So we turn wrapping off for a move from an unsure column. The window
 * may have another width when the terminal draws: from a sure column we go by a
 * return, and count columns from the left edge. */
void vt_sequence_left(struct vt *v, int n)
{
	bool sure = !v->guessed && v->pen.column >= 0;
	bool wraps = vt_pen_wraps(v), bounded = vt_pen_is_bounded(v);
	bool hold = !sure && bounded && (wraps || v->wrap_unsure);
	int to = v->pen.column - n;

	if (sure && to <= 0) {
		if (v->pen.column)
			vt_pen_return(v);
		return;
	}
	if (sure && bounded && v->mode == VT_SAFE) {
		vt_pen_return(v);
		go_right(v, to);
		return;
	}
	if (v->pen.column >= 0)
		move_to(v, v->pen.column - n);
	if (hold)
		vt_pen_put(v, "\x1b[?7l", 5);
	if (n == 1)
		vt_pen_put(v, "\b", 1);
	else
		put_move(v, 'D', n);
	if (hold && wraps)
		vt_pen_put(v, "\x1b[?7h", 5);
	v->wrap_unsure &= !hold;
}

/* Go down by `n` rows, at most to the bottom of the screen. */
static void go_down(struct vt *v, int n)
{
	int room = v->deepest - v->pen.below;

	if (vt_pen_is_bounded(v) && !v->lf_returns)
		for (; n && room; n--, room--)
			vt_pen_feed_line(v);
	v->moved = v->dirty = true;
	put_move(v, 'B', n);
}

static void put_designation(struct vt *v, char set, bool drawing)
{
	vt_pen_put(v, (char[3]){'\x1b', set, drawing ? '0' : 'B'}, 3);
}

/* Go back to the cursor that only the filter has saved, without its colours. */
static void go_back(struct vt *v)
{
	const struct vt_pen *to = &v->saved;
	int down = to->below - v->pen.below;

	vt_pen_return(v);
	if (down < 0)
		put_move(v, 'A', go_up(v, -down));
	else
		go_down(v, down);
	go_right(v, to->column > 0 ? to->column : 0);
	if (v->pen.style && !to->style)
		vt_pen_put(v, "\x1b[m", 3);
	if (v->pen.g0 != to->g0)
		put_designation(v, '(', to->g0);
	if (v->pen.g1 != to->g1)
		put_designation(v, ')', to->g1);
	if (v->pen.so != to->so)
		vt_pen_put(v, to->so ? "\x0e" : "\x0f", 1);
	v->pen.style &= to->style;
	v->pen.g0 = to->g0;
	v->pen.g1 = to->g1;
	v->pen.so = to->so;
}

static enum sequence_verdict act_restore(struct vt *v)
{
	/* This cell has saved no cursor, but an earlier cell may have. */
	static const struct vt_pen unknown = {-1, true, true, true, true, 0};

	if (vt_pen_is_bounded(v)) {
		if (v->has_saved)
			go_back(v);
		else
			claim_screen(v);
		return SWALLOW;
	}
	v->saved_nowrap |= !v->has_saved;
	v->pen = v->has_saved ? v->saved : unknown;
	v->moved = v->dirty = v->guessed = true;
	doubt_wrap(v);
	vt_pen_put(v, "\0338", 2);
	return SWALLOW;
}

static enum sequence_verdict act_column(struct vt *v)
{
	int n = param_or(v, 0, 1);

	switch (v->final) {
	case 'D':
		vt_sequence_left(v, n);
		return SWALLOW;
	case 'G':
	case '`':
		vt_pen_return(v);
		if (n-- == 1)
			break;
		/* fallthrough */
	case 'C':
	case 'a':
		go_right(v, n);
		break;
	}
	return SWALLOW;
}

/* Pass on moves by tab stops: we do not know where they end. */
static enum sequence_verdict act_tabs(struct vt *v)
{
	v->pen.column = -1;
	return PASS;
}

static enum sequence_verdict act_place(struct vt *v)
{
	claim_screen(v);
	move_to(v, param_or(v, 1, 1) - 1);
	return PASS;
}

/* Go to another row, relative to this one. */
static enum sequence_verdict act_row(struct vt *v)
{
	int n = param_or(v, 0, 1);
	bool up = v->final == 'A' || v->final == 'F';

	if (v->final == 'E' || v->final == 'F')
		vt_pen_return(v);
	if (up)
		put_move(v, 'A', go_up(v, n));
	else
		go_down(v, n);
	return SWALLOW;
}

/* ESC D, E and M: at the edge of the screen they scroll. */
static enum sequence_verdict act_scroll_row(struct vt *v)
{
	if (v->final == 'M')
		return go_up(v, 1) ? PASS : SWALLOW;
	if (v->final == 'E')
		vt_pen_return(v);
	vt_pen_feed_line(v);
	return SWALLOW;
}

/* Let the guest erase rows of the screen, but not lines scrolled off it. */
static enum sequence_verdict act_erase_rows(struct vt *v)
{
	int what = param_or(v, 0, 0);

	if (what > 2)
		return REFUSE;
	if (what)
		claim_screen(v);
	return PASS;
}

static enum sequence_verdict act_erase(struct vt *v)
{
	int what = param_or(v, 0, 0);

	if (what == 2 || (what == 0 && v->pen.column == 0 && !v->guessed))
		v->dirty = false;
	return what > 2 ? REFUSE : PASS;
}

static enum sequence_verdict act_screen(struct vt *v)
{
	claim_screen(v);
	return PASS;
}

/* Insert or delete rows below. Terminals disagree about the column then. */
static enum sequence_verdict act_rows(struct vt *v)
{
	v->moved = v->dirty = true;
	return act_tabs(v);
}

/* Seven bytes must not make the terminal draw millions of characters. */
static enum sequence_verdict act_repeat(struct vt *v)
{
	if (param_or(v, 0, 1) > 1024)
		v->params[0] = 1024;
	v->guessed = true; /* some terminals do not know this sequence */
	vt_pen_advance(v, (size_t)param_or(v, 0, 1));
	return PASS;
}

static enum sequence_verdict act_region(struct vt *v)
{
	claim_screen(v);
	v->region = param_or(v, 0, 1) > 1 || param_or(v, 1, 0) > 0;
	move_to(v, 0);
	return PASS;
}

/* 22 and 23 push and pop the title. Every curses program sends them, and a
 * guest cannot change the title, so nothing is lost. */
static enum sequence_verdict act_window(struct vt *v)
{
	int n = param_or(v, 0, 0);

	return n == 22 || n == 23 ? SWALLOW : REFUSE;
}

static enum sequence_verdict act_designate(struct vt *v)
{
	*(v->inter == '(' ? &v->pen.g0 : &v->pen.g1) = v->final != 'B';
	return PASS;
}

/* ---- colours ---- */

static bool sgr_is_known(int n)
{
	static const struct {
		uint8_t first, last;
	} known[] = {{0, 10}, {21, 25}, {27, 37}, {39, 47}, {49, 49}, {53, 53},
		{55, 55}, {59, 59}, {90, 97}, {100, 107}};

	for (size_t i = 0; i < COUNT(known); i++)
		if (n >= known[i].first && n <= known[i].last)
			return true;
	return false;
}

/* The number of parameters from the `i`th on that make one attribute; 0 for
 * none. A colour must be whole: a terminal may obey the 2 of a cut 38;2. */
static int sgr_length(const struct vt *v, int i)
{
	int n = param_or(v, i, 0), kind = param_or(v, i + 1, 0), len = 1;

	while (i + len < v->n_params && v->colons >> (i + len) & 1)
		len++;
	if (len > 1)
		return (n == 4 && len == 2) || n == 38 || n == 48 || n == 58
			       ? len
			       : 0;
	if (n == 38 || n == 48) {
		len = kind == 5 ? 3 : kind == 2 ? 5 : VT_PARAMS + 1;
		for (int k = i + 1; k < i + len && k < v->n_params; k++)
			if (v->colons >> k & 1)
				return 0;
		return i + len <= v->n_params ? len : 0;
	}
	return sgr_is_known(n) ? 1 : 0;
}

static enum sequence_verdict act_sgr(struct vt *v)
{
	int n = v->n_params, kept = 0, len;
	uint32_t colons = 0;
	bool bad = false;

	if (!n)
		v->pen.style = false;
	for (int i = 0; i < n; i += len) {
		len = sgr_length(v, i);
		if (!len) {
			bad = true;
			break;
		}
		v->pen.style = param_or(v, i, 0) != 0;
		for (int k = i; k < i + len; k++, kept++) {
			if (v->colons >> k & 1)
				colons |= UINT32_C(1) << kept;
			v->params[kept] = v->params[k];
		}
	}
	if (bad)
		vt_pen_drop(v, VT_DROP_FORMAT);
	v->n_params = kept;
	v->colons = colons;
	return n && !kept ? SWALLOW : PASS;
}

/* ---- modes ---- */

/* May a guest set and reset a mode, or only reset it, or do we ignore both? In
 * raw mode a guest may do both. */
enum allow { ALLOW_BOTH, ALLOW_RESET, ALLOW_IGNORE };

struct mode {
	int16_t number;
	bool initial;
	enum allow allow;
};

static const struct mode modes[] = {
	{1, false, ALLOW_BOTH}, /* cursor keys */
	{5, false, ALLOW_BOTH}, /* reverse screen */
	[VT_MODE_WRAP] = {7, true, ALLOW_BOTH},
	{25, true, ALLOW_BOTH},			/* visible cursor */
	[VT_MODE_47] = {47, false, ALLOW_BOTH}, /* alternate screen */
	{66, false, ALLOW_BOTH},		/* keypad */
	[VT_MODE_1047] = {1047, false, ALLOW_BOTH},
	[VT_MODE_1049] = {1049, false, ALLOW_BOTH},
	/* Readline in a cell sets bracketed paste at each input(). */
	{2004, false, ALLOW_BOTH},
	/* The person chooses if the cursor blinks. Curses sends 12 with 25. */
	{12, false, ALLOW_IGNORE},
	{9, false, ALLOW_RESET},
	{1000, false, ALLOW_RESET},
	{1001, false, ALLOW_RESET},
	{1002, false, ALLOW_RESET},
	{1003, false, ALLOW_RESET},
	{1004, false, ALLOW_RESET}, /* focus */
	{1005, false, ALLOW_RESET},
	{1006, false, ALLOW_RESET},
	{1015, false, ALLOW_RESET},
	{1016, false, ALLOW_RESET},
};
#define MODES ((int)COUNT(modes))
_Static_assert(MODES <= 32, "struct vt has a bit for each mode");

/*
 * The guest has entered or left the alternate screen: 1049 saves the cursor of
 * the main screen and restores it. Some terminals are set up to have no
 * alternate screen. So on entering we scroll the screen away: an alternate
 * screen is empty anyway; on the main screen the guest gets its own rows only.
 */
static void alternate_record(struct vt *v, bool on)
{
	/* Some terminals save the cursor where ESC 7 does, others do not. */
	v->has_saved = false;
	if (on) {
		v->saved_nowrap |= !vt_pen_wraps(v);
		v->main_pen = v->pen;
		v->main_dirty = v->dirty;
		if (!v->free)
			scroll_away(v);
		return;
	}
	v->moved = v->guessed = true;
	doubt_wrap(v);
	v->pen.column = v->main_pen.column;
	v->pen.below = v->main_pen.below;
	v->dirty = v->main_dirty;
	v->modes &= ~VT_ALTERNATE;
	if (v->resized)
		vt_pen_put(v, "\x1b[9999;1H\n", 10);
	v->resized = false;
}

static void mode_record(struct vt *v, int row, bool on)
{
	if (VT_ALTERNATE >> row & 1 && on != vt_pen_is_alternate(v))
		alternate_record(v, on);
	v->wrap_unsure &= row != VT_MODE_WRAP;
	if (on != modes[row].initial)
		v->modes |= UINT32_C(1) << row;
	else
		v->modes &= ~(UINT32_C(1) << row);
}

/*
 * Three modes switch to the alternate screen, and two of them do not restore
 * the main screen's cursor. So we emit 1049 for all of them. We drop a switch
 * to the screen that is up: leaving an alternate screen that is not up moves
 * the cursor. A scroll region would outlast the screen, so we undo it first.
 */
static void alternate_set(struct vt *v, bool on)
{
	if (on == vt_pen_is_alternate(v))
		return;
	if (v->region && !on) {
		vt_pen_put(v, "\x1b[r", 3);
		v->region = false;
	}
	vt_pen_put(v, on ? "\x1b[?1049h" : "\x1b[?1049l", 8);
	mode_record(v, VT_MODE_1049, on);
}

/* Judge a change of one mode: record, ignore or count it. Returns the mode that
 * the caller emits; 0: none. */
static int16_t mode_set(struct vt *v, int16_t number, bool on, bool *counted)
{
	enum vt_drop drop = VT_DROP_MODE;

	for (int i = 0; i < MODES; i++) {
		if (modes[i].number != number)
			continue;
		if (v->mode != VT_RAW && VT_ALTERNATE >> i & 1) {
			alternate_set(v, on);
			return 0;
		}
		if (v->mode == VT_RAW || modes[i].allow == ALLOW_BOTH ||
			(modes[i].allow == ALLOW_RESET && !on)) {
			mode_record(v, i, on);
			return number;
		}
		if (modes[i].allow == ALLOW_IGNORE)
			return 0;
		drop = VT_DROP_MOUSE;
	}
	if (!*counted)
		vt_pen_drop(v, drop);
	*counted = true;
	return 0;
}

/* DECSET and DECRST: record the changes, and leave only the modes to emit in
 * v->params. */
static enum sequence_verdict act_private_mode(struct vt *v)
{
	bool on = v->final == 'h', counted = false;
	int kept = 0;

	if (v->colons)
		return REFUSE;
	for (int i = 0; i < v->n_params; i++) {
		int16_t n = v->params[i];

		if (n == 1048) { /* another name of ESC 7 and ESC 8 */
			(on ? act_save : act_restore)(v);
			continue;
		}
		n = mode_set(v, n, on, &counted);
		if (n > 0)
			v->params[kept++] = n;
	}
	v->n_params = kept;
	return kept ? PASS : SWALLOW;
}

static enum sequence_verdict act_ansi_mode(struct vt *v)
{
	int n = v->n_params == 1 ? v->params[0] : 0;

	/* GNU screen's terminfo shows the cursor with 34 and ?25. */
	if (n == 34)
		return SWALLOW;
	if (n != 4)
		return REFUSE;
	v->insert = v->final == 'h';
	return PASS;
}

static enum sequence_verdict act_keypad(struct vt *v)
{
	v->keypad = v->final == '=';
	return PASS;
}

static void undo_modes(struct vt *v, uint32_t which)
{
	char s[16] = "\x1b[?", *p;

	for (int i = 0; i < MODES; i++) {
		if (!(v->modes & which & UINT32_C(1) << i))
			continue;
		p = put_number(s + 3, modes[i].number);
		*p++ = modes[i].initial ? 'h' : 'l';
		vt_pen_put_always(v, s, (size_t)(p - s));
		mode_record(v, i, modes[i].initial);
	}
}

/* Let the whole screen scroll. Setting the region moves the cursor. */
static void scroll_whole(struct vt *v)
{
	if (!v->region)
		return;
	vt_pen_put_always(v, "\0337\033[r\0338", 7);
	doubt_wrap(v);
	v->region = false;
}

/* A higher window may show rows again that we scrolled away. The main screen's
 * cursor may return to one: alternate_record() goes below them. */
void vt_sequence_resize(struct vt *v)
{
	v->free = false;
	v->resized = vt_pen_is_alternate(v);
	if (v->resized)
		scroll_away(v);
	else
		scroll_whole(v);
}

void vt_sequence_undo(struct vt *v)
{
	const struct {
		bool on;
		const char *off;
	} undo[] = {
		{v->pen.style, "\x1b[m"},
		{v->pen.g0, "\x1b(B"},
		{v->pen.g1, "\x1b)B"},
		{v->pen.so, "\x0f"},
		{v->insert, "\x1b[4l"},
		{v->keypad, "\x1b>"},
		/* Only in raw mode: soft reset, keys, cursor's shape. */
		{v->exotic, "\x1b[!p\x1b[>4m\x1b[<8u\x1b[0 q"},
	};

	/* The alternate screen first: leaving it restores the cursor. */
	undo_modes(v, VT_ALTERNATE);
	scroll_whole(v);
	if (v->wrap_unsure)
		v->modes |= UINT32_C(1) << VT_MODE_WRAP;
	undo_modes(v, ~VT_ALTERNATE);
	for (size_t i = 0; i < COUNT(undo); i++)
		if (undo[i].on)
			vt_pen_put_always(v, undo[i].off, strlen(undo[i].off));
	v->insert = v->keypad = v->exotic = false;
	v->pen.style = v->pen.g0 = v->pen.g1 = v->pen.so = false;
}

/* ---- the tables ---- */

static const struct sequence_rule csi_rules[] = {
	{0, 0, "m", VT_PARAMS, VT_DROP_FORMAT, act_sgr},
	{0, 0, "CDG`a", 1, VT_DROP_FORMAT, act_column},
	{0, 0, "IZ", 1, VT_DROP_FORMAT, act_tabs},
	{0, 0, "Hf", 2, VT_DROP_FORMAT, act_place},
	{0, 0, "ABEFe", 1, VT_DROP_FORMAT, act_row},
	{0, 0, "LM", 1, VT_DROP_FORMAT, act_rows},
	{0, 0, "@PX", 1, VT_DROP_FORMAT, act_pass},
	{0, 0, "dST", 1, VT_DROP_FORMAT, act_screen},
	/* 3J would also erase lines from before Cellblock started. */
	{0, 0, "J", 1, VT_DROP_SCROLLBACK, act_erase_rows},
	{0, 0, "K", 1, VT_DROP_FORMAT, act_erase},
	{0, 0, "b", 1, VT_DROP_FORMAT, act_repeat},
	{0, 0, "r", 2, VT_DROP_FORMAT, act_region},
	{0, 0, "s", 0, VT_DROP_FORMAT, act_save},
	{0, 0, "u", 0, VT_DROP_FORMAT, act_restore},
	{0, 0, "hl", VT_PARAMS, VT_DROP_MODE, act_ansi_mode},
	{'?', 0, "hl", VT_PARAMS, VT_DROP_MODE, act_private_mode},
	{0, 0, "t", VT_PARAMS, VT_DROP_WINDOW, act_window},
	/* The Linux console's cursor shape, with ?25 in its terminfo. */
	{'?', 0, "c", VT_PARAMS, VT_DROP_MODE, act_swallow},
	/* DA, DSR and CPR, DECREQTPARM */
	{0, 0, "cnx", VT_PARAMS, VT_DROP_QUERY, NULL},
	/* DSR, XTQMODKEYS, kitty's keyboard, XTSMGRAPHICS */
	{'?', 0, "nmuS", VT_PARAMS, VT_DROP_QUERY, NULL},
	/* DA, XTVERSION */
	{'>', 0, "cq", VT_PARAMS, VT_DROP_QUERY, NULL},
	{'=', 0, "c", VT_PARAMS, VT_DROP_QUERY, NULL},
	/* DECRQM, DECRQPSR, DECRQCRA */
	{0, '$', "pw", VT_PARAMS, VT_DROP_QUERY, NULL},
	{'?', '$', "p", VT_PARAMS, VT_DROP_QUERY, NULL},
	{0, '*', "y", VT_PARAMS, VT_DROP_QUERY, NULL},
	{'>', 0, "t", VT_PARAMS, VT_DROP_WINDOW, NULL},
	/* soft reset, cursor shape, tab stops */
	{0, '!', "p", VT_PARAMS, VT_DROP_MODE, NULL},
	{0, ' ', "q", VT_PARAMS, VT_DROP_MODE, NULL},
	{0, 0, "g", VT_PARAMS, VT_DROP_MODE, NULL},
	/* saved modes, modified keys, kitty's keyboard */
	{'?', 0, "sr", VT_PARAMS, VT_DROP_MODE, NULL},
	{'>', 0, "mnu", VT_PARAMS, VT_DROP_MODE, NULL},
	{'<', 0, "u", VT_PARAMS, VT_DROP_MODE, NULL},
	{'=', 0, "u", VT_PARAMS, VT_DROP_MODE, NULL},
};

static const struct sequence_rule esc_rules[] = {
	{0, 0, "7", 0, VT_DROP_FORMAT, act_save},
	{0, 0, "8", 0, VT_DROP_FORMAT, act_restore},
	{0, 0, "DEM", 0, VT_DROP_FORMAT, act_scroll_row},
	{0, 0, "=>", 0, VT_DROP_MODE, act_keypad},
	{0, 0, "\\", 0, VT_DROP_UNKNOWN, act_swallow}, /* ends nothing */
	{0, '(', "B0", 0, VT_DROP_CHARSET, act_designate},
	{0, ')', "B0", 0, VT_DROP_CHARSET, act_designate},
	{0, 0, "Z", 0, VT_DROP_QUERY, NULL}, /* DECID */
	{0, 0, "cH", 0, VT_DROP_MODE, NULL}, /* full reset, tab stop */
	{0, 0, "NOno|}~", 0, VT_DROP_CHARSET, NULL},
	{0, '%', "G@", 0, VT_DROP_CHARSET, NULL},
	{0, ' ', "FG", 0, VT_DROP_MODE, NULL}, /* 7 and 8 bit answers */
};

/* Find a sequence's rule. NULL: it may not pass, and we have counted it. */
static const struct sequence_rule *find_rule(
	struct vt *v, const struct sequence_rule *rules, size_t n, char prefix)
{
	for (size_t i = 0; i < n; i++) {
		const struct sequence_rule *r = &rules[i];

		if (!strchr(r->finals, v->final) || r->prefix != prefix ||
			r->inter != v->inter)
			continue;
		if (r->act == act_swallow)
			return r;
		if (r->act && v->mode != VT_PLAIN &&
			(!v->late || r->act == act_sgr))
			return r;
		vt_pen_drop(v, r->drop);
		return NULL;
	}
	vt_pen_drop(v, VT_DROP_UNKNOWN);
	return NULL;
}

/* Act on a sequence. At the right edge it makes the column a guess, as
 * vt_pen_note_edge() says, unless we emit nothing for it. */
static enum sequence_verdict apply_rule(
	struct vt *v, const struct sequence_rule *r)
{
	bool guessed = v->guessed;
	enum sequence_verdict verdict;

	v->put = false;
	if (r->act != act_sgr)
		vt_pen_note_edge(v);
	verdict = r->act(v);
	if (verdict != PASS && !v->put)
		v->guessed = guessed;
	v->steers |= r->act != act_sgr;
	v->row_lost |= r->act != act_sgr;
	return verdict;
}

void vt_sequence_csi(struct vt *v)
{
	const struct sequence_rule *r =
		find_rule(v, csi_rules, COUNT(csi_rules), v->prefix);

	if (!r)
		return;
	if (v->n_params > r->most || (v->colons && r->act != act_sgr)) {
		vt_pen_drop(v, r->drop);
		return;
	}
	switch (apply_rule(v, r)) {
	case PASS:
		emit_csi(v);
		break;
	case REFUSE:
		vt_pen_drop(v, r->drop);
		break;
	case SWALLOW:
		break;
	}
}

void vt_sequence_esc(struct vt *v)
{
	const struct sequence_rule *r =
		find_rule(v, esc_rules, COUNT(esc_rules), 0);
	char s[3] = {'\x1b', v->inter, v->final};

	if (!r || apply_rule(v, r) != PASS)
		return;
	s[1] = v->inter ? v->inter : v->final;
	vt_pen_put(v, s, v->inter ? 3 : 2);
}
