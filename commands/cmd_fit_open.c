/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_fit_open.c - what vramcast fit is asked, and the recordings that it predicts from. */
#include <unistd.h>

#include "common/vec.h"
#include "commands/fit_program.h"
#include "simulator/time/time.h"

int vc_fitting_target(struct vc_fitting *f, struct vc_error *err)
{
	char text[64], *dots;

	snprintf(text, sizeof(text), "%s", f->cfg->target);
	size_t n = strcspn(text, "%");
	text[n] = '\0';
	dots = strstr(text, "..");
	f->find.low = 0;
	if (dots) {
		*dots = '\0';
		if (vc_parse_real(text, &f->find.low, err) < 0)
			return vc_wrap(err, "--target");
	}
	if (vc_parse_real(dots ? dots + 2 : text, &f->find.high, err) < 0)
		return vc_wrap(err, "--target");
	double *low = &f->find.low, *high = &f->find.high;
	if (*low > 1 || *high > 1) {
		*low /= 100;
		*high /= 100;
	}
	if (*low < 0 || *high > 1 || *low > *high || *high <= 0)
		return vc_fail(err, VC_EUSAGE, "--target %s: write LOW..HIGH%%, as in 85..95%%",
			       f->cfg->target);
	return VC_OK;
}

int vc_fitting_numbers(const char *text, const char *option, uint64_t *v, size_t cap, size_t *n,
		       struct vc_error *err)
{
	*n = 0;
	for (const char *p = text; *p;) {
		char one[32];
		size_t len = strcspn(p, ",");

		if (*n == cap)
			return vc_fail(err, VC_EUSAGE, "%s: at most %zu values", option, cap);
		snprintf(one, sizeof(one), "%.*s", (int)len, p);
		if (vc_parse_uint(one, &v[*n], err) < 0)
			return vc_wrap(err, "%s", option);
		(*n)++;
		p += len + (p[len] == ',');
	}
	return VC_OK;
}

int vc_fitting_among(struct vc_fitting *f, struct vc_error *err)
{
	size_t n, kept = 0;

	if (!f->cfg->among)
		return VC_OK;
	VC_TRY(vc_fitting_numbers(f->cfg->among, "--among", f->among, VC_FIT_AMONG, &n, err));
	if (f->cfg->multiple != 1)
		return vc_fail(err, VC_EUSAGE, "--among names the values: leave --multiple out");
	vc_sort_u64(f->among, n);
	for (size_t i = 0; i < n; i++)
		if (f->among[i] && f->among[i] <= f->cfg->most &&
		    (!kept || f->among[i] != f->among[kept - 1]))
			f->among[kept++] = f->among[i];
	if (!kept)
		return vc_fail(err, VC_EUSAGE, "--among %s: no value from 1 to --most",
			       f->cfg->among);
	f->find.among = f->among;
	f->find.amongs = kept;
	return VC_OK;
}

/* --set of other parameters holds for every prediction. */
static int read_also(struct vc_fitting *f, struct vc_error *err)
{
	const struct vc_list *set = &f->cfg->run.set;

	f->find.n = 0;
	for (size_t i = 0; i < set->n; i++) {
		if (f->find.n == VC_WHATIF_PARAMS)
			return vc_fail(err, VC_EUSAGE, "--set: at most %d values",
				       VC_WHATIF_PARAMS);
		VC_TRY(vc_whatif_parse(set->at[i], &f->also[f->find.n], f->name[f->find.n], err));
		if (!strcmp(f->also[f->find.n].name, f->cfg->find))
			return vc_fail(err, VC_EUSAGE, "--set %s: that is what --find looks for",
				       set->at[i]);
		f->set_text[f->find.n++] = set->at[i];
	}
	f->find.also = f->also;
	return VC_OK;
}

/* One recording answers too, with bounds: as a family of one it needs a value asked for. */
static int open_session(struct vc_fitting *f, size_t n, char **paths, struct vc_error *err)
{
	f->opt = f->cfg->run;
	f->opt.gpu = f->gpu;
	f->opt.runner = NULL; /* trial runs are ours */
	if (f->asked) {       /* and made with the first of -x */
		f->opt.transform.at += f->asked->rerun->made.n;
		f->opt.transform.n -= f->asked->rerun->made.n;
	}
	if (n == 1) {
		snprintf(f->set, sizeof(f->set), "%s=1", f->cfg->find);
		f->set_text[f->find.n] = f->set;
		f->opt.set = (struct vc_list){ f->set_text, f->find.n + 1 };
	}
	int r = vc_session_open(&f->base, &f->opt, n, paths, VC_SESSION_IN_MEMORY, err);
	f->opened = true;
	if (r == VC_OK && isnan(vc_family_value(f->base.whatif->family, 0, f->cfg->find)))
		return vc_fail(err, VC_EUSAGE, "the recordings do not differ in %s: give one of "
			       "them alone, or name it, as a.vct@%s=8 b.vct@%s=16", f->cfg->find,
			       f->cfg->find, f->cfg->find);
	return r;
}

static bool names_script(size_t n, char **words)
{
	for (size_t i = 0; i < n; i++)
		if (strlen(words[i]) > 3 && !strcmp(words[i] + strlen(words[i]) - 3, ".py"))
			return true;
	return false;
}

int vc_fitting_open(struct vc_fitting *f, size_t n, char **paths, struct vc_error *err)
{
	int r = read_also(f, err);

	if (r == VC_OK)
		r = open_session(f, n, paths, err);
	if (r == VC_EIO && n && access(paths[0], F_OK) && !strchr(paths[0], '@'))
		return vc_fail(err, names_script(n, paths) ? VC_EUSAGE : VC_EIO,
			       "there is no recording %s; if it is a program, {%s} has to stand "
			       "in its arguments: -- python train.py --batch-size {%s}",
			       paths[0], f->cfg->find, f->cfg->find);
	if (r == VC_OK)
		r = vc_time_open(&f->base, err);
	if (r == VC_OK)
		r = vc_session_plans(&f->base, &f->plan, &f->plans, err);
	if (r == VC_OK && f->plans > VC_FIT_CARDS)
		r = vc_fail(err, VC_EUSAGE, "at most %d cards and settings at once", VC_FIT_CARDS);
	VC_TRY(r);
	f->card = calloc(f->plans, sizeof(*f->card));
	f->proof = f->proof ? f->proof : calloc(f->plans, sizeof(*f->proof));
	VC_HAVE(f->card && f->proof, "the cards", err);
	for (size_t i = 0; i < f->plans; i++)
		f->card[i].plan = f->plan[i];
	f->find.base = &f->base;
	f->find.key = f->cfg->find;
	f->find.unit = f->cfg->multiple;
	f->find.most = f->cfg->most;
	return VC_OK;
}

void vc_fitting_close(struct vc_fitting *f)
{
	for (size_t i = 0; f->card && i < f->plans; i++)
		vc_fit_card_fini(&f->card[i]);
	vc_fit_forget(&f->find);
	if (f->opened)
		vc_session_close(&f->base);
	VC_FREE(f->plan, f->card);
	f->opened = false;
	f->plan = NULL;
	f->card = NULL;
	f->plans = 0;
}

int vc_fitting_search(struct vc_fitting *f, struct vc_error *err)
{
	for (size_t i = 0; i < f->plans; i++)
		VC_TRY(vc_fit_search(&f->find, &f->card[i], err));
	return VC_OK;
}
