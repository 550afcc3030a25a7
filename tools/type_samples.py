"""Small models of a type, made without memory from changed configs: what its table is fitted to.

A config is flat here: a key inside an object has that object's name and a dot before it.
"""

import contextlib
import io
import re
from typing import Any

import causal_types

from memlab.lab import causal_cache
from memlab.lab.causal import Causal
from memlab.lab.causal_at_rest import tensors
from memlab.lab.quiet import quiet

Flat = dict[str, Any]
Instances = list[tuple[int, tuple[int, ...]]]  # number of the layer, or -1; dims
INSIDE = ("text_config", "attn_config", "ffn_config", "decoder")  # objects with sizes in them
CACHE = "cache "  # before the pattern of what a layer keeps for the next call
LINEAR = " linear"  # after the pattern of a linear layer's weight
NUMBER = re.compile(r"(?<!\.ffn)\.(\d+)(?=\.|$)")  # one in a "ffn" is a part of it


def flat(config: Flat) -> Flat:
    made: Flat = {}
    for key, value in config.items():
        if key in INSIDE and isinstance(value, dict):
            made |= {f"{key}.{name}": each for name, each in value.items()}
        else:
            made[key] = value
    return made


def whole(config: Flat) -> Flat:
    made: Flat = {}
    for key, value in config.items():
        outer, dot, inner = key.partition(".")
        if dot:
            made.setdefault(outer, {})[inner] = value
        else:
            made[key] = value
    return made


def small(family: str) -> Flat:
    return flat(causal_types.small(family))


def usual(family: str) -> Flat:
    """Every key that the class of a type has, with the class's own value."""
    import transformers

    try:
        return flat(transformers.AutoConfig.for_model(family).to_dict())
    except Exception:  # some classes refuse their own defaults, each with an error of its own
        return {}


class Probe:
    """One config that the installed transformers builds, and the shapes of what it builds.

    rows        {pattern of a name: [(number of the layer, dims)]}
    lists       {key: kinds of its layers}, where the class has a list of them
    """

    def __init__(self, config: Flat, *, shapes: bool = True) -> None:
        self.config = config
        self.model = Causal(whole(config))
        self.rows: dict[str, Instances] = {}
        self.no_cache = ""
        if shapes:
            self._build()
        part = self.model.text
        count = getattr(part, "num_hidden_layers", None)
        self.inner = next((k for k, v in vars(self.model.settings).items() if v is part), "")
        self.lists: dict[str, list[Any]] = {}
        for key, value in part.to_dict().items():
            if isinstance(value, list) and len(value) == count and key != "id2label":
                if all(isinstance(each, (str, bool, int)) for each in value):
                    self.lists[f"{self.inner}.{key}" if self.inner else key] = value

    def _build(self) -> None:
        for tensor in tensors(self.model):
            self._add(tensor.name, tensor.shape, LINEAR if tensor.linear else "")
        try:
            for number, kind, dims in _cached(self.model):
                self._add(f"{CACHE}{kind}.{number}", dims, "")
        except Exception as error:  # of a kind of layer, or of a config's own code
            self.no_cache = " ".join(str(error).split()) or type(error).__name__

    def _add(self, name: str, dims: tuple[int, ...], mark: str) -> None:
        first = NUMBER.search(name)
        pattern = NUMBER.sub(".#", name) + mark
        self.rows.setdefault(pattern, []).append((int(first[1]) if first else -1, dims))

    def told(self, key: str) -> Any:
        """What the config's class makes of a key."""
        outer, dot, inner = key.rpartition(".")
        part = getattr(self.model.settings, outer, None) if dot else self.model.settings
        raw = self.config.get(key)
        if isinstance(part, dict):
            return part.get(inner, raw)
        try:
            return getattr(part, inner, raw)
        except Exception:  # of a key that differs from layer to layer: what the others have
            return vars(part).get(inner, raw)


def probe(config: Flat, *, shapes: bool = True) -> Probe | None:
    try:
        with quiet(), contextlib.redirect_stderr(io.StringIO()):
            return Probe(config, shapes=shapes)
    except Exception:  # whatever the code of some model raises about its config
        return None


def _cached(model: Causal) -> list[tuple[int, str, tuple[int, ...]]]:
    """What each layer keeps: values of a token, and a window; or bytes of a state and its inputs.

    Raises      ValueError where memlab.lab.causal_cache has none
    """
    from transformers.cache_utils import get_layer_types_and_kwargs

    causal_cache.cache(model, 1, 1)  # refuses what is not described
    kinds, more = get_layer_types_and_kwargs(model.text)
    made: list[tuple[int, str, tuple[int, ...]]] = []
    layers = zip(kinds, more, model.text.per_layer_config, strict=True)
    for number, (kind, own, layer) in enumerate(layers):
        if kind in causal_cache.RECURRENT:
            in_16, in_32 = (
                causal_cache._recurrent(model.family, layer, 1, format)
                for format in ("bf16", "fp32")
            )
            inputs = (in_32 - in_16) // 2
            made.append((number, "state", (in_16 - 2 * inputs, inputs)))
        elif kind != causal_cache.NOTHING:
            sizes = {"batch": 1, "tokens": 1, "format": "bf16"}
            values = causal_cache._attention(layer, None, sizes) // 2
            window = own.get("sliding_window")
            made.append(
                (number, "near", (values, window)) if window else (number, "all", (values,))
            )
    return made
