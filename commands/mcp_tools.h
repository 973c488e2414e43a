/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_tools.h - the commands that `vramcast mcp` offers as tools, and how a call of one becomes a
 * command line. */
#pragma once

#include "common/opt.h"

/* A value of a message: where it stands ("params.arguments.gpu", "params.arguments.path[0]") and
 * what it is. Objects and arrays stand there too, with an empty text. */
struct vc_mcp_value { char *path, *text; int token; /* enum vc_json_token */ };
struct vc_mcp_message { struct vc_mcp_value *at; size_t n, cap; };

int  vc_mcp_read(struct vc_mcp_message *m, const char *line, size_t n, struct vc_error *err);
void vc_mcp_fini(struct vc_mcp_message *m);
const struct vc_mcp_value *vc_mcp_find(const struct vc_mcp_message *m, const char *path);

/* The array of tools, with a JSON schema of the arguments of each, made from the options of the
 * commands. */
void vc_mcp_tools(struct vc_output *out, const struct vc_console *con);

/* An argument of every tool, and a place for the report of a dry run in its command line. */
#define VC_MCP_TIMEOUT "timeout"
#define VC_MCP_REPORT "@report"

/* A call of a tool, as a command line of ours. */
struct vc_mcp_call {
	const char *name;
	char **at; size_t n;
	char *input;       /* for its standard input; NULL: none */
	bool runs_program; /* of the user's: what it prints is the answer */
	bool json;
	double seconds;    /* that it may take */
};

/* VC_EUSAGE: there is no such tool, or its arguments are not what its schema says. After a failure,
 * too, vc_mcp_call_fini. */
int vc_mcp_call_read(struct vc_mcp_call *c, const struct vc_mcp_message *m,
		     const struct vc_console *con, struct vc_error *err);
void vc_mcp_call_fini(struct vc_mcp_call *c);
