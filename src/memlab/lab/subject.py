"""The module that a config describes, in memlab's own code or in that of transformers."""

import contextlib
import io
from typing import Any

import torch
from torch import nn

from ..adapters import Prompt
from ..base.not_described import NotDescribed
from ..families import config_types, has_config, record_of
from ..model import Model, latent, mixtures
from ..recipe import Recipe
from ..run import Run
from ..run.recipe_choice import recipe_for
from ..step.supported import attentions
from ..step.windows import windows
from .causal import Causal
from .library_loss import library_loss
from .models import TinyGPT, TinyLlama
from .models.common import chunked_next_token_loss
from .quiet import quiet

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def subject(model: Model | Causal, recipe: Recipe | str | None, run: Run) -> nn.Module:
    """A decoder in training mode, on the device that torch.device(...) sets: meta costs no memory.

    recipe      the format of the weights
    run         whose code it is, its attention, dropout, checkpoints, chunks, window and adapters
    Raises      ValueError for a combination that neither implementation builds
    """
    chosen = recipe_for(model, recipe, run)
    if chosen.weights not in DTYPES:
        known = ", ".join(DTYPES)
        raise ValueError(f"weights in {chosen.weights} are not built here; known: {known}")
    if run.frozen:
        raise ValueError(f"frozen={run.frozen!r} is not built here; freeze the module's own parts")
    if run.lora is not None and run.lora.base not in (None, "nf4"):
        base = run.lora.base
        raise NotDescribed(f"base={base!r} is not described for adapters; known: nf4")
    dtype = DTYPES[chosen.weights]
    if isinstance(model, Causal):
        if run.implementation != "transformers":
            raise ValueError(f"implementation={run.implementation!r}: it has no {model.family}")
        module = model.module(run, dtype).train()
    else:
        build = _theirs if run.implementation == "transformers" else _ours
        module = build(model, run, dtype).train()
    if run.adapters is None:
        return module
    return _adapted(module, run) if run.implementation == "memlab" else _by_peft(module, model, run)


def loss_of(
    module: nn.Module, ids: torch.Tensor, run: Run, labels: torch.Tensor | None = None
) -> torch.Tensor:
    """The loss as the run computes it: the model's own, or from its body in chunks of rows.

    labels      those of a loop of one's own, shifted; None: the ids stand for them
    """
    if run.loss == "cross_entropy":
        return own_loss(module, ids, ids if labels is None else labels)
    if run.implementation == "memlab":  # it was built with its chunks
        return module(ids, ids)
    if run.loss == "fused_head":
        return sft_loss(module, ids)
    if not run.in_chunks:
        return module(ids, labels=ids).loss
    body: Any = module.get_submodule(str(module.base_model_prefix))
    head: Any = module.get_submodule("lm_head").weight
    if run.library_loss:
        return library_loss(run.library_loss, body(ids).last_hidden_state, head, ids)
    return chunked_next_token_loss(body(ids).last_hidden_state, head, ids, run.chunks)


def own_loss(module: nn.Module, ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The loss of a loop of one's own: of the logits as the model returns them."""
    made = module(ids)
    logits = made if isinstance(made, torch.Tensor) else made.logits
    del made
    return nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())


def sft_loss(module: nn.Module, ids: torch.Tensor) -> torch.Tensor:
    """What trl.SFTTrainer.compute_loss does with a batch whose labels are all its tokens."""
    model: Any = module
    if not hasattr(model, "fused_head_is_there"):
        trl_head()(model, outputs=("log_probs", "entropy", "is_top1"))
        model.fused_head_is_there = True
    outputs = module(input_ids=ids, labels=ids, fused_lm_head=True)
    per_token = -outputs.log_probs
    count = outputs.label_mask.sum()
    return per_token.sum() / count.clamp(min=1)


def trl_head() -> Any:
    """TRL's function that gives a model its fused head.

    Raises      ValueError where TRL is not there
    """
    try:
        from trl.trainer.utils import add_fused_lm_head
    except ModuleNotFoundError as error:
        raise ValueError("loss='fused_head' needs TRL: pip install trl") from error
    return add_fused_lm_head


def _ours(model: Model, run: Run, dtype: torch.dtype) -> nn.Module:
    if run.window is not None:
        raise ValueError(f"window={run.window}: memlab's models have no sliding window")
    how: dict[str, Any] = {"checkpoint": run.checkpointing == "block", "loss_chunks": run.chunks}
    if model.family == "gpt2":
        return TinyGPT(model, dropout=run.dropout or 0.0, **how).to(dtype)
    if run.dropout:
        raise ValueError(f"dropout={run.dropout}: memlab's {model.family} has none")
    return TinyLlama(model, **how).to(dtype)


def _adapted(module: nn.Module, run: Run) -> nn.Module:
    from .lora import adapt
    from .qlora import quantize_base

    if run.lora is None:
        raise ValueError(f"{run.adapter.told()}: peft makes it, for models of transformers")  # type: ignore[union-attr]
    adapt(module, run.lora.rank, run.lora.targets)
    if run.lora.base is None:
        return module
    return quantize_base(module, run.lora.base, keep_wide=run.lora.keep_wide)


def _by_peft(module: nn.Module, model: Model | Causal, run: Run) -> nn.Module:
    from .with_peft import numbers_on_host, with_peft

    if isinstance(model, Causal):
        raise ValueError(f"adapters are not built beside {model.family}, which is not described")
    if run.lora is not None and run.lora.base is not None:
        raise ValueError(
            f"base={run.lora.base!r} under peft's adapters is not built here: bitsandbytes makes "
            "codes of values, and a trace has none; estimate() describes the step"
        )
    made = with_peft(module, model, run)
    if isinstance(run.adapter, Prompt) and run.backend == "cuda" and _on_meta(made):
        numbers_on_host(made)
    return made


def _on_meta(module: nn.Module) -> bool:
    return next(module.parameters()).is_meta


def _theirs(model: Model, run: Run, dtype: torch.dtype) -> nn.Module:
    # transformers greets with warnings; none of them is about memory.
    with quiet(), contextlib.redirect_stderr(io.StringIO()):
        try:
            import transformers
        except ModuleNotFoundError as error:
            raise ValueError("this needs transformers: pip install transformers") from error
        if not has_config(model.family):
            known = ", ".join(config_types())
            raise ValueError(f"transformers has no {model.family!r}; known: {known}")
        settings = {**settings_of(model), "use_cache": False}
        if run.dropout is not None:
            settings |= dict.fromkeys(record_of(model.family).dropouts, run.dropout)
        if run.window is not None:
            windows(model, run.window)  # of a family whose config alone says it, this refuses it
            settings["sliding_window"] = run.window or None
        if run.attention == "flash_attention_2":
            raise ValueError(
                "attention='flash_attention_2' needs the package flash-attn and CUDA; estimate() "
                "describes the step"
            )
        asked = [settings.pop(key, None) for key in ("attn_implementation", "_attn_implementation")]
        usual = attentions("transformers", model.family)[0]
        attention = run.attention or asked[0] or asked[1] or usual
        module = transformers.AutoModelForCausalLM.from_config(
            transformers.AutoConfig.for_model(**settings),
            dtype=dtype,
            attn_implementation="sdpa" if attention == "flash" else attention,
        )
        if run.checkpointing == "block":
            module.gradient_checkpointing_enable({"use_reentrant": False})
    return module


def settings_of(model: Model) -> dict[str, Any]:
    """The model's own config, with what the model says over it."""
    said = {key: getattr(model, field) for field, (key, _) in record_of(model.family).shape.items()}
    said |= mixtures.settings(model) | latent.settings(model)
    if model.config:
        others = record_of(model.family).other_names.values()  # which would count first
        return {**{k: v for k, v in model.config.items() if k not in others}, **said}
    # Without special tokens: no row of the embedding is treated apart, whatever the vocabulary.
    tokens = dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id"))
    return {"model_type": model.family, **tokens, **said}
