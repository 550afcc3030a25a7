"""Make one archive from which laptops without a network install memlab and its notebooks.

    python tools/classroom.py                 for machines like this one, in English
    python tools/classroom.py --lang pt-BR --platforms windows-x86_64 --pythons 3.12 3.13
    python tools/classroom.py --check         and install it without a network (classroom_check.py)

    _build/classroom/memlab-<version>-<language>.zip
    _build/classroom/wheels/                  what was fetched for a platform, for the next time

In it are the wheels that tools/room_wheels.py finds, the site's notebooks of the language, the site
in all its languages, the slides, and a README with the two commands. `make book` and `make slides`
come first.
"""

import argparse
import json
import os
import shutil
import sys
import zipfile
from pathlib import Path

import room_wheels
import wheel
from packaging.utils import parse_wheel_filename

sys.path.append(str(Path(__file__).resolve().parent / "i18n"))
import catalogue  # noqa: E402
import sources  # noqa: E402
import stage  # noqa: E402

from memlab.units import GiB, text  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "_build"
OUT = BUILD / "classroom"
README = ROOT / "tools" / "classroom.md"
ENGLISH = "en"
FIRST = GiB  # what the wheels of one platform take about, and again in the archive
INSTALL = "install-memlab"  # the cell that the site's notebooks begin with (book/_ext)
CELL = """\
# Run this first. Where memlab is not there, it is installed from `wheels`, without a network.
import subprocess
import sys
from importlib.util import find_spec

if not find_spec("memlab"):
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    wheels = ["--no-index", "--find-links", "../wheels"]
    subprocess.run([*pip, *wheels, "memlab[notebooks]"], check=True)"""


def pythons():
    """The versions of Python that the package is for."""
    last = (each.rpartition(" :: ")[2] for each in wheel.project()["classifiers"])
    return [each for each in last if each[:2] == "3."]


def folders(build, language):
    """What the book and the slides left: names in the archive -> folders.

    Raises      SystemExit where one is missing, with the command that makes it
    """
    notebooks = build / "html" / language / "_sources" / "notebooks"
    slides = build / "slides" / language
    if not any(notebooks.glob("*.ipynb")):
        raise SystemExit(f"No book in {language!r} in {build / 'html'}: `make book` builds it")
    if not (slides / "index.html").exists():
        option = f" BOOK_LANG={language}" * (language != ENGLISH)
        raise SystemExit(f"No slides in {language!r} in {slides}: `make slides{option}` makes them")
    return {"notebooks": notebooks, "site": build / "html", "slides": slides}


def notebook(path):
    """The text of a notebook whose first cell installs from the archive."""
    content = json.loads(path.read_text(encoding="utf-8"))
    first = content["cells"][0]
    if first.get("id") != INSTALL:
        raise SystemExit(f"{path} does not begin with the cell {INSTALL!r}: `make book`")
    first["source"] = CELL.splitlines(keepends=True)
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def readme(language, platforms, versions):
    """What the folder says of itself, in a language."""
    words = README.read_text(encoding="utf-8")
    if language != ENGLISH:
        done = catalogue.translations(language, sources.SITE)
        words = stage.page(words, done, None, language)
    places = {"platforms": ", ".join(platforms), "pythons": ", ".join(versions)}
    return words.format(language=language, **places)


def contents(found, wheelhouses, own, words):
    """Everything of the archive: its name there -> a path, or a text; sorted by name."""
    made = {"README.md": words, "constraints.txt": room_wheels.PINS, f"wheels/{own.name}": own}
    for path in (path for folder in wheelhouses for path in folder.glob("*.whl")):
        made[f"wheels/{path.name}"] = path
    for name, folder in found.items():
        files = (path for path in folder.rglob("*") if path.is_file())
        made |= {f"{name}/{path.relative_to(folder).as_posix()}": path for path in files}
    made |= {x: notebook(at) for x, at in made.items() if x.startswith("notebooks/")}
    return dict(sorted(made.items()))


def size(one):
    return one.stat().st_size if isinstance(one, Path) else len(one.encode())


def room(folder, needed, what):
    """Raise SystemExit where a disk has less than this free."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        said = f"{what} need {text(needed)}, and {text(free)} are free on the disk of {folder}"
        raise SystemExit(f"{said}: make room there")


def write(made, target):
    """Write the archive; the same files make the same archive, and a failure leaves none."""
    room(target.parent, sum(map(size, made.values())), "The files of the archive")
    part = target.with_suffix(".part")
    with zipfile.ZipFile(part, "w") as archive:
        for name, one in made.items():
            entry = zipfile.ZipInfo(f"{target.stem}/{name}", wheel.ALWAYS)
            entry.external_attr = 0o100644 << 16
            entry.file_size = size(one)  # from which zipfile sees what is larger than 2 GiB
            if not name.endswith((".whl", ".zip")):  # which are packed already
                entry.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(entry, "w") as out:
                if isinstance(one, Path):
                    with one.open("rb") as file:
                        shutil.copyfileobj(file, out, 2**20)
                else:
                    out.write(one.encode())
    part.replace(target)


def fetched(platforms, versions):
    """The folders with the wheels of each platform and Python.

    Raises      SystemExit with what cannot be had for which of them
    """
    pairs, found, missing = [(x, y) for x in platforms for y in versions], [], []
    for place, python in pairs:
        print(f"Wheels for {place}, Python {python}", flush=True)
        try:
            found.append(room_wheels.kept(place, python, OUT / "wheels"))
        except room_wheels.Missing as gap:
            missing.append(f"{place}, Python {python}: {gap}")
    if missing:
        raise SystemExit("\n".join([*missing, "No archive: leave out what cannot be had"]))
    return found


def report(made, target):
    """Print what the archive has, and what no line of constraints.txt chose."""
    packages = sorted(
        parse_wheel_filename(name[7:])[:2] for name in made if name.startswith("wheels/")
    )
    many = sum(name.startswith("notebooks/") for name in made)
    torch = ", ".join({str(version): name for name, version in packages if name == "torch"})
    print(f"{len(packages)} wheels (torch {torch}), {many} notebooks, the site, the slides")
    pins = room_wheels.pinned()
    loose = [f"{x} {y}" for x, y in packages if pins.get(x) != y.public and x != "memlab"]
    if loose:
        print("Not in constraints.txt, so the newest:", ", ".join(dict.fromkeys(loose)))
    unpacked = text(sum(map(size, made.values())))
    print(f"{os.path.relpath(target)}: {text(target.stat().st_size)}, unpacked {unpacked}")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lang", choices=[ENGLISH, *catalogue.languages()], default=ENGLISH)
    parser.add_argument("--platforms", nargs="+", default=[room_wheels.here()])
    known = pythons()
    mine = f"{sys.version_info[0]}.{sys.version_info[1]}"
    parser.add_argument("--pythons", nargs="+", choices=known, default=[mine])
    parser.add_argument("--check", action="store_true", help="install it without a network")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.platforms) - set(room_wheels.TAGS)):
        parser.error(f"no platform {unknown[0]!r}; known: {', '.join(room_wheels.TAGS)}")
    found = folders(BUILD, options.lang)
    OUT.mkdir(parents=True, exist_ok=True)
    many = len(options.platforms) * len(options.pythons)
    room(OUT, 2 * FIRST * many, "The wheels and the archive")
    wheelhouses = fetched(options.platforms, options.pythons)
    words = readme(options.lang, options.platforms, options.pythons)
    target = OUT / f"memlab-{wheel.project()['version']}-{options.lang}.zip"
    made = contents(found, wheelhouses, wheel.write(OUT), words)
    write(made, target)
    report(made, target)
    if options.check:
        import classroom_check

        classroom_check.check(target)


if __name__ == "__main__":
    main()
