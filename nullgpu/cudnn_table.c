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
 * (convolution.c); a program takes the next one when it cannot have the memory. Any other graph has
 * its hash in place of direction to dilation. The first row that fits counts. Files, in this order:
 * those named by VRAMCAST_NULL_WORKSPACES (separated by ':'), vramcast/workspaces.txt in the user's
 * cache folder, vcnull-workspaces.txt beside this library.
 *
 * VRAMCAST_NULL_WORKSPACE_LOG names a file that each convolution asked for is appended to, as a
 * row with the answer it got: the list of shapes to be recorded on a card. */
#define _GNU_SOURCE /* dladdr */
#include "common/plan_table.h"
#include "nullgpu/cudnn_workspace.h"

#include <dlfcn.h>
#include <pthread.h>

static struct vc_plan_table table; /* rows of this card and version, in the order of the files */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

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

/* ---- reading ---- */

static void read_table(const char *path)
{
	size_t wrong = 0;
	vc_plan_table_read(&table, path, exact_card(), version(), &wrong);
	if (wrong)
		vc_null_log("%s:%zu is not a row of a workspace table", path, wrong);
}

static void read_tables(void)
{
	char path[1200];
	const char *list = getenv("VRAMCAST_NULL_WORKSPACES");
	for (size_t n; list && *list; list += n + (list[n] == ':')) {
		n = strcspn(list, ":");
		snprintf(path, sizeof path, "%.*s", (int)n, list);
		read_table(path);
	}
	vc_plans_path(path, sizeof path);
	read_table(path);
	Dl_info self; /* through the link in the private folder to where the library really is */
	char *real = dladdr((void *)(uintptr_t)vc_cudnn_look_up, &self) ?
			     realpath(self.dli_fname, NULL) : NULL;
	if (real) { /* an absolute path */
		*strrchr(real, '/') = 0;
		snprintf(path, sizeof path, "%s/vcnull-workspaces.txt", real);
		read_table(path);
	}
	free(real);
}

/* ---- looking up ---- */

void vc_cudnn_key(const struct vc_convolution *c, enum vc_plans_mode mode, char key[VC_PLANS_KEY])
{
	vc_convolution_text(c, vc_plans_list(mode), key);
}

bool vc_cudnn_look_up(const char *key, struct vc_cudnn_plans *out)
{
	pthread_once(&once, read_tables);
	pthread_mutex_lock(&lock);
	bool found = vc_plan_table_find(&table, key, out);
	pthread_mutex_unlock(&lock);
	return found;
}

void vc_cudnn_keep(const char *key, const struct vc_cudnn_plans *p)
{
	char text[VC_PLANS_MOST * 40];
	vc_cudnn_plans_text(p, text, sizeof text);
	pthread_mutex_lock(&lock);
	vc_plan_table_add(&table, key, text);
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

void vc_cudnn_log(const char *key, const struct vc_cudnn_plans *p)
{
	const char *path = getenv("VRAMCAST_NULL_WORKSPACE_LOG");
	char text[VC_PLANS_MOST * 40];
	FILE *f = path && *path && !logged(key) ? fopen(path, "a") : NULL;
	if (!f)
		return;
	vc_cudnn_plans_text(p, text, sizeof text);
	fprintf(f, "%d.%d/%d %s %s %s\n", vc_null_card()->cc / 10, vc_null_card()->cc % 10,
		vc_null_card()->sms, version(), key, text);
	fclose(f);
}
