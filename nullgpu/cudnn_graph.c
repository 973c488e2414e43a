/* SPDX-License-Identifier: Apache-2.0 */
/* cudnn_graph.c - libcudnn, graph interface: descriptors, engines, and the workspace of plans.
 *
 * Descriptors remember what the program sets. A query of the heuristics answers with one engine a
 * plan of cudnn_workspace.c: the program takes the first whose workspace it can have. */
#include "nullgpu/cudnn_workspace.h"

#include <stdlib.h>
#include <string.h>

/* cudnnBackendAttributeName_t */
enum {
	A_CONV_DILATIONS = 102,
	A_CONV_STRIDES = 103,
	A_CONV_PADS = 105 /* before; PyTorch pads both sides alike */,
	A_HEUR_GRAPH = 201,
	A_HEUR_RESULTS = 202,
	A_CFG_ENGINE = 300,
	A_CFG_WORKSPACE = 303,
	A_CFG_SHARED = 304,
	A_PLAN_CONFIG = 401,
	A_PLAN_WORKSPACE = 402,
	A_FORWARD_CONV = 702,
	A_FORWARD_W,
	A_FORWARD_X,
	A_FORWARD_Y,
	A_DATA_CONV = 708,
	A_DATA_W,
	A_DATA_DX,
	A_DATA_DY,
	A_FILTER_CONV = 714,
	A_FILTER_DW,
	A_FILTER_X,
	A_FILTER_DY,
	A_GRAPH_OPS = 801,
	A_GRAPH_ENGINES = 802,
	A_TENSOR_TYPE = 901,
	A_TENSOR_SIZES = 902,
	A_TENSOR_STRIDES = 903,
	A_TENSOR_VIRTUAL = 907,
	A_ENGINE_GRAPH = 1300,
	A_ENGINE_INDEX = 1301,
	A_ENGINE_NOTE = 1303,
	A_ENGINE_BEHAVIOR = 1305,
};
/* cudnnBackendDescriptorType_t */
enum { T_DESCRIPTOR = 15 }; /* cudnnBackendAttributeType_t */
enum { D_FORWARD = 10, D_FILTER = 11, D_DATA = 12 };

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
	static const unsigned char widths[] = { 8, 4, 1, 8, 4, 8, 8, 4, 4, 4, 4, 4, 4, 4, 4, 8,
					       4, 4, 4, 4, 4, 4, 4, 4, 1, 4, 8, 4, 4, 4, 4 };
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

static void copy_numbers(const struct descriptor *d, int name, int64_t *out, int n)
{
	for (int i = 0; i < n; i++)
		out[i] = number(d, name, i);
}

/* Attributes of the three convolutions: the convolution, w, x and y or their gradients. */
struct operation {
	int type, conv, w, x, y;
	enum vc_cudnn_direction direction;
};

static const struct operation operations[] = {
	{ D_FORWARD, A_FORWARD_CONV, A_FORWARD_W, A_FORWARD_X, A_FORWARD_Y, VC_CUDNN_FORWARD },
	{ D_DATA, A_DATA_CONV, A_DATA_W, A_DATA_DX, A_DATA_DY, VC_CUDNN_DATA },
	{ D_FILTER, A_FILTER_CONV, A_FILTER_DW, A_FILTER_X, A_FILTER_DY, VC_CUDNN_FILTER },
};

/* Whether the operation is a convolution, and which. */
static bool read_convolution(const struct descriptor *op, struct vc_cudnn_convolution *c)
{
	const struct operation *o = operations, *end = operations + 3;
	while (o < end && o->type != op->type)
		o++;
	if (o == end)
		return false;
	const struct descriptor *conv = linked(op, o->conv, 0), *x = linked(op, o->x, 0);
	const struct attribute *sizes = find(x, A_TENSOR_SIZES), *type = find(x, A_TENSOR_TYPE);
	if (!sizes || !type || sizes->count < 3 || sizes->count > VC_CUDNN_SPATIAL + 2)
		return false;
	*c = (struct vc_cudnn_convolution){ .direction = o->direction, .n = (int)sizes->count };
	memcpy(&c->type, type->value, sizeof c->type);
	c->channels_last = number(x, A_TENSOR_STRIDES, 1) == 1 && number(x, A_TENSOR_SIZES, 1) > 1;
	copy_numbers(x, A_TENSOR_SIZES, c->x, c->n);
	copy_numbers(linked(op, o->w, 0), A_TENSOR_SIZES, c->w, c->n);
	copy_numbers(linked(op, o->y, 0), A_TENSOR_SIZES, c->y, c->n);
	copy_numbers(conv, A_CONV_STRIDES, c->stride, c->n - 2);
	copy_numbers(conv, A_CONV_PADS, c->pad, c->n - 2);
	copy_numbers(conv, A_CONV_DILATIONS, c->dilation, c->n - 2);
	return true;
}

/* Elements of the largest tensor that an operation really reads or writes. */
static int64_t largest_tensor(const struct descriptor *op)
{
	int64_t most = 0;
	for (const struct attribute *a = op ? op->attributes : NULL; a; a = a->next)
		for (int64_t i = 0; a->type == T_DESCRIPTOR && i < a->count; i++) {
			const struct attribute *sizes = find(pointer(a, i), A_TENSOR_SIZES);
			const struct attribute *v = find(pointer(a, i), A_TENSOR_VIRTUAL);
			int64_t n = sizes != NULL;
			for (int64_t d = 0; sizes && d < sizes->count; d++)
				n *= number(pointer(a, i), A_TENSOR_SIZES, d);
			if (!(v && v->value[0]) && n > most)
				most = n;
		}
	return most;
}

/* Fused attention. The frontend that PyTorch is built with adds its own scratch (an fp32 gradient
 * of the queries) to what the library's plan wants, and asks for it; left to the library is at
 * most the gradient of the scores, which it may keep up to 256 MiB of (cudnn_frontend, node
 * scaled_dot_product_flash_attention.h, max_dp_workspace_bytes), a sum a query, and another fp32
 * gradient: no more than twice 4 bytes an element of the largest tensor. */
static void doubt(const struct descriptor *graph, const struct attribute *ops)
{
	int64_t most = 0;
	for (int64_t i = 0; ops && i < ops->count; i++) {
		int64_t n = largest_tensor(linked(graph, A_GRAPH_OPS, i));
		most = n > most ? n : most;
	}
	vc_null_range("cuDNN graphs without a convolution (attention)",
		      &(struct vc_null_range){ .most = (256ull << 20) + 8 * (uint64_t)most });
}

/* The plans for an operation graph: those of its convolution, else one without workspace. */
static void graph_plans(const struct descriptor *graph, struct vc_cudnn_plans *out)
{
	const struct attribute *ops = find(graph, A_GRAPH_OPS);
	struct vc_cudnn_convolution c;
	*out = (struct vc_cudnn_plans){ .n = 1 };
	for (int64_t i = 0; ops && i < ops->count; i++) {
		const struct descriptor *op = linked(graph, A_GRAPH_OPS, i);
		if (op && read_convolution(op, &c)) {
			vc_cudnn_plans(&c, out);
			return;
		}
	}
	doubt(graph, ops);
}

static int64_t plan_workspace(const struct descriptor *graph, int64_t engine)
{
	struct vc_cudnn_plans plans;
	graph_plans(graph, &plans);
	return engine >= 0 && engine < plans.n ? plans.bytes[engine] : 0;
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

VC_API_RETURNS(cudnnBackendInitialize, (struct descriptor *d), 0)
VC_API_RETURNS(cudnnBackendFinalize, (struct descriptor *d), 0)

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
		d->engine = number(engine, A_ENGINE_INDEX, 0);
		d->workspace = plan_workspace(linked(engine, A_ENGINE_GRAPH, 0), d->engine);
	}
	return 0;
}

/* The caller brings the configurations to be filled; how many there are is only told when it brings
 * none, else how many were filled: newer frontends bring one and take the answer for its length. */
static int64_t heuristic_results(const struct descriptor *heuristic, int64_t wanted,
				 struct descriptor **out)
{
	struct vc_cudnn_plans plans;
	graph_plans(linked(heuristic, A_HEUR_GRAPH, 0), &plans);
	for (int64_t i = 0; out && i < wanted && i < plans.n; i++) {
		out[i]->workspace = plans.bytes[i];
		out[i]->engine = i;
		/* benchmarking must find the first engine to be the fastest, as on a card */
		out[i]->moved = plans.bytes[0] << (2 * i);
	}
	return out && wanted < plans.n ? wanted : plans.n;
}

VC_API(int, cudnnBackendGetAttribute, struct descriptor *d, int name, int type, int64_t wanted,
       int64_t *count, void *out)
{
	int64_t n = 1, v = 0;
	struct vc_cudnn_plans plans;
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
	case A_GRAPH_ENGINES:
		graph_plans(d, &plans);
		v = plans.n;
		break;
	case A_ENGINE_NOTE: case A_ENGINE_BEHAVIOR: n = 0; break; /* no notes */
	default:
		a = find(d, name);
		n = a ? a->count : 0;
		if (a && out && wanted > 0)
			memcpy(out, a->value,
			       (size_t)(wanted < n ? wanted : n) * value_width(type));
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
