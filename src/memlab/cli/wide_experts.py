"""What of a base in 4 bits stays in 16: the experts of a mixture, and how many values they are."""

from __future__ import annotations

from ..adapters.lora import coded_layers
from ..base.message import Message
from ..model import Model
from ..recipe import Recipe
from ..run import Run

EXPERTS = (
    "{kept} of {all} billion values stay in {format} beside {base}: experts, {experts} billion, "
    "are parameters of three dimensions, and bitsandbytes replaces nn.Linear alone"
)


def wide_experts(model: Model, recipe: Recipe, how: Run) -> list[str]:
    """A line about a mixture whose base is stored in fewer bits; none of another run.

    Source      transformers, integrations/bitsandbytes.py: replace_with_bnb_linear;
                github.com/bitsandbytes-foundation/bitsandbytes/issues/1849
    """
    base = None if how.lora is None else how.lora.base
    if base is None:
        return []
    experts = sum(
        tensor.count for tensor in model.tensors() if tensor.name.split(".")[-1][:8] == "experts_"
    )
    if not experts:
        return []
    coded = sum(tensor.count for tensor in coded_layers(model).values())
    kept = model.parameter_count - coded
    sizes = {"kept": kept, "all": model.parameter_count, "experts": experts}
    said = {name: f"{count / 1e9:.2f}" for name, count in sizes.items()}
    return [Message(EXPERTS, format=recipe.weights, base=base, **said)]
