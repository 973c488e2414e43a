/* SPDX-License-Identifier: Apache-2.0 */
/* workspaces.c - recognises bias gradients in an event stream without names.
 *
 * With workspace the pattern is unmistakable: sums, partial sums, semaphores are asked for in a row
 * and the last two are given back at once, with sizes that only the formula of reduction.c
 * produces. Without workspace, a bias gradient is a constant block of n values asked for right
 * after the constant block of the weight's gradient (n * k values), while the gradient that flows
 * in (rows * n) and the layer's input or its gradient (rows * k) are alive. */
#include "simulator/predict/workspaces.h"

#include "common/torch_sizes.h"
#include "common/vec.h"
#include "simulator/replay/cards.h"

enum {
	BACK = 6000,             /* allocations looked back at for a live block */
	WIDEST = 1 << 20,        /* bytes of the largest bias gradient */
	WIDTHS = 64,             /* row sums looked at to tell the card; bounds a table */
	BORROWED = 65536,        /* bytes: no workspace is smaller */
	PLACE = 8,               /* bytes of a place, int64 */
	VALUE = 4,               /* bytes of a value of its rows, float */
	PAIRS = 4,               /* a value beside its place takes as much as so many sums */
};

static bool is_reduction(const struct vc_workspace *s)
{
	return s->kind == VC_WORKSPACE_SUM || s->kind == VC_WORKSPACE_PLACE;
}

/* Bytes of the two buffers for that many rows; false: none. */
static bool size_of(const struct vc_workspace *s, uint64_t rows,
		    const struct vc_reduction_card *card, uint64_t *partial, uint64_t *semaphores)
{
	if (is_reduction(s)) {
		bool any = vc_reduction(s->width, rows, card, partial, semaphores);

		*partial *= any && s->kind == VC_WORKSPACE_PLACE ? PAIRS : 1;
		return any;
	}
	return vc_norm_scratch(s->width, rows, s->kind == VC_WORKSPACE_NORM ? 4 : 2, partial,
			       semaphores);
}

bool vc_workspace_at(const struct vc_workspace *s, uint64_t sums, uint64_t source,
		     const struct vc_reduction_card *card, uint64_t *partial,
		     uint64_t *semaphores)
{
	struct vc_workspace there = *s;
	uint64_t own = s->kind == VC_WORKSPACE_PLACE ? (uint64_t)PLACE * s->width : s->row;

	if (is_reduction(s) && sums && sums != own) {
		double up = (double)sums / (double)own;

		there.row = (uint64_t)((double)s->row * up + 0.5);
		there.width = (uint32_t)((double)s->width * up + 0.5);
	}
	return size_of(&there, (source + there.row / 2) / there.row, card, partial, semaphores);
}

bool vc_workspace_follows(const struct vc_allocations *m, uint32_t i)
{
	if (i + 2 >= m->n)
		return false;
	uint32_t b = m->born[i];

	return m->born[i + 1] == b + 1 && m->born[i + 2] == b + 2 && m->died[i + 2] == b + 3 &&
	       m->died[i + 1] == b + 4;
}

static bool sum_of(const struct vc_allocations *m, uint32_t i, uint32_t element,
		   const struct vc_reduction_card *card, struct vc_workspace *out)
{
	uint64_t n = m->take[i].size / element, lo, hi, pairs = element == PLACE ? PAIRS : 1;
	enum vc_limit limit;

	if (!vc_workspace_follows(m, i) || m->take[i].size % element ||
	    m->take[i + 1].size % pairs ||
	    !vc_reduction_rows(n, m->take[i + 1].size / pairs, m->take[i + 2].size, card, &lo, &hi,
			       &limit))
		return false;
	*out = (struct vc_workspace){
		.kind = element == PLACE ? VC_WORKSPACE_PLACE : VC_WORKSPACE_SUM, .owner = i,
		.source = VC_UNMATCHED, .width = (uint32_t)n,
		.row = element == PLACE ? VALUE * n : m->take[i].size, .present = true,
		.least = lo, .most = hi, .limit = limit };
	return true;
}

static bool sum_present(const struct vc_allocations *m, uint32_t i,
			const struct vc_reduction_card *card, struct vc_workspace *out)
{
	return sum_of(m, i, 4, card, out) || sum_of(m, i, 2, card, out) ||
	       sum_of(m, i, PLACE, card, out);
}

/* Of cuBLAS: constant and asked for in the middle of things. */
static bool is_workspace(const struct vc_allocations *m, uint32_t i)
{
	return m->died[i] == VC_NEVER && vc_is_torch_workspace(m->take[i].size);
}

static bool varies(const double *grows, uint32_t i)
{
	return fabs(grows[i] - 1) > 1e-9;
}

/* Blocks of the same rows grow by the same factor (sizes are whole bytes). */
static bool alike(const struct vc_allocations *m, const double *grows, uint32_t i, uint32_t j)
{
	double slack = 1e-4 + 0.6 / (double)m->take[i].size + 0.6 / (double)m->take[j].size;

	return fabs(grows[i] - grows[j]) <= slack;
}

/* What a matrix product borrows for itself and gives back at once (cuBLAS workspaces from the
 * caching allocator, PyTorch 2.15): no gradient is given back so soon. */
static bool is_borrowed(const struct vc_allocations *m, const double *grows, uint32_t i)
{
	return m->take[i].size >= BORROWED && m->died[i] == m->born[i] + 1 && !varies(grows, i);
}

/* The allocations beside i, as if nothing had been borrowed in between; before the first: i,
 * behind the last: m->n. */
static uint32_t before(const struct vc_allocations *m, const double *grows, uint32_t i)
{
	uint32_t j = i;

	while (j-- > 0)
		if (!is_borrowed(m, grows, j))
			return j;
	return i;
}

static uint32_t behind(const struct vc_allocations *m, const double *grows, uint32_t i)
{
	do
		i++;
	while (i < m->n && is_borrowed(m, grows, i));
	return i;
}

static bool is_weight_of(const struct vc_allocations *m, const double *grows, uint32_t w,
			 uint64_t size)
{
	return w < m->n && !varies(grows, w) && !is_workspace(m, w) &&
	       m->take[w].size % size == 0 && m->take[w].size / size >= 2;
}

/* A layer whose gradients stand at allocation i: its inputs (k), its weight's gradient, and the
 * allocation before which the rows are alive. */
struct layer { uint64_t k; uint32_t weight, input, at; };

/* Could allocation i be a bias gradient? Its weight's gradient stands before it, or after it (and
 * after the buffers). */
static bool layer_of(const struct vc_allocations *m, const double *grows, uint32_t i,
		     struct layer *l)
{
	uint64_t size = m->take[i].size;
	uint32_t last = before(m, grows, i), further = before(m, grows, last);
	uint32_t next = behind(m, grows, vc_workspace_follows(m, i) ? i + 2 : i);

	if (last == i || varies(grows, i) || !size || size % 2 || size > WIDEST)
		return false;
	if (is_weight_of(m, grows, last, size))
		*l = (struct layer){
			.weight = last, .input = further < last ? further : i, .at = last };
	else if (m->take[last].size == size) /* two vectors: those of a normalisation */
		return false;
	else if (is_weight_of(m, grows, next, size))
		*l = (struct layer){ .weight = next, .input = behind(m, grows, next), .at = i };
	else
		return false;
	l->k = m->take[l->weight].size / size;
	return true;
}

/* A live block of that many bytes (rows * k values) proves the number of rows. */
static bool witness(const struct vc_allocations *m, const double *grows, const struct layer *l,
		    uint32_t source, uint64_t size)
{
	for (uint32_t j = l->at; j-- > 0 && l->at - j < BACK;)
		if (m->take[j].size == size && m->died[j] > m->born[l->at] &&
		    alike(m, grows, j, source))
			return true;
	return l->input < m->n && m->take[l->input].size == size &&
	       alike(m, grows, l->input, source);
}

/* Usually the gradient of the layer's input (rows * k) stands beside that of its weight: then the
 * rows are known and only their block is missing. */
static uint32_t by_input_gradient(const struct vc_allocations *m, const double *grows,
				  const struct vc_workspace *s, const struct layer *l, uint64_t row)
{
	uint32_t now = m->born[l->at];

	if (!row || l->input >= m->n || l->input == s->owner || m->take[l->input].size % row)
		return VC_UNMATCHED;
	uint64_t rows = m->take[l->input].size / row;
	if (rows < 2 || rows < s->least || rows > s->most)
		return VC_UNMATCHED;
	for (uint32_t j = l->at; j-- > 0 && l->at - j < BACK;)
		if (m->take[j].size == rows * s->row && m->died[j] > now &&
		    alike(m, grows, j, l->input))
			return j;
	return VC_UNMATCHED;
}

/* Sizes of live blocks before a layer, one bit each of 4096: almost none is a witness's. */
struct sizes { uint64_t bits[64]; };

static uint64_t place_of(uint64_t size)
{
	return size * 0x9e3779b97f4a7c15ull >> 52; /* Fibonacci hashing: 12 bits */
}

static void note_size(struct sizes *s, uint64_t size)
{
	s->bits[place_of(size) / 64] |= 1ull << place_of(size) % 64;
}

static void note_sizes(const struct vc_allocations *m, const struct layer *l, struct sizes *out)
{
	*out = (struct sizes){ 0 };
	for (uint32_t j = l->at; j-- > 0 && l->at - j < BACK;)
		if (m->died[j] > m->born[l->at])
			note_size(out, m->take[j].size);
	if (l->input < m->n)
		note_size(out, m->take[l->input].size);
}

static bool may_be_there(const struct sizes *s, uint64_t size)
{
	return s->bits[place_of(size) / 64] >> place_of(size) % 64 & 1;
}

/* The latest live block that could be the rows: where a row of the layer's input has `row` bytes
 * (0: unknown) a witness is alive, and their number is one that the buffers allow. */
static uint32_t source_of(const struct vc_allocations *m, const double *grows,
			  const struct vc_workspace *s, const struct layer *l, uint64_t row)
{
	uint32_t j = by_input_gradient(m, grows, s, l, row);
	uint64_t size = s->row;
	struct sizes there;

	if (j != VC_UNMATCHED) /* rows that do not vary never need buffers they did not need here */
		return varies(grows, j) ? j : VC_UNMATCHED;
	if (row)
		note_sizes(m, l, &there);
	for (j = l->at; j-- > 0 && l->at - j < BACK;) {
		uint64_t rows;

		if (m->died[j] <= m->born[l->at] || m->take[j].size <= size || !varies(grows, j))
			continue; /* most are: no division is needed for these */
		rows = m->take[j].size / size;
		if (rows * size == m->take[j].size && rows >= s->least && rows <= s->most &&
		    (!row || (may_be_there(&there, rows * row) &&
			      witness(m, grows, l, j, rows * row))))
			return j;
	}
	return VC_UNMATCHED;
}

/* Bytes per value of the sums where no buffer tells: half when the weight's gradient is copied to
 * twice its size soon after (autocast), else float. */
static uint32_t element_of(const struct vc_allocations *m, const double *grows,
			   const struct layer *l)
{
	for (uint32_t j = l->weight + 1; j < m->n && j < l->weight + 9; j++)
		if (m->take[j].size == 2 * m->take[l->weight].size && !varies(grows, j))
			return 2;
	return 4;
}

/* A bias gradient at allocation i, with or without buffers. */
static bool sum_at(const struct vc_allocations *m, const double *grows,
		   const struct vc_reduction_card *card, uint32_t i, struct vc_workspace *s)
{
	struct layer l, none = { .at = i, .input = i };
	uint64_t a, b;
	bool known = layer_of(m, grows, i, &l);

	*s = (struct vc_workspace){ .owner = i, .source = VC_UNMATCHED, .most = UINT64_MAX,
				  .row = m->take[i].size };
	if (sum_present(m, i, card, s)) {
		if (known)
			s->source = source_of(m, grows, s, &l, l.k * s->row / s->width);
		if (s->source == VC_UNMATCHED)
			s->source = source_of(m, grows, s, known ? &l : &none, 0);
		return true;
	}
	if (!known)
		return false;
	uint32_t element = element_of(m, grows, &l);
	s->source = source_of(m, grows, s, &l, l.k * element);
	if (s->source == VC_UNMATCHED || !varies(grows, s->source))
		return false;
	s->width = (uint32_t)(s->row / element);
	/* Where buffers should have been but are not, this is no row sum. */
	return !vc_reduction(s->width, m->take[s->source].size / s->row, card, &a, &b);
}

/* Sums, weighted sums and two gradients, n floats each, then the gradient of the input. */
static bool is_norm_back(const struct vc_allocations *m, const double *grows, uint32_t i,
			 uint32_t after)
{
	uint64_t size = m->take[i].size;

	for (uint32_t j = i - 3; j <= i; j++)
		if (m->take[j].size != size || varies(grows, j))
			return false;
	return after < m->n && varies(grows, after) && m->take[after].size % size == 0;
}

/* Mean and deviation die with the backward pass of the same layer. */
static bool has_back(const struct vc_allocations *m, const double *grows, uint32_t i)
{
	if (m->died[i] == VC_NEVER)
		return false;
	uint32_t last = i + m->take[i].life; /* the last allocation made while it lived */

	for (uint32_t j = last < m->n ? last : (uint32_t)m->n - 1; j > i + 3 && j + 24 > last; j--)
		if (m->take[j].size == m->take[i].size &&
		    is_norm_back(m, grows, j, vc_workspace_follows(m, j) ? j + 3 : j + 1))
			return true;
	return false;
}

/* Batch normalisation: the output, then mean and inverse deviation (forward). */
static bool norm_at(const struct vc_allocations *m, const double *grows, uint32_t i,
		    struct vc_workspace *s)
{
	const struct vc_take *t = m->take;
	uint64_t size = t[i].size, a = 0, b = 0;
	uint32_t after = vc_workspace_follows(m, i) ? i + 3 : i + 1;

	if (i < 3 || varies(grows, i) || t[i - 1].size != size || varies(grows, i - 1) ||
	    size % 4 || size < 256)
		return false;
	*s = (struct vc_workspace){ .kind = VC_WORKSPACE_NORM, .owner = i, .source = i - 2,
				  .width = (uint32_t)(size / 4), .row = size,
				  .present = after == i + 3 };
	if (is_norm_back(m, grows, i, after)) {
		s->kind = VC_WORKSPACE_NORM_BACK;
		s->source = after;
	} else if (!has_back(m, grows, i)) {
		return false;
	}
	if (!varies(grows, s->source) || t[s->source].size % s->row)
		return false;
	if (!s->present)
		return true;
	for (int half = 0; half < 2; half++, s->row /= 2) /* half rows are half as long */
		if (size_of(s, t[s->source].size / s->row, NULL, &a, &b) &&
		    a == t[i + 1].size && b == t[i + 2].size)
			return true;
	return false;
}

/* Normalisations of images go another way and look alike: one that should have buffers and has
 * none betrays them all. */
static void drop_false_norms(const struct vc_allocations *m, struct vc_workspaces *l)
{
	bool betrayed = false;
	uint64_t a, b;
	size_t kept = 0;

	for (size_t i = 0; i < l->n; i++)
		betrayed |=
			!is_reduction(&l->at[i]) && !l->at[i].present &&
			size_of(&l->at[i], m->take[l->at[i].source].size / l->at[i].row,
					  NULL, &a, &b);
	for (size_t i = 0; i < l->n; i++)
		if (!betrayed || is_reduction(&l->at[i]))
			l->at[kept++] = l->at[i];
	l->n = kept;
}

int vc_workspace_find(const struct vc_allocations *m, const double *grows,
		    const struct vc_reduction_card *card, struct vc_workspaces *out,
		    struct vc_error *err)
{
	struct vc_workspace s;
	bool nameless = false;

	*out = (struct vc_workspaces){ 0 };
	for (uint32_t i = 0; i < m->n; i++)
		nameless |= !m->take[i].site;
	for (uint32_t i = 1; i < m->n; i++) {
		/* Where some allocations have no Python frames, those of the backward pass are
		 * they. */
		bool here = !(nameless && m->take[i].site) || vc_workspace_follows(m, i);

		if (!(here && sum_at(m, grows, card, i, &s)) && !norm_at(m, grows, i, &s))
			continue;
		if (!vc_vec_one(out->at, out->n)) {
			free(out->at);
			return vc_nomem(err, "the row sums of a recording");
		}
		out->at[out->n++] = s;
	}
	drop_false_norms(m, out);
	return VC_OK;
}

void vc_workspace_mark(const struct vc_allocations *m, const struct vc_reduction_card *card,
		       bool *buffer)
{
	struct vc_workspace s;

	for (uint32_t i = 0; i < m->n; i++)
		if (sum_present(m, i, card, &s))
			buffer[i + 1] = buffer[i + 2] = true;
}

/* How well a card's arithmetic fits: sums of different widths whose buffers fill exactly this card
 * speak for it, one that would fill more than it has speaks against it. */
static int evidence(const struct vc_allocations *m, size_t n, const struct vc_reduction_card *card)
{
	uint64_t seen[WIDTHS];
	int score = 0;
	size_t widths = 0;

	for (size_t k = 0; k < n; k++)
		for (uint32_t i = 0; i < m[k].n && widths < WIDTHS; i++) {
			struct vc_workspace s;
			size_t j = 0;

			if (!vc_workspace_follows(&m[k], i) || !sum_present(&m[k], i, card, &s) ||
			    s.limit == VC_LIMIT_ROWS)
				continue;
			uint64_t key = 2 * s.row + (s.limit == VC_LIMIT_CARD);
			while (j < widths && seen[j] != key)
				j++;
			if (j < widths)
				continue;
			seen[widths++] = key;
			score += s.limit == VC_LIMIT_CARD ? 2 : -1;
		}
	return score;
}

struct vc_reduction_card vc_workspace_card(const struct vc_allocations *m, size_t n, bool *known)
{
	struct vc_reduction_card best = { 132, 2048 };
	int most = evidence(m, n, &best);

	*known = most >= 3;
	if (most < 3)
		most = 3; /* one width may fill another card by chance */
	for (size_t i = 0; i < vc_cards_n; i++) {
		const struct vc_card *c = &vc_cards[i];
		struct vc_reduction_card card = { c->sms,
						 vc_threads_per_sm(c->cc_major, c->cc_minor) };
		int k = c->sms ? evidence(m, n, &card) : 0;

		if (k > most) {
			most = k;
			best = card;
			*known = true;
		}
	}
	return best;
}
