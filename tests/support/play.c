/* SPDX-License-Identifier: Apache-2.0 */
/* play.c - see play.h */
#include "tests/support/play.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* ---- the model ---- */
void play_say(struct player *p, const char *fmt, ...)
{
	va_list ap;

	if (p->lines == p->cap) {
		p->cap = p->cap ? 2 * p->cap : 64;
		p->said = realloc(p->said, p->cap * sizeof(*p->said));
		if (!p->said)
			play_die("no memory", "lines");
	}
	va_start(ap, fmt);
	vsnprintf(p->said[p->lines++], PLAY_LINE, fmt, ap);
	va_end(ap);
}

static void on_device(void *arg, const struct vc_device_change *c)
{
	struct player *p = arg;

	p->failed += c->failed;
	p->smaller += p->failed && c->what == VC_DRV_MALLOC && !c->failed;
	p->returned += c->what == VC_DRV_FREE;
	if (c->failed)
		play_say(p, "X %" PRIu64, c->size);
	else
		play_say(p, "%c %" PRIx64 " %" PRIu64, c->what == VC_DRV_FREE ? 'r' : 'R', c->addr,
			 c->size);
}

enum vc_va_policy play_policy(const char *name)
{
	static const char *const names[] = { "inc", "dec", "fit", "mix" };
	unsigned va = 0;

	while (va < 3 && strcmp(names[va], name))
		va++;
	return (enum vc_va_policy)va;
}

int play_alloc(struct player *p, uint64_t id, uint64_t size, uint32_t stream)
{
	struct vc_request rq = { .id = id, .size = size, .stream = stream };
	struct vc_error err = { 0 };
	int r = p->m.type->alloc(&p->m, &rq, &p->block[id], &err);

	if (r < 0)
		play_die("alloc", err.message);
	p->refused += r == VC_REFUSED;
	p->live[id] = r == VC_DONE;
	return r;
}

static void begin(struct player *p, const struct play_rules *r, const char *script,
		  const char *result)
{
	struct vc_device_config d = { 0 };
	struct vc_error err = { 0 };
	char params[512];

	p->m.type = vc_model_by_name(r->begin(script, result, params, sizeof(params), &d));
	p->m.config = calloc(1, p->m.type->config_size);
	p->m.state = calloc(1, p->m.type->state_size);
	p->m.device = vc_device_new(&d, &err);
	p->block = calloc(PLAY_MOST + 1, sizeof(*p->block));
	p->live = calloc(PLAY_MOST + 1, sizeof(*p->live));
	if (!p->m.config || !p->m.state || !p->m.device || !p->block || !p->live ||
	    vc_params_parse(p->m.type->params, (void *)(uintptr_t)p->m.config, params, &err) < 0 ||
	    p->m.type->init(&p->m, &err) < 0)
		play_die(params, err.message);
	vc_device_listen(p->m.device, on_device, p);
}

static void end(struct player *p)
{
	p->m.type->fini(&p->m);
	vc_device_free_all(p->m.device);
	free((void *)(uintptr_t)p->m.config);
	free(p->m.state);
	free(p->block);
	free(p->live);
	free(p->said);
}

static bool read_line(gzFile f, char *line)
{
	if (!gzgets(f, line, PLAY_LINE))
		return false;
	line[strcspn(line, "\n")] = '\0';
	return true;
}

static void play_line(struct player *p, const struct play_rules *r, const char *line)
{
	p->lines = 0;
	p->failed = 0;
	p->operations++;
	r->line(p, line);
}

/* false: the real one hangs in the operation, nothing comes after it. */
static bool is_same(struct player *p, gzFile result, const char *line, const char *name, bool *bad)
{
	char real[PLAY_LINE];

	for (unsigned i = 0; i < p->lines; i++) {
		if (!read_line(result, real))
			snprintf(real, sizeof(real), "(the end)");
		if (!strcmp(real, "spin"))
			return false;
		if (strcmp(real, p->said[i])) {
			printf("%s: operation %" PRIu64 " (%s): the real one \"%s\", the model "
			       "\"%s\"\n", name, p->operations, line, real, p->said[i]);
			*bad = true;
			return false;
		}
	}
	return true;
}

void play_script(const struct play_rules *r, const char *script,
		 void (*at_end)(struct player *p, void *arg), void *arg)
{
	struct player p = { 0 };
	gzFile s = gzopen(script, "rb");
	char line[PLAY_LINE];

	if (!s || !read_line(s, line))
		play_die("cannot read", script);
	begin(&p, r, line, NULL);
	while (read_line(s, line))
		play_line(&p, r, line);
	at_end(&p, arg);
	gzclose(s);
	end(&p);
}

static bool compare(const struct play_rules *r, const char *script, const char *result,
		    uint64_t sum[4])
{
	struct player p = { 0 };
	gzFile s = gzopen(script, "rb"), f = gzopen(result, "rb");
	char line[PLAY_LINE], head[PLAY_LINE];
	bool bad = false, whole = true;
	struct vc_error err = { 0 };

	if (!s || !f || !read_line(s, line) || !read_line(f, head))
		play_die("cannot read", s ? result : script);
	begin(&p, r, line, head);
	while (whole && read_line(s, line)) {
		play_line(&p, r, line);
		whole = is_same(&p, f, line, result, &bad);
	}
	if (whole && read_line(f, head)) {
		printf("%s: the real one goes on with \"%s\"\n", result, head);
		bad = true;
	}
	if (p.m.type->check(&p.m, &err) < 0) {
		printf("%s: %s\n", result, err.message);
		bad = true;
	}
	sum[0] += p.operations;
	sum[1] += p.refused;
	sum[2] += p.returned;
	sum[3] += p.smaller;
	gzclose(s);
	gzclose(f);
	end(&p);
	return !bad;
}

int play_compare(const struct play_rules *r, int n, char **files)
{
	uint64_t sum[4] = { 0 };
	int different = 0;

	for (int i = 0; i + 1 < n; i += 2)
		different += !compare(r, files[i], files[i + 1], sum);
	printf("%d scripts, %" PRIu64 " operations, %" PRIu64 " refusals, %" PRIu64
	       " regions given back, %" PRIu64 " smaller regions, %d different\n",
	       n / 2, sum[0], sum[1], sum[2], sum[3], different);
	return different > 0;
}
