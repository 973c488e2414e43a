/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_gpus.c - vramcast gpus: the card profiles, and which of several cards to take. */

#include "common/emit.h"
#include "common/opt.h"
#include "common/param.h"
#include "commands/card_properties.h"

struct config { const char *free, *properties; uint64_t need, device; bool json; };

#define AT(f) offsetof(struct config, f)
static const struct vc_option gpus_options[] = {
	{ 0, "free", VC_O_TEXT, AT(free), "SIZE,SIZE,...",
	  "free memory of the cards of this machine, in their order: which one to take", NULL },
	{ 0, "need", VC_O_SIZE, AT(need), "SIZE", "what the job needs (peak used of sim)", NULL },
	{ 0, "export-properties", VC_O_TEXT, AT(properties), "FILE",
	  "write the properties that dry runs ask cuDNN with: of the card NAME in the table, else "
	  "of one that this machine has (- for standard output)", NULL },
	{ 0, "device", VC_O_UINT, AT(device), "N", "the card of --export-properties", "0" },
	{ 0, "json", VC_O_FLAG, AT(json), NULL, "one JSON document on standard output", NULL },
	VC_OPTION_END
};

/* How the total is known, for people. */
static const char *const total_was[] = { [VC_CARD_SEEN] = "printed",
					[VC_CARD_MESSAGE] = "from a message",
					[VC_CARD_ESTIMATE] = "never printed: estimate" };

static void card(struct vc_emit *e, const struct vc_card *c, bool all)
{
	char cc[16], gib[32];

	snprintf(cc, sizeof(cc), "%d.%d", c->cc_major, c->cc_minor);
	snprintf(gib, sizeof(gib), "%.2f", (double)c->total / (double)(1u << 30));
	vc_emit_object(e, NULL, NULL);
	vc_emit_text(e, "name", "name", c->name);
	vc_emit_text(e, "title", "card", c->title);
	vc_emit_uint(e, "total", NULL, c->total);
	vc_emit_text(e, NULL, "GiB", gib);
	vc_emit_uint(e, "context", NULL, c->context);
	vc_emit_uint(e, NULL, "context MiB", c->context >> 20);
	vc_emit_text(e, "compute_capability", "cc", cc);
	vc_emit_uint(e, "sms", "SMs", c->sms);
	vc_emit_real(e, "bandwidth_gbs", "GB/s", c->bandwidth_gbs);
	vc_emit_real(e, "fp32_tflops", NULL, c->fp32_tflops);
	vc_emit_real(e, "half_tflops", "TFLOP/s 16 bit", c->half_tflops);
	vc_emit_text(e, "sure", NULL, vc_card_sure_name(c->sure));
	vc_emit_text(e, NULL, "total", total_was[c->sure]);
	vc_emit_text(e, "source", all ? NULL : "source", c->source);
	vc_emit_end(e);
}

static int list(struct vc_emit *e, size_t argc, char **argv, struct vc_error *err)
{
	char line[600];

	vc_emit_object(e, NULL, "");
	vc_emit_text(e, "schema", NULL, "vramcast.gpus/1");
	vc_emit_array(e, "gpus", "Cards (GiB as cudaMemGetInfo reports the total on Linux)");
	for (size_t i = 0; !argc && i < vc_cards_n; i++)
		card(e, &vc_cards[i], true);
	if (!argc) {
		vc_emit_end(e);
		vc_emit_array(e, "parts", "Only where they are named: parts of cards (MIG), cards "
			      "with error correction the other way, laptops, older and small "
			      "cards, boards with the host's memory; any may be NAME+windows");
	}
	for (size_t i = 0; !argc && i < vc_card_parts_n; i++)
		card(e, &vc_card_parts[i], true);
	for (size_t i = 0; i < argc; i++) {
		const struct vc_card *c;
		VC_TRY(vc_card_find(argv[i], &c, err));
		card(e, c, false);
	}
	vc_emit_end(e);
	for (size_t i = 0; i < argc; i++)
		if (*vc_card_remark(argv[i], line, sizeof(line)))
			vc_emit_line(e, "note: %s", line);
	vc_emit_end(e);
	return VC_OK;
}

/* The least free card that is enough, so that the larger ones stay for larger jobs; without a need
 * the one with most. */
static int pick(struct vc_emit *e, const struct config *c, struct vc_error *err)
{
	uint64_t bytes, best = 0, need = c->need == VC_NOT_GIVEN ? 0 : c->need;
	size_t at = 0, n = 0;
	bool found = false;
	char one[64], a[32], b[32];

	for (const char *t = c->free; *t; n++) {
		size_t len = strcspn(t, ",");

		snprintf(one, sizeof(one), "%.*s", (int)len, t);
		if (vc_parse_size(one, &bytes, err) < 0)
			return vc_wrap(err, "--free");
		if (bytes >= need && (!found || (need ? bytes < best : bytes > best))) {
			best = bytes;
			at = n;
			found = true;
		}
		t += len + (t[len] == ',');
	}
	vc_emit_object(e, NULL, "");
	vc_emit_text(e, "schema", NULL, "vramcast.gpus/1");
	if (found) {
		vc_emit_uint(e, "pick", NULL, at);
		vc_emit_uint(e, "free", NULL, best);
		vc_emit_line(e, "CUDA_VISIBLE_DEVICES=%zu  (%s free%s%s)", at,
			     vc_bytes_text(best, a), need ? ", needs " : "",
			     need ? vc_bytes_text(need, b) : "");
	} else {
		vc_emit_null(e, "pick", NULL);
		vc_emit_line(e, "none of the %zu cards has %s free", n, vc_bytes_text(need, a));
	}
	vc_emit_end(e);
	return found ? 0 : 3;
}

/* Of the card with that name in the table, else of one that is there. */
static int export_properties(const struct config *c, const char *name, struct vc_error *err)
{
	const struct vc_card *one;
	char text[4096];

	if (name) {
		VC_TRY(vc_card_find(name, &one, err));
		VC_TRY(vc_card_properties(one, text, sizeof(text), err));
	} else {
		VC_TRY(vc_properties_of_device((int)c->device, text, sizeof(text), err));
	}
	struct vc_output *out = vc_output_open(c->properties, err);
	int r = err->status;

	if (out) {
		vc_output_text(out, text);
		r = vc_output_commit(out, err);
	}
	vc_output_close(out);
	return r;
}

static int gpus_run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	const struct config *c = config;

	if (!c->free && c->need != VC_NOT_GIVEN)
		return vc_fail(&con->err, VC_EUSAGE,
			       "--need picks one of the cards that --free lists: give both");
	if (c->free && !*c->free)
		return vc_fail(
			&con->err, VC_EUSAGE,
			"--free is empty: write the free memory of each card, as in 8GiB,20GiB");
	if (c->properties && argc > 1)
		return vc_fail(&con->err, VC_EUSAGE, "--export-properties writes one card");
	if (c->properties)
		return export_properties(c, argc ? argv[0] : NULL, &con->err);
	struct vc_emit *e = vc_emit_stdout(c->json, &con->err);

	if (!e)
		return con->err.status;
	int code = c->free ? pick(e, c, &con->err) : list(e, argc, argv, &con->err);

	if (code < 0)
		vc_emit_drop(e);
	else
		VC_TRY(vc_emit_done(e, &con->err));
	return code;
}

const struct vc_command vc_command_gpus = {
	.name = "gpus", .operands = "[NAME...]",
	.summary = "card profiles: memory a process really sees; --free picks one of several",
	.details =
		"Totals are what cudaMemGetInfo reports on Linux, not the marketing size; "
		"`vramcast gpus NAME` says where a figure comes from.",
	.options = VC_OPTIONS(gpus_options), .config_size = sizeof(struct config), .run = gpus_run,
};
