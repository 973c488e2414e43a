/* SPDX-License-Identifier: Apache-2.0 */
/* toy_source.c - a trace format of one word: a block is asked for and given back. */
#include <string.h>

#include "common/io.h"
#include "simulator/replay/source.h"

static int toy_probe(struct vc_input *in)
{
	struct vc_error ignored;
	size_t got = 0;
	const uint8_t *head = vc_input_peek(in, 4, &got, &ignored);

	return head && got >= 4 && !memcmp(head, "toy\n", 4) ? 32 : 0;
}

static long toy_next(struct vc_source *s, struct vc_event *ev, size_t cap, struct vc_error *err)
{
	bool *done = s->state;

	(void)err;
	if (*done || cap < 2) {
		s->meta->complete = true;
		return 0;
	}
	*done = true;
	s->meta->max_id = 1;
	ev[0] = (struct vc_event){ .kind = VC_EV_ALLOC, .id = 1, .size = 5 << 20 };
	ev[1] = (struct vc_event){ .kind = VC_EV_FREE, .id = 1, .time_ns = 1 };
	return 2;
}

const struct vc_source_type vc_source_toy = {
	.name = "toy", .summary = "one block", .state_size = sizeof(bool), .probe = toy_probe,
	.next = toy_next,
};
