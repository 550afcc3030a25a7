"""What a chapter prints in a sentence of its own is a message with values."""

import ast
import io
import json
import pickle
from contextlib import redirect_stdout

import pytest

from memlab.base import messages, titles, translated_output
from memlab.base.message import Listed, Message
from memlab.explain import findings
from memlab.explain.findings import Explanation, Finding, Sum, several
from memlab.ledger import Ledger

CELL = """
size, moment = 8192.5, "backward"
print(f"the step: {size:,} GiB, in {moment}")
print("one block:", f"{1024:,} B")
print(f"a slice holds {120} B, its clone", end=" ")
print(f"{40} B of {1200:,} B")
for fits in (True, False):
    print(f"{2048:,} tokens: {'fits' if fits else 'does not'}")
print(f"{4096:,} B")
print("left in English:", 1.5)
print(f"{1:,}".replace("1", "14.96 GiB"))
print({"one": 1.5}, sep="")
label = f"one {moment} of {size / 2:.1f} GiB"
print(label)
print(", ".join([label, f"{size:.0f} B"]))
print(f"the step: {3:,} GiB, in {f'one {moment} of {2} GiB'}")
print("of " + label)
"""
WORDS = {
    "the step: {1} GiB, in {2}": "em {2}, o passo: {1} GiB",
    "backward": "no backward",
    "one block: {1} B": "um bloco: {1} B",
    "a slice holds {1} B, its clone": "uma fatia segura {1} B, o clone",
    "{1} B of {2} B": "{1} B dos {2} B",
    "{1} tokens: {2}": "{1} tokens: {2}",
    "fits": "cabe",
    "does not": "não cabe",
    "one {1} of {2} GiB": "{2} GiB para {1}",
    "of ": "de ",
}
PRINTED = """em no backward, o passo: 8.192,5 GiB
um bloco: 1.024 B
uma fatia segura 120 B, o clone 40 B dos 1.200 B
2.048 tokens: cabe
2.048 tokens: não cabe
4.096 B
left in English: 1.5
14,96 GiB
{'one': 1.5}
4096,2 GiB para no backward
4096,2 GiB para no backward, 8192 B
em 2 GiB para no backward, o passo: 3 GiB
de 4096,2 GiB para no backward
"""


@pytest.fixture
def portuguese(monkeypatch):
    monkeypatch.setattr(messages, "_chosen", ["pt-BR"])
    monkeypatch.setattr(translated_output, "language", messages.language)
    monkeypatch.setattr(messages, "catalogue", lambda code: WORDS)


def printed(tree):
    out = io.StringIO()
    with redirect_stdout(out):
        exec(
            compile(tree, "cell", "exec"),
            translated_output.HELPERS.copy(),
        )
    return out.getvalue()


def test_a_running_notebook_prints_its_sentences_in_the_reader_s_language(portuguese):
    tree = translated_output.Telling().visit(ast.parse(CELL))
    assert printed(tree).splitlines() == PRINTED.splitlines()


def test_in_english_nothing_changes():
    tree = translated_output.Telling().visit(ast.parse(CELL))
    assert printed(tree) == printed(ast.parse(CELL))


def test_the_messages_of_a_cell_are_those_of_its_prints():
    found = translated_output.messages(CELL)
    assert set(WORDS) - {"backward", "of "} <= set(found)
    assert "left in English: {1}" in found and "{1}" not in found


def test_no_shell_listens_in_english_and_one_does_once(portuguese, monkeypatch):
    class Shell:
        user_ns, user_ns_hidden, ast_transformers = {}, {}, []

    class Module:
        get_ipython = staticmethod(lambda: Shell)

    monkeypatch.setitem(translated_output.sys.modules, "IPython", Module)
    translated_output.listen()
    translated_output.listen()
    assert (
        len(Shell.ast_transformers) == 1
        and Shell.user_ns[translated_output.TOLD] is translated_output.sentence
    )
    Shell.user_ns.clear()
    monkeypatch.setattr(messages, "_chosen", ["en"])
    translated_output.listen()
    assert len(Shell.ast_transformers) == 1


SEEN = ["weights", "buffers"]
FOUND = Explanation(
    Ledger.of("derived", {"weights": 2**20}, title=Message(titles.AT_PEAK, what="tiny-llama")),
    3 * 2**20,
    (
        Finding("losses kept with their graphs", 2**20, 4, "often", "print(ids.shape)"),
        Finding("data kept on the device, batch by batch", 2**12, 1, "seldom", "nvidia-smi"),
        Finding("another process on the card", None, 1, "seldom", "print(ids.shape)"),
    ),
    (
        Sum(
            (several(4, "losses kept with their graphs"), "sequences of twice the length"),
            2**21,
            -9,
        ),
    ),
    (Finding("a second model (averaged weights, a reference)", 0, 1, "seldom", ""),),
    (Message(findings.WHERE_NOT, Message("{1} {2}", "inputs", "+9 B"), Listed(", ", SEEN)),),
    ("losses kept with their graphs", "another process on the card"),
)


@pytest.mark.parametrize("language", messages.languages()[1:])
def test_an_explanation_has_no_english_line_in_a_language(language, monkeypatch):
    lines = str(FOUND).splitlines()
    monkeypatch.setattr(messages, "_chosen", [language])
    live = str(FOUND).splitlines()
    same = {a for a, b in zip(live, lines, strict=True) if a == b}
    assert {line.strip() for line in same} == {"", "print(ids.shape)", "nvidia-smi"}


def test_a_message_is_english_as_a_text():
    one = Message("{1} of {2} fit", 3, "8 B")
    assert one == "3 of 8 B fit" and json.loads(json.dumps([one])) == ["3 of 8 B fit"]
    assert pickle.loads(pickle.dumps(one)).values == {"1": 3, "2": "8 B"}
