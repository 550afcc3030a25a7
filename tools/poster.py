"""The poster of the step for a classroom's wall: A2, one training step of the first page's run.

    python tools/poster.py             write _build/poster/memlab-poster-<language>.svg and .pdf
    python tools/poster.py --lang en   only this language

Memory over the lines of the loop, stacked by term, with the formula of each term and what each
remedy lowers. Every figure comes from memlab.step while it is drawn; texts are in the catalogue
`site`. `make book` puts the SVG beside the pages; the PDF needs a Chromium.

One unit of the drawing is a point (1/72 inch), so that a size of letters is the printed one.
A long file, because a sheet's places depend on each other and are read in one piece.
"""

import argparse
import os
import re
import sys
from functools import cache
from html import escape
from pathlib import Path

import yaml
from browser import chromium

from memlab import GiB, Model, Run, text
from memlab.base.message import IDEOGRAPH, Localized, Message, rendered
from memlab.base.numerals import written
from memlab.fit import limit_of
from memlab.plot import colour_of
from memlab.plot.canvas import FONT, SIZE, Canvas, n, width_of, wrap
from memlab.plot.colours import COLOURS, GREY, INK, PAPER, ink_on
from memlab.plot.steps import outline
from memlab.step import Lora, simulate
from memlab.step.core.moments import Moments, hills

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "book" / "_ext"), str(ROOT / "tools" / "i18n")]
import catalogue  # noqa: E402
from memlab_page import Addresses  # noqa: E402

OUT = ROOT / "_build" / "poster"
NAME = "memlab-poster"
# A2 across: 594 x 420 mm in points. Letters are read from two metres: a capital of Helvetica is
# 0.716 of its size high, so that 24 points are seen under 10.4 minutes of arc there, twice the 5
# minutes of a letter that normal sight just reads (ISO 8596).
WIDE, HIGH, EDGE = 1683.78, 1190.55, 50
TEXT, HEAD, TITLED = 24, 30, 50
MONO, CODE = 0.61, "'DejaVu Sans Mono', 'Liberation Mono', Menlo, Consolas, monospace"
MODEL, GPU = "llama-3-8b", "H100 80GB"
RUN = Run(batch=1, tokens=8192)

TITLE = "One training step: the peak is a moment, not a sum"
RUN_OF = "{1} on an {2}, everything in bf16, 1 × {3} tokens, AdamW with its defaults, second step"
STOPS, LAYER, PEAK = "out of memory", "layer {1} of {2}", "peak {1}"
LIMIT, ALONG = "{1}: what the H100 has for tensors", "allocations and frees, in order →"
# From the top: letter, term, name, formula in bf16, and when or why it is in memory.
TERMS = (
    ("τ", "other", "temporaries", "2·P", "only in optimizer.step()"),
    ("C", "logits", "logits", "12·T·V", "three copies in fp32"),
    (
        "A",
        "activations",
        "activations",
        "L·T·(16·D + 8·F + 4·N·H + 4·K·H + 4·N + 8) + T·(8·D + 4·H + 4)",
        "saved for backward",
    ),
    ("O", "optimizer", "optimizer states", "2·2·P", "from the first step on"),
    ("G", "gradients", "gradients", "2·P", "from backward to zero_grad()"),
    ("W", "weights", "weights", "2·P", "always"),
)
# The phases of a step and how wide each is drawn; a line of the loop runs over one or two of them.
PHASES = {"forward": 345, "loss": 50, "backward, loss": 45, "backward": 315, "optimizer": 240}
PHASES["zero_grad"] = 40
LINES = (
    ("loss = model(…).loss", "forward", "loss"),
    ("loss.backward()", "backward, loss", "backward"),
    ("optimizer.step()", "optimizer", "optimizer"),
    ("optimizer.zero_grad()", "zero_grad", "zero_grad"),
)
RULE = (
    "peak = W + O + max(A, A + C, a + g, G + τ): a remedy lowers the peak only if it acts on the "
    "highest phase"
)
# Those of the sheet (notebooks/one_sheet.ipynb) and of the step (07_step).
REMEDIES: dict[str, dict] = {
    "the run as it is": {},
    "fused AdamW": {"optimizer_impl": "fused"},
    "loss in chunks": {"loss": "chunked"},
    "gradient checkpointing": {"checkpoint": "block"},
    "checkpointing and fused AdamW": {"checkpoint": "block", "optimizer_impl": "fused"},
    "half the tokens": {"tokens": 4096},
    "LoRA on q and v, rank 16": {"lora": Lora(16)},
}
FITS = "fits the {1}"
COLUMNS = ("remedy", "lowers", "forward", "loss", "backward", "optimizer", FITS)
ANSWERS = ("yes", "no")
LETTERS = (
    "P={1} parameters, L={2} layers, D={3} model width, F={4} feed-forward width, "
    "N={5} query heads, K={6} key/value heads, H={7} head width, V={8} vocabulary, T={9} tokens"
)
SOURCE = "Simulated with memlab, to the byte. CC-BY-4.0"
# What only the poster says, for a translator; the other words are memlab's and the first picture's.
WORDS = [TITLE, RUN_OF, LAYER, LIMIT, *(note for *_, note in TERMS), RULE, next(iter(REMEDIES))]
WORDS += ["lowers", FITS, LETTERS, SOURCE]


class Sheet(Canvas):
    """A canvas of the poster's size, whose words have sizes of their own."""

    def __init__(self, say):
        super().__init__()
        self.say = say

    def words(self, x, y, text, at="start", colour=INK, bold=False, size=TEXT, code=False):
        style = "" if at == "start" else f' text-anchor="{at}"'
        style += ' font-weight="bold"' if bold else ""
        style += f' font-family="{CODE}"' if code else ""
        said = text if code else self.say(text)
        # As wide as it is laid out, also in a face with wider letters than usual. An ideograph is
        # as wide in each face, and a letter alone has room.
        if len(said) > 2 and not code and not re.search(IDEOGRAPH, said):
            wide = n(self.wide(Localized(said.replace("·", ".")), size, bold))
            style += f' textLength="{wide}" lengthAdjust="spacingAndGlyphs"'
        self.parts.append(
            f'<text x="{n(x)}" y="{n(y + 0.35 * size)}" font-size="{size}" fill="{colour}"{style}>'
            f"{escape(said, quote=False)}</text>"
        )

    def wide(self, told, size=TEXT, bold=False):
        return width_of(self.say(told), bold) * size / SIZE

    def lines(self, told, wide, size=TEXT, bold=False):
        return wrap(self.say(told), wide * SIZE / size, bold)

    def stroke(self, path, colour=INK, thick=3.0, dash=""):
        style = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(
            f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{thick:g}"{style}/>'
        )

    def spot(self, x, y):
        self.parts.append(
            f'<circle cx="{n(x)}" cy="{n(y)}" r="8" fill="{INK}" stroke="{PAPER}" '
            'stroke-width="2"/>'
        )

    def badge(self, x, y, letter, term):
        """A term's letter on its colour; y is its middle."""
        colour = colour_of(term)
        self.box(x, y - 14, 34, 28, colour, edge="none")
        self.words(x + 17, y, letter, "middle", ink_on(colour), bold=True)

    def whole(self, title, language):
        box = f'width="594mm" height="420mm" viewBox="0 0 {WIDE} {HIGH}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {box} role="img" lang="{language}" '
        head += f'font-family="{FONT}">'
        paper = f'<rect width="{WIDE}" height="{HIGH}" fill="{PAPER}"/>'
        named = f"<title>{escape(self.say(title), quote=False)}</title>"
        return "\n".join([head, named, paper, *self.parts, "</svg>"]) + "\n"


@cache
def step(name="the run as it is", every_layer=False):
    """The simulated step with one of the remedies."""
    model, run = Model.preset(MODEL), RUN.replace(**REMEDIES[name])
    return simulate(model, "bf16", run, every_layer=every_layer)


@cache
def phases():
    """{phase: its moments} of the second step, the loss cut where `loss.backward()` begins."""
    whole = step(every_layer=True)
    found: dict[str, list] = {name: [] for name in PHASES}
    marks, moments = whole.log.marks, Moments(whole)
    for moment in moments.timeline:
        phase, at = moment.phase, marks["second.forward"] + moment.index
        if phase == "loss" and at >= marks["second.backward"]:
            phase = "backward, loss"
        found[phase].append((moment.total, moments.contents(moment.index)))
    return found


def peak():
    """The highest moment of the step: its phase, its place there, its bytes."""
    tops = {name: max(total for total, _ in each) for name, each in phases().items()}
    name = max(tops, key=tops.__getitem__)
    at = next(i for i, (total, _) in enumerate(phases()[name]) if total == tops[name])
    return name, at, tops[name]


@cache
def stop():
    """Where the allocator finds no room: the moment of the forward pass, and its layer."""
    whole = step(every_layer=True)
    event = whole.replay(limit_of(GPU)[0]).out_of_memory.event
    layer = [layer for at, layer in whole.log.entered if at <= event][-1]
    return event - whole.log.marks["second.forward"], layer + 1


@cache
def remedy(name):
    """Bytes of each phase, terms that fall by more than a hundredth of the peak, the verdict."""
    was, now = (_largest(one) for one in (step(), step(name)))
    fallen = [term for term in was if was[term] - now.get(term, 0) > step().peak.bytes / 100]
    tops = {phase: found.total() for phase, found in hills(step(name)).items()}
    return tops, fallen, step(name).peak.bytes <= limit_of(GPU)[0]


def _largest(one):
    """Of each term the most that any phase has."""
    rows = [row for found in hills(one).values() for row in found.rows]
    sizes = {term: [r.derived or 0 for r in rows if r.term == term] for term in COLOURS}
    return {term: max(found) for term, found in sizes.items() if found}


def poster(words, language="en", address=""):
    """The poster as the text of an SVG.

    words       English -> the language's; what they lack stays English
    address     where the book is; "" where nobody knows yet
    """

    def say(told):
        return Localized(rendered(told, words, language))

    sheet, model = Sheet(say), Model.preset(MODEL)
    room = WIDE - 2 * EDGE
    sized = min(TITLED, int(TITLED * room / sheet.wide(TITLE, TITLED, bold=True)))
    sheet.words(EDGE, 82, TITLE, bold=True, size=sized)
    named = Message(RUN_OF, "Llama-3-8B", GPU, f"{RUN.tokens:,}")
    sheet.words(EDGE, 136, named, size=HEAD - 2)
    _chart(sheet, left=EDGE + 110, top=172, high=505)
    _formulas(sheet, left=1225, top=182)
    _remedies(sheet, 796)
    sizes: list = [model.parameter_count, model.layers, model.d_model, model.d_ff, model.heads]
    sizes += [model.kv_heads, model.head_dim, model.vocab, RUN.tokens]
    y = 1088
    values = (Localized(written(f"{size:,}", language)) for size in sizes)
    for line in sheet.lines(Message(LETTERS, *values), WIDE - 2 * EDGE):
        sheet.words(EDGE, y, line)
        y += 29
    sheet.words(EDGE, 1148, SOURCE, colour=GREY)
    sheet.words(WIDE - EDGE, 1148, Localized(address), "end", GREY)
    return sheet.whole(TITLE, language)


def _chart(sheet, left, top, high):
    """The step over its lines: the stack, its phases' peaks, the GPU's line, the axes."""
    room, (where, at, most) = limit_of(GPU)[0], peak()
    ceiling = 20 * GiB * -(-most // (20 * GiB))
    base, up, right = top + high, high / ceiling, left + sum(PHASES.values())
    for size in range(0, ceiling + 1, 20 * GiB):
        sheet.stroke(f"M{n(left)} {n(base - size * up)}H{n(right)}", "#DDDDDD", 1.5)
        sheet.words(left - 12, base - size * up, text(size), "end", GREY)
    starts: dict[str, float] = {}
    columns: list = []
    x = left
    for name, pixels in PHASES.items():
        starts[name], found, count = x, phases()[name], pixels // 5
        for i in range(count):
            a, b = (len(found) * k // count for k in (i, i + 1))
            columns.append(max(found[a : max(b, a + 1)], key=lambda moment: moment[0])[1])
        x += pixels
    floor = [0.0] * len(columns)
    for term in [each for each in COLOURS if any(column.get(each) for column in columns)]:
        roof = [low + column.get(term, 0) for low, column in zip(floor, columns, strict=True)]
        low, ends = ([base - size * up for size in edge] for edge in (floor, roof))
        sheet.area(outline(low, ends, left, 5), colour_of(term))
        floor = roof
    _names(sheet, columns, left, base, up, (starts["loss"] - 8, base - most * up))
    line = base - room * up
    sheet.stroke(f"M{n(left)} {n(line)}H{n(right)}", dash="12 8")
    for i, part in enumerate(sheet.lines(Message(LIMIT, text(room)), 330)):  # on the activations
        sheet.words(starts["backward, loss"], line + 20 + 28 * i, part, "middle")

    def place(name, index):
        return starts[name] + PHASES[name] * (index + 0.5) / len(phases()[name])

    event, layer = stop()
    x = place("forward", event)
    sheet.spot(x, line)
    sheet.words(x - 16, line - 45, STOPS, "end", bold=True)
    sheet.words(x - 16, line - 18, Message(LAYER, layer, Model.preset(MODEL).layers), "end")
    x, y = place(where, at), base - most * up
    sheet.spot(x, y)
    sheet.words(x + 18, y - 36, Message(PEAK, text(most)), bold=True, size=HEAD)
    sheet.words(x + 18, y - 4, _line_of(where), code=True, bold=True)
    for name in ("forward", "backward", "optimizer"):
        totals = [total for total, _ in phases()[name]]
        x, y = place(name, totals.index(max(totals))), base - max(totals) * up
        words = Message("{1} {2}", name, text(max(totals)))
        sheet.spot(x, y)
        if name == "optimizer":
            sheet.words(right, min(y, line) - 18, words, "end")
        elif name == "forward":
            sheet.words(x - 16, y - 14, words, "end")
        else:
            sheet.words(x + 16, y - 6, words)
    sheet.stroke(f"M{n(left)} {n(base)}H{n(right)}")
    for code, first, last in LINES:
        start, end = starts[first], starts[last] + PHASES[last]
        sheet.stroke(f"M{n(start + 4)} {n(base + 16)}H{n(end - 4)}")
        if first == "zero_grad":
            sheet.words(end, base + 72, code, "end", code=True)
        else:
            sheet.words((start + end) / 2, base + 38, code, "middle", code=True)
    sheet.words(left, base + 72, ALONG, colour=GREY)


def _line_of(phase):
    """The line of the loop that runs in a phase."""
    order = list(PHASES)
    for code, first, last in LINES:
        if order.index(first) <= order.index(phase) <= order.index(last):
            return code
    raise ValueError(f"no line of the loop runs in {phase!r}")


def _names(sheet, columns, left, base, up, beside):
    """The letter of each term on its colour, where there is most room for it, or beside it."""
    order = [each for each in COLOURS if any(column.get(each) for column in columns)]
    for letter, term, name, *_ in TERMS:
        below = order[: order.index(term)]
        for told in (Message("{1}  {2}", letter, name), letter):
            need = int((sheet.wide(told) + 12) // 5) + 1
            best, spot = TEXT + 4.0, None
            for start in range(len(columns) - need + 1):
                part = columns[start : start + need]
                floor = max(sum(column.get(each, 0) for each in below) for column in part)
                roof = min(sum(column.get(each, 0) for each in [*below, term]) for column in part)
                if (roof - floor) * up > best:
                    best = (roof - floor) * up + 1
                    share = 0.5 if best < 150 else 0.2  # the GPU's line has its words above
                    spot = (
                        left + 5 * (start + need / 2),
                        base - (floor + share * (roof - floor)) * up,
                    )
            if spot:
                sheet.words(*spot, told, "middle", ink_on(colour_of(term)), bold=told == letter)
                break
        else:  # a spike too thin for its name
            sheet.words(*beside, Message("{1}  {2}", letter, name), "end")


def _formulas(sheet, left, top):
    """Each term from the top of the stack down: its size, its formula, when it is in memory."""
    y, room = top, WIDE - EDGE - left
    sizes = _largest(step())
    for letter, term, name, formula, note in TERMS:
        sheet.badge(left, y, letter, term)
        sheet.words(left + 46, y, name, bold=True)
        size = text(sizes[term])
        fits = 46 + sheet.wide(name, bold=True) + 12 + sheet.wide(size, bold=True) <= room
        sheet.words(left + room, y if fits else y + 30, size, "end", bold=True)
        y += 30
        for part in sheet.lines(Localized(formula.replace("·", ".")), room - 46):
            line = Localized(part.replace(".", "·"))  # a point of no more than a full stop's width
            sheet.words(left + 46, y, line)
            y += 28
        beside = 46 + sheet.wide(part) + 24
        if fits and beside + sheet.wide(note) <= room:  # next to the formula's end
            y -= 28
            sheet.words(left + beside, y, note, colour=GREY)
        else:
            sheet.words(left + 46, y, note, colour=GREY)
        y += 42


def _remedies(sheet, top):
    """The table: what each remedy makes smaller, and how high each phase is then."""
    sheet.words(EDGE, top, RULE, bold=True, size=HEAD - 4)
    places = dict(zip(COLUMNS, (EDGE, 560, 945, 1100, 1270, 1440, WIDE - EDGE), strict=True))
    y = top + 38
    for name, x in places.items():
        at = "start" if name in ("remedy", "lowers") else "end"
        sheet.words(x, y, Message(name, GPU.split()[0]), at, GREY)
    for name in REMEDIES:
        y += 32
        sheet.stroke(f"M{EDGE} {n(y - 16)}H{n(WIDE - EDGE)}", "#DDDDDD", 1)
        tops, fallen, fits = remedy(name)
        sheet.words(places["remedy"], y, name)
        x = places["lowers"]
        for letter, term, *_ in reversed(TERMS):
            if term in fallen:
                sheet.badge(x, y, letter, term)
                x += 42
        for phase, size in tops.items():
            sheet.words(places[phase], y, text(size), "end", bold=size == max(tops.values()))
        sheet.words(WIDE - EDGE, y, ANSWERS[not fits], "end", bold=fits)


def address():
    """Where the book is published, from the one setting that says it; "" where there is none."""
    given = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    given = given["sphinx"]["config"]["html_context"]
    repository = given.get("repository") or os.environ.get("MEMLAB_REPOSITORY", "")
    return Addresses(repository, given["branch"], given["site"]).site


def in_language(language):
    """The poster in a language of the book."""
    words = {} if language == "en" else catalogue.translations(language, "memlab")
    words |= {} if language == "en" else catalogue.translations(language, "site")
    return poster(words, language, address())


def stage(source, language):
    """Lay the poster beside the staged pages, which link to it."""
    (source / "_static" / "poster.svg").write_text(in_language(language), encoding="utf-8")


def printed(browser, drawing, target):
    """The drawing on one sheet of A2."""
    page = browser.new_page()
    style = "@page { size: 594mm 420mm; margin: 0 } body { margin: 0 } svg { display: block }"
    page.set_content(f"<!doctype html><style>{style}</style>{drawing}")
    page.pdf(path=target, width="594mm", height="420mm", print_background=True, tagged=True)
    page.close()
    return target


def main():
    known = ["en", *catalogue.languages()]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lang", nargs="+", choices=known, default=known)
    options = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    drawings = {OUT / f"{NAME}-{each}.svg": in_language(each) for each in options.lang}
    for path, drawing in drawings.items():
        path.write_text(drawing, encoding="utf-8")
        print(os.path.relpath(path))
    with chromium() as browser:
        for path, drawing in drawings.items():
            print(os.path.relpath(printed(browser, drawing, path.with_suffix(".pdf"))))


if __name__ == "__main__":
    main()
