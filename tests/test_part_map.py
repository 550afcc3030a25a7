"""The opener of Part I: its map is drawn from simulations, its minutes come from the chapters."""

import re
from pathlib import Path

import part_map
import pytest
import status

ROOT = Path(__file__).resolve().parent.parent


SITE = ROOT / "_build" / "html" / "en"
PAGE = (ROOT / "book" / "anatomy.md").read_text(encoding="utf-8")


def test_the_map_is_what_would_be_drawn_now():
    assert part_map.PICTURE.read_text(encoding="utf-8") == part_map.picture()


def test_the_map_numbers_the_chapters_as_their_files_do(tmp_path):
    assert list(part_map.wrong_numbers()) == []
    source = (ROOT / "notebooks" / "07_kv_cache.ipynb").read_text(encoding="utf-8")
    (tmp_path / "06_kv_cache.ipynb").write_text(source, encoding="utf-8")
    assert list(part_map.wrong_numbers(tmp_path)) == ["06_kv_cache.ipynb is chapter 7 on the map"]


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
    for number in part_map.CHAPTERS.values():
        assert re.search(rf"\b{number}\b", words) and re.search(rf"\b{number}\b", alt)
    for band in part_map.BANDS:
        assert band in words and band.removesuffix("d") in alt


def test_minutes_are_those_of_the_chapters(tmp_path):
    table = status.minutes(ROOT, 1, 11)
    assert (
        "| 4 | [Open the optimizer's notebook](notebooks/04_optimizer.ipynb) | 25 | 2, 3 |" in table
    )
    rows = [int(n) for n in re.findall(r"^\| \d+ \|.*?\| (\d+) \|", table, re.M)]
    assert len(rows) >= 7 and f"| together | {sum(rows)} |" in table
    (tmp_path / "notebooks").mkdir()
    source = (ROOT / "notebooks" / "02_weights.ipynb").read_text(encoding="utf-8")
    changed = source.replace("20 minutes, and 2 GiB", "35 minutes, and 2 GiB")
    (tmp_path / "notebooks" / "02_weights.ipynb").write_text(changed, encoding="utf-8")
    assert "| together | 35 |" in status.minutes(tmp_path, 1, 11)


def test_the_workshop_takes_three_hours():
    plan = PAGE[PAGE.index("## A workshop of three hours") :]
    assert sum(int(n) for n in re.findall(r"^\| (\d+) \|", plan, re.M)) == 180


@pytest.mark.skipif(not SITE.is_dir(), reason="no book: `make book` builds it")
def test_chapters_carry_the_numbers_of_their_files():
    sidebar = (SITE / "anatomy.html").read_text(encoding="utf-8")
    listed = re.findall(r'href="notebooks/(\d\d)_\w+\.html">\s*(\d+)\.', sidebar)
    built = [p.name[:2] for p in sorted((SITE / "notebooks").glob("[0-9][0-9]_*.html"))]
    assert {name for name, _ in listed} == set(built) and len(built) >= 7
    assert all(int(name) == int(number) for name, number in listed)
    for page in SITE.glob("notebooks/[0-9][0-9]_*.html"):
        heading = re.search(
            r'<h1><span class="section-number">(\d+)\.', page.read_text(encoding="utf-8")
        )
        assert int(heading[1]) == int(page.name[:2]), page.name
