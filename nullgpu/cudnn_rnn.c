/* SPDX-License-Identifier: Apache-2.0 */
/* cudnn_rnn.c - libcudnn: recurrent networks: weight layout, workspace and reserve sizes.
 *
 * Weights are exact: matrices of all layers, then biases, as cudnnGetRNNWeightParams documents.
 * Workspace and reserve are what the computation cannot do without (gate activations, cell and
 * hidden states of every step); the library may ask for more. */
#include "nullgpu/cudnn.h"

#include <stdlib.h>
#include <string.h>

enum { RELU, TANH, LSTM, GRU }; /* cudnnRNNMode_t */
enum { BIAS_NONE = 0, BIAS_INPUT = 1, BIAS_BOTH = 2, BIAS_RECURRENT = 3 };

struct rnn {
	int cell, bias, bidirectional, type, input, hidden, projection, layers;
};

struct data {
	int type, layout, steps, batch, vector;
};

VC_API(int, cudnnCreateRNNDescriptor, struct rnn **out)
{
	*out = calloc(1, sizeof **out);
	return *out ? 0 : VC_CUDNN_NOMEM;
}

VC_API_DOES(cudnnDestroyRNNDescriptor, (struct rnn *r), free(r))

VC_API(int, cudnnSetRNNDescriptor_v8, struct rnn *r, int algorithm, int cell, int bias,
       int direction, int input_mode, int type, int precision, int math, int input, int hidden,
       int projection, int layers, void *dropout, unsigned flags)
{
	*r = (struct rnn){ .cell = cell, .bias = bias, .bidirectional = direction, .type = type,
		.input = input, .hidden = hidden, .projection = projection, .layers = layers };
	return 0;
}

VC_API(int, cudnnCreateRNNDataDescriptor, struct data **out)
{
	*out = calloc(1, sizeof **out);
	return *out ? 0 : VC_CUDNN_NOMEM;
}

VC_API_DOES(cudnnDestroyRNNDataDescriptor, (struct data *d), free(d))

VC_API(int, cudnnSetRNNDataDescriptor, struct data *d, int type, int layout, int steps, int batch,
       int vector, const int *lengths, void *padding)
{
	*d = (struct data){ .type = type, .layout = layout, .steps = steps, .batch = batch,
		.vector = vector };
	return 0;
}

static int gates(const struct rnn *r)
{
	return r->cell == LSTM ? 4 : r->cell == GRU ? 3 : 1;
}

static int directions(const struct rnn *r)
{
	return r->bidirectional ? 2 : 1;
}

static int output(const struct rnn *r)
{
	return r->projection && r->projection < r->hidden ? r->projection : r->hidden;
}

static bool projects(const struct rnn *r)
{
	return output(r) != r->hidden;
}

/* Elements of one matrix of pseudo layer `layer`: gates of the input, gates of the state, and the
 * projection as the last one. */
static int64_t matrix_columns(const struct rnn *r, int layer, int matrix)
{
	int depth = layer / directions(r);
	if (matrix >= 2 * gates(r))
		return r->hidden;
	if (matrix >= gates(r))
		return output(r);
	return depth == 0 ? r->input : (int64_t)output(r) * directions(r);
}

static int64_t matrix_rows(const struct rnn *r, int matrix)
{
	return matrix >= 2 * gates(r) ? output(r) : r->hidden;
}

static int matrices(const struct rnn *r)
{
	return 2 * gates(r) + projects(r);
}

static bool has_bias(const struct rnn *r, int matrix)
{
	if (matrix >= 2 * gates(r) || r->bias == BIAS_NONE)
		return false;
	return r->bias == BIAS_BOTH || (r->bias == BIAS_INPUT) == (matrix < gates(r));
}

/* Elements in front of a matrix, or of a bias, in the weight space; with layer = number of
 * layers: the total. */
static int64_t weights_before(const struct rnn *r, int layer, int matrix, bool bias)
{
	int64_t n = 0, n_layers = (int64_t)r->layers * directions(r);
	for (int l = 0; l < n_layers; l++)
		for (int m = 0; m < matrices(r); m++)
			if (bias || l < layer || (l == layer && m < matrix))
				n += matrix_rows(r, m) * matrix_columns(r, l, m);
	for (int l = 0; bias && l < n_layers; l++)
		for (int m = 0; m < matrices(r); m++)
			if (has_bias(r, m) && (l < layer || (l == layer && m < matrix)))
				n += r->hidden;
	return n;
}

VC_API(int, cudnnGetRNNWeightSpaceSize, void *h, const struct rnn *r, size_t *size)
{
	int last = r->layers * directions(r);
	*size = (size_t)weights_before(r, last, 0, true) * vc_cudnn_width(r->type);
	return 0;
}

static void describe(struct vc_cudnn_tensor *t, int type, int64_t rows, int64_t columns)
{
	*t = (struct vc_cudnn_tensor){ .type = type, .n = 3,
		.size = { 1, (int)rows, (int)columns },
		.stride = { (int)(rows * columns), (int)columns, 1 } };
}

/* Callers may ask for the matrix or the bias alone. */
static void answer(const struct rnn *r, bool there, int64_t rows, int64_t columns, char *at,
		   struct vc_cudnn_tensor *t, void **out)
{
	if (t && there)
		describe(t, r->type, rows, columns);
	else if (t)
		*t = (struct vc_cudnn_tensor){ .type = r->type };
	if (out)
		*out = there ? at : NULL;
}

VC_API(int, cudnnGetRNNWeightParams, void *h, const struct rnn *r, int layer, size_t space,
       char *weights, int matrix, struct vc_cudnn_tensor *m, void **m_at,
       struct vc_cudnn_tensor *b, void **b_at)
{
	int64_t width = (int64_t)vc_cudnn_width(r->type);
	answer(r, matrix < matrices(r), matrix_rows(r, matrix), matrix_columns(r, layer, matrix),
	       weights + weights_before(r, layer, matrix, false) * width, m, m_at);
	answer(r, has_bias(r, matrix), r->hidden, 1,
	       weights + weights_before(r, layer, matrix, true) * width, b, b_at);
	return 0;
}

static void doubt(const char *name, size_t needed, size_t most)
{
	vc_null_range(name,
		      &(struct vc_null_range){ .least = needed, .counted = needed, .most = most });
}

VC_API(int, cudnnGetRNNTempSpaceSizes, void *h, const struct rnn *r, int training,
       const struct data *x, size_t *workspace, size_t *reserve)
{
	size_t cells = (size_t)x->steps * (size_t)x->batch * (size_t)r->hidden *
		(size_t)directions(r) * vc_cudnn_width(r->type);
	size_t scratch = cells * (size_t)gates(r); /* gate pre-activations of one layer */
	/* gates, cell and hidden state of every step and layer */
	size_t kept = training ? cells * (size_t)(gates(r) + 2) * (size_t)r->layers : 0;
	size_t weights = (size_t)weights_before(r, r->layers * directions(r), 0, true) *
		vc_cudnn_width(r->type);
	if (workspace)
		*workspace = scratch;
	if (reserve)
		*reserve = kept;
	/* assumed: no more than twice what is needed, and a copy of the weights in another order */
	doubt("cuDNN recurrent networks, workspace", scratch, 2 * scratch + weights);
	doubt("cuDNN recurrent networks, reserve", kept, 2 * kept);
	return 0;
}
