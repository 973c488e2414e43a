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

static const char *found(const char *name)
{
	const struct vc_card *c = vc_card_by_name(name);

	return c ? c->name : "none";
}

static void the_maker_decides_whose_allocator_serves_a_card(void **unused)
{
	(void)unused;
	assert_int_equal(vc_card_kind("rtx4090"), VC_KIND_CUDA);
	assert_int_equal(vc_card_kind("AMD Instinct MI300X"), VC_KIND_HIP);
	assert_int_equal(vc_card_kind("AMD Instinct MI9000"), VC_KIND_HIP);
	assert_int_equal(vc_card_kind("Intel(R) Arc(TM) B580 Graphics"), VC_KIND_XPU);
	assert_int_equal(vc_card_kind("Intel(R) Arc(TM) C990 Graphics"), VC_KIND_XPU);
	assert_int_equal(vc_card_kind("Ascend910B2C"), VC_KIND_NPU);
	assert_int_equal(vc_card_kind("a card nobody knows"), VC_KIND_CUDA);
	assert_int_equal(vc_card_kind(NULL), VC_KIND_CUDA);
}

static void names_as_people_write_them_are_understood(void **unused)
{
	static const char *const pair[][2] = {
		{ "RTX3080 Ti", "rtx3080ti-12g" }, { "rtx 4080 super", "rtx4080super-16g" },
		{ "H100-SXM5-80GB", "h100-80g-sxm" }, { "tesla v100 32gb", "v100-32g-pcie" },
		{ "NVIDIA H100 80GB HBM3", "h100-80g-sxm" }, { "h100sxm", "h100-80g-sxm" },
		{ "NVIDIA GH200 480GB", "gh200-96g" }, { "RTX A6000", "a6000" },
		{ "RTX 6000 Ada", "rtx6000ada" }, { "A100-SXM4-40GB", "a100-40g-sxm" },
		{ "NVIDIA A100 80GB PCIe", "a100-80g-pcie" }, { "4090", "rtx4090" },
		{ "rtx 4090 24 GB", "rtx4090" }, { "NVIDIA GeForce RTX 3060", "rtx3060-12g" },
		{ "NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "rtxpro6000" },
		{ "NVIDIA B300 SXM6 AC", "b300-288g" }, { "AMD Instinct MI300X", "mi300x-192g" },
		{ "AMD Instinct MI250X", "mi250x-gcd" }, { "NVIDIA H20", "h20-96g" },
		{ "7900 xtx", "rx7900xtx-24g" }, { "mi100", "mi100-32g" },
		{ "Intel(R) Data Center GPU Max 1550", "max1550-64g" },
		{ "max1100", "max1100-48g" }, { "Arc A770", "arc-a770-16g" },
		{ "Intel(R) Arc(TM) B580 Graphics", "arc-b580-12g" },
		{ "b60", "arc-b60-24g" }, { "Ascend910B2C", "ascend910b-64g" },
		{ "910b", "ascend910b-64g" },
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(pair) / sizeof(*pair); i++)
		assert_string_equal(found(pair[i][0]), pair[i][1]);
}

static void an_inexact_name_never_becomes_another_card(void **unused)
{
	static const char *const none[] = {
		"rtx2090", "RTX 4060 Ti", "a100", "v100", "rtx3080", "RTX 5090 D", "H20-5e",
		"NVIDIA GeForce RTX 4095 Laptop GPU", "A100-SXM4-40GB MIG 9g.5gb", "ti", "rtx",
		"a100 60gb", "NVIDIA GeForce RTX 5070 Ti SUPER", "RTX 5060 Ti" };
	struct vc_error err;
	const struct vc_card *c;

	(void)unused;
	assert_string_equal(found("RTX 5070"), "rtx5070-12g");
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
		assert_string_equal(found(none[i]), "none");
	assert_int_equal(vc_card_find("RTX 4060 Ti", &c, &err), VC_EUSAGE);
	assert_non_null(strstr(err.message, "rtx4060ti-8g, rtx4060ti-16g"));
}

static void a_part_a_laptop_and_a_way_of_use_are_found_by_name(void **unused)
{
	static const struct { const char *name, *is; } want[] = {
		{ "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "a100-40g-sxm+1g.5gb" },
		{ "a100-40g-sxm+1g.5gb", "a100-40g-sxm+1g.5gb" },
		{ "A100-SXM4-80GB+3G.40GB", "a100-80g-sxm+3g.40gb" },
		{ "NVIDIA GeForce RTX 4090 Laptop GPU", "rtx4090laptop-16g" },
		{ "rtx 3060 laptop", "rtx3060laptop-6g" },
		{ "NVIDIA GeForce RTX 3080 Laptop GPU", "rtx3080laptop-8g" },
		{ "4090+windows", "rtx4090+windows" },
		{ "rtx4060laptop-8g+windows", "rtx4060laptop-8g+windows" },
		{ "a6000+ecc", "a6000+ecc" },
		{ "l4+noecc", "l4+noecc" },
		{ "NVIDIA A10-24Q", "a10+24q" },
		{ "NVIDIA GeForce RTX 4090 D", "rtx4090d-24g" },
		{ "NVIDIA H20-3e", "h20-3e-141g" },
		{ "GeForce GTX 1060 6GB", "gtx1060-6g" },
		{ "GeForce GTX 1060 3GB", "none" },
		{ "GTX 1080", "gtx1080" },
		{ "NVIDIA TITAN X (Pascal)", "titanx-pascal" },
		{ "GeForce GTX TITAN X", "none" },    /* Maxwell's */
		{ "NVIDIA TITAN RTX", "titanrtx-24g" },
		{ "NVIDIA GeForce RTX 2060", "none" }, /* 6 or 12 GB */
		{ "rtx 2060 12gb", "rtx2060-12g" },
		{ "RTX 2060 SUPER", "rtx2060super" },
		{ "Quadro RTX 6000", "quadrortx6000-24g" },
		{ "rtx6000", "none" },                /* Quadro's or one of two later ones */
		{ "NVIDIA RTX A2000", "a2000-6g" },   /* the other one's name has its size */
		{ "NVIDIA RTX A2000 12GB", "a2000-12g" },
		{ "NVIDIA A100-SXM-64GB", "a100-64g-sxm" },
		{ "P100-PCIE-12GB", "p100-12g" },
		{ "p100", "p100-16g" },
		{ "NVIDIA GB10", "dgx-spark-128g" },
		{ "DGX Spark", "dgx-spark-128g" },
		{ "NVIDIA Thor", "jetson-agx-thor-128g" },
		{ "Jetson AGX Orin 64GB", "jetson-agx-orin-64g" },
		{ "Orin", "none" },                   /* one of three */
		{ "AMD Instinct MI60 / MI50", "none" },
		{ "mi50 32gb", "mi50-32g" },
		{ "gtx1080+windows", "gtx1080+windows" },
		{ "AMD Radeon AI PRO R9700", "r9700-32g" },
		{ "AMD Radeon PRO W7900", "w7900-48g" },
		{ "mi300x+windows", "none" },   /* not NVIDIA's */
		{ "l4+ecc", "none" },           /* it is on */
		{ "a100+1g.6gb", "none" },
	};
	const struct vc_card *c = vc_card_by_name("rtx4060laptop-8g+windows");
	struct vc_error err;
	char buf[600];

	(void)unused;
	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++)
		assert_string_equal(found(want[i].name), want[i].is);
	assert_in_range((c->total - c->context) >> 20, 7099 - 35, 7099 + 35); /* was printed */
	assert_int_equal(vc_card_find("rtx4090+nonsense", &c, &err), VC_EUSAGE);
	assert_non_null(strstr(err.message, "+windows, +ecc, +noecc"));
	assert_non_null(strstr(vc_card_remark("4090+windows", buf, sizeof(buf)), "Fallback"));
}

/* One of a card's parts has less of everything, and of the same class. */
static void a_part_is_smaller_than_its_card(void **unused)
{
	(void)unused;
	assert_true(vc_card_parts_n > 30);
	for (size_t i = 0; i < vc_card_parts_n; i++) {
		const struct vc_card *c = &vc_card_parts[i], *whole;
		const char *sign = strchr(c->name, '+');
		char name[64];

		assert_ptr_equal(vc_card_by_name(c->name), c);
		assert_true(strlen(c->source) > 10 && c->context >= 64u << 20);
		if (!sign)
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)(sign - c->name), c->name);
		whole = vc_card_by_name(name);
		assert_non_null(whole);
		assert_int_equal(c->cc_major * 10 + c->cc_minor,
				 whole->cc_major * 10 + whole->cc_minor);
		assert_true(c->sms <= whole->sms && c->bandwidth_gbs <= whole->bandwidth_gbs);
		assert_true(c->total < whole->total || !strcmp(sign, "+noecc") ||
			    !strcmp(sign, "+24q"));
	}
}

static void an_estimate_is_said(void **unused)
{
	char buf[600];

	(void)unused;
	assert_non_null(strstr(vc_card_remark("rtx5070", buf, sizeof(buf)), "is an estimate"));
	assert_string_equal(vc_card_remark("rtx4090", buf, sizeof(buf)), "");
	assert_string_equal(vc_card_remark("a100-80g-sxm", buf, sizeof(buf)), "");
	assert_string_equal(vc_card_remark("voodoo2", buf, sizeof(buf)), "");
}

static void a_card_is_asked_about_where_several_fit(void **unused)
{
	struct vc_error err;
	const struct vc_card *c;

	(void)unused;
	assert_int_equal(vc_card_find("A100 80GB", &c, &err), VC_EUSAGE);
	assert_non_null(strstr(err.message, "a100-80g-pcie, a100-80g-sxm: say which"));
	assert_int_equal(vc_card_find("h100-80", &c, &err), VC_EUSAGE);
	assert_int_equal(vc_card_find("voodoo2", &c, &err), VC_EUSAGE);
	assert_int_equal(vc_card_find("rtx3060", &c, &err), VC_OK);
	assert_string_equal(c->name, "rtx3060-12g");
}

static void a_wrong_name_gets_the_cards_it_may_mean(void **unused)
{
	static const struct { const char *name, *meant; } of[] = {
		{ "rtx6000", "did you mean rtx6000ada?" },
		{ "h10", "did you mean h100-80g-pcie, h100-80g-sxm, h100-94g-nvl?" },
		{ "rtx4091", "did you mean rtx4090?" },
		{ "titan", "did you mean titanx-pascal, titanxp, titanv, titanrtx-24g?" },
		{ "rtx7000", "no gpu 'rtx7000' (" }, /* two digits from rtx3070: another card */
		{ "", "no gpu '' (" },
	};
	struct vc_error err;
	const struct vc_card *c;

	(void)unused;
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		assert_int_equal(vc_card_find(of[i].name, &c, &err), VC_EUSAGE);
		assert_non_null(strstr(err.message, of[i].meant));
	}
}

static void clocks_are_those_that_were_printed_or_follow_from_the_rate(void **unused)
{
	int sm, memory;

	(void)unused;
	vc_card_clocks(vc_card_by_name("h100-80g-sxm"), &sm, &memory);
	assert_int_equal(sm, 1980);
	assert_int_equal(memory, 2619);
	vc_card_clocks(vc_card_by_name("rtx4090"), &sm, &memory); /* its boost clock is 2520 MHz */
	assert_in_range(sm, 2500, 2540);
	assert_int_equal(memory, 0);
	vc_card_clocks(vc_card_by_name("v100-32g-pcie"), &sm, &memory); /* 1380 MHz */
	assert_in_range(sm, 1350, 1410);
}

/* 80 recordings of one model of card print this number. */
static void the_total_of_an_rtx_3060_is_the_printed_one(void **unused)
{
	(void)unused;
	assert_true(vc_card_by_name("rtx3060-12g")->total == 12622168064u);
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

static void cards_of_one_class_make_the_same_requests(void **unused)
{
	static const struct { const char *a, *b; bool same; } pair[] = {
		{ "a100-40g-sxm", "a100-80g-sxm", true },
		{ "b200-180g", "b300-288g", false },    /* 148 multiprocessors; 10.0 and 10.3 */
		{ "rtx3080ti-12g", "rtx4080super-16g", false }, /* 80; 8.6 and 8.9 */
		{ "rtx3090", "rtx3080-10g", false },    /* 8.6; 82 and 68 */
		{ "v100-32g-pcie", "b200-180g", false },
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(pair) / sizeof(*pair); i++)
		assert_int_equal(vc_card_same_class(vc_card_by_name(pair[i].a),
						    vc_card_by_name(pair[i].b)), pair[i].same);
}

static void a_full_card_is_known_by_what_its_context_leaves(void **unused)
{
	const struct vc_card *c = vc_card_by_name("rtx4090"), *full;
	uint64_t beside;

	(void)unused;
	full = vc_card_full(c->total - c->context, &beside);
	assert_string_equal(full->name, "rtx4090"); /* others of 24 GB have a little less */
	assert_int_equal(beside, c->context);
	for (size_t i = 0; i < vc_cards_n; i++) {
		full = vc_card_full(vc_cards[i].total - vc_cards[i].context, &beside);
		assert_non_null(full);
		assert_int_equal(beside, full->context); /* of equals the first */
	}
	assert_null(vc_card_full(1ull << 30, &beside));
	assert_int_equal(beside, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_many_ways_to_say_one_card_find_it),
		cmocka_unit_test(a_beginning_that_fits_several_cards_is_refused_with_their_names),
		cmocka_unit_test(the_maker_decides_whose_allocator_serves_a_card),
		cmocka_unit_test(names_as_people_write_them_are_understood),
		cmocka_unit_test(an_inexact_name_never_becomes_another_card),
		cmocka_unit_test(a_part_a_laptop_and_a_way_of_use_are_found_by_name),
		cmocka_unit_test(a_part_is_smaller_than_its_card),
		cmocka_unit_test(an_estimate_is_said),
		cmocka_unit_test(a_card_is_asked_about_where_several_fit),
		cmocka_unit_test(a_wrong_name_gets_the_cards_it_may_mean),
		cmocka_unit_test(clocks_are_those_that_were_printed_or_follow_from_the_rate),
		cmocka_unit_test(the_total_of_an_rtx_3060_is_the_printed_one),
		cmocka_unit_test(no_card_claims_its_marketing_size),
		cmocka_unit_test(cards_of_one_class_make_the_same_requests),
		cmocka_unit_test(a_full_card_is_known_by_what_its_context_leaves),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
