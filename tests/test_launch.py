"""One click to run: what a page offers with and without a repository, its foot, and the branch."""

import html
import json
import re
import shutil
import subprocess
from types import SimpleNamespace

import furnish
import jinja2
import launch
import pytest
import yaml
from packaging.requirements import Requirement
from test_package import ROOT
from test_pages import browser  # noqa: F401

pytest.importorskip("sphinx", reason="no book: Sphinx is not installed")
import memlab_foot  # noqa: E402
import memlab_install  # noqa: E402
import memlab_page  # noqa: E402

import book  # noqa: E402

HERE = "https://github.com/example/memlab"
CHAPTER = "notebooks/05_activations"
# Parts of the theme that the templates include.
THEIRS = dict.fromkeys(
    ("theme-switcher.html", "search-button.html", "toggle-secondary-sidebar.html"), ""
)


@pytest.fixture
def drawn(monkeypatch):
    """A page's menu, end and foot as HTML, drawn by the book's templates without a build."""
    templates = jinja2.FileSystemLoader(ROOT / "book" / "_templates")
    loader = jinja2.ChoiceLoader([jinja2.DictLoader(THEIRS), templates])
    environment = jinja2.Environment(loader=loader, autoescape=False)

    def draw(repository, pagename=CHAPTER, language="en", text=True):
        monkeypatch.setenv("MEMLAB_REPOSITORY", repository)
        up = "../" * pagename.count("/")
        config = SimpleNamespace(html_context={"repository": ""}, language=language)
        config.html_baseurl = ""
        docs = {CHAPTER, "intro", "status"}
        app = SimpleNamespace(srcdir=ROOT, config=config, env=SimpleNamespace(found_docs=docs))
        context = {
            "content_root": up or "./",
            "title": "Keep",
            "body": "<h1>Keep</h1><p>words</p>",
            "sourcename": f"{pagename}.ipynb",
            "page_source_suffix": ".ipynb" if "/" in pagename else ".md",
            "pathto": lambda name, resource=False: up + name + ("" if resource else ".html"),
            "pagename": pagename,
            "folder": language,
        }
        doctree = SimpleNamespace(findall=lambda kind: []) if text else None
        for extension in (memlab_page.surround, memlab_foot.stand):
            extension(app, pagename, "page.html", context, doctree)
        names = ("page-tools.html", "page-end.html", "version.html")
        return "\n".join(environment.get_template(name).render(context) for name in names)

    return draw


def links(page):
    """The address of each link of a page that is no comment, by its text."""
    shown = re.sub(r"<!--.*?-->", "", page, flags=re.S)
    return {
        text: html.unescape(at) for at, text in re.findall(r'<a href="(.*?)".*?>(.*?)</a>', shown)
    }


def commands(page):
    """The commands that run a page, and the mark of a place that a script fills in."""
    found = re.search(
        r'id="run".*?<pre(?: data-site="(.*?)")?><code>(.*?)</code></pre>', page, re.S
    )
    return html.unescape(found[2]).strip().splitlines(), found[1]


@pytest.mark.parametrize("language", ["en", "pt_BR"])
def test_with_a_repository_a_chapter_opens_elsewhere_with_its_cell(drawn, language):
    code = language.replace("_", "-")
    offered = links(drawn(HERE, language=language))
    place = f"/blob/{memlab_page.LAUNCH}/{code}/{CHAPTER}.ipynb"
    colab = "https://colab.research.google.com/github/example/memlab"
    assert offered["Open in Colab"] == colab + place
    assert f"/{memlab_page.LAUNCH}?urlpath=" in offered["Open in JupyterLab, on Binder"]
    assert offered["Ask a question"] == f"{HERE}/issues"
    lines, marked = commands(drawn(HERE, language=language))
    assert marked is None and "https://example.github.io/memlab/" in lines[0]


def test_without_one_it_says_in_three_lines_how_to_run_it_here(drawn):
    page = drawn("")
    assert not [at for at in links(page).values() if at.startswith("http")]
    assert "Ask a question" not in page and "Colab" not in page and "Binder" not in page
    lines, up = commands(page)
    assert up == "../../" and links(page)["Run it on your machine"] == "#run"
    install, fetch, run = (line.replace(memlab_foot.SITE, "https://x.org/") for line in lines)
    needed = Requirement(re.fullmatch('pip install "(.*)"', install)[1])
    assert needed.url == f"https://x.org/{memlab_install.wheel_of(ROOT)}"
    assert needed.name == "memlab" and needed.extras == {"notebooks"}
    assert fetch == f'curl -O "https://x.org/en/_sources/{CHAPTER}.ipynb"'
    assert run == "jupyter lab 05_activations.ipynb"


def test_a_page_of_text_runs_nothing_and_a_search_has_a_foot(drawn):
    assert 'id="run"' not in drawn(HERE, "intro")
    search = drawn(HERE, "search", text=False)
    assert "memlab-menu" not in search and "Tested with" in search


def test_the_foot_says_the_version_and_the_pins(drawn):
    foot = drawn("").split('<p class="memlab-version">')[1]
    version = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"]
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    assert f"memlab {version}<" in foot and "<!--date-->working copy<!--/date-->" in foot
    torch, trl = (re.search(rf"^{name}==(.*)$", pins, re.M)[1] for name in ("torch", "trl"))
    assert f"PyTorch {torch}, " in foot and f"TRL {trl}, " in foot
    with pytest.raises(ValueError, match="no version of bitsandbytes$"):
        memlab_foot.tested(re.sub("(?m)^bitsandbytes==.*\n", "", pins))


def test_the_pdf_is_linked_where_it_lies_and_nowhere_else(drawn):
    page = drawn("", language="pt_BR")
    assert "The book as PDF" not in links(page)
    there = furnish.furnished(page, "2026-11-29", True)
    assert links(there)["The book as PDF"] == "../../memlab-pt-BR.pdf"
    assert "· <!--date-->2026-11-29<!--/date--> ·" in " ".join(there.split())
    assert furnish.furnished(there, "2026-11-29", True) == there
    assert furnish.furnished(there, furnish.WORKING, False) == page


def test_what_is_furnished_stays_built(tmp_path, monkeypatch):
    monkeypatch.setattr(book, "BUILD", tmp_path)
    monkeypatch.setattr(book, "SITE", tmp_path / "html")
    stamps = {}
    for language in ("en", "pt-BR"):
        pages = book.SITE / language
        pages.mkdir(parents=True)
        page = "<!--date--><!--/date--><!--pdf <a>x</a> pdf-->"
        (pages / "intro.html").write_text(page, encoding="utf-8")
        stamps[language] = tmp_path / f"{language}.key"
        stamps[language].write_text(f"key {book.output_key(pages)}")
    stamps["pt-BR"].write_text("key of-a-page-that-was-lost")
    book.paper("en").touch()
    for date, said in (("2026-11-29", "2026-11-29"), (None, "working copy")):
        monkeypatch.setattr(furnish, "committed", lambda root, date=date: date)
        book.furnish_pages()
        page = (book.SITE / "en" / "intro.html").read_text(encoding="utf-8")
        assert page == f"<!--date-->{said}<!--/date--><!--pdf--><a>x</a><!--/pdf-->"
        assert stamps["en"].read_text() == f"key {book.output_key(book.SITE / 'en')}"
    assert "<!--pdf <a>" in (book.SITE / "pt-BR" / "intro.html").read_text(encoding="utf-8")
    assert stamps["pt-BR"].read_text() == "key of-a-page-that-was-lost"  # it is built again


@pytest.mark.skipif(shutil.which("git") is None, reason="no git")
def test_a_date_is_that_of_a_commit_without_changes(tmp_path):
    def git(*words):
        named = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *named, *words], cwd=tmp_path, check=True, capture_output=True)

    below = tmp_path / "below"
    below.mkdir()
    (below / "a").write_text("1")
    git("init")
    assert furnish.committed(tmp_path) is None  # nothing is committed yet
    git("add", "-A")
    git("commit", "-m", "a", "--date", "2001-01-01T00:00:00")
    day = subprocess.run(
        ["git", "log", "-1", "--format=%cs"], cwd=tmp_path, capture_output=True, encoding="utf-8"
    )
    assert furnish.committed(tmp_path) == day.stdout.strip() != "2001-01-01"
    assert furnish.committed(below) is None  # another project's commits
    (below / "a").write_text("2")
    assert furnish.committed(tmp_path) is None


def test_the_branch_holds_every_notebook_and_what_binder_installs(tmp_path):
    site = tmp_path / "site"
    for language in ("en", "pt-BR"):
        notebooks = site / language / "_sources" / "notebooks"
        notebooks.mkdir(parents=True)
        cells = [memlab_install.cell("x.whl")]
        (notebooks / "05_a.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
    with pytest.raises(SystemExit, match="No book with memlab-"):
        launch.lay_out(site, tmp_path / "none")
    assert not (tmp_path / "none").exists()
    name = launch.wheel.name()
    (site / name).write_bytes(b"wheel")
    assert launch.lay_out(site, tmp_path / "out") == 2
    files = {p.relative_to(tmp_path / "out").as_posix() for p in (tmp_path / "out").rglob("*.*")}
    assert files == {
        *(f"{language}/notebooks/05_a.ipynb" for language in ("en", "pt-BR")),
        name,
        "constraints.txt",
        "binder/requirements.txt",
        "binder/runtime.txt",
        "README.md",
    }
    needs = (tmp_path / "out" / "binder" / "requirements.txt").read_text(encoding="utf-8")
    assert needs == f"-c ../constraints.txt\n./{name}[notebooks]\n"


def test_the_workflow_publishes_what_the_buttons_open():
    text = (ROOT / ".github" / "workflows" / "pages.yml").read_text(encoding="utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    assert any("tools/launch.py" in step.get("run", "") for step in jobs["build"]["steps"])
    [push] = [step["run"] for step in jobs["launch"]["steps"] if "push" in step.get("run", "")]
    assert f"HEAD:{memlab_page.LAUNCH}" in push
    assert jobs["launch"]["permissions"] == {"contents": "write"}
    assert not any("checkout" in step.get("uses", "") for step in jobs["launch"]["steps"])


def test_the_commands_name_the_site_that_is_read(browser, drawn, tmp_path):  # noqa: F811
    page_file = tmp_path / "a site" / "en" / "notebooks" / "05_activations.html"
    page_file.parent.mkdir(parents=True)
    script = ROOT / "book" / "_static" / "memlab.js"
    text = drawn("").replace("<details", "<details open")
    page_file.write_text(f"<!doctype html><script src='{script.as_uri()}'></script>{text}", "utf-8")
    page = browser.new_page()
    page.goto(page_file.as_uri())
    install, fetch, _ = page.locator("#run pre").inner_text().strip().splitlines()
    root = (tmp_path / "a site").as_uri()
    assert install == f'pip install "memlab[notebooks] @ {root}/{memlab_install.wheel_of(ROOT)}"'
    assert fetch == f'curl -O "{root}/en/_sources/{CHAPTER}.ipynb"'
    page.close()


def test_a_menu_lies_whole_on_a_phone(browser, drawn, tmp_path):  # noqa: F811
    style = (ROOT / "book" / "_static" / "memlab.css").as_uri()
    head = f"<!doctype html><meta charset='utf-8'><link rel='stylesheet' href='{style}'>"
    bar = "<div style='position: sticky; padding-left: 80px'>"
    page_file = tmp_path / "a.html"
    page_file.write_text(f"{head}<style>body {{ margin: 0 }}</style>{bar}{drawn(HERE)}", "utf-8")
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto(page_file.as_uri())
    page.locator(".memlab-menu summary").first.click()
    box = page.locator(".memlab-menu > ul").first.bounding_box()
    page.close()
    assert box["x"] >= 0 and 300 < box["width"] <= 390 - box["x"]
