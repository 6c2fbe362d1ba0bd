/* SPDX-License-Identifier: MIT */
/*
 * record.c - the cells that ran, and the output of the last ones
 *
 * Runs in:   front end
 * Trusts:    nothing: a guest wrote the output, and we keep it unchanged
 */
#include "repl/session/session.h"

#include "jail/base/array.h"

#include <stdlib.h>
#include <string.h>

struct record {
	struct record_cell *cells;
	size_t n, bytes; /* `bytes`: what the cells take */
	uint32_t gone;
	struct record_output outputs[RECORD_OUTPUTS]; /* by number */
	struct record_output *writing;
};

struct record *record_new(void)
{
	return calloc(1, sizeof(struct record));
}

void record_free(struct record *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n; i++)
		free(r->cells[i].src);
	free(r->cells);
	for (size_t i = 0; i < RECORD_OUTPUTS; i++)
		strbuf_free(&r->outputs[i].bytes);
	free(r);
}

static size_t cell_bytes(const struct record_cell *c)
{
	return c->n + sizeof(*c);
}

/* If the cells take too many bytes, forget the oldest ones. Forget more than we
 * must, so that not every new cell moves all others. */
static void trim_cells(struct record *r)
{
	const size_t most = RECORD_BYTES - RECORD_BYTES / 8;
	size_t i = 0;

	if (r->bytes <= RECORD_BYTES)
		return;
	for (; r->bytes > most && i + 1 < r->n; i++) {
		r->bytes -= cell_bytes(&r->cells[i]);
		r->gone = r->cells[i].no;
		free(r->cells[i].src);
	}
	r->n -= i;
	memmove(r->cells, r->cells + i, r->n * sizeof(*r->cells));
}

int record_add(struct record *r, const struct record_cell *cell)
{
	struct record_cell c = *cell;

	if (array_grow(&r->cells, r->n, sizeof(*r->cells)) < 0)
		return -1;
	c.src = malloc(c.n + 1);
	if (!c.src)
		return -1;
	memcpy(c.src, cell->src, c.n);
	c.src[c.n] = '\0';
	r->cells[r->n++] = c;
	r->bytes += cell_bytes(&c);
	trim_cells(r);
	return 0;
}

uint32_t record_gone(const struct record *r)
{
	return r->gone;
}

const struct record_cell *record_cells(const struct record *r, size_t *n)
{
	*n = r->n;
	return r->cells;
}

const struct record_cell *record_find(const struct record *r, uint32_t no)
{
	for (size_t i = r->n; i-- > 0;)
		if (!no || r->cells[i].no == no)
			return &r->cells[i];
	return NULL;
}

void record_undo(struct record *r, uint32_t back_to)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->cells[i].no >= back_to)
			r->cells[i].ok = false;
}

void record_begin_output(struct record *r, uint32_t no)
{
	r->writing = &r->outputs[no % RECORD_OUTPUTS];
	strbuf_free(&r->writing->bytes);
	r->writing->no = no;
	r->writing->total = 0;
	r->writing->cut = false;
}

void record_add_output(
	struct record *r, const void *buf, size_t n, size_t keep)
{
	struct record_output *o = r->writing;
	size_t room = RECORD_OUTPUT_BYTES - o->bytes.n;

	o->total += n;
	strbuf_add(&o->bytes, buf, keep < room ? keep : room);
}

void record_cut(struct record *r)
{
	struct record_output *o = r->writing;

	o->cut = true;
	o->cut_at = o->bytes.n;
}

const struct record_output *record_find_output(
	const struct record *r, uint32_t no)
{
	const struct record_output *o = &r->outputs[no % RECORD_OUTPUTS];

	return no && o->no == no ? o : NULL;
}
