/* SPDX-License-Identifier: Apache-2.0 */
/* record_keep.c - see record_keep.h. */
#include "commands/record_keep.h"

#include "common/param.h"

#define SECOND 1000000000.0
#define LEAST (1u << 20) /* bytes of a ring: eight parts, each with the state it begins with */

/* "10m", "90s", "2h", "1.5d"; false: it is none. */
static bool parse_time(const char *text, uint64_t *ns)
{
	static const struct { char unit; double seconds; } units[] = {
		{ 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 } };
	size_t n = strlen(text);
	char number[32];
	double value;

	if (n < 2 || n >= sizeof(number))
		return false;
	snprintf(number, sizeof(number), "%.*s", (int)(n - 1), text);
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (text[n - 1] == units[i].unit && vc_parse_real(number, &value, NULL) == 0 &&
		    value > 0 && value * units[i].seconds < 1e9) {
			*ns = (uint64_t)(value * units[i].seconds * SECOND);
			return true;
		}
	return false;
}

static int parse_keep(const char *text, struct vc_flight_options *f, struct vc_error *err)
{
	const char *steps = strstr(text, "steps");
	char number[32];

	if (steps && !steps[5] && steps - text < (long)sizeof(number)) {
		snprintf(number, sizeof(number), "%.*s", (int)(steps - text), text);
		if (vc_parse_uint(number, &f->keep_steps, NULL) == 0 && f->keep_steps)
			return 0;
	} else if (parse_time(text, &f->keep_ns)) {
		return 0;
	} else if (vc_parse_size(text, &f->keep_bytes, NULL) == 0 && f->keep_bytes) {
		return f->keep_bytes >= LEAST ? 0 :
		       vc_fail(err, VC_EUSAGE, "--keep %s: a ring needs 1MiB at least", text);
	}
	return vc_fail(err, VC_EUSAGE, "--keep is a time (10m, 2h), a size (2GiB) or a number of "
		       "steps (50steps), not '%s'", text);
}

static int parse_when(const char *text, struct vc_watch *w, struct vc_error *err)
{
	static const struct { const char *name; enum vc_when when; } names[] = {
		{ "reserved", VC_WHEN_RESERVED }, { "allocated", VC_WHEN_ALLOCATED },
		{ "free", VC_WHEN_FREE } };
	size_t n = strcspn(text, "<>"), last = strlen(text) - 1;
	char value[32];
	uint64_t bytes = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (text[n] && n == strlen(names[i].name) && !strncmp(text, names[i].name, n))
			w->when = names[i].when;
	w->below = text[n] == '<';
	w->percent = text[n] && text[last] == '%';
	if (w->when && last - n < sizeof(value)) {
		snprintf(value, sizeof(value), "%.*s", (int)(last - n - w->percent),
			 text + n + 1);
		if (w->percent && vc_parse_real(value, &w->value, NULL) == 0)
			return 0;
		if (!w->percent && vc_parse_size(text + n + 1, &bytes, NULL) == 0) {
			w->value = (double)bytes;
			return 0;
		}
	}
	return vc_fail(err, VC_EUSAGE, "--when is reserved, allocated or free, then > or <, then a "
		       "size or a percentage of the card ('reserved>90%%'), not '%s'", text);
}

static int parse_steps(const char *text, struct vc_watch *w, struct vc_error *err)
{
	unsigned long long from, to;
	int end = 0;

	if (sscanf(text, "%llu..%llu%n", &from, &to, &end) == 2 && !text[end] && from &&
	    to >= from) {
		w->from = from;
		w->to = to;
		return 0;
	}
	return vc_fail(err, VC_EUSAGE, "--window is FIRST..LAST, counted from 1 (20..30), not '%s'",
		       text);
}

static int parse_oom(const char *text, struct vc_watch *w, bool ring, struct vc_error *err)
{
	if (!text)
		w->on_oom = ring ? VC_OOM_DUMP : VC_OOM_CONTINUE;
	else if (!strcmp(text, "dump"))
		w->on_oom = VC_OOM_DUMP;
	else if (!strcmp(text, "stop"))
		w->on_oom = VC_OOM_STOP;
	else
		w->on_oom = VC_OOM_CONTINUE;
	if (text && w->on_oom == VC_OOM_DUMP && !ring)
		return vc_fail(err, VC_EUSAGE, "--on-oom dump needs --keep: without it the "
			       "recording holds everything anyway");
	return 0;
}

int vc_record_keep(const struct vc_record_keep *k, struct vc_drain_options *o,
		   struct vc_watch *w, struct vc_error *err)
{
	*w = (struct vc_watch){ .paused = k->paused };
	o->watch = w;
	if (k->steps)
		VC_TRY(parse_steps(k->steps, w, err));
	if (k->after && !parse_time(k->after, &w->after_ns))
		return vc_fail(err, VC_EUSAGE, "--after is a time (90s, 5m, 2h), not '%s'",
			       k->after);
	if (k->duration && !parse_time(k->duration, &w->duration_ns))
		return vc_fail(err, VC_EUSAGE, "--duration is a time (60s, 5m), not '%s'",
			       k->duration);
	o->flight.nothing = vc_watch_windows(w);
	if (k->keep && o->flight.nothing)
		return vc_fail(err, VC_EUSAGE, "--keep records the end, and --window, --after, "
			       "--duration and --paused a window: give one of them");
	if (k->keep)
		VC_TRY(parse_keep(k->keep, &o->flight, err));
	o->ring = k->keep || o->flight.nothing;
	if (k->when) {
		VC_TRY(parse_when(k->when, w, err));
		if (!k->keep)
			return vc_fail(err, VC_EUSAGE,
				       "--when needs --keep: it seals what is kept");
	}
	return parse_oom(k->on_oom, w, k->keep != NULL, err);
}

static bool is_steps(const char *s)
{
	return strncmp(s, "py:", 3) == 0 && s[3] >= '1' && s[3] <= '9' && strlen(s) < 12 &&
	       s[3 + strspn(s + 3, "0123456789")] == '\0';
}

int vc_record_words(const char *stacks, const struct vc_list *params, struct vc_error *err)
{
	double value;

	if (stacks && strcmp(stacks, "off") && strcmp(stacks, "py") && strcmp(stacks, "native") &&
	    !is_steps(stacks))
		return vc_fail(err, VC_EUSAGE,
			       "--stacks is off, py, py:N (steps) or native, not '%s'", stacks);
	for (size_t i = 0; i < params->n; i++) {
		const char *eq = strchr(params->at[i], '=');

		if (!eq || eq == params->at[i])
			return vc_fail(err, VC_EUSAGE, "--param takes NAME=VALUE, not '%s'",
				       params->at[i]);
		if (vc_parse_real(eq + 1, &value, err) < 0)
			return vc_wrap(err, "--param %s", params->at[i]);
		if (fabs(value) > (double)VC_AMOUNT_MOST)
			return vc_fail(err, VC_EUSAGE, "--param %s: the largest value is %.0e",
				       params->at[i], (double)VC_AMOUNT_MOST);
	}
	return VC_OK;
}
