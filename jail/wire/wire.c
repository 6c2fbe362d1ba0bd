/* SPDX-License-Identifier: MIT */
/*
 * wire.c - messages between front end, warden, init and guest
 *
 * Runs in:   front end, warden, init
 * Trusts:    nothing it decodes: every message of the guest is checked byte
 *            by byte against one table, our own are checked for their shape
 */
#include "wire.h"

#include "jail/base/array.h"
#include "jail/base/io.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* ---- the guest's lines ---- */

/* The fields of a message. Each one follows a space. */
enum field {
	END,
	HOW,
	WORD, /* printable ASCII without spaces */
	TEXT, /* printable ASCII */
	/* numbers */
	NO,
	PID,
	NAMES,
	THREADS,
	STATUS,
	MARKED,
	LENGTH,
};

static const struct {
	size_t at; /* of a 32-bit field in struct wire_guest */
	uint32_t max;
} numbers[] = {
	[NO] = {offsetof(struct wire_guest, no), UINT32_MAX},
	[PID] = {offsetof(struct wire_guest, pid), INT32_MAX},
	[NAMES] = {offsetof(struct wire_guest, names), UINT32_MAX},
	[THREADS] = {offsetof(struct wire_guest, threads), UINT32_MAX},
	[STATUS] = {offsetof(struct wire_guest, status), 255},
	[MARKED] = {offsetof(struct wire_guest, marked), 1},
	[LENGTH] = {offsetof(struct wire_guest, answer_n), WIRE_ANSWER_MAX},
};

/* The whole attack surface of the control socket. */
static const struct form {
	const char *word;
	enum wire_guest_type type;
	enum field fields[7];
} forms[] = {
	{"READY", GUEST_READY, {PID, WORD}},
	{"TOOK", GUEST_TOOK, {NO}},
	{"BAD", GUEST_BAD, {NO, TEXT}},
	{"DONE", GUEST_DONE, {NO, HOW, NAMES, THREADS, STATUS, MARKED}},
	{"PARKED", GUEST_PARKED, {NO, TEXT}},
	{"ASLEEP", GUEST_ASLEEP, {PID, NAMES, THREADS}},
	{"AWAKE", GUEST_AWAKE, {PID, NAMES}},
	{"ANSWER", GUEST_ANSWER, {NO, LENGTH}},
	{"WANTS", GUEST_WANTS, {NO, LENGTH}},
};

static const struct {
	const char *word;
	enum jail_how how;
	int leaves;
} hows[] = {
	{"ok", HOW_OK},
	{"raised", HOW_RAISED},
	{"syntax", HOW_SYNTAX},
	{"interrupted", HOW_INTERRUPTED},
	{"exit", HOW_EXIT},
	{"leave", HOW_EXIT, 1},
};

/* A cursor over one line. Nothing is read at or after `end`. */
struct scan {
	const char *at, *end;
	int bad;
};

static uint32_t scan_number(struct scan *s, uint32_t max)
{
	uint64_t v = 0;
	int digits = 0;

	for (; digits < 18 && s->at < s->end && *s->at >= '0' && *s->at <= '9';
		digits++)
		v = v * 10 + (uint64_t)(*s->at++ - '0');
	s->bad |= digits == 0 || v > max;
	return (uint32_t)v;
}

/* At least one character above `low`, up to the end of the line. */
static void scan_text(struct scan *s, char *out, size_t size, char low)
{
	size_t n = 0;

	while (s->at < s->end && n + 1 < size && *s->at > low && *s->at < 0x7f)
		out[n++] = *s->at++;
	out[n] = '\0';
	s->bad |= n == 0;
}

static void scan_how(struct scan *s, struct wire_guest *m)
{
	char word[16];

	scan_text(s, word, sizeof(word), ' ');
	for (size_t i = 0; i < COUNT(hows); i++)
		if (!strcmp(word, hows[i].word)) {
			m->how = hows[i].how;
			m->leaves = hows[i].leaves;
			return;
		}
	s->bad = 1;
}

static void scan_field(struct scan *s, enum field f, struct wire_guest *m)
{
	uint32_t v;

	if (s->at == s->end || *s->at++ != ' ') {
		s->bad = 1;
	} else if (f == HOW) {
		scan_how(s, m);
	} else if (f == WORD || f == TEXT) {
		scan_text(s, m->text, sizeof(m->text), f == WORD ? ' ' : 0x1f);
	} else {
		v = scan_number(s, numbers[f].max);
		memcpy((char *)m + numbers[f].at, &v, sizeof(v));
	}
}

/* The form that a line begins with, or NULL; the cursor moves behind it. */
static const struct form *scan_form(struct scan *s)
{
	for (size_t i = 0; i < COUNT(forms); i++) {
		size_t n = strlen(forms[i].word);

		if ((size_t)(s->end - s->at) <= n || s->at[n] != ' ' ||
			memcmp(s->at, forms[i].word, n) != 0)
			continue;
		s->at += n;
		return &forms[i];
	}
	return NULL;
}

/* Check the bytes behind the line: none, or those that it announced. */
static int guest_payload(
	struct wire_guest *m, const char *line_end, const char *end)
{
	if (m->type != GUEST_ANSWER && m->type != GUEST_WANTS)
		return line_end == end ? 0 : -1;
	if (line_end == end || (size_t)(end - line_end - 1) != m->answer_n)
		return -1;
	m->answer = line_end + 1;
	return 0;
}

int wire_guest_decode(struct wire_guest *m, const char *buf, size_t n)
{
	const char *end = buf + n, *eol = memchr(buf, '\n', n);
	struct scan s = {.at = buf, .end = eol ? eol : end};
	const struct form *form;

	memset(m, 0, sizeof(*m));
	if (n > WIRE_GUEST_MAX)
		return -1;
	form = scan_form(&s);
	if (!form)
		return -1;
	m->type = form->type;
	for (const enum field *f = form->fields; *f != END && !s.bad; f++)
		scan_field(&s, *f, m);
	if (s.bad || s.at != s.end)
		return -1;
	m->same = m->type == GUEST_PARKED && !strcmp(m->text, "same");
	m->ok = m->same || (m->type == GUEST_PARKED && !strcmp(m->text, "ok"));
	return guest_payload(m, s.end, end);
}

size_t wire_cell_encode(char *buf, uint32_t no, size_t bytes, uint32_t crc,
	const char *mark, enum jail_cell kind)
{
	static const char *const kinds[] = {
		[CELL_SILENT] = "silent",
		[CELL_BUNDLE] = "bundle",
		[CELL_PROMPT] = "prompt",
		[CELL_IMAGE] = "image",
		[CELL_HABIT] = "habit",
		[CELL_EDIT] = "edit",
	};

	return (size_t)sprintf(
		buf, "CELL %u %zu %u %s %s", no, bytes, crc, mark, kinds[kind]);
}

size_t wire_park_encode(char *buf, uint32_t no, int trial)
{
	return (size_t)sprintf(buf, "%s %u", trial ? "TRIAL" : "PARK", no);
}

size_t wire_ask_encode(char *buf, uint32_t id, enum jail_question q, int alone,
	const char *text, size_t n)
{
	static const char *const kinds[] = {
		[ASK_COMPLETE] = "complete",
		[ASK_DOC] = "doc",
		[ASK_SOURCE] = "source",
		[ASK_WHO] = "who",
		[ASK_DIFF] = "diff",
		[ASK_EXPLAIN] = "explain",
		[ASK_WATCH] = "watch",
		[ASK_SIGNATURE] = "signature",
	};
	size_t len;

	if (n > WIRE_ANSWER_MAX)
		n = WIRE_ANSWER_MAX;
	len = (size_t)sprintf(buf, "ASK %u %s %zu%s\n", id, kinds[q], n,
		alone ? " alone" : "");
	if (n > 0)
		memcpy(buf + len, text, n);
	return len + n;
}

size_t wire_resume_encode(char *buf)
{
	return (size_t)sprintf(buf, "RESUME");
}

size_t wire_start_encode(char *buf, unsigned tty_bits, size_t at, size_t bytes)
{
	return (size_t)sprintf(buf, "START %u %zu %zu", tty_bits, at, bytes);
}

size_t wire_lease_encode(
	char *buf, const struct limits *l, const char *env, size_t n)
{
	size_t len = (size_t)sprintf(buf, "LEASE %" PRId64 " %d %d\n",
		l->memory_bytes, l->cpus_milli, l->recursion);

	memcpy(buf + len, env, n);
	return len + n;
}

uint32_t wire_crc32(const void *buf, size_t n)
{
	const unsigned char *p = buf;
	uint32_t table[256], crc = 0xffffffff;

	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;

		for (int k = 0; k < 8; k++)
			c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
		table[i] = c;
	}
	for (size_t i = 0; i < n; i++)
		crc = table[(crc ^ p[i]) & 0xff] ^ (crc >> 8);
	return ~crc;
}

/* ---- the start of a program ---- */

/* Most variables that come with a start, and most bytes of it: cell.source has
 * at most 16 MiB, the kernel takes at most 6 MiB of arguments. */
#define START_ENV_MAX 16
#define START_BYTES_MAX (64 << 20)

/* The memfd: this, the strings with their NULs, the source. */
struct start_head {
	uint32_t nargs, nenv, source_n;
};

static uint32_t count_strings(const char *const *list)
{
	uint32_t n = 0;

	while (list && list[n] && n <= WIRE_ARGS_MAX)
		n++;
	return n;
}

static int write_strings(int fd, const char *const *list, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (io_write_full(fd, list[i], strlen(list[i]) + 1) < 0)
			return -1;
	return 0;
}

int wire_start_seal(const struct jail_start *s, struct err *e)
{
	const struct start_head head = {.nargs = count_strings(s->argv),
		.nenv = count_strings(s->env),
		.source_n = (uint32_t)s->source_n};
	auto_close int fd = -1;

	if (head.nargs > WIRE_ARGS_MAX)
		return err_set(e, "more than %d arguments", WIRE_ARGS_MAX);
	fd = memfd_create("cellblock-start", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || io_write_full(fd, &head, sizeof(head)) < 0 ||
		write_strings(fd, s->argv, head.nargs) < 0 ||
		write_strings(fd, s->env, head.nenv) < 0 ||
		io_write_full(fd, s->source, s->source_n) < 0 ||
		io_seal(fd) < 0)
		return err_errno(e, "hold the arguments in memory");
	return fd_take(&fd);
}

/* The size of the memfd, or -1 with e. */
static ssize_t start_size(int fd, struct err *e)
{
	off_t n = io_sealed_size(fd);

	if (n > START_BYTES_MAX || n < (off_t)sizeof(struct start_head))
		return err_set(e, "malformed start");
	return n;
}

int wire_start_check(int fd, struct err *e)
{
	return start_size(fd, e) < 0 ? -1 : 0;
}

int wire_start_find(int fd, size_t *at, size_t *n, struct err *e)
{
	ssize_t size = start_size(fd, e);
	struct start_head head;

	if (size < 0)
		return -1;
	if (pread(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head))
		return err_errno(e, "read the source");
	*at = sizeof(head);
	*n = head.source_n;
	if (*n && (head.nargs || head.nenv || *n != (size_t)size - *at))
		return err_set(e, "malformed start");
	return 0;
}

int wire_start_is_cell(int fd)
{
	struct {
		struct start_head head;
		char arg[3];
	} s;

	return pread(fd, &s, sizeof(s.head) + sizeof(s.arg), 0) ==
		       (ssize_t)(sizeof(s.head) + sizeof(s.arg)) &&
	       s.head.nargs > 0 && memcmp(s.arg, "-e", sizeof(s.arg)) == 0;
}

/* The next `n` strings, from *at on. NULL where there are not as many. */
static const char **read_strings(
	const struct wire_start *s, size_t *at, size_t end, uint32_t n)
{
	const char **list = calloc((size_t)n + 1, sizeof(*list));

	for (uint32_t i = 0; list && i < n; i++) {
		const char *nul = memchr(s->bytes + *at, '\0', end - *at);

		if (!nul) {
			free(list);
			return NULL;
		}
		list[i] = s->bytes + *at;
		*at = (size_t)(nul - s->bytes) + 1;
	}
	return list;
}

int wire_start_read(struct wire_start *s, int fd, struct err *e)
{
	ssize_t size = start_size(fd, e);
	struct start_head head;
	size_t at = sizeof(head), n = (size_t)size;

	*s = (struct wire_start){0};
	if (size < 0)
		return -1;
	s->bytes = malloc(n);
	if (!s->bytes || pread(fd, s->bytes, n, 0) != size)
		return err_errno(e, "read the arguments");
	memcpy(&head, s->bytes, sizeof(head));
	if (head.nargs > WIRE_ARGS_MAX || head.nenv > START_ENV_MAX)
		return err_set(e, "malformed start");
	s->argv = read_strings(s, &at, n, head.nargs);
	s->env = s->argv ? read_strings(s, &at, n, head.nenv) : NULL;
	if (!s->env || head.source_n || at != n)
		return err_set(e, "malformed start");
	return 0;
}

void wire_start_fini(struct wire_start *s)
{
	free(s->argv);
	free(s->env);
	free(s->bytes);
	*s = (struct wire_start){0};
}

/* ---- our own structures ---- */

static int err_terminated(const struct err *e)
{
	return memchr(e->msg, '\0', sizeof(e->msg)) &&
	       memchr(e->hint, '\0', sizeof(e->hint));
}

int wire_init_check(const struct wire_init *m, size_t n)
{
	if (n != sizeof(*m) || (unsigned)m->type > INIT_CONFINED ||
		m->npids < 0 || m->npids > WIRE_PIDS_MAX ||
		!err_terminated(&m->err))
		return -1;
	return 0;
}

int wire_front_check(const struct wire_front *m, size_t n)
{
	if (n != sizeof(*m) || (unsigned)m->type > FRONT_READY ||
		!memchr(m->path, '\0', sizeof(m->path)) ||
		(m->type == FRONT_RUN && (uint64_t)m->b > CELL_EDIT))
		return -1;
	return 0;
}

int wire_front_paths(
	const struct wire_front *m, const char *paths[static JAIL_MANY_MAX])
{
	const char *p = m->path, *end = m->path + sizeof(m->path);
	int n = 0;

	while (n < m->a && n < JAIL_MANY_MAX && p < end) {
		const char *nul = memchr(p, '\0', (size_t)(end - p));

		if (!nul)
			break;
		paths[n++] = p;
		p = nul + 1;
	}
	return n;
}

int wire_front_ends(const struct wire_front *m)
{
	return m->a < 0 ? 0 : m->a > JAIL_MANY_MAX ? JAIL_MANY_MAX : (int)m->a;
}

/* The text of the facts of an event, which not every type has. */
static int is_why_terminated(const struct jail_event *ev)
{
	return (ev->type != JAIL_BUILT && ev->type != JAIL_FAILED) ||
	       memchr(ev->facts.cgroup_why, '\0', sizeof(ev->facts.cgroup_why));
}

static uint32_t most_bytes(enum jail_event_type type)
{
	if (type == JAIL_REPLY)
		return WIRE_BYTES_MAX;
	return type == JAIL_TYPEAHEAD || type == JAIL_STACK ? WIRE_SAID_MAX : 0;
}

int wire_event_check(const struct wire_event *m, size_t n, struct err *e)
{
	const struct jail_event *ev = &m->event;

	if (n != sizeof(*m))
		return err_set(e, "event of %zu bytes", n);
	if ((unsigned)ev->type > JAIL_REPLY ||
		ev->nbytes > most_bytes(ev->type) ||
		!memchr(ev->mark, '\0', sizeof(ev->mark)) ||
		!memchr(ev->text, '\0', sizeof(ev->text)) ||
		!memchr(ev->limited, '\0', sizeof(ev->limited)) ||
		!is_why_terminated(ev) ||
		!memchr(ev->done.text, '\0', sizeof(ev->done.text)) ||
		!err_terminated(&ev->err) || !err_terminated(&m->reply.err))
		return err_set(e, "malformed event");
	return 0;
}
