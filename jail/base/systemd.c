/* SPDX-License-Identifier: MIT */
/*
 * systemd.c - a scope from somebody's own systemd
 *
 * Runs in:   warden, before anything else exists; client of a session
 * Trusts:    nothing the manager says
 * Leaves:    the question, and the connection on which the answer comes
 *
 * The manager speaks D-Bus on a socket of its own, without a bus between. One
 * call is made there, the one of `systemd-run --user --scope`.
 *
 * Delegate=yes also keeps the manager from ending the scope when the kernel
 * kills a process in it for memory.
 */
#include "systemd.h"

#include "dbus.h"
#include "err.h"
#include "io.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void begin_property(
	struct dbus_message *m, const char *name, const char *type)
{
	dbus_align(m, 8);
	dbus_put_string(m, name);
	dbus_put_signature(m, type);
}

static void put_properties(struct dbus_message *m, pid_t pid, bool delegate)
{
	size_t properties = dbus_begin_array(m, 8), pids;

	begin_property(m, "Description", "s");
	dbus_put_string(m, "a session of cellblock");
	begin_property(m, "Delegate", "b");
	dbus_put_u32(m, delegate);
	begin_property(m, "CollectMode", "s");
	dbus_put_string(m, "inactive-or-failed");
	begin_property(m, "PIDs", "au");
	pids = dbus_begin_array(m, 4);
	dbus_put_u32(m, (size_t)pid);
	dbus_end_array(m, pids, 4);
	dbus_end_array(m, properties, 8);
}

/* StartTransientUnit(name, mode, properties, auxiliary units) */
static void make_question(
	struct dbus_message *m, const char *name, pid_t pid, bool delegate)
{
	static const struct dbus_method start = {
		.to = "org.freedesktop.systemd1",
		.path = "/org/freedesktop/systemd1",
		.interface = "org.freedesktop.systemd1.Manager",
		.member = "StartTransientUnit",
		.signature = "ssa(sv)a(sa(sv))"};

	dbus_begin(m, 1, &start);
	dbus_put_string(m, name);
	dbus_put_string(m, "fail");
	put_properties(m, pid, delegate);
	dbus_end_array(m, dbus_begin_array(m, 8), 8);
	dbus_end(m);
}

int systemd_ask_scope(struct dbus *d, const char *runtime, pid_t pid,
	bool delegate, char name[SYSTEMD_SCOPE_MAX], struct err *e)
{
	struct dbus_message m;
	char path[96];

	snprintf(path, sizeof(path), "%s/systemd/private", runtime);
	/* A pid may be another session's in another container. */
	snprintf(name, SYSTEMD_SCOPE_MAX, "cellblock-%d-%llx.scope", (int)pid,
		(unsigned long long)now_ns());
	if (dbus_open(d, path) < 0)
		return errno == ENOENT || errno == ECONNREFUSED
			       ? 1
			       : err_errno(e, "connect to %s", path);
	make_question(&m, name, pid, delegate);
	if (dbus_ask(d, &m, e) == 0)
		return 0;
	dbus_close(d);
	return -1;
}
