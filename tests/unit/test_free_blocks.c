/* SPDX-License-Identifier: Apache-2.0 */
/* test_free_blocks.c - the torch model's index of free blocks, where a class of sizes has many:
 * each request gets the block that a search through all of them finds. */
#include "tests/support/test.h"

#include "simulator/replay/model.h"

enum { BLOCKS = 3000, SIZES = 4, ROUNDS = 20000, CHECKED = 97 };

struct piece { struct vc_block block; uint64_t size; bool live, wall; };
struct world { struct vc_model m; uint64_t id, random; struct piece piece[BLOCKS]; };

static uint64_t dice(struct world *w, uint64_t sides)
{
	w->random = w->random * 6364136223846793005u + 1442695040888963407u;
	return (w->random >> 33) % sides;
}

static struct vc_block get(struct world *w, uint64_t size)
{
	struct vc_request rq = { .id = ++w->id, .size = size };
	struct vc_block b = { 0 };

	assert_int_equal(w->m.type->alloc(&w->m, &rq, &b, NULL), VC_DONE);
	return b;
}

static void put(struct world *w, struct piece *p)
{
	assert_int_equal(w->m.type->free(&w->m, &p->block), VC_DONE);
	p->live = false;
}

/* Every other block is a wall, so that free ones do not grow together. */
static void open_world(struct world *w, const char *conf, uint64_t least, uint64_t step)
{
	static const uint64_t stream[1] = { 0 };
	static const struct vc_streams streams = { stream, 1 };
	static const struct vc_device_config d = { .total = 1ull << 44 };
	const struct vc_model_type *t = vc_model_by_name("torch");
	void *config = calloc(1, t->config_size);

	w->random = 4711;
	w->m = (struct vc_model){ .type = t, .config = config, .streams = &streams,
				  .version = "2.9", .conf = conf,
				  .state = calloc(1, t->state_size),
				  .device = vc_device_new(&d, NULL) };
	assert_non_null(w->m.state);
	assert_int_equal(vc_params_parse(t->params, config, NULL, NULL), 0);
	assert_int_equal(t->init(&w->m, NULL), 0);
	for (size_t i = 0; i < BLOCKS; i++) {
		struct piece *p = &w->piece[i];

		p->size = least + step * dice(w, SIZES);
		p->block = get(w, p->size);
		p->live = true;
		p->wall = i % 2;
	}
	for (size_t i = 0; i < BLOCKS; i++)
		if (!w->piece[i].wall)
			put(w, &w->piece[i]);
}

static void close_world(struct world *w)
{
	assert_int_equal(w->m.type->check(&w->m, NULL), 0);
	w->m.type->fini(&w->m);
	vc_device_free_all(w->m.device);
	free(w->m.state);
	free((void *)(uintptr_t)w->m.config);
	free(w);
}

/* The free block of that size at the lowest address, NULL: none. */
static struct piece *lowest(struct world *w, uint64_t size)
{
	struct piece *best = NULL;

	for (size_t i = 0; i < BLOCKS; i++) {
		struct piece *p = &w->piece[i];

		if (!p->live && p->size == size && (!best || p->block.addr < best->block.addr))
			best = p;
	}
	return best;
}

/* Requests and frees at random, sometimes many of one kind in a row. */
static void play(const char *conf, uint64_t least, uint64_t step)
{
	struct world *w = calloc(1, sizeof(*w));
	bool asks = true;

	assert_non_null(w);
	open_world(w, conf, least, step);
	for (size_t k = 0; k < ROUNDS; k++) {
		struct piece *p = &w->piece[2 * dice(w, BLOCKS / 2)];

		if (!dice(w, 300))
			asks = !asks;
		if (p->live) {
			if (!asks || !dice(w, 3))
				put(w, p);
		} else if (asks || !dice(w, 3)) {
			p = lowest(w, p->size);
			struct vc_block b = get(w, p->size);

			assert_int_equal(b.addr, p->block.addr);
			p->block = b;
			p->live = true;
		}
		if (k % CHECKED == 0)
			assert_int_equal(w->m.type->check(&w->m, NULL), 0);
	}
	close_world(w);
}

static void the_lowest_of_many_equal_blocks_is_taken(void **unused)
{
	(void)unused;
	play("", 4096, 0); /* which divide a segment */
}

static void the_lowest_of_many_large_blocks_is_taken(void **unused)
{
	(void)unused;
	play("expandable_segments:True", 20 << 20, 512); /* all sizes in one class */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_lowest_of_many_equal_blocks_is_taken),
		cmocka_unit_test(the_lowest_of_many_large_blocks_is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
