"""Exercises of optimizer states."""

from ..estimate import estimate
from ..model import Model
from . import exercise


def _tiny() -> tuple[int, int]:
    """Parameters and tensors of the small model."""
    tiny = Model.preset("tiny-llama")
    return tiny.parameter_count, sum(kind.copies for kind in tiny.tensors())


exercise(
    "ex-optimizer-1",
    answer=lambda: 12 * _tiny()[0] + 4 * _tiny()[1],
    hint="Three fp32 tensors as large as each parameter, and one fp32 counter a tensor.",
    wrong={
        lambda: 8 * _tiny()[0] + 4 * _tiny()[1]: "Those are the states of plain AdamW.",
        lambda: 12 * _tiny()[0]: "Nearly: AdamW also counts its steps, once a tensor.",
        lambda: 12 * _tiny()[0] + 8 * _tiny()[1]: "One counter a tensor is enough.",
    },
)

_llama = 8_030_261_248

exercise(
    "ex-optimizer-2",
    answer=lambda: 2 * _llama,
    hint="Compare the two sums: one of the copies goes from 16 bits to 32.",
    wrong={
        lambda: 4 * _llama: "The gradients grow by 2 bytes each.",
        lambda: 18 * _llama: "That is all that `megatron` stores. How much more is it?",
    },
)

_matrix = 14_336 * 4_096

exercise(
    "ex-optimizer-3",
    answer=lambda: 4 * _matrix + 4,
    hint="Two tensors of two bytes a value, and a counter of four bytes.",
    wrong={
        lambda: 8 * _matrix + 4: "The means have the format of their weight: bfloat16.",
        lambda: 4 * _matrix: "Nearly: the counter takes four bytes.",
        lambda: 2 * _matrix + 4: "Both means are stored: exp_avg and exp_avg_sq.",
    },
)


def _two_tables_frozen() -> int:
    llama = Model.preset("llama-3-8b")
    tables = 2 * llama.vocab * llama.d_model
    return estimate(llama, "fp32").total() - 12 * tables - 4 * 2


exercise(
    "ex-optimizer-4",
    answer=_two_tables_frozen,
    hint="Four bytes of weights for all P; 4 + 8 more, and a counter a tensor, for what trains.",
    wrong={
        lambda: estimate(Model.preset("llama-3-8b"), "fp32").total(): "That is the whole model "
        "trained; a frozen table has neither gradient nor state.",
        lambda: _two_tables_frozen() - 4 * 2 * 128256 * 4096: "A frozen table takes no gradient "
        "and no state, but its weights are still there.",
        lambda: _two_tables_frozen() + 4 * 2: "Nearly: two of the 291 counters are gone as well.",
        lambda: _two_tables_frozen() - 4 * 289: "Nearly: AdamW also counts its steps, once a "
        "tensor.",
        lambda: _two_tables_frozen() + 12 * 128256 * 4096: "The head of Llama-3-8B is a table of "
        "its own, frozen too.",
    },
)
