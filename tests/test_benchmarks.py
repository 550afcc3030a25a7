"""The stored benchmark is whole, says what its own rows say, and comes out again."""

import json
import re
import statistics
import subprocess
import sys
from pathlib import Path

import benchmark_tables
import peers
import pytest
import waits
from real_steps import FAMILIES, Question, real_step

from memlab.model.presets import PRESETS
from memlab.page.controls import OPTIMIZERS

ROOT = Path(__file__).parent.parent

STORED = json.loads((ROOT / "benchmarks" / "results.json").read_text(encoding="utf-8"))
OWN = ("memlab estimate", "memlab trace")
ROWS = sorted(STORED["configs"], key=lambda row: row["real"])


def test_the_file_says_where_it_comes_from():
    head = ("command", "date", "commit", "python", "torch", "transformers", "timed")
    assert list(STORED) == [*head, "tools", "configs"]
    assert re.fullmatch(r"python benchmarks/peers\.py --configs \d+ --seed \d+", STORED["command"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", STORED["date"])
    assert re.fullmatch(r"[0-9a-f]{7,40}", STORED["commit"])
    assert list(STORED["tools"]) == [tool.name for tool in peers.TOOLS]


def test_each_row_has_an_answer_or_a_reason_from_each_tool():
    assert {row["step"]["config"]["model_type"] for row in ROWS} == set(FAMILIES)
    there = {name for name, tool in STORED["tools"].items() if "why" not in tool}
    for row in ROWS:
        assert row["real"] > 0
        assert row["predicted"].keys() == row["errors"].keys()
        assert row["predicted"].keys() | row["no_answer"].keys() == there
        assert not row["predicted"].keys() & row["no_answer"].keys()
        for name, said in row["predicted"].items():
            assert row["errors"][name] == round(said / row["real"] - 1, 6)


def test_each_line_of_the_table_follows_from_the_rows():
    for name, tool in STORED["tools"].items():
        errors = [row["errors"][name] for row in STORED["configs"] if name in row["errors"]]
        assert tool["answers"] == len(errors)
        if errors:
            assert tool["median_error"] == round(statistics.median(map(abs, errors)), 6)
            assert tool["worst_error"] == max(errors, key=abs)


def test_memlab_answers_each_row_and_is_exact():
    assert ROWS
    for row in ROWS:
        assert [row["predicted"][name] for name in OWN] == [row["real"]] * len(OWN)


@pytest.mark.parametrize("row", [ROWS[0], ROWS[len(ROWS) // 2]], ids=lambda row: row["real"])
def test_a_step_comes_out_again(row):
    step = Question.from_json(row["step"])
    assert real_step(step).peak.bytes == row["real"]
    for tool in peers.TOOLS:
        if tool.name in (*OWN, "MemTracker", "bytes per parameter"):
            assert tool.predict(step) == row["predicted"][tool.name]


def test_memlab_is_timed_as_a_user_types_it():
    own = {tool.name: tool for tool in peers.TOOLS if tool.name in OWN}
    command = peers.command_of(own["memlab estimate"])
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert told.startswith("qwen3-0.6b · autocast · 1 x 512 tokens, transformers on cpu")
    assert peers.command_of(own["memlab trace"])[1:] == ["-m", "memlab", "trace", *command[4:]]


def test_a_tool_that_is_not_there_is_said_to_be_missing():
    missing = peers.Tool("abacus", "memlab-abacus", lambda step: 0, "by hand", "beads")
    told = peers.summary(missing, ROWS, None)
    assert (told["version"], told["answers"], told["why"]) == (None, 0, "not installed")


def test_what_a_tool_raises_is_its_reason():
    def refuse(step):
        raise ValueError("no such step")

    first = Question.from_json(ROWS[0]["step"])
    row = peers.compare(first, [peers.Tool("x", None, refuse, "", "")])
    assert row["no_answer"] == {"x": "ValueError: no such step"}
    assert row["errors"] == {} and row["real"] == ROWS[0]["real"]


def test_what_the_calculators_page_says_of_others_stands_in_the_files():
    lines = benchmark_tables.calculators(ROOT).splitlines()
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    others = benchmark_tables.OTHERS
    asked = [STORED["tools"][name] for name in others]
    for name, tool, shown in zip(others, asked, head[2:], strict=True):
        assert shown == f"{name} {tool['version']}".strip()
    assert {len(row) for row in rows} == {len(head)}
    names = ("accuracy", "answered", "posted")
    pages = [(ROOT / "book" / f"{name}.md").read_text("utf-8") for name in names]
    for row in rows:
        row[0], label = re.fullmatch(r"\[([^]]+)\]\(#([\w-]+)\)", row[0]).groups()
        assert f"\n({label})=\n#" in "".join(pages), row
    table = {name: cells for name, *cells in rows}
    at = {name: i + 1 for i, name in enumerate(others)}
    for name, tool in zip(others, asked, strict=True):
        counts = tool["counts"].replace("the step", "a step")
        assert counts.startswith(table["what its figure is"][at[name]])
    assert "they need no batch and no length" in pages[1]
    assert f"`{STORED['command']}`" in pages[0]
    peaks = [name for name, tool in zip(others, asked, strict=True) if "peak" in tool["counts"]]
    assert peaks == ["MemTracker"]
    for name, tool in zip(others, asked, strict=True):
        cell = table["errors on real steps, on a CPU"][at[name]].replace("−", "-")
        shown = f"{tool['median_error']:.1%}, {tool['worst_error']:+.1%} ({tool['answers']})"
        assert cell == (shown if name in peaks else "—")  # no peak, which has no error
    for name, cells in table.items():
        if name.startswith("errors on strangers' GPUs"):  # where no other tool was asked
            assert cells == [cells[0], *["—"] * len(others)] and cells[0].endswith(")")
    assert sum(name.startswith("errors on strangers' GPUs") for name in table) == 3
    assert table["errors on real steps, on a CPU"][0] == f"0 B ({len(ROWS)})"


# --- how long an answer takes: benchmarks/waits.py

WAITS = json.loads((ROOT / "benchmarks" / "waits.json").read_text(encoding="utf-8"))


def test_the_waits_are_those_that_the_program_asks():
    named = ["", *(f"memlab {command} {name} " for command, name, _ in waits.ASKED)]
    assert len(WAITS["rows"]) == len(named)
    for row, words in zip(WAITS["rows"], named, strict=True):
        assert row["asked"].startswith(words) and row["exit"] == 0
        assert row["ratio"] == pytest.approx(row["seconds"] / WAITS["rows"][0]["seconds"], rel=0.02)


def test_closed_forms_take_less_than_a_second_and_traces_less_than_two_gib():
    for row in WAITS["rows"][1:]:
        if row["asked"].startswith("memlab estimate"):
            assert row["seconds"] < 1 and row["ratio"] < 1, row
        else:
            most = 30 if "30b" in row["asked"] else 10
            assert row["seconds"] < most and row["bytes"] < 2 * 2**30, row


def test_a_wait_is_measured_again():
    words = [sys.executable, "-c", "x = bytearray(512 * 2**20)"]
    seconds, resident, status = waits.taken(words, 1)
    assert seconds > 0 and 512 * 2**20 < resident < 2**30 and status == 0
    assert waits.taken([sys.executable, "-c", "raise SystemExit(3)"], 1)[2] == 3


def test_the_page_says_how_long_it_takes():
    table = benchmark_tables.waits(ROOT)
    for row in WAITS["rows"]:
        assert f"| `{row['asked']}` | {row['ratio']:.1f}x |" in table
    assert WAITS["command"] in table and WAITS["commit"] in table


def test_what_is_said_of_calculators_on_the_web_says_where_it_was_read():
    kept = json.loads((ROOT / "benchmarks" / "web_calculators.json").read_text(encoding="utf-8"))
    head, _, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in benchmark_tables.on_the_web(ROOT).splitlines()
    ]
    assert {len(row) for row in rows} == {len(head)} == {2 + len(kept["calculators"])}
    assert [name for name, *_ in rows[:-1]] == [what for what, _ in benchmark_tables.ON_THE_WEB]
    for name, each in kept["calculators"].items():
        assert each["sources"] and len(each["cells"]) == len(benchmark_tables.ON_THE_WEB), name
        assert all(at.startswith("https://") for at in [each["address"], *each["sources"]]), name
        assert all(
            f"({at})" in rows[-1][head.index(f"[{name}]({each['address']})")]
            for at in each["sources"]
        )
    ours = {what: cell for what, cell, *_ in rows}
    assert str(len(PRESETS)) in ours["what it is given"] and ours["optimizers"] == str(
        len(OPTIMIZERS)
    )
    page = (ROOT / "book" / "calculator.md").read_text(encoding="utf-8")
    assert kept["read"] in page  # of what may be otherwise tomorrow
