"""A model that somebody names on the page: taken for what the command line takes it for."""

import pytest
from test_calculator import folder, there  # noqa: F401  fixture
from test_hub_names import OTHER, SAME_SHAPE

from memlab.base.message import parts
from memlab.cli import main
from memlab.model import Model
from memlab.model.hub_names import found
from memlab.model.sizes import about, billions, near, parameters
from memlab.page.named import meant

HUB = [line.split()[0] for line in SAME_SHAPE.strip().split("\n")]
WORDS = [
    "7B",
    "1.5b",
    "70 B",
    "350M",
    "3000B",
    "Llama-3-8B",
    "qwen",
    "",
    "9" * 400,
    "<b>/x",
    "a b/c",
]
WORDS += [
    "meta-llama/Meta-Llama-3-8B",
    "https://huggingface.co/Qwen/Qwen3-8B",
    "7Bx",
    "1..5B",
    ".B",
]


@pytest.mark.parametrize(
    ("word", "count"),
    [
        ("7B", 7e9),
        ("1.5b", 1.5e9),
        ("70 B", 7e10),
        (" 350M ", 3.5e8),
        ("0.5B", 5e8),
        ("671b", 6.71e11),
    ],
)
def test_a_size_is_parameters(word, count):
    assert parameters(word) == count


@pytest.mark.parametrize(
    "word", ["7", "B", "b7", "7BB", "1.B", ".5B", "1,5B", "7B-instruct", "1.2.3B"]
)
def test_other_words_are_no_sizes(word):
    assert parameters(word) == 0 and about(word) == ""


def test_presets_near_a_size_are_near_it_and_named_with_theirs():
    for count in (14 * 10**7, 7 * 10**9, 7 * 10**10):
        sizes = [Model.preset(name).parameter_count for name in near(count)]
        assert all(abs(size - count) <= 0.15 * count for size in sizes)
        assert sizes == sorted(sizes, key=lambda size: abs(size - count))
    assert near(3 * 10**12) == ["deepseek-v3"]
    assert "the nearest preset: deepseek-v3 (671B)" in about("3000B")
    assert "llama-2-7b (6.74B)" in about("7B")


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (8030261248, "8.03"),
        (134515008, "0.135"),
        (70553706496, "70.6"),
        (671026419200, "671"),
        (10**7, "0.010"),
    ],
)
def test_billions_have_three_digits(count, words):
    assert billions(count) == words


def test_the_shell_and_the_page_say_the_same_of_a_size(capsys):
    assert main(["estimate", "7B", "--tokens", "16"]) == 2
    assert capsys.readouterr().err.strip().endswith(meant("7B", "train")["line"])


def test_a_name_of_the_hub_chooses_what_the_shell_takes_it_for():
    for name in HUB:
        what, told = found(name), meant(name, "train")
        if what.stored == "":
            assert (told["model"], told["line"]) == (what.preset, what.told(name))
        else:
            assert (told["names"], told["line"]) == ([what.preset], what.refusal(name))
    packed = meant("Qwen/Qwen2.5-7B-Instruct-AWQ", "serve")
    assert (packed["model"], packed["sets"]) == ("qwen2.5-7b", {"dtype": "awq"})
    rare = meant("unsloth/llama-3-8b-bnb-4bit", "serve")
    assert rare["names"] == ["llama-3-8b"] and "nf4-dq" in rare["line"] and "model" not in rare


def test_another_name_gets_the_address_of_its_config_and_no_model():
    for name in OTHER:
        told = meant(name, "train")
        assert set(told) <= {"line", "address"}
    told = meant("https://huggingface.co/Qwen/Qwen2.5-VL-7B-Instruct/", "train")
    address = "https://huggingface.co/Qwen/Qwen2.5-VL-7B-Instruct/blob/main/config.json"
    assert told["address"] == address
    assert meant("Llama-3-8B", "train")["model"] == "llama-3-8b"


def test_the_engines_agree(folder):  # noqa: F811
    pairs = [(word, use) for word in HUB + OTHER + WORDS for use in ("train", "serve")]
    ours = [parts(meant(*pair)) for pair in pairs]
    theirs = there(folder, [], named=pairs)["meant"]
    apart = [each for each in zip(pairs, ours, theirs, strict=True) if each[1] != each[2]]
    assert not apart, f"{len(apart)} of {len(pairs)}, the first as (asked, here, there): {apart[0]}"
