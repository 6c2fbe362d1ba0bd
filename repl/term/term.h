/* SPDX-License-Identifier: MIT */
/*
 * term.h - the terminal: keys, output, what is typed ahead
 *
 *	ask.c		what the person's terminal can draw
 *	keys.c		bytes of a terminal to keys
 *	output.c	a cell's output, from the pty to the terminal
 *	pager.c		a long text, a screenful at a time
 *	typed.c		the keys typed while a cell runs, and which of them it
 *			has not read
 *	relay.c		the front end's poll loop while a cell or a program runs
 *	terminal.c	the person's own terminal, and signals as something to
 *			poll
 */
#ifndef REPL_TERM_TERM_H
#define REPL_TERM_TERM_H

#include "repl/config/config.h"
#include "repl/term/vt/vt.h"
#include "repl/text/text.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <termios.h>
#include <wchar.h>

struct err;
struct jail;
struct signals;
struct terminal;

/* ---- ask.c ---- */

/*
 * The terminal is asked once, when the first picture is to be drawn. Every
 * terminal answers the last question (DA1), and answers come in order: with
 * that answer all have come. Keys that are typed meanwhile stay keys, and late
 * answers never become keys.
 */

/* Longest answer. */
#define ASK_MAX 256
/* A slow line's way there and back. */
#define ASK_WAIT_MS 500

/* Caller's storage; all zero has not asked. Only ask.c writes it. */
struct ask {
	int asked;		   /* how often */
	bool answered;		   /* all of it */
	bool kitty, iterm2, sixel; /* protocols that the terminal has */
	bool true_colour;	   /* 24 bits */
	int registers;		   /* colours of a sixel picture; 0: unknown */
	int cell_width, cell_height; /* in pixels; 0: unknown */
	size_t n;		     /* of an answer that has begun */
	char begun[ASK_MAX];
};

/* Add the questions, to be written at the beginning of an empty row, and an
 * erasure of that row: some terminals print questions that they do not know. */
void ask_write(struct ask *a, struct strbuf *out);
/* Then wait for the answers. Keys that came are added to `keys`. */
void ask_wait(struct ask *a, const struct terminal *t, struct strbuf *keys);
/* Add those of these bytes to `keys` that are no late answer. */
void ask_filter(struct ask *a, const char *s, size_t n, struct strbuf *keys);
/* Add the held beginning of an answer to `keys`: another reader follows. */
void ask_give_back(struct ask *a, struct strbuf *keys);
/* True if the terminal was never asked, or was too slow and may be again. */
bool ask_is_due(const struct ask *a);

/* ---- keys.c ---- */

/*
 * A pure state machine. Text is decoded from UTF-8. An escape sequence becomes
 * a key, or is dropped if it is unknown: an answer of the terminal is never
 * taken for text. Pasted text comes character by character between
 * KEY_PASTE_BEGIN and KEY_PASTE_END.
 */

/* The code of Control and a letter. */
#define KEYS_CTRL(c) ((c)&0x1F)

/* Controls keep their codes (1 to 31 and 127). The other keys lie in
 * 0x80..0xFF, so that a table of 256 has a command for every key. */
enum {
	KEY_NUL = 0x80, /* Ctrl-Space */
	KEY_TEXT,
	KEY_UP,
	KEY_DOWN,
	KEY_LEFT,
	KEY_RIGHT,
	KEY_HOME,
	KEY_END,
	KEY_DELETE,
	KEY_PAGE_UP,
	KEY_PAGE_DOWN,
	KEY_WORD_LEFT,
	KEY_WORD_RIGHT,
	KEY_TOP,
	KEY_BOTTOM,
	KEY_ALT_ENTER,
	KEY_ALT_BACKSPACE,
	KEY_ALT_D,
	KEY_BACK_TAB,
	KEY_ESCAPE,
	KEY_PASTE_BEGIN,
	KEY_PASTE_TEXT,
	KEY_PASTE_END,
};

struct key {
	int code;
	wchar_t c; /* of KEY_TEXT and KEY_PASTE_TEXT */
};

/* Most keys that one byte can complete. */
#define KEYS_OUT_MAX 8

/* Numbers of an escape sequence that are kept; later ones are ignored. */
#define KEYS_PARAMS_MAX 4

struct keys {
	int state;
	int skip;     /* bytes that are dropped yet */
	uint8_t u[4]; /* the first u_n bytes of a character */
	uint8_t u_n;
	int param[KEYS_PARAMS_MAX];
	int params;
	bool private_mark; /* ESC [ ? and the like: never a key */
	bool escape_alone; /* Escape, then a letter, are two keys and not Alt */
	bool paste;	   /* inside pasted text */
	bool stalled;	   /* part of the paste was delivered before its end */
	bool cr;	   /* the last pasted character was a carriage return */
	int match;	   /* bytes of the end of a paste seen so far */
};

/* Begin in the ground state. */
void keys_init(struct keys *k);
/* Take one byte. Returns how many keys it completes, 0 to KEYS_OUT_MAX. */
int keys_feed(struct keys *k, unsigned char byte, struct key *out);
/* Longest wait for the next byte before keys_timeout(); -1: for ever. */
int keys_wait_ms(const struct keys *k);
/* No byte came in that time: end the sequence or character. Returns how many
 * keys that completes. */
int keys_timeout(struct keys *k, struct key *out);

/* ---- output.c ---- */

/*
 * 	end mark → limit → filter (vt.h) → sink
 *
 * A cell's bytes go in as they are read, split anywhere. The first `head_bytes`
 * are streamed. After them the output is counted, and its last bytes are shown
 * at the end: after a flood the traceback is there. Memory is one buffer,
 * allocated at the start.
 *
 * The end mark, ESC _ 32 hexadecimal digits ESC \, is looked for in the bytes
 * as they come, before anything else. So it is found behind half a character,
 * inside a sequence that the cell left unfinished, and past the limit, in
 * every mode. Bytes are held back only while they may still become the mark.
 *
 * A guest must not be able to forge or remove frame lines, our own lines in
 * square brackets:
 *
 * 	- They begin with a broken bar, which nothing else on the terminal has:
 * 	  the filter, text_safe() and the editor show it as something else.
 * 	  Colours, brackets and places could all be imitated.
 * 	- They begin in column 0 of an empty row, in the terminal's usual modes,
 * 	  with nothing below. Later output cannot go back above one: from then
 * 	  on the cursor's edge is the row below (vt.h).
 * 	- Output after a cell's end, or behind the limit, is text and colours,
 * 	  below a frame line that says so.
 * 	- A frame line on the alternate screen is repeated on the main one.
 *
 * In raw mode a guest can draw anything.
 */

enum {
	OUTPUT_MARK_DIGITS = 32,
	OUTPUT_MARK_STEM = 34, /* of the mark, without its end */
	OUTPUT_MARK_LENGTH = 36
};

/* Takes the text of a frame line, without brackets and line end. */
typedef void output_line(void *arg, const char *text);

/* The parts of a copy for another screen, in their order. */
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
	const char *mark;  /* in hexadecimal, lower case; NULL: there is none */
	unsigned cell;	   /* to offer ":out 12"; 0: not offered */
	vt_emit *sink;	   /* takes the bytes for the terminal */
	vt_emit *tap;	   /* takes all of the cell's bytes; or NULL */
	output_line *line; /* NULL: output_frame() and \r\n to the sink */
	output_copy *copy; /* or NULL */
	void *arg;	   /* of all four */
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

/* Write a frame line while the cell writes. */
void output_say(struct output *o, const char *text);

/* True if a picture can stand in the output now: not on the alternate screen,
 * and not past the limit. */
bool output_has_room(const struct output *o);
/* Draw a picture while the cell writes: a sequence of ours that begins in
 * column 0 of an empty row, and ends in column 0 of another, with nothing
 * below. Its bytes count as the cell's. False, and nothing is drawn, where they
 * are too many. */
bool output_draw(struct output *o, const char *s, size_t n);

/* A program that draws lines again at each key follows: break lines longer than
 * the terminal is wide. */
void output_steer(struct output *o);

/* Take bytes from the pty. Returns how many were the cell's, with its mark.
 * Bytes behind a mark that ends in BEL begin in column 0. Bytes behind the mark
 * itself are background output, and left to the caller. */
size_t output_feed(struct output *o, const void *buf, size_t n);
/* Begin a line with the next bytes, unless no more are shown. */
void output_break(struct output *o);
/* Go on: the mark that was seen was not the end. */
void output_unmark(struct output *o);
bool output_is_marked(const struct output *o);

/* True if a cell that ended at ended_ms has shown all that it will: up to its
 * mark, or the tty, which last had bytes at heard_ms, has been silent since, or
 * what comes must be background output. `dead`: so is every writer, and only
 * what is on its way through the kernel can come. Look again after
 * output_silence_ms(). Milliseconds of now_ms(). */
bool output_is_over(
	const struct output *o, int64_t ended_ms, int64_t heard_ms, bool dead);
int output_silence_ms(bool dead);

/* End a cell, marked or not: show the tail below a line that says how much is
 * missing, undo the modes that were left on, go to column 0. */
void output_end(struct output *o, struct output_report *r);

/* Show output that came after the mark or between cells, and leave the terminal
 * as output_end() does. The caller has announced it above. At most head_bytes
 * are shown until the next cell begins. The sink prints line by line: \n also
 * returns. */
void output_background(
	struct output *o, const void *buf, size_t n, struct output_report *r);
/* True if no more of it is shown until the next cell begins. */
bool output_background_is_over(const struct output *o);
/* Add `r` to `sum`, then report several pieces of background together. */
void output_background_add(
	struct output_report *sum, const struct output_report *r);
void output_background_summary(
	const struct output_report *sum, output_line *line, void *arg);

/* Undo the modes while another program takes the terminal and the guest still
 * writes. */
void output_suspend(struct output *o);
/* Another terminal takes the output from now on: forget the modes of this one
 * without undoing them. True if the alternate screen was up. */
bool output_move(struct output *o);
/* On the other terminal, in column 0 of an empty row: let a full-screen program
 * have its screen again. */
void output_take_screen(struct output *o);

/* Say below the output how many sequences were dropped, if any were. */
void output_summary(
	const struct output_report *r, output_line *line, void *arg);

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

/* ---- pager.c ---- */

/*
 * Pure: takes a text, a size and keys, gives rows and what draws them. The
 * terminal's last row is the pager's own.
 */

/* Caller's storage; all of it is the pager's own. */
struct pager {
	const char *text;
	size_t n;
	int rows, columns;

	size_t *starts; /* where rows of the text begin, as far as is known */
	size_t nstarts;
	bool whole; /* all of them are known */
	size_t top; /* the first row on the screen */

	struct utf8_wide sought; /* what n and N search for */
	bool exact;		 /* it holds a capital */
	bool upwards;		 /* it was searched for with ? */
	size_t found;		 /* where it was found last */
	struct utf8_wide typed;	 /* what is being typed behind / or ? */
	char asked;		 /* that character; 0: nothing is typed */
	const char *note;	 /* in place of the usual last row; or NULL */

	bool drawn; /* the screen shows rows from `drawn_top` on */
	size_t drawn_top;
};

/* Begin at the top of `n` bytes (borrowed), at least one, that text_lines()
 * made, on a terminal of that size. */
void pager_open(
	struct pager *p, const char *text, size_t n, int rows, int columns);
void pager_close(struct pager *p);
/* True if the text and the last row fit on the screen. */
bool pager_fits(struct pager *p);
/* The terminal has another size. */
void pager_resize(struct pager *p, int rows, int columns);
/* A key was pressed. False: the person leaves the pager. */
bool pager_press(struct pager *p, const struct key *key);
/* Append row `i` of the screen, with matches in reverse video. */
void pager_add_row(struct pager *p, int i, struct strbuf *b);
/* Append the last row. */
void pager_add_status(struct pager *p, struct strbuf *b);
/* Append the difference between the last drawing and this one. */
void pager_draw(struct pager *p, struct strbuf *b);

/* ---- typed.c ---- */

/*
 * The keys go through a line discipline that the cell controls: it can make
 * any key the end of file, the erase key, or another character. So the keys
 * themselves are kept here. The tty's rest at the end tells only how many of
 * the last keys were not read.
 */

/* All zero is empty. */
struct typed {
	struct strbuf keys;   /* since the cell was sent, or the last of them */
	size_t sent;	      /* so many of them were written to the tty */
	bool torn;	      /* what was typed before them is not kept */
	bool lost;	      /* there were too many to keep */
	struct strbuf edited; /* what was sent, as a tty edits it */
};

/* Forget all keys, and release the memory. */
void typed_forget(struct typed *t);
/* Add keys. False where there are too many. */
bool typed_add(struct typed *t, const char *s, size_t n);
/* The person has interrupted the cell: forget the keys that were not sent, and
 * count the others as read. */
void typed_drop(struct typed *t);

/*
 * The keys for the next prompt: whole lines of which nothing was read, and the
 * beginning of another. `left` is what came back from the tty, and is changed.
 * *keys (borrowed until typed_forget(), which comes next) has *n bytes, as they
 * were typed.
 *
 * A cell that has read the beginning of a line has read all of it, but for the
 * end of the last line that is not entered yet.
 *
 * Returns NULL, or why no keys come back: what the tty returned are not the
 * last keys, because the cell has changed how its tty reads them; the cell has
 * read the beginning of a line that goes on, or may be a command; or there were
 * too many.
 */
const char *typed_unread(struct typed *t, char *left, size_t left_n,
	const char **keys, size_t *n);

/* Edit keys as a tty in its usual modes does, in place: keys that erase take
 * others with them, and lines end with \n. Returns how many are left. */
size_t typed_edit(char *s, size_t n);

/* ---- relay.c ---- */

/*
 * The relay moves bytes between the person's terminal and the jail's tty. Both
 * ways are non-blocking with bounded buffers: neither a program that does not
 * read its tty nor a terminal that does not drain holds up the front end. The
 * relay also passes on signals and a new window size. Its owner calls
 * relay_turn() in a loop, and handles the tty's bytes and the warden's events.
 */

/* Entries of relay_turn() that are the relay's own. */
enum {
	RELAY_POLL_KEYS,
	RELAY_POLL_TTY,
	RELAY_POLL_OUT,
	RELAY_POLL_JAIL,
	RELAY_POLL_SIGNALS,
	RELAY_POLLS
};

#define RELAY_READ 16384
/* When more output than this waits for the terminal, the tty is not read. */
#define RELAY_BACKLOG (64u << 10)
/* So many interrupts within this time kill. */
#define RELAY_KILL_PRESSES 3
#define RELAY_KILL_MS 2000

/* All borrowed. */
struct relay_opts {
	struct terminal *term;
	struct jail *jail;
	struct signals *signals;
	struct output *output; /* follows the window's width */
	struct ask *ask;       /* late answers are no keys; or NULL */
	/* Filters bytes of the tty and gives the result to relay_put(). */
	void (*bytes)(void *arg, const char *buf, size_t n);
	/* Takes the warden's events, if there are any, with jail_next(). */
	void (*events)(void *arg);
	void *arg;
};

/* Where the cell is. In all but the first, keys wait. */
enum relay_state {
	RELAY_OPEN,   /* keys go to the tty: the cell runs, or there is none */
	RELAY_BEGUN,  /* the tty may still have output of what ran before */
	RELAY_HANDED, /* what the tty has is the cell's, and waits as well */
	RELAY_OVER    /* keys are for the next cell */
};

/* Caller's storage. */
struct relay {
	struct relay_opts with;
	int tty;	 /* master, non-blocking; -1: there is none */
	bool keys;	 /* standard input goes to the tty */
	bool keys_ended; /* standard input is at its end, or gone */
	enum relay_state state;
	bool broken;  /* nothing can be written to the terminal any more */
	bool changed; /* another terminal, since the last poll */
	bool moved;   /* the last relay_turn() read bytes of the tty */
	struct typed typed; /* keys since relay_begin() */
	size_t due;	    /* so many of them may go to the tty */
	struct strbuf out;
	size_t out_at;
	int64_t pressed_ms[RELAY_KILL_PRESSES]; /* the last interrupts */
};

void relay_init(struct relay *r, const struct relay_opts *with);
void relay_free(struct relay *r);

/* Use this tty (borrowed), which becomes non-blocking; -1 for none. */
void relay_set_tty(struct relay *r, int tty);

/* Forget keys and counted interrupts, and hold keys until relay_release().
 * Until then Ctrl-C is no key, but interrupts the code that was sent to the
 * jail. From relay_hand_over() on, when a cell may write, the tty is not read
 * until then either: its bytes before that were not the cell's. */
void relay_begin(struct relay *r);
void relay_hand_over(struct relay *r);
void relay_release(struct relay *r);

/* Keys that were typed for the next prompt before the cell was sent. They go to
 * the tty a line at a time, when the cell waits for the person: relay_waits().
 * So a cell that does not read leaves them alone, and they are not echoed in
 * its output. All of them go before the next key that is typed. A Ctrl-C among
 * them interrupts the cell. */
void relay_type_ahead(struct relay *r, const char *s, size_t n);
void relay_waits(struct relay *r);

/* Hold keys until the next relay_begin(). */
void relay_hold(struct relay *r);

/* One turn of the loop: wait at most `timeout_ms` (-1: without end), then take
 * signals, then events, then move bytes. The relay fills in the first
 * RELAY_POLLS entries of `p`; the caller fills in the others and looks at them
 * afterwards. Signals that end or continue us stay set as flags. Returns what
 * poll(2) returned. */
int relay_turn(struct relay *r, struct pollfd *p, nfds_t n, int timeout_ms);

/* Write the bytes that wait for the terminal, and take nothing but signals.
 * Gives up when the terminal takes nothing for ten seconds, or for half a
 * second after a signal that ends us. */
void relay_flush(struct relay *r);

/* Measure the window, and pass a new size on. */
void relay_follow_window(struct relay *r);
/* The terminal was replaced, or is gone. */
void relay_changed_terminal(struct relay *r);
/* Keys for the tty, as if they had just been typed. */
void relay_type(struct relay *r, const char *s, size_t n);
/* Add bytes for the terminal. */
void relay_put(struct relay *r, const void *buf, size_t n);
/* False while so much output waits that the tty is not read. */
bool relay_has_room(const struct relay *r);
/* True if no output waits. */
bool relay_is_flushed(const struct relay *r);
/* Count an interrupt; the third within two seconds kills the cell. */
void relay_interrupted(struct relay *r);

/* ---- terminal.c ---- */

/* Caller's storage. */
struct terminal {
	int in;	     /* standard input */
	int out;     /* where a cell's output goes: the terminal opened again,
		      * non-blocking; or standard output, where that fails */
	bool own;    /* `out` was opened again, and is ours to close */
	bool in_tty; /* standard input is a terminal */
	bool out_tty;
	bool err_tty;
	bool colour; /* our own lines may have colour */
	bool dumb;   /* output is written line by line */
	bool saved;  /* `modes` holds the modes of `in` to restore */
	bool raw;
	struct termios modes;
	unsigned short rows, cols;   /* 0: not known */
	int cell_width, cell_height; /* in pixels; 0: not known */
};

/* Look at descriptors 0, 1 and 2, and remember the modes of the terminal. Never
 * fails: a descriptor need not be a terminal. */
void terminal_open(struct terminal *t, enum config_colour colour);

/* True if the terminal that TERM names cannot erase. */
bool terminal_is_dumb(void);
/* For a program: use whichever of descriptors 0, 1 and 2 is a terminal. */
void terminal_use_any(struct terminal *t);
/* Restore the modes, and close `out`. */
void terminal_close(struct terminal *t);

/* The terminal is gone: `file` takes the place of descriptors 1 and 2 and of
 * `out`, and /dev/null that of descriptor 0. Their numbers stay. Output is
 * still made for a terminal of the old size. */
void terminal_leave(struct terminal *t, int file);
/* Another terminal: `fds` are its three descriptors, and it opened again for
 * output without blocking, or -1. They are borrowed. */
void terminal_take(
	struct terminal *t, const int fds[4], enum config_colour colour);

/* Raw mode: every key is a byte, nothing is echoed, output goes out as it is.
 */
void terminal_raw(struct terminal *t);
/* Every key is a byte and nothing is echoed; signals and output are as they
 * were. Undone by terminal_restore(). */
void terminal_keys(struct terminal *t);
/* While no keys are read in raw mode: Ctrl-C is SIGINT, or a key again. */
void terminal_raw_interrupt(const struct terminal *t, bool on);
/* True if the terminal's keys are ours: false for a job in the background. */
bool terminal_is_in_front(const struct terminal *t);
/* Restore the modes of terminal_open(). Pending input stays. */
void terminal_restore(struct terminal *t);

/* Ask for the size. True when it has changed. */
bool terminal_measure(struct terminal *t);
/* The width of the terminal behind `fd`; 0: unknown. */
int terminal_columns(int fd);

/* Write a line of ours; where `f` is a terminal, it is folded at words and goes
 * on below its third column. */
void terminal_print_line(FILE *f, const char *line);
/* Write lines of ours to standard error, each "cellblock: WHAT: LINE" and made
 * safe; `what` is NULL or ours. */
void terminal_complain(const char *what, const char *text);
/* Complain about an error. Its hint is never folded, so that a person can copy
 * it. */
void terminal_refuse(const struct err *e);

/* Write everything, waiting at most `timeout_ms` at a time for a terminal that
 * does not drain. 0, or -1: the terminal is gone, or stuck. */
int terminal_write(struct terminal *t, const char *s, size_t n, int timeout_ms);
/* Write a string, waiting at most two seconds at a time. */
void terminal_puts(struct terminal *t, const char *s);

/* Write at most what poll(2) promises: a blocking terminal is writable while it
 * has room for a few hundred bytes. Returns what write(2) returned. */
ssize_t terminal_write_some(const struct terminal *t, const char *s, size_t n);

/*
 * Signals that end or interrupt us are blocked and read from a descriptor. So
 * no code of ours ever runs in a handler.
 */

/* Caller's storage. A flag stays set until the caller clears it. */
struct signals {
	int fd;	    /* to poll */
	int signal; /* the signals; the same, or behind it */
	sigset_t before;
	/* Takes what else is behind `fd`. */
	void (*more)(void *arg, struct signals *s);
	void *arg;
	bool outlives;	/* SIGHUP ends nothing: `lost` */
	bool lost;	/* the terminal is gone */
	bool interrupt; /* SIGINT */
	int end;	/* SIGTERM, SIGHUP or SIGQUIT; 0: none */
	bool resized;	/* SIGWINCH */
	bool suspend;	/* SIGTSTP */
	bool continued; /* SIGCONT: we may be in the foreground now */
};

/* Block SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGWINCH, which become flags, and
 * ignore SIGPIPE and SIGXFSZ, so that a failed write is an error. A session
 * also ignores SIGTSTP, SIGTTIN and SIGTTOU, so that nothing suspends it; for a
 * program SIGCONT becomes a flag too, and SIGTSTP where the caller blocks it.
 * Call it after jail_open(), or the warden would inherit all this. */
int terminal_signals_open(struct signals *s, bool session, struct err *e);
void terminal_signals_close(struct signals *s);

/* Set the flags of signals that have come. Never blocks. */
void terminal_signals_read(struct signals *s);
/* Set the flag of a signal that has come in another way. */
void terminal_signals_take(struct signals *s, int sig);
/* From now on `fd` is polled, behind which `s->fd` is, and
 * terminal_signals_read() calls `more`, too. All borrowed. */
void terminal_signals_through(struct signals *s, int fd,
	void (*more)(void *arg, struct signals *s), void *arg);
/* From now on the session outlives its terminal, or not any more. */
void terminal_signals_outlive(struct signals *s, bool on);
/* True if the terminal was lost since the last call. */
bool terminal_signals_lost(struct signals *s);
/* True if SIGINT or a signal that ends us has come. Clears SIGINT. */
bool terminal_signals_cancelled(struct signals *s);

#endif
