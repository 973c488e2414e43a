/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_mcp.c - vramcast mcp: the questions as tools of an assistant, by the Model Context Protocol
 * over standard input and output: JSON-RPC 2.0, one message a line. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "commands/mcp_jobs.h"
#include "common/json.h"
#include "common/vec.h"

/* Codes of JSON-RPC 2.0, section 5.1. */
enum { PARSE_ERROR = -32700, NO_REQUEST = -32600, NO_METHOD = -32601, WRONG_PARAMS = -32602,
       INTERNAL = -32603 };

/* Revisions of the protocol, the newest first. What differs between them does not concern a server
 * that has tools only and sends nothing by itself but how far a call is. */
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

static char *id_text(const struct vc_mcp_value *id, struct vc_error *err)
{
	struct vc_output *out = vc_output_memory(err);
	char *text = NULL;

	if (out) {
		put_id(out, id);
		text = vc_output_take(out, NULL);
	}
	vc_output_close(out);
	return text;
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

/* A call is answered when its process is over. */
static int call(struct vc_mcp_jobs *jobs, const struct vc_mcp_message *m, struct vc_console *con,
		int *code)
{
	const struct vc_mcp_value *token = vc_mcp_find(m, "params._meta.progressToken");
	char *id = id_text(vc_mcp_find(m, "id"), &con->err);
	char *progress = token ? id_text(token, &con->err) : NULL;
	struct vc_mcp_call c = { 0 };
	int r = id && (!token || progress) ? vc_mcp_call_read(&c, m, con, &con->err) :
					     vc_nomem(&con->err, "a call");

	if (r == VC_OK)
		r = vc_mcp_jobs_add(jobs, &c, id, progress, &con->err);
	*code = r == VC_EUSAGE ? WRONG_PARAMS : INTERNAL;
	vc_mcp_call_fini(&c);
	VC_FREE(id, progress);
	return r;
}

static void cancel(struct vc_mcp_jobs *jobs, const struct vc_mcp_message *m)
{
	struct vc_error ignored = { 0 };
	char *id = id_text(vc_mcp_find(m, "params.requestId"), &ignored);

	if (id)
		vc_mcp_jobs_cancel(jobs, id);
	free(id);
}

/* A message without an id is a notification, and a response is to nothing that we asked: neither is
 * answered. */
static bool wants_reply(const struct vc_mcp_message *m)
{
	if (vc_mcp_find(m, "method"))
		return vc_mcp_find(m, "id");
	return !vc_mcp_find(m, "result") && !vc_mcp_find(m, "error");
}

static bool is(const struct vc_mcp_message *m, const char *method)
{
	const struct vc_mcp_value *v = vc_mcp_find(m, "method");

	return v && !strcmp(v->text, method);
}

static void refuse(struct vc_output *out, const struct vc_mcp_value *id, int code,
		   const char *message)
{
	vc_output_text(out, "{\"jsonrpc\":\"2.0\",\"id\":");
	put_id(out, id);
	vc_output_text(out, ",");
	put_error(out, code, message);
	vc_output_text(out, "}\n");
}

static void serve_line(const char *line, size_t n, struct vc_mcp_jobs *jobs, struct vc_output *out,
		       struct vc_console *con)
{
	struct vc_mcp_message m = { 0 };
	int code;

	con->err = (struct vc_error){ 0 };
	if (vc_mcp_read(&m, line, n, &con->err) < 0) {
		refuse(out, NULL, PARSE_ERROR, con->err.message);
	} else if (is(&m, "notifications/cancelled")) {
		cancel(jobs, &m);
	} else if (wants_reply(&m)) {
		if (!is(&m, "tools/call"))
			reply(out, &m, con);
		else if (call(jobs, &m, con, &code) < 0)
			refuse(out, vc_mcp_find(&m, "id"), code, con->err.message);
	}
	vc_mcp_fini(&m);
}

struct lines { char *at; size_t n, cap; bool ended; };

/* What there is to read, and each whole line of it. */
static int read_lines(struct lines *l, struct vc_mcp_jobs *jobs, struct vc_output *out,
		      struct vc_console *con)
{
	size_t from = 0;
	ssize_t got;

	if (!vc_vec_room(l->at, l->cap, l->n + 65536))
		return vc_nomem(&con->err, "a message");
	got = read(STDIN_FILENO, l->at + l->n, 65536);
	if (got < 0)
		return errno == EINTR || errno == EAGAIN ? VC_OK :
			vc_fail(&con->err, VC_EIO, "cannot read standard input");
	l->ended = !got;
	l->n += (size_t)got;
	for (size_t i = l->n - (size_t)got; i < l->n; i++) {
		if (l->at[i] != '\n')
			continue;
		if (strspn(l->at + from, " \t\r") < i - from)
			serve_line(l->at + from, i - from, jobs, out, con);
		from = i + 1;
	}
	if (l->ended && l->n > from)
		serve_line(l->at + from, l->n - from, jobs, out, con);
	memmove(l->at, l->at + from, l->n - from);
	l->n -= from;
	return VC_OK;
}

/* One round: what came, what is over, and what is said to that. */
static int round_of(struct lines *l, struct vc_mcp_jobs *jobs, bool readable,
		    struct vc_console *con)
{
	struct vc_output *out = vc_output_memory(&con->err);
	size_t n;
	int r = out ? VC_OK : con->err.status;

	if (r == VC_OK && readable)
		r = read_lines(l, jobs, out, con);
	if (r == VC_OK)
		r = vc_mcp_jobs_look(jobs, out, &con->err);
	char *text = out ? vc_output_take(out, &n) : NULL;
	if (r == VC_OK && !text)
		r = vc_nomem(&con->err, "an answer");
	if (r == VC_OK && n && (fwrite(text, 1, n, stdout) != n || fflush(stdout)))
		r = vc_fail(&con->err, VC_EIO, "cannot write to standard output");
	free(text);
	vc_output_close(out);
	return r;
}

/* Signals become something to read: that a call is over, and that we are to end. */
static int signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	return sigprocmask(SIG_BLOCK, &set, NULL) < 0 ? -1 :
		signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

static int mcp_run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	struct vc_mcp_jobs jobs = { 0 };
	struct lines l = { 0 };
	bool told_to_end = false;
	int r = VC_OK, fd;

	(void)config;
	if (argc)
		return vc_fail(&con->err, VC_EUSAGE, "mcp takes nothing ('%s'): an assistant "
			       "starts it and writes to its standard input", argv[0]);
	fd = signals();
	if (fd < 0)
		return vc_fail(&con->err, VC_EIO, "cannot wait for signals: %s", strerror(errno));
	while (r == VC_OK && !told_to_end && (!l.ended || jobs.n)) {
		struct pollfd p[] = { { .fd = fd, .events = POLLIN },
				      { .fd = l.ended ? -1 : STDIN_FILENO, .events = POLLIN } };
		struct signalfd_siginfo what;

		poll(p, 2, vc_mcp_jobs_wait(&jobs));
		while (read(fd, &what, sizeof(what)) == sizeof(what))
			told_to_end |= what.ssi_signo != SIGCHLD;
		if (!told_to_end)
			r = round_of(&l, &jobs, p[1].revents != 0, con);
	}
	vc_mcp_jobs_fini(&jobs);
	close(fd);
	free(l.at);
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
