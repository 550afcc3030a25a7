"""What is described of a training step, and what is refused, by name."""

from __future__ import annotations

from ..families import FAMILIES
from ..formats import storage
from ..model import Model
from ..recipe import Recipe
from ..tensors import COMPONENTS
from ..units import whole
from .away import OFFLOAD
from .keys import rope_type
from .lora import Lora
from .losses import LOSSES
from .networks import DROPOUT, NETWORKS

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


def dtype_of(recipe: Recipe) -> str:
    """The dtype of weights, gradients and states, which torch keeps alike."""
    if recipe.sharding is not None:
        raise ValueError(f"{recipe.sharding}: the step of one device alone is described")
    told = (recipe.weights, recipe.gradients, recipe.updated, recipe.other or recipe.weights)
    plain = set(told) | set(recipe.states or ()) == {recipe.weights}
    if recipe.optimizer != "adamw" or not plain or recipe.master or recipe.accumulator:
        raise ValueError(
            f"recipe {recipe.name!r} is not described for a step; known: AdamW with weights, "
            "gradients and states all in fp32, all in bf16 or all in fp16"
        )
    known = {("fp32", None), ("bf16", None), ("fp16", None), ("fp32", "bf16"), ("fp32", "fp16")}
    if (recipe.weights, recipe.autocast) not in known:
        raise ValueError(
            f"recipe {recipe.name!r} (weights {recipe.weights}, autocast {recipe.autocast}) is "
            "not described; known: fp32, bf16, fp16, fp32 under autocast bf16 or fp16"
        )
    return recipe.weights


def check_offload(
    offload: Sequence[str],
    implementation: str,
    optimizer_impl: str,
    checkpoint: str,
    step_in_backward: bool,
) -> None:
    """What is not described beside an offload."""
    for part in offload:
        one_of("offload", part, OFFLOAD)
    if offload and implementation != "memlab":
        raise ValueError(f"offload of {', '.join(offload)} is described for memlab's models alone")
    if "saved" in offload and checkpoint != "none":
        raise ValueError(f"offload of saved tensors beside checkpoint={checkpoint!r}: describe one")
    if "states" in offload and (step_in_backward or optimizer_impl != "forloop"):
        raise ValueError("offload of states: the optimizer steps after backward, in a loop")


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


def check_cuda(model: Model, recipe: Recipe, attention: str, extra: Mapping[str, Any]) -> None:
    """What is not described on CUDA: heads that flash attention has to pad, and dynamic rotary.

    That one reads how long the text is, so no trace tells what it costs.

    Source      aten/src/ATen/native/transformers/attention.cpp, pad_last_dim
    """
    narrow = (recipe.autocast or recipe.weights) != "fp32"
    if attention == "sdpa" and narrow and model.head_dim % 8:
        raise ValueError(f"H={model.head_dim} on cuda: a multiple of 8 is described")
    if rope_type(extra) == "dynamic":
        raise ValueError("rope_type='dynamic' on cuda is not described")


def check_frozen(frozen: Sequence[str], model: Model) -> None:
    for part in frozen:
        one_of("frozen", part, COMPONENTS)
    if {tensor.component for tensor in model.tensors()} <= set(frozen):
        raise ValueError(f"frozen={', '.join(frozen)}: nothing of this model is left to train")


def check_shape(model: Model, implementation: str, batch: int, tokens: int) -> None:
    if whole("batch", batch) == 0:
        raise ValueError("batch=0; at least 1 is needed")
    if whole("tokens", tokens) < 2:
        raise ValueError(f"tokens={tokens}; at least 2 are needed: each is to predict the next")
    if implementation == "transformers" and model.head_dim > 256 and model.kv_heads < model.heads:
        raise ValueError(f"H={model.head_dim} with shared key/value heads is not described")


def check_built(model: Model, built: int, dtype: str, lora: Lora | None) -> None:
    """The network has the parameters of the model, or a flag of the model means nothing to it."""
    wanted = storage(model.parameter_count, dtype)
    if lora is not None:
        wanted = lora.base_bytes(model, dtype) + storage(lora.parameter_count(model), dtype)
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
