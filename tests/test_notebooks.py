"""Every chapter has the anatomy that CONTRIBUTING describes, and the test sees when one has not."""

import re
import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import chapter_anatomy
import nbformat
import notebook_text
import part_map
import pytest

import notebooks

ROOT = Path(__file__).resolve().parent.parent


CHAPTERS = [p for p in notebooks.notebooks([]) if chapter_anatomy.CHAPTER.fullmatch(p.name)]

SAMPLE = """%% md title
(sample)=
# Bytes: count the values and multiply

You leave with a function that counts bytes.

%% md objectives
- *You will compute* the bytes of a list of values.
- *You will measure* the same bytes in Python.
- *You need* no chapter before this one, 15 minutes; a CPU is enough.

%% code setup tags=setup
from memlab import exercises
from memlab.exercises import check
from memlab.base.grid import Grid
from memlab.ledger import Ledger
from memlab.plot import ledger_bar
from memlab.units import text
from memlab.widgets import ask

for n in (1, 2, 3, 4):
    exercises.exercise(f"ex-sample-{n}", answer=lambda: 8192, hint="Eight bytes each.")

%% md predict
**Predict first.** How many bytes do 1,024 values take in fp32? Write your guess down.

%% code figure-bar tags=figure,hide-input alt="One bar of 4 KiB." caption="All weights." name=fig-1
ledger_bar(Ledger.of("derived", {"weights": 4096}, title="1,024 values"))

%% code machine tags=machine
from array import array


def size(values):
    return len(values) * values.itemsize

%% md shapes
| letter | meaning | shape |
|---|---|---|
| P | values | [P] |

$$ 4 P $$

%% code formula-bytes tags=formula
1024 * 4

%% md read-aloud
Four bytes each.

%% md measuring
Now the same in Python.

%% code measure-bytes tags=measure
measured = array("f", bytes(4096)).itemsize * 1024
print(f"derived 4,096 · measured {measured:,} · difference {measured - 4096:+} B")

%% md why
**Why they differ.** They do not, +0 B.

%% code check-bytes tags=check
# Nothing is rounded, so not one byte of tolerance.
assert measured == 4096

%% code widget-values tags=widget
ask("How much do more take?", lambda count: text(4 * count), count=("values", [1024, 2048]))

%% md exercises-begin
## Exercises

:::{tip}
Each checks itself.
:::

%% md exercise-double
**Exercise 1 (build, 5 min).** Change the machine: how many bytes in fp64?

%% code exercise-double-try tags=exercise
answer = ...
check("ex-sample-1", answer)

%% code exercise-double-solution tags=solution,hide-cell
check("ex-sample-1", 1024 * 8)

%% md exercise-2
**Exercise 2 (predict, 2 min).** And how many in fp64?

%% code exercise-2-try tags=exercise
answer = ...
check("ex-sample-2", answer)

%% code exercise-2-solution tags=solution,hide-cell
check("ex-sample-2", 1024 * 8)

%% md exercise-3
**Exercise 3 (read, 2 min).** And how many in fp64?

%% code exercise-3-try tags=exercise
answer = ...
check("ex-sample-3", answer)

%% code exercise-3-solution tags=solution,hide-cell
check("ex-sample-3", 1024 * 8)

%% md exercise-4
**Exercise 4 (compute, 2 min).** And how many for GPT-2 in fp64?

%% code exercise-4-try tags=exercise
answer = ...
check("ex-sample-4", answer)

%% code exercise-4-solution tags=solution,hide-cell
check("ex-sample-4", 1024 * 8)

%% md bill
## The bill so far

The run of the first page has 8,192 tokens, which are small.

%% md key-points
## Key points

| quantity | formula | example |
|---|---|---|
| bytes | 4 P | 4 KiB |

%% md in-practice
## In practice

Values are rarely alone.

%% md further-reading
## Further reading

- [IEEE 754](https://standards.ieee.org/ieee/754/6210/): where the four bytes of fp32 come from.
"""


def test_no_chapter_escapes_its_rules():
    """Whatever has a chapter's number is judged as one: 20_fp8 has a digit in its name as well."""
    numbered = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
    assert CHAPTERS == numbered and len(numbered) > 30


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.name)
def test_chapter(path):
    assert notebooks.handle("check", path) == []


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.name)
def test_a_card_s_line_has_the_card_s_name(path):
    """A card of "80 GB" gives neither that nor 74.51 GiB: by its name it is what a run can have."""
    code = [
        cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"
    ]
    sizes = re.findall(r"""limit=["']\s*[0-9.]+\s*Gi?B["']""", "\n".join(code))
    assert sizes == []


@pytest.fixture(scope="module")
def chapter(tmp_path_factory):
    """The file of a small chapter, written as text and run."""
    folder = tmp_path_factory.mktemp("chapters")
    (folder / "sample.md").write_text(SAMPLE, encoding="utf-8")
    path = folder / "01_sample.ipynb"
    tool("notebook_text.py", "from-text", folder / "sample.md", path)
    tool("notebooks.py", "run", path)
    return path


@pytest.fixture
def good(chapter):
    return nbformat.read(chapter, as_version=4)


def tool(name, *arguments, expect=0):
    command = [sys.executable, ROOT / "tools" / name, *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == expect, done.stdout + done.stderr
    return done.stdout


def cell(nb, name):
    return next(c for c in nb.cells if c.id == name)


def _at(nb, name):
    return nb.cells.index(cell(nb, name))


def drop(name):
    return lambda nb: nb.cells.remove(cell(nb, name))


def drop_all(tag):
    return lambda nb: nb.update(
        cells=[c for c in nb.cells if tag not in c.metadata.get("tags", [])]
    )


def write(name, old, new):
    def change(nb):
        assert old in cell(nb, name).source
        cell(nb, name).source = cell(nb, name).source.replace(old, new)

    return change


def tag(name, *names):
    return lambda nb: cell(nb, name).metadata.update(tags=list(names))


def output(of, text="", kind="stream", **more):
    if kind == "stream":
        more = {"name": "stdout", "text": text, **more}
    return lambda nb: cell(nb, of).update(outputs=[nbformat.v4.new_output(kind, **more)])


def swap(nb):
    nb.cells[0], nb.cells[1] = nb.cells[1], nb.cells[0]


def svg(name, text):
    return lambda nb: cell(nb, name).outputs[0].data.update({"image/svg+xml": text})


def html(nb):
    cell(nb, "widget-values").outputs[0].data[notebooks.WIDGET] = {"model_id": "0"}


BROKEN = [
    ("title", drop("title")),
    ("title", swap),
    ("title", write("title", "(sample)=\n", "")),
    ("title", write("title", "Bytes: count", "Bytes, count")),
    ("title", write("title", "You leave with a function that counts bytes.", "")),
    ("objectives", drop("objectives")),
    ("objectives", write("objectives", "You will measure", "You may measure")),
    ("objectives", write("objectives", "15 minutes", "some time")),
    ("objectives", write("objectives", "a CPU", "a machine")),
    ("minutes", write("read-aloud", "Four bytes each.", "Four bytes each. " * 1500)),
    ("minutes", write("objectives", "15 minutes", "31 minutes")),
    ("words", write("read-aloud", "Four bytes each.", "Four bytes each. " * 750)),
    ("picture-early", write("predict", "**Predict first.**", "Four bytes. " * 200)),
    ("picture-early", write("title", "You leave", "You leave, " * 200)),
    ("machine", drop("machine")),
    ("machine", write("machine", "from array", "from memlab import Model\nfrom array")),
    ("machine", write("machine", "\n", "\n" * 8)),
    ("machine", lambda nb: nb.cells.append(nb.cells.pop(_at(nb, "machine")))),
    ("layout", write("formula-bytes", "1024 * 4", 'rows = [["bytes"]]\nGrid([*rows, ["4"]])')),
    ("bill", drop("bill")),
    ("predict-first", drop("predict")),
    ("predict-first", write("predict", "1,024 values take in fp32", "these values take")),
    ("letters", drop("shapes")),
    ("letters", write("shapes", "$$ 4 P $$", "4 P")),
    ("letters", write("shapes", "| letter | meaning | shape |", "| a | b | c |")),
    *[
        ("tags", drop(name))
        for name in (
            "setup",
            "formula-bytes",
            "figure-bar",
            "measure-bytes",
            "check-bytes",
            "widget-values",
        )
    ],
    ("tags", tag("widget-values", "widget", "fun")),
    ("tags", tag("widget-values", "hide-input")),
    ("tags", tag("measure-bytes", "measure", "nbval-ignore-output")),
    ("why-they-differ", drop("why")),
    ("why-they-differ", write("why", "**Why they differ.**", "Why.")),
    ("why-they-differ", drop("check-bytes")),
    ("check-asserts", write("check-bytes", "assert ", "")),
    (
        "check-asserts",
        write("check-bytes", "# Nothing is rounded, so not one byte of tolerance.", ""),
    ),
    ("tags", drop_all("exercise")),
    ("tags", drop_all("solution")),
    ("exercises", drop("exercise-4-try")),
    ("exercises", write("exercise-2-try", "ex-sample-2", "ex-sample-1")),
    ("exercises", write("exercise-3-try", "ex-sample-3", "ex-other-3")),
    ("exercises", write("exercise-4", "GPT-2", "a model")),
    ("exercises", write("exercise-4", "compute", "read")),
    ("exercises", write("exercise-4", ", 2 min", "")),
    ("solutions", drop("exercise-double-solution")),
    ("solutions", tag("exercise-double-solution", "solution")),
    ("solutions", write("exercise-double-try", "...", "8192")),
    ("key-points", drop("key-points")),
    ("key-points", write("key-points", "|---|---|---|", "")),
    ("in-practice", drop("in-practice")),
    ("in-practice", write("in-practice", "Values are rarely alone.", "")),
    ("further-reading", drop("further-reading")),
    ("further-reading", write("further-reading", "- [IEEE", "[IEEE")),
    ("further-reading", write("further-reading", ": where the four bytes of fp32 come from.", "")),
    (
        "further-reading",
        write("further-reading", "(https://standards.ieee.org/ieee/754/6210/)", ""),
    ),
    ("figures", lambda nb: cell(nb, "figure-bar").metadata.mystnb.pop("image")),
    ("figures", lambda nb: cell(nb, "figure-bar").metadata.mystnb.pop("figure")),
    ("figures", lambda nb: cell(nb, "figure-bar").metadata.pop("mystnb")),
    ("figures", output("figure-bar", "a bar")),
    ("figures", svg("figure-bar", "<svg></svg>")),
    ("images", svg("figure-bar", "<svg><text>" + 100_000 * "x" + "</text></svg>")),
    ("quiet-cells", output("setup", "loading")),
    ("quiet-cells", output("check-bytes", "fine")),
    ("quiet-cells", lambda nb: cell(nb, "formula-bytes").update(outputs=[])),
    ("short-cells", write("setup", "\n", "\n\n")),
    ("ids", lambda nb: cell(nb, "why").update(id="af31ab2c")),
    ("ids", lambda nb: cell(nb, "why").update(id="a1b2c3d4-0000-4000-8000-1234567890ab")),
    ("ids", lambda nb: cell(nb, "why").update(id="Why_it")),
    ("ids", lambda nb: cell(nb, "why").update(id="title")),
    ("ran", lambda nb: cell(nb, "formula-bytes").update(execution_count=7)),
    ("ran", lambda nb: cell(nb, "formula-bytes").update(execution_count=None)),
    ("ran", output("measure-bytes", kind="error", ename="KeyError", evalue="x", traceback=[])),
    ("ran", output("measure-bytes", "UserWarning: hm", name="stderr")),
    ("ran", output("exercise-double-solution", "✗ Eight bytes each.")),
    ("stable", lambda nb: nb.metadata.update(widgets={})),
    ("stable", lambda nb: cell(nb, "why").metadata.update(execution={})),
    ("stable", html),
    ("stable", output("measure-bytes", "read from /home/ana/memlab/text.txt")),
    ("stable", output("measure-bytes", "<object at 0x7f3a2b1c>")),
    ("colon-fences", write("exercises-begin", ":::", "```")),
]


def test_a_good_chapter_has_no_problem(good):
    assert chapter_anatomy.problems(good) == []


@pytest.mark.parametrize(
    ("rule", "change"), BROKEN, ids=[f"{i}-{b[0]}" for i, b in enumerate(BROKEN)]
)
def test_a_broken_chapter_is_told_which_rule(good, rule, change):
    broken = deepcopy(good)
    change(broken)
    found = chapter_anatomy.problems(broken)
    assert any(line.startswith(f"{rule}: ") for line in found), found


def test_no_chapter_is_spared_a_rule(good):
    write("key-points", "Key points", "Take away")(good)
    drop("machine")(good)
    found = " ".join(line.partition(":")[0] for line in chapter_anatomy.problems(good))
    assert "key-points" in found and "machine" in found


LINK = re.compile(r"\[([^\]\[]{1,200})\]\((?:(?:notebooks/)?(\d\d)_\w+\.ipynb|#([a-z0-9-]+)\))")
CHAPTER_NUMBER = re.compile(r"(?i)(?:(?<=chapter\s)|(?<=cap[ií]tulo\s)|(?<=第)|(?<=第\s))\d+|^\d+$")


def test_a_link_that_names_a_chapter_s_number_names_its_file_s():
    found, wrong = 0, []
    pages = [ROOT / name for name in ("README.md", "CONTRIBUTING.md")]
    pages += [*ROOT.glob("book/*.md"), *ROOT.glob("notebooks/*.ipynb")]
    for path in [*pages, *ROOT.glob("book/locale/*/*.po")]:
        text = path.read_text(encoding="utf-8").replace('"\n"', "").replace('"\n    "', "")
        for words, number, label in LINK.findall(text):
            number = number or part_map.numbers().get(label)
            for said in CHAPTER_NUMBER.findall(words) if number else ():
                found += 1
                if int(said) != int(number):
                    wrong.append(f"{path.name}: [{words}] leads to {number}")
    assert found > 100 and wrong == []


def test_an_empty_notebook_breaks_rules_without_falling_over():
    found = chapter_anatomy.problems(nbformat.v4.new_notebook())
    assert len(found) >= 15


def test_every_rule_is_broken_by_some_chapter_above():
    rules = {rule.__name__.replace("_", "-") for rule in chapter_anatomy.RULES}
    assert rules == {rule for rule, _ in BROKEN}


def test_running_twice_gives_the_same_bytes(chapter):
    before = chapter.read_bytes()
    tool("notebooks.py", "run", chapter)
    assert chapter.read_bytes() == before
    assert tool("notebooks.py", "check", chapter.parent) == ""


def test_nbval_agrees_twice(chapter):
    command = [sys.executable, "-m", "pytest", "--nbval", "-q", "-p", "no:cacheprovider", chapter]
    before = chapter.read_bytes()
    for _ in range(2):
        done = subprocess.run(command, cwd=chapter.parent, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
    assert chapter.read_bytes() == before


def test_nbval_sees_a_changed_number(chapter, tmp_path):
    other = tmp_path / "01_other.ipynb"
    other.write_text(
        chapter.read_text("utf-8").replace("measured 4,096", "measured 4,097"), "utf-8"
    )
    command = [sys.executable, "-m", "pytest", "--nbval", "-q", "-p", "no:cacheprovider", other]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and "measured 4,097" in done.stdout


def test_the_page_keeps_the_answer_and_no_widget(good):
    data = cell(good, "widget-values").outputs[0].data
    assert set(data) == {"text/plain", "text/html"} and "4 KiB" in data["text/html"]


def test_clean_drops_what_clocks_editors_and_widgets_leave(good, tmp_path):
    dirty = deepcopy(good)
    dirty.metadata.update(widgets={"state": {}}, vscode={"hash": "x"})
    dirty.metadata.language_info.version = "3.13.1"
    measure = cell(dirty, "measure-bytes")
    measure.metadata.update(execution={"iopub.status.busy": "now"}, collapsed=True)
    line = measure.outputs[0].text
    measure.outputs = [nbformat.v4.new_output("stream", text=part) for part in (line[:9], line[9:])]
    html(dirty)
    path = tmp_path / "01_dirty.ipynb"
    nbformat.write(dirty, path)
    found = tool("notebooks.py", "check", path, expect=1)
    assert "not-clean" in found and "stable" in found
    tool("notebooks.py", "clean", path)
    assert path.read_text("utf-8") == notebooks.text_of(good)
    tool("notebooks.py", "check", path)


def test_time_is_told_of_children_too_and_nothing_is_stored(tmp_path):
    path = tmp_path / "01_burns.ipynb"
    burn = "import subprocess, sys\nwork = 'while __import__(\"time\").process_time() < 2: pass'\n"
    burn += "subprocess.run([sys.executable, '-c', work])\n"
    nbformat.write(notebook_text.from_text(f"%% code first\n1\n%% code burn\n{burn}"), path)
    before = path.read_bytes()
    said = re.fullmatch(
        r"01_burns +([\d.]+) s +\d+ MiB   \[1\] ([\d.]+), \[0\] [\d.]+\n",
        tool("notebooks.py", "time", path),
    )
    assert 2 <= float(said[2]) <= float(said[1])
    assert path.read_bytes() == before


def test_a_failing_cell_leaves_the_file_and_says_why(tmp_path):
    path = tmp_path / "01_fails.ipynb"
    nbformat.write(notebook_text.from_text("%% code divide\n1 / 0\n"), path)
    before = path.read_bytes()
    assert "ZeroDivisionError" in tool("notebooks.py", "run", path, expect=1)
    assert path.read_bytes() == before


def test_a_path_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SystemExit, match="99_none.ipynb: no such notebook"):
        notebooks.notebooks([tmp_path / "99_none.ipynb"])


def test_text_and_notebook_say_the_same(good):
    text = notebook_text.to_text(good)
    assert text == SAMPLE
    again = notebook_text.from_text(text)
    assert [(c.id, c.cell_type, c.source, c.metadata) for c in again.cells] == [
        (c.id, c.cell_type, c.source, c.metadata) for c in good.cells
    ]


def test_text_keeps_any_metadata_and_quotes():
    nb = notebook_text.from_text('%% code a tags=figure,hide-input alt="a \\"bar\\" = {x}"\n1\n')
    nb.cells[0].metadata.mystnb.image["width"] = "60%"
    nb.cells[0].metadata.mystnb["code_prompt_show"] = "Show {this} \\ é"
    nb.cells[0].metadata["other"] = {"deep": [1, {"er": None}]}
    nb.cells.append(nbformat.v4.new_markdown_cell("%%time is no head\n\n%% neither", id="b"))
    nb.cells.append(nbformat.v4.new_raw_cell("", id="c"))
    again = notebook_text.from_text(notebook_text.to_text(nb))
    assert [dict(c) for c in again.cells] == [dict(c) for c in nb.cells]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("words\n%% md a\n", "line 1: text before the first"),
        ("%% md\nwords", "line 1: cell id ''"),
        ("%% md A b\n", "line 1: cell id 'A'"),
        ("%% md a\n%% md a\n", "used twice: a"),
        ("%% code a color=red\n", "unknown key 'color'; known: tags, alt"),
        ('%% code a alt="open\n', "cannot read"),
        ("%% code a figure\n", "cannot read 'figure'"),
    ],
)
def test_text_that_cannot_be_read_is_named(text, message):
    with pytest.raises(ValueError, match=message):
        notebook_text.from_text(text)


def test_a_source_that_looks_like_a_head_is_refused():
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("x\n%% md y", id="a")])
    with pytest.raises(ValueError, match="cell a: a line of its source"):
        notebook_text.to_text(nb)
