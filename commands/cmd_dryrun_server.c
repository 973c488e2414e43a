/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_dryrun_server.c - a server does not end by itself: it is run by a program that ends it when
 * it is ready (nullgpu/python/vramcast_null_server.py). */
#include <unistd.h>

#include "commands/cmd_dryrun.h"
#include "simulator/serving/requests.h"

enum { OURS = 3, /* words before the server's own */
       HASH_BLOCK = 512 /* tokens behind an entry of hash_ids, as in published traces */ };

static bool is(const char *word, const char *name)
{
	const char *slash = strrchr(word, '/');

	return strcmp(slash ? slash + 1 : word, name) == 0;
}

/* `vllm serve`, `sglang serve`, and the modules that they are. */
static bool is_server(size_t argc, char **argv)
{
	static const char *const modules[] = { "vllm.entrypoints.openai.api_server",
					       "sglang.launch_server" };

	if (argc > 1 && (is(argv[0], "vllm") || is(argv[0], "sglang")))
		return strcmp(argv[1], "serve") == 0;
	for (size_t i = 1; i + 1 < argc && i < 4; i++)
		for (size_t k = 0; k < sizeof(modules) / sizeof(*modules); k++)
			if (strcmp(argv[i], "-m") == 0 && strcmp(argv[i + 1], modules[k]) == 0)
				return true;
	return false;
}

/* One request a line, for nullgpu/python/vramcast_null_requests.py. */
static void write_request(FILE *f, const struct vc_requests *all, const struct vc_serve_request *r)
{
	fprintf(f, "{\"at\": %.9f, \"output\": %" PRIu64 ", \"answer\": \"%" PRIx64
		"\", \"prompt\": [", (double)r->arrival / 1e9, r->output, r->answer);
	for (size_t i = 0; i < r->texts; i++)
		fprintf(f, "%s[\"%" PRIx64 "\", %" PRIu64 "]", i ? ", " : "",
			all->text[r->first + i].name, all->text[r->first + i].tokens);
	fputs("]}\n", f);
}

static int write_requests(const char *from, const char *to, struct vc_error *err)
{
	struct vc_requests all = { 0 };
	int r = vc_requests_read(&all, from, HASH_BLOCK, err);
	FILE *f = r == VC_OK ? fopen(to, "w") : NULL;

	if (r == VC_OK && !f)
		r = vc_fail(err, VC_EIO, "cannot write %s", to);
	for (size_t i = 0; r == VC_OK && i < all.n; i++)
		write_request(f, &all, &all.at[i]);
	if (f && fclose(f) && r == VC_OK)
		r = vc_fail(err, VC_EIO, "cannot write %s", to);
	vc_requests_fini(&all);
	return r;
}

int vc_dryrun_until_ready(struct vc_dryrun_server *s, size_t *argc, char **argv, char ***line,
			  struct vc_error *err)
{
	char **l;

	*line = NULL;
	snprintf(s->script, sizeof(s->script), "%s/python/vramcast_null_server.py", s->stage);
	snprintf(s->played, sizeof(s->played), "--requests=");
	if (!is_server(*argc, argv))
		return !s->requests ? VC_OK :
		       vc_fail(err, VC_EUSAGE, "--requests: the program is no vllm serve and no "
			       "sglang serve");
	if (access(s->script, R_OK) < 0)
		return VC_OK;
	if (s->requests) {
		size_t n = strlen(s->played);

		snprintf(s->played + n, sizeof(s->played) - n, "%s/requests.jsonl", s->stage);
		VC_TRY(write_requests(s->requests, s->played + n, err));
	}
	l = calloc(*argc + OURS + 1, sizeof *l);
	VC_HAVE(l, "a command line", err);
	l[0] = s->python;
	l[1] = s->script;
	l[2] = s->played;
	memcpy(l + OURS, argv, *argc * sizeof *argv);
	*argc += OURS;
	*line = l;
	return VC_OK;
}
