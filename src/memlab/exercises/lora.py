"""Exercises of LoRA and QLoRA."""

from ..formats import storage
from ..model import Model
from ..run import Run
from . import exercise

ALL = ("q", "k", "v", "out", "gate", "up", "down")


def _trained(rank: int = 32, targets: tuple[str, ...] = ALL) -> int:
    from ..step.adapters.lora import Lora  # only who asks for this answer needs it

    return Lora(rank, targets).parameter_count(Model.preset("qwen3-4b"))


def _base(format: str = "nf4-dq", tables: int = 1, rest: str = "bf16") -> int:
    m = Model.preset("qwen3-4b")
    linear = sum(t.count for t in m.tensors() if t.linear and t.copies > 1)
    others = m.parameter_count - linear + (tables - 1) * m.vocab * m.d_model
    return storage(linear, format) + storage(others, rest)


def _longest(recipe: str = "bf16", base: str | None = "nf4", limit: int = 24 * 2**30) -> int:
    from ..step.adapters.lora import Lora
    from ..step.simulate import simulate

    def peak(tokens: int) -> int:
        lora = Lora(16, ALL, base, dtype=recipe)
        run = Run(batch=1, tokens=tokens, lora=lora, checkpoint="none")
        return simulate(Model.preset("llama-3-8b"), recipe, run).peak.bytes

    tokens = 256
    while peak(tokens + 256) <= limit:
        tokens += 256
    return tokens


exercise(
    "ex-lora-1",
    answer=lambda: 8 * (14336 + 4096),
    hint="One matrix is [8, 4,096], the other [14,336, 8].",
    unit="parameters",
    wrong={
        lambda: 14336 * 4096: "That is the gate itself, which is frozen.",
        lambda: 8 * 4096: "There is a second matrix, on the side of the outputs.",
        lambda: 8 * 14336: "There is a second matrix, on the side of the inputs.",
        lambda: 2 * 8 * (14336 + 4096): "Those are bytes in bf16; parameters were asked for.",
    },
)

exercise(
    "ex-lora-2",
    answer=lambda: 16 * _trained(),
    hint="Lora(32, ALL).parameter_count(…), times four tensors of four bytes.",
    wrong={
        lambda: 4 * _trained(): "Those are the adapters alone.",
        lambda: (
            8 * _trained()
        ): "In bf16, or two of the four terms: adapter, gradient, two moments.",
        lambda: 12 * _trained(): "One term is missing: adapter, gradient, two moments.",
        lambda: 16 * _trained(targets=("q", "v")): "Those stand on q and v; seven were asked for.",
    },
)

exercise(
    "ex-lora-3",
    answer=_base,
    hint="storage(…, 'nf4-dq') of the layers' linear weights, and bf16 for all the others.",
    wrong={
        lambda: _base("nf4"): "Those are scales in fp32; double quantization keeps them in 8 bits.",
        lambda: _base(tables=2): "The table is tied: it is there once.",
        lambda: _base(rest="fp32"): "Nothing is brought to fp32 here.",
        lambda: storage(Model.preset("qwen3-4b").parameter_count, "bf16"): "That is all in bf16.",
    },
)

exercise(
    "ex-lora-4",
    answer=_longest,
    hint="Ask step(qlora, tokens).peak.bytes in a loop, 256 tokens at a time.",
    unit="tokens",
    wrong={
        lambda: _longest("fp32"): "That is with upcasts: the recipe is bf16.",
        lambda: _longest(base=None): "That is LoRA on a base in bf16.",
        lambda: _longest() + 256: "That one is just over the limit.",
        lambda: _longest(limit=24 * 10**9): "24 GiB are more than 24 GB.",
    },
)
