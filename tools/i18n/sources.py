"""Everything a translator works on: the pages, the notebooks, the site's own words, the messages.

Each source has a name, which is the name of its catalogue, and gives its blocks in order.
"""

import json
import re
import sys
from functools import cache
from pathlib import Path

import formulas
import interface
import yaml
from blocks import blocks, has_words

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "src")]
import calculator  # noqa: E402
import glossary  # noqa: E402
import poster  # noqa: E402
import quizzes  # noqa: E402
import status  # noqa: E402

from memlab.base.message import CONTEXT, is_message  # noqa: E402

SITE, MESSAGES, INTERFACE = "site", "memlab", "interface"
CALCULATOR = "calculator-words"
# Above a page of which some blocks are English still.
NOWHERE = "There is no such page."
LEFT = "A part of this page is not translated yet: it stands in English."
CODE = re.compile(r"print\([^;]*\)|[\w-]+")  # something to run, and no word of ours
GLOSSARY = "<!-- glossary -->"
# What a cell's metadata says of its figure.
FIGURE = (("image", "alt"), ("figure", "caption"))


def names():
    """The names of all sources: pages, notebooks, then the site and what memlab prints."""
    pages = sorted(path.stem for path in (ROOT / "book").glob("*.md"))
    return [*pages, *(path.stem for path in chapters()), SITE, INTERFACE, CALCULATOR, MESSAGES]


def blocks_of(name):
    """The blocks of a source in order, each once.

    Raises      ValueError for a name that no source has
    """
    if name == SITE:
        found = site()
    elif name == INTERFACE:
        found = interface.WORDS
    elif name == CALCULATOR:
        found = calculator.words()
    elif name == MESSAGES:
        found = messages()
    elif (path := ROOT / "book" / f"{name}.md").exists():
        found = page(path.read_text(encoding="utf-8"))
    elif (path := ROOT / "notebooks" / f"{name}.ipynb").exists():
        found = notebook(json.loads(path.read_text(encoding="utf-8")))
    else:
        raise ValueError(f"no page {name!r}; known: {', '.join(names())}")
    return list(dict.fromkeys(found))


def page(text):
    """The blocks of a page with its tables filled in, without what chapters and terms.csv say."""
    listed = {row["en"] for row in glossary.rows(ROOT)} if GLOSSARY in text else set()
    filled = status.fill(text, ROOT)
    found = [*blocks(filled), *formulas.words(filled)]
    return [block for block in found if block not in listed and not of_chapters(block)]


def of_chapters(block):
    """Whether a page has this block from a chapter: a whole block of it, or its title."""
    left = re.sub("|".join(map(re.escape, titles())), "", block) if titles() else block
    return block in quoted() or (left != block and not has_words(left))


@cache
def titles():
    """Titles, whole and as tables show them, up to a colon -> (notebook, the whole title)."""
    found = {}
    for path in chapters():
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        short = status.heading(cells)
        whole = next(b for b in blocks("".join(cells[0]["source"])) if b.startswith(short))
        found[short] = found[whole] = (path.stem, whole)
    return dict(sorted(found.items(), key=lambda pair: -len(pair[0])))


@cache
def quoted():
    """The blocks of all chapters as a page quotes them -> (notebook, block as it stands there)."""
    found = {}
    for path in chapters():
        for block in notebook(json.loads(path.read_text(encoding="utf-8"))):
            found[from_page(block)] = (path.stem, block)
    return found


def from_page(block):
    """A block whose links lead from the folder above the notebooks."""
    return re.sub(r"\]\((\d\d_\w+\.ipynb)", r"](notebooks/\1", block)


def chapters():
    return sorted((ROOT / "notebooks").glob("*.ipynb"))


def notebook(content):
    """The words of the cells, and what stands below their figures and in their place."""
    found = []
    for cell in content["cells"]:
        if cell["cell_type"] == "markdown":
            text = "".join(cell["source"])
            found += [*blocks(text), *formulas.words(text)]
        shown = cell["metadata"].get("mystnb", {})
        found += [shown[kind][key] for kind, key in FIGURE if shown.get(kind, {}).get(key)]
    return found


def drawn():
    """The words of the drawings that pages show and no chapter makes."""
    found = []
    for path in sorted((ROOT / "book" / "_static").glob("*.svg")):
        words = re.findall(r">([^<>]+)<", path.read_text(encoding="utf-8"))
        found += [word.strip() for word in words if is_message(word.strip())]
    return found


def site():
    """Captions of the table of contents, the title, what a page says of its translation, and the
    README of a room's archive."""
    found = [
        LEFT,
        NOWHERE,
        *drawn(),
        *poster.WORDS,
        yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["title"],
    ]
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    found += [part["caption"] for part in toc["parts"] if part.get("caption")]
    return found + blocks((ROOT / "tools" / "classroom.md").read_text(encoding="utf-8"))


def messages():
    """What memlab prints in the notebooks and to whoever answers their exercises.

    Patterns and texts as the code has them: of its own messages memlab knows all, of a chapter's
    the prints are read in its cells, and its labels and tables were noted when it ran.
    """
    from memlab import exercises, widgets
    from memlab.base import titles, translated_output
    from memlab.cli import check, doctor
    from memlab.exercises import judge
    from memlab.explain import findings, pasted, serving_words

    found = [widgets.HOW_TO, widgets.HOW_TO_MANY]
    told = (text for name, text in vars(judge).items() if name.isupper())
    found += [text for text in told if isinstance(text, str)]
    for sentences in exercises.hints().values():
        found += sentences
    found += exercises.units()
    found += [*quizzes.WORDS, *quizzes.sentences()]
    for path in chapters():
        content = json.loads(path.read_text(encoding="utf-8"))
        found += said(content)
        cells = (cell for cell in content["cells"] if cell["cell_type"] == "code")
        for cell in cells:
            found += translated_output.messages("".join(cell["source"]))
    found += [*findings.SENTENCES, *pasted.SENTENCES, *serving_words.SENTENCES, *titles.patterns()]
    found += [*check.SENTENCES, *doctor.SENTENCES]
    for name, look in suspects():
        found += [name] if CODE.fullmatch(look) else [name, look]
    senses = [f"{table}{CONTEXT}{words}" for table, words in SENSES]
    return [*filter(is_message, found), *senses]


def suspects():
    """The causes that an explanation may name, each with where to look."""
    from memlab.explain import causes, explanation

    yield from ((cause.name, cause.look) for cause in (*causes.CAUSES, *causes.LESS))
    yield explanation.BETWEEN, explanation.FASTER
    yield from ((name, look) for _, name, *_, look in explanation.OUTSIDE)


# A word with another sense in the tables with this first heading, or in the picture of this title:
# a process, and no matrix's rank; an adapter's rank, where the figures' "rank 64" is a process; a
# prompt that an adapter trains, no text to go on from; in one kernel, no torch's flag; loads of
# experts, no distances of levels; tensors of a file, no sequences; a sum, and not at once; an
# optimizer's update, and no name of its state; a moment, and not later; parts, and no way to load;
# all parameters, and no sum; bytes beside those derived, and no tensors; a difference, and no
# deed; tokens themselves, and not how many; a name in autograd's code; how many rows; a number; a
# loop that does nothing else; a layer of torchao's; two techniques, which a language says in their
# gender; weights, in the plural.
SENSES = (
    ("rank", "rank"),
    ("trained", "rank 64"),
    ("trained", "prompt"),
    ("tokens", "fused"),
    ("routing, on this CPU", "even"),
    ("rank", "even"),
    ("tensors are loaded", "one by one"),
    ("tensors are loaded", "together"),
    ("bf16 .grad", "together"),
    ("each of 8 H100s", "together"),
    ("ranks", "together"),
    ("at the end of", "step"),
    ("after", "after"),
    ("one of six ranks", "shards"),
    ("model", "total"),
    ("routing, on this CPU", "saved"),
    ("published", "change"),
    ("A layer of experts", "tokens"),
    ("op", "other"),
    ("rows", "rows"),
    ("value", "value"),
    ("16 pieces of 1,024 tokens", "plain"),
    ("one layer, bytes", "torchao's"),
    ("techniques", "both"),
    ("sum", "saved"),
)


def said(content):
    """The messages that memlab printed when the notebook ran, as tools/notebooks.py stored them."""
    return content["metadata"].get("memlab", {}).get("said", [])
