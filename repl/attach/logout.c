/* SPDX-License-Identifier: MIT */
/*
 * logout.c - what becomes of a session when its person logs out
 *
 * Runs in:   client, which asks before its cage closes and tells inside it;
 *            --check
 * Holds:     connections, while it asks; then where the front end is, as the
 *            kernel says
 * Trusts:    the login manager, for a sentence to the person
 * Leaves:    a front end that a logout does not reach, where the person lingers
 *
 * On a host with systemd a front end lies in one of two places. In the scope of
 * its login it is killed at the end of the login, where KillUserProcesses says
 * so for this person; else it goes on, and keeps the person's own systemd, and
 * what that has given a scope. In a scope of that systemd it goes on as long as
 * this does: to the last logout, or, where the person lingers, for good. So who
 * lingers has the front end moved there.
 *
 * The login manager is asked once, because it reads its configuration once. Two
 * files are looked at whenever that matters: the one that says that the person
 * lingers, and the cgroup of the front end.
 */
#include "attach.h"

#include "jail/base/dbus.h"
#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/base/systemd.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What does not answer by then is not waited for. */
#define ASK_MS 3000

#define BUS "/run/dbus/system_bus_socket"
#define LINGER "/var/lib/systemd/linger/"

/* The questions, by their serial numbers. */
enum { HELLO = 1, KILLS, ONLY, BUT, QUESTIONS };

static const char *const properties[QUESTIONS] = {
	[KILLS] = "KillUserProcesses",
	[ONLY] = "KillOnlyUsers",
	[BUT] = "KillExcludeUsers",
};

enum place { ELSEWHERE, IN_LOGIN, IN_MANAGER };

/* What the login manager has answered. */
struct rules {
	const char *name; /* of the person */
	bool kills, some, named, spared;
	unsigned heard; /* bits 1 << question */
};

static enum place find(const struct logout *l)
{
	char buf[8192];
	ssize_t n = pread(l->cgroup, buf, sizeof(buf) - 1, 0);
	const char *p;

	buf[n > 0 ? n : 0] = '\0';
	if (strstr(buf, "/user@"))
		return IN_MANAGER;
	p = strstr(buf, "/session-");
	return p && !strncmp(p + strcspn(p, ".\n"), ".scope", 6) ? IN_LOGIN
								 : ELSEWHERE;
}

static bool lingers(const struct logout *l)
{
	return access(l->linger, F_OK) == 0;
}

/* ---- the login manager ---- */

static int ask_for(struct dbus *d, uint32_t question)
{
	static const struct dbus_method hello = {.to = "org.freedesktop.DBus",
		.path = "/org/freedesktop/DBus",
		.interface = "org.freedesktop.DBus",
		.member = "Hello"};
	static const struct dbus_method get = {.to = "org.freedesktop.login1",
		.path = "/org/freedesktop/login1",
		.interface = "org.freedesktop.DBus.Properties",
		.member = "Get",
		.signature = "ss"};
	struct dbus_message m;

	dbus_begin(&m, question, question == HELLO ? &hello : &get);
	if (question != HELLO) {
		dbus_put_string(&m, "org.freedesktop.login1.Manager");
		dbus_put_string(&m, properties[question]);
	}
	dbus_end(&m);
	return dbus_ask(d, &m, NULL);
}

/* Whether an array of strings has a name, and whether it has any. */
static bool has_name(struct dbus_answer *a, const char *name, bool *any)
{
	const char *s;
	uint32_t n;
	size_t end;

	if (!dbus_get_u32(a, &n) || n > a->n - a->at)
		return false;
	end = a->at + n;
	*any = n > 0;
	while (a->at < end && dbus_get_string(a, &s))
		if (!strcmp(s, name))
			return true;
	return false;
}

static void hear(struct rules *r, struct dbus_answer *a)
{
	uint32_t v;
	bool any;

	if (a->type != DBUS_RETURN || a->to <= HELLO || a->to >= QUESTIONS ||
		!dbus_get_signature(a, a->to == KILLS ? "b" : "as"))
		return;
	if (a->to == KILLS)
		r->kills = dbus_get_u32(a, &v) && v;
	else if (a->to == ONLY)
		r->named = has_name(a, r->name, &r->some);
	else
		r->spared = has_name(a, r->name, &any);
	r->heard |= 1u << a->to;
}

static enum logout_kills ask_login_manager(const char *person, int64_t until)
{
	const unsigned all = 1u << KILLS | 1u << ONLY | 1u << BUT;
	struct rules r = {.name = person ? person : ""};
	struct dbus_answer a;
	uint32_t i = HELLO;
	struct dbus d;

	if (dbus_open(&d, BUS) < 0)
		return LOGOUT_UNKNOWN;
	while (i < QUESTIONS && ask_for(&d, i) == 0)
		i++;
	while (i == QUESTIONS && r.heard != all &&
		dbus_await(&d, &a, until) == 0)
		hear(&r, &a);
	dbus_close(&d);
	if (r.heard != all)
		return LOGOUT_UNKNOWN;
	return r.kills && !r.spared && (r.named || !r.some) ? LOGOUT_KILLS
							    : LOGOUT_SPARES;
}

/* ---- the person's own ---- */

static void move_front(const struct logout *l, pid_t front, int64_t until)
{
	char runtime[32], name[SYSTEMD_SCOPE_MAX];
	struct dbus_answer a;
	struct dbus d;

	snprintf(runtime, sizeof(runtime), "/run/user/%u", (unsigned)geteuid());
	if (systemd_ask_scope(&d, runtime, front, false, name, NULL) != 0)
		return;
	/* Each message that comes is a reason to look where it is. */
	while (find(l) == IN_LOGIN && dbus_await(&d, &a, until) == 0 &&
		a.type != DBUS_ERROR)
		;
	dbus_close(&d);
}

void logout_ask(struct logout *l, const char *person, pid_t front, bool move)
{
	int64_t until = now_ms() + ASK_MS;
	char path[32];

	*l = (struct logout){.moves = move};
	snprintf(l->linger, sizeof(l->linger), LINGER "%s",
		person ? person : "");
	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)front);
	l->cgroup = open(path, O_RDONLY | O_CLOEXEC);
	if (find(l) != IN_LOGIN)
		return;
	l->kills = ask_login_manager(person, until);
	if (move && lingers(l))
		move_front(l, front, until);
}

/* ---- telling ---- */

const char *logout_tell(const struct logout *l)
{
	enum place place = find(l);

	if (place == ELSEWHERE ||
		(lingers(l) && (place == IN_MANAGER || !l->moves)))
		return NULL;
	if (place == IN_MANAGER)
		return "your last logout ends it · loginctl enable-linger "
		       "keeps it";
	switch (l->kills) {
	case LOGOUT_UNKNOWN:
		return "logging out may end it: the login manager does not say";
	case LOGOUT_SPARES:
		return NULL;
	case LOGOUT_KILLS:
		break;
	}
	if (lingers(l))
		return "logging out ends it: KillUserProcesses is on, and your "
		       "systemd gave it no scope";
	return "logging out ends it: KillUserProcesses is on · to keep it: "
	       "loginctl enable-linger, then attach and detach again";
}
