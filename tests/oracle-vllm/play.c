/* SPDX-License-Identifier: Apache-2.0 */
/* play.c - request scripts for the model of vLLM's scheduler, and what vLLM itself did with them.
 *
 * usage: play -v RELEASE SCRIPT RESULT...   replay, compare line by line with the real one
 *        play -p -v RELEASE SCRIPT          print what the model does
 *        play -r SEED STEPS RELEASE         write a random script
 *        play -g SEED STEPS RELEASE         the same, with layers of several kinds
 *        play -d SEED STEPS RELEASE         the same, with drafts
 *        play -l SEED MODELS RELEASE        layers of random models, to be made groups of
 *
 * c blocks=40 block=16 seqs=8 batch=64 len=500 policy=fcfs long=0 whole=1 watermark=0 caching=1:
 * num_gpu_blocks, block_size, max_num_seqs, max_num_batched_tokens, max_model_len,
 * long_prefill_token_threshold, scheduler_reserve_full_isl, watermark in thousandths,
 * enable_prefix_caching; groups=KIND/block/window/states/checkpoint/spec/eagle,... retention=0
 * (-1: None) match=0 inflight=64 encoder=0: the groups, prefix_cache_retention_interval,
 * prefix_match_unit, max_in_flight_tokens, tokens of an encoder; drafts=0 lookahead=0 slots=0
 * eagle=0 accept=0: num_speculative_tokens, num_lookahead_tokens, max_num_new_slots_for_drafting,
 * use_eagle(), and how many of a thousand drafts are right
 * a ID OUTPUT 0 NAME:TOKENS...: a request arrives: its output tokens, and its prompt, made of the
 * beginnings of named texts. The output of request N is text 2^30 + N
 * s N: N steps
 * x ID: the request is aborted
 * r: reset_prefix_cache
 * p layers=KIND/number/bytes/window/block,... padded=0 len=8192 inflight=2048 caching=1 states=0
 *   onekind=0 memory=1000: which groups vLLM makes of such layers, and how many tokens it says */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "simulator/serving/kv_plan.h"
#include "simulator/serving/serving.h"

enum { LINE = 1 << 16, TEXTS = 64, ANSWER = 1 << 30 };

static void die(const char *what, const char *which)
{
	fprintf(stderr, "play: %s: %s\n", what, which);
	exit(2);
}

/* ---- a random script ---- */
static uint64_t state;

static uint64_t dice(uint64_t sides) /* xorshift64*: the same everywhere */
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (state * 2685821657736338717ull >> 11) % sides;
}

struct made { uint64_t id, texts, name[8], tokens[8], output; };

/* A prompt of a conversation so far, with the answer and a new question; or a shared beginning with
 * an own end; or something new. */
static void prompt(struct made *of, uint64_t id, uint64_t block, uint64_t most)
{
	struct made *m = &of[id % TEXTS];
	const struct made *old = &of[dice(id < TEXTS ? id + 1 : TEXTS)];
	uint64_t sum = 0, from = 1 + dice(most / 2);

	if (dice(3) == 0 && old != m && old->texts && old->texts < 7) {
		*m = *old;
		m->tokens[m->texts - 1] -= dice(4) ? 0 : dice(m->tokens[m->texts - 1]);
		m->name[m->texts] = ANSWER + old->id;
		m->tokens[m->texts++] = 1 + dice(old->output);
		m->name[m->texts] = 1000 + id;
		m->tokens[m->texts++] = 1 + dice(from);
	} else {
		*m = (struct made){ .texts = 2, .name = { 1 + dice(5), 1000 + id },
				    .tokens = { 1 + dice(8 * block), 1 + dice(from) } };
		if (!dice(3))
			m->texts = 1;
	}
	m->id = id;
	m->output = 1 + (dice(4) ? dice(3 * block) : dice(most / 2));
	for (uint64_t k = 0; k < m->texts; k++)
		sum += m->tokens[k];
	if (sum >= most)
		*m = (struct made){ .id = id, .texts = 1, .name = { 1 + dice(5) },
				    .output = 1 + dice(most),
				    .tokens = { 1 + dice(most - 1) } };
}

static const char *const kinds[] = { "full", "sliding", "chunked", "state", "cross" };

/* Groups as models have them: full attention beside one or two other kinds, or one kind alone. */
static uint64_t make_groups(struct vc_kv_group *k, uint64_t block, bool caching)
{
	static const enum vc_kv_kind sets[][3] = {
		{ VC_KV_FULL, VC_KV_SLIDING, VC_KV_FULL },
		{ VC_KV_FULL, VC_KV_STATE, VC_KV_FULL },
		{ VC_KV_FULL, VC_KV_STATE, VC_KV_SLIDING },
		{ VC_KV_SLIDING, VC_KV_SLIDING, VC_KV_SLIDING },
		{ VC_KV_FULL, VC_KV_CHUNKED, VC_KV_CHUNKED },
		{ VC_KV_STATE, VC_KV_STATE, VC_KV_STATE },
		{ VC_KV_FULL, VC_KV_CROSS, VC_KV_CROSS },
	};
	const enum vc_kv_kind *set = sets[dice(caching ? 6 : 7)];
	uint64_t kinds_ = 1 + dice(3), window = 1 + dice(dice(2) ? 4 * block : 40 * block), n = 0;
	uint64_t align = dice(3) ? 0 : 1u << dice(4);

	for (unsigned kind = 0; kind < kinds_; kind++) {
		bool fixed = set[1] == VC_KV_CHUNKED || set[kind] == VC_KV_STATE || dice(3);

		for (uint64_t i = 1 + dice(kind ? 4 : 2); i; i--)
			k[n++] = (struct vc_kv_group){
				set[kind], fixed ? block : 2 * block, window + 3 * kind, 0,
				set[kind] == VC_KV_STATE ? align : 0, kind, false,
			};
	}
	k[0].block_size = n == 1 ? block : k[0].block_size;
	return n;
}

static void write_groups(const struct vc_kv_group *k, uint64_t n, uint64_t block, uint64_t batch,
			 bool drafts)
{
	bool states = false, windows = false, within = false;
	uint64_t match = block;
	int retention;

	printf(" groups=");
	for (uint64_t g = 0; g < n; g++) {
		printf("%s%s/%" PRIu64 "/%" PRIu64 "/%" PRIu64 "/%" PRIu64 "/%u/%d", g ? "," : "",
		       kinds[k[g].kind], k[g].block_size, k[g].window, k[g].states,
		       k[g].checkpoint, k[g].spec, k[g].eagle);
		states |= k[g].kind == VC_KV_STATE;
		windows |= k[g].kind == VC_KV_SLIDING;
		within |= k[g].checkpoint > 0;
	}
	while (dice(2) && match > 1)
		match /= 2;
	retention = dice(3) ? 0 : dice(2) || !(states || windows) ? -1 : (int)(2 * block * dice(9));
	if (drafts && within) /* vLLM asserts: it looks for hashes of drafts */
		retention = 0;
	printf(" retention=%d match=%" PRIu64 " inflight=%" PRIu64 " encoder=%" PRIu64, retention,
	       states && n > 1 ? match : 0, batch * (1 + dice(2)), 1 + dice(5 * block));
}

/* EAGLE, a draft model or n-grams. */
static void write_drafts(const struct vc_serving_config *d)
{
	printf(" drafts=%" PRIu64 " lookahead=%" PRIu64 " slots=%" PRIu64 " eagle=%d accept=%"
	       PRIu64, d->drafts, d->lookahead, d->draft_slots, d->eagle, 100 * dice(11));
}

static struct vc_serving_config make_drafts(struct vc_kv_group *k, uint64_t n, bool within)
{
	struct vc_serving_config d = { .drafts = 1 + dice(6) };
	uint64_t kind = dice(4);

	d.lookahead = kind ? d.drafts : 0;
	d.draft_slots = kind == 1;
	d.eagle = kind > 1;
	k[0].eagle = d.eagle && (k[0].kind == VC_KV_FULL || k[0].kind == VC_KV_SLIDING);
	for (uint64_t g = 0; g < n; g++) {
		k[g].states = k[g].kind == VC_KV_STATE ? d.drafts : 0;
		k[g].checkpoint *= within;
	}
	return d;
}

static void write_script(uint64_t steps, const char *release, char mode)
{
	struct vc_serving_config drafts = { .drafts = 0 };
	bool groups = mode != 'r';
	static struct made of[TEXTS];
	struct vc_vllm_rules rules;
	uint64_t block = 1u << dice(6), blocks = 4 + dice(dice(3) ? 60 : 600), id = 0;
	uint64_t most = (blocks - 1) * block, rate, batch, caching = dice(8) != 0, n,
		 whole = 0;
	struct vc_kv_group group[VC_KV_GROUPS] = { { .spec = 0 } };

	if (vc_vllm_rules_for(release, &rules) < 0 || (groups && !rules.groups))
		die("not a known release", release);
	n = groups ? make_groups(group, block, caching) : 0;
	if (mode == 'd')
		drafts = make_drafts(group, n, rules.resent); /* 0.31 asserts with both */
	for (uint64_t g = 0; g < n; g++)
		whole += group[g].kind == VC_KV_FULL || dice(3) == 0;
	blocks *= 1 + n / 2;
	most = n ? 2 + (blocks - 1) * block / (whole + 1) : most; /* mostly it fits alone */
	most = dice(2) ? most : 2 + dice(most - 1);
	batch = 1 + dice(dice(2) ? 64 : 2000) + (mode == 'd' ? 8 : 0);
	printf("c blocks=%" PRIu64 " block=%" PRIu64 " seqs=%" PRIu64 " batch=%" PRIu64
	       " len=%" PRIu64 " policy=fcfs long=%" PRIu64 " whole=%d watermark=%" PRIu64
	       " caching=%d", blocks, block, 1 + dice(dice(2) ? 8 : 64), batch, most,
	       dice(3) || mode == 'd' ? 0 : 1 + dice(most), dice(4) != 0,
	       rules.watermark && !dice(3) ? dice(400) : 0, caching != 0);
	if (groups)
		write_groups(group, n, block, batch, drafts.drafts > 0);
	if (drafts.drafts)
		write_drafts(&drafts);
	puts("");
	rate = 1 + dice(12);
	while (steps) {
		uint64_t run = 1 + dice(rate);

		for (n = dice(4); n; n--) {
			prompt(of, id, block, most);
			printf("a %" PRIu64 " %" PRIu64 " 0", id, of[id % TEXTS].output);
			for (uint64_t k = 0; k < of[id % TEXTS].texts; k++)
				printf(" %" PRIu64 ":%" PRIu64, of[id % TEXTS].name[k],
				       of[id % TEXTS].tokens[k]);
			puts("");
			id++;
		}
		run = run < steps ? run : steps;
		printf("s %" PRIu64 "\n", run);
		steps -= run;
		if (!dice(10) && id)
			printf("x %" PRIu64 "\n", id - 1 - dice(id < 20 ? id : 20));
		if (!dice(40))
			puts("r");
	}
}

/* Layers of models: one kind, or full attention beside others, whose tokens take as much or a
 * power of two more or less. */
static void write_models(uint64_t models, const char *release)
{
	struct vc_vllm_rules rules;

	if (vc_vllm_rules_for(release, &rules) < 0 || !rules.groups)
		die("not a known release", release);
	while (models--) {
		static const uint64_t wide[] = { 512, 1024, 2048, 4096, 768 };
		uint64_t n = 1 + dice(3), bytes = wide[dice(5)], held = 0, block = 16, padded = 0;
		uint64_t len = 1024u << dice(8), many = 1 + dice(12), window = 128u << dice(6);
		bool caching = dice(2);

		for (uint64_t k = dice(3) ? 0 : 1; k; k--)
			held = 2 * (1 + dice(3000000));
		if (held) /* what the platform makes of it before */
			block = 16 * ((held + 16 * bytes - 1) / (16 * bytes));
		padded = held ? block * bytes : 0;
		printf("p layers=full/%" PRIu64 "/%" PRIu64 "/0/%" PRIu64, many, bytes, block);
		for (uint64_t k = 1; !held && k < n; k++) {
			bool full = k == 2 && dice(2);

			printf(",%s/%" PRIu64 "/%" PRIu64 "/%" PRIu64 "/%" PRIu64,
			       full ? "full" : dice(4) ? "sliding" : "chunked",
			       many * (1 + dice(5)) + dice(3), bytes << dice(3),
			       full ? 0 : window + k, block);
		}
		if (held)
			printf(",state/%" PRIu64 "/%" PRIu64 "/0/%" PRIu64, many * (1 + dice(6)),
			       held, caching ? block : len);
		if (dice(2)) /* a draft model */
			printf(",full/%" PRIu64 "/%" PRIu64 "/0/%" PRIu64, 1 + dice(2),
			       dice(2) ? bytes : dice(2) ? wide[dice(5)] : bytes >> dice(3), block);
		printf(" padded=%" PRIu64 " len=%" PRIu64 " inflight=%" PRIu64 " caching=%d states="
		       "%" PRIu64 " onekind=%d memory=%" PRIu64 "\n", padded, len,
		       (uint64_t)2 << (9 + dice(5)), caching, held ? dice(3) : 0,
		       !held && !dice(6), (uint64_t)1 << (30 + dice(7)));
	}
}

/* ---- a script, played ---- */
struct play {
	struct vc_requests requests;
	struct vc_serving s;
	struct vc_error err;
	const char *release;
	gzFile real;             /* NULL: print */
	uint64_t line, different, plans;
	char expected[LINE], said[LINE];
	size_t used;
	bool open;
};

static void say(struct play *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(struct play *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	p->used += (size_t)vsnprintf(p->said + p->used, LINE - p->used, fmt, ap);
	va_end(ap);
	if (p->used >= LINE)
		die("a line is too long", "");
}

static void end_line(struct play *p)
{
	p->line++;
	if (!p->real) {
		puts(p->said);
	} else if (!gzgets(p->real, p->expected, LINE)) {
		p->different++;
	} else {
		p->expected[strcspn(p->expected, "\n")] = '\0';
		if (strcmp(p->expected, p->said) && p->different++ < 3)
			printf("line %" PRIu64 "\n  real  %s\n  model %s\n", p->line, p->expected,
			       p->said);
	}
	p->used = 0;
}

static uint64_t fnv(uint64_t h, uint64_t v)
{
	return (h ^ v) * 1099511628211u;
}
#define FNV 14695981039346656037u

static void say_state(struct play *p)
{
	const struct vc_kv_pool *q = &p->s.cache.pool;
	uint64_t h = FNV;

	for (uint32_t i = q->block[q->n].next; i < q->n; i = q->block[i].next)
		h = fnv(h, i);
	say(p, "free %" PRIu32 " %016" PRIx64 " cached %zu running %zu waiting %zu", q->free, h,
	    q->known.n, p->s.runs, p->s.waits);
}

static void ok(struct play *p, int r)
{
	if (r < 0)
		die("the model failed", p->err.message);
}

static void step(struct play *p)
{
	const struct vc_serving_totals *now = &p->s.now;

	ok(p, vc_serving_schedule(&p->s, &p->err));
	say(p, "step");
	for (size_t k = 0; k < p->s.served; k++) {
		uint32_t i = p->s.step[k].request;
		say(p, " %" PRIu32 ":%" PRIu64 ":", i, p->s.step[k].tokens);
		for (size_t g = 0; g < p->s.cache.groups; g++) {
			uint64_t h = FNV;
			size_t n;
			const uint32_t *b = vc_serving_blocks(&p->s, i, g, &n);

			for (size_t at = 0; at < n; at++)
				h = fnv(h, b[at]);
			say(p, "%s%zu:%016" PRIx64, g ? "/" : "", n, h);
		}
	}
	say(p, " out");
	for (size_t k = p->s.gave_up; k--;)
		say(p, " %" PRIu32, p->s.given_up[k]);
	end_line(p);
	ok(p, vc_serving_output(&p->s, &p->err));
	say_state(p);
	say(p, " queries %" PRIu64 " hits %" PRIu64, now->queries, now->hits);
	end_line(p);
}

static uint64_t value_of(const char *line, const char *key)
{
	const char *at = strstr(line, key);

	if (!at)
		die("a configuration lacks a word", key);
	return strtoull(at + strlen(key), NULL, 10);
}

static size_t read_groups(struct vc_kv_group *group, const char *line)
{
	const char *at = strstr(line, " groups=");
	size_t n = 0;

	for (at = at ? at + 8 : NULL; at; at = strpbrk(at, ", ")) {
		struct vc_kv_group *k = &group[n];
		unsigned long long v[6];
		char kind[16] = "";

		at += *at == ',';
		if (sscanf(at, "%15[a-z]/%llu/%llu/%llu/%llu/%llu/%llu", kind, &v[0], &v[1], &v[2],
			   &v[3], &v[4], &v[5]) != 7)
			break;
		*k = (struct vc_kv_group){ VC_KV_FULL, v[0], v[1], v[2], v[3], (unsigned)v[4],
					   v[5] != 0 };
		while (strcmp(kinds[k->kind], kind))
			k->kind++;
		n++;
	}
	return n;
}

static void configure(struct play *p, const char *line)
{
	static struct vc_kv_group group[VC_KV_GROUPS];
	size_t groups = read_groups(group, line);
	bool drafts = strstr(line, " drafts=");
	const struct vc_serving_config k = {
		.version = p->release, .blocks = value_of(line, " blocks="),
		.block_size = value_of(line, " block="), .max_seqs = value_of(line, " seqs="),
		.max_batch = value_of(line, " batch="), .max_len = value_of(line, " len="),
		.long_prefill = value_of(line, " long="),
		.no_reserve = !value_of(line, " whole="),
		.watermark = (double)value_of(line, " watermark=") / 1000,
		.no_caching = !value_of(line, " caching="),
		.group = groups ? group : NULL, .groups = groups,
		.retention = groups ? value_of(line, " retention=") : 0,
		.match = groups ? value_of(line, " match=") : 0,
		.in_flight = groups ? value_of(line, " inflight=") : 0,
		.encoder = groups ? value_of(line, " encoder=") : 0,
		.drafts = drafts ? value_of(line, " drafts=") : 0,
		.lookahead = drafts ? value_of(line, " lookahead=") : 0,
		.draft_slots = drafts ? value_of(line, " slots=") : 0,
		.eagle = drafts && value_of(line, " eagle="),
		.acceptance = drafts ? (double)value_of(line, " accept=") / 1000 : 0,
	};

	ok(p, vc_serving_init(&p->s, &k, &p->requests, &p->err));
	p->open = true;
}

static void add(struct play *p, char *line)
{
	struct vc_serve_request rq = { .line = p->requests.n + 1 };
	struct vc_text text[16];
	size_t n = 0;
	char *at;

	rq.answer = ANSWER + strtoull(line, &at, 10);
	rq.output = strtoull(at, &at, 10);
	strtoull(at, &at, 10); /* the priority: all are equal */
	while (n < 16 && *at == ' ') {
		text[n].name = strtoull(at, &at, 10);
		text[n].tokens = strtoull(at + 1, &at, 10);
		rq.prompt += text[n++].tokens;
	}
	ok(p, vc_requests_add(&p->requests, &rq, text, n, &p->err));
	ok(p, vc_serving_add(&p->s, (uint32_t)p->requests.n - 1, &p->err));
}

/* "full/12/4096/0/16,...": the blocks are vLLM's to choose, but for those of states. */
static void read_layers(struct vc_kv_model *m, const char *at)
{
	for (; at; at = strpbrk(at, ", ")) {
		struct vc_kv_layers new = { VC_KV_FULL, 0, 0, 0, false }, *l = m->of;
		unsigned long long v[4];
		char kind[16];

		at += *at == ',';
		if (sscanf(at, "%15[a-z]/%llu/%llu/%llu/%llu", kind, &v[0], &v[1], &v[2],
			   &v[3]) != 5)
			return;
		while (strcmp(kinds[new.kind], kind))
			new.kind++;
		m->of[m->kinds] = new;
		m->of[m->kinds].bytes = v[1];
		m->of[m->kinds].window = v[2];
		while (l->kind != new.kind || l->bytes != v[1] || l->window != v[2])
			l++; /* to the first such, which may be this one */
		l->n += v[0];
		m->kinds += l == &m->of[m->kinds];
	}
}

static void plan(struct play *p, const char *line)
{
	struct vc_kv_model m = { .kinds = 0 };
	struct vc_kv_server v = {
		.minor = (unsigned)strtoul(strchr(p->release, '.') + 1, NULL, 10),
		.block_size = 16, .max_len = value_of(line, " len="),
		.max_batch = value_of(line, " inflight=") / 2,
		.states = value_of(line, " states="), .caching = value_of(line, " caching="),
		.one_kind = value_of(line, " onekind="),
	};
	struct vc_kv_plan out;
	uint64_t blocks, tokens;
	double requests;

	read_layers(&m, strstr(line, "layers=") + 7);
	p->plans++;
	if (vc_kv_plan(&m, &v, &out, &p->err) < 0) {
		say(p, "plan refused");
		end_line(p);
		return;
	}
	blocks = value_of(line, " memory=") / out.block_bytes;
	tokens = vc_kv_plan_tokens(&out, &v, blocks, &requests);
	say(p, "plan");
	for (size_t g = 0; g < out.groups; g++)
		say(p, " %" PRIu64 ":%" PRIu64, out.layers[g], out.group[g].block_size);
	say(p, " bytes %" PRIu64 " blocks %" PRIu64 " tokens %" PRIu64 " requests %.6f",
	    out.block_bytes, blocks, tokens, requests);
	end_line(p);
}

static void line_of(struct play *p, char *line)
{
	line[strcspn(line, "\n")] = '\0';
	if (line[0] == 'p')
		plan(p, line);
	else if (line[0] == 'c')
		configure(p, line);
	else if (line[0] == 'a' && p->open)
		add(p, line + 2);
	for (uint64_t n = line[0] == 's' ? strtoull(line + 2, NULL, 10) : 0; n; n--)
		step(p);
	if (line[0] == 'x') {
		vc_serving_abort(&p->s, (uint32_t)strtoul(line + 2, NULL, 10));
		say(p, "abort ");
		say_state(p);
		end_line(p);
	} else if (line[0] == 'r') {
		say(p, "reset %d ", vc_kv_forget(&p->s.cache.pool));
		say_state(p);
		end_line(p);
	}
}

static void play(const char *release, const char *script, const char *real, uint64_t sum[4])
{
	static struct play p;
	static char line[LINE];
	gzFile in = gzopen(script, "r");

	p = (struct play){ .release = release, .real = real ? gzopen(real, "r") : NULL };
	if (!in || (real && !p.real))
		die("cannot be read", in ? real : script);
	while (gzgets(in, line, LINE))
		line_of(&p, line);
	if (p.open) {
		say(&p, "end preemptions %" PRIu64, p.s.now.preemptions);
		end_line(&p);
	}
	if (p.different)
		printf("%s: %" PRIu64 " lines differ\n", script, p.different);
	sum[0] += p.s.now.operations + p.requests.n + p.plans;
	sum[1] += p.s.now.preemptions;
	sum[2] += p.s.now.hits;
	sum[3] += p.different;
	gzclose(in);
	if (p.real)
		gzclose(p.real);
	if (p.open)
		vc_serving_fini(&p.s);
	vc_requests_fini(&p.requests);
}

int main(int argc, char **argv)
{
	uint64_t sum[4] = { 0 };
	int scripts = 0;

	if (argc == 5 && argv[1][0] == '-' && argv[1][1] && strchr("rgd", argv[1][1])) {
		state = strtoull(argv[2], NULL, 10) * 0x9e3779b97f4a7c15u + 1;
		write_script(strtoull(argv[3], NULL, 10), argv[4], argv[1][1]);
		return 0;
	}
	if (argc == 5 && !strcmp(argv[1], "-l")) {
		state = strtoull(argv[2], NULL, 10) * 0x9e3779b97f4a7c15u + 1;
		write_models(strtoull(argv[3], NULL, 10), argv[4]);
		return 0;
	}
	if (argc == 5 && !strcmp(argv[1], "-p")) {
		play(argv[3], argv[4], NULL, sum);
		return 0;
	}
	if (argc < 5 || strcmp(argv[1], "-v") || argc % 2 == 0)
		die("usage", "-v RELEASE SCRIPT RESULT..., -p -v RELEASE SCRIPT, "
			     "-r, -g or -d SEED STEPS RELEASE");
	for (int i = 3; i + 1 < argc; i += 2, scripts++)
		play(argv[2], argv[i], argv[i + 1], sum);
	printf("%d scripts, %" PRIu64 " operations, %" PRIu64 " preemptions, %" PRIu64
	       " tokens found in the cache, %" PRIu64 " lines differ\n", scripts, sum[0], sum[1],
	       sum[2], sum[3]);
	return sum[3] != 0;
}
