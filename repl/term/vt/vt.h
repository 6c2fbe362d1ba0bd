/* SPDX-License-Identifier: MIT */
/*
 * vt.h - the filter of a guest's output to the terminal
 *
 * A state machine over bytes. Its state lasts across calls, so a sequence may
 * be split anywhere. The filter allocates nothing, and passes on no sequence of
 * a guest's: it parses the sequence and writes a complete one of its own with
 * the same meaning. So the terminal is never left inside a sequence or a
 * character, and gets nothing that the filter did not understand.
 *
 *	safe	text, \n \t \r \b, colours, cursor movement, erasing, scrolling,
 *		the modes that a full-screen program needs (undone later), and
 *		at most VT_BELLS bells. The rest is dropped and counted.
 *	plain	text, \n \t \r \b. The rest is dropped and counted.
 *	raw	everything, unchanged; parsed only to know what to undo.
 *
 * In safe and plain:
 *	- the rows above the one where the output began are out of reach: the
 *	  cursor stops at their edge. Before it goes to a place on the screen,
 *	  or before rows are erased or scrolled that may be others', all that
 *	  the screen shows is scrolled away, and the whole screen is free. This
 *	  holds when the terminal draws the output in another size, and when it
 *	  has no alternate screen;
 *	- of late output, SGR is all that passes of safe's sequences;
 *	- the broken bar, with which frame lines begin, is shown as a
 *	  colon, and so is what looks like it (utf8_is_bar());
 *	- a byte that is not UTF-8 is shown as \xNN. So is a C1 control in
 *	  either form, which is counted too;
 *	- other controls are shown as ^X; NUL and ENQ are dropped and counted;
 *	- a sequence that is longer than VT_SEQUENCE_MAX, or that a control
 *	  breaks, counts once, and text follows: an unfinished title cannot
 *	  swallow the rest of a cell's output;
 *	- a string ends at ST, CAN, SUB or ESC, an OSC also at BEL, and each
 *	  but DCS, whose data may have lines, at the end of the line.
 *
 * Widths come from wcwidth(3): the caller sets LC_CTYPE to a UTF-8 locale.
 */
#ifndef REPL_TERM_VT_VT_H
#define REPL_TERM_VT_VT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VT_BELLS = 8, VT_SEQUENCE_MAX = 4096, VT_PARAMS = 32, VT_OUT = 8192 };

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
	X(SCROLLBACK, "scrollback erase") /* lines that are not the cell's */  \
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

/* Where the next character goes and how it looks: what DECSC saves. */
struct vt_pen {
	int column;	 /* 0 is the left edge, -1 is not known */
	bool style;	 /* some SGR is on */
	bool g0, g1, so; /* line drawing designated; shifted out */
	int below;	 /* it surely is so many rows below the first one */
};

/* Caller's storage. Others read it; only the filter writes it, but for the
 * first part, which the caller may set after vt_init(). */
struct vt {
	enum vt_mode mode;
	int rows;	 /* of the terminal; 0: not known */
	int columns;	 /* the same; 0: text never wraps */
	bool late;	 /* lines of ours stand right above the output */
	bool alone;	 /* no line of ours stands anywhere: the bar passes */
	bool free;	 /* no row on the screen is anybody else's */
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
	enum vt_drop string;	   /* what dropping this string counts as */
	int osc;		   /* its number so far; -1: it has ended */
	size_t length;		   /* of the sequence so far */

	struct vt_pen pen, saved;
	bool has_saved;
	bool put;	   /* something went out for this sequence */
	bool guessed;	   /* terminals may disagree about pen.column */
	bool dirty;	   /* the cursor's row may hold text */
	bool moved;	   /* and so may the rows below it */
	bool saved_nowrap; /* some terminals save that text does not wrap */
	bool wrap_unsure;  /* and they may have brought that back */
	int deepest;	   /* the largest pen.below */
	struct vt_pen main_pen; /* before the alternate screen */
	bool main_dirty;
	bool resized;	/* while the alternate screen is up */
	uint32_t modes; /* changed ones: a bit per row of the table */
	bool keypad, insert, region, exotic;
	unsigned bells;

	uint64_t dropped[VT_DROP_KINDS];
	size_t out_n;
	char out[VT_OUT];
};

/* Start on a terminal with its usual modes, the cursor in column 0 and nothing
 * below it. Output goes to `emit`, in pieces of any size. */
void vt_init(struct vt *v, enum vt_mode mode, vt_emit *emit, void *arg);

/* Take a new size of the terminal, which has moved the rows it shows. */
void vt_resize(struct vt *v, int rows, int columns);

/* Filter `n` bytes. The output may wait for vt_pen_flush(). */
void vt_feed(struct vt *v, const void *buf, size_t n);

/* End the input and flush. An unfinished sequence is counted and an unfinished
 * character shown; in raw mode the terminal is brought out of the sequence.
 * With `cut` the guest wrote more, which is not shown: nothing is counted. */
void vt_finish(struct vt *v, bool cut);

/* Undo what the guest left on, and flush: alternate screen, colours, hidden
 * cursor, scroll region, character sets, modes. Emits nothing where nothing is
 * on. */
void vt_undo(struct vt *v);

/* Undo all that, and go to column 0 of an empty row with nothing below it, from
 * which the output begins anew. True when that took a newline. */
bool vt_begin_row(struct vt *v);

/* "title", "clipboard" ... */
const char *vt_drop_name(enum vt_drop kind);

/* ---- pen.c: what goes out, and where that leaves the cursor ---- */

/* Emit what waits. */
void vt_pen_flush(struct vt *v);

/* True if the alternate screen is up. */
bool vt_pen_is_alternate(const struct vt *v);

/* From here on: for the filter alone. vt.c finds where a sequence begins and
 * ends. sequence.c knows what the sequence means and what it leaves behind.
 * Both call pen.c; vt.c calls sequence.c. */

/* The rows of the table of modes that pen.c looks at, and those of them that
 * name the alternate screen. */
enum { VT_MODE_WRAP = 2, VT_MODE_47 = 4, VT_MODE_1047 = 6, VT_MODE_1049 };
#define VT_ALTERNATE                                                           \
	(1u << VT_MODE_47 | 1u << VT_MODE_1047 | 1u << VT_MODE_1049)

/* True if text runs on into the next line at the right edge. */
bool vt_pen_wraps(const struct vt *v);

/* True if others' rows may stand on the screen that is up. */
bool vt_pen_is_bounded(const struct vt *v);

/* Emit bytes of text or of a sequence. In raw mode this does nothing: the
 * guest's own bytes are out already. */
void vt_pen_put(struct vt *v, const char *s, size_t n);
/* Emit in every mode. */
void vt_pen_put_always(struct vt *v, const char *s, size_t n);
/* Count something that is not passed on. */
void vt_pen_drop(struct vt *v, enum vt_drop kind);

/* Move the cursor right by `n` columns of text. */
void vt_pen_advance(struct vt *v, size_t n);
/* At the right edge, terminals disagree about which sequences move the cursor,
 * and which keep the next character from wrapping. */
void vt_pen_note_edge(struct vt *v);
/* Go to the next row; the last one is scrolled. */
void vt_pen_feed_line(struct vt *v);
/* Go to column 0. */
void vt_pen_return(struct vt *v);

/* ---- sequence.c ---- */

/* Pass on or drop a whole control sequence, and remember what it changes. */
void vt_sequence_csi(struct vt *v);
/* Pass on or drop an escape sequence, of v->inter and v->final. */
void vt_sequence_esc(struct vt *v);
/* Go left by `n` columns, and not beyond the left edge. */
void vt_sequence_left(struct vt *v, int n);
/* The window has another size. */
void vt_sequence_resize(struct vt *v);
/* vt_undo() without the flush. */
void vt_sequence_undo(struct vt *v);

#endif
