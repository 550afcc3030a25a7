"""Backward in two halves: of a stage's input, which another rank waits for, and of its weights.

I           runs what leads from the output to the input, and keeps all of the graph
            (retain_graph=True): its operators read the gradients that come to them and make those
            of their inputs alone. For each operator that has a weight, the gradient that came to it
            stays too. Then the output lets go of the graph, and with it goes what stands behind the
            last operator that has a weight: of the last stage what the loss kept
W           runs the operators that have a weight, one after the other in the order of the weights;
            what one of them kept goes when it has run. All else (norms, attention, activations)
            goes with the graph, from which each operator goes when the last one that stands behind
            it has run: the order of the weights is that of the forward pass, so most of it goes
            near the end of W
Checkpoints I computes a layer again, and so does W for each operator with a weight, since each is
            a call of torch.autograd.grad, a graph task of its own: Llama's layer nine times more.
            What one of them was not asked for stays until the operator goes that kept it, which
            here is near the end of W. So there is more on a rank than without checkpoints; the
            first stage's backward is whole, and has less. use_reentrant=True refuses .grad()
Source      torch, torch/distributed/pipelining/_backward.py: stage_backward_input,
            stage_backward_weight, get_param_groups; torch/utils/checkpoint.py: _checkpoint_hook
Leaves out  a weight that two operators read
"""

from __future__ import annotations

from .backward import GRADIENTS, Part, traverse
from .graph import Node, Parameter, Tensor

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .engine import Engine

    Above = dict[Node, list[Node]]  # from a node to those whose gradients come to it


class Group:
    """An operator on the way from the input to the output, and the weights that it reads.

    leads       the nodes between it and the ends of the graph at the weights, both included
    grads       what came to it in I
    """

    def __init__(self, node: Node) -> None:
        self.node: Node | None = node
        self.leads: set[Node] = {node}
        self.weights: list[Parameter] = []
        self.grads: tuple[Any, ...] = ()


def backward_input(
    engine: Engine, output: Tensor, grad: Tensor | None, leaf: Node, weights: Iterable[Parameter]
) -> tuple[Tensor, list[Group]]:
    """The half I: the gradient of the input, whose end of the graph is `leaf`, and what W needs.

    grad        of the output; None: it is the loss, whose own is 1
    """
    assert output.node is not None
    seed = engine.new("ones_like", output.shape, output.dtype) if grad is None else grad
    above = _above(output.node)
    on_the_way, _ = _closure(leaf, above, set())
    groups = _groups(on_the_way, weights, above)
    part = Part(on_the_way, [leaf], groups, keeps=True)
    traverse(engine, output.node, output.slot, seed, part)
    for node, group in groups.items():
        group.grads = part.came[node]
    output.node = None
    return part.found[leaf], list(groups.values())


def backward_weight(engine: Engine, groups: list[Group]) -> None:
    """The half W: the gradients of the weights. A name outlives its turn here as it does there."""
    for group in groups:
        node, (seed,), leads = group.node, group.grads, group.leads
        assert node is not None
        group.node, group.leads = None, set()
        part = Part(leads, [_end(weight) for weight in group.weights], keeps=False)
        traverse(engine, node, 0, seed, part)
        made = list(part.found.values())
        del part
        group.grads = ()
        for weight, found in zip(group.weights, made, strict=True):
            if weight.grad is None:
                found.record.category = GRADIENTS[weight.record.category]
                weight.grad = found


def _groups(on_the_way: set[Node], weights: Iterable[Parameter], above: Above) -> dict[Node, Group]:
    """By operator, in the order of the first of its weights.

    Raises      ValueError for a weight that several operators on the way read
    """
    groups: dict[Node, Group] = {}
    for weight in weights:
        leads, met = _closure(_end(weight), above, on_the_way)
        if len(met) != 1:
            name = weight.record.name
            raise ValueError(f"{name}: {len(met)} operators read it; halves of backward take one")
        group = groups.setdefault(met[0], Group(met[0]))
        group.weights.append(weight)
        group.leads |= leads
    return groups


def _end(weight: Parameter) -> Node:
    assert weight.node is not None
    return weight.node


def _above(root: Node) -> Above:
    """The graph behind `root`, turned round."""
    above: Above = {root: []}
    todo = [root]
    while todo:
        node = todo.pop()
        for edge in node.edges:
            if edge is not None:
                if edge[0] not in above:
                    above[edge[0]] = []
                    todo.append(edge[0])
                above[edge[0]].append(node)
    return above


def _closure(start: Node, above: Above, stop: set[Node]) -> tuple[set[Node], list[Node]]:
    """All from `start` up, to before the first of `stop` on each way, and which these are."""
    found, met, todo = {start}, [], [start]
    while todo:
        for node in above[todo.pop()]:
            if node in stop:
                if node not in met:
                    met.append(node)
            elif node not in found:
                found.add(node)
                todo.append(node)
    return found, met
