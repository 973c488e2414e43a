/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_history.c - vramcast history: the dry runs that are kept. */
#include <time.h>

#include "commands/kept_run.h"
#include "common/emit.h"

struct config { bool json; uint64_t limit; };

#define AT(f) offsetof(struct config, f)
static const struct vc_option history_options[] = {
	{ 0, "limit", VC_O_SIZE, AT(limit), "SIZE",
	  "all together at most [4 GiB], from now on; those used least recently go", NULL },
	{ 0, "json", VC_O_FLAG, AT(json), NULL, "one document (vramcast.history/1)", NULL },
	{ 0, "as", VC_O_AS, 0, "table|json", "the same", NULL },
	VC_OPTION_END
};

static bool has_all(const struct vc_kept *k, size_t n, char **words)
{
	for (size_t i = 0; i < n; i++)
		if (!strstr(k->line, words[i]) && !strstr(k->with, words[i]) &&
		    strcmp(k->card, words[i]) != 0 && strncmp(k->id, words[i], strlen(words[i])))
			return false;
	return true;
}

/* The end of a long line says more than its beginning. */
static const char *end_of(const char *line)
{
	size_t n = strlen(line);

	return n > 60 ? line + n - 60 : line;
}

static void emit(struct vc_emit *e, const struct vc_kept *k)
{
	char id[9], when[32];
	time_t at = (time_t)k->when;
	struct tm tm;

	snprintf(id, sizeof(id), "%.8s", k->id);
	strftime(when, sizeof(when), "%Y-%m-%d %H:%M", localtime_r(&at, &tm));
	vc_emit_object(e, NULL, NULL);
	vc_emit_text(e, "run", NULL, k->id);
	vc_emit_text(e, NULL, "run", id);
	vc_emit_int(e, "unix_time", NULL, k->when);
	vc_emit_text(e, NULL, "when", when);
	vc_emit_text(e, "card", "card", k->card);
	vc_emit_text(e, "torch", "torch", k->torch);
	vc_emit_bytes(e, "peak_requested", NULL, k->requested);
	vc_emit_bytes(e, "peak_allocated", NULL, k->allocated);
	vc_emit_bytes(e, "peak_reserved", "reserved", k->reserved);
	vc_emit_bytes(e, "workspace", NULL, k->workspace);
	vc_emit_text(e, "verdict", "verdict", k->verdict);
	vc_emit_text(e, "trace", NULL, k->path);
	vc_emit_text(e, "command", NULL, k->line);
	vc_emit_text(e, NULL, "command", end_of(k->line));
	vc_emit_text(e, "with", "with", k->with);
	vc_emit_uint(e, "bytes", NULL, k->bytes);
	vc_emit_end(e);
}

static int history(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	const struct config *c = config;
	struct vc_kept *k;
	uint64_t most, bytes = 0;
	char has[32], may[32];
	struct vc_emit *e;
	size_t n;

	if (c->limit != VC_NOT_GIVEN) {
		VC_TRY(vc_kept_set_limit(c->limit, &con->err));
		VC_TRY(vc_kept_prune(0, &con->err));
	}
	VC_TRY(vc_kept_limit(&most, &con->err));
	VC_TRY(vc_kept_list(&k, &n, &con->err));
	e = vc_emit_stdout(c->json, &con->err);
	if (e) {
		vc_emit_object(e, NULL, NULL);
		vc_emit_text(e, "schema", NULL, "vramcast.history/1");
		vc_emit_array(e, "runs", "");
		for (size_t i = 0; i < n; i++)
			if (has_all(&k[i], argc, argv))
				emit(e, &k[i]);
		vc_emit_end(e);
		for (size_t i = 0; i < n; i++)
			bytes += k[i].bytes;
		vc_emit_uint(e, "bytes", NULL, bytes);
		vc_emit_uint(e, "limit", NULL, most);
		vc_emit_line(e, "\n%zu runs take %s of %s (--limit)", n,
			     vc_bytes_text(bytes, has), vc_bytes_text(most, may));
		vc_emit_end(e);
	}
	free(k);
	return e ? vc_emit_done(e, &con->err) : (int)con->err.status;
}

const struct vc_command vc_command_history = {
	.name = "history", .operands = "[WORD]...",
	.summary = "the dry runs that are kept, the newest first",
	.details =
		"WORDs choose those that have all of them in their command, settings, card or "
		"number. 'vramcast\ndiff RUN RUN' compares any two.",
	.options = VC_OPTIONS(history_options),
	.config_size = sizeof(struct config), .run = history,
};
