/* SPDX-License-Identifier: Apache-2.0 */
/* test_diagnose.c - what follows from the figures of a message, up to the byte where it changes:
 * the request behind the request, the cause, what is missing, and what is said and advised. */
#include "tests/support/test.h"

#include "simulator/advise/explain.h"

#define MIB (1ull << 20)
#define GIB (1ull << 30)

static struct vc_oom_text m;
static struct vc_diagnosis d;

static const struct vc_oom_format *format_of(const char *tag)
{
	const struct vc_oom_format *f = vc_oom_formats;

	while (f->tag && strcmp(f->tag, tag) != 0)
		f++;
	assert_non_null(f->tag);
	return f;
}

/* A whole message of that form, without figures yet. */
static void message(const char *tag)
{
	const struct vc_oom_format *f = format_of(tag);

	m = (struct vc_oom_text){ .format = f, .first = f->first, .last = f->last,
				  .complete = true, .variable = "PYTORCH_CUDA_ALLOC_CONF",
				  .messages = 1 };
}

static void figure(enum vc_figure_name name, uint64_t value, uint64_t slack)
{
	struct vc_figure *f = &m.figure[name];

	*f = (struct vc_figure){ .known = true, .value = value, .slack = slack };
	snprintf(f->text, sizeof(f->text), "<%d>", (int)name);
}

/* A card of 100 GiB; all but what is unallocated. */
static void report(uint64_t request, uint64_t available, uint64_t allocated, uint64_t unallocated)
{
	message("F6-torch.OOM");
	figure(VC_FIG_CAPACITY, 100 * GIB, 0);
	figure(VC_FIG_REQUEST, request, 0);
	figure(VC_FIG_FREE, available, 0);
	figure(VC_FIG_ALLOCATED, allocated, 0);
	figure(VC_FIG_UNALLOCATED, unallocated, 0);
}

static enum vc_cause cause(void)
{
	vc_explain_diagnose(&m, &d);
	return d.found.cause;
}

static bool means(const char *words)
{
	for (size_t i = 0; i < d.meanings; i++)
		if (strstr(d.meaning[i], words))
			return true;
	return false;
}

static bool advises(const char *words)
{
	for (size_t i = 0; i < d.advices; i++)
		if (strstr(d.advice[i].text, words) || strstr(d.advice[i].setting, words))
			return true;
	return false;
}

#define IS(what) assert_int_equal(cause(), VC_CAUSE_##what)

static void wants(uint64_t request, uint64_t slack, uint64_t low, uint64_t high)
{
	figure(VC_FIG_REQUEST, request, slack);
	cause();
	assert_int_equal(d.want_low, low);
	assert_int_equal(d.want_high, high);
}

static void the_tensor_behind_a_request(void **unused)
{
	message("F2-reserved"); /* 1.4 */
	wants(2 * MIB, 7, 1, MIB);
	assert_true(means("at most 1 MiB"));
	wants(20 * MIB, 7, MIB + 1, 20 * MIB);
	assert_true(means("between 1 MiB and 20 MiB"));
	wants(30 * MIB, 7, 28 * MIB - 7, 30 * MIB + 7);
	assert_true(means("One request of <0> failed."));
	wants(20 * MIB + 1, 0, 18 * MIB + 1, 20 * MIB + 1);
	wants(MIB, 5, 0, MIB + 5);
	wants(3, 5, 0, 8);
	message("F6-torch.OOM"); /* 2.5 is above 1.4, 1.10 as well */
	wants(2 * MIB, 0, 1, MIB);
	message("F3-maxsplit");
	wants(2 * MIB, 0, 1, MIB);
	message("F1-cached"); /* 1.0 is below */
	wants(2 * MIB, 7, 2 * MIB - 7, 2 * MIB + 7);
	assert_false(means("at most 1 MiB"));
	wants(20 * MIB, 0, 20 * MIB, 20 * MIB);
	assert_true(means("One request of <0> failed."));
	message("E-xla");
	wants(2 * MIB, 7, 2 * MIB - 7, 2 * MIB + 7);
	message("F6-torch.OOM");
	cause();
	assert_true(d.want_low == 0 && d.want_high == 0 && !means("request"));
}

static void what_is_stranded(void **unused)
{
	report(GIB, 0, 60 * GIB, 30 * GIB);
	figure(VC_FIG_UNALLOCATED, 30 * GIB, 3);
	figure(VC_FIG_RESERVED, 80 * GIB, 1);
	cause();
	assert_true(d.stranded.known && d.stranded.value == 30 * GIB && d.stranded.slack == 3);
	m.figure[VC_FIG_UNALLOCATED].known = false;
	figure(VC_FIG_ALLOCATED, 60 * GIB, 2);
	cause();
	assert_true(d.stranded.known && d.stranded.value == 20 * GIB && d.stranded.slack == 3);
	assert_string_equal(d.stranded.text, "20.00 GiB");
	for (int i = 0; i < 2; i++) {
		m.figure[i ? VC_FIG_ALLOCATED : VC_FIG_RESERVED].known = false;
		cause();
		assert_false(d.stranded.known || d.has_missing);
		figure(VC_FIG_RESERVED, 80 * GIB, 1);
	}
}

static void what_is_missing(void **unused)
{
	report(50 * GIB, 10 * GIB, 60 * GIB, 20 * GIB);
	figure(VC_FIG_FREE, 10 * GIB, 5);
	figure(VC_FIG_UNALLOCATED, 20 * GIB, 3);
	figure(VC_FIG_REQUEST, 50 * GIB, 11);
	IS(DEMAND);
	assert_true(d.has_missing && d.found.card && d.found.at_least);
	assert_int_equal(d.found.request, 50 * GIB);
	assert_int_equal(d.found.piece, 50 * GIB);
	assert_int_equal(d.found.room, 100 * GIB);
	assert_int_equal(d.found.free, 30 * GIB);
	assert_int_equal(d.found.floor, 120 * GIB);
	assert_int_equal(d.found.lacks_low, 20 * GIB - 2 * MIB - 11 - 8);
	assert_int_equal(d.found.lacks_high, 20 * GIB + 11 + 8);
	assert_true(means("Cause: ") && means("Would help: ") && !means("such messages"));
	assert_true(means("Live tensors hold <3>; with every hole used (<2> free, <5> held"));
	assert_true(advises("activation checkpointing"));
	for (int i = 0; i < 2; i++) {
		m.figure[i ? VC_FIG_FREE : VC_FIG_REQUEST].known = false;
		IS(UNKNOWN);
		assert_false(d.has_missing);
		figure(VC_FIG_REQUEST, 50 * GIB, 11);
	}
	m.figure[VC_FIG_CAPACITY].known = false;
	cause();
	assert_false(d.found.card);
}

/* Up to the byte. */
static void one_cause_or_another(void **unused)
{
	report(100 * GIB, GIB, 60 * GIB, GIB);
	IS(DEMAND);
	figure(VC_FIG_REQUEST, 100 * GIB + 9, 9); /* may be that much */
	IS(DEMAND);
	figure(VC_FIG_REQUEST, 100 * GIB + 10, 9); /* surely above */
	IS(IMPOSSIBLE);
	assert_true(means("Cause: ") && means("No setting can make it fit."));
	assert_false(means("Would help: "));
	assert_true(advises("print the shapes"));
	report(50 * GIB, GIB, 100 * GIB + 7, GIB);
	figure(VC_FIG_ALLOCATED, 100 * GIB + 7, 7);
	IS(DEMAND);
	figure(VC_FIG_ALLOCATED, 100 * GIB + 7, 6);
	IS(OVERSUBSCRIBED);
	assert_true(means("More is in use (<3>) than the device has (<1>)"));
	assert_false(advises("inference engine"));
	m.on_linux = true;
	IS(OVERSUBSCRIBED);
	assert_true(means("PyTorch counts more as in use (<3>) than the device has (<1>)"));
	assert_true(advises("inference engine") && advises("a smaller batch"));
	report(10 * GIB, 5 * GIB, 60 * GIB, 5 * GIB + 10 * GIB);
	IS(FRAGMENTATION);
	assert_false(means("Would help: ")); /* nothing is missing */
	assert_true(means("<2> are free on the device, <5> held and not in use"));
	m.complete = false;
	IS(UNKNOWN);
	assert_true(means("cut off or damaged") && advises("paste the whole message"));
}

static void limits_and_devices(void **unused)
{
	report(10 * GIB, 20 * GIB, 30 * GIB, 5 * GIB);
	figure(VC_FIG_REQUEST, 10 * GIB, 2);
	figure(VC_FIG_UNALLOCATED, 5 * GIB, 1);
	figure(VC_FIG_ALLOWED, 45 * GIB + 9, 6); /* as much as would be held then */
	IS(DEVICE);
	figure(VC_FIG_ALLOWED, 45 * GIB + 8, 6);
	IS(LIMIT);
	assert_true(means("the program's own limit (<7>) stopped the request"));
	assert_true(advises("raise torch.cuda.set_per_process_memory_fraction"));
	figure(VC_FIG_FREE, 10 * GIB + 2, 0); /* just enough is free */
	IS(LIMIT);
	figure(VC_FIG_FREE, 10 * GIB + 2, 1);
	assert_int_not_equal(cause(), VC_CAUSE_LIMIT);
	m.figure[VC_FIG_ALLOWED].known = false;
	assert_int_not_equal(cause(), VC_CAUSE_DEVICE);
	figure(VC_FIG_FREE, 10 * GIB + 3, 1);
	IS(DEVICE);
	assert_true(means("The device reports <2> free, enough for the request"));
	assert_true(advises("nvidia-smi") && advises("on Windows"));
	m.process[m.processes++] = (struct vc_oom_process){ .pid = 5 };
	IS(DEVICE);
	assert_false(advises("on Windows"));
	m.processes = 0;
	figure(VC_FIG_PROCESS, GIB, 0);
	IS(DEVICE);
	assert_false(advises("on Windows"));
	message("F12-rejected");
	IS(LIMIT);
	assert_true(means("(a share of the device)"));
	message("M-mps");
	IS(UNKNOWN);
	figure(VC_FIG_ALLOWED, GIB, 0);
	IS(UNKNOWN);
	figure(VC_FIG_ALLOCATED, GIB, 0);
	IS(LIMIT);
	assert_true(means("PyTorch holds <3> and allows itself <7>"));
	assert_true(advises("PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0") && advises("a smaller batch"));
	m.figure[VC_FIG_ALLOWED].known = false;
	IS(UNKNOWN);
}

/* Without the request: the figures do not tell. */
static void messages_without_figures(void **unused)
{
	message("E-1EB");
	IS(IMPOSSIBLE);
	assert_false(means("Cause: "));
	assert_true(means("No device has that much") && !means("No setting"));
	message("E-other");
	assert_int_equal(m.format->style, VC_STYLE_NONE);
	IS(UNKNOWN);
	assert_true(means("carries no figures") && !advises("vramcast record"));
	assert_true(advises("a smaller batch"));
	figure(VC_FIG_REQUEST, GIB, 0);
	IS(UNKNOWN);
	assert_true(means("The figures that would tell why are not in this message."));
	message("F6-torch.OOM");
	IS(UNKNOWN);
	assert_true(means("The figures that would tell why") && advises("vramcast record"));
	message("E-tensorflow");
	IS(UNKNOWN);
	assert_true(advises("TF_GPU_ALLOCATOR=cuda_malloc_async") && !advises("vramcast record"));
	message("E-xla");
	IS(UNKNOWN);
	assert_true(means("XLA (JAX, TensorFlow) takes three quarters"));
	assert_true(advises("XLA_PYTHON_CLIENT_MEM_FRACTION=0.95") && !advises("torch"));
}

/* Less than a fiftieth of the card is as good as nothing. */
static void what_is_scarce(void **unused)
{
	report(GIB, 2 * GIB, 90 * GIB, 0);
	IS(DEVICE);
	assert_true(means("enough for the request"));
	figure(VC_FIG_FREE, 2 * GIB - 1, 0);
	IS(DEVICE);
	assert_true(means("as good as full: of the <2>") && means("<3>; 0 B are held") == false);
	assert_true(means("Live tensors hold <3>") && advises("a smaller batch"));
	assert_false(advises("expandable_segments"));
	figure(VC_FIG_UNALLOCATED, GIB, 0);
	IS(DEVICE);
	assert_false(advises("expandable_segments"));
	figure(VC_FIG_UNALLOCATED, GIB + 1, 0);
	IS(DEVICE);
	assert_true(advises("expandable_segments"));
}

static void what_others_hold(void **unused)
{
	report(20 * GIB, 0, 60 * GIB, 0);
	m.process[0] = (struct vc_oom_process){ 77, { true, 15 * GIB, 1, "15 GiB" } };
	m.process[1] = (struct vc_oom_process){ 78, { true, 5 * GIB, 1, "5 GiB" } };
	m.processes = 2;
	cause();
	assert_int_equal(d.found.others, 0); /* one of them may be this one */
	figure(VC_FIG_PROCESS, 60 * GIB, 0);
	cause();
	assert_int_equal(d.found.others, 20 * GIB - 2);
	assert_true(means("Process 77 on the same device holds 15 GiB.") && means("Process 78"));
	figure(VC_FIG_REQUEST, 19 * GIB, 0);
	IS(OUTSIDE);
	assert_true(means("Cause: ") && means("other processes on the device hold more"));
	assert_true(advises("stop the other processes") && advises("a smaller batch"));
	m.processes = 1;
	cause();
	assert_true(means("Process 77 on the same device") && !means("may be this very program"));
	m.figure[VC_FIG_PROCESS].known = false;
	cause();
	assert_true(means("Process 77 may be this very program") && !means("on the same device"));
	m.messages = 3;
	cause();
	assert_true(means("The text holds 3 such messages; this is about the last whole one."));
	m.complete = false;
	cause();
	assert_true(means("this is about the last."));
	for (m.processes = 0; m.processes < 16; m.processes++)
		m.process[m.processes] = m.process[0];
	cause();
	assert_int_equal(d.meanings, sizeof(d.meaning) / sizeof(*d.meaning));
}

/* Neither free nor PyTorch's. */
static void what_is_outside(void **unused)
{
	report(50 * GIB, 10 * GIB, 60 * GIB, 20 * GIB);
	cause();
	assert_true(d.outside.known && d.outside.value == 10 * GIB);
	assert_true(means("10.00 GiB of the device are neither free nor PyTorch's"));
	figure(VC_FIG_FREE, 10 * GIB, 5);
	figure(VC_FIG_CAPACITY, 90 * GIB + 16, 6);
	figure(VC_FIG_UNALLOCATED, 20 * GIB, 3);
	figure(VC_FIG_ALLOCATED, 60 * GIB, 2);
	cause();
	assert_true(d.outside.known && d.outside.value == 16 && d.outside.slack == 16);
	assert_false(means("neither free nor"));
	figure(VC_FIG_CAPACITY, 90 * GIB + 15, 6); /* the parts may be more than the whole */
	cause();
	assert_false(d.outside.known);
	figure(VC_FIG_RESERVED, 70 * GIB, 0); /* what is said counts */
	cause();
	assert_int_equal(d.outside.value, 10 * GIB + 15);
	for (int i = 0; i < 3; i++) {
		report(50 * GIB, 10 * GIB, 60 * GIB, 20 * GIB);
		m.figure[(enum vc_figure_name[]){ VC_FIG_CAPACITY, VC_FIG_FREE,
						  VC_FIG_ALLOCATED }[i]].known = false;
		cause();
		assert_false(d.outside.known);
	}
	report(50 * GIB, 10 * GIB, 60 * GIB, 28 * GIB);
	cause();
	assert_false(means("neither free nor"));
	figure(VC_FIG_FREE, 10 * GIB - 1, 0);
	figure(VC_FIG_PRIVATE, GIB, 0);
	cause();
	assert_true(means("neither free nor") && means("<8> are set aside in private pools"));
}

/* What helps against fragmentation, by the versions that print such a message. */
static void fragments(const char *tag, const char *first, const char *last, const char *yes,
		      const char *no)
{
	report(10 * GIB, 5 * GIB, 60 * GIB, 15 * GIB);
	m.format = format_of(tag);
	m.first = first;
	m.last = last;
	IS(FRAGMENTATION);
	if (!advises(yes))
		fail_msg("%s %s to %s does not advise: %s", tag, first, last, yes);
	if (advises(no))
		fail_msg("%s %s to %s advises: %s", tag, first, last, no);
}

static void versions_have_their_settings(void **unused)
{
	static const char joins[] = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
			  splits[] = "max_split_size_mb:512", any[] = "F6-torch.OOM";

	fragments(any, "1.4", "1.9", "before 1.10 there is no", splits);
	fragments(any, "1.4", "1.9", "before 1.10 there is no", joins);
	fragments(any, "1.4", "1.10", splits, "before 1.10 there is no");
	fragments(any, "1.10", "2.0", "from 2.1 on there are", joins);
	fragments(any, "1.10", "2.0", splits, joins);
	fragments(any, "2.0", "2.1", joins, "a newer PyTorch");
	fragments(any, "2.1", "2.13", splits, "a newer PyTorch");
	fragments(any, "2.2", "2.13", joins, splits);
	fragments(any, "2.10", NULL, joins, splits);
	fragments("F15-reserve", "2.15", NULL, "expandable segments are on already", joins);
	fragments("F14-no-hint", "2.14", NULL, "where the message was merely cut", splits);
	fragments("H-hip", "2.2", NULL, "from PyTorch 2.12 on", "from PyTorch 2.1,");
	fragments("I-xpu", "2.10", NULL, joins, "torch.cuda.empty_cache");
	fragments("I-xpu", "2.5", "2.9", "torch.xpu.empty_cache", joins);
}

/* 2.1 to 2.4 do not mention a limit. */
static void limits_that_are_not_mentioned(void **unused)
{
	static const struct { const char *version; bool said; } list[] = {
		{ "2.0", false }, { "2.1", true }, { "2.4", true }, { "2.5", false },
		{ "2.10", false }, { NULL, false } };

	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
		report(10 * GIB, 20 * GIB, 30 * GIB, 5 * GIB);
		m.first = list[i].version;
		IS(DEVICE);
		assert_int_equal(advises("2.1 to 2.4 do not mention it"), list[i].said);
	}
}

/* About as much as was asked for: rounding does not tell. */
static void what_rounding_leaves_open(void **unused)
{
	report(30 * GIB, 10 * GIB, 60 * GIB, 20 * GIB - MIB);
	IS(UNDECIDED);
	assert_true(means("(missing: 0 to 1.00 MiB)"));
	assert_true(advises("expandable_segments") && advises("a smaller batch"));
	assert_false(means("Cause: "));
	m.figure[VC_FIG_CAPACITY].known = false;
	IS(UNDECIDED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_tensor_behind_a_request),
		cmocka_unit_test(what_is_stranded),
		cmocka_unit_test(what_is_missing),
		cmocka_unit_test(one_cause_or_another),
		cmocka_unit_test(limits_and_devices),
		cmocka_unit_test(messages_without_figures),
		cmocka_unit_test(what_is_scarce),
		cmocka_unit_test(what_others_hold),
		cmocka_unit_test(what_is_outside),
		cmocka_unit_test(versions_have_their_settings),
		cmocka_unit_test(limits_that_are_not_mentioned),
		cmocka_unit_test(what_rounding_leaves_open),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
