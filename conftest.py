"""What pytest does everywhere here: skips that a machine may have, and what nbval compares."""

import gc
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import depth
import hypothesis
import pytest

# A busy machine is no failure: tests hold bytes, not seconds.
hypothesis.settings.register_profile(
    "memlab", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("memlab")
# tests/test_fuzz.py --hypothesis-profile=long: hours, and other draws in each run.
hypothesis.settings.register_profile("long", max_examples=10_000)

# Workers share the cores. A thread of torch that waits for work spins as long as it may, and takes
# the core from the other worker: this lets it sleep. The kernels of the chapters inherit it.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# What the chapters print was stored without a GPU: their kernels are not to find one.
os.environ.setdefault("MEMLAB_DEVICE", "cpu")

# MEMLAB_REQUIRE=node,browser,book: a test that skips because one of them is missing fails.
REQUIRED = [name for name in os.environ.get("MEMLAB_REQUIRE", "").split(",") if name]


# Long proofs of what a shorter test beside them, or .ci/run itself, also shows; and, of a test with
# many cases, those beside the few that tests/depth.py chooses.
DEEP = depth.DEPTH > 1


# Last, after -k and -m: who asks for a few cases by name gets them, and the few stand for them all.
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    if DEEP:
        return
    many = {}
    for item in items:
        if item.get_closest_marker("deep"):
            item.add_marker(pytest.mark.skip(reason="long: MEMLAB_DEPTH=2 runs it"))
        elif sample := item.get_closest_marker("sample"):
            function = (item.parent.nodeid, item.originalname, *sample.args)
            many.setdefault(function, []).append(item)
    for (_, _, count, *_), cases in many.items():
        taken = depth.chosen([item.name for item in cases], count)
        for place, item in enumerate(cases):
            if place not in taken:
                reason = f"one of {len(cases)}: MEMLAB_DEPTH=2 runs it"
                item.add_marker(pytest.mark.skip(reason=reason))


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="skip what takes long: tests/quick.py")


def pytest_configure(config):
    """Let matplotlib list the fonts before a chapter draws: it says so once, in some cell."""
    config.addinivalue_line("markers", "deep: runs where MEMLAB_DEPTH is more than 1")
    config.addinivalue_line(
        "markers",
        "sample(n): n of the cases run; all of them where MEMLAB_DEPTH is more than 1",
    )
    if config.getoption("quick"):
        import quick

        config.pluginmanager.register(quick.Quick())
    if config.getoption("nbval", False) and not hasattr(config, "workerinput"):
        fonts = [sys.executable, "-c", "import matplotlib.font_manager"]
        subprocess.run(fonts, capture_output=True)


def refused(report):
    """Turn a skip whose reason says "no <required thing>" into a failure."""
    if report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2]
        for name in REQUIRED:
            if re.search(rf"\bno {re.escape(name)}\b", reason):
                report.outcome = "failed"
                report.longrepr = f"{reason}\nbut MEMLAB_REQUIRE asks for {name}"
    return report


@pytest.fixture(autouse=True)
def imported_modules_are_no_garbage():
    """Leave what an import made out of every collection: a whole one takes 0.7 s with torch in.

    memlab collects before it counts bytes, some thousand times in these tests, and a family's code
    is imported where it is first met. Garbage of a test is still found: what is frozen was alive
    after a collection. What was frozen before is not looked through again: nothing of a test lives
    when the next one begins, but for fixtures, whose memory stays if they are a cycle.
    """
    if len(sys.modules) != seen["modules"]:
        gc.collect()
        gc.freeze()
        seen["modules"] = len(sys.modules)


seen = {"modules": 0}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    return refused((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    return refused((yield))


def pytest_collectstart(collector):
    """Do not compare figures: their bytes change with matplotlib; their numbers are printed."""
    if hasattr(collector, "skip_compare"):
        collector.skip_compare += ("image/svg+xml",)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Let a chapter's kernel write down every answer to its questions, as their pages need them."""
    if asks(item) and item.parent.kernel is None:
        folder = tempfile.TemporaryDirectory()
        item.parent.answers = folder
        os.environ["MEMLAB_ANSWERS"] = str(Path(folder.name, "answers.jsonl"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item, nextitem):
    """After its last cell hold the answers against those that the repository keeps."""
    yield
    if asks(item) and (nextitem is None or nextitem.parent is not item.parent):
        import answers

        os.environ.pop("MEMLAB_ANSWERS")
        with item.parent.answers as folder:
            questions = answers.questions_in(Path(folder, "answers.jsonl"))
        if why := answers.difference(item.path, questions):
            pytest.fail(
                f"{why}: run python tools/answers.py notebooks/{item.path.name}", pytrace=False
            )


def asks(item):
    """Whether an item is a cell of one of the book's notebooks, run by nbval."""
    return hasattr(item.parent, "kernel") and item.path.parent.name == "notebooks"
