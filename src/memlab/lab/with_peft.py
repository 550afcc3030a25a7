"""Adapters as peft makes them, on a model of transformers."""

import importlib
from typing import Any

from torch import nn

from ..model import Model
from ..model.module_names import end_names, module_names
from ..run import Run
from .quiet import quiet


def with_peft(module: nn.Module, model: Model, run: Run) -> nn.Module:
    """The model of transformers itself, with the run's adapters inside and all else frozen.

    Returns     what peft.get_peft_model wraps, which is changed in place
    Raises      ValueError where peft is not installed
    """
    peft, lora = _peft(), run.lora
    assert lora is not None
    inside, ends = module_names(model, lora.targets), end_names(model)
    config = peft.LoraConfig(
        task_type="CAUSAL_LM",
        r=lora.rank,
        target_modules=list(inside.values()),
        rank_pattern={inside[name]: rank for name, rank in lora.ranks},
        modules_to_save=[ends[name].split(".")[-1] for name in lora.saved] or None,
        lora_dropout=lora.dropout,
        fan_in_fan_out=model.conv1d,
    )
    with quiet():
        own = next(module.parameters()).dtype
        wide = lora.dtype is None or lora.format(_name(own), peft=True) == "fp32"
        made = peft.get_peft_model(module, config, autocast_adapter_dtype=wide)
        return made.get_base_model()  # type: ignore[no-any-return]


def _name(dtype: Any) -> str:
    return {"torch.bfloat16": "bf16", "torch.float16": "fp16"}.get(str(dtype), "fp32")


def _peft() -> Any:
    with quiet():
        try:
            return importlib.import_module("peft")
        except ModuleNotFoundError as error:
            raise ValueError("adapters on transformers need peft: pip install peft") from error
