"""The built book in its other languages: each page beside the same one, found, and its own."""

import html
import re
from functools import cache

import check
import interface
import pytest
import sources
from test_pages import OTHERS, ROOT, SITE, Watched, browser, roots  # noqa: F401
from test_translated_chapters import LOANS, NAMES, OWN, WORD, WRITTEN, english_number, printed, read

LANGUAGES = sorted({name.split("/")[0] for name in OTHERS})
# Text that a reader sees, without code, formulas and what only a program reads.
HIDDEN = re.compile(r"<(script|style|pre|code|math|svg|head)\b.*?</\1>", re.S)
# Code and what a terminal prints, PyTorch's messages above all; cells print in a kind of their own,
# and the page of what did not save memory repeats it as text.
CODE = r'<div class="highlight-(?!myst-ansi).*?</pre>'
NO_TEXT = r"<(script|style|code|math|head|samp|q)\b.*?</\1>"
# How the English lines begin that are BibTeX's, or the name of a device in a record.
THEIRS = ("author = ", "howpublished = ", "CPU, x86_64, ")
QUOTED = re.compile(r"<(samp|q)\b.*?</\1>", re.S)
FORMULA = re.compile(r"\\\(.*?\\\)|\\\[.*?\\\]", re.S)
INSIDE = re.compile(r"</?(?:em|strong|a|span|sup|sub)\b[^>]*>")  # what parts no words
PAPER = r"\b\d{4}\.\d{5}\b"  # as arXiv names them
# Words of the interface that are also words of some page, or the same in a language.
SHARED = {"memlab", "Main", "Page", "Home", "Copy", "Light", "Dark"}
CHINESE = (
    "記憶體 最佳化器 梯度 活化值 快取 配置器 權重 位元組 峰值 序列長度 前向傳播 量化 憶".split()
)

pytestmark = pytest.mark.skipif(not OTHERS, reason="no other language: `make book` builds them")


def shown(name):
    page = HIDDEN.sub(" ", (SITE / name).read_text(encoding="utf-8"))
    return [" ".join(html.unescape(t).split()) for t in re.findall(r">([^<>]+)<", page)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_page_stands_in_every_language_and_leads_to_the_others(language):
    english = {path.relative_to(SITE / "en") for path in (SITE / "en").rglob("*.html")}
    assert english == {
        path.relative_to(SITE / language) for path in (SITE / language).rglob("*.html")
    }
    for name in (name for name in OTHERS if name.startswith(f"{language}/")):
        page = (SITE / name).read_text(encoding="utf-8")
        assert f'<html lang="{language}"' in page, name
        same = name.split("/", 1)[1]
        for other in ("en", *LANGUAGES):
            up = "../" * same.count("/") or "./"
            assert f'<a href="{up}../{other}/{same}" lang="{other}"' in page, name


@pytest.mark.parametrize("name", OTHERS)
def test_no_word_around_the_text_is_english(name):
    words = {word for word in interface.WORDS if "{" not in word} - SHARED
    own = set(check.catalogue.translations(name.split("/")[0], "interface").values())
    assert not (words - own) & set(shown(name))


@pytest.mark.parametrize("name", [x for x in OTHERS if x.split("/")[0] in WRITTEN])
def test_no_number_of_a_page_is_in_english_form(name):
    if not whole(name):
        pytest.skip("a part of it is English, as it says")
    page = QUOTED.sub(" ", (SITE / name).read_text(encoding="utf-8"))
    page = INSIDE.sub("", HIDDEN.sub(" ", FORMULA.sub("", page)))
    texts = [" ".join(html.unescape(t).split()) for t in re.findall(r">([^<>]+)<", page)]
    found = [english_number(re.sub(PAPER, "", text)) for text in texts]
    assert [each for each in found if each] == []


def lines(name):
    """The lines of text that a page shows: words, tables, pictures, printed text; no code."""
    code = CODE.replace("ansi", "ansi|text") if name.endswith("no-gain.html") else CODE
    page = (SITE / name).read_text(encoding="utf-8")
    page = re.sub(f"{NO_TEXT}|{code}|{FORMULA.pattern}", " ", page, flags=re.S)
    texts = re.sub(r"<[^>]*>", "\n", INSIDE.sub("", page)).splitlines()
    return {" ".join(html.unescape(text).split()) for text in texts}


def others(chapter):
    """What a chapter prints that is said in English alone, by the cells that test_staged names."""
    cells = OWN.get(chapter, {})
    path = ROOT / "notebooks" / f"{chapter}.ipynb"
    named = {text for where, text in NAMES if where == chapter}
    if not cells:
        return named
    texts = [line for cell in read(path) if cell["id"] in cells for line in printed(cell)]
    return named | {" ".join(text.split()) for text in texts}


READABLE = [x for x in OTHERS if not re.search(r"/references\.|/checks/", x)]  # titles, and code


@cache
def whole(name):
    """Whether no part of a page is English still; where one is, the page says so."""
    language, stem = name.split("/")[0], name.split("/")[-1].removesuffix(".html")
    return stem not in sources.names() or not check.marked(language, stem)


@pytest.mark.parametrize("name", READABLE)
def test_no_line_of_a_page_is_english(name):
    if not whole(name):
        pytest.skip("a part of it is English, as it says")
    same = lines(name) & lines(f"en/{name.split('/', 1)[1]}")
    same -= others(name.split("/")[-1].removesuffix(".html"))
    left = [text for text in sorted(same) if not text.startswith(THEIRS)]
    assert [text for text in left if len(set(WORD.findall(text)) - LOANS) > 2] == []


@pytest.mark.parametrize("name", [name for name in OTHERS if name.startswith("zh-TW/")])
def test_no_page_of_taiwan_has_a_simplified_character(name):
    assert not check.simplified("".join(shown(name)))


ABOUT = re.compile(r'class="memlab-about">\D*([\d–]+)')


@pytest.mark.parametrize("name", [name for name in OTHERS if "/notebooks/" in name])
def test_a_chapter_says_one_number_of_minutes_in_all_languages(name):
    english = (SITE / "en" / name.split("/", 1)[1]).read_text(encoding="utf-8")
    here = (SITE / name).read_text(encoding="utf-8")
    assert ABOUT.findall(here) == ABOUT.findall(english)


@pytest.mark.sample(2)
@pytest.mark.skipif("zh-TW" not in LANGUAGES, reason="no Chinese pages")
@pytest.mark.parametrize("name", ["accuracy", "posted", "notebooks/34_missing_gigabytes"])
def test_no_column_is_one_ideograph_wide(browser, roots, name):  # noqa: F811
    narrow = """() => [...document.querySelectorAll(".bd-article :is(th, td)")]
        .filter((cell) => /[\u4e00-\u9fff]{3}/.test(cell.innerText) && cell.clientWidth)
        .filter((cell) => cell.clientWidth < 3 * parseFloat(getComputedStyle(cell).fontSize))
        .map((cell) => cell.innerText)"""
    with Watched(browser, roots["http"], viewport={"width": 390, "height": 800}) as watched:
        watched.page.goto(roots["http"] + f"zh-TW/{name}.html")
        assert watched.page.evaluate(narrow) == []


@pytest.mark.skipif("zh-TW" not in LANGUAGES, reason="no Chinese pages")
def test_chinese_is_found(browser, roots):  # noqa: F811
    with Watched(browser, roots["http"]) as watched:
        for query in CHINESE:
            watched.page.goto(roots["http"] + f"zh-TW/search.html?q={query}")
            watched.page.locator("ul.search li").first.wait_for()
            assert watched.wrong == [], query


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("asked", "language"),
    [("zh-TW", "zh-TW"), ("zh-HK", "zh-TW"), ("pt-PT", "pt-BR"), ("de-DE", "en"), ("en-GB", "en")],
)
def test_the_root_leads_to_the_reader_s_language(browser, roots, asked, language):  # noqa: F811
    if language not in ("en", *LANGUAGES):
        pytest.skip(f"no pages in {language}")
    with Watched(browser, roots["http"], locale=asked) as watched:
        watched.page.goto(roots["http"])
        watched.page.wait_for_url(f"**/{language}/intro.html", wait_until="load")
        assert watched.wrong == []


def test_the_switch_leads_to_the_same_page(browser, roots):  # noqa: F811
    with Watched(browser, roots["http"]) as watched:
        watched.page.goto(roots["http"] + "en/notebooks/05_activations.html")
        watched.page.locator(".memlab-languages summary").click()
        watched.page.locator(f'.memlab-languages a[lang="{LANGUAGES[0]}"]').click()
        watched.page.wait_for_url(f"**/{LANGUAGES[0]}/notebooks/05_activations.html")
        assert watched.wrong == []


# Which of its sections is at the top of the window: its place among all.
AT_TOP = """() => [...document.querySelectorAll(".bd-article section")]
    .findLastIndex((one) => one.getBoundingClientRect().top < 120)"""


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_switch_leads_to_the_same_section(browser, roots, language):  # noqa: F811
    """An anchor is made of its heading's words: that of one language is none in another."""
    name = "notebooks/07_step.html#the-peak-falls-to-the-next-phase"
    with Watched(browser, roots["http"]) as watched:
        page = watched.page
        page.goto(f"{roots['http']}en/{name}")
        before = page.evaluate(AT_TOP)
        assert before > 3
        for other in (language, "en"):
            page.locator(".memlab-languages summary").click()
            page.locator(f'.memlab-languages a[lang="{other}"]').click()
            page.wait_for_url(f"**/{other}/notebooks/07_step.html#*", wait_until="load")
            page.wait_for_timeout(200)
            assert page.evaluate(AT_TOP) == before, page.url
        assert page.url.endswith(f"en/{name}") and watched.wrong == []
