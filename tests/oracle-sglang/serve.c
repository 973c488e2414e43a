/* SPDX-License-Identifier: Apache-2.0 */
/* serve.c - request scripts for the model of SGLang's radix cache and scheduler, and what SGLang's
 * own code did with them (judge_serve.py).
 *
 *   serve -r SEED STEPS          a random script
 *   serve -v RELEASE SCRIPT REAL...  what the model does, compared line by line; -p prints it
 *
 * c tokens=640 page=1 running=8 chunk=64 prefill=16384 len=500 caching=1: max_total_num_tokens,
 * page_size, max_running_requests, chunked_prefill_size (0: off), max_prefill_tokens,
 * context_length, the radix cache
 * a ID OUTPUT NAME:TOKENS...: a request arrives. The output of request N is text 2^30 + N
 * s N: N steps */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "simulator/serving/sgl_serving.h"
#include "tests/support/play.h"

enum { LINE = 1 << 14, ANSWER = 1 << 30, TALKS = 16 };

/* ---- a random script ---- */
/* Conversations go on with their answers; others begin with a text that several have. */
struct talk { uint64_t last, output, tokens; char text[1024]; };

static void say_request(struct talk *t, uint64_t id, uint64_t most, uint64_t part)
{
	uint64_t more = 1 + play_dice(1 + most / part), n = strlen(t->text);

	if (!n || t->tokens + t->output + more >= most || n > 900 || !play_dice(4)) {
		uint64_t begin = 1 + play_dice(1 + most / part);

		t->tokens = begin;
		n = (uint64_t)sprintf(t->text, " %" PRIu64 ":%" PRIu64, 1 + play_dice(4), begin);
	} else {
		n += (uint64_t)sprintf(t->text + n, " %" PRIu64 ":%" PRIu64, ANSWER + t->last,
				       t->output);
		t->tokens += t->output;
	}
	sprintf(t->text + n, " %" PRIu64 ":%" PRIu64, 1000 + id, more);
	t->tokens += more;
	t->output = 1 + play_dice(1 + most / (part > 4 ? 1 : play_dice(4) ? 8 : 2));
	t->last = id;
	if (t->tokens + 8 >= most) {
		*t = (struct talk){ .last = 0 };
		return;
	}
	printf("a %" PRIu64 " %" PRIu64 "%s\n", id, t->output, t->text);
}

static void random_script(uint64_t steps)
{
	static struct talk of[TALKS];
	static const uint64_t pages[] = { 1, 1, 1, 16, 64 };
	uint64_t page = pages[play_dice(5)];
	uint64_t tokens = page * (20 + play_dice(play_dice(2) ? 60 : 600));
	uint64_t most = 20 + play_dice(tokens), id = 0, rate = 1 + play_dice(10);
	uint64_t chunk = play_dice(4) ? page * (1 + play_dice(40)) : 0;
	uint64_t part = play_dice(2) ? 4 : 32;

	printf("c tokens=%" PRIu64 " page=%" PRIu64 " running=%" PRIu64 " chunk=%" PRIu64
	       " prefill=%" PRIu64 " len=%" PRIu64 " caching=%d\n", tokens, page,
	       1 + play_dice(play_dice(2) ? 8 : 40), chunk,
	       page + play_dice(play_dice(2) ? 200 : 20000), most, play_dice(8) > 0);
	while (steps) {
		uint64_t run = 1 + play_dice(rate);

		for (uint64_t n = play_dice(4); n; n--, id++)
			say_request(&of[play_dice(TALKS)], id, most < tokens ? most : tokens, part);
		run = run < steps ? run : steps;
		printf("s %" PRIu64 "\n", run);
		steps -= run;
	}
}

/* ---- a script, played ---- */
static struct vc_requests requests;
static struct vc_sgl_serving server;
static struct vc_error err;
static uint64_t row, different, operations, found, back;
static gzFile real;
static char said[LINE], expected[LINE];
static size_t used;

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	used += (size_t)vsnprintf(said + used, LINE - used, fmt, ap);
	va_end(ap);
	if (used >= LINE)
		play_die("a line is too long", "");
}

static void end_line(void)
{
	row++;
	used = 0;
	if (!real) {
		puts(said);
		return;
	}
	if (!gzgets(real, expected, LINE))
		expected[0] = '\0';
	expected[strcspn(expected, "\n")] = '\0';
	if (strcmp(expected, said) && different++ < 3)
		printf("line %" PRIu64 "\n  real  %s\n  model %s\n", row, expected, said);
}

static void check(int r)
{
	if (r < 0)
		play_die("the model failed", err.message);
}

static void step(void)
{
	struct vc_sgl_serving *s = &server;

	check(vc_sgl_schedule(s, &err));
	say("%s", !s->served ? "idle" : s->decodes ? "decode" : "prefill");
	for (size_t k = 0; k < s->served; k++)
		say(" %" PRIu64 ":%" PRIu64, requests.at[s->step[k].request].line,
		    s->step[k].tokens);
	operations += s->served;
	end_line();
	check(vc_sgl_output(s, &err));
	say("free %" PRIu64 " held %" PRIu64 " locked %" PRIu64 " running %zu waiting %zu queries %"
	    PRIu64 " hits %" PRIu64 " back %" PRIu64 " ratio %.9f", s->free * s->k.page,
	    s->tree.held * s->k.page, s->tree.locked * s->k.page, s->runs, s->waits,
	    s->now.queries, s->now.hits, s->now.retractions, s->ratio);
	end_line();
}

static uint64_t member(const char *line, const char *name)
{
	const char *at = strstr(line, name);

	return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

static void add(char *line)
{
	struct vc_serve_request rq = { .line = strtoull(line, &line, 10) };
	struct vc_text text[64];
	size_t n = 0;

	rq.answer = ANSWER + rq.line;
	rq.output = strtoull(line, &line, 10);
	for (; *line == ' ' && n < 64; n++) {
		text[n].name = strtoull(line, &line, 10);
		text[n].tokens = strtoull(line + 1, &line, 10);
		rq.prompt += text[n].tokens;
	}
	operations++;
	check(vc_requests_add(&requests, &rq, text, n, &err));
	check(vc_sgl_add(&server, (uint32_t)requests.n - 1, &err));
}

static void play(const char *script, const char *result, bool refresh)
{
	static char text[LINE];
	gzFile in = gzopen(script, "rb");

	real = result ? gzopen(result, "rb") : NULL;
	if (!in || (result && !real))
		play_die("cannot be read", in ? result : script);
	row = 0;
	requests = (struct vc_requests){ .n = 0 };
	while (gzgets(in, text, LINE)) {
		text[strcspn(text, "\n")] = '\0';
		if (*text == 'c') {
			const struct vc_sgl_config k = {
				.tokens = member(text, " tokens="), .refresh = refresh,
				.page = member(text, " page="), .chunk = member(text, " chunk="),
				.running = member(text, " running="),
				.prefill = member(text, " prefill="),
				.max_len = member(text, " len="),
				.no_caching = !member(text, " caching="),
			};
			check(vc_sgl_serving_init(&server, &k, &requests, &err));
		} else if (*text == 'a') {
			add(text + 2);
		}
		for (uint64_t n = *text == 's' ? strtoull(text + 2, NULL, 10) : 0; n; n--)
			step();
	}
	found += server.now.hits;
	back += server.now.retractions;
	vc_sgl_serving_fini(&server);
	vc_requests_fini(&requests);
	gzclose(in);
	if (real)
		gzclose(real);
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "-r")) {
		play_seed(strtoull(argv[2], NULL, 10));
		random_script(strtoull(argv[3], NULL, 10));
		return 0;
	}
	if (argc == 4 && !strcmp(argv[1], "-p")) {
		play(argv[3], NULL, strcmp(argv[2], "0.5.21") != 0);
		return 0;
	}
	if (argc < 5 || argc % 2 == 0 || strcmp(argv[1], "-v"))
		play_die("usage", "-r SEED STEPS, -p RELEASE SCRIPT, -v RELEASE SCRIPT REAL...");
	for (int i = 3; i + 1 < argc; i += 2) {
		uint64_t before = different;

		play(argv[i], argv[i + 1], strcmp(argv[2], "0.5.21") != 0);
		if (different > before)
			printf("%s: %" PRIu64 " lines differ\n", argv[i], different - before);
	}
	printf("%d scripts, %" PRIu64 " operations, %" PRIu64 " retractions, %" PRIu64
	       " tokens found, %" PRIu64 " lines differ\n", (argc - 3) / 2, operations, back, found,
	       different);
	return different != 0;
}
