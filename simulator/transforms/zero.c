/* SPDX-License-Identifier: Apache-2.0 */
/* zero.c - what-if: DeepSpeed ZeRO stages 0 to 3 over several cards, with offload to the host, as
 * DeepSpeed 0.19 does it (runtime/zero/stage_1_and_2.py, stage3.py), and torch's
 * ZeroRedundancyOptimizer (bucket=0).
 *
 * Stages 1 and 2: all parameters become one flat tensor beside its old ones, and a float shard of
 * it is kept; the first gradient of a pass brings a bucket of reduce_bucket_size values however
 * small the model is, into which gradients are copied (stage 2 gives them back at once, stage 1
 * when the bucket is reduced); reducing it flattens it once more; what stays is a shard, whose
 * norm is computed in double, and which the step takes in float. Stage 3: shards of the
 * parameters, the bucket and a shard of gradients stay for good; parameters are gathered in parts
 * on a stream of their own, and stay until their gradient is there as long as fewer than
 * stage3_max_live_parameters are. Activations stay as recorded. */

#include "common/vec.h"
#include "simulator/anatomy/formulas.h"
#include "simulator/replay/transform.h"
#include "simulator/rewrite/resize.h"

enum offload { NOTHING, OPTIMIZER, ALL };
enum {
	TENSOR_STAYS = 100000, /* values: stage3_param_persistence_threshold */
	AHEAD = 3,             /* parts that were seen fetched ahead at once */
};

struct config { uint64_t stage, ranks, offload, bucket, prefetch, element, live; bool overlap; };

#define AT(f) offsetof(struct config, f)
static const struct vc_param params[] = {
	{ "stage", VC_P_UINT, AT(stage), "2", "0 to 3", NULL },
	{ "ranks", VC_P_UINT, AT(ranks), "2", "cards that share the states", NULL },
	{ "offload", VC_P_ENUM, AT(offload), "none", "what lives in host memory",
	  "none,optimizer,all" },
	{ "bucket", VC_P_UINT, AT(bucket), "500000000",
	  "reduce_bucket_size in values; 0: torch's own stage 1", NULL },
	{ "prefetch", VC_P_UINT, AT(prefetch), "50000000", "values gathered ahead (stage 3)",
	  NULL },
	{ "element", VC_P_UINT, AT(element), "4",
	  "bytes per value of the recorded parameters, and in buckets: 2 for a recording in 16 "
	  "bit",
	  NULL },
	{ "live", VC_P_UINT, AT(live), "1000000000",
	  "stage3_max_live_parameters: up to so many values stay gathered between the passes",
	  NULL },
	{ "overlap", VC_P_BOOL, AT(overlap), "false",
	  "overlap_comm of stages 1 and 2: the bucket twice", NULL },
	VC_PARAM_END };

static int zero_open(struct vc_source *s, struct vc_error *err)
{
	const struct config *c = s->config;

	if (c->stage > 3)
		return vc_fail(err, VC_EUSAGE, "zero: stage is 0 to 3");
	if (!c->ranks || c->ranks > 1u << 20)
		return vc_fail(err, VC_EUSAGE, "zero: ranks starts at 1");
	if (!c->bucket && c->stage > 1)
		return vc_fail(err, VC_EUSAGE, "zero: bucket=0 is torch's "
			       "ZeroRedundancyOptimizer, which has stage 1 only");
	if (c->element != 2 && c->element != 4)
		return vc_fail(err, VC_EUSAGE, "zero: element is 2 or 4");
	if (c->offload == ALL && c->stage < 3)
		return vc_fail(err, VC_EUSAGE, "zero: parameters are offloaded by stage 3 only");
	return VC_OK;
}

/* ---- ZeroRedundancyOptimizer: states of whole tensors, shared out ---- */

static uint64_t redundancy(struct vc_resize *r, const struct vc_block_life *b)
{
	const struct config *c = r->config;

	switch ((enum vc_category)b->category) {
	case VC_CAT_STATE: case VC_CAT_OPTIMIZER_TEMP:
		return c->stage ? vc_per(b->size, c->ranks) : b->size;
	default: return b->size;
	}
}

/* ---- DeepSpeed ---- */

struct zero {
	struct vc_resize r;         /* first: hooks get a pointer to it */
	uint32_t stream, reducing;  /* streams of the gathers, of the reductions of stage 3 */
	uint64_t values, small;     /* trainable ones; those of tensors that stage 3 keeps whole */
	uint64_t bucket, averaged;  /* blocks, 0: not there */
	uint64_t filled;            /* values in the bucket */
	uint64_t state;             /* bytes of recorded states per value */
	bool foreach;               /* the recorded optimizer has temporaries */
	uint32_t *open; size_t opens; /* gradients that wait for the reduction (stage 1) */
	uint64_t *gathered;
	size_t gathers, given;          /* whole parameters in order of the forward pass; stage 0:
					 * three lists of blocks */
	bool wrapped, stepped, waiting; /* waiting: for the bucket */
};

static struct zero *zero_of(struct vc_resize *r)
{
	return (struct zero *)(void *)r;
}

static const struct config *config_of(const struct zero *z)
{
	return z->r.config;
}

static uint64_t deepspeed(struct vc_resize *r, const struct vc_block_life *b)
{
	const struct config *c = r->config;

	if (!c->stage && c->element == 4)
		return b->size;
	if (b->category == VC_CAT_STATE)
		return 0;
	return b->category == VC_CAT_OPTIMIZER_TEMP && b->size >= 4096 ? 0 : b->size;
}

static int put(struct zero *z, const struct vc_event *e, uint64_t size, uint64_t *id,
	       struct vc_error *err)
{
	*id = 0;
	return size ? vc_clone_alloc(&z->r.c, e, size, id, err) : VC_OK;
}

/* Asked for, used and given back. */
static int pass(struct zero *z, const struct vc_event *e, uint64_t size, struct vc_error *err)
{
	uint64_t id;

	VC_TRY(put(z, e, size, &id, err));
	return vc_clone_free(&z->r.c, e, id, err);
}

/* The recorded parameters go: one for each gradient, of its size. */
static int drop_parameters(struct zero *z, const struct vc_event *e, struct vc_error *err)
{
	struct vc_clone *c = &z->r.c;

	for (size_t t = 0, i; t < z->r.trainables; t++) {
		for (i = 0; i < c->a.n && (c->a.block[i].category != VC_CAT_PARAMETER ||
					   !c->alias[c->a.block[i].id] ||
					   c->a.block[i].size != z->r.trainable[t] ||
					   &c->w->in[c->a.block[i].event] >= e); i++)
			;
		if (i == c->a.n)
			continue;
		VC_TRY(vc_clone_free(c, e, c->alias[c->a.block[i].id], err));
		c->alias[c->a.block[i].id] = 0;
	}
	return VC_OK;
}

static uint64_t floats(const struct zero *z)
{
	return config_of(z)->offload ? 0 : 4 * vc_per(z->values, config_of(z)->ranks);
}

/* The float shard, for 16 bit by way of one, and what initialises the states. */
static int master(struct zero *z, const struct vc_event *e, struct vc_error *err)
{
	const struct config *c = config_of(z);
	uint64_t id, mine = vc_per(z->values, c->ranks);

	if (c->element == 2 && c->stage < 3)
		VC_TRY(pass(z, e, 2 * mine, err));
	VC_TRY(put(z, e, floats(z), &id, err));
	return pass(z, e, floats(z), err);
}

static int wrap(struct zero *z, const struct vc_event *e, struct vc_error *err)
{
	const struct config *c = config_of(z);
	uint64_t id, flat = z->values * c->element, mine = vc_per(z->values, c->ranks) * c->element;

	z->wrapped = true;
	if (c->stage < 3) {
		VC_TRY(put(z, e, flat, &id, err));
		VC_TRY(drop_parameters(z, e, err));
		if (c->offload) /* temp_grad_buffer_for_gpu_offload: the largest gradient */
			VC_TRY(put(z, e, z->r.largest, &id, err));
		return master(z, e, err);
	}
	struct vc_event trim = vc_event_like(e, VC_EV_TRIM, 0, 0);

	VC_TRY(drop_parameters(z, e, err));
	VC_TRY(vc_whole_put(z->r.c.w, &trim, 1, err)); /* Init empties the cache */
	if (c->offload != ALL)
		VC_TRY(put(z, e, mine, &id, err));
	VC_TRY(master(z, e, err));
	VC_TRY(put(z, e, c->bucket * c->element, &z->bucket, err));
	if (!c->offload)
		VC_TRY(put(z, e, mine, &id, err)); /* shards of the gradients */
	VC_TRY(pass(z, e, z->r.largest, err)); /* each is sent to all once */
	return put(z, e, z->small * c->element, &id, err);
}

/* The bucket is full or the pass is over: flattened, averaged, shared out. */
static int reduce(struct zero *z, const struct vc_event *e, struct vc_error *err)
{
	const struct config *c = config_of(z);
	struct vc_event at = *e;

	at.stream = c->stage == 3 ? z->reducing : e->stream;

	VC_TRY(pass(z, &at, z->filled * c->element, err));
	for (size_t i = 0; i < z->opens; i++) {
		uint64_t *alias = &z->r.c.alias[z->r.c.a.block[z->open[i]].id];

		VC_TRY(vc_clone_free(&z->r.c, e, *alias, err));
		*alias = 0;
	}
	z->opens = 0;
	z->filled = 0;
	if (!z->averaged && c->stage < 3 && c->stage && !c->offload)
		VC_TRY(put(z, e, vc_per(z->values, c->ranks) * c->element, &z->averaged, err));
	return VC_OK;
}

/* The part that ends before parameter `end` of those in order of the backward pass: as many
 * values as are fetched at once. Returns where it begins; its bytes in *bytes. */
static size_t part_of(const struct zero *z, size_t end, uint64_t *bytes)
{
	const struct config *c = config_of(z);
	size_t k = end;

	for (*bytes = 0;
	     k > 0 && (k == end || *bytes + z->r.trainable[k - 1] <= c->prefetch * c->element);)
		*bytes += z->r.trainable[--k];
	return k;
}

/* Copied out of the part, each a tensor of its own. */
static int copy_out(struct zero *z, const struct vc_event *e, size_t from, size_t to,
		    struct vc_error *err)
{
	uint64_t id;

	for (; to > from; to--) {
		VC_TRY(put(z, e, z->r.trainable[to - 1], &id, err));
		if (z->values <= config_of(z)->live && z->gathers < z->r.trainables)
			z->gathered[z->gathers++] = id;
		else
			VC_TRY(vc_clone_free(&z->r.c, e, id, err));
	}
	return VC_OK;
}

/* Parts of the model are gathered flat, some of them ahead, and copied out. */
static int gather(struct zero *z, const struct vc_event *at, struct vc_error *err)
{
	struct vc_event e = *at;
	size_t asked = z->r.trainables, done = asked, first = 0, ahead = 0;
	uint64_t flat[AHEAD], bytes;

	e.stream = z->stream;
	while (done > 0) {
		for (; asked > 0 && ahead < AHEAD; ahead++) {
			asked = part_of(z, asked, &bytes);
			VC_TRY(put(z, &e, bytes, &flat[(first + ahead) % AHEAD], err));
		}
		size_t from = part_of(z, done, &bytes);

		VC_TRY(copy_out(z, &e, from, done, err));
		VC_TRY(vc_clone_free(&z->r.c, &e, flat[first], err));
		first = (first + 1) % AHEAD;
		ahead--;
		done = from;
	}
	return VC_OK;
}

/* In the first pass nothing is known of the order: one by one, and given back. */
static int gather_singly(struct zero *z, const struct vc_event *at, struct vc_error *err)
{
	struct vc_event e = *at;

	e.stream = z->stream;
	for (size_t i = z->r.trainables; i > 0; i--)
		VC_TRY(pass(z, &e, z->r.trainable[i - 1], err));
	return VC_OK;
}

static int give_one(struct zero *z, const struct vc_event *e, struct vc_error *err)
{
	if (z->gathers == z->given)
		return VC_OK;
	return vc_clone_free(&z->r.c, e, z->gathered[z->gathers - 1 - z->given++], err);
}

/* The operation that made the first gradient gives its own back first. */
static int asked(struct vc_resize *r, const struct vc_block_life *b, const struct vc_event *e,
		 struct vc_error *err)
{
	struct zero *z = zero_of(r);
	const struct config *c = config_of(z);

	if (!z->waiting || e[-1].kind != VC_EV_FREE)
		return VC_OK;
	z->waiting = false;
	return put(z, e, c->bucket * c->element * (1 + c->overlap), &z->bucket, err);
}

static int born(struct vc_resize *r, const struct vc_block_life *b, const struct vc_event *e,
		struct vc_error *err)
{
	struct zero *z = zero_of(r);
	const struct config *c = config_of(z);
	uint64_t values = b->size / c->element;

	if (z->filled && z->filled + values > c->bucket)
		VC_TRY(reduce(z, e, err));
	z->waiting |= !z->bucket && c->stage;
	z->filled += values <= c->bucket ? values : 0;
	if (c->stage == 1)
		z->open[z->opens++] = b->born;
	return c->stage == 3 ? give_one(z, e, err) : VC_OK;
}

/* The norm of the shard's largest part in double, the shard in float, new states the first time. */
static int step(struct zero *z, const struct vc_event *e, struct vc_error *err)
{
	const struct config *c = config_of(z);
	uint64_t mine = vc_per(z->values, c->ranks), flat = 0, id,
		 largest = z->r.largest / c->element;
	uint64_t part = c->stage == 3 ? vc_per(largest, c->ranks) : vc_least(mine, largest);

	if (!c->offload)
		VC_TRY(pass(z, e, 8 * part, err));
	if (c->element == 2 && c->stage < 3 && !c->offload)
		VC_TRY(pass(z, e, 2 * mine, err));
	VC_TRY(put(z, e, floats(z), &flat, err));
	if (c->stage < 3)
		VC_TRY(vc_clone_free(&z->r.c, e, z->averaged, err));
	z->averaged = 0;
	for (uint64_t i = 0; !z->stepped && floats(z) && i < z->state; i++)
		VC_TRY(put(z, e, floats(z), &id, err));
	z->stepped = true;
	if (z->foreach)
		VC_TRY(pass(z, e, floats(z), err));
	return vc_clone_free(&z->r.c, e, flat, err);
}

/* ---- stage 0 in 16 bit (runtime/fp16/unfused_optimizer.py): float copies tensor by tensor ---- */

/* Every trainable tensor, in the order of the model: `times` its size, remembered in id. */
static int put_all(struct zero *z, const struct vc_event *e, uint64_t times, uint64_t *id,
		   struct vc_error *err)
{
	for (size_t i = z->r.trainables; i-- > 0;)
		VC_TRY(put(z, e, times * z->r.trainable[i], &id[i], err));
	return VC_OK;
}

static int free_all(struct zero *z, const struct vc_event *e, const uint64_t *id,
		    struct vc_error *err)
{
	for (size_t i = z->r.trainables; i-- > 0;)
		VC_TRY(vc_clone_free(&z->r.c, e, id[i], err));
	return VC_OK;
}

/* Gradients in float, and the temporaries of a step over all of them. */
static int float_step(struct zero *z, const struct vc_event *e, bool states, struct vc_error *err)
{
	uint64_t *id = z->gathered, *temporary = id + z->r.trainables, state;

	VC_TRY(put_all(z, e, 2, id, err));
	for (size_t i = z->r.trainables; states && i-- > 0;)
		for (uint64_t k = 0; k < z->state; k++)
			VC_TRY(put(z, e, 2 * z->r.trainable[i], &state, err));
	if (z->foreach)
		VC_TRY(put_all(z, e, 2, temporary, err));
	if (z->foreach)
		VC_TRY(free_all(z, e, temporary, err));
	return free_all(z, e, id, err);
}

static int wrap_float(struct zero *z, const struct vc_event *e, struct vc_error *err)
{
	uint64_t *zeros = z->gathered + 2 * z->r.trainables, id, narrow;

	z->wrapped = true;
	for (size_t i = z->r.trainables; i-- > 0;) {
		VC_TRY(put(z, e, z->r.trainable[i], &narrow, err));
		VC_TRY(put(z, e, 2 * z->r.trainable[i], &id, err));
		VC_TRY(vc_clone_free(&z->r.c, e, narrow, err));
	}
	VC_TRY(put_all(z, e, 1, zeros, err));
	VC_TRY(float_step(z, e, true, err)); /* with gradients of zero: makes the states */
	return free_all(z, e, zeros, err);
}

static int enter_float(struct zero *z, const struct vc_span *p, const struct vc_event *e,
		       struct vc_error *err)
{
	if (p->phase == VC_PHASE_FORWARD && !z->wrapped)
		return wrap_float(z, e, err);
	if (p->phase != VC_PHASE_OPTIMIZER)
		return VC_OK;
	for (size_t i = z->r.trainables; i-- > 0;) /* the norm of each */
		VC_TRY(pass(z, e, 2 * z->r.trainable[i], err));
	return float_step(z, e, false, err);
}

static int enter(struct vc_resize *r, const struct vc_span *p, const struct vc_event *e,
		 struct vc_error *err)
{
	struct zero *z = zero_of(r);
	const struct config *c = config_of(z);

	if (!c->stage)
		return c->element == 2 ? enter_float(z, p, e, err) : VC_OK;
	if (p->phase == VC_PHASE_FORWARD && !z->wrapped)
		VC_TRY(wrap(z, e, err));
	if (p->phase == VC_PHASE_FORWARD && c->stage == 3) {
		z->gathers = z->given = 0;
		VC_TRY(p->iteration ? gather(z, e, err) : gather_singly(z, e, err));
	}
	if (p->phase == VC_PHASE_BACKWARD && c->stage == 3 && !p->iteration)
		VC_TRY(gather_singly(z, e, err));
	if (p->phase == VC_PHASE_OPTIMIZER)
		VC_TRY(step(z, e, err));
	return VC_OK;
}

static int leave(struct vc_resize *r, const struct vc_span *p, const struct vc_event *e,
		 struct vc_error *err)
{
	struct zero *z = zero_of(r);
	const struct config *c = config_of(z);

	if (p->phase != VC_PHASE_BACKWARD)
		return VC_OK;
	while (z->given < z->gathers)
		VC_TRY(give_one(z, e, err));
	VC_TRY(reduce(z, e, err));
	if (c->stage < 3) {
		VC_TRY(vc_clone_free(&z->r.c, e, z->bucket, err));
		z->bucket = 0;
		z->waiting = false;
	}
	return VC_OK;
}

/* What of the recording its size says: values, and how many states the optimizer keeps of each. */
static int prepare(struct vc_resize *r, struct vc_error *err)
{
	struct zero *z = zero_of(r);
	const struct config *c = config_of(z);
	uint64_t states = 0;

	for (size_t i = 0; i < r->c.a.n; i++) {
		const struct vc_block_life *b = &r->c.a.block[i];

		states += b->category == VC_CAT_STATE ? b->size : 0;
		z->foreach |= b->category == VC_CAT_OPTIMIZER_TEMP && b->size >= 4096;
	}
	z->values = r->trainable_bytes / c->element;
	z->state = r->trainable_bytes ? (states + r->trainable_bytes / 2) / r->trainable_bytes : 0;
	for (size_t i = 0; i < r->trainables; i++)
		z->small += r->trainable[i] < TENSOR_STAYS * c->element ?
				    r->trainable[i] / c->element :
				    0;
	z->open = calloc(r->c.a.n + 1, sizeof(*z->open));
	z->gathered = calloc(3 * r->trainables + 1, sizeof(*z->gathered));
	return z->open && z->gathered ? VC_OK : vc_nomem(err, "what ZeRO holds");
}

static int say_host(struct vc_source *s, struct vc_whole *w, const struct vc_resize *r,
		    struct vc_error *err)
{
	const struct config *c = s->config;
	double moved = (double)(r->trainable_bytes / c->element) *
		       (c->offload == ALL ? 12 + (double)c->element : 12);
	double all = vc_deepspeed_host((double)(r->trainable_bytes / c->element),
				       (double)(r->largest / c->element), (unsigned)c->stage,
				       (double)c->ranks, (int)c->offload);
	int rc = vc_whole_host(s, w, &w->in[0], w->next_id++, (uint64_t)(all / (double)c->ranks),
			       err);

	if (rc == VC_OK)
		vc_meta_note(s->meta,
			     "zero: %.2f GiB of states and parameters of this rank leave the "
			     "card; DeepSpeed's estimate is %.2f GiB of host memory for all %llu "
			     "ranks, with values of %llu bytes in the recording (element=)",
			     moved / (double)c->ranks / (1u << 30), all / (1u << 30),
			     (unsigned long long)c->ranks, (unsigned long long)c->element);
	return rc;
}

/* torch's ZeroRedundancyOptimizer shares states out and nothing else. */
static void say_gradients(struct vc_source *s)
{
	const struct vc_source *up = s->upstream;

	while (up && strcmp(up->type->name, "ddp"))
		up = up->upstream;
	if (!up)
		vc_meta_note(s->meta,
			     "zero: bucket=0 needs DistributedDataParallel, which averages the "
			     "gradients in buckets of its own; they are not in this answer unless "
			     "the recording has them: put -x ddp before it");
}

static int rewrite(struct vc_source *s, struct vc_whole *w, struct vc_error *err)
{
	const struct config *c = s->config;
	struct zero z = { .r = { .config = c, .size = c->bucket ? deepspeed : redundancy } };

	if (c->bucket) {
		z.r.enter = enter;
		z.r.leave = leave;
		z.r.asked = asked;
		z.r.born = born;
		z.r.prepare = prepare;
		z.r.gradients_live = c->stage >= 2 ? 2 : 0;
		z.stream = vc_meta_stream(s->meta, UINT64_C(0xf5d9000000000003));
		z.reducing = vc_meta_stream(s->meta, UINT64_C(0xf5d9000000000004));
	}
	if (!c->bucket && c->ranks > 1)
		say_gradients(s);
	int rc = vc_resize_run(&z.r, s, w, err);
	VC_FREE(z.open, z.gathered);
	if (rc == VC_OK && c->offload && w->n)
		rc = say_host(s, w, &z.r, err);
	return rc == VC_OK ? vc_whole_processes(s, w, c->ranks, err) : rc;
}

/* The gathers of stage 3 on streams of their own break the cache up more than is predicted. */
static const struct vc_margin *margin_with(const void *config)
{
	static const struct vc_margin stage3 = { .down = 6, .up = 18 };

	return ((const struct config *)config)->stage == 3 ? &stage3 : NULL;
}

static const struct vc_remedy remedies[] = {
	{ .cost = VC_COST_CARDS, .kind = "hardware", .estimate = true, .needs = VC_TRAIT_TRAINS,
	  .text = "two cards with ZeRO stage 2", .params = "stage=2,ranks=2",
	  .paste = "{\"zero_optimization\": {\"stage\": 2}}" },
	{ .kind = NULL } };

const struct vc_source_type vc_transform_zero = {
	.name = "zero", .summary = "DeepSpeed ZeRO stages 0 to 3, with offload to the host",
	.params = params, .config_size = sizeof(struct config),
	.margin = &(const struct vc_margin){ .down = 6, .up = 12 },
	.margin_with = margin_with, .remedies = remedies, .open = zero_open,
	VC_WHOLE(rewrite),
};
