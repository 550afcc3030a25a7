"""Build the book: stage the sources of a language, build them, keep the result by content.

    python tools/book.py              build what changed, print the first page
    python tools/book.py --lang en    only these languages (all that the site offers otherwise)
    python tools/book.py --force      build although nothing changed

    _build/src/en/    what Jupyter Book reads: book/* at the top, notebooks/, _config.yml, _toc.yml
    _build/work/en/   where it works, and its log
    _build/html/en/   the finished pages; _build/html/index.html leads to them

A language is built again from nothing when any input changed: Sphinx never deletes a page that is
gone, and its own idea of what is unchanged does not know the settings, the figures and the tools.

A long file, because the steps of a build share their paths and are read one after another.
"""

import argparse
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import calculator
import checks_pages
import cpython
import exercise_fields
import furnish
import poster
import quizzes
import status
import typeface
import wheel
import yaml
from landing import ROBOTS, SITEMAPS, moved, not_found, way_in

sys.path.append(str(Path(__file__).resolve().parent / "i18n"))
import check  # noqa: E402
import interface  # noqa: E402
import lay  # noqa: E402
from sources import MESSAGES, NOWHERE  # noqa: E402
from sources import SITE as IN_SITE  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "_build"
SITE = BUILD / "html"
ENGLISH = "en"
# Folder of the site -> the language's own name. One is built as soon as its front page stands.
LANGUAGES = {ENGLISH: "English", "pt-BR": "Português (Brasil)", "zh-TW": "繁體中文"}
FIRST = "intro.html"

INPUTS = [
    "_config.yml",
    "_toc.yml",
    "CITATION.cff",
    "constraints.txt",
    "benchmarks/results.json",
    "benchmarks/waits.json",
    "book",
    "notebooks",
    "research",
    "tools",
    "tests/audit",
    "src/memlab/data/claims",
    "src/memlab/data/quizzes",
    "src/memlab/quizzes",
    "src/memlab/plot",
]
NEVER = shutil.ignore_patterns(".*", "__pycache__", "locale")
TRANSLATIONS, DOCTOOLS = "_static/translations.js", "_static/doctools.js"
WIDGET = "application/vnd.jupyter.widget-view+json"


def folder(language):
    """A language as its catalogues and Sphinx name it: pt-BR is pt_BR."""
    return language.replace("-", "_")


def offered():
    """The languages that the site has: English, and those with a front page, title and buttons."""
    first = ("intro", "site", "interface")
    others = [x for x in LANGUAGES if x != ENGLISH]
    return [ENGLISH] + [x for x in others if all(check.complete(x, name) for name in first)]


def files_below(*paths):
    """Every file below these paths, sorted, without hidden folders and Python's caches."""
    for path in paths:
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            parts = file.relative_to(path).parts
            if file.is_file() and not any(p[0] == "." or p == "__pycache__" for p in parts):
                yield file


def inputs_key(language):
    """A hash over everything that the pages of this language are made from."""
    address = os.environ.get("MEMLAB_REPOSITORY", "")
    key = hashlib.sha256(f"{offered()} {language} {platform.python_version()} {address}".encode())
    for file in files_below(*(ROOT / name for name in INPUTS)):
        mine = folder(language) in file.parts or file.parent.name == "locale"
        if "locale" in file.parts and not mine:
            continue  # another language's words
        content = file.read_bytes()
        key.update(f"\n{file.relative_to(ROOT).as_posix()} {len(content)}\n".encode())
        key.update(content)
    key.update((calculator.key() + exercise_fields.key() + typeface.key()).encode())
    for text in filled_pages().values():  # they hold dates, which no file holds
        key.update(text.encode())
    return key.hexdigest()


def output_key(pages):
    """A hash over names and sizes, so that a page lost or cut short counts as a change too."""
    names = [f"{file.relative_to(pages)} {file.stat().st_size}" for file in files_below(pages)]
    return hashlib.sha256("\n".join(names).encode()).hexdigest()


def filled_pages():
    """The pages that have markers, by name, with their tables filled in from the files."""
    pages = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "book").glob("*.md")}
    filled = {name: status.fill(text, ROOT) for name, text in sorted(pages.items())}
    return {name: text for name, text in filled.items() if text != pages[name]}


def without_widgets(notebook, name):
    """A page has no kernel: each widget leaves the static HTML that it stored beside itself."""
    notebook["metadata"].pop("widgets", None)
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if data.pop(WIDGET, None) and "text/html" not in data:
                sys.exit(f"{name}, cell {cell.get('id')}: a widget without static text/html")
    return notebook


def stage(language):
    """Lay the sources of one language into _build/src/<language>, from nothing."""
    source = BUILD / "src" / language
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(ROOT / "book", source, ignore=NEVER)
    for name in ("_config.yml", "_toc.yml", "CITATION.cff", "constraints.txt"):
        shutil.copy(ROOT / name, source)
    for name, text in filled_pages().items():
        (source / name).write_text(text, encoding="utf-8")
    calculator.stage(source, calculator_words(language), language)
    exercise_fields.stage(source, memlab_words(language), language)
    typeface.stage(source)
    checks_pages.stage(ROOT, source)
    (source / "notebooks").mkdir()
    for file in files_below(ROOT / "notebooks"):
        target = source / "notebooks" / file.relative_to(ROOT / "notebooks")
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".ipynb":
            notebook = json.loads(file.read_text(encoding="utf-8"))
            write(target, without_records(without_widgets(notebook, file.name)))
        else:
            shutil.copy(file, target)
    if language != ENGLISH:
        lay.lay(language, source)
    words, site = (check.catalogue.translations(language, name) for name in (MESSAGES, IN_SITE))
    quizzes.stage(ROOT, source, language, words, "" if language == ENGLISH else lay.banner(site))
    for file in (source / "notebooks").glob("*.ipynb"):
        write(file, checks_pages.link(json.loads(file.read_text(encoding="utf-8"))))
    settings(language, source / "_config.yml")
    poster.stage(source, language)
    return source


def without_records(notebook):
    """A cell for a GPU that no record of one belongs to shows nothing, its code included."""
    for cell in notebook["cells"]:
        tags = cell["metadata"].get("tags", [])
        if "device" in tags and not cell["outputs"]:
            tags.append("remove-cell")
    return notebook


def write(path, notebook):
    text = json.dumps(notebook, ensure_ascii=False, indent=1)
    path.write_text(text + "\n", encoding="utf-8")


def calculator_words(language):
    """What the calculator says in a language, in the order in which its patterns are tried."""
    if language == ENGLISH:
        return None
    done = check.catalogue.translations(language, "calculator-words")
    return {english: done[english] for english in calculator.words() if english in done}


def memlab_words(language):
    """What memlab itself says in a language, such as the hints of the exercises."""
    return None if language == ENGLISH else check.catalogue.translations(language, "memlab")


def settings(language, path):
    """What the pages need to know of the languages: their own, and those beside it."""
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    names = [[x, LANGUAGES[x]] for x in offered()]
    config["sphinx"]["config"]["html_context"] |= {"languages": names, "folder": language}
    path.write_text(yaml.safe_dump(config, allow_unicode=True, sort_keys=False), encoding="utf-8")


def surround(language, pages):
    """Put what surrounds the text of the finished pages into their language."""
    words = check.catalogue.translations(language, "interface")
    for path in sorted(pages.rglob("*.html")):
        text = path.read_text(encoding="utf-8")
        path.write_text(interface.translate(text, words), encoding="utf-8")
    # Sphinx makes a function of a string, which the pages' policy forbids: write the function down.
    plural = re.findall(r'"plural_expr": "([^"]*)"', (pages / TRANSLATIONS).read_text("utf-8"))[0]
    tools = (pages / DOCTOOLS).read_text(encoding="utf-8")
    done = re.sub(
        r"new Function\([^;]*?\);", lambda _: f"(n) => Number({plural});", tools, flags=re.S
    )
    (pages / DOCTOOLS).write_text(done, encoding="utf-8")


def jupyter_book(source, work):
    """Run Jupyter Book with warnings as errors; what it reports goes to a log."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    # Not the console script: its first line holds the absolute path of the environment.
    start = "from jupyter_book.cli.main import main; main()"
    command = [sys.executable, "-c", start, "build", str(source), "--path-output", str(work)]
    command += ["-W", "-n", "--keep-going"]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    log = work / "log.txt"
    with log.open("w", encoding="utf-8") as out:  # warnings and errors stay on stderr
        result = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=out, env=environment, cwd=ROOT
        )
    if result.returncode:
        sys.exit(f"The book did not build; more in {os.path.relpath(log)}")
    pages = work / "_build" / "html"
    (pages / "index.html").write_text(
        way_in(FIRST, ".", [f'<a href="{FIRST}">memlab</a>']), "utf-8"
    )
    return pages


def build(language, force=False):
    """Build one language unless its pages already stand for exactly these inputs."""
    pages, stamp = SITE / language, BUILD / f"{language}.key"
    key = inputs_key(language)
    if not force and stamp.exists() and pages.is_dir():
        if stamp.read_text() == f"{key} {output_key(pages)}":
            return
    # A failed build must not leave yesterday's pages behind, nor new pages yesterday's PDF.
    stamp.unlink(missing_ok=True)
    paper(language).unlink(missing_ok=True)
    shutil.rmtree(pages, ignore_errors=True)
    built = jupyter_book(stage(language), BUILD / "work" / language)
    if language != ENGLISH:
        surround(language, built)
    pages.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(built, pages)
    moved(pages)
    stamp.write_text(f"{key} {output_key(pages)}")


def paper(language):
    """Where the PDF of a language lies beside the site, once tools/pdf.py has printed it."""
    return SITE / f"memlab-{language}.pdf"


def furnish_pages():
    """Let each page say the date and link to the PDF, and keep the stamp of a whole language."""
    date = furnish.committed(ROOT)
    for language in LANGUAGES:
        pages, stamp = SITE / language, BUILD / f"{language}.key"
        if not stamp.exists() or not pages.is_dir():
            continue
        key, was = stamp.read_text().split()
        whole = was == output_key(pages)
        words = {} if language == ENGLISH else check.catalogue.translations(language, "interface")
        said = date or words.get(furnish.WORKING, furnish.WORKING)
        if furnish.furnish(pages, said, paper(language).exists()) and whole:
            stamp.write_text(f"{key} {output_key(pages)}")


def write_index():
    """The way in, and the maps of all languages; a language no longer offered goes."""
    for gone in set(LANGUAGES) - set(offered()):
        shutil.rmtree(SITE / gone, ignore_errors=True)
        paper(gone).unlink(missing_ok=True)
    there = [x for x in LANGUAGES if (SITE / x / FIRST).exists()]
    links = [f'<a href="{x}/{FIRST}" lang="{x}">{LANGUAGES[x]}</a>' for x in there]
    (SITE / "index.html").write_text(way_in(FIRST, there[0], links, there), encoding="utf-8")
    shutil.copy(ROOT / "book" / "pick.js", SITE)
    wheel.write(SITE)
    cpython.write(SITE)
    maps = [SITE / x / "sitemap.xml" for x in there]
    places = [re.findall(r"<loc>(.*?)</loc>", m.read_text("utf-8"))[0] for m in maps if m.exists()]
    for name in ("sitemap.xml", "robots.txt", "404.html"):
        (SITE / name).unlink(missing_ok=True)
    if places:  # only a site that knows its address has any
        folders = [place.rpartition("/")[0] for place in places]
        entries = (f"<sitemap><loc>{x}/sitemap.xml</loc></sitemap>\n" for x in folders)
        (SITE / "sitemap.xml").write_text(SITEMAPS.format("".join(entries)), encoding="utf-8")
        site = folders[0].removesuffix(there[0])
        (SITE / "robots.txt").write_text(ROBOTS.format(site=site), encoding="utf-8")
        names = {x: LANGUAGES[x] for x in there}
        said = {x: check.catalogue.translations(x, "site").get(NOWHERE) for x in there}
        said = {x: words for x, words in (said | {ENGLISH: NOWHERE}).items() if words}
        (SITE / "404.html").write_text(not_found(site, FIRST, names, said), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lang", nargs="+", choices=LANGUAGES, default=offered())
    parser.add_argument("--force", action="store_true", help="build although nothing changed")
    options = parser.parse_args()
    # Processes: two threads of Python 3.11 may not read source with `ast` at a time (gh-106905).
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(partial(build, force=options.force), options.lang))
    write_index()
    furnish_pages()
    print("First page:", os.path.relpath(SITE / options.lang[0] / FIRST))


if __name__ == "__main__":
    main()
