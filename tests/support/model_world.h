/* SPDX-License-Identifier: Apache-2.0 */
/* model_world.h - one model on one device, for unit tests. */
#ifndef VC_MODEL_WORLD_H
#define VC_MODEL_WORLD_H

#include "tests/support/test.h"

#include "simulator/replay/model.h"

#define MIB (1ull << 20)
#define GIB (1ull << 30)

struct world { struct vc_model m; uint64_t id; };

static inline int open_world(struct world *w, const char *model, uint64_t total, const char *params,
		      struct vc_error *err)
{
	struct vc_device_config d = { .total = total };
	const struct vc_model_type *t = vc_model_by_name(model);
	void *config = calloc(1, t->config_size);

	*w = (struct world){ .m = { .type = t, .config = config,
				    .state = calloc(1, t->state_size) } };
	w->m.device = vc_device_new(&d, NULL);
	assert_non_null(w->m.state);
	assert_non_null(w->m.device);
	assert_int_equal(vc_params_parse(t->params, config, params, NULL), 0);
	return t->init(&w->m, err);
}

static inline void close_world(struct world *w)
{
	struct vc_error err = { 0 };

	assert_int_equal(w->m.type->check(&w->m, &err), 0);
	w->m.type->fini(&w->m);
	vc_device_free_all(w->m.device);
	free(w->m.state);
	free((void *)(uintptr_t)w->m.config);
}

static inline struct vc_block ask(struct world *w, uint64_t size, uint32_t stream)
{
	struct vc_request rq = { .id = ++w->id, .size = size, .stream = stream };
	struct vc_block b;

	assert_int_equal(w->m.type->alloc(&w->m, &rq, &b, NULL), VC_DONE);
	return b;
}

#endif
