"""The pieces of a JSON Schema: one field, an object of fields, a list."""

from __future__ import annotations

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


def field(kind: str, what: str, **more: Any) -> dict[str, Any]:
    """One field; a kind that ends in "?" may be null."""
    named = {"text": "string", "bytes": "integer", "count": "integer", "flag": "boolean"}
    name = named.get(kind.rstrip("?"), kind.rstrip("?"))
    told: dict[str, Any] = {"type": [name, "null"] if kind.endswith("?") else name}
    if kind.rstrip("?") in ("bytes", "count"):
        told["minimum"] = 0
    return told | {"description": what} | more


def record(fields: dict[str, Any], what: str = "") -> dict[str, Any]:
    told = {"type": "object", "required": list(fields), "properties": fields}
    return told | ({"description": what} if what else {})


def several(of: dict[str, Any], what: str) -> dict[str, Any]:
    return {"type": "array", "description": what, "items": of}


UNIT = field("text", "of every size in this document", const="bytes")
SIZES = {"type": "object", "additionalProperties": {"type": ["integer", "null"]}}
