/* SPDX-License-Identifier: Apache-2.0 */
/* cudnn_graph.c - libcudnn, graph interface: descriptors, engines, and the workspace of plans.
 *
 * Descriptors remember what the program sets. A query of the heuristics answers with one engine
 * that needs no workspace, or, for the one kind of operation whose workspace is known to be
 * large, with two: the one that asks for it first, the one without second, which is the plan a
 * program falls back to when the allocation fails.
 *
 * The rule, from measured peaks of convolution nets (fp32 and half, dense, channels first): the
 * gradient of the input of a dense k x k convolution takes about bytes(dx) + bytes(dy) + bytes(w),
 * room for all three in the other memory layout. 1 x 1 and grouped convolutions take none, nor do
 * tensors that are channels-last already; forward and weight gradient none either. */
#include "nullgpu/cudnn.h"

#include <stdlib.h>
#include <string.h>

/* cudnnBackendAttributeName_t */
enum {
	A_HEUR_GRAPH = 201, A_HEUR_RESULTS = 202,
	A_CFG_ENGINE = 300, A_CFG_WORKSPACE = 303, A_CFG_SHARED = 304,
	A_PLAN_CONFIG = 401, A_PLAN_WORKSPACE = 402,
	A_DATA_W = 709, A_DATA_DX = 710, A_DATA_DY = 711,
	A_GRAPH_OPS = 801, A_GRAPH_ENGINES = 802,
	A_TENSOR_TYPE = 901, A_TENSOR_SIZES = 902, A_TENSOR_STRIDES = 903,
	A_ENGINE_GRAPH = 1300, A_ENGINE_INDEX = 1301, A_ENGINE_NOTE = 1303, A_ENGINE_BEHAVIOR = 1305,
};
/* cudnnBackendDescriptorType_t */
enum { T_DESCRIPTOR = 15 }; /* cudnnBackendAttributeType_t */
enum { D_PLAN = 5, D_BACKWARD_DATA = 12 };

struct attribute {
	int name, type;
	int64_t count;
	size_t bytes;
	struct attribute *next;
	char value[];
};

struct descriptor {
	int type;
	int users;          /* its owner and the attributes that point at it */
	int64_t workspace;  /* of an engine configuration or a plan */
	int64_t engine;     /* 0 = the preferred one */
	int64_t moved;      /* bytes its modelled duration stands for */
	struct attribute *attributes;
};

/* Bytes of one value by cudnnBackendAttributeType_t; enumerations are ints. */
static size_t value_width(int type)
{
	static const unsigned char widths[] = { 8, 4, 1, 8, 4, 8, 8, 4, 4, 4, 4, 4, 4, 4, 4, 8, 4, 4,
		4, 4, 4, 4, 4, 4, 1, 4, 8, 4, 4, 4, 4 };
	return type >= 0 && type < (int)sizeof widths ? widths[type] : 8;
}

static const struct attribute *find(const struct descriptor *d, int name)
{
	const struct attribute *a = d ? d->attributes : NULL;
	while (a && a->name != name)
		a = a->next;
	return a;
}

static struct descriptor *pointer(const struct attribute *a, int64_t i)
{
	struct descriptor *to;
	memcpy(&to, a->value + (size_t)i * sizeof to, sizeof to);
	return to;
}

/* The descriptor that attribute `name` points at. */
static const struct descriptor *linked(const struct descriptor *d, int name, int64_t i)
{
	const struct attribute *a = find(d, name);
	return a && i < a->count ? pointer(a, i) : NULL;
}

static int64_t number(const struct descriptor *d, int name, int64_t i)
{
	const struct attribute *a = find(d, name);
	int64_t v = 0;
	if (a && i < a->count)
		memcpy(&v, a->value + (size_t)i * sizeof v, sizeof v);
	return v;
}

static int64_t tensor_bytes(const struct descriptor *t)
{
	const struct attribute *sizes = find(t, A_TENSOR_SIZES), *type = find(t, A_TENSOR_TYPE);
	int kind = 0;
	if (!sizes || !type)
		return 0;
	memcpy(&kind, type->value, sizeof kind);
	int64_t n = (int64_t)vc_cudnn_width(kind);
	for (int64_t i = 0; i < sizes->count; i++)
		n *= number(t, A_TENSOR_SIZES, i);
	return n;
}

static int64_t backward_data_workspace(const struct descriptor *op)
{
	const struct descriptor *w = linked(op, A_DATA_W, 0), *dx = linked(op, A_DATA_DX, 0),
		*dy = linked(op, A_DATA_DY, 0);
	const struct attribute *sizes = find(w, A_TENSOR_SIZES);
	if (!sizes || !dx || !dy)
		return 0;
	int64_t kernel = 1;
	for (int64_t i = 2; i < sizes->count; i++)
		kernel *= number(w, A_TENSOR_SIZES, i);
	bool dense = number(w, A_TENSOR_SIZES, 1) == number(dx, A_TENSOR_SIZES, 1);
	bool channels_last = number(dx, A_TENSOR_STRIDES, 1) == 1 && number(dx, A_TENSOR_SIZES, 1) > 1;
	if (kernel == 1 || !dense || channels_last)
		return 0;
	return tensor_bytes(dx) + tensor_bytes(dy) + tensor_bytes(w);
}

/* What the preferred engine for an operation graph asks for. */
static int64_t graph_workspace(const struct descriptor *graph)
{
	const struct attribute *ops = find(graph, A_GRAPH_OPS);
	for (int64_t i = 0; ops && i < ops->count; i++) {
		const struct descriptor *op = linked(graph, A_GRAPH_OPS, i);
		if (op && op->type == D_BACKWARD_DATA)
			return backward_data_workspace(op);
	}
	return 0;
}

VC_API(int, cudnnBackendCreateDescriptor, int type, struct descriptor **out)
{
	*out = calloc(1, sizeof **out);
	if (!*out)
		return VC_CUDNN_NOMEM;
	(*out)->type = type;
	(*out)->users = 1;
	return 0;
}

/* Frontends drop a descriptor once another one refers to it; the library has copied it by then.
 * Here it lives on until the last reference is gone. */
VC_API(int, cudnnBackendDestroyDescriptor, struct descriptor *d)
{
	if (!d || --d->users > 0)
		return 0;
	while (d->attributes) {
		struct attribute *a = d->attributes;
		d->attributes = a->next;
		for (int64_t i = 0; a->type == T_DESCRIPTOR && i < a->count; i++)
			cudnnBackendDestroyDescriptor(pointer(a, i));
		free(a);
	}
	free(d);
	return 0;
}

VC_API(int, cudnnBackendInitialize, struct descriptor *d)
{
	return 0;
}

VC_API(int, cudnnBackendFinalize, struct descriptor *d)
{
	return 0;
}

VC_API(int, cudnnBackendSetAttribute, struct descriptor *d, int name, int type, int64_t count,
       const void *value)
{
	size_t bytes = (size_t)count * value_width(type);
	struct attribute *a = malloc(sizeof *a + bytes);
	if (!a)
		return VC_CUDNN_NOMEM;
	*a = (struct attribute){ .name = name, .type = type, .count = count, .bytes = bytes,
		.next = d->attributes };
	memset(a->value, 0, bytes);
	if (value)
		memcpy(a->value, value, bytes);
	d->attributes = a;
	for (int64_t i = 0; type == T_DESCRIPTOR && i < count; i++)
		if (pointer(a, i))
			pointer(a, i)->users++;
	if (name == A_PLAN_CONFIG && linked(d, name, 0)) { /* it may be gone later */
		d->workspace = linked(d, name, 0)->workspace;
		d->moved = linked(d, name, 0)->moved;
	}
	if (name == A_CFG_ENGINE && linked(d, name, 0)) {
		const struct descriptor *engine = linked(d, name, 0);
		bool preferred = number(engine, A_ENGINE_INDEX, 0) == 0;
		d->engine = !preferred;
		d->workspace = preferred ? graph_workspace(linked(engine, A_ENGINE_GRAPH, 0)) : 0;
	}
	return 0;
}

/* The caller brings the configurations to be filled. */
static int64_t heuristic_results(const struct descriptor *heuristic, int64_t wanted,
				 struct descriptor **out)
{
	int64_t workspace = graph_workspace(linked(heuristic, A_HEUR_GRAPH, 0));
	int64_t n = workspace ? 2 : 1;
	for (int64_t i = 0; out && i < wanted && i < n; i++) {
		out[i]->workspace = i ? 0 : workspace;
		out[i]->engine = i;
		/* benchmarking must find the engine with the workspace faster, as on a card */
		out[i]->moved = i ? 4 * workspace : workspace;
	}
	return n;
}

VC_API(int, cudnnBackendGetAttribute, struct descriptor *d, int name, int type, int64_t wanted,
       int64_t *count, void *out)
{
	int64_t n = 1, v = 0;
	const struct attribute *a;
	switch (name) {
	case A_HEUR_RESULTS:
		n = heuristic_results(d, wanted, out);
		out = NULL;
		break;
	case A_CFG_ENGINE: /* stays the caller's own descriptor, told which engine it is */
		if (out && wanted > 0)
			(*(struct descriptor **)out)->engine = d->engine;
		out = NULL;
		break;
	case A_CFG_SHARED: break;
	case A_PLAN_WORKSPACE: case A_CFG_WORKSPACE: v = d->workspace; break;
	case A_ENGINE_INDEX: v = d->engine; break;
	case A_GRAPH_ENGINES: v = graph_workspace(d) ? 2 : 1; break;
	case A_ENGINE_NOTE: case A_ENGINE_BEHAVIOR: n = 0; break; /* no notes */
	default:
		a = find(d, name);
		n = a ? a->count : 0;
		if (a && out && wanted > 0)
			memcpy(out, a->value, (size_t)(wanted < n ? wanted : n) * value_width(type));
		out = NULL;
	}
	if (out && n && wanted > 0)
		memcpy(out, &v, value_width(type));
	if (count)
		*count = n;
	return 0;
}

VC_SHARED int cudnnGetStream(void *h, void **stream);

VC_API(int, cudnnBackendExecute, void *h, const struct descriptor *plan, void *pack)
{
	void *stream;
	cudnnGetStream(h, &stream);
	return vc_null_library_work("cudnn_plan", stream, (double)plan->moved, 0);
}
