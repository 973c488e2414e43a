# SPDX-License-Identifier: Apache-2.0
"""world.py WAY - a small job that spreads a model over its ranks in one WAY, for comparing a rank that is
played alone (`vramcast dryrun --world N --rank R`) with the same rank beside real others (`--ranks N`)."""
import os
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

WIDTH, LAYERS, HEADS = 512, 4, 8


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.out = nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        h = self.norm(x)
        q, k, v = (f(h).unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2)
                   for f in (self.q, self.k, self.v))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(a.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(x)))


def body():
    return nn.Sequential(*[Block() for _ in range(LAYERS)]).cuda()


def train(model, optimizer, steps=3):
    for step in range(steps):
        loss = model(torch.randn(4, 128, WIDTH, device="cuda")).float().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        told = loss.detach().clone()
        dist.all_reduce(told, op=dist.ReduceOp.AVG)
        told.item()


def adam(parameters):
    return torch.optim.AdamW(parameters, lr=1e-3)


def ddp(n):
    model = nn.parallel.DistributedDataParallel(body(), device_ids=[torch.cuda.current_device()])
    train(model, adam(model.parameters()))


def ddp_gloo(n):
    model = nn.parallel.DistributedDataParallel(body(), process_group=dist.new_group(backend="gloo"))
    train(model, adam(model.parameters()))


def flex(n):
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, 256, 256, device="cuda")
    x = [torch.randn(1, 2, 256, 64, device="cuda", requires_grad=True) for _ in range(3)]
    torch.compile(lambda *a: flex_attention(*a, block_mask=mask).sum(), backend="aot_eager")(*x).backward()


def zero1(n):
    from torch.distributed.optim import ZeroRedundancyOptimizer
    model = nn.parallel.DistributedDataParallel(body(), device_ids=[torch.cuda.current_device()])
    train(model, ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=1e-3))


def fsdp1(n):
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy
    model = FullyShardedDataParallel(body(), auto_wrap_policy=ModuleWrapPolicy({Block}),
                                     device_id=torch.cuda.current_device())
    train(model, adam(model.parameters()))


def _fully(model, mesh):
    from torch.distributed.fsdp import fully_shard
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def fsdp2(n):
    model = _fully(body(), init_device_mesh("cuda", (n,)))
    train(model, adam(model.parameters()))


def hsdp(n):
    mesh = init_device_mesh("cuda", (2, n // 2), mesh_dim_names=("replicate", "shard"))
    model = _fully(body(), mesh)
    train(model, adam(model.parameters()))


def _split(model, mesh):
    from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,
                                                   parallelize_module)
    for layer in model:
        parallelize_module(layer, mesh, {
            "q": ColwiseParallel(), "k": ColwiseParallel(), "v": ColwiseParallel(),
            "out": RowwiseParallel(), "up": ColwiseParallel(), "down": RowwiseParallel()})
    return model


def tp(n):
    model = _split(body(), init_device_mesh("cuda", (n,)))
    train(model, torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False))


def tp_fsdp(n):
    mesh = init_device_mesh("cuda", (n // 2, 2), mesh_dim_names=("dp", "tp"))
    model = _fully(_split(body(), mesh["tp"]), mesh["dp"])
    train(model, adam(model.parameters()))


def cp(n):
    from torch.distributed.tensor.experimental import context_parallel
    from torch.nn.attention import SDPBackend, sdpa_kernel
    mesh, model = init_device_mesh("cuda", (n,)), body().bfloat16()
    optimizer = adam(model.parameters())
    for _ in range(3):
        x = torch.randn(4, 128 * n, WIDTH, device="cuda", dtype=torch.bfloat16)
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION), \
                context_parallel(mesh, buffers=[x], buffer_seq_dims=[1]):
            model(x).float().square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def pp(n):
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B
    rank, micro = dist.get_rank(), torch.zeros(1, 128, WIDTH, device="cuda")
    with torch.random.fork_rng(["cuda"]):
        stage = PipelineStage(Block().cuda(), rank, n, torch.device("cuda"), input_args=(micro,),
                              output_args=(micro,))
    schedule = Schedule1F1B(stage, 8, loss_fn=lambda y, t: (y - t).square().mean())
    optimizer = adam(stage.submod.parameters())
    for _ in range(3):
        x = torch.randn(8, 128, WIDTH, device="cuda")
        if n == 1:
            schedule.step(x, target=x)
        elif rank == 0:
            schedule.step(x)
        elif rank == n - 1:
            schedule.step(target=x)
        else:
            schedule.step()
        optimizer.step()
        optimizer.zero_grad()


def pp_shapes(n):
    """A pipeline whose stages tell each other what they hand on."""
    from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
    rank = dist.get_rank()
    stage = PipelineStage(Block().cuda(), rank, n, torch.device("cuda"))
    schedule = ScheduleGPipe(stage, 4, loss_fn=lambda y, t: (y - t).square().mean())
    optimizer = adam(stage.submod.parameters())
    for _ in range(3):
        x = torch.randn(8, 128, WIDTH, device="cuda")
        if rank == 0:
            schedule.step(x)
        else:
            schedule.step(**({"target": x} if rank == n - 1 else {}))
        optimizer.step()
        optimizer.zero_grad()


def ep(n):
    """A layer of experts, to which a router sends each token twice."""
    expert, gate = Block().up.cuda(), nn.Linear(WIDTH, n).cuda()
    optimizer = adam(list(expert.parameters()) + list(gate.parameters()))
    for _ in range(3):
        x = torch.randn(128 * n, WIDTH, device="cuda")
        order = gate(x).softmax(-1).topk(min(2, n - 1), dim=-1)[1].flatten()
        sent = torch.bincount(order, minlength=n)
        got = torch.empty_like(sent)
        dist.all_to_all_single(got, sent)
        mine = torch.empty(int(got.sum()), WIDTH, device="cuda")
        dist.all_to_all_single(mine, x.repeat_interleave(min(2, n - 1), 0)[order.argsort()], got.tolist(), sent.tolist())
        mine.requires_grad_()
        (expert(mine).square().mean() + gate(x).square().mean()).backward()
        optimizer.step()
        optimizer.zero_grad()


def ep_mask(n):
    """Experts whose tokens a mask names that all ranks gather, as Megatron's all-gather dispatcher."""
    torch.use_deterministic_algorithms(True, warn_only=True)  # it then writes the mask by index
    expert, gate, rank = Block().up.cuda(), nn.Linear(WIDTH, 2 * n).cuda(), dist.get_rank()
    for _ in range(2):
        x = torch.randn(65536 * 4 // n, WIDTH, device="cuda")
        scores = gate(x)
        mask = torch.zeros_like(scores)
        mask.index_put_((torch.arange(len(x), device="cuda").unsqueeze(1), scores.topk(2)[1]),
                        torch.ones(len(x), 2, device="cuda"))
        everyone = torch.empty(n * len(x), 2 * n, dtype=torch.bool, device="cuda")
        dist.all_gather_into_tensor(everyone, mask.bool())
        mine = everyone[:, 2 * rank:2 * rank + 2].contiguous()
        rows = mine.T.contiguous().nonzero()[:, 1]
        assert len(rows) == mine.sum().item() == 2 * len(x), (len(rows), mine.sum())
        taken = torch.empty(n * len(x), WIDTH, device="cuda").index_select(0, rows).requires_grad_()
        (expert(taken).square().mean() + scores.square().mean()).backward()


def symmetric(n):
    """Memory that all ranks see, also through an NVSwitch: communication inside of products."""
    from torch.distributed import _symmetric_memory as memory
    group = dist.group.WORLD.group_name
    mine = memory.empty((256, WIDTH), dtype=torch.bfloat16, device="cuda")
    memory.rendezvous(mine, group)
    weight = torch.randn(WIDTH, WIDTH, dtype=torch.bfloat16, device="cuda")
    for _ in range(3):
        torch.ops.symm_mem.fused_all_gather_matmul(mine, [weight], 0, group)
        torch.ops.symm_mem.one_shot_all_reduce(mine, "sum", group)
        torch.ops.symm_mem.multimem_all_reduce_(mine, "sum", group)


def objects(n):
    """What ranks tell each other beside tensors, by NCCL and by gloo."""
    host = dist.new_group(backend="gloo")
    for group in (None, host):
        table = [None] * n
        dist.all_gather_object(table, {"layers": LAYERS}, group=group)
        assert all(entry == {"layers": LAYERS} for entry in table), table
        told = [{"width": WIDTH}]
        dist.broadcast_object_list(told, src=0, group=group)
        assert told[0]["width"] == WIDTH
        dist.barrier(group=group)
    halves = [dist.new_group(list(range(i, n, 2))) for i in range(2)]
    x = torch.ones(1 << 18, device="cuda")
    dist.all_reduce(x, group=halves[dist.get_rank() % 2])
    parts = [torch.empty_like(x) for _ in range(n // 2)]
    dist.all_gather(parts, x, group=halves[dist.get_rank() % 2])


def _through(model, optimizer, accelerator):
    model, optimizer = accelerator.prepare(model, optimizer)
    for _ in range(3):
        loss = model(torch.randn(4, 128, WIDTH, device="cuda")).float().square().mean()
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


def accelerate(n):
    from accelerate import Accelerator
    model = body()
    _through(model, adam(model.parameters()), Accelerator(mixed_precision="bf16"))


def accelerate_fsdp(n):
    from accelerate import Accelerator, FullyShardedDataParallelPlugin
    plugin = FullyShardedDataParallelPlugin(fsdp_version=2, auto_wrap_policy="transformer_based_wrap",
                                            transformer_cls_names_to_wrap=["Block"])
    model = body()
    _through(model, adam(model.parameters()), Accelerator(mixed_precision="bf16", fsdp_plugin=plugin))


def _zero(stage):
    """DeepSpeed's ZeRO, with buckets that are smaller than the model."""
    import deepspeed
    model = body()
    engine, *_ = deepspeed.initialize(model=model, optimizer=adam(model.parameters()), config={
        "train_micro_batch_size_per_gpu": 4, "bf16": {"enabled": True}, "gradient_clipping": 1.0,
        "zero_allow_untested_optimizer": True,
        "zero_optimization": {"stage": stage, "reduce_bucket_size": 2000000,
                              "allgather_bucket_size": 2000000, "stage3_prefetch_bucket_size": 1000000,
                              "stage3_param_persistence_threshold": 1000}})
    for _ in range(3):
        x = torch.randn(4, 128, WIDTH, device="cuda", dtype=torch.bfloat16)
        engine.backward(engine(x).float().square().mean())
        engine.step()


def deepspeed0(n):
    _zero(0)


def deepspeed1(n):
    _zero(1)


def deepspeed2(n):
    _zero(2)


def deepspeed3(n):
    _zero(3)


def lightning(n):
    from lightning.fabric import Fabric
    from lightning.fabric.strategies import FSDPStrategy
    fabric = Fabric(accelerator="cuda", devices=n, precision="bf16-mixed",
                    strategy=FSDPStrategy(auto_wrap_policy={Block}))
    fabric.launch()
    model = fabric.setup(body().cpu())
    optimizer = fabric.setup_optimizers(adam(model.parameters()))
    for _ in range(3):
        fabric.backward(model(torch.randn(4, 128, WIDTH, device="cuda")).float().square().mean())
        optimizer.step()
        optimizer.zero_grad()


def megatron(n):
    """Tensor parallel layers of megatron-core, with its optimizer in shares."""
    from megatron.core import parallel_state, tensor_parallel
    from megatron.core.distributed import (DistributedDataParallel, DistributedDataParallelConfig,
                                           finalize_model_grads)
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
    from megatron.core.transformer import TransformerConfig
    parallel_state.initialize_model_parallel(2)
    tensor_parallel.model_parallel_cuda_manual_seed(0)
    half = {"bf16": True, "params_dtype": torch.bfloat16}
    config = TransformerConfig(num_layers=LAYERS, hidden_size=WIDTH, num_attention_heads=HEADS,
                               tensor_model_parallel_size=2,
                               masked_softmax_fusion=False, gradient_accumulation_fusion=False, **half)
    model = GPTModel(config, get_gpt_layer_local_spec(), vocab_size=1024,
                     max_sequence_length=128).cuda().bfloat16()
    share = {"use_distributed_optimizer": True}
    model = DistributedDataParallel(config, DistributedDataParallelConfig(grad_reduce_in_fp32=True, **share), model)
    optimizer = get_megatron_optimizer(OptimizerConfig(lr=1e-3, clip_grad=1.0, **half, **share), [model])
    ids = torch.randint(0, 1024, (4, 128), device="cuda")
    for _ in range(3):
        model.zero_grad_buffer()
        optimizer.zero_grad()
        model(ids, ids.clone(), None, labels=ids).float().mean().backward()
        finalize_model_grads([model])
        optimizer.step()


WAYS = {f.__name__: f for f in (accelerate, accelerate_fsdp, deepspeed0, deepspeed1, deepspeed2, deepspeed3,
                                lightning, megatron, ddp, ddp_gloo, flex, zero1, fsdp1, fsdp2, hsdp, tp, tp_fsdp, cp, pp, pp_shapes, ep, ep_mask,
                                symmetric, objects)}


def main():
    torch.manual_seed(0)
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    if sys.argv[1].endswith("+device"):  # communicators are split, not made anew
        dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
    else:
        # options are NCCL's, and gloo is handed them too
        dist.init_process_group("cpu:gloo,cuda:nccl", pg_options=dist.ProcessGroupNCCL.Options())
    WAYS[sys.argv[1].partition("+")[0]](dist.get_world_size())
    torch.cuda.synchronize()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
