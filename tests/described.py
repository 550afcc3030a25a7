"""What memlab derives alone: a question that is not described stays refused, and is not rehearsed.

A rehearsal takes seconds; tests of refusals and of many drawn questions ask for the refusal itself.
"""

import contextlib
from unittest.mock import patch

from memlab.base.not_described import NotDescribed
from memlab.cli import rehearsed


def _refuse(*given, **_):
    raise next(each for each in given if isinstance(each, NotDescribed))


@contextlib.contextmanager
def described_alone():
    with patch.object(rehearsed, "answer", _refuse):
        yield
