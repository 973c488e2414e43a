/* SPDX-License-Identifier: Apache-2.0 */
/* environments.c - see environments.h. The work is done by python/env.py, which travels inside the
 * program. */
#include "commands/environments.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "commands/mcp_text.h"
#include "commands/own_program.h"

static bool is_wheel(const char *version)
{
	size_t n = strlen(version);

	return n > 4 && !strcmp(version + n - 4, ".whl");
}

bool vc_env_is_version(const char *v)
{
	unsigned major, minor, patch;
	char end;
	int n = sscanf(v, "%2u.%2u%c", &major, &minor, &end);

	if (is_wheel(v))
		return access(v, R_OK) == 0;
	if (strspn(v, "0123456789.") != strlen(v))
		return false;
	return n == 2 || (n == 3 && sscanf(v, "%2u.%2u.%2u%c", &major, &minor, &patch, &end) == 3);
}

int vc_env_folder(const char *version, char path[VC_ENV_PATH], struct vc_error *err)
{
	const char *slash = is_wheel(version) ? strrchr(version, '/') : NULL;
	const char *name = slash ? slash + 1 : version;
	char folder[400];

	VC_TRY(vc_own_folder("env", folder, sizeof(folder), err));
	snprintf(path, VC_ENV_PATH, "%s/%.*s", folder,
		 (int)(strlen(name) - (is_wheel(name) ? 4 : 0)), name);
	return VC_OK;
}

/* In the child: what it prints goes to `out`. */
static void become(size_t n, char *const *word, const char *folder, int out)
{
	char **line = calloc(n + 5, sizeof(*line));
	const char *begin[] = { "python3", "-c", vc_env_text, folder };

	if (!line || dup2(out, STDOUT_FILENO) < 0)
		_exit(127);
	for (size_t i = 0; i < 4; i++)
		line[i] = (char *)(uintptr_t)begin[i];
	for (size_t i = 0; i < n; i++)
		line[4 + i] = word[i];
	execvp(*line, line);
	_exit(127);
}

/* Lines that it prints, `most` of them. */
static int ask(size_t n, char *const *word, char (*line)[VC_ENV_PATH], size_t most, size_t *got,
	       struct vc_error *err)
{
	char folder[400];
	int ends[2], status = 0;
	FILE *f;

	*got = 0;
	VC_TRY(vc_own_folder("env", folder, sizeof(folder), err));
	if (pipe(ends) < 0)
		return vc_fail(err, VC_EIO, "cannot start python3: %s", strerror(errno));
	pid_t child = fork();
	if (child == 0) {
		close(ends[0]);
		become(n, word, folder, ends[1]);
	}
	close(ends[1]);
	f = fdopen(ends[0], "r");
	while (f && *got < most && fgets(line[*got], VC_ENV_PATH, f)) {
		line[*got][strcspn(line[*got], "\n")] = '\0';
		(*got)++;
	}
	if (f)
		fclose(f);
	if (child < 0 || waitpid(child, &status, 0) < 0 || status == 127 << 8)
		return vc_fail(err, VC_ENOSUP, "other versions need python3");
	return status ? vc_fail(err, VC_EIO, "an environment is missing") : VC_OK;
}

int vc_env_need(const char *python, size_t n, char *const *what, char (*path)[VC_ENV_PATH],
		struct vc_error *err)
{
	char **word = calloc(n + 2, sizeof(*word));
	size_t got = 0;
	int r = word ? VC_OK : vc_nomem(err, "the environments");

	if (r == VC_OK) {
		word[0] = (char *)(uintptr_t)"need";
		word[1] = (char *)(uintptr_t)python;
		memcpy(word + 2, what, n * sizeof(*what));
		r = ask(n + 2, word, path, n, &got, err);
	}
	free(word);
	return r == VC_OK && got < n ? vc_fail(err, VC_EIO, "an environment is missing") : r;
}

int vc_env_releases(const char *name, const char *good, const char *bad,
		    char (*version)[VC_ENV_PATH], size_t most, size_t *n, struct vc_error *err)
{
	char *word[] = { (char *)(uintptr_t)"versions", (char *)(uintptr_t)name,
			 (char *)(uintptr_t)good, (char *)(uintptr_t)bad };

	return ask(4, word, version, most, n, err);
}

int vc_env_put_front(struct vc_texts *environment, const char *folder, struct vc_error *err)
{
	const char *before = vc_texts_find(environment, "PYTHONPATH");
	char text[8192];

	before = before ? before : getenv("PYTHONPATH");
	snprintf(text, sizeof(text), "%s%s%s", folder, before && *before ? ":" : "",
		 before ? before : "");
	VC_TRY(vc_texts_add(environment, "PYTHONPATH", text, err));
	snprintf(text, sizeof(text), "%s/nvidia/cudnn/lib/libcudnn.so.9", folder);
	return access(text, R_OK) ? VC_OK :
		       vc_texts_add(environment, "VRAMCAST_NULL_CUDNN_LIBRARY", text, err);
}
