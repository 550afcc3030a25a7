"""The cheat sheet: its twelve formulas, put into numbers, are what memlab counts."""

import re
from pathlib import Path

import pytest

from memlab import Model, Run, estimate, parse, text
from memlab.adapters.lora import linear_layers
from memlab.step import Lora, simulate
from memlab.terms.kv_cache import kv_cache

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "book" / "cheat-sheet.md").read_text(encoding="utf-8")
ROWS = {
    re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", what): (formula, size)
    for what, formula, size in re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \|$", PAGE, re.M)
    if formula not in ("formula", "---")
}

LLAMA = Model.preset("llama-3-8b")
RUN = Run(batch=1, tokens=8192)
STEP = simulate(LLAMA, "bf16", RUN)
L, D, F, N, K, H, V, T, b = 32, 4096, 14336, 32, 8, 128, 128_256, 8192, 2
P = 2 * V * D + L * (2 * N * H * D + 2 * K * H * D + 3 * D * F + 2 * D) + D
LAYER = T * (16 * D + 8 * F + 4 * N * H + 4 * K * H + 4 * N + 8)


def of(words):
    """The row whose first column begins with these words."""
    return next(row for what, row in ROWS.items() if what.startswith(words))


def by_hand():
    """{the words that a row begins with: (its formula's value, memlab's, what may differ)}."""
    mixed = estimate(LLAMA, "fp32").total("derived")
    linear = 4.5 / 8 * (P - 2 * V * D - L * 2 * D - D)
    layers = tuple(linear_layers(LLAMA))
    lora = Lora(16, layers).parameter_count(LLAMA)
    nf4 = Lora(16, layers, base="nf4").base_bytes(LLAMA, "bf16")
    return {
        "parameters": (P, LLAMA.parameter_count, 0),
        "weights": (P * b, STEP.rows["weights"], 0),
        "states": (2 * P * b, STEP.rows["optimizer"], 4 * 291),  # a counter for each tensor
        "all three": (16 * P, mixed, 4 * 291),
        "activations": (L * LAYER, L * STEP.saved.bytes, 24 * L),
        "the same": (2 * L * T * D + LAYER, None, 0),
        "logits": (12 * T * V, STEP.peak.contents["logits"], 0),
        "LoRA": (16 * L * (2 * (D + N * H) + 2 * (D + K * H) + 3 * (D + F)), lora, 0),
        "4-bit": (int(linear) + b * (2 * V * D + L * 2 * D + D), nf4, 0),
        "KV cache": (2 * L * K * H * b, kv_cache(L, kv_heads=K, head_dim=H, batch=1, tokens=1), 0),
        "mixed precision sharded": (16 * P // 8, None, 0),
        "the peak": (None, STEP.peak.bytes, 0),
    }


@pytest.mark.parametrize(("words", "sizes"), by_hand().items(), ids=str)
def test_a_formula_in_numbers_is_what_memlab_counts(words, sizes):
    derived, counted, spare = sizes
    _, printed = of(words)
    if derived is not None and counted is not None:
        assert abs(counted - derived) <= spare
    size = counted if derived is None else derived
    number = re.match(r"[\d.,]+(?: [KMG]iB)?", printed)[0]
    assert number == (f"{size:,}" if "iB" not in number else text(size)), words


def test_each_row_of_the_sheet_is_counted_here():
    told = [what for what, (_, size) in ROWS.items() if re.match(r"\d", size)]
    assert len(told) == len(by_hand()) == 12
    assert all(any(what.startswith(words) for words in by_hand()) for what in told)


def test_the_message_of_the_sheet_is_that_of_the_first_page():
    said = (ROOT / "book" / "intro.md").read_text(encoding="utf-8")
    for line in re.findall(r"^\| `([^`…]*\d[^`…]*)`", PAGE, re.M):
        words = line.split(" is ", 1)[-1]
        assert words in said and all(parse(size) for size in re.findall(r"[\d.]+ [MG]iB", line))
