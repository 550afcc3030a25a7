"""Translations of the book: catalogues of blocks, and the pages that come of them.

    python tools/i18n update [LANGUAGE …]    bring every catalogue to the English pages; a changed
                                             block keeps its translation, marked fuzzy
    python tools/i18n check [LANGUAGE …]     what is missing, fuzzy or broken; exit status 1 if any
    python tools/i18n new LANGUAGE           the empty catalogues of one more language (fr, de-AT)
    python tools/i18n todo LANGUAGE [PAGE]   the entries of a page still to translate, as JSON: an
                                             object, English block -> ""; without a page, those of
                                             all pages: page -> such an object
    python tools/i18n fill LANGUAGE [PAGE] F put translations into the catalogues from such a file,
                                             or nothing at all if one of them is broken
    python tools/i18n outputs [CHAPTER …]    run these chapters, or all whose outputs are stale, in
                                             each language, and keep what they print
    python tools/i18n pot FOLDER             the templates of all pages, for an editor that asks for
                                             them (Weblate, Poedit)
    python tools/i18n lab LANGUAGE           lay out the notebooks of a language, and print where

Without a language: all that have catalogues in book/locale.
"""

import json
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import catalogue
import check
import lay
import outputs
import places
import sources


def main(arguments):
    command, *rest = arguments or [""]
    if command in ("todo", "fill") and rest and not known(rest[0]):
        return 2
    if command == "update":
        return update(rest)
    if command == "check":
        return report(rest or catalogue.languages())
    if command == "new" and len(rest) == 1:
        if not re.fullmatch(r"[a-z]{2,3}(-[A-Z]{2})?", rest[0]):
            print(f"{rest[0]!r} is no language: write fr, or de-AT", file=sys.stderr)
            return 2
        return update(rest)
    if command == "todo" and len(rest) in (1, 2):
        every = {page: todo(rest[0], page) for page in rest[1:] or sources.names()}
        left = (
            every[rest[1]]
            if rest[1:]
            else {page: blocks for page, blocks in every.items() if blocks}
        )
        print(json.dumps(left, ensure_ascii=False, indent=1))
        return 0
    if command == "outputs":
        return run(rest)
    if command == "pot" and len(rest) == 1:
        return pot(Path(*rest))
    if command == "lab" and len(rest) == 1:
        return lab(*rest)
    if command == "fill" and len(rest) in (2, 3):
        words = json.loads(Path(rest[-1]).read_text(encoding="utf-8"))
        return fill(rest[0], {rest[1]: words} if rest[2:] else words)
    print(__doc__, file=sys.stderr)
    return 2


def update(languages):
    changed: list[str] = []
    there = {name: in_places(name) for name in sources.names()}
    for language in languages or catalogue.languages():
        moved = catalogue.compendium(language, there)
        for name, (blocks, stands) in there.items():
            if catalogue.update(language, name, blocks, stands, moved):
                changed.append(f"{language}/{name}")
    check.compile_messages(languages or catalogue.languages())
    print(f"{len(changed)} catalogues changed")
    return 0


def in_places(name):
    """The blocks of a page, and where each stands."""
    there = sources.blocks_of(name)
    return there, places.places(name, there)


def pot(folder):
    """Write the template of each page."""
    for name in sources.names():
        made = catalogue.template(name, *in_places(name))
        catalogue.write(folder / f"{name}.pot", made)
    print(f"{len(sources.names())} templates in {folder}")
    return 0


def todo(language, page):
    """What is still to translate: English block -> nothing yet."""
    done = catalogue.translations(language, page)
    return {block: "" for block in sources.blocks_of(page) if block not in done}


def fill(language, pages):
    """Put translations in: page -> English block -> translation."""
    broken = 0
    for page, words in pages.items():
        if page not in sources.names():
            print(f"no page {page!r}; known: {', '.join(sources.names())}")
            return 1
        for english, translated in words.items():
            for line in check.entry(language, english, translated):
                broken += 1
                print(f"{page}: {english[:60]!r}: {line}")
    if broken:
        print(f"{broken} problems; nothing was written")
        return 1
    lost = []
    for page, words in pages.items():
        catalogue.update(language, page, *in_places(page))
        lost += catalogue.fill(language, page, {e: t for e, t in words.items() if t})
    for english in lost:
        print(f"no such block on the page: {english[:80]!r}")
    check.compile_messages([language])
    return 1 if lost else 0


def run(names):
    """Run chapters in each language and keep their outputs; those named, or all that are stale."""
    there = {path.stem: path for path in sources.chapters()}
    wanted = [Path(name).stem for name in names]  # a path will do
    if unknown := sorted(set(wanted) - set(there)):
        print(f"no chapter {unknown[0]!r}; known: {', '.join(there)}", file=sys.stderr)
        return 2
    jobs = [
        (language, path)
        for path in there.values()
        for language in catalogue.languages()
        if (path.stem in wanted if names else outputs.kept(language, path) is None)
    ]
    failed, before = 0, os.times()
    with ThreadPoolExecutor(2) as pool:  # each runs in a kernel of its own
        for (language, path), why in zip(jobs, pool.map(_make, jobs), strict=True):
            print(f"{language} {path.stem}{why}", flush=True)
            failed += bool(why)
    after = os.times()
    took = after.children_user + after.children_system
    took -= before.children_user + before.children_system
    print(f"{len(jobs)} runs, {took:.0f} s of processor time")
    return 1 if failed else 0


def _make(job):
    try:
        outputs.make(*job)
    except Exception as error:  # a cell that fails has an error of its own
        return f": {error}"
    return ""


def known(language):
    """Whether a language has catalogues; pt_BR, which is a folder's name, is not one."""
    found = language in catalogue.languages()
    if not found:
        every = ", ".join(["en", *catalogue.languages()])
        print(f"no language {language!r}; known: {every}", file=sys.stderr)
    return found


def lab(language):
    """Notebooks to run: the English ones themselves, or a copy in another language."""
    if language == "en":
        print(os.path.relpath(sources.ROOT / "notebooks"))
        return 0
    if not known(language):
        return 2
    print(os.path.relpath(lay.notebooks(language, sources.ROOT / "_build" / "lab" / language)))
    return 0


def report(languages):
    bad = 0
    for language in languages:
        for name in sources.names():
            for line in check.problems(language, name):
                bad += 1
                print(f"{language}/{name}: {line}")
    print(f"{bad} problems")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
