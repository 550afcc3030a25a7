"""Reading the quantization_config of a config.json: which format, and what is left as it was.

What a checkpoint leaves out is said in the words of its maker: a list of modules, with stars or
with every layer by its number. A list that leaves a part of all layers is read; one that leaves
some layers and packs others is refused by name.

Source      transformers, utils/quantization_config.py; compressed-tensors, quant_config.py
"""

from __future__ import annotations

import os
import re

from ..engines.quantized import ONLY_EXPERTS, Quantized
from ..model import Model
from ..model.config import load

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

METHODS = ("gptq", "awq", "fp8", "mxfp4", "bitsandbytes", "compressed-tensors", "modelopt")
# What stays in 16 bits whatever a list says of it: not a matrix of a layer, or a router.
ALWAYS = re.compile(
    r"lm_head|embed|norm|router|visual|vision|rotary|(?<!\w)gate(?!_)|shared_expert_gate"
)
WHOLE = {"self_attn": "attention", "experts": "experts"}  # a part of each layer
LISTS = ("modules_to_not_convert", "llm_int8_skip_modules", "ignore", "ignored_layers")


def read(said: Mapping[str, Any], *, layers: int) -> Quantized:
    """What a quantization_config says.

    said        the dict
    layers      of the model: a list that names each of them leaves a part of all
    Raises      ValueError for a method, a number of bits or a list that is not described
    """
    if not isinstance(said, dict) or not isinstance(said.get("quant_method"), str):
        raise ValueError(f"quantization_config={said!r} has no quant_method; known: {_known()}")
    method = said["quant_method"]
    if method not in METHODS:
        raise ValueError(f"quant_method={method!r} is not described; known: {_known()}")
    format, group = _OF[method](said)
    kept: list[str] = []
    if method == "mxfp4":
        kept += ONLY_EXPERTS
    for name in LISTS:
        kept += _parts(name, said.get(name) or [], layers)
    more = {"symmetric": said.get("sym", True), "act_order": said.get("desc_act", False)}
    if method != "gptq":
        more = {}
    return Quantized(format=format, group=group, keeps=tuple(sorted(set(kept))), **more)


def beside(source: Any) -> tuple[Model, Quantized] | None:
    """The model of a config.json that has a quantization_config, and what that says; None: none.

    source      a file or its folder, as a shell has it; the name of a preset has none
    Raises      as `read`, and as `Model.from_config` for the rest of the config
    """
    if not os.path.exists(source):
        return None
    config, name = load(source)
    if not config.get("quantization_config"):
        return None
    rest = {key: value for key, value in config.items() if key != "quantization_config"}
    model = Model.from_config(rest)
    if name is not None:
        model = model.replace(name=name)
    return model, read(config["quantization_config"], layers=model.layers)


def _gptq(said: Mapping[str, Any]) -> tuple[str, int | None]:
    bits = said.get("bits")
    if bits not in (4, 8):
        raise ValueError(f"bits={bits!r} of gptq is not described; known: 4, 8")
    if said.get("dynamic"):
        raise ValueError("dynamic: other bits for some layers are not described")
    return ("gptq" if bits == 4 else "gptq-int8"), _group(said.get("group_size", 128))


def _awq(said: Mapping[str, Any]) -> tuple[str, int | None]:
    bits = said.get("bits", 4)
    if bits != 4:
        raise ValueError(f"bits={bits!r} of awq is not described; known: 4")
    return "awq", _group(said.get("group_size", 128))


def _fp8(said: Mapping[str, Any]) -> tuple[str, int | None]:
    block = said.get("weight_block_size")
    if block is None:
        return "fp8", None
    if list(block) != [128, 128]:
        raise ValueError(f"weight_block_size={block} is not described; known: [128, 128]")
    return "fp8-block", None


def _mxfp4(said: Mapping[str, Any]) -> tuple[str, int | None]:
    return "mxfp4", None


def _bitsandbytes(said: Mapping[str, Any]) -> tuple[str, int | None]:
    if said.get("load_in_8bit"):
        return "int8-channel", None
    kind = said.get("bnb_4bit_quant_type", "fp4")
    if not said.get("load_in_4bit") or kind != "nf4":
        raise ValueError(f"bnb_4bit_quant_type={kind!r} is not described; known: nf4, 8 bits")
    if said.get("bnb_4bit_use_double_quant"):
        return "nf4-dq", None
    return "nf4", None


def _compressed(said: Mapping[str, Any]) -> tuple[str, int | None]:
    groups = said.get("config_groups") or {}
    if len(groups) != 1:
        raise ValueError(f"config_groups has {len(groups)} groups; one is described")
    group = next(iter(groups.values()))
    if group.get("targets") not in (["Linear"], ["Linear", "FusedMoE"]):
        raise ValueError(f"targets={group.get('targets')} is not described; known: ['Linear']")
    weights = group.get("weights") or {}
    kind = weights.get("type"), weights.get("num_bits"), weights.get("strategy")
    if kind not in COMPRESSED:
        told = ", ".join(f"{name}={value!r}" for name, value in zip(_NAMES, kind, strict=True))
        raise ValueError(f"weights of {told} are not described; see memlab.files")
    group_size = weights.get("group_size")
    return COMPRESSED[kind], _group(group_size) if kind[2] == "group" else None


def _modelopt(said: Mapping[str, Any]) -> tuple[str, int | None]:
    name = said.get("quant_algo")
    if name not in MODELOPT:
        raise ValueError(f"quant_algo={name!r} is not described; known: {', '.join(MODELOPT)}")
    return MODELOPT[name], None


_NAMES = ("type", "num_bits", "strategy")
COMPRESSED = {
    ("float", 8, "channel"): "fp8-channel",
    ("float", 8, "tensor"): "fp8",
    ("float", 8, "block"): "fp8-block",
    ("int", 8, "channel"): "int8-channel",
    ("int", 4, "group"): "int4-group",
    ("int", 4, "channel"): "int4-group",
}
MODELOPT = {"NVFP4": "nvfp4", "FP8": "fp8"}
_OF = {
    "gptq": _gptq,
    "awq": _awq,
    "fp8": _fp8,
    "mxfp4": _mxfp4,
    "bitsandbytes": _bitsandbytes,
    "compressed-tensors": _compressed,
    "modelopt": _modelopt,
}


def _group(size: Any) -> int:
    if isinstance(size, bool) or not isinstance(size, int) or (size < 1 and size != -1):
        raise ValueError(f"group_size={size!r}; a number of inputs, or -1 for all")
    return size


def _parts(name: str, modules: Any, layers: int) -> list[str]:
    """The parts of every layer that a list leaves as they were."""
    if not isinstance(modules, (list, tuple)):
        raise ValueError(f"{name}={modules!r}; a list of modules is needed")
    named: dict[str, set[str]] = {}
    for module in modules:
        if not isinstance(module, str):
            raise ValueError(f"{name} has {module!r}; a module's name is needed")
        if ALWAYS.search(module.rsplit("layers.", 1)[-1]):
            continue
        words = module.split(".")
        part = WHOLE.get(words[-1].rstrip("*$"))
        number = next((word for word in words if word.isdigit()), "*")
        if part is None:
            raise ValueError(f"{name} leaves {module!r} as it was, which is not described")
        named.setdefault(part, set()).add(number)
    for part, numbers in named.items():
        if "*" not in numbers and len(numbers) < layers:
            raise ValueError(
                f"{name} leaves {part} in {len(numbers)} of {layers} layers, which is not described"
            )
    return list(named)


def _known() -> str:
    return ", ".join(METHODS)
