/* SPDX-License-Identifier: Apache-2.0 */
/* layer_memory.c - see layer_memory.h */
#include "simulator/anatomy/layer_memory.h"

#include "simulator/anatomy/layers.h"

/* The forward pass of the second iteration, of the first where there is no other. */
static size_t steady_forward(const struct vc_anatomy *a)
{
	size_t found = SIZE_MAX;

	for (size_t i = 0; i + 1 < a->spans; i++)
		if (a->span[i].phase == VC_PHASE_FORWARD && a->span[i].iteration <= 1 &&
		    !a->span[i].micro)
			found = i;
	return found;
}

static void sum_activations(struct vc_layering *l, const struct vc_layers *y,
			    const struct vc_anatomy *a)
{
	for (size_t k = 0; k < l->n; k++)
		for (size_t i = y->at[k].from; i < y->at[k].to; i++)
			if (a->block[i].category == VC_CAT_ACTIVATION)
				l->at[k].activations += a->block[i].size;
}

static uint64_t repeated(const uint64_t *size, size_t lag, size_t layers)
{
	uint64_t sum = 0;

	for (size_t k = 0; k < lag * (layers - 1); k++)
		if (size[k] != size[k + lag])
			return 0;
	for (size_t k = 0; k < lag; k++)
		sum += size[k];
	return sum;
}

/* Parameters are made layer by layer: the stretch of their sizes that comes once per layer and
 * weighs most. */
static bool parameters_by_order(struct vc_layering *l, const struct vc_anatomy *a,
				struct vc_error *err)
{
	uint64_t *size = calloc(a->n + 1, sizeof(*size)), best = 0;
	size_t n = 0;

	if (!size) {
		vc_nomem(err, "the parameters of layers");
		return false;
	}
	for (size_t i = 0; i < a->n; i++)
		if (a->block[i].category == VC_CAT_PARAMETER)
			size[n++] = a->block[i].size;
	/* Most layers have fewer than a hundred parameters. */
	for (size_t lag = 1; lag * l->n <= n && lag <= 128; lag++)
		for (size_t i = 0; i + lag * l->n <= n; i++) {
			uint64_t sum = size[i] == size[i + lag] || l->n < 2 ?
					       repeated(size + i, lag, l->n) : 0;
			best = sum > best ? sum : best;
		}
	for (size_t k = 0; k < l->n; k++)
		l->at[k].parameters = best;
	free(size);
	return best > 0;
}

/* Else by the gradients made while the backward pass is in the layer: from the first death of what
 * the layer kept to that of the layer before it. */
static void parameters_by_gradients(struct vc_layering *l, const struct vc_layers *y,
				    const struct vc_anatomy *a, size_t span)
{
	size_t from = a->span[span + 1].end;

	for (size_t k = 0; k < l->n; k++) {
		size_t out = vc_layers_entered(&y->at[k], a, span);
		size_t begin = out == SIZE_MAX ? from : a->block[out].died_event;

		for (size_t i = y->at[k].to; i < a->n && a->block[i].event < from; i++)
			if (a->block[i].category == VC_CAT_GRADIENT && a->block[i].event >= begin)
				l->at[k].parameters += a->block[i].size;
		from = begin < from ? begin : from;
	}
}

/* Layers of one kind keep the same for their backward pass. */
static double evenness(const struct vc_layering *l)
{
	size_t most = 0;

	for (size_t k = 0; k < l->n; k++) {
		size_t same = 0;

		for (size_t j = 0; j < l->n; j++) {
			uint64_t x = l->at[k].activations, y = l->at[j].activations;

			same += (x > y ? x - y : y - x) * 20 <= x;
		}
		most = same > most ? same : most;
	}
	return (double)most / (double)l->n;
}

/* The share of what the forward pass asks for that lies in the layers found. */
static double coverage(const struct vc_layers *y, const struct vc_anatomy *a, size_t span)
{
	size_t in = 0, all = 0;

	for (size_t k = 0; k < y->n; k++)
		in += y->at[k].to - y->at[k].from;
	for (size_t i = 0; i < a->n; i++)
		all += a->block[i].span == span;
	return all > in ? (double)in / (double)all : 1;
}

/* What has no parameters is no layer (a dropout called twice); frozen ones are found by their
 * order. Gradients that all seem to be one layer's of several are in buckets: whose they are is not
 * known. */
static bool is_empty(struct vc_layering *l)
{
	size_t some = 0;

	for (size_t k = 0; k < l->n; k++)
		some += l->at[k].parameters > 0;
	for (size_t k = 0; some == 1 && l->n > 2 && k < l->n; k++)
		l->at[k].parameters = 0;
	return !some;
}

static int describe(struct vc_layering *l, const struct vc_layers *y, const struct vc_anatomy *a,
		    size_t span, struct vc_error *err)
{
	l->n = y->n;
	l->at = calloc(l->n + 1, sizeof(*l->at));
	VC_HAVE(l->at, "the layers of a model", err);
	for (size_t k = 0; k < l->n; k++)
		l->at[k].frame = y->at[k].frame;
	sum_activations(l, y, a);
	l->all_parameters = parameters_by_order(l, a, err);
	if (!l->all_parameters)
		parameters_by_gradients(l, y, a, span);
	if (is_empty(l)) {
		vc_layering_fini(l);
		return VC_OK;
	}
	l->from = y->named ? "names of call sites" : "pattern";
	l->confidence =
		a->confidence * (y->named ? 0.95 : 0.9 * evenness(l) * coverage(y, a, span));
	return VC_OK;
}

int vc_layering_read(struct vc_layering *l, const struct vc_anatomy *a, const struct vc_trace *t,
		     struct vc_error *err)
{
	size_t span = steady_forward(a);
	struct vc_layers y = { 0 };
	int r;

	*l = (struct vc_layering){ 0 };
	if (span == SIZE_MAX)
		return VC_OK;
	r = vc_layers_find(&y, a, t->ev, t->meta, span, err);
	if (r == VC_OK && y.n)
		r = describe(l, &y, a, span, err);
	vc_layers_fini(&y);
	return r;
}

void vc_layering_fini(struct vc_layering *l)
{
	free(l->at);
	*l = (struct vc_layering){ 0 };
}
