/* SPDX-License-Identifier: Apache-2.0 */
/* cudnn_calls.c - which convolutions cuDNN computes, and with how much workspace.
 *
 * PyTorch describes a convolution to the graph interface once, asks the heuristics for plans, keeps
 * the plan, and executes it from then on. So what descriptors say is noted as they are set, goes
 * from the graph to its plans, and stands in a record whenever one of them is executed: between the
 * request for its workspace and the end of that. Descriptors are not made often, and malloc is not
 * under the allocator's lock here. */
#define _GNU_SOURCE
#include <pthread.h>

#include "common/convolution.h"
#include "common/map.h"
#include "tracer/cuda_calls.h"
#include "tracer/cuda_device.h"
#include "tracer/cudnn_calls.h"
#include "tracer/names.h"
#include "tracer/recorder.h"
#include "tracer/torch.h"

/* cudnnBackendAttributeName_t (cudnn_graph_v9.h), as far as convolutions need it */
enum {
	A_DILATIONS = 102, A_STRIDES = 103, A_PADS_BEHIND = 104, A_PADS = 105,
	A_HEUR_GRAPH = 201, A_HEUR_RESULTS = 202,
	A_CONFIG_ENGINE = 300,
	A_PLAN_CONFIG = 401, A_PLAN_WORKSPACE = 402,
	A_OPERATION = 700, A_OPERATION_END = 718, /* the three convolutions */
	A_GRAPH_OPERATIONS = 801,
	A_ALIGNMENT = 900, A_TYPE = 901, A_SIZES = 902, A_TENSOR_STRIDES = 903,
	A_PACK_WORKSPACE = 1003,
	A_ENGINE_GRAPH = 1300,
};
enum { T_INT64 = 3, T_POINTER = 6, T_DESCRIPTOR = 15 }; /* cudnnBackendAttributeType_t */
enum { NOT_INITIALIZED = 1001, ALIGNED = 16 };

/* What the attributes of the three operations are of. */
enum part { PART_CONVOLUTION, PART_W, PART_X, PART_Y, PARTS };

struct tensor {
	int type, n;
	int64_t size[VC_CONVOLUTION_SIZES], stride[VC_CONVOLUTION_SIZES], alignment;
};

/* What a descriptor has said; which of it counts is a matter of its type. */
struct node {
	struct tensor tensor;
	struct vc_convolution c;   /* of a convolution and of an operation */
	int64_t behind[VC_CONVOLUTION_SIZES]; /* pads of a convolution behind the tensor */
	bool other;                /* pads before and behind differ, or types of tensors */
	bool not_first, not_last;  /* of an operation: a tensor has gaps in that order */
	unsigned has;              /* parts of an operation, a bit each */
	char *label;               /* of a graph and what was made from it; NULL: no convolution */
	uint64_t bytes;            /* of a plan */
	uint64_t workspace;        /* of a variant pack: an address */
};

static struct {
	pthread_mutex_t lock;
	struct vc_map node; /* by address of the descriptor: address of its struct node */
	char version[24];
} g = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct node *find(const void *d)
{
	const uint64_t *at = d ? vc_map_get(&g.node, (uint64_t)(uintptr_t)d) : NULL;

	return at ? (struct node *)(uintptr_t)*at : NULL;
}

static struct node *find_or_make(const void *d)
{
	struct node *n = find(d);

	if (n || !d)
		return n;
	n = calloc(1, sizeof(*n));
	if (n && !vc_map_put(&g.node, (uint64_t)(uintptr_t)d, (uint64_t)(uintptr_t)n)) {
		free(n);
		n = NULL;
	}
	if (n)
		n->tensor.type = -1; /* 0 is one */
	return n;
}

static void drop(struct node *n)
{
	free(n->label);
	free(n);
}

static void forget(const void *d)
{
	struct node *n = find(d);

	if (!n)
		return;
	vc_map_take(&g.node, (uint64_t)(uintptr_t)d);
	drop(n);
}

static void take_label(struct node *to, const struct node *from)
{
	free(to->label);
	to->label = from && from->label ? strdup(from->label) : NULL;
}

/* ---- a convolution ---- */

static void read_numbers(int64_t *to, int64_t count, const void *value)
{
	if (count > 0 && count <= VC_CONVOLUTION_SIZES)
		memcpy(to, value, (size_t)count * sizeof(*to));
}

/* Dense, channels first or last, at an address that kernels can load from. With one channel, or one
 * place, a tensor is both. */
static bool is_plain(const struct tensor *t, bool last)
{
	int64_t step = 1;

	for (int i = 0; i < t->n; i++) { /* the innermost dimension first */
		int d = !last ? t->n - 1 - i : i == 0 ? 1 : i == t->n - 1 ? 0 : t->n - i;

		if (t->size[d] != 1 && t->stride[d] != step)
			return false;
		step *= t->size[d];
	}
	return !t->alignment || t->alignment >= ALIGNED;
}

/* Attributes of operations come in groups: alpha, beta, the convolution, and three tensors, of the
 * gradients in another order. */
static enum part part_of(int name, enum vc_convolution_direction *direction)
{
	static const struct {
		short name;
		unsigned char direction, part;
	} attribute[] = {
		{ 702, VC_CONVOLUTION_FORWARD, PART_CONVOLUTION },
		{ 703, VC_CONVOLUTION_FORWARD, PART_W }, { 704, VC_CONVOLUTION_FORWARD, PART_X },
		{ 705, VC_CONVOLUTION_FORWARD, PART_Y },
		{ 708, VC_CONVOLUTION_DATA, PART_CONVOLUTION },
		{ 709, VC_CONVOLUTION_DATA, PART_W }, { 710, VC_CONVOLUTION_DATA, PART_X },
		{ 711, VC_CONVOLUTION_DATA, PART_Y },
		{ 714, VC_CONVOLUTION_FILTER, PART_CONVOLUTION },
		{ 715, VC_CONVOLUTION_FILTER, PART_W }, { 716, VC_CONVOLUTION_FILTER, PART_X },
		{ 717, VC_CONVOLUTION_FILTER, PART_Y },
	};

	for (size_t i = 0; i < sizeof(attribute) / sizeof(*attribute); i++)
		if (attribute[i].name == name) {
			*direction = (enum vc_convolution_direction)attribute[i].direction;
			return (enum part)attribute[i].part;
		}
	return PARTS;
}

static void set_part(struct node *n, int name, const struct node *from)
{
	struct vc_convolution *c = &n->c;
	enum part part = part_of(name, &c->direction);
	int64_t *const size[] = { [PART_W] = c->w, [PART_X] = c->x, [PART_Y] = c->y };

	if (part == PARTS || !from)
		return;
	n->other |= from->other;
	if (part != PART_CONVOLUTION && n->has & ~(1u << PART_CONVOLUTION))
		n->other |= c->type != from->tensor.type;
	n->has |= 1u << part;
	if (part == PART_CONVOLUTION) {
		memcpy(c->stride, from->c.stride, sizeof(c->stride));
		memcpy(c->pad, from->c.pad, sizeof(c->pad));
		memcpy(c->dilation, from->c.dilation, sizeof(c->dilation));
		return;
	}
	memcpy(size[part], from->tensor.size, sizeof(from->tensor.size));
	n->not_first |= !is_plain(&from->tensor, false);
	n->not_last |= !is_plain(&from->tensor, true);
	c->type = from->tensor.type;
	if (part == PART_X) {
		c->n = from->tensor.n;
		c->channels_last = from->tensor.stride[1] == 1 && from->tensor.size[1] > 1;
	}
}

/* Has everything been said of it? The library may have refused some, or we came later. */
static bool is_whole(const struct node *op)
{
	const struct vc_convolution *c = &op->c;

	return op->has == (1u << PARTS) - 1 && c->n >= 3 && c->type >= 0 && c->stride[0] > 0 &&
	       c->dilation[0] > 0;
}

/* A graph that is one convolution of plain tensors has a key; another that begins with one has only
 * a name, so that nobody takes its workspace for a tensor. The order is the one that all three
 * tensors have: the first alone may be both. */
static void name_graph(struct node *graph, const struct node *op, int64_t operations)
{
	char key[VC_PLANS_KEY] = VC_LABEL_GRAPH, *label = NULL;
	bool plain = operations == 1 && op && is_whole(op) && !op->other &&
		     !(op->not_first && op->not_last);

	free(graph->label);
	graph->label = NULL;
	if (!op || !op->has)
		return;
	if (plain) {
		struct vc_convolution c = op->c;

		c.channels_last = op->not_first || (c.channels_last && !op->not_last);
		vc_convolution_text(&c, "", key);
	}
	if (asprintf(&label, VC_LABEL_CUDNN "%s %s", g.version, key) > 0)
		graph->label = label;
}

/* ---- what descriptors say ---- */

static void set_convolution(struct node *n, int name, int64_t count, const void *value)
{
	if (count > VC_CONVOLUTION_SPATIAL)
		return;
	read_numbers(name == A_DILATIONS ? n->c.dilation :
		     name == A_STRIDES ? n->c.stride :
		     name == A_PADS ? n->c.pad : n->behind, count, value);
	n->other = memcmp(n->behind, n->c.pad, sizeof(n->c.pad)) != 0;
}

static void set_tensor(struct tensor *t, int name, int64_t count, const void *value)
{
	if (name == A_TYPE) {
		memcpy(&t->type, value, sizeof(t->type));
	} else if (name == A_ALIGNMENT) {
		read_numbers(&t->alignment, 1, value);
	} else if (name == A_SIZES) {
		t->n = count <= VC_CONVOLUTION_SIZES ? (int)count : 0;
		read_numbers(t->size, count, value);
	} else if (name == A_TENSOR_STRIDES) {
		read_numbers(t->stride, count, value);
	}
}

static void set(struct node *n, int name, int type, int64_t count, const void *value)
{
	const struct node *first = NULL;
	const void *at = NULL;

	if (!value || count < 1)
		return;
	if (type == T_DESCRIPTOR || type == T_POINTER)
		memcpy(&at, value, sizeof(at));
	if (type == T_DESCRIPTOR)
		first = find(at);
	if (name >= A_DILATIONS && name <= A_PADS && type == T_INT64)
		set_convolution(n, name, count, value);
	else if (name >= A_ALIGNMENT && name <= A_TENSOR_STRIDES)
		set_tensor(&n->tensor, name, count, value);
	else if (name >= A_OPERATION && name < A_OPERATION_END && type == T_DESCRIPTOR)
		set_part(n, name, first);
	else if (name == A_GRAPH_OPERATIONS)
		name_graph(n, first, count);
	else if (name == A_HEUR_GRAPH || name == A_ENGINE_GRAPH || name == A_CONFIG_ENGINE ||
		 name == A_PLAN_CONFIG)
		take_label(n, first);
	else if (name == A_PACK_WORKSPACE && type == T_POINTER)
		n->workspace = (uint64_t)(uintptr_t)at;
}

/* Is it of a kind that says something of a convolution? The others are most. */
static bool counts(int name)
{
	return (name >= A_DILATIONS && name <= A_PADS) || name == A_HEUR_GRAPH ||
	       name == A_CONFIG_ENGINE || name == A_PLAN_CONFIG ||
	       (name >= A_OPERATION && name < A_OPERATION_END) || name == A_GRAPH_OPERATIONS ||
	       (name >= A_ALIGNMENT && name <= A_TENSOR_STRIDES) || name == A_PACK_WORKSPACE ||
	       name == A_ENGINE_GRAPH;
}

/* ---- the calls ---- */

int cudnnBackendSetAttribute(void *d, int name, int type, int64_t count, const void *value);
int cudnnBackendGetAttribute(void *d, int name, int type, int64_t wanted, int64_t *count,
			     void *out);
int cudnnBackendDestroyDescriptor(void *d);
int cudnnBackendExecute(void *handle, void *plan, void *pack);

/* The function of that name which the caller would have called without us, found once: a process
 * has one library of cuDNN's. */
static void *real_of(_Atomic(void *) *known, const void *site, const char *name)
{
	void *real = *known;

	if (!real)
		*known = real = vc_cuda_real(site, name);
	return real;
}

#define REAL(to) \
	do { \
		static _Atomic(void *) known; \
		void *found = real_of(&known, __builtin_return_address(0), __func__); \
		memcpy(&(to), &found, sizeof(found)); \
	} while (0)

/* Without the lock: the loader has one of its own, under which a library may call us. */
static size_t version_for(const void *site)
{
	static _Atomic(void *) known;
	void *found = real_of(&known, site, "cudnnGetVersion");
	size_t (*version)(void);

	memcpy(&version, &found, sizeof(found));
	return version ? version() : 0;
}

/* cudnn_version.h: 91900 is 9.19.0; up to 8 it was 8907 for 8.9.7. */
static void note_version(size_t v)
{
	size_t major = v < 10000 ? 1000 : 10000;

	snprintf(g.version, sizeof(g.version), "%zu.%zu.%zu", v / major, v % major / 100, v % 100);
}

VC_ENTRY int cudnnBackendSetAttribute(void *d, int name, int type, int64_t count,
				      const void *value)
{
	int (*real)(void *, int, int, int64_t, const void *), rc;
	size_t version = 0;

	REAL(real);
	rc = real ? real(d, name, type, count, value) : NOT_INITIALIZED;
	if (rc || !counts(name) || !vc_recorder_wanted())
		return rc;
	if (name == A_GRAPH_OPERATIONS)
		version = version_for(__builtin_return_address(0));
	pthread_mutex_lock(&g.lock);
	/* again: nothing is noted behind vc_cudnn_forget */
	struct node *n = vc_recorder_wanted() ? find_or_make(d) : NULL;

	if (name == A_GRAPH_OPERATIONS)
		note_version(version);
	if (n)
		set(n, name, type, count, value);
	pthread_mutex_unlock(&g.lock);
	return rc;
}

/* The configurations are the caller's: they may have been of another graph before. */
static void note_results(const struct node *from, void *const *config, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		struct node *to = from && from->label ? find_or_make(config[i]) : find(config[i]);

		if (to)
			take_label(to, from);
	}
}

VC_ENTRY int cudnnBackendGetAttribute(void *d, int name, int type, int64_t wanted, int64_t *count,
				      void *out)
{
	int (*real)(void *, int, int, int64_t, int64_t *, void *), rc;

	REAL(real);
	rc = real ? real(d, name, type, wanted, count, out) : NOT_INITIALIZED;
	if (rc || !out || wanted < 1 || !vc_recorder_wanted() ||
	    (name != A_HEUR_RESULTS && name != A_PLAN_WORKSPACE))
		return rc;
	pthread_mutex_lock(&g.lock);
	struct node *from = vc_recorder_wanted() ? find(d) : NULL;

	if (name == A_PLAN_WORKSPACE && from)
		memcpy(&from->bytes, out, sizeof(from->bytes));
	else if (name == A_HEUR_RESULTS)
		note_results(from, out, count && *count < wanted ? *count : wanted);
	pthread_mutex_unlock(&g.lock);
	return rc;
}

/* Before the call: another descriptor may be made at the address behind it. */
VC_ENTRY int cudnnBackendDestroyDescriptor(void *d)
{
	int (*real)(void *);

	REAL(real);
	pthread_mutex_lock(&g.lock);
	forget(d);
	pthread_mutex_unlock(&g.lock);
	return real ? real(d) : NOT_INITIALIZED;
}

static void put_plan(const void *plan, const void *pack)
{
	char label[VC_PLANS_KEY + sizeof(g.version) + sizeof(VC_LABEL_CUDNN)] = "";
	struct vc_record r = { .kind = VC_EV_PLAN };

	pthread_mutex_lock(&g.lock);
	const struct node *n = find(plan), *p = find(pack);

	if (n && n->label) {
		snprintf(label, sizeof(label), "%s", n->label);
		r.size = n->bytes;
		r.addr = p ? p->workspace : 0;
	}
	pthread_mutex_unlock(&g.lock);
	r.text = vc_names_put(label);
	if (!r.text) /* no convolution, or no room */
		return;
	r.device = vc_cuda_device();
	vc_record_put(r);
}

/* Behind the call: a program tries its next plan when one fails. The workspace is still there. */
VC_ENTRY int cudnnBackendExecute(void *handle, void *plan, void *pack)
{
	int (*real)(void *, void *, void *), rc;

	REAL(real);
	rc = real ? real(handle, plan, pack) : NOT_INITIALIZED;
	if (!rc && vc_torch_watching())
		put_plan(plan, pack);
	return rc;
}

void vc_cudnn_forget(void)
{
	pthread_mutex_lock(&g.lock);
	for (size_t i = 0; g.node.slot && i <= g.node.mask; i++)
		if (g.node.slot[i].value)
			drop((struct node *)(uintptr_t)g.node.slot[i].value);
	vc_map_fini(&g.node);
	pthread_mutex_unlock(&g.lock);
}

void vc_cudnn_before_fork(void)
{
	pthread_mutex_lock(&g.lock);
}

void vc_cudnn_after_fork(void)
{
	pthread_mutex_unlock(&g.lock);
}
