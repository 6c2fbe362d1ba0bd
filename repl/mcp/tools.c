/* SPDX-License-Identifier: MIT */
/*
 * tools.c - names, arguments and results of the tools
 *
 * Runs in:   front end, confined
 * Trusts:    tools.txt, which is built in; no argument of a call
 *
 * We check arguments against the schema that we send to clients.
 */
#include "repl/mcp/parts.h"

#include "jail/base/err.h"
#include "repl/text/text.h"

#include "mcp_tools.h"

#include <string.h>

/* The name of each tool, and the command that does the same at the prompt. */
static const struct {
	const char *name, *command;
} table[] = {
	[TOOLS_RUN_CELL] = {"run_cell", NULL},
	[TOOLS_SHOW_PICTURES] = {"show_pictures", NULL},
	[TOOLS_UNDO] = {"undo", "undo"},
	[TOOLS_RESET] = {"reset", "reset"},
	[TOOLS_LIST_FILES] = {"list_files", "files"},
	[TOOLS_READ_FILE] = {"read_file", "download"},
	[TOOLS_WRITE_FILE] = {"write_file", "upload"},
};

json_t *tools_load(struct err *e)
{
	json_error_t why;
	json_t *tools =
		json_loadb((const char *)tools_json, tools_json_len, 0, &why);

	if (!tools)
		err_set(e, "read the table of tools: %.400s", why.text);
	return tools;
}

const char *tools_command(enum tools_tool tool)
{
	return table[tool].command;
}

void tools_leave_out(json_t *tools, enum tools_tool tool)
{
	for (size_t i = json_array_size(tools); i-- > 0;)
		if (tools_find(json_object_get(
			    json_array_get(tools, i), "name")) == tool)
			json_array_remove(tools, i);
}

void tools_add(struct strbuf *b, const json_t *tools)
{
	emit_value(b, "tools", tools);
}

enum tools_tool tools_find(const json_t *name)
{
	const char *s = json_string_value(name);
	size_t n = json_string_length(name);
	unsigned i = 0;

	while (i < TOOLS_UNKNOWN && (!s || strlen(table[i].name) != n ||
					    memcmp(s, table[i].name, n) != 0))
		i++;
	return (enum tools_tool)i;
}

static const json_t *find_schema(const json_t *tools, enum tools_tool tool)
{
	const json_t *found = NULL, *v;
	size_t i;

	json_array_foreach(tools, i, v)
	{
		const json_t *name = json_object_get(v, "name");

		if (!strcmp(json_string_value(name), table[tool].name))
			found = json_object_get(v, "inputSchema");
	}
	return found;
}

static int check_type(
	const char *name, const json_t *v, const json_t *schema, struct err *e)
{
	const char *type = json_string_value(json_object_get(schema, "type"));
	const json_t *least = json_object_get(schema, "minimum");

	if ((!strcmp(type, "string") && !json_is_string(v)) ||
		(!strcmp(type, "integer") && !json_is_integer(v)) ||
		(!strcmp(type, "array") && !json_is_array(v)))
		return err_set(e, "%s is not of type '%s'", name, type);
	if (least && json_integer_value(v) < json_integer_value(least))
		return err_set(e, "%s is less than %lld", name,
			(long long)json_integer_value(least));
	return 0;
}

int tools_check(const json_t *tools, enum tools_tool tool,
	const json_t *arguments, struct err *e)
{
	const json_t *schema = find_schema(tools, tool);
	const json_t *properties = json_object_get(schema, "properties");
	const json_t *required = json_object_get(schema, "required");
	const char *name;
	json_t *v;
	size_t i;

	json_object_foreach((json_t *)arguments, name, v)
	{
		const json_t *rule = json_object_get(properties, name);

		if (!rule)
			return err_set(e, "%s has no argument '%.100s'",
				table[tool].name, name);
		if (check_type(name, v, rule, e) < 0)
			return -1;
	}
	json_array_foreach(required, i, v)
	{
		name = json_string_value(v);
		if (!json_object_get(arguments, name))
			return err_set(e, "%s wants the argument '%s'",
				table[tool].name, name);
	}
	return 0;
}
