"""Exercises of LoRA and QLoRA."""

from ..fit import limit_of
from ..model import Model
from ..run import Run
from . import exercise

ALL = ("q", "k", "v", "out", "gate", "up", "down")


def _table() -> int:
    m = Model.preset("llama-3-8b")
    return m.vocab * m.d_model


def _longest(recipe: str = "bf16", base: str | None = "nf4", checkpoint: str = "block") -> int:
    return _largest(limit_of("RTX 4090")[0], recipe, base, checkpoint)


def _largest(
    limit: int, recipe: str = "bf16", base: str | None = "nf4", checkpoint: str = "block"
) -> int:
    from ..step.adapters.lora import Lora  # only who asks for this answer needs it
    from ..step.simulate import simulate

    def peak(tokens: int) -> int:
        run = Run(batch=1, tokens=tokens, lora=Lora(16, ALL, base), checkpoint=checkpoint)
        return simulate(Model.preset("llama-3-8b"), recipe, run).peak.bytes

    tokens = 1024
    while peak(tokens + 1024) <= limit:
        tokens += 1024
    return tokens


exercise(
    "ex-lora-1",
    answer=lambda: 4 * 64 * 8,
    hint="Which gradient needs x, and which one needs A x? Only one of the two is computed.",
    wrong={
        lambda: 4 * 64 * (4096 + 8): "That is LoRALinear as it was: freeze lora_A as well.",
        lambda: 4 * 64 * 4096: "x is saved for the gradient of lora_A, which is frozen now.",
        lambda: 64 * 8: "Those are values; bytes were asked for, and they are fp32.",
        lambda: 2 * 64 * 8: "Two bytes a value is bf16; this layer is in fp32.",
        lambda: 4 * 64 * 1024: "The result of lora_B is scaled by a number, which saves nothing.",
    },
)

exercise(
    "ex-lora-2",
    answer=lambda: 6 * 2 * _table(),
    hint="What of 2 (copy) + 2 (gradient) + 4 (two states) bytes is there after zero_grad()?",
    wrong={
        lambda: 8 * 2 * _table(): "After zero_grad() there is no gradient.",
        lambda: 4 * 2 * _table(): "The two states, yes; the trained copies are new as well.",
        lambda: 2 * 2 * _table(): "Those are the copies; AdamW has two states for each value.",
        lambda: 6 * _table(): "Two tables are trained: embedding and output head.",
        lambda: 12 * 2 * _table(): "These copies are in bf16, and so are their states.",
    },
)

exercise(
    "ex-lora-3",
    answer=lambda: 64,
    hint="An adapter of rank r has r (inputs + outputs) parameters; v has 8 heads of 128 outputs.",
    unit="",
    wrong={
        lambda: 52: "v has 1,024 outputs: 8 key/value heads of 128.",
        lambda: 104: "That is q alone; v has an adapter, too.",
        lambda: 16: "Rank 16 has 6,815,744 parameters here.",
        lambda: 2048: "Those are all 32 layers: divide by 32.",
        lambda: 128: "An adapter has two matrices, one on each side.",
    },
)

exercise(
    "ex-lora-4",
    answer=_longest,
    hint="step(qlora, tokens=…, checkpoint='block').peak.bytes in a loop, 1,024 tokens at a time.",
    unit="tokens",
    wrong={
        lambda: _longest("autocast"): "That is the prepared model under autocast.",
        lambda: _longest(checkpoint="none"): "That is without checkpoints.",
        lambda: _longest(base=None): "That is LoRA on a base in bf16.",
        lambda: _largest(24 * 2**30): "That takes all 24 GiB; `room` leaves out a CUDA context.",
    },
)
