"""Questions: live where a kernel runs, the default answer as plain HTML everywhere else."""

import subprocess
import sys

import pytest

from memlab import widgets
from memlab.ledger import Ledger
from memlab.plot import ledger_bar
from memlab.units import text
from memlab.widgets import Control, ask

VIEW = "application/vnd.jupyter.widget-view+json"


@pytest.fixture
def question():
    return ask(
        "How much do <these> tokens hold?",
        lambda tokens, width: text(2 * tokens * width),
        tokens=("tokens", [1024, 2048], 2048),
        width=("width", range(8, 65, 8)),
    )


def test_the_default_answer_needs_no_kernel(question):
    bundle = question._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    assert "32 KiB" in bundle["text/plain"] and "tokens=2048, width=8" in bundle["text/plain"]
    page = bundle["text/html"]
    assert "<pre>32 KiB</pre>" in page and "tokens: <strong>2,048</strong>" in page
    assert "&lt;these&gt;" in page and widgets.HOW_TO_MANY in page


def test_answers_follow_the_values(question):
    assert question.answer(tokens=1024) == "<pre>16 KiB</pre>"


def test_the_live_form_follows_its_sliders(question, monkeypatch):
    pytest.importorskip("ipywidgets")
    monkeypatch.setattr(widgets, "_live", lambda: True)
    bundle = question._repr_mimebundle_()
    assert VIEW in bundle and "32 KiB" in bundle["text/html"]
    form = question.widget()
    _, tokens, width, answer = form.children
    assert tokens.description == "tokens" and tokens.value == 2048 and width.value == 8
    tokens.value = 1024
    width.value = 64
    assert answer.value == "<pre>128 KiB</pre>"


def test_a_combination_that_cannot_be_is_explained():
    pytest.importorskip("ipywidgets")

    def heads(count):
        if 32 % count:
            raise ValueError(f"{count} does not divide 32")
        return text(count)

    form = ask("How many heads?", heads, count=("heads", [4, 5])).widget()
    form.children[1].value = 5
    assert form.children[2].value == "<pre>5 does not divide 32</pre>"


def test_ledgers_and_pictures_show_themselves():
    ledger = Ledger.of("derived", {"weights": 4096}, title="x")
    for result in (ledger, ledger_bar(ledger)):
        page = ask("What is it?", lambda n, r=result: r, n=("n", [1]))._repr_html_()
        assert "<table" in page or "<svg" in page
        assert widgets.HOW_TO in page


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: ask("?", text), ValueError, "something to move"),
        (lambda: ask("?", text, count=("bytes", [])), ValueError, "'bytes' has no values"),
        (lambda: ask("?", text, count=("bytes", [1, 2], 3)), ValueError, "default 3 is not among"),
        (lambda: Control("bytes", range(3), 4), ValueError, "default 4 is not among 0, 1, 2"),
        (lambda: ask("?", lambda n: n, n=("n", [7]))._repr_html_(), TypeError, "bare number 7"),
    ],
)
def test_wrong_input_is_named(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_import_is_light():
    code = "import memlab.widgets, sys; sys.exit('ipywidgets' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
