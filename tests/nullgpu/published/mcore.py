# SPDX-License-Identifier: Apache-2.0
"""mcore.py TP PP [dist] [fp16] [unfused] - three steps of the small GPT of Megatron-LM's functional tests
(12 layers of width 512, 1,024 tokens, micro batches of 4, 32 sequences a step), made of megatron-core and its
local layers; prints what its log calls mem-allocated-bytes and mem-max-allocated-bytes."""
import os
import sys
import types

import torch
import torch.distributed as dist

LAYERS, WIDTH, HEADS, LENGTH, MICRO, GLOBAL, STEPS = 12, 512, 8, 1024, 4, 32, 3
VOCABULARY, DIVISIBLE = 50257, 128


def fused_softmax():
    """Apex's kernels of that name are not installed: what they allocate is a result as large as the input,
    and the gradient lies where the gradient of the result was."""
    for name in ("scaled_upper_triang_masked_softmax_cuda", "scaled_masked_softmax_cuda", "scaled_softmax_cuda"):
        module = types.ModuleType(name)
        module.forward = lambda x, *rest: torch.empty_like(x)
        module.backward = lambda grad, result, scale: grad
        module.get_batch_per_block = lambda sq, sk, b, np: 1
        sys.modules[name] = module


def build(tp, pp, words):
    from megatron.core import parallel_state as mpu, tensor_parallel
    from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
    from megatron.core.transformer import TransformerConfig
    from megatron.core.transformer.module import Float16Module
    half = "fp16" in words
    kind = {"fp16": half, "bf16": not half, "params_dtype": torch.float16 if half else torch.bfloat16}
    mpu.initialize_model_parallel(tp, pp)
    tensor_parallel.model_parallel_cuda_manual_seed(1234)
    config = TransformerConfig(
        num_layers=LAYERS, hidden_size=WIDTH, num_attention_heads=HEADS, tensor_model_parallel_size=tp,
        pipeline_model_parallel_size=pp, pipeline_dtype=kind["params_dtype"], apply_query_key_layer_scaling=True,
        attention_softmax_in_fp32=True, masked_softmax_fusion="unfused" not in words, bias_activation_fusion=True,
        bias_dropout_fusion=True, gradient_accumulation_fusion=False, deterministic_mode=True,
        batch_p2p_comm=True, **kind)
    step = DIVISIBLE * tp
    model = GPTModel(config=config, transformer_layer_spec=get_gpt_layer_local_spec(),
                     vocab_size=(VOCABULARY + step - 1) // step * step, max_sequence_length=LENGTH,
                     pre_process=mpu.is_pipeline_first_stage(), post_process=mpu.is_pipeline_last_stage(),
                     parallel_output=True, share_embeddings_and_output_weights=True,
                     position_embedding_type="learned_absolute").cuda()
    for parameter in model.parameters():
        tensor_parallel.set_defaults_if_not_set_tensor_model_parallel_attributes(parameter)
    shard = "dist" in words
    ddp = DistributedDataParallelConfig(grad_reduce_in_fp32=not half, overlap_grad_reduce=shard,
                                        overlap_param_gather=shard, use_distributed_optimizer=shard)
    model = DistributedDataParallel(config, ddp, Float16Module(config, model))
    optimizer = get_megatron_optimizer(OptimizerConfig(
        optimizer="adam", lr=1.5e-4, weight_decay=0.01, clip_grad=1.0, log_num_zeros_in_grad=True,
        use_distributed_optimizer=shard, overlap_param_gather=shard, initial_loss_scale=2.0 ** 32, **kind), [model])
    config.grad_scale_func = optimizer.scale_loss
    from megatron.core.distributed import finalize_model_grads
    config.finalize_model_grads_func = finalize_model_grads
    if shard:
        config.no_sync_func = model.no_sync
    return model, optimizer


def forward(iterator, model):
    tokens = torch.randint(0, 50000, (MICRO, LENGTH), device="cuda")
    labels = torch.randint(0, 50000, (MICRO, LENGTH), device="cuda")
    wanted = torch.ones(MICRO, LENGTH, device="cuda")
    places = torch.arange(LENGTH, device="cuda").repeat(MICRO, 1)
    mask = torch.ones(MICRO, 1, LENGTH, LENGTH, dtype=torch.bool, device="cuda")
    result = model(tokens, places, mask, labels=labels)

    def loss(result):
        total = torch.sum(result.view(-1).float() * wanted.view(-1))
        return total / wanted.sum(), {"lm loss": total.detach().clone()}
    return result, loss


def main():
    tp, pp, words = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    if "unfused" not in words:
        fused_softmax()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    import megatron.core.jit
    if hasattr(megatron.core.jit, "disable_jit_fuser"):
        megatron.core.jit.disable_jit_fuser()
    from megatron.core.pipeline_parallel import get_forward_backward_func
    model, optimizer = build(tp, pp, words)
    peaks = []
    for _ in range(STEPS):
        model.zero_grad_buffer()
        optimizer.zero_grad()
        losses = get_forward_backward_func()(
            forward_step_func=forward, data_iterator=None, model=[model], seq_length=LENGTH,
            num_microbatches=GLOBAL // MICRO * tp * pp // dist.get_world_size(), micro_batch_size=MICRO,
            forward_only=False)
        optimizer.step()
        stats = torch.cuda.memory_stats()
        peaks.append((stats["allocated_bytes.all.current"], stats["allocated_bytes.all.peak"]))
    print("published first %d, allocated %d, peak %d" % (peaks[0][1], *peaks[-1]), flush=True)
    del losses
    os._exit(0)  # nobody waits for this rank


if __name__ == "__main__":
    main()
