"""Answer.AI's train.py: LoRA and QLoRA under FSDP on two cards.

Recipe      bf16 all through, adapters too (peft before 0.12 makes them in the weights' format):
            rank 64 beside every linear layer, dropout 0.1; torch's AdamW; layers checkpointed; not
            clipped. QLoRA's base is NF4
Devices     FSDP's first version, whose parts are cut from one flat parameter a layer; memlab has
            FSDP2, which is asked in its place. "DDP" is FSDP with NO_SHARD: asked as DDP
Counter     max_memory_reserved of rank 0 over an epoch, where the row does not say allocated
Source      AnswerDotAI/fsdp_qlora, train.py: fsdp_main and its defaults
"""

from typing import Any

from memlab import Model, Recipe, Run, Sharding
from memlab.terms.lora import Lora
from memlab.terms.workspaces import cublas_workspaces

from ..described import Described, capability

TARGETS = ("q", "k", "v", "out", "gate", "up", "down")
MODELS = {
    "Llama-2-7b": "llama-2-7b",
    "Llama-2-70b": "llama-2-70b",
    "Mistral-7B-v0.2": "mistral-7b-v0.1",  # the same shape
}
YI: dict[str, Any] = {
    "layers": 60,
    "d_model": 7168,
    "d_ff": 20480,
    "heads": 56,
    "kv_heads": 8,
    "vocab": 64000,
}


def describe(reading):
    """See the module."""
    what = reading.what
    if what["ddp"]:
        devices = Sharding(data=what["gpus"])
    else:
        offload = "pinned" if what["cpu_offload"] else None
        devices = Sharding(data=what["gpus"], zero=3, cpu_offload=offload)
    base = "nf4" if what["method"] == "qlora" else None
    lora = Lora(what["rank"], TARGETS, base=base, dtype="bf16", dropout=what["dropout"])
    run = Run(
        batch=what["batch"],
        tokens=what["tokens"],
        checkpoint="block",
        lora=lora,
        devices=devices,
        window=0 if what["model"].startswith("Mistral") else None,  # v0.2 has none
    )
    figure = "allocated" if reading.id.endswith("/allocated") else "reserved"
    more = (("cuBLAS workspaces", cublas_workspaces(capability(reading.device))),)
    return Described(shape(what["model"]), Recipe.named("bf16"), run, figure, more=more)


def shape(name):
    """The model of a row."""
    if name == "Yi-34B":
        return Model(family="llama", name=name, tied=False, **YI)
    return Model.preset(MODELS[name])
