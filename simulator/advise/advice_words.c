/* SPDX-License-Identifier: Apache-2.0 */
/* advice_words.c - see advice_words.h */
#include "simulator/advise/advice_words.h"

#include <stdarg.h>

#include "simulator/session/again.h"

enum { LONGEST = 2400 };

static void line(struct vc_words *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void line(struct vc_words *w, const char *fmt, ...)
{
	char text[LONGEST];
	char **more = realloc(w->line, (w->n + 1) * sizeof(*more));
	va_list ap;

	if (!more) {
		w->failed = true;
		return;
	}
	w->line = more;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	w->line[w->n] = strdup(text);
	w->failed |= !w->line[w->n];
	w->n += w->line[w->n] != NULL;
}

static void advice(struct vc_words *w, const struct vc_plan *p, const struct vc_asked *q,
		   const struct vc_advice *a, size_t number, bool grows)
{
	char text[VC_SAY], again[2048];

	vc_tried_text(&(struct vc_tried){ a->text, a->verdict, a->has_interval, a->estimate,
		      a->peak_reserved, a->low, a->high, grows, a->times }, number,
		      VC_TERMINAL, text, sizeof(text));
	line(w, "  %s", text);
	if (a->paste[0])
		line(w, "       %s", a->paste);
	if (a->how[0])
		line(w, "       %s",
		     vc_again(q->opt, q->traces, q->trace, p, a->how, again, sizeof(again)));
}

static char *copy(struct vc_words *w, const char *text)
{
	char *at = strdup(text);

	w->failed |= !at;
	return at;
}

/* The runs go over to the result. */
static void keep_tries(struct vc_result *r, const struct vc_plan *p, const struct vc_asked *q,
		       const struct vc_advice *a, size_t n)
{
	struct vc_try *at = n ? calloc(n, sizeof(*at)) : NULL;
	char again[2048];

	r->tries = (struct vc_tries){ at, at ? n : 0 };
	r->words.failed |= n && !at;
	for (size_t i = 0; i < r->tries.n; i++) {
		vc_again(q->opt, q->traces, q->trace, p, a[i].how, again, sizeof(again));
		at[i] = (struct vc_try){ copy(&r->words, a[i].text), copy(&r->words, a[i].paste),
					 copy(&r->words, again), a[i].estimate, a[i].times,
					 a[i].run };
		if (a[i].run)
			a[i].run->leak = r->leak; /* no change of these ends it */
	}
}

int vc_advice_words(const struct vc_plan *p, const struct vc_asked *q, const struct vc_advice *a,
		    size_t n, struct vc_result *r, struct vc_error *err)
{
	struct vc_words *w = &r->words;
	char text[VC_SAY];

	vc_grows_text(r, VC_TERMINAL, text, sizeof(text));
	if (*text)
		line(w, "leak: %s", text);
	if (n && (!strcmp(a->kind, "room") || !strcmp(a->kind, "risk"))) {
		line(w, "%s", a->text);
	} else if (n) {
		line(w, "What would %s, cheapest first (each of them simulated):",
		     vc_result_verdict(r) == VC_UNDECIDED ? "make it certain" : "have helped");
		for (size_t i = 0; i < n; i++)
			advice(w, p, q, &a[i], i + 1, r->leak.steps > 0);
		if (a->run)
			keep_tries(r, p, q, a, n);
	}
	return w->failed ? vc_nomem(err, "the advice") : VC_OK;
}
