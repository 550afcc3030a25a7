"""Megatron-LM's golden values: what its functional tests logged on eight GPUs of a DGX H100.

Recipe      weights in bf16 or fp16, an fp32 master, fp32 gradients in one buffer and AdamW in
            fp32. --use-distributed-optimizer divides master and states among the data-parallel
            ranks, which is ZeRO 1
fp16        only --bf16 turns on fp32 gradients; with --fp16 they are in fp16, and the optimizer's
            fp32 copy of them (main_param.grad) stays until the next step, as large as the master
            (megatron/training/arguments.py; core/optimizer/optimizer.py)
Ranks       eight, all that a DGX has; what tensor, pipeline and context do not take is data
Stage       the last one: the last rank is the one that logs. Where stages are uneven, `last` has
            the layers of each of its chunks, from --decoder-last-pipeline-num-layers or, where
            embedding and loss count as a layer each, by core/transformer/transformer_block.py:
            the loss is then a chunk without layers. The model is told as if all stages were it
Local       without Transformer Engine the scores of attention are multiplied into one buffer that
            stays: [B · N / tensor, T, T] (megatron/core/transformer/dot_product_attention.py)
Pipeline    between steps each chunk of layers of the last rank still has the input of its last
            micro-batch (decoder.input_tensor) and that input's gradient (retain_grad), both of
            tokens x width in 16 bits; nothing empties them before the next one comes
            (core/pipeline_parallel/schedules.py: forward_step, backward_step;
            core/transformer/transformer_block.py: set_input_tensor). At the peak inputs count
            among the activations
Peak        what stays, and beside it what tools/posted/megatron_peak.py derives
Workspaces  the tests set CUBLAS_WORKSPACE_CONFIG=:4096:8, 32 MiB. PyTorch's for the threads of
            forward and backward, and with Transformer Engine a third one, its own
"""

from memlab import Model, Recipe, Run, estimate
from memlab.recipe.parallelism import Sharding
from memlab.terms.workspaces import cublas_workspaces

from .described import Described, Refused
from .megatron_peak import beside, chunks, stage, values

TRANSFORMER_ENGINE = 32 * 2**20  # get_cublas_workspace_size_bytes() on Hopper
INPUTS = "inputs of chunks and their gradients"
# Words in a test's name whose flags change what stays, and what of it memlab does not say.
OTHER = {
    "gpt_grpo": "reinforcement learning beside an inference engine",
    "check_grads": "the test keeps gradients for a comparison",
    "multi_dist_optimizer_instances": "several instances of the distributed optimizer",
    "defer_embedding_wgrad": "gradients of the output head that are put off",
    "_mla": "latent attention in Megatron's layout",
    "_release": "a release test, whose number of nodes is not stated",
    "_zp_z3": "Megatron's own FSDP",
    "native_fp8": "fp8 weights in Transformer Engine's layout",
}


def describe(reading):
    """See the module.

    Raises      Refused
    """
    name, what = reading.id, reading.what
    for word, reason in OTHER.items():
        if word in name:
            raise Refused(reason)
    engine = what["impl"] == "transformer_engine"
    threads = cublas_workspaces(9)
    more: list = [("cuBLAS workspaces", threads)]
    more += [("Transformer Engine's workspace", TRANSFORMER_ENGINE)] * engine
    if not engine:
        rows, tokens = int(what["mbs"]) * what["heads"] // what["tp"], int(what["seq"])
        more += [("buffer of the scores", 2 * rows * tokens**2)]
    recipe = Recipe.named("megatron")
    if not what["bf16"]:
        recipe = recipe.replace(weights="fp16", gradients="fp16")
    split = what["tp"] * what["pp"] * what["cp"]
    devices = Sharding(
        data=what["gpus"] // split,
        tensor=what["tp"],
        pipeline=what["pp"],
        context=what["cp"],
        zero=1 if what["dist_optimizer"] else 0,
    )
    shape, run, last = model(what), Run(devices=devices), what["pp"] - 1
    if not what["bf16"]:
        master = estimate(shape, recipe, run, stage=last)["master"].derived
        more += [("fp32 copies of the gradients", master)]
    if "max_memory_allocated" in reading.counter:
        more += beside(what)
    elif what["pp"] > 1:
        more += [(INPUTS, 2 * chunks(what) * 2 * values(what))]
    return Described(shape, recipe, run, "resident", last, tuple(more))


def model(what, *, layers=None):
    """Megatron's GPT: biases unless --disable-bias-linear, LayerNorm, learned positions or RoPE.

    layers      of the whole model; by default as if each stage were the last one
    """
    rope = what["rope"]
    return Model(
        family="llama",
        name="Megatron GPT",
        layers=stage(what) * what["pp"] if layers is None else layers,
        d_model=what["d_model"],
        heads=what["heads"],
        kv_heads=what["kv"],
        d_ff=what["ffn"],
        vocab=what["vocab_padded"],
        positions=int(what["seq"]),
        gated=what["swiglu"],
        norm="layernorm",
        fused_qkv=True,
        fused_gate=what["swiglu"],
        qkv_bias=what["bias"],
        out_bias=what["bias"],
        ff_bias=what["bias"],
        learned_positions=not rope,
        tied=not what["untied"],
    )
