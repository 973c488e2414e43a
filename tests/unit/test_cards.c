/* SPDX-License-Identifier: Apache-2.0 */
/* test_cards.c - card profiles: names find rows, and every row is plausible. */
#include "tests/support/test.h"

#include "simulator/replay/cards.h"

static void the_many_ways_to_say_one_card_find_it(void **unused)
{
	const struct vc_card *c = vc_card_by_name("rtx4090");

	(void)unused;
	assert_non_null(c);
	assert_true(c->total == 25250627584u);
	assert_int_equal(c->sms, 128);
	assert_ptr_equal(vc_card_by_name("RTX 4090"), c);
	assert_ptr_equal(vc_card_by_name("NVIDIA GeForce RTX 4090"), c);
	assert_non_null(vc_card_by_name("NVIDIA H200"));
	assert_string_equal(vc_card_by_name("h200")->name, "h200-141g");
	assert_string_equal(vc_card_by_name("NVIDIA A100-SXM4-80GB")->name, "a100-80g-sxm");
}

static void a_beginning_that_fits_several_cards_is_refused_with_their_names(void **unused)
{
	struct vc_error err;
	const struct vc_card *c;

	(void)unused;
	assert_null(vc_card_by_name("a100"));
	assert_int_equal(vc_card_find("a100", &c, &err), VC_EUSAGE);
	assert_non_null(strstr(err.message, "a100-80g-sxm"));
	assert_int_equal(vc_card_find("voodoo2", &c, &err), VC_EUSAGE);
	assert_null(vc_card_by_name(""));
}

static void no_card_claims_its_marketing_size(void **unused)
{
	(void)unused;
	assert_true(vc_cards_n >= 45);
	for (size_t i = 0; i < vc_cards_n; i++) {
		const struct vc_card *c = &vc_cards[i];
		assert_true(c->total > 4ull << 30 && c->total < 1ull << 40);
		assert_true(!c->smi_mib || c->total < (uint64_t)c->smi_mib << 20);
		assert_true(c->context >= 100u << 20 && c->context <= 1u << 30);
		assert_true(c->sms && c->cc_major >= 6 && c->bandwidth_gbs > 100);
		assert_true(strlen(c->source) > 10);
		assert_ptr_equal(vc_card_by_name(c->name), c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_many_ways_to_say_one_card_find_it),
		cmocka_unit_test(a_beginning_that_fits_several_cards_is_refused_with_their_names),
		cmocka_unit_test(no_card_claims_its_marketing_size),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
