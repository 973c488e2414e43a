/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_env.c - vramcast env: PyTorch of a version, for dry runs. The work is done by python/env.py,
 * which travels inside the program. */
#include <errno.h>
#include <unistd.h>

#include "commands/environments.h"
#include "commands/mcp_text.h"
#include "commands/own_program.h"
#include "common/opt.h"

struct config { bool list; const char *remove; };

#define AT(f) offsetof(struct config, f)
static const struct vc_option env_options[] = {
	{ 0, "list", VC_O_FLAG, AT(list), NULL, "which there are, and how large", NULL },
	{ 0, "remove", VC_O_TEXT, AT(remove), "VERSION", "delete that one", NULL },
	VC_OPTION_END
};

static int env_run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	const struct config *c = config;
	const char *version = c->remove ? c->remove : argc ? argv[0] : "";
	char folder[512];
	char *line[] = { "python3", "-c", (char *)(uintptr_t)vc_env_text, folder,
			 c->list ? "list" : c->remove ? "remove" : "make",
			 (char *)(uintptr_t)version, NULL };

	if (argc > 1 || (argc == 1) + c->list + (c->remove != NULL) != 1)
		return vc_fail(&con->err, VC_EUSAGE, "one of: vramcast env VERSION, --list, "
			       "--remove VERSION");
	if (!c->list && !vc_env_is_version(version))
		return vc_fail(&con->err, VC_EUSAGE, "'%s' is no version of PyTorch (2.10 or "
			       "2.10.1), nor the file of a wheel", version);
	VC_TRY(vc_own_folder("env", folder, sizeof(folder), &con->err));
	execvp(*line, line);
	return vc_fail(&con->err, VC_ENOSUP, "env needs python3: %s", strerror(errno));
}

const struct vc_command vc_command_env = {
	.name = "env", .operands = "VERSION",
	.summary = "an environment with PyTorch of that version, for dry runs",
	.details =
		"Made once and kept in the user's cache, by uv where there is one, else by venv\n"
		"and pip: PyTorch without the libraries of CUDA, whose place the null GPU takes,\n"
		"with the cuDNN that it requires. 'vramcast dryrun --torch VERSION' uses it, with\n"
		"your packages behind it.",
	.options = VC_OPTIONS(env_options), .config_size = sizeof(struct config), .run = env_run,
};
