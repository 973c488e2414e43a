/* SPDX-License-Identifier: Apache-2.0 */
/* cudnn_workspace.c - scratch memory of convolutions: rows recorded on a card, else a rule.
 *
 * A row of a table, fields separated by blanks, '#' begins a comment:
 *
 *   card cudnn direction type layout x w y stride pad dilation bytes
 *   8.6/28 9.1 data f32 nchw 64x64x56x56 64x64x3x3 64x64x56x56 1x1 1x1 1x1 103809024,0
 *
 * card: compute capability, with /N on a card of N SMs only. cudnn: the version or its beginning;
 * '*' means any of both.
 * direction: forward, data or filter (gradient of the input, of the weights). layout: nchw, or nhwc
 * for channels last, whatever the dimensions. w: as in PyTorch, so x channels / w channels is the
 * number of groups. bytes: of each plan in the order of the heuristics; a program takes the next
 * one when it cannot have the memory. The first row that fits counts. Files, in this order: those
 * named by VRAMCAST_NULL_WORKSPACES (separated by ':'), vramcast/workspaces.txt in the user's cache
 * folder, vcnull-workspaces.txt beside this library.
 *
 * VRAMCAST_NULL_WORKSPACE_LOG names a file that each convolution asked for is appended to, as a
 * row with the answer it got: the list of shapes to be recorded on a card. */
#define _GNU_SOURCE /* dladdr */
#include "nullgpu/cudnn_workspace.h"
#include "common/vec.h"
#include "nullgpu/usage.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_SIZE 512

struct row {
	char card[24], cudnn[24];
	char *key; /* direction to dilation, one blank between fields */
	struct vc_cudnn_plans plans;
};

static struct row *rows;
static size_t n_rows, room;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- reading ---- */

static bool read_bytes(const char *s, struct vc_cudnn_plans *p)
{
	char *end = NULL;
	for (p->n = 0; p->n < VC_CUDNN_PLANS; s = end + 1) {
		long long v = strtoll(s, &end, 10);
		if (end == s || v < 0)
			return false;
		p->bytes[p->n++] = v;
		if (*end != ',')
			return !*end;
	}
	return !*end;
}

static bool read_row(char *line, struct row *r)
{
	char *rest, *field[12], key[KEY_SIZE];
	size_t n = 0, at = 0;
	for (char *f = strtok_r(line, " \t\r\n", &rest); f && n < 12;
	     f = strtok_r(NULL, " \t\r\n", &rest))
		field[n++] = f;
	if (n != 12 || !read_bytes(field[11], &r->plans))
		return false;
	for (size_t i = 2; i < 11 && at < sizeof key; i++)
		at += (size_t)snprintf(key + at, sizeof key - at, "%s%s", i > 2 ? " " : "",
				       field[i]);
	snprintf(r->card, sizeof r->card, "%s", field[0]);
	snprintf(r->cudnn, sizeof r->cudnn, "%s", field[1]);
	r->key = at < sizeof key ? strdup(key) : NULL;
	return r->key != NULL;
}

static void read_table(const char *path)
{
	char line[1024];
	FILE *f = fopen(path, "r");
	for (int number = 1; f && fgets(line, sizeof line, f); number++) {
		line[strcspn(line, "#")] = 0;
		if (!line[strspn(line, " \t\r\n")])
			continue;
		if (!vc_vec_room(rows, room, n_rows + 1))
			break;
		if (read_row(line, &rows[n_rows]))
			n_rows++;
		else
			vc_null_log("%s:%d is not a row of a workspace table", path, number);
	}
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
	char *real = dladdr((void *)(uintptr_t)vc_cudnn_plans, &self) ?
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
	for (int i = 0; i < n && at < KEY_SIZE; i++)
		at += (size_t)snprintf(key + at, KEY_SIZE - at, "%c%lld", i ? 'x' : ' ',
				       (long long)v[i]);
	return at < KEY_SIZE ? at : KEY_SIZE;
}

static void make_key(const struct vc_cudnn_convolution *c, char *key)
{
	static const char *const directions[] = { "forward", "data", "filter" };
	/* cudnnDataType_t */
	static const char *const types[] = { "f32", "f64", "f16", "i8", "i32",
					    "i8",  "u8",  "u8",  "i8", "bf16" };
	const int64_t *sizes[] = { c->x, c->w, c->y };
	const int64_t *steps[] = { c->stride, c->pad, c->dilation };
	bool known = c->type >= 0 && c->type < (int)(sizeof types / sizeof *types);
	size_t at = (size_t)snprintf(key, KEY_SIZE, "%s %s %s", directions[c->direction],
				     known ? types[c->type] : "other",
				     c->channels_last ? "nhwc" : "nchw");
	for (int i = 0; i < 3; i++)
		at = put_sizes(key, at, sizes[i], c->n);
	for (int i = 0; i < 3; i++)
		at = put_sizes(key, at, steps[i], c->n - 2);
}

static void name_card(char *class, size_t class_size, char *exact, size_t exact_size)
{
	const struct vc_null_card *card = vc_null_card();
	snprintf(class, class_size, "%d.%d", card->cc / 10, card->cc % 10);
	snprintf(exact, exact_size, "%s/%d", class, card->sms);
}

/* "9.1" stands for every 9.1.x */
static bool version_fits(const char *wanted, const char *have)
{
	size_t n = strlen(wanted);
	return !strcmp(wanted, "*") || (!strncmp(wanted, have, n) && (!have[n] || have[n] == '.'));
}

static const struct row *look_up(const char *key)
{
	char class[32], exact[48], version[48];
	size_t v = cudnnGetVersion();
	name_card(class, sizeof class, exact, sizeof exact);
	snprintf(version, sizeof version, "%zu.%zu.%zu", v / 10000, v / 100 % 100, v % 100);
	for (size_t i = 0; i < n_rows; i++) {
		const struct row *r = &rows[i];
		if ((!strcmp(r->card, "*") || !strcmp(r->card, class) || !strcmp(r->card, exact)) &&
		    version_fits(r->cudnn, version) && !strcmp(r->key, key))
			return r;
	}
	return NULL;
}

/* Whether this process wrote a row of that key already. */
static bool logged(const char *key)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
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

static void write_log(const char *key, const struct vc_cudnn_plans *p)
{
	const char *path = getenv("VRAMCAST_NULL_WORKSPACE_LOG");
	char class[32], exact[48];
	size_t v = cudnnGetVersion();
	FILE *f = path && *path && !logged(key) ? fopen(path, "a") : NULL;
	if (!f)
		return;
	name_card(class, sizeof class, exact, sizeof exact);
	fprintf(f, "%s %zu.%zu.%zu %s ", exact, v / 10000, v / 100 % 100, v % 100, key);
	for (int i = 0; i < p->n; i++)
		fprintf(f, "%s%lld", i ? "," : "", (long long)p->bytes[i]);
	fputc('\n', f);
	fclose(f);
}

/* ---- the rule ---- */

static int64_t bytes_of(const struct vc_cudnn_convolution *c, const int64_t *sizes)
{
	int64_t n = (int64_t)vc_cudnn_width(c->type);
	for (int i = 0; i < c->n; i++)
		n *= sizes[i];
	return n;
}

enum kind { FIRST, DENSE, POINT, NARROW, GROUPED }; /* the last two have groups */

/* Tensor cores want channels last, PyTorch's tensors are channels first by default: plans copy what
 * they read, or what they write, into the other layout. Which of the tensors are copied was found
 * by holding dry runs against measured peaks of nets on two classes of card (RTX 3060: 8.6, RTX
 * 4060: 8.9; fp32 with TF32, cuDNN 9.1; `make check-measured` says what that gives and on which
 * half of the runs it was chosen). Rows that only one class shows are why there is a class. */
struct copies {
	enum kind kind;
	enum vc_cudnn_direction direction;
	int from, to; /* compute capabilities, 89 means 8.9 */
	bool x, y;    /* which are copied; the weights always are, then */
	int most;     /* MiB; a plan that needs more is not taken (0: no such limit seen) */
};

static const struct copies copies[] = {
	{ DENSE,   VC_CUDNN_DATA,    0, 999, true, true, 0 },
	{ FIRST,   VC_CUDNN_DATA,    0, 999, true, true, 0 },
	{ FIRST,   VC_CUDNN_FORWARD, 80, 999, true, false, 0 },
	{ FIRST,   VC_CUDNN_FILTER,  89, 999, true, true, 128 },
	{ POINT,   VC_CUDNN_FORWARD, 80, 999, true, false, 0 },
	{ POINT,   VC_CUDNN_DATA,    80, 88, true, false, 0 },
	{ POINT,   VC_CUDNN_DATA,    89, 999, false, true, 0 },
	{ NARROW,  VC_CUDNN_FORWARD, 80, 88, true, false, 0 },
	{ NARROW,  VC_CUDNN_DATA,    89, 999, true, true, 0 },
	{ GROUPED, VC_CUDNN_DATA,    80, 999, true, true, 0 },
};

static enum kind kind_of(const struct vc_cudnn_convolution *c)
{
	int64_t kernel = 1;
	for (int i = 2; i < c->n; i++)
		kernel *= c->w[i];
	if (c->w[1] != c->x[1])
		return c->w[1] <= 8 ? NARROW : GROUPED; /* half of a tensor core's tile */
	if (kernel == 1)
		return POINT;
	return c->x[1] <= 4 ? FIRST : DENSE; /* the colours of an image */
}

/* The part of x that the convolution reads: strides may leave a border. */
static int64_t read_bytes_of_x(const struct vc_cudnn_convolution *c)
{
	int64_t used[VC_CUDNN_SPATIAL + 2];
	memcpy(used, c->x, sizeof used);
	for (int i = 2; i < c->n; i++) {
		int64_t reach = (c->y[i] - 1) * c->stride[i - 2] +
			c->dilation[i - 2] * (c->w[i] - 1) + 1 - c->pad[i - 2];
		used[i] = reach < c->x[i] ? reach : c->x[i];
	}
	return bytes_of(c, used);
}

/* Channels last. From a record of allocations on an RTX card (ConvNeXt-Tiny, 300 images, fp32, in
 * the notebook beside the data of measured.tsv): 2 x 2 convolutions of 192 and 384 channels copy
 * all three tensors in every direction, one of 96 channels takes 640 bytes; depthwise ones copy x
 * for the gradient of the weights. Half precision was not in it. */
static int64_t channels_last(const struct vc_cudnn_convolution *c)
{
	enum kind kind = kind_of(c);
	if (vc_null_card()->cc < 80 || vc_cudnn_width(c->type) != 4)
		return 0;
	if (kind == NARROW || kind == GROUPED)
		return c->direction == VC_CUDNN_FILTER ? bytes_of(c, c->x) : 0;
	if (kind != DENSE || c->x[1] < 128)
		return 0;
	return (c->direction == VC_CUDNN_DATA ? read_bytes_of_x(c) : bytes_of(c, c->x)) +
		bytes_of(c, c->y) + bytes_of(c, c->w);
}

/* The gradient of large weights over few pixels is summed from parts. Which sizes of workspace
 * bring a run's peak within 40 MiB of what was measured was looked up for 22 runs of MnasNet and
 * MobileNetV2 of 200 to 764 images: one part an image up to 326 images (11 of 13 runs; two want
 * two parts), one part for six images from 482 on (8 of 9). Between them the heuristics jump (377
 * images: a sixth, 400 and 403: one an image, 455: a half), and nothing is counted, which is off
 * by 4 % at most. Seen on the RTX 3060 only, and for one layer, of 320 to 1280 channels over 3 x
 * 3: narrower and wider ones show nothing of it. */
static int64_t in_parts(const struct vc_cudnn_convolution *c)
{
	int64_t pixels = 1, w = bytes_of(c, c->w), images = c->x[0];
	for (int i = 2; i < c->n; i++)
		pixels *= c->y[i];
	if (vc_null_card()->cc != 86 || c->direction != VC_CUDNN_FILTER || kind_of(c) != POINT ||
	    pixels > 9 || w < (1 << 20) || w > (2 << 20))
		return 0;
	return images <= 350 ? images * w : images > 480 ? images / 6 * w : 0;
}

/* What Winograd's transform F(4 x 4, 3 x 3) needs: 36 values for each tile of 4 x 4 pixels and
 * channel of input and output, and for each pair of channels. 0 where it cannot be used or is not
 * needed (8.0 and newer have tensor cores for fp32). */
static int64_t winograd(const struct vc_cudnn_convolution *c)
{
	if (vc_null_card()->cc >= 80 || vc_cudnn_width(c->type) != 4 || c->n != 4 ||
	    c->w[1] != c->x[1])
		return 0;
	for (int i = 0; i < 2; i++)
		if (c->w[i + 2] != 3 || c->stride[i] != 1 || c->dilation[i] != 1)
			return 0;
	int64_t tiles = c->x[0] * ((c->y[2] + 3) / 4) * ((c->y[3] + 3) / 4);
	return 36 * 4 * (tiles * (c->x[1] + c->w[0]) + c->x[1] * c->w[0]);
}

/* On those cards the gradient of the input of a wide convolution goes that way: the published
 * peaks of FCN and PSPNet on dilated ResNets (V100) come out 3 to 8 % low with copies and within
 * 2 % with this. Those of U-Nets show that narrow layers at high resolution do not
 * (tests/nullgpu/measured/segment.py). */
static int64_t transformed(const struct vc_cudnn_convolution *c)
{
	bool wide = c->x[1] >= 256 && c->w[0] >= 256;
	return wide && c->direction == VC_CUDNN_DATA ? winograd(c) : 0;
}

static int64_t by_rule(const struct vc_cudnn_convolution *c)
{
	int cc = vc_null_card()->cc;
	int64_t parts = in_parts(c) + transformed(c); /* never both */
	if (c->channels_last)
		return channels_last(c);
	if (parts || (kind_of(c) == FIRST && c->stride[0] >= c->w[2]))
		return parts; /* patches that do not overlap: 2.7 kB in the record above */
	for (size_t i = 0; i < sizeof copies / sizeof *copies; i++) {
		const struct copies *r = &copies[i];
		if (r->kind != kind_of(c) || r->direction != c->direction || cc < r->from ||
		    cc > r->to)
			continue;
		int64_t bytes = (r->x ? bytes_of(c, c->x) : 0) + (r->y ? bytes_of(c, c->y) : 0) +
			bytes_of(c, c->w);
		return r->most && bytes > (int64_t)r->most << 20 ? 0 : bytes;
	}
	return 0;
}

/* The most that a plan was seen to take: copies of all three tensors, or their transforms; for the
 * gradient of the weights eight partial sums of it besides, or one an image (all above). */
static int64_t at_most(const struct vc_cudnn_convolution *c)
{
	int64_t w = bytes_of(c, c->w), most = bytes_of(c, c->x) + bytes_of(c, c->y) + w,
		parts = 8 * w, tiles = winograd(c);
	if (tiles > most)
		most = tiles;
	if (c->direction != VC_CUDNN_FILTER)
		return most;
	if (kind_of(c) == POINT && w >= 1 << 20 && w <= 2 << 20 && c->y[2] <= 3 &&
	    c->x[0] * w > parts)
		parts = c->x[0] * w;
	return most + parts;
}

/* The rule is named in the verdict, with the largest that was counted and what it could be. Where
 * it was held against measured peaks, how far those lay off is the margin, not this interval:
 * fp32 on 8.6 and 8.9 (measured.tsv) and on 7.0, half precision on 8.0 (popular.tsv). */
static void doubt(const struct vc_cudnn_convolution *c, int64_t counted)
{
	int cc = vc_null_card()->cc;
	bool measured = vc_cudnn_width(c->type) == 2 ? cc == 80 : cc == 70 || cc == 86 || cc == 89;
	int64_t most = at_most(c);
	vc_null_range("cuDNN convolution workspaces, by rule", &(struct vc_null_range){
		.counted = (uint64_t)counted, .most = (uint64_t)(most > counted ? most : counted),
		.measured = measured });
	vc_null_report()->convolutions = 1;
}

void vc_cudnn_plans(const struct vc_cudnn_convolution *c, struct vc_cudnn_plans *out)
{
	char key[KEY_SIZE];
	pthread_once(&once, read_tables);
	make_key(c, key);
	const struct row *r = look_up(key);
	if (r) {
		*out = r->plans;
	} else {
		int64_t most = by_rule(c);
		*out = (struct vc_cudnn_plans){ .n = most ? 2 : 1, .bytes = { most, 0 } };
		doubt(c, most);
	}
	write_log(key, out);
}
