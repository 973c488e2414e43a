/* SPDX-License-Identifier: Apache-2.0 */
/* torch_witness.c - which other versions and settings would have served the requests of a run in
 * the same way.
 *
 * Most of what a version changed is about pools, limits, settings' grammar and messages. A run
 * without private pools, captures and limits never came to it, so that 2.3 and 2.9 are one run.
 * Settings are compared as they were read; a limit on splits above every block that there was never
 * decided anything. What is not known here to make no difference makes one. */

#include "simulator/models/torch_index.h"

#define AT(field) (uint16_t)offsetof(struct torch_rules, field)

/* Rules that a run without pools, captures, exact addresses and limits does not ask. Those of the
 * grammar have done their work when the settings are read; texts are no part of a run's figures. */
static const uint16_t silent[] = {
	AT(major), AT(minor), AT(capture), AT(newest_scope), AT(limit_of_prop), AT(limit_rounds),
	AT(fraction_text), AT(fraction_off), AT(pools_off), AT(overflow), AT(overflow_plain),
	AT(no_split), AT(release_splits), AT(private_expandable), AT(deferred_drop),
	AT(empty_skips), AT(empty_by_id), AT(exact), AT(create_pool), AT(reuse_option),
	/* grammar */
	AT(opt_fraction), AT(opt_throw), AT(opt_large_segment), AT(opt_reserve), AT(opt_lock),
	AT(opt_threads), AT(opt_background), AT(opt_cached), AT(non_split), AT(expandable),
	AT(parser_new),
	AT(min_split), AT(fill_above), AT(division_zero),
	/* texts, statistics and the order of two lines of the history */
	AT(oom_free), AT(oom_hip), AT(oom_text), AT(oom_limit), AT(oom_private), AT(oom_processes),
	AT(oom_hint), AT(oom_hint_on), AT(error_link), AT(error_tail), AT(empty_assert_new),
	AT(active_captures), AT(division_spelling), AT(traced_early), AT(stat_sync),
	AT(stat_device), AT(stat_rejections),
};
/* Those that only expandable segments ask. */
static const uint16_t of_ranges[] = { AT(release_skips), AT(small_range_fails) };

static void forget(struct torch_rules *r, const uint16_t *field, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((uint8_t *)r)[field[i]] = 0;
}

static struct torch_rules rules_of(const struct torch *t, bool ranges)
{
	struct torch_rules r = *t->r;

	forget(&r, silent, sizeof(silent) / sizeof(*silent));
	if (!ranges)
		forget(&r, of_ranges, sizeof(of_ranges) / sizeof(*of_ranges));
	r.raw_division = 0; /* torch_rounds asks for it */
	return r;
}

/* Settings that ask for more of the device than its answers. */
static bool is_plain(const struct torch *t)
{
	return t->limit == TORCH_UNLIMITED && !t->conf.throw_oom && !t->conf.has_reserve &&
	       !t->conf.classes;
}

bool torch_witness(const struct vc_model *m, void *witness)
{
	const struct torch *t = m->state;
	const struct torch_conf *c = &t->conf;
	struct torch_witness *w = witness;
	uint64_t reserved = (uint64_t)t->all[TORCH_RESERVED_BYTES].peak;

	*w = (struct torch_witness){ .max_split = c->max_split,
		.non_split_rounding = c->non_split_rounding, .large_segment = c->large_segment,
		.prop_total = vc_device_config(m->device)->prop_total, .largest = t->largest,
		.expandable = c->expandable, .ranges = c->expandable || t->ranges,
		.medium = t->medium, .plain = is_plain(t),
		.version = t->torn || t->privs || t->scope_cap || t->captures || t->rejections };
	w->rules = w->version ? *t->r : rules_of(t, w->ranges);
	w->raw_division = t->r->raw_division;
	memcpy(w->division, c->division, sizeof(w->division));
	/* Blocks of a range grow together. */
	if (w->ranges && reserved > w->largest)
		w->largest = reserved;
	return w->plain && !w->version;
}

/* Is it the same limit on splits, or was neither ever reached? */
static bool splits_alike(const struct torch_conf *c, const struct torch_witness *w)
{
	if (c->max_split > w->largest && w->max_split > w->largest)
		return true;
	return c->max_split == w->max_split && c->non_split_rounding == w->non_split_rounding;
}

bool torch_repeats(const struct vc_model *m, const void *witness)
{
	const struct torch *t = m->state;
	const struct torch_conf *c = &t->conf;
	const struct torch_witness *w = witness;
	struct torch_rules r = w->version ? *t->r : rules_of(t, w->ranges);

	return w->plain && is_plain(t) && c->expandable == w->expandable &&
	       !memcmp(&r, &w->rules, sizeof(r)) && splits_alike(c, w) &&
	       (c->large_segment == w->large_segment || (!w->ranges && !w->medium)) &&
	       (!w->ranges || vc_device_config(m->device)->prop_total == w->prop_total);
}

bool torch_rounds(const struct vc_model *m, const void *witness, uint64_t size)
{
	const struct torch *t = m->state;
	const struct torch_witness *w = witness;
	uint64_t n = size + t->r->padding;

	return n < t->k->min_block ||
	       torch_rounded(t, t->conf.division, t->r->raw_division, n) ==
		       torch_rounded(t, w->division, w->raw_division, n);
}
