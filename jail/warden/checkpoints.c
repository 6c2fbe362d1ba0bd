/* SPDX-License-Identifier: MIT */
/*
 * checkpoints.c - copies of the guest, asleep: taken, given up, woken
 *
 * Runs in:   warden
 * Trusts:    what the kernel says of lives and deaths; a checkpoint's own
 *            words only as far as its own session goes; the kernel's counts of
 *            pages
 *
 * The live guest is never replaced in ordinary use: the copy is the
 * checkpoint. Going back means that init kills everything but the kept
 * copies, continues the newest, and that copy becomes the live guest.
 */
#include "jail/warden/parts.h"

#include "jail/base/array.h"
#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/walls/cgroup/cgroup.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* How long the guest may take to see that its hanging copy was killed; a
 * checkpoint that was given up, to be gone; a checkpoint, to wake up. */
#define UNHANG_MS 300
#define END_MS 400
#define WAKE_MS 1500
/* How often init is asked to kill all others, each try takes up to 25 s; and
 * how long their memory may take to be free. */
#define KILL_TRIES 5
#define FREE_MS 3000
#define FREE_LOOK_MS 10

/* A checkpoint is given up for more private pages than this part of the limit.
 */
#define PRIVATE_DEN 10
/* The memory that must be left for a copy: for its page tables, a part of all
 * that is used, and for what both write at once. */
#define TABLES_DEN 256
#define COPY_ROOM_BYTES (2 << 20)
/* No checkpoint is given up for copying that takes less time than this; fewer
 * bytes than this count as no time. */
#define COPY_MIN_MS 20
#define COPY_MIN_BYTES (4 << 20)
/* The most bytes that older copies may hold, and a copy that is kept over a
 * reset: parts of the limit. */
#define OLDER_DEN 10
#define RESET_DEN 4
/* Copying may take this part of a cell's time. */
#define COPY_DEN 4
/* How many cells go without a checkpoint after that: at first, and at most. */
#define SKIP_FIRST 8
#define SKIP_MAX 64

void checkpoints_init(struct checkpoints *c, struct warden_jail *j,
	struct guest *g, const struct limits *l)
{
	*c = (struct checkpoints){
		.link = j->link, .jail = j, .guest = g, .limits = l};
}

struct link_pids checkpoints_pids(const struct checkpoints *c)
{
	struct link_pids p = {.n = c->n};

	for (int i = 0; i < c->n; i++)
		p.v[i] = c->kept[i].pid;
	return p;
}

static void forget_checkpoint(struct checkpoints *c, int i)
{
	fd_drop(&c->kept[i].sock);
	ARRAY_REMOVE(c->kept, c->n, i);
}

void checkpoints_end_copy(struct checkpoints *c, int32_t pid)
{
	link_ask_pid(c->link, INIT_DISCARD, pid);
	c->ending = c->link->seq;
	c->leaving[c->discarded++ % CHECKPOINTS_MAX] = pid;
}

static void end_checkpoint(struct checkpoints *c, int i)
{
	int32_t pid = c->kept[i].pid;

	forget_checkpoint(c, i);
	checkpoints_end_copy(c, pid);
}

int checkpoints_leaving(const struct checkpoints *c)
{
	struct procstatus st;
	int n = c->unfinished;

	for (unsigned i = 0; i < c->discarded && i < CHECKPOINTS_MAX; i++)
		n += procs_status(&c->jail->place.procs, c->leaving[i], &st) ==
		     0;
	return n;
}

/* ---- deaths ---- */

/* The kernel kills a checkpoint for memory only where the cell has made it look
 * larger than the cell itself. */
static enum jail_no_checkpoint killed_by(struct checkpoints *c)
{
	struct cgroup_usage u;

	cgroup_usage(&c->jail->site->cgroup, &u);
	return u.oom_kills > c->jail->oom_seen ? NO_CHECKPOINT_MEMORY
					       : NO_CHECKPOINT_KILLED;
}

void checkpoints_note_deaths(struct checkpoints *c)
{
	struct link_death d;
	int had = c->n;

	guest_is_alive(c->guest);
	for (int i = c->n - 1; i >= 0; i--)
		if (link_death_take(c->link, c->kept[i].pid, &d))
			forget_checkpoint(c, i);
	link_deaths_forget(c->link);
	if (c->n > 0 || had == 0)
		return;
	c->none = killed_by(c);
	link_notice(c->link,
		"the checkpoint was killed %s · a crash would now lose the "
		"variables",
		c->none == NO_CHECKPOINT_MEMORY ? "for memory" : "from within");
}

/* ---- taking ---- */

/* The guest's reason why it made none, in our words; the guest's own are not
 * repeated. */
static const char *failure_in_words(const char *word)
{
	if (!strcmp(word, "processes"))
		return "no checkpoint could be taken, there are too many "
		       "processes";
	if (!strcmp(word, "memory"))
		return "no checkpoint could be taken, there is too little "
		       "memory";
	return "no checkpoint could be taken";
}

/* A fork hangs where a library, or the user, has asked for it: with threads,
 * in a handler that waits for a lock that nobody holds any more. The guest only
 * waits for its copy, so the copy is killed and the guest goes on. */
static void unhang_guest(struct checkpoints *c, int64_t asked_ms)
{
	c->skip = SKIP_FIRST;
	c->skip_why = NO_CHECKPOINT_FAILED;
	link_ask_unhang(c->link, asked_ms);
}

/* The host was too busy: the copy is given up, and the next cell has one. */
static int be_late(struct checkpoints *c)
{
	c->failed = "no checkpoint could be taken in time, the host is busy";
	c->unfinished++;
	c->skip = 0;
	return 0;
}

/* Send PARK, or TRIAL, with the copy's socket, and take the live guest's
 * answer. 0; -1 when there is none; GUEST_LATE; SESSION_OVER. */
static int ask_to_park(struct checkpoints *c, uint32_t next, int sock,
	int64_t deadline, struct guest_message *m)
{
	struct guest *g = c->guest;
	size_t n = wire_park_encode(m->bytes, next, next == CHECKPOINTS_TRIAL);
	int64_t asked = now_ms();
	int r;

	if (guest_send(g, m->bytes, n, sock) < 0)
		return -1;
	r = guest_await_fair(g, g->ctl, m, deadline);
	if (r == 0 || r == GUEST_LATE) {
		unhang_guest(c, asked);
		r = guest_await_fair(g, g->ctl, m, now_ms() + UNHANG_MS);
	}
	if (r == GUEST_LATE)
		guest_note_late(g, next);
	if (r == GUEST_LATE || r == SESSION_OVER)
		return r;
	return r == 1 && m->wire.type == GUEST_PARKED && m->wire.no == next
		       ? 0
		       : -1;
}

/* The copy says that it sleeps: keep it. Takes `sock`. `same`: the guest says
 * that the cell has changed no variable. If two copies have the same state, the
 * older goes: undo goes back to a cell that changed a variable. */
static void keep_copy(struct checkpoints *c, uint32_t next, int sock,
	const struct wire_guest *m, int same)
{
	struct checkpoint *k = &c->kept[c->n++];
	enum checkpoints_made made = c->made;
	struct link_pids pids;

	*k = (struct checkpoint){.sock = sock,
		.theirs = c->theirs,
		.pid = m->pid,
		.before = next,
		.names = m->names,
		.threads = m->threads};
	same = made == CHECKPOINTS_BY_CELL && same && c->n > 1 &&
	       k[-1].before + 1 == next;
	if (same)
		c->fresh = k[-1].fresh;
	else if (made != CHECKPOINTS_BY_NOTHING)
		c->fresh = made == CHECKPOINTS_BY_RESET;
	k->fresh = c->fresh;
	c->made = CHECKPOINTS_BY_CELL;
	if (c->n > 1 && (same || (k[-1].before == next &&
					 made != CHECKPOINTS_BY_RESET)))
		end_checkpoint(c, c->n - 2);
	/* From now on init reports its death. */
	pids = checkpoints_pids(c);
	link_ask(c->link, INIT_CHECKPOINTS, &pids, NULL, 0);
}

int checkpoints_copy(struct checkpoints *c, uint32_t next, int64_t deadline_ms,
	int *sock, struct guest_message *m)
{
	int64_t asked = now_ms();
	auto_close int ours = -1;
	int pair[2], r, same;

	c->failed = failure_in_words("");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return 0;
	ours = pair[0];
	io_refuse_fds(ours);
	c->theirs = io_inode(pair[1]);
	r = ask_to_park(c, next, pair[1], deadline_ms, m);
	close(pair[1]);
	if (r == GUEST_LATE)
		return be_late(c);
	if (r < 0) {
		c->skip = 0; /* another guest takes its place */
		return r;
	}
	c->failed = failure_in_words(m->wire.text);
	same = m->wire.same;
	if (!m->wire.ok)
		return 0;
	r = guest_await_fair(c->guest, ours, m, deadline_ms);
	checkpoints_note_deaths(c);
	if (r == 0 || r == GUEST_LATE)
		unhang_guest(c, asked);
	if (r == GUEST_LATE)
		return be_late(c);
	c->unfinished += r == 0;
	if (r != 1 || m->wire.type != GUEST_ASLEEP || m->wire.pid <= 1 ||
		m->wire.pid == c->guest->pid)
		return r == SESSION_OVER ? r : 0;
	m->wire.same = same;
	*sock = fd_take(&ours);
	return 1;
}

int checkpoints_take(struct checkpoints *c, uint32_t next, int64_t deadline_ms)
{
	struct guest_message m;
	int sock, r = checkpoints_copy(c, next, deadline_ms, &sock, &m);

	if (r == 1) {
		keep_copy(c, next, sock, &m.wire, m.wire.same);
		c->unfinished = 0;
	}
	return r;
}

/* The kernel would kill the guest for a copy that has no room. Where no cgroup
 * counts, it kills nobody. */
static bool has_room_for_copy(const struct checkpoints *c)
{
	int64_t used = warden_jail_bytes(c->jail);

	return warden_jail_is_uncounted(c->jail) ||
	       c->limits->memory_bytes - used >=
		       COPY_ROOM_BYTES + used / TABLES_DEN;
}

enum jail_no_checkpoint checkpoints_skip(struct checkpoints *c)
{
	if (c->limits->checkpoint == CHECKPOINT_NEVER)
		return NO_CHECKPOINT_OFF;
	if (c->skip > 0) {
		c->skip--;
		c->made = CHECKPOINTS_BY_CELL;
		return c->skip_why;
	}
	if (has_room_for_copy(c))
		return NO_CHECKPOINT_NONE;
	c->failed = failure_in_words("memory");
	return NO_CHECKPOINT_FAILED;
}

/* Why there is no checkpoint; empty where there was one. */
static const char *why_none(
	const struct checkpoints *c, enum jail_no_checkpoint why)
{
	switch (why) {
	case NO_CHECKPOINT_OFF:
		return "checkpoints are off";
	case NO_CHECKPOINT_COST:
		return "copying memory for checkpoints costs too much here";
	case NO_CHECKPOINT_MEMORY:
		return "the checkpoint was given up for memory";
	case NO_CHECKPOINT_FAILED:
		return c->failed;
	case NO_CHECKPOINT_KILLED:
		return "the checkpoint was killed from within";
	case NO_CHECKPOINT_NONE:
	case NO_CHECKPOINT_SILENT:
		return "";
	}
	return "";
}

void checkpoints_note_taken(struct checkpoints *c, enum jail_no_checkpoint why)
{
	const char *words = why_none(c, why);

	if (why == NO_CHECKPOINT_NONE)
		c->told_none = 0;
	if (why == NO_CHECKPOINT_NONE || c->n == 0)
		c->none = why;
	/* The person was told at once that copying costs too much. */
	if (c->told_none || why == NO_CHECKPOINT_NONE ||
		why == NO_CHECKPOINT_COST)
		return;
	c->told_none = 1;
	if (c->n == 0)
		link_notice(c->link, "%s · a crash would lose the variables",
			words);
	else
		link_notice(c->link,
			"%s · a crash would go back to the state before cell "
			"%u",
			words, c->kept[c->n - 1].before);
}

/* ---- giving up ---- */

void checkpoints_give_up(
	struct checkpoints *c, int keep_n, enum jail_no_checkpoint why)
{
	while (c->n > keep_n)
		end_checkpoint(c, 0);
	if (c->n == 0)
		c->none = why;
}

/* Bytes that copies hold and no other process in the jail. Where no cgroup
 * counts memory, pages that a fork shares count for each copy. */
static int64_t held_bytes(const struct checkpoints *c)
{
	const struct warden_jail *j = c->jail;
	int64_t copies = 0;
	struct procstatus st;
	struct procs all;

	for (int i = 0; i < c->n; i++)
		if (procs_status(&j->place.procs, c->kept[i].pid, &st) == 0)
			copies += st.pages_bytes + st.tables_bytes;
	if (warden_jail_is_uncounted(j) ||
		procs_sample(&j->place.procs, PROCS_MEMORY, &all, NULL) < 0)
		return copies;
	return warden_jail_bytes(j) - tally_files_bytes(&j->tally) -
	       (all.bytes - copies);
}

void checkpoints_trim(struct checkpoints *c)
{
	checkpoints_give_up(c, c->limits->undo + 1, c->none);
	if (c->n > 2 && held_bytes(c) > c->limits->memory_bytes / OLDER_DEN)
		checkpoints_give_up(c, c->n > 4 ? (c->n + 1) / 2 : 2, c->none);
}

void checkpoints_give_up_newest(struct checkpoints *c)
{
	if (c->n > 0)
		end_checkpoint(c, c->n - 1);
}

int checkpoints_await_ended(struct checkpoints *c)
{
	int64_t deadline = now_ms() + END_MS;
	struct wire_init m;
	int ready, r = 0;

	while (c->ending && (int32_t)(c->link->answered - c->ending) < 0 &&
		r >= 0 && link_ms_until(deadline) > 0) {
		if (link_wait(c->link, -1, deadline, &ready) == SESSION_OVER)
			return SESSION_OVER;
		r = link_take(c->link, &m, NULL, 0);
	}
	c->ending = 0;
	c->gone_ms = now_ms();
	checkpoints_note_deaths(c);
	return 0;
}

int checkpoints_were_gone(struct checkpoints *c, int64_t when_ms)
{
	if (c->ending && (int32_t)(c->link->answered - c->ending) >= 0) {
		c->ending = 0;
		c->gone_ms = now_ms();
	}
	return !c->ending && when_ms > c->gone_ms;
}

/* ---- what they cost ---- */

/*
 * A checkpoint shares every page with the live guest until one of them writes
 * to it; then the page is copied. Right after parking the live guest has no
 * page for itself (but for the few of jail/guest/copy.c). So what is private
 * to it later, less what it has grown by, was copied: that is both the memory
 * that the checkpoints cost and the copying they have caused. Python writes to
 * what it only reads (reference counts), so a cell that walks through 350 MB
 * of small objects copies 350 MB.
 */

void checkpoints_weigh_start(struct checkpoints *c)
{
	const struct procs_source *procs = &c->jail->place.procs;
	struct procstatus now;
	struct procstat st;

	c->faults = -1;
	if (c->n == 0 || procs_status(procs, c->guest->pid, &now) < 0)
		return;
	c->size_bytes = now.size_bytes;
	/* Of a guest that runs, only the helper may ask for the rest. */
	if (warden_jail_is_stopped(c->jail) &&
		procs_stat(procs, c->guest->pid, &st) == 0)
		c->faults = st.minor_faults;
}

/* Bytes the live guest has copied since it was parked; 0 where that is not
 * worth counting. */
static int64_t copied_bytes(struct checkpoints *c, const struct work_result *r)
{
	int64_t grown;

	if (c->faults < 0 || r->private_bytes >= 0)
		c->faults = r->faults;
	if (r->private_bytes < 0)
		return 0;
	grown = r->size_bytes - c->size_bytes;
	return grown > 0 ? r->private_bytes - grown : r->private_bytes;
}

static int64_t copy_ms(int64_t bytes)
{
	return bytes < COPY_MIN_BYTES ? 0
				      : bytes / sysconf(_SC_PAGESIZE) *
						copycost_page_ns() / 1000000;
}

void checkpoints_weigh(
	struct checkpoints *c, const struct work_result *r, int64_t ran_ms)
{
	const struct limits *l = c->limits;
	int64_t copied, cost_ms;

	if (c->n == 0 || !c->guest->pid)
		return;
	/* Those for undo first. */
	if (c->n > 1 && warden_jail_is_short(c->jail))
		checkpoints_give_up(c, 1, c->none);
	copied = copied_bytes(c, r);
	cost_ms = copy_ms(copied);
	if (copied > l->memory_bytes / PRIVATE_DEN &&
		warden_jail_is_short(c->jail)) {
		checkpoints_give_up(c, 0, NO_CHECKPOINT_MEMORY);
		link_notice(c->link,
			"memory is nearly used up: the checkpoint was given "
			"up · a crash would now lose the variables");
		return;
	}
	if (l->checkpoint != CHECKPOINT_AUTO || cost_ms < COPY_MIN_MS ||
		cost_ms < ran_ms / COPY_DEN)
		return;
	checkpoints_give_up(c, 0, NO_CHECKPOINT_COST);
	c->skip_next = c->skip_next ? c->skip_next * 2 : SKIP_FIRST;
	if (c->skip_next > SKIP_MAX)
		c->skip_next = SKIP_MAX;
	c->skip = c->skip_next;
	c->skip_why = NO_CHECKPOINT_COST;
	if (!c->told_cost++)
		link_notice(c->link,
			"copying memory for checkpoints costs more than it is "
			"worth here: some cells go without · a crash in one "
			"would lose the variables");
}

/* ---- going back ---- */

int checkpoints_newest_is_now(const struct checkpoints *c, uint32_t next)
{
	return c->n > 0 && c->kept[c->n - 1].before == next;
}

int checkpoints_can_reset(const struct checkpoints *c, uint32_t next)
{
	struct procstatus st;

	return c->limits->undo > 0 && checkpoints_newest_is_now(c, next) &&
	       procs_status(&c->jail->place.procs, c->kept[c->n - 1].pid,
		       &st) == 0 &&
	       st.pages_bytes <= c->limits->memory_bytes / RESET_DEN;
}

void checkpoints_note_reset(struct checkpoints *c)
{
	c->made = CHECKPOINTS_BY_RESET;
}

int checkpoints_find(const struct checkpoints *c, uint32_t next, int n,
	struct jail_undone *u, struct err *e)
{
	/* The newest is the state now, unless none was taken of it. */
	int can = c->n - checkpoints_newest_is_now(c, next);
	const char *why = c->n == 0 ? why_none(c, c->none) : "";

	if (can <= 0)
		return err_set(e, "undo: nothing is kept to go back to%s%s",
			*why ? ": " : "", why);
	if (can < n || n < 1)
		return err_set(e, "undo: only %d cell%s kept", can,
			can == 1 ? " is" : "s are");
	*u = (struct jail_undone){.back_to = c->kept[can - n].before,
		.reset = can - n + 1 < c->n && c->kept[can - n + 1].fresh,
		.next = can > n ? c->kept[can - n - 1].before : 0,
		.next_reset = c->kept[can - n].fresh};
	return 0;
}

void checkpoints_forget_newest(struct checkpoints *c, int n)
{
	while (n-- > 0 && c->n > 0)
		forget_checkpoint(c, c->n - 1);
}

void checkpoints_forget(struct checkpoints *c)
{
	checkpoints_forget_newest(c, c->n);
	c->none = NO_CHECKPOINT_NONE;
	c->made = CHECKPOINTS_BY_CELL;
	c->ending = c->fresh = 0;
	c->discarded = 0;
	c->unfinished = 0;
}

/* A process that reads the memory map of one that dies, as the helper does, may
 * be the one that frees its memory. On a full host that takes long, and a
 * checkpoint that wakes up meanwhile is killed at its first page. */
static void await_room(const struct checkpoints *c)
{
	int64_t end = now_ms() + FREE_MS;

	while (!has_room_for_copy(c) && now_ms() < end)
		link_poll(NULL, 0, FREE_LOOK_MS);
}

int checkpoints_kill_others(struct checkpoints *c, int32_t *killed)
{
	const struct link_pids kept = checkpoints_pids(c);
	int32_t n, most = 0;
	int r = 1;

	/* Only the checkpoints have the variables, so we wait for a host that
	 * leaves the dead no CPU to exit, or init none to answer. */
	for (int i = 0; i < KILL_TRIES && r && r != SESSION_OVER; i++) {
		r = warden_jail_kill(c->jail, &kept, &n);
		most = n > most ? n : most;
	}
	*killed += most;
	if (r)
		return r == SESSION_OVER ? r : -1;
	await_room(c);
	guest_become(c->guest, 0);
	checkpoints_note_deaths(c);
	return 0;
}

/* Wake one: 0; -1 when it does not answer; SESSION_OVER. */
static int wake_checkpoint(
	struct checkpoints *c, struct checkpoint *k, int64_t deadline_ms)
{
	struct guest *g = c->guest;
	struct guest_message m;
	size_t n = wire_resume_encode(m.bytes);
	int r;

	guest_become(g, k->pid);
	guest_clear_stack(g);
	if (warden_jail_resume(c->jail, k->pid) < 0 ||
		io_send_fds(k->sock, m.bytes, n, NULL, 0, MSG_DONTWAIT) < 0)
		return -1;
	/* Only this copy has the variables, so we wait for a busy host. */
	do
		r = guest_await_fair(g, k->sock, &m, deadline_ms);
	while (r == GUEST_LATE);
	if (r == SESSION_OVER)
		return r;
	if (r != 1 || m.wire.type != GUEST_AWAKE || !guest_is_alive(g))
		return -1;
	guest_become_awake(g, fd_take(&k->sock), m.wire.names);
	warden_jail_note_ctl(c->jail, k->theirs);
	c->made = CHECKPOINTS_BY_NOTHING;
	c->fresh = k->fresh;
	return 0;
}

int checkpoints_wake_newest(
	struct checkpoints *c, struct checkpoint *woken, int32_t *killed)
{
	int64_t deadline = now_ms() + WAKE_MS;
	int r = -1;

	while (c->n > 0) {
		*woken = c->kept[--c->n];
		r = wake_checkpoint(c, woken, deadline);
		fd_drop(&woken->sock);
		if (r != -1 || now_ms() >= deadline)
			return r;
		r = checkpoints_kill_others(c, killed);
		if (r < 0)
			return r;
		r = -1;
	}
	return -1;
}
