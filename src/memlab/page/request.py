"""What the page's calculator asks: one table of controls for form, address and tests."""

from ..config import KEYS
from ..devices import devices
from ..presets import PRESETS
from ..recipe import Recipe
from . import words as say

# Of a config.json the page reads these keys and no other.
STEP_KEYS = (
    "hidden_act",
    "activation_function",
    "attention_dropout",
    "use_parallel_residual",
    "rotary_pct",
    "do_layer_norm_before",
    "layerdrop",
    "reorder_and_upcast_attn",
    "scale_attn_by_inverse_layer_idx",
    "sliding_window",
    "use_sliding_window",
    "add_cross_attention",
    "rope_type",
    "partial_rotary_factor",
)
LARGEST = 10**9  # of any whole number that somebody may give
LONGEST = 120  # characters of a name
OTHER_MODEL = "config"  # instead of a preset: the config that was pasted

# Label, and how memlab.Recipe says it; the moments are those of the step in `step`.
PRECISIONS = {
    "bf16": ("bf16, weights and all", "bf16", {"weights": "bf16", "gradients": "bf16"}),
    "autocast": ("fp32, autocast to bf16", "autocast", {"autocast": "bf16"}),
    "fp32": ("fp32", "fp32", {}),
    "zero": (
        "bf16, updated in an fp32 copy",
        "bf16",
        {"weights": "bf16", "gradients": "bf16", "master": "fp32"},
    ),
}
OPTIMIZERS = {
    "adamw": "AdamW",
    "adamw8bit": "AdamW, 8-bit states",
    "adamw4bit": "AdamW, 4-bit states",
    "adamw_fp8": "AdamW, FP8 states",
    "muon": "Muon",
    "lion": "Lion",
    "adafactor": "Adafactor",
    "momentum": "SGD with momentum",
    "sgd": "SGD",
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
    ("loop", "AdamW's loop", [("foreach", "all tensors at once"), ("fused", "one kernel")]),
    ("attention", "Attention", [("sdpa", "SDPA (flash)"), ("eager", "eager, written out")]),
    ("checkpoint", "Checkpointing", [("none", "none"), ("block", "every block")]),
    ("loss", "Loss", [("plain", "all logits at once"), ("chunked", "in 8 chunks")]),
    ("card", "Card", [(each.name, str(each)) for each in devices()]),
    ("zero", "ZeRO stage", [(n, str(n)) for n in (0, 1, 2, 3)]),
)
NUMBERS = (
    ("batch", "Sequences in a batch", 1, 65536),
    ("tokens", "Tokens in each", 2, 4194304),
    ("passes", "Batches in one step", 1, 65536),
    ("data", "Devices, each with its own data", 1, 65536),
    ("tensor", "Devices that divide matrices", 1, 4096),
    ("pipeline", "Devices that divide layers", 1, 4096),
)
DEFAULTS = {
    "model": "llama-3-8b",
    "precision": "bf16",
    "optimizer": "adamw",
    "loop": "foreach",
    "attention": "sdpa",
    "checkpoint": "none",
    "loss": "plain",
    "card": "H100 80GB",
    "zero": 0,
    "batch": 1,
    "tokens": 4096,
    "passes": 1,
    "data": 1,
    "tensor": 1,
    "pipeline": 1,
}


def checked(given):
    """Every control's value, those that were not given by default.

    Raises      ValueError, in one line, for a value that a control does not have
    """
    if not isinstance(given, dict):
        raise ValueError(say.NO_LIST)
    made = dict(DEFAULTS)
    for name in sorted(given):
        if name not in DEFAULTS and name != "config":
            raise ValueError(say.NO_SETTING.format(name=shown(name)))
    for name, label, values in CHOICES:
        known = [value for value, _ in values]
        if name == "model":
            known = known + [OTHER_MODEL]
        value = given.get(name, DEFAULTS[name])
        if isinstance(value, bool) or value not in known:
            raise ValueError(say.NO_CHOICE.format(label=label, value=shown(value)))
        made[name] = value
    for name, label, least, most in NUMBERS:
        value = given.get(name, DEFAULTS[name])
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(
                say.NO_NUMBER.format(
                    label=label, value=shown(value), least=f"{least:,}", most=f"{most:,}"
                )
            )
        made[name] = value
    if made["model"] == OTHER_MODEL:
        made["config"] = config_of(given.get("config"))
    return made


def config_of(config):
    """A config.json, less all that memlab does not read.

    Raises      ValueError, in one line, for anything that is no config
    """
    if not isinstance(config, dict):
        raise ValueError(say.NO_CONFIG)
    family = config.get("model_type")
    if not isinstance(family, str):
        raise ValueError(say.NO_FAMILY)
    if family not in KEYS:
        known = ", ".join(sorted(KEYS))
        raise ValueError(say.UNKNOWN_FAMILY.format(family=shown(family), known=known))
    made = {"model_type": family}
    keys = [KEYS[family][field][0] for field in sorted(KEYS[family])]
    aliases = ["num_hidden_layers", "hidden_size", "num_attention_heads", "max_position_embeddings"]
    for key in keys + aliases + list(STEP_KEYS) + ["_name_or_path", "_remove_final_layer_norm"]:
        if key in config:
            made[key] = plain(key, config[key])
    for key in ("rope_parameters", "rope_scaling"):
        if isinstance(config.get(key), dict):
            inner = config[key]
            made[key] = {k: plain(k, inner[k]) for k in ("rope_type", "type") if k in inner}
        elif config.get(key) is not None:
            raise ValueError(say.NO_OBJECT.format(key=key, value=shown(config[key])))
    if isinstance(config.get("layer_types"), list):
        if "sliding_attention" in config["layer_types"]:
            made["use_sliding_window"] = True
    return made


def plain(key, value):
    """A number, truth value or short text as it is.

    Raises      ValueError for anything else
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if not -1 <= value <= LARGEST:
            raise ValueError(say.NO_SIZE.format(key=key, value=shown(value), most=f"{LARGEST:,}"))
        return value
    if isinstance(value, float):
        if not -1e9 <= value <= 1e9:
            raise ValueError(say.BEYOND.format(key=key))
        return value
    if isinstance(value, str):
        return value[:LONGEST]
    raise ValueError(say.NO_VALUE.format(key=key))


def shown(value):
    """A value as one short line may repeat it: text only, and only its beginning."""
    if isinstance(value, str):
        words = value
    elif value is None or isinstance(value, (bool, int)):
        words = str(value)
    else:
        return say.THIS_VALUE
    words = "".join([c if " " <= c < "\x7f" else "?" for c in words])
    return f"“{words[:40]}…”" if len(words) > 40 else f"“{words}”"


def recipe_of(state):
    """The recipe that precision and optimizer say together."""
    label, _, fields = PRECISIONS[state["precision"]]
    fields = dict(fields)
    fields["optimizer"] = state["optimizer"]
    return Recipe(name=f"{label}, {OPTIMIZERS[state['optimizer']]}", **fields)
