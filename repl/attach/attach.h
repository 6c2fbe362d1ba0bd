/* SPDX-License-Identifier: MIT */
/*
 * attach.h - terminals that come to a session and leave it
 *
 *	rundir.c	the directory of a person's sockets
 *	control.c	a session's own socket and its clients
 *	client.c	the process that a shell waits for
 *	logout.c	what a logout does to a session
 *	query.c		a client's request to a session
 *	watcher.c	the process that shows a session to a watcher
 *	elsewhere.c	sessions on other hosts
 *	registry.c	the list of sessions
 *
 * A session that may outlive its terminal is two processes. The client is what
 * a shell started: it waits, and passes signals on. The front end is its child,
 * or another process altogether, to which the client has handed its terminal.
 * The two share a connection, the link: its end is the loss of the terminal.
 *
 * A session has a socket (SOCK_SEQPACKET) in a directory that belongs to the
 * person, or to root. One connection is one request: a struct attach_request,
 * and descriptors. The first descriptor is always the user namespace of the
 * sender, /proc/self/ns/user. A guest has the person's own uid on the host, and
 * may see the socket where a configuration exposes the directory. But a guest
 * cannot have a descriptor of a namespace above its own.
 *
 * A server (cellblock --serve) has one such socket for all of its sessions.
 */
#ifndef REPL_ATTACH_ATTACH_H
#define REPL_ATTACH_ATTACH_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct err;
struct signals;
struct strbuf;
struct terminal;
struct text_table;

/* ---- the wire ---- */

#define ATTACH_MAGIC 0x6b626c63u /* never changes */
#define ATTACH_VERSION 3	 /* wire ca92968c */
#define ATTACH_TEXT 512
/* The namespace, standard input, output and errors, and the terminal opened
 * again for output without blocking (optional). */
#define ATTACH_FDS 5

/* Kinds of request. Those before ATTACH_ATTACH keep their meaning, and their
 * part of struct attach_request, in all versions. */
enum attach_kind {
	ATTACH_STATUS = 1,  /* answered with a struct attach_status */
	ATTACH_END,	    /* end the session; `text` says why, or is empty */
	ATTACH_MESSAGE,	    /* show `text` to the person */
	ATTACH_DETACH,	    /* let the terminal go */
	ATTACH_ATTACH = 64, /* take this terminal: all descriptors, or on a
			     * link those behind the first; `number`: a shell
			     * waits for the client, which can stop */
	ATTACH_SIDE,	    /* run a program beside: answered with a socket */
	ATTACH_WATCH,	    /* answered; packets follow (struct watcher_head) */
	ATTACH_LIST,	    /* of a server: answered with a memory file */
	/* On a link, with ATTACH_ATTACH from a client that was stopped: */
	ATTACH_SIGNAL = 96, /* signal `number` has come */
};

/* The purpose of a program beside the session. */
enum attach_side {
	ATTACH_SIDE_SHELL,  /* scp, sftp and rsync, where files.remote is on */
	ATTACH_SIDE_PYTHON, /* a program of Python's: files.share */
	ATTACH_SIDE_COPY,   /* none is started: root copies the home */
};

/* Strings end with a NUL. */
struct attach_request {
	uint32_t magic;
	uint16_t version;
	uint16_t kind;
	int32_t number; /* of a signal; of a server's session (ATTACH_END);
			 * ATTACH_SIDE: enum attach_side */
	uint32_t reserved;
	char text[ATTACH_TEXT];
	/* Only the same version understands the fields from here on. */
	char term[64], colorterm[32], no_color[8];
	char from[64]; /* the client's address or terminal */
};

/* The shortest request of any version, in bytes. */
#define ATTACH_HEAD offsetof(struct attach_request, term)

enum attach_word {
	ATTACH_OK = 1, /* done; a link stays open */
	ATTACH_NO,     /* refused: `text` */
	/* On a link: */
	ATTACH_OVER,  /* the session is over, with exit status `number` */
	ATTACH_LEFT,  /* the session goes on without a terminal: `text` */
	ATTACH_TAKEN, /* another client has the session: `text`; `number`: a
		       * full-screen program was shown */
	ATTACH_STOP,  /* stop as a job, and then attach again; `number`: the
		       * same */
};

enum attach_state { ATTACH_PROMPT, ATTACH_RUNS };

/* Times are in milliseconds; -1 is unknown or does not apply. */
struct attach_status {
	int32_t pid;
	uint32_t cell;	/* number of the last cell */
	uint32_t state; /* enum attach_state */
	uint32_t reserved;
	int64_t began;	 /* seconds since the epoch */
	int64_t cell_ms; /* since that cell began or ended */
	int64_t idle_ms; /* since the last key, or the end of a cell */
	int64_t away_ms; /* since it was detached; -1: attached */
	int64_t cpu_ms, memory_bytes, home_bytes, home_files;
	char who[64], from[64], build[32];
};

/* A session of a server. The memory file that answers ATTACH_LIST is a sealed
 * array of them. In `status`, `who` is the server's address and `from` its
 * client. */
struct attach_entry {
	int32_t number;
	uint32_t reserved;
	struct attach_status status;
};

struct attach_answer {
	uint32_t magic;
	uint16_t version;
	uint16_t word;
	int32_t number;
	uint32_t reserved;
	char text[ATTACH_TEXT];
	struct attach_status status;
};

/* A message to a watcher: struct watcher_head and at most WATCHER_DATA bytes.
 * The answer to ATTACH_WATCH has WATCHER_STREAM as its number. */
#define WATCHER_STREAM 1
#define WATCHER_DATA 16384

enum watcher_kind {
	WATCHER_SOURCE = 1, /* of a cell or a command, from byte `number` on */
	WATCHER_OUTPUT,	    /* as the cell wrote it, unfiltered */
	WATCHER_BREAK,	    /* the next output begins a line */
	WATCHER_END,	    /* the cell's output is over */
	WATCHER_LINE,	    /* the text of a frame line */
	WATCHER_BACKGROUND, /* output of no cell */
	WATCHER_MISSED,	    /* the session dropped `number` bytes */
	WATCHER_OVER,	    /* the session is over */
};

/* The cell reads keys one by one. */
#define WATCHER_STEERS 1

struct watcher_head {
	uint32_t magic; /* ATTACH_MAGIC */
	uint16_t kind, flags;
	uint32_t cell; /* 0: none */
	uint32_t reserved;
	int64_t number;
};

/* True if the `n` bytes in *r are a request. Ends its strings, and zeroes the
 * fields that did not come. Pure. */
bool control_check(struct attach_request *r, size_t n);

/* ---- rundir.c ---- */

/* The person whose sessions are meant. */
struct rundir_of {
	uid_t uid;
	const char *state_dir; /* borrowed; NULL: unknown */
};

/* The highest number of a session; of a server. The numbers of servers begin
 * behind those of sessions. */
#define RUNDIR_SESSIONS 1000
#define RUNDIR_IDS (2 * RUNDIR_SESSIONS)

/* Open the directory with all sockets of the person; the first session chose
 * it. A descriptor, or -1: the person has no session. */
int rundir_open(const struct rundir_of *of, char path[static PATH_MAX]);

/* Bind the lowest free number from *id on in the directory of the person's
 * sessions; the first session chooses the first directory that works. A
 * listening socket; *id is the number, *dir the directory (the caller closes),
 * `path` its name. -1 with e: there is no socket. */
int rundir_bind(const struct rundir_of *of, int *dir,
	char path[static PATH_MAX], int *id, struct err *e);

/* Connect to a session of `uid`: a socket, or -1 with errno. ECONNREFUSED:
 * no session listens there; we have tried to remove the socket. EPERM: another
 * user listens there. */
int rundir_connect(int dir, int id, uid_t uid);

/* Find out about a session that does not answer: the process that listens (0:
 * unknown; `sock` is connected, or -1), and since when (0: unknown). */
void rundir_look(int dir, int id, int sock, pid_t *pid, int64_t *began);

/* Remove the socket of a session that ends. */
void rundir_remove(int dir, int id);

/* List the ids in a directory, sorted. Their number. */
size_t rundir_list(int dir, int ids[static RUNDIR_IDS]);

/* ---- control.c ---- */

struct control;

/* A complete request. The caller of control_take() owns its descriptors. */
struct control_request {
	int fd;
	int fds[ATTACH_FDS];
	int nfds;
	uid_t uid;
	pid_t pid;
	bool linked; /* the connection was the link */
	size_t n;
	struct attach_request request;
};

/* Takes the link to a client, or -1. No socket yet. NULL: no memory. */
struct control *control_new(int link);
void control_free(struct control *d);

/* Bind the socket of the session, or of the server. 0, or -1 with e: there is
 * none. */
int control_open(struct control *d, const struct rundir_of *of, bool server,
	struct err *e);

/* True if the session has a socket. */
bool control_is_open(const struct control *d);
/* True if the socket still has its name: the host removes a runtime directory
 * with the last logout. */
bool control_is_named(const struct control *d);
/* The socket's number and its directory. */
int control_id(const struct control *d);
const char *control_place(const struct control *d);

/* Let `sig` wake us for clients and the link, too. 0, or -1 with e. */
int control_watch(struct control *d, struct signals *sig, struct err *e);

/* Take the oldest complete request of `kind` (0: of any): 1, or 0. */
int control_take(struct control *d, int kind, struct control_request *v);

/* True if the client has not closed the connection. */
bool control_has(int client);

/* True if a complete request waits. */
bool control_is_called(const struct control *d);

/* True if we understand the whole request: its version and size are ours. */
bool control_is_same_build(const struct control_request *v);

/* Answer, and close the connection and the request's descriptors. */
void control_answer(struct control_request *v, enum attach_word word,
	const char *text, const struct attach_status *st);

/* Close the connection and the request's descriptors without an answer. v->fd
 * -1: the caller has taken the connection. */
void control_drop(struct control_request *v);

/* Send a client `fd` (borrowed), or, if that is -1, a refusal that says `why`.
 * The connection stays open. 0, or -1 with errno. */
int control_hand(int client, int fd, const char *why);

/* Tell a watcher that it may, and keep the connection (returned; the caller
 * closes). It wakes us when the peer sends or leaves, or can take more. */
int control_keep(struct control *d, struct control_request *v);

/* True if the peer of that connection has neither left nor sent anything. */
bool control_listens(int kept);

/* Make a client's connection the link, and close the old link. Tell the client
 * how the session goes on, and close the link. The client can stop, because a
 * shell waits for it; tell it to. */
void control_link(struct control *d, struct control_request *v);
void control_leave(
	struct control *d, enum attach_word word, int number, const char *text);
bool control_stops(const struct control *d);
void control_stop(struct control *d, bool whole);

/* Wake us after `ms` milliseconds, suspend included; 0: cancel.
 * control_is_due(): that time is over. */
void control_alarm(struct control *d, int64_t ms);
bool control_is_due(const struct control *d);

/* ---- client.c ---- */

/* Fork. The parent becomes the client and never returns; the child gets the
 * link. -1 with e: there is no child. `person` is the name of the account, or
 * NULL. */
int client_begin(const char *person, struct err *e);

/* Hand our terminal to the session at `sock`, and wait. The exit status; -1
 * with e: the session did not take it. */
int client_attach(
	int sock, const char *person, const char *from, struct err *e);

/* Write the address of our SSH client, or else the name of our terminal. */
void client_from(char *from, size_t size);

/* ---- logout.c ---- */

enum logout_kills { LOGOUT_UNKNOWN, LOGOUT_SPARES, LOGOUT_KILLS };

struct logout {
	char linger[96]; /* this file exists: the person lingers */
	int cgroup;	 /* /proc/PID/cgroup of the front end; or -1 */
	bool moves;
	enum logout_kills kills; /* of the front end, at a logout */
};

/* Ask the login manager if a logout ends process `front`, which runs as our
 * user; wait three seconds at most. With `move`, move the front end of a
 * lingering person to where no logout ends it. */
void logout_ask(struct logout *l, const char *person, pid_t front, bool move);

/* How a logout would end the session now, as a text; NULL: not at all. */
const char *logout_tell(const struct logout *l);

/* ---- query.c ---- */

/* Send a request with our namespace alone, and wait for the answer. 0, or -1
 * with e: no answer in time, or a refusal. */
int query_ask(int sock, enum attach_kind kind, const char *text,
	struct attach_answer *a, struct err *e);

/* End session `number` of a server (0: the session itself). As query_ask(). */
int query_end(int sock, int number, const char *text, struct err *e);

/* As fork(), for a child that asks for a descriptor. The child alone has the
 * socket: ours is closed before the child goes on, and *sock is -1. A planted
 * process may send what is never read. The last close() of the socket closes
 * that, too, and can take as long as its sender likes; an exit does not wait.
 */
pid_t query_fork(int *sock);

/* Ask a server for its sessions: *v (caller frees) and *n. Takes the socket. 0,
 * or -1. */
int query_list(int *sock, struct attach_entry **v, size_t *n);

/* Ask for a program beside the session: the socket for jail_adopt(), or -1 with
 * e. `sock` must stay open while the program runs. */
int query_side(int sock, enum attach_side what, struct err *e);

/* Ask to watch the session; `from` is of client_from(). 0, or -1 with e. The
 * session then sends watcher messages on the socket. */
int query_watch(int sock, const char *from, struct err *e);

/* True if the `n` bytes are a message to a watcher; *h is its head. Pure. */
bool query_packet(const void *packet, size_t n, struct watcher_head *h);

/* Fill in the head of a request. */
void query_begin(
	struct attach_request *r, enum attach_kind kind, const char *text);

/* Our user namespace; -1 with e. The caller closes. */
int query_namespace(struct err *e);

/* ---- watcher.c ---- */

/* Show the session `name` at `sock` on our open terminal, or where our output
 * goes instead, until Ctrl-C, q, or the session's end. The exit status, or -1
 * with e. */
int watcher_run(int sock, const char *name, struct terminal *t, struct err *e);

/* ---- elsewhere.c ---- */

/* A session on another host, as root's maker tells it. Strings end with a NUL,
 * and are safe to show. */
struct elsewhere {
	char host[64], user[64];
	char reach[128];  /* what brings one there: "ssh -p 2202 lab" */
	int64_t began;	  /* seconds since the epoch */
	int64_t silent_s; /* since the host was heard of */
	uint32_t own;	  /* it is of the person who asks */
	uint32_t reserved;
};

/* True if the host was heard of lately. */
bool elsewhere_is_heard(const struct elsewhere *v);

/* Write "your session from 14:02 is on lab2 · ssh -p 2202 lab goes there". */
void elsewhere_describe(const struct elsewhere *v, char *buf, size_t size);

/* Say so in the hint of an error about session `id` (NULL: any), where that may
 * mean this one. */
void elsewhere_hint(const struct elsewhere *v, const char *id, struct err *e);

/* Add it as a row of --sessions. */
void elsewhere_add_row(struct text_table *t, const struct elsewhere *v);

/* ---- registry.c ---- */

struct registry_entry {
	int dir; /* owned by the registry; one for each person */
	int id;
	int part; /* number of a session of server `id`; 0: none */
	uid_t uid;
	char user[64];
	bool answered;
	int64_t keyed_ms;	     /* now_ms() when the last key came */
	int64_t waited_ms[2];	     /* registry_patience_ms() */
	struct attach_status status; /* no answer: `pid` and `began` alone */
};

/* The sessions that registry_open() lists. */
enum registry_scope {
	REGISTRY_OWN,	  /* the person's sessions */
	REGISTRY_SERVERS, /* and those of the person's servers */
	REGISTRY_ALL,	  /* and both of every account */
};

struct registry {
	struct registry_entry *v;
	size_t n;
	int *dirs;
	size_t ndirs;
	enum registry_scope scope;
	int64_t until_ms; /* deadline for one person's sessions */
	bool full;	  /* registry_ask(): the person can have no more */
	bool login;	  /* sshd started us */
	struct elsewhere *elsewhere; /* registry_free() frees them */
	size_t nelsewhere;
};

/* List sessions; `user` is the person. 0, or -1 with e. */
int registry_open(struct registry *r, const struct rundir_of *of,
	const char *user, enum registry_scope scope, struct err *e);
void registry_free(struct registry *r);

/* How long a person may still keep us waiting, with all of their sessions
 * together; and note how long one has. Many are told or ended one after the
 * other, and a planted one may say nothing. */
enum registry_wait { REGISTRY_FOR_ANSWERS, REGISTRY_FOR_ENDS };
int64_t registry_patience_ms(const struct registry *r,
	const struct registry_entry *v, enum registry_wait what);
void registry_note_wait(struct registry *r, const struct registry_entry *v,
	enum registry_wait what, int64_t ms);

/* Write what an entry has: "of 14:02 · 4 cells · 2 files". */
void registry_describe(const struct registry_entry *v, char *buf, size_t size);

/* Name an entry: "7" for one's own session, "s1.7" for one of one's server 1,
 * else "ann/7". */
#define REGISTRY_NAME 96
void registry_name(const struct registry_entry *v, char *buf, size_t size);

/* The entry that `id` names: "7", one's own, or "ann/7". `id` NULL: the only
 * one that is offered, or the only one. NULL with e. */
const struct registry_entry *registry_find(
	const struct registry *r, const char *id, struct err *e);

/* Print the list for --sessions. 0, or -1: no memory. */
int registry_print(const struct registry *r, bool json, int width, FILE *f);

/* If sessions are offered, ask on the terminal which one to go back to. At a
 * login all are offered: sshd finds a line that is dead late. If the person has
 * `most` sessions, all are offered, also to be ended for a new one. */
enum registry_choice {
	REGISTRY_NEW,
	REGISTRY_BACK,
	REGISTRY_END,
	REGISTRY_NEITHER
};
enum registry_choice registry_ask(
	struct registry *r, int most, const struct registry_entry **which);

#endif
