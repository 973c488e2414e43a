/* SPDX-License-Identifier: Apache-2.0 */
/* cudnn_graph.c - libcudnn, graph interface: descriptors, engines, and the workspace of plans.
 *
 * Descriptors remember what the program sets. A query of the heuristics answers with one engine a
 * plan: of a table, of the real library, which is asked with the same descriptors, else by rule.
 * The program goes by the notes of the engines as it does on a card, and takes the first whose
 * workspace it can have. */
#include "nullgpu/cudnn_graph.h"
#include "nullgpu/usage.h"

/* cudnnBackendAttributeName_t */
enum {
	A_CONV_DILATIONS = 102,
	A_CONV_STRIDES = 103,
	A_CONV_PADS = 105 /* before; PyTorch pads both sides alike */,
	A_HEUR_MODE = 200,
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
	A_POINTWISE_CHOICE = 758, /* what a selection goes by */
	A_GRAPH_OPS = 801,
	A_GRAPH_ENGINES = 802,
	A_TENSOR_ALIGNMENT = 900,
	A_TENSOR_TYPE = 901,
	A_TENSOR_SIZES = 902,
	A_TENSOR_STRIDES = 903,
	A_TENSOR_VIRTUAL = 907,
	A_ENGINE_GRAPH = 1300,
	A_ENGINE_INDEX = 1301,
	A_ENGINE_NOTE = 1303,
	A_ENGINE_BEHAVIOR = 1305,
	A_MATMUL_A = 1520,
	A_MATMUL_C = 1522,
	A_ATTENTION_Q = 2800,
	A_ATTENTION_K = 2801,
	A_ATTENTION_V = 2802,
};
/* cudnnBackendDescriptorType_t */
enum { D_FORWARD = 10, D_FILTER = 11, D_DATA = 12, D_MATMUL = 19, D_ATTENTION = 41 };
/* cudnnDataType_t; cudnnBackendNumericalNote_t */
enum { T_HALF = 2, T_BFLOAT16 = 9, N_TENSOR_CORE = 0 };

static const struct vc_cudnn_value *find(const struct vc_cudnn_node *d, int name)
{
	const struct vc_cudnn_value *a = d ? d->attributes : NULL;
	while (a && a->name != name)
		a = a->next;
	return a;
}

/* The descriptor that attribute `name` points at. */
static const struct vc_cudnn_node *linked(const struct vc_cudnn_node *d, int name,
						int64_t i)
{
	const struct vc_cudnn_value *a = find(d, name);
	return a && i < a->count ? vc_cudnn_linked(a, i) : NULL;
}

static int64_t number(const struct vc_cudnn_node *d, int name, int64_t i)
{
	const struct vc_cudnn_value *a = find(d, name);
	int64_t v = 0;
	if (a && i < a->count)
		memcpy(&v, a->value + (size_t)i * sizeof v, sizeof v);
	return v;
}

static void copy_numbers(const struct vc_cudnn_node *d, int name, int64_t *out, int n)
{
	for (int i = 0; i < n; i++)
		out[i] = number(d, name, i);
}

/* Attributes of the three convolutions: the convolution, w, x and y or their gradients. */
struct operation {
	int type, conv, w, x, y;
	enum vc_convolution_direction direction;
};

static const struct operation operations[] = {
	{ D_FORWARD, A_FORWARD_CONV, A_FORWARD_W, A_FORWARD_X, A_FORWARD_Y,
	  VC_CONVOLUTION_FORWARD },
	{ D_DATA, A_DATA_CONV, A_DATA_W, A_DATA_DX, A_DATA_DY, VC_CONVOLUTION_DATA },
	{ D_FILTER, A_FILTER_CONV, A_FILTER_DW, A_FILTER_X, A_FILTER_DY, VC_CONVOLUTION_FILTER },
};

/* Whether the operation is a convolution, and which. */
static bool read_convolution(const struct vc_cudnn_node *op, struct vc_convolution *c)
{
	const struct operation *o = operations, *end = operations + 3;
	while (o < end && o->type != op->type)
		o++;
	if (o == end)
		return false;
	const struct vc_cudnn_node *conv = linked(op, o->conv, 0), *x = linked(op, o->x, 0);
	const struct vc_cudnn_value *sizes = find(x, A_TENSOR_SIZES);
	const struct vc_cudnn_value *type = find(x, A_TENSOR_TYPE);
	if (!sizes || !type || sizes->count < 3 || sizes->count > VC_CONVOLUTION_SIZES)
		return false;
	*c = (struct vc_convolution){ .direction = o->direction, .n = (int)sizes->count };
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
static int64_t largest_tensor(const struct vc_cudnn_node *op)
{
	int64_t most = 0;
	for (const struct vc_cudnn_value *a = op ? op->attributes : NULL; a; a = a->next)
		for (int64_t i = 0; a->type == VC_CUDNN_DESCRIPTOR && i < a->count; i++) {
			const struct vc_cudnn_node *t = vc_cudnn_linked(a, i);
			const struct vc_cudnn_value *sizes = find(t, A_TENSOR_SIZES);
			const struct vc_cudnn_value *v = find(t, A_TENSOR_VIRTUAL);
			int64_t n = sizes != NULL;
			for (int64_t d = 0; sizes && d < sizes->count; d++)
				n *= number(t, A_TENSOR_SIZES, d);
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
static void doubt(const struct vc_cudnn_node *graph, const struct vc_cudnn_value *ops)
{
	int64_t most = 0;
	for (int64_t i = 0; ops && i < ops->count; i++) {
		int64_t n = largest_tensor(linked(graph, A_GRAPH_OPS, i));
		most = n > most ? n : most;
	}
	vc_null_range("cuDNN graphs without a convolution (attention)",
		      &(struct vc_null_range){ .most = (256ull << 20) + 8 * (uint64_t)most });
}

/* Whether a tensor lies in memory without gaps in that order, and on a boundary that kernels can
 * load from: cuDNN tells boundaries from 16 bytes on not apart. */
static bool is_plain(const struct vc_cudnn_node *t, int n, bool last)
{
	int64_t step = 1;
	for (int i = 0; i < n; i++) { /* the innermost dimension first */
		int d = !last ? n - 1 - i : i == 0 ? 1 : i == n - 1 ? 0 : n - i;
		int64_t size = number(t, A_TENSOR_SIZES, d);
		if (size != 1 && number(t, A_TENSOR_STRIDES, d) != step)
			return false;
		step *= size;
	}
	return !find(t, A_TENSOR_ALIGNMENT) || number(t, A_TENSOR_ALIGNMENT, 0) >= 16;
}

static bool are_plain(const struct vc_cudnn_node *op, const struct operation *o, int n, bool last)
{
	return is_plain(linked(op, o->x, 0), n, last) && is_plain(linked(op, o->w, 0), n, last) &&
		is_plain(linked(op, o->y, 0), n, last);
}

/* The graph is one convolution of plain tensors, which a row of a table describes. With one
 * channel, or one place, a tensor lies either way: the order is the one that all three have. */
static bool is_row(const struct vc_cudnn_value *ops, struct vc_convolution *c)
{
	const struct operation *o = operations;
	if (ops->count != 1)
		return false;
	const struct vc_cudnn_node *op = vc_cudnn_linked(ops, 0);
	while (o->direction != c->direction)
		o++;
	bool first = are_plain(op, o, c->n, false), last = are_plain(op, o, c->n, true);
	c->channels_last = !first || (c->channels_last && last);
	return first || last;
}

/* The key of any other graph. */
static void hash_graph(const struct vc_cudnn_node *graph, enum vc_plans_mode mode,
		       char key[VC_PLANS_KEY])
{
	struct vc_wire w = { 0 };
	uint64_t h = 14695981039346656037u; /* FNV-1a */
	vc_cudnn_graph_put(graph, &w);
	for (size_t i = 0; i < w.n; i++)
		h = (h ^ w.at[i]) * 1099511628211u;
	snprintf(key, VC_PLANS_KEY, "graph/%d %016llx", (int)mode, (unsigned long long)h);
	free(w.at);
}

/* The first convolution of the graph. */
static bool first_convolution(const struct vc_cudnn_value *ops, struct vc_convolution *c)
{
	for (int64_t i = 0; ops && i < ops->count; i++)
		if (vc_cudnn_linked(ops, i) && read_convolution(vc_cudnn_linked(ops, i), c))
			return true;
	return false;
}

/* A table that was recorded on a card, or by hand, has no row of its own for the fallback list. */
static bool look_up(const struct vc_convolution *c, enum vc_plans_mode mode, const char *key,
		    struct vc_cudnn_plans *out)
{
	char other[VC_PLANS_KEY];
	if (vc_cudnn_look_up(key, out))
		return true;
	if (!c || mode != VC_MODE_FALLBACK)
		return false;
	vc_cudnn_key(c, VC_MODE_INSTANT, other);
	return vc_cudnn_look_up(other, out) && !(out->at[0].notes | out->at[0].behavior);
}

/* On a card the library may order its plans otherwise than it does without one: that is named, and
 * the margin is that of measured convolution nets. Plans that were recorded on a card have no
 * notes. */
static void name_choice(struct vc_cudnn_plans *p)
{
	struct vc_null_range r = { .counted = (uint64_t)p->at[0].bytes, .measured = true };
	uint32_t notes = 0;
	r.least = r.most = r.counted;
	for (int i = 0; i < p->n; i++) {
		uint64_t bytes = (uint64_t)p->at[i].bytes;
		notes |= p->at[i].notes | p->at[i].behavior;
		r.least = bytes < r.least ? bytes : r.least;
		r.most = bytes > r.most ? bytes : r.most;
	}
	for (int i = 0; i < p->n; i++)
		p->at[i].recorded = !notes;
	if (!notes)
		return;
	vc_null_range("cuDNN convolution workspaces, as it names them without a card", &r);
	vc_null_report()->convolutions |= 1;
}

/* The plans for an operation graph: of a table, of the real library, else by the rule for its
 * convolution, else one without workspace. */
static void graph_plans(const struct vc_cudnn_node *graph, enum vc_plans_mode mode,
			struct vc_cudnn_plans *out)
{
	const struct vc_cudnn_value *ops = find(graph, A_GRAPH_OPS);
	struct vc_convolution c;
	char key[VC_PLANS_KEY];
	bool convolution = first_convolution(ops, &c), row = convolution && is_row(ops, &c);
	*out = (struct vc_cudnn_plans){ .n = 1 };
	if (!ops)
		return;
	if (row)
		vc_cudnn_key(&c, mode, key);
	else
		hash_graph(graph, mode, key);
	bool known = look_up(row ? &c : NULL, mode, key, out);
	if (!known && vc_cudnn_ask(graph, mode, key, out)) {
		vc_cudnn_keep(key, out);
		known = true;
	}
	if (known && convolution)
		name_choice(out);
	else if (convolution)
		vc_cudnn_by_rule(&c, out);
	else if (!known)
		doubt(graph, ops);
	if (row)
		vc_cudnn_log(key, out);
}

/* A plan that multiplies floats on tensor cores takes TF32; where the notes of the plan are not
 * known, that is what programs allow unless they say otherwise. */
static struct vc_null_number numbers_of(int type, const struct vc_cudnn_plan *plan)
{
	bool noted = plan->notes | plan->behavior;
	bool tf32 = !noted || plan->notes & 1u << N_TENSOR_CORE;
	/* the first three have the same number as cudaDataType */
	return vc_null_number(type == T_BFLOAT16 ? 14 : type > T_HALF ? 3 : type, tf32);
}

static double elements(const int64_t *sizes, int n)
{
	double product = 1;
	for (int i = 0; i < n; i++)
		product *= (double)sizes[i];
	return product;
}

/* The product that a convolution is: rows, columns, what is summed up, groups. */
static void as_product(const struct vc_convolution *c, double x, double y, double sum,
		       uint64_t dim[VC_WORK_DIMS])
{
	double groups = c->w[1] ? (double)c->x[1] / (double)c->w[1] : 1;
	double out = (double)c->w[0] / groups, in = (double)c->w[1];
	double places = c->w[0] ? y / (double)c->w[0] : 0, taps = in > 0 ? sum / in : 0;
	double m = c->direction == VC_CONVOLUTION_FILTER ? out :
		   c->direction == VC_CONVOLUTION_DATA && c->x[1] ? x / (double)c->x[1] : places;
	double n = c->direction == VC_CONVOLUTION_FILTER ? sum :
		   c->direction == VC_CONVOLUTION_DATA ? in : out;

	dim[0] = (uint64_t)m;
	dim[1] = (uint64_t)n;
	dim[2] = (uint64_t)(c->direction == VC_CONVOLUTION_FILTER ? places :
			    c->direction == VC_CONVOLUTION_DATA ? out * taps : sum);
	dim[3] = (uint64_t)groups;
}

static double volume(const struct vc_cudnn_node *t)
{
	const struct vc_cudnn_value *sizes = find(t, A_TENSOR_SIZES);
	double n = sizes != NULL;
	for (int64_t d = 0; sizes && d < sizes->count; d++)
		n *= (double)number(t, A_TENSOR_SIZES, d);
	return n;
}

/* Fused attention: one operation, or products with a softmax between them, the first of which are
 * the scores. A selection in it is the mask of a causal one. */
struct attention {
	const struct vc_cudnn_node *q, *scores, *keys;
	int products;
	double sums; /* multiplications and additions of all products without a mask */
	bool causal;
};

static struct attention attention_in(const struct vc_cudnn_value *ops)
{
	struct attention a = { 0 };
	for (int64_t i = 0; ops && i < ops->count; i++) {
		const struct vc_cudnn_node *op = vc_cudnn_linked(ops, i), *left, *out;
		a.causal |= find(op, A_POINTWISE_CHOICE) != NULL;
		if (op->type == D_MATMUL) {
			left = linked(op, A_MATMUL_A, 0);
			out = linked(op, A_MATMUL_C, 0);
			a.q = a.q ? a.q : left;
			a.scores = a.scores ? a.scores : out;
			a.sums += volume(out) * (double)number(left, A_TENSOR_SIZES, 3);
			a.products++;
		} else if (op->type == D_ATTENTION) {
			a.q = linked(op, A_ATTENTION_Q, 0);
			a.keys = linked(op, A_ATTENTION_K, 0);
			left = linked(op, A_ATTENTION_V, 0);
			double d = (double)number(a.q, A_TENSOR_SIZES, 3);
			double both = d + (double)number(left, A_TENSOR_SIZES, 3);
			a.sums += volume(a.q) * (double)number(a.keys, A_TENSOR_SIZES, 2) *
				  (d > 0 ? both / d : 0);
			a.products += 2;
		}
	}
	return a;
}

static struct vc_null_product attention_of(const struct vc_cudnn_value *ops,
					   const struct vc_cudnn_plan *plan)
{
	struct attention a = attention_in(ops);
	const struct vc_cudnn_value *kind = find(a.q, A_TENSOR_TYPE);
	int type = 0;
	if (!a.q || !kind || (!a.scores && !a.keys))
		return (struct vc_null_product){ 0 };
	memcpy(&type, kind->value, sizeof type);
	struct vc_null_number v = numbers_of(type, plan);
	double rows = (double)number(a.q, A_TENSOR_SIZES, 2);
	double k = (double)number(a.keys ? a.keys : a.scores, A_TENSOR_SIZES, a.keys ? 2 : 3);
	double heads = (double)(number(a.q, A_TENSOR_SIZES, 0) * number(a.q, A_TENSOR_SIZES, 1));
	double all = heads * rows * k, seen = 1;
	double d = all > 0 ? a.sums / (all * a.products) : 0; /* of keys and values, in the mean */
	if (a.causal)
		seen = (k >= rows ? k - (rows - 1) / 2 : k * (k + 1) / 2 / rows) / k;
	bool backward = a.products > 2;
	double one = v.width * heads * d;
	return (struct vc_null_product){ .operations = v.operations * a.sums * seen,
		.bytes = one * (backward ? 4 * rows + 4 * k : 2 * rows + 2 * k),
		.written = one * (backward ? rows + 2 * k : rows), .rate = v.rate,
		.kind = VC_WORK_ATTENTION,
		.dim = { (uint64_t)heads, (uint64_t)rows, (uint64_t)k, (uint64_t)d } };
}

/* What the i-th plan of a list does. Each output is a sum over the weights of one output channel,
 * in all three directions. Of a graph without a convolution nothing is known. */
static struct vc_null_product work_of(const struct vc_cudnn_node *graph,
				      const struct vc_cudnn_plan *plan, int64_t i)
{
	struct vc_convolution c;
	if (!first_convolution(find(graph, A_GRAPH_OPS), &c))
		return attention_of(find(graph, A_GRAPH_OPS), plan);
	struct vc_null_number v = numbers_of(c.type, plan);
	double x = elements(c.x, c.n), w = elements(c.w, c.n), y = elements(c.y, c.n);
	/* benchmarking must find the first engine to be the fastest, as on a card */
	double slower = 1 + 0.01 * (double)i;
	double sum = elements(c.w + 1, c.n - 1);
	struct vc_null_product p = { .bytes = slower * v.width * (x + w + y),
		.operations = slower * v.operations * y * sum, .rate = v.rate,
		.written = slower * v.width * (c.direction == VC_CONVOLUTION_FILTER ? w :
					       c.direction == VC_CONVOLUTION_DATA ? x : y),
		.kind = VC_WORK_CONV };
	as_product(&c, x, y, sum, p.dim);
	return p;
}

static struct vc_cudnn_plan plan_of(const struct vc_cudnn_node *graph, int64_t engine)
{
	struct vc_cudnn_plans plans;
	graph_plans(graph, VC_MODE_INSTANT, &plans);
	return engine >= 0 && engine < plans.n ? plans.at[engine] : (struct vc_cudnn_plan){ 0 };
}

VC_API(int, cudnnBackendCreateDescriptor, int type, struct vc_cudnn_node **out)
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
VC_API(int, cudnnBackendDestroyDescriptor, struct vc_cudnn_node *d)
{
	if (!d || --d->users > 0)
		return 0;
	while (d->attributes) {
		struct vc_cudnn_value *a = d->attributes;
		d->attributes = a->next;
		for (int64_t i = 0; a->type == VC_CUDNN_DESCRIPTOR && i < a->count; i++)
			cudnnBackendDestroyDescriptor(vc_cudnn_linked(a, i));
		free(a);
	}
	free(d);
	return 0;
}

VC_API(int, cudnnBackendSetAttribute, struct vc_cudnn_node *d, int name, int type, int64_t count,
       const void *value)
{
	size_t bytes = (size_t)count * vc_plans_width(type);
	struct vc_cudnn_value *a = malloc(sizeof *a + bytes);
	if (!a)
		return VC_CUDNN_NOMEM;
	*a = (struct vc_cudnn_value){ .name = name, .type = type, .count = count, .bytes = bytes,
		.next = d->attributes };
	memset(a->value, 0, bytes);
	if (value)
		memcpy(a->value, value, bytes);
	d->attributes = a;
	for (int64_t i = 0; type == VC_CUDNN_DESCRIPTOR && i < count; i++)
		if (vc_cudnn_linked(a, i))
			vc_cudnn_linked(a, i)->users++;
	if (name == A_PLAN_CONFIG && linked(d, name, 0)) { /* it may be gone later */
		d->plan = linked(d, name, 0)->plan;
		d->work = linked(d, name, 0)->work;
		d->engine = linked(d, name, 0)->engine;
		d->among = linked(d, name, 0)->among;
	}
	if (name == A_CFG_ENGINE && linked(d, name, 0)) {
		const struct vc_cudnn_node *engine = linked(d, name, 0);
		d->engine = number(engine, A_ENGINE_INDEX, 0);
		const struct vc_cudnn_node *graph = linked(engine, A_ENGINE_GRAPH, 0);
		struct vc_cudnn_plan plan = plan_of(graph, d->engine);
		d->plan.bytes = plan.bytes;
		d->work = work_of(graph, &plan, d->engine);
	}
	return 0;
}

static enum vc_plans_mode mode_of(const struct vc_cudnn_node *heuristic)
{
	const struct vc_cudnn_value *a = find(heuristic, A_HEUR_MODE);
	int mode = VC_MODE_INSTANT;
	if (a && a->bytes >= sizeof mode)
		memcpy(&mode, a->value, sizeof mode);
	return mode >= VC_MODE_INSTANT && mode <= VC_MODE_A ? (enum vc_plans_mode)mode :
							      VC_MODE_INSTANT;
}

/* What a program that measures may end up with. */
static struct vc_cudnn_among among_of(const struct vc_cudnn_plans *p)
{
	static uint64_t lists;
	struct vc_cudnn_among a = { .list = __atomic_add_fetch(&lists, 1, __ATOMIC_RELAXED),
		.least = p->at[0].bytes, .most = p->at[0].bytes, .first = p->at[0].bytes };
	for (int i = 1; i < p->n; i++) {
		a.least = p->at[i].bytes < a.least ? p->at[i].bytes : a.least;
		a.most = p->at[i].bytes > a.most ? p->at[i].bytes : a.most;
	}
	return a;
}

/* The caller brings the configurations to be filled; how many there are is only told when it brings
 * none, else how many were filled: newer frontends bring one and take the answer for its length. */
static int64_t heuristic_results(const struct vc_cudnn_node *heuristic, int64_t wanted,
				 struct vc_cudnn_node **out)
{
	struct vc_cudnn_plans plans;
	graph_plans(linked(heuristic, A_HEUR_GRAPH, 0), mode_of(heuristic), &plans);
	struct vc_cudnn_among among = among_of(&plans);
	for (int64_t i = 0; out && i < wanted && i < plans.n; i++) {
		out[i]->plan = plans.at[i];
		out[i]->engine = i;
		out[i]->among = among;
		out[i]->work = work_of(linked(heuristic, A_HEUR_GRAPH, 0), &plans.at[i], i);
	}
	return out && wanted < plans.n ? wanted : plans.n;
}

/* The numbers of the bits that are set. */
static int64_t put_notes(uint32_t notes, int64_t wanted, int *out)
{
	int64_t n = 0;
	for (int i = 0; i < 32; i++) {
		if (!(notes >> i & 1))
			continue;
		if (out && n < wanted)
			out[n] = i;
		n++;
	}
	return n;
}

VC_API(int, cudnnBackendGetAttribute, struct vc_cudnn_node *d, int name, int type, int64_t wanted,
       int64_t *count, void *out)
{
	int64_t n = 1, v = 0;
	struct vc_cudnn_plans plans;
	const struct vc_cudnn_value *a;
	switch (name) {
	case A_HEUR_RESULTS:
		n = heuristic_results(d, wanted, out);
		out = NULL;
		break;
	case A_CFG_ENGINE: /* stays the caller's own descriptor, told which engine it is */
		if (out && wanted > 0) {
			(*(struct vc_cudnn_node **)out)->engine = d->engine;
			(*(struct vc_cudnn_node **)out)->plan = d->plan;
		}
		out = NULL;
		break;
	case A_CFG_SHARED: break;
	case A_PLAN_WORKSPACE: case A_CFG_WORKSPACE: v = d->plan.bytes; break;
	case A_ENGINE_INDEX: v = d->engine; break;
	case A_GRAPH_ENGINES:
		graph_plans(d, VC_MODE_INSTANT, &plans);
		v = plans.n;
		break;
	case A_ENGINE_NOTE: case A_ENGINE_BEHAVIOR:
		n = put_notes(name == A_ENGINE_NOTE ? d->plan.notes : d->plan.behavior, wanted,
			      out);
		out = NULL;
		break;
	default:
		a = find(d, name);
		n = a ? a->count : 0;
		if (a && out && wanted > 0)
			memcpy(out, a->value,
			       (size_t)(wanted < n ? wanted : n) * vc_plans_width(type));
		out = NULL;
	}
	if (out && n && wanted > 0)
		memcpy(out, &v, vc_plans_width(type));
	if (count)
		*count = n;
	return 0;
}

/* A program that runs a second plan of one list measures them (torch.backends.cudnn.benchmark):
 * which it keeps is not known here. */
static void notice_measuring(const struct vc_cudnn_node *plan)
{
	static struct { uint64_t list; int64_t engine; } ran[64];
	const struct vc_cudnn_among *a = &plan->among;
	size_t i = a->list % (sizeof ran / sizeof *ran);
	if (ran[i].list == a->list && ran[i].engine != plan->engine)
		vc_null_range("cuDNN algorithms that the program chooses by measuring",
			      &(struct vc_null_range){ .least = (uint64_t)a->least,
				.counted = (uint64_t)a->first, .most = (uint64_t)a->most });
	ran[i].list = a->list;
	ran[i].engine = plan->engine;
}

VC_API(int, cudnnBackendExecute, struct handle *h, const struct vc_cudnn_node *plan, void *pack)
{
	static const char *const names[] = VC_NULL_NAMES("cudnn_plan");
	void *stream;
	notice_measuring(plan);
	if (!plan->plan.recorded)
		vc_null_workspace((uint64_t)plan->plan.bytes);
	cudnnGetStream(h, &stream);
	return vc_null_product(names, stream, &plan->work);
}
