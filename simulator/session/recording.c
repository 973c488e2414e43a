/* SPDX-License-Identifier: Apache-2.0 */
/* recording.c - see recording.h */
#include "simulator/session/recording.h"

#include "common/vec.h"
#include "simulator/replay/infer.h"
#include "simulator/replay/ranges.h"
#include "simulator/replay/memo.h"
#include "simulator/replay/model.h"
#include "simulator/replay/transform.h"
#include "simulator/session/changed.h"
#include "simulator/session/settings.h"

/* Of a long file it is not known how long: so many are kept at first, and the file is read again
 * where all of them turn out to be few enough. Else a recording that is streamed would have taken
 * the memory of one that is kept. */
enum { FIRST_LOOK = 1 << 19 };

/* Keeps the events while there are at most `most` of them; *n: how many there are. */
static int read_events(struct vc_recording *rec, struct vc_source *src, uint64_t most, bool count,
		       uint64_t *n, struct vc_error *err)
{
	struct vc_event ev[512];
	bool keep = true;
	long got;

	*n = 0;
	VC_TRY(vc_trace_expect(&rec->trace, src, err));
	while ((got = src->type->next(src, ev, 512, err)) > 0) {
		if (count)
			VC_TRY(vc_census_add(&rec->census, ev, (size_t)got, err));
		*n += (uint64_t)got;
		if (!rec->streamed && *n > most) {
			rec->streamed = true;
			keep = src->type->whole;
		}
		if (!keep) {
			free(rec->trace.ev);
			rec->trace = (struct vc_trace){ 0 };
		}
		if (keep && vc_trace_append(&rec->trace, ev, (size_t)got, err) < 0)
			return VC_ENOMEM;
	}
	return got < 0 ? (int)got : VC_OK;
}

static int read_all(struct vc_recording *rec, struct vc_source **src,
		    const struct vc_recording_ask *ask, struct vc_error *err)
{
	bool always = ask->flags & VC_SESSION_IN_MEMORY || vc_input_is_stream(rec->path);
	uint64_t most = always ? UINT64_MAX : ask->keep ? ask->keep : VC_KEEP_EVENTS, n;
	bool looks = !always && !(*src)->type->whole && most > FIRST_LOOK;

	VC_TRY(read_events(rec, *src, looks ? FIRST_LOOK : most, true, &n, err));
	if (!looks || !rec->streamed || n > most)
		return VC_OK;
	vc_source_free(*src);
	rec->streamed = false;
	*src = vc_source_open(rec->path, err);
	return *src ? read_events(rec, *src, most, false, &n, err) :
		      err->status ? (int)err->status : VC_EIO;
}

static int read_trace(struct vc_recording *rec, const struct vc_recording_ask *ask,
		      struct vc_error *err)
{
	struct vc_source *src = vc_source_open(rec->path, err);
	int r;

	if (!src)
		return err->status ? (int)err->status : VC_EIO;
	r = read_all(rec, &src, ask, err);
	if (!src)
		return r;
	rec->source = src->type->name;
	rec->meta = src->meta;
	rec->trace.meta = src->meta;
	rec->trace.reads = src->reads;
	src->meta = NULL;
	vc_source_free(src);
	if (r == VC_OK && !rec->streamed)
		r = vc_infer(&rec->trace, err);
	if (r == VC_OK && !rec->streamed)
		r = vc_infer_ranges(&rec->trace, err);
	return r == VC_OK && !rec->streamed ? vc_trace_keep(&rec->trace, err) : r;
}

static int choose_device(struct vc_recording *rec, const struct vc_recording_ask *ask,
			 struct vc_error *err)
{
	const struct vc_census *c = &rec->census;
	uint64_t want = ask->device != VC_NOT_GIVEN ? ask->device : ask->rank;

	if (want == VC_NOT_GIVEN)
		rec->device = vc_census_deciding(c);
	else if (want <= UINT16_MAX)
		rec->device = vc_census_of(c, (uint16_t)want);
	if (!rec->device && want != VC_NOT_GIVEN && c->devices)
		return vc_fail(err, VC_EUSAGE,
			       "%s: no events of device %" PRIu64 " (the trace has device %u%s)",
			       rec->path, want, c->device[0].device,
			       c->devices > 1 ? " and others" : "");
	if (!rec->device)
		return vc_fail(err, VC_EFORMAT, "%s: there are no events in it%s", rec->path,
			       rec->meta->complete ?
				       "" :
				       " that can be read: the file is cut off or damaged");
	return VC_OK;
}

static int need_requests(const struct vc_recording *rec, struct vc_error *err)
{
	const struct vc_device_census *d = rec->device;

	if (d->allocs + d->frees + d->preexisting + d->ooms)
		return VC_OK;
	if (d->segment_allocs || d->start_segments || d->has_final)
		return vc_fail(err, VC_EFORMAT, "%s: has segments only, no allocation requests "
			       "to replay (recorded without memory history; see 'vramcast info')",
			       rec->path);
	return vc_fail(err, VC_EFORMAT, "%s: has no allocation requests to replay", rec->path);
}

/* A recording of a PyTorch that came after this program: the newest rules known, until the
 * verification says otherwise. */
static bool is_later(const char *version, const char *known)
{
	char *v = NULL, *k = NULL;
	unsigned long a = strtoul(version, &v, 10), b = strtoul(known, &k, 10);

	if (a != b || *v != '.' || *k != '.')
		return a > b && *v == '.';
	return strtoul(v + 1, NULL, 10) > strtoul(k + 1, NULL, 10);
}

const char *vc_recording_version(const struct vc_recording *rec)
{
	const struct vc_model_type *m = vc_model_by_name("torch");
	const char *newest = "", *own = rec->meta->torch;

	for (size_t i = 0; m && m->versions && m->versions[i]; i++)
		newest = m->versions[i];
	return own && !is_later(own, newest) ? own : newest;
}

static void choose_version(struct vc_recording *rec, const struct vc_recording_ask *ask)
{
	const char *given = ask->torch, *version = given ? given : vc_recording_version(rec);
	bool says = rec->meta->torch && !rec->meta->torch_guessed;

	snprintf(rec->torch, sizeof(rec->torch), "%s", version);
	snprintf(rec->made_by, sizeof(rec->made_by), "%s",
		 !says && ask->claimed ? ask->claimed :
		 rec->meta->torch      ? vc_recording_version(rec) : "");
	rec->torch_from = given                        ? "given" :
			  version != rec->meta->torch  ? "newest" :
			  rec->meta->torch_guessed     ? "guessed" : "recorded";
}

struct vc_recording vc_recording_as(const struct vc_recording *rec,
				    const struct vc_recording_ask *ask)
{
	struct vc_recording other = *rec;

	other.fidelity = (struct vc_fidelity){ 0 };
	other.seen = (struct vc_seen){ 0 };
	other.heap_order = VC_HEAP_UPWARDS;
	other.total = 0;
	choose_version(&other, ask);
	return other;
}

int vc_recording_open(struct vc_recording *rec, const char *path,
		      const struct vc_recording_ask *ask, struct vc_error *err)
{
	int r;

	*rec = (struct vc_recording){ .path = path };
	r = read_trace(rec, ask, err);
	if (r == VC_OK)
		r = choose_device(rec, ask, err);
	if (r == VC_OK && !(ask->flags & VC_SESSION_NO_REQUESTS_OK))
		r = need_requests(rec, err);
	if (r == VC_OK) {
		choose_version(rec, ask);
		vc_settings_known(rec->meta, vc_model_by_name("torch"),
				  rec->meta->torch && !rec->meta->torch_guessed ?
					  vc_recording_version(rec) : NULL);
	}
	return r;
}

bool vc_recording_is_host(const struct vc_recording *rec)
{
	const struct vc_device_info *on = vc_meta_device_known(rec->meta, rec->device->device);

	return on && on->name && !strcmp(on->name, "CPU");
}

const struct vc_model_type *vc_recording_model(const struct vc_recording *rec)
{
	return vc_model_by_name(vc_recording_is_host(rec) ? "torch_cpu" : "torch");
}

struct vc_recording vc_recording_on(const struct vc_recording *rec,
				    const struct vc_device_census *device)
{
	struct vc_recording other = *rec;

	other.device = device;
	return other;
}

int vc_recording_count(struct vc_recording *rec, uint16_t device, struct vc_error *err)
{
	vc_census_fini(&rec->census);
	VC_TRY(vc_census_add(&rec->census, rec->trace.ev, rec->trace.n, err));
	rec->device = vc_census_of(&rec->census, device);
	return rec->device ? vc_trace_keep(&rec->trace, err) :
			     vc_fail(err, VC_EINTERNAL, "the prediction lost its device");
}

void vc_recording_close(struct vc_recording *rec)
{
	VC_FREE(rec->fidelity.diverged_why, rec->seen.witness);
	vc_census_fini(&rec->census);
	vc_trace_fini(&rec->trace);
	*rec = (struct vc_recording){ 0 };
}

uint64_t vc_recorded_total(const struct vc_recording *rec)
{
	const struct vc_device_info *d = vc_meta_device_known(rec->meta, rec->device->device);

	if (rec->total)
		return rec->total;
	return d && d->total ? d->total : rec->device->total;
}

/* ---- sources ---- */

static struct vc_source *apply(struct vc_source *up, const char *text, struct vc_error *err)
{
	struct vc_transform_use u;

	return vc_transform_parse(&u, text, err) < 0 ? NULL : vc_transform_open(&u, up, err);
}

static struct vc_source *pipeline(struct vc_source *src, const struct vc_list *transforms,
				  struct vc_error *err)
{
	for (size_t i = 0; src && i < transforms->n; i++) {
		struct vc_source *next = apply(src, transforms->at[i], err);

		if (!next)
			vc_source_free(src);
		src = next;
	}
	return src;
}

bool vc_transforms_on_demand(const struct vc_list *transforms)
{
	struct vc_error ignored;
	struct vc_transform_use u;
	bool any = false;

	for (size_t i = 0; i < transforms->n; i++)
		any |= vc_transform_parse(&u, transforms->at[i], &ignored) == VC_OK &&
		       u.type->on_demand;
	return any;
}

struct vc_source *vc_recording_source(const struct vc_recording *rec,
				      const struct vc_list *transforms, struct vc_error *err)
{
	static const struct vc_list none = { NULL, 0 };
	struct vc_source *src;

	transforms = transforms ? transforms : &none;
	if (!rec->streamed && transforms->n && rec->trace.memos &&
	    !vc_transforms_on_demand(transforms) &&
	    rec->trace.n * sizeof(*rec->trace.ev) <= VC_MEMO_MOST / 16)
		return vc_changed_source(&rec->trace, rec->path, transforms, pipeline, err);
	src = rec->streamed && !rec->trace.n ? vc_source_open(rec->path, err) :
					       vc_source_memory(&rec->trace, err);
	return pipeline(src, transforms, err);
}
