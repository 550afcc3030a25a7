"""Model + Recipe -> Ledger: the resident bytes of a training run, term by term."""

from .ledger import Ledger
from .model import Model
from .recipe import Recipe
from .resident import resident
from .resident import tensor_bytes as tensor_bytes
from .sharding import Sharding


def estimate(model: Model, recipe: Recipe | str = "fp32", *, stage: int = 0) -> Ledger:
    """Derive the bytes that stay allocated from one training step to the next.

    Formula     sum over parameter tensors of weights + master + gradients + accumulator + state;
                with `recipe.sharding`, of the part of each that one rank holds
    Shapes      model.tensors(): each kind of tensor, its shape and how many there are of it
    Unit        bytes; one row a term, column `derived`; of several ranks, those of the fullest of
                this pipeline stage: its rank 0
    Source      memlab.terms.weights, .gradients, .optimizer, .sharding
    Leaves out  activations, logits, temporaries, and what the allocator adds
    Raises      ValueError for an unknown recipe name, and where the sharding does not divide the
                model
    """
    chosen = Recipe.named(recipe) if isinstance(recipe, str) else recipe
    shaped = model if chosen.tie is None else model.replace(tied=chosen.tie)
    cut = chosen.sharding or Sharding()
    figures = resident(shaped, chosen, stage)
    title = f"{shaped.name} · {chosen.name}"
    if chosen.sharding:
        where = f"stage {stage} of {cut.pipeline}, " if cut.pipeline > 1 else ""
        title += f" · {cut}: {where}one rank of {cut.ranks:,}"
    return Ledger.of("derived", figures, title=title)


def fullest_stage(model: Model, recipe: Recipe) -> int:
    """The pipeline stage whose ranks hold most; 0 without a pipeline.

    Raises      as `estimate`
    """
    stages = recipe.sharding.pipeline if recipe.sharding else 1
    return max(range(stages), key=lambda stage: estimate(model, recipe, stage=stage).total())


def by_component(model: Model, recipe: Recipe | str = "fp32", *, term: str = "weights") -> Ledger:
    """One term of the estimate, split by the part of the network that pays for it.

    Unit        bytes; one row a component (embedding, attention, feed_forward …)
    Leaves out  what belongs to no parameter (the learning rate that torchao keeps as a tensor)
    Raises      ValueError for an unknown recipe, or for a term that it does not have
    """
    chosen = Recipe.named(recipe) if isinstance(recipe, str) else recipe
    shaped = model if chosen.tie is None else model.replace(tied=chosen.tie)
    figures: dict[str, int] = {}
    for tensor in shaped.tensors():
        sizes = tensor_bytes(tensor, chosen)
        if term not in sizes:
            raise ValueError(f"{chosen.name} has no term {term!r}; it has: {', '.join(sizes)}")
        figures[tensor.component] = figures.get(tensor.component, 0) + sizes[term] * tensor.copies
    return Ledger.of("derived", figures, title=f"{shaped.name} · {chosen.name} · {term}")
