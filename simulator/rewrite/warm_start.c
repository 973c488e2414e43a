/* SPDX-License-Identifier: Apache-2.0 */
/* warm_start.c - see warm_start.h. Of what was there before, a tensor of a gradient's size is a
 * parameter, as many as there are gradients of that size; as many again and more of the same size
 * (or twice it: float states of 16-bit parameters), or what an optimizer asked for by its call
 * site, are states. What goes during the recording is of the step before: the copy's counterpart
 * of its size takes its place. */
#include "simulator/rewrite/warm_start.h"

#include "common/torch_names.h"
#include "common/torch_sizes.h"
#include "common/vec.h"
#include "simulator/anatomy/anatomy.h"
#include "simulator/replay/memo.h"

struct old { /* alive when the kept events begin */
	uint64_t id, size;
	uint32_t stream, site;
	bool state,
		library; /* library: a workspace of cuBLAS, which comes with a first product */
	size_t freed;          /* event; SIZE_MAX: lives on */
	uint64_t copy; /* id of the block of the copied step that stands for it; 0: itself */
};

struct thaw {
	struct vc_whole *w;
	struct vc_anatomy a;
	struct vc_meta *meta;
	struct old *old; size_t olds;
	uint32_t *of_id;       /* old + 1 by id */
	uint64_t *copy;        /* by id: its counterpart in the copied step */
	uint64_t ids;          /* length of both: the recorded ids */
	uint64_t *size; size_t sizes; /* gradients of the step, ascending */
	uint64_t *born;        /* the same in order of birth */
	size_t from, to;       /* kept events */
	size_t first, end, backward,
		optimizer;     /* the step that is copied, and where its phases begin */
	uint32_t site;         /* of an optimizer, added to the meta */
	bool makes_states;     /* in the recorded step: nothing ran before it */
	struct vc_event *in; size_t n, cap; /* the new events */
};

static int put(struct thaw *t, struct vc_event e, struct vc_error *err)
{
	VC_HAVE(vc_vec_room(t->in, t->cap, t->n + 1), "the steps before a recording", err);
	t->in[t->n++] = e;
	return VC_OK;
}

static int put_alloc(struct thaw *t, const struct old *o, uint32_t site, uint64_t time,
		     struct vc_error *err)
{
	return put(t, (struct vc_event){ .kind = VC_EV_ALLOC, .id = o->id, .size = o->size,
		.time_ns = time, .stream = o->stream, .site = site ? site : o->site,
		.device = t->w->device }, err);
}

static bool is_live_block(const struct thaw *t, const struct vc_event *e)
{
	return e->kind == VC_EV_HEAP_BLOCK && e->device == t->w->device &&
	       (e->flags & VC_EVF_LIVE) && !(e->flags & (VC_EVF_FINAL | VC_EVF_PENDING)) && e->id;
}

static uint64_t heap_bytes(const struct thaw *t)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < t->w->n; i++)
		bytes += is_live_block(t, &t->w->in[i]) ? t->w->in[i].size : 0;
	return bytes;
}

/* Was the first step seen from its beginning? What its backward pass gives back was made in it. */
static bool begins_whole(const struct thaw *t)
{
	const struct vc_anatomy *a = &t->a;
	uint64_t own = 0, older = 0, *size = calloc(t->ids, sizeof(*size));
	size_t first = SIZE_MAX, end = 0;

	for (size_t k = 0; k < a->spans; k++)
		if (!a->span[k].iteration && a->span[k].phase == VC_PHASE_BACKWARD) {
			first = a->span[k].first < first ? a->span[k].first : first;
			end = a->span[k].end;
		}
	for (size_t i = 0; size && i < end; i++) {
		const struct vc_event *e = &t->w->in[i];

		if (is_live_block(t, e))
			size[e->id] = e->size;
		else if (e->kind == VC_EV_FREE && e->device == t->w->device && i >= first)
			*(size[e->id] ? &older : &own) += size[e->id];
	}
	for (size_t i = 0; i < a->n; i++)
		own += a->block[i].event < first && a->block[i].died_event >= first &&
				       a->block[i].died_event < end ?
			       a->block[i].size : 0;
	free(size);
	return older * 20 <= own;
}

/* What comes before the first whole step and gives back what an older one made is the end of that
 * one. */
static void drop_piece(struct thaw *t)
{
	uint64_t freed = 0;
	size_t first = t->first;

	for (size_t k = 0; k < t->a.spans; k++)
		if (!t->a.span[k].iteration && t->a.span[k].first < first)
			first = t->a.span[k].first;
	bool *old = calloc(t->ids, sizeof(*old));
	for (size_t i = 0; old && i < first; i++) {
		const struct vc_event *e = &t->w->in[i];

		if (e->device != t->w->device)
			continue;
		if (is_live_block(t, e))
			old[e->id] = true;
		freed += e->kind == VC_EV_FREE && old[e->id];
	}
	free(old);
	if (freed)
		t->from = first;
}

/* The last whole step, and the events around it that are kept: a piece of a step before the first
 * or behind the last one shows no peak of its own. */
static int choose_step(struct thaw *t, struct vc_error *err)
{
	const struct vc_anatomy *a = &t->a;
	uint32_t last = a->iterations - 1;

	t->first = t->optimizer = t->backward = SIZE_MAX;
	for (size_t k = 0; k < a->spans; k++) {
		const struct vc_span *p = &a->span[k];

		if (p->iteration != last)
			continue;
		t->first = p->first < t->first ? p->first : t->first;
		t->optimizer = p->phase == VC_PHASE_OPTIMIZER ? p->first : t->optimizer;
		if (p->phase == VC_PHASE_BACKWARD && t->backward == SIZE_MAX)
			t->backward = p->first;
		t->end = p->end;
	}
	if (t->optimizer == SIZE_MAX)
		t->optimizer = t->end;
	t->to = t->w->n;
	for (size_t i = t->end, seen = 0; i < t->w->n; i++)
		if (t->w->in[i].kind == VC_EV_ALLOC && t->w->in[i].device == t->w->device &&
		    ++seen * 8 > a->n / a->iterations) /* more than the next batch: another step,
							  or a part */
			t->to = t->end;
	if (begins_whole(t)) {
		drop_piece(t);
		return VC_OK;
	}
	if (!last)
		return vc_fail(err, VC_EUSAGE,
			       "the recording begins in the middle of its only step: record "
			       "from before the batch is made to behind optimizer.step()");
	for (size_t k = 0; k < a->spans; k++)
		t->from = a->span[k].iteration == 0 ? a->span[k].end : t->from;
	return VC_OK;
}

static int add_old(struct thaw *t, const struct vc_event *e, struct vc_error *err)
{
	VC_HAVE(vc_vec_one(t->old, t->olds), "what was alive before a recording", err);
	t->old[t->olds++] = (struct old){ .id = e->id, .size = e->size, .stream = e->stream,
					  .site = e->site, .freed = SIZE_MAX };
	t->of_id[e->id] = (uint32_t)t->olds;
	return VC_OK;
}

/* Everything alive at t->from, and when it goes. Behind the last request the program ends. */
static int read_old(struct thaw *t, struct vc_error *err)
{
	size_t last = t->a.block[t->a.n - 1].event;

	for (size_t i = 0; i < t->w->n; i++) {
		const struct vc_event *e = &t->w->in[i];

		if (e->device != t->w->device)
			continue;
		if (is_live_block(t, e) || (e->kind == VC_EV_ALLOC && i < t->from))
			VC_TRY(add_old(t, e, err));
		else if (e->kind == VC_EV_FREE && e->id < t->ids && t->of_id[e->id] && i < last)
			t->old[t->of_id[e->id] - 1].freed = i;
	}
	size_t n = 0; /* what went before the kept events is gone */
	for (size_t i = 0; i < t->olds; i++) {
		t->of_id[t->old[i].id] = t->old[i].freed < t->from ? 0 : (uint32_t)n + 1;
		t->old[n] = t->old[i];
		n += t->old[i].freed >= t->from;
	}
	t->olds = n;
	return VC_OK;
}

/* Gradients: made in the step's backward pass and there when its optimizer begins. */
static int read_gradients(struct thaw *t, struct vc_error *err)
{
	uint64_t made = 0, all = 0;

	t->size = calloc(t->a.n + 1, sizeof(*t->size));
	t->born = calloc(t->a.n + 1, sizeof(*t->born));
	VC_HAVE(t->size && t->born, "the gradients of a step", err);
	for (size_t i = 0; i < t->a.n; i++) {
		const struct vc_block_life *b = &t->a.block[i];
		uint8_t phase = t->a.span[b->span].phase;

		if (b->event < t->first || b->event >= t->end)
			continue;
		if (phase == VC_PHASE_BACKWARD && b->died_event >= t->optimizer) {
			t->size[t->sizes++] = b->size;
			all += b->size;
		}
		made += phase == VC_PHASE_OPTIMIZER && b->died_event >= t->end ? b->size : 0;
	}
	memcpy(t->born, t->size, t->sizes * sizeof(*t->size));
	vc_sort_u64(t->size, t->sizes);
	/* Made anew in each step, as optimizers written by hand do: they replace others. */
	for (size_t i = 0; i < t->olds; i++)
		made -= t->old[i].freed >= t->optimizer && t->old[i].freed < t->end ?
			(t->old[i].size < made ? t->old[i].size : made) : 0;
	t->makes_states = made > VC_THAW_LITTLE / 16 && made * 4 > all;
	return VC_OK;
}

static size_t gradients_of(const struct thaw *t, uint64_t size)
{
	size_t lo = vc_lower_bound(t->size, 8, t->sizes, 8, size), n = 0;

	while (lo + n < t->sizes && t->size[lo + n] == size)
		n++;
	return n;
}

static bool by_optimizer(const struct thaw *t, uint32_t site)
{
	for (; site && site < t->meta->frames; site = t->meta->frame[site].parent)
		if (vc_frame_roles(t->meta, site, VC_NAME_OPTIM))
			return true;
	return false;
}

/* Which of the blocks that live on are states. */
static void find_states(struct thaw *t)
{
	for (size_t i = 0; i < t->olds; i++) {
		struct old *o = &t->old[i];
		size_t own = gradients_of(t, o->size), same = 0, before = 0;
		size_t half = own ? 0 : gradients_of(t, o->size / 2);

		if (o->freed != SIZE_MAX)
			continue;
		o->library = !own && vc_is_torch_workspace(o->size);
		for (size_t j = 0; (own || half) && j < t->olds; j++)
			if (t->old[j].size == o->size && t->old[j].freed == SIZE_MAX) {
				same++;
				before += j < i;
			}
		/* As many for each as come out even: one more of a size is none of them. */
		o->state = by_optimizer(t, o->site) ||
			   (own && before >= own && before < same - same % own) ||
			   (half && before < same - same % half);
	}
}

/* What lasts beyond the copied step stands for what is there when the recording begins. What goes
 * while the optimizer runs is a state that it replaces (as some written by hand do): made there
 * too. */
static void find_counterparts(struct thaw *t)
{
	for (size_t i = 0; i < t->a.n; i++) {
		const struct vc_block_life *b = &t->a.block[i];

		if (b->event < t->first || b->event >= t->end || b->died_event < t->end)
			continue;
		for (size_t j = 0; j < t->olds; j++) {
			struct old *o = &t->old[j];

			bool replaced = o->freed >= t->optimizer && o->freed < t->end;

			if (o->freed != SIZE_MAX && !o->copy && o->size == b->size &&
			    replaced == (b->event >= t->optimizer)) {
				o->copy = t->copy[b->id] = t->w->next_id++;
				break;
			}
		}
	}
}

/* Is it a parameter, or a state, that belongs to gradients of that size? */
static bool of_gradient(const struct thaw *t, const struct old *o, bool state, uint64_t gradient)
{
	bool size = o->size == gradient ||
		    (state && o->size == 2 * gradient && !gradients_of(t, o->size));

	return size && o->state == state && o->freed == SIZE_MAX && !o->copy;
}

/* All that is (states or the rest), in the order in which a program makes them: the backward pass
 * comes by the parameters from the last to the first, and the states of one are made together.
 * What is no tensor of a gradient's size comes before. */
static int put_all(struct thaw *t, bool state, uint32_t site, uint64_t time, struct vc_error *err)
{
	bool *ready = calloc(t->olds + 1, sizeof(*ready));
	int r = ready ? VC_OK : vc_nomem(err, "what was alive before a recording");

	for (size_t i = 0; r == VC_OK && i < t->olds; i++) {
		const struct old *o = &t->old[i];

		ready[i] = o->state != state || o->copy || (o->library && !t->makes_states);
		if (ready[i] ||
		    (o->freed == SIZE_MAX &&
		     gradients_of(t, state && !gradients_of(t, o->size) ? o->size / 2 : o->size)))
			continue;
		ready[i] = true;
		r = put_alloc(t, o, site, time, err);
	}
	for (size_t g = t->sizes; r == VC_OK && g-- > 0;) {
		size_t same = gradients_of(t, t->born[g]), there = 0, n = 0;

		for (size_t i = 0; i < t->olds; i++)
			there += of_gradient(t, &t->old[i], state, t->born[g]);
		for (size_t i = 0; r == VC_OK && i < t->olds && n < (there + same - 1) / same; i++)
			if (!ready[i] && of_gradient(t, &t->old[i], state, t->born[g])) {
				ready[i] = true;
				n++;
				r = put_alloc(t, &t->old[i], site, time, err);
			}
	}
	for (size_t i = 0; r == VC_OK && i < t->olds; i++)
		if (!ready[i])
			r = put_alloc(t, &t->old[i], site, time, err);
	free(ready);
	return r;
}

/* A call site that anatomy.c takes for an optimizer's. */
static uint32_t optimizer_site(struct vc_meta *m)
{
	static const char file[] = VC_TORCH_STEP_FILE, function[] = VC_TORCH_STEP_FUNCTION;

	return vc_meta_frame(m, (struct vc_frame){
		.function = vc_meta_string(m, function, sizeof(function) - 1),
		.file = vc_meta_string(m, file, sizeof(file) - 1) });
}

/* An optimizer that asks for nothing leaves no trace of a step: one small request instead. */
static int put_step(struct thaw *t, uint32_t site, uint64_t time, struct vc_error *err)
{
	struct old o = { .id = t->w->next_id++, .size = 512 };
	int r = put_alloc(t, &o, site, time, err);

	return r < 0 ? r : put(t, (struct vc_event){ .kind = VC_EV_FREE, .id = o.id,
						     .time_ns = time, .device = t->w->device },
						     err);
}

/* What lasts beyond the copy and stands for nothing. */
static int end_copy(struct thaw *t, const struct vc_event *like, struct vc_error *err)
{
	int r = VC_OK;

	for (size_t i = 0; r == VC_OK && i < t->a.n; i++) {
		const struct vc_block_life *b = &t->a.block[i];
		bool stands = false;

		if (b->event < t->first || b->event >= t->end || b->died_event < t->end)
			continue;
		for (size_t j = 0; !stands && j < t->olds; j++)
			stands = t->old[j].copy == t->copy[b->id];
		if (!stands)
			r = put(t, (struct vc_event){ .kind = VC_EV_FREE, .id = t->copy[b->id],
				.time_ns = like->time_ns, .device = t->w->device }, err);
	}
	return r;
}

/* The first workspace comes with the first product of the forward pass, the second with the
 * backward pass, whose thread has handles of its own. */
static int put_library(struct thaw *t, size_t *next, const struct vc_event *like,
		       struct vc_error *err)
{
	while (*next < t->olds && !t->old[*next].library)
		++*next;
	return *next < t->olds ? put_alloc(t, &t->old[(*next)++], 0, like->time_ns, err) : VC_OK;
}

static bool is_product(const struct thaw *t, const struct vc_event *e)
{
	uint32_t depth = 0;

	for (uint32_t k = e->site; k && k < t->meta->frames && depth < 8;
	     k = t->meta->frame[k].parent, depth++)
		if (vc_frame_roles(t->meta, k, VC_NAME_PRODUCT))
			return true;
	return false;
}

static int put_copy(struct thaw *t, const struct vc_event *like, uint32_t site,
		    struct vc_error *err)
{
	size_t library = 0, allocs = 0, passes = 0;
	int r = VC_OK;

	for (size_t i = t->first; r == VC_OK && i <= t->end; i++) {
		if (i == t->backward)
			passes = allocs = 0;
		if (i == t->optimizer)
			r = put_all(t, true, site, like->time_ns, err);
		if (r < 0 || i == t->end || i >= t->w->n)
			break;
		struct vc_event e = t->w->in[i];

		if (e.device != t->w->device || !vc_event_of_block(&e) || e.id >= t->ids)
			continue;
		if (e.kind == VC_EV_ALLOC && !t->copy[e.id])
			t->copy[e.id] = t->w->next_id++;
		if (!t->copy[e.id] || (e.kind != VC_EV_ALLOC && t->of_id[e.id]))
			continue;
		e.id = t->copy[e.id];
		e.addr = 0;
		e.time_ns = like->time_ns;
		r = put(t, e, err);
		allocs += e.kind == VC_EV_ALLOC;
		if (r == VC_OK && !passes && e.kind == VC_EV_ALLOC &&
		    (allocs > 8 || is_product(t, &e) || (i >= t->backward && allocs > 2))) {
			r = put_library(t, &library, like, err);
			passes = 1;
		}
	}
	while (r == VC_OK && library < t->olds)
		r = put_library(t, &library, like, err);
	return r == VC_OK ? end_copy(t, like, err) : r;
}

/* The recording itself. */
static int put_kept(struct thaw *t, uint32_t site, bool empty, struct vc_error *err)
{
	for (size_t i = 0; i < t->w->n; i++) {
		struct vc_event e = t->w->in[i];

		if (e.device == t->w->device && e.kind >= VC_EV_HEAP_SEGMENT)
			continue;
		if (e.device == t->w->device && vc_event_of_block(&e) &&
		    (i < t->from || i >= t->to))
			continue;
		if (vc_event_of_block(&e) && e.device == t->w->device && e.id < t->ids &&
		    t->of_id[e.id]) {
			const struct old *o = &t->old[t->of_id[e.id] - 1];
			if (o->copy)
				e.id = o->copy;
		}
		e.addr = vc_event_of_block(&e) ? 0 : e.addr;
		VC_TRY(put(t, e, err));
		if (empty && i + 1 == t->end)
			VC_TRY(put_step(t, site, e.time_ns, err));
	}
	return VC_OK;
}

static int rebuild(struct thaw *t, struct vc_error *err)
{
	const struct vc_event *like = &t->w->in[t->first];
	uint32_t site = t->site = optimizer_site(t->meta);
	bool empty = t->optimizer >= t->end; /* the optimizer asks for nothing */

	VC_TRY(put_all(t, false, 0, like->time_ns, err));
	if (!t->makes_states) {
		VC_TRY(put_copy(t, like, site, err));
		if (empty)
			VC_TRY(put_step(t, site, like->time_ns, err));
	}
	return put_kept(t, site, empty && !t->makes_states, err);
}

/* A trace with the run that leads to it in front, where there is one. */
struct warm {
	struct vc_memo memo;   /* first */
	struct vc_trace trace; /* without events: it is as it was */
	uint64_t next_id, bytes, states;
	uint32_t site;         /* an optimizer's, to be added to the meta; 0: none */
};

static void drop(struct vc_memo *m)
{
	struct warm *k = (struct warm *)m;

	vc_trace_fini(&k->trace);
	free(k);
}

static void thaw_fini(struct thaw *t)
{
	vc_anatomy_fini(&t->a);
	VC_FREE(t->old, t->of_id, t->copy, t->size, t->born, t->in);
}

/* Find the step to copy and what of it stands for what, and write the new events. */
static int prepare(struct thaw *t, struct vc_error *err)
{
	t->ids = t->w->next_id;
	t->of_id = calloc(t->ids, sizeof(*t->of_id));
	t->copy = calloc(t->ids, sizeof(*t->copy));
	VC_HAVE(t->of_id && t->copy, "what was alive before a recording", err);
	VC_TRY(choose_step(t, err));
	VC_TRY(read_old(t, err));
	VC_TRY(read_gradients(t, err));
	find_states(t);
	if (!t->makes_states)
		find_counterparts(t);
	return rebuild(t, err);
}

static int fill(struct warm *k, const struct vc_trace *from, uint16_t device, struct vc_error *err)
{
	struct vc_whole w = { .in = from->ev, .n = from->n, .device = device };
	struct vc_meta *own = vc_meta_copy(from->meta, err);
	struct thaw t = { .w = &w, .meta = own };
	int r = own ? VC_OK : VC_ENOMEM;

	w.next_id = vc_whole_next_id(from->ev, from->n, from->meta);
	k->bytes = heap_bytes(&t);
	if (r == VC_OK && k->bytes > VC_THAW_LITTLE)
		r = vc_anatomy_of(&t.a, from, device, err);
	if (r == VC_OK && t.a.iterations) {
		r = prepare(&t, err);
		k->trace.ev = t.in;
		k->trace.n = t.n;
		k->next_id = w.next_id;
		k->site = t.site;
		t.in = NULL;
	}
	for (size_t i = 0; i < t.olds; i++)
		k->states += t.old[i].state ? t.old[i].size : 0;
	if (r == VC_OK && k->trace.n)
		r = vc_trace_keep(&k->trace, err);
	k->trace.meta = own;
	thaw_fini(&t);
	return r;
}

static int find_out(const struct vc_trace *t, uint64_t device, const void *arg,
		    struct vc_memo **out, struct vc_error *err)
{
	struct warm *k = calloc(1, sizeof(*k));
	int r = k ? fill(k, t, (uint16_t)device, err) : vc_nomem(err, "a recording's beginning");

	if (r < 0 && k)
		drop(&k->memo);
	VC_TRY(r);
	k->memo.drop = drop;
	*out = &k->memo;
	return VC_OK;
}

static void say(const struct warm *k, struct vc_source *s)
{
	vc_meta_note(
		s->meta,
		"%s: %.2f GiB were there before the recording began; the run that leads there "
		"was rebuilt from one step (%.2f GiB of optimizer states by their sizes), with "
		"an empty cache: a recording from the start of the program is surer",
		s->type->name, (double)k->bytes / (1u << 30), (double)k->states / (1u << 30));
}

/* Take over the events; the meta of a pipeline is a copy that other transforms have added to. */
static int adopt(struct vc_source *s, struct vc_whole *w, const struct warm *k,
		 struct vc_error *err)
{
	uint32_t site = k->site ? optimizer_site(s->meta) : 0;
	struct vc_event *in = malloc(k->trace.n * sizeof(*in));

	VC_HAVE(in, "the steps before a recording", err);
	memcpy(in, k->trace.ev, k->trace.n * sizeof(*in));
	for (size_t i = 0; site != k->site && i < k->trace.n; i++)
		in[i].site = in[i].site == k->site ? site : in[i].site;
	free(w->own);
	w->in = w->own = in;
	w->n = k->trace.n;
	w->next_id = k->next_id;
	w->same = site == k->site ? &k->trace : NULL;
	say(k, s);
	return VC_OK;
}

int vc_thaw(struct vc_source *s, struct vc_whole *w, struct vc_error *err)
{
	/* Only read: the type has no const inside. */
	struct vc_trace own = { .ev = (struct vc_event *)w->in, .n = w->n, .meta = s->meta };
	struct vc_memo *m;
	int r = vc_memo_get(w->same ? w->same : &own, w->device, find_out, NULL, &m,
			    err);

	if (r < 0)
		return vc_wrap(err, "%s", s->type->name);
	if (((struct warm *)m)->trace.n)
		r = adopt(s, w, (struct warm *)m, err);
	w->from = m; /* the anatomy that goes with it */
	return r;
}
