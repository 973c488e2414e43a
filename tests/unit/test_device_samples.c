/* SPDX-License-Identifier: Apache-2.0 */
/* test_device_samples.c - samples of the device, and the pinned memory that stands beside them.
 * What the tracer would ask and write is made here. */
#define _GNU_SOURCE
#include "tests/support/test.h"

#include "tracer/samples.c"

enum { MS = 1000000 };

static struct {
	uint64_t now, available, others;
	uint16_t device;
	bool reachable, watching, null, asked_nvml;
	char said[512]; /* all that was recorded, since it was emptied */
} card;

static void say(const char *what, uint64_t value)
{
	size_t n = strlen(card.said);

	snprintf(card.said + n, sizeof card.said - n, "%s%s %llu", n ? ", " : "", what,
		 (unsigned long long)value);
}

uint64_t vc_clock_ns(void)
{
	return card.now;
}

bool vc_clock_is_null(void)
{
	return card.null;
}

bool vc_torch_watching(void)
{
	return card.watching;
}

uint16_t vc_cuda_device(void)
{
	return card.device;
}

bool vc_cuda_memory(uint64_t *available, uint64_t *total)
{
	*available = card.available;
	*total = 1000;
	return card.reachable;
}

void vc_cuda_device_fact(uint16_t device, uint64_t total)
{
	assert_int_equal(device, card.device);
	assert_int_equal(total, 1000);
}

void vc_cuda_device_forget(void)
{
	say("forgotten", 0);
}

bool vc_nvml_others(uint16_t device, uint64_t *bytes)
{
	card.asked_nvml = true;
	*bytes = card.others;
	return card.others > 0;
}

uint32_t vc_names_put(const char *s)
{
	return (uint32_t)s[0];
}

void vc_marks_value(enum vc_mark what, uint32_t name, uint64_t bytes)
{
	const char letter[] = { (char)name, 0 };

	assert_int_equal(what, VC_MARK_INSTANT);
	say(letter, name == 'r' ? bytes > 4096 : bytes);
}

bool vc_record_put(struct vc_record what)
{
	assert_int_equal(what.kind, VC_EV_DEVICE_SAMPLE);
	assert_true(what.size == 1000 && what.extra == 1000 && what.device == card.device);
	say("free", what.addr);
	return true;
}

void vc_recorder_capability(enum vc_capability c, enum vc_how how)
{
	assert_true(c == VC_CAP_DEVICE_SAMPLES && how == VC_HOW_RECORDED);
}

static int begin(void **unused)
{
	memset(&card, 0, sizeof card);
	vc_cuda_sample_forget();
	memset(&card, 0, sizeof card);
	card.now = 5000ull * MS;
	card.available = 700;
	card.reachable = card.watching = card.null = true;
	return 0;
}

#define SAID(text) (assert_string_equal(card.said, text), *card.said = '\0')

static void what_is_pinned_is_counted(void **unused)
{
	vc_cuda_pin(0x1000, 30);
	vc_cuda_pin(0x2000, 4);
	vc_cuda_sample();
	SAID("free 700, p 34");
	assert_int_equal(vc_cuda_unpin(0x1000), 30);
	assert_int_equal(vc_cuda_unpin(0x1000), 0); /* not twice, and nothing that is not pinned */
	assert_int_equal(vc_cuda_unpin(0x3000), 0);
	vc_cuda_sample();
	SAID("free 700, p 4");
	vc_cuda_pin(0x1000, 50); /* in the place that became empty */
	vc_cuda_pin(0x1800, 6);
	assert_int_equal(vc_cuda_unpin(0x1800), 6);
	assert_int_equal(vc_cuda_unpin(0x2000), 4);
	assert_int_equal(vc_cuda_unpin(0x1000), 50);
	vc_cuda_sample();
	SAID("free 700");
}

static void more_than_there_is_room_for_is_not_in_the_sum(void **unused)
{
	for (uint64_t i = 1; i <= PINNED + 1; i++)
		vc_cuda_pin(i, 2);
	vc_cuda_sample();
	SAID("free 700, p 8192");
	assert_int_equal(vc_cuda_unpin(PINNED), 2);
	assert_int_equal(vc_cuda_unpin(PINNED + 1), 0);
}

/* What other processes hold is recorded when it changes, in front of the sample. */
static void other_processes(void **unused)
{
	card.others = 40;
	vc_cuda_sample();
	vc_cuda_sample();
	SAID("o 40, free 700, free 700");
	card.others = 41;
	vc_cuda_sample();
	SAID("o 41, free 700");
	card.reachable = false;
	card.others = 42;
	vc_cuda_sample(); /* of a card that does not answer nothing is said */
	SAID("");
}

static void resident_memory_is_the_real_clocks(void **unused)
{
	card.null = false;
	vc_cuda_sample();
	SAID("free 700, r 1");
}

/* Asked five times a second at the most, and other processes once a second. */
static void from_time_to_time(void **unused)
{
	vc_cuda_sample_sometimes(); /* nothing before the program has a context */
	SAID("");
	vc_cuda_sample_first();
	SAID("free 700");
	assert_true(card.asked_nvml);
	card.asked_nvml = false;
	card.now += 200 * MS + 1; /* the first one says one more nanosecond, to be above zero */
	vc_cuda_sample_sometimes();
	SAID("");
	card.now++;
	card.watching = false;
	vc_cuda_sample_sometimes();
	SAID("");
	card.watching = true;
	vc_cuda_sample_sometimes();
	SAID("free 700");
	card.now += 200 * MS;
	vc_cuda_sample_sometimes();
	SAID("");
	card.now += 600 * MS - 2;
	vc_cuda_sample_sometimes();
	SAID("free 700");
	assert_false(card.asked_nvml); /* a second after the first */
	card.now += 200 * MS + 1;
	vc_cuda_sample_sometimes();
	SAID("free 700");
	assert_true(card.asked_nvml);
}

static void once_a_device(void **unused)
{
	vc_cuda_sample_first();
	SAID("free 700");
	vc_cuda_sample_first();
	SAID("");
	card.device = 3;
	vc_cuda_sample_first();
	SAID("free 700");
	card.device = 0;
	vc_cuda_sample_first();
	SAID("");
	vc_cuda_sample_forget();
	SAID("forgotten 0");
	vc_cuda_sample_sometimes();
	SAID("");
	vc_cuda_pin(1, 5);
	card.others = 3;
	vc_cuda_sample_first();
	SAID("o 3, free 700, p 5");
	vc_cuda_sample_forget();
	card.others = 3;
	*card.said = '\0';
	vc_cuda_sample_first();
	SAID("o 3, free 700");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_is_pinned_is_counted, begin),
		cmocka_unit_test_setup(more_than_there_is_room_for_is_not_in_the_sum, begin),
		cmocka_unit_test_setup(other_processes, begin),
		cmocka_unit_test_setup(resident_memory_is_the_real_clocks, begin),
		cmocka_unit_test_setup(from_time_to_time, begin),
		cmocka_unit_test_setup(once_a_device, begin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
