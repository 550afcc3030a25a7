"""What to say to an answer: one exercise, and the slips that any question about bytes invites."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import isclose

from .. import units
from ..base.messages import number, say, told

Value = int | float | Fraction | str

NOT_BYTES = "Bytes are whole numbers: write an integer, or text such as '1.5 GiB'."
NOT_A_NUMBER = "A number is asked for."
BITS = "That is the number of bits; a byte holds eight."
EIGHTH = "That is an eighth of it: bytes were divided by 8 once too often."
DECIMAL = "Those are powers of ten (GB); memory is counted in powers of two (GiB)."
BINARY = "Those are powers of two (GiB); here powers of ten (GB) are asked for."
CLOSE = "Very close: something was rounded on the way. Count to the last byte."


@dataclass(frozen=True)
class Exercise:
    """One question: how its answer is computed and what helps whoever misses it."""

    name: str
    answer: Callable[[], Value]
    hint: str
    unit: str
    wrong: Mapping[Callable[[], Value], str]

    def judge(self, given: object) -> str:
        """The line to print: ○, ✓ with the answer, or ✗ with a hint."""
        if given is ...:
            return "○ …"
        right = self.answer()
        try:
            value = self._read(given, right)
        except ValueError as error:
            return f"✗ {say(str(error))}"
        if _same(value, right):
            return f"✓ {self.show(right)}"
        for slip, sentence in self.wrong.items():
            if _same(value, slip()):
                return f"✗ {say(sentence)}"
        return f"✗ {say((self.unit == 'B' and _slip(value, right)) or self.hint)}"

    def show(self, value: Value) -> str:
        """The value with its unit; bytes without rounding."""
        if isinstance(value, str):
            return value
        if self.unit == "B":
            size = int(value)
            return number(f"{size:,} B" + (f", {units.text(size)}" if size >= units.KiB else ""))
        count = f"{value:,}" if isinstance(value, int) else f"{float(value):,.10g}"
        return told(f"{{1}} {self.unit}", count) if self.unit else number(count)

    def _read(self, given: object, right: Value) -> Value:
        """The answer as a value of the right kind, or a ValueError that says what is wanted."""
        if isinstance(right, str):
            return str(given)
        if self.unit == "B" and isinstance(given, str):
            try:
                return units.parse(given, bare=True)  # the question asks for bytes
            except ValueError as error:
                near = _rounded(given, right)
                raise ValueError(CLOSE if near else f"{error}. {NOT_BYTES}") from None
        if isinstance(given, str):
            words = given.strip().removesuffix(self.unit).strip().replace(",", "")
            try:
                return Fraction(words)
            except (ValueError, ZeroDivisionError):
                raise ValueError(NOT_A_NUMBER) from None
        if isinstance(given, bool) or not hasattr(given, "__float__"):
            raise ValueError(NOT_BYTES if self.unit == "B" else NOT_A_NUMBER)
        if isinstance(given, (int, Fraction)):
            return given
        number = float(given)
        if self.unit == "B" and not number.is_integer():
            raise ValueError(CLOSE if isclose(number, float(right), rel_tol=0.005) else NOT_BYTES)
        return number


def _same(value: Value, right: Value) -> bool:
    if isinstance(value, str) or isinstance(right, str):
        return str(value).strip().casefold() == str(right).strip().casefold()
    if isinstance(value, int) and isinstance(right, int):
        return value == right
    # A float that took another road to the same number may differ in its last digits.
    return isclose(value, right, rel_tol=1e-9)


def _slip(value: Value, right: Value) -> str | None:
    """The sentence for a slip that any question about bytes invites, if it is one."""
    if isinstance(value, str) or isinstance(right, str) or not right:
        return None
    ratio = Fraction(value) / Fraction(right)
    known = {Fraction(8): BITS, Fraction(1, 8): EIGHTH}
    for power in (1, 2, 3, 4):
        known[Fraction(1000, 1024) ** power] = DECIMAL
        known[Fraction(1024, 1000) ** power] = BINARY
    if ratio in known:
        return known[ratio]
    return CLOSE if abs(ratio - 1) < Fraction(1, 200) else None


def _rounded(given: str, right: Value) -> bool:
    """Whether a text such as "1.11 GiB" is the right answer to about three digits."""
    number, _, name = given.strip().rpartition(" ")
    size = {**units.BINARY, **units.DECIMAL}.get(name, 0)
    try:
        return isclose(float(number) * size, float(right), rel_tol=0.005)
    except ValueError:
        return False
