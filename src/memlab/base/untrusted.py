"""A file that may come from anybody: how much of it is read, and JSON that has one meaning."""

from __future__ import annotations

import json
import math
import os
import stat

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any, BinaryIO

MOST = 2**22  # bytes of a config: ten times the longest that models on the hub have


def opened(path: str | os.PathLike[str]) -> BinaryIO:
    """A regular file, to be read.

    Raises      ValueError for a device or a pipe; OSError where it cannot be opened
    """
    file = open(path, "rb", opener=_without_waiting)  # noqa: SIM115 - whoever asks closes it
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise ValueError(f"{path} is no regular file: a pipe and a device are not read")
    return file


def read_bytes(path: str | os.PathLike[str], most: int) -> bytes:
    """All bytes of a regular file.

    Raises      ValueError for a device, a pipe, or more bytes; OSError where it cannot be read
    """
    with opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        found = file.read(most + 1) if size <= most else b""
    if max(size, len(found)) > most:  # it may grow
        raise ValueError(f"{path}: more than {most:,} bytes, which is too long for what it is")
    return found


def decoded(data: bytes) -> str:
    """Text in UTF-8, with or without the mark that editors on Windows begin it with (BOM).

    Raises      ValueError for other text
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 text, at byte {error.start:,}") from None


def read_json(path: str | os.PathLike[str], most: int = MOST, *, infinity: bool = False) -> Any:
    """The value of a JSON file: see `parsed`.

    Raises      ValueError for text that is none; what `read_bytes` raises
    """
    data = read_bytes(path, most)
    try:
        return parsed(decoded(data), infinity=infinity)
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from None


def parsed(words: str, *, infinity: bool = False) -> Any:
    """The value of a JSON text, of which every reader takes the same.

    infinity    whether Infinity is taken, as Python writes it and JSON has none: Mamba's configs
                end time_step_limit with it
    Raises      ValueError for what is no JSON, for a key that an object has twice, for NaN, for a
                number that is endless as a float, and for what is nested too deeply
    """

    def number(said: str) -> float:
        value = float(said)
        if math.isnan(value) or (math.isinf(value) and not infinity):
            raise ValueError(f"{said} is no number of JSON")
        return value

    try:
        return json.loads(words, object_pairs_hook=_once, parse_constant=number, parse_float=number)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def brief(value: Any) -> str:
    """A value as a line that refuses it repeats it."""
    words = repr(value)
    return words if len(words) <= 60 else words[:57] + "..."


def _without_waiting(path: str, flags: int) -> int:
    """Open a pipe into which nobody writes at once, so that it can be refused."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose keys stand there once each."""
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise ValueError(f"{name!r} stands there twice")
            seen.add(name)
    return made
