/* SPDX-License-Identifier: MIT */
/*
 * progress.c - a bar for transfers that take longer than half a second
 *
 * Runs in:   front end, during a transfer
 * Trusts:    nothing in the name, which is made safe
 */
#include "progress.h"

#include "jail/base/io.h"
#include "repl/text/text.h"
#include "terminal.h"

#include <stdio.h>
#include <string.h>

#define PATIENCE_MS 500
#define REDRAW_MS 100
#define BAR 20

void progress_begin(struct progress *p, struct terminal *term, const char *name,
	uint64_t total)
{
	*p = (struct progress){
		.term = term, .start_ms = now_ms(), .total = total};
	text_safe(p->name, sizeof(p->name), name, strlen(name));
}

const char *progress_format(char *buf, size_t size, const struct progress *p,
	uint64_t done, int64_t elapsed_ms, int cols)
{
	char have[TEXT_HUMAN], all[TEXT_HUMAN], rate[TEXT_HUMAN], bar[BAR + 1];
	uint64_t per_s =
		elapsed_ms > 0 ? done * 1000 / (uint64_t)elapsed_ms : 0;
	size_t full = 0;

	if (p->total)
		full = done >= p->total ? BAR : (size_t)(done * BAR / p->total);
	memset(bar, '#', full);
	memset(bar + full, '-', BAR - full);
	bar[BAR] = '\0';
	text_size(have, done);
	text_size(all, p->total);
	text_size(rate, per_s);
	if (cols && cols < 72)
		snprintf(buf, size, "[%s] %s", bar, have);
	else
		snprintf(buf, size, "%.24s [%s] %s of %s, %s/s", p->name, bar,
			have, p->total ? all : "?", rate);
	return buf;
}

void progress_update(struct progress *p, uint64_t done)
{
	int64_t now = now_ms();
	char line[256], text[300];

	if (!p->term || !p->term->out_tty || p->term->dumb ||
		now - p->start_ms < PATIENCE_MS ||
		now - p->drawn_ms < REDRAW_MS)
		return;
	progress_format(
		line, sizeof(line), p, done, now - p->start_ms, p->term->cols);
	snprintf(text, sizeof(text), "\r%s\x1b[K", line);
	terminal_puts(p->term, text);
	p->drawn_ms = now;
	p->drawn = true;
}

void progress_end(struct progress *p)
{
	if (p->drawn)
		terminal_puts(p->term, "\r\x1b[K");
	p->drawn = false;
}
