"""transformers' deepseek_v3: latent attention, experts in groups, first layers without.

Source      transformers: models/deepseek_v3/modeling_deepseek_v3.py
Leaves out  the correction of the router as from_pretrained reads it, in fp32 whatever the rest is
            in; modules that predict more than the next token: the class builds none
"""

from __future__ import annotations

from .grouped_router import GroupedRouter
from .latent import Interleaved


class DeepseekV3(Interleaved, GroupedRouter):
    """Mirrors DeepseekV3ForCausalLM."""

    @property
    def correction(self) -> str:
        return self.setting.dtype
