"""The module that a config describes, in memlab's own code or in that of transformers."""

import contextlib
import io
import json
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..config import KEYS
from ..model import Model, presets
from .models import TinyGPT, TinyLlama

IMPLEMENTATIONS = ("memlab", "transformers")
# Every dropout that a family's config has: of attention, of the stream, of the embedding.
DROPOUTS = {
    "gpt2": ("attn_pdrop", "resid_pdrop", "embd_pdrop"),
    "opt": ("dropout", "attention_dropout"),
    "gpt_neox": ("attention_dropout", "hidden_dropout"),
}


def subject(
    model: Model,
    *,
    source: str | os.PathLike[str] | None = None,
    implementation: str = "memlab",
    attention: str = "sdpa",
    again: bool = False,
    dropout: float = 0.0,
    dtype: torch.dtype = torch.float32,
) -> nn.Module:
    """A decoder in training mode, on the device that torch.device(...) sets: meta costs no memory.

    source      the config.json that `model` was read from, for what `Model` leaves out
    attention   "sdpa", or "eager" (transformers alone has it)
    again       compute every block again in backward instead of keeping its activations
    Raises      ValueError for a combination that neither implementation builds
    """
    if implementation not in IMPLEMENTATIONS:
        known = ", ".join(IMPLEMENTATIONS)
        raise ValueError(f"unknown implementation {implementation!r}; known: {known}")
    if implementation == "transformers":
        return _theirs(model, source, attention, again, dropout, dtype).train()
    if attention != "sdpa":
        raise ValueError(f"attention={attention!r} is in transformers only; memlab's is sdpa")
    if model.family == "gpt2":
        module: nn.Module = TinyGPT(model, dropout=dropout, checkpoint=again)
    elif dropout:
        raise ValueError(f"dropout={dropout}: memlab's {model.family} has none")
    else:
        module = TinyLlama(model, checkpoint=again)
    return module.to(dtype).train()


def _theirs(
    model: Model, source: Any, attention: str, again: bool, dropout: float, dtype: torch.dtype
) -> nn.Module:
    with _quiet():
        try:
            import transformers
        except ModuleNotFoundError as error:
            raise ValueError("this needs transformers: pip install transformers") from error
        if model.family not in KEYS:
            raise ValueError(f"transformers has no {model.family!r}; known: {', '.join(KEYS)}")
        settings = {**_settings(model, source), "use_cache": False}
        settings |= dict.fromkeys(DROPOUTS.get(model.family, ("attention_dropout",)), dropout)
        config = transformers.AutoConfig.for_model(**settings)
        module = transformers.AutoModelForCausalLM.from_config(
            config, dtype=dtype, attn_implementation=attention
        )
        if again:
            module.gradient_checkpointing_enable({"use_reentrant": False})
    return module


def _settings(model: Model, source: Any) -> dict[str, Any]:
    """The config as a dict: the file itself, or one that says what `model` says."""
    if source is not None and str(source).lower() not in presets():
        path = Path(source)
        return json.loads((path / "config.json" if path.is_dir() else path).read_text("utf-8"))
    said = {key: getattr(model, field) for field, (key, _) in KEYS[model.family].items()}
    # Without special tokens: no row of the embedding is treated apart, whatever the vocabulary.
    tokens = dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id"))
    return {"model_type": model.family, **tokens, **said}


@contextmanager
def _quiet() -> Iterator[None]:
    """transformers greets with warnings; none of them is about memory."""
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        yield
