/* SPDX-License-Identifier: MIT */
/* fuzz-sources: repl/attach/control.c repl/attach/rundir.c repl/attach/query.c
 * repl/term/terminal.c repl/term/job.c */
/*
 * fuzz_attach.c - what somebody sends to a session's socket, or to a watcher
 *
 * A message that passes has our mark, and every string in it ends where it
 * should; the parts that did not come are zero.
 */
#include "must.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "jail/jail.h"
#include "repl/attach/attach.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Linked, and never called. */
int jail_stand_apart(const int *keep, size_t n, const char *name, struct err *e)
{
	(void)keep;
	(void)n;
	(void)name;
	(void)e;
	abort();
}

static void check_packet(const uint8_t *data, size_t size)
{
	struct watcher_head h;

	if (!query_packet(data, size, &h))
		return;
	must(size >= sizeof(h) && size - sizeof(h) <= WATCHER_DATA);
	must(h.magic == ATTACH_MAGIC && h.kind >= WATCHER_SOURCE &&
		h.kind <= WATCHER_OVER && h.number >= 0);
}

#define ENDS(field) memchr(r.field, '\0', sizeof(r.field))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct attach_request r;
	size_t n = size < sizeof(r) ? size : sizeof(r);

	check_packet(data, size);
	memset(&r, 0xff, sizeof(r));
	memcpy(&r, data, n);
	if (!control_check(&r, n))
		return 0;
	must(n >= ATTACH_HEAD && r.magic == ATTACH_MAGIC);
	must(ENDS(text) && ENDS(term) && ENDS(colorterm) && ENDS(no_color) &&
		ENDS(from));
	for (size_t i = n; i < sizeof(r); i++)
		must(((const char *)&r)[i] == 0);
	return 0;
}
