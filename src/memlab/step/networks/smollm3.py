"""transformers' smollm3: a llama some of whose layers turn nothing by position.

Source      transformers: models/smollm3/modeling_smollm3.py
"""

from __future__ import annotations

from ..core.graph import Tensor
from ..windows import turning
from .hf_llama import HFLlama

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


class RotaryInSomeLayers(HFLlama):
    """Layers with rotary positions and layers without; all are handed the angles."""

    @property
    def turns(self) -> list[bool]:
        """Of each layer, whether positions turn its queries and keys."""
        return turning(self.setting.model)

    @property
    def narrow_keys(self) -> list[bool]:
        """Layers whose keys autocast leaves narrow: those that nothing turns."""
        return [not turns for turns in self.turns]

    def angles_of(self, angles: Any, layer: int) -> Any:
        return (*angles, self.turns[layer])

    def turns_by(self, angles: Any) -> bool:
        return bool(angles[2])

    def rotate(
        self, q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, turns: bool = True
    ) -> tuple[Tensor, Tensor]:
        return super().rotate(q, k, cos, sin) if turns else (q, k)


class SmolLM3(RotaryInSomeLayers):
    """Mirrors SmolLM3ForCausalLM."""
