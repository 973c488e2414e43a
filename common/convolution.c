/* SPDX-License-Identifier: Apache-2.0 */
/* convolution.c - see convolution.h */
#include "common/convolution.h"

enum { FIELDS = 9, TENSORS = 3 }; /* of a key; of them sizes of tensors begin at the fourth */

static const char *const directions[] = { "forward", "data", "filter" };
/* cudnnDataType_t */
static const char *const types[] = { "f32", "f64", "f16", "i8", "i32",
				    "i8",  "u8",  "u8",  "i8", "bf16" };
enum { TYPES = sizeof(types) / sizeof(*types) };

/* ---- a convolution ---- */

static size_t put_sizes(char *key, size_t at, const int64_t *v, int n)
{
	for (int i = 0; i < n && at < VC_PLANS_KEY; i++)
		at += (size_t)snprintf(key + at, VC_PLANS_KEY - at, "%c%lld", i ? 'x' : ' ',
				       (long long)v[i]);
	return at < VC_PLANS_KEY ? at : VC_PLANS_KEY;
}

void vc_convolution_text(const struct vc_convolution *c, const char *list, char key[VC_PLANS_KEY])
{
	const int64_t *sizes[] = { c->x, c->w, c->y };
	const int64_t *steps[] = { c->stride, c->pad, c->dilation };
	bool known = c->type >= 0 && c->type < TYPES;
	size_t at = (size_t)snprintf(key, VC_PLANS_KEY, "%s%s %s %s", directions[c->direction],
				     list, known ? types[c->type] : "other",
				     c->channels_last ? "nhwc" : "nchw");

	for (int i = 0; i < TENSORS; i++)
		at = put_sizes(key, at, sizes[i], c->n);
	for (int i = 0; i < TENSORS; i++)
		at = put_sizes(key, at, steps[i], c->n - 2);
}

/* How many numbers of "3x4x5" were read; 0: it is none such, has too many, or one that no tensor
 * has, whose products would not be numbers. */
static int read_sizes(const char *s, size_t length, int64_t *v, int most)
{
	const char *end = s + length;
	int n = 0;

	for (char *rest; n < most; s = rest + 1) {
		v[n++] = strtoll(s, &rest, 10);
		if (rest == s || v[n - 1] < 0 || v[n - 1] > INT32_MAX)
			return 0;
		if (rest == end)
			return n;
		if (rest > end || *rest != 'x')
			return 0;
	}
	return 0;
}

static int find(const char *const *name, int n, const char *s, size_t length)
{
	for (int i = 0; i < n; i++)
		if (strlen(name[i]) == length && !strncmp(name[i], s, length))
			return i;
	return -1;
}

static bool read_field(struct vc_convolution *c, int field, const char *s, size_t length)
{
	int64_t *const numbers[] = { c->x, c->w, c->y, c->stride, c->pad, c->dilation };
	int n;

	switch (field) {
	case 0:
		n = find(directions, TENSORS, s, length);
		c->direction = (enum vc_convolution_direction)n;
		return n >= 0;
	case 1:
		c->type = find(types, TYPES, s, length);
		return c->type >= 0;
	case 2:
		c->channels_last = !strncmp(s, "nhwc", length);
		return length == 4 && (c->channels_last || !strncmp(s, "nchw", length));
	default:
		n = read_sizes(s, length, numbers[field - 3],
			       field < 3 + TENSORS ? VC_CONVOLUTION_SIZES : VC_CONVOLUTION_SPATIAL);
		c->n = field == 3 ? n : c->n;
		return n > 0 && n == (field < 3 + TENSORS ? c->n : c->n - 2);
	}
}

bool vc_convolution_read(const char *key, struct vc_convolution *c)
{
	*c = (struct vc_convolution){ .n = 0 };
	for (int field = 0; field < FIELDS; field++) {
		size_t length = strcspn(key, " ");
		bool last = field == FIELDS - 1;

		if (!read_field(c, field, key, length) || (key[length] == ' ') == last)
			return false;
		key += length + !last;
	}
	return true;
}

bool vc_convolution_output(const struct vc_convolution *c, int64_t y[VC_CONVOLUTION_SIZES])
{
	int64_t made[VC_CONVOLUTION_SIZES] = { c->x[0], c->w[0] };

	for (int i = 2; i < c->n; i++) {
		int64_t kernel = c->dilation[i - 2] * (c->w[i] - 1) + 1;
		int64_t reach = c->x[i] + 2 * c->pad[i - 2] - kernel;

		if (reach < 0 || c->stride[i - 2] < 1)
			return false;
		made[i] = reach / c->stride[i - 2] + 1;
	}
	memcpy(y, made, sizeof(made));
	return true;
}

/* ---- a list of plans ---- */

/* A letter for each note, in the order of their numbers (cudnn_graph.h of the library): tensor
 * core, down-converted inputs, reduced precision reduction, FFT, nondeterministic, Winograd, its
 * tiles of 4, 6 and 13, strict about NaN; compiled at run time, int8 filter, int8 bias, native
 * graphs, cuBLASLt. */
static const char numerical[] = "tdrfnw461s", behavior[] = "CFBGL";

static int put_letters(char *out, size_t n, const char *letters, uint32_t notes)
{
	int k = 0;

	for (int i = 0; letters[i]; i++)
		if (notes >> i & 1 && (size_t)k + 1 < n)
			out[k++] = letters[i];
	return k;
}

int vc_cudnn_plans_text(const struct vc_cudnn_plans *p, char *out, size_t n)
{
	size_t at = 0;

	for (int i = 0; i < p->n && at + 64 < n; i++) {
		at += (size_t)snprintf(out + at, n - at, "%s%lld", i ? "," : "",
				       (long long)p->at[i].bytes);
		if (p->at[i].notes | p->at[i].behavior)
			out[at++] = ':';
		at += (size_t)put_letters(out + at, n - at, numerical, p->at[i].notes);
		at += (size_t)put_letters(out + at, n - at, behavior, p->at[i].behavior);
	}
	out[at] = 0;
	return (int)at;
}

/* The letters behind a number; where they end. NULL: one is none of ours. */
static const char *read_letters(const char *s, struct vc_cudnn_plan *p)
{
	for (; *s && *s != ','; s++) {
		const char *a = strchr(numerical, *s), *b = strchr(behavior, *s);

		if (!a && !b)
			return NULL;
		p->notes |= a ? 1u << (a - numerical) : 0;
		p->behavior |= b ? 1u << (b - behavior) : 0;
	}
	return s;
}

bool vc_cudnn_plans_read(const char *text, struct vc_cudnn_plans *p)
{
	const char *s = text;

	for (p->n = 0; p->n < VC_PLANS_MOST; s++) {
		char *end;
		struct vc_cudnn_plan plan = { .bytes = strtoll(s, &end, 10) };

		if (end == s || plan.bytes < 0)
			return false;
		s = *end == ':' ? read_letters(end + 1, &plan) : end;
		if (!s || (*s && *s != ','))
			return false;
		p->at[p->n++] = plan;
		if (!*s)
			return true;
	}
	return false;
}
