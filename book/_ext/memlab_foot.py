"""Sphinx extension of this book: the line at the foot of every page, and how to run it here.

The line says which memlab a page belongs to and which libraries its figures were tested with.
The date in it is the only thing that no input of a build knows: tools/furnish.py fills it in.
"""

import re
from pathlib import Path

import yaml
from memlab_page import addresses, folder

# Those whose bytes the book prints; the page `status` and constraints.txt have the others.
TESTED = {
    "torch": "PyTorch",
    "transformers": "transformers",
    "trl": "TRL",
    "peft": "PEFT",
    "accelerate": "accelerate",
    "torchao": "torchao",
    "bitsandbytes": "bitsandbytes",
}
SITE = "{site}"  # where the reader has the site: memlab.js puts the page's own address there


def tested(pins):
    """The libraries of TESTED with the versions of a constraints file, in one line.

    Raises      ValueError for a library that the file does not pin
    """
    versions = dict(re.findall(r"^([\w.-]+)==(\S+)", pins, re.M))
    if lacking := [name for name in TESTED if name not in versions]:
        raise ValueError(f"constraints.txt pins no version of {', '.join(lacking)}")
    return ", ".join(f"{shown} {versions[name]}" for name, shown in TESTED.items())


def steps(wheel, language, path, site=""):
    """Three commands that run a notebook on the reader's machine, from the site's own files."""
    site = site or SITE
    name = path.rpartition("/")[2]
    return [
        f'pip install "memlab[notebooks] @ {site}{wheel}"',
        f'curl -O "{site}{language}/_sources/{path}"',
        f"jupyter lab {name}",
    ]


def stand(app, pagename, templatename, context, doctree):
    """Give the templates the foot of a page and, for a notebook, the commands that run it."""
    source = Path(app.srcdir)
    cff = yaml.safe_load((source / "CITATION.cff").read_text(encoding="utf-8"))
    places = addresses(app.config)
    language, up = folder(app.config), f"{context['content_root']}../"
    context["memlab_foot"] = {
        "version": cff["version"],
        "tested": tested((source / "constraints.txt").read_text(encoding="utf-8")),
        "status": "status" in app.env.found_docs and context["pathto"]("status"),
        "ask": places.repository and f"{places.repository}/issues",
        "pdf": f"{up}memlab-{language}.pdf",
    }
    context["memlab_run"] = None
    if doctree is not None and context.get("page_source_suffix") == ".ipynb":
        wheel = f"memlab-{cff['version']}-py3-none-any.whl"
        commands = steps(wheel, language, f"{pagename}.ipynb", places.site)
        context["memlab_run"] = {"commands": commands, "up": up, "known": bool(places.site)}


def setup(app):
    app.connect("html-page-context", stand, priority=100)  # the theme drops empty parts
    return {"parallel_read_safe": True, "parallel_write_safe": True}
