/* SPDX-License-Identifier: Apache-2.0 */
/* classify.c - what blocks are for, from labels, call sites and lifetimes. */
#include "visualize/classify.h"
#include "common/torch_names.h"
#include "common/vec.h"

/* Labels that name a category outright. */
static const struct { const char *text; enum vc_slot slot;
} named[] = {
	{ "weights", VC_SLOT_WEIGHTS },           { "weight", VC_SLOT_WEIGHTS },
	{ "parameter", VC_SLOT_WEIGHTS },         { "parameters", VC_SLOT_WEIGHTS },
	{ "PARAMETER", VC_SLOT_WEIGHTS },         { "optimizer", VC_SLOT_OPTIMIZER },
	{ "optimizer_state", VC_SLOT_OPTIMIZER }, { "OPTIMIZER_STATE", VC_SLOT_OPTIMIZER },
	{ "gradient", VC_SLOT_GRADIENTS },        { "gradients", VC_SLOT_GRADIENTS },
	{ "GRADIENT", VC_SLOT_GRADIENTS },        { "activation", VC_SLOT_ACTIVATIONS },
	{ "activations", VC_SLOT_ACTIVATIONS },   { "ACTIVATION", VC_SLOT_ACTIVATIONS },
	{ "temporary", VC_SLOT_TEMPORARIES },     { "TEMPORARY", VC_SLOT_TEMPORARIES },
	{ "workspace", VC_SLOT_WORKSPACES },
};

/* Hints of every call site: its own frame's and its callers'. NULL without sites or memory. */
static uint32_t *site_hints(const struct vc_meta *m)
{
	const uint32_t asked = VC_NAME_HINT_OPTIMIZER | VC_NAME_HINT_BACKWARD |
			       VC_NAME_HINT_FORWARD | VC_NAME_HINT_SETUP | VC_NAME_HINT_WORKSPACE;
	uint32_t *of_file, *of_function, *of_site;

	if (!m || m->frames < 2 || !m->strings)
		return NULL;
	of_file = calloc(m->strings, sizeof(*of_file));
	of_function = calloc(m->strings, sizeof(*of_function));
	of_site = calloc(m->frames, sizeof(*of_site));
	for (size_t i = 0; of_file && of_function && i < m->strings; i++) {
		of_file[i] = vc_torch_roles(m->string[i], "", asked);
		of_function[i] = vc_torch_roles("", m->string[i], asked);
	}
	for (size_t i = 1; of_file && of_function && of_site && i < m->frames; i++) {
		const struct vc_frame *f = &m->frame[i];
		if (f->parent < i)
			of_site[i] = of_site[f->parent];
		if (f->function < m->strings)
			of_site[i] |= of_function[f->function];
		if (f->file < m->strings)
			of_site[i] |= of_file[f->file];
	}
	VC_FREE(of_file, of_function);
	return of_site;
}

static enum vc_slot by_label(const struct vc_meta *m, uint32_t label)
{
	const char *text = vc_label_text(m, label);

	for (size_t i = 0; *text && i < sizeof(named) / sizeof(*named); i++)
		if (!strcmp(text, named[i].text))
			return named[i].slot;
	return VC_SLOTS;
}

static enum vc_slot by_hints(const struct vc_life *l, uint32_t h)
{
	bool to_the_end = l->died == UINT64_MAX || l->outlasts;

	if (h & VC_NAME_HINT_WORKSPACE)
		return VC_SLOT_WORKSPACES;
	if (l->at_start)
		return VC_SLOT_START;
	if (l->lifetime == VC_LIFE_SHORT)
		return h ? VC_SLOT_TEMPORARIES : VC_SLOT_OTHER;
	if (h & VC_NAME_HINT_OPTIMIZER)
		return to_the_end ? VC_SLOT_OPTIMIZER : VC_SLOT_TEMPORARIES;
	if (h & VC_NAME_HINT_BACKWARD)
		return VC_SLOT_GRADIENTS;
	if (h & VC_NAME_HINT_SETUP && to_the_end)
		return VC_SLOT_WEIGHTS;
	return h & VC_NAME_HINT_FORWARD ? VC_SLOT_ACTIVATIONS : VC_SLOT_OTHER;
}

static enum vc_slot by_lifetime(const struct vc_life *l)
{
	static const enum vc_slot slot[VC_LIFE_CLASSES] = {
		[VC_LIFE_PERSISTENT] = VC_SLOT_WEIGHTS, [VC_LIFE_STEP] = VC_SLOT_GRADIENTS,
		[VC_LIFE_PHASE] = VC_SLOT_ACTIVATIONS, [VC_LIFE_SHORT] = VC_SLOT_TEMPORARIES,
	};
	return l->lifetime < VC_LIFE_CLASSES ? slot[l->lifetime] : VC_SLOT_OTHER;
}

static enum vc_slot by_purpose(const struct vc_life *l)
{
	static const enum vc_slot slot[VC_PURPOSES] = {
		[VC_FOR_UNKNOWN] = VC_SLOTS, [VC_FOR_WEIGHTS] = VC_SLOT_WEIGHTS,
		[VC_FOR_OPTIMIZER] = VC_SLOT_OPTIMIZER, [VC_FOR_GRADIENT] = VC_SLOT_GRADIENTS,
		[VC_FOR_ACTIVATION] = VC_SLOT_ACTIVATIONS, [VC_FOR_TEMPORARY] = VC_SLOT_TEMPORARIES,
		[VC_FOR_WORKSPACE] = VC_SLOT_WORKSPACES,
	};
	return l->purpose < VC_PURPOSES ? slot[l->purpose] : VC_SLOTS;
}

/* ---- what grows: made at one place in more than one step, and never freed ---- */

struct keeper { uint64_t key; uint32_t step, life; };

VC_COMPARE(by_key, struct keeper,
	   VC_THEN(VC_ORDER(x->key, y->key), VC_ORDER(x->step, y->step)))

uint32_t vc_iteration_of(const struct vc_steps *t, uint64_t event)
{
	size_t at = vc_first_above(t->phase, t->phases, event, event);

	return at ? t->phase[at - 1].iteration : 0;
}

/* A workspace is made once. What is made again in the next step, and stays as well, is a leak or a
 * cache that grows. */
static int find_kept(struct vc_classes *c, struct vc_error *err)
{
	const struct vc_lives *v = &c->r->lives;
	struct keeper *k = malloc((v->n + 1) * sizeof(*k));
	size_t n = 0;

	VC_HAVE(k, "the classes of blocks", err);
	for (size_t i = 0; i < v->n && c->r->steps.phases; i++) {
		const struct vc_life *l = &v->at[i];

		if (l->purpose == VC_FOR_WORKSPACE && c->of_life[i] == VC_SLOT_WORKSPACES)
			k[n++] = (struct keeper){
				l->site ? l->site : l->size << 32 | 1ull << 31,
				vc_iteration_of(&c->r->steps, l->born), (uint32_t)i };
	}
	if (n)
		vc_sort(k, n, sizeof(*k), by_key);
	for (size_t from = 0, to; from < n; from = to) {
		for (to = from; to < n && k[to].key == k[from].key;)
			to++;
		for (size_t i = from; i < to && k[to - 1].step > k[from].step; i++)
			c->of_life[k[i].life] = VC_SLOT_KEPT;
	}
	free(k);
	return VC_OK;
}

struct by_id { uint64_t id; uint32_t at; };

VC_COMPARE(compare_ids, struct by_id, VC_ORDER(x->id, y->id))

static int index_ids(struct vc_classes *c, struct vc_error *err)
{
	size_t n = c->r->lives.n;
	struct by_id *tmp = malloc((n + 1) * sizeof(*tmp));

	c->by_id = malloc((n + 1) * sizeof(*c->by_id));
	if (!tmp || !c->by_id) {
		free(tmp);
		return vc_nomem(err, "the index of blocks");
	}
	bool sorted = true; /* as births mostly are */
	for (size_t i = 0; i < n; i++) {
		tmp[i] = (struct by_id){ c->r->lives.at[i].id, (uint32_t)i };
		sorted = sorted && (!i || tmp[i - 1].id < tmp[i].id);
	}
	if (!sorted)
		vc_sort(tmp, n, sizeof(*tmp), compare_ids);
	for (size_t i = 0; i < n; i++)
		c->by_id[i] = tmp[i].at;
	c->ids = n;
	free(tmp);
	return VC_OK;
}

/* Two thirds of the bytes recognised are enough to speak of categories; below that lifetimes say
 * more. */
static bool recognised(const struct vc_classes *c)
{
	uint64_t known = 0, all = 0;

	for (size_t i = 0; i < c->r->lives.n; i++) {
		const struct vc_life *l = &c->r->lives.at[i];
		if (l->lifetime == VC_LIFE_SHORT || l->at_start)
			continue;
		all += l->size;
		if (c->of_life[i] != VC_SLOT_OTHER)
			known += l->size;
	}
	return all && known >= all - all / 3;
}

int vc_classes_init(struct vc_classes *c, const struct vc_result *r, struct vc_error *err)
{
	uint32_t *hint = site_hints(r->meta);

	*c = (struct vc_classes){ .r = r };
	c->of_life = malloc(r->lives.n + 1);
	if (!c->of_life || index_ids(c, err)) {
		free(hint);
		vc_classes_fini(c);
		return vc_nomem(err, "the classes of blocks");
	}
	for (size_t i = 0; i < r->lives.n; i++) {
		const struct vc_life *l = &r->lives.at[i];
		enum vc_slot slot = by_label(r->meta, l->label);
		if (slot == VC_SLOTS)
			slot = by_purpose(l);
		uint32_t h = hint && l->site < r->meta->frames ? hint[l->site] : 0;
		c->of_life[i] = (uint8_t)(slot < VC_SLOTS ? slot : by_hints(l, h));
	}
	c->categories = recognised(c);
	for (size_t i = 0; !c->categories && i < r->lives.n; i++)
		c->of_life[i] = (uint8_t)by_lifetime(&r->lives.at[i]);
	free(hint);
	if (c->categories && r->leak.steps && find_kept(c, err)) {
		vc_classes_fini(c);
		return VC_ENOMEM;
	}
	return VC_OK;
}

int vc_classes_lend(struct vc_classes *c, const struct vc_classes *known,
		    const struct vc_result *r, struct vc_error *err)
{
	if (!known || known->r != r)
		return vc_classes_init(c, r, err);
	*c = *known;
	c->lent = true;
	return VC_OK;
}

void vc_classes_to_lifetimes(struct vc_classes *c)
{
	for (size_t i = 0; i < c->r->lives.n; i++)
		c->of_life[i] = (uint8_t)by_lifetime(&c->r->lives.at[i]);
	c->categories = false;
}

void vc_classes_fini(struct vc_classes *c)
{
	if (!c->lent)
		VC_FREE(c->of_life, c->by_id);
	*c = (struct vc_classes){ 0 };
}

enum vc_slot vc_slot_most(const uint64_t of_slot[VC_SLOTS])
{
	int best = VC_SLOT_OTHER;

	for (int s = 0; s < VC_SLOTS; s++)
		if (of_slot[s] > of_slot[best])
			best = s;
	return (enum vc_slot)best;
}

const char *vc_classes_name(const struct vc_classes *c, enum vc_slot slot)
{
	static const char *const category[VC_SLOTS] = { "There at the start", "Weights",
		"Optimizer state", "Gradients", "Activations", "Temporaries", "Workspaces",
		"Kept by each step", "Other" };
	static const char *const lifetime[VC_SLOTS] = { "", "Live to the end", "", "About a step",
		"Part of a step", "Short-lived", "", "", "Other" };

	if (!c->categories && slot == VC_SLOT_WEIGHTS && !c->r->lives.n)
		return "Long-lived"; /* nobody looked when they died */
	return c->categories ? category[slot] : lifetime[slot];
}

const struct vc_life *vc_classes_life(const struct vc_classes *c, uint64_t id)
{
	size_t lo = 0, hi = c->ids;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		const struct vc_life *l = &c->r->lives.at[c->by_id[mid]];
		if (l->id == id)
			return l;
		if (l->id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

enum vc_slot vc_classes_of_id(const struct vc_classes *c, uint64_t id)
{
	const struct vc_life *l = id ? vc_classes_life(c, id) : NULL;

	return l ? (enum vc_slot)c->of_life[l - c->r->lives.at] : VC_SLOT_OTHER;
}
