"""Recipe: what turns a parameter into bytes.

"16 bytes per parameter" means nothing until it is said which copies are kept, in which format, by
which optimizer. A Recipe says it. The named ones reproduce the figures in circulation, and each
says what its figure hides.
"""

from __future__ import annotations

from ..base.frozen import dataclass, replace
from ..formats import Format, bytes_per_value, format_of
from ..terms.optimizer import state
from .recipe_table import NAMED

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The formats and the optimizer of a training run.

    weights       format of the parameters that the network computes with
    other         format of what a quantizer leaves alone (embeddings, norms, biases), where that
                  is not the format of the weights
    head          format of an output head that a quantizer leaves alone as well, or None
    master        format of a second copy that the optimizer updates, or None
    gradients     format of the gradients, or None where a figure leaves them out
    accumulator   format of a second gradient buffer that sums micro-batches, or None
    optimizer     one of memlab.terms.optimizer.OPTIMIZERS, or "galore/" and a rank
    states        formats of the optimizer's states, one each; None: the format it updates in
    autocast      format into which torch.autocast casts weights for each forward, or None
    tie           True or False overrides whether the model's output head is its embedding
    hides         what a named figure leaves out
    source        who quotes it
    Raises        ValueError for an unknown format or optimizer, for a wrong number of states
    """

    name: str = "custom"
    weights: str = "fp32"
    other: str | None = None
    head: str | None = None
    master: str | None = None
    gradients: str | None = "fp32"
    accumulator: str | None = None
    optimizer: str = "adamw"
    states: Sequence[str] | None = None
    autocast: str | None = None
    tie: bool | None = None
    hides: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        for field in ("weights", "other", "head", "master", "gradients", "accumulator", "autocast"):
            value = getattr(self, field)
            if value is None and field != "weights":
                continue
            _known_format(field, value)
        for value in self.states or ():
            _known_format("states", value)
        if self.states is not None:
            object.__setattr__(self, "states", tuple(self.states))
        if self.tie not in (None, True, False):
            raise TypeError(f"tie={self.tie!r}; True, False or None is needed")
        self.state_bytes((1,))  # an unknown optimizer or a wrong number of states fails here

    @classmethod
    def named(cls, name: str) -> Recipe:
        """A recipe by name; `recipes()` lists them. Capitals, and - or _, do not matter.

        Raises      ValueError for an unknown name
        """
        if name not in NAMED:
            from ..base.suggestion import (
                spelled,  # which the page, whose names are right, does without
            )

            name = spelled("recipe", name, NAMED)
        return cls(name=name, **NAMED[name])

    def replace(self, **changes: Any) -> Recipe:
        """A copy with some fields changed; its name says so unless it is changed too."""
        changes.setdefault("name", f"{self.name}*")
        return replace(self, **changes)

    @property
    def updated(self) -> str:
        """Format of the copy that the optimizer updates, and so by default of its states."""
        return self.master or self.other or self.weights

    def state_bytes(self, shape: Sequence[int], hidden: bool = True) -> int:
        """Bytes of the optimizer's state for one parameter tensor of this shape."""
        if self.optimizer == "muon" and hidden and len(shape) != 2:
            hidden = False
        return state(
            self.optimizer,
            shape=tuple(shape),
            format=self.updated,
            hidden=hidden,
            formats=self.states,
        )

    def bytes_per_parameter(self) -> dict[str, float]:
        """Resident bytes of one parameter in a large matrix, copy by copy.

        Unit        bytes; a fraction where a block shares its scale
        Leaves out  the optimizer's rules for small tensors and its step counters, and the
                    `autocast` copies, which live from forward to backward only; of a copy that
                    several ranks divide, the bytes are those of all of them together
        """
        kept = {
            "weights": self.weights,
            "master": self.master,
            "gradients": self.gradients,
            "accumulator": self.accumulator,
        }
        table = {copy: bytes_per_value(name) for copy, name in kept.items() if name is not None}
        # The cost of growing a large matrix: what a tensor pays once (a counter, a table) cancels.
        side = 2**12
        grown = self.state_bytes((2 * side, side)) - self.state_bytes((side, side))
        return table | {"optimizer": grown / side**2}

    def __str__(self) -> str:
        parts = [f"{copy} {size:g}" for copy, size in self.bytes_per_parameter().items() if size]
        total = sum(self.bytes_per_parameter().values())
        cast = f" (+{bytes_per_value(self.autocast):g} while autocast)" if self.autocast else ""
        return f"{self.name}: {' + '.join(parts)} = {total:g} B per parameter{cast}"


def recipes() -> list[str]:
    """The names that `Recipe.named` knows."""
    return list(NAMED)


def _known_format(field: str, value: str | Format) -> None:
    try:
        format_of(value)
    except (ValueError, TypeError) as error:
        raise type(error)(f"{field}: {error}") from None
