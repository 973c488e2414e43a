/* SPDX-License-Identifier: Apache-2.0 */
/* record.c - see record.h */
#include "visualize/record.h"

#include "common/json.h"
#include "common/site.h"

#define B(type, name) { #name, type, offsetof(struct vc_bucket, name) }
const struct vc_field vc_bucket_fields[] = {
	B(VC_F_U64, first_event), B(VC_F_U64, last_event), B(VC_F_U64, first_ns),
	B(VC_F_U64, last_ns), B(VC_F_U64, requested_max), B(VC_F_U64, allocated_min),
	B(VC_F_U64, allocated_max), B(VC_F_U64, active_max), B(VC_F_U64, reserved_min),
	B(VC_F_U64, reserved_max), B(VC_F_U64, stranded_max), B(VC_F_U64, peak_event),
	{ "persistent", VC_F_U64, offsetof(struct vc_bucket, layer[VC_LIFE_PERSISTENT]) },
	{ "step", VC_F_U64, offsetof(struct vc_bucket, layer[VC_LIFE_STEP]) },
	{ "phase", VC_F_U64, offsetof(struct vc_bucket, layer[VC_LIFE_PHASE]) },
	{ "short", VC_F_U64, offsetof(struct vc_bucket, layer[VC_LIFE_SHORT]) },
	B(VC_F_U32, flushes), B(VC_F_U32, ooms), B(VC_F_U32, segment_allocs),
	B(VC_F_U32, segment_frees), B(VC_F_U64, pinned_max), B(VC_F_U64, managed_max),
	{ NULL, VC_F_U64, 0 }
};

#define L(type, name) { #name, type, offsetof(struct vc_life, name) }
const struct vc_field vc_life_fields[] = { L(VC_F_U64, id),        L(VC_F_U64, addr),
					  L(VC_F_U64, size),      L(VC_F_U64, requested),
					  L(VC_F_U64, born),      L(VC_F_END, died),
					  L(VC_F_U64, born_ns),   L(VC_F_DIED_NS, died_ns),
					  L(VC_F_STREAM, stream), L(VC_F_LIFETIME, lifetime),
					  L(VC_F_BOOL, at_start), L(VC_F_SITE, site),
					  L(VC_F_LABEL, label),   { NULL, VC_F_U64, 0 } };

#define U(type, name) { #name, type, offsetof(struct vc_unused_at, name) }
#define P(name) { #name, VC_F_U64, offsetof(struct vc_unused_at, part.name) }
const struct vc_field vc_unused_fields[] = {
	U(VC_F_U64, event), U(VC_F_U64, time_ns), U(VC_F_U64, reserved), U(VC_F_U64, requested),
	P(rounding), P(remainders), P(pinned), P(other_streams), P(private_pools), P(whole_free),
	{ "held_back", VC_F_U64, offsetof(struct vc_unused_at, pin[0].bytes) },
	{ "by_block", VC_F_U64, offsetof(struct vc_unused_at, pin[0].id) },
	{ "by_site", VC_F_SITE, offsetof(struct vc_unused_at, pin[0].site) },
	{ NULL, VC_F_U64, 0 }
};

const char *vc_lifetime_name(uint8_t lifetime)
{
	static const char *const name[] = { "persistent", "step", "phase", "short" };

	return lifetime < VC_LIFE_CLASSES ? name[lifetime] : "";
}

/* A number, or a text into buf (then true). Never: *none. */
static bool value_of(const struct vc_field *f, const void *row, const struct vc_meta *m,
		     uint64_t *n, const char **text, char buf[512], bool *none)
{
	const char *at = (const char *)row + f->offset;
	uint32_t u32 = 0;

	*none = false;
	if (f->type == VC_F_U32 || f->type == VC_F_STREAM || f->type == VC_F_SITE ||
	    f->type == VC_F_LABEL)
		memcpy(&u32, at, sizeof(u32));
	switch (f->type) {
	case VC_F_U64: case VC_F_END:
		memcpy(n, at, sizeof(*n));
		*none = f->type == VC_F_END && *n == UINT64_MAX;
		return false;
	case VC_F_DIED_NS:
		memcpy(n, at, sizeof(*n));
		*none = ((const struct vc_life *)row)->died == UINT64_MAX;
		return false;
	case VC_F_U32:
		*n = u32;
		return false;
	case VC_F_STREAM:
		*n = m && u32 < m->streams ? m->stream[u32] : u32;
		return false;
	case VC_F_BOOL:
		*n = *(const bool *)at;
		return false;
	case VC_F_LIFETIME:
		*text = vc_lifetime_name(*(const uint8_t *)at);
		return true;
	case VC_F_LABEL:
		*text = vc_label_text(m, u32);
		return true;
	case VC_F_SITE:
		vc_site_text(m, u32, buf, 512);
		*text = buf;
		return true;
	}
	return false;
}

void vc_record_csv_head(struct vc_output *o, const struct vc_field *f)
{
	vc_output_text(o, "run");
	for (; f->name; f++)
		vc_output_printf(o, ",%s", f->name);
	vc_output_text(o, "\n");
}

void vc_record_csv(struct vc_output *o, const struct vc_field *f, size_t run, const void *row,
		   const struct vc_meta *meta)
{
	char buf[512];
	const char *text;
	uint64_t n;
	bool none;

	vc_output_printf(o, "%zu", run);
	for (; f->name; f++) {
		bool is_text = value_of(f, row, meta, &n, &text, buf, &none);

		vc_output_text(o, ",");
		if (is_text)
			vc_output_csv(o, text);
		else if (!none)
			vc_output_printf(o, "%" PRIu64, n);
	}
	vc_output_text(o, "\n");
}

void vc_record_json(struct vc_output *o, const char *kind, const struct vc_field *f, size_t run,
		    const void *row, const struct vc_meta *meta)
{
	char buf[512];
	const char *text;
	uint64_t n;
	bool none;

	vc_output_printf(o, "{\"kind\":\"%s\",\"run\":%zu", kind, run);
	for (; f->name; f++) {
		bool is_text = value_of(f, row, meta, &n, &text, buf, &none);

		vc_output_printf(o, ",\"%s\":", f->name);
		if (is_text)
			vc_json_quote(o, text, strlen(text));
		else if (none)
			vc_output_text(o, "null");
		else if (f->type == VC_F_BOOL)
			vc_output_text(o, n ? "true" : "false");
		else
			vc_output_printf(o, "%" PRIu64, n);
	}
	vc_output_text(o, "}\n");
}
