"""Record one kind of a family: the sizes that it is recorded with, and what is stored of it."""

import json
from collections.abc import Callable
from typing import Any

import torch

from ..measure.network_letters import Letters
from ..measure.network_recorder import Pass, watch
from ..measure.network_written import Part, Written, name_of
from ..recipe import Recipe
from ..run import Run
from ..step.networks.recording import ASKED
from .causal import Causal
from .network_type import keys_of
from .subject import subject


# What is frozen in the passes after the first, which freezes nothing: it shows each node with those
# of its inputs asking for gradients that do where adapters or parts alone are trained. The first
# layer of a step whose embedding is frozen has no other gradient than that of its own weights.
def _all_but(*names: str) -> Callable[[str], bool]:
    return lambda path: not path.endswith(tuple(f"{name}_proj.weight" for name in names))


FROZEN: tuple[Callable[[str], bool], ...] = (
    lambda path: ".layers." in path,
    lambda path: "embed" in path,
    lambda path: "embed" in path or "norm" in path,
    *(_all_but(*names) for names in ("q", "k", "v", "qk", "qv", "kv")),
)
PRIMES = {"B": 7, "T": 107, "D": 131, "F": 137, "V": 139, "H": 17, "X": 151, "k": 13, "M": 19}
EIGHTS = "TDFVHM"
KEYS = {
    "D": ("hidden_size",),
    "F": ("intermediate_size",),
    "V": ("vocab_size",),
    "N": ("num_attention_heads",),
    "K": ("num_key_value_heads",),
    "H": ("head_dim",),
    "X": ("num_experts", "num_local_experts"),
    "k": ("num_experts_per_tok",),
    "M": ("moe_intermediate_size",),
}


def recorded(
    family: str, kind: str, *, types: list[str] | None = None
) -> tuple[dict[str, Any], list[str]]:
    """One kind of a family, recorded: what is stored of it, and what could not be said.

    kind        its name: memlab.step.networks.recording.kind_of
    types       of its layers: what layer_types says of them in its config, or dense and experts
    """
    backend = "cpu" if kind.startswith("cpu ") else "cuda"
    precision, attention, texts, heads, *more = kind.removeprefix("cpu ").split()
    sizes = _sizes(heads, texts)
    sizes["D"] *= sizes["N"]
    if "ragged" in more:
        sizes["T"] //= 2
    config: dict[str, Any] = {key: sizes[letter] for letter, keys in KEYS.items() for key in keys}
    config |= {"model_type": family, "num_hidden_layers": len(types or "123")}
    config |= {"max_position_embeddings": 131072, "tie_word_embeddings": False}
    if types and "dense" in types:
        config["mlp_only_layers"] = [i for i, word in enumerate(types) if word == "dense"]
    elif types:
        size = 64 if "near" in more else 65536
        config |= {"layer_types": types, "sliding_window": size}
    run = Run(batch=sizes["B"], tokens=sizes["T"], attention=attention, backend=backend)
    config |= {key: word in more for key, word in ASKED.items()}
    passes = [watched(config, precision, run, frozen) for frozen in (lambda path: False, *FROZEN)]
    T = sizes["T"]
    special = {T + 1: "T+1", T - 1: "T-1"} | {-(-T // n) * n: f"⌈T⌉{n}" for n in (8, 32) if T % n}
    kinds = {"sliding_attention": "near", "full_attention": "full"}
    like = [kinds.get(word, word) for word in types] if types else ["all"] * 3
    return write(passes, Letters(sizes, special), like)


def _sizes(heads: str, texts: str) -> dict[str, int]:
    sizes = {letter: prime * (8 if letter in EIGHTS else 1) for letter, prime in PRIMES.items()}
    sizes["K"] = {"own": 29, "shared": 5, "single": 1, "lone": 1}[heads]
    sizes["N"] = {"own": 29, "shared": 145, "single": 29, "lone": 1}[heads]
    if texts == "one":
        sizes["B"] = 1
    return sizes


def watched(
    config: dict[str, Any], precision: str, run: Run, frozen: Callable[[str], bool]
) -> Pass:
    """A step in which the parameters of these names ask for no gradient."""
    recipe = Recipe.named(precision)
    with torch.device("meta"):
        module = subject(Causal(config), recipe, run)
    for path, parameter in module.named_parameters():
        parameter.requires_grad_(not frozen(path))
    layers = config[keys_of(config["model_type"])["layers"]]
    return watch(module, run, layers=layers, autocast=recipe.autocast)


def write(
    passes: list[Pass], letters: Letters, like: list[str]
) -> tuple[dict[str, Any], list[str]]:
    """A recording as it is stored, and what it could not say.

    passes      the first one with nothing frozen
    like        what kind each layer is; the first layer of a kind that has one before it is told
    """
    w, told, last = Written(letters, name_of), passes[0], len(like) - 1
    made: list[tuple[Part, list[Part]]] = []
    for each in passes:
        t = each.tracker
        buffers = [t.ident(b) for b in each.module.buffers()]
        ids = next(i for i, r in t.records.items() if r.category == "inputs")
        begin = f"after {last}"
        ends = Part(w, each, [("before", "layer 0"), (begin, "head")], {begin: each.left[last]})
        ends.run([ids, *buffers])  # type: ignore[list-item]
        layers = []
        for number in range(len(like)):
            part = Part(w, each, [(f"layer {number}", f"after {number}")])
            part.outer = ends
            layers.append(part.run(each.arguments[number], each.entered[number]))
        made.append((ends, layers))
    ends = made[0][0]
    for other, _ in made[1:]:
        ends.add(other)
    stored: dict[str, Any] = {}
    for name in dict.fromkeys(like):
        base = next(i for i, kind in enumerate(like) if kind == name and i)
        part = made[0][1][base]
        for _, others in made:
            for number, kind in enumerate(like):
                if kind == name:
                    part.add(others[number])
        out = told.left[base]
        stored[name] = {
            "given": [ends.numbers[i] for i in told.arguments[base][1:]],
            "weights": _weights(told, w, f".{base}."),
            "items": part.items[f"layer {base}"],
            "out": part.tensors[out[1], out[2]],
            "beside": [part.numbers[i] for i in told.beside[base] if i in part.numbers],
        }
    x, head = told.entered[0], told.calls[-1].x
    inside = [name_of(path) for path, _ in told.module.named_parameters() if _layer(path)]
    order = [name_of(path) for path, _ in told.module.named_parameters()]
    done = {
        "first": order.index(inside[0]),
        "buffers": [w.kind(tuple(b.shape), _word(b)) for b in told.module.buffers()],
        "each": _each_layer([path for path, _ in told.module.named_buffers()]),
        "weights": _weights(told, w, None),
        "before": ends.items["before"],
        "embeds": ends.tensors[told.embeds[1], told.embeds[2]],
        "in": ends.tensors[x[1], x[2]],
        "after": ends.items[f"after {last}"],
        "out": ends.tensors[head[1], head[2]],
        "layers": stored,
    }
    tables = {"kinds": list(w.kinds), "backward": [json.loads(word) for word in w.backwards]}
    return tables | done, told.problems + w.problems


def _word(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _layer(path: str) -> str | None:
    """Of which layer a parameter is, as its path says it: .1.; None of both ends."""
    numbers = [part for part in path.split(".") if part.isdigit()]
    return f".{numbers[0]}." if numbers else None


def _each_layer(paths: list[str]) -> list[list[int]]:
    """Of each layer, which of these are its own."""
    inside = [_layer(path) for path in paths]
    layers = sorted({layer for layer in inside if layer is not None})
    return [[i for i, each in enumerate(inside) if each == layer] for layer in layers]


def _weights(told: Pass, w: Written, inside: str | None) -> list[Any]:
    """Weights in the order of the module: name, shape, whether it multiplies rows.

    inside      of which layer; None: those of none
    """
    products = {called.weight for called in told.calls if called.what == "l"}
    found = []
    for path, parameter in told.module.named_parameters():
        if _layer(path) == inside:
            kind = w.kind(tuple(parameter.shape), _word(parameter))
            found.append([name_of(path), kind, int(path in products)])
    return found
