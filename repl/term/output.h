/* SPDX-License-Identifier: MIT */
/*
 * output.h - a cell's output, from the pty to the terminal
 *
 *	end mark → limit → filter (vt.h) → sink
 *
 * A cell's bytes go in as they are read, split anywhere. What may be shown
 * comes out through the sink. The first `head_bytes` are streamed. After them
 * the output is counted, and only its last bytes are kept and shown at the
 * end: after a flood the traceback is there. Memory is one buffer, allocated
 * at the start, however much a cell writes.
 *
 * The end mark, ESC _ 32 hexadecimal digits ESC \, is looked for in the bytes
 * as they come, before anything else. So it is found behind half a character,
 * inside a sequence that the cell left unfinished, and past the limit, in
 * every mode. Bytes are held back only while they may still become the mark.
 *
 * A guest must not be able to forge or remove frame lines, our own lines in
 * square brackets:
 *
 *	- They begin with a broken bar, which nothing else on the terminal has:
 *	  the filter, text_safe() and the editor show it as something else.
 *	  Colours, brackets and places could all be imitated.
 *	- They begin in column 0 of an empty row, in the terminal's usual modes,
 *	  with nothing below. What is written after one has no way back above
 *	  it: from then on the cursor's edge is the row below (vt.h).
 *	- What is written after a cell's end, or behind the limit, is text and
 *	  colours, below a frame line that says so.
 *	- What is said while the alternate screen is up is said again on the
 *	  main one.
 *
 * In raw mode a guest can draw anything.
 */
#ifndef REPL_TERM_OUTPUT_H
#define REPL_TERM_OUTPUT_H

#include "repl/term/vt/vt.h"
#include "repl/text/strbuf.h"

struct err;

enum {
	OUTPUT_MARK_BYTES = 16,
	OUTPUT_MARK_STEM = 34, /* of the mark, without its end */
	OUTPUT_MARK_LENGTH = 36
};

/* Takes the text of a frame line, without brackets and line end. */
typedef void output_line(void *arg, const char *text);

/* What another screen needs to show the same, in its order. */
enum output_copied {
	OUTPUT_BYTES, /* the cell's that are shown, before they are filtered */
	OUTPUT_LINE,  /* the text of a frame line */
	OUTPUT_BREAK, /* what comes next begins a line */
};
typedef void output_copy(
	void *arg, enum output_copied what, const void *buf, size_t n);

struct output_opts {
	enum vt_mode mode;
	bool colour;
	int rows, columns; /* of the terminal; 0: not known */
	bool lf_returns;   /* the terminal is cooked: \n also returns */
	bool alone;	   /* no frame line is above or below the output */
	uint64_t head_bytes;
	const uint8_t *mark; /* OUTPUT_MARK_BYTES; NULL: there is none */
	unsigned cell;	     /* to offer ":out 12"; 0: not offered */
	vt_emit *sink;	     /* takes the bytes for the terminal */
	vt_emit *tap;	     /* takes all of the cell's bytes; or NULL */
	output_line *line;   /* NULL: output_frame() and \r\n to the sink */
	output_copy *copy;   /* or NULL */
	void *arg;	     /* of all four */
};

struct output_report {
	uint64_t head;	/* shown as they came */
	uint64_t shown; /* head and tail */
	uint64_t cut;	/* the rest of what the cell wrote */
	uint64_t dropped[VT_DROP_KINDS];
	bool newline_added; /* because the cursor was not on an empty row */
};

/* Caller's storage; opaque. */
struct output {
	struct output_opts opts;
	struct vt vt;
	char mark[OUTPUT_MARK_LENGTH + 1];
	size_t held; /* bytes of the mark that were seen */
	bool marked;
	uint64_t total, head, background;
	uint8_t *tail;
	size_t tail_size, tail_at; /* a ring; where the next byte goes */
	struct strbuf said;	   /* on the alternate screen, a line each */
};

/* Make room for a tail of `tail_bytes`, which may be 0; once a session. 0, or
 * -1 with `e`. output_close() frees. */
int output_open(struct output *o, size_t tail_bytes, struct err *e);
void output_close(struct output *o);

/* Begin a cell, with the terminal in its usual modes and the cursor in column
 * 0. Borrows only what `arg` points to. */
void output_begin(struct output *o, const struct output_opts *opts);

/* Take a new size of the terminal. */
void output_resize(struct output *o, int rows, int columns);

/* Say a frame line while the cell writes. */
void output_say(struct output *o, const char *text);

/* Whether a picture can stand in the output now: not on the alternate screen,
 * and not past the limit. */
bool output_has_room(const struct output *o);

/* Draw a picture while the cell writes: a sequence of ours that begins in
 * column 0 of an empty row, and ends in column 0 of another, with nothing
 * below. It counts as output of the cell's. False where that is more than
 * may be shown, and nothing is drawn. */
bool output_draw(struct output *o, const char *s, size_t n);

/* What comes next draws lines again when keys are pressed: break those that are
 * longer than the terminal is wide. */
void output_steer(struct output *o);

/* Take bytes from the pty. Returns how many were the cell's, with its mark.
 * What stands behind a mark with another end, BEL, begins in column 0. What
 * follows the mark is background output, and is left to the caller. */
size_t output_feed(struct output *o, const void *buf, size_t n);

/* What comes next begins a line, unless nothing more is shown. */
void output_break(struct output *o);

/* The mark that was seen was not the end. */
void output_unmark(struct output *o);

/* Whether the mark was seen. */
bool output_is_marked(const struct output *o);

/* End a cell, marked or not: show the tail below a line that says what is
 * missing, undo the modes that were left on, go to column 0. */
void output_end(struct output *o, struct output_report *r);

/* Show output that came after the mark or between cells, and leave the terminal
 * as output_end() does. The caller has said above it what it is. At most
 * head_bytes are shown until the next cell begins. The sink prints line by
 * line: \n also returns. */
void output_background(
	struct output *o, const void *buf, size_t n, struct output_report *r);

/* Whether no more of it is shown until the next cell begins. */
bool output_background_is_over(const struct output *o);

/* Add `r` to `sum`, then report several pieces of background together. */
void output_background_add(
	struct output_report *sum, const struct output_report *r);
void output_background_summary(
	const struct output_report *sum, output_line *line, void *arg);

/* Undo the modes for somebody else who takes the terminal while the guest
 * still writes. */
void output_suspend(struct output *o);

/* Another terminal takes what comes from now on: forget the modes of this one,
 * without undoing them. Whether the alternate screen was up. */
bool output_move(struct output *o);

/* On the other terminal, in column 0 of an empty row: let a full-screen program
 * have its screen again. */
void output_take_screen(struct output *o);

/* Say below the output what was dropped, if anything was. */
void output_summary(
	const struct output_report *r, output_line *line, void *arg);

/* How a frame line looks. */
struct output_look {
	bool colour;
	int columns;	 /* of the terminal; 0: lines are not folded */
	const char *end; /* of a line */
};

/* Add a frame line: `text` in brackets, made safe, behind a broken bar, and
 * faint with colour. A line that is too long for the terminal goes on below its
 * first word, and every part is marked. */
void output_frame(
	struct strbuf *b, const char *text, const struct output_look *look);

#endif
