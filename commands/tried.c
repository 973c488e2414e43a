/* SPDX-License-Identifier: Apache-2.0 */
/* tried.c - see tried.h
 *
 * torch.backends.cudnn.benchmark is no candidate: what cuDNN finds fastest, only a card knows. */
#include "commands/tried.h"

#include "common/value.h"

#define AVOIDS 0.02 /* reserved within that of what it was: nothing is left of it */

/* What grew, as far as a candidate is for it. */
enum { CONVOLUTIONS = 1, TENSORS = 2, GRAPHS = 4, CACHE = 8 };

enum how { HOOK, RECOMPUTE, CONF, VARIABLE };

/* From cheap to costly. None changes what is computed, but for rounding. */
static const struct candidate {
	unsigned of;
	enum how how;
	const char *change; /* as the hook, -x, the allocator or the environment takes it */
	const char *setting;
} candidates[] = {
	{ CACHE, CONF, "expandable_segments:True",
	  "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True" },
	{ CONVOLUTIONS, HOOK, "channels_last",
	  "conv.to(memory_format=torch.channels_last) for each Conv2d, channels_last_3d for each "
	  "Conv3d" },
	{ CONVOLUTIONS, HOOK, "set:backends.cudnn.deterministic=True",
	  "torch.backends.cudnn.deterministic = True" },
	{ GRAPHS, HOOK, "set:_functorch.config.activation_memory_budget=0.5",
	  "torch._functorch.config.activation_memory_budget = 0.5" },
	{ GRAPHS, VARIABLE, "TORCH_COMPILE_DISABLE=1", "TORCH_COMPILE_DISABLE=1" },
	{ CONVOLUTIONS, HOOK, "set:backends.cudnn.enabled=False",
	  "torch.backends.cudnn.enabled = False" },
	{ TENSORS, RECOMPUTE, "checkpoint",
	  "torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False) for each layer" },
};

static bool grew_by(const struct vc_grew *g, enum vc_grew_kind kind, uint64_t least)
{
	return g->kind[kind][1] > g->kind[kind][0] + least;
}

static unsigned what_grew(const struct vc_grew *g, uint64_t all)
{
	bool conv = g->convs || grew_by(g, VC_GREW_WORKSPACE, all / 4);

	return (conv ? CONVOLUTIONS : 0u) |
	       (grew_by(g, VC_GREW_GRAPH, all / 4) ? GRAPHS : 0u) |
	       (grew_by(g, VC_GREW_CACHE, all / 4) ? CACHE : 0u) |
	       (!conv && grew_by(g, VC_GREW_TENSORS, all / 4) ? TENSORS : 0u);
}

/* ---- those that did not run: they would not the next time either ---- */

static bool has_failed(const struct vc_kept *bad, const char *setting)
{
	char path[VC_RERUN_PATH], line[300];
	FILE *f;
	bool found = false;

	vc_kept_beside(bad->path, VC_KEPT_FAILED, path);
	f = fopen(path, "r");
	while (f && !found && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		found = !strcmp(line, setting);
	}
	if (f)
		fclose(f);
	return found;
}

static void note_failed(const struct vc_kept *bad, const char *setting)
{
	char path[VC_RERUN_PATH];
	FILE *f;

	vc_kept_beside(bad->path, VC_KEPT_FAILED, path);
	f = fopen(path, "a");
	if (f) {
		fprintf(f, "%s\n", setting);
		fclose(f);
	}
}

/* ---- one of them ---- */

static bool is_among(const struct vc_value *list, const char *name)
{
	const struct vc_value *v = list ? list->first : NULL;

	while (v && strcmp(v->text, name))
		v = v->next;
	return v != NULL;
}

static const struct vc_value *unknown_of(const struct vc_value *report)
{
	const struct vc_value *runs = vc_value_get(report, "runs");

	return vc_value_get(runs ? runs->first : NULL, "unknown");
}

/* Does the dry run know all that it knows of one of both? */
static bool is_as_sure(const char *now, const struct vc_two *two)
{
	const char *const of[3] = { now, two->x[0].s.rec->path, two->x[1].s.rec->path };
	struct vc_value *report[3];
	char path[VC_RERUN_PATH];
	bool sure = true;

	for (int i = 0; i < 3; i++) {
		vc_kept_beside(of[i], ".json", path);
		report[i] = vc_value_load(path, &(struct vc_error){ 0 });
		sure &= report[i] != NULL;
	}
	const struct vc_value *list = unknown_of(report[0]);
	for (const struct vc_value *v = list ? list->first : NULL; v && sure; v = v->next)
		sure = is_among(unknown_of(report[1]), v->text) ||
		       is_among(unknown_of(report[2]), v->text);
	for (int i = 0; i < 3; i++)
		vc_value_free(report[i]);
	return sure;
}

/* What the grid is to do on top, out of the candidate. */
static int open_change(const struct candidate *c, const struct vc_side *x, char text[200],
		       struct vc_made_changes *made, struct vc_grid_change *out,
		       struct vc_error *err)
{
	const char *one = c->change;
	const struct vc_list list = { &one, 1 };
	const struct vc_run_wish wish = { .of = (struct vc_recording *)(uintptr_t)x->s.rec,
					  .made = &list };
	char *equals;

	*made = (struct vc_made_changes){ 0 };
	*out = (struct vc_grid_change){ .words = c->setting };
	snprintf(text, 200, "%s", c->change);
	equals = strchr(text, '=');
	if (c->how == CONF) {
		out->conf = c->change;
	} else if (c->how == VARIABLE && equals) {
		*equals = '\0';
		out->variable = text;
		out->value = equals + 1;
	} else {
		out->made = made;
		if (c->how == RECOMPUTE)
			return vc_made_open(made, &wish, err);
		made->change = strdup(c->change);
		VC_HAVE(made->change, "a setting that is tried", err);
	}
	return VC_OK;
}

static int try_one(struct vc_advised *t, const struct candidate *c, const struct vc_grid *grid,
		   size_t i, const struct vc_kept *bad, const struct vc_two *two,
		   struct vc_error *err)
{
	struct vc_tried *to = &t->at[t->n];
	struct vc_made_changes made;
	struct vc_grid_change change;
	struct vc_grid one = *grid;
	struct vc_grid_point point = { .done = false };
	struct vc_error own = { 0 };
	char text[200], peak[32];
	int r = open_change(c, &two->x[1], text, &made, &change, &own);

	one.change = &change;
	if (r == VC_OK)
		r = vc_grid_run_one(&one, i, &point, &own);
	vc_made_close(&made);
	if (r < 0 && own.status == VC_EIO) { /* an interrupt, of us too */
		*err = own;
		return r;
	}
	if (r < 0 || point.why[0]) {
		note_failed(bad, c->setting);
		return VC_OK;
	}
	*to = (struct vc_tried){ .setting = c->setting, .reserved = point.kept.reserved };
	snprintf(to->id, sizeof(to->id), "%s", point.kept.id);
	to->helps = is_as_sure(point.kept.path, two) && point.kept.requested &&
		    point.kept.reserved >= point.kept.allocated;
	t->n++;
	if (!grid->con->quiet && !point.kept.reused)
		fprintf(stderr, "vramcast: tried %s: %s reserved\n", c->setting,
			vc_bytes_text(to->reserved, peak));
	return VC_OK;
}

int vc_advised_try(struct vc_advised *t, const struct vc_grid *grid, size_t i, uint64_t good,
		  const struct vc_kept *bad, const struct vc_two *two, struct vc_error *err)
{
	uint64_t grew = bad->reserved > good ? bad->reserved - good : 0;
	unsigned of = grew ? what_grew(&two->grew, grew) : 0;

	*t = (struct vc_advised){ .before = bad->reserved };
	for (size_t k = 0; k < sizeof(candidates) / sizeof(*candidates); k++) {
		const struct candidate *c = &candidates[k];
		size_t n = t->n;

		if (!(c->of & of) || (!grid->again && has_failed(bad, c->setting)))
			continue;
		VC_TRY(try_one(t, c, grid, i, bad, two, err));
		if (t->n == n)
			continue;
		t->at[n].helps &= t->at[n].reserved + grew / 2 <= bad->reserved;
		if (t->at[n].helps && (double)t->at[n].reserved <= (double)good * (1 + AVOIDS))
			break;
	}
	return VC_OK;
}

void vc_advised_emit(struct vc_emit *e, const struct vc_advised *t)
{
	const struct vc_tried *best = NULL;
	char peak[32], before[32];

	if (t->n)
		vc_emit_array(e, "tried", NULL);
	for (size_t i = 0; i < t->n; i++) {
		const struct vc_tried *k = &t->at[i];

		if (k->helps && (!best || k->reserved < best->reserved))
			best = k;
		vc_emit_object(e, NULL, NULL);
		vc_emit_text(e, "setting", NULL, k->setting);
		vc_emit_uint(e, "peak_reserved", NULL, k->reserved);
		vc_emit_bool(e, "helps", NULL, k->helps);
		vc_emit_text(e, "run", NULL, k->id);
		vc_emit_end(e);
	}
	if (t->n)
		vc_emit_end(e);
	if (best)
		vc_emit_line(e, "  What helps: %s (tried by a dry run: %s reserved, was %s)",
			     best->setting, vc_bytes_text(best->reserved, peak),
			     vc_bytes_text(t->before, before));
}
