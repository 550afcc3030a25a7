"""Networks that nobody wrote down: recorded from their own code, and played on the engine.

What a recording is: memlab.step.networks.recording. The player stands in the place of a network of
this folder, so checkpoints, adapters, frozen parts, micro-batches and FSDP2 are the engine's. Long,
because one class plays all instructions of a file.
"""

from __future__ import annotations

from functools import lru_cache

from ...base.not_described import NotDescribed
from ...families import record_of
from ...families.recorded import own_of, sized
from ...families.recorded import recording as file_of
from ..adapters.lora import linear
from ..core.graph import Tensor, call
from ..core.setting import Setting
from ..core.storage_log import Dim
from ..ops import Ops
from .hf_common import embedded, head_loss
from .recording import check, kind_of, missing, unpacked

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..core.graph import Backward

Weights = dict[str, Tensor]
Kind = tuple[str, tuple[int, ...]]


@lru_cache(4)
def of_family(family: str) -> Any:
    """The class of a type by its file, which is read when the type is asked for."""
    return of_recording(file_of(family))


def of_recording(recording: dict[str, Any]) -> Any:
    """The class that plays a family's recordings: see memlab.step.networks."""

    class Played(Recorded):
        kinds = recording["kinds"]

        @classmethod
        @lru_cache(4)
        def told_of(cls, kind: str) -> dict[str, Any]:
            return unpacked(recording, kind)

    return Played


class Recorded:
    """A network whose graph was recorded.

    Raises      NotDescribed for a setting that is not recorded
    """

    kinds: dict[str, Any]  # that are recorded
    told_of: Any  # one of them by its name

    def __init__(self, f: Ops, setting: Setting) -> None:
        self.f, self.setting = f, setting
        check(setting)
        name = kind_of(setting, f)
        if name not in self.kinds:
            raise NotDescribed(missing(name, list(self.kinds)))
        self.told = told = self.told_of(name)
        if setting.model.dense_layers and "dense" not in told["layers"]:
            raise ValueError("layers without experts are not recorded")
        described = record_of(setting.model.family).recorded is None
        self.own = {} if described else own_of(setting.model.family)
        narrow = f.autocast or setting.dtype
        narrow = narrow if narrow == "fp16" else "bf16"  # the two take the same way
        self.words = [self.kind(word.replace("bf16", narrow)) for word in told["kinds"]]
        self.ends: dict[str, Any] = {}
        ends = [weight for weight in told["weights"] if not weight[0].startswith("lm_head")]
        first = told.get("first", 1)  # so many stand before the layers
        self.register(self.ends, ends[:first])
        self.layers = []
        for layer in f.each_layer(setting.model.layers):
            weights: Weights = {}
            self.register(weights, self.layer_told(layer)["weights"])
            self.layers.append(weights)
        self.register(self.ends, ends[first:])
        self.buffers: list[Tensor] = []
        self.kept: list[Tensor] = []  # those of the layers that are not played too
        self.beside: list[Tensor] = []
        each = told.get("each") or [[]]  # of a layer's own, one layer's serve all
        same = {n: first for own in each[1:] for n, first in zip(own, each[0], strict=True)}
        for place, number in enumerate(told["buffers"]):
            dtype, shape = self.words[number]
            copies = setting.model.layers if place in each[0] else int(place not in same)
            self.kept += [f.new("buffer", shape, dtype, "buffers") for _ in range(copies)]
            self.buffers.append(self.buffers[same[place]] if place in same else self.kept[-1])
        for weights in self.layers:
            weights |= {f"@{1 + number}": buffer for number, buffer in enumerate(self.buffers)}
        if setting.model.tied:
            self.lm_head = f.tied_head(self.ends["embedding"])
        else:
            self.lm_head = f.parameter("lm_head", (setting.V, setting.D), setting.dtype)
        self.head_bias = None
        if len(told["weights"]) > len(ends) + 1:
            self.head_bias = f.parameter("lm_head.bias", (setting.V,), setting.dtype)

    def register(self, weights: dict[str, Any], told: Sequence[Any]) -> None:
        """Make weights in the order of the real module, with the adapters beside them."""
        f, s = self.f, self.setting
        names = [name for name, *_ in told]
        for name, number, multiplies in told:
            dtype, shape = self.words[number]
            shapes: dict[str, tuple[int, ...]] = {name: shape}
            if multiplies and len(shape) == 2:
                biased = f"{name}.bias" in names or self.biased(name)
                shapes = s.linear(name, shape[0], shape[1], biased)
            for each, size in shapes.items():
                if each not in weights:
                    own = dtype if each == name else s.dtype_of(each)
                    weights[each] = f.parameter(each, size, own)

    def biased(self, name: str) -> bool:
        """Whether the config asks for a bias, which the product knows and the graph does not."""
        m = self.setting.model
        if record_of(m.family).recorded is not None:  # each variant of a type is one of its own
            return False
        if name in ("q", "k", "v"):
            return m.qkv_bias
        return m.out_bias if name == "out" else m.ff_bias and name in ("gate", "up", "down")

    def layer_told(self, layer: int) -> Any:
        """The recording of this layer: of those of a kind one was taken."""
        s, layers = self.setting, self.told["layers"]
        if len(layers) == 1:
            return next(iter(layers.values()))
        if s.sliding is not None:
            return layers["near" if s.sliding[layer] else "full"]
        return layers["dense" if layer in s.model.dense_layers else "experts"]

    def kind(self, word: str) -> Kind:
        """A format and a shape, as they are written: fp32 B T 2·M."""
        dtype, *sizes = word.split()
        return dtype, tuple(self.size(size) for size in sizes)

    def size(self, word: str) -> int:
        """A size in letters: B·T·k, H/2, T+1, ⌈T⌉8."""
        if word[0] == "⌈":
            unit = int(word[3:])
            return Dim("⌈T⌉", -(-self.setting.T // unit) * unit)
        return Dim(f"({word})" if "+" in word or "-" in word else word, sized(word, self.letter))

    def letter(self, letter: str) -> int:
        if letter in self.own:
            key, usual = self.own[letter]
            return int((self.setting.extra or {}).get(key, usual))
        size: int = getattr(self.setting, letter)
        return size

    def forward(self, ids: Tensor) -> Tensor:
        hidden = call(self.body, ids)
        f, head, bias = self.f, self.lm_head, self.head_bias
        make = None if bias is None else lambda x: f.linear(x, head, bias)
        return head_loss(f, self.setting, hidden, head, make)

    def body(self, ids: Tensor) -> Tensor:
        f, told, layers = self.f, self.told, self.setting.model.layers
        held = dict(enumerate([ids, *self.buffers]))
        # gradient_checkpointing_enable asks for a gradient of the embedding's output
        embeds = told["embeds"] if self.setting.checkpoint else None
        self.play(told["before"], held, self.ends, embeds=embeds)
        hidden = held[told["in"]]
        for i in f.each_layer(layers):
            one = self.layer_told(i)
            region = f.region(self.setting.checkpoint)
            given = [held[n] for n in one["given"]]
            hidden = region(self.layer, hidden, one, self.layers[i], *given)
            del given
            hidden = f.boundary(hidden, i, layers)
        self.play(told["after"], held, self.ends, hidden)
        self.beside = []
        return held[told["out"]]

    def layer(self, x: Tensor, one: Any, weights: Weights, *given: Tensor) -> Tensor:
        held = dict(enumerate([x, *given]))
        self.play(one["items"], held, weights)
        # What a layer gives too is kept by the loop over the layers, until the next one has given.
        self.beside = [held[n] for n in one.get("beside", ()) if n in held]
        return held[one["out"]]

    def play(
        self,
        items: Sequence[Any],
        held: dict[int, Tensor],
        weights: Weights,
        x: Tensor | None = None,
        embeds: int | None = None,
    ) -> None:
        """Run instructions; `held` are the tensors that Python has, by their numbers."""
        f = self.f
        for item in items:
            what = item[0]
            if what == "+":
                dtype, shape = self.words[item[2]]
                held[item[1]] = f.new(item[3], shape, dtype)
            elif what == "-":
                for number in item[1:]:
                    held.pop(number, None)
            elif what == "l":
                held[item[1]] = linear(f, held[item[2]], weights, item[3])
            elif what == "e":
                held[item[1]] = embedded(f, weights[item[3]], held[item[2]])
            elif what == "x":
                assert x is not None
                held[item[1]] = x
            else:
                self.node(item, held, weights)
            if what in "en":
                made = item[3][0][0] if what == "n" else item[1]
                if made == embeds:
                    f.require_grad(held[made])

    def node(self, item: Any, held: dict[int, Tensor], weights: Weights) -> None:
        """One node of the graph, if one of its inputs asks for a gradient."""
        _, op, places, outs, masks = item
        f = self.f

        def found(place: Any) -> Tensor:
            return weights[place] if isinstance(place, str) else held[place]

        inputs = [None if place is None else found(place) for place in places]
        for number, base, *word in outs:
            if word:
                dtype, shape = self.words[word[0]]
                held[number] = Tensor(shape, dtype, found(base).storage)
        asked = [x is not None and x.node is not None for x in inputs]
        if f.grad and any(asked):
            mask = "".join("01"[need] for need in asked)
            if mask not in masks:
                raise NotDescribed(
                    f"{op} with gradients for {mask} is not recorded: {', '.join(masks)}"
                )
            saves, number = masks[mask]
            kept = [(name, found(place)) for name, place in saves]
            outputs = [held[out[0]] for out in outs]
            f.apply(op, inputs, outputs, self.backward(number, inputs), kept)

    def backward(self, number: int, inputs: Sequence[Tensor | None]) -> Backward:
        """What a node makes of the gradients that come, and what it gives for each input."""
        f, words = self.f, self.words
        steps, gives = self.told["backward"][number]
        shapes = [None if x is None else (x.shape, x.dtype) for x in inputs]

        def run(grads: list[Any], saved: list[Any], needs: list[bool]) -> list[Any]:
            made: list[Any] = []
            for step in steps:
                if isinstance(step, int):
                    made[step] = None
                else:
                    dtype, shape = words[step[0]]
                    made.append(f.new(step[1], shape, dtype))
            results: list[Any] = []
            for give, kind, need in zip(gives, shapes, needs, strict=True):
                if give is None or kind is None or not need:
                    results.append(None)
                    continue
                place, view = give
                source = made[place] if place >= 0 else grads[-1 - place]
                if view != 2 and ((source.shape, source.dtype) != kind or view):
                    source = Tensor(*kind, source.storage)
                    source.view = view == 1
                results.append(source)
            return results

        return run
