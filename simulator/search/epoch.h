/* SPDX-License-Identifier: Apache-2.0 */
/* epoch.h - what an epoch over samples of differing length needs on a card, when the samples of a
 * batch are padded to the longest of them: its worst batch, the chance to run out, and how many
 * tokens a batch may have. Predicted from recordings at several lengths. */
#pragma once

#include "common/emit.h"
#include "simulator/search/fit.h"
#include "simulator/search/samples.h"

enum { VC_EPOCH_LENGTHS = 8 }; /* that the budget is looked for at */

struct vc_epoch_ask {
	const struct vc_samples *samples;
	const char *key;            /* the parameter of the recordings that is the length */
	uint64_t batch;             /* samples of a step */
	bool drop_last;             /* a last batch that is not full is left out */
	bool budget;                /* the recordings tell how the batch counts */
};

struct vc_epoch_card {
	struct vc_fit_card fit;     /* over the lengths of the data */
	struct vc_fit_probe worst;  /* a batch with the longest sample */
	enum vc_verdict verdict;    /* of it */
	uint64_t sure, maybe;       /* lengths up to these fit, certainly and possibly; 0: none */
	uint64_t over[2], cut[2];   /* samples longer than maybe and sure, and by how much */
	double step[2], epoch[2];   /* chances to run out: at least, at most */
	uint64_t half;              /* by this step half of the runs are over, at most; 0: fewer */
	uint64_t budget[2];         /* tokens a batch may have: certainly, possibly; 0: unknown */
	uint64_t budget_at;         /* the length of samples that bounds it */
};

/* How many steps an epoch has. */
uint64_t vc_epoch_steps(const struct vc_epoch_ask *ask);

/* f: what is searched in, its base and what is held; c->fit.plan is set. Errors: those of
 * vc_fit_search. After success and failure vc_fit_card_fini(&c->fit). */
int vc_epoch_search(const struct vc_epoch_ask *ask, struct vc_fit *f, struct vc_epoch_card *c,
		    struct vc_error *err);

/* The whole document. */
void vc_epoch_say(struct vc_emit *e, const struct vc_epoch_ask *ask, const char *file,
		  const struct vc_epoch_card *c, size_t cards);
