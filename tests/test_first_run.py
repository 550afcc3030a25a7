"""The picture of the first page is drawn from the simulated run, and its words describe it."""

import re
from pathlib import Path

import first_run

ROOT = Path(__file__).resolve().parent.parent


def test_the_first_picture_is_what_would_be_drawn_now():
    assert first_run.PICTURE.read_text(encoding="utf-8") == first_run.picture()


def test_the_first_picture_is_described_by_its_figures():
    held, spans, stops, room = first_run.run()
    words = (ROOT / "book" / "intro.md").read_text(encoding="utf-8").partition(":alt: ")[2]
    ends = {(at > 4, name): last for at, (name, _, last) in enumerate(spans)}
    first, second = ends[False, "optimizer"], ends[True, "optimizer"]
    told = [held[ends[False, "load"]], max(held[:first]), held[ends[False, "backward"]]]
    told += [held[first], max(held[first:second])]
    assert max(held[:first]) < room < max(held[first:second]) and first < stops < second
    sizes = [f"{size / 2**30:.0f} GiB" for size in told]
    assert re.findall(r"\d+ GiB(?!:)", words.partition("\n")[0].replace("78.64 GiB", "")) == sizes
