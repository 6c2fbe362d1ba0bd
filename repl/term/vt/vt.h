/* SPDX-License-Identifier: MIT */
/*
 * vt.h - the filter of a guest's output to the terminal
 *
 * A state machine over bytes. Its state lasts across calls, so a sequence may
 * be split anywhere. The filter allocates nothing. In safe and plain it passes
 * on no sequence of a guest's: it parses the sequence and writes a complete one
 * of its own with the same meaning. So the terminal is never left inside a
 * sequence or a character, and gets no sequence that the filter does not know.
 *
 *	safe	text, \n \t \r \b, colours, cursor movement, erasing, scrolling,
 *		the modes that a full-screen program needs (undone later), and
 *		at most VT_BELLS bells. The filter drops and counts the rest.
 *	plain	text, \n \t \r \b. The filter drops and counts the rest.
 *	raw	everything, unchanged; parsed only to know what to undo.
 *
 * In safe and plain:
 *	- the guest cannot reach the rows above the one where its output began:
 *	  the filter stops the cursor below them. Before the guest places the
 *	  cursor on the screen, or erases or scrolls rows that may not be its
 *	  own, the filter scrolls away all that the screen shows; then every
 *	  row is the guest's. This holds in a window of another size, and on a
 *	  terminal without an alternate screen;
 *	- of the sequences in late output, only SGR passes;
 *	- the filter shows the broken bar, with which frame lines begin, and
 *	  characters that look like it (utf8_is_bar()) as a colon;
 *	- it shows a byte that is not UTF-8 as \xNN; so it does a C1 control in
 *	  either form, and counts it;
 *	- it shows other controls as ^X; it drops and counts NUL and ENQ;
 *	- a sequence that is longer than VT_SEQUENCE_MAX, or that a control
 *	  breaks, counts once, and text follows: an unfinished title cannot
 *	  swallow the rest of a cell's output;
 *	- a string ends at ST, CAN, SUB or ESC; an OSC or a title also at BEL;
 *	  and each but DCS, whose data may have lines, at the end of the line.
 *
 * Widths come from wcwidth(3): the caller sets LC_CTYPE to a UTF-8 locale.
 */
#ifndef REPL_TERM_VT_VT_H
#define REPL_TERM_VT_VT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	VT_BELLS = 8,
	VT_SEQUENCE_MAX = 4096,
	VT_PARAMS = 32,
	VT_ROW = 1024,
	VT_OUT = 8192
};

enum vt_mode { VT_SAFE, VT_PLAIN, VT_RAW };

/* Kinds of dropped sequences, and their names. */
#define VT_DROPS(X)                                                            \
	X(TITLE, "title")                                                      \
	X(CLIPBOARD, "clipboard")                                              \
	X(HYPERLINK, "hyperlink")                                              \
	X(OSC, "OSC") /* any other */                                          \
	X(DCS, "DCS")                                                          \
	X(APC, "APC")                                                          \
	X(PM, "PM")                                                            \
	X(SOS, "SOS")                                                          \
	X(QUERY, "query") /* a terminal would answer it */                     \
	X(WINDOW, "window operation")                                          \
	X(MOUSE, "mouse")                                                      \
	X(MODE, "mode")                                                        \
	X(CHARSET, "character set")                                            \
	X(SCROLLBACK, "scrollback erase") /* other lines than the cell's */    \
	X(FORMAT, "formatting")		  /* malformed, or in plain */         \
	X(C1, "C1 control")                                                    \
	X(CONTROL, "control character")                                        \
	X(BELL, "bell")                                                        \
	X(UNKNOWN, "unknown")                                                  \
	X(UNFINISHED, "unfinished") /* the cell ended inside a sequence */

#define VT_DROP_ENUM(kind, name) VT_DROP_##kind,
enum vt_drop { VT_DROPS(VT_DROP_ENUM) VT_DROP_KINDS };

enum vt_state { VT_GROUND, VT_ESC, VT_CSI, VT_STRING, VT_STRING_ESC };

typedef void vt_emit(void *arg, const void *buf, size_t n);

/* The cursor's place and the next character's look, which DECSC saves. */
struct vt_pen {
	int column;	 /* 0: the left edge; -1: unknown */
	bool style;	 /* some SGR is on */
	bool g0, g1, so; /* line drawing designated; shifted out */
	int below;	 /* rows below the output's first one, at least */
};

/* Caller's storage, all of which others may read. The caller may set the part
 * up to `arg` after vt_init(); only the filter writes the rest. */
struct vt {
	enum vt_mode mode;
	int rows;	 /* of the terminal; 0: unknown */
	int columns;	 /* the same; 0: text never wraps */
	bool late;	 /* lines of ours stand right above the output */
	bool alone;	 /* no line of ours is on the screen: the bar passes */
	bool free;	 /* every row on the screen is the guest's */
	bool lf_returns; /* a cooked terminal makes \r\n of \n */
	bool steers;	 /* the guest moves the cursor: we break its lines */
	vt_emit *emit;
	void *arg;

	enum vt_state state;
	uint8_t u[4]; /* the first u_n bytes of a character */
	uint8_t u_n;
	char prefix, inter, final; /* of a sequence; 0: none */
	bool malformed;
	int n_params;
	int16_t params[VT_PARAMS]; /* -1: empty */
	uint32_t colons;	   /* bit i: params[i] follows a colon */
	enum vt_drop string;	   /* the kind of this string */
	int osc;		   /* its number so far; -1: no more digits */
	size_t length;		   /* of the sequence so far */

	struct vt_pen pen, saved;
	bool has_saved;
	bool put;		/* we wrote something for this sequence */
	bool guessed;		/* terminals may disagree about pen.column */
	bool dirty;		/* the cursor's row may hold text */
	bool moved;		/* the rows below it may hold text */
	bool saved_nowrap;	/* the terminal may have saved "do not wrap" */
	bool wrap_unsure;	/* the terminal may have restored that */
	int deepest;		/* the largest pen.below */
	struct vt_pen main_pen; /* before the alternate screen */
	bool main_dirty;
	bool resized;	/* the size changed on the alternate screen */
	uint32_t modes; /* changed ones: a bit per row of the table */
	bool keypad, insert, region, exotic;
	unsigned bells;
	bool row_lost;	  /* `row` does not have all that the row shows */
	bool row_wrapped; /* the row goes on from the one above */
	size_t row_n;
	size_t row_behind; /* columns behind the cursor that may hold text */

	uint64_t dropped[VT_DROP_KINDS];
	size_t out_n;
	char row[VT_ROW]; /* text and SGR of the cursor's row, up to it */
	char out[VT_OUT];
};

/* Start on a terminal with its usual modes, the cursor in column 0 and nothing
 * below it. The filter calls `emit` with pieces of any size. */
void vt_init(struct vt *v, enum vt_mode mode, vt_emit *emit, void *arg);

/* Take a new size of the terminal, which has moved the rows it shows. */
void vt_resize(struct vt *v, int rows, int columns);

/* Filter `n` bytes. The output may wait for vt_pen_flush(). */
void vt_feed(struct vt *v, const void *buf, size_t n);

/* End the input and flush. Count an unfinished sequence and show an unfinished
 * character; in raw mode bring the terminal out of the sequence. `cut`: the
 * caller does not show the rest of the output; then count and show neither. */
void vt_finish(struct vt *v, bool cut);

/* Undo the guest's changes, and flush: alternate screen, colours, hidden
 * cursor, scroll region, character sets, modes. Emits nothing if there are
 * none. */
void vt_undo(struct vt *v);

/* Undo all that, and go to column 0 of an empty row with nothing below, where
 * the output begins anew. True if we emitted a newline. */
bool vt_begin_row(struct vt *v);

/* "title", "clipboard" ... */
const char *vt_drop_name(enum vt_drop kind);

/* ---- pen.c: writes to the terminal, and tracks the cursor ---- */

/* Emit the bytes that wait. */
void vt_pen_flush(struct vt *v);

/* True if the alternate screen is up. */
bool vt_pen_is_alternate(const struct vt *v);

/* The *n bytes of text and SGR in the cursor's row (borrowed), if the cursor is
 * behind them, nothing is below, and the terminal is in its usual modes. NULL:
 * this is not so, or not known. */
const char *vt_pen_row(const struct vt *v, size_t *n);

/* From here on: for the filter alone. vt.c finds where a sequence begins and
 * ends. sequence.c carries the sequence out. Both call pen.c; vt.c calls
 * sequence.c. */

/* Rows of sequence.c's table of modes: text wraps; the alternate screen's. */
enum { VT_MODE_WRAP = 2, VT_MODE_47 = 4, VT_MODE_1047 = 6, VT_MODE_1049 };
#define VT_ALTERNATE                                                           \
	(1u << VT_MODE_47 | 1u << VT_MODE_1047 | 1u << VT_MODE_1049)

/* True if text runs on into the next line at the right edge. */
bool vt_pen_wraps(const struct vt *v);

/* True if rows on the screen that is up may not be the guest's. */
bool vt_pen_is_bounded(const struct vt *v);

/* Emit bytes of text or of a sequence. In raw mode this emits nothing:
 * vt_feed() has emitted the guest's own bytes. */
void vt_pen_put(struct vt *v, const char *s, size_t n);
/* Emit in every mode. */
void vt_pen_put_always(struct vt *v, const char *s, size_t n);
/* Count a dropped sequence or control; in raw mode note a change of modes. */
void vt_pen_drop(struct vt *v, enum vt_drop kind);

/* Track `n` columns of text, which the caller has emitted. */
void vt_pen_advance(struct vt *v, size_t n);
/* Call this before a control or a sequence. At the right edge, terminals
 * disagree about which of them move the cursor, and which keep the next
 * character from wrapping: the column becomes a guess. */
void vt_pen_note_edge(struct vt *v);
/* Add `n` bytes, which the caller has emitted in so many columns, to the
 * cursor's row. */
void vt_pen_add_row(struct vt *v, const char *s, size_t n, size_t columns);
/* The cursor has gone back over the last column of its row. */
void vt_pen_leave_row(struct vt *v);
/* Emit a line feed. In the last row the terminal scrolls. */
void vt_pen_feed_line(struct vt *v);
/* Emit a return: go to column 0. */
void vt_pen_return(struct vt *v);

/* ---- sequence.c ---- */

/* Pass on or drop a whole control sequence, and record its changes. */
void vt_sequence_csi(struct vt *v);
/* Do the same with the escape sequence of v->inter and v->final. */
void vt_sequence_esc(struct vt *v);
/* Go left by `n` columns, at most to the left edge. */
void vt_sequence_left(struct vt *v, int n);
/* Forget which rows are the guest's: the window has another size. */
void vt_sequence_resize(struct vt *v);
/* vt_undo() without the flush. */
void vt_sequence_undo(struct vt *v);

#endif
