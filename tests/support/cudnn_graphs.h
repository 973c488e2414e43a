/* SPDX-License-Identifier: Apache-2.0 */
/* cudnn_graphs.h - behind nullgpu/cudnn_graph.c: tables, rules and a report that are made here, and
 * graphs as a frontend makes them. */
#ifndef VC_CUDNN_GRAPHS_H
#define VC_CUDNN_GRAPHS_H

#include "tests/support/test.h"

enum { T_FLOAT = 0, CONV = 1, CONFIG = 3, HEURISTIC = 4, PLAN = 5, ENGINE = 6, GRAPH = 15,
       TENSOR = 17, POINTWISE = 13, A_INT64 = 3, A_INT = 8, A_BOOL = 2 };

/* What the other files were asked and told. */
static struct {
	char key[512], kept[512], logged[512], row[512]; /* row: the only one of the table */
	struct vc_cudnn_plans answer, in_row;           /* answer: of the real library */
	int asked;
	char named[128];
	struct vc_null_range range;
	struct vc_null_report report;
	uint64_t workspace;
	int workspaces;
	struct vc_null_product ran;
	struct vc_convolution ruled;
} seen;

void vc_null_range(const char *name, const struct vc_null_range *range)
{
	snprintf(seen.named, sizeof seen.named, "%s", name);
	seen.range = *range;
}

struct vc_null_report *vc_null_report(void)
{
	return &seen.report;
}

void vc_null_workspace(uint64_t bytes)
{
	seen.workspace = bytes;
	seen.workspaces++;
}

int vc_null_product(const char *const names[VC_NULL_RATES], void *stream,
		    const struct vc_null_product *work)
{
	assert_string_equal(names[VC_NULL_TF32], "cudnn_plan_tf32");
	assert_ptr_equal(stream, &seen);
	seen.ran = *work;
	return 0;
}

int cudnnGetStream(struct handle *h, void **stream)
{
	*stream = &seen;
	return 0;
}

void vc_cudnn_key(const struct vc_convolution *c, enum vc_plans_mode mode, char key[VC_PLANS_KEY])
{
	vc_convolution_text(c, vc_plans_list(mode), key);
}

bool vc_cudnn_look_up(const char *key, struct vc_cudnn_plans *out)
{
	if (!*seen.key)
		snprintf(seen.key, sizeof seen.key, "%s", key);
	if (strcmp(key, seen.row) != 0)
		return false;
	*out = seen.in_row;
	return true;
}

bool vc_cudnn_ask(const struct vc_cudnn_node *graph, enum vc_plans_mode mode, const char *key,
		  struct vc_cudnn_plans *out)
{
	seen.asked++;
	if (seen.answer.n)
		*out = seen.answer;
	return seen.answer.n > 0;
}

void vc_cudnn_keep(const char *key, const struct vc_cudnn_plans *p)
{
	assert_memory_equal(p, &seen.answer, sizeof *p);
	snprintf(seen.kept, sizeof seen.kept, "%s", key);
}

void vc_cudnn_log(const char *key, const struct vc_cudnn_plans *p)
{
	snprintf(seen.logged, sizeof seen.logged, "%s", key);
}

void vc_cudnn_by_rule(const struct vc_convolution *c, struct vc_cudnn_plans *out)
{
	seen.ruled = *c;
	*out = (struct vc_cudnn_plans){ .n = 2, .at = { { .bytes = 700 }, { .bytes = 0 } } };
}

void vc_cudnn_graph_put(const struct vc_cudnn_node *graph, struct vc_wire *w)
{
	vc_wire_put(w, "foobar", 6);
}

/* ---- descriptors, as a frontend makes them ---- */

typedef struct vc_cudnn_node *node;

static node make(int type)
{
	node d = NULL;

	assert_int_equal(cudnnBackendCreateDescriptor(type, &d), 0);
	return d;
}

static void set(node d, int name, int64_t n, const int64_t *values)
{
	cudnnBackendSetAttribute(d, name, A_INT64, n, values);
}

static void set_int(node d, int name, int value)
{
	cudnnBackendSetAttribute(d, name, A_INT, 1, &value);
}

/* Refers to them, and lets go of them. */
static void hand(node from, int name, int64_t n, node *to)
{
	cudnnBackendSetAttribute(from, name, VC_CUDNN_DESCRIPTOR, n, to);
	for (int64_t i = 0; i < n; i++)
		cudnnBackendDestroyDescriptor(to[i]);
}

static void hand_one(node from, int name, node to)
{
	hand(from, name, 1, &to);
}

#define SIZES(...) (const int64_t[]){ __VA_ARGS__ }, sizeof((int64_t[]){ __VA_ARGS__ }) / 8

/* In memory one behind the other in the usual order; last: channels last. */
static node tensor_in(int type, bool last, const int64_t *sizes, size_t n)
{
	node d = make(TENSOR);
	int64_t stride[8], step = 1;

	for (size_t i = 0; i < n; i++) {
		size_t k = !last ? n - 1 - i : i == 0 ? 1 : i == n - 1 ? 0 : n - i;

		stride[k] = step;
		step *= sizes[k];
	}
	set_int(d, A_TENSOR_TYPE, type);
	set(d, A_TENSOR_SIZES, (int64_t)n, sizes);
	set(d, A_TENSOR_STRIDES, (int64_t)n, stride);
	return d;
}

/* An operation with those attributes, from `first` on: the convolution, w, x, y. */
static node convolution(int type, int first, node w, node x, node y)
{
	const int64_t stride[] = { 1, 2, 3 }, pad[] = { 4, 5, 6 }, dilation[] = { 7, 8, 9 };
	node op = make(type), conv = make(CONV);

	set(conv, A_CONV_STRIDES, 3, stride);
	set(conv, A_CONV_PADS, 3, pad);
	set(conv, A_CONV_DILATIONS, 3, dilation);
	hand_one(op, first, conv);
	hand_one(op, first + 1, w);
	hand_one(op, first + 2, x);
	hand_one(op, first + 3, y);
	return op;
}

static node graph_of(int64_t n, node *ops)
{
	node g = make(GRAPH);

	hand(g, A_GRAPH_OPS, n, ops);
	return g;
}

/* What the heuristics answer for the graph, which is given away; at most `n` configurations. */
static int64_t ask(node g, int mode, int64_t n, node *config)
{
	node h = make(HEURISTIC);
	int64_t told = -1;

	memset(seen.key, 0, sizeof seen.key + sizeof seen.kept + sizeof seen.logged);
	seen.asked = 0;
	memset(seen.named, 0, sizeof seen.named);
	hand_one(h, A_HEUR_GRAPH, g);
	if (mode >= 0)
		set_int(h, A_HEUR_MODE, mode);
	for (int64_t i = 0; i < n; i++)
		config[i] = make(CONFIG);
	cudnnBackendGetAttribute(h, A_HEUR_RESULTS, VC_CUDNN_DESCRIPTOR, n, &told,
				 n ? config : NULL);
	cudnnBackendDestroyDescriptor(h);
	return told;
}

static int64_t get(node d, int name)
{
	int64_t v = -1, n = -1;

	cudnnBackendGetAttribute(d, name, A_INT64, 1, &n, &v);
	assert_int_equal(n, 1);
	return v;
}

#define HASH "85944171f73967e8" /* FNV-1a of "foobar", as its authors publish it */

static node four(bool last, int64_t a, int64_t b, int64_t c, int64_t d)
{
	return tensor_in(T_FLOAT, last, SIZES(a, b, c, d));
}

static node forward(node w, node x, node y)
{
	return convolution(D_FORWARD, A_FORWARD_CONV, w, x, y);
}

static node usual(void)
{
	node op = forward(four(false, 8, 6, 3, 3), four(false, 2, 6, 9, 9),
			  four(false, 2, 8, 7, 7));

	return graph_of(1, &op);
}

#define REST " f32 nchw 2x6x9x9 8x6x3x3 2x8x7x7 1x2 4x5 7x8"

static struct vc_cudnn_plans three_plans(uint32_t notes, uint32_t behavior)
{
	return (struct vc_cudnn_plans){ .n = 3, .at = { { .bytes = 500 },
		{ .bytes = 900, .notes = notes }, { .bytes = 300, .behavior = behavior } } };
}

#endif
