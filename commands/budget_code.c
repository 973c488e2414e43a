/* SPDX-License-Identifier: Apache-2.0 */
/* budget_code.c - see budget_code.h. It does what python/budget_hook.py does in the dry runs. */
#define _GNU_SOURCE /* memmem */
#include "commands/budget_code.h"

#include "commands/change_hook.h"

static void lines(struct vc_emit *e, const char *const *line)
{
	for (; *line; line++)
		vc_emit_line(e, "    %s", *line);
}

/* Which operators are products stands in the hook. */
static void say_products(struct vc_emit *e)
{
	static const char name[] = "PRODUCTS = {";
	const char *text = memmem(vc_hook_text, vc_hook_size, name, strlen(name));
	const char *end = (const char *)vc_hook_text + vc_hook_size;

	while (text && text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		size_t n = (size_t)((stop ? stop : end) - text);

		vc_emit_line(e, "    %.*s", (int)n, text);
		if (memchr(text, '}', n))
			return;
		text += n + 1;
	}
}

/* sends: how something is sent to the host was said. */
static void say_means(struct vc_emit *e, enum vc_budget_do way, bool sends)
{
	static const char *const twice[] = { "twice = partial(checkpoint, use_reentrant=False)",
					     NULL };
	static const char *const products[] = {
		"def policy(context, op, *args, **kwargs):",
		"    kept = getattr(op, \"overloadpacket\", op).__name__ in PRODUCTS",
		"    if kept:  # but for dropout: what is drawn behind it would differ",
		"        kwargs.update(zip((a.name for a in op._schema.arguments), args))",
		"    return (CheckpointPolicy.MUST_SAVE if kept and not kwargs.get(\"dropout_p\")",
		"            else CheckpointPolicy.PREFER_RECOMPUTE)",
		"but_products = partial(checkpoint, use_reentrant=False, context_fn=partial(",
		"    create_selective_checkpoint_contexts, policy))", NULL };
	static const char *const sent[] = {
		"def send(tensor):",
		"    base = tensor if tensor._base is None else tensor._base",
		"    if (not tensor.is_cuda or tensor.nbytes < 1 << 16",
		"            or base.is_leaf and base.requires_grad):",
		"        return tensor.detach() if tensor.grad_fn else tensor",
		"    copy = torch.empty_like(tensor, device=\"cpu\", pin_memory=True)",
		"    return tensor.device, copy.copy_(tensor, non_blocking=True)",
		"def back(sent):",
		"    return (sent if isinstance(sent, torch.Tensor) else",
		"            sent[1].to(sent[0], non_blocking=True))",
		"def to_host(forward, *args, **kwargs):",
		"    with torch.autograd.graph.saved_tensors_hooks(send, back):",
		"        return forward(*args, **kwargs)", NULL };
	static const char *const from_host[] = {
		"def from_host(forward, *args, **kwargs):",
		"    return to_host(partial(checkpoint, forward, use_reentrant=False), *args,",
		"                   **kwargs)", NULL };
	static const char *const lower[] = {
		"# kept in lower precision: only by 'vramcast run --choice'", NULL };
	static const char *const *const means[VC_BUDGET_WAYS] = { NULL, twice, products, lower,
								  sent, from_host };

	if (way == VC_BUDGET_PRODUCTS)
		say_products(e);
	if (way == VC_BUDGET_RECOMPUTE_OFFLOAD && !sends)
		lines(e, sent);
	lines(e, means[way]);
}

static size_t say_way(struct vc_emit *e, const struct vc_budget *b, const uint8_t *how,
		      enum vc_budget_do way, bool sends)
{
	static const char *const name[VC_BUDGET_WAYS] = { NULL, "twice", "but_products", NULL,
							  "to_host", "from_host" };
	size_t n = vc_budget_count(b, how, way);

	if (n)
		say_means(e, way, sends);
	if (!n || !name[way])
		return n;
	vc_emit_line(e, "    for name in [");
	for (size_t i = 0; i < b->n; i++) {
		const char *slash = strchr(b->at[i].name, '/');

		if (vc_budget_done(b, how, i) == way)
			vc_emit_line(e, "            \"%s\",",
				     slash ? slash + 1 : b->at[i].name);
	}
	vc_emit_line(e, "    ]:");
	vc_emit_line(e, "        layer = model.get_submodule(name)");
	vc_emit_line(e, "        layer.forward = partial(%s, layer.forward)", name[way]);
	return n;
}

void vc_budget_paste(struct vc_emit *e, const struct vc_budget *b, const uint8_t *how,
		    uint64_t limit)
{
	static const char *const imports[] = {
		"import torch", "from functools import partial",
		"from torch.utils.checkpoint import (CheckpointPolicy, checkpoint,",
		"                                    create_selective_checkpoint_contexts)", NULL };
	size_t again = 0, sent = 0;

	vc_emit_line(e, "  to paste behind what makes the model:");
	lines(e, imports);
	if (limit)
		vc_emit_line(e, "    torch.cuda.set_per_process_memory_fraction(%" PRIu64
			     " / torch.cuda.get_device_properties(0).total_memory)", limit);
	for (int way = VC_BUDGET_RECOMPUTE; way < VC_BUDGET_WAYS; way++) {
		size_t n = say_way(e, b, how, way, sent);

		again += way != VC_BUDGET_OFFLOAD && way != VC_BUDGET_LOWER ? n : 0;
		sent += way == VC_BUDGET_OFFLOAD ? n : 0;
	}
	if (again)
		vc_emit_line(e, "  statistics of batch normalization, and a cache of keys (turn it "
			     "off), see each batch twice then; not with 'vramcast run --choice'");
}
