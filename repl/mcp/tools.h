/* SPDX-License-Identifier: MIT */
/*
 * tools.h - what the tools are called, take and give: tools.json
 */
#ifndef REPL_MCP_TOOLS_H
#define REPL_MCP_TOOLS_H

#include <jansson.h>

struct err;
struct strbuf;

enum tools_tool {
	TOOLS_RUN_CELL,
	TOOLS_SHOW_PICTURES,
	TOOLS_UNDO,
	TOOLS_RESET,
	TOOLS_LIST_FILES,
	TOOLS_READ_FILE,
	TOOLS_WRITE_FILE,
	TOOLS_UNKNOWN,
};

/* Read the table that is built in. NULL with e. json_decref() frees. */
json_t *tools_load(struct err *e);

/* The command that does the same at the prompt, or NULL. */
const char *tools_command(enum tools_tool tool);

/* Take a tool out of the table. */
void tools_leave_out(json_t *tools, enum tools_tool tool);

/* Append the table. */
void tools_add(struct strbuf *b, const json_t *tools);

/* Which tool has this name. */
enum tools_tool tools_find(const json_t *name);

/* Hold the arguments of a call (NULL: none) against the tool's inputSchema: its
 * names, their types, what is required. 0, or -1 with e, in words that who
 * called can act on. */
int tools_check(const json_t *tools, enum tools_tool tool,
	const json_t *arguments, struct err *e);

#endif
