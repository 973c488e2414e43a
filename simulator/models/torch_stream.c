/* SPDX-License-Identifier: Apache-2.0 */
/* torch_stream.c - streams: a table, whether one is captured, how much its segments reserve. */

#include "simulator/models/torch.h"

struct torch_stream *torch_stream_at(struct torch *t, uint32_t stream)
{
	struct torch_stream *p;
	uint32_t n = t->streams;

	if (stream == VC_STREAM_ALL)
		return &t->anywhere;
	if (stream < n)
		return &t->stream[stream];
	p = realloc(t->stream, (stream + 8) * sizeof(*p));
	if (!p) {
		t->nomem = true;
		return &t->anywhere;
	}
	t->stream = p;
	t->streams = stream + 8;
	for (; n < t->streams; n++)
		p[n] = (struct torch_stream){ 0 };
	return &t->stream[stream];
}

bool torch_capturing(const struct torch *t)
{
	if (t->r->capture == TORCH_ANY_SCOPE)
		return t->scopes > 0;
	return t->captures && t->current < t->streams && t->stream[t->current].capturing;
}

/* The virtual size of a stream's segments before rounding to pages: 9/8 of the device, less when a
 * reserve is configured (2.15). */
uint64_t torch_reserve_size(const struct torch *t, uint32_t stream)
{
	uint64_t total = vc_device_config(t->m->device)->prop_total, full = total + total / 8, want;
	double part = t->conf.reserve_part;
	const char *klass = stream < t->streams ? t->stream[stream].klass : NULL;
	bool has = t->conf.has_reserve;

	want = t->conf.reserve_bytes;
	for (size_t i = 0; klass && i < t->conf.classes; i++)
		if (!strcmp(t->conf.klass[i].name, klass)) {
			has = true;
			part = t->conf.klass[i].part;
			want = t->conf.klass[i].bytes;
			break;
		}
	if (!has)
		return full;
	if (part >= 0)
		want = (uint64_t)(part * (double)total);
	return want < full ? want : full;
}
