/* SPDX-License-Identifier: Apache-2.0 */
/* host.c - see host.h */
#include "simulator/session/host.h"

#include "simulator/replay/beside.h"
#include "simulator/replay/memo.h"

enum { BATCH = 1024 };

struct sum {
	uint16_t device;
	struct vc_beside now;
	uint64_t most[VC_BESIDE_KINDS];
	uint64_t until, device_then, managed_then; /* live at that time; CUPTI tells it later */
	uint64_t others;                           /* other processes', then */
	struct vc_host *h;
};

static void moved(struct sum *k, const struct vc_event *e, enum vc_beside_kind kind, uint64_t size)
{
	uint64_t *then = kind == VC_BESIDE_DEVICE  ? &k->device_then :
			 kind == VC_BESIDE_MANAGED ? &k->managed_then : NULL;

	if (k->now.live[kind] > k->most[kind])
		k->most[kind] = k->now.live[kind];
	if (then && e->time_ns <= k->until)
		*then += e->kind == VC_EV_OUTSIDE_ALLOC ? size : -size;
}

static void read_mark(struct sum *k, const struct vc_meta *m, const struct vc_event *e)
{
	const char *label = e->label < m->strings ? m->string[e->label] : "";

	if (e->size && !strcmp(label, VC_LABEL_RESIDENT)) {
		k->h->sampled = true;
		k->h->resident = e->size > k->h->resident ? e->size : k->h->resident;
	} else if (e->size && !strcmp(label, VC_LABEL_PROCESSES)) {
		k->h->processes = e->size > k->h->processes ? e->size : k->h->processes;
	} else if (!strcmp(label, VC_LABEL_OTHERS) && e->device == k->device &&
		   (!k->until || e->time_ns <= k->until)) {
		k->others = e->size;
	}
}

static int add(struct sum *k, const struct vc_meta *m, const struct vc_event *e,
	       struct vc_error *err)
{
	enum vc_beside_kind kind;
	uint64_t size;

	if (e->kind == VC_EV_MARK)
		read_mark(k, m, e);
	if (e->kind != VC_EV_OUTSIDE_ALLOC && e->kind != VC_EV_OUTSIDE_FREE)
		return VC_OK;
	kind = vc_beside_kind(m, e);
	/* Memory of another card is not this card's; the host's is everybody's. */
	if (e->device != k->device && (kind == VC_BESIDE_DEVICE || kind == VC_BESIDE_MANAGED))
		return VC_OK;
	VC_TRY(vc_beside_event(&k->now, m, e, &size, err));
	moved(k, e, kind, size);
	return VC_OK;
}

static void finish(struct sum *k)
{
	struct vc_host *h = k->h;

	h->pinned = k->most[VC_BESIDE_PINNED];
	h->managed = k->most[VC_BESIDE_MANAGED];
	h->moved = k->most[VC_BESIDE_MOVED];
	h->libraries = k->most[VC_BESIDE_DEVICE];
	h->needed = (h->resident + h->pinned + h->managed + h->moved) * h->processes;
	vc_beside_fini(&k->now);
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
	outside -= outside > k.device_then ? k.device_then : 0;
	if (k.until && k.others > outside)
		k.others = 0; /* it is of another moment */
	return (struct vc_host_device){
		.libraries = h.libraries, .context = k.until ? outside - k.others : 0,
		.others = k.others, .managed = k.managed_then,
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
