/* SPDX-License-Identifier: Apache-2.0 */
/* pickle_json.c - JSON for those who build from pickles: json.dump() of what pickle.dump() was
 * given. */
#include "common/pickle.h"

#include "common/json.h"

struct reader {
	struct vc_json j;
	const struct vc_pickle_builder *b;
	struct vc_error *err;
};

static int value(struct reader *r, int token, struct vc_pickle_value *v);

/* Items one by one: a builder folds each into something small. */
static int list(struct reader *r, struct vc_pickle_value *v)
{
	struct vc_pickle_value item;
	int token;

	v->type = VC_PV_LIST;
	VC_TRY(r->b->list(r->b->arg, &v->ref, r->err));
	while ((token = vc_json_next(&r->j, r->err)) > 0 && token != VC_J_ARRAY_END) {
		VC_TRY(value(r, token, &item));
		VC_TRY(r->b->append(r->b->arg, v->ref, &item, 1, r->err));
	}
	return token < 0 ? token : VC_OK;
}

static int dict(struct reader *r, struct vc_pickle_value *v)
{
	struct vc_pickle_value kv[2];
	int token;

	v->type = VC_PV_DICT;
	VC_TRY(r->b->dict(r->b->arg, &v->ref, r->err));
	while ((token = vc_json_next(&r->j, r->err)) > 0 && token != VC_J_OBJECT_END) {
		kv[0] = (struct vc_pickle_value){ .type = VC_PV_TEXT };
		VC_TRY(r->b->text(r->b->arg, r->j.text, r->j.len, &kv[0].ref, r->err));
		VC_TRY(token = vc_json_next(&r->j, r->err));
		VC_TRY(value(r, token, &kv[1]));
		VC_TRY(r->b->set(r->b->arg, v->ref, kv, 1, r->err));
	}
	return token < 0 ? token : VC_OK;
}

/* As deep as vc_json_next lets it come: 512 levels. */
static int value(struct reader *r, int token, struct vc_pickle_value *v)
{
	*v = (struct vc_pickle_value){ .type = VC_PV_NONE };
	switch (token) {
	case VC_J_OBJECT: return dict(r, v);
	case VC_J_ARRAY: return list(r, v);
	case VC_J_TEXT:
		v->type = VC_PV_TEXT;
		return r->b->text(r->b->arg, r->j.text, r->j.len, &v->ref, r->err);
	case VC_J_NUMBER:
		v->type = r->j.is_integer ? VC_PV_INT : VC_PV_REAL;
		if (r->j.is_integer)
			v->i = r->j.integer;
		else
			v->real = r->j.real;
		return VC_OK;
	case VC_J_TRUE:
	case VC_J_FALSE:
		v->type = VC_PV_BOOL;
		v->i = token == VC_J_TRUE;
		return VC_OK;
	default: return VC_OK;
	}
}

int vc_pickle_from_json(struct vc_input *in, const struct vc_pickle_builder *b,
			struct vc_pickle_value *root, struct vc_error *err)
{
	struct reader r = { .b = b, .err = err };
	int token;

	VC_TRY(vc_json_open(&r.j, in, err));
	token = vc_json_next(&r.j, err);
	if (token > 0)
		token = value(&r, token, root);
	vc_json_close(&r.j);
	return token;
}
