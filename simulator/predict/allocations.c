/* SPDX-License-Identifier: Apache-2.0 */
/* allocations.c - turns a trace into allocations that can be compared with those of another
 * trace. */
#include "simulator/predict/allocations.h"

#include "common/hash.h"
#include "common/torch_names.h"
#include "common/vec.h"

static int arrays(struct vc_allocations *m, size_t n, uint64_t ids, struct vc_error *err)
{
	m->take = calloc(n + 1, sizeof(*m->take));
	m->event = calloc(n + 1, sizeof(*m->event));
	m->born = calloc(n + 1, sizeof(*m->born));
	m->died = calloc(n + 1, sizeof(*m->died));
	m->of_id = calloc((size_t)ids + 1, sizeof(*m->of_id));
	m->ids = ids + 1;
	if (m->take && m->event && m->born && m->died && m->of_id)
		return 0;
	return vc_nomem(err, "the allocations of a recording");
}

static void add(struct vc_allocations *m, const struct vc_event *e, size_t at)
{
	size_t i = m->n++;

	m->take[i] = (struct vc_take){ .size = e->size, .stream = e->stream,
				       .life = UINT32_MAX };
	m->event[i] = (uint32_t)at;
	m->born[i] = m->steps++;
	m->died[i] = VC_NEVER;
	m->of_id[e->id] = (uint32_t)i + 1;
}

static void drop(struct vc_allocations *m, uint64_t id)
{
	uint32_t i = id < m->ids ? m->of_id[id] : 0;

	if (i && m->died[i - 1] == VC_NEVER) {
		m->died[i - 1] = m->steps;
		m->take[i - 1].life = (uint32_t)(m->n - i);
	}
	m->steps++;
}

bool vc_allocations_lasts(const struct vc_allocations *m, size_t i)
{
	return i < m->n / 2 && (m->take[i].life == UINT32_MAX || i + 1 + m->take[i].life >= m->n);
}

bool vc_allocations_has_lasting(const struct vc_allocations *m, uint64_t size)
{
	return vc_find_u64(m->lasting, m->lastings, size);
}

static int read_lasting(struct vc_allocations *m, struct vc_error *err)
{
	m->lasting = malloc((m->n + 1) * sizeof(*m->lasting));
	VC_HAVE(m->lasting, "the sizes of a recording", err);
	for (size_t i = 0; i < m->n; i++)
		if (vc_allocations_lasts(m, i))
			m->lasting[m->lastings++] = m->take[i].size;
	vc_sort_u64(m->lasting, m->lastings);
	return 0;
}

static uint64_t text_hash(const struct vc_meta *meta, uint32_t string)
{
	const char *s = string < meta->strings ? meta->string[string] : "";
	const char *folder = strrchr(s, '/');

	s = folder ? folder + 1 : s;
	return vc_hash_bytes(s, strlen(s));
}

int vc_allocations_name(struct vc_allocations *m, const uint32_t *line, struct vc_error *err)
{
	const struct vc_meta *meta = m->trace->meta;
	uint64_t *h = calloc(meta->frames + 1, sizeof(*h));

	VC_HAVE(h, "the call sites of a recording", err);
	for (size_t i = 1; i < meta->frames; i++) {
		const struct vc_frame *f = &meta->frame[i];

		h[i] = f->parent < i ? h[f->parent] : 0;
		/* it goes another way for small tensors than for large ones */
		if (vc_frame_roles(meta, (uint32_t)i, VC_NAME_DRY_RUN))
			continue;
		const uint64_t all[] = { h[i], line ? line[i] : f->line,
					 text_hash(meta, f->file), text_hash(meta, f->function) };

		h[i] = vc_hash_bytes(all, sizeof(all)) | 1;
	}
	for (size_t i = 0; i < m->n; i++) {
		uint32_t at = m->trace->ev[m->event[i]].site;

		m->take[i].site = at < meta->frames ? h[at] : 0;
	}
	free(h);
	return VC_OK;
}

int vc_allocations_init(struct vc_allocations *m, const struct vc_trace *t, uint16_t device,
		   struct vc_error *err)
{
	size_t n = 0;
	uint64_t ids = t->meta->max_id;

	*m = (struct vc_allocations){ .trace = t, .device = device };
	if (t->n >= UINT32_MAX)
		return vc_fail(err, VC_ENOSUP, "a recording of %zu events is too long to be "
			       "compared; cut it with -x window", t->n);
	for (size_t i = 0; i < t->n; i++) {
		n += t->ev[i].kind == VC_EV_ALLOC && t->ev[i].device == device;
		if (t->ev[i].kind < VC_EV_SEGMENT_ALLOC && t->ev[i].kind <= VC_EV_USE &&
		    t->ev[i].id > ids)
			ids = t->ev[i].id;
	}
	if (!n)
		return vc_fail(err, VC_EUSAGE, "%s has no allocation on device %u",
			       t->meta->path ? t->meta->path : "the trace", device);
	int rc = arrays(m, n, ids, err);

	for (size_t i = 0; !rc && i < t->n; i++) {
		const struct vc_event *e = &t->ev[i];

		if (e->device != device)
			continue;
		if (e->kind == VC_EV_ALLOC)
			add(m, e, i);
		else if (e->kind == VC_EV_FREE)
			drop(m, e->id);
	}
	if (!rc)
		rc = vc_allocations_name(m, NULL, err);
	if (!rc)
		rc = read_lasting(m, err);
	if (rc)
		vc_allocations_fini(m);
	return rc;
}

void vc_allocations_fini(struct vc_allocations *m)
{
	VC_FREE(m->take, m->event, m->born, m->died, m->of_id, m->lasting);
	*m = (struct vc_allocations){ 0 };
}

bool vc_allocations_called(const struct vc_allocations *m, uint32_t i, int depth, uint32_t names)
{
	const struct vc_meta *meta = m->trace->meta;
	uint32_t site = m->trace->ev[m->event[i]].site;

	for (; depth-- > 0 && site && site < meta->frames; site = meta->frame[site].parent)
		if (vc_frame_roles(meta, site, names) == names)
			return true;
	return false;
}

const char *vc_allocations_from(const struct vc_allocations *m)
{
	return m->trace->meta->path ? m->trace->meta->path : "the nearest recording";
}
