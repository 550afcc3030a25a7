"""The picture of the first page: the memory of its run, moment by moment, until it stops.

    python tools/first_run.py          write book/_static/first-run.svg
    python tools/first_run.py --check  exit with 1 if it is not what would be drawn now

The bytes are those of two simulated steps (memlab.step), and the moment at which the run stops is
where PyTorch's allocator, replayed on them, finds no room (memlab.terms.replay). It is in one
colour: which tensors these bytes are is the question that the page asks.
"""

import sys
from pathlib import Path

from memlab import GiB, Model, Run, text
from memlab.fit import limit_of
from memlab.plot.canvas import WIDTH, Canvas, heading, n, width_of
from memlab.plot.colours import GREY, INK
from memlab.step import simulate

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "book" / "_static" / "first-run.svg"
TITLE = "Llama-3-8B, everything in bf16, 1 × 8,192 tokens"
# The phases of a step and how wide each is drawn, in pixels; the last mark ends the step.
PHASES = {"forward": 84, "loss": 20, "backward": 78, "optimizer": 68}
LOAD, HIGH, EVERY = 30, 260, 20 * GiB
FILL, BEYOND, LIMIT = "#8C8C8C", "#E8E8E8", "#D55E00"


def run():
    """Of both steps: bytes after each event, spans (phase, first, last), the event that fails."""
    model = Model.preset("llama-3-8b")
    step = simulate(model, "bf16", Run(batch=1, tokens=8192), every_layer=True)
    room, _ = limit_of("H100 80GB")
    total, held = 0, []
    for _, change, _ in step.log.events:
        total += change
        held.append(total)
    marks = step.log.marks
    spans = [("load", 0, marks["first.forward"])]
    for one in ("first", "second"):
        ends = [marks[f"{one}.{name}"] for name in (*PHASES, "end")]
        spans += zip(PHASES, ends, ends[1:], strict=False)
    return held, spans, step.replay(room).out_of_memory.event, room


def picture():
    """The two steps as the text of an SVG."""
    held, spans, stops, room = run()
    sheet = Canvas()
    top = heading(sheet, TITLE) + 14
    base, most = top + HIGH, max(held)
    left, up = width_of(text(5 * EVERY)) + 10, HIGH / most
    wide = [LOAD, *PHASES.values(), *PHASES.values()]
    scale = (WIDTH - left - 4) / sum(wide)
    for size in range(0, most + 1, EVERY):
        sheet.line(left, base - size * up, WIDTH, base - size * up, "#DDDDDD")
        sheet.words(left - 8, base - size * up, text(size), "end", GREY)
    x, edges = left, []
    points, reached = [], 0
    for (_, first, last), pixels in zip(spans, wide, strict=True):
        columns = max(1, round(pixels * scale))
        edges.append((x, x + columns))
        for i in range(columns):
            a, b = (first + (last - first) * k // columns for k in (i, i + 1))
            points.append((x + i, round(base - max(held[a : max(b, a + 1)]) * up)))
            reached = len(points) if a <= stops else reached
        x += columns
    for colour, part in ((FILL, points[:reached]), (BEYOND, points[reached:])):
        ends = [*(x for x, _ in part[1:]), part[-1][0] + 1]
        along = "".join(f"V{n(y)}H{n(x)}" for (_, y), x in zip(part, ends, strict=True))
        sheet.area(f"M{n(part[0][0])} {n(base)}{along}V{n(base)}Z", colour)
    sheet.trace(points[reached:], GREY)
    height = base - room * up
    sheet.line(left, height, WIDTH, height, LIMIT, "6 4")
    sheet.words(left + 6, height - 12, f"{text(room)}: what the H100 has for tensors")
    sheet.dot(*points[reached - 1])
    sheet.words(points[reached - 1][0] + 8, height + 22, "out of memory", bold=True)
    for at, words in ((1, "first step"), (5, "second step")):
        start, end = edges[at][0], edges[at + 3][1]
        sheet.line(start, base + 30, end - 6, base + 30)
        sheet.words((start + end) / 2, base + 44, words, "middle", bold=True)
    for (name, _, _), (start, end) in zip(spans, edges, strict=True):
        if name != "loss":
            sheet.words((start + end) / 2, base + 14, name, "middle", GREY)
    sheet.line(left, base, WIDTH, base, INK)
    return sheet.picture(TITLE, base + 58).svg


def main(arguments):
    if arguments == ["--check"]:
        same = PICTURE.exists() and PICTURE.read_text(encoding="utf-8") == picture()
        print("" if same else f"{PICTURE.name} is out of date: run `python tools/first_run.py`")
        return 0 if same else 1
    PICTURE.write_text(picture(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
