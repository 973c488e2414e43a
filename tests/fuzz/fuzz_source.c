/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_source.c - any bytes given to the sources are read or refused: no crash, no leak, no hang.
 *
 * libFuzzer's entry (make fuzz; FUZZ_READER=NAME keeps it at one source); test_fuzz_corpus.c
 * includes it to replay and mutate the corpus. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <zstd.h>

#include "common/codec.h"
#include "common/codec_parts.h"
#include "common/journal.h"
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

/* Which source a run is about: bytes that another one would read are of no use to it. */
static bool wanted(struct vc_input *in, const char *form)
{
	const char *only = getenv("FUZZ_READER");

	for (size_t i = 0; only && !form && vc_sources[i]; i++)
		if (!strcmp(vc_sources[i]->name, only))
			return vc_sources[i]->probe(in) > 0;
	return !only || (form && !strcmp(form, only));
}

static void read_all(struct vc_source *s, struct vc_error *err);

/* A journal is a mapped file of megabytes, nearly all of them zero. "JNL:" stands before its short
 * form: one byte each for the number of rings and the capabilities, two each for the lengths of
 * text and facts, those, and records of 64 bytes dealt out to the rings. In front of that "JNH:"
 * has what is wrong with the header: how often, and each time two bytes that say where and eight
 * that stand there. */
enum { DAMAGE = 10 };

static void spoil(struct vc_journal *head, const uint8_t *what, size_t times)
{
	for (; times; times--, what += DAMAGE) {
		size_t at = (what[0] | (size_t)what[1] << 8) * 8 % (sizeof(*head) - 7);

		memcpy((uint8_t *)head + at, what + 2, 8);
	}
}

static void as_journal(const uint8_t *data, size_t size, const uint8_t *wrong, size_t times)
{
	struct vc_journal head = { .magic = VC_JOURNAL_MAGIC, .version = VC_JOURNAL_VERSION,
		.header_bytes = sizeof(head), .pid = 1 };
	const off_t text_at = VC_JOURNAL_HEAD, rings_at = text_at + vc_text_size(0);
	const size_t ring_bytes = VC_RING_FIRST * sizeof(struct vc_record);
	size_t rings, text, facts, at = 6;
	struct vc_error err = { 0 };
	char path[64];
	int fd = memfd_create("journal", 0);

	rings = size > at ? data[0] & 3 : 0;
	text = size > at ? (data[2] | (size_t)data[3] << 8) % (size - at) : 0;
	facts = size > at + text ? (data[4] | (size_t)data[5] << 8) % (size - at - text) : 0;
	facts = facts < VC_JOURNAL_FACTS ? facts : VC_JOURNAL_FACTS;
	text = text < vc_text_size(0) ? text : vc_text_size(0);
	head.text_at[0] = (uint64_t)text_at;
	head.chunks = 1;
	for (size_t i = 0; i < rings; i++) {
		head.ring[i].at = (uint64_t)rings_at + i * ring_bytes;
		head.ring[i].records = VC_RING_FIRST;
	}
	head.rings = (uint32_t)rings;
	head.text_used = (uint32_t)text + 1;
	head.facts_used = (uint32_t)facts;
	for (size_t i = 0; size > 1 && i < VC_CAPS; i++)
		head.how[i] = data[1] >> (i & 7) & 1;
	if (facts)
		memcpy(head.facts, data + at + text, facts);
	if (fd < 0 || ftruncate(fd, rings_at + (off_t)(rings * ring_bytes)) ||
	    (text && pwrite(fd, data + at, text, text_at) < 0))
		abort();
	at += text + facts;
	for (size_t i = 0; rings && i < rings * VC_RING_FIRST && at + 64 <= size; i++, at += 64) {
		uint64_t n = head.ring[i % rings].head++;

		if (pwrite(fd, data + at, 64,
			   rings_at + (off_t)(i % rings * ring_bytes + n * 64)) != 64)
			abort();
	}
	spoil(&head, wrong, times);
	if (pwrite(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head))
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	read_all(vc_source_open(path, &err), &err);
	close(fd);
}

static void as_damaged_journal(const uint8_t *data, size_t size)
{
	size_t times = size ? data[0] & 7 : 0;

	if (1 + times * DAMAGE < size)
		as_journal(data + 1 + times * DAMAGE, size - 1 - times * DAMAGE, data + 1, times);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *form = size < 4 ? NULL : !memcmp(data, "BLK:", 4) ? "vct" :
			   !memcmp(data, "JNL:", 4) || !memcmp(data, "JNH:", 4) ? "journal" :
									NULL;
	struct vc_error err = { 0 };
	struct vc_input *in = vc_input_memory(data, size, &err);

	if (!in || !wanted(in, form) || form) {
		vc_input_close(in);
		if (in && form && wanted(NULL, form))
			form[0] == 'v'   ? as_block(data + 4, size - 4) :
			data[2] == 'H' ? as_damaged_journal(data + 4, size - 4) :
					 as_journal(data + 4, size - 4, NULL, 0);
		return 0;
	}
	read_all(vc_source_input(in, &err), &err);
	return 0;
}

/* Of a test that holds on to what was read: NULL where it was refused with that message. */
static void (*fuzz_saw)(const struct vc_trace *t, const char *message);

static void read_all(struct vc_source *s, struct vc_error *err)
{
	struct vc_trace t = { 0 };

	if (!s || vc_trace_read(&t, s, err)) {
		if (!err->message[0])
			abort(); /* refused without a sentence */
		if (fuzz_saw)
			fuzz_saw(NULL, err->message);
	} else if (t.n < 20000) {
		round_trip(&t);
		if (fuzz_saw)
			fuzz_saw(&t, "");
	}
	vc_source_free(s);
	vc_trace_fini(&t);
}
