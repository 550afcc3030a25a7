"""A course of book/courses as slides: its schedule, and of each chapter what the schedule names.

- The first slide has the course's title and its goals; each session begins with its hours.
- A chapter begins with its own first slide and the time; the instructor's page on it is what the
  speaker reads there. Then come its prediction, the cells that the course shows or runs and the
  exercises that it sets, as they stand on the slides of the chapter itself.
- A break, and a part without a chapter, is a slide with its time.

Every word is one of the chapters, of book/workshop.md or of book/instructor-*.md.
"""

import json
import re

import courses
import instructors

from decks.blocks import blocks, rendered
from decks.deck import Deck, Slide, code_after, tags_of

ROW = re.compile(r"(?<!\\)\|")
HOURS = 10  # lines of a schedule that a slide shows
PREDICT = re.compile(r"^\*\*Predict first", re.M)


class Course:
    """The slides of one course, in order.

    root        the project: its courses and English chapters
    notebooks   the chapters in the language: name -> notebook
    translated  puts a page's Markdown into the language: (name of the page, text) -> text
    """

    def __init__(self, root, name, notebooks, translated):
        self.root, self.name, self.notebooks = root, name, notebooks
        course = courses.read(root)[name]
        text = translated("workshop", courses.section(root, name, course))
        found = [block for block in blocks(text) if block[0] != "other"]
        self.title = next(source for kind, source in found if kind == "h2")
        self.titles = [source for kind, source in found if kind == "h3"] or [self.title]
        self.tables = [_rows(source) for kind, source in found if kind == "table"]
        self.slides: list = [Slide(self.title, "title")]
        self.drawings = 0
        self.opening(found)
        notes = instructor(root, translated)
        for title, rows, session in zip(self.titles, self.tables, course["sessions"], strict=True):
            self.session(title, rows, session["parts"], notes)

    def opening(self, found):
        """For whom, the goals, and where people get stuck, which is the speaker's."""
        first, lists = self.slides[0], [source for kind, source in found if kind == "list"]
        said = [source for kind, source in found if kind == "p"]
        first.parts = [rendered(said[2]), rendered(lists[0])]
        first.notes = [rendered(part) for part in (*said[:2], said[3], lists[1])]

    def session(self, title, rows, parts, notes):
        head, *rows = rows
        for at in range(0, len(parts), HOURS):
            table = [f"| {head[0]} | |", "|---|---|"]
            table += [f"| {row[0]} | {row[1] or row[2]} |" for row in rows[at : at + HOURS]]
            self.slides.append(Slide(title, parts=[rendered("\n".join(table))]))
        for part, row, after in zip(parts, rows[:-1], rows[1:], strict=True):
            hours = f"{row[0]} – {after[0]}"
            if "chapter" in part:
                self.chapter(part, hours, [head, row], notes[part["chapter"]])
            else:
                late = [rendered(_table([head, row]))] if row[6] else []
                self.slides.append(Slide(hours, "title", [rendered(row[2])], late))

    def chapter(self, part, hours, rows, notes):
        deck = Deck(self.marked(part), part["chapter"], self.drawings)
        self.drawings = deck.drawings
        first, *others = deck.slides
        first.parts.insert(0, f"<p><strong>{hours}</strong></p>")
        first.notes = [rendered(_table(rows)), *notes, *first.notes]
        wanted = self.wanted(part)
        self.slides += [first, *(slide for slide in others if slide.cells & wanted)]

    def english(self, part):
        """Of each cell of text its id and those of the code below it, its English, its exercises.

        An exercise may ask about what a cell between its text and its answer prints.
        """
        path = self.root / "notebooks" / f"{part['chapter']}.ipynb"
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        for at, cell in enumerate(cells):
            if cell["cell_type"] == "markdown":
                text = "".join(cell["source"])
                found = {int(number or 1) for number, _ in courses.EXERCISE.findall(text)}
                yield [cell["id"], *(each["id"] for each in code_after(cells, at))], text, found

    def wanted(self, part):
        """The ids of the cells that have slides: those of the course, and the prediction."""
        found, set_ = {*part.get("show", []), *part.get("run", [])}, {*part.get("exercises", [])}
        for names, text, numbers in self.english(part):
            if numbers & set_:
                found.update(names)
            elif PREDICT.search(text):
                found.add(names[0])
        return found

    def marked(self, part):
        """The chapter without the exercises that the course does not set; its cells are shown."""
        notebook = json.loads(json.dumps(self.notebooks[part["chapter"]]))
        asked, set_ = {*part.get("show", []), *part.get("run", [])}, {*part.get("exercises", [])}
        english = self.english(part)
        others = {names[0] for names, _, numbers in english if numbers and not numbers & set_}
        kept, left_out = [], False
        for cell in notebook["cells"]:
            if cell["cell_type"] == "markdown":
                if left_out := cell.get("id") in others:  # but not the heading above the first one
                    cell["source"] = ("\n" + "".join(cell["source"])).partition("\n**")[0]
            elif left_out:
                continue
            elif cell.get("id") in asked and "machine" not in tags_of(cell):
                cell["metadata"]["slides"] = "whole"
            kept.append(cell)
        return notebook | {"cells": kept}


def instructor(root, translated):
    """{chapter: what the instructor's page says of it}, as notes."""
    found = {}
    for number, text in enumerate(instructors.pages(root), 1):
        for *_, chapter, words in instructors.sections(translated(f"instructor-{number}", text)):
            found[chapter] = [rendered(source) for _, source in blocks(words)]
    return found


def _rows(table):
    """The cells of a table's lines, without the line below its head."""
    head, _, *lines = table.split("\n")
    return [[cell.strip() for cell in ROW.split(line.strip())[1:-1]] for line in (head, *lines)]


def _table(rows):
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])
