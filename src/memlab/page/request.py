"""What the page's calculator asks: one table of controls for form, address and tests.

A control has the name of the field that it sets: of memlab.Run (OF_RUN), or of its devices
(OF_DEVICES), which an address writes beside the others because it is one list of names and values.
"""

from __future__ import annotations

from ..base.message import Message
from ..devices import devices
from ..model.config import KEYS
from ..model.fields import NOTHING, kinds
from ..model.presets import PRESETS
from ..run import MOST_PARTS, Run
from . import adapter_controls as adapters
from . import loop_controls as loops
from . import serving_controls as serving
from . import words as say
from .outside import shown

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

LARGEST = 10**9  # of any whole number that somebody may give
MOST_LAYERS = 10_000  # more are no model, and take a page too long
LONGEST = 120  # characters of a name
ROTARY = ("rope_parameters", "rope_scaling")  # keys of a config with an object inside
# Of which these change a step, or are what a kind of scaling cannot be without.
IN_ROTARY: tuple[str, ...] = ("rope_type", "type", "partial_rotary_factor")
IN_ROTARY += ("factor", "low_freq_factor", "high_freq_factor")
LISTS = (
    "layer_types",
    "no_rope_layers",
    "moe_layers",
    "mlp_only_layers",
    "short_factor",
    "long_factor",
)
INSIDE = ("text_config", "attn_config", "ffn_config", "decoder")  # objects that hold sizes
REFUSED = ("quantization_config", "per_layer_config", "pruned_heads")
OWN = "own"  # the attention that transformers gives a model of which nothing is said
OTHER_MODEL = "config"  # instead of a preset: the config that was pasted
OTHER_CARD = "other"  # of the size that is told beside it

# Label, and the name of memlab.Recipe's formats.
PRECISIONS = {
    "bf16": ("bf16, weights and all", "bf16"),
    "autocast": ("fp32, autocast to bf16", "autocast"),
    "fp32": ("fp32", "fp32"),
    "zero": ("bf16, updated in an fp32 copy", "zero"),
}
OPTIMIZERS = {
    "adamw": "AdamW",
    "adamw8bit": "AdamW, 8-bit states",
    "adamw4bit": "AdamW, 4-bit states",
    "adamw_fp8": "AdamW, FP8 states",
    "bnb_adamw8bit": "AdamW, 8-bit states (bitsandbytes)",
    "bnb_paged_adamw8bit": "AdamW, 8-bit states, paged (bitsandbytes)",
    "muon": "Muon",
    "lion": "Lion",
    "adafactor": "Adafactor",
    "momentum": "SGD with momentum",
    "sgd": "SGD",
}
ZERO = {
    0: "0: each device has all of it (DDP)",
    1: "1: states are divided (DeepSpeed)",
    2: "2: gradients too (DeepSpeed)",
    3: "3: weights too (FSDP2)",
}
# Name, label, values in order with their labels; or name, label, least, most of a whole number.
CHOICES = (
    ("model", "Model", [(name, name) for name in sorted(PRESETS)]),
    (
        "precision",
        "Precision",
        [(n, PRECISIONS[n][0]) for n in ("bf16", "autocast", "fp32", "zero")],
    ),
    ("optimizer", "Optimizer", [(n, OPTIMIZERS[n]) for n in sorted(OPTIMIZERS)]),
    (
        "optimizer_impl",
        "AdamW's loop",
        [
            (OWN, "what the program takes by itself"),
            ("foreach", "all tensors at once"),
            ("fused", "one kernel"),
        ],
    ),
    (
        "attention",
        "Attention",
        [(OWN, "the model's own"), ("sdpa", "SDPA (flash)"), ("eager", "eager, written out")],
    ),
    ("checkpoint", "Checkpointing", [("none", "none"), ("block", "every block")]),
    ("loss", "Loss", [("plain", "all logits at once"), ("chunked", "in 8 chunks")]),
    (
        "card",
        "Card",
        [(each.name, each.told()) for each in devices()]
        + [(OTHER_CARD, "another card, of the size beside")],
    ),
    ("zero", "What they divide: ZeRO stage", [(n, ZERO[n]) for n in ZERO]),
) + (loops.CHOICES + adapters.CHOICES + serving.CHOICES)
NUMBERS = (
    ("batch", "Sequences in a batch", 1, 65536),
    ("tokens", "Tokens in each", 2, 4194304),
    ("micro_batches", "Batches in one step", 1, MOST_PARTS),
    ("gib", "GiB of another card, as PyTorch's message says", 1, 4096),
    ("data", "Devices, each with its own data", 1, 65536),
    ("tensor", "Devices that divide matrices", 1, 4096),
    ("pipeline", "Devices that divide layers", 1, 4096),
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
# What the form shows at first where a run has no default: what is trained, on what, how much of it.
START = {
    "model": "llama-3-8b",
    "precision": "bf16",
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
    made |= {"attention": run.attention or OWN, "optimizer_impl": run.optimizer_impl or OWN}
    made["completion"] = run.completion or loops.ALL
    made |= START
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


def config_of(config: Any) -> dict[str, Any]:
    """A config.json, less all that changes no byte: memlab.model.fields knows each key.

    Raises      ValueError, in one line, for anything that is no config
    """
    if not isinstance(config, dict):
        raise ValueError(say.NO_CONFIG)
    family = config.get("model_type")
    if not isinstance(family, str):
        raise ValueError(say.NO_FAMILY)
    if family not in KEYS:
        return flat(config)
    made: dict[str, Any] = {"model_type": family}
    rows = kinds(family)
    for key in sorted(rows):
        if key in ROTARY and isinstance(config.get(key), dict):
            inner = config[key]
            made[key] = {name: plain(name, inner[name]) for name in IN_ROTARY if name in inner}
            for name in LISTS:
                if isinstance(inner.get(name), list):
                    made[key][name] = [plain(name, each) for each in inner[name]]
        elif key in ROTARY and config.get(key) is not None:
            raise ValueError(Message(say.NO_OBJECT, key=key, value=shown(config[key])))
        elif key in LISTS and isinstance(config.get(key), list):
            made[key] = [plain(key, each) for each in config[key]]
        elif key == "quantization_config" and config.get(key) is not None:
            made[key] = "..."  # no word of it is of any language; MicroPython writes no "…"
        elif key in config and (rows[key] != NOTHING or key == "pad_token_id"):  # a row, or null
            made[key] = plain(key, config[key])
    layers = made.get(KEYS[family]["layers"][0])
    if isinstance(layers, int) and layers > MOST_LAYERS:
        raise ValueError(Message(say.TOO_DEEP, layers=f"{layers:,}", most=f"{MOST_LAYERS:,}"))
    if "_name_or_path" in config:
        made["_name_or_path"] = plain("_name_or_path", config["_name_or_path"])
    return made


def flat(config: Any) -> dict[str, Any]:
    """A config's keys, those of the objects that hold sizes among them."""
    made = {}
    for key in config:
        value = config[key]
        if key in INSIDE and isinstance(value, dict):
            for name in value:
                made[f"{key}.{name}"] = value[name]
        else:
            made[key] = value
    return made


def plain(key: str, value: Any) -> Any:
    """A number, truth value or short text as it is.

    Raises      ValueError for anything else
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if not -1 <= value <= LARGEST:
            raise ValueError(Message(say.NO_SIZE, key=key, value=shown(value), most=f"{LARGEST:,}"))
        return value
    if isinstance(value, float):
        if not -1e9 <= value <= 1e9:
            raise ValueError(Message(say.BEYOND, key=key))
        return value
    if isinstance(value, str):
        return value[:LONGEST]
    raise ValueError(Message(say.NO_VALUE, key=key))
