/* SPDX-License-Identifier: MIT */
/*
 * bundle.c - a value in all the forms that it offers to Jupyter
 *
 * Runs in:   front end, confined
 * Trusts:    nobody: the forms are what the code that ran says
 */
#include "repl/json/json.h"

#include <stdio.h>
#include <string.h>

#define TYPE_MAX 100

struct bundle_form {
	char type[TYPE_MAX + 1];
	char encoding[8];
	struct report_piece data;
};

/* Parse a piece: a line "TYPE ENCODING", and the content. */
static bool take_form(struct bundle_form *f, const struct report_piece *p)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				      "/+-._;=";
	const char *end = memchr(p->p, '\n', p->n);
	const char *blank =
		end ? memchr(p->p, ' ', (size_t)(end - p->p)) : NULL;

	if (!blank || blank - p->p > TYPE_MAX ||
		end - blank > (ptrdiff_t)sizeof(f->encoding))
		return false;
	snprintf(f->type, sizeof(f->type), "%.*s", (int)(blank - p->p), p->p);
	snprintf(f->encoding, sizeof(f->encoding), "%.*s",
		(int)(end - blank - 1), blank + 1);
	f->data =
		(struct report_piece){end + 1, p->n - (size_t)(end + 1 - p->p)};
	return *f->type && f->type[strspn(f->type, letters)] == '\0' &&
	       strlen(f->type) == (size_t)(blank - p->p);
}

static void add_form(struct strbuf *b, const struct bundle_form *f)
{
	if (!strcmp(f->encoding, "json") && f->data.n <= REPORT_TEXT_MAX)
		emit_json(b, f->type, f->data.p, f->data.n);
	else if (!strcmp(f->encoding, "text"))
		emit_bytes(b, f->type, f->data.p, f->data.n);
	else if (!strcmp(f->encoding, "bytes"))
		emit_base64(b, f->type, f->data.p, f->data.n);
}

/* True if an earlier piece has the type: an object has a key once. */
static bool is_told(const struct report *r, size_t n, const char *type)
{
	struct bundle_form f;

	for (size_t i = 0; i < n; i++)
		if (take_form(&f, &r->forms[i]) && !strcmp(f.type, type))
			return true;
	return false;
}

void bundle_add(struct strbuf *b, const struct report *r)
{
	struct bundle_form f;

	if (r->nforms == 0) {
		emit_word(b, "bundle", "null");
		return;
	}
	emit_open(b, "bundle", '{');
	for (size_t i = 0; i < r->nforms; i++)
		if (take_form(&f, &r->forms[i]) && !is_told(r, i, f.type))
			add_form(b, &f);
	emit_close(b, '}');
}

void bundle_list_notes(struct strlist *l, const struct report *r)
{
	char text[400];

	for (size_t i = 0; i < r->nnotes; i++) {
		const struct report_piece *p = &r->notes[i];

		snprintf(text, sizeof(text), "bundle: %.*s",
			(int)(p->n < 300 ? p->n : 300), p->p);
		strlist_add(l, text);
	}
}
