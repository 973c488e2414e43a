/* SPDX-License-Identifier: Apache-2.0 */
/* choose.c - see choose.h */
#define _GNU_SOURCE /* memfd_create */
#include "commands/choose.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands/cmd_plot_lines.h"
#include "common/system.h"
#include "common/vec.h"
#include "nullgpu/python.h"
#include "simulator/advise/explain.h"
#include "simulator/replay/cards.h"
#include "simulator/replay/source.h"

enum { LOOK = 1 << 20, MOST_FILES = 48 };
#define NO_CARD "h200" /* a dry run of nobody's card: most programs run to their end there */

const char vc_choose_rules[] =
	"vramcast X looks at X: a recording or snapshot is replayed (sim), text with an\n"
	"out-of-memory message explained, a Python script or command line run without a GPU\n"
	"(dryrun), a config.json, its folder or a model's name in the hub's cache estimated, a\n"
	"folder of recordings compared (ranks) or taken as a family (fit). -g CARD may stand\n"
	"before X.\n";

const char *vc_card_here(char *buf, size_t n)
{
	void *nvml = VC_PROCESSES ? dlopen("libnvidia-ml.so.1", RTLD_NOW) : NULL, *device;
	int (*init)(void) = NULL, (*find)(unsigned, void **) = NULL;
	int (*name)(void *, char *, unsigned) = NULL;
	const struct vc_card *card = NULL;

	if (!nvml)
		return NULL;
	*(void **)&init = dlsym(nvml, "nvmlInit_v2");
	*(void **)&find = dlsym(nvml, "nvmlDeviceGetHandleByIndex_v2");
	*(void **)&name = dlsym(nvml, "nvmlDeviceGetName");
	if (init && find && name && !init() && !find(0, &device) && !name(device, buf, (unsigned)n))
		card = vc_card_by_name(buf);
	return card ? card->name : NULL; /* the library stays: it may have threads */
}

/* ---- what a file is ---- */

static int take(struct vc_choice *c, const char *why, ...)
{
	va_list list;

	va_start(list, why);
	vsnprintf(c->why, sizeof(c->why), why, list);
	va_end(list);
	return VC_OK;
}

static void add(struct vc_choice *c, const char *word)
{
	if (c->n + 1 < sizeof(c->word) / sizeof(*c->word))
		c->word[c->n++] = (char *)(uintptr_t)word;
}

static void on_card(struct vc_choice *c, const char *gpu)
{
	if (gpu) {
		add(c, "-g");
		add(c, gpu);
	}
}

static bool ends_in(const char *s, const char *end)
{
	size_t n = strlen(s), k = strlen(end);

	return n > k && !strcmp(s + n - k, end);
}

static bool is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* "run.vct@batch=8" where no file has that whole name: run.vct. */
static const char *file_of(const char *word, char *buf, size_t n)
{
	const char *at = strrchr(word, '@');

	snprintf(buf, n, "%.*s", access(word, F_OK) && at && strchr(at, '=') ? (int)(at - word) :
		 (int)strlen(word), word);
	return buf;
}

enum kind { NOTHING, RECORDING, MESSAGE, CONFIG, SCRIPT, LINES, PICTURE, TEXT, BINARY };

static enum kind kind_of_text(const char *p, size_t n)
{
	struct vc_oom_text m;
	struct vc_error ignored;

	if (p[strspn(p, " \n\t\r")] == '{' && strstr(p, "\"model_type\""))
		return CONFIG;
	if (vc_explain_read(p, n, &m, &ignored) == VC_OK)
		return MESSAGE;
	return memchr(p, 0, n) ? BINARY : TEXT;
}

static enum kind kind_of(const char *path)
{
	struct vc_error ignored = { 0 };
	static const char *const named[] = { ".vct", ".pickle", ".pkl", ".ops" };
	bool lines = vc_lines_probe(path) != 0;
	struct vc_input *in = lines ? NULL : vc_input_open(path, &ignored);
	enum kind kind = NOTHING;
	const uint8_t *p;
	size_t n = 0;

	if (lines)
		return LINES;
	for (size_t i = 0; in && vc_sources[i] && !kind; i++)
		kind = vc_sources[i]->probe && vc_sources[i]->probe(in) > 0 ? RECORDING : NOTHING;
	p = in && !kind ? vc_input_peek(in, LOOK, &n, &ignored) : NULL;
	if (p && n) {
		char *text = malloc(n + 1); /* that ends */

		if (text) {
			memcpy(text, p, n);
			text[n] = '\0';
			kind = kind_of_text(text, n);
		}
		free(text);
	}
	vc_input_close(in);
	if (kind == RECORDING || kind == CONFIG || strcmp(path, "-") == 0)
		return kind;
	for (size_t i = 0; i < sizeof(named) / sizeof(*named); i++)
		if (ends_in(path, named[i]) || !in)
			return RECORDING; /* a damaged one: sim says what of it */
	if (vc_python_is_script(path))
		return SCRIPT;
	if (ends_in(path, ".html") || ends_in(path, ".svg"))
		return PICTURE;
	return kind;
}

/* ---- several recordings ---- */

/* What differs between them: a recorded parameter that all have, or "". */
static void parameter(char **path, size_t n, char *name, size_t cap)
{
	double first = NAN;
	bool differ = false;

	*name = '\0';
	for (size_t i = 0; i < n; i++) {
		struct vc_error ignored;
		struct vc_source *s = vc_source_open(path[i], &ignored);
		double value = NAN;

		for (size_t k = 0; s && s->meta && k < s->meta->params; k++) {
			const struct vc_param_value *v = &s->meta->param[k];

			if (!i && !*name) {
				snprintf(name, cap, "%s", v->name);
				first = v->value;
			}
			value = strcmp(v->name, name) ? value : v->value;
		}
		differ |= value != first;
		vc_source_free(s);
		if (!*name || isnan(value)) {
			*name = '\0';
			return;
		}
	}
	if (!differ)
		*name = '\0';
}

static int several(struct vc_choice *c, char **path, size_t n, const char *gpu,
		   struct vc_error *err)
{
	size_t ranks = 0;
	char key[64];

	for (size_t i = 0; i < n; i++)
		ranks += strstr(path[i], "rank") != NULL;
	parameter(path, n, key, sizeof(key));
	if (ranks < n && !*key)
		return vc_fail(err, VC_EUSAGE, "%zu recordings that say neither a rank nor a "
			       "parameter: 'vramcast ranks FILES' compares them, 'vramcast fit "
			       "a.vct@batch=4 b.vct@batch=8 -g CARD' takes them as a family", n);
	add(c, ranks == n ? "ranks" : "fit");
	for (size_t i = 0; i < n; i++)
		add(c, path[i]);
	if (ranks == n)
		return take(c, "%zu recordings of ranks", n);
	add(c, "--find");
	snprintf(c->text, sizeof(c->text), "%s", key);
	add(c, c->text);
	on_card(c, gpu);
	return take(c, "%zu recordings that differ in %s", n, key);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int folder(struct vc_choice *c, const char *name, const char *gpu, struct vc_error *err)
{
	char **path = c->found;
	DIR *d = opendir(name);
	struct dirent *e;
	size_t n = 0, length = strlen(name);
	int r;

	while (length > 1 && name[length - 1] == '/')
		length--;
	length = length < 500 ? length : 500;
	snprintf(c->text, 600, "%.*s/config.json", (int)length, name);
	if (access(c->text, R_OK) == 0 && kind_of(c->text) == CONFIG) {
		if (d)
			closedir(d);
		add(c, "estimate");
		add(c, "--config");
		add(c, c->text);
		on_card(c, gpu);
		return take(c, "%s is a model's folder", name);
	}
	while (d && (e = readdir(d)) && n < MOST_FILES) {
		char one[600];

		snprintf(one, sizeof(one), "%.*s/%.99s", (int)length, name, e->d_name);
		if (*e->d_name != '.' && !is_folder(one) && kind_of(one) == RECORDING)
			path[n++] = strdup(one);
	}
	if (d)
		closedir(d);
	vc_sort(path, n, sizeof(*path), by_name);
	if (n > 1) {
		r = several(c, path, n, gpu, err);
	} else if (n) {
		add(c, "sim");
		add(c, path[0]);
		add(c, "--brief");
		on_card(c, gpu);
		r = take(c, "%s holds one recording", name);
	} else {
		r = vc_fail(err, VC_EUSAGE, "in %s there is no recording and no config.json", name);
	}
	return r;
}

/* ---- models of the hub ---- */

/* The newest snapshot of "org/name" in the hub's cache. */
static bool cached(const char *model, char *path, size_t n)
{
	const char *hub = getenv("HF_HUB_CACHE"), *hf = getenv("HF_HOME"), *home = getenv("HOME");
	char base[500], name[300];
	DIR *d;
	struct dirent *e;
	bool found = false;

	snprintf(name, sizeof(name), "models--%.250s", model);
	for (char *slash = strchr(name, '/'); slash; slash = strchr(name, '/')) {
		memmove(slash + 2, slash + 1, strlen(slash + 1) + 1);
		slash[0] = slash[1] = '-';
	}
	if (hub && *hub)
		snprintf(base, sizeof(base), "%.180s/%s/snapshots", hub, name);
	else
		snprintf(base, sizeof(base), "%.150s%s/hub/%s/snapshots", hf && *hf ? hf :
			 home ? home : "", hf && *hf ? "" : "/.cache/huggingface", name);
	d = opendir(base);
	while (d && !found && (e = readdir(d))) {
		snprintf(path, n, "%.480s/%.100s/config.json", base, e->d_name);
		found = *e->d_name != '.' && access(path, R_OK) == 0;
	}
	if (d)
		closedir(d);
	return found;
}

bool vc_model_file(const char *word, char *path, size_t n)
{
	if (is_folder(word)) {
		snprintf(path, n, "%.900s/config.json", word);
		return access(path, R_OK) == 0;
	}
	snprintf(path, n, "%s%.900s", strchr(word, '/') ? "" : "./", word);
	return access(path, R_OK) == 0 || cached(word, path, n);
}

static bool is_model_name(const char *word)
{
	const char *slash = strchr(word, '/');

	return slash && slash > word && slash[1] && !strchr(slash + 1, '/') && *word != '.' &&
	       !word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
			    "-_./")];
}

/* ---- programs ---- */

static int program(struct vc_choice *c, size_t argc, char **argv, const char *gpu, bool script)
{
	const char *here = gpu ? gpu : vc_card_here(c->card, sizeof(c->card));

	add(c, "dryrun");
	add(c, "-g");
	add(c, here ? here : NO_CARD);
	add(c, "--");
	if (script)
		add(c, "python3");
	for (size_t i = 0; i < argc; i++)
		add(c, argv[i]);
	return take(c, "%s is %s; card %s%s", argv[0], script ? "a Python script" : "a program",
		    here ? here : NO_CARD, gpu ? "" : here ? ", which this machine has" :
		    ", for none was named (-g CARD)");
}

char **vc_script_line(size_t *n, char **argv)
{
	char **line;

	if (!VC_PROCESSES || !*n || !vc_python_is_script(argv[0]) || access(argv[0], R_OK) ||
	    !access(argv[0], X_OK))
		return NULL;
	line = calloc(*n + 2, sizeof(*line));
	if (line) {
		line[0] = (char *)(uintptr_t)"python3";
		memcpy(line + 1, argv, (*n)++ * sizeof(*line));
	}
	return line;
}

static int unnamed_file(void)
{
	return VC_PROCESSES ? memfd_create("input", 0) : fileno(tmpfile());
}

/* Standard input is read once: it is put where it can be read again. */
static bool keep_input(void)
{
	int fd = lseek(0, 0, SEEK_CUR) < 0 ? unnamed_file() : 0;
	char buf[65536];
	ssize_t got;

	if (!fd)
		return true;
	while (fd > 0 && (got = read(0, buf, sizeof(buf))) > 0)
		if (write(fd, buf, (size_t)got) != got)
			return false;
	return fd > 0 && lseek(fd, 0, SEEK_SET) == 0 && dup2(fd, 0) == 0;
}

static bool put_input(const char *text)
{
	int fd = unnamed_file();
	ssize_t n = (ssize_t)strlen(text);

	return fd > 0 && write(fd, text, (size_t)n) == n && lseek(fd, 0, SEEK_SET) == 0 &&
	       dup2(fd, 0) == 0;
}

/* ---- the decision ---- */

static int of_kind(struct vc_choice *c, enum kind kind, size_t argc, char **argv, const char *gpu,
		   struct vc_error *err)
{
	static const struct { const char *command, *option, *why; } with[] = {
		[RECORDING] = { "sim", NULL, "%s is a recording" },
		[MESSAGE] = { "explain", NULL, "%s is text with an out-of-memory message" },
		[CONFIG] = { "estimate", "--config", "%s is a model's configuration" },
		[PICTURE] = { "view", NULL, "%s is a picture or a report" },
	};
	const char *x = argv[0];
	bool names_card = false;

	if (kind == SCRIPT)
		return program(c, argc, argv, gpu, true);
	if (kind == NOTHING)
		return vc_fail(err, VC_EUSAGE, "%s is empty", x);
	if (kind == LINES)
		return vc_fail(err, VC_EUSAGE, "%s holds results of sim or sweep: 'vramcast plot "
			       "%s -o sweep.svg' draws them", x, x);
	if (kind == TEXT || kind == BINARY)
		return vc_fail(err, VC_EUSAGE, kind == TEXT ?
			       "%s is text without an out-of-memory message, and no recording" :
			       "%s is neither a recording nor text", x);
	add(c, with[kind].command);
	if (with[kind].option)
		add(c, with[kind].option);
	for (size_t i = 0; i < argc; i++)
		add(c, argv[i]);
	if (kind == RECORDING)
		add(c, "--brief");
	for (size_t i = 1; i < argc; i++)
		names_card |= !strncmp(argv[i], "-g", 2) || !strncmp(argv[i], "--gpu", 5) ||
			      !strncmp(argv[i], "--capacity", 10);
	if (!gpu && kind == RECORDING && !names_card)
		gpu = vc_card_here(c->card, sizeof(c->card));
	if (kind == RECORDING || kind == CONFIG)
		on_card(c, gpu);
	return take(c, with[kind].why, x);
}

/* Not even a file. */
static int no_file(struct vc_choice *c, size_t argc, char **argv, const char *gpu,
		   const char *const *commands, size_t n, struct vc_error *err)
{
	char path[1024], python[1024];
	const char *x = argv[0], *near = vc_nearest(x, commands, n);
	bool there = VC_PROCESSES && vc_python_path(x, path, sizeof(path)) == 0;
	int found = there ? vc_python_find(x, python, sizeof(python), err) : -1;

	*err = (struct vc_error){ 0 };
	if (there && found == 0)
		return program(c, argc, argv, gpu, false);
	if (cached(x, c->text, sizeof(c->text))) {
		add(c, "estimate");
		add(c, "--config");
		add(c, c->text);
		on_card(c, gpu);
		return take(c, "%s is a model in the hub's cache", x);
	}
	if (strchr(x, ' ') && kind_of_text(x, strlen(x)) == MESSAGE) {
		VC_HAVE(put_input(x), "the message", err);
		add(c, "explain");
		return take(c, "the text is an out-of-memory message");
	}
	if (near)
		return vc_fail(err, VC_EUSAGE, "there is no command '%s' (did you mean %s?)", x,
			       near);
	if (there)
		return vc_fail(err, VC_EUSAGE, "%s is a program, but not Python's: 'vramcast "
			       "dryrun -g CARD -- %s' runs it without a GPU, 'vramcast record -- "
			       "%s' with one", x, x, x);
	if (vc_python_is_script(x) || strchr(x, '/') || ends_in(x, ".vct"))
		return vc_fail(err, VC_EUSAGE, is_model_name(x) ?
			       "there is no file %s, and no model of that name in the hub's cache" :
			       "there is no file %s", x);
	return vc_fail(err, VC_EUSAGE, "there is no command '%s', and no such file, program or "
		       "model in the hub's cache ('vramcast help' lists the commands)", x);
}

int vc_choose(size_t argc, char **argv, const char *gpu, const char *const *commands, size_t n,
	      struct vc_choice *c, struct vc_error *err)
{
	char file[1024];
	size_t files = 0;
	enum kind kind;

	*c = (struct vc_choice){ .n = 0 };
	if (!strcmp(argv[0], "--"))
		return argc > 1 ? program(c, argc - 1, argv + 1, gpu, false) :
		       vc_fail(err, VC_EUSAGE, "which program? vramcast -- python train.py");
	if (!*argv[0])
		return vc_fail(err, VC_EUSAGE, "an empty name is no command and no file");
	if (!strcmp(argv[0], "-") && !keep_input())
		return vc_nomem(err, "standard input");
	file_of(argv[0], file, sizeof(file));
	if (strcmp(file, "-") && access(file, F_OK))
		return no_file(c, argc, argv, gpu, commands, n, err);
	if (is_folder(file))
		return folder(c, file, gpu, err);
	while (files < argc && argv[files][0] != '-' &&
	       !access(file_of(argv[files], file, sizeof(file)), F_OK) &&
	       kind_of(file) == RECORDING)
		files++;
	if (files > 1 && files == argc)
		return several(c, argv, argc, gpu, err);
	file_of(argv[0], file, sizeof(file));
	kind = kind_of(file);
	if (!strcmp(file, "-"))
		lseek(0, 0, SEEK_SET);
	if ((kind == TEXT || kind == BINARY) && access(file, X_OK) == 0)
		return program(c, argc, argv, gpu, false);
	return of_kind(c, kind, argc, argv, gpu, err);
}

void vc_choice_fini(struct vc_choice *c)
{
	for (size_t i = 0; i < MOST_FILES; i++)
		free(c->found[i]);
}
