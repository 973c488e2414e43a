/* SPDX-License-Identifier: Apache-2.0 */
/* play.c - how SGLang divides memory: random servers, and the plans of our model.
 *
 *   play -r SEED SERVERS     a server on a line: bytes of a token in all layers and in those with a
 *                            window, bytes of a state, memory, settings
 *   play SCRIPT              what vc_sgl_plan() makes of them, a line each
 *   play -v SCRIPT REAL      the same, compared with what SGLang's own code said (judge.py) */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "simulator/serving/sgl_plan.h"
#include "tests/support/play.h"

enum { LINE = 512 };

static void random_server(void)
{
	static const unsigned pages[] = { 1, 1, 16, 32, 64, 128 };
	uint64_t full = play_dice(8) ? 256 * (1 + play_dice(1000)) : 0, window = 0, held = 0;
	uint64_t page = pages[play_dice(6)];

	if (!full || !play_dice(2))
		window = 256 * (1 + play_dice(2000));
	if (full && !play_dice(2))
		held = 2 * (1 + play_dice(200000000));
	printf("full=%" PRIu64 " window=%" PRIu64 " state=%" PRIu64 " memory=%" PRIu64, full,
	       window, held, play_dice((uint64_t)1 << (28 + play_dice(11))));
	printf(" page=%" PRIu64, page);
	printf(" states=%" PRIu64, play_dice(3) ? 0 : 1 + play_dice(600));
	printf(" running=%" PRIu64, play_dice(2) ? 0 : 1 + play_dice(600));
	printf(" len=%" PRIu64, 1 + play_dice(300000));
	printf(" size=%" PRIu64 " sratio=%.2f wratio=%.2f radix=%d\n",
	       (uint64_t)128 << play_dice(8), (double)(1 + play_dice(300)) / 100,
	       (double)(1 + play_dice(100)) / 100, play_dice(3) > 0);
}

static uint64_t member(const char *line, const char *name)
{
	const char *at = strstr(line, name);

	return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

static void plan(const char *line, char *text)
{
	struct vc_error err = { .status = VC_OK };
	struct vc_kv_model m = { .kinds = 0 };
	struct vc_sgl_plan p;
	struct vc_sgl_server v = {
		.memory = member(line, " memory="), .page = member(line, " page="),
		.states = member(line, " states="), .running = member(line, " running="),
		.max_len = member(line, " len="), .radix = member(line, " radix="),
		.state_ratio = strtod(strstr(line, " sratio=") + 8, NULL),
		.window_ratio = strtod(strstr(line, " wratio=") + 8, NULL), .windows = true,
	};
	const struct vc_kv_layers of[] = {
		{ VC_KV_FULL, 1, member(line, "full="), 0, false },
		{ VC_KV_SLIDING, 1, member(line, " window="), member(line, " size="), false },
		{ VC_KV_STATE, 1, member(line, " state="), 0, false },
	};

	for (size_t i = 0; i < 3; i++)
		if (of[i].bytes)
			m.of[m.kinds++] = of[i];
	if (vc_sgl_plan(&m, &v, &p, &err) < 0 || !p.tokens || p.narrow ||
	    (p.state_bytes && (!p.states || !p.running)))
		snprintf(text, LINE, "refused");
	else
		snprintf(text, LINE, "tokens %" PRIu64 " window %" PRIu64 " states %" PRIu64
			 " running %" PRIu64, p.tokens, p.window_tokens,
			 p.state_bytes ? p.states : v.states, p.running);
}

int main(int argc, char **argv)
{
	char line[LINE], said[LINE], real[LINE];
	bool check = argc == 4 && !strcmp(argv[1], "-v");
	uint64_t lines = 0, different = 0;
	gzFile in, judged = NULL;

	if (argc == 4 && !strcmp(argv[1], "-r")) {
		play_seed(strtoull(argv[2], NULL, 10));
		for (uint64_t n = strtoull(argv[3], NULL, 10); n; n--)
			random_server();
		return 0;
	}
	in = argc > 1 ? gzopen(argv[check ? 2 : 1], "rb") : NULL;
	if (check)
		judged = gzopen(argv[3], "rb");
	if (!in || (check && !judged))
		play_die("cannot be read", argc > 1 ? argv[argc - 1] : "no script");
	while (gzgets(in, line, LINE)) {
		plan(line, said);
		lines++;
		if (!check) {
			puts(said);
			continue;
		}
		if (!gzgets(judged, real, LINE))
			real[0] = '\0';
		real[strcspn(real, "\n")] = '\0';
		if (strcmp(said, real) && different++ < 3)
			printf("%s  real  %s\n  model %s\n", line, real, said);
	}
	if (check)
		printf("%" PRIu64 " servers, %" PRIu64 " differ\n", lines, different);
	gzclose(in);
	if (judged)
		gzclose(judged);
	return check && (different || !lines);
}
