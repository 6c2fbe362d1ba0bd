/* SPDX-License-Identifier: MIT */
/*
 * wire.c - messages between front end, warden, init and guest
 *
 * Runs in:   front end, warden, init
 * Trusts:    nothing it decodes: every message of the guest is checked byte
 *            by byte against one table, and our own are checked for shape
 */
#include "wire.h"

#include <stdio.h>
#include <string.h>

/* ---- the guest's lines ---- */

/* A cursor over one line: everything is bounded by `end`. */
struct scan {
	const char *at, *end;
	int bad;
};

static uint64_t scan_number(struct scan *s, uint64_t max)
{
	uint64_t v = 0;
	int digits = 0;

	while (s->at < s->end && *s->at >= '0' && *s->at <= '9') {
		v = v * 10 + (uint64_t)(*s->at++ - '0');
		if (++digits > 18)
			break;
	}
	if (digits == 0 || digits > 18 || v > max) {
		s->bad = 1;
		return 0;
	}
	return v;
}

static void scan_space(struct scan *s)
{
	if (s->at < s->end && *s->at == ' ')
		s->at++;
	else
		s->bad = 1;
}

static uint64_t scan_next(struct scan *s, uint64_t max)
{
	scan_space(s);
	return s->bad ? 0 : scan_number(s, max);
}

/* A run of printable ASCII up to the end of the line or a space. */
static void scan_word(struct scan *s, char *out, size_t size, int spaces)
{
	size_t n = 0;

	scan_space(s);
	while (s->at < s->end && n + 1 < size && *s->at > ' ' - spaces &&
		*s->at < 0x7f)
		out[n++] = *s->at++;
	out[n] = '\0';
	if (n == 0)
		s->bad = 1;
}

static void decode_ready(struct scan *s, struct wire_guest *m)
{
	m->pid = (int32_t)scan_next(s, INT32_MAX);
	scan_word(s, m->text, sizeof(m->text), 0);
}

static void decode_took(struct scan *s, struct wire_guest *m)
{
	m->no = (uint32_t)scan_next(s, UINT32_MAX);
}

static void decode_bad(struct scan *s, struct wire_guest *m)
{
	m->no = (uint32_t)scan_next(s, UINT32_MAX);
	scan_word(s, m->text, sizeof(m->text), 1);
}

static const struct {
	const char *word;
	enum jail_how how;
} how_words[] = {
	{"ok", HOW_OK},
	{"raised", HOW_RAISED},
	{"syntax", HOW_SYNTAX},
	{"interrupted", HOW_INTERRUPTED},
	{"exit", HOW_EXIT},
};

static void decode_done(struct scan *s, struct wire_guest *m)
{
	char how[16];
	size_t i;

	m->no = (uint32_t)scan_next(s, UINT32_MAX);
	scan_word(s, how, sizeof(how), 0);
	m->names = (uint32_t)scan_next(s, UINT32_MAX);
	m->threads = (uint32_t)scan_next(s, UINT32_MAX);
	m->status = (int)scan_next(s, 255);
	m->marked = (int)scan_next(s, 1);
	for (i = 0; i < sizeof(how_words) / sizeof(how_words[0]); i++)
		if (!strcmp(how, how_words[i].word))
			break;
	if (i == sizeof(how_words) / sizeof(how_words[0]))
		s->bad = 1;
	else
		m->how = how_words[i].how;
}

static void decode_parked(struct scan *s, struct wire_guest *m)
{
	m->no = (uint32_t)scan_next(s, UINT32_MAX);
	scan_word(s, m->text, sizeof(m->text), 1);
	m->ok = !strcmp(m->text, "ok");
}

static void decode_asleep(struct scan *s, struct wire_guest *m)
{
	m->pid = (int32_t)scan_next(s, INT32_MAX);
	m->names = (uint32_t)scan_next(s, UINT32_MAX);
	m->threads = (uint32_t)scan_next(s, UINT32_MAX);
}

static void decode_awake(struct scan *s, struct wire_guest *m)
{
	m->pid = (int32_t)scan_next(s, INT32_MAX);
	m->names = (uint32_t)scan_next(s, UINT32_MAX);
}

static void decode_answer(struct scan *s, struct wire_guest *m)
{
	m->no = (uint32_t)scan_next(s, UINT32_MAX);
	m->answer_n = (size_t)scan_next(s, WIRE_ANSWER_MAX);
}

/* The whole attack surface of the control socket. */
static const struct {
	const char *word;
	enum wire_guest_type type;
	void (*decode)(struct scan *, struct wire_guest *);
} guest_table[] = {
	{"READY", GUEST_READY, decode_ready},
	{"TOOK", GUEST_TOOK, decode_took},
	{"BAD", GUEST_BAD, decode_bad},
	{"DONE", GUEST_DONE, decode_done},
	{"PARKED", GUEST_PARKED, decode_parked},
	{"ASLEEP", GUEST_ASLEEP, decode_asleep},
	{"AWAKE", GUEST_AWAKE, decode_awake},
	{"ANSWER", GUEST_ANSWER, decode_answer},
};

/* After the line: nothing, or for ANSWER exactly the bytes it announced. */
static int guest_payload(struct wire_guest *m, const char *line_end,
	const char *end, struct err *e)
{
	if (m->type != GUEST_ANSWER)
		return line_end == end ? 0 : err_set(e, "bytes after message");
	if (line_end == end || (size_t)(end - line_end - 1) != m->answer_n)
		return err_set(e, "answer of the wrong length");
	m->answer = line_end + 1;
	return 0;
}

int wire_guest_decode(
	struct wire_guest *m, const char *buf, size_t n, struct err *e)
{
	const char *end = buf + n, *eol = memchr(buf, '\n', n);
	struct scan s = {.at = buf, .end = eol ? eol : end};

	memset(m, 0, sizeof(*m));
	if (n > WIRE_GUEST_MAX)
		return err_set(e, "message of %zu bytes", n);
	for (size_t i = 0; i < sizeof(guest_table) / sizeof(guest_table[0]);
		i++) {
		size_t len = strlen(guest_table[i].word);

		if ((size_t)(s.end - s.at) <= len ||
			memcmp(s.at, guest_table[i].word, len) != 0 ||
			s.at[len] != ' ')
			continue;
		s.at += len;
		m->type = guest_table[i].type;
		guest_table[i].decode(&s, m);
		if (s.bad || s.at != s.end)
			return err_set(e, "malformed %s", guest_table[i].word);
		return guest_payload(m, s.end, end, e);
	}
	return err_set(e, "unknown message");
}

size_t wire_cell_encode(
	char *buf, uint32_t no, size_t bytes, uint32_t crc, const char *mark)
{
	return (size_t)sprintf(buf, "CELL %u %zu %u %s", no, bytes, crc, mark);
}

size_t wire_park_encode(char *buf, uint32_t no)
{
	return (size_t)sprintf(buf, "PARK %u", no);
}

size_t wire_ask_encode(char *buf, uint32_t id, enum jail_question q,
	const char *text, size_t n)
{
	static const char *const kinds[] = {
		[ASK_COMPLETE] = "complete",
		[ASK_DOC] = "doc",
		[ASK_SOURCE] = "source",
		[ASK_WHO] = "who",
		[ASK_LATEST] = "latest",
	};
	size_t len;

	if (n > WIRE_ANSWER_MAX)
		n = WIRE_ANSWER_MAX;
	len = (size_t)sprintf(buf, "ASK %u %s %zu\n", id, kinds[q], n);
	if (n > 0)
		memcpy(buf + len, text, n);
	return len + n;
}

size_t wire_resume_encode(char *buf)
{
	return (size_t)sprintf(buf, "RESUME");
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

/* ---- our own structures ---- */

/* A message that carries an error carries it terminated. */
static int err_terminated(const struct err *e)
{
	return memchr(e->msg, '\0', sizeof(e->msg)) &&
	       memchr(e->hint, '\0', sizeof(e->hint));
}

int wire_init_check(const struct wire_init *m, size_t n, struct err *e)
{
	if (n != sizeof(*m))
		return err_set(e, "init message of %zu bytes", n);
	if ((unsigned)m->type > INIT_DISCARDED || m->npids < 0 ||
		m->npids > WIRE_PIDS_MAX || !err_terminated(&m->err))
		return err_set(e, "malformed init message");
	return 0;
}

int wire_front_check(const struct wire_front *m, size_t n, struct err *e)
{
	if (n != sizeof(*m))
		return err_set(e, "request of %zu bytes", n);
	if ((unsigned)m->type > FRONT_START ||
		!memchr(m->path, '\0', sizeof(m->path)))
		return err_set(e, "malformed request");
	return 0;
}

int wire_event_check(const struct wire_event *m, size_t n, struct err *e)
{
	const struct jail_event *ev = &m->event;

	if (n != sizeof(*m))
		return err_set(e, "event of %zu bytes", n);
	if ((unsigned)ev->type > WIRE_REPLY ||
		!memchr(ev->mark, '\0', sizeof(ev->mark)) ||
		!memchr(ev->text, '\0', sizeof(ev->text)) ||
		!memchr(ev->limited, '\0', sizeof(ev->limited)) ||
		!memchr(ev->facts.cgroup_why, '\0',
			sizeof(ev->facts.cgroup_why)) ||
		!memchr(ev->done.text, '\0', sizeof(ev->done.text)) ||
		!err_terminated(&ev->err) || !err_terminated(&m->reply.err))
		return err_set(e, "malformed event");
	return 0;
}
