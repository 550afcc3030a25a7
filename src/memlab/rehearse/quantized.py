"""transformers' quantized bases from their configs alone: bitsandbytes' formats and torchao's.

transformers' quantizer replaces the layers, as it does before it loads weights; what bitsandbytes
makes of each weight on the card is left to bitsandbytes, whose operators know the shapes of what
they return.

Source      transformers: quantizers.auto.AutoHfQuantizer, integrations.bitsandbytes,
            modeling_utils.caching_allocator_warmup;
            bitsandbytes: functional.quantize_4bit, nn.Params4bit
Leaves out  formats of others, which are refused
"""

import sys
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes

from ..measure.fake_cuda.refused import Refused
from ..measure.fake_cuda.undo import Changes

KINDS = ("Params4bit", "Int8Params")


def quantizer(config: Any, asked: Any) -> Any:
    """Who quantizes this base: of its config, of what the program asks for, or None.

    Raises      Refused for a format that is not rehearsed
    """
    stored = getattr(config, "quantization_config", None)
    if stored is None and asked is None:
        return None
    from transformers.quantizers.auto import AutoHfQuantizer

    said = asked
    if stored is not None:
        said = AutoHfQuantizer.merge_quantization_configs(stored, asked)
    found = AutoHfQuantizer.from_config(said, pre_quantized=stored is not None)
    if type(found).__name__ not in WAYS:
        method = getattr(found.quantization_config, "quant_method", type(found).__name__)
        raise Refused(
            f"a base quantized by {getattr(method, 'value', method)} is not rehearsed yet; "
            "bitsandbytes' formats and torchao's are"
        )
    config.quantization_config = said
    return found


def quantize(model: Any, by: Any, device: Any, dtype: torch.dtype) -> None:
    """Let a model on the host have the layers that loading gives it, on the device.

    Each weight is there in full while it is quantized, one after the other.
    """
    with _disable_current_modes():  # they have no storage there, and are bitsandbytes' own
        by.preprocess_model(model=model, dtype=dtype, device_map={"": device})
    warm_up(model, device, by)
    WAYS[type(by).__name__](model, by, torch.device(device), dtype)
    model.to(device)
    model.hf_quantizer = by
    by.postprocess_model(model)


def _bitsandbytes(model: Any, by: Any, device: torch.device, dtype: torch.dtype) -> None:
    from bitsandbytes.nn import Linear4bit, Linear8bitLt

    for layer in list(model.modules()):
        if isinstance(layer, Linear4bit):
            _four_bits(layer, device, dtype)
        elif isinstance(layer, Linear8bitLt):
            _eight_bits(layer, device)
        else:
            continue
        if layer.bias is not None:
            bias = torch.empty(layer.out_features, dtype=dtype, device=device)
            layer.bias = torch.nn.Parameter(bias, requires_grad=False)


def _torchao(model: Any, by: Any, device: torch.device, dtype: torch.dtype) -> None:
    from torchao.quantization import quantize_

    how = by.quantization_config.get_apply_tensor_subclass()
    for name, layer in list(model.named_modules()):
        if isinstance(layer, torch.nn.Linear) and by.param_needs_quantization(
            model, f"{name}.weight"
        ):
            layer.to(device)
            quantize_(layer, how, filter_fn=lambda module, _: isinstance(module, torch.nn.Linear))


# By the name of transformers' quantizer: what makes the layers.
WAYS = {
    "Bnb4BitHfQuantizer": _bitsandbytes,
    "Bnb8BitHfQuantizer": _bitsandbytes,
    "TorchAoHfQuantizer": _torchao,
}


def warm_up(model: Any, device: Any, by: Any) -> None:
    """The one block as large as all weights that loading asks the card for, and gives back.

    The allocator keeps it and cuts the weights out of it.
    """
    from transformers import modeling_utils

    loading = getattr(modeling_utils, "caching_allocator_warmup", None)
    if loading is not None:
        loading(model, {name: torch.device(device) for name in model.state_dict()}, by)


def _four_bits(layer: Any, device: torch.device, dtype: torch.dtype) -> None:
    from bitsandbytes.functional import quantize_4bit

    empty = layer.weight  # as bitsandbytes makes it, without storage
    data, state = quantize_4bit(
        torch.empty(layer.out_features, layer.in_features, dtype=dtype, device=device),
        blocksize=empty.blocksize,
        compress_statistics=empty.compress_statistics,
        quant_type=empty.quant_type,
        quant_storage=empty.quant_storage,
    )
    weight = _weight(data, vars(empty) | {"quant_state": state, "bnb_quantized": True}, KINDS[0])
    layer.weight, layer.quant_state = weight, state


def _eight_bits(layer: Any, device: torch.device) -> None:
    from bitsandbytes.functional import int8_vectorwise_quant

    full = torch.empty(layer.out_features, layer.in_features, dtype=torch.float16, device=device)
    codes, scales, _ = int8_vectorwise_quant(full)
    layer.weight = _weight(codes, vars(layer.weight) | {"CB": codes, "SCB": scales}, KINDS[1])


class _Named(FakeTensor):
    """What is made a Parameter of again when it is moved, and keeps its class."""

    def detach(self) -> Any:
        made = super().detach()
        made.__class__ = type(self)
        return made


def _weight(data: torch.Tensor, said: dict[str, Any], kind: str) -> Any:
    """A weight with the attributes that bitsandbytes asks of its own, and with their class's name.

    A tensor without values can be made no Params4bit; accelerate, peft and trl ask for the name.
    """
    weight = torch.nn.Parameter(data, requires_grad=False)
    weight.__class__ = type(kind, (_Named,), {})
    for name, value in said.items():
        setattr(weight, name, value)
    return weight


def states(changes: Changes) -> None:
    """Give a weight that FSDP2 has gathered its scales again, as bitsandbytes does.

    Source      bitsandbytes, nn/modules.py: fix_4bit_weight_quant_state_from_module
    """
    layers = sys.modules.get("bitsandbytes.nn.modules")
    if layers is None:
        return

    def again(layer: Any) -> None:
        if getattr(layer.weight, "quant_state", None) is None:
            layer.weight.quant_state = layer.quant_state

    changes.replace(layers, "fix_4bit_weight_quant_state_from_module", again)
