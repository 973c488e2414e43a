/* SPDX-License-Identifier: Apache-2.0 */
/* ask_program.c - see ask_program.h */
#define _GNU_SOURCE /* asprintf */
#include "commands/ask_program.h"

#include <pthread.h>
#include <unistd.h>

#include "commands/kept_run.h"
#include "commands/made_changes.h"
#include "commands/own_program.h"
#include "common/json.h"
#include "simulator/session/request.h"

/* One program at a time: each takes a core and some gigabytes. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

/* ---- which program ---- */

/* Where --program is kept. */
static char *side_file(const struct vc_recording *rec)
{
	const char *at = strrchr(rec->path, '@');
	size_t n = at && strchr(at, '=') ? (size_t)(at - rec->path) : strlen(rec->path);
	char *path;

	return asprintf(&path, "%.*s.program", (int)n, rec->path) < 0 ? NULL : path;
}

/* What the user says, else what was said before, else what the recording says. *said: the user has
 * named it, now or then. NULL: nobody does. */
static int find_program(const struct vc_run_options *o, const struct vc_recording *rec,
			struct vc_program **out, struct vc_error *err)
{
	char *path = side_file(rec);
	int r = path ? VC_OK : vc_nomem(err, "a file name");

	*out = NULL;
	if (r == VC_OK && o->program) {
		r = vc_own_parse(o->program, out, err);
		if (r == VC_OK)
			r = vc_own_remember(*out, true, err);
		if (r == VC_OK)
			r = vc_own_write(*out, path, err);
	} else if (r == VC_OK && access(path, R_OK) == 0) {
		*out = vc_program_new(err);
		r = *out ? vc_program_load(*out, path, err) : VC_ENOMEM;
	} else if (r == VC_OK && rec->meta->program) {
		*out = vc_program_copy(rec->meta->program, err);
		r = *out ? VC_OK : VC_ENOMEM;
	}
	free(path);
	return r;
}

/* A line to paste. */
static void say_line(const struct vc_program *p, const char *name, char *out, size_t n)
{
	size_t at = 0;

	out[0] = '\0';
	for (size_t i = 0; p && i < p->argument.n && at < n; i++)
		at += (size_t)snprintf(out + at, n - at, "%s%s", i ? " " : "",
				       p->argument.at[i].text);
	if (!p)
		snprintf(out, n, "python train.py --%s {%s}", name, name);
}

/* What a value was in the recorded command line, where one option has its name; or NAN. */
static double recorded_value(const struct vc_recording *of, const char *name)
{
	struct vc_error ignored = { 0 };
	struct vc_program *p = of->meta->program ? vc_program_copy(of->meta->program, &ignored) :
						   NULL;
	double value = p ? vc_own_mark(p, name, NAN) : NAN;

	vc_program_free(p);
	return value;
}

/* Each value that is asked for stands somewhere, and the recorded one is known. */
static bool find_places(struct vc_program *p, const struct vc_run_wish *w, const char **missing,
			bool *unsaid)
{
	const struct vc_meta *m = w->of->meta;

	for (size_t i = 0; i < w->n; i++) {
		const char *name = w->at[i].name;
		double was = NAN;

		for (size_t k = 0; k < m->params; k++)
			if (!strcmp(m->param[k].name, name))
				was = m->param[k].value;
		double found = isnan(was) && vc_program_takes(p, name) ?
				       recorded_value(w->of, name) : vc_own_mark(p, name, was);

		*missing = name;
		if (!vc_program_takes(p, name)) {
			if (isnan(was) || was != w->at[i].value)
				return false;
		} else if (isnan(was)) {
			*unsaid = isnan(found);
			if (*unsaid)
				return false;
			vc_meta_param(w->of->meta, name, found);
		}
	}
	return true;
}

static bool is_hidden(const struct vc_program *p)
{
	for (size_t i = 0; i < p->argument.n; i++)
		if (strstr(p->argument.at[i].text, "***"))
			return true;
	return false;
}

static const char *card_of(const struct vc_run_wish *w)
{
	const struct vc_device_info *on = vc_meta_device_known(w->of->meta, w->of->device->device);
	const struct vc_card *card = w->card ? w->card :
				     on && on->name ? vc_card_by_name(on->name) : NULL;

	return card ? card->name : NULL;
}

/* Why it must not be run, "" where it may. A recording decides nothing here but what ran here. */
static void judge(const struct vc_run_options *o, const struct vc_run_wish *w, struct vc_program *p,
		  char why[VC_RERUN_WHY])
{
	bool told = o->program || vc_rerun_asked(o, "rerun");
	const char *missing = w->n ? w->at[0].name : "batch", *changed;
	bool unsaid = false, placed = p && find_places(p, w, &missing, &unsaid);
	char line[220];

	why[0] = '\0';
	if (!p) {
		say_line(NULL, missing, line, sizeof(line));
		snprintf(why, VC_RERUN_WHY, "which program made the recording is not known: "
			 "--program '%s' says it", line);
	} else if (!placed && unsaid) {
		snprintf(why, VC_RERUN_WHY, "the recording does not say its %s; name it, as "
			 "FILE@%s=VALUE", missing, missing);
	} else if (!placed) {
		say_line(p, missing, line, sizeof(line));
		snprintf(why, VC_RERUN_WHY, "where {%s} stands in its command line is not known: "
			 "--program '%s' with {%s} in it says it", missing, line, missing);
	} else if (is_hidden(p)) {
		snprintf(why, VC_RERUN_WHY, "its command line has a secret, which was not written "
			 "down: --program says it anew");
	} else if (!vc_own_is_known(p, false)) {
		say_line(p, missing, line, sizeof(line));
		snprintf(why, VC_RERUN_WHY, "it was recorded elsewhere, and nothing in a file is "
			 "ever run: --program '%s' runs it here", line);
	} else if (!told && !vc_own_is_known(p, true)) {
		snprintf(why, VC_RERUN_WHY, "it ran on a card, and would write its files (logs, "
			 "checkpoints) once more: --by rerun runs it without one");
	} else if (!told && (changed = vc_own_changed(p))) {
		snprintf(why, VC_RERUN_WHY, "%.200s is not what it was when it was recorded: --by "
			 "rerun runs it all the same", changed);
	} else if (!card_of(w)) {
		snprintf(why, VC_RERUN_WHY, "the recording does not name its card, and a dry run "
			 "plays one: say which with -g");
	}
}

static int may(const struct vc_run_options *o, const struct vc_run_wish *w,
	       char why[VC_RERUN_WHY], struct vc_error *err)
{
	struct vc_program *p;
	int r = find_program(o, w->of, &p, err);

	if (r == VC_OK)
		judge(o, w, p, why);
	if (r == VC_OK && !why[0])
		vc_made_judge(w, why);
	vc_program_free(p);
	return r;
}

/* ---- the run ---- */

/* What only a card knows. A report that cannot be read says nothing. */
static void read_unknown(const char *path, char out[VC_RERUN_WHY])
{
	struct vc_error ignored = { 0 };
	char report[VC_RERUN_PATH];
	struct vc_input *in;
	struct vc_json j;
	bool here = false;
	size_t n = 0;
	int t;

	out[0] = '\0';
	vc_kept_beside(path, ".json", report);
	in = access(report, R_OK) == 0 ? vc_input_raw(report, &ignored) : NULL;
	if (in && vc_json_open(&j, in, &ignored) == VC_OK) {
		while ((t = vc_json_next(&j, &ignored)) > 0) {
			if (t == VC_J_KEY)
				here = !strcmp(j.text, "unknown");
			else if (t == VC_J_TEXT && here && n < VC_RERUN_WHY)
				n += (size_t)snprintf(out + n, VC_RERUN_WHY - n, "%s%.120s",
						      n ? ", " : "", j.text);
			else if (t == VC_J_ARRAY_END)
				here = false;
		}
		vc_json_close(&j);
	}
	vc_input_close(in);
}

/* The recorded device may have had other memory than its card. */
static const char *capacity_of(const struct vc_run_wish *w, char text[24])
{
	const struct vc_device_info *on = vc_meta_device_known(w->of->meta, w->of->device->device);
	const struct vc_card *card = on && on->name ? vc_card_by_name(on->name) : NULL;

	snprintf(text, 24, "%" PRIu64, w->capacity);
	if (w->capacity)
		return text;
	if (!on || !on->total || (w->card && w->card != card) || (card && card->total == on->total))
		return NULL;
	snprintf(text, 24, "%" PRIu64, on->total);
	return text;
}

static int run_kept(const struct vc_program *p, const struct vc_run_wish *w,
		    const struct vc_made_changes *made, struct vc_ran *out,
		    const struct vc_console *con, struct vc_error *err)
{
	char own[24], with[240] = "";
	struct vc_kept_wish wish = { .program = p, .card = card_of(w), .conf = w->conf,
				     .capacity = capacity_of(w, own), .at = w->at, .n = w->n,
				     .made = made, .with = with, .seed = w->seed,
				     .once = w->once };
	struct vc_kept kept;
	size_t n = 0;

	for (size_t i = 0; i < w->n && n < sizeof(with); i++)
		n += (size_t)snprintf(with + n, sizeof(with) - n, "%s%s=%g", i ? " " : "",
				      w->at[i].name, w->at[i].value);
	for (size_t i = 0; w->made && i < w->made->n && n < sizeof(with); i++)
		n += (size_t)snprintf(with + n, sizeof(with) - n, "%s%s", n ? " " : "",
				      w->made->at[i]);
	VC_TRY(vc_kept_run(&wish, &kept, con, err));
	snprintf(out->path, sizeof(out->path), "%s", kept.path);
	out->oom = kept.oom;
	out->flushes = kept.flushes;
	read_unknown(out->path, out->unknown);
	return VC_OK;
}

static int run(const struct vc_run_options *o, const struct vc_run_wish *w, struct vc_ran *out,
	       struct vc_error *err)
{
	struct vc_made_changes made = { 0 };
	char why[VC_RERUN_WHY];
	struct vc_program *p;
	int r;

	pthread_mutex_lock(&turn);
	r = find_program(o, w->of, &p, err);
	if (r == VC_OK)
		judge(o, w, p, why);
	if (r == VC_OK && why[0])
		r = vc_fail(err, VC_EUSAGE, "%s", why);
	if (r == VC_OK)
		r = vc_made_open(&made, w, err);
	if (r == VC_OK)
		r = run_kept(p, w, &made, out, o->console, err);
	if (r == VC_OK && !vc_own_is_known(p, true))
		r = vc_own_remember(p, true, err); /* it has run without a card, so it may again */
	vc_made_close(&made);
	vc_program_free(p);
	pthread_mutex_unlock(&turn);
	return r;
}

const struct vc_runner vc_own_runner = { may, run };

void vc_ask_program(const struct vc_option *const *tables, void *config,
		    const struct vc_console *con)
{
	for (; tables && *tables; tables++)
		if (*tables == vc_run_options) {
			((struct vc_run_options *)config)->runner = &vc_own_runner;
			((struct vc_run_options *)config)->console = con;
		}
}
