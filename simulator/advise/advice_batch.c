/* SPDX-License-Identifier: Apache-2.0 */
/* advice_batch.c - what advice needs: the same run at another batch size. */

#include "common/vec.h"
#include "simulator/advise/advice.h"
#include "simulator/session/whatif.h"
#include "simulator/time/time.h"

static bool is_batch(const char *name)
{
	return strstr(name, "batch") && !strstr(name, "eval") && !strstr(name, "test") &&
	       !strstr(name, "val");
}

/* What was asked for counts more than what was recorded. */
static bool find_parameter(struct vc_batch *b, const struct vc_session *s)
{
	const struct vc_whatif *w = s->whatif;

	for (size_t i = 0; w && i < w->n; i++)
		if (is_batch(w->at[i].name)) {
			snprintf(b->name, sizeof(b->name), "%s", w->at[i].name);
			b->value = w->at[i].value;
			return true;
		}
	for (size_t i = 0; i < s->rec->meta->params; i++)
		if (is_batch(s->rec->meta->param[i].name)) {
			snprintf(b->name, sizeof(b->name), "%s", s->rec->meta->param[i].name);
			b->value = s->rec->meta->param[i].value;
			return true;
		}
	return false;
}

/* One recording: opened anew, as if its own batch had been asked for. */
static int open_base(struct vc_batch *b, const struct vc_session *s, struct vc_error *err)
{
	struct vc_run_options o = *s->opt;
	char text[96], *path = (char *)(uintptr_t)s->rec->path;
	const char *set = text;

	snprintf(text, sizeof(text), "%s=%.15g", b->name, b->value);
	o.set = (struct vc_list){ &set, 1 };
	o.by = "recordings";
	o.verify = false;
	int r = vc_session_open(&b->own, &o, 1, &path, VC_SESSION_IN_MEMORY, err);
	if (r < 0)
		vc_session_close(&b->own);
	b->own.opt = s->opt;
	b->base = &b->own;
	return r;
}

int vc_batch_open(struct vc_batch *b, const struct vc_session *s, struct vc_error *err)
{
	int r = VC_OK;

	*b = (struct vc_batch){ 0 };
	if (!find_parameter(b, s) || b->value < 1)
		return vc_fail(err, VC_ENOSUP,
			       "the batch size is not recorded (record --param batch=N)");
	if (s->rec->streamed || (!s->whatif && !strcmp(s->rec->path, "-")))
		return vc_fail(err, VC_ENOSUP, "the recording cannot be read twice");
	/* a search by the program would run it many times */
	b->owned = !s->whatif || s->whatif->rerun;
	if (b->owned)
		r = open_base(b, s, err);
	else
		b->base = s;
	b->open = r == VC_OK;
	return r;
}

int vc_batch_at(const struct vc_batch *b, double value, struct vc_session *out,
		struct vc_error *err)
{
	const struct vc_whatif *w = b->base->whatif;
	struct vc_param_value at[VC_WHATIF_PARAMS];
	char text[96];
	size_t n = 0;
	bool found = false;

	for (; n < w->n; n++) {
		at[n] = w->at[n];
		if (!strcmp(at[n].name, b->name)) {
			at[n].value = value;
			found = true;
		}
	}
	if (!found && n < VC_WHATIF_PARAMS)
		at[n++] = (struct vc_param_value){ (char *)(uintptr_t)b->name, value };
	snprintf(text, sizeof(text), "%s=%.15g", b->name, value);
	int r = vc_session_at(b->base, at, n, text, out, err);
	if (r < 0)
		vc_session_close(out);
	return r;
}

static int go_to(struct vc_batch *b, double value, struct vc_error *err)
{
	if (b->at_open)
		vc_session_close(&b->at);
	int r = vc_batch_at(b, value, &b->at, err);
	b->at_open = r == VC_OK;
	return r;
}

int vc_advice_run(const struct vc_session *s, const struct vc_plan *p, enum vc_verdict than,
		  const struct vc_observer_type *const *watch, struct vc_result *out,
		  struct vc_error *err)
{
	int r = vc_session_replay(s, p, watch, out, err);

	if (r < 0 || vc_result_verdict(out) >= than)
		return r;
	r = vc_session_decide(s, p, out, err);
	if (r == VC_OK)
		r = vc_time_answer(s, p, out, err);
	if (r < 0)
		vc_result_fini(out);
	return r;
}

int vc_batch_run(struct vc_batch *b, const struct vc_plan *p, double value, const char *transform,
		 enum vc_verdict than, struct vc_result *out, struct vc_error *err)
{
	struct vc_plan plan = *p;
	const char **list;
	int r = go_to(b, value, err);

	VC_TRY(r);
	r = vc_plan_with(&plan, transform, &list, err);
	if (r == VC_OK)
		r = vc_advice_run(&b->at, &plan, than, b->watch, out, err);
	free(list);
	return r;
}

enum vc_verdict vc_advice_ending(const struct vc_result *r)
{
	return r->trust.endless ? vc_result_replayed(r) : vc_result_verdict(r);
}

/* The best estimate alone often says it: where it fits its lower end does, too, and where it does
 * not it fits not surely. Else of the interval as much as tells. */
static int find_out(const struct vc_session *s, const struct vc_plan *p, enum vc_wanted wanted,
		    bool *fits, struct vc_error *err)
{
	struct vc_result r;
	int rc = vc_session_replay(s, p, NULL, &r, err);

	VC_TRY(rc);
	*fits = vc_result_replayed(&r) == VC_FITS;
	if (*fits == (wanted == VC_SURELY)) {
		rc = vc_session_decide(s, p, &r, err);
		*fits = vc_advice_ending(&r) == VC_FITS ||
			(wanted == VC_POSSIBLY && r.trust.low == VC_FITS);
	}
	vc_result_fini(&r);
	return rc < 0 ? rc : VC_OK;
}

/* What is known of that value, which may be nothing yet. NULL: no memory. */
static struct vc_batch_seen *seen_at(struct vc_batch *b, double value)
{
	for (size_t i = 0; i < b->seen_n; i++)
		if (b->seen[i].value == value)
			return &b->seen[i];
	if (!vc_vec_one(b->seen, b->seen_n))
		return NULL;
	b->seen[b->seen_n] = (struct vc_batch_seen){ .value = value };
	return &b->seen[b->seen_n++];
}

/* What surely fits possibly does. */
static void note(struct vc_batch_seen *known, enum vc_wanted wanted, bool fits)
{
	known->fits[wanted] = fits ? VC_IT_FITS : VC_IT_FAILS;
	if (fits && wanted == VC_SURELY)
		known->fits[VC_POSSIBLY] = VC_IT_FITS;
}

int vc_batch_fits(struct vc_batch *b, const struct vc_plan *p, double value, enum vc_wanted wanted,
		  bool *fits, struct vc_error *err)
{
	struct vc_batch_seen *known = seen_at(b, value);
	struct vc_plan plan = *p;
	const char **list;
	int r;

	VC_HAVE(known, "what a search has seen", err);
	*fits = known->fits[wanted] == VC_IT_FITS;
	if (known->fits[wanted] != VC_NOT_ASKED)
		return VC_OK;
	VC_TRY(go_to(b, value, err));
	r = vc_plan_with(&plan, NULL, &list, err);
	if (r == VC_OK)
		r = find_out(&b->at, &plan, wanted, fits, err);
	free(list);
	if (r == VC_OK)
		note(known, wanted, *fits);
	return r;
}

/* Other values are replayed from a heap that is asked for anew. */
void vc_batch_known(struct vc_batch *b, const struct vc_session *s, const struct vc_plan *p,
		    const struct vc_result *r)
{
	struct vc_batch_seen *known = b->base == s && p->start != VC_START_WARM &&
						      p->start != VC_START_ARGUED ?
					      seen_at(b, b->value) : NULL;
	bool asked = false;

	for (size_t i = 0; known && i < s->whatif->n; i++)
		asked |= !strcmp(s->whatif->at[i].name, b->name);
	if (!asked)
		return;
	note(known, VC_SURELY, vc_advice_ending(r) == VC_FITS);
	if (r->trust.low == VC_FITS)
		note(known, VC_POSSIBLY, true);
}

void vc_batch_close(struct vc_batch *b)
{
	free(b->seen);
	if (b->at_open)
		vc_session_close(&b->at);
	if (b->open && b->owned)
		vc_session_close(&b->own);
	*b = (struct vc_batch){ 0 };
}
