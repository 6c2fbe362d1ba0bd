/* SPDX-License-Identifier: MIT */
/*
 * systemd.h - a scope from somebody's own systemd
 */
#ifndef JAIL_BASE_SYSTEMD_H
#define JAIL_BASE_SYSTEMD_H

#include <stdbool.h>
#include <sys/types.h>

struct dbus;
struct err;

#define SYSTEMD_SCOPE_MAX 64

/* Ask the service manager whose sockets are in `runtime` to put a process of
 * ours into a scope of its own, whose name goes into `name`: delegated to the
 * person, or not. 0: asked, d is open; 1: there is no such manager; -1 with e.
 */
int systemd_ask_scope(struct dbus *d, const char *runtime, pid_t pid,
	bool delegate, char name[SYSTEMD_SCOPE_MAX], struct err *e);

#endif
