/* SPDX-License-Identifier: Apache-2.0 */
/* fit_budget.c - fit --find budget: which modules of a program to compute twice so that it stays
 * below a peak, at the least time. Whatever is answered was played in a dry run. */

#include "commands/budget_file.h"
#include "commands/fit_find.h"

enum { FITS = 0, NEVER = 3 };

struct find {
	struct vc_fit_on on;
	struct vc_budget b;
	uint64_t peak;            /* that is asked for, context included */
	struct vc_kept kept, again; /* nothing and all of it computed twice */
	uint64_t over;            /* what is used beyond what is allocated */
	bool *take, *best;
	bool found, bounded;      /* a choice that was played; there is a bound */
	uint64_t used, predicted; /* by it */
	double ns, bound;         /* bytes that it writes again; no choice writes fewer */
	size_t runs;              /* dry runs of choices */
	char command[400];
};

static int open_trace(struct vc_recording *rec, const char *path, struct vc_error *err)
{
	const struct vc_recording_ask ask = { .device = VC_NOT_GIVEN, .rank = VC_NOT_GIVEN,
					      .flags = VC_SESSION_IN_MEMORY };

	VC_TRY(vc_recording_open(rec, path, &ask, err));
	return rec->trace.n ? VC_OK : vc_fail(err, VC_ENOSUP, "%s is too long to be searched; run "
					      "fewer steps", path);
}

static int play(struct find *f, struct vc_rehearsal *h, const bool *take, struct vc_kept *ran,
		struct vc_error *err)
{
	char *spec = vc_budget_spec(&f->b, take, err);
	int r = spec ? VC_OK : (int)err->status;

	h->budget = spec;
	if (r == VC_OK)
		r = vc_rehearse(h, ran, err);
	h->budget = NULL;
	free(spec);
	return r;
}

/* Which modules there are: one step shows it. */
static int observe(struct find *f, struct vc_rehearsal *h, struct vc_error *err)
{
	struct vc_recording rec = { 0 };
	struct vc_kept ran;
	int r;

	h->budget = "{\"observe\": true}";
	h->steps = 1;
	r = vc_rehearse(h, &ran, err);
	h->budget = NULL;
	h->steps = 0;
	if (r == VC_OK)
		r = open_trace(&rec, ran.path, err);
	if (r == VC_OK)
		r = vc_budget_units(&f->b, &rec.trace, err);
	vc_recording_close(&rec);
	return r;
}

static int read_both(struct find *f, struct vc_error *err)
{
	struct vc_recording kept = { 0 }, again = { 0 };
	int r = open_trace(&kept, f->kept.path, err);

	if (r == VC_OK)
		r = open_trace(&again, f->again.path, err);
	if (r == VC_OK)
		r = vc_budget_read(&f->b, &kept.trace, &again.trace, kept.device->device, err);
	vc_recording_close(&kept);
	vc_recording_close(&again);
	return r;
}

static int begin(void *find, struct vc_rehearsal *h, struct vc_error *err)
{
	struct find *f = find;

	if (!h)
		return vc_fail(err, VC_EUSAGE, "--find budget tries choices in the program: name "
			       "it behind --, in place of a recording");
	f->peak = f->on.ask->peak != VC_NOT_GIVEN ? f->on.ask->peak : f->on.plan[0].capacity;
	for (size_t i = 0, at = 0; i < h->argc && at < sizeof(f->command); i++)
		at += (size_t)snprintf(f->command + at, sizeof(f->command) - at, "%s%s",
				       i ? " " : "", h->argv[i]);
	VC_TRY(observe(f, h, err));
	f->take = calloc(f->b.n, sizeof(*f->take));
	f->best = calloc(f->b.n, sizeof(*f->best));
	VC_HAVE(f->take && f->best, "a choice of modules", err);
	VC_TRY(play(f, h, f->take, &f->kept, err));
	memset(f->take, 1, f->b.n * sizeof(*f->take));
	VC_TRY(play(f, h, f->take, &f->again, err));
	return read_both(f, err);
}

static int search(void *find, size_t card, struct vc_error *err)
{
	(void)find;
	(void)card;
	(void)err;
	return VC_OK; /* of a program only, in prove */
}

static double time_of(const struct find *f, const bool *take)
{
	double ns = 0;

	for (size_t i = 0; i < f->b.n; i++)
		ns += take[i] ? f->b.at[i].cost : 0;
	return ns;
}

static void keep_it(struct find *f, const struct vc_kept *ran)
{
	double ns = time_of(f, f->take);

	if (f->found && (ns > f->ns || (ns == f->ns && ran->used >= f->used)))
		return;
	f->found = true;
	f->ns = ns;
	f->used = ran->used;
	f->predicted = vc_budget_peak(&f->b, f->take) + f->over;
	memcpy(f->best, f->take, f->b.n * sizeof(*f->best));
}

/* Choices for `bytes` are played until one stays below the peak; what is left then goes to one
 * more. */
static int try_choices(struct find *f, struct vc_rehearsal *h, struct vc_error *err)
{
	uint64_t bytes = f->peak > f->over ? f->peak - f->over : 0, bad = UINT64_MAX;
	bool some = true;
	double ns;

	while (f->runs < f->on.ask->trials) {
		struct vc_kept ran;

		VC_TRY(vc_budget_choose(&f->b, bytes, f->take, &ns, &some, err));
		if (!some || (f->found && ns >= f->ns))
			break;
		VC_TRY(play(f, h, f->take, &ran, err));
		f->runs++;
		uint64_t says = vc_budget_peak(&f->b, f->take);
		if (ran.used <= f->peak) {
			keep_it(f, &ran);
			bytes = says + (f->peak - ran.used);
			bytes = bytes < bad ? bytes : bad - 1;
			continue;
		}
		bad = says < bad ? says : bad;
		bytes = says > ran.used - f->peak ? says - (ran.used - f->peak) : 0;
	}
	return VC_OK;
}

static int prove(void *find, struct vc_rehearsal *h, struct vc_error *err)
{
	struct find *f = find;
	uint64_t beside = f->kept.used > f->kept.reserved ? f->kept.used - f->kept.reserved : 0;

	h->capacity = "1TiB";
	memset(f->take, 0, f->b.n * sizeof(*f->take));
	uint64_t most = vc_budget_peak(&f->b, f->take);
	f->over = f->kept.used > most ? f->kept.used - most : 0;
	if (f->kept.used <= f->peak) {
		keep_it(f, &f->kept);
		f->bounded = true;
		return VC_OK;
	}
	memset(f->take, 1, f->b.n * sizeof(*f->take));
	if (f->again.used <= f->peak)
		keep_it(f, &f->again);
	/* a cache that wastes nothing */
	VC_TRY(vc_budget_choose(&f->b, f->peak > beside ? f->peak - beside : 0, f->take, &f->bound,
				&f->bounded, err));
	return try_choices(f, h, err);
}

/* ---- saying it ---- */

static size_t taken(const struct find *f)
{
	size_t n = 0;

	for (size_t i = 0; f->found && i < f->b.n; i++)
		n += f->best[i];
	return n;
}

static void say_code(struct vc_emit *e, const struct find *f)
{
	vc_emit_line(e, "  to paste behind what makes the model:");
	vc_emit_line(e, "    from functools import partial");
	vc_emit_line(e, "    from torch.utils.checkpoint import checkpoint");
	vc_emit_line(e, "    for name in [");
	for (size_t i = 0; i < f->b.n; i++) {
		const char *slash = strchr(f->b.at[i].name, '/');

		if (f->best[i])
			vc_emit_line(e, "            \"%s\",",
				     slash ? slash + 1 : f->b.at[i].name);
	}
	vc_emit_line(e, "    ]:");
	vc_emit_line(e, "        layer = model.get_submodule(name)");
	vc_emit_line(e, "        layer.forward = partial(checkpoint, layer.forward, "
			"use_reentrant=False)");
	vc_emit_line(e, "  statistics of batch normalization see each batch twice then; not "
			"with 'vramcast run --choice'");
}

static void say_people(struct vc_emit *e, const struct find *f)
{
	char need[32], peak[32], used[32], said[32], ns[32];

	vc_emit_line(e, "as it is it needs %s; asked for: at most %s",
		     vc_bytes_text(f->kept.used, need), vc_bytes_text(f->peak, peak));
	if (!f->found) {
		vc_emit_line(e, "no choice of its %zu modules was found that stays below; with all "
			     "of them computed twice it needs %s", f->b.n,
			     vc_bytes_text(f->again.used, used));
		return;
	}
	if (!taken(f)) {
		vc_emit_line(e, "nothing has to be computed twice");
		return;
	}
	vc_emit_line(e, "%zu of %zu modules are computed twice: %s in a dry run with that (%s "
		     "predicted)", taken(f), f->b.n, vc_bytes_text(f->used, used),
		     vc_bytes_text(f->predicted, said));
	vc_emit_line(e, "cheapest by the bytes that modules write: %s a step once more%s",
		     vc_bytes_text((uint64_t)f->ns, ns),
		     f->b.unproven ? " (not all compared)" : "");
	say_code(e, f);
}

static void say(const void *find, size_t card, struct vc_emit *e)
{
	const struct find *f = find;

	(void)card;
	vc_emit_uint(e, "peak", NULL, f->peak);
	vc_emit_bool(e, "fits", NULL, f->found);
	vc_emit_uint(e, "needs", NULL, f->kept.used);
	vc_emit_uint(e, "least", NULL, f->again.used);
	vc_emit_uint(vc_emit_known(e, f->found), "used", NULL, f->used);
	vc_emit_uint(vc_emit_known(e, f->found), "predicted", NULL, f->predicted);
	vc_emit_uint(vc_emit_known(e, f->found), "extra_bytes", NULL, (uint64_t)f->ns);
	vc_emit_uint(vc_emit_known(e, f->bounded), "bound_bytes", NULL, (uint64_t)f->bound);
	vc_emit_uint(e, "runs", NULL, f->runs);
	vc_emit_array(e, "units", NULL);
	for (size_t i = 0; i < f->b.n; i++) {
		vc_emit_object(e, NULL, NULL);
		vc_emit_text(e, "name", NULL, f->b.at[i].name);
		vc_emit_text(e, "do", NULL, f->found && f->best[i] ? "recompute" : "keep");
		vc_emit_uint(e, "freed", NULL, (uint64_t)f->b.at[i].freed);
		vc_emit_uint(e, "bytes", NULL, (uint64_t)f->b.at[i].cost);
		vc_emit_end(e);
	}
	vc_emit_end(e);
	say_people(e, f);
}

static int code_of(const void *find)
{
	return ((const struct find *)find)->found ? FITS : NEVER;
}

static const struct vc_fit_steps steps = { "vramcast.fit-budget/1", begin, search, prove, say,
					   code_of };

static int find_budget(const struct vc_fit_ask *ask, size_t argc, char **argv,
		       struct vc_console *con)
{
	struct find f = { .on.ask = ask };
	int r = vc_fit_take(&steps, &f, argc, argv, con);

	if (r == FITS && ask->save) {
		int lost = vc_budget_save(&f.b, f.best, f.command, f.used, ask->save, &con->err);

		r = lost < 0 ? lost : r;
	}
	free(f.take);
	free(f.best);
	vc_budget_fini(&f.b);
	vc_fit_left(&f.on);
	return r;
}

const struct vc_fit_find vc_fit_budget = { .name = "budget", .run = find_budget };
