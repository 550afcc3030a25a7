"""Write a watched step down as a recorded network: instructions in letters, small JSON.

The format is that of memlab.step.networks.recording. Tensors are numbers: in a layer
0 is what comes in, and what the layer is called with follows; "@n" is the tensor n of the ends.
Long, because one pass over a step's events has to know all that may be met there.
"""

import json
from bisect import bisect_right
from typing import Any

from .network_letters import Letters
from .network_recorder import Call, Kept, Note, Op, Pass

DTYPES = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16", "uint64": "int64"}
SIZES = {"fp32": 4, "bf16": 2, "fp16": 2, "int64": 8, "int32": 4, "bool": 1, "uint8": 1}


class Written:
    """One kind of a network in the making: tables of words, and the instructions that use them."""

    def __init__(self, letters: Letters, names: Any) -> None:
        self.letters, self.names = letters, names
        self.kinds: dict[str, int] = {}  # "fp32 B T D"
        self.backwards: dict[str, int] = {}  # what a node does in backward, as JSON
        self.problems: list[str] = []

    def kind(self, shape: tuple[int, ...], dtype: str) -> int:
        word = f"{DTYPES.get(dtype, dtype)} {self.letters.shape(shape)}".strip()
        return self.kinds.setdefault(word, len(self.kinds))

    def problem(self, *words: Any) -> None:
        self.problems.append(" ".join(map(str, words)))


class Part:
    """The instructions of one part of a step: a layer, or both ends with a gap between them."""

    def __init__(
        self, written: Written, told: Pass, spans: list[tuple[str, str]], coming: Any = None
    ) -> None:
        self.coming = coming or {}
        self.w, self.told, self.t = written, told, told.tracker
        self.items: dict[str, list[Any]] = {}
        self.numbers: dict[int, int] = {}  # of storages
        self.tensors: dict[tuple[Any, int], int] = {}  # of nodes' outputs
        self.on: dict[int, list[int]] = {}  # by storage, the numbers of its tensors
        self.count = 0
        self.keys: dict[Any, tuple[str, list[Any]]] = {}
        self.by_key: dict[Any, Any] = {}
        self.marks = {name: (op, event) for name, op, event in told.marks}
        self.emitted = told.emitted or _emissions(told)
        self.outer: Part | None = None
        self.base: Part | None = None  # whose numbers are meant, if not its own
        self.born: list[tuple[int | None, str]] = []  # storages in order, and what made them
        self.spans = spans

    def number(self, ident: int | None) -> int:
        """A new number, of a tensor on this storage."""
        self.count += 1
        self.on.setdefault(ident, []).append(self.count - 1)  # type: ignore[arg-type]
        return self.count - 1

    def known(self, ident: int | None) -> Any:
        """How a storage is called here: a number, or the name of a weight."""
        if ident in self.numbers:
            if self.base is None:
                return self.numbers[ident]
            place = next(i for i, (each, _) in enumerate(self.born) if each == ident)
            return self.base.numbers[self.base.born[place][0]]  # type: ignore[index]
        weight = self.weights.get(ident)
        if weight is not None:
            return self.w.names(weight)
        if self.outer is not None and ident in self.outer.numbers:
            return f"@{self.outer.numbers[ident]}"
        return None

    def run(self, given: list[int], entered: Any = None) -> "Part":
        """Write all spans; `given` are the storages that come in, `entered` the first of them."""
        self.weights = {self.t.ident(p): name for name, p in self.told.module.named_parameters()}
        for ident in given:
            if ident not in self.numbers:
                self.numbers[ident] = self.number(ident)
                self.born.append((ident, "given"))
        if entered is not None:
            self.tensors[entered[1], entered[2]] = 0
        for begin, end in self.spans:
            self._span(begin, end)
        return self

    def _span(self, begin: str, end: str) -> None:
        (op, cursor), (last_op, last) = self.marks[begin], self.marks[end]
        items = self.items.setdefault(begin, [])
        if begin in self.coming:  # what the layers between both ends have given
            ident, node, slot = self.coming[begin][:3]
            self.numbers[ident] = self.tensors[node, slot] = number = self.number(ident)
            items.append(["x", number])
            self.born.append((ident, "x"))
        seen: dict[str, int] = {}
        calls = {x.first: x for x in self.told.calls}
        while op < last_op:
            if op in calls and calls[op].last > op:
                called = calls[op]
                first = self.t.ops[op].first
                self._events(items, cursor, first, None)
                cursor = self.t.ops[called.last - 1].last
                self._call(items, called, first, cursor)
                op = called.last
                continue
            made = self.t.ops[op]
            self._events(items, cursor, made.last, made)
            cursor = made.last
            count = seen[made.name] = seen.get(made.name, 0) + 1
            for node in self.emitted.get(op, ()):
                self._node(items, node, made, (begin.split()[0], made.name, count, node.name()))
            op += 1
        self._events(items, cursor, last, None)

    def _events(self, items: list[Any], first: int, last: int, op: Op | None) -> None:
        for event in self.t.timeline[first:last]:
            if event.kind == "alloc":
                record = self.t.records[event.ident]
                if not event.bytes:
                    continue
                number = self.numbers[event.ident] = self.number(event.ident)
                word = event.op.removeprefix("aten.").split(".")[0]
                self.born.append((event.ident, word))
                shape = record.shape
                size = SIZES[DTYPES.get(record.dtype, record.dtype)]
                for part in shape:
                    size *= part
                if size != event.bytes:
                    self.w.problem("storage of other size", word, shape, event.bytes)
                items.append(["+", number, self.w.kind(shape, record.dtype), word])
            elif event.kind == "free" and event.ident in self.numbers:
                gone = self.on.pop(event.ident, [])
                if gone:
                    items.append(["-", *gone])
            elif event.kind == "resize":
                self.w.problem("resize", event.op)

    def _call(self, items: list[Any], called: Call, first: int, last: int) -> None:
        ident, node, slot = called.x[:3]
        x = self.tensors.get((node, slot)) if node is not None else None
        if x is None:
            x = self.known(ident)
        if x is None:
            self.w.problem("input unknown", called.weight)
        number = self.numbers[called.out[0]] = self.number(called.out[0])
        self.born.append((called.out[0], called.what))
        if called.out[1] is not None:
            self.tensors[called.out[1], called.out[2]] = number
        items.append([called.what, number, x, self.w.names(called.weight)])
        born = {e.ident for e in self.t.timeline[first:last] if e.kind == "alloc"}
        for event in self.t.timeline[first:last]:
            if event.kind == "free" and event.ident in self.numbers and event.ident not in born:
                items.append(["-", *self.on.pop(event.ident, [])])

    def _node(self, items: list[Any], node: Any, op: Op, key: Any) -> None:
        inputs: list[Any] = []
        for source, slot in node.next_functions:
            if source is None:
                inputs.append(None)
            elif "AccumulateGrad" in source.name():
                inputs.append(self.w.names(self.told.named[id(source.variable)]))
            elif (source, slot) in self.tensors:
                inputs.append(self.tensors[source, slot])
            elif self.outer is not None and (source, slot) in self.outer.tensors:
                inputs.append(f"@{self.outer.tensors[source, slot]}")
            else:
                inputs.append("?")
                self.w.problem("input of node unknown", key, source.name())
        outs, outputs = [o for o in op.outs if o[0] is not None], []
        for slot in range(max(1, len(getattr(node, "_input_metadata", [0])))):
            if slot >= len(outs):
                self.w.problem("node has more outputs than its operator", key, slot, op.outs)
                break
            ident, shape, dtype = outs[slot]
            base = self.known(ident)
            fresh = base in self._fresh(items) and not any(base == n for n in self.tensors.values())
            number = base if fresh else self.number(ident)
            self.tensors[node, slot] = number
            outputs.append([number, base, self.w.kind(shape, dtype)])
        while key in self.by_key:
            key = (*key, "")
        self.by_key[key] = node
        kinds: dict[str, Any] = {}
        item = ["n", node.name().removesuffix("Backward0"), inputs, outputs, kinds]
        self.keys[key] = (node.name(), item)
        kinds[self.mask(node)] = self.kept(node)
        items.append(item)

    def _fresh(self, items: list[Any]) -> set[Any]:
        """The tensors that were made since the last node."""
        found = set()
        for item in reversed(items):
            if item[0] != "+":
                break
            found.add(item[1])
        return found

    def mask(self, node: Any) -> str:
        return "".join("01"[source is not None] for source, _ in node.next_functions)

    def kept(self, node: Any) -> list[Any]:
        """What a node saves, and what its backward does: [saves, number of the backward]."""
        saves = []
        for name, packed in self.told.saved[node]:
            if isinstance(packed, Note) and packed.ident is not None and 0 not in packed.kind[0]:
                saves.append([name, self.known(packed.ident)])
            elif isinstance(packed, Kept):
                saves.append([name, self.known(self.t.ident(packed.tensor))])
            else:
                continue
            if saves[-1][1] is None:
                self.w.problem("saved tensor unknown", node.name(), name)
        return [saves, self.backward(node)]

    def backward(self, node: Any) -> int:
        span = self.told.spans.get(node)
        if span is None:
            return -1
        made: dict[int, int] = {}
        steps: list[Any] = []
        for event in self.t.timeline[span.first : span.last]:
            record = self.t.records.get(event.ident)
            if event.kind == "alloc" and event.bytes and record is not None:
                made[event.ident] = len(made)
                word = event.op.removeprefix("aten.").split(".")[0]
                steps.append([self.w.kind(record.shape, record.dtype), word])
            elif event.kind == "free" and event.ident in made:
                steps.append(made[event.ident])
        gave: list[Any] = []
        for given in span.gave:
            if given is None:
                gave.append(None)
                continue
            ident, view = given
            if ident in made:
                gave.append([made[ident], int(view)])
            elif ident in span.came:
                gave.append([-1 - span.came.index(ident), int(view)])
            else:
                gave.append(None)
                self.w.problem("gradient of unknown storage", node.name())
        _unreduced(steps, gave)
        word = json.dumps([steps, gave])
        return self.w.backwards.setdefault(word, len(self.w.backwards))

    def add(self, other: "Part") -> None:
        """What the same nodes keep where other inputs ask for gradients."""
        if [word for _, word in self.born] != [word for _, word in other.born]:
            self.w.problem("other storages", [word for _, word in other.born])
            return
        if other is not self:
            other.base = self
        for key, node in other.by_key.items():
            if key not in self.keys:
                self.w.problem("another node", key)
                continue
            name, item = self.keys[key]
            mask = other.mask(node)
            if mask not in item[4]:
                item[4][mask] = other.kept(node)
        other.base = None


def _unreduced(steps: list[Any], gave: list[Any]) -> None:
    """Take away the sums and casts to the shape of an input, which the engine makes by itself.

    Autograd makes them when the node has let go of what it saved: validate_outputs in engine.cpp
    """
    while len(steps) > 1 and isinstance(steps[-1], int) and isinstance(steps[-2], list):
        made = sum(isinstance(step, list) for step in steps) - 1
        given = [i for i, give in enumerate(gave) if give and give[0] == made]
        if steps[-2][1] not in ("sum", "_to_copy") or len(given) != 1:
            return
        gave[given[0]] = [steps[-1], 2]
        del steps[-2:]


def _emissions(told: Pass) -> dict[int, list[Any]]:
    """By operator, the nodes that are there when it has run."""
    found: dict[int, list[Any]] = {}
    last: dict[int, int] = {}
    for node in told.nodes:
        kept = [packed.ops for _, packed in told.saved[node] if isinstance(packed, Note)]
        last[id(node)] = max(kept, default=0) - 1
    numbers = [op.seen for op in told.tracker.ops]
    for node in sorted(told.nodes, key=lambda node: node._sequence_nr()):
        index = bisect_right(numbers, node._sequence_nr())
        if "AccumulateGrad" in node.name() or index == len(numbers):
            continue
        if told.tracker.ops[index].name == "aten.clone.default" and "Clone" not in node.name():
            index += 1  # of what an operator in place is about to change
        found.setdefault(max(index, last.get(id(node), 0)), []).append(node)
    told.emitted = found
    return found


# What modules are called, and in memlab. The longer name counts, where two of them end a path.
NAMES = {
    "o_proj": "out",
    "dense": "out",
    "out_proj": "out",
    "attn.c_proj": "out",
    "query_key_value": "qkv",
    "qkv_proj": "qkv",
    "Wqkv": "qkv",
    "c_attn": "qkv",
    "gate_up_proj": "gate_up",
    **dict.fromkeys(("dense_h_to_4h", "fc1", "fc_in", "c_fc"), "up"),
    **dict.fromkeys(("dense_4h_to_h", "fc2", "fc_out", "mlp.c_proj"), "down"),
    **dict.fromkeys(("embed_tokens", "wte", "word_embeddings"), "embedding"),
    "wpe": "positions",
    "embed_out": "lm_head",
    "ln_1": "attention_norm",
    "ln_2": "feed_forward_norm",
    "ln_f": "final_norm",
    "input_layernorm": "attention_norm",
    "experts.gate_up_proj": "experts_up",
    "experts.down_proj": "experts_down",
    "mlp.gate.weight": "router",
}


def name_of(path: str) -> str:
    """What the parameter of this path is called in memlab: q, down, attention_norm, q.bias."""
    bias = ".bias" if path.endswith(".bias") else ""
    for end in sorted(NAMES, key=len, reverse=True):
        if path.endswith((f".{end}", f".{end}.weight", f".{end}.bias")):
            return f"{NAMES[end]}{bias}"
    *_, owner, kind = path.split(".")
    if kind not in ("weight", "bias"):
        owner = kind
    name = owner.replace("layernorm", "norm").removesuffix("_proj")
    if name.startswith("ln_"):
        name += "_norm"
    if path.count(".") <= 2 and name == "norm":
        name = "final_norm"
    return f"{name}{bias}"
