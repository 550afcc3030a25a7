"""Optimizers as their code runs them, operator by operator: one file each.

An optimizer is a function `update(engine, each, loop)`: one `step()`, which makes the states that
are missing and then updates. `each()` goes through the parameters that it is given, in their order;
`loop` is one of memlab.Run's `optimizer_impl`. As in memlab.step.networks, a Python variable keeps
a tensor alive exactly as in the real code.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

TORCH = (("forloop", "foreach", "fused"), {"cpu": "forloop", "cuda": "foreach"})
ONE_BY_ONE = (("forloop",), {"cpu": "forloop", "cuda": "forloop"})
TORCHAO = (("forloop", "compiled"), {"cpu": "compiled", "cuda": "compiled"})

# Recipe.optimizer: the module, the loops that it has, and by backend the one it takes by itself.
OPTIMIZERS: dict[str, tuple[str, tuple[str, ...], dict[str, str]]] = {
    "adamw": ("adamw", *TORCH),
    "amsgrad": ("adamw", *TORCH),
    "sgd": ("sgd", *TORCH),
    "momentum": ("sgd", *TORCH),
    "adafactor": ("adafactor", ("forloop", "foreach"), TORCH[1]),
    "hf_adafactor": ("hf_adafactor", *ONE_BY_ONE),
    "lion": ("lion", *ONE_BY_ONE),
    "muon": ("muon", *TORCH),  # of AdamW beside it; its own goes parameter by parameter
    "adamw8bit": ("low_bit", *TORCHAO),
    "adamw4bit": ("low_bit", *TORCHAO),
    "adamw_fp8": ("low_bit", *TORCHAO),
    # On a CPU it is another code, with temporaries of its own.
    "bnb_adamw8bit": ("bnb", ("fused",), {"cuda": "fused"}),
}


def optimizer(name: str) -> Callable[..., Any]:
    """The function `update` of an optimizer."""
    module = importlib.import_module(f".{OPTIMIZERS[name][0]}", __name__)
    made = getattr(module, name)
    return made  # type: ignore[no-any-return]
