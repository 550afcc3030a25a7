"""LoRA beside parameters that are no linear layers: what is written out of them in each step.

X experts · [X, F, D] the weight of all experts of a layer · b bytes of one value
"""

from __future__ import annotations

from ..formats import storage
from .lora import WRAPPED, Lora, beside

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from ..model import Model


def written_out(lora: Lora, model: Model, dtype: str) -> int:
    """Bytes of parameters plus products that autograd keeps of one forward pass.

    Formula     numel · b for each adapted parameter that is no linear layer, in every layer that
                has one: of all experts X · F · D · b. With gradient checkpointing those of one
                layer, while it is computed again; then the gradient of each is as large
    Unit        bytes
    Source      peft, tuners/lora/layer.py: ParamWrapper, in each step anew
    Leaves out  the matrices of the adapters in the weights' format, where theirs is another
    """
    known = beside(model)
    return storage(sum([known[name].count for name in lora.targets if name in WRAPPED]), dtype)
