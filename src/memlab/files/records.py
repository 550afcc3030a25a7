"""Measurements on a device, as files: what was predicted, what was measured, and where.

`memlab record` writes one such file; those that the book shows stand in the package, in
data/records. A row has a prediction that was made without the device, and what the device counted.
"""

from __future__ import annotations

import json
from pathlib import Path

from ..base.frozen import dataclass
from ..base.table import as_html, as_text, cell, signed
from ..base.untrusted import read_json
from .data import data_files

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

FOLDER = Path(__file__).parent.parent / "data" / "records"
SCHEMA = 1
KINDS = ("cuda", "cpu")
COUNTERS = ("requested", "allocated", "reserved")
STATES = {
    "measured": "the device counted it",
    "skipped": "this device cannot do it; the message says why",
    "failed": "it should have run and did not; the message says what was raised",
}
_WORDS = ("device", "driver", "cuda", "torch", "python", "date", "commit", "command")


@dataclass(frozen=True)
class Row:
    """One figure: predicted without the device, measured on it.

    term        the label of the chapter that it belongs to
    predicted   bytes, or None where there is no formula; `by` says how: derived, traced, both
    measured    bytes by counter: requested, allocated, reserved (None: no such counter there)
    compared    the counter that the prediction is about
    above, below    bytes by which the measured figure may miss the predicted one, and why
    """

    name: str
    term: str
    what: str
    by: str
    predicted: int | None
    measured: Mapping[str, int | None]
    compared: str
    above: int
    below: int
    why: str
    state: str
    message: str

    @property
    def found(self) -> int | None:
        """What was measured, by the counter that the prediction is about."""
        return self.measured.get(self.compared)

    @property
    def error(self) -> int | None:
        """Measured less predicted; None where one of them is missing."""
        if self.found is None or self.predicted is None:
            return None
        return self.found - self.predicted

    @property
    def holds(self) -> bool:
        """Whether the error is within its tolerance; a row without one holds unless it failed."""
        if self.error is None:
            return self.state != "failed"
        return -self.below <= self.error <= self.above

    def cells(self) -> list[str]:
        said = signed(self.error) if self.state == "measured" else self.state
        return [self.name, cell(self.predicted), cell(self.found), said]


@dataclass(frozen=True, repr=False)
class Record:
    """One run of `memlab record`: the device, everything that may change a byte, and the rows."""

    kind: str
    device: str
    driver: str
    cuda: str
    torch: str
    python: str
    date: str
    commit: str
    command: str
    complete: bool
    rows: tuple[Row, ...]

    def about(self, term: str) -> Record:
        """The same with the rows of one chapter alone."""
        from ..base.frozen import replace

        return replace(self, rows=tuple(row for row in self.rows if row.term == term))

    @property
    def where(self) -> str:
        """The provenance in one line."""
        driver = f", driver {self.driver}, CUDA {self.cuda}" if self.kind == "cuda" else ""
        return (
            f"{self.device}{driver}, torch {self.torch}, {self.date}, commit {self.commit}, "
            f"`{self.command}`"
        )

    @property
    def wrong(self) -> list[Row]:
        """The rows that failed, or missed their prediction by more than their tolerance."""
        return [row for row in self.rows if not row.holds]

    def counts(self) -> dict[str, int]:
        """How many rows were measured, skipped and failed."""
        states = [row.state for row in self.rows]
        return {state: states.count(state) for state in STATES}

    def table(self) -> list[list[str]]:
        """Predicted on a laptop, measured on the device, and the error of each row."""
        shown = [row.cells() for row in self.rows if row.state != "skipped"]
        return [["bytes", "predicted", "measured", "error"], *shown]

    def __str__(self) -> str:
        return f"{as_text(self.table())}\n{self.where}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(self.table(), title=self.where.replace("`", ""))


def read(path: str | Path) -> Record:
    """The record in a file.

    Raises      ValueError for a file that is no record, by its name and what is wrong with it;
                OSError where there is none
    """
    path = Path(path)
    try:
        return record(read_json(path))
    except ValueError as error:  # of JSON, of UTF-8 and of `record`
        raise ValueError(f"{path.name} is no record: {error}") from None


def records(kind: str | None = None) -> list[Record]:
    """The committed records, by file name; those of one kind of device, if asked.

    Raises      ValueError for an unknown kind, or a file that is no record; FileNotFoundError
                where an installation lacks them
    """
    if kind not in (None, *KINDS):
        raise ValueError(f"unknown kind of device {kind!r}; known: {', '.join(KINDS)}")
    found = [read(path) for path in data_files(FOLDER)]
    return [one for one in found if kind in (None, one.kind)]


def record(fields: Any) -> Record:
    """A record from the object in its file; everything is checked.

    Raises      ValueError for a field that is missing, unknown or of the wrong kind, by its name
    """
    wanted = ("schema", "kind", *_WORDS, "complete", "unit", "rows")
    _keys("the record", fields, wanted)
    if fields["schema"] != SCHEMA or isinstance(fields["schema"], bool):
        raise ValueError(f"schema={fields['schema']!r}; this memlab reads {SCHEMA}")
    if fields["unit"] != "bytes":
        raise ValueError(f"unit={fields['unit']!r}; all figures are bytes")
    _one_of("kind", fields["kind"], KINDS)
    for name in _WORDS:
        _word(name, fields[name])
    if not isinstance(fields["complete"], bool):
        raise ValueError(f"complete={fields['complete']!r} is neither true nor false")
    if not isinstance(fields["rows"], list):
        raise ValueError(f"rows is a {type(fields['rows']).__name__}; a list is needed")
    rows = tuple(_row(one, i) for i, one in enumerate(fields["rows"]))
    names = [row.name for row in rows]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"rows with one name: {', '.join(twice)}")
    words = {name: fields[name] for name in ("kind", *_WORDS, "complete")}
    return Record(**words, rows=rows)


def as_json(one: Record) -> str:
    """The text of a record's file, one row a line."""
    head = {"schema": SCHEMA, "kind": one.kind} | {name: getattr(one, name) for name in _WORDS}
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    lines += [f' "complete": {json.dumps(one.complete)}', ' "unit": "bytes"']
    keys = Row.__annotations__
    rows = [json.dumps({key: getattr(row, key) for key in keys}) for row in one.rows]
    body = ",\n  ".join(rows)
    lines.append(f' "rows": [\n  {body}\n ]' if rows else ' "rows": []')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _row(fields: Any, place: int) -> Row:
    name = fields.get("name") if isinstance(fields, dict) else None
    where = f"row {name}" if isinstance(name, str) and name else f"row {place + 1}"
    _keys(where, fields, tuple(Row.__annotations__))
    try:
        for key in ("name", "term", "what"):
            _word(key, fields[key])
        for key in ("by", "why", "message"):
            _word(key, fields[key], empty=True)
        _one_of("state", fields["state"], tuple(STATES))
        _one_of("compared", fields["compared"], COUNTERS)
        _size("predicted", fields["predicted"], none=True)
        for key in ("above", "below"):
            _size(key, fields[key])
        _keys("measured", fields["measured"], COUNTERS)
        for key, value in fields["measured"].items():
            _size(key, value, none=True)
        if (fields["state"] == "measured") != (fields["measured"][fields["compared"]] is not None):
            raise ValueError(f"state={fields['state']!r}, and {fields['compared']} says otherwise")
        if fields["state"] != "measured" and not fields["message"]:
            raise ValueError(f"state={fields['state']!r} without a message")
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    return Row(**fields)


def _keys(where: str, fields: Any, wanted: tuple[str, ...]) -> None:
    if not isinstance(fields, dict):
        raise ValueError(f"{where} is a {type(fields).__name__}; an object is needed")
    if missing := [key for key in wanted if key not in fields]:
        raise ValueError(f"{where} has no {', '.join(missing)}")
    if more := sorted(set(fields) - set(wanted)):
        raise ValueError(f"{where} has {', '.join(more)}, which no record has")


def _word(name: str, value: Any, *, empty: bool = False) -> None:
    if not isinstance(value, str) or not (value or empty):
        raise ValueError(f"{name}={value!r} is no text")


def _one_of(name: str, value: Any, known: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"unknown {name} {value!r}; known: {', '.join(known)}")


def _size(name: str, value: Any, *, none: bool = False) -> None:
    if none and value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{name}={value!r} is no whole number of bytes")
