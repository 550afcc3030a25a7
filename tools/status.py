"""The tables of the pages: versions, chapters, their minutes, measurements, the benchmark.

`tools/book.py` puts each where a page of book/ says `<!-- versions -->` and so on, so that the page
cannot fall behind what the book was really built from. A long file, for it is one table after
the other and nothing else.
"""

import json
import re
import subprocess
from collections import Counter

import api
import capstone
import courses
import formula_index
import glossary
import no_gain
import polib
import rehearsed
from benchmark_tables import accuracy, benchmark, calculators, on_the_web, peers, waits
from causal_table import listed, types
from posted import page as posted
from posted import scripts

from memlab.cli.audit import WRONG
from memlab.files.claims import VERDICTS
from memlab.files.records import read

DATA = "src/memlab/data"  # records and claims, which the package brings along
NO_GPU = "Not yet measured on a GPU."

# What a reader would ask for; everything else is in constraints.txt.
SHOWN = [
    "torch",
    "torchao",
    "transformers",
    "numpy",
    "jupyter-book",
    "sphinx",
    "nbval",
    "ipywidgets",
]


def fill(text, root):
    """The page with its markers replaced by tables.

    Raises      ValueError for a marker that no table belongs to
    """
    tables = {
        "versions": versions,
        "chapters": chapters,
        "minutes": lambda root: minutes(root, 1, 13),
        "smaller": lambda root: minutes(root, 14, 28),
        "audited": lambda root: minutes(root, 29, 33),
        "letters": formula_index.letters,
        "formulas": formula_index.index,
        "api_functions": api.functions,
        "api_classes": api.classes,
        "api_units": api.units,
        "api_commands": api.commands,
        "capstone_answer": capstone.answer,
        "capstone_cases": capstone.table,
        "capstone_quality": capstone.quality,
        "capstone_worked": capstone.worked,
        "collected": no_gain.collected,
        "courses": courses.whole,
        "courses_compared": courses.compared,
        "glossary": glossary.entries,
        "translations": translations,
        "verdicts": verdicts,
        "kinds": kinds,
        "records": records,
        "machines": courses.machines,
        "measured": measured,
        "measured_on": measured_on,
        "suite_ran": suite_ran,
        "laptop": laptop,
        "accuracy": accuracy,
        "peers": peers,
        "calculators": calculators,
        "web_calculators": on_the_web,
        "benchmark": benchmark,
        "types": types,
        "types_listed": listed,
        "waits": waits,
        "rehearsed_programs": rehearsed.programs,
        "rehearsed_trained": rehearsed.trained,
        "rehearsed_ranked": rehearsed.ranked,
        "posted_fresh": posted.fresh,
        "posted_worked": posted.worked,
        "posted_scripts": scripts.table,
        "posted_own_terms": posted.own_terms,
        "posted_own_misses": posted.own_misses,
        "posted_misses": posted.misses,
        "posted_refused": posted.refused,
        "posted_examples": posted.examples,
        "posted_sources": posted.by_source,
        "posted_impossible": posted.impossible,
        "unseen_sources": posted.unseen_sources,
    }

    def table(found):
        if found[1] not in tables:
            raise ValueError(f"unknown marker {found[1]!r}; known: {', '.join(tables)}")
        return tables[found[1]](root)

    return re.sub(r"<!-- (\w+) -->", table, text)


def translations(root):
    """How much of the book stands in each language, counted in its catalogues."""
    rows = ["| language | whole pages | blocks |", "|---|---|---|"]
    for folder in sorted(path for path in (root / "book" / "locale").glob("*") if path.is_dir()):
        pages = []
        for path in sorted(folder.glob("*.po")):
            blocks = polib.pofile(path.read_text(encoding="utf-8"))
            pages.append((sum(bool(e.msgstr) and not e.fuzzy for e in blocks), len(blocks)))
        whole = sum(done == all_of_them for done, all_of_them in pages)
        words, of = (f"{sum(each):,}" for each in zip(*pages, strict=True))
        name = folder.name.replace("_", "-")
        rows.append(f"| `{name}` | {whole} / {len(pages)} | {words} / {of} |")
    return "\n".join(rows)


def verdicts(root):
    """How many claims of each note got which verdict; a note goes by the chapter that audits it."""
    files = sorted((root / DATA / "claims").glob("*.json"))
    each = {
        path.stem: Counter(c["verdict"] for c in json.loads(path.read_text())) for path in files
    }
    total = sum(each.values(), Counter())
    head = f"| verdict | {' | '.join(_chapter_of(root, name) for name in each)} | together |"
    rows = [
        f"| {verdict} | {' | '.join(str(n[verdict]) for n in each.values())} | {total[verdict]} |"
        for verdict in VERDICTS
    ]
    sums = " | ".join(str(n.total()) for n in each.values())
    rule = "|---" * (len(each) + 2) + "|"
    return "\n".join([head, rule, *rows, f"| all | {sums} | {total.total()} |"])


def _chapter_of(root, note):
    """The chapter whose code reads the claims of a note, by its number."""
    for path in sorted((root / "notebooks").glob("[0-9][0-9]_*.ipynb")):
        if f'Claims(read(\\"{note}\\"))' in path.read_text(encoding="utf-8"):
            return f"chapter {int(path.name[:2])}"
    raise ValueError(f"no chapter has the claims of note {note}")


def kinds(root):
    """What each verdict means; WRONG is that of a list whose reader has named no fault."""
    unnamed = {WRONG: "memlab computes another figure, and nobody has named the fault yet"}
    rows = [f"| {verdict} | {when} |" for verdict, when in (VERDICTS | unnamed).items()]
    return "\n".join(["| verdict | when |", "|---|---|", *rows])


def versions(root):
    """Pinned versions of the packages that decide a measured byte or a built page."""
    pins = dict(
        line.strip().lower().split("==")
        for line in (root / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if "==" in line and not line.startswith("#")
    )
    rows = [f"| {name} | {pins[name]} |" for name in SHOWN if name in pins]
    return "\n".join(["| package | version |", "|---|---|", *rows])


def chapters(root):
    """Each chapter, how many cells it proves, and when its notebook last changed."""
    head = ["| chapter | code cells, all executed | figures | last changed |", "|---|---|---|---|"]
    rows = []
    for path in sorted((root / "notebooks").glob("[0-9]*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        figures = [cell for cell in code if "figure" in cell["metadata"].get("tags", [])]
        title = f"[{path.stem[:2]} {title_of(cells)}](notebooks/{path.name})"
        rows.append(f"| {title} | {len(code)} | {len(figures)} | {changed(root, path)} |")
    return "\n".join(head + rows)


def minutes(root, first, last):
    """The chapters of a part: how long each takes and which it builds on, from *You need*."""
    head = ["| | chapter | minutes | builds on |", "|---|---|---|---|"]
    rows, total = [], 0
    for path in sorted((root / "notebooks").glob("[0-9][0-9]_*.ipynb")):
        if not first <= int(path.name[:2]) <= last:
            continue
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        text = "\n".join("".join(cell["source"]) for cell in cells[:3])
        need = re.findall(r"^[-*] +\*{1,2}You need\b.*(?:\n  .*)*", text, re.M)[0]
        took = int(re.findall(r"(\d+) min", need)[0])
        total += took
        before = [str(int(number)) for number in re.findall(r"\((\d\d)_\w+\.ipynb", need)]
        link = f"[{heading(cells)}](notebooks/{path.name})"
        rows.append(f"| {int(path.name[:2])} | {link} | {took} | {', '.join(before) or '—'} |")
    foot = f"| | together | {total} | |"
    return "\n".join([*head, *rows, foot])


def records(root):
    """Measurements on devices, and the plain statement where none was on a GPU."""
    found = committed(root)
    rows = ["| device | torch | rows | date | commit | command |", "|---|---|---|---|---|---|"]
    for one in found:
        rows.append(
            f"| {one.device} | {one.torch} | {len(one.rows)} | {one.date} | {one.commit} "
            f"| `{one.command}` |"
        )
    said = [] if any(one.kind == "cuda" for one in found) else [NO_GPU]
    return "\n\n".join(said + (["\n".join(rows)] if found else []))


def measured(root):
    """Predicted on a laptop, measured on a device: each row of a GPU, or that there is none."""
    found = [one for one in committed(root) if one.kind == "cuda"]
    return "\n\n".join(f"{one.where}\n\n{every_row(one)}" for one in found) or NO_GPU


def gpus(root):
    """The GPUs that a record is of, each once."""
    return list(dict.fromkeys(one.device for one in committed(root) if one.kind == "cuda"))


def measured_on(root):
    """The end of a title."""
    return "a GPU" if gpus(root) else "a CPU; not yet on a GPU"


def suite_ran(root):
    """What ran the suite of `memlab record`."""
    if found := gpus(root):
        return f"**{', '.join(found)} and a CPU have run this suite.**"
    return "**No GPU has run this suite yet; a CPU has.**"


def laptop(root):
    """The records of CPUs, one line a group of rows."""
    found = [one for one in committed(root) if one.kind == "cpu"]
    return "\n\n".join(f"{one.where}\n\n{groups(one)}" for one in found) or "No record of a CPU."


def every_row(one):
    head = ["| row | predicted | measured | error | may miss by |", "|---|---|---|---|---|"]
    for row in one.rows:
        if row.state == "measured":
            size, found, error = row.cells()[1:]
            size, may = size or "no formula", f"{row.above:,} B"
            head.append(f"| {row.name} | {size} | {found} | {error or '—'} | {may} |")
        elif row.state == "failed":
            head.append(f"| {row.name} | {row.cells()[1]} | failed | {row.message} | |")
    return "\n".join(head)


def groups(one):
    """Rows by the first word of their names: how many, and the largest error among them."""
    rows = ["| what | rows | measured here | largest error |", "|---|---|---|---|"]
    for name in dict.fromkeys(row.name.partition("/")[0] for row in one.rows):
        mine = [row for row in one.rows if row.name.partition("/")[0] == name]
        errors = [abs(row.error) for row in mine if row.error is not None]
        worst = f"{max(errors):,} B" if errors else "—"
        rows.append(f"| `{name}` | {len(mine)} | {len(errors)} | {worst} |")
    return "\n".join(rows)


def committed(root):
    return [read(path) for path in sorted((root / DATA / "records").glob("*.json"))]


def heading(cells):
    """The title of a notebook up to a colon, where there is little room."""
    return title_of(cells).partition(":")[0].strip()


def title_of(cells):
    """The first heading of a notebook."""
    for cell in cells:
        if found := re.search(r"^# (.+)", "".join(cell["source"]), re.M):
            return found[1].strip()
    return "untitled"


def changed(root, path):
    """The day of the last commit of a file; a dash outside a git checkout."""
    command = ["git", "log", "-1", "--format=%cs", "--", str(path)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    return done.stdout.strip() or "—"
