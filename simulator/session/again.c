/* SPDX-License-Identifier: Apache-2.0 */
/* again.c - the command behind a run once more, with something changed. */
#include "simulator/session/again.h"

struct line {
	char *at;
	size_t n, used;
	const char *how;
};

static void put(struct line *l, const char *option, const char *value)
{
	char word[512];
	int k = snprintf(l->at + l->used, l->n - l->used, "%s%s%s%s", l->used ? " " : "", option,
			 *option && value ? " " : "",
			 value ? vc_opt_word(value, word, sizeof(word)) : "");

	if (k > 0)
		l->used = (size_t)k < l->n - l->used ? l->used + (size_t)k : l->n - 1;
}

/* Is this option given in the change? With a name ("--set", "batch=8"), for that name. */
static bool changed(const struct line *l, const char *option, const char *value)
{
	size_t key = strcspn(value, "="), k = strlen(option);

	for (const char *p = l->how; (p = strstr(p, option)); p += k)
		if ((p == l->how || p[-1] == ' ') && p[k] == ' ' &&
		    (!*value || (!strncmp(p + k + 1, value, key) && p[k + 1 + key] == '=')))
			return true;
	return false;
}

static void put_each(struct line *l, const char *option, const struct vc_list *values, bool named)
{
	for (size_t i = 0; i < values->n; i++)
		if (!changed(l, option, named ? values->at[i] : ""))
			put(l, option, values->at[i]);
}

/* What of several values of an option this plan stands for. */
static void put_plan(struct line *l, const struct vc_run_options *opt, const struct vc_plan *plan)
{
	char model[320];

	if (opt->model.n) {
		snprintf(model, sizeof(model), "%s%s%s", plan->model->name,
			 plan->params[0] ? ":" : "", plan->params);
		put(l, "-m", model);
	}
	if (opt->torch.n && !changed(l, "--torch", ""))
		put(l, "--torch", plan->torch);
	if (opt->conf.n && !changed(l, "--conf", ""))
		put(l, "--conf", plan->conf);
	if (plan->card && !changed(l, "-g", ""))
		put(l, "-g", plan->card->name);
}

static void put_size(struct line *l, const char *option, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	if (value != VC_NOT_GIVEN && !changed(l, option, ""))
		put(l, option, text);
}

char *vc_again(const struct vc_run_options *opt, size_t traces, char *const *trace,
	       const struct vc_plan *plan, const char *how, char *buf, size_t n)
{
	struct line l = { .at = buf, .n = n, .how = how };
	char text[32];

	put(&l, "vramcast sim", NULL);
	for (size_t i = 0; i < traces; i++)
		put(&l, "", trace[i]);
	put_plan(&l, opt, plan);
	if (!changed(&l, "-g", ""))
		put_size(&l, "--capacity", opt->capacity);
	put_each(&l, "--used", &opt->used, false);
	put_size(&l, "--context", opt->context);
	snprintf(text, sizeof(text), "%.9g", opt->fraction);
	if (!isnan(opt->fraction) && !changed(&l, "--fraction", ""))
		put(&l, "--fraction", text);
	put_each(&l, "--set", &opt->set, true);
	for (size_t i = 0; i < opt->transform.n; i++) /* the change comes on top */
		put(&l, "-x", opt->transform.at[i]);
	if (opt->start)
		put(&l, "--start", opt->start);
	if (opt->assume)
		put(&l, "--assume", opt->assume);
	if (opt->force)
		put(&l, "--force", NULL);
	put_size(&l, "--device", opt->device);
	put_size(&l, "--rank", opt->rank);
	if (opt->treat_segments)
		put(&l, "--treat-segments-as-requests", NULL);
	if (*how) /* words of ours, none of which needs quotes */
		snprintf(l.at + l.used, l.n - l.used, " %s", how);
	return buf;
}
