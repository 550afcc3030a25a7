"""Formulas as a person writes them: a sum of products in the letters of the book."""

from __future__ import annotations

from ..base.message import Listed, Message
from ..formats import bytes_per_value
from ..recipe import Recipe
from ..units import text
from . import words as say
from .peak import KINDS, LAYERS, value

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from .peak import Products

NAMES = {"U": "(T+1)", "W": "⌈T⌉", "Y": "⌈T⌉", "h": "H/8", "G": "N/K", "Q": "(N/K+2)"}
NAMES |= {"R": "r", "m": "M", "s": "M′", "g": "n_group", "b": "topk_group"}
NAMES |= {"c": "kv_lora_rank", "q": "q_lora_rank", "w": "(kv_lora_rank+qk_rope_head_dim)"}
NAMES |= {"p": "qk_nope_head_dim/8", "r": "qk_rope_head_dim/8", "u": "v_head_dim/8"}
NAMES |= {"t": "(T−1)", "z": "T_learned", "Z": "T_prompt"}
NAMES |= dict.fromkeys("ial", "n_tile") | dict.fromkeys("jxy", "c_tile")  # of TRL's head
NAMES["e"] = "(qk_nope_head_dim+v_head_dim)/8"
ORDER = "BTUWYtzZCialkDFmsXgbGQNKHhcqwpurejxyVPR"


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
    return Message(say.OPTIMIZER_STATES, optimizer=recipe.optimizer, size=f"{each:g}")


def spelled(products: Products, sizes: dict[str, int], layers: int, room: int = 0) -> str:
    """A sum of products: the four largest, and how many more; before them the optimizer's room."""
    parts = sorted(
        [part for part in counted(products, sizes) if part[0]],
        key=lambda part: (-part[0], part[3], part[1]),
    )
    said = []
    for _, count, many, word in parts[:4]:
        said.append(in_letters(word, count, many, layers))
    if len(parts) > 4:
        rest = sum([part[0] for part in parts[4:]])
        said.append(Message(say.SMALLER, size=text(rest), count=len(parts) - 4))
    if room:
        said = [Message(say.ROOTS, size=text(room))] + said
    return Listed(" + ", said) if said else "0"


def counted(products: Products, sizes: dict[str, int]) -> list[tuple[int, int, int, str]]:
    """The worth of each product, its number, in how many layers it is, and its letters.

    What layers of all kinds have as much of is told once; 0 layers: it is in none of them.
    """
    made = []
    for word in products:
        count, many, plain = products[word], 0, word
        if word and word[0] in LAYERS:
            at, plain = LAYERS.find(word[0]), word[1:]
            side = LAYERS[at - at % KINDS : at - at % KINDS + KINDS]
            alike = [each for each in side if products.get(each + plain, 0) == count]
            if alike[0] != LAYERS[at]:
                continue
            many = sum([sizes[each] for each in alike])
            if not many:
                continue
        worth = value({plain: count}, sizes) * (many or 1)
        made.append((worth, count, many, plain))
    return made


def in_letters(word: str, count: int, layers_in: int, layers: int) -> str:
    """One product as the book writes it: "10 · B · T · (L−1) · N · H"."""
    left = list(word)
    many = []
    if layers_in == layers:
        many = ["L"]
    elif layers_in and layers_in == layers - 1:
        many = ["(L−1)"]
    elif layers_in > 1:
        many = [f"{layers_in:,}"]
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
