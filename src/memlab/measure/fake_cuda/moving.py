"""Parameters that move to the card: the same objects, on another device.

Source      PyTorch 2.13: torch.nn.Module._apply, torch.utils.swap_tensors
"""

import weakref
from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from .undo import Changes


def moving(changes: Changes, before_it: Callable[[Any], None] = lambda _: None) -> None:
    """Let `.to` and `.cuda` swap what is behind a parameter; `before_it` may refuse one."""
    before = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(True)
    changes.callback(torch.__future__.set_swap_module_params_on_conversion, before)
    swap = torch.utils.swap_tensors

    def swapped(one: Any, other: Any) -> None:
        before_it(one)
        own = dict(vars(one))
        swap(one, other)
        for name, value in own.items():  # what a library wrote on the parameter stays on it
            if name not in vars(one):
                setattr(one, name, value)

    # A weak reference (of the tracker, of the values) stays with its object, as it should.
    nothing = SimpleNamespace(**vars(weakref) | {"getweakrefs": lambda _: []})
    changes.replace(torch.utils, "weakref", nothing)
    changes.replace(torch.utils, "swap_tensors", swapped)


def optimizers(changes: Changes) -> None:
    """Let optimizers take foreach for tensors without values as for parameters on a card.

    Two lists: without the second, AdamW goes tensor by tensor and its temporaries are lost.
    """
    homes = map(import_module, ("torch.utils._foreach_utils", "torch.optim.optimizer"))
    lists = [home._foreach_supported_types for home in homes]
    for each in {id(each): each for each in lists}.values():
        each.append(FakeTensor)
        changes.callback(each.remove, FakeTensor)
