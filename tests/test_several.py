"""What an answer says of several GPUs, and which choice it offers where it has no answer."""

import json

import peaks_seal
import pytest

from memlab.base.message import rendered
from memlab.page import ways_out
from memlab.page.answer import answered, outcome
from memlab.page.asked import answered as asked
from memlab.page.controls import START
from memlab.page.peak_files import reader

LOOKUP = reader(peaks_seal.kept())
SEVERAL = [
    ({"model": "qwen3-32b", "data": 8, "zero": 3}, 8),
    ({"model": "qwen3-0.6b", "data": 4}, 4),
    ({"tensor": 2}, 2),
    ({"data": 2, "trained": "qlora", "card": "RTX 4090"}, 2),
    ({"use": "serve", "model": "llama-3-70b", "dtype": "awq", "card": "RTX 4090", "cards": 2}, 2),
    ({"use": "serve", "card": "T4", "cards": 2, "users": 900}, 2),
    ({"use": "serve", "model": "llama-3-70b", "card": "T4", "cards": 2}, 2),
]


def told(words):
    return rendered(words, {}, "en")


@pytest.mark.parametrize(("state", "count"), SEVERAL)
def test_several_gpus_are_named_and_a_size_is_that_of_each(state, count):
    found = answered(state, LOOKUP)
    verdict, card = told(found["verdict"]), f"{count} × {found['card']}"
    assert card in verdict and " per GPU" in verdict
    assert f", one of {count} GPUs" in told(found["heading"])
    assert told(found["picture"]).startswith(f"A bar of {found['total_text']} per GPU: ")
    sizes = [each.values["size"] for each in found["steps"] if "size" in each.values]
    assert all(told(size).endswith(" per GPU") for size in sizes)
    if found["peak"] or "use" in state:
        what = "users" if "use" in state else "batch"
        assert card in told(asked(state, LOOKUP, what)["line"])
        assert told(asked(state, LOOKUP, "gpus")["then"]) == f"Each line is of {count} such GPUs."
    if "use" not in state:
        assert f"a single {found['card']}" in told(found["serving"])


@pytest.mark.parametrize("state", [{}, {"use": "serve"}, {"use": "serve", "engine": "llama.cpp"}])
def test_of_one_gpu_no_sentence_speaks_of_several(state):
    found = answered(state | {"cards": 2} if "engine" in state else state, LOOKUP)
    for name in ("verdict", "heading", "picture", "serving"):
        for words in (" per GPU", " × H100", "one of ", "a single "):
            assert words not in told(found[name])
    assert asked(state, LOOKUP, "gpus")["then"] == ""


def test_one_conversation_is_what_inference_is_asked_about_at_first():
    assert START["users"] == 1
    found = answered({"use": "serve"}, LOOKUP)
    assert " supports a conversation of 8,192 tokens: " in told(found["verdict"])
    assert "one conversation × 8,192 tokens" in told(found["heading"])
    line = told(asked({"use": "serve"}, LOOKUP, "context")["line"])
    assert line.startswith("Longest context of one conversation on H100 80GB: ")


def test_where_cuda_is_missing_llama_cpp_is_offered_and_answers():
    for state in ({}, {"use": "serve"}, {"use": "serve", "engine": "none"}):
        state = state | {"card": "Apple 32GB"}
        refused = outcome(json.dumps(state), LOOKUP)
        ((words, sets),) = refused["ways"]
        assert words == ways_out.ON_APPLE and "runs no CUDA" in told(refused["error"])
        assert answered(state | sets, LOOKUP)["fits"]
    for state in ({"batch": 0}, {"tensor": 3}, {"card": "Apple 32GB", "batch": 0}, []):
        assert "ways" not in outcome(json.dumps(state), LOOKUP)
    long = {"use": "serve", "engine": "llama.cpp", "card": "Apple 32GB", "context": 100_000}
    assert "ways" not in outcome(json.dumps(long), LOOKUP)  # not the card is what is wrong


@pytest.mark.parametrize("zero", [1, 2])
def test_where_deepspeed_has_no_copy_of_the_weights_one_is_offered(zero):
    state = {"model": "qwen3-0.6b", "data": 2, "zero": zero}
    found = answered(state, LOOKUP)
    ((words, sets),) = found["ways"]
    assert words == ways_out.WITH_A_COPY and found["why"] == ways_out.NO_COPY_OF_WEIGHTS
    assert "counts" not in found  # the package has no such step either
    then = answered(state | sets, LOOKUP)
    assert then["ways"] == [] and then["counts"] == "step"
    assert answered(state | {"precision": "fp32"}, LOOKUP)["ways"] == []
