"""Run a simulated graph backwards as torch's autograd engine does.

Source      torch/csrc/autograd/engine.cpp: of the nodes that are ready, the one made last in the
            forward pass runs first, and parameters before all; of parameters that wait together the
            one goes first whose gradient came first. A node's incoming gradients go when it has
            run, then what it kept
"""

from __future__ import annotations

from heapq import heappop, heappush
from sys import getrefcount

from .graph import Node, Parameter, Tensor
from .storage_log import count

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .engine import Engine


# What the gradient of a parameter is called: of one's own, and of one that FSDP2 gathered.
GATHERED = "gathered weights"
GRADIENTS = {"weights": "gradients", GATHERED: "whole gradients"}


def backward(engine: Engine, loss: Tensor, grad: Tensor | None = None) -> None:
    """Leave gradients in the parameters behind `loss`, whose own is 1, or what is given."""
    assert loss.node is not None
    seed = engine.new("ones_like", loss.shape, loss.dtype) if grad is None else grad
    traverse(engine, loss.node, loss.slot, seed)
    engine.end_backward()  # the seed is still there


def traverse(engine: Engine, root: Node, slot: int, seed: Tensor, part: Part | None = None) -> None:
    """Hand `seed` on from one node to all behind it, or to some of them."""
    engine.traversals += 1
    waiting = _dependencies(root, part)
    buffers: dict[Node, list[Any]] = {root: [None] * root.slots}
    buffers[root][slot] = seed
    ready = [(-root.seq, 0, root)]
    turn = 0
    while ready:
        node = heappop(ready)[2]
        if part is not None and node in part.found:
            part.found[node] = buffers.pop(node)[0]
            continue
        if node.parameter is not None:
            _accumulate(engine, node.parameter, buffers.pop(node))
            continue
        if part is not None and node in part.came:
            part.came[node] = tuple(buffers[node])
        results = _run(engine, node, buffers.pop(node), part)
        if part is None or not part.keeps:
            node.saved = None  # type: ignore[assignment]
            node.run = None
        spent = []  # what was added to another gradient goes when all have been handed on
        for edge in node.edges:
            result = results.pop(0)
            if edge is None or (part is not None and edge[0] not in part.leads):
                continue
            target, slot = edge[0], edge[1]
            held = buffers.setdefault(target, [None] * target.slots)
            if held[slot] is None:
                held[slot] = result
            elif result is not None:
                spent.append(result)
                if not (engine.adds(result.shape) and _alone(held, slot)):
                    held[slot] = engine.added(held[slot], result)
            result = None
            del held  # a name that outlives its turn would keep the gradient alive
            waiting[target] -= 1
            if waiting[target] == 0:
                turn += 1
                heappush(ready, (-target.seq, turn, target))
        spent.clear()
        if part is None:
            node.edges = []


class Part:
    """Some of a graph: torch.autograd.grad(..., inputs) runs only what leads to its inputs.

    leads       the nodes that lead there, and those of the inputs
    found       the gradient of each input; it is stored nowhere
    came        what came to some of the nodes when they ran: what a hook before them sees
    keeps       whether they keep what they saved, to be run again: retain_graph
    """

    def __init__(
        self, leads: set[Node], inputs: Iterable[Node], hooked: Iterable[Node] = (), *, keeps: bool
    ) -> None:
        self.leads, self.keeps = leads, keeps
        self.found: dict[Node, Any] = dict.fromkeys(inputs)
        self.came: dict[Node, tuple[Any, ...]] = dict.fromkeys(hooked, ())


def _run(
    engine: Engine, node: Node, grads: list[Any], part: Part | None = None
) -> list[Tensor | None]:
    """Run one node; bring each gradient to the shape and dtype of the input it belongs to."""
    needs = [edge is not None and (part is None or edge[0] in part.leads) for edge in node.edges]
    results = list(node.run(grads, [engine.give(kept) for kept in node.saved], needs))
    for i, edge in enumerate(node.edges):
        result = results[i]
        if not needs[i] or result is None:
            results[i] = None
            continue
        if edge[4] or count(result.shape) != count(edge[2]):
            results[i] = result = engine.new("sum", edge[2], result.dtype)
        if result.dtype != edge[3]:
            results[i] = engine.new("to", edge[2], edge[3])
        result = None
    return results


def _accumulate(engine: Engine, parameter: Parameter, grads: list[Any]) -> None:
    """The first gradient becomes the parameter's; a later one is added to it in place.

    Source      torch/csrc/autograd/functions/accumulate_grad.h
    """
    grad = grads[0]
    if grad is None or parameter.grad is not None:
        return
    if getrefcount(grad) > 3:  # another node waits for it too
        grad = engine.new("clone", grad.shape, grad.dtype)
    if parameter.record.category in GRADIENTS:
        grad.record.category = GRADIENTS[parameter.record.category]
    parameter.grad = engine.detach(grad)
    if engine.updates is not None and parameter.record.category in GRADIENTS:
        engine.updates(parameter)  # the gradient is held here until this has returned
    if engine.drops_narrow and parameter.record.category == "weights":
        parameter.grad = None


def _alone(held: list[Any], slot: int) -> bool:
    """Whether a waiting gradient is held here only, and so is its storage.

    Source      can_accumulate_inplace in torch/csrc/autograd/input_buffer.cpp
    """
    alone = getrefcount(held[slot]) == 2 and getrefcount(held[slot].storage) == 2
    return alone and not held[slot].view


def _dependencies(root: Node, part: Part | None) -> dict[Node, int]:
    """How many gradients each node waits for."""
    waiting: dict[Node, int] = {root: 0}
    todo = [root]
    while todo:
        for edge in todo.pop().edges:
            if edge is not None and (part is None or edge[0] in part.leads):
                if edge[0] not in waiting:
                    waiting[edge[0]] = 0
                    todo.append(edge[0])
                waiting[edge[0]] += 1
    return waiting
