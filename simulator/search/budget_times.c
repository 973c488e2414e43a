/* SPDX-License-Identifier: Apache-2.0 */
/* budget_times.c - see budget_times.h. With each mark the hook launches a kernel that does nothing
 * (torch.cuda._sleep), so that the k-th of these lies among kernels where the k-th mark lies among
 * requests for memory. */
#include "simulator/search/budget_times.h"

#include "common/vec.h"
#include "simulator/time/time_profile.h"

#define MARKS "spin_kernel" /* aten/src/ATen/cuda/Sleep.cu */

VC_COMPARE(by_launch, struct vc_op, VC_ORDER(x->id, y->id))

static size_t count_marks(const struct vc_recording *rec)
{
	size_t n = 0;

	for (size_t i = 0; i < rec->trace.n; i++) {
		const struct vc_event *e = &rec->trace.ev[i];

		if (e->kind != VC_EV_MARK || e->label >= rec->meta->strings)
			continue;
		const char *text = rec->meta->string[e->label];
		n += !strncmp(text, "budget ", 7) && text[7] && text[8] == ' ';
	}
	return n;
}

int vc_budget_profile(struct vc_profile *p, const struct vc_recording *rec, struct vc_error *err)
{
	uint16_t device = rec->device->device;

	VC_TRY(vc_profile_add(p, rec->trace.ev, rec->trace.n, device, rec->meta, err));
	return vc_profile_finish(p, 0, device, rec->meta, err);
}

int vc_budget_times(struct vc_budget_run *r, const struct vc_recording *rec, struct vc_error *err)
{
	struct vc_profile p = { 0 };
	size_t marks = 0;
	int code = vc_budget_profile(&p, rec, err);

	if (code == VC_OK && p.n && p.steps) {
		vc_sort(p.op, p.n, sizeof(*p.op), by_launch);
		r->kernel = calloc(p.n, sizeof(*r->kernel));
		code = r->kernel ? VC_OK : vc_nomem(err, "the kernels of a run");
	}
	for (size_t i = 0; code == VC_OK && r->kernel && i < p.n; i++) {
		const struct vc_op *o = &p.op[i];
		const char *name = o->name < rec->meta->strings ? rec->meta->string[o->name] : "";

		r->kernel[i].ns = (double)(o->end - o->start);
		r->kernel[i].mark = strstr(name, MARKS) != NULL;
		marks += r->kernel[i].mark;
	}
	r->steps = p.marks ? p.marks : p.steps; /* whose kernels these are, whole ones or not */
	r->kernels = r->kernel && marks && marks == count_marks(rec) ? p.n : 0;
	vc_profile_fini(&p);
	return code;
}
