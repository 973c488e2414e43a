/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_whole.c - what is left when the pickle has been read: segments, blocks, settings. */
#include "common/mapped.h"
#include "common/vec.h"
#include "simulator/sources/snapshot_parts.h"

/* A number that a dictionary must or may have. */
static int field(struct tree *t, const struct vec *d, uint32_t key, bool must, uint64_t *to)
{
	const struct vc_pickle_value *x = snapshot_lookup(d, key);

	if (x)
		return snapshot_number(t, x, t->meta->string[key], to);
	return must ? vc_fail(t->err, VC_EFORMAT, "%s is missing", t->meta->string[key]) : 0;
}

static int read_site(struct tree *t, const struct vec *d, uint32_t *site)
{
	const struct vc_pickle_value *x = snapshot_lookup(d, W_frames);

	return x ? snapshot_site(t, x, site) : 0;
}

static uint8_t state_of(const struct vc_pickle_value *x)
{
	if (!x || x->type != VC_PV_TEXT)
		return SNAP_INACTIVE;
	if (x->ref == W_active_pending_free || x->ref == W_active_awaiting_free)
		return SNAP_PENDING;
	return x->ref == W_active_allocated ? SNAP_LIVE : SNAP_INACTIVE;
}

static int read_block(struct tree *t, const struct vc_pickle_value *v, struct snapshot_block *b)
{
	const struct vec *d = snapshot_items(t, v, VC_PV_DICT), *history;

	b->requested = UINT64_MAX;
	if (!d)
		return vc_fail(t->err, VC_EFORMAT, "it is no dictionary");
	VC_TRY(field(t, d, W_size, true, &b->size));
	VC_TRY(field(t, d, W_address, false, &b->addr));
	VC_TRY(field(t, d, W_requested_size, false, &b->requested));
	VC_TRY(read_site(t, d, &b->site));
	b->state = state_of(snapshot_lookup(d, W_state));
	history = snapshot_items(t, snapshot_lookup(d, W_history), VC_PV_LIST); /* torch 2.0 */
	if (!history)
		return VC_OK;
	t->s->history = true;
	d = snapshot_items(t, &history->at[0], VC_PV_DICT);
	VC_TRY(field(t, d, W_real_size, false, &b->requested));
	return read_site(t, d, &b->site);
}

/* A pickle can name one list a million times over; its memory is to be that of the file. */
static int take(struct tree *t, const struct vc_pickle_value *v, const char *whose)
{
	struct object *o = v && v->type == VC_PV_LIST ? &t->object[v->ref] : NULL;

	if (o && o->kind == TAKEN)
		return vc_fail(t->err, VC_EFORMAT, "%s are those of another one", whose);
	if (o && (o->kind == LIST || o->kind == EVENTS))
		o->kind = TAKEN;
	return 0;
}

static int read_blocks(struct tree *t, struct snapshot_segment *seg,
		       const struct vc_pickle_value *v)
{
	const struct vec *list = snapshot_items(t, v, VC_PV_LIST);
	struct snapshot *s = t->s;
	struct snapshot_block *bigger;
	uint64_t at = seg->addr;
	int rc = take(t, v, "its blocks");

	seg->block = s->blocks;
	if (rc || !list)
		return rc;
	bigger = realloc(s->block, (s->blocks + list->n) * sizeof(*bigger));
	VC_HAVE(bigger, "the blocks of the snapshot", t->err);
	s->block = bigger;
	for (uint32_t i = 0; i < list->n; i++) {
		struct snapshot_block *b = &s->block[s->blocks];

		*b = (struct snapshot_block){ .addr = at };
		rc = read_block(t, &list->at[i], b);
		if (rc)
			return vc_wrap(t->err, "block %u", i);
		if (b->addr != at || b->size > seg->addr + seg->size - at)
			return vc_fail(t->err, VC_EFORMAT,
				       "block %u does not follow the one before it", i);
		if (b->requested > b->size)
			b->requested = b->size;
		at += b->size;
		s->blocks++;
		seg->blocks++;
	}
	return 0;
}

static int read_segment(struct tree *t, const struct vc_pickle_value *v,
			struct snapshot_segment *seg)
{
	const struct vec *d = snapshot_items(t, v, VC_PV_DICT);
	const struct vc_pickle_value *x;
	uint64_t n = 0;

	*seg = (struct snapshot_segment){ 0 };
	if (!d)
		return vc_fail(t->err, VC_EFORMAT, "it is no dictionary");
	VC_TRY(field(t, d, W_address, true, &seg->addr));
	VC_TRY(field(t, d, W_total_size, true, &seg->size));
	if (seg->size > PLAUSIBLE)
		return vc_fail(t->err, VC_EFORMAT, "%llu bytes are more than any device has",
			       (unsigned long long)seg->size);
	VC_TRY(field(t, d, W_device, false, &n));
	VC_TRY(read_site(t, d, &seg->site));
	seg->device = n < UINT16_MAX ? (uint16_t)n : 0;
	x = snapshot_lookup(d, W_stream);
	seg->stream = x && x->type == VC_PV_INT ? vc_meta_stream(t->meta, (uint64_t)x->i) : 0;
	x = snapshot_lookup(d, W_segment_type);
	seg->small = x && x->type == VC_PV_TEXT && x->ref == W_small;
	x = snapshot_lookup(d, W_is_expandable);
	seg->expandable = x && (x->type == VC_PV_BOOL || x->type == VC_PV_INT) && x->i;
	x = snapshot_lookup(d, W_segment_pool_id);
	t->s->segment_pools |= x != NULL;
	seg->pool = snapshot_pool(t, x);
	return read_blocks(t, seg, snapshot_lookup(d, W_blocks));
}

static int read_segments(struct tree *t, const struct vec *list)
{
	int rc;

	if (!list)
		return 0;
	t->s->segment = calloc(list->n, sizeof(*t->s->segment));
	VC_HAVE(t->s->segment, "the segments of the snapshot", t->err);
	for (uint32_t i = 0; i < list->n; i++) {
		rc = read_segment(t, &list->at[i], &t->s->segment[i]);
		if (rc)
			return vc_wrap(t->err, "segment %u", i);
		t->s->segments++;
	}
	return 0;
}

static int read_lists(struct tree *t, const struct vec *devices)
{
	struct snapshot *s = t->s;

	if (!devices)
		return 0;
	if (devices->n >= UINT16_MAX)
		return vc_fail(t->err, VC_EFORMAT, "device_traces lists %u devices", devices->n);
	s->list = calloc(devices->n, sizeof(*s->list));
	VC_HAVE(s->list, "the device lists", t->err);
	for (uint32_t i = 0; i < devices->n; i++) {
		const struct vc_pickle_value *v = &devices->at[i];
		const struct object *o = v->type == VC_PV_LIST ? &t->object[v->ref] : NULL;

		if (o && o->kind == EVENTS)
			s->list[i] = t->list[o->at];
		if (take(t, v, "its events"))
			return vc_wrap(t->err, "device %u", i);
		for (size_t k = 0; i && k < s->list[i].n; k++) /* they are made for device 0 */
			s->ev[s->list[i].first + k].device = (uint16_t)i;
		s->lists = i + 1;
	}
	return 0;
}

static void read_settings(struct tree *t, const struct vec *d)
{
	struct snapshot_settings *s = &t->s->settings;
	const struct vc_pickle_value *x;
	const struct vec *divisions;

	s->max_split = UINT64_MAX;
	if (!d)
		return;
	s->known = true;
	x = snapshot_lookup(d, W_PYTORCH_CUDA_ALLOC_CONF);
	if (x && x->type == VC_PV_TEXT)
		vc_meta_set(&s->conf, t->meta->string[x->ref]);
	x = snapshot_lookup(d, W_max_split_size);
	if (x && x->type == VC_PV_INT && x->i >= 0)
		s->max_split = (uint64_t)x->i;
	x = snapshot_lookup(d, W_expandable_segments);
	s->expandable = x && x->type == VC_PV_BOOL && x->i;
	s->reuse = snapshot_lookup(d, W_graph_capture_record_stream_reuse) != NULL;
	divisions = snapshot_items(t, snapshot_lookup(d, W_roundup_power2_divisions), VC_PV_DICT);
	for (uint32_t i = 0; divisions && i < divisions->n / 2 && i < 16; i++)
		if (divisions->at[2 * i + 1].type == VC_PV_INT && divisions->at[2 * i + 1].i > 0)
			s->divisions[i] = (uint64_t)divisions->at[2 * i + 1].i;
}

static int read_whole(struct tree *t, const struct vc_pickle_value *root)
{
	const struct vec *d = snapshot_items(t, root, VC_PV_DICT),
			 *list = snapshot_items(t, root, VC_PV_LIST);
	const struct vc_pickle_value *x;

	read_settings(t, snapshot_items(t, snapshot_lookup(d, W_allocator_settings), VC_PV_DICT));
	if (list && snapshot_lookup(snapshot_items(t, &list->at[0], VC_PV_DICT), W_total_size)) {
		t->s->list_form = true;
		return read_segments(t, list);
	}
	if (!snapshot_lookup(d, W_segments) && !snapshot_lookup(d, W_device_traces))
		return vc_fail(t->err, VC_EFORMAT, "the pickle holds no memory snapshot (neither "
			       "segments nor device_traces)");
	VC_TRY(read_segments(t, snapshot_items(t, snapshot_lookup(d, W_segments), VC_PV_LIST)));
	VC_TRY(read_lists(t, snapshot_items(t, snapshot_lookup(d, W_device_traces), VC_PV_LIST)));
	t->s->annotations = snapshot_lookup(d, W_external_annotations) != NULL;
	t->s->host_segments = snapshot_lookup(d, W_host_segments) != NULL;
	x = snapshot_lookup(d, W_trace_alloc_overflowed);
	t->s->overflowed = x && x->type == VC_PV_BOOL && x->i;
	return VC_OK;
}

static void tree_fini(struct tree *t)
{
	for (size_t i = 0; i < t->vecs; i++)
		free(t->vec[i].at);
	vc_mapped_free(t->object, t->object_cap, sizeof(*t->object));
	VC_FREE(t->vec, t->frame, t->spare, t->list, t->last, t->node, t->seen,
		t->made_of);
}

/* json.dump() of a snapshot begins with a brace and a quote, or with a bracket and a brace; no
 * pickle does. */
static bool is_json(struct vc_input *in)
{
	size_t n;
	const uint8_t *p = vc_input_peek(in, 256, &n, NULL);
	char first = 0;

	for (size_t i = 0; p && i < n; i++) {
		if (p[i] == ' ' || p[i] == '\n' || p[i] == '\r' || p[i] == '\t')
			continue;
		if (first)
			return first == '{' ? p[i] == '"' : p[i] == '{';
		if (p[i] != '{' && p[i] != '[')
			return false;
		first = (char)p[i];
	}
	return false;
}

int snapshot_read(struct snapshot *s, struct vc_input *in, struct vc_meta *meta,
		  struct vc_error *err)
{
	struct vc_error own;
	struct tree t = { .s = s, .meta = meta, .err = err ? err : &own };
	struct vc_pickle_builder b;
	struct vc_pickle_value root;
	int rc = snapshot_words(meta, t.err);

	snapshot_builder(&t, &b);
	t.seen = calloc((size_t)1 << SEEN_BITS, sizeof(*t.seen));
	if (!rc && !t.seen)
		rc = vc_nomem(t.err, "reading the snapshot");
	if (!rc)
		rc = (is_json(in) ? vc_pickle_from_json : vc_pickle_read)(in, &b, &root, t.err);
	t.err = err ? err : &own;
	if (!rc)
		rc = read_whole(&t, &root);
	if (!rc && !vc_meta_ok(meta))
		rc = vc_nomem(err, "the texts of the snapshot");
	tree_fini(&t);
	return rc;
}

void snapshot_fini(struct snapshot *s)
{
	vc_mapped_free(s->ev, s->cap, sizeof(*s->ev));
	free(s->list);
	free(s->segment);
	free(s->block);
	free(s->note);
	free(s->settings.conf);
	*s = (struct snapshot){ 0 };
}
