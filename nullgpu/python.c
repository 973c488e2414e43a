/* SPDX-License-Identifier: Apache-2.0 */
/* python.c - see python.h. */
#define _GNU_SOURCE
#include "nullgpu/python.h"

#include <glob.h>
#include <sys/wait.h>
#include <unistd.h>

int vc_python_path(const char *name, char *out, size_t n)
{
	const char *path = getenv("PATH");
	if (strchr(name, '/')) {
		snprintf(out, n, "%s", name);
		return access(out, X_OK);
	}
	while (path && *path) {
		size_t len = strcspn(path, ":");
		snprintf(out, n, "%.*s/%s", (int)len, path, name);
		if (len && access(out, X_OK) == 0)
			return 0;
		path += len + (path[len] == ':');
	}
	return -1;
}

bool vc_python_is_script(const char *name)
{
	size_t n = strlen(name);
	return n > 3 && strcmp(name + n - 3, ".py") == 0;
}

int vc_python_program(const char *program, struct vc_error *err)
{
	char path[1024];
	if (vc_python_path(program, path, sizeof path) == 0)
		return 0;
	if (access(program, R_OK) == 0)
		return vc_fail(err, VC_EIO, "cannot run %s: it is not executable or not in PATH (a "
			       "script is run with: -- python %s)", program, program);
	return vc_fail(err, VC_EIO, "cannot run %s: there is no such program in PATH", program);
}

static bool is_python(const char *path)
{
	const char *base = strrchr(path, '/');
	return strncmp(base ? base + 1 : path, "python", 6) == 0;
}

/* The interpreter of a script such as torchrun: "#!/x/bin/python" or "#!/usr/bin/env python". */
static int interpreter_of(const char *script, char *out, size_t n)
{
	char line[512] = "";
	FILE *f = fopen(script, "r");
	if (!f)
		return -1;
	bool read = fgets(line, sizeof line, f) != NULL;
	fclose(f);
	line[strcspn(line, "\n")] = 0;
	if (!read || strncmp(line, "#!", 2) != 0)
		return -1;
	char *word = line + 2 + strspn(line + 2, " "), *blank = strchr(word, ' ');
	if (blank && strstr(word, "/env ") == blank - 4)
		word = blank + 1;
	word[strcspn(word, " ")] = 0;
	return is_python(word) ? vc_python_path(word, out, n) : -1;
}

int vc_python_find(const char *program, char *out, size_t n, struct vc_error *err)
{
	char path[1024];
	if (vc_python_path(program, path, sizeof path) == 0) {
		if (is_python(path)) {
			snprintf(out, n, "%s", path);
			return 0;
		}
		if (interpreter_of(path, out, n) == 0)
			return 0;
	}
	if (vc_python_path("python3", out, n) == 0 || vc_python_path("python", out, n) == 0)
		return 1;
	return vc_fail(err, VC_ENOSUP, "no python in PATH; put the one that has PyTorch first");
}

static int ask(const char *python, const char *code, char *out, size_t n)
{
	int fds[2], status;
	if (pipe(fds) < 0)
		return -1;
	pid_t pid = fork();
	if (pid == 0) {
		dup2(fds[1], STDOUT_FILENO);
		close(fds[0]);
		close(fds[1]);
		execl(python, python, "-c", code, (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	size_t got = 0;
	ssize_t k;
	while (got + 1 < n && (k = read(fds[0], out + got, n - 1 - got)) > 0)
		got += (size_t)k;
	out[got] = 0;
	close(fds[0]);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : -1;
}

int vc_python_package(const char *python, char *out, size_t n, char *beside, size_t n_beside,
		      struct vc_error *err)
{
	static const char code[] =
		"import importlib.util as u, os, sys\n"
		"def at(name):\n"
		"    try:\n"
		"        s = u.find_spec(name)\n"
		"    except ImportError:\n"
		"        s = None\n"
		"    return list(s.submodule_search_locations)[0] if s else ''\n"
		"found = at('torch') or os.path.dirname(at('jax_plugins.xla_cuda13') or\n"
		"      at('jax_plugins.xla_cuda12')) or at('tensorflow')\n"
		"print(found)\n"
		"print(':'.join(p for p in sys.path if p == os.path.dirname(found) or\n"
		"      os.path.isdir(p) and any(n.endswith('-info') for n in os.listdir(p))),\n"
		"      end='')";
	char said[8192];
	size_t end;
	if (ask(python, code, said, sizeof said) < 0)
		return vc_fail(err, VC_EIO, "%s does not run", python);
	end = strcspn(said, "\n");
	snprintf(out, n, "%.*s", (int)end, said);
	if (beside)
		snprintf(beside, n_beside, "%s", said + end + (said[end] == '\n'));
	if (!*out)
		return vc_fail(err, VC_ENOSUP,
			       "%s has no PyTorch, no JAX with a plugin for CUDA and no "
			       "TensorFlow; install one: %s -m pip install --no-deps torch (the "
			       "null GPU needs none of the nvidia packages), or let --torch 2.10 "
			       "fetch one", python, python);
	return 0;
}

int vc_python_sites(const char *python, char *out, size_t n, struct vc_error *err)
{
	static const char code[] = "import site; print(':'.join(site.getsitepackages() + "
				   "[site.getusersitepackages()]), end='')";
	return ask(python, code, out, n) < 0 ? vc_fail(err, VC_EIO, "%s does not run", python) : 0;
}

int vc_python_cudnn(const char *torch)
{
	static const char wanted[] = "nvidia-cudnn-cu";
	char path[1200], line[1024];
	int version = 0, major, minor, patch;
	glob_t found;
	snprintf(path, sizeof path, "%s-*.dist-info/METADATA", torch);
	if (glob(path, 0, NULL, &found) != 0)
		return 0;
	FILE *f = fopen(found.gl_pathv[0], "r");
	while (f && !version && fgets(line, sizeof line, f)) {
		const char *at = strstr(line, wanted), *equals = at ? strstr(at, "==") : NULL;
		if (equals && sscanf(equals, "==%d.%d.%d", &major, &minor, &patch) == 3)
			version = major * 10000 + minor * 100 + patch;
	}
	if (f)
		fclose(f);
	globfree(&found);
	return version;
}
