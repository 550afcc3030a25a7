"""What --json prints: one object that says which command made it, and by which schema."""

from __future__ import annotations

import json

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

# Counted up when a field goes, is renamed, or means something else; a new field is no new version.
SCHEMA = 1


def document(kind: str, /, **fields: Any) -> str:
    """The JSON text of one answer: {"memlab": kind, "schema": 1, ...the fields}.

    kind        the command's name; memlab.cli.schema describes its fields
    Text        in ASCII with escapes, so that no terminal and no pipe can spoil it
    """
    return json.dumps({"memlab": kind, "schema": SCHEMA, **fields}, indent=1, allow_nan=False)
