"""A figure as somebody printed it, and whether a number of bytes, or a count, is what it says.

A printed figure says as much as its digits: 16 GB is all from 15.5 to 16.5 GB, and 15.62 GB all
from 15.615 to 15.625. Everything here is exact; what is shown is rounded by memlab.units.
"""

from __future__ import annotations

import re
from fractions import Fraction

from ..base.frozen import dataclass
from ..units import BINARY, DECIMAL, text

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    Number = int | float | bool

SISTERS = {"kB": "KiB", "MB": "MiB", "GB": "GiB", "TB": "TiB"}
SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
NOUNS = ("blocks", "parameters", "requests", "sequences", "tokens")
LONGEST = 30  # characters of one number: more digits than any figure about memory has
NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
ONE = re.compile(rf"({NUMBER}) ?([A-Za-z]*) ?([a-z]*)", re.ASCII)
RANGE = re.compile(rf"({NUMBER})(.*) to (.*)", re.ASCII)
FORM = "a figure is 16 GB, 14.96 GiB, 15 to 16 GB, at most 24 GB, at least 2 GiB, 442,736 tokens, "
FORM += "8.03 billion parameters, yes or no"


@dataclass(frozen=True)
class Figure:
    """What a figure allows: from `low` to `high`, in bytes or as a count.

    words       as it was printed
    low, high   None: there is no such end
    said        the figure as one number; None of a range, and of yes and no
    size        bytes of the unit; 0 for a count
    sure        of "yes" and "no": which
    """

    words: str
    low: Fraction | None
    high: Fraction | None
    said: Fraction | None
    size: int
    sure: bool | None = None

    def allows(self, found: Number, within: Fraction | None = None) -> bool:
        """Whether this is what the figure says, or no farther from it than a share of it."""
        if self.sure is not None or isinstance(found, bool):
            return found is self.sure
        if (self.low is None or found >= self.low) and (self.high is None or found <= self.high):
            return True
        return within is not None and abs(self.more(found)) <= within * self.nearest(found)

    def nearest(self, found: Number) -> Fraction:
        """The figure as one number: of a range the end that is nearer."""
        if self.said is not None:
            return self.said
        assert self.low is not None and self.high is not None
        return self.low if found < self.low else self.high

    def more(self, found: Number) -> Fraction:
        """What was found less the figure, exactly."""
        return Fraction(found) - self.nearest(found)

    def in_sister_unit(self) -> Figure | None:
        """The same digits in GiB where GB stands; None where no such unit does."""
        changed = re.sub(r"\b[kMGT]B\b", lambda unit: SISTERS[unit[0]], self.words)
        return None if changed == self.words else figure(changed)

    def shown(self, found: Number) -> str:
        """A number as it is written beside this figure: in its kind of unit."""
        if isinstance(found, bool):
            return "yes" if found else "no"
        if self.size:
            return text(round(found), decimal=self.size in DECIMAL.values())
        return f"{found:,}" if isinstance(found, int) else f"{found:,.4g}"

    def difference(self, found: Number) -> str:
        """Ours less the posted one, as a share of the posted one: "+0.38%"."""
        if self.sure is not None or isinstance(found, bool) or not self.nearest(found):
            return ""
        return f"{float(self.more(found) / self.nearest(found)):+.2%}".replace("-", "−")


def figure(line: str) -> Figure:
    """The figure that stands in a line of text.

    Example     figure("16 GB") allows 15,500,000,000 to 16,500,000,000 bytes
    Raises      ValueError for what is no figure, with what one looks like
    """
    words = " ".join(line.split())
    if words in ("yes", "no"):
        return Figure(words, None, None, None, 0, words == "yes")
    for before in ("at least ", "at most "):
        if words.startswith(before):
            said, _, size = _number(words.removeprefix(before), words)
            low, high = (said, None) if before == "at least " else (None, said)
            return Figure(words, low, high, said, size)
    if ends := RANGE.fullmatch(words):
        high, _, size = _number(ends[3], words)
        unit = ends[2] or ONE.sub(r" \2 \3", ends[3])  # "15 to 16 GB"
        low, _, other = _number((ends[1] + unit).strip(), words)
        if bool(size) != bool(other) or low > high:
            raise ValueError(f"{words!r} is no range: the smaller end first, both of one kind")
        return Figure(words, low, high, None, size)
    said, half, size = _number(words, words)
    return Figure(words, said - half, said + half, said, size)


def share(words: str) -> Fraction:
    """The share that "5 %" is.

    Raises      ValueError for anything but a percentage from 0 to 50
    """
    found = re.fullmatch(r"(\d{1,2}(?:\.\d{1,3})?) ?%", words, re.ASCII)
    if found is None or Fraction(found[1]) > 50:
        raise ValueError(f"{words!r} is no percentage from 0 % to 50 %, such as 5 %")
    return Fraction(found[1]) / 100


def _number(one: str, words: str) -> tuple[Fraction, Fraction, int]:
    """A number in bytes or as a count, half a step of its last digit, and its unit's bytes."""
    found = ONE.fullmatch(one)
    if found is None or len(found[1]) > LONGEST:
        raise ValueError(f"{words!r} is no figure; {FORM}")
    number, unit, noun = found[1].replace(",", ""), found[2], found[3]
    if unit in NOUNS and not noun:
        unit, noun = "", unit
    size = BINARY.get(unit) or DECIMAL.get(unit) or 0
    if (not size and unit not in ("", *SCALES)) or noun not in (("",) if size else ("", *NOUNS)):
        known = ", ".join([*BINARY, *list(DECIMAL)[1:], *SCALES, *NOUNS])
        raise ValueError(f"{words!r}: unknown unit {f'{unit} {noun}'.strip()!r}; known: {known}")
    scale = size or SCALES.get(unit, 1)
    places = len(number.partition(".")[2])
    return Fraction(number) * scale, Fraction(scale, 2 * 10**places), size
