/* SPDX-License-Identifier: Apache-2.0 */
/* own_program.c - see own_program.h
 *
 * A recording that somebody sent must never decide what is run here. So what was run here is kept
 * word for word, and only the same words are run again without being asked. */
#define _GNU_SOURCE
#include "commands/own_program.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/param.h"
#include "common/vec.h"
#include "nullgpu/python.h"

/* What decides how much memory a run takes, or which run it is. docs/reference/recording.md has the
 * same list. Nothing else of the environment is written down. */
static const char *const variables[] = {
	"CUBLAS_WORKSPACE_CONFIG", "CUDA_LAUNCH_BLOCKING", "CUDA_VISIBLE_DEVICES",
	"HF_DATASETS_CACHE", "HF_DATASETS_OFFLINE", "HF_HOME", "HF_HUB_CACHE", "HF_HUB_OFFLINE",
	"LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "NCCL_BUFFSIZE", "NVIDIA_TF32_OVERRIDE",
	"OMP_NUM_THREADS", "PYTHONHASHSEED", "PYTHONPATH", "PYTORCH_ALLOC_CONF",
	"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING", "RANK", "TORCHDYNAMO_DISABLE",
	"TORCH_COMPILE_DISABLE", "TORCH_CUDNN_V8_API_DISABLED", "TORCH_HOME",
	"TRANSFORMERS_CACHE", "TRANSFORMERS_OFFLINE", "WORLD_SIZE",
};
enum { VARIABLES = sizeof(variables) / sizeof(*variables) };

void vc_own_environment(const struct vc_texts *environment)
{
	for (size_t i = 0; i < VARIABLES; i++) {
		const char *value = vc_texts_find(environment, variables[i]);

		if (value)
			setenv(variables[i], value, 1);
		else
			unsetenv(variables[i]);
	}
}

int vc_own_folder(const char *name, char *path, size_t n, struct vc_error *err)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	bool given = cache && *cache;

	snprintf(path, n, "%.300s%s/vramcast/%.40s", given ? cache : home && *home ? home : "/tmp",
		 given ? "" : "/.cache", name);
	for (char *c = path + 1; *c; c++)
		if (*c == '/') {
			*c = '\0';
			mkdir(path, 0700);
			*c = '/';
		}
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return vc_fail(err, VC_EIO, "cannot make %s: %s", path, strerror(errno));
	return VC_OK;
}

/* ---- arguments ---- */

/* The last word of an option's name: "token" of --hf-token. */
static bool ends_in_word(const char *name, size_t n, const char *word)
{
	size_t k = strlen(word);

	return n > k && !strncasecmp(name + n - k, word, k) && strchr("-_", name[n - k - 1]);
}

bool vc_own_secret(const char *before, const char *word)
{
	static const char *const names[] = { "key", "token", "secret", "password", "passwd",
					     "credential", "credentials" };
	const char *equals = strchr(word, '='), *name = equals ? word : before;
	size_t n = equals ? (size_t)(equals - word) : before ? strlen(before) : 0;
	double number;

	if (!n || *name != '-' || (!equals && *word == '-') ||
	    vc_parse_real(equals ? equals + 1 : word, &number, NULL) == 0)
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (ends_in_word(name, n, names[i]))
			return true;
	return false;
}

/* Without what stands between words: batch-size and batch_size are the same. */
static bool has_word(const char *name, size_t n, const char *word)
{
	for (size_t at = 0; at < n; at++) {
		size_t i = at, k = 0;

		while (i < n && word[k] && (tolower(name[i]) == tolower(word[k]) ||
					    (strchr("-_", name[i]) && strchr("-_", word[k])))) {
			i++;
			k++;
		}
		if (!word[k])
			return true;
	}
	return false;
}

/* How well an argument fits as the place of a value: 0 not at all, 1 it has the value and no
 * option, 2 its option has the name. *at: where the value begins in it. */
static int fits(const struct vc_program *p, size_t i, const char *name, double value, size_t *at,
		double *found)
{
	const char *word = p->argument.at[i].text, *equals = strchr(word, '=');
	const char *before = i ? p->argument.at[i - 1].text : "", *option;
	size_t n;

	*at = equals ? (size_t)(equals - word) + 1 : 0;
	if (!i || vc_parse_real(word + *at, found, NULL) < 0 ||
	    (!isnan(value) && *found != value))
		return 0;
	option = equals ? word : before;
	n = equals ? (size_t)(equals - word) : strlen(before);
	if (!equals && *before != '-')
		return isnan(value) ? 0 : 1;
	if (has_word(option, n, name) || (n == 2 && option[1] == name[0]))
		return 2;
	return 0;
}

double vc_own_mark(struct vc_program *p, const char *name, double value)
{
	size_t n[3] = { 0 }, which[3] = { 0 }, at, place[3] = { 0 };
	double found, seen[3] = { NAN, NAN, NAN };
	char *text;

	if (vc_program_takes(p, name))
		return value;
	for (size_t i = 1; i < p->argument.n; i++) {
		int k = fits(p, i, name, value, &at, &found);

		n[k]++;
		which[k] = i;
		place[k] = at;
		seen[k] = found;
	}
	int k = n[2] ? 2 : 1;
	if (n[k] != 1 || asprintf(&text, "%.*s{%s}", (int)place[k], p->argument.at[which[k]].text,
				  name) < 0)
		return NAN;
	free(p->argument.at[which[k]].text);
	p->argument.at[which[k]].text = text;
	return seen[k];
}

/* ---- describing ---- */

static int add_environment(struct vc_program *p, struct vc_error *err)
{
	for (size_t i = 0; i < VARIABLES; i++) {
		const char *value = getenv(variables[i]);

		if (value && *value)
			VC_TRY(vc_texts_add(&p->environment, variables[i], value, err));
	}
	return VC_OK;
}

/* Of git, without running it: a branch's name, or a detached head. */
static void find_revision(struct vc_program *p)
{
	char path[PATH_MAX + 64], head[256] = "", *slash;

	snprintf(path, sizeof(path), "%s/", p->folder);
	while ((slash = strrchr(path, '/'))) {
		FILE *f;

		snprintf(slash, sizeof(path) - (size_t)(slash - path), "/.git/HEAD");
		f = fopen(path, "r");
		if (f && fgets(head, sizeof(head), f) && !strncmp(head, "ref: ", 5)) {
			head[strcspn(head, "\n")] = '\0';
			snprintf(slash, sizeof(path) - (size_t)(slash - path), "/.git/%.200s",
				 head + 5);
			fclose(f);
			f = fopen(path, "r");
			if (!f || !fgets(head, sizeof(head), f))
				head[0] = '\0';
		}
		if (f)
			fclose(f);
		*slash = '\0';
		if (head[0])
			break;
	}
	head[strcspn(head, "\n")] = '\0';
	if (head[0])
		p->revision = strdup(head);
}

/* Whatever file is named in the command line: the script, and what configures it. */
static int add_files(struct vc_program *p, struct vc_error *err)
{
	char path[PATH_MAX], hash[17];
	struct stat st;

	for (size_t i = 0; i < p->argument.n; i++) {
		const char *name = i ? p->argument.at[i].text : p->interpreter;
		const char *base = strrchr(name, '/');

		if ((!i && !strncmp(base ? base + 1 : name, "python", 6)) || !realpath(name, path))
			continue;
		if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && vc_program_hash(path, hash))
			VC_TRY(vc_texts_add(&p->file, path, hash, err));
	}
	return VC_OK;
}

static int finish(struct vc_program *p, struct vc_error *err)
{
	char path[PATH_MAX];
	bool here;

	if (!getcwd(path, sizeof(path)))
		return vc_fail(err, VC_EIO, "the working folder cannot be named: %s",
			       strerror(errno));
	p->folder = strdup(path);
	if (vc_python_path(p->argument.at[0].text, path, sizeof(path)) < 0)
		snprintf(path, sizeof(path), "%s", p->argument.at[0].text);
	VC_HAVE(p->folder, "a program", err);
	here = strchr(path, '/') && path[0] != '/'; /* a link stays one: venv/bin/python is */
	if (asprintf(&p->interpreter, "%s%s%s", here ? p->folder : "", here ? "/" : "", path) < 0)
		return vc_nomem(err, "a program");
	find_revision(p);
	VC_TRY(add_environment(p, err));
	return add_files(p, err);
}

/* "batch=8" of --param, which was checked; its name into `name`. */
static bool read_param(const char *text, char name[64], double *value)
{
	const char *equals = strchr(text, '=');

	snprintf(name, 64, "%.*s", equals ? (int)(equals - text) : 0, text);
	return equals && vc_parse_real(equals + 1, value, NULL) == 0;
}

void vc_own_free(char **argv)
{
	for (size_t i = 0; argv && argv[i]; i++)
		free(argv[i]);
	free(argv);
}

char **vc_own_fill(size_t argc, char *const *argv, const struct vc_list *params,
		   struct vc_error *err)
{
	char **line = calloc(argc + 1, sizeof(*line)), name[64];
	bool ok = line != NULL;
	double value;

	for (size_t i = 0; ok && i < argc; i++) {
		ok = (line[i] = strdup(argv[i])) != NULL;
		for (size_t k = 0; ok && k < params->n; k++) {
			char *before = line[i];

			if (!strchr(before, '{') || !read_param(params->at[k], name, &value))
				continue;
			ok = (line[i] = vc_program_fill(before, name, value)) != NULL;
			free(before);
		}
	}
	if (ok)
		return line;
	vc_own_free(line);
	vc_nomem(err, "a command line");
	return NULL;
}

int vc_own_describe(size_t argc, char **argv, const struct vc_list *params,
		    struct vc_program **out, struct vc_error *err)
{
	struct vc_program *p = vc_program_new(err);
	int r = p ? VC_OK : VC_ENOMEM;

	for (size_t i = 0; r == VC_OK && i < argc; i++) {
		const char *word = argv[i], *equals = strchr(word, '=');
		char shown[200];

		if (vc_own_secret(i ? argv[i - 1] : NULL, word)) {
			snprintf(shown, sizeof(shown), "%.*s***",
				 equals ? (int)(equals - word) + 1 : 0, word);
			word = shown;
		}
		r = vc_texts_add(&p->argument, NULL, word, err);
	}
	for (size_t i = 0; r == VC_OK && i < params->n; i++) {
		char name[64];
		double value;

		if (read_param(params->at[i], name, &value))
			vc_own_mark(p, name, value);
	}
	if (r == VC_OK)
		r = finish(p, err);
	if (r < 0) {
		vc_program_free(p);
		p = NULL;
	}
	*out = p;
	return r;
}

/* The next word of a line, or NULL; quotes and backslashes as a shell has them. */
static char *next_word(const char **line)
{
	const char *c = *line + strspn(*line, " \t\n");
	char *word = *c ? malloc(strlen(c) + 1) : NULL, quote = 0;
	size_t n = 0;

	for (; word && *c && (quote || !strchr(" \t\n", *c)); c++) {
		if (quote ? *c == quote : *c == '"' || *c == '\'')
			quote = quote ? 0 : *c;
		else if (*c == '\\' && c[1] && quote != '\'')
			word[n++] = *++c;
		else
			word[n++] = *c;
	}
	if (word)
		word[n] = '\0';
	*line = c;
	return word;
}

int vc_own_parse(const char *line, struct vc_program **out, struct vc_error *err)
{
	const struct vc_list none = { 0 };
	char *words[256], *word;
	size_t n = 0;
	int r;

	while (n < 256 && (word = next_word(&line)))
		words[n++] = word;
	r = n ? vc_own_describe(n, words, &none, out, err) :
		vc_fail(err, VC_EUSAGE, "--program names a program, as in 'python train.py "
			"--batch {batch}'");
	while (n)
		free(words[--n]);
	return r;
}

/* ---- known again ---- */

int vc_own_write(const struct vc_program *p, const char *path, struct vc_error *err)
{
	struct vc_output *o = vc_output_open(path, err);
	int r = o ? VC_OK : (int)err->status;

	if (o) {
		vc_program_write(o, p, false);
		vc_output_text(o, "\n");
		r = vc_output_commit(o, err);
	}
	vc_output_close(o);
	return r;
}

/* What is run, as text, and the file that stands for it. The text is the caller's. */
static char *place_of(const struct vc_program *p, bool dry, char *path, size_t n,
		      struct vc_error *err)
{
	struct vc_output *o = vc_output_memory(err);
	char folder[512], *text = NULL;
	size_t length = 0;

	if (o && vc_own_folder("programs", folder, sizeof(folder), err) == VC_OK) {
		vc_program_write(o, p, true);
		text = vc_output_take(o, &length);
	}
	vc_output_close(o);
	if (text)
		snprintf(path, n, "%s/%016" PRIx64 "%s", folder,
			 vc_program_hash_bytes(text, length, 0), dry ? ".dry" : "");
	return text;
}

static int remember(const struct vc_program *p, bool dry, struct vc_error *err)
{
	char path[600], *text = place_of(p, dry, path, sizeof(path), err);
	struct vc_output *o = text ? vc_output_open(path, err) : NULL;
	int r = o ? VC_OK : VC_EIO;

	if (o) {
		vc_output_text(o, text);
		r = vc_output_commit(o, err);
	}
	vc_output_close(o);
	free(text);
	return r;
}

int vc_own_remember(const struct vc_program *p, bool dry, struct vc_error *err)
{
	VC_TRY(remember(p, false, err));
	return dry ? remember(p, true, err) : VC_OK;
}

bool vc_own_is_known(const struct vc_program *p, bool dry)
{
	struct vc_error ignored = { 0 };
	char path[600], *text = place_of(p, dry, path, sizeof(path), &ignored), *kept;
	size_t n = text ? strlen(text) : 0, got = 0;
	FILE *f = text ? fopen(path, "r") : NULL;
	bool same = false;

	kept = f ? malloc(n + 2) : NULL;
	if (kept) {
		got = fread(kept, 1, n + 1, f);
		same = got == n && !memcmp(kept, text, n);
	}
	if (f)
		fclose(f);
	VC_FREE(kept, text);
	return same;
}

const char *vc_own_changed(const struct vc_program *p)
{
	char hash[17];

	for (size_t i = 0; i < p->file.n; i++)
		if (!vc_program_hash(p->file.at[i].name, hash) ||
		    strcmp(hash, p->file.at[i].text))
			return p->file.at[i].name;
	return NULL;
}
