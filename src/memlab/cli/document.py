"""What --json prints: one object that says which command made it, and by which schema."""

from __future__ import annotations

from ..base.versions import PROVEN, VERSION

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

# Counted up when a field goes, is renamed, or means something else; a new field is no new version.
SCHEMA = 1


def document(kind: str, /, **fields: Any) -> str:
    """The JSON text of one answer: {"memlab": kind, "schema": 1, "proven": ..., ...}.

    kind        the command's name; `memlab schema` describes its fields
    Text        in ASCII with escapes, so that no terminal and no pipe can spoil it
    """
    import json  # who reads a table needs none

    made = {"memlab": kind, "schema": SCHEMA, "proven": {"memlab": VERSION, **PROVEN}}
    return json.dumps(made | fields, indent=1, allow_nan=False)
