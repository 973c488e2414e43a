/* SPDX-License-Identifier: Apache-2.0 */
/* torch_rules.c - behaviours by PyTorch version: 2.0, and what each later version changed.
 *
 * Every row was seen in the object code of the releases (recorded vectors, tests/golden), except
 * the rows for private pools before 2.3 (read in sources). A release without a row behaves as the
 * one before it; adding one costs a word in `torch_versions` and a row per change. */
#include "simulator/models/torch_rules.h"

#define AT(field) (uint16_t)offsetof(struct torch_rules, field)

const char *const torch_versions[] = { "2.0",  "2.1",  "2.2",  "2.3",  "2.4",  "2.5",
				      "2.6",  "2.7",  "2.8",  "2.9",  "2.10", "2.11",
				      "2.12", "2.13", "2.14", "2.15", NULL };

const struct torch_rule_change torch_rule_changes[] = {
	{ 2, 0, AT(raw_division), 1,
	  "roundup_power2_divisions:1 leaves sizes above 512 unrounded" },
	{ 2, 0, AT(oom_limit), 1, "the report names the limit" },

	{ 2, 1, AT(expandable), 1, "expandable segments" },
	{ 2, 1, AT(oom_text), TORCH_OOM_CAPACTY, "new report text (\"capacty\")" },
	{ 2, 1, AT(oom_limit), 0, "the report no longer names the limit" },
	{ 2, 1, AT(oom_processes), 1, "the report lists processes" },
	{ 2, 1, AT(oom_hint), TORCH_HINT_SPLIT, "the report recommends max_split_size_mb" },

	{ 2, 2, AT(opt_lock), 1, "option release_lock_on_cudamalloc" },
	{ 2, 2, AT(traced_early), 1, "segment_free is recorded before cudaFree" },
	{ 2, 2, AT(opt_threads), 1, "option pinned_num_register_threads" },
	{ 2, 2, AT(oom_text), TORCH_OOM_NEW, "the report spells \"capacity\"" },
	{ 2, 2, AT(oom_hint), TORCH_HINT_CUDA1, "the report recommends expandable segments" },

	{ 2, 3, AT(oom_text), TORCH_OOM_CUT, "the report of device 0 ends after \"GPU \"" },
	{ 2, 3, AT(stat_sync), 1, "statistic num_sync_all_streams" },
	{ 2, 3, AT(stat_device), 1, "statistics num_device_alloc and num_device_free" },

	{ 2, 4, AT(raw_division), 0, "roundup_power2_divisions:1 means off" },
	{ 2, 4, AT(error_tail), TORCH_TAIL_LONG, "CUDA errors lose a full stop" },
	{ 2, 4, AT(division_zero), 1, "0 allowed in roundup_power2_divisions lists" },
	{ 2, 4, AT(deferred_drop), 1, "streams recorded during a scope are dropped at its end" },
	{ 2, 4, AT(empty_assert_new), 1, "other assertion text of empty_cache in a scope" },
	{ 2, 4, AT(oom_text), TORCH_OOM_NEW, "the whole report is printed again" },
	{ 2, 4, AT(oom_private), 1, "the report counts private pools" },

	{ 2, 5, AT(private_expandable), 1, "expandable segments in private pools" },
	{ 2, 5, AT(release_skips), 1, "releases skip expandable blocks instead of asserting" },
	{ 2, 5, AT(oom_limit), 1, "the report names the limit" },

	{ 2, 6, AT(non_split), TORCH_ROUNDING_OPTION, "option max_non_split_rounding_mb" },
	{ 2, 6, AT(opt_background), 1, "option pinned_use_background_threads" },
	{ 2, 6, AT(create_pool), 1, "pools can be created without a scope" },

	{ 2, 8, AT(overflow), TORCH_OVERFLOW_LAST, "use_on_oom pools, searched after the retry" },
	{ 2, 8, AT(fraction_text), 1, "readable error for an invalid fraction" },
	{ 2, 8, AT(empty_skips), 1, "empty_cache in a scope skips the default pool" },
	{ 2, 8, AT(empty_by_id), 1, "empty_cache of one pool" },
	{ 2, 8, AT(division_spelling), 1, "spelling of the divisions errors" },

	{ 2, 9, AT(reuse_option), 1, "option graph_capture_record_stream_reuse" },
	{ 2, 9, AT(error_link), 1, "CUDA errors name a page" },

	{ 2, 10, AT(newest_scope), 1, "the newest scope wins" },
	{ 2, 10, AT(limit_of_prop), 1, "the limit is of totalGlobalMem, none at fraction 1.0" },
	{ 2, 10, AT(opt_fraction), 1, "option per_process_memory_fraction" },
	{ 2, 10, AT(no_split), 1, "no_split pools" },
	{ 2, 10, AT(overflow_plain), 1, "use_on_oom pools are searched as if without the option" },
	{ 2, 10, AT(parser_new), 1, "new settings parser and error texts" },
	{ 2, 10, AT(min_split), 1, "max_split_size_mb may be 20" },
	{ 2, 10, AT(fill_above), 1, "> of a division list keeps the last named interval" },
	{ 2, 10, AT(oom_hint), TORCH_HINT_ALLOC1, "the report says PYTORCH_ALLOC_CONF" },

	{ 2, 11, AT(overflow), TORCH_OVERFLOW_MID,
	  "use_on_oom pools are searched before releases" },
	{ 2, 11, AT(opt_large_segment), 1, "option large_segment_size_mb" },
	{ 2, 11, AT(non_split), TORCH_ROUNDING_SEGMENT,
	  "max_non_split_rounding is reset by a parse" },
	{ 2, 11, AT(min_split), 2, "max_split_size_mb is at least large_segment_size_mb" },
	{ 2, 11, AT(oom_hint), TORCH_HINT_CUDA2,
	  "the report says PYTORCH_CUDA_ALLOC_CONF, new link" },

	{ 2, 12, AT(order), TORCH_BY_OBJECT, "equal free blocks are ordered by block object" },
	{ 2, 12, AT(opt_throw), 1, "option throw_on_cudamalloc_oom" },
	{ 2, 12, AT(stat_rejections), 1, "statistic num_oom_rejections" },

	{ 2, 13, AT(order), TORCH_BY_SEGMENT, "equal free blocks are ordered by segment, address" },
	{ 2, 13, AT(capture), TORCH_REAL_CAPTURE, "only a real capture suspends completions" },
	{ 2, 13, AT(limit_rounds), 1, "the limit is rounded" },
	{ 2, 13, AT(error_tail), TORCH_TAIL_LOG, "CUDA errors of such calls are shorter" },
	{ 2, 13, AT(exact), 1, "allocation at an exact address" },
	{ 2, 13, AT(opt_cached), 1, "options pinned_max_cached_size_mb, ..._round_threshold_mb" },

	{ 2, 14, AT(error_tail), TORCH_TAIL_NONE, "and shorter again" },
	{ 2, 14, AT(oom_hint_on), TORCH_ON_NONE, "no hint while expandable segments are on" },

	{ 2, 15, AT(active_captures), 1, "other assertion text of a capture that does not run" },
	{ 2, 15, AT(oom_hint_on), TORCH_ON_RESERVE, "hints about the expandable reserve" },
	{ 2, 15, AT(opt_reserve), 1, "options expandable_segments_reserve and ..._by_class" },
	{ 2, 15, AT(small_range_fails), 1,
	  "a request larger than a virtual segment fails at once" },
	{ 2, 15, AT(release_splits), 1, "the last release of a pool drops its no-split flag" },
	{ 0, 0, 0, 0, NULL } };

/* 0, or -1: that version did not have the device yet. */
static int torch_device_rules(enum torch_device device, struct torch_rules *out)
{
	bool has = device == TORCH_CUDA;

	for (const struct torch_device_change *c = torch_device_changes; c->is.what; c++) {
		if (c->device != device || c->is.major > out->major ||
		    (c->is.major == out->major && c->is.minor > out->minor))
			continue;
		((uint8_t *)out)[c->is.field] = c->is.value;
		has = true;
	}
	return has ? 0 : -1;
}

int torch_rules_for(const char *version, enum torch_device device, struct torch_rules *out)
{
	const char *text = version ? version : TORCH_NEWEST;
	char *end;
	unsigned long major = strtoul(text, &end, 10), minor;
	char short_name[32];
	bool known = false;

	if (end == text || *end != '.')
		return -1;
	text = end + 1;
	minor = strtoul(text, &end, 10);
	if (end == text || (*end && *end != '.' && *end != '+' && *end != 'a' && *end != 'r') ||
	    (*end == '.' && (end[1] < '0' || end[1] > '9')))
		return -1;
	snprintf(short_name, sizeof(short_name), "%lu.%lu", major, minor);
	for (size_t i = 0; torch_versions[i]; i++)
		known |= !strcmp(torch_versions[i], short_name);
	if (!known)
		return -1;
	memset(out, 0, sizeof(*out));
	out->major = (uint8_t)major;
	out->minor = (uint8_t)minor;
	for (const struct torch_rule_change *c = torch_rule_changes; c->what; c++)
		if (c->major < major || (c->major == major && c->minor <= minor))
			((uint8_t *)out)[c->field] = c->value;
	out->device = (uint8_t)device;
	return torch_device_rules(device, out);
}
