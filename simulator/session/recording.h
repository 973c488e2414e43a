/* SPDX-License-Identifier: Apache-2.0 */
/* recording.h - one trace with what is found out about it once: its census, the device and the
 * version to replay, how well the model reproduces it. Nothing of it changes once it is open, so
 * any number of runs share it. A prediction from several recordings is one, too. */
#pragma once

#include "common/opt.h"
#include "simulator/replay/census.h"
#include "simulator/replay/model.h"
#include "simulator/replay/result.h"
#include "simulator/replay/source.h"

enum vc_session_flags { VC_SESSION_IN_MEMORY = 1, /* many runs will follow: keep the events */
			VC_SESSION_NO_REQUESTS_OK = 2 /* info, dump: nothing will be simulated */ };

/* Beyond so many events (400 MB) a single run streams the file: what looks at all events at once
 * (iterations, layers, what would have helped, leaks) has no answer then. */
#define VC_KEEP_EVENTS (UINT64_C(1) << 23)

/* What has a say in how a recording is read. */
struct vc_recording_ask {
	uint64_t device, rank; /* VC_NOT_GIVEN: the one that decides */
	const char *torch;     /* version to replay; NULL: the recorded one */
	const char *claimed;   /* the version that made it, where it does not say itself; or NULL */
	uint64_t total;        /* bytes of the recorded device; 0: not told */
	bool verify;
	unsigned flags;        /* enum vc_session_flags */
	unsigned without;          /* rules of predictions: see vc_family_new */
	const struct vc_asker *asker; /* see named_plans.h; NULL: nobody is asked */
	uint64_t keep;         /* instead of VC_KEEP_EVENTS; 0: that */
};

struct vc_recording {
	const char *path;        /* as given, lent */
	struct vc_trace trace;   /* events, unless streamed from the file */
	struct vc_meta *meta;    /* lent from the trace */
	const char *source;      /* the decoder that read it */
	bool streamed;           /* long: events go by once a run, from the file where the trace
				  * has none, and nobody looks at all of them */
	struct vc_census census;
	const struct vc_device_census *device;
	char torch[16];          /* version to replay, "" for models without */
	const char *torch_from;  /* "recorded", "guessed", "given", "newest" */
	char made_by[16];        /* version that made it, or that reproduces it; "": not known */
	enum vc_heap_order heap_order; /* the one that reproduces it */
	uint64_t total;          /* of the recorded device where only a replay could tell; else 0 */
	struct vc_fidelity fidelity; /* checked = false: not verified */
	struct vc_seen seen;     /* of the replay that shows it */
};

/* Read it, choose device and version. It is not verified yet (verify.h). After a failure, too,
 * vc_recording_close. */
int  vc_recording_open(struct vc_recording *rec, const char *path,
		       const struct vc_recording_ask *ask, struct vc_error *err);
void vc_recording_close(struct vc_recording *rec);

/* The same recording for another of its devices: lends everything, is never closed. */
struct vc_recording vc_recording_on(const struct vc_recording *rec,
				    const struct vc_device_census *device);

/* The same recording as it would have been opened for that version: lends everything, is not yet
 * verified, and only what verifying adds is its own. */
struct vc_recording vc_recording_as(const struct vc_recording *rec,
				    const struct vc_recording_ask *ask);

/* Count the events of rec->trace and choose that device, for traces made in memory. */
int vc_recording_count(struct vc_recording *rec, uint16_t device, struct vc_error *err);

/* A source over its events with those transforms applied in that order; the caller frees it.
 * transforms: "NAME:K=V,...", NULL for none. */
struct vc_source *vc_recording_source(const struct vc_recording *rec,
				      const struct vc_list *transforms, struct vc_error *err);

/* Does one of them make events without end? Those are never read as a whole. */
bool vc_transforms_on_demand(const struct vc_list *transforms);

/* PyTorch's CPU allocator, which asks the C library: no caching allocator is behind it. */
bool vc_recording_is_host(const struct vc_recording *rec);

/* The allocator that it was recorded from: PyTorch's for the card, or for the CPU. */
const struct vc_model_type *vc_recording_model(const struct vc_recording *rec);

/* The version that replays it: the recorded one as far as the model knows it, else the newest. */
const char *vc_recording_version(const struct vc_recording *rec);

/* What the recorded device held in all, 0 = unknown. Expandable segments reserve 9/8 of it, and
 * how far one can still grow decides which block is the best fit. */
uint64_t vc_recorded_total(const struct vc_recording *rec);
