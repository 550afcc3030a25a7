"""The recordings of a family in one small file: what is said twice is stored once.

Kinds of a family differ in few instructions, and the parts of a layer repeat each other. So numbers
of tensors are told by how far back they are, and the file has one table each of words, of
backwards and of instructions, which the kinds point to: memlab.step.networks.recording.unpacked
"""

import json
from typing import Any

Items = list[Any]


def packed(kinds: dict[str, Any]) -> dict[str, Any]:
    """The tables, and of each kind what memlab.measure.network_written has made."""
    tables = _Tables()
    told = {name: tables.kind(kind) for name, kind in kinds.items()}
    return {
        "words": list(tables.words),
        "backward": [json.loads(each) for each in tables.backwards],
        "lines": [json.loads(each) for each in tables.lines],
        "kinds": told,
    }


class _Tables:
    """What has a number in the file, and the numbers."""

    def __init__(self) -> None:
        self.words: dict[str, int] = {}
        self.backwards: dict[str, int] = {}
        self.lines: dict[str, int] = {}
        self.told: dict[str, Any] = {}  # the kind that is packed
        self.count = 0  # of its tensors, so far

    def kind(self, told: dict[str, Any]) -> dict[str, Any]:
        self.told = told
        ends = ("embeds", "in", "out", "first")
        made: dict[str, Any] = {name: told[name] for name in ends if name in told}
        made["weights"] = self.weights(told["weights"])
        made["buffers"] = [self.word(number) for number in told["buffers"]]
        if told.get("each"):
            made["each"] = told["each"]
        self.count = 1 + len(told["buffers"])
        made["before"] = self.items(told["before"])
        made["after"] = self.items(told["after"])
        made["layers"] = {}
        for name, layer in told["layers"].items():
            self.count = 1 + len(layer["given"])
            items = self.items(layer["items"])
            weights = self.weights(layer["weights"])
            kept = {"given": layer["given"], "out": layer["out"]}
            if layer.get("beside"):
                kept["beside"] = layer["beside"]
            made["layers"][name] = {**kept, "weights": weights, "items": items}
        return made

    def word(self, number: int) -> int:
        return self.words.setdefault(self.told["kinds"][number], len(self.words))

    def weights(self, told: Items) -> Items:
        return [[name, self.word(number), multiplies] for name, number, multiplies in told]

    def items(self, told: Items) -> list[int]:
        return [
            self.lines.setdefault(json.dumps(self.item(each)), len(self.lines)) for each in told
        ]

    def item(self, item: Items) -> Items:
        """An instruction by distances; what it makes has the next numbers, and is not said."""
        count, what = self.count, item[0]

        def back(number: Any) -> Any:
            return count - number if isinstance(number, int) else number

        if what == "-":
            return ["-", *map(back, item[1:])]
        if what == "n":
            outs: Items = []
            for number, base, *word in item[3]:
                if number == base:
                    outs.append([back(base)])
                    continue
                assert number == self.count
                self.count += 1
                outs.append([back(base), self.word(word[0])])
            masks = {
                mask: [[[name, back(place)] for name, place in saves], self.backward(number)]
                for mask, (saves, number) in item[4].items()
            }
            return ["n", item[1], [back(place) for place in item[2]], outs, masks]
        self.count += 1
        if what == "+":
            assert item[1] == count
            return ["+", self.word(item[2]), item[3]]
        assert item[1] == count
        return [what] if what == "x" else [what, back(item[2]), item[3]]

    def backward(self, number: int) -> int:
        steps, gives = self.told["backward"][number]
        steps = [s if isinstance(s, int) else [self.word(s[0]), s[1]] for s in steps]
        return self.backwards.setdefault(json.dumps([steps, gives]), len(self.backwards))
