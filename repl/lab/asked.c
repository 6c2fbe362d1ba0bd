/* SPDX-License-Identifier: MIT */
/*
 * asked.c - what a client may ask for when it hands in
 *
 * Runs in:   root: a child of the service; the courier; the front end. Pure
 * Trusts:    nothing: a message holds any bytes
 */
#include "repl/lab/lab.h"

#include "jail/base/path.h"

#include <string.h>

bool asked_may_be_name(const char *name)
{
	return path_is_name(name) && name[0] != '.' &&
	       utf8_is_visible_text(name, strlen(name));
}

bool asked_is_ours(const struct handin_ask *ask, size_t n)
{
	return n == sizeof(*ask) && ask->version == HANDIN_VERSION &&
	       ask->kind <= HANDIN_LIST;
}

int asked_head(
	const struct handin_head *head, size_t n, size_t count, struct err *e)
{
	if (n != sizeof(*head) || head->bytes < 0 ||
		!memchr(head->name, '\0', sizeof(head->name)))
		return err_set(e, "malformed hand-in");
	if (!head->name[0])
		return count ? 0 : err_set(e, "no file was handed in");
	if (count >= HANDIN_FILES_MAX)
		return err_set(e, "at most %d files can be handed in at once",
			HANDIN_FILES_MAX);
	if (!asked_may_be_name(head->name))
		return err_set(e,
			"a file that is handed in has a name without "
			"a dot at its beginning, a slash or a control "
			"character");
	return 1;
}
