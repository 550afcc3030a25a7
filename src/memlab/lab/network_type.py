"""What a recording says of its type beside its graph: read from the config class and the modules.

Which key says which size, with the class's own defaults; the keys whose values the recording
follows; and the parameters in letters. memlab.families.recorded makes a record of it.
"""

from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from ..families import EVERY, ROTARY
from ..families.recorded import SHARE, variant
from ..measure.network_letters import Letters
from ..measure.network_recorder import layers_of
from ..measure.network_written import name_of
from ..step.core.graph import component
from .settings import settings_of

# Fields of Model, and what config classes call them; their own names come from attribute_map.
KEYS = {
    "layers": ("num_hidden_layers",),
    "d_model": ("hidden_size",),
    "d_ff": ("intermediate_size", "n_inner", "ffn_hidden_size", "ffn_dim"),
    "heads": ("num_attention_heads",),
    "kv_heads": ("num_key_value_heads", "num_kv_heads"),
    "head_dim": ("head_dim",),
    "vocab": ("vocab_size",),
    "positions": ("max_position_embeddings",),
    "tied": ("tie_word_embeddings",),
}
LETTERS = {"d_model": "D", "d_ff": "F", "heads": "N", "kv_heads": "K", "head_dim": "H"}
LETTERS |= {"vocab": "V", "positions": "P"}
NEEDED = ("layers", "d_model", "heads", "vocab")
# No row of the embedding is treated apart, whatever the vocabulary.
NO_TOKENS = {"pad_token_id": None}
# Names of keys that change no byte in any class: numbers that are added or multiplied by.
FREE = ("_eps", "epsilon", "_token_id", "initializer_range", "rope_theta", "init_std")


def usual_of(family: str) -> dict[str, Any]:
    """The config of a type as its class has it where nothing is said."""
    found: dict[str, Any] = settings_of(family, {"model_type": family}).to_dict()
    return found


def keys_of(family: str) -> dict[str, str]:
    """Field of Model -> the key that says it, of those that the class has."""
    usual = usual_of(family)
    other = settings_of(family, {"model_type": family}).attribute_map
    made = {}
    for field, names in KEYS.items():
        found = [other.get(name, name) for name in names if other.get(name, name) in usual]
        if found:
            made[field] = found[0]
    return made


def attention_of(family: str) -> str:
    """The attention that its code runs where nobody asks for another."""
    import transformers

    config = settings_of(family, {"model_type": family})
    known: Any = transformers.AutoModelForCausalLM._model_mapping[type(config)]
    return "sdpa" if known._supports_sdpa else "eager"


def pinned_of(family: str) -> dict[str, Any]:
    """Keys beside sizes whose values a recording follows, with those of the class."""
    usual, sizes = usual_of(family), set(keys_of(family).values())
    known = {*sizes, *EVERY, *ROTARY}
    found = {k: v for k, v in usual.items() if k not in known and not k.endswith(FREE)}
    rotary = usual.get("rope_parameters") or {}
    return found | ({SHARE: rotary[SHARE]} if SHARE in rotary else {})


def told_of(
    family: str,
    module: nn.Module,
    letters: Letters,
    config: Mapping[str, Any],
    own: Mapping[str, str],
) -> dict[str, Any]:
    """What stands in the file beside the graph; `weights` of the variant of this config alone."""
    usual, keys = usual_of(family), keys_of(family)
    pinned = {k: v for k, v in pinned_of(family).items() if k not in own.values()}
    layers = layers_of(module, config[keys["layers"]])
    paths = {id(part): path for path, part in module.named_modules()}
    inside, head = paths[id(layers)], module.get_output_embeddings()  # type: ignore[operator]
    products = {path for path, part in module.named_modules() if isinstance(part, nn.Linear)}
    weights: list[list[Any]] = []
    modules = {}
    for path, parameter in module.named_parameters():
        number = path.removeprefix(f"{inside}.").split(".")[0]
        layer = path.startswith(f"{inside}.")
        if layer and number != "1":
            continue
        name, owner = name_of(path), path.rpartition(".")[0]
        words = [letters.of(size) for size in parameter.shape]
        linear = owner in products and parameter.dim() == 2
        weights.append([name, component(name), words, int(linear), int(layer)])
        if layer and linear:
            modules[name] = owner.removeprefix(f"{inside}.1.")
    names = [(name, layer) for name, *_, layer in weights]
    if len(set(names)) < len(names):
        raise ValueError(f"two weights of one name: {names}")
    if module.training and head is None:
        raise ValueError("no output head")
    shape = {field: [key, *_default(family, field, key, usual)] for field, key in keys.items()}
    return {
        "shape": shape,
        "pinned": pinned,
        "free": [
            k
            for k in usual
            if k not in pinned and k not in (*keys.values(), *own.values(), *EVERY, *ROTARY)
        ],
        "own": {letter: [key, usual[key]] for letter, key in own.items()},
        "positions": any("P" in word for row in weights for word in row[2]),
        "layers_path": inside,
        "embedding_path": paths[id(module.get_input_embeddings())],  # type: ignore[operator]
        "modules": modules,
        "proven": "adapters" if {"q", "v"} <= set(modules) or "qkv" in modules else "",
        "weights": {variant(pinned, config): weights},
    }


def _default(family: str, field: str, key: str, usual: Mapping[str, Any]) -> list[Any]:
    """The value of a key that a config leaves out; nothing where it has to say it."""
    if field in NEEDED or (field == "d_ff" and usual[key] is not None):
        return []
    if field in ("kv_heads", "head_dim"):
        keys = keys_of(family)
        said = {"model_type": family, keys["heads"]: 6, keys["d_model"]: 96}
        made = settings_of(family, said).to_dict()[key]
        return [None if made in (6, 16) else made]
    return [usual[key]]


def frozen_passes(module: nn.Module) -> list[Callable[[str], bool]]:
    """What is frozen in the passes after the first: the embedding, or all but LoRA's usual places.

    Leaves out  adapters beside one of queries and values alone, which the first layer tells apart
    """
    names = {name_of(path) for path, _ in module.named_parameters()}
    kept: list[str] = [name for name in ("q", "v", "qkv") if name in names]
    kept = kept or [name for name in names if component(name) not in ("embedding", "norm")]
    return [
        lambda path: component(name_of(path)) == "embedding",
        lambda path: name_of(path) not in kept,
    ]
