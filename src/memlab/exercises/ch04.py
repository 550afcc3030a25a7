"""Exercises of chapter 04, optimizer states."""

from ..estimate import estimate
from ..model import Model
from ..terms.optimizer import quantized_adamw
from . import exercise


def _state(name: str) -> int:
    return estimate(Model.preset(name), "fp32").total() - 8 * Model.preset(name).parameter_count


exercise(
    "ex-optimizer-1",
    answer=lambda: _state("llama-3-8b"),
    hint="Two fp32 numbers a parameter, and one fp32 counter for each of the 291 tensors.",
    wrong={
        lambda: _state("llama-3-8b") - 4 * 291: "The 291 step counters are missing.",
        lambda: _state("llama-3-8b") - 3 * 291: "A counter is a whole fp32 number: four bytes.",
    },
)

exercise(
    "ex-optimizer-2",
    answer=lambda: quantized_adamw((128, 33), format="fp32", kind="adamw8bit"),
    hint="Does a block of 256 divide the number of values? If not, the states are not quantized.",
    wrong={
        lambda: 2 * 128 * 33 * 4: "Almost: AdamW also counts its steps.",
        lambda: 2 * 128 * 33: "256 does not divide 128 · 33, so nothing is quantized here.",
    },
)

exercise(
    "ex-optimizer-3",
    answer=lambda: 2 * Model.preset("qwen3-4b").parameter_count,
    hint="Compare the two sums: one of the copies goes from 16 bits to 32.",
    wrong={lambda: 4 * Model.preset("qwen3-4b").parameter_count: "The gradients grow by 2 bytes."},
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
