/* SPDX-License-Identifier: MIT */
/*
 * proctor.c - ends sessions from before an exam, also while they are used
 *
 * Runs in:   root: the service (proctor_is_wanted()), its children that make
 *            sessions (proctor_note()), their janitors (proctor_forget()), a
 *            child that looks, and children of that, which tell
 * Trusts:    the system's configuration and the clock of the host. A front end
 *            is told; one that does not listen loses its jail, which is killed
 *            by its host id, as no process of the person's is. A process that
 *            tells may have to wait for a stranger: each person is told by a
 *            process of their own, for which no other process waits
 * Leaves:    in NOTES a file for each session, with the host id as its name,
 *            until its end; where its janitor was killed, until no process has
 *            that id
 *
 * A session that began while the exam was in the configuration knows when it
 * ends (limits.until_s). One from before does not know of the exam.
 */
#include "repl/maker/maker.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "repl/attach/attach.h"
#include "repl/config/config.h"
#include "repl/config/person.h"
#include "repl/text/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#define NOTES SERVICE_DIR "/sessions"
/* Most sessions that are looked at. */
#define MOST 4096
/* So long before the exam its people are told, and again. */
#define FIRST_S 600
#define LAST_S 60
/* A session ends by itself within this time. */
#define GRACE_MS 5000
#define LOOK_MS 50
/* The process that tells the sessions of one person ends so much later. */
#define TELL_S 10
/* No process has the host id yet, or no more. */
#define YOUNG_S 60

static const char *const places[] = {"", "conf.d", "groups", "users"};

struct proctor_row {
	uid_t id, person;
	pid_t front;
	int64_t began_s;
	int64_t until_s; /* 0: it knows of no exam */
	int told;	 /* how often */
	bool ends;	 /* now */
	char name[64];	 /* of the account, where it ends */
};

struct proctor {
	int dir;
	struct proctor_row rows[MOST];
	size_t n;
};

/* ---- the notes ---- */

static int open_notes(void)
{
	if (mkdir(NOTES, 0700) < 0 && errno != EEXIST)
		return -1;
	return open(NOTES, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int write_note(int dir, const struct proctor_row *r)
{
	struct io_newfile f;
	char name[16], text[128];
	int n = snprintf(text, sizeof(text),
		"%u %d %" PRId64 " %" PRId64 " %d\n", r->person, (int)r->front,
		r->began_s, r->until_s, r->told);
	int done = -1;

	snprintf(name, sizeof(name), "%u", r->id);
	if (io_newfile_create(&f, dir, 0600) < 0)
		return -1;
	if (io_write_full(f.fd, text, (size_t)n) == 0)
		done = io_newfile_commit(&f, name, true);
	io_newfile_abort(&f);
	return done;
}

void proctor_note(uid_t id, uid_t person, pid_t front, int64_t until_s)
{
	const struct proctor_row r = {.id = id,
		.person = person,
		.front = front,
		.began_s = time(NULL),
		.until_s = until_s};
	auto_close int dir = open_notes();

	if (dir < 0 || write_note(dir, &r) < 0)
		syslog(LOG_ERR, "note a session in " NOTES ": %m");
}

void proctor_forget(uid_t id)
{
	char path[sizeof(NOTES) + 16];

	snprintf(path, sizeof(path), NOTES "/%u", id);
	unlink(path);
}

static bool is_running(uid_t id)
{
	errno = 0;
	getpriority(PRIO_USER, id);
	return errno != ESRCH;
}

/* Read a note: 1; 0: there is none. */
static int read_note(int dir, const char *name, struct proctor_row *r)
{
	auto_free char *text = NULL;
	char *rest;
	size_t n;

	*r = (struct proctor_row){.id = (uid_t)strtoul(name, &rest, 10)};
	return !*rest && rest != name &&
	       io_read_file(dir, name, 256, &text, &n) == 0 &&
	       sscanf(text, "%u %d %" SCNd64 " %" SCNd64 " %d", &r->person,
		       &r->front, &r->began_s, &r->until_s, &r->told) == 5;
}

/* True if the host id is still that session's. */
static bool is_noted(int dir, const struct proctor_row *r)
{
	struct proctor_row now;
	char name[16];

	snprintf(name, sizeof(name), "%u", r->id);
	return read_note(dir, name, &now) && now.person == r->person &&
	       now.front == r->front && now.began_s == r->began_s;
}

/* Read the note of a session that runs: 1; 0: there is none. */
static int read_running(int dir, const char *name, struct proctor_row *r)
{
	struct stat st;

	if (!read_note(dir, name, r) || fstatat(dir, name, &st, 0) < 0)
		return 0;
	if (is_running(r->id))
		return 1;
	if (llabs((long long)time(NULL) - st.st_mtime) > YOUNG_S)
		unlinkat(dir, name, 0);
	return 0;
}

static int by_person(const void *a, const void *b)
{
	const struct proctor_row *x = a, *y = b;

	return (x->person > y->person) - (x->person < y->person);
}

static int read_notes(struct proctor *p)
{
	DIR *d = io_list_taken(open_notes());
	const struct dirent *entry;

	if (!d)
		return -1;
	p->dir = dup(dirfd(d));
	while (p->n < MOST && (entry = readdir(d)))
		if (entry->d_name[0] != '.')
			p->n += (size_t)read_running(
				dirfd(d), entry->d_name, &p->rows[p->n]);
	closedir(d);
	qsort(p->rows, p->n, sizeof(*p->rows), by_person);
	return p->dir;
}

/* ---- is there an exam? ---- */

static void see_line(void *found, const struct config_line *line)
{
	*(bool *)found |= !strcmp(line->section, "exam");
}

/* True if the one reader of such files finds the section. */
static bool has_section(int dir, const char *name)
{
	const struct config_file file = {.dirfd = dir,
		.name = name,
		.shown = name,
		.asked = name,
		.trust = CONFIG_TRUST_SYSTEM};
	struct config_errors errors = {0};
	bool found = false;

	config_file_read(&file, see_line, &found, &errors);
	config_errors_fini(&errors);
	return found;
}

static bool has_exam(const char *place)
{
	char path[256];
	const struct dirent *entry;
	bool found = false;
	DIR *d;

	snprintf(path, sizeof(path), CONFIG_SYSTEM_DIR "/%s", place);
	d = opendir(path);
	while (d && !found && (entry = readdir(d))) {
		size_t n = strlen(entry->d_name);

		found = n > 5 && !strcmp(entry->d_name + n - 5, ".conf") &&
			has_section(dirfd(d), entry->d_name);
	}
	if (d)
		closedir(d);
	return found;
}

bool proctor_is_wanted(void)
{
	DIR *d = opendir(NOTES);
	const struct dirent *entry;
	bool any = false;

	while (d && !any && (entry = readdir(d)))
		any = entry->d_name[0] != '.';
	if (d)
		closedir(d);
	for (size_t i = 0; any && i < COUNT(places); i++)
		if (has_exam(places[i]))
			return true;
	return false;
}

/* ---- the sessions of one person ---- */

/* True if it began before the exam, or when there was none. */
static bool is_from_before(const struct proctor_row *r, int64_t begin_s)
{
	return !r->until_s || r->began_s < begin_s;
}

static bool is_meant(
	const struct proctor_row *rows, size_t n, int64_t begin_s, pid_t front)
{
	for (size_t i = 0; i < n; i++)
		if (rows[i].front == front)
			return is_from_before(&rows[i], begin_s);
	return false;
}

/* Tell the sessions from before, each over its socket; with `end`, end them.
 * Their person may have planted those sockets. */
static void say(const struct person *person, const struct proctor_row *rows,
	size_t n, int64_t begin_s, bool end, const char *text)
{
	struct rundir_of of = {.uid = rows->person};
	char state[PATH_MAX];
	struct registry list;
	struct err e = {0};

	if (config_state_dir(
		    NULL, person->account_home, state, sizeof(state)) == 0)
		of.state_dir = state;
	if (registry_open(&list, &of, person->name, REGISTRY_OWN, &e) < 0)
		return;
	for (size_t i = 0; i < list.n; i++) {
		const struct registry_entry *to = &list.v[i];
		struct attach_answer a;
		auto_close int sock = -1;

		if (to->part || !to->answered ||
			!is_meant(rows, n, begin_s, to->status.pid))
			continue;
		sock = rundir_connect(to->dir, to->id, to->uid);
		if (sock >= 0 && end)
			query_end(sock, 0, text, &e);
		else if (sock >= 0)
			query_ask(sock, ATTACH_MESSAGE, text, &a, &e);
	}
	registry_free(&list);
}

/* The same, in a child that we do not wait for. */
static void tell(const struct person *person, const struct proctor_row *rows,
	size_t n, int64_t begin_s, bool end, const char *text)
{
	if (fork() != 0)
		return;
	alarm(TELL_S);
	say(person, rows, n, begin_s, end, text);
	_exit(0);
}

static void announce(struct proctor *p, const struct person *person,
	struct proctor_row *rows, size_t n, int64_t begin_s)
{
	int64_t left = begin_s - time(NULL);
	char text[128], when[TEXT_HUMAN];
	int due = left <= LAST_S ? 2 : left <= FIRST_S ? 1 : 0;
	bool told = true;

	for (size_t i = 0; i < n; i++)
		told &= rows[i].told >= due;
	if (told)
		return;
	snprintf(text, sizeof(text),
		"the exam begins at %s: this session ends then",
		text_minute(when, begin_s));
	tell(person, rows, n, begin_s, false, text);
	for (size_t i = 0; i < n; i++) {
		rows[i].told = due;
		if (is_noted(p->dir, &rows[i]))
			write_note(p->dir, &rows[i]);
	}
}

/* Begin to end those from before. */
static void end_sessions(const struct person *person, struct proctor_row *rows,
	size_t n, int64_t begin_s)
{
	bool any = false;

	for (size_t i = 0; i < n; i++) {
		any |= rows[i].ends = is_from_before(&rows[i], begin_s);
		snprintf(
			rows[i].name, sizeof(rows[i].name), "%s", person->name);
	}
	if (any)
		tell(person, rows, n, begin_s, true, "the exam begins");
}

static void look_at(struct proctor *p, struct proctor_row *rows, size_t n)
{
	struct person person = {0};
	struct config cfg = {0};
	struct err e = {0};
	int64_t now = time(NULL);

	person_find(&person, rows->person);
	if (person.name) {
		person_find_groups(&person, rows->person);
		if (policy_load(&person, &cfg, &e) == 0 && exam_is_set(&cfg)) {
			if (now >= cfg.exam_begin_s)
				end_sessions(
					&person, rows, n, cfg.exam_begin_s);
			else
				announce(p, &person, rows, n, cfg.exam_begin_s);
		}
		config_fini(&cfg);
	}
	person_free(&person);
}

/* ---- sessions that do not listen ---- */

/* Kill all that runs under a host id: only the session has that. */
static void kill_jail(uid_t id)
{
	pid_t pid = fork();

	if (pid == 0) {
		if (setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0)
			_exit(1);
		kill(-1, SIGKILL);
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

static bool any_runs(const struct proctor *p)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->rows[i].ends && is_running(p->rows[i].id))
			return true;
	return false;
}

/* Wait for the end of those that were told, and kill the rest. Meanwhile a
 * host id may have become another session's. */
static void finish(const struct proctor *p)
{
	int64_t until = now_ms() + GRACE_MS;

	while (any_runs(p) && now_ms() < until)
		poll(NULL, 0, LOOK_MS);
	for (size_t i = 0; i < p->n; i++) {
		const struct proctor_row *r = &p->rows[i];

		if (!r->ends)
			continue;
		if (is_noted(p->dir, r) && is_running(r->id))
			kill_jail(r->id);
		syslog(LOG_NOTICE,
			"%s: a session from before the exam has ended "
			"(host id %u)",
			r->name, r->id);
	}
}

void proctor_look(void)
{
	static struct proctor p;
	size_t n;

	if (read_notes(&p) < 0)
		return;
	for (size_t i = 0; i < p.n; i += n) {
		for (n = 1;
			i + n < p.n && p.rows[i + n].person == p.rows[i].person;
			n++)
			;
		look_at(&p, &p.rows[i], n);
	}
	finish(&p);
	close(p.dir);
}
