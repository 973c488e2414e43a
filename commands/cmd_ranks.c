/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_ranks.c - vramcast ranks: the recordings of a whole job, one per rank. */

#include "commands/sides.h"
#include "common/site.h"
#include "common/vec.h"
#include "simulator/search/ranks.h"
#include "simulator/time/time.h"

enum { EXPLAINED = 8,  /* groups that are held against the largest: each is two more replays */
       SITES = 5, MEMBERS = 100,
       MEETING = 64 };  /* ranks whose steps are played against each other */

struct config {
	struct vc_run_options run;
	uint64_t threads;
	bool json;
};

#define AT(f) offsetof(struct config, f)
static const struct vc_option ranks_options[] = {
	{ 'j', "jobs", VC_O_JOBS, AT(threads), "N",
	  "threads (default: all cores); changes no output", NULL },
	{ 0, "json", VC_O_FLAG, AT(json), NULL, "one JSON document (vramcast.ranks/1)", NULL },
	VC_OPTION_END
};

/* ---- why one group is not as another ---- */

/* A group and the one with the most ranks: the first rank of each, replayed once more. */
struct why {
	struct vc_side side[2]; /* the most, this one */
	struct vc_diff diff;
};

static int open_why(struct why *w, const struct vc_run_options *opt, const struct vc_ranks *r,
		    size_t group, struct vc_error *err)
{
	const size_t of[2] = { r->group[0].first, r->group[group].first };

	for (int k = 0; k < 2; k++)
		VC_TRY(vc_side_open(&w->side[k], opt, r->at[of[k]].path, NULL, true, err));
	return vc_sides_diff(w->side, &w->diff, NULL, err);
}

static void close_why(struct why *w)
{
	vc_diff_fini(&w->diff);
	vc_side_close(&w->side[0]);
	vc_side_close(&w->side[1]);
}

/* What is not the same beside the requests; "" for nothing. Returns buf. */
static char *other_ground(const struct vc_rank *a, const struct vc_rank *b, char *buf, size_t n)
{
	char x[32], y[32];
	size_t len = 0;

	*buf = '\0';
	if (a->capacity != b->capacity || strcmp(a->card, b->card))
		len += (size_t)snprintf(buf, n, "another card (%s, %s instead of %s, %s)",
					*b->card ? b->card : "unknown",
					vc_bytes_text(b->capacity, y),
					*a->card ? a->card : "unknown",
					vc_bytes_text(a->capacity, x));
	if (strcmp(a->conf, b->conf) && len < n)
		len += (size_t)snprintf(buf + len, n - len, "%sother settings (%s instead of %s)",
					len ? ", " : "", *b->conf ? b->conf : "defaults",
					*a->conf ? a->conf : "defaults");
	if (strcmp(a->torch, b->torch) && len < n)
		snprintf(buf + len, n - len, "%storch %s instead of %s", len ? ", " : "", b->torch,
			 a->torch);
	return buf;
}

static bool has_changed(const struct vc_diff_site *s)
{
	return s->asked[0] != s->asked[1] || s->live[0] != s->live[1];
}

static char *signed_bytes(const uint64_t v[2], char buf[40])
{
	char t[32];

	snprintf(buf, 40, "%s%s", v[1] < v[0] ? "-" : "+",
		 vc_bytes_text(v[1] < v[0] ? v[0] - v[1] : v[1] - v[0], t));
	return buf;
}

static void emit_first(struct vc_emit *e, const struct why *w)
{
	static const char *const words[] = { "", "only the others have it", "only these have it",
		"another size", "another stream", "freed at another place" };
	const struct vc_diff *d = &w->diff;
	int k = d->first == VC_DIFF_ONLY_A ? 0 : 1;
	char place[512], size[32];

	if (d->first == VC_DIFF_NONE) {
		vc_emit_null(e, "event", NULL);
		vc_emit_null(e, "kind", NULL);
		return;
	}
	vc_site_text(w->side[k].s.rec->meta, d->site[k], place, sizeof(place));
	vc_emit_uint(e, "event", NULL, d->event[k]);
	vc_emit_text(e, "kind", NULL, vc_diff_kind_name(d->first));
	vc_emit_line(e, "    the first difference is event %" PRIu64 ": %s%s%s (%s)", d->event[k],
		     vc_bytes_text(d->size[k], size), *place ? " at " : "", place,
		     words[d->first]);
}

static void emit_site(struct vc_emit *e, const struct vc_diff_site *s)
{
	char asked[40], live[40];

	vc_emit_object(e, NULL, NULL);
	vc_emit_text(e, "site", NULL, s->site);
	vc_sides_emit(e, "asked", s->asked);
	vc_sides_emit(e, "blocks", s->blocks);
	vc_sides_emit(e, "live_at_peak", s->live);
	vc_emit_text(e, NULL, "asked for", signed_bytes(s->asked, asked));
	vc_emit_text(e, NULL, "at the peak", signed_bytes(s->live, live));
	vc_emit_text(e, NULL, "where", *s->site ? s->site : "(no call site was recorded)");
	vc_emit_end(e);
}

static void emit_why(struct vc_emit *e, const struct vc_ranks *r, size_t g, const struct why *w,
		     bool json)
{
	const struct vc_rank *a = &r->at[r->group[0].first], *b = &r->at[r->group[g].first];
	const uint64_t need[2] = { a->need, b->need };
	char ground[512], by[40];

	if (json)
		vc_emit_object(e, NULL, NULL);
	vc_emit_uint(e, "group", NULL, g);
	vc_emit_line(e, "  %s is not like %s: %s reserved, %+" PRId64 " allocations%s%s",
		     b->path, a->path, signed_bytes(need, by),
		     (int64_t)(b->requests - a->requests),
		     *other_ground(a, b, ground, sizeof(ground)) ? ", " : "", ground);
	vc_emit_text(e, "against", NULL, a->path);
	vc_emit_text(e, "ground", NULL, *ground ? ground : NULL);
	emit_first(e, w);
	vc_emit_array(e, "sites", "");
	for (size_t i = 0; i < w->diff.n && i < SITES && has_changed(&w->diff.at[i]); i++)
		emit_site(e, &w->diff.at[i]);
	vc_emit_end(e);
	if (json)
		vc_emit_end(e);
}

/* ---- what there is to say ---- */

static void emit_rank(struct vc_emit *e, const struct vc_rank *k)
{
	vc_emit_object(e, NULL, NULL);
	vc_emit_int(vc_emit_known(e, k->number >= 0), "rank", NULL, k->number);
	vc_emit_text(e, "trace", NULL, k->path);
	vc_emit_uint(e, "device", NULL, k->device);
	vc_emit_uint(e, "group", NULL, k->group);
	vc_emit_text(e, "gpu", NULL, *k->card ? k->card : NULL);
	vc_emit_bytes(e, "capacity", NULL, k->capacity);
	vc_emit_text(e, "verdict", NULL, vc_verdict_name(k->verdict));
	vc_emit_text(e, "level", NULL, vc_level_name(k->level));
	vc_emit_bool(e, "checked", NULL, k->checked);
	vc_emit_bool(e, "reproduced", NULL, k->checked && k->exact);
	vc_emit_bytes(e, "need", NULL, k->need);
	vc_result_emit_interval(e, k->has_interval, k->low, k->high);
	vc_emit_bytes(e, "peak_allocated", NULL, k->allocated);
	vc_emit_bytes(e, "peak_reserved", NULL, k->reserved);
	vc_emit_bytes(e, "peak_used", NULL, k->used);
	vc_emit_bool(e, "cut_short", NULL, k->cut_short);
	vc_emit_uint(e, "allocs", NULL, k->requests);
	vc_emit_bytes(e, "asked", NULL, k->bytes);
	vc_emit_end(e);
}

static const char *name_of(const struct vc_rank *k, char *buf, size_t n)
{
	if (k->number < 0)
		return k->path;
	snprintf(buf, n, "rank %" PRId64, k->number);
	return buf;
}

static void emit_death(struct vc_emit *e, const struct vc_ranks *r)
{
	const struct vc_rank *k = &r->at[r->first_to_die];
	char name[32], asked[32], at[64], with[64] = "";

	if (r->first_to_die == VC_RANKS_NONE) {
		vc_emit_null(e, "first_to_die", NULL);
		return;
	}
	if (r->clock == VC_RANKS_BY_STEP)
		snprintf(at, sizeof(at), "after %" PRIu64 " step%s", k->step,
			 k->step == 1 ? "" : "s");
	else if (r->clock == VC_RANKS_BY_TIME)
		snprintf(at, sizeof(at), "after %.3g s", (double)k->time_ns / 1e9);
	else
		snprintf(at, sizeof(at), "by the number of the event");
	vc_emit_object(e, "first_to_die", NULL);
	vc_emit_int(vc_emit_known(e, k->number >= 0), "rank", NULL, k->number);
	vc_emit_text(e, "trace", NULL, k->path);
	vc_emit_text(e, "by", NULL, vc_ranks_clock_name(r->clock));
	vc_emit_uint(e, "step", NULL, k->step);
	vc_emit_uint(e, "time_ns", NULL, k->time_ns);
	vc_emit_uint(e, "event", NULL, k->event);
	vc_emit_uint(e, "request", NULL, k->asked);
	vc_emit_uint(e, "as_early", NULL, r->as_early);
	if (r->as_early)
		snprintf(with, sizeof(with), ", and %zu others as early", r->as_early);
	vc_emit_line(e, "  %s dies first, %s%s: event %" PRIu64 " asks for %s",
		     name_of(k, name, sizeof(name)), at, with, k->event,
		     vc_bytes_text(k->asked, asked));
	vc_emit_end(e);
}

static void emit_group(struct vc_emit *e, const struct vc_ranks *r, size_t g)
{
	const struct vc_rank_group *k = &r->group[g];
	char *members = malloc(16 * r->n + 32 + MEMBERS);
	char shown[MEMBERS];

	vc_emit_object(e, NULL, NULL);
	vc_emit_text(e, NULL, "ranks", vc_ranks_members(r, g, shown, sizeof(shown)));
	vc_emit_text(e, "ranks", NULL, members ?
		     vc_ranks_members(r, g, members, 16 * r->n + 32 + MEMBERS) : shown);
	vc_emit_uint(e, "count", "count", k->n);
	vc_emit_bool(e, "same_order", "same order", k->same_order);
	vc_emit_bytes(e, "least", "reserved from", k->least);
	vc_emit_bytes(e, "most", "to", k->most);
	vc_emit_uint(e, "allocs", "allocations", r->at[k->first].requests);
	vc_emit_bytes(e, "asked", "asked for", r->at[k->first].bytes);
	vc_emit_text(e, "first", NULL, r->at[k->first].path);
	vc_emit_end(e);
	free(members);
}

static void emit_verdicts(struct vc_emit *e, const struct vc_ranks *r, char *buf, size_t n)
{
	static const char *const words[] = { [VC_FITS] = "fit", [VC_FLUSHES] = "fit by emptying "
		"the cache", [VC_UNDECIDED] = "undecided", [VC_OOM] = "run out of memory" };
	size_t of[VC_OOM + 1] = { 0 }, len = 0;

	for (size_t i = 0; i < r->n; i++)
		of[r->at[i].verdict]++;
	*buf = '\0';
	vc_emit_object(e, "verdicts", NULL);
	for (size_t v = 0; v <= VC_OOM; v++) {
		vc_emit_uint(e, vc_verdict_name((enum vc_verdict)v), NULL, of[v]);
		if (of[v] && len < n)
			len += (size_t)snprintf(buf + len, n - len, "%s%zu %s", len ? ", " : "",
						of[v], words[v]);
	}
	vc_emit_end(e);
}

static size_t not_reproduced(const struct vc_ranks *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		n += r->at[i].checked && !r->at[i].exact;
	return n;
}

static double imbalance(const struct vc_ranks *r)
{
	return r->mean > 0 ? (double)r->at[r->largest].need / r->mean - 1 : 0;
}

/* The answer in a few lines; for programs the same figures. */
static void emit_head(struct vc_emit *e, const struct vc_ranks *r)
{
	const struct vc_rank *most = &r->at[r->largest], *least = &r->at[r->least];
	char a[32], b[32], c[32], who[32], other[32], words[128];

	emit_verdicts(e, r, words, sizeof(words));
	if (most->need == least->need)
		vc_emit_line(e, "%zu ranks: %s; each needs %s reserved", r->n, words,
			     vc_bytes_text(most->need, a));
	else
		vc_emit_line(e, "%zu ranks: %s; %s needs the most, %s reserved", r->n, words,
			     name_of(most, who, sizeof(who)), vc_bytes_text(most->need, a));
	if (most->need != least->need)
		vc_emit_line(e, "  mean %s, least %s (%s); the largest is %.2f %% above the mean",
			     vc_bytes_text((uint64_t)r->mean, b), vc_bytes_text(least->need, c),
			     name_of(least, other, sizeof(other)), 100 * imbalance(r));
	vc_emit_uint(e, "traces", NULL, r->n);
	vc_emit_uint(e, "largest", NULL, most->need);
	vc_emit_text(e, "largest_trace", NULL, most->path);
	vc_emit_uint(e, "least", NULL, least->need);
	vc_emit_text(e, "least_trace", NULL, least->path);
	vc_emit_uint(e, "mean", NULL, (uint64_t)r->mean);
	vc_emit_real(e, "imbalance", NULL, imbalance(r));
	vc_emit_uint(e, "deaths", NULL, r->deaths);
	emit_death(e, r);
	if (not_reproduced(r))
		vc_emit_line(e, "  careful: the model does not reproduce %zu of the recordings",
			     not_reproduced(r));
	for (size_t i = 0; i < r->n; i++)
		if (r->at[i].cut_short) {
			vc_emit_line(e, "  careful: %s ends where it ran out of memory; it needs "
				     "more than that", name_of(&r->at[i], who, sizeof(who)));
			break;
		}
}

static int emit_reasons(struct vc_emit *e, const struct vc_ranks *r, const struct config *c,
			struct vc_error *err)
{
	int rc = VC_OK;

	vc_emit_line(e, "%s", "");
	if (c->json) /* people read of each in lines */
		vc_emit_array(e, "differences", NULL);
	for (size_t g = 1; rc == VC_OK && g < r->groups && g <= EXPLAINED; g++) {
		struct why w = { 0 };

		rc = open_why(&w, &c->run, r, g, err);
		if (rc == VC_OK) {
			emit_why(e, r, g, &w, c->json);
		}
		close_why(&w);
	}
	if (c->json)
		vc_emit_end(e);
	if (r->groups > EXPLAINED + 1)
		vc_emit_line(e, "  and %zu more groups; 'vramcast diff' compares any two",
			     r->groups - EXPLAINED - 1);
	return rc;
}

/* Recordings of dry runs: the ranks' kernels, played against each other. */
static int emit_time(struct vc_emit *e, const struct vc_ranks *r, const struct config *c,
		     struct vc_error *err)
{
	size_t n = r->n < MEETING ? r->n : MEETING, open = 0;
	struct vc_session *s = calloc(n, sizeof(*s)), **each = calloc(n, sizeof(*each));
	struct vc_timing t = { 0 };
	int rc = s && each ? VC_OK : vc_nomem(err, "the ranks of a job");

	for (; rc == VC_OK && open < n; open += rc == VC_OK) {
		rc = vc_session_open_one(&s[open], &c->run, r->at[open].path, 0, err);
		each[open] = &s[open];
		if (rc == VC_OK)
			rc = vc_time_open(&s[open], err);
	}
	if (rc == VC_OK)
		rc = vc_time_ranks(each, n, &t, err);
	if (rc == VC_OK)
		vc_time_report_ranks(e, &t);
	for (size_t i = 0; s && i < n; i++)
		vc_session_close(&s[i]);
	VC_FREE(s, each);
	return rc;
}

static int say(const struct vc_ranks *r, const struct config *c, struct vc_error *err)
{
	struct vc_emit *e = vc_emit_stdout(c->json, err);
	int rc, ended;

	if (!e)
		return err->status;
	if (c->json)
		vc_emit_object(e, NULL, NULL);
	vc_emit_text(e, "schema", NULL, "vramcast.ranks/1");
	emit_head(e, r);
	rc = emit_time(e, r, c, err);
	vc_emit_array(e, "groups", "");
	for (size_t g = 0; g < r->groups && (c->json || g < 2 * EXPLAINED); g++)
		emit_group(e, r, g);
	vc_emit_end(e);
	if (rc == VC_OK)
		rc = emit_reasons(e, r, c, err);
	if (c->json) {
		vc_emit_array(e, "ranks", NULL);
		for (size_t i = 0; i < r->n; i++)
			emit_rank(e, &r->at[i]);
		vc_emit_end(e);
		vc_emit_end(e);
	}
	ended = vc_emit_done(e, rc == VC_OK ? err : NULL);
	return rc == VC_OK ? ended : rc;
}

static int code_of(const struct vc_ranks *r)
{
	static const int code[] = { [VC_FITS] = 0, [VC_FLUSHES] = 0, [VC_UNDECIDED] = 6,
				    [VC_OOM] = 3 };
	enum vc_verdict worst = VC_FITS;

	for (size_t i = 0; i < r->n; i++)
		worst = r->at[i].verdict > worst ? r->at[i].verdict : worst;
	return code[worst];
}

static int ranks_run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	const struct config *c = config;
	struct vc_ranks r = { 0 };
	int rc = VC_OK;

	if (!argc)
		rc = vc_fail(&con->err, VC_EUSAGE, "name the recordings of the ranks");
	else if (vc_runs_asked(&c->run) > 1)
		rc = vc_fail(&con->err, VC_EUSAGE, "ranks replays each recording once: give one "
			     "of -m, --torch, --conf and -g at most");
	else if (c->run.set.n)
		rc = vc_fail(&con->err, VC_EUSAGE, "--set: each rank is replayed as it was "
			     "recorded; 'vramcast sim' predicts from several recordings of one "
			     "rank");
	vc_remark_cards(&c->run.gpu, con);
	if (rc == VC_OK)
		rc = vc_ranks_run(&r, &c->run, argc, argv,
				  c->threads, &con->err);
	if (rc == VC_OK)
		rc = say(&r, c, &con->err);
	if (rc == VC_OK)
		rc = code_of(&r);
	vc_ranks_fini(&r);
	return rc;
}

const struct vc_command vc_command_ranks = {
	.name = "ranks", .operands = "TRACE...",
	.summary = "the ranks of a job side by side: who needs most, who dies first, who differs",
	.details =
		"One recording per rank, any number of them: each is replayed and closed again. "
		"Ranks that asked for\nthe same blocks are one group; the others are held against "
		"the group with the most ranks. Of a rank\nthat runs out the need is what it would "
		"have reserved on a card without end. Exit codes: 0 all fit,\n3 one runs out of "
		"memory, 6 undecided.\n\n"
		"  vramcast ranks run.vct run.rank*.vct\n"
		"  vramcast ranks run.vct run.rank*.vct -g a100-40g-sxm --json",
	.options = VC_OPTIONS(ranks_options, vc_run_options),
	.config_size = sizeof(struct config), .run = ranks_run,
};
