"""The built book in a real browser: nothing leaves the site, nothing fails, nothing overflows."""

import gzip
import json
import re
import shutil
import threading
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urldefrag, urlsplit

import drawings
import pytest
from depth import few
from landing import MOVED

from memlab.files import claims
from memlab.page.controls import checked, first

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "_build" / "html"
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
PAGES = sorted(
    path.relative_to(SITE).as_posix()
    for path in SITE.rglob("*.html")
    if not {"_static", "_sources"} & set(path.parts)
)
LEADING = [name for name in PAGES if 'http-equiv="refresh"' in (SITE / name).read_text().lower()]
READ = [name for name in PAGES if name not in LEADING]
ENGLISH = [name for name in READ if name.startswith("en/")]
OTHERS = [name for name in READ if name not in ENGLISH]  # the same pages, in other words
SAMPLE = [name for name in OTHERS if re.search(r"/(intro|calculator|05_\w+|27_\w+)\.html", name)]
# A folder gives two chapters and one note as it gives the others; the links of all are looked at.
ALIKE = re.compile(r"notebooks/(?!05|27)|checks/note_00[1-9]")
FOLDER = [
    pytest.param("file", name, marks=[pytest.mark.deep] if ALIKE.search(name) else [])
    for name in ENGLISH + SAMPLE
]
# Translated pages have the structure and the styles of the English ones: some are opened.
TRANSLATED = [
    pytest.param("http", name, marks=pytest.mark.sample(21))
    for name in OTHERS
    if name not in SAMPLE
]
# Each English page is opened, measured and has its contrast looked at; axe takes longest.
BY_AXE = {*few(21, ENGLISH), *SAMPLE}
WIDTHS = (390, 820, 1440)
MODES = ("light", "dark")
MOST = 700_000  # bytes, compressed, that a first visit to a page may take
BROWSERS = ("google-chrome", "google-chrome-stable", "chromium", "chromium-browser")
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # nothing gets out, whatever asks
)

pytestmark = pytest.mark.skipif(not PAGES, reason="no book: `make book` builds it")


@pytest.fixture(scope="module")
def browser():
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(QUIET))
        yield browser
        browser.close()


class Silent(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def roots():
    """The site as a server gives it and as a folder gives it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=SITE))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield {"http": f"http://127.0.0.1:{server.server_port}/", "file": f"{SITE.as_uri()}/"}
    server.shutdown()
    server.server_close()


class Watched:
    """A page that keeps a list of what it asked for and of all that goes wrong."""

    def __init__(self, browser, root, **options):
        self.root, self.wrong, self.asked = root, [], set()
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.page.on("request", self.request)
        self.page.on("pageerror", lambda error: self.wrong.append(f"script: {error}"))
        self.page.on("requestfailed", self.failed)
        self.page.on("response", self.response)
        self.page.on("console", self.console)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.context.close()

    def request(self, request):
        if request.url.startswith(self.root):
            self.asked.add(request.url)
        elif not request.url.startswith(("data:", "blob:", "about:")):
            self.wrong.append(f"leaves the site: {request.url}")

    def failed(self, request):
        if request.failure != "net::ERR_ABORTED":  # what a page had asked for when another followed
            self.wrong.append(f"failed: {request.url} ({request.failure})")

    def response(self, response):
        if response.status >= 400:
            self.wrong.append(f"{response.status}: {response.url}")

    def console(self, message):
        if message.type in ("error", "warning"):
            self.wrong.append(f"console: {message.text}")


# Formulas: each is MathML with a size (a folded one has none yet), and no TeX is left in the text.
FORMULAS = """() => {
    const wrong = [];
    for (const box of document.querySelectorAll('.math')) {
        const math = box.querySelector('math');
        if (!math) wrong.push('not drawn: ' + box.textContent);
        else if (math.checkVisibility() && math.getBoundingClientRect().height < 4)
            wrong.push('empty: ' + box.textContent);
    }
    const article = document.querySelector('article')?.cloneNode(true);
    article?.querySelectorAll('pre, code').forEach(code => code.remove());
    if (/\\$\\$|\\\\(frac|begin|sum)/.test(article?.textContent)) wrong.push('TeX in the text');
    return wrong;
}"""

# Images: each has loaded and says in words what it shows; without words the builder
# writes the file's name.
IMAGES = r"""() => [...document.images].filter(image =>
    !image.alt.trim() || /\.(svg|png|jpe?g)$/.test(image.alt) ||
    (image.complete && !image.naturalWidth)
).map(image => 'image: ' + image.src + ' alt=' + image.alt)"""


@pytest.fixture(scope="module")
def windows(browser, roots):
    """One window a scheme, used for all pages: opening one takes longer than a page."""
    quiet = {"reduced_motion": "reduce"}  # a colour half-way to the other mode is nobody's choice
    with (
        Watched(browser, roots["http"], **quiet) as http,
        Watched(browser, roots["file"], **quiet) as file,
    ):
        if AXE.exists():
            http.context.add_init_script(AXE.read_text(encoding="utf-8"))
        yield {"http": http, "file": file}


@pytest.mark.parametrize(
    ("scheme", "name"),
    [("http", name) for name in ENGLISH + SAMPLE] + TRANSLATED + FOLDER,
)
def test_page(windows, shades, roots, name, scheme):
    """Loads once; a folder and another language have the styles of the English site."""
    watched = windows[scheme]
    page, whole = watched.page, scheme == "http" and name in ENGLISH + SAMPLE
    page.emulate_media(color_scheme="light")
    page.goto("about:blank")
    watched.wrong.clear()
    watched.asked.clear()
    page.goto(roots[scheme] + name, wait_until="load")
    for width in WIDTHS if whole else WIDTHS[:1]:
        page.set_viewport_size({"width": width, "height": 800})
        wide = page.evaluate("document.documentElement.scrollWidth")
        if wide > width:
            watched.wrong.append(f"{wide} px wide in a window of {width}")
        if whole and width == WIDTHS[0]:
            watched.wrong += page.evaluate(drawings.NARROW, drawings.LEAST)
    watched.wrong += page.evaluate(FORMULAS)
    watched.wrong += page.evaluate(IMAGES)
    wrong = [*watched.wrong]
    watched.wrong.clear()
    if whole:
        for mode in MODES:
            page.emulate_media(color_scheme=mode)
            page.wait_for_selector(f"html[data-theme={mode}]")
            wrong += watched.wrong + page.evaluate(drawings.CONTRAST)
            if AXE.exists() and name in BY_AXE:
                # What stands around the article is the same on every page.
                part = [] if name in SAMPLE or "05_" in name else AROUND
                wrong += violations(page, mode, shades[mode], part)
            watched.wrong.clear()  # of axe's own styles, which a page's policy forbids
    assert wrong == []
    assert weight(watched.asked, roots[scheme]) <= MOST


AROUND = [".bd-sidebar-primary", ".bd-header", ".bd-footer", ".highlight pre"]
COLOURS = ("color-contrast", "link-in-text-block")

# Marks one element for each shade that no page had before: what is written, on what ground, how
# large, and by which classes. Contrast is the slowest rule of all, and it depends on these.
SHADES = """([seen, without]) => {
    const known = new Set(seen), fresh = [], ground = new Map([[null, '']]);
    const under = element => {
        if (!ground.has(element)) {
            const style = getComputedStyle(element), own = style.backgroundColor;
            const clear = own === 'rgba(0, 0, 0, 0)' && style.opacity === '1';
            const below = under(element.parentElement);
            ground.set(element, clear ? below : own + style.opacity + below);
        }
        return ground.get(element);
    };
    for (const element of document.querySelectorAll('body *')) {
        const text = [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
        if (!text || without && element.closest(without) || !element.checkVisibility()) continue;
        const style = getComputedStyle(element);
        const shade = [element.tagName, element.className, element.parentElement.className,
            style.color, style.fontSize, style.fontWeight, style.textDecorationLine,
            under(element)].join('|');
        if (known.has(shade)) continue;
        known.add(shade);
        fresh.push(shade);
        element.dataset.fresh = '';
    }
    return fresh;
}"""


@pytest.fixture(scope="module")
def shades():
    """The shades that were looked at, by mode."""
    return {mode: [] for mode in MODES}


def violations(page, mode, seen, without):
    """What axe finds: all rules but those of colours in light, and each new shade once a mode."""
    fresh = page.evaluate(SHADES, [seen, ", ".join(without)])
    seen += fresh
    asked = []
    if mode == "light":
        off = {"rules": {rule: {"enabled": False} for rule in COLOURS}}
        asked.append([{"include": [["html"]], "exclude": [[part] for part in without]}, off])
    if fresh:
        asked.append([{"include": [["[data-fresh]"]]}, {"runOnly": list(COLOURS)}])
    found = []
    for part, options in asked:
        options |= {"resultTypes": ["violations"], "selectors": False}
        run = "asked => axe.run(...asked).then(found => found.violations)"
        for rule in page.evaluate(run, [part, options]):
            places = [node["html"][:120] for node in rule["nodes"][:3]]
            found.append(f"{mode}: {rule['id']} ({rule['impact']}): {rule['help']}: {places}")
    page.evaluate(
        "document.querySelectorAll('[data-fresh]').forEach(one => { delete one.dataset.fresh; })"
    )
    return found


@pytest.mark.skipif(not AXE.exists(), reason="no node package axe-core: `npm ci` brings it")
@pytest.mark.parametrize("mode", MODES)
def test_axe_sees_what_is_wrong(windows, shades, roots, mode):
    page = windows["http"].page
    page.emulate_media(color_scheme=mode)
    page.goto(roots["http"] + "en/intro.html")
    page.wait_for_selector(f"html[data-theme={mode}]")
    shade = list(shades[mode])
    violations(page, mode, shade, [])
    page.evaluate(
        "document.querySelector('article').innerHTML += '<p class=x>Some words</p><img src=x>'"
    )
    page.evaluate("document.querySelector('.x').style.color = '#8888'")
    found = "\n".join(violations(page, mode, shade, []))
    assert "color-contrast" in found and "Some words" in found
    assert ("image-alt" in found) == (mode == "light")
    assert violations(page, "dark", shade, []) == [], "each shade is looked at once"


def weight(asked, root):
    """Bytes of these files as a server that compresses would send them."""
    files = {SITE / unquote(urlsplit(url.removeprefix(root)).path) for url in asked}
    files = {file for file in files if file.is_file()}  # data: and blob: are none
    assert len(files) > 5, "a page that asks for nothing was not watched"
    return sum(
        len(data if file.suffix == ".png" else gzip.compress(data))
        for file in files
        for data in [file.read_bytes()]
    )


def test_the_watch_sees_what_is_wrong(browser, roots):
    with Watched(browser, roots["http"], bypass_csp=True) as watched:
        watched.page.goto(roots["http"] + "en/intro.html")
        watched.page.set_content(
            "<article>$$x$$<img src='missing.png'><script src='https://example.org/x.js'></script>"
            "<script>console.error('seen')</script></article>",
            wait_until="load",
        )
        watched.wrong += watched.page.evaluate(FORMULAS) + watched.page.evaluate(IMAGES)
    seen = "\n".join(watched.wrong)
    for sign in ("leaves the site: https://example.org", "404", "seen", "TeX", "alt="):
        assert sign in seen


@pytest.mark.sample(4)
@pytest.mark.parametrize("scheme", ["http", "file"])
@pytest.mark.parametrize("name", LEADING)
def test_the_way_in_needs_no_scripts(browser, roots, name, scheme):
    with Watched(browser, roots[scheme], java_script_enabled=False) as watched:
        watched.page.goto(roots[scheme] + name)
        language = name.split("/")[0] if "/" in name else "en"
        old = Path(name).stem
        first = f"notebooks/{MOVED[old]}_{old[3:]}.html" if old in MOVED else "intro.html"
        watched.page.wait_for_url(f"**/{language}/{first}", wait_until="load")
        assert watched.page.locator("h1").first.inner_text()
        # Scripts that a page preloads fail here, as they should; nothing else may.
        assert [line for line in watched.wrong if ".js" not in line] == []


@pytest.mark.sample(5)
@pytest.mark.parametrize("scheme", ["http", "file"])
@pytest.mark.parametrize(
    ("query", "page"),
    [
        ("optimizer", "04_optimizer"),
        ("kv cache", "11_kv_cache"),
        ("checkpointing", "14_checkpointing"),
        ("caching allocator", "08_allocator"),
        ("notation", "notation"),
    ],
)
def test_search_finds(windows, roots, scheme, query, page):
    watched = windows[scheme]
    watched.wrong.clear()
    watched.page.goto(roots[scheme] + f"en/search.html?q={query}")
    watched.page.get_by_text("Search finished").wait_for()
    found = watched.page.locator("ul.search li > a").evaluate_all("all => all.map(a => a.href)")
    assert any(page in link for link in found[:5]), found[:5]
    watched.page.wait_for_load_state("networkidle")
    assert watched.wrong == []


def test_the_policy_stops_what_a_page_was_given(browser, roots):
    """What somebody smuggles into a page does not run: no script, no handler, no other place."""
    with Watched(browser, roots["http"]) as watched:
        watched.page.goto(roots["http"] + "en/intro.html")
        watched.page.evaluate(
            """() => {
                const box = document.createElement('div');
                box.innerHTML = "<img src='https://example.org/x.png'><b onclick='ran = 1'>x</b>";
                document.body.append(box);
                box.querySelector('b').click();
                const script = document.createElement('script');
                script.textContent = 'ran = 2';
                document.body.append(script);
            }"""
        )
        assert watched.page.evaluate("typeof ran") == "undefined"
    seen = "\n".join(watched.wrong)
    assert seen.count("Content Security Policy") == 3
    assert "failed: https://example.org/x.png (csp)" in seen  # refused before it was sent


def test_a_mark_is_kept_and_shown(browser, roots):
    chapter = "en/notebooks/05_activations.html"
    with Watched(browser, roots["http"]) as watched:
        watched.page.goto(roots["http"] + chapter)
        mark = watched.page.locator(".memlab-mark")
        mark.click()
        assert mark.get_attribute("aria-pressed") == "true"
        assert watched.page.locator(".memlab-progress").inner_text().startswith("1 of ")
        watched.page.goto(roots["http"] + "en/anatomy.html")
        ticked = watched.page.locator(".bd-docs-nav a:has(.memlab-tick)")
        assert ticked.evaluate_all("all => all.map(a => a.href)") == [roots["http"] + chapter]
        # What somebody else left in the same place of the browser does no harm.
        for left in ("{", "null", "7", '{"a": 1}', '["<img src=x onerror=1>", 3]'):
            watched.page.evaluate("left => localStorage.setItem('memlab.read', left)", left)
            watched.page.goto(roots["http"] + chapter)
            assert watched.page.locator(".memlab-tick").count() == 0
        mark.click()
        assert mark.get_attribute("aria-pressed") == "true"
        assert watched.wrong == []


def folded(chapter):
    """How many cells of a chapter have their code folded away and their output shown.

    A cell for a GPU that has printed nothing is not on the page, which tools/book.py makes.
    """
    text = (ROOT / "notebooks" / f"{chapter}.ipynb").read_text(encoding="utf-8")
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    tagged = [(set(cell["metadata"].get("tags", ())), cell["outputs"]) for cell in cells]
    return sum("hide-input" in tags and ("device" not in tags or bool(o)) for tags, o in tagged)


def test_a_page_works_without_scripts(browser, roots):
    chapter = "en/notebooks/05_activations.html"
    with Watched(browser, roots["http"], java_script_enabled=False) as watched:
        watched.page.goto(roots["http"] + chapter)
        assert watched.page.locator(".pst-js-only:visible").count() == 0
        cells = watched.page.locator("article .tag_hide-input > .cell_input:visible")
        assert cells.count() == folded("05_activations")
        hidden = watched.page.locator("article .tag_hide-cell details.above-input").first
        assert not hidden.locator("pre").first.is_visible()
        hidden.locator("summary").click()
        assert hidden.locator("pre").first.is_visible()
        watched.page.locator(".memlab-menu summary").first.click()
        watched.page.locator(".memlab-menu a", has_text="Cite").click()
        assert watched.page.locator("#cite").is_visible()
        assert watched.wrong == []


@pytest.mark.sample(1)
@pytest.mark.parametrize("language", sorted({name.split("/")[0] for name in READ}))
def test_one_button_shows_the_code_that_is_folded_away(browser, roots, language):
    chapters = [f"{language}/notebooks/{name}.html" for name in ("05_activations", "07_step")]
    with Watched(browser, roots["http"]) as watched:
        page = watched.page
        page.goto(roots["http"] + chapters[0])
        cells, shown = page.locator("article .tag_hide-input > .cell_input"), ":visible"
        button = page.locator(".memlab-code")
        assert cells.count() == folded("05_activations") > 0
        assert page.locator("article .tag_hide-input summary").count() == 0
        figures = page.locator("article .tag_hide-input > .cell_output")
        assert cells.locator(shown).count() == 0 and figures.first.is_visible()
        said = button.inner_text()
        button.focus()
        page.keyboard.press("Enter")
        assert all(cells.nth(i).is_visible() for i in range(cells.count()))
        assert button.inner_text() not in ("", said)
        assert not page.locator(".tag_solution details[open]").count(), "no solution is given away"
        page.goto(roots["http"] + chapters[1])  # the next page remembers
        assert cells.first.is_visible()
        page.keyboard.press("Tab")
        button.press("Space")
        assert cells.first.is_hidden() and button.inner_text() == said
        page.emulate_media(media="print")
        assert cells.first.is_visible()
        page.emulate_media(media="screen")
        page.reload()
        assert cells.first.is_hidden()
        page.evaluate("localStorage.setItem('memlab.code', '<img src=x>')")
        page.reload()
        assert cells.first.is_hidden()
        page.goto(f"{roots['http']}{language}/accuracy.html")
        assert button.count() == 0, "a page without such code has no button for it"
        assert watched.wrong == []


def test_the_name_of_the_book_has_its_mark(windows, roots):
    page = windows["http"].page
    page.goto(roots["http"] + "en/intro.html")
    drawn = "getComputedStyle(document.querySelector('.logo__title'), '::before').backgroundImage"
    icon = page.get_attribute("link[rel~=icon]", "href")
    assert page.evaluate(drawn).endswith(f'{icon}")') and icon.endswith("favicon.svg")
    assert (SITE / "en" / icon).stat().st_size < 700


def test_the_menu_closes_by_escape_and_downloads_the_notebook(browser, roots):
    with Watched(browser, roots["http"]) as watched:
        watched.page.goto(roots["http"] + "en/notebooks/05_activations.html")
        menu = watched.page.locator(".memlab-menu").first
        menu.locator("summary").press("Enter")
        with watched.page.expect_download() as download:
            menu.locator("a[download]").click()
        assert download.value.suggested_filename == "05_activations.ipynb"
        menu.locator("summary").press("Enter")
        menu.locator("summary").press("Escape")
        assert menu.get_attribute("open") is None
        assert watched.wrong == []


def test_claims_are_drawn_filtered_and_linked(browser, roots):
    with Watched(browser, roots["http"], viewport={"width": 390, "height": 800}) as watched:
        page = watched.page
        page.goto(roots["http"] + "en/notebooks/33_free_memory.html")
        box = page.locator(".memlab-claims")
        rows, shown = box.locator("details tbody tr"), box.locator("details tbody tr:visible")
        every = rows.count()
        assert every == len(claims.read("004")) and shown.count() == 0, "every fold is closed"
        field = box.locator("input[type=search]")
        field.fill("Factorized")
        found = shown.all_inner_texts()
        assert 1 < len(found) < every / 4 and all("factorized" in row.lower() for row in found)
        assert box.locator("details:visible").count() == box.locator("details[open]").count()
        field.fill("no claim has these words")
        assert box.locator("details:visible").count() == 0
        field.fill("")
        assert box.locator("details:visible").count() > 5 and shown.count() == 0
        page.goto(roots["http"] + "en/notebooks/33_free_memory.html#S4-61")
        page.locator("#S4-61").wait_for(state="visible")
        assert "FP8 training (half the memory of FP16)" in page.locator("#S4-61 q").inner_text()
        # One bar for all fates, and one for each figure that the note is about: none of no width.
        for mode in MODES:
            page.emulate_media(color_scheme=mode)
            bars = box.locator(".memlab-fates svg").evaluate_all(
                "all => all.map(bar => bar.getBoundingClientRect().width)"
            )
            assert len(bars) == 3 and bars[0] > 300 and min(bars) > 100
        assert watched.wrong == []


def test_an_address_that_is_no_encoded_text_stops_nothing(browser, roots):
    with Watched(browser, roots["http"]) as watched:
        page = watched.page
        page.goto(roots["http"] + "en/notebooks/33_free_memory.html#%")
        page.locator(".memlab-claims input[type=search]").wait_for()
        before = page.evaluate("document.documentElement.dataset.code")
        page.locator(".memlab-code").click()
        assert page.evaluate("document.documentElement.dataset.code") != before
        assert watched.wrong == []


@pytest.mark.parametrize("chapter", ["31_status_report", "33_free_memory"])
def test_claims_are_as_wide_as_a_phone(browser, roots, chapter):
    """A long path in a quote made its row wider than the page, whose words were cut."""
    with Watched(browser, roots["http"], viewport={"width": 390, "height": 800}) as watched:
        page = watched.page
        page.goto(roots["http"] + f"en/notebooks/{chapter}.html")
        folds = page.locator(".memlab-claims details")
        folds.evaluate_all("all => all.forEach(fold => { fold.open = true; })")
        wide = "all => all.filter(fold => fold.scrollWidth > fold.clientWidth).length"
        assert folds.count() > 5 and folds.evaluate_all(wide) == 0
        assert watched.wrong == []


def test_a_picture_fades_where_there_is_more_of_it(browser, roots):
    """At its end, and where all of it is seen, nothing fades."""
    edges = """box => ["before", "after"].map(
      edge => Number(getComputedStyle(box).getPropertyValue("--memlab-" + edge)))"""
    with Watched(browser, roots["http"], viewport={"width": 300, "height": 800}) as watched:
        page = watched.page
        page.goto(roots["http"] + "en/notebooks/30_predicted_28.html")
        box = page.locator(".memlab-figure").first
        assert box.evaluate("box => box.scrollWidth > box.clientWidth")
        assert box.evaluate(edges) == [1, 0]
        box.evaluate("box => { box.scrollLeft = box.scrollWidth; }")
        page.wait_for_timeout(200)
        assert box.evaluate(edges) == [0, 1]
        page.set_viewport_size({"width": 1200, "height": 800})
        page.reload()
        assert box.evaluate(edges) == [1, 1]
        assert watched.wrong == []


def test_the_cheat_sheet_prints_on_one_sheet_in_nine_points(browser, roots):
    with Watched(browser, roots["http"]) as watched:
        watched.page.goto(roots["http"] + "en/cheat-sheet.html")
        margin = dict.fromkeys(("top", "right", "bottom", "left"), "9mm")
        printed = watched.page.pdf(format="A4", margin=margin)
        watched.page.emulate_media(media="print")
        smallest = watched.page.evaluate(
            """() => {
              const each = [...document.querySelectorAll(".bd-article :is(p, td, th, a, code)")];
              return Math.min(...each.map((one) => parseFloat(getComputedStyle(one).fontSize)));
            }"""
        )
        around = watched.page.evaluate(
            """() => {
              const found = [];
              let one = document.querySelector(".bd-article");
              for (; one !== document.body; one = one.parentElement) {
                found.push(getComputedStyle(one).display);
              }
              return found;
            }"""
        )
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 1
    assert smallest >= 12  # pixels: 9 points
    assert set(around) == {"block"}  # a flex item could leave the paper unseen


# Of everything that scrolls on the screen: what reaches beyond the text's own width on paper.
BEYOND = """() => {
  const article = document.querySelector(".bd-article");
  const edge = article.getBoundingClientRect().right + 1;
  const wide = [...article.querySelectorAll("pre, table, .memlab-figure svg, .memlab-figure img")];
  const cut = wide.filter((one) => one.checkVisibility()
    && (one.getBoundingClientRect().right > edge || one.scrollWidth > one.clientWidth + 1));
  return [wide.length, cut.map((one) => one.outerHTML.slice(0, 80))];
}"""


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "name",
    [
        "en/intro",
        "en/calculator",
        "en/accuracy",
        "en/notebooks/07_step",
        "zh-TW/notebooks/05_activations",
    ],
)
def test_nothing_is_cut_at_the_edge_of_the_paper(browser, roots, name):
    """Paper does not scroll: a line of code that is longer than the sheet goes on in the next."""
    with Watched(browser, roots["http"]) as watched:
        page = watched.page
        page.set_viewport_size({"width": 703, "height": 1000})  # A4 less 12 mm on either side
        page.goto(roots["http"] + name + ".html")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")  # opens what is folded
        page.emulate_media(media="print")
        count, cut = page.evaluate(BEYOND)
    assert count and cut == []


class Links(HTMLParser):
    """The ids of a page, where it points, and what it loads by itself."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.targets, self.loaded = {""}, [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids |= {given[key] for key in ("id", "name") if given.get(key)}
        target = given.get("href") or given.get("src")
        if target:
            self.targets.append(target)
            if tag != "a" and given.get("rel") not in ("canonical", "alternate"):
                self.loaded.append(target)


def test_a_chapter_and_its_figures_have_the_number_of_the_file():
    chapters = [name for name in ENGLISH if re.match(r"en/notebooks/\d\d_", name)]
    assert chapters
    for name in chapters:
        page, number = (SITE / name).read_text(encoding="utf-8"), int(name[13:15])
        title = re.search(r'<h1><span class="section-number">(\d+)\.', page)
        assert title and int(title[1]) == number, name
        figures = re.findall(r'class="caption-number">Fig. ([\d.]+)', page)
        assert figures == [f"{number}.{i + 1}" for i in range(len(figures))], name


def usual(name, value):
    """A value of an address as the calculator's scripts read it."""
    return int(value) if isinstance(first().get(name), int) else value


def test_links_inside_the_site_lead_somewhere():
    pages = {name: Links((SITE / name).read_text(encoding="utf-8")) for name in PAGES}
    wrong = []
    for name, page in pages.items():
        wrong += [f"{name} loads {url}" for url in page.loaded if urlsplit(url).netloc]
        for target in page.targets:
            if urlsplit(target).scheme or urlsplit(target).netloc:
                continue
            path, anchor = urldefrag(target)
            path = unquote(urlsplit(path).path)
            file = (SITE / name).parent / path if path else SITE / name
            if not file.exists():
                wrong.append(f"{name} -> {target}")
            elif file.name == "calculator.html" and "=" in anchor:  # a question to it
                asked = {key: usual(key, value) for key, value in parse_qsl(anchor)}
                if not asked or checked(asked) != checked({}) | asked:
                    wrong.append(f"{name} -> {target}: no question of the calculator")
            elif anchor and file.suffix == ".html":
                there = pages.get(file.resolve().relative_to(SITE).as_posix())
                if there and unquote(anchor) not in there.ids:
                    wrong.append(f"{name} -> {target}: no such place in that page")
    assert wrong == []
