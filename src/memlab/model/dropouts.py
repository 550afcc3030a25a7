"""With what probability a model drops values, as its config or its class says.

Source      transformers: models/*/configuration_*.py
"""

from __future__ import annotations

from ..families import record_of

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def dropouts(family: str, config: Mapping[str, Any], p: float | None) -> dict[str, float]:
    """The probability of dropout of attention, of the residual stream, of the embedding.

    p           one for all that the family has; None: what the config says, else its class
    """
    made = {}
    for key, (part, usual) in record_of(family).dropouts.items():
        told = config.get(key)
        made[part] = p if p is not None else usual if told is None else told
    return made
