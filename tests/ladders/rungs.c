/* SPDX-License-Identifier: Apache-2.0 */
/* rungs.c - see rungs.h */
#include "tests/ladders/rungs.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nullgpu/plans.h"
#include "simulator/replay/cards.h"
#include "simulator/session/named_plans.h"

unsigned without_rules;

static const char *const endings[] = { ".pickle.zst", ".pickle", ".vct" };

static uint64_t number(const char *json, const char *key)
{
	const char *p = strstr(json, key);

	return p ? strtoull(p + strlen(key), NULL, 10) : 0;
}

/* The first `"key": "text"` into buf. */
static void text(const char *json, const char *key, char *buf, size_t n)
{
	const char *p = strstr(json, key);
	size_t len = 0;

	*buf = '\0';
	if (!p)
		return;
	for (p += strlen(key); p[len] && p[len] != '"' && len + 1 < n; len++)
		buf[len] = p[len];
	buf[len] = '\0';
}

/* NULL: there is no such file. */
static char *slurp(const char *path)
{
	FILE *f = fopen(path, "rb");
	char *s = f ? calloc(1, 1 << 20) : NULL;

	if (s)
		s[fread(s, 1, (1 << 20) - 1, f)] = '\0';
	if (f)
		fclose(f);
	return s;
}

/* family[-variant]_knobVALUE[_torchVERSION], without its ending */
static bool split(const char *stem, const char *folder, bool inner, struct ladder *l, double *x)
{
	const char *torch = strstr(stem, "_torch");
	char head[256];

	if (strlen(stem) >= sizeof(head))
		return false;
	snprintf(head, sizeof(head), "%.*s", torch ? (int)(torch - stem) : (int)strlen(stem),
		 stem);
	char *digits = head + strlen(head);
	while (digits > head && digits[-1] >= '0' && digits[-1] <= '9')
		digits--;
	*x = strtod(digits, NULL);
	*digits = '\0';
	char *knob = strrchr(head, '_');
	if (!knob || !knob[1])
		return false;
	if (*folder && strlen(folder) == (size_t)(knob - head) &&
	    !strncmp(head, folder, (size_t)(knob - head)))
		inner = false; /* the file repeats the folder's name */
	else if (knob - head > 5 && !strncmp(knob - 5, "_eval", 5))
		knob -= 5;
	snprintf(l->name, sizeof(l->name), "%.50s%s%.*s %s%s%.12s", inner ? folder : "",
		 inner ? "/" : "", (int)(knob - head), head, knob + 1, torch ? " " : "",
		 torch ? torch + 6 : "");
	snprintf(l->knob, sizeof(l->knob), "%.31s", knob + 1);
	return *x > 0;
}

/* In place, or at the end; a rung that is there already (in another format) stays. */
static void put_rung(struct ladder *l, const struct rung *r)
{
	size_t at = l->n;

	for (size_t i = 0; i < l->n; i++)
		if (l->rung[i].x == r->x)
			return;
	if (l->n == RUNGS)
		return;
	for (l->n++; at > 0 && l->rung[at - 1].x > r->x; at--)
		l->rung[at] = l->rung[at - 1];
	l->rung[at] = *r;
}

static void add(struct ladder *all, size_t *n, const char *dir, bool inner, const char *file,
		size_t stem_len)
{
	struct ladder new = { 0 }, *l = NULL;
	char path[1024], stem[256];
	struct rung r = { 0 };

	snprintf(stem, sizeof(stem), "%.*s", (int)stem_len, file);
	const char *folder = strrchr(dir, '/') ? strrchr(dir, '/') + 1 : dir;

	if (!split(stem, folder, inner, &new, &r.x))
		return;
	for (size_t i = 0; i < *n; i++)
		if (!strcmp(all[i].name, new.name))
			l = &all[i];
	snprintf(path, sizeof(path), "%s/%s.json", dir, stem);
	char *json = slurp(path);
	if (!l && *n < LADDERS) {
		l = &all[(*n)++];
		*l = new;
		if (json) {
			text(json, "\"torch\": \"", l->torch, sizeof(l->torch));
			l->torch[strspn(l->torch, "0123456789.")] = '\0';
			text(json, "\"conf\": \"", l->conf, sizeof(l->conf));
			text(json, "\"device_name\": \"", l->card, sizeof(l->card));
		}
	}
	if (l) {
		r.reserved = json ? number(json, "\"peak_reserved\": ") : 0;
		r.allocated = json ? number(json, "\"peak_allocated\": ") : 0;
		snprintf(r.path, sizeof(r.path), "%s/%s", dir, file);
		put_rung(l, &r);
	}
	free(json);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct ladder *)a)->name, ((const struct ladder *)b)->name);
}

static void look(struct ladder *all, size_t *n, const char *dir, const char *kind, bool inner)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	char path[1024];

	while (d && (e = readdir(d))) {
		size_t len = strlen(e->d_name), tail = 0;

		for (size_t k = 0; k < sizeof(endings) / sizeof(*endings) && !tail; k++) {
			size_t m = strlen(endings[k]);

			if (len > m && !strcmp(e->d_name + len - m, endings[k]) &&
			    (!kind || strstr(endings[k], kind)))
				tail = m;
		}
		if (tail)
			add(all, n, dir, inner, e->d_name, len - tail);
		else if (!inner && e->d_name[0] != '.') {
			snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
			look(all, n, path, kind, true);
		}
	}
	if (d)
		closedir(d);
}

size_t find_ladders(struct ladder *all, size_t n, const char *dir, const char *kind)
{
	char path[1024];
	size_t len = strlen(dir);

	snprintf(path, sizeof(path), "%s", dir);
	for (; len > 1 && len < sizeof(path) && path[len - 1] == '/'; len--)
		path[len - 1] = '\0';
	look(all, &n, path, kind, false);
	qsort(all, n, sizeof(*all), by_name);
	return n;
}

static bool measure(const struct ladder *l, struct rung *r)
{
	struct vc_run_options opt = vc_run_options_none();
	const char *torch = l->torch;
	struct vc_error err = { 0 };
	struct vc_session s;
	struct vc_result out;
	bool exact;

	opt.torch = (struct vc_list){ &torch, *torch ? 1 : 0 };
	opt.verify = true;
	exact = vc_session_open_one(&s, &opt, r->path, VC_SESSION_IN_MEMORY, &err) == VC_OK &&
		s.rec->fidelity.exact;
	if (exact && !r->reserved) {
		exact = vc_job_follow(s.rec, s.rec->torch, NULL, &out, &err) == VC_OK;
		if (exact) {
			r->reserved = out.stats.peak_reserved;
			r->allocated = out.stats.peak_allocated;
			vc_result_fini(&out);
		}
	}
	if (!exact)
		printf("# not exact: %s %s\n", r->path, err.message);
	vc_session_close(&s);
	return exact;
}

size_t measure_rungs(struct ladder *l)
{
	size_t kept = 0, all = l->n;

	for (size_t i = 0; i < all; i++)
		if (measure(l, &l->rung[i]))
			l->rung[kept++] = l->rung[i];
	l->n = kept;
	return all - kept;
}

/* Snapshots do not name their card: who predicts for one says which. */
int open_rungs(struct opening *o, const struct ladder *l, const size_t *rung, size_t n,
	       struct vc_session *s, struct vc_error *err)
{
	static const struct vc_asker kept = { .table = vc_plans_path };

	o->opt = vc_run_options_none();
	o->opt.without = without_rules;
	o->opt.asker = &kept; /* what dry runs asked, and nobody else */
	o->torch = l->torch;
	o->sets = o->set;
	o->card = l->card;
	for (size_t i = 0; i < n; i++) {
		const struct rung *r = &l->rung[rung[i]];

		snprintf(o->spec[i], sizeof(o->spec[i]), "%s@%s=%g", r->path, l->knob, r->x);
		o->path[i] = o->spec[i];
	}
	snprintf(o->set, sizeof(o->set), "%s=%g", l->knob, l->rung[rung[n - 1]].x);
	if (*l->card && vc_card_by_name(l->card))
		o->opt.gpu = (struct vc_list){ &o->card, 1 };
	o->opt.torch = (struct vc_list){ &o->torch, *l->torch ? 1 : 0 };
	o->opt.set = (struct vc_list){ &o->sets, 1 };
	return vc_session_open(s, &o->opt, n, o->path, 0, err);
}

int replay_rung(struct vc_session *s, struct vc_result *out, struct vc_error *err)
{
	struct vc_plan *plan;
	size_t n;
	int r = vc_session_plans(s, &plan, &n, err);

	if (r < 0)
		return r;
	plan[0].capacity = 0;
	r = vc_session_run(s, &plan[0], NULL, out, err);
	free(plan);
	return r;
}
