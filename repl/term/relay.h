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

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
#define RELAY_IN 4096
/* Output that waits for the terminal: above this the tty is not read. */
#define RELAY_BACKLOG (64u << 10)
/* Interrupts within this time kill. */
#define RELAY_KILL_MS 2000
#define RELAY_KILL_PRESSES 3
/* So many keys have no Ctrl-C behind them. */
#define RELAY_ALL SIZE_MAX

/* Whom a relay works for; all borrowed. */
struct relay_opts {
	struct terminal *term;
	struct jail *jail;
	struct signals *signals;
	struct output *output; /* follows the window's width */
	/* Bytes from the tty, to be filtered and given to relay_put(). */
	void (*bytes)(void *arg, const char *buf, size_t n);
	/* The warden may have something to say: jail_next(). */
	void (*events)(void *arg);
	void *arg;
};

/* Caller's storage. */
struct relay {
	struct relay_opts with;
	int tty;	 /* master, non-blocking; -1: none (any more) */
	bool keys;	 /* standard input goes to the tty */
	bool keys_ended; /* it is at its end, or gone */
	bool held;	 /* keys wait: the tty is not ready for them */
	bool over;	 /* nor will it be: they are for what comes next */
	bool broken;	 /* the terminal, or what output goes to, is gone */
	bool moved;	 /* the last relay_move() read something of the tty */
	bool typed;	 /* the tty was given keys since relay_begin() */
	bool nul;	 /* a NUL was typed since relay_begin() */
	size_t fresh;	 /* keys since the last Ctrl-C; RELAY_ALL: none yet */
	struct strbuf out;
	size_t out_at;
	char in[RELAY_IN];
	size_t in_n;
	int64_t pressed_ms[RELAY_KILL_PRESSES]; /* the last interrupts */
};

void relay_init(struct relay *r, const struct relay_opts *with);
void relay_free(struct relay *r);

/* Another tty (borrowed), which becomes non-blocking; or -1. */
void relay_set_tty(struct relay *r, int tty);

/* Forget keys that were not delivered and interrupts that were counted, and
 * hold what is typed from now on until relay_release(). */
void relay_begin(struct relay *r);
void relay_release(struct relay *r);

/* Hold what is typed from now on for good. */
void relay_hold(struct relay *r);

/* Take back the keys that were not delivered: at most RELAY_IN bytes. */
size_t relay_untype(struct relay *r, char *buf);

/* One turn of the loop: wait at most `timeout_ms` (-1: without end), then take
 * signals, then events, then move bytes. The first RELAY_POLLS entries of `p`
 * are filled in here; the caller fills in the others and looks at them
 * afterwards. Signals that end or continue us are left as flags. Returns what
 * poll(2) did. */
int relay_turn(struct relay *r, struct pollfd *p, nfds_t n, int timeout_ms);

/* Let out what was put, and take nothing but signals, until the terminal has
 * taken nothing for `stuck_ms`; one that ends us leaves only `end_ms`. */
void relay_flush(struct relay *r, int stuck_ms, int end_ms);

/* The window may be larger or smaller: measure it, and pass that on. */
void relay_follow_window(struct relay *r);

/* Keys for the tty, as if they had just been typed. */
void relay_type(struct relay *r, const char *s, size_t n);

/* Add bytes for the terminal. */
void relay_put(struct relay *r, const void *buf, size_t n);

/* Whether the tty is read: not while too much waits for the terminal. */
bool relay_has_room(const struct relay *r);

/* Whether everything that was put has gone out. */
bool relay_is_flushed(const struct relay *r);

/* Note an interrupt; kills the cell at the third within two seconds. */
void relay_interrupted(struct relay *r);

#endif
