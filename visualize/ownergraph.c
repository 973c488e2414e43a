/* SPDX-License-Identifier: Apache-2.0 */
/* ownergraph.c - who holds the memory, as a graph: phase, caller, call site. */
#include "visualize/ownergraph.h"

#include "common/map.h"
#include "common/site.h"
#include "common/vec.h"

/* While the graph is made: the last node of each hash, the edge between two nodes. */
struct known { struct vc_map node, edge; };

/* FNV-1a (Fowler, Noll, Vo). */
uint64_t vc_own_hash(uint64_t seed, const char *name)
{
	uint64_t h = (0xcbf29ce484222325u ^ seed) * 0x100000001b3u;

	while (*name)
		h = (h ^ (unsigned char)*name++) * 0x100000001b3u;
	return h;
}

/* node[0] is the first, so the end of a chain is UINT32_MAX. */
static uint32_t find_node(struct vc_own_graph *g, struct known *k, int level, uint64_t key,
			  const char *name)
{
	uint64_t hash = vc_own_hash(key << 2 | (unsigned)level, name);
	uint64_t *known = vc_map_get(&k->node, hash);
	uint32_t last = known ? (uint32_t)(*known - 1) : UINT32_MAX;

	for (uint32_t i = last; i != UINT32_MAX; i = g->node[i].next)
		if (g->node[i].level == level && g->node[i].key == key &&
		    !strcmp(g->node[i].name, name))
			return i;
	if (!vc_vec_room(g->node, g->node_cap, g->nodes + 1) ||
	    !vc_map_put(&k->node, hash, g->nodes + 1))
		return UINT32_MAX;
	g->node[g->nodes] = (struct vc_own_node){ .level = level, .key = key, .next = last };
	snprintf(g->node[g->nodes].name, sizeof(g->node[0].name), "%s", name);
	return (uint32_t)g->nodes++;
}

static int add_edge(struct vc_own_graph *g, struct known *k, uint32_t from, uint32_t to,
		    uint64_t bytes)
{
	uint64_t key = (uint64_t)from << 32 | to, *known = vc_map_get(&k->edge, key);

	if (known) {
		g->edge[*known - 1].bytes += bytes;
		return 0;
	}
	if (!vc_vec_room(g->edge, g->edge_cap, g->edges + 1) ||
	    !vc_map_put(&k->edge, key, g->edges + 1))
		return -1;
	g->edge[g->edges++] = (struct vc_own_edge){ from, to, bytes };
	return 0;
}

/* "layers.12.attn" and "layers.3.attn" are one owner: numbers between dots become a star. */
void vc_own_collapse(const char *from, char *to, size_t cap)
{
	size_t n = 0;
	bool start = true;

	while (*from && n + 4 < cap) {
		size_t digits = strspn(from, "0123456789");
		if (start && digits && (from[digits] == '.' || !from[digits])) {
			to[n++] = '*';
			from += digits;
			start = false;
			continue;
		}
		start = *from == '.';
		to[n++] = *from++;
	}
	to[n] = '\0';
}

const char *vc_own_phase(const struct vc_classes *c, enum vc_slot slot)
{
	static const char *const name[VC_SLOTS] = {
		NULL, NULL,    "optimizer",  "backward",      "forward",
		"temporaries", "workspaces", "kept by each step", "not attributed" };

	return c->categories && name[slot] ? name[slot] : vc_classes_name(c, slot);
}

/* The names of levels 2 and 3 for one owner; "" when there is none. */
static void place_names(const struct vc_meta *m, const struct vc_owner *o, char *caller, char *site,
			size_t cap)
{
	const char *label = vc_label_text(m, o->label);

	*caller = '\0';
	vc_site_text(m, o->site, site, cap);
	if (m && o->site && o->site < m->frames) {
		uint32_t shown = vc_site_shown(m, o->site);
		for (uint32_t at = m->frame[shown].parent; at && !*caller;
		     at = m->frame[at].parent) {
			uint32_t next = vc_site_shown(m, at);
			if (next == at && strstr(vc_label_text(m, m->frame[at].file), ".py"))
				vc_site_text(m, at, caller, cap);
		}
	}
	if (*label) {
		if (*site)
			memcpy(caller, site, cap);
		vc_own_collapse(label, site, cap);
	}
	if (!*site)
		snprintf(site, cap, "no call site recorded");
	if (!strcmp(caller, site))
		*caller = '\0';
}

static int add_owner(struct vc_own_graph *g, struct known *k, const struct vc_classes *c,
		     const struct vc_owner *o)
{
	char caller[120], site[120];
	uint32_t path[4];
	size_t n = 0;

	place_names(c->r->meta, o, caller, site, sizeof(site));
	path[n++] = find_node(g, k, 0, 0, "all");
	path[n++] = find_node(g, k, 1, o->slot, vc_own_phase(c, o->slot));
	if (*caller)
		path[n++] = find_node(g, k, 2, o->slot, caller);
	path[n++] = find_node(g, k, 3, o->slot, site);
	for (size_t i = 0; i < n; i++) {
		if (path[i] == UINT32_MAX)
			return -1;
		struct vc_own_node *v = &g->node[path[i]];
		v->bytes += o->bytes;
		v->blocks += o->blocks;
		v->of_slot[o->slot] += o->bytes;
		if (i && add_edge(g, k, path[i - 1], path[i], o->bytes))
			return -1;
	}
	return 0;
}

VC_COMPARE(by_key, struct vc_owner,
	   VC_THEN(VC_ORDER(x->slot, y->slot), VC_THEN(VC_ORDER(x->site, y->site),
		   VC_THEN(VC_ORDER(x->label, y->label), VC_ORDER(x->id, y->id)))))

/* Blocks of the same stack first, so that the search above sees few owners. */
static size_t merge(struct vc_owner *o, size_t n)
{
	size_t kept = 0;

	vc_sort(o, n, sizeof(*o), by_key);
	for (size_t i = 0; i < n; i++) {
		struct vc_owner *last = kept ? &o[kept - 1] : NULL;
		if (last && last->slot == o[i].slot && last->site == o[i].site &&
		    last->label == o[i].label) {
			last->bytes += o[i].bytes;
			last->blocks++;
		} else {
			o[kept++] = o[i];
		}
	}
	return kept;
}

struct ranked { struct vc_own_node node; uint32_t was; };

VC_COMPARE(by_rank, struct ranked,
	   VC_THEN(VC_ORDER(x->node.level, y->node.level),
		   VC_THEN(VC_ORDER(y->node.bytes, x->node.bytes),
		   VC_THEN(strcmp(x->node.name, y->node.name),
		   VC_ORDER(x->node.key, y->node.key)))))

VC_COMPARE(edge_order, struct vc_own_edge,
	   VC_THEN(VC_ORDER(x->from, y->from), VC_THEN(VC_ORDER(y->bytes, x->bytes),
		   VC_ORDER(x->to, y->to))))

/* By level, largest first, ties by name: the layout follows the order, so the order is fixed. */
static int sort(struct vc_own_graph *g)
{
	struct ranked *r = malloc((g->nodes + 1) * sizeof(*r));
	uint32_t *now = malloc((g->nodes + 1) * sizeof(*now));

	for (size_t i = 0; r && i < g->nodes; i++)
		r[i] = (struct ranked){ g->node[i], (uint32_t)i };
	if (r)
		vc_sort(r, g->nodes, sizeof(*r), by_rank);
	for (size_t i = 0; r && now && i < g->nodes; i++) {
		g->node[i] = r[i].node;
		now[r[i].was] = (uint32_t)i;
	}
	for (size_t i = 0; r && now && i < g->edges; i++) {
		g->edge[i].from = now[g->edge[i].from];
		g->edge[i].to = now[g->edge[i].to];
	}
	if (g->edges)
		vc_sort(g->edge, g->edges, sizeof(*g->edge), edge_order);
	bool ok = r && now;
	VC_FREE(r, now);
	return ok ? 0 : -1;
}

int vc_own_graph_init(struct vc_own_graph *g, const struct vc_classes *c,
		      struct vc_error *err)
{
	struct known k = { 0 };
	struct vc_owners o;
	int rc = vc_owners_gather(&o, c, err);

	*g = (struct vc_own_graph){ 0 };
	if (rc)
		return rc;
	g->bytes = o.bytes;
	g->event = o.event;
	g->time_ns = o.time_ns;
	g->at_oom = o.at_oom;
	o.n = merge(o.at, o.n);
	for (size_t i = 0; i < o.n && !rc; i++)
		rc = add_owner(g, &k, c, &o.at[i]);
	vc_map_fini(&k.node);
	vc_map_fini(&k.edge);
	if (!rc && g->nodes)
		rc = sort(g);
	vc_owners_fini(&o);
	if (rc) {
		vc_own_graph_fini(g);
		return vc_nomem(err, "the graph of owners");
	}
	return VC_OK;
}

void vc_own_graph_fini(struct vc_own_graph *g)
{
	free(g->node);
	free(g->edge);
	*g = (struct vc_own_graph){ 0 };
}
