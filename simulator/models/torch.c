/* SPDX-License-Identifier: Apache-2.0 */
/* torch.c - PyTorch's CUDACachingAllocator, 2.0 to 2.15, as a model: the entry points. */

#include "common/vec.h"
#include "simulator/models/torch_index.h"

static uint64_t limit_of(const struct vc_model *m, double bytes)
{
	const struct torch *t = m->state;

	return vc_device_limit(m->device,
			       (uint64_t)(t->r->limit_rounds ? floor(bytes + 0.5) : bytes));
}

static void allow(struct vc_model *m, uint64_t limit)
{
	struct torch *t = m->state;

	t->limit = limit;
	m->now.limit = limit;
	m->now.has_limit = limit != TORCH_UNLIMITED;
}

static int torch_init(struct vc_model *m, struct vc_error *err)
{
	struct torch *t = m->state;
	struct torch_rules *r = calloc(1, sizeof(*r));
	enum torch_device device;
	char note[256] = "";

	t->m = m;
	t->k = m->config;
	t->r = r;
	t->limit = TORCH_UNLIMITED;
	t->pool[0].small = true;
	VC_HAVE(r && torch_ensure(t, TORCH_HEADROOM), "the torch model", err);
	device = t->k->device ? (enum torch_device)(t->k->device - 1)
			      : (enum torch_device)vc_device_config(m->device)->kind;
	if (torch_rules_for(m->version, device, r) < 0 &&
	    torch_rules_for(m->version, TORCH_CUDA, r) == 0)
		return vc_fail(err, VC_EUSAGE, "PyTorch %s has no allocator for %s yet (-m "
			       "torch:device=cuda takes that of CUDA)", m->version,
			       torch_device_name[device]);
	if (!r->major)
		return vc_fail(err, VC_EUSAGE, "torch version \"%s\" is not known, try %s .. %s",
			       m->version, TORCH_OLDEST, TORCH_NEWEST);
	if (t->k->min_block < 512 || t->k->min_block & (t->k->min_block - 1) ||
	    t->k->small_segment < t->k->small_limit || !t->k->round_large ||
	    t->k->segment < t->k->large_limit)
		return vc_fail(err, VC_EUSAGE, "a segment must hold what is put into it (segment "
			       ">= large_limit, small_segment >= small_limit), and min_block be "
			       "a power of two from 512 on");
	torch_conf_init(t);
	torch_refresh(t);
	if (m->conf && torch_conf_parse(t, m->conf, note, sizeof(note)) != VC_DONE)
		return vc_fail(err, VC_EUSAGE, "PyTorch %u.%u refuses the settings \"%s\": %s",
			       r->major, r->minor, m->conf, note);
	t->initial_max_split = (int64_t)t->conf.max_split;
	if (r->opt_fraction && t->conf.fraction < 1)
		allow(m, limit_of(m, t->conf.fraction *
				  (double)vc_device_config(m->device)->prop_total));
	torch_refresh(t);
	return VC_OK;
}

static void torch_use_block(struct vc_model *m, struct vc_block *b, uint32_t stream)
{
	if (b->cookie)
		torch_use(m->state, (uint32_t)(uintptr_t)b->cookie, stream);
}

static void torch_complete(struct vc_model *m, struct vc_block *b)
{
	struct torch *t = m->state;
	uint32_t i = (uint32_t)(uintptr_t)b->cookie;

	/* A forced completion may have come first, and the object may serve another block by now.
	 */
	if (!i || t->k->completion != TORCH_RECORDED || t->b[i].state != TORCH_PENDING ||
	    t->b[i].addr != b->addr || t->b[i].size != b->size)
		return;
	torch_complete_recorded(t, i);
	if (t->away.n && torch_is_away(t, b->addr))
		torch_away_count(t);
	torch_publish(t);
}

static void torch_sync_stream(struct vc_model *m, uint32_t stream)
{
	struct torch *t = m->state;

	if (t->k->completion == TORCH_FORCED)
		return;
	if (stream != VC_STREAM_ALL) {
		torch_stream_at(t, stream)->done = torch_stream_at(t, stream)->issued;
		return;
	}
	for (uint32_t i = 0; i < t->streams; i++)
		t->stream[i].done = t->stream[i].issued;
	t->anywhere.done = t->anywhere.issued;
}

static int torch_trim(struct vc_model *m, uint64_t pool, struct vc_error *err)
{
	struct torch *t = m->state;

	VC_HAVE(torch_ensure(t, TORCH_HEADROOM), "the torch model", err);
	return torch_finished(t, torch_release_cached(t, t->r->empty_by_id ? pool : 0), err);
}

static int torch_configure(struct vc_model *m, const char *conf, struct vc_error *err)
{
	struct torch *t = m->state;

	return torch_finished(t, torch_conf_parse(t, conf, m->note, sizeof(m->note)), err);
}

static int torch_fraction(struct vc_model *m, double f, struct vc_error *err)
{
	struct torch *t = m->state;
	const struct vc_device_config *d = vc_device_config(m->device);
	double bytes = f * (double)(t->r->limit_of_prop ? d->prop_total : d->total);

	if (t->r->fraction_off) {
		torch_raise(t, "module 'torch.xpu' has no attribute "
			    "'set_per_process_memory_fraction'");
		return VC_RAISED;
	}
	if (!(f >= 0 && f <= 1)) {
		if (t->r->fraction_text)
			torch_raise(t, "invalid fraction:%g. Please set within [0, 1].", f);
		else
			torch_raise(t, "0 <= fraction && fraction <= 1 INTERNAL ASSERT FAILED");
		return VC_RAISED;
	}
	allow(m, t->r->limit_of_prop && f >= 1 ? TORCH_UNLIMITED : limit_of(m, bytes));
	torch_refresh(t);
	return VC_DONE;
}

static int torch_pool(struct vc_model *m, const struct vc_pool_call *call, struct vc_error *err)
{
	struct torch *t = m->state;
	int r;

	if (t->r->pools_off) {
		torch_raise(t, "PyTorch %u.%u has no private pools on this device", t->r->major,
			    t->r->minor);
		return VC_RAISED;
	}
	r = torch_pool_call(t, call);
	torch_refresh(t);
	return r < 0 ? vc_nomem(err, "the torch model") : torch_finished(t, r, err);
}

static void torch_fini(struct vc_model *m)
{
	struct torch *t = m->state;

	torch_pool_fini(t);
	torch_wait_fini(t);
	VC_FREE(t->conf.klass, t->b, t->range, t->scratch, t->away.at, (void *)(uintptr_t)t->r);
}

#define AT(field) offsetof(struct torch_config, field)

/* The constants never changed from 2.0 to 2.15 (c10/cuda/CUDACachingAllocator.cpp). */
static const struct vc_param torch_params[] = {
	{ "device", VC_P_ENUM, AT(device), "card",
	  "whose allocator: that of the card, or PyTorch's for CUDA, ROCm (hip), Intel's (xpu) or "
	  "Ascend's cards (npu)", "card,cuda,hip,xpu,npu" },
	{ "fit", VC_P_ENUM, AT(fit), "best", "which free block serves a request",
	  "best,first,next,worst,recent" },
	{ "completion", VC_P_ENUM, AT(completion), "recorded",
	  "when a block that other streams used comes back: as recorded, at the next request, or "
	  "only when forced",
	  "recorded,next,forced" },
	{ "min_block", VC_P_SIZE, AT(min_block), "512", "kMinBlockSize: sizes are multiples of it",
	  NULL },
	{ "small_limit", VC_P_SIZE, AT(small_limit), "1MiB",
	  "kSmallSize: largest request of the small pool", NULL },
	{ "small_segment", VC_P_SIZE, AT(small_segment), "2MiB", "kSmallBuffer: its segments",
	  NULL },
	{ "segment", VC_P_SIZE, AT(segment), "20MiB", "kLargeBuffer: segments of the large pool",
	  NULL },
	{ "large_limit", VC_P_SIZE, AT(large_limit), "10MiB",
	  "kMinLargeAlloc: requests from here on get a segment of their own", NULL },
	{ "round_large", VC_P_SIZE, AT(round_large), "2MiB", "kRoundLarge: rounding of those",
	  NULL },
	{ "split_rest", VC_P_SIZE, AT(split_rest), "1MiB",
	  "large blocks are split when more than this is left", NULL },
	VC_PARAM_END };

const struct vc_model_type vc_model_torch = {
	.name = "torch", .summary = "PyTorch's caching allocator, 2.0 to 2.15, to the byte",
	.owner = "PyTorch", .params = torch_params, .config_size = sizeof(struct torch_config),
	.state_size = sizeof(struct torch), .versions = torch_versions, .counts_split = true,
	.init = torch_init, .alloc = torch_alloc, .free = torch_free, .use = torch_use_block,
	.complete = torch_complete, .sync = torch_sync_stream, .trim = torch_trim,
	.configure = torch_configure, .knows_option = torch_conf_knows, .fraction = torch_fraction,
	.pool = torch_pool, .pages = torch_pages, .seed = torch_seed, .walk = torch_walk,
	.stats = torch_stats,
	.check = torch_check, .fini = torch_fini, .witness_size = sizeof(struct torch_witness),
	.witness = torch_witness, .repeats = torch_repeats, .rounds = torch_rounds,
};
