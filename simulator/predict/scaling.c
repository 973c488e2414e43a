/* SPDX-License-Identifier: Apache-2.0 */
/* scaling.c - one recording looked at through the others of its family: which of its allocations is
 * which of theirs, a law for each, the most similar one of those that stand alone, and the
 * workspace that launch arithmetic decides. */
#include "simulator/predict/scaling.h"

#include "common/hash.h"
#include "common/map.h"
#include "common/sort.h"
#include "common/vec.h"
#include "common/workers.h"
#include "simulator/predict/align.h"

enum { THREADS = 4 };
enum { SAMPLES = 64 };      /* recordings that a law is made of, at most */
enum { ALIKE = 3 };         /* sizes that grow alike are many */
enum { NEAR = 4096 };       /* allocations around an unmatched one: its like; bounds time */
#define SHARE_NEEDED 0.85 /* of all bytes: autocast against none has 0.75, one script above 0.91 */

#define STRAYS 0.05 /* of the allocations: with more of them a loop is not all that differs */

void vc_scaling_fini(struct vc_scaling *v, size_t n)
{
	for (size_t i = 0; v->match && i < n; i++)
		free(v->match[i]);
	VC_FREE(v->match, v->law, v->origin, v->matched, v->other, v->workspace.at,
		v->single, v->repeat);
}

/* ---- which recordings say something about each other ---- */

/* The only axis on which two recordings differ, or axes when they differ on several or none. */
static size_t only_axis(const struct vc_family *f, size_t i, size_t j)
{
	size_t found = f->axes;

	for (size_t a = 0; a < f->axes; a++)
		if (f->x[i][a] != f->x[j][a]) {
			if (found != f->axes)
				return f->axes;
			found = a;
		}
	return found;
}

bool vc_family_has_partner(const struct vc_family *f, size_t i, size_t axis)
{
	for (size_t k = 0; k < f->n; k++)
		if (k != i && only_axis(f, i, k) == axis)
			return true;
	return false;
}

/* Buffers of sums are left out of an alignment, as is workspace by plan. */
static void leave_out(const struct vc_family *f, size_t k, bool *skip)
{
	vc_workspace_mark(&f->m[k], &f->recorded, skip);
	for (size_t i = 0; i < f->m[k].n; i++)
		skip[i] |= f->plan[k][i];
}

/* Match the base with recording k, where they differ in one parameter. Buffers of sums stand beside
 * what they belong to. */
static int align_with(const struct vc_family *f, struct vc_scaling *v, size_t base, size_t k,
		      struct vc_error *err)
{
	const struct vc_allocations *b = &f->m[base], *m = &f->m[k];
	size_t axis = only_axis(f, base, k);

	if (k == base || v->match[k] || axis == f->axes)
		return VC_OK;
	bool *skip = calloc(b->n + m->n + 2, sizeof(*skip)), *there = skip + b->n + 1;
	uint32_t *match = v->match[k] = malloc((b->n + 1) * sizeof(*match));
	int rc = skip && match ? VC_OK : vc_nomem(err, "the alignment of two recordings");

	if (!rc) {
		leave_out(f, base, skip);
		leave_out(f, k, there);
		rc = vc_align_some(b->take, b->n, skip, m->take, m->n, there,
				   f->x[k][axis] / f->x[base][axis], match, err);
	}
	if (!rc)
		vc_plans_match(b, f->plan[base], m, f->plan[k], match);
	for (size_t i = 0; !rc && i + 2 < b->n; i++)
		for (uint32_t d = 1; d <= 2 && match[i] != VC_UNMATCHED && skip[i + 1] &&
		     there[match[i] + 1]; d++)
			match[i + d] = match[i] + d;
	free(skip);
	return rc;
}

/* ---- laws ---- */

static size_t samples(const struct vc_family *f, const struct vc_scaling *v, size_t base,
		      size_t axis, size_t i, struct vc_sample *s)
{
	size_t n = 0;

	for (size_t k = 0; k < f->n && n < SAMPLES; k++) {
		struct vc_sample new = { f->x[k][axis], 0 };
		size_t at = n;

		if (k == base)
			new.y = vc_step_sizes_mean(&f->steps[base], &f->m[base], i);
		else if (v->match[k] && only_axis(f, base, k) == axis &&
			 v->match[k][i] != VC_UNMATCHED)
			new.y = vc_step_sizes_mean(&f->steps[k], &f->m[k], v->match[k][i]);
		else
			continue;
		for (; at > 0 && s[at - 1].x > new.x; at--)
			s[at] = s[at - 1];
		s[at] = new;
		n++;
	}
	return n;
}

static struct vc_law fit_one(const struct vc_family *f, size_t base, size_t i,
			     const struct vc_sample *s, size_t n)
{
	const struct vc_step_sizes *p = &f->steps[base];

	if (n < 2 || !vc_step_sizes_has(p, i))
		return vc_law_fit(s, n);
	return vc_law_fit_means(s, n, p->sigma[p->place[i] - 1] / sqrt((double)p->steps));
}

static void fit_all(const struct vc_family *f, struct vc_scaling *v, size_t base)
{
	const struct vc_allocations *b = &f->m[base];
	struct vc_sample s[SAMPLES];

	for (size_t a = 0; a < f->axes; a++)
		for (size_t i = 0; i < b->n; i++) {
			size_t n = samples(f, v, base, a, i, s);
			struct vc_law *l = &v->law[a * b->n + i];

			*l = fit_one(f, base, i, s, n);
			if (l->kind == VC_LAW_ALONE && vc_family_has_partner(f, base, a))
				v->origin[i] = VC_ALONE;
		}
}

/* Two samples are all that shows it. */
static bool is_line(const struct vc_law *l)
{
	return l->kind == VC_LAW_AFFINE && !l->sure;
}

/* Where many sizes are lines, they are lines, or another law through both samples. */
static double law_end(const struct vc_family *f, const struct vc_scaling *v, size_t base, size_t a,
		      size_t i, double at, enum vc_bound bound)
{
	const struct vc_law *l = &v->law[a * f->m[base].n + i];
	const struct vc_sample own = { f->x[base][a], (double)f->m[base].take[i].size };
	bool high = bound == VC_BOUND_HIGH;

	if (!bound)
		return vc_law_at(l, at);
	if (v->lines > VC_MANY_LINES && is_line(l)) {
		double other = vc_law_other(l, f->axis[a].counts, at), line = vc_law_at(l, at);

		return high ? fmax(line, other) : fmax(1, fmin(line, other));
	}
	return vc_law_end(l, &own, at, high);
}

static bool is_moving(const struct vc_law *l)
{
	return l->kind != VC_LAW_CONST && l->kind != VC_LAW_ALONE;
}

/* Along several axes the factors multiply, except for a common constant part, which stays. */
double vc_scaling_law(const struct vc_family *f, const struct vc_scaling *v, size_t base, size_t i,
		      const double *at, enum vc_bound bound)
{
	const struct vc_law *l = v->law + i;
	double y0 = (double)f->m[base].take[i].size, y, constant = 0;
	size_t n = f->m[base].n, moving = 0;

	for (size_t a = 0; a < f->axes; a++) {
		if (at[a] == f->x[base][a] || !is_moving(&l[a * n]))
			continue;
		if (!moving++)
			constant = l[a * n].a;
		else if (fabs(constant - l[a * n].a) > 0.5)
			constant = 0;
	}
	if (moving < 2 || constant <= 0 || constant >= y0)
		constant = 0;
	y = y0 - constant;
	for (size_t a = 0; a < f->axes; a++)
		if (at[a] != f->x[base][a] && is_moving(&l[a * n]))
			y *= (law_end(f, v, base, a, i, at[a], bound) - constant) / (y0 - constant);
	return round(constant + y);
}

/* ---- what no other recording has ---- */

static double octaves(uint32_t life)
{
	return life == UINT32_MAX ? 40 : log2(1.0 + life);
}

/* How unlike two allocations of one size are: life, call site and distance. */
static double unlike(const struct vc_allocations *b, size_t i, size_t j)
{
	const struct vc_take *s = &b->take[i], *t = &b->take[j];

	return 2 * fabs(octaves(s->life) - octaves(t->life)) + (s->site == t->site ? 0 : 4) +
	       0.5 * log2(i > j ? (double)(i - j) : (double)(j - i));
}

static bool is_const(const struct vc_family *f, const struct vc_scaling *v, size_t n, size_t i)
{
	for (size_t a = 0; a < f->axes; a++)
		if (v->law[a * n + i].kind != VC_LAW_CONST)
			return false;
	return true;
}

/* The most similar allocation of the same size whose law is known. What comes and goes, and exists
 * at one size only, is a copy of data rather than of a parameter that happens to have its size. */
static void match_similar(const struct vc_family *f, const struct vc_allocations *b,
		      struct vc_scaling *v, size_t i)
{
	size_t from = i > NEAR ? i - NEAR : 0, to = i + NEAR < b->n ? i + NEAR : b->n;
	uint32_t best[2] = { VC_UNMATCHED, VC_UNMATCHED };
	double least[2] = { INFINITY, INFINITY };

	for (size_t j = from; j < to; j++) {
		if (b->take[j].size != b->take[i].size || v->origin[j] != VC_BY_LAW || j == i)
			continue;
		bool constant = is_const(f, v, b->n, j);
		double d = unlike(b, i, j) + (constant && b->take[i].life != UINT32_MAX ? 40 : 0);
		if (d < least[constant]) {
			least[constant] = d;
			best[constant] = (uint32_t)j;
		}
	}
	bool pick = least[1] < least[0];
	v->matched[i] = best[pick];
	v->other[i] = best[!pick];
}

static void match_rest(const struct vc_family *f, const struct vc_allocations *b,
		       struct vc_scaling *v)
{
	for (size_t i = 0; i < b->n; i++)
		if (v->origin[i] == VC_ALONE)
			match_similar(f, b, v, i);
	for (size_t i = 0; i < b->n; i++)
		if (v->origin[i] == VC_ALONE && v->matched[i] != VC_UNMATCHED)
			v->origin[i] = VC_BY_MATCHED;
}

/* ---- workspace of row sums ---- */

/* Do the other recordings agree that this is a row sum: buffers where the formula has them? */
static bool agreed(const struct vc_family *f, const struct vc_scaling *v,
		   const struct vc_workspace *s, size_t base)
{
	for (size_t k = 0; k < f->n; k++) {
		uint64_t a = 0, b;

		if (k == base || !v->match[k] || v->match[k][s->owner] == VC_UNMATCHED ||
		    v->match[k][s->source] == VC_UNMATCHED)
			continue;
		const struct vc_allocations *o = &f->m[k];
		uint32_t owner = v->match[k][s->owner];
		uint64_t source = o->take[v->match[k][s->source]].size;
		bool has = vc_workspace_follows(o, owner);

		if (vc_workspace_at(s, o->take[owner].size, source, &f->recorded, &a, &b) !=
		    (has && o->take[owner + 1].size == a))
			return false;
	}
	return true;
}

static int find_workspaces(struct vc_family *f, struct vc_scaling *v, size_t base,
			struct vc_error *err)
{
	const struct vc_allocations *b = &f->m[base];
	double *grows = calloc(b->n, sizeof(*grows)), further[VC_AXES];
	size_t kept = 0;
	int rc = grows ? 0 : vc_nomem(err, "the row sums of a recording");

	for (size_t a = 0; a < f->axes; a++) /* any other place shows what grows, and how fast */
		further[a] = f->x[base][a] * (1.37 + 0.11 * (double)a);
	for (size_t i = 0; !rc && i < b->n; i++) {
		size_t from = v->origin[i] == VC_BY_MATCHED ? v->matched[i] : i;
		grows[i] = vc_scaling_law(f, v, base, from, further, VC_BOUND_NONE) /
			   (double)b->take[from].size;
	}
	if (!rc)
		rc = vc_workspace_find(b, grows, &f->recorded, &v->workspace, err);
	for (size_t i = 0; !rc && i < v->workspace.n; i++) {
		struct vc_workspace *s = &v->workspace.at[i];

		if (s->source == VC_UNMATCHED || !vc_family_uses(f, VC_RULE_SUMS) ||
		    !agreed(f, v, s, base))
			continue;
		if (s->present)
			v->origin[s->owner + 1] = v->origin[s->owner + 2] = VC_BY_ROWS;
		v->workspace.at[kept++] = *s;
	}
	v->workspace.n = kept;
	free(grows);
	return rc;
}

/* ---- a view ---- */

/* A family of one recording. */
static int settle_alone(const struct vc_family *f, struct vc_scaling *v, struct vc_error *err)
{
	const struct vc_allocations *b = &f->m[0];

	v->single = calloc(b->n * f->axes, sizeof(*v->single));
	VC_HAVE(v->single, "the family of recordings", err);
	for (size_t a = 0; a < f->axes; a++) {
		uint8_t *how = v->single + a * b->n;

		VC_TRY(vc_single_settle(b, f->axis[a].name, f->x[0][a], how, err));
		for (size_t i = 0; i < b->n; i++) {
			double size = (double)b->take[i].size;

			v->law[a * b->n + i] =
				how[i] > VC_SINGLE_HOLDS || how[i] == VC_SINGLE_GROWS ||
						how[i] == VC_SINGLE_KEPT ?
					(struct vc_law){ .kind = VC_LAW_LINEAR,
							 .b = size / f->x[0][a] } :
					(struct vc_law){ .kind = VC_LAW_CONST, .a = size };
			v->origin[i] = how[i] == VC_SINGLE_STAYS ? v->origin[i] : VC_OPEN;
		}
	}
	return VC_OK;
}

/* Allocations of one call site and size are one kind; without a call site (backward passes) those
 * between two of the same sizes. */
static uint64_t kind_of(const struct vc_allocations *m, size_t i)
{
	const struct vc_take *t = &m->take[i];
	uint64_t kind[] = { t->site, t->size, i ? t[-1].size : 0, i + 1 < m->n ? t[1].size : 0 };

	return vc_hash_bytes(kind, (t->site ? 2 : 4) * sizeof(*kind));
}

/* Of those of m that are not known: what is of a kind that is known comes from a loop that runs
 * more often (repeat[], NULL: nobody asks); else they stand alone. What lasts is not of a loop. */
static int count_lone(const struct vc_allocations *m, const bool *known, bool *repeat,
		      double *repeated, double *none, struct vc_error *err)
{
	struct vc_map kinds = { 0 };
	bool room = true;

	for (size_t i = 0; room && i < m->n; i++)
		if (known[i])
			room = vc_map_put(&kinds, kind_of(m, i), 1);
	for (size_t i = 0; room && i < m->n; i++) {
		const struct vc_take *t = &m->take[i];
		bool again = !known[i] && t->life != UINT32_MAX &&
			     vc_map_get(&kinds, kind_of(m, i));

		*repeated += again;
		*none += !known[i] && !again;
		if (repeat)
			repeat[i] |= again;
	}
	vc_map_fini(&kinds);
	return room ? VC_OK : vc_nomem(err, "the alignment of two recordings");
}

/* How many allocations of the base and of other recordings the other side has not, but for the
 * buffers of kernels, which formulas explain. */
static int count_unmatched(const struct vc_family *f, struct vc_scaling *v, size_t base,
			   struct vc_error *err)
{
	const struct vc_allocations *b = &f->m[base];

	for (size_t k = 0; k < f->n; k++) {
		const struct vc_allocations *m = &f->m[k];
		bool *known = v->match[k] ? calloc(b->n + m->n + 2, sizeof(*known)) : NULL;
		bool *there = known + b->n + 1;
		double repeated = 0, none = 0;

		if (!v->match[k])
			continue;
		VC_HAVE(known, "the alignment of two recordings", err);
		leave_out(f, k, there);
		for (size_t i = 0; i < b->n; i++) {
			uint32_t at = v->match[k][i];

			known[i] = at != VC_UNMATCHED || v->origin[i] == VC_BY_ROWS ||
				   f->plan[base][i];
			if (at != VC_UNMATCHED)
				there[at] = true;
		}
		int rc = count_lone(b, known, v->repeat, &repeated, &none, err);
		if (!rc)
			rc = count_lone(m, there, NULL, &repeated, &none, err);
		free(known);
		VC_TRY(rc);
		v->unmatched = fmax(v->unmatched, none / (double)(b->n + m->n));
		v->repeated = fmax(v->repeated, repeated / (double)(b->n + m->n));
	}
	return VC_OK;
}

/* Sure along all axes? lines: lines through two samples are, too. */
static bool is_sure(const struct vc_family *f, const struct vc_scaling *v, size_t n, size_t i,
		    bool lines)
{
	for (size_t a = 0; a < f->axes; a++) {
		const struct vc_law *l = &v->law[a * n + i];

		if (!l->sure && !(lines && is_line(l)))
			return false;
	}
	return true;
}

struct growth { double factor; uint64_t size; };

VC_COMPARE(by_growth, struct growth,
	   VC_THEN(VC_ORDER(x->factor, y->factor), VC_ORDER(x->size, y->size)))

/* Do lines of many sizes grow by one factor, which is not the parameter's (or in each step by
 * another one), and are they most of the bytes that move? Then they follow something else, as the
 * longest of a batch, of which two samples show nothing. */
static int follow_another(const struct vc_family *f, const struct vc_scaling *v, size_t base,
			  double moves, bool *found, struct vc_error *err)
{
	const struct vc_allocations *b = &f->m[base];
	struct growth *g = malloc((b->n * f->axes + 1) * sizeof(*g));
	double all = 0;
	size_t n = 0;

	VC_HAVE(g, "the laws of sizes", err);
	for (size_t i = 0; i < b->n * f->axes; i++) {
		const struct vc_law *l = &v->law[i];

		if (v->origin[i % b->n] == VC_BY_LAW && is_line(l))
			g[n++] = (struct growth){ vc_law_at(l, l->to) / vc_law_at(l, l->from),
						  b->take[i % b->n].size };
	}
	vc_sort(g, n, sizeof(*g), by_growth);
	for (size_t i = 0, k; i < n; i = k) {
		size_t sizes = 0;
		double bytes = 0;

		for (k = i; k < n && g[k].factor == g[i].factor; k++) {
			sizes += k == i || g[k].size != g[k - 1].size;
			bytes += (double)g[k].size;
		}
		all += sizes >= ALIKE ? bytes : 0;
	}
	*found = 2 * all > moves;
	free(g);
	return VC_OK;
}

/* What of the base's bytes others have, and of what moves the share whose law is not sure. */
static int account(const struct vc_family *f, struct vc_scaling *v, size_t base,
		   struct vc_error *err)
{
	const struct vc_allocations *b = &f->m[base];
	double moves = 0, unsure = 0, lines = 0;
	bool another = false;

	for (size_t i = 0; i < b->n; i++) {
		double size = (double)b->take[i].size;

		if (f->plan[base][i])
			continue;
		v->bytes += b->take[i].size;
		bool again = v->origin[i] == VC_BY_MATCHED && v->repeat[i];

		v->again += again ? b->take[i].size : 0;
		if (v->origin[i] != VC_ALONE && v->origin[i] != VC_OPEN &&
		    (v->origin[i] != VC_BY_MATCHED || again ||
		     vc_step_sizes_has(&f->steps[base], i)))
			v->explained += b->take[i].size;
		if (v->origin[i] != VC_BY_LAW || is_const(f, v, b->n, i))
			continue;
		moves += size;
		if (!is_sure(f, v, b->n, i, true))
			unsure += size;
		else if (!is_sure(f, v, b->n, i, false))
			lines += size;
	}
	VC_TRY(follow_another(f, v, base, moves, &another, err));
	if (v->bytes)
		v->repeated = fmax(v->repeated, (double)v->again / (double)v->bytes);
	v->unsure = moves > 0 ? (another ? unsure + lines : unsure) / moves : 0;
	v->lines = moves > 0 && !another ? lines / moves : 0;
	return VC_OK;
}

static int one_configuration(const struct vc_family *f, size_t base, struct vc_error *err)
{
	const struct vc_scaling *v = &f->view[base];
	uint64_t explained = v->explained - (v->unmatched > STRAYS ? v->again : 0);
	double share = v->bytes ? (double)explained / (double)v->bytes : 1;

	if (f->n < 2 || share >= SHARE_NEEDED)
		return VC_OK;
	return vc_fail(err, VC_EUSAGE, "the recordings are not of one configuration: %.0f %% of "
		       "the bytes of %s match nothing (another dtype, model or kernel, or "
		       "a loop that runs more often?)",
		       100 * (1 - share), vc_allocations_from(&f->m[base]));
}

static int open_view(void *arg, size_t base, struct vc_error *err)
{
	struct vc_family *f = arg;
	struct vc_scaling *v = &f->view[base];
	const struct vc_allocations *b = &f->m[base];

	if (v->ready)
		return VC_OK;
	v->match = calloc(f->n, sizeof(*v->match));
	v->law = calloc(b->n * (f->axes ? f->axes : 1), sizeof(*v->law));
	v->origin = calloc(b->n, sizeof(*v->origin));
	v->matched = calloc(b->n, sizeof(*v->matched));
	v->other = calloc(b->n, sizeof(*v->other));
	v->repeat = calloc(b->n, sizeof(*v->repeat));
	VC_HAVE(v->match && v->law && v->origin && v->matched && v->other && v->repeat,
		"the family of recordings", err);
	for (size_t k = 0; k < f->n; k++)
		VC_TRY(align_with(f, v, base, k, err));
	fit_all(f, v, base);
	if (f->n == 1 && f->axes)
		VC_TRY(settle_alone(f, v, err));
	if (vc_family_uses(f, VC_RULE_SIMILAR))
		match_rest(f, b, v);
	VC_TRY(find_workspaces(f, v, base, err));
	VC_TRY(count_unmatched(f, v, base, err));
	VC_TRY(account(f, v, base, err));
	v->ready = true;
	return VC_OK;
}

int vc_scaling_open(struct vc_family *f, size_t base, struct vc_error *err)
{
	const struct vc_work all = { .n = f->n, .arg = f, .job = open_view,
				     .threads = vc_workers_most(THREADS) };

	for (size_t k = 0; f->axes == 1 && k < f->n; k++)
		if (vc_family_uses(f, VC_RULE_STEPS) && !f->steps[k].place && !f->view[k].ready)
			VC_TRY(vc_step_sizes_read(&f->steps[k], &f->m[k], err));
	VC_TRY(vc_workers_run(&all, err));
	VC_TRY(one_configuration(f, base, err));
	for (size_t k = 0; k < f->n; k++) /* whatever the target */
		VC_TRY(one_configuration(f, k, err));
	return VC_OK;
}
