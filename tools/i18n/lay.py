"""The sources of a book, as tools/book.py lays them out, in another language.

Words are replaced where they lie; what is not translated yet stays English, and the page says so.
"""

import hashlib
import json

import catalogue
import sources
import stage
import yaml

from memlab.base.messages import catalogue as messages_of
from memlab.base.messages import translated
from memlab.base.numerals import written


def lay(language, folder):
    """Put the sources in `folder` into a language; returns the English blocks left, by page."""
    site = catalogue.translations(language, sources.SITE)
    messages, left = messages_of(language), {}
    for path in sorted(folder.glob("*.md")):
        missing: list[str] = []
        words = stage.words_of(language, path.stem)
        text = stage.page(path.read_text(encoding="utf-8"), words, missing, language)
        path.write_text(text + (banner(site) if missing else ""), encoding="utf-8")
        left[path.stem] = missing
    for path in sorted((folder / "notebooks").glob("*.ipynb")):
        if missing := translate(path, path, language, messages, site):
            left[path.stem] = missing
    for path in sorted((folder / "_static" / "answers").glob("[0-9]*.json")):
        kept = json.loads(path.read_text(encoding="utf-8"))
        kept["questions"] = [stage.question(q, messages, language) for q in kept["questions"]]
        path.write_text(json.dumps(kept, ensure_ascii=False), encoding="utf-8")
    for path in sorted((folder / "_static").glob("*.svg")):
        text = path.read_text(encoding="utf-8")
        drawing = stage.markup(text, lambda words: written(translated(words, site), language))
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
        translate(path, target, language, messages_of(language), site)
        laid[path.name] = _hash(target)
    stamp.write_text(json.dumps(laid, indent=1))
    return folder


def _hash(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def translate(path, target, language, messages, site):
    """Write a notebook in a language; returns the blocks that stay English."""
    missing: list[str] = []
    content = json.loads(path.read_text(encoding="utf-8"))
    words = stage.words_of(language, path.stem)
    done = stage.notebook(content, words, messages, language, missing)
    if missing:
        done["cells"][0]["source"] += banner(site)
    target.write_text(json.dumps(done, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return missing


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
