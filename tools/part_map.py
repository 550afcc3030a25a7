"""The map of Part I: which term is alive when, and which chapter tells it.

    python tools/part_map.py          write book/_static/anatomy.svg
    python tools/part_map.py --check  exit with 1 if it is not what would be drawn now

Nothing in it is drawn by hand. The bands are the bytes of a small Llama that is loaded, trained for
one step (memlab.step) and asked for an answer (memlab.step.closed.working_set,
memlab.terms.kv_cache), each on
its own scale; the last is what the allocator would reserve for all of it (memlab.terms.replay).
"""

import json
import re
import sys
from functools import cache
from pathlib import Path

from memlab import Model, Run
from memlab.plot import COLOURS
from memlab.plot.canvas import WIDTH, Canvas, heading, n
from memlab.plot.colours import GREY
from memlab.step import simulate
from memlab.step.closed.working_set import moments
from memlab.step.simulate import term
from memlab.terms.replay import replay

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "book" / "_static" / "anatomy.svg"
TITLE = "What is in memory, and when"
BANDS = ("weights", "gradients", "optimizer", "activations", "logits", "KV cache", "reserved")
# The columns: what happens, and how wide each of its phases is drawn, in pixels.
COLUMNS = {
    "load": {"": 70},
    "one training step": {"forward": 86, "loss": 34, "backward": 86, "optimizer": 76},
    "serve": {"read": 54, "answer": 66},
}
LEFT, GAP, HIGH = 110, 8, 26
LLAMA = Model.preset("tinyllama-1.1b")
PROMPT, ANSWER = 512, 256


def trained():
    """Events of loading and of the second training step, and where each phase begins."""
    log = simulate(
        LLAMA, "bf16", Run.cpu(batch=4, tokens=512, implementation="memlab"), every_layer=True
    ).log
    events = [
        (id(record), change, term(record))
        for record, change, _ in log.events
        if record is not None  # which only a repeat of layers has, and every layer is here
    ]
    marks = log.marks
    phases = [
        marks[f"second.{phase}"] for phase in ("forward", "loss", "backward", "optimizer", "end")
    ]
    # The loss has a way back too: it is over when its last copy of the logits is gone.
    logits = _running(events, "logits")
    phases[2] = max(i for i in range(phases[0], phases[-1]) if logits[i]) + 1
    return events, marks["first.forward"], phases


def served():
    """Events of one conversation after the weights: the prompt is read, then the answer written."""
    events, count = [], 0
    kept: dict[int, tuple[str, int, str]] = {}

    def alive(size, name):
        nonlocal count
        count += 1
        events.append((f"serve {count}", size, name))
        return (events[-1][0], -size, name)

    def reads(tokens, past):
        found = moments(LLAMA, 1, tokens, "bf16", cache="growing", past=past)
        last = next(i for i, one in enumerate(found) if one.name == "final_norm")
        share = 2 * LLAMA.kv_heads * LLAMA.head_dim * 2
        for layer in range(LLAMA.layers + 1):
            for one in found[:last] if layer < LLAMA.layers else found[last:]:
                gone = [alive(one.activations, "activations")]
                if one.logits:
                    gone.append(alive(one.logits, "logits"))
                if one.name == "append":
                    old = kept.get(layer)
                    kept[layer] = alive((past + tokens) * share, "KV cache")
                    gone += [old] if old else []
                events.extend(gone)

    reads(PROMPT, 0)
    answer = len(events)
    for past in range(PROMPT, PROMPT + ANSWER, 16):
        reads(1, past)
    return events, answer


def bands():
    """{band: [bytes in each pixel of each phase]}: the most that it holds within the pixel."""
    steps, loaded, phases = trained()
    conversation, answer = served()
    loads, total = steps[:loaded], {}
    for name in BANDS:
        train, serve = _running(steps, name), _running(loads + conversation, name)
        total[name] = (train, serve)
    total["reserved"] = (_reserved(steps), _reserved(loads + conversation))
    drawn = {}
    for name, (train, serve) in total.items():
        spans = [(train, 0, loaded)]
        spans += [(train, a, b) for a, b in zip(phases, phases[1:], strict=False)]
        spans += [(serve, loaded, loaded + answer), (serve, loaded + answer, len(serve))]
        wide = [pixels for column in COLUMNS.values() for pixels in column.values()]
        drawn[name] = [_binned(*span, pixels) for span, pixels in zip(spans, wide, strict=True)]
    return drawn


def picture():
    """The map as the text of an SVG."""
    sheet, found = Canvas(), bands()
    top = heading(sheet, TITLE) + 8
    x, places = LEFT, []
    for name, phases in COLUMNS.items():
        wide = sum(phases.values())
        sheet.words(x + wide / 2, top, name, "middle", bold=True)
        for phase, pixels in phases.items():
            if phase:
                sheet.words(x + pixels / 2, top + 20, phase, "middle", colour=GREY)
            places.append((x, pixels))
            x += pixels
        x += GAP
    y = top + 36
    for name, phases in found.items():
        number = numbers()["allocator" if name == "reserved" else name.replace(" ", "-").lower()]
        sheet.words(16, y + HIGH / 2, str(number), "end", bold=True)
        sheet.words(22, y + HIGH / 2, name)
        most = max(size for column in phases for size in column)
        for (start, pixels), sizes in zip(places, phases, strict=True):
            sheet.box(start, y, pixels, HIGH, "#F4F4F4", edge="none")
            if any(sizes):
                colour = COLOURS["allocator" if name == "reserved" else name]
                sheet.area(_outline(start, y + HIGH, sizes, HIGH / most), colour)
        y += HIGH + 8
    for start, _ in places[2:5] + places[6:]:
        sheet.line(start, top + 32, start, y - 8, colour="#FFFFFF")
    y = _under(sheet, y + 4, places)
    return sheet.picture(TITLE, y).svg


def _under(sheet, y, places):
    """Brackets: which chapters tell a column, and which tell all of them."""
    load, train, serve = places[0], places[1:5], places[5:]
    tells = [
        (y, [load], "loading", "loading"),
        (y, train, "step", "the step and its peak"),
        (y, serve, "kv-cache", "conversations"),
        (y + 34, places, "watching", "watching a run: the tools that show all this"),
        (y + 68, places, "formats", "formats: every band is numbers, stored in some format"),
    ]
    for high, columns, label, words in tells:
        start, end = columns[0][0], columns[-1][0] + columns[-1][1]
        sheet.line(start, high, end, high)
        text = f"{numbers()[label]} {words}"
        sheet.words((start + end) / 2, high + 14, text, "middle")
    return y + 92


@cache
def numbers():
    """{label: the number that its file carries} of the chapters."""
    found = {}
    for path in sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb")):
        first = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])
        if label := re.match(r"\(([a-z0-9-]+)\)=", first):
            found[label[1]] = int(path.name[:2])
    return found


def _running(events, name):
    held, total = [], 0
    for _, change, its in events:
        total += change if its == name else 0
        held.append(total)
    return held


def _reserved(events):
    done = replay(("alloc" if c > 0 else "free", who, abs(c)) for who, c, _ in events if c)
    found: list[int] = []
    it = iter(done.reserved)
    for _, change, _ in events:
        found.append(next(it) if change else found[-1])
    return found


def _binned(held, first, last, pixels):
    edges = [first + (last - first) * i // pixels for i in range(pixels + 1)]
    return [max(held[a : max(b, a + 1)]) for a, b in zip(edges, edges[1:], strict=False)]


def _outline(x, floor, sizes, scale):
    path, before = f"M{n(x)} {n(floor)}", None
    for i, size in enumerate(sizes):
        if size != before:
            path += f"H{n(x + i)}V{n(floor - size * scale)}"
            before = size
    return path + f"H{n(x + len(sizes))}V{n(floor)}Z"


def main(arguments):
    if arguments == ["--check"]:
        same = PICTURE.exists() and PICTURE.read_text(encoding="utf-8") == picture()
        print("" if same else f"{PICTURE.name} is out of date: run `python tools/part_map.py`")
        return 0 if same else 1
    PICTURE.write_text(picture(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    assert WIDTH == 600  # COLUMNS are made for this width
    sys.exit(main(sys.argv[1:]))
