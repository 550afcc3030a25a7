"""A trainer with every switch of one program: NVFP4 forward, wide master, packed states, recompute.

Each switch is a field of `Settings`, so that one can be turned and the bytes looked at. The order
of a step is the program's: set the gradients to zero, forward, backward, step. Its packed optimizer
gives each gradient back once it has used it, so there is nothing to set to zero; stock Adam keeps
them.
"""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..lab.models import TinyLlama
from ..lab.models.common import next_tokens, run_layer
from ..lab.models.llama import rotary_angles
from ..lab.quantize import Quantized, dequantize, quantize
from ..measure import Tracker
from ..model import Model
from .packed_adam import PackedAdam, copied
from .straight_through import round_forward
from .undisposed import Undisposed

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
WAYS = {"recompute": ("none", "prefix", "layers"), "loading": ("together", "one by one")}
File = Mapping[str, Quantized | Tensor]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the command line of the trainer says.

    packed          --use-packed-optimizer: PackedAdam, or torch.optim.Adam
    states          --optimizer-state-mode: int8/row or nvfp4, of PackedAdam
    master          --master-dtype: the parameters, and so their gradients and Adam's states
    recompute       none; prefix: backward for some tokens at a time, each after a forward pass of
                    all tokens up to them; layers: keep each layer's input, compute it again
    chunk           --grad-ckpt-chunk: tokens at a time for prefix
    rows            --step-chunk-rows: rows of a matrix that the step writes out at a time
    again           round the weights once more in backward rather than keep what was rounded
    loading         together: file and parameters side by side; one by one
    disposed        False: every result of forward and of the optimizer stays until the step ends
    Raises          ValueError for another word
    """

    packed: bool = True
    states: str = "int8/row"
    master: str = "bf16"
    recompute: str = "none"
    chunk: int = 8
    rows: int = 8
    again: bool = False
    loading: str = "together"
    disposed: bool = True

    def __post_init__(self) -> None:
        for name, known in {**WAYS, "master": tuple(DTYPES)}.items():
            if (value := getattr(self, name)) not in known:
                raise ValueError(f"{name}={value!r} is unknown; known: {', '.join(known)}")
        if self.chunk < 1:
            raise ValueError(f"chunk={self.chunk}; a chunk has at least 1 token")


def export(net: TinyLlama, format: str = "nvfp4") -> dict[str, Quantized | Tensor]:
    """The file: linear layers and the output head in codes, embedding and norms in bf16."""
    linear = {f"{n}.weight" for n, m in net.named_modules() if isinstance(m, nn.Linear)}
    state = net.state_dict(keep_vars=False)
    return {
        name: quantize(value, format) if name in linear else value.to(torch.bfloat16)
        for name, value in state.items()
    }


def load(file: File, model: Model, settings: Settings) -> TinyLlama:
    """A model whose parameters are written out from the file, in the format of the master.

    Leaves out  tied weights: the file has an embedding and a head, and so has the model
    """
    dtype = DTYPES[settings.master]
    with torch.device("meta"):
        net = TinyLlama(model, checkpoint=settings.recompute == "layers")
    read = {n: _copy(v) for n, v in file.items()} if settings.loading == "together" else {}
    for name, stored in file.items():
        raw = read[name] if read else _copy(stored)
        wide = dequantize(raw, dtype) if isinstance(raw, Quantized) else raw.to(dtype)
        owner, _, leaf = name.rpartition(".")
        setattr(net.get_submodule(owner), leaf, nn.Parameter(wide.clone()))
        del raw, wide
    read.clear()
    angles_TH = rotary_angles(*net.cos_TH.shape)
    net.cos_TH, net.sin_TH = angles_TH.cos().to(dtype), angles_TH.sin().to(dtype)
    round_forward(net, again=settings.again)
    return net


class Trainer:
    """A loaded model, its optimizer, and a step in the program's order.

    moments     bytes alive, by the tracker, at the end of the last forward, backward and step
    Leaves out  the guard (memlab.cases.memory_guard), sampling, writing the trained file
    """

    def __init__(self, net: TinyLlama, settings: Settings, lr: float = 1e-3) -> None:
        self.net, self.settings, self.moments = net, settings, dict[str, int]()
        self.optimizer: torch.optim.Optimizer
        if settings.packed:
            how = {"states": settings.states, "rows": settings.rows}
            self.optimizer = PackedAdam(self.net.parameters(), lr, **how)  # type: ignore[arg-type]
        else:
            self.optimizer = torch.optim.Adam(self.net.parameters(), lr, foreach=False)
        self.undisposed = Undisposed()

    def step(self, ids_BT: Tensor, tracker: Tracker | None = None) -> Tensor:
        """One step; returns the loss."""
        self.optimizer.zero_grad(set_to_none=False)  # stock Adam: written over, not given back
        loss = self.passes(ids_BT, tracker)
        with nullcontext() if self.settings.disposed else self.undisposed:
            self.optimizer.step()
        self.undisposed.collect()
        self._note("step", tracker)
        return loss

    def passes(self, ids_BT: Tensor, tracker: Tracker | None = None) -> Tensor:
        """Forward and backward; returns the loss."""
        parts = [(0, ids_BT.shape[1])]
        if self.settings.recompute == "prefix":
            T, c = ids_BT.shape[1], self.settings.chunk
            parts = [(start, min(start + c, T)) for start in range(0, T, c)]
        total = torch.zeros((), dtype=torch.float32)
        for start, end in parts:
            with nullcontext() if self.settings.disposed else self.undisposed:
                loss = self.loss_of(ids_BT, start, end)
            self._note("forward", tracker)
            loss.backward()
            total += loss.detach()
            del loss
        self._note("backward", tracker)
        return total

    def loss_of(self, ids_BT: Tensor, start: int, end: int) -> Tensor:
        """The part of the mean loss that the tokens from `start` on have, up to `end`."""
        net, next_BT = self.net, next_tokens(ids_BT)
        x_BTD = net.embedding(ids_BT[:, :end])
        for layer in net.layers:
            angles = net.cos_TH[:end], net.sin_TH[:end]
            x_BTD = run_layer(layer, x_BTD, *angles, again=net.checkpoint)
        logits_RV = net.lm_head(net.final_norm(x_BTD[:, start:])).float().flatten(0, 1)
        asked = ids_BT[:, 1:].numel()  # the last token of each sequence is asked for nothing
        labels_R = next_BT[:, start:end].flatten()
        return F.cross_entropy(logits_RV, labels_R, reduction="sum") / asked

    def _note(self, moment: str, tracker: Tracker | None) -> None:
        if tracker is not None:
            self.moments[moment] = tracker.current


def run(
    file: File, model: Model, settings: Settings, batches: list[Tensor]
) -> tuple[dict[str, int], list[float]]:
    """Load, train on the batches, and say what was alive: moments in bytes, and the losses.

    Shapes      moments: the most while loading; after loading, with the optimizer; at the end of
                forward, backward and step of the last batch; the most while it ran
    """
    found, losses = {"loading": loading(file, model, settings)}, []
    trainer = Trainer(load(file, model, settings), settings)
    with Tracker() as tracker:
        tracker.label([trainer.net, trainer.optimizer])
        found["ready"] = tracker.current
        for ids_BT in batches:
            tracker.reset_peak()
            losses.append(trainer.step(ids_BT, tracker).item())
        found |= trainer.moments
        found["peak"] = tracker.peak
    return found, losses


def loading(file: File, model: Model, settings: Settings) -> int:
    """The most bytes at once while `load` runs, the file on its disk not counted."""
    with Tracker() as tracker:
        tracker.label([part for stored in file.values() for part in _parts(stored)], "disk")
        on_disk = tracker.current
        load(file, model, settings)
    return tracker.peak - on_disk


def _parts(stored: Quantized | Tensor) -> list[Tensor]:
    parts = stored[1:] if isinstance(stored, Quantized) else (stored,)
    return [part for part in parts if part is not None]


def _copy(stored: Quantized | Tensor) -> Quantized | Tensor:
    """What a read from disk gives: memory of its own."""
    return copied(stored) if isinstance(stored, Quantized) else stored.clone()


__all__ = ["Settings", "Trainer", "export", "load", "loading", "run"]
