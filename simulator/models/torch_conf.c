/* SPDX-License-Identifier: Apache-2.0 */
/* torch_conf.c - PYTORCH_CUDA_ALLOC_CONF: PyTorch's own grammar, validation and error texts.
 *
 * Two parsers: c10/cuda/CUDAAllocatorConfig.cpp (to 2.9), and from 2.10 on
 * c10/core/AllocatorConfig.cpp, which reads the string twice: shared keys, then those of CUDA. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/vec.h"
#include "simulator/models/torch_index.h"

#define MIB (1ull << 20)
#define MAX_THREADS 128 /* pinned_max_register_threads */

struct parse {
	struct torch *t;
	char **word;
	size_t n, i; /* tokens; the current one */
	char *text;  /* owns the tokens' bytes */
	char *note;
	size_t cap;
	bool modern, failed;
};

/* 0 as the value, so that a caller may go on to its own check of `failed`. */
static uint64_t conf_fail(struct parse *p, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static uint64_t conf_fail(struct parse *p, const char *fmt, ...)
{
	va_list ap;

	if (p->failed)
		return 0;
	p->failed = true;
	va_start(ap, fmt);
	vsnprintf(p->note, p->cap, fmt, ap);
	va_end(ap);
	return 0;
}

/* ---- tokens ---- */
static bool is_mark(char c)
{
	return c == ',' || c == ':' || c == '[' || c == ']';
}

static bool is_dropped(const struct parse *p, char c)
{
	return p->modern ? isspace((unsigned char)c) : c == ' ';
}

/* Marks are tokens of their own; everything else accumulates, blanks vanish even inside a word. */
static bool tokenize(struct parse *p, const char *text)
{
	size_t len = strlen(text);
	char *out;
	bool open = false;

	p->text = malloc(2 * len + 2);
	p->word = malloc((len + 1) * sizeof(*p->word));
	if (!p->text || !p->word)
		return false;
	out = p->text;
	for (size_t k = 0; k < len; k++) {
		if (is_dropped(p, text[k]))
			continue;
		if (is_mark(text[k]) && open)
			*out++ = '\0';
		if (is_mark(text[k]) || !open)
			p->word[p->n++] = out;
		*out++ = text[k];
		open = !is_mark(text[k]);
		if (!open)
			*out++ = '\0';
	}
	*out = '\0';
	return true;
}

/* The token at an index, NULL after an error: reading past the end is one in the new parser. */
static const char *word_at(struct parse *p, size_t i)
{
	if (p->failed)
		return NULL;
	if (i < p->n)
		return p->word[i];
	if (p->modern)
		conf_fail(p, "i < config_.size() INTERNAL ASSERT FAILED");
	return NULL;
}

static bool is_word(struct parse *p, size_t i, const char *word)
{
	const char *w = word_at(p, i);

	return w && !strcmp(w, word);
}

/* Step onto a separator. The new parser looks at it but ignores what it sees. */
static void separator(struct parse *p, char c)
{
	const char text[2] = { c, '\0' };

	p->i++;
	if (!is_word(p, p->i, text) && !p->modern)
		conf_fail(p, "Error parsing CachingAllocator settings, expected %c", c);
}

/* Step onto the value of the current key. */
static const char *value_of(struct parse *p, const char *missing)
{
	const char *w;

	separator(p, ':');
	p->i++;
	w = word_at(p, p->i);
	if (!w)
		conf_fail(p, "%s", missing);
	return w;
}

static uint64_t whole(struct parse *p, const char *w)
{
	char *end;

	if (!w)
		return 0;
	errno = 0;
	if (p->modern) {
		unsigned long long v = strtoull(w, &end, 10);

		return end == w || errno ? conf_fail(p, "stoull") : v;
	}
	long v = strtol(w, &end, 10);

	if (end == w || errno || v > INT_MAX || v < INT_MIN)
		return conf_fail(p, "stoi");
	return (uint64_t)v; /* negative numbers wrap */
}

static double real(struct parse *p, const char *w)
{
	char *end;
	double v;

	if (!w)
		return 0;
	v = strtod(w, &end);
	if (end == w)
		conf_fail(p, "stod");
	return v;
}

/* `to` keeps its value after an error; NULL: not of interest here. `missing`: what the old parser
 * says when the string ends here, NULL: the same as for a wrong value. */
static void boolean(struct parse *p, const char *key, bool *to, const char *missing)
{
	separator(p, ':');
	p->i++;
	if (is_word(p, p->i, "True") || is_word(p, p->i, "False")) {
		if (to)
			*to = is_word(p, p->i, "True");
		return;
	}
	if (p->failed)
		return;
	if (p->modern)
		conf_fail(
			p,
			"Expected 'True' or 'False' at index %zu in ConfigTokenizer but got '%s'",
			p->i, word_at(p, p->i));
	else if (missing && p->i >= p->n)
		conf_fail(p, "%s", missing);
	else
		conf_fail(p, "Expected a single True/False argument for %s", key);
}

static bool is_power_of_2(uint64_t v)
{
	return v && !(v & (v - 1));
}

/* ---- options ---- */
static void split_sizes(struct parse *p, const char *key, uint64_t *out)
{
	char missing[96];
	uint64_t v, least = 20;

	snprintf(missing, sizeof(missing), "Error, expecting %s value", key);
	v = whole(p, value_of(p, missing));
	if (p->failed)
		return;
	/* kLargeBuffer is 20 MiB; from 2.11 on large_segment_size_mb takes its place. */
	if (p->t->r->min_split == 2)
		least = p->t->conf.large_segment / MIB;
	if (p->t->r->min_split == 0 && v <= least)
		conf_fail(p, "CachingAllocator option %s too small, must be > 20", key);
	else if (v < least)
		conf_fail(p, "CachingAllocator option %s too small, must be >= %llu", key,
			  (unsigned long long)least);
	if (v > UINT64_MAX / MIB)
		v = UINT64_MAX / MIB;
	if (!p->failed)
		*out = v * MIB;
}

static void collection_threshold(struct parse *p)
{
	double v = real(p, value_of(p, "Error, expecting garbage_collection_threshold value"));

	if (p->failed)
		return;
	if (p->modern && !(v > 0 && v < 1))
		conf_fail(p, "garbage_collect_threshold is invalid, set it in (0.0, 1.0)");
	else if (!(v > 0))
		conf_fail(p, "garbage_collect_threshold too small, set it 0.0~1.0");
	else if (!(v < 1))
		conf_fail(p, "garbage_collect_threshold too big, set it 0.0~1.0");
	if (!p->failed)
		p->t->conf.gc = v;
}

static void check_division(struct parse *p, uint64_t v, bool in_list)
{
	const struct torch_rules *r = p->t->r;
	bool zero = in_list && r->division_zero;

	if (!p->failed && !is_power_of_2(v) && !(zero && !v))
		conf_fail(p, "For roundups, the %s has to be power of 2 %s",
			  r->division_spelling ? "divisions" : "divisons",
			  zero ? "or 0 to disable roundup " : "");
}

static void fill(struct parse *p, size_t from, size_t to, uint64_t v)
{
	for (size_t k = from; k < to && k < TORCH_DIVISIONS; k++)
		p->t->conf.division[k] = v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

/* One "interval:divisions" of a list; p->i stands on the interval. */
static void division_entry(struct parse *p, bool *first, size_t *last)
{
	const char *key = word_at(p, p->i);
	uint64_t v, bound;
	size_t index;
	char *end;

	v = whole(p, value_of(p, "Error parsing roundup_power2_divisions value"));
	check_division(p, v, true);
	if (p->failed)
		return;
	if (!strcmp(key, ">")) {
		fill(p, *last + p->t->r->fill_above, TORCH_DIVISIONS, v);
		return;
	}
	bound = strtoull(key, &end, 10);
	if (end == key) {
		conf_fail(p, p->modern ? "stoull" : "stoul");
		return;
	}
	if (!is_power_of_2(bound)) {
		conf_fail(p, "For roundups, the intervals have to be power of 2 ");
		return;
	}
	index = torch_bit_high(bound);
	if (index >= TORCH_DIVISIONS)
		index = TORCH_DIVISIONS - 1;
	if (*first)
		fill(p, 0, index, v);
	*first = false;
	fill(p, index, index + 1, v);
	*last = index;
}

static void divisions(struct parse *p)
{
	const char *w = value_of(p, "Error, expecting roundup_power2_divisions value");
	bool first = true;
	size_t last = 0;

	if (!w)
		return;
	if (strcmp(w, "[") != 0) {
		uint64_t v = whole(p, w);

		check_division(p, v, false);
		if (!p->failed)
			fill(p, 0, TORCH_DIVISIONS, v);
		return;
	}
	while (++p->i < p->n && !is_word(p, p->i, "]") && !p->failed) {
		division_entry(p, &first, &last);
		if (!p->failed && !is_word(p, p->i + 1, "]"))
			separator(p, ',');
	}
	if (p->modern && p->i >= p->n)
		conf_fail(p, "i < tokenizer.size() INTERNAL ASSERT FAILED");
}

static void backend(struct parse *p)
{
	const char *w = value_of(p, "Error parsing backend value");

	if (w && strcmp(w, "native") != 0 && strcmp(w, "cudaMallocAsync") != 0)
		conf_fail(p, "Unknown allocator backend, options are native and cudaMallocAsync");
	else if (w && strcmp(w, "native") != 0)
		conf_fail(p, "%s[i] == get()->name() INTERNAL ASSERT FAILED",
			  p->modern ? "tokenizer" : "config");
}

static void register_threads(struct parse *p)
{
	uint64_t v = whole(p, value_of(p, "Error, expecting pinned_num_register_threads value"));

	if (p->failed)
		return;
	if (!is_power_of_2(v) && p->modern)
		conf_fail(p, "Number of register threads has to be power of 2, got %llu",
			  (unsigned long long)v);
	else if (!is_power_of_2(v))
		conf_fail(p, "Number of register threads has to be power of 2 ");
	else if (v > MAX_THREADS)
		conf_fail(p, "Number of register threads should be less than or equal to %d%s%s",
			  MAX_THREADS, p->modern ? ", got " : "", p->modern ? p->word[p->i] : "");
}

static void reserve_segment(struct parse *p)
{
	uint64_t v = whole(p, value_of(p, ""));

	if (!p->failed && !v)
		conf_fail(p, "Pinned reserve segment size has to be greater than 0");
}

static void memory_fraction(struct parse *p)
{
	double v = real(p, value_of(p, ""));

	if (p->failed)
		return;
	if (!(v >= 0 && v <= 1))
		conf_fail(p, "per_process_memory_fraction is invalid, set it in [0.0, 1.0]");
	else
		p->t->conf.fraction = v;
}

/* "0.5" of the device or "0.4G"; anything else: as if it were not given. */
static bool reserve_value(const char *w, struct torch_class *out)
{
	char *end;
	double v;

	if (!w)
		return false;
	v = strtod(w, &end);
	if (end == w)
		return false;
	if (!strcmp(end, "G")) {
		out->part = -1;
		out->bytes = (uint64_t)(v * 1073741824.0);
		return true;
	}
	out->part = v;
	return *end == '\0';
}

static void reserve_option(struct parse *p)
{
	struct torch_class c = { .part = -1 };
	bool ok = reserve_value(value_of(p, ""), &c);

	if (p->failed)
		return;
	p->t->conf.has_reserve = ok;
	p->t->conf.reserve_bytes = c.bytes;
	p->t->conf.reserve_part = c.part;
}

static void reserve_classes(struct parse *p)
{
	struct torch_conf *conf = &p->t->conf;
	struct torch_class c, *list;

	conf->classes = 0;
	if (!value_of(p, "")) /* a '[' is expected here but not insisted on */
		return;
	while (++p->i < p->n && !is_word(p, p->i, "]") && !p->failed) {
		c = (struct torch_class){ .part = -1 };
		snprintf(c.name, sizeof(c.name), "%s", p->word[p->i]);
		if (reserve_value(value_of(p, ""), &c)) {
			list = realloc(conf->klass, (conf->classes + 1) * sizeof(*list));
			if (!list) {
				p->t->nomem = true;
				return;
			}
			conf->klass = list;
			list[conf->classes++] = c;
		}
		if (!p->failed && !is_word(p, p->i + 1, "]"))
			separator(p, ',');
	}
	word_at(p, p->i); /* the list must end */
}

static void large_segment(struct parse *p)
{
	uint64_t v = whole(p, value_of(p, ""));

	if (p->failed)
		return;
	if (v <= 10)
		conf_fail(p, "CachingAllocator option large_segment_size_mb must be > 10 MB");
	else
		p->t->conf.large_segment = v * MIB;
}

static void skip_value(struct parse *p)
{
	value_of(p, "");
	if (is_word(p, p->i, "["))
		while (!p->failed && !is_word(p, ++p->i, "]"))
			;
}

/* ---- keys ---- */
/* Options shared by all devices in the new parser; true: the key was one of them. */
static bool shared_key(struct parse *p, const char *key)
{
	const struct torch_rules *r = p->t->r;
	struct torch_conf *c = &p->t->conf;

	if (!strcmp(key, "max_split_size_mb"))
		split_sizes(p, key, &c->max_split);
	else if (!strcmp(key, "max_non_split_rounding_mb") && r->non_split != TORCH_ROUNDING_FIXED)
		split_sizes(p, key, &c->non_split_rounding);
	else if (!strcmp(key, "garbage_collection_threshold"))
		collection_threshold(p);
	else if (!strcmp(key, "roundup_power2_divisions"))
		divisions(p);
	else if (!strcmp(key, "expandable_segments") && r->expandable)
		boolean(p, key, &c->expandable, NULL);
	else if (!strcmp(key, "pinned_use_background_threads") && r->opt_background)
		boolean(p, key, NULL, "Error, expecting pinned_use_background_threads value");
	else
		return false;
	return true;
}

static bool device_key(struct parse *p, const char *key)
{
	const struct torch_rules *r = p->t->r;
	struct torch_conf *c = &p->t->conf;

	if (!strcmp(key, "backend"))
		backend(p);
	else if ((!strcmp(key, "release_lock_on_cudamalloc") ||
		  !strcmp(key, "release_lock_on_hipmalloc")) && r->opt_lock)
		boolean(p, "release_lock_on_cudamalloc", &c->release_lock, NULL);
	else if ((!strcmp(key, "pinned_use_cuda_host_register") ||
		  !strcmp(key, "pinned_use_hip_host_register")) && r->opt_threads)
		boolean(p, "pinned_use_cuda_host_register", NULL,
			"Error, expecting pinned_use_cuda_host_register value");
	else if (!strcmp(key, "pinned_num_register_threads") && r->opt_threads)
		register_threads(p);
	else if (!strcmp(key, "pinned_reserve_segment_size_mb") && r->opt_fraction)
		reserve_segment(p);
	else if (!strcmp(key, "pinned_free_catch_all") && r->opt_throw)
		boolean(p, key, NULL, NULL);
	else if (!strcmp(key, "graph_capture_record_stream_reuse") && r->reuse_option)
		boolean(p, key, NULL, "Error, expecting graph_capture_record_stream_reuse value");
	else if (!strcmp(key, "per_process_memory_fraction") && r->opt_fraction)
		memory_fraction(p);
	else if (!strcmp(key, "throw_on_cudamalloc_oom") && r->opt_throw)
		boolean(p, key, &c->throw_oom, NULL);
	else if (!strcmp(key, "expandable_segments_reserve") && r->opt_reserve)
		reserve_option(p);
	else if (!strcmp(key, "expandable_segments_reserve_by_class") && r->opt_reserve)
		reserve_classes(p);
	else
		return false;
	return true;
}

static bool is_device_key(const char *key, const struct torch_rules *r)
{
	static const char *const lock[] = {
		"release_lock_on_cudamalloc",    "release_lock_on_hipmalloc",
		"pinned_use_cuda_host_register", "pinned_use_hip_host_register",
		"pinned_num_register_threads",   "graph_capture_record_stream_reuse",
		"per_process_memory_fraction",   "backend",
		"pinned_reserve_segment_size_mb" };

	for (size_t k = 0; k < sizeof(lock) / sizeof(*lock); k++)
		if (!strcmp(key, lock[k]))
			return true;
	if (!strcmp(key, "throw_on_cudamalloc_oom") || !strcmp(key, "pinned_free_catch_all"))
		return r->opt_throw;
	if (!strcmp(key, "expandable_segments_reserve") ||
	    !strcmp(key, "expandable_segments_reserve_by_class"))
		return r->opt_reserve;
	return !strcmp(key, "large_segment_size_mb") && r->opt_large_segment;
}

static bool is_shared_key(const char *key)
{
	static const char *const shared[] = { "max_split_size_mb", "max_non_split_rounding_mb",
		"garbage_collection_threshold", "roundup_power2_divisions", "expandable_segments",
		"pinned_use_background_threads" };

	for (size_t k = 0; k < sizeof(shared) / sizeof(*shared); k++)
		if (!strcmp(key, shared[k]))
			return true;
	return false;
}

static void next_key(struct parse *p)
{
	if (p->i + 1 < p->n && !p->failed)
		separator(p, ',');
}

static void parse_classic(struct parse *p)
{
	for (p->i = 0; p->i < p->n && !p->failed; p->i++) {
		const char *key = p->word[p->i];

		if (!shared_key(p, key) && !device_key(p, key))
			conf_fail(p, "Unrecognized CachingAllocator option: %s", key);
		next_key(p);
	}
}

/* large_segment_size_mb first, because other options are measured against it. */
static void find_large_segment(struct parse *p)
{
	for (p->i = 0; p->i < p->n && !p->failed; p->i++)
		if (!strcmp(p->word[p->i], "large_segment_size_mb") && p->t->r->opt_large_segment)
			large_segment(p);
}

static void parse_modern(struct parse *p)
{
	find_large_segment(p);
	p->t->conf.non_split_rounding = p->t->r->non_split == TORCH_ROUNDING_SEGMENT
		? p->t->conf.large_segment : p->t->conf.non_split_rounding;
	for (p->i = 0; p->i < p->n && !p->failed; p->i++) {
		const char *key = p->word[p->i];

		if (!shared_key(p, key)) {
			if (!is_device_key(key, p->t->r))
				conf_fail(
					p,
					"Unrecognized key '%s' in Accelerator allocator config.",
					key);
			skip_value(p);
		}
		next_key(p);
	}
	for (p->i = 0; p->i < p->n && !p->failed; p->i++) {
		const char *key = p->word[p->i];

		if (!device_key(p, key)) {
			if (!is_shared_key(key) && !is_device_key(key, p->t->r))
				conf_fail(
					p,
					"Unrecognized key '%s' in Accelerator allocator config.",
					key);
			skip_value(p);
		}
		next_key(p);
	}
}

static void parse_into(struct parse *p)
{
	struct torch_conf *c = &p->t->conf;

	/* Every parse resets these and no others. */
	c->max_split = TORCH_UNLIMITED;
	memset(c->division, 0, sizeof(c->division));
	c->gc = 0;
	if (p->modern)
		parse_modern(p);
	else
		parse_classic(p);
	if (p->t->r->conf_use == TORCH_CONF_EXPANDABLE) {
		c->max_split = TORCH_UNLIMITED;
		memset(c->division, 0, sizeof(c->division));
		c->gc = 0;
	}
	c->expandable &= !p->t->r->expandable_off;
	c->any_division = false;
	for (size_t k = 0; k < TORCH_DIVISIONS; k++)
		c->any_division |= c->division[k] > 0;
}

int torch_conf_parse(struct torch *t, const char *text, char *note, size_t cap)
{
	struct parse p = { .t = t, .note = note, .cap = cap, .modern = t->r->parser_new };
	int r = VC_ENOMEM;

	if (t->r->conf_use == TORCH_CONF_NONE)
		return VC_DONE;
	if (tokenize(&p, text)) {
		parse_into(&p);
		r = p.failed ? VC_RAISED : VC_DONE;
	}
	VC_FREE(p.word, p.text);
	torch_refresh(t);
	return r;
}

void torch_conf_init(struct torch *t)
{
	t->conf = (struct torch_conf){ .max_split = TORCH_UNLIMITED,
		.non_split_rounding = t->k->segment, .large_segment = t->k->segment,
		.fraction = 1.0, .reserve_part = -1 };
}

void torch_refresh(struct torch *t)
{
	t->collects = t->limit != TORCH_UNLIMITED && t->conf.gc > 0;
	t->best = t->k->fit == TORCH_BEST;
	t->order = t->r->order;
	t->by_driver = t->order == TORCH_BY_ADDR;
}
