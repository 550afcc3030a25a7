"""Numbers are turned as Portuguese writes them, and nothing is that only looks like a number."""

from pathlib import Path

import pytest

from memlab.base.numerals import NAMES, written

TURNED = {
    "8,192 tokens": "8.192 tokens",
    "8.318 GiB": "8,318 GiB",
    "1,024.5 KiB": "1.024,5 KiB",
    "−1,536 B, +6.59 GiB, -8.37 GiB": "−1.536 B, +6,59 GiB, -8,37 GiB",
    "0.01 %, 26.1% and 54.07x": "0,01 %, 26,1% and 54,07x",
    "2,048×2,048 or 2,048x2,048": "2.048×2.048 or 2.048x2.048",
    "8.25–15.5 GiB (29.92)": "8,25–15,5 GiB (29,92)",
    "15.19/29.92": "15,19/29,92",
    "2.13 GiB, do 2.13 GiB": "2,13 GiB, do 2,13 GiB",
    "96% of 16,384.": "96% of 16.384.",
    "Qwen3-0.6B: 1.11 GiB": "Qwen3-0.6B: 1,11 GiB",
    "2.0 is twice it": "2,0 is twice it",
    "PyTorch 2.13: 1,024 B": "PyTorch 2.13: 1.024 B",
}
KEPT = (
    "Llama-3.1-8B",
    "Llama 3.1",
    "a model of 0.6B",
    "Mistral-7B-v0.1",
    "PyTorch 2.8",
    "o `transformers` 5.23",
    "torch 2.13.0+cpu",
    "[versão 2.12](x)",
    "do 2.12 em diante",
    "(rodamos o 5.23)",
    "torch/optim/_muon.py, 2.13.",
    "seção 3.3.2, seção 5.4, tabela 3.5",
    "capability 8.0, and 8.6 is refused",
    "[2205.14135]",
    "lr=0.00005 --lr 0.00005",
    "write '1.5 GiB' or \"3.5\"",
    "1,2 and 3",
    "1, 2, 3",
    "resume.py:47",
    "2024-11",
)


@pytest.mark.parametrize(("text", "turned"), TURNED.items())
def test_a_number_stands_as_portuguese_writes_it(text, turned):
    assert written(text, "pt-BR") == turned


@pytest.mark.parametrize("text", KEPT)
def test_a_name_a_version_and_code_stay(text):
    assert written(text, "pt-BR") == text


@pytest.mark.parametrize("text", TURNED)
def test_other_languages_write_as_english_does(text):
    assert written(text, "zh-TW") == written(text, "en") == text


def test_what_is_marked_as_code_stays():
    assert written("`1,024` 1,024", "pt-BR", [(0, 7)]) == "`1,024` 1.024"


def test_the_page_knows_the_same_names():
    script = Path(__file__).parent.parent / "book" / "calculator" / "numerals.mjs"
    joined = script.read_text("utf-8").replace('" +\n      "', "")
    assert NAMES.replace("\\", "\\\\") in joined or NAMES in joined
