/* SPDX-License-Identifier: MIT */
/*
 * output.h - a cell's output, from the pty to the terminal
 *
 *	end mark → limit → filter (vt.h) → sink
 *
 * A cell's bytes go in as they are read, split anywhere; what may be shown
 * comes out through the sink. The first `head_bytes` are streamed. Past them
 * the cell goes on, its output is counted, and only the last of it is kept,
 * to be shown at the end: after a flood that is where the traceback is.
 * Memory is one buffer, allocated at the start, whatever a cell writes.
 *
 * The end mark, ESC _ 32 hexadecimal digits ESC \, is looked for in the bytes
 * as they come, before anything else looks at them. So it is found after half
 * a character, inside a sequence that the cell left unfinished, and past the
 * limit, in every mode. Bytes are held back only while they may still become
 * the mark.
 *
 * Frame lines, the lines of ours in square brackets, must not be mistaken for
 * a guest's. With colour they are faint, and in safe and plain no guest can
 * write faint text: SGR 2 is taken out of its colours (and that is said, once
 * a session). Without colour they begin with a broken bar, ¦, which no guest
 * can write: it is shown as \xa6. What this does not promise: a guest may
 * choose a grey that a person takes for faint, or draw a bar that is nearly
 * this one. But while it draws, its clock runs, and when it is over the last
 * lines above the prompt are ours, in modes that are ours. In raw mode a
 * guest can draw anything.
 */
#ifndef REPL_TERM_OUTPUT_H
#define REPL_TERM_OUTPUT_H

#include "repl/term/vt/vt.h"

struct err;
struct strbuf;

enum { OUTPUT_MARK_BYTES = 16, OUTPUT_MARK_LENGTH = 36 };

/* A line of ours, without its brackets and the end of the line. */
typedef void output_line(void *arg, const char *text);

struct output_opts {
	enum vt_mode mode;
	bool colour;
	int columns;	 /* of the terminal; 0: not known */
	bool lf_returns; /* the terminal is cooked: \n returns, too */
	uint64_t head_bytes;
	const uint8_t *mark; /* OUTPUT_MARK_BYTES; NULL: there is none */
	unsigned cell;	     /* for ":out 12"; 0: no such offer is made */
	vt_emit *sink;	     /* what goes to the terminal */
	vt_emit *tap;	     /* the cell's own bytes, unlimited; or NULL */
	output_line *line;   /* NULL: output_frame() and \r\n to the sink */
	void *arg;	     /* of all three */
};

struct output_report {
	uint64_t total; /* bytes the cell wrote; the mark is not counted */
	uint64_t head;	/* shown as they came */
	uint64_t shown; /* head and tail */
	uint64_t cut;	/* total - shown */
	uint64_t dropped[VT_DROP_KINDS];
	bool marked;	    /* the end mark was seen */
	bool newline_added; /* the cursor was not in column 0 */
	bool faint_first;   /* faint text was shown plain: not said yet */
};

/* Caller's storage; opaque. */
struct output {
	struct output_opts opts;
	struct vt vt;
	char mark[OUTPUT_MARK_LENGTH + 1];
	size_t held; /* bytes of the mark that have come */
	bool marked, faint_said;
	uint64_t total, head, background;
	uint8_t *tail;
	size_t tail_size, tail_at; /* a ring; where the next byte goes */
};

/* Make room for a tail of `tail_bytes`, which may be 0. The session's; 0, or
 * -1 with `e`. output_close() frees. */
int output_open(struct output *o, size_t tail_bytes, struct err *e);
void output_close(struct output *o);

/* A cell begins: the terminal is as it should be, the cursor in column 0.
 * Borrows nothing of `opts` but what `arg` points to. */
void output_begin(struct output *o, const struct output_opts *opts);

/* The terminal is now this wide. */
void output_resize(struct output *o, int columns);

/* Bytes from the pty. Returns how many were the cell's, its mark included:
 * fewer than `n`, or 0, once the mark has been seen. The rest is background
 * output, and still the caller's. */
size_t output_feed(struct output *o, const void *buf, size_t n);

/* True once the mark has been seen. */
bool output_is_marked(const struct output *o);

/* The cell is over, marked or not: show the tail, below a line that says what
 * is missing; undo the modes that were left on; go to column 0. */
void output_end(struct output *o, struct output_report *r);

/* Show what came after the mark, or while no cell runs, as output_end() would
 * leave it. Together no more than head_bytes until the next cell begins. The
 * sink prints it line by line: \n returns, too. */
void output_background(
	struct output *o, const void *buf, size_t n, struct output_report *r);

/* The same for several of them together: add `r` to `sum`, then say it. */
void output_background_add(
	struct output_report *sum, const struct output_report *r);
void output_background_summary(
	const struct output_report *sum, output_line *line, void *arg);

/* The lines that a report deserves below the output: what was dropped. None
 * when there is nothing to say. */
void output_summary(
	const struct output_report *r, output_line *line, void *arg);

/* How a frame line looks. */
struct output_look {
	bool colour;
	int columns;	 /* of the terminal; 0: it is not folded */
	const char *end; /* of a line */
};

/* Add a frame line: `text` in brackets, made safe, faint when there is colour,
 * and after a broken bar when there is not. Where it is too long for the
 * terminal it goes on below its first word, and what marks it stands on every
 * line. */
void output_frame(
	struct strbuf *b, const char *text, const struct output_look *look);

#endif
