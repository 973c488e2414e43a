/* SPDX-License-Identifier: Apache-2.0 */
/* host.c - see host.h */
#include "simulator/session/host.h"

#include "simulator/replay/memo.h"

enum kind { DEVICE, PINNED, MOVED, RESIDENT, KINDS };
enum { BATCH = 1024 };

/* Outside memory is freed by address where it was recorded, by id where a transform made it. */
struct piece { uint64_t key, size; uint8_t kind, live; };

struct sum {
	uint16_t device;
	struct piece *at; size_t n, cap;
	uint64_t live[KINDS], most[KINDS];
	uint64_t until, by_then; /* of DEVICE: live at that time; CUPTI tells it later */
	uint64_t others;         /* other processes', then */
	struct vc_host *h;
};

static const char *label_of(const struct vc_meta *m, uint32_t label)
{
	return label < m->strings ? m->string[label] : "";
}

static enum kind kind_of(const char *label)
{
	if (!strcmp(label, VC_LABEL_REGISTERED) || !strcmp(label, VC_LABEL_SHARED))
		return RESIDENT;
	return !strcmp(label, VC_LABEL_PAGEABLE) ? MOVED :
	       strcmp(label, VC_LABEL_PINNED)    ? DEVICE :
						   PINNED;
}

static int born(struct sum *k, const struct vc_event *e, const char *label, struct vc_error *err)
{
	enum kind kind = e->id ? MOVED : kind_of(label);

	if (k->n == k->cap) {
		size_t cap = k->cap ? 2 * k->cap : 256;
		struct piece *at = realloc(k->at, cap * sizeof(*at));
		VC_HAVE(at, "memory beside the allocator's", err);
		k->at = at;
		k->cap = cap;
	}
	k->at[k->n++] = (struct piece){ e->id ? e->id : e->addr, e->size, (uint8_t)kind, 1 };
	k->live[kind] += e->size;
	if (k->live[kind] > k->most[kind])
		k->most[kind] = k->live[kind];
	if (kind == DEVICE && e->time_ns <= k->until)
		k->by_then += e->size;
	return VC_OK;
}

/* Young ones die first. */
static void died(struct sum *k, const struct vc_event *e)
{
	uint64_t key = e->id ? e->id : e->addr;

	for (size_t i = k->n; i-- > 0;)
		if (k->at[i].key == key) {
			k->live[k->at[i].kind] -= k->at[i].size;
			if (k->at[i].kind == DEVICE && e->time_ns <= k->until)
				k->by_then -= k->at[i].size;
			memmove(&k->at[i], &k->at[i + 1], (--k->n - i) * sizeof(*k->at));
			return;
		}
}

static int add(struct sum *k, const struct vc_meta *m, const struct vc_event *e,
	       struct vc_error *err)
{
	const char *label;

	if (e->kind != VC_EV_MARK && e->kind != VC_EV_OUTSIDE_ALLOC &&
	    e->kind != VC_EV_OUTSIDE_FREE)
		return VC_OK;
	label = label_of(m, e->label);
	if (e->kind == VC_EV_MARK) {
		if (e->size && !strcmp(label, VC_LABEL_RESIDENT)) {
			k->h->sampled = true;
			k->h->resident = e->size > k->h->resident ? e->size : k->h->resident;
		} else if (e->size && !strcmp(label, VC_LABEL_PROCESSES)) {
			k->h->processes = e->size > k->h->processes ? e->size : k->h->processes;
		} else if (!strcmp(label, VC_LABEL_OTHERS) && e->device == k->device &&
			   (!k->until || e->time_ns <= k->until)) {
			k->others = e->size;
		}
		return VC_OK;
	}
	/* Memory of another card is not this card's; the host's is everybody's. */
	if (e->device != k->device && kind_of(label) == DEVICE && !e->id)
		return VC_OK;
	if (e->kind == VC_EV_OUTSIDE_ALLOC)
		return born(k, e, label, err);
	died(k, e);
	return VC_OK;
}

static void finish(struct sum *k)
{
	struct vc_host *h = k->h;

	h->pinned = k->most[PINNED];
	h->moved = k->most[MOVED];
	h->libraries = k->most[DEVICE];
	h->needed = (h->resident + h->pinned + h->moved) * h->processes;
	free(k->at);
}

static struct vc_host_device find_device(const struct vc_recording *rec)
{
	uint64_t outside = rec->device->outside;
	struct vc_host h = { .processes = 1 };
	struct sum k = { .device = rec->device->device, .h = &h,
			 .until = rec->device->outside_ns };
	int r = VC_OK;

	for (size_t i = 0; r == VC_OK && !rec->streamed && i < rec->trace.n; i++)
		r = add(&k, rec->meta, &rec->trace.ev[i], NULL);
	finish(&k);
	outside -= outside > k.by_then ? k.by_then : 0;
	if (k.until && k.others > outside)
		k.others = 0; /* it is of another moment */
	return (struct vc_host_device){
		.libraries = h.libraries, .context = k.until ? outside - k.others : 0,
		.others = k.others,
	};
}

struct kept { struct vc_memo memo; struct vc_host_device is; };

static void drop(struct vc_memo *m)
{
	free(m);
}

static int keep_device(const struct vc_trace *t, uint64_t device, const void *rec,
		       struct vc_memo **out, struct vc_error *err)
{
	struct kept *k = calloc(1, sizeof(*k));

	VC_HAVE(k, "memory beside the allocator's", err);
	k->memo.drop = drop;
	k->is = find_device(rec);
	*out = &k->memo;
	return VC_OK;
}

struct vc_host_device vc_host_device(const struct vc_recording *rec)
{
	struct vc_host_device is;
	struct vc_memo *m;

	if (vc_memo_get(&rec->trace, rec->device->device, keep_device, rec, &m, NULL) < 0)
		return find_device(rec);
	is = ((struct kept *)m)->is;
	vc_memo_put(m);
	return is;
}

int vc_host_read(const struct vc_recording *rec, const struct vc_list *transforms, uint64_t events,
		 struct vc_host *h, struct vc_error *err)
{
	struct vc_source *src =
		rec->streamed ? NULL : vc_recording_source(rec, transforms, err);
	struct sum k = { .device = rec->device->device, .h = h };
	struct vc_event ev[BATCH];
	long n = 1;
	int r = VC_OK;

	*h = (struct vc_host){ .processes = 1 };
	if (!src)
		return rec->streamed ? VC_OK : (int)err->status;
	for (uint64_t had = 0; r == VC_OK && n > 0 && had < events; had += (uint64_t)n) {
		n = src->type->next(src, ev, BATCH, err);
		for (long i = 0; r == VC_OK && i < n; i++)
			r = add(&k, src->meta, &ev[i], err);
	}
	finish(&k);
	vc_source_free(src);
	return n < 0 ? (int)n : r;
}
