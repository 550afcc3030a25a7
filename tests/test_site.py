"""What every page of the built book carries and what it must not; read from the files alone."""

import html
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml
from landing import MOVED

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "_build" / "html"
PAGES = sorted(
    path.relative_to(SITE).as_posix()
    for path in SITE.rglob("*.html")
    if not {"_static", "_sources"} & set(path.parts)
)
memlab_assets = pytest.importorskip("memlab_assets", reason="no book: Sphinx is not installed")
import memlab_page  # noqa: E402
from memlab_page import Addresses, citation, minutes  # noqa: E402
from typeface import FACES, NAME  # noqa: E402

import book  # noqa: E402

built = pytest.mark.skipif(not PAGES, reason="no book: `make book` builds it")
CODE_TYPES = {None, "", "module", "text/javascript", "application/javascript"}


class Markup(HTMLParser):
    """What a strict policy would refuse, and the policy itself with its place in the page."""

    def __init__(self, text):
        super().__init__()
        self.policies, self.refused, self.loads_before, self.ids = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "meta" and given.get("http-equiv") == "Content-Security-Policy":
            self.policies.append(given["content"])
        elif tag in ("script", "link", "img") and not self.policies:
            self.loads_before.append(tag)
        if tag == "script" and "src" not in given and given.get("type") in CODE_TYPES:
            self.refused.append("an inline script")
        if tag == "style" and "style-src 'sha256-" not in str(self.policies):
            self.refused.append("an inline style sheet")
        for name, value in attributes:
            if name == "style" or name.startswith("on"):
                self.refused.append(f"<{tag} {name}={value}>")
            elif str(value).strip().lower().startswith("javascript:"):
                self.refused.append(f"<{tag} {name}={value}>")


@pytest.mark.sample(40)
@built
@pytest.mark.parametrize("name", PAGES)
def test_every_page_has_a_strict_policy_and_keeps_it(name):
    page = Markup((SITE / name).read_text(encoding="utf-8"))
    assert len(page.policies) == 1 and page.loads_before == []
    assert "default-src 'none'" in page.policies[0]
    assert not re.search(
        r"unsafe-(inline|eval')(?<!wasm-unsafe-eval')|https?:|\*", page.policies[0]
    )
    assert page.refused == []
    assert len(page.ids) == len(set(page.ids)), "an id stands twice"


def test_the_reader_of_markup_sees_what_is_wrong():
    page = Markup(
        "<script src=a.js></script><meta http-equiv='Content-Security-Policy' content='x'>"
        "<script>1</script><style></style><p style='a:b' onclick='f()'><a href=' JavaScript:f()'>"
    )
    assert page.loads_before == ["script"] and len(page.refused) == 5


@built
def test_every_icon_is_drawn():
    css = (SITE / "en" / "_static" / "icons.css").read_text(encoding="utf-8")
    drawn = set(re.findall(r"^\.fa-([a-z0-9-]+)\{--icon", css, re.M))
    texts = [(SITE / name).read_text(encoding="utf-8") for name in PAGES]
    named = set().union(*map(memlab_assets.icons, texts))
    assert named == drawn and {"bars", "list", "download", "moon"} <= drawn
    # The theme draws others with a font that is not served: in boxes that this book does not use.
    boxes = re.compile(
        r'class="[^"]*(?:admonition (?:note|tip|warning|hint)|versionmodified|dropdown)'
    )
    assert [name for name, text in zip(PAGES, texts, strict=True) if boxes.search(text)] == []


def test_an_icon_that_the_theme_lacks_fails():
    bundle = '{"bars":[448,512,[],"f0c9","M0 1"],bars:[10,20,["a"],"f0c9","M2 3"]}'
    assert "0 0 10 20" in memlab_assets.stylesheet({"bars"}, bundle)
    with pytest.raises(memlab_assets.SphinxError, match="'no-such'"):
        memlab_assets.stylesheet({"no-such"}, bundle)


@built
def test_dead_files_are_gone_and_no_script_asks_for_them():
    files = [path for path in SITE.rglob("*") if path.is_file()]
    assert [path.name for path in files if path.suffix in {".map", ".ttf"}] == []
    ours = [NAME.format(weight=weight, style=style) for weight, style, _ in FACES]
    assert {path.name for path in files if path.suffix == ".woff2"} <= set(ours)
    for path in files:
        if path.suffix in {".js", ".css"}:
            assert "sourceMappingURL" not in path.read_text(encoding="utf-8"), path.name
            for url in re.findall(r"url\(([^)\"']+)\)", path.read_text(encoding="utf-8")):
                assert (path.parent / url.split("?")[0]).exists(), f"{path.name} -> {url}"


@built
def test_each_chapter_says_its_minutes_and_how_to_cite_it():
    for name in PAGES:
        if re.match(r"en/notebooks/\d\d_", name) and Path(name).stem not in MOVED:
            page = (SITE / name).read_text(encoding="utf-8")
            said = re.search(r"<strong>You need</strong>.*?</li>", page, re.S)[0]
            about = re.search(r'class="memlab-about">About ([\d–]+) minutes<', page)[1]
            assert re.search(rf"{about.split('–')[0]}\b.*?minutes", said, re.S), name
            assert "@misc{memlab-" in page and "download>Download the notebook<" in page
            assert f'data-page="{name[3:-5]}"' in page


def test_minutes_come_from_the_page():
    assert minutes("<p><strong>You need</strong> <a>weights</a>, 25 minutes.") == "25"
    assert minutes("<p><strong>You need</strong> PyTorch, 20 to 30 minutes.") == "20–30"
    assert minutes("<p>You need PyTorch. One case takes 20 minutes.") == "1"
    assert minutes("<p>" + "word " * 401) == "3"
    hidden = "<select><option>" + "model " * 999 + "</select><script>" + "word " * 999 + "</script>"
    assert minutes("<p>" + "word " * 401 + hidden) == "3"


def test_addresses_follow_from_the_repository():
    nowhere = Addresses()
    assert nowhere.notebook("a.ipynb", "en") == [] and not nowhere.site
    there = Addresses("https://github.com/Someone/memlab.git", "v1")
    assert there.site == "https://someone.github.io/memlab/"
    assert there.edit("book/intro.md").endswith("memlab/edit/v1/book/intro.md")
    services = [address for _, address, _ in there.notebook("notebooks/01_a.ipynb", "pt-BR")]
    assert services == [
        "https://mybinder.org/v2/gh/Someone/memlab/launch"
        "?urlpath=lab%2Ftree%2Fpt-BR%2Fnotebooks%2F01_a.ipynb",
        "https://colab.research.google.com/github/Someone/memlab/blob/launch/pt-BR/notebooks/01_a.ipynb",
    ]
    assert Addresses(site="https://example.org/x").site == "https://example.org/x/"
    with pytest.raises(memlab_page.ConfigError, match="'github.com/x' is no address"):
        Addresses("github.com/x")


def test_a_citation_says_what_the_file_says():
    cff = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    cited = citation(cff, "notebooks/05_activations", "5. Keep", "https://example.org/05.html")
    for part in (cff["version"], cff["title"], str(cff["date-released"])[:4], "example.org"):
        assert part in cited["text"] and part in cited["bibtex"]
    assert cited["bibtex"].startswith("@misc{memlab-05_activations,")
    assert cited["bibtex"].count("{") == cited["bibtex"].count("}")


def test_a_site_with_an_address_says_it_everywhere(tmp_path, monkeypatch):
    """A book of two pages, built with an address as the published one is."""
    for name in ("_config.yml", "CITATION.cff", "constraints.txt"):
        (tmp_path / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    for name in ("_ext", "_templates", "_static"):
        (tmp_path / name).symlink_to(ROOT / "book" / name)
    toc = {"format": "jb-book", "root": "intro", "chapters": [{"file": "notebooks/01_formats"}]}
    (tmp_path / "_toc.yml").write_text(yaml.safe_dump(toc))
    (tmp_path / "references.bib").touch()
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "intro.md").write_text('# A "title" & more\n\nThe first <i>words</i>.\n')
    cells = [{"cell_type": "markdown", "id": "a", "metadata": {}, "source": "# Weigh\n\nSo."}]
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "notebooks" / "01_formats.ipynb").write_text(book.json.dumps(notebook))
    monkeypatch.setenv("MEMLAB_REPOSITORY", "https://github.com/example/memlab")
    pages = book.jupyter_book(tmp_path, tmp_path / "out")
    home = "https://example.github.io/memlab/en/"
    intro = (pages / "intro.html").read_text(encoding="utf-8")
    chapter = (pages / "notebooks" / "01_formats.html").read_text(encoding="utf-8")
    assert f'<link rel="canonical" href="{home}intro.html"' in intro
    assert f'property="og:image" content="{home}_static/social.png"' in intro
    assert (pages / "_static" / "social.png").read_bytes()[:4] == b"\x89PNG"
    assert 'property="og:title" content="A &quot;title&quot; &amp; more"' in intro
    assert "edit/main/book/intro.md" in intro and "colab" not in intro
    for service in ("mybinder.org/v2/gh/example/memlab/launch", "colab.research", "blob/main/"):
        assert service in html.unescape(chapter)
    search = (pages / "search.html").read_text(encoding="utf-8")
    for page in (intro, chapter, search):
        assert page.count("<!--date-->working copy<!--/date-->") == 1
        assert page.count('"https://github.com/example/memlab/issues"') == 1 + (page is not search)
    wheel = f"{home.removesuffix('en/')}memlab-"
    assert f'pip install "memlab[notebooks] @ {wheel}' in html.unescape(chapter)
    assert "data-site" not in chapter and 'id="run"' not in intro
    places = re.findall("<loc>(.*?)</loc>", (pages / "sitemap.xml").read_text(encoding="utf-8"))
    assert places == [f"{home}intro.html", f"{home}notebooks/01_formats.html"]
    for page in (intro, chapter):
        assert Markup(page).refused == []
