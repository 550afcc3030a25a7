"""Exercises of activation checkpointing."""

from ..model import Model
from ..run import Run
from ..terms.activations import llama_layer
from ..terms.checkpointing import best_size, kept
from . import exercise

GB = 10**9
LLAMA = {"heads": 32, "kv_heads": 8, "head_dim": 128, "d_model": 4096, "d_ff": 14336}


def _longest(checkpoint: str, implementation: str = "memlab") -> int:
    """The most tokens, a multiple of 1,024, with which a step of Llama-3-8B fits into 80 GB."""
    from ..step.simulate import simulate  # only who asks for this answer needs it

    gpu = Run(implementation=implementation, optimizer_impl="fused", checkpoint=checkpoint)
    tokens = 0
    while True:
        longer = gpu.replace(tokens=tokens + 1024)
        if simulate(Model.preset("llama-3-8b"), "bf16", longer).peak.bytes > 80 * GB:
            return tokens
        tokens += 1024


def _inputs(layers: int = 36, batch: int = 2, width: int = 2560, value: int = 2) -> int:
    return layers * batch * 4096 * width * value


def _block() -> int:
    return llama_layer(1, tokens=8192, **LLAMA, precision="bf16", backend="cuda")


def _kept() -> int:
    return kept(1, tokens=8192, **LLAMA, keep="input")


exercise(
    "ex-checkpointing-1",
    answer=_inputs,
    hint="Each block's input is [B, T, D], two bytes a value.",
    wrong={
        lambda: _inputs(batch=1): "Two texts: B = 2.",
        lambda: _inputs(layers=1): "That is the input of one block.",
        lambda: _inputs(value=4): "Two bytes a value, in bf16.",
        lambda: _inputs(layers=37): "The last block's result is no block's input.",
    },
)

exercise(
    "ex-checkpointing-2",
    answer=lambda: 7 * _kept() + 4 * _block(),
    hint="Eight segments, so eight inputs; four blocks, so four times A, of which the segment's "
    "own input is a part.",
    wrong={
        lambda: 8 * _kept() + 4 * _block(): "The segment's input is counted twice: A has it.",
        lambda: 8 * _kept(): "That is before the last segment has been computed again.",
        lambda: 7 * _kept() + _block(): "All four blocks of the segment come back at once.",
        lambda: 3 * _kept() + 8 * _block(): "Four blocks a segment make eight segments.",
    },
)

exercise(
    "ex-checkpointing-3",
    answer=lambda: best_size(100, block=4, input=1),
    hint="L / s inputs and s blocks of four inputs each: for which s is 100 / s + 4 s least?",
    unit="blocks",
    wrong={
        lambda: 10: "That is the square root of 100, which is right where a block keeps its input.",
        lambda: 20: "That is the number of segments.",
        lambda: 1: "100 + 4 inputs; a few blocks together need less than half of that.",
        lambda: 4: "Close: 25 + 16 = 41 inputs. One size more is better by one.",
    },
)

exercise(
    "ex-checkpointing-4",
    answer=lambda: _longest("block"),
    hint="Raise tokens by 1,024 for as long as simulate(…).peak.bytes is at most 80 * 10**9.",
    unit="tokens",
    wrong={
        lambda: _longest("none"): "That is without checkpointing.",
        lambda: _longest("block") + 1024: "That is the first one that no longer fits.",
        lambda: _longest("block", "transformers"): "`gpu` says implementation='memlab'.",
    },
)
