"""What pytest does everywhere here: skips that a machine may have, and what nbval compares."""

import os
import re

import pytest

# What the chapters print was stored without a GPU: their kernels are not to find one.
os.environ.setdefault("MEMLAB_DEVICE", "cpu")

# MEMLAB_REQUIRE=node,browser,book: a test that skips because one of them is missing fails.
REQUIRED = [name for name in os.environ.get("MEMLAB_REQUIRE", "").split(",") if name]


def refused(report):
    """Turn a skip whose reason says "no <required thing>" into a failure."""
    if report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2]
        for name in REQUIRED:
            if re.search(rf"\bno {re.escape(name)}\b", reason):
                report.outcome = "failed"
                report.longrepr = f"{reason}\nbut MEMLAB_REQUIRE asks for {name}"
    return report


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
