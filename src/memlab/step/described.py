"""What is described of a training step, and what is refused, by name."""

from __future__ import annotations

from ..families import FAMILIES
from ..formats import storage
from ..model import Model
from ..recipe import Recipe
from ..tensors import COMPONENTS
from ..units import whole
from .lora import Lora
from .losses import LOSSES
from .networks import DROPOUT, NETWORKS

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def dtype_of(recipe: Recipe) -> str:
    """The dtype of weights, gradients and states, which torch keeps alike."""
    told = (recipe.weights, recipe.gradients, recipe.updated, recipe.other or recipe.weights)
    plain = set(told) | set(recipe.states or ()) == {recipe.weights}
    if recipe.optimizer != "adamw" or not plain or recipe.master or recipe.accumulator:
        raise ValueError(
            f"recipe {recipe.name!r} is not described for a step; known: AdamW with weights, "
            "gradients and states all in fp32 or all in bf16"
        )
    known = {("fp32", None), ("bf16", None), ("fp32", "bf16")}
    if (recipe.weights, recipe.autocast) not in known:
        raise ValueError(
            f"recipe {recipe.name!r} (weights {recipe.weights}, autocast {recipe.autocast}) is "
            "not described; known: fp32, bf16, fp32 under autocast bf16"
        )
    return recipe.weights


def passes(micro_batches: int) -> int:
    """Forward and backward passes of one step."""
    if whole("micro_batches", micro_batches) == 0:
        raise ValueError("micro_batches=0; a step has at least one micro-batch")
    return micro_batches


def chunks(loss: str, loss_chunks: int, rows: int) -> int:
    """Into how many chunks the rows of the loss are cut; 0: not at all."""
    one_of("loss", loss, LOSSES)
    if not 1 <= whole("loss_chunks", loss_chunks) <= rows and loss == "chunked":
        raise ValueError(f"loss_chunks={loss_chunks}; between 1 and {rows} (the rows) is needed")
    return loss_chunks if loss == "chunked" else 0


def attentions(implementation: str, family: str) -> tuple[str, ...]:
    one_of("implementation", implementation, sorted({name for name, _ in NETWORKS}))
    if (implementation, family) not in NETWORKS:
        families = ", ".join(f for name, f in NETWORKS if name == implementation)
        raise ValueError(
            f"family {family!r} is not described for {implementation}; known: {families}"
        )
    return NETWORKS[implementation, family][2]


def check_dropout(dropout: float, implementation: str, family: str) -> None:
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout={dropout} is not a probability from 0 to below 1")
    if dropout and (implementation, family) not in DROPOUT:
        raise ValueError(f"dropout={dropout} is not described for {implementation} {family}")


def check_cuda(
    model: Model, recipe: Recipe, implementation: str, attention: str, dropout: float
) -> None:
    """What is described of CUDA: eager attention, and SDPA's kernels where they take the call.

    Source      aten/src/ATen/native/transformers/cuda/sdp_utils.cpp
    """
    half = (recipe.autocast or recipe.weights) != "fp32"
    if attention == "sdpa":
        if not half and model.kv_heads < model.heads:
            raise ValueError("shared key/value heads in fp32 on cuda: scores are not described")
        if not half and model.family == "gpt_neox":
            raise ValueError("gpt_neox's attention in fp32 on cuda is not described")
        multiple, widest = (8, 256) if half else (4, model.head_dim)
        if model.head_dim % multiple or model.head_dim > widest:
            raise ValueError(f"H={model.head_dim} on cuda: a multiple of {multiple} is described")
    if dropout:
        raise ValueError(f"dropout={dropout} on cuda is not described")
    if (implementation, model.family) == ("transformers", "gpt2") and recipe.autocast:
        raise ValueError("transformers' gpt2 under autocast on cuda is not described")


def check_frozen(frozen: Sequence[str], model: Model) -> None:
    for part in frozen:
        one_of("frozen", part, COMPONENTS)
    if {tensor.component for tensor in model.tensors()} <= set(frozen):
        raise ValueError(f"frozen={', '.join(frozen)}: nothing of this model is left to train")


def window_of(model: Model, window: int | None) -> int | None:
    return window if model.family == "mistral" else None


def check_shape(
    model: Model, implementation: str, batch: int, tokens: int, window: int | None
) -> None:
    if whole("batch", batch) == 0:
        raise ValueError("batch=0; at least 1 is needed")
    if whole("tokens", tokens) < 2:
        raise ValueError(f"tokens={tokens}; at least 2 are needed: each is to predict the next")
    near = window_of(model, window)
    if implementation == "transformers" and near is not None and tokens >= near:
        raise ValueError(f"tokens={tokens} with a sliding window of {near} is not described")
    if implementation == "transformers" and model.head_dim > 256 and model.kv_heads < model.heads:
        raise ValueError(f"H={model.head_dim} with shared key/value heads is not described")


def check_built(model: Model, built: int, dtype: str, lora: Lora | None) -> None:
    """The network has the parameters of the model, or a flag of the model means nothing to it."""
    adapters = lora.parameter_count(model) if lora else 0
    wanted = storage(model.parameter_count + adapters, dtype)
    if built == wanted:
        return
    usual = {"embed_dim": model.d_model, **FAMILIES[model.family]}
    own = [f"{k}={getattr(model, k)!r}" for k, v in usual.items() if getattr(model, k) != v]
    raise ValueError(
        f"the {model.family} network that is described has {built:,} bytes of weights, this model "
        f"{wanted:,}: not all of {', '.join(own)} is described; known: the family's own values"
    )


def one_of(name: str, value: str, known: Any) -> None:
    if value not in known:
        raise ValueError(f"{name}={value!r} is not described; known: {', '.join(known)}")


def check_step_in_backward(passes: int) -> None:
    if passes > 1:
        raise ValueError(
            f"step_in_backward with {passes} micro-batches: each would be a step of its own, for "
            "no gradient stays to be added to"
        )
