"""Of which steps the page has moments, and why it has none of the others: long, as one list.

Letters: L layers, D model width, F feed-forward width, N query heads, H head width, V vocabulary.
"""

from __future__ import annotations

from ..adapters import Lora
from ..base.message import Message
from ..base.quoted import shown
from ..families import record_of
from ..model import Model
from ..model.latent import KEYS as WIDTHS
from ..run import Run
from ..step import keys
from ..step.windows import windows
from . import adapter_tables
from . import words as say
from .layer_forms import FORMS_OF, attention_of, form_of, layers_of, pattern, table_of
from .peak import LEAST, LEAST_LAYERS

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

# Fields of a run that moments were made for; one that says another has none.
OF_RUN = (
    "batch tokens micro_batches attention dropout checkpoint loss optimizer_impl devices lora loop "
    "completion teacher"
).split()
COUNTED_SHARE = 0.25  # rotary_pct by its newer name
ALWAYS_TIED = ("gpt2", "opt")
ONE_EXPERT = ("llama4_text",)  # families that were counted with one for each token


class Unknown(ValueError):
    """The peak is not described, for this reason."""


def why(error: Exception) -> str:
    """What an error says: a message where it was made of one."""
    return error.args[0] if error.args else ""


def check(model: Model, run: Run) -> None:
    """Refuse what there are no moments of.

    Raises      Unknown
    """
    reason = of_run(run) or of_model(model, run)
    if reason:
        raise Unknown(reason)


def of_run(run: Run) -> str:
    """What of the run there are no moments for, whatever the model is; or nothing."""
    devices = run.devices
    if devices.tensor_parallel or devices.pipelined:
        return say.DIVIDED_ALONE
    if devices.tensor > 1 or devices.pipeline > 1 or devices.context > 1:
        return say.DIVIDED
    if devices.deepspeed:
        return Message(say.ZERO, stage=devices.zero)
    if run.optimizer_loop == "forloop" or [name for name in run.said() if name not in OF_RUN]:
        return say.NO_KIND
    return ""


def of_model(model: Model, run: Run) -> str:
    """What of the model there are no moments for in such a run; or nothing."""
    family = model.family
    if record_of(family).tables is None:
        return Message(say.NO_FAMILY_STEP, family=family)
    if reason := _flags(model) or _adapters(model, run):
        return reason
    for name, size, least in (
        ("L", model.layers, LEAST_LAYERS),
        ("D", model.d_model, LEAST["D"]),
        ("F", model.d_ff, LEAST["F"]),
        ("V", model.vocab, LEAST["V"]),
        ("N", model.heads, 2),
        ("k", model.experts_per_token or LEAST["k"], 1 if family in ONE_EXPERT else LEAST["k"]),
        (say.ROWS, run.rows, 64),
    ):
        if size < least:
            return Message(say.SMALL, what=name, size=size, least=least)
    if model.head_dim % 8 or model.head_dim > 256:
        return Message(say.HEADS, size=model.head_dim)
    latent = model.latent
    if latent is not None:
        for field in ("nope", "rope", "value"):
            size = getattr(latent, field)
            if size % 8 or (field == "value" and size == model.head_dim):
                return Message(say.KEY, key=WIDTHS[field], value=shown(size))
    return _keys(model, run)


def no_kind(model: Model, run: Run) -> str:
    """Why a kind of step is in no file: by the key of the config that asks for it, if one does."""
    known = record_of(model.family)
    told = known.dropouts if run.dropout is None else {}
    for key in sorted(told):
        if model.config.get(key, told[key][1]) not in (None, told[key][1]):
            return Message(say.KEY, key=key, value=shown(model.config[key]))
    if run.attention is None:
        for key in ("attn_implementation", "_attn_implementation"):
            if key in model.config:
                return Message(say.KEY, key=key, value=shown(model.config[key]))
    if run.loss == "chunked" and keys.scales_logits(model):
        return Message(say.CHUNKED, family=model.family)
    if run.loss == "chunked" and not known.names_body:
        return say.NO_KIND
    usual = known.flags["tied"]
    if (usual or known.counted("ties") == ("untied",)) and model.tied != usual:
        return Message(say.KEY, key="tie_word_embeddings", value=shown(model.tied))
    if model.kv_heads == 1:
        return Message(say.SMALL, what="K", size=1, least=2)
    as_many = model.kv_heads == model.heads
    return Message(say.AS_MANY, family=model.family) if as_many else say.NO_KIND


def _adapters(model: Model, run: Run) -> str:
    """What of the adapters there are no moments for; or nothing."""
    lora = run.lora
    if lora is None:
        return ""
    if "adapters" not in record_of(model.family).counted("beside"):
        return Message(say.NO_ADAPTER_STEP, family=model.family)
    if lora.dropout:
        return say.NO_LORA_DROPOUT
    plain = lora == Lora(lora.rank, lora.targets, lora.base)
    if not plain:
        return say.NO_KIND
    return "" if adapter_tables.which_of(model, lora) else say.NO_TABLE_OF_THESE


def _flags(model: Model) -> str:
    """What of the model is not what its family does."""
    formed = {"glm4": ["qkv_bias"], "glm4_moe": ["qkv_bias", "qk_norm"]}.get(model.family, [])
    usual = Model(
        family=model.family,
        layers=model.layers,
        d_model=model.d_model,
        d_ff=model.d_ff,
        heads=model.heads,
        kv_heads=model.kv_heads,
        head_dim=model.head_dim,
        vocab=model.vocab,
        positions=model.positions,
        tied=model.family in ALWAYS_TIED or model.tied,
        name=model.name,
        published=model.published,
        config=model.config,
        experts=model.experts,
        experts_per_token=model.experts_per_token,
        expert_ff=model.expert_ff,
        shared_ff=model.shared_ff,
        dense_layers=model.dense_layers,
        latent=model.latent,
        **{name: getattr(model, name) for name in formed},  # what its forms are told by
    )
    if usual != model:
        return Message(say.DIFFERS, family=model.family)
    square = model.heads == model.kv_heads and model.heads * model.head_dim == model.d_model
    if "kv_heads" not in record_of(model.family).shape and not square:
        return Message(say.SQUARE, family=model.family)
    return ""


def _keys(model: Model, run: Run) -> str:
    """What of the config makes a step other than those that were counted."""
    config = model.config
    try:
        keys.check(model.family, config)
        near, sliding = windows(model, run.window)
    except ValueError as error:
        return why(error)
    if config.get("gradient_checkpointing") and run.checkpointing != "block":
        return Message(say.KEY, key="gradient_checkpointing", value=True)
    if keys.router_loss(config):
        return Message(say.KEY, key="output_router_logits", value=shown(True))
    counted = record_of(model.family).counted("config")
    for key in sorted(counted):
        if config.get(key, counted[key]) != counted[key]:
            return Message(say.KEY, key=key, value=shown(config[key]))
    kind = keys.rope_type(config)
    family = model.family
    own = kind == "longrope" and family == "phi3"
    other = family == "gpt_neox" and kind != "default"
    if kind == "dynamic" or (kind == "longrope" and not own) or other:
        key = "rope_parameters" if config.get("rope_parameters") else "rope_scaling"
        return Message(say.ROPE, key=key, value=shown(kind))
    rotary = config.get("rope_parameters") or config.get("rope_scaling") or {}
    share = rotary.get("partial_rotary_factor", COUNTED_SHARE)
    if family == "gpt_neox" and share != COUNTED_SHARE:
        return Message(say.KEY, key="partial_rotary_factor", value=shown(share))
    if not form_of(model):
        return Message(say.FORM, family=family)
    return _windows(model, run, near, sliding)


def _windows(model: Model, run: Run, near: Any, sliding: Any) -> str:
    """What of a model's windows, and of its kinds of layers, was not counted."""
    family, tokens = model.family, run.tokens or 0
    known, attention = record_of(family), attention_of(model, run)
    if known.eager_alone and attention != "eager":
        return Message(say.EAGER, family=family)
    if near is None and known.windows == "chunks":
        return Message(say.KEY, key="attention_chunk_size", value=shown(near))
    if near is not None and not isinstance(near, int):
        return Message(say.WINDOW, tokens=f"{tokens:,}", window=shown(near))
    masked = record_of(table_of(model, run)).counted("attentions")
    if attention in ("windowed", "padded") and attention not in masked:
        return Message(say.WINDOW, tokens=f"{tokens:,}", window=shown(near))
    if sliding is not None and known.windows not in ("both", "chunks"):
        return say.SLIDING
    kinds = layers_of(model, run)
    order = list(sliding or ())
    if attention == "eager" and run.checkpointing == "block":  # masks held to their last layer
        early = order[:2] == [True, False]
        held = {"ministral": all(order), "gemma2": early, "gpt_oss": early}
        if not held.get(family, True):
            return Message(say.LAYERS, family=family)
    # One layer of the other kind that is the last is the lowest of its kind as well.
    lone = sum(kinds) == 1 and kinds[-1] == 1
    if lone or pattern(kinds) not in known.counted("layers", ("alike",)):
        return Message(say.LAYERS, family=family)
    forms = FORMS_OF.get(family, {}).get(pattern(kinds))
    return Message(say.FORM, family=family) if forms and form_of(model) not in forms else ""
