"""Sphinx extension of this book: a downloaded notebook begins with a cell that installs memlab.

The cell takes the wheel that lies beside the notebook; where there is none, the one of the book's
own site, if the site has an address (memlab_page). It does nothing where memlab is there already.
"""

import json
from pathlib import Path

import yaml
from memlab_page import addresses

ID = "install-memlab"
CELL = """\
# Run this first. Where memlab is not there, it installs the wheel beside this notebook{else_where},
# and then what the chapters use besides: PyTorch, transformers, bitsandbytes, matplotlib ...
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

if not find_spec("memlab"):
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    wheels = sorted(Path().glob("memlab-*.whl"))
    wheel = wheels[-1].resolve().as_uri() if wheels else {address!r}
    if not wheel:
        raise SystemExit("Put {name} beside this notebook: the chapter's page offers it.")
    subprocess.run([*pip, "--no-deps", wheel], check=True)
    if subprocess.run([*pip, f"memlab[notebooks] @ {{wheel}}"]).returncode:
        print("memlab is installed; what the chapters use besides could not be fetched.")"""


def wheel_of(srcdir):
    """The name of the wheel that the site offers."""
    cff = yaml.safe_load((Path(srcdir) / "CITATION.cff").read_text(encoding="utf-8"))
    return f"memlab-{cff['version']}-py3-none-any.whl"


def cell(name, site=""):
    """The cell, for a wheel of this name and a site with this address, or none."""
    words = ", or that of the book's site" if site else ""
    source = CELL.format(else_where=words, address=site and site + name, name=name)
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": ID,
        "metadata": {"tags": ["setup"]},
        "outputs": [],
        "source": source.splitlines(keepends=True),
    }


def begin(app, exception):
    """Put the cell before the others of every notebook that the site offers."""
    if exception or app.builder.name != "html":
        return
    first = cell(wheel_of(app.srcdir), addresses(app.config).site)
    for path in sorted((Path(app.outdir) / "_sources").rglob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        if notebook["cells"][0].get("id") == ID:
            continue  # a page that was not written anew
        notebook["cells"].insert(0, first)
        text = json.dumps(notebook, ensure_ascii=False, indent=1)
        path.write_text(f"{text}\n", encoding="utf-8")


def setup(app):
    app.connect("build-finished", begin)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
