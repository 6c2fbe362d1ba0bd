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

/* Most of a cell's output that is answered. */
#define MCP_OUTPUT_MAX 500000

/* Get ready, before it is confined: fork the maker, and have the session made.
 * 0, or -1 with e. */
int mcp_open(struct mcp **out, const struct config *cfg,
	const struct jail_spec *spec, struct err *e);

/* Serve until the client closes standard input. The exit status: 0; or -1 with
 * e, when a session failed or no answer could be written. */
int mcp_run(struct mcp *m, struct log *log, struct err *e);

/* End the session, and wait until it is gone. -1 with e when something may be
 * left. */
int mcp_close(struct mcp *m, struct err *e);

#endif
