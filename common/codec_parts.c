/* SPDX-License-Identifier: Apache-2.0 */
/* codec_parts.c - heads of blocks and the JSON header of a .vct. */
#include "common/codec_parts.h"

#include <zlib.h>

#include "common/json.h"
#include "common/program.h"

static void put(uint8_t *to, uint64_t v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = (uint8_t)(v >> (8 * i));
}

static uint64_t get(const uint8_t *from, size_t n)
{
	uint64_t v = 0;

	for (size_t i = n; i-- > 0; )
		v = v << 8 | from[i];
	return v;
}

void vct_head_put(const struct vct_head *h, uint8_t to[VCT_FRAME])
{
	put(to, VCT_MAGIC, 4);
	put(to + 4, VCT_HEAD, 4);
	memcpy(to + 8, "VCB1", 4);
	put(to + 12, h->type, 1);
	put(to + 13, h->version, 1);
	put(to + 14, h->flags, 2);
	put(to + 16, h->sequence, 4);
	put(to + 20, h->events, 4);
	put(to + 24, h->raw, 4);
	put(to + 28, h->packed, 4);
	put(to + 32, h->first_ns, 8);
	put(to + 40, h->last_ns, 8);
	put(to + 48, h->id_base, 8);
	put(to + 56, h->lane, 4);
	put(to + 60, crc32(0, to + 8, VCT_HEAD - 4), 4);
}

int vct_head_get(struct vct_head *h, const uint8_t from[VCT_FRAME])
{
	if (get(from, 4) != VCT_MAGIC || get(from + 4, 4) != VCT_HEAD ||
	    memcmp(from + 8, "VCB1", 4) || get(from + 60, 4) != crc32(0, from + 8, VCT_HEAD - 4))
		return -1;
	*h = (struct vct_head){
		.type = from[12], .version = from[13], .flags = (uint16_t)get(from + 14, 2),
		.sequence = (uint32_t)get(from + 16, 4), .events = (uint32_t)get(from + 20, 4),
		.raw = (uint32_t)get(from + 24, 4), .packed = (uint32_t)get(from + 28, 4),
		.first_ns = get(from + 32, 8), .last_ns = get(from + 40, 8),
		.id_base = get(from + 48, 8), .lane = (uint32_t)get(from + 56, 4),
	};
	return 0;
}

/* ---- writing the header ---- */

static void key(struct vc_output *o, const char *name)
{
	vc_output_text(o, ",\n \"");
	vc_output_text(o, name);
	vc_output_text(o, "\": ");
}

static void text(struct vc_output *o, const char *name, const char *value)
{
	if (!value)
		return;
	key(o, name);
	vc_json_quote(o, value, strlen(value));
}

static void number(struct vc_output *o, const char *name, uint64_t v)
{
	key(o, name);
	vc_output_printf(o, "%llu", (unsigned long long)v);
}

static void truth(struct vc_output *o, const char *name, bool v)
{
	key(o, name);
	vc_output_text(o, v ? "true" : "false");
}

static void lists(struct vc_output *o, const struct vc_meta *m)
{
	const char *comma = "";

	key(o, "capabilities");
	vc_output_text(o, "{");
	for (int c = 0; c < VC_CAPS; c++) {
		if (!m->how[c])
			continue;
		vc_output_printf(o, "%s\"%s\": \"%s\"", comma, vc_capability_name(c),
				 vc_how_name(m->how[c]));
		comma = ", ";
	}
	vc_output_text(o, "}");
	key(o, "params");
	vc_output_text(o, "{");
	for (size_t i = 0; i < m->params; i++) {
		vc_output_text(o, i ? ", " : "");
		vc_json_quote(o, m->param[i].name, strlen(m->param[i].name));
		vc_output_printf(o, ": %.17g",
				 isfinite(m->param[i].value) ? m->param[i].value : 0.0);
	}
	vc_output_text(o, "}");
	key(o, "devices");
	vc_output_text(o, "[");
	for (size_t i = 0; i < m->devices; i++) {
		const struct vc_device_info *d = &m->device[i];

		vc_output_printf(o, "%s{\"index\": %u, \"total\": %llu, \"cc_major\": %d, "
				 "\"cc_minor\": %d", i ? ", " : "", d->index,
				 (unsigned long long)d->total, d->cc_major, d->cc_minor);
		if (d->sms)
			vc_output_printf(o, ", \"sms\": %d", d->sms);
		if (d->name) {
			vc_output_text(o, ", \"name\": ");
			vc_json_quote(o, d->name, strlen(d->name));
		}
		vc_output_text(o, "}");
	}
	vc_output_text(o, "]");
	key(o, "notes");
	vc_output_text(o, "[");
	for (size_t i = 0; i < m->notes; i++) {
		vc_output_text(o, i ? ", " : "");
		vc_json_quote(o, m->note[i], strlen(m->note[i]));
	}
	vc_output_text(o, "]");
}

char *vct_meta_text(const struct vc_meta *m, bool complete, bool redact, size_t *n,
		    struct vc_error *err)
{
	struct vc_output *o = vc_output_memory(err);
	char *all;

	if (!o)
		return NULL;
	vc_output_printf(o, "{\"format\": \"vct\"");
	number(o, "version", VCT_VERSION);
	text(o, "source", m->source);
	text(o, "producer", m->producer);
	text(o, "torch", m->torch);
	truth(o, "torch_guessed", m->torch_guessed);
	text(o, "conf", m->conf);
	text(o, "command", redact ? NULL : m->command);
	if (m->program && !redact) {
		key(o, "program");
		vc_program_write(o, m->program, false);
	}
	text(o, "host", redact ? NULL : m->host);
	key(o, "pid");
	vc_output_printf(o, "%lld", (long long)m->pid);
	key(o, "rank");
	vc_output_printf(o, "%lld", (long long)m->rank);
	number(o, "start_unix_ns", m->start_unix_ns);
	number(o, "dropped", m->dropped);
	number(o, "gaps", m->gaps);
	number(o, "damaged_blocks", m->damaged_blocks);
	number(o, "unmatched_frees", m->unmatched_frees);
	number(o, "double_allocs", m->double_allocs);
	number(o, "max_id", m->max_id);
	truth(o, "complete", complete);
	lists(o, m);
	vc_output_text(o, "}\n");
	all = vc_output_take(o, n);
	vc_output_close(o);
	if (!all)
		vc_nomem(err, "the header of the trace");
	return all;
}

/* ---- reading the header: unknown keys are skipped, so that it may grow ---- */

enum type { TEXT, COUNT, SIGNED, TRUTH };

static const struct field { const char *name; enum type type; size_t offset; } fields[] = {
	{ "source", TEXT, offsetof(struct vc_meta, source) },
	{ "producer", TEXT, offsetof(struct vc_meta, producer) },
	{ "torch", TEXT, offsetof(struct vc_meta, torch) },
	{ "torch_guessed", TRUTH, offsetof(struct vc_meta, torch_guessed) },
	{ "conf", TEXT, offsetof(struct vc_meta, conf) },
	{ "command", TEXT, offsetof(struct vc_meta, command) },
	{ "host", TEXT, offsetof(struct vc_meta, host) },
	{ "pid", SIGNED, offsetof(struct vc_meta, pid) },
	{ "rank", SIGNED, offsetof(struct vc_meta, rank) },
	{ "start_unix_ns", COUNT, offsetof(struct vc_meta, start_unix_ns) },
	{ "dropped", COUNT, offsetof(struct vc_meta, dropped) },
	{ "gaps", COUNT, offsetof(struct vc_meta, gaps) },
	{ "damaged_blocks", COUNT, offsetof(struct vc_meta, damaged_blocks) },
	{ "unmatched_frees", COUNT, offsetof(struct vc_meta, unmatched_frees) },
	{ "double_allocs", COUNT, offsetof(struct vc_meta, double_allocs) },
	{ "max_id", COUNT, offsetof(struct vc_meta, max_id) },
	{ "complete", TRUTH, offsetof(struct vc_meta, complete) },
};

static void set(struct vc_meta *m, const struct field *f, const struct vc_json *j, int token)
{
	void *at = (char *)m + f->offset;

	if (f->type == TEXT && token == VC_J_TEXT)
		vc_meta_set(at, j->text);
	else if (f->type == TRUTH)
		*(bool *)at = token == VC_J_TRUE;
	else if (f->type == SIGNED && token == VC_J_NUMBER && j->is_integer)
		*(int64_t *)at = j->integer;
	else if (f->type == COUNT && token == VC_J_NUMBER && j->is_integer && j->integer >= 0)
		*(uint64_t *)at = (uint64_t)j->integer;
}

static int read_capabilities(struct vc_meta *m, struct vc_json *j, struct vc_error *err)
{
	int token, cap = VC_CAPS;

	while ((token = vc_json_next(j, err)) > 0 && token != VC_J_OBJECT_END) {
		if (token == VC_J_KEY) {
			for (cap = 0; cap < VC_CAPS; cap++)
				if (!strcmp(j->text, vc_capability_name(cap)))
					break;
			continue;
		}
		for (int h = 0; token == VC_J_TEXT && cap < VC_CAPS && h <= VC_HOW_FAILED; h++)
			if (!strcmp(j->text, vc_how_name(h)))
				m->how[cap] = (uint8_t)h;
		if (vc_json_skip(j, token, err))
			return VC_EFORMAT;
	}
	return token < 0 ? token : 0;
}

static int read_params(struct vc_meta *m, struct vc_json *j, struct vc_error *err)
{
	char name[256] = "";
	int token;

	while ((token = vc_json_next(j, err)) > 0 && token != VC_J_OBJECT_END) {
		if (token == VC_J_KEY) {
			size_t n = j->len < sizeof(name) - 1 ? j->len : sizeof(name) - 1;

			memcpy(name, j->text, n);
			name[n] = '\0';
		} else if (token == VC_J_NUMBER) {
			vc_meta_param(m, name, j->real);
		} else if (vc_json_skip(j, token, err)) {
			return VC_EFORMAT;
		}
	}
	return token < 0 ? token : 0;
}

static int read_device(struct vc_meta *m, struct vc_json *j, struct vc_error *err)
{
	struct vc_device_info d = { 0 }, *to;
	char what = 0;
	int token;

	while ((token = vc_json_next(j, err)) > 0 && token != VC_J_OBJECT_END) {
		if (token == VC_J_KEY)
			what = !strcmp(j->text, "index")    ? 'i' :
			       !strcmp(j->text, "total")    ? 't' :
			       !strcmp(j->text, "cc_major") ? 'M' :
			       !strcmp(j->text, "cc_minor") ? 'm' :
			       !strcmp(j->text, "name")     ? 'n' :
			       !strcmp(j->text, "sms")      ? 's' :
							      0;
		else if (token == VC_J_TEXT && what == 'n')
			vc_meta_set(&d.name, j->text);
		else if (token == VC_J_NUMBER && j->is_integer && j->integer >= 0)
			switch (what) {
			case 'i': d.index = (uint16_t)j->integer; break;
			case 't': d.total = (uint64_t)j->integer; break;
			case 'M': d.cc_major = (int)(j->integer & 0xffff); break;
			case 's': d.sms = (int)(j->integer & 0xffff); break;
			case 'm': d.cc_minor = (int)(j->integer & 0xffff); break;
			default: break;
			}
		else if (vc_json_skip(j, token, err))
			break;
	}
	to = token == VC_J_OBJECT_END ? vc_meta_device(m, d.index) : NULL;
	if (to) {
		free(to->name);
		*to = d;
	} else {
		free(d.name);
	}
	return token == VC_J_OBJECT_END ? 0 : VC_EFORMAT;
}

static int read_list(struct vc_meta *m, struct vc_json *j, bool devices, struct vc_error *err)
{
	int token, rc = 0;

	while (!rc && (token = vc_json_next(j, err)) > 0 && token != VC_J_ARRAY_END) {
		if (devices && token == VC_J_OBJECT)
			rc = read_device(m, j, err);
		else if (!devices && token == VC_J_TEXT)
			vc_meta_note(m, "%s", j->text);
		else
			rc = vc_json_skip(j, token, err);
	}
	return rc ? rc : token < 0 ? token : 0;
}

/* That of a later header replaces it. */
static int read_program(struct vc_meta *m, struct vc_json *j, struct vc_error *err)
{
	vc_program_free(m->program);
	m->program = vc_program_new(err);
	return m->program ? vc_program_read(m->program, j, err) : VC_ENOMEM;
}

static int read_field(struct vc_meta *m, struct vc_json *j, struct vc_error *err)
{
	const struct field *f = NULL;
	bool caps = !strcmp(j->text, "capabilities"), params = !strcmp(j->text, "params");
	bool devices = !strcmp(j->text, "devices"), notes = !strcmp(j->text, "notes");
	bool program = !strcmp(j->text, "program");
	int token;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]) && !f; i++)
		if (!strcmp(j->text, fields[i].name))
			f = &fields[i];
	token = vc_json_next(j, err);
	if (token < 0)
		return token;
	if (f)
		set(m, f, j, token);
	else if (caps && token == VC_J_OBJECT)
		return read_capabilities(m, j, err);
	else if (params && token == VC_J_OBJECT)
		return read_params(m, j, err);
	else if (program && token == VC_J_OBJECT)
		return read_program(m, j, err);
	else if ((devices || notes) && token == VC_J_ARRAY)
		return read_list(m, j, devices, err);
	return vc_json_skip(j, token, err);
}

int vct_meta_parse(struct vc_meta *m, const char *data, size_t n, struct vc_error *err)
{
	struct vc_input *in = vc_input_memory(data, n, err);
	struct vc_json j;
	int rc, token;

	if (!in)
		return VC_ENOMEM;
	rc = vc_json_open(&j, in, err);
	if (!rc) {
		token = vc_json_next(&j, err);
		rc = token == VC_J_OBJECT ?
			     0 : vc_fail(err, VC_EFORMAT, "the header is no JSON object");
		while (!rc && (token = vc_json_next(&j, err)) == VC_J_KEY)
			rc = read_field(m, &j, err);
		if (!rc && token < 0)
			rc = token;
		vc_json_close(&j);
	}
	vc_input_close(in);
	return rc;
}
