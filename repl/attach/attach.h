/* SPDX-License-Identifier: MIT */
/*
 * attach.h - terminals that come to a session and leave it
 *
 *	rundir.c	the directory where a person's sessions have their
 *sockets control.c		a session's own socket, and who comes to it
 *	client.c	the process that a shell waits for
 *	logout.c	what becomes of a session when its person logs out
 *	query.c		one request to somebody's session
 *	watcher.c	the process of somebody who watches one
 *	registry.c	the sessions that there are
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

/* ---- the wire ---- */

#define ATTACH_MAGIC 0x6b626c63u /* the same for ever */
#define ATTACH_VERSION 1
#define ATTACH_TEXT 512
/* The namespace, standard input, output and errors, and the terminal opened
 * again for output without blocking (optional). */
#define ATTACH_FDS 5

/* What is asked. Those before ATTACH_ATTACH keep their meaning, and their part
 * of struct attach_request, in all versions. */
enum attach_kind {
	ATTACH_STATUS = 1,  /* answered with a struct attach_status */
	ATTACH_END,	    /* end the session; `text` says why, or is empty */
	ATTACH_MESSAGE,	    /* show `text` to the person */
	ATTACH_DETACH,	    /* let the terminal go */
	ATTACH_ATTACH = 64, /* take this terminal: all descriptors */
	ATTACH_SIDE,	    /* run a program beside: answered with a socket */
	ATTACH_WATCH,	    /* answered; packets follow (struct watcher_head) */
	ATTACH_SIGNAL = 96, /* on a link: signal `number` has come */
};

/* Strings end with a NUL. */
struct attach_request {
	uint32_t magic;
	uint16_t version;
	uint16_t kind;
	int32_t number;
	uint32_t reserved;
	char text[ATTACH_TEXT];
	/* From here on only the same version can be understood. */
	char term[64], colorterm[32], no_color[8];
	char from[64]; /* where the person sits: an address, or a terminal */
};

/* What is sent at least, in every version. */
#define ATTACH_HEAD offsetof(struct attach_request, term)

enum attach_word {
	ATTACH_OK = 1, /* done; a link stays open */
	ATTACH_NO,     /* refused: `text` */
	/* On a link: */
	ATTACH_OVER,  /* the session is over, with exit status `number` */
	ATTACH_LEFT,  /* the session goes on without a terminal: `text` */
	ATTACH_TAKEN, /* it goes on with another terminal: `text`; `number`: a
		       * full-screen program was shown */
};

enum attach_state { ATTACH_PROMPT, ATTACH_RUNS };

/* Times are in milliseconds; -1 is unknown or does not apply. */
struct attach_status {
	int32_t pid;
	uint32_t cell;	/* the last number */
	uint32_t state; /* enum attach_state */
	uint32_t reserved;
	int64_t began;	 /* seconds since the epoch */
	int64_t cell_ms; /* since it began, or since it ended */
	int64_t idle_ms; /* since the last key, or the end of a cell */
	int64_t away_ms; /* since the terminal was lost; -1: there is one */
	int64_t cpu_ms, memory_bytes, home_bytes, home_files;
	char who[64], from[64], build[32];
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

/* What a watcher gets, a message each: this head, and at most WATCHER_DATA
 * bytes. The answer has WATCHER_STREAM as its number. */
#define WATCHER_STREAM 1
#define WATCHER_DATA 16384

enum watcher_kind {
	WATCHER_SOURCE = 1, /* of a cell or a command, from byte `number` on */
	WATCHER_OUTPUT,	    /* as the cell wrote it, unfiltered */
	WATCHER_BREAK,	    /* what comes next begins a line */
	WATCHER_END,	    /* the cell's output is over */
	WATCHER_LINE,	    /* the text of a frame line */
	WATCHER_BACKGROUND, /* output of no cell */
	WATCHER_MISSED,	    /* `number` bytes did not come */
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

/* Whether `n` bytes, which lie in *r, are a request that may be looked at. Its
 * strings end afterwards, and what did not come is zero. Pure. */
bool control_check(struct attach_request *r, size_t n);

/* ---- rundir.c ---- */

/* The person whose sessions are meant. */
struct rundir_of {
	uid_t uid;
	const char *state_dir; /* borrowed; NULL: unknown */
};

/* The highest number of a session. */
#define RUNDIR_IDS 1000

/* Open the directory of the person's sessions: all of them lie in one, which
 * the first of them chose. A descriptor, or -1: the person has no session. */
int rundir_open(const struct rundir_of *of, char path[static PATH_MAX]);

/* Bind the lowest free number in the directory of the person's sessions; the
 * first session chooses the first directory that works. A listening socket;
 * *id is the number, *dir the directory (the caller closes), `path` its name.
 * -1 with e: no session can be reached here. */
int rundir_bind(const struct rundir_of *of, int *dir,
	char path[static PATH_MAX], int *id, struct err *e);

/* Connect to a session of `uid`: a socket, or -1 with errno. ECONNREFUSED:
 * nobody listens there any more, and the socket was removed. EPERM: somebody
 * else does. */
int rundir_connect(int dir, int id, uid_t uid);

/* Remove the socket of a session that ends. */
void rundir_remove(int dir, int id);

/* The ids that a directory has, sorted; at most `max`. How many. */
size_t rundir_list(int dir, int *ids, size_t max);

/* ---- control.c ---- */

struct control;

/* A request that came whole. Who takes it owns the descriptors. */
struct control_request {
	int fd;
	int fds[ATTACH_FDS];
	int nfds;
	uid_t uid;
	pid_t pid;
	size_t n;
	struct attach_request request;
};

/* A link to a client, if any (taken), and no socket yet. NULL: no memory. */
struct control *control_new(int link);
void control_free(struct control *d);

/* Bind the socket of the session. -1 with e: nobody can come to it. */
int control_open(struct control *d, const struct rundir_of *of, struct err *e);

/* Whether there is a socket; its number and its directory. */
bool control_is_open(const struct control *d);
/* Whether the socket has kept its name: the host removes a runtime directory
 * with the last logout. */
bool control_is_named(const struct control *d);
int control_id(const struct control *d);
const char *control_place(const struct control *d);

/* Have signals come through the control socket, too. 0, or -1 with e. */
int control_watch(struct control *d, struct signals *sig, struct err *e);

/* Take the next request that has come, of one kind, or (0) of any: 1, or 0. */
int control_take(struct control *d, int kind, struct control_request *v);

/* Whether a visitor has not gone. */
bool control_has(int visitor);

/* Whether one has come. */
bool control_is_called(const struct control *d);

/* Whether the request is one of our build: all of it can be understood. */
bool control_is_same_build(const struct control_request *v);

/* Answer, and close the connection and what came with it. */
void control_answer(struct control_request *v, enum attach_word word,
	const char *text, const struct attach_status *st);

/* Close what came with it without an answer; with `fd` -1 the connection was
 * taken. */
void control_drop(struct control_request *v);

/* Answer on a connection that stays open with a descriptor (borrowed); or -1
 * and why there is none. 0, or -1: nobody is there. */
int control_hand(int visitor, int fd, const char *why);

/* Answer with a number, and keep the connection (returned; the caller closes).
 * From now on it wakes us when it ends, or can take more. */
int control_keep(struct control *d, struct control_request *v, int number);

/* Whether whoever has that connection has neither gone nor said anything. */
bool control_listens(int kept);

/* The client that waits for us: another one's connection becomes the link; say
 * how it goes on, and let it go. */
void control_link(struct control *d, struct control_request *v);
void control_leave(
	struct control *d, enum attach_word word, int number, const char *text);

/* Wake us after so many milliseconds, in which the machine may have slept; 0:
 * not at all. control_is_due(): they are over. */
void control_alarm(struct control *d, int64_t ms);
bool control_is_due(const struct control *d);

/* ---- client.c ---- */

/* Fork. In the child, the link; the parent becomes the client, and never
 * returns. -1 with e: there is no child. `person` is the name of the account,
 * or NULL. */
int client_begin(const char *person, struct err *e);

/* Hand our terminal to a session that a request was sent to, and wait. The exit
 * status; -1 with e: refused. */
int client_attach(
	int sock, const char *person, const char *from, struct err *e);

/* Where the person sits. */
void client_from(char *from, size_t size);

/* ---- logout.c ---- */

enum logout_kills { LOGOUT_UNKNOWN, LOGOUT_SPARES, LOGOUT_KILLS };

struct logout {
	char linger[96]; /* a file: the person lingers */
	int cgroup;	 /* a file: where the front end is; -1: none */
	bool moves;
	enum logout_kills kills; /* what is left of a login */
};

/* Ask about the session of a front end that runs as our user; answers are
 * waited for three seconds at most. With `move`, who lingers has the front end
 * moved to where no logout ends it. */
void logout_ask(struct logout *l, const char *person, pid_t front, bool move);

/* How logging out would end the session now; NULL: it would not. */
const char *logout_tell(const struct logout *l);

/* ---- query.c ---- */

/* Send a request that needs only the namespace, and wait for the answer. 0, or
 * -1 with e: nobody answers in time, or the answer is no. */
int query_ask(int sock, enum attach_kind kind, const char *text,
	struct attach_answer *a, struct err *e);

/* Ask for a program beside the session: the socket for jail_adopt(), or -1 with
 * e. `sock` stays open as long as that runs. */
int query_side(int sock, struct err *e);

/* Ask to watch the session; `from` is where we sit. 0, or -1 with e. The
 * socket then has what is seen. */
int query_watch(int sock, const char *from, struct err *e);

/* Whether `n` bytes are a message to a watcher: its head. Pure. */
bool query_packet(const void *packet, size_t n, struct watcher_head *h);

/* Fill in the head of a request. */
void query_begin(
	struct attach_request *r, enum attach_kind kind, const char *text);

/* Our user namespace; -1 with e. The caller closes. */
int query_namespace(struct err *e);

/* ---- watcher.c ---- */

/* Show on a terminal that is open, or where its output goes instead, what the
 * session `name` on that socket shows, until Ctrl-C, q, or its end. The exit
 * status, or -1 with e. */
int watcher_run(int sock, const char *name, struct terminal *t, struct err *e);

/* ---- registry.c ---- */

struct registry_entry {
	int dir; /* owned by the registry; one for each person */
	int id;
	uid_t uid;
	char user[64];
	bool answered;
	int64_t keyed_ms; /* now_ms() when the last key came */
	struct attach_status status;
};

struct registry {
	struct registry_entry *v;
	size_t n;
	int *dirs;
	size_t ndirs;
	int64_t until_ms; /* how long one person's sessions are waited for */
};

/* All sessions of the person of that name, and with `all` of everybody who has
 * an account. 0, or -1 with e. */
int registry_open(struct registry *r, const struct rundir_of *of,
	const char *user, bool all, struct err *e);
void registry_free(struct registry *r);

/* Name an entry: "7" for one's own session, else "ann/7". */
#define REGISTRY_NAME 96
void registry_name(const struct registry_entry *v, char *buf, size_t size);

/* The entry that `id` names: "7", one's own, or "ann/7"; NULL: the only one, or
 * the only one that is offered. NULL with e. */
const struct registry_entry *registry_find(
	const struct registry *r, const char *id, struct err *e);

/* For --sessions. 0, or -1: no memory. */
int registry_print(const struct registry *r, bool json, int width, FILE *f);

/* A session that could be gone back to. */
bool registry_is_offered(const struct registry_entry *r);

/* Where sessions are offered: ask the person which one to go back to, on the
 * terminal. */
enum registry_choice { REGISTRY_NEW, REGISTRY_BACK, REGISTRY_NEITHER };
enum registry_choice registry_ask(
	const struct registry *r, const struct registry_entry **which);

#endif
