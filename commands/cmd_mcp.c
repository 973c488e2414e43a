/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_mcp.c - vramcast mcp: the questions as tools of an assistant, by the Model Context Protocol
 * over standard input and output: JSON-RPC 2.0, one message a line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/mcp_tools.h"
#include "common/json.h"

/* Codes of JSON-RPC 2.0, section 5.1. */
enum { PARSE_ERROR = -32700, NO_REQUEST = -32600, NO_METHOD = -32601, WRONG_PARAMS = -32602,
       INTERNAL = -32603 };

/* Revisions of the protocol, the newest first. What differs between them does not concern a server
 * that has tools only, answers at once and sends nothing by itself. */
static const char *const revisions[] = { "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05" };

#define INSTRUCTIONS \
	"vramcast answers whether a PyTorch training run fits into the memory of a GPU. Use " \
	"explain for an out-of-memory message; sim, fit and diff for recordings and snapshots; " \
	"dryrun for a script without a GPU. The first line of an answer is the verdict."

static void initialize(struct vc_output *out, const struct vc_mcp_message *m)
{
	const struct vc_mcp_value *asked = vc_mcp_find(m, "params.protocolVersion");
	const char *revision = revisions[0];

	for (size_t i = 0; asked && i < sizeof(revisions) / sizeof(*revisions); i++)
		if (!strcmp(asked->text, revisions[i]))
			revision = revisions[i];
	vc_output_printf(out, "{\"protocolVersion\":\"%s\",\"capabilities\":{\"tools\":{}},"
			 "\"serverInfo\":{\"name\":\"vramcast\",\"version\":\"" VC_VERSION "\"},"
			 "\"instructions\":", revision);
	vc_json_quote(out, INSTRUCTIONS, strlen(INSTRUCTIONS));
	vc_output_text(out, "}");
}

/* The result, or less than 0: *code says what JSON-RPC calls it. */
static int result(struct vc_output *out, const char *method, const struct vc_mcp_message *m,
		  struct vc_console *con, int *code)
{
	int r = VC_OK;

	*code = NO_METHOD;
	if (!strcmp(method, "initialize")) {
		initialize(out, m);
	} else if (!strcmp(method, "ping")) {
		vc_output_text(out, "{}");
	} else if (!strcmp(method, "tools/list")) {
		vc_output_text(out, "{\"tools\":");
		vc_mcp_tools(out, con);
		vc_output_text(out, "}");
	} else if (!strcmp(method, "tools/call")) {
		r = vc_mcp_call(out, m, con, &con->err);
		*code = r == VC_EUSAGE ? WRONG_PARAMS : INTERNAL;
	} else {
		r = vc_fail(&con->err, VC_ENOSUP, "there is no method '%s'", method);
	}
	return r;
}

/* The id as it came: a number, or a text; null where there is none to be had. */
static void put_id(struct vc_output *out, const struct vc_mcp_value *id)
{
	if (id && id->token == VC_J_TEXT)
		vc_json_quote(out, id->text, strlen(id->text));
	else
		vc_output_text(out, id && id->token == VC_J_NUMBER ? id->text : "null");
}

static void put_error(struct vc_output *out, int code, const char *message)
{
	vc_output_printf(out, "\"error\":{\"code\":%d,\"message\":", code);
	vc_json_quote(out, message, strlen(message));
	vc_output_text(out, "}");
}

static int reply(struct vc_output *out, const struct vc_mcp_message *m, struct vc_console *con)
{
	const struct vc_mcp_value *id = vc_mcp_find(m, "id"), *method = vc_mcp_find(m, "method");
	struct vc_output *body = vc_output_memory(&con->err);
	char *text;
	size_t n;
	int code = NO_REQUEST, r;

	if (!body)
		return con->err.status;
	vc_output_text(out, "{\"jsonrpc\":\"2.0\",\"id\":");
	put_id(out, id);
	vc_output_text(out, ",");
	r = method && method->token == VC_J_TEXT ? result(body, method->text, m, con, &code) :
	    vc_fail(&con->err, VC_EUSAGE, "a message without a method");
	text = vc_output_take(body, &n);
	if (r < 0) {
		put_error(out, code, con->err.message);
	} else if (text) {
		vc_output_text(out, "\"result\":");
		vc_output_write(out, text, n);
	} else {
		put_error(out, INTERNAL, "out of memory");
	}
	vc_output_text(out, "}\n");
	free(text);
	vc_output_close(body);
	return VC_OK;
}

/* A message without an id is a notification, and a response is to nothing that we asked: neither is
 * answered. */
static bool wants_reply(const struct vc_mcp_message *m)
{
	if (vc_mcp_find(m, "method"))
		return vc_mcp_find(m, "id");
	return !vc_mcp_find(m, "result") && !vc_mcp_find(m, "error");
}

static int serve_line(const char *line, size_t n, struct vc_console *con)
{
	struct vc_output *out = vc_output_memory(&con->err);
	struct vc_mcp_message m = { 0 };
	char *text;
	int r;

	if (!out)
		return con->err.status;
	con->err = (struct vc_error){ 0 };
	if (vc_mcp_read(&m, line, n, &con->err) < 0) {
		vc_output_text(out, "{\"jsonrpc\":\"2.0\",\"id\":null,");
		put_error(out, PARSE_ERROR, con->err.message);
		vc_output_text(out, "}\n");
	} else if (wants_reply(&m)) {
		reply(out, &m, con);
	}
	text = vc_output_take(out, &n);
	r = text ? VC_OK : vc_nomem(&con->err, "an answer");
	if (text && (fwrite(text, 1, n, stdout) != n || fflush(stdout)))
		r = vc_fail(&con->err, VC_EIO, "cannot write to standard output");
	free(text);
	vc_output_close(out);
	vc_mcp_fini(&m);
	return r;
}

static int mcp_run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;
	int r = VC_OK;

	(void)config;
	if (argc)
		return vc_fail(&con->err, VC_EUSAGE, "mcp takes nothing ('%s'): an assistant "
			       "starts it and writes to its standard input", argv[0]);
	while (r == VC_OK && (n = getline(&line, &cap, stdin)) >= 0)
		if (strspn(line, " \t\r\n") < (size_t)n)
			r = serve_line(line, (size_t)n, con);
	free(line);
	return r;
}

const struct vc_command vc_command_mcp = {
	.name = "mcp", .operands = "",
	.summary = "sim, fit, explain, diff and dryrun as tools of an assistant",
	.details = "Speaks the Model Context Protocol over standard input and output (JSON-RPC, "
		   "one message a line).\nAn assistant is told to start 'vramcast mcp'; its "
		   "answers are short, and 'json' asks for the whole document.",
	.run = mcp_run,
};
