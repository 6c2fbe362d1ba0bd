/* SPDX-License-Identifier: MIT */
/*
 * page.c - foreign text, a screenful at a time; :clear
 *
 * Runs in:   front end, between cells
 * Trusts:    nothing in the text: it is made safe before it is counted
 * Leaves:    the screen as it was; on a terminal without an alternate screen,
 *            the part of the text seen last
 */
#include "command.h"

#include "repl/edit/editor.h"
#include "repl/session/session.h"
#include "repl/term/term.h"

#define DRAIN_MS 2000

static void write_to_terminal(struct session *s, struct strbuf *b)
{
	/* No check for errors: question_keys() reports a terminal that is
	 * gone. */
	if (b->n && !b->failed)
		terminal_write(s->term, b->s, b->n, DRAIN_MS);
	b->n = 0;
}

/* A terminal without an alternate screen still shows earlier rows. The newlines
 * scroll them away, into its scrollback if it has one. */
static void begin_screen(const struct pager *p, struct strbuf *b)
{
	strbuf_printf(b, "\x1b[?1049h\x1b[%d;1H", p->rows);
	for (int i = 0; i < p->rows; i++)
		strbuf_puts(b, "\n");
}

static void end_screen(const struct pager *p, struct strbuf *b)
{
	strbuf_printf(b, "\x1b[%d;1H\x1b[K\x1b[?1049l", p->rows);
}

/* Stop as a job, and draw anew afterwards. False: the session is over. */
static bool stop(struct session *s, struct pager *p, struct strbuf *b)
{
	end_screen(p, b);
	write_to_terminal(s, b);
	if (!question_stop(s))
		return false;
	begin_screen(p, b);
	p->drawn = false;
	return true;
}

static void turn_pages(struct session *s, struct pager *p, bool end)
{
	struct keys keys;
	struct strbuf b = {0};
	struct key out[KEYS_OUT_MAX];
	bool on = true;

	keys_init(&keys);
	keys.escape_alone = true;
	begin_screen(p, &b);
	if (end)
		pager_press(p, &(struct key){.code = KEY_END});
	while (on) {
		int n, rows, columns;

		pager_draw(p, &b);
		write_to_terminal(s, &b);
		n = question_keys(s, &keys, out);
		on = n >= 0;
		for (int i = 0; on && i < n; i++)
			on = out[i].code == KEYS_CTRL('Z')
				     ? stop(s, p, &b)
				     : pager_press(p, &out[i]);
		editor_size(s->editor, &rows, &columns);
		if (rows != p->rows || columns != p->columns)
			pager_resize(p, rows, columns);
	}
	end_screen(p, &b);
	write_to_terminal(s, &b);
	strbuf_free(&b);
	terminal_lines(s->term);
}

int page_clear(
	struct session *s, const struct command_line *line, struct err *e)
{
	struct strbuf b = {0};

	(void)line;
	(void)e;
	if (s->term->out_tty && !s->term->dumb) {
		strbuf_puts(&b, "\x1b[H\x1b[2J");
		write_to_terminal(s, &b);
	}
	strbuf_free(&b);
	return 0;
}

static void show(struct session *s, const char *text, size_t n, bool end)
{
	struct strbuf b = {0};
	struct pager p;
	int rows, columns;

	text_lines(&b, text, n);
	/* The terminal's size may have changed since the last cell. */
	editor_size(s->editor, &rows, &columns);
	if (!b.n || b.failed)
		goto done;
	pager_open(&p, b.s, b.n, rows, columns);
	if (!s->term->rows || rows <= 2 || !s->term->in_tty ||
		!s->term->out_tty || s->term->dumb || pager_fits(&p))
		session_print(s, b.s, b.n);
	else
		turn_pages(s, &p, end);
	pager_close(&p);
done:
	strbuf_free(&b);
}

void page_show(struct session *s, const char *text, size_t n)
{
	show(s, text, n, false);
}

void page_show_end(struct session *s, const char *text, size_t n)
{
	show(s, text, n, true);
}
