/* SPDX-License-Identifier: MIT */
/*
 * relay.h - the front end's poll loop while a cell or a program runs
 *
 * The relay moves bytes between the person's terminal and the jail's tty. Both
 * ways are non-blocking with bounded buffers: neither a program that does not
 * read its tty nor a terminal that does not drain holds up the front end. The
 * relay also passes on signals and a new window size. Its owner calls
 * relay_turn() until it has what it waits for, and says what is done with the
 * tty's bytes and the warden's events.
 */
#ifndef REPL_TERM_RELAY_H
#define REPL_TERM_RELAY_H

#include "repl/text/strbuf.h"
#include "typed.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ask;
struct jail;
struct output;
struct signals;
struct terminal;

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

/* What a relay works with; all borrowed. */
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

/* Forget keys and counted interrupts, and hold what is typed from now on until
 * relay_release(). Until then Ctrl-C is no key, but for what was sent to the
 * jail. From relay_hand_over() on, when a cell may write, the tty is not read
 * until then either: what it gave before was not the cell's. */
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

/* Hold what is typed from now on until the next relay_begin(). */
void relay_hold(struct relay *r);

/* One turn of the loop: wait at most `timeout_ms` (-1: without end), then take
 * signals, then events, then move bytes. The relay fills in the first
 * RELAY_POLLS entries of `p`; the caller fills in the others and looks at them
 * afterwards. Signals that end or continue us stay set as flags. Returns what
 * poll(2) returned. */
int relay_turn(struct relay *r, struct pollfd *p, nfds_t n, int timeout_ms);

/* Write what waits for the terminal, and take nothing but signals. Gives up
 * when the terminal takes nothing for ten seconds, or for half a second after a
 * signal that ends us. */
void relay_flush(struct relay *r);

/* Measure the window, and pass a new size on. */
void relay_follow_window(struct relay *r);

/* Another terminal has taken the place of the one that there was, or none. */
void relay_changed_terminal(struct relay *r);

/* Keys for the tty, as if they had just been typed. */
void relay_type(struct relay *r, const char *s, size_t n);

/* Add bytes for the terminal. */
void relay_put(struct relay *r, const void *buf, size_t n);

/* Whether the tty is read: too much output may be waiting. */
bool relay_has_room(const struct relay *r);

/* Whether no output waits. */
bool relay_is_flushed(const struct relay *r);

/* Count an interrupt; the third within two seconds kills the cell. */
void relay_interrupted(struct relay *r);

#endif
