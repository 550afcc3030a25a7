"""Exercises of a field note on FP8 and a model of 1.68 billion parameters."""

from ..formats import storage
from ..terms import fp8
from ..terms.optimizer import adamw, muon
from . import exercise

_UP = (6656, 1664)


def _states() -> int:
    return muon(_UP) + storage(max(_UP), "fp32")


def _both(batch: int) -> dict[str, int]:
    from ..cases.nanochat import D26  # only who asks for it needs torch
    from ..cases.nanochat_step import kept, logits_peak

    return {
        "activations": kept(D26, batch)["activations"],
        "logits": logits_peak(D26, batch),
    }


def _lower(batch: int = 8, terms: tuple[str, ...] = ("activations", "logits")) -> int:
    return sum(_both(16)[term] - _both(batch)[term] for term in terms)


def _weights(each: int | None = None) -> int:
    """Bytes of d26's weights: as each is stored, or all of them in one format."""
    from ..cases.nanochat_step import on_meta

    weights = list(on_meta().parameters())
    return sum(p.nbytes if each is None else each * p.numel() for p in weights)


def _layer(keep: str, copies: int = 1) -> int:
    """What `up` of Llama-3-8B saves for 8,192 rows."""
    return fp8.linear(8192, inputs=4096, outputs=14_336, keep=keep, copies=copies)


exercise(
    "ex-fp8-half-1",
    answer=_states,
    hint="A momentum for each value, and a mean square for each of the longer side.",
    wrong={
        lambda: muon(_UP): "nanochat's Muon keeps a mean square for each row as well.",
        lambda: adamw(_UP): "Those are the two moments of AdamW. Muon has one.",
        lambda: muon(_UP) + storage(min(_UP), "fp32"): "One for each row, of which there are more.",
        lambda: _states() // 2: "The state has the format of its parameter, fp32.",
    },
)

exercise(
    "ex-fp8-half-2",
    answer=lambda: _weights() - _weights(2),
    hint="Matrices, head and scalars are in fp32, the tables in bf16: add up `p.nbytes`.",
    wrong={
        lambda: _weights(): "Those are the true bytes; the script printed some of them.",
        lambda: _weights(2): "That is what the script printed.",
        lambda: _weights(4) - _weights(): "That is what fp32 would be too much for the tables.",
    },
)

exercise(
    "ex-fp8-half-3",
    answer=_lower,
    hint="kept(D26, b)['activations'] + logits_peak(D26, b), for 16 and for 8.",
    wrong={
        lambda: _lower(terms=("activations",)): "And the logits at their peak.",
        lambda: _lower(terms=("logits",)): "And the activations.",
        lambda: _both(16)["logits"] * 15 // 16: "That is (b), the smaller of the two.",
        lambda: sum(_both(8).values()): "That is what is left with 8; the difference is asked for.",
        lambda: sum(_both(16).values()) // 2: "The copies of the weights are not halved.",
    },
)

exercise(
    "ex-fp8-half-4",
    answer=lambda: _layer("fp8+weight"),
    hint="8,192 × 4,096 and 14,336 × 4,096 values of one byte each, and two scales in fp32.",
    wrong={
        lambda: _layer("original"): "That is the bf16 input of the machine as it stands.",
        lambda: _layer("fp8"): "The weight's FP8 copy and its scale are saved as well.",
        lambda: _layer("fp8+weight") - 2 * fp8.SCALE_BYTES: "Each copy has an fp32 scale.",
        lambda: _layer("fp8+weight", 2): "One copy of the weight is saved, not two.",
        lambda: 2 * (_layer("fp8+weight") - 2 * fp8.SCALE_BYTES): "An FP8 value has one byte.",
    },
)
