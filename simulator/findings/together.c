/* SPDX-License-Identifier: Apache-2.0 */
/* together.c - processes that hold memory of one card at the same time; see findings.h. */
#include "common/format.h"
#include "common/program.h"
#include "simulator/findings/findings.h"

enum { CARD_NAME = 64 };

static uint64_t start_of(const struct vc_result *r)
{
	return r->meta->start_unix_ns + r->curve.at[0].first_ns;
}

static uint64_t end_of(const struct vc_result *r)
{
	return r->meta->start_unix_ns + r->curve.at[r->curve.n - 1].last_ns;
}

bool vc_met(const struct vc_result *a, const struct vc_result *b)
{
	const struct vc_result *const of[2] = { a, b };

	for (int i = 0; i < 2; i++)
		if (!of[i]->meta || !of[i]->meta->start_unix_ns || !of[i]->stats.has_times ||
		    !of[i]->curve.n)
			return false;
	return start_of(a) <= end_of(b) && start_of(b) <= end_of(a) &&
	       (a->meta->pid != b->meta->pid || a->info.device != b->info.device);
}

/* What the program's own number of the device is the number of on its machine: CUDA_VISIBLE_DEVICES
 * may hide and reorder. false: not known. */
static bool card_of(const struct vc_result *r, char name[CARD_NAME])
{
	const struct vc_program *p = r->meta->program;
	const char *seen = p ? vc_texts_find(&p->environment, "CUDA_VISIBLE_DEVICES") : NULL;
	unsigned skip = r->info.device;

	while (seen && skip && (seen = strchr(seen, ',')))
		seen += 1, skip--;
	if (seen)
		snprintf(name, CARD_NAME, "%.*s", (int)strcspn(seen, ","), seen);
	else
		snprintf(name, CARD_NAME, "%u", (unsigned)r->info.device);
	/* ranks of a job whose environment is not known may each see their own card as the first */
	return p || r->meta->rank < 0;
}

bool vc_share_card(const struct vc_result *a, const struct vc_result *b)
{
	char one[CARD_NAME], other[CARD_NAME];

	return vc_met(a, b) && a->meta->host && b->meta->host &&
	       !strcmp(a->meta->host, b->meta->host) && a->info.capacity == b->info.capacity &&
	       a->meta->pid != b->meta->pid && card_of(a, one) && card_of(b, other) &&
	       !strcmp(one, other);
}

size_t vc_shared_cards(const struct vc_named *of, size_t n, struct vc_named *shared, size_t *on)
{
	bool taken[VC_TOGETHER] = { false };
	size_t cards = 0, all = 0;

	n = n < VC_TOGETHER ? n : VC_TOGETHER;
	for (size_t i = 0; i < n; i++) {
		size_t from = all;

		if (taken[i])
			continue;
		shared[all++] = of[i];
		for (size_t k = i + 1; k < n; k++)
			if (!taken[k] && vc_share_card(of[i].r, of[k].r)) {
				taken[k] = true;
				shared[all++] = of[k];
			}
		if (all - from > 1)
			on[cards++] = all - from;
		else
			all = from;
	}
	return cards;
}

/* Where the run is in its curve while time goes on: the next bucket, or the end behind the last. */
static uint64_t next_of(const struct vc_result *r, size_t next)
{
	return next < r->curve.n ? r->meta->start_unix_ns + r->curve.at[next].first_ns :
	       next == r->curve.n ? end_of(r) + 1 : UINT64_MAX;
}

/* Goes on to `now`. Of several buckets that begin at once the fullest; what is held afterwards is
 * what the last of them says. Nothing behind the end. */
static void go_to(const struct vc_result *r, uint64_t now, size_t *next, struct vc_hold *after,
		  struct vc_hold *most)
{
	*most = *after;
	for (bool first = true; next_of(r, *next) <= now; first = false, ++*next) {
		const struct vc_bucket *b = &r->curve.at[*next];

		*after = *next == r->curve.n ? (struct vc_hold){ 0 } :
			(struct vc_hold){ r->info.context, b->allocated_max, b->reserved_max };
		if (first || after->reserved > most->reserved)
			*most = *after;
	}
}

struct vc_together vc_together_walk(const struct vc_named *of, size_t n, vc_together_fn *each,
				    void *arg)
{
	struct vc_together t = { 0 };
	struct vc_hold hold[VC_TOGETHER] = { { 0 } }, after[VC_TOGETHER] = { { 0 } };
	size_t next[VC_TOGETHER] = { 0 };

	n = n < VC_TOGETHER ? n : VC_TOGETHER;
	t.first_ns = UINT64_MAX;
	for (size_t i = 0; i < n; i++) {
		t.first_ns = start_of(of[i].r) < t.first_ns ? start_of(of[i].r) : t.first_ns;
		t.last_ns = end_of(of[i].r) > t.last_ns ? end_of(of[i].r) : t.last_ns;
	}
	for (uint64_t now = t.first_ns; now != UINT64_MAX;) {
		uint64_t sum = 0, then = UINT64_MAX;

		for (size_t i = 0; i < n; i++) {
			const struct vc_result *r = of[i].r;

			go_to(r, now, &next[i], &after[i], &hold[i]);
			sum += hold[i].context + hold[i].reserved;
			then = next_of(r, next[i]) < then ? next_of(r, next[i]) : then;
		}
		if (sum > t.most) {
			t.most = sum;
			t.most_ns = now - t.first_ns;
		}
		if (each)
			each(arg, now - t.first_ns, sum, hold);
		now = then;
	}
	t.room = of->r->info.capacity;
	return t;
}

void vc_together_text(const struct vc_named *of, size_t n, char *buf, size_t cap)
{
	struct vc_together t = vc_together_walk(of, n, NULL, NULL);
	char a[2 * VC_FORMAT], b[VC_FORMAT];

	if (t.room)
		vc_format_of(t.most, t.room, a);
	else
		vc_format_bytes(t.most, a);
	snprintf(buf, cap, "%zu processes share a card: together at most %s, at %s%s", n, a,
		 vc_format_ns(t.most_ns, b),
		 t.room && t.most > t.room ? ": more than there is" : "");
}
