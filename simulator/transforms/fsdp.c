/* SPDX-License-Identifier: Apache-2.0 */
/* fsdp.c - what-if: fully sharded data parallel, as PyTorch 2.0 to 2.15 does it.
 *
 * version=2, fully_shard (torch/distributed/fsdp/_fully_shard): before a unit is used its shards
 * are gathered into one buffer on a stream of its own and copied out into whole parameters; the
 * buffer goes when the next unit has been copied out, in the backward pass at once, after which
 * the unit before it is gathered ahead. Whole gradients are copied into one buffer when a unit is
 * through, and scattered into one block on a third stream; the buffer goes when the next unit is
 * that far.
 *
 * version=1, FullyShardedDataParallel (_runtime_utils.py, _flat_param.py): a unit is one flat
 * tensor, made on the stream of the gathers; whole gradients are put into one flat tensor there,
 * and scattered on a third stream. What another stream still uses is pending: the host waits,
 * before each gather with two units on their way back, for the older of them (limit_all_gathers).
 *
 * The blocks of each stream are of a pool of their own, which is most of what FSDP reserves. */

#include "common/vec.h"
#include "simulator/replay/transform.h"
#include "simulator/rewrite/fsdp_units.h"

enum bound { BEST, LOW, HIGH };
enum wrap { BLOCK, WHOLE };
enum { LIMIT = 2, SMALL = 4096, OFFSETS = 22528 };

struct config { uint64_t ranks, version, wrap, bound; bool reshard, root, mixed; };

#define AT(f) offsetof(struct config, f)
static const struct vc_param params[] = {
	{ "ranks", VC_P_UINT, AT(ranks), "2", "cards that share the states", NULL },
	{ "version", VC_P_UINT, AT(version), "2", "1: FullyShardedDataParallel, 2: fully_shard",
	  NULL },
	{ "wrap", VC_P_ENUM, AT(wrap), "block",
	  "units: each layer and the rest, or the model as one", "block,whole" },
	{ "reshard", VC_P_BOOL, AT(reshard), "true", "reshard_after_forward, FULL_SHARD", NULL },
	{ "root", VC_P_BOOL, AT(root), "false",
	  "reshard_after_forward of the root too (version 2)", NULL },
	{ "mixed", VC_P_BOOL, AT(mixed), "false", "units are gathered and reduced in 16 bit",
	  NULL },
	{ "bound", VC_P_ENUM, AT(bound), "best", "how long blocks wait for other streams",
	  "best,low,high" },
	VC_PARAM_END };

static int fsdp_open(struct vc_source *s, struct vc_error *err)
{
	const struct config *c = s->config;

	if (!c->ranks || c->ranks > 1u << 20)
		return vc_fail(err, VC_EUSAGE, "fsdp: ranks starts at 1");
	return c->version == 1 || c->version == 2 ?
		       VC_OK :
		       vc_fail(err, VC_EUSAGE, "fsdp: version is 1 (FullyShardedDataParallel) or 2 "
			       "(fully_shard)");
}

struct unit {
	uint64_t gathered;          /* buffer of the gather; version 1: the flat parameter */
	uint64_t *whole;            /* version 2: the parameters themselves */
	uint64_t *gradient; size_t gradients; /* whole ones, until they are scattered */
	size_t first, params;       /* of vc_units.param, through `order` */
	uint64_t
		shard_free; /* id of the recording whose free gives the scattered gradient back */
	bool is_whole;
};

/* What waits for another stream. turn: the unit's place among those given back. */
struct pending { uint64_t id; uint32_t turn; bool late; };

struct fsdp {
	const struct config *cfg;
	struct vc_clone c;
	struct vc_units u;
	struct unit *unit;
	size_t *order;              /* parameters by unit */
	uint64_t last_gather, last_scatter;
	uint32_t gather_stream, reduce_stream;
	struct pending *pending; size_t pendings, pending_cap;
	uint32_t turn, done;        /* units given back so far; those that were waited for */
	uint32_t *used[2]; /* by parameter: states, temporaries that were taken for its own */
	size_t at[2];               /* parameter that had the last of them */
	double *share;              /* of each parameter, what is this rank's */
};

static uint64_t shard(const struct fsdp *f, uint64_t bytes)
{
	return (bytes / 4 + f->cfg->ranks - 1) / f->cfg->ranks * 4;
}

static uint64_t passing(const struct fsdp *f, uint64_t bytes) /* as gathered and reduced */
{
	return f->cfg->mixed ? bytes / 2 : bytes;
}

/* Of a buffer that is as large as a unit. Where no layers were found units may be as small as a
 * tensor: the low bound has no such buffers. */
static uint64_t buffer(const struct fsdp *f, uint64_t bytes)
{
	return f->cfg->bound == LOW && !f->u.n && f->cfg->wrap == BLOCK ? 0 : passing(f, bytes);
}

static uint64_t unit_shard(const struct fsdp *f, size_t k)
{
	uint64_t sum = 0;

	if (f->cfg->version == 1)
		return shard(f, f->u.bytes[k]);
	for (size_t i = 0; i < f->unit[k].params; i++)
		sum += shard(f, f->u.param[f->order[f->unit[k].first + i]].size);
	return sum;
}

static int alloc_on(struct fsdp *f, const struct vc_event *e, uint32_t stream, uint64_t size,
		    uint64_t *id, struct vc_error *err)
{
	struct vc_event like = *e;

	like.stream = stream;
	return size ? vc_clone_alloc(&f->c, &like, size, id, err) : (*id = 0, VC_OK);
}

static int give_back(struct fsdp *f, const struct vc_event *e, uint64_t *id, struct vc_error *err)
{
	int r = vc_clone_free(&f->c, e, *id, err);

	*id = 0;
	return r;
}

static int passing_block(struct fsdp *f, const struct vc_event *e, uint64_t size,
			 struct vc_error *err)
{
	uint64_t id;

	VC_TRY(alloc_on(f, e, 0, size, &id, err));
	return give_back(f, e, &id, err);
}

/* ---- blocks that other streams use ---- */

static int free_later(struct fsdp *f, const struct vc_event *e, uint64_t id, uint32_t user,
		      bool late, struct vc_error *err)
{
	struct vc_event use = vc_event_like(e, VC_EV_USE, id, 0);
	struct vc_event gone = vc_event_like(e, VC_EV_FREE, id, 0);

	if (f->cfg->bound == LOW || !id)
		return vc_clone_free(&f->c, e, id, err);
	if (f->pendings == f->pending_cap) {
		size_t cap = f->pending_cap ? 2 * f->pending_cap : 256;
		struct pending *p = realloc(f->pending, cap * sizeof(*p));
		VC_HAVE(p, "blocks that other streams use", err);
		f->pending = p;
		f->pending_cap = cap;
	}
	f->pending[f->pendings++] = (struct pending){ id, f->turn, late };
	use.stream = user;
	gone.flags = VC_EVF_PENDING;
	VC_TRY(vc_whole_put(f->c.w, &use, 1, err));
	return vc_whole_put(f->c.w, &gone, 1, err);
}

static int completed(struct fsdp *f, const struct vc_event *e, uint32_t turn, bool late,
		     struct vc_error *err)
{
	int r = VC_OK;
	size_t left = 0;

	for (size_t i = 0; i < f->pendings; i++) {
		struct pending p = f->pending[i];

		if (p.turn >= turn || (p.late && !late) || r < 0) {
			f->pending[left++] = p;
			continue;
		}
		struct vc_event done = vc_event_like(e, VC_EV_FREE_DONE, p.id, 0);
		r = vc_whole_put(f->c.w, &done, 1, err);
	}
	f->pendings = left;
	return r;
}

/* ---- version 1 ---- */

static int gather_flat(struct fsdp *f, const struct vc_event *e, size_t k, struct vc_error *err)
{
	uint32_t wait = LIMIT + 2 * (f->cfg->bound == HIGH);

	if (f->unit[k].is_whole || !f->u.bytes[k])
		return VC_OK;
	if (f->turn - f->done >= wait)
		VC_TRY(completed(f, e, ++f->done, false, err));
	VC_TRY(alloc_on(f, e, f->gather_stream, buffer(f, unit_shard(f, k) * f->cfg->ranks),
			&f->unit[k].gathered, err));
	f->unit[k].is_whole = true;
	return completed(f, e, f->done, true, err);
}

/* This rank's part of the gradients: the one of the first micro batch stays, later ones are
 * added. */
static int reduced(struct fsdp *f, const struct vc_event *e, size_t k, bool again,
		   struct vc_error *err)
{
	uint64_t part;
	int r = alloc_on(f, e, f->reduce_stream, unit_shard(f, k), &part, err);

	if (r == VC_OK && again)
		r = vc_clone_free(&f->c, e, part, err);
	else if (r == VC_OK && f->unit[k].shard_free)
		f->c.alias[f->unit[k].shard_free] = part;
	return r;
}

static int scatter_flat(struct fsdp *f, const struct vc_event *e, size_t k, bool again,
			struct vc_error *err)
{
	struct unit *u = &f->unit[k];
	uint64_t flat;
	int r = VC_OK;

	if (!u->gradients)
		return VC_OK;
	r = alloc_on(f, e, f->gather_stream, buffer(f, unit_shard(f, k) * f->cfg->ranks), &flat,
		     err);
	for (size_t i = 0; r == VC_OK && i < u->gradients; i++)
		r = free_later(f, e, u->gradient[i], f->gather_stream, false, err);
	u->gradients = 0;
	if (r == VC_OK)
		r = give_back(f, e, &u->gathered, err);
	u->is_whole = false;
	f->turn++;
	if (r == VC_OK)
		r = reduced(f, e, k, again, err);
	f->turn--;
	if (r == VC_OK)
		r = free_later(f, e, flat, f->reduce_stream, true, err);
	f->turn++;
	return r;
}

static int moment_1(struct fsdp *f, const struct vc_event *e, const struct vc_unit_action *a,
		    struct vc_error *err)
{
	struct unit *u = &f->unit[a->unit];
	bool root = a->unit == f->u.n;
	int r = VC_OK;

	switch ((enum vc_unit_moment)a->moment) {
	case VC_UNIT_FORWARD: return gather_flat(f, e, a->unit, err);
	case VC_UNIT_FORWARD_END:
		if (root || !f->cfg->reshard || !u->is_whole)
			return VC_OK;
		r = free_later(f, e, u->gathered, e->stream, false, err);
		u->gathered = 0;
		u->is_whole = false;
		f->turn++;
		return r;
	case VC_UNIT_BACKWARD:
		r = gather_flat(f, e, a->unit, err);
		return r == VC_OK && a->unit ? gather_flat(f, e, a->unit - 1, err) : r;
	case VC_UNIT_BACKWARD_END: return scatter_flat(f, e, a->unit, a->micro > 0, err);
	case VC_UNIT_REST:
		f->done = f->turn;
		return completed(f, e, UINT32_MAX, true, err);
	case VC_UNIT_WRAP:
		break;
	}
	return VC_OK;
}

/* ---- version 2 ---- */

static int gather(struct fsdp *f, const struct vc_event *e, size_t k, struct vc_error *err)
{
	if (f->unit[k].is_whole || f->unit[k].gathered)
		return VC_OK;
	return alloc_on(f, e, f->gather_stream, buffer(f, unit_shard(f, k) * f->cfg->ranks),
			&f->unit[k].gathered, err);
}

static int copy_out(struct fsdp *f, const struct vc_event *e, size_t k, struct vc_error *err)
{
	struct unit *u = &f->unit[k];

	for (size_t i = 0; i < u->params; i++) {
		uint64_t size = f->u.param[f->order[u->first + i]].size;

		VC_TRY(alloc_on(f, e, e->stream, buffer(f, size), &u->whole[i], err));
	}
	u->is_whole = true;
	return passing_block(f, e, OFFSETS + 208 * u->params, err);
}

static int reshard(struct fsdp *f, const struct vc_event *e, size_t k, struct vc_error *err)
{
	struct unit *u = &f->unit[k];

	for (size_t i = 0; u->is_whole && i < u->params; i++)
		VC_TRY(give_back(f, e, &u->whole[i], err));
	u->is_whole = false;
	return VC_OK;
}

static int scatter(struct fsdp *f, const struct vc_event *e, size_t k, bool again,
		   struct vc_error *err)
{
	struct unit *u = &f->unit[k];
	int r = reshard(f, e, k, err);

	if (r == VC_OK)
		r = give_back(f, e, &f->last_scatter, err);
	if (r < 0 || !u->gradients)
		return r;
	r = alloc_on(f, e, e->stream, buffer(f, unit_shard(f, k) * f->cfg->ranks),
		     &f->last_scatter, err);
	if (r == VC_OK)
		r = passing_block(f, e, OFFSETS + 224 * u->params, err);
	for (size_t i = 0; r == VC_OK && i < u->gradients; i++)
		r = vc_clone_free(&f->c, e, u->gradient[i], err);
	u->gradients = 0;
	if (r == VC_OK)
		r = reduced(f, e, k, again, err);
	return r == VC_OK && k == f->u.n ? give_back(f, e, &f->last_scatter, err) : r;
}

static int enter_forward(struct fsdp *f, const struct vc_event *e, size_t k, struct vc_error *err)
{
	uint64_t buffer;

	if (f->unit[k].is_whole)
		return VC_OK;
	VC_TRY(gather(f, e, k, err));
	VC_TRY(copy_out(f, e, k, err));
	buffer = f->last_gather;
	f->last_gather = f->unit[k].gathered;
	f->unit[k].gathered = 0;
	return give_back(f, e, &buffer, err);
}

static int enter_backward(struct fsdp *f, const struct vc_event *e, size_t k, struct vc_error *err)
{
	if (!f->unit[k].is_whole) {
		VC_TRY(gather(f, e, k, err));
		VC_TRY(copy_out(f, e, k, err));
		VC_TRY(give_back(f, e, &f->unit[k].gathered, err));
	}
	return k ? gather(f, e, k - 1, err) : VC_OK;
}

static int moment_2(struct fsdp *f, const struct vc_event *e, const struct vc_unit_action *a,
		    struct vc_error *err)
{
	bool root = a->unit == f->u.n;
	bool away = root ? f->cfg->bound == LOW || (f->cfg->root && f->cfg->bound != HIGH) :
			   f->cfg->reshard;

	switch ((enum vc_unit_moment)a->moment) {
	case VC_UNIT_FORWARD: return enter_forward(f, e, a->unit, err);
	case VC_UNIT_FORWARD_END:
		if (away)
			VC_TRY(reshard(f, e, a->unit, err));
		return root ? give_back(f, e, &f->last_gather, err) : VC_OK;
	case VC_UNIT_BACKWARD: return enter_backward(f, e, a->unit, err);
	case VC_UNIT_BACKWARD_END: return scatter(f, e, a->unit, a->micro > 0, err);
	case VC_UNIT_REST: case VC_UNIT_WRAP:
		break;
	}
	return VC_OK;
}

/* ---- both ---- */

/* The shard of each parameter, then the whole ones go; version 1: of each unit, by way of a flat
 * one. */
static int wrap(struct fsdp *f, const struct vc_event *e, struct vc_error *err)
{
	int r = VC_OK;

	for (size_t k = 0; r == VC_OK && k <= f->u.n; k++) {
		struct unit *u = &f->unit[k];
		uint64_t flat = 0, part = 0, *old = calloc(u->params + 1, sizeof(*old));

		VC_HAVE(old, "shards", err);
		if (f->cfg->version == 1 && u->params)
			r = alloc_on(f, e, 0, unit_shard(f, k) * f->cfg->ranks, &flat, err);
		if (r == VC_OK && f->cfg->version == 1 && u->params)
			r = alloc_on(f, e, 0, unit_shard(f, k), &part, err);
		if (r == VC_OK)
			r = give_back(f, e, &flat, err);
		for (size_t i = 0; r == VC_OK && i < u->params; i++) {
			const struct vc_unit_param *p = &f->u.param[f->order[u->first + i]];

			if (p->block == UINT32_MAX)
				continue;
			uint64_t id = f->c.a.block[p->block].id;
			old[i] = f->c.alias[id];
			if (f->cfg->version == 2)
				r = alloc_on(f, e, 0, shard(f, p->size), &part, err);
			f->c.alias[id] = part;
			part = f->cfg->version == 2 ? part : 0;
		}
		for (size_t i = 0; r == VC_OK && i < u->params; i++)
			r = vc_clone_free(&f->c, e, old[i], err);
		free(old);
	}
	for (size_t k = 0; r == VC_OK && f->cfg->version == 1 && k <= f->u.n; k++)
		r = passing_block(f, e, unit_shard(f, k) * f->cfg->ranks,
				  err); /* where the whole one will be */
	return r;
}

/* Whose is this state or temporary of the optimizer? It has the size of its parameter; of several
 * the one that had fewest, from the last one on. */
static uint64_t state_size(struct fsdp *f, const struct vc_block_life *b)
{
	bool temporary = b->category == VC_CAT_OPTIMIZER_TEMP;
	size_t n = f->u.params, best = SIZE_MAX;
	uint32_t *used = f->used[temporary];

	if (b->size < SMALL)
		return b->size;
	for (size_t i = 0, at = f->at[temporary]; i < n; i++, at = (at + 1) % n)
		if (f->u.param[at].size == b->size && (best == SIZE_MAX || used[at] < used[best]))
			best = at;
	if (best == SIZE_MAX)
		return shard(f, b->size);
	used[best]++;
	f->at[temporary] = best;
	return (uint64_t)((double)b->size * f->share[best] / 4 + 0.5) * 4;
}

static int one(struct fsdp *f, const struct vc_event *e, struct vc_error *err)
{
	const struct vc_block_life *b =
		e->kind == VC_EV_ALLOC ? vc_clone_block(&f->c, e->id) : NULL;
	struct vc_event now = *e;

	if (!b)
		return vc_clone_event(&f->c, e, err);
	if (f->u.of_gradient[b->born]) {
		struct unit *u = &f->unit[f->u.of_gradient[b->born] - 1];
		int r = vc_clone_alloc(&f->c, e, passing(f, e->size), &u->gradient[u->gradients],
				       err);

		u->gradients++;
		u->shard_free = e->id;
		f->c.alias[e->id] = 0;
		return r;
	}
	if (b->category == VC_CAT_STATE || b->category == VC_CAT_OPTIMIZER_TEMP)
		now.size = state_size(f, b);
	if (!now.size)
		f->c.alias[e->id] = 0;
	return now.size ? vc_clone_event(&f->c, &now, err) : VC_OK;
}

static int walk(struct fsdp *f, struct vc_error *err)
{
	struct vc_whole *w = f->c.w;
	size_t at = 0;
	int r = VC_OK;

	for (size_t i = 0; r == VC_OK && i <= w->n; i++) {
		for (; r == VC_OK && at < f->u.actions && f->u.action[at].event <= i; at++) {
			const struct vc_unit_action *a = &f->u.action[at];
			const struct vc_event *e = &w->in[i < w->n ? i : w->n - 1];

			if (a->moment == VC_UNIT_WRAP)
				r = wrap(f, e, err);
			else
				r = f->cfg->version == 1 ? moment_1(f, e, a, err) :
							   moment_2(f, e, a, err);
		}
		if (r == VC_OK && i < w->n)
			r = one(f, &w->in[i], err);
	}
	return r;
}

/* Rank 0 has the first part of each flat parameter in version 1; the shares of version 2 are
 * even. */
static int prepare(struct fsdp *f, struct vc_error *err)
{
	size_t at = 0;

	f->unit = calloc(f->u.n + 1, sizeof(*f->unit));
	f->order = calloc(f->u.params + 1, sizeof(*f->order));
	f->share = calloc(f->u.params + 1, sizeof(*f->share));
	f->used[0] = calloc(f->u.params + 1, sizeof(*f->used[0]));
	f->used[1] = calloc(f->u.params + 1, sizeof(*f->used[1]));
	if (!f->unit || !f->order || !f->share || !f->used[0] || !f->used[1])
		return vc_nomem(err, "units of a sharded model");
	for (size_t k = 0; k <= f->u.n; k++) {
		struct unit *u = &f->unit[k];
		double left = (double)f->u.bytes[k] / (double)f->cfg->ranks;

		u->first = at;
		for (size_t i = 0; i < f->u.params; i++) {
			const struct vc_unit_param *p = &f->u.param[i];
			double mine = (double)p->size < left ? (double)p->size : left;

			if (p->unit != k)
				continue;
			f->order[at++] = i;
			left -= mine;
			f->share[i] = f->cfg->version == 1 ? mine / (double)p->size :
							     1 / (double)f->cfg->ranks;
		}
		u->params = at - u->first;
		u->whole = calloc(u->params + 1, sizeof(*u->whole));
		u->gradient = calloc(f->c.a.n + 1, sizeof(*u->gradient));
		VC_HAVE(u->whole && u->gradient, "units of a sharded model", err);
	}
	return VC_OK;
}

static void finish(struct fsdp *f)
{
	for (size_t k = 0; f->unit && k <= f->u.n; k++) {
		VC_FREE(f->unit[k].whole, f->unit[k].gradient);
	}
	VC_FREE(f->unit, f->order, f->share, f->used[0], f->used[1], f->pending);
	vc_units_fini(&f->u);
	vc_clone_fini(&f->c);
}

static int rewrite(struct vc_source *s, struct vc_whole *w, struct vc_error *err)
{
	struct fsdp f = { .cfg = s->config };
	int r = vc_clone_init(&f.c, s, w, err);

	if (r == VC_OK)
		vc_clone_say_heap(&f.c, s);
	if (r == VC_OK)
		r = vc_units_find(&f.u, &f.c, s->meta, f.cfg->wrap == WHOLE, err);
	if (r == VC_OK)
		r = prepare(&f, err);
	f.gather_stream = vc_meta_stream(s->meta, UINT64_C(0xf5d9000000000001));
	f.reduce_stream = vc_meta_stream(s->meta, UINT64_C(0xf5d9000000000002));
	if (r == VC_OK)
		r = walk(&f, err);
	if (r == VC_OK)
		vc_meta_note(
			s->meta,
			"fsdp: %zu layers of %.1f MiB, known from %s, and %.1f MiB beside them",
			f.u.n, (double)f.u.bytes[0] / (1u << 20),
			f.u.named ? "call sites" : "what repeats",
			(double)f.u.bytes[f.u.n] / (1u << 20));
	finish(&f);
	return r;
}

static const struct vc_remedy remedies[] = {
	{ .cost = VC_COST_CARDS, .kind = "hardware", .estimate = true, .needs = VC_TRAIT_TRAINS,
	  .text = "two cards with FSDP", .params = "ranks=2",
	  .paste = "torch.distributed.fsdp.fully_shard(model)" },
	{ .kind = NULL } };

const struct vc_source_type vc_transform_fsdp = {
	.name = "fsdp", .summary = "fully sharded data parallel over several cards",
	.params = params, .config_size = sizeof(struct config),
	.margin = &(const struct vc_margin){ .down = 5, .up = 4, .blind = 25 },
	.remedies = remedies, .open = fsdp_open,
	VC_WHOLE(rewrite),
};
