"""What transformers calls the modules that hold a model's matrices: as adapters are told of them.

Source      transformers 5.23: models/*/modeling_*.py
"""

from __future__ import annotations

from .model import Model

_ATTENTION = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "out": "o_proj", "qkv": "qkv_proj"}
_GATED = {"gate": "gate_proj", "up": "up_proj", "down": "down_proj", "gate_up": "gate_up_proj"}
_LLAMA = {name: f"self_attn.{module}" for name, module in _ATTENTION.items()}
_LLAMA |= {name: f"mlp.{module}" for name, module in _GATED.items()}
_ENDS = {"embedding": "model.embed_tokens", "lm_head": "lm_head"}

# Of a mixture: its experts and its router are parameters of these names, and no modules.
_EXPERTS = {"experts_up": "mlp.experts.gate_up_proj", "experts_down": "mlp.experts.down_proj"}
_EXPERTS |= {"router": "mlp.gate.weight", "shared_router": "mlp.shared_expert_gate"}
_EXPERTS |= {f"shared_{name}": f"mlp.shared_expert.{name}_proj" for name in ("gate", "up", "down")}
_LLAMA |= _EXPERTS
_LLAMA4 = {name: path.replace("mlp.", "feed_forward.") for name, path in _LLAMA.items()}

# Families whose names are not those of a llama: where the layers are, and the names inside.
_OTHERS: dict[str, tuple[str, dict[str, str], dict[str, str]]] = {
    "gpt2": (
        "transformer.h",
        {"qkv": "attn.c_attn", "out": "attn.c_proj", "up": "mlp.c_fc", "down": "mlp.c_proj"},
        _ENDS | {"embedding": "transformer.wte"},
    ),
    "gpt_neox": (
        "gpt_neox.layers",
        {
            "qkv": "attention.query_key_value",
            "out": "attention.dense",
            "up": "mlp.dense_h_to_4h",
            "down": "mlp.dense_4h_to_h",
        },
        _ENDS | {"embedding": "gpt_neox.embed_in"},
    ),
    "opt": (
        "model.decoder.layers",
        _LLAMA | {"out": "self_attn.out_proj", "up": "fc1", "down": "fc2"},
        _ENDS | {"embedding": "model.decoder.embed_tokens"},
    ),
    "gpt_oss": ("model.layers", _LLAMA | {"router": "mlp.router.weight"}, _ENDS),
    "llama4_text": ("model.layers", _LLAMA4 | {"router": "feed_forward.router"}, _ENDS),
    "starcoder2": ("model.layers", _LLAMA | {"up": "mlp.c_fc", "down": "mlp.c_proj"}, _ENDS),
}


def module_names(model: Model, names: tuple[str, ...] | list[str]) -> dict[str, str]:
    """The path inside a layer of each of these matrices of Model.tensors()."""
    _, inside, _ = _OTHERS.get(model.family, ("model.layers", _LLAMA, _ENDS))
    return {name: inside[name] for name in names}


def layers_name(model: Model) -> str:
    """Where the list of layers stands."""
    return _OTHERS.get(model.family, ("model.layers", _LLAMA, _ENDS))[0]


def end_names(model: Model) -> dict[str, str]:
    """The paths of the embedding and of the output head."""
    return _OTHERS.get(model.family, ("model.layers", _LLAMA, _ENDS))[2]
