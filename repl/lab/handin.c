/* SPDX-License-Identifier: MIT */
/*
 * handin.c - takes files that a person hands in
 *
 * Runs in:   root: a child of the service, which has an alarm
 * Trusts:    the system's configuration, and the clock of the host. Each message
 *            is hostile: we bound names, sizes, counts, and how long we wait
 * Leaves:    a whole version, or none
 *
 * The bytes come through a socket, and never as a descriptor: a file of another
 * could change, or keep its reader waiting. To close a descriptor could take
 * long, so we look at a message before we take it (client.c).
 */
#include "repl/lab/lab.h"

#include "jail/base/io.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <syslog.h>
#include <time.h>

/* How long a client may send nothing. */
#define SILENT_MS 5000

struct handin {
	int sock;
	const struct config *cfg;
	const char *who;
	struct place_draft place;
	char *piece; /* HANDIN_PIECE bytes */
};

/* ---- what may be handed in ---- */

/* The moment of the host's clock; -1 with e if that is past the deadline, or
 * the exam. */
static time_t now_if_in_time(const struct handin *h, struct err *e)
{
	const struct config_lab *lab = &h->cfg->lab;
	auto_close int course = -1;
	time_t now = time(NULL);
	char due[TEXT_HUMAN], end[TEXT_HUMAN];
	enum past past;

	/* It began in the exam: the service has looked (client.c). */
	if (exam_is_set(h->cfg) && now >= h->cfg->exam_end_s) {
		err_set(e, "the exam ended at %s: nothing was handed in now",
			text_minute(end, h->cfg->exam_end_s));
		return -1;
	}
	if (!lab->due_s)
		return now;
	course = place_course(lab);
	past = past_look(course, lab->due_s, "lab.deadline");
	if (past == PAST_NOT)
		return now;
	err_set(e, "exercise %s was due %s%s: nothing was handed in now",
		lab->exercise ? lab->exercise : "",
		text_moment(due, lab->due_s, now, false),
		past == PAST_BEFORE ? ", which has passed, though this host's "
				      "clock was set back since"
				    : "");
	err_hint(e, ":submit lists what was handed in before");
	return -1;
}

/* ---- messages ---- */

static int answer(const struct handin *h, const struct handin_row *row)
{
	return io_send_fds(h->sock, row, sizeof(*row), NULL, 0, MSG_DONTWAIT);
}

/* Take one message, which holds no descriptor: its length, or -1 with e. */
static ssize_t take(const struct handin *h, void *buf, size_t n, struct err *e)
{
	ssize_t got;

	if (!io_await(h->sock, SILENT_MS))
		return err_set(e, "nothing came for %d s", SILENT_MS / 1000);
	if (io_look_at_first(h->sock) == IO_FIRST_FDS)
		return err_set(e, "malformed hand-in: it holds descriptors");
	got = io_recv_fds(h->sock, buf, n, NULL, 0, MSG_DONTWAIT);
	if (got < 0)
		return err_errno(e, "take what is handed in");
	return got ? got : err_set(e, "the session went away");
}

static int take_bytes(
	struct handin *h, struct place_incoming *in, struct err *e)
{
	while (in->left > 0) {
		ssize_t n = take(h, h->piece, HANDIN_PIECE, e);

		if (n < 0 || place_add(in, h->piece, (size_t)n, e) < 0)
			return -1;
	}
	return place_end(&h->place, in, e);
}

/* Take all files, up to the head without a name. */
static int take_files(struct handin *h, struct err *e)
{
	for (size_t count = 0;; count++) {
		struct handin_head head;
		struct place_incoming in;
		ssize_t n = take(h, &head, sizeof(head), e);
		int r = n < 0 ? -1 : asked_head(&head, (size_t)n, count, e);

		if (r <= 0)
			return r;
		r = place_begin(&h->place, &in, head.name, head.bytes, e);
		if (r == 0)
			r = take_bytes(h, &in, e);
		place_drop(&in);
		if (r < 0)
			return -1;
	}
}

/* ---- answers ---- */

static struct handin_row make_row(const struct handin *h)
{
	struct handin_row row = {.ok = 1, .due_s = h->cfg->lab.due_s};

	memcpy(row.course, h->place.course, sizeof(row.course));
	memcpy(row.exercise, h->place.exercise, sizeof(row.exercise));
	return row;
}

void handin_log(const struct place_draft *p, const struct place_file *f,
	const char *how)
{
	char name[256];

	text_safe(name, sizeof(name), f->name, strlen(f->name));
	syslog(LOG_INFO,
		"%s handed in %s/%s%s: %s, version %" PRIu32 ", receipt %s, "
		"sha256 %s",
		p->person, p->course, p->exercise, how, name, f->version,
		f->receipt, f->sha256);
}

/* Answer with the files of the newest version; `fresh`: with the new ones. */
static void answer_files(const struct handin *h, bool fresh)
{
	const struct place_record *r = &h->place.record;
	struct handin_row row;

	for (size_t i = 0; i < r->n; i++) {
		const struct place_file *f = &r->files[i];

		if (fresh && !h->place.fresh[i])
			continue;
		row = make_row(h);
		row.version = f->version;
		row.bytes = f->bytes;
		row.when_s = f->when_s;
		memcpy(row.name, f->name, sizeof(row.name));
		memcpy(row.receipt, f->receipt, sizeof(row.receipt));
		if (fresh && h->cfg->syslog)
			handin_log(&h->place, f, "");
		answer(h, &row);
	}
	row = make_row(h);
	row.version = r->version;
	row.when_s = r->when_s;
	answer(h, &row);
}

static void refuse(const struct handin *h, const struct err *e)
{
	const struct config_lab *lab = &h->cfg->lab;
	const struct handin_row row = {.err = *e};
	bool ours = e->code == ENOSPC || e->code == EDQUOT || e->code == EIO;

	/* The place may not be open yet. */
	if (ours || h->cfg->syslog)
		syslog(ours ? LOG_ERR : LOG_INFO,
			"%s could not hand in %s/%s: %s", h->who,
			lab->course ? lab->course : "",
			lab->exercise ? lab->exercise : "", e->msg);
	answer(h, &row);
}

/* ---- the request ---- */

static int hand_in(struct handin *h, struct err *e)
{
	time_t when;

	/* The moment that counts is the one at which all has come. */
	if (now_if_in_time(h, e) < 0 ||
		place_open(&h->place, h->cfg, h->who, PLACE_LOCK_MS, e) < 0 ||
		take_files(h, e) < 0)
		return -1;
	when = now_if_in_time(h, e);
	return when < 0 ? -1 : place_commit(&h->place, when, e);
}

void handin_serve(int sock, const struct handin_ask *ask,
	const struct config *cfg, const char *person)
{
	struct handin h = {.sock = sock,
		.cfg = cfg,
		.who = person,
		.place = {.dir = -1, .lock = -1, .temp = -1},
		.piece = malloc(HANDIN_PIECE)};
	bool fresh = ask->kind == HANDIN_FILES;
	struct err e = {0};
	int r = h.piece ? 0 : err_errno(&e, "take what is handed in");

	if (r == 0)
		r = config_check_command(cfg, "submit", &e);
	if (r == 0)
		r = fresh ? hand_in(&h, &e)
			  : place_open(
				    &h.place, cfg, person, PLACE_LOCK_MS, &e);
	/* A client that has the answer finds no half version, and no lock. */
	place_close(&h.place);
	if (r < 0)
		refuse(&h, &e);
	else
		answer_files(&h, fresh);
	free(h.piece);
}
