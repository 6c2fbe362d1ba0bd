/* SPDX-License-Identifier: MIT */
/*
 * systemd.c - two questions to systemd
 *
 * Runs in:   warden, before anything else exists; client of a session, before
 *            it is confined; --check
 * Holds:     a child for the time of one question. The child loads systemd's
 *            own library, sd-bus, and has the connection; the caller never has
 *            either
 * Trusts:    nothing the manager says about a process: we believe the kernel,
 *            which shows the cgroup of a process. The login manager, for a
 *            sentence to the person
 * Leaves:    nothing: the child dies at the deadline at the latest, or with its
 *            parent
 *
 * sd-bus may wait longer than a caller can, and may hold as many messages as a
 * peer likes to send. So the caller looks at its own clock and kills the child.
 *
 * No environment variable names the bus: sd-bus connects to the socket that the
 * caller names. The person's own manager listens on a socket of its own,
 * without a bus between.
 */
#include "systemd.h"

#include "err.h"
#include "io.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the library ---- */

#define LIBRARY "libsystemd.so.0"

/* As in <systemd/sd-bus.h>, so that a host without it builds this, too. */
struct sd_bus;
struct sd_bus_message;
struct sd_bus_error {
	const char *name, *message;
	int need_free;
};

#define OF_PEER                                                                \
	struct sd_bus *bus, const char *destination, const char *path,         \
		const char *interface, const char *member,                     \
		struct sd_bus_error *error
#define FUNCTIONS(F)                                                           \
	F(sd_bus_new, (struct sd_bus **))                                      \
	F(sd_bus_set_address, (struct sd_bus *, const char *))                 \
	F(sd_bus_set_bus_client, (struct sd_bus *, int))                       \
	F(sd_bus_start, (struct sd_bus *))                                     \
	F(sd_bus_call_method,                                                  \
		(OF_PEER, struct sd_bus_message **, const char *types, ...))   \
	F(sd_bus_get_property_trivial, (OF_PEER, char type, void *))           \
	F(sd_bus_get_property_strv, (OF_PEER, char ***))                       \
	F(sd_bus_process, (struct sd_bus *, struct sd_bus_message **))         \
	F(sd_bus_wait, (struct sd_bus *, uint64_t us))                         \
	F(sd_bus_message_is_signal,                                            \
		(struct sd_bus_message *, const char *, const char *))         \
	F(sd_bus_message_read,                                                 \
		(struct sd_bus_message *, const char *types, ...))

/* A connection, and the functions for it under their own names. */
struct peer {
	struct sd_bus *bus;
	struct sd_bus_error why;
	struct sd_bus_message *(*sd_bus_message_unref)(struct sd_bus_message *);
#define DECLARE(name, arguments) int(*name) arguments;
	FUNCTIONS(DECLARE)
};

static int load_library(struct peer *p, struct err *e)
{
	void *so = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

#define FIND(name, arguments) &&(p->name = dlsym(so, #name))
	if (so && (p->sd_bus_message_unref = dlsym(so, "sd_bus_message_unref"))
			  FUNCTIONS(FIND))
		return 0;
	return err_set(e, "%s", dlerror());
}

/* ---- the questions, in the child ---- */

struct question {
	int (*ask)(struct peer *p, const struct question *q, struct err *e);
	char path[96]; /* of the socket */
	bool is_bus;   /* and not the manager itself */
	const char *person;
	pid_t pid;
	bool delegate;
	char scope[64]; /* its name */
};

static int open_peer(struct peer *p, const struct question *q, struct err *e)
{
	char address[128];
	int r;

	if (load_library(p, e) < 0)
		return -1;
	snprintf(address, sizeof(address), "unix:path=%s", q->path);
	r = p->sd_bus_new(&p->bus);
	if (r >= 0)
		r = p->sd_bus_set_address(p->bus, address);
	if (r >= 0)
		r = p->sd_bus_set_bus_client(p->bus, q->is_bus);
	if (r >= 0)
		r = p->sd_bus_start(p->bus);
	errno = -r;
	return r < 0 ? err_errno(e, "connect to %s", q->path) : 0;
}

static int tell_refusal(const struct peer *p, struct err *e)
{
	const char *why = p->why.message;

	return err_set(e, "%s", why && *why ? why : "no reason given");
}

static bool is_in_scope(const struct question *q)
{
	char path[32], end[80];
	auto_free char *lines = NULL;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)q->pid);
	snprintf(end, sizeof(end), "/%s\n", q->scope);
	return io_read_file(AT_FDCWD, path, 8192, &lines, &n) == 0 &&
	       strstr(lines, end);
}

/* True if the manager says that its work on the unit is over. */
static bool is_end(const struct peer *p, const struct question *q,
	struct sd_bus_message *m)
{
	const char *job, *unit;
	uint32_t id;

	return p->sd_bus_message_is_signal(m,
		       "org.freedesktop.systemd1.Manager", "JobRemoved") > 0 &&
	       p->sd_bus_message_read(m, "uos", &id, &job, &unit) > 0 &&
	       !strcmp(unit, q->scope);
}

/* The call of `systemd-run --user --scope`. Delegate=yes also keeps the manager
 * from ending the scope when the kernel kills a process in it for memory. */
static int ask_for_scope(
	struct peer *p, const struct question *q, struct err *e)
{
	bool over = false;
	int r;

	if (p->sd_bus_call_method(p->bus, "org.freedesktop.systemd1",
		    "/org/freedesktop/systemd1",
		    "org.freedesktop.systemd1.Manager", "StartTransientUnit",
		    &p->why, NULL, "ssa(sv)a(sa(sv))", q->scope, "fail", 4,
		    "Description", "s", "a session of cellblock", "Delegate",
		    "b", (int)q->delegate, "CollectMode", "s",
		    "inactive-or-failed", "PIDs", "au", 1, (uint32_t)q->pid,
		    0) < 0)
		return tell_refusal(p, e);
	/* Each message that comes is a reason to look where the process is. */
	while (!over && !is_in_scope(q)) {
		struct sd_bus_message *m = NULL;

		r = p->sd_bus_process(p->bus, &m);
		over = m && is_end(p, q, m);
		p->sd_bus_message_unref(m);
		if (r == 0)
			r = p->sd_bus_wait(p->bus, UINT64_MAX);
		errno = -r;
		if (r < 0)
			return err_errno(e, "wait for the answer");
	}
	return 0;
}

static bool has_name(char **names, const char *name)
{
	for (; names && *names; names++)
		if (!strcmp(*names, name))
			return true;
	return false;
}

static int ask_login_manager(
	struct peer *p, const struct question *q, struct err *e)
{
	static const char to[] = "org.freedesktop.login1",
			  path[] = "/org/freedesktop/login1",
			  manager[] = "org.freedesktop.login1.Manager";
	char **only = NULL, **but = NULL;
	int kills = 0;

	if (p->sd_bus_get_property_trivial(p->bus, to, path, manager,
		    "KillUserProcesses", &p->why, 'b', &kills) < 0 ||
		p->sd_bus_get_property_strv(p->bus, to, path, manager,
			"KillOnlyUsers", &p->why, &only) < 0 ||
		p->sd_bus_get_property_strv(p->bus, to, path, manager,
			"KillExcludeUsers", &p->why, &but) < 0)
		return tell_refusal(p, e);
	return kills && !has_name(but, q->person) &&
	       (!only || !*only || has_name(only, q->person));
}

/* ---- the child and its deadline ---- */

struct reply {
	int is;
	struct err e;
};

static _Noreturn void be_child(const struct question *q, pid_t parent, int to)
{
	struct reply r = {0};
	struct peer p = {0};

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ||
		getppid() != parent)
		_exit(1);
	r.is = open_peer(&p, q, &r.e);
	if (r.is == 0)
		r.is = q->ask(&p, q, &r.e);
	_exit(io_write_full(to, &r, sizeof(r)) < 0);
}

static int take_reply(int from, int64_t until, struct err *e)
{
	struct pollfd p = {.fd = from, .events = POLLIN};
	struct reply r;
	int64_t ms;

	do
		ms = until - now_ms();
	while (ms > 0 && poll(&p, 1, (int)ms) < 0 && errno == EINTR);
	errno = ETIMEDOUT;
	if (!p.revents)
		return err_errno(e, "wait for the answer");
	if (read(from, &r, sizeof(r)) != sizeof(r))
		return err_set(e, "the library ended without an answer");
	*e = r.e;
	/* A person is shown what the peer says, up to a control character. */
	e->msg[sizeof(e->msg) - 1] = '\0';
	for (char *c = e->msg; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '\0';
	return r.is;
}

/* Ask in the child and read its reply; -1 with e. Where no service listens, e
 * has the code ENOENT or ECONNREFUSED. */
static int ask_in_child(const struct question *q, int64_t until, struct err *e)
{
	pid_t parent = getpid(), child;
	int ends[2], r;

	if (access(q->path, F_OK) < 0)
		return err_errno(e, "connect to %s", q->path);
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_errno(e, "open a pipe");
	child = fork();
	if (child == 0)
		be_child(q, parent, ends[1]);
	close(ends[1]);
	r = child < 0 ? err_errno(e, "start a process")
		      : take_reply(ends[0], until, e);
	close(ends[0]);
	if (child > 0) {
		kill(child, SIGKILL);
		while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
			;
	}
	return r;
}

int systemd_enter_scope(const char *runtime, pid_t pid, bool delegate,
	int64_t until, struct err *e)
{
	struct question q = {
		.ask = ask_for_scope, .pid = pid, .delegate = delegate};
	struct err why = {0};
	int r;

	snprintf(q.path, sizeof(q.path), "%s/systemd/private", runtime);
	/* A pid may be another session's in another container. */
	snprintf(q.scope, sizeof(q.scope), "cellblock-%d-%llx.scope", (int)pid,
		(unsigned long long)now_ns());
	r = ask_in_child(&q, until, &why);
	if (why.code == ENOENT || why.code == ECONNREFUSED)
		return 1;
	if (is_in_scope(&q))
		return 0;
	return err_set(e, "%s", r < 0 ? why.msg : "the process was not moved");
}

int systemd_kills_at_logout(
	const char *bus, const char *person, int64_t until, struct err *e)
{
	struct question q = {
		.ask = ask_login_manager, .is_bus = true, .person = person};
	struct err why = {0};
	int r;

	snprintf(q.path, sizeof(q.path), "%s", bus);
	r = ask_in_child(&q, until, &why);
	return r < 0 ? err_set(e, "%s", why.msg) : r;
}
