/* SPDX-License-Identifier: MIT */
/* fuzz-sources: repl/lab/asked.c */
/*
 * fuzz_handin.c - any bytes as the head of a file that is handed in
 *
 * A file that is accepted has a name that a directory can have, and that a
 * terminal can show, and a size that is no less than nothing.
 */
#include "must.h"

#include "jail/base/err.h"
#include "jail/base/path.h"
#include "repl/lab/lab.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check(const struct handin_head *h, size_t n, size_t count)
{
	struct err e = {0};
	int r = asked_head(h, n, count, &e);

	must(r >= 0 || e.msg[0]);
	if (r < 0)
		return;
	must(n == sizeof(*h) && h->bytes >= 0);
	must(memchr(h->name, '\0', sizeof(h->name)) != NULL);
	if (r == 0) {
		must(!h->name[0] && count > 0);
		return;
	}
	must(count < HANDIN_FILES_MAX && path_is_name(h->name));
	must(h->name[0] != '.' && !strpbrk(h->name, "\n\r\t\033/"));
	must(utf8_is_visible_text(h->name, strlen(h->name)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct handin_head head = {.bytes = 0};
	struct handin_ask ask = {.version = 0};
	size_t size = n < sizeof(head) ? n : sizeof(head);

	if (n)
		memcpy(&head, data, size);
	check(&head, n, n % 40);
	/* The same bytes as a whole head. */
	check(&head, sizeof(head), n % 40);
	if (n >= sizeof(ask))
		memcpy(&ask, data, sizeof(ask));
	if (asked_is_ours(&ask, n))
		must(n == sizeof(ask) && ask.kind <= HANDIN_LIST);
	return 0;
}
