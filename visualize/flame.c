/* SPDX-License-Identifier: Apache-2.0 */
/* flame.c - live bytes as a tree. */
#include "visualize/flame.h"

#include "common/map.h"
#include "common/site.h"
#include "common/vec.h"
#include "common/format.h"
#include "visualize/ownergraph.h"

enum { MOST_FRAMES = 14 };

#define NO_STACK "no stack recorded"

/* The child of `at` with that name, made where there is none; UINT32_MAX: no memory. `last` has
 * the last node of each hash, because thousands may have one parent; 0 is nobody's child. */
static uint32_t child_of(struct vc_flame *f, struct vc_map *last, uint32_t at, const char *name)
{
	uint64_t key = vc_own_hash(at, name), *known = vc_map_get(last, key);

	for (uint64_t i = known ? *known : 0; i; i = f->node[i].next)
		if (f->node[i].parent == at && !strcmp(f->node[i].name, name))
			return (uint32_t)i;
	if (!vc_vec_room(f->node, f->cap, f->n + 1) || !vc_map_put(last, key, f->n))
		return UINT32_MAX;
	f->node[f->n] = (struct vc_flame_node){ .next = known ? (uint32_t)*known : 0, .parent = at,
						.depth = f->node[at].depth + 1 };
	snprintf(f->node[f->n].name, sizeof(f->node[0].name), "%s", name);
	f->depth = f->node[f->n].depth > f->depth ? f->node[f->n].depth : f->depth;
	return (uint32_t)f->n++;
}

static void count(struct vc_flame_node *n, const struct vc_owner *o)
{
	n->bytes += o->bytes;
	n->blocks += o->blocks;
	n->of_slot[o->slot] += o->bytes;
}

/* Is it a frame of the program, or of a module or an optimizer from a package? Helpers of packages,
 * PyTorch and Python are folded into who calls them. */
static bool is_own(const struct vc_meta *m, uint32_t frame)
{
	const char *file = vc_label_text(m, m->frame[frame].file);
	const char *function = vc_label_text(m, m->frame[frame].function);
	bool module = strstr(file, "-packages") &&
		      (strstr(function, "forward") || strstr(function, "step"));

	return strstr(file, ".py") && !strstr(file, "/torch/") && !strstr(file, "\\torch\\") &&
	       *file != '<' &&
	       (module || (!strstr(file, "lib/python") && !strstr(file, "-packages")));
}

static void frame_text(const struct vc_meta *m, uint32_t frame, char *buf, size_t cap)
{
	const struct vc_frame *f = &m->frame[frame];
	const char *file = vc_label_text(m, f->file), *slash = strrchr(file, '/');

	snprintf(buf, cap, "%.60s:%u %.50s", slash ? slash + 1 : file, f->line,
		 vc_label_text(m, f->function));
}

/* The program's frames, outermost first; the innermost are left out where there are too many. */
static size_t own_frames(const struct vc_meta *m, uint32_t site, uint32_t *frame)
{
	uint32_t all[512];
	size_t n = 0, kept = 0;

	while (site && n < 512) {
		uint32_t parent = m->frame[site].parent;

		if (is_own(m, site))
			all[n++] = site;
		site = parent < site ? parent : 0;
	}
	while (n && kept < MOST_FRAMES)
		frame[kept++] = all[--n];
	return kept;
}

/* The names from the outermost to the innermost, behind the kind. */
static size_t path_of(const struct vc_meta *m, const struct vc_owner *o,
		      char name[MOST_FRAMES + 2][120])
{
	uint32_t frame[MOST_FRAMES];
	const char *label = vc_label_text(m, o->label);
	size_t n = 0, frames = 0;

	if (*label)
		vc_own_collapse(label, name[n++], sizeof(*name));
	if (m && o->site && o->site < m->frames) {
		frames = own_frames(m, o->site, frame);
		for (size_t i = 0; i < frames; i++)
			frame_text(m, frame[i], name[n++], sizeof(*name));
		if (!frames) /* native code only */
			vc_site_text(m, o->site, name[n++], sizeof(*name));
	}
	if (!n)
		snprintf(name[n++], sizeof(*name), "%s",
			 o->at_start ? "there at the start" : NO_STACK);
	return n;
}

static int add(struct vc_flame *f, struct vc_map *last, const struct vc_classes *c,
	       const struct vc_owner *o)
{
	char name[MOST_FRAMES + 2][120];
	size_t n = path_of(c->r->meta, o, name);
	uint32_t at = 0;

	count(&f->node[0], o);
	for (size_t i = 0; i <= n; i++) {
		at = child_of(f, last, at, i ? name[i - 1] : vc_own_phase(c, o->slot));
		if (at == UINT32_MAX)
			return -1;
		count(&f->node[at], o);
	}
	return 0;
}

static bool before(const struct vc_flame_node *a, const struct vc_flame_node *b)
{
	return a->bytes != b->bytes ? a->bytes > b->bytes : strcmp(a->name, b->name) < 0;
}

struct sibling { uint32_t parent, i; uint64_t bytes; const char *name; };
VC_COMPARE(by_size, struct sibling,
	   VC_THEN(VC_ORDER(x->parent, y->parent),
		   VC_THEN(VC_ORDER(y->bytes, x->bytes), strcmp(x->name, y->name))))

/* Children to their parents: siblings largest first, ties by name. */
static int link_children(struct vc_flame *f)
{
	struct sibling *all = f->n > 1 ? malloc((f->n - 1) * sizeof(*all)) : NULL;

	if (f->n > 1 && !all)
		return -1;
	for (uint32_t i = 1; i < f->n; i++)
		all[i - 1] = (struct sibling){ f->node[i].parent, i, f->node[i].bytes,
					       f->node[i].name };
	if (all)
		vc_sort(all, f->n - 1, sizeof(*all), by_size);
	for (size_t k = f->n; k-- > 1;) {
		struct vc_flame_node *parent = &f->node[all[k - 1].parent];

		f->node[all[k - 1].i].next = parent->child;
		parent->child = all[k - 1].i;
	}
	free(all);
	return 0;
}

VC_COMPARE(by_origin, struct vc_owner,
	   VC_THEN(VC_ORDER(x->slot, y->slot),
		   VC_THEN(VC_ORDER(x->site, y->site),
			   VC_THEN(VC_ORDER(x->label, y->label),
				   VC_THEN(VC_ORDER(x->at_start, y->at_start),
					   VC_ORDER(x->id, y->id))))))

/* Blocks of one stack first, so that few paths are walked. */
static size_t merge(struct vc_owner *o, size_t n)
{
	size_t kept = 0;

	if (n)
		vc_sort(o, n, sizeof(*o), by_origin);
	for (size_t i = 0; i < n; i++) {
		struct vc_owner *last = kept ? &o[kept - 1] : NULL;

		if (last && last->slot == o[i].slot && last->site == o[i].site &&
		    last->label == o[i].label && last->at_start == o[i].at_start) {
			last->bytes += o[i].bytes;
			last->blocks++;
		} else {
			o[kept++] = o[i];
		}
	}
	return kept;
}

int vc_flame_init(struct vc_flame *f, const struct vc_classes *c, struct vc_error *err)
{
	struct vc_map last = { 0 };
	struct vc_owners o;
	size_t n;
	int rc = VC_OK;

	*f = (struct vc_flame){ 0 };
	VC_TRY(vc_owners_gather(&o, c, err));
	f->event = o.event;
	f->at_oom = o.at_oom;
	n = merge(o.at, o.n);
	if (n && vc_vec_room(f->node, f->cap, 1)) {
		f->node[f->n++] = (struct vc_flame_node){ .depth = 0 };
		snprintf(f->node[0].name, sizeof(f->node[0].name), "all that is in use");
	} else if (n) {
		rc = -1;
	}
	for (size_t i = 0; i < n && !rc; i++)
		rc = add(f, &last, c, &o.at[i]);
	rc = rc ? rc : link_children(f);
	vc_map_fini(&last);
	vc_owners_fini(&o);
	if (rc) {
		vc_flame_fini(f);
		return vc_nomem(err, "the tree of call sites");
	}
	return VC_OK;
}

void vc_flame_fini(struct vc_flame *f)
{
	free(f->node);
	*f = (struct vc_flame){ 0 };
}

size_t vc_flame_leaves(const struct vc_flame *f, uint32_t *leaf, size_t most)
{
	size_t n = 0;

	for (uint32_t i = 1; i < f->n; i++) {
		size_t k = n;

		if (f->node[i].child)
			continue;
		while (k && before(&f->node[i], &f->node[leaf[k - 1]]))
			k--;
		if (k == most)
			continue;
		n += n < most;
		memmove(leaf + k + 1, leaf + k, (n - k - 1) * sizeof(*leaf));
		leaf[k] = i;
	}
	return n;
}
