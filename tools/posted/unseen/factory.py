"""LLaMA-Factory's comparison: LoRA of Llama-2-7B, four sequences of at most 1,024 tokens.

Recipe      the base in bf16 or doubly quantized NF4, asked as NF4; adapters of rank 8 beside
            queries and values, LLaMA-Factory's default then, in fp32; layers checkpointed, its
            default too
Lengths     the limit
Counter     taken for max_memory_allocated, as wherever a source does not name it
Refused     Unsloth's kernels
"""

from memlab import Model, Recipe, Run
from memlab.terms.lora import Lora
from memlab.terms.workspaces import cublas_workspaces

from ..described import Described, Refused, capability


def describe(reading):
    """See the module.

    Raises      Refused
    """
    what = reading.what
    if what["unsloth"]:
        raise Refused("Unsloth's own kernels")
    run = Run(
        batch=what["batch"],
        tokens=what["tokens"],
        micro_batches=what["accumulation"],
        loop="trainer",
        checkpoint="block",
        attention=what["attention"],
        lora=Lora(what["rank"], ("q", "v"), base="nf4" if what["bits"] == 4 else None),
    )
    more = (("cuBLAS workspaces", cublas_workspaces(capability(reading.device))),)
    return Described(Model.preset("llama-2-7b"), Recipe.named("bf16"), run, "peak", more=more)
