"""Which term of a ledger the storages of a traced step belong to: above all, the logits."""

from typing import Any

from torch import Tensor, nn

from .tracker import Tracker


def head(module: nn.Module) -> nn.Module | None:
    """The output head, where the module has one as language models do."""
    found = getattr(module, "lm_head", None)
    theirs: Any = getattr(module, "get_output_embeddings", None)  # transformers
    if found is None and theirs is not None:
        found = theirs()
    return found if isinstance(found, nn.Module) else None


def width(head: nn.Module | None) -> int | None:
    weight = getattr(head, "weight", None)
    return weight.shape[0] if isinstance(weight, Tensor) else None


def births(tracker: Tracker) -> dict[int, str]:
    """The phase in which each storage was met first."""
    phases: dict[int, str] = {}
    for event in tracker.timeline:
        phases.setdefault(event.ident, event.phase)
    return phases


def rows(tracker: Tracker, marks: dict[str, int], births: dict[int, str]) -> dict[str, int]:
    """What stays, and what autograd keeps: before the output head, and from it on (logits)."""
    stay, both = (tracker.contents(marks[at]) for at in ("between_steps", "after_backward"))
    rows = {name: stay[name] for name in ("weights", "buffers")}
    rows |= {"gradients": both["gradients"], "optimizer": stay["optimizer"]}
    rows |= {"activations": 0, "logits": 0}
    if marks["after_forward"] >= 0:
        for record, size in tracker.alive(marks["after_forward"]):
            if record.category == "activations":
                rows["logits" if births[record.ident] == "loss" else "activations"] += size
    return rows


def wide_born_in_the_loss(
    tracker: Tracker, births: dict[int, str], vocab: int | None
) -> dict[int, str]:
    """Of a compiled step, whose forward pass and loss are one graph: where its logits belong."""
    wide = (i for i, record in tracker.records.items() if record.shape[-1:] == (vocab,))
    return {ident: "loss" for ident in wide if births.get(ident) == "forward"}


def name_logits(tracker: Tracker, births: dict[int, str], vocab: int | None) -> None:
    """Call logits what is as wide as the vocabulary and no weight: logits, copies, gradients.

    Where the output head was seen to begin (phase "loss"), tensors of that width from before it are
    none of them; a layer has the width of the vocabulary then, and of a backward pass the width
    alone tells nothing.
    """
    wide = [
        (record, births.get(record.ident))
        for record in tracker.records.values()
        if len(record.shape) > 1 and record.shape[-1] == vocab and "float" in record.dtype
        if record.category in ("activations", "other")
    ]
    phases = {"forward", "loss", "backward"}
    if "loss" in births.values() and any(birth == "forward" for _, birth in wide):
        phases = {"loss"}
    for record, birth in wide:
        if birth in phases:
            record.category = "logits"
