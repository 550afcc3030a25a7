"""The orders that chapter 26 draws: every schedule computes everything once, and can be run."""

import pytest

from memlab.lab.schedule_order import SCHEDULES, idle, in_flight, orders, timed
from memlab.terms import sharded_step


@pytest.mark.parametrize(("ranks", "count"), [(2, 2), (4, 6), (4, 12), (8, 8)])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_each_rank_computes_each_micro_batch_once(schedule, ranks, count):
    found = orders(schedule, ranks=ranks, micro_batches=count)
    kinds = "FIW" if schedule == "zero bubble" else "FB"
    assert all(sorted(o) == sorted(f"{k}{m}" for k in kinds for m in range(count)) for o in found)
    made = timed(found)
    assert [[turn[0] for turn in row] for row in made] == found
    for row in made:  # a rank does one thing at a time
        assert all(a[1] + a[2] <= b[1] for a, b in zip(row, row[1:], strict=False))


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_in_flight_is_the_formulas(schedule):
    for count in (4, 7, 16):
        found = orders(schedule, ranks=4, micro_batches=count)
        told = {"stages": 4, "schedule": schedule}
        formula = [sharded_step.in_flight(count, **told, stage=s) for s in range(4)]
        assert [in_flight(order) for order in found] == formula
        # Narayanan et al. 2021: p - 1 of m + p - 1.
        assert idle(timed(found)) == pytest.approx(3 / (count + 3))


def test_zero_bubble_waits_less_and_holds_as_much_everywhere():
    found = orders("zero bubble", ranks=4, micro_batches=8)
    assert [in_flight(order) for order in found] == [4] * 4
    # Qi et al. 2024: (p - 1)(F + I - W) of the whole, with F = I = W = 1.
    assert idle(timed(found)) == pytest.approx(3 / (3 * 8 + 3))


def test_wrong_input_is_named():
    with pytest.raises(ValueError, match="schedule='zigzag'; known: gpipe, 1f1b, zero bubble"):
        orders("zigzag", ranks=2, micro_batches=2)
    with pytest.raises(ValueError, match="micro_batches=2; at least R=4 are needed"):
        orders("gpipe", ranks=4, micro_batches=2)
    with pytest.raises(ValueError, match="every rank waits for another"):
        timed([["B0", "F0"]])
