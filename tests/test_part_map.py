"""The opener of Part I: its map is drawn from simulations, its minutes come from the chapters."""

import re
from pathlib import Path

import part_map
import pytest
import status
from landing import MOVED

ROOT = Path(__file__).resolve().parent.parent


SITE = ROOT / "_build" / "html" / "en"
PAGE = (ROOT / "book" / "anatomy.md").read_text(encoding="utf-8")


def test_the_map_is_what_would_be_drawn_now():
    assert part_map.PICTURE.read_text(encoding="utf-8") == part_map.picture()


def test_bands_say_when_a_term_is_alive():
    load, forward, loss, backward, optimizer, read, answer = range(7)
    bands = part_map.bands()

    def alive(name):
        return {i for i, phase in enumerate(bands[name]) if any(phase)}

    assert alive("weights") == alive("reserved") == set(range(7))
    assert alive("optimizer") == {forward, loss, backward, optimizer}
    assert alive("gradients") <= {loss, backward, optimizer} > {optimizer} - alive("gradients")
    assert alive("KV cache") == {read, answer}
    assert {forward, loss, backward} <= alive("activations")
    assert loss in alive("logits") and not {forward, optimizer} & alive("logits")
    assert bands["gradients"][optimizer][-1] < max(bands["gradients"][optimizer])
    assert bands["KV cache"][answer] == sorted(bands["KV cache"][answer])


def test_the_map_and_its_alternative_text_name_every_chapter():
    svg = part_map.PICTURE.read_text(encoding="utf-8")
    alt = re.search(r"^:alt: (.*)$", PAGE, re.M)[1]
    words = " ".join(re.findall(r"<text[^>]*>([^<]+)", svg))
    shown = (
        "weights gradients optimizer activations logits kv-cache allocator loading step watching"
    )
    for number in (part_map.numbers()[label] for label in [*shown.split(), "formats"]):
        assert re.search(rf"\b{number}\b", words) and re.search(rf"\b{number}\b", alt)
    for band in part_map.BANDS:
        assert band in words and band.removesuffix("d") in alt


def test_minutes_are_those_of_the_chapters(tmp_path):
    table = status.minutes(ROOT, 1, 13)
    assert "| 4 | [Optimizer states](notebooks/04_optimizer.ipynb) | 26 | 2, 3 |" in table
    rows = [int(n) for n in re.findall(r"^\| \d+ \|.*?\| (\d+) \|", table, re.M)]
    assert len(rows) >= 7 and f"| together | {sum(rows)} |" in table
    (tmp_path / "notebooks").mkdir()
    source = (ROOT / "notebooks" / "02_weights.ipynb").read_text(encoding="utf-8")
    changed = source.replace("24 minutes, and 2 GiB", "35 minutes, and 2 GiB")
    (tmp_path / "notebooks" / "02_weights.ipynb").write_text(changed, encoding="utf-8")
    assert "| together | 35 |" in status.minutes(tmp_path, 1, 13)


@pytest.mark.skipif(not SITE.is_dir(), reason="no book: `make book` builds it")
def test_chapters_carry_the_numbers_of_their_files():
    sidebar = (SITE / "anatomy.html").read_text(encoding="utf-8")
    listed = re.findall(r'href="notebooks/(\d\d)_\w+\.html">\s*(\d+)\.', sidebar)
    pages = [p for p in sorted(SITE.glob("notebooks/[0-9][0-9]_*.html")) if p.stem not in MOVED]
    built = [p.name[:2] for p in pages]
    assert {name for name, _ in listed} == set(built) and len(built) >= 7
    assert all(int(name) == int(number) for name, number in listed)
    for page in pages:
        heading = re.search(
            r'<h1><span class="section-number">(\d+)\.', page.read_text(encoding="utf-8")
        )
        assert int(heading[1]) == int(page.name[:2]), page.name
