/* SPDX-License-Identifier: Apache-2.0 */
/* test_codec.c - .vct: what goes in comes out, damage costs only the damaged blocks. */
#include "tests/support/test.h"

#include "common/codec.h"

#define MANY 30000

static uint64_t dice(uint64_t *state) /* xorshift64 */
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static struct vc_meta *some_meta(void)
{
	struct vc_meta *m = vc_meta_new(NULL);
	char text[40];

	assert_non_null(m);
	for (int i = 1; i < 50; i++)
		vc_meta_string(m, text,
			       (size_t)snprintf(text, sizeof(text), "text \"%d\" \xc3\xa9", i));
	for (uint32_t i = 1; i < 200; i++)
		vc_meta_frame(m, (struct vc_frame){ .parent = i / 2,
						   .function = i % 50,
						   .file = i % 7,
						   .line = i });
	for (uint64_t i = 1; i < 5; i++)
		vc_meta_stream(m, 0x7f0000000000u + i * 16);
	vc_meta_set(&m->torch, "2.9");
	vc_meta_set(&m->conf, "expandable_segments:True");
	vc_meta_set(&m->producer, "a \"test\"\n");
	vc_meta_param(m, "batch", 8);
	vc_meta_param(m, "rate", 0.1);
	vc_meta_note(m, "a note");
	vc_meta_device(m, 3)->total = 25282281472u;
	vc_meta_set(&vc_meta_device(m, 3)->name, "Some GPU");
	m->how[VC_CAP_REQUESTS] = VC_HOW_RECORDED;
	m->how[VC_CAP_START_HEAP] = VC_HOW_DERIVED;
	m->start_unix_ns = 1700000000123456789u;
	m->rank = 5;
	m->dropped = 17;
	return m;
}

/* A plausible stream: blocks live and die, sizes repeat, every kind occurs. */
static struct vc_event *some_events(size_t n, uint64_t seed)
{
	static const uint8_t kinds[] = {
		VC_EV_SYNC, VC_EV_TRIM, VC_EV_MARK, VC_EV_POOL_CREATE, VC_EV_POOL_BEGIN,
		VC_EV_POOL_END, VC_EV_POOL_RELEASE, VC_EV_CAPTURE_BEGIN, VC_EV_CAPTURE_END,
		VC_EV_OTHERS, VC_EV_FRACTION, VC_EV_CONFIGURE, VC_EV_STREAM_CLASS,
		VC_EV_SEGMENT_ALLOC, VC_EV_SEGMENT_FREE, VC_EV_SEGMENT_MAP, VC_EV_SEGMENT_UNMAP,
		VC_EV_OOM, VC_EV_DEVICE_SAMPLE, VC_EV_KERNEL, VC_EV_COPY, VC_EV_OUTSIDE_ALLOC,
		VC_EV_OUTSIDE_FREE, VC_EV_DRIVER_POOL, VC_EV_OVERHEAD, VC_EV_LAUNCH,
		VC_EV_HEAP_SEGMENT, VC_EV_HEAP_BLOCK, 200 /* a kind of the future */
	};
	struct vc_event *ev = calloc(n, sizeof(*ev));
	uint64_t next = 1, time = 0, live[64] = { 0 };

	assert_non_null(ev);
	for (size_t i = 0; i < n; i++) {
		uint64_t r = dice(&seed);
		struct vc_event *e = &ev[i];

		time += r % 50000;
		e->time_ns = r % 97 ? time : 0;
		e->stream = (uint32_t)(r >> 8) % 5;
		e->site = (uint32_t)(r >> 16) % 200;
		e->device = r >> 24 & 1 ? 3 : 0;
		if (r % 5 < 2) {
			e->kind = VC_EV_ALLOC;
			e->id = r % 1000 ? next++ : (next += 10);
			next = e->id + 1;
			e->size = 512 * (1 + r % 9);
			e->addr = r % 3 ? 0x7f0000000000u + (r >> 40) % 256 * 4096 : 0;
			e->flags = r % 50 ? 0 : VC_EVF_EXACT;
			live[r >> 32 & 63] = i + 1;
		} else if (r % 5 < 4) {
			uint64_t born = live[r >> 32 & 63];

			e->kind = r % 11 ? VC_EV_FREE : r % 2 ? VC_EV_USE : VC_EV_FREE_DONE;
			e->id = born ? ev[born - 1].id : r % 500;
			e->size = born ? ev[born - 1].size : 77;
			e->addr = born ? ev[born - 1].addr : r;
			e->size += r % 301 == 0;
			e->addr += r % 303 == 0;
		} else {
			e->kind = kinds[(r >> 32) % sizeof(kinds)];
			e->id = r % 4 ? 0 : r;
			e->size = r % 3 ? r >> 3 : 0;
			e->addr = r % 7 ? ~r : 0;
			e->label = (uint32_t)(r >> 16) % 49;
			e->flags = (uint8_t)(r >> 50);
			e->stream = r & 1 ? VC_STREAM_ALL : e->stream;
		}
	}
	return ev;
}

static char *encode(const struct vc_meta *m, const struct vc_event *ev, size_t n, uint32_t block,
		    size_t *size)
{
	const struct vc_encoder_options opt = { .block = block };
	struct vc_error err = { 0 };
	struct vc_output *o = vc_output_memory(&err);
	struct vc_encoder *e = vc_encoder_new(o, m, &opt, &err);
	char *all;

	assert_non_null(e);
	for (size_t i = 0; i < n; i += 1000)
		assert_int_equal(vc_encoder_append(e, ev + i, n - i < 1000 ? n - i : 1000, &err),
				 0);
	assert_int_equal(vc_encoder_finish(e, &err), 0);
	vc_encoder_free(e);
	all = vc_output_take(o, size);
	vc_output_close(o);
	return all;
}

/* Events into *ev (cap of them at most); their number, or -1: refused, err says why. */
static long decode(const char *data, size_t size, struct vc_meta *m, struct vc_event *ev,
		   size_t cap, struct vc_error *err)
{
	struct vc_input *in = vc_input_memory(data, size, err);
	struct vc_decoder *d = vc_decoder_new(in, m, err);
	size_t n = 0;
	long got = -1;

	while (d && n < cap &&
	       (got = vc_decoder_next(d, ev + n, cap - n < 777 ? cap - n : 777, err)) > 0)
		n += (size_t)got;
	vc_decoder_free(d);
	vc_input_close(in);
	return got < 0 ? -1 : (long)n;
}

static void same_stack(const struct vc_meta *a, uint32_t i, const struct vc_meta *b, uint32_t k)
{
	for (; i && k; i = a->frame[i].parent, k = b->frame[k].parent) {
		assert_string_equal(a->string[a->frame[i].function],
				    b->string[b->frame[k].function]);
		assert_string_equal(a->string[a->frame[i].file], b->string[b->frame[k].file]);
		assert_int_equal(a->frame[i].line, b->frame[k].line);
	}
	assert_int_equal(i, 0);
	assert_int_equal(k, 0);
}

static void same_event(const struct vc_meta *a, const struct vc_event *x, const struct vc_meta *b,
		       const struct vc_event *y)
{
	struct vc_event z = *y;

	same_stack(a, x->site, b, y->site);
	assert_string_equal(a->string[x->label], b->string[y->label]);
	if (x->stream != VC_STREAM_ALL && y->stream != VC_STREAM_ALL)
		assert_int_equal(a->stream[x->stream], b->stream[y->stream]);
	else
		assert_int_equal(x->stream, y->stream);
	z.site = x->site;
	z.label = x->label;
	z.stream = x->stream;
	assert_memory_equal(x, &z, sizeof(z));
}

static void everything_comes_back(void **unused)
{
	static const uint32_t blocks[] = { 65536, 1000, 1 };
	struct vc_event *ev = some_events(MANY, 1), *back = calloc(MANY + 1, sizeof(*back));
	struct vc_meta *m = some_meta(), *got;
	struct vc_error err = { 0 };
	size_t size;
	char *all;

	(void)unused;
	for (size_t b = 0; b < 3; b++) {
		size_t n = blocks[b] == 1 ? 300 : MANY;

		all = encode(m, ev, n, blocks[b], &size);
		got = vc_meta_new(NULL);
		assert_int_equal(decode(all, size, got, back, MANY + 1, &err), n);
		for (size_t i = 0; i < n; i++)
			same_event(m, &ev[i], got, &back[i]);
		assert_true(got->complete);
		assert_int_equal(got->damaged_blocks, 0);
		vc_meta_free(got);
		free(all);
	}
	vc_meta_free(m);
	free(ev);
	free(back);
}

static void what_the_trace_says_about_itself_comes_back(void **unused)
{
	struct vc_meta *m = some_meta(), *got = vc_meta_new(NULL);
	struct vc_error err = { 0 };
	struct vc_event none[1];
	size_t size;
	char *all = encode(m, NULL, 0, 0, &size);

	(void)unused;
	assert_int_equal(decode(all, size, got, none, 1, &err), 0);
	assert_string_equal(got->torch, "2.9");
	assert_string_equal(got->conf, "expandable_segments:True");
	assert_string_equal(got->producer, "a \"test\"\n");
	assert_null(got->command);
	assert_int_equal(got->params, 2);
	assert_true(got->param[1].value == 0.1);
	assert_int_equal(got->devices, 1);
	assert_int_equal(got->device[0].index, 3);
	assert_int_equal(got->device[0].total, 25282281472u);
	assert_string_equal(got->device[0].name, "Some GPU");
	assert_int_equal(got->start_unix_ns, 1700000000123456789u);
	assert_int_equal(got->rank, 5);
	assert_int_equal(got->dropped, 17);
	assert_int_equal(got->how[VC_CAP_REQUESTS], VC_HOW_RECORDED);
	assert_int_equal(got->how[VC_CAP_START_HEAP], VC_HOW_DERIVED);
	assert_int_equal(got->how[VC_CAP_KERNELS], VC_HOW_ABSENT);
	assert_string_equal(got->note[0], "a note");
	vc_meta_free(m);
	vc_meta_free(got);
	free(all);
}

static void the_same_trace_gives_the_same_bytes(void **unused)
{
	struct vc_event *ev = some_events(5000, 3);
	struct vc_meta *m = some_meta();
	size_t size[2];
	char *all[2];

	(void)unused;
	for (int i = 0; i < 2; i++)
		all[i] = encode(m, ev, 5000, 700, &size[i]);
	assert_int_equal(size[0], size[1]);
	assert_memory_equal(all[0], all[1], size[0]);
	free(all[0]);
	free(all[1]);
	vc_meta_free(m);
	free(ev);
}

/* Is every event of `back` one of `ev`, in order? Returns how many are missing. */
static size_t missing(const struct vc_meta *m, const struct vc_event *ev, size_t n,
		      const struct vc_meta *got, const struct vc_event *back, size_t have)
{
	size_t at = 0;

	for (size_t i = 0; i < have; i++, at++) {
		while (at < n &&
		       (ev[at].time_ns != back[i].time_ns || ev[at].kind != back[i].kind ||
			ev[at].id != back[i].id || ev[at].addr != back[i].addr))
			at++;
		assert_true(at < n);
		same_event(m, &ev[at], got, &back[i]);
	}
	return n - have;
}

static void a_cut_file_keeps_its_whole_blocks(void **unused)
{
	enum { N = 4000, BLOCK = 500 };
	struct vc_event *ev = some_events(N, 5), *back = calloc(N, sizeof(*back));
	struct vc_meta *m = some_meta(), *got;
	struct vc_error err = { 0 };
	size_t size;
	char *all = encode(m, ev, N, BLOCK, &size);
	long n, most = 0;

	(void)unused;
	for (size_t cut = 0; cut < size; cut += 211) {
		got = vc_meta_new(NULL);
		n = decode(all, cut, got, back, N, &err);
		if (n >= 0) {
			assert_int_equal(n % BLOCK, 0);
			assert_true(n >= most);
			assert_int_equal(missing(m, ev, N, got, back, (size_t)n), N - n);
			most = n;
		} else {
			assert_true(cut < 700); /* before the end of the first header only */
		}
		assert_false(got->complete);
		vc_meta_free(got);
	}
	assert_int_equal(most, N);
	vc_meta_free(m);
	free(all);
	free(ev);
	free(back);
}

static void eight_destroyed_bytes_cost_one_block(void **unused)
{
	enum { N = 4000, BLOCK = 500 };
	struct vc_event *ev = some_events(N, 7), *back = calloc(N, sizeof(*back));
	struct vc_meta *m = some_meta(), *got;
	struct vc_error err = { 0 };
	size_t size;
	char *all = encode(m, ev, N, BLOCK, &size), *copy = malloc(size);
	long n;

	(void)unused;
	for (size_t at = 0; at + 8 < size; at += 97) {
		memcpy(copy, all, size);
		for (int i = 0; i < 8; i++)
			copy[at + (size_t)i] ^= 0x5a;
		got = vc_meta_new(NULL);
		n = decode(copy, size, got, back, N, &err);
		assert_true(n >= N - 2 * BLOCK); /* two when the bytes lie across a border */
		assert_true(missing(m, ev, N, got, back, (size_t)n) % BLOCK == 0);
		if (n < N)
			assert_true(got->damaged_blocks > 0 && got->gaps > 0 && !got->complete);
		vc_meta_free(got);
	}
	vc_meta_free(m);
	free(copy);
	free(all);
	free(ev);
	free(back);
}

static void any_flipped_bit_is_survived(void **unused)
{
	enum { N = 300 };
	struct vc_event *ev = some_events(N, 9), *back = calloc(N, sizeof(*back));
	struct vc_meta *m = some_meta(), *got;
	struct vc_error err = { 0 };
	size_t size;
	char *all = encode(m, ev, N, 100, &size);
	long n;

	(void)unused;
	for (size_t bit = 0; bit < size * 8; bit += 3) {
		all[bit / 8] ^= (char)(1 << bit % 8);
		got = vc_meta_new(NULL);
		n = decode(all, size, got, back, N, &err);
		assert_true(n >= N - 200);
		vc_meta_free(got);
		all[bit / 8] ^= (char)(1 << bit % 8);
	}
	vc_meta_free(m);
	free(all);
	free(ev);
	free(back);
}

static void the_rest_of_a_file_without_its_head_is_read(void **unused)
{
	enum { N = 4000, BLOCK = 500 };
	struct vc_event *ev = some_events(N, 11), *back = calloc(N, sizeof(*back));
	struct vc_meta *m = some_meta(), *got = vc_meta_new(NULL);
	struct vc_error err = { 0 };
	size_t size;
	char *all = encode(m, ev, N, BLOCK, &size);
	long n = decode(all + size / 2, size - size / 2, got, back, N, &err);

	(void)unused;
	assert_true(n > 0 && n % BLOCK == 0);
	missing(m, ev, N, got, back, (size_t)n);
	assert_string_equal(got->torch, "2.9"); /* from the header at the end */
	assert_true(got->damaged_blocks > 0);
	vc_meta_free(got);
	vc_meta_free(m);
	free(all);
	free(ev);
	free(back);
}

static void what_is_no_trace_is_refused(void **unused)
{
	struct vc_error err = { 0 };
	struct vc_meta *m = vc_meta_new(NULL);
	struct vc_event ev[1];
	char zeros[3000] = { 0 };

	(void)unused;
	assert_int_equal(decode(zeros, sizeof(zeros), m, ev, 1, &err), -1);
	assert_non_null(strstr(err.message, "no block of the trace is readable"));
	assert_int_equal(decode("", 0, m, ev, 1, &err), -1);
	vc_meta_free(m);
}

static void two_traces_in_one_file_are_refused(void **unused)
{
	struct vc_event *ev = some_events(100, 13), back[300];
	struct vc_meta *m = some_meta(), *got = vc_meta_new(NULL);
	struct vc_error err = { 0 };
	size_t size;
	char *all = encode(m, ev, 100, 50, &size), *twice = malloc(2 * size);

	(void)unused;
	memcpy(twice, all, size);
	memcpy(twice + size, all, size);
	assert_int_equal(decode(twice, 2 * size, got, back, 300, &err), -1);
	assert_non_null(strstr(err.message, "second trace"));
	vc_meta_free(got);
	vc_meta_free(m);
	free(twice);
	free(all);
	free(ev);
}

static void addresses_and_stacks_can_be_left_out(void **unused)
{
	const struct vc_encoder_options opt = { .no_addresses = true, .no_stacks = true };
	struct vc_event *ev = some_events(2000, 15), *back = calloc(2000, sizeof(*back));
	struct vc_meta *m = some_meta(), *got = vc_meta_new(NULL);
	struct vc_error err = { 0 };
	struct vc_output *o = vc_output_memory(&err);
	struct vc_encoder *e = vc_encoder_new(o, m, &opt, &err);
	size_t size;
	char *all;

	(void)unused;
	assert_int_equal(vc_encoder_append(e, ev, 2000, &err), 0);
	assert_int_equal(vc_encoder_finish(e, &err), 0);
	all = vc_output_take(o, &size);
	assert_int_equal(decode(all, size, got, back, 2000, &err), 2000);
	for (size_t i = 0; i < 2000; i++) {
		assert_int_equal(back[i].site, 0);
		assert_int_equal(back[i].addr, ev[i].kind < VC_EV_SEGMENT_ALLOC ? 0 : ev[i].addr);
	}
	vc_encoder_free(e);
	vc_output_close(o);
	vc_meta_free(got);
	vc_meta_free(m);
	free(all);
	free(ev);
	free(back);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_comes_back),
		cmocka_unit_test(what_the_trace_says_about_itself_comes_back),
		cmocka_unit_test(the_same_trace_gives_the_same_bytes),
		cmocka_unit_test(a_cut_file_keeps_its_whole_blocks),
		cmocka_unit_test(eight_destroyed_bytes_cost_one_block),
		cmocka_unit_test(any_flipped_bit_is_survived),
		cmocka_unit_test(the_rest_of_a_file_without_its_head_is_read),
		cmocka_unit_test(what_is_no_trace_is_refused),
		cmocka_unit_test(two_traces_in_one_file_are_refused),
		cmocka_unit_test(addresses_and_stacks_can_be_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
