/* SPDX-License-Identifier: Apache-2.0 */
/* launch_work.c - what a kernel of PyTorch's or Triton's computes and moves.
 *
 * Its name says which kind it is; how much it moves say its number of elements and the blocks that
 * its arguments point into. Launchers keep arguments on their stack, so that it is safe to look at
 * what lies there. Where it is not known which way bytes go, they count as read. Layouts of
 * arguments: aten/src/ATen/native/cuda (Loops.cuh, CUDALoops.cuh, Reduce.cuh, Shape.cu) and
 * .../transformers/cuda (flash_attn/flash.h, mem_eff_attention/kernel_forward.h,
 * kernel_backward.h), the same in PyTorch 2.6 and 2.11. */
#define _GNU_SOURCE
#include "nullgpu/foreach.h"
#include "nullgpu/null.h"

#include <pthread.h>

enum { POINTERS = 16, ARGUMENTS = 24, STRUCT = 2048 };

struct pointers {
	struct { uint64_t at, left; bool begins; } v[POINTERS];
	size_t n;
};

/* ---- looking ---- */

/* Whether the caller's stack holds n bytes there. */
static bool on_stack(const void *p, size_t n)
{
	static __thread uintptr_t top;
	uintptr_t at = (uintptr_t)p, here = (uintptr_t)__builtin_frame_address(0);
	pthread_attr_t attributes;
	if (!top && pthread_getattr_np(pthread_self(), &attributes) == 0) {
		void *low;
		size_t size;
		pthread_attr_getstack(&attributes, &low, &size);
		pthread_attr_destroy(&attributes);
		top = (uintptr_t)low + size;
	}
	return at >= here && at < top && n <= top - at;
}

/* As many arguments as the launcher may have put there. */
static const void *argument(const struct vc_null_launch *l, size_t i)
{
	return l->args && on_stack(l->args, (i + 1) * sizeof *l->args) &&
	       on_stack(l->args[i], sizeof(int)) ? l->args[i] : NULL;
}

static void see(struct pointers *p, uint64_t at)
{
	bool begins;
	uint64_t left = vc_null_block_left(at, &begins);
	if (!left || p->n == POINTERS)
		return;
	p->v[p->n].at = at;
	p->v[p->n].begins = begins;
	p->v[p->n++].left = left;
}

static uint64_t word_at(const void *p, size_t at)
{
	uint64_t word;
	memcpy(&word, (const char *)p + at, sizeof word);
	return word;
}

/* The first `n` pointers in a row within an argument that is a structure. */
static void see_row(struct pointers *p, const void *argument, size_t n)
{
	const char *at = argument;
	for (size_t i = 0; i + 8 * n <= STRUCT && on_stack(at + i, 8 * n); i += 8) {
		p->n = 0;
		for (size_t k = 0; k < n; k++)
			see(p, word_at(argument, i + 8 * k));
		if (p->n == n)
			return;
	}
	p->n = 0;
}

/* Those that are arguments, each once. */
static void see_all(struct pointers *p, const struct vc_null_launch *l)
{
	const void *at;
	for (size_t i = 0; i < ARGUMENTS && (at = argument(l, i)) != NULL; i++) {
		uint64_t word = (uintptr_t)at % 8 ? 0 : word_at(at, 0);
		bool known = !word;
		for (size_t k = 0; k < p->n && !known; k++)
			known = p->v[k].at == word;
		if (!known)
			see(p, word);
	}
}

/* ---- words of a name ---- */

static bool has(const char *name, const char *const *words)
{
	for (; *words; words++)
		if (strstr(name, *words))
			return true;
	return false;
}

static const char *type_of(const char *name)
{
	static const char *const brain[] = { "BFloat16", "bf16", "bfloat16", NULL };
	static const char *const half[] = { "4HalfE", "f16", "half_t", NULL };

	return has(name, brain) ? "bf16" : has(name, half) ? "fp16" : "fp32";
}

static double width_of(const char *type)
{
	return !strcmp(type, "fp32") ? 4 : 2;
}

/* ---- what a name says ---- */

enum purpose { ANY, FLASH, EFFICIENT, FOREACH, OPERANDS, OPERANDS_IN_A_ROW, REDUCE, LOOKUP, GATHER,
	       CAT, REDUCTION };

struct named {
	char *name;
	enum purpose purpose;
	char type[VC_WORK_TYPE];
	size_t inputs; /* operands that are read */
	bool copies, backward, causal;
};

static const char *const gathers[] = { "gather", "index_select", "indexSelect", "embedding",
				      "Embedding", NULL };
static const char *const reductions[] = { "softmax", "SoftMax", "norm", "Norm", "welford", "reduce",
					 NULL };
/* Parts of an attention that others belong to. */
static const char *const beside[] = { "convert", "dot_do_o", "combine", NULL };

static enum purpose purpose_of(const char *name)
{
	if ((strstr(name, "flash_fwd") || strstr(name, "flash_bwd")) && !has(name, beside))
		return FLASH;
	if (strstr(name, "fmha_cutlassF") || strstr(name, "fmha_cutlassB"))
		return EFFICIENT;
	if (strstr(name, "multi_tensor_apply_kernel"))
		return FOREACH;
	if (strstr(name, "elementwise_kernel") && !strstr(name, "distribution"))
		return strstr(name, "vectorized_elementwise") ||
		       strstr(name, "unrolled_elementwise") ? OPERANDS_IN_A_ROW : OPERANDS;
	if (strstr(name, "reduce_kernel"))
		return REDUCE;
	if (strstr(name, "nll_loss") && strncmp(name, "triton_", 7))
		return LOOKUP; /* a fused one does more */
	if (has(name, gathers))
		return GATHER;
	return strstr(name, "CatArray") ? CAT : has(name, reductions) ? REDUCTION : ANY;
}

/* The second of the truth values behind the traits: template<traits, dropout, causal, ...>. */
static bool flash_is_causal(const char *name)
{
	const char *at = strstr(name, "EELb");
	at = at ? strstr(at + 2, "ELb") : NULL;
	return at && at[3] == '1';
}

/* How many operands a functor reads: those of a lambda stand in its name, "UlffE". */
static size_t inputs_of(const char *name)
{
	static const struct { const char *word; size_t n; } known[] = {
		{ "copy_kernel", 1 }, { "FillFunctor", 0 }, { "BinaryFunctor", 2 },
		{ "CUDAFunctor_add", 2 }, { "UnaryFunctor", 1 }, { "FunctorOnSelf", 1 },
	};
	const char *at = strstr(name, "EUl");
	size_t n = 0;

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strstr(name, known[i].word))
			return known[i].n;
	for (at = at ? at + 3 : ""; *at && *at != 'E' && *at != 'v'; n++)
		if (*at == 'N')
			at += strcspn(at, "E") + 1;
		else if (*at == 'S')
			at += strcspn(at, "_") + 1;
		else
			at++;
	return n && n < POINTERS ? n : 1;
}

/* Read once for each name, by each thread. */
static const struct named *read_name(const char *name)
{
	static __thread struct named seen[256];
	struct named *n = &seen[((uintptr_t)name >> 4) % 256];

	if (n->name && !strcmp(n->name, name))
		return n;
	free(n->name);
	*n = (struct named){ .name = strdup(name), .purpose = purpose_of(name),
		.inputs = inputs_of(name), .copies = strstr(name, "copy_kernel") != NULL,
		.backward = strstr(name, "bwd") || strstr(name, "fmha_cutlassB") ||
			    strstr(name, "backward"),
		.causal = flash_is_causal(name) };
	snprintf(n->type, sizeof n->type, "%s", type_of(name));
	return n;
}

/* ---- elementwise ---- */

/* Bytes of one of `n` elements in what is left of a block: where exactly n of them fill it, that
 * shows; in a part of a larger one they are as wide as the kernel's type, as all are that it names.
 */
static double bytes_of(double n, double left, double width, bool named)
{
	for (double w = 1; w <= 16 && !named; w *= 2)
		if (n * w <= left && left < n * w + 512)
			return n * w;
	return left < n * width ? left : n * width; /* less: the same ones again and again */
}

static void elementwise(const struct vc_null_launch *l, const struct named *k,
			struct vc_kernel_work *w)
{
	const void *first = argument(l, 0), *from = argument(l, k->purpose == OPERANDS ? 1 : 2);
	struct pointers p = { 0 };
	double width = width_of(w->type);
	int n;

	if (!first || !from)
		return;
	memcpy(&n, first, sizeof n);
	see_row(&p, from, 1 + k->inputs);
	w->kind = k->copies ? VC_WORK_COPY : VC_WORK_ELEMENTWISE;
	if (!p.n && n > 0)
		w->written = n * width;
	for (size_t i = 0; i < p.n && n > 0; i++) /* the first is written */
		*(i ? &w->read : &w->written) +=
			bytes_of(n, (double)p.v[i].left, width, width < 4 && !k->copies);
}

/* ---- attention ---- */

/* v: batch, heads, queries, keys, width of a head, and that of its values. */
static void attention(struct vc_kernel_work *w, const uint32_t v[6], bool causal, bool backward)
{
	double b = (double)v[0] * v[1], q = v[2], k = v[3], d = (v[4] + v[5]) / 2.0;
	double pairs = b * q * k;
	double width = width_of(w->type), one = width * b * d;

	w->kind = VC_WORK_ATTENTION;
	if (causal) /* what lies below the diagonal, which ends at the last key */
		pairs = b * (k >= q ? q * k - q * (q - 1) / 2 : k * (k + 1) / 2);
	w->flops = (backward ? 10 : 4) * pairs * d; /* five products, two */
	w->read = one * (backward ? 3 * q + 2 * k : q + 2 * k);
	w->written = one * (backward ? q + 2 * k : q);
	w->dim[0] = (uint64_t)b;
	w->dim[1] = v[2];
	w->dim[2] = v[3];
	w->dim[3] = (uint64_t)d;
}

static uint32_t number_at(const void *params, size_t at)
{
	uint32_t v;
	memcpy(&v, (const char *)params + at, sizeof v);
	return v;
}

static bool sane(const uint32_t v[6])
{
	for (int i = 0; i < 6; i++)
		if (!v[i] || v[i] > 1u << 26)
			return false;
	return true;
}

/* Heads at 96, batch from 176 on: struct Flash_fwd_params, which Flash_bwd_params begins with. */
static bool flash(const struct vc_null_launch *l, const struct named *k, struct vc_kernel_work *w)
{
	const void *p = argument(l, 0);
	uint32_t v[6];

	if (!p || !on_stack(p, 200))
		return false;
	v[0] = number_at(p, 176);
	v[1] = number_at(p, 96);
	v[2] = number_at(p, 180);
	v[3] = number_at(p, 184);
	v[4] = v[5] = number_at(p, 192);
	if (sane(v))
		attention(w, v, k->causal, k->backward);
	return sane(v);
}

/* AttentionKernel::Params and AttentionBackwardKernel::Params. */
static bool efficient(const struct vc_null_launch *l, const struct named *k,
		      struct vc_kernel_work *w)
{
	const void *p = argument(l, 0);
	size_t at = k->backward ? 144 : 96;
	uint32_t v[6];

	if (!p || !on_stack(p, 200))
		return false;
	v[0] = l->grid[2];
	v[1] = l->grid[1];
	v[4] = number_at(p, at);
	v[5] = number_at(p, at + 4);
	v[2] = number_at(p, at + 8);
	v[3] = number_at(p, at + 12);
	if (sane(v))
		attention(w, v, (number_at(p, at + 20) & 0xff) != 0, k->backward);
	return sane(v);
}

/* ---- the others ---- */

/* A view into something much larger is not read whole. */
static double whole(const struct pointers *p)
{
	uint64_t largest = 0;
	double sum = 0;

	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].begins && p->v[i].left > largest)
			largest = p->v[i].left;
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].begins || !largest || p->v[i].left <= largest)
			sum += (double)p->v[i].left;
	return sum;
}

/* struct ReduceConfig within ReduceOp: element_size_bytes, num_inputs, num_outputs, two steps,
 * ctas_per_output, five factors, block_width, block_height, num_threads. */
static bool reduced(const struct vc_null_launch *l, struct vc_kernel_work *w)
{
	enum { TOGETHER = 5, WIDTH = 11, NUMBERS = 14 };
	const char *at = argument(l, 0);
	uint32_t v[NUMBERS];

	for (size_t i = 0; at && i < 128 && on_stack(at + i, sizeof v); i += sizeof *v) {
		memcpy(v, at + i, sizeof v);
		if (v[0] && v[0] <= 16 && v[WIDTH] == l->block[0] &&
		    v[WIDTH + 1] == l->block[1] && v[WIDTH + 2] == v[WIDTH] * v[WIDTH + 1]) {
			w->kind = VC_WORK_REDUCTION;
			w->read = (double)v[0] * v[1] * v[2];
			w->written = (double)v[0] * v[2];
			w->dim[2] = v[TOGETHER];
			return true;
		}
	}
	return false;
}

static void other(const struct vc_null_launch *l, const struct named *k, struct vc_kernel_work *w)
{
	struct pointers p = { 0 };

	if (k->purpose == REDUCE && reduced(l, w))
		return;
	if (k->purpose == REDUCE && argument(l, 0))
		see_row(&p, argument(l, 0), 2); /* from, to */
	else
		see_all(&p, l);
	w->kind = k->purpose == LOOKUP || k->purpose == GATHER ? VC_WORK_GATHER :
		  k->purpose == CAT ? VC_WORK_COPY :
		  k->purpose == REDUCE || k->purpose == REDUCTION ? VC_WORK_REDUCTION :
		  VC_WORK_OTHER;
	if (k->purpose == GATHER && p.n) /* only the rows that are asked for */
		w->read = w->written = (double)p.v[k->backward && p.n > 1].left;
	else if (k->purpose == CAT && p.n)
		w->read = w->written = (double)p.v[0].left;
	else if (k->purpose != LOOKUP) /* which looks up one value a row */
		w->read = whole(&p);
}

struct vc_kernel_work vc_null_kernel_work(const char *name, const struct vc_null_launch *l)
{
	const struct named *k = read_name(name ? name : "");
	struct vc_kernel_work w = { .kind = VC_WORK_OTHER };

	memcpy(w.type, k->type, sizeof w.type);
	w.dim[0] = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
	w.dim[1] = (uint64_t)l->block[0] * l->block[1] * l->block[2];
	switch (k->purpose) {
	case FLASH:
		if (flash(l, k, &w))
			return w;
		break;
	case EFFICIENT:
		if (efficient(l, k, &w))
			return w;
		break;
	case FOREACH:
		w.kind = VC_WORK_OPTIMIZER;
		if (argument(l, 0))
			w.read = vc_null_foreach_bytes(name, l->args[0], l->grid[0]);
		return w;
	case OPERANDS: case OPERANDS_IN_A_ROW:
		elementwise(l, k, &w);
		return w;
	default: break;
	}
	other(l, k, &w);
	return w;
}
