/* SPDX-License-Identifier: MIT */
/*
 * spare.c - jails that root makes ahead, for nobody, and that are leased once
 *
 * Runs in:   root's maker of sessions (kept), and children of it: one becomes
 *            the warden of a spare, another takes one for somebody
 * Holds:     root. For a spare: its sockets; for a lease the directories of its
 *            cgroup and the allocation of its host id, as its warden opened
 *            them
 * Trusts:    its warden, in whose jail nothing of anybody's runs yet
 * Leaves:    a session as any other, or no session
 */
#include "jail/prewarm.h"

#include "broker.h"
#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/walls/walls.h"
#include "jail/warden/jails/jails.h"
#include "jail/warden/warden.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* The warden answers a lease. */
#define LEASE_MS 4000

/* ---- made ---- */

static void write_list(FILE *f, const char *name, const char *const *v)
{
	for (; v && *v; v++)
		fprintf(f, "%s=%s\n", name, *v);
}

/* A jail shows what was there when it was made, also when another takes its
 * place. */
static void write_shown(FILE *f, const char *name, const char *path)
{
	struct stat st = {0};

	stat(path, &st);
	fprintf(f, "%s=%s %llx %llx\n", name, path,
		(unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
}

int spare_key_fill(struct spare_key *k, const struct jail_spec *spec)
{
	FILE *f = fmemopen(k->text, sizeof(k->text), "w");
	struct stat st = {0};
	int full;

	k->limits = spec->limits;
	if (!f)
		return -1;
	stat(spec->python, &st);
	write_shown(f, "python", spec->python);
	fprintf(f, "%lld %lld.%ld\n", (long long)st.st_size,
		(long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	fprintf(f, "mode=%d network=%d uids=%u-%u memory=%lld\n",
		(int)spec->mode, (int)spec->limits.network, spec->uid_lo,
		spec->uid_hi, (long long)spec->made->memory_bytes);
	for (const char *const *v = spec->packages; v && *v; v++)
		write_shown(f, "packages", *v);
	for (const char *const *v = spec->expose; v && *v; v++)
		write_shown(f, "expose", *v);
	if (spec->made->accounting)
		fprintf(f, "accounting=%s\n", spec->made->accounting);
	write_list(f, "env", spec->env);
	write_list(f, "require", spec->require);
	full = fflush(f) != 0 || ftell(f) >= (long)sizeof(k->text) - 1;
	fclose(f);
	return full ? -1 : 0;
}

/* A lease only lowers: the configuration may have been another one. */
int spare_key_fits(const struct spare_key *made, const struct spare_key *asked)
{
	const struct limits *m = &made->limits, *a = &asked->limits;

	return !strcmp(made->text, asked->text) &&
	       a->memory_bytes <= m->memory_bytes &&
	       a->processes + a->undo <= m->processes + m->undo &&
	       a->cpus_milli <= m->cpus_milli &&
	       a->home_bytes <= m->home_bytes && a->home_files <= m->home_files;
}

int spare_open(struct spare *ours, struct spare *its)
{
	int front[2], lease[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, front) < 0)
		return -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, lease) < 0) {
		close(front[0]);
		close(front[1]);
		return -1;
	}
	ours->front = front[0];
	its->front = front[1];
	ours->lease = lease[0];
	its->lease = lease[1];
	return 0;
}

_Noreturn void spare_become(
	const struct spare *its, const struct jail_spec *spec)
{
	struct spec_made made = *spec->made;
	struct jail_spec mine = *spec;

	made.ahead = its->lease;
	mine.made = &made;
	start_run(its->front, &mine);
}

/* ---- kept ---- */

int spare_shelf_open(int shelf[2], struct err *e)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, shelf) < 0)
		return err_errno(e, "make a shelf for spare jails");
	return 0;
}

void spare_close(struct spare *s)
{
	fd_drop(&s->front);
	fd_drop(&s->lease);
}

int spare_put(const int shelf[2], struct spare *s)
{
	const int fds[] = {s->front, s->lease};
	int r = io_send_fds(
		shelf[0], &s->number, sizeof(s->number), fds, 2, MSG_DONTWAIT);

	spare_close(s);
	return r;
}

int spare_take(const int shelf[2], struct spare *s)
{
	int fds[2];
	ssize_t n = io_recv_fds(
		shelf[1], &s->number, sizeof(s->number), fds, 2, MSG_DONTWAIT);

	s->front = n > 0 ? fds[0] : -1;
	s->lease = n > 0 ? fds[1] : -1;
	return n > 0;
}

int spare_is_alive(const struct spare *s)
{
	struct pollfd p = {.fd = s->lease, .events = POLLIN};

	return poll(&p, 1, 0) >= 0 && !(p.revents & (POLLHUP | POLLERR));
}

/* ---- leased ---- */

/* The warden's offer stays there for another try. */
static int look_at_offer(
	const struct spare *s, struct lease_offer *o, int *id, struct err *e)
{
	int fds[1 + CGROUP_CONTROLLERS];
	ssize_t n = io_recv_fds(s->lease, o, sizeof(*o), fds,
		1 + CGROUP_CONTROLLERS, MSG_PEEK | MSG_DONTWAIT);

	*id = fds[0];
	memcpy(o->cgroup.held, fds + 1, sizeof(o->cgroup.held));
	if (n < 0)
		return err_errno(e, "take a spare jail");
	return n == (ssize_t)sizeof(*o) && *id >= 0
		       ? 0
		       : err_set(e, "take a spare jail: malformed offer");
}

/* Limits of the cgroup that are as they should be are not written again: it
 * costs as much as the rest of a lease. */
static int lower_cgroup(
	const struct lease_offer *o, const struct limits *l, struct err *e)
{
	const struct limits *was = &o->limits;

	if (l->memory_bytes == was->memory_bytes && l->undo == was->undo &&
		l->processes == was->processes &&
		l->cpus_milli == was->cpus_milli)
		return 0;
	return cgroup_lower(&o->cgroup, l, e);
}

static int tell_warden(
	const struct spare *s, const struct jail_spec *spec, struct err *e)
{
	struct spec_lease c = {.limits = spec->limits,
		.tty_bits = spec->tty_bits,
		.rows = spec->rows,
		.cols = spec->cols,
		.front = spec->front};
	struct lease_offer o;
	struct lease_answer a;

	snprintf(c.term, sizeof(c.term), "%s", spec->term);
	/* The offer is in the way of the answer. */
	if (recv(s->lease, &o, sizeof(o), MSG_DONTWAIT) != (ssize_t)sizeof(o) ||
		io_send_fds(s->lease, &c, sizeof(c), NULL, 0, MSG_DONTWAIT) < 0)
		return err_errno(e, "lease a spare jail");
	if (!io_await(s->lease, LEASE_MS) ||
		recv(s->lease, &a, sizeof(a), MSG_DONTWAIT) !=
			(ssize_t)sizeof(a))
		return err_set(e, "lease a spare jail: no answer");
	if (a.ok)
		return 0;
	*e = a.err;
	return err_kind_set(e, ERR_FAILED);
}

/* Make the spare's directory the person's, whose share of the cores it has from
 * then on. A person with other sessions has one already, and nothing can be
 * moved into that. 1, 0, or -1 with e. */
static int take_directory(const struct lease_offer *o, int allocation,
	const struct spec_made *made, struct err *e)
{
	int r = 0;

	if (!cgroup_person_has_shares(&o->cgroup))
		return 1;
	if (ident_person_lock(allocation, made->person, e) < 0)
		return -1;
	if (!ident_allocation_has_others(
		    allocation, IDENT_PLACES_ANY + made->person))
		r = cgroup_person_mark(&o->cgroup, made->person, e) == 0;
	ident_person_unlock(allocation, made->person);
	return r;
}

int spare_lease(const struct spare *s, const struct jail_spec *spec, uid_t *id,
	struct err *e)
{
	struct lease_offer o = {0};
	int allocation, r;

	r = look_at_offer(s, &o, &allocation, e);
	if (r == 0)
		r = site_has_memory(spec->made, &o.cgroup, e);
	if (r == 0)
		r = site_count_in(spec->made, allocation, e);
	if (r == 0) {
		r = take_directory(&o, allocation, spec->made, e);
		if (r > 0 && (lower_cgroup(&o, &spec->limits, e) < 0 ||
				     tell_warden(s, spec, e) < 0))
			r = -1;
		if (r <= 0)
			site_count_out(spec->made, allocation);
	}
	*id = o.id;
	fd_drop(&allocation);
	fds_drop(o.cgroup.held, CGROUP_CONTROLLERS);
	return r;
}

int spare_hand_over(const struct spare *s, int asked)
{
	return start_hand_over(asked, s->front);
}
