/* SPDX-License-Identifier: Apache-2.0 */
/* named_plans.h - what cuDNN's plans take on a card: of the table that dry runs keep, else of
 * somebody who asks the library that is installed. */
#pragma once

#include "common/plan_table.h"
#include "simulator/predict/family.h"
#include "simulator/replay/cards.h"
#include "simulator/session/recording.h"

/* Of the command; it may take a while. */
struct vc_asker {
	void (*table)(char *path, size_t n); /* that dry runs keep */
	/* Nothing is started before the first question. NULL: no memory; where open itself is NULL
	 * nobody is asked. */
	void *(*open)(const struct vc_card *card);
	/* The plans of that version, "" for those that the version at hand has none of. False: it
	 * cannot be asked. */
	bool (*ask)(void *asker, const char *version, const char *key, char *plans, size_t n);
	void (*close)(void *asker);
};

struct vc_named_plans;

/* For the card of a recording, or that one (not NULL); nothing is read before the first question.
 * asker: lent, or NULL. NULL: no memory. */
struct vc_named_plans *vc_named_plans_new(const struct vc_recording *rec,
					  const struct vc_asker *asker, struct vc_error *err);
struct vc_named_plans *vc_named_plans_on(const struct vc_card *card, const struct vc_asker *asker,
					 struct vc_error *err);
/* Does that card make the same plans? Where it is not known which card p is of: it does. */
bool vc_named_plans_same(const struct vc_named_plans *p, const struct vc_card *card);
void vc_named_plans_free(struct vc_named_plans *p); /* NULL is fine */

/* Of which card they are; NULL: p is, or nobody knows. */
const struct vc_card *vc_named_plans_card(const struct vc_named_plans *p);

/* Lent from p. */
const struct vc_answers *vc_named_plans_answers(const struct vc_named_plans *p);
