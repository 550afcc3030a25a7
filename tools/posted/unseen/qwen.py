"""The first Qwen: fine-tunes and calls of its README, whose counter is not stated.

Model       Llama's layers with a bias on queries, keys and values, nothing tied: as Qwen2's, which
            memlab describes, and whose three matrices are one in the first Qwen
Recipe      finetune.py loads the checkpoint in bf16, and peft before 0.8 makes adapters in the
            weights' own format; autocast is left out. Rank 64 beside every linear layer of the
            blocks (c_proj is the name of two of them; c_attn has one pair of adapters and is asked
            with three), dropout 0.05, layers checkpointed, eight micro-batches of one sequence
Counter     taken for max_memory_allocated, as wherever a source does not name it; of several GPUs
            the figure is a sum, and each rank is taken to hold the same
Calls       the prompt is taken to be one token; the code of the checkpoints holds the old cache of
            all layers beside the new one, which torch.cat makes, as transformers 4.3x does
Refused     adapters beside GPTQ's weights, and caches in int8
"""

from memlab import Model, Recipe, Run, Sharding
from memlab.terms.lora import Lora
from memlab.terms.workspaces import cublas_workspaces

from .. import packed
from ..described import Described, Refused, capability

# L, D, N, F, V of each config.json; F is half of what intermediate_size says.
SHAPES = {
    "Qwen-1.8B": (24, 2048, 16, 5504, 151936),
    "Qwen-7B": (32, 4096, 32, 11008, 151936),
    "Qwen-14B": (40, 5120, 40, 13696, 152064),
    "Qwen-72B": (80, 8192, 64, 24576, 152064),
}
TARGETS = ("q", "k", "v", "out", "gate", "up", "down")
PACKED = {"BF16": None, "Int8": "gptq-int8", "Int4": "gptq"}


def describe(reading):
    """See the module.

    Raises      Refused
    """
    if reading.group == "inference":
        return called(reading)
    what = reading.what
    method, ranks = what["method"], what["gpus"]
    if method == "Q-LoRA":
        raise Refused("adapters beside weights that GPTQ has packed")
    told: dict = {"tokens": what["tokens"], "checkpoint": "block", "attention": "flash"}
    told |= {"micro_batches": 8, "loop": "trainer", "optimizer_impl": "foreach"}
    recipe = Recipe.named("bf16")
    if method == "Full-parameter":
        recipe = Recipe.named("zero")
        told |= {"devices": Sharding(data=ranks, zero=3, library="deepspeed")}
        del told["loop"], told["optimizer_impl"]  # the step that is described beside ZeRO 3
    else:
        saved = ("embedding", "lm_head") if method == "LoRA (emb)" else ()
        told["lora"] = Lora(64, TARGETS, dtype="bf16", dropout=0.05, saved=saved)
        if ranks > 1:
            zero = 3 if "Zero3" in method else 2
            told["devices"] = Sharding(data=ranks, zero=zero, library="deepspeed")
    more = (("cuBLAS workspaces", cublas_workspaces(capability(reading.device))),)
    return summed(Described(shape(what["model"]), recipe, Run(**told), "peak", more=more), ranks)


def called(reading):
    """A call of generate()."""
    what = reading.what
    if what.get("cache") == "int8":
        raise Refused("a cache in int8 of the model's own code")
    model = shape(what["model"])
    last = what["new"] - 1
    run = Run(phase="decode", batch=what["batch"], tokens=last, attention="sdpa")
    old = 2 * 2 * model.layers * what["batch"] * last * model.kv_heads * model.head_dim
    more = [("weights", packed.held(model, PACKED[what["precision"]])), ("old cache", old)]
    more += [("cuBLAS workspace", cublas_workspaces(capability(reading.device), threads=1))]
    return Described(model, Recipe.named("bf16"), run, "cache", more=tuple(more))


def shape(name):
    """The model of a checkpoint."""
    L, D, N, F, V = SHAPES[name]
    return Model(
        family="qwen2",
        name=name,
        layers=L,
        d_model=D,
        heads=N,
        d_ff=F,
        vocab=V,
        tied=False,
    )


def summed(said, ranks):
    """What so many ranks hold together, if each holds the same."""
    if ranks == 1:
        return said
    others = (ranks - 1) * said.bytes()
    more = (*said.more, ("other ranks", others))
    return Described(said.model, said.recipe, said.run, said.figure, said.stage, more)
