"""A downloaded notebook's first cell installs memlab: the wheel beside it, or that of the site."""

import json
import shutil
import threading
import venv
from email import message_from_bytes
from functools import partial
from http.server import ThreadingHTTPServer

import pytest
from packaging.requirements import Requirement
from test_package import PARTS, ROOT, built, call, contents

import memlab

pytest.importorskip("sphinx", reason="no book: Sphinx is not installed")
import memlab_install  # noqa: E402
import wheel  # noqa: E402
from memlab_page import Addresses  # noqa: E402
from test_pages import SITE, Silent  # noqa: E402

NOTEBOOKS = sorted(SITE.glob("*/_sources/notebooks/*.ipynb"))
ASKED = "from memlab import Model, estimate; print(estimate(Model.preset('tiny-llama')).total())"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The wheel as the site offers it."""
    return wheel.write(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """The interpreter of an environment that has pip and nothing else."""
    place = tmp_path_factory.mktemp("empty")
    venv.create(place, with_pip=True)
    return place / "bin" / "python"


def run(python, cell, folder):
    """Run a cell there, where no index can be reached; return what it wrote."""
    (folder / "cell.py").write_text("".join(cell["source"]), encoding="utf-8")
    clean = {"PATH": "/usr/bin:/bin", "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": "/dev/null"}
    done = call(python, "-P", "cell.py", cwd=folder, env=clean | {"NO_PROXY": "127.0.0.1"})
    return done.returncode, done.stdout + done.stderr


def asked(python, folder):
    done = call(python, "-P", "-c", ASKED, cwd=folder)
    return done.stdout.strip() or done.stderr


def uninstalled(python, folder):
    call(python, "-m", "pip", "uninstall", "-q", "-y", "memlab", cwd=folder)
    assert "No module named 'memlab'" in asked(python, folder)


def test_the_wheel_is_that_of_the_build_tool(made, tmp_path):
    tree = tmp_path / "tree"
    away = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*_cache")
    shutil.copytree(ROOT / "src", tree / "src", ignore=away)
    for name in PARTS:
        shutil.copy(ROOT / name, tree)
    theirs = built("wheel", tree, tmp_path / "theirs")
    assert made.name == theirs.name == wheel.name() == memlab_install.wheel_of(ROOT)
    ours, theirs = contents(made), contents(theirs)
    apart = {name for name in ours | theirs if ours.get(name) != theirs.get(name)}
    assert {name.rpartition("/")[2] for name in apart} <= {
        "METADATA",
        "WHEEL",
        "RECORD",
        "top_level.txt",
    }
    said = [
        message_from_bytes(next(text for name, text in each.items() if name.endswith("/METADATA")))
        for each in (ours, theirs)
    ]
    for key in {*said[0], *said[1]} - {"Metadata-Version", "Dynamic", "Requires-Dist"}:
        assert said[0].get_all(key) == said[1].get_all(key), key
    assert said[0].get_payload() == said[1].get_payload()
    needs = [{str(Requirement(line)) for line in each.get_all("Requires-Dist")} for each in said]
    assert needs[0] == needs[1]


def test_the_same_files_make_the_same_wheel(made, tmp_path):
    (tmp_path / "memlab-0.0.1-py3-none-any.whl").touch()
    assert wheel.write(tmp_path).read_bytes() == made.read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == [made.name]


def test_the_cell_installs_the_wheel_beside_it_and_then_nothing(made, python, tmp_path):
    cell = memlab_install.cell(made.name)
    status, words = run(python, cell, tmp_path)
    assert status == 1 and f"Put {made.name} beside this notebook" in words
    shutil.copy(made, tmp_path)
    status, words = run(python, cell, tmp_path)
    assert status == 0 and "could not be fetched" in words  # no index: PyTorch stays away
    assert asked(python, tmp_path) == str(
        memlab.estimate(memlab.Model.preset("tiny-llama")).total()
    )
    assert run(python, cell, tmp_path) == (0, "")
    uninstalled(python, tmp_path)


def test_the_cell_installs_the_wheel_of_the_site(made, python, tmp_path):
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=made.parent))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        cell = memlab_install.cell(made.name, f"http://127.0.0.1:{server.server_port}/")
        assert run(python, cell, tmp_path)[0] == 0
    finally:
        server.shutdown()
        server.server_close()
    assert asked(python, tmp_path).isdigit()
    uninstalled(python, tmp_path)


def test_the_address_is_that_of_the_site():
    site = Addresses("https://github.com/example/memlab").site
    source = "".join(memlab_install.cell("memlab-1-py3-none-any.whl", site)["source"])
    assert "'https://example.github.io/memlab/memlab-1-py3-none-any.whl'" in source
    compile(source, "cell", "exec")


@pytest.mark.skipif(not NOTEBOOKS, reason="no book: `make book` builds it")
def test_every_downloaded_notebook_begins_with_it():
    offered = [path.name for path in SITE.glob("memlab-*.whl")]
    assert offered == [wheel.name()]
    for path in NOTEBOOKS:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        assert [cell.get("id") for cell in cells].count(memlab_install.ID) == 1
        assert cells[0]["id"] == memlab_install.ID and wheel.name() in "".join(cells[0]["source"])
    for page in SITE.glob("*/notebooks/04_*.html"):
        assert f'href="../../{wheel.name()}"' in page.read_text(encoding="utf-8")
        assert memlab_install.ID not in page.read_text(encoding="utf-8")
