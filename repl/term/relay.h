/* SPDX-License-Identifier: MIT */
/*
 * relay.h - bytes between the person's terminal and the jail's tty
 *
 * Both ways are non-blocking with bounded buffers: a program that does not
 * read its tty cannot hold up the front end, nor can a terminal that does not
 * drain. The owner polls (relay_poll), lets the relay move what it can
 * (relay_move), and says what is done with the tty's bytes.
 */
#ifndef REPL_TERM_RELAY_H
#define REPL_TERM_RELAY_H

#include "repl/text/strbuf.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jail;
struct terminal;

/* Entries of relay_poll(). */
enum { RELAY_POLL_KEYS, RELAY_POLL_TTY, RELAY_POLL_OUT, RELAY_POLLS };

#define RELAY_READ 16384
#define RELAY_IN 4096
/* Output that waits for the terminal: above this the tty is not read. */
#define RELAY_BACKLOG (64u << 10)
/* Interrupts within this time kill. */
#define RELAY_KILL_MS 2000
#define RELAY_KILL_PRESSES 3
/* So many keys have no Ctrl-C behind them. */
#define RELAY_ALL SIZE_MAX

/* What came from the tty, to be filtered and given to relay_put(). */
typedef void relay_bytes(void *arg, const char *buf, size_t n);

/* Caller's storage. */
struct relay {
	struct terminal *term; /* borrowed, as all below */
	struct jail *jail;
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
	relay_bytes *bytes;
	void *arg;
};

/* `tty` becomes non-blocking. */
void relay_init(struct relay *r, struct terminal *term, struct jail *jail,
	relay_bytes *bytes, void *arg);
void relay_free(struct relay *r);

/* Another tty (borrowed), or -1. */
void relay_set_tty(struct relay *r, int tty);

/* Forget keys that were not delivered and interrupts that were counted, and
 * hold what is typed from now on until relay_release(). */
void relay_begin(struct relay *r);
void relay_release(struct relay *r);

/* Hold what is typed from now on for good. */
void relay_hold(struct relay *r);

/* Take back the keys that were not delivered: at most RELAY_IN bytes. */
size_t relay_untype(struct relay *r, char *buf);

/* Fill in what to wait for; entries that do not matter have fd -1. */
void relay_poll(const struct relay *r, struct pollfd p[static RELAY_POLLS]);

/* Move what poll(2) found ready. */
void relay_move(struct relay *r, const struct pollfd p[static RELAY_POLLS]);

/* Keys for the tty, as if they had just been typed. */
void relay_type(struct relay *r, const char *s, size_t n);

/* Add bytes for the terminal. */
void relay_put(struct relay *r, const void *buf, size_t n);

/* Whether everything that was put has gone out. */
bool relay_is_flushed(const struct relay *r);

/* Note an interrupt; kills the cell at the third within two seconds. */
void relay_interrupted(struct relay *r);

#endif
