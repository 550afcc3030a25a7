"""What a chapter imports is in the extra that Binder, Colab and downloaded notebooks install."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from memlab.base.extras import PACKAGES, missing

ROOT = Path(__file__).resolve().parent.parent
CHAPTERS = sorted((ROOT / "notebooks").glob("*.ipynb"))
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
# Each says what to install where it is missing, and no chapter calls what needs it.
ASKED_FOR = {"deepspeed", "psutil", "pynvml"}


def file_of(module):
    """The file of a module of ours; None for a name that is no module."""
    place = ROOT / "src" / Path(*module.split("."))
    files = (place.with_suffix(".py"), place / "__init__.py")
    return next((file for file in files if file.exists()), None)


def imported(source, module="", package=False):
    """Every module that code names: imports wherever they stand, and import_module("...").

    module, package     whose code it is, for imports that begin with dots
    """
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            here = module.split(".")
            above = here[: len(here) - node.level + package] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            found |= {base} | {f"{base}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and node.args and called(node) == "import_module":
            text = node.args[0]
            if isinstance(text, ast.JoinedStr):  # f"torchao.{name}"
                text = text.values[0]
            if isinstance(text, ast.Constant) and re.match(r"\w", str(text.value)):
                found.add(text.value.rstrip("."))
    return found


def called(node):
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def reached(sources):
    """The packages that code needs, itself or through modules of ours: package -> who says so."""
    todo = [(name, "a cell") for source in sources for name in imported(source)]
    seen, needed = set(), {}
    while todo:
        name, by = todo.pop()
        top = name.partition(".")[0]
        if top != "memlab":
            if top and top not in sys.stdlib_module_names:
                needed.setdefault(top, by)
            continue
        parts = name.split(".")
        for module in (".".join(parts[: i + 1]) for i in range(len(parts))):
            file = file_of(module)
            if module in seen or file is None:
                continue
            seen.add(module)
            text, package = file.read_text(encoding="utf-8"), file.name == "__init__.py"
            todo += [(each, module) for each in imported(text, module, package)]
    return needed


def cells(path):
    """The code of a chapter, without what only IPython reads."""
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            yield re.sub(r"^\s*[%!].*$", "pass", "".join(cell["source"]), flags=re.M)


def installed(extra):
    """The distributions that `pip install memlab[extra]` brings, and those that they need."""
    todo, found = [Requirement(f"memlab[{extra}]")], set()
    while todo:
        asked = todo.pop()
        key = (asked.name.lower().replace("_", "-"), frozenset(asked.extras))
        if key in found:
            continue
        found.add(key)
        if asked.name == "memlab":
            needs = [line for each in asked.extras for line in EXTRAS[each]]
        else:
            needs = metadata.requires(asked.name) or []
        for need in map(Requirement, needs):
            chosen = asked.extras or {""}
            if asked.name == "memlab" or need.marker is None:
                todo.append(need)
            elif any(need.marker.evaluate({"extra": each}) for each in chosen):
                todo.append(need)
    return {name for name, _ in found}


def left_out(needed, brought):
    """What is needed and not brought: a line each."""
    owners = metadata.packages_distributions()
    return [
        f"{package}, for {by}"
        for package, by in sorted(needed.items())
        if package not in ASKED_FOR
        and not {x.lower().replace("_", "-") for x in owners.get(package, [package])} & brought
    ]


def test_the_extra_of_the_notebooks_brings_all_that_the_chapters_import():
    pytest.importorskip("torch")
    needed = reached(code for path in CHAPTERS for code in cells(path))
    # Each way on which an import is found: a cell, a module of ours, a name given as a string.
    assert {"matplotlib", "torch", "trl", "safetensors", "peft", "torchao"} <= set(needed)
    assert left_out(needed, installed("notebooks")) == []


def test_a_package_that_is_not_brought_is_seen():
    needed = reached(["from memlab.lab.trainers import trained\nimport sphinx"])
    assert {"trl", "datasets", "sphinx"} <= set(needed)
    missed = "\n".join(left_out(needed, installed("torch")))
    assert "trl, for memlab.lab." in missed and "sphinx, for a cell" in missed
    assert "numpy" not in missed


def test_relative_imports_lead_to_their_modules():
    source = "from ..plot import other\nfrom . import text\nfrom .shard import x"
    assert imported(source, "memlab.lab.loss") >= {
        "memlab.plot.other",
        "memlab.lab.text",
        "memlab.lab.shard",
    }
    assert "memlab.lab.text" in imported("from . import text", "memlab.lab", package=True)


# `make book` as far as Jupyter Book itself, where nothing can be imported that is refused.
BOOK = """
import sys
from importlib import import_module
from pathlib import Path

root, out, refused = Path(sys.argv[1]), Path(sys.argv[2]), set(sys.argv[3].split())


class Refusing:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in refused:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Refusing)
sys.path[:0] = [str(root / folder) for folder in ("tools", "tools/i18n", "book/_ext")]
import book

book.BUILD = book.SITE = out
for extension in (root / "book" / "_ext").glob("*.py"):
    import_module(extension.stem)
import_module("jupyter_book.cli.main")
source = book.stage("en")
for path in [*source.glob("*.md"), *source.glob("notebooks/*.ipynb")]:  # a few are enough
    if path.stem not in ("intro", "status", "01_formats"):
        path.unlink()
book.lay.lay("pt-BR", source)
(out / "pt-BR").mkdir()
(out / "pt-BR" / book.FIRST).touch()
book.write_index()
"""


def book_builds(folder, refused):
    command = [sys.executable, "-c", BOOK, ROOT, folder, " ".join(refused)]
    return subprocess.run(command, capture_output=True, encoding="utf-8", cwd=ROOT).stderr


@pytest.mark.deep
def test_the_extra_of_the_book_brings_all_that_make_book_imports(tmp_path):
    pytest.importorskip("sphinx", reason="no book: Sphinx is not installed")
    brought = {"memlab", *(name.lower().replace("_", "-") for name in installed("book"))}
    owners = metadata.packages_distributions().items()
    others = {p for p, of in owners if not {x.lower().replace("_", "-") for x in of} & brought}
    others |= {"numpy", "torch"}  # whatever is installed here
    assert book_builds(tmp_path / "book", others) == ""
    assert "No module named 'latex2mathml'" in book_builds(tmp_path / "less", {"latex2mathml"})


def test_the_advice_names_the_packages_of_each_extra():
    for extra, words in PACKAGES.items():
        assert words.split() == [re.match(r"[\w-]+", need)[0] for need in EXTRAS[extra]]
    error = ModuleNotFoundError(name="torch")
    assert missing("tracing", error, "torch") == "tracing needs torch: pip install torch numpy"


# A name that pip would look up on an index: not `memlab @ address`, no file and no folder.
BY_NAME = re.compile(r"pip install[^\n]{0,40}[ '\"]memlab(?![\w./-]|\[\w+\] @)|memlab\[(?!\w+\] @)")


def texts():
    """What a reader meets: the package, the pages, the chapters and the doors of the repository."""
    for folder in ("src", "book", "notebooks", "benchmarks"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".md", ".ipynb", ".mjs", ".js", ".html"):
                yield path
    yield from ROOT.glob("*.md")


def test_memlab_is_installed_from_a_place_and_never_by_its_name():
    """It is on no index: whoever takes the name there would be installed instead."""
    found = {path: BY_NAME.search(path.read_text(encoding="utf-8")) for path in texts()}
    assert len(found) > 300
    assert {str(path): hit[0] for path, hit in found.items() if hit} == {}
    for wrong in ("pip install memlab", "pip install 'memlab[torch]'", "needs 'memlab[torch]'"):
        assert BY_NAME.search(wrong)
    assert not BY_NAME.search('%pip install "memlab[notebooks] @ git+https://example.org/memlab"')
