/* SPDX-License-Identifier: Apache-2.0 */
/* layers.c - see layers.h.
 *
 * By call sites: a function is known by the functions it was called through, without their lines.
 * It was called anew when a line further out is another one, when something was allocated outside
 * it in between, or when it is back at the line at which it began. Of all such functions the
 * layers are those of the one whose calls cover most, so that neither the model (called once) nor
 * a part of a layer (covers less) wins; a second kind of layer (decoder behind encoder) is taken
 * where it covers what the first does not. */
#include "common/torch_names.h"
#include "simulator/anatomy/layers.h"
#include "common/torch_sizes.h"

#include "common/vec.h"

enum { SHORTEST_LAG = 3 };
enum { MOST_KINDS = 8, DEPTH = 96, GROUPS = 4096, BACK = 8 }; /* each bounds a table */

struct group {
	uint64_t key, path;
	size_t last;             /* block + 1 */
	uint32_t line, first_line, calls;
	size_t covered;
	bool plumbing;           /* containers, single operations: their calls are not layers */
	/* Lines that came after a later one, and the latest of those. */
	struct { uint32_t line, times, after; } back[BACK];
};

struct sites {
	const struct vc_anatomy *a;
	const struct vc_event *ev;
	const struct vc_meta *m;
	size_t from, to;
	struct group *group;
	uint64_t model;          /* key of the outermost function called forward */
	uint32_t chain[DEPTH];   /* frames of one block, outermost first */
	uint64_t key[DEPTH], path[DEPTH];
	size_t depth;
	bool cut;                /* the stacks begin anywhere */
	uint8_t *python;         /* by frame: 0: not asked yet, 1: no, 2: yes */
};

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ull;
	return h ^ (h >> 29);
}

static const char *string_of(const struct vc_meta *m, uint32_t s)
{
	return s < m->strings ? m->string[s] : "";
}

/* Stacks of PyTorch and the interpreter themselves (stacks="all") stand between Python's frames,
 * and not always the same, as what a dry run puts there: they say nothing about layers. */
static bool is_python(const struct sites *s, uint32_t frame)
{
	if (!s->python[frame]) { /* names are compared once a frame, not once a block */
		const char *file = string_of(s->m, s->m->frame[frame].file);
		size_t n = strlen(file);
		bool is = n > 3 && !strcmp(file + n - 3, ".py") &&
			  !vc_frame_roles(s->m, frame, VC_NAME_DRY_RUN);

		s->python[frame] = is ? 2 : 1;
	}
	return s->python[frame] == 2;
}

static void read_chain(struct sites *s, size_t block)
{
	uint32_t at = s->ev[s->a->block[block].event].site, inner[DEPTH];
	size_t n = 0;
	uint64_t key = 1, path = 1;

	for (; at && at < s->m->frames && n < DEPTH; at = s->m->frame[at].parent)
		if (is_python(s, at))
			inner[n++] = at;
	s->depth = n;
	for (size_t d = 0; d < n; d++) {
		const struct vc_frame *f = &s->m->frame[inner[n - 1 - d]];

		s->chain[d] = inner[n - 1 - d];
		key = mix(mix(key, f->file), f->function);
		s->key[d] = key;
		s->path[d] = path; /* the lines of those further out */
		path = mix(mix(path, key), f->line);
	}
}

static struct group *group_of(struct sites *s, uint64_t key)
{
	for (size_t i = 0, at = key % GROUPS; i < GROUPS; i++, at = (at + 1) % GROUPS)
		if (s->group[at].key == key || !s->group[at].key)
			return &s->group[at];
	return NULL;
}

static void went_back(struct group *g, uint32_t line, uint32_t after)
{
	for (int i = 0; i < BACK; i++)
		if (g->back[i].line == line || !g->back[i].times) {
			g->back[i].line = line;
			g->back[i].times++;
			g->back[i].after = after > g->back[i].after ? after : g->back[i].after;
			return;
		}
}

/* The line at which calls begin: the first one that came after a later one. A line further down
 * that did so three times as often is that of another class of the same file with a function of
 * that name. */
static uint32_t start_line(const struct group *g)
{
	uint32_t line = UINT32_MAX, times = 0;

	for (int i = 0; i < BACK; i++)
		if (g->back[i].times && g->back[i].line < line && g->back[i].times * 3 > times) {
			line = g->back[i].line;
			times = g->back[i].times;
		}
	for (int i = 0; i < BACK; i++)
		if (g->back[i].times >= 3 * times && times) {
			line = g->back[i].line;
			times = g->back[i].times;
		}
	return line;
}

/* A statement of several lines calls what stands on the later ones first. So where the first line
 * came after one that itself came after a later one still, calls begin at that. */
static uint32_t begin_line(const struct group *g, uint32_t line)
{
	uint32_t after = 0;

	for (int i = 0; i < BACK; i++)
		if (g->back[i].times && g->back[i].line == line)
			after = g->back[i].after;
	for (int i = 0; i < BACK; i++)
		if (g->back[i].times && g->back[i].line > line && g->back[i].line <= after &&
		    g->back[i].after > after)
			return begin_line(g, g->back[i].line);
	return line;
}

/* Does a new call begin with this block? */
static bool anew(const struct group *g, size_t block, uint64_t path, uint32_t line)
{
	return !g->calls || g->last != block || g->path != path ||
	       (line < g->line && line == g->first_line);
}

/* PyTorch's own modules are parts of layers, but for its transformer layers. */
static bool is_part(const char *file)
{
	return vc_torch_roles(file, "", VC_NAME_MODULE | VC_NAME_TRANSFORMER) == VC_NAME_MODULE;
}

static void visit(struct sites *s, size_t block)
{
	read_chain(s, block);
	for (size_t d = 0; d < s->depth; d++) {
		const struct vc_frame *f = &s->m->frame[s->chain[d]];
		struct group *g = group_of(s, s->key[d]);

		if (!g)
			continue;
		if (!g->key) {
			const char *file = string_of(s->m, f->file);
			*g = (struct group){
				.key = s->key[d],
				.plumbing = is_part(file) ||
					    strcmp(string_of(s->m, f->function), "forward") != 0 };
		}
		if (!s->model && !strcmp(string_of(s->m, f->function), "forward"))
			s->model = s->key[d];
		if (g->last == block && g->path == s->path[d] && f->line < g->line)
			went_back(g, f->line, g->line);
		if (anew(g, block, s->path[d], f->line)) {
			g->first_line = f->line;
			g->calls++;
		}
		g->last = block + 1;
		g->path = s->path[d];
		g->line = f->line;
		g->covered++;
	}
}

/* Calls of a function, of which the first may have begun before the stretch that is looked at: then
 * the others begin at an earlier line. */
static uint32_t calls_of(const struct group *g)
{
	uint32_t start = start_line(g), later = 0;

	for (int i = 0; i < BACK; i++)
		if (g->back[i].times && g->back[i].line == start && g->calls == 1)
			later = g->back[i].times;
	return g->calls + later;
}

static double score(const struct group *g)
{
	uint32_t calls = calls_of(g);

	return g->plumbing || calls < 2 ? 0 : (double)g->covered * (1 - 1.0 / calls);
}

static bool inside(const struct vc_layers *l, size_t block)
{
	for (size_t i = 0; i < l->n; i++)
		if (block >= l->at[i].from && block < l->at[i].to)
			return true;
	return false;
}

static int push(struct vc_layers *l, struct vc_layer y, struct vc_error *err)
{
	VC_HAVE(vc_vec_one(l->at, l->n), "the layers of a forward pass", err);
	l->at[l->n++] = y;
	return VC_OK;
}

static void reach(struct vc_layer *y, size_t block, uint32_t line)
{
	y->to = block + 1;
	y->low = line < y->low ? line : y->low;
	y->high = line > y->high ? line : y->high;
}

/* The calls of the function with that key, unless they lie in layers that are there. */
static int take(struct sites *s, struct vc_layers *l, uint64_t key, int kind, struct vc_error *err)
{
	uint32_t low = start_line(group_of(s, key)), start = begin_line(group_of(s, key), low);
	struct group g = { .key = key };
	struct vc_layers had = *l;
	int r = VC_OK;

	for (size_t i = s->from; r == VC_OK && i < s->to; i++) {
		read_chain(s, i);
		for (size_t d = 0; r == VC_OK && d < s->depth; d++) {
			uint32_t line = s->m->frame[s->chain[d]].line;

			if (s->key[d] != key || inside(&had, i) ||
			    (low != UINT32_MAX && line < low))
				continue;
			if (anew(&g, i, s->path[d], line) || (line < g.line && line == start)) {
				r = push(l, (struct vc_layer){ .from = i, .to = i + 1,
					.frame = s->chain[d], .low = line, .high = line,
					.function = (uint8_t)kind }, err);
				had.at = l->at;
				g.first_line = line;
				g.calls++;
			}
			if (r == VC_OK)
				reach(&l->at[l->n - 1], i, line);
			g.last = i + 1;
			g.path = s->path[d];
			g.line = line;
		}
	}
	return r;
}

/* How much of what a function covers is not in layers already. */
static size_t uncovered(struct sites *s, const struct vc_layers *l, uint64_t key)
{
	size_t n = 0;

	for (size_t i = s->from; i < s->to; i++) {
		if (inside(l, i))
			continue;
		read_chain(s, i);
		for (size_t d = 0; d < s->depth; d++)
			n += s->key[d] == key;
	}
	return n;
}

static bool lasting(const struct sites *s, size_t block)
{
	const struct vc_block_life *b = &s->a->block[block];

	return b->category == VC_CAT_WORKSPACE && vc_is_torch_workspace(b->size);
}

static uint32_t site_of(const struct sites *s, size_t block)
{
	return vc_frame_caller(s->m, s->ev[s->a->block[block].event].site);
}

static bool same_sites(const struct sites *s, const size_t *a, const size_t *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (site_of(s, a[i]) != site_of(s, b[i]))
			return false;
	return true;
}

/* The length of the parts that [from, to) ends with, by call sites alone, and what is before them
 * (a part that lacks something); 0: it is one. What a handle keeps from its first use on does not
 * count. A little more at the end belongs to the last part. */
static size_t part_of(const struct sites *s, size_t from, size_t to, size_t *lead)
{
	size_t n = 0, found = 0, *at = calloc(to - from + 1, sizeof(*at));

	for (size_t i = from; at && i < to; i++)
		if (!lasting(s, i))
			at[n++] = i;
	for (size_t m = SHORTEST_LAG; at && m <= n / 2 && !found; m++)
		for (size_t tail = 0; tail <= m / 4 && tail + 2 * m <= n && !found; tail++) {
			size_t left = n - tail - m;

			while (left >= m && same_sites(s, at + left - m, at + left, m))
				left -= m;
			if (left <= m && left + 2 * m <= n - tail) {
				found = m;
				*lead = left;
			}
		}
	free(at);
	return found;
}

/* A function of one line that is called in a loop of one line looks as if it was called once. */
static int split(struct sites *s, struct vc_layers *l, struct vc_error *err)
{
	struct vc_layers whole = *l;
	int r = VC_OK;

	l->at = NULL;
	l->n = 0;
	for (size_t k = 0; r == VC_OK && k < whole.n; k++) {
		size_t lead = 0, m = part_of(s, whole.at[k].from, whole.at[k].to, &lead), n = 0,
		       left = 0;

		for (size_t i = whole.at[k].from; m && i < whole.at[k].to; i++)
			left += !lasting(s, i);
		n = lead ? m - lead : 0;
		for (size_t i = whole.at[k].from; i < whole.at[k].to; i++) {
			if (i == whole.at[k].from || (m && n == m && left >= m)) {
				r = push(l, whole.at[k], err);
				n = i == whole.at[k].from ? n : 0;
				if (r < 0)
					break;
				l->at[l->n - 1].from = i;
			}
			n += !lasting(s, i);
			left -= m && !lasting(s, i);
			l->at[l->n - 1].to = i + 1;
		}
	}
	free(whole.at);
	return r;
}

static bool one_kind(const struct vc_layer *x, const struct vc_layer *y)
{
	return x->function == y->function && x->low <= y->high && y->low <= x->high;
}

/* Functions of one name in one file, called in the same way, are of two classes where they share
 * no line. */
static void tell_kinds(struct vc_layers *l)
{
	uint8_t next = 0;

	for (size_t i = 0, k; i < l->n; i++) {
		for (k = 0; k < i && !one_kind(&l->at[k], &l->at[i]); k++)
			;
		l->at[i].kind = k < i ? l->at[k].kind : next;
		next += k == i && next + 1 < MOST_KINDS;
	}
}

VC_COMPARE(by_birth, struct vc_layer, VC_ORDER(x->from, y->from))

/* Were stacks recorded only so deep? Then they begin anywhere, and what was called by the same
 * function looks different from block to block. */
static bool cut_off(struct sites *s)
{
	uint64_t root = 0;
	size_t votes = 0, same = 0, all = 0;

	for (int pass = 0; pass < 2; pass++)
		for (size_t i = s->from; i < s->to; i++) {
			read_chain(s, i);
			if (!s->depth)
				continue;
			if (pass) {
				all++;
				same += s->key[0] == root;
			} else if (!votes || s->key[0] == root) {
				/* the majority's, if there is one (Boyer and Moore) */
				root = s->key[0];
				votes++;
			} else {
				votes--;
			}
		}
	return same * 10 < all * 9;
}

/* A layer that does little besides its parts scores less than they, because it is called less
 * often. So the outermost function around the calls of `part` that covers about what they do,
 * unless it calls more of them than it is called: that is a model of many layers, called a few
 * times. */
static const struct group *whole_of(struct sites *s, const struct vc_layers *l, int kind,
				    const struct group *part)
{
	for (size_t i = s->from; i < s->to; i++) {
		size_t d = 0;

		read_chain(s, i);
		while (d < s->depth && s->key[d] != part->key)
			d++;
		for (size_t k = 0; d < s->depth && k < d; k++) {
			const struct group *g = group_of(s, s->key[k]);

			if (g && score(g) * 10 >= score(part) * 9 &&
			    calls_of(part) >= 2 * calls_of(g) && /* parts, not a part */
			    (uint64_t)calls_of(g) * calls_of(g) > calls_of(part) &&
			    (!kind || uncovered(s, l, g->key) == g->covered))
				return g;
		}
		if (d < s->depth)
			break;
	}
	return part;
}

static int by_sites(struct sites *s, struct vc_layers *l, struct vc_error *err)
{
	for (size_t i = s->from; i < s->to; i++)
		visit(s, i);
	for (int kind = 0; kind < (s->cut ? 1 : MOST_KINDS); kind++) {
		const struct group *best = NULL;

		for (size_t i = 0; i < GROUPS; i++)
			if (score(&s->group[i]) > (best ? score(best) : 0) &&
			    (!kind || uncovered(s, l, s->group[i].key) == s->group[i].covered))
				best = &s->group[i];
		if (!best || best->covered * (s->cut ? 2 : 10) < s->to - s->from)
			break;
		best = whole_of(s, l, kind, best);
		VC_TRY(take(s, l, best->key, kind, err));
	}
	if (l->n > 1)
		vc_sort(l->at, l->n, sizeof(*l->at), by_birth);
	if (l->n)
		VC_TRY(split(s, l, err));
	tell_kinds(l);
	for (size_t i = s->from; s->model && i < s->to; i++) {
		read_chain(s, i);
		for (size_t d = 0; d < s->depth; d++)
			if (s->key[d] == s->model) {
				l->model_from = l->model_to ? l->model_from : i;
				l->model_to = i + 1;
			}
	}
	return VC_OK;
}

/* ---- by repetition ---- */

static uint64_t token(const struct sites *s, size_t block)
{
	return s->a->block[block].size * 0x9e3779b97f4a7c15ull ^ site_of(s, block);
}

/* The shortest lag at which nearly as much of the forward pass repeats as at any. */
static size_t lag_of(const struct sites *s)
{
	size_t n = s->to - s->from, best = 0, lag = 0, *same = calloc(n / 2 + 2, sizeof(*same));

	for (size_t l = SHORTEST_LAG; same && l <= n / 2; l++) {
		for (size_t i = s->from; i + l < s->to; i++)
			same[l] += token(s, i) == token(s, i + l);
		best = same[l] > best ? same[l] : best;
	}
	for (size_t l = SHORTEST_LAG; same && l <= n / 2 && !lag; l++)
		if (same[l] * 100 >= best * 95 && same[l] * 2 >= n - l)
			lag = l;
	free(same);
	return lag;
}

/* Where a layer found by what repeats stands: the outermost function that its first blocks were
 * asked for in and that is no part of PyTorch's. */
static uint32_t place_of(struct sites *s, size_t from, size_t to)
{
	for (size_t i = from; s->m && i < to; i++) {
		read_chain(s, i);
		for (size_t d = 0; s->cut && d < s->depth; d++) {
			const struct vc_frame *f = &s->m->frame[s->chain[d]];

			if (!strcmp(string_of(s->m, f->function), "forward") &&
			    !is_part(string_of(s->m, f->file)))
				return s->chain[d];
		}
	}
	return 0;
}

/* The longest run that repeats, small gaps allowed. */
static int by_repetition(struct sites *s, struct vc_layers *l, struct vc_error *err)
{
	size_t lag = lag_of(s), run = s->from, bad = 0, longest = 0, first = s->from;
	int r = VC_OK;

	for (size_t i = s->from; lag && i + lag < s->to; i++) {
		bad = token(s, i) == token(s, i + lag) ? 0 : bad + 1;
		if (bad > 2 ||
		    i + 1 - run == bad) { /* too many, or nothing that repeats before it */
			run = i + 1;
			bad = 0;
		}
		if (i + 1 > run + bad && i + 1 - run - bad > longest) {
			longest = i + 1 - run - bad;
			first = run;
		}
	}
	for (size_t k = 0; r == VC_OK && lag && k <= longest / lag; k++) {
		size_t from = first + k * lag, to = from + lag < s->to ? from + lag : s->to;

		if (from < s->to)
			r = push(l,
				 (struct vc_layer){ .from = from, .to = to,
						    .frame = place_of(s, first, first + lag) },
				 err);
	}
	if (l->n < 2)
		l->n = 0;
	return r;
}

int vc_layers_find(struct vc_layers *l, const struct vc_anatomy *a, const struct vc_event *ev,
		   const struct vc_meta *m, size_t span, struct vc_error *err)
{
	struct sites s = { .a = a, .ev = ev, .m = m };
	int r = VC_OK;

	*l = (struct vc_layers){ 0 };
	while (s.from < a->n && a->block[s.from].event < a->span[span].first)
		s.from++;
	for (s.to = s.from; s.to < a->n && a->block[s.to].event < a->span[span].end; s.to++)
		;
	s.group = calloc(GROUPS, sizeof(*s.group));
	s.python = calloc(m ? m->frames + 1 : 1, 1);
	if (!s.group || !s.python) {
		VC_FREE(s.group, s.python);
		return vc_nomem(err, "the layers of a forward pass");
	}
	s.cut = m && cut_off(&s);
	if (m && !s.cut)
		r = by_sites(&s, l, err);
	l->named = l->n > 1;
	if (r == VC_OK && l->n < 2) {
		l->n = 0;
		r = by_repetition(&s, l, err);
	}
	if (r == VC_OK && l->n < 2 && s.cut) {
		r = by_sites(&s, l, err);
		l->named = l->n > 1;
	}
	if (!l->model_to) {
		l->model_from = s.from;
		l->model_to = s.to;
	}
	VC_FREE(s.group, s.python);
	return r;
}

void vc_layers_fini(struct vc_layers *l)
{
	free(l->at);
	*l = (struct vc_layers){ 0 };
}

bool vc_layers_kept(const struct vc_anatomy *a, const struct vc_block_life *b, size_t span)
{
	const struct vc_span *back = &a->span[span + 1];

	return b->died_event != SIZE_MAX && b->died_event >= back->first &&
	       b->died_event < back->end;
}

size_t vc_layers_result(const struct vc_layer *y, const struct vc_anatomy *a, size_t span)
{
	size_t end = y->to < a->n ? a->block[y->to].event : a->span[span].end, last = SIZE_MAX;
	uint64_t widest = 0;

	for (size_t i = y->from; i < y->to; i++) {
		const struct vc_block_life *b = &a->block[i];

		if (b->died_event < end || b->category == VC_CAT_WORKSPACE)
			continue;
		widest = b->size > widest ? b->size : widest;
		last = b->size >= widest / 64 ? i : last; /* not the deviations of a norm */
	}
	return last;
}

size_t vc_layers_entered(const struct vc_layer *y, const struct vc_anatomy *a, size_t span)
{
	size_t first = SIZE_MAX;

	for (size_t i = y->from; i < y->to; i++)
		if (vc_layers_kept(a, &a->block[i], span) &&
		    (first == SIZE_MAX || a->block[i].died_event < a->block[first].died_event))
			first = i;
	return first;
}

size_t vc_layers_output(const struct vc_layer *y, const struct vc_anatomy *a, size_t span)
{
	size_t first = vc_layers_entered(y, a, span), last = vc_layers_result(y, a, span);

	return last == SIZE_MAX || vc_layers_kept(a, &a->block[last], span) ? first : SIZE_MAX;
}

void vc_layers_stacks(struct vc_layers *l, const struct vc_anatomy *a, size_t span)
{
	uint64_t size[MOST_KINDS] = { 0 };
	bool odd[MOST_KINDS] = { false }, some = false, other = false;
	size_t n = 0, layers[MOST_KINDS] = { 0 };

	for (size_t k = 0; k < l->n; k++) {
		uint8_t kind = l->at[k].kind;
		size_t out = vc_layers_output(&l->at[k], a, span);

		layers[kind]++;
		if (out == SIZE_MAX) /* the last of them: a mean or a choice of places follows */
			continue;
		odd[kind] |= size[kind] && size[kind] != a->block[out].size;
		size[kind] = a->block[out].size;
	}
	for (size_t k = 0; k < l->n; k++) {
		odd[l->at[k].kind] |= layers[l->at[k].kind] < 2;
		*(odd[l->at[k].kind] ? &other : &some) = true;
	}
	for (size_t k = 0; some && other && k < l->n; k++)
		if (!odd[l->at[k].kind])
			l->at[n++] = l->at[k];
	l->n = n ? n : l->n;
}
