/* SPDX-License-Identifier: MIT */
/*
 * sequence.c - what each terminal sequence is, and whether it may pass
 *
 * Runs in:   the front end
 * Trusts:    nothing in the parameters
 * Leaves:    sequences of our own making
 *
 * Two tables, with a row for each sequence that is known. What is in no row is
 * dropped as unknown.
 */
#include "sequence.h"

static const char *const drop_names[] = {
	[VT_DROP_TITLE] = "title",
	[VT_DROP_CLIPBOARD] = "clipboard",
	[VT_DROP_HYPERLINK] = "hyperlink",
	[VT_DROP_OSC] = "OSC",
	[VT_DROP_DCS] = "DCS",
	[VT_DROP_APC] = "APC",
	[VT_DROP_PM] = "PM",
	[VT_DROP_SOS] = "SOS",
	[VT_DROP_QUERY] = "query",
	[VT_DROP_WINDOW] = "window operation",
	[VT_DROP_MOUSE] = "mouse",
	[VT_DROP_MODE] = "mode",
	[VT_DROP_CHARSET] = "character set",
	[VT_DROP_SCROLLBACK] = "scrollback erase",
	[VT_DROP_FORMAT] = "formatting",
	[VT_DROP_C1] = "C1 control",
	[VT_DROP_CONTROL] = "control character",
	[VT_DROP_BELL] = "bell",
	[VT_DROP_UNKNOWN] = "unknown",
	[VT_DROP_UNFINISHED] = "unfinished",
};

const char *vt_drop_name(enum vt_drop kind)
{
	return drop_names[kind];
}

struct rule {
	char prefix, inter, final;
	uint8_t most; /* parameters it may have */
	enum vt_drop drop;
	enum verdict (*act)(struct vt *v, char final); /* NULL: refuse */
};

/* The `i`th parameter, `otherwise` where it is absent, empty or 0. */
static int vt_param(const struct vt *v, int i, int otherwise)
{
	return i < v->n_params && v->params[i] > 0 ? v->params[i] : otherwise;
}

static void vt_move_to(struct vt *v, int column)
{
	if (column < 0)
		column = 0;
	if (v->columns && column >= v->columns)
		column = v->columns - 1;
	v->pen.column = column;
}

static enum verdict act_pass(struct vt *v, char final)
{
	(void)v;
	(void) final;
	return PASS;
}

static enum verdict act_swallow(struct vt *v, char final)
{
	(void)v;
	(void) final;
	return SWALLOW;
}

static enum verdict act_move(struct vt *v, char final)
{
	int n = vt_param(v, 0, 1), column = v->pen.column;

	switch (final) {
	case 'E':
	case 'F':
		vt_move_to(v, 0);
		break;
	case 'G':
	case '`':
		vt_move_to(v, n - 1);
		break;
	case 'H':
	case 'f':
		vt_move_to(v, vt_param(v, 1, 1) - 1);
		break;
	case 'C':
	case 'a':
		if (column >= 0)
			vt_move_to(v, column + n);
		break;
	case 'D':
		if (column >= 0)
			vt_move_to(v, column - n);
		break;
	default: /* by tab stops, or where terminals disagree */
		v->pen.column = -1;
	}
	return PASS;
}

/* 3J would take what was on the screen before Cellblock was. */
static enum verdict act_erase(struct vt *v, char final)
{
	(void) final;
	return vt_param(v, 0, 0) > 2 ? REFUSE : PASS;
}

/* Seven bytes must not cost the terminal millions of characters. */
static enum verdict act_repeat(struct vt *v, char final)
{
	(void) final;
	if (vt_param(v, 0, 1) > 1024)
		v->params[0] = 1024;
	vt_advance(v, (size_t)vt_param(v, 0, 1));
	return PASS;
}

static enum verdict act_region(struct vt *v, char final)
{
	(void) final;
	v->region = vt_param(v, 0, 1) > 1 || vt_param(v, 1, 0) > 0;
	vt_move_to(v, 0);
	return PASS;
}

/* 22 and 23 push and pop the title, which cannot have changed: every curses
 * program sends them, and nobody misses them. */
static enum verdict act_window(struct vt *v, char final)
{
	(void) final;
	int n = vt_param(v, 0, 0);

	(void) final;
	return n == 22 || n == 23 ? SWALLOW : REFUSE;
}

static enum verdict act_ansi_mode(struct vt *v, char final)
{
	int n = v->n_params == 1 ? v->params[0] : 0;

	/* How screen's terminfo shows the cursor, besides ?25. */
	if (n == 34)
		return SWALLOW;
	if (n != 4)
		return REFUSE;
	v->insert = final == 'h';
	return PASS;
}

static bool sgr_is_known(int n)
{
	static const struct {
		uint8_t first, last;
	} known[] = {{0, 10}, {21, 25}, {27, 37}, {39, 47}, {49, 49}, {53, 53},
		{55, 55}, {59, 59}, {90, 97}, {100, 107}};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (n >= known[i].first && n <= known[i].last)
			return true;
	return false;
}

/*
 * How many parameters from the `i`th on make one attribute, 0 when they make
 * none. The parts of a colour must be whole: of 38;2 alone a terminal may see
 * the 2, which is SGR 2.
 */
static int sgr_length(const struct vt *v, int i)
{
	int n = vt_param(v, i, 0), kind = vt_param(v, i + 1, 0), len = 1;

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

static enum verdict act_sgr(struct vt *v, char final)
{
	int n = v->n_params, kept = 0, len;
	uint32_t colons = 0;
	bool bad = false, faint = false;

	(void) final;
	if (!n)
		v->pen.style = false;
	for (int i = 0; i < n; i += len) {
		int attribute = vt_param(v, i, 0);

		len = sgr_length(v, i);
		if (!len) {
			bad = true;
			break;
		}
		if (len == 1 && attribute == 2 &&
			v->reserve == VT_RESERVE_FAINT) {
			faint = true;
			continue;
		}
		v->pen.style = attribute != 0;
		for (int k = i; k < i + len; k++, kept++) {
			if (v->colons >> k & 1)
				colons |= UINT32_C(1) << kept;
			v->params[kept] = v->params[k];
		}
	}
	if (bad)
		vt_count(v, VT_DROP_FORMAT);
	v->faint += faint && v->mode != VT_RAW;
	v->n_params = kept;
	v->colons = colons;
	return n && !kept ? SWALLOW : PASS;
}

static const struct rule csi_rules[] = {
	{0, 0, 'm', VT_PARAMS, VT_DROP_FORMAT, act_sgr},
	{0, 0, 'A', 1, VT_DROP_FORMAT, act_pass},
	{0, 0, 'B', 1, VT_DROP_FORMAT, act_pass},
	{0, 0, 'C', 1, VT_DROP_FORMAT, act_move},
	{0, 0, 'D', 1, VT_DROP_FORMAT, act_move},
	{0, 0, 'E', 1, VT_DROP_FORMAT, act_move},
	{0, 0, 'F', 1, VT_DROP_FORMAT, act_move},
	{0, 0, 'G', 1, VT_DROP_FORMAT, act_move},
	{0, 0, 'H', 2, VT_DROP_FORMAT, act_move},
	{0, 0, 'f', 2, VT_DROP_FORMAT, act_move},
	{0, 0, 'I', 1, VT_DROP_FORMAT, act_move},
	{0, 0, 'Z', 1, VT_DROP_FORMAT, act_move},
	{0, 0, '`', 1, VT_DROP_FORMAT, act_move},
	{0, 0, 'a', 1, VT_DROP_FORMAT, act_move},
	{0, 0, 'd', 1, VT_DROP_FORMAT, act_pass},
	{0, 0, 'e', 1, VT_DROP_FORMAT, act_pass},
	{0, 0, 'J', 1, VT_DROP_SCROLLBACK, act_erase},
	{0, 0, 'K', 1, VT_DROP_FORMAT, act_erase},
	{0, 0, 'L', 1, VT_DROP_FORMAT, act_move},
	{0, 0, 'M', 1, VT_DROP_FORMAT, act_move},
	{0, 0, '@', 1, VT_DROP_FORMAT, act_pass},
	{0, 0, 'P', 1, VT_DROP_FORMAT, act_pass},
	{0, 0, 'X', 1, VT_DROP_FORMAT, act_pass},
	{0, 0, 'S', 1, VT_DROP_FORMAT, act_pass},
	{0, 0, 'T', 1, VT_DROP_FORMAT, act_pass},
	{0, 0, 'b', 1, VT_DROP_FORMAT, act_repeat},
	{0, 0, 'r', 2, VT_DROP_FORMAT, act_region},
	{0, 0, 's', 0, VT_DROP_FORMAT, vt_mode_save},
	{0, 0, 'u', 0, VT_DROP_FORMAT, vt_mode_restore},
	{0, 0, 'h', VT_PARAMS, VT_DROP_MODE, act_ansi_mode},
	{0, 0, 'l', VT_PARAMS, VT_DROP_MODE, act_ansi_mode},
	{'?', 0, 'h', VT_PARAMS, VT_DROP_MODE, vt_mode_change},
	{'?', 0, 'l', VT_PARAMS, VT_DROP_MODE, vt_mode_change},
	{0, 0, 't', VT_PARAMS, VT_DROP_WINDOW, act_window},
	/* The Linux console's cursor shape, with ?25 in its terminfo. */
	{'?', 0, 'c', VT_PARAMS, VT_DROP_MODE, act_swallow},
	{0, 0, 'c', VT_PARAMS, VT_DROP_QUERY, NULL}, /* DA */
	{'>', 0, 'c', VT_PARAMS, VT_DROP_QUERY, NULL},
	{'=', 0, 'c', VT_PARAMS, VT_DROP_QUERY, NULL},
	{0, 0, 'n', VT_PARAMS, VT_DROP_QUERY, NULL}, /* DSR, CPR */
	{'?', 0, 'n', VT_PARAMS, VT_DROP_QUERY, NULL},
	{0, 0, 'x', VT_PARAMS, VT_DROP_QUERY, NULL},   /* DECREQTPARM */
	{0, '$', 'p', VT_PARAMS, VT_DROP_QUERY, NULL}, /* DECRQM */
	{'?', '$', 'p', VT_PARAMS, VT_DROP_QUERY, NULL},
	{0, '$', 'w', VT_PARAMS, VT_DROP_QUERY, NULL}, /* DECRQPSR */
	{0, '*', 'y', VT_PARAMS, VT_DROP_QUERY, NULL}, /* DECRQCRA */
	{'>', 0, 'q', VT_PARAMS, VT_DROP_QUERY, NULL}, /* XTVERSION */
	{'?', 0, 'm', VT_PARAMS, VT_DROP_QUERY, NULL}, /* XTQMODKEYS */
	{'?', 0, 'u', VT_PARAMS, VT_DROP_QUERY, NULL}, /* kitty keyboard */
	{'?', 0, 'S', VT_PARAMS, VT_DROP_QUERY, NULL}, /* XTSMGRAPHICS */
	{'>', 0, 't', VT_PARAMS, VT_DROP_WINDOW, NULL},
	{0, '!', 'p', VT_PARAMS, VT_DROP_MODE, NULL}, /* soft reset */
	{0, ' ', 'q', VT_PARAMS, VT_DROP_MODE, NULL}, /* cursor shape */
	{0, 0, 'g', VT_PARAMS, VT_DROP_MODE, NULL},   /* tab stops */
	{'?', 0, 's', VT_PARAMS, VT_DROP_MODE, NULL},
	{'?', 0, 'r', VT_PARAMS, VT_DROP_MODE, NULL},
	{'>', 0, 'm', VT_PARAMS, VT_DROP_MODE, NULL}, /* modified keys */
	{'>', 0, 'n', VT_PARAMS, VT_DROP_MODE, NULL},
	{'>', 0, 'u', VT_PARAMS, VT_DROP_MODE, NULL},
	{'<', 0, 'u', VT_PARAMS, VT_DROP_MODE, NULL},
	{'=', 0, 'u', VT_PARAMS, VT_DROP_MODE, NULL},
};

static enum verdict act_keypad(struct vt *v, char final)
{
	v->keypad = final == '=';
	return PASS;
}

static enum verdict act_next_line(struct vt *v, char final)
{
	(void) final;
	vt_move_to(v, 0);
	return PASS;
}

static enum verdict act_designate(struct vt *v, char final)
{
	*(v->inter == '(' ? &v->pen.g0 : &v->pen.g1) = final != 'B';
	return PASS;
}

static const struct rule esc_rules[] = {
	{0, 0, '7', 0, VT_DROP_FORMAT, vt_mode_save},
	{0, 0, '8', 0, VT_DROP_FORMAT, vt_mode_restore},
	{0, 0, 'D', 0, VT_DROP_FORMAT, act_pass},
	{0, 0, 'M', 0, VT_DROP_FORMAT, act_pass},
	{0, 0, 'E', 0, VT_DROP_FORMAT, act_next_line},
	{0, 0, '=', 0, VT_DROP_MODE, act_keypad},
	{0, 0, '>', 0, VT_DROP_MODE, act_keypad},
	{0, 0, '\\', 0, VT_DROP_UNKNOWN, act_swallow}, /* ends nothing */
	{0, '(', 'B', 0, VT_DROP_CHARSET, act_designate},
	{0, '(', '0', 0, VT_DROP_CHARSET, act_designate},
	{0, ')', 'B', 0, VT_DROP_CHARSET, act_designate},
	{0, ')', '0', 0, VT_DROP_CHARSET, act_designate},
	{0, 0, 'Z', 0, VT_DROP_QUERY, NULL}, /* DECID */
	{0, 0, 'c', 0, VT_DROP_MODE, NULL},  /* full reset */
	{0, 0, 'H', 0, VT_DROP_MODE, NULL},  /* tab stop */
	{0, 0, 'N', 0, VT_DROP_CHARSET, NULL},
	{0, 0, 'O', 0, VT_DROP_CHARSET, NULL},
	{0, 0, 'n', 0, VT_DROP_CHARSET, NULL},
	{0, 0, 'o', 0, VT_DROP_CHARSET, NULL},
	{0, 0, '|', 0, VT_DROP_CHARSET, NULL},
	{0, 0, '}', 0, VT_DROP_CHARSET, NULL},
	{0, 0, '~', 0, VT_DROP_CHARSET, NULL},
	{0, '%', 'G', 0, VT_DROP_CHARSET, NULL},
	{0, '%', '@', 0, VT_DROP_CHARSET, NULL},
	{0, ' ', 'F', 0, VT_DROP_MODE, NULL}, /* 7 and 8 bit answers */
	{0, ' ', 'G', 0, VT_DROP_MODE, NULL},
};

static void vt_emit_csi(struct vt *v, char final)
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
			p = vt_put_number(p, v->params[i]);
	}
	if (v->inter)
		*p++ = v->inter;
	*p++ = final;
	vt_put(v, s, (size_t)(p - s));
}

/* The row for this sequence, counted and NULL when it may not pass. */
static const struct rule *vt_find(struct vt *v, const struct rule *rules,
	size_t n, char prefix, char final)
{
	for (size_t i = 0; i < n; i++) {
		const struct rule *r = &rules[i];

		if (r->final != final || r->prefix != prefix ||
			r->inter != v->inter)
			continue;
		if (r->act && (v->mode != VT_PLAIN || r->act == act_swallow))
			return r;
		vt_count(v, r->drop);
		return NULL;
	}
	vt_count(v, VT_DROP_UNKNOWN);
	return NULL;
}

void vt_sequence_csi(struct vt *v, char final)
{
	const struct rule *r = vt_find(v, csi_rules,
		sizeof(csi_rules) / sizeof(*csi_rules), v->prefix, final);

	if (!r)
		return;
	if (v->n_params > r->most || (v->colons && r->act != act_sgr)) {
		vt_count(v, r->drop);
		return;
	}
	switch (r->act(v, final)) {
	case PASS:
		vt_emit_csi(v, final);
		break;
	case REFUSE:
		vt_count(v, r->drop);
		break;
	case SWALLOW:
		break;
	}
}

void vt_sequence_esc(struct vt *v, char final)
{
	const struct rule *r = vt_find(
		v, esc_rules, sizeof(esc_rules) / sizeof(*esc_rules), 0, final);
	char s[3] = {'\x1b', v->inter, final};

	if (!r || r->act(v, final) != PASS)
		return;
	if (v->inter)
		vt_put(v, s, 3);
	else
		vt_put(v, (char[]){'\x1b', final}, 2);
}
