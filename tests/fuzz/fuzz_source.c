/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_source.c - any bytes given to the sources are read or refused: no crash, no leak, no hang.
 *
 * libFuzzer's entry (make fuzz); test_fuzz_corpus.c includes it to replay and mutate the corpus. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "common/codec.h"
#include "common/codec_parts.h"
#include "simulator/replay/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was read must also survive being written and read again. */
static void round_trip(const struct vc_trace *t)
{
	struct vc_error err = { 0 };
	const struct vc_encoder_options opt = { .level = 1, .block = 64 };
	struct vc_output *o = vc_output_memory(&err);
	struct vc_encoder *e = o ? vc_encoder_new(o, t->meta, &opt, &err) : NULL;
	struct vc_source *s;
	struct vc_trace back = { 0 };
	char *all;
	size_t n;

	if (!e || vc_encoder_append(e, t->ev, t->n, &err) || vc_encoder_finish(e, &err))
		abort();
	vc_encoder_free(e);
	all = vc_output_take(o, &n);
	vc_output_close(o);
	s = vc_source_input(vc_input_memory(all, n, &err), &err);
	if (!s || vc_trace_read(&back, s, &err) || back.n != t->n)
		abort();
	for (size_t i = 0; i < t->n; i++)
		if (back.ev[i].id != t->ev[i].id || back.ev[i].size != t->ev[i].size ||
		    back.ev[i].addr != t->ev[i].addr || back.ev[i].time_ns != t->ev[i].time_ns ||
		    back.ev[i].kind != t->ev[i].kind)
			abort();
	vc_source_free(s);
	vc_trace_fini(&back);
	free(all);
}

/* Checksums keep damage away from the decoder of blocks, so bytes behind "BLK:" are given to it
 * as the content of an intact block. */
static void as_block(const uint8_t *data, size_t size)
{
	static const char header[] = "{\"format\": \"vct\", \"max_id\": 5}";
	struct vct_head h = {
		.type = VCT_HEADER, .version = VCT_VERSION, .raw = sizeof(header) - 1 };
	uint8_t *all = malloc(2 * VCT_FRAME + ZSTD_compressBound(size) + 200);
	size_t n = VCT_FRAME;

	h.packed = (uint32_t)ZSTD_compress(all + n, 200, header, h.raw, 1);
	vct_head_put(&h, all);
	n += h.packed;
	h = (struct vct_head){
		.type = VCT_EVENTS, .version = VCT_VERSION, .sequence = 1, .raw = (uint32_t)size };
	h.events = size > 1 && data[1] < 128 ? data[1] :
		   size > 2                  ? (data[1] & 127u) | (uint32_t)data[2] << 7 :
					       0;
	h.packed = (uint32_t)ZSTD_compress(all + n + VCT_FRAME, ZSTD_compressBound(size), data,
					   size, 1);
	vct_head_put(&h, all + n);
	LLVMFuzzerTestOneInput(all, n + VCT_FRAME + h.packed);
	free(all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size >= 4 && !memcmp(data, "BLK:", 4)) {
		as_block(data + 4, size - 4);
		return 0;
	}
	struct vc_error err = { 0 };
	struct vc_input *in = vc_input_memory(data, size, &err);
	struct vc_source *s = in ? vc_source_input(in, &err) : NULL;
	struct vc_trace t = { 0 };

	if (!s || vc_trace_read(&t, s, &err)) {
		if (!err.message[0])
			abort(); /* refused without a sentence */
	} else if (t.n < 20000) {
		round_trip(&t);
	}
	vc_source_free(s);
	vc_trace_fini(&t);
	return 0;
}
