"""Lay out what Colab and Binder open: the site's notebooks, and what Binder installs for them.

    python tools/launch.py FOLDER    after `make book`; the workflow `pages` makes a branch of it

Both open notebooks of a branch, and those of the branch that is edited have no cell that installs
memlab. The site's have it (book/_ext/memlab_install.py), in every language.
"""

import argparse
import shutil
import sys
from pathlib import Path

import wheel

import book

README = """These are the notebooks of memlab's site, as Colab and Binder open them. They are made
from the branch `{branch}`: what is changed here is lost with the next commit there.
"""


def lay_out(site, folder, branch="main"):
    """Fill a folder that is not there yet; returns how many notebooks it has."""
    wheels = list(site.glob("memlab-*.whl"))
    notebooks = sorted(site.glob("*/_sources/notebooks/*.ipynb"))
    if [path.name for path in wheels] != [wheel.name()] or not notebooks:
        raise SystemExit(f"No book with {wheel.name()} in {site}: `make book` builds it.")
    folder.mkdir(parents=True)
    for path in notebooks:
        target = folder / path.relative_to(site).parts[0] / "notebooks"
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    shutil.copy(wheels[0], folder)
    shutil.copy(book.ROOT / "constraints.txt", folder)
    # Not `.binder`: what begins with a dot is left out of a workflow's artifacts.
    binder = folder / "binder"
    binder.mkdir()
    shutil.copy(book.ROOT / ".binder" / "runtime.txt", binder)
    needs = f"-c ../constraints.txt\n./{wheels[0].name}[notebooks]\n"
    (binder / "requirements.txt").write_text(needs, encoding="utf-8")
    (folder / "README.md").write_text(README.format(branch=branch), encoding="utf-8")
    return len(notebooks)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    if options.folder.exists():
        sys.exit(f"{options.folder} is there already: name a new folder.")
    print(f"{lay_out(book.SITE, options.folder)} notebooks in {options.folder}")


if __name__ == "__main__":
    main()
