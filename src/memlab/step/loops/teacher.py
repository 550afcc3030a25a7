"""A teacher in a simulated step: a second network, of its own shape, that no gradient reaches."""

from __future__ import annotations

from contextlib import contextmanager

from ...recipe import Recipe
from ...run import Run
from ...run.recipe_choice import PRECISIONS, published
from ...run.teacher import check_vocabulary
from .. import keys, supported
from ..core.engine import SHOWN
from ..core.graph import Tensor, call
from ..core.setting import Setting
from ..kv_cache import Cache, cache_of
from ..networks import network
from ..ops import Ops
from ..windows import first_apart, windows

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class Judge:
    """The teacher's network in evaluation mode; its weights are the term "reference".

    They still ask for gradients, as TRL leaves them, so that autocast keeps their copies.

    Raises      ValueError for a teacher whose step is not described
    """

    def __init__(self, f: Ops, s: Setting, recipe: Recipe, run: Run) -> None:
        model, dtype = s.model, None
        if run.teacher is not None:
            model, dtype = run.teacher.model, run.teacher.weights
        dtype = dtype or published(model) or s.dtype
        check_vocabulary(s.model, model)
        keys.check_rows(model, dtype)
        keys.check(model.family, model.config)
        supported.check_shape(model, run)
        supported.check_config(model, run.replace(checkpoint="block"))  # which no teacher has
        like = recipe if dtype == s.dtype else PRECISIONS[dtype]
        near, sliding = windows(model)
        self.f = f
        self.setting = Setting(
            model,
            dtype,
            s.batch,
            s.tokens,
            supported.attention_of(model, like, run),
            extra=model.config,
            window=near,
            sliding=sliding,
            past=0 if run.loop == "gkd" else None,
        )
        first = None if f.shown >= s.model.layers else first_apart(model)  # all, as the student's
        self._shown = (model.layers, 1) if first is None else (SHOWN + first, 1 + first)
        trained, frozen = len(f.parameters), f.frozen
        f.frozen = ()
        with self._own_layers(), _without_adapters(f):
            self.network: Any = network(run.implementation, model.family)(f, self.setting)
        for parameter in f.parameters[trained:]:
            parameter.record.category = "reference"
        del f.parameters[trained:]
        f.frozen = frozen

    def hidden(self, ids: Tensor) -> Tensor:
        """What its body gives, without a graph."""
        with self._judging():
            return self._body(ids)

    def answered(self, ids: Tensor) -> tuple[Tensor, Cache]:
        """Its logits, and the cache that a call in evaluation mode leaves."""
        f, model = self.f, self.network
        with self._judging():
            cache = model.cache = cache_of(f, self.setting, model)
            logits = logits_of(f, model, self._body(ids))
            model.cache = None
            f.end_autocast()
            return widened(f, logits), cache

    def _body(self, ids: Tensor) -> Tensor:
        made: Tensor = call(self.network.body, ids)
        return made

    def forget(self, cache: Cache) -> None:
        """Let the cache of every layer go, those that are not simulated included."""
        with self._own_layers():
            cache.forget()

    @contextmanager
    def _judging(self) -> Iterator[None]:
        """Within the block there is no graph, and adapters are none of this model's."""
        f = self.f
        part, f.grad = f.part, False
        with self._own_layers(), _without_adapters(f):
            yield
        f.part, f.grad = part, True

    @contextmanager
    def _own_layers(self) -> Iterator[None]:
        """Within the block layers are counted as this model has them."""
        f = self.f
        before = f.shown, f.repeated, f.between
        f.shown, f.repeated = self._shown
        yield
        f.shown, f.repeated, f.between = before


def logits_of(f: Ops, model: Any, hidden: Tensor) -> Tensor:
    """The output head of a network, as its family makes logits."""
    made: Tensor = (
        model.logits(hidden) if hasattr(model, "logits") else f.linear(hidden, model.lm_head)
    )
    return made


def widened(f: Ops, logits: Tensor) -> Tensor:
    """What accelerate makes of an output that autocast left narrow: fp32.

    Source      accelerate, utils/operations.py: convert_outputs_to_fp32
    """
    return f.to(logits, "fp32") if f.autocast else logits


@contextmanager
def _without_adapters(f: Ops) -> Iterator[None]:
    """Those of the student are none of the teacher's."""
    doubled, adapters, dropout = f.doubled, f.adapters, f.lora_dropout
    f.doubled, f.adapters, f.lora_dropout = (), False, 0.0
    yield
    f.doubled, f.adapters, f.lora_dropout = doubled, adapters, dropout
