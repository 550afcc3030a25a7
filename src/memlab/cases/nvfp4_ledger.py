"""What the trainer of memlab.cases.nvfp4_trainer holds, for a model of any size, without a run.

Two moments can be the fullest: the end of a forward pass, with everything that backward will ask
for (and, with stock Adam, from the second step on, with the old gradients as zeros); and the end of
backward, with all gradients. Between them each layer gives its rounded weights back and gets
gradients of the same size.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from typing import NamedTuple

from ..formats import format_of
from ..ledger import Ledger
from ..model import Model
from ..run import Run
from ..step import simulate
from ..terms.weights import weights
from .nvfp4_trainer import Settings

HEADS = ("embedding", "lm_head")  # what the forward pass does not round


def resident(model: Model, settings: Settings) -> dict[str, int]:
    """Bytes when backward has ended: master, gradients, states, packed copy of the weights.

    Formula     P · b each for master and gradients; m and √v: n + 4 · R each in int8/row, a packed
                matrix n / 2 + n / 16 and 4 for each `rows`; Adam's own two states P · b each
    """
    wide = format_of(settings.master).bits // 8 * model.parameter_count
    found = {"master": wide, "gradients": wide}
    if not settings.packed:
        counters = 4 * sum(tensor.copies for tensor in model.tensors())  # Adam's step, fp32
        return found | {"states": 2 * wide + counters}
    states = packed = 0
    for tensor in model.tensors():
        states += 2 * tensor.copies * _packed(tensor.shape, settings.states, settings.rows)
        packed += tensor.copies * _packed(tensor.shape, "nvfp4", settings.rows)
    return found | {"states": states, "packed weights": packed}


def in_step(model: Model, settings: Settings, *, batch: int, tokens: int) -> dict[str, int]:
    """Bytes at the end of a forward pass: what stays, rounded weights, activations, logits.

    Shapes      rounded weights: one value for each of the layers' linear weights; gradients: those
                of the step before as zeros, which stock Adam keeps and PackedAdam does not
    Source      memlab.step.simulate for activations and logits
    Leaves out  buffers, ids, and the pass of a prefix (its last one is as wide as no recompute)
    """
    found = resident(model, settings)
    if settings.packed:
        found["gradients"] = 0  # PackedAdam gave them back
    how = "block" if settings.recompute == "layers" else "none"
    activations, logits = _kept(model, settings.master, batch, tokens, how)
    kept = not settings.again and settings.recompute != "layers"
    rounded = format_of(settings.master).bits // 8 * rounded_values(model) if kept else 0
    return found | {
        "rounded weights": rounded,
        "activations": activations,
        "logits": logits + 4,  # the loss before it is divided
    }


def fullest(model: Model, settings: Settings, *, batch: int, tokens: int) -> dict[str, int]:
    """The terms of the fuller moment: the end of forward, or the end of backward.

    Leaves out  what is alive between the two only: the head's gradient beside the logits' ones
    """
    ends = in_step(model, settings, batch=batch, tokens=tokens), resident(model, settings)
    return max(ends, key=lambda terms: sum(terms.values()))


@cache
def _kept(model: Model, recipe: str, batch: int, tokens: int, checkpoint: str) -> tuple[int, int]:
    run = Run.cpu(batch=batch, tokens=tokens, implementation="memlab", checkpoint=checkpoint)
    rows = simulate(model, recipe, run).rows
    return rows["activations"], rows["logits"]


def rounded_values(model: Model) -> int:
    """Values of the linear layers, which the forward pass rounds."""
    linear = [t for t in model.tensors() if t.linear and t.component not in HEADS]
    return sum(t.copies * _size(t.shape) for t in linear)


class Combination(NamedTuple):
    """Settings that might have been, and what they add up to."""

    said: dict[str, str]
    terms: dict[str, int]

    @property
    def total(self) -> int:
        return sum(self.terms.values())


def combinations(model: Model, *, tokens: int, runtime: int = 10**9) -> Iterator[Combination]:
    """Every combination of the switches that the note leaves open, with its bytes in a step.

    runtime     bytes of driver and libraries; the note's guess
    """
    choices: Mapping[str, Sequence[str]] = {
        "master": ("bf16", "fp32"),
        "optimizer": ("int8", "nvfp4", "Adam", "Adam, fp32 states"),
        "head": ("its own", "tied"),
        "rounded weights": ("kept", "again"),
        "sequences": ("1", "8"),
        "left from loading": ("nothing", "a second copy"),
    }
    for picked in product(*choices.values()):
        said = dict(zip(choices, picked, strict=True))
        if (said["master"], said["optimizer"]) == ("fp32", "Adam, fp32 states"):
            continue  # that is Adam
        yield Combination(said, _terms(model, said, tokens) | {"runtime": runtime})


def _terms(model: Model, said: dict[str, str], tokens: int) -> dict[str, int]:
    shaped = model.replace(tied=said["head"] == "tied")
    plain = said["optimizer"].startswith("Adam")
    settings = Settings(
        packed=not plain,
        states="nvfp4" if said["optimizer"] == "nvfp4" else "int8/row",
        master=said["master"],
        again=said["rounded weights"] == "again",
    )
    terms = fullest(shaped, settings, batch=int(said["sequences"]), tokens=tokens)
    if said["optimizer"].endswith("fp32 states"):  # what the note says of the stock optimizer
        terms["states"] = 8 * shaped.parameter_count
    if said["left from loading"] != "nothing":
        terms["left from loading"] = terms["master"]
    return terms


def ledger(terms: dict[str, int], title: str = "") -> Ledger:
    """The terms under the book's names, so that a picture has its colours."""
    names = {"master": "weights", "packed weights": "weights", "rounded weights": "weights"}
    figures: dict[str, int] = {}
    for term, size in terms.items():
        name = names.get(term, {"states": "optimizer"}.get(term, term))
        name = name if name in BOOK else "other"
        figures[name] = figures.get(name, 0) + size
    return Ledger.of("derived", figures, title=title)


BOOK = ("weights", "gradients", "optimizer", "activations", "logits")


def _packed(shape: Sequence[int], format: str, rows: int) -> int:
    columns, size = shape[-1], _size(shape)
    if format.endswith("/row"):
        return weights(size, format=format, row=columns)
    matrix = size // columns
    parts = -(-matrix // rows) if rows and len(shape) > 1 else 1
    each = format_of(format)
    return weights(size, format=format, row=columns) + each.tensor_bytes * (parts - 1)


def _size(shape: Sequence[int]) -> int:
    size = 1
    for side in shape:
        size *= side
    return size
