"""Two optimizers, one momentum each: Muon for the matrices inside the layers, Lion for the rest.

The split of a public nanochat in Rust, whose status report chapter 31 reads. Its 8-bit Muon keeps
codes and scales in vectors of the host's memory; `HostMuon8` does the same, so that what was made
smaller is not on the device at all, and crosses the bus in each step.

Letters     P parameters, H of them in matrices inside the layers
"""

from collections.abc import Iterable
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from ..lab.host import Host
from ..lab.muon8 import Blocks, Muon8
from ..lab.optim import LEARNING_RATES, ChainedOptimizers, Lion
from ..model import Model
from ..run import Run
from ..step import simulate
from ..terms.optimizer import lion, state

# github.com/architehc/nanochat-rs-ternary at commit 0524d2d (15 February 2026),
# crates/nanochat-train/src/config.rs: widths, layers, heads and whether the head is tied. Left out:
# the parameters of its hyper-connections (18 or 80 a layer), its ternary weights in forward, and
# the heads that predict further tokens.
D20 = Model(
    name="d20", layers=6, d_model=256, d_ff=768, heads=4, vocab=50_257, positions=256, tied=True
)
TEST_8BIT = Model(
    name="test-8bit", layers=4, d_model=256, d_ff=512, heads=8, vocab=50_257, positions=256
)
D20_FULL = Model(
    name="d20-e3-full", layers=24, d_model=768, d_ff=2688, heads=12, vocab=50_257, positions=2048
)
MEDIUM_3B = Model(
    name="medium_3b",
    layers=28,
    d_model=2048,
    d_ff=7168,
    heads=32,
    kv_heads=8,
    vocab=50_257,
    positions=4096,
    tied=True,
)


def states(model: Model, *, eight: bool = False, host: bool = False) -> dict[str, int]:
    """Bytes of the states on the device, by optimizer.

    Formula     muon: 4 · H, in 8 bits (1 + 4/128) · H, or 0 on a host; lion: 4 · (P - H)
    Unit        bytes, whole numbers
    Source      train.rs of the repository above: a matrix is Muon's unless it has V rows
    """
    formats = ("int8/128",) if eight else None
    found = {"muon": 0, "lion": 0}
    for tensor in model.tensors():
        inside = tensor.component in ("attention", "feed_forward") and len(tensor.shape) == 2
        if not inside:
            found["lion"] += tensor.copies * lion(tensor.shape)
        elif not host:
            found["muon"] += tensor.copies * state("muon", shape=tensor.shape, formats=formats)
    return found


def optimizer(
    parameters: Iterable[Tensor], vocab: int, *, eight: bool = False, host: Host | None = None
) -> ChainedOptimizers:
    """Both, as one optimizer; `host` keeps the codes of the 8-bit Muon there."""
    inside: list[Tensor] = []
    others: list[Tensor] = []
    for p in parameters:
        (inside if p.ndim == 2 and p.shape[0] != vocab else others).append(p)
    muon: Optimizer
    if host is not None:
        muon = HostMuon8(inside, host)
    else:
        muon = Muon8(inside) if eight else FullMuon(inside)
    return ChainedOptimizers(muon, Lion(others, lr=LEARNING_RATES["lion"]))


def peak(model: Model, kept: int, run: Run, recipe: str = "fp32") -> tuple[int, str]:
    """Bytes and moment of a step's peak with `kept` bytes of states instead of AdamW's.

    Formula     the most of forward, loss and backward, with `kept` in the place of AdamW's states;
                or weights, gradients and `kept`, when the optimizer begins
    Leaves out  the copies of single matrices that the optimizers make while they step
    """
    step = simulate(model, recipe, run)
    adamw = step.rows["optimizer"]
    events, marks = step.log.events, step.log.marks
    before = events[marks["second.forward"] : marks["second.optimizer"]]
    most = max(total for _, _, total in before) - adamw + kept
    waiting = step.held["after_backward"] - adamw + kept
    return (most, "backward") if most > waiting else (waiting, "optimizer")


class FullMuon(Muon8):
    """The same Muon with its momentum in fp32: what the 8-bit one is to be compared with."""

    def _ahead(self, p: Tensor, grad: Tensor, momentum: float) -> Tensor:
        if "momentum" not in self.state[p]:
            self.state[p]["momentum"] = p.new_zeros(p.shape)
        mean = self.state[p]["momentum"].lerp_(grad, 1 - momentum)
        return grad.lerp(mean, momentum)


class HostMuon8(Muon8):
    """8-bit Muon whose codes and scales are on a host between two steps.

    Formula     on the device between steps: 0; over the bus 2 · (1 + 4/128) bytes a value and step
    Leaves out  that the repository above sends the wide momentum: 12 bytes a value and step
    """

    def __init__(self, params: Any, host: Host, **choices: Any) -> None:
        super().__init__(params, **choices)
        self.host, self.places = host, {}  # type: ignore[var-annotated]

    def _ahead(self, p: Tensor, grad: Tensor, momentum: float) -> Tensor:
        mine = self.state[p]
        if p in self.places:
            mine["momentum"] = Blocks(*(self._bring(each, p) for each in self.places[p]))
        update = super()._ahead(p, grad, momentum)
        if isinstance(kept := mine["momentum"], Blocks):
            del mine["momentum"]
            old = self.places.get(p, [(None,)] * 2)
            self.places[p] = [
                (self.host.send(part.untyped_storage(), was[0]), part.shape, part.dtype)
                for part, was in zip(kept, old, strict=True)
            ]
        return update

    def _bring(self, sent: tuple[Any, Any, Any], p: Tensor) -> Tensor:
        place, shape, dtype = sent
        size = shape.numel() * dtype.itemsize
        return self.host.bring(place, size, p.device).view(dtype).view(shape)


__all__ = [
    "D20",
    "D20_FULL",
    "MEDIUM_3B",
    "TEST_8BIT",
    "FullMuon",
    "HostMuon8",
    "optimizer",
    "peak",
    "states",
]
