"""Reading a Hugging Face config.json: which key of which family says which field of `Model`.

Keys that change no parameter are ignored. A key that is left out has the default of the family's
configuration class in transformers 5.23; the keys that set the shape have none here, because a
forgotten width must not turn into somebody else's.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from typing import Any

REQUIRED = object()

# Field of Model -> (key, default). A default of None leaves the field to Model.
# https://github.com/huggingface/transformers/tree/v5.0.0/src/transformers/models/<family>
_SHAPE: dict[str, tuple[str, Any]] = {
    "layers": ("num_hidden_layers", REQUIRED),
    "d_model": ("hidden_size", REQUIRED),
    "heads": ("num_attention_heads", REQUIRED),
    "vocab": ("vocab_size", REQUIRED),
    "d_ff": ("intermediate_size", REQUIRED),
}
_GROUPED = _SHAPE | {
    "kv_heads": ("num_key_value_heads", None),
    "head_dim": ("head_dim", None),
    "tied": ("tie_word_embeddings", False),
}
_ATTENTION_BIAS = {"qkv_bias": ("attention_bias", False), "out_bias": ("attention_bias", False)}

KEYS: dict[str, dict[str, tuple[str, Any]]] = {
    "gpt2": {
        "layers": ("n_layer", REQUIRED),
        "d_model": ("n_embd", REQUIRED),
        "heads": ("n_head", REQUIRED),
        "vocab": ("vocab_size", REQUIRED),
        "d_ff": ("n_inner", None),
        "positions": ("n_positions", 1024),
        "tied": ("tie_word_embeddings", True),
    },
    "llama": _GROUPED
    | _ATTENTION_BIAS
    | {
        "ff_bias": ("mlp_bias", False),
        "positions": ("max_position_embeddings", 2048),
    },
    "mistral": _GROUPED
    | {
        "kv_heads": ("num_key_value_heads", 8),
        "positions": ("max_position_embeddings", 131072),
    },
    "qwen2": _GROUPED
    | {
        "kv_heads": ("num_key_value_heads", 32),
        "positions": ("max_position_embeddings", 32768),
    },
    "qwen3": _GROUPED
    | _ATTENTION_BIAS
    | {
        "kv_heads": ("num_key_value_heads", 32),
        "head_dim": ("head_dim", 128),
        "positions": ("max_position_embeddings", 32768),
    },
    "gemma": _GROUPED
    | _ATTENTION_BIAS
    | {
        "kv_heads": ("num_key_value_heads", 16),
        "head_dim": ("head_dim", 256),
        "tied": ("tie_word_embeddings", True),
        "positions": ("max_position_embeddings", 8192),
    },
    "opt": _SHAPE
    | {
        "d_ff": ("ffn_dim", REQUIRED),
        "embed_dim": ("word_embed_proj_dim", None),
        "qkv_bias": ("enable_bias", True),
        "out_bias": ("enable_bias", True),
        "ff_bias": ("enable_bias", True),
        "norm_affine": ("layer_norm_elementwise_affine", True),
        "final_norm": ("do_layer_norm_before", True),
        "tied": ("tie_word_embeddings", True),
        "positions": ("max_position_embeddings", 2048),
    },
    "gpt_neox": _SHAPE
    | {
        "qkv_bias": ("attention_bias", True),
        "out_bias": ("attention_bias", True),
        "tied": ("tie_word_embeddings", False),
        "positions": ("max_position_embeddings", 2048),
    },
}

# transformers lets a GPT-2 config use the names of the other families.
_ALIASES = {
    "n_layer": "num_hidden_layers",
    "n_embd": "hidden_size",
    "n_head": "num_attention_heads",
    "n_positions": "max_position_embeddings",
}


def read(source: str | os.PathLike[str] | Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments of `Model` from a config.json: a file, the folder it is in, or a dict.

    Raises      ValueError for an unknown family, a missing key or a file that is not JSON,
                FileNotFoundError, TypeError for a source of another kind
    """
    config, name = load(source)
    family = config.get("model_type")
    if family is None:
        raise ValueError(f"the config has no 'model_type'; known families: {', '.join(KEYS)}")
    if not isinstance(family, str) or family not in KEYS:
        raise ValueError(f"unknown model_type {family!r}; known families: {', '.join(KEYS)}")
    rows = KEYS[family]
    fields = {field: _value(config, family, *rows[field]) for field in sorted(rows)}
    if family == "gpt2":
        _finish_gpt2(config, fields)
    if family == "opt" and config.get("_remove_final_layer_norm"):
        fields["final_norm"] = False  # checkpoints fine-tuned before transformers 4.20.1
    return {"name": name or family, "family": family} | fields


def load(source: Any) -> tuple[Mapping[str, Any], str | None]:
    """The configuration as a dict, and a name for the model."""
    if isinstance(source, dict):
        return source, None
    import os  # when a file is read: presets and dicts need none of these
    from collections.abc import Mapping

    if isinstance(source, Mapping):
        return source, None
    if not isinstance(source, (str, os.PathLike)):
        kind = type(source).__name__
        raise TypeError(f"config is a {kind}; a path or a dict is needed")
    import json
    from pathlib import Path

    path = Path(source)
    if path.is_dir():
        path = path / "config.json"
    if not path.is_file():
        raise FileNotFoundError(f"no config file at {path}")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    if not isinstance(config, dict):
        raise ValueError(f"{path} holds a {type(config).__name__}; a JSON object is needed")
    return config, path.resolve().parent.name if path.name == "config.json" else path.stem


def _value(config: Mapping[str, Any], family: str, key: str, default: Any) -> Any:
    if family == "gpt2" and key not in config and _ALIASES.get(key) in config:
        key = _ALIASES[key]
    value = config.get(key, default)
    if value is REQUIRED or (value is None and default is REQUIRED):
        raise ValueError(f"the {family} config has no {key!r}")
    if value is None:
        return None
    kind = bool if isinstance(default, bool) else int
    if type(value) is not kind:
        raise TypeError(f"{key}={value!r} is a {type(value).__name__}; {kind.__name__} is needed")
    return value


def _finish_gpt2(config: Mapping[str, Any], fields: dict[str, Any]) -> None:
    if config.get("add_cross_attention"):
        raise ValueError("add_cross_attention=True makes an encoder-decoder; memlab has decoders")
    if fields["d_ff"] is None:
        fields["d_ff"] = 4 * fields["d_model"]
