/* SPDX-License-Identifier: Apache-2.0 */
/* test_exchange.c - the writers below the exchange formats, byte by byte, and what only recordings
 * with kernels and marks contain. */
#include "tests/support/test.h"

#include "common/event.h"
#include "visualize/pickler.h"
#include "visualize/protobuf.h"
#include "visualize/sink.h"

/* The worked examples of https://protobuf.dev/programming-guides/encoding/ */
static void protocol_buffers_are_encoded_as_their_guide_says(void **state)
{
	static const uint8_t want[] = { 0x08, 0x96, 0x01, 0x12, 0x07, 't',  'e',
				       's',  't',  'i',  'n',  'g',  0x1a, 0x03,
				       0x08, 0x96, 0x01, 0xe2, 0x03, 0x01, 0x05 };
	struct vc_proto p = { 0 }, sub = { 0 };

	(void)state;
	vc_proto_uint(&p, 1, 150);
	vc_proto_text(&p, 2, "testing");
	vc_proto_uint(&sub, 1, 150);
	vc_proto_message(&p, 3, &sub);
	assert_int_equal(sub.n, 0);
	vc_proto_bytes(&p, 60, "\x05", 1); /* a field number of two bytes */
	assert_int_equal(p.n, sizeof(want));
	assert_memory_equal(p.at, want, sizeof(want));
	p.n = 0;
	vc_proto_value(&p, UINT64_MAX);
	assert_int_equal(p.n, 10);
	assert_int_equal(p.at[9], 1);
	vc_proto_fini(&p);
	vc_proto_fini(&sub);
}

static void pickle_of(void (*fill)(struct vc_pickler *p), const void *want, size_t n)
{
	struct vc_output *o = vc_output_memory(NULL);
	struct vc_pickler p;
	size_t got;
	char *at;

	vc_pickle_open(&p, o);
	fill(&p);
	assert_true(vc_pickle_close(&p));
	at = vc_output_take(o, &got);
	vc_output_close(o);
	assert_int_equal(got, n + 3); /* PROTO 4 ... STOP */
	assert_memory_equal(at, "\x80\x04", 2);
	assert_memory_equal(at + 2, want, n);
	assert_int_equal(at[got - 1], '.');
	free(at);
}

static void numbers(struct vc_pickler *p)
{
	vc_pickle_uint(p, 255);
	vc_pickle_uint(p, 256);
	vc_pickle_uint(p, 65536);
	vc_pickle_uint(p, 0x7fffffff);
	vc_pickle_uint(p, 0x80000000);
	vc_pickle_uint(p, 0x7f0123456789);
	vc_pickle_int(p, -1);
	vc_pickle_real(p, 0.5);
}

static void words(struct vc_pickler *p)
{
	vc_pickle_word(p, "a");
	vc_pickle_word(p, "b");
	vc_pickle_word(p, "a");
	vc_pickle_two(p, 0, 1);
}

/* Bytes checked against pickletools of CPython 3.11. */
static void pickles_hold_the_shortest_opcode_for_each_number(void **state)
{
	static const char want[] = "K\xff" "M\x00\x01" "J\x00\x00\x01\x00" "J\xff\xff\xff\x7f"
		"\x8a\x05\x00\x00\x00\x80\x00" "\x8a\x06\x89\x67\x45\x23\x01\x7f"
		"\x8a\x08\xff\xff\xff\xff\xff\xff\xff\xff" "G\x3f\xe0\x00\x00\x00\x00\x00\x00";
	static const char texts[] = "\x8c\x01" "a\x94" "\x8c\x01" "b\x94" "h\x00" "K\x00K\x01\x86";

	(void)state;
	pickle_of(numbers, want, sizeof(want) - 1);
	pickle_of(words, texts, sizeof(texts) - 1);
}

/* ---- kernels and marks ---- */

struct made {
	struct vc_result r;
	struct vc_meta *meta;
	struct vc_kernel_at k[3];
	struct vc_mark_at m[5];
	struct vc_bucket b[2];
};

static void make(struct made *d)
{
	memset(d, 0, sizeof(*d));
	d->meta = vc_meta_new(NULL);
	uint32_t gemm = vc_meta_string(d->meta, "gemm", 4),
		 step = vc_meta_string(d->meta, "step", 4);
	uint32_t stream = vc_meta_stream(d->meta, 7);

	d->k[0] = (struct vc_kernel_at){ 100, 50, gemm, 0, VC_EV_KERNEL };
	d->k[1] = (struct vc_kernel_at){ 150, 25, gemm, 0, VC_EV_KERNEL };
	d->k[2] = (struct vc_kernel_at){ 120, 60, 0, stream, VC_EV_COPY };
	d->m[0] = (struct vc_mark_at){ 0, 90, step, VC_MARK_END, 0 }; /* of before the recording */
	d->m[1] = (struct vc_mark_at){ 1, 95, step, VC_MARK_STEP, 0 };
	d->m[2] = (struct vc_mark_at){ 2, 100, step, VC_MARK_BEGIN, 0 };
	d->m[3] = (struct vc_mark_at){ 3, 200, step, VC_MARK_END, 0 };
	d->m[4] = (struct vc_mark_at){ 4, 210, step, VC_MARK_INSTANT, 0 };
	d->b[0] = (struct vc_bucket){ .last_event = 1,
				     .first_ns = 90,
				     .last_ns = 100,
				     .allocated_max = 5,
				     .reserved_max = 9,
				     .peak_event = 1 };
	d->b[1] = (struct vc_bucket){ .first_event = 2,
				     .last_event = 4,
				     .first_ns = 100,
				     .last_ns = 210,
				     .allocated_max = 3,
				     .reserved_max = 9,
				     .reserved_min = 9,
				     .peak_event = 2 };
	d->r = (struct vc_result){
		.meta = d->meta,
		.stats = { .has_times = true },
		.curve = { d->b, 2 },
		.steps = { .mark = d->m, .marks = 5, .kernel = d->k, .kernels = 3 } };
}

static char *write_as(const char *sink, const char *params, const struct vc_result *r, size_t *n)
{
	const struct vc_sink_type *k = vc_sink_by_name(sink);
	struct vc_output *o = vc_output_memory(NULL);
	void *config = calloc(1, k->config_size + 1);
	char *at;

	assert_int_equal(vc_params_parse(k->params, config, params, NULL), 0);
	assert_int_equal(k->write(r, 1, config, o, NULL), 0);
	at = vc_output_take(o, n);
	vc_output_close(o);
	free(config);
	return at;
}

static size_t occurrences(const char *text, const char *word)
{
	size_t n = 0;

	for (const char *p = strstr(text, word); p; p = strstr(p + 1, word))
		n++;
	return n;
}

static void chrome_traces_have_every_kernel_up_to_the_limit(void **state)
{
	struct made d;
	size_t n;
	char *all, *few;

	(void)state;
	make(&d);
	all = write_as("chrome", NULL, &d.r, &n);
	assert_int_equal(occurrences(all, "\"ph\":\"X\""), 3);
	assert_non_null(strstr(all, "\"name\":\"gemm\",\"ts\":0.150,\"dur\":0.025"));
	assert_int_equal(occurrences(all, "\"ph\":\"B\""), 1);
	assert_int_equal(occurrences(all, "\"ph\":\"E\""), 1); /* not the one without a beginning */
	assert_int_equal(occurrences(all, "\"ph\":\"i\""), 2);
	assert_non_null(strstr(all, "\"kernels_left_out\":0"));
	few = write_as("chrome", "limit=2", &d.r, &n);
	assert_int_equal(occurrences(few, "\"ph\":\"X\""), 2);
	assert_non_null(strstr(few, "\"kernels_left_out\":1"));
	free(all);
	free(few);
	vc_meta_free(d.meta);
}

static uint64_t varint(const uint8_t **p)
{
	uint64_t v = 0;

	for (unsigned shift = 0; ; shift += 7) {
		v |= (uint64_t)(**p & 0x7f) << shift;
		if (*(*p)++ < 0x80)
			return v;
	}
}

/* Counts the track events of each type in a message; goes into field 1 of the trace and 11 of
 * packets. */
static void count_types(const uint8_t *p, const uint8_t *end, int depth, unsigned type[5],
			unsigned *iids)
{
	while (p < end) {
		uint64_t key = varint(&p), v = varint(&p);

		if ((key & 7) == 0) {
			if (depth == 2 && key >> 3 == 9)
				type[v]++;
			if (depth == 2 && key >> 3 == 10)
				(*iids)++;
			continue;
		}
		assert_int_equal(key & 7, 2);
		assert_true(v <= (uint64_t)(end - p));
		if ((depth == 0 && key >> 3 == 1) || (depth == 1 && key >> 3 == 11))
			count_types(p, p + v, depth + 1, type, iids);
		p += v;
	}
}

static void perfetto_traces_have_slices_for_kernels_and_phases(void **state)
{
	unsigned type[5] = { 0 }, iids = 0;
	struct made d;
	size_t n;
	char *at;

	(void)state;
	make(&d);
	at = write_as("perfetto", NULL, &d.r, &n);
	count_types((const uint8_t *)at, (const uint8_t *)at + n, 0, type, &iids);
	assert_int_equal(type[1], 4); /* begins: three kernels, one phase */
	assert_int_equal(type[2], 4);
	assert_int_equal(type[3], 2); /* instants: the step and the mark */
	assert_int_equal(iids, 3);    /* kernels name their name by number */
	free(at);
	vc_meta_free(d.meta);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(protocol_buffers_are_encoded_as_their_guide_says),
		cmocka_unit_test(pickles_hold_the_shortest_opcode_for_each_number),
		cmocka_unit_test(chrome_traces_have_every_kernel_up_to_the_limit),
		cmocka_unit_test(perfetto_traces_have_slices_for_kernels_and_phases),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
