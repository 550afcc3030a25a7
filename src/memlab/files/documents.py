"""A JSON or YAML file that somebody brings: a mapping of plain values, within limits.

YAML's tags make nothing (the safe loader), and what a few lines can grow to by aliases and merge
keys is bounded before anything is built: the events are counted first.
"""

from __future__ import annotations

import json
from os.path import dirname, exists, join

from ..base.extras import missing
from ..base.untrusted import decoded, parsed, read_bytes

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

MOST_BYTES = 2**20  # of a file; those of trainers have some kilobytes
MOST_DEEP = 20  # mappings and lists inside each other
MOST_ALIASES = 16  # each may double what a merge key copies, not more often than this
MOST_VALUES = 20_000


def mapping(path: str) -> dict[str, Any]:
    """What a file of JSON or YAML holds, by its keys.

    Raises      ValueError for a file that is neither, holds no mapping, or is beyond the limits;
                OSError where it cannot be read
    """
    data = read_bytes(path, MOST_BYTES)
    try:
        words = decoded(data)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    found = of_json(path, words) if words.lstrip()[:1] in ("{", "[") else _yaml(path, words)
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        raise ValueError(f"{path}: an object is needed, keys and their values")
    return found


def of_json(path: str, words: str) -> Any:
    """The value of a JSON text.

    Raises      ValueError that names the file
    """
    try:
        return parsed(words)
    except ValueError as error:
        raise ValueError(f"{path}: no JSON: {error}") from None


def _yaml(path: str, words: str) -> Any:
    try:
        import yaml
    except ModuleNotFoundError as error:
        raise ValueError(missing(f"{path}: YAML", error, "yaml")) from error
    deep = aliases = values = 0
    try:
        for event in yaml.parse(words, Loader=yaml.SafeLoader):
            values += 1
            deep += isinstance(event, yaml.CollectionStartEvent)
            deep -= isinstance(event, yaml.CollectionEndEvent)
            aliases += isinstance(event, yaml.AliasEvent)
            if deep > MOST_DEEP or aliases > MOST_ALIASES or values > MOST_VALUES:
                break
        else:
            return yaml.safe_load(words)
    except (yaml.YAMLError, RecursionError, ValueError, TypeError, OverflowError) as error:
        where = getattr(error, "problem_mark", None)
        at = f" in line {where.line + 1}" if where else ""
        what = getattr(error, "problem", None) or type(error).__name__
        raise ValueError(f"{path}: no YAML{at}: {what}") from None
    raise ValueError(
        f"{path}: more than {MOST_VALUES:,} values, {MOST_ALIASES} aliases or {MOST_DEEP} levels "
        "are not read"
    )


def shown(value: Any) -> str:
    """A value in the words of its file, cut where it is long."""
    if isinstance(value, str):
        words = value
    else:
        try:
            words = json.dumps(value, default=str, ensure_ascii=False)
        except (ValueError, RecursionError):  # a value inside itself
            words = "..."
    return words if len(words) <= 60 else words[:57] + "..."


def beside(path: str, name: str) -> str:
    """A file that another one names: as it stands, or next to that one."""
    near = join(dirname(path), name)
    return near if not exists(name) and exists(near) else name
