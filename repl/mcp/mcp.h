/* SPDX-License-Identifier: MIT */
/*
 * mcp.h - cellblock --mcp: a Model Context Protocol server on standard input
 * and output
 */
#ifndef REPL_MCP_MCP_H
#define REPL_MCP_MCP_H

struct config;
struct err;
struct jail_spec;
struct log;
struct mcp;

/* Most bytes of a cell's output in an answer. */
#define MCP_OUTPUT_MAX 500000

/* Prepare before the process confines itself: fork the supplier, and have it
 * make the session. 0, or -1 with e. */
int mcp_open(struct mcp **out, const struct config *cfg,
	const struct jail_spec *spec, struct err *e);

/* Serve until the client closes standard input. The exit status: 0; or -1 with
 * e, when a session failed or no answer could be written. */
int mcp_run(struct mcp *m, struct log *log, struct err *e);

/* End the session, and wait until it is gone. -1 with e when a session failed,
 * or something may be left. */
int mcp_close(struct mcp *m, struct err *e);

#endif
