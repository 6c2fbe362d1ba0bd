/* SPDX-License-Identifier: MIT */
/*
 * logout.c - what a logout does to a session
 *
 * Runs in:   client, which asks before it is confined and tells inside it;
 *            --check
 * Holds:     a descriptor of the front end's /proc/PID/cgroup
 * Trusts:    the login manager, for a sentence to the person
 * Leaves:    a front end that no logout ends, if the person lingers
 *
 * On a host with systemd a front end is in one of two places. In the scope of
 * its login, systemd kills it at the logout if KillUserProcesses says so for
 * this person; else it lives on, and so does the person's user manager with all
 * its scopes. In a scope of the user manager it lives as long as the manager:
 * to the last logout, or for good if the person lingers. So we move the front
 * end of a lingering person there.
 *
 * We ask the login manager once, because it reads its configuration once. We
 * look at two files each time: the one that says that the person lingers, and
 * the cgroup of the front end.
 */
#include "attach.h"

#include "jail/base/io.h"
#include "jail/base/systemd.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The longest wait for all answers together. */
#define ASK_MS 3000

#define BUS "/run/dbus/system_bus_socket"
#define LINGER "/var/lib/systemd/linger/"

enum place { ELSEWHERE, IN_LOGIN, IN_MANAGER };

static enum place find_place(const struct logout *l)
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

void logout_ask(struct logout *l, const char *person, pid_t front, bool move)
{
	int64_t until = now_ms() + ASK_MS;
	char path[32], runtime[32];
	int kills;

	*l = (struct logout){.moves = move};
	snprintf(l->linger, sizeof(l->linger), LINGER "%s",
		person ? person : "");
	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)front);
	l->cgroup = open(path, O_RDONLY | O_CLOEXEC);
	if (find_place(l) != IN_LOGIN)
		return;
	kills = systemd_kills_at_logout(BUS, person ? person : "", until, NULL);
	if (kills >= 0)
		l->kills = kills ? LOGOUT_KILLS : LOGOUT_SPARES;
	snprintf(runtime, sizeof(runtime), "/run/user/%u", (unsigned)geteuid());
	if (move && lingers(l))
		systemd_enter_scope(runtime, front, false, until, NULL);
}

/* ---- telling ---- */

const char *logout_tell(const struct logout *l)
{
	enum place place = find_place(l);

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
