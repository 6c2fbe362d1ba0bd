/* SPDX-License-Identifier: MIT */
/*
 * vt.h - what a guest writes to the terminal, parsed, and let through or not
 *
 * A state machine over bytes. It keeps its state across reads, so a sequence
 * may be split anywhere; it never allocates; and it never passes a guest's
 * sequence on: it reads it, and writes its own, complete one with the same
 * meaning. So the terminal is never left inside a sequence or a character,
 * and what is not understood is not sent.
 *
 *	safe	text, \n \t \r \b, colours, cursor movement, erasing, scrolling,
 *		and the modes a full-screen program needs, each undone later.
 *		At most VT_BELLS bells. Everything else is dropped and counted.
 *	plain	text, \n \t \r \b. Everything else is dropped and counted.
 *	raw	everything, as it is; parsed along to know what to undo.
 *
 * In safe and plain a byte that is not UTF-8 is shown as \xNN, and so is a C1
 * control, in either of its forms, which is counted too. Other controls that
 * no terminal obeys usefully are shown as ^X; NUL is dropped and counted, ENQ
 * counted as the query it is. A sequence longer than VT_SEQUENCE_MAX, or one
 * broken by a control, counts once, and what follows is text again: an
 * unfinished title cannot swallow the rest of what a cell says. Strings end
 * at ST, CAN, SUB or ESC, at BEL where it is an OSC, and (but for DCS, whose
 * data may have lines) at the end of the line.
 *
 * Widths come from wcwidth(3): the caller has set LC_CTYPE to a UTF-8 locale.
 */
#ifndef REPL_TERM_VT_VT_H
#define REPL_TERM_VT_VT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VT_BELLS = 8, VT_SEQUENCE_MAX = 4096, VT_PARAMS = 32, VT_OUT = 8192 };

enum vt_mode { VT_SAFE, VT_PLAIN, VT_RAW };

/* What only our own lines may use; see output_frame(). */
enum vt_reserve {
	VT_RESERVE_NOTHING,
	VT_RESERVE_FAINT, /* SGR 2 is taken out of a guest's colours */
	VT_RESERVE_BAR,	  /* U+00A6, broken bar, is shown as \xa6 */
};

/* What was dropped. vt_drop_name() has the words. */
enum vt_drop {
	VT_DROP_TITLE,
	VT_DROP_CLIPBOARD,
	VT_DROP_HYPERLINK,
	VT_DROP_OSC, /* any other */
	VT_DROP_DCS,
	VT_DROP_APC,
	VT_DROP_PM,
	VT_DROP_SOS,
	VT_DROP_QUERY, /* whatever a terminal would answer */
	VT_DROP_WINDOW,
	VT_DROP_MOUSE,
	VT_DROP_MODE,
	VT_DROP_CHARSET,
	VT_DROP_SCROLLBACK, /* erasing lines that are not the cell's */
	VT_DROP_FORMAT,	    /* colours and movement: in plain, or malformed */
	VT_DROP_C1,
	VT_DROP_CONTROL,
	VT_DROP_BELL,
	VT_DROP_UNKNOWN,
	VT_DROP_UNFINISHED, /* the cell ended inside it */
	VT_DROP_KINDS,
};

enum vt_state { VT_GROUND, VT_ESC, VT_CSI, VT_STRING, VT_STRING_ESC };

typedef void vt_emit(void *arg, const void *buf, size_t n);

/* How the next character will look and where; what DECSC saves. */
struct vt_pen {
	int column;	 /* 0 is the left edge; -1 is not known */
	bool style;	 /* some SGR is on */
	bool g0, g1, so; /* line drawing designated; shifted out */
};

/* Caller's storage; read freely, write through the functions. */
struct vt {
	enum vt_mode mode;
	enum vt_reserve reserve;
	int columns;	 /* of the terminal; 0: it never wraps */
	bool lf_returns; /* the terminal makes \r\n of \n (it is cooked) */
	vt_emit *emit;
	void *arg;

	enum vt_state state;
	uint8_t u[4]; /* a character that is not all there */
	uint8_t u_n;
	char prefix, inter; /* of a CSI, and inter of an ESC; 0: none */
	bool malformed;
	int n_params;
	int16_t params[VT_PARAMS]; /* -1: empty */
	uint32_t colons;	   /* bit i: params[i] follows a colon */
	enum vt_drop string;	   /* which one we are in */
	int osc;		   /* its number so far; -1: it has ended */
	size_t length;		   /* of the sequence so far */

	struct vt_pen pen, saved;
	bool has_saved;
	int alternate_column; /* where the cursor was before that screen */
	uint32_t modes;	      /* bit per row of the mode table: changed */
	bool keypad, insert, region, exotic;
	unsigned bells;

	uint64_t dropped[VT_DROP_KINDS];
	uint64_t faint; /* sequences that lost their SGR 2 */
	size_t out_n;
	char out[VT_OUT];
};

/* Start on a terminal whose modes are as they should be and whose cursor is
 * in column 0. Output goes to `emit`, in pieces of any size. */
void vt_init(struct vt *v, enum vt_mode mode, vt_emit *emit, void *arg);

/* Filter `n` bytes. What comes of them may wait for vt_flush(). */
void vt_feed(struct vt *v, const void *buf, size_t n);

/* Emit all that is ready. */
void vt_flush(struct vt *v);

/* No more bytes come. An unfinished sequence is counted, an unfinished
 * character shown; in raw mode the terminal is brought out of the sequence.
 * With `cut` the bytes go on but will not be shown: nothing is counted. All
 * is emitted, here and in vt_undo(). */
void vt_finish(struct vt *v, bool cut);

/* Undo what was left on, and only that: other screen, colours, hidden cursor,
 * scroll region, character sets, modes. Nothing is emitted when nothing was. */
void vt_undo(struct vt *v);

/* "title", "clipboard", ... */
const char *vt_drop_name(enum vt_drop kind);

#endif
