/* SPDX-License-Identifier: Apache-2.0 */
/* cudnn_rnn.c - libcudnn: recurrent networks: weight layout, workspace and reserve sizes.
 *
 * Weights are exact: matrices of all layers, then biases, as cudnnGetRNNWeightParams documents.
 * Workspace and reserve are sums that were read off 11,785 answers of cuDNN 9.19 on an H100
 * (docs/measurements/null-gpu.md): exact but for the alignment of their parts; roughly so for the
 * backward pass of several layers in one direction. Those of the algorithms that keep weights on
 * the chip were read off 765 more, and two LSTMs that a program trained afterwards had them. */
#include "nullgpu/cudnn.h"

enum { RELU, TANH, LSTM, GRU }; /* cudnnRNNMode_t */
enum { STRIDE = 256 };             /* one direction goes through the gates so many steps at once */
enum { BIAS_NONE = 0, BIAS_INPUT = 1, BIAS_BOTH = 2, BIAS_RECURRENT = 3 };

enum { STANDARD = 0 };             /* cudnnRNNAlgo_t; the others keep weights on the chip */
enum { PACKED = 1 };               /* cudnnRNNDataLayout_t: no rows for steps that are not there */

struct rnn {
	int algorithm, cell, bias, bidirectional, type, input, hidden, projection, layers;
};

struct data {
	int type, layout, steps, batch, vector;
	int64_t rows;   /* steps of all sequences together */
	int64_t begins; /* ... of those, within the first STRIDE of their sequence */
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
	*r = (struct rnn){ .algorithm = algorithm, .cell = cell, .bias = bias,
		.bidirectional = direction, .type = type, .input = input, .hidden = hidden,
		.projection = projection, .layers = layers };
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
	for (int i = 0; i < batch; i++) {
		int n = lengths ? lengths[i] : steps;
		d->rows += n;
		d->begins += n < STRIDE ? n : STRIDE;
	}
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

/* Of all layers: a product with the input of all steps at once, and for each step one with the
 * state and what the cell does with it, one after another: so many kernels a step. */
static int compute(struct handle *h, const char *name, const struct rnn *r, const struct data *d,
		   double kernels)
{
	double width = (double)vc_cudnn_width(r->type), rows = (double)d->rows;
	double each = (double)gates(r) * r->hidden, below, in, state = output(r);
	struct vc_kernel_work w = { .kind = VC_WORK_GRAPH };
	void *stream;

	snprintf(w.type, sizeof w.type, "%s", width > 2 ? "tf32" : "bf16");
	for (int layer = 0; layer < r->layers * directions(r); layer++) {
		below = (double)matrix_columns(r, layer, 0);
		in = width * rows * (below + 2 * each);
		w.flops += 2 * rows * each * (below + state);
		w.dim[0] += 1 + (uint64_t)(kernels * d->steps);
		w.dim[1] += kernels > 0 ? (uint64_t)d->steps : 0;
		w.read += in + width * each * (below + (kernels > 0 ? d->steps : 1) * state);
		w.written += width * rows * each;
	}
	cudnnGetStream(h, &stream);
	return vc_null_known_work(name, stream, &w);
}

VC_API(int, cudnnRNNForward, struct handle *h, const struct rnn *r, int mode, void *lengths,
       const struct data *x)
{
	return compute(h, "cudnn_rnn_forward", r, x, 2);
}

VC_API(int, cudnnRNNBackwardData_v8, struct handle *h, const struct rnn *r, void *lengths,
       const struct data *y)
{
	return compute(h, "cudnn_rnn_backward_data", r, y, 3);
}

VC_API(int, cudnnRNNBackwardWeights_v8, struct handle *h, const struct rnn *r, int add,
       void *lengths, const struct data *x)
{
	return compute(h, "cudnn_rnn_backward_weights", r, x, 0);
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

/* ---- workspace and reserve ---- */

/* What the sums below are of. Sizes are in elements. */
struct work {
	const struct rnn *r;
	const struct data *x;
	int64_t n, hidden, out, dirs, cells; /* cells: layers times directions */
	bool packed, on_chip;
};

/* The library's own matrix products take so much for each layer and direction. */
#define PRODUCTS (8ull << 20)

/* States of a sequence that the passes keep, by kind of cell: forward, backward, and the copies
 * between the caller's padded rows and the library's packed ones. With weights on the chip other
 * ones, and of each step so many values for each of the hidden ones besides. */
static const struct states {
	int forward, backward, copies;
	struct { int forward, values, back_values; } on_chip;
} states_of[] = { [RELU] = { 1, 1, 2, { 2, 4, 9 } }, [TANH] = { 1, 1, 2, { 2, 4, 9 } },
	[LSTM] = { 6, 3, 4, { 4, 16, 12 } }, [GRU] = { 3, 1, 2, { 2, 12, 14 } } };

static const struct states *states(const struct rnn *r)
{
	return &states_of[r->cell >= 0 && r->cell <= GRU ? r->cell : RELU];
}

static int64_t matrices_of_all(const struct rnn *r)
{
	return weights_before(r, r->layers * directions(r), 0, false);
}

/* Both passes: products, a copy of the matrices, and of padded rows what their packing takes. */
static uint64_t in_common(const struct work *k)
{
	uint64_t lengths = k->packed ? 0 : (8 * (uint64_t)k->x->batch + 31) / 32 * 32;
	return PRODUCTS * (uint64_t)k->cells + 256 + lengths +
		(uint64_t)matrices_of_all(k->r) * vc_cudnn_width(k->r->type);
}

static int64_t copied_states(const struct work *k)
{
	if (k->packed)
		return 0;
	return projects(k->r) ? 2 * (k->hidden + k->out) : states(k->r)->copies * k->hidden;
}

static uint64_t forward(const struct work *k)
{
	int per = gates(k->r) + projects(k->r);
	int64_t rows = k->dirs == 1 && !k->on_chip ? k->x->begins : k->n;
	int64_t padded = (int64_t)k->x->steps * k->x->batch;
	int64_t kept = k->on_chip ? states(k->r)->on_chip.forward + (k->dirs - 1) :
				    states(k->r)->forward + 2 * (k->dirs - 1);
	int64_t values = k->on_chip ? states(k->r)->on_chip.values : 0;
	int64_t n = rows * per * k->dirs * k->hidden + k->n * values * k->hidden +
		k->n * 4 * k->hidden * (k->dirs - 1) +
		(k->packed ? 0 : padded * (k->r->input + k->dirs * k->out)) +
		k->x->batch * k->cells * (kept * k->hidden + copied_states(k));
	return in_common(k) + (uint64_t)n * vc_cudnn_width(k->r->type);
}

/* Steps of all sequences whose gradients go from layer to layer at once; seen, and not
 * understood. */
static int64_t steps_at_once(const struct work *k)
{
	int64_t batch = k->x->batch,
		some = (batch < 2 ? 96 : batch < 8 ? 48 : batch < 64 ? 24 : 12) * batch;
	if (k->on_chip && k->r->layers > 1)
		return 2 * k->n;
	return k->r->layers == 1 || k->n < some ? k->n : some;
}

static uint64_t backward(const struct work *k)
{
	int64_t wide = k->r->input > k->hidden ? k->r->input : k->hidden;
	int64_t padded = (int64_t)k->x->steps * k->x->batch;
	int64_t kept = states(k->r)->backward + 2 * (k->dirs - 1), n;
	if (k->dirs == 2)
		n = k->n * (4 * wide + (k->r->layers == 1 ? 2 : 4) * k->hidden);
	else
		n = k->n * wide + steps_at_once(k) * k->hidden;
	if (k->on_chip) {
		n += k->n * states(k->r)->on_chip.back_values * k->hidden;
		kept += k->dirs == 1;
	}
	n += (k->packed ? 0 : 2 * padded * (k->r->input + k->dirs * k->out)) +
		k->x->batch * k->cells * (kept * k->hidden + 2 * copied_states(k));
	return in_common(k) + (uint64_t)n * vc_cudnn_width(k->r->type);
}

/* Gates and states of every step and layer, and what goes from layer to layer. */
static uint64_t reserve_of(const struct work *k)
{
	static const int values[] = { [RELU] = 1, [TANH] = 1, [LSTM] = 5, [GRU] = 6 };
	int per = values[k->r->cell >= 0 && k->r->cell <= GRU ? k->r->cell : RELU];
	int64_t between = (k->r->layers - 1) * k->dirs * k->hidden;
	int64_t n = k->cells * (per * k->hidden) + between;
	if (projects(k->r))
		n += k->cells * (k->hidden + k->out);
	return (uint64_t)(k->n * n) * vc_cudnn_width(k->r->type) + 256;
}

/* Held against one card and one version. On others the products may take nothing or twice as much;
 * an algorithm that keeps weights on the chip was seen to take up to 6 MiB more than the sum where
 * there are few steps, and elsewhere it may take four times what is counted, or half. */
static void say_workspace(const struct work *k, uint64_t size)
{
	uint64_t products = PRODUCTS * (uint64_t)k->cells;
	bool asked = k->r->algorithm != STANDARD, here = vc_null_card()->cc == 90;
	struct vc_null_range range = { .least = size - products, .counted = size,
		.most = size + products };
	if (asked && !here)
		range = (struct vc_null_range){ .least = size / 2, .counted = size,
			.most = 4 * size };
	if (asked || !here)
		vc_null_range("cuDNN recurrent networks, workspace", &range);
}

/* What is asked for in bfloat16 is answered as the standard algorithm. */
static bool keeps_weights_on_chip(const struct rnn *r)
{
	enum { FLOAT = 0, HALF = 2 };
	return r->algorithm != STANDARD && (r->type == FLOAT || r->type == HALF);
}

VC_API(int, cudnnGetRNNTempSpaceSizes, void *h, const struct rnn *r, int training,
       const struct data *x, size_t *workspace, size_t *reserve)
{
	const struct work k = { .r = r, .x = x, .n = x->rows, .hidden = r->hidden,
		.out = output(r), .dirs = directions(r),
		.cells = (int64_t)r->layers * directions(r), .packed = x->layout == PACKED,
		.on_chip = keeps_weights_on_chip(r) };
	uint64_t size = forward(&k), back = training ? backward(&k) : 0;
	if (back > size)
		size = back;
	if (workspace)
		*workspace = size;
	if (reserve)
		*reserve = training ? reserve_of(&k) : 0;
	say_workspace(&k, size);
	return 0;
}
