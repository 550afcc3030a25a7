"""The files of tools/peaks.py, read for CPython: for the page's worked example and the tests."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

TYPES = "types"  # the name by which the page is asked for the tables of tensors


def reader(folder: Path) -> Callable[[str, str], str]:
    """What memlab.page.answer.answer looks moments up with; "" for what has no file.

    Shapes      folder: a pathlib.Path that holds <family>.<precision>.json; beside it types.json
    """
    known: dict[str, dict[str, Any] | None] = {}

    def lookup(name: str, kind: str) -> str:
        if name == TYPES:
            return table(folder.parent / f"{TYPES}.json", kind)
        if name not in known:
            file = folder / f"{name}.json"
            known[name] = unfolded(file.read_text(encoding="utf-8")) if file.exists() else None
        found = known[name]
        if found is None or kind not in found["kinds"]:
            return ""
        return json.dumps(moments(found, kind))

    return lookup


def table(file: Path, family: str) -> str:
    """The table of a type's tensors with what all types share, "" for a type that is not known."""
    told = json.loads(file.read_text(encoding="utf-8"))
    if family not in told["types"] and family not in told["refused"]:
        return ""
    shared = {name: told[name] for name in ("common", "activations")}
    built = family not in told["unbuilt"]
    return json.dumps(shared | {"table": told["types"].get(family), "built": built})


def unfolded(text: str) -> dict[str, Any]:
    """A file's content, with each sum and each row of sums as it is."""
    file = json.loads(text)
    sums: list[dict[str, int]] = []
    for told in file["sums"]:
        made = dict(sums[-told["="]]) if "=" in told else {}
        for word in told:
            if word != "=":
                made[word] = made.get(word, 0) + told[word]
        sums.append({word: made[word] for word in made if made[word]})
    width = 2 + len(file["terms"])
    rows = [[0] * width]
    for at in range(0, len(file["rows"]), width):
        more = file["rows"][at : at + width]
        rows.append([one + two for one, two in zip(rows[-1], more, strict=True)])
    return file | {"sums": sums, "rows": rows[1:]}


def moments(file: dict[str, Any], kind: str) -> list[list[Any]]:
    """The moments of a kind of step: [[hill, places, {term: {letters: bytes}}]]."""
    sums, terms, spans = file["sums"], file["terms"], file["kinds"][kind]
    rows = [
        row
        for first, count in zip(spans[::2], spans[1::2], strict=True)
        for row in file["rows"][first : first + count]
    ]
    return [
        [
            file["hills"][hill],
            place,
            {term: sums[i] for term, i in zip(terms, sums_of, strict=True) if sums[i]},
        ]
        for hill, place, *sums_of in rows
    ]
