/* SPDX-License-Identifier: MIT */
/*
 * keys.c - decodes a terminal's bytes to keys
 *
 * Runs in:   the front end
 * Trusts:    nothing: a client of ssh may send any bytes at any speed
 * Leaves:    keys; text without controls
 *
 * Sequences as in ECMA-48 and xterm's ctlseqs; `ESC [ 200 ~` begins a paste.
 */
#include "repl/term/term.h"

#define ESC 0x1B

/* A terminal sends a sequence at once, but ssh may split it. When the end of a
 * paste is late, keys_timeout() ends the paste so that the reader gets its
 * text. Bytes that follow are pasted too: as typed keys, each line end in them
 * would run a cell. */
#define KEYS_SEQUENCE_MS 200
#define KEYS_PASTE_MS 2000

/* Longest string (OSC, DCS, …) that is dropped as one. */
#define KEYS_STRING_MAX 4096

enum {
	GROUND,
	UTF8,
	ESCAPE,
	CSI,
	SS3,
	CONSOLE, /* ESC [ [: a function key of the Linux console */
	CTRL_X,
	SKIP,
	STRING,
	STRING_ESC
};

static const char paste_end[] = "\033[201~";

void keys_init(struct keys *k)
{
	*k = (struct keys){.state = GROUND};
}

static int emit_key(struct key *out, int n, int code, wchar_t c)
{
	if (n < KEYS_OUT_MAX)
		out[n++] = (struct key){.code = code, .c = c};
	return n;
}

/* Emit a pasted character: each line end as \n, no control but the tab. */
static int emit_pasted(struct keys *k, struct key *out, int n, wchar_t c)
{
	bool after_cr = k->cr;

	k->cr = c == '\r';
	if (c == '\r')
		c = '\n';
	else if (c == '\n' && after_cr)
		return n;
	if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7F)
		return n;
	return emit_key(out, n, KEY_PASTE_TEXT, c);
}

static int emit_char(struct keys *k, struct key *out, int n, wchar_t c)
{
	if (c >= 0x80 && c < 0xA0) /* C1: some begin an escape sequence */
		c = UTF8_BAD;
	if (k->paste)
		return emit_pasted(k, out, n, c);
	if (c == 0)
		return emit_key(out, n, KEY_NUL, 0);
	if (c < 0x20 || c == 0x7F)
		return emit_key(out, n, (int)c, 0);
	return emit_key(out, n, KEY_TEXT, c);
}

/* Take a byte of text, which may end a character. */
static int feed_text(struct keys *k, unsigned char b, struct key *out, int n)
{
	uint32_t c;
	int len, all;

	k->u[k->u_n++] = b;
	len = utf8_get(k->u, k->u_n, &c);
	all = k->u[0] < 0xE0 ? 2 : k->u[0] < 0xF0 ? 3 : 4;
	/* An invalid character takes as many bytes as its first one demands. */
	if (!len || (k->u_n > 1 && k->u_n < all)) {
		k->state = UTF8;
		return n;
	}
	k->state = GROUND;
	k->u_n = 0;
	return emit_char(k, out, n, len > 0 ? (wchar_t)c : UTF8_BAD);
}

/* Emit UTF8_BAD: the bytes so far do not become a character. */
static int end_text(struct keys *k, struct key *out)
{
	k->state = GROUND;
	k->u_n = 0;
	return emit_char(k, out, 0, UTF8_BAD);
}

static int feed_ground(struct keys *k, unsigned char b, struct key *out, int n)
{
	if (b == ESC)
		k->state = ESCAPE;
	else if (b == KEYS_CTRL('X'))
		k->state = CTRL_X;
	else
		return feed_text(k, b, out, n);
	return n;
}

/* Ctrl-X and the key behind it are one key; behind any other, Ctrl-X is
 * nothing. */
static int feed_ctrl_x(struct keys *k, unsigned char b, struct key *out)
{
	k->state = GROUND;
	if (b == KEYS_CTRL('E'))
		return emit_key(out, 0, KEY_CTRL_X_E, 0);
	if (b == KEYS_CTRL('U'))
		return emit_key(out, 0, KEYS_CTRL('_'), 0);
	return feed_ground(k, b, out, 0);
}

/* Inside a paste we look only for the sequence that ends it. The beginning of
 * that sequence alone is pasted text, without the ESC. */
static int feed_paste(struct keys *k, unsigned char b, struct key *out, int n)
{
	if (b == (unsigned char)paste_end[k->match]) {
		if (paste_end[++k->match])
			return n;
		k->match = 0;
		k->paste = k->stalled = false;
		return emit_key(out, n, KEY_PASTE_END, 0);
	}
	for (int i = 1; i < k->match; i++)
		n = emit_char(k, out, n, paste_end[i]);
	k->match = b == ESC;
	return k->match ? n : feed_text(k, b, out, n);
}

/* Take a byte after a pause in a paste: begin the paste again. Ctrl-C ends it:
 * if the end of the paste is lost, the person gets the keyboard back. */
static int feed_stalled(struct keys *k, unsigned char b, struct key *out)
{
	int n = emit_key(out, 0, KEY_PASTE_BEGIN, 0);

	k->paste = b != KEYS_CTRL('C');
	if (k->paste)
		return feed_paste(k, b, out, n);
	k->stalled = false;
	k->match = 0;
	return emit_key(out, n, KEY_PASTE_END, 0);
}

static const struct {
	unsigned char b;
	int code;
} alt_keys[] = {
	{'\r', KEY_ALT_ENTER},
	{'\n', KEY_ALT_ENTER},
	{0x7F, KEY_ALT_BACKSPACE},
	{0x08, KEY_ALT_BACKSPACE},
	{KEYS_CTRL('_'), KEY_ALT_E},
	{'.', KEY_ALT_DOT},
	{'c', KEY_ALT_C},
	{'d', KEY_ALT_D},
	{'e', KEY_ALT_E},
	{'l', KEY_ALT_L},
	{'t', KEY_ALT_T},
	{'u', KEY_ALT_U},
	{'y', KEY_ALT_Y},
	{'b', KEY_WORD_LEFT},
	{'f', KEY_WORD_RIGHT},
	{'<', KEY_TOP},
	{'>', KEY_BOTTOM},
};

static int feed_escape(struct keys *k, unsigned char b, struct key *out)
{
	k->state = GROUND;
	switch (b) {
	case ESC:
		k->state = ESCAPE;
		return 0;
	case '[':
		k->state = CSI;
		k->params = 0;
		k->param[0] = 0;
		k->private_mark = false;
		return 0;
	case 'O':
		k->state = SS3;
		return 0;
	case 'P':
	case 'X':
	case ']':
	case '^':
	case '_':
		k->state = STRING;
		k->skip = KEYS_STRING_MAX;
		return 0;
	}
	if (k->escape_alone && b > ' ' && b < 0x7F) {
		emit_key(out, 0, KEY_ESCAPE, 0);
		return emit_char(k, out, 1, b);
	}
	for (size_t i = 0; i < COUNT(alt_keys); i++)
		if (alt_keys[i].b == b)
			return emit_key(out, 0, alt_keys[i].code, 0);
	/* Read Alt with a control as the control: Ctrl-C must always work. */
	return b < 0x20 ? emit_char(k, out, 0, b) : 0;
}

/* The keys of a sequence: plain, and with Ctrl, Alt or Shift held. */
static const struct {
	unsigned char final;
	int param; /* the first number; -1: any */
	int code, modified;
} csi_keys[] = {
	{'A', -1, KEY_UP, KEY_UP},
	{'B', -1, KEY_DOWN, KEY_DOWN},
	{'C', -1, KEY_RIGHT, KEY_WORD_RIGHT},
	{'D', -1, KEY_LEFT, KEY_WORD_LEFT},
	{'H', -1, KEY_HOME, KEY_TOP},
	{'F', -1, KEY_END, KEY_BOTTOM},
	{'Z', -1, KEY_BACK_TAB, KEY_BACK_TAB},
	{'~', 1, KEY_HOME, KEY_TOP},
	{'~', 7, KEY_HOME, KEY_TOP},
	{'~', 4, KEY_END, KEY_BOTTOM},
	{'~', 8, KEY_END, KEY_BOTTOM},
	{'~', 3, KEY_DELETE, KEY_ALT_D},
	{'~', 5, KEY_PAGE_UP, KEY_PAGE_UP},
	{'~', 6, KEY_PAGE_DOWN, KEY_PAGE_DOWN},
	{'~', 11, KEY_F1, KEY_F1},
	{'~', 12, KEY_F2, KEY_F2},
	{'~', 13, KEY_F3, KEY_F3},
	{'~', 200, KEY_PASTE_BEGIN, KEY_PASTE_BEGIN},
	{'u', 13, KEY_ALT_ENTER, KEY_ALT_ENTER},
};

static int csi_key(struct keys *k, unsigned char final, struct key *out)
{
	bool modified = k->params >= 1 && k->param[1] > 1;

	for (size_t i = 0; i < COUNT(csi_keys); i++) {
		if (csi_keys[i].final != final || k->private_mark ||
			(csi_keys[i].param >= 0 &&
				csi_keys[i].param != k->param[0]))
			continue;
		if (csi_keys[i].code == KEY_PASTE_BEGIN) {
			k->paste = true;
			k->stalled = k->cr = false;
			k->match = 0;
		}
		return emit_key(out, 0,
			modified ? csi_keys[i].modified : csi_keys[i].code, 0);
	}
	return 0;
}

static int feed_csi(struct keys *k, unsigned char b, struct key *out)
{
	int *param = &k->param[k->params];

	if (b >= '0' && b <= '9') {
		if (*param < 1000)
			*param = *param * 10 + b - '0';
		return 0;
	}
	if (b == ';' || b == ':') {
		if (k->params < KEYS_PARAMS_MAX - 1)
			k->param[++k->params] = 0;
		return 0;
	}
	if (b >= 0x20 && b < 0x40) {
		k->private_mark = true;
		return 0;
	}
	k->state = GROUND;
	if (b < 0x20 || b >= 0x7F)
		return feed_ground(k, b, out, 0);
	/* The Linux console's function keys (ESC [ [ A) and X10 mouse reports
	 * (ESC [ M and three bytes) have bytes behind the final letter. */
	if (b == '[') {
		k->state = CONSOLE;
		return 0;
	}
	if (b == 'M' && !k->private_mark) {
		k->state = SKIP;
		k->skip = 3;
		return 0;
	}
	return csi_key(k, b, out);
}

/* F1 to F3 end in three letters in a row; the keys behind them do nothing. */
static int function_key(unsigned char b, unsigned char first, struct key *out)
{
	return b >= first && b < first + 3
		       ? emit_key(out, 0, KEY_F1 + (b - first), 0)
		       : 0;
}

static int feed_console(struct keys *k, unsigned char b, struct key *out)
{
	k->state = GROUND;
	return b < 0x20 || b >= 0x7F ? feed_ground(k, b, out, 0)
				     : function_key(b, 'A', out);
}

static int feed_ss3(struct keys *k, unsigned char b, struct key *out)
{
	k->state = GROUND;
	k->params = 0;
	k->private_mark = false;
	if (b < 0x20 || b >= 0x7F)
		return feed_ground(k, b, out, 0);
	if (b >= 'P' && b <= 'S')
		return function_key(b, 'P', out);
	return b == '~' || b == 'u' ? 0 : csi_key(k, b, out);
}

/* Drop a string that the terminal sends, up to its end or a Ctrl-C. */
static int feed_string(struct keys *k, unsigned char b, struct key *out)
{
	if (k->state == STRING_ESC && b != '\\') {
		k->state = ESCAPE;
		return feed_escape(k, b, out);
	}
	if (k->state == STRING_ESC || b == 0x07 || --k->skip <= 0)
		k->state = GROUND;
	else if (b == ESC)
		k->state = STRING_ESC;
	else if (b == KEYS_CTRL('C')) {
		k->state = GROUND;
		return feed_ground(k, b, out, 0);
	}
	return 0;
}

int keys_feed(struct keys *k, unsigned char b, struct key *out)
{
	int n = 0;

	switch (k->state) {
	case UTF8:
		if (utf8_continues((char)b))
			return feed_text(k, b, out, 0);
		n = end_text(k, out);
		break;
	case ESCAPE:
		return feed_escape(k, b, out);
	case CSI:
		return feed_csi(k, b, out);
	case SS3:
		return feed_ss3(k, b, out);
	case CONSOLE:
		return feed_console(k, b, out);
	case CTRL_X:
		return feed_ctrl_x(k, b, out);
	case SKIP:
		if (--k->skip == 0)
			k->state = GROUND;
		return 0;
	case STRING:
	case STRING_ESC:
		return feed_string(k, b, out);
	}
	if (k->stalled && !k->paste)
		return feed_stalled(k, b, out);
	return k->paste ? feed_paste(k, b, out, n) : feed_ground(k, b, out, n);
}

int keys_wait_ms(const struct keys *k)
{
	if (k->state == CTRL_X)
		return -1;
	if (k->state != GROUND || (k->paste && k->stalled))
		return KEYS_SEQUENCE_MS;
	return k->paste ? KEYS_PASTE_MS : -1;
}

int keys_timeout(struct keys *k, struct key *out)
{
	int n = 0;

	if (k->state == UTF8) {
		n = end_text(k, out);
	} else if (k->state == ESCAPE) {
		n = emit_key(out, n, KEY_ESCAPE, 0);
	} else if (k->state == GROUND && k->paste) {
		k->paste = false;
		k->stalled = true;
		n = emit_key(out, n, KEY_PASTE_END, 0);
	}
	k->state = GROUND;
	return n;
}
