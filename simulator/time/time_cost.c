/* SPDX-License-Identifier: Apache-2.0 */
/* time_cost.c - see time_cost.h
 *
 * Time is the larger of computing and moving, and what a kernel takes at least. Matrix products are
 * cut into tiles that the multiprocessors take in waves: the last wave is as long as the others
 * however few its tiles are (NVIDIA, "Matrix Multiplication Background User's Guide", wave
 * quantization). Attention is computed by blocks of queries that walk over blocks of keys, of which
 * a causal one leaves out half. Kernels that compute an offset per element are bound by that. */
#include "simulator/time/time_cost.h"

struct speed {
	const char *card;
	int cc;
	enum vc_work_kind kind;
	const char *type;
	double compute, move, least, doubt;
};

static const struct speed speeds[] = {
#define VC_SPEED(card, cc, kind, type, compute, move, least, doubt, source) \
	{ card, cc, VC_WORK_##kind, type, compute, move, least, doubt },
#include "simulator/time/cards_speed.def"
#undef VC_SPEED
};

static const struct { const char *name; double move; } named[] = {
#define VC_NAMED(name, move) { name, move },
#include "simulator/time/cards_speed.def"
#undef VC_NAMED
};

/* Of one multiprocessor: elements a cycle of a kernel that computes the offset of each; ns that a
 * block of attention takes besides its tiles, a tile of a product besides its sum
 * (cards_speed.def, TraceLens). */
#define OFFSETS 1.2
#define ATTENTION_BLOCK_NS 5500.0
#define LATER_BLOCK_NS 1500.0 /* since 10.0: SimuMax */
#define TILE_NS 700.0
/* Of the bandwidth, what as many multiprocessors could move as a sum has blocks; ns until several
 * blocks have told each other their part of one result (tests/time/kernels.py, batch 4). */
#define ONE_SM 1.5
#define TOGETHER_NS 4000.0
/* Of the bandwidth, what a kernel gains whose bytes lie in the second-level cache since the one
 * before it (the same), less the more of the cache they take. */
#define CACHED 0.6
/* Of the rate with 16 bit, what a product reaches whose rows do not begin on 16 bytes: the kernels
 * of Ampere (TraceLens, 30,522 columns), and on two bytes those of Turing (50,257: GPT-2). */
#define MISALIGNED 0.3
#define ODD 0.15
/* FlashAttention's backward pass against its forward pass: FA2, cards_speed.def. */
#define BACKWARD 0.85
/* cuDNN's attention on Hopper, share of the peak, of width 64 (FlashAttention-3's paper) and more,
 * and its backward pass against that: benchmark/sdpa_benchmark_training of NVIDIA/cudnn-frontend at
 * 3929da2, H200, cuDNN 9.19, causal: 591 and 474 TFLOP/s at 4,096 of width 128, 644 and 541 at
 * 8,192; 599 and 404 of widths 192 and 128. */
#define CUDNN_NARROW 0.45
#define CUDNN 0.73
#define CUDNN_BACKWARD 0.74
/* A convolution of one channel a group is no product: share of the bandwidth and of the fp32 rate,
 * forwards and for data; of the rate for filters of 3x3 and 5x5, and for larger ones, which cuDNN
 * has a slower kernel for (EfficientNet-B2 and ConvNeXt-B on an H100, 2026-11-26). */
#define THIN_MOVE 0.35
#define THIN 0.07
#define THIN_FILTERS 0.013
#define THIN_LARGE 0.0046
enum { LARGE_TAPS = 49 };
/* A thread that goes on to its next element when the last one is in the sum (Welford's), on a few
 * blocks: an H100, 2026-11-26. */
#define WALK_NS 400.0
/* Products that last so long draw all the power that Hopper gets, and its clock falls: what they
 * take longer. NeMo Automodel's two rows on one H100 (tests/time/automodel.py), where 0.70 of the
 * peak are left; one product by itself still reaches 0.80 (stas00/ml-engineering). */
#define COOL_NS 1e5
#define HOT_NS 5e5
#define HOT 0.24
/* A graph: from one of its kernels to the next, and what share they reach of the rates of large
 * ones (general). */
#define NODE_NS 1500.0
#define PART 0.8
/* A product with 16 bit that is added to floats, as gradients are: SimuMax, cards_speed.def. */
#define INTO_FLOATS 0.9

/* Cards of a node where a recording does not say it: HGX, DGX. */
enum { NODE = 8 };

struct link {
	int cc;
	double sum, spread, all, one, nic, least, each, doubt; /* GB/s, us, percent */
};

static const struct link links[] = {
#define VC_LINK(cc, sum, spread, all, one, nic, least, each, doubt, source) \
	{ cc, sum, spread, all, one, nic, least, each, doubt },
#include "simulator/time/cards_speed.def"
#undef VC_LINK
};

/* From one to one. Those of a group are one operation: the first bears what it takes at least, and
 * what comes in while others go out takes no longer. */
static struct vc_costs message(const struct vc_card *c, const struct vc_kernel_work *w,
			      const struct link *l, bool in)
{
	bool alone = *w->type == '-', own = w->dim[1] == w->dim[3];
	double rate = w->type[1] == 'o' ? fmin(l->one, l->nic) : l->one;
	double ns = own ? 2 * w->read / c->bandwidth_gbs : in && !alone ? 0 : w->read / rate;

	return (struct vc_costs){ ns + (*w->type == 'n' ? 0.001 : 1e3 * l->least), l->doubt / 100 };
}

/* ns of the bytes between ranks that lie on several nodes, so many on each: a ring goes over as
 * many network cards at once as ranks lie on a node; to all others each has its own card. */
static double over_nodes(const struct link *l, double bytes, double ranks, double beside, bool all)
{
	double away = (ranks - beside) / ranks;

	return all ? fmax(bytes * away / l->nic, bytes * (beside - 1) / ranks / l->all) :
		     bytes * (ranks - 1) / ranks / (beside * l->nic);
}

/* A collective of so many bytes, of the whole buffer: each rank sends and receives all but its own
 * part, for a sum twice. */
static struct vc_costs collective(const struct vc_card *c, const struct vc_kernel_work *w,
				 const char *name)
{
	double ranks = (double)w->dim[0], part = ranks > 0 ? (ranks - 1) / ranks : 0;
	double beside = w->dim[3] ? (double)w->dim[3] : fmin(ranks, NODE), ns;
	bool sum = strstr(name, "Reduce") && !strstr(name, "Scatter");
	bool all = strstr(name, "AlltoAll");
	const struct link *l = links;

	while (l->cc && l->cc != c->cc_major * 10 + c->cc_minor)
		l++;
	if (ranks < 2)
		return (struct vc_costs){ 2000, 0.5 };
	if (strstr(name, "Send") || strstr(name, "Recv"))
		return message(c, w, l, !strcmp(name, "ncclRecv"));
	ns = part * w->written / (sum ? l->sum / 2 : all ? l->all : l->spread);
	if (beside < ranks)
		ns = fmax(ns, (sum ? 2 : 1) * over_nodes(l, w->written, ranks, beside, all));
	return (struct vc_costs){ ns + 1e3 * (l->least + l->each * (ranks - 1)), l->doubt / 100 };
}

static const struct speed *speed_of(const struct vc_card *c, const struct vc_kernel_work *w)
{
	int cc = c->cc_major * 10 + c->cc_minor;

	for (size_t i = 0; i < sizeof(speeds) / sizeof(*speeds); i++) {
		const struct speed *s = &speeds[i];

		if (s->kind == w->kind && strstr(c->title, s->card) &&
		    (!s->cc || s->cc == cc) && (!*s->type || !strcmp(s->type, w->type)))
			return s;
	}
	return NULL;
}

double vc_cost_peak(const struct vc_card *c, const char *type)
{
	static const struct { const char *type; enum vc_card_rate rate; } rates[] = {
		{ "tf32", VC_RATE_TF32 }, { "fp16", VC_RATE_FP16 }, { "bf16", VC_RATE_BF16 },
		{ "fp8", VC_RATE_FP8 }, { "fp64", VC_RATE_FP64 },
	};

	for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++)
		if (!strcmp(rates[i].type, type))
			return 1e12 * vc_card_tflops(c, rates[i].rate);
	return 1e12 * vc_card_tflops(c, VC_RATE_FP32);
}

static double up(double n, double by)
{
	return ceil(n / by);
}

/* Tiles of a product, and the share of the rate that one of that size reaches. */
static const struct { double m, n, share; } tiles[] = {
	{ 256, 128, 1 }, { 128, 256, 1 }, { 128, 128, 1 }, { 128, 64, 0.85 }, { 64, 128, 0.85 },
	{ 64, 64, 0.75 }, { 32, 64, 0.5 }, { 64, 32, 0.5 }, { 32, 32, 0.35 },
};
/* A sum is cut into parts of at least so many, without tensor cores and with them; those of a batch
 * are not. */
enum { CUT_FP32 = 256, CUT = 1024 };

/* ns of the product with the tiles that serve it best. */
static double product(const struct vc_card *c, const struct vc_kernel_work *w, double rate)
{
	double m = (double)w->dim[0], n = (double)w->dim[1], k = (double)w->dim[2];
	double batch = (double)w->dim[3], sms = c->sms, best = INFINITY;
	double each = m * n * k * batch > 0 ? w->flops / (m * n * k * batch) : 2;
	double part = strcmp(w->type, "fp32") ? CUT : CUT_FP32;

	for (size_t i = 0; i < sizeof(tiles) / sizeof(*tiles); i++) {
		double many = up(m, tiles[i].m) * up(n, tiles[i].n) * batch;
		/* a long sum is cut where there are few tiles */
		double cuts = batch > 1 ? 1 : fmax(1, fmin(floor(sms / many), floor(k / part)));
		double waves = up(many * cuts, sms);
		double one = tiles[i].m * tiles[i].n * each * k / cuts;
		double ns = waves * (TILE_NS + one / (rate / sms * tiles[i].share) * 1e9) +
			    (cuts > 1 ? 2 * TILE_NS : 0);

		best = fmin(best, ns);
	}
	return best;
}

static double attention(const struct vc_card *c, const struct vc_kernel_work *w, double rate,
			double back)
{
	double heads = (double)w->dim[0], q = (double)w->dim[1], k = (double)w->dim[2];
	double d = (double)w->dim[3], sms = c->sms, all = 4 * heads * q * k * d;
	bool backward = w->flops > 1.1 * all; /* five products, not two */
	double side = d > 64 ? 64 : 128;
	double rows = up(backward ? k : q, 128), columns = up(backward ? q : k, side);
	double full = (backward ? 2.5 : 1) * all;
	bool causal = w->flops < 0.95 * full;
	double blocks = heads * rows, walk = causal ? (columns + 1) / 2 : columns;
	double tile = (backward ? 10 : 4) * 128 * side * d;
	double ns = (c->cc_major >= 10 ? LATER_BLOCK_NS : ATTENTION_BLOCK_NS) +
		    walk * tile / (rate * (backward ? back : 1) / sms) * 1e9;

	return fmax(1, blocks / sms) * ns;
}

static double hot(double ns)
{
	return 1 + HOT * fmin(1, fmax(0, log(ns / COOL_NS) / log(HOT_NS / COOL_NS)));
}

static double computing(const struct vc_card *c, const struct vc_kernel_work *w,
			const struct speed *s, const char *name)
{
	double rate = s->compute * vc_cost_peak(c, w->type);
	bool half = !strcmp(w->type, "bf16") || !strcmp(w->type, "fp16");

	if (!(rate > 0) || !c->sms)
		return 0;
	if (w->kind == VC_WORK_ATTENTION && half && c->cc_major == 9 && strstr(name, "cudnn"))
		return attention(c, w, vc_cost_peak(c, w->type) *
				 (w->dim[3] > 64 ? CUDNN : CUDNN_NARROW), CUDNN_BACKWARD);
	if (w->kind == VC_WORK_ATTENTION)
		return attention(c, w, rate, BACKWARD);
	if (half && w->kind == VC_WORK_GEMM && w->dim[0] && w->dim[1] &&
	    w->written > 3 * (double)(w->dim[0] * w->dim[1] * w->dim[3]))
		rate *= INTO_FLOATS;
	if (half && strstr(name, "_align1"))
		rate *= ODD;
	else if (half && (strstr(name, "_align2") || (w->kind == VC_WORK_GEMM && w->dim[0] % 8 &&
						      w->dim[0] > 1)))
		rate *= MISALIGNED;
	double ns = w->dim[0] && w->dim[1] && w->dim[2] ? product(c, w, rate) :
							  w->flops / rate * 1e9;

	return half && c->cc_major == 9 && w->kind == VC_WORK_GEMM ? ns * hot(ns) : ns;
}

static double element(const char *type)
{
	return !strcmp(type, "bf16") || !strcmp(type, "fp16") ? 2 : 4;
}

/* Kernels one after another, of which only the sums are known: products reach what they do
 * elsewhere, the others what additions do. */
static struct vc_costs graph(const struct vc_card *c, const struct vc_kernel_work *w)
{
	struct vc_kernel_work part = { .kind = VC_WORK_GEMM };
	const struct speed *s;
	double ns = NODE_NS * (double)w->dim[0];

	memcpy(part.type, w->type, sizeof(part.type));
	s = speed_of(c, &part);
	if (s && w->dim[1])
		ns += (s->least - NODE_NS) * (double)w->dim[1];
	if (w->flops > 0)
		ns += w->flops / (PART * s->compute * vc_cost_peak(c, w->type)) * 1e9;
	return (struct vc_costs){ ns + (w->read + w->written) / (PART * c->bandwidth_gbs), 0.5 };
}

/* Bytes of the second-level cache, by compute capability: NVIDIA's white papers. */
static double cache_of(const struct vc_card *c)
{
	static const struct { int cc; double mib; } caches[] = {
		{ 120, 96 }, { 103, 126 }, { 100, 126 }, { 90, 50 }, { 89, 72 }, { 80, 40 },
		{ 0, 6 },
	};
	size_t i = 0;

	while (caches[i].cc && caches[i].cc != c->cc_major * 10 + c->cc_minor)
		i++;
	return caches[i].mib * 1048576;
}

/* GB/s that one multiprocessor of an H100 moves when all move what its memory can. What a kernel
 * falls short of, it does in each multiprocessor: those of a card with less bandwidth to each of
 * them may still reach that. */
#define H100_GBS (3352.0 / 132)

static double moved_by_sms(const struct vc_card *c, double share, double reached)
{
	double most = fmax(share, reached) * c->bandwidth_gbs;

	return fmin(share * fmax(c->sms * H100_GBS, c->bandwidth_gbs), most);
}

static double thin(const struct vc_card *c, const struct vc_kernel_work *w, double reached)
{
	double share = w->dim[0] > 1 ? THIN : w->dim[1] < LARGE_TAPS ? THIN_FILTERS : THIN_LARGE;

	return fmax((w->read + w->written) / moved_by_sms(c, THIN_MOVE, reached),
		    w->flops / (share * vc_cost_peak(c, "fp32")) * 1e9);
}

static bool computes(const struct vc_kernel_work *w)
{
	return w->kind == VC_WORK_GEMM || w->kind == VC_WORK_CONV || w->kind == VC_WORK_ATTENTION;
}

/* Of a kernel that hardly computes. */
static double moving(const struct vc_card *c, const struct vc_kernel_work *w, const struct speed *s)
{
	double bytes = w->read + w->written, rate = s->move * c->bandwidth_gbs;
	bool sum = w->kind == VC_WORK_REDUCTION && w->dim[2] && c->sms;

	if (w->kind != VC_WORK_GATHER && w->kind != VC_WORK_OPTIMIZER)
		rate *= 1 + CACHED * fmax(0, 1 - bytes / cache_of(c));
	if (sum)
		rate = fmin(rate, ONE_SM * c->bandwidth_gbs * (double)w->dim[0] / c->sms);
	return bytes / rate + (sum && w->dim[2] > 1 ? TOGETHER_NS : 0);
}

/* ns of a kernel that is known by its name; 0: it is not. */
static double by_name(const struct vc_card *c, const struct vc_kernel_work *w, const char *name,
		      double reached)
{
	double threads = (double)w->dim[0] * (double)w->dim[1];

	if (strstr(name, "RowwiseMoments") && threads > 0)
		return w->read / element(w->type) / threads * WALK_NS;
	for (size_t i = 0; i < sizeof(named) / sizeof(*named); i++)
		if (strstr(name, named[i].name))
			return (w->read + w->written) / moved_by_sms(c, named[i].move, reached);
	return 0;
}

/* Elements of which a card computes the offsets in a ns. */
static double offsets(const struct vc_card *c)
{
	int sm, memory;

	vc_card_clocks(c, &sm, &memory);
	return OFFSETS * c->sms * sm / 1e3;
}

/* The work as this card has it: before Ampere there is no TF32. One of which nothing is known but
 * how many threads it has is taken as if each read and wrote a word, so that it shows whether it
 * matters. */
static struct vc_kernel_work work_on(const struct vc_card *c, const struct vc_kernel_work *w)
{
	struct vc_kernel_work x = *w;

	if (c->cc_major < 8 && !strcmp(x.type, "tf32"))
		memcpy(x.type, "fp32", sizeof("fp32"));
	if (!vc_kernel_work_is_known(w))
		x.read = x.written = 4 * (double)w->dim[0] * (double)w->dim[1];
	return x;
}

struct vc_costs vc_cost_of(const struct vc_card *c, const struct vc_kernel_work *work,
			  const char *name)
{
	struct vc_kernel_work there = work_on(c, work), *w = &there;

	if (w->kind == VC_WORK_COLLECTIVE)
		return collective(c, w, name);
	if (w->kind == VC_WORK_GRAPH)
		return graph(c, w);
	const struct speed *s = speed_of(c, w);
	double ns, bytes = w->read + w->written;

	if (!s || !(c->bandwidth_gbs > 0))
		return (struct vc_costs){ 0 };
	if (w->kind == VC_WORK_CONV && w->dim[3] > 1 && (w->dim[0] == 1 || w->dim[1] == 1))
		return (struct vc_costs){ s->least + thin(c, w, s->move), s->doubt / 100 };
	ns = computes(w) ? bytes / (s->move * c->bandwidth_gbs) : moving(c, w, s);
	if (by_name(c, w, name, s->move) > 0)
		ns = by_name(c, w, name, s->move);
	else if ((w->kind == VC_WORK_ELEMENTWISE || w->kind == VC_WORK_COPY) && c->sms &&
		 strstr(name, "elementwise_kernel") && !strstr(name, "vectorized"))
		ns = fmax(ns, w->written / element(w->type) / offsets(c));
	if (computes(w))
		ns = fmax(ns, computing(c, w, s, name));
	return (struct vc_costs){ s->least + ns, s->doubt / 100 };
}
