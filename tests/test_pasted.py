"""`memlab explain` reads what people paste, whole and damaged, and says what it says.

The texts are in tests/pasted_texts.py; memlab.files.observation has the table of kinds.
"""

import gzip
import io
import json
import pickle
import random
import sys
import time

import damaged
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pasted_texts import EXACT, FIGURES, KINDS, NOW, OOM, SMI, bytes_of

from memlab import Model, Recipe, Run
from memlab import explain as public
from memlab.cli import main
from memlab.explain import pasted
from memlab.explain.causes.of_work import ALL_TRAINED
from memlab.explain.explanation import explain
from memlab.explain.findings import CAUSES
from memlab.files import observation
from memlab.files.observation import seen
from memlab.measure.oom_message import oom_message
from memlab.terms.allocator import OutOfMemory
from memlab.units import GiB, MiB

CENT = GiB // 100 + 1  # a last digit
FEW = settings(max_examples=300, deadline=None)


def run(capsys, *words):
    status = main(["explain", *words])
    out, err = capsys.readouterr()
    return status, out, err


@pytest.mark.parametrize("name", KINDS)
def test_each_kind_is_read_in_each_of_its_wordings(name, tmp_path):
    text, wanted = KINDS[name]
    path = tmp_path / "what.log"
    path.write_bytes(text.encode())
    in_a_file = seen(str(path))
    assert seen(text) == in_a_file
    path.write_bytes(gzip.compress(text.encode("utf-16")))  # as PowerShell writes it
    assert seen(str(path)) == in_a_file
    for key, value in wanted.items():
        found = getattr(in_a_file, key)
        if key in EXACT:
            assert found == value, key
        else:
            assert found is not None and abs(found - bytes_of(value)) <= CENT, key


def test_a_message_that_memlab_writes_is_read_to_its_last_digit():
    error = OutOfMemory(
        GiB, tried=2 * GiB, capacity=24 * GiB, allocated=20 * GiB, reserved=21 * GiB
    )
    found = seen(oom_message(error, "RTX 4090", number=3))
    assert (found.asked, found.allocated, found.reserved) == (2 * GiB, 20 * GiB, 21 * GiB)
    assert found.device == 3 and found.amount == 22 * GiB and found.cached == GiB


def test_of_several_messages_the_first_is_taken_and_the_others_are_counted():
    other = NOW.replace("1.50 GiB", "2.50 GiB")
    log = f"[rank1]: {NOW}\n\n[rank0]: {other}\n\n[rank1]: {NOW}\n\n[rank3]: {other}\n"
    found = seen(log)
    assert found.rank == 1 and found.ranks == (1, 0, 3) and found.asked == bytes_of(1.5)
    said = "\n".join(pasted.said(found))
    assert "3 such messages. This is the first; ranks that have one: 0, 1, 3." in said
    assert "such messages" not in "\n".join(pasted.said(seen(NOW + "\n\n" + NOW)))


def changed_in(text, **figures):
    """The message with other figures, which stand there once each."""
    for old, new in figures.values():
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize(
    "figures, said, not_said",
    [
        ({}, "Fragmentation: the cache has 1.75 GiB", "The whole"),
        ({"asked": ("allocate 1.50", "allocate 2.00")}, "Fragmentation has a part", "The whole"),
        ({"asked": ("allocate 1.50", "allocate 3.50")}, "1.5 GiB are missing", "Fragmentation"),
        ({"asked": ("allocate 1.50", "allocate 99.5")}, "larger than the card", "expandable"),
        (
            {"free": ("0.25 GiB is", "9.00 GiB is"), "cache": ("1.75 GiB", "0.25 GiB")},
            "a limit of its own",
            "Fragmentation",
        ),
        (
            {"process": ("has 23.25", "has 20.00"), "got": ("memory 21.00", "memory 17.00")}
            | {"asked": ("allocate 1.50", "allocate 4.00")},
            "without them the request would have succeeded",
            "Fragmentation",
        ),
        ({"got": ("memory 21.00", "memory 31.00")}, "lends memory of the host", "outside PyTorch"),
        ({"process": ("has 23.25", "has 23.05")}, "307.2 MiB of the process lie outside", "lends"),
    ],
)
def test_a_message_alone_says_what_it_says(figures, said, not_said, capsys):
    status, out, err = run(capsys, changed_in(NOW, **figures))
    assert status == 0 and not err
    assert said in out and not_said not in out
    assert "memlab explain CONFIG FILE --precision bf16" in out and "--on 'RTX 4090'" in out


def test_standard_input_is_read(capsys, monkeypatch, tmp_path):
    def given(text):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    for words in ([], ["-"], ["--seen", "-"], ["tiny-llama"], ["tiny-llama", "-"]):
        given(NOW)
        status, out, err = run(capsys, *words)
        assert status == 0 and "asked for 1.5 GiB" in out and not err
        assert ("predicted" in out) == ("tiny-llama" in words)
    given("")
    status, out, err = run(capsys)
    assert status == 2 and "standard input is empty" in err and OOM in err
    path = tmp_path / "it.log"
    path.write_text(NOW)
    for words in (
        ["tiny-llama", str(path), "--tokens", "64"],
        ["tiny-llama", "--tokens", "64", str(path)],
    ):
        assert run(capsys, *words)[0] == 0  # argparse of Python 3.11 needs help with the second
    assert "give one of them" in run(capsys, "gpt2", NOW, "--seen", "9GB")[2]
    assert "of which model" in run(capsys, "--seen", "9GB")[2]


def test_json_has_what_was_read(capsys):
    alone = json.loads(run(capsys, NOW, "--json")[1])
    assert alone["memlab"] == "explain pasted" and alone["read"]["asked"] == bytes_of(1.5)
    assert any("Fragmentation" in note for note in alone["notes"])
    found = json.loads(run(capsys, "tiny-llama", NOW, "--tokens", "64", "--json")[1])
    assert found["read"]["allocated"] == 21 * GiB and found["at_least"] and found["request"] == []


# With a model: 2 x 2,048 tokens of Llama-3-8B have logits of 1.957 GiB in fp32.
LOGITS = NOW.replace("1.50 GiB", "1.96 GiB").replace("23.64", "79.11").replace("23.25", "78.50")
STEP = "llama-3-8b --precision bf16 --batch 2 --tokens 2048".split()


def test_the_request_that_failed_is_named_by_its_tensor(capsys):
    out = run(capsys, *STEP, LOGITS)[1]
    assert "as large as logits: " in out and "[4096, 128256] in fp32" in out
    assert "runs out of memory as derived" in out
    assert "21 GiB were allocated, so the run needs 22.96 GiB or more" in out
    assert "22.96 GiB or more were needed: nothing is missing" in out and CAUSES not in out
    assert "No tensor that this step makes" in run(capsys, *STEP, NOW)[1]
    twenty = NOW.replace("1.50 GiB", "20.00 MiB")
    assert "any tensor of 1 to 10 MiB" in run(capsys, *STEP, twenty)[1]


def test_a_master_copy_is_found_before_what_is_as_large_elsewhere():
    """The same bytes are a gradient of the fused head: what was held decides which stands first."""
    model, run_ = Model.preset("llama-3-8b"), Run(batch=1, tokens=128)
    recipe = Recipe.named("zero")
    asked = 128256 * 4096 * 4  # the output head in fp32
    found = observation.Seen(0, "allocated", asked=asked, allocated=0)
    rows = pasted.rows_of(found, model, recipe, run_)
    assert "master" in {row["term"] for row in rows}
    assert all(abs(row["bytes"] - asked) < 4 * MiB for row in rows)


def test_causes_are_those_that_the_options_leave_open():
    """At least: what adds more than is missing so far is a cause too, for the run was not over."""
    model, how = Model.preset("tiny-llama"), Run(batch=1, tokens=32)
    least = explain(model, "bf16", how, seen=8 * MiB, level="allocated", at_least=True)
    names = [one.name for one in least.causes]
    assert least.gap > 0 and least.at_least and not least.sums and not least.equal
    assert max(one.bytes or 0 for one in least.causes) > least.gap
    assert "or more are missing" in str(least) and "everything in fp32" in names
    settled = explain(
        *(model, "bf16", how), seen=32 * MiB, level="allocated", settled=("everything in fp32",)
    )
    assert "everything in fp32" not in str(settled)


def test_what_was_said_is_no_cause(capsys):
    words = "tiny-llama --seen 900MiB --batch 2 --tokens 64".split()
    open_ = run(capsys, *words, "--recipe", "bf16")[1]
    assert "everything in fp32" not in open_
    out = run(capsys, *words, "--precision", "bf16", "--lora-rank", "4")[1]
    assert "everything in fp32" not in out and ALL_TRAINED not in out
    assert ALL_TRAINED in run(capsys, *words, "--precision", "bf16")[1] or CAUSES in open_


def test_python_takes_a_message_too():
    found = public(Model.preset("tiny-llama"), "bf16", Run(tokens=64), seen=NOW)
    assert found.at_least and found.seen == seen(NOW).amount and found.rounding == GiB // 100


# Files of torch.profiler and PyTorch.
TRACE = {
    "schemaVersion": 1,
    "traceEvents": [
        {
            "ph": "i",
            "name": "[memory]",
            "args": {
                "Total Reserved": 3 * MiB * n,
                "Total Allocated": 2 * MiB * n,
                "Bytes": 512,
                "Device Id": 0,
                "Device Type": kind,
                "Addr": 1,
            },
        }
        for n, kind in ((1, 1), (4, 1), (2, 1), (9, 0))
    ],
}
TIMELINE = [
    [1, 2, 3],
    [[0, 5, 0, 0, 0, 0, 0, 0, 0], [0, 5, 7, 0, 0, 0, 0, 0, 9], [0, 1, 1, 0, 0, 0, 0, 0, 0]],
]
RAW = [[-1, 0, 5, 0], [3, 1, 16, 7], [4, 3, -16, 7], [5, 1, 2, 4]]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    "document, amount, words",
    [
        (TRACE, 8 * MiB, ()),
        (TIMELINE, 21, ("9 B   unknown", "7 B   optimizer state", "5 B   parameter")),
        (RAW, 21, ("16 B   unknown", "5 B   parameter")),
    ],
)
def test_files_of_the_profiler_are_read(document, amount, words, packed, tmp_path):
    path = tmp_path / ("it.json.gz" if packed else "it.json")
    data = json.dumps(document, indent=1).encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    found = seen(str(path))
    assert found.amount == amount and found.level == "allocated"
    assert [line for line in found.words if line.strip() in words] == [
        line for line in found.words[1:]
    ]


def test_snapshots_and_timelines_are_read_from_standard_input_too(monkeypatch):
    for data, wanted in (
        (pickle.dumps(damaged.SNAPSHOT), 2048),
        (json.dumps(damaged.TIMELINE).encode(), 2000),
    ):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        assert seen("-").amount == wanted


@pytest.mark.parametrize(
    "data, said",
    [
        (b"<html><img src='data:image/png;base64,AAAA'></html>", "a picture and no figures"),
        (b'{"traceEvents": []}', "profile_memory=True"),
        (b"\x1f\x8b\x08\x00broken", "damaged"),
        (gzip.compress(b"\0" * 2**20), "none of what is read"),
        (b"", "is empty"),
        (b"\xff\xfe\x00", "none of what is read"),
        (b"[" * 100_000, "none of what is read"),
        (b"CUDA out of memory. Tried to allocate X.XX GiB", "none of what is read"),
    ],
)
def test_what_is_not_read_gets_one_line(data, said, tmp_path, capsys):
    path = tmp_path / "what"
    path.write_bytes(data)
    status, out, err = run(capsys, str(path))
    assert status == 2 and not out and err.count("\n") == 1 and said in err


def test_a_limit_holds_for_what_is_read_and_for_what_it_unpacks_to(monkeypatch, tmp_path):
    monkeypatch.setattr(observation, "MOST_TEXT", 1000)
    path = tmp_path / "large"
    for data in (b"x" * 2000, gzip.compress(b"x" * 100_000)):
        path.write_bytes(data)
        with pytest.raises(ValueError, match="1,000 B"):
            seen(str(path))


HOSTILE = [
    "tried to allocate " * 50_000,
    "Tried to allocate 1.00 GiB " * 20_000,
    "9" * 200_000,
    "1.5 GiB " * 50_000,
    "| 1 " * 50_000,
    "Process 1 has 1.00 GiB memory in use. " * 20_000,
    "\x1b[" * 100_000,
    "\x1b]" * 100_000,
    "|" + " " * 200_000,
    "PyTorch CUDA memory summary" * 10_000,
    "memory.used," * 20_000,
    "init_mem_gpu" * 20_000,
    "max allocated" + " " * 200_000,
    "[" * 200_000,
    "\n[rank1]: " * 30_000,
    "tried to allocate 1.00 GiB" + "\n> " * 100_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_no_text_makes_a_pattern_slow(text):
    began = time.process_time()
    try:
        seen(text)
    except ValueError:
        pass
    assert time.process_time() - began < 5


def test_no_control_character_is_printed(capsys):
    evil = "\x1b[2J\x1b]0;gone\x07\u202e"
    for text in (evil + NOW + evil, NOW.replace("GPU 1", f"GPU {evil}1"), SMI + evil):
        out = run(capsys, text)[1]
        assert out and all(c.isprintable() or c == "\n" for c in out)


@st.composite
def mangled(draw):
    """A text of the corpus that was cut, doubled, translated around, or has odd pieces in it."""
    text = draw(st.sampled_from([text for text, _ in KINDS.values()]))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(text)))
        to = draw(st.integers(at, min(len(text), at + 200)))
        how = draw(st.integers(0, 4))
        if how == 0:
            text = text[:at] + text[to:]
        elif how == 1:
            text = text[:to] + text[at:]
        elif how == 2:
            odd = [
                "99999999999999999999.99 GiB",
                "-1 GiB",
                "nan",
                "\0",
                "\x1b[31m",
                "é",
                "显存",
                ",",
            ]
            text = text[:at] + draw(st.sampled_from(odd)) + text[at:]
        elif how == 3:
            text = text[:at] + draw(st.text(max_size=20)) + text[to:]
        else:
            text = draw(st.sampled_from([text for text, _ in KINDS.values()])) + text
    return text


@given(mangled())
@FEW
def test_a_damaged_text_is_read_or_refused_in_one_line(text):
    try:
        found = observation.read(text.encode("utf-8", "surrogatepass"), "it")
    except ValueError as error:
        assert "\n" not in str(error)
        return
    assert isinstance(found.amount, int) and 0 <= found.amount < 10**22
    for name, value in found.as_dict().items():
        assert value is None or not isinstance(value, int) or value >= 0, name
    for line in (*pasted.said(found), pasted.more(found, "it")):
        assert line.isprintable()


def test_a_message_in_a_long_log_is_found_wherever_it_stands():
    source = random.Random(36)
    lines = [
        f"step {i} loss {source.random():.4f} lr 2e-5 12%|##    | 3/40 MB" for i in range(5000)
    ]
    for place in (0, 2500, 5000):
        log = "\n".join([*lines[:place], NOW, *lines[place:]])
        found = seen(log)
        assert found.asked == bytes_of(FIGURES["asked"]) and found.process == bytes_of(23.25)
