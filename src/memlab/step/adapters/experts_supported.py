"""Which adapters of a mixture of experts are described, and what is refused, by name."""

from __future__ import annotations

from ...adapters import Lora
from ...adapters.lora import WRAPPED
from ...base.not_described import NotDescribed
from ...families import record_of
from ...model import Model
from ...run import Run

IN_ATTENTION = ("q", "k", "v", "out")
LOOPS = ("plain", "keeps-outputs", "trainer")


def check_attention(model: Model, targets: tuple[str, ...]) -> None:
    """Refuse adapters of a kind that is no LoRA elsewhere than in a mixture's attention."""
    for name in targets if model.experts else ():
        if name not in IN_ATTENTION:
            raise NotDescribed(
                f"target {name!r} is not described for {model.family}: all experts of a layer are "
                f"one parameter, and no linear layer; known: {', '.join(IN_ATTENTION)}"
            )


def check_mixture(lora: Lora, model: Model, run: Run) -> None:
    """Refuse LoRA that peft does not make of a mixture, or that is not described.

    Raises      ValueError that names the target, and what is known in its place
    """
    record = record_of(model.family)
    own = [name for name in WRAPPED if name != "router" or not record.linear_router]
    known = (*IN_ATTENTION, *own, *record.shared_targets)
    for name in lora.targets:
        if name not in known:
            raise NotDescribed(
                f"target {name!r} is not described for {model.family}: all experts of a layer are "
                f"one parameter, and no linear layer; known: {', '.join(known)}"
            )
    wrapped = [name for name in lora.targets if name in WRAPPED]
    if not wrapped:
        return
    what = f"adapters beside {', '.join(wrapped)}"
    for field in ("dropout", "dora"):
        if value := getattr(lora, field):
            raise ValueError(
                f"{field}={value!r} with {what}: peft refuses it, for its product is added to the "
                "weight itself and reads no input"
            )
    if model.experts == 1 and wrapped != ["router"]:
        raise NotDescribed(f"{what} of X=1 experts are not described; at least 2 are")
    if run.devices.ranks > 1:
        raise NotDescribed(f"{what} are described on one device, not for devices={run.devices}")
    if run.loop not in LOOPS:
        known_loops = ", ".join(LOOPS)
        raise NotDescribed(f"{what} in loop={run.loop!r} are not described; known: {known_loops}")
    if "router" in wrapped and lora.dtype not in (None, "fp32"):
        raise NotDescribed(f"{what} in {lora.dtype}: on a CPU peft casts them; fp32 is described")
