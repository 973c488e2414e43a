/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - see report.h */
#include "simulator/advise/report.h"

#include "common/site.h"
#include "simulator/session/answer.h"
#include "simulator/session/bounds.h"
#include "simulator/advise/pins.h"
#include "simulator/findings/findings.h"
#include "simulator/replay/model.h"
#include "simulator/time/time.h"
#include "simulator/session/whatif.h"

static const char *start_name(const struct vc_run_info *i)
{
	return i->warm ? "warm" : i->rebuilt ? "rebuild" : "cold";
}

/* Why the replay of recorded requests is not exact; NULL: it is, or something else is why. */
static const char *say_basis(const struct vc_result *r, enum vc_level level)
{
	const struct vc_basis *b = &r->basis;

	if (b->exact || level != VC_BOUNDS)
		return NULL;
	if (b->ground == VC_GROUND_PAST && b->grows)
		return "the recording begins in the middle of the run; under the new split limit "
		       "each new size takes a segment of its own, and how many sizes came before "
		       "is not known: the upper end is a guess";
	if (b->ground == VC_GROUND_PAST)
		return "the recording begins in the middle of the run, where the change would have "
		       "made another heap: the interval holds what may have come before";
	if (b->ground == VC_GROUND_ASKED)
		return r->info.rebuilt ? "the recording begins in the middle of the run: its live "
					 "blocks were asked for anew, without what was cached" :
					 NULL;
	return r->stats.by_address && r->has_interval ?
		       "which of two equal holes is taken hangs on where the driver puts new "
		       "segments: the interval holds six orders of them" :
		       "the recording begins in the middle of the run: whether more was reserved "
		       "before, and given back, is not known";
}

const char *vc_report_words(const struct vc_session *s, const struct vc_plan *p,
			     const struct vc_result *r)
{
	enum vc_level level = vc_answer_level(s, p, r);

	if (level == VC_UNKNOWN)
		return "how far off a change that -x makes may be was never measured: take the "
		       "numbers as a guess";
	if (s->whatif && s->whatif->rerun && p->transform.n && s->whatif->rerun->made.n)
		return "the program was run with the first changes without a card; the others "
		       "were not made in it, but are estimated on top of it";
	if (s->whatif && s->whatif->rerun && p->transform.n)
		return "the program was run at this value without a card; what -x changes was not "
		       "run, but is estimated on top of it";
	if (s->whatif)
		return s->whatif->as_asked.trust;
	if (p->transform.n)
		return vc_bounds_wanted(&p->transform) ?
			       "what -x changes was not recorded: the interval is what it leaves "
			       "open and what it was found to be off by" :
			       "what -x changes was not recorded";
	if (level == VC_UNVERIFIED)
		return "the recording was not reproduced: nothing shows that the replay is right";
	if (r && say_basis(r, level))
		return say_basis(r, level);
	if (level >= VC_BOUNDS && vc_answer_resized(s->rec, p))
		return "the server that sleeps sizes its cache by the memory that it finds: under "
		       "other settings it was up to 0.8 % off, for which the interval stands; on "
		       "another card only a dry run there can tell";
	if (!p->torch[0])
		return "another allocator under the requests of PyTorch: compare allocators by "
		       "it; another framework would ask for other sizes";
	return level == VC_ALLOCATOR_ONLY ?
		       "the allocator of another PyTorch than the recorded one: that version would "
		       "also ask for other sizes, which the interval allows for" :
		       NULL;
}

const char *vc_report_narrow(const struct vc_session *s, const struct vc_plan *p,
			     const struct vc_result *r)
{
	const struct vc_whatif *w = s->whatif && !s->whatif->as_asked.report.same ? s->whatif :
									       NULL;

	if (w && w->rerun)
		return r && r->has_interval ? "a recording at that value" : NULL;
	if (w && w->as_asked.report.single)
		return "a second short recording at another value";
	if (vc_bounds_wanted(&p->transform) || vc_bounds_unknown(&p->transform))
		return "a recording of the change that -x stands for";
	if (w)
		return "a recording at a value nearer to the one asked for";
	if (r && !r->basis.exact && s->rec->device->has_start && !p->transform.n)
		return "a recording from the start of the program";
	return vc_answer_other_torch(s->rec, p) ? "a recording under that version of PyTorch" :
						  NULL;
}

static void report_rerun(struct vc_emit *e, const struct vc_session *s)
{
	const struct vc_whatif *w = s->whatif;
	const struct vc_control_run *t = w && w->rerun ? &w->rerun->found : NULL;

	if (w || s->why[0])
		vc_emit_text(e, "by", NULL, t ? "rerun" : "recordings");
	if (s->why[0])
		vc_emit_text(e, "no_rerun", NULL, s->why);
	if (!t)
		return;
	vc_emit_object(e, "control_run", NULL);
	vc_emit_uint(e, "requests", NULL, t->requests);
	vc_emit_uint(e, "equal", NULL, t->equal);
	vc_emit_uint(e, "resized", NULL, t->resized);
	vc_emit_uint(e, "only_recorded", NULL, t->only_recorded);
	vc_emit_uint(e, "only_run", NULL, t->only_run);
	vc_emit_uint(e, "restreamed", NULL, t->restreamed);
	vc_emit_uint(e, "given_back_at_once", NULL, t->at_once);
	vc_emit_bytes(e, "recorded_reserved", NULL, t->recorded);
	vc_emit_bytes(e, "run_reserved", NULL, t->run);
	vc_emit_bool(e, "same", NULL, t->same);
	vc_emit_uint(e, "seeds", NULL, w->rerun->seeds);
	vc_emit_end(e);
}

void vc_report_trust(struct vc_emit *e, const struct vc_session *s, const struct vc_plan *p,
		     const struct vc_result *r)
{
	vc_emit_object(e, "trust", NULL);
	vc_emit_text(e, "level", NULL, vc_level_name(vc_answer_level(s, p, r)));
	vc_emit_bool(e, "checked", NULL, vc_answer_checked(s));
	vc_emit_bool(e, "reproduced", NULL, vc_answer_reproduced(s));
	vc_emit_real(e, "matched", NULL, s->matched);
	vc_emit_uint(e, "recordings", NULL, s->whatif ? s->whatif->recordings : 1);
	vc_emit_text(e, "text", NULL, vc_report_words(s, p, r));
	vc_emit_text(e, "narrow", NULL, vc_report_narrow(s, p, r));
	report_rerun(e, s);
	vc_emit_end(e);
}

void vc_report_trace(struct vc_emit *e, const struct vc_session *s, const struct vc_plan *p,
		     const struct vc_result *r)
{
	const struct vc_device_census *d = s->rec->device;
	const char *conf = s->rec->meta->conf;

	vc_emit_object(e, "trace", NULL);
	vc_emit_text(e, "file", NULL, s->rec->path);
	vc_emit_text(e, "source", NULL, s->rec->source);
	vc_emit_uint(e, "device", NULL, d->device);
	vc_emit_uint(e, "events", NULL, d->events);
	vc_emit_uint(e, "allocs", NULL, d->allocs);
	vc_emit_uint(e, "frees", NULL, d->frees);
	vc_emit_text(e, "start", NULL, d->has_start ? "warm" : "cold");
	vc_emit_uint(e, "preexisting", NULL, d->preexisting);
	vc_emit_bool(e, "ends_in_oom", NULL, d->ends_in_oom);
	vc_emit_object(e, "params", NULL);
	for (size_t i = 0; i < s->rec->meta->params; i++)
		vc_emit_real(e, s->rec->meta->param[i].name, NULL, s->rec->meta->param[i].value);
	vc_emit_end(e);
	vc_emit_text(e, "torch", NULL, s->rec->torch[0] ? s->rec->torch : NULL);
	vc_emit_text(e, "torch_from", NULL, s->rec->torch_from);
	vc_emit_text(e, "conf", NULL, conf ? conf : "");
	vc_emit_uint(e, "time_ns", NULL, s->rec->census.last_ns);
	vc_report_trust(e, s, p, r);
	vc_emit_end(e);
}

void vc_report_fidelity(struct vc_emit *e, const struct vc_session *s)
{
	const struct vc_fidelity *f = &s->rec->fidelity;

	vc_emit_object(e, "fidelity", NULL);
	vc_emit_bool(e, "checked", NULL, f->checked);
	vc_emit_bool(e, "exact", NULL, f->exact);
	vc_emit_uint(e, "events_compared", NULL, f->events_compared);
	vc_emit_uint(e, "segments_recorded", NULL, f->segments_recorded);
	vc_emit_uint(e, "segments_simulated", NULL, f->segments_simulated);
	vc_emit_uint(e, "address_mismatches", NULL, f->address_mismatches);
	vc_emit_uint(e, "final_mismatches", NULL, f->final_mismatches);
	if (f->diverged) {
		vc_emit_object(e, "first_divergence", NULL);
		if (f->diverged_event == UINT64_MAX)
			vc_emit_null(e, "event", NULL);
		else
			vc_emit_uint(e, "event", NULL, f->diverged_event);
		vc_emit_text(e, "why", NULL, f->diverged_why);
		vc_emit_end(e);
	} else {
		vc_emit_null(e, "first_divergence", NULL);
	}
	vc_emit_end(e);
}

struct line { const char *key, *label; uint64_t bytes; bool shown; };
enum { CONTEXT = 4 /* of these lines */ };

void vc_report_ledger(struct vc_emit *e, const struct vc_plan *p, const struct vc_result *r,
		      bool people)
{
	const struct vc_stats *t = &r->stats;
	uint64_t used = t->peak_used, cap = p->capacity;
	char reserved[64];
	const struct line line[] = {
		{ "allocated", "    tensors (allocated)", t->allocated_at_used, true },
		/* what is reserved may reach its peak by a last small segment, long after the
		 * tensors that most of it is there for */
		{ NULL, "      at most, at another moment", t->peak_allocated,
		 t->peak_allocated / 2 > t->allocated_at_used },
		{ "cached", "    cached, not in use", t->reserved_at_used - t->allocated_at_used,
		 true },
		{ "reserved", reserved, t->reserved_at_used, true },
		{ "context", "  + CUDA context", p->context - p->libraries,
		  p->context > 0 },
		{ "libraries", "  + libraries", p->libraries, p->libraries > 0 },
		{ "others", "  + other processes", t->others_at_used, t->others_at_used > 0 },
		{ "used", "  = used on the device", used, true },
		{ "free", "    free", used < cap ? cap - used : 0, cap > 0 },
		{ "over", "    more than there is", cap && used > cap ? used - cap : 0,
		 cap && used > cap },
		{ "managed", "  managed, where there is room, at most", t->managed,
		  t->managed > 0 },
		{ "pinned_host", "  pinned on the host, at most", t->pinned, t->pinned > 0 },
	};

	snprintf(reserved, sizeof(reserved), "  = reserved by %s", r->info.owner);
	vc_emit_object(e, "ledger", people ? "  at the peak" : NULL);
	for (size_t i = 0; i < sizeof(line) / sizeof(*line); i++) {
		vc_emit_bytes(e, line[i].key, people && line[i].shown ? line[i].label : NULL,
			      line[i].bytes);
		if (people && i == CONTEXT && !p->context)
			vc_emit_text(e, NULL, line[i].label, "not known, not counted");
	}
	vc_emit_end(e);
}

/* Of the parts of a heap: all that is not a segment. */
static uint64_t bytes_of(const struct vc_heap_map *map, bool cached)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < map->n; i++)
		if (map->at[i].what != VC_X_SEGMENT && (map->at[i].what == VC_X_FREE) == cached)
			sum += map->at[i].size;
	return sum;
}

static void holder_row(struct vc_emit *e, uint64_t bytes, uint64_t blocks, const char *where)
{
	vc_emit_object(e, NULL, NULL);
	vc_emit_bytes(e, "bytes", "bytes", bytes);
	if (blocks)
		vc_emit_uint(e, "blocks", "blocks", blocks);
	else
		vc_emit_null(e, NULL, "blocks");
	vc_emit_text(e, "site", "where", where);
	vc_emit_end(e);
}

static void holder_table(struct vc_emit *e, const struct vc_result *r,
			 const struct vc_heap_map *map, const struct vc_holder *h, size_t n,
			 size_t shown)
{
	uint64_t rest = 0, blocks = 0, cached = bytes_of(map, true);
	char line[512];

	vc_emit_array(e, NULL, r->last.n ? "Who holds the memory when it runs out:" :
					   "Who holds the memory at the peak:");
	for (size_t i = 0; i < n; i++) {
		if (i < shown && h[i].held != VC_HELD_OTHERS) {
			holder_row(e, h[i].bytes, h[i].blocks,
				   vc_holder_text(r->meta, &h[i], line, sizeof(line)));
			continue;
		}
		rest += h[i].bytes;
		blocks += h[i].blocks;
	}
	if (rest)
		holder_row(e, rest, blocks, "others");
	if (cached)
		holder_row(e, cached, 0, "the cache, not in use");
	snprintf(line, sizeof(line), "= reserved by %s", r->info.owner);
	holder_row(e, bytes_of(map, false) + cached, 0, line);
	vc_emit_end(e);
}

void vc_report_holders(struct vc_emit *e, const struct vc_result *r, size_t shown)
{
	const struct vc_heap_map *map = vc_result_heap(r);
	struct vc_holder *h = NULL;
	struct vc_error ignored;
	char line[512];
	bool placed = false;
	size_t n = 0;

	if (!map->n || vc_holders_of(map, r->meta, &h, &n, &ignored) < 0)
		return;
	for (size_t i = 0; i < n; i++)
		placed |= h[i].held == VC_HELD_AT;
	if (shown) {
		holder_table(e, r, map, h, n, shown);
	} else {
		vc_emit_array(e, "holders", NULL);
		for (size_t i = 0; i < n; i++)
			holder_row(e, h[i].bytes, h[i].blocks,
				   vc_holder_text(r->meta, &h[i], line, sizeof(line)));
		vc_emit_end(e);
	}
	if (shown && !placed && r->meta->how[VC_CAP_STACKS] == VC_HOW_ABSENT)
		vc_emit_line(e, "  (no call sites in the recording: --stacks py of record and "
				"dryrun has them)");
	free(h);
}

/* The turns of one kind together. */
static void turn_row(struct vc_emit *e, const struct vc_result *r, size_t first)
{
	const struct vc_turn_at *of = &r->turns.at[first];
	struct vc_turn_at most = { 0 };
	uint64_t times = 0;
	char who[160];

	for (size_t i = first; i < r->turns.n; i++) {
		const struct vc_turn_at *t = &r->turns.at[i];

		if (t->label != of->label || t->asleep != of->asleep)
			continue;
		times++;
		most.allocated = t->allocated > most.allocated ? t->allocated : most.allocated;
		most.reserved = t->reserved > most.reserved ? t->reserved : most.reserved;
		most.stuck = t->stuck > most.stuck ? t->stuck : most.stuck;
		most.used = t->used > most.used ? t->used : most.used;
		most.away = t->away > most.away ? t->away : most.away;
	}
	snprintf(who, sizeof(who), "%s%s%s", vc_label_text(r->meta, of->label),
		 of->label ? ", " : "", of->asleep ? "asleep" : "awake");
	vc_emit_object(e, NULL, NULL);
	vc_emit_bytes(e, "used", "used", most.used);
	vc_emit_bytes(e, "reserved", "reserved", most.reserved);
	vc_emit_bytes(e, "allocated", "allocated", most.allocated);
	vc_emit_bytes(e, "stuck", "stuck", most.stuck);
	vc_emit_bytes(e, "given_back", "given back", most.away);
	vc_emit_uint(e, "times", "times", times);
	vc_emit_text(e, "turn", "turn", who);
	vc_emit_end(e);
}

void vc_report_turns(struct vc_emit *e, const struct vc_result *r, bool people)
{
	const char *title = "Turns on the card, the most of each (stuck: free beside what lives):";

	if (people && !r->turns.n)
		return;
	vc_emit_array(e, people ? NULL : "turns", people ? title : NULL);
	for (size_t i = 0; i < r->turns.n; i++) {
		const struct vc_turn_at *t = r->turns.at;
		size_t k = 0;

		while (t[k].label != t[i].label || t[k].asleep != t[i].asleep)
			k++;
		if (k == i)
			turn_row(e, r, i);
	}
	vc_emit_end(e);
}

static void report_plan(struct vc_emit *e, const struct vc_plan *p, const struct vc_result *r)
{
	vc_emit_text(e, "model", "model", p->model->name);
	vc_emit_text(e, "params", p->params[0] ? "parameters" : NULL, p->params);
	vc_emit_text(e, "torch", "torch", p->torch[0] ? p->torch : NULL);
	vc_emit_text(e, "conf", "settings", p->conf[0] || !p->model->versions ? p->conf : "");
	vc_emit_text(e, "gpu", "card", p->card ? p->card->name : NULL);
	if (p->capacity)
		vc_emit_bytes(e, "capacity", "capacity", p->capacity);
	else
		vc_emit_null(e, "capacity", NULL);
	if (r->info.has_limit)
		vc_emit_bytes(e, "limit", "limit", r->info.limit);
	else
		vc_emit_null(e, "limit", NULL);
	vc_emit_text(e, "start", "start", start_name(&r->info));
}

void vc_report_run(struct vc_emit *e, const struct vc_session *s, const struct vc_plan *p,
		   const struct vc_result *r)
{
	report_plan(e, p, r);
	vc_result_emit_peaks(e, r);
	vc_report_ledger(e, p, r, false);
	vc_result_emit_counts(e, r);
	if (r->peak.n) { /* the heap at the peak was looked at */
		vc_result_emit_unused(e, &r->fragmentation);
		vc_pins_report(e, r->meta, &r->peak, NULL);
	}
	vc_result_emit_answer(e, r);
	vc_result_emit_oom(e, r);
	vc_result_emit_moment(e, r);
	vc_findings_emit(e, r);
	vc_time_report(e, r);
}
