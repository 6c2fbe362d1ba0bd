/* SPDX-License-Identifier: MIT */
/*
 * report.c - the driver's report on a request
 *
 * Runs in:   front end, confined
 * Trusts:    nobody: the driver shares its process with the code that it ran
 */
#include "repl/json/json.h"

#include <stdint.h>
#include <string.h>

/* Parse a decimal number and a line end at *at, and move *at behind them. 0, or
 * -1 for anything else. */
static int take_length(const char *s, size_t n, size_t *at, size_t *length)
{
	size_t v = 0, digits = 0;

	for (; *at < n && s[*at] >= '0' && s[*at] <= '9'; digits++)
		v = v * 10 + (size_t)(s[(*at)++] - '0');
	if (digits == 0 || digits > 12 || *at == n || s[(*at)++] != '\n')
		return -1;
	*length = v;
	return 0;
}

static void keep_piece(
	struct report *r, const char *name, struct report_piece piece)
{
	if (!memcmp(name, "mime ", 5)) {
		r->forms_bytes += piece.n;
		if (r->nforms < REPORT_FORMS &&
			r->forms_bytes <= REPORT_FORMS_BYTES)
			r->forms[r->nforms++] = piece;
		return;
	}
	if (piece.n > REPORT_TEXT_MAX && memcmp(name, "png ", 4) != 0)
		return;
	if (!memcmp(name, "type ", 5))
		r->type = piece;
	else if (!memcmp(name, "json ", 5))
		r->json = piece;
	else if (!memcmp(name, "repr ", 5))
		r->repr = piece;
	else if (!memcmp(name, "note ", 5) && r->nnotes < REPORT_NOTES)
		r->notes[r->nnotes++] = piece;
	else if (!memcmp(name, "png ", 4) && r->npng < REPORT_PICTURES)
		r->png[r->npng++] = piece;
}

void report_parse(struct report *r, const char *s, size_t n)
{
	size_t at = 0, length;

	*r = (struct report){0};
	/* The shortest head is as long as "png 0" and its line end. */
	while (n - at >= 6) {
		const char *name = s + at;
		const char *blank = memchr(name, ' ', 5);

		if (!blank)
			return;
		at += (size_t)(blank - name) + 1;
		if (take_length(s, n, &at, &length) < 0 || length > n - at)
			return;
		keep_piece(r, name, (struct report_piece){s + at, length});
		at += length;
	}
}
