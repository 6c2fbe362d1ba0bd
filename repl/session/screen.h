/* SPDX-License-Identifier: MIT */
/*
 * screen.h - the terminal, between the editor and the jail's tty
 */
#ifndef REPL_SESSION_SCREEN_H
#define REPL_SESSION_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct session;

/* Make s->screen, without a tty yet. `events` takes what the warden says. 0, or
 * -1 with e. */
int screen_open(
	struct session *s, void (*events)(void *session), struct err *e);
void screen_close(struct session *s);

/* Another master (owned from now on), or -1. While a cell writes, the end of
 * its output is read from the old one first. */
void screen_replace(struct session *s, int fd);

/* ---- a cell, in this order ---- */

/* A cell was sent: the terminal is raw, and keys wait for the cell. */
void screen_begin(struct session *s);

/* The cell runs: what comes is its output, up to `mark` (hexadecimal). */
void screen_run(struct session *s, const char *mark);

/* Wait at most `timeout_ms` (-1: without end), then take signals, events and
 * bytes. */
void screen_turn(struct session *s, int timeout_ms);

/* Whether a cell's output, if it had any, is known to be over. */
bool screen_is_over(const struct session *s);

/* When the tty last had something to say (now_ms()). */
int64_t screen_heard_ms(const struct session *s);

/* Whether the terminal has taken everything. */
bool screen_is_flushed(const struct session *s);

/* The output is over: undo its modes and say what was left out. */
void screen_end_output(struct session *s);

/* The cell is over: let everything out. Then the editor has the terminal, and
 * the keys that the cell did not read. */
void screen_end(struct session *s);

/* ---- at any time ---- */

/* Keys that the warden found unread. */
void screen_take_keys(struct session *s, char *keys, size_t n);

/* The window may be larger or smaller. */
void screen_follow_window(struct session *s);

/* Say what of the background output was left out, if anything. */
void screen_tell_background(struct session *s);

#endif
