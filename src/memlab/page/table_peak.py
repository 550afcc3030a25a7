"""The highest moment of a step: from the moments of its kind, and what stays between two steps."""

from __future__ import annotations

import json

from ..formats import bytes_per_value, storage
from ..model import Model
from ..recipe import Recipe
from ..recipe.resident import fullest, stepped
from ..run import Run
from ..run.loops import TAUGHT
from ..run.optimizer_loops import loop_of
from ..run.recipe_choice import published
from ..step import keys
from ..terms.optimizer_step import step_room
from . import adapter_tables, fsdp_tables, loop_tables, torch_loss_tables
from .formula_text import spelled, stored
from .layer_forms import layers_of, table_of
from .peak import EVERY, LAYERS, kind_of, places, precision_of, value
from .supported import Unknown, check, no_kind, why

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable

    from .peak import Counts, Products

    # Name of a file of moments, kind of step -> their JSON, "" where there is no such kind, "?"
    # where the file has not been fetched.
    Lookup = Callable[[str, str], str]
    Rows = dict[str, tuple[int, str]]

BUCKETS = "reduce buckets"  # of DDP: a copy of all gradients
HILLS = ("forward", "loss", "backward", "optimizer")


class Missing(Exception):
    """The moments of a family in a precision are not here yet; the page fetches them."""


class Highest:
    """The highest moment of a step.

    moment      the hill that it is the top of: the first one, if several are as high
    total       bytes
    hills       {name of a hill: bytes at its top}, in the order of a step
    Raises      Unknown where the step is not described; Missing
    """

    def __init__(self, model: Model, recipe: Recipe, run: Run, lookup: Lookup) -> None:
        moments = moments_of(model, recipe, run, lookup)
        self._sizes = adapter_tables.letters_of(model, run) | loop_tables.letters_of(model, run)
        self._sizes.update(fsdp_tables.letters_of(model, run))
        self._known: dict[str, int] = {}
        kept = at_rest(model, recipe, run)
        self._kept = {name: kept[name] for name in kept if name != "gradients"}
        self._roots = room_of(model, recipe, run, kept)
        below = sum([self._kept[name][0] for name in self._kept])
        around = places(layers_of(model, run))
        tops: dict[str, tuple[int, dict[str, Products], Counts]] = {}
        for hill, place, parts in moments:
            each = self._each(parts)
            for bit in sorted(around):
                if not place & bit:
                    continue
                for counts in around[bit]:
                    height = below + each[0]
                    for at in range(len(LAYERS)):
                        height += each[at + 1] * counts[at]
                    if hill == "optimizer":
                        height += self._roots
                    if hill not in tops or height > tops[hill][0]:
                        tops[hill] = (height, parts, counts)
        self.hills = {name: tops[name][0] for name in HILLS if name in tops}
        self.total = max([self.hills[name] for name in self.hills])
        self.moment = [name for name in HILLS if self.hills.get(name) == self.total][0]
        self._layers = model.layers
        self._tops = tops

    def rows(self) -> Rows:
        """What is held then: {term: (bytes, formula)}."""
        rows = dict(self._kept)
        held, (parts, room) = self.stack(self.moment), self._made_of(self.moment)
        for name in EVERY:
            if name in held:
                more = room if name == "other" else 0
                formula = spelled(parts.get(name, {}), self._sizes, self._layers, more)
                rows[name] = (held[name], formula)
        return rows

    def stack(self, hill: str) -> dict[str, int]:
        """What the top of a hill is made of: {term: bytes}."""
        parts, room = self._made_of(hill)
        made = {name: self._kept[name][0] for name in self._kept}
        for name in EVERY:
            size = value(parts.get(name, {}), self._sizes) + (room if name == "other" else 0)
            if size:
                made[name] = size
        return made

    def _made_of(self, hill: str) -> tuple[dict[str, Products], int]:
        """The products of a hill's top, read for its layers, and the room of the optimizer's."""
        _, parts, counts = self._tops[hill]
        for at in range(len(LAYERS)):
            self._sizes[LAYERS[at]] = counts[at]
        return parts, self._roots if hill == "optimizer" else 0

    def _each(self, parts: dict[str, Products]) -> list[int]:
        """What is held outside of layers, and for each layer below and above, of all kinds."""
        made = [0] * (1 + len(LAYERS))
        for name in parts:
            products = parts[name]
            for word in products:
                at = LAYERS.find(word[0]) + 1 if word else 0
                plain = word[1:] if at else word
                made[at] += products[word] * self._worth(plain)
        return made

    def _worth(self, word: str) -> int:
        if word not in self._known:
            self._known[word] = value({word: 1}, self._sizes)
        return self._known[word]


def at_rest(model: Model, recipe: Recipe, run: Run) -> Rows:
    """The rows that stay from step to step, of the pipeline stage that holds most."""
    if run.lora is not None:
        from . import adapters_resident  # fetched with the first adapters, as below

        kept = adapters_resident.rows(model, recipe, run)
        return with_others(kept, model, recipe, run)
    _, figures = fullest(model, recipe, run.devices)
    count = model.parameter_count
    kept = {name: (figures[name], stored(name, count, recipe)) for name in figures}
    more, _ = loop_tables.widened(model, recipe, run)
    if more:
        size, formula = kept["optimizer"]
        kept["optimizer"] = (size + more, formula)
    if run.reference_model == "model":
        kept["reference"] = kept["weights"]
    return with_others(kept, model, recipe, run)


def with_others(kept: Rows, model: Model, recipe: Recipe, run: Run) -> Rows:
    """The rows, a teacher, and under DDP its buckets: tests/test_ddp_steps.py counts them."""
    if run.loop in TAUGHT:
        teacher = run.teacher
        of = teacher.model if teacher else model
        told = (teacher and teacher.weights) or published(of) or recipe.weights
        count = of.parameter_count
        formula = f"P · b = {count:,} · {bytes_per_value(told):g} B ({told})"
        kept["reference"] = (storage(count, told), formula)
    if run.devices.replicated:
        kept[BUCKETS] = kept["gradients"]
    return kept


def room_of(model: Model, recipe: Recipe, run: Run, kept: Rows) -> int:
    """What the optimizer's part of a step needs for a moment: clipping, and then the update."""
    room = roots(model, recipe, run, kept)
    if not run.clips:
        return room
    if run.lora is None:
        count = len(stepped(model))
    else:
        from . import adapters_resident

        count = sum([copies for _, copies in adapters_resident.tensors(model, run.lora)])
    return max(room, loop_tables.norms(run, count, width_of(recipe, run)))


def width_of(recipe: Recipe, run: Run) -> float:
    """Bytes of a number in the format of the gradients."""
    own = recipe.weights if run.lora is None else run.adapters_in(recipe.weights)
    return bytes_per_value(own)


def roots(model: Model, recipe: Recipe, run: Run, kept: Rows) -> int:
    """What the optimizer's loop needs for a moment, of a model on one device.

    A master copy is updated by fp32 gradients, which the step makes of narrow ones.
    """
    if run.lora is not None:
        from . import adapters_resident

        return adapters_resident.room(model, recipe, run)
    if run.devices.fsdp:
        return fsdp_tables.room(model, recipe, run)
    name = recipe.optimizer
    wide = kept["master"][0] if "master" in kept and recipe.gradients != recipe.master else 0
    if name == "galore" or name.startswith("galore/"):
        return wide
    loop = loop_of(recipe, run)
    if name != "adamw":
        return wide + step_room(name, stepped(model), format=recipe.updated, loop=loop)
    if loop == "fused":
        return wide
    return wide + (kept["master"][0] if "master" in kept else kept["weights"][0])


def moments_of(
    model: Model, recipe: Recipe, run: Run, lookup: Lookup
) -> list[tuple[str, int, dict[str, Products]]]:
    """The moments of this kind of step: its hill, its places, and by term what is held.

    Raises      Unknown, Missing; ValueError for adapters that are not described here
    """
    if run.lora is not None:
        from . import adapters_resident

        adapters_resident.check(model, recipe, run)
    try:
        keys.check_rows(model, recipe.weights)
    except ValueError as error:
        raise Unknown(why(error)) from None
    check(model, run)
    reason = loop_tables.refused(model, recipe, run) or fsdp_tables.refused(model, recipe, run)
    if reason:
        raise Unknown(reason)
    table, precision = table_of(model, run), precision_of(recipe)
    if run.library_loss and (reason := torch_loss_tables.refused(model, recipe, run)):
        raise Unknown(reason)
    name, kind = f"{table}.{precision}", kind_of(model, recipe, run)
    if run.lora is not None:
        which = adapter_tables.which_of(model, run.lora)
        name = adapter_tables.table_of(table, precision, run.lora.base, which)
        kind = adapter_tables.kind_of(kind)
    if run.loop in loop_tables.TABLED:
        name = loop_tables.table_of(name, run.loop)
        kind = loop_tables.kind_of(kind, model, recipe, run)
    if run.devices.fsdp:
        name = fsdp_tables.file_of(name)
    if run.library_loss:
        name = torch_loss_tables.file_of(name)
    found = lookup(name, kind)
    if found == "?":
        raise Missing(name)
    if not found:
        raise Unknown(no_kind(model, run))
    moments = json.loads(found)
    loop_tables.completed(moments, precision, run, width_of(recipe, run))
    return moments
