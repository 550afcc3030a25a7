"""What transformers calls the modules that hold a model's matrices: as adapters are told of them.

Source      transformers: models/*/modeling_*.py
"""

from __future__ import annotations

from ..families import record_of
from .model import Model

_ATTENTION = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "out": "o_proj", "qkv": "qkv_proj"}
_GATED = {"gate": "gate_proj", "up": "up_proj", "down": "down_proj", "gate_up": "gate_up_proj"}
_LLAMA = {name: f"self_attn.{module}" for name, module in _ATTENTION.items()}
_LLAMA |= {name: f"mlp.{module}" for name, module in _GATED.items()}

# Of a mixture: its experts and its router are parameters of these names, and no modules.
_EXPERTS = {"experts_up": "mlp.experts.gate_up_proj", "experts_down": "mlp.experts.down_proj"}
_EXPERTS |= {"router": "mlp.gate.weight", "shared_router": "mlp.shared_expert_gate"}
_EXPERTS |= {f"shared_{name}": f"mlp.shared_expert.{name}_proj" for name in ("gate", "up", "down")}
_LLAMA |= _EXPERTS


def module_names(model: Model, names: tuple[str, ...] | list[str]) -> dict[str, str]:
    """The path inside a layer of each of these matrices of Model.tensors()."""
    known = record_of(model.family)
    inside = {name: _LLAMA[name].replace("mlp.", f"{known.feed_forward_path}.") for name in _LLAMA}
    inside.update(known.modules)
    return {name: inside[name] for name in names}


def layers_name(model: Model) -> str:
    """Where the list of layers stands."""
    return record_of(model.family).layers_path


def end_names(model: Model) -> dict[str, str]:
    """The paths of the embedding and of the output head."""
    return {"embedding": record_of(model.family).embedding_path, "lm_head": "lm_head"}
