"""Posted readings of what a process uses on a GPU, less the segments of its tensor."""

import pytest

from memlab.terms.context import READINGS, Reading
from memlab.units import GiB, MiB


def test_a_segment_is_no_context():
    lazy, eager = (each for each in READINGS if "86509" in each.source)
    assert lazy.tensor == eager.tensor == 6_400_000
    assert lazy.reserved == 20 * MiB  # between 1 and 10 MiB
    assert lazy.context == 253.75 * MiB and eager.context == 615.75 * MiB
    assert (lazy.loading, eager.loading) == ("LAZY", "EAGER")


def test_without_a_tensor_all_is_context():
    reading = Reading("x", "LAZY", 426 * MiB, 0, "https://example.org")
    assert reading.reserved == 0 and reading.context == 426 * MiB


@pytest.mark.parametrize("reading", READINGS, ids=lambda each: f"{each.versions} {each.loading}")
def test_each_has_a_source_and_a_plausible_size(reading):
    assert reading.source.startswith("https://github.com/")
    assert reading.loading in ("LAZY", "EAGER")
    assert 0.2 * GiB < reading.context < 2 * GiB


def test_fewer_kernels_take_less():
    for loading in ("2.1.1", "v1.13"):
        pair = {r.loading: r.context for r in READINGS if r.versions.split(",")[0] == loading}
        assert pair["LAZY"] < pair["EAGER"]
