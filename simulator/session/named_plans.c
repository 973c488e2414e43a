/* SPDX-License-Identifier: Apache-2.0 */
/* named_plans.c - see named_plans.h */
#include "simulator/session/named_plans.h"

#include <pthread.h>

struct vc_named_plans {
	struct vc_answers answers;
	const struct vc_asker *asker;
	const struct vc_card *card; /* NULL: unknown, and nobody is asked */
	void *asking;               /* of the asker, once it is open */
	char on[64];                /* the card as a table has it */
	pthread_mutex_t lock;       /* of what follows */
	char version[16];           /* that the table is read for; "": not yet */
	struct vc_plan_table table;
	struct vc_plan_table none;  /* what nobody answers; nobody is asked twice */
};

/* Of one version at a time: recordings of one family have one. The caller holds p->lock. */
static void read_table(struct vc_named_plans *p, const char *version)
{
	char path[1200];

	if (!strcmp(p->version, version))
		return;
	snprintf(p->version, sizeof(p->version), "%s", version);
	vc_plan_table_fini(&p->table);
	vc_plan_table_fini(&p->none);
	if (!p->asker)
		return;
	p->asker->table(path, sizeof(path));
	vc_plan_table_read(&p->table, path, p->on, version, NULL);
}

/* The caller holds p->lock. */
static bool ask(struct vc_named_plans *p, const char *key, struct vc_cudnn_plans *out)
{
	char plans[VC_PLANS_MOST * 40];
	struct vc_cudnn_plans before;

	if (!p->asker || !p->asker->open || !p->card || vc_plan_table_find(&p->none, key, &before))
		return false;
	if (!p->asking)
		p->asking = p->asker->open(p->card);
	if (p->asking && p->asker->ask(p->asking, p->version, key, plans, sizeof(plans)) &&
	    vc_cudnn_plans_read(plans, out))
		return vc_plan_table_add(&p->table, key, plans);
	vc_plan_table_add(&p->none, key, "0");
	return false;
}

/* Nobody gets a plan that wants more than the card has: a program that tries all passes it over. */
static void drop_larger(struct vc_cudnn_plans *p, uint64_t total)
{
	int kept = 0;

	for (int i = 0; i < p->n; i++)
		if ((uint64_t)p->at[i].bytes <= total)
			p->at[kept++] = p->at[i];
	p->n = kept;
}

static bool plans(void *arg, const char *version, const char *key, struct vc_cudnn_plans *out)
{
	struct vc_named_plans *p = arg;
	bool known;

	pthread_mutex_lock(&p->lock);
	read_table(p, version);
	known = vc_plan_table_find(&p->table, key, out) || ask(p, key, out);
	pthread_mutex_unlock(&p->lock);
	if (known && p->card)
		drop_larger(out, p->card->total);
	return known;
}

static struct vc_named_plans *make(const struct vc_card *card, const struct vc_asker *asker,
				   struct vc_error *err)
{
	struct vc_named_plans *p = calloc(1, sizeof(*p));

	if (!p) {
		vc_nomem(err, "cuDNN's algorithms");
		return NULL;
	}
	pthread_mutex_init(&p->lock, NULL);
	p->answers = (struct vc_answers){ .plans = plans, .arg = p };
	p->asker = asker;
	p->card = card;
	if (card)
		vc_card_in_table(card, p->on, sizeof(p->on));
	return p;
}

struct vc_named_plans *vc_named_plans_new(const struct vc_recording *rec,
					  const struct vc_asker *asker, struct vc_error *err)
{
	const struct vc_device_info *d = vc_meta_device_known(rec->meta, rec->device->device);
	struct vc_named_plans *p = make(d && d->name ? vc_card_by_name(d->name) : NULL, asker, err);

	if (p && !p->card && d && d->sms) /* a card without a row: tables may know it */
		snprintf(p->on, sizeof(p->on), "%d.%d/%d", d->cc_major, d->cc_minor, d->sms);
	return p;
}

struct vc_named_plans *vc_named_plans_on(const struct vc_card *card, const struct vc_asker *asker,
					 struct vc_error *err)
{
	return make(card, asker, err);
}

/* What decides of a card, by its compute capability (docs/measurements/null-gpu.md): 9.0 its
 * clocks, 10.0 its multiprocessors, others nothing else. */
bool vc_named_plans_same(const struct vc_named_plans *p, const struct vc_card *card)
{
	int sm[2], memory[2];

	if (!p->card || p->card == card)
		return true;
	if (p->card->cc_major != card->cc_major || p->card->cc_minor != card->cc_minor)
		return false;
	vc_card_clocks(p->card, &sm[0], &memory[0]);
	vc_card_clocks(card, &sm[1], &memory[1]);
	return card->cc_major == 9  ? sm[0] == sm[1] && memory[0] == memory[1] :
	       card->cc_major == 10 ? p->card->sms == card->sms : true;
}

void vc_named_plans_free(struct vc_named_plans *p)
{
	if (!p)
		return;
	if (p->asking)
		p->asker->close(p->asking);
	vc_plan_table_fini(&p->table);
	vc_plan_table_fini(&p->none);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

const struct vc_card *vc_named_plans_card(const struct vc_named_plans *p)
{
	return p ? p->card : NULL;
}

const struct vc_answers *vc_named_plans_answers(const struct vc_named_plans *p)
{
	return &p->answers;
}
