/* SPDX-License-Identifier: MIT */
/*
 * registry.c - the list of sessions
 *
 * Runs in:   a client
 * Trusts:    nobody: a person owns the directory, and a planted process may
 *            answer there. We make the text of answers safe
 * Leaves:    no socket without a listener
 */
#include "attach.h"

#include "jail/base/array.h"
#include "jail/base/err.h"
#include "jail/base/io.h"
#include "repl/term/term.h"
#include "repl/text/text.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define USERS 10000
#define NUMBER_SIZE 32
/* After so long without a key the person may sit elsewhere. */
#define SILENT_MS (10 * 60 * 1000)
/* The longest wait for all silent sessions of one person together. */
#define PERSON_MS 3000
/* The longest wait for them while they are told something, or end. */
#define PATIENCE_MS 5000

/* The session gave no answer: note what can be seen from outside. */
static void look_from_outside(struct registry_entry *v, int sock)
{
	pid_t pid;

	rundir_look(v->dir, v->id, sock, &pid, &v->status.began);
	v->status.pid = pid;
}

static int add_session(
	struct registry *r, int dir, int id, uid_t uid, const char *user)
{
	struct registry_entry *v;
	struct attach_answer a;
	bool late = now_ms() > r->until_ms;
	auto_close int sock = late ? -1 : rundir_connect(dir, id, uid);

	if (!late && sock < 0 && errno == ECONNREFUSED)
		return 0;
	if (array_grow(&r->v, r->n, sizeof(*r->v)) < 0)
		return -1;
	v = &r->v[r->n++];
	*v = (struct registry_entry){.dir = dir, .id = id, .uid = uid};
	snprintf(v->user, sizeof(v->user), "%s", user ? user : "");
	if (sock < 0 || query_ask(sock, ATTACH_STATUS, NULL, &a, NULL) < 0) {
		look_from_outside(v, sock);
		return 0;
	}
	v->answered = true;
	v->status = a.status;
	v->keyed_ms = now_ms() - a.status.idle_ms;
	return 0;
}

/* Add the sessions of a server; a server that does not answer is an entry. */
static int add_server(
	struct registry *r, int dir, int id, uid_t uid, const char *user)
{
	auto_close int sock = rundir_connect(dir, id, uid);
	auto_free struct attach_entry *list = NULL;
	struct registry_entry silent = {.dir = dir, .id = id, .uid = uid};
	bool answered = false;
	size_t n = 0;

	if (sock < 0 && errno == ECONNREFUSED)
		return 0;
	look_from_outside(&silent, sock);
	if (sock >= 0 && now_ms() <= r->until_ms)
		answered = query_list(&sock, &list, &n) == 0;
	for (size_t i = 0; i < (answered ? n : 1); i++) {
		struct registry_entry *v;

		if (array_grow(&r->v, r->n, sizeof(*r->v)) < 0)
			return -1;
		v = &r->v[r->n++];
		*v = silent;
		v->answered = answered;
		snprintf(v->user, sizeof(v->user), "%s", user ? user : "");
		if (!answered)
			break;
		v->part = list[i].number;
		v->status = list[i].status;
	}
	return 0;
}

static int add_dir(struct registry *r, int dir, uid_t uid, const char *user)
{
	int ids[RUNDIR_IDS];
	size_t n = rundir_list(dir, ids);

	for (size_t i = 0; i < n; i++) {
		bool server = ids[i] > RUNDIR_SESSIONS;

		if (server && r->scope == REGISTRY_OWN)
			continue;
		if ((server ? add_server : add_session)(
			    r, dir, ids[i], uid, user) < 0)
			return -1;
	}
	return 0;
}

static int add_person(
	struct registry *r, const struct rundir_of *of, const char *user)
{
	char path[PATH_MAX];
	int dir = rundir_open(of, path);

	if (dir < 0)
		return 0;
	r->until_ms = now_ms() + PERSON_MS;
	if (array_grow(&r->dirs, r->ndirs, sizeof(*r->dirs)) < 0) {
		close(dir);
		return -1;
	}
	r->dirs[r->ndirs++] = dir;
	return add_dir(r, dir, of->uid, user);
}

static int add_account(struct registry *r, const struct passwd *pw)
{
	char state[PATH_MAX];
	const struct rundir_of of = {pw->pw_uid, state};

	snprintf(state, sizeof(state), "%.4000s/.local/state/cellblock",
		pw->pw_dir);
	return add_person(r, &of, pw->pw_name);
}

static int add_everybody(struct registry *r, uid_t but)
{
	const struct passwd *pw;
	int n = 0, failed = 0;

	setpwent();
	while (!failed && n++ < USERS && (pw = getpwent()))
		if (pw->pw_uid != but)
			failed = add_account(r, pw);
	endpwent();
	return failed;
}

int registry_open(struct registry *r, const struct rundir_of *of,
	const char *user, enum registry_scope scope, struct err *e)
{
	int failed;

	*r = (struct registry){.scope = scope};
	failed = add_person(r, of, user);
	if (!failed && scope == REGISTRY_ALL)
		failed = add_everybody(r, of->uid);
	return failed ? err_errno(e, "list the sessions") : 0;
}

void registry_free(struct registry *r)
{
	for (size_t i = 0; i < r->ndirs; i++)
		close(r->dirs[i]);
	free(r->dirs);
	free(r->v);
	free(r->elsewhere);
	*r = (struct registry){0};
}

/* The entry in which the waits for all sessions of this person are noted. */
static struct registry_entry *first_of(const struct registry *r, uid_t uid)
{
	struct registry_entry *v = r->v;

	while (v->uid != uid)
		v++;
	return v;
}

int64_t registry_patience_ms(const struct registry *r,
	const struct registry_entry *v, enum registry_wait what)
{
	int64_t left = PATIENCE_MS - first_of(r, v->uid)->waited_ms[what];

	return left > 0 ? left : 0;
}

void registry_note_wait(struct registry *r, const struct registry_entry *v,
	enum registry_wait what, int64_t ms)
{
	first_of(r, v->uid)->waited_ms[what] += ms;
}

static bool is_own(const struct registry_entry *v)
{
	return v->uid == getuid();
}

/* "7"; "s1.7" for session 7 of server 1. */
static void write_number(
	const struct registry_entry *v, char number[static NUMBER_SIZE])
{
	int server = v->id - RUNDIR_SESSIONS;

	if (server <= 0)
		snprintf(number, NUMBER_SIZE, "%d", v->id);
	else if (v->part)
		snprintf(number, NUMBER_SIZE, "s%d.%d", server, v->part);
	else
		snprintf(number, NUMBER_SIZE, "s%d", server);
}

void registry_name(const struct registry_entry *v, char *buf, size_t size)
{
	char number[NUMBER_SIZE];

	write_number(v, number);
	snprintf(buf, size, "%s%s%s", is_own(v) ? "" : v->user,
		is_own(v) ? "" : "/", number);
}

static bool has_number(const struct registry_entry *v, const char *id)
{
	char number[NUMBER_SIZE];

	write_number(v, number);
	return !strcmp(id, number);
}

static bool is_named(const struct registry_entry *v, const char *id)
{
	size_t user = strlen(v->user);

	if (!strncmp(id, v->user, user) && id[user] == '/')
		return has_number(v, id + user + 1);
	return is_own(v) && has_number(v, id);
}

/* True if the session answers, and is detached or long without a key. */
static bool is_offered(const struct registry_entry *v)
{
	return v->answered && !v->part &&
	       (v->status.away_ms >= 0 || v->status.idle_ms > SILENT_MS);
}

static bool is_in_offer(
	const struct registry *r, const struct registry_entry *v)
{
	return r->full || r->login ? v->answered && !v->part : is_offered(v);
}

/* How many sessions are offered; *last is the last of them. */
static size_t count_offered(
	const struct registry *r, const struct registry_entry **last)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		if (is_in_offer(r, &r->v[i])) {
			*last = &r->v[i];
			n++;
		}
	return n;
}

/* Another person's session of that number. A number alone names only one's own:
 * so nobody ends another's by mistake. */
static const struct registry_entry *find_others(
	const struct registry *r, const char *id)
{
	for (size_t i = 0; id && i < r->n; i++)
		if (has_number(&r->v[i], id))
			return &r->v[i];
	return NULL;
}

static void refuse_name(
	const struct registry *r, const char *id, size_t found, struct err *e)
{
	const struct registry_entry *other = found ? NULL : find_others(r, id);
	char safe[REGISTRY_NAME] = "", name[REGISTRY_NAME];

	if (id)
		text_safe(safe, sizeof(safe), id, strlen(id));
	if (other)
		err_set(e, "session %s is not yours", safe);
	else if (found)
		err_set(e, "there are several sessions");
	else
		err_set(e,
			id ? "there is no session %s"
			   : "there is no session to go back to%s",
			safe);
	err_hint(e, "%s lists them",
		r->login ? "ssh HOST sessions" : "cellblock --sessions");
	for (size_t i = 0; !other && i < r->nelsewhere; i++)
		elsewhere_hint(&r->elsewhere[i], id, e);
	if (!other)
		return;
	registry_name(other, name, sizeof(name));
	err_hint(e, "that of %s is %s; cellblock --sessions lists them",
		other->user, name);
}

const struct registry_entry *registry_find(
	const struct registry *r, const char *id, struct err *e)
{
	const struct registry_entry *found = NULL;
	size_t n = 0;

	if (!id && count_offered(r, &found) == 1)
		return found;
	for (size_t i = 0; i < r->n; i++) {
		if (id && !is_named(&r->v[i], id))
			continue;
		found = &r->v[i];
		n++;
	}
	if (n == 1)
		return found;
	refuse_name(r, id, n, e);
	return NULL;
}

/* Whole seconds, minutes or hours; at least a second. */
static const char *rough_time(char buf[static TEXT_HUMAN], int64_t ms)
{
	int64_t unit;

	ms = ms < 1000 ? 1000 : ms;
	unit = ms >= 7200000 ? 3600000 : ms >= 120000 ? 60000 : 1000;

	return text_time(buf, ms / unit * unit);
}

void registry_describe(const struct registry_entry *v, char *buf, size_t size)
{
	const struct attach_status *s = &v->status;
	char since[TEXT_HUMAN], cells[TEXT_HUMAN], files[TEXT_HUMAN];

	if (size)
		buf[0] = '\0';
	if (!v->answered)
		return;
	text_since(since, s->began);
	snprintf(buf, size, "of %s · %s%s%s", since,
		text_count(cells, sizeof(cells), s->cell, "cell", NULL),
		s->home_files ? " · " : "",
		s->home_files ? text_count(files, sizeof(files),
					(uint64_t)s->home_files, "file", NULL)
			      : "");
}

static void describe_session(
	const struct registry_entry *v, char *buf, size_t size)
{
	const struct attach_status *s = &v->status;
	char since[TEXT_HUMAN], time[TEXT_HUMAN];

	text_since(since, s->began);
	if (s->away_ms < 0)
		snprintf(buf, size,
			"from %s is on another terminal, silent "
			"for %s",
			since, rough_time(time, s->idle_ms));
	else if (s->state == ATTACH_RUNS)
		snprintf(buf, size, "from %s is still here: cell %u runs",
			since, (unsigned)s->cell);
	else if (s->cell)
		snprintf(buf, size,
			"from %s is still here: cell %u ended %s ago", since,
			(unsigned)s->cell, rough_time(time, s->cell_ms));
	else
		snprintf(buf, size, "from %s is still here", since);
}

/* ---- asking ---- */

/* Show the offered sessions, and ask, unless the person typed ahead. */
static void ask_line(
	const struct registry *r, size_t n, bool enter_is_new, bool ahead)
{
	const char *one = r->full ? "Enter to go back, e and Enter to end it "
				    "for a new one"
			  : enter_is_new
				  ? "a takes it over, Enter for a new one"
				  : "Enter to go back, n for a new one";
	const char *more =
		r->full ? "[these are all that you may have · its number and "
			  "Enter to go back, e, its number and Enter to end it "
			  "for a new one]"
		: enter_is_new ? "[its number and Enter takes it over, Enter "
				 "alone for a new one]"
			       : "[its number and Enter to go back, n for a "
				 "new one]";
	char text[256], line[400];

	for (size_t i = 0; i < r->n; i++) {
		if (!is_in_offer(r, &r->v[i]))
			continue;
		describe_session(&r->v[i], text, sizeof(text));
		if (n == 1 && !ahead)
			snprintf(line, sizeof(line), "[your session %s · %s]",
				text, one);
		else
			snprintf(line, sizeof(line), "[session %d %s]",
				r->v[i].id, text);
		terminal_print_line(stdout, line);
	}
	if (ahead)
		terminal_print_line(stdout,
			r->login ? "[what you typed already goes to a new "
				   "session · ssh -t HOST attach goes back]"
				 : "[what you typed already goes to a new "
				   "session · cellblock --attach goes back]");
	else if (n > 1)
		terminal_print_line(stdout, more);
	fflush(stdout);
}

static void echo_keys(const char *s, size_t n)
{
	io_write_full(STDOUT_FILENO, s, n);
}

/* The next key; Ctrl-C at the end of input, or for a signal. Ctrl-Z has the
 * flag of its signal set, where a shell waits for us. */
static char read_key(struct signals *sig)
{
	struct pollfd p[2] = {{.fd = STDIN_FILENO, .events = POLLIN},
		{.fd = sig->fd, .events = POLLIN}};
	char c;

	for (;;) {
		if (poll(p, 2, -1) < 0)
			continue;
		terminal_signals_read(sig);
		sig->suspend &= job_has_shell();
		if (sig->end || sig->interrupt || sig->suspend)
			return 0x03;
		if (!p[0].revents)
			continue;
		if (read(STDIN_FILENO, &c, 1) != 1)
			return 0x03;
		if (c != KEYS_CTRL('Z'))
			return c;
		if (job_has_shell()) {
			terminal_signals_take(sig, SIGTSTP);
			return 0x03;
		}
	}
}

/* The meaning of keys at the question. */
struct offer {
	bool full;	   /* e ends a session */
	bool enter_is_new; /* Enter alone; or else it goes back */
	const struct registry_entry *only; /* NULL: there are several */
};

/* Read the choice. REGISTRY_BACK, and REGISTRY_END after an e: `number` was
 * typed, empty for Enter or a alone. */
static enum registry_choice read_number(struct signals *sig,
	const struct offer *o, char number[static NUMBER_SIZE])
{
	enum registry_choice choice = REGISTRY_BACK;
	size_t n = 0;

	for (;;) {
		char c = read_key(sig);
		bool first = !n && choice == REGISTRY_BACK;

		number[n] = '\0';
		if (c == 0x03 || c == 0x04)
			return REGISTRY_NEITHER;
		if (c == '\n' || c == '\r')
			return first && o->enter_is_new ? REGISTRY_NEW : choice;
		if ((c == 'n' || c == 'N') && first)
			return REGISTRY_NEW;
		if ((c == 'a' || c == 'A') && first && o->only)
			return REGISTRY_BACK;
		if ((c == 'e' || c == 'E') && first && o->full) {
			choice = REGISTRY_END;
			echo_keys("e ", 2);
		} else if (c >= '0' && c <= '9' && n < NUMBER_SIZE - 1) {
			number[n++] = c;
			echo_keys(&c, 1);
		} else if ((c == 0x7f || c == '\b') && n) {
			n--;
			echo_keys("\b \b", 3);
		} else if ((c == 0x7f || c == '\b') && !first) {
			choice = REGISTRY_BACK;
			echo_keys("\b\b \b", 4);
		}
	}
}

/* The offered session of that number; NULL: none. */
static const struct registry_entry *find_offered(
	const struct registry *r, const char *number)
{
	for (size_t i = 0; i < r->n; i++)
		if (is_in_offer(r, &r->v[i]) && has_number(&r->v[i], number))
			return &r->v[i];
	return NULL;
}

static enum registry_choice choose_session(const struct registry *r,
	const struct offer *o, struct signals *sig,
	const struct registry_entry **which)
{
	char number[NUMBER_SIZE];

	for (;;) {
		enum registry_choice choice = read_number(sig, o, number);

		if (choice != REGISTRY_BACK && choice != REGISTRY_END)
			return choice;
		*which = *number ? find_offered(r, number) : o->only;
		if (*which)
			return choice;
		echo_keys("\a\n", 2);
	}
}

/* True if all that are offered are in use, as far as one can see. */
static bool all_are_in_use(const struct registry *r)
{
	for (size_t i = 0; i < r->n; i++)
		if (is_offered(&r->v[i]))
			return false;
	return true;
}

/* True if keys wait already. They cannot answer a question that comes later: we
 * leave them for a new session. */
static bool has_typed(void)
{
	struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};

	return poll(&p, 1, 0) > 0 && p.revents == POLLIN;
}

enum registry_choice registry_ask(
	struct registry *r, int most, const struct registry_entry **which)
{
	struct termios before, keys;
	enum registry_choice choice;
	struct signals sig;
	struct offer o;
	bool ahead;
	size_t n;

	r->full = r->n >= (size_t)most;
	n = count_offered(r, which);
	if (!n || tcgetattr(STDIN_FILENO, &before) < 0 ||
		terminal_signals_open(&sig, true, NULL) < 0)
		return REGISTRY_NEW;
	o = (struct offer){.full = r->full,
		.enter_is_new = !r->full && all_are_in_use(r),
		.only = n == 1 ? *which : NULL};
	keys = before;
	keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG);
	do {
		if (sig.suspend) {
			job_stop();
			job_await_front(STDIN_FILENO, -1);
			sig.suspend = false;
		}
		tcsetattr(STDIN_FILENO, TCSANOW, &keys);
		ahead = has_typed();
		ask_line(r, n, o.enter_is_new, ahead);
		choice = ahead ? REGISTRY_NEW
			       : choose_session(r, &o, &sig, which);
		tcsetattr(STDIN_FILENO, TCSANOW, &before);
		if (!ahead)
			fputs(sig.suspend ? "^Z\n" : "\n", stdout);
		fflush(stdout);
	} while (sig.suspend);
	terminal_signals_close(&sig);
	/* The modes are restored: the signal ends us as it ends others. */
	if (sig.end)
		raise(sig.end);
	return choice;
}

/* ---- listing ---- */

/* Write what a session does. One of another build may not know all our
 * questions. */
static void write_doing(const struct attach_status *s, char *buf, size_t size)
{
	char time[TEXT_HUMAN], build[80];
	size_t n;

	if (s->state == ATTACH_RUNS)
		snprintf(buf, size, "running %s", rough_time(time, s->cell_ms));
	else
		snprintf(buf, size, "–");
	if (!strcmp(s->build, CELLBLOCK_VERSION))
		return;
	text_safe(build, sizeof(build), s->build, strlen(s->build));
	n = strlen(buf);
	snprintf(buf + n, size - n, " (%s %s)",
		*build ? "cellblock" : "another", *build ? build : "build");
}

/* A session that does not answer: its process, if that is known. */
static void add_silent_row(struct text_table *t, const char *id,
	const char *who, const struct attach_status *s)
{
	char since[TEXT_HUMAN], doing[64] = "does not answer";

	if (s->began)
		text_since(since, s->began);
	if (s->pid)
		snprintf(doing, sizeof(doing), "pid %d does not answer",
			(int)s->pid);
	text_table_add(t, (const char *[]){id, who, "–", s->began ? since : "–",
				  "–", doing, "–", "–", "–"});
}

static void add_row(struct text_table *t, const struct registry_entry *v)
{
	const struct attach_status *s = &v->status;
	char name[REGISTRY_NAME], id[2 * REGISTRY_NAME], who[160], from[160],
		since[TEXT_HUMAN], cell[160], idle[TEXT_HUMAN], cpu[TEXT_HUMAN],
		mem[TEXT_HUMAN], home[48];
	/* A session that has just begun does not know its usage yet. */
	bool knows = s->memory_bytes > 0;

	registry_name(v, name, sizeof(name));
	text_safe(id, sizeof(id), name, strlen(name));
	text_safe(who, sizeof(who), v->user, strlen(v->user));
	if (!v->answered) {
		add_silent_row(t, id, who, s);
		return;
	}
	text_safe(from, sizeof(from), s->from, strlen(s->from));
	if (v->part) {
		size_t n = strlen(from);

		snprintf(from + n, sizeof(from) - n, " at ");
		n = strlen(from);
		text_safe(from + n, sizeof(from) - n, s->who, strlen(s->who));
	}
	text_since(since, s->began);
	write_doing(s, cell, sizeof(cell));
	text_count(home, sizeof(home), (uint64_t)s->home_files, "file", NULL);
	text_table_add(t,
		(const char *[]){id, who, s->away_ms >= 0 ? "(detached)" : from,
			since, rough_time(idle, s->idle_ms), cell,
			knows ? rough_time(cpu, s->cpu_ms) : "–",
			knows ? text_size(mem, (uint64_t)s->memory_bytes) : "–",
			s->home_files ? home : "–"});
}

static json_t *pack_elsewhere(const struct elsewhere *v)
{
	return json_pack("{s:s, s:s, s:b, s:s, s:s, s:I, s:I}", "number",
		v->host, "who", v->user, "answers", 0, "host", v->host, "reach",
		v->reach, "since", (json_int_t)v->began, "silent_s",
		(json_int_t)v->silent_s);
}

static int print_json(const struct registry *r, FILE *f)
{
	json_t *list = json_array();
	int failed = !list;

	for (size_t i = 0; i < r->n && !failed; i++) {
		const struct registry_entry *v = &r->v[i];
		const struct attach_status *s = &v->status;
		char who[160], from[160], build[80], server[160],
			number[NUMBER_SIZE];
		json_t *o;

		text_safe(who, sizeof(who), v->user, strlen(v->user));
		text_safe(from, sizeof(from), s->from, strlen(s->from));
		text_safe(server, sizeof(server), s->who, strlen(s->who));
		text_safe(build, sizeof(build), s->build, strlen(s->build));
		write_number(v, number);
		o = json_pack("{s:s, s:s, s:b}", "number", number, "who", who,
			"answers", v->answered);
		if (o && v->id <= RUNDIR_SESSIONS)
			failed |= json_object_set_new(
				o, "id", json_integer(v->id));
		if (o && v->part)
			failed |= json_object_set_new(
				o, "server", json_string(server));
		if (o && v->answered)
			failed = json_object_update_new(o,
				json_pack("{s:s, s:I, s:I, s:b, s:b, s:i, s:I, "
					  "s:I, s:I, s:I, s:i, s:s}",
					"from", from, "since",
					(json_int_t)s->began, "idle_ms",
					(json_int_t)s->idle_ms, "detached",
					s->away_ms >= 0, "running",
					s->state == ATTACH_RUNS, "cell",
					(int)s->cell, "cpu_ms",
					(json_int_t)s->cpu_ms, "memory_bytes",
					(json_int_t)s->memory_bytes,
					"home_bytes", (json_int_t)s->home_bytes,
					"home_files", (json_int_t)s->home_files,
					"pid", (int)s->pid, "version", build));
		if (o && !v->answered && s->began)
			failed |= json_object_set_new(
				o, "since", json_integer(s->began));
		if (o && !v->answered && s->pid)
			failed |= json_object_set_new(
				o, "pid", json_integer(s->pid));
		failed |= json_array_append_new(list, o);
	}
	for (size_t i = 0; i < r->nelsewhere && !failed; i++)
		failed |= json_array_append_new(
			list, pack_elsewhere(&r->elsewhere[i]));
	failed |= json_dumpf(list, f, JSON_INDENT(2));
	fputc('\n', f);
	json_decref(list);
	return failed ? -1 : 0;
}

int registry_print(const struct registry *r, bool json, int width, FILE *f)
{
	struct text_table t = {.columns = 9, .width = width, .cut = true};
	struct strbuf b = {0};
	int failed;

	if (json)
		return print_json(r, f);
	text_table_add(&t, (const char *[]){"ID", "WHO", "FROM", "SINCE",
				   "IDLE", "CELL", "CPU", "MEMORY", "HOME"});
	for (size_t i = 0; i < r->n; i++)
		add_row(&t, &r->v[i]);
	for (size_t i = 0; i < r->nelsewhere; i++)
		elsewhere_add_row(&t, &r->elsewhere[i]);
	text_table_write(&t, &b);
	failed = b.failed;
	if (!failed)
		fputs(b.s, f);
	strbuf_free(&b);
	return failed ? -1 : 0;
}
