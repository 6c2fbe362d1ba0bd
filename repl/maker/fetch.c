/* SPDX-License-Identifier: MIT */
/*
 * fetch.c - gets a session from the maker, or forks its warden
 *
 * Runs in:   front end, before it is confined
 * Trusts:    the process that listens in a directory only root can write to
 * Leaves:    a warden, the maker's or our own
 *
 * On a host without a maker we make the session ourselves. If the maker fails,
 * we do so only where the configuration leaves the choice, and tell the person:
 * such a session lacks the kernel's limits. A session of root's lacks nothing.
 */
#include "repl/maker/maker.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/jail.h"
#include "repl/config/config.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/* The longest time from the first try to the answer: a little more than the
 * maker's own alarm (client.c). */
#define ANSWER_MS 12000
/* The pause before the next try while the maker has too many requests. */
#define AGAIN_MS 20

static int64_t left_ms(int64_t until_ms)
{
	int64_t left = until_ms - now_ms();

	return left > 0 ? left : 1;
}

/* Connect, and wait while the maker's queue is full. -1 with errno. */
static int call(int64_t until_ms)
{
	struct sockaddr_un a = {
		.sun_family = AF_UNIX, .sun_path = SERVICE_PATH};
	int64_t left = left_ms(until_ms);
	struct timeval most = {
		.tv_sec = left / 1000, .tv_usec = left % 1000 * 1000};
	auto_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0 ||
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most)) <
			0 ||
		connect(fd, (const void *)&a, sizeof(a)) < 0)
		return -1;
	return fd_take(&fd);
}

static int send_message(int conn, const void *m, size_t n, struct err *e)
{
	/* EPIPE: the maker has refused already, and its answer says why. */
	if (io_send_fds(conn, m, n, NULL, 0, 0) < 0 && errno != EPIPE)
		return err_errno(e, "ask the maker of sessions");
	return 0;
}

/* Wait for the answer to a message that was sent; send the message again while
 * the answer is "later". The socket that was asked for, or -1 with e. */
static int await(
	int asked, const void *m, size_t n, int64_t until_ms, struct err *e)
{
	int r = jail_receive(asked, (int)left_ms(until_ms), e);

	while (r < 0 && e->kind == ERR_BUSY && e->code == EAGAIN &&
		now_ms() < until_ms) {
		auto_close int next = -1;

		poll(NULL, 0, AGAIN_MS);
		next = call(until_ms);
		if (next < 0 && errno == EAGAIN)
			break;
		if (next < 0)
			return err_errno(e, "ask the maker of sessions");
		r = send_message(next, m, n, e);
		if (r == 0)
			r = jail_receive(next, (int)left_ms(until_ms), e);
	}
	return r;
}

int fetch_socket(const void *message, size_t n, struct err *e)
{
	int64_t until_ms = now_ms() + ANSWER_MS;
	auto_close int conn = call(until_ms);

	if (conn < 0) {
		err_errno(e, "ask the maker of sessions at " SERVICE_PATH);
		return err_hint(e, "as root: systemctl restart "
				   "cellblock.socket");
	}
	if (send_message(conn, message, n, e) < 0)
		return -1;
	return await(conn, message, n, until_ms, e);
}

/* Root can make all that the maker makes, and more. It asks the maker only for
 * programs, for which a jail may be ready. */
static bool is_root(void)
{
	return geteuid() == 0;
}

int fetch_transcript(const struct config *cfg, int *fd, struct err *e)
{
	const struct scribe_ask ask = {.version = SCRIBE_VERSION};
	bool must = cfg->maker == MAKER_REQUIRE || config_is_bound(cfg);

	*fd = -1;
	if (is_root() || cfg->maker == MAKER_OFF ||
		(cfg->maker != MAKER_REQUIRE && access(SERVICE_PATH, F_OK) < 0))
		return 0;
	*fd = fetch_socket(&ask, sizeof(ask), e);
	if (*fd >= 0 || !must)
		return 0;
	return err_wrap(e, "the transcript");
}

static int fill(struct fetch *f, const struct jail_spec *spec, struct err *e)
{
	struct config system = {0};
	int r;

	if (!f->load_system)
		return order_fill(&f->order, spec, f->cfg, f->cfg, e);
	r = f->load_system(f->arg, &system, e);
	if (r == 0)
		r = order_fill(&f->order, spec, f->cfg, &system, e);
	config_fini(&system);
	return r;
}

/* True if we may not make the session when the maker fails. */
static bool must_be_the_makers(const struct fetch *f)
{
	return !is_root() &&
	       (f->cfg->maker == MAKER_REQUIRE || config_is_bound(f->cfg));
}

int fetch_check_own(const struct config *cfg, const char *front, struct err *e)
{
	if (is_root() || cfg->maker != MAKER_REQUIRE)
		return 0;
	err_set(e,
		"%s makes its jails without the maker of sessions "
		"at " SERVICE_PATH,
		front);
	return err_hint(e, "session.maker = require");
}

/* Say why there is no connection, from errno. */
static int refuse(const struct fetch *f, struct err *e)
{
	if (errno == EAGAIN) {
		err_set(e, "ask the maker of sessions: too many others do");
		err_hint(e, "try again in a moment");
		return must_be_the_makers(f) ? err_kind_set(e, ERR_BUSY) : -1;
	}
	err_errno(e, "ask the maker of sessions at " SERVICE_PATH);
	return err_hint(e,
		f->cfg->maker == MAKER_REQUIRE
			? "session.maker = require; as root: systemctl enable "
			  "--now cellblock.socket"
			: "as root: systemctl restart cellblock.socket");
}

/* True if errno means that the host has no maker. Only --check reports a socket
 * that a maker has left. */
static bool is_absent(const struct fetch *f)
{
	return f->cfg->maker != MAKER_REQUIRE &&
	       (errno == ENOENT || (errno == ECONNREFUSED && !f->checks &&
					   !config_is_bound(f->cfg)));
}

/* 1: f->asked waits; 0: no maker, or it would not make this; -1 with e. */
static int ask(struct fetch *f, const struct jail_spec *spec, struct err *e)
{
	auto_close int conn = -1;

	f->until_ms = now_ms() + ANSWER_MS;
	conn = call(f->until_ms);
	if (conn < 0 && (is_root() || is_absent(f)))
		return 0;
	if (conn < 0)
		return refuse(f, e);
	/* The maker would refuse this spec: make it ourselves if we may. */
	if (fill(f, spec, e) < 0)
		return must_be_the_makers(f) ? -1 : 0;
	/* Root can be in another mount namespace, or root directory. */
	if (is_root() && order_want_files(&f->order) < 0)
		return 0;
	if (f->eval)
		f->order.mode = SPEC_CELL;
	f->order.number = f->number;
	memcpy(f->order.from, f->from, sizeof(f->order.from));
	if (send_message(conn, &f->order, sizeof(f->order), e) < 0)
		return -1;
	f->asked = fd_take(&conn);
	return 1;
}

/* The maker has failed: make the session ourselves if we may, and tell a person
 * who loses limits by that. */
static int fall_back(struct jail **out, const struct jail_spec *spec,
	const struct fetch *f, struct err *e)
{
	if (must_be_the_makers(f) || (e->kind == ERR_BUSY && !is_root()))
		return -1;
	if (!is_root())
		f->complain(e);
	return jail_open(out, spec, e);
}

int fetch_begin(struct jail **out, const struct jail_spec *spec,
	struct fetch *f, struct err *e)
{
	int r = 0;

	f->asked = -1;
	if (f->cfg->maker != MAKER_OFF &&
		(!is_root() || spec->mode == SPEC_PROGRAM))
		r = ask(f, spec, e);
	if (r < 0)
		return fall_back(out, spec, f, e);
	return r > 0 ? 0 : jail_open(out, spec, e);
}

int fetch_await(struct jail **out, const struct jail_spec *spec,
	struct fetch *f, struct err *e)
{
	auto_close int asked = f->asked;
	int sock;

	if (asked < 0)
		return 0;
	sock = await(asked, &f->order, sizeof(f->order), f->until_ms, e);
	if (sock >= 0 && jail_adopt_made(out, sock, e) == 0)
		return 0;
	return fall_back(out, spec, f, e);
}
