"""What each key of a type's config does to the shapes of its tensors, by changing it alone."""

import importlib
import inspect
import json
import re
from typing import Any

from type_samples import Flat, Probe, probe, small, usual

ACTIVATIONS = ("gelu", "silu", "relu")
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers", "num_blocks")
MOST_TRIED = 2
# Keys that any config may hold and no class computes with.
COMMON = (
    "_name_or_path _attn_implementation architectures attn_implementation auto_map bad_words_ids "
    "chunk_size_feed_forward diversity_penalty do_sample dtype early_stopping exponential_decay "
    "finetuning_task forced_bos_token_id forced_eos_token_id id2label label2id length_penalty "
    "max_length min_length model_type no_repeat_ngram_size num_beam_groups num_beams num_labels "
    "output_attentions output_hidden_states output_scores prefix problem_type "
    "remove_invalid_values repetition_penalty return_dict return_dict_in_generate "
    "task_specific_params temperature tokenizer_class top_k top_p torch_dtype torchscript "
    "transformers_version typical_p use_bfloat16 suppress_tokens begin_suppress_tokens "
    "num_return_sequences encoder_no_repeat_ngram_size"
).split()
REFUSED = ("quantization_config", "per_layer_config", "pruned_heads")


class Keys:
    """The keys of a type by what they do.

    base        the small config that all others are changed from
    effects     {key: patterns of the tensors that it changes}; none: it changes nothing
    tried       {key: values with which a model was built}
    fixed       keys whose other values build nothing, or other shapes that no number tells
    layers      the key that says how many layers there are
    """

    def __init__(self, family: str) -> None:
        self.family = family
        self.base = {k: v for k, v in small(family).items() if "Infinity" not in json.dumps(v)}
        first = probe(self.base)
        if first is None:
            raise ValueError("its small config is not built")
        bare = {key: value for key, value in self.base.items() if key not in first.lists}
        if (again := probe(bare)) is not None:  # lists that the class makes, from numbers maybe
            self.base, first = bare, again
        self.first: Probe = first
        self.usual = usual(family)
        self.alias = _alias(first)
        skipped = {*COMMON, *REFUSED, *self.alias}
        self.names = sorted(
            key
            for key in {**self.usual, **self.base, **dict.fromkeys(self._read_beside(skipped))}
            if key.split(".")[-1] not in skipped and key not in skipped
        )
        self.layers = next(
            (k for k in self.names if k.split(".")[-1] in LAYERS and self._inner(k)), ""
        )
        self.effects: dict[str, set[str]] = {}
        self.tried: dict[str, list[Any]] = {}
        self.beside: dict[str, str] = {}  # a size that must change with another
        for key in self.names:
            self._try(key)
        for key in [key for key in self.names if not self.tried[key]]:
            self._try_with_another(key)

    def _inner(self, key: str) -> bool:
        outer = key.rpartition(".")[0]
        return outer == self.first.inner or not self.first.inner

    def changed(self, key: str, value: Any) -> Flat:
        made = dict(self.base) | {key: value}
        if key == self.layers:
            for name in self.first.lists:
                if isinstance(made.get(name), list):
                    made[name] = [made[name][i % len(made[name])] for i in range(value)]
        return made

    def _try(self, key: str) -> None:
        value = self.base.get(key, self.usual.get(key))
        done, effect = [], set()
        for other in self._others(key, value):
            made = probe(self.changed(key, other))
            if made is None:
                continue
            done.append(other)
            effect |= self._apart(made)
            if len(done) == MOST_TRIED or (effect and len(done) > 1):
                break
        self.tried[key], self.effects[key] = done, effect

    def _try_with_another(self, key: str) -> None:
        """Of sizes that a class holds against each other: both of them changed."""
        value = self.base.get(key)
        if isinstance(value, bool) or not isinstance(value, int):
            return
        for other in self.names:
            beside = self.base.get(other)
            if other == key or isinstance(beside, bool) or not isinstance(beside, int):
                continue
            if other == self.layers or not beside:
                continue
            made = probe(dict(self.base) | {key: 2 * value, other: 2 * beside})
            if made is not None and self._apart(made) - self.effects[other]:
                self.tried[key], self.effects[key] = [2 * value, 3 * value], self._apart(made)
                self.beside[key] = other
                return

    def _read_beside(self, skipped: set[str]) -> list[str]:
        """Keys that the code asks for, and that the class does not list."""
        found: set[str] = set()
        settings = {type(self.first.model.settings), type(self.first.model.text)}
        modules = {cls.__module__ for cls in settings}
        modules |= {type(part).__module__ for part in self.first.model.on_meta().modules()}
        for name in sorted(modules):
            if name.startswith("transformers.models"):
                code = inspect.getsource(importlib.import_module(name))
                found |= set(re.findall(r"getattr\(\s*(?:self\.)?config,\s*[\"'](\w+)[\"']", code))
                found |= set(re.findall(r"kwargs\.(?:pop|get)\(\s*[\"'](\w+)[\"']", code))
        known = {n.split(".")[-1] for n in {*self.usual, *self.base, *self.alias}} | skipped
        left = {name for name in found - known if not re.search("rope|rotary|^_|theta", name)}
        left -= {name for name in left if name.endswith(("cu_seq_lens_q", "token_type_ids"))}
        return [f"{self.first.inner}.{name}" if self.first.inner else name for name in left]

    def varied(self, key: str) -> bool:
        """Whether a number or a flag, which a table can tell; of others it knows one value."""
        value = self.base.get(key, self.usual.get(key))
        if value is None:
            return all(_plain(each) for each in self.tried[key][:1])
        return _plain(value) or key in self.first.lists

    def _apart(self, made: Probe) -> set[str]:
        ours, theirs = self.first.rows, made.rows
        return {p for p in {**ours, **theirs} if ours.get(p) != theirs.get(p)}

    def _others(self, key: str, value: Any) -> list[Any]:
        if key in self.first.lists:
            kinds = sorted(set(self.first.lists[key]), key=str)
            if kinds and all(isinstance(each, str) for each in kinds) and "layer_types" in key:
                kinds = sorted({*kinds, *_likely(kinds)})
            count = len(self.first.lists[key])
            mixed = [[kinds[(i // 2) % len(kinds)] for i in range(count)]]
            return [[each] * count for each in kinds] + mixed
        if isinstance(value, bool):
            return [not value]
        if isinstance(value, int):
            if key.endswith(("_id", "_index")):
                return [0, 1, 2, 3]
            other = [2 * value, 3 * value, value + 1, value // 2, value - 1, 4 * value, 1, 2]
            return [each for each in dict.fromkeys(other) if each != value and each > 0]
        if isinstance(value, float):
            return [each for each in (value / 2, value * 2, 0.25, 1.0) if each != value]
        if isinstance(value, str):
            if "act" in key:
                return [each for each in ACTIVATIONS if each != value]
            return ["other"]
        if isinstance(value, dict):
            return [value | {"rope_theta": 5e5}, value | {"hidden_size": 32}]
        if isinstance(value, list):
            whole = [each for each in value if isinstance(each, int)]
            return [[each + 1 for each in whole]] if whole else [[0], [1]]
        return [16, 2, True, 0.5, "gelu"]


def _plain(value: Any) -> bool:
    return isinstance(value, (bool, int))


def _likely(kinds: list[str]) -> list[str]:
    plain = {"full_attention", "sliding_attention"}
    return sorted(plain) if plain & set(kinds) else []


def _alias(first: Probe) -> dict[str, str]:
    """Other names of keys: {what a config may say: the class's own name}."""
    made = {k: v for k, v in type(first.model.settings).attribute_map.items() if k != v}
    if first.inner:
        inner = type(first.model.text).attribute_map
        made |= {f"{first.inner}.{k}": f"{first.inner}.{v}" for k, v in inner.items() if k != v}
    return made
