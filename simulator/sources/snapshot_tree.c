/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_tree.c - see snapshot_tree.h.
 *
 * Folds while the pickle streams by: a dictionary with an "action" becomes an event record at its
 * first key, a list of frames a node of the stack tree, so that a file of gigabytes costs its
 * events. Only segments, blocks and settings are kept as generic values until the end. */
#include "simulator/sources/snapshot_tree.h"

#include "common/mapped.h"
#include "common/vec.h"
#include "simulator/sources/snapshot_parts.h"

/* Room for one more element behind n; `array` is that of `grow`. */
static int more_room(struct tree *t, bool (*grow)(void *, size_t *, size_t, size_t), void *array,
		     size_t *cap, size_t n, size_t size)
{
	if (n >= UINT32_MAX)
		return vc_fail(t->err, VC_ENOSUP, "more than 4 billion objects in one snapshot");
	return grow(array, cap, n + 1, size) ? 0 : vc_nomem(t->err, "reading the snapshot");
}
#define ROOM(t, array, n, cap) \
	((n) < (cap) ? 0 : more_room(t, vc_vec_grow, &(array), &(cap), (n), sizeof(*(array))))
/* The same in what grows with the history. */
#define LARGE_ROOM(t, array, n, cap) \
	((n) < (cap) ? 0 : more_room(t, vc_mapped_grow, &(array), &(cap), (n), sizeof(*(array))))

static int new_object(struct tree *t, enum kind kind, uint32_t *ref)
{
	VC_TRY(LARGE_ROOM(t, t->object, t->objects, t->object_cap));
	t->object[t->objects] = (struct object){ .kind = kind };
	*ref = (uint32_t)t->objects++;
	return 0;
}

/* ---- vectors: children of generic dictionaries (key, value, key, ...) and lists ---- */

static int vec_new(struct tree *t, uint32_t *at)
{
	if (t->spares) {
		*at = t->spare[--t->spares];
		return 0;
	}
	VC_TRY(ROOM(t, t->vec, t->vecs, t->vec_cap));
	t->vec[t->vecs] = (struct vec){ 0 };
	*at = (uint32_t)t->vecs++;
	return 0;
}

static int vec_push(struct tree *t, uint32_t at, const struct vc_pickle_value *v, uint32_t n)
{
	struct vec *c = &t->vec[at];

	if (c->cap - c->n < n) {
		uint32_t cap = c->cap ? c->cap : n; /* tuples come whole: no room to spare */
		struct vc_pickle_value *bigger;

		while (cap && cap - c->n < n)
			cap *= 2;
		if (!cap)
			return vc_fail(t->err, VC_ENOSUP, "a list of more than 2 billion items");
		bigger = realloc(c->at, cap * sizeof(*bigger));
		VC_HAVE(bigger, "reading the snapshot", t->err);
		c->at = bigger;
		c->cap = cap;
	}
	memcpy(c->at + c->n, v, n * sizeof(*v));
	c->n += n;
	return 0;
}

static int vec_drop(struct tree *t, uint32_t at)
{
	VC_TRY(ROOM(t, t->spare, t->spares, t->spare_cap));
	t->vec[at].n = 0;
	t->spare[t->spares++] = at;
	return 0;
}

const struct vec *snapshot_items(const struct tree *t, const struct vc_pickle_value *v,
				 uint32_t type)
{
	const struct object *o = v && v->type == type ? &t->object[v->ref] : NULL;

	return o && o->kind == (type == VC_PV_DICT ? DICT : LIST) ? &t->vec[o->at] : NULL;
}

const struct vc_pickle_value *snapshot_lookup(const struct vec *dict, uint32_t key)
{
	for (uint32_t i = 0; dict && i + 1 < dict->n; i += 2)
		if (dict->at[i].type == VC_PV_TEXT && dict->at[i].ref == key)
			return &dict->at[i + 1];
	return NULL;
}

/* ---- call stacks ---- */

static struct frame frame_of(const struct tree *t, const struct vc_pickle_value *v)
{
	const struct object *o = v->type == VC_PV_DICT ? &t->object[v->ref] : NULL;

	return o && o->kind == FRAME ? t->frame[o->at] : (struct frame){ 0 };
}

/* Remember which frame object a node was made of. */
static void note_node(struct tree *t, uint32_t node, uint32_t ref)
{
	if (node >= t->made && !vc_vec_zeroed(t->made_of, t->made, node + 1))
		return;
	t->made_of[node] = ref + 1;
}

/* The node of a frame below `parent`. A frame is written once and named again in every stack that
 * it stands in, so its place says enough: most are not looked up by what they hold. Stacks that
 * came whole have neighbouring nodes. */
static uint32_t node_of(struct tree *t, uint32_t parent, const struct vc_pickle_value *v)
{
	uint32_t mixed = parent * 2654435761u ^ v->ref * 2246822519u, next = parent + 1;
	struct seen *s = &t->seen[mixed >> (32 - SEEN_BITS)];
	struct frame f;

	if (v->type == VC_PV_DICT && next < t->made && t->made_of[next] == v->ref + 1 &&
	    t->meta->frame[next].parent == parent)
		return next;
	if (s->node && s->parent == parent && s->ref == v->ref && v->type == VC_PV_DICT)
		return s->node;
	f = frame_of(t, v);
	*s = (struct seen){ parent, v->ref,
			    vc_meta_frame(t->meta, (struct vc_frame){ .parent = parent,
					  .function = f.name, .file = f.file, .line = f.line }) };
	if (v->type == VC_PV_DICT)
		note_node(t, s->node, v->ref);
	return s->node;
}

/* A list of frames, innermost first, becomes its node. Neighbours share most of their callers, so
 * the walk starts where this stack leaves the one before. */
static int fold_stack(struct tree *t, struct object *o)
{
	const struct vec *c = &t->vec[o->at];
	size_t n = c->n, same = 0;
	uint32_t at = o->at;

	while (t->last_cap < n || t->node_cap < n)
		if (ROOM(t, t->node, t->node_cap, t->node_cap) ||
		    ROOM(t, t->last, t->last_cap, t->last_cap))
			return VC_ENOMEM;
	while (same < n && same < t->depth && c->at[n - 1 - same].ref == t->last[same])
		same++;
	for (size_t i = same; i < n; i++) {
		t->last[i] = c->at[n - 1 - i].ref;
		t->node[i] = node_of(t, i ? t->node[i - 1] : 0, &c->at[n - 1 - i]);
	}
	t->depth = n;
	*o = (struct object){ .kind = SITE, .at = n ? t->node[n - 1] : 0, .whole = o->whole };
	return vec_drop(t, at);
}

int snapshot_site(struct tree *t, const struct vc_pickle_value *v, uint32_t *site)
{
	struct object *o = v->type == VC_PV_LIST ? &t->object[v->ref] : NULL;

	*site = 0;
	if (o && o->kind == LIST)
		VC_TRY(fold_stack(t, o));
	if (o && o->kind == SITE)
		*site = o->at;
	return VC_OK;
}

static int set_frame(struct frame *f, uint32_t key, const struct vc_pickle_value *v)
{
	if (key == W_name && v->type == VC_PV_TEXT)
		f->name = v->ref;
	else if (key == W_filename && v->type == VC_PV_TEXT)
		f->file = v->ref;
	else if (key == W_line && v->type == VC_PV_INT && v->i > 0 && v->i < UINT32_MAX)
		f->line = (uint32_t)v->i;
	return 0;
}

/* ---- events ---- */

int snapshot_number(struct tree *t, const struct vc_pickle_value *v, const char *what, uint64_t *to)
{
	if (v->type == VC_PV_INT && v->i >= 0) {
		*to = (uint64_t)v->i;
		return 0;
	}
	if (v->type == VC_PV_INT || (v->type == VC_PV_BIG && v->i < 0))
		return vc_fail(t->err, VC_EFORMAT, "%s is negative", what);
	if (v->type == VC_PV_BIG)
		return vc_fail(t->err, VC_EFORMAT, "%s does not fit into 63 bits", what);
	return vc_fail(t->err, VC_EFORMAT, "%s is not a number", what);
}

static uint8_t action_of(uint32_t word)
{
	static const uint8_t table[W_WORDS] = {
		[W_alloc] = SNAP_ALLOC, [W_free_requested] = SNAP_FREE_REQUESTED,
		[W_free_completed] = SNAP_FREE_COMPLETED, [W_segment_alloc] = SNAP_SEGMENT_ALLOC,
		[W_segment_free] = SNAP_SEGMENT_FREE, [W_segment_map] = SNAP_SEGMENT_MAP,
		[W_segment_unmap] = SNAP_SEGMENT_UNMAP, [W_snapshot] = SNAP_SNAPSHOT,
		[W_oom] = SNAP_OOM,
	};

	return word < W_WORDS && table[word] ? table[word] : SNAP_OTHER;
}

/* (a, b) of a private pool's name. */
uint64_t snapshot_pool(const struct tree *t, const struct vc_pickle_value *v)
{
	const struct vec *c = snapshot_items(t, v, VC_PV_LIST);

	if (!c || c->n != 2 || c->at[0].type != VC_PV_INT || c->at[1].type != VC_PV_INT)
		return 0;
	return (uint64_t)c->at[0].i << 32 | (uint32_t)c->at[1].i;
}

static void set_tag(struct tree *t, struct vc_event *e, const struct vc_pickle_value *v)
{
	uint32_t tag = v->type == VC_PV_TEXT && v->ref != W_not_applicable ? v->ref : 0;

	t->s->user_metadata = true;
	if (!e->label)
		e->label = tag;
	if (tag && tag != t->tag && tag == e->label)
		e->flags |= SNAP_NEW_TAG;
	t->tag = tag;
}

static int set_time(struct tree *t, struct vc_event *e, const struct vc_pickle_value *v)
{
	struct snapshot *s = t->s;

	s->times = true;
	VC_TRY(snapshot_number(t, v, "time_us", &e->time_ns));
	if (e->time_ns && (!s->first_us || e->time_ns < s->first_us))
		s->first_us = e->time_ns;
	return VC_OK;
}

static int set_event(struct tree *t, struct vc_event *e, uint32_t key,
		     const struct vc_pickle_value *v)
{
	int rc = 0;

	switch (key) {
	case W_action:
		e->kind = v->type == VC_PV_TEXT ? action_of(v->ref) : SNAP_OTHER;
		t->s->actions |= 1u << e->kind;
		return 0;
	case W_addr: case W_device_free: return snapshot_number(t, v, "addr", &e->addr);
	case W_size: return snapshot_number(t, v, "size", &e->size);
	case W_stream:
		if (v->type != VC_PV_INT)
			return vc_fail(t->err, VC_EFORMAT, "stream is not a number");
		e->stream = v->i ? vc_meta_stream(t->meta, (uint64_t)v->i) : 0;
		return 0;
	case W_time_us: return set_time(t, e, v);
	case W_frames:
		rc = snapshot_site(t, v, &e->site);
		t->s->stacks |= e->site != 0;
		return rc;
	case W_pool_id:
		t->s->pool_ids = true;
		e->id = snapshot_pool(t, v);
		return 0;
	case W_user_metadata: set_tag(t, e, v); return 0;
	case W_category:
		if (v->type == VC_PV_TEXT)
			e->label = v->ref;
		return 0;
	case W_compile_context: t->s->compile_context = true; return 0;
	case W_forward_frames: t->s->forward_frames = true; return 0;
	default: return 0;
	}
}

static int new_event(struct tree *t, struct object *o)
{
	struct snapshot *s = t->s;
	VC_TRY(LARGE_ROOM(t, s->ev, s->n, s->cap));
	s->ev[s->n] = (struct vc_event){ 0 };
	*o = (struct object){ .kind = EVENT, .at = (uint32_t)s->n++ };
	return 0;
}

static int event_key(struct tree *t, uint32_t at, uint32_t key, const struct vc_pickle_value *v)
{
	struct vc_event *e = &t->s->ev[at];
	int rc = set_event(t, e, key, v);

	if (!rc && key == W_size && e->size > PLAUSIBLE && e->kind != SNAP_OOM)
		rc = vc_fail(t->err, VC_EFORMAT, "size %llu is more than any device has",
			     (unsigned long long)e->size);
	return rc ? vc_wrap(t->err, "event %u", at) : 0;
}

/* The container o holds v now. A file of nothing but brackets is to end here, not in swap. */
static int hold(struct tree *t, struct object *o, const struct vc_pickle_value *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint8_t depth = v[i].type >= VC_PV_DICT ? t->object[v[i].ref].depth + 1 : 0;

		if (depth > DEEPEST)
			return vc_fail(t->err, VC_EFORMAT, "the pickle nests more than %d "
				       "containers in each other: no memory snapshot", DEEPEST);
		o->depth = depth > o->depth ? depth : o->depth;
	}
	return 0;
}

/* ---- dictionaries ---- */

static int become_dict(struct tree *t, struct object *o)
{
	uint32_t at;
	int rc = vec_new(t, &at);

	if (!rc)
		*o = (struct object){ .kind = DICT, .at = at };
	return rc;
}

/* "action" came late: what the dictionary holds so far goes into an event. */
static int dict_to_event(struct tree *t, struct object *o)
{
	uint32_t old = o->at;
	int rc = new_event(t, o);

	for (uint32_t i = 0; !rc && i + 1 < t->vec[old].n; i += 2)
		if (t->vec[old].at[i].type == VC_PV_TEXT)
			rc = event_key(t, o->at, t->vec[old].at[i].ref, &t->vec[old].at[i + 1]);
	return rc ? rc : vec_drop(t, old);
}

/* Annotations have a "name" too: not a frame after all. */
static int frame_to_dict(struct tree *t, struct object *o)
{
	struct vc_pickle_value name[2] = {
		{ .type = VC_PV_TEXT, .ref = W_name },
		{ .type = VC_PV_TEXT, .ref = t->frame[o->at].name },
	};
	int rc = become_dict(t, o);

	return rc ? rc : vec_push(t, o->at, name, 2);
}

static int choose(struct tree *t, struct object *o, uint32_t key)
{
	if (key == W_action)
		return new_event(t, o);
	if (key != W_name && key != W_filename && key != W_line)
		return become_dict(t, o);
	VC_TRY(ROOM(t, t->frame, t->frames, t->frame_cap));
	t->frame[t->frames] = (struct frame){ 0 };
	*o = (struct object){ .kind = FRAME, .at = (uint32_t)t->frames++ };
	return 0;
}

static int set_pair(struct tree *t, struct object *o, uint32_t key,
		    const struct vc_pickle_value kv[2])
{
	int rc = 0;

	if (o->kind == DICT_NEW)
		rc = choose(t, o, key);
	else if (o->kind == DICT && key == W_action)
		rc = dict_to_event(t, o);
	else if (o->kind == FRAME && (key == W_stage || key == W_device || key == W_time_us))
		rc = frame_to_dict(t, o);
	if (rc)
		return rc;
	if (o->kind == EVENT)
		return event_key(t, o->at, key, &kv[1]);
	if (o->kind == FRAME)
		return set_frame(&t->frame[o->at], key, &kv[1]);
	rc = o->kind == DICT ? vec_push(t, o->at, kv, 2) : 0;
	return rc ? rc : hold(t, o, kv + 1, 1);
}

static int dict_set(void *arg, uint32_t ref, const struct vc_pickle_value *kv, size_t n,
		    struct vc_error *err)
{
	struct tree *t = arg;
	struct object *o = &t->object[ref];

	t->err = err;
	for (size_t i = 0; i < n; i++, kv += 2) {
		uint32_t key = kv[0].type == VC_PV_TEXT ? kv[0].ref : W_WORDS;

		if (o->kind == EVENT)
			VC_TRY(event_key(t, o->at, key, &kv[1]));
		else
			VC_TRY(set_pair(t, o, key, kv));
	}
	return VC_OK;
}

/* ---- lists ---- */

static int fold_note(struct tree *t, struct object *o)
{
	struct snapshot *s = t->s;
	const struct vec *d = &t->vec[o->at];
	const struct vc_pickle_value *name = snapshot_lookup(d, W_name),
				     *stage = snapshot_lookup(d, W_stage),
				     *when = snapshot_lookup(d, W_time_us),
				     *device = snapshot_lookup(d, W_device);
	struct snapshot_note n = { .order = s->notes };
	VC_TRY(ROOM(t, s->note, s->notes, t->note_cap));
	n.name = name && name->type == VC_PV_TEXT ? name->ref : 0;
	n.end = stage->type == VC_PV_TEXT && stage->ref == W_end;
	n.time_us = when && when->type == VC_PV_INT && when->i > 0 ? (uint64_t)when->i : 0;
	n.device = device && device->type == VC_PV_INT && device->i >= 0 && device->i < UINT16_MAX ?
		(uint16_t)device->i : UINT16_MAX;
	s->note[s->notes++] = n;
	int rc = vec_drop(t, o->at);
	*o = (struct object){ .kind = NOTE, .at = 0 };
	return rc;
}

static int append_event(struct tree *t, struct object *list, uint32_t event)
{
	struct snapshot_list *l;

	if (list->kind == LIST_NEW) {
		VC_TRY(ROOM(t, t->list, t->lists, t->list_cap));
		t->list[t->lists] = (struct snapshot_list){ .first = event };
		*list = (struct object){ .kind = EVENTS, .at = (uint32_t)t->lists++ };
	}
	l = &t->list[list->at];
	if (event != l->first + l->n) { /* one object listed twice: Python can do that */
		if (l->first + l->n != t->s->n)
			return vc_fail(t->err, VC_EFORMAT, "event %u is listed out of order",
				       event);
		VC_TRY(LARGE_ROOM(t, t->s->ev, t->s->n, t->s->cap));
		t->s->ev[t->s->n] = t->s->ev[event];
		t->s->n++;
	}
	l->n++;
	return 0;
}

/* Whether an item becomes something smaller as soon as it is in a list; 0: it stays as it is. */
static enum kind special(const struct tree *t, const struct vc_pickle_value *v)
{
	const struct object *o = v->type == VC_PV_DICT ? &t->object[v->ref] : NULL;

	if (!o || o->kind == FRAME)
		return DICT_NEW;
	if (o->kind == EVENT)
		return EVENT;
	return o->kind == DICT && snapshot_lookup(&t->vec[o->at], W_stage) ? NOTE : DICT_NEW;
}

static int keep_items(struct tree *t, struct object *o, const struct vc_pickle_value *v, uint32_t n)
{
	int rc = 0;

	if (o->kind == LIST_NEW) {
		uint32_t at = 0;

		rc = vec_new(t, &at);
		if (!rc)
			*o = (struct object){ .kind = LIST, .at = at, .whole = true };
	} else {
		o->whole = false;
	}
	return rc || o->kind != LIST ? rc : vec_push(t, o->at, v, n);
}

/* Most lists are stacks. */
static size_t count_frames(const struct tree *t, const struct vc_pickle_value *v, size_t n)
{
	size_t i = 0;

	while (i < n && v[i].type == VC_PV_DICT && t->object[v[i].ref].kind == FRAME)
		i++;
	return i;
}

static int list_append(void *arg, uint32_t ref, const struct vc_pickle_value *v, size_t n,
		       struct vc_error *err)
{
	struct tree *t = arg;
	struct object *o = &t->object[ref];
	size_t plain, frames = count_frames(t, v, n);
	int rc = 0;

	t->err = err;
	if (frames) {
		rc = keep_items(t, o, v, (uint32_t)frames);
		o->depth += !o->depth; /* a frame holds nothing */
	}
	for (size_t i = frames; i < n && !rc; i++) {
		enum kind k = DICT_NEW;

		for (plain = i; plain < n && (k = special(t, &v[plain])) == DICT_NEW; plain++)
			;
		if (plain > i)
			rc = keep_items(t, o, v + i, (uint32_t)(plain - i));
		i = plain;
		if (rc || i == n)
			break;
		if (k == NOTE)
			rc = fold_note(t, &t->object[v[i].ref]);
		else if (o->kind == LIST_NEW || o->kind == EVENTS)
			rc = append_event(t, o, t->object[v[i].ref].at);
	}
	return rc ? rc : hold(t, o, v + frames, n - frames);
}

static int new_dict(void *arg, uint32_t *ref, struct vc_error *err)
{
	struct tree *t = arg;

	t->err = err;
	return new_object(t, DICT_NEW, ref);
}

static int new_list(void *arg, uint32_t *ref, struct vc_error *err)
{
	struct tree *t = arg;

	t->err = err;
	return new_object(t, LIST_NEW, ref);
}

/* Frames that were a stack before are that stack again. */
static int list_again(void *arg, uint32_t model, uint32_t *ref, struct vc_error *err)
{
	struct tree *t = arg;
	struct object was = t->object[model];

	t->err = err;
	if (was.kind != SITE || !was.whole)
		return 0;
	VC_TRY(new_object(t, SITE, ref));
	was.depth = 1; /* as of a list of frames that is still to be folded */
	t->object[*ref] = was;
	return 1;
}

static int new_text(void *arg, const char *s, size_t n, uint32_t *ref, struct vc_error *err)
{
	struct tree *t = arg;

	*ref = vc_meta_string(t->meta, s, n);
	return *ref || vc_meta_ok(t->meta) ? 0 : vc_nomem(err, "the texts of the snapshot");
}

static const char *text_of(void *arg, uint32_t ref)
{
	return ((struct tree *)arg)->meta->string[ref];
}

void snapshot_builder(struct tree *t, struct vc_pickle_builder *b)
{
	*b = (struct vc_pickle_builder){
		.arg = t, .text = new_text, .name = text_of, .dict = new_dict, .list = new_list,
		.set = dict_set, .append = list_append, .again = list_again,
	};
}
