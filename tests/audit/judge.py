"""What a check of a claim returns, and the comparison most of them need."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """What became of a claim: the figure found, the verdict, and what belongs there."""

    result: str
    verdict: str = "holds"
    right_figure: str | None = None


def compare(claimed, found, say, *, within=0.005, slip="wrong model"):
    """Holds where the figures agree to `within` of the found one, else the slip that is named."""
    if abs(claimed - found) <= within * abs(found):
        return Finding(say(found))
    return Finding(say(found), slip, say(found))
