/* SPDX-License-Identifier: Apache-2.0 */
/* reduce.c - a run as columns of half a pixel. */
#include "visualize/reduce.h"

#include "common/vec.h"
#include "common/format.h"
#include "visualize/svg.h"

bool vc_curve_has_times(const struct vc_result *r)
{
	return r->curve.n && r->stats.has_times &&
		r->curve.at[r->curve.n - 1].last_ns > r->curve.at[0].first_ns;
}

/* Buckets until the failure that ended the run: a program that dies gives back what it holds, and
 * nothing is asked for any more. All where the run went on. */
static size_t drawn(const struct vc_curve *v)
{
	size_t n = v->n;

	while (n > 1 && !v->at[n - 1].ooms &&
	       v->at[n - 1].allocated_max <= v->at[n - 2].allocated_min)
		n--;
	return n && v->at[n - 1].ooms ? n : v->n;
}

/* When the work is done: kernels run on after the last event, but not after a failure. */
static uint64_t done_ns(const struct vc_result *r, const struct vc_bucket *last)
{
	uint64_t end = last->last_ns;

	for (size_t i = 0; i < r->steps.kernels && !r->oom.happened; i++) {
		const struct vc_kernel_at *k = &r->steps.kernel[i];

		end = k->start_ns + k->duration_ns > end ? k->start_ns + k->duration_ns : end;
	}
	return end;
}

/* Whether half of what happens would stand in a twentieth of the width. */
static bool is_crowded(const struct vc_result *r)
{
	const struct vc_curve *v = &r->curve;
	size_t n = drawn(v), b = 0;
	uint64_t events = v->at[n - 1].last_event - v->at[0].first_event;
	uint64_t span = done_ns(r, &v->at[n - 1]) - v->at[0].first_ns;

	for (size_t a = 0; a < n; a++) {
		while (b < n && v->at[b].last_ns - v->at[a].first_ns <= span / 20)
			b++;
		if (b > a && v->at[b - 1].last_event - v->at[a].first_event >= events / 2)
			return true;
		b = b > a ? b : a + 1;
	}
	return false;
}

bool vc_curve_reads_by_time(const struct vc_result *r)
{
	return vc_curve_has_times(r) && !is_crowded(r);
}

uint64_t vc_curve_time(const struct vc_result *r, uint64_t event)
{
	const struct vc_curve *v = &r->curve;
	size_t lo = vc_first_from(v->at, v->n, last_event, event);

	if (r->oom.happened && event == r->oom.event && r->oom.time_ns)
		return r->oom.time_ns;
	if (event == r->stats.peak_event && r->stats.peak_time_ns)
		return r->stats.peak_time_ns;
	if (lo == v->n)
		return v->n ? v->at[v->n - 1].last_ns : 0;
	const struct vc_bucket *b = &v->at[lo];
	if (event == b->peak_event && b->peak_ns)
		return b->peak_ns;
	if (event <= b->first_event || b->last_event == b->first_event)
		return b->first_ns;
	return b->first_ns + vc_muldiv(event - b->first_event, b->last_ns - b->first_ns,
				       b->last_event - b->first_event);
}

uint32_t vc_columns_x(const struct vc_columns *k, uint64_t at)
{
	if (at <= k->first)
		return 0;
	if (at - k->first >= k->span)
		return k->width;
	return (uint32_t)vc_muldiv_down(at - k->first, k->width, k->span);
}

char *vc_moment_text(const struct vc_result *r, bool by_time, uint64_t event, char *buf)
{
	char text[VC_FORMAT];
	uint64_t at, first = r->curve.n ? r->curve.at[0].first_ns : 0;

	if (!by_time) {
		snprintf(buf, VC_FORMAT, "event %s", vc_format_count(event, text));
		return buf;
	}
	at = vc_curve_time(r, event);
	return vc_format_ns(at > first ? at - first : 0, buf);
}

/* Bytes by slot at each bucket's peak: every life adds to the buckets whose peak it lived
 * through. */
static uint64_t (*layers_of_lives(const struct vc_classes *c, struct vc_error *err))[VC_SLOTS]
{
	const struct vc_curve *v = &c->r->curve;
	uint64_t (*sum)[VC_SLOTS] = calloc(v->n + 1, sizeof(*sum));

	if (!sum) {
		vc_nomem(err, "the layers of the picture");
		return NULL;
	}
	for (size_t i = 0; i < c->r->lives.n; i++) {
		const struct vc_life *l = &c->r->lives.at[i];
		uint64_t edge[2] = { l->at_start ? 0 : l->born, l->died };
		for (int e = 0; e < 2; e++) {
			size_t lo = vc_first_from(v->at, v->n, peak_event, edge[e]);
			/* Differences first; unsigned arithmetic wraps back when they are summed.
			 */
			sum[lo][c->of_life[i]] += e ? 0 - l->size : l->size;
		}
	}
	for (size_t b = 1; b < v->n; b++)
		for (int s = 0; s < VC_SLOTS; s++)
			sum[b][s] += sum[b - 1][s];
	return sum;
}

static void layers_of_bucket(const struct vc_bucket *b, uint64_t layer[VC_SLOTS])
{
	memset(layer, 0, VC_SLOTS * sizeof(*layer));
	layer[VC_SLOT_WEIGHTS] = b->layer[VC_LIFE_PERSISTENT];
	layer[VC_SLOT_GRADIENTS] = b->layer[VC_LIFE_STEP];
	layer[VC_SLOT_ACTIVATIONS] = b->layer[VC_LIFE_PHASE];
	layer[VC_SLOT_TEMPORARIES] = b->layer[VC_LIFE_SHORT];
}

/* Make the layers sum to `total`: what is missing is "other", what is too much comes off the top.
 */
static void settle(uint64_t layer[VC_SLOTS], uint64_t total)
{
	uint64_t sum = 0;

	for (int s = 0; s < VC_SLOTS; s++) {
		if (layer[s] > total - sum)
			layer[s] = total - sum;
		sum += layer[s];
	}
	layer[VC_SLOT_OTHER] += total - sum;
}

static void raise(uint64_t *most, uint64_t to)
{
	*most = to > *most ? to : *most;
}

static void merge(struct vc_column *into, const struct vc_column *c)
{
	if (c->allocated_max > into->allocated_max) {
		into->allocated_max = c->allocated_max;
		into->bucket = c->bucket;
		memcpy(into->layer, c->layer, sizeof(c->layer));
	}
	if (c->allocated_min < into->allocated_min)
		into->allocated_min = c->allocated_min;
	raise(&into->reserved_max, c->reserved_max);
	if (c->reserved_min < into->reserved_min)
		into->reserved_min = c->reserved_min;
	raise(&into->stranded, c->stranded);
	raise(&into->pinned, c->pinned);
	raise(&into->managed, c->managed);
	into->flushes += c->flushes;
	into->ooms += c->ooms;
}

static void add(struct vc_columns *k, const struct vc_column *c, bool in_range)
{
	struct vc_column *last = k->n ? &k->at[k->n - 1] : NULL;

	if (!in_range)
		return;
	if (last && last->from == c->from)
		merge(last, c);
	else {
		if (last)
			last->to = c->from;
		k->at[k->n++] = *c;
	}
}

static void summarise(struct vc_columns *k)
{
	for (size_t i = 0; i < k->n; i++) {
		const struct vc_column *c = &k->at[i];
		if (c->allocated_max > k->allocated) {
			k->allocated = c->allocated_max;
			k->top = i;
		}
		raise(&k->reserved, c->reserved_max);
		raise(&k->stranded, c->stranded);
		raise(&k->pinned, c->pinned);
		raise(&k->managed, c->managed);
		for (int s = 0; s < VC_SLOTS; s++)
			k->used[s] = k->used[s] || c->layer[s];
	}
}

/* Where the last column ends: beyond the run there is nothing. */
static void end_columns(struct vc_columns *k, const struct vc_result *r, const struct vc_bucket *z)
{
	struct vc_column *last = k->n ? &k->at[k->n - 1] : NULL;
	uint32_t end = vc_columns_x(k, k->by_time ? done_ns(r, z) : z->last_event + 1);

	if (last)
		last->to = end > last->from ? end : last->from + 1;
}

/* Where the x axis begins and how long it is. */
static void set_range(struct vc_columns *k, const struct vc_result *r, const struct vc_bucket *z,
		      const struct vc_range *range)
{
	const struct vc_bucket *a = &r->curve.at[0];

	k->first = k->by_time ? a->first_ns : a->first_event;
	k->span = k->by_time ? done_ns(r, z) - a->first_ns : z->last_event - a->first_event + 1;
	if (range && range->span) {
		k->first = range->first;
		k->span = range->span;
	}
	if (!k->span)
		k->span = 1;
}

int vc_columns_init(struct vc_columns *k, const struct vc_classes *c, bool by_time, uint32_t width,
		    const struct vc_range *range, struct vc_error *err)
{
	const struct vc_curve *v = &c->r->curve;
	bool from_lives = c->of_life && c->r->lives.n && (c->categories || !c->r->lives.dropped);

	*k = (struct vc_columns){ .by_time = by_time, .width = width ? width : 1 };
	width = k->width;
	if (!v->n)
		return VC_OK;
	uint64_t (*sum)[VC_SLOTS] = from_lives ? layers_of_lives(c, err) : NULL;
	k->at = malloc((v->n + 1) * sizeof(*k->at));
	if (!k->at || (from_lives && !sum)) {
		free(sum);
		vc_columns_fini(k);
		return vc_nomem(err, "the columns of the picture");
	}
	size_t n = drawn(v);
	set_range(k, c->r, &v->at[n - 1], range);
	for (size_t i = 0; i < n; i++) {
		const struct vc_bucket *b = &v->at[i];
		uint64_t at = by_time ? b->first_ns : b->first_event;
		uint32_t from = vc_columns_x(k, at);
		/* What happens at the very last instant belongs to the last column. */
		struct vc_column x = { from < width ? from : width - 1, 0, b->allocated_min,
			b->allocated_max, b->reserved_min, b->reserved_max, b->stranded_max,
			b->pinned_max, b->managed_max, { 0 },
			b->flushes, b->ooms, (uint32_t)i };
		if (sum)
			memcpy(x.layer, sum[i], sizeof(x.layer));
		else
			layers_of_bucket(b, x.layer);
		for (int s = 0; s < VC_SLOTS; s++)
			k->layered = k->layered || x.layer[s];
		settle(x.layer, b->allocated_max);
		uint64_t next = i + 1 < n ? (by_time ? v->at[i + 1].first_ns :
						v->at[i + 1].first_event) : UINT64_MAX;
		add(k, &x, next > k->first && (at < k->first + k->span || !range || !range->span));
	}
	free(sum);
	summarise(k);
	end_columns(k, c->r, &v->at[n - 1]);
	return VC_OK;
}

void vc_columns_fini(struct vc_columns *k)
{
	free(k->at);
	*k = (struct vc_columns){ 0 };
}
