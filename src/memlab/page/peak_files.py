"""The files of tools/peaks.py, read for CPython: for the page's worked example and the tests."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any


def reader(folder: Path) -> Callable[[str, str], str]:
    """What memlab.page.answer.answer looks moments up with; "" for what has no file.

    Shapes      folder: a pathlib.Path that holds <family>.<precision>.json
    """
    known: dict[str, dict[str, Any] | None] = {}

    def lookup(name: str, kind: str) -> str:
        if name not in known:
            file = folder / f"{name}.json"
            known[name] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
        found = known[name]
        if found is None or kind not in found["kinds"]:
            return ""
        return json.dumps(moments(found, kind))

    return lookup


def moments(file: dict[str, Any], kind: str) -> list[list[Any]]:
    """The moments of a kind of step: [[hill, {term: {letters: bytes}}]]."""
    sums, terms = file["sums"], file["terms"]
    return [
        [
            file["hills"][hill],
            {term: sums[i] for term, i in zip(terms, places, strict=True) if sums[i]},
        ]
        for hill, *places in file["kinds"][kind]
    ]
