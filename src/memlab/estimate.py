"""Model + Recipe -> Ledger: the resident bytes of a training run, term by term."""

from .ledger import Ledger
from .model import Model, Tensor
from .recipe import Recipe
from .terms.gradients import accumulator, gradients
from .terms.optimizer import learning_rates
from .terms.weights import weights


def estimate(model: Model, recipe: Recipe | str = "fp32") -> Ledger:
    """Derive the bytes that stay allocated from one training step to the next.

    Formula     sum over parameter tensors of weights + master + gradients + accumulator + state
    Shapes      model.tensors(): each kind of tensor, its shape and how many there are of it
    Unit        bytes; one row a term, column `derived`
    Source      memlab.terms.weights, .gradients, .optimizer
    Leaves out  activations, logits, temporaries, and what the allocator adds
    Raises      ValueError for an unknown recipe name
    """
    chosen = Recipe.named(recipe) if isinstance(recipe, str) else recipe
    shaped = model if chosen.tie is None else model.replace(tied=chosen.tie)
    figures: dict[str, int] = {}
    for tensor in shaped.tensors():
        for term, size in tensor_bytes(tensor, chosen).items():
            figures[term] = figures.get(term, 0) + size * tensor.copies
    figures["optimizer"] += learning_rates(chosen.optimizer)
    return Ledger.of("derived", figures, title=f"{shaped.name} · {chosen.name}")


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


def tensor_bytes(tensor: Tensor, recipe: Recipe) -> dict[str, int]:
    """Bytes of each copy that a recipe keeps of one parameter tensor.

    Unit        bytes, by term
    """
    hidden = tensor.linear and tensor.component in ("attention", "feed_forward")
    stored = recipe.weights if tensor.linear or recipe.other is None else recipe.other
    if tensor.component == "lm_head" and recipe.head is not None:
        stored = recipe.head
    sizes = {"weights": weights(tensor.numel, stored, row=tensor.shape[-1])}
    if recipe.master:
        sizes["master"] = weights(tensor.numel, recipe.master)
    if recipe.gradients:
        sizes["gradients"] = gradients(tensor.numel, recipe.gradients)
    if recipe.accumulator:
        sizes["accumulator"] = accumulator(tensor.numel, recipe.accumulator)
    sizes["optimizer"] = recipe.state_bytes(tensor.shape, hidden)
    return sizes
