/* SPDX-License-Identifier: Apache-2.0 */
/* torch_conf.c - PYTORCH_CUDA_ALLOC_CONF: PyTorch's own grammar, validation and error texts.
 *
 * Two parsers: c10/cuda/CUDAAllocatorConfig.cpp (to 2.9), and from 2.10 on
 * c10/core/AllocatorConfig.cpp, which reads the string twice: shared keys, then those of CUDA. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>

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
		if (p->modern ? isspace((unsigned char)text[k]) : text[k] == ' ')
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

/* ---- keys ---- */
static void max_split(struct parse *p)
{
	split_sizes(p, "max_split_size_mb", &p->t->conf.max_split);
}

static void max_non_split_rounding(struct parse *p)
{
	split_sizes(p, "max_non_split_rounding_mb", &p->t->conf.non_split_rounding);
}

static void expandable(struct parse *p)
{
	boolean(p, "expandable_segments", &p->t->conf.expandable, NULL);
}

static void release_lock(struct parse *p)
{
	boolean(p, "release_lock_on_cudamalloc", &p->t->conf.release_lock, NULL);
}

static void throw_oom(struct parse *p)
{
	boolean(p, "throw_on_cudamalloc_oom", &p->t->conf.throw_oom, NULL);
}

static void pinned_background(struct parse *p)
{
	boolean(p, "pinned_use_background_threads", NULL,
		"Error, expecting pinned_use_background_threads value");
}

static void pinned_register(struct parse *p)
{
	boolean(p, "pinned_use_cuda_host_register", NULL,
		"Error, expecting pinned_use_cuda_host_register value");
}

static void pinned_catch_all(struct parse *p)
{
	boolean(p, "pinned_free_catch_all", NULL, NULL);
}

static void stream_reuse(struct parse *p)
{
	boolean(p, "graph_capture_record_stream_reuse", NULL,
		"Error, expecting graph_capture_record_stream_reuse value");
}

/* Memory of the host: the number is read, and nothing here asks for it. */
static void pinned_size(struct parse *p)
{
	whole(p, value_of(p, ""));
}

static void skip_value(struct parse *p)
{
	value_of(p, "");
	if (is_word(p, p->i, "["))
		while (!p->failed && !is_word(p, ++p->i, "]"))
			;
}

#define RULE(field) (uint16_t)offsetof(struct torch_rules, field)

/* Every option of every version. Shared ones are those of all devices in the new parser, which
 * refuses others in its first pass unless a device has registered them: `listed` ones are, whatever
 * the rules say. */
static const struct conf_key {
	const char *name;
	uint16_t rule; /* the rule that brought it; 0: there from the first version on */
	bool shared, listed;
	void (*read)(struct parse *p);
	const char *usual; /* a value that changes a replay */
} conf_keys[] = {
	{ "max_split_size_mb", 0, true, false, max_split, "128" },
	{ "max_non_split_rounding_mb", RULE(non_split), true, false, max_non_split_rounding, "20" },
	{ "garbage_collection_threshold", 0, true, false, collection_threshold, "0.8" },
	{ "roundup_power2_divisions", 0, true, false, divisions, "4" },
	{ "expandable_segments", RULE(expandable), true, false, expandable, "True" },
	{ "pinned_use_background_threads", RULE(opt_background), true, false,
	  pinned_background, NULL },
	{ "pinned_max_cached_size_mb", RULE(opt_cached), true, false, pinned_size, NULL },
	{ "pinned_max_round_threshold_mb", RULE(opt_cached), true, false, pinned_size, NULL },
	{ "backend", 0, false, true, backend, "cudaMallocAsync" },
	{ "release_lock_on_cudamalloc", RULE(opt_lock), false, true, release_lock, NULL },
	{ "release_lock_on_hipmalloc", RULE(opt_lock), false, true, release_lock, NULL },
	{ "pinned_use_cuda_host_register", RULE(opt_threads), false, true, pinned_register, NULL },
	{ "pinned_use_hip_host_register", RULE(opt_threads), false, true, pinned_register, NULL },
	{ "pinned_num_register_threads", RULE(opt_threads), false, true, register_threads, NULL },
	{ "pinned_reserve_segment_size_mb", RULE(opt_fraction), false, true,
	  reserve_segment, NULL },
	{ "graph_capture_record_stream_reuse", RULE(reuse_option), false, true,
	  stream_reuse, NULL },
	{ "per_process_memory_fraction", RULE(opt_fraction), false, true, memory_fraction, "0.9" },
	{ "pinned_free_catch_all", RULE(opt_throw), false, false, pinned_catch_all, NULL },
	{ "throw_on_cudamalloc_oom", RULE(opt_throw), false, false, throw_oom, NULL },
	{ "expandable_segments_reserve", RULE(opt_reserve), false, false, reserve_option, NULL },
	{ "expandable_segments_reserve_by_class", RULE(opt_reserve), false, false,
	  reserve_classes, NULL },
	/* read before all others */
	{ "large_segment_size_mb", RULE(opt_large_segment), false, false, skip_value, "64" },
};

bool torch_conf_option(size_t i, const char **name, const char **usual)
{
	if (i >= sizeof(conf_keys) / sizeof(*conf_keys))
		return false;
	*name = conf_keys[i].name;
	*usual = conf_keys[i].usual;
	return true;
}

static const struct conf_key *key_named(const char *name)
{
	for (size_t k = 0; k < sizeof(conf_keys) / sizeof(*conf_keys); k++)
		if (!strcmp(name, conf_keys[k].name))
			return &conf_keys[k];
	return NULL;
}

static bool rules_have(const struct torch_rules *r, const struct conf_key *key)
{
	return !key->rule || ((const uint8_t *)r)[key->rule];
}

bool torch_conf_knows(const char *option, const char *version)
{
	const struct conf_key *key = key_named(option);
	struct torch_rules r;

	return key && (!version || torch_rules_for(version, TORCH_CUDA, &r) < 0 ||
		       rules_have(&r, key));
}

static void next_key(struct parse *p)
{
	if (p->i + 1 < p->n && !p->failed)
		separator(p, ',');
}

static void parse_classic(struct parse *p)
{
	for (p->i = 0; p->i < p->n && !p->failed; p->i++) {
		const struct conf_key *key = key_named(p->word[p->i]);

		if (key && rules_have(p->t->r, key))
			key->read(p);
		else
			conf_fail(p, "Unrecognized CachingAllocator option: %s", p->word[p->i]);
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

/* One of its two passes: the keys of one kind are read, and the others' values are skipped. */
static void parse_pass(struct parse *p, bool shared)
{
	for (p->i = 0; p->i < p->n && !p->failed; p->i++) {
		const struct conf_key *key = key_named(p->word[p->i]);
		bool has = key && rules_have(p->t->r, key);

		if (!has && !(key && key->listed))
			conf_fail(p, "Unrecognized key '%s' in Accelerator allocator config.",
				  p->word[p->i]);
		if (has && key->shared == shared)
			key->read(p);
		else
			skip_value(p);
		next_key(p);
	}
}

static void parse_modern(struct parse *p)
{
	find_large_segment(p);
	p->t->conf.non_split_rounding = p->t->r->non_split == TORCH_ROUNDING_SEGMENT
		? p->t->conf.large_segment : p->t->conf.non_split_rounding;
	parse_pass(p, true);
	parse_pass(p, false);
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
