"""Weights that are not trained, or are there once where two were counted."""

from __future__ import annotations

from ...model.tensors import COMPONENTS
from ...run.recipe_choice import tied_as
from ..case import Case
from .cause import OFTEN, SELDOM, SOMETIMES, Cause
from .of_work import TRAINABLE
from .turns import as_changed

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from .turns import Turn

NAMES = "print([n for n, p in model.named_parameters() if not p.requires_grad])"
LORA = "LoRA of rank 16 on every linear layer"
NF4 = "the same LoRA on a base in nf4"
HEAD_ALONE = (*(part for part in COMPONENTS if part != "lm_head"), "other")
BOTH, FEED_FORWARD = "embedding and output head not trained", "the feed-forward layers not trained"
TIED = "tied embeddings: the output head is the embedding"
TIE = "print(model.config.tie_word_embeddings)"


def _frozen(*parts: str) -> Turn:
    """The same with these components not trained, of those that the model has."""

    def turned(case: Case) -> Case | None:
        run = case.run
        if run.tokens is None or run.frozen or run.adapters is not None:
            return None
        there = {tensor.component for tensor in case.model.tensors()}
        names = tuple(part for part in parts if part in there)
        left = there - set(names)
        return case.replace(run=run.replace(frozen=names)) if names and left else None

    return turned


def _tied(case: Case) -> Case | None:
    if case.model.tied:
        return None
    recipe = case.recipe.replace(name=case.recipe.name, tie=True)
    return case.replace(model=tied_as(case.model, recipe), recipe=recipe)


EMBEDDING = ("embedding", "positions")
LESS = (
    Cause("adapters alone are trained (LoRA)", OFTEN, "trained", as_changed(LORA), TRAINABLE),
    Cause("adapters alone, on a base in nf4", SOMETIMES, "trained", as_changed(NF4), TRAINABLE),
    Cause("the embedding not trained", SOMETIMES, "trained", _frozen(*EMBEDDING), NAMES),
    Cause(BOTH, SOMETIMES, "trained", _frozen(*EMBEDDING, "lm_head"), NAMES),
    Cause(FEED_FORWARD, SELDOM, "trained", _frozen("feed_forward"), NAMES),
    Cause("the output head alone trained", SELDOM, "trained", _frozen(*HEAD_ALONE), NAMES),
    Cause(TIED, SOMETIMES, "tied", _tied, TIE),
)
