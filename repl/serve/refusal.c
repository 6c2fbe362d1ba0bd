/* SPDX-License-Identifier: MIT */
/*
 * refusal.c - answers that refuse a request
 *
 * Runs in:   front end, confined
 * Trusts:    nobody
 * Leaves:    an answer
 *
 * /eval refuses as snekbox does (falcon), paths below /v1 as Onyx's code
 * interpreter does (FastAPI): their fields differ.
 */
#include "repl/serve/route.h"

#include "repl/json/json.h"

#include <stdio.h>
#include <string.h>

const char refusal_empty[] = "Could not parse an empty JSON body";
const char refusal_too_deep[] =
	"it is nested more than 200 deep, or has too many values or keys";

bool refusal_is_v1(const char *path)
{
	return !strncmp(path, "/v1/", 4) || !strcmp(path, "/health");
}

void refusal_words(void *arg, const char *path, int status, const char *words,
	struct strbuf *b)
{
	char title[64];

	(void)arg;
	snprintf(title, sizeof(title), "%d %s", status, http_reason(status));
	if (refusal_is_v1(path)) {
		if (!words)
			words = http_reason(status);
		execute_add_detail(b, words, strlen(words));
	} else if (words) {
		answer_add_refusal(b, title, words, strlen(words));
	} else {
		strbuf_printf(b, "{\"title\": \"%s\"}", title);
	}
}

void refusal_send(struct exchange *x, int status, const char *words)
{
	struct strbuf b = {0};

	refusal_words(NULL, http_path(x), status, words, &b);
	http_answer(x, status, HTTP_JSON, &b);
}

void refusal_send_until(
	struct exchange *x, int status, int64_t ms, const char *words)
{
	char seconds[24];

	snprintf(seconds, sizeof(seconds), "%lld",
		ms > 1000 ? (long long)(ms + 999) / 1000 : 1);
	http_add_header(x, "Retry-After", seconds);
	refusal_send(x, status, words);
}

void refusal_send_later(struct exchange *x, int status, const char *words)
{
	refusal_send_until(x, status, 0, words);
}

void refusal_send_busy(struct exchange *x, const char *words)
{
	refusal_send_later(x, 503, words);
}
