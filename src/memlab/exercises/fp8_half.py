"""Exercises of a field note on FP8 and a model of 1.68 billion parameters."""

from ..formats import storage
from ..model import Model
from ..terms.optimizer import adamw, muon
from . import exercise

_UP = (6656, 1664)


def _states() -> int:
    return muon(_UP) + storage(max(_UP), "fp32")


def _held(batch: int) -> dict[str, int]:
    from ..cases.nanochat import D26  # only who asks for it needs torch
    from ..cases.nanochat_step import kept, logits_peak

    return {
        "activations": kept(D26, batch)["activations"],
        "logits": logits_peak(D26, batch),
    }


def _spared(batch: int = 8, terms: tuple[str, ...] = ("activations", "logits")) -> int:
    return sum(_held(16)[term] - _held(batch)[term] for term in terms)


def _weights(each: int | None = None) -> int:
    """Bytes of d26's weights: as each is stored, or of one width for all."""
    from ..cases.nanochat_step import on_meta

    weights = list(on_meta().parameters())
    return sum(p.nbytes if each is None else each * p.numel() for p in weights)


def _linear() -> int:
    """Weights of Llama-3-8B's linear layers: all but the embedding and the norms."""
    m = Model.preset("llama-3-8b")
    attention = 2 * m.d_model * m.head_dim * (m.heads + m.kv_heads)
    return m.layers * (attention + 3 * m.d_model * m.d_ff) + m.d_model * m.vocab


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
        lambda: _weights(): "Those are the true bytes; the script says some of them.",
        lambda: _weights(2): "That is what the script says.",
        lambda: _weights(4) - _weights(): "That is what fp32 would be too much for the tables.",
    },
)

exercise(
    "ex-fp8-half-3",
    answer=_spared,
    hint="nanochat_step.kept(D26, b)['activations'] + logits_peak(D26, b), for 16 and for 8.",
    wrong={
        lambda: _spared(terms=("activations",)): "And the logits at the peak.",
        lambda: _spared(terms=("logits",)): "And the activations.",
        lambda: _held(16)["logits"] * 15 // 16: "That is (b), the smaller of the two.",
        lambda: sum(_held(8).values()): "That is what is left with 8; the difference is asked for.",
        lambda: sum(_held(16).values()) // 2: "The copies of the weights are not halved.",
    },
)

exercise(
    "ex-fp8-half-4",
    answer=lambda: storage(_linear(), "fp8_e4m3"),
    hint="Two bytes of each weight become one: count the weights of the linear layers.",
    wrong={
        lambda: storage(_linear(), "bf16"): "That is the bf16 copy; one byte of two is saved.",
        lambda: storage(_linear(), "fp32"): "The fp32 weights stay as they are.",
        lambda: _linear() - 4096 * 128_256: "The head is a linear layer too.",
    },
)
