/* SPDX-License-Identifier: Apache-2.0 */
/* vct.c - the native trace format as a source; common/codec.h does the work. */
#include "common/codec.h"
#include "simulator/replay/source.h"

struct state { struct vc_decoder *decoder; };

static int open_vct(struct vc_source *s, struct vc_error *err)
{
	struct state *st = s->state;

	st->decoder = vc_decoder_new(s->input, s->meta, err);
	return st->decoder ? 0 : err ? (int)err->status : VC_EFORMAT;
}

static long next(struct vc_source *s, struct vc_event *ev, size_t cap, struct vc_error *err)
{
	return vc_decoder_next(((struct state *)s->state)->decoder, ev, cap, err);
}

static void close_vct(struct vc_source *s)
{
	vc_decoder_free(((struct state *)s->state)->decoder);
}

const struct vc_source_type vc_source_vct = {
	.name = "vct", .summary = "vramcast's own traces",
	.state_size = sizeof(struct state), .probe = vc_decoder_probe, .open = open_vct,
	.next = next, .close = close_vct,
};
