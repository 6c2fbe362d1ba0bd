/* SPDX-License-Identifier: MIT */
/*
 * guest.h - the live guest: the process that runs the cells
 */
#ifndef JAIL_WARDEN_GUEST_H
#define JAIL_WARDEN_GUEST_H

#include "jail/wire/wire.h"
#include "link.h"

#include <stdint.h>
#include <sys/types.h>

struct err;
struct warden_jail;

/* The most that is shown of where a stuck cell was. */
#define GUEST_STACK_MAX 8192

/* Only guest.c writes it. */
struct guest {
	struct link *link;
	struct warden_jail *jail;
	int ctl;    /* our end of its control socket */
	int stack;  /* memfd it writes its stacks to when told */
	pid_t pid;  /* in the jail; 0: it is dead: ask guest_is_alive() */
	int status; /* once dead, as from waitpid() */
	int alone;  /* its death left init alone in the jail */
	uint32_t names, threads; /* its word */
	uint32_t late; /* the PARK whose answer is still to come; 0: none */
};

/* A message, and the bytes that its answer points into. */
struct guest_message {
	struct wire_guest wire;
	char bytes[WIRE_GUEST_MAX];
};

void guest_init(struct guest *g, struct link *l, struct warden_jail *j);

/* ---- life ---- */

/* Have init start a program on these descriptors (borrowed): SPAWN_ARGS, stdio,
 * and the report where there is one. And wait until it has, or the driver has.
 * 0, or -1 with e; the wait may return SESSION_OVER. */
int guest_spawn(struct guest *g, const int *fds, int nfds, struct err *e);
LINK_CHECKED int guest_spawn_await(struct guest *g, struct err *e);

/* The same with the driver, for a session or for one cell, on stdio and a pipe
 * for the report (borrowed); and wait until it says READY: *m is that. */
int guest_start(struct guest *g, struct err *e);
int guest_start_cell(struct guest *g, const int *fds, int nfds, struct err *e);
LINK_CHECKED int guest_start_await(
	struct guest *g, struct guest_message *m, struct err *e);

/* Hand over the one cell, which a start holds (borrowed, wire.h). Nothing that
 * the guest says is heard from then on. 0, or -1 with e. */
int guest_give_cell(struct guest *g, int fd, struct err *e);

/* The same for a program: its arguments, and what is not the tty of its stdio.
 */
int guest_give_program(struct guest *g, unsigned tty_bits, const int *fds,
	int n, struct err *e);

/* It is dead: whether it had read that before. */
int guest_took_cell(struct guest *g);

/* Close its links: its jail has ended. */
void guest_end(struct guest *g);

/* Whether it lives, as far as init has reported. */
int guest_is_alive(struct guest *g);

/* Another process is the live guest from now on (0: none is); and it has
 * answered, on this socket (taken). */
void guest_become(struct guest *g, pid_t pid);
void guest_become_awake(struct guest *g, int ctl, uint32_t names);

/* ---- messages ---- */

/* Send, with a descriptor (borrowed) or -1. -1 when it does not take it. */
int guest_send(struct guest *g, const char *buf, size_t n, int fd);

/* Take one message that is there: 1 taken, 0 none, -1 gone or malformed. */
int guest_receive(int sock, struct guest_message *m);

/* Wait for one message on `sock`: 1 taken, 0 at the deadline, -1 gone or
 * malformed, or the jail takes too much memory; SESSION_OVER. */
LINK_CHECKED int guest_await(struct guest *g, int sock, struct guest_message *m,
	int64_t deadline_ms);

/* The same, and once the person has interrupted it, only until `least_ms`. */
LINK_CHECKED int guest_await_hurried(struct guest *g, int sock,
	struct guest_message *m, int64_t deadline_ms, int64_t least_ms);

/* The same, where no answer costs the variables: an interrupt leaves the guest
 * a moment, and 0 is returned only where it is the jail's own doing that none
 * comes. Where the host has kept the jail from running for ten seconds more
 * than that, GUEST_LATE. */
#define GUEST_LATE 2
LINK_CHECKED int guest_await_fair(struct guest *g, int sock,
	struct guest_message *m, int64_t deadline_ms);

/* Its answer to PARK `no` did not come in time: it may come before the next.
 * And whether a message is that, once. */
void guest_note_late(struct guest *g, uint32_t no);
int guest_is_late_answer(struct guest *g, const struct wire_guest *m);

/* It has said DONE: note its counts. */
void guest_note_done(struct guest *g, const struct wire_guest *m);

/* Empty the file for that. Only while every guest is stopped: one that runs can
 * hold the locks of the file. */
void guest_clear_stack(struct guest *g);

/* Have it write down where it is, as long as that takes: `text` has room for
 * GUEST_STACK_MAX + 1 bytes and is hostile. Length, 0 for nothing. */
size_t guest_read_stack(struct guest *g, char *text);

#endif
