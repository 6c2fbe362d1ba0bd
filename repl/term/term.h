/* SPDX-License-Identifier: MIT */
/*
 * term.h - the terminal: keys, output, and keys typed ahead
 *
 *	ask.c		asks the terminal which pictures it can draw
 *	job.c		stops us as a job of a shell
 *	keys.c		decodes a terminal's bytes to keys
 *	output.c	passes a cell's output from the pty to the terminal
 *	pager.c		shows a long text, a screenful at a time
 *	typed.c		keeps the keys typed while a cell runs, and finds those
 *			that the cell has not read
 *	relay.c		the front end's poll loop while a cell or a program runs
 *	terminal.c	the person's terminal; signals by a descriptor
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
 * The session asks the terminal before it draws its first picture, and before
 * the next two if no full answer came in time. Every terminal answers the last
 * question (DA1), and answers in order: with that answer all have come. Keys
 * that the person types meanwhile stay keys; late answers do not become keys.
 */

/* Bytes of the longest answer. */
#define ASK_MAX 256
/* Longest wait for the answers: a slow line's round trip, or a terminal's on a
 * busy host. */
#define ASK_WAIT_MS 1000

/* Caller's storage; all zero: never asked. Only ask.c writes the fields. */
struct ask {
	int asked;		   /* how many times we asked */
	bool answered;		   /* the last answer has come */
	bool kitty, iterm2, sixel; /* protocols that the terminal has */
	bool true_colour;	   /* 24 bits */
	int registers;		   /* colours of a sixel picture; 0: unknown */
	int cell_width, cell_height; /* in pixels; 0: unknown */
	size_t n;		     /* bytes of `begun` */
	char begun[ASK_MAX];	     /* the beginning of an answer, held back */
};

/* Append the questions, and an erasure of the row: some terminals print unknown
 * questions. The caller writes all of it in column 0 of an empty row. */
void ask_write(struct ask *a, struct strbuf *out);
/* Read the terminal until the last answer has come, ASK_WAIT_MS at most. Append
 * the other bytes, which are keys, to `keys`. */
void ask_wait(struct ask *a, const struct terminal *t, struct strbuf *keys);
/* Append the bytes of `s` to `keys`, without late answers. */
void ask_filter(struct ask *a, const char *s, size_t n, struct strbuf *keys);
/* Append the held bytes to `keys`, before another reader reads the terminal. */
void ask_give_back(struct ask *a, struct strbuf *keys);
/* True if the terminal has not answered, and we may ask (again). */
bool ask_is_due(const struct ask *a);

/* ---- job.c ---- */

/* True if a shell waits for us as a job: it started our process group, and
 * continues us when we stop. False for a login shell, a forced command, and
 * what has a terminal of its own, as in tmux: nobody would continue it. */
bool job_has_shell(void);

/* Stop our process group, until a shell continues us. False: the kernel did not
 * stop us, because the shell is gone. */
bool job_stop(void);

/* True if the terminal's keys are ours: false for a job in the background. A
 * terminal that is not our controlling terminal has no background jobs. */
bool job_is_in_front(int tty);

/* Return once we are in the foreground; stop us again while we are not, as the
 * kernel stops a job in the background that touches its terminal. Return in the
 * background if a blocked signal that ends us waits, if `wake` (-1: none) has
 * input, or if nobody would continue us. */
void job_await_front(int tty, int wake);

/* ---- keys.c ---- */

/*
 * A pure state machine. It decodes UTF-8 text, makes a key of an escape
 * sequence, and drops unknown sequences: an answer of the terminal never
 * becomes text. A paste is one key per character between KEY_PASTE_BEGIN and
 * KEY_PASTE_END.
 */

/* The code of Control and a letter. */
#define KEYS_CTRL(c) ((c)&0x1F)

/* Controls keep their codes (1 to 31 and 127). The other keys lie in
 * 0x80..0xFF, so that a table of 256 entries has one for every key. */
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
	KEY_ALT_C,
	KEY_ALT_D,
	KEY_ALT_E,
	KEY_ALT_L,
	KEY_ALT_T,
	KEY_ALT_U,
	KEY_ALT_Y,
	KEY_ALT_DOT,
	KEY_CTRL_X_E, /* Ctrl-X Ctrl-E */
	KEY_F1,
	KEY_F2,
	KEY_F3,
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

/* We keep the first numbers of an escape sequence, and ignore later ones. */
#define KEYS_PARAMS_MAX 4

struct keys {
	int state;
	int skip;     /* bytes still to drop; in a string, at most */
	uint8_t u[4]; /* the first u_n bytes of a character */
	uint8_t u_n;
	int param[KEYS_PARAMS_MAX];
	int params;
	bool private_mark; /* ESC [ ? and the like: never a key */
	bool escape_alone; /* ESC and a letter are two keys, and not Alt */
	bool paste;	   /* inside pasted text */
	bool stalled;	   /* keys_timeout() has ended the paste once */
	bool cr;	   /* the last pasted character was a carriage return */
	int match;	   /* bytes so far of the sequence that ends a paste */
};

/* Begin in the ground state. */
void keys_init(struct keys *k);
/* Take one byte. Write the keys that it completes, KEYS_OUT_MAX at most, to
 * `out`. Returns their number. */
int keys_feed(struct keys *k, unsigned char byte, struct key *out);
/* Longest wait for the next byte before keys_timeout(), in ms; -1: no end. */
int keys_wait_ms(const struct keys *k);
/* No byte came in that time: end the sequence, the character or the paste.
 * Write the keys that this completes to `out`. Returns their number. */
int keys_timeout(struct keys *k, struct key *out);

/* ---- output.c ---- */

/*
 * 	end mark → limit → filter (vt.h) → sink
 *
 * The caller feeds a cell's bytes in pieces of any size. We show the first
 * `head_bytes` as they come. We only count the bytes behind them, and show the
 * last ones at the end: after a flood the traceback is visible. Memory is one
 * buffer for this tail, allocated once, and the frame lines to repeat.
 *
 * We search the unfiltered bytes for the end mark: ESC _ 32 hexadecimal digits
 * ESC \. So we find the mark behind half a character, inside a sequence that
 * the cell left unfinished, and past the limit, in every mode. We hold bytes
 * back only while they may still become the mark.
 *
 * A guest must not be able to forge or remove frame lines, our own lines in
 * square brackets:
 *
 * 	- They begin with a broken bar. The filter, text_safe() and the editor
 * 	  replace this character in all other text. A guest can imitate
 * 	  colours, brackets and places.
 * 	- They begin in column 0 of an empty row, in the terminal's usual modes,
 * 	  with nothing below. Later output cannot go back above a frame line:
 * 	  the filter stops the cursor in the row below (vt.h).
 * 	- Output after a cell's end, or behind the limit, is text and colours,
 * 	  below a frame line that says so.
 * 	- We repeat a frame line of the alternate screen on the main screen.
 *
 * In raw mode a guest can draw anything.
 */

enum {
	OUTPUT_MARK_DIGITS = 32,
	OUTPUT_MARK_STEM = 34, /* ESC _ and the digits */
	OUTPUT_MARK_LENGTH = 36
};

/* Takes the text of a frame line, without brackets and line end. */
typedef void output_line(void *arg, const char *text);

/* The parts of a copy for watchers' screens, in the order of the output. */
enum output_copied {
	OUTPUT_BYTES, /* the cell's shown bytes, unfiltered */
	OUTPUT_LINE,  /* the text of a frame line */
	OUTPUT_BREAK, /* the next part begins a line */
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
	const char *mark;  /* 32 lower-case hexadecimal digits; NULL: none */
	unsigned cell;	   /* its number, to offer ":out 12"; 0: no offer */
	vt_emit *sink;	   /* takes the bytes for the terminal */
	vt_emit *tap;	   /* takes all of the cell's bytes; or NULL */
	output_line *line; /* NULL: output_frame() and \r\n to the sink */
	output_copy *copy; /* or NULL */
	void *arg;	   /* of all four */
};

struct output_report {
	uint64_t head;			 /* bytes shown as they came */
	uint64_t shown;			 /* bytes of head and tail */
	uint64_t cut;			 /* bytes written, but not shown */
	uint64_t dropped[VT_DROP_KINDS]; /* sequences */
	bool newline_added; /* because the cursor was not on an empty row */
	bool drawn; /* background output: anything of it is seen or heard */
};

/* Caller's storage; opaque. */
struct output {
	struct output_opts opts;
	struct vt vt;
	char mark[OUTPUT_MARK_LENGTH + 1];
	size_t held; /* bytes of the mark seen so far */
	bool marked;
	uint64_t total, head, background;
	uint8_t *tail;		   /* a ring of the last bytes */
	size_t tail_size, tail_at; /* tail_at: the next byte's place */
	struct strbuf said; /* frame lines to repeat, each with a newline */
};

/* Allocate a tail of `tail_bytes`, which may be 0; once a session. 0, or -1
 * with `e`. output_close() frees. */
int output_open(struct output *o, size_t tail_bytes, struct err *e);
void output_close(struct output *o);

/* Begin a cell, with the terminal in its usual modes and the cursor in column
 * 0. Copies `opts` and the mark; borrows `arg`. */
void output_begin(struct output *o, const struct output_opts *opts);

/* Take a new size of the terminal. */
void output_resize(struct output *o, int rows, int columns);

/* Write a frame line within the cell's output. */
void output_say(struct output *o, const char *text);

/* True if a picture can stand in the output now: not on the alternate screen,
 * and not past the limit. */
bool output_has_room(const struct output *o);
/* Draw a picture within the cell's output: the sequence `s` is ours, begins in
 * column 0 of an empty row and ends in column 0 of another, with nothing below.
 * Its bytes count as the cell's. False, and nothing drawn: they are too many.
 */
bool output_draw(struct output *o, const char *s, size_t n);

/* The guest draws its line again at each key, as readline does: from now on
 * break lines that are longer than the terminal is wide. */
void output_steer(struct output *o);

/* Take bytes from the pty, up to the end mark. Returns the number of bytes
 * taken, with the mark. The bytes behind it are background output, and the
 * caller's. A mark that ends in BEL is no end: a new line begins behind it. */
size_t output_feed(struct output *o, const void *buf, size_t n);
/* The *n bytes of text and SGR in the last row, with the cursor behind them
 * (borrowed until the next bytes): the question, when the cell waits for a
 * line. NULL: not known. */
const char *output_row(const struct output *o, size_t *n);
/* Begin a line with the next bytes, unless the limit is reached. */
void output_break(struct output *o);
/* Go on behind a mark that was a picture's place and not the end. */
void output_unmark(struct output *o);
bool output_is_marked(const struct output *o);

/* True if the output of a cell that ended at ended_ms is complete: its mark has
 * come; or the tty has been silent since ended_ms, and since its last bytes at
 * heard_ms, for output_silence_ms(); or two seconds have passed since ended_ms.
 * `dead`: every writer is dead, so only bytes in the kernel can come. Times are
 * those of now_ms(). If false, ask again after output_silence_ms(). */
bool output_is_over(
	const struct output *o, int64_t ended_ms, int64_t heard_ms, bool dead);
int output_silence_ms(bool dead);

/* End a cell, marked or not: show the tail, below a line that says how much is
 * missing, undo the cell's modes, go to column 0, and fill in `r`. */
void output_end(struct output *o, struct output_report *r);

/* Show output that came after the mark or between cells, and leave the terminal
 * as output_end() does. The caller announces the output above it. We show at
 * most head_bytes until the next cell begins. The sink makes \r\n of \n. */
void output_background(
	struct output *o, const void *buf, size_t n, struct output_report *r);
/* True if we show no more background output until the next cell begins. */
bool output_background_is_over(const struct output *o);
/* Add a piece of background output to a sum; write the sum's lines. */
void output_background_add(
	struct output_report *sum, const struct output_report *r);
void output_background_summary(
	const struct output_report *sum, output_line *line, void *arg);

/* Undo the guest's modes and go to an empty row, before another writer uses the
 * terminal. The guest may go on writing afterwards. */
void output_suspend(struct output *o);
/* Another terminal takes the output from now on: forget the modes of the old
 * one without undoing them. True if the alternate screen was up. */
bool output_move(struct output *o);
/* On the new terminal, in column 0 of an empty row: switch to the alternate
 * screen for a full-screen program. */
void output_take_screen(struct output *o);

/* Call `line` with the number and kinds of dropped sequences, if any were. */
void output_summary(
	const struct output_report *r, output_line *line, void *arg);

struct output_look {
	bool colour;
	int columns;	 /* of the terminal; 0: lines are not folded */
	const char *end; /* of a line */
};

/* Append a frame line: a broken bar, and `text` in brackets and made safe;
 * faint with colour. We fold a line that is too long at words, and begin every
 * part with the bar. */
void output_frame(
	struct strbuf *b, const char *text, const struct output_look *look);

/* ---- pager.c ---- */

/*
 * Pure: takes a text, a size and keys, and gives the bytes that draw rows. The
 * terminal's last row is the pager's status.
 */

/* Caller's storage; only pager.c uses the fields. */
struct pager {
	const char *text;
	size_t n;
	int rows, columns;

	size_t *starts; /* offsets of the rows found so far */
	size_t nstarts;
	bool whole; /* all rows are found */
	size_t top; /* the first row on the screen */

	struct utf8_wide sought; /* the words that n and N search for */
	bool exact;		 /* the words have a capital */
	bool upwards;		 /* the last search began with ? */
	size_t found;		 /* offset of the last match */
	struct utf8_wide typed;	 /* the words being typed behind / or ? */
	char asked;		 /* that / or ?; 0: no search is being typed */
	const char *note; /* the status, in place of the usual; or NULL */

	bool drawn; /* the screen shows rows from `drawn_top` on */
	size_t drawn_top;
};

/* Begin at the top of a text of `n` bytes, at least one, that text_lines()
 * made (borrowed), on a terminal of this size. pager_close() frees. */
void pager_open(
	struct pager *p, const char *text, size_t n, int rows, int columns);
void pager_close(struct pager *p);
/* True if the text and the status fit on the screen. */
bool pager_fits(struct pager *p);
/* Take a new size of the terminal. */
void pager_resize(struct pager *p, int rows, int columns);
/* Take a key. False: the person leaves the pager. */
bool pager_press(struct pager *p, const struct key *key);
/* Append row `i` of the screen, with matches in reverse video. */
void pager_add_row(struct pager *p, int i, struct strbuf *b);
/* Append the status. */
void pager_add_status(struct pager *p, struct strbuf *b);
/* Append the changes since the last drawing, or the whole screen. */
void pager_draw(struct pager *p, struct strbuf *b);

/* ---- typed.c ---- */

/*
 * The keys go through a line discipline that the cell controls: the cell can
 * make any key the end of file, the erase key, or another character. So we keep
 * the keys as the person typed them. The bytes that are left in the tty at the
 * end tell us only how many of the last keys the cell has not read.
 */

/* All zero is empty. */
struct typed {
	struct strbuf keys;   /* since the cell was sent, or the last of them */
	size_t sent;	      /* bytes of `keys` written to the tty */
	bool torn;	      /* we have forgotten older sent keys */
	bool lost;	      /* we could not keep all keys */
	struct strbuf edited; /* the sent keys, as a tty edits them */
};

/* Forget all keys, and release the memory. */
void typed_forget(struct typed *t);
/* Add keys. False, and the keys are lost: too many, or no memory. */
bool typed_add(struct typed *t, const char *s, size_t n);
/* The person has interrupted the cell: forget the keys that were not sent, and
 * count the others as read. */
void typed_drop(struct typed *t);

/*
 * Find the keys for the next prompt: whole lines of which the cell has read no
 * key, and the beginning of another. `left` has the bytes that the tty
 * returned; we change them. *keys has *n bytes, borrowed until typed_forget(),
 * which the caller calls next.
 *
 * Of a line whose beginning the cell has read, we give back the rest, and only
 * if the person has not entered the line yet and the rest cannot be a command.
 *
 * Returns NULL, or why no keys come back: the tty did not return the last keys,
 * because the cell changed how its tty reads keys; the cell has read the
 * beginning of a line whose rest we may not give back; or the keys were too
 * many.
 */
const char *typed_unread(struct typed *t, char *left, size_t left_n,
	const char **keys, size_t *n);

/* Edit keys in place, as a tty in its usual modes does: obey the keys that
 * erase, and end lines with \n. Returns the bytes left. */
size_t typed_edit(char *s, size_t n);

/* ---- relay.c ---- */

/*
 * The relay moves bytes between the person's terminal and the jail's tty. Both
 * ways are non-blocking with bounded buffers: neither a program that does not
 * read its tty nor a terminal that does not drain holds up the front end. The
 * relay also passes on interrupts and a new window size. Its owner calls
 * relay_turn() in a loop, and handles the tty's bytes and the warden's events.
 */

/* The entries that relay_turn() fills in. */
enum {
	RELAY_POLL_KEYS,
	RELAY_POLL_TTY,
	RELAY_POLL_OUT,
	RELAY_POLL_JAIL,
	RELAY_POLL_SIGNALS,
	RELAY_POLLS
};

#define RELAY_READ 16384
/* While this much output waits for the terminal, we do not read the tty. */
#define RELAY_BACKLOG (64u << 10)
/* Time between two window sizes, so that a program sees both. */
#define RELAY_REDRAW_MS 200
/* This many interrupts within this time kill the cell. */
#define RELAY_KILL_PRESSES 3
#define RELAY_KILL_MS 2000

/* The relay borrows all of them. */
struct relay_opts {
	struct terminal *term;
	struct jail *jail;
	struct signals *signals;
	struct output *output; /* follows the window's width */
	struct ask *ask;       /* drops late answers among keys; or NULL */
	/* Filters bytes of the tty and gives the result to relay_put(). */
	void (*bytes)(void *arg, const char *buf, size_t n);
	/* Is told what the tty was given; or NULL. */
	void (*sent)(void *arg, const char *buf, size_t n);
	/* Takes the warden's events, if there are any, with jail_next(). */
	void (*events)(void *arg);
	void *arg;
};

/* The progress of the cell. Keys wait in all states but RELAY_OPEN. */
enum relay_state {
	RELAY_OPEN,   /* the cell runs, or there is no cell */
	RELAY_BEGUN,  /* the tty's output is not the cell's yet */
	RELAY_HANDED, /* the tty's output is the cell's, and waits too */
	RELAY_OVER    /* keys are for the next prompt */
};

/* Caller's storage. */
struct relay {
	struct relay_opts with;
	int tty;	 /* master, non-blocking; -1: there is none */
	bool keys;	 /* standard input goes to the tty */
	bool keys_ended; /* standard input is at its end, or gone */
	bool stops;	 /* Ctrl-Z is SIGTSTP to us, unless the tty makes no
			  * signals of keys: then the cell gets the key */
	enum relay_state state;
	bool broken;  /* a write to the terminal failed: drop all output */
	bool changed; /* the terminal was replaced since the last poll */
	bool moved;   /* the last relay_turn() read bytes of the tty */
	struct typed typed; /* keys since relay_begin() */
	size_t due;	    /* bytes of them that we may write to the tty */
	bool edits;	    /* the owner can edit the lines that a cell reads */
	bool editing;	    /* it does: keys wait for relay_take_keys() */
	bool unasked; /* ask for JAIL_WAITS once the tty reads lines again */
	size_t begun; /* bytes sent of a line that was not entered */
	struct termios usual; /* the tty's modes when the cell began */
	struct strbuf out;    /* output, written up to out_at */
	size_t out_at;
	int64_t pressed_ms[RELAY_KILL_PRESSES]; /* now_ms() of interrupts */
};

/* Copy `with`. relay_free() frees the buffers; the tty stays open. */
void relay_init(struct relay *r, const struct relay_opts *with);
void relay_free(struct relay *r);

/* Use this tty (borrowed), which becomes non-blocking; -1 for none. */
void relay_set_tty(struct relay *r, int tty);

/* relay_begin(): forget keys and counted interrupts, and hold keys until
 * relay_release(). Until then Ctrl-C interrupts the code sent to the jail.
 * relay_hand_over(): the warden hands the cell over. The tty's bytes are the
 * cell's from now on, and wait for relay_release(), too. */
void relay_begin(struct relay *r);
void relay_hand_over(struct relay *r);
void relay_release(struct relay *r);

/* relay_type_ahead(): add keys (which we change) that were typed for the next
 * prompt before the cell was sent, or behind a line that the cell reads.
 * relay_waits(): the cell waits for input; send the tty one line of these keys.
 * So a cell that does not read leaves them unread, and the tty does not echo
 * them in its output. The next key that the person types sends all of them
 * first. A Ctrl-C among them interrupts the cell. */
void relay_type_ahead(struct relay *r, char *s, size_t n);
void relay_waits(struct relay *r);

/*
 * An owner that sets r->edits can edit a line in place of the tty. The relay
 * then asks the warden all the time whether the cell waits. Until the answer
 * comes the tty gets the keys, and echoes them.
 *
 * relay_edit(): the cell waits; from now on keys wait for the owner, except
 * Ctrl-C, which ends this. False: the cell's tty is not in its usual modes.
 * While the tty has the beginning of a line, r->begun, relay_take_begun() takes
 * these keys back, and the tty erases their echo. False: the cursor's row (`n`
 * bytes) does not end with that echo. The owner takes the keys that wait, and
 * ends this with keys for the tty, before which the tty gets all keys that wait
 * still.
 */
bool relay_edit(struct relay *r);
bool relay_take_begun(struct relay *r, const char *row, size_t n);
/* True if the tty is in the modes that the warden set: it reads and echoes
 * lines. */
bool relay_reads_lines(const struct relay *r);
/* Move the keys that wait to the end of `keys`. */
void relay_take_keys(struct relay *r, struct strbuf *keys);
void relay_send(struct relay *r, const char *s, size_t n);
/* Send a line and Enter. The line may be longer than a tty takes at once. */
void relay_send_line(struct relay *r, const char *s, size_t n);

/* Hold keys until the next relay_begin(). */
void relay_hold(struct relay *r);

/* One turn of the loop: wait at most `timeout_ms` (-1: without end), then take
 * signals, then events, then move bytes. The relay fills in the first
 * RELAY_POLLS entries of `p`; the caller fills in the others and looks at them
 * afterwards. Flags of signals that end, suspend or continue us stay set for
 * the caller; for Ctrl-Z it calls events() once more. Returns the result of
 * poll(2). */
int relay_turn(struct relay *r, struct pollfd *p, nfds_t n, int timeout_ms);

/* Write the output that waits, and take only signals meanwhile. Give up when
 * the terminal takes no byte for ten seconds, or for two seconds after a
 * signal that ends us. */
void relay_flush(struct relay *r);

/* Measure the window, and pass a new size on to the jail and the output. */
void relay_follow_window(struct relay *r);
/* The owner has replaced the terminal, or taken it away. */
void relay_changed_terminal(struct relay *r);
/* Leave the terminal as a shell wants it. True if a program had the whole
 * screen. relay_return() gives the terminal back, and has that program
 * (`whole`) draw its screen anew. */
bool relay_leave(struct relay *r);
void relay_return(struct relay *r, bool whole);
/* Take keys as if the person had just typed them. */
void relay_type(struct relay *r, const char *s, size_t n);
/* Add output for the terminal. If memory runs out, all that waits is lost. */
void relay_put(struct relay *r, const void *buf, size_t n);
/* False while so much output waits that we do not read the tty. */
bool relay_has_room(const struct relay *r);
/* True if no output waits. */
bool relay_is_flushed(const struct relay *r);
/* Count an interrupt; the third within two seconds kills the cell. */
void relay_interrupted(struct relay *r);

/* ---- terminal.c ---- */

/* Caller's storage. */
struct terminal {
	int in;	     /* standard input */
	int out;     /* for output: the terminal opened again, non-blocking; if
		      * that fails, standard output */
	bool own;    /* we opened `out` again, and close it */
	bool in_tty; /* standard input is a terminal */
	bool out_tty;
	bool err_tty;
	bool colour; /* our own lines may have colour */
	bool dumb;   /* TERM's terminal cannot erase: terminal_is_dumb() */
	bool saved;  /* `modes` holds the modes of `in` to restore */
	bool raw;    /* the modes of `in` are ours */
	bool lines;  /* they are the person's, but for terminal_lines() */
	struct termios modes;
	unsigned short rows, cols;   /* 0: not known */
	int cell_width, cell_height; /* in pixels; 0: not known */
};

/* Look at descriptors 0, 1 and 2, and remember the modes of the terminal. Never
 * fails: a descriptor need not be a terminal. */
void terminal_open(struct terminal *t, enum config_colour colour);

/* True if the terminal that TERM names cannot erase. */
bool terminal_is_dumb(void);
/* If standard output is no terminal, write to that of descriptor 2 or 0. */
void terminal_use_any(struct terminal *t);
/* Restore the modes, and close `out`. */
void terminal_close(struct terminal *t);

/* Leave the terminal: `file` (borrowed) replaces descriptors 1 and 2 and `out`,
 * /dev/null replaces descriptor 0. Their numbers stay. The caller still makes
 * output for a terminal of the old size. */
void terminal_leave(struct terminal *t, int file);
/* Take another terminal: fds[0] to fds[2] are its descriptors, fds[3] is the
 * terminal opened again for output, non-blocking, or -1. Borrows them. `again`:
 * it is the one that we left, in whatever modes a shell has put it. */
void terminal_take(struct terminal *t, const int fds[4],
	enum config_colour colour, bool again);

/* Set raw mode: every key is a byte, the kernel echoes no key and passes output
 * on as it is. */
void terminal_raw(struct terminal *t);
/* Every key is a byte and the kernel echoes none; signals and output stay as
 * they were. terminal_restore() undoes this. */
void terminal_keys(struct terminal *t);
/* In raw mode, while we read no keys: make Ctrl-C SIGINT, or a key again. */
void terminal_raw_interrupt(const struct terminal *t, bool on);
/* Leave raw mode for a moment, to write lines: the modes that we found, but
 * Ctrl-D stays a key. The kernel's line mode would make it a NUL, which is read
 * at the next prompt. */
void terminal_lines(struct terminal *t);
/* Restore the modes that we found on the terminal. Pending input stays. */
void terminal_restore(struct terminal *t);
/* Another program has had the terminal: the modes are not ours any more. */
void terminal_forget_modes(struct terminal *t);

/* Read the size from the kernel. True if rows or columns have changed. */
bool terminal_measure(struct terminal *t);
/* The width of the terminal behind `fd`; 0: unknown. */
int terminal_columns(int fd);

/* Write a line of ours. If `f` is a terminal, fold the line at words, and
 * indent its further parts by two columns. */
void terminal_print_line(FILE *f, const char *line);
/* Write each line of `text`, made safe, to standard error as "cellblock: WHAT:
 * LINE". `what` is safe already, or NULL. */
void terminal_complain(const char *what, const char *text);
/* Complain about an error. We never fold its hint, so that a person can copy
 * it. */
void terminal_refuse(const struct err *e);

/* Write everything, waiting at most `timeout_ms` at a time for a terminal that
 * does not drain. 0, or -1: the terminal is gone, or stuck. */
int terminal_write(struct terminal *t, const char *s, size_t n, int timeout_ms);
/* Write a string, waiting at most two seconds at a time. Ignores errors. */
void terminal_puts(struct terminal *t, const char *s);

/* Write at most 256 bytes to a blocking terminal: poll(2) reports it writable
 * only while it has room for these. Returns the result of write(2). */
ssize_t terminal_write_some(const struct terminal *t, const char *s, size_t n);

/*
 * We block the signals that end or interrupt us, and read them from a
 * descriptor. So no code of ours ever runs in a handler.
 */

/* Caller's storage. A flag stays set until the caller clears it. */
struct signals {
	int fd;		 /* to poll */
	int signal;	 /* the signalfd: `fd`, or polled through `fd` */
	sigset_t before; /* the mask to restore */
	/* Handles the other events of `fd`; or NULL. */
	void (*more)(void *arg, struct signals *s);
	void *arg;
	bool outlives;	/* SIGHUP sets `lost`, not `end` */
	bool lost;	/* the terminal is gone */
	bool interrupt; /* SIGINT */
	int end;	/* SIGTERM, SIGHUP or SIGQUIT; 0: none */
	bool resized;	/* SIGWINCH */
	bool suspend;	/* SIGTSTP, or SIGTTOU: */
	bool behind;	/* another job has the terminal already */
	bool continued; /* SIGCONT: we may be in the foreground now */
};

/* Block SIGINT, SIGWINCH, SIGCONT and, unless they are ignored already,
 * SIGTERM, SIGHUP and SIGQUIT: they become flags. Ignore SIGPIPE and SIGXFSZ,
 * so that a failed write is an error. With `session` block SIGTSTP, too, and
 * ignore SIGTTIN and SIGTTOU; without it SIGTSTP becomes a flag while the
 * caller blocks it. Call it after jail_open(), or the warden would inherit all
 * this. 0, or -1 with `e`. Closing restores only the mask. */
int terminal_signals_open(struct signals *s, bool session, struct err *e);
void terminal_signals_close(struct signals *s);

/* Set the flags of signals that have come. Never blocks. */
void terminal_signals_read(struct signals *s);
/* Set the flag of a signal that has come in another way. */
void terminal_signals_take(struct signals *s, int sig);
/* From now on callers poll `fd`, an epoll descriptor that watches the signals
 * too, and terminal_signals_read() also calls `more`. Borrows all three. */
void terminal_signals_through(struct signals *s, int fd,
	void (*more)(void *arg, struct signals *s), void *arg);
/* Set if the session goes on when its terminal is gone. */
void terminal_signals_outlive(struct signals *s, bool on);
/* True if the terminal was lost since the last call. */
bool terminal_signals_lost(struct signals *s);
/* True if SIGINT or a signal that ends us has come. Clears SIGINT. */
bool terminal_signals_cancelled(struct signals *s);

#endif
