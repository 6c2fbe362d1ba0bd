/* SPDX-License-Identifier: MIT */
/*
 * systemd.h - two questions to systemd
 *
 * Each answer is waited for until `until` (now_ms()), and no longer.
 */
#ifndef JAIL_BASE_SYSTEMD_H
#define JAIL_BASE_SYSTEMD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

/* Ask the service manager whose sockets are in `runtime` to move a process of
 * ours into a scope of its own, which is delegated to the person, or not. 0:
 * the process is there; 1: there is no such manager; -1 with e. */
int systemd_enter_scope(const char *runtime, pid_t pid, bool delegate,
	int64_t until, struct err *e);

/* Ask the login manager on the bus with the socket `bus` whether it kills what
 * is left of a login of this person. 1, 0, or -1 with e. */
int systemd_kills_at_logout(
	const char *bus, const char *person, int64_t until, struct err *e);

#endif
