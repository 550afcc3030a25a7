"""What a script ran, read from its rehearsal: calls, matrices, updates, computing, copies.

`python -m memlab.capstone.observed FILE NUMBER` prints it as JSON: a script of somebody else runs
in a process of its own.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections import Counter
from typing import Any
from weakref import WeakSet

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.utils.flop_counter import flop_registry

from ..measure.fake_cuda.undo import Changes
from ..measure.storages import plain, tensors
from ..rehearse import of_command
from ..rehearse.answer import Rehearsal
from .cases import Case, cases

COPY, MOVE = torch.ops.aten.copy_.default, torch.ops.aten._to_copy.default
# Products that torch.utils.flop_counter does not know, [..., K] by a matrix -> [..., N]: those that
# autograd takes apart, but not inside of a function of its own, and those of narrow matrices.
PRODUCTS = {"aten::linear", "aten::matmul"} | {
    f"bitsandbytes::{name}" for name in ("gemm_4bit", "gemv_4bit", "int8_linear_matmul")
}


class Observer:
    """Looks on while a program runs, and changes nothing.

    calls       (rows, tokens) that went through the embedding -> in how many forward passes
    matrices    shape -> how many modules of it were called, or are part of one that was
    bits        the fewest in which one of them stores a weight
    forward     floating-point operations outside of backward passes; `backward` those inside, with
                what is computed again there
    moved       bytes that crossed between host and GPU after the first call
    updates     steps of the optimizer, or of the one that stepped most often
    trained     id of a parameter that an optimizer stepped with a gradient -> its weights
    states      the same -> bits of its states
    Source      of the operations: torch.utils.flop_counter
    """

    def __init__(self, vocab: int) -> None:
        self.vocab = vocab
        self.calls: Counter[tuple[int, int]] = Counter()
        self.matrices: Counter[tuple[int, int]] = Counter()
        self.bits = 0
        self.forward = self.backward = self.moved = 0
        self.trained: dict[int, int] = {}
        self.states: dict[int, int] = {}
        self._known: WeakSet[Any] = WeakSet()
        self._steps: Counter[int] = Counter()

    @property
    def updates(self) -> int:
        return max(self._steps.values(), default=0)

    def enter(self, changes: Changes) -> None:
        """Listen to modules and optimizers for as long as the changes last."""
        for hook in (
            register_module_forward_pre_hook(self._called),
            register_optimizer_step_pre_hook(self._steps_now),
            register_optimizer_step_post_hook(self._stepped),
        ):
            changes.callback(hook.remove)

    def sees(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        """An operator that ran."""
        if func in (COPY, MOVE):
            made, given = (args[0], args[1]) if func is COPY else (result, args[0])
            if self.calls and _type(made) != _type(given):
                self.moved += given.numel() * given.element_size()
            return
        if formula := flop_registry.get(getattr(func, "overloadpacket", None)):
            count = formula(*args, **(kwargs or {}), out_val=result)
        elif isinstance(func, torch._ops.OpOverload) and func._schema.name in PRODUCTS:
            count = 2 * result.numel() * args[0].shape[-1]
        else:
            return
        if _in_backward():
            self.backward += count
        else:
            self.forward += count

    def _called(self, module: nn.Module, arguments: tuple[Any, ...]) -> None:
        if module not in self._known:
            inside = [each for each in module.modules() if each not in self._known]
            self._known.update(inside)
            self.matrices.update(shape for each in inside if (shape := _shape(each)))
        if isinstance(module, nn.Embedding) and module.num_embeddings == self.vocab:
            ids = arguments[0] if arguments else None
            if isinstance(ids, torch.Tensor) and ids.dim() == 2 and not _in_backward():
                self.calls[ids.shape[0], ids.shape[1]] += 1

    def _steps_now(self, optimizer: Any, *_: Any) -> None:
        for parameter in _parameters(optimizer):
            if parameter.grad is not None:
                self.trained[id(parameter)] = parameter.numel()

    def _stepped(self, optimizer: Any, *_: Any) -> None:
        self._steps[id(optimizer)] += 1
        for parameter in _parameters(optimizer):
            if id(parameter) in self.trained:
                kept = tensors(optimizer.state.get(parameter, {}))
                self.states[id(parameter)] = sum(
                    8 * part.untyped_storage().nbytes()
                    for each in kept
                    for part in plain(each)
                    if part.numel() > 1  # but a count of steps
                )
        if not self.bits:
            self.bits = min(map(_bits, filter(_shape, self._known)), default=0)


def _in_backward() -> bool:
    return torch._C._current_graph_task_id() != -1


def _type(tensor: Any) -> str:
    return str((getattr(tensor, "fake_device", None) or tensor.device).type)


def _parameters(optimizer: Any) -> list[Any]:
    return [each for group in optimizer.param_groups for each in group["params"]]


def _shape(module: Any) -> tuple[int, int] | None:
    """Of its matrix, however that is stored."""
    if isinstance(module, nn.Embedding):
        return module.num_embeddings, module.embedding_dim
    return (module.out_features, module.in_features) if isinstance(module, nn.Linear) else None


def _bits(module: Any) -> int:
    """In which a module stores each weight of its matrix, without scales."""
    rows, columns = _shape(module) or (1, 1)
    stored = sum(8 * part.untyped_storage().nbytes() for part in plain(module.weight))
    return int(stored // (rows * columns))


def observed(path: str, case: Case) -> dict[str, Any]:
    """Rehearse a script on the case's GPU.

    Shapes      gives plain numbers and words, as JSON has them; `failure` where it did not end well
    Raises      ValueError for what cannot be rehearsed
    """
    observer = Observer(case.of_model.vocab)
    found: Rehearsal = of_command([path], on=case.gpu, observer=observer)
    lost = {shape: count - observer.matrices[shape] for shape, count in case.matrices.items()}
    return {
        "failure": (found.failure or f"{found.status}").strip().splitlines()[-1]
        if found.status
        else None,
        "peak": found.peak,
        "reserved": None if found.verdict is None else found.verdict.reserved,
        "phase": found.phase,
        "terms": _terms(found, case.of_model.vocab),
        "updates": observer.updates,
        "calls": sorted([*shape, count] for shape, count in observer.calls.items()),
        "lost": sorted([*shape, count] for shape, count in lost.items() if count > 0),
        "bits": observer.bits,
        "trained": sum(observer.trained.values()),
        "states": sum(observer.states.values()),
        "forward": observer.forward,
        "backward": observer.backward,
        "moved": observer.moved,
    }


def _terms(found: Rehearsal, vocab: int) -> dict[str, int]:
    """What stands at the peak: the contents, and apart from them all that is of a vocabulary."""
    terms = found.contents() if found.tracker.timeline else {}
    logits = 0
    for record, size in found.tracker.alive("peak") if terms else ():
        if record.category in ("activations", "other") and vocab in record.shape[-1:]:
            terms[record.category] -= size
            logits += size
    return {term: size for term, size in (terms | {"logits": logits}).items() if size}


if __name__ == "__main__":
    case = cases()[int(sys.argv[2])]
    with contextlib.redirect_stdout(sys.stderr):  # what the script prints is not the answer
        try:
            said = observed(sys.argv[1], case)
        except ValueError as error:
            said = {"failure": str(error)}
    print(json.dumps(said))
