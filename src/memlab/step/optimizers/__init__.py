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

# Recipe.optimizer: its module. The loops that each has stand in memlab.run.optimizer_loops.
MODULES = {
    "amsgrad": "adamw",
    "wide_adamw": "adamw",
    "offload_adamw": "adamw",
    "momentum": "sgd",
    "adamw8bit": "low_bit",
    "adamw4bit": "low_bit",
    "adamw_fp8": "low_bit",
    "bnb_adamw": "bnb",
    "bnb_adamw8bit": "bnb",
    "bnb_paged_adamw": "bnb",
    "bnb_paged_adamw8bit": "bnb",
}


def optimizer(name: str) -> Callable[..., Any]:
    """The `update` of an optimizer, by its name in memlab.run.optimizer_loops.step_name."""
    name, _, rank = name.partition("/")
    module = importlib.import_module(f".{MODULES.get(name, name)}", __name__)
    made = module.of_rank(int(rank)) if rank else getattr(module, name)
    return made  # type: ignore[no-any-return]
