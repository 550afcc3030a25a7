"""What `make quick` leaves out: a test that asks for more than Python, memlab and a few steps.

Nobody lists the quick tests. One that imports a package which is installed beside memlab (torch,
the book's, the browser's), starts a program, looks into the built book or simulates many steps is
skipped in the moment when it does.
"""

import sys
import sysconfig
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

from memlab.step.core.storage_log import Log

STEPS = 3  # simulated in one test, each in tens of milliseconds
BESIDE = sysconfig.get_path("purelib"), sysconfig.get_path("platlib")
BOOK = str(Path(__file__).resolve().parent.parent / "_build")
PROGRAMS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"}
FILES = {"open", "os.scandir", "os.listdir"}


class Quick:
    """A plugin of pytest that is there with --quick."""

    def __init__(self):
        self.looks, self.steps = False, 0

    def pytest_sessionstart(self):
        def counted(log, begin=Log.__init__):
            self.steps += 1
            if self.steps > STEPS:
                left_out(f"more than {STEPS} steps")
            begin(log)

        Log.__init__ = counted
        sys.addaudithook(self.audit)

    def pytest_collectstart(self):
        self.looks, self.steps = True, 0

    def pytest_runtest_setup(self):
        self.steps = 0

    def pytest_sessionfinish(self):
        self.looks = False  # what shows the results may import what it likes

    def audit(self, event, given):
        """Python says here what it is about to do: https://docs.python.org/3/library/audit_events.html."""
        if not self.looks:
            return
        if event == "import" and "." not in given[0]:
            found = PathFinder.find_spec(given[0])
            if found and (found.origin or "").startswith(BESIDE):
                left_out(f"it imports {given[0]}")
        elif event in PROGRAMS:
            left_out("it starts a program")
        elif event in FILES and str(given[0]).startswith(BOOK):
            left_out("it reads the built book")


def left_out(why):
    pytest.skip(f"not quick: {why}", allow_module_level=True)
