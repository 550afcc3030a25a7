"""The file of a recorded network: what is in it, and which of its kinds a setting needs.

A recording (memlab.measure.network_recorder) has the graph of a layer of each kind and that of both
ends, in letters. Its instructions are lists:

    ["+", n, kind, op]                      a new tensor n; a kind is a format and a shape
    ["-", n, ...]                           Python lets go of these
    ["l", n, x, weight]                     a product with a weight, and its adapter if it has one
    ["e", n, x, weight]                     a look-up in it
    ["n", op, inputs, outputs, {mask: [saves, backward]}]
                                            a node of the graph. Inputs: numbers, names of weights,
                                            or null; outputs: [n, n], or [n, the tensor that it is
                                            a view of, kind]; mask: which inputs ask for a gradient
    ["x", n]                                what the layers have given, in the ends

A backward is [steps, gives]: a step makes a tensor, [kind, op], or lets go of one made before, a
number; what it gives for each input is [one of these, or -1 - k for the k-th gradient that came;
1: a view of it, 2: it is summed or cast for the input], or null.

Tensor 0 of the ends is the ids, and buffers follow; tensor 0 of a layer is what comes in, and what
the layer is called with follows; "@n" stands for the tensor n of the ends.
"""

from __future__ import annotations

from ...base.not_described import NotDescribed
from ...families import record_of
from ...families.recorded import own_of, variant
from ..core.setting import Setting
from ..keys import rope_type, router_loss
from ..ops import Ops

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

# Keys of a config.json that change the graph, where they are true: what a kind is called then.
ASKED = {"norm_topk_prob": "normed"}


def kind_of(s: Setting, f: Ops) -> str:
    """Which recording of a family a setting needs: what changes its graph, in words.

    cpu             its kernels; not said: CUDA's
    bf16            the format of weights, or autocast; then the attention
    many            texts, or one
    shared          heads, or one single for all, or each its own, or a lone one
    near            windows that end before the first token, or far; where they are near, CUDA pads
                    a mask whose rows are ragged, no multiple of 8; alike: layers of one kind
    normed          what `ASKED` says of the config; sizes of 1, as T=1
    mlp_bias=true   of a type without a record here, what its config says otherwise than its class
    """
    heads = "own" if s.K == s.N else "single" if s.K == 1 else "shared"
    words = ["cpu"] * (f.backend == "cpu")
    words += [_precision(s, f), s.attention, "one" if s.B == 1 else "many"]
    words.append("lone" if s.N == 1 else heads)
    if s.sliding is not None and s.window is not None:
        near = s.T >= s.window
        words.append("near" if near else "far")
        pads = near and s.attention == "sdpa" and f.backend == "cuda"
        words += ["ragged"] * bool(pads and s.T % 8)
        words += ["alike"] * (len(set(s.sliding)) == 1)
    words += [word for key, word in ASKED.items() if (s.extra or {}).get(key)]
    words += [f"{letter}=1" for letter in "TXk" if getattr(s, letter) == 1]
    if pinned := record_of(s.model.family).recorded:
        words += [variant(pinned, s.extra or {})] * bool(variant(pinned, s.extra or {}))
        own = own_of(s.model.family).values()
        words += [f"{key}=1" for key, usual in own if (s.extra or {}).get(key, usual) == 1]
    return " ".join(words)


def missing(name: str, known: Sequence[str]) -> str:
    """What a refusal says of a kind that was not recorded: its words that no other one has."""
    told = name.split()
    strange = [word for word in told if not any(word in each.split() for each in known)]
    return f"not recorded: {', '.join(strange) or name}; known: {', '.join(known)}"


def _precision(s: Setting, f: Ops) -> str:
    """The format; fp16 takes the way of bf16."""
    return "autocast" if f.autocast else s.dtype.replace("fp16", "bf16")


def check(s: Setting) -> None:
    """Refuse what changes a graph and has no recording of its own.

    Raises      NotDescribed that names it
    """
    if s.model.head_dim > 256 and s.attention == "sdpa":
        raise NotDescribed(f"H={s.model.head_dim} is not recorded: CUDA takes another kernel")
    for field in ("texts", "attention_dropout", "past"):
        if (value := getattr(s, field)) not in ("full", 0.0, None):
            raise NotDescribed(f"{field}={value!r} is not recorded")
    extra = s.extra or {}
    if (scaled := rope_type(extra)) in ("dynamic", "longrope"):
        raise NotDescribed(f"rope_type={scaled!r} is not recorded")
    if router_loss(extra):
        raise NotDescribed("output_router_logits=True is not recorded")
    if cap := extra.get("final_logit_softcapping"):  # the head is written by hand: a product alone
        raise NotDescribed(f"final_logit_softcapping={cap!r} is not recorded")
    beside = s.lora or s.adapter
    for name in getattr(beside, "targets", ()):
        if name.startswith(("router", "experts")):
            raise NotDescribed(f"adapters on {name} are not recorded")


def unpacked(recording: dict[str, Any], kind: str) -> dict[str, Any]:
    """One kind of a file, its instructions as they are described above.

    In the file tensors are told by how far back they are, what is made has the next number, and
    instructions, words and backwards are numbers of tables.
    """
    told, lines = recording["kinds"][kind], recording["lines"]
    ends = 1 + len(told["buffers"])
    before, ends = _numbered(told["before"], lines, ends)
    after, _ = _numbered(told["after"], lines, ends)
    layers = {}
    for name, layer in told["layers"].items():
        items, _ = _numbered(layer["items"], lines, 1 + len(layer["given"]))
        layers[name] = {**layer, "items": items}
    tables = {"kinds": recording["words"], "backward": recording["backward"]}
    return {**told, **tables, "before": before, "after": after, "layers": layers}


def _numbered(numbers: Sequence[int], lines: Sequence[Any], count: int) -> tuple[list[Any], int]:
    """Instructions with tensors by their numbers; of these there are `count` before and after."""
    items: list[Any] = []
    for what, *rest in map(lines.__getitem__, numbers):
        here = count
        if what == "n":
            op, inputs, outs, masks = rest
            made = []
            for base, *word in outs:
                made.append([count if word else here - base, _at(here, base), *word])
                count += len(word)
            kept = {
                mask: [[[name, _at(here, place)] for name, place in saves], backward]
                for mask, (saves, backward) in masks.items()
            }
            items.append([what, op, [_at(here, place) for place in inputs], made, kept])
        elif what == "-":
            items.append([what, *(here - back for back in rest)])
        else:
            count += 1
            if what in "le":
                rest = [_at(here, rest[0]), rest[1]]
            items.append([what, here, *rest])
    return items, count


def _at(here: int, place: Any) -> Any:
    """The number of a tensor that is told by how far back it is."""
    return here - place if isinstance(place, int) else place
