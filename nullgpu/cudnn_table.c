/* SPDX-License-Identifier: Apache-2.0 */
/* cudnn_table.c - tables of workspaces: recorded on a card, or answered by an installed cuDNN.
 *
 * A row of a table, fields separated by blanks, '#' begins a comment:
 *
 *   card cudnn direction type layout x w y stride pad dilation bytes
 *   8.6/28 9.1 data f32 nchw 64x64x56x56 64x64x3x3 64x64x56x56 1x1 1x1 1x1 103809024,0
 *
 * card: compute capability, with /N on a card of N SMs only, with /N@C,M where its clocks of
 * processors and memory are C and M MHz. cudnn: the version or its beginning; '*' means any of
 * both. direction: forward, data or filter (gradient of the input, of the weights), of the list
 * that PyTorch turns to last with /fallback behind it. layout: nchw, or nhwc for channels last,
 * whatever the dimensions. w: as in PyTorch, so x channels / w channels is the number of groups.
 * bytes: of each plan in the order of the heuristics, with letters for what is to be known of it
 * (plans_wire.c); a program takes the next one when it cannot have the memory. Any other graph has
 * its hash in place of direction to dilation. The first row that fits counts. Files, in this order:
 * those named by VRAMCAST_NULL_WORKSPACES (separated by ':'), vramcast/workspaces.txt in the user's
 * cache folder, vcnull-workspaces.txt beside this library.
 *
 * VRAMCAST_NULL_WORKSPACE_LOG names a file that each convolution asked for is appended to, as a
 * row with the answer it got: the list of shapes to be recorded on a card. */
#define _GNU_SOURCE /* dladdr */
#include "common/vec.h"
#include "nullgpu/cudnn_workspace.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows of this card and version only, in the order of the files. */
struct row {
	struct row *next; /* in its chain */
	char *plans;      /* as they stand in the table */
	char key[];
};

enum { CHAINS = 4096 };
static struct row *chains[CHAINS];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct row **chain_of(const char *key)
{
	uint64_t h = 14695981039346656037u; /* FNV-1a */
	for (; *key; key++)
		h = (h ^ (unsigned char)*key) * 1099511628211u;
	return &chains[h % CHAINS];
}

/* Behind those of the same key. */
static void add_row(const char *key, const char *plans)
{
	size_t n = strlen(key) + 1;
	struct row *r = malloc(sizeof *r + n), **at = chain_of(key);
	char *copy = strdup(plans);
	if (!r || !copy) {
		VC_FREE(r, copy);
		return;
	}
	memcpy(r->key, key, n);
	r->plans = copy;
	r->next = NULL;
	while (*at)
		at = &(*at)->next;
	*at = r;
}

static const struct row *find(const char *key)
{
	const struct row *r = *chain_of(key);
	while (r && strcmp(r->key, key))
		r = r->next;
	return r;
}

/* ---- this card and this version ---- */

static const char *version(void)
{
	static char text[48];
	size_t v = cudnnGetVersion();
	if (!*text)
		snprintf(text, sizeof text, "%zu.%zu.%zu", v / 10000, v / 100 % 100, v % 100);
	return text;
}

/* With the clocks, where the dry run says them: a card of table rows that go by them. */
static const char *exact_card(void)
{
	static char text[80];
	const struct vc_null_card *card = vc_null_card();
	const char *clocks = getenv("VRAMCAST_NULL_CLOCKS");
	if (!*text)
		snprintf(text, sizeof text, "%d.%d/%d%s%s", card->cc / 10, card->cc % 10,
			 card->sms, clocks && *clocks ? "@" : "", clocks ? clocks : "");
	return text;
}

/* "8.6" and "8.6/28" stand for what goes on with more. */
static bool card_fits(const char *wanted)
{
	const char *have = exact_card();
	size_t n = strlen(wanted);
	return !strcmp(wanted, "*") ||
		(!strncmp(wanted, have, n) && (!have[n] || have[n] == '/' || have[n] == '@'));
}

/* "9.1" stands for every 9.1.x */
static bool version_fits(const char *wanted)
{
	size_t n = strlen(wanted);
	return !strcmp(wanted, "*") ||
		(!strncmp(wanted, version(), n) && (!version()[n] || version()[n] == '.'));
}

/* ---- reading ---- */

/* A graph that is no convolution: "graph" and its hash. */
enum { FIELDS = 12, GRAPH_FIELDS = 5 };

static bool read_row(char *line)
{
	char *rest, *field[FIELDS + 1], key[VC_PLANS_KEY];
	struct vc_plans plans;
	size_t n = 0, at = 0;
	for (char *f = strtok_r(line, " \t\r\n", &rest); f && n <= FIELDS;
	     f = strtok_r(NULL, " \t\r\n", &rest))
		field[n++] = f;
	bool graph = n == GRAPH_FIELDS && !strncmp(field[2], "graph", 5);
	if ((n != FIELDS && !graph) || !vc_plans_read(field[n - 1], &plans))
		return false;
	for (size_t i = 2; i < n - 1 && at < sizeof key; i++)
		at += (size_t)snprintf(key + at, sizeof key - at, "%s%s", i > 2 ? " " : "",
				       field[i]);
	if (at < sizeof key && card_fits(field[0]) && version_fits(field[1]))
		add_row(key, field[n - 1]);
	return at < sizeof key;
}

static void read_table(const char *path)
{
	char *line = NULL;
	size_t room = 0;
	FILE *f = fopen(path, "r");
	for (int number = 1; f && getline(&line, &room, f) > 0; number++) {
		line[strcspn(line, "#")] = 0;
		if (line[strspn(line, " \t\r\n")] && !read_row(line))
			vc_null_log("%s:%d is not a row of a workspace table", path, number);
	}
	free(line);
	if (f)
		fclose(f);
}

static void read_tables(void)
{
	char path[1200];
	const char *list = getenv("VRAMCAST_NULL_WORKSPACES"), *cache = getenv("XDG_CACHE_HOME"),
		*home = getenv("HOME");
	for (size_t n; list && *list; list += n + (list[n] == ':')) {
		n = strcspn(list, ":");
		snprintf(path, sizeof path, "%.*s", (int)n, list);
		read_table(path);
	}
	if (cache && *cache)
		snprintf(path, sizeof path, "%s/vramcast/workspaces.txt", cache);
	else
		snprintf(path, sizeof path, "%s/.cache/vramcast/workspaces.txt", home ? home : "");
	read_table(path);
	Dl_info self; /* through the link in the private folder to where the library really is */
	char *real = dladdr((void *)(uintptr_t)vc_cudnn_look_up, &self) ?
			     realpath(self.dli_fname, NULL) : NULL;
	if (real && strrchr(real, '/')) {
		*strrchr(real, '/') = 0;
		snprintf(path, sizeof path, "%s/vcnull-workspaces.txt", real);
		read_table(path);
	}
	free(real);
}

/* ---- looking up ---- */

static size_t put_sizes(char *key, size_t at, const int64_t *v, int n)
{
	for (int i = 0; i < n && at < VC_PLANS_KEY; i++)
		at += (size_t)snprintf(key + at, VC_PLANS_KEY - at, "%c%lld", i ? 'x' : ' ',
				       (long long)v[i]);
	return at < VC_PLANS_KEY ? at : VC_PLANS_KEY;
}

void vc_cudnn_key(const struct vc_cudnn_convolution *c, enum vc_plans_mode mode,
		  char key[VC_PLANS_KEY])
{
	static const char *const directions[] = { "forward", "data", "filter" };
	static const char *const modes[] = { "", "/b", "/fallback", "" };
	/* cudnnDataType_t */
	static const char *const types[] = { "f32", "f64", "f16", "i8", "i32",
					    "i8",  "u8",  "u8",  "i8", "bf16" };
	const int64_t *sizes[] = { c->x, c->w, c->y };
	const int64_t *steps[] = { c->stride, c->pad, c->dilation };
	bool known = c->type >= 0 && c->type < (int)(sizeof types / sizeof *types);
	size_t at = (size_t)snprintf(key, VC_PLANS_KEY, "%s%s %s %s", directions[c->direction],
				     modes[mode], known ? types[c->type] : "other",
				     c->channels_last ? "nhwc" : "nchw");
	for (int i = 0; i < 3; i++)
		at = put_sizes(key, at, sizes[i], c->n);
	for (int i = 0; i < 3; i++)
		at = put_sizes(key, at, steps[i], c->n - 2);
}

bool vc_cudnn_look_up(const char *key, struct vc_plans *out)
{
	pthread_once(&once, read_tables);
	pthread_mutex_lock(&lock);
	const struct row *r = find(key);
	bool found = r && vc_plans_read(r->plans, out);
	pthread_mutex_unlock(&lock);
	return found;
}

void vc_cudnn_keep(const char *key, const struct vc_plans *p)
{
	char text[VC_PLANS_MOST * 40];
	vc_plans_text(p, text, sizeof text);
	pthread_mutex_lock(&lock);
	if (!find(key))
		add_row(key, text);
	pthread_mutex_unlock(&lock);
}

/* ---- the list of shapes ---- */

/* Whether this process wrote a row of that key already. */
static bool logged(const char *key)
{
	static struct seen {
		struct seen *next;
		char key[];
	} *all;
	pthread_mutex_lock(&lock);
	struct seen *s = all;
	while (s && strcmp(s->key, key))
		s = s->next;
	bool was = s != NULL;
	if (!was && (s = malloc(sizeof *s + strlen(key) + 1)) != NULL) {
		memcpy(s->key, key, strlen(key) + 1);
		s->next = all;
		all = s;
	}
	pthread_mutex_unlock(&lock);
	return was;
}

void vc_cudnn_log(const char *key, const struct vc_plans *p)
{
	const char *path = getenv("VRAMCAST_NULL_WORKSPACE_LOG");
	char text[VC_PLANS_MOST * 40];
	FILE *f = path && *path && !logged(key) ? fopen(path, "a") : NULL;
	if (!f)
		return;
	vc_plans_text(p, text, sizeof text);
	fprintf(f, "%d.%d/%d %s %s %s\n", vc_null_card()->cc / 10, vc_null_card()->cc % 10,
		vc_null_card()->sms, version(), key, text);
	fclose(f);
}
