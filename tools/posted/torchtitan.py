"""torchtitan and torchao: Llama 3 8B under FSDP2, the bytes that each rank reserves.

Model       torchtitan's own, of the same shape: embedding and head are two tensors
Recipe      weights, gradients and AdamW's states in fp32; computed in bf16 (MixedPrecisionPolicy)
Ranks       context parallelism divides the tokens, and FSDP2 the weights over all ranks
            (dp_shard_cp)
Batch       of the rows without compile: pull request 778 of torchtitan, which their page cites
Peak        what stays, and beside it what tools/posted/torchtitan_peak.py derives
Loss        until 2025-03 it is not compiled (torchtitan 0.0.2: components/loss.py), from 2025-04 on
            it is where the model is: what the compiler keeps of the logits is not derived, and rows
            of later versions are refused
"""

import re

from memlab import Model, Recipe, Run
from memlab.recipe.parallelism import Sharding
from memlab.terms.workspaces import cublas_workspaces

from .described import Described, Refused, capability
from .torchtitan_peak import beside

KEPT = {"none": ("all",), "every 2nd layer": ("all", "input"), "full": ("input",)}
MODEL = Model.preset("llama-3.1-8b")


def describe(reading):
    """See the module.

    Raises      Refused
    """
    name, what = reading.id, reading.what
    if "nvfp4" in name:
        raise Refused("the local batch is not stated")
    if "70B" in name or "405B" in name:
        raise Refused("ranks of a tensor or a pipeline under torch.compile, with a divided loss")
    if "table" in what:
        return ranks(reading, **table(what))
    how = {"batch": what.get("batch"), "tokens": what["tokens"], "shards": 8}
    if "torch 2.7" in name:
        return ranks(reading, kept=("products",), compiled=True, **how)
    if "nocompile" in name:
        kept = KEPT[what["checkpointing"]]
        if kept != ("input",) and "bf16 eager" not in name:
            raise Refused("what a layer keeps of its float8 products")
        return ranks(reading, kept=kept, **how)
    raise Refused("a loss under torch.compile")


def table(what):
    """Ranks, micro-batch, tokens of a rank, and what is turned on, of a row of the benchmark."""
    name, run = what["table"], what["run"]
    tokens, _, split = run.partition("/CP") if "/CP" in run else ("8192", "", "1")
    found = re.search(r"FSDP(\d+)", name)
    return {
        "shards": int(found[1]) if found else 8,
        "batch": int(name.partition(" b")[2][0]),
        "tokens": int(tokens) // int(split),
        "kept": ("input",) if "full AC" in name else ("products",),
        "compiled": run != "eager",
    }


def ranks(reading, *, shards, batch, tokens, kept, compiled=False):
    """One of so many ranks."""
    run = Run(batch=batch, tokens=tokens, devices=Sharding(data=shards, zero=3))
    more = beside(MODEL, batch * tokens, kept=kept, compiled=compiled)
    more += [("cuBLAS workspaces", cublas_workspaces(capability(reading.device)))]
    return Described(MODEL, Recipe.named("fp32"), run, "step", more=tuple(more))
