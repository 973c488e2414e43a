/* SPDX-License-Identifier: Apache-2.0 */
/* test_together.c - processes that share a card: which do, and what they hold at once. */
#include "common/program.h"
#include "simulator/findings/findings.h"
#include "tests/support/test.h"

/* A run whose buckets are one event each. */
struct fake { struct vc_meta *meta; struct vc_bucket at[8]; struct vc_result r; };

static void make(struct fake *f, int64_t pid, uint64_t start, const char *seen, uint16_t device)
{
	struct vc_error err;

	*f = (struct fake){ .meta = vc_meta_new(&err) };
	vc_meta_set(&f->meta->host, "here");
	f->meta->pid = pid;
	f->meta->rank = -1;
	f->meta->start_unix_ns = start;
	f->meta->program = vc_program_new(&err);
	if (seen)
		vc_texts_add(&f->meta->program->environment, "CUDA_VISIBLE_DEVICES", seen, &err);
	f->r = (struct vc_result){ .meta = f->meta, .curve = { .at = f->at } };
	f->r.info.device = device;
	f->r.info.capacity = 1000;
	f->r.stats.has_times = true;
}

static void hold(struct fake *f, uint64_t ns, uint64_t reserved)
{
	f->at[f->r.curve.n++] = (struct vc_bucket){ .first_ns = ns, .last_ns = ns,
		.allocated_max = reserved / 2, .reserved_max = reserved };
}

static void free_all(struct fake *f, size_t n)
{
	while (n)
		vc_meta_free(f[--n].meta);
}

static void sums_follow_the_clock(void **state)
{
	struct fake f[2];
	struct vc_named of[2] = { { "a", &f[0].r }, { "b", &f[1].r } };
	struct vc_together t;
	char text[VC_SAY];

	(void)state;
	make(&f[0], 1, 5000, NULL, 0);
	make(&f[1], 2, 5100, NULL, 0);
	hold(&f[0], 10, 300), hold(&f[0], 90, 700), hold(&f[0], 130, 200), hold(&f[0], 300, 200);
	hold(&f[1], 20, 400), hold(&f[1], 50, 600), hold(&f[1], 50, 100), hold(&f[1], 60, 50);
	f[1].r.info.context = 7;
	/* at 5130 the first falls to 200; at 5150 the second has 600 for an instant: 807 */
	t = vc_together_walk(of, 2, NULL, NULL);
	assert_int_equal(t.first_ns, 5010);
	assert_int_equal(t.most, 700 + 400 + 7);
	assert_int_equal(t.most_ns, 5120 - 5010);
	assert_int_equal(t.room, 1000);
	vc_together_text(of, 2, text, sizeof(text));
	assert_non_null(strstr(text, "more than there is"));
	f[0].at[1].reserved_max = 100; /* now the instant is the fullest */
	t = vc_together_walk(of, 2, NULL, NULL);
	assert_int_equal(t.most, 200 + 600 + 7);
	assert_int_equal(t.most_ns, 5150 - 5010);
	free_all(f, 2);
}

static void the_card_is_the_machines(void **state)
{
	struct fake f[4];
	struct vc_named of[4], by[VC_TOGETHER];
	size_t on[VC_TOGETHER];

	(void)state;
	make(&f[0], 1, 5000, NULL, 1);
	make(&f[1], 2, 5000, "3,1", 1); /* its second is the machine's second */
	make(&f[2], 3, 5000, "1", 0);
	make(&f[3], 4, 5000, "3", 0);
	for (size_t i = 0; i < 4; i++) {
		hold(&f[i], 10, 1), hold(&f[i], 90, 1);
		of[i] = (struct vc_named){ "", &f[i].r };
	}
	assert_int_equal(vc_shared_cards(of, 4, by, on), 1);
	assert_int_equal(on[0], 3);
	assert_ptr_equal(by[2].r, &f[2].r);
	f[2].meta->start_unix_ns = 9000; /* later */
	assert_int_equal(vc_shared_cards(of, 4, by, on), 1);
	assert_int_equal(on[0], 2);
	vc_meta_set(&f[0].meta->host, "there");
	assert_int_equal(vc_shared_cards(of, 4, by, on), 0);
	vc_meta_set(&f[0].meta->host, "here");
	f[0].meta->pid = 2; /* one process has one card twice: it is one recording */
	assert_int_equal(vc_shared_cards(of, 4, by, on), 0);
	f[0].meta->pid = 1;
	vc_program_free(f[0].meta->program);
	f[0].meta->program = NULL;
	f[0].meta->rank = 0; /* which card a rank sees as its second is not recorded */
	assert_int_equal(vc_shared_cards(of, 4, by, on), 0);
	free_all(f, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_follow_the_clock),
		cmocka_unit_test(the_card_is_the_machines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
