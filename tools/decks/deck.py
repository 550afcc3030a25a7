"""A notebook as slides, by rules that read its structure, which is the same in every language.

- The title is a slide: the first sentence and the list below it.
- Each heading begins a slide. On it stand the first sentence of its first paragraph, and in order
  its formulas, tables, code of a few lines, and of each item of a list the first sentence.
- A paragraph that begins in bold has its first two sentences there, one that begins with ✓ its
  first. The prediction stands there whole, before the figure that answers it, as does an exercise.
- Of a code cell tagged `machine` the code is shown; of `figure`, `formula`, `measure`, `device` and
  `widget` what it gave. A figure and a machine have a slide for themselves.
- The other paragraphs are the speaker's notes, as are the solutions and what follows a widget,
  which is the answer to its question. Further reading is all notes.
- What does not fit goes on under the same heading.

A cell's metadata may overrule this: `"slides": "notes"`, nothing of it is shown, or `"whole"`, all.
"""

import html
import importlib
import json
import re
from dataclasses import dataclass, field
from functools import cache
from itertools import takewhile
from typing import Any

from decks.blocks import blocks, coloured, inline, items, rendered, sentences
from decks.heights import height

SHOWN = {"figure", "formula", "measure", "device", "widget"}
ALONE = {"figure", "tall", "machine"}
NOTED = {"further-reading"}
ROOM = 19.0  # lines of a slide, in letters of a good size; a page sets smaller what needs it
SENTENCE = 3.6  # lines of a first sentence, at most
LONG = 14  # lines of code in the text, or rows of a table, that a slide still shows
GIVEN = ("image/svg+xml", "text/html", "text/plain")
DRAWING = re.compile(r"<svg xmlns.*?</svg>", re.S)


@dataclass
class Slide:
    """One slide: its heading, what stands on it, and what the speaker may say."""

    title: str
    kind: str = ""  # title, figure, tall, machine, or nothing
    parts: list = field(default_factory=list)
    notes: list = field(default_factory=list)
    used: float = 0.0
    cells: set = field(default_factory=set)  # the ids of those that put something on it


class Deck:
    """The slides of one notebook, in order."""

    def __init__(self, notebook, name, drawings=0):
        self.name, self.title = name, ""
        self.slides: list[Any] = []
        self.section = 0  # headings so far
        self.lead = False  # whether the first paragraph below the heading is still to come
        self.answered = False  # whether a widget has asked, and what follows is the answer
        self.drawings = drawings  # so far on the page, each of which has ids of its own
        self.cell = ""
        cells = notebook["cells"]
        for at, cell in enumerate(cells):
            rule, self.cell = cell["metadata"].get("slides", ""), cell.get("id")
            if rule not in ("", "notes", "whole"):
                raise ValueError(f"{name}, {cell.get('id')}: slides is {rule!r}: notes or whole")
            if cell["cell_type"] == "markdown":
                below = code_after(cells, at)
                exercise = any("exercise" in tags_of(each) for each in below)
                printed = [
                    text for each in below if tags_of(each) & SHOWN for text in words_of(each)
                ]
                lines = sum(height("code", text) for text in printed)
                self.text(cell, "notes" if cell.get("id") in NOTED else rule, exercise, lines)
            elif cell["cell_type"] == "code":
                self.code(cell, rule)
        self.slides = [slide for slide in self.slides if slide.parts or slide.kind == "title"]

    def begin(self, title, kind=""):
        """A slide, if the last one has anything on it; its notes else go with the new one."""
        last = self.slides[-1] if self.slides else None
        if last and not last.parts and last.kind != "title":
            last.title, last.kind = title, kind
        else:
            self.slides.append(Slide(title, kind))

    def add(self, part, lines, kind=""):
        """Something onto the slide, or onto one more where it has no room."""
        last = self.slides[-1]
        # A sentence that leads to a figure, to code or to a table stands above it.
        leads = not last.kind and last.used <= SENTENCE and kind != "tall" and lines < ROOM + 2
        full = kind or last.kind in ALONE or last.used + lines > ROOM
        if last.parts and full and not leads:
            self.begin(last.title, kind)
            last = self.slides[-1]
        last.kind = last.kind or kind
        last.parts.append(part)
        last.cells.add(self.cell)
        last.used += lines

    def note(self, part):
        self.slides[-1].notes.append(part)

    def text(self, cell, rule, exercise, below):
        """The blocks of a cell; below an exercise is what it asks about, so many lines high."""
        whole = False  # from a bold beginning on, where a cell asks something
        found = list(blocks("".join(cell["source"])))
        for at, (kind, source) in enumerate(found):
            if kind == "h1":
                self.title = source
                self.slides.append(Slide(source, "title"))
                self.lead = True
                continue
            if kind in ("h2", "h3"):
                self.answered = False
                self.section += kind == "h2"
                if rule == "notes":
                    self.note(f"<h3>{inline(source)}</h3>")
                else:
                    self.begin(source)
                    self.lead = True
                continue
            bold = kind == "p" and source.startswith("**")
            whole |= bold and (exercise or self.section == 1)
            asked = whole or rule == "whole" or self.slides[-1].kind == "title" and kind == "list"
            if rule == "notes" or self.answered:
                self.note(rendered(source))
            elif asked:
                if exercise and bold:
                    self.together(sum(height(*block) for block in found[at:]) + below)
                self.lead = False
                self.add(rendered(source), height(kind, source))
            elif kind == "p":
                self.paragraph(source, bold)
            elif kind == "list":
                self.items(source)
            elif kind in ("math", "table") or kind == "code" and source.count("\n") < LONG:
                self.add(rendered(source), height(kind, source))
            else:
                self.note(rendered(source))

    def together(self, lines):
        """What belongs together begins a slide, unless all of it has room on this one."""
        if self.slides[-1].parts and self.slides[-1].used + lines > ROOM:
            self.begin(self.slides[-1].title)

    def paragraph(self, source, bold):
        said = sentences(source)
        count = 2 if bold else int(self.lead or source.startswith("✓"))
        self.lead = False if count else self.lead
        if count:
            shown = " ".join(said[:count])
            shown = re.sub("[:：]$", lambda end: {":": "."}.get(end[0], "。"), shown)
            self.add(rendered(shown), height("p", shown))
        if len(said) > count:
            self.note(rendered(source))

    def items(self, source):
        said = map(sentences, items(source))
        # An item's name in bold, "**Stage 1.**", is no sentence yet.
        short = [" ".join(one[: 2 if one[0].endswith("**") else 1]) for one in said]
        self.lead = False
        shown = "\n".join(short)
        self.together(height("list", shown))
        self.add(rendered(shown), height("list", shown))
        if shown != source:
            self.note(rendered(source))

    def code(self, cell, rule):
        tags, source = tags_of(cell), "".join(cell["source"])
        if "solution" in tags:
            self.note(coloured(source) + "".join(texts_of(cell)))
        if rule == "notes":
            return
        if "machine" in tags:
            self.add(coloured(source), 0.75 * source.count("\n"), "machine")
        if tags & SHOWN or rule == "whole":
            given = list(self.outputs(cell))
            if rule == "whole" and not given and "machine" not in tags:  # it is longer than a slide
                given = [(coloured(source), 0.75 * source.count("\n"), "")]
            for part in given:
                self.add(*part)
        self.answered = self.answered or "widget" in tags

    def outputs(self, cell):
        """What a cell gave, as (HTML, lines, kind of the slide)."""
        words = cell["metadata"].get("mystnb", {}).get("image", {}).get("alt", "")
        for output in cell["outputs"]:
            data = output.get("data", {})
            data = {kind: "".join(data[kind]) for kind in GIVEN if kind in data}
            if svg := data.get("image/svg+xml"):
                svg = svg[svg.index("<svg") :]
                yield self.drawing(svg, words), *((ROOM, "tall") if tall(svg) else (16, "figure"))
            elif "text/html" in data:
                yield from self.table(data["text/html"])
            elif plain := data.get("text/plain") or "".join(output.get("text", "")):
                if plain.count("\n") <= LONG:
                    yield (
                        f'<pre class="said">{html.escape(plain.rstrip())}</pre>',
                        height("code", plain),
                        "",
                    )

    def table(self, text):
        if "<details" in text:  # a list to search in is for a page
            return
        if DRAWING.search(text):
            text = DRAWING.sub(lambda found: self.drawing(found[0], ""), text)
            yield text, 16, "figure"
        elif (rows := text.count("<tr")) <= LONG:
            yield text, 1.35 * rows + 2.5 * ("<caption" in text) + 2 * text.count("<p>"), ""

    def drawing(self, svg, words):
        self.drawings += 1
        return figures().BOX.format(figures().adapted(svg, f"d{self.drawings}", words))


@cache
def figures():
    """The book's own way of drawing a stored picture into a page, without inline styles."""
    return importlib.import_module("memlab_figures")


def tall(svg):
    """Whether a drawing needs the height of the whole slide, its heading's too."""
    ((wide, high),) = re.findall(r'viewBox="\S+ \S+ ([\d.]+) ([\d.]+)"', svg)[:1]
    return float(high) > 0.88 * float(wide)


def code_after(cells, at):
    """The code below a cell of text, up to the next text."""
    return list(takewhile(lambda cell: cell["cell_type"] == "code", cells[at + 1 :]))


def tags_of(cell):
    return set(cell["metadata"].get("tags", []))


def words_of(cell):
    """What a cell printed."""
    return filter(None, ("".join(output.get("text", "")).rstrip() for output in cell["outputs"]))


def texts_of(cell):
    """What a cell printed, as HTML."""
    return [f'<pre class="said">{html.escape(text)}</pre>' for text in words_of(cell)]


def read(path):
    return Deck(json.loads(path.read_text(encoding="utf-8")), path.stem)
