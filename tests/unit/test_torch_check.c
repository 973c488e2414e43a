/* SPDX-License-Identifier: Apache-2.0 */
/* test_torch_check.c - the model's own invariants: a sound heap has them, each kind of damage is
 * noticed. */
#include "tests/support/model_world.h"

#include "simulator/models/torch.h"

enum { BLOCKS = 24 };

static const struct damage {
	const char *what;
	void (*make)(struct torch *t, struct torch_block *b);
	const char *said;  /* a part of the sentence */
	uint8_t state;     /* of the blocks that it is made in */
} *now;

static void is_live(struct torch *t, struct torch_block *b) { b->state = TORCH_LIVE; }
static void is_free(struct torch *t, struct torch_block *b) { b->state = TORCH_FREE; }
static void is_empty(struct torch *t, struct torch_block *b) { b->size = 0; }
static void grows(struct torch *t, struct torch_block *b) { b->size += 512; }
static void moves(struct torch *t, struct torch_block *b) { b->addr += 512; }
static void other_set(struct torch *t, struct torch_block *b) { b->set ^= 1; }
static void forgets(struct torch *t, struct torch_block *b) { t->b[b->next].prev = 0; }
static void total(struct torch *t, struct torch_block *b) { t->total += 512; }

static const struct damage damages[] = {
	{ "a free block that is live", is_live, "is in the wrong set", TORCH_FREE },
	{ "a live block that is free", is_free, "", TORCH_LIVE },
	{ "no bytes", is_empty, "", TORCH_LIVE },
	{ "no bytes, free", is_empty, "", TORCH_FREE },
	{ "a larger one", grows, "", TORCH_LIVE },
	{ "one elsewhere", moves, "does not meet its neighbour", TORCH_LIVE },
	{ "another set", other_set, "", TORCH_FREE },
	{ "no way back", forgets, "does not meet its neighbour", TORCH_LIVE },
	{ "another total", total, "torch: blocks sum to", TORCH_LIVE },
};

/* Small and large blocks, every third of them given back. */
static void fill(struct world *w)
{
	static uint64_t handle[1];
	static const struct vc_streams streams = { handle, 1 };
	struct vc_block b[BLOCKS];

	assert_int_equal(open_world(w, "torch", GIB, NULL, NULL), VC_OK);
	w->m.streams = &streams;
	for (uint64_t i = 0; i < BLOCKS; i++)
		b[i] = ask(w, i % 2 ? (i + 1) * 512 : (i + 2) * MIB, 0);
	for (size_t i = 0; i < BLOCKS; i += 3)
		assert_int_equal(w->m.type->free(&w->m, &b[i]), VC_DONE);
}

/* In each block that has it, one at a time; the heap is as it was behind it. */
static void damage_is_noticed(void **unused)
{
	struct world w;

	(void)unused;
	fill(&w);
	struct torch *t = w.m.state;

	for (now = damages; now < damages + sizeof(damages) / sizeof(*damages); now++) {
		size_t made = 0;

		for (uint32_t i = 1; i < t->used; i++) {
			struct torch_block kept = t->b[i], next = t->b[t->b[i].next];
			uint64_t all = t->total;
			struct vc_error err = { 0 };

			if (kept.state != now->state || !kept.next)
				continue;
			now->make(t, &t->b[i]);
			if (torch_check(&w.m, &err) >= 0 || !strstr(err.message, now->said))
				fail_msg("%s, block %u: %s", now->what, i, err.message);
			t->b[i] = kept;
			t->b[kept.next] = next;
			t->total = all;
			made++;
		}
		if (!made)
			fail_msg("%s: there is no such block", now->what);
		assert_int_equal(torch_check(&w.m, NULL), VC_OK);
	}
	close_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(damage_is_noticed) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
