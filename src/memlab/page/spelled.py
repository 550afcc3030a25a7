"""Formulas as a person writes them: a sum of products in the letters of the book."""

from __future__ import annotations

from ..formats import bytes_per_value
from ..recipe import Recipe
from ..units import text
from . import words as say
from .peak import LAYERS, value

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from .peak import Products

NAMES = {"U": "(T+1)", "W": "⌈T⌉", "Y": "⌈T⌉", "h": "H/8", "G": "N/K", "Q": "(N/K+2)"}
NAMES |= {"m": "M", "s": "M′"}
ORDER = "BTUWYCkDFmsXGQNKHhVP"


def stored(term: str, count: int, recipe: Recipe) -> str:
    """How a term that stays comes about."""
    formats = {
        "weights": recipe.weights,
        "master": recipe.master,
        "gradients": recipe.gradients,
    }
    kept = formats.get(term)
    if kept is not None:
        return f"P · b = {count:,} · {bytes_per_value(kept):g} B ({kept})"
    # Rounded as whole numbers: the engines print the last digit of a float differently.
    each = int(recipe.bytes_per_parameter()["optimizer"] * 1000 + 0.5) / 1000
    return say.OPTIMIZER_STATES.format(optimizer=recipe.optimizer, size=f"{each:g}")


def spelled(products: Products, sizes: dict[str, int], layers: int, room: int = 0) -> str:
    """A sum of products: the four largest, and how many more; before them the optimizer's room."""
    found = [word for word in products if value({word: products[word]}, sizes)]
    parts = sorted(found, key=lambda word: (-value({word: products[word]}, sizes), word))
    said = []
    for word in parts[:4]:
        said.append(in_letters(word, products[word], sizes, layers))
    if len(parts) > 4:
        rest = sum([value({word: products[word]}, sizes) for word in parts[4:]])
        said.append(say.SMALLER.format(size=text(rest), count=len(parts) - 4))
    if room:
        said = [say.ROOTS.format(size=text(room))] + said
    return " + ".join(said) if said else "0"


def in_letters(word: str, count: int, sizes: dict[str, int], layers: int) -> str:
    """One product as the book writes it: "10 · B · T · (L−1) · N · H"."""
    left = list(word)
    many = []
    if left and left[0] in LAYERS:  # so many layers
        number = sizes[left.pop(0)]
        if number == layers:
            many = ["L"]
        elif number == layers - 1:
            many = ["(L−1)"]
        elif number > 1:
            many = [f"{number:,}"]
    while "G" in left and "K" in left:  # N / K times K
        left.remove("G")
        left.remove("K")
        left.append("N")
    while "h" in left and count % 8 == 0:  # H is eight of them
        left.remove("h")
        left.append("H")
        count //= 8
    named = [NAMES.get(x, x) for x in ORDER for _ in range(left.count(x))]
    return " · ".join([f"{count:,}"] + many + named)
