/* SPDX-License-Identifier: MIT */
/*
 * errors.c - every error of a configuration, not just the first
 *
 * Runs in:   front end
 * Trusts:    nobody; names and values may hold anything
 * Leaves:    lines that are safe to show on a terminal
 */
#include "config.h"

#include "jail/base/array.h"
#include "repl/term/terminal.h"
#include "repl/text/utf8.h"
#include "value.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Copy `in` with what a terminal must not see written as \xHH: everything but
 * printable ASCII, if the whole is not clean text. */
static void escape(const char *in, char *out, size_t size)
{
	bool clean = utf8_is_text(in, strlen(in), "\t");
	size_t n = 0;

	for (; *in && n + 5 < size; in++) {
		unsigned char c = (unsigned char)*in;

		if (c == '\t' || (!clean && (c < 0x20 || c >= 0x7f)))
			n += (size_t)snprintf(out + n, size - n, "\\x%02x", c);
		else
			out[n++] = *in;
	}
	out[n] = '\0';
}

void config_errors_add(
	struct config_errors *errors, const char *place, const char *fmt, ...)
{
	char message[1024], line[PATH_MAX + 1100], safe[PATH_MAX + 1100];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	snprintf(line, sizeof(line), "%s: %s", place, message);
	escape(line, safe, sizeof(safe));
	if (errors->n < CONFIG_ERRORS_MAX &&
		array_grow(&errors->text, errors->n, sizeof(char *)) == 0 &&
		(errors->text[errors->n] = strdup(safe)))
		errors->n++;
	else
		errors->dropped++;
}

void config_errors_print(
	FILE *f, const char *prefix, const struct config_errors *errors)
{
	char line[PATH_MAX + 1200];

	for (size_t i = 0; i < errors->n; i++) {
		snprintf(line, sizeof(line), "%s%s", prefix, errors->text[i]);
		terminal_print_line(f, line);
	}
	if (errors->dropped)
		fprintf(f, "%sand %zu more configuration errors\n", prefix,
			errors->dropped);
}

void config_errors_fini(struct config_errors *errors)
{
	for (size_t i = 0; i < errors->n; i++)
		free(errors->text[i]);
	free(errors->text);
	*errors = (struct config_errors){0};
}
