/* SPDX-License-Identifier: MIT */
/*
 * terminal.h - the person's own terminal, and signals as something to poll
 */
#ifndef REPL_TERM_TERMINAL_H
#define REPL_TERM_TERMINAL_H

#include "repl/config/config.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <termios.h>

struct err;

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

/* Whether the terminal that TERM names cannot erase what it shows. */
bool terminal_is_dumb(void);

/* Let `out` be whichever of descriptors 0, 1 and 2 is a terminal: of a program
 * only the input or the errors may be one. */
void terminal_use_any(struct terminal *t);

/* Restore the modes, and close `out`. */
void terminal_close(struct terminal *t);

/* The terminal is gone, and nobody types: `file` takes the place of descriptors
 * 1 and 2 and of `out`, and /dev/null that of descriptor 0. Their numbers stay.
 * What is written is still for a terminal, of the size that there was. */
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

/* While nobody reads keys in raw mode: Ctrl-C is SIGINT, or a key again. */
void terminal_raw_interrupt(const struct terminal *t, bool on);

/* Whether the terminal's keys are ours: false for a job in the background. */
bool terminal_is_in_front(const struct terminal *t);

/* Restore the modes of terminal_open(). Pending input stays. */
void terminal_restore(struct terminal *t);

/* Ask for the size. True when it has changed. */
bool terminal_measure(struct terminal *t);

/* How wide the terminal behind `fd` is; 0: it is none, or does not say. */
int terminal_columns(int fd);

/* Write a line of ours; where `f` is a terminal, it is folded at words and goes
 * on below its third column. */
void terminal_print_line(FILE *f, const char *line);

/* Write lines of ours to standard error, each "cellblock: WHAT: LINE" and made
 * safe; `what` is NULL or ours. */
void terminal_complain(const char *what, const char *text);

/* The same for an error, with its hint. A hint is there to be copied, so it is
 * never folded. */
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

/* A signal has come in another way. */
void terminal_signals_take(struct signals *s, int sig);

/* From now on `fd` is polled, behind which `s->fd` is, and
 * terminal_signals_read() calls `more`, too. All borrowed. */
void terminal_signals_through(struct signals *s, int fd,
	void (*more)(void *arg, struct signals *s), void *arg);

/* From now on the session outlives its terminal, or not any more. */
void terminal_signals_outlive(struct signals *s, bool on);

/* Whether the terminal was lost since this was asked last. */
bool terminal_signals_lost(struct signals *s);

/* Whether SIGINT or a signal that ends us has come. Clears SIGINT. */
bool terminal_signals_cancelled(struct signals *s);

#endif
