/* SPDX-License-Identifier: Apache-2.0 */
/* time_speeds.c - see time_speeds.h
 *
 * A row is a sum of launches: of the same kernel (its name without tile sizes) or of all of its
 * kind, in the same type, of about the same length. A launch takes the row that is nearest to it;
 * being of another kernel counts as much as being eight times as long. */
#include "simulator/time/time_speeds.h"

#include "common/kernel_name.h"
#include "common/vec.h"
#include "simulator/time/time_tempo.h"

#define HEADER "vramcast speed 1"
#define LEAST_DOUBT 0.03
/* Octaves: a row of its kind alone counts as so far away; what is further away says nothing. */
#define OTHER_KERNEL 3
#define FAR 6
#define MOST_OFF 100

static int size_of(double ns)
{
	return ns >= 1 ? (int)floor(log2(ns)) : 0;
}

/* ---- asking ---- */

static const struct vc_speed_row *nearest(const struct vc_speeds *s, const struct vc_kernel_work *w,
					  uint64_t name, int size)
{
	const struct vc_speed_row *best = NULL;
	int least = FAR + 1;

	for (size_t i = 0; i < s->n; i++) {
		const struct vc_speed_row *r = &s->row[i];
		int away = abs(r->size - size) + (r->name == name ? 0 : OTHER_KERNEL);

		if ((r->name && r->name != name) || r->kind != w->kind ||
		    strcmp(r->type, w->type) != 0)
			continue;
		if (away < least || (away == least && best && r->launches > best->launches)) {
			best = r;
			least = away;
		}
	}
	return best;
}

static const struct vc_speed_row *row_of(const struct vc_speeds *s, const struct vc_card *c,
					 const struct vc_kernel_work *w, const char *name,
					 const struct vc_costs *computed)
{
	if (!s || s->card != c || !(computed->ns > 0))
		return NULL;
	return nearest(s, w, vc_kernel_token(name), size_of(computed->ns));
}

struct vc_costs vc_speeds_cost(const struct vc_speeds *s, const struct vc_card *c,
			      const struct vc_kernel_work *w, const char *name)
{
	struct vc_costs cost = vc_cost_of(c, w, name);
	const struct vc_speed_row *r = row_of(s, c, w, name, &cost);

	return r ? (struct vc_costs){ cost.ns * r->ratio, r->doubt } : cost;
}

bool vc_speeds_have(const struct vc_speeds *s, const struct vc_card *c,
		    const struct vc_kernel_work *w, const char *name)
{
	struct vc_costs cost = vc_cost_of(c, w, name);
	const struct vc_speed_row *r = row_of(s, c, w, name, &cost);

	return r && r->name;
}

/* ---- learning ---- */

/* While rows are collected, ratio is the sum of what was measured, doubt that of the squares of the
 * relative differences, and computed the sum of what was computed. */
struct launch { struct vc_speed_row key; double measured, computed; };

VC_COMPARE(by_key, struct launch,
	   VC_THEN(VC_ORDER(x->key.name, y->key.name),
		   VC_THEN(VC_ORDER(x->key.kind, y->key.kind),
			   VC_THEN(strcmp(x->key.type, y->key.type),
				   VC_ORDER(x->key.size, y->key.size)))))

static void note(struct launch *l, const struct vc_kernel_work *w, uint64_t name, double computed,
		 double measured)
{
	*l = (struct launch){ { .name = name, .kind = w->kind, .size = size_of(computed) },
			      measured, computed };
	memcpy(l->key.type, w->type, sizeof(l->key.type));
}

/* Launches at [i, k) are of one row. */
static struct vc_speed_row sum_up(const struct launch *l, size_t i, size_t k)
{
	struct vc_speed_row r = l[i].key;
	double measured = 0, computed = 0, off = 0;

	for (size_t at = i; at < k; at++) {
		measured += l[at].measured;
		computed += l[at].computed;
	}
	r.ratio = measured / computed;
	for (size_t at = i; at < k; at++)
		off += fabs(l[at].measured - r.ratio * l[at].computed);
	r.launches = (unsigned)(k - i);
	/* one alone says nothing of others */
	r.doubt = fmax(LEAST_DOUBT, off / measured + 0.2 / r.launches);
	return r;
}

/* A row that was there, and launches of the same key: both count by their launches. */
static void join(struct vc_speed_row *to, const struct vc_speed_row *r)
{
	double a = to->launches, b = r->launches, ratio = (a * to->ratio + b * r->ratio) / (a + b);

	to->doubt = (a * (to->doubt + fabs(to->ratio / ratio - 1)) +
		     b * (r->doubt + fabs(r->ratio / ratio - 1))) / (a + b);
	to->ratio = ratio;
	to->launches += r->launches;
}

static int keep(struct vc_speeds *s, const struct vc_speed_row *r, struct vc_error *err)
{
	for (size_t i = 0; i < s->n; i++) {
		struct vc_speed_row *x = &s->row[i];

		if (x->name == r->name && x->kind == r->kind && x->size == r->size &&
		    !strcmp(x->type, r->type)) {
			join(x, r);
			return VC_OK;
		}
	}
	VC_HAVE(vc_vec_one(s->row, s->n), "the rows of a table of speeds", err);
	s->row[s->n++] = *r;
	return VC_OK;
}

static int keep_all(struct vc_speeds *s, struct launch *l, size_t n, struct vc_error *err)
{
	vc_sort(l, n, sizeof(*l), by_key);
	for (size_t i = 0, k; i < n; i = k) {
		struct vc_speed_row r;

		for (k = i + 1; k < n && !by_key(&l[i], &l[k]); k++)
			;
		r = sum_up(l, i, k);
		VC_TRY(keep(s, &r, err));
	}
	return VC_OK;
}

/* What the calls of real took: a library makes of one call what is several kernels on a card (sums
 * of parts, copies to other layouts). Those that match none count to the call before them, or to
 * the one behind them. of and ns have real->beats entries. */
static void gather(const struct vc_profile *real, const struct vc_profile *dry,
		   const uint32_t *match, uint32_t *of, double *ns)
{
	uint32_t last = VC_BEAT_ALONE;
	double waiting = 0;

	for (size_t k = 0; k < real->beats; k++)
		of[k] = VC_BEAT_ALONE;
	for (size_t i = 0; i < dry->beats; i++)
		if (match[i] != VC_BEAT_ALONE)
			of[match[i]] = (uint32_t)i;
	for (size_t k = 0; k < real->beats; k++) {
		const struct vc_beat *b = &real->beat[k];
		bool call = b->token == VC_TOKEN_PRODUCT || b->token == VC_TOKEN_CONVOLUTION;

		ns[k] = b->ns;
		if (of[k] == VC_BEAT_ALONE) {
			if (last != VC_BEAT_ALONE && (call || b->token == VC_TOKEN_PARTS))
				ns[last] += b->ns;
			else if (call)
				waiting += b->ns;
			continue;
		}
		last = call ? (uint32_t)k : VC_BEAT_ALONE;
		if (call) {
			ns[k] += waiting;
			waiting = 0;
		}
	}
}

int vc_speeds_learn(struct vc_speeds *s, const struct vc_profile *real,
		    const struct vc_profile *dry, double *matched, struct vc_error *err)
{
	uint32_t *match = calloc(dry->beats + 1, sizeof(*match));
	uint32_t *of = calloc(real->beats + 1, sizeof(*of));
	double *took = calloc(real->beats + 1, sizeof(*took));
	struct launch *l = calloc(2 * dry->beats + 1, sizeof(*l));
	double all = 0, seen = 0;
	size_t n = 0;
	int r = match && of && took && l ? vc_beats_match(dry, real, match, err) :
			     vc_nomem(err, "the kernels of two recordings");

	if (r == VC_OK)
		gather(real, dry, match, of, took);
	for (size_t i = 0; i < real->beats; i++)
		all += real->beat[i].kind == VC_OP_KERNEL ? real->beat[i].ns : 0;
	for (size_t i = 0; r == VC_OK && i < dry->beats; i++) {
		const struct vc_beat *b = &dry->beat[i],
				     *x = match[i] == VC_BEAT_ALONE ? NULL : &real->beat[match[i]];
		struct vc_kernel_work w;
		double ns, measured = x ? took[match[i]] : 0;

		if (!x || x->kind != VC_OP_KERNEL || x->token != b->token || !(x->ns > 0) ||
		    !vc_kernel_work_parse(b->work, &w))
			continue;
		seen += measured;
		ns = vc_cost_of(dry->card, &w, b->name).ns;
		if (!(measured < MOST_OFF * ns && ns < MOST_OFF * measured))
			continue; /* not of the same work */
		note(&l[n++], &w, b->token, ns, measured);
		note(&l[n++], &w, 0, ns, measured);
	}
	if (r == VC_OK)
		r = keep_all(s, l, n, err);
	*matched = all > 0 ? seen / all : 0;
	s->card = dry->card;
	VC_FREE(match, of, took, l);
	return r;
}

/* ---- the file ---- */

int vc_speeds_write(const struct vc_speeds *s, const char *path, struct vc_error *err)
{
	struct vc_output *out = vc_output_open(path, err);
	int r;

	if (!out)
		return (int)err->status;
	vc_output_text(out, HEADER "\n# kernel (0: each of its kind), kind, type, power of two of "
			    "the computed ns, measured by computed, doubt, launches\n");
	vc_output_printf(out, "card %s\n", s->card->name);
	for (size_t i = 0; i < s->n; i++) {
		const struct vc_speed_row *x = &s->row[i];

		vc_output_printf(out, "%" PRIx64 " %s %s %d %.4f %.3f %u\n", x->name,
				 vc_kernel_work_kind(x->kind), x->type, x->size, x->ratio, x->doubt,
				 x->launches);
	}
	r = vc_output_commit(out, err);
	vc_output_close(out);
	return r;
}

static bool parse(const char *line, struct vc_speed_row *r)
{
	char kind[16];
	int end = 0;

	*r = (struct vc_speed_row){ .kind = VC_WORK_KINDS };
	if (sscanf(line, "%" SCNx64 " %15s %7s %d %lf %lf %u%n", &r->name, kind, r->type, &r->size,
		   &r->ratio, &r->doubt, &r->launches, &end) != 7 || line[end])
		return false;
	for (enum vc_work_kind k = VC_WORK_OTHER; k < VC_WORK_KINDS; k++)
		if (!strcmp(kind, vc_kernel_work_kind(k)))
			r->kind = k;
	return r->kind < VC_WORK_KINDS && r->ratio > 0 && r->ratio <= MOST_OFF && r->doubt >= 0 &&
	       r->doubt < 1e3 && r->launches;
}

static int add_line(struct vc_speeds *s, const char *path, size_t number, const char *line,
		    struct vc_error *err)
{
	struct vc_speed_row r;

	if (number == 1)
		return !strcmp(line, HEADER) ? VC_OK :
			vc_fail(err, VC_EFORMAT, "%s is no table of speeds, which begins with '"
				HEADER "': 'vramcast probe -o FILE' writes one", path);
	if (!*line || *line == '#')
		return VC_OK;
	if (!strncmp(line, "card ", 5)) {
		s->card = vc_card_by_name(line + 5);
		return s->card ? VC_OK : vc_fail(err, VC_EFORMAT, "%s, line %zu: no card is called "
						 "'%.40s' ('vramcast gpus' lists them)", path,
						 number, line + 5);
	}
	if (!parse(line, &r))
		return vc_fail(err, VC_EFORMAT, "%s, line %zu: not a row of a table of speeds, "
			       "which has seven words: kernel, kind, type, size, ratio, doubt, "
			       "launches", path, number);
	VC_HAVE(vc_vec_one(s->row, s->n), "the rows of a table of speeds", err);
	s->row[s->n++] = r;
	return VC_OK;
}

int vc_speeds_read(struct vc_speeds *s, const char *path, struct vc_error *err)
{
	struct vc_input *in = vc_input_open(path, err);
	char *text = in ? vc_input_all(in, NULL, err) : NULL, *at = text, *end;
	int r = text ? VC_OK : (int)err->status;

	for (size_t number = 1; r == VC_OK && (end = strchr(at, '\n')); at = end + 1) {
		*end = '\0';
		r = add_line(s, path, number++, at, err);
	}
	if (r == VC_OK && (*at || !s->card || !s->n))
		r = vc_fail(err, VC_EFORMAT, "%s is cut off: it has no %s", path,
			    *at ? "end of its last line" : s->card ? "rows" : "line 'card NAME'");
	free(text);
	vc_input_close(in);
	return r;
}

void vc_speeds_fini(struct vc_speeds *s)
{
	free(s->row);
	*s = (struct vc_speeds){ 0 };
}
