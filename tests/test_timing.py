"""A time ratio tells the slower way from the faster, and calls both equally often."""

import pytest

from memlab.measure.timing import time_ratio


def work(times):
    return lambda: sum(i * i for i in range(20_000 * times))


def test_ten_times_the_work_takes_longer():
    # Ten times the work; a factor of three leaves room for a machine that is busy.
    assert time_ratio(work(10), work(1)) > 3
    assert time_ratio(work(1), work(10)) < 1 / 3


def test_each_way_is_called_once_more_than_there_are_rounds():
    calls = []
    time_ratio(lambda: calls.append("new"), lambda: calls.append("old"), rounds=2)
    assert calls == ["old", "new"] * 3


def test_no_round_is_refused():
    with pytest.raises(ValueError, match="rounds=0 is less than 1"):
        time_ratio(work(1), work(1), rounds=0)
