/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_epoch.c - vramcast epoch: what samples of differing length need, over an epoch. */

#include "common/vec.h"
#include "commands/fit_program.h"
#include "simulator/search/epoch.h"

struct config {
	struct vc_run_options run;
	const char *lengths, *key;
	uint64_t batch, cut, pad;
	bool drop_last, json;
};
#define AT(f) offsetof(struct config, f)
static const struct vc_option epoch_options[] = {
	{ 0, "lengths", VC_O_TEXT, AT(lengths), "FILE", "how long the samples are: a length on "
	  "each line, or a length and how many samples have it", NULL },
	{ 0, "batch", VC_O_UINT, AT(batch), "N", "samples of a step; else what was recorded", "0" },
	{ 0, "find", VC_O_TEXT, AT(key), "KEY", "the parameter of the recordings that is the "
	  "length", "seq" },
	{ 0, "cut", VC_O_UINT, AT(cut), "N", "longer samples are cut to N; 0: none is", "0" },
	{ 0, "pad-to", VC_O_UINT, AT(pad), "N", "lengths are padded to multiples of N", "1" },
	{ 0, "drop-last", VC_O_FLAG, AT(drop_last), NULL, "a last batch that is not full is left "
	  "out", NULL },
	{ 0, "json", VC_O_FLAG, AT(json), NULL, "one JSON document on standard output", NULL },
	VC_OPTION_END
};

struct epoch {
	struct vc_fit_config cfg;
	struct vc_fitting fit;
	struct vc_samples samples;
	struct vc_epoch_ask ask;
	struct vc_epoch_card *card;
};

/* Samples of a step, and whether the recordings tell how their number counts. */
static int read_batch(struct epoch *q, struct vc_error *err)
{
	const struct vc_whatif *w = q->fit.base.whatif;
	double first = vc_family_value(w->family, 0, "batch");

	for (size_t i = 1; i < w->recordings; i++)
		q->ask.budget |= vc_family_value(w->family, i, "batch") != first && !isnan(first);
	if (!q->ask.batch && !isnan(first) && !q->ask.budget)
		q->ask.batch = (uint64_t)first;
	if (!q->ask.batch)
		return vc_fail(err, VC_EUSAGE, "--batch says how many samples a step takes; the "
			       "recordings %s", q->ask.budget ? "differ in it" : "do not");
	if (!q->ask.budget && !isnan(first) && (double)q->ask.batch != first)
		return vc_fail(err, VC_EUSAGE, "all recordings are of batch %g; for --batch %"
			       PRIu64 " another one has to be at another batch", first,
			       q->ask.batch);
	if (q->ask.budget && q->fit.find.n < VC_WHATIF_PARAMS)
		q->fit.also[q->fit.find.n++] = (struct vc_param_value){ (char *)"batch",
									(double)q->ask.batch };
	return VC_OK;
}

static int search(struct epoch *q, size_t argc, char **argv, struct vc_error *err)
{
	VC_TRY(vc_fitting_open(&q->fit, argc, argv, err));
	if (!q->fit.plans || !q->fit.plan[0].capacity)
		return vc_fail(err, VC_EUSAGE, "name a card (-g) or a --capacity");
	VC_TRY(read_batch(q, err));
	q->card = calloc(q->fit.plans, sizeof(*q->card));
	VC_HAVE(q->card, "the cards", err);
	for (size_t i = 0; i < q->fit.plans; i++) {
		q->card[i].fit.plan = q->fit.plan[i];
		VC_TRY(vc_epoch_search(&q->ask, &q->fit.find, &q->card[i], err));
	}
	return VC_OK;
}

static int answer(struct epoch *q, const struct config *c, struct vc_error *err)
{
	struct vc_emit *e = vc_emit_stdout(c->json, err);

	if (!e)
		return err->status;
	vc_epoch_say(e, &q->ask, c->lengths, q->card, q->fit.plans);
	VC_TRY(vc_emit_done(e, err));
	return q->card[0].verdict == VC_OOM ? 3 : q->card[0].verdict == VC_UNDECIDED ? 6 : VC_OK;
}

static int epoch_run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	const struct config *c = config;
	struct epoch *q = calloc(1, sizeof(*q));
	int r;

	VC_HAVE(q, "the epoch", &con->err);
	q->cfg = (struct vc_fit_config){ .run = c->run, .find = c->key, .target = "0..100%",
					 .multiple = 1, .most = UINT64_C(1) << 40 };
	q->fit.cfg = &q->cfg;
	q->fit.gpu = c->run.gpu;
	q->ask = (struct vc_epoch_ask){ .samples = &q->samples, .key = c->key, .batch = c->batch,
					.drop_last = c->drop_last };
	r = !c->lengths ? vc_fail(&con->err, VC_EUSAGE, "--lengths FILE says how long the samples "
				  "are") :
	    !argc ? vc_fail(&con->err, VC_EUSAGE, "name recordings at two lengths or more, as "
			    "a.vct@%s=128 b.vct@%s=256", c->key, c->key) :
		    vc_samples_read(&q->samples, c->lengths, c->cut, c->pad, &con->err);
	vc_remark_cards(&c->run.gpu, con);
	if (r == VC_OK)
		r = search(q, argc, argv, &con->err);
	if (r == VC_OK)
		r = answer(q, c, &con->err);
	for (size_t i = 0; q->card && i < q->fit.plans; i++)
		vc_fit_card_fini(&q->card[i].fit);
	vc_fitting_close(&q->fit);
	vc_samples_fini(&q->samples);
	VC_FREE(q->fit.proof, q->card, q);
	return r;
}

const struct vc_command vc_command_epoch = {
	.name = "epoch", .operands = "TRACE... --lengths FILE",
	.summary = "what samples of differing length need: worst batch, chance to run out, token "
		   "budget",
	.details =
		"From recordings at several lengths (epoch a.vct@seq=128 b.vct@seq=256 --lengths "
		"lengths.txt -g t4) and the lengths of the samples: what the longest batch needs, "
		"how likely an epoch in random order runs out of memory, and, where recordings "
		"differ in batch as well, how many tokens a batch may have.",
	.options = VC_OPTIONS(epoch_options, vc_run_options),
	.config_size = sizeof(struct config), .run = epoch_run,
};
