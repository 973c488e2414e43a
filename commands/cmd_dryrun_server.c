/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_dryrun_server.c - a server does not end by itself: it is run by a program that ends it when
 * it is ready (nullgpu/python/vramcast_null_server.py). */
#include <unistd.h>

#include "commands/cmd_dryrun.h"

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

int vc_dryrun_until_ready(const char *stage, char *script, size_t n, char *python, size_t *argc,
			  char **argv, char ***line, struct vc_error *err)
{
	*line = NULL;
	snprintf(script, n, "%s/python/vramcast_null_server.py", stage);
	if (!is_server(*argc, argv) || access(script, R_OK) < 0)
		return VC_OK;
	*line = calloc(*argc + 3, sizeof **line);
	VC_HAVE(*line, "a command line", err);
	(*line)[0] = python;
	(*line)[1] = script;
	memcpy(*line + 2, argv, *argc * sizeof *argv);
	*argc += 2;
	return VC_OK;
}
