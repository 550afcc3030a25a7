"""The sources of a book, as tools/book.py lays them out, in another language.

Words are replaced where they lie, and the outputs of a chapter are those that a run in the language
gave; what is not translated yet stays English, and the page says so.
"""

import hashlib
import json

import capstone
import catalogue
import no_gain
import outputs
import sources
import stage
import yaml

from memlab.base.message import rendered
from memlab.cli.language import spoken


def lay(language, folder):
    """Put the sources in `folder` into a language; returns the English blocks left, by page."""
    site = catalogue.translations(language, sources.SITE)
    left = {}
    for path in sorted(folder.glob("*.md")):
        missing: list[str] = []
        words = stage.words_of(language, path.stem)
        text = stage.page(path.read_text(encoding="utf-8"), words, missing, language)
        text = PRINTED[path.stem](text, language) if path.stem in PRINTED else text
        path.write_text(text + (banner(site) if missing else ""), encoding="utf-8")
        left[path.stem] = missing
    for path in sorted((folder / "notebooks").glob("*.ipynb")):
        if missing := translate(path, path, language, site):
            left[path.stem] = missing
    for path in sorted((folder / "_static" / "answers").glob("[0-9]*.json")):
        if kept := outputs.kept(language, sources.ROOT / "notebooks" / f"{path.stem}.ipynb"):
            asked = json.loads(path.read_text(encoding="utf-8")) | {"questions": kept["questions"]}
            path.write_text(json.dumps(asked, ensure_ascii=False), encoding="utf-8")
    for path in sorted((folder / "_static").glob("*.svg")):
        text = path.read_text(encoding="utf-8")
        drawing = stage.markup(text, lambda words: rendered(words, site, language))
        path.write_text(drawing, encoding="utf-8")
    settings(language, folder, site)
    return {name: blocks for name, blocks in left.items() if blocks}


def notebooks(language, folder, names=()):
    """Lay the chapters of a language, or those of these names, out to be run.

    A copy that somebody has changed stays.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stamp = folder / ".laid.json"
    laid = json.loads(stamp.read_text()) if stamp.exists() else {}
    site = catalogue.translations(language, sources.SITE)
    for path in sources.chapters():
        if names and path.stem not in names:
            continue
        target = folder / path.name
        if target.exists() and _hash(target) != laid.get(path.name):
            continue
        translate(path, target, language, site)
        laid[path.name] = _hash(target)
    stamp.write_text(json.dumps(laid, indent=1))
    return folder


def _hash(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def translate(path, target, language, site):
    """Write a notebook in a language; returns the blocks that stay English."""
    missing: list[str] = []
    content = json.loads(path.read_text(encoding="utf-8"))
    kept = outputs.kept(language, sources.ROOT / "notebooks" / path.name)
    words = stage.words_of(language, path.stem)
    done = stage.notebook(content, words, language, missing, kept and kept["cells"])
    if kept is None:
        missing.append(outputs.STALE)
    if missing:
        done["cells"][0]["source"] += banner(site)
    target.write_text(json.dumps(done, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return missing


def printed(text, language):
    """The page of cells that save nothing, with what they print in the language."""
    for path in sources.chapters():
        if kept := outputs.kept(language, path):
            for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
                if no_gain.is_one(cell) and (new := kept["cells"].get(cell["id"])):
                    english = no_gain.fenced(cell)
                    outputs.put(cell, new)
                    text = text.replace(english, no_gain.fenced(cell))
    return text


def judged(text, language):
    """The page of the capstone, with what `memlab check` prints in the language."""
    english = capstone.answer(sources.ROOT)
    with spoken(language):
        return text.replace(english, capstone.answer(sources.ROOT))


PRINTED = {"capstone": judged, "no-gain": printed}  # pages on which a program speaks


def banner(site):
    # A quotation, not a box: the theme draws the signs of boxes with a font that is not served.
    return f"\n\n> {site.get(sources.LEFT, sources.LEFT)}\n"


def settings(language, folder, site):
    """The title, the captions of the contents, and the language that Sphinx speaks."""
    path = folder / "_toc.yml"
    toc = yaml.safe_load(path.read_text(encoding="utf-8"))
    for part in toc["parts"]:
        if part.get("caption"):
            part["caption"] = site.get(part["caption"], part["caption"])
    path.write_text(yaml.safe_dump(toc, allow_unicode=True, sort_keys=False), encoding="utf-8")
    path = folder / "_config.yml"
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    config["title"] = site.get(config["title"], config["title"])
    config["sphinx"]["config"]["language"] = language.replace("-", "_")
    path.write_text(yaml.safe_dump(config, allow_unicode=True, sort_keys=False), encoding="utf-8")
