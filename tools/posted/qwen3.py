"""Qwen3's speed benchmark: transformers' generate() on one H20, the whole of it measured at once.

Recipe      weights as the checkpoint has them: bf16, FP8, GPTQ with 8 bits, AWQ with 4
Run         the last of 2,048 new tokens is read after all others. The script asks for the peak of
            the whole call, but its figures have no peak of the prompt: between 14,336 and 30,720
            tokens they grow by the bytes of keys and values alone, to the MiB. So the figure is
            taken for what stands after the last token
Attention   flash_attention_2; AutoAWQ ran in an environment without it, where SDPA gets keys and
            values of one layer repeated for every query head (repeat_kv)
Head        the FP8 checkpoints of tied models hold their head a second time: their figures are
            higher by V · D · 2 bytes, and those of untied ones are not. Seen, not derived
Workspace   the one of cuBLAS for the thread of the forward pass, on Hopper 32 MiB
"""

from memlab import Model, Recipe, Run
from memlab.terms.workspaces import cublas_workspaces

from . import packed
from .described import Described, capability

KINDS = {"BF16": None, "FP8": "fp8-block", "GPTQ-Int8": "gptq-int8", "AWQ-INT4": "awq"}


def describe(reading):
    """See the module."""
    what = reading.what
    model = Model.preset(what["model"].lower())
    kind = KINDS[what["precision"]]
    before = what["input"] + what["new"] - 2  # in the cache, when the last token but one is read
    attention = "sdpa" if kind == "awq" else "flash"
    run = Run(phase="decode", batch=what["batch"], tokens=before, attention=attention)
    more = [("weights", packed.held(model, kind))]
    more += [("cuBLAS workspace", cublas_workspaces(capability(reading.device), threads=1))]
    if kind == "fp8-block" and model.tied:
        more += [("a second head", 2 * model.vocab * model.d_model)]
    if kind == "awq":
        repeated = 2 * 2 * what["batch"] * (before + 1) * model.heads * model.head_dim
        more += [("repeated keys and values", repeated)]
    return Described(model, Recipe.named("bf16"), run, "cache", more=tuple(more))
