"""Sources whose every row asks for what memlab cannot say."""

from ..described import Refused

WHY = {
    "octocoder": "a family without a closed form, and the prompt's tokens are not stated",
    "badam": "layers that are trained one block at a time",
}


def describe(reading):
    """See WHY.

    Raises      Refused
    """
    raise Refused(WHY[reading.source])
