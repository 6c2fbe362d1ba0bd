/* SPDX-License-Identifier: MIT */
/*
 * fields.c - the fields of requests, in tables
 *
 * Runs in:   front end
 * Trusts:    fields.txt, which is built in
 */
#include "repl/json/json.h"

#include <string.h>

#define FIELD(type) (1u << (type))

#include "fields.h"

const struct request_field *fields_find(
	const struct request_field *table, const char *name)
{
	while (table->name && strcmp(table->name, name) != 0)
		table++;
	return table->name ? table : NULL;
}

bool fields_takes(const struct request_field *f, const json_t *v)
{
	return f->types >> json_typeof(v) & 1;
}
