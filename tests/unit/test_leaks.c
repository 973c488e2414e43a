/* SPDX-License-Identifier: Apache-2.0 */
/* test_leaks.c - what every step keeps, against a count by other means over drawn runs. */
#include "tests/support/test.h"

#include "simulator/findings/leaks.h"

enum { SITES = 3, MIB = 1 << 20 };

static uint64_t seed;

static unsigned dice(unsigned n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % n;
}

static struct vc_trace t;

static void put(struct vc_event e)
{
	assert_int_equal(vc_trace_append(&t, &e, 1, NULL), 0);
}

static uint64_t take(uint64_t size, uint32_t site, uint16_t device)
{
	put((struct vc_event){ .kind = VC_EV_ALLOC, .id = ++t.meta->max_id, .size = size,
			       .site = site, .device = device });
	return t.meta->max_id;
}

static void begin(void)
{
	static const char file[] = "train.py";

	t = (struct vc_trace){ .meta = vc_meta_new(NULL) };
	for (uint32_t i = 1; i <= SITES; i++)
		assert_int_equal(vc_meta_frame(t.meta, (struct vc_frame){ .line = i,
			.file = vc_meta_string(t.meta, file, sizeof(file) - 1) }), i);
}

static struct vc_leak found_on(bool ends_in_oom)
{
	const struct vc_device_census device = { .device = 0, .ends_in_oom = ends_in_oom };
	const struct vc_recording rec = { .trace = t, .meta = t.meta, .device = &device };

	return vc_leak_find(&(struct vc_session){ .rec = &rec });
}

static struct vc_leak found(void)
{
	return found_on(false);
}

/* Steps that keep some of what they make; what is left goes at the end, or not. */
static void draw(unsigned steps)
{
	uint64_t live[4000], n = 0;
	bool keeps[SITES + 1];
	unsigned scale = 1 + dice(40), miss = dice(4);

	for (int i = 0; i <= SITES; i++)
		keeps[i] = dice(2);
	for (unsigned s = 0; s <= steps; s++) {
		uint64_t mine[64], m = 0;

		for (unsigned k = 0; k < 12; k++) {
			uint32_t site = k % (SITES + 1);
			uint64_t size = 1024 * (site + 1 + (site ? dice(9) : 0));
			uint64_t id = take(scale * size, site, dice(10) == 0);

			if (keeps[site] && dice(8 * miss + 1) != 1 && k < 8)
				live[n++] = id;
			else
				mine[m++] = id;
		}
		while (m)
			put((struct vc_event){ .kind = VC_EV_FREE, .id = mine[--m] });
		if (s < steps)
			put((struct vc_event){ .kind = VC_EV_MARK, .flags = VC_MARK_STEP });
	}
	for (unsigned go = dice(2); go && n;)
		put((struct vc_event){ .kind = VC_EV_FREE, .id = live[--n] });
}

/* The step in which each block that stays is made; 0: it does not stay, or not of a whole step. */
static void born(uint32_t *step, uint32_t *steps)
{
	size_t last = 0;

	*steps = 0;
	for (size_t i = 0; i < t.n; i++) {
		if (t.ev[i].kind == VC_EV_ALLOC && !t.ev[i].device) {
			last = i;
			step[t.ev[i].id] = *steps;
		}
		*steps += t.ev[i].kind == VC_EV_MARK;
	}
	for (size_t i = 0; i < last; i++)
		if (t.ev[i].kind == VC_EV_FREE)
			step[t.ev[i].id] = 0;
	for (size_t i = 0; i < t.n; i++)
		if (t.ev[i].kind == VC_EV_ALLOC && step[t.ev[i].id] == *steps)
			step[t.ev[i].id] = 0;
}

static struct vc_leak counted(void)
{
	uint32_t *step = calloc(t.meta->max_id + 1, sizeof(*step)), steps;
	struct vc_leak l = { 0 };

	born(step, &steps);
	/* Blocks without a site are of one size. */
	for (uint32_t key = 0; steps >= 4 && key <= SITES; key++) {
		uint64_t bytes = 0, blocks = 0;
		bool in[64] = { false };
		unsigned has = 0;

		for (size_t i = 0; i < t.n; i++) {
			uint32_t s = t.ev[i].kind == VC_EV_ALLOC && t.ev[i].site == key ?
				step[t.ev[i].id] : 0;

			has += s && !in[s];
			in[s] = true;
			bytes += s ? t.ev[i].size : 0;
			blocks += s > 0;
		}
		if (has < steps - 1)
			continue;
		l.steps = steps - 1;
		l.bytes += bytes;
		l.blocks += blocks;
		l.site = bytes > l.site_bytes ? key : l.site;
		l.site_bytes = bytes > l.site_bytes ? bytes : l.site_bytes;
	}
	free(step);
	return l.bytes >= MIB ? l : (struct vc_leak){ 0 };
}

static bool is_same(const struct vc_leak *a, const struct vc_leak *b)
{
	return a->steps == b->steps && a->bytes == b->bytes && a->blocks == b->blocks &&
	       a->site_bytes == b->site_bytes && a->site == b->site;
}

static void what_every_step_keeps_is_found(void **unused)
{
	unsigned leaks = 0;

	(void)unused;
	for (seed = 1; seed < 400; seed++) {
		uint64_t was = seed;

		begin();
		draw(2 + dice(6));
		struct vc_leak got = found(), want = counted();
		if (!is_same(&got, &want))
			fail_msg("%d: %u steps, %d bytes, %d of site %u; not %u, %d, %d, %u",
				 (int)was, (unsigned)got.steps, (int)got.bytes,
				 (int)got.site_bytes, got.site, (unsigned)want.steps,
				 (int)want.bytes, (int)want.site_bytes, want.site);
		leaks += got.steps > 0;
		vc_trace_fini(&t);
		seed = was;
	}
	assert_in_range(leaks, 60, 340);
}

/* Steps without marks that are alike, each with a block that stays; then one that none asks for. */
static struct vc_leak repeated(unsigned steps, uint64_t stays, uint64_t behind, bool oom)
{
	uint64_t id[20];

	begin();
	for (unsigned s = 0; s < steps; s++) {
		for (unsigned k = 0; k < 20; k++)
			id[k] = take(k == 7 ? stays : 4096 * (1 + k * k % 23), 1 + k % SITES, 0);
		for (unsigned k = 20; k-- > 0;)
			if (k != 7)
				put((struct vc_event){ .kind = VC_EV_FREE, .id = id[k] });
	}
	if (behind)
		take(behind, 0, 0);
	struct vc_leak l = found_on(oom);

	vc_trace_fini(&t);
	return l;
}

static void steps_that_repeat_need_no_marks(void **unused)
{
	struct vc_leak l = repeated(12, MIB / 4, 0, false);

	(void)unused;
	assert_in_range(l.steps, 8, 11);
	assert_int_equal(l.bytes, l.steps * MIB / 4);
	assert_int_equal(l.blocks, l.steps);
	assert_int_equal(l.site, 2);
	assert_in_range(repeated(12, MIB / 4, 512, false).steps, 8, 11);
	assert_int_equal(repeated(12, MIB / 32, 0, false).steps, 0);
	assert_int_equal(repeated(3, MIB, 0, false).steps, 0);
	assert_int_equal(repeated(12, MIB / 4, 0, true).steps, 0);
	assert_int_equal(repeated(12, MIB / 4, 3 * MIB, false).steps, 0); /* layers of one pass */
}

/* `steps` steps of eight requests each of an own size, something before them, and one at the end,
 * with small ones behind it. */
static bool pass_of(uint64_t steps, unsigned before, uint64_t last, unsigned behind,
		    uint16_t device)
{
	const struct vc_pattern_steps p = { .steps = steps, .events = 16 };
	uint64_t id = 0;
	bool is;

	begin();
	for (unsigned i = 0; i < before; i++)
		take(64 * MIB, 0, 0);
	for (uint64_t i = 0; i < steps * 8; i++) {
		id = take((1 + i % 8) * MIB, 0, 0);
		put((struct vc_event){ .kind = VC_EV_FREE, .id = id });
		put((struct vc_event){ .kind = VC_EV_DEVICE_SAMPLE, .size = 99 * MIB });
		take(99 * MIB, 0, 1);
	}
	take(last, 0, 0);
	for (unsigned i = 0; i < behind; i++)
		take(MIB, 0, 0);
	is = vc_is_one_pass(&t, device, &p);
	vc_trace_fini(&t);
	return is;
}

static bool one_pass(uint64_t steps, unsigned before, uint64_t last)
{
	return pass_of(steps, before, last, 0, 0);
}

static void one_pass_ends_with_what_no_layer_asks_for(void **unused)
{
	assert_true(one_pass(4, 0, 99 * MIB));
	assert_false(one_pass(3, 0, 99 * MIB)); /* too few */
	for (unsigned i = 1; i <= 8; i++) /* layers ask for that */
		assert_false(one_pass(40, 0, i * MIB));
	assert_true(one_pass(40, 0, 9 * MIB));
	assert_true(one_pass(40, 0, MIB + 1));
	assert_false(one_pass(40, 0, MIB - 1)); /* too small */
	/* seven in ten of what there is must be steps: 112 of 160, of 161 */
	assert_true(one_pass(7, 47, 99 * MIB));
	assert_false(one_pass(7, 48, 99 * MIB));
	assert_true(pass_of(40, 0, 99 * MIB, 15, 0)); /* in the last of them */
	assert_false(pass_of(40, 0, 99 * MIB, 16, 0));
	assert_false(pass_of(40, 0, 99 * MIB, 0, 2)); /* another device */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_every_step_keeps_is_found),
		cmocka_unit_test(steps_that_repeat_need_no_marks),
		cmocka_unit_test(one_pass_ends_with_what_no_layer_asks_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
