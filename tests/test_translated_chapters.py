"""The chapters as they are staged in each language: no English line, no number in English form.

A line counts as English where it stands in the English chapter too and has words that are no name.
What stays is listed below by its cell, with the reason; a cell that no longer needs it is found.
"""

import html
import json
import re
from pathlib import Path

import catalogue
import check
import lay
import pytest
from blocks import SILENT

from memlab.base.messages import CONTEXT
from memlab.base.messages import catalogue as messages_of
from memlab.base.numerals import MARKS, RUN

ROOT = Path(__file__).resolve().parent.parent
LANGUAGES = catalogue.languages()
WRITTEN = [language for language in LANGUAGES if language in MARKS]
# Code that a cell prints, what another program says, an exception, a value as Python prints it.
OWN = {
    "06_logits": {"printed-log": "PyTorch's message"},
    "08_allocator": {"message": "PyTorch's message"},
    "09_watching": {
        "formula-summary": "torch.cuda.memory_summary()",
        "measure-rehearsed": "what the script prints",
        "formula-lines": "code",
        "formula-stops": "code, and PyTorch's message",
    },
    "23_pruning": {"two-four-refused": "PyTorch's message"},
    "34_missing_gigabytes": {
        "formula-first-source": "code",
        "formula-second": "code",
        "formula-hostile": "an exception",
    },
    "13_serving": {
        "formula-log": "vLLM's log",
        "sol-serving-2": "an exception",
    },
}
# Lines of code and of keys in other cells: where to look, and what AdamW calls its counter.
KEYS = {"             print(ids.shape)", "step: [] torch.float32"}
# What looks like a sentence in a table and is a list of names, or a setting that a note quotes.
NAMES = {
    ("31_status_report", "test-8bit: true, medium_3b: true"),
}
WORD = re.compile(r"(?<![\w.=_(\[{'\"/-])[a-z]{3,}(?![\w=_(\[/']|\.\w)")
# Words that a language writes as English does, and names in lower case.
LOANS = set("tokens ranks buffers logits embedding total autograd cache vetor print shape".split())
HIDDEN = re.compile(r"<(q|code|script|style)\b.*?</\1>", re.S)
TEXT = re.compile(r">([^<>]+)<")
# A number with an English mark: 1,024 B is a count, and 3.25 has not the three places of 3.250.
ENGLISH = re.compile(
    r"\d{1,3}(?:,\d{3}){2,}|\d{1,3}(?:,\d{3})+(?= B\b| tokens| bytes)|\d+\.(?!\d{3}(?!\d))\d+"
)
NAMED = re.compile(
    r"(?:--[\w-]+|Fig\.|[Tt]ab\w+|seção|vers\w+|depois da|torch|PyTorch|transformers|trl|"
    r"torchao(?:/optim)?|"
    r"TRL|accelerate|bitsandbytes|huggingface_hub|safetensors|Specification|specifications|"
    r"peft|capability|vllm-project/vllm|vLLM|_muon\.py|Llama|v|\bo|\bdo|\ba|\bna)\W*$"
)


@pytest.fixture(scope="module")
def laid(tmp_path_factory):
    return {x: lay.notebooks(x, tmp_path_factory.mktemp("laid") / x) for x in LANGUAGES}


def chapters(*languages):
    """Those that are whole in these languages: a page that is not shows English, and says so."""
    found = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
    return [path for path in found if not any(check.marked(x, path.stem) for x in languages)]


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def printed(cell):
    return [
        line
        for output in cell.get("outputs", [])
        if output["output_type"] == "stream"
        for line in "".join(output["text"]).splitlines()
    ]


def labels(cell):
    """The texts of a cell's tables and pictures, without quotations and code."""
    found = []
    for output in cell.get("outputs", []):
        for kind in ("text/html", "image/svg+xml"):
            shown = HIDDEN.sub("", "".join(output.get("data", {}).get(kind, "")))
            found += [html.unescape(text) for text in TEXT.findall(shown)]
    return found


def is_english(line):
    return bool(set(WORD.findall(line)) - LOANS)


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_printed_line_is_english_but_those_of_others(laid, language):
    left, needed = {}, {}
    for path in chapters(language):
        own = OWN.get(path.stem, {})
        for there, here in zip(read(path), read(laid[language] / path.name), strict=True):
            same = [a for a, b in zip(printed(there), printed(here), strict=True) if a == b]
            if english := [line for line in same if is_english(line) and line not in KEYS]:
                (needed if here["id"] in own else left).setdefault(path.stem, {})[here["id"]] = (
                    english
                )
    assert {name: cells for name, cells in left.items() if any(cells.values())} == {}
    assert {name: set(cells) for name, cells in needed.items()} == {
        name: set(cells) for name, cells in OWN.items() if not check.marked(language, name)
    }


def plain(cell):
    """The lines of a cell's results as the page of what did not save memory shows them."""
    if not cell["id"].startswith("no-gain-"):
        return []
    data = [output.get("data", {}) for output in cell.get("outputs", [])]
    return [line for each in data for line in "".join(each.get("text/plain", "")).splitlines()]


def escaped(text, words, senses):
    """Whether a text that is the same in both languages is neither a name nor a loan."""
    if not is_english(text) or text in senses:
        return False
    return words.get(text, text) != text or len(WORD.findall(text)) > 2


def test_no_label_of_a_table_or_a_picture_is_english_but_names(laid):
    left = set()
    for language in LANGUAGES:
        words = messages_of(language)
        senses = {key.rpartition(CONTEXT)[2] for key in words if CONTEXT in key}
        for path in chapters(*LANGUAGES):
            for there, here in zip(read(path), read(laid[language] / path.name), strict=True):
                same = {*labels(there), *plain(there)} & {*labels(here), *plain(here)}
                if here["id"] not in OWN.get(path.stem, {}):
                    left |= {(path.stem, text) for text in same if escaped(text, words, senses)}
    whole = {path.stem for path in chapters(*LANGUAGES)}
    assert left == {(name, text) for name, text in NAMES if name in whole}


def english_number(text, kept=()):
    """The first number in English form that is no name and no code."""
    for found in ENGLISH.finditer(text):
        glued = re.search(r"[A-Za-z_=/'\"-]$", text[: found.start()])
        run = next(r[0] for r in RUN.finditer(text) if r.start() <= found.start() < r.end())
        if run != found[0] or glued or re.match(r"[A-Za-z_]", text[found.end() :]):
            continue
        if "capability" in text[: found.start()]:  # what is compared with a version is one
            continue
        if any(a <= found.start() < b for a, b in kept) or NAMED.search(text[: found.start()]):
            continue
        return text[max(0, found.start() - 40) : found.end() + 20]
    return None


@pytest.mark.parametrize("language", WRITTEN)
def test_no_number_of_a_chapter_is_in_english_form(laid, language):
    left = []
    for path in chapters(language):
        own = OWN.get(path.stem, {})
        for cell in read(laid[language] / path.name):
            if cell["cell_type"] == "markdown":
                text = re.sub(r"```.*?```", "", "".join(cell["source"]), flags=re.S)
                texts = [(text, [found.span() for found in SILENT.finditer(text)])]
            else:
                shown = labels(cell) + (printed(cell) if cell["id"] not in own else [])
                texts = [(text, ()) for text in shown]
            found = [english_number(*each) for each in texts]
            left += [(path.stem, cell["id"], each) for each in found if each]
    assert "\n".join(map(str, left)) == ""


@pytest.mark.parametrize(
    ("text", "is_there"),
    [
        ("1,048,576 of", True),
        ("3.25 GiB", True),
        ("4,096 tokens", True),
        ("1.048.576", False),
        ("8,318 GiB", False),
        ("PyTorch 2.13", False),
        ("Qwen3-0.6B", False),
    ],
)
def test_a_number_in_english_form_is_seen(text, is_there):
    assert (english_number(text) is not None) is is_there
