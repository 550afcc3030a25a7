"""Adapters of a model: LoRA, (IA)³, VeRA and prompt tuning, each with its shapes and its bytes."""

from .lora import Lora as Lora
from .others import Ia3 as Ia3
from .others import Prompt as Prompt
from .others import Vera as Vera
