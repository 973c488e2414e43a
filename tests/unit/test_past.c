/* SPDX-License-Identifier: Apache-2.0 */
/* test_past.c - what may have come before a recording: each kind of past of traces made by
 * hand, and what all of them must keep. */
#include "tests/support/warm.h"

#include "common/map.h"
#include "simulator/replay/past.h"

/* ---- what every past keeps ---- */

struct kept { struct vc_map live, waiting; uint64_t max_id; };

static void keep_ids(struct kept *k, const struct vc_trace *t)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct vc_event *e = &t->ev[i];

		if ((e->kind == VC_EV_ALLOC || e->kind == VC_EV_FREE ||
		     e->kind == VC_EV_HEAP_BLOCK) && e->id > k->max_id)
			k->max_id = e->id;
	}
}

static void keep_event(struct kept *k, const struct vc_event *e, const struct vc_map *own)
{
	switch (e->kind) {
	case VC_EV_ALLOC:
		assert_null(vc_map_get(&k->live, e->id)); /* at most once at a time */
		assert_true(e->id > k->max_id || vc_map_get(own, e->id));
		assert_true(vc_map_put(&k->live, e->id, (size_t)e + 1));
		break;
	case VC_EV_FREE:
		assert_true(vc_map_take(&k->live, e->id) != 0);
		if (e->flags & VC_EVF_PENDING)
			assert_true(vc_map_put(&k->waiting, e->id, 1));
		break;
	case VC_EV_FREE_DONE:
		assert_true(vc_map_take(&k->waiting, e->id) != 0);
		break;
	case VC_EV_USE:
		assert_non_null(vc_map_get(&k->live, e->id));
		break;
	default:
		assert_true(e->kind == VC_EV_SYNC || (e->kind == VC_EV_TRIM && !e->id));
	}
}

/* The recorded live blocks, by id: event + 1; of a block that does not say its size the room. */
static struct vc_map recorded(const struct vc_trace *t, uint16_t device)
{
	struct vc_map own = { 0 };

	for (size_t i = 0; i < t->n; i++) {
		const struct vc_event *e = &t->ev[i];

		if (e->kind == VC_EV_HEAP_BLOCK && e->device == device && e->id &&
		    (e->flags & (VC_EVF_LIVE | VC_EVF_FINAL | VC_EVF_PENDING)) == VC_EVF_LIVE)
			assert_true(vc_map_put(&own, e->id, i + 1));
	}
	return own;
}

/* What lives at the end is exactly what was recorded: ids, sizes to 512 bytes, and streams. */
static void keep_end(const struct kept *k, const struct vc_map *own, const struct vc_trace *t)
{
	assert_int_equal(k->live.n, own->n);
	assert_int_equal(k->waiting.n, 0);
	for (size_t i = 0; own->slot && i <= own->mask; i++) {
		const struct vc_event *was, *now, *segment;
		uint64_t *v;

		if (!own->slot[i].value)
			continue;
		v = vc_map_get(&k->live, own->slot[i].key);
		assert_non_null(v);
		was = segment = &t->ev[own->slot[i].value - 1];
		while (segment->kind != VC_EV_HEAP_SEGMENT)
			segment--;
		now = (const struct vc_event *)(*v - 1);
		assert_int_equal(now->stream, segment->stream);
		if (was->size)
			assert_int_equal((now->size + 511) / 512, (was->size + 511) / 512);
	}
}

/* Returns how many events it has. */
static size_t check_past(const struct vc_trace *t, uint16_t device, enum vc_past_kind kind)
{
	struct kept k = { .max_id = 0 };
	struct vc_map own = recorded(t, device);
	struct vc_past *p;
	size_t n;

	assert_int_equal(vc_past_of(t, device, kind, &p, NULL), VC_OK);
	keep_ids(&k, t);
	for (size_t i = 0; i < p->n; i++) {
		assert_int_equal(p->ev[i].device, device);
		keep_event(&k, &p->ev[i], &own);
	}
	n = p->n;
	if (n)
		keep_end(&k, &own, t);
	vc_map_fini(&k.live);
	vc_map_fini(&k.waiting);
	vc_map_fini(&own);
	vc_memo_put(&p->memo);
	return n;
}

/* The requests of a past in words: "+id:MiB" or "-id", ids of nobody from 'a' on; "d" and "u" for
 * completions and uses, with a stream that is not the default one behind a slash. */
static const char *words(const struct vc_trace *t, enum vc_past_kind kind, char *to, size_t room)
{
	struct kept k = { .max_id = 0 };
	struct vc_past *p;
	size_t at = 0;

	*to = 0;
	check_past(t, 0, kind);
	assert_int_equal(vc_past_of(t, 0, kind, &p, NULL), VC_OK);
	keep_ids(&k, t);
	for (size_t i = 0; i < p->n && at < room; i++) {
		const struct vc_event *e = &p->ev[i];
		char id[24], stream[24] = "";

		if (e->id > k.max_id)
			snprintf(id, sizeof(id), "%c", (char)('a' + (e->id - k.max_id - 1)));
		else
			snprintf(id, sizeof(id), "%u", (unsigned)e->id);
		if (e->stream)
			snprintf(stream, sizeof(stream), "/%u", (unsigned)e->stream);
		if (e->kind == VC_EV_ALLOC)
			at += (size_t)snprintf(to + at, room - at, "+%s:%u%s ", id,
					       (unsigned)(e->size / MIB), stream);
		else if (e->kind == VC_EV_TRIM || e->kind == VC_EV_SYNC)
			at += (size_t)snprintf(to + at, room - at,
					       e->kind == VC_EV_TRIM ? "trim " : "sync ");
		else
			at += (size_t)snprintf(to + at, room - at, "%c%s%s ",
					       e->kind == VC_EV_FREE ? '-' :
					       e->kind == VC_EV_USE ? 'u' : 'd', id, stream);
	}
	vc_memo_put(&p->memo);
	return to;
}

#define assert_past(t, kind, text) \
	do { \
		char room_[1024]; \
		assert_string_equal(words(t, kind, room_, sizeof(room_)), text); \
	} while (0)

/* ---- kinds ---- */

static void blocks_come_by_address_or_by_size(void **unused)
{
	struct vc_trace t = empty();

	(void)unused;
	add_whole(&t, 1, 30);
	add_segment(&t, AT + 2 * 4096 * MIB, 20 * MIB, 1);
	add_live(&t, AT + 2 * 4096 * MIB, 3, 4 * MIB);
	add(&t, (struct vc_event){ .kind = VC_EV_HEAP_BLOCK, .size = 9 * MIB,
				   .addr = AT + 2 * 4096 * MIB + 4 * MIB });
	/* It does not say how much was asked for: up to the end of its segment. */
	add_live(&t, AT + 2 * 4096 * MIB + 10 * MIB, 2, 0);
	add_whole(&t, 4, 50);
	assert_past(&t, VC_PAST_ALONE, "+1:30 +3:4/1 +2:10/1 +4:50 ");
	assert_past(&t, VC_PAST_SIZES, "+4:50 +1:30 +2:10/1 +3:4/1 ");
	vc_trace_fini(&t);
}

static void what_waits_is_left_out(void **unused)
{
	struct vc_trace t = empty();

	(void)unused;
	add_whole(&t, 1, 30);
	add_segment(&t, AT, 20 * MIB, 0);
	add(&t, (struct vc_event){ .kind = VC_EV_HEAP_BLOCK, .addr = AT, .size = 20 * MIB, .id = 2,
				   .flags = VC_EVF_PENDING });
	add(&t, (struct vc_event){ .kind = VC_EV_FREE_DONE, .id = 2 });
	take(&t, 3, 40);
	give(&t, 1);
	take(&t, 4, 30);
	give(&t, 3);
	assert_past(&t, VC_PAST_ALONE, "+1:30 ");
	assert_past(&t, VC_PAST_ROUND, "+a:30 +b:40 -a +1:30 -b ");
	vc_trace_fini(&t);
}

/* The recorded end is no start, and ids of nobody lie above it, too. */
static void the_recorded_end_is_no_start(void **unused)
{
	struct vc_trace t = empty();

	(void)unused;
	add_whole(&t, 1, 30);
	take(&t, 2, 40);
	give(&t, 2);
	add(&t, (struct vc_event){ .kind = VC_EV_HEAP_SEGMENT, .addr = AT, .size = 99 * MIB,
				   .flags = VC_EVF_FINAL });
	add(&t, (struct vc_event){ .kind = VC_EV_HEAP_BLOCK, .addr = AT, .size = 99 * MIB, .id = 7,
				   .flags = VC_EVF_FINAL | VC_EVF_LIVE });
	assert_past(&t, VC_PAST_ALONE, "+1:30 ");
	assert_past(&t, VC_PAST_FILLED, "+a:30 -a +1:30 ");
	assert_past(&t, VC_PAST_ROUND, "+1:30 +a:40 -a ");
	vc_trace_fini(&t);
}

static void segments_were_full_on_their_streams(void **unused)
{
	struct vc_trace t = empty();

	(void)unused;
	add_whole(&t, 1, 30);
	add_segment(&t, AT, 40 * MIB, 1);
	add(&t, (struct vc_event){ .kind = VC_EV_HEAP_SEGMENT, .addr = AT + 64 * MIB,
				   .size = 2 * MIB, .stream = 1, .flags = VC_EVF_SMALL });
	assert_past(&t, VC_PAST_FILLED, "+a:30 +b:40/1 +c:1/1 +d:1/1 -a -b -c -d +1:30 ");
	vc_trace_fini(&t);
}

/* ---- rounds ---- */

/* Weights of 100 (1, lives on) and 60 (2), which a step makes anew. What is left behind goes. */
static void a_round_leads_to_the_first_event(void **unused)
{
	struct vc_trace t = empty();

	(void)unused;
	add_whole(&t, 1, 100);
	add_whole(&t, 2, 60);
	take(&t, 3, 200);
	give(&t, 2);
	take(&t, 4, 60);
	take(&t, 5, 1);
	give(&t, 3);
	take(&t, 6, 300); /* another round begins, and is not over */
	assert_past(&t, VC_PAST_ROUND, "+1:100 +a:60 +b:200 -a +2:60 +c:1 -b -c ");
	vc_trace_fini(&t);
}

/* A block of another size takes its place: close enough, and what is missing is asked for. */
static void a_round_is_closed_where_it_is_not_quite_one(void **unused)
{
	struct vc_trace t = empty();

	(void)unused;
	add_whole(&t, 1, 100);
	add_whole(&t, 2, 2);
	take(&t, 3, 900);
	give(&t, 2);
	take(&t, 4, 3);
	give(&t, 3);
	assert_past(&t, VC_PAST_ROUND, "+1:100 +a:2 +b:900 -a +c:3 -b -c +2:2 ");
	vc_trace_fini(&t);
}

static void what_only_grows_has_no_round(void **unused)
{
	struct vc_trace t = empty();

	(void)unused;
	add_whole(&t, 1, 100);
	for (uint64_t id = 2; id < 9; id++)
		take(&t, id, 50);
	assert_past(&t, VC_PAST_ROUND, "");
	assert_past(&t, VC_PAST_LATE, "");
	assert_past(&t, VC_PAST_STATES, "");
	assert_past(&t, VC_PAST_ALONE, "+1:100 ");
	vc_trace_fini(&t);
}

/* Two of them comes back to a quarter of the way only. */
static void what_comes_back_half_way_has_no_round(void **unused)
{
	struct vc_trace t = empty();

	(void)unused;
	add_whole(&t, 1, 100);
	take(&t, 2, 50);
	take(&t, 3, 50);
	give(&t, 2);
	assert_past(&t, VC_PAST_ROUND, "");
	give(&t, 3);
	assert_past(&t, VC_PAST_ROUND, "+1:100 +a:50 +b:50 -a -b ");
	vc_trace_fini(&t);
}

/* 40 of 100 MiB are still there behind the last event, so the round has ended before. */
static void a_round_ends_where_it_is_nearest(void **unused)
{
	struct vc_trace t = empty();

	(void)unused;
	add_whole(&t, 1, 100);
	take(&t, 2, 100);
	give(&t, 2);
	take(&t, 3, 40);
	assert_past(&t, VC_PAST_ROUND, "+1:100 +a:100 -a ");
	vc_trace_fini(&t);
}

static void a_cache_that_is_emptied_is_in_the_round(void **unused)
{
	struct vc_trace t = empty();

	(void)unused;
	add_whole(&t, 1, 100);
	take(&t, 2, 50);
	add(&t, (struct vc_event){ .kind = VC_EV_TRIM });
	add(&t, (struct vc_event){ .kind = VC_EV_TRIM, .id = 5 }); /* of a pool */
	add(&t, (struct vc_event){ .kind = VC_EV_SYNC, .stream = VC_STREAM_ALL });
	add(&t, (struct vc_event){ .kind = VC_EV_ALLOC, .id = 3, .size = MIB,
				   .flags = VC_EVF_EXACT });
	give(&t, 2);
	give(&t, 3);
	assert_past(&t, VC_PAST_ROUND, "+1:100 +a:50 trim sync -a ");
	vc_trace_fini(&t);
}

/* When memory comes back that other streams used: where it was seen to, and at the latest where the
 * round ends. Else it would never come back. */
static void completions_are_in_the_round(void **unused)
{
	const struct vc_event waits[] = {
		{ .kind = VC_EV_ALLOC, .id = 3, .size = 50 * MIB, .stream = 1 },
		{ .kind = VC_EV_USE, .id = 3, .stream = 1 },
		{ .kind = VC_EV_USE, .id = 2, .stream = 1 },
		{ .kind = VC_EV_FREE, .id = 2, .flags = VC_EVF_PENDING },
		{ .kind = VC_EV_FREE, .id = 3, .flags = VC_EVF_PENDING },
		{ .kind = VC_EV_FREE_DONE, .id = 2 },
		{ .kind = VC_EV_FREE_DONE, .id = 3 },
		{ .kind = VC_EV_ALLOC, .id = 4, .size = 60 * MIB, .stream = 0 },
		{ .kind = VC_EV_ALLOC, .id = 5, .size = 50 * MIB, .stream = 0 },
		{ .kind = VC_EV_FREE, .id = 5, .flags = VC_EVF_PENDING },
	};
	struct vc_trace t = empty();

	(void)unused;
	add_whole(&t, 1, 100);
	add_whole(&t, 2, 60);
	for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++)
		add(&t, waits[i]);
	assert_past(&t, VC_PAST_ROUND, "+1:100 +a:60 +b:50/1 ub/1 ua/1 -a -b da db +2:60 +c:50 "
				       "-c dc ");
	check_past(&t, 0, VC_PAST_LATE);
	vc_trace_fini(&t);
}

/* ---- late blocks ---- */

static void what_lies_in_segments_of_others_comes_late(void **unused)
{
	struct vc_trace t = a_step();

	(void)unused;
	/* A step without it, and one at whose end it is made, before the gradient goes. */
	assert_past(&t, VC_PAST_LATE,
		    "+1:30 +a:80 +b:30 -a +c:10 +3:30 -c -b ");
	assert_past(&t, VC_PAST_ROUND, "+1:30 +3:30 +a:80 +b:30 -a +c:10 -c -b ");
	vc_trace_fini(&t);
}

/* Two blocks for each gradient of that size, besides its parameter, are states. */
static void more_than_there_are_gradients_comes_late(void **unused)
{
	struct vc_trace t = empty();

	(void)unused;
	for (uint64_t id = 1; id <= 3; id++)
		add_whole(&t, id, 30);
	add_whole(&t, 4, 40); /* no gradient is like it */
	take(&t, 5, 90);
	take(&t, 6, 30);
	give(&t, 5);
	give(&t, 6);
	assert_past(&t, VC_PAST_LATE, "+1:30 +2:30 +3:30 +4:40 +a:90 +b:30 -a -b ");
	assert_past(&t, VC_PAST_STATES, "+1:30 +4:40 +a:90 +b:30 +2:30 +3:30 -a -b ");
	vc_trace_fini(&t);
}

/* The recording begins within a step: the past begins where one does, with what lives there. */
static void the_past_begins_between_two_steps(void **unused)
{
	struct vc_trace t = empty();

	(void)unused;
	add_whole(&t, 1, 100);
	add_whole(&t, 2, 60); /* of the step */
	add_whole(&t, 3, 2);  /* the last batch */
	take(&t, 4, 70);
	add(&t, (struct vc_event){ .kind = VC_EV_ALLOC, .id = 5, .size = 2 * MIB, .stream = 1 });
	give(&t, 3);
	give(&t, 4);
	give(&t, 2);
	take(&t, 6, 60);
	take(&t, 7, 2);
	give(&t, 5);
	take(&t, 8, 70);
	give(&t, 8);
	assert_past(&t, VC_PAST_LATE, "+a:2/1 +1:100 +b:60 +c:2 -a +d:70 -d +e:70 +f:2/1 -c -e -b "
				      "+2:60 +3:2 -f +g:70 -g ");
	vc_trace_fini(&t);
}

/* ---- whose ---- */

static void other_devices_are_left_out(void **unused)
{
	struct vc_trace t = empty();
	size_t n;

	(void)unused;
	add_whole(&t, 1, 100);
	add_whole(&t, 2, 60);
	for (n = 0; n < 2; n++)
		add(&t, (struct vc_event){ .kind = n ? VC_EV_HEAP_BLOCK : VC_EV_HEAP_SEGMENT,
					   .addr = AT, .size = 70 * MIB, .device = 1, .id = n * 3,
					   .flags = n ? VC_EVF_LIVE : 0 });
	take(&t, 4, 200);
	add(&t, (struct vc_event){ .kind = VC_EV_ALLOC, .id = 5, .size = 900 * MIB, .device = 1 });
	give(&t, 2);
	take(&t, 6, 60);
	add(&t, (struct vc_event){ .kind = VC_EV_FREE, .id = 5, .device = 1 });
	add(&t, (struct vc_event){ .kind = VC_EV_SYNC, .device = 1 });
	give(&t, 4);
	assert_past(&t, VC_PAST_ROUND, "+1:100 +a:60 +b:200 -a +2:60 -b ");
	assert_past(&t, VC_PAST_FILLED, "+a:100 +b:60 -a -b +1:100 +2:60 ");
	for (int k = 0; k < VC_PASTS; k++) {
		check_past(&t, 0, (enum vc_past_kind)k);
		check_past(&t, 1, (enum vc_past_kind)k);
		assert_int_equal(check_past(&t, 2, (enum vc_past_kind)k), 0);
	}
	assert_int_equal(check_past(&t, 1, VC_PAST_ROUND), 4);
	vc_trace_fini(&t);
}

static void ids_far_apart_have_no_past(void **unused)
{
	struct vc_trace t = empty();

	(void)unused;
	add_whole(&t, 1, 100);
	take(&t, 63, 10);
	give(&t, 63); /* four events: up to 16 ids for each */
	assert_int_equal(check_past(&t, 0, VC_PAST_ALONE), 1);
	t.ev[2].id = t.ev[3].id = UINT64_MAX;
	for (int k = 0; k < VC_PASTS; k++)
		assert_int_equal(check_past(&t, 0, (enum vc_past_kind)k), 0);
	t.ev[2].id = t.ev[3].id = 80;
	assert_int_equal(check_past(&t, 0, VC_PAST_ALONE), 0);
	vc_trace_fini(&t);
}

static void a_past_is_kept_with_its_trace(void **unused)
{
	struct vc_trace t = a_step();
	struct vc_past *a, *b, *c;

	(void)unused;
	assert_int_equal(vc_trace_keep(&t, NULL), VC_OK);
	assert_int_equal(vc_past_of(&t, 0, VC_PAST_ALONE, &a, NULL), VC_OK);
	assert_int_equal(vc_past_of(&t, 0, VC_PAST_ALONE, &b, NULL), VC_OK);
	assert_int_equal(vc_past_of(&t, 0, VC_PAST_ROUND, &c, NULL), VC_OK);
	assert_ptr_equal(a, b);
	assert_ptr_not_equal(a, c);
	vc_memo_put(&a->memo);
	vc_memo_put(&b->memo);
	vc_memo_put(&c->memo);
	vc_trace_fini(&t);
}

/* ---- recordings ---- */

static void count_pasts(struct vc_trace *t, void *arg)
{
	int *found = arg;

	for (int k = 0; k < VC_PASTS; k++)
		found[k] += check_past(t, 0, (enum vc_past_kind)k) > 0;
}

static void pasts_of_recordings_end_with_the_recorded_blocks(void **unused)
{
	int found[VC_PASTS] = { 0 };

	(void)unused;
	assert_true(each_recording(count_pasts, found) >= 40);
	assert_true(found[VC_PAST_ALONE] > 20 && found[VC_PAST_FILLED] > 20);
	assert_true(found[VC_PAST_ROUND] > 10 && found[VC_PAST_LATE] == found[VC_PAST_ROUND]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_come_by_address_or_by_size),
		cmocka_unit_test(what_waits_is_left_out),
		cmocka_unit_test(the_recorded_end_is_no_start),
		cmocka_unit_test(segments_were_full_on_their_streams),
		cmocka_unit_test(a_round_leads_to_the_first_event),
		cmocka_unit_test(a_round_is_closed_where_it_is_not_quite_one),
		cmocka_unit_test(what_only_grows_has_no_round),
		cmocka_unit_test(what_comes_back_half_way_has_no_round),
		cmocka_unit_test(a_round_ends_where_it_is_nearest),
		cmocka_unit_test(a_cache_that_is_emptied_is_in_the_round),
		cmocka_unit_test(completions_are_in_the_round),
		cmocka_unit_test(what_lies_in_segments_of_others_comes_late),
		cmocka_unit_test(more_than_there_are_gradients_comes_late),
		cmocka_unit_test(the_past_begins_between_two_steps),
		cmocka_unit_test(other_devices_are_left_out),
		cmocka_unit_test(ids_far_apart_have_no_past),
		cmocka_unit_test(a_past_is_kept_with_its_trace),
		cmocka_unit_test(pasts_of_recordings_end_with_the_recorded_blocks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
