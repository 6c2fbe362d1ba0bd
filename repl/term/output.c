/* SPDX-License-Identifier: MIT */
/*
 * output.c - passes a cell's output from the pty to the terminal
 *
 * Runs in:   the front end
 * Trusts:    the options; no byte of the output
 * Leaves:    the terminal's modes as before the cell, the cursor in column 0,
 *            and a count of all bytes and sequences that were not shown
 */
#include "repl/term/term.h"

#include "jail/base/err.h"
#include "jail/base/io.h"

#define ESC 0x1b
#define BEL 0x07
/* Bytes of a frame line's text; the rest is cut. */
#define FRAME_MAX 8192
/* If no mark comes, this silence of the tty ends a cell's output; the shorter
 * one if every writer is dead. */
#define SILENCE_MS 50
#define DEAD_SILENCE_MS 20
/* From this time after a cell's end on, output is background output. */
#define BACKGROUND_MS 2000

int output_open(struct output *o, size_t tail_bytes, struct err *e)
{
	memset(o, 0, sizeof(*o));
	o->tail_size = tail_bytes;
	o->tail = malloc(tail_bytes ? tail_bytes : 1);
	return o->tail ? 0
		       : err_errno(e, "output: keep a tail of %zu bytes",
				 tail_bytes);
}

void output_close(struct output *o)
{
	free(o->tail);
	o->tail = NULL;
	o->tail_size = 0;
	strbuf_free(&o->said);
}

static void copy_shown(const struct output *o, enum output_copied what,
	const void *buf, size_t n)
{
	if (o->opts.copy)
		o->opts.copy(o->opts.arg, what, buf, n);
}

/* Show bytes of the cell, and copy them to the watchers. */
static void show_bytes(struct output *o, const void *buf, size_t n)
{
	if (n)
		copy_shown(o, OUTPUT_BYTES, buf, n);
	vt_feed(&o->vt, buf, n);
}

static void emit_to_sink(void *arg, const void *buf, size_t n)
{
	const struct output *o = arg;

	o->opts.sink(o->opts.arg, buf, n);
}

static void start_filter(struct output *o)
{
	const struct output_opts *opts = &o->opts;

	vt_init(&o->vt, opts->mode, emit_to_sink, o);
	o->vt.rows = opts->rows;
	o->vt.columns = opts->columns;
	o->vt.lf_returns = opts->lf_returns;
	o->vt.alone = o->vt.free = opts->alone;
}

void output_begin(struct output *o, const struct output_opts *opts)
{
	o->opts = *opts;
	o->held = 0;
	o->marked = false;
	o->total = o->head = o->background = 0;
	o->tail_at = 0;
	o->said.n = 0;
	o->mark[0] = '\0';
	if (opts->mark)
		snprintf(o->mark, sizeof(o->mark), "\x1b_%.*s\x1b\\",
			OUTPUT_MARK_DIGITS, opts->mark);
	o->opts.mark = NULL;
	start_filter(o);
}

void output_resize(struct output *o, int rows, int columns)
{
	o->opts.rows = rows;
	o->opts.columns = columns;
	vt_resize(&o->vt, rows, columns);
}

static void keep_tail(struct output *o, const uint8_t *p, size_t n)
{
	size_t skip = n > o->tail_size ? n - o->tail_size : 0;
	size_t first = o->tail_size - o->tail_at;

	p += skip;
	n -= skip;
	if (first > n)
		first = n;
	memcpy(o->tail + o->tail_at, p, first);
	memcpy(o->tail, p + first, n - first);
	o->tail_at += n;
	if (o->tail_size && o->tail_at >= o->tail_size)
		o->tail_at -= o->tail_size;
}

/* Take bytes of the cell that are no part of its mark. */
static void take_cell_bytes(struct output *o, const void *buf, size_t n)
{
	const uint8_t *p = buf;
	uint64_t room = o->opts.head_bytes - o->head;
	size_t head = n < room ? n : (size_t)room;

	if (o->opts.tap && n)
		o->opts.tap(o->opts.arg, buf, n);
	o->total += n;
	o->head += head;
	show_bytes(o, p, head);
	keep_tail(o, p + head, n - head);
}

/* Find the mark's first 34 bytes, or a shorter beginning of the mark at the end
 * of the bytes. NULL: neither is there. */
static const uint8_t *find_mark(
	const struct output *o, const uint8_t *p, size_t n)
{
	const uint8_t *whole, *end = p + n;

	if (!o->mark[0])
		return NULL;
	whole = memmem(p, n, o->mark, OUTPUT_MARK_STEM);
	if (whole)
		return whole;
	if (n >= OUTPUT_MARK_LENGTH)
		p = end - (OUTPUT_MARK_LENGTH - 1);
	for (; p < end; p++)
		if (!memcmp(p, o->mark, (size_t)(end - p)))
			return p;
	return NULL;
}

/* Undo the guest's modes, and go to a row where a line of ours or of a shell
 * can begin. True if we wrote a newline. */
static bool leave_row(struct output *o)
{
	bool newline;

	if (!o->opts.alone)
		return vt_begin_row(&o->vt);
	vt_undo(&o->vt);
	newline = o->vt.pen.column != 0;
	if (newline)
		o->opts.sink(o->opts.arg, "\r\n", 2);
	o->vt.pen.column = 0;
	return newline;
}

static void draw_line(struct output *o, const char *text)
{
	struct output_look look = {o->opts.colour, o->opts.columns, "\r\n"};
	struct strbuf b = {0};

	if (o->opts.line) {
		o->opts.line(o->opts.arg, text);
		return;
	}
	output_frame(&b, text, &look);
	if (!b.failed)
		o->opts.sink(o->opts.arg, b.s, b.n);
	strbuf_free(&b);
}

static void say_line(struct output *o, const char *text)
{
	copy_shown(o, OUTPUT_LINE, text, strlen(text));
	draw_line(o, text);
}

/* Repeat the frame lines that the alternate screen may have hidden. */
static void say_again(struct output *o)
{
	for (char *p = o->said.s, *nl; o->said.n; p = nl + 1) {
		nl = memchr(p, '\n', o->said.n);
		*nl = '\0';
		o->said.n -= (size_t)(nl + 1 - p);
		draw_line(o, p);
	}
}

/* On the alternate screen we write the line to the bottom row, if it fits. The
 * guest may draw over it. The line has no bar there: the guest could write
 * behind the bar. */
void output_say(struct output *o, const char *text)
{
	char safe[FRAME_MAX], line[FRAME_MAX + 64];
	int n;

	vt_pen_flush(&o->vt);
	if (!vt_pen_is_alternate(&o->vt)) {
		leave_row(o);
		say_line(o, text);
		return;
	}
	copy_shown(o, OUTPUT_LINE, text, strlen(text));
	strbuf_printf(&o->said, "%s\n", text);
	text_safe(safe, sizeof(safe), text, strlen(text));
	n = snprintf(line, sizeof(line),
		"\0337\033[9999;1H\033[m\033(B\017[%s]\033[K\0338", safe);
	if (layout_columns(safe, strlen(safe)) + 2 < o->opts.columns)
		o->opts.sink(o->opts.arg, line, (size_t)n);
}

bool output_has_room(const struct output *o)
{
	return !vt_pen_is_alternate(&o->vt) && o->head < o->opts.head_bytes;
}

bool output_draw(struct output *o, const char *s, size_t n)
{
	if (!output_has_room(o) || n > o->opts.head_bytes - o->head)
		return false;
	vt_pen_flush(&o->vt);
	leave_row(o);
	copy_shown(o, OUTPUT_BREAK, NULL, 0);
	o->total += n;
	o->head += n;
	o->opts.sink(o->opts.arg, s, n);
	return true;
}

void output_steer(struct output *o)
{
	o->vt.steers = true;
}

void output_break(struct output *o)
{
	vt_pen_flush(&o->vt);
	if (o->opts.alone || !output_has_room(o))
		return;
	leave_row(o);
	copy_shown(o, OUTPUT_BREAK, NULL, 0);
}

size_t output_feed(struct output *o, const void *buf, size_t n)
{
	const uint8_t *p = buf, *end = p + n;

	while (p < end && !o->marked) {
		if (!o->held) {
			const uint8_t *esc = find_mark(o, p, (size_t)(end - p));

			take_cell_bytes(o, p, (size_t)((esc ? esc : end) - p));
			o->held = esc != NULL;
			p = esc ? esc + 1 : end;
		} else if (o->held == OUTPUT_MARK_STEM && *p == BEL) {
			p++;
			o->held = 0;
			output_break(o);
		} else if (*p == (uint8_t)o->mark[o->held]) {
			p++;
			o->marked = ++o->held == OUTPUT_MARK_LENGTH;
		} else {
			/* The held bytes are not the mark. A held second ESC
			 * may be the first byte of the real mark. */
			size_t keep = o->held == OUTPUT_MARK_LENGTH - 1;

			take_cell_bytes(o, o->mark, o->held - keep);
			o->held = keep;
		}
	}
	vt_pen_flush(&o->vt);
	/* The cell may have left the alternate screen, and go on. */
	if (o->said.n && !vt_pen_is_alternate(&o->vt)) {
		leave_row(o);
		say_again(o);
	}
	return (size_t)(p - (const uint8_t *)buf);
}

const char *output_row(const struct output *o, size_t *n)
{
	return o->held || o->total > o->head ? NULL : vt_pen_row(&o->vt, n);
}

void output_unmark(struct output *o)
{
	o->held = 0;
	o->marked = false;
}

bool output_is_marked(const struct output *o)
{
	return o->marked;
}

int output_silence_ms(bool dead)
{
	return dead ? DEAD_SILENCE_MS : SILENCE_MS;
}

bool output_is_over(
	const struct output *o, int64_t ended_ms, int64_t heard_ms, bool dead)
{
	int64_t now = now_ms();
	int64_t quiet = heard_ms > ended_ms ? heard_ms : ended_ms;

	return o->marked || now - quiet >= output_silence_ms(dead) ||
	       now - ended_ms >= BACKGROUND_MS;
}

static void say_cut(struct output *o, const struct output_report *r)
{
	char shown[TEXT_HUMAN], cut[TEXT_HUMAN], more[32] = "", text[192];

	if (o->opts.cell)
		snprintf(more, sizeof(more), " · :out %u for more",
			o->opts.cell);
	snprintf(text, sizeof(text), "output limit: %s shown, %s not%s%s",
		text_size(shown, r->head), text_size(cut, r->cut),
		r->shown > r->head ? " · last lines follow" : "", more);
	say_line(o, text);
}

/* The `i`th of the tail's last `n` bytes. */
static uint8_t tail_byte(const struct output *o, size_t n, size_t i)
{
	size_t at = o->tail_at + (o->tail_size - n) + i;

	return o->tail[at % o->tail_size];
}

/* The bytes to leave out of a tail, so that it begins with a line. If the first
 * half of the tail has no line end, the tail begins with a character. */
static size_t tail_skip(const struct output *o, size_t n)
{
	size_t skip = 0;

	for (size_t i = 0; i < n / 2; i++)
		if (tail_byte(o, n, i) == '\n')
			return i + 1;
	while (skip < 3 && skip < n && utf8_continues(tail_byte(o, n, skip)))
		skip++;
	return skip;
}

static void feed_tail(struct output *o, size_t n, size_t skip)
{
	size_t at, first;

	if (n == skip)
		return;
	at = (o->tail_at + (o->tail_size - n) + skip) % o->tail_size;
	n -= skip;
	first = o->tail_size - at < n ? o->tail_size - at : n;
	show_bytes(o, o->tail + at, first);
	show_bytes(o, o->tail, n - first);
}

void output_suspend(struct output *o)
{
	leave_row(o);
}

static void discard_bytes(void *arg, const void *buf, size_t n)
{
	(void)arg;
	(void)buf;
	(void)n;
}

bool output_move(struct output *o)
{
	bool alternate = vt_pen_is_alternate(&o->vt);
	vt_emit *before = o->vt.emit;

	o->vt.emit = discard_bytes;
	vt_begin_row(&o->vt);
	o->vt.emit = before;
	return alternate;
}

void output_take_screen(struct output *o)
{
	static const char screen[] = "\x1b[?1049h\x1b[2J\x1b[H";

	vt_feed(&o->vt, screen, sizeof(screen) - 1);
	vt_pen_flush(&o->vt);
}

/* Go to column 0, and report the sequences that the filter dropped. */
static void finish_filter(struct output *o, struct output_report *r, bool cut)
{
	vt_finish(&o->vt, cut);
	r->newline_added = leave_row(o);
	memcpy(r->dropped, o->vt.dropped, sizeof(r->dropped));
}

void output_end(struct output *o, struct output_report *r)
{
	uint64_t past;
	size_t kept, skip = 0;

	if (!o->marked)
		take_cell_bytes(o, o->mark, o->held);
	o->held = 0;
	past = o->total - o->head;
	kept = past < o->tail_size ? (size_t)past : o->tail_size;
	*r = (struct output_report){.head = o->head, .shown = o->total};
	if (past > kept) {
		skip = tail_skip(o, kept);
		r->cut = past - (kept - skip);
		r->shown -= r->cut;
		vt_finish(&o->vt, true);
		leave_row(o);
		say_cut(o, r);
		o->vt.late = true;
	}
	feed_tail(o, kept, skip);
	finish_filter(o, r, false);
	say_again(o);
}

/* True if the filter has passed something that is seen or heard: no sequence
 * that it drops, and no colour without text. In raw mode every sequence passes,
 * and we do not know what each does. */
static bool has_drawn(const struct vt *v)
{
	return v->mode == VT_RAW || v->dirty || v->deepest || v->pen.column ||
	       v->bells;
}

void output_background(
	struct output *o, const void *buf, size_t n, struct output_report *r)
{
	uint64_t room = o->opts.head_bytes - o->background;
	size_t shown = n < room ? n : (size_t)room;

	o->background += shown;
	*r = (struct output_report){
		.head = shown, .shown = shown, .cut = n - shown};
	start_filter(o);
	o->vt.late = true;
	o->vt.lf_returns = true; /* the sink makes \r\n of \n */
	vt_feed(&o->vt, buf, shown);
	vt_finish(&o->vt, r->cut > 0);
	r->drawn = shown && has_drawn(&o->vt);
	finish_filter(o, r, r->cut > 0);
}

void output_summary(const struct output_report *r, output_line *line, void *arg)
{
	struct strbuf text = {0};
	char count[64];
	uint64_t dropped = 0;
	int kinds = 0;

	for (int i = 0; i < VT_DROP_KINDS; i++) {
		dropped += r->dropped[i];
		kinds += r->dropped[i] != 0;
	}
	if (!dropped)
		return;
	strbuf_printf(&text, "%s dropped: ",
		text_count(count, sizeof(count), dropped, "terminal sequence",
			NULL));
	/* "2 title, 1 clipboard", or just "clipboard" for a single kind. */
	for (int i = 0; i < VT_DROP_KINDS; i++) {
		if (!r->dropped[i])
			continue;
		if (kinds > 1)
			strbuf_printf(&text, "%llu ",
				(unsigned long long)r->dropped[i]);
		strbuf_puts(&text, vt_drop_name((enum vt_drop)i));
		dropped -= r->dropped[i];
		strbuf_puts(&text, dropped ? ", " : "");
	}
	if (!text.failed)
		line(arg, text.s);
	strbuf_free(&text);
}

bool output_background_is_over(const struct output *o)
{
	return o->background >= o->opts.head_bytes;
}

void output_background_add(
	struct output_report *sum, const struct output_report *r)
{
	sum->shown += r->shown;
	sum->cut += r->cut;
	for (int i = 0; i < VT_DROP_KINDS; i++)
		sum->dropped[i] += r->dropped[i];
}

void output_background_summary(
	const struct output_report *sum, output_line *line, void *arg)
{
	char shown[TEXT_HUMAN], cut[TEXT_HUMAN], text[128];

	if (sum->cut) {
		snprintf(text, sizeof(text),
			"output limit: %s of the background shown, %s not",
			text_size(shown, sum->shown), text_size(cut, sum->cut));
		line(arg, text);
	}
	output_summary(sum, line, arg);
}

void output_frame(
	struct strbuf *b, const char *text, const struct output_look *look)
{
	const char *before = look->colour ? "\x1b[0;2m¦ " : "¦ ";
	const char *after = look->colour ? "\x1b[0m" : "";
	const int at = 3; /* behind the bracket */
	struct strbuf folded = {0};
	char line[FRAME_MAX];
	size_t n = text_safe(line, sizeof(line) - 1, text, strlen(text));
	const char *p, *nl;

	memcpy(line + n, "]", 2);
	text_wrap(&folded, line, at, look->columns);
	for (p = folded.s; p && (nl = strchr(p, '\n')); p = nl + 1) {
		bool first = p == folded.s;

		strbuf_puts(b, before);
		strbuf_puts(b, first ? "[" : " ");
		p += first ? 0 : at;
		strbuf_add(b, p, (size_t)(nl - p));
		strbuf_puts(b, after);
		strbuf_puts(b, look->end);
	}
	b->failed |= folded.failed;
	strbuf_free(&folded);
}
