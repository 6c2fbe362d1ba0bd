/* SPDX-License-Identifier: MIT */
/*
 * errors.c - all errors in a configuration, not just the first
 *
 * Runs in:   front end, before the warden is forked
 * Trusts:    nothing in a file: text that we quote from it is made safe
 */
#include "config.h"

#include <limits.h>
#include <stdarg.h>

int config_errors_add(
	struct config_errors *errors, const char *place, const char *fmt, ...)
{
	char line[PATH_MAX + 1100], safe[sizeof(line)];
	int n = snprintf(line, sizeof(line), "%.*s: ", PATH_MAX + 32, place);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line + n, sizeof(line) - (size_t)n, fmt, ap);
	va_end(ap);
	text_safe(safe, sizeof(safe), line, strlen(line));
	if (errors->list.n == CONFIG_ERRORS_MAX ||
		strlist_add(&errors->list, safe) < 0)
		errors->dropped++;
	return -1;
}

void config_errors_print(const struct config_errors *errors,
	void (*print)(FILE *f, const char *line))
{
	char line[PATH_MAX + 1200];

	for (size_t i = 0; i < errors->list.n; i++) {
		snprintf(line, sizeof(line), "cellblock: %s",
			errors->list.items[i]);
		print(stderr, line);
	}
	if (errors->dropped)
		fprintf(stderr,
			"cellblock: and %zu more configuration errors\n",
			errors->dropped);
}

void config_errors_fini(struct config_errors *errors)
{
	strlist_fini(&errors->list);
	*errors = (struct config_errors){0};
}
