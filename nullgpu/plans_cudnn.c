/* SPDX-License-Identifier: Apache-2.0 */
/* plans_cudnn.c - asks the cuDNN that the user has installed for its plans.
 *
 * Since 9.8 NVIDIA documents a way without a GPU: properties of a card go in as JSON, and
 * heuristics, engine configurations and plans are made for it; no driver is opened (cuDNN API
 * reference, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR). The library is loaded by its path at run time.
 * Numbers are those of its public cudnn_graph.h. */
#define _GNU_SOURCE
#include "nullgpu/plans_cudnn.h"

#include <dlfcn.h>

/* cudnnBackendDescriptorType_t */
enum { D_ENGINE = 2, D_CONFIG = 3, D_HEURISTIC = 4, D_PLAN = 5, D_CARD = 38 };
/* cudnnBackendAttributeName_t */
enum { A_HEUR_MODE = 200, A_HEUR_GRAPH = 201, A_HEUR_RESULTS = 202, A_HEUR_CARD = 204,
	A_CFG_ENGINE = 300, A_PLAN_CONFIG = 401, A_PLAN_WORKSPACE = 402, A_PLAN_CARD = 407,
	A_ENGINE_NOTE = 1303, A_ENGINE_BEHAVIOR = 1305, A_CARD_JSON = 2702 };
/* cudnnBackendAttributeType_t */
enum { T_INT64 = 3, T_MODE = 8, T_NOTE = 11, T_BEHAVIOR = 19, T_CHAR = 24 };
enum { MOST_DESCRIPTORS = 4096, MOST_NOTES = 32 };

int vc_library_open(struct vc_library *l, const char *path, struct vc_error *err)
{
	size_t (*version)(void);
	const struct { const char *name; void *to; } functions[] = {
		{ "cudnnGetVersion", &version },
		{ "cudnnBackendCreateDescriptor", &l->create },
		{ "cudnnBackendDestroyDescriptor", &l->destroy },
		{ "cudnnBackendSetAttribute", &l->set },
		{ "cudnnBackendGetAttribute", &l->get },
		{ "cudnnBackendFinalize", &l->finalize },
		{ "cudnnGetErrorString", &l->name_of },
	};
	*l = (struct vc_library){ .handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL) };
	if (!l->handle)
		return vc_fail(err, VC_EIO, "%s", dlerror());
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
		void *f = dlsym(l->handle, functions[i].name);
		if (!f)
			return vc_fail(err, VC_EFORMAT, "%s has no %s", path, functions[i].name);
		memcpy(functions[i].to, &f, sizeof f);
	}
	l->version = version();
	return 0;
}

/* Whether a call of the library went well; else *err says which. */
static bool went(const struct vc_library *l, int status, const char *what, struct vc_error *err)
{
	if (status)
		vc_fail(err, VC_ENOSUP, "%s: %s", what, l->name_of(status));
	return !status;
}
#define WENT(call) went(l, l->call, #call, err)

int vc_library_card(struct vc_library *l, const char *json, struct vc_error *err)
{
	if (l->version < VC_PLANS_OLDEST)
		return vc_fail(err, VC_ENOSUP, "cuDNN %zu.%zu cannot be asked without a GPU "
			       "(9.8 and newer can)", l->version / 10000, l->version / 100 % 100);
	bool ok = WENT(create(D_CARD, &l->card)) &&
		WENT(set(l->card, A_CARD_JSON, T_CHAR, (int64_t)strlen(json), json)) &&
		WENT(finalize(l->card));
	return ok ? 0 : VC_ENOSUP;
}

/* ---- the graph ---- */

struct graph {
	vc_descriptor *at;
	size_t n;
};

static void let_go(const struct vc_library *l, vc_descriptor *at, size_t n)
{
	while (n)
		l->destroy(at[--n]);
}

/* Descriptors travel as their places in the message. */
static bool points_back(struct graph *g, unsigned char *value, int64_t count)
{
	for (int64_t i = 0; i < count; i++) {
		uint64_t place;
		memcpy(&place, value + 8 * i, sizeof place);
		if (place >= g->n)
			return false;
		memcpy(value + 8 * i, &g->at[place], sizeof(vc_descriptor));
	}
	return true;
}

static bool make_attribute(const struct vc_library *l, struct vc_wire *w, struct graph *g,
			   vc_descriptor d, struct vc_error *err)
{
	int name = (int)vc_wire_get_u32(w), type = (int)vc_wire_get_u32(w);
	int64_t count = vc_wire_get_u32(w);
	size_t bytes = (size_t)count * vc_plans_width(type);
	unsigned char *value = w->bad || bytes > VC_PLANS_MESSAGE ? NULL : calloc(1, bytes + 1);
	if (!value)
		return vc_fail(err, VC_EFORMAT, "a graph that is cut off"), false;
	vc_wire_get(w, value, bytes);
	bool ok = !w->bad &&
		(type != VC_CUDNN_DESCRIPTOR || points_back(g, value, count));
	if (!ok)
		vc_fail(err, VC_EFORMAT, "a graph that refers to what it has not");
	ok = ok && WENT(set(d, name, type, count, value));
	free(value);
	return ok;
}

/* The descriptors of the message; the last of them is the graph. */
static bool make_graph(const struct vc_library *l, struct vc_wire *w, struct graph *g,
		       struct vc_error *err)
{
	uint32_t n = vc_wire_get_u32(w);
	if (!n || n > MOST_DESCRIPTORS)
		return vc_fail(err, VC_EFORMAT, "a graph of %u descriptors", n), false;
	g->at = calloc(n, sizeof *g->at);
	bool ok = g->at != NULL;
	while (ok && g->n < n) {
		vc_descriptor d = NULL;
		int type = (int)vc_wire_get_u32(w);
		uint32_t attributes = vc_wire_get_u32(w);
		if (w->bad)
			return vc_fail(err, VC_EFORMAT, "a graph that is cut off"), false;
		ok = WENT(create(type, &d));
		for (uint32_t i = 0; ok && i < attributes; i++)
			ok = make_attribute(l, w, g, d, err);
		ok = ok && WENT(finalize(d));
		if (d)
			g->at[g->n++] = d;
	}
	return ok;
}

/* ---- its plans ---- */

/* A bit for each note of an engine. */
static uint32_t notes_of(const struct vc_library *l, vc_descriptor engine, int name, int type)
{
	int note[MOST_NOTES];
	int64_t n = 0;
	uint32_t bits = 0;
	if (l->get(engine, name, type, MOST_NOTES, &n, note))
		return 0;
	for (int64_t i = 0; i < n && i < MOST_NOTES; i++)
		bits |= note[i] >= 0 && note[i] < 32 ? 1u << note[i] : 0;
	return bits;
}

enum { COMPILED = 1 }; /* CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION is note 0 */

static void read_notes(const struct vc_library *l, vc_descriptor config, struct vc_cudnn_plan *p)
{
	vc_descriptor engine = NULL;
	int64_t n = 0;
	if (!l->create(D_ENGINE, &engine) &&
	    !l->get(config, A_CFG_ENGINE, VC_CUDNN_DESCRIPTOR, 1, &n, &engine)) {
		p->notes = notes_of(l, engine, A_ENGINE_NOTE, T_NOTE);
		p->behavior = notes_of(l, engine, A_ENGINE_BEHAVIOR, T_BEHAVIOR);
	}
	if (engine)
		l->destroy(engine);
}

/* What a configuration needs; false: the library makes no plan of it. A plan that has to be
 * compiled takes a second and is only made where it comes first: then a program takes it. */
static bool make_plan(const struct vc_library *l, vc_descriptor config, bool first,
		      struct vc_cudnn_plan *p)
{
	vc_descriptor plan = NULL;
	int64_t n = 0;
	*p = (struct vc_cudnn_plan){ 0 };
	read_notes(l, config, p);
	if (!first && p->behavior & COMPILED)
		return false;
	bool ok = !l->create(D_PLAN, &plan) &&
		!l->set(plan, A_PLAN_CONFIG, VC_CUDNN_DESCRIPTOR, 1, &config) &&
		!l->set(plan, A_PLAN_CARD, VC_CUDNN_DESCRIPTOR, 1, &l->card) &&
		!l->finalize(plan) && !l->get(plan, A_PLAN_WORKSPACE, T_INT64, 1, &n, &p->bytes);
	if (plan)
		l->destroy(plan);
	return ok;
}

static bool ask(const struct vc_library *l, vc_descriptor h, vc_descriptor graph, int mode,
		struct vc_cudnn_plans *out, struct vc_error *err)
{
	vc_descriptor config[VC_PLANS_MOST];
	vc_descriptor card = l->card;
	int64_t n = 0, got = 0, made = 0;
	bool ok = WENT(set(h, A_HEUR_GRAPH, VC_CUDNN_DESCRIPTOR, 1, &graph)) &&
		WENT(set(h, A_HEUR_MODE, T_MODE, 1, &mode)) &&
		WENT(set(h, A_HEUR_CARD, VC_CUDNN_DESCRIPTOR, 1, &card)) && WENT(finalize(h)) &&
		WENT(get(h, A_HEUR_RESULTS, VC_CUDNN_DESCRIPTOR, 0, &n, NULL));
	n = n < VC_PLANS_MOST ? n : VC_PLANS_MOST;
	while (ok && made < n && (ok = WENT(create(D_CONFIG, &config[made]))))
		made++;
	ok = ok && WENT(get(h, A_HEUR_RESULTS, VC_CUDNN_DESCRIPTOR, n, &got, config));
	out->n = 0;
	for (int64_t i = 0; ok && i < got && i < n; i++)
		out->n += make_plan(l, config[i], !out->n, &out->at[out->n]);
	let_go(l, config, (size_t)made);
	return ok;
}

int vc_library_plans(const struct vc_library *l, struct vc_wire *w, enum vc_plans_mode mode,
		     struct vc_cudnn_plans *out, struct vc_error *err)
{
	struct graph g = { 0 };
	vc_descriptor h = NULL;
	bool ok = make_graph(l, w, &g, err) && WENT(create(D_HEURISTIC, &h)) &&
		ask(l, h, g.at[g.n - 1], (int)mode, out, err);
	if (h)
		l->destroy(h);
	let_go(l, g.at, g.n);
	free(g.at);
	return ok ? 0 : err->status;
}
