"""What stands at the root of the site: the way in, and what others ask of one with an address."""

import pytest

import book


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A site of two languages, whose pages are empty."""
    monkeypatch.setattr(book, "SITE", tmp_path)
    for language in ("en", "pt-BR"):
        (tmp_path / language).mkdir()
        (tmp_path / language / book.FIRST).touch()
    return tmp_path


def test_a_site_without_an_address_has_the_way_in_alone(site):
    (site / "robots.txt").touch()  # of an earlier build, with an address
    (site / "404.html").touch()
    book.write_index()
    found = {path.name for path in site.iterdir() if path.is_file()}
    assert found == {"index.html", "pick.js", book.wheel.name()}
    index = (site / "index.html").read_text(encoding="utf-8")
    assert '<meta name="description" content="Where every byte of GPU memory goes' in index


def test_a_site_with_an_address_says_it_to_robots_and_to_who_is_lost(site):
    for language in ("en", "pt-BR"):
        page = f"https://example.github.io/memlab/{language}/intro.html"
        (site / language / "sitemap.xml").write_text(f"<loc>{page}</loc>")
    book.write_index()
    root = "https://example.github.io/memlab/"
    assert f"Sitemap: {root}sitemap.xml\n" in (site / "robots.txt").read_text()
    assert f"<loc>{root}pt-BR/sitemap.xml</loc>" in (site / "sitemap.xml").read_text()
    lost = (site / "404.html").read_text(encoding="utf-8")
    assert f'href="{root}en/intro.html"' in lost and f'href="{root}pt-BR/intro.html"' in lost
    assert "Esta página não existe." in lost and "script" not in lost.split("</style>")[1]
