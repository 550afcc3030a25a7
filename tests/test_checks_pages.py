"""Each claim's row leads to what judges it: the code of its check in the book, or its source."""

import html
import re
from pathlib import Path
from urllib.parse import urldefrag

import checks_pages
import pytest

from memlab.files import claims

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "_build" / "html"
LANGUAGES = sorted(path.parent.name for path in SITE.glob("*/checks"))
NOTES = claims.notes()
ROW = re.compile(r'<tr id="(S\d-\d+)">(.*?)</tr>', re.S)
LINK = re.compile(r'<a href="([^"]*)">([^<]*|<code>\w+</code>)</a></td>\Z')


def chapters(folder):
    """The pages of a built book that show claims, by note."""
    found = {}
    for path in sorted((folder / "notebooks").glob("*.html")):
        text = path.read_text(encoding="utf-8")
        if "memlab-claims" in text:
            found[f"{int(ROW.search(text)[1][1]):03}"] = path
    return found


def wrong(note, page):
    """The rows of a page that do not lead to what judges them, a line each."""
    rows = dict(ROW.findall(page.read_text(encoding="utf-8")))
    for one in claims.read(note):
        link = LINK.search(rows.get(one.id, ""))
        target = html.unescape(link[1]) if link else ""
        if one.check and not leads_to(one.check, page, target):
            yield f"{one.id}: {target!r} is not the code of {one.check}"
        elif one.source and target != one.link:
            yield f"{one.id}: {target!r} is not {one.link}"
        elif not one.check and not one.source and link:
            yield f"{one.id}: nothing judges it, and {target!r} is a link"


def leads_to(check, page, target):
    """Whether the target is a place in the site, and the check's code stands there."""
    path, anchor = urldefrag(target)
    there = page.parent / path
    if not anchor or not there.is_file():
        return False
    place = there.read_text(encoding="utf-8").partition(f'id="{anchor}"')[2]
    code = re.search(r"<pre>(.*?)</pre>", place, re.S)
    text = html.unescape(re.sub(r"<[^>]+>", "", code[1])) if code else ""
    return re.match(rf"(@.*\n)*(def {check}\(|{check} = )", text) is not None


@pytest.mark.skipif(not LANGUAGES, reason="no book: `make book` builds it")
@pytest.mark.parametrize("language", LANGUAGES)
def test_each_row_of_the_tables_leads_to_what_judges_it(language):
    pages = chapters(SITE / language)
    assert list(pages) == NOTES
    assert [line for note, page in pages.items() for line in wrong(note, page)] == []


def test_a_row_that_leads_nowhere_is_seen(tmp_path):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "checks").mkdir()
    page = tmp_path / "notebooks" / "25.html"
    table = checks_pages.linked(claims.Claims(claims.read("002"))._repr_html_())
    page.write_text(table, encoding="utf-8")
    checked = [one for one in claims.read("002") if one.check]
    assert len(list(wrong("002", page))) == len(checked)  # the sources are there, no code is
    (tmp_path / "checks" / "note_002.html").write_text(
        '<i id="check-002-in-int8"></i><pre><b>def</b> in_int8(claim):</pre>'
        '<i id="check-002-bytes-each"></i><pre>def another(claim):</pre>'
    )
    assert len(list(wrong("002", page))) == len(checked) - 1
    page.write_text(table.replace("https://", "http://"))
    assert sum("https" in line for line in wrong("002", page)) == 28


@pytest.mark.parametrize("note", NOTES)
def test_a_page_shows_its_whole_file_and_each_check_once(note):
    file = ROOT / checks_pages.CHECKS / f"note_{note}.py"
    checks = {one.check for one in claims.read(note) if one.check}
    lines = file.read_text(encoding="utf-8").splitlines()
    shown, names = [], []
    for name, first, last in checks_pages.pieces("\n".join(lines), checks):
        names += [name] * bool(name)
        shown += lines[first - 1 : last]
    assert list(filter(str.strip, shown)) == list(filter(str.strip, lines))
    assert sorted(names) == sorted(checks)
    text = checks_pages.page(ROOT, file)
    judged = re.findall(r'#(S\d-\d+)">', text)
    assert sorted(judged) == sorted(one.id for one in claims.read(note) if one.check)


def test_a_check_without_code_stops_the_build():
    with pytest.raises(ValueError, match="no function for the checks gone, lost"):
        checks_pages.pieces("def there(): ...\n", {"there", "lost", "gone"})
