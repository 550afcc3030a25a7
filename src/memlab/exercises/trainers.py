"""Exercises of what a trainer's loop holds."""

from typing import Any

from ..fit import limit_of
from ..model import Model
from ..run import Run
from ..step import simulate
from . import exercise

_LLAMA = Model.preset("llama-3-8b")
_TILE = 4096  # vocabulary entries of a tile of the machine, each 4 bytes a row


def _bytes(**how: Any) -> int:
    return simulate(_LLAMA, "bf16", Run(**how)).peak.bytes


def _weights(models: int, saved: int) -> int:
    return models * saved * _LLAMA.parameter_count


def _batches() -> int:
    """The first batch of an evaluation whose logits, with the earlier ones, find no room."""
    how: dict[str, Any] = {"loop": "trainer", "tokens": 1024, "eval_batch": 8}
    card, _ = limit_of("H100 80GB")
    return next(n for n in range(1, 99) if _bytes(eval_logits=n, **how) > card)


def _sequences(checkpoint: str = "block") -> int:
    """How many sequences of 8,192 tokens SFTTrainer's step takes on an H100."""
    most, _ = limit_of("H100 80GB")
    how: dict[str, Any] = {"loop": "sft", "tokens": 8192, "checkpoint": checkpoint}
    return next(n for n in range(99) if _bytes(batch=n + 1, **how) > most)


exercise(
    "ex-trainers-1",
    answer=lambda: (128 - 64) * _TILE * 4,
    hint="The tile is the only tensor that has both dimensions; it is in fp32.",
    wrong={
        lambda: 64 * _TILE * 2: "This loss is in fp32: four bytes a value.",
        lambda: 128 * _TILE * 4: "That is the whole tile. Half of its rows stay.",
        lambda: 64 * 64 * 4: "That is the gradient of the input, which stays whole.",
    },
)

exercise(
    "ex-trainers-2",
    answer=lambda: _weights(2, 2),
    hint="TRL loads a model that it is named in fp32, and the reference in the model's format.",
    wrong={
        lambda: _weights(1, 2): "The reference is a second model, in the format of the first.",
        lambda: _weights(2, 4): "That is what both take in fp32. Half of it stays.",
    },
)

exercise(
    "ex-trainers-3",
    answer=_batches,
    hint="One batch of logits is 8 · 1,024 · V values of 2 bytes. How often does it go into the "
    "tensor that found no room?",
    unit="batches",
    wrong={
        lambda: _batches() - 1: "So many were there already. The new tensor holds one more.",
        lambda: 2 * _batches(): "These logits are bf16: 2 bytes each.",
    },
)

exercise(
    "ex-trainers-4",
    answer=_sequences,
    hint="Put batch=1, 2, 4, … into the run, with checkpoint='block', and compare with 78.64 GiB.",
    unit="sequences",
    wrong={
        lambda: _sequences() + 1: "That is a little too much. One less fits.",
        lambda: _sequences(checkpoint="none"): "SFTTrainer checkpoints every layer by itself.",
    },
)
