"""transformers' models from their configs alone.

Source      transformers: PreTrainedModel.from_pretrained, PreTrainedConfig.get_config_dict;
            accelerate 1.15: PartialState, one for the process
Leaves out  quantized models on several cards, which are refused
"""

import sys
from typing import Any

import torch

from ..measure.fake_cuda.refused import Refused
from ..measure.fake_cuda.undo import Changes
from .quantized import quantize, quantizer, warm_up

SINGLE = ("cpu", "cuda", "meta")  # a device_map in one word that is no way to spread
# How from_pretrained is told that several ranks have parts of a model.
DIVIDED = ("distributed_config", "tp_plan", "tp_size")


def hub(changes: Changes, on: str, cards: int) -> None:
    """Change transformers and accelerate, as far as they have been imported."""
    states = sys.modules.get("accelerate.state")
    if states is not None:
        for name in ("PartialState", "AcceleratorState", "GradientState"):
            changes.emptied(getattr(states, name)._shared_state)
    if "transformers" not in sys.modules:
        return
    constants = sys.modules.get("huggingface_hub.constants")
    if constants is not None:
        changes.replace(constants, "HF_HUB_OFFLINE", True)
    from transformers import PreTrainedModel
    from transformers.configuration_utils import PretrainedConfig

    changes.replace(PreTrainedModel, "from_pretrained", classmethod(_made(on, cards)))
    read = PretrainedConfig.get_config_dict.__func__  # type: ignore[attr-defined]

    def get_config_dict(cls: Any, name: Any, **kwargs: Any) -> Any:
        try:
            return read(cls, name, **kwargs)
        except OSError as error:
            raise Refused(
                f"{name}: its config.json is in no folder and not in the cache here; fetch it: "
                f"hf download {name} --include '*.json' 'tokenizer*'"
            ) from error

    changes.replace(PretrainedConfig, "get_config_dict", classmethod(get_config_dict))


def _made(on: str, cards: int) -> Any:
    def from_pretrained(
        cls: Any,
        name: Any,
        *args: Any,
        config: Any = None,
        dtype: Any = None,
        torch_dtype: Any = None,
        device_map: Any = None,
        quantization_config: Any = None,
        attn_implementation: Any = None,
        **more: Any,
    ) -> Any:
        from transformers import AutoConfig

        if config is None or isinstance(config, str):
            trust = more.get("trust_remote_code", False)
            config = AutoConfig.from_pretrained(config or name, trust_remote_code=trust)
        parts = {key: more.pop(key) for key in DIVIDED if more.get(key) is not None}
        for key in [key for key in more if hasattr(config, key)]:
            setattr(config, key, more[key])
        by = quantizer(config, quantization_config)
        said = {"attn_implementation": attn_implementation} if attn_implementation else {}
        number = _dtype(dtype or torch_dtype, config)
        spread = cards > 1 and isinstance(device_map, (dict, str)) and device_map not in SINGLE
        device = None if spread else _device(device_map, on)
        if parts:
            if by is not None:
                raise Refused(f"{name}: a quantized base over several ranks is not rehearsed yet")
            return _over_ranks(cls, name, config, parts, device_map, dtype=number, **said)
        model = cls._from_config(config, dtype=number, **said)
        if by is not None and spread:
            raise Refused(f"{name}: a quantized base over several cards is not rehearsed yet")
        if by is not None and on == "cpu":
            raise Refused(f"{name}: a quantized base is rehearsed on a card, not on a CPU")
        if by is not None:
            device = on if device is None else device  # it lies on the card, said or not
            quantize(model, by, device, number)
        elif spread:
            _over_cards(model, device_map, more.get("max_memory"))
        elif device is not None:
            warm_up(model, device, None)
            model.to(device)
        if device is not None:
            model.hf_device_map = {"": device}
        model.name_or_path = str(name)
        model.eval()
        return model

    return from_pretrained


def _over_cards(model: Any, device_map: Any, most: Any) -> None:
    """A model of which each card gets some layers: as transformers and accelerate place them."""
    from transformers.integrations import accelerate as placing

    found = placing._get_device_map(model, device_map, most, None)
    for name, place in found.items():  # where a file's weights are read to
        if place not in ("cpu", "disk"):
            model.get_submodule(name).to(place)
    placing.accelerate_dispatch(model, None, found, None, None, False)


def _over_ranks(
    cls: Any, name: Any, config: Any, parts: dict[str, Any], device_map: Any, **said: Any
) -> Any:
    """A model of which this rank reads its part: transformers' own ways, without files."""
    divide = getattr(cls, "maybe_distribute_model", None)
    if divide is None:
        raise Refused(f"{name}: {', '.join(parts)} is rehearsed with transformers 5.23")
    from transformers import DistributedConfig

    how = parts.pop("distributed_config", None) or DistributedConfig(**parts)
    how, place, meshes = cls.prepare_distribute_model(how, device_map=device_map)
    with torch.device("meta"):
        model = cls._from_config(config, **said)
    config.distributed_config = how
    model = divide(model, how, meshes)
    model.to_empty(device=place)
    model.tie_weights()
    model.name_or_path = str(name)
    model.eval()
    return model


def _dtype(said: Any, config: Any) -> torch.dtype:
    if said is None or said == "auto":
        said = getattr(config, "dtype", None) or torch.float32
    return getattr(torch, said.removeprefix("torch.")) if isinstance(said, str) else said


def _device(said: Any, on: str) -> Any:
    """The one device of a device_map; None where nothing is said."""
    if isinstance(said, dict):
        places = {str(place) for place in said.values()}
        if len(places) != 1:
            raise Refused(
                f"device_map={said}: one card is seen; CUDA_VISIBLE_DEVICES=0,1 before the program "
                "shows it two"
            )
        (said,) = set(said.values())
    if said in ("auto", "balanced", "balanced_low_0", "sequential"):
        return on
    return torch.device(on, said) if isinstance(said, int) else said
