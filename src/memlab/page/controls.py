"""What the page's calculator asks: one table of controls for form, address and tests.

A control has the name of the field that it sets: of memlab.Run (OF_RUN), or of its devices
(OF_DEVICES), which an address writes beside the others because it is one list of names and values.
"""

from __future__ import annotations

from ..base.message import Message
from ..base.quoted import shown
from ..devices import devices
from ..engines.apple import macs
from ..model.presets import PRESETS
from ..run import Run
from ..run.fields import MOST_PARTS
from . import adapter_controls as adapters
from . import loop_controls as loops
from . import serve_controls as serving
from . import words as say
from .pasted import config_of

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

OWN = "own"  # what model and program take where nothing is said
OTHER_MODEL = "config"  # instead of a preset: the config that was pasted
OTHER_CARD = "other"  # of the size in the next control

BY_ITSELF = "default"  # of which the page says more: memlab.page.own_values
# Label, and the name of memlab.Recipe's formats.
PRECISIONS = {
    "bf16": ("bf16 weights and states", "bf16"),
    "autocast": ("mixed precision (fp32 weights, bf16 autocast)", "autocast"),
    "fp32": ("fp32 weights and states", "fp32"),
    "zero": ("mixed precision (bf16 weights, fp32 master copy)", "zero"),
}
OPTIMIZERS = {
    "adamw": "AdamW",
    "adamw8bit": "8-bit AdamW (torchao)",
    "adamw4bit": "4-bit AdamW (torchao)",
    "adamw_fp8": "FP8 AdamW (torchao)",
    "bnb_adamw8bit": "8-bit AdamW (bitsandbytes)",
    "bnb_paged_adamw8bit": "paged 8-bit AdamW (bitsandbytes)",
    "muon": "Muon",
    "lion": "Lion",
    "adafactor": "Adafactor",
    "momentum": "SGD with momentum",
    "sgd": "SGD",
}
ZERO = {
    0: "0: nothing sharded (DDP)",
    1: "1: optimizer states sharded (DeepSpeed)",
    2: "2: gradients too (DeepSpeed)",
    3: "3: weights too (FSDP2)",
}
LOSSES = [("plain", "all logits at once"), ("linear_cross_entropy", "chunked (torch's)")]
LOSSES += [("chunked", "in 8 chunks (memlab's)")]
GATHERED = [(OWN, "that of the weights"), ("bf16", "bf16 (bf16=True in Trainer)")]
# Name, label, values in order with their labels; or name, label, least, most of a whole number.
CHOICES = (
    ("model", "Model", [(name, name) for name in sorted(PRESETS)]),
    (
        "precision",
        "Precision",
        [(OWN, BY_ITSELF)] + [(n, PRECISIONS[n][0]) for n in ("bf16", "autocast", "fp32", "zero")],
    ),
    ("optimizer", "Optimizer", [(n, OPTIMIZERS[n]) for n in sorted(OPTIMIZERS)]),
    (
        "optimizer_impl",
        "Optimizer implementation",
        [(OWN, BY_ITSELF), ("foreach", "foreach"), ("fused", "fused")],
    ),
    (
        "attention",
        "Attention implementation",
        [(OWN, BY_ITSELF), ("sdpa", "sdpa"), ("eager", "eager")],
    ),
    ("checkpoint", "Gradient checkpointing", [(OWN, BY_ITSELF), ("none", "off"), ("block", "on")]),
    ("loss", "Loss", LOSSES),
    (
        "card",
        "GPU",
        [(each.name, each.told()) for each in devices() + macs()] + [(OTHER_CARD, "another GPU")],
    ),
    ("zero", "ZeRO stage", [(n, ZERO[n]) for n in ZERO]),
    ("param_dtype", "FSDP2 compute dtype", GATHERED),
) + (loops.CHOICES + adapters.CHOICES + serving.CHOICES)
NUMBERS = (
    ("batch", "Batch size per GPU", 1, 65536),
    ("tokens", "Sequence length, in tokens", 2, 4194304),
    ("micro_batches", "Gradient accumulation steps", 1, MOST_PARTS),
    ("gib", "Memory (VRAM) of another GPU, in GiB", 1, 4096),
    ("data", "Data-parallel GPUs (DP)", 1, 65536),
    ("tensor", "Tensor-parallel GPUs (TP)", 1, 4096),
    ("pipeline", "Pipeline-parallel GPUs (PP)", 1, 4096),
) + (loops.NUMBERS + adapters.NUMBERS + serving.NUMBERS)
OF_RUN = (
    "batch",
    "tokens",
    "micro_batches",
    "optimizer_impl",
    "attention",
    "checkpoint",
    "loss",
    "loop",
)
OF_DEVICES = ("data", "zero", "tensor", "pipeline")
BY_THEMSELVES = ("optimizer_impl", "attention", "checkpoint")
# What the form shows at first where a run has no default: what is trained, on what, how much of it.
START = {
    "model": "llama-3-8b",
    "precision": OWN,
    "optimizer": "adamw",
    "card": "H100 80GB",
    "gib": 24,
    "tokens": 4096,
}
START.update(loops.START | adapters.START | serving.START)


def first() -> dict[str, Any]:
    """What each control shows at first: where it sets a field of memlab.Run, that one's default."""
    run = Run()
    made = {name: getattr(run, name) for name in OF_RUN}
    made |= {name: getattr(run.devices, name) for name in OF_DEVICES}
    made |= {name: OWN for name in BY_THEMSELVES}
    made["completion"] = run.completion or loops.ALL
    made |= START | {"param_dtype": OWN}
    order = [each[0] for each in CHOICES] + [each[0] for each in NUMBERS]
    return {name: made[name] for name in order}


def checked(given: Any) -> dict[str, Any]:
    """What a state says, and the start where it must say something; the rest is memlab.Run's.

    Raises      ValueError, in one line, for a value that a control does not have
    """
    if not isinstance(given, dict):
        raise ValueError(say.NO_LIST)
    controls = [each[0] for each in CHOICES] + [each[0] for each in NUMBERS]
    for name in sorted(given):
        if name not in controls and name != "config":
            raise ValueError(Message(say.NO_SETTING, name=shown(name)))
    made: dict[str, Any] = dict(START)
    for name, label, values in CHOICES:
        known = [value for value, _ in values] + [OTHER_MODEL] * (name == "model")
        if name not in given:
            continue
        value = given[name]
        if isinstance(value, bool) or value not in known:
            raise ValueError(Message(say.NO_CHOICE, label=label, value=shown(value)))
        made[name] = value
    for name, label, least, most in NUMBERS:
        if name not in given:
            continue
        value = given[name]
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            ends = {"least": f"{least:,}", "most": f"{most:,}"}
            if value is None:  # a field that somebody has emptied
                raise ValueError(Message(say.NO_NUMBER_YET, label=label, **ends))
            raise ValueError(Message(say.NO_NUMBER, label=label, value=shown(value), **ends))
        made[name] = value
    if made["model"] == OTHER_MODEL:
        made["config"] = config_of(given.get("config"))
    return made
