/* SPDX-License-Identifier: Apache-2.0 */
/* journal.c - the journal of a recording that is going on or was cut off, with the part of the
 * trace that was written before: what `vramcast recover` would make of it, without touching it.
 */

#include "common/codec.h"
#include "common/journal.h"
#include "simulator/replay/source.h"

enum { BATCH = 256 };

struct state {
	struct vc_journal_reader *reader;
	struct vc_journal_decoder *decoder;
	struct vc_decoder *part; /* the trace so far; NULL when read or not there */
	struct vc_input *input;
	uint8_t *bytes;
	uint64_t missing;
};

static int probe(struct vc_input *in)
{
	size_t got = 0;
	uint64_t magic;
	const uint8_t *p = vc_input_peek(in, sizeof(magic), &got, NULL);

	if (!p || got < sizeof(magic))
		return 0;
	memcpy(&magic, p, sizeof(magic));
	return magic == VC_JOURNAL_MAGIC ? 64 : 0;
}

/* The first `valid` bytes only: what stands behind them is in the journal too. */
static int open_part(struct vc_source *s, uint64_t valid, struct vc_error *err)
{
	struct state *st = s->state;
	char path[4096];
	FILE *f;

	if (!valid || !vc_journal_fact(st->reader, "part", path, sizeof(path)))
		return 0;
	f = fopen(path, "rb");
	st->bytes = f ? malloc((size_t)valid) : NULL;
	if (!st->bytes || fread(st->bytes, 1, (size_t)valid, f) != valid) {
		if (f)
			fclose(f);
		vc_meta_note(s->meta, "the beginning is missing: %s cannot be read", path);
		s->meta->gaps++;
		return 0;
	}
	fclose(f);
	st->input = vc_input_memory(st->bytes, (size_t)valid, err);
	st->part = st->input ? vc_decoder_new(st->input, s->meta, err) : NULL;
	return st->part ? 0 : VC_EFORMAT;
}

static int open_journal(struct vc_source *s, struct vc_error *err)
{
	struct state *st = s->state;

	st->reader = vc_journal_open(vc_input_name(s->input), false, err);
	if (!st->reader)
		return err ? (int)err->status : VC_EIO;
	st->decoder = vc_journal_decoder_new(s->meta, err);
	if (!st->decoder)
		return VC_ENOMEM;
	vc_journal_describe(st->reader, s->meta);
	return open_part(s, vc_journal_stored(st->reader), err);
}

static long next_of_part(struct vc_source *s, struct vc_event *ev, size_t cap, struct vc_error *err)
{
	struct state *st = s->state;
	long n = vc_decoder_next(st->part, ev, cap, err);

	for (long i = 0; i < n; i++)
		VC_TRY(vc_journal_resume(st->decoder, &ev[i], err));
	if (n)
		return n;
	vc_decoder_free(st->part);
	st->part = NULL;
	vc_journal_describe(st->reader, s->meta); /* what the trace says of itself is older */
	return 0;
}

static long next(struct vc_source *s, struct vc_event *ev, size_t cap, struct vc_error *err)
{
	struct state *st = s->state;
	struct vc_record rec[BATCH];
	long k = 0;
	size_t n;

	if (st->part) {
		k = next_of_part(s, ev, cap, err);
		if (k)
			return k;
	}
	do {
		n = vc_journal_next(st->reader, rec, cap < BATCH ? cap : BATCH, VC_JOURNAL_DEAD,
				    &st->missing);
		for (size_t i = 0; i < n; i++) {
			int r = vc_journal_decode(st->decoder, st->reader, &rec[i], &ev[k], err);

			VC_TRY(r);
			k += r;
		}
	} while (n && !k);
	s->meta->complete = false;
	return k;
}

static void close_journal(struct vc_source *s)
{
	struct state *st = s->state;

	vc_decoder_free(st->part);
	vc_input_close(st->input);
	free(st->bytes);
	vc_journal_decoder_free(st->decoder);
	vc_journal_close(st->reader);
}

const struct vc_source_type vc_source_journal = {
	.name = "journal", .summary = "journals of recordings that are going on or were cut off",
	.state_size = sizeof(struct state), .probe = probe, .open = open_journal, .next = next,
	.close = close_journal,
};
