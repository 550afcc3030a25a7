"""Exercises of activation checkpointing."""

from ..model import Model
from ..run import Run
from . import exercise

GB, GiB = 10**9, 2**30


def _longest(checkpoint: str, optimizer_impl: str = "fused") -> int:
    """The most tokens, a multiple of 1,024, with which a step of Llama-3-8B needs 80 GB or less."""
    from ..step.simulate import simulate  # only who asks for this answer needs it

    gpu = Run(optimizer_impl=optimizer_impl, checkpoint=checkpoint)
    tokens = 0
    while True:
        longer = gpu.replace(tokens=tokens + 1024)
        if simulate(Model.preset("llama-3-8b"), "bf16", longer).peak.bytes > 80 * GB:
            return tokens
        tokens += 1024


def _phase(name: str, tokens: int = 16384) -> int:
    from ..step.core.moments import hills
    from ..step.simulate import simulate

    run = Run(tokens=tokens, optimizer_impl="fused", checkpoint="block")
    return hills(simulate(Model.preset("llama-3-8b"), "bf16", run))[name].total()


def _small_input(blocks: int = 9, value: int = 2) -> int:
    return blocks * 4 * 64 * 128 * value  # blocks, texts, tokens, width


def _block() -> int:
    """What one layer of Llama-3-8B keeps, as transformers implements it."""
    from ..step.simulate import simulate

    llama, run = Model.preset("llama-3-8b"), Run(tokens=8192)
    sizes = (simulate(llama.replace(layers=n), "bf16", run).rows["activations"] for n in (32, 31))
    return next(sizes) - next(sizes)


def _kept() -> int:
    return 2 * 8192 * 4096  # bf16, tokens, width


exercise(
    "ex-checkpointing-1",
    answer=_small_input,
    hint="Each block keeps its input [B, T, D] alone, and a bf16 value takes two bytes.",
    wrong={
        lambda: _small_input(value=4): "That is what they hold now, with inputs in fp32.",
        lambda: _small_input(blocks=1): "That is the input of one block.",
        lambda: _small_input(blocks=10): "The last block's result is no block's input.",
    },
)

exercise(
    "ex-checkpointing-2",
    answer=lambda: 15 * _kept() + 17 * _block(),
    hint="16 blocks keep all of A, 16 their input alone, and the last of these is whole again.",
    wrong={
        lambda: 16 * _kept() + 16 * _block(): "That is after the forward pass, before the last "
        "block is computed again.",
        lambda: 16 * _kept() + 17 * _block(): "The last block's input is counted twice: A has it.",
        lambda: 32 * _block(): "That is without checkpointing.",
    },
)

exercise(
    "ex-checkpointing-3",
    answer=lambda: (_phase("loss") - _phase("backward")) // GiB,
    hint="The new peak is the next highest phase of the same line of the table.",
    unit="GiB",
    wrong={
        lambda: _phase("loss") // GiB: "That is the phase itself; another phase is the peak then.",
        lambda: (_phase("loss") - _phase("optimizer")) // GiB: "The optimizer is not the next "
        "highest phase: backward is.",
        lambda: (_phase("loss") - _phase("forward")) // GiB: "The forward pass is the lowest of "
        "the four phases.",
    },
)

exercise(
    "ex-checkpointing-4",
    answer=lambda: _longest("block"),
    hint="Raise tokens by 1,024 for as long as simulate(…).peak.bytes is at most 80 * 10**9.",
    unit="tokens",
    wrong={
        lambda: _longest("none"): "That is without checkpointing.",
        lambda: _longest("block") + 1024: "That is the first one that needs more.",
    },
)
