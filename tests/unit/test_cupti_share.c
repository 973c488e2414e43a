/* SPDX-License-Identifier: Apache-2.0 */
/* test_cupti_share.c - the tracer and a profiler of the program's use one CUPTI: each has what it
 * asked for. */
#include "tests/support/cupti_alone.h"

enum { SIZE = 4096, THEIR_IDS = 8 };
static struct {
	int got[KINDS], foreign, buffers, calls, ours, returned;
	size_t lost, asked_again;
	bool give_none;
	void *user;
} their;

static void their_request(uint8_t **buffer, size_t *size, size_t *records)
{
	*buffer = their.give_none ? NULL : calloc(1, SIZE);
	*size = SIZE;
	*records = 0;
	their.buffers += *buffer != NULL;
}

static void their_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size,
			   size_t valid)
{
	void *record = NULL;

	assert_int_equal(size, SIZE);
	while (valid && c_next(buffer, valid, &record) == 0)
		their.got[*(uint32_t *)record]++;
	assert_int_equal(cuptiActivityGetNumDroppedRecords(context, stream, &their.lost), 0);
	assert_int_equal(cuptiActivityGetNumDroppedRecords(context, stream, &their.asked_again), 0);
	free(buffer);
	their.buffers--;
	their.returned++;
}

static void their_callback(void *user, int domain, uint32_t id, const void *data)
{
	their.user = user;
	their.calls++;
}

static void our_callback(void *user, int domain, uint32_t id, const void *data)
{
	assert_null(user);
	their.ours++;
}

/* One record of a kind that is on; the buffer is full at SIZE. */
static void emit(uint32_t kind)
{
	static const struct vc_cupti_kernel like = { .start = WALL, .end = WALL + 1, .stream = 7 };
	size_t records;

	if (!cupti.kind[kind])
		return;
	if (cupti.buffer && cupti.used + RECORD > cupti.size)
		c_flush(0);
	if (!cupti.buffer)
		cupti.request(&cupti.buffer, &cupti.size, &records), cupti.used = 0;
	assert_non_null(cupti.buffer);
	memcpy(cupti.buffer + cupti.used, &like, sizeof(like));
	memcpy(cupti.buffer + cupti.used, &kind, sizeof(kind));
	cupti.used += RECORD;
}

static void nobody(void)
{
	vc_share_forget();
	memset((void *)share_state.asked, 0, sizeof(share_state.asked));
	memset(&cupti, 0, sizeof(cupti));
	memset(&their, 0, sizeof(their));
	memset(rec.how, 0, sizeof(rec.how));
	rec.lost = rec.lines = rec.n = 0;
	cupti.version = 130000;
}

/* What either wants is a set; CUPTI has both on, and each gets its own. */
struct wishes { bool kind[2][KINDS], asked[KINDS], call[2][DOMAINS][THEIR_IDS], in, out; };

static bool they_want(const struct wishes *w)
{
	bool any = false;

	for (int i = 0; i < KINDS; i++)
		any = any || w->kind[1][i];
	return any;
}

static void check_calls(const struct wishes *w)
{
	for (int domain = 1; domain < 4; domain++)
		for (uint32_t id = 0; id < THEIR_IDS; id++) {
			bool ours = w->call[0][domain][id], theirs = w->call[1][domain][id];
			int us = their.ours, them = their.calls;

			if (!w->in && !w->out)
				continue;
			assert_int_equal(cupti.call[domain][id], ours || theirs);
			cupti.callback(NULL, domain, id, NULL);
			assert_int_equal(their.ours - us, ours && w->out);
			assert_int_equal(their.calls - them, theirs && w->in);
			if (theirs && w->in)
				assert_ptr_equal(their.user, &their);
		}
}

static void check_records(const struct wishes *w)
{
	static const uint32_t kinds[] = { VC_CUPTI_KERNEL, VC_CUPTI_RUNTIME, 20, 30 };

	for (size_t i = 0; i < 4; i++) {
		int before = their.got[kinds[i]], n = 1 + (int)i * 20;
		uint32_t kind = kinds[i];
		size_t lines = rec.lines;

		for (int k = 0; k < n; k++)
			emit(kind);
		c_flush(0);
		assert_int_equal(cupti.kind[kind], w->kind[0][kind] || w->kind[1][kind]);
		assert_int_equal(their.got[kind] - before,
				 cupti.kind[kind] && they_want(w) && w->asked[kind] ? n : 0);
		assert_int_equal(rec.lines - lines,
				 cupti.kind[kind] && kind == VC_CUPTI_KERNEL ? n : 0);
		assert_int_equal(their.buffers, 0);
	}
	assert_int_equal(vc_share_is_busy(), they_want(w));
	assert_false(vc_share_is_robbed());
}

static void they_change(struct wishes *w, uint32_t dice)
{
	static const int kinds[] = { VC_CUPTI_KERNEL, VC_CUPTI_RUNTIME, 20, 30 };
	int kind = kinds[dice / 8 % 4], domain = 1 + (int)(dice / 64 % 3);
	uint32_t id = dice / 256 % THEIR_IDS;
	bool on = dice / 4096 % 2;
	void *handle = NULL;

	switch (dice % 8) {
	case 0: case 1:
		if (!they_want(w))
			memset(w->asked, 0, sizeof(w->asked));
		assert_int_equal(cuptiActivityEnable(kind), 0);
		w->kind[1][kind] = w->asked[kind] = true;
		break;
	case 2:
		assert_int_equal(cuptiActivityDisable(kind), 0);
		w->kind[1][kind] = false;
		break;
	case 3:
		if (!w->in)
			break;
		assert_int_equal(cuptiEnableCallback(on, &their, domain, id), 0);
		w->call[1][domain][id] = on;
		break;
	case 4:
		if (!w->in)
			break;
		assert_int_equal(cuptiEnableDomain(on, &their, domain), 0);
		for (id = 0; id < THEIR_IDS; id++)
			w->call[1][domain][id] = on;
		break;
	case 5:
		assert_int_equal(cuptiSubscribe(&handle, their_callback, &their),
				 w->in ? VC_CUPTI_BUSY : 0);
		assert_true(w->in || handle == &cupti);
		w->in = true;
		break;
	case 6:
		if (dice / 8 % 4)
			break;
		assert_int_equal(cuptiUnsubscribe(&cupti), w->in ? 0 : VC_CUPTI_INVALID);
		w->in = false;
		memset(w->call[1], 0, sizeof(w->call[1]));
		break;
	default:
		if (dice / 8 % 8)
			break;
		assert_int_equal(cuptiFinalize(), 0);
		assert_int_equal(cupti.finals, !w->out);
		cupti.finals = 0;
		if (!w->out)
			break;
		w->in = false;
		memset(w->call[1], 0, sizeof(w->call[1]));
		memset(w->kind[1], 0, sizeof(w->kind[1]));
	}
}

/* Theirs until as many are out as can be told apart; ours until CUPTI holds 40 MiB, where it takes
 * a no. */
static void buffers_are_told_apart(void **unused)
{
	uint8_t *first[LENT], *more, *ours[MOST + 3];
	size_t size, records;

	(void)unused;
	nobody();
	cuptiActivityRegisterCallbacks(their_request, their_complete);
	cuptiActivityEnable(30);
	for (int turn = 0; turn < 2; turn++) {
		for (int i = 0; i < LENT; i++)
			cupti.request(&first[i], &size, &records);
		assert_int_equal(their.buffers, LENT);
		assert_int_equal(share_state.out, 0);
		cupti.request(&more, &size, &records);
		assert_true(size == BUFFER && their.buffers == LENT && share_state.out == 1);
		assert_int_equal(vc_share_is_robbed(), !turn);
		cupti.complete(NULL, 0, more, size, 0);
		assert_int_equal(share_state.out, 0);
		for (int i = 0; i < LENT; i++)
			cupti.complete(NULL, 0, first[turn ? i : LENT - 1 - i], SIZE, 0);
		assert_int_equal(their.buffers, 0);
	}
	their.give_none = true;
	cupti.request(&more, &size, &records);
	assert_true(more && size == BUFFER);
	cupti.complete(NULL, 0, more, size, 0);
	cuptiActivityDisable(30);
	for (cupti.version = 26; cupti.version < 28; cupti.version++) {
		for (int i = 0; i < MOST + 3; i++) {
			cupti.request(&ours[i], &size, &records);
			assert_int_equal(ours[i] != NULL, cupti.version < 27 || i < MOST);
			assert_int_equal(size, ours[i] ? BUFFER : 0);
		}
		assert_int_equal(rec.facts, cupti.version == 27);
		for (int i = 0; i < MOST + 3; i++)
			cupti.complete(NULL, 0, ours[i], size, 0);
		assert_int_equal(share_state.out, 0);
		assert_int_equal(share_state.spares, BUFFERS);
	}
}

/* What was lost is said to both, to each once. */
static void losses_are_counted_once_for_each(void **unused)
{
	size_t n = 0;

	(void)unused;
	for (int ours = 0; ours < 2; ours++) {
		nobody();
		cuptiActivityRegisterCallbacks(their_request, their_complete);
		if (ours)
			vc_share_subscribe(our_callback);
		cuptiActivityEnable(30);
		emit(30);
		cupti.lost = 5;
		c_flush(0);
		assert_int_equal(rec.lost, ours ? 5 : 0);
		assert_true(their.lost == 5 && their.asked_again == 0);
		assert_int_equal(cupti.dropped_asked, 1);
		cuptiActivityGetNumDroppedRecords(NULL, 0, NULL);
		assert_int_equal(cupti.dropped_asked, 2);
		assert_int_equal(cuptiActivityGetNumDroppedRecords(NULL, 0, &n), 0);
		assert_int_equal(n, 0);
	}
}

/* Records that stand in a buffer of ours when they begin are fetched before, and those in theirs
 * when they end still come to them. */
static void the_first_and_the_last_buffer_of_a_profile(void **unused)
{
	(void)unused;
	nobody();
	vc_share_subscribe(our_callback);
	vc_share_register();
	vc_share_enable(VC_CUPTI_KERNEL);
	emit(VC_CUPTI_KERNEL);
	cuptiActivityRegisterCallbacks(their_request, their_complete);
	cuptiActivityEnable(VC_CUPTI_KERNEL);
	assert_int_equal(cupti.flushes, 1);
	emit(VC_CUPTI_KERNEL);
	cuptiActivityEnable(30);
	assert_int_equal(cupti.flushes, 1);
	emit(VC_CUPTI_KERNEL);
	cuptiActivityRegisterTimestampCallback(their_clock);
	assert_int_equal(cupti.flushes, 2);
	assert_ptr_equal(cupti.clock, their_clock);
	assert_ptr_equal(clock_state.clock, their_clock);
	emit(VC_CUPTI_KERNEL);
	cuptiActivityDisable(VC_CUPTI_KERNEL);
	cuptiActivityDisable(30);
	emit(VC_CUPTI_KERNEL);
	c_flush(0);
	assert_int_equal(their.got[VC_CUPTI_KERNEL], 4);
	assert_int_equal(rec.lines, 5);
	emit(VC_CUPTI_KERNEL); /* begun before their next profile, handed as a copy */
	share_state.registered = 0;
	cuptiActivityEnable(VC_CUPTI_KERNEL);
	share_state.registered = 1;
	c_flush(0);
	assert_int_equal(their.got[VC_CUPTI_KERNEL], 5);
	assert_true(their.buffers == 0 && share_state.out == 0);
	their.give_none = true;
	emit(VC_CUPTI_KERNEL);
	c_flush(0); /* they have no buffer for it */
	assert_int_equal(their.got[VC_CUPTI_KERNEL], 5);
	vc_share_leave();
	assert_true(share_state.registered == 1 && cupti.subscribers == 0);
	cuptiActivityDisable(VC_CUPTI_KERNEL);
	vc_share_leave();
	assert_int_equal(share_state.registered, 0);
	nobody();
	cuptiActivityRegisterTimestampCallback(their_clock);
	assert_int_equal(cupti.flushes, 0);
	vc_cupti_stamped_by(NULL);
}

/* The driver may call us from inside a call of theirs. */
static void a_start_inside_a_call_waits_for_its_end(void **unused)
{
	void *handle;

	(void)unused;
	nobody();
	assert_false(vc_share_postpone(start_inside));
	assert_int_equal(cuptiSubscribe(&handle, NULL, NULL), VC_CUPTI_INVALID);
	assert_int_equal(cuptiSubscribe(NULL, their_callback, NULL), VC_CUPTI_INVALID);
	cupti.starts = true;
	cuptiSubscribe(&handle, their_callback, NULL);
	assert_int_equal(started, 1);
	nobody();
	cupti.subscribers = 1; /* another tool's */
	assert_int_equal(cuptiSubscribe(&handle, their_callback, NULL), VC_CUPTI_BUSY);
	assert_int_equal(vc_share_callback(1, 1), VC_CUPTI_INVALID);
	assert_int_equal(started, 1);
}

/* Kinds and calls that CUPTI does not have are nobody's. */
static void what_there_is_not_is_not_wanted(void **unused)
{
	static const int domain[] = { -1, DOMAINS, 1, 1 }, kind[] = { -1, KINDS, REFUSED };
	static const uint32_t id[] = { 1, 1, CALLS, CALLS + 5 };
	void *handle;

	(void)unused;
	nobody();
	assert_int_equal(cuptiEnableDomain(1, &cupti, 1), 0); /* as it comes, without us */
	assert_int_equal(cuptiEnableCallback(0, &cupti, 1, 1), 0);
	assert_int_equal(cuptiSubscribe(&handle, their_callback, &their), 0);
	cuptiActivityRegisterCallbacks(their_request, their_complete);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(vc_share_enable(kind[i]), kind[i] == REFUSED);
		assert_int_equal(cuptiActivityEnable(kind[i]), kind[i] == REFUSED);
		assert_false(vc_share_is_busy());
		assert_int_equal(cuptiActivityDisable(kind[i]), kind[i] == REFUSED);
	}
	for (int k = 0; k < KINDS; k++)
		assert_true(share_state.kind[k] == 0 && !share_state.asked[k]);
	for (int i = 0; i < 4; i++) {
		set_call(VC_CUPTI_THEIRS, domain[i], id[i], true);
		assert_false(wants(VC_CUPTI_THEIRS, domain[i], id[i]));
		if (i < 2)
			assert_int_equal(cuptiEnableDomain(1, handle, domain[i]), VC_CUPTI_INVALID);
	}
	for (int d = 0; d < DOMAINS; d++)
		for (uint32_t c = 0; c < CALLS; c++)
			assert_int_equal(share_state.call[d][c], 0);
	for (int k = 0; k < KINDS; k += KINDS - 1) { /* the first and the last are theirs */
		assert_int_equal(cuptiActivityEnable(k), 0);
		assert_true(vc_share_is_busy());
		vc_share_enable(k);
		cuptiActivityDisable(k);
		assert_false(vc_share_is_busy());
		assert_true(cupti.kind[k] && share_state.kind[k]);
	}
	assert_int_equal(cuptiEnableDomain(1, handle, 0), 0);
	assert_int_equal(share_state.call[0][CALLS - 1], 1 << VC_CUPTI_THEIRS);
	assert_int_equal(share_state.call[1][0], 0);
}

static void each_client_has_what_it_asked_for(void **unused)
{
	static struct wishes w;
	uint64_t x = 88172645463325252u;

	(void)unused;
	for (int round = 0; round < 20; round++) {
		nobody();
		memset(&w, 0, sizeof(w));
		cupti.kind[KINDS - 1] = false;
		if (round % 3) {
			w.out = true;
			assert_int_equal(vc_share_subscribe(our_callback), 0);
			for (uint32_t id = 0; id < THEIR_IDS; id += 2) {
				assert_int_equal(vc_share_callback(2, id), 0);
				w.call[0][2][id] = true;
			}
			assert_int_equal(vc_share_enable(VC_CUPTI_KERNEL), 0);
			assert_int_equal(vc_share_enable(20), 0);
			w.kind[0][VC_CUPTI_KERNEL] = w.kind[0][20] = true;
			assert_int_equal(vc_share_register(), 0);
		}
		assert_int_equal(cuptiActivityRegisterCallbacks(their_request, NULL),
				 VC_CUPTI_INVALID);
		assert_int_equal(cuptiActivityRegisterCallbacks(their_request, their_complete), 0);
		assert_int_equal(cupti.registered, 1);
		for (int step = 0; step < 60; step++) {
			x ^= x << 13, x ^= x >> 7, x ^= x << 17; /* Marsaglia's xorshift */
			they_change(&w, (uint32_t)(x >> 32));
			check_calls(&w);
			check_records(&w);
		}
		if (w.out)
			vc_share_leave();
		memset(w.kind[0], 0, sizeof(w.kind[0]));
		memset(w.call[0], 0, sizeof(w.call[0]));
		w.out = false;
		assert_int_equal(cupti.subscribers, w.in);
		check_calls(&w);
		check_records(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buffers_are_told_apart),
		cmocka_unit_test(losses_are_counted_once_for_each),
		cmocka_unit_test(the_first_and_the_last_buffer_of_a_profile),
		cmocka_unit_test(a_start_inside_a_call_waits_for_its_end),
		cmocka_unit_test(what_there_is_not_is_not_wanted),
		cmocka_unit_test(each_client_has_what_it_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
