"""A model as transformers loads it: saved to a folder, then read with a quantization config."""

import tempfile
from typing import Any

import torch
from torch import Tensor, nn

from ..measure.storages import storage_bytes
from .quiet import quiet


def loaded(module: nn.Module, config: Any = None) -> nn.Module:
    """The same weights, read by AutoModelForCausalLM.from_pretrained in bf16.

    config      what it takes as quantization_config: BitsAndBytesConfig, TorchAoConfig, or nothing
    """
    with quiet():
        from transformers import AutoModelForCausalLM
        from transformers.utils import logging

        bars = logging.is_progress_bar_enabled()
        logging.disable_progress_bar()
        try:
            with tempfile.TemporaryDirectory() as folder:
                module.save_pretrained(folder)  # type: ignore[operator]
                how = {"dtype": torch.bfloat16, "device_map": "cpu"}
                return AutoModelForCausalLM.from_pretrained(  # type: ignore[no-any-return]
                    folder, quantization_config=config, **how
                )
        finally:
            if bars:
                logging.enable_progress_bar()


def stored(module: nn.Module) -> int:
    """Bytes of its weights, with the scales and tables that bitsandbytes keeps beside its codes.

    Formula     storages of the parameters and of what `beside` finds, each once
    Unit        bytes
    """
    weights = list(module.parameters())
    return storage_bytes(weights, [tensor for weight in weights for tensor in beside(weight)])


def beside(weight: Any) -> list[Tensor]:
    """Scales and tables of one weight of bitsandbytes, which are attributes and no parameters.

    Source      bitsandbytes 0.50: Int8Params (CB, SCB); Params4bit.quant_state with absmax and
                code, and where scales are quantized, too, offset and a state2 of the same form
    """
    found = [getattr(weight, "CB", None), getattr(weight, "SCB", None)]
    state = getattr(weight, "quant_state", None)
    while state is not None:
        found += [state.absmax, state.code, getattr(state, "offset", None)]
        state = getattr(state, "state2", None)
    return [tensor for tensor in found if isinstance(tensor, Tensor)]
