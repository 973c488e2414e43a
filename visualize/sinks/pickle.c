/* SPDX-License-Identifier: Apache-2.0 */
/* pickle.c - a PyTorch memory snapshot of the run, for pytorch.org/memory_viz,
 * torch.cuda._memory_viz and everything else that reads snapshots (vramcast too).
 *
 * The viewer's JavaScript reader sets the limits: protocol 4, only plain opcodes, at most a
 * thousand items in one batch, whole numbers below 2^53, at least one category "unknown" where
 * there are any. Which keys there are follows the PyTorch version that was replayed. */

#include "common/event.h"
#include "common/io.h"
#include "common/site.h"
#include "common/vec.h"
#include "visualize/pickler.h"
#include "visualize/record.h"
#include "visualize/sink.h"

struct config { uint64_t events, category; };
enum { BY_LABEL, BY_LIFETIME };

static const struct vc_param params[] = {
	{ "events", VC_P_UINT, offsetof(struct config, events), "100000",
	  "most events to write, the last ones (0: all; the viewer slows down above 100,000)",
	  NULL },
	{ "category", VC_P_ENUM, offsetof(struct config, category), "label",
	  "colours in the viewer: labels of the recording, or how long a block lives",
	  "label,lifetime" },
	VC_PARAM_END };

struct writer {
	struct vc_pickler p;
	const struct config *cfg;
	const struct vc_result *r;  /* of the device being written */
	unsigned minor;             /* 9 for torch 2.9: the layout to write */
	uint32_t *site;             /* memo number + 1 of the list of frames, by site */
	uint32_t *node;             /* memo number + 1 of one frame, by site */
	uint8_t *lifetime; size_t lifetimes; /* 1 + enum vc_lifetime by block id */
	bool times, categories;
};

static unsigned minor_of(const char *torch)
{
	unsigned major = 0, minor = 0;

	/* other models have no layout of their own: that of 2.9, which every viewer knows */
	return torch && sscanf(torch, "%u.%u", &major, &minor) == 2 && major == 2 ? minor : 9;
}

static uint64_t handle(const struct writer *w, uint32_t stream)
{
	const struct vc_meta *m = w->r->meta;

	return m && stream < m->streams ? m->stream[stream] : 0;
}

/* ---- call stacks, each written once ---- */

static void frame(struct writer *w, uint32_t at)
{
	const struct vc_meta *m = w->r->meta;
	const struct vc_frame *f = &m->frame[at];

	if (vc_pickle_again(&w->p, &w->node[at]))
		return;
	vc_pickle_dict(&w->p);
	w->node[at] = vc_pickle_memo(&w->p);
	vc_pickle_mark(&w->p);
	vc_pickle_pair_text(&w->p, "filename", vc_label_text(m, f->file));
	vc_pickle_pair_uint(&w->p, "line", f->line);
	vc_pickle_pair_text(&w->p, "name", vc_label_text(m, f->function));
	vc_pickle_setitems(&w->p);
}

static void frames(struct writer *w, const char *key, uint32_t site)
{
	const struct vc_meta *m = w->r->meta;
	struct vc_batch b;

	vc_pickle_word(&w->p, key);
	if (!m || site >= m->frames)
		site = 0;
	if (vc_pickle_again(&w->p, &w->site[site]))
		return;
	vc_batch_begin(&b, &w->p);
	w->site[site] = b.memo;
	for (uint32_t at = site; at; at = m->frame[at].parent < at ? m->frame[at].parent : 0) {
		frame(w, at);
		vc_batch_item(&b);
	}
	vc_batch_end(&b);
}

/* ---- segments ---- */

/* torch 2.0 has who asked for a block in a list of its own, the newest first. */
static void block_history(struct writer *w, const struct vc_heap_extent *x)
{
	struct vc_batch b;

	vc_pickle_word(&w->p, "history");
	vc_batch_begin(&b, &w->p);
	vc_pickle_dict(&w->p);
	vc_pickle_mark(&w->p);
	vc_pickle_pair_uint(&w->p, "addr", x->addr);
	vc_pickle_pair_uint(&w->p, "real_size", x->requested);
	frames(w, "frames", x->site);
	vc_pickle_setitems(&w->p);
	vc_batch_item(&b);
	vc_batch_end(&b);
}

static void block(struct writer *w, const struct vc_heap_extent *x)
{
	static const char *const state[] = { "", "active_allocated", "active_pending_free",
					    "inactive" };

	vc_pickle_dict(&w->p);
	vc_pickle_mark(&w->p);
	vc_pickle_pair_uint(&w->p, "size", x->size);
	vc_pickle_pair_text(&w->p, "state", state[x->what & 3]);
	if (w->minor) {
		vc_pickle_pair_uint(&w->p, "address", x->addr);
		vc_pickle_pair_uint(&w->p, "requested_size", x->requested);
		frames(w, "frames", x->site);
	} else if (x->what != 3) {
		block_history(w, x);
	}
	vc_pickle_setitems(&w->p);
}

struct sums { uint64_t allocated, active, requested; size_t end; };

static struct sums sums_of(const struct vc_heap_map *m, size_t segment)
{
	struct sums s = { .end = segment + 1 };

	for (; s.end < m->n && m->at[s.end].what; s.end++) {
		const struct vc_heap_extent *x = &m->at[s.end];

		s.allocated += x->what == 1 ? x->size : 0;
		s.active += x->what != 3 ? x->size : 0;
		s.requested += x->what != 3 ? x->requested : 0;
	}
	return s;
}

static size_t segment(struct writer *w, size_t at)
{
	const struct vc_heap_map *m = &w->r->history.end;
	const struct vc_heap_extent *x = &m->at[at];
	struct sums s = sums_of(m, at);
	struct vc_batch b;

	vc_pickle_dict(&w->p);
	vc_pickle_mark(&w->p);
	vc_pickle_pair_uint(&w->p, "device", w->r->info.device);
	vc_pickle_pair_uint(&w->p, "address", x->addr);
	vc_pickle_pair_uint(&w->p, "total_size", x->size);
	vc_pickle_pair_uint(&w->p, "allocated_size", s.allocated);
	vc_pickle_pair_uint(&w->p, "active_size", s.active);
	vc_pickle_pair_uint(&w->p, "requested_size", s.requested);
	vc_pickle_pair_uint(&w->p, "stream", handle(w, x->stream));
	vc_pickle_pair_text(&w->p, "segment_type", x->small ? "small" : "large");
	if (w->minor >= 3 || x->pool) {
		vc_pickle_word(&w->p, "segment_pool_id");
		vc_pickle_two(&w->p, x->pool >> 32, x->pool & UINT32_MAX);
	}
	if (w->minor >= 1) {
		vc_pickle_word(&w->p, "is_expandable");
		vc_pickle_bool(&w->p, x->expandable);
	}
	frames(w, "frames", x->site);
	vc_pickle_word(&w->p, "blocks");
	vc_batch_begin(&b, &w->p);
	for (size_t i = at + 1; i < s.end; i++) {
		block(w, &m->at[i]);
		vc_batch_item(&b);
	}
	vc_batch_end(&b);
	vc_pickle_setitems(&w->p);
	return s.end;
}

/* ---- events ---- */

static const char *category_of(const struct writer *w, const struct vc_history_entry *e)
{
	uint8_t known = e->id < w->lifetimes ? w->lifetime[e->id] : 0;

	if (e->action != VC_HIST_ALLOC)
		return "unknown";
	if (w->cfg->category == BY_LIFETIME)
		return known ? vc_lifetime_name(known - 1) : "unknown";
	return e->label ? vc_label_text(w->r->meta, e->label) : "unknown";
}

static void event(struct writer *w, const struct vc_history_entry *e)
{
	static const char *const action[] = {
		"alloc",        "free_requested", "free_completed", "segment_alloc",
		"segment_free", "segment_map",    "segment_unmap",  "oom" };
	const struct vc_meta *m = w->r->meta;

	vc_pickle_dict(&w->p);
	vc_pickle_mark(&w->p);
	vc_pickle_pair_text(&w->p, "action", action[e->action]);
	vc_pickle_pair_uint(&w->p, e->action == VC_HIST_OOM ? "device_free" : "addr", e->addr);
	vc_pickle_pair_uint(&w->p, "size", e->size);
	vc_pickle_pair_uint(&w->p, "stream", handle(w, e->stream));
	if (w->times)
		vc_pickle_pair_uint(&w->p, "time_us",
				    e->time_ns ? (m->start_unix_ns + e->time_ns) / 1000 : 0);
	if (w->minor >= 8)
		vc_pickle_pair_text(&w->p, "compile_context", "N/A");
	if (w->minor >= 10)
		vc_pickle_pair_text(&w->p, "user_metadata", vc_label_text(m, e->label));
	if (w->categories && (e->action == VC_HIST_ALLOC || e->action >= VC_HIST_SEGMENT_ALLOC))
		vc_pickle_pair_text(&w->p, "category", category_of(w, e));
	frames(w, "frames", e->site);
	if (w->minor >= 12)
		frames(w, "forward_frames", 0);
	vc_pickle_setitems(&w->p);
}

/* The first entry to write: a free must not be cut from its completion. */
static size_t first_entry(const struct writer *w)
{
	const struct vc_history *h = &w->r->history;
	size_t first = w->cfg->events && h->n > w->cfg->events ? h->n - (size_t)w->cfg->events : 0;

	while (first && first < h->n && h->at[first].action == VC_HIST_FREE_COMPLETED)
		first++;
	return first;
}

static void trace(struct writer *w)
{
	const struct vc_history *h = &w->r->history;
	struct vc_batch b;

	vc_batch_begin(&b, &w->p);
	for (size_t i = first_entry(w); i < h->n; i++) {
		event(w, &h->at[i]);
		vc_batch_item(&b);
	}
	vc_batch_end(&b);
}

/* ---- the rest of the document ---- */

static void note(struct writer *w, struct vc_batch *b, const struct vc_mark_at *k)
{
	const struct vc_meta *m = w->r->meta;

	vc_pickle_dict(&w->p);
	vc_pickle_mark(&w->p);
	vc_pickle_pair_text(&w->p, "name", vc_label_text(m, k->label));
	vc_pickle_pair_text(&w->p, "stage", k->kind == VC_MARK_END ? "END" : "START");
	vc_pickle_pair_uint(&w->p, "device", w->r->info.device);
	vc_pickle_pair_uint(&w->p, "time_us", (m->start_unix_ns + k->time_ns) / 1000);
	vc_pickle_setitems(&w->p);
	vc_batch_item(b);
}

static void notes(struct writer *w, struct vc_batch *b)
{
	const struct vc_steps *s = &w->r->steps;
	const struct vc_mark_at *open = NULL; /* a step lasts until the next one begins */

	for (size_t i = 0; w->times && i < s->marks; i++) {
		const struct vc_mark_at *k = &s->mark[i];

		if (k->kind == VC_MARK_STEP && open) {
			struct vc_mark_at end = *open;

			end.kind = VC_MARK_END;
			end.time_ns = k->time_ns;
			note(w, b, &end);
		}
		if (k->kind == VC_MARK_STEP)
			open = k;
		if (k->kind != VC_MARK_INSTANT)
			note(w, b, k);
	}
}

/* The number behind "key:" in a settings string. */
static bool setting(const char *conf, const char *key, double *value)
{
	const char *at = strstr(conf, key);

	return at && sscanf(at + strlen(key), " : %lf", value) == 1;
}

static void settings(struct writer *w)
{
	const char *conf = w->r->info.conf ? w->r->info.conf : "",
		   *e = strstr(conf, "expandable_segments");
	double mb = 0, gc = 0;
	bool split = setting(conf, "max_split_size_mb", &mb);

	setting(conf, "garbage_collection_threshold", &gc);
	vc_pickle_word(&w->p, "allocator_settings");
	vc_pickle_dict(&w->p);
	vc_pickle_mark(&w->p);
	vc_pickle_pair_text(&w->p, "PYTORCH_CUDA_ALLOC_CONF", conf);
	vc_pickle_word(&w->p, "max_split_size");
	vc_pickle_int(&w->p, split ? (int64_t)(mb * 1048576) : -1);
	vc_pickle_word(&w->p, "garbage_collection_threshold");
	vc_pickle_real(&w->p, gc);
	vc_pickle_word(&w->p, "expandable_segments");
	vc_pickle_bool(&w->p, e && strstr(e, "True") == e + strcspn(e, "Tt,"));
	if (w->minor >= 9) {
		vc_pickle_word(&w->p, "graph_capture_record_stream_reuse");
		vc_pickle_bool(&w->p,
			       strstr(conf, "graph_capture_record_stream_reuse:True") != NULL);
	}
	vc_pickle_setitems(&w->p);
}

/* ---- one device after the other ---- */

static int begin_device(struct writer *w, const struct vc_result *r, struct vc_error *err)
{
	size_t sites = r->meta ? r->meta->frames + 1 : 1;

	w->r = r;
	w->times = w->minor >= 2 && r->stats.has_times;
	w->categories = w->cfg->category == BY_LIFETIME;
	for (size_t i = 0; w->minor < 10 && i < r->history.n; i++)
		w->categories |= r->history.at[i].label != 0;
	if (!w->site) { /* all devices of a trace share the call stacks */
		w->site = calloc(sites, sizeof(*w->site));
		w->node = calloc(sites, sizeof(*w->node));
	}
	free(w->lifetime);
	w->lifetimes = 0;
	for (size_t i = 0; i < r->lives.n; i++)
		if (r->lives.at[i].id >= w->lifetimes)
			w->lifetimes = (size_t)r->lives.at[i].id + 1;
	w->lifetime = calloc(w->lifetimes + 1, 1);
	VC_HAVE(w->site && w->node && w->lifetime, "the snapshot", err);
	for (size_t i = 0; i < r->lives.n; i++)
		w->lifetime[r->lives.at[i].id] = (uint8_t)(r->lives.at[i].lifetime + 1);
	return VC_OK;
}

static const struct vc_result *of_device(const struct vc_result *runs, size_t n, unsigned device)
{
	for (size_t i = 0; i < n; i++)
		if (runs[i].info.device == device)
			return &runs[i];
	return NULL;
}

static int check(const struct vc_result *runs, size_t n, struct vc_error *err)
{
	for (size_t i = 0; i < n; i++) {
		if (of_device(runs, i, runs[i].info.device))
			return vc_fail(err, VC_EUSAGE, "a snapshot holds one run of a device, "
				       "not two; write one file for each");
		if (runs[i].meta != runs->meta)
			return vc_fail(err, VC_EUSAGE, "a snapshot holds the devices of one trace");
	}
	return VC_OK;
}

static int lists(struct writer *w, const struct vc_result *runs, size_t n, struct vc_error *err)
{
	unsigned devices = 0;
	struct vc_batch b;
	int r = VC_OK;

	for (size_t i = 0; i < n; i++)
		if (runs[i].info.device >= devices)
			devices = runs[i].info.device + 1u;
	vc_pickle_word(&w->p, "segments");
	vc_batch_begin(&b, &w->p);
	for (unsigned d = 0; d < devices && r == VC_OK; d++) {
		const struct vc_result *run = of_device(runs, n, d);

		if (!run)
			continue;
		r = begin_device(w, run, err);
		for (size_t i = 0; r == VC_OK && i < run->history.end.n;) {
			i = segment(w, i);
			vc_batch_item(&b);
		}
	}
	vc_batch_end(&b);
	vc_pickle_word(&w->p, "device_traces");
	vc_batch_begin(&b, &w->p);
	for (unsigned d = 0; d < devices && r == VC_OK; d++, vc_batch_item(&b)) {
		const struct vc_result *run = of_device(runs, n, d);

		r = run ? begin_device(w, run, err) : VC_OK;
		if (run && r == VC_OK)
			trace(w);
		else
			vc_pickle_list(&w->p);
	}
	vc_batch_end(&b);
	return r;
}

static void tail(struct writer *w, const struct vc_result *runs, size_t n)
{
	struct vc_batch b;
	bool cut = false;

	for (size_t i = 0; i < n; i++) {
		w->r = &runs[i];
		cut |= runs[i].history.dropped || first_entry(w);
	}
	w->r = runs;
	if (w->minor >= 3)
		settings(w);
	if (w->minor >= 5) {
		vc_pickle_word(&w->p, "external_annotations");
		vc_batch_begin(&b, &w->p);
		for (size_t i = 0; i < n; i++) {
			w->r = &runs[i];
			w->times = runs[i].stats.has_times;
			notes(w, &b);
		}
		vc_batch_end(&b);
	}
	if (cut) {
		vc_pickle_word(&w->p, "trace_alloc_overflowed");
		vc_pickle_bool(&w->p, true);
	}
}

static int pickle_write(const struct vc_result *runs, size_t n, const void *config,
			struct vc_output *out, struct vc_error *err)
{
	struct writer w = { .cfg = config, .minor = minor_of(n ? runs->info.torch : NULL) };
	int r = check(runs, n, err);

	VC_TRY(r);
	vc_pickle_open(&w.p, out);
	vc_pickle_dict(&w.p);
	vc_pickle_mark(&w.p);
	if (n)
		r = lists(&w, runs, n, err);
	if (n && r == VC_OK)
		tail(&w, runs, n);
	vc_pickle_setitems(&w.p);
	if (!vc_pickle_close(&w.p) && r == VC_OK)
		r = vc_nomem(err, "the snapshot");
	VC_FREE(w.site, w.node, w.lifetime);
	return r;
}

const struct vc_sink_type vc_sink_pickle = {
	.name = "pickle", .extension = "pickle",
	.summary = "a PyTorch memory snapshot of the run, for pytorch.org/memory_viz",
	.params = params, .config_size = sizeof(struct config),
	.observers = VC_READS("history", "lives", "steps"),
	.write = pickle_write,
};
