/* SPDX-License-Identifier: MIT */
/*
 * pictures.c - pictures of a cell, from its pipe to the terminal
 *
 * Runs in:   front end, while a cell runs
 * Holds:     the reading end of the cell's pipe; at most one picture
 * Trusts:    nothing in the pipe. A pipe's bytes cannot change after we have
 *            read them. We check each head before we allocate memory for its
 *            pixels, and read no more after a wrong head. A head names its file
 *            by a number, and we make the file's name
 * Leaves:    each picture above a frame line, charged to the cell's output
 *
 * A cell that shows a picture writes it to the pipe first, and then the end
 * mark to its tty. So a mark that comes while a whole picture waits is that
 * picture's place; any other ends the output. In the same way a cell says where
 * a value begins that it does not show whole.
 */
#include "repl/session/session.h"

#include "jail/base/io.h"
#include "jail/jail.h"
#include "repl/config/config.h"
#include "repl/picture/picture.h"
#include "repl/term/term.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Most pictures of one cell. */
#define PICTURES 20

struct pictures {
	int fd; /* owned; -1: no cell has one */
	char head[JAIL_PICTURE_HEAD];
	struct picture picture; /* that is being read; its pixels are owned */
	struct picture_head told;
	size_t got, size; /* bytes of the head, then of the pixels */
	int count;	  /* pictures of this cell */
	bool whole;	  /* the picture is whole, and waits */
	bool cut;	  /* it is no picture: the next value is cut */
	bool hint;	  /* nor this: it is a path, for hints.c */
	bool text;	  /* nor this: it is a text, for cell_edit() */
	bool refused;	  /* we take no more pictures of this cell */
	const char *file; /* borrowed: the file that :show shows; or NULL */
	struct ask ask;
};

int pictures_open(struct session *s, struct err *e)
{
	s->pictures = calloc(1, sizeof(*s->pictures));
	if (!s->pictures)
		return err_errno(e, "open a session");
	s->pictures->fd = -1;
	return 0;
}

static void forget_picture(struct pictures *p)
{
	free(p->picture.rgb);
	p->picture = (struct picture){0};
	p->got = p->size = 0;
	p->whole = p->cut = p->hint = p->text = false;
}

void pictures_close(struct session *s)
{
	if (!s->pictures)
		return;
	forget_picture(s->pictures);
	fd_drop(&s->pictures->fd);
	free(s->pictures);
	s->pictures = NULL;
}

struct ask *pictures_ask(const struct session *s)
{
	return &s->pictures->ask;
}

void pictures_take_terminal(struct session *s)
{
	s->pictures->ask = (struct ask){0};
}

void pictures_end(struct session *s)
{
	while (pictures_draw(s))
		;
	forget_picture(s->pictures);
	fd_drop(&s->pictures->fd);
}

int pictures_begin(struct session *s, const char *file)
{
	struct pictures *p = s->pictures;
	int ends[2];

	pictures_end(s);
	p->count = 0;
	p->refused = false;
	p->file = file;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	io_set_nonblock(ends[0], 1);
	p->fd = ends[0];
	return ends[1];
}

int pictures_fd(const struct session *s)
{
	return s->pictures->whole ? -1 : s->pictures->fd;
}

/* ---- reading the pipe ---- */

static void refuse_pictures(struct session *s, const char *why)
{
	struct pictures *p = s->pictures;

	fd_drop(&p->fd);
	forget_picture(p);
	if (!p->refused)
		session_frame(
			s, "no more pictures of this cell are shown: %s", why);
	p->refused = true;
}

static void begin_bytes(struct session *s, size_t n)
{
	struct pictures *p = s->pictures;

	p->got = 0;
	p->size = n;
	p->picture.rgb = malloc(n);
	if (!p->picture.rgb)
		refuse_pictures(s, "out of memory");
}

/* The number of bytes stands in the head. A file may be longer than a cell:
 * then the editor refuses what we take of it. */
static void begin_text(struct session *s)
{
	char *head = s->pictures->head;
	size_t most = (size_t)s->cfg->limits.source_bytes + 2, n;

	head[JAIL_PICTURE_HEAD - 1] = '\0';
	n = strtoul(head + 5, NULL, 10);
	begin_bytes(s, n < 1 ? 1 : n < most ? n : most);
}

static void take_text(struct session *s)
{
	struct pictures *p = s->pictures;

	strbuf_add(s->edited, p->picture.rgb, p->size);
	forget_picture(p);
	fd_drop(&p->fd);
}

/* Check the head that has come, and make room for its pixels. */
static void begin_pixels(struct session *s)
{
	struct pictures *p = s->pictures;

	p->whole = p->cut = memcmp(p->head, "cut ", 4) == 0;
	if (p->cut)
		return;
	p->hint = memcmp(p->head, "hint ", 5) == 0;
	if (p->hint) {
		begin_bytes(s, JAIL_HINT_PATH);
		return;
	}
	p->text = s->edited && memcmp(p->head, "text ", 5) == 0;
	if (p->text) {
		begin_text(s);
		return;
	}
	if (p->count == PICTURES) {
		refuse_pictures(s, "these are too many");
		return;
	}
	if (head_read(&p->told, p->head) < 0) {
		refuse_pictures(s, "what it hands over is no picture");
		return;
	}
	p->picture.width = p->told.width;
	p->picture.height = p->told.height;
	begin_bytes(
		s, 3 * (size_t)p->picture.width * (size_t)p->picture.height);
}

static void take_hint(struct session *s)
{
	struct pictures *p = s->pictures;

	p->head[JAIL_PICTURE_HEAD - 1] = '\0';
	p->picture.rgb[JAIL_HINT_PATH - 1] = '\0';
	hints_note(s, p->head + 5, (const char *)p->picture.rgb);
	forget_picture(p);
}

/* Read what has come, up to the end of one picture. */
void pictures_read(struct session *s)
{
	struct pictures *p = s->pictures;

	while (p->fd >= 0 && !p->whole) {
		bool head = !p->picture.rgb;
		char *to = head ? p->head : (char *)p->picture.rgb;
		size_t want = head ? sizeof(p->head) : p->size;
		ssize_t n = read(p->fd, to + p->got, want - p->got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			fd_drop(&p->fd);
			return;
		}
		p->got += (size_t)n;
		if (p->got < want)
			continue;
		if (head)
			begin_pixels(s);
		else if (p->hint)
			take_hint(s);
		else if (p->text)
			take_text(s);
		else
			p->whole = true;
	}
}

/* ---- drawing ---- */

/* Ask the terminal what it can draw. We are the only reader of the terminal
 * until it has answered. */
static void ask_terminal(struct session *s)
{
	struct pictures *p = s->pictures;
	struct strbuf b = {0};

	if (!s->term->in_tty || !ask_is_due(&p->ask))
		return;
	output_suspend(s->output);
	ask_write(&p->ask, &b);
	if (b.failed)
		return;
	relay_put(s->relay, b.s, b.n);
	relay_flush(s->relay);
	b.n = 0;
	ask_wait(&p->ask, s->term, &b);
	if (b.n && !b.failed)
		relay_type(s->relay, b.s, b.n);
	strbuf_free(&b);
}

static struct picture_place choose_picture_place(const struct session *s)
{
	const struct ask *a = &s->pictures->ask;
	const struct terminal *t = s->term;
	struct picture_place at = {
		.way = a->true_colour ? PICTURE_BLOCKS : PICTURE_BLOCKS_256,
		.rows = t->rows,
		.columns = t->cols,
		.cell_width = a->cell_width,
		.cell_height = a->cell_height,
		.registers = a->registers ? a->registers : 256,
	};

	if (t->cell_width > 0 && t->cell_height > 0) {
		at.cell_width = t->cell_width;
		at.cell_height = t->cell_height;
	}
	if (s->cfg->pictures == PICTURES_BLOCKS)
		return at;
	/* Without the height of a character we would not know how many rows a
	 * sixel picture takes. */
	if (a->sixel && at.cell_height > 0)
		at.way = PICTURE_SIXEL;
	if (a->iterm2)
		at.way = PICTURE_ITERM2;
	if (a->kitty)
		at.way = PICTURE_KITTY;
	return at;
}

/* Draw the picture. Returns NULL, or why it was not drawn, for its caption. */
static const char *draw_picture(struct session *s)
{
	struct pictures *p = s->pictures;
	const struct terminal *t = s->term;
	const char *why = NULL;
	struct picture_place at;
	struct strbuf b = {0};

	if (s->cfg->pictures == PICTURES_NO || !t->colour || t->dumb ||
		!t->out_tty || t->rows < 1 || t->cols < 2)
		return "";
	if (!output_has_room(s->output))
		return " · not drawn";
	ask_terminal(s);
	relay_follow_window(s->relay);
	at = choose_picture_place(s);
	if (picture_add(&b, &p->picture, &at) < 0)
		why = " · not drawn: out of memory";
	else if (!output_draw(s->output, b.s, b.n))
		why = " · not drawn: output limit";
	strbuf_free(&b);
	return why;
}

static void say_caption(struct session *s, const char *why)
{
	struct pictures *p = s->pictures;

	why = why ? why : "";
	if (p->file)
		session_frame(s, "%s · %dx%d%s", p->file, p->told.whole_width,
			p->told.whole_height, why);
	else if (!p->told.number)
		session_frame(s,
			"picture · %dx%d%s · not kept: no room in the home",
			p->told.whole_width, p->told.whole_height, why);
	else
		session_frame(s,
			"figure %u · %dx%d%s · :download figure-%u.png",
			p->told.number, p->told.whole_width,
			p->told.whole_height, why, p->told.number);
}

bool pictures_draw(struct session *s)
{
	struct pictures *p = s->pictures;

	pictures_read(s);
	if (!p->whole || !s->output)
		return false;
	if (p->cut) {
		if (!s->aside)
			record_cut(s->record);
	} else {
		p->count++;
		say_caption(s, draw_picture(s));
		session_name_figure(s, p->told.number);
	}
	forget_picture(p);
	return true;
}
