/* SPDX-License-Identifier: MIT */
/*
 * terminal.h - the person's own terminal
 */
#ifndef REPL_TERM_TERMINAL_H
#define REPL_TERM_TERMINAL_H

#include "repl/config/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <termios.h>

/* Caller's storage; all descriptors -1 when there is no such terminal. */
struct terminal {
	int in;	     /* standard input */
	int out;     /* where a tty's output goes: non-blocking, our own
		      * description of the terminal where it could be opened
		      * again; else standard output */
	bool own;    /* `out` is ours to close */
	bool in_tty; /* standard input is a terminal */
	bool out_tty;
	bool err_tty;
	bool colour; /* our own lines may have colour */
	bool dumb;   /* it is written to line by line */
	bool saved;  /* `modes` holds what to go back to */
	bool raw;
	int modes_fd; /* the descriptor whose modes we change; -1: none */
	struct termios modes;
	unsigned short rows, cols; /* 0: not known */
};

/* Look at descriptors 0, 1 and 2 and remember the modes. Never fails: what is
 * not a terminal is simply not one. */
void terminal_open(struct terminal *t, enum config_colour colour);

/* Whether TERM names no terminal that could erase what it shows. */
bool terminal_is_dumb(void);

/* For a program, whose tty may be only its input or its errors: let `out` be
 * whichever of the three is a terminal. */
void terminal_use_any(struct terminal *t);

/* Put the modes back and let go. */
void terminal_close(struct terminal *t);

/* Every key is a byte, nothing is echoed, and output goes out as it is. */
void terminal_raw(struct terminal *t);

/* Whether its keys are ours: false for a job in the background. */
bool terminal_is_in_front(const struct terminal *t);

/* The modes of terminal_open() again. Pending input stays. */
void terminal_restore(struct terminal *t);

/* Ask for the size. True when it is another than before. */
bool terminal_measure(struct terminal *t);

/* How wide the terminal behind `fd` is; 0: it is none, or does not say. */
int terminal_columns(int fd);

/* Write a line of ours; where `f` is a terminal, it is folded at words and goes
 * on below its third column. */
void terminal_print_line(FILE *f, const char *line);

/* Write everything, waiting at most `timeout_ms` at a time for a terminal
 * that does not drain. 0, or -1: it is gone, or stuck. */
int terminal_write(struct terminal *t, const char *s, size_t n, int timeout_ms);

/* The same for text in the modes of terminal_open() (cooked). */
void terminal_puts(struct terminal *t, const char *s);

#endif
