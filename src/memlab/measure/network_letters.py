"""Sizes in letters: a recorded network is played at sizes that it was not recorded with."""

from collections.abc import Iterable
from fractions import Fraction


class Letters:
    """Sizes that can be told apart: each is a power of two times a prime of its own.

    sizes       by letter; D is a multiple of N, as some configs want it
    special     sizes that are no products, by what they are called
    constants   sizes that no letter stands for: written as they are, and their products too
    """

    def __init__(
        self, sizes: dict[str, int], special: dict[int, str], constants: Iterable[int] = ()
    ) -> None:
        self.special, self.sizes = special, sizes
        self.constants = {prime for size in constants for prime in _odd(size)}
        self.primes = {max(_odd(size)): each for each, size in sizes.items() if size > 1}
        heads = _odd(sizes["N"])
        self.primes = {p: letter for p, letter in self.primes.items() if p not in heads}
        if len(heads) == 1:  # own heads, or one that all share
            self.primes |= {heads[0]: "N"}
        elif heads:
            self.primes |= {min(heads): "K", max(heads): "G"}
            self.sizes = {**sizes, "G": sizes["N"] // sizes["K"]}

    def of(self, number: int) -> str:
        """A size as a product of letters: 2·M, H/2, B·T·k."""
        if number in self.special:
            return self.special[number]
        rest, found = Fraction(number), []
        for letter in ("D", "N"):
            odd = _odd(self.sizes[letter])
            while odd and all(rest.numerator % p == 0 for p in odd):
                rest /= self.sizes[letter]
                found.append(letter)
        for prime in _odd(rest.numerator):
            if prime in self.primes:
                found.append(self.primes[prime])
                rest /= self.sizes[found[-1]]
        if rest.numerator > 7 and not set(_odd(rest.numerator)) <= self.constants:
            raise ValueError(f"{number} is no product of {self.sizes}")
        words = "·".join(sorted(found))
        if rest.numerator != 1 or not words:
            words = f"{rest.numerator}·{words}" if words else str(rest.numerator)
        return words if rest.denominator == 1 else f"{words}/{rest.denominator}"

    def shape(self, shape: tuple[int, ...]) -> str:
        return " ".join(self.of(size) for size in shape)


def _odd(number: int) -> list[int]:
    """The odd prime factors."""
    found, p = [], 2
    while number > 1:
        while number % p == 0:
            found.append(p)
            number //= p
        p += 1
    return [p for p in found if p != 2]
