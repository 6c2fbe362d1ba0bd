/* SPDX-License-Identifier: MIT */
/*
 * elsewhere.c - sessions on other hosts, in words
 *
 * Runs in:   a client, and a front end that begins a session
 * Trusts:    root's maker, which has read them from a directory of root's
 * Leaves:    nothing
 */
#include "attach.h"

#include "jail/base/err.h"
#include "repl/text/text.h"

#include <stdio.h>
#include <string.h>

/* A maker writes every five seconds that its host is there. */
#define SILENT_S 30

bool elsewhere_is_heard(const struct elsewhere *v)
{
	return v->silent_s <= SILENT_S;
}

static void write_silence(const struct elsewhere *v, char *buf, size_t size)
{
	char time[TEXT_HUMAN];

	snprintf(buf, size, "not been heard of for %s",
		text_time(time, v->silent_s * 1000));
}

void elsewhere_describe(const struct elsewhere *v, char *buf, size_t size)
{
	bool heard = elsewhere_is_heard(v);
	char since[TEXT_HUMAN], whose[80] = "your", rest[192];

	if (!v->own)
		snprintf(whose, sizeof(whose), "%s's", v->user);
	write_silence(v, rest, sizeof(rest));
	if (heard)
		snprintf(rest, sizeof(rest), "%s goes there", v->reach);
	snprintf(buf, size,
		heard ? "%s session from %s is on %s · %s"
		      : "%s session from %s was on %s, which has %s",
		whose, text_since(since, v->began), v->host, rest);
}

void elsewhere_hint(const struct elsewhere *v, const char *id, struct err *e)
{
	char text[ATTACH_TEXT];

	/* A number may be one of there, too; a host's name is that host. */
	if (!v->own || (id && strcmp(id, v->host) != 0 &&
			       id[strspn(id, "0123456789")]))
		return;
	elsewhere_describe(v, text, sizeof(text));
	err_hint(e, "%s", text);
}

void elsewhere_add_row(struct text_table *t, const struct elsewhere *v)
{
	char since[TEXT_HUMAN], from[80], rest[192];

	snprintf(from, sizeof(from), "(on %s)", v->host);
	write_silence(v, rest, sizeof(rest));
	text_table_add(t, (const char *[]){v->host, v->user, from,
				  text_since(since, v->began), "–",
				  elsewhere_is_heard(v) ? v->reach : rest, "–",
				  "–", "–"});
}
