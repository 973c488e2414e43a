/* SPDX-License-Identifier: Apache-2.0 */
/* grew.c - see grew.h */
#include "simulator/advise/grew.h"

#include <stdarg.h>

#include "common/site.h"
#include "common/vec.h"

enum { BEHIND = 400, /* events between a workspace and the convolution that takes it */
       SHOWN = 6 };

static const struct { const char *key, *words; } kinds[VC_GREW_KINDS] = {
	{ "tensors", "tensors and what operators take" },
	{ "workspaces", "workspaces of convolutions" },
	{ "graphs", "buffers of compiled graphs" },
	{ "cache", "the allocator's cache, not in use" },
};

/* ---- one side ---- */

struct look {
	const struct vc_diff_side *s;
	const struct vc_meta *meta;
	bool *workspace;        /* by block: a convolution took it */
	uint64_t ids;
};

static bool in_file(const struct vc_meta *m, uint32_t site, const char *const *part)
{
	for (uint32_t at = site, depth = 0; at && at < m->frames && depth < 200;
	     at = m->frame[at].parent, depth++)
		for (size_t i = 0; part[i]; i++)
			if (strstr(vc_label_text(m, m->frame[at].file), part[i]))
				return true;
	return false;
}

static bool is_graph(const struct vc_meta *m, uint32_t site)
{
	static const char *const compiled[] = { "torchinductor", "<eval_with_key>", NULL };

	return in_file(m, site, compiled);
}

/* Convolutions say which block they were given. */
static int look_at(struct look *l, const struct vc_diff_side *s, struct vc_error *err)
{
	const struct vc_trace *t = s->trace;

	*l = (struct look){ .s = s, .meta = t->meta, .ids = t->meta->max_id };
	l->workspace = calloc(l->ids + 1, sizeof(*l->workspace));
	VC_HAVE(l->workspace, "the workspaces of a recording", err);
	for (size_t i = 0; i < t->n; i++) {
		const struct vc_event *ev = &t->ev[i];

		if (ev->kind != VC_EV_PLAN || !ev->size)
			continue;
		for (size_t k = i; k > 0 && i - k < BEHIND; k--)
			if (t->ev[k - 1].kind == VC_EV_ALLOC && t->ev[k - 1].addr == ev->addr &&
			    t->ev[k - 1].id <= l->ids) {
				l->workspace[t->ev[k - 1].id] = true;
				break;
			}
	}
	return VC_OK;
}

/* At the peak of what is reserved. */
static void add_kinds(struct vc_grew *g, const struct look *l, int k)
{
	const struct vc_heap_map *heap = &l->s->run->peak;

	for (size_t i = 0; i < heap->n; i++) {
		const struct vc_heap_extent *x = &heap->at[i];
		enum vc_grew_kind kind = x->what == 3 ? VC_GREW_CACHE :
			x->id <= l->ids && l->workspace[x->id] ? VC_GREW_WORKSPACE :
			is_graph(l->meta, x->site) ? VC_GREW_GRAPH : VC_GREW_TENSORS;

		if (x->what)
			g->kind[kind][k] += x->size;
	}
}

/* ---- convolutions ---- */

VC_COMPARE(by_key, struct vc_grew_convolution, strcmp(x->key, y->key))

static uint64_t change(const uint64_t v[2])
{
	return v[0] > v[1] ? v[0] - v[1] : v[1] - v[0];
}

VC_COMPARE(by_change, struct vc_grew_convolution,
	   VC_THEN(VC_ORDER(change(y->bytes), change(x->bytes)), strcmp(x->key, y->key)))

static int add_plans(struct vc_grew *g, const struct look *l, int k, struct vc_error *err)
{
	const struct vc_trace *t = l->s->trace;
	size_t skip = strlen(VC_LABEL_CUDNN);

	for (size_t i = 0; i < t->n; i++) {
		const char *label = vc_label_text(l->meta, t->ev[i].label), *rest;
		struct vc_grew_convolution c = { 0 };

		if (t->ev[i].kind != VC_EV_PLAN || strncmp(label, VC_LABEL_CUDNN, skip) != 0 ||
		    !(rest = strchr(label, ' ')))
			continue;
		if (!strcmp(rest + 1, VC_LABEL_GRAPH)) /* which of them nobody can tell */
			continue;
		snprintf(g->cudnn[k], sizeof(g->cudnn[k]), "%.*s", (int)(rest - label - (long)skip),
			 label + skip);
		c.key = strdup(rest + 1);
		if (!c.key || !vc_vec_one(g->conv, g->convs)) {
			free(c.key);
			return vc_nomem(err, "the convolutions of a recording");
		}
		c.bytes[k] = t->ev[i].size;
		c.times[k] = 1;
		c.site[k] = t->ev[i].site;
		g->conv[g->convs++] = c;
	}
	return VC_OK;
}

/* One of each; what is the same in both is nothing to be told. */
static void merge(struct vc_grew *g)
{
	size_t n = 0;

	if (!g->convs)
		return;
	vc_sort(g->conv, g->convs, sizeof(*g->conv), by_key);
	for (size_t i = 0; i < g->convs; i++) {
		struct vc_grew_convolution *to = n ? &g->conv[n - 1] : NULL, *c = &g->conv[i];

		if (!to || strcmp(to->key, c->key) != 0) {
			g->conv[n++] = *c;
			continue;
		}
		for (int k = 0; k < 2; k++) {
			to->bytes[k] = c->bytes[k] > to->bytes[k] ? c->bytes[k] : to->bytes[k];
			to->times[k] += c->times[k];
			to->site[k] = to->site[k] ? to->site[k] : c->site[k];
		}
		free(c->key);
	}
	g->convs = n;
	n = 0;
	for (size_t i = 0; i < g->convs; i++) {
		struct vc_grew_convolution *c = &g->conv[i];

		if (c->bytes[0] != c->bytes[1] || !c->times[0] != !c->times[1])
			g->conv[n++] = *c;
		else
			free(c->key);
	}
	g->convs = n;
	vc_sort(g->conv, n, sizeof(*g->conv), by_change);
}

/* ---- the place that changed most ---- */

static void find_largest(struct vc_grew *g, const struct look *l, const char *site, int k)
{
	const struct vc_trace *t = l->s->trace;
	char text[512];
	uint32_t last = 0;
	bool here = false;

	for (size_t i = 0; i < t->n; i++) {
		const struct vc_event *ev = &t->ev[i];

		if (ev->kind != VC_EV_ALLOC || ev->device != l->s->device || !ev->site)
			continue;
		if (ev->site != last) {
			vc_site_text(l->meta, ev->site, text, sizeof(text));
			here = !strcmp(text, site);
			last = ev->site;
		}
		if (here && ev->size > g->largest.size[k]) {
			g->largest.size[k] = ev->size;
			g->largest.site[k] = ev->site;
		}
	}
}

/* Nanoseconds by label. */
static uint64_t *kernel_times(const struct look *l)
{
	const struct vc_trace *t = l->s->trace;
	uint64_t *ns = calloc(l->meta->strings + 1, sizeof(*ns));

	for (size_t i = 0; ns && i < t->n; i++)
		if (t->ev[i].kind == VC_EV_KERNEL && t->ev[i].label < l->meta->strings)
			ns[t->ev[i].label] += t->ev[i].size + 1;
	return ns;
}

/* "vol2col_kernel" of "at::native::vol2col_kernel<c10, BFloat16>"; 0: a mangled name, which every
 * build has another of. */
static size_t short_name(const char *label, const char **from)
{
	size_t n = strcspn(label, "<(");

	*from = label;
	for (size_t i = 0; i < n; i++)
		if (label[i] == ':')
			*from = label + i + 1;
	return strncmp(label, "_Z", 2) ? n - (size_t)(*from - label) : 0;
}

static bool runs(const struct look *l, const uint64_t *ns, const char *name, size_t n)
{
	const char *other;

	for (uint32_t i = 1; i < l->meta->strings; i++)
		if (ns[i] && short_name(vc_label_text(l->meta, i), &other) == n &&
		    !strncmp(other, name, n))
			return true;
	return false;
}

static int find_kernels(struct vc_grew *g, const struct look l[2], struct vc_error *err)
{
	uint64_t *a = kernel_times(&l[0]), *b = kernel_times(&l[1]);
	size_t at = 0;

	if (!a || !b) {
		VC_FREE(a, b);
		return vc_nomem(err, "the kernels of a recording");
	}
	for (int shown = 0; shown < 3; shown++) {
		uint32_t best = 0;
		const char *name;

		for (uint32_t i = 1; i < l[1].meta->strings; i++) {
			size_t n = b[i] > b[best] ?
					   short_name(vc_label_text(l[1].meta, i), &name) : 0;

			if (n && !runs(&l[0], a, name, n))
				best = i;
		}
		if (!best)
			break;
		size_t n = short_name(vc_label_text(l[1].meta, best), &name);

		if (at < sizeof(g->kernels))
			at += (size_t)snprintf(g->kernels + at, sizeof(g->kernels) - at, "%s%.*s",
					       at ? ", " : "", (int)n, name);
		b[best] = 0;
	}
	VC_FREE(a, b);
	return VC_OK;
}

int vc_grew_init(struct vc_grew *g, const struct vc_diff_side side[2], const struct vc_diff *d,
		 struct vc_error *err)
{
	struct look l[2] = { 0 };
	int r = VC_OK;

	*g = (struct vc_grew){ 0 };
	for (int k = 0; k < 2 && r == VC_OK; k++) {
		r = look_at(&l[k], &side[k], err);
		if (r == VC_OK) {
			add_kinds(g, &l[k], k);
			r = add_plans(g, &l[k], k, err);
		}
		if (r == VC_OK && d->n)
			find_largest(g, &l[k], d->at[0].site, k);
	}
	if (r == VC_OK)
		r = find_kernels(g, l, err);
	merge(g);
	VC_FREE(l[0].workspace, l[1].workspace);
	if (r < 0)
		vc_grew_fini(g);
	return r;
}

void vc_grew_fini(struct vc_grew *g)
{
	for (size_t i = 0; i < g->convs; i++)
		free(g->conv[i].key);
	free(g->conv);
	*g = (struct vc_grew){ 0 };
}

/* ---- saying it ---- */

/* The frame that asked, be it of the framework: "conv.py:712 _conv_forward". */
static void asking(const struct vc_meta *m, uint32_t site, char *buf, size_t n)
{
	uint32_t at = vc_site_asking(m, site);
	const struct vc_frame *f = at && at < m->frames ? &m->frame[at] : NULL;
	const char *file = f ? vc_label_text(m, f->file) : "", *slash = strrchr(file, '/');

	snprintf(buf, n, "%s:%u %s", slash ? slash + 1 : file, f ? f->line : 0,
		 f ? vc_label_text(m, f->function) : "");
	if (!f)
		buf[0] = '\0';
}

static size_t add(char *buf, size_t n, size_t at, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static size_t add(char *buf, size_t n, size_t at, const char *fmt, ...)
{
	va_list args;

	if (at >= n)
		return at;
	va_start(args, fmt);
	at += (size_t)vsnprintf(buf + at, n - at, fmt, args);
	va_end(args);
	return at;
}

static size_t add_place(const struct vc_grew *g, const struct vc_diff_side side[2],
			const struct vc_diff *d, char *buf, size_t n, size_t at)
{
	const struct vc_diff_site *s = &d->at[0];
	char a[32], b[32], by[300];
	int k = g->largest.size[1] >= g->largest.size[0];

	at = add(buf, n, at, "%s holds %s at the peak, was %s",
		 *s->site ? s->site : "what has no call site", vc_bytes_text(s->live[1], b),
		 vc_bytes_text(s->live[0], a));
	asking(side[k].trace->meta, g->largest.site[k], by, sizeof(by));
	if (g->largest.size[0] != g->largest.size[1])
		at = add(buf, n, at, "; its largest request is %s%s%s, was %s",
			 vc_bytes_text(g->largest.size[1], b), *by ? " in " : "", by,
			 vc_bytes_text(g->largest.size[0], a));
	return add(buf, n, at, ".");
}

static size_t add_convolutions(const struct vc_grew *g, const char *const name[2], char *buf,
			       size_t n, size_t at)
{
	const struct vc_grew_convolution *c = &g->conv[0];
	uint64_t gone[2] = { 0 };
	char a[32], b[32];
	int k;

	if (!g->convs)
		return at;
	for (size_t i = 0; i < g->convs; i++)
		for (k = 0; k < 2; k++)
			gone[k] += g->conv[i].times[!k] ? 0 : g->conv[i].times[k];
	if (c->times[0] && c->times[1])
		return add(buf, n, at, " cuDNN convolution %s: workspace %s with %s (cuDNN %s), %s "
			   "with %s (cuDNN %s).", c->key, vc_bytes_text(c->bytes[1], b), name[1],
			   g->cudnn[1], vc_bytes_text(c->bytes[0], a), name[0], g->cudnn[0]);
	k = c->times[0] ? 0 : 1;
	at = add(buf, n, at, " Convolution %s (workspace %s) and %" PRIu64 " more are computed by "
		 "cuDNN %s with %s only", c->key, vc_bytes_text(c->bytes[k], a),
		 gone[k] - c->times[k], g->cudnn[k], name[k]);
	if (!k && g->kernels[0])
		at = add(buf, n, at, ", and by %s with %s", g->kernels, name[1]);
	return add(buf, n, at, ".");
}

char *vc_grew_words(const struct vc_grew *g, const struct vc_diff_side side[2],
		    const struct vc_diff *d, const char *const name[2], char *buf, size_t n)
{
	size_t at = 0;
	char by[32];

	buf[0] = '\0';
	if (d->n && d->at[0].live[0] != d->at[0].live[1])
		at = add_place(g, side, d, buf, n, at);
	at = add_convolutions(g, name, buf, n, at);
	for (int k = VC_GREW_GRAPH; k < VC_GREW_KINDS; k++) {
		uint64_t grew = g->kind[k][1] > g->kind[k][0] ? g->kind[k][1] - g->kind[k][0] : 0;

		if (grew > side[0].run->stats.peak_reserved / 100)
			at = add(buf, n, at, "%s%c%s: %s more.", at ? " " : "",
				 kinds[k].words[0] - 'a' + 'A', kinds[k].words + 1,
				 vc_bytes_text(grew, by));
	}
	return buf;
}

static void emit_two(struct vc_emit *e, const char *key, const uint64_t v[2])
{
	vc_emit_object(e, key, NULL);
	vc_emit_bytes(e, "a", NULL, v[0]);
	vc_emit_bytes(e, "b", NULL, v[1]);
	vc_emit_end(e);
}

static void emit_convolutions(struct vc_emit *e, const struct vc_grew *g)
{
	vc_emit_array(e, "convolutions", g->convs ? "Convolutions with another workspace, or that "
		      "cuDNN computes in one of both:" : NULL);
	for (size_t i = 0; i < g->convs && i < SHOWN; i++) {
		const struct vc_grew_convolution *c = &g->conv[i];

		vc_emit_object(e, NULL, NULL);
		for (int k = 0; k < 2; k++)
			vc_emit_bytes(vc_emit_known(e, c->times[k]),
				      k ? "workspace_b" : "workspace_a", k ? "B" : "A",
				      c->bytes[k]);
		vc_emit_text(e, "convolution", "convolution", c->key);
		vc_emit_end(e);
	}
	vc_emit_end(e);
}

void vc_grew_emit(struct vc_emit *e, const struct vc_grew *g)
{
	vc_emit_array(e, "kinds", "By kind, when most is reserved:");
	for (int k = 0; k < VC_GREW_KINDS; k++) {
		if (!g->kind[k][0] && !g->kind[k][1])
			continue;
		vc_emit_object(e, NULL, NULL);
		vc_emit_text(e, "kind", NULL, kinds[k].key);
		vc_emit_bytes(e, "a", "A", g->kind[k][0]);
		vc_emit_bytes(e, "b", "B", g->kind[k][1]);
		vc_emit_text(e, NULL, "kind", kinds[k].words);
		vc_emit_end(e);
	}
	vc_emit_end(e);
	emit_convolutions(e, g);
	vc_emit_text(e, "kernels_of_b_only", g->kernels[0] ? "kernels that only B runs" : NULL,
		     g->kernels);
	emit_two(e, "largest_request", g->largest.size);
}
