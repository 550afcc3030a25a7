"""The tables of the status page say what the files say."""

import json
from pathlib import Path

import pytest
import status

ROOT = Path(__file__).parent.parent


@pytest.fixture
def project(tmp_path):
    """A small project: two pins, one chapter, no git."""
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "constraints.txt").write_text("# pins\ntorch==9.8.7\nleft-pad==1.0\n")
    figure = {"cell_type": "code", "source": "1", "metadata": {"tags": ["figure"]}}
    title = {"cell_type": "markdown", "source": "(x)=\n# Weigh it: all", "metadata": {}}
    plain = {"cell_type": "code", "source": "2", "metadata": {}}
    (tmp_path / "notebooks" / "01_x.ipynb").write_text(
        json.dumps({"cells": [title, figure, plain]})
    )
    return tmp_path


def test_versions_are_the_pins(project):
    assert "| torch | 9.8.7 |" in status.versions(project)
    assert "left-pad" not in status.versions(project)


def test_chapters_count_their_cells(project):
    assert "| [01 Weigh it: all](notebooks/01_x.ipynb) | 2 | 1 | — |" in status.chapters(project)


ROW = {"name": "step/x/peak", "term": "step", "what": "a step", "by": "derived"}
ROW |= {"predicted": 1000, "compared": "requested", "above": 2048, "below": 0, "why": "scratch"}
ROW |= {"measured": {"requested": 1512, "allocated": 2048, "reserved": None}}
ROW |= {"state": "measured", "message": ""}
FAILED = ROW | {"name": "fp8/y/held", "state": "failed", "message": "RuntimeError: no kernel"}
FAILED |= {"measured": dict.fromkeys(("requested", "allocated", "reserved"))}
UNKNOWN = ROW | {"name": "context/held", "predicted": None}
RECORD = {"schema": 1, "kind": "cuda", "device": "X", "driver": "5", "cuda": "13", "torch": "2"}
RECORD |= {"python": "3", "date": "2026-01-02", "commit": "abc", "command": "memlab record"}
RECORD |= {"complete": True, "unit": "bytes", "rows": [ROW, FAILED, UNKNOWN]}


def keep(project, name, **changes):
    folder = project / "src" / "memlab" / "data" / "records"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(RECORD | changes))


def test_without_a_record_the_page_says_so(project):
    assert status.records(project) == status.measured(project) == "Not yet measured on a GPU."
    keep(project, "cpu", kind="cpu", device="a CPU")
    assert status.measured(project) == "Not yet measured on a GPU."
    said, table = status.records(project).split("\n\n")
    assert said == "Not yet measured on a GPU." and "| a CPU | 2 | 3 |" in table
    assert "| `step` | 1 | 1 | 512 B |" in status.laptop(project)
    assert "| `fp8` | 1 | 0 | — |" in status.laptop(project)
    keep(project, "gpu")
    assert "| X | 2 | 3 | 2026-01-02 | abc | `memlab record` |" in status.records(project)
    assert "Not yet" not in status.records(project)
    table = status.measured(project)
    assert table.startswith("X, driver 5, CUDA 13, torch 2, 2026-01-02, commit abc")
    assert "| step/x/peak | 1,000 | 1,512 | +512 B | 2,048 B |" in table
    assert "| fp8/y/held | 1,000 | failed | RuntimeError: no kernel | |" in table
    assert "| context/held | no formula | 1,512 | — | 2,048 B |" in table


def test_the_record_of_a_room_is_shown_by_the_book(project):
    """What `memlab record --out room.json` wrote, put where the book's records lie."""
    page = (ROOT / "book" / "laptop-and-device.md").read_text(encoding="utf-8")
    keep(project, "cpu", kind="cpu", device="a CPU")
    without = status.fill(page, project)
    assert "measured on a CPU; not yet on a GPU\n" in without and status.NO_GPU in without
    assert "**No GPU has run this suite yet; a CPU has.** This book" in without
    keep(project, "room", device="RTX 4090")
    shown = status.fill(page, project)
    assert "\n# Predicted on a laptop, measured on a GPU\n" in shown
    assert "**RTX 4090 and a CPU have run this suite.** This book" in shown
    assert "| step/x/peak | 1,000 | 1,512 | +512 B |" in shown and "not yet" not in shown.lower()


def test_a_file_that_is_no_record_stops_the_build(project):
    keep(project, "gpu", unit="MiB")
    with pytest.raises(ValueError, match="gpu.json is no record: unit='MiB'"):
        status.records(project)


def test_every_marker_of_the_pages_has_a_table():
    pages = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "book").glob("*.md")}
    filled = {name: status.fill(text, ROOT) for name, text in pages.items()}
    left = [name for name, text in filled.items() if "<!--" in text]
    # Whose own tools fill them: tools/calculator.py and tools/calculator_home.py.
    assert left == ["calculator", "intro"]
    assert {name for name, text in pages.items() if filled[name] != text} == {
        "accuracy",
        "anatomy",
        "answered",
        "api",
        "audit",
        "calculator",
        "capstone",
        "cheat-sheet",
        "glossary",
        "laptop-and-device",
        "no-gain",
        "posted",
        "rehearsed",
        "smaller",
        "status",
        "workshop",
    }
    assert "| torch | 2." in filled["status"]
    assert "| memlab estimate |" in filled["accuracy"]


@pytest.fixture
def benchmark(project):
    """Of two steps: a tool that is exact, one that is not, one that is not there, and one that says
    no peak and so has no error."""
    asked = {"version": "1.0", "options": "`f(x)`", "counts": "the peak, by hand"}
    exact = asked | {"answers": 2, "median_error": 0.0, "worst_error": 0.0, "time_ratio": 3.04}
    rough = asked | {"answers": 1, "median_error": 0.25, "worst_error": -0.25, "version": ""}
    missing = asked | {"answers": 0, "why": "not installed", "version": None}
    head = dict(command="python x.py", date="2026-01-02", commit="abc", python="3.11.1")
    head |= dict(torch="2.9", transformers="5.1", timed="a step")
    rest = rough | {"counts": "weights"}
    tools = {"exact": exact, "rough": rough, "missing": missing, "rest": rest}
    (project / "benchmarks").mkdir()
    file = project / "benchmarks" / "results.json"
    file.write_text(json.dumps(head | {"tools": tools, "configs": [{}, {}]}))
    return project


def test_accuracy_is_what_the_benchmark_wrote(benchmark):
    assert status.accuracy(benchmark).splitlines()[2:] == [
        "| exact | 2 of 2 | 0 B | 0 B | 3x |",
        "| rough | 1 of 2 | 25.0% | −25.0% | — |",
        "| missing | not installed | — | — | — |",
    ]
    assert "| exact | 1.0 | `f(x)` | the peak, by hand |" in status.peers(benchmark)
    assert "| rest | — | `f(x)` | weights |" in status.peers(benchmark)
    assert "| missing | — |" in status.peers(benchmark)
    said = status.fill("<!-- benchmark -->", benchmark)
    for word in ("`python x.py`", "2026-01-02", "abc", "2.9\n", "transformers 5.1", "a step"):
        assert word in said


def test_an_unknown_marker_is_refused(project):
    with pytest.raises(ValueError, match="unknown marker 'prices'"):
        status.fill("<!-- prices -->", project)


def test_translations_are_counted_in_their_catalogues(project):
    folder = project / "book" / "locale" / "pt_BR"
    folder.mkdir(parents=True)
    head = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=utf-8\\n"\n\n'
    done, open_, fuzzy = 'msgid "a"\nmsgstr "b"\n\n', 'msgid "c"\nmsgstr ""\n\n', "#, fuzzy\n"
    (folder / "one.po").write_text(head + done)
    (folder / "two.po").write_text(head + fuzzy + done + open_)
    assert "| `pt-BR` | 1 / 2 | 1 / 3 |" in status.translations(project)
