/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_info.c - vramcast info: what is in a trace, who made it, and how far it can be trusted. */

#include "common/program.h"
#include "common/site.h"
#include "simulator/anatomy/layer_memory.h"
#include "simulator/findings/findings.h"
#include "simulator/findings/leaks.h"
#include "simulator/advise/report.h"
#include "simulator/time/time.h"
#include "simulator/anatomy/anatomy.h"

struct config { bool json, verify; uint64_t device; };

#define AT(f) offsetof(struct config, f)
static const struct vc_option info_options[] = {
	{ 0, "json", VC_O_FLAG, AT(json), NULL, "one JSON document (vramcast.info/1)", NULL },
	{ 0, "device", VC_O_UINT, AT(device), "N",
	  "which device to replay (default: the one that ran out, or the fullest)", NULL },
	{ 0, "no-verify", VC_O_NOT, AT(verify), NULL,
	  "do not replay the recording to see whether the model reproduces it", NULL },
	VC_OPTION_END
};

static bool has(const struct vc_session *s, enum vc_capability c)
{
	return s->rec->meta->how[c] != VC_HOW_ABSENT && s->rec->meta->how[c] != VC_HOW_FAILED;
}

static void emit_devices(struct vc_emit *e, const struct vc_session *s, const uint64_t *allocated)
{
	vc_emit_array(e, "devices", s->rec->census.devices ? "Devices" : NULL);
	for (size_t i = 0; i < s->rec->census.devices; i++) {
		const struct vc_device_census *d = &s->rec->census.device[i];

		vc_emit_object(e, NULL, NULL);
		vc_emit_uint(e, "device", "device", d->device);
		vc_emit_uint(e, "events", "events", d->events);
		vc_emit_uint(e, "allocs", "allocs", d->allocs);
		vc_emit_uint(e, "frees", "frees", d->frees);
		vc_emit_uint(e, "preexisting", "blocks before", d->preexisting);
		vc_emit_uint(e, "unmatched_frees", d->unmatched_frees ? "unmatched frees" : NULL,
			     d->unmatched_frees);
		vc_emit_bytes(e, "peak_requested", "peak requested", d->peak_requested);
		vc_emit_bytes(vc_emit_known(e, allocated[i]), "peak_allocated",
			      allocated[i] ? "peak allocated" : NULL, allocated[i]);
		vc_emit_bytes(e, "peak_reserved", "peak reserved", d->peak_reserved);
		vc_emit_bytes(e, "start_reserved", NULL, d->start_reserved);
		vc_emit_uint(e, "streams", "streams", d->streams);
		vc_emit_uint(e, "segments", "segments", d->start_segments + d->segment_allocs);
		vc_emit_uint(e, "driver_pools", d->driver_pools ? "driver pools" : NULL,
			     d->driver_pools);
		vc_emit_bytes(e, "driver_pool_reserved",
			      d->driver_pools ? "driver pools reserve" : NULL, d->pool_reserved);
		vc_emit_bytes(e, "driver_pool_used", d->driver_pools ? "driver pools use" : NULL,
			      d->pool_used);
		vc_emit_uint(e, "ooms", d->ooms ? "ooms" : NULL, d->ooms);
		vc_emit_end(e);
	}
	vc_emit_end(e);
}

/* CUPTI tells what it takes itself, and what the driver takes: to compile and load code, and to
 * wait where the queue of the GPU is full. Only the first is ours. */
static void emit_overhead(struct vc_emit *e, const struct vc_session *s)
{
	const struct vc_census *c = &s->rec->census;
	uint64_t tracing = 0, all = 0;

	for (size_t i = 0; i < c->overheads; i++) {
		const char *label = vc_label_text(s->rec->meta, c->overhead[i].label);

		all += c->overhead[i].ns;
		if (strncmp(label, "driver: ", 8) != 0)
			tracing += c->overhead[i].ns;
	}
	vc_emit_ns(e, "overhead_ns", NULL, all);
	vc_emit_ns(e, "tracing_ns", tracing ? "of which tracing" : NULL, tracing);
	vc_emit_ns(e, "driver_ns", all > tracing ? "of which driver" : NULL, all - tracing);
}

static void emit_planes(struct vc_emit *e, const struct vc_session *s)
{
	bool requests = s->rec->census.allocs + s->rec->census.frees > 0, segments = false,
	     kernels = false;

	for (size_t i = 0; i < s->rec->census.devices; i++) {
		const struct vc_device_census *d = &s->rec->census.device[i];

		segments |= d->segment_allocs + d->start_segments + d->final_segments > 0;
		kernels |= d->kernels > 0;
		requests |= d->preexisting > 0;
	}
	vc_emit_array(e, "planes", "planes");
	if (requests)
		vc_emit_text(e, NULL, NULL, "requests");
	if (segments)
		vc_emit_text(e, NULL, NULL, "segments");
	if (kernels)
		vc_emit_text(e, NULL, NULL, "kernels");
	if (s->rec->census.marks)
		vc_emit_text(e, NULL, NULL, "marks");
	vc_emit_end(e);
}

static void emit_capabilities(struct vc_emit *e, const struct vc_session *s)
{
	vc_emit_object(e, "capabilities", "How each part was obtained");
	for (int c = 0; c < VC_CAPS; c++)
		vc_emit_text(e, vc_capability_name(c), has(s, c) ? vc_capability_name(c) : NULL,
			     vc_how_name(s->rec->meta->how[c]));
	vc_emit_end(e);
}

static void emit_program(struct vc_emit *e, const struct vc_program *p)
{
	const struct { const char *key; const struct vc_texts *t; } named[] = {
		{ "files", &p->file }, { "packages", &p->package },
		{ "environment", &p->environment } };
	char line[1024] = "";
	size_t n = 0;

	vc_emit_object(e, "program", "The program");
	for (size_t i = 0; i < p->argument.n && n < sizeof(line); i++)
		n += (size_t)snprintf(line + n, sizeof(line) - n, "%s%s", i ? " " : "",
				      p->argument.at[i].text);
	vc_emit_text(e, NULL, "command", line);
	vc_emit_array(e, "arguments", NULL);
	for (size_t i = 0; i < p->argument.n; i++)
		vc_emit_text(e, NULL, NULL, p->argument.at[i].text);
	vc_emit_end(e);
	vc_emit_array(e, "options", NULL);
	for (size_t i = 0; i < p->option.n; i++)
		vc_emit_text(e, NULL, NULL, p->option.at[i].text);
	vc_emit_end(e);
	vc_emit_text(e, "folder", "folder", p->folder);
	vc_emit_text(e, "interpreter", "run by", p->interpreter);
	vc_emit_text(e, "revision", p->revision ? "revision" : NULL, p->revision);
	for (size_t i = 0; i < sizeof(named) / sizeof(*named); i++) {
		const struct vc_texts *t = named[i].t;

		vc_emit_object(e, named[i].key, NULL);
		for (size_t k = 0; k < t->n; k++)
			vc_emit_text(e, t->at[k].name, NULL, t->at[k].text);
		vc_emit_end(e);
		snprintf(line, sizeof(line), "%zu (--json names them)", t->n);
		vc_emit_text(e, NULL, t->n ? named[i].key : NULL, line);
	}
	vc_emit_end(e);
}

static void emit_origin(struct vc_emit *e, const struct vc_session *s)
{
	const struct vc_meta *m = s->rec->meta;
	const char *gpu = m->devices ? m->device[0].name : NULL;
	char torch[64];

	vc_emit_text(e, "torch", NULL, s->rec->torch[0] ? s->rec->torch : NULL);
	snprintf(torch, sizeof(torch), "%s (%s)", s->rec->torch[0] ? s->rec->torch : "unknown",
		 s->rec->torch_from);
	vc_emit_text(e, NULL, "torch", torch);
	vc_emit_text(e, "torch_from", NULL, s->rec->torch_from);
	vc_emit_text(e, "conf", m->conf && *m->conf ? "settings" : NULL, m->conf);
	vc_emit_text(e, "gpu", gpu ? "gpu" : NULL, gpu);
	vc_emit_text(e, "producer", m->producer ? "made by" : NULL, m->producer);
	vc_emit_text(e, "command", m->command ? "command" : NULL, m->command);
	if (m->host)
		vc_emit_text(e, "host", "host", m->host);
	if (m->pid)
		vc_emit_int(e, "pid", "process", m->pid);
	if (m->start_unix_ns)
		vc_emit_uint(e, "start_unix_ns", NULL, m->start_unix_ns);
	if (m->rank >= 0 && (m->host || m->pid))
		vc_emit_int(e, "rank", "rank", m->rank);
	vc_emit_object(e, "params", m->params ? "Recorded with" : NULL);
	for (size_t i = 0; i < m->params; i++)
		vc_emit_real(e, m->param[i].name, m->param[i].name, m->param[i].value);
	vc_emit_end(e);
}

static void least_and_most(const struct vc_layering *l, size_t at, uint64_t *least, uint64_t *most)
{
	*least = UINT64_MAX;
	*most = 0;
	for (size_t k = 0; k < l->n; k++) {
		uint64_t n;

		memcpy(&n, (const char *)&l->at[k] + at, sizeof(n));
		*least = n < *least ? n : *least;
		*most = n > *most ? n : *most;
	}
}

static void say_bytes(char *to, size_t n, const struct vc_layering *l, size_t at, const char *what)
{
	char a[32], b[32];
	uint64_t least, most;

	least_and_most(l, at, &least, &most);
	if (least == most)
		snprintf(to, n, "%s of %s", vc_bytes_text(most, a), what);
	else
		snprintf(to, n, "%s .. %s of %s", vc_bytes_text(least, a), vc_bytes_text(most, b),
			 what);
}

static void emit_layer_bytes(struct vc_emit *e, const char *key, const struct vc_layering *l,
			     size_t at)
{
	vc_emit_array(e, key, NULL);
	for (size_t k = 0; k < l->n; k++) {
		uint64_t n;

		memcpy(&n, (const char *)&l->at[k] + at, sizeof(n));
		vc_emit_uint(e, NULL, NULL, n);
	}
	vc_emit_end(e);
}

/* FILE:LINE of a layer, as `checkpoint:module=` takes it; "" without call sites. */
static const char *place(const struct vc_session *s, const struct vc_layering *l, size_t k,
			 char *to, size_t n)
{
	const struct vc_meta *m = s->rec->meta;
	const struct vc_frame *f =
		l->at[k].frame && l->at[k].frame < m->frames ? &m->frame[l->at[k].frame] : NULL;
	const char *file = f && f->file < m->strings ? m->string[f->file] : NULL;

	*to = '\0';
	if (file)
		snprintf(to, n, "%s:%u", strrchr(file, '/') ? strrchr(file, '/') + 1 : file,
			 (unsigned)f->line);
	return to;
}

/* Where layers stand in the program: so many of them at each place. */
static void say_places(struct vc_emit *e, const struct vc_session *s, const struct vc_layering *l)
{
	char at[160], other[160], line[200];

	for (size_t k = 0, i; k < l->n && *place(s, l, k, at, sizeof(at)); k++) {
		size_t same = 0;

		for (i = 0; i < l->n; i++) {
			bool is = !strcmp(at, place(s, l, i, other, sizeof(other)));
			if (is && i < k)
				break;
			same += is;
		}
		if (i < l->n)
			continue;
		snprintf(line, sizeof(line), "%zu at %s", same, at);
		vc_emit_text(e, NULL, "", line);
	}
}

/* The layers of the model, by call sites or because they repeat within the forward pass. */
static void emit_layers(struct vc_emit *e, const struct vc_session *s, const struct vc_anatomy *a)
{
	const size_t activations = offsetof(struct vc_layering_at, activations);
	const size_t parameters = offsetof(struct vc_layering_at, parameters);
	struct vc_layering l = { 0 };
	char line[256], act[96], par[96] = "";
	uint64_t sum = 0;

	if (!a->iterations || vc_layering_read(&l, a, &s->rec->trace, NULL) < 0)
		l = (struct vc_layering){ 0 };
	vc_emit_object(e, "layers", NULL);
	vc_emit_uint(e, "count", NULL, l.n);
	vc_emit_text(e, "source", NULL, l.from);
	vc_emit_real(e, "confidence", NULL, l.confidence);
	emit_layer_bytes(e, "activations", &l, activations);
	emit_layer_bytes(e, "parameters", &l, parameters);
	for (size_t k = 0; k < l.n; k++)
		sum += l.at[k].parameters;
	vc_emit_text(e, "parameters_are", NULL,
		     !sum             ? NULL :
		     l.all_parameters ? "all" :
					"with gradients");
	vc_emit_array(e, "places", NULL);
	for (size_t k = 0; k < l.n; k++)
		vc_emit_text(e, NULL, NULL, place(s, &l, k, act, sizeof(act)));
	vc_emit_end(e);
	vc_emit_end(e);
	if (!l.n)
		return;
	say_bytes(act, sizeof(act), &l, activations, "activations");
	if (sum)
		say_bytes(par, sizeof(par), &l, parameters,
			  l.all_parameters ? "parameters" : "parameters with gradients");
	snprintf(line, sizeof(line), "%zu, from %s (confidence %.2f); %s%s%s each", l.n,
		 *l.from == 'p' ? "the pattern" : l.from, l.confidence, par, sum ? " and " : "",
		 act);
	vc_emit_text(e, NULL, "layers", line);
	say_places(e, s, &l);
	vc_layering_fini(&l);
}

struct steps { uint64_t n; uint32_t micro; const char *from; double confidence; uint64_t layers; };

/* From marks or names; else the order of allocations and frees, whatever their sizes, says more
 * than the sizes do. */
static struct steps count_steps(const struct vc_session *s, const struct vc_anatomy *a)
{
	struct steps known = { a->iterations, a->micro, a->from, a->confidence, 0 };
	struct vc_pattern_steps found = { 0 };
	struct vc_pattern *p = NULL;

	if (!known.n && s->rec->census.steps)
		known = (struct steps){ s->rec->census.steps, 0, "marks", 1, 0 };
	if (!s->rec->streamed && (!known.n || !strcmp(known.from, "pattern")))
		p = vc_pattern_new(s->rec->device->device, NULL);
	if (p && vc_pattern_add(p, s->rec->trace.ev, s->rec->trace.n, NULL) == VC_OK)
		vc_pattern_find(p, &found, NULL);
	vc_pattern_free(p);
	if (!found.steps || (known.n && found.confidence < 0.6))
		return known;
	if (vc_is_one_pass(&s->rec->trace, s->rec->device->device, &found)) {
		known.layers = found.steps;
		return known;
	}
	return (struct steps){ found.steps, known.n == found.steps ? known.micro : 0, "pattern",
			       found.confidence, 0 };
}

static void emit_leak(struct vc_emit *e, const struct vc_session *s)
{
	const struct vc_result r = { .meta = s->rec->meta, .leak = vc_leak_find(s) };
	char line[VC_SAY];

	vc_grows_text(&r, VC_TERMINAL, line, sizeof(line));
	vc_emit_text(e, NULL, *line ? "leak" : NULL, line);
	vc_leak_report(e, r.meta, &r.leak);
}

static void emit_categories(struct vc_emit *e, const struct vc_session *s,
			    const struct vc_anatomy *a)
{
	uint64_t bytes[VC_CATS + 1] = { 0 };
	bool known = a->iterations && vc_anatomy_live(a, &s->rec->trace, s->rec->device->device,
						      bytes, NULL) == VC_OK;

	vc_emit_object(e, "categories", known ? "Live at the peak" : NULL);
	for (int c = 0; c < VC_CATS; c++)
		if (bytes[c])
			vc_emit_bytes(e, vc_category_name((enum vc_category)c),
				      vc_category_name((enum vc_category)c), bytes[c]);
	if (bytes[VC_CATS])
		vc_emit_bytes(e, "there at the start", "there at the start", bytes[VC_CATS]);
	vc_emit_end(e);
}

/* Iterations, and what the memory is for at its peak: from marks, names or the pattern. */
static void emit_steps(struct vc_emit *e, const struct vc_session *s)
{
	struct vc_anatomy a = { 0 };
	struct steps n;
	char line[160];

	if (s->rec->streamed || !s->rec->trace.n ||
	    vc_anatomy_of(&a, &s->rec->trace, s->rec->device->device, NULL) < 0)
		a = (struct vc_anatomy){ 0 };
	n = count_steps(s, &a);
	vc_emit_object(e, "steps", NULL);
	vc_emit_uint(e, "count", NULL, n.n);
	vc_emit_text(e, "source", NULL, n.from);
	vc_emit_real(e, "confidence", NULL, n.confidence);
	vc_emit_uint(e, "micro_batches", NULL, n.micro);
	vc_emit_end(e);
	snprintf(line, sizeof(line), "%" PRIu64 ", from %s (confidence %.2f)%s", n.n,
		 n.from ? n.from : "", n.confidence,
		 n.micro > 1 ? ", several micro-batches each" : "");
	if (s->rec->streamed)
		snprintf(line, sizeof(line), "%sneither they nor layers are looked for in more "
			 "than %" PRIu64 " events", n.from ? "from marks; " : "", VC_KEEP_EVENTS);
	if ((n.from && (a.iterations || !strcmp(n.from, "pattern"))) || s->rec->streamed)
		vc_emit_text(e, NULL, "iterations", line);
	if (n.layers) {
		snprintf(line, sizeof(line), "none told; %" PRIu64 " times the same within one "
			 "pass: layers, it seems",
			 n.layers);
		vc_emit_text(e, NULL, "iterations", line);
	}
	emit_layers(e, s, &a);
	emit_leak(e, s);
	emit_categories(e, s, &a);
	vc_anatomy_fini(&a);
}

static void emit_fidelity_words(struct vc_emit *e, const struct vc_session *s)
{
	const struct vc_fidelity *f = &s->rec->fidelity;

	if (!s->rec->device->allocs && !s->rec->device->frees)
		vc_emit_line(e, "\nThere is nothing to replay: it holds the heap at one moment, "
			     "and no events.");
	else if (!f->checked)
		vc_emit_line(e, "\nThe recording cannot be checked against the model: it has no "
			     "addresses to compare.");
	else if (f->exact && vc_recording_is_host(s->rec))
		vc_emit_line(e, "\nThis is a recording of host memory: PyTorch's CPU allocator, "
			     "which asks the C library for every tensor. Reproduced exactly: %"
			     PRIu64 " events, each block where no other was.", f->events_compared);
	else if (f->exact)
		vc_emit_line(e, "\nThe model reproduces this recording exactly: %" PRIu64
			     " events, every address, %" PRIu64 " segments.",
			     f->events_compared, f->segments_recorded);
	else
		vc_emit_line(e, "\nThe model does not reproduce this recording: %s (%" PRIu64
			     " of %" PRIu64 " addresses differ).",
			     f->diverged_why ? f->diverged_why : "it differs",
			     f->address_mismatches, f->events_compared);
}

static void emit_info(struct vc_emit *e, const struct vc_session *s, const uint64_t *allocated)
{
	const struct vc_meta *m = s->rec->meta;

	vc_emit_object(e, NULL, "");
	vc_emit_text(e, "schema", NULL, "vramcast.info/1");
	vc_emit_text(e, "file", "file", s->rec->path);
	vc_emit_text(e, "source", "format", s->rec->source);
	if (m->source && strcmp(m->source, s->rec->source))
		vc_emit_text(e, "origin", "converted from", m->source);
	emit_origin(e, s);
	if (m->program)
		emit_program(e, m->program);
	vc_emit_uint(e, "events", "events", s->rec->census.events);
	vc_emit_uint(e, "allocs", NULL, s->rec->census.allocs);
	vc_emit_uint(e, "frees", NULL, s->rec->census.frees);
	vc_emit_uint(e, "dropped", m->dropped ? "events lost" : NULL, m->dropped);
	vc_emit_uint(e, "gaps", m->gaps ? "holes" : NULL, m->gaps);
	vc_emit_uint(e, "damaged_blocks", m->damaged_blocks ? "damaged blocks" : NULL,
		     m->damaged_blocks);
	vc_emit_uint(e, "double_allocs", m->double_allocs ? "double allocations" : NULL,
		     m->double_allocs);
	vc_emit_ns(e, "time_ns", s->rec->census.last_ns ? "time span" : NULL,
		   s->rec->census.last_ns);
	vc_emit_uint(e, "launches", s->rec->census.launches ? "launches" : NULL,
		     s->rec->census.launches);
	emit_overhead(e, s);
	emit_planes(e, s);
	vc_time_report_profile(e, s);
	vc_emit_bool(e, "complete", "complete", m->complete);
	emit_steps(e, s);
	emit_devices(e, s, allocated);
	emit_capabilities(e, s);
	vc_report_fidelity(e, s);
	if (s->opt->verify)
		emit_fidelity_words(e, s);
	vc_emit_array(e, "notes", NULL);
	for (size_t i = 0; i < m->notes; i++)
		vc_emit_text(e, NULL, NULL, m->note[i]);
	vc_emit_end(e);
	for (size_t i = 0; i < m->notes; i++)
		vc_emit_line(e, "note: %s", m->note[i]);
	vc_emit_end(e);
}

static int say(const struct vc_session *s, bool json, const uint64_t *allocated,
	       struct vc_error *err)
{
	struct vc_emit *e = vc_emit_stdout(json, err);

	if (!e)
		return err->status;
	emit_info(e, s, allocated);
	return vc_emit_done(e, err);
}

/* Rounded sizes are the model's knowledge: replay as recorded, or as asked for where nothing says
 * what the recorded device answered. 0: it could not be replayed. */
static uint64_t peak_allocated(const struct vc_recording *rec, const struct vc_run_options *o)
{
	struct vc_job job = { .rec = rec };
	struct vc_result out = { 0 };
	struct vc_plan *plan = NULL;
	struct vc_error err = { 0 };
	uint64_t peak = 0;
	size_t n = 0;
	int r;

	if (rec->device->segment_allocs + rec->device->start_segments) {
		r = vc_job_follow(rec, rec->torch, NULL, &out, &err);
	} else {
		r = vc_request_plans(rec, o, NULL, &plan, &n, &err);
		if (r == VC_OK)
			r = vc_job_run(&job, plan, NULL, &out, &err);
	}
	if (r == VC_OK) {
		peak = out.stats.peak_allocated;
		vc_result_fini(&out);
	}
	free(plan);
	return peak;
}

static int info_run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	const struct config *c = config;
	struct vc_run_options o = vc_run_options_none();
	uint64_t allocated[VC_CENSUS_DEVICES] = { 0 };
	struct vc_session s;
	int r;

	o.device = c->device;
	o.verify = c->verify;
	r = vc_session_open(&s, &o, argc, argv, VC_SESSION_NO_REQUESTS_OK, &con->err);
	if (r == VC_OK)
		r = vc_time_open(&s, &con->err);
	for (size_t i = 0; r == VC_OK && i < s.rec->census.devices; i++) {
		struct vc_recording on = vc_recording_on(s.rec, &s.rec->census.device[i]);

		if (on.device->allocs && (on.device == s.rec->device || !on.streamed))
			allocated[i] = peak_allocated(&on, &o);
	}
	if (r == VC_OK)
		r = say(&s, c->json, allocated, &con->err);
	if (r == VC_OK)
		vc_next(con, "sim", argv[0], s.rec->device->allocs ? " -g all" : "");
	vc_session_close(&s);
	return r;
}

const struct vc_command vc_command_info = {
	.name = "info", .operands = "TRACE",
	.summary = "what is in a trace, and how far to trust it",
	.options = VC_OPTIONS(info_options), .config_size = sizeof(struct config), .run = info_run,
};
