/* SPDX-License-Identifier: Apache-2.0 */
/* questions.h - the six questions that each picture answers: what stands there is what a program is
 * told (vc_result_emit_moment), and that is what the rest of the result says. */
#ifndef VC_QUESTIONS_H
#define VC_QUESTIONS_H

#include "common/emit.h"
#include "common/json.h"
#include "simulator/replay/observer.h"
#include "tests/support/drawn.h"
#include "common/format.h"
#include "visualize/ledger.h"

/* ---- the numbers ---- */

/* Who holds most, found out another way: from the lives of all blocks. */
static void the_holder_is_the_one_of_the_lives(const char *what, const struct vc_result *r)
{
	const struct vc_moment *m = &r->moment;
	struct vc_heap_map map = { .at = calloc(r->lives.n + 1, sizeof(*map.at)) };
	struct vc_holder *holder = NULL;
	struct vc_error err = { 0 };
	char text[512] = "";
	size_t n = 0;

	for (size_t i = 0; i < r->lives.n; i++) {
		const struct vc_life *l = &r->lives.at[i];

		if ((l->born <= m->event || l->at_start) && l->died > m->event)
			map.at[map.n++] = (struct vc_heap_extent){ .what = VC_X_LIVE,
				.size = l->size, .site = l->site, .label = l->label,
				.at_start = l->at_start };
	}
	assert_int_equal(vc_holders_of(&map, r->meta, &holder, &n, &err), 0);
	if (n && holder->bytes)
		vc_holder_text(r->meta, holder, text, sizeof(text));
	if ((n ? holder->bytes : 0) != m->bytes || strcmp(text, m->who ? m->who : ""))
		fail_msg("%s: \"%s\" holds most with %llu, not \"%s\" with %llu", what, text,
			 (unsigned long long)(n ? holder->bytes : 0), m->who,
			 (unsigned long long)m->bytes);
	free(map.at);
	free(holder);
}

__attribute__((unused)) static void
the_moment_is_the_reported_one(const char *what, const struct vc_result *r)
{
	const struct vc_moment *m = &r->moment;
	const struct vc_stats *t = &r->stats;
	struct vc_error err = { 0 };
	struct vc_classes c;
	struct vc_ledger l;
	char text[512];

	assert_true(m->looked);
	assert_int_equal(m->at_oom, r->oom.happened);
	assert_int_equal(vc_classes_init(&c, r, &err), 0);
	vc_ledger_make(&l, &c);
	vc_classes_fini(&c);
	if (!m->at_oom && (m->event != t->peak_event || m->reserved != t->peak_reserved ||
			   m->allocated != t->allocated_at_peak ||
			   m->cached != t->stranded_at_peak))
		fail_msg("%s: the moment is event %llu with %llu reserved, the peak %llu with %llu",
			 what, (unsigned long long)m->event, (unsigned long long)m->reserved,
			 (unsigned long long)t->peak_event, (unsigned long long)t->peak_reserved);
	if (m->at_oom && (m->event != r->oom.event || m->cached != r->oom.free_in_cache ||
			  m->request != r->oom.request || m->free != r->oom.device_free))
		fail_msg("%s: the failure is another", what);
	if (m->at_oom && r->oom.holders && r->oom.holder->bytes &&
	    (m->bytes != r->oom.holder->bytes ||
	     strcmp(m->who ? m->who : "",
		    vc_holder_text(r->meta, r->oom.holder, text, sizeof(text)))))
		fail_msg("%s: \"%s\" holds most of the failure, not \"%s\"", what, text, m->who);
	if (m->splits && l.event == m->event && l.reserved == m->reserved &&
	    l.stranded != m->stranded)
		fail_msg("%s: %llu are stranded, %llu in the heap", what,
			 (unsigned long long)m->stranded, (unsigned long long)l.stranded);
	if (!r->lives.dropped && r->lives.n)
		the_holder_is_the_one_of_the_lives(what, r);
}

/* ---- what a program is told ---- */

struct told {
	bool oom;
	double event, ns, steps, allocated, reserved, cached, stranded, most, request, free;
	char who[600];
};

static struct told told_of(const struct vc_result *r)
{
	struct vc_error err = { 0 };
	struct vc_output *out = vc_output_memory(&err);
	struct vc_emit *e = vc_emit_new(out, VC_EMIT_JSON, &err);
	struct told t = { .ns = -1, .stranded = -1 };
	const struct { const char *name; double *at; } field[] = { { "event", &t.event },
		{ "elapsed_ns", &t.ns }, { "steps", &t.steps },
		{ "allocated", &t.allocated }, { "reserved", &t.reserved },
		{ "cached", &t.cached }, { "stranded", &t.stranded }, { "held_most", &t.most },
		{ "request", &t.request }, { "device_free", &t.free } };
	struct vc_json j;
	size_t n;
	char key[40] = "";
	int k;

	vc_emit_object(e, NULL, NULL);
	vc_result_emit_moment(e, r);
	vc_emit_end(e);
	assert_int_equal(vc_emit_finish(e, &err), 0);
	char *text = vc_output_take(out, &n);
	struct vc_input *in = vc_input_memory(text, n, &err);

	assert_int_equal(vc_json_open(&j, in, &err), 0);
	while ((k = vc_json_next(&j, &err)) > 0 && k != VC_J_END) {
		if (k == VC_J_KEY)
			snprintf(key, sizeof(key), "%s", j.text);
		for (size_t i = 0; k == VC_J_NUMBER && i < sizeof(field) / sizeof(*field); i++)
			if (!strcmp(field[i].name, key))
				*field[i].at = j.real;
		if (k == VC_J_TEXT && !strcmp(key, "held_most_by"))
			snprintf(t.who, sizeof(t.who), "%s", j.text);
		t.oom |= k == VC_J_TEXT && !strcmp(key, "what") && !strcmp(j.text, "oom");
	}
	vc_json_close(&j);
	vc_input_close(in);
	vc_output_close(out);
	free(text);
	return t;
}

/* ---- what stands in the picture ---- */

/* The value behind a label from label *at on, with the lines that it goes on in; *at moves. */
static const char *value_of(const char *label, size_t *at)
{
	static const char *const labels[] = { "verdict", "fails at", "fullest at", "held most by",
		"stranded", "cached", "cause", "would help", "trust", "under" };
	static char text[600];
	size_t i = *at;

	while (i < seen.labels && strcmp(seen.label[i].text, label))
		i++;
	*text = '\0';
	if (i == seen.labels)
		return NULL;
	*at = ++i;
	for (size_t n = i; n < seen.labels && n < i + 4; n++) {
		for (size_t k = 0; k < sizeof(labels) / sizeof(*labels); k++)
			if (!strcmp(seen.label[n].text, labels[k]))
				return text;
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", *text ? " " : "",
			 seen.label[n].text);
	}
	return text;
}

/* A number as people read it, and the one that is told: to half of its last digit. */
static void is_close(const char *what, const char *text, double told)
{
	size_t whole = strspn(text, "0123456789");
	size_t decimals = text[whole] == '.' ? strspn(text + whole + 1, "0123456789") : 0;
	size_t n = whole + (decimals ? decimals + 1 : 0);
	char one[60], unit[60] = "1"; /* its own unit, not that of a number behind it */

	snprintf(one, sizeof(one), "%.*s",
		 (int)(n + 1 + strcspn(text + n + !!text[n], " ,:;")), text);
	snprintf(unit + 1, sizeof(unit) - 1, "%.40s", one + n);
	if (fabs(number(one) - told) > 0.501 * number(unit) / pow(10, (double)decimals))
		fail_msg("%s: \"%s\" is drawn, %.0f told", what, text, told);
}

/* "12.6 of 38.6 GiB": the first number takes the unit of the second where it has none. */
static void are_close(const char *what, const char *text, double a, double b)
{
	const char *of = strstr(text, " of ");
	char first[200];

	if (!of)
		fail_msg("%s: \"%s\" is not of anything", what, text);
	snprintf(first, sizeof(first), "%.*s", (int)(of - text), text);
	if (!strchr(first, 'B'))
		snprintf(first + strlen(first), sizeof(first) - strlen(first), "%s",
			 strchr(of + 4, ' '));
	is_close(what, first, a);
	is_close(what, of + 4, b);
}

static void when_is_told(const char *what, const char *text, const struct told *t)
{
	char ns[VC_FORMAT], event[VC_FORMAT + 8] = "event ";

	vc_format_count((uint64_t)t->event, event + 6);
	vc_format_ns(t->ns > 0 ? (uint64_t)t->ns : 0, ns);
	if (!strncmp(text, "the only moment", 15))
		return;
	if (strncmp(text, ns, strlen(ns)) && strncmp(text, event, strlen(event)))
		fail_msg("%s: \"%s\" is drawn, %s and %s told", what, text, ns, event);
}

static void who_is_told(const char *what, const char *text, const struct told *t)
{
	const char *comma = text;
	size_t n = 0;

	for (const char *p = text; (p = strstr(p, ", ")); p++)
		comma = p;
	for (const char *p = text; (p = strstr(p, "\xE2\x80\xA6 ")); p++)
		comma = p + 2; /* a long name is cut, and its comma with it */
	if (!*t->who) {
		assert_non_null(strstr(text, "nobody"));
		return;
	}
	while (n < 8 && t->who[n] > ' ' && (unsigned char)t->who[n] < 0x7f)
		n++;
	if (strncmp(text, t->who, n))
		fail_msg("%s: \"%s\" is drawn, \"%s\" told", what, text, t->who);
	are_close(what, comma + 2, t->most, t->allocated);
}

static void stranded_is_told(const char *what, const char *text, const struct told *t)
{
	if (!(t->cached > 0))
		assert_non_null(strstr(text, "nothing is cached"));
	else if (t->stranded < 0)
		is_close(what, text, t->cached);
	else if (!(t->stranded > 0))
		is_close(what, strstr(text, " of ") + 4, t->cached);
	else
		are_close(what, text, t->stranded, t->cached);
}

/* What is missing, found out another way than the findings: by what the whole run needs where that
 * is known, else by the most that is live at once. */
static double missing_of(const struct told *t, const struct vc_result *r, double room)
{
	double beside = (double)(r->stats.peak_used - r->stats.peak_reserved);
	double low = r->has_interval ? (double)r->trust.used_low : (double)r->need + beside;
	double high = r->has_interval ? (double)r->trust.used_high : (double)r->need + beside;
	double live = fmax((double)r->stats.lower_bound, t->allocated + t->request) + beside;

	if ((r->has_interval || r->need) && !r->trust.endless && high > room)
		return low > room ? low - room : high - room;
	return fmax(live - room, 0);
}

static void help_is_told(const char *what, const char *text, const struct told *t,
			 const struct vc_result *r)
{
	double used = (double)r->stats.peak_used, room = (double)r->info.capacity;
	bool fails = t->oom && vc_result_verdict(r) == VC_OOM;
	double missing = fails && room > 0 && !r->info.has_limit ? missing_of(t, r, room) : 0;

	assert_true(strlen(text) > 8);
	if (r->info.has_limit || (r->leak.steps && !strncmp(text, "freeing", 7)) ||
	    (r->info.others && strstr(text, "other processes")))
		return;
	if (missing > 0)
		is_close(what, text + strcspn(text, "0123456789"), missing);
	else if (fails)
		is_close(what, text + strlen("one piece of "), t->request);
	else if (vc_result_verdict(r) == VC_FITS && room > 0)
		is_close(what, text + strlen("nothing, "), room > used ? room - used : 0);
	else if (vc_result_verdict(r) == VC_FITS && !r->has_interval)
		is_close(what, text + strlen("a card with "), used);
}

/* All six of one run, from label *at on; trust where nothing above says it. */
static void questions_are_answered(const char *what, const struct vc_result *r, size_t *at)
{
	struct told t = told_of(r);
	static const char missing[] = "";
	const char *v = value_of(t.oom ? "fails at" : "fullest at", at);

	when_is_told(what, v ? v : missing, &t);
	v = value_of("held most by", at);
	who_is_told(what, v ? v : missing, &t);
	v = value_of(t.stranded < 0 ? "cached" : "stranded", at);
	stranded_is_told(what, v ? v : missing, &t);
	v = value_of("would help", at);
	help_is_told(what, v ? v : missing, &t, r);
}

/* Of a picture of one run: the verdict in the mark, the title or its own place; the trust in the
 * line that says what was simulated. */
__attribute__((unused)) static void the_picture_answers(const char *what, const struct vc_result *r)
{
	const char *word = vc_verdict_name(vc_result_verdict(r));
	char all[4000] = "", want[80];
	size_t at = 0;

	questions_are_answered(what, r, &at);
	for (size_t i = 0; i < seen.labels && strlen(all) < 3000; i++)
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s ", seen.label[i].text);
	if (r->info.capacity || r->info.has_limit || strcmp(word, "fits"))
		word = !r->stats.allocs && strcmp(word, "oom") ? "one moment, no requests" :
		       r->stats.cut_short && (!strcmp(word, "fits") || !strcmp(word, "flushes")) ?
			       "fits as far as recorded" :
		       !strcmp(word, "oom")     ? "runs out of memory" :
		       !strcmp(word, "flushes") ? "fits only by flushing the cache" : word;
	else
		word = "no card given";
	if (!r->stats.allocs && !r->stats.peak_reserved)
		return; /* nothing was asked for */
	snprintf(want, sizeof(want), "%s", word);
	if (!strstr(all, want))
		fail_msg("%s: the verdict is not said: \"%s\"", what, want);
	snprintf(want, sizeof(want), "(%s)", r->trust.level ? vc_level_name(r->trust.level) : "");
	if (r->trust.level && !strstr(all, want))
		fail_msg("%s: the trust is not said: \"%s\"", what, want);
}

#endif
